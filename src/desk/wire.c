/* SPDX-License-Identifier: Apache-2.0 */
/* From what was given to a typed request. jansson reads the body; nothing of it is trusted. */
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/base64.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "base/url.h"
#include "base/utf8.h"
#include "desk/ndjson.h"
#include "desk/wire.h"

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- collecting ---- */

enum hk_code hk_wire_init(struct hk_wire *wire, struct hk_pool *mem, struct hk_err *err)
{
    *wire = (struct hk_wire){.mem = mem, .items = hk_pool_alloc(mem, HK_WIRE_GIVEN_MAX, sizeof *wire->items)};
    return wire->items ? HK_OK : no_memory(err);
}

/* `text` is copied. */
static enum hk_code add(struct hk_wire *wire, const char *name, struct hk_str text, enum hk_given_kind kind,
                        struct hk_err *err)
{
    if (wire->n == HK_WIRE_GIVEN_MAX)
        return hk_err_set(err, HK_TOOBIG, "more than %d values were given", HK_WIRE_GIVEN_MAX);
    const char *copy = hk_pool_copy_str(wire->mem, text);
    if (!copy)
        return no_memory(err);
    wire->items[wire->n++] = (struct hk_given){.name = name, .text = {copy, text.len}, .kind = kind};
    return HK_OK;
}

/* %XX and, in a query, +. Text that is not UTF-8 or holds a NUL is refused: no operation takes it. */
static enum hk_code decode(struct hk_wire *wire, struct hk_str raw, bool plus, struct hk_str *out,
                           struct hk_err *err)
{
    char *text = hk_pool_copy_str(wire->mem, raw);
    if (!text)
        return no_memory(err);
    for (size_t i = 0; plus && i < raw.len; i++)
        text[i] = text[i] == '+' ? ' ' : text[i];
    size_t n = hk_url_decode((struct hk_str){text, raw.len}, text, raw.len);
    text[n] = '\0';
    *out = (struct hk_str){text, n};
    return hk_utf8_is_text(*out) ? HK_OK
                                 : hk_err_set(err, HK_INVALID, "the URL holds what is not UTF-8 text");
}

enum hk_code hk_wire_add_path(struct hk_wire *wire, const char *name, struct hk_str part, struct hk_err *err)
{
    struct hk_str text;
    enum hk_code rc = decode(wire, part, false, &text, err);
    return rc == HK_OK ? add(wire, name, text, HK_GIVEN_TEXT, err) : rc;
}

enum hk_code hk_wire_add_query(struct hk_wire *wire, struct hk_str query, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && query.len > 0) {
        struct hk_str value = hk_str_cut(&query, '&'), name = hk_str_cut(&value, '='), key, text;
        if (name.len == 0 && !value.ptr)
            continue;
        rc = decode(wire, name, true, &key, err);
        if (rc == HK_OK)
            rc = decode(wire, value.ptr ? value : (struct hk_str){"", 0}, true, &text, err);
        if (rc == HK_OK)
            rc = add(wire, key.ptr, text, HK_GIVEN_TEXT, err);
    }
    return rc;
}

