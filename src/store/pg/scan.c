/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the work that there is: poll, scan, held keys. A poll also looks after the lane, and takes the snapshot that is the horizon of
 * the scans after it (window.h). Scans never write. */
#include "base/str.h"
#include "store/pg/store.h"

#define READ_EVERY_MS 20
#define ARM_EVERY_MS  5 /* all relays together */
#define ARM_REST_MS   10000
#define QUICK_MS      30 /* so long after something was found more is likely to come */

/* ---- poll ---- */

static void take_number(struct hk_store *store)
{
    PQclear(hk_pg_query(&store->pg, true, HK_PG_TAKE_NUMBER, NULL));
    if (hk_pg_end(&store->pg, "take a transaction number", NULL) == HK_OK)
        hk_pg_window_wrote(&store->window);
}

static void take_snapshot(struct hk_store *store)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(&store->pg, &a, store->window.known ? store->window.passed : HK_FIRST_ID);
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_SNAPSHOT, &a);
    if (hk_pg_ok(&store->pg)) {
        struct hk_str text = {PQgetvalue(res, 0, 0), (size_t)PQgetlength(res, 0, 0)};
        int64_t position = hk_pg_null(res, 0, 1) ? HK_FIRST_ID : hk_pg_i64(res, 0, 1);
        bool changed = false;
        enum hk_code rc = hk_pg_window_see(&store->window, text, position, &changed);
        if (rc != HK_OK)
            hk_pg_fail(&store->pg, rc == HK_NOMEM ? HK_NOMEM : HK_IO, "its snapshot cannot be read");
        store->beyond = !hk_pg_null(res, 0, 4);
        store->own_change |= changed;
        if (changed)
            hk_pg_pages_drop(&store->pages, store->pg.pool);
        hk_pg_told(store, hk_pg_i64(res, 0, 2));
        store->acts = hk_pg_i64(res, 0, 3);
    }
    PQclear(res);
}

static void poll_dests(struct hk_store *store, struct hk_poll *poll)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, (int64_t)hk_pg_shards(store));
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_DESTS, &a);
    int n = hk_pg_ok(&store->pg) ? PQntuples(res) : 0;
    poll->dests = hk_pg_alloc(&store->pg, (size_t)n, sizeof *poll->dests);
    for (int i = 0; poll->dests && i < n; i++) {
        bool paused = hk_pg_bool(res, i, 2), none = hk_pg_null(res, i, 1);
        int64_t open_until_ms = hk_pg_i64(res, i, 3);
        if (none && !paused && !open_until_ms)
            continue; /* others' */
        poll->dests[poll->n_dests++] = (struct hk_poll_dest){
            .name = hk_pg_text(&store->pg, res, i, 0),
            .retry_due_ms = none ? INT64_MAX : hk_pg_i64(res, i, 1),
            .paused = paused,
            .open_until_ms = hk_pg_of_row(store, open_until_ms),
        };
    }
    PQclear(res);
}

/* A relay that is told of something new asks again at once; the server need not hear of all of it. Not with a clock that is
 * moved by hand, where no time passes. What wakes us has waited long enough; what should wake us must be told; and who wrote
 * before it was told, and commits only now, will wake nobody. */
static bool asked_just_now(const struct hk_store *store)
{
    int64_t now_ms = hk_pg_monotonic_us() / 1000;
    bool quick = store->hint.hungry && (!store->armed || now_ms - store->found_at_ms < QUICK_MS);
    return store->polled && !store->reset_due && !store->options.clock_ms && !store->hint.woken &&
           !store->hint.all && now_ms - store->read_at_ms < (quick ? ARM_EVERY_MS : READ_EVERY_MS);
}

void hk_pg_hint(struct hk_store *store, const struct hk_store_hint *hint)
{
    store->hint = *hint;
}

/* Asks to be woken by whoever writes next. Before the snapshot: who wrote before we asked is in it, or was told to wake us,
 * unless his transaction is a long one; that is what polls are for. So nothing that goes wrong here is an error of the poll's. */
static void arm(struct hk_store *store)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, ARM_EVERY_MS);
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_ARM, &a);
    store->armed = hk_pg_ok(&store->pg) && hk_pg_bool(res, 0, 0);
    PQclear(res);
    if (hk_pg_ok(&store->pg) || !store->pg.conn)
        return;
    (void)hk_pg_end(&store->pg, "arm the wake-up", NULL);
    if (store->pg.conn) {
        store->pg.rc = HK_OK;
        store->pg.sqlstate[0] = '\0';
    }
    store->arm_at_ms = store->read_at_ms + ARM_REST_MS;
}

