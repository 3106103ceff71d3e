/* SPDX-License-Identifier: Apache-2.0 */
/* When people are told, and when not: stories step by step, and what must hold in every story. */
#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "core/alert.h"
#include "failing.h"

#define S(text) hk_str_of(text)
#define MIN     INT64_C(60000)
#define T0      (INT64_C(1790000000000) / 86400000 * 86400000) /* a midnight, UTC */

static const struct hk_alert_rule broken = {
    .name = "broken", .kind = HK_ALERT_BREAKER_OPEN, .severity = HK_ALERT_WARNING, .for_ms = MIN};
static const struct hk_alert_rule died = {
    .name = "died", .kind = HK_ALERT_DEAD_LETTER, .severity = HK_ALERT_WARNING};

/* One look after the other, with whatever the board remembers. */
struct rig {
    struct hk_alert_board board;
    struct hk_alert_settings settings;
    struct hk_alert_facts facts;
    const struct hk_alert_rule *rules;
    size_t n_rules;
};

static void set_up(struct rig *r, const struct hk_alert_rule *rules, size_t n)
{
    *r = (struct rig){.facts = {.figures = true},
                      .rules = rules,
                      .n_rules = n,
                      .settings = {.update_ms = 60 * MIN, .resolve_after_ms = 0}};
    hk_alert_board_init(&r->board);
}

/* As the store does between two looks: gone ones are not there any more, nothing is fresh. */
static void keep(struct rig *r, bool open)
{
    size_t n = 0;
    for (size_t i = 0; i < r->board.n; i++) {
        struct hk_alert a = r->board.alerts[i];
        if (a.gone)
            continue;
        a.open = open;
        a.changed = false;
        r->board.alerts[n++] = a;
    }
    r->board.n = n;
    r->board.n_tells = 0;
}

static size_t look(struct rig *r, int64_t now_ms)
{
    r->facts.now_ms = now_ms;
    assert_int_equal(hk_alert_evaluate(&r->board, r->rules, r->n_rules, &r->settings, &r->facts), HK_OK);
    return r->board.n_tells;
}

/* What the only tell was: F, U, R; '-' for none, '!' for several. */
static char told(const struct rig *r)
{
    static const char letters[] = {
        [HK_NOTICE_FIRING] = 'F', [HK_NOTICE_UPDATE] = 'U', [HK_NOTICE_RESOLVED] = 'R'};
    if (r->board.n_tells > 1)
        return '!';
    return r->board.n_tells ? letters[r->board.tells[0].kind] : '-';
}

/* ---- stories: a minute a step ---- */

/* holds: 'x' the breaker is open, '.' it is not, 'm' and 'o': the same while the rule is muted. */
static const struct {
    const char *name, *holds, *told;
    unsigned for_min, update_min, resolve_min;
} stories[] = {
    {"nothing is wrong", "....", "----", 0, 60, 0},
    {"at once without a wait-for", "xx..", "F-R-", 0, 60, 0},
    {"only what has held for long enough", "x.xx", "---F", 1, 60, 0},
    {"what went away before is never mentioned", "xx.x.", "-----", 2, 60, 0},
    {"again after its end", "x.x.", "FRFR", 0, 60, 0},
    {"updates on a schedule", "xxxxxxx", "F-U-U-U", 0, 2, 0},
    {"a short break does not end it", "x.x..x...", "F--------", 0, 60, 3},
    {"its end is told after the break was long enough", "x...x", "F--RF", 0, 60, 2},
    {"no update while it is about to end", "xx...", "FU--R", 0, 1, 2},
    {"muted: told once when the mute ends, if it still is", "mmmx", "---F", 0, 1, 0},
    {"muted: never told if it is over by then", "mmo..", "-----", 0, 1, 0},
    {"begun before, ended under the mute: the end is owed", "xmo.", "F--R", 0, 60, 0},
    {"ended and begun again under the mute: it goes on", "xomx.", "F---R", 0, 60, 0},
    {"no updates while muted", "xmmmmx", "F----U", 0, 2, 0},
    {"the wait-for goes on while muted", "mmx", "--F", 2, 60, 0},
};

