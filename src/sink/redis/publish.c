/* SPDX-License-Identifier: Apache-2.0 */
/* One message as a command: XADD, or a script that remembers its id as well. */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "sink/redis/impl.h"

static const char *const reserved[] = {"data", NULL};

const struct hk_fields_rule hk_redis_fields = {
    .names = {[HK_FIELD_OF_ID] = "id",
              [HK_FIELD_OF_TYPE] = "type",
              [HK_FIELD_OF_KEY] = "key",
              [HK_FIELD_OF_CORRELATION] = "correlation_id",
              [HK_FIELD_OF_TRACEPARENT] = "traceparent",
              [HK_FIELD_OF_IDEMPOTENCY] = "idempotency_key",
              [HK_FIELD_OF_CONTENT_TYPE] = "content_type",
              [HK_FIELD_OF_ATTEMPT] = "attempt"},
    .ce_prefix = "ce_",
    .reserved = reserved,
};

/* The entry and the note of its id are one step. The note holds the entry's id, so that a repeat is answered like the first time. */
static const char script[] = "local id=redis.call('GET',KEYS[2]) if id then return id end "
                             "local c={'XADD',KEYS[1]} "
                             "if ARGV[2]=='0' then c[#c+1]='NOMKSTREAM' end "
                             "if ARGV[3]~='0' then c[#c+1]='MAXLEN' c[#c+1]='~' c[#c+1]=ARGV[3] end "
                             "c[#c+1]='*' for i=4,#ARGV do c[#c+1]=ARGV[i] end "
                             "id=redis.call(unpack(c)) "
                             "if id then redis.call('SET',KEYS[2],id,'PX',ARGV[1]) end return id";

/* The part of a key that says in which slot of a cluster it is: what stands in the first braces, or all of it. */
static struct hk_str slot_of(struct hk_str key)
{
    const char *open = key.len ? memchr(key.ptr, '{', key.len) : NULL;
    size_t from = open ? (size_t)(open - key.ptr) + 1 : 0;
    const char *close = open ? memchr(open, '}', key.len - from + 1) : NULL;
    return close && close > open + 1 ? (struct hk_str){open + 1, (size_t)(close - open) - 1} : key;
}

static void add_note_key(struct hk_redis_sink *r, const struct hk_message *msg, struct hk_str stream)
{
    struct hk_buf key;
    struct hk_str slot = slot_of(stream);
    hk_buf_init(&key, (size_t)16 * 1024);
    (void)hk_buf_adds(&key, "hikyaku:{");
    (void)hk_buf_add(&key, slot.ptr, slot.len);
    (void)hk_buf_addf(&key, "}:%s:", r->broker.name);
    (void)hk_buf_add(&key, msg->message_id.ptr, msg->message_id.len);
    hk_resp_word(&r->conn->link.out, hk_buf_str(&key));
    hk_buf_inherit(&r->conn->link.out, &key);
    hk_buf_fini(&key);
}

static void add_xadd(struct hk_redis_sink *r, struct hk_str stream, size_t n_fields)
{
    struct hk_buf *out = &r->conn->link.out;
    hk_resp_begin(out, 3 + (r->create ? 0u : 1u) + (r->max_len ? 3u : 0u) + 2 * n_fields);
    hk_resp_text(out, "XADD");
    hk_resp_word(out, stream);
    if (!r->create)
        hk_resp_text(out, "NOMKSTREAM");
    if (r->max_len) {
        hk_resp_text(out, "MAXLEN");
        hk_resp_text(out, "~");
        hk_resp_u64(out, r->max_len);
    }
    hk_resp_text(out, "*");
}

static void add_script(struct hk_redis_sink *r, const struct hk_message *msg, struct hk_str stream,
                       size_t n_fields)
{
    struct hk_buf *out = &r->conn->link.out;
    hk_resp_begin(out, 8 + 2 * n_fields);
    hk_resp_text(out, "EVAL");
    hk_resp_text(out, script);
    hk_resp_text(out, "2");
    hk_resp_word(out, stream);
    add_note_key(r, msg, stream);
    hk_resp_u64(out, r->dedup_ms);
    hk_resp_text(out, r->create ? "1" : "0");
    hk_resp_u64(out, r->max_len);
}

static bool put(struct hk_redis_sink *r, const struct hk_message *msg)
{
    struct hk_buf *out = &r->conn->link.out;
    const struct hk_fields *fields = &r->broker.fields;
    struct hk_str stream = hk_buf_str(&r->broker.target);
    if (r->asking) {
        hk_resp_begin(out, 1);
        hk_resp_text(out, "ASKING");
    }
    if (r->dedup_ms)
        add_script(r, msg, stream, fields->n + 1);
    else
        add_xadd(r, stream, fields->n + 1);
    for (size_t i = 0; i < fields->n; i++) {
        hk_resp_word(out, fields->at[i].name);
        hk_resp_word(out, fields->at[i].value);
    }
    hk_resp_text(out, "data");
    (void)hk_buf_addf(out, "$%zu\r\n", msg->payload.len);
    return hk_link_put(&r->conn->link) &&
           hk_link_write(&r->conn->link, msg->payload.ptr, msg->payload.len) == HK_OK &&
           hk_link_write(&r->conn->link, "\r\n", 2) == HK_OK;
}

enum hk_code hk_redis_publish(struct hk_broker *b, struct hk_flight *f, struct hk_err *err)
{
    struct hk_redis_sink *r = (struct hk_redis_sink *)b;
    char shown[HK_SHOW_MAX];
    enum hk_code rc = hk_fields_make(&b->fields, &hk_redis_fields, b->ce_source, f->msg, f->attempt, err);
    struct hk_str stream = hk_broker_target(b, r->stream, f->msg);
    if (rc == HK_OK && (hk_buf_status(&r->broker.target) != HK_OK || !stream.len))
        rc = hk_err_set(err, HK_INVALID, "stream %s cannot be a name", hk_show(stream, shown));
    if (rc == HK_OK &&
        ((r->asking && !hk_flights_skip(&r->conn->flights)) || !hk_flights_add(&r->conn->flights, f)))
        rc = hk_err_set(err, HK_NOMEM, "the server leaves too many messages without a reply");
    if (rc == HK_OK && !put(r, f->msg))
        rc = hk_err_set(err, HK_NOMEM, "out of memory"); /* and the link has failed */
    return rc;
}
