/* SPDX-License-Identifier: Apache-2.0 */
/* The Pub/Sub sink: publishes messages to one topic of Google Cloud Pub/Sub by REST, up to a thousand in a request. */
#ifndef HK_SINK_PUBSUB_PUBSUB_H
#define HK_SINK_PUBSUB_PUBSUB_H

#include "loop/loop.h"
#include "sink/http/http.h"

#define HK_PUBSUB_PROBE_MAX 320

/* All is copied. NULL and 0: the default in brackets. */
struct hk_pubsub_options {
    const char *name; /* the destination's */
    const char *project, *topic;
    const char *endpoint; /* http:// or https:// [https://pubsub.googleapis.com] */
    bool emulator;        /* requests carry no credentials */
    const char *key;      /* of a service account, as JSON … */
    const char *key_file; /* … or a file that holds it; neither: the metadata server is asked for tokens */
    const char *metadata; /* where that is [http://169.254.169.254] */
    const char *ca_file;
    bool ordering;    /* message_key becomes the ordering key; else an attribute */
    bool cloudevents; /* 1.0, binary mode */
    const struct hk_cidr *allow;
    size_t n_allow;
    const struct hk_proxy *proxy;
    size_t window; /* [HK_BROKER_WINDOW] */
};

/* HK_INVALID with a message that names the destination and never a secret, HK_NOMEM. The loop must outlive the sink. */
enum hk_code hk_pubsub_open(struct hk_loop *loop, const struct hk_pubsub_options *options,
                            struct hk_sink **out_sink, struct hk_err *err) HK_MUSTCHECK;
/* Is the topic there, and may these credentials publish to it? As hk_sink_kind.probe. */
enum hk_code hk_pubsub_probe(const struct hk_pubsub_options *options, uint64_t timeout_ms,
                             char out[HK_PUBSUB_PROBE_MAX], struct hk_err *err) HK_MUSTCHECK;

#endif
