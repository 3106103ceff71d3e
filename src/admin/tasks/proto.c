/* SPDX-License-Identifier: Apache-2.0 */
/* Proto-JSON, read token by token: nothing is built but what the tables ask for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "admin/tasks/proto.h"
#include "base/base64.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/scan.h"

#define INT32_DIGITS_MAX 32
#define PATH_MAX_BYTES   160

struct reader {
    struct hk_json_scan scan;
    struct hk_pool *mem;
    struct hk_err *err;
    char path[PATH_MAX_BYTES]; /* where we are: "task.http_request"; "" = at the top */
    unsigned depth;
};

/* ---- what is wrong ---- */

static enum hk_code no_memory(struct reader *r)
{
    return hk_err_set(r->err, HK_NOMEM, "out of memory");
}

static enum hk_code not_json(struct reader *r)
{
    struct hk_err why = {.message = ""};
    (void)hk_scan_err(&r->scan, &why);
    return hk_err_set(r->err, HK_INVALID, "Invalid JSON payload received. %s", why.message);
}

static enum hk_code unknown_name(struct reader *r, struct hk_str name)
{
    char shown[HK_SHOW_MAX];
    if (!r->path[0])
        return hk_err_set(r->err, HK_INVALID,
                          "Invalid JSON payload received. Unknown name %s: Cannot find field.",
                          hk_show(name, shown));
    return hk_err_set(r->err, HK_INVALID,
                      "Invalid JSON payload received. Unknown name %s at '%s': Cannot find field.",
                      hk_show(name, shown), r->path);
}

static enum hk_code bad_value(struct reader *r, const struct hk_proto_field *f, const char *what)
{
    return hk_err_set(r->err, HK_INVALID, "Invalid value at '%s%s%s' (%s)", r->path, r->path[0] ? "." : "",
                      f->name, what);
}

static const char *const type_names[] = {
    [HK_PROTO_SKIP] = "value",
    [HK_PROTO_TEXT] = "TYPE_STRING",
    [HK_PROTO_BYTES] = "TYPE_BYTES: base64 is expected",
    [HK_PROTO_DURATION] = "type.googleapis.com/google.protobuf.Duration: such as \"3.5s\", not negative",
    [HK_PROTO_TIME] = "type.googleapis.com/google.protobuf.Timestamp: such as \"2026-01-01T00:00:00Z\"",
    [HK_PROTO_INT32] = "TYPE_INT32",
    [HK_PROTO_DOUBLE] = "TYPE_DOUBLE",
    [HK_PROTO_ENUM] = "TYPE_ENUM",
    [HK_PROTO_MAP] = "an object of strings is expected",
    [HK_PROTO_MESSAGE] = "an object is expected",
};

/* ---- single values ---- */

bool hk_proto_is_name(struct hk_str given, const char *name)
{
    if (hk_str_eq(given, hk_str_of(name)))
        return true;
    size_t i = 0;
    for (; *name; name++, i++) {
        char c = *name;
        if (c == '_' && name[1])
            c = (char)(*++name - 'a' + 'A');
        if (i >= given.len || given.ptr[i] != c)
            return false;
    }
    return i == given.len;
}

/* "3", "3.5", "0.000001": seconds to ms; what is below a millisecond counts as one. */
bool hk_proto_duration(struct hk_str text, int64_t *out_ms)
{
    int64_t s = 0, ms = 0, unit = 100;
    size_t i = 0, end = text.len ? text.len - 1 : 0;
    bool rest = false;
    if (text.len < 2 || text.ptr[end] != 's')
        return false;
    for (; i < end && hk_ascii_isdigit(text.ptr[i]); i++) {
        s = s * 10 + (text.ptr[i] - '0');
        if (s > INT64_C(315576000000))
            return false;
    }
    if (i == 0)
        return false;
    size_t dot = i;
    if (i < end && text.ptr[i++] != '.')
        return false;
    for (; i < end && hk_ascii_isdigit(text.ptr[i]); i++, unit /= 10) {
        ms += (text.ptr[i] - '0') * unit;
        rest = rest || (unit == 0 && text.ptr[i] != '0');
    }
    if (i != end || (dot < end && (i == dot + 1 || i > dot + 10)))
        return false;
    *out_ms = s * 1000 + ms + rest;
    return true;
}

bool hk_proto_enum(struct hk_str text, const struct hk_proto_word *words, int64_t *out)
{
    int64_t number = 0;
    bool is_number = hk_parse_i64(text, &number, NULL) == HK_OK;
    for (; words->name; words++)
        if (hk_str_eq(text, hk_str_of(words->name)) || (is_number && words->number == number)) {
            *out = words->number;
            return true;
        }
    return false;
}

static bool read_double(struct hk_str text, double *out)
{
    char room[INT32_DIGITS_MAX + 1];
    char *end = NULL;
    if (!text.len || !hk_str_copy(room, sizeof room, text) || strspn(room, "0123456789+-.eE") != text.len)
        return false;
    *out = strtod(room, &end);
    return end == room + text.len && isfinite(*out);
}

