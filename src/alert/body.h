/* SPDX-License-Identifier: Apache-2.0 */
/* A notice in the form that each receiver expects. Pure: a notice comes in, bytes go out, and whatever the notice holds, they
 * are what the receiver's format says. Errors are the buffer's. */
#ifndef HK_ALERT_BODY_H
#define HK_ALERT_BODY_H

#include "alert/notice.h"
#include "alert/words.h"

/* More than any notice needs. */
#define HK_BODY_MAX ((size_t)256 * 1024)

/* Slack's incoming webhook: blocks, and a text for notifications. */
void hk_body_slack(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out);
/* docs/channels.md: what webhooks and programs get. */
void hk_body_json(const struct hk_notice *notice, enum hk_alert_language language, const char *id,
                  struct hk_buf *out);
/* PagerDuty's Events API v2; `resolve`: ends it, whatever the notice is. */
void hk_body_pagerduty(const struct hk_notice *notice, enum hk_alert_language language,
                       const char *routing_key, bool resolve, struct hk_buf *out);

struct hk_mail_head {
    const char *from; /* as configured: "Name <a@b>" or an address */
    const char *const *to;
    size_t n_to;
    const char *id;
};

/* A whole mail, lines end in CRLF. HK_INVALID when an address is none; else the buffer's status. */
enum hk_code hk_body_mail(const struct hk_notice *notice, enum hk_alert_language language,
                          const struct hk_mail_head *head, struct hk_buf *out,
                          struct hk_err *err) HK_MUSTCHECK;
/* The address alone out of "Name <a@b>": what SMTP wants. HK_INVALID, without showing it. */
enum hk_code hk_mail_address(const char *text, char *out, size_t room, struct hk_err *err) HK_MUSTCHECK;

/* `text` as it may stand in a header field or an identifier: other characters become '-'; when something had to be changed or
 * cut, a hash of the whole makes it unlike others. At most `max` (32 and more) bytes and a terminator. */
void hk_body_token(const char *text, size_t max, char *out);

#endif
