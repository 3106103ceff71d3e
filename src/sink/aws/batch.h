/* SPDX-License-Identifier: Apache-2.0 */
/* The sink of all services of AWS that take messages in batches. `send` collects; `flush` makes requests. A request ends all of its messages:
 * each with the result of its entry, or all with what became of the request. A request of several messages that is refused as a whole says
 * nothing of the single message, so each of them goes out once more alone (load.h). The service took none of them: it is the same attempt.
 *
 * Order: the engine has one message of a key in flight where `order: key` says so. So two messages of a key are never in one request, and
 * one that failed is settled before the next one is sent: partial failures cannot change their order.
 *
 * A service is one struct: how an entry is checked and written, and what an answer says. */
#ifndef HK_SINK_AWS_BATCH_H
#define HK_SINK_AWS_BATCH_H

#include "base/json.h"
#include "sink/aws/answer.h"
#include "sink/aws/client.h"
#include "sink/broker/broker.h"

enum hk_aws_body {
    HK_AWS_BODY_PAYLOAD = 0,
    HK_AWS_BODY_EVENT,   /* a structured CloudEvent around it */
    HK_AWS_BODY_ENVELOPE /* {"metadata":{…},"data":…} around it */
};

struct hk_aws_sink;

struct hk_aws_entry {
    const struct hk_message *msg;
    const struct hk_fields *fields;
    struct hk_str body; /* the message's payload, or what is made of it */
};

struct hk_aws_service {
    const char *kind;   /* of sink: "sqs" */
    const char *title;  /* for people: "SQS" */
    const char *signs;  /* in signatures and host names: "sqs" */
    const char *target; /* X-Amz-Target; NULL: none */
    const char *content_type;
    const char *to; /* what it sends to, for people: "queue_url" */
    const struct hk_fields_rule *fields;
    size_t max_entries, max_bytes; /* of one request */
    const char *const *gone;       /* codes of refusals that every message would meet; ends with NULL */
    /* How many bytes of it the service counts. HK_INVALID: the service cannot carry it; HK_TOOBIG: not even alone. */
    enum hk_code (*check)(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t *out_bytes,
                          struct hk_err *err);
    /* What stands before all entries, and each entry (the at-th, from 0). Errors are the buffer's; `json` writes to it as well. What is open
     * in `json` behind the last entry is closed. */
    void (*begin)(const struct hk_aws_sink *sink, struct hk_json *json, struct hk_buf *out);
    void (*add)(const struct hk_aws_sink *sink, const struct hk_aws_entry *entry, size_t at,
                struct hk_json *json, struct hk_buf *out);
    bool (*read)(struct hk_str body, struct hk_aws_result *out, size_t n);
    /* What follows from a message, as members of a JSON object. NULL: nothing. */
    void (*show)(const struct hk_aws_sink *sink, const struct hk_message *msg, struct hk_json *json);
};

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_aws_sink_options {
    struct hk_aws_options aws; /* service, content_type and wake: set here */
    const char *to;            /* the queue's URL, the topic's ARN … */
    const char *source;        /* of events [/hikyaku] */
    enum hk_aws_body body;
    size_t window; /* [HK_BROKER_WINDOW] */
};

struct hk_aws_sink {
    struct hk_broker broker; /* first */
    struct hk_broker_ops broker_ops;
    const struct hk_aws_service *service;
    struct hk_aws_client *client;
    char *to, *source;
    bool fifo; /* `to` ends with .fifo */
    enum hk_aws_body body;
    struct hk_buf made;
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_aws_sink_open(struct hk_loop *loop, const struct hk_aws_service *service,
                              const struct hk_aws_sink_options *options, struct hk_sink **out_sink,
                              struct hk_err *err) HK_MUSTCHECK;

#endif
