/* SPDX-License-Identifier: Apache-2.0 */
/* What alerts work with is a copy of the configuration, and a notice comes back from the store as it was written. */
#include "base/str.h"
#include "config_env.h"
#include "daemon/alerts.h"

static const char file[] =
    "channels:\n"
    "  ops: { slack: { url: https://hooks.example/x }, allow: [10.0.0.0/8] }\n"
    "  mail: { email: { url: smtp://mail.example, from: a@b.example, to: [c@d.example, e@f.example] }, "
    "severity: critical, timeout: 3s }\n"
    "alerts:\n"
    "  link: https://board.example/\n"
    "  rules:\n"
    "    - { name: r1, when: dead_letter }\n"
    "    - { name: r2, when: paused, severity: critical }\n"
    "    - { name: r3, when: paused, severity: critical, channels: ops }\n";

static struct hk_config *load(void)
{
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(file, strlen(file), "f", &fake_env, &diags, &config);
    NOTE_IF(rc != HK_OK && rc != HK_NOMEM, "%s\n", diags.n ? diags.items[0].message : "");
    hk_diags_fini(&diags);
    return config;
}

static void a_plan_outlives_its_configuration(void **state)
{
    (void)state;
    struct hk_alerts_plan *plan = NULL;
    struct hk_err err = {.message = ""};
    struct hk_config *config = load();
    assert_non_null(config);
    assert_int_equal(hk_alerts_plan_new(config, "relay-1", &plan, &err), HK_OK);
    hk_config_free(config);
    assert_int_equal(plan->n_channels, 2);
    assert_string_equal(plan->channels[0].url, "https://hooks.example/x");
    struct hk_ip inside, outside;
    assert_true(hk_ip_parse(hk_str_of("10.1.2.3"), &inside) && hk_ip_parse(hk_str_of("11.1.2.3"), &outside));
    assert_int_equal(plan->channels[0].n_allow, 1);
    assert_true(hk_cidr_has(&plan->channels[0].allow[0], &inside) &&
                !hk_cidr_has(&plan->channels[0].allow[0], &outside));
    assert_string_equal(plan->channels[1].to[1], "e@f.example");
    assert_int_equal(plan->channels[1].n_to, 2);
    assert_int_equal(plan->n_rules, 3);
    assert_int_equal(plan->told[0], 1);
    assert_int_equal(plan->told[1], 3);
    assert_int_equal(plan->told[2], 1);
    assert_true(plan->lease_ms > plan->channels[0].timeout_ms && !plan->figures);
    assert_string_equal(plan->relay, "relay-1");
    hk_alerts_plan_unref(hk_alerts_plan_ref(plan));
    hk_alerts_plan_unref(plan);
}

static enum hk_code plan_once(void)
{
    struct hk_alerts_plan *plan = NULL;
    struct hk_err err = {.message = ""};
    struct hk_config *config = load();
    enum hk_code rc = config ? hk_alerts_plan_new(config, "relay-1", &plan, &err) : HK_NOMEM;
    hk_alerts_plan_unref(plan);
    hk_config_free(config);
    return rc;
}

static void out_of_memory_leaks_nothing(void **state)
{
    (void)state;
    fail_each_allocation(plan_once, HK_OK);
}

static void a_notice_comes_back_as_it_was(void **state)
{
    (void)state;
    const struct hk_notice notice = {.kind = HK_NOTICE_UPDATE,
                                     .severity = HK_ALERT_CRITICAL,
                                     .about = HK_ALERT_OLDEST_AGE,
                                     .count = 10000,
                                     .since_ms = 1,
                                     .at_ms = INT64_MAX,
                                     .destination = hk_str_of("飛\"脚\\"),
                                     .reason = hk_str_of("R"),
                                     .event_type = {"a\0b", 3},
                                     .example_id = hk_str_of("{\"count\":7}"),
                                     .detail = hk_str_of("line\nline\t</script>"),
                                     .value = 12.5,
                                     .threshold = 900,
                                     .relay = "relay-1"};
    struct hk_notice back = {.kind = HK_NOTICE_FIRING};
    struct hk_arena arena = {NULL};
    struct hk_buf facts;
    hk_buf_init(&facts, 1 << 16);
    hk_alerts_facts_write(&notice, &facts);
    assert_int_equal(hk_buf_status(&facts), HK_OK);
    assert_int_equal(hk_alerts_facts_read(hk_buf_str(&facts), &arena, &back), HK_OK);
    assert_true(back.severity == notice.severity && back.about == notice.about && back.count == notice.count);
    assert_true(back.since_ms == 1 && back.at_ms == INT64_MAX);
    assert_true(hk_str_eq(back.destination, notice.destination) && hk_str_eq(back.reason, notice.reason));
    assert_true(hk_str_eq(back.event_type, notice.event_type) &&
                hk_str_eq(back.example_id, notice.example_id));
    assert_true(hk_str_eq(back.detail, notice.detail));
    assert_true(back.value > 12.4 && back.value < 12.6 && back.threshold > 899.9 && back.threshold < 900.1);
    assert_string_equal(back.relay, "relay-1");
    hk_buf_fini(&facts);
    hk_arena_fini(&arena);
}

/* Rows may hold anything. */
static void what_is_not_ours_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "nonsense",
                                        "[1]",
                                        "{\"count\":-5,\"about\":\"x\",\"severity\":7}",
                                        "{\"destination\":{\"reason\":\"R\"},\"count\":1e9}",
                                        "{\"reason\":\"a",
                                        "null"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_notice back = {.kind = HK_NOTICE_FIRING};
        struct hk_arena arena = {NULL};
        assert_int_equal(hk_alerts_facts_read(hk_str_of(texts[i]), &arena, &back), HK_OK);
        assert_int_equal(back.count, 0);
        assert_int_equal(back.reason.len, 0);
        hk_arena_fini(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_outlives_its_configuration),
        cmocka_unit_test(out_of_memory_leaks_nothing),
        cmocka_unit_test(a_notice_comes_back_as_it_was),
        cmocka_unit_test(what_is_not_ours_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
