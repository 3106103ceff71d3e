/* SPDX-License-Identifier: Apache-2.0 */
/* What each kind of rule finds, and what it leaves alone; its words; and no memory at each place where one needs some. The
 * stories are test_alert.c. */
#include "base/str.h"
#include "check.h"
#include "core/alert.h"
#include "failing.h"

#define S(text) hk_str_of(text)
#define MIN     INT64_C(60000)
#define T0      INT64_C(1790000000000)

static const struct hk_alert_settings plain = {.update_ms = 60 * MIN};

static void evaluate(struct hk_alert_board *board, const struct hk_alert_rule *rule,
                     const struct hk_alert_facts *facts)
{
    board->n_tells = 0;
    assert_int_equal(hk_alert_evaluate(board, rule, rule ? 1 : 0, &plain, facts), HK_OK);
}

/* ---- words ---- */

static void every_word_is_read_as_it_is_written(void **state)
{
    (void)state;
    for (int i = 0; i < HK_NALERT_STATUSES; i++) {
        enum hk_alert_status status = HK_ALERT_WATCHING;
        assert_true(hk_alert_status_of(S(hk_alert_status_word((enum hk_alert_status)i)), &status));
        assert_int_equal(status, i);
    }
    for (int i = 0; i < HK_NALERT_KINDS; i++) {
        enum hk_alert_kind kind = HK_ALERT_DEAD_LETTER;
        assert_true(hk_alert_kind_of(S(hk_alert_kind_word((enum hk_alert_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    for (int i = HK_ALERT_INFO; i <= HK_ALERT_CRITICAL; i++) {
        enum hk_severity_level level = HK_ALERT_INFO;
        assert_true(hk_severity_of(S(hk_severity_word((enum hk_severity_level)i)), &level));
        assert_int_equal(level, i);
    }
    for (int i = HK_NOTICE_FIRING; i <= HK_NOTICE_TEST; i++) {
        enum hk_notice_kind kind = HK_NOTICE_FIRING;
        assert_true(hk_notice_of(S(hk_notice_word((enum hk_notice_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
}

static void another_word_is_none_of_them_and_changes_nothing(void **state)
{
    (void)state;
    enum hk_alert_status status = HK_ALERT_FIRING;
    enum hk_alert_kind kind = HK_ALERT_PAUSED;
    enum hk_severity_level level = HK_ALERT_CRITICAL;
    enum hk_notice_kind notice = HK_NOTICE_UPDATE;
    static const char *const words[] = {"", "fire", "FIRING", "firing ", "dead-letter"};
    for (size_t i = 0; i < COUNT(words); i++) {
        assert_false(hk_alert_status_of(S(words[i]), &status));
        assert_false(hk_alert_kind_of(S(words[i]), &kind));
        assert_false(hk_severity_of(S(words[i]), &level));
        assert_false(hk_notice_of(S(words[i]), &notice));
    }
    assert_int_equal(status, HK_ALERT_FIRING);
    assert_int_equal(kind, HK_ALERT_PAUSED);
    assert_int_equal(level, HK_ALERT_CRITICAL);
    assert_int_equal(notice, HK_NOTICE_UPDATE);
}

static void a_kind_is_about_letters_or_about_figures_or_about_neither(void **state)
{
    (void)state;
    for (int i = 0; i < HK_NALERT_KINDS; i++) {
        enum hk_alert_kind kind = (enum hk_alert_kind)i;
        bool letters = kind == HK_ALERT_DEAD_LETTER || kind == HK_ALERT_REQUEUE_FAILED;
        bool figures = kind == HK_ALERT_DEAD_LETTERS_ABOVE || kind == HK_ALERT_OLDEST_AGE ||
                       kind == HK_ALERT_NO_PROGRESS || kind == HK_ALERT_LAG_GROWING;
        assert_int_equal(hk_alert_kind_has_letters(kind), letters);
        assert_int_equal(hk_alert_kind_has_figures(kind), figures);
        assert_int_equal(hk_alert_kind_is_own(kind),
                         kind == HK_ALERT_STORE_UNREACHABLE || kind == HK_ALERT_KEY_MISSING);
    }
}

/* ---- letters ---- */

static void a_letter_counts_when_all_that_the_rule_names_fits(void **state)
{
    (void)state;
    const struct hk_alert_deaths d = {
        .destination = S("billing"), .reason = S("HTTP_410"), .event_type = S("order.paid"), .n = 3};
    const struct hk_alert_facts facts = {.now_ms = T0, .deaths = &d, .n_deaths = 1};

    const struct {
        const char *destination, *reason, *event_type;
        size_t found;
    } cases[] = {{"bill*", "HTTP_4*", "order.*", 1},
                 {"other", "HTTP_4*", "order.*", 0},
                 {"bill*", "HTTP_5*", "order.*", 0},
                 {"bill*", "HTTP_4*", "user.*", 0},
                 {NULL, NULL, NULL, 1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_alert_rule rule = {.name = "r",
                                           .kind = HK_ALERT_DEAD_LETTER,
                                           .destination = cases[i].destination,
                                           .reason = cases[i].reason,
                                           .event_type = cases[i].event_type};
        struct hk_alert_board board;
        hk_alert_board_init(&board);
        evaluate(&board, &rule, &facts);
        NOTE_IF(board.n != cases[i].found, "case %zu\n", i);
        assert_int_equal(board.n, cases[i].found);
        hk_alert_board_fini(&board);
    }
}

static void of_several_event_types_in_one_look_none_is_named(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_DEAD_LETTER};
    const struct hk_alert_deaths d[] = {
        {.destination = S("a"), .reason = S("X"), .event_type = S("one"), .n = 1, .letter_id = 1},
        {.destination = S("a"), .reason = S("X"), .event_type = S("two"), .n = 2, .letter_id = 2}};
    const struct hk_alert_facts facts = {.now_ms = T0, .deaths = d, .n_deaths = 2};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.n, 1);
    assert_int_equal(board.alerts[0].count, 3);
    assert_int_equal(board.alerts[0].event_type.len, 0);
    hk_alert_board_fini(&board);
}

static void one_that_waits_for_its_time_counts_on_and_names_no_type_of_several(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_DEAD_LETTER, .for_ms = 5 * MIN};
    struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .event_type = S("one"), .n = 1};
    struct hk_alert_facts facts = {.now_ms = T0, .deaths = &d, .n_deaths = 1};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.alerts[0].status, HK_ALERT_PENDING);
    evaluate(&board, &rule, &facts);
    assert_true(hk_str_eq(board.alerts[0].event_type, S("one")));
    d.event_type = S("two");
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.alerts[0].event_type.len, 0);
    assert_int_equal(board.alerts[0].count, 3);
    assert_int_equal(board.n_tells, 0);
    hk_alert_board_fini(&board);
}

static void only_letters_that_failed_again_are_failed_requeues(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_REQUEUE_FAILED};
    struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .n = 7};
    const struct hk_alert_facts facts = {.now_ms = T0, .deaths = &d, .n_deaths = 1};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.n, 0);
    d.again = 2;
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.n, 1);
    assert_int_equal(board.alerts[0].count, 2);
    hk_alert_board_fini(&board);
}

static void what_is_over_takes_no_place_among_the_groups(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_DEAD_LETTER};
    static char reasons[HK_ALERT_SEPARATE][8];
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    for (size_t i = 0; i < HK_ALERT_SEPARATE; i++) {
        (void)snprintf(reasons[i], sizeof reasons[i], "R%zu", i);
        const struct hk_alert old = {.rule = S("r"),
                                     .kind = HK_ALERT_DEAD_LETTER,
                                     .destination = S("a"),
                                     .reason = S(reasons[i]),
                                     .status = HK_ALERT_RESOLVED,
                                     .resolved_ms = T0 - MIN};
        assert_int_equal(hk_alert_board_add(&board, &old), HK_OK);
    }
    const struct hk_alert_deaths d = {.destination = S("a"), .reason = S("new"), .n = 1};
    evaluate(&board, &rule, &(struct hk_alert_facts){.now_ms = T0, .deaths = &d, .n_deaths = 1});
    assert_int_equal(board.n, HK_ALERT_SEPARATE + 1);
    assert_true(hk_str_eq(board.alerts[board.n - 1].reason, S("new")));
    hk_alert_board_fini(&board);
}

static void a_board_has_an_end(void **state)
{
    (void)state;
    const struct hk_alert one = {.rule = S("r")};
    struct hk_alert_board board = {.n = (size_t)1 << 20, .room = (size_t)1 << 20};
    assert_int_equal(hk_alert_board_add(&board, &one), HK_NOMEM);
    assert_int_equal(board.n, (size_t)1 << 20);
}

/* ---- destinations ---- */

static void only_destinations_that_the_rule_names_are_looked_at(void **state)
{
    (void)state;
    const struct hk_alert_dest dests[] = {
        {.name = S("a"), .broken = true, .paused = true, .detail = S("AUTH_FAILED"), .dead = 9},
        {.name = S("b"), .broken = true, .paused = true, .dead = 9},
        {.name = S("bc"), .dead = 2}};

    static const enum hk_alert_kind kinds[] = {HK_ALERT_BREAKER_OPEN, HK_ALERT_PAUSED,
                                               HK_ALERT_DEAD_LETTERS_ABOVE};
    const struct hk_alert_facts facts = {.now_ms = T0, .figures = true, .dests = dests, .n_dests = 3};
    for (size_t i = 0; i < COUNT(kinds); i++) {
        const struct hk_alert_rule rule = {.name = "r", .kind = kinds[i], .destination = "b*", .above = 5};
        struct hk_alert_board board;
        hk_alert_board_init(&board);
        evaluate(&board, &rule, &facts);
        assert_int_equal(board.n, 1);
        assert_true(hk_str_eq(board.alerts[0].destination, S("b")));
        assert_int_equal(board.n_tells, 1);
        hk_alert_board_fini(&board);
    }
}

static void deaths_elsewhere_are_no_rise_here(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r",
                                       .kind = HK_ALERT_DEAD_LETTERS_RISING,
                                       .destination = "a",
                                       .above = 5,
                                       .age_ms = 10 * MIN};
    const struct hk_alert_deaths d[] = {{.destination = S("a"), .n = 4}, {.destination = S("b"), .n = 100}};
    struct hk_alert_facts facts = {.now_ms = T0, .deaths = d, .n_deaths = 2};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    assert_int_equal((int)board.alerts[0].value, 4);
    assert_true(hk_str_eq(board.alerts[0].destination, S("a")));
    assert_int_equal(board.n_tells, 0);
    facts.now_ms += 60 * MIN; /* nobody looked for longer than the window: nothing of it counts any more */
    facts.n_deaths = 0;
    board.alerts[0].changed = false;
    evaluate(&board, &rule, &facts);
    assert_int_equal((int)board.alerts[0].value, 0);
    assert_int_equal(board.alerts[0].series_ms, facts.now_ms);
    assert_true(board.alerts[0].changed);
    board.alerts[0].changed = false;
    facts.now_ms++;
    evaluate(&board, &rule, &facts);
    assert_false(board.alerts[0].changed); /* nothing new: nothing to be written */
    facts.n_deaths = 2;
    facts.now_ms = T0; /* the clock went back: counted anew from there */
    evaluate(&board, &rule, &facts);
    assert_int_equal((int)board.alerts[0].value, 4);
    assert_int_equal(board.alerts[0].series_ms, T0);
    hk_alert_board_fini(&board);
}

/* ---- time ---- */

static void what_is_due_later_is_no_lag_and_a_clock_that_goes_back_is_sampled_anew(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_LAG_GROWING, .age_ms = 10 * MIN};
    struct hk_alert_facts facts = {.now_ms = T0, .figures = true, .oldest_due_ms = T0 + MIN};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    assert_true(board.alerts[0].value == 0);
    facts.oldest_due_ms = T0 - 2 * MIN;
    facts.now_ms = T0 - MIN;
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.alerts[0].series_ms, T0 - MIN);
    assert_int_equal(board.alerts[0].series[0], MIN);
    assert_int_equal(board.n_tells, 0);
    hk_alert_board_fini(&board);
}

