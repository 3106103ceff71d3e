/* SPDX-License-Identifier: Apache-2.0 */
/* The sink: where messages go. One sink object per destination, on the loop's thread. A sink reports facts; it never
 * decides whether something is retried. tests/contract/sink_suite.c is this contract as a test. */
#ifndef HK_SINK_SINK_H
#define HK_SINK_SINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "core/message.h"

struct hk_sink;

/* Header fields, each a JSON object. */
struct hk_sink_shown {
    struct hk_str request_headers; /* as sent, secrets masked */
    struct hk_str response_headers;
};

/* What came of one delivery. Everything pointed to is valid during `done` only.
 *
 * The fault says whose it is. INVALID_PAYLOAD, SCHEMA and TOO_LARGE, without a status and without possibly_delivered, mean
 * that this message can never be made a request: nothing was sent, no attempt is charged, and it is dead at once, whatever
 * the policy says. So they are only for what the sink itself found before the first byte. What the destination refused has a
 * status (HTTP 413, 422 …) or, from a broker, BROKER_REFUSED (too large for it, no such topic, unroutable): an attempt, and
 * the policy's to judge. LOCAL is our own trouble (no memory, aborted): transient, and no mark against the destination. */
struct hk_sink_result {
    struct hk_facts facts;
    /* On demand, for most deliveries go well, and nobody reads those of them. Valid until it is called again. */
    struct hk_sink_shown (*show)(const struct hk_sink_result *result);
    struct hk_str address; /* connected to, "" = never connected */
};

/* Runs exactly once per accepted send, from the loop's thread, never from inside `send` or `abort`. */
typedef void hk_sink_done_fn(void *arg, const struct hk_sink_result *result);

struct hk_sink_ops {
    const char *name; /* "http" */
    /* Start one delivery, which must end within `timeout_ms`. Never blocks. On HK_OK `done` runs exactly once, later,
     * from the loop; on error never. `msg` stays the caller's and valid until `done`. `wall_ms` is the Unix time to sign
     * with; `attempt` counts from 1. */
    enum hk_code (*send)(struct hk_sink *sink, const struct hk_message *msg, uint32_t attempt,
                         int64_t wall_ms, uint64_t timeout_ms, hk_sink_done_fn *done, void *arg,
                         struct hk_err *err);
    /* Ends every delivery in flight; their `done` runs soon, with HK_FAULT_LOCAL and possibly_delivered as it was. */
    void (*abort)(struct hk_sink *sink);
    /* Only when nothing is in flight. */
    void (*close)(struct hk_sink *sink);
};

/* Every sink begins with this. */
struct hk_sink {
    const struct hk_sink_ops *ops;
};

#endif
