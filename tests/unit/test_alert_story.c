/* SPDX-License-Identifier: Apache-2.0 */
/* One cause, one story: how many notices an incident makes, who speaks for whom, and when a number is told again. */
#include "base/str.h"
#include "config_env.h"
#include "core/alert.h"

#define S(text) hk_str_of(text)
#define SEC     INT64_C(1000)
#define MIN     INT64_C(60000)
#define T0      INT64_C(1790000000000)

enum {
    RULES_MAX = 16
};

struct rig {
    struct hk_alert_board board;
    struct hk_alert_settings settings;
    struct hk_alert_facts facts;
    struct hk_alert_rule rules[RULES_MAX];
    size_t n_rules;
    char log[1024]; /* "breaker-open F; …": what was told */
    unsigned told, critical;
};

static void set_up(struct rig *r)
{
    *r = (struct rig){.facts = {.figures = true, .oldest_dest = S(""), .due_dest = S("")},
                      .settings = {.update_ms = (uint64_t)(240 * MIN), .resolve_after_ms = MIN}};
    hk_alert_board_init(&r->board);
}

static struct hk_alert_rule *add_rule(struct rig *r, const char *name, enum hk_alert_kind kind,
                                      enum hk_severity_level severity)
{
    struct hk_alert_rule *rule = &r->rules[r->n_rules++];
    *rule = (struct hk_alert_rule){.name = name, .kind = kind, .severity = severity, .channels = 1};
    return rule;
}

/* The rules that are told when a file has channels and no rules. */
static void add_standard_rules(struct rig *r)
{
    static const char file[] = "channels: { ops: { slack: { url: https://hooks.example/x } } }\n";
    const struct hk_conf_alert_rule *rule = NULL;
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    assert_int_equal(hk_config_parse(file, strlen(file), "f", &fake_env, &diags, &config), HK_OK);
    for (size_t i = 0; (rule = hk_config_alert_rule(config, i)) != NULL; i++) {
        r->rules[r->n_rules] = hk_conf_rule(rule); /* their texts are the program's */
        r->rules[r->n_rules++].channels = 1;
    }
    hk_diags_fini(&diags);
    hk_config_free(config);
}

static void note_tells(struct rig *r)
{
    static const char letters[] = "FUR";
    for (size_t i = 0; i < r->board.n_tells; i++) {
        const struct hk_alert_tell *t = &r->board.tells[i];
        size_t len = strlen(r->log);
        (void)snprintf(r->log + len, sizeof r->log - len, "%s%s %c", len ? "; " : "", r->rules[t->rule].name,
                       letters[t->kind]);
        r->told++;
        r->critical += r->board.alerts[t->alert].severity == HK_ALERT_CRITICAL;
    }
}

/* One look; before it, what the store does between two: what is gone is not there any more. */
static void look(struct rig *r, int64_t now_ms, bool open)
{
    size_t n = 0;
    for (size_t i = 0; i < r->board.n; i++) {
        struct hk_alert a = r->board.alerts[i];
        a.open = open;
        a.changed = false;
        if (!a.gone)
            r->board.alerts[n++] = a;
    }
    r->board.n = n;
    r->board.n_tells = 0;
    r->facts.now_ms = now_ms;
    assert_int_equal(hk_alert_evaluate(&r->board, r->rules, r->n_rules, &r->settings, &r->facts), HK_OK);
    note_tells(r);
}

static void look_with(struct rig *r, int64_t now_ms, const struct hk_alert_deaths *d, size_t n)
{
    r->facts.deaths = d;
    r->facts.n_deaths = n;
    look(r, now_ms, true);
    r->facts.n_deaths = 0;
}

static void look_with_deaths(struct rig *r, int64_t now_ms, const struct hk_alert_deaths *d)
{
    look_with(r, now_ms, d, 1);
}

static const struct hk_alert *alert_of(const struct rig *r, const char *rule)
{
    for (size_t i = 0; i < r->board.n; i++)
        if (hk_str_eq(r->board.alerts[i].rule, S(rule)))
            return &r->board.alerts[i];
    return NULL;
}

/* ---- an incident ---- */

/* `orders`, the only destination, is down from the first minute to the eleventh. Its breaker opens after seconds, what is retried
 * dies from minute 3 on, and nothing is delivered. Then it works again; somebody settles the letters after two hours. */
