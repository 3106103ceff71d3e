/* SPDX-License-Identifier: Apache-2.0 */
#include "relay/store_settings.h"

struct hk_store_options hk_relay_store_options(const struct hk_config *c)
{
    static const enum hk_store_history history[] = {[HK_HISTORY_FAILURES] = HK_STORE_HISTORY_FAILURES,
                                                    [HK_HISTORY_ALL] = HK_STORE_HISTORY_ALL,
                                                    [HK_HISTORY_NONE] = HK_STORE_HISTORY_NONE};

    return (struct hk_store_options){.keep_sent = c->retention.sent_ms > 0 && c->retention.sent_rows > 0,
                                     .history = history[c->relay.history],
                                     .max_payload_bytes = c->relay.max_payload_bytes,
                                     .seal = c->seal.mode == HK_SEAL_REST ? c->keys : NULL};
}

struct hk_retention hk_relay_retention(const struct hk_config *c)
{
    return (struct hk_retention){.sent_ms = c->retention.sent_ms,
                                 .sent_rows = c->retention.sent_rows,
                                 .discarded_ms = c->retention.discarded_ms,
                                 .resolved_ms = c->retention.resolved_ms,
                                 .cancelled_ms = c->retention.cancelled_ms,
                                 .attempts_ms = c->retention.attempts_ms,
                                 .dead_ms = c->retention.dead_ms,
                                 .audit_ms = c->retention.audit_ms};
}

bool hk_relay_same_store_options(const struct hk_config *a, const struct hk_config *b)
{
    struct hk_store_options x = hk_relay_store_options(a);
    struct hk_store_options y = hk_relay_store_options(b);
    return x.keep_sent == y.keep_sent && x.history == y.history &&
           x.max_payload_bytes == y.max_payload_bytes && x.seal == y.seal;
}
