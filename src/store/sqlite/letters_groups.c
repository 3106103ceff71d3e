/* SPDX-License-Identifier: Apache-2.0 */
/* Letters that failed alike.
 *
 * A fingerprint is made of class, reason, destination and error, so that all letters of a group have the same of the
 * former: what a query asks of those is asked of one letter of the group, and the rest comes from one walk through the
 * index dead_letters_group, in its order, from group to group: those that are not meant are jumped over. Only a query that
 * asks for more looks at each letter. A page of letters is looked at letter by letter, too, newest first: the index has the groups in no
 * order of time. Either way no more than GROUPS_MAX groups are in memory: the largest. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/str.h"
#include "store/sqlite/letters.h"

#define HOUR_MS INT64_C(3600000)
#define SQL_MAX ((size_t)4 * 1024)

/* Of payloads, where a page's letters are matched: what they have at the most, one with another; and what is read of however few. */
#define LETTER_BYTES (UINT64_C(6) * 1024)
#define PAGE_BYTES   (UINT64_C(64) * 1024 * 1024)

enum {
    GROUPS_MAX = 4096,
    SLOTS = 4 * GROUPS_MAX,
    PRINT_MAX = 48, /* ours have 16; whatever else stands there is cut */
    TIME_MAX = 32
};

struct group {
    char print[PRINT_MAX];
    char first[TIME_MAX], last[TIME_MAX]; /* as text, which sorts as time does */
    uint64_t n, maybe;
    int64_t example_id;
};

struct gatherer {
    struct hk_store *store;
    const struct hk_letter_query *query;
    struct hk_letter_groups *out;
    struct group *items;
    size_t n;
    uint16_t *slots; /* index + 1; 0 = free */
    sqlite3_stmt *example;
};

_Static_assert(GROUPS_MAX < UINT16_MAX, "an index fits a slot");

static void copy_text(char *out, size_t room, sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    (void)snprintf(out, room, "%s", text ? text : "");
}

/* ---- in memory ---- */

static size_t slot_of(const struct gatherer *g, const char *print)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (const char *c = print; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    size_t slot = (size_t)(hash % SLOTS);
    while (g->slots[slot] && strcmp(g->items[g->slots[slot] - 1].print, print) != 0)
        slot = (slot + 1) % SLOTS;
    return slot;
}

/* The larger first; of two that are alike the newer. */
static int by_size(const void *a, const void *b)
{
    const struct group *x = a, *y = b;
    if (x->n != y->n)
        return x->n > y->n ? -1 : 1;
    return x->example_id > y->example_id ? -1 : x->example_id < y->example_id;
}

/* Room for more: the smaller half goes. */
static void prune(struct gatherer *g)
{
    qsort(g->items, g->n, sizeof *g->items, by_size);
    g->n = GROUPS_MAX / 2;
    g->out->more = true;
    memset(g->slots, 0, SLOTS * sizeof *g->slots);
    for (size_t i = 0; i < g->n; i++)
        g->slots[slot_of(g, g->items[i].print)] = (uint16_t)(i + 1);
}

static void merge(struct gatherer *g, const struct group *found)
{
    g->out->letters += found->n;
    g->out->maybe += found->maybe;
    size_t slot = slot_of(g, found->print);
    if (!g->slots[slot]) {
        if (g->n == GROUPS_MAX) {
            prune(g);
            slot = slot_of(g, found->print);
        }
        g->items[g->n] = *found;
        g->slots[slot] = (uint16_t)++g->n;
        return;
    }
    struct group *known = &g->items[g->slots[slot] - 1];
    known->n += found->n;
    known->maybe += found->maybe;
    if (found->example_id > known->example_id)
        known->example_id = found->example_id;
    if (strcmp(found->first, known->first) < 0)
        memcpy(known->first, found->first, sizeof known->first);
    if (strcmp(found->last, known->last) > 0)
        memcpy(known->last, found->last, sizeof known->last);
}

/* ---- from the index ---- */

