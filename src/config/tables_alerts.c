/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of channels and alerts. */
#include "base/parse.h"
#include "config/tables.h"
#include "config/text.h"
#include "payload/path.h"

#define AT(type, member) .offset = offsetof(type, member)
#define URL              .min = 1, .max = 2048
#define TIME             .max = HK_DURATION_MAX_MS

static const struct hk_word language_words[] = {
    {"en", HK_ALERT_ENGLISH}, {"ja", HK_ALERT_JAPANESE}, {NULL, 0}};
static const struct hk_word severity_words[] = {
    {"info", HK_ALERT_INFO}, {"warning", HK_ALERT_WARNING}, {"critical", HK_ALERT_CRITICAL}, {NULL, 0}};

/* ---- channels ---- */

static const struct hk_opt slack_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED | HK_OPT_SECRET, AT(struct hk_conf_slack, url), URL,
     .check = hk_text_check_http_url, .example = "\"${SLACK_URL}\"",
     .help = "the incoming webhook; a secret: anybody who knows it can post there"},
};

const struct hk_opt_table hk_slack_table = {
    .name = "slack",
    .where = "channels.NAME.slack",
    .size = sizeof(struct hk_conf_slack),
    .opts = slack_opts,
    .n_opts = HK_COUNT(slack_opts),
    .example = "{ url: \"${SLACK_URL}\" }",
};

static const struct hk_opt address_elem = {
    .type = HK_OPT_STRING, .min = 1, .max = 254, .check = hk_text_check_email, .example = "ops@example.com"};

static const struct hk_opt email_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_email, url), URL,
     .check = hk_text_check_smtp_url, .example = "smtp://mail.example:587",
     .help = "the server: smtp:// or, with TLS from the start, smtps://"},
    {"user", HK_OPT_STRING, AT(struct hk_conf_email, user), .min = 1, .max = 255,
     .check = hk_text_check_printable, .otherwise = "none", .example = "relay", .help = "user name"},
    {"password", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_email, password), .max = 1024,
     .check = hk_text_check_printable, .otherwise = "none", .example = "\"${MAIL_PASSWORD}\"",
     .help = "password"},
    {"from", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_email, from), .min = 1, .max = 254,
     .check = hk_text_check_email, .example = "hikyaku@example.com", .help = "sender"},
    {"to", HK_OPT_LIST, HK_OPT_REQUIRED | HK_OPT_ONE, AT(struct hk_conf_email, to), .min = 1, .max = 32,
     .elem = &address_elem, .example = "ops@example.com", .help = "receivers"},
    {"starttls", HK_OPT_BOOL, AT(struct hk_conf_email, starttls), .fallback = "true",
     .help = "with smtp://: refuse a server that does not encrypt"},
    {"ca_file", HK_OPT_PATH, AT(struct hk_conf_email, ca_file), .min = 1, .max = 4096,
     .otherwise = "the system's", .example = "ca.pem", .help = "authorities to trust, PEM"},
};

const struct hk_opt_table hk_email_table = {
    .name = "email",
    .where = "channels.NAME.email",
    .size = sizeof(struct hk_conf_email),
    .opts = email_opts,
    .n_opts = HK_COUNT(email_opts),
    .example = "{ url: smtp://mail.example:587, from: hikyaku@example.com, to: ops@example.com }",
    .check = hk_check_email,
};

static const struct hk_opt hook_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_hook, url), URL,
     .check = hk_text_check_http_url, .example = "https://ops.example/alerts", .help = "where notices go"},
    {"secret", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_hook, secret), .min = 1, .max = 1024,
     .check = hk_text_check_secret, .otherwise = "not signed", .example = "\"${ALERT_SECRET}\"",
     .help = "Standard Webhooks signature: whsec_ and the key in base64, or whsk_ and an Ed25519 key"},
    {"ca_file", HK_OPT_PATH, AT(struct hk_conf_hook, ca_file), .min = 1, .max = 4096,
     .otherwise = "the system's", .example = "ca.pem", .help = "authorities to trust, PEM"},
};

const struct hk_opt_table hk_hook_table = {
    .name = "webhook",
    .where = "channels.NAME.webhook",
    .size = sizeof(struct hk_conf_hook),
    .opts = hook_opts,
    .n_opts = HK_COUNT(hook_opts),
    .example = "{ url: https://ops.example/alerts }",
};

