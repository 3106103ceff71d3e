/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routes, and the way from a request to a row: is it addressed to us, is there such a path for who asks, does
 * it take the method. */
#include <string.h>

#include "admin/gate.h"
#include "admin/problem.h"
#include "admin/route.h"
#include "base/str.h"

struct route {
    const char *method; /* GET answers HEAD, too */
    const char *path;
    enum hk_role role;
    void (*handle)(const struct hk_admin_site *site, struct hk_admin_reply *out);
};

static const struct route routes[] = {
    {"GET", "/livez", HK_ROLE_NONE, hk_admin_livez},
    {"GET", "/readyz", HK_ROLE_NONE, hk_admin_readyz},
    {"GET", "/metrics", HK_ROLE_METRICS, hk_admin_metrics},
};

enum {
    N_ROUTES = sizeof routes / sizeof routes[0]
};

/* ---- replies ---- */

void hk_admin_reply_init(struct hk_admin_reply *reply, unsigned status)
{
    *reply = (struct hk_admin_reply){.status = status};
    hk_buf_init(&reply->body, HK_ADMIN_REPLY_MAX);
}

enum hk_code hk_admin_reply_header(struct hk_admin_reply *reply, const char *name, struct hk_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 0x7f)
            return HK_INVALID;
    }
    if (reply->n_headers == HK_ADMIN_REPLY_HEADERS ||
        !hk_str_copy(reply->headers[reply->n_headers].value, HK_ADMIN_VALUE_MAX, value))
        return HK_TOOBIG;
    reply->headers[reply->n_headers++].name = name;
    return HK_OK;
}

/* Of what is refused before it reaches an operation. */
static const char *code_of(unsigned status)
{
    switch (status) {
    case 400:
        return "INVALID";
    case 403:
        return "DENIED";
    case 404:
        return "NO_SUCH_PATH";
    case 405:
        return "METHOD_NOT_ALLOWED";
    case 413:
        return "TOOBIG";
    case 421:
        return "MISDIRECTED";
    case 503:
        return "UNAVAILABLE";
    default: /* a number, not an enum of ours */
        return NULL;
    }
}

void hk_admin_problem(struct hk_admin_reply *out, unsigned status, const char *detail)
{
    out->status = status;
    out->content_type = "application/problem+json";
    hk_buf_reset(&out->body);
    hk_problem_write(&(struct hk_problem){.status = status, .code = code_of(status), .detail = detail},
                     &out->body);
}

/* ---- is it for us? ---- */

static bool takes(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(route->method, "GET") == 0 && strcmp(method, "HEAD") == 0);
}

bool hk_admin_route_has(const char *path, enum hk_role role)
{
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (strcmp(routes[i].path, path) == 0 && routes[i].role <= role)
            return true;
    }
    return false;
}

static const struct route *find(const struct hk_admin_request *request, bool *out_other_method)
{
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (strcmp(routes[i].path, request->path) != 0 || routes[i].role > request->role)
            continue;
        if (takes(&routes[i], request->method))
            return &routes[i];
        *out_other_method = true;
    }
    return NULL;
}

void hk_admin_answer(const struct hk_admin_site *site, const struct hk_admin_request *request,
                     struct hk_admin_reply *out)
{
    bool other_method = false;
    hk_admin_reply_init(out, 200);
    const struct route *route = find(request, &other_method);
    if (request->loopback_only && request->host && !hk_gate_names_loopback(request->host)) {
        hk_admin_problem(out, 421, "this address is for this machine: ask for localhost");
    } else if (other_method) {
        hk_admin_problem(out, 405, NULL);
        out->allow = "GET, HEAD"; /* as long as all rows are GET */
    } else if (!route) {
        hk_admin_problem(out, 404, NULL);
    } else if (request->has_body) {
        hk_admin_problem(out, 413, "a request without a body is expected");
    } else {
        route->handle(site, out);
        if (hk_buf_status(&out->body) != HK_OK)
            hk_admin_problem(out, 503, "out of memory for the answer");
    }
}
