/* SPDX-License-Identifier: Apache-2.0 */
/* Redrives: many dead letters requeued by a job that the relays work on, at a rate, with a canary, and only as long as it goes
 * well. */
#ifndef HK_DESK_REDRIVE_H
#define HK_DESK_REDRIVE_H

#include "desk/letters.h"

/* ---- plan, start ---- */

struct hk_redrive_ask {
    struct hk_letter_words words;
    double rate;
    bool ramp;
    uint64_t canary;
    const char *abort_if_failing; /* "20%"; NULL = that */
    /* start only */
    bool same_id, new_id; /* neither: as hk_requeue_id says */
    const char *to;       /* another destination; NULL = each letter's own. Of a plan, too. */
    bool dry_run;
};

struct hk_redrive_plan {
    int64_t id;   /* of the job that was started; 0 = it is only a plan */
    int64_t twin; /* start: a job of the same letters that runs already; 0 = there is none */
    const char *filter;
    struct hk_count count;
    struct hk_redrive_pace pace;
    uint64_t eta_ms;
    struct hk_letter_groups groups;
    bool relay_runs;
    const char *to;               /* where the letters go; NULL = each to its own destination */
    const char *paused, *unknown; /* a destination at which it would not get far; NULL = there is none */
};

/* ---- list, show, cancel ---- */

struct hk_redrive_list_ask {
    bool running;
};

struct hk_redrive_job_ask {
    const char *id;
};

struct hk_redrive_shown {
    struct hk_redrive_job job;
    int64_t now_ms;
};

/* Requeued, and not known how that ended. */
uint64_t hk_redrive_waiting(const struct hk_redrive_facts *facts);

extern const struct hk_op hk_op_redrive_plan, hk_op_redrive_start;
extern const struct hk_op hk_op_redrive_list; /* the result is a struct hk_redrive_jobs */
extern const struct hk_op hk_op_redrive_show, hk_op_redrive_cancel;

#endif
