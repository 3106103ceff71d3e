/* SPDX-License-Identifier: Apache-2.0 */
/* Signed requests to one service of AWS, over an HTTP sink of their own: the same address policy, proxy and deadlines. All of them are POST
 * requests to "/" with a body in JSON, or (query services) with a form. */
#ifndef HK_SINK_AWS_CLIENT_H
#define HK_SINK_AWS_CLIENT_H

#include "loop/loop.h"
#include "sink/aws/credentials.h"
#include "sink/http/http.h"

#define HK_AWS_JSON_1_0 "application/x-amz-json-1.0"
#define HK_AWS_JSON_1_1 "application/x-amz-json-1.1"
#define HK_AWS_FORM     "application/x-www-form-urlencoded"

/* All is copied. NULL: not given. */
struct hk_aws_options {
    const char *name; /* the destination's */
    const char *
        endpoint; /* http:// or https://; what stands behind its host is left out [that of service and region] */
    const char *service, *region;
    const char *content_type;                                         /* static */
    const char *key_id, *secret, *token, *credentials_file, *profile; /* struct hk_aws_source */
    const char *ca_file;
    const struct hk_cidr *allow;
    size_t n_allow;
    const struct hk_proxy *proxy;
    hk_loop_fn *wake; /* from the loop: a client that was busy may be ready now */
    void *wake_arg;
};

struct hk_aws_client;

/* One request; the caller's, and valid until `done`. */
struct hk_aws_call {
    struct hk_message msg; /* whose payload the body is; the client's. First */
    const char *target;    /* X-Amz-Target; NULL: none */
    struct hk_str body;
    uint64_t timeout_ms;
    hk_sink_done_fn *done;
    void *arg;
};

/* HK_INVALID with a message that names the destination, HK_NOMEM. Connects to nothing and reads no credentials yet. */
enum hk_code hk_aws_client_open(struct hk_loop *loop, const struct hk_aws_options *options,
                                struct hk_aws_client **out_client, struct hk_err *err) HK_MUSTCHECK;
void hk_aws_client_free(
    struct hk_aws_client *client); /* accepts NULL; `done` of calls under way never runs */

/* Are there credentials? HK_OK; HK_BUSY: they are being asked for, and `wake` runs later; else no call may be made, for the reason in `err`
 * (hk_aws_provider_get). */
enum hk_code hk_aws_client_ready(struct hk_aws_client *client, enum hk_fault *out_fault,
                                 struct hk_err *err) HK_MUSTCHECK;
/* The service did not take them. */
void hk_aws_client_doubt(struct hk_aws_client *client);
/* As `send` of a sink. Only when ready. */
enum hk_code hk_aws_client_call(struct hk_aws_client *client, struct hk_aws_call *call,
                                struct hk_err *err) HK_MUSTCHECK;
/* Ends all calls: their `done` runs soon. */
void hk_aws_client_abort(struct hk_aws_client *client);

#endif
