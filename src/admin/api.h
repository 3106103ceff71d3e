/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API without HTTP: a request's parts in, a reply out. Everything below /api/v1 comes from the desk's table of
 * operations (desk/op.h): the paths, the required roles, the fields of query and body, and the JSON of the reply.
 *
 * hk_api_answer blocks (it uses the store), so it runs on a worker that has its own desk. It never fails: there is always a
 * reply. */
#ifndef HK_ADMIN_API_H
#define HK_ADMIN_API_H

#include "base/buf.h"
#include "desk/desk.h"
#include "desk/events.h"

#define HK_API_PREFIX    "/api/v1"
#define HK_API_BODY_MAX  ((size_t)1 << 20)  /* of an ordinary request */
#define HK_API_LOAD_MAX  ((size_t)16 << 20) /* of one that carries payloads */
#define HK_API_REPLY_MAX ((size_t)64 << 20)
#define HK_API_WHOLE_MAX ((size_t)256 << 10) /* of an answer that could be written as it is made */
#define HK_API_LINE_MAX  ((size_t)128 << 20) /* of such an answer: a letter, with its payload */

struct hk_api_reply;

struct hk_api_request {
    const char *method;
    const char *path;                                      /* whole and raw: "/api/v1/messages/a%20b" */
    const char *query;                                     /* raw; NULL = none */
    const char *content_type, *if_match, *idempotency_key; /* headers; NULL = not given */
    struct hk_str body;
    /* who asks, as far as the server knows already */
    enum hk_role role;
    const char *actor;
    const char *caller_key; /* whose Idempotency-Keys they are */
    bool may_reveal;
    bool by_command; /* our own command line asks: errors name its options, else the fields of the request */
    /* Both may be NULL: should a long operation end now? */
    bool (*stop)(void *arg);
    void *arg;
    /* Where an answer goes that is too long for memory; both NULL: nowhere, it is kept up to HK_API_REPLY_MAX. `begin` has the head and
     * comes first; HK_BUSY: not now. `write` takes all bytes, and waits for whoever reads them. After an error of either nothing more
     * is written. `arg` as above. */
    enum hk_code (*begin)(void *arg, const struct hk_api_reply *head);
    enum hk_code (*write)(void *arg, struct hk_str bytes);
};

struct hk_api_reply {
    unsigned status;
    const char *content_type;
    char etag[32];          /* "" = none */
    char location[64];      /* of a 202: where the job is; "" = none */
    char allow[64];         /* of a 405 */
    unsigned retry_after_s; /* 0 = none */
    bool replayed;          /* the stored answer to the same Idempotency-Key */
    bool written;           /* it went by `begin` and `write`: `body` is of no use */
    bool failed;            /* … and not to its end */
    /* In place of a body: a stream of events, as was asked for. Texts lie in `events_mem`, which is the caller's to free. */
    bool is_events;
    struct hk_events_ask events;
    struct hk_pool events_mem;
    struct hk_buf body;
};

/* `body` is the caller's to free (hk_buf_fini). */
void hk_api_answer(struct hk_desk *desk, const struct hk_api_request *request, struct hk_api_reply *out);

/* What somebody is answered who is not let in; `body` must be made. */
struct hk_auth_answer;
void hk_api_refuse_caller(struct hk_api_reply *out, const char *path, const struct hk_auth_answer *who);
/* Any other refusal before a request is read; `out` is initialized. */
struct hk_admin_reply;
void hk_api_refuse_at(struct hk_admin_reply *out, const char *path, unsigned status, const char *detail);

/* How many bytes of body a request may have: 0 = none. Asked when only its head is there. */
size_t hk_api_body_max(const char *method, const char *path);
bool hk_api_owns(const char *path); /* is it below the prefix, or the description of the API? */

/* The row that answers, by method and raw path below the prefix; NULL: none. `out_allow`: methods that the path takes, or "". */
const struct hk_op *hk_api_find(const char *method, struct hk_str path, char out_allow[64]);

/* OpenAPI 3.1, made from the table. */
void hk_api_describe(struct hk_buf *out);

#endif
