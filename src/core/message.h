/* SPDX-License-Identifier: Apache-2.0 */
/* A message: its states, the one table of allowed transitions, and the two views of a row that travel between store and
 * engine: the head (the parts needed to choose) and the whole message (the parts needed to send). */
#ifndef HK_CORE_MESSAGE_H
#define HK_CORE_MESSAGE_H

#include <hikyaku/facts.h>
#include <hikyaku/policy.h>

enum hk_state {
    HK_STATE_NONE = 0, /* no state: the table's entry for a forbidden transition */
    HK_PENDING,
    HK_PROCESSING,
    HK_RETRYING,
    HK_SENT,
    HK_STATE_DEAD,
    HK_STATE_CANCELLED,
    HK_NSTATES
};

enum hk_event {
    HK_EV_CLAIM = 0, /* a relay claimed it, on disk, before the send */
    HK_EV_ACK,       /* the destination confirmed */
    HK_EV_RETRY,     /* policy: later */
    HK_EV_RELEASE,   /* the relay gives it back unsent; no attempt is charged */
    HK_EV_ORPHAN,    /* its relay died or stalled with it */
    HK_EV_GIVE_UP,   /* policy: refused, or spent */
    HK_EV_CANCEL,    /* a named person */
    HK_EV_REQUEUE,   /* a named person */
    HK_NEVENTS
};

/* What to say of a column that does not parse (hk_head.malformed); static storage. */
const char *hk_malformed_text(const char *column);
/* HK_STATE_NONE: forbidden. */
enum hk_state hk_state_after(enum hk_state state, enum hk_event event);
const char *hk_state_name(enum hk_state state); /* as in the view outbox_messages */

/* The table of a row. Ids are unique within a source only. */
enum hk_source {
    HK_FROM_OUTBOX = 0, /* not tried yet: as the application wrote it */
    HK_FROM_RETRY       /* tried, deferred, requeued or fanned out */
};

/* The parts of a row that the engine needs to choose. Texts belong to the batch that the head came in. */
struct hk_head {
    enum hk_source source;
    int64_t id;
    struct hk_str destination; /* "" = by route */
    struct hk_str event_type;
    struct hk_str key; /* "" = no order */
    uint64_t payload_bytes;
    int64_t not_before_ms; /* 0 = at once; outbox only: a retry row is due when it is read */
    int64_t expires_ms;    /* 0 = never */
    uint32_t crashes;
    bool
        key_first; /* retry rows: no other row of outbox_retry that holds the same destination's key has a lower id
                       (for a deferred row: none holds it at all) */
    const char *malformed; /* NULL, or the column with an unusable value: it does not parse, or is huge */
};

/* The parts of a row that a sink needs to send and a policy needs to decide. */
struct hk_message {
    enum hk_source source;
    int64_t id;
    struct hk_str message_id, destination, event_type, key;
    struct hk_str headers; /* JSON object or "" */
    struct hk_str content_type, encoding, correlation_id, traceparent, idempotency_key, policy;
    struct hk_str payload; /* the bytes to send: base64 is decoded, a sealed payload is still sealed */
    bool undecodable;      /* encoding says base64 and it is not: payload is empty, never send it */
    bool oversized;        /* longer than the store may read: payload is empty, never send it */
    const char *malformed; /* as in the head */
    int64_t created_ms, not_before_ms, expires_ms; /* not_before_ms: 0 = none */
    uint32_t max_attempts;                         /* 0 = as the policy says */
    uint64_t timeout_ms;                           /* of one attempt; 0 = as the policy says */
    uint32_t crashes;
    uint32_t life;           /* 1; one more with each requeue */
    int64_t letter_id;       /* the dead letter that this life was requeued from; 0 = none */
    int64_t first_failed_ms; /* of this life; 0 = it has not failed */
    struct hk_history
        history; /* its paused_ms: for how long the destination was paused since the first attempt, as of now */
    struct hk_str last_cause; /* why the last attempt of this life failed, a reason code; "" = none did */
    int last_status;          /* the status of its answer; 0 = none */
};

#endif
