/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that was ahead and is right again: what it left behind is found and mended, and nothing else. */
#include "../unit/failing.h"
#include "admin_suite.h"
#include "base/str.h"

#define DAY_MS   INT64_C(86400000)
#define LEASE_MS UINT64_C(30000)
#define FOR_EVER (UINT64_C(1) << 40)

#define assert_number(sql, n) assert_int_equal(suite_number("SELECT " sql), n)
#define assert_count(sql, n)  assert_number("count(*) FROM " sql, n)

static struct hk_clock_state look(struct hk_admin *admin)
{
    struct hk_clock_state out = {.mended = true};
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->clock(admin, &(struct hk_clock_ask){.actor = "ann"}, &out, &err);
    NOTE_IF(rc != HK_OK, "look: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_false(out.mended);
    return out;
}

static enum hk_code try_reset(struct hk_admin *admin, uint64_t lease_ms, struct hk_clock_state *out)
{
    struct hk_err err = {0};
    const struct hk_clock_ask ask = {.actor = "ann", .reason = "NTP was off", .lease_ms = lease_ms};
    enum hk_code rc = admin_ops->clock(admin, &ask, out, &err);
    NOTE_IF(rc != HK_OK, "reset: %s\n", err.message);
    assert_true(rc == HK_OK || (err.message[0] && err.code == rc));
    return rc;
}

static struct hk_clock_state reset(struct hk_admin *admin)
{
    struct hk_clock_state out = {.mended = false};
    assert_int_equal(try_reset(admin, 0, &out), HK_OK);
    return out;
}

/* As a relay of the version before leaves it: only the lease counts that the reset is told. A handle that has watched the lane
 * would take the change for a sign of life, so there is a new one. */
static struct hk_admin *forget_leases(struct hk_admin *admin)
{
    store_kind->sql("UPDATE outbox_relay SET lease_ms = 0");
    admin_ops->close(admin);
    return admin_open();
}

/* The relay is asleep, and its lock says nothing. */
static struct hk_admin *believe_dead(struct hk_admin *admin)
{
    if (store_kind->host_clock)
        store_kind->sql("UPDATE outbox_relay SET lock = ''");
    return forget_leases(admin);
}

/* Fails message `id` of outbox: its next attempt is due in a second. */
static void fail_once(struct hk_store *store, int64_t lane, int64_t id)
{
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
    s.history.first_attempt_ms = s.attempt.started_ms;
    suite_settle_one(store, lane, &s);
}

/* SQL with the time in it, as often as it says %lld. */
static void sql_at(const char *format, int64_t ms)
{
    char sql[1000];
    long long t = (long long)ms;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(sql, sizeof sql, format, t, t, t, t);
#pragma GCC diagnostic pop
    store_kind->sql(sql);
}

static void a_clock_that_was_never_wrong_is_in_step(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    suite_fill(2, "a", NULL);
    int64_t lane = suite_acquire(store);
    fail_once(store, lane, 1);
    suite_circuit(store, lane, suite_clock_ms + 60000);
    struct hk_clock_state s = look(admin);
    assert_true(hk_clock_in_step(&s));
    assert_int_equal(s.of_server, !store_kind->host_clock);
    assert_int_equal(s.clock_ms, suite_clock_ms);
    s = reset(admin); /* also while a relay runs: nothing is to be done */
    assert_true(hk_clock_in_step(&s) && !s.mended);
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        assert_int_equal(s.rows[i], 0);
    assert_count("outbox_audit", 0);
    assert_number("due_ms FROM outbox_retry", suite_clock_ms + 1000);
    assert_number("open_until_ms FROM outbox_destination", suite_clock_ms + 60000);
    suite_close(store);
    admin_ops->close(admin);
}

/* Message 1 failed at the right time, 2 and 3 in the wrong one; 4 is scheduled, 5 was in the hands of a relay that was killed. Breaker,
 * pause, redrive, notice and mute are of the wrong time; then it is right again, and the relay has stopped. */
static void live_a_wrong_day(void)
{
    struct hk_store *store = suite_open(NULL), *next = suite_open(NULL);
    suite_fill(5, "a", NULL);
    int64_t lane = suite_acquire(store);
    fail_once(store, lane, 1);
    suite_clock_ms += DAY_MS;
    fail_once(store, lane, 2);
    suite_clock_ms += 10000;
    fail_once(store, lane, 3);
    struct hk_settle later =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 4), HK_FROM_OUTBOX, 4, HK_SETTLE_DEFER);
    later.due_ms = suite_clock_ms + 3600000;
    suite_settle_one(store, lane, &later);
    sql_at("UPDATE outbox_retry SET not_before = '2027-01-16T09:00:10Z' WHERE original_outbox_id = 4", 0);
    suite_circuit(store, lane, suite_clock_ms + 60000);
    (void)suite_claim(store, lane, HK_FROM_OUTBOX, 5);
    suite_close(store); /* killed */
    suite_clock_ms += (int64_t)LEASE_MS;
    lane = suite_acquire(next);
    for (int i = 0; i < 40 && suite_number("SELECT count(*) FROM outbox_claim") > 0; i++) {
        const struct hk_poll *poll = NULL; /* where relays share, one takes over bit by bit */
        suite_clock_ms += 500;
        suite_circuit(next, lane, suite_number("SELECT open_until_ms FROM outbox_destination"));
        assert_int_equal(store_kind->ops->poll(next, &poll, NULL), HK_OK);
    }
    assert_count("outbox_retry WHERE crashes = 1", 1);
    assert_int_equal(store_kind->ops->pause(next, "b", true, "bob", "works", NULL), HK_OK);
    sql_at(
        "INSERT INTO outbox_redrive (filter, rate_per_s, ramp_ms, canary, abort_ratio, ids, last_id, total, started_ms, "
        "created_ms, tokens_ms, actor, reason) VALUES ('', 10, 0, 0, 1, 'auto', 0, 0, %lld, %lld, %lld, 'bob', 'r')",
        suite_clock_ms);
    sql_at("INSERT INTO outbox_notice (fingerprint, rule, kind, channel, facts, created_ms, due_ms) "
           "VALUES ('f', 'r', 'firing', 'c', '{}', %lld, %lld + 5000)",
           suite_clock_ms);
    sql_at(
        "INSERT INTO outbox_mute (rule, until_ms, since_ms, actor, reason) VALUES ('r', %lld + 60000, %lld, 'bob', 'r')",
        suite_clock_ms);
    sql_at("UPDATE outbox_alert_look SET evaluated_ms = %lld, again_ms = %lld", suite_clock_ms);
    (void)suite_claim(next, lane, HK_FROM_RETRY,
                      suite_number("SELECT id FROM outbox_retry WHERE original_outbox_id = 3"));
    assert_int_equal(store_kind->ops->release(next, lane, NULL), HK_OK);
    suite_close(next);
}

