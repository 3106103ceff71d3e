/* SPDX-License-Identifier: Apache-2.0 */
/* One dead letter from its row. Rows may hold anything: texts are cut to a bound, what is no time is none, and no more of a
 * payload is read than is wanted: it may be a gigabyte. */
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/sqlite/letters.h"

enum {
    C_ID,
    C_OUTBOX_ID,
    C_MESSAGE_ID,
    C_EVENT_TYPE,
    C_DESTINATION,
    C_KEY,
    C_CORRELATION_ID,
    C_TRACEPARENT,
    C_REASON,
    C_ERROR,
    C_CLASS,
    C_FAULT,
    C_FINGERPRINT,
    C_STATUS,
    C_ATTEMPTS,
    C_CRASHES,
    C_LIFE,
    C_REQUEUES,
    C_VERSION,
    C_POSSIBLY,
    C_MESSAGE_CREATED,
    C_CREATED,
    C_FIRST_FAILED,
    C_LAST_FAILED,
    C_LAST_ATTEMPT,
    C_REQUEUED,
    C_RESOLVED,
    C_EDITED,
    C_SENDING,
    C_REQUEUED_AS,
    C_RESOLUTION,
    C_REDRIVE,
    C_PAYLOAD_TYPE,
    C_HEADERS, /* from here on only where details are wanted */
    C_CONTENT_TYPE,
    C_ENCODING,
    C_IDEMPOTENCY_KEY,
    C_POLICY,
    C_EXPIRES,
    C_DETAIL,
    C_MAX_ATTEMPTS
};

struct hk_str hk_sl_time_text(int64_t ms, char out[HK_TIME_TEXT_MAX])
{
    return (struct hk_str){out, hk_format_rfc3339(ms, out)};
}

enum hk_letter_status hk_sl_status(sqlite3_stmt *q, int column)
{
    const char *name = (const char *)sqlite3_column_text(q, column);
    enum hk_letter_status status = HK_LETTER_DISCARDED;
    (void)hk_letter_status_by_name(hk_str_of(name), &status);
    return status;
}

sqlite3_stmt *hk_sl_prepare_for(struct hk_store *store, const char *sql, int64_t id)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, id);
    return q;
}

int64_t hk_sl_begin_act(struct hk_admin *admin)
{
    hk_sq_call(admin->store);
    hk_sq_begin_write(admin->store);
    hk_sq_clock_lift(admin->store);
    return hk_sq_now(admin->store);
}

/* ---- the row ---- */

struct row {
    struct hk_store *store;
    sqlite3_stmt *q;
    struct hk_pool *pool;
};

static struct hk_str text_at(const struct row *row, int column)
{
    const struct hk_str none = {"", 0};
    const char *bytes = sqlite3_column_type(row->q, column) == SQLITE_BLOB
                            ? sqlite3_column_blob(row->q, column)
                            : (const char *)sqlite3_column_text(row->q, column);
    int len = sqlite3_column_bytes(row->q, column);
    if (!bytes || len <= 0)
        return none; /* out of memory is found out by the next step */
    size_t n = len < HK_SA_TEXT_MAX ? (size_t)len : HK_SA_TEXT_MAX;
    const char *copy = hk_pool_copy(row->pool, bytes, n);
    if (!copy)
        hk_sq_fail(row->store, SQLITE_NOMEM);
    return copy ? (struct hk_str){copy, n} : none;
}

static void read_texts(const struct row *row, struct hk_letter *out)
{
    out->message_id = text_at(row, C_MESSAGE_ID);
    out->event_type = text_at(row, C_EVENT_TYPE);
    out->destination = text_at(row, C_DESTINATION);
    out->key = text_at(row, C_KEY);
    out->correlation_id = text_at(row, C_CORRELATION_ID);
    out->traceparent = text_at(row, C_TRACEPARENT);
    out->reason = text_at(row, C_REASON);
    out->error = text_at(row, C_ERROR);
    out->failure_class = text_at(row, C_CLASS);
    out->blame = text_at(row, C_FAULT);
    out->fingerprint = text_at(row, C_FINGERPRINT);
    out->requeued_as = text_at(row, C_REQUEUED_AS);
    out->resolution = text_at(row, C_RESOLUTION);
}