static void quiet_hours_of_one_day_end_and_hold_before_1970(void **state)
{
    (void)state;
    struct hk_alert_settings s = {
        .quiet = {.on = true, .from_min = 9 * 60, .to_min = 17 * 60, .let_through = HK_ALERT_CRITICAL}};
    assert_true(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, 12 * 60 * MIN));
    assert_false(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, 18 * 60 * MIN));
    s.quiet.zone_min = -12 * 60; /* the clock's zero is noon of the day before */
    assert_true(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, 0));
    assert_false(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, 6 * 60 * MIN));
}

/* ---- rules that change ---- */

static void a_rule_that_became_severer_says_so_of_what_fires_already(void **state)
{
    (void)state;
    const struct hk_alert_dest dest = {.name = S("a"), .broken = true};
    const struct hk_alert_facts facts = {.now_ms = T0, .dests = &dest, .n_dests = 1};
    struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_BREAKER_OPEN, .severity = HK_ALERT_INFO};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    board.alerts[0].changed = false;
    evaluate(&board, &rule, &facts);
    assert_false(board.alerts[0].changed);
    rule.severity = HK_ALERT_CRITICAL;
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.alerts[0].severity, HK_ALERT_CRITICAL);
    assert_true(board.alerts[0].changed);
    hk_alert_board_fini(&board);
}

