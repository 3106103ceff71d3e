/* SPDX-License-Identifier: Apache-2.0 */
/* What runs beside the relay in one process: metrics and the admin server, figures for people, telemetry, alerts. Each is a
 * part: it is started before the relay, told of reloads, and stopped after it. A part that cannot start keeps the relay from
 * starting (its configuration is wrong, or its port is taken); once started it never stops or slows the relay. */
#ifndef HK_DAEMON_PART_H
#define HK_DAEMON_PART_H

#include "config/config.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "relay/relay.h"

/* Outlives all parts, but for `config` and `relay`, which change. Parts look at it from the loop's thread only. */
struct hk_part_env {
    struct hk_loop *loop;
    const struct hk_config *config; /* the one that is used */
    const char *url;                /* of the store */
    const char *name, *boot;        /* the relay's */
    struct hk_log *log;
    struct hk_relay *relay; /* NULL until it runs, and after it has ended */
};

struct hk_part_ops {
    const char *name;
    /* `out_watch` is zeroed; what is set in it is called from the relay's start on. `*out_part` NULL: not wanted by the
     * configuration, nothing runs. */
    enum hk_code (*start)(const struct hk_part_env *env, void **out_part, struct hk_watch *out_watch,
                          struct hk_err *err);
    void (*reloaded)(void *part); /* env->config is a new one, the old one is still there; may be NULL */
    void (*stop)(void *part);     /* the relay has ended; bounded */
};

#define HK_PARTS_MAX 8
extern const struct hk_part_ops *const hk_parts[]; /* up to a NULL */

struct hk_parts {
    struct hk_part_env *env;
    void *parts[HK_PARTS_MAX];
    struct hk_watch watches[HK_PARTS_MAX];
    size_t n; /* started, or not wanted */
};

/* All, or none. */
enum hk_code hk_parts_start(struct hk_parts *parts, struct hk_part_env *env, struct hk_err *err) HK_MUSTCHECK;
void hk_parts_reloaded(struct hk_parts *parts);
void hk_parts_stop(struct hk_parts *parts); /* may be called again */

#endif