static void read_times(sqlite3_stmt *q, struct hk_letter *out)
{
    out->message_created_ms = hk_sa_time(q, C_MESSAGE_CREATED);
    out->created_ms = hk_sa_time(q, C_CREATED);
    out->first_failed_ms = hk_sa_time(q, C_FIRST_FAILED);
    out->last_failed_ms = hk_sa_time(q, C_LAST_FAILED);
    out->last_attempt_ms = hk_sa_time(q, C_LAST_ATTEMPT);
    out->requeued_ms = hk_sa_time(q, C_REQUEUED);
    out->resolved_ms = hk_sa_time(q, C_RESOLVED);
    out->edited_ms = hk_sa_time(q, C_EDITED);
    out->sending_ms = hk_sa_time(q, C_SENDING);
}

static void read_details(const struct row *row, struct hk_letter *out)
{
    out->headers = text_at(row, C_HEADERS);
    out->content_type = text_at(row, C_CONTENT_TYPE);
    out->encoding = text_at(row, C_ENCODING);
    out->idempotency_key = text_at(row, C_IDEMPOTENCY_KEY);
    out->policy = text_at(row, C_POLICY);
    out->expires_at = text_at(row, C_EXPIRES);
    out->error_detail = text_at(row, C_DETAIL);
    out->max_attempts = hk_sa_u32(row->q, C_MAX_ATTEMPTS);
}

static void read_row(const struct row *row, bool details, struct hk_letter *out)
{
    sqlite3_stmt *q = row->q;
    const struct hk_str none = {"", 0};
    *out = (struct hk_letter){
        .id = sqlite3_column_int64(q, C_ID),
        .outbox_id = sqlite3_column_int64(q, C_OUTBOX_ID),
        .status = hk_sl_status(q, C_STATUS),
        .attempts = hk_sa_u32(q, C_ATTEMPTS),
        .crashes = hk_sa_u32(q, C_CRASHES),
        .life = hk_sa_u32(q, C_LIFE),
        .requeues = hk_sa_u32(q, C_REQUEUES),
        .version = hk_sa_u32(q, C_VERSION),
        .possibly_delivered = sqlite3_column_int(q, C_POSSIBLY) != 0,
        .redrive = sqlite3_column_int64(q, C_REDRIVE),
        .headers = none,
        .content_type = none,
        .encoding = none,
        .idempotency_key = none,
        .policy = none,
        .expires_at = none,
        .error_detail = none,
        .payload = none,
    };
    read_texts(row, out);
    read_times(q, out);
    if (details)
        read_details(row, out);
}

/* ---- the payload ---- */

/* A number, which sqlite3_blob_open does not take. */
static void read_number(struct hk_sl_reader *r, size_t max, struct hk_pool *pool, struct hk_letter *out)
{
    sqlite3_stmt *q = hk_sl_prepare_for(r->store, hk_sl_texts[HK_SL_PAYLOAD], out->id);
    const struct row row = {r->store, q, pool};
    if (hk_sq_row(r->store, q))
        out->payload = text_at(&row, 0);
    out->payload_bytes = out->payload.len;
    out->payload.len = out->payload.len < max ? out->payload.len : max;
    sqlite3_finalize(q);
}

/* As much of an open one as is wanted. */
static int read_some(sqlite3_blob *blob, size_t max, struct hk_pool *pool, uint64_t *out_bytes,
                     struct hk_str *out)
{
    int rc = SQLITE_OK;
    *out_bytes = (uint64_t)sqlite3_blob_bytes(blob);
    size_t len = *out_bytes < max ? (size_t)*out_bytes : max;
    char *bytes = len ? hk_pool_alloc(pool, 1, len + 1) : NULL;
    if (bytes)
        rc = sqlite3_blob_read(blob, bytes, (int)len, 0);
    else if (len)
        rc = SQLITE_NOMEM;
    *out = (struct hk_str){bytes ? bytes : "", bytes ? len : 0};
    return rc;
}

static int seek(struct hk_sl_reader *r, int64_t id)
{
    if (r->blob && sqlite3_blob_reopen(r->blob, id) == SQLITE_OK)
        return SQLITE_OK;
    sqlite3_blob_close(r->blob);
    r->blob = NULL;
    return sqlite3_blob_open(r->store->db, "main", "dead_letters", "payload", id, 0, &r->blob);
}

