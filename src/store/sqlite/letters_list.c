/* SPDX-License-Identifier: Apache-2.0 */
/* Pages of letters, and how many there are. */
#include "store/sqlite/letters.h"

/* What a call looks at before it says that there is more: about a tenth of a second. */
static const struct hk_sl_bound page_bound = {50000, UINT64_C(64) * 1024 * 1024};

struct lister {
    struct hk_store *store;
    const struct hk_letter_page *page;
    struct hk_letters *out;
    struct hk_sl_reader reader;
    size_t room;
    uint64_t bytes; /* of payloads */
};

static void add(struct lister *l, int64_t id)
{
    struct hk_letter *items = hk_sa_grow(l->store, l->out->items, l->out->n, &l->room, sizeof *items);
    if (!items)
        return;
    l->out->items = items;
    if (hk_sl_read(&l->reader, id, l->page->payload_max, hk_sq_pool(l->store), &items[l->out->n]))
        l->bytes += items[l->out->n++].payload.len;
}

static struct hk_sl_bound bound_of(const struct hk_letter_page *page)
{
    struct hk_sl_bound bound = page_bound;
    if (page->looks > 0 && page->looks < bound.rows)
        bound.rows = page->looks;
    return bound;
}

static bool is_full(const struct lister *l)
{
    return l->out->n == l->page->limit || (l->page->bytes_max && l->bytes >= l->page->bytes_max);
}

static void list(struct lister *l, const struct hk_letter_query *query)
{
    struct hk_sl_walk walk;
    const struct hk_sl_range range = {.after_id = l->page->after_id, .oldest_first = l->page->oldest_first};
    hk_sl_reader_open(l->store, l->page->details, &l->reader);
    hk_sl_walk_begin(l->store, query, range, bound_of(l->page), &walk);
    while (!is_full(l) && hk_sl_walk_next(&walk))
        add(l, walk.last_id);
    l->out->last_id = walk.looked ? walk.last_id : l->page->after_id;
    l->out->looked = walk.looked;
    if (l->page->limit)
        l->out->more = hk_sl_walk_next(&walk) || !walk.ended; /* one more look: no empty page at the end */
    hk_sl_walk_end(&walk);
    hk_sl_reader_close(&l->reader);
}

enum hk_code hk_sl_list(struct hk_admin *admin, const struct hk_letter_query *query,
                        const struct hk_letter_page *page, const struct hk_letters **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct lister l = {.store = store, .page = page, .out = hk_sq_alloc(store, 1, sizeof(struct hk_letters))};
    hk_sq_begin_read(store);
    if (l.out) {
        l.out->now_ms = hk_sq_now(store);
        list(&l, query);
    }
    enum hk_code rc = hk_sq_end(store, "list dead letters", err);
    if (rc == HK_OK)
        *out = l.out;
    return rc;
}

/* ---- count ---- */

static int64_t ask(struct hk_store *store, const char *sql)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    int64_t value = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return value;
}

/* What was found among the ids up to there is taken to hold for the rest. */
static uint64_t scaled(const struct hk_sl_walk *walk, uint64_t n)
{
    double last = (double)ask(walk->store, hk_sl_texts[HK_SL_LAST_ID]);
    if (walk->query->last_id && (double)walk->query->last_id < last)
        last = (double)walk->query->last_id;
    double seen = (double)walk->last_id - (double)walk->first_id + 1, all = last - (double)walk->first_id + 1;
    return seen > 0 && all > seen ? (uint64_t)((double)n * (all / seen)) : n;
}

struct hk_count hk_sl_count_in(struct hk_store *store, const struct hk_letter_query *query)
{
    static const struct hk_sl_bound bound = {HK_COUNT_EXACT, UINT64_C(256) * 1024 * 1024};
    struct hk_sl_walk walk;
    uint64_t n = 0;
    hk_sl_walk_begin(store, query, (struct hk_sl_range){.oldest_first = true}, bound, &walk);
    while (hk_sl_walk_next(&walk))
        n++;
    struct hk_count count = {n, false};
    if (!walk.ended && hk_sq_ok(store))
        count = (struct hk_count){scaled(&walk, n), true};
    hk_sl_walk_end(&walk);
    return count;
}

enum hk_code hk_sl_count(struct hk_admin *admin, const struct hk_letter_query *query, struct hk_count *out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    struct hk_count count = hk_sl_count_in(store, query);
    enum hk_code rc = hk_sq_end(store, "count dead letters", err);
    if (rc == HK_OK)
        *out = count;
    return rc;
}
