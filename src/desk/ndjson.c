/* SPDX-License-Identifier: Apache-2.0 */
/* jansson says whether a line is JSON and gives its texts. Where an application's own JSON stands in it (payload, headers)
 * the bytes are taken from the line itself: printed again, 1.0 or a large number might not be what they were. */
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "desk/ndjson.h"

/* ---- the bytes of a member, in a line that is known to be an object ---- */

static size_t skip_blank(struct hk_str s, size_t at)
{
    while (at < s.len && memchr(" \t\r\n", s.ptr[at], 4) != NULL)
        at++;
    return at;
}

static size_t skip_string(struct hk_str s, size_t at)
{
    for (at++; at < s.len && s.ptr[at] != '"'; at++)
        if (s.ptr[at] == '\\')
            at++;
    return at + 1;
}

static size_t skip_value(struct hk_str s, size_t at)
{
    size_t depth = 0;
    while (at < s.len) {
        char c = s.ptr[at];
        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        if (depth == 0 && (c == ',' || c == '}'))
            break;
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
        at++;
    }
    while (at > 0 && memchr(" \t\r\n", s.ptr[at - 1], 4) != NULL)
        at--;
    return at < s.len ? at : s.len;
}

struct hk_str hk_ndjson_raw(struct hk_str line, const char *name)
{
    struct hk_str wanted = hk_str_of(name);
    size_t at = skip_blank(line, skip_blank(line, 0) + 1);
    while (at < line.len && line.ptr[at] == '"') {
        size_t key = at, key_end = skip_string(line, at);
        size_t value = skip_blank(line, skip_blank(line, key_end) + 1);
        size_t end = skip_value(line, value);
        if (key_end <= line.len && end > value &&
            hk_str_eq((struct hk_str){line.ptr + key + 1, key_end - key - 2}, wanted))
            return (struct hk_str){line.ptr + value, end - value};
        at = skip_blank(line, skip_blank(line, end) + 1);
    }
    return (struct hk_str){NULL, 0};
}

/* ---- columns ---- */

static enum hk_code text(const json_t *value, const char *key, const char **out, struct hk_err *err)
{
    if (json_is_null(value))
        return HK_OK;
    if (!json_is_string(value))
        return hk_err_set(err, HK_INVALID, "%s must be a string", key);
    if (strlen(json_string_value(value)) != json_string_length(value))
        return hk_err_set(err, HK_INVALID, "%s must not hold a NUL character", key);
    *out = json_string_value(value);
    return HK_OK;
}

static enum hk_code time_text(const json_t *value, const char *key, const char **out, struct hk_err *err)
{
    int64_t ms = 0;
    enum hk_code rc = text(value, key, out, err);
    if (rc == HK_OK && *out != NULL && hk_parse_rfc3339(hk_str_of(*out), &ms, NULL) != HK_OK)
        return hk_err_set(err, HK_INVALID, "%s must be a time such as 2026-11-15T08:30:00Z", key);
    return rc;
}

static enum hk_code max_attempts(const json_t *value, uint32_t *out, struct hk_err *err)
{
    double n = json_number_value(value);
    if (json_is_null(value))
        return HK_OK;
    if (!json_is_number(value) || !(n >= 1) || n > 1000000 || n != (double)(uint32_t)n)
        return hk_err_set(err, HK_INVALID, "max_attempts must be a whole number from 1 to 1000000");
    *out = (uint32_t)n;
    return HK_OK;
}

static enum hk_code payload(struct hk_ndjson *m, struct hk_str line, const json_t *value, struct hk_err *err)
{
    struct hk_str raw = {json_string_value(value), json_string_length(value)};
    if (json_is_null(value))
        return HK_OK;
    if (!json_is_string(value))
        raw = hk_ndjson_raw(line, "payload");
    if (raw.ptr == NULL)
        return hk_err_set(err, HK_INVALID, "the name payload must be written without escapes");
    m->item.message.payload = raw.ptr;
    m->item.message.payload_len = raw.len;
    return HK_OK;
}