size_t hk_sl_seek(struct hk_sl_reader *r, int64_t id)
{
    int rc = seek(r, id);
    if (rc != SQLITE_OK)
        hk_sq_fail(r->store, rc);
    return rc == SQLITE_OK ? (size_t)sqlite3_blob_bytes(r->blob) : 0;
}

bool hk_sl_read_at(struct hk_sl_reader *r, char *out, size_t n, size_t at)
{
    int rc = sqlite3_blob_read(r->blob, out, (int)n, (int)at);
    if (rc != SQLITE_OK)
        hk_sq_fail(r->store, rc);
    return rc == SQLITE_OK;
}

static void read_blob(struct hk_sl_reader *r, size_t max, struct hk_pool *pool, struct hk_letter *out)
{
    int rc = seek(r, out->id);
    if (rc == SQLITE_OK)
        rc = read_some(r->blob, max, pool, &out->payload_bytes, &out->payload);
    if (rc != SQLITE_OK)
        hk_sq_fail(r->store, rc);
}

static void read_payload(struct hk_sl_reader *r, size_t max, struct hk_pool *pool, struct hk_letter *out)
{
    const char *type = (const char *)sqlite3_column_text(r->q, C_PAYLOAD_TYPE);
    out->has_payload = type && strcmp(type, "null") != 0;
    if (!out->has_payload)
        return;
    if (strcmp(type, "text") == 0 || strcmp(type, "blob") == 0)
        read_blob(r, max, pool, out);
    else
        read_number(r, max, pool, out);
}

void hk_sl_read_version(struct hk_store *store, int64_t rowid, size_t max, struct hk_letter_version *out)
{
    sqlite3_blob *blob = NULL;
    int rc = sqlite3_blob_open(store->db, "main", "dead_letter_versions", "payload", rowid, 0, &blob);
    if (rc == SQLITE_OK)
        rc = read_some(blob, max, hk_sq_pool(store), &out->payload_bytes, &out->payload);
    sqlite3_blob_close(blob);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}

/* ---- the reader ---- */

void hk_sl_reader_open(struct hk_store *store, bool details, struct hk_sl_reader *out)
{
    *out = (struct hk_sl_reader){.store = store, .details = details};
    out->q = hk_sa_prepare(store, details ? hk_sl_texts[HK_SL_READ_WHOLE] : hk_sl_texts[HK_SL_READ_BRIEF]);
}

bool hk_sl_read(struct hk_sl_reader *r, int64_t id, size_t payload_max, struct hk_pool *pool,
                struct hk_letter *out)
{
    hk_sq_done(r->q);
    hk_sq_bind_i64(r->store, r->q, 1, id);
    if (!hk_sq_row(r->store, r->q))
        return false;
    const struct row row = {r->store, r->q, pool};
    read_row(&row, r->details, out);
    read_payload(r, payload_max, pool, out);
    return hk_sq_ok(r->store);
}

void hk_sl_reader_close(struct hk_sl_reader *r)
{
    sqlite3_finalize(r->q);
    sqlite3_blob_close(r->blob);
    r->q = NULL;
    r->blob = NULL;
}

const struct hk_store_letters_ops hk_store_letters_sqlite = {
    .list = hk_sl_list,
    .count = hk_sl_count,
    .groups = hk_sl_groups,
    .groups_page = hk_sl_groups_page,
    .hours = hk_sl_hours,
    .stats = hk_sl_stats,
    .show = hk_sl_show,
    .find_requeued = hk_sl_find_requeued,
    .paused = hk_sl_paused,
    .edit = hk_sl_edit,
    .fix = hk_sl_fix,
    .requeue = hk_sl_requeue,
    .resolve = hk_sl_resolve,
    .discard = hk_sl_discard,
    .restore = hk_sl_restore,
    .remark = hk_sl_remark,
    .send_begin = hk_sl_send_begin,
    .send_end = hk_sl_send_end,
    .redrive_start = hk_sl_redrive_start,
    .redrive_list = hk_sl_redrive_list,
    .redrive_cancel = hk_sl_redrive_cancel,
    .redrive_step = hk_sl_redrive_step,
    .regroup = hk_sl_regroup,
    .audit = hk_sl_audit,
    .act_letters = hk_sl_act_letters,
};