/* The same name, of another kind: what was is retired like that of a rule which is gone. */
static void a_rule_of_another_kind_does_not_go_on_with_the_old_ones_alerts(void **state)
{
    (void)state;
    const struct hk_alert_dest dest = {.name = S("a"), .broken = true, .paused = true};
    struct hk_alert_facts facts = {.now_ms = T0, .dests = &dest, .n_dests = 1};
    struct hk_alert_rule rule = {.name = "r", .kind = HK_ALERT_BREAKER_OPEN};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    evaluate(&board, &rule, &facts);
    rule.kind = HK_ALERT_PAUSED;
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.n, 2);
    assert_int_equal(board.n_tells, 1);
    facts.now_ms += 11 * MIN;
    evaluate(&board, &rule, &facts);
    assert_int_equal(board.alerts[0].status, HK_ALERT_RESOLVED);
    assert_int_equal(board.alerts[1].status, HK_ALERT_FIRING);
    assert_int_equal(board.n_tells, 0);
    hk_alert_board_fini(&board);
}

static void what_is_left_of_a_rule_that_is_gone(void **state)
{
    (void)state;

    static const struct {
        enum hk_alert_status status;
        bool owed, gone;
        int64_t resolved_ms;
    } cases[] = {
        {HK_ALERT_WATCHING, false, true, T0 + 11 * MIN}, /* nothing */
        {HK_ALERT_PENDING, false, true, T0 + 11 * MIN},
        {HK_ALERT_FIRING, false, false, T0 + 11 * MIN}, /* that it was, until now */
        {HK_ALERT_RESOLVED, true, false, T0 - MIN},     /* that it was, until then; nobody is told any more */
        {HK_ALERT_RESOLVED, false, false, T0 - MIN},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_alert old = {.rule = S("was"),
                                     .status = cases[i].status,
                                     .owed = cases[i].owed,
                                     .resolved_ms = cases[i].status == HK_ALERT_RESOLVED ? T0 - MIN : 0};
        struct hk_alert_board board;
        hk_alert_board_init(&board);
        assert_int_equal(hk_alert_board_add(&board, &old), HK_OK);
        evaluate(&board, NULL, &(struct hk_alert_facts){.now_ms = T0});
        assert_int_equal(board.alerts[0].status, cases[i].status);
        evaluate(&board, NULL, &(struct hk_alert_facts){.now_ms = T0 + 11 * MIN});
        assert_int_equal(board.alerts[0].status, HK_ALERT_RESOLVED);
        assert_int_equal(board.alerts[0].gone, cases[i].gone);
        assert_false(board.alerts[0].owed);
        assert_int_equal(board.alerts[0].resolved_ms, cases[i].resolved_ms);
        assert_int_equal(board.n_tells, 0);
        hk_alert_board_fini(&board);
    }
}

