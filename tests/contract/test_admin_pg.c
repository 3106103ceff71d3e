/* SPDX-License-Identifier: Apache-2.0 */
/* The operators' side of PostgreSQL under its contract, and what only PostgreSQL has: acts beside claims that are under
 * way, estimates of large tables, rows that only it can hold, roles, health. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hikyaku/rng.h>

#include "admin_suite.h"
#include "base/str.h"
#include "pg_kind.h"
#include "pg_proxy.h"
#include "store/pg/admin.h"

#define OPS hk_store_admin_postgres

static struct hk_admin *open_as(const char *user, const char *more, uint64_t busy_ms)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    enum hk_code rc =
        OPS.open(pg_url(user, more), &(struct hk_store_options){.busy_ms = busy_ms}, &admin, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return admin;
}

static enum hk_code cancel(struct hk_admin *admin, const char *message_id)
{
    struct hk_err err = {0};
    struct hk_acted done = {0};
    const struct hk_act act = {message_id, NULL, "ann", "because"};
    enum hk_code rc = OPS.cancel(admin, &act, &done, &err);
    assert_true(rc == HK_OK || (err.code == rc && err.message[0] != '\0'));
    return rc;
}

/* ---- acts beside claims ---- */

/* An act on its own thread, and what came of it. */
struct actor {
    pthread_t thread;
    const char *message_id;
    struct hk_admin *admin;
    enum hk_code rc;
};

static void *run_actor(void *arg)
{
    struct actor *a = arg;
    struct hk_acted done = {0};
    const struct hk_act act = {a->message_id, NULL, "ann", "because"};
    a->rc = OPS.cancel(a->admin, &act, &done, NULL);
    return NULL;
}

static void start_actor(struct actor *a, const char *message_id)
{
    a->message_id = message_id;
    a->admin = open_as(NULL, "", 20000);
    assert_int_equal(pthread_create(&a->thread, NULL, run_actor, a), 0);
}

static enum hk_code end_actor(struct actor *a)
{
    pthread_join(a->thread, NULL);
    OPS.close(a->admin);
    return a->rc;
}

static void until(const char *sql, int64_t n)
{
    const struct timespec pause = {.tv_nsec = 5000000};
    for (int i = 0; i < 4000 && suite_number(sql) < n; i++)
        nanosleep(&pause, NULL);
    assert_int_equal(suite_number(sql), n);
}

/* Until the actor's session waits for what `pid` holds. */
static void until_blocked_by(int pid)
{
    char sql[200];
    snprintf(
        sql, sizeof sql,
        "SELECT count(*) FROM pg_stat_activity WHERE %d = ANY (pg_blocking_pids(pid)) AND datname = '%s'",
        pid, pg_database());
    until(sql, 1);
}

/* Two lanes; the first owns all shards. One message. */
static void make_lanes(void)
{
    store_kind->sql("INSERT INTO outbox_relay (name, boot, started_ms, until_ms) "
                    "SELECT 'r' || i, 'b', 0, 4000000000000 FROM generate_series(1, 2) i");
    store_kind->sql("UPDATE outbox_shard SET lane = 1");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type) VALUES ('x', 'a', 'T')");
}

#define RENEW(lane) "BEGIN; UPDATE outbox_relay SET exchange = exchange + 1 WHERE lane = " lane
#define CLAIM(lane)                                                                                          \
    "INSERT INTO outbox_claim (lane, claimed_ms, ids) SELECT " lane ", 0, array_agg(id) FROM outbox"

static void an_act_waits_for_the_claim_that_is_under_way(void **state)
{
    (void)state;
    static struct actor actor; /* its thread may outlive a failed test */
    PGconn *relay = pg_connect(NULL);
    make_lanes();
    pg_exec(relay, RENEW("1"));
    start_actor(&actor, "x");
    until_blocked_by(PQbackendPID(relay));
    pg_exec(relay, CLAIM("1") "; COMMIT");
    assert_int_equal(end_actor(&actor), HK_BUSY);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 1);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_cancelled"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 0);
    PQfinish(relay);
}

static void a_claim_waits_for_the_act_and_sees_the_row_gone(void **state)
{
    (void)state;
    make_lanes();
    PGconn *relay = pg_connect(NULL), *holder = pg_connect(NULL);
    static struct actor actor; /* its thread may outlive a failed test */
    /* the act gets its lanes and then waits for the row, which somebody else holds */
    pg_exec(holder, "BEGIN; SELECT 1 FROM outbox WHERE id = 1 FOR UPDATE");
    start_actor(&actor, "x");
    until_blocked_by(PQbackendPID(holder));
    assert_int_equal(PQsendQuery(relay, RENEW("1") "; " CLAIM("1") " HAVING count(*) > 0; COMMIT"), 1);
    until("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'", 2);
    pg_exec(holder, "ROLLBACK");
    assert_int_equal(end_actor(&actor), HK_OK);
    for (PGresult *res; (res = PQgetResult(relay)); PQclear(res))
        continue;
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_cancelled"), 1);
    PQfinish(relay);
    PQfinish(holder);
}