/* The sequence knows nothing of ids that others chose. Of such rows the snapshot finds one, and there may be more above it. */
static int64_t last_id(const struct hk_store *store)
{
    const struct hk_pg_window *w = &store->window;
    return store->beyond ? INT64_MAX : w->passed > w->position ? w->passed : w->position;
}

/* While late rows are to be shown the horizon stays where it is. */
static void look(struct hk_store *store, struct hk_poll *poll)
{
    store->read_at_ms = hk_pg_monotonic_us() / 1000;
    if (store->hint.hungry && !store->pg.pooled && store->read_at_ms >= store->arm_at_ms)
        arm(store);
    if (!store->window.a && hk_pg_ok(&store->pg))
        take_snapshot(store);
    if (hk_pg_ok(&store->pg) && store->lane && hk_pg_window_wants_write(&store->window))
        take_number(store);
    poll->late = store->window.a != NULL;
    poll->reset = store->reset_due;
    poll->changed = !store->polled || store->own_change || store->hint.all || poll->late || poll->reset;
    poll->last_id = last_id(store);
    poll->acts = store->acts;
    /* Each change is an act. What was there before the first poll may have left none: a database may be restored without its audit. */
    if (hk_pg_ok(&store->pg) && (!store->polled || store->acts != store->definitions_acts)) {
        store->definitions = hk_pg_definitions_version(store);
        store->definitions_acts = store->acts;
    }
    poll->definitions = store->definitions;
    if (poll->changed && hk_pg_ok(&store->pg))
        poll_dests(store, poll);
}

enum hk_code hk_pg_poll(struct hk_store *store, const struct hk_poll **out, struct hk_err *err)
{
    struct hk_poll *poll = &store->poll;
    *poll = (struct hk_poll){0};
    hk_pg_relay_call(store);
    hk_pg_resolve(store);
    hk_pg_upkeep(store);
    store->armed &= store->hint.hungry && !store->hint.woken;
    bool asked = hk_pg_ok(&store->pg) && !asked_just_now(store);
    if (asked)
        look(store, poll);
    store->hint = (struct hk_store_hint){0};
    enum hk_code rc = hk_pg_end(&store->pg, "poll it", err);
    if (rc != HK_OK)
        return rc;
    poll->now_ms = hk_pg_reckon(store, &poll->late_ms);
    poll->behind_ms = store->behind_ms;
    if (asked) {
        store->polled = true;
        store->own_change = store->reset_due = false;
    }
    *out = poll;
    return HK_OK;
}

/* ---- scan ---- */

static enum hk_pg_id statement_of(const struct hk_scan *scan, bool whole)
{
    if (whole)
        return scan->destination ? HK_PG_SCAN_DEST_WHOLE : HK_PG_SCAN_WHOLE;
    if (scan->forced)
        return HK_PG_SCAN_FORCED;
    if (scan->source == HK_FROM_RETRY)
        return scan->key ? HK_PG_SCAN_RETRY_KEY : HK_PG_SCAN_RETRY;
    if (scan->late)
        return HK_PG_SCAN_LATE;
    return scan->key ? HK_PG_SCAN_KEY : scan->destination ? HK_PG_SCAN_DEST : HK_PG_SCAN;
}

/* `limit` rows from where the last page ended, or where the caller says. */
static PGresult *read_page(struct hk_store *store, const struct hk_scan *scan, uint32_t limit, bool whole)
{
    const struct hk_pg_window *w = &store->window;
    const struct hk_heads *heads = &store->heads;
    bool retry = scan->source == HK_FROM_RETRY;
    int64_t after_id = scan->late && heads->last_id < w->floor ? w->floor : heads->last_id;
    struct hk_pg_args a = {0};
    if (retry)
        hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(&store->pg, &a, (int64_t)hk_pg_shards(store));
    if (!retry)
        hk_pg_arg_text(&store->pg, &a, hk_str_of(w->b.text));
    hk_pg_arg_i64(&store->pg, &a, after_id);
    hk_pg_arg_i64(&store->pg, &a, limit);
    if (scan->late) {
        hk_pg_arg_i64(&store->pg, &a, w->high);
        hk_pg_arg_text(&store->pg, &a, hk_str_of(w->a));
    } else if (scan->destination) {
        hk_pg_arg_text(&store->pg, &a, hk_str_of(scan->destination));
    }
    if (retry)
        hk_pg_arg_i64(&store->pg, &a, heads->last_due_ms);
    if (scan->key)
        hk_pg_arg_text(&store->pg, &a, hk_str_of(scan->key));
    return hk_pg_query(&store->pg, false, statement_of(scan, whole), &a);
}

