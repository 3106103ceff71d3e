/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/json.h"
#include "base/named.h"
#include "base/str.h"

#define JSON_MAX ((size_t)65536)

struct hk_named hk_named_str(const char *name, struct hk_str text)
{
    return (struct hk_named){.name = name, .text = text};
}

struct hk_named hk_named_cstr(const char *name, const char *text)
{
    return hk_named_str(name, hk_str_of(text));
}

struct hk_named hk_named_id(const char *name, int64_t id)
{
    return (struct hk_named){.name = name, .kind = HK_NAMED_ID, .number = id, .text = {"", 0}};
}

struct hk_named hk_named_int(const char *name, int64_t number)
{
    return (struct hk_named){.name = name, .kind = HK_NAMED_NUMBER, .number = number, .text = {"", 0}};
}

struct hk_named hk_named_count(const char *name, uint64_t number)
{
    return hk_named_int(name, number > INT64_MAX ? INT64_MAX : (int64_t)number);
}

static void write_value(struct hk_json *json, const struct hk_named *v)
{
    char id[24];
    switch (v->kind) {
    case HK_NAMED_TEXT:
        hk_json_str(json, v->text);
        break;
    case HK_NAMED_NUMBER:
        hk_json_i64(json, v->number);
        break;
    case HK_NAMED_ID:
        (void)snprintf(id, sizeof id, "%" PRId64, v->number);
        hk_json_cstr(json, id);
        break;
    }
}

static void write_values(const struct hk_named *values, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    for (const struct hk_named *v = values; v && v->name; v++) {
        hk_json_key(&json, v->name);
        write_value(&json, v);
    }
    hk_json_end(&json);
}

void hk_named_text(const struct hk_named *values, char *out, size_t room)
{
    struct hk_buf buf;
    hk_buf_init(&buf, room - 1);
    write_values(values, &buf);
    bool fits = hk_buf_status(&buf) == HK_OK;
    (void)hk_str_copy(out, room, fits ? hk_buf_str(&buf) : hk_str_of("{}"));
    hk_buf_fini(&buf);
}

struct hk_str hk_named_keep(const struct hk_named *values, struct hk_pool *mem)
{
    struct hk_buf buf;
    hk_buf_init(&buf, JSON_MAX);
    write_values(values, &buf);
    enum hk_code rc = hk_buf_status(&buf);
    struct hk_str json = rc == HK_TOOBIG ? hk_str_of("{}") : hk_buf_str(&buf);
    const char *kept = rc == HK_NOMEM ? NULL : hk_pool_copy_str(mem, json);
    struct hk_str out = {kept, kept ? json.len : 0};
    hk_buf_fini(&buf);
    return out;
}