static void an_act_follows_a_shard_to_its_new_owner(void **state)
{
    (void)state;
    static struct actor actor; /* its thread may outlive a failed test */
    make_lanes();
    PGconn *taker = pg_connect(NULL), *relay = pg_connect(NULL);
    pg_exec(relay, RENEW("2")); /* an exchange of the lane that gets the shard */
    pg_exec(taker, "BEGIN; UPDATE outbox_shard SET lane = 2");
    start_actor(&actor, "x");
    until_blocked_by(PQbackendPID(taker));
    pg_exec(taker, "COMMIT");
    until_blocked_by(PQbackendPID(relay));
    pg_exec(relay, CLAIM("2") "; COMMIT");
    assert_int_equal(end_actor(&actor), HK_BUSY);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_cancelled"), 0);
    PQfinish(taker);
    PQfinish(relay);
}

static void a_free_shard_is_not_taken_during_an_act(void **state)
{
    (void)state;
    static struct actor actor; /* its thread may outlive a failed test */
    make_lanes();
    store_kind->sql("UPDATE outbox_shard SET lane = NULL");
    PGconn *holder = pg_connect(NULL);
    pg_exec(holder, "BEGIN; SELECT 1 FROM outbox WHERE id = 1 FOR UPDATE");
    start_actor(&actor, "x");
    until_blocked_by(PQbackendPID(holder));
    assert_int_equal(
        suite_number("WITH f AS (SELECT shard FROM outbox_shard WHERE lane IS NULL FOR UPDATE SKIP LOCKED) "
                     "SELECT count(*) FROM f"),
        63);
    pg_exec(holder, "ROLLBACK");
    assert_int_equal(end_actor(&actor), HK_OK);
    PQfinish(holder);
}

static void a_lock_is_waited_for_only_so_long(void **state)
{
    (void)state;
    make_lanes();
    PGconn *relay = pg_connect(NULL);
    struct hk_admin *admin = open_as(NULL, "", 50);
    pg_exec(relay, RENEW("1"));
    assert_int_equal(cancel(admin, "x"), HK_BUSY);
    pg_exec(relay, "ROLLBACK");
    assert_int_equal(cancel(admin, "x"), HK_OK);
    PQfinish(relay);
    OPS.close(admin);
}

/* ---- the same with real relays, and in great numbers ---- */

/* In every round all threads are let loose on the same few messages at once, after a wait of their own. In some rounds only
 * the claims come, in some only the cancels, so that both have something to show whatever the machine does. */
enum {
    ROUNDS = 240,
    AT_ONCE = 6,
    HAMMERED = ROUNDS * AT_ONCE,
    CLAIMERS = 2,
    CANCELLERS = 2
};

static uint8_t claimed[CLAIMERS][HAMMERED + 1], cancelled[CANCELLERS][HAMMERED + 1];
static pthread_barrier_t round_begins;
static enum hk_code hammer_rc[CLAIMERS + CANCELLERS];
static struct hk_err hammer_err[CLAIMERS + CANCELLERS];

static void begin_round(struct hk_rng *rng)
{
    struct timespec pause = {.tv_nsec = (long)hk_rng_upto(rng, 3000000)};
    pthread_barrier_wait(&round_begins);
    nanosleep(&pause, NULL);
}

static enum hk_code exchange_once(struct hk_store *store, struct hk_exchange *x, struct hk_settle *settles,
                                  uint8_t *mine, struct hk_err *err)
{
    const struct hk_exchanged *done = NULL;
    enum hk_code rc = store_kind->ops->exchange(store, x, &done, err);
    if (rc != HK_OK)
        return rc == HK_BUSY ? HK_OK : rc; /* the same settles again, next time */
    x->n_settles = 0;
    for (size_t i = 0; i < done->n_messages; i++) {
        int64_t id = done->messages[i].id;
        mine[id]++;
        settles[x->n_settles++] = suite_settle(done->claim, HK_FROM_OUTBOX, id, HK_SETTLE_SENT);
    }
    return HK_OK;
}

/* Claims what it can get, of its own shards, and settles it with the next claim. */
static void *hammer_claims(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    struct hk_store *store = NULL;
    struct hk_err *err = &hammer_err[me];
    struct hk_rng rng;
    struct hk_settle settles[AT_ONCE];
    struct hk_want wants[AT_ONCE];
    int64_t lane = 0, now_ms = 0;
    const struct hk_poll *poll = NULL;
    hk_rng_seed(&rng, 7, me);
    enum hk_code rc =
        store_kind->ops->open(store_kind->url(), &(struct hk_store_options){.keep_sent = true}, &store, err);
    if (rc == HK_OK)
        rc = store_kind->ops->acquire(store, "hammer", "b", 60000, &lane, &now_ms, err);
    struct hk_exchange x = {.lane = lane, .lease_ms = 60000, .settles = settles, .wants = wants};
    for (int round = 0; round < ROUNDS; round++) {
        if (rc == HK_OK)
            rc = store_kind->ops->poll(store, &poll, err); /* shares shards out, too */
        for (size_t i = 0; i < AT_ONCE; i++)
            wants[i] = (struct hk_want){HK_FROM_OUTBOX, round * AT_ONCE + (int64_t)i + 1, true};
        x.n_wants = round % 4 == 0 ? 0 : AT_ONCE;
        begin_round(&rng);
        if (rc == HK_OK)
            rc = exchange_once(store, &x, settles, claimed[me], err);
    }
    for (x.n_wants = 0; rc == HK_OK && x.n_settles > 0;)
        rc = exchange_once(store, &x, settles, claimed[me], err);
    store_kind->ops->close(store);
    hammer_rc[me] = rc;
    return NULL;
}