static void stories_are_told_as_they_should(void **state)
{
    (void)state;
    const struct hk_alert_mute mute = {S("broken"), INT64_MAX};
    for (size_t i = 0; i < COUNT(stories); i++) {
        struct rig r;
        struct hk_alert_rule rule = broken;
        rule.for_ms = stories[i].for_min * (uint64_t)MIN;
        set_up(&r, &rule, 1);
        r.settings.update_ms = stories[i].update_min * (uint64_t)MIN;
        r.settings.resolve_after_ms = stories[i].resolve_min * (uint64_t)MIN;
        r.settings.mutes = &mute;
        for (size_t t = 0; stories[i].holds[t]; t++) {
            char c = stories[i].holds[t];
            const struct hk_alert_dest dest = {.name = S("billing"), .broken = c == 'x' || c == 'm'};
            r.settings.n_mutes = c == 'm' || c == 'o';
            r.facts.dests = &dest;
            r.facts.n_dests = 1;
            look(&r, T0 + (int64_t)t * MIN);
            NOTE_IF(told(&r) != stories[i].told[t], "%s: step %zu: told %c\n", stories[i].name, t, told(&r));
            assert_int_equal(told(&r), stories[i].told[t]);
            keep(&r, false);
        }
        hk_alert_board_fini(&r.board);
    }
}

/* ---- letters ---- */

static void deaths(struct rig *r, const struct hk_alert_deaths *items, size_t n, bool open, int64_t now_ms)
{
    keep(r, open);
    r->facts.deaths = items;
    r->facts.n_deaths = n;
    look(r, now_ms);
}

static void ten_thousand_of_one_cause_are_one_alert_with_a_count(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r, &died, 1);
    const struct hk_alert_deaths some = {.destination = S("billing"),
                                         .reason = S("HTTP_4XX"),
                                         .event_type = S("A"),
                                         .n = 100,
                                         .letter_id = 7,
                                         .message_id = S("m7")};
    for (int i = 0; i < 100; i++) {
        deaths(&r, &some, 1, true, T0 + i * 10000);
        /* 1,000 and 10,000 are told when they are reached */
        assert_int_equal(told(&r), i == 0 ? 'F' : i == 9 || i == 99 ? 'U' : '-');
    }
    assert_int_equal(r.board.n, 1);
    assert_int_equal(r.board.alerts[0].count, 10000);
    assert_int_equal(r.board.alerts[0].letter_id, 7);
    assert_true(hk_str_eq(r.board.alerts[0].event_type, S("A")));
    deaths(&r, NULL, 0, true, T0 + 77 * MIN);
    assert_int_equal(told(&r), 'U');
    deaths(&r, NULL, 0, true, T0 + 78 * MIN);
    assert_int_equal(told(&r), '-');
    deaths(&r, NULL, 0, false, T0 + 79 * MIN);
    assert_int_equal(told(&r), 'R');
    assert_int_equal(r.board.alerts[0].count, 10000);
    deaths(&r, &some, 1, false, T0 + 80 * MIN);
    assert_int_equal(told(&r), 'F');
    assert_int_equal(r.board.alerts[0].count, 100);
    assert_int_equal(r.board.alerts[0].episode, 2);
    hk_alert_board_fini(&r.board);
}

static void causes_are_told_apart_and_event_types_are_not(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_deaths items[] = {
        {.destination = S("a"), .reason = S("X"), .event_type = S("A"), .n = 1},
        {.destination = S("a"), .reason = S("X"), .event_type = S("B"), .n = 2},
        {.destination = S("a"), .reason = S("Y"), .event_type = S("A"), .n = 3},
        {.destination = S("b"), .reason = S("X"), .event_type = S("A"), .n = 4}};
    set_up(&r, &died, 1);
    deaths(&r, items, COUNT(items), true, T0);
    assert_int_equal(r.board.n, 3);
    assert_int_equal(r.board.n_tells, 3);
    assert_int_equal(r.board.alerts[0].count, 3);
    assert_int_equal(r.board.alerts[0].event_type.len, 0);
    assert_string_not_equal(r.board.alerts[0].fingerprint, r.board.alerts[1].fingerprint);
    assert_string_not_equal(r.board.alerts[0].fingerprint, r.board.alerts[2].fingerprint);
    hk_alert_board_fini(&r.board);
}

static void only_what_the_rule_means(void **state)
{
    (void)state;
    struct rig r;
    struct hk_alert_rule rules[] = {died, died, died, died};
    const struct hk_alert_deaths d = {.destination = S("billing"),
                                      .reason = S("HTTP_4XX"),
                                      .event_type = S("OrderPaid"),
                                      .n = 5,
                                      .again = 2};
    rules[0].destination = "bill*";
    rules[0].event_type = "Order*";
    rules[1].name = "other";
    rules[1].destination = "mail";
    rules[2].name = "reason";
    rules[2].reason = "EXPIRED";
    rules[3].name = "again";
    rules[3].kind = HK_ALERT_REQUEUE_FAILED;
    rules[3].channels = 1; /* which does not hear the first */
    set_up(&r, rules, COUNT(rules));
    deaths(&r, &d, 1, true, T0);
    assert_int_equal(r.board.n_tells, 2);
    assert_int_equal(r.board.tells[0].rule, 0);
    assert_int_equal(r.board.tells[1].rule, 3);
    assert_int_equal(r.board.alerts[r.board.tells[1].alert].count, 2);
    hk_alert_board_fini(&r.board);
}

