/* SPDX-License-Identifier: Apache-2.0 */
/* Queues and tasks as Google's Cloud Tasks has them. A queue is a destination that was made at run time, with `url: message` and a section
 * `queue`; a task is a message for it, whose message_id is the task's name. Everything else that holds for destinations and messages holds
 * for them. Who asks for them over HTTP: admin/tasks. */
#ifndef HK_DESK_QUEUES_H
#define HK_DESK_QUEUES_H

#include "desk/desk.h"

#define HK_QUEUE_NAME_MAX 256 /* projects/P/locations/L/queues/Q, with its terminator */
#define HK_TASK_ID_MAX    500
#define HK_TASK_BYTES_MAX ((size_t)100 * 1024) /* of a task, all in all */

/* ---- queues ---- */

enum hk_queue_given {
    HK_QUEUE_RATE = 1 << 0,
    HK_QUEUE_BURST = 1 << 1,
    HK_QUEUE_CONCURRENCY = 1 << 2,
    HK_QUEUE_MAX_ATTEMPTS = 1 << 3,
    HK_QUEUE_MAX_RETRY = 1 << 4,
    HK_QUEUE_MIN_BACKOFF = 1 << 5,
    HK_QUEUE_MAX_BACKOFF = 1 << 6,
    HK_QUEUE_MAX_DOUBLINGS = 1 << 7,
    HK_QUEUE_POLICY = 1 << 8
};

struct hk_queue_settings {
    unsigned given; /* bits of enum hk_queue_given; other settings stay, or get the default */
    double rate_per_s;
    int64_t burst, concurrency;
    int64_t max_attempts; /* -1: no limit */
    int64_t max_retry_ms; /* 0: no limit */
    int64_t min_backoff_ms, max_backoff_ms, max_doublings;
    const char *policy;
};

struct hk_queue {
    const char *name, *destination;
    bool paused;
    struct hk_queue_settings is; /* as it holds: all of it is given */
    /* as far as they are counted (store/admin.h); of a queue that was just made or changed, too */
    struct hk_count waiting, dead; /* waiting: those in flight, too */
    uint64_t in_flight;
};

/* `name` of these: the whole name, or its last part where no other queue ends so. */
struct hk_queue_ask {
    const char *name;
};

/* The settings of a request. Some are texts, because 0 or "unlimited" has a meaning. NULL and 0: not given. */
struct hk_queue_set_ask {
    const char *name;
    double rate;
    uint64_t burst, concurrency, min_backoff, max_backoff;
    const char *max_attempts, *max_retry_duration, *max_doublings, *policy;
    struct hk_texts reset; /* update: fields that go back to the default */
};

struct hk_queue_put_ask {
    const char *name;
    bool create;    /* HK_EXISTS when it is there; else it is made or changed */
    bool absent[9]; /* by bit of enum hk_queue_given: back to the default */
    struct hk_queue_settings to;
};

struct hk_queues_ask {
    const char *parent; /* projects/P/locations/L */
    uint64_t limit;
    const char *after; /* a name; NULL: from the first on */
};

struct hk_queues {
    struct hk_queue *items; /* by name */
    size_t n;
    const char *next; /* the name after which the next page begins; NULL: there are no others */
};

/* Purged or deleted. A page of tasks is cancelled at once, more of them by a job (job.h). */
struct hk_queue_gone {
    const char *name, *did; /* "purged", "deleted" */
    uint64_t cancelled;     /* tasks, as far as it is done */
    uint64_t left;          /* delete: tasks that were in flight to the end, which nobody takes back */
    int64_t job_id;         /* that does the rest; 0 = nothing is left to do */
    int64_t before_ms;      /* purge: tasks that were created before this time go */
};

/* In the table. */
extern const struct hk_op hk_op_queues_list, hk_op_queues_show, hk_op_queues_create, hk_op_queues_update,
    hk_op_queues_delete, hk_op_queues_purge, hk_op_queues_pause, hk_op_queues_resume;
/* Not in the table: create and update, as clients of Cloud Tasks ask for them. */
extern const struct hk_op hk_op_queues_put;

/* ---- tasks ---- */

struct hk_task_header {
    struct hk_str name, value;
};

struct hk_task_new_ask {
    const char *queue;
    const char *task; /* NULL: one is made up */
    const char *url, *method;
    const struct hk_task_header *headers;
    size_t n_headers;
    struct hk_str body;  /* ptr NULL: none */
    int64_t schedule_ms; /* 0: now */
    int64_t deadline_ms; /* of one attempt; 0: as the policy says */
};

struct hk_task_ask {
    const char *queue, *task;
    bool body; /* with it */
};

struct hk_task {
    struct hk_str id;
    const char *url, *method;
    struct hk_task_header *headers;
    size_t n_headers;
    struct hk_str body; /* ptr NULL: none, or not asked for */
    int64_t created_ms, schedule_ms, deadline_ms;
    uint32_t dispatches, responses;
    int64_t first_ms; /* the first dispatch, as far as it is known; 0: none */
    int64_t last_ms;  /* the last one */
    int last_status;  /* what it was answered; 0: nothing, or it is not known */
    struct hk_str last_error;
};

struct hk_tasks_ask {
    const char *queue;
    uint64_t limit;
    bool body;
    const char *after; /* `next` of an earlier answer */
};

struct hk_tasks {
    struct hk_task *items;
    size_t n;
    char next[48]; /* "" = there are no others */
};

extern const struct hk_op hk_op_tasks_create, hk_op_tasks_show, hk_op_tasks_list, hk_op_tasks_delete,
    hk_op_tasks_run;

/* ---- what their files share ---- */

/* Makes or changes one: what hk_op_queues_put does. */
enum hk_code hk_queue_put(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_queue_put_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                          struct hk_err *err);
/* The whole name of the queue that a person means. HK_NOTFOUND, HK_INVALID: several end so. */
enum hk_code hk_queue_resolve(struct hk_desk *desk, const char *name, struct hk_pool *mem, const char **out,
                              struct hk_err *err);
/* Removes the section `queue` from the definition, which leaves an ordinary destination. No error if it is one already. */
enum hk_code hk_queue_unmake(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                             struct hk_pool *mem, struct hk_err *err);

/* The name of the destination that is this queue. */
void hk_queue_destination(const char *name, char out[HK_NAME_MAX]);
/* HK_DENIED: the configuration has no section `queues`. HK_INVALID: it is no queue's name. HK_NOTFOUND. `out_version` may be NULL. */
enum hk_code hk_queue_find(struct hk_desk *desk, const char *name, struct hk_pool *mem, struct hk_queue *out,
                           int64_t *out_version, struct hk_err *err);
enum hk_code hk_queues_on(const struct hk_desk *desk, struct hk_err *err);

#endif
