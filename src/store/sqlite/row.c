/* SPDX-License-Identifier: Apache-2.0 */
/* Rows to heads and messages. Applications write the rows, and SQLite's columns hold whatever they are given: texts may be
 * BLOBs, numbers texts, dates anything, NULL everywhere. Nothing here fails on a value; what cannot be used is marked. */
#include <string.h>

#include "base/parse.h"
#include "core/encoding.h"
#include "payload/answer.h"
#include "payload/codec.h"
#include "payload/target.h"
#include "store/sqlite/sqlite.h"

_Static_assert(HK_NCLASSES == 6 && HK_CLASS_TRANSIENT == 1,
               "outbox_retry has a column for each class of failure");

/* The value's bytes, valid until the next step. BLOBs as they are, all else as text in UTF-8. */
static struct hk_str borrow(struct hk_store *store, sqlite3_stmt *q, int column)
{
    int type = sqlite3_column_type(q, column);
    if (type == SQLITE_NULL)
        return (struct hk_str){NULL, 0};
    const void *bytes =
        type == SQLITE_BLOB ? sqlite3_column_blob(q, column) : (const void *)sqlite3_column_text(q, column);
    int len = sqlite3_column_bytes(q, column);
    if (!bytes && (type != SQLITE_BLOB || len > 0))
        hk_sq_fail(store, SQLITE_NOMEM);
    return (struct hk_str){bytes, bytes && len > 0 ? (size_t)len : 0};
}

struct hk_str hk_sq_text(struct hk_store *store, sqlite3_stmt *q, int column)
{
    struct hk_str s = borrow(store, q, column);
    if (!s.len)
        return (struct hk_str){"", 0};
    const char *copy = hk_pool_copy(hk_sq_pool(store), s.ptr, s.len);
    if (!copy)
        hk_sq_fail(store, SQLITE_NOMEM);
    return (struct hk_str){copy ? copy : "", copy ? s.len : 0};
}

