/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on SQLite: the handle, enqueueing, pausing, the audit trail, and what the other files share. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

/* ---- helpers ---- */

sqlite3_stmt *hk_sa_prepare(struct hk_store *store, const char *sql)
{
    sqlite3_stmt *q = NULL;
    if (!hk_sq_ok(store))
        return NULL;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &q, NULL);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
    return q;
}

struct hk_str hk_sa_text(struct hk_store *store, sqlite3_stmt *q, int column, size_t max)
{
    const struct hk_str none = {"", 0};
    int type = sqlite3_column_type(q, column);
    if (type == SQLITE_NULL || !hk_sq_ok(store))
        return none;
    const char *bytes =
        type == SQLITE_BLOB ? sqlite3_column_blob(q, column) : (const char *)sqlite3_column_text(q, column);
    size_t len = (size_t)sqlite3_column_bytes(q, column);
    if (!bytes && len > 0)
        hk_sq_fail(store, SQLITE_NOMEM);
    if (!bytes || !len)
        return none;
    len = len < max ? len : max;
    const char *copy = hk_pool_copy(hk_sq_pool(store), bytes, len);
    if (!copy)
        hk_sq_fail(store, SQLITE_NOMEM);
    return copy ? (struct hk_str){copy, len} : none;
}

int64_t hk_sa_time(sqlite3_stmt *q, int column)
{
    int64_t ms = 0;
    return hk_sq_time(q, column, &ms) ? ms : 0;
}

uint32_t hk_sa_u32(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static int64_t cell_number(const struct hk_cells *row, int column)
{
    return sqlite3_column_int64(row->statement, column);
}

static bool cell_flag(const struct hk_cells *row, int column)
{
    return sqlite3_column_int(row->statement, column) != 0;
}

static struct hk_str cell_text(const struct hk_cells *row, int column, size_t max)
{
    return hk_sa_text(row->store, row->statement, column, max);
}

struct hk_cells hk_sa_cells(struct hk_store *store, sqlite3_stmt *q)
{
    return (struct hk_cells){
        .number = cell_number, .flag = cell_flag, .text = cell_text, .store = store, .statement = q};
}

bool hk_sa_is_glob(const char *pattern)
{
    return strchr(pattern, '*') != NULL;
}

/* What else means something to GLOB stands in brackets. */
void hk_sa_bind_glob(struct hk_store *store, sqlite3_stmt *q, int i, const char *pattern)
{
    size_t len = strlen(pattern);
    char *glob = hk_sq_alloc(store, 3, len + 1);
    char *at = glob;
    for (size_t k = 0; glob && k < len; k++) {
        bool special = pattern[k] == '?' || pattern[k] == '[';
        if (special)
            *at++ = '[';
        *at++ = pattern[k];
        if (special)
            *at++ = ']';
    }
    if (glob)
        hk_sq_bind_text(store, q, i, (struct hk_str){glob, (size_t)(at - glob)});
}

void *hk_sa_grow(struct hk_store *store, void *items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return items;
    size_t more = *room ? *room * 2 : 16;
    void *bigger = hk_sq_alloc(store, more, bytes);
    if (!bigger)
        return NULL;
    if (n)
        memcpy(bigger, items, n * bytes);
    *room = more;
    return bigger;
}

void hk_sa_audit(struct hk_store *store, const char *act, const char *message_id, struct hk_str destination,
                 const char *actor, const char *reason, int64_t now_ms)
{
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of(actor),
                                              .act = hk_str_of(act),
                                              .message_id = hk_str_of(message_id),
                                              .destination = destination,
                                              .reason = hk_str_of(reason)});
}

/* ---- enqueue ---- */

