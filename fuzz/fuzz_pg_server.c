/* SPDX-License-Identifier: Apache-2.0 */
/* What a PostgreSQL server says beside rows: snapshots, from which the relay knows what may have become visible late, and errors, which people
 * read. Lines. A snapshot is taken whole or leaves the window as it was, and what a floor is given for lies between where it may; words of
 * an error become one harmless line of UTF-8, and every state has a meaning. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "core/exchange.h"
#include "fuzz.h"
#include "store/pg/pg.h"
#include "store/pg/window.h"

/* ---- snapshots ---- */

static bool is_snapshot(struct hk_str s)
{
    uint64_t xmin, xmax, xid, last = 0;
    if (hk_parse_u64(hk_str_cut(&s, ':'), &xmin, NULL) != HK_OK ||
        hk_parse_u64(hk_str_cut(&s, ':'), &xmax, NULL) != HK_OK || s.ptr == NULL)
        return false;
    for (bool more = s.len > 0; more; last = xid) {
        const char *comma = memchr(s.ptr, ',', s.len);
        more = comma != NULL;
        if (hk_parse_u64(hk_str_cut(&s, ','), &xid, NULL) != HK_OK || xid <= last || xid >= xmax)
            return false;
    }
    return true;
}

static void check_floors(const struct hk_pg_window *w)
{
    MUST(w->known && w->b.text != NULL && w->b.n_running <= HK_PG_RUNNING_MAX);
    for (size_t i = 0; i < w->b.n_running; i++) {
        MUST(w->b.running[i].xid < w->b.xmax && (i == 0 || w->b.running[i].xid > w->b.running[i - 1].xid));
        MUST(w->b.running[i].floor >= HK_FIRST_ID);
    }
    MUST(w->a == NULL || (w->floor >= HK_FIRST_ID && w->floor < w->high && w->high <= w->passed));
}

static void see(struct hk_pg_window *w, struct hk_str line, int64_t position)
{
    struct hk_pg_window before = *w;
    bool changed = false;
    enum hk_code rc = hk_pg_window_see(w, line, position, &changed);
    MUST(rc == (is_snapshot(line) ? HK_OK : HK_INVALID));
    if (rc != HK_OK) {
        MUST(memcmp(&before, w, sizeof before) == 0 && !changed);
        return;
    }
    MUST(hk_str_eq(hk_str_of(w->b.text), line) && w->position == position);
    MUST(w->a == NULL || changed);
    check_floors(w);
    /* the same again is no news */
    hk_pg_window_shown(w);
    MUST(hk_pg_window_see(w, line, position, &changed) == HK_OK);
    MUST(w->b.shared || (!changed && w->a == NULL));
    hk_pg_window_shown(w);
}

/* Between snapshots it is passed, written and begun anew, as the length of the line says. */
static void check_window(struct hk_str text)
{
    struct hk_pg_window w = {.known = false};
    for (int64_t position = 1; text.len > 0; position += 3) {
        struct hk_str line = hk_str_cut(&text, '\n');
        see(&w, line, position);
        if (line.len % 3 == 0)
            hk_pg_window_passed(&w, position - 1);
        if (line.len % 5 == 0 && w.known)
            hk_pg_window_wrote(&w);
        if (line.len % 31 == 30)
            hk_pg_window_restart(&w);
        (void)hk_pg_window_wants_write(&w);
    }
    hk_pg_window_fini(&w);
}

/* ---- errors ---- */

static void check_line(const char *message)
{
    struct hk_str s = hk_str_of(message);
    MUST(s.len < HK_ERR_MESSAGE_MAX);
    while (s.len > 0) {
        uint32_t c;
        fuzz_take(&s, hk_utf8_next(s, &c));
        MUST(c != HK_UTF8_BAD && c >= 0x20 && !(c >= 0x7f && c <= 0x9f) && !(c >= 0x200b && c <= 0x200f) &&
             !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff);
    }
}

static void check_error(struct hk_str text)
{
    struct hk_pg pg = {.rc = HK_OK};
    const char *advice = NULL;
    char words[4097];
    text = hk_str_cut(&text, '\0');
    MUST(hk_str_copy(words, sizeof words, text));
    hk_pg_fail(&pg, HK_IO, words);
    MUST(pg.rc == HK_IO && pg.err.code == HK_IO);
    check_line(pg.err.message);
    words[text.len < 5 ? text.len : 5] = '\0';
    enum hk_code rc = hk_pg_meaning(words, &advice);
    MUST(rc != HK_OK && advice != NULL && advice[0] != '\0');
    (void)hk_pg_mends(hk_pg_unconnected(words));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str text = {(const char *)data, size};
    if (size > 4096)
        return 0;
    check_window(text);
    check_error(text);
    return 0;
}