static const struct hk_opt pagerduty_opts[] = {
    {"routing_key", HK_OPT_STRING, HK_OPT_REQUIRED | HK_OPT_SECRET, AT(struct hk_conf_pagerduty, routing_key),
     .min = 1, .max = 255, .check = hk_text_check_printable, .example = "\"${PAGERDUTY_KEY}\"",
     .help = "the integration's key (Events API v2)"},
    {"url", HK_OPT_STRING, AT(struct hk_conf_pagerduty, url), URL, .check = hk_text_check_http_url,
     .fallback = "https://events.pagerduty.com/v2/enqueue",
     .help = "URL of PagerDuty or of a compatible service"},
};

const struct hk_opt_table hk_pagerduty_table = {
    .name = "pagerduty",
    .where = "channels.NAME.pagerduty",
    .size = sizeof(struct hk_conf_pagerduty),
    .opts = pagerduty_opts,
    .n_opts = HK_COUNT(pagerduty_opts),
    .example = "{ routing_key: \"${PAGERDUTY_KEY}\" }",
};

static const struct hk_opt word_elem = {
    .type = HK_OPT_STRING, .max = 4096, .check = hk_text_check_printable, .example = "/usr/local/bin/page"};

static const struct hk_opt exec_opts[] = {
    {"command", HK_OPT_LIST, HK_OPT_REQUIRED | HK_OPT_ONE, AT(struct hk_conf_exec, command), .min = 1,
     .max = 64, .elem = &word_elem, .example = "[/usr/local/bin/page, ops]",
     .help = "program and arguments, no shell; the notice comes as JSON on standard input"},
};

const struct hk_opt_table hk_exec_table = {
    .name = "exec",
    .where = "channels.NAME.exec",
    .size = sizeof(struct hk_conf_exec),
    .opts = exec_opts,
    .n_opts = HK_COUNT(exec_opts),
    .example = "{ command: [/usr/local/bin/page, ops] }",
};

static const struct hk_opt range_elem = {.type = HK_OPT_CIDR};

static const struct hk_opt channel_opts[HK_CHANNEL_NOPTS] = {
    [HK_CHANNEL_SLACK_OPT] = {"slack", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_channel, slack),
                              .sub = &hk_slack_table, .help = "an incoming webhook of Slack"},
    [HK_CHANNEL_EMAIL_OPT] = {"email", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_channel, email),
                              .sub = &hk_email_table, .help = "by SMTP"},
    [HK_CHANNEL_WEBHOOK_OPT] = {"webhook", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_channel, webhook),
                                .sub = &hk_hook_table, .help = "signed JSON to your own URL"},
    [HK_CHANNEL_PAGERDUTY_OPT] = {"pagerduty", HK_OPT_SECTION, HK_OPT_CHOICE,
                                  AT(struct hk_conf_channel, pagerduty), .sub = &hk_pagerduty_table,
                                  .help = "PagerDuty, or a service that accepts its events"},
    [HK_CHANNEL_EXEC_OPT] = {"exec", HK_OPT_SECTION, HK_OPT_CHOICE, AT(struct hk_conf_channel, exec),
                             .sub = &hk_exec_table, .help = "your own program"},
    [HK_CHANNEL_LANGUAGE_OPT] = {"language", HK_OPT_ENUM, AT(struct hk_conf_channel, language),
                                 .words = language_words, .otherwise = "that of alerts", .example = "ja",
                                 .help = "English or Japanese"},
    [HK_CHANNEL_SEVERITY_OPT] = {"severity", HK_OPT_ENUM, AT(struct hk_conf_channel, severity),
                                 .words = severity_words, .fallback = "info",
                                 .help = "send only alerts of this severity or above"},
    [HK_CHANNEL_TIMEOUT_OPT] = {"timeout", HK_OPT_DURATION, AT(struct hk_conf_channel, timeout_ms),
                                .min = 100, .max = 60000, .fallback = "10s", .help = "for one attempt"},
    [HK_CHANNEL_ALLOW_OPT] = {"allow", HK_OPT_LIST, AT(struct hk_conf_channel, allow), .max = 64,
                              .elem = &range_elem, .otherwise = "public addresses only",
                              .example = "[127.0.0.0/8]",
                              .help = "private addresses that notices may go to (not for email and exec)"},
    [HK_CHANNEL_PROXY_OPT] = {"proxy", HK_OPT_NAME, AT(struct hk_conf_channel, proxy), .ref = HK_REF_PROXY,
                              .otherwise = "default_proxy; email: none", .example = "egress",
                              .help = "one of proxies; none: directly (not for exec)"},
};

const struct hk_opt_table hk_channel_table = {
    .name = "channel",
    .where = "channels.NAME",
    .size = sizeof(struct hk_conf_channel),
    .opts = channel_opts,
    .n_opts = HK_CHANNEL_NOPTS,
    .name_offset = offsetof(struct hk_conf_channel, name),
    .example = "{ slack: { url: \"${SLACK_URL}\" } }",
    .check = hk_check_channel,
};