static bool asks_each_letter(const struct hk_letter_query *q)
{
    return q->message_id || q->correlation_id || q->key || q->event_type || q->redrive || q->match;
}

/* Of what was one group in an older version of the rule the index knows nothing. */
static bool asks_old_group(struct hk_store *store, const struct hk_letter_query *query)
{
    if (!query->fingerprint)
        return false;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_HAS_OLD_GROUP]);
    hk_sq_bind_cstr(store, q, 1, query->fingerprint);
    bool old = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return old;
}

static bool equals(sqlite3_stmt *q, int column, const char *wanted)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    return !wanted || (text && strcmp(text, wanted) == 0);
}

/* Does the query ask what is the same in all of a group? */
static bool asks_groups(const struct hk_letter_query *query)
{
    return query->destination || query->reason || query->failure_class || query->blame;
}

static bool is_meant(struct gatherer *g, int64_t any_id)
{
    const struct hk_letter_query *query = g->query;
    if (!asks_groups(query))
        return true;
    hk_sq_bind_i64(g->store, g->example, 1, any_id);
    bool meant = hk_sq_row(g->store, g->example) && equals(g->example, 0, query->destination) &&
                 equals(g->example, 1, query->reason) && equals(g->example, 2, query->failure_class) &&
                 equals(g->example, 3, query->blame);
    hk_sq_done(g->example);
    return meant;
}

static void write_sql(struct hk_buf *sql, const struct hk_letter_query *query, const char *select,
                      bool one_by_one)
{
    (void)hk_buf_addf(sql, "%s ", select);
    if (!hk_sl_statuses(sql, query->statuses))
        (void)hk_buf_adds(sql, "1");
    if (query->fingerprint || one_by_one)
        (void)hk_buf_addf(sql, " AND fingerprint %s ?%d", one_by_one ? "IS" : "=", HK_SL_FINGERPRINT);
    if (query->since_ms)
        (void)hk_buf_addf(sql, " AND last_failed_at >= ?%d", HK_SL_SINCE);
    if (query->before_ms)
        (void)hk_buf_addf(sql, " AND last_failed_at < ?%d", HK_SL_BEFORE);
    (void)hk_buf_adds(sql, " GROUP BY fingerprint");
}

static void bind(struct hk_store *store, sqlite3_stmt *q, const struct hk_letter_query *query)
{
    const struct hk_letter_query indexed = {
        .fingerprint = query->fingerprint, .since_ms = query->since_ms, .before_ms = query->before_ms};
    hk_sq_bind_i64(store, q, 1, query->first_id ? query->first_id : INT64_MIN);
    hk_sq_bind_i64(store, q, 2, query->last_id ? query->last_id : INT64_MAX);
    hk_sl_bind(store, q, &indexed);
}

static void merge_rows(struct gatherer *g, sqlite3_stmt *q)
{
    while (hk_sq_row(g->store, q)) {
        struct group found = {.n = (uint64_t)sqlite3_column_int64(q, 1),
                              .example_id = sqlite3_column_int64(q, 4)};
        copy_text(found.print, sizeof found.print, q, 0);
        copy_text(found.first, sizeof found.first, q, 2);
        copy_text(found.last, sizeof found.last, q, 3);
        if (is_meant(g, found.example_id))
            merge(g, &found);
    }
}

static sqlite3_stmt *prepare_groups(struct gatherer *g, const char *select, bool one_by_one)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SQL_MAX);
    write_sql(&sql, g->query, select, one_by_one);
    if (hk_buf_status(&sql) != HK_OK)
        hk_sq_fail(g->store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sa_prepare(g->store, hk_buf_cstr(&sql));
    bind(g->store, q, g->query);
    hk_buf_fini(&sql);
    return q;
}

static void bind_value(struct hk_store *store, sqlite3_stmt *q, int i, const sqlite3_value *value)
{
    int rc = value ? SQLITE_OK : SQLITE_NOMEM;
    if (q && value)
        rc = sqlite3_bind_value(q, i, value);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}