static enum hk_code add_value(struct hk_wire *wire, const char *name, const json_t *value, struct hk_err *err)
{
    char number[64];
    switch (json_typeof(value)) {
    case JSON_STRING:
        return add(wire, name, (struct hk_str){json_string_value(value), json_string_length(value)},
                   HK_GIVEN_TEXT, err);
    case JSON_TRUE:
        return add(wire, name, hk_str_of("true"), HK_GIVEN_TRUE, err);
    case JSON_FALSE:
        return add(wire, name, hk_str_of("false"), HK_GIVEN_FALSE, err);
    case JSON_INTEGER:
        (void)snprintf(number, sizeof number, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        return add(wire, name, hk_str_of(number), HK_GIVEN_NUMBER, err);
    case JSON_REAL:
        (void)snprintf(number, sizeof number, "%.17g", json_real_value(value));
        return add(wire, name, hk_str_of(number), HK_GIVEN_NUMBER, err);
    case JSON_OBJECT:
    case JSON_ARRAY:
    case JSON_NULL:
        break;
    }
    return add(wire, name, (struct hk_str){"", 0}, HK_GIVEN_JSON, err);
}

static bool takes_bytes(const struct hk_op *op, const char *name)
{
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (a->kind == HK_ARG_BYTES && strcmp(a->name, name) == 0)
            return true;
    return false;
}

static enum hk_code add_member(struct hk_wire *wire, struct hk_str body, const char *key, const json_t *value,
                               struct hk_err *err)
{
    const char *name = hk_pool_copy_str(wire->mem, hk_str_of(key));
    enum hk_code rc = HK_OK;
    if (!name)
        return no_memory(err);
    if (json_is_null(value))
        return HK_OK;
    if (body.ptr && !json_is_string(value)) {
        struct hk_str raw = hk_ndjson_raw(body, key);
        wire->wrong = name;
        return raw.ptr ? add(wire, name, raw, HK_GIVEN_JSON, err)
                       : hk_err_set(err, HK_INVALID, "must be written without escapes in its name");
    }
    if (!json_is_array(value))
        return add_value(wire, name, value, err);
    if (json_array_size(value) == 0) { /* ignored, it would be a filter that does not filter */
        wire->wrong = name;
        return hk_err_set(err, HK_INVALID, "is an empty list: leave it out, or list something");
    }
    if (json_array_size(value) > HK_WIRE_ITEMS_MAX) {
        wire->wrong = name;
        return hk_err_set(err, HK_TOOBIG, "takes at most %d items", HK_WIRE_ITEMS_MAX);
    }
    for (size_t i = 0; rc == HK_OK && i < json_array_size(value); i++) {
        rc = add_value(wire, name, json_array_get(value, i), err);
        if (rc == HK_OK)
            wire->items[wire->n - 1].listed = true;
    }
    return rc;
}

enum hk_code hk_wire_add_body(struct hk_wire *wire, const struct hk_op *op, struct hk_str json,
                              struct hk_err *err)
{
    json_error_t error;
    char shown[HK_SHOW_MAX];
    enum hk_code rc = HK_OK;
    json_t *root = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!root && json_error_code(&error) == json_error_out_of_memory)
        return no_memory(err);
    if (!root)
        return hk_err_set(err, HK_INVALID, "the body is not JSON: line %d, column %d: %s", error.line,
                          error.column, hk_show(hk_str_of(error.text), shown));
    if (!json_is_object(root))
        rc = hk_err_set(err, HK_INVALID, "the body must be a JSON object");
    for (void *i = json_object_iter(root); rc == HK_OK && i; i = json_object_iter_next(root, i)) {
        const char *key = json_object_iter_key(i);
        /* An application's own JSON is taken as it was written: printed again, some byte might change. */
        struct hk_str whole = takes_bytes(op, key) ? json : (struct hk_str){NULL, 0};
        rc = add_member(wire, whole, key, json_object_iter_value(i), err);
    }
    json_decref(root);
    return rc;
}

/* ---- reading ---- */

struct reading {
    struct hk_wire *wire;
    struct hk_err *err;
};

static enum hk_code wrong(struct reading *r, const char *field, const char *takes,
                          const struct hk_given * not )
{
    char shown[HK_SHOW_MAX];
    r->wire->wrong = field;
    if (not ->kind == HK_GIVEN_JSON)
        return hk_err_set(r->err, HK_INVALID, "takes %s, not an object or a list", takes);
    return hk_err_set(r->err, HK_INVALID, "takes %s, not %s", takes, hk_show(not ->text, shown));
}

