/* SPDX-License-Identifier: Apache-2.0 */
/* From a typed request to path, query and body; and how a route's path is matched. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "desk/wire.h"

#define PATH_MAX_BYTES ((size_t)64 << 10)
#define BODY_MAX_BYTES ((size_t)96 << 20)

/* ---- routes ---- */

struct hk_str hk_route_method(const char *route)
{
    struct hk_str rest = hk_str_of(route);
    return hk_str_cut(&rest, ' ');
}

const char *hk_route_path(const char *route)
{
    return strchr(route, ' ') + 1;
}

bool hk_route_in_query(const char *route)
{
    struct hk_str method = hk_route_method(route);
    return hk_str_eq(method, hk_str_of("GET")) || hk_str_eq(method, hk_str_of("DELETE"));
}

/* The next part between slashes. */
static struct hk_str next_part(struct hk_str *rest)
{
    (void)hk_str_cut(rest, '/'); /* the prefix of the path: nothing, or the part before */
    const char *end = rest->ptr ? memchr(rest->ptr, '/', rest->len) : NULL;
    struct hk_str part = {rest->ptr, end ? (size_t)(end - rest->ptr) : rest->len};
    *rest = end ? (struct hk_str){end, rest->len - part.len} : (struct hk_str){NULL, 0};
    return part;
}

static bool is_hole(struct hk_str part)
{
    return part.ptr && part.len > 2 && part.ptr[0] == '{';
}

bool hk_route_fits(const char *route, struct hk_str path)
{
    struct hk_str ours = hk_str_of(hk_route_path(route));
    while (ours.len > 0 && path.len > 0) {
        struct hk_str want = next_part(&ours), part = next_part(&path);
        if (is_hole(want) ? part.len == 0 : !hk_str_eq(want, part))
            return false;
    }
    return ours.len == 0 && path.len == 0;
}

enum hk_code hk_route_take(const char *route, struct hk_str path, struct hk_wire *wire, struct hk_err *err)
{
    struct hk_str ours = hk_str_of(hk_route_path(route));
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && ours.len > 0) {
        struct hk_str want = next_part(&ours), part = next_part(&path);
        if (!is_hole(want))
            continue;
        const char *name = hk_pool_copy(wire->mem, want.ptr + 1, want.len - 2);
        rc = name ? hk_wire_add_path(wire, name, part, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    }
    return rc;
}

/* ---- values ---- */

void hk_wire_out_init(struct hk_wire_out *out)
{
    *out = (struct hk_wire_out){.method = ""};
    hk_buf_init(&out->path, PATH_MAX_BYTES);
    hk_buf_init(&out->body, BODY_MAX_BYTES);
}

void hk_wire_out_fini(struct hk_wire_out *out)
{
    hk_buf_fini(&out->path);
    hk_buf_fini(&out->body);
}

static void add_encoded(struct hk_buf *out, struct hk_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || strchr("-._~", c))
            (void)hk_buf_addc(out, c);
        else
            (void)hk_buf_addf(out, "%%%02X", (unsigned char)c);
    }
}

/* Where values go: a query, or the members of a JSON object. */
struct writing {
    struct hk_wire_out *out;
    struct hk_json json;
    bool in_query, any;
};

static void put_text(struct writing *w, const char *name, struct hk_str text)
{
    if (!w->in_query) {
        hk_json_key(&w->json, name);
        hk_json_str(&w->json, text);
        return;
    }
    (void)hk_buf_addc(&w->out->path, w->any ? '&' : '?');
    w->any = true;
    (void)hk_buf_adds(&w->out->path, name);
    (void)hk_buf_addc(&w->out->path, '=');
    add_encoded(&w->out->path, text);
}

static void put_number(struct writing *w, const char *name, const char *digits)
{
    if (w->in_query) {
        put_text(w, name, hk_str_of(digits));
        return;
    }
    hk_json_key(&w->json, name);
    hk_json_raw(&w->json, hk_str_of(digits));
}

static void put_flag(struct writing *w, const char *name, bool set)
{
    if (set)
        put_number(w, name, "true");
}

static void put_texts(struct writing *w, const char *name, const struct hk_texts *texts)
{
    if (texts->n == 0)
        return;
    if (!w->in_query) {
        hk_json_key(&w->json, name);
        hk_json_array(&w->json);
    }
    for (size_t i = 0; i < texts->n; i++) {
        if (w->in_query)
            put_text(w, name, hk_str_of(texts->items[i]));
        else
            hk_json_cstr(&w->json, texts->items[i]);
    }
    if (!w->in_query)
        hk_json_end(&w->json);
}

static enum hk_code put_bytes(struct writing *w, const char *name, struct hk_str bytes, struct hk_err *err)
{
    struct hk_buf text;
    char coded[64];
    if (!bytes.ptr)
        return HK_OK;
    if (hk_utf8_is_text(bytes)) {
        put_text(w, name, bytes);
        return HK_OK;
    }
    (void)snprintf(coded, sizeof coded, "%s_base64", name);
    hk_buf_init(&text, BODY_MAX_BYTES);
    enum hk_code rc = hk_buf_add_base64(&text, bytes.ptr, bytes.len);
    if (rc == HK_OK)
        put_text(w, coded, hk_buf_str(&text));
    else
        (void)hk_err_set(err, rc, "%s is too large to be sent", name);
    hk_buf_fini(&text);
    return rc;
}

