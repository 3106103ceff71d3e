/* SPDX-License-Identifier: Apache-2.0 */
/* The admin server's listeners, as configured: sockets, certificates, and the clients that each one admits. */
#ifndef HK_DAEMON_DOORS_H
#define HK_DAEMON_DOORS_H

#include "admin/server.h"
#include "base/pool.h"
#include "config/config.h"
#include "observe/log.h"

/* Outlives the server, which points into it; but for the sockets, which are the server's once it has been started. */
struct hk_doors {
    struct hk_admin_listener listeners[HK_ADMIN_LISTENERS];
    size_t n;
    struct hk_log *log;
    struct hk_pool pool; /* what `listeners` point to: a configuration goes with the next reload */
    struct hk_admin_tls *tls;
    const char *unix_path;
    int unix_lock;
};

/* Opens what is wanted; `n` 0: nothing is. HK_BUSY: an address that was asked for is taken. HK_INVALID: the configuration cannot be
 * followed. On an error nothing is left open. */
enum hk_code hk_doors_open(struct hk_doors *doors, const struct hk_conf_admin *admin, struct hk_log *log,
                           struct hk_err *err) HK_MUSTCHECK;
/* When no server was started: the sockets, too. */
void hk_doors_shut(struct hk_doors *doors);
void hk_doors_close(struct hk_doors *doors); /* after the server's end */
void hk_doors_reloaded(struct hk_doors *doors);

#endif
