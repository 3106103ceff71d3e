/* SPDX-License-Identifier: Apache-2.0 */
/* Channels and alerts, from the file to what rules mean; and every mistake with its place. */
#include "base/str.h"
#include "config_env.h"

static const char file[] =
    "channels:\n"
    "  ops: { slack: { url: https://hooks.example/x } }\n"
    "  mail:\n"
    "    email: { url: \"smtp://mail.example:587\", from: a@b.example, to: c@d.example, user: u, password: p }\n"
    "    language: ja\n"
    "    severity: warning\n"
    "  own: { exec: { command: [/bin/page, x] }, timeout: 2s }\n"
    "alerts:\n"
    "  interval: 5s\n"
    "  quiet_hours: { from: 22:00, to: 07:30, zone: -05:00 }\n"
    "  rules:\n"
    "    - { name: r1, when: dead_letter, destination: \"b*\", severity: info }\n"
    "    - { name: r2, when: oldest_age, channels: own, for: 2m }\n";

static char report[4000];

static struct hk_config *load(const char *text, enum hk_code expected)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    size_t used = 0;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text, strlen(text), "f", &fake_env, &diags, &config);
    report[0] = '\0';
    for (size_t i = 0; i < diags.n && used < sizeof report; i++)
        used += (size_t)snprintf(report + used, sizeof report - used, "%u:%u: %s\n",
                                 (unsigned)diags.items[i].at.line, (unsigned)diags.items[i].at.col,
                                 diags.items[i].message);
    NOTE_IF(rc != expected, "%s", report);
    assert_int_equal(rc, expected);
    hk_diags_fini(&diags);
    return config;
}

static void what_the_file_says_is_in_the_configuration(void **state)
{
    (void)state;
    struct hk_config *c = load(file, HK_OK);
    const struct hk_conf_channel *ops = hk_config_channel(c, 0), *mail = hk_config_channel(c, 1),
                                 *own = hk_config_channel(c, 2);
    assert_int_equal(ops->kind, HK_CONF_SLACK);
    assert_int_equal(ops->timeout_ms, 10000);
    assert_int_equal(hk_conf_language(c, ops), HK_ALERT_ENGLISH);
    assert_int_equal(mail->kind, HK_CONF_EMAIL);
    assert_int_equal(hk_conf_language(c, mail), HK_ALERT_JAPANESE);
    assert_true(mail->email.starttls);
    assert_string_equal(hk_conf_text(&mail->email.to, 0), "c@d.example");
    assert_int_equal(own->kind, HK_CONF_EXEC);
    assert_string_equal(hk_conf_text(&own->exec.command, 1), "x");
    const struct hk_quiet_hours *q = &c->alerts.quiet.hours;
    assert_true(q->on && q->from_min == 22 * 60 && q->to_min == 7 * 60 + 30 && q->zone_min == -300);
    assert_int_equal(q->let_through, HK_ALERT_CRITICAL);
    const struct hk_conf_alert_rule *r1 = hk_config_alert_rule(c, 0), *r2 = hk_config_alert_rule(c, 1);
    assert_true(hk_conf_rule_has(r1, ops) && !hk_conf_rule_has(r1, mail) && hk_conf_rule_has(r1, own));
    assert_true(!hk_conf_rule_has(r2, ops) && !hk_conf_rule_has(r2, mail) && hk_conf_rule_has(r2, own));
    struct hk_alert_rule rule = hk_conf_rule(r2);
    assert_int_equal(rule.age_ms, 15 * 60000);
    assert_int_equal(rule.for_ms, 120000);
    assert_null(hk_config_alert_rule(c, 2));
    hk_config_free(c);
}

static void channels_without_rules_have_the_standard_ones(void **state)
{
    (void)state;
    bool kinds[HK_NALERT_KINDS] = {false};
    const struct hk_conf_alert_rule *rule = NULL;
    struct hk_config *c = load("{}", HK_OK);
    assert_null(hk_config_alert_rule(c, 0));
    hk_config_free(c);
    c = load("channels: { x: { exec: { command: /bin/true } } }\n", HK_OK);
    for (size_t i = 0; (rule = hk_config_alert_rule(c, i)) != NULL; i++) {
        struct hk_alert_rule r = hk_conf_rule(rule);
        kinds[r.kind] = true;
        assert_true(hk_conf_rule_has(rule, hk_config_channel(c, 0)));
    }
    for (int k = 0; k < HK_NALERT_KINDS; k++) /* a total is for each shop to choose */
        assert_int_equal(kinds[k], k != HK_ALERT_DEAD_LETTERS_ABOVE);
    hk_config_free(c);
}

#define MAIL  "channels:\n  m:\n    email: { from: a@b, to: c@d, "
#define RULES "channels: { x: { exec: { command: /bin/true } } }\nalerts:\n  rules:\n"

