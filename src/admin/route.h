/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of the admin server, without HTTP: one table of routes, and a reply for every request. Each row has a role, which is
 * checked in one place, so that no handler can forget it. */
#ifndef HK_ADMIN_ROUTE_H
#define HK_ADMIN_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "desk/op.h"
#include "observe/health.h"
#include "observe/metrics.h"

/* What handlers look at. They run on the server's thread. */
struct hk_admin_site {
    struct hk_health *health;
    struct hk_metrics *metrics;
    /* Before metrics are shown: what is true at that moment. Never blocks. */
    void (*refresh)(void *arg);
    void *arg;
    int64_t (*now_ms)(void); /* the clock that `health` counts on */
    const char *ui_dir;      /* the dashboard's files, in place of those in the program; NULL: none */
};

struct hk_admin_request {
    const char *method, *path;
    const char *host;  /* the Host header; NULL = none */
    bool has_body;     /* it is not read */
    enum hk_role role; /* of who asks */
    bool
        loopback_only; /* the listener is for this machine: a Host that is not is a page that was lured here */
};

#define HK_ADMIN_REPLY_MAX ((size_t)64 << 20)

#define HK_ADMIN_REPLY_HEADERS 8
#define HK_ADMIN_VALUE_MAX     256

struct hk_admin_header {
    const char *name; /* a constant */
    char value[HK_ADMIN_VALUE_MAX];
};

struct hk_admin_reply {
    unsigned status;
    const char *content_type; /* a constant; NULL: no body */
    const char *allow;        /* of a 405, a constant; else NULL */
    const char *cache;        /* Cache-Control, a constant; NULL: no-store */
    struct hk_admin_header headers[HK_ADMIN_REPLY_HEADERS];
    size_t n_headers;
    bool
        download; /* of a stream: it has an end that the client must know, so that only its writer ends it well */
    struct hk_buf body;
};

/* An empty reply with this status. `body` is the caller's (hk_buf_fini) until it is given away. */
void hk_admin_reply_init(struct hk_admin_reply *reply, unsigned status);
/* Adds a header: ETag, Location, Retry-After and the like. `name` is a constant. HK_TOOBIG: no room, or the value is too long;
 * HK_INVALID: it has characters that would begin another header. Nothing is added then. */
enum hk_code hk_admin_reply_header(struct hk_admin_reply *reply, const char *name, struct hk_str value);

/* Is this a path of the table, for somebody with this role? Then hk_admin_answer answers it at once. Others must show who they are
 * first. */
bool hk_admin_route_has(const char *path, enum hk_role role);
/* Always a reply. `body` is freed by the caller (hk_buf_fini). */
void hk_admin_answer(const struct hk_admin_site *site, const struct hk_admin_request *request,
                     struct hk_admin_reply *out);
/* RFC 9457. `detail` may be NULL. */
void hk_admin_problem(struct hk_admin_reply *out, unsigned status, const char *detail);

/* The handlers (pages.c). */
void hk_admin_livez(const struct hk_admin_site *site, struct hk_admin_reply *out);
void hk_admin_readyz(const struct hk_admin_site *site, struct hk_admin_reply *out);
void hk_admin_metrics(const struct hk_admin_site *site, struct hk_admin_reply *out);

#endif