/* Text where it is text, so that people can read it in the table; else bytes as they are. */
static void bind_payload(struct hk_store *store, sqlite3_stmt *q, int i, const struct hk_outbox_message *m)
{
    struct hk_str payload = {m->payload, m->payload_len};
    if (!q || !m->payload)
        return;
    if (hk_utf8_is_text(payload))
        hk_sq_bind_text(store, q, i, payload);
    else if (sqlite3_bind_blob64(q, i, m->payload, m->payload_len, SQLITE_STATIC) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
}

static void bind_message(struct hk_store *store, sqlite3_stmt *q, const struct hk_enqueue *item)
{
    const struct hk_outbox_message *m = &item->message;
    const char *const texts[] = {m->message_id,  m->destination,     m->event_type,  m->message_key,
                                 m->headers,     m->content_type,    item->encoding, m->correlation_id,
                                 m->traceparent, m->idempotency_key, m->not_before,  m->expires_at,
                                 m->policy};
    int i = 1;
    for (; i <= (int)(sizeof texts / sizeof texts[0]); i++)
        hk_sq_bind_text_or_null(store, q, i, hk_str_of(texts[i - 1]));
    if (m->max_attempts)
        hk_sq_bind_i64(store, q, i, m->max_attempts);
    bind_payload(store, q, i + 1, m);
}

static void insert_one(struct hk_store *store, sqlite3_stmt *q, const struct hk_enqueue *item,
                       struct hk_str *out_id)
{
    if (!q)
        return;
    sqlite3_reset(q);
    sqlite3_clear_bindings(q);
    bind_message(store, q, item);
    if (hk_sq_row(store, q))
        *out_id = hk_sa_text(store, q, 0, SIZE_MAX);
    while (hk_sq_row(store, q))
        continue;
}

/* False: the name is taken. */
static bool take_name(struct hk_store *store, const struct hk_enqueue *item, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_TASK_NAME]);
    hk_sq_bind_text_or_null(store, q, 1, hk_str_of(item->message.destination));
    hk_sq_bind_text_or_null(store, q, 2, hk_str_of(item->message.message_id));
    hk_sq_bind_i64(store, q, 3, now_ms);
    hk_sq_bind_i64(store, q, 4, now_ms - HK_TASK_TOMBSTONE_MS);
    bool ours = hk_sq_row(store, q);
    while (hk_sq_row(store, q))
        continue;
    sqlite3_finalize(q);
    return ours || !hk_sq_ok(store);
}

static void forget_names(struct hk_store *store, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_TASK_FORGET]);
    hk_sq_bind_i64(store, q, 1, now_ms - HK_TASK_FORGET_MS);
    while (hk_sq_row(store, q))
        continue;
    sqlite3_finalize(q);
}

/* True: a name is taken, and the transaction is to be undone. */
static bool names_taken(struct hk_store *store, const struct hk_enqueue *items, size_t n)
{
    bool taken = false, any = false;
    int64_t now_ms = 0;
    for (size_t i = 0; i < n && !taken && hk_sq_ok(store); i++) {
        if (!items[i].is_task)
            continue;
        now_ms = any ? now_ms : hk_sq_now(store);
        any = true;
        taken = !take_name(store, &items[i], now_ms);
    }
    if (any && !taken)
        forget_names(store, now_ms);
    return taken;
}

static enum hk_code sa_enqueue(struct hk_admin *admin, const struct hk_enqueue *items, size_t n,
                               const struct hk_str **out_ids, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    for (size_t i = 0; i < n; i++)
        if (!items[i].message.event_type || !items[i].message.event_type[0])
            return hk_err_set(err, HK_INVALID, "message %zu has no event type", i);
    hk_sq_call(store);
    struct hk_str *ids = hk_sq_alloc(store, n ? n : 1, sizeof *ids);
    hk_sq_begin_write(store);
    bool taken = names_taken(store, items, n);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_ENQUEUE]);
    for (size_t i = 0; ids && i < n && !taken && hk_sq_ok(store); i++)
        insert_one(store, q, &items[i], &ids[i]);
    sqlite3_finalize(q);
    if (taken)
        hk_sq_rollback(store);
    enum hk_code rc = hk_sq_end(store, "enqueue", err);
    if (rc == HK_OK && taken)
        return hk_err_set(err, HK_EXISTS, "there is a task of this name, or was within the last hour");
    if (rc == HK_OK)
        *out_ids = ids;
    return rc;
}