static void every_mistake_is_named_with_its_place(void **state)
{
    (void)state;

    static const struct {
        const char *text, *report;
    } cases[] = {
        {"channels: { x: {} }\n",
         "1:13: channel \"x\" needs \"slack\" or \"email\" or \"webhook\" or \"pagerduty\" or "
         "\"exec\", for example slack: { url: \"${SLACK_URL}\" }\n"},
        {"channels: { x: { exec: { command: a }, slack: { url: https://h.example/ } } }\n",
         "1:18: give \"slack\" or \"exec\", not both\n"},
        {"channels: { x: { slack: {} } }\n",
         "1:18: slack of channel \"x\" needs \"url\", for example url: \"${SLACK_URL}\"\n"},
        {MAIL "url: http://x }\n", "3:39: \"url\" must begin with smtp:// or smtps://\n"},
        {MAIL "url: \"smtp://u:p@h\" }\n",
         "3:39: \"url\" must not hold a name or a password: give \"user\" and \"password\"\n"},
        {MAIL "url: smtp://h, user: u }\n", "3:55: \"user\" and \"password\" need each other\n"},
        {"channels:\n  m:\n    email: { url: smtp://h, from: nobody, to: [] }\n",
         "3:35: \"from\" must be an address such as ops@example.com\n3:47: \"to\" is empty: give at least 1\n"},
        {RULES "    - { when: paused }\n",
         "4:7: alert rule 1 of alerts needs \"name\", for example name: dead-letter\n"},
        {RULES "    - { name: a, when: pausd }\n",
         "4:24: \"when\" must be one of dead_letter, dead_letters_above, dead_letters_rising, oldest_age, breaker_open, "
         "paused, store_unreachable, no_progress, lag_growing, requeue_failed, key_missing, not \"pausd\"; did you mean \"paused\"?\n"},
        {RULES "    - { name: a, when: paused, above: 3 }\n",
         "4:39: \"above\" means nothing with when: paused\n"},
        {RULES "    - { name: a, when: oldest_age, destination: x }\n",
         "4:49: \"destination\" means nothing with when: oldest_age\n"},
        {RULES "    - { name: a, when: paused, channels: [y] }\n", "4:43: there is no channel \"y\"\n"},
        {RULES "    - { name: a, when: paused }\n    - { name: a, when: paused }\n",
         "5:15: there are two alert rules \"a\": names tell them apart\n"},
        {"alerts: { quiet_hours: { from: 22:00 } }\n", "1:32: \"from\" and \"to\" need each other\n"},
        {"alerts: { quiet_hours: { from: 24:00, to: 7 } }\n",
         "1:32: \"from\" must be hours and minutes such as \"22:00\"\n1:43: \"to\" must be hours and minutes such as \"22:00\"\n"},
        {"alerts: { quiet_hours: { from: 22:00, to: 22:00, zone: JST } }\n",
         "1:56: \"zone\" must be an offset such as \"+09:00\", or Z\n"},
        {"channels: { x: { slack: { url: https://h.example/ }, allow: [10.0.0.0/99] } }\n",
         "1:62: item 1 of \"allow\" must have a prefix from /0 to /32\n"},
        {"alerts: { interval: 1ms }\n", "1:21: \"interval\" must be from 100ms to 1h, not \"1ms\"\n"},
        {"channels: { x: { webhook: { url: https://h.example/, secret: \"${SECRET}\" } } }\n",
         "1:62: \"secret\" must be whsec_ and base64 of 24 to 64 random bytes: echo whsec_$(openssl rand -base64 32) makes one\n"},
    };

    unsigned bad = 0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        (void)load(cases[i].text, HK_INVALID);
        NOTE_IF(strcmp(report, cases[i].report) != 0, "%s-> %s", cases[i].text, report);
        bad += strcmp(report, cases[i].report) != 0;
    }
    assert_int_equal(bad, 0);
}

static void what_would_never_arrive_is_warned_about(void **state)
{
    (void)state;
    hk_config_free(load("channels: { x: { slack: { url: http://127.0.0.1:9/ } } }\n", HK_OK));
    assert_non_null(strstr(report, "notices to this loopback address are blocked"));
    hk_config_free(
        load("channels: { x: { slack: { url: http://127.0.0.1:9/ }, allow: [127.0.0.0/8] } }\n", HK_OK));
    assert_string_equal(report, "");
    hk_config_free(load("alerts: { rules: [{ name: a, when: paused }] }\n", HK_OK));
    assert_non_null(strstr(report, "no channel sends these alerts"));
}

static enum hk_code load_once(void)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(file, strlen(file), "f", &fake_env, &diags, &config);
    hk_diags_fini(&diags);
    hk_config_free(config);
    return rc;
}

static void out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    fail_each_allocation(load_once, HK_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_file_says_is_in_the_configuration),
        cmocka_unit_test(channels_without_rules_have_the_standard_ones),
        cmocka_unit_test(every_mistake_is_named_with_its_place),
        cmocka_unit_test(what_would_never_arrive_is_warned_about),
        cmocka_unit_test(out_of_memory_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
