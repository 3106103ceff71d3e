/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in the store, as one relay knows them.
 *
 *   poll says that they have another version -> read on the store's thread -> applied some at a time, between rounds
 *
 * The engine gets policy, limits and order of each. One that this relay cannot use (a policy it does not have, a secret that is
 * missing, an address that it may not reach) is held: its messages wait, and nothing of it dies. It is looked at again now and then.
 * A name that the configuration has, too, is the configuration's.
 *
 * Thousands of them are normal, and most of them rest: one that rests is its text and its place in the engine. Its sink is opened for
 * its first message and closed when nothing was sent for a while. A changed one gets another sink; the one before is closed once
 * nothing is on its way there. */
#ifndef HK_RELAY_KEPT_H
#define HK_RELAY_KEPT_H

#include "config/config.h"
#include "core/engine.h"
#include "loop/loop.h"
#include "observe/log.h"
#include "sink/sink.h"
#include "store/definition.h"

struct hk_kept; /* all of them */

/* A sink in use: of whoever sends now, until it has heard of the end. */
struct hk_kept_sink;

struct hk_kept_options {
    struct hk_loop *loop;
    struct hk_log *log;
    /* The sink of that place has room again, or is gone: another one is opened for the next message. */
    void (*has_room)(void *arg, size_t place);
    void *arg;
};

enum hk_code hk_kept_new(const struct hk_kept_options *options, struct hk_kept **out_kept,
                         struct hk_err *err) HK_MUSTCHECK;
void hk_kept_free(struct hk_kept *kept);

/* An engine begins with a configuration, which outlives it: all are applied to it anew. */
void hk_kept_begin(struct hk_kept *kept, struct hk_engine *engine, const struct hk_config *config);
/* It ends; nothing is in flight. */
void hk_kept_end(struct hk_kept *kept);

/* ---- from the store ---- */

/* Polls say that they have this version. */
void hk_kept_told(struct hk_kept *kept, int64_t version);
/* When they are to be read; INT64_MAX: they are as they were. */
int64_t hk_kept_read_at_ms(const struct hk_kept *kept);
/* The version that is known, for hk_store_ops.definitions: of those that were not changed since no text is read. */
int64_t hk_kept_known(const struct hk_kept *kept);
/* The store's answer. It is copied. */
void hk_kept_take(struct hk_kept *kept, const struct hk_definitions *found, int64_t now_ms);
/* It could not be read. */
void hk_kept_failed(struct hk_kept *kept, int64_t now_ms);

/* ---- between rounds ---- */

/* Applies some of what was read, closes what is idle. True: there is more to do at once. */
bool hk_kept_step(struct hk_kept *kept, int64_t now_ms);

/* ---- deliveries, by the engine's place ---- */

/* False: the place is not one of these. */
bool hk_kept_at(const struct hk_kept *kept, size_t place, const char **out_name,
                const struct hk_policy **out_policy);
/* The sink of that place, opened if it is not. Then hk_kept_sent, once, after the sink has said how it ended, or at once if it took
 * nothing. On an error the destination is held from now on. */
enum hk_code hk_kept_send(struct hk_kept *kept, size_t place, int64_t now_ms, struct hk_kept_sink **out_use,
                          struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;
void hk_kept_sent(struct hk_kept *kept, struct hk_kept_sink *use, int64_t now_ms);
/* That sink (NULL: none of these) had no room. It stays open until it has some. */
void hk_kept_full(struct hk_kept *kept, struct hk_kept_sink *use);
void hk_kept_abort(struct hk_kept *kept);

/* ---- for people ---- */

struct hk_kept_view {
    const char *name;
    int64_t version;
    size_t place;         /* SIZE_MAX: the engine does not have it */
    bool of_file;         /* the configuration has one of that name */
    const char *why_held; /* NULL: it is used */
    bool auto_redrive;
    uint64_t breaker_open_ms; /* 0: it has none */
};

/* In the order of their names. False: there is no such one. */
bool hk_kept_view(const struct hk_kept *kept, size_t i, struct hk_kept_view *out);
/* Changes whenever what the views say does. */
uint64_t hk_kept_changes(const struct hk_kept *kept);

/* How many, how many of them are held, and how many sinks are open. */
struct hk_kept_counts {
    size_t n, held, sinks;
};

struct hk_kept_counts hk_kept_counts(const struct hk_kept *kept);

#endif