/* ---- alerts ---- */

static const struct hk_word through_words[] = {{"none", HK_ALERT_CRITICAL + 1},
                                               {"critical", HK_ALERT_CRITICAL},
                                               {"warning", HK_ALERT_WARNING},
                                               {NULL, 0}};

static const struct hk_opt quiet_opts[] = {
    {"from", HK_OPT_STRING, AT(struct hk_conf_quiet, from), .min = 1, .max = 8, .otherwise = "no quiet hours",
     .check = hk_text_check_clock, .example = "\"22:00\"", .help = "start, as hours and minutes"},
    {"to", HK_OPT_STRING, AT(struct hk_conf_quiet, to), .min = 1, .max = 8, .otherwise = "no quiet hours",
     .check = hk_text_check_clock, .example = "\"07:00\"",
     .help = "end; on the next day if it is earlier than from"},
    {"zone", HK_OPT_STRING, AT(struct hk_conf_quiet, zone), .min = 1, .max = 8, .fallback = "Z",
     .check = hk_text_check_zone, .example = "\"+09:00\"", .help = "offset from UTC; Z is UTC"},
    {"let_through", HK_OPT_ENUM, AT(struct hk_conf_quiet, let_through), .words = through_words,
     .fallback = "critical", .help = "alerts of this severity and above are sent even in quiet hours"},
};

const struct hk_opt_table hk_quiet_table = {
    .name = "quiet_hours",
    .where = "alerts.quiet_hours",
    .size = sizeof(struct hk_conf_quiet),
    .opts = quiet_opts,
    .n_opts = HK_COUNT(quiet_opts),
    .example = "{ from: \"22:00\", to: \"07:00\", zone: \"+09:00\" }",
    .check = hk_check_quiet,
};

static const struct hk_word when_words[] = {{"dead_letter", HK_ALERT_DEAD_LETTER},
                                            {"dead_letters_above", HK_ALERT_DEAD_LETTERS_ABOVE},
                                            {"dead_letters_rising", HK_ALERT_DEAD_LETTERS_RISING},
                                            {"oldest_age", HK_ALERT_OLDEST_AGE},
                                            {"breaker_open", HK_ALERT_BREAKER_OPEN},
                                            {"paused", HK_ALERT_PAUSED},
                                            {"store_unreachable", HK_ALERT_STORE_UNREACHABLE},
                                            {"no_progress", HK_ALERT_NO_PROGRESS},
                                            {"lag_growing", HK_ALERT_LAG_GROWING},
                                            {"requeue_failed", HK_ALERT_REQUEUE_FAILED},
                                            {"key_missing", HK_ALERT_KEY_MISSING},
                                            {NULL, 0}};

static const struct hk_opt channel_elem = {.type = HK_OPT_NAME, .ref = HK_REF_CHANNEL, .example = "ops"};

static const struct hk_opt field_elem = {.type = HK_OPT_STRING,
                                         .min = 1,
                                         .max = HK_PATH_TEXT_MAX,
                                         .check = hk_text_check_path,
                                         .example = "sessionId"};

#define GLOB .min = 1, .max = 255, .check = hk_text_check_printable, .otherwise = "any"