/* ---- storms ---- */

#define STORM 1000

static char names[STORM][16];

static const struct hk_alert_deaths *storm_of_deaths(void)
{
    static struct hk_alert_deaths items[STORM];
    for (int i = 0; i < STORM; i++) {
        snprintf(names[i], sizeof names[i], "d%d", i);
        items[i] = (struct hk_alert_deaths){.destination = S(names[i]), .reason = S("X"), .n = 1};
    }
    return items;
}

/* An application may write any destination: a thousand unknown ones are not a thousand alerts. */
static void too_many_groups_are_one_alert_together(void **state)
{
    (void)state;
    const struct hk_alert_deaths *items = storm_of_deaths();
    struct rig r;
    uint64_t sum = 0;
    set_up(&r, &died, 1);
    deaths(&r, items, STORM, true, T0);
    assert_int_equal(r.board.n_tells, HK_ALERT_SEPARATE + 1);
    deaths(&r, items, STORM, true, T0 + MIN);
    assert_int_equal(told(&r), 'U'); /* the one for all others: from 990 to 1,980 */
    assert_int_equal(r.board.n, HK_ALERT_SEPARATE + 1);
    for (size_t i = 0; i < r.board.n; i++)
        sum += r.board.alerts[i].count;
    assert_int_equal(sum, 2000);
    hk_alert_board_fini(&r.board);
}

static void how_many_are_told_of_one_by_one_can_be_chosen(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r, &died, 1);
    r.settings.separate = 200;
    deaths(&r, storm_of_deaths(), STORM, true, T0);
    assert_int_equal(r.board.n_tells, 201);
    hk_alert_board_fini(&r.board);
}

static size_t others_of(const struct rig *r)
{
    size_t i = 0;
    while (i < r->board.n &&
           !hk_alert_is_of_others(r->board.alerts[i].kind, r->board.alerts[i].destination, S("")))
        i++;
    return i;
}

/* Places become free one after the other then: whoever waits for one must not be told of in its turn. */
static void a_storm_that_ends_slowly_is_not_told_one_by_one(void **state)
{
    (void)state;
    static struct hk_alert_dest dests[STORM];
    struct rig r;
    size_t told_of[3] = {0};
    (void)storm_of_deaths();
    for (int i = 0; i < STORM; i++)
        dests[i] = (struct hk_alert_dest){.name = S(names[i]), .broken = true};
    set_up(&r, &broken, 1);
    r.facts.dests = dests;
    r.facts.n_dests = STORM;
    r.settings.update_ms = 10000 * (uint64_t)MIN;
    for (int t = 0; t <= STORM + 2; t++) {
        if (t >= 2 && t - 2 < STORM)
            dests[t - 2].broken = false;
        look(&r, T0 + t * MIN);
        for (size_t i = 0; i < r.board.n_tells; i++)
            told_of[r.board.tells[i].kind]++;
        if (t == 1)
            assert_true(r.board.alerts[others_of(&r)].value == STORM - HK_ALERT_SEPARATE);
        if (t == STORM)
            assert_true(r.board.alerts[others_of(&r)].value == 1);
        keep(&r, false);
    }
    assert_int_equal(told_of[HK_NOTICE_FIRING], HK_ALERT_SEPARATE + 1);
    assert_int_equal(told_of[HK_NOTICE_UPDATE], 0);
    assert_int_equal(told_of[HK_NOTICE_RESOLVED], HK_ALERT_SEPARATE + 1);
    hk_alert_board_fini(&r.board);
}

static void how_many_others_there_are_is_written_when_it_grows(void **state)
{
    (void)state;
    struct hk_alert_dest dests[HK_ALERT_SEPARATE + 3];
    struct rig r;
    (void)storm_of_deaths();
    for (size_t i = 0; i < COUNT(dests); i++)
        dests[i] = (struct hk_alert_dest){.name = S(names[i]), .broken = i < HK_ALERT_SEPARATE + 2};
    set_up(&r, &broken, 1);
    r.facts.dests = dests;
    r.facts.n_dests = COUNT(dests);
    look(&r, T0);
    look(&r, T0 + MIN); /* all are told of */
    keep(&r, false);
    look(&r, T0 + 2 * MIN);
    assert_false(r.board.alerts[others_of(&r)].changed);
    dests[COUNT(dests) - 1].broken = true;
    look(&r, T0 + 3 * MIN);
    assert_true(r.board.alerts[others_of(&r)].changed);
    assert_true(r.board.alerts[others_of(&r)].value == 3);
    hk_alert_board_fini(&r.board);
}