static void at(struct rig *r, int64_t s)
{
    static struct hk_alert_deaths d;
    static struct hk_alert_dest dest;
    bool down = s >= 60 && s < 660, dying = s >= 180 && s < 660;
    d = (struct hk_alert_deaths){.destination = S("orders"), .reason = S("RETRY_EXHAUSTED"), .n = 5};
    dest = (struct hk_alert_dest){.name = S("orders"), .broken = s >= 70 && s < 670};
    r->facts.deaths = &d;
    r->facts.n_deaths = dying;
    r->facts.dests = &dest;
    r->facts.n_dests = 1;
    r->facts.oldest_ms = s >= 60 && s < 1500 ? T0 + 60 * SEC : 0;
    r->facts.oldest_dest = S("orders");
    r->facts.oldest_due_ms = s >= 60 && s < 1500 && !dest.broken ? T0 + 60 * SEC : 0;
    r->facts.due_dest = S("orders");
    r->facts.oldest_free_ms = r->facts.oldest_due_ms;
    r->facts.held = dest.broken;
    r->facts.progress = down ? 0 : s;
    look(r, T0 + s * SEC, s >= 180 && s < 7200);
}

/* Before alerts had leaders this incident made 12 notices a channel: dead-letter, breaker-open, rising, no-progress, lag-growing
 * and oldest-age, most of them with their end, and nobody heard how large it became. */
static void an_outage_of_ten_minutes_is_one_story(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_standard_rules(&r);
    for (int64_t s = 0; s < 3 * 3600; s += 10)
        at(&r, s);
    NOTE_IF(r.told > 7, "%u: %s\n", r.told, r.log);
    assert_true(r.told <= 7);
    assert_string_equal(r.log, "breaker-open F; breaker-open U; dead-letters-rising F; breaker-open R; "
                               "dead-letter F; dead-letters-rising R; dead-letter R");
    hk_alert_board_fini(&r.board);
}

/* A pause by somebody, for an hour and more: messages grow old, which is told with the pause, and nobody is called out of bed. */
static void a_deliberate_pause_calls_nobody(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_standard_rules(&r);
    const struct hk_alert_dest dest = {.name = S("orders"), .paused = true, .detail = S("ann: migration")};
    r.facts.dests = &dest;
    r.facts.oldest_dest = S("orders");
    for (int64_t s = 0; s < 2 * 3600; s += 10) {
        bool paused = s >= 600;
        r.facts.n_dests = paused;
        r.facts.oldest_ms = paused ? T0 + 600 * SEC : 0;
        r.facts.held = paused;
        r.facts.progress = paused ? 600 : s;
        look(&r, T0 + s * SEC, false);
    }
    assert_int_equal(r.critical, 0);
    assert_string_equal(r.log, "oldest-age F; oldest-age U");
    hk_alert_board_fini(&r.board);
}

static const struct hk_alert_dest broken_orders = {.name = {"orders", 6}, .broken = true};

static void break_orders(struct rig *r)
{
    r->facts.dests = &broken_orders;
    r->facts.n_dests = 1;
}

/* What the pause held back is an hour old when it is let go; that is not the relay's fault. */
static void what_is_let_go_has_its_time(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "still", HK_ALERT_NO_PROGRESS, HK_ALERT_CRITICAL)->age_ms = (uint64_t)(5 * MIN);
    r.facts.progress = 1;
    r.facts.held = true;
    for (int i = 0; i < 60; i++) {
        look(&r, T0 + i * MIN, false);
        assert_true(r.board.alerts[0].changed); /* or another relay would not know */
    }
    r.facts.held = false;
    r.facts.oldest_free_ms = T0;
    for (int i = 60; i < 64; i++)
        look(&r, T0 + i * MIN, false);
    assert_int_equal(r.told, 0);
    look(&r, T0 + 64 * MIN, false);
    assert_string_equal(r.log, "still F");
    hk_alert_board_fini(&r.board);
}

/* ---- who speaks for whom ---- */

static const struct hk_alert_deaths one = {.destination = {"orders", 6}, .reason = {"X", 1}, .n = 1};

