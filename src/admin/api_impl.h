/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the files of the API share. */
#ifndef HK_ADMIN_API_IMPL_H
#define HK_ADMIN_API_IMPL_H

#include "admin/api.h"
#include "admin/problem.h"
#include "desk/wire.h"

#define HK_API_ACCEPTED 202 /* a job was started */

/* One call, while it is answered. */
struct hk_api {
    struct hk_desk *desk;
    const struct hk_api_request *request;
    struct hk_api_reply *out;
    const struct hk_op *op;
    struct hk_str path; /* below the prefix */
    struct hk_pool mem;
    void *asked, *result; /* of the operation */
    struct hk_wire_caller said;
    bool partly; /* it failed, but some of it is done: the same call must not be done again */
};

/* Path, query and body into `asked` and `said`. False: refused. */
bool hk_api_read(struct hk_api *api);
struct hk_caller hk_api_caller(const struct hk_api *api);
void hk_api_write_result(struct hk_api *api);
void hk_api_refuse(struct hk_api_reply *out, const struct hk_problem *problem);
/* `field`: of the request, that the error is about; NULL = none. */
void hk_api_fail(struct hk_api *api, const char *field, const struct hk_err *err);

/* Answers, or gives the answer of the same call again (api_calls.c). */
void hk_api_answer_once(struct hk_api *api, void (*answer)(struct hk_api *api));

/* Operations whose request or result is no single JSON object: messages that come in, letters that go out (api_stream.c). */
bool hk_api_is_stream(const struct hk_op *op);
void hk_api_stream(struct hk_api *api);

#endif