/* The value of a name; NULL: not given. If it is given twice, `rc` becomes an error. */
static const struct hk_given *one(struct reading *r, const char *name, enum hk_code *rc)
{
    const struct hk_given *found = NULL;
    for (size_t i = 0; i < r->wire->n; i++) {
        if (strcmp(r->wire->items[i].name, name) != 0)
            continue;
        if (found) {
            r->wire->wrong = name;
            *rc = hk_err_set(r->err, HK_INVALID, "takes one value, and was given several");
            return NULL;
        }
        found = &r->wire->items[i];
    }
    if (found && found->listed) {
        r->wire->wrong = name;
        *rc = hk_err_set(r->err, HK_INVALID, "takes one value, not a list");
        return NULL;
    }
    return found;
}

static enum hk_code read_flag(struct reading *r, const char *name, const struct hk_given *g, bool *out)
{
    bool yes = g->kind == HK_GIVEN_TRUE || hk_str_eq(g->text, hk_str_of("true"));
    bool no = g->kind == HK_GIVEN_FALSE || hk_str_eq(g->text, hk_str_of("false"));
    if (g->kind == HK_GIVEN_NUMBER || (!yes && !no))
        return wrong(r, name, "true or false", g);
    *out = yes;
    return HK_OK;
}

static enum hk_code read_number(struct reading *r, const struct hk_arg *a, const struct hk_given *g, void *at)
{
    uint64_t hi = a->hi <= 0 ? UINT64_MAX : a->hi < (double)INT64_MAX ? (uint64_t)a->hi : INT64_MAX;
    uint64_t n = 0;
    char takes[128];
    bool whole = g->kind != HK_GIVEN_JSON && hk_parse_u64(g->text, &n, NULL) == HK_OK;
    if (!whole || n < (uint64_t)a->lo || n > hi) {
        (void)snprintf(takes, sizeof takes, "a whole number from %.0f to %llu", a->lo,
                       (unsigned long long)hi);
        return wrong(r, a->name, takes, g);
    }
    memcpy(at, &n, sizeof n);
    return HK_OK;
}

static enum hk_code read_duration(struct reading *r, const struct hk_arg *a, const struct hk_given *g,
                                  void *at)
{
    uint64_t ms = 0, hi = a->hi <= 0 ? HK_DURATION_MAX_MS : (uint64_t)a->hi;
    char takes[2 * HK_DURATION_TEXT_MAX + 64], least[HK_DURATION_TEXT_MAX], most[HK_DURATION_TEXT_MAX];
    bool good = g->kind == HK_GIVEN_TEXT && hk_parse_duration(g->text, &ms, NULL) == HK_OK;
    if (!good || ms < (uint64_t)a->lo || ms > hi) {
        (void)hk_format_duration((uint64_t)a->lo, least);
        (void)hk_format_duration(hi, most);
        (void)snprintf(takes, sizeof takes, "a duration from %s to %s, such as \"90s\" or \"1h30m\"", least,
                       most);
        return wrong(r, a->name, takes, g);
    }
    memcpy(at, &ms, sizeof ms);
    return HK_OK;
}

static enum hk_code read_rate(struct reading *r, const struct hk_arg *a, const struct hk_given *g, void *at)
{
    double rate = 0;
    char takes[160];
    bool good = g->kind == HK_GIVEN_NUMBER ? hk_parse_decimal(g->text, &rate, NULL) == HK_OK
                                           : hk_parse_rate(g->text, &rate, NULL) == HK_OK;
    if (!good || rate < a->lo || (a->hi > 0 && rate > a->hi)) {
        (void)snprintf(takes, sizeof takes, "a rate from %g/s to %.0f/s, such as \"100/s\" or \"6000/m\"",
                       a->lo, a->hi);
        return wrong(r, a->name, takes, g);
    }
    memcpy(at, &rate, sizeof rate);
    return HK_OK;
}

/* Operations take C strings. */
static enum hk_code read_text(struct reading *r, const struct hk_arg *a, const struct hk_given *g,
                              const char **out)
{
    bool text = g->kind == HK_GIVEN_TEXT || g->kind == HK_GIVEN_NUMBER;
    if (!text || strlen(g->text.ptr) != g->text.len)
        return wrong(r, a->name, "a text", g);
    *out = g->text.ptr;
    return HK_OK;
}

