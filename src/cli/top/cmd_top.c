/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku top: a live view of a store in a terminal. It reads the store every few seconds, obeys keys meanwhile, and keeps trying when
 * the store is out of reach. It pauses and resumes as `destinations pause` does: with a reason, and with a row in the audit. */
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/remote/remote.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "cli/top/screen.h"
#include "cli/top/top.h"
#include "cli/view.h"
#include "desk/destinations.h"
#include "exec/clock.h"

enum {
    INTERVAL_MS = 2000,
    INTERVAL_MIN_MS = 100,
    INTERVAL_MAX_MS = 3600000,
    ONCE_ROWS = 24,
    VIEW_MAX_BYTES = 4 << 20 /* of a message that is shown */
};

#define KEYS "q quit  ? help  s sort  / filter  p pause  r resume  Tab lists  Enter open  o id"

struct app {
    struct hk_config *config;
    struct hk_remote *remote; /* NULL: the desk asks the database */
    struct hk_desk desk;
    struct hk_screen *screen;
    struct hk_top *top;
    char actor[HK_ACTOR_MAX];
    char said[HK_TOP_TEXT]; /* what came of the last key; "" = nothing to say */
    int64_t look_at_ms;     /* monotonic */
    bool quit;
};

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

/* ---- drawing ---- */

static void draw_line(void *arg, unsigned row, const char *text, unsigned attributes)
{
    struct app *app = arg;
    hk_screen_line(app->screen, row, text != NULL ? text : "", attributes);
}

static void draw(struct app *app)
{
    unsigned rows = 0, columns = 0;
    hk_screen_size(app->screen, &rows, &columns);
    hk_screen_clear(app->screen);
    hk_top_draw(app->top, rows, columns, app->said[0] != '\0' ? app->said : KEYS, draw_line, app);
    hk_screen_show(app->screen, UINT_MAX, 0);
}

/* ---- asking ---- */

static void drop_last(char *text)
{
    size_t len = strlen(text);
    while (len > 0 && ((unsigned char)text[len - 1] & 0xc0) == 0x80)
        len--;
    if (len > 0)
        len--;
    text[len] = '\0';
}

static void draw_question(struct app *app, const char *question, const char *text)
{
    unsigned rows = 0, columns = 0;
    struct hk_buf line;
    hk_screen_size(app->screen, &rows, &columns);
    hk_screen_clear(app->screen);
    hk_top_draw(app->top, rows, columns, "", draw_line, app);
    hk_buf_init(&line, 8192);
    size_t width = hk_table_safe(&line, hk_str_of(question), columns > 1 ? columns - 1 : 1);
    if (width + 1 < columns)
        width += hk_table_safe(&line, hk_str_of(text), columns - 1 - width);
    hk_screen_line(app->screen, rows - 1, hk_buf_cstr(&line), HK_ATTR_BOLD);
    hk_screen_show(app->screen, rows - 1, (unsigned)width);
    hk_buf_fini(&line);
}

/* A line of text, in the last line of the screen. False: Escape was pressed. */
static bool ask(struct app *app, const char *question, char *out, size_t room)
{
    for (;;) {
        draw_question(app, question, out);
        int key = hk_screen_key(app->screen, 1000);
        if (key == HK_KEY_ESCAPE)
            return false;
        if (key == HK_KEY_ENTER)
            return true;
        if (key == HK_KEY_BACKSPACE)
            drop_last(out);
        size_t len = strlen(out);
        if (key >= ' ' && key < 256 && len + 1 < room) { /* a byte of UTF-8 */
            out[len++] = (char)key;
            out[len] = '\0';
        }
    }
}

/* ---- acts ---- */

static void set_paused(struct app *app, const char *name, bool paused, const char *reason)
{
    const struct hk_caller caller = {.role = HK_ROLE_OPERATOR, .actor = app->actor, .reason = reason};
    const struct hk_op *op = paused ? &hk_op_destinations_pause : &hk_op_destinations_resume;
    struct hk_pool mem = {NULL};
    struct hk_dest_paused done = {.changed = false};
    struct hk_err err = {.message = ""};
    enum hk_code rc =
        hk_desk_ask(&app->desk, op, &caller, &(struct hk_dest_ask){.destination = name}, &mem, &done, &err);
    if (rc != HK_OK)
        hk_top_keep(app->said, hk_str_of(err.message));
    else
        (void)snprintf(app->said, sizeof app->said, "%.200s: %s", name,
                       paused         ? "paused"
                       : done.changed ? "resumed"
                                      : "was not paused");
    hk_pool_fini(&mem);
}