static void *hammer_cancels(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    struct hk_admin *admin = NULL;
    struct hk_err *err = &hammer_err[CLAIMERS + me];
    struct hk_rng rng;
    hk_rng_seed(&rng, 8, me);
    enum hk_code rc = OPS.open(store_kind->url(), &(struct hk_store_options){.busy_ms = 0}, &admin, err);
    for (int round = 0; round < ROUNDS; round++) {
        begin_round(&rng);
        for (int i = 0; i < AT_ONCE && round % 4 != 1 && rc == HK_OK; i++) {
            char name[24];
            struct hk_acted done = {0};
            int id = round * AT_ONCE + i + 1;
            const struct hk_act act = {name, NULL, "ann", "because"};
            snprintf(name, sizeof name, "m%d", id);
            rc = (size_t)i % CANCELLERS == me ? OPS.cancel(admin, &act, &done, err) : HK_CONFLICT;
            if (rc == HK_OK)
                cancelled[me][id]++;
            if (rc == HK_BUSY || rc == HK_CONFLICT)
                rc = HK_OK;
        }
    }
    OPS.close(admin);
    hammer_rc[CLAIMERS + me] = rc;
    return NULL;
}

static void hammer(void)
{
    char sql[200];
    pthread_t threads[CLAIMERS + CANCELLERS];
    memset(claimed, 0, sizeof claimed);
    memset(cancelled, 0, sizeof cancelled);
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (message_id, destination, event_type, payload) "
             "SELECT 'm' || i, 'a', 'T', 'p' FROM generate_series(1, %d) i",
             HAMMERED);
    store_kind->sql(sql);
    assert_int_equal(pthread_barrier_init(&round_begins, NULL, CLAIMERS + CANCELLERS), 0);
    for (size_t i = 0; i < CLAIMERS + CANCELLERS; i++) {
        void *arg = (void *)(uintptr_t)(i < CLAIMERS ? i : i - CLAIMERS);
        assert_int_equal(
            pthread_create(&threads[i], NULL, i < CLAIMERS ? hammer_claims : hammer_cancels, arg), 0);
    }
    for (size_t i = 0; i < CLAIMERS + CANCELLERS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&round_begins);
    for (size_t i = 0; i < CLAIMERS + CANCELLERS; i++) {
        NOTE_IF(hammer_rc[i] != HK_OK, "%zu: %s\n", i, hammer_err[i].message);
        assert_int_equal(hammer_rc[i], HK_OK);
    }
}

static void nothing_is_both_cancelled_and_claimed(void **state)
{
    (void)state;
    hammer();
    size_t n_claimed = 0, n_cancelled = 0, n_both = 0;
    for (size_t id = 1; id <= HAMMERED; id++) {
        unsigned had = 0, gone = 0;
        for (size_t i = 0; i < CLAIMERS; i++)
            had += claimed[i][id];
        for (size_t i = 0; i < CANCELLERS; i++)
            gone += cancelled[i][id];
        n_both += had + gone > 1;
        n_claimed += had;
        n_cancelled += gone;
    }
    NOTE_IF(n_both > 0, "%zu claimed, %zu cancelled, %zu more than once\n", n_claimed, n_cancelled, n_both);
    assert_int_equal(n_both, 0);
    assert_true(n_claimed > 0 && n_cancelled > 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_sent"), n_claimed);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_cancelled"), n_cancelled);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit WHERE act = 'cancel'"), n_cancelled);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), HAMMERED - n_claimed - n_cancelled);
    assert_int_equal(
        suite_number("SELECT count(*) FROM outbox_sent JOIN outbox_cancelled USING (message_id)"), 0);
}

/* A role or a database may have any default: it must not give a claim a snapshot from before its locks. */
static void not_even_where_repeatable_read_is_the_default(void **state)
{
    char sql[100];
    snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_isolation = 'repeatable read'",
             pg_database());
    store_kind->sql(sql);
    nothing_is_both_cancelled_and_claimed(state);
}

/* ---- a connection that breaks ---- */

static void an_act_whose_outcome_is_unknown_is_told_as_such(void **state)
{
    (void)state;
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    struct hk_acted acted = {0};
    const struct hk_act act = {"x", NULL, "ann", "because"};
    make_lanes();
    assert_true(proxy_start());
    assert_int_equal(OPS.open(proxy_url(), &(struct hk_store_options){.busy_ms = 0}, &admin, &err), HK_OK);
    proxy_arm_on(PROXY_LOSE_COMMIT, "outbox_cancelled"); /* it is done, and nobody hears of it */
    assert_int_equal(OPS.cancel(admin, &act, &acted, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "look before you repeat it"));
    assert_int_equal(acted.changed, 0);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_cancelled"), 1);
    assert_int_equal(OPS.cancel(admin, &act, &acted, &err),
                     HK_CONFLICT); /* and goes on on a new connection */
    OPS.close(admin);
    proxy_stop();
}

