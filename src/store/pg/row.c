/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to heads and messages. PostgreSQL has checked the types, so that a text is a text and a time a time; but any of them
 * may be NULL, times may be infinite, and texts of any length: those were left out by the statement, and are marked here. */
#include <string.h>

#include "core/encoding.h"
#include "payload/answer.h"
#include "payload/codec.h"
#include "payload/target.h"
#include "store/pg/store.h"

_Static_assert(HK_NCLASSES == 6 && HK_CLASS_TRANSIENT == 1,
               "outbox_retry has a column for each class of failure");

/* ---- values in binary ---- */

static struct hk_str text_at(const PGresult *res, int row, int column)
{
    return (struct hk_str){PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column)};
}

/* smallint, integer, bigint, boolean; 0 for NULL. */
static int64_t int_at(const PGresult *res, int row, int column)
{
    int len = PQgetlength(res, row, column);
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(res, row, column);
    uint64_t value = len > 0 && bytes[0] & 0x80 ? UINT64_MAX : 0;
    for (int i = 0; i < len && i < 8; i++)
        value = value << 8 | bytes[i];
    int64_t result;
    memcpy(&result, &value, sizeof result);
    return result;
}

static uint32_t count_at(const PGresult *res, int row, int column)
{
    int64_t value = int_at(res, row, column);
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint64_t size_at(const PGresult *res, int row, int column)
{
    int64_t value = int_at(res, row, column);
    return value < 0 ? 0 : (uint64_t)value;
}

/* ---- times: microseconds since 2000, the ends of the range are infinite ---- */

enum infinity {
    FINITE = 0,
    PAST, /* -infinity */
    FUTURE
};

/* Unix ms; `up`: rounded up, else down. 0 for NULL. */
static enum infinity time_at(const PGresult *res, int row, int column, bool up, int64_t *out_ms)
{
    *out_ms = 0;
    if (PQgetisnull(res, row, column))
        return FINITE;
    int64_t us = int_at(res, row, column);
    if (us == INT64_MIN || us == INT64_MAX)
        return us == INT64_MIN ? PAST : FUTURE;
    int64_t ms = us / 1000, rest = us % 1000;
    ms += (up && rest > 0) - (!up && rest < 0);
    *out_ms = ms + INT64_C(946684800000);
    return FINITE;
}

/* 0 = at once; false: never, which nobody means. */
static bool not_before_at(const PGresult *res, int row, int column, int64_t *out_ms)
{
    if (time_at(res, row, column, true, out_ms) == FUTURE)
        return false;
    if (*out_ms < 0)
        *out_ms = 0;
    return true;
}

/* 0 = never; so whatever lies before 1970 counts as just after it. */
static int64_t expires_at(const PGresult *res, int row, int column)
{
    int64_t ms;
    enum infinity infinity = time_at(res, row, column, false, &ms);
    if (infinity == FUTURE || PQgetisnull(res, row, column))
        return 0;
    return infinity == PAST || ms < 1 ? 1 : ms;
}

/* 0 = as the policy says. */
static bool max_attempts_at(const PGresult *res, int row, int column, uint32_t *out)
{
    *out = count_at(res, row, column);
    return int_at(res, row, column) >= 0;
}

/* ---- heads ---- */

void hk_pg_head(const PGresult *res, int row, enum hk_source source, struct hk_head *out)
{
    uint32_t max_attempts;
    *out = (struct hk_head){
        .source = source,
        .id = int_at(res, row, HK_PG_H_ID),
        .destination = text_at(res, row, HK_PG_H_DESTINATION),
        .event_type = text_at(res, row, HK_PG_H_EVENT_TYPE),
        .key = text_at(res, row, HK_PG_H_KEY),
        .payload_bytes = size_at(res, row, HK_PG_H_PAYLOAD_BYTES),
        .expires_ms = expires_at(res, row, HK_PG_H_EXPIRES),
        .key_first = true,
    };
    if (!not_before_at(res, row, HK_PG_H_NOT_BEFORE, &out->not_before_ms))
        out->malformed = "not_before";
    if (!max_attempts_at(res, row, HK_PG_H_MAX_ATTEMPTS, &max_attempts))
        out->malformed = "max_attempts";
    if (!hk_encoding_is_known(text_at(res, row, HK_PG_H_ENCODING)))
        out->malformed = "encoding";
    if (int_at(res, row, HK_PG_H_HUGE))
        out->malformed = "row";
    if (source == HK_FROM_OUTBOX)
        return;
    out->not_before_ms = 0;
    out->crashes = count_at(res, row, HK_PG_H_CRASHES);
    out->key_first = int_at(res, row, HK_PG_H_FIRST) != 0;
}

bool hk_pg_head_due(const PGresult *res, int row, int64_t *out_due_ms, int64_t *out_now_ms)
{
    *out_now_ms = int_at(res, row, HK_PG_H_NOW);
    if (PQgetisnull(res, row, HK_PG_H_ID))
        return false;
    *out_due_ms = int_at(res, row, HK_PG_H_DUE);
    return true;
}

/* ---- messages ---- */

static void read_past(const struct hk_store *store, const PGresult *res, int row, struct hk_message *out)
{
    out->crashes = count_at(res, row, HK_PG_M_CRASHES);
    out->life = count_at(res, row, HK_PG_M_LIFE);
    out->letter_id = int_at(res, row, HK_PG_M_LETTER);
    out->first_failed_ms = hk_pg_of_row(store, int_at(res, row, HK_PG_M_FIRST_FAILED));
    out->history.attempts = count_at(res, row, HK_PG_M_ATTEMPTS);
    out->history.charged = count_at(res, row, HK_PG_M_CHARGED);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        out->history.failures[c] = count_at(res, row, HK_PG_M_FAILED + c - HK_CLASS_TRANSIENT);
    out->history.prev_wait_ms = size_at(res, row, HK_PG_M_PREV_WAIT);
    out->history.first_attempt_ms = hk_pg_of_row(store, int_at(res, row, HK_PG_M_FIRST_ATTEMPT));
    out->history.paused_ms = size_at(res, row, HK_PG_M_PAUSED);
    out->last_cause = text_at(res, row, HK_PG_M_LAST_CAUSE);
    out->last_status = hk_answer_status(out->last_cause, text_at(res, row, HK_PG_M_LAST_ERROR));
}

/* Where the columns of a message stand. */
struct columns {
    int id, shard, destination, message_id, event_type, key, headers, content_type, encoding, correlation_id,
        traceparent, idempotency_key, policy, not_before, expires, created, max_attempts, payload,
        payload_bytes;
};

static const struct columns read_columns = {HK_PG_M_ID,           HK_PG_M_SHARD,
                                            HK_PG_M_DESTINATION,  HK_PG_M_MESSAGE_ID,
                                            HK_PG_M_EVENT_TYPE,   HK_PG_M_KEY,
                                            HK_PG_M_HEADERS,      HK_PG_M_CONTENT_TYPE,
                                            HK_PG_M_ENCODING,     HK_PG_M_CORRELATION_ID,
                                            HK_PG_M_TRACEPARENT,  HK_PG_M_IDEMPOTENCY_KEY,
                                            HK_PG_M_POLICY,       HK_PG_M_NOT_BEFORE,
                                            HK_PG_M_EXPIRES,      HK_PG_M_CREATED,
                                            HK_PG_M_MAX_ATTEMPTS, HK_PG_M_PAYLOAD,
                                            HK_PG_M_PAYLOAD_BYTES};
static const struct columns ahead_columns = {HK_PG_H_ID,           HK_PG_W_SHARD,
                                             HK_PG_H_DESTINATION,  HK_PG_W_MESSAGE_ID,
                                             HK_PG_H_EVENT_TYPE,   HK_PG_H_KEY,
                                             HK_PG_W_HEADERS,      HK_PG_W_CONTENT_TYPE,
                                             HK_PG_H_ENCODING,     HK_PG_W_CORRELATION_ID,
                                             HK_PG_W_TRACEPARENT,  HK_PG_W_IDEMPOTENCY_KEY,
                                             HK_PG_W_POLICY,       HK_PG_H_NOT_BEFORE,
                                             HK_PG_H_EXPIRES,      HK_PG_W_CREATED,
                                             HK_PG_H_MAX_ATTEMPTS, HK_PG_W_PAYLOAD,
                                             HK_PG_H_PAYLOAD_BYTES};

static void read_payload(struct hk_store *store, const PGresult *res, int row, int column,
                         struct hk_message *out)
{
    enum hk_code rc =
        hk_codec_carried(out->encoding, text_at(res, row, column), hk_pg_pool(&store->pg), &out->payload);
    out->undecodable = rc == HK_INVALID;
    if (rc == HK_NOMEM)
        hk_pg_fail(&store->pg, HK_NOMEM, "out of memory");
}

static const char *malformed(const PGresult *res, int row, const struct columns *c, struct hk_message *out)
{
    if (!out->message_id.len)
        return "message_id";
    if (!hk_encoding_is_known(out->encoding))
        return "encoding";
    if (!max_attempts_at(res, row, c->max_attempts, &out->max_attempts))
        return "max_attempts";
    return not_before_at(res, row, c->not_before, &out->not_before_ms) ? NULL : "not_before";
}

static void read_message(struct hk_store *store, const PGresult *res, int row, const struct columns *c,
                         struct hk_message *out, uint8_t *out_shard)
{
    *out = (struct hk_message){
        .source = HK_FROM_OUTBOX,
        .id = int_at(res, row, c->id),
        .destination = text_at(res, row, c->destination),
        .message_id = text_at(res, row, c->message_id),
        .event_type = text_at(res, row, c->event_type),
        .key = text_at(res, row, c->key),
        .headers = text_at(res, row, c->headers),
        .content_type = text_at(res, row, c->content_type),
        .encoding = text_at(res, row, c->encoding),
        .correlation_id = text_at(res, row, c->correlation_id),
        .traceparent = text_at(res, row, c->traceparent),
        .idempotency_key = text_at(res, row, c->idempotency_key),
        .policy = text_at(res, row, c->policy),
        .expires_ms = expires_at(res, row, c->expires),
        .life = 1,
    };
    time_at(res, row, c->created, false, &out->created_ms);
    out->malformed = malformed(res, row, c, out);
    out->timeout_ms = hk_target_timeout_ms(out->headers);
    out->oversized = size_at(res, row, c->payload_bytes) > store->options.max_payload_bytes;
    read_payload(store, res, row, c->payload, out);
    *out_shard = (uint8_t)(int_at(res, row, c->shard) & (HK_PG_SHARDS - 1));
}

int64_t hk_pg_message(struct hk_store *store, const PGresult *res, int row, struct hk_message *out,
                      uint8_t *out_shard)
{
    read_message(store, res, row, &read_columns, out, out_shard);
    if (int_at(res, row, HK_PG_M_HUGE))
        out->malformed = "row";
    if (PQnfields(res) > HK_PG_M_SOURCE && int_at(res, row, HK_PG_M_SOURCE) != 0) {
        out->source = HK_FROM_RETRY;
        read_past(store, res, row, out);
    }
    return int_at(res, row, HK_PG_M_CLAIM);
}

bool hk_pg_is_whole(const PGresult *res, int row)
{
    return PQnfields(res) > HK_PG_W_PAYLOAD && int_at(res, row, HK_PG_W_SMALL) != 0;
}

void hk_pg_message_ahead(struct hk_store *store, const PGresult *res, int row, struct hk_message *out,
                         uint8_t *out_shard)
{
    read_message(store, res, row, &ahead_columns, out, out_shard);
}