static void what_was_written_with_a_wrong_time_is_mended(void **state)
{
    (void)state;
    int64_t true_ms = suite_clock_ms;
    live_a_wrong_day();
    int64_t wrong_ms = suite_clock_ms;
    int64_t scheduled_ms = suite_number("SELECT due_ms FROM outbox_retry WHERE original_outbox_id = 4");
    suite_clock_ms = true_ms + 20000; /* 20 s of real time */
    int64_t breaker_left_ms =
        suite_number("SELECT open_until_ms FROM outbox_destination WHERE name = 'a'") - wrong_ms;
    struct hk_admin *admin = admin_open();
    struct hk_clock_state s = look(admin);
    assert_false(hk_clock_in_step(&s));
    assert_int_equal(s.clock_ms, suite_clock_ms);
    assert_in_range(s.mark_ms, wrong_ms - 2000, wrong_ms); /* SQLite writes it down now and then */
    s = reset(admin);
    assert_true(s.mended);
    const uint64_t wanted[HK_NCLOCK_PARTS] = {
        [HK_CLOCK_WAITS] = 2,    [HK_CLOCK_DUE] = 1,     [HK_CLOCK_BREAKERS] = 1, [HK_CLOCK_STATES] = 2,
        [HK_CLOCK_REDRIVES] = 1, [HK_CLOCK_NOTICES] = 1, [HK_CLOCK_MUTES] = 1,    [HK_CLOCK_LOOKS] = 1};
    for (unsigned i = 0; i < HK_NCLOCK_PARTS; i++) {
        NOTE_IF(s.rows[i] != wanted[i], "%s: %llu\n", hk_clock_part_name(i), (unsigned long long)s.rows[i]);
        assert_int_equal(s.rows[i], wanted[i]);
    }
    /* the wait of a second begins now, for the attempt that took 20 ms; what was tried at the right time is as it was */
    assert_number("due_ms FROM outbox_retry WHERE original_outbox_id = 1", true_ms + 1000);
    assert_number("due_ms FROM outbox_retry WHERE original_outbox_id = 2", suite_clock_ms + 1020);
    assert_number("due_ms FROM outbox_retry WHERE original_outbox_id = 3", suite_clock_ms + 1020);
    assert_number("last_attempt_ms FROM outbox_retry WHERE original_outbox_id = 2", suite_clock_ms);
    assert_number("first_attempt_ms FROM outbox_retry WHERE original_outbox_id = 2", suite_clock_ms);
    assert_number("due_ms FROM outbox_retry WHERE original_outbox_id = 4", scheduled_ms);
    assert_number("due_ms FROM outbox_retry WHERE original_outbox_id = 5", suite_clock_ms);
    assert_in_range(suite_number("SELECT open_until_ms FROM outbox_destination WHERE name = 'a'"),
                    suite_clock_ms + (breaker_left_ms > 0 ? breaker_left_ms : 0),
                    suite_clock_ms + (breaker_left_ms > 0 ? breaker_left_ms : 0) + 2000);
    assert_number("since_ms FROM outbox_destination WHERE name = 'b'", suite_clock_ms);
    assert_number("tokens_ms + started_ms FROM outbox_redrive", 2 * suite_clock_ms);
    assert_in_range(suite_number("SELECT due_ms FROM outbox_notice"), suite_clock_ms + 5000,
                    suite_clock_ms + 7000);
    assert_number("until_ms FROM outbox_mute", suite_clock_ms + 60000);
    assert_number("evaluated_ms + again_ms FROM outbox_alert_look", 2 * suite_clock_ms);
    assert_count("outbox_audit WHERE act = 'clock-reset' AND actor = 'ann' AND reason = 'NTP was off' "
                 "AND detail LIKE '{\"ahead_ms\":86%,\"waits\":2,\"due\":1,%'",
                 1);
    s = reset(admin); /* once more */
    assert_true(hk_clock_in_step(&s) && !s.mended);
    assert_count("outbox_audit WHERE act = 'clock-reset'", 1);
    admin_ops->close(admin);
}

