/* SPDX-License-Identifier: Apache-2.0 */
/* What changes, as it changes: a watch looks at the store now and then and tells what is not as it was. Doors make a stream of it.
 *
 * A source is an operation of the desk whose items have a name and a form. An item whose JSON is another than at the last look is told. */
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
    HK_EVENT_OPEN,  /* from here on changes are told */
    HK_EVENT_RESET, /* some were missed: load everything again */
    HK_EVENT_END,   /* nothing more comes, and why */
    HK_NEVENT_TYPES
};

#define HK_EVENTS_ALWAYS (1u << HK_EVENT_OPEN | 1u << HK_EVENT_RESET | 1u << HK_EVENT_END)

const char *hk_event_word(unsigned type);
/* "state,alert"; NULL: all. False: one of them is no type that can be asked for. */
bool hk_event_types(const char *text, unsigned *out_types);

struct hk_events_ask {
    const char *types;       /* with commas between; NULL: all */
    const char *destination; /* only events of this one, and those of none; NULL: all */
    uint64_t for_ms;         /* end after this; 0: never */
};

/* A stream: the door makes it. */
extern const struct hk_op hk_op_events;

/* ---- looking ---- */

struct hk_event_watch;

/* `destination` "": of none, or of all. `json` is one line. */
typedef void hk_event_fn(void *arg, enum hk_event_type type, struct hk_str destination, struct hk_str json);

#define HK_EVENT_LOOK_MAX 200 /* of each source in one look; what is more is told by the next */

struct hk_event_watch *hk_event_watch_new(void); /* NULL: out of memory */
void hk_event_watch_free(struct hk_event_watch *watch);
/* The first look tells nothing: later ones tell what is different from it. */
enum hk_code hk_event_watch_look(struct hk_event_watch *watch, struct hk_desk *desk, hk_event_fn *tell,
                                 void *arg, struct hk_err *err) HK_MUSTCHECK;

#endif
