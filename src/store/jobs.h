/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: long operations that relays carry out, batch by batch. This is a sixth small vtable, on the same handle as admin.h and under
 * the same rules. tests/contract/jobs_suite.c tests this contract.
 *
 * A job is a row (outbox_job): the request, the person who asked, the progress, and the relay that works on it. The store does not
 * know operations; `operation`, `request`, `cursor` and `result` are texts of the desk (desk/job.h).
 *
 * - A relay takes a job with a lease, in the store's time. Each take gives the job the next token. A relay with an older token
 *   can change nothing any more, however long it slept.
 * - A batch is one transaction. `hold` begins it and locks the row; acts of any vtable on this handle join it; `save` writes the
 *   progress and commits. Until then nobody sees the batch, and the death of the process undoes it.
 * - While a transaction is held, an act that fails undoes all of it, and every call fails until `drop` or `save`. The server ends the
 *   transaction of a process that sleeps in it (PostgreSQL: HK_JOB_IDLE_MS).
 * - `renew`, `hold`, `save` and `drop` do not invalidate results of earlier calls: a batch may still use rows that it has read. */
#ifndef HK_STORE_JOBS_H
#define HK_STORE_JOBS_H

#include "store/admin.h"

#define HK_JOBS_OPEN_MAX     100 /* jobs that wait or run; more are refused */
#define HK_JOBS_LIST_MAX     1000
#define HK_JOB_TRIES_MAX     5 /* takes without any progress in between */
#define HK_JOB_GIVEN_UP_CODE "UNAVAILABLE"
#define HK_JOB_GIVEN_UP      "relays tried several times and made no progress: see their logs, then start it again"
#define HK_JOB_IDLE_MS       5000
#define HK_JOB_LEASE_FAR                                                                                     \
    ((int64_t)2 * 3600 * 1000) /* a lease further ahead comes from a clock that was set back since */
#define HK_JOB_REQUEST_MAX ((size_t)256 << 10)
#define HK_JOB_RESULT_MAX  ((size_t)1 << 20)
#define HK_JOB_CURSOR_MAX  ((size_t)1 << 10)
#define HK_JOB_TEXT_MAX    ((size_t)4 << 10) /* actor, reason, error …: longer ones are cut */

enum hk_job_status {
    HK_JOB_QUEUED = 0,
    HK_JOB_RUNNING,
    HK_JOB_DONE,
    HK_JOB_FAILED,
    HK_JOB_CANCELLED,
    HK_NJOB_STATUSES
};

const char *hk_job_status_name(unsigned status);
/* HK_JOB_FAILED for a word that is none. */
enum hk_job_status hk_job_status_by_name(struct hk_str name);

struct hk_job_progress {
    uint64_t done, total; /* total 0 = not known */
    uint64_t changed, failed;
};

struct hk_job {
    int64_t id;
    enum hk_job_status status;
    struct hk_str operation; /* "dead discard" */
    struct hk_str actor, reason, role;
    bool reveal;
    struct hk_job_progress progress;
    int64_t act_id;                            /* of the audit; 0 = it has changed nothing yet */
    struct hk_str error_code, error;           /* of one that failed */
    struct hk_str cancelled_by, cancel_reason; /* "" = nobody has asked for that */
    struct hk_str owner;                       /* the relay that works on it, or did last; "" = none yet */
    int64_t created_ms, started_ms, ended_ms;  /* 0 = not yet */
    uint32_t tries;                            /* takes since its last progress */
    int64_t token;
    /* not in a list */
    struct hk_str request, cursor, result; /* result: "" = none yet */
};

struct hk_jobs {
    struct hk_job *items; /* newest first */
    size_t n;
    bool more;
    int64_t now_ms;
};

struct hk_job_new {
    struct hk_str operation, request;
    const char *actor, *reason, *role;
    bool reveal;
};

struct hk_job_page {
    int64_t before_id; /* 0 = from the newest */
    uint32_t limit;    /* up to HK_JOBS_LIST_MAX */
    bool open_only;    /* that wait or run */
};

struct hk_job_lease {
    const char *owner;
    uint64_t for_ms;
};

struct hk_job_grip {
    int64_t id, token;
    uint64_t lease_ms; /* from now on */
};

struct hk_job_save {
    struct hk_job_grip grip;
    enum hk_job_status
        status; /* RUNNING: it continues; QUEUED: given back, for any relay; else it has ended */
    struct hk_job_progress progress;
    int64_t act_id;
    struct hk_str cursor, result;
    const char *error_code, *error; /* of HK_JOB_FAILED */
    bool moved;                     /* it made progress: count tries from 0 again */
    bool forget; /* delete the request: the job has ended, and the request may name a person */
};

struct hk_store_jobs_ops {
    /* HK_BUSY: HK_JOBS_OPEN_MAX jobs wait or run. HK_TOOBIG: the request. Leaves "job-start" in the audit. */
    enum hk_code (*create)(struct hk_admin *admin, const struct hk_job_new *ask, int64_t *out_id,
                           struct hk_err *err);
    enum hk_code (*list)(struct hk_admin *admin, const struct hk_job_page *page, const struct hk_jobs **out,
                         struct hk_err *err);
    /* One job with everything. HK_NOTFOUND. `*out_now_ms` may be NULL. */
    enum hk_code (*find)(struct hk_admin *admin, int64_t id, const struct hk_job **out, int64_t *out_now_ms,
                         struct hk_err *err);
    /* Ends a waiting job at once, and a running one before its next batch. A second call changes nothing. HK_NOTFOUND;
     * HK_CONFLICT: it has ended. Writes "job-cancel" to the audit. */
    enum hk_code (*cancel)(struct hk_admin *admin, int64_t id, const char *actor, const char *reason,
                           struct hk_err *err);

    /* ---- for relays ---- */

    /* Is there a job to take? Cheap, and locks nothing. */
    enum hk_code (*waiting)(struct hk_admin *admin, bool *out, struct hk_err *err);
    /* Takes the oldest job that waits or whose lease has run out. `*out` NULL: there is none. A job that was taken HK_JOB_TRIES_MAX
     * times without progress has failed, and is not returned. */
    enum hk_code (*take)(struct hk_admin *admin, const struct hk_job_lease *lease, const struct hk_job **out,
                         struct hk_err *err);
    /* HK_CONFLICT of these: the job is not this relay's any more. `*out_cancel`: somebody has cancelled the job. */
    enum hk_code (*renew)(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                          struct hk_err *err);
    enum hk_code (*hold)(struct hk_admin *admin, const struct hk_job_grip *grip, bool *out_cancel,
                         struct hk_err *err);
    /* Commits the held transaction, or without one runs in a separate transaction. HK_UNAVAILABLE: it is unknown whether the commit
     * happened; find and take show it. */
    enum hk_code (*save)(struct hk_admin *admin, const struct hk_job_save *save, struct hk_err *err);
    /* Undoes the held transaction, if there is one. */
    void (*drop)(struct hk_admin *admin);
};

extern const struct hk_store_jobs_ops hk_store_jobs_sqlite;
extern const struct hk_store_jobs_ops hk_store_jobs_postgres; /* where it was built in */

/* As hk_store_by_url. */
const struct hk_store_jobs_ops *hk_store_jobs_by_url(const char *url, struct hk_err *err);

#endif