static void after_a_reset_messages_go_by_the_clock(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_heads *heads = NULL;
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .destination = "a", .limit = 10, .after_due_ms = INT64_MIN};
    int64_t lane = suite_acquire(store), now_ms = 0;
    suite_fill(1, "a", NULL);
    suite_clock_ms += DAY_MS;
    fail_once(store, lane, 1);
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    if (!store_kind->host_clock) { /* its mark is in memory alone */
        suite_close(store);
        store = suite_open(NULL);
    }
    suite_clock_ms -= DAY_MS;
    assert_true(reset(admin).mended);
    /* a relay that waited for its turn had seen the wrong time, too */
    assert_int_equal(store_kind->ops->acquire(store, "one", "boot", LEASE_MS, &lane, &now_ms, NULL), HK_OK);
    assert_int_equal(now_ms, suite_clock_ms);
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_int_equal(poll->behind_ms, 0);
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 0);
    suite_clock_ms += 1020;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, NULL), HK_OK);
    assert_int_equal(heads->n, 1);
    suite_close(store);
    admin_ops->close(admin);
}

/* More of them than SQLite mends by one statement. */
static void many_messages_are_mended_in_one_go(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    sql_at(
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, attempts, last_attempt_ms) "
        "WITH RECURSIVE c (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 2500) "
        "SELECT 'm', 'a', 'T', %lld + x, CASE WHEN x %% 5 = 0 THEN 0 ELSE 1 END, "
        "CASE WHEN x %% 5 = 0 THEN 0 ELSE %lld END FROM c",
        suite_clock_ms + DAY_MS);
    struct hk_clock_state s = reset(admin);
    assert_int_equal(s.rows[HK_CLOCK_WAITS], 2000);
    assert_int_equal(s.rows[HK_CLOCK_DUE], 500);
    assert_number("max(due_ms) FROM outbox_retry", suite_clock_ms + 2499);
    assert_number("max(last_attempt_ms) FROM outbox_retry", suite_clock_ms);
    s = reset(admin);
    assert_true(hk_clock_in_step(&s));
    admin_ops->close(admin);
}

