/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots are "xmin:xmax:xip,xip,…"; the numbers that run are listed in rising order. */
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/exchange.h"
#include "store/pg/window.h"

#define WRITE_AFTER_IDS 5000

/* ---- snapshots ---- */

static void free_snapshot(struct hk_pg_snapshot *s)
{
    hk_mem_free(s->text);
    hk_mem_free(s->running);
    *s = (struct hk_pg_snapshot){0};
}

static size_t count_running(struct hk_str list)
{
    size_t n = list.len > 0;
    for (size_t i = 0; i < list.len; i++)
        n += list.ptr[i] == ',';
    return n;
}

/* All floors are still to be set. */
static enum hk_code read_running(struct hk_pg_snapshot *s, struct hk_str list)
{
    size_t n = count_running(list);
    s->shared = n > HK_PG_RUNNING_MAX;
    s->n_running = s->shared ? HK_PG_RUNNING_MAX : n;
    s->running = hk_mem_zalloc(s->n_running, sizeof *s->running);
    if (!s->running)
        return HK_NOMEM;
    uint64_t last = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t xid = 0;
        if (hk_parse_u64(hk_str_cut(&list, ','), &xid, NULL) != HK_OK || xid <= last || xid >= s->xmax)
            return HK_INVALID;
        last = xid;
        if (i < s->n_running)
            s->running[i].xid = xid;
    }
    return HK_OK;
}

static enum hk_code read_snapshot(struct hk_str text, struct hk_pg_snapshot *out)
{
    uint64_t xmin = 0;
    struct hk_str rest = text;
    *out = (struct hk_pg_snapshot){.shared_floor = HK_FIRST_ID};
    if (hk_parse_u64(hk_str_cut(&rest, ':'), &xmin, NULL) != HK_OK ||
        hk_parse_u64(hk_str_cut(&rest, ':'), &out->xmax, NULL) != HK_OK || !rest.ptr)
        return HK_INVALID;
    enum hk_code rc = read_running(out, rest);
    if (rc == HK_OK) {
        out->text = hk_mem_strndup(text.ptr, text.len);
        rc = out->text ? HK_OK : HK_NOMEM;
    }
    if (rc != HK_OK)
        free_snapshot(out);
    return rc;
}

/* ---- from one snapshot to the next ---- */

static int64_t lower(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct step {
    const struct hk_pg_snapshot *from;
    struct hk_pg_snapshot *to;
    uint64_t own;  /* numbers from from->xmax on that were ours */
    int64_t floor; /* of what ended in between; INT64_MAX: nothing did */
};

static void ended(struct step *t, int64_t floor)
{
    t->floor = lower(t->floor, floor);
}

/* Walks both lists: who runs still, who has ended, who is new. Returns how many of those that run still are new. */
static uint64_t match(struct step *t)
{
    const struct hk_pg_snapshot *from = t->from;
    struct hk_pg_snapshot *to = t->to;
    size_t i = 0;
    uint64_t fresh = 0;
    for (size_t k = 0; k < to->n_running; k++) {
        struct hk_pg_running *r = &to->running[k];
        for (; i < from->n_running && from->running[i].xid < r->xid; i++)
            ended(t, from->running[i].floor);
        if (i < from->n_running && from->running[i].xid == r->xid)
            r->floor = from->running[i++].floor;
        else
            r->floor = r->xid < from->xmax ? from->shared_floor : from->base;
        fresh += r->xid >= from->xmax;
    }
    for (; i < from->n_running; i++)
        ended(t, from->running[i].floor);
    return fresh;
}

/* Those that have no entry: nobody knows which of them end when, so all of them may have. */
static void match_shared(struct step *t)
{
    const struct hk_pg_snapshot *from = t->from;
    struct hk_pg_snapshot *to = t->to;
    if (from->shared)
        ended(t, from->shared_floor);
    if (!to->shared)
        return;
    to->shared_floor = from->shared ? lower(from->shared_floor, from->base) : from->base;
    for (size_t i = 0; i < from->n_running; i++)
        to->shared_floor = lower(to->shared_floor, from->running[i].floor);
    ended(t, to->shared_floor);
}

static void compare(struct step *t)
{
    uint64_t fresh = match(t);
    match_shared(t);
    if (t->to->xmax <
        t->from->xmax) /* another server's: whoever resets on a new connection never sees this */
        ended(t, HK_FIRST_ID);
    else if (t->to->xmax - t->from->xmax != t->own + fresh)
        ended(t, t->from->base);
}

static void begin(struct hk_pg_snapshot *s)
{
    for (size_t i = 0; i < s->n_running; i++)
        s->running[i].floor = HK_FIRST_ID;
}

/* ---- the window ---- */

void hk_pg_window_fini(struct hk_pg_window *w)
{
    free_snapshot(&w->b);
    hk_mem_free(w->a);
    *w = (struct hk_pg_window){.passed = HK_FIRST_ID, .position = HK_FIRST_ID, .base = HK_FIRST_ID};
}

static void adopt(struct hk_pg_window *w, struct hk_pg_snapshot *next, int64_t position)
{
    free_snapshot(&w->b);
    w->b = *next;
    w->own = 0;
    w->position = position;
    w->known = true;
}

enum hk_code hk_pg_window_see(struct hk_pg_window *w, struct hk_str snapshot, int64_t position,
                              bool *out_changed)
{
    struct hk_pg_snapshot next;
    enum hk_code rc = read_snapshot(snapshot, &next);
    if (rc != HK_OK)
        return rc;
    if (!w->known) {
        hk_pg_window_fini(w);
        next.base = HK_FIRST_ID;
        begin(&next);
        adopt(w, &next, position);
        *out_changed = true;
        return HK_OK;
    }
    struct step t = {.from = &w->b, .to = &next, .own = w->own, .floor = INT64_MAX};
    next.base = w->base;
    compare(&t);
    if (t.floor < w->passed) {
        w->a = w->b.text;
        w->b.text = NULL;
        w->floor = t.floor;
        w->high = w->passed;
    }
    adopt(w, &next, position);
    *out_changed = t.floor != INT64_MAX;
    return HK_OK;
}

void hk_pg_window_wrote(struct hk_pg_window *w)
{
    w->base = w->position;
    w->own++;
}

bool hk_pg_window_wants_write(const struct hk_pg_window *w)
{
    return w->known && w->position > 0 && (w->base <= 0 || w->position - w->base > WRITE_AFTER_IDS);
}

void hk_pg_window_passed(struct hk_pg_window *w, int64_t id)
{
    if (id > w->passed)
        w->passed = id;
}

void hk_pg_window_shown(struct hk_pg_window *w)
{
    hk_mem_free(w->a);
    w->a = NULL;
}

void hk_pg_window_restart(struct hk_pg_window *w)
{
    hk_pg_window_shown(w);
    w->passed = HK_FIRST_ID;
}