static const struct hk_opt rule_opts[HK_ALERT_RULE_NOPTS] = {
    [HK_ALERT_RULE_NAME_OPT] = {"name", HK_OPT_NAME, HK_OPT_REQUIRED, AT(struct hk_conf_alert_rule, name),
                                .example = "dead-letter", .help = "the rule's name in notices and mutes"},
    [HK_ALERT_RULE_WHEN_OPT] = {"when", HK_OPT_ENUM, HK_OPT_REQUIRED, AT(struct hk_conf_alert_rule, when),
                                .words = when_words, .example = "dead_letter",
                                .help = "the condition (docs/alerts.md explains each)"},
    [HK_ALERT_RULE_DESTINATION_OPT] = {"destination", HK_OPT_STRING,
                                       AT(struct hk_conf_alert_rule, destination), GLOB,
                                       .example = "\"billing*\"", .help = "* stands for any text"},
    [HK_ALERT_RULE_EVENT_OPT] = {"event_type", HK_OPT_STRING, AT(struct hk_conf_alert_rule, event_type), GLOB,
                                 .example = "\"Order*\"",
                                 .help = "event type, * stands for any text; only for single letters"},
    [HK_ALERT_RULE_REASON_OPT] = {"reason", HK_OPT_STRING, AT(struct hk_conf_alert_rule, reason), GLOB,
                                  .example = "\"HTTP_*\"", .help = "reason code, * stands for any text"},
    [HK_ALERT_RULE_ABOVE_OPT] = {"above", HK_OPT_U64, AT(struct hk_conf_alert_rule, above), .min = 1,
                                 .max = UINT64_C(1000000000000), .otherwise = "100, or 10 for rising",
                                 .example = "100", .help = "the least number of letters"},
    [HK_ALERT_RULE_AGE_OPT] = {"age", HK_OPT_DURATION, AT(struct hk_conf_alert_rule, age_ms), .min = 100,
                               TIME, .otherwise = "15m, 10m or 5m, by when", .example = "15m",
                               .help =
                                   "least age, or time without progress; for rising and growing: the window"},
    [HK_ALERT_RULE_FOR_OPT] = {"for", HK_OPT_DURATION, AT(struct hk_conf_alert_rule, for_ms), TIME,
                               .otherwise = "0s, or 30s for store_unreachable and key_missing",
                               .example = "1m",
                               .help = "how long the condition must hold before the alert fires"},
    [HK_ALERT_RULE_SEVERITY_OPT] = {"severity", HK_OPT_ENUM, AT(struct hk_conf_alert_rule, severity),
                                    .words = severity_words, .fallback = "warning",
                                    .help = "info, warning or critical"},
    [HK_ALERT_RULE_CHANNELS_OPT] = {"channels", HK_OPT_LIST, HK_OPT_ONE,
                                    AT(struct hk_conf_alert_rule, channels), .max = 32, .elem = &channel_elem,
                                    .otherwise = "all", .example = "[ops]",
                                    .help = "which channels get the notices"},
    [HK_ALERT_RULE_FIELDS_OPT] =
        {"fields", HK_OPT_LIST, HK_OPT_ONE, AT(struct hk_conf_alert_rule, fields), .max = HK_ALERT_FIELDS,
         .elem = &field_elem, .otherwise = "none", .example = "[sessionId, tableName]",
         .help = "values of the payload that notices show, masked; only for single letters"},
};

const struct hk_opt_table hk_alert_rule_table = {
    .name = "alert rule",
    .where = "alerts.rules[]",
    .size = sizeof(struct hk_conf_alert_rule),
    .opts = rule_opts,
    .n_opts = HK_ALERT_RULE_NOPTS,
    .example = "{ name: dead-letter, when: dead_letter }",
    .check = hk_check_alert_rule,
};

static const struct hk_opt alerts_opts[] = {
    {"interval", HK_OPT_DURATION, AT(struct hk_conf_alerts, interval_ms), .min = 100, .max = 3600000,
     .fallback = "10s", .help = "how often the rules are evaluated, by all relays together"},
    {"update_every", HK_OPT_DURATION, AT(struct hk_conf_alerts, update_ms), .min = 1000, TIME,
     .fallback = "4h", .help = "how often a notice repeats while its alert is firing"},
    {"resolve_after", HK_OPT_DURATION, AT(struct hk_conf_alerts, resolve_after_ms), TIME, .fallback = "1m",
     .help = "send the notice that an alert has ended after its condition was false for this long"},
    {"separate", HK_OPT_U64, AT(struct hk_conf_alerts, separate), .min = 1, .max = 1000, .fallback = "10",
     .help =
         "for each rule, at most this many destinations or causes get separate alerts; one more alert covers the rest"},
    {"language", HK_OPT_ENUM, AT(struct hk_conf_alerts, language), .words = language_words, .fallback = "en",
     .help = "language of channels that set none"},
    {"link", HK_OPT_STRING, AT(struct hk_conf_alerts, link), URL, .check = hk_text_check_http_url,
     .otherwise = "none", .example = "https://hikyaku.example/", .help = "put into notices: your dashboard"},
    {"quiet_hours", HK_OPT_SECTION, AT(struct hk_conf_alerts, quiet), .sub = &hk_quiet_table,
     .otherwise = "none", .help = "when no notices are sent"},
    {"rules", HK_OPT_LIST, AT(struct hk_conf_alerts, rules), .max = 100, .sub = &hk_alert_rule_table,
     .example = "[{ name: dead-letter, when: dead_letter }]",
     .help = "alert rules; without any, the standard ones (docs/alerts.md) apply if there are channels"},
};

const struct hk_opt_table hk_alerts_table = {
    .name = "alerts",
    .where = "alerts",
    .size = sizeof(struct hk_conf_alerts),
    .opts = alerts_opts,
    .n_opts = HK_COUNT(alerts_opts),
    .example = "{ update_every: 4h }",
    .check = hk_check_alerts,
};