static void a_reset_is_refused_while_a_relay_runs(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_clock_state s;
    suite_fill(1, "a", NULL);
    suite_clock_ms += DAY_MS;
    int64_t lane = suite_acquire(store);
    (void)suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    suite_clock_ms -= DAY_MS;
    int64_t until_ms = suite_number("SELECT until_ms FROM outbox_relay");
    if (store_kind->host_clock) {
        assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_CONFLICT); /* it has the lock */
    } else {
        assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_BUSY);
        suite_circuit(store, lane, 0); /* it does something */
        assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_CONFLICT);
        assert_int_equal(try_reset(admin, 0, &s), HK_CONFLICT); /* that stays known */
        admin_ops->close(admin);
        admin = admin_open();
        assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_BUSY);
    }
    assert_count("outbox_audit", 0);
    assert_number("until_ms FROM outbox_relay", until_ms);
    assert_int_equal(look(admin).rows[HK_CLOCK_LEASES], 1);
    suite_close(store); /* killed */
    admin = forget_leases(admin);
    s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_LEASES] == 1 && s.rows[HK_CLOCK_CLAIMS] == 1);
    assert_number("until_ms FROM outbox_relay", suite_clock_ms);
    struct hk_store *next = suite_open(NULL); /* which need not wait for a day */
    suite_acquire(next);
    assert_count("outbox_relay WHERE until_ms > 0", 1);
    suite_close(next);
    admin_ops->close(admin);
}

static void a_relay_that_left_no_lock_is_dead_when_it_is_silent_for_a_lease(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_clock_state s;
    suite_clock_ms += DAY_MS;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    if (store_kind->host_clock)
        store_kind->sql("UPDATE outbox_relay SET lock = 'of another boot'");
    suite_circuit(store, lane, 0);
    suite_close(store);
    suite_clock_ms -= DAY_MS;
    assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_BUSY);
    assert_int_equal(try_reset(admin, FOR_EVER, &s), HK_BUSY);
    assert_int_equal(try_reset(admin, 0, &s), HK_BUSY); /* its own lease is longer than what we are told */
    assert_int_equal(s.lease_ms, LEASE_MS);
    admin = forget_leases(admin);
    assert_int_equal(try_reset(admin, 0, &s), HK_OK);
    admin_ops->close(admin);
}

/* Stopped for longer than its lease, and not dead. */
static void a_relay_that_wakes_after_a_reset_loses_its_lane(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store), now_ms = 0;
    suite_clock_ms += DAY_MS;
    suite_circuit(store, lane, 0);
    suite_clock_ms -= DAY_MS;
    admin = believe_dead(admin);
    assert_true(reset(admin).mended);
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_CONFLICT);
    assert_number("until_ms FROM outbox_relay", suite_clock_ms);
    assert_int_equal(store_kind->ops->acquire(store, "one", "boot", LEASE_MS, &lane, &now_ms, NULL), HK_OK);
    assert_int_equal(now_ms, suite_clock_ms);
    struct hk_clock_state s = look(admin);
    assert_true(hk_clock_in_step(&s));
    suite_close(store);
    admin_ops->close(admin);
}

/* Its lease was no longer ahead, since it renewed before the wrong moment: it is as dead as the others. */
static void a_relay_whose_lease_was_over_loses_its_lane_too(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL), *other = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS};
    const struct hk_exchanged *done = NULL;
    suite_clock_ms += DAY_MS;
    if (store_kind->host_clock)
        store_kind->sql("UPDATE outbox_relay SET lock = ''");
    sql_at("UPDATE outbox_alert_look SET evaluated_ms = %lld, again_ms = %lld", suite_clock_ms);
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK); /* it knows the wrong time */
    suite_clock_ms -= DAY_MS - (int64_t)LEASE_MS - 1000;
    assert_true(reset(admin).mended);
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_CONFLICT);
    suite_close(store);
    suite_close(other);
    admin_ops->close(admin);
}

