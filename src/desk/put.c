/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON objects. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "desk/put.h"

#define BYTES_MAX ((size_t)256 << 20)

void hk_put_cstr(struct hk_json *json, const char *key, const char *s)
{
    hk_json_key(json, key);
    hk_json_cstr(json, s);
}

void hk_put_str(struct hk_json *json, const char *key, struct hk_str s)
{
    hk_json_key(json, key);
    if (s.len == 0)
        hk_json_null(json);
    else
        hk_json_str(json, s);
}

void hk_put_u64(struct hk_json *json, const char *key, uint64_t value)
{
    hk_json_key(json, key);
    hk_json_u64(json, value);
}

void hk_put_limit(struct hk_json *json, const char *key, uint64_t value)
{
    hk_json_key(json, key);
    if (value == 0)
        hk_json_null(json);
    else
        hk_json_u64(json, value);
}

void hk_put_i64(struct hk_json *json, const char *key, int64_t value)
{
    hk_json_key(json, key);
    hk_json_i64(json, value);
}

void hk_put_bool(struct hk_json *json, const char *key, bool value)
{
    hk_json_key(json, key);
    hk_json_bool(json, value);
}

void hk_put_double(struct hk_json *json, const char *key, double value)
{
    hk_json_key(json, key);
    hk_json_double(json, value);
}

void hk_put_id(struct hk_json *json, const char *key, int64_t id)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRId64, id);
    hk_put_str(json, key, hk_str_of(id != 0 ? text : ""));
}

void hk_put_time(struct hk_json *json, const char *key, int64_t ms)
{
    char text[HK_TIME_TEXT_MAX] = "";
    if (ms != 0)
        (void)hk_format_rfc3339(ms, text);
    hk_put_str(json, key, hk_str_of(text));
}

void hk_put_bytes(struct hk_json *json, const char *key, struct hk_str bytes)
{
    char name[64];
    struct hk_buf text;
    if (hk_utf8_is_text(bytes)) {
        hk_json_key(json, key);
        hk_json_str(json, bytes);
        return;
    }
    (void)snprintf(name, sizeof name, "%s_base64", key);
    hk_buf_init(&text, BYTES_MAX);
    (void)hk_buf_add_base64(&text, bytes.ptr, bytes.len);
    hk_json_key(json, name);
    hk_json_str(json, hk_buf_str(&text));
    if (hk_buf_status(&text) != HK_OK)
        json->out->status = hk_buf_status(&text);
    hk_buf_fini(&text);
}
