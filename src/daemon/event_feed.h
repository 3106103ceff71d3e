/* SPDX-License-Identifier: Apache-2.0 */
/* GET /events: one thread reads the store for all listeners, about once a second, and sends them the changes. Without a listener it
 * sleeps, and has no connection.
 *
 * - The server cuts a listener that does not read (HK_ADMIN_STREAM_MAX), and one whose token is no longer valid.
 * - While the store does not answer, the thread cannot check tokens: after HK_EVENT_UNKNOWN_MS it ends their streams.
 * - Reading may take a tenth of the time: after a slow read the next one comes later.
 * - The thread continues for a while after the last listener has left, so that a listener that comes back misses nothing. */
#ifndef HK_DAEMON_EVENT_FEED_H
#define HK_DAEMON_EVENT_FEED_H

#include "admin/server.h"
#include "desk/events.h"
#include "observe/metrics.h"

struct hk_event_feed;

#define HK_EVENT_UNKNOWN_MS 60000

enum hk_event_stay {
    HK_EVENT_STAYS = 0,
    HK_EVENT_LEAVES,
    HK_EVENT_UNKNOWN /* the store does not answer */
};

/* What the thread asks of its owner. All of it runs on the thread, but for `ended`. */
struct hk_event_host {
    struct hk_desk *(*desk)(void *arg); /* with the present configuration */
    void (*close)(void *arg);           /* nobody listens: give back what the desk holds */
    /* Is whoever came with this exchange still let in? */
    enum hk_event_stay (*may_stay)(void *arg, const struct hk_admin_exchange *exchange);
    void (*ended)(void *arg); /* the thread has ended, and uses nothing any more; also when it never began */
    void *arg;
};

/* NULL: out of memory. `metrics` outlives the thread. */
struct hk_event_feed *hk_event_feed_new(const struct hk_event_host *host, struct hk_metrics *metrics);
/* From any thread: gives the exchange back, as a stream or with 503. `last_id` NULL: a new listener. */
void hk_event_feed_join(struct hk_event_feed *feed, struct hk_admin_exchange *exchange,
                        const struct hk_events_ask *ask, const char *last_id);
/* From any thread: all listeners get a last event, and nobody is let in any more. May be called again. */
void hk_event_feed_drain(struct hk_event_feed *feed);
/* After hk_event_feed_drain: waits up to `wait_ms` until all of them have that event. What is pushed into a stream once the server has
 * begun to stop does not arrive. */
void hk_event_feed_wait(struct hk_event_feed *feed, unsigned wait_ms);
/* Waits up to `wait_ms` for the thread; one that hangs in the store ends by itself, and frees the feed. Accepts NULL. */
void hk_event_feed_free(struct hk_event_feed *feed, unsigned wait_ms);

#endif