/* A relay that has seen the wrong time goes on with its own, which is ahead, when the clock is right again. */
static void a_wait_that_was_written_after_the_wrong_moment_is_kept(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_poll *poll = NULL;
    suite_fill(1, "a", NULL);
    int64_t lane = suite_acquire(store);
    suite_clock_ms += DAY_MS;
    suite_circuit(store, lane, 0);
    suite_clock_ms -= DAY_MS;
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    assert_in_range(poll->behind_ms, DAY_MS - 1000, DAY_MS);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.attempt.started_ms = s.history.first_attempt_ms = s.first_failed_ms = poll->now_ms;
    s.due_ms = poll->now_ms + 60000;
    suite_settle_one(store, lane, &s);
    if (!store_kind->host_clock) { /* rows have the server's time */
        assert_in_range(suite_number("SELECT due_ms FROM outbox_retry"), suite_clock_ms + 59000,
                        suite_clock_ms + 60000);
        assert_in_range(suite_number("SELECT last_attempt_ms FROM outbox_retry"), suite_clock_ms - 1000,
                        suite_clock_ms);
    }
    sql_at("UPDATE outbox_alert_look SET evaluated_ms = %lld, again_ms = %lld", suite_clock_ms + DAY_MS);
    admin = believe_dead(admin);
    assert_true(reset(admin).mended);
    assert_in_range(suite_number("SELECT due_ms FROM outbox_retry"), suite_clock_ms + 59000,
                    suite_clock_ms + 61000);
    assert_in_range(suite_number("SELECT first_attempt_ms FROM outbox_retry"), suite_clock_ms - 1000,
                    suite_clock_ms);
    suite_close(store);
    admin_ops->close(admin);
}

/* The relay that has it in hand sleeps through the reset, and gives it back when it wakes. */
static void a_message_in_a_sleepers_hand_does_not_wait_for_the_wrong_time(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    suite_clock_ms += DAY_MS;
    int64_t lane = suite_acquire(store);
    sql_at("INSERT INTO outbox_retry (message_id, destination, event_type, due_ms) "
           "VALUES ('m', 'a', 'T', %lld)",
           suite_clock_ms);
    (void)suite_claim(store, lane, HK_FROM_RETRY, suite_number("SELECT id FROM outbox_retry"));
    suite_clock_ms -= DAY_MS;
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_DUE] == 1);
    (void)store_kind->ops->release(store, lane, NULL);
    assert_count("outbox_retry WHERE claim IS NULL", 1);
    assert_number("due_ms FROM outbox_retry", suite_clock_ms);
    suite_close(store);
    admin_ops->close(admin);
}

/* It was tried at a wrong time, and in a right one since: what counts is the wait of its last attempt. */
static void a_wait_of_the_right_time_is_kept_after_an_attempt_of_the_wrong_one(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_poll *poll = NULL;
    suite_fill(1, "a", NULL);
    int64_t lane = suite_acquire(store);
    suite_clock_ms += DAY_MS;
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_clock_ms -= DAY_MS;
    int64_t row = suite_number("SELECT id FROM outbox_retry");
    s = suite_settle(suite_claim(store, lane, HK_FROM_RETRY, row), HK_FROM_RETRY, row, HK_SETTLE_RETRY);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    s.attempt.started_ms = poll->now_ms;
    s.history.attempts = 2;
    s.due_ms = poll->now_ms + 60000;
    suite_settle_one(store, lane, &s);
    admin = believe_dead(admin);
    assert_true(reset(admin).mended);
    assert_in_range(suite_number("SELECT due_ms FROM outbox_retry"), suite_clock_ms + 58000,
                    suite_clock_ms + 61000);
    suite_close(store);
    admin_ops->close(admin);
}

/* A clock that was ahead by ten seconds saw its last attempt. One that was ahead by a day had it go at once since: it is due now. */
static void what_was_to_go_at_once_is_due_now_wherever_its_attempt_was(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t right_ms = suite_clock_ms;
    suite_clock_ms += DAY_MS;
    (void)suite_acquire(store);
    sql_at(
        "INSERT INTO outbox_retry (message_id, destination, event_type, attempts, crashes, last_error, due_ms) "
        "VALUES ('m', 'a', 'T', 1, 1, NULL, %lld), ('n', 'a', 'T', 1, 0, '" HK_STOPPED_SENDING "', %lld)",
        suite_clock_ms);
    suite_clock_ms = right_ms;
    sql_at("UPDATE outbox_retry SET last_attempt_ms = %lld", right_ms + 10000);
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_WAITS] == 2);
    assert_in_range(suite_number("SELECT max(due_ms) FROM outbox_retry"), right_ms, right_ms + 2000);
    suite_close(store);
    admin_ops->close(admin);
}