/* ---- no memory ---- */

static enum hk_alert_kind kind_now;

/* Two destinations, so that one is left when there was no memory for the first; and two rules. */
static enum hk_code evaluate_kind(void)
{
    const struct hk_alert_deaths deaths[] = {{.destination = S("a"), .reason = S("X"), .n = 9, .again = 9},
                                             {.destination = S("b"), .reason = S("X"), .n = 9, .again = 9}};
    const struct hk_alert_dest dests[] = {{.name = S("a"), .broken = true, .paused = true, .dead = 9},
                                          {.name = S("b"), .broken = true, .paused = true, .dead = 9}};
    const struct hk_alert_facts facts = {.now_ms = T0,
                                         .figures = true,
                                         .deaths = deaths,
                                         .n_deaths = 2,
                                         .dests = dests,
                                         .n_dests = 2,
                                         .dead = 18,
                                         .oldest_ms = T0 - 60 * MIN,
                                         .oldest_due_ms = T0 - 60 * MIN};
    const struct hk_alert_rule rules[] = {
        {.name = "r", .kind = kind_now, .destination = "*", .above = 5, .age_ms = MIN},
        {.name = "s", .kind = kind_now, .above = 5, .age_ms = MIN}};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    enum hk_code rc = hk_alert_evaluate(&board, rules, 2, &plain, &facts);
    hk_alert_board_fini(&board);
    return rc;
}

