/* SPDX-License-Identifier: Apache-2.0 */
/* One way to write a problem, and one table from our codes to HTTP's. */
#include <stdbool.h>

#include "admin/problem.h"
#include "base/json.h"
#include "config/definition.h"
#include "desk/put.h"

static const struct {
    unsigned status;
    const char *title;
} titles[] = {
    {400, "Bad Request"},         {401, "Unauthorized"},          {403, "Forbidden"},
    {404, "Not Found"},           {405, "Method Not Allowed"},    {409, "Conflict"},
    {412, "Precondition Failed"}, {413, "Content Too Large"},     {415, "Unsupported Media Type"},
    {421, "Misdirected Request"}, {422, "Unprocessable Content"}, {428, "Precondition Required"},
    {429, "Too Many Requests"},   {500, "Internal Server Error"}, {501, "Not Implemented"},
    {502, "Bad Gateway"},         {503, "Service Unavailable"},   {504, "Gateway Timeout"},
};

static const char *title_of(unsigned status)
{
    for (size_t i = 0; i < sizeof titles / sizeof titles[0]; i++)
        if (titles[i].status == status)
            return titles[i].title;
    return "Error";
}

/* RFC 6901: a name may hold any character. */
static void add_pointer(struct hk_buf *out, const char *field)
{
    (void)hk_buf_adds(out, "#/");
    for (const char *c = field; *c != '\0'; c++) {
        if (*c == '~')
            (void)hk_buf_adds(out, "~0");
        else if (*c == '/')
            (void)hk_buf_adds(out, "~1");
        else
            (void)hk_buf_addc(out, *c);
    }
}

static void put_error(struct hk_json *json, const struct hk_problem *p, const char *below, const char *about)
{
    struct hk_buf pointer;
    hk_buf_init(&pointer, json->out->max);
    add_pointer(&pointer, p->field);
    (void)hk_buf_adds(&pointer, below ? below : "");
    hk_json_object(json);
    hk_put_cstr(json, p->in_body ? "pointer" : "parameter", p->in_body ? hk_buf_cstr(&pointer) : p->field);
    hk_put_cstr(json, "detail", about);
    hk_json_end(json);
    hk_buf_inherit(json->out, &pointer);
    hk_buf_fini(&pointer);
}

static void put_field(struct hk_json *json, const struct hk_problem *p)
{
    bool many = p->wrongs && p->wrongs->n > 1;
    hk_json_key(json, "errors");
    hk_json_array(json);
    for (size_t i = 0; many && i < p->wrongs->n; i++)
        put_error(json, p, p->wrongs->items[i].pointer, p->wrongs->items[i].message);
    if (!many)
        put_error(json, p, p->below, p->about);
    hk_json_end(json);
}

void hk_problem_write(const struct hk_problem *p, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_put_cstr(&json, "type", "about:blank");
    hk_put_cstr(&json, "title", title_of(p->status));
    hk_json_key(&json, "status");
    hk_json_u64(&json, p->status);
    if (p->detail)
        hk_put_cstr(&json, "detail", p->detail);
    if (p->code)
        hk_put_cstr(&json, "code", p->code);
    if (p->field)
        put_field(&json, p);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

unsigned hk_problem_status(enum hk_code code)
{
    switch (code) {
    case HK_OK:
        return 200;
    case HK_INVALID:
    case HK_RANGE:
        return 400;
    case HK_DENIED:
        return 403;
    case HK_NOTFOUND:
        return 404;
    case HK_EXISTS:
    case HK_CONFLICT:
    case HK_BUSY: /* the message is in flight, the store is locked: the same call may work in a moment */
        return 409;
    case HK_TOOBIG:
        return 413;
    case HK_UNSUPPORTED:
        return 501;
    case HK_TIMEOUT:
        return 504;
    case HK_NOMEM:
    case HK_UNAVAILABLE:
    case HK_CANCELLED:
        return 503;
    case HK_GAVE_UP:
        return 502;
    case HK_IO:
    case HK_NCODES:
        break;
    }
    return 500;
}