/* Alike but for the reason: wherever they lie in the index, each is found again. */
static const struct hk_alert_deaths *reasons(size_t n)
{
    static struct hk_alert_deaths items[STORM];
    (void)storm_of_deaths();
    for (size_t i = 0; i < n; i++)
        items[i] = (struct hk_alert_deaths){.destination = S("billing"), .reason = S(names[i]), .n = 1};
    return items;
}

static void reasons_of_one_destination_are_not_mixed_up(void **state)
{
    (void)state;
    struct rig r;
    set_up(&r, &died, 1);
    r.settings.separate = STORM;
    deaths(&r, reasons(STORM), STORM, true, T0);
    deaths(&r, reasons(STORM), STORM, true, T0 + MIN);
    assert_int_equal(r.board.n, STORM);
    for (size_t i = 0; i < STORM; i++) {
        assert_true(hk_str_eq(r.board.alerts[i].reason, S(names[i])));
        assert_int_equal(r.board.alerts[i].count, 2);
    }
    hk_alert_board_fini(&r.board);
}

static void letters_of_too_many_destinations_are_added_up(void **state)
{
    (void)state;
    static struct hk_alert_dest dests[STORM];
    const struct hk_alert_rule rule = {
        .name = "many", .kind = HK_ALERT_DEAD_LETTERS_ABOVE, .above = 5, .destination = "*"};
    struct rig r;
    (void)storm_of_deaths();
    for (int i = 0; i < STORM; i++)
        dests[i] = (struct hk_alert_dest){.name = S(names[i]), .dead = 7};
    set_up(&r, &rule, 1);
    r.facts.dests = dests;
    r.facts.n_dests = STORM;
    assert_int_equal(look(&r, T0), HK_ALERT_SEPARATE + 1);
    assert_true(r.board.alerts[HK_ALERT_SEPARATE].destination.len == 0);
    assert_true(r.board.alerts[HK_ALERT_SEPARATE].value == 7 * (STORM - HK_ALERT_SEPARATE));
    hk_alert_board_fini(&r.board);
}

/* Each of them had its own alert once, on some other day. */
static void a_storm_of_old_acquaintances_is_a_storm(void **state)
{
    (void)state;
    const struct hk_alert_deaths *items = storm_of_deaths();
    struct rig r;
    set_up(&r, &died, 1);
    for (int i = 0; i < STORM; i++) {
        deaths(&r, &items[i], 1, false, T0 + 2 * i * MIN);
        assert_int_equal(told(&r), 'F');
        deaths(&r, NULL, 0, false, T0 + (2 * i + 1) * MIN);
        assert_int_equal(told(&r), 'R');
    }
    deaths(&r, items, STORM, false, T0 + 3000 * MIN);
    assert_int_equal(r.board.n_tells, HK_ALERT_SEPARATE + 1);
    deaths(&r, NULL, 0, false, T0 + 3001 * MIN);
    assert_int_equal(r.board.n_tells, HK_ALERT_SEPARATE + 1);
    hk_alert_board_fini(&r.board);
}

/* ---- rules that compare ---- */

