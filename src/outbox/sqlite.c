/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing in C on SQLite: one plain INSERT with the columns that were given, so that the table's defaults hold for
 * the others. */
#include <string.h>

#include <hikyaku/outbox_sqlite.h>
#include <sqlite3.h>

#include "base/buf.h"
#include "outbox/sealer.h"

enum {
    SQL_MAX = 1024,
    COLUMNS = 15
};

struct column {
    const char *name;
    const char *text; /* NULL: not given */
};

static size_t columns_of(const struct hk_outbox_message *m, const char *encoding, struct column out[COLUMNS])
{
    const struct column all[] = {
        {"destination", m->destination}, {"event_type", m->event_type},
        {"message_id", m->message_id},   {"message_key", m->message_key},
        {"headers", m->headers},         {"content_type", m->content_type},
        {"traceparent", m->traceparent}, {"correlation_id", m->correlation_id},
        {"policy", m->policy},           {"idempotency_key", m->idempotency_key},
        {"not_before", m->not_before},   {"expires_at", m->expires_at},
        {"encoding", encoding},
    };
    size_t n = 0;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].text)
            out[n++] = all[i];
    return n;
}

static enum hk_code failed(struct sqlite3 *db, struct hk_err *err)
{
    int code = sqlite3_errcode(db) & 0xff;
    if (code == SQLITE_BUSY || code == SQLITE_LOCKED || code == SQLITE_PROTOCOL)
        return hk_err_set(err, HK_BUSY,
                          "the database is locked by another writer: set a busy timeout, or try again");
    if (code == SQLITE_NOMEM)
        return hk_err_set(err, HK_NOMEM, "out of memory for the message");
    if (code == SQLITE_ERROR && strstr(sqlite3_errmsg(db), "no such table"))
        return hk_err_set(err, HK_NOTFOUND, "there is no outbox in this database: run 'hikyaku init'");
    return hk_err_set(err, HK_IO, "the message was not written: %s", sqlite3_errmsg(db));
}

static void build_sql(const struct column *columns, size_t n, bool max_attempts, struct hk_buf *sql)
{
    (void)hk_buf_adds(sql, "INSERT INTO outbox (payload");
    for (size_t i = 0; i < n; i++)
        (void)hk_buf_addf(sql, ", %s", columns[i].name);
    (void)hk_buf_adds(sql, max_attempts ? ", max_attempts) VALUES (?" : ") VALUES (?");
    for (size_t i = 0; i < n + (max_attempts ? 1 : 0); i++)
        (void)hk_buf_adds(sql, ", ?");
    (void)hk_buf_addc(sql, ')');
}

/* Text where it can be text: people read the table, and JSON functions work on it. */
static int bind_payload(sqlite3_stmt *stmt, const struct hk_outbox_message *m)
{
    if (m->payload_len && memchr(m->payload, '\0', m->payload_len))
        return sqlite3_bind_blob64(stmt, 1, m->payload, m->payload_len, SQLITE_STATIC);
    return sqlite3_bind_text64(stmt, 1, m->payload_len ? m->payload : "", m->payload_len, SQLITE_STATIC,
                               SQLITE_UTF8);
}

static bool bind(sqlite3_stmt *stmt, const struct hk_outbox_message *m, const struct column *columns,
                 size_t n)
{
    bool ok = bind_payload(stmt, m) == SQLITE_OK;
    for (size_t i = 0; ok && i < n; i++)
        ok = sqlite3_bind_text(stmt, (int)i + 2, columns[i].text, -1, SQLITE_STATIC) == SQLITE_OK;
    if (ok && m->max_attempts)
        ok = sqlite3_bind_int64(stmt, (int)n + 2, m->max_attempts) == SQLITE_OK;
    return ok;
}

static enum hk_code enqueue(struct sqlite3 *db, const struct hk_outbox_message *message, const char *encoding,
                            int64_t *out_id, struct hk_err *err)
{
    struct column columns[COLUMNS];
    struct hk_buf sql;
    sqlite3_stmt *stmt = NULL;

    if (!message->event_type || !message->event_type[0])
        return hk_err_set(err, HK_INVALID, "a message needs an event type");
    size_t n = columns_of(message, encoding, columns);
    hk_buf_init(&sql, SQL_MAX);
    build_sql(columns, n, message->max_attempts > 0, &sql);
    enum hk_code rc = hk_buf_status(&sql);
    if (rc != HK_OK)
        rc = hk_err_set(err, rc, "out of memory for the message");
    else if (sqlite3_prepare_v2(db, hk_buf_cstr(&sql), -1, &stmt, NULL) != SQLITE_OK ||
             !bind(stmt, message, columns, n) || sqlite3_step(stmt) != SQLITE_DONE)
        rc = failed(db, err);
    else if (out_id)
        *out_id = sqlite3_last_insert_rowid(db);
    sqlite3_finalize(stmt);
    hk_buf_fini(&sql);
    return rc;
}

enum hk_code hk_outbox_enqueue_sqlite(struct sqlite3 *db, const struct hk_outbox_message *message,
                                      int64_t *out_id, struct hk_err *err)
{
    return enqueue(db, message, NULL, out_id, err);
}

enum hk_code hk_outbox_enqueue_sealed_sqlite(struct hk_sealer *sealer, struct sqlite3 *db,
                                             const struct hk_outbox_message *message, int64_t *out_id,
                                             struct hk_err *err)
{
    struct hk_outbox_message sealed;
    struct hk_buf text = {.data = NULL};
    enum hk_code rc = hk_sealer_seal(sealer, message, &text, &sealed, err);
    if (rc == HK_OK)
        rc = enqueue(db, &sealed, "sealed", out_id, err);
    hk_buf_fini(&text);
    return rc;
}