/* ---- large tables ---- */

static void large_tables_are_estimated(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_store_status *s = NULL;
    struct hk_err err = {0};
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, payload) SELECT 'm' || i, "
        "CASE WHEN i % 10 = 0 THEN 'b' WHEN i = 77777 THEN 'rare' WHEN i % 1000 = 1 THEN NULL ELSE 'a' END, "
        "'T', repeat('x', 300) FROM generate_series(1, 150000) i");
    store_kind->sql(
        "INSERT INTO outbox_sent (sent_ms, attempts, status, life, message_id, destination, event_type) "
        "SELECT i, 1, 200, 1, repeat('s', 300), 'a', 'T' FROM generate_series(1, 120000) i");
    store_kind->sql("ANALYZE"); /* both with and without statistics: the autovacuum may have been here */
    assert_int_equal(OPS.status(admin, &s, &err), HK_OK);
    assert_true(s->due.about && s->due.n > 140000 && s->due.n < 160000);
    assert_true(s->sent.about && s->sent.n > 112000 && s->sent.n < 128000);
    assert_int_equal(s->n_dests, 4);
    assert_true(s->dests[0].pending.n >= 75 && s->dests[0].pending.n < 300); /* NULL is '' */
    assert_true(hk_str_eq(s->dests[1].name, hk_str_of("a")));
    assert_true(s->dests[1].pending.about && s->dests[1].pending.n > 120000 &&
                s->dests[1].pending.n < 150000);
    assert_true(!s->dests[2].pending.about && s->dests[2].pending.n == 15000);
    assert_true(!s->dests[3].pending.about && s->dests[3].pending.n == 1);
    assert_true(s->attempts[0].about);
    /* what no index serves is looked for page by page, and nothing is left out in between */
    store_kind->sql(
        "UPDATE outbox SET event_type = 'odd' WHERE id IN (1, 50000, 50001, 100000, 100001, 150000)");
    const struct hk_rows *rows = NULL;
    struct hk_list list = {.event_type = "odd", .limit = 10};
    size_t found = 0;
    int calls = 0;
    do {
        assert_int_equal(OPS.list(admin, &list, &rows, &err), HK_OK);
        list.resume = true;
        list.after_place = rows->last_place;
        list.after_id = rows->last_id;
        found += rows->n;
        calls++;
    } while (rows->more);
    assert_int_equal(found, 6);
    assert_true(calls >= 3 && calls < 10);
    /* and by message_id, too: at both ends, and where one page ends */
    const char *const ids[] = {"m1", "m49999", "m50000", "m50001", "m150000"};
    for (size_t i = 0; i < COUNT(ids); i++)
        assert_int_equal(cancel(admin, ids[i]), HK_OK);
    assert_int_equal(cancel(admin, "nobody"), HK_NOTFOUND);
    OPS.close(admin);
}

/* ---- rows that only PostgreSQL can hold ---- */

