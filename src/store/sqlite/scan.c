/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the work that there is: poll, scan, held keys. Nothing here writes, and nothing keeps a snapshot open afterwards, because that
 * would let the WAL grow without end. */
#include <string.h>

#include "base/str.h"
#include "store/sqlite/admin.h"

/* ---- poll ---- */

static void poll_dests(struct hk_store *store, struct hk_poll *poll)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DESTS);
    while (hk_sq_row(store, q)) {
        struct hk_poll_dest *dests = hk_sa_grow(store, poll->dests, poll->n_dests, &room, sizeof *dests);
        if (!dests)
            break;
        poll->dests = dests;
        dests[poll->n_dests++] = (struct hk_poll_dest){
            .name = hk_sq_text(store, q, 0),
            .retry_due_ms = sqlite3_column_type(q, 1) == SQLITE_NULL ? INT64_MAX
                            : poll->behind_ms                        ? poll->now_ms
                                                                     : sqlite3_column_int64(q, 1),
            .paused = sqlite3_column_int(q, 2) != 0,
            .open_until_ms = sqlite3_column_int64(q, 3),
        };
    }
    hk_sq_done(q);
}

static int64_t max_id(struct hk_store *store, enum hk_sq_id statement)
{
    sqlite3_stmt *q = hk_sq_use(store, statement);
    bool any = hk_sq_row(store, q) && sqlite3_column_type(q, 0) != SQLITE_NULL;
    int64_t id = any ? sqlite3_column_int64(q, 0) : HK_FIRST_ID;
    hk_sq_done(q);
    return id;
}

#define MOVED_MS 5000

/* Who deletes or replaces the file under us leaves us with one that nobody else can see. A moment's absence is none: it may
 * come back. */