/* Letters at minute 0, the breaker at minute 2. `change` sees the rules before. */
static void two_alerts(struct rig *r, void (*change)(struct rig *r))
{
    set_up(r);
    add_rule(r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    add_rule(r, "breaker", HK_ALERT_BREAKER_OPEN, HK_ALERT_WARNING);
    if (change)
        change(r);
    look_with_deaths(r, T0, &one);
    break_orders(r);
    look(r, T0 + 2 * MIN, true);
}

static void is_severer(struct rig *r)
{
    r->rules[1].severity = HK_ALERT_CRITICAL;
}

static void is_told_elsewhere_too(struct rig *r)
{
    r->rules[1].channels = 3;
}

static void is_muted(struct rig *r)
{
    static const struct hk_alert_mute mute = {{"letters", 7}, INT64_MAX};
    r->settings.mutes = &mute;
    r->settings.n_mutes = 1;
}

static void is_about_another(struct rig *r)
{
    r->rules[0].destination = "billing";
}

static void a_leader_speaks_for_all_that_would_hear_it(void **state)
{
    (void)state;

    const struct {
        void (*change)(struct rig *r);
        const char *log;
    } cases[] = {{NULL, "letters F; letters U"},
                 {is_severer, "letters F; breaker F"},
                 {is_told_elsewhere_too, "letters F; breaker F"},
                 {is_muted, "breaker F"},
                 {is_about_another, "breaker F"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig r;
        two_alerts(&r, cases[i].change);
        NOTE_IF(strcmp(r.log, cases[i].log) != 0, "case %zu: %s\n", i, r.log);
        assert_string_equal(r.log, cases[i].log);
        hk_alert_board_fini(&r.board);
    }
}

/* Letters of last week say nothing of today. */
static void letters_lead_only_what_began_with_them(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    add_rule(&r, "breaker", HK_ALERT_BREAKER_OPEN, HK_ALERT_WARNING);
    look_with_deaths(&r, T0, &one);
    break_orders(&r);
    look(&r, T0 + 31 * MIN, true);
    assert_string_equal(r.log, "letters F; breaker F");
    hk_alert_board_fini(&r.board);
}

/* Within the minute after a notice nothing is added to it; then all of it at once. */
static void a_follower_is_a_line_of_its_leaders_notices(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "breaker", HK_ALERT_BREAKER_OPEN, HK_ALERT_WARNING);
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    break_orders(&r);
    look(&r, T0, true);
    look_with_deaths(&r, T0 + 10 * SEC, &one);
    look(&r, T0 + 20 * SEC, true);
    assert_string_equal(r.log, "breaker F");
    look(&r, T0 + 60 * SEC, true);
    assert_string_equal(r.log, "breaker F; breaker U");
    for (size_t i = 0; i < r.board.n; i++)
        assert_int_equal(hk_alert_is_line(&r.board, &r.board.tells[0], i),
                         hk_str_eq(r.board.alerts[i].rule, S("letters")));
    for (int i = 2; i < 60; i++) /* nothing new */
        look(&r, T0 + i * MIN, true);
    assert_string_equal(r.log, "breaker F; breaker U");
    hk_alert_board_fini(&r.board);
}

/* The end names what is over and what is not; what is not speaks for itself from then on. */
static void what_outlasts_its_leader_speaks_for_itself(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "breaker", HK_ALERT_BREAKER_OPEN, HK_ALERT_WARNING);
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    add_rule(&r, "age", HK_ALERT_OLDEST_AGE, HK_ALERT_WARNING)->age_ms = (uint64_t)MIN;
    break_orders(&r);
    r.facts.oldest_dest = S("orders");
    r.facts.oldest_ms = T0 - 2 * MIN;
    look_with_deaths(&r, T0, &one);
    assert_string_equal(r.log, "letters F"); /* of several in one look the one that people must act upon */
    r.log[0] = '\0';
    r.facts.oldest_ms = 0;
    look(&r, T0 + 1 * MIN, true);
    look(&r, T0 + 2 * MIN, false); /* settled */
    look(&r, T0 + 3 * MIN, false);
    assert_string_equal(r.log, "breaker F; letters R");
    const struct hk_alert_tell *end = &r.board.tells[1];
    for (size_t i = 0; i < r.board.n; i++)
        assert_int_equal(hk_alert_is_line(&r.board, end, i), i != end->alert);
    assert_int_equal(alert_of(&r, "age")->status, HK_ALERT_RESOLVED);
    hk_alert_board_fini(&r.board);
}