static void rows_that_hold_anything_are_shown(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_shown *shown = NULL;
    const struct hk_rows *rows = NULL;
    const struct hk_store_status *s = NULL;
    const struct hk_relays *relays = NULL;
    struct hk_err err = {0};
    struct hk_acted acted = {0};
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, not_before, expires_at, created_at, "
        "max_attempts, headers, payload, encoding) VALUES "
        "(NULL, NULL, '', 'infinity', 'infinity', '-infinity', -5, 'no json', NULL, NULL), "
        "(NULL, NULL, E'\\x1b[2J', '-infinity', '4713-01-01 BC', '294276-01-01', 2147483647, '', '', 'x'), "
        "('big', 'a', repeat('t', 300000), NULL, NULL, NULL, NULL, repeat('h', 3000000), "
        "repeat('x', 50000000), 'utf8')");
    store_kind->sql(
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, attempts, life, created_at, "
        "claim, not_before) VALUES ('odd', '', '', -9223372036854775808, -5, -7, 'infinity', NULL, 'infinity')");
    store_kind->sql("INSERT INTO outbox_relay (name, boot, started_ms, until_ms) VALUES "
                    "(repeat('n', 100000), E'\\x07', -9223372036854775808, -9223372036854775808), "
                    "('', '', 9223372036854775807, 9223372036854775807)");
    store_kind->sql(
        "INSERT INTO outbox_claim (lane, claimed_ms, ids) VALUES (1, -5, '{}'), (1, 0, '{99,NULL,-1}'), "
        "(2, 0, '{{99,98},{97,96}}')");
    store_kind->sql("INSERT INTO dead_letters (message_id, destination, event_type, reason_code, attempts, "
                    "first_failed_at, last_failed_at, created_at, status) VALUES "
                    "('letter', 'a', 'T', '', -1, '-infinity', 'infinity', 'infinity', 'nonsense'), "
                    "('letter', 'a', 'T', '', -1, '-infinity', 'infinity', 'infinity', 'failed')");
    assert_int_equal(OPS.list(admin, &(struct hk_list){.limit = 10}, &rows, &err), HK_OK);
    assert_int_equal(rows->n, 5);
    assert_int_equal(OPS.list(admin, &(struct hk_list){.limit = 10, .state = HK_PENDING}, &rows, &err),
                     HK_OK);
    assert_int_equal(rows->n, 4);
    assert_int_equal(OPS.list(admin, &(struct hk_list){.limit = 10, .destination = ""}, &rows, &err), HK_OK);
    assert_int_equal(rows->n, 3);
    assert_int_equal(OPS.status(admin, &s, &err), HK_OK);
    assert_int_equal(s->n_dests, 2);
    assert_int_equal(s->dests[0].pending.n, 3);
    assert_int_equal(OPS.relays(admin, &relays, &err), HK_OK);
    assert_int_equal(relays->n, 2);
    assert_false(relays->items[0].running);
    assert_true(relays->items[0].name.len < 20000 && relays->items[1].running);
    assert_int_equal(OPS.show(admin, "big", 1000, &shown, &err), HK_OK);
    assert_int_equal(shown->rows[0].payload_bytes, 50000000);
    assert_int_equal(shown->rows[0].payload.len, 1000);
    assert_true(shown->rows[0].headers.len < 70000 && shown->rows[0].event_type.len < 70000);
    assert_int_equal(OPS.show(admin, "odd", 10, &shown, &err), HK_OK);
    assert_true(hk_str_eq(shown->rows[0].not_before, hk_str_of("infinity")));
    assert_int_equal(OPS.show(admin, "outbox-1", 10, &shown, &err), HK_OK);
    assert_int_equal(shown->n_rows, 1);
    assert_true(hk_str_eq(shown->rows[0].message_id, hk_str_of("outbox-1")));
    assert_true(hk_str_eq(shown->rows[0].expires_at, hk_str_of("infinity")));
    assert_false(shown->rows[0].has_payload);
    assert_int_equal(OPS.show(admin, "outbox-9", 10, &shown, &err), HK_NOTFOUND);
    assert_int_equal(OPS.show(admin, "outbox-3", 10, &shown, &err),
                     HK_NOTFOUND); /* it has a name of its own */
    assert_int_equal(OPS.show(admin, "\xff", 10, &shown, &err), HK_NOTFOUND);
    assert_int_equal(OPS.show(admin, "letter", 10, &shown, &err), HK_OK);
    assert_int_equal(shown->n_rows, 1);
    const struct hk_act retry = {"outbox-1", NULL, "ann", "because"};
    assert_int_equal(OPS.retry(admin, &retry, &acted, &err), HK_OK);
    assert_int_equal(acted.unchanged, 1);
    assert_int_equal(cancel(admin, "outbox-2"), HK_OK);
    assert_int_equal(cancel(admin, "odd"), HK_OK);
    assert_string_equal(
        store_kind->value("SELECT message_id || destination FROM outbox_cancelled ORDER BY id LIMIT 1"),
        "outbox-2");
    OPS.close(admin);
}

/* Longer than what a B-tree takes, and not to be compressed: it can be written, so it must be able to go everywhere. */
static void long_names_can_move_to_every_table(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    struct hk_acted acted = {0};
    const struct hk_shown *shown = NULL;
    char name[4000];
    const struct hk_store_status *status = NULL;
    store_kind->sql(
        "INSERT INTO outbox (message_id, destination, event_type, message_key, not_before) SELECT n, n, "
        "reverse(n), n, '2099-01-01' FROM (SELECT string_agg(md5(i::text), '') AS n "
        "FROM generate_series(1, 120) i) x");
    snprintf(name, sizeof name, "%s", store_kind->value("SELECT message_id FROM outbox"));
    const struct hk_act act = {name, NULL, "ann", "because"};
    assert_int_equal(OPS.retry(admin, &act, &acted, &err), HK_OK);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 1);
    assert_int_equal(OPS.show(admin, name, 10, &shown, &err), HK_OK);
    assert_int_equal(OPS.status(admin, &status, &err), HK_OK);
    assert_int_equal(status->n_dests, 1);
    assert_int_equal(status->dests[0].name.len, 63);
    assert_memory_equal(status->dests[0].name.ptr, name, 63);
    bool changed = false;
    assert_int_equal(OPS.pause(admin, name, true, "ann", "because", &changed, &err), HK_INVALID);
    assert_int_equal(OPS.cancel(admin, &act, &acted, &err), HK_OK);
    store_kind->sql(
        "INSERT INTO outbox_sent (sent_ms, attempts, status, life, message_id, destination, event_type) "
        "SELECT 1, 1, 200, 1, message_id, destination, event_type FROM outbox_cancelled");
    store_kind->sql(
        "INSERT INTO dead_letters (message_id, destination, event_type, reason_code, attempts, "
        "first_failed_at, last_failed_at, created_at) SELECT message_id, destination, event_type, 'X', 1, "
        "now(), now(), now() FROM outbox_cancelled");
    store_kind->sql(
        "INSERT INTO outbox_attempts (started_ms, duration_ms, settled_ms, life, n, status, "
        "possibly_delivered, message_id, destination, class) "
        "SELECT 1, 1, 1, 1, 1, 200, false, message_id, destination, 'success' FROM outbox_cancelled");
    assert_int_equal(OPS.show(admin, name, 10, &shown, &err), HK_OK);
    assert_int_equal(shown->n_rows, 3);
    assert_int_equal(shown->n_attempts, 1);
    OPS.close(admin);
}

