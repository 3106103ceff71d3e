/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server: HTTP on a thread of its own, which nothing waits for. What it answers is route.h. */
#ifndef HK_ADMIN_SERVER_H
#define HK_ADMIN_SERVER_H

#include "admin/route.h"

struct hk_admin_server;

struct hk_admin_listener {
    int fd;            /* listening, non-blocking; the server's from now on, also when it cannot start */
    enum hk_role role; /* of whoever asks there */
    bool loopback_only;
};

#define HK_ADMIN_LISTENERS 2

/* `site` and what it points to outlive the server. */
enum hk_code hk_admin_server_start(const struct hk_admin_site *site,
                                   const struct hk_admin_listener *listeners, size_t n,
                                   struct hk_admin_server **out_server, struct hk_err *err) HK_MUSTCHECK;
/* At once: answers under way are cut. Accepts NULL. */
void hk_admin_server_stop(struct hk_admin_server *server);

#endif