/* ---- numbers ---- */

static void a_number_of_another_order_is_told_again_soon(void **state)
{
    (void)state;

    const struct {
        uint64_t first, more;
        const char *log;
    } cases[] = {{3217, 6783, "letters F; letters U"}, /* 10,000 within seconds */
                 {1, 9, "letters F; letters U"},
                 {95, 10, "letters F"}, /* about the same */
                 {3000, 6000, "letters F"},
                 {1, 0, "letters F"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct rig r;
        set_up(&r);
        add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
        struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .n = cases[i].first};
        look_with_deaths(&r, T0, &d);
        d.n = cases[i].more;
        look_with_deaths(&r, T0 + 17 * SEC, &d);
        for (int s = 20; s < 3600; s += 10)
            look(&r, T0 + s * SEC, true);
        NOTE_IF(strcmp(r.log, cases[i].log) != 0, "case %zu: %s\n", i, r.log);
        assert_string_equal(r.log, cases[i].log);
        assert_int_equal(r.board.alerts[0].told_figure,
                         strchr(r.log, 'U') ? cases[i].first + cases[i].more : cases[i].first);
        hk_alert_board_fini(&r.board);
    }
}

/* Ten letters that were requeued and died again, twice, are ten letters. */
static void letters_are_counted_and_not_deaths(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    add_rule(&r, "requeued", HK_ALERT_REQUEUE_FAILED, HK_ALERT_WARNING);
    struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .n = 10};
    look_with_deaths(&r, T0, &d);
    d.again = d.second = 10;
    look_with_deaths(&r, T0 + MIN, &d);
    assert_int_equal(alert_of(&r, "letters")->count, 10);
    assert_int_equal(alert_of(&r, "requeued")->count, 10);
    d.second = 0;
    look_with_deaths(&r, T0 + 2 * MIN, &d);
    assert_int_equal(alert_of(&r, "letters")->count, 10);
    assert_int_equal(alert_of(&r, "requeued")->count, 10);
    d.n = 12; /* and two that had died of something else before */
    d.again = 10;
    look_with_deaths(&r, T0 + 3 * MIN, &d);
    assert_int_equal(alert_of(&r, "letters")->count, 12);
    hk_alert_board_fini(&r.board);
}

/* Five letters, all of which died once more before the first look: they are told as new and as dead again. */
static void letters_that_died_twice_before_the_first_look_count_once(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r);
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    add_rule(&r, "requeued", HK_ALERT_REQUEUE_FAILED, HK_ALERT_WARNING);
    struct hk_alert_deaths d[] = {
        {.destination = S("a"), .reason = S("X"), .n = 5},
        {.destination = S("a"), .reason = S("X"), .n = 5, .again = 5, .second = 5, .known = 5}};
    look_with(&r, T0, d, 2);
    assert_int_equal(alert_of(&r, "letters")->count, 5);
    assert_int_equal(alert_of(&r, "requeued")->count, 5);
    hk_alert_board_fini(&r.board);
    set_up(&r); /* without the page of new ones, which comes with the next look: no alert about no letter */
    add_rule(&r, "letters", HK_ALERT_DEAD_LETTER, HK_ALERT_WARNING);
    look_with(&r, T0, &d[1], 1);
    assert_int_equal(r.board.n, 0);
    look_with(&r, T0 + MIN, &d[0], 1);
    assert_int_equal(alert_of(&r, "letters")->count, 5);
    hk_alert_board_fini(&r.board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_outage_of_ten_minutes_is_one_story),
        cmocka_unit_test(a_deliberate_pause_calls_nobody),
        cmocka_unit_test(what_is_let_go_has_its_time),
        cmocka_unit_test(a_leader_speaks_for_all_that_would_hear_it),
        cmocka_unit_test(letters_lead_only_what_began_with_them),
        cmocka_unit_test(a_follower_is_a_line_of_its_leaders_notices),
        cmocka_unit_test(what_outlasts_its_leader_speaks_for_itself),
        cmocka_unit_test(a_number_of_another_order_is_told_again_soon),
        cmocka_unit_test(letters_are_counted_and_not_deaths),
        cmocka_unit_test(letters_that_died_twice_before_the_first_look_count_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