static bool read_int32(struct hk_str text, int64_t *out)
{
    double value = 0;
    if (hk_parse_i64(text, out, NULL) == HK_OK)
        return *out >= INT32_MIN && *out <= INT32_MAX;
    if (!read_double(text, &value) || value < INT32_MIN || value > INT32_MAX || floor(value) != value)
        return false;
    *out = (int64_t)value;
    return true;
}

/* Both alphabets, with padding or without. */
static bool read_bytes(struct hk_pool *mem, struct hk_str text, struct hk_str *out, bool *out_nomem)
{
    char *plain = hk_pool_copy(mem, text.ptr, text.len);
    size_t room = hk_base64_room(text.len), len = 0;
    unsigned char *bytes = hk_pool_alloc(mem, 1, room + 1);
    *out_nomem = !plain || !bytes;
    if (*out_nomem)
        return false;
    for (size_t i = 0; i < text.len; i++)
        plain[i] = plain[i] == '-' ? '+' : plain[i] == '_' ? '/' : plain[i];
    if (text.len && !hk_base64_decode((struct hk_str){plain, text.len}, HK_BASE64_BARE, bytes, room, &len))
        return false;
    *out = (struct hk_str){(const char *)bytes, len};
    return true;
}

/* ---- tokens ---- */

/* The text of a string token, in the pool. */
static enum hk_code take_text(struct reader *r, struct hk_str raw, struct hk_str *out)
{
    struct hk_buf text;
    hk_buf_init(&text, HK_PROTO_TEXT_MAX);
    enum hk_code rc = hk_scan_text(raw, &text);
    const char *copy = rc == HK_OK ? hk_pool_copy_str(r->mem, hk_buf_str(&text)) : NULL;
    if (copy)
        *out = (struct hk_str){copy, text.len};
    hk_buf_fini(&text);
    if (copy)
        return HK_OK;
    return rc == HK_TOOBIG
               ? hk_err_set(r->err, HK_INVALID, "Invalid JSON payload received. A value is too long.")
               : no_memory(r);
}

static enum hk_code set_scalar(struct reader *r, const struct hk_proto_field *f, struct hk_str text,
                               bool quoted, void *at)
{
    bool good = false, nomem = false;
    switch (f->kind) {
    case HK_PROTO_TEXT:
        good = quoted && !memchr(text.ptr, '\0', text.len);
        *(struct hk_str *)at = text;
        break;
    case HK_PROTO_BYTES:
        good = quoted && read_bytes(r->mem, text, at, &nomem);
        break;
    case HK_PROTO_DURATION:
        good = quoted && hk_proto_duration(text, at);
        break;
    case HK_PROTO_TIME:
        good = quoted && hk_parse_rfc3339(text, at, NULL) == HK_OK;
        break;
    case HK_PROTO_INT32:
        good = read_int32(text, at);
        break;
    case HK_PROTO_DOUBLE:
        good = read_double(text, at);
        break;
    case HK_PROTO_ENUM:
        good = hk_proto_enum(text, f->words, at);
        break;
    case HK_PROTO_SKIP:
    case HK_PROTO_MAP:
    case HK_PROTO_MESSAGE:
        break;
    }
    if (nomem)
        return no_memory(r);
    return good ? HK_OK : bad_value(r, f, type_names[f->kind]);
}

static enum hk_code read_map(struct reader *r, const struct hk_proto_field *f, struct hk_proto_map *map)
{
    struct hk_scan_token token;
    map->items = hk_pool_alloc(r->mem, HK_PROTO_MAP_MAX, sizeof *map->items);
    if (!map->items)
        return no_memory(r);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&r->scan, &token);
        struct hk_proto_pair *pair = &map->items[map->n];
        if (kind == HK_SCAN_OBJECT_END)
            return HK_OK;
        if (kind == HK_SCAN_ERROR)
            return not_json(r);
        if (map->n == HK_PROTO_MAP_MAX)
            return bad_value(r, f, "it has more than 128 entries");
        enum hk_code rc = take_text(r, token.raw, &pair->key);
        if (rc == HK_OK && hk_scan_next(&r->scan, &token) != HK_SCAN_STRING)
            return token.kind == HK_SCAN_ERROR ? not_json(r) : bad_value(r, f, type_names[f->kind]);
        if (rc == HK_OK)
            rc = take_text(r, token.raw, &pair->value);
        if (rc != HK_OK)
            return rc;
        map->n++;
    }
}

static enum hk_code read_message(struct reader *r, const struct hk_proto_type *type, void *out);

static enum hk_code read_inner(struct reader *r, const struct hk_proto_field *f, void *at)
{
    size_t was = strlen(r->path);
    (void)snprintf(r->path + was, sizeof r->path - was, "%s%s", was ? "." : "", f->name);
    if (++r->depth > HK_PROTO_DEPTH)
        return bad_value(r, f, "it lies too deep");
    enum hk_code rc = read_message(r, f->type, at);
    r->depth--;
    r->path[was] = '\0';
    return rc;
}