static void pause_marked(struct app *app, bool paused)
{
    const struct hk_top_dest *d = hk_top_dest(app->top, app->top->marked[0]);
    char reason[HK_REASON_TEXT_MAX] = "", name[HK_TOP_TEXT], question[HK_TOP_TEXT + 80];
    if (d == NULL || d->name[0] == '\0' || !hk_desk_is_open(&app->desk))
        return;
    memcpy(name, d->name, sizeof name); /* it may move while we ask */
    (void)snprintf(question, sizeof question,
                   "%s %s: reason (it is kept; Esc: no): ", paused ? "pause" : "resume", name);
    if (!ask(app, question, reason, sizeof reason)) {
        hk_top_keep(app->said, hk_str_of("nothing was changed"));
    } else if (hk_str_trim(hk_str_of(reason)).len == 0 || !hk_utf8_is_text(hk_str_of(reason))) {
        hk_top_keep(app->said, hk_str_of("nothing was changed: it takes a reason"));
    } else {
        set_paused(app, name, paused, reason);
    }
    app->look_at_ms = 0;
}

static void filter(struct app *app)
{
    char text[HK_TOP_TEXT];
    memcpy(text, app->top->filter, sizeof text);
    if (ask(app, "only destinations with: ", text, sizeof text))
        memcpy(app->top->filter, text, sizeof text);
}

/* ---- a text to look through ---- */

struct pager {
    struct hk_str text;
    struct hk_buf folded; /* to `columns` */
    unsigned columns;
    size_t n_lines, first;
};

static size_t count_lines(struct hk_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.ptr[i] == '\n';
    return n;
}

static struct hk_str line_at(const struct pager *p, size_t wanted)
{
    struct hk_str rest = hk_buf_str(&p->folded), line = {"", 0};
    for (size_t i = 0; i <= wanted && rest.len > 0; i++)
        line = hk_str_cut(&rest, '\n');
    return line;
}

/* Lines that are too long go on in the next one. */
static void fold(struct pager *p, unsigned columns)
{
    struct hk_str rest = p->text;
    if (p->columns == columns)
        return;
    p->columns = columns;
    hk_buf_reset(&p->folded);
    while (rest.len > 0) {
        struct hk_str line = hk_str_cut(&rest, '\n');
        do {
            struct hk_str piece = hk_table_fold(&line, columns);
            (void)hk_buf_add(&p->folded, piece.ptr, piece.len);
            (void)hk_buf_addc(&p->folded, '\n');
        } while (line.len > 0);
    }
    p->n_lines = count_lines(hk_buf_str(&p->folded));
}

/* What `show` wrote is safe already; a tab would still move the cursor. */
static void draw_page(struct app *app, struct pager *p)
{
    unsigned rows = 0, columns = 0;
    struct hk_buf line;
    hk_screen_size(app->screen, &rows, &columns);
    hk_screen_clear(app->screen);
    fold(p, columns > 0 ? columns : 1);
    hk_buf_init(&line, 1 << 16);
    for (unsigned row = 0; row + 1 < rows && p->first + row < p->n_lines; row++) {
        hk_buf_reset(&line);
        (void)hk_table_safe(&line, line_at(p, p->first + row), columns);
        hk_screen_line(app->screen, row, hk_buf_cstr(&line), 0);
    }
    hk_screen_line(app->screen, rows - 1, "q back  arrows, PgUp, PgDn scroll", HK_ATTR_DIM);
    hk_screen_show(app->screen, UINT_MAX, 0);
    hk_buf_fini(&line);
}

/* False: it goes back. */
static bool turn_page(struct app *app, struct pager *p, int key)
{
    unsigned rows = 0, columns = 0;
    hk_screen_size(app->screen, &rows, &columns);
    size_t page = rows > 2 ? rows - 2 : 1, last = p->n_lines > page ? p->n_lines - page : 0;
    if (key == 'q' || key == HK_KEY_ESCAPE || key == HK_KEY_ENTER)
        return false;
    if (key == HK_KEY_DOWN || key == 'j')
        p->first++;
    else if ((key == HK_KEY_UP || key == 'k') && p->first > 0)
        p->first--;
    else if (key == HK_KEY_PAGE_DOWN || key == ' ')
        p->first += page;
    else if (key == HK_KEY_PAGE_UP)
        p->first -= p->first < page ? p->first : page;
    else if (key == HK_KEY_HOME)
        p->first = 0;
    else if (key == HK_KEY_END)
        p->first = last;
    p->first = p->first < last ? p->first : last;
    return true;
}

static void show_text(struct app *app, struct hk_str text)
{
    struct pager p = {.text = text};
    hk_buf_init(&p.folded, (size_t)VIEW_MAX_BYTES * 3);
    do
        draw_page(app, &p);
    while (turn_page(app, &p, hk_screen_key(app->screen, 60000)));
    hk_buf_fini(&p.folded);
}