static void payloads_are_cut_by_bytes(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_shown *shown = NULL;
    struct hk_err err = {0};
    store_kind->sql(
        "INSERT INTO outbox (message_id, event_type, payload) VALUES ('m', 'T', repeat('飛', 100))");
    assert_int_equal(OPS.show(admin, "m", 10, &shown, &err), HK_OK);
    assert_int_equal(shown->rows[0].payload.len, 10);
    assert_int_equal(shown->rows[0].payload_bytes, 300);
    assert_int_equal(OPS.show(admin, "m", 1000, &shown, &err), HK_OK);
    assert_int_equal(shown->rows[0].payload.len, 300);
    OPS.close(admin);
}

static void what_cannot_be_written_is_refused_by_its_number(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_str *ids = NULL;
    const struct hk_enqueue good = {.message = {.event_type = "T"}};
    const struct hk_enqueue bad[] = {
        {.message = {.event_type = "T", .not_before = "soon"}},
        {.message = {.event_type = "T", .expires_at = "infinity"}},
        {.message = {.event_type = "\xff"}},
        {.message = {.event_type = "T", .policy = "\xc3"}},
        {.message = {.event_type = "T", .payload = "\xff", .payload_len = 1}, .encoding = "base64"},
    };
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct hk_err err = {0};
        const struct hk_enqueue items[] = {good, bad[i]};
        assert_int_equal(OPS.enqueue(admin, items, 2, &ids, &err), HK_INVALID);
        assert_non_null(strstr(err.message, "message 1"));
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 0);
    OPS.close(admin);
}

/* ---- roles, schema and prefix ---- */

static void grant(const char *relay, const char *viewer)
{
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 16);
    store_kind->sql(
        "DROP ROLE IF EXISTS pa_relay; DROP ROLE IF EXISTS pa_viewer; CREATE ROLE pa_relay LOGIN; "
        "CREATE ROLE pa_viewer LOGIN");
    assert_int_equal(hk_pg_grants(store_kind->url(),
                                  &(struct hk_store_roles){.relay = relay, .viewer = viewer}, &sql, NULL),
                     HK_OK);
    store_kind->sql(hk_buf_cstr(&sql));
    hk_buf_fini(&sql);
}

static void ungrant(void)
{
    store_kind->sql("DROP OWNED BY pa_relay, pa_viewer; DROP ROLE pa_relay; DROP ROLE pa_viewer");
}

static enum hk_code look_at_all(struct hk_admin *admin)
{
    const struct hk_shown *shown = NULL;
    const struct hk_rows *rows = NULL;
    const struct hk_store_status *s = NULL;
    const struct hk_relays *relays = NULL;
    struct hk_err err = {0};
    enum hk_code rc = OPS.status(admin, &s, &err);
    if (rc == HK_OK)
        rc = OPS.relays(admin, &relays, &err);
    for (int st = 0; st < HK_NSTATES && rc == HK_OK; st++)
        rc = OPS.list(admin, &(struct hk_list){.state = (enum hk_state)st, .limit = 5}, &rows, &err);
    if (rc == HK_OK)
        rc = OPS.show(admin, "x", 10, &shown, &err);
    NOTE_IF(rc != HK_OK, "%s\n", err.message);
    return rc;
}

static void printed_grants_are_enough(void **state)
{
    (void)state;
    bool changed = false;
    struct hk_err err = {0};
    make_lanes();
    grant("pa_relay", "pa_viewer");
    struct hk_admin *relay = open_as("pa_relay", "", 0), *viewer = open_as("pa_viewer", "", 0);
    assert_int_equal(look_at_all(relay), HK_OK);
    assert_int_equal(look_at_all(viewer), HK_OK);
    assert_int_equal(cancel(viewer, "x"), HK_UNAVAILABLE);
    assert_int_equal(OPS.pause(viewer, "a", true, "ann", "because", &changed, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "grants"));
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 0);
    assert_int_equal(OPS.pause(relay, "a", true, "ann", "because", &changed, &err), HK_OK);
    assert_int_equal(cancel(relay, "x"), HK_OK);
    OPS.close(relay);
    OPS.close(viewer);
    ungrant();
}

static void schema_and_prefix_hold_everywhere(void **state)
{
    (void)state;
    struct hk_store_inited done;
    struct hk_err err = {0};
    bool changed = false;
    const struct hk_str *ids = NULL;
    const char *more = "&schema=Mixed&prefix=Shop_";
    store_kind->sql("CREATE SCHEMA \"Mixed\"");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, more), &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    struct hk_admin *admin = open_as(NULL, more, 0);
    const struct hk_enqueue item = {.message = {.event_type = "T", .message_id = "x", .destination = "a"}};
    assert_int_equal(OPS.enqueue(admin, &item, 1, &ids, &err), HK_OK);
    assert_int_equal(look_at_all(admin), HK_OK);
    assert_int_equal(OPS.pause(admin, "a", true, "ann", "because", &changed, &err), HK_OK);
    assert_int_equal(cancel(admin, "x"), HK_OK);
    assert_int_equal(look_at_all(admin), HK_OK);
    assert_int_equal(suite_number("SELECT count(*) FROM \"Mixed\".\"Shop_outbox_audit\""), 2);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 0);
    struct hk_store_health h;
    assert_int_equal(OPS.inspect(pg_url(NULL, more), 0, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_OK);
    OPS.close(admin);
}

