/* SPDX-License-Identifier: Apache-2.0 */
/* A redrive: a job that requeues many dead letters, at a rate, as long as they arrive. The job's row in the store is its whole
 * state, so any relay can continue it. This module decides the next step from that row and from the outcomes so far. Pure. */
#ifndef HK_CORE_REDRIVE_H
#define HK_CORE_REDRIVE_H

#include <stdbool.h>
#include <stdint.h>

enum hk_redrive_status {
    HK_REDRIVE_RUNNING = 0,
    HK_REDRIVE_DONE,
    HK_REDRIVE_CANCELLED, /* by a person */
    HK_REDRIVE_ABORTED,   /* by itself: the cause is not fixed */
    HK_NREDRIVE_STATUSES
};

const char *hk_redrive_status_name(enum hk_redrive_status status); /* "running" … */

/* The request. */
struct hk_redrive_pace {
    double rate_per_s;  /* 0 = HK_REDRIVE_RATE */
    uint64_t ramp_ms;   /* from a tenth of the rate to all of it over this time; 0 = none */
    uint32_t canary;    /* this many letters first, and the rest only when all of them arrived; 0 = none */
    double abort_ratio; /* stop when more than this share fails; 0 = never */
};

#define HK_REDRIVE_RATE 50.0
#define HK_REDRIVE_MIN_OUTCOMES                                                                              \
    10 /* before a share of failures means anything (fewer, when there are fewer letters) */
#define HK_REDRIVE_STEP 500 /* letters a step, at most */
/* How long a job waits before it looks again at a letter whose destination is paused. It requeues nothing into a pause, because
 * all of that would be sent at once when the pause ends, whatever the job's rate. */
#define HK_REDRIVE_HELD_MS 1000
/* The same for a letter that this relay cannot look into: it lacks the key that the job's filter needs. Another relay may have it. */
#define HK_REDRIVE_UNSURE_MS 30000

/* The progress of a job. */
struct hk_redrive_facts {
    int64_t started_ms;
    uint64_t total;      /* letters that matched when it began */
    uint64_t requeued;   /* so far */
    uint64_t resolved;   /* of those: arrived */
    uint64_t failed;     /* dead again (or discarded meanwhile) */
    uint64_t struggling; /* on their way, and at least one attempt of this life failed */
    bool exhausted;      /* no letter is left to requeue */
    double tokens;       /* of the rate, after the last step */
    int64_t tokens_ms;   /* the time of that step; 0 = never */
};

enum hk_redrive_step {
    HK_REDRIVE_WAIT = 0, /* until wake_ms */
    HK_REDRIVE_REQUEUE,  /* `n` more, now; then ask again */
    HK_REDRIVE_ABORT,    /* `why` */
    HK_REDRIVE_FINISH
};

struct hk_redrive_next {
    enum hk_redrive_step step;
    uint32_t n;
    int64_t wake_ms;
    double tokens;   /* to be kept, with now_ms, once `n` were requeued */
    const char *why; /* static */
};

void hk_redrive_decide(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                       int64_t now_ms, struct hk_redrive_next *out);
/* How long the rest takes at this pace, when nothing fails. */
uint64_t hk_redrive_eta_ms(const struct hk_redrive_pace *pace, const struct hk_redrive_facts *facts,
                           int64_t now_ms);

#endif
