/* SPDX-License-Identifier: Apache-2.0 */
/* What a NATS server says, as bytes: operations, and the JSON in two of them. */
#ifndef HK_SINK_NATS_WIRE_H
#define HK_SINK_NATS_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "sink/broker/bytes.h"

#define HK_NATS_LINE_MAX    65536u /* INFO of a large cluster is long */
#define HK_NATS_MESSAGE_MAX 65536u /* answers to us are short */
#define HK_NATS_WORD_MAX    256

enum hk_nats_kind {
    HK_NATS_INFO = 0,
    HK_NATS_MSG, /* also HMSG */
    HK_NATS_PING,
    HK_NATS_PONG,
    HK_NATS_OK,
    HK_NATS_ERR
};

struct hk_nats_op {
    enum hk_nats_kind kind;
    struct hk_str text;    /* INFO: its JSON; ERR: its words, without quotes */
    struct hk_str subject; /* MSG */
    struct hk_str payload;
    unsigned status; /* HMSG: of its first header line, 0 = none */
};

enum hk_nats_next {
    HK_NATS_WHOLE = HK_NEXT_WHOLE,
    HK_NATS_MORE = HK_NEXT_MORE,
    HK_NATS_WRONG = HK_NEXT_WRONG
};

enum hk_nats_next hk_nats_read(struct hk_str in, struct hk_nats_op *out, size_t *out_used,
                               const char **out_why);

struct hk_nats_info {
    uint64_t max_payload;
    bool tls, headers, lame_duck;
    char nonce[HK_NATS_WORD_MAX]; /* to be signed; "" = none */
};

/* A text of a list, as "r1:4222". */
typedef void hk_nats_url_fn(void *arg, struct hk_str url);

/* `on_url` runs for each of connect_urls. False: it is not what it should be. */
bool hk_nats_read_info(struct hk_str json, struct hk_nats_info *out, hk_nats_url_fn *on_url, void *arg);

struct hk_nats_ack {
    bool stored, duplicate;
    uint64_t sequence;
    int64_t code, err_code; /* of an error; 0 = there is none */
    char description[HK_NATS_WORD_MAX];
    bool has_streams; /* of an answer to a question for streams: there is one */
};

/* False: it is no JSON object. */
bool hk_nats_read_ack(struct hk_str json, struct hk_nats_ack *out);

/* A subject that can be published to: words between dots, no wildcards. */
bool hk_nats_subject_ok(struct hk_str s);

#endif
