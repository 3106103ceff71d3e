/* SPDX-License-Identifier: Apache-2.0 */
/* A span for each attempt, made of what the relay tells those who look on (relay/watch.h). docs/tracing.md says what is in it.
 *
 * An attempt is a child of the row's `traceparent`. Without one its trace's id follows from the message's id and the time that it was
 * written at, so that every attempt, by whichever relay and after whatever restart, is in one trace. A retry is linked to the attempt
 * before it as long as this process remembers that one: a few thousand messages, and not over a restart.
 *
 * From the loop's thread. */
#ifndef HK_DAEMON_SPANS_H
#define HK_DAEMON_SPANS_H

#include "config/config.h"
#include "observe/otlp.h"
#include "relay/watch.h"

struct hk_spans;

struct hk_spans_options {
    struct hk_sampler sampler;
    uint64_t seed;
    /* Takes the span over; NULL: one that there was no memory for. */
    void (*add)(void *arg, struct hk_span *span);
    void *arg;
    int64_t (*now_ns)(void); /* Unix time */
};

enum hk_code hk_spans_new(const struct hk_spans_options *options, const struct hk_config *config,
                          struct hk_spans **out, struct hk_err *err) HK_MUSTCHECK;
/* With a new configuration; HK_NOMEM leaves what was. The configuration need not outlive the call. */
enum hk_code hk_spans_configure(struct hk_spans *spans, const struct hk_config *config,
                                struct hk_err *err) HK_MUSTCHECK;
/* The members that it needs. */
void hk_spans_watch(struct hk_spans *spans, struct hk_onlooker *watch);
/* Adds what still waits for its decision. */
void hk_spans_free(struct hk_spans *spans);

#endif