static uint32_t count_at(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

static uint64_t size_at(sqlite3_stmt *q, int column)
{
    int64_t value = sqlite3_column_int64(q, column);
    return value < 0 ? 0 : (uint64_t)value;
}

/* RFC 3339; and without zone, as SQLite's own datetime() writes it, which is UTC. */
static bool parse_time(struct hk_str s, int64_t *out_ms)
{
    if (hk_parse_rfc3339(s, out_ms, NULL) == HK_OK)
        return true;
    char zoned[HK_TIME_TEXT_MAX];
    if (s.len + 2 > sizeof zoned || memchr(s.ptr, '\0', s.len))
        return false;
    memcpy(zoned, s.ptr, s.len);
    zoned[s.len] = 'Z';
    return hk_parse_rfc3339((struct hk_str){zoned, s.len + 1}, out_ms, NULL) == HK_OK;
}

bool hk_sq_time(sqlite3_stmt *q, int column, int64_t *out_ms)
{
    *out_ms = 0;
    if (sqlite3_column_type(q, column) == SQLITE_NULL)
        return true;
    const char *text = (const char *)sqlite3_column_text(q, column);
    int len = sqlite3_column_bytes(q, column);
    if (!text || len <= 0)
        return true; /* '' is none, and so is an empty BLOB */
    return parse_time((struct hk_str){text, (size_t)len}, out_ms);
}

/* 0 stands for never: a message that expired in the very first millisecond of 1970 expired in the second. */
bool hk_sq_expiry(sqlite3_stmt *q, int column, int64_t *out_ms)
{
    int type = sqlite3_column_type(q, column);
    bool good = hk_sq_time(q, column, out_ms);
    if (good && *out_ms == 0 && type != SQLITE_NULL && sqlite3_column_bytes(q, column) > 0)
        *out_ms = 1;
    return good;
}

/* 0 = as the policy says. */
static bool max_attempts_at(sqlite3_stmt *q, int column, uint32_t *out)
{
    int type = sqlite3_column_type(q, column);
    *out = 0;
    if (type == SQLITE_NULL)
        return true;
    int64_t value = sqlite3_column_int64(q, column);
    if (type != SQLITE_INTEGER || value < 0 || value > UINT32_MAX)
        return false;
    *out = (uint32_t)value;
    return true;
}

void hk_sq_head(struct hk_store *store, sqlite3_stmt *q, enum hk_source source, struct hk_head *out)
{
    uint32_t max_attempts;
    *out = (struct hk_head){
        .source = source,
        .id = sqlite3_column_int64(q, HK_SQ_H_ID),
        .destination = hk_sq_text(store, q, HK_SQ_H_DESTINATION),
        .event_type = hk_sq_text(store, q, HK_SQ_H_EVENT_TYPE),
        .key = hk_sq_text(store, q, HK_SQ_H_KEY),
        .crashes = count_at(q, HK_SQ_H_CRASHES),
        .key_first = sqlite3_column_int(q, HK_SQ_H_FIRST) != 0,
    };
    if (!hk_sq_time(q, HK_SQ_H_NOT_BEFORE, &out->not_before_ms))
        out->malformed = "not_before";
    if (!hk_sq_expiry(q, HK_SQ_H_EXPIRES, &out->expires_ms))
        out->malformed = "expires_at";
    if (!max_attempts_at(q, HK_SQ_H_MAX_ATTEMPTS, &max_attempts))
        out->malformed = "max_attempts";
    if (!hk_encoding_is_known(borrow(store, q, HK_SQ_H_ENCODING)))
        out->malformed = "encoding";
    if (source == HK_FROM_RETRY)
        out->not_before_ms = 0;
}

static void read_past(struct hk_store *store, sqlite3_stmt *q, struct hk_message *out)
{
    out->crashes = count_at(q, HK_SQ_M_CRASHES);
    out->life = count_at(q, HK_SQ_M_LIFE);
    out->letter_id = sqlite3_column_int64(q, HK_SQ_M_LETTER);
    out->first_failed_ms = sqlite3_column_int64(q, HK_SQ_M_FIRST_FAILED);
    out->history.attempts = count_at(q, HK_SQ_M_ATTEMPTS);
    out->history.charged = count_at(q, HK_SQ_M_CHARGED);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        out->history.failures[c] = count_at(q, HK_SQ_M_FAILED + c - HK_CLASS_TRANSIENT);
    out->history.prev_wait_ms = size_at(q, HK_SQ_M_PREV_WAIT);
    out->history.first_attempt_ms = sqlite3_column_int64(q, HK_SQ_M_FIRST_ATTEMPT);
    out->history.paused_ms = size_at(q, HK_SQ_M_PAUSED);
    out->last_cause = hk_sq_text(store, q, HK_SQ_M_LAST_CAUSE);
    out->last_status = hk_answer_status(out->last_cause, hk_sq_text(store, q, HK_SQ_M_LAST_ERROR));
}

static void read_payload(struct hk_store *store, sqlite3_stmt *q, struct hk_message *out)
{
    struct hk_str raw = borrow(store, q, HK_SQ_M_PAYLOAD);
    out->payload = (struct hk_str){"", 0};
    out->oversized = raw.len > store->options.max_payload_bytes;
    if (!raw.len || out->oversized)
        return;
    enum hk_code rc = hk_codec_carried(out->encoding, raw, hk_sq_pool(store), &out->payload);
    out->undecodable = rc == HK_INVALID;
    if (rc == HK_NOMEM)
        hk_sq_fail(store, SQLITE_NOMEM);
    else if (rc == HK_OK && out->payload.ptr == raw.ptr)
        out->payload = hk_sq_text(store, q, HK_SQ_M_PAYLOAD); /* what is borrowed lives until the next row */
}

void hk_sq_message(struct hk_store *store, sqlite3_stmt *q, enum hk_source source, struct hk_message *out)
{
    *out = (struct hk_message){
        .source = source,
        .id = sqlite3_column_int64(q, HK_SQ_M_ID),
        .destination = hk_sq_text(store, q, HK_SQ_M_DESTINATION),
        .message_id = hk_sq_text(store, q, HK_SQ_M_MESSAGE_ID),
        .event_type = hk_sq_text(store, q, HK_SQ_M_EVENT_TYPE),
        .key = hk_sq_text(store, q, HK_SQ_M_KEY),
        .headers = hk_sq_text(store, q, HK_SQ_M_HEADERS),
        .content_type = hk_sq_text(store, q, HK_SQ_M_CONTENT_TYPE),
        .encoding = hk_sq_text(store, q, HK_SQ_M_ENCODING),
        .correlation_id = hk_sq_text(store, q, HK_SQ_M_CORRELATION_ID),
        .traceparent = hk_sq_text(store, q, HK_SQ_M_TRACEPARENT),
        .idempotency_key = hk_sq_text(store, q, HK_SQ_M_IDEMPOTENCY_KEY),
        .policy = hk_sq_text(store, q, HK_SQ_M_POLICY),
        .life = 1,
    };
    if (!hk_sq_time(q, HK_SQ_M_NOT_BEFORE, &out->not_before_ms))
        out->malformed = "not_before";
    if (!hk_sq_expiry(q, HK_SQ_M_EXPIRES, &out->expires_ms))
        out->malformed = "expires_at";
    if (!max_attempts_at(q, HK_SQ_M_MAX_ATTEMPTS, &out->max_attempts))
        out->malformed = "max_attempts";
    if (!hk_encoding_is_known(out->encoding))
        out->malformed = "encoding";
    if (!out->message_id.len)
        out->malformed = "message_id";
    out->timeout_ms = hk_target_timeout_ms(out->headers);
    if (!hk_sq_time(q, HK_SQ_M_CREATED, &out->created_ms))
        out->created_ms = 0; /* no more than a figure */
    read_payload(store, q, out);
    if (source == HK_FROM_RETRY)
        read_past(store, q, out);
}
