/* SPDX-License-Identifier: Apache-2.0 */
/* A sink sends messages to one destination. There is one sink object per destination, on the loop's thread. A sink reports facts;
 * it never decides whether to retry. tests/contract/sink_suite.c tests this contract.
 *
 * A sink may use a client library that has its own threads. All functions of this contract are called, and all callbacks run, on
 * the loop's thread; such a sink passes results to it by a wake of the loop (hk_wake_send). */
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
    struct hk_str response_headers; /* of a broker: its answer, and the place where it stored the message */
};

/* The outcome of one delivery. All pointers are valid during `done` only.
 *
 * The fault names the side that failed. INVALID_PAYLOAD, SCHEMA and TOO_LARGE, without a status and without possibly_delivered,
 * mean that this message can never become a request: the sink sent nothing, no attempt is charged, and the message is dead at once,
 * whatever the policy says. So a sink uses them only for errors that it found before the first byte. A refusal by the destination
 * has a status (HTTP 413, 422 …) or, from a broker, BROKER_REFUSED (too large for it, no such topic, unroutable): it is an
 * attempt, and the policy judges it. LOCAL is a failure on our own side (no memory, aborted): transient, and it does not count against
 * the destination.
 *
 * With a broker, facts.broker_code is the broker's code, facts.body its text, and facts.error one line of both. If facts.placed, it
 * confirmed the message at facts.partition and facts.sequence. */
struct hk_sink_result {
    struct hk_facts facts;
    /* Only on demand, because nobody reads the header fields of a successful delivery. Valid until the next call. */
    struct hk_sink_shown (*show)(const struct hk_sink_result *result);
    struct hk_str address; /* connected to, "" = never connected */
    bool whole;            /* HTTP: the answer's body came to its end, and facts.body is all of it */
    /* Of a message that travelled with others: the answer to all of them, and the field that its own part of it amounts to. */
    const struct hk_sink_result *answer;
    struct hk_header hint;
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
          * HK_BUSY: no room now. Nothing was sent, no attempt is charged, and the sink's `room` runs once there is room. Any other
     * code is a failure on our own side (no memory). */
    enum hk_code (*send)(struct hk_sink *sink, const struct hk_delivery *delivery, struct hk_err *err);
    /* Sends the deliveries that the sink has only collected: the caller has no more in this round. May be called with nothing to do.
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
    /* The opener of the sink sets it, if the sink may ever be busy; NULL: nobody waits. */
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