/* Rows of `res` from `first` on, `n` of them. */
static void add_fresh(struct hk_store *store, const struct hk_scan *scan, const PGresult *res, int first,
                      int n)
{
    struct hk_heads *heads = &store->heads;
    for (int i = first; i < first + n; i++) {
        struct hk_head *head = &heads->items[heads->n];
        hk_pg_head(res, i, HK_FROM_OUTBOX, head);
        heads->last_id = head->id;
        heads->n += (!scan->late || !hk_manifests_hold(&store->claims, head->id)) &&
                    !hk_stuck_has(&store->stuck, HK_FROM_OUTBOX, head->id);
    }
    if (heads->n && !scan->destination) /* a backlog of one destination says nothing of what writers do now */
        store->found_at_ms = hk_pg_monotonic_us() / 1000;
    if (!scan->late)
        hk_pg_window_passed(&store->window, heads->last_id);
}

/* How many there were, those included that are stuck and not shown. */
static uint32_t add_retries(struct hk_store *store, const PGresult *res)
{
    struct hk_heads *heads = &store->heads;
    int64_t server_ms = 0;
    uint32_t n = 0;
    for (int i = 0; i < PQntuples(res); i++) {
        if (!hk_pg_head_due(res, i, &heads->last_due_ms, &server_ms))
            break;
        hk_pg_head(res, i, HK_FROM_RETRY, &heads->items[heads->n]);
        heads->last_id = heads->items[heads->n].id;
        heads->n += !hk_stuck_has(&store->stuck, HK_FROM_RETRY, heads->last_id);
        n++;
    }
    heads->now_ms = hk_pg_told(store, server_ms);
    return n;
}

/* A late scan goes on while all that it finds is in our own hands. */
static void read_heads(struct hk_store *store, const struct hk_scan *scan)
{
    struct hk_heads *heads = &store->heads;
    do {
        PGresult *res = read_page(store, scan, scan->limit, false);
        hk_pg_keep(store, res);
        if (!hk_pg_ok(&store->pg))
            return;
        uint32_t n = (uint32_t)PQntuples(res);
        if (scan->source == HK_FROM_RETRY)
            n = add_retries(store, res); /* there may be a row without one */
        else
            add_fresh(store, scan, res, 0, PQntuples(res));
        heads->more = n == scan->limit;
    } while (scan->late && heads->more && heads->n == 0);
}

/* Fresh rows in the order of their ids: from the page that goes on there, or from a new one. */
static void read_ahead(struct hk_store *store, const struct hk_scan *scan)
{
    struct hk_heads *heads = &store->heads;
    uint64_t shards = hk_pg_shards(store);
    unsigned pool = store->pg.pool;
    struct hk_pg_page *page = hk_pg_page_of(&store->pages, scan->destination, pool);
    if (!page) {
        hk_pg_fail(&store->pg, HK_NOMEM, "out of memory");
        return;
    }
    if (!hk_pg_page_goes_on(page, scan->after_id, shards)) {
        uint32_t asked = hk_pg_page_ask(page, scan->after_id, scan->limit);
        bool whole = hk_pg_page_whole(page);
        PGresult *res = read_page(store, scan, asked, whole);
        if (!hk_pg_ok(&store->pg)) {
            PQclear(res);
            return;
        }
        hk_pg_page_fill(&store->pages, page, res, asked, whole, scan->after_id, shards, pool);
    }
    int all = PQntuples(page->res), rest = all - page->used;
    int n = (uint32_t)rest < scan->limit ? rest : (int)scan->limit;
    add_fresh(store, scan, page->res, page->used, n);
    page->used += n;
    page->to_id = heads->last_id;
    heads->more = page->used < all || (uint32_t)all == page->asked;
}

static bool lacks_destination(const struct hk_scan *scan)
{
    bool wants = (scan->source == HK_FROM_RETRY && !scan->forced) || scan->key;
    return wants && !scan->destination;
}