/* `at` gives a group's fingerprint and one of its letters. */
static bool gather_one(struct gatherer *g, sqlite3_stmt *at, sqlite3_stmt *count, sqlite3_stmt *next)
{
    if (!hk_sq_row(g->store, at))
        return false;
    sqlite3_value *print = sqlite3_value_dup(sqlite3_column_value(at, 0));
    int64_t any_id = sqlite3_column_int64(at, 1);
    hk_sq_done(at);
    bind_value(g->store, count, HK_SL_FINGERPRINT, print);
    bind_value(g->store, next, 1, print);
    sqlite3_value_free(print);
    if (is_meant(g, any_id))
        merge_rows(g, count);
    return hk_sq_ok(g->store);
}

/* From group to group: what is not meant costs one look each, not one a letter. */
static void gather_meant(struct gatherer *g)
{
    sqlite3_stmt *count = prepare_groups(g, hk_sl_texts[HK_SL_ALL_LETTERS], true);
    sqlite3_stmt *none = hk_sa_prepare(g->store, hk_sl_texts[HK_SL_GROUP_NONE]);
    sqlite3_stmt *first = hk_sa_prepare(g->store, hk_sl_texts[HK_SL_GROUP_FIRST]);
    sqlite3_stmt *next = hk_sa_prepare(g->store, hk_sl_texts[HK_SL_GROUP_NEXT]);
    (void)gather_one(g, none, count, NULL);
    bool more = gather_one(g, first, count, next);
    while (more)
        more = gather_one(g, next, count, next);
    sqlite3_finalize(count);
    sqlite3_finalize(none);
    sqlite3_finalize(first);
    sqlite3_finalize(next);
}

static void gather_from_index(struct gatherer *g)
{
    if (asks_groups(g->query) && !g->query->fingerprint) { /* else there is but one */
        gather_meant(g);
        return;
    }
    sqlite3_stmt *q = prepare_groups(g, hk_sl_texts[HK_SL_ALL_LETTERS], false);
    merge_rows(g, q);
    sqlite3_finalize(q);
}

/* Few letters may have arrived, and they have an index of their own. */
static void add_maybe(struct gatherer *g)
{
    sqlite3_stmt *q = prepare_groups(g, hk_sl_texts[HK_SL_MAYBE_ARRIVED], false);
    while (hk_sq_row(g->store, q)) {
        char print[PRINT_MAX];
        uint64_t n = (uint64_t)sqlite3_column_int64(q, 1);
        if (!is_meant(g, sqlite3_column_int64(q, 4)))
            continue;
        copy_text(print, sizeof print, q, 0);
        size_t place = g->slots[slot_of(g, print)];
        g->out->maybe += n;
        if (place)
            g->items[place - 1].maybe += n;
    }
    sqlite3_finalize(q);
}

/* ---- letter by letter ---- */

/* A million of them with small payloads take some seconds; what lies behind is left out and said so. */
static const struct hk_sl_bound bound = {2000000, UINT64_C(4) * 1024 * 1024 * 1024};

static const char group_columns[] = ", fingerprint, first_failed_at, last_failed_at, possibly_delivered <> 0";

enum {
    N_GROUP_COLUMNS = 4
};

static void walk_letters(struct gatherer *g, struct hk_sl_walk *walk)
{
    int at = sqlite3_column_count(walk->q) - N_GROUP_COLUMNS;
    while (hk_sl_walk_next(walk)) {
        struct group found = {.n = 1, .example_id = walk->last_id};
        copy_text(found.print, sizeof found.print, walk->q, at);
        copy_text(found.first, sizeof found.first, walk->q, at + 1);
        copy_text(found.last, sizeof found.last, walk->q, at + 2);
        found.maybe = sqlite3_column_int(walk->q, at + 3) != 0;
        merge(g, &found);
    }
    /* One more look: where the bound was the end there is no more. */
    g->out->partial = !walk->ended && (walk->left.rows > 0 || hk_sq_row(g->store, walk->q));
}

