/* SPDX-License-Identifier: Apache-2.0 */
/* Google's Cloud Tasks v2, as its clients speak it over REST: paths below /v2/projects, proto-JSON in and out, errors in Google's form.
 * The desk carries out the requests (desk/queues.h). */
#ifndef HK_ADMIN_TASKS_TASKS_H
#define HK_ADMIN_TASKS_TASKS_H

#include "admin/api.h"
#include "admin/tasks/proto.h"
#include "desk/queues.h"

#define HK_TASKS_PREFIX "/v2/projects/"
#define HK_TASKS_BODY_MAX                                                                                    \
    ((size_t)512 << 10) /* of a request: a task of 100 KB in base64, with all around it */

bool hk_tasks_owns(const char *path);
/* As hk_api_answer. `out` is initialised, with an empty body. */
void hk_tasks_answer(struct hk_desk *desk, const struct hk_api_request *request, struct hk_api_reply *out);
/* Writes Google's form of an error. */
void hk_tasks_fail(struct hk_api_reply *out, enum hk_code code, const char *message);
/* The same for a request that is refused before it is read: a caller who is not let in, a body that is too long. `status`: as it would be
 * elsewhere. */
void hk_tasks_refuse(struct hk_api_reply *out, unsigned status, const char *message);

/* ---- what the files share ---- */

/* A request on its way. */
struct hk_tasks_call {
    struct hk_desk *desk;
    const struct hk_api_request *request;
    struct hk_api_reply *out;
    struct hk_pool mem;
    struct hk_caller caller;
    const char *parent; /* projects/P/locations/L */
    const char *queue;  /* projects/P/locations/L/queues/Q; NULL: the path ends before */
    const char *task;   /* the id; NULL: the path ends before */
    /* of the query */
    bool numbers;  /* enums are written as numbers */
    bool full;     /* responseView=FULL */
    int64_t limit; /* pageSize; 0 = not given */
    const char *page_token, *update_mask;
};

/* Asks the desk. False: the error is written. */
bool hk_tasks_ask(struct hk_tasks_call *c, const struct hk_op *op, const void *ask, void *result);
/* Reads the body. False: the error is written. */
bool hk_tasks_read(struct hk_tasks_call *c, const struct hk_proto_type *type, void *out);
void hk_tasks_wrong(struct hk_tasks_call *c, const char *message);

/* queue_calls.c */
void hk_tasks_queue_create(struct hk_tasks_call *c);
void hk_tasks_queue_patch(struct hk_tasks_call *c);
void hk_tasks_queue_get(struct hk_tasks_call *c);
void hk_tasks_queue_list(struct hk_tasks_call *c);
void hk_tasks_queue_delete(struct hk_tasks_call *c);
void hk_tasks_queue_purge(struct hk_tasks_call *c);
void hk_tasks_queue_pause(struct hk_tasks_call *c);
void hk_tasks_queue_resume(struct hk_tasks_call *c);

/* task_calls.c */
extern const struct hk_proto_word hk_tasks_views[];
void hk_tasks_task_create(struct hk_tasks_call *c);
void hk_tasks_task_get(struct hk_tasks_call *c);
void hk_tasks_task_list(struct hk_tasks_call *c);
void hk_tasks_task_delete(struct hk_tasks_call *c);
void hk_tasks_task_run(struct hk_tasks_call *c);

#endif
