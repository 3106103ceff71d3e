/* SPDX-License-Identifier: Apache-2.0 */
/* One message, once, now, from here: through the very sink that the relay uses, judged by the very policy. Nothing is
 * recorded; that is up to the operation. */
#ifndef HK_DESK_DELIVER_H
#define HK_DESK_DELIVER_H

#include <hikyaku/policy.h>

#include "config/config.h"
#include "core/message.h"

struct hk_delivered {
    int64_t started_ms;
    enum hk_class failure_class;
    struct hk_str cause;
    int status; /* 0: there was no answer, and `fault` says why */
    enum hk_fault fault;
    uint64_t duration_ms;
    bool possibly_delivered;
    struct hk_str error, address, request_headers, response_headers, body; /* secrets of the request masked */
};

/* Waits for the answer, five minutes at the most; the texts are in `mem`. HK_UNSUPPORTED: the destination's settings cannot be used. On
 * any error, nothing was sent. */
enum hk_code hk_deliver(const struct hk_conf_destination *conf, const struct hk_policy *policy,
                        const struct hk_message *message, struct hk_pool *mem, struct hk_delivered *out,
                        struct hk_err *err);

#endif
