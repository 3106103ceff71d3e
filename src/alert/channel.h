/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations that the channels share: the one function of each channel, and helpers for all of them. */
#ifndef HK_ALERT_CHANNEL_H
#define HK_ALERT_CHANNEL_H

#include "alert/body.h"
#include "alert/notice.h"
#include "alert/send.h"

struct hk_channel_call {
    const struct hk_channel *channel;
    const struct hk_notice *notice;
    const char *id;
    uint64_t retry_ms; /* out: what the receiver asked for */
};

enum hk_code hk_channel_slack(struct hk_channel_call *call, struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_channel_webhook(struct hk_channel_call *call, struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_channel_pagerduty(struct hk_channel_call *call, struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_channel_email(struct hk_channel_call *call, struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_channel_exec(struct hk_channel_call *call, struct hk_err *err) HK_MUSTCHECK;

/* Posts JSON to `url` and judges the answer: 2xx is HK_OK. `headers`: beside Content-Type and User-Agent, at most
 * HK_CHANNEL_HEADERS. `text` (initialised) has the answer's start, without secrets; may be NULL. */
#define HK_CHANNEL_HEADERS 4
enum hk_code hk_channel_post(struct hk_channel_call *call, const char *url, struct hk_str body,
                             const char *const *headers, size_t n_headers, struct hk_buf *text,
                             struct hk_err *err) HK_MUSTCHECK;

/* Overwrites with stars what is secret in a channel: the path of its URL, its keys and passwords. */
void hk_channel_hide(const struct hk_channel *channel, char *text, size_t len);

/* The buffer's failure as an error. */
enum hk_code hk_channel_too_big(enum hk_code status, struct hk_err *err);

#endif