static bool is_gone(struct hk_store *store)
{
    int moved = 0;
    if (sqlite3_file_control(store->db, NULL, SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || !moved) {
        store->moved_ms = 0;
        return false;
    }
    int64_t now_ms = hk_sq_now(store);
    if (store->moved_ms == 0)
        store->moved_ms = now_ms;
    return now_ms - store->moved_ms > MOVED_MS;
}

#define TELL_EVERY_MS 1000

/* While the clock is behind, the store's time does not tell when a deferred message is due: each destination is looked at
 * every second, by the clock; and once more when it has caught up, for from then on that time tells. */
static bool tells_behind(struct hk_store *store, const struct hk_poll *poll)
{
    int64_t clock_ms = poll->now_ms - (int64_t)poll->behind_ms, since_ms = clock_ms - store->clock.told_ms;
    bool was_behind = store->clock.told_ms != 0;
    if (poll->behind_ms && since_ms >= 0 && since_ms < TELL_EVERY_MS)
        return false;
    store->clock.told_ms = poll->behind_ms ? clock_ms : 0;
    return poll->behind_ms || was_behind;
}

enum hk_code hk_sq_poll(struct hk_store *store, const struct hk_poll **out, struct hk_err *err)
{
    hk_sq_call(store);
    if (hk_sq_is_cut_off(store))
        return hk_sq_cut_off(store, err);
    if (is_gone(store))
        return hk_err_set(err, HK_IO, "%s: it was moved, deleted or replaced while it was open", store->path);
    /* Read before the rest: what is committed in between is seen again next time, never missed. */
    int version = hk_sq_data_version(store);
    struct hk_poll *poll = &store->poll;
    *poll = (struct hk_poll){.now_ms = hk_sq_now(store)};
    poll->behind_ms = hk_sq_behind(store, poll->now_ms);
    poll->changed = tells_behind(store, poll);
    poll->changed |= !store->polled || store->own_change || version != store->data_version;
    if (poll->changed && hk_sq_begin_read(store)) {
        poll->last_id = max_id(store, HK_SQ_LAST_ID);
        poll->acts = max_id(store, HK_SQ_LAST_ACT);
        store->definitions = hk_sq_definitions_version(store);
        poll_dests(store, poll);
    }
    poll->definitions = store->definitions;
    enum hk_code rc = hk_sq_end(store, "poll it", err);
    if (rc != HK_OK)
        return rc;
    hk_sq_note_sides(store);
    store->data_version = version;
    store->polled = true;
    store->own_change = false;
    *out = poll;
    return HK_OK;
}

void hk_sq_hint(struct hk_store *store, const struct hk_store_hint *hint)
{
    store->polled &= !hint->all;
}

/* ---- scan ---- */

/* Sizes of payloads without reading them: sqlite3_blob_bytes looks at the row's header only, while length() would load a
 * TEXT to count its characters. */
struct sizer {
    struct hk_store *store;
    const char *table;
    sqlite3_blob *blob;
    size_t seen; /* rows of the scan, those included that are stuck and not shown */
};

static uint64_t payload_bytes(struct sizer *sizer, const char *type, int64_t id)
{
    if (!type) {
        hk_sq_fail(sizer->store, SQLITE_NOMEM);
        return 0;
    }
    if (strcmp(type, "text") != 0 && strcmp(type, "blob") != 0)
        return strcmp(type, "null") == 0 ? 0 : 32; /* a number, as text */
    int rc = sizer->blob
                 ? sqlite3_blob_reopen(sizer->blob, id)
                 : sqlite3_blob_open(sizer->store->db, "main", sizer->table, "payload", id, 0, &sizer->blob);
    if (rc != SQLITE_OK) {
        hk_sq_fail(sizer->store, rc);
        return 0;
    }
    return (uint64_t)sqlite3_blob_bytes(sizer->blob);
}

static enum hk_sq_id statement_of(const struct hk_scan *scan)
{
    if (scan->forced)
        return HK_SQ_SCAN_FORCED;
    if (scan->source == HK_FROM_RETRY)
        return scan->key ? HK_SQ_SCAN_RETRY_KEY : HK_SQ_SCAN_RETRY;
    return scan->key ? HK_SQ_SCAN_KEY : scan->destination ? HK_SQ_SCAN_DEST : HK_SQ_SCAN;
}

static sqlite3_stmt *start_scan(struct hk_store *store, enum hk_sq_id id, const struct hk_scan *scan,
                                uint32_t limit, bool first)
{
    const struct hk_heads *heads = &store->heads;
    sqlite3_stmt *q = hk_sq_use(store, id);
    if (scan->source == HK_FROM_RETRY) {
        hk_sq_bind_i64(store, q, 1, heads->last_id);
    } else { /* the first id to be read: an application may have written the lowest or the highest that there is */
        bool all = first && scan->after_id == HK_FIRST_ID;
        if (heads->last_id == INT64_MAX)
            limit = 0;
        hk_sq_bind_i64(store, q, 1, all || limit == 0 ? heads->last_id : heads->last_id + 1);
    }
    hk_sq_bind_i64(store, q, 2, limit);
    if (scan->forced) {
        hk_sq_bind_i64(store, q, 3, heads->last_due_ms);
        return q;
    }
    if (scan->destination)
        hk_sq_bind_text(store, q, 3, hk_str_of(scan->destination));
    if (scan->key)
        hk_sq_bind_text(store, q, 4, hk_str_of(scan->key));
    if (scan->source == HK_FROM_RETRY) {
        hk_sq_bind_i64(store, q, 5, heads->last_due_ms);
        hk_sq_bind_i64(store, q, 6, heads->now_ms);
        hk_sq_bind_i64(store, q, 7, heads->now_ms - (int64_t)heads->behind_ms);
    }
    return q;
}

static void add_heads(struct hk_store *store, sqlite3_stmt *q, const struct hk_scan *scan,
                      struct sizer *sizer, const char *malformed)
{
    struct hk_heads *heads = &store->heads;
    while (sizer->seen < scan->limit && hk_sq_row(store, q)) {
        struct hk_head *head = &heads->items[heads->n];
        hk_sq_head(store, q, scan->source, head);
        if (malformed)
            head->malformed = malformed;
        head->payload_bytes =
            payload_bytes(sizer, (const char *)sqlite3_column_text(q, HK_SQ_H_PAYLOAD_TYPE), head->id);
        if (!hk_sq_ok(store))
            break;
        heads->last_id = head->id;
        heads->last_due_ms = sqlite3_column_int64(q, HK_SQ_H_DUE);
        heads->n += !hk_stuck_has(&store->stuck, scan->source, head->id);
        sizer->seen++;
    }
    hk_sq_done(q);
}

/* With SQLite's own limit on what it loads, so that a row of gigabytes costs nothing: such a row gives SQLITE_TOOBIG. It
 * is then read bare, marked, and the scan goes on behind it. */
static void scan_rows(struct hk_store *store, const struct hk_scan *scan, struct sizer *sizer)
{
    enum hk_sq_id id = statement_of(scan);
    int limit = sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, HK_SQ_HEAD_TEXT_MAX);
    while (sizer->seen < scan->limit) {
        add_heads(store, start_scan(store, id, scan, scan->limit, !sizer->seen), scan, sizer, NULL);
        if (store->rc != SQLITE_TOOBIG)
            break;
        store->rc = SQLITE_OK;
        size_t before = sizer->seen;
        struct hk_scan one = *scan;
        one.limit = (uint32_t)before + 1;
        add_heads(store, start_scan(store, id + 1, scan, 1, !before), &one, sizer, "row");
        if (sizer->seen == before)
            break;
    }
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, limit);
}

