/* SPDX-License-Identifier: Apache-2.0 */
/* Server-sent events without a server: writes an event, and keeps the latest ones, so that a listener that was cut off can continue.
 *
 * An id is "EPOCH-NUMBER". An epoch is one run of events without a gap: numbers of another epoch mean nothing here. */
#ifndef HK_ADMIN_EVENTS_H
#define HK_ADMIN_EVENTS_H

#include "base/buf.h"
#include "desk/events.h"

#define HK_EVENTS_RING       1000
#define HK_EVENTS_RING_BYTES ((size_t)1 << 20)

struct hk_event_ring;

/* `epoch`: any number that no earlier ring has had. NULL: out of memory. */
struct hk_event_ring *hk_event_ring_new(uint64_t epoch);
void hk_event_ring_free(struct hk_event_ring *ring); /* accepts NULL */

/* One event, as it goes over the wire. Valid until the next call. */
struct hk_event_frame {
    enum hk_event_type type;
    struct hk_str destination; /* "" = of none */
    struct hk_str frame;
};

/* Keeps one. NULL: out of memory; then it has a number all the same, and whoever asks for it later is told of the gap. */
const struct hk_event_frame *hk_event_ring_add(struct hk_event_ring *ring, enum hk_event_type type,
                                               struct hk_str destination, struct hk_str json);
/* Those behind `last_id`, oldest first. False: it is no id of this ring, or what followed it is gone. */
typedef void hk_event_replay_fn(void *arg, const struct hk_event_frame *event);
bool hk_event_ring_replay(const struct hk_event_ring *ring, const char *last_id, hk_event_replay_fn *each,
                          void *arg);

/* Does a listener want it? `destination` NULL: any. */
bool hk_event_fits(const struct hk_event_frame *event, unsigned types, const char *destination);

/* One event in the format of text/event-stream. Whatever stands in `json`, it stays one event. `id` NULL: without one. */
void hk_event_write(struct hk_buf *out, const char *id, enum hk_event_type type, struct hk_str json);

#endif
