/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that run beside the relay in one process: metrics and the admin server, figures for people, telemetry, alerts, jobs. The
 * daemon starts a part before the relay, passes reloads to it, and stops it after the relay. A part that cannot start keeps the relay from
 * starting (its configuration is wrong, or its port is taken); once started it never stops or slows the relay. */
#ifndef HK_DAEMON_PART_H
#define HK_DAEMON_PART_H

#include "config/config.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "observe/metrics.h"
#include "relay/relay.h"

/* Outlives all parts, but for `config` and `relay`, which change. Parts look at it from the loop's thread only. */
struct hk_part_env {
    struct hk_loop *loop;
    const struct hk_config *config; /* the one that is used */
    const char *url;                /* of the store */
    struct hk_turns *turns;         /* of all who write much to the store (store/turns.h) */
    const char *name, *boot;        /* the relay's */
    struct hk_log *log;
    const char *jq;                         /* the helper of `dead fix`, for hk_desk; NULL = there is none */
    const struct hk_jq_starter *jq_starter; /* who runs it, since a locked process cannot */
    const char *ui_dir, *ui_ticket;         /* of the dashboard (admin/ui.h, sessions.h); NULL = none */
    struct hk_relay *relay;                 /* NULL until it runs, and after it has ended */
    /* Where parts count (daemon/meters.h), from any thread; NULL when nobody looks. It outlives the parts behind the one that
     * gave it. */
    struct hk_metrics *metrics;
    struct hk_alerts_stats
        *alerts; /* daemon/alerts.h: what part_alerts counts, for whoever shows it; NULL = nobody */
};

struct hk_part_ops {
    const char *name;
    /* `out_watch` is zeroed; what is set in it is called from the relay's start on. `*out_part` NULL: not wanted by the
     * configuration, nothing runs. */
    enum hk_code (*start)(const struct hk_part_env *env, void **out_part, struct hk_onlooker *out_watch,
                          struct hk_err *err);
    /* The relay was asked to end, or to take a new configuration: both take a while. May be NULL. */
    void (*draining)(void *part);
    void (*reloading)(void *part);
    void (*kept)(void *part);     /* that reload came to nothing; may be NULL */
    void (*reloaded)(void *part); /* env->config is a new one, the old one is still there; may be NULL */
    void (*stop)(void *part);     /* the relay has ended; bounded */
    struct hk_metrics *(*metrics)(void *part); /* of the part that has them; NULL for all others */
};

extern const struct hk_part_ops hk_part_admin;     /* metrics, the admin server */
extern const struct hk_part_ops hk_part_service;   /* the service manager's side */
extern const struct hk_part_ops hk_part_telemetry; /* part_telemetry.c */
extern const struct hk_part_ops hk_part_figures;
extern const struct hk_part_ops hk_part_alerts;
extern const struct hk_part_ops hk_part_jobs; /* long operations */

#define HK_PARTS_MAX 8
extern const struct hk_part_ops *const hk_parts[]; /* up to a NULL */

struct hk_parts {
    struct hk_part_env *env;
    void *parts[HK_PARTS_MAX];
    struct hk_onlooker watches[HK_PARTS_MAX];
    size_t n; /* started, or not wanted */
};

/* All, or none. */
enum hk_code hk_parts_start(struct hk_parts *parts, struct hk_part_env *env, struct hk_err *err) HK_MUSTCHECK;
void hk_parts_draining(struct hk_parts *parts); /* may be called again */
void hk_parts_reloading(struct hk_parts *parts);
void hk_parts_kept(struct hk_parts *parts);
void hk_parts_reloaded(struct hk_parts *parts);
void hk_parts_stop(struct hk_parts *parts); /* may be called again */

#endif
