/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing in C on PostgreSQL: one plain INSERT with the columns that were given, so that the table's defaults hold for
 * the others. What PostgreSQL would refuse is refused before it is asked where that can be known: an error of the server's
 * costs the caller the whole transaction. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include <hikyaku/outbox_pg.h>
#include <libpq-fe.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "outbox/sealer.h"

#define SQL_MAX   ((size_t)1024)
#define FIELD_MAX ((size_t)0x3fffffff) /* PostgreSQL's limit of one value */
#define NAME_MAX_ 63                   /* and of a name */

enum {
    COLUMNS = 16
};

/* The statement under way. */
struct insert {
    struct hk_buf sql, encoded;
    const char *names[COLUMNS], *values[COLUMNS];
    int lengths[COLUMNS], formats[COLUMNS];
    int n;
    const char *encoding; /* of the payload as it is given; NULL: it is bytes */
    char max_attempts[16], not_before[HK_TIME_TEXT_MAX], expires_at[HK_TIME_TEXT_MAX];
};

/* ---- what can be known before ---- */

static bool is_name(const char *s)
{
    size_t len = strlen(s);
    for (size_t i = 0; i < len; i++)
        if (!hk_ascii_isalpha(s[i]) && s[i] != '_' && (i == 0 || !hk_ascii_isdigit(s[i])))
            return false;
    return len <= NAME_MAX_ - sizeof "outbox" + 1;
}

static enum hk_code check_names(const struct hk_outbox_place *place, struct hk_err *err)
{
    if ((place->schema && !is_name(place->schema)) || (place->prefix && !is_name(place->prefix)))
        return hk_err_set(err, HK_INVALID,
                          "schema and prefix take letters, digits and '_', and may not be longer than %zu",
                          NAME_MAX_ - sizeof "outbox" + 1);
    return HK_OK;
}

/* `out` is what PostgreSQL is told: it reads fewer forms than we do, and more. */
static enum hk_code check_time(const char *text, const char *name, char out[HK_TIME_TEXT_MAX],
                               struct hk_err *err)
{
    int64_t ms;
    out[0] = '\0';
    if (!text)
        return HK_OK;
    if (hk_parse_rfc3339(hk_str_of(text), &ms, NULL) == HK_OK) {
        hk_format_rfc3339(ms, out);
        return HK_OK;
    }
    return hk_err_set(err, HK_INVALID, "%s is not a time such as 2026-11-15T08:30:00.000Z", name);
}

static enum hk_code check_conn(struct pg_conn *conn, struct hk_err *err)
{
    switch (PQtransactionStatus(conn)) {
    case PQTRANS_ACTIVE:
        return hk_err_set(err, HK_INVALID,
                          "the connection is in the middle of a command: read its results first");
    case PQTRANS_INERROR:
        return hk_err_set(err, HK_INVALID, "the transaction has failed already: roll it back");
    case PQTRANS_UNKNOWN:
        return hk_err_set(err, HK_UNAVAILABLE, "there is no connection to the database");
    case PQTRANS_IDLE:
    case PQTRANS_INTRANS:
        break;
    }
    if (PQpipelineStatus(conn) != PQ_PIPELINE_OFF)
        return hk_err_set(err, HK_INVALID, "the connection is in pipeline mode: leave it first");
    return HK_OK;
}

static bool is_set_to(struct pg_conn *conn, const char *parameter, const char *value)
{
    const char *is = PQparameterStatus(conn, parameter);
    return is && strcmp(is, value) == 0;
}

/* ---- the statement ---- */

static void add(struct insert *in, const char *name, const char *value)
{
    if (!value)
        return;
    in->names[in->n] = name;
    in->values[in->n++] = value;
}