static bool is_choice(const char *choices, const char *value)
{
    struct hk_str rest = hk_str_of(choices);
    while (rest.len > 0)
        if (hk_str_eq(hk_str_cut(&rest, ' '), hk_str_of(value)))
            return true;
    return false;
}

static enum hk_code read_choice(struct reading *r, const struct hk_arg *a, const struct hk_given *g,
                                const char **out)
{
    char takes[256];
    enum hk_code rc = read_text(r, a, g, out);
    if (rc != HK_OK || is_choice(a->choices, *out))
        return rc;
    (void)snprintf(takes, sizeof takes, "one of: %s", a->choices);
    return wrong(r, a->name, takes, g);
}

static enum hk_code read_texts(struct reading *r, const struct hk_arg *a, struct hk_texts *out)
{
    const char **items = hk_pool_alloc(r->wire->mem, r->wire->n + 1, sizeof *items);
    enum hk_code rc = items ? HK_OK : no_memory(r->err);
    size_t n = 0;
    for (size_t i = 0; rc == HK_OK && i < r->wire->n; i++)
        if (strcmp(r->wire->items[i].name, a->name) == 0)
            rc = read_text(r, a, &r->wire->items[i], &items[n++]);
    if (rc == HK_OK)
        *out = (struct hk_texts){items, n};
    return rc;
}

static enum hk_code read_base64(struct reading *r, const char *name, const struct hk_given *g,
                                struct hk_str *out)
{
    size_t room = hk_base64_room(g->text.len), len = 0;
    unsigned char *bytes = hk_pool_alloc(r->wire->mem, 1, room + 1);
    if (!bytes)
        return no_memory(r->err);
    if (g->kind != HK_GIVEN_TEXT || !hk_base64_decode(g->text, HK_BASE64_BARE, bytes, room, &len))
        return wrong(r, name, "bytes as base64", g);
    *out = (struct hk_str){(const char *)bytes, len};
    return HK_OK;
}

/* "payload": a text, or any JSON value as it was written; or "payload_base64". */
static enum hk_code read_bytes(struct reading *r, const struct hk_arg *a, struct hk_str *out)
{
    enum hk_code rc = HK_OK;
    char name[64];
    (void)snprintf(name, sizeof name, "%s_base64", a->name);
    const struct hk_given *text = one(r, a->name, &rc), *coded = one(r, name, &rc);
    if (rc != HK_OK)
        return rc;
    if (text && coded) {
        r->wire->wrong = a->name;
        return hk_err_set(r->err, HK_INVALID, "and %s cannot be given together", name);
    }
    if (coded)
        return read_base64(r, coded->name, coded, out);
    if (text)
        *out = text->text;
    return HK_OK;
}

static enum hk_code read_single(struct reading *r, const struct hk_arg *a, const struct hk_given *g, void *at)
{
    switch (a->kind) {
    case HK_ARG_FLAG:
        return read_flag(r, a->name, g, at);
    case HK_ARG_NUMBER:
        return read_number(r, a, g, at);
    case HK_ARG_DURATION:
        return read_duration(r, a, g, at);
    case HK_ARG_RATE:
        return read_rate(r, a, g, at);
    case HK_ARG_CHOICE:
        return read_choice(r, a, g, at);
    case HK_ARG_TEXT:
    case HK_ARG_POLICY:
        return read_text(r, a, g, at);
    case HK_ARG_FILE:
        return wrong(r, a->name, "nothing over HTTP: files of the server are not read", g);
    case HK_ARG_TEXTS:
    case HK_ARG_BYTES:
        break; /* read_field has them */
    }
    return HK_OK;
}

static void set_fallback(const struct hk_arg *a, void *at)
{
    uint64_t n = a->fallback > 0 ? (uint64_t)a->fallback : 0;
    if (a->kind == HK_ARG_NUMBER || a->kind == HK_ARG_DURATION)
        memcpy(at, &n, sizeof n);
    else if (a->kind == HK_ARG_RATE)
        memcpy(at, &a->fallback, sizeof a->fallback);
}

