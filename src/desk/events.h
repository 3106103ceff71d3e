/* SPDX-License-Identifier: Apache-2.0 */
/* Changes as they happen: a watch reads the store now and then and reports differences. Doors make a stream of them.
 *
 * A source is an operation of the desk whose items have a name and a form. The watch reports an item whose JSON changed since the last
 * look. */
#ifndef HK_DESK_EVENTS_H
#define HK_DESK_EVENTS_H

#include "desk/desk.h"

enum hk_event_type {
    HK_EVENT_STATE = 0, /* how many messages of a destination wait, are in flight, are dead; is it paused */
    HK_EVENT_FIGURES,   /* what relays saw of a destination in the last minute */
    HK_EVENT_ALERT,
    HK_EVENT_REDRIVE,
    HK_EVENT_JOB,
    HK_EVENT_HEARTBEAT,
    /* Told whatever a listener asks for: */
    HK_EVENT_OPEN,  /* from here on, every change is an event */
    HK_EVENT_RESET, /* some were missed: load everything again */
    HK_EVENT_END,   /* nothing more comes, and why */
    HK_NEVENT_TYPES
};

#define HK_EVENTS_ALWAYS (1u << HK_EVENT_OPEN | 1u << HK_EVENT_RESET | 1u << HK_EVENT_END)

const char *hk_event_word(unsigned type);
bool hk_event_by_word(struct hk_str word, enum hk_event_type *out);
/* "state,alert"; NULL: all. False: one of them is no type that can be asked for. */
bool hk_event_types(const char *text, unsigned *out_types);

struct hk_events_ask {
    const char *types;       /* with commas between; NULL: all */
    const char *destination; /* only events of this one, and those of none; NULL: all */
    uint64_t for_ms;         /* end after this; 0: never */
    /* Takes each event, as a line of JSON; false: no more is wanted. NULL where the door makes a stream of it (HTTP). */
    bool (*take)(void *arg, enum hk_event_type type, struct hk_str json);
    void *take_arg;
};

struct hk_events_told {
    uint64_t events;
};

/* Runs until caller->stop, the time that was asked for, or an error; HK_UNAVAILABLE: the relay that is asked has ended it. */
extern const struct hk_op hk_op_events;

/* ---- looking ---- */

struct hk_event_watch;

/* `destination` "": of none, or of all. `json` is one line. */
typedef void hk_event_fn(void *arg, enum hk_event_type type, struct hk_str destination, struct hk_str json);

#define HK_EVENT_LOOK_MAX 200 /* events of each source in one look; the next look sends the rest */

struct hk_event_watch *hk_event_watch_new(void); /* NULL: out of memory */
void hk_event_watch_free(struct hk_event_watch *watch);
/* From the beginning of a look that took `took_ms` to the next one's: looks take a tenth of the time at the most. */
int64_t hk_event_look_after_ms(int64_t took_ms);
#define HK_EVENT_BEAT_MS 15000 /* between two heartbeats */
/* The JSON of open, heartbeat, reset and end. `reason` NULL: without one. */
void hk_event_note(struct hk_buf *out, const char *reason);

/* The first look tells nothing: later ones tell what is different from it. */
enum hk_code hk_event_watch_look(struct hk_event_watch *watch, struct hk_desk *desk, hk_event_fn *tell,
                                 void *arg, struct hk_err *err) HK_MUSTCHECK;

#endif
