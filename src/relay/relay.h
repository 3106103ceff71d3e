/* SPDX-License-Identifier: Apache-2.0 */
/* The relay: does what the engine says. One loop thread for engine and sinks, one thread for the store; they meet in one
 * job at a time. */
#ifndef HK_RELAY_RELAY_H
#define HK_RELAY_RELAY_H

#include <stdbool.h>

#include <hikyaku/error.h>

#include "config/config.h"
#include "core/engine.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "relay/watch.h"

struct hk_kept;
struct hk_relay;

struct hk_relay_options {
    struct hk_loop *loop;
    const struct hk_config *config; /* outlives the relay, until a reload has replaced it */
    const char *url;                /* of the store; outlives the relay, as all texts here */
    struct hk_turns *turns;         /* of this process's writers (store/turns.h); NULL = none */
    bool create;                    /* make a SQLite file that does not exist */
    const char *name, *boot;
    struct hk_log *log;
    const char *event_log;             /* a file for the checker; NULL = none */
    const unsigned *stops;             /* not 0: it is to end before it has begun; NULL = nobody can ask */
    const struct hk_onlooker *watches; /* outlive the relay */
    size_t n_watches;
    /* The relay has ended: it has drained, or cannot continue (`rc` says why, and the log has it). Called from the loop. */
    void (*stopped)(void *arg, enum hk_code rc);
    /* A reload has ended: `rc` HK_OK, and the old configuration is not used any more; or `err` says why the old one is back
     * (not logged yet), and the new one is not. From the loop; may start the next reload. Not when `stopped` comes first. */
    void (*reloaded)(void *arg, enum hk_code rc, const struct hk_err *err);
    void *arg;
};

/* Opens the store and the sinks, and starts; the loop runs meanwhile. If the database cannot be reached, the relay tries again for
 * half a minute, unless the server says that a setting of the connection is wrong. HK_NOTFOUND: no schema, or an old one.
 * HK_CANCELLED: `stops`. */
enum hk_code hk_relay_start(const struct hk_relay_options *options, struct hk_relay **out_relay,
                            struct hk_err *err) HK_MUSTCHECK;
/* Stops claiming, finishes what is in flight for `ms`, gives back the rest; then `stopped`. A second call hurries. */
void hk_relay_drain(struct hk_relay *relay, uint64_t ms);
/* Changes to another configuration. Messages in flight end first, or are given back without a counted attempt; then `reloaded` is called.
 * Settings of the store take effect, too, except its URL and the relay's name. On an error nothing happens: the old configuration stays.
 * HK_BUSY: a reload or a drain is under way. On success both configurations must live until `reloaded`. */
enum hk_code hk_relay_reload(struct hk_relay *relay, const struct hk_config *config,
                             struct hk_err *err) HK_MUSTCHECK;
/* After `stopped` only. */
void hk_relay_free(struct hk_relay *relay);

/* Since the start, over all reloads. */
struct hk_engine_stats hk_relay_stats(const struct hk_relay *relay);
/* From the loop's thread: how the destination of that place is. False: there is none. */
bool hk_relay_view_dest(const struct hk_relay *relay, size_t dest, struct hk_dest_view *out);
/* From the loop's thread: the destinations of the store (relay/kept.h). */
const struct hk_kept *hk_relay_kept(const struct hk_relay *relay);

#endif