/* ---- health ---- */

static const struct hk_health_note *note_on(const struct hk_store_health *h, const char *about,
                                            enum hk_note_level level, const char *word)
{
    for (size_t i = 0; i < h->n_notes; i++)
        if (strcmp(h->notes[i].about, about) == 0 && h->notes[i].level == level &&
            strstr(h->notes[i].text, word))
            return &h->notes[i];
    for (size_t i = 0; i < h->n_notes; i++)
        print_message("# %s %d: %s\n", h->notes[i].about, (int)h->notes[i].level, h->notes[i].text);
    return NULL;
}

#define assert_note(h, about, level, word) assert_non_null(note_on(h, about, level, word))

static void health_is_told_of_sound_and_unsound_places(void **state)
{
    (void)state;
    struct hk_store_health h;
    struct hk_err err = {0};
    assert_int_equal(OPS.inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_OK);
    assert_int_equal(h.schema_version, h.schema_wanted);
    assert_false(h.is_file);
    assert_non_null(strstr(h.engine, "PostgreSQL 1"));
    assert_non_null(strstr(h.place, "postgres://"));
    assert_note(&h, "clock", HK_NOTE_OK, "agrees");
    assert_note(&h, "pooler", HK_NOTE_OK, "direct");
    assert_note(&h, "connections", HK_NOTE_OK, "free");
    assert_note(&h, "vacuum", HK_NOTE_OK, "nothing");
    assert_note(&h, "planner", HK_NOTE_OK, "index");
    assert_note(&h, "durability", HK_NOTE_WARN, "fsync"); /* the tests' own server */
    store_kind->sql("UPDATE outbox_meta SET value = '99' WHERE key IN ('schema_version', 'compatible_from')");
    assert_int_equal(OPS.inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_UNSUPPORTED);
    assert_int_equal(h.schema_version, 99);
    store_kind->sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    assert_int_equal(OPS.inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_NOTFOUND);
    assert_non_null(strstr(h.schema_error.message, "hikyaku init"));
    assert_int_equal(OPS.inspect("postgres://127.0.0.1:1/x", 0, &h, &err), HK_UNAVAILABLE);
}

/* Also of a schema that has to be brought up to date: that is where they are. */
static void functions_that_everybody_may_run_as_the_owner_are_found(void **state)
{
    (void)state;
    struct hk_store_health h;
    struct hk_err err = {0};
    store_kind->sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    pg_make_version("", 4);
    PGconn *other = pg_connect(NULL);
    pg_exec(
        other,
        "CREATE TABLE elsewhere (lane bigint); CREATE TRIGGER hung AFTER DELETE ON elsewhere FOR EACH ROW "
        "EXECUTE FUNCTION outbox_figures_gone()");
    assert_int_equal(OPS.inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_NOTFOUND);
    assert_note(&h, "rights", HK_NOTE_FAIL, "every role can run public.outbox_figures_gone()");
    assert_note(&h, "rights", HK_NOTE_FAIL, "trigger hung on public.elsewhere");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0},
                                            &(struct hk_store_inited){0}, &err),
                     HK_OK);
    pg_exec(other, "DROP TABLE elsewhere");
    assert_int_equal(OPS.inspect(pg_url(NULL, ""), 0, &h, &err), HK_OK);
    assert_null(note_on(&h, "rights", HK_NOTE_FAIL, ""));
    PQfinish(other);
}