static void counts_and_ages_are_compared(void **state)
{
    (void)state;
    struct rig r;
    struct hk_alert_rule rules[] = {
        {.name = "many", .kind = HK_ALERT_DEAD_LETTERS_ABOVE, .above = 10},
        {.name = "at", .kind = HK_ALERT_DEAD_LETTERS_ABOVE, .above = 3, .destination = "*"},
        {.name = "old", .kind = HK_ALERT_OLDEST_AGE, .age_ms = 5 * MIN},
        {.name = "paused", .kind = HK_ALERT_PAUSED}};
    struct hk_alert_dest dests[] = {{.name = S("a"), .dead = 3},
                                    {.name = S("b"), .dead = 2, .paused = true, .detail = S("ann: why")}};
    set_up(&r, rules, COUNT(rules));
    r.facts.dests = dests;
    r.facts.n_dests = 2;
    r.facts.dead = 9;
    r.facts.oldest_ms = T0 - 5 * MIN + 1;
    assert_int_equal(look(&r, T0), 2); /* "at" a, "paused" b */
    assert_true(hk_str_eq(r.board.alerts[r.board.tells[0].alert].destination, S("a")));
    assert_true(hk_str_eq(r.board.alerts[r.board.tells[1].alert].detail, S("ann: why")));
    keep(&r, false);
    r.facts.dead = 10;
    assert_int_equal(look(&r, T0 + 1), 2); /* "many", "old" */
    keep(&r, false);
    r.facts.dead = 0;
    r.facts.oldest_ms = 0;
    r.facts.n_dests = 0;
    assert_int_equal(look(&r, T0 + 2), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(r.board.tells[i].kind, HK_NOTICE_RESOLVED);
    hk_alert_board_fini(&r.board);
}

/* Counts are not known in this look: what fires goes on, and nothing is told. */
static void a_rule_whose_figures_are_not_known_waits(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_rule rule = {.name = "many", .kind = HK_ALERT_DEAD_LETTERS_ABOVE, .above = 10};
    set_up(&r, &rule, 1);
    r.facts.dead = 10;
    assert_int_equal(look(&r, T0), 1);
    keep(&r, false);
    r.facts.dead = 0;
    r.facts.figures = false;
    assert_int_equal(look(&r, T0 + MIN), 0);
    assert_int_equal(r.board.alerts[0].status, HK_ALERT_FIRING);
    keep(&r, false);
    r.facts.figures = true;
    look(&r, T0 + 2 * MIN);
    assert_int_equal(told(&r), 'R');
    hk_alert_board_fini(&r.board);
}

static void deaths_within_the_window_add_up_and_are_forgotten(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_rule rule = {
        .name = "rising", .kind = HK_ALERT_DEAD_LETTERS_RISING, .above = 10, .age_ms = 10 * MIN};
    const struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .n = 4};
    set_up(&r, &rule, 1);
    deaths(&r, &d, 1, false, T0);
    deaths(&r, &d, 1, false, T0 + 4 * MIN);
    assert_int_equal(told(&r), '-');
    deaths(&r, &d, 1, false, T0 + 8 * MIN);
    assert_int_equal(told(&r), 'F');
    assert_int_equal((int)r.board.alerts[0].value, 12);
    deaths(&r, NULL, 0, false, T0 + 16 * MIN);
    assert_int_equal(told(&r), 'R');
    for (int i = 0; i < 20; i++) { /* one now and then is no rise */
        deaths(&r, &d, 1, false, T0 + (60 + i * 10) * MIN);
        assert_int_equal(told(&r), '-');
    }
    hk_alert_board_fini(&r.board);
}

static void standing_still_is_not_the_same_as_being_idle(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_rule rule = {.name = "still", .kind = HK_ALERT_NO_PROGRESS, .age_ms = 5 * MIN};
    set_up(&r, &rule, 1);
    r.facts.progress = 17;
    for (int i = 0; i < 10; i++, keep(&r, false)) /* nothing is due */
        assert_int_equal(look(&r, T0 + i * MIN), 0);
    r.facts.oldest_free_ms = T0 + 10 * MIN;
    for (int i = 10; i < 15; i++, keep(&r, false))
        assert_int_equal(look(&r, T0 + i * MIN), 0);
    assert_int_equal(look(&r, T0 + 15 * MIN), 1);
    keep(&r, false);
    r.facts.progress = 18;
    look(&r, T0 + 16 * MIN);
    assert_int_equal(told(&r), 'R');
    keep(&r, false);
    for (int i = 17; i < 40; i++, keep(&r, false)) { /* slow, but it goes */
        r.facts.progress++;
        assert_int_equal(look(&r, T0 + i * MIN), 0);
    }
    hk_alert_board_fini(&r.board);
}

/* A transaction that was open for long, or rows with old times: nobody could have sent them before. */
static void what_was_due_before_anybody_could_see_it_is_no_standstill_yet(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_rule rule = {.name = "still", .kind = HK_ALERT_NO_PROGRESS, .age_ms = 5 * MIN};
    set_up(&r, &rule, 1);
    for (int i = 0; i < 10; i++, keep(&r, false)) /* nothing is due */
        assert_int_equal(look(&r, T0 + i * MIN), 0);
    r.facts.oldest_free_ms = T0;
    for (int i = 10; i < 14; i++, keep(&r, false))
        assert_int_equal(look(&r, T0 + i * MIN), 0);
    assert_int_equal(look(&r, T0 + 14 * MIN), 1);
    hk_alert_board_fini(&r.board);
}