static void add_texts(struct insert *in, const struct hk_outbox_message *m)
{
    add(in, "destination", m->destination);
    add(in, "event_type", m->event_type);
    add(in, "message_id", m->message_id);
    add(in, "message_key", m->message_key);
    add(in, "headers", m->headers);
    add(in, "content_type", m->content_type);
    add(in, "correlation_id", m->correlation_id);
    add(in, "traceparent", m->traceparent);
    add(in, "idempotency_key", m->idempotency_key);
    add(in, "policy", m->policy);
    add(in, "encoding", in->encoding);
    add(in, "not_before", m->not_before ? in->not_before : NULL);
    add(in, "expires_at", m->expires_at ? in->expires_at : NULL);
    if (m->max_attempts) {
        snprintf(in->max_attempts, sizeof in->max_attempts, "%u",
                 m->max_attempts < INT_MAX ? (unsigned)m->max_attempts : (unsigned)INT_MAX);
        add(in, "max_attempts", in->max_attempts);
    }
}

/* Does the database give these bytes back as they are? */
static bool survives_as_text(struct pg_conn *conn, struct hk_str payload)
{
    bool ascii = true;
    for (size_t i = 0; i < payload.len && ascii; i++)
        ascii = payload.ptr[i] != '\0' && (unsigned char)payload.ptr[i] < 0x80;
    if (ascii)
        return true;
    return is_set_to(conn, "client_encoding", "UTF8") && is_set_to(conn, "server_encoding", "UTF8") &&
           hk_utf8_is_text(payload);
}

static enum hk_code add_payload(struct insert *in, struct pg_conn *conn, const struct hk_outbox_message *m,
                                struct hk_err *err)
{
    struct hk_str payload = {m->payload_len ? m->payload : "", m->payload_len};
    if (!survives_as_text(conn, payload)) {
        enum hk_code rc = hk_buf_add_base64(&in->encoded, payload.ptr, payload.len);
        if (rc == HK_NOMEM)
            return hk_err_set(err, rc, "out of memory for the message");
        if (rc == HK_OK)
            add(in, "encoding", "base64");
        payload = rc == HK_OK ? hk_buf_str(&in->encoded) : (struct hk_str){"", FIELD_MAX};
    }
    if (payload.len >= FIELD_MAX)
        return hk_err_set(err, HK_TOOBIG, "the payload is larger than the gigabyte that PostgreSQL takes");
    in->lengths[in->n] = (int)payload.len;
    in->formats[in->n] = 1; /* its length counts, not a NUL */
    add(in, "payload", payload.ptr);
    return HK_OK;
}

static enum hk_code check_texts(const struct insert *in, struct pg_conn *conn, struct hk_err *err)
{
    if (!is_set_to(conn, "client_encoding", "UTF8"))
        return HK_OK;
    for (int i = 0; i < in->n; i++)
        if (in->formats[i] == 0 && !hk_utf8_is_text(hk_str_of(in->values[i])))
            return hk_err_set(err, HK_INVALID, "%s is not UTF-8", in->names[i]);
    return HK_OK;
}

static enum hk_code build(struct insert *in, const struct hk_outbox_place *place, bool returning,
                          struct hk_err *err)
{
    struct hk_buf *sql = &in->sql;
    (void)hk_buf_adds(sql, "INSERT INTO ");
    if (place->schema && place->schema[0])
        (void)hk_buf_addf(sql, "\"%s\".", place->schema);
    (void)hk_buf_addf(sql, "\"%soutbox\" (", place->prefix ? place->prefix : "");
    for (int i = 0; i < in->n; i++)
        (void)hk_buf_addf(sql, "%s%s", i ? ", " : "", in->names[i]);
    (void)hk_buf_adds(sql, ") VALUES (");
    for (int i = 0; i < in->n; i++)
        (void)hk_buf_addf(sql, "%s$%d", i ? ", " : "", i + 1);
    (void)hk_buf_adds(sql, returning ? ") RETURNING id" : ")");
    return hk_buf_status(sql) == HK_OK ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory for the message");
}

/* ---- the server's answer ---- */

static bool is_one_of(const char *state, const char *states)
{
    return strlen(state) == 5 && strstr(states, state) != NULL;
}

