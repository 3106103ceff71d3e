/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts: every death is seen once, one relay decides, notices are told at least once and in order, mutes are audited. */
#include "alerts_suite.h"
#include "base/str.h"
#include "letters_suite_impl.h"

const struct hk_store_alerts_ops *alerts_ops;

#define INTERVAL 10000

/* ---- what the suite is made of ---- */

static const struct hk_alerts_looked *look(struct hk_admin *admin)
{
    const struct hk_alerts_looked *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = alerts_ops->look(admin, INTERVAL, &out, &err);
    NOTE_IF(rc != HK_OK, "look: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

const struct hk_alerts_looked *alerts_look(struct hk_admin *admin)
{
    const struct hk_alerts_looked *out = look(admin);
    assert_true(out->due);
    return out;
}

static void decide(struct hk_admin *admin, const struct hk_alerts_decided *d, enum hk_code expected)
{
    struct hk_err err = {0};
    enum hk_code rc = alerts_ops->decide(admin, d, &err);
    NOTE_IF(rc != expected, "decide: %s\n", err.message);
    assert_int_equal(rc, expected);
}

void alerts_decide(struct hk_admin *admin, const struct hk_alerts_looked *looked)
{
    decide(admin, &(struct hk_alerts_decided){.looked = looked, .relay = "r1", .keep_ms = UINT64_MAX}, HK_OK);
}

/* After an interval: what died since the last one. */
static const struct hk_alerts_looked *next(struct hk_admin *admin)
{
    suite_clock_ms += INTERVAL;
    const struct hk_alerts_looked *looked = alerts_look(admin);
    alerts_decide(admin, looked);
    return looked;
}

static uint64_t deaths(const struct hk_alerts_looked *looked)
{
    uint64_t n = 0;
    for (size_t i = 0; i < looked->n_deaths; i++)
        n += looked->deaths[i].n;
    return n;
}

static struct hk_alert alert_of(const char *rule, const char *destination, const char *reason)
{
    struct hk_alert a = {.rule = hk_str_of(rule),
                         .kind = HK_ALERT_DEAD_LETTER,
                         .severity = HK_ALERT_CRITICAL,
                         .status = HK_ALERT_FIRING,
                         .destination = hk_str_of(destination),
                         .reason = hk_str_of(reason),
                         .changed = true};
    hk_alert_fingerprint(a.rule, a.destination, a.reason, a.fingerprint);
    return a;
}

static void put_alert(struct hk_admin *admin, const struct hk_alert *a)
{
    suite_clock_ms += INTERVAL;
    decide(
        admin,
        &(struct hk_alerts_decided){
            .looked = alerts_look(admin), .relay = "r1", .alerts = a, .n_alerts = 1, .keep_ms = UINT64_MAX},
        HK_OK);
}

static void put_notice(struct hk_admin *admin, const char *fingerprint, const char *channel,
                       enum hk_notice_kind kind)
{
    const struct hk_alerts_notice n = {.fingerprint = fingerprint,
                                       .rule = "died",
                                       .channel = channel,
                                       .kind = kind,
                                       .facts = hk_str_of("{\"a\":\"飛\"}")};
    suite_clock_ms += INTERVAL;
    decide(admin,
           &(struct hk_alerts_decided){.looked = alerts_look(admin),
                                       .relay = "r1",
                                       .notices = &n,
                                       .n_notices = 1,
                                       .keep_ms = UINT64_MAX},
           HK_OK);
}

static const struct hk_alerts_claims *claim(struct hk_admin *admin)
{
    static const char *const channels[] = {"slack", "mail"};
    const struct hk_alerts_claims *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = alerts_ops->claim(admin, "r1", channels, 2, 30000, &out, &err);
    NOTE_IF(rc != HK_OK, "claim: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static void settle(struct hk_admin *admin, int64_t id, uint32_t attempts, enum hk_notice_outcome outcome)
{
    struct hk_err err = {0};
    const struct hk_alerts_settle s = {
        .id = id, .attempts = attempts, .outcome = outcome, .wait_ms = 60000, .error = hk_str_of("no route")};
    enum hk_code rc = alerts_ops->settle(admin, &s, &err);
    NOTE_IF(rc != HK_OK, "settle: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
}

static const struct hk_alerts_list *list(struct hk_admin *admin)
{
    const struct hk_alerts_list *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = alerts_ops->list(admin, &out, &err);
    NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

/* ---- deaths ---- */

static void every_death_is_seen_once(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    assert_int_equal(alerts_look(admin)->n_deaths, 0);
    letters_fill(store, lane, 3, NULL);
    suite_clock_ms += INTERVAL;
    assert_int_equal(deaths(alerts_look(admin)), 3); /* nothing was decided: it is seen again */
    const struct hk_alerts_looked *looked = alerts_look(admin);
    assert_int_equal(looked->n_deaths, 1);
    assert_text(looked->deaths[0].destination, "a");
    assert_text(looked->deaths[0].event_type, "Made");
    assert_int_equal(looked->deaths[0].n, 3);
    assert_int_equal(looked->deaths[0].again, 0);
    assert_int_equal(looked->deaths[0].letter_id, 3);
    assert_text(looked->deaths[0].message_id, "m3");
    assert_false(looked->more);
    alerts_decide(admin, looked);
    assert_int_equal(next(admin)->n_deaths, 0);
    letters_fill(store, lane, 2, NULL);
    assert_int_equal(deaths(next(admin)), 2);
    assert_int_equal(next(admin)->n_deaths, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_was_settled_by_then_is_no_news(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 3, NULL);
    letters_act(letters_ops->discard, admin, 1);
    letters_act(letters_ops->resolve, admin, 2);
    assert_int_equal(deaths(next(admin)), 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void dying_again_counts_again_and_says_so(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 2, NULL);
    assert_int_equal(deaths(next(admin)), 2);
    suite_clock_ms += 1000;
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    const struct hk_alerts_looked *looked = next(admin);
    assert_int_equal(looked->n_deaths, 1);
    assert_int_equal(looked->deaths[0].n, 1);
    assert_int_equal(looked->deaths[0].again, 1);
    assert_int_equal(looked->deaths[0].second, 1);
    assert_int_equal(looked->deaths[0].letter_id, 1);
    assert_int_equal(next(admin)->n_deaths, 0);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD); /* the third time */
    looked = next(admin);
    assert_int_equal(looked->deaths[0].again, 1);
    assert_int_equal(looked->deaths[0].second, 0);
    suite_close(store);
    admin_ops->close(admin);
}

/* What died, was requeued and died again before anybody looked: the look says which of both are the same letters. */
static void a_new_letter_that_died_again_is_known(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 3, NULL);
    suite_clock_ms += 1000;
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    const struct hk_alerts_looked *looked = next(admin);
    uint64_t again = 0, known = 0;
    for (size_t i = 0; i < looked->n_deaths; i++) {
        again += looked->deaths[i].again;
        known += looked->deaths[i].known;
    }
    assert_int_equal(deaths(looked), 4);
    assert_int_equal(again, 1);
    assert_int_equal(known, 1);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    suite_clock_ms += 1000;
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    looked = next(admin);
    assert_int_equal(looked->n_deaths, 1);
    assert_int_equal(looked->deaths[0].known, 0); /* the last look had it */
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- who decides ---- */

static void one_relay_evaluates_within_an_interval(void **state)
{
    (void)state;
    struct hk_admin *a = admin_open(), *b = admin_open();
    const struct hk_alerts_looked *first = alerts_look(a), *second = alerts_look(b);
    const struct hk_alerts_notice n = {.fingerprint = "f",
                                       .rule = "r",
                                       .channel = "slack",
                                       .kind = HK_NOTICE_FIRING,
                                       .facts = hk_str_of("{}")};
    struct hk_alert alert = alert_of("r", "x", "Y");
    const struct hk_alerts_decided d1 = {.looked = first,
                                         .relay = "a",
                                         .alerts = &alert,
                                         .n_alerts = 1,
                                         .notices = &n,
                                         .n_notices = 1,
                                         .keep_ms = UINT64_MAX},
                                   d2 = {.looked = second,
                                         .relay = "b",
                                         .alerts = &alert,
                                         .n_alerts = 1,
                                         .notices = &n,
                                         .n_notices = 1,
                                         .keep_ms = UINT64_MAX};
    decide(a, &d1, HK_OK);
    decide(b, &d2, HK_BUSY);
    assert_rows("outbox_notice", 1);
    assert_rows("outbox_alert", 1);
    assert_int_equal(look(b)->due, false);
    suite_clock_ms += INTERVAL;
    alerts_decide(b, alerts_look(b));
    assert_true(list(a)->evaluated_ms == suite_clock_ms);
    assert_text(list(a)->relay, "r1");
    admin_ops->close(a);
    admin_ops->close(b);
}

static void an_alert_comes_back_as_it_was_written(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_alert a = alert_of("old", "", "");
    a.kind = HK_ALERT_OLDEST_AGE;
    a.event_type = hk_str_of("Order飛脚");
    a.example_id = hk_str_of("m'1");
    a.detail = hk_str_of("line\nline");
    a.episode = 3;
    a.count = UINT64_C(5000000000);
    a.since_ms = 11;
    a.fired_ms = 12;
    a.resolved_ms = 13;
    a.gone_ms = 14;
    a.told_ms = 15;
    a.told = true;
    a.owed = true;
    a.value = 12.5;
    a.threshold = 900;
    a.letter_id = 77;
    a.series_ms = 16;
    for (int i = 0; i < HK_ALERT_SERIES; i++)
        a.series[i] = INT64_MIN / (i + 1);
    a.told_figure = UINT64_C(4000000000);
    put_alert(admin, &a);
    const struct hk_alerts_looked *looked = next(admin);
    assert_int_equal(looked->n_alerts, 1);
    const struct hk_alert *b = &looked->alerts[0];
    assert_int_equal(b->told_figure, a.told_figure);
    assert_string_equal(b->fingerprint, a.fingerprint);
    assert_true(hk_str_eq(b->rule, a.rule) && hk_str_eq(b->destination, a.destination));
    assert_true(hk_str_eq(b->event_type, a.event_type) && hk_str_eq(b->example_id, a.example_id));
    assert_true(hk_str_eq(b->detail, a.detail) && hk_str_eq(b->reason, a.reason));
    assert_true(b->kind == a.kind && b->severity == a.severity && b->status == a.status);
    assert_true(b->episode == 3 && b->count == a.count && b->since_ms == 11 && b->fired_ms == 12);
    assert_true(b->resolved_ms == 13 && b->gone_ms == 14 && b->told_ms == 15 && b->told && b->owed);
    assert_true(b->value > 12.4 && b->value < 12.6 && b->threshold > 899 && b->letter_id == 77 &&
                b->series_ms == 16);
    assert_memory_equal(b->series, a.series, sizeof a.series);
    a.gone = true;
    put_alert(admin, &a);
    assert_rows("outbox_alert", 0);
    admin_ops->close(admin);
}

static void an_alert_is_open_as_long_as_one_of_its_letters_is(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 3, NULL);
    const struct hk_alerts_looked *looked = next(admin);
    char reason[64];
    assert_true(hk_str_copy(reason, sizeof reason, looked->deaths[0].reason));
    struct hk_alert a = alert_of("died", "a", reason);
    a.letter_id = 3;
    put_alert(admin, &a);
    assert_true(next(admin)->alerts[0].open);
    letters_act(letters_ops->discard, admin, 3);
    looked = next(admin);
    assert_true(looked->alerts[0].open && looked->alerts[0].changed);
    assert_int_equal(looked->alerts[0].letter_id, 1);
    letters_act(letters_ops->discard, admin, 1);
    letters_requeue(admin, 2, HK_REQUEUE_AUTO); /* on its way is not settled */
    looked = next(admin);
    assert_true(looked->alerts[0].open);
    assert_int_equal(looked->alerts[0].letter_id, 2);
    letters_try_again(store, lane, letters_retry_of(2), HK_SETTLE_SENT);
    looked = next(admin);
    assert_false(looked->alerts[0].open);
    assert_int_equal(looked->alerts[0].letter_id, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void letters_of_another_cause_do_not_keep_it_open(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 2, NULL);
    struct hk_alert a = alert_of("died", "b", "OTHER"), all = alert_of("died", "", "");
    a.letter_id = all.letter_id = 1;
    put_alert(admin, &a);
    put_alert(admin, &all);
    const struct hk_alerts_looked *looked = next(admin);
    assert_int_equal(looked->n_alerts, 2);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(looked->alerts[i].open, looked->alerts[i].destination.len == 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void pauses_breakers_and_progress_are_seen(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    bool changed = false;
    int64_t lane = suite_acquire(store);
    int64_t before = next(admin)->progress;
    assert_int_equal(next(admin)->progress, before);
    assert_int_equal(next(admin)->n_dests, 0);
    assert_int_equal(admin_ops->pause(admin, "p", true, "ann", "moving", &changed, &err), HK_OK);
    suite_circuit(store, lane, suite_clock_ms + 60000);
    const struct hk_alerts_looked *looked = next(admin);
    assert_int_equal(looked->n_dests, 2);
    assert_text(looked->dests[0].name, "a");
    assert_true(looked->dests[0].broken && !looked->dests[0].paused);
    assert_text(looked->dests[1].name, "p");
    assert_true(!looked->dests[1].broken && looked->dests[1].paused);
    assert_text(looked->dests[1].detail, "ann: moving");
    suite_circuit(store, lane, 0);
    assert_int_equal(next(admin)->n_dests, 1);
    letters_fill(store, lane, 1, NULL);
    assert_int_not_equal(next(admin)->progress, before);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- who waits ---- */

#define OLD_TEXT "2027-01-15T07:00:00Z"
#define OLD_MS   INT64_C(1799996400000)

/* By route without an event type that counts: the first of the destination. */
static struct hk_waiting_row waiting(struct hk_admin *admin, const char *destination, const char *event_type,
                                     bool skip_dead)
{
    const struct hk_waiting *out = NULL;
    struct hk_err err = {0};
    const struct hk_blocking ordered[] = {{.destination = "none"},
                                          {.destination = "a", .skip_dead = skip_dead}};
    struct hk_waiting_row row = {.oldest_ms = -1};
    enum hk_code rc = admin_ops->waiting(admin, ordered, 2, &out, &err);
    NOTE_IF(rc != HK_OK, "waiting: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(out->now_ms, suite_clock_ms);
    for (size_t i = 0; i < out->n; i++)
        if (hk_str_eq(out->items[i].destination, hk_str_of(destination)) &&
            hk_str_eq(out->items[i].event_type, hk_str_of(event_type)))
            row = out->items[i];
    return row;
}

static void insert_old(const char *id, const char *destination, const char *event_type, const char *key)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (message_id, destination, event_type, message_key, created_at) "
             "VALUES ('%s', %s, '%s', %s, '" OLD_TEXT "')",
             id, destination, event_type, key);
    store_kind->sql(sql);
}

static void who_waits_is_known_by_destination_and_by_event_type(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    assert_int_equal(waiting(admin, "a", "", false).oldest_ms, -1);
    insert_old("m1", "'a'", "Made", "NULL");
    insert_old("m2", "''", "Paid", "NULL");
    insert_old("m3", "NULL", "Sent", "NULL"); /* as ORMs write it */
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, not_before, created_at) VALUES "
                    "('m4', 'later', 'Made', '2028-01-01T00:00:00Z', '" OLD_TEXT "')");
    assert_int_equal(waiting(admin, "a", "", false).due_ms, OLD_MS);
    assert_int_equal(waiting(admin, "", "Paid", false).due_ms, OLD_MS);
    assert_int_equal(waiting(admin, "", "Sent", false).due_ms, OLD_MS);
    assert_int_equal(waiting(admin, "later", "", false).oldest_ms, OLD_MS);
    assert_int_equal(waiting(admin, "later", "", false).due_ms, 0);
    int64_t lane = suite_acquire(store);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1); /* in flight */
    assert_int_equal(waiting(admin, "a", "", false).due_ms, 0);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    store_kind->sql("UPDATE outbox_retry SET due_ms = 4000000000000");
    assert_int_equal(waiting(admin, "a", "", false).due_ms, 0);
    store_kind->sql("UPDATE outbox_retry SET due_ms = 1799990000000");
    assert_int_equal(waiting(admin, "a", "", false).due_ms, INT64_C(1799990000000));
    suite_close(store);
    admin_ops->close(admin);
}

/* What a head of its key holds is not due; where no order is kept nothing holds it. */
static void what_its_key_holds_could_not_have_gone(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    insert_old("m1", "'a'", "Made", "'k'");
    insert_old("m2", "'a'", "Made", "'k'");
    insert_old("m3", "'b'", "Made", "'k'");
    int64_t lane = suite_acquire(store);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    store_kind->sql("UPDATE outbox_retry SET due_ms = 4000000000000");
    struct hk_waiting_row row = waiting(admin, "a", "", false);
    assert_true(row.due_ms == 0 && row.behind);
    row = waiting(admin, "b", "", false);
    assert_true(row.due_ms == OLD_MS && !row.behind);
    store_kind->sql("UPDATE outbox_retry SET due_ms = 1799990000000"); /* the head itself may go */
    row = waiting(admin, "a", "", false);
    assert_true(row.due_ms == INT64_C(1799990000000) && row.behind);
    s = suite_settle(
        suite_claim(store, lane, HK_FROM_RETRY, suite_number("SELECT min(id) FROM outbox_retry")),
        HK_FROM_RETRY, suite_number("SELECT min(id) FROM outbox_retry"), HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    row = waiting(admin, "a", "", false);
    assert_true(row.due_ms == 0 && row.behind);
    row = waiting(admin, "a", "", true); /* dead letters do not block there */
    assert_true(row.due_ms == OLD_MS && !row.behind);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- notices ---- */

static void a_notice_is_claimed_once_and_again_when_nobody_settled_it(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    put_notice(admin, "f1", "slack", HK_NOTICE_FIRING);
    put_notice(admin, "f1", "mail", HK_NOTICE_FIRING);
    put_notice(admin, "f1", "elsewhere", HK_NOTICE_FIRING);
    const struct hk_alerts_claims *c = claim(admin);
    assert_int_equal(c->n, 2);
    assert_text(c->items[0].facts, "{\"a\":\"飛\"}");
    assert_text(c->items[0].fingerprint, "f1");
    assert_text(c->items[0].rule, "died");
    assert_int_equal(c->items[0].kind, HK_NOTICE_FIRING);
    assert_int_equal(c->items[0].attempts, 1);
    int64_t slack = c->items[hk_str_eq(c->items[0].channel, hk_str_of("slack")) ? 0 : 1].id;
    int64_t mail = slack == c->items[0].id ? c->items[1].id : c->items[0].id;
    assert_int_equal(claim(admin)->n, 0);
    settle(admin, slack, 1, HK_NOTICE_SENT);
    suite_clock_ms += 29999;
    assert_int_equal(claim(admin)->n, 0);
    suite_clock_ms += 1; /* its relay is dead */
    c = claim(admin);
    assert_int_equal(c->n, 1);
    assert_int_equal(c->items[0].id, mail);
    assert_int_equal(c->items[0].attempts, 2);
    settle(admin, mail, 1, HK_NOTICE_GIVEN_UP); /* too late: it is another's by now */
    assert_int_equal(list(admin)->n_notices, 2);
    assert_int_equal(list(admin)->notices[0].given_up_ms, 0);
    settle(admin, mail, 2, HK_NOTICE_SENT);
    suite_clock_ms += 100000;
    assert_int_equal(claim(admin)->n, 0);
    assert_rows("outbox_notice WHERE sent_ms > 0", 2);
    admin_ops->close(admin);
}

static void a_failed_notice_waits_is_given_up_and_is_seen(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    put_notice(admin, "f1", "slack", HK_NOTICE_FIRING);
    int64_t id = claim(admin)->items[0].id;
    settle(admin, id, 1, HK_NOTICE_AGAIN);
    const struct hk_alerts_list *l = list(admin);
    assert_int_equal(l->n_notices, 1);
    assert_text(l->notices[0].last_error, "no route");
    assert_text(l->notices[0].channel, "slack");
    assert_int_equal(l->notices[0].due_ms, suite_clock_ms + 60000);
    assert_int_equal(l->notices[0].given_up_ms, 0);
    suite_clock_ms += 59999;
    assert_int_equal(claim(admin)->n, 0);
    suite_clock_ms += 1;
    assert_int_equal(claim(admin)->n, 1);
    settle(admin, id, 2, HK_NOTICE_GIVEN_UP);
    suite_clock_ms += 3600000;
    assert_int_equal(claim(admin)->n, 0);
    l = list(admin);
    assert_int_equal(l->n_notices, 1);
    assert_int_not_equal(l->notices[0].given_up_ms, 0);
    assert_int_equal(l->notices[0].attempts, 2);
    admin_ops->close(admin);
}

static void a_clock_that_goes_back_holds_no_notice_back(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    put_notice(admin, "f1", "slack", HK_NOTICE_FIRING);
    settle(admin, claim(admin)->items[0].id, 1, HK_NOTICE_AGAIN);
    suite_clock_ms -= INT64_C(365) * 86400000;
    size_t n = claim(admin)->n; /* the store's clock may go on at half its speed */
    suite_clock_ms += 120002;
    assert_int_equal(n ? n : claim(admin)->n, 1);
    admin_ops->close(admin);
}

static void a_channel_hears_of_one_alert_in_order_and_of_others_meanwhile(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    put_notice(admin, "f1", "slack", HK_NOTICE_FIRING);
    put_notice(admin, "f1", "slack", HK_NOTICE_RESOLVED);
    put_notice(admin, "f2", "slack", HK_NOTICE_FIRING);
    const struct hk_alerts_claims *c = claim(admin);
    assert_int_equal(c->n, 1);
    int64_t first = c->items[0].id;
    assert_int_equal(c->items[0].kind, HK_NOTICE_FIRING);
    settle(admin, first, 1, HK_NOTICE_AGAIN);
    c = claim(admin);
    assert_int_equal(c->n, 1);
    assert_text(c->items[0].fingerprint, "f2");
    settle(admin, c->items[0].id, 1, HK_NOTICE_SENT);
    assert_int_equal(claim(admin)->n, 0);
    suite_clock_ms += 60000;
    assert_int_equal(claim(admin)->items[0].id, first);
    settle(admin, first, 2, HK_NOTICE_SENT);
    c = claim(admin);
    assert_int_equal(c->n, 1);
    assert_int_equal(c->items[0].kind, HK_NOTICE_RESOLVED);
    admin_ops->close(admin);
}

static void an_update_replaces_the_one_before_it(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    put_notice(admin, "f1", "slack", HK_NOTICE_UPDATE);
    put_notice(admin, "f1", "mail", HK_NOTICE_UPDATE);
    put_notice(admin, "f1", "slack", HK_NOTICE_UPDATE);
    assert_rows("outbox_notice", 2);
    assert_rows("outbox_notice WHERE channel = 'mail'", 1);
    const struct hk_alerts_claims *c = claim(admin);
    assert_int_equal(c->n, 2);
    int64_t id = c->items[hk_str_eq(c->items[0].channel, hk_str_of("slack")) ? 0 : 1].id;
    put_notice(admin, "f1", "slack",
               HK_NOTICE_UPDATE); /* the one before it is being told: it stays to be settled */
    assert_rows("outbox_notice", 3);
    settle(admin, id, 1, HK_NOTICE_SENT);
    assert_rows("outbox_notice WHERE sent_ms > 0", 1);
    assert_int_equal(claim(admin)->n, 1);
    admin_ops->close(admin);
}

/* ---- mutes, retention ---- */

static void a_mute_has_an_end_and_leaves_a_trail(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    int64_t until = 0;
    bool changed = false;
    assert_int_equal(alerts_ops->mute(admin, "di\"ed", 0, 60000, "ann", "deploy", &until, &err), HK_OK);
    assert_int_equal(until, suite_clock_ms + 60000);
    assert_int_equal(next(admin)->n_mutes, 1);
    assert_text(next(admin)->mutes[0].rule, "di\"ed");
    const struct hk_alerts_list *l = list(admin);
    assert_int_equal(l->n_mutes, 1);
    assert_text(l->mutes[0].actor, "ann");
    assert_text(l->mutes[0].reason, "deploy");
    assert_int_equal(l->mutes[0].until_ms, until);
    assert_int_equal(alerts_ops->mute(admin, "di\"ed", suite_clock_ms + 5000, 0, "bob", "more", &until, &err),
                     HK_OK);
    assert_int_equal(until, suite_clock_ms + 5000);
    assert_int_equal(list(admin)->n_mutes, 1);
    assert_int_equal(alerts_ops->unmute(admin, "di\"ed", "bob", "done", &changed, &err), HK_OK);
    assert_true(changed);
    assert_int_equal(alerts_ops->unmute(admin, "di\"ed", "bob", "done", &changed, &err), HK_OK);
    assert_false(changed);
    assert_int_equal(next(admin)->n_mutes, 0);
    assert_int_equal(letters_verify_audit(admin), 3);
    assert_value("act FROM outbox_audit ORDER BY id LIMIT 1", "mute");
    assert_value("detail FROM outbox_audit ORDER BY id DESC LIMIT 1", "{\"rule\":\"di\\\"ed\"}");
    assert_int_equal(alerts_ops->mute(admin, "x", 0, 1000, "ann", "why", &until, &err), HK_OK);
    assert_int_equal(next(admin)->n_mutes, 0); /* over by then */
    assert_int_equal(list(admin)->n_mutes, 0);
    admin_ops->close(admin);
}

static void what_is_over_goes_with_time_and_what_is_not_stays(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_alert over = alert_of("over", "", ""), firing = alert_of("firing", "", "");
    over.status = HK_ALERT_RESOLVED;
    over.resolved_ms = suite_clock_ms;
    put_alert(admin, &over);
    put_alert(admin, &firing);
    put_notice(admin, "f1", "slack", HK_NOTICE_FIRING);
    suite_clock_ms += 3600000;
    const struct hk_alerts_decided d = {.looked = alerts_look(admin), .relay = "r1", .keep_ms = 7200000};
    decide(admin, &d, HK_OK);
    assert_rows("outbox_alert", 2);
    assert_rows("outbox_notice", 1);
    suite_clock_ms += 7200000;
    const struct hk_alerts_decided e = {.looked = alerts_look(admin), .relay = "r1", .keep_ms = 7200000};
    decide(admin, &e, HK_OK);
    assert_rows("outbox_alert WHERE rule = 'firing'", 1);
    assert_rows("outbox_alert", 1);
    assert_rows("outbox_notice", 0);
    admin_ops->close(admin);
}

size_t alerts_suite_tests(struct CMUnitTest *out, size_t room)
{
    const struct CMUnitTest tests[] = {
        TEST(every_death_is_seen_once),
        TEST(what_was_settled_by_then_is_no_news),
        TEST(dying_again_counts_again_and_says_so),
        TEST(a_new_letter_that_died_again_is_known),
        TEST(one_relay_evaluates_within_an_interval),
        TEST(an_alert_comes_back_as_it_was_written),
        TEST(an_alert_is_open_as_long_as_one_of_its_letters_is),
        TEST(letters_of_another_cause_do_not_keep_it_open),
        TEST(pauses_breakers_and_progress_are_seen),
        TEST(who_waits_is_known_by_destination_and_by_event_type),
        TEST(what_its_key_holds_could_not_have_gone),
        TEST(a_notice_is_claimed_once_and_again_when_nobody_settled_it),
        TEST(a_failed_notice_waits_is_given_up_and_is_seen),
        TEST(a_clock_that_goes_back_holds_no_notice_back),
        TEST(a_channel_hears_of_one_alert_in_order_and_of_others_meanwhile),
        TEST(an_update_replaces_the_one_before_it),
        TEST(a_mute_has_an_end_and_leaves_a_trail),
        TEST(what_is_over_goes_with_time_and_what_is_not_stays),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