static void open_view(struct app *app, int64_t letter, const char *message_id)
{
    struct hk_buf text;
    struct hk_err err = {.message = ""};
    if (!hk_desk_is_open(&app->desk))
        return;
    hk_buf_init(&text, VIEW_MAX_BYTES);
    enum hk_code rc = letter != 0 ? hk_view_letter(&app->desk, letter, &text, &err)
                                  : hk_view_message(&app->desk, message_id, &text, &err);
    if (rc == HK_OK && hk_buf_status(&text) == HK_OK)
        show_text(app, hk_buf_str(&text));
    else
        hk_top_keep(app->said, hk_str_of(rc != HK_OK ? err.message : "it is too long to show here"));
    hk_buf_fini(&text);
}

/* The letter that is marked; of a destination, its last letter that is known. */
static void open_marked(struct app *app)
{
    const struct hk_top *top = app->top;
    const struct hk_top_failure *f =
        top->in_failures && top->marked[1] < top->n_failures ? &top->failures[top->marked[1]] : NULL;
    const struct hk_top_dest *d = hk_top_dest(top, top->marked[0]);
    for (size_t i = 0; f == NULL && d != NULL && i < top->n_failures; i++)
        if (top->failures[i].letter != 0 && strcmp(top->failures[i].destination, d->name) == 0)
            f = &top->failures[i];
    if (f != NULL && f->letter != 0)
        open_view(app, f->letter, NULL);
    else
        hk_top_keep(app->said,
                    hk_str_of(f != NULL
                                  ? f->text
                                  : "no dead letter of it is in the list; o opens a message by its id"));
}

static void open_message(struct app *app)
{
    char id[HK_TOP_TEXT] = "";
    if (ask(app, "message id: ", id, sizeof id) && id[0] != '\0')
        open_view(app, 0, id);
}

static void help(struct app *app)
{
    static const char text[] =
        "hikyaku top\n\n"
        "  arrows, j, k   move the mark\n"
        "  Tab            the other list: destinations, recent failures\n"
        "  s              sort by the next: name, backlog, dead, rate, latency\n"
        "  /              only destinations with a text in their name; empty: all\n"
        "  p, r           pause, resume the marked destination; asks for a reason,\n"
        "                 which is kept\n"
        "  Enter          open the marked dead letter\n"
        "  o              open a message by its id\n"
        "  space          look now\n"
        "  q              quit\n\n"
        "IN/S, OUT/S, OK (attempts that went well) and P95 are of the last minute, as\n"
        "relays tell; ~ marks an estimate. STATE: open = its breaker, and for how long;\n"
        "limited = its rate, or a wait that it asked for.\n";
    show_text(app, hk_str_of(text));
}

/* ---- keys ---- */

static void move_mark(struct hk_top *top, int by)
{
    size_t *marked = &top->marked[top->in_failures];
    size_t n = top->in_failures ? top->n_failures : hk_top_shown(top);
    if (by < 0)
        *marked -= *marked < (size_t)-by ? *marked : (size_t)-by;
    else
        *marked = n == 0 ? 0 : *marked + (size_t)by < n ? *marked + (size_t)by : n - 1;
}

static void sort_next(struct hk_top *top)
{
    top->sort = (enum hk_top_sort)(((int)top->sort + 1) % HK_TOP_NSORTS);
    hk_top_resort(top);
}

static void obey(struct app *app, int key)
{
    struct hk_top *top = app->top;
    if (key == HK_KEY_NONE || key == HK_KEY_RESIZED)
        return;
    app->said[0] = '\0';
    if (key == 'q')
        app->quit = true;
    else if (key == HK_KEY_UP || key == 'k')
        move_mark(top, -1);
    else if (key == HK_KEY_DOWN || key == 'j')
        move_mark(top, 1);
    else if (key == HK_KEY_PAGE_UP)
        move_mark(top, -10);
    else if (key == HK_KEY_PAGE_DOWN)
        move_mark(top, 10);
    else if (key == '\t')
        top->in_failures = !top->in_failures;
    else if (key == 's')
        sort_next(top);
    else if (key == '/')
        filter(app);
    else if (key == 'p' || key == 'r')
        pause_marked(app, key == 'p');
    else if (key == HK_KEY_ENTER)
        open_marked(app);
    else if (key == 'o')
        open_message(app);
    else if (key == ' ')
        app->look_at_ms = 0;
    else if (key == '?' || key == 'h')
        help(app);
}

/* ---- the command ---- */

