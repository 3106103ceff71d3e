/* SPDX-License-Identifier: Apache-2.0 */
/* One event log for relay, simulator and test receivers: JSON lines that a checker which knows nothing of the engine can
 * judge. Pure formatting; who writes where is the caller's business. The format is docs/simulation.md. */
#ifndef HK_OBSERVE_EVENTLOG_H
#define HK_OBSERVE_EVENTLOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

enum hk_logged {
    HK_LOG_DEST = 0, /* a destination's settings, before anything else */
    HK_LOG_COMMIT,   /* application: a message was committed */
    HK_LOG_ROLLBACK, /* application: it never was */
    HK_LOG_ACQUIRE,  /* a lane; the lease lasts until `until` */
    HK_LOG_RENEW,
    HK_LOG_RELEASE,
    HK_LOG_EXPIRE,  /* a lane whose lease ran out is taken over by another: it is gone */
    HK_LOG_CLAIM,   /* a row is named by a manifest, on disk */
    HK_LOG_SEND,    /* the request starts */
    HK_LOG_RECV,    /* receiver: the request is here */
    HK_LOG_CONFIRM, /* relay: the destination confirmed */
    HK_LOG_FAIL,    /* relay: it did not */
    HK_LOG_BUSY,    /* relay: its sink had no room, nothing was sent … */
    HK_LOG_ROOM,    /* … and now there is some */
    HK_LOG_KEYLESS, /* relay: the message is sealed, and there is no key: it is not sent */
    HK_LOG_SETTLE,
    HK_LOG_STUCK,  /* a settle that the database refused: the row stays, and is not to be sent again */
    HK_LOG_ORPHAN, /* a row found in the manifest of a lane whose lease ran out */
    HK_LOG_CANCEL, /* from here on: a person's acts */
    HK_LOG_DISCARD,
    HK_LOG_REQUEUE,
    HK_LOG_RESTORE, /* what was discarded is dead again */
    HK_LOG_EDIT,    /* a letter has another payload */
    HK_LOG_REDRIVE, /* a job of requeues: start, cancel, abort, finish */
    HK_LOG_FORCE,   /* a message is to go now, whatever guards its destination */
    HK_LOG_PAUSE,
    HK_LOG_RESUME,
    HK_LOG_TOLD,    /* a relay gets to know that a destination is paused, or (until `until`) broken */
    HK_LOG_CLOSED,  /* a relay gets to know that a breaker was closed */
    HK_LOG_BREAKER, /* a relay writes down that its breaker opened, until `until`; 0 = closed */
    HK_LOG_START,   /* from here on: what happens to a relay's process */
    HK_LOG_CRASH,
    HK_LOG_STOP, /* SIGSTOP */
    HK_LOG_CONT,
    HK_LOG_DRAIN,
    HK_LOG_EXIT,   /* drained, nothing left */
    HK_LOG_CLOCK,  /* the store's clock jumped by `wait` ms */
    HK_LOG_RESET,  /* an operator set the store's time back by `wait` ms, to the clock … */
    HK_LOG_WAITS,  /* … and since then this row is due so (simulator only) */
    HK_LOG_DEFINE, /* a destination that is kept in the store is made, changed or removed … */
    HK_LOG_LEARN,  /* … and a relay goes by it: used, held, gone (simulator only) */
    HK_LOG_KEEP,   /* a standby has all up to here … */
    HK_LOG_FORGET, /* … and takes over: what came since never was */
    HK_LOG_HEAL,   /* no more faults from here on */
    HK_LOG_END,
    HK_NLOGGED
};

/* Only the fields that belong to the event (the table in eventlog.c) are looked at. */
struct hk_event_line {
    int64_t t;      /* store time, Unix ms */
    int64_t behind; /* by so much the store's clock is behind that; 0 = it is not, or nobody knows */
    enum hk_logged ev;
    struct hk_str m;    /* message id */
    struct hk_str dest; /* destination; commit: all that it must reach, with commas */
    struct hk_str key;
    struct hk_str relay;
    struct hk_str
        kind; /* settle: sent, retry, dead, release, defer, fan_out; dest: none, block, skip; redrive; fail: "local" =
                 the relay ended it itself, or its own side failed; told and closed: the relay's own breaker since */
    struct hk_str reason; /* settle: of a dead letter */
    struct hk_str actor;
    struct hk_str as; /* requeue: its new message id; "" = it keeps the one it has */
    char source;      /* 'o' or 'r', with `id`: the row */
    int64_t id;
    int64_t lane, claim;
    int64_t
        until; /* acquire, renew, claim: end of the lease; dest: its breaker opens for so long at most, ms */
    int64_t due;     /* commit: not before; settle: the next attempt; 0 = none */
    int64_t began;   /* commit: when it was inserted */
    int64_t expires; /* commit: 0 = never, or not known */
    int64_t
        wait; /* recv, fail: the Retry-After that was answered, ms; dest: the longest one that counts; clock: the jump */
    uint64_t hash; /* commit, recv, edit: of the payload's bytes */
    int64_t job;   /* redrive, requeue: its number; 0 = by hand */
    int64_t open;  /* dest: for how long its breaker opens at least, ms; 0 = not known, or it has none */
    int64_t
        turn; /* dest: with work and nothing on its way it waits for a place no longer, ms; 0 = not known */
    uint32_t rate; /* redrive: a second, at most; in thousandths */
    uint32_t life, attempt, charged;
    uint32_t max; /* commit, dest: attempts allowed; 0 = not known */
    uint32_t cap; /* dest: sends at once; redrive: of the canary */
    uint64_t timeout; /* commit: of an attempt, as the message asks for it and may have it, ms; 0 = as its policy says, or not
                         known; send: as the sink was told; 0 = not known */
    bool all; /* dest: its cap is that of all relays together */
    int status;   /* recv, fail: HTTP-like; 0 = none */
    bool maybe;   /* fail: the destination may have acted */
    bool acted;   /* recv: the receiver took it */
    bool rows;    /* settle: it changed something; false = it was stale */
};

/* Adds one line. Errors are the buffer's. */
void hk_eventlog_add(struct hk_buf *out, const struct hk_event_line *line);

#endif
