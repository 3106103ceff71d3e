/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis sink: adds messages to streams of Redis or Valkey (XADD), and follows where a cluster says that a stream is. */
#ifndef HK_SINK_REDIS_REDIS_H
#define HK_SINK_REDIS_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"
#include "loop/loop.h"
#include "sink/sink.h"

/* All is copied. 0 and NULL: the default in brackets. */
struct hk_redis_options {
    const char *name;     /* the destination's */
    const char *url;      /* redis:// or rediss://, with the number of a database behind the slash [0] */
    const char *password; /* of the url's user, or of the default user */
    const char *stream;   /* payload/names.h */
    bool create;          /* a stream that is missing */
    uint64_t max_len;     /* trim the stream to about this many entries [no limit] */
    uint64_t dedup_ms;    /* how long an id is remembered [not] */
    uint32_t heartbeat_s; /* [10] */
    bool cloudevents;
    const char *ca_file, *cert_file, *key_file;
    const struct hk_cidr *allow;
    size_t n_allow;
    size_t window; /* [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_redis_open(struct hk_loop *loop, const struct hk_redis_options *options,
                           struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;

#endif