static int64_t lag_of(int kind, int i)
{
    int64_t once = i < 30 ? 2 * MIN : 12 * MIN;
    int64_t hardly = 5 * MIN + i * MIN / 10;
    return kind == 0 ? 5 * MIN + i % 2 : kind == 1 ? (i + 1) * MIN / 2 : kind == 2 ? once : hardly;
}

/* It stays, it grows, it has grown once, it grows by less than a fifth of the window in all of it. */
static void a_lag_that_grows_is_told_and_one_that_stays_is_not(void **state)
{
    (void)state;
    const struct hk_alert_rule rule = {.name = "lag", .kind = HK_ALERT_LAG_GROWING, .age_ms = 10 * MIN};
    for (int kind = 0; kind < 4; kind++) {
        struct rig r;
        unsigned n = 0;
        bool grows = kind == 1;
        set_up(&r, &rule, 1);
        for (int i = 0; i < 60; i++, keep(&r, false)) {
            int64_t now = T0 + i * MIN;
            r.facts.oldest_due_ms = now - lag_of(kind, i);
            n += (unsigned)look(&r, now);
        }
        assert_int_equal(n, grows);
        r.facts.oldest_due_ms = 0;
        look(&r, T0 + 60 * MIN);
        assert_int_equal(told(&r), grows ? 'R' : '-');
        hk_alert_board_fini(&r.board);
    }
}

/* ---- silence ---- */

static void quiet_hours_pass_midnight_in_their_own_zone(void **state)
{
    (void)state;

    static const struct {
        unsigned from, to;
        int zone;
        unsigned at; /* minute of the day, UTC */
        bool silent;
    } cases[] = {
        {22 * 60, 7 * 60, 0, 22 * 60, true},    {22 * 60, 7 * 60, 0, 22 * 60 - 1, false},
        {22 * 60, 7 * 60, 0, 0, true},          {22 * 60, 7 * 60, 0, 7 * 60 - 1, true},
        {22 * 60, 7 * 60, 0, 7 * 60, false},    {22 * 60, 7 * 60, 540, 13 * 60, true},
        {22 * 60, 7 * 60, 540, 12 * 60, false}, {22 * 60, 7 * 60, 540, 21 * 60 + 59, true},
        {22 * 60, 7 * 60, 540, 22 * 60, false}, {9 * 60, 17 * 60, 0, 12 * 60, true},
        {9 * 60, 17 * 60, 0, 8 * 60, false},    {9 * 60, 9 * 60, 0, 9 * 60, false},
        {22 * 60, 7 * 60, -300, 3 * 60, true},  {22 * 60, 7 * 60, -300, 2 * 60, false},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_alert_settings s = {.quiet = {.on = true,
                                                      .from_min = cases[i].from,
                                                      .to_min = cases[i].to,
                                                      .zone_min = cases[i].zone,
                                                      .let_through = HK_ALERT_CRITICAL}};
        int64_t at = T0 + cases[i].at * MIN;
        NOTE_IF(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, at) != cases[i].silent, "case %zu\n", i);
        assert_int_equal(hk_alert_is_silent(&s, S("r"), HK_ALERT_WARNING, at), cases[i].silent);
        assert_false(hk_alert_is_silent(&s, S("r"), HK_ALERT_CRITICAL, at));
    }
}

static void a_mute_is_for_its_rule_and_has_an_end(void **state)
{
    (void)state;
    const struct hk_alert_mute mute = {S("a"), T0};
    const struct hk_alert_settings s = {.mutes = &mute, .n_mutes = 1};
    assert_true(hk_alert_is_silent(&s, S("a"), HK_ALERT_CRITICAL, T0 - 1));
    assert_false(hk_alert_is_silent(&s, S("a"), HK_ALERT_CRITICAL, T0));
    assert_false(hk_alert_is_silent(&s, S("b"), HK_ALERT_INFO, T0 - 1));
}

static void an_alert_of_a_rule_that_is_gone_is_over_without_a_word(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_deaths d = {.destination = S("a"), .reason = S("X"), .n = 4};
    set_up(&r, &died, 1);
    deaths(&r, &d, 1, true, T0);
    r.n_rules = 0;
    deaths(&r, &d, 1, true, T0 + 1);
    assert_int_equal(r.board.n_tells, 0);
    assert_int_equal(r.board.alerts[0].status, HK_ALERT_FIRING); /* it may be another relay's */
    deaths(&r, &d, 1, true, T0 + 1 + 10 * MIN);
    assert_int_equal(r.board.n_tells, 0);
    assert_int_equal(r.board.alerts[0].status, HK_ALERT_RESOLVED);
    assert_true(r.board.alerts[0].changed);
    hk_alert_board_fini(&r.board);
}