static void out_of_memory_is_said_by_every_kind_of_rule(void **state)
{
    (void)state;
    for (int i = 0; i < HK_NALERT_KINDS; i++) {
        kind_now = (enum hk_alert_kind)i;
        size_t n = fail_each_allocation(evaluate_kind, HK_OK);
        /* alerts, where they are found, who leads, and notices; rules that look back have nothing to say yet, and the store's reach is not
         * looked at here */
        bool quiet = kind_now == HK_ALERT_NO_PROGRESS || kind_now == HK_ALERT_LAG_GROWING;
        size_t expected = hk_alert_kind_is_own(kind_now) ? 2 : quiet ? 3 : 4;
        NOTE_IF(n != expected, "%s: %zu\n", hk_alert_kind_word(kind_now), n);
        assert_int_equal(n, expected);
    }
}

/* ---- what was kept ---- */

/* Whoever can write to the database can write anything there: it counts as long ago, or as nothing, and numbers end where they end. */
static void what_the_store_kept_may_be_any_number(void **state)
{
    (void)state;

    static const enum hk_alert_kind kinds[] = {HK_ALERT_DEAD_LETTERS_RISING, HK_ALERT_LAG_GROWING,
                                               HK_ALERT_NO_PROGRESS, HK_ALERT_OLDEST_AGE};

    static const int64_t numbers[] = {INT64_MIN, -1, INT64_MAX};
    const struct hk_alert_deaths d = {.destination = S("a"), .n = 3};
    const struct hk_alert_facts facts = {.now_ms = T0,
                                         .deaths = &d,
                                         .n_deaths = 1,
                                         .figures = true,
                                         .oldest_ms = T0 - MIN,
                                         .oldest_due_ms = T0 - MIN};
    for (size_t i = 0; i < COUNT(kinds) * COUNT(numbers) * HK_NALERT_STATUSES; i++) {
        const int64_t n = numbers[i / COUNT(kinds) % COUNT(numbers)];
        const struct hk_alert_rule rule = {
            .name = "r", .kind = kinds[i % COUNT(kinds)], .age_ms = MIN, .above = 3, .for_ms = 1};
        struct hk_alert kept = {.rule = S("r"), .kind = rule.kind};
        kept.status = (enum hk_alert_status)(i / (COUNT(kinds) * COUNT(numbers)));
        kept.since_ms = kept.fired_ms = kept.resolved_ms = kept.gone_ms = kept.told_ms = kept.series_ms = n;
        kept.letter_id = n;
        for (size_t k = 0; k < HK_ALERT_SERIES; k++)
            kept.series[k] = n;
        struct hk_alert_board board;
        hk_alert_board_init(&board);
        assert_int_equal(hk_alert_board_add(&board, &kept), HK_OK);
        evaluate(&board, &rule, &facts);
        const struct hk_alert *a = &board.alerts[0];
        assert_int_equal(board.n, 1);
        assert_true(a->since_ms <= T0 && a->gone_ms <= T0 && a->told_ms <= T0);
        if (rule.kind == HK_ALERT_DEAD_LETTERS_RISING && n < 0) /* the three of now */
            assert_true(a->active && a->value > 2.9 && a->value < 3.1);
        hk_alert_board_fini(&board);
    }
}

