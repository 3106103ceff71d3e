/* SPDX-License-Identifier: Apache-2.0 */
/* A notice for people, in words and in facts, and the channel that carries it to them. */
#ifndef HK_ALERT_NOTICE_H
#define HK_ALERT_NOTICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "base/proxy.h"
#include "core/alert.h" /* severities, kinds of notices and alerts, languages */

/* Another alert of the same story (core/alert_story.c). */
struct hk_notice_line {
    enum hk_alert_kind about;
    struct hk_str destination, reason;
    uint64_t count;
    double value, threshold;
    bool over;
};

#define HK_NOTICE_LINES_MAX 8

/* One that is to be told. Texts are masked already; they may hold anything, and each channel quotes them as it must. */
struct hk_notice {
    enum hk_notice_kind kind;
    enum hk_severity_level severity;
    enum hk_alert_kind about;
    const char *rule; /* the rule's name */
    const char
        *fingerprint; /* the same for firing, updates and the end of one alert: what receivers group by */
    uint64_t count;   /* messages concerned so far; 0 = it is not about messages */
    int64_t since_ms, at_ms;                       /* Unix ms */
    struct hk_str destination, reason, event_type; /* empty where they do not apply */
    struct hk_str example_id;                      /* a message_id */
    struct hk_alert_field fields[HK_ALERT_FIELDS]; /* of its payload */
    size_t n_fields;
    struct hk_str detail; /* the last error, or why it was paused */
    double value,
        threshold; /* of rules that compare: letters, or seconds for ages, standstills and lags (whose threshold is
                                the window) */
    const char *relay; /* who tells */
    const char *link;  /* to the dashboard; NULL = none is configured */
    struct hk_notice_line lines[HK_NOTICE_LINES_MAX];
    size_t n_lines;
    uint64_t more_lines; /* that found no place */
};

/* ---- channels ---- */

enum hk_channel_kind {
    HK_CHANNEL_SLACK = 0,
    HK_CHANNEL_EMAIL,
    HK_CHANNEL_WEBHOOK,
    HK_CHANNEL_PAGERDUTY,
    HK_CHANNEL_EXEC
};

/* As configured. Strings outlive the call. */
struct hk_channel {
    const char *name;
    enum hk_channel_kind kind;
    enum hk_alert_language language;
    uint64_t timeout_ms;
    const char *
        url; /* slack, webhook, pagerduty (default https://events.pagerduty.com/v2/enqueue), email: smtp://… or smtps://… */
    const char *secret;          /* webhook: signs as Standard Webhooks; pagerduty: routing key */
    const char *user, *password; /* email; NULL = none */
    const char *from;            /* email */
    const char *const *to;       /* email */
    size_t n_to;
    bool starttls_required;      /* email over smtp:// */
    const char *ca_file;         /* NULL = the system's */
    const struct hk_cidr *allow; /* address ranges that the guard lets through (webhook, slack, pagerduty) */
    size_t n_allow;
    const struct hk_proxy *proxy; /* NULL = none (not for exec) */
    const char *const *argv;      /* exec: program and arguments, no shell; the notice as JSON on stdin */
    size_t n_argv;
    /* NULL, or becomes true from another thread: what is under way is abandoned within about a second. */
    const atomic_bool *abandoned;
};

/* Blocking, bounded by timeout_ms, from any thread but the loop's. `id` is stable over repeats of one notice (webhook-id,
 * Message-ID, dedup_key where it fits). HK_OK: it was taken. Other codes: `err` says why without any secret; HK_INVALID:
 * it will never be (4xx), HK_CANCELLED: it was abandoned, and may
 * have arrived; anything else may be tried again; `*out_retry_ms`: 0 or what Retry-After asked for. */
enum hk_code hk_channel_send(const struct hk_channel *channel, const struct hk_notice *notice, const char *id,
                             uint64_t *out_retry_ms, struct hk_err *err) HK_MUSTCHECK;

/* Can it be used at all? Asks nobody; for configurations, before anything is to be told. HK_INVALID: nowhere; HK_NOTFOUND: not
 * here, where a file or program is missing. Both without any secret. */
enum hk_code hk_channel_check(const struct hk_channel *channel, struct hk_err *err) HK_MUSTCHECK;

/* The words alone, for every channel and for `alerts list`: a title of one line, and a text of a few. */
void hk_notice_title(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out);
void hk_notice_text(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out);

const char *hk_channel_kind_name(enum hk_channel_kind kind);

#endif