static enum hk_code failed(struct pg_conn *conn, const PGresult *result, struct hk_err *err)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *words = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (!state)
        state = "";
    if (!words)
        words = PQerrorMessage(conn);
    if (is_one_of(state, "42P01 3F000"))
        return hk_err_set(err, HK_NOTFOUND, "there is no outbox in this database: run 'hikyaku init' (%s)",
                          words);
    if (is_one_of(state, "42501"))
        return hk_err_set(err, HK_IO, "%s: 'hikyaku init --print-grants' shows what an application needs",
                          words);
    if (is_one_of(state, "40001 40P01 55P03 57014"))
        return hk_err_set(err, HK_BUSY, "the message was not written: %s; try the transaction again", words);
    if (PQstatus(conn) != CONNECTION_OK || is_one_of(state, "57P01 57P02 57P03") ||
        strncmp(state, "53", 2) == 0)
        return hk_err_set(err, HK_UNAVAILABLE, "the message was not written: %s", words);
    return hk_err_set(err, HK_IO, "the message was not written: %s", words);
}

static enum hk_code run(struct pg_conn *conn, const struct insert *in, int64_t *out_id, struct hk_err *err)
{
    PGresult *result =
        PQexecParams(conn, hk_buf_cstr(&in->sql), in->n, NULL, in->values, in->lengths, in->formats, 0);
    enum hk_code rc = HK_OK;
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        rc = failed(conn, result, err);
    /* a trigger of the application's may have taken the row away */
    else if (out_id && (PQntuples(result) != 1 ||
                        hk_parse_i64(hk_str_of(PQgetvalue(result, 0, 0)), out_id, NULL) != HK_OK))
        rc = hk_err_set(err, HK_IO, "the message was not written: the database gave no id for it");
    PQclear(result);
    return rc;
}

static enum hk_code prepare(struct insert *in, struct pg_conn *conn, const struct hk_outbox_place *place,
                            const struct hk_outbox_message *m, bool returning, struct hk_err *err)
{
    enum hk_code rc = check_names(place, err);
    if (rc == HK_OK)
        rc = check_time(m->not_before, "not_before", in->not_before, err);
    if (rc == HK_OK)
        rc = check_time(m->expires_at, "expires_at", in->expires_at, err);
    if (rc == HK_OK)
        rc = check_conn(conn, err);
    if (rc != HK_OK)
        return rc;
    add_texts(in, m);
    rc = add_payload(in, conn, m, err);
    if (rc == HK_OK)
        rc = check_texts(in, conn, err);
    if (rc == HK_OK)
        rc = build(in, place, returning, err);
    return rc;
}

static enum hk_code enqueue(struct pg_conn *conn, const struct hk_outbox_place *place,
                            const struct hk_outbox_message *message, const char *encoding, int64_t *out_id,
                            struct hk_err *err)
{
    static const struct hk_outbox_place in_path = {NULL, NULL};
    struct insert in = {.encoding = encoding};

    if (!message->event_type || !message->event_type[0])
        return hk_err_set(err, HK_INVALID, "a message needs an event type");
    hk_buf_init(&in.sql, SQL_MAX);
    hk_buf_init(&in.encoded, FIELD_MAX);
    enum hk_code rc = prepare(&in, conn, place ? place : &in_path, message, out_id != NULL, err);
    if (rc == HK_OK)
        rc = run(conn, &in, out_id, err);
    hk_buf_fini(&in.sql);
    hk_buf_fini(&in.encoded);
    return rc;
}

enum hk_code hk_outbox_enqueue_pg(struct pg_conn *conn, const struct hk_outbox_place *place,
                                  const struct hk_outbox_message *message, int64_t *out_id,
                                  struct hk_err *err)
{
    return enqueue(conn, place, message, NULL, out_id, err);
}

enum hk_code hk_outbox_enqueue_sealed_pg(struct hk_sealer *sealer, struct pg_conn *conn,
                                         const struct hk_outbox_place *place,
                                         const struct hk_outbox_message *message, int64_t *out_id,
                                         struct hk_err *err)
{
    struct hk_outbox_message sealed;
    struct hk_buf text = {.data = NULL};
    enum hk_code rc = hk_sealer_seal(sealer, message, &text, &sealed, err);
    if (rc == HK_OK)
        rc = enqueue(conn, place, &sealed, "sealed", out_id, err);
    hk_buf_fini(&text);
    return rc;
}
