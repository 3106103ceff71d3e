/* SPDX-License-Identifier: Apache-2.0 */
/* The sink: where messages go. One sink object per destination, on the loop's thread. A sink reports facts; it never
 * decides whether something is retried. tests/contract/sink_suite.c is this contract as a test.
 *
 * A sink may stand on a client with threads of its own. All functions of this contract are called, and all callbacks run, on
 * the loop's thread; such a sink hands results over by a wake of the loop (hk_wake_send). */
#ifndef HK_SINK_SINK_H
#define HK_SINK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "core/message.h"

/* `close` returns within this time, whatever the other side does. */
#define HK_SINK_CLOSE_MS 2000

struct hk_sink;

/* Header fields, each a JSON object. */
struct hk_sink_shown {
    struct hk_str request_headers;  /* as sent, secrets masked */
    struct hk_str response_headers; /* of a broker: what it said, and where it put the message */
};

/* What came of one delivery. Everything pointed to is valid during `done` only.
 *
 * The fault says whose it is. INVALID_PAYLOAD, SCHEMA and TOO_LARGE, without a status and without possibly_delivered, mean
 * that this message can never be made a request: nothing was sent, no attempt is charged, and it is dead at once, whatever
 * the policy says. So they are only for what the sink itself found before the first byte. What the destination refused has a
 * status (HTTP 413, 422 …) or, from a broker, BROKER_REFUSED (too large for it, no such topic, unroutable): an attempt, and
 * the policy's to judge. LOCAL is our own trouble (no memory, aborted): transient, and no mark against the destination.
 *
 * Of a broker: facts.broker_code is its own code, facts.body are its own words, and facts.error is one line of both. Where it
 * put what it confirmed is facts.partition and facts.sequence, if facts.placed. */
struct hk_sink_result {
    struct hk_facts facts;
    /* On demand, for most deliveries go well, and nobody reads those of them. Valid until it is called again. */
    struct hk_sink_shown (*show)(const struct hk_sink_result *result);
    struct hk_str address; /* connected to, "" = never connected */
};

/* Runs exactly once per accepted send, from the loop's thread, never from inside a function of the contract. */
typedef void hk_sink_done_fn(void *arg, const struct hk_sink_result *result);

/* One delivery. `msg` stays the caller's and valid until `done`; the struct itself only during `send`. */
struct hk_delivery {
    const struct hk_message *msg;
    uint32_t attempt;    /* from 1 */
    int64_t wall_ms;     /* the Unix time to sign with */
    uint64_t timeout_ms; /* it must end within this time */
    hk_sink_done_fn *done;
    void *arg;
};

struct hk_sink_ops {
    const char *name; /* "http" */
    /* Start one delivery. Never blocks. On HK_OK `done` runs exactly once, later, from the loop; otherwise never.
     * HK_BUSY: no room now. Nothing was sent, no attempt is charged, and the sink's `room` runs once there is some. Any other
     * code is our own trouble (no memory). */
    enum hk_code (*send)(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err);
    /* The caller has no more to send in this round: what was only collected goes out. It may be called with nothing to do.
     * NULL: the sink collects nothing. */
    void (*flush)(struct hk_sink *sink);
    /* Ends every delivery in flight; their `done` runs soon, with HK_FAULT_LOCAL and possibly_delivered as it was. */
    void (*abort)(struct hk_sink *sink);
    /* Only when nothing is in flight. Returns within HK_SINK_CLOSE_MS; `room` never runs again. */
    void (*close)(struct hk_sink *sink);
};

/* Runs after a send was answered with HK_BUSY, once or several times, when the sink takes deliveries again. From the loop, never
 * from inside a function of the contract; it may send. */
typedef void hk_sink_room_fn(void *arg);

/* Every sink begins with this. */
struct hk_sink {
    const struct hk_sink_ops *ops;
    /* Set by whoever opened the sink, if the sink may ever be busy; NULL: nobody waits. */
    hk_sink_room_fn *room;
    void *room_arg;
    /* The caller's: the list of sinks that are to be flushed at the end of the round. */
    struct hk_sink *flush_next;
    bool flush_due;
};

/* For a sink: there is room again. */
static inline void hk_sink_has_room(struct hk_sink *sink)
{
    if (sink->room)
        sink->room(sink->room_arg);
}

#endif
