/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of dead letters. The index dead_letters_status has nearly all of them in one walk; days and event types have
 * indexes of their own. No letter but the oldest ones is read. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/sqlite/letters.h"

#define DAY_MS INT64_C(86400000)

enum {
    NAMES_MAX = 1024, /* different ones that are told apart; beyond, the rest is not listed */
    SLOTS = 4 * NAMES_MAX,
    NAME_MAX = 256
};

struct name {
    char text[NAME_MAX];
    size_t len;
    uint64_t n;
};

struct tally {
    struct name *names;
    size_t n;
    uint16_t *slots; /* index + 1; 0 = free */
    size_t last;     /* where the last one was found: the next is mostly the same */
};

/* ---- tallies ---- */

static void tally_init(struct hk_store *store, struct tally *t)
{
    *t = (struct tally){.names = hk_sq_alloc(store, NAMES_MAX, sizeof *t->names),
                        .slots = hk_sq_alloc(store, SLOTS, sizeof *t->slots)};
}

static bool is_name(const struct name *name, struct hk_str s)
{
    return name->len == s.len && memcmp(name->text, s.ptr, s.len) == 0;
}

static void tally_add(struct tally *t, struct hk_str s)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    s.len = s.len < NAME_MAX ? s.len : NAME_MAX;
    if (t->n && is_name(&t->names[t->last], s)) {
        t->names[t->last].n++;
        return;
    }
    for (size_t i = 0; i < s.len; i++)
        hash = (hash ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
    size_t slot = (size_t)(hash % SLOTS);
    while (t->slots[slot] && !is_name(&t->names[t->slots[slot] - 1], s))
        slot = (slot + 1) % SLOTS;
    if (!t->slots[slot]) {
        if (t->n == NAMES_MAX)
            return;
        t->slots[slot] = (uint16_t)++t->n;
        memcpy(t->names[t->n - 1].text, s.ptr, s.len);
        t->names[t->n - 1].len = s.len;
    }
    t->last = t->slots[slot] - (size_t)1;
    t->names[t->last].n++;
}

static int by_count(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);
    return order ? order : (x->len > y->len) - (x->len < y->len);
}

static struct hk_tally *tally_top(struct hk_store *store, struct tally *t, size_t *out_n)
{
    size_t n = t->n < HK_STATS_TOP ? t->n : HK_STATS_TOP;
    struct hk_tally *top = n ? hk_sq_alloc(store, n, sizeof *top) : NULL;
    if (!top)
        return NULL;
    qsort(t->names, t->n, sizeof *t->names, by_count);
    for (size_t i = 0; i < n; i++)
        top[i] = (struct hk_tally){{t->names[i].text, t->names[i].len}, t->names[i].n};
    *out_n = n;
    return top;
}

/* ---- the walk ---- */

static struct hk_str borrow(sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    return (struct hk_str){text ? text : "", text ? (size_t)sqlite3_column_bytes(q, column) : 0};
}

static void count_requeued(struct hk_letter_stats *out, enum hk_letter_status status)
{
    out->requeued++;
    switch (status) {
    case HK_LETTER_FAILED:
    case HK_LETTER_DISCARDED:
        out->requeued_failed++;
        break;
    case HK_LETTER_RETRYING:
        out->requeued_waiting++;
        break;
    case HK_LETTER_RESOLVED:
        out->requeued_resolved++;
        break;
    case HK_NLETTER_STATUSES:
        break;
    }
}

static void walk_all(struct hk_store *store, struct tally *reasons, struct tally *destinations,
                     struct hk_letter_stats *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_TALLIES]);
    while (hk_sq_row(store, q)) {
        enum hk_letter_status status = hk_sl_status(q, 0);
        enum hk_blame blame = HK_BLAME_DESTINATION;
        out->by_status[status]++;
        if (status == HK_LETTER_FAILED && hk_blame_by_name(borrow(q, 1), &blame))
            out->by_blame[blame]++;
        tally_add(destinations, borrow(q, 2));
        tally_add(reasons, borrow(q, 3));
        if (sqlite3_column_int(q, 4))
            count_requeued(out, status);
    }
    sqlite3_finalize(q);
}

/* ---- the others ---- */

static void count_days(struct hk_store *store, struct hk_letter_stats *out)
{
    int64_t today = out->now_ms - ((out->now_ms % DAY_MS) + DAY_MS) % DAY_MS;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_COUNT_DAY]);
    for (int i = 0; i < HK_STATS_DAYS; i++) {
        char from[32], to[32];
        out->days[i].day_ms = today - (HK_STATS_DAYS - 1 - i) * DAY_MS;
        hk_sq_bind_text(store, q, 1, hk_sl_time_text(out->days[i].day_ms, from));
        hk_sq_bind_text(store, q, 2, hk_sl_time_text(out->days[i].day_ms + DAY_MS, to));
        if (hk_sq_row(store, q))
            out->days[i].n = (uint64_t)sqlite3_column_int64(q, 0);
        hk_sq_done(q);
    }
    sqlite3_finalize(q);
}

static void count_event_types(struct hk_store *store, struct hk_letter_stats *out)
{
    struct hk_tally *top = hk_sq_alloc(store, HK_STATS_TOP, sizeof *top);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_EVENT_TYPES]);
    hk_sq_bind_i64(store, q, 1, HK_STATS_TOP);
    while (top && hk_sq_row(store, q)) {
        top[out->n_event_types].name = hk_sa_text(store, q, 0, NAME_MAX);
        top[out->n_event_types++].n = (uint64_t)sqlite3_column_int64(q, 1);
    }
    out->event_types = top;
    sqlite3_finalize(q);
}

static void read_oldest(struct hk_store *store, struct hk_letter_stats *out)
{
    struct hk_sl_reader reader;
    out->oldest = hk_sq_alloc(store, HK_STATS_TOP, sizeof *out->oldest);
    hk_sl_reader_open(store, false, &reader);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_LONGEST]);
    hk_sq_bind_i64(store, q, 1, HK_STATS_TOP);
    while (out->oldest && hk_sq_row(store, q))
        if (hk_sl_read(&reader, sqlite3_column_int64(q, 0), 0, hk_sq_pool(store),
                       &out->oldest[out->n_oldest]))
            out->n_oldest++;
    sqlite3_finalize(q);
    hk_sl_reader_close(&reader);
}

static void take(struct hk_store *store, struct hk_letter_stats *out)
{
    struct tally reasons, destinations;
    tally_init(store, &reasons);
    tally_init(store, &destinations);
    out->now_ms = hk_sq_now(store);
    if (!hk_sq_ok(store))
        return;
    walk_all(store, &reasons, &destinations, out);
    count_days(store, out);
    count_event_types(store, out);
    read_oldest(store, out);
    out->reasons = tally_top(store, &reasons, &out->n_reasons);
    out->destinations = tally_top(store, &destinations, &out->n_destinations);
}

enum hk_code hk_sl_stats(struct hk_admin *admin, const struct hk_letter_stats **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_letter_stats *stats = hk_sq_alloc(store, 1, sizeof *stats);
    hk_sq_begin_read(store);
    if (stats)
        take(store, stats);
    enum hk_code rc = hk_sq_end(store, "count dead letters", err);
    if (rc == HK_OK)
        *out = stats;
    return rc;
}
