/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HK_SINK_PUBSUB_IMPL_H
#define HK_SINK_PUBSUB_IMPL_H

#include "base/json.h"
#include "sink/broker/fields.h"
#include "sink/pubsub/pubsub.h"

#define HK_PUBSUB_BATCH_MAX     1000
#define HK_PUBSUB_BATCH_BYTES   ((size_t)1024 * 1024)
#define HK_PUBSUB_MESSAGE_BYTES ((size_t)10 * 1000 * 1000) /* Pub/Sub takes no larger request */
#define HK_PUBSUB_NAME_MAX      256                        /* of attributes */
#define HK_PUBSUB_VALUE_MAX     1024
#define HK_PUBSUB_KEY_MAX       1024
#define HK_PUBSUB_ENDPOINT      "https://pubsub.googleapis.com"
#define HK_PUBSUB_AUDIENCE      "https://pubsub.googleapis.com/" /* whatever the endpoint is */
#define HK_PUBSUB_METADATA      "http://169.254.169.254"

/* ---- message.c ---- */

extern const struct hk_fields_rule hk_pubsub_rule;         /* the key is an attribute */
extern const struct hk_fields_rule hk_pubsub_ordered_rule; /* the key is the ordering key */

struct hk_pubsub_message {
    const struct hk_fields *fields;
    struct hk_str data, ordering_key; /* ordering_key: "" = none */
};

/* How many bytes of it Pub/Sub counts. HK_INVALID: Pub/Sub cannot carry it; HK_TOOBIG: not even alone. */
enum hk_code hk_pubsub_message_check(const struct hk_pubsub_message *message, size_t *out_bytes,
                                     struct hk_err *err) HK_MUSTCHECK;
/* Adds it as a JSON object; `base64` is for its own use. Errors are the buffer's. */
void hk_pubsub_message_write(struct hk_json *json, const struct hk_pubsub_message *message,
                             struct hk_buf *base64);

/* ---- answer.c ---- */

struct hk_pubsub_error {
    char code[48]; /* of google.rpc: "INVALID_ARGUMENT"; "HTTP 502" where there is none */
    char words[400];
};

struct hk_pubsub_id {
    char text[48];
};

/* Of an answer that is no 2xx. */
void hk_pubsub_error_read(struct hk_str body, int status, struct hk_pubsub_error *out);
/* What it means. `*out_maybe`: the service may have acted all the same. `*out_some`: perhaps for some of the messages only. */
enum hk_fault hk_pubsub_fault(const struct hk_pubsub_error *error, int status, bool *out_maybe,
                              bool *out_some);
/* The ids of n messages, in their order. False: the answer has not exactly n. */
bool hk_pubsub_ids_read(struct hk_str body, struct hk_pubsub_id *out, size_t n);
/* Of testIamPermissions: 1 that one is among them, 0 it is not, -1 it is no such answer. */
int hk_pubsub_permission_read(struct hk_str body, const char *permission);

/* ---- key.c ---- */

#define HK_PUBSUB_TOKEN_S 3600 /* Google takes none that lives longer */

/* A JWT that the service account of this key (the JSON that Google gives out) signs for itself, which is an access token. HK_DENIED: the
 * key cannot be used, and why, without showing it. HK_NOMEM. */
enum hk_code hk_pubsub_jwt_make(struct hk_str key, int64_t now_s, struct hk_buf *out,
                                struct hk_err *err) HK_MUSTCHECK;

/* ---- client.c ---- */

struct hk_pubsub_client;

/* Requests to one method of the topic: "publish". Connects to nothing yet. */
enum hk_code hk_pubsub_client_open(struct hk_loop *loop, const struct hk_pubsub_options *options,
                                   const char *method, struct hk_pubsub_client **out_client,
                                   struct hk_err *err) HK_MUSTCHECK;
void hk_pubsub_client_free(
    struct hk_pubsub_client *client); /* accepts NULL; `done` of calls under way never runs */
/* As `send` of a sink. `msg`, whose payload the body is, stays until `done`. */
enum hk_code hk_pubsub_client_call(struct hk_pubsub_client *client, const struct hk_message *msg,
                                   uint64_t timeout_ms, hk_sink_done_fn *done, void *arg,
                                   struct hk_err *err) HK_MUSTCHECK;
void hk_pubsub_client_abort(struct hk_pubsub_client *client);

#endif
