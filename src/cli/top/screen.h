/* SPDX-License-Identifier: Apache-2.0 */
/* A terminal that is drawn line by line, and asked for keys: all that `top` needs of curses, which nothing else has to know.
 * One screen at a time, since curses has one. */
#ifndef HK_CLI_TOP_SCREEN_H
#define HK_CLI_TOP_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>

enum {
    HK_ATTR_BOLD = 1,
    HK_ATTR_REVERSE = 2,
    HK_ATTR_DIM = 4,
    HK_ATTR_BAD = 8, /* red, where there are colours */
    HK_ATTR_WARN = 16
};

/* Keys that are no byte of text. */
enum {
    HK_KEY_NONE = -1, /* nothing was pressed in time */
    HK_KEY_UP = 1000,
    HK_KEY_DOWN,
    HK_KEY_PAGE_UP,
    HK_KEY_PAGE_DOWN,
    HK_KEY_HOME,
    HK_KEY_END,
    HK_KEY_BACKSPACE,
    HK_KEY_ENTER,
    HK_KEY_ESCAPE,
    HK_KEY_RESIZED,
    HK_KEY_OTHER
};

struct hk_screen;

/* HK_UNSUPPORTED: no terminal, one that nobody knows, or a build without curses. Until it is closed nothing else may write to
 * standard output. */
enum hk_code hk_screen_open(bool color, struct hk_screen **out, struct hk_err *err) HK_MUSTCHECK;
void hk_screen_close(struct hk_screen *screen); /* accepts NULL */
void hk_screen_size(struct hk_screen *screen, unsigned *out_rows, unsigned *out_columns);
void hk_screen_clear(struct hk_screen *screen);
/* `text` must be safe (cli/table.h) and fit. */
void hk_screen_line(struct hk_screen *screen, unsigned row, const char *text, unsigned attributes);
/* Shows what was drawn. A cursor stands at that place, or nowhere when `row` is UINT_MAX. */
void hk_screen_show(struct hk_screen *screen, unsigned row, unsigned column);
int hk_screen_key(struct hk_screen *screen, uint64_t wait_ms);

#endif
