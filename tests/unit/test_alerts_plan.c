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
    "destinations:\n"
    "  orders: { http: { url: https://orders.example/ }, order: key }\n"
    "  ledger: { http: { url: https://ledger.example/ }, order: key, on_dead: skip }\n"
    "  mail: { http: { url: https://mail.example/ } }\n"
    "routes:\n"
    "  - { event_type: order.*, destination: [orders, mail] }\n"
    "  - { event_type: ledger.*, destination: ledger }\n"
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
    assert_int_equal(plan->rules[0].channels, 1);
    assert_int_equal(plan->rules[1].channels, 3);
    assert_int_equal(plan->rules[2].channels, 1);
    assert_true(plan->lease_ms > plan->channels[0].timeout_ms && !plan->figures);
    assert_string_equal(plan->relay, "relay-1");
    assert_int_equal(plan->n_ordered, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(plan->ordered[i].skip_dead, strcmp(plan->ordered[i].destination, "ledger") == 0);
    assert_int_equal(plan->n_routes, 2);
    assert_string_equal(plan->routes[0].destinations[1], "mail");
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

/* ---- what could have gone ---- */

/* Due since 100 at one destination, or by route. */
static struct hk_alert_facts judge(const char *destination, const char *event_type, const char *paused,
                                   const char *limited)
{
    static struct hk_alert_dest dest;
    struct hk_alerts_plan *plan = NULL;
    struct hk_err err = {.message = ""};
    struct hk_config *config = load();
    assert_int_equal(hk_alerts_plan_new(config, "relay-1", &plan, &err), HK_OK);
    struct hk_waiting_row row = {.destination = hk_str_of(destination),
                                 .event_type = hk_str_of(event_type),
                                 .oldest_ms = 90,
                                 .due_ms = 100};
    struct hk_figure figure = {.destination = hk_str_of(limited), .ready_at_ms = 2000};
    const struct hk_waiting waiting = {.now_ms = 1000, .items = &row, .n = 1};
    const struct hk_figures figures = {.now_ms = 1000, .items = &figure, .n = 1};
    dest = (struct hk_alert_dest){.name = hk_str_of(paused), .paused = true};
    struct hk_alert_facts facts = {.dests = &dest, .n_dests = 1};
    hk_alerts_judge_waiting(plan, &waiting, &figures, &facts);
    facts.oldest_dest = facts.due_dest = hk_str_of(""); /* they are the plan's */
    hk_alerts_plan_unref(plan);
    hk_config_free(config);
    return facts;
}

static void only_what_nothing_holds_back_could_have_gone(void **state)
{
    (void)state;

    const struct {
        const char *destination, *event_type, *paused, *limited;
        bool due, free;
    } cases[] = {{"mail", "", "orders", "orders", true, true},
                 {"mail", "", "mail", "", false, false},
                 {"mail", "", "", "mail", true, false},
                 {"unknown", "", "mail", "mail", true, true},
                 /* by route: one of several is enough */
                 {"", "order.made", "orders", "", true, true},
                 {"", "order.made", "orders", "mail", true, false},
                 {"", "order.made", "", "mail", true, true},
                 {"", "ledger.posted", "ledger", "", false, false},
                 {"", "ledger.posted", "orders", "ledger", true, false},
                 {"", "no.route", "ledger", "mail", true, true}}; /* a relay makes it a dead letter */

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_alert_facts f =
            judge(cases[i].destination, cases[i].event_type, cases[i].paused, cases[i].limited);
        NOTE_IF((f.oldest_due_ms == 100) != cases[i].due || (f.oldest_free_ms == 100) != cases[i].free,
                "case %zu\n", i);
        assert_int_equal(f.oldest_due_ms, cases[i].due ? 100 : 0);
        assert_int_equal(f.oldest_free_ms, cases[i].free ? 100 : 0);
        assert_int_equal(f.held, !cases[i].free);
    }
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
                                     .relay = "relay-1",
                                     .lines = {{.about = HK_ALERT_BREAKER_OPEN,
                                                .destination = hk_str_of("orders"),
                                                .reason = hk_str_of(""),
                                                .over = true},
                                               {.about = HK_ALERT_DEAD_LETTER,
                                                .destination = hk_str_of("orders"),
                                                .reason = hk_str_of("\"R\""),
                                                .count = 7,
                                                .value = 1.5,
                                                .threshold = 2}},
                                     .n_lines = 2,
                                     .more_lines = 3};
    struct hk_notice back = {.kind = HK_NOTICE_FIRING};
    struct hk_pool arena = {NULL};
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
    assert_true(back.n_lines == 2 && back.more_lines == 3);
    for (size_t i = 0; i < 2; i++) {
        const struct hk_notice_line *a = &back.lines[i], *b = &notice.lines[i];
        assert_true(a->about == b->about && a->over == b->over && a->count == b->count);
        assert_true(hk_str_eq(a->destination, b->destination) && hk_str_eq(a->reason, b->reason));
    }
    assert_true(back.lines[1].value > 1.4 && back.lines[1].threshold > 1.9);
    hk_buf_fini(&facts);
    hk_pool_wipe(&arena);
}

/* Rows may hold anything. */
static void what_is_not_ours_is_passed_over(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "nonsense",
        "[1]",
        "{\"count\":-5,\"about\":\"x\",\"severity\":7}",
        "{\"destination\":{\"reason\":\"R\"},\"count\":1e9}",
        "{\"reason\":\"a",
        "{\"story\":[{\"story\":[{\"count\":1}]},7,[{}]],\"x\":[[{\"count\":2}]]}",
        "{\"story\":{\"a\":{\"count\":3}}}",
        "null"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct hk_notice back = {.kind = HK_NOTICE_FIRING};
        struct hk_pool arena = {NULL};
        assert_int_equal(hk_alerts_facts_read(hk_str_of(texts[i]), &arena, &back), HK_OK);
        assert_int_equal(back.count, 0);
        assert_int_equal(back.reason.len, 0);
        hk_pool_wipe(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plan_outlives_its_configuration),
        cmocka_unit_test(out_of_memory_leaks_nothing),
        cmocka_unit_test(only_what_nothing_holds_back_could_have_gone),
        cmocka_unit_test(a_notice_comes_back_as_it_was),
        cmocka_unit_test(what_is_not_ours_is_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