static enum hk_code read_field(struct reading *r, const struct hk_arg *a, void *at)
{
    enum hk_code rc = HK_OK;
    if (a->kind == HK_ARG_TEXTS)
        return read_texts(r, a, at);
    if (a->kind == HK_ARG_BYTES)
        return read_bytes(r, a, at);
    const struct hk_given *g = one(r, a->name, &rc);
    if (rc != HK_OK)
        return rc;
    if (g)
        return read_single(r, a, g, at);
    set_fallback(a, at);
    if (!a->subject || !a->required)
        return HK_OK;
    r->wire->wrong = a->name;
    return hk_err_set(r->err, HK_INVALID, "is missing");
}

static bool knows(const struct hk_op *op, const char *name)
{
    for (const struct hk_arg *a = op->args; a && a->name; a++) {
        size_t len = strlen(a->name);
        if (strcmp(a->name, name) == 0 || (a->kind == HK_ARG_BYTES && strncmp(a->name, name, len) == 0 &&
                                           strcmp(name + len, "_base64") == 0))
            return true;
    }
    return (strcmp(name, "reason") == 0 && (op->needs_reason || op->reveals)) ||
           (strcmp(name, "reveal") == 0 && op->reveals) || (strcmp(name, "background") == 0 && op->job);
}

/* A name that is ignored would be a filter that does not filter. */
static enum hk_code refuse_unknown(struct reading *r, const struct hk_op *op)
{
    for (size_t i = 0; i < r->wire->n; i++) {
        const char *name = r->wire->items[i].name;
        if (knows(op, name))
            continue;
        r->wire->wrong = name;
        for (const struct hk_arg *a = op->args; a && a->name; a++)
            if (hk_str_distance(a->name, name) <= 2)
                return hk_err_set(r->err, HK_INVALID, "is unknown; did you mean %s?", a->name);
        return hk_err_set(r->err, HK_INVALID, "is unknown");
    }
    return HK_OK;
}

/* `reveal` is an ordinary field of an operation that reveals nothing: `token create`. */
static enum hk_code read_caller(struct reading *r, const struct hk_op *op, struct hk_wire_caller *out)
{
    static const struct hk_arg reason_arg = {.name = "reason", .kind = HK_ARG_TEXT};
    enum hk_code rc = HK_OK;
    *out = (struct hk_wire_caller){.reason = NULL};
    const struct hk_given *reason = one(r, "reason", &rc);
    const struct hk_given *reveal = op->reveals ? one(r, "reveal", &rc) : NULL;
    const struct hk_given *background = op->job ? one(r, "background", &rc) : NULL;
    if (rc == HK_OK && reason)
        rc = read_text(r, &reason_arg, reason, &out->reason);
    if (rc == HK_OK && out->reason && reason->text.len >= HK_WIRE_REASON_MAX) {
        r->wire->wrong = "reason";
        rc = hk_err_set(r->err, HK_TOOBIG, "is longer than %d bytes", HK_WIRE_REASON_MAX - 1);
    }
    if (rc == HK_OK && reveal)
        rc = read_flag(r, "reveal", reveal, &out->reveal);
    if (rc == HK_OK && background)
        rc = read_flag(r, "background", background, &out->background);
    return rc;
}

enum hk_code hk_wire_read(struct hk_wire *wire, const struct hk_op *op, void *request,
                          struct hk_wire_caller *out_caller, struct hk_err *err)
{
    struct reading r = {.wire = wire, .err = err};
    wire->wrong = NULL;
    enum hk_code rc = refuse_unknown(&r, op);
    for (const struct hk_arg *a = op->args; rc == HK_OK && a && a->name; a++)
        rc = read_field(&r, a, (char *)request + a->offset);
    return rc == HK_OK ? read_caller(&r, op, out_caller) : rc;
}
