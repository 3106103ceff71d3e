/* SPDX-License-Identifier: Apache-2.0 */
/* What the admin server answers, without HTTP: one table of routes, and a reply for every request. A role stands in each row,
 * and is checked in one place, so that no handler can forget it. */
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

struct hk_admin_reply {
    unsigned status;
    const char *content_type;
    const char *allow; /* of a 405; else NULL */
    struct hk_buf body;
};

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