enum hk_code hk_pg_scan(struct hk_store *store, const struct hk_scan *scan, const struct hk_heads **out,
                        struct hk_err *err)
{
    if (lacks_destination(scan))
        return hk_err_set(err, HK_INVALID, "a scan of retries or of a key needs a destination");
    hk_pg_relay_call(store);
    struct hk_heads *heads = &store->heads;
    *heads = (struct hk_heads){.last_id = scan->after_id, .last_due_ms = scan->after_due_ms};
    heads->items = hk_pg_alloc(&store->pg, scan->limit, sizeof *heads->items);
    bool fresh = scan->source == HK_FROM_OUTBOX;
    if (fresh && !store->window.known && hk_pg_ok(&store->pg))
        take_snapshot(store);
    /* Without shards everything would be walked over, and nothing found. */
    bool nothing = scan->limit == 0 || (scan->late && !store->window.a) || !hk_pg_shards(store);
    if (hk_pg_ok(&store->pg) && !nothing) {
        if (fresh && !scan->late && !scan->key)
            read_ahead(store, scan);
        else
            read_heads(store, scan);
    }
    enum hk_code rc = hk_pg_end(&store->pg, "scan it", err);
    if (rc != HK_OK)
        return rc;
    if (scan->late && !heads->more)
        hk_pg_window_shown(&store->window);
    if (fresh || nothing)
        heads->now_ms = hk_pg_reckon(store, &heads->late_ms);
    heads->behind_ms = store->behind_ms;
    *out = heads;
    return HK_OK;
}

/* ---- held keys ---- */

/* A retry row that was delivered and could not go holds nobody; a fresh one that was not delivered does, as a dead letter would. */
static size_t add_stuck_keys(struct hk_store *store, const PGresult *res, struct hk_held_key *keys)
{
    size_t n = 0;
    for (int i = 0; i < PQntuples(res); i++)
        if (hk_pg_i64(res, i, 2) == 0 && !hk_pg_bool(res, i, 3))
            keys[n++] = (struct hk_held_key){.destination = hk_pg_text(&store->pg, res, i, 0),
                                             .key = hk_pg_text(&store->pg, res, i, 1),
                                             .dead = true};
    return n;
}

static bool is_over(const PGresult *stuck, int64_t retry_id)
{
    for (int i = 0; i < PQntuples(stuck); i++)
        if (hk_pg_i64(stuck, i, 2) == 1 && hk_pg_i64(stuck, i, 4) == retry_id && hk_pg_bool(stuck, i, 3))
            return true;
    return false;
}

static size_t add_keys(struct hk_store *store, const PGresult *res, const PGresult *stuck, bool dead,
                       struct hk_held_key *keys)
{
    size_t n = 0;
    for (int i = 0; i < PQntuples(res); i++)
        if (dead || PQntuples(stuck) == 0 || !is_over(stuck, hk_pg_i64(res, i, 2)))
            keys[n++] = (struct hk_held_key){.destination = hk_pg_text(&store->pg, res, i, 0),
                                             .key = hk_pg_text(&store->pg, res, i, 1),
                                             .dead = dead};
    return n;
}

enum hk_code hk_pg_held_keys(struct hk_store *store, const struct hk_held_key **out, size_t *out_n,
                             struct hk_err *err)
{
    struct hk_pg_args a = {0};
    hk_pg_relay_call(store);
    hk_pg_begin(&store->pg, false);
    hk_pg_arg_i64(&store->pg, &a, (int64_t)hk_pg_shards(store));
    hk_pg_add(&store->pg, HK_PG_HELD_RETRY, &a);
    hk_pg_add(&store->pg, HK_PG_HELD_DEAD, &a);
    if (store->stuck.n)
        hk_pg_add(&store->pg, HK_PG_HELD_STUCK, &a);
    hk_pg_send(&store->pg);
    PGresult *retries = hk_pg_result(&store->pg), *dead = hk_pg_result(&store->pg);
    PGresult *stuck = store->stuck.n ? hk_pg_result(&store->pg) : NULL; /* of which there are no tuples */
    size_t n = hk_pg_ok(&store->pg) ? (size_t)(PQntuples(retries) + PQntuples(dead) + PQntuples(stuck)) : 0;
    struct hk_held_key *keys = hk_pg_alloc(&store->pg, n, sizeof *keys);
    if (keys) {
        n = add_keys(store, retries, stuck, false, keys);
        n += add_keys(store, dead, stuck, true, keys + n);
        n += add_stuck_keys(store, stuck, keys + n);
    }
    PQclear(retries);
    PQclear(dead);
    PQclear(stuck);
    enum hk_code rc = hk_pg_end(&store->pg, "read the keys that are held", err);
    if (rc != HK_OK)
        return rc;
    *out = keys;
    *out_n = n;
    return HK_OK;
}