static void relays_that_know_different_rules_do_not_tell_the_same_again_and_again(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_dest dest = {.name = S("billing"), .broken = true};
    struct hk_alert_rule theirs = broken;
    theirs.name = "theirs";
    set_up(&r, &broken, 1);
    r.facts.dests = &dest;
    r.facts.n_dests = 1;
    size_t n = 0;
    for (int64_t turn = 0; turn < 200; turn++) {
        r.rules = turn % 2 ? &theirs : &broken;
        n += look(&r, T0 + turn * (MIN / 6)); /* half an hour */
        keep(&r, false);
    }
    assert_int_equal(n, 2); /* each rule once */
    hk_alert_board_fini(&r.board);
}

static void a_clock_that_goes_back_delays_nothing_for_longer_than_the_rule_says(void **state)
{
    (void)state;
    const int64_t year = INT64_C(365) * 24 * 60 * MIN;
    struct rig r;
    struct hk_alert_dest dest = {.name = S("billing"), .broken = true};
    struct hk_alert_rule rule = broken;
    rule.for_ms = 5 * (uint64_t)MIN;
    set_up(&r, &rule, 1);
    r.settings.resolve_after_ms = 2 * (uint64_t)MIN;
    r.facts.dests = &dest;
    r.facts.n_dests = 1;

    const struct {
        int64_t at_ms;
        bool broken;
        size_t told;
    } steps[] = {
        {T0 + year, true, 0},     {T0, true, 0},
        {T0 + 5 * MIN, true, 1},  {T0 + 6 * MIN + year, false, 0},
        {T0 + 7 * MIN, false, 0}, {T0 + 9 * MIN, false, 1},
    };

    for (size_t i = 0; i < COUNT(steps); i++) {
        dest.broken = steps[i].broken;
        NOTE_IF(look(&r, steps[i].at_ms) != steps[i].told, "step %zu\n", i);
        assert_int_equal(r.board.n_tells, steps[i].told);
        keep(&r, false);
    }
    hk_alert_board_fini(&r.board);
}

static void a_standstill_is_seen_though_the_clock_went_back(void **state)
{
    (void)state;
    struct rig r;
    const struct hk_alert_rule rule = {
        .name = "still", .kind = HK_ALERT_NO_PROGRESS, .age_ms = 5 * (uint64_t)MIN};
    set_up(&r, &rule, 1);
    r.facts.progress = 7;
    r.facts.oldest_free_ms = T0 - 60 * MIN;
    assert_int_equal(look(&r, T0 + 365 * 24 * 60 * MIN), 0);
    keep(&r, false);
    assert_int_equal(look(&r, T0), 0);
    keep(&r, false);
    assert_int_equal(look(&r, T0 + 5 * MIN), 1);
    hk_alert_board_fini(&r.board);
}

/* ---- whatever happens ---- */

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525u + 1013904223u;
    return (*seed >> 8) % below;
}

/* Told firing and resolved take turns; one that fires and may be told is told, and again within the update's time. */
static void any_story_has_no_second_beginning_and_no_silence(void **state)
{
    (void)state;
    const struct hk_alert_mute mute = {S("broken"), INT64_MAX};
    for (uint32_t seed = 1; seed <= 2000; seed++) {
        uint32_t s = seed;
        struct rig r;
        struct hk_alert_rule rule = broken;
        rule.for_ms = draw(&s, 4) * (uint64_t)MIN;
        set_up(&r, &rule, 1);
        r.settings.update_ms = (1 + draw(&s, 5)) * (uint64_t)MIN;
        r.settings.resolve_after_ms = draw(&s, 3) * (uint64_t)MIN;
        r.settings.mutes = &mute;
        bool fires = false, holds = false;
        int64_t last_ms = 0, held_since = 0, heard_since = T0;
        for (int t = 0; t < 60; t++) {
            int64_t now = T0 + t * MIN;
            bool was = holds;
            holds = draw(&s, 4) ? holds : !holds;
            held_since = holds && !was ? now : held_since;
            if (draw(&s, 6) == 0)
                r.settings.n_mutes = !r.settings.n_mutes;
            heard_since = r.settings.n_mutes ? now + MIN : heard_since;
            const struct hk_alert_dest dest = {.name = S("a"), .broken = holds};
            r.facts.dests = &dest;
            r.facts.n_dests = 1;
            look(&r, now);
            char c = told(&r);
            assert_false(c == '!');
            assert_false(r.settings.n_mutes && c != '-');
            assert_false(c == 'F' && fires);
            assert_false((c == 'R' || c == 'U') && !fires);
            fires = c == 'F' || (fires && c != 'R');
            last_ms = c != '-' ? now : last_ms;
            if (holds && !r.settings.n_mutes && now - held_since >= (int64_t)rule.for_ms) {
                assert_true(fires);
                if (now - heard_since >= (int64_t)r.settings.update_ms)
                    assert_true(now - last_ms < (int64_t)r.settings.update_ms || c != '-');
            }
            keep(&r, false);
        }
        r.facts.n_dests = 0;
        r.settings.n_mutes = 0;
        for (int t = 60; t < 66; t++, keep(&r, false))
            if (look(&r, T0 + t * MIN))
                fires = false;
        assert_false(fires);
        hk_alert_board_fini(&r.board);
    }
}

