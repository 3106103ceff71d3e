/* SPDX-License-Identifier: Apache-2.0 */
/* The screen on ncurses (its wide build: text is UTF-8, wide characters take two columns). */
#include <limits.h>
#include <ncurses.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/top/screen.h"
#include "cli/top/screen_term.h"

enum {
    PAIR_BAD = 1,
    PAIR_WARN,
    ESCAPE_MS = 50 /* a key's sequence comes at once, also over SSH; curses would wait for a second */
};

struct hk_screen {
    SCREEN *term;
    bool color;
};

static void use_colors(struct hk_screen *s)
{
    s->color = has_colors() && start_color() == OK;
    if (!s->color)
        return;
    short background = use_default_colors() == OK ? -1 : COLOR_BLACK;
    (void)init_pair(PAIR_BAD, COLOR_RED, background);
    (void)init_pair(PAIR_WARN, COLOR_YELLOW, background);
}

enum hk_code hk_screen_open(bool color, struct hk_screen **out, struct hk_err *err)
{
    const char *term = getenv("TERM");
    if (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)
        return hk_err_set(err, HK_UNSUPPORTED, "this is no terminal; --once prints one screen");
    struct hk_screen *s = hk_mem_zalloc(1, sizeof *s);
    if (s == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    s->term = hk_screen_term_known() ? newterm(NULL, stdout, stdin) : NULL;
    if (s->term == NULL) {
        hk_mem_free(s);
        return hk_err_set(err, HK_UNSUPPORTED,
                          "the terminal (TERM is \"%.40s\") is not known; try TERM=xterm, or --once",
                          term != NULL ? term : "");
    }
    (void)set_term(s->term);
    if (color)
        use_colors(s);
    (void)set_escdelay(ESCAPE_MS);
    (void)cbreak();
    (void)noecho();
    (void)nonl();
    (void)keypad(stdscr, TRUE);
    (void)curs_set(0);
    *out = s;
    return HK_OK;
}

void hk_screen_close(struct hk_screen *s)
{
    if (s == NULL)
        return;
    (void)endwin();
    delscreen(s->term);
    hk_mem_free(s);
}

void hk_screen_size(struct hk_screen *s, unsigned *out_rows, unsigned *out_columns)
{
    int rows = getmaxy(stdscr), columns = getmaxx(stdscr);
    (void)s;
    *out_rows = rows > 0 ? (unsigned)rows : 1;
    *out_columns = columns > 0 ? (unsigned)columns : 1;
}

void hk_screen_clear(struct hk_screen *s)
{
    (void)s;
    (void)erase();
}

static attr_t attributes_of(const struct hk_screen *s, unsigned wanted)
{
    attr_t a = A_NORMAL;
    a |= wanted & HK_ATTR_BOLD ? A_BOLD : 0;
    a |= wanted & HK_ATTR_REVERSE ? A_REVERSE : 0;
    a |= wanted & HK_ATTR_DIM ? A_DIM : 0;
    if (wanted & HK_ATTR_BAD)
        a |= s->color ? (attr_t)COLOR_PAIR(PAIR_BAD) : A_BOLD;
    else if (wanted & HK_ATTR_WARN)
        a |= s->color ? (attr_t)COLOR_PAIR(PAIR_WARN) : 0;
    return a;
}

/* Where the terminal takes no UTF-8: a question mark for each column of what is not ASCII. */
static void add_ascii(const char *text)
{
    struct hk_str rest = hk_str_of(text);
    while (rest.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(rest, &c);
        for (unsigned i = 0; c >= 0x80 && i < hk_char_width(c); i++)
            (void)addch('?');
        if (c < 0x80)
            (void)addch((chtype)c);
        rest = (struct hk_str){rest.ptr + taken, rest.len - taken};
    }
}

void hk_screen_line(struct hk_screen *s, unsigned row, const char *text, unsigned attributes)
{
    attr_t a = attributes_of(s, attributes);
    (void)wattr_on(stdscr, a, NULL);
    (void)move((int)row, 0);
    if (hk_out_utf8())
        (void)addstr(text);
    else
        add_ascii(text);
    if (attributes & HK_ATTR_REVERSE) /* the whole line */
        for (int x = getcurx(stdscr); x > 0 && x < getmaxx(stdscr); x++)
            (void)mvaddch((int)row, x, ' ');
    (void)wattr_off(stdscr, a, NULL);
}

void hk_screen_show(struct hk_screen *s, unsigned row, unsigned column)
{
    bool cursor = row != UINT_MAX;
    (void)s;
    (void)curs_set(cursor ? 1 : 0);
    if (cursor)
        (void)move((int)row, (int)column);
    (void)refresh();
}

static int key_of(int c)
{
    static const struct {
        int theirs, ours;
    } keys[] = {{KEY_UP, HK_KEY_UP},
                {KEY_DOWN, HK_KEY_DOWN},
                {KEY_PPAGE, HK_KEY_PAGE_UP},
                {KEY_NPAGE, HK_KEY_PAGE_DOWN},
                {KEY_HOME, HK_KEY_HOME},
                {KEY_END, HK_KEY_END},
                {KEY_BACKSPACE, HK_KEY_BACKSPACE},
                {127, HK_KEY_BACKSPACE},
                {8, HK_KEY_BACKSPACE},
                {KEY_ENTER, HK_KEY_ENTER},
                {'\n', HK_KEY_ENTER},
                {'\r', HK_KEY_ENTER},
                {27, HK_KEY_ESCAPE},
                {KEY_RESIZE, HK_KEY_RESIZED},
                {ERR, HK_KEY_NONE}};

    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (keys[i].theirs == c)
            return keys[i].ours;
    return c >= 0 && c < 256 ? c : HK_KEY_OTHER;
}

int hk_screen_key(struct hk_screen *s, uint64_t wait_ms)
{
    (void)s;
    timeout(wait_ms < INT_MAX ? (int)wait_ms : INT_MAX);
    return key_of(getch());
}