static enum hk_code headers(struct hk_ndjson *m, struct hk_str line, const json_t *value, struct hk_err *err)
{
    if (json_is_null(value))
        return HK_OK;
    if (!json_is_object(value))
        return hk_err_set(err, HK_INVALID, "headers must be an object of strings");
    struct hk_str raw = hk_ndjson_raw(line, "headers");
    if (raw.ptr == NULL)
        return hk_err_set(err, HK_INVALID, "the name headers must be written without escapes");
    m->headers = hk_mem_strndup(raw.ptr, raw.len);
    if (m->headers == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    m->item.message.headers = m->headers;
    return HK_OK;
}

static enum hk_code encoding(const json_t *value, const char **out, struct hk_err *err)
{
    enum hk_code rc = text(value, "encoding", out, err);
    if (rc == HK_OK && *out != NULL && strcmp(*out, "utf8") != 0 && strcmp(*out, "base64") != 0 &&
        strcmp(*out, "sealed") != 0)
        return hk_err_set(err, HK_INVALID, "encoding must be utf8, base64 or sealed");
    return rc;
}

static const struct {
    const char *name, *schema;
} columns[] = {
    {"destination", "{\"type\":[\"string\",\"null\"],\"description\":\"default: the routes decide\"}"},
    {"event_type", "{\"type\":\"string\",\"minLength\":1}"},
    {"payload",
     "{\"description\":\"a text, sent as it is; or any other JSON value, byte for byte as it is written\"}"},
    {"message_id", "{\"type\":[\"string\",\"null\"],\"description\":\"default: generated\"}"},
    {"message_key",
     "{\"type\":[\"string\",\"null\"],\"description\":\"messages of one key keep their order\"}"},
    {"headers", "{\"type\":[\"object\",\"null\"],\"additionalProperties\":{\"type\":\"string\"}}"},
    {"content_type", "{\"type\":[\"string\",\"null\"]}"},
    {"correlation_id", "{\"type\":[\"string\",\"null\"]}"},
    {"traceparent", "{\"type\":[\"string\",\"null\"]}"},
    {"idempotency_key",
     "{\"type\":[\"string\",\"null\"],\"description\":\"sent to the receiver; default: message_id\"}"},
    {"not_before", "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"},
    {"expires_at", "{\"type\":[\"string\",\"null\"],\"format\":\"date-time\"}"},
    {"policy", "{\"type\":[\"string\",\"null\"]}"},
    {"max_attempts", "{\"type\":[\"integer\",\"null\"],\"minimum\":1,\"maximum\":1000000}"},
    {"encoding", "{\"enum\":[\"utf8\",\"base64\",\"sealed\",null]}"},
};

enum {
    N_COLUMNS = sizeof columns / sizeof columns[0]
};

void hk_ndjson_schema(struct hk_json *json)
{
    hk_json_key(json, "type");
    hk_json_cstr(json, "object");
    hk_json_key(json, "additionalProperties");
    hk_json_bool(json, false);
    hk_json_key(json, "required");
    hk_json_raw(json, hk_str_of("[\"event_type\"]"));
    hk_json_key(json, "properties");
    hk_json_object(json);
    for (size_t i = 0; i < N_COLUMNS; i++) {
        hk_json_key(json, columns[i].name);
        hk_json_raw(json, hk_str_of(columns[i].schema));
    }
    hk_json_end(json);
}

static enum hk_code unknown(const char *key, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    hk_show(hk_str_of(key), shown);
    for (size_t i = 0; i < N_COLUMNS; i++)
        if (hk_str_distance(columns[i].name, key) <= 2)
            return hk_err_set(err, HK_INVALID, "there is no column %s; did you mean %s?", shown,
                              columns[i].name);
    return hk_err_set(err, HK_INVALID, "there is no column %s", shown);
}

static enum hk_code member(struct hk_ndjson *m, struct hk_str line, const char *key, const json_t *value,
                           struct hk_err *err)
{
    struct hk_outbox_message *msg = &m->item.message;

    const struct {
        const char *name;
        const char **out;
    } texts[] = {{"destination", &msg->destination},
                 {"event_type", &msg->event_type},
                 {"message_id", &msg->message_id},
                 {"message_key", &msg->message_key},
                 {"content_type", &msg->content_type},
                 {"correlation_id", &msg->correlation_id},
                 {"traceparent", &msg->traceparent},
                 {"idempotency_key", &msg->idempotency_key},
                 {"policy", &msg->policy}};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(key, texts[i].name) == 0)
            return text(value, key, texts[i].out, err);
    if (strcmp(key, "payload") == 0)
        return payload(m, line, value, err);
    if (strcmp(key, "headers") == 0)
        return headers(m, line, value, err);
    if (strcmp(key, "not_before") == 0)
        return time_text(value, key, &msg->not_before, err);
    if (strcmp(key, "expires_at") == 0)
        return time_text(value, key, &msg->expires_at, err);
    if (strcmp(key, "max_attempts") == 0)
        return max_attempts(value, &msg->max_attempts, err);
    if (strcmp(key, "encoding") == 0)
        return encoding(value, &m->item.encoding, err);
    return unknown(key, err);
}

static enum hk_code members(struct hk_ndjson *m, struct hk_str line, struct hk_err *err)
{
    json_t *root = m->root;
    if (!json_is_object(root))
        return hk_err_set(err, HK_INVALID, "not an object");
    for (void *i = json_object_iter(root); i != NULL; i = json_object_iter_next(root, i)) {
        enum hk_code rc = member(m, line, json_object_iter_key(i), json_object_iter_value(i), err);
        if (rc != HK_OK)
            return rc;
    }
    if (m->item.message.event_type == NULL || m->item.message.event_type[0] == '\0')
        return hk_err_set(err, HK_INVALID, "event_type is missing");
    return HK_OK;
}

enum hk_code hk_ndjson_read(struct hk_str line, struct hk_ndjson *out, struct hk_err *err)
{
    struct hk_ndjson m = {.line = hk_mem_strndup(line.ptr, line.len)};
    json_error_t error;
    if (m.line == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct hk_str copy = {m.line, line.len};
    /* as reals: a payload may hold numbers that no int64_t does */
    m.root = json_loadb(copy.ptr, copy.len, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL,
                        &error);
    enum hk_code rc = HK_OK;
    if (m.root == NULL) {
        char shown[HK_SHOW_MAX];
        rc = json_error_code(&error) == json_error_out_of_memory
                 ? hk_err_set(err, HK_NOMEM, "out of memory")
                 : hk_err_set(err, HK_INVALID, "not JSON, at column %d: %s", error.column,
                              hk_show(hk_str_of(error.text), shown));
    } else {
        rc = members(&m, copy, err);
    }
    if (rc == HK_OK)
        *out = m;
    else
        hk_ndjson_free(&m);
    return rc;
}

void hk_ndjson_free(struct hk_ndjson *message)
{
    json_decref(message->root);
    hk_mem_free(message->headers);
    hk_mem_free(message->line);
    *message = (struct hk_ndjson){.root = NULL};
}