/* A sum that would pass the largest number is that. */
static void a_count_beyond_all_numbers_stays_the_largest(void **state)
{
    (void)state;
    const struct hk_alert_deaths d = {.destination = S("a"), .n = 3};
    const struct hk_alert_facts facts = {.now_ms = T0, .deaths = &d, .n_deaths = 1};
    const struct hk_alert_rule rule = {
        .name = "r", .kind = HK_ALERT_DEAD_LETTERS_RISING, .age_ms = MIN, .above = 3};
    struct hk_alert kept = {.rule = S("r"),
                            .kind = HK_ALERT_DEAD_LETTERS_RISING,
                            .series_ms = T0 - 1,
                            .series = {INT64_MAX - 1, INT64_MAX, -5}};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    assert_int_equal(hk_alert_board_add(&board, &kept), HK_OK);
    evaluate(&board, &rule, &facts);
    assert_true(board.alerts[0].active && board.alerts[0].value > 9e18);
    assert_true(board.alerts[0].series[0] == INT64_MAX);
    hk_alert_board_fini(&board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_word_is_read_as_it_is_written),
        cmocka_unit_test(another_word_is_none_of_them_and_changes_nothing),
        cmocka_unit_test(a_kind_is_about_letters_or_about_figures_or_about_neither),
        cmocka_unit_test(a_letter_counts_when_all_that_the_rule_names_fits),
        cmocka_unit_test(of_several_event_types_in_one_look_none_is_named),
        cmocka_unit_test(one_that_waits_for_its_time_counts_on_and_names_no_type_of_several),
        cmocka_unit_test(only_letters_that_failed_again_are_failed_requeues),
        cmocka_unit_test(what_is_over_takes_no_place_among_the_groups),
        cmocka_unit_test(a_board_has_an_end),
        cmocka_unit_test(only_destinations_that_the_rule_names_are_looked_at),
        cmocka_unit_test(deaths_elsewhere_are_no_rise_here),
        cmocka_unit_test(what_the_store_kept_may_be_any_number),
        cmocka_unit_test(a_count_beyond_all_numbers_stays_the_largest),
        cmocka_unit_test(what_is_due_later_is_no_lag_and_a_clock_that_goes_back_is_sampled_anew),
        cmocka_unit_test(quiet_hours_of_one_day_end_and_hold_before_1970),
        cmocka_unit_test(a_rule_that_became_severer_says_so_of_what_fires_already),
        cmocka_unit_test(a_rule_of_another_kind_does_not_go_on_with_the_old_ones_alerts),
        cmocka_unit_test(what_is_left_of_a_rule_that_is_gone),
        cmocka_unit_test(out_of_memory_is_said_by_every_kind_of_rule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