static enum hk_code evaluate(const struct hk_alert_deaths *items, size_t n)
{
    const struct hk_alert_settings settings = {.update_ms = 1, .separate = STORM};
    const struct hk_alert_facts facts = {.now_ms = T0, .deaths = items, .n_deaths = n};
    struct hk_alert_board board;
    hk_alert_board_init(&board);
    enum hk_code rc = hk_alert_evaluate(&board, &died, 1, &settings, &facts);
    hk_alert_board_fini(&board);
    return rc;
}

static enum hk_code evaluate_one(void)
{
    return evaluate(reasons(1), 1);
}

static enum hk_code evaluate_many(void)
{
    return evaluate(reasons(100), 100);
}

static void out_of_memory_is_said(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(evaluate_one, HK_OK), 4);
    assert_in_range(fail_each_allocation(evaluate_many, HK_OK), 5, 100); /* three grow */
}

static void notices_are_tried_again_for_about_a_day_and_then_given_up(void **state)
{
    (void)state;
    const struct hk_notice_retry *retry = &hk_notice_retry_default;
    uint64_t sum = 0, wait = 0;
    uint32_t n = 1;
    for (; (wait = hk_notice_wait_ms(retry, n, 0)) != UINT64_MAX; n++) {
        assert_true(wait <= retry->cap_ms && wait >= retry->first_ms);
        sum += wait;
    }
    assert_int_equal(n, retry->max_attempts);
    assert_true(sum > UINT64_C(12) * 3600000 && sum < UINT64_C(48) * 3600000);
    assert_int_equal(hk_notice_wait_ms(retry, 1, 60000), 60000);
    assert_int_equal(hk_notice_wait_ms(retry, 1, UINT64_MAX), retry->cap_ms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stories_are_told_as_they_should),
        cmocka_unit_test(ten_thousand_of_one_cause_are_one_alert_with_a_count),
        cmocka_unit_test(causes_are_told_apart_and_event_types_are_not),
        cmocka_unit_test(only_what_the_rule_means),
        cmocka_unit_test(too_many_groups_are_one_alert_together),
        cmocka_unit_test(how_many_are_told_of_one_by_one_can_be_chosen),
        cmocka_unit_test(a_storm_that_ends_slowly_is_not_told_one_by_one),
        cmocka_unit_test(how_many_others_there_are_is_written_when_it_grows),
        cmocka_unit_test(reasons_of_one_destination_are_not_mixed_up),
        cmocka_unit_test(letters_of_too_many_destinations_are_added_up),
        cmocka_unit_test(a_storm_of_old_acquaintances_is_a_storm),
        cmocka_unit_test(counts_and_ages_are_compared),
        cmocka_unit_test(a_rule_whose_figures_are_not_known_waits),
        cmocka_unit_test(deaths_within_the_window_add_up_and_are_forgotten),
        cmocka_unit_test(standing_still_is_not_the_same_as_being_idle),
        cmocka_unit_test(what_was_due_before_anybody_could_see_it_is_no_standstill_yet),
        cmocka_unit_test(a_lag_that_grows_is_told_and_one_that_stays_is_not),
        cmocka_unit_test(quiet_hours_pass_midnight_in_their_own_zone),
        cmocka_unit_test(a_mute_is_for_its_rule_and_has_an_end),
        cmocka_unit_test(an_alert_of_a_rule_that_is_gone_is_over_without_a_word),
        cmocka_unit_test(relays_that_know_different_rules_do_not_tell_the_same_again_and_again),
        cmocka_unit_test(a_clock_that_goes_back_delays_nothing_for_longer_than_the_rule_says),
        cmocka_unit_test(a_standstill_is_seen_though_the_clock_went_back),
        cmocka_unit_test(any_story_has_no_second_beginning_and_no_silence),
        cmocka_unit_test(out_of_memory_is_said),
        cmocka_unit_test(notices_are_tried_again_for_about_a_day_and_then_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