/* ---- pause ---- */

/* A resume also closes its breaker, paused or not. */
static bool pause_changes(struct hk_store *store, const char *destination, bool paused)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_PAUSE_CHANGES]);
    hk_sq_bind_cstr(store, q, 1, destination);
    bool there = hk_sq_row(store, q);
    bool was_paused = there && sqlite3_column_int(q, 0) != 0;
    bool was_open = there && sqlite3_column_int(q, 1) != 0;
    sqlite3_finalize(q);
    return was_paused != paused || (!paused && was_open);
}

static enum hk_code sa_pause(struct hk_admin *admin, const char *destination, bool paused, const char *actor,
                             const char *reason, bool *out_changed, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    int64_t now_ms = hk_sq_now(store);
    bool changed = pause_changes(store, destination, paused);
    if (changed || paused) {
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_PAUSE);
        hk_sq_bind_cstr(store, q, 1, destination);
        hk_sq_bind_i64(store, q, 2, paused);
        hk_sq_bind_cstr(store, q, 3, actor);
        hk_sq_bind_cstr(store, q, 4, reason);
        hk_sq_bind_i64(store, q, 5, now_ms);
        hk_sq_run(store, q);
        hk_sa_audit(store, paused ? "pause" : "resume", NULL, hk_str_of(destination), actor, reason, now_ms);
    }
    enum hk_code rc = hk_sq_end(store, paused ? "pause a destination" : "resume a destination", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}

/* ---- open and close ---- */

static void sa_keep(struct hk_admin *admin, struct hk_pool *into)
{
    hk_pool_move(hk_sq_pool(admin->store), into);
}

static void sa_close(struct hk_admin *admin)
{
    if (!admin)
        return;
    hk_store_sqlite.close(admin->store);
    hk_mem_free(admin);
}

static enum hk_code sa_open(const char *url, const struct hk_store_options *options,
                            struct hk_admin **out_admin, struct hk_err *err)
{
    struct hk_store_options durable = *options;
    struct hk_admin *admin = hk_mem_zalloc(1, sizeof *admin);
    if (!admin)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    durable.sync_full = !options->offhand;
    enum hk_code rc = hk_store_sqlite.open(url, &durable, &admin->store, err);
    if (rc != HK_OK) {
        sa_close(admin);
        return rc;
    }
    *out_admin = admin;
    return HK_OK;
}

const struct hk_store_admin_ops hk_store_admin_sqlite = {
    .name = "sqlite",
    .open = sa_open,
    .close = sa_close,
    .keep = sa_keep,
    .enqueue = sa_enqueue,
    .status = hk_sa_status,
    .status_exact = hk_sa_status_exact,
    .blocked = hk_sa_blocked,
    .waiting = hk_sa_waiting,
    .why = hk_sa_why,
    .figures = hk_sa_figures,
    .figures_put = hk_sa_figures_put,
    .series = hk_sa_series,
    .series_names = hk_sa_series_names,
    .series_put = hk_sa_series_put,
    .seal_page = hk_sa_seal_page,
    .seal_put = hk_sa_seal_put,
    .seal_uses = hk_sa_seal_uses,
    .note = hk_sa_note,
    .relays = hk_sa_relays,
    .list = hk_sa_list,
    .show = hk_sa_show,
    .fetch = hk_sa_fetch,
    .attempts = hk_sa_attempts,
    .cancel = hk_sa_cancel,
    .cancel_refs = hk_sa_cancel_refs,
    .restore_refs = hk_sa_restore_refs,
    .erase_refs = hk_sa_erase_refs,
    .retry = hk_sa_retry,
    .force = hk_sa_force,
    .pause = sa_pause,
    .definitions = hk_sa_definitions,
    .definitions_of = hk_sa_definitions_of,
    .define = hk_sa_define,
    .undefine = hk_sa_undefine,
    .clock = hk_sa_clock,
    .adopt = hk_sa_adopt,
    .inspect = hk_sa_inspect,
};