/* The wrong clock took it for due, and a relay had it in hand: it waits for its not_before, through the reset and the take-over. */
static void a_message_whose_time_has_not_come_waits_for_it_again(void **state)
{
    (void)state;
    const int64_t noon_ms = INT64_C(1800014400000);
    struct hk_store *store = suite_open(NULL), *next = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    suite_clock_ms += DAY_MS;
    int64_t lane = suite_acquire(store);
    sql_at("INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, not_before) "
           "VALUES ('m', 'a', 'T', %lld, '2027-01-15T12:00:00Z')",
           suite_clock_ms);
    (void)suite_claim(store, lane, HK_FROM_RETRY, suite_number("SELECT id FROM outbox_retry"));
    suite_clock_ms -= DAY_MS;
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_DUE] == 1);
    assert_number("due_ms FROM outbox_retry WHERE deferred", noon_ms);
    suite_close(store);
    lane = suite_acquire(next);
    for (int i = 0; i < 40 && suite_number("SELECT count(*) FROM outbox_claim") > 0; i++) {
        const struct hk_poll *poll = NULL; /* where relays share, one takes over bit by bit */
        suite_clock_ms += 500;
        suite_circuit(next, lane, 0);
        assert_int_equal(store_kind->ops->poll(next, &poll, NULL), HK_OK);
    }
    assert_number("due_ms FROM outbox_retry WHERE deferred AND crashes = 1 AND claim IS NULL", noon_ms);
    suite_close(next);
    admin_ops->close(admin);
}

/* Somebody retries messages while the clock is ahead: one that was tried is due whatever the clock says later, a scheduled one
 * after the reset. */
static void what_was_retried_in_the_wrong_time_does_not_wait_for_it(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_acted acted = {0};
    struct hk_err err = {0};
    suite_fill(1, "a", NULL);
    int64_t lane = suite_acquire(store);
    fail_once(store, lane, 1);
    store_kind->sql("UPDATE outbox_retry SET message_id = 'tried', due_ms = due_ms + 864000000");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, not_before, payload) "
                    "VALUES ('scheduled', 'a', 'T', '2028-01-01T00:00:00Z', 'p')");
    suite_clock_ms += DAY_MS;
    const char *const ids[] = {"tried", "scheduled"};
    for (size_t i = 0; i < 2; i++) {
        const struct hk_act act = {.message_id = ids[i], .actor = "ann", .reason = "r"};
        assert_int_equal(admin_ops->retry(admin, &act, &acted, &err), HK_OK);
        assert_int_equal(acted.changed, 1);
    }
    suite_clock_ms -= DAY_MS;
    sql_at("UPDATE outbox_relay SET until_ms = %lld", suite_clock_ms);
    assert_true(suite_number("SELECT due_ms FROM outbox_retry WHERE message_id = 'tried'") <= suite_clock_ms);
    suite_close(store);
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_DUE] == 1);
    assert_number("max(due_ms) FROM outbox_retry", suite_clock_ms);
    admin_ops->close(admin);
}

/* Tried before its time by the wrong clock, and told to wait longer than until then. */
static void a_message_tried_before_its_time_waits_as_it_was_told(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    suite_clock_ms = INT64_C(1800014399500) + DAY_MS;
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    fail_once(store, lane, 1);
    sql_at("UPDATE outbox_retry SET not_before = '2027-01-15T12:00:00Z'", 0);
    suite_clock_ms = INT64_C(1800014399500);
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_WAITS] == 1);
    assert_number("due_ms - last_attempt_ms FROM outbox_retry WHERE deferred", 1020);
    suite_close(store);
    admin_ops->close(admin);
}