static void who_holds_vacuum_back_is_named(void **state)
{
    (void)state;
    static const struct hk_pa_limits strict = {
        .held_s = -1, .held_xids = -1, .connections = 5, .clock_ms = 5000};
    struct hk_store_health h;
    struct hk_err err = {0};
    char pid[24];
    PGconn *idler = pg_connect(NULL), *other = pg_connect(NULL);
    pg_exec(idler, "SET application_name = 'nightly \x1b[2J report'");
    pg_exec(idler, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
    pg_exec(other, "BEGIN; INSERT INTO outbox (event_type) VALUES ('T'); PREPARE TRANSACTION 'two-phase'");
    pg_exec(other, "SELECT pg_create_physical_replication_slot('left_behind', true)");
    for (int i = 0; i < 3; i++)
        pg_exec(other, "INSERT INTO outbox (event_type) VALUES ('T')");
    assert_int_equal(hk_pa_inspect_with(pg_url(NULL, ""), &strict, &h, &err), HK_OK);
    snprintf(pid, sizeof pid, "session %d ", PQbackendPID(idler));
    assert_note(&h, "vacuum", HK_NOTE_WARN, pid);
    const struct hk_health_note *note = note_on(&h, "vacuum", HK_NOTE_WARN, "nightly");
    assert_true(note && strstr(note->text, "idle in transaction") && !strchr(note->text, '\x1b'));
    assert_note(&h, "vacuum", HK_NOTE_WARN, "two-phase");
    pg_exec(idler, "COMMIT");
    pg_exec(other, "ROLLBACK PREPARED 'two-phase'");
    assert_int_equal(hk_pa_inspect_with(pg_url(NULL, ""), &strict, &h, &err), HK_OK);
    assert_note(&h, "vacuum", HK_NOTE_OK, "nothing");
    pg_exec(other, "SELECT pg_drop_replication_slot('left_behind')");
    PQfinish(idler);
    PQfinish(other);
}

static void missing_rights_and_connections_are_told(void **state)
{
    (void)state;
    static const struct hk_pa_limits limits = {
        .held_s = 300, .held_xids = 1000000, .connections = 1000, .clock_ms = -1};
    struct hk_store_health h;
    struct hk_err err = {0};
    grant("pa_relay", "pa_viewer");
    assert_int_equal(hk_pa_inspect_with(pg_url("pa_relay", ""), &limits, &h, &err), HK_OK);
    assert_int_equal(h.schema, HK_OK);
    for (size_t i = 0; i < h.n_notes; i++)
        assert_string_not_equal(h.notes[i].about, "rights");
    assert_note(&h, "connections", HK_NOTE_WARN, "max_connections");
    assert_note(&h, "vacuum", HK_NOTE_WARN, "pg_read_all_stats");
    store_kind->sql(
        "REVOKE DELETE ON outbox FROM pa_relay; REVOKE SELECT, DELETE ON outbox_bucket FROM pa_relay; "
        "ALTER ROLE pa_relay CONNECTION LIMIT 7");
    assert_int_equal(hk_pa_inspect_with(pg_url("pa_relay", ""), &limits, &h, &err), HK_OK);
    assert_note(&h, "rights", HK_NOTE_WARN, "DELETE on \"public\".\"outbox\", ");
    assert_note(&h, "rights", HK_NOTE_WARN, "SELECT, DELETE on \"public\".\"outbox_bucket\"");
    assert_note(&h, "connections", HK_NOTE_WARN, "6 free");
    char sql[100];
    snprintf(sql, sizeof sql, "ALTER DATABASE %s SET default_transaction_read_only = on", pg_database());
    store_kind->sql(sql);
    /* target_session_attrs=read-write, which is the default, would not even connect */
    assert_int_equal(hk_pa_inspect_with(pg_url(NULL, "&target_session_attrs=any"), &limits, &h, &err), HK_OK);
    assert_note(&h, "server", HK_NOTE_FAIL, "read_only");
    snprintf(sql, sizeof sql, "SET default_transaction_read_only = off; ALTER DATABASE %s RESET ALL",
             pg_database());
    store_kind->sql(sql);
    ungrant();
}

static const struct admin_dialect dialect = {
    .bytes = "SELECT encoding || payload FROM outbox WHERE id = 1",
    .bytes_value = "base64YQBi",
    .refuse =
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON outbox FOR EACH ROW WHEN (new.event_type = 'B') EXECUTE FUNCTION no()",
    .allow = "DROP TRIGGER t ON outbox",
};

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    static struct CMUnitTest tests[120];
    const struct CMUnitTest own[] = {
        TEST(an_act_waits_for_the_claim_that_is_under_way),
        TEST(a_claim_waits_for_the_act_and_sees_the_row_gone),
        TEST(an_act_follows_a_shard_to_its_new_owner),
        TEST(a_free_shard_is_not_taken_during_an_act),
        TEST(a_lock_is_waited_for_only_so_long),
        TEST(nothing_is_both_cancelled_and_claimed),
        TEST(not_even_where_repeatable_read_is_the_default),
        TEST(an_act_whose_outcome_is_unknown_is_told_as_such),
        TEST(large_tables_are_estimated),
        TEST(rows_that_hold_anything_are_shown),
        TEST(long_names_can_move_to_every_table),
        TEST(payloads_are_cut_by_bytes),
        TEST(what_cannot_be_written_is_refused_by_its_number),
        TEST(printed_grants_are_enough),
        TEST(schema_and_prefix_hold_everywhere),
        TEST(health_is_told_of_sound_and_unsound_places),
        TEST(functions_that_everybody_may_run_as_the_owner_are_found),
        TEST(who_holds_vacuum_back_is_named),
        TEST(missing_rights_and_connections_are_told),
    };
    store_kind = &pg_kind;
    admin_ops = &OPS;
    admin_dialect = &dialect;
    const int *ended_early = pg_server_start();
    if (ended_early)
        return *ended_early;
    size_t n = admin_suite_tests(tests, COUNT(tests) - COUNT(own));
    n += admin_clock_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    n += admin_define_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    n += admin_list_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    n += admin_series_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    n += admin_bulk_tests(tests + n, COUNT(tests) - COUNT(own) - n);
    memcpy(tests + n, own, sizeof own);
    return _cmocka_run_group_tests("operators (postgres)", tests, n + COUNT(own), NULL, NULL);
}