static int run_live(struct app *app)
{
    struct hk_err err = {.message = ""};
    if (hk_screen_open(hk_out_color(), &app->screen, &err) != HK_OK)
        return hk_out_error(HK_EXIT_USAGE, "%s", err.message);
    draw(app);
    while (!app->quit) {
        if (now_ms() >= app->look_at_ms) {
            (void)hk_top_take(app->top, &app->desk, &err); /* what is wrong is on the screen */
            app->look_at_ms = now_ms() + (int64_t)app->top->interval_ms;
        }
        draw(app);
        int64_t left = app->look_at_ms - now_ms();
        obey(app, hk_screen_key(app->screen, left > 0 ? (uint64_t)left : 0));
    }
    hk_screen_close(app->screen);
    return HK_EXIT_OK;
}

static void print_line(void *arg, unsigned row, const char *text, unsigned attributes)
{
    struct hk_buf *out = arg;
    size_t len = text != NULL ? strlen(text) : 0;
    (void)row;
    (void)attributes;
    if (text == NULL)
        out->status = HK_NOMEM; /* a screen that lacks a line is not printed */
    while (len > 0 && text[len - 1] == ' ')
        len--;
    (void)hk_buf_add(out, text, len);
    (void)hk_buf_addc(out, '\n');
}

static int run_once(struct app *app)
{
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    uint64_t rows = ONCE_ROWS;
    enum hk_code rc = hk_top_take(app->top, &app->desk, &err);
    if (rc != HK_OK && !hk_desk_is_open(&app->desk))
        return hk_out_error(hk_settings_exit(rc), "%s", err.message);
    if (rc != HK_OK)
        return hk_ask_error(&err);
    if (hk_parse_u64(hk_str_of(getenv("LINES")), &rows, NULL) != HK_OK || rows < 10 || rows > 10000)
        rows = ONCE_ROWS;
    hk_buf_init(&out, HK_OUTPUT_MAX);
    hk_top_draw(app->top, (unsigned)rows, hk_out_width(), "", print_line, &out);
    return hk_out_buffer(&out);
}

static int take_interval(const struct hk_cli *cli, uint64_t *out_ms)
{
    const char *given = hk_args_value(cli, "interval");
    struct hk_err err = {.message = ""};
    if (given == NULL)
        return HK_EXIT_OK;
    if (hk_parse_duration(hk_str_of(given), out_ms, &err) != HK_OK)
        return hk_out_error(HK_EXIT_USAGE, "--interval: %s", err.message);
    if (*out_ms < INTERVAL_MIN_MS || *out_ms > INTERVAL_MAX_MS)
        return hk_out_error(HK_EXIT_USAGE, "--interval: from 100ms to 1h");
    return HK_EXIT_OK;
}

static int open_desk(const struct hk_cli *cli, struct app *app)
{
    int code = hk_remote_open(cli, &app->remote);
    if (code != HK_EXIT_OK)
        return code;
    if (app->remote == NULL) {
        const char *url = NULL;
        code = hk_settings_config(cli, HK_FOR_ACTING, &app->config);
        if (code == HK_EXIT_OK)
            code = hk_settings_url(cli, app->config, &url);
        if (code == HK_EXIT_OK)
            hk_desk_init(&app->desk, app->config, url);
        return code;
    }
    if (hk_config_defaults(&app->config) != HK_OK)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    hk_desk_init(&app->desk, app->config, NULL);
    hk_remote_attach(app->remote, &app->desk);
    (void)hk_str_copy(app->top->place, sizeof app->top->place, hk_str_of(hk_remote_name(app->remote)));
    return HK_EXIT_OK;
}

int hk_cmd_top(struct hk_cli *cli)
{
    struct app app = {.top = hk_mem_zalloc(1, sizeof *app.top)};
    struct hk_err err = {.message = ""};
    if (app.top == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    app.top->interval_ms = INTERVAL_MS;
    app.top->sort = HK_TOP_BY_BACKLOG;
    int code = take_interval(cli, &app.top->interval_ms);
    if (code == HK_EXIT_OK)
        code = open_desk(cli, &app);
    if (code != HK_EXIT_OK) {
        hk_mem_free(app.top);
        return code;
    }
    (void)hk_settings_actor(cli, app.actor);
    enum hk_code rc = app.remote == NULL ? hk_desk_place(&app.desk, app.top->place, &err) : HK_OK;
    if (rc != HK_OK)
        code = hk_out_error(hk_settings_exit(rc), "%s", err.message);
    else
        code = hk_args_flag(cli, "once") ? run_once(&app) : run_live(&app);
    hk_desk_fini(&app.desk);
    hk_remote_close(app.remote);
    hk_config_free(app.config);
    hk_top_fini(app.top);
    hk_mem_free(app.top);
    return code;
}