/* Tried again when the clock was right, and still before its time: that wait is right, too. */
static void a_message_tried_again_before_its_time_waits_as_it_was_told(void **state)
{
    (void)state;
    const int64_t right_ms = INT64_C(1800014399500);
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    suite_clock_ms = right_ms;
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    fail_once(store, lane, 1);
    sql_at("UPDATE outbox_retry SET not_before = '2027-01-15T12:00:00Z'", 0);
    suite_clock_ms += DAY_MS;
    fail_once(store, lane, 2); /* so that there is something to mend */
    suite_clock_ms = right_ms;
    admin = believe_dead(admin);
    struct hk_clock_state s = reset(admin);
    assert_true(s.mended && s.rows[HK_CLOCK_DUE] == 1);
    assert_number("due_ms FROM outbox_retry WHERE deferred AND original_outbox_id = 1", right_ms + 1000);
    suite_close(store);
    admin_ops->close(admin);
}

static void a_store_is_not_set_back_to_a_time_that_cannot_be(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_clock_state s;
    suite_fill(1, "a", NULL);
    int64_t lane = suite_acquire(store);
    fail_once(store, lane, 1);
    assert_int_equal(store_kind->ops->release(store, lane, NULL), HK_OK);
    suite_close(store);
    suite_clock_ms = 1000;
    assert_int_equal(try_reset(admin, 0, &s), HK_RANGE);
    assert_count("outbox_audit", 0);
    assert_count("outbox_retry WHERE last_attempt_ms > 1704067200000", 1);
    admin_ops->close(admin);
}

static int64_t read_clock(void *arg)
{
    (void)arg;
    return suite_clock_ms;
}

static enum hk_code break_and_reset(void)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    struct hk_clock_state out;
    const struct hk_clock_ask ask = {.actor = "ann", .reason = "because"};
    sql_at("UPDATE outbox_alert_look SET evaluated_ms = %lld", suite_clock_ms + DAY_MS);
    enum hk_code rc =
        admin_ops->open(store_kind->url(), &(struct hk_store_options){.clock_ms = read_clock}, &admin, &err);
    if (rc == HK_OK)
        rc = admin_ops->clock(admin, &ask, &out, &err);
    admin_ops->close(admin);
    return rc;
}

/* Without memory for the relays' lock it goes on without: the lanes tell. */
static void a_reset_survives_every_failing_allocation(void **state)
{
    (void)state;
    bool failed = true;
    int64_t done = 0;
    for (size_t k = 0; failed; k++) {
        struct failing f = {.fail_at = k};
        struct hk_allocator allocator = {failing_resize, failing_release, &f};
        hk_allocator_set(&allocator);
        enum hk_code rc = break_and_reset();
        hk_allocator_set(NULL);
        assert_int_equal(f.live, 0);
        assert_true(rc == HK_OK || (rc == HK_NOMEM && f.failed));
        done += rc == HK_OK;
        assert_count("outbox_audit WHERE act = 'clock-reset'", done); /* all of it, or nothing */
        failed = f.failed;
    }
    assert_number("evaluated_ms FROM outbox_alert_look", suite_clock_ms);
}

size_t admin_clock_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_clock_that_was_never_wrong_is_in_step),
        TEST(what_was_written_with_a_wrong_time_is_mended),
        TEST(after_a_reset_messages_go_by_the_clock),
        TEST(many_messages_are_mended_in_one_go),
        TEST(a_reset_is_refused_while_a_relay_runs),
        TEST(a_relay_that_left_no_lock_is_dead_when_it_is_silent_for_a_lease),
        TEST(a_relay_that_wakes_after_a_reset_loses_its_lane),
        TEST(a_relay_whose_lease_was_over_loses_its_lane_too),
        TEST(a_wait_that_was_written_after_the_wrong_moment_is_kept),
        TEST(a_message_in_a_sleepers_hand_does_not_wait_for_the_wrong_time),
        TEST(a_wait_of_the_right_time_is_kept_after_an_attempt_of_the_wrong_one),
        TEST(what_was_to_go_at_once_is_due_now_wherever_its_attempt_was),
        TEST(a_message_whose_time_has_not_come_waits_for_it_again),
        TEST(a_message_tried_before_its_time_waits_as_it_was_told),
        TEST(a_message_tried_again_before_its_time_waits_as_it_was_told),
        TEST(what_was_retried_in_the_wrong_time_does_not_wait_for_it),
        TEST(a_store_is_not_set_back_to_a_time_that_cannot_be),
        TEST(a_reset_survives_every_failing_allocation),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