/* The value behind a key. `*out_given`: it is there, and is not null. */
static enum hk_code read_value(struct reader *r, const struct hk_proto_field *f, void *at, bool *out_given)
{
    struct hk_scan_token token;
    struct hk_str text = {"", 0};
    enum hk_scan_kind kind = hk_scan_next(&r->scan, &token);
    *out_given = kind != HK_SCAN_NULL;
    if (kind == HK_SCAN_ERROR)
        return not_json(r);
    if (kind == HK_SCAN_NULL)
        return HK_OK;
    if (f->kind == HK_PROTO_SKIP) {
        bool whole = (kind != HK_SCAN_OBJECT && kind != HK_SCAN_ARRAY) || hk_scan_leave(&r->scan);
        return whole ? HK_OK : not_json(r);
    }
    if (kind == HK_SCAN_OBJECT && f->kind == HK_PROTO_MESSAGE)
        return read_inner(r, f, at);
    if (kind == HK_SCAN_OBJECT && f->kind == HK_PROTO_MAP)
        return read_map(r, f, at);
    if (kind == HK_SCAN_NUMBER)
        return set_scalar(r, f, token.raw, false, at);
    if (kind != HK_SCAN_STRING)
        return bad_value(r, f, type_names[f->kind]);
    enum hk_code rc = take_text(r, token.raw, &text);
    return rc == HK_OK ? set_scalar(r, f, text, true, at) : rc;
}

static const struct hk_proto_field *find_field(const struct hk_proto_type *type, struct hk_str name)
{
    for (size_t i = 0; i < type->n; i++)
        if (hk_proto_is_name(name, type->fields[i].name))
            return &type->fields[i];
    return NULL;
}

/* Behind the opening bracket. */
static enum hk_code read_message(struct reader *r, const struct hk_proto_type *type, void *out)
{
    struct hk_scan_token token;
    char *base = out;
    uint32_t seen = 0, given = 0;
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&r->scan, &token);
        struct hk_str name = {"", 0};
        if (kind == HK_SCAN_ERROR)
            return not_json(r);
        if (kind == HK_SCAN_OBJECT_END)
            break;
        enum hk_code rc = take_text(r, token.raw, &name);
        const struct hk_proto_field *f = rc == HK_OK ? find_field(type, name) : NULL;
        if (rc != HK_OK || !f)
            return rc != HK_OK ? rc : unknown_name(r, name);
        uint32_t bit = UINT32_C(1) << (f - type->fields);
        bool here = false;
        if (seen & bit)
            return bad_value(r, f, "it is given twice");
        rc = read_value(r, f, base + f->offset, &here);
        if (rc != HK_OK)
            return rc;
        seen |= bit;
        given |= here ? bit : 0;
    }
    memcpy(base + type->given, &given, sizeof given);
    return HK_OK;
}

enum hk_code hk_proto_read(struct hk_str text, const struct hk_proto_type *type, struct hk_pool *mem,
                           void *out, struct hk_err *err)
{
    struct reader r = {.mem = mem, .err = err};
    struct hk_scan_token token;
    if (!hk_str_trim(text).len)
        return HK_OK;
    hk_scan_init(&r.scan, text);
    enum hk_scan_kind kind = hk_scan_next(&r.scan, &token);
    if (kind == HK_SCAN_ERROR)
        return not_json(&r);
    if (kind != HK_SCAN_OBJECT)
        return hk_err_set(err, HK_INVALID, "Invalid JSON payload received. The body must be a JSON object.");
    enum hk_code rc = read_message(&r, type, out);
    if (rc == HK_OK && hk_scan_next(&r.scan, &token) != HK_SCAN_END)
        rc = not_json(&r);
    return rc;
}

/* ---- writing ---- */

void hk_proto_put_duration(struct hk_json *json, const char *key, int64_t ms)
{
    char text[40];
    if (ms % 1000)
        (void)snprintf(text, sizeof text, "%" PRId64 ".%03ds", ms / 1000, (int)(ms % 1000));
    else
        (void)snprintf(text, sizeof text, "%" PRId64 "s", ms / 1000);
    hk_json_key(json, key);
    hk_json_cstr(json, text);
}

void hk_proto_put_time(struct hk_json *json, const char *key, int64_t ms)
{
    char text[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(ms, text);
    hk_json_key(json, key);
    hk_json_cstr(json, text);
}

void hk_proto_put_bytes(struct hk_json *json, const char *key, struct hk_str bytes)
{
    struct hk_buf coded;
    hk_buf_init(&coded, 2 * bytes.len + 16);
    (void)hk_buf_add_base64(&coded, bytes.ptr, bytes.len);
    hk_buf_inherit(json->out, &coded);
    hk_json_key(json, key);
    hk_json_str(json, hk_buf_str(&coded));
    hk_buf_fini(&coded);
}
