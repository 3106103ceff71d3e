/* SPDX-License-Identifier: Apache-2.0 */
/* URLs with fields of the message, and CloudEvents in structured mode. */
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "payload/scan.h"
#include "sink/http/body.h"

/* ---- URLs ---- */

static const char *const fields[] = {HK_URL_EVENT_TYPE, HK_URL_MESSAGE_KEY, HK_URL_DESTINATION};

enum {
    N_FIELDS = sizeof fields / sizeof fields[0]
};

/* Which of them stands at `at`; N_FIELDS: none. */
static size_t field_at(const char *at)
{
    size_t i = 0;
    while (i < N_FIELDS && strncmp(at, fields[i], strlen(fields[i])) != 0)
        i++;
    return i;
}

bool hk_url_is_template(const char *url)
{
    for (const char *at = strchr(url, '{'); at; at = strchr(at + 1, '{'))
        if (field_at(at) < N_FIELDS)
            return true;
    return false;
}

/* Everything but what RFC 3986 calls unreserved: a value is one part of a path, or one of a query. */
static void add_encoded(struct hk_buf *out, struct hk_str s)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (hk_ascii_isalpha(s.ptr[i]) || hk_ascii_isdigit(s.ptr[i]) || memchr("-._~", s.ptr[i], 4))
            (void)hk_buf_addc(out, s.ptr[i]);
        else
            (void)hk_buf_add(out, escape, sizeof escape);
    }
}

enum hk_code hk_url_fill(const char *url, const char *destination, const struct hk_message *msg,
                         struct hk_buf *out, struct hk_err *err)
{
    const struct hk_str values[N_FIELDS] = {msg->event_type, msg->key, hk_str_of(destination)};
    hk_buf_reset(out);
    for (const char *at = url; *at;) {
        size_t f = *at == '{' ? field_at(at) : (size_t)N_FIELDS;
        if (f == N_FIELDS) {
            (void)hk_buf_addc(out, *at++);
            continue;
        }
        if (!values[f].len || hk_str_eq(values[f], hk_str_of(".")) || hk_str_eq(values[f], hk_str_of("..")))
            return hk_err_set(err, HK_INVALID, "the destination's url needs %s, which this message %s",
                              fields[f], values[f].len ? "has as dots alone" : "has not");
        add_encoded(out, values[f]);
        at += strlen(fields[f]);
    }
    if (hk_buf_status(out) == HK_OK)
        return HK_OK;
    return hk_buf_status(out) == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                                          : hk_err_set(err, HK_INVALID, "the url would be too long");
}

/* ---- CloudEvents ---- */

bool hk_body_is_json(struct hk_str type)
{
    struct hk_str rest = type;
    struct hk_str name = hk_str_trim(hk_str_cut(&rest, ';'));
    static const char *const ends[] = {"/json", "+json"};
    for (size_t i = 0; i < 2; i++) {
        size_t n = strlen(ends[i]);
        if (name.len > n && hk_str_eqi((struct hk_str){name.ptr + name.len - n, n}, hk_str_of(ends[i])))
            return true;
    }
    return false;
}

static void put_text(struct hk_json *json, const char *key, struct hk_str value)
{
    if (!value.len)
        return;
    hk_json_key(json, key);
    hk_json_str(json, value);
}

void hk_body_put_base64(struct hk_json *json, const char *key, struct hk_str payload)
{
    hk_json_key(json, key);
    hk_json_raw(json, hk_str_of("\"")); /* the string's end is added below */
    (void)hk_buf_add_base64(json->out, (const unsigned char *)payload.ptr, payload.len);
    (void)hk_buf_addc(json->out, '"');
}

bool hk_body_has_json(const struct hk_message *msg)
{
    return !msg->content_type.len || hk_body_is_json(msg->content_type);
}

void hk_body_put_data(struct hk_json *json, const struct hk_message *msg)
{
    if (!msg->payload.len)
        return;
    if (!hk_body_has_json(msg)) {
        hk_body_put_base64(json, "data_base64", msg->payload);
        return;
    }
    hk_json_key(json, "data");
    hk_json_raw(json, msg->payload);
}

enum hk_code hk_body_event(const char *source, const struct hk_message *msg, struct hk_buf *out,
                           struct hk_err *err)
{
    struct hk_json json;
    char time[HK_TIME_TEXT_MAX];
    struct hk_str type = msg->content_type.len ? msg->content_type : hk_str_of("application/json");
    if (!msg->event_type.len)
        return hk_err_set(err, HK_INVALID, "a CloudEvent needs an event_type");
    if (hk_body_has_json(msg) && msg->payload.len && hk_scan_check(msg->payload, NULL) != HK_OK)
        return hk_err_set(
            err, HK_INVALID,
            "its content type is JSON, and its payload is not: it cannot be put into a CloudEvent");
    (void)hk_format_rfc3339(msg->created_ms, time);
    hk_buf_reset(out);
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_text(&json, "specversion", hk_str_of("1.0"));
    put_text(&json, "id", msg->message_id);
    put_text(&json, "source", hk_str_of(source));
    put_text(&json, "type", msg->event_type);
    put_text(&json, "time", hk_str_of(time));
    put_text(&json, "correlationid", msg->correlation_id);
    if (hk_request_is_traceparent(msg->traceparent))
        put_text(&json, "traceparent", msg->traceparent);
    put_text(&json, "datacontenttype", type);
    hk_body_put_data(&json, msg);
    hk_json_end(&json);
    if (hk_buf_status(out) == HK_OK)
        return HK_OK;
    return hk_buf_status(out) == HK_NOMEM ? hk_err_set(err, HK_NOMEM, "out of memory")
                                          : hk_err_set(err, HK_INVALID, "the CloudEvent would be too large");
}
