/* SPDX-License-Identifier: Apache-2.0 */
/* A build without curses: no screen, and it says so. */
#include "cli/top/screen.h"

enum hk_code hk_screen_open(bool color, struct hk_screen **out, struct hk_err *err)
{
    (void)color;
    (void)out;
    return hk_err_set(err, HK_UNSUPPORTED,
                      "this program was built without ncurses; --once prints one screen");
}

void hk_screen_close(struct hk_screen *screen)
{
    (void)screen;
}

void hk_screen_size(struct hk_screen *screen, unsigned *out_rows, unsigned *out_columns)
{
    (void)screen;
    *out_rows = 24;
    *out_columns = 80;
}

void hk_screen_clear(struct hk_screen *screen)
{
    (void)screen;
}

void hk_screen_line(struct hk_screen *screen, unsigned row, const char *text, unsigned attributes)
{
    (void)screen;
    (void)row;
    (void)text;
    (void)attributes;
}

void hk_screen_show(struct hk_screen *screen, unsigned row, unsigned column)
{
    (void)screen;
    (void)row;
    (void)column;
}

int hk_screen_key(struct hk_screen *screen, uint64_t wait_ms)
{
    (void)screen;
    (void)wait_ms;
    return HK_KEY_NONE;
}