enum hk_code hk_sq_scan(struct hk_store *store, const struct hk_scan *scan, const struct hk_heads **out,
                        struct hk_err *err)
{
    if (((scan->source == HK_FROM_RETRY && !scan->forced) || scan->key) && !scan->destination)
        return hk_err_set(err, HK_INVALID, "a scan of retries or of a key needs a destination");
    hk_sq_call(store);
    struct hk_heads *heads = &store->heads;
    *heads = (struct hk_heads){
        .last_id = scan->after_id, .last_due_ms = scan->after_due_ms, .now_ms = hk_sq_now(store)};
    heads->behind_ms = hk_sq_behind(store, heads->now_ms);
    heads->items = hk_sq_alloc(store, scan->limit, sizeof *heads->items);
    struct sizer sizer = {.store = store, .table = scan->source == HK_FROM_RETRY ? "outbox_retry" : "outbox"};
    if (hk_sq_begin_read(store) &&
        !scan->late) /* nothing is ever late here: ids are in the order of commits */
        scan_rows(store, scan, &sizer);
    sqlite3_blob_close(sizer.blob);
    enum hk_code rc = hk_sq_end(store, "scan it", err);
    if (rc != HK_OK)
        return rc;
    heads->more = sizer.seen == scan->limit;
    *out = heads;
    return HK_OK;
}

/* ---- held keys ---- */

struct keys {
    struct hk_held_key *items;
    size_t n, room;
};

/* A retry row that was delivered and could not go holds nobody. */
static bool is_over(struct hk_store *store, int64_t id)
{
    if (!hk_stuck_has(&store->stuck, HK_FROM_RETRY, id))
        return false;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_STUCK_ONE);
    hk_sq_bind_i64(store, q, 1, 1);
    hk_sq_bind_i64(store, q, 2, id);
    bool over = hk_sq_row(store, q) && sqlite3_column_int64(q, 0) != 0;
    hk_sq_done(q);
    return over;
}

static void add_keys(struct hk_store *store, enum hk_sq_id id, bool dead, struct keys *keys)
{
    sqlite3_stmt *q = hk_sq_use(store, id);
    while (hk_sq_row(store, q)) {
        if (id == HK_SQ_HELD_RETRY && is_over(store, sqlite3_column_int64(q, 2)))
            continue;
        struct hk_held_key *items = hk_sa_grow(store, keys->items, keys->n, &keys->room, sizeof *items);
        if (!items)
            break;
        keys->items = items;
        items[keys->n++] = (struct hk_held_key){
            .destination = hk_sq_text(store, q, 0), .key = hk_sq_text(store, q, 1), .dead = dead};
    }
    hk_sq_done(q);
}

enum hk_code hk_sq_held_keys(struct hk_store *store, const struct hk_held_key **out, size_t *out_n,
                             struct hk_err *err)
{
    hk_sq_call(store);
    struct keys keys = {0};
    if (hk_sq_begin_read(store)) {
        add_keys(store, HK_SQ_HELD_RETRY, false, &keys);
        add_keys(store, HK_SQ_HELD_DEAD, true, &keys);
        if (store->stuck.n)
            add_keys(store, HK_SQ_HELD_STUCK, true, &keys);
    }
    enum hk_code rc = hk_sq_end(store, "read the keys that are held", err);
    if (rc != HK_OK)
        return rc;
    *out = keys.items;
    *out_n = keys.n;
    return HK_OK;
}
