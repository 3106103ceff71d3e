/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: operations that a caller starts in the background and that relays carry out (store/jobs.h).
 *
 * An operation that can be a job has a `struct hk_op_job` in its row of the table. It needs nothing else: `--background`, the member
 * "background" over HTTP, the answer 202 and the recovery after a crash work in the same way for all jobs.
 *
 *   hk_desk_ask with caller->background   writes the row                     (hk_job_start)
 *   hk_job_work                           a relay takes one and works on it  (job_work.c)
 *   batch … hk_job_hold … batch           each batch is one transaction
 */
#ifndef HK_DESK_JOB_H
#define HK_DESK_JOB_H

#include "desk/desk.h"
#include "store/jobs.h"

/* ---- for operations ---- */

/* The state that one batch passes to the next. The store keeps it with the batch's changes, in one transaction. */
struct hk_job_run {
    struct hk_desk *desk;
    struct hk_job_grip grip;
    char cursor[HK_JOB_CURSOR_MAX + 1]; /* "" = this is the first batch. The operation decides its content. */
    struct hk_job_progress progress;
    int64_t act_id; /* of the audit: later batches continue the same act */
    bool more;      /* there is another batch */
    /* the runner's */
    bool held, lost, cancelled;
};

/* A job's result keeps the outcomes of at most this many items, because every batch writes the row again. If an outcome is left out,
 * so are all later ones. */
#define HK_JOB_ITEMS     100
#define HK_JOB_TEXTS_MAX ((size_t)64 << 10) /* of ids and names in them, which may be long */

/* Begins the batch's transaction. A batch calls it once, right before its first change, when all that is slow is done. HK_CONFLICT,
 * HK_CANCELLED: the batch returns that and has changed nothing. */
enum hk_code hk_job_hold(struct hk_job_run *run, struct hk_err *err) HK_MUSTCHECK;

/* Reads `n` numbers from a cursor, separated by `between`. False: it has fewer, so the job has not begun. */
bool hk_job_numbers(const struct hk_job_run *run, char between, int64_t *out, size_t n);

struct hk_op_job {
    bool
        forgets; /* its request may name a person who must be forgotten: it is deleted when the job has ended */
    /* Makes the request mean the same at any time (ages become points in time), in `mem`. HK_INVALID: it cannot be a job. */
    enum hk_code (*freeze)(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                           struct hk_pool *mem, struct hk_err *err);
    /* Runs the next batch, from run->cursor on. `result` is the operation's result: zeros at first, later as the previous batch left it
     * (stored through its form, so only the members of the form). After an error it is dropped with all changes of the batch. */
    enum hk_code (*batch)(struct hk_job_run *run, const struct hk_caller *caller, const void *request,
                          struct hk_pool *mem, void *result, struct hk_err *err);
};

/* ---- for the desk ---- */

struct hk_job_shown {
    struct hk_job job;
    int64_t now_ms;
};

/* Writes the job's row, and makes the answer that takes the place of the operation's result. */
enum hk_code hk_job_start(struct hk_desk *desk, const struct hk_op *op, const struct hk_caller *caller,
                          const void *request, struct hk_pool *mem, struct hk_job_shown *out,
                          struct hk_err *err);
/* Checks a request before that: HK_INVALID. */
enum hk_code hk_job_check(const struct hk_op *op, const void *request, struct hk_err *err);

/* ---- for relays ---- */

struct hk_job_worker {
    const char *owner;
    uint64_t lease_ms;
    bool (*stop)(void *arg); /* true: give the job back as soon as nothing is half done */
    void *arg;
};

/* The outcome of a job that was taken. */
struct hk_job_worked {
    int64_t id;                /* 0 = there was none to take */
    enum hk_job_status status; /* QUEUED: given back; RUNNING: it was lost, or the store is away */
    char operation[64];
    struct hk_err why; /* of one that failed, or was lost */
};

/* Takes a job, and works on it until it ends, is lost, or `stop` says so. An error: the store cannot be reached. */
enum hk_code hk_job_work(struct hk_desk *desk, const struct hk_job_worker *worker, struct hk_job_worked *out,
                         struct hk_err *err);

/* ---- list, show, cancel ---- */

struct hk_job_list_ask {
    bool running; /* only those that wait or run */
    uint64_t limit;
    const char *after; /* `next` of an earlier answer; NULL: from the newest on */
};

struct hk_job_listed {
    struct hk_jobs jobs;
    char next[24]; /* "" = there are no others */
};

struct hk_job_ask {
    const char *job_id;
};

extern const struct hk_op hk_op_job_list, hk_op_job_show, hk_op_job_cancel;

#endif