static void put_counted(struct writing *w, const struct hk_arg *a, const void *at)
{
    char text[HK_DURATION_TEXT_MAX];
    uint64_t n = 0;
    memcpy(&n, at, sizeof n);
    if (n == (a->fallback > 0 ? (uint64_t)a->fallback : 0))
        return;
    if (a->kind == HK_ARG_DURATION) {
        (void)hk_format_duration(n, text);
        put_text(w, a->name, hk_str_of(text));
    } else {
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)n);
        if (n > INT64_MAX) /* more than readers of JSON keep of a number */
            put_text(w, a->name, hk_str_of(text));
        else
            put_number(w, a->name, text);
    }
}

static void put_rate(struct writing *w, const struct hk_arg *a, const void *at)
{
    char text[64];
    double rate = 0;
    memcpy(&rate, at, sizeof rate);
    if (rate < a->fallback || rate > a->fallback) {
        (void)snprintf(text, sizeof text, "%.10f", rate);
        put_number(w, a->name, text);
    }
}

static enum hk_code put_field(struct writing *w, const struct hk_arg *a, const void *at, struct hk_err *err)
{
    const char *text = NULL;
    switch (a->kind) {
    case HK_ARG_FLAG:
        put_flag(w, a->name, *(const bool *)at);
        break;
    case HK_ARG_NUMBER:
    case HK_ARG_DURATION:
        put_counted(w, a, at);
        break;
    case HK_ARG_RATE:
        put_rate(w, a, at);
        break;
    case HK_ARG_TEXTS:
        put_texts(w, a->name, at);
        break;
    case HK_ARG_BYTES:
        return put_bytes(w, a->name, *(const struct hk_str *)at, err);
    case HK_ARG_TEXT:
    case HK_ARG_CHOICE:
    case HK_ARG_POLICY:
        memcpy(&text, at, sizeof text);
        if (text)
            put_text(w, a->name, hk_str_of(text));
        break;
    case HK_ARG_FILE:
        memcpy(&text, at, sizeof text);
        if (text)
            return hk_err_set(err, HK_UNSUPPORTED, "a file cannot be named over HTTP");
        break;
    }
    return HK_OK;
}

/* ---- the whole ---- */

static bool is_in_path(const char *route, const char *name)
{
    char hole[80];
    (void)snprintf(hole, sizeof hole, "{%s}", name);
    return strstr(route, hole) != NULL;
}

/* The text of a subject of the path: "" if it is not given, which fits no route. */
static struct hk_str subject_text(const struct hk_op *op, const void *request, struct hk_str name)
{
    const char *text = NULL;
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (hk_str_eq(hk_str_of(a->name), name))
            memcpy(&text, (const char *)request + a->offset, sizeof text);
    return hk_str_of(text);
}

static void put_path(const struct hk_op *op, const void *request, struct hk_buf *out)
{
    struct hk_str rest = hk_str_of(hk_route_path(op->route));
    while (rest.len > 0) {
        struct hk_str part = next_part(&rest);
        (void)hk_buf_addc(out, '/');
        if (is_hole(part))
            add_encoded(out, subject_text(op, request, (struct hk_str){part.ptr + 1, part.len - 2}));
        else
            (void)hk_buf_add(out, part.ptr, part.len);
    }
}

enum hk_code hk_wire_write(const struct hk_op *op, const void *request, const struct hk_wire_caller *caller,
                           struct hk_wire_out *out, struct hk_err *err)
{
    struct writing w = {.out = out};
    enum hk_code rc = HK_OK;
    if (!op->route)
        return hk_err_set(err, HK_UNSUPPORTED, "this cannot be asked over HTTP");
    (void)hk_str_copy(out->method_text, sizeof out->method_text, hk_route_method(op->route));
    out->method = out->method_text;
    w.in_query = hk_route_in_query(op->route);
    put_path(op, request, &out->path);
    hk_json_init(&w.json, &out->body, false);
    if (!w.in_query)
        hk_json_object(&w.json);
    for (const struct hk_arg *a = op->args; rc == HK_OK && a && a->name; a++)
        if (!is_in_path(op->route, a->name))
            rc = put_field(&w, a, (const char *)request + a->offset, err);
    if (caller->reason && (op->needs_reason || op->reveals))
        put_text(&w, "reason", hk_str_of(caller->reason));
    put_flag(&w, "reveal", caller->reveal && op->reveals);
    put_flag(&w, "background", caller->background && op->job);
    if (!w.in_query)
        hk_json_end(&w.json);
    if (rc == HK_OK && (hk_buf_status(&out->path) != HK_OK || hk_buf_status(&out->body) != HK_OK))
        rc = hk_err_set(err, HK_TOOBIG, "the request is too large to be sent");
    return rc;
}

enum hk_code hk_wire_write_fields(const struct hk_op *op, const void *request, struct hk_buf *out,
                                  struct hk_err *err)
{
    struct writing w = {.out = NULL};
    enum hk_code rc = HK_OK;
    hk_json_init(&w.json, out, false);
    hk_json_object(&w.json);
    for (const struct hk_arg *a = op->args; rc == HK_OK && a && a->name; a++)
        rc = put_field(&w, a, (const char *)request + a->offset, err);
    hk_json_end(&w.json);
    if (rc == HK_OK && hk_buf_status(out) != HK_OK)
        rc = hk_err_set(err, hk_buf_status(out), "the request is too large");
    return rc;
}
