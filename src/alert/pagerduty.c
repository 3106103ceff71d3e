/* SPDX-License-Identifier: Apache-2.0 */
/* PagerDuty's Events API v2, and whatever understands it. The alert's fingerprint is what events are put together by. */
#include <string.h>

#include "alert/body.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

enum {
    SUMMARY_MAX = 1024, /* characters */
    DEDUP_MAX = 255,
    SOURCE_MAX = 200
};

static void put_shown(struct hk_json *json, const char *key, struct hk_str text, size_t max)
{
    struct hk_buf shown;
    if (text.len == 0)
        return;
    hk_buf_init(&shown, HK_BODY_MAX);
    hk_show_plain(text, max, &shown);
    hk_json_key(json, key);
    hk_json_str(json, hk_buf_str(&shown));
    hk_words_done(&shown, json->out);
}

static const char *severity_of(const struct hk_notice *n)
{
    if (n->kind == HK_NOTICE_TEST)
        return "info";
    switch (n->severity) {
    case HK_ALERT_INFO:
        return "info";
    case HK_ALERT_WARNING:
        return "warning";
    case HK_ALERT_CRITICAL:
        return "critical";
    }
    return "error";
}

static void on_fact(void *arg, enum hk_fact_kind kind, const char *label, struct hk_str value)
{
    (void)kind;
    struct hk_json *json = arg;
    hk_json_key(json, label);
    hk_json_str(json, value);
}

static void put_details(struct hk_json *json, const struct hk_notice *n, enum hk_alert_language language)
{
    const struct hk_words *words = hk_words_of(language);
    struct hk_buf text;
    hk_buf_init(&text, HK_BODY_MAX);
    hk_json_object(json);
    hk_words_facts(n, language, on_fact, json, json->out);
    hk_words_command(n, &text);
    if (text.len > 0) {
        hk_json_key(json, words->next);
        hk_json_str(json, hk_buf_str(&text));
    }
    hk_json_end(json);
    hk_words_done(&text, json->out);
}

static void put_payload(struct hk_json *json, const struct hk_notice *n, enum hk_alert_language language)
{
    struct hk_buf title;
    char at[HK_TIME_TEXT_MAX];
    hk_buf_init(&title, HK_BODY_MAX);
    hk_notice_title(n, language, &title);
    (void)hk_format_rfc3339(n->at_ms, at);
    hk_json_object(json);
    put_shown(json, "summary", hk_buf_str(&title), SUMMARY_MAX);
    put_shown(json, "source", hk_str_of(n->relay && n->relay[0] ? n->relay : "hikyaku"), SOURCE_MAX);
    hk_json_key(json, "severity");
    hk_json_cstr(json, severity_of(n));
    hk_json_key(json, "timestamp");
    hk_json_cstr(json, at);
    put_shown(json, "component", n->destination, SOURCE_MAX);
    put_shown(json, "group", n->reason, SOURCE_MAX);
    hk_json_key(json, "class");
    hk_json_cstr(json, hk_alert_kind_word(n->about));
    hk_json_key(json, "custom_details");
    put_details(json, n, language);
    hk_json_end(json);
    hk_words_done(&title, json->out);
}

static void put_link(struct hk_json *json, const char *link, const char *text)
{
    hk_json_key(json, "links");
    hk_json_array(json);
    hk_json_object(json);
    hk_json_key(json, "href");
    hk_json_cstr(json, link);
    hk_json_key(json, "text");
    hk_json_cstr(json, text);
    hk_json_end(json);
    hk_json_end(json);
}

void hk_body_pagerduty(const struct hk_notice *notice, enum hk_alert_language language,
                       const char *routing_key, bool resolve, struct hk_buf *out)
{
    struct hk_json json;
    char dedup[DEDUP_MAX + 1];
    const char *link = hk_words_link(notice);
    hk_body_token(notice->fingerprint, DEDUP_MAX, dedup);
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "routing_key");
    hk_json_cstr(&json, routing_key);
    hk_json_key(&json, "event_action");
    hk_json_cstr(&json, resolve ? "resolve" : "trigger");
    hk_json_key(&json, "dedup_key");
    hk_json_cstr(&json, dedup);
    hk_json_key(&json, "payload");
    put_payload(&json, notice, language);
    if (!resolve) {
        hk_json_key(&json, "client");
        hk_json_cstr(&json, "hikyaku");
        if (link)
            put_link(&json, link, hk_words_of(language)->dashboard);
    }
    hk_json_end(&json);
}