static void gather_letters(struct gatherer *g)
{
    struct hk_sl_walk walk;
    hk_sl_walk_begin(g->store, g->query, (struct hk_sl_range){.oldest_first = true, .also = group_columns},
                     bound, &walk);
    walk_letters(g, &walk);
    g->out->more |= g->out->partial;
    hk_sl_walk_end(&walk);
}

/* ---- a page of letters ---- */

/* What was found among the ids that were looked at is taken to hold for those below. */
static uint64_t estimate(struct gatherer *g, const struct hk_sl_walk *walk)
{
    sqlite3_stmt *q = hk_sa_prepare(g->store, hk_sl_texts[HK_SL_FIRST_ID]);
    int64_t lowest = hk_sq_row(g->store, q) ? sqlite3_column_int64(q, 0) : walk->last_id;
    sqlite3_finalize(q);
    if (g->query->first_id > lowest)
        lowest = g->query->first_id;
    double seen = (double)walk->first_id - (double)walk->last_id + 1;
    double all = (double)walk->first_id - (double)lowest + 1;
    return all > seen ? (uint64_t)((double)g->out->letters * (all / seen)) : g->out->letters;
}

static void gather_page(struct gatherer *g, const struct hk_letter_groups_page *page)
{
    struct hk_sl_walk walk;
    uint64_t bytes = page->looks > PAGE_BYTES / LETTER_BYTES ? page->looks * LETTER_BYTES : PAGE_BYTES;
    hk_sl_walk_begin(g->store, g->query,
                     (struct hk_sl_range){.after_id = page->after_id, .also = group_columns},
                     (struct hk_sl_bound){page->looks, bytes}, &walk);
    walk_letters(g, &walk);
    if (g->out->partial) {
        g->out->looked = walk.looked;
        g->out->next = walk.last_id;
        g->out->about = estimate(g, &walk);
    }
    hk_sl_walk_end(&walk);
}

/* ---- the largest ---- */

static int64_t time_of(const char *text)
{
    int64_t ms = 0;
    return hk_parse_rfc3339(hk_str_of(text), &ms, NULL) == HK_OK ? ms : 0;
}

static void describe(struct gatherer *g, const struct group *group, struct hk_letter_group *out)
{
    struct hk_store *store = g->store;
    sqlite3_stmt *q = g->example;
    *out = (struct hk_letter_group){
        .n = group->n,
        .maybe = group->maybe,
        .first_ms = time_of(group->first),
        .last_ms = time_of(group->last),
        .example_id = group->example_id,
    };
    hk_sq_bind_i64(store, q, 1, group->example_id);
    if (hk_sq_row(store, q)) {
        out->destination = hk_sa_text(store, q, 0, HK_SA_TEXT_MAX);
        out->reason = hk_sa_text(store, q, 1, HK_SA_TEXT_MAX);
        out->failure_class = hk_sa_text(store, q, 2, HK_SA_TEXT_MAX);
        out->blame = hk_sa_text(store, q, 3, HK_SA_TEXT_MAX);
        out->fingerprint = hk_sa_text(store, q, 4, HK_SA_TEXT_MAX);
        out->example_error = hk_sa_text(store, q, 5, HK_SA_TEXT_MAX);
        out->example_event_type = hk_sa_text(store, q, 6, HK_SA_TEXT_MAX);
        out->example_message_id = hk_sa_text(store, q, 7, HK_SA_TEXT_MAX);
    }
    hk_sq_done(q);
}

/* `page`: NULL = of all letters */
static void gather(struct gatherer *g, uint32_t limit, const struct hk_letter_groups_page *page)
{
    g->items = hk_sq_alloc(g->store, GROUPS_MAX, sizeof *g->items);
    g->slots = hk_sq_alloc(g->store, SLOTS, sizeof *g->slots);
    g->example = hk_sa_prepare(g->store, hk_sl_texts[HK_SL_GROUP_EXAMPLE]);
    if (g->items && g->slots && page) {
        gather_page(g, page);
    } else if (g->items && g->slots && (asks_each_letter(g->query) || asks_old_group(g->store, g->query))) {
        gather_letters(g);
    } else if (g->items && g->slots) {
        gather_from_index(g);
        add_maybe(g);
    }
    size_t n = g->n < limit ? g->n : limit;
    struct hk_letter_group *items = n ? hk_sq_alloc(g->store, n, sizeof *items) : NULL;
    if (items) {
        qsort(g->items, g->n, sizeof *g->items, by_size);
        for (size_t i = 0; i < n; i++)
            describe(g, &g->items[i], &items[i]);
        g->out->items = items;
        g->out->n = n;
    }
    g->out->more |= n < g->n;
    g->out->now_ms = hk_sq_now(g->store);
    sqlite3_finalize(g->example);
}

static enum hk_code groups(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                           const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                           struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct gatherer g = {
        .store = store, .query = query, .out = hk_sq_alloc(store, 1, sizeof(struct hk_letter_groups))};
    hk_sq_begin_read(store);
    if (g.out)
        gather(&g, limit, page);
    enum hk_code rc = hk_sq_end(store, "group dead letters", err);
    if (rc == HK_OK)
        *out = g.out;
    return rc;
}

enum hk_code hk_sl_groups(struct hk_admin *admin, const struct hk_letter_query *query, uint32_t limit,
                          const struct hk_letter_groups **out, struct hk_err *err)
{
    return groups(admin, query, limit, NULL, out, err);
}

enum hk_code hk_sl_groups_page(struct hk_admin *admin, const struct hk_letter_query *query,
                               const struct hk_letter_groups_page *page, const struct hk_letter_groups **out,
                               struct hk_err *err)
{
    return groups(admin, query, page->limit, page, out, err);
}

/* ---- by the hour ---- */

static void read_hours(struct hk_store *store, sqlite3_stmt *q, int64_t first_hour,
                       struct hk_letter_span *span, uint64_t out[HK_LETTER_HOURS])
{
    while (hk_sq_row(store, q)) {
        span->looks -= (uint64_t)sqlite3_column_int64(q, 1);
        if (sqlite3_column_type(q, 0) == SQLITE_NULL)
            continue;
        char hour[TIME_MAX], text[TIME_MAX + 8];
        copy_text(hour, sizeof hour, q, 0);
        (void)snprintf(text, sizeof text, "%s:00:00Z", hour);
        int64_t at = time_of(text) / HOUR_MS - first_hour;
        if (at >= 0 && at < HK_LETTER_HOURS)
            out[at] += (uint64_t)sqlite3_column_int64(q, 1);
    }
}

enum hk_code hk_sl_hours(struct hk_admin *admin, const char *fingerprint, struct hk_letter_span *span,
                         uint64_t out[HK_LETTER_HOURS], struct hk_err *err)
{
    struct hk_store *store = admin->store;
    char since[HK_TIME_TEXT_MAX];
    uint64_t hours[HK_LETTER_HOURS] = {0};
    struct hk_letter_span left = *span;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    int64_t first_hour = hk_sq_now(store) / HOUR_MS - (HK_LETTER_HOURS - 1);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_GROUP_HOURS]);
    hk_sq_bind_cstr(store, q, 1, fingerprint);
    hk_sq_bind_text(store, q, 2, hk_sl_time_text(first_hour * HOUR_MS, since));
    hk_sq_bind_i64(store, q, 3, span->from_id ? span->from_id : INT64_MIN);
    hk_sq_bind_i64(store, q, 4, span->looks < INT64_MAX ? (int64_t)span->looks : INT64_MAX);
    read_hours(store, q, first_hour, &left, hours);
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "count a group's dead letters", err);
    if (rc == HK_OK) {
        memcpy(out, hours, sizeof hours);
        *span = left;
    }
    return rc;
}
