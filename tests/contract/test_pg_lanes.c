/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes on PostgreSQL: how they share the shards, hand them over and take them over, and why a stalled relay neither
 * overwrites anything nor is in anybody's way. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "pg_relay.h"
#include "store/pg/stmt.h"

#define TEST(name)           cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define LEASE_MS             30000
#define ROUND_MS             250 /* upkeep, by the store's clock */
#define assert_count(sql, n) assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)

enum {
    LANES_MAX = 66
};

struct fleet {
    struct hk_store *stores[LANES_MAX];
    int64_t lanes[LANES_MAX];
    bool reset[LANES_MAX]; /* told in the last round */
    int n;
};

static void join(struct fleet *f)
{
    f->stores[f->n] = suite_open(NULL);
    f->lanes[f->n] = suite_acquire(f->stores[f->n]);
    f->n++;
}

/* Everybody looks round once. */
static void look_round(struct fleet *f)
{
    suite_clock_ms += ROUND_MS;
    for (int i = 0; i < f->n; i++)
        if (f->stores[i])
            f->reset[i] = relay_poll(f->stores[i])->reset;
}

static void settle_down(struct fleet *f)
{
    for (int i = 0; i < 3; i++)
        look_round(f);
}

static void disband(struct fleet *f)
{
    for (int i = 0; i < f->n; i++)
        if (f->stores[i])
            suite_close(f->stores[i]);
    f->n = 0;
}

static void leave(struct fleet *f, int i)
{
    assert_int_equal(store_kind->ops->release(f->stores[i], f->lanes[i], NULL), HK_OK);
    suite_close(f->stores[i]);
    f->stores[i] = NULL;
}

static int shards_of(int64_t lane)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM outbox_shard WHERE lane = %lld", (long long)lane);
    return (int)suite_number(sql);
}

static int64_t owner_of(int shard)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT coalesce(lane, 0) FROM outbox_shard WHERE shard = %d", shard);
    return suite_number(sql);
}

/* ---- sharing ---- */

static void lanes_share_the_shards_fairly(void **state)
{
    (void)state;
    static const int sizes[] = {1, 2, 3, 64, 66};
    static struct fleet f;
    for (size_t k = 0; k < COUNT(sizes); k++) {
        while (f.n < sizes[k])
            join(&f);
        settle_down(&f);
        int sum = 0, least = 64, most = 0;
        for (int i = 0; i < f.n; i++) {
            int have = shards_of(f.lanes[i]);
            sum += have;
            least = have < least ? have : least;
            most = have > most ? have : most;
        }
        NOTE_IF(sum != 64 || most - least > 1, "%d lanes: %d shards, %d to %d each\n", f.n, sum, least, most);
        assert_int_equal(sum, 64);
        assert_true(most - least <= 1);
    }
    disband(&f);
}

static void who_leaves_is_shared_out_among_the_others(void **state)
{
    (void)state;
    struct fleet f = {0};
    for (int i = 0; i < 3; i++)
        join(&f);
    settle_down(&f);
    leave(&f, 1);
    look_round(&f);
    assert_int_equal(shards_of(f.lanes[0]), 32);
    assert_int_equal(shards_of(f.lanes[2]), 32);
    assert_true(f.reset[0] && f.reset[2]);
    leave(&f, 0);
    look_round(&f);
    assert_int_equal(shards_of(f.lanes[2]), 64);
    disband(&f);
}

static void who_gains_begins_anew_and_who_loses_goes_on(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    look_round(&f);
    assert_false(f.reset[0]);
    join(&f);
    look_round(&f); /* the first lets go, and the second takes */
    assert_false(f.reset[0]);
    assert_true(f.reset[1]);
    look_round(&f);
    assert_false(f.reset[0]);
    assert_false(f.reset[1]);
    disband(&f);
}

static void each_message_is_one_relays(void **state)
{
    (void)state;
    struct fleet f = {0};
    for (int i = 0; i < 3; i++)
        join(&f);
    settle_down(&f);
    store_kind->sql("INSERT INTO outbox (destination, event_type, message_key) SELECT 'a', 'Made', "
                    "CASE WHEN g % 2 = 0 THEN 'k' || g % 7 END FROM generate_series(1, 200) g");
    int owners[201] = {0};
    for (int i = 0; i < f.n; i++) {
        const struct hk_heads *heads = NULL;
        relay_poll(f.stores[i]);
        assert_int_equal(store_kind->ops->scan(f.stores[i], &(struct hk_scan){.limit = 300}, &heads, NULL),
                         HK_OK);
        assert_true(heads->n > 20);
        struct hk_want wants[300];
        for (size_t k = 0; k < heads->n; k++) {
            owners[heads->items[k].id]++;
            wants[k] = (struct hk_want){HK_FROM_OUTBOX, heads->items[k].id, false};
        }
        size_t n = heads->n;
        assert_int_equal(suite_exchange(f.stores[i], f.lanes[i], NULL, 0, wants, n)->n_messages, n);
    }
    for (int id = 1; id <= 200; id++)
        assert_int_equal(owners[id], 1);
    assert_count("(SELECT DISTINCT shard, message_key FROM outbox WHERE message_key IS NOT NULL) x", 7);
    disband(&f);
}

static void anothers_messages_cannot_be_claimed(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    join(&f);
    settle_down(&f);
    suite_fill(64, "a", NULL);
    for (int i = 0; i < 2; i++) {
        struct hk_want wants[64];
        for (int k = 0; k < 64; k++)
            wants[k] = (struct hk_want){HK_FROM_OUTBOX, k + 1, true};
        const struct hk_exchanged *done = suite_exchange(f.stores[i], f.lanes[i], NULL, 0, wants, 64);
        assert_int_equal(done->n_messages, 32);
        for (size_t k = 0; k < done->n_messages; k++)
            assert_int_equal(owner_of((int)(done->messages[k].id & 63)), f.lanes[i]);
    }
    assert_int_equal(suite_number("SELECT sum(cardinality(ids)) FROM outbox_claim"), 64);
    disband(&f);
}

static void retries_and_held_keys_are_their_shards(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    suite_fill(64, "a", NULL);
    suite_fill(1, "a", "key");
    for (int64_t id = 1; id <= 65; id++) {
        struct hk_settle s = suite_settle(suite_claim(f.stores[0], f.lanes[0], HK_FROM_OUTBOX, id),
                                          HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
        s.due_ms = suite_clock_ms;
        suite_settle_one(f.stores[0], f.lanes[0], &s);
    }
    join(&f);
    settle_down(&f);
    size_t heads_in_all = 0, keys_in_all = 0, dests = 0;
    for (int i = 0; i < 2; i++) {
        const struct hk_heads *heads = NULL;
        const struct hk_held_key *keys = NULL;
        size_t n_keys = 0;
        store_kind->sql("SELECT pg_current_xact_id()");
        const struct hk_poll *poll = relay_poll(f.stores[i]);
        dests += poll->n_dests;
        const struct hk_scan scan = {.source = HK_FROM_RETRY, .destination = "a", .limit = 99};
        assert_int_equal(store_kind->ops->scan(f.stores[i], &scan, &heads, NULL), HK_OK);
        heads_in_all += heads->n;
        assert_true(heads->n >= 32 && heads->n <= 33);
        assert_int_equal(store_kind->ops->held_keys(f.stores[i], &keys, &n_keys, NULL), HK_OK);
        keys_in_all += n_keys;
    }
    assert_int_equal(heads_in_all, 65);
    assert_int_equal(keys_in_all, 1);
    assert_int_equal(dests, 2);
    disband(&f);
}

/* It waits for its share, and reads nothing meanwhile. */
static void a_lane_without_shards_sees_nothing_and_is_well(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    suite_fill(3, "a", "k");
    struct hk_settle s = suite_settle(suite_claim(f.stores[0], f.lanes[0], HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX,
                                      1, HK_SETTLE_RETRY);
    s.due_ms = suite_clock_ms;
    suite_settle_one(f.stores[0], f.lanes[0], &s);
    join(&f);
    assert_int_equal(shards_of(f.lanes[1]), 0);
    const struct hk_poll *poll = relay_poll(f.stores[1]);
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    assert_int_equal(poll->n_dests, 0);
    assert_string_equal(relay_scan(f.stores[1], (struct hk_scan){.limit = 9}), "");
    assert_string_equal(relay_scan(f.stores[1], (struct hk_scan){.destination = "a", .limit = 9}), "");
    assert_string_equal(
        relay_scan(f.stores[1], (struct hk_scan){.source = HK_FROM_RETRY, .destination = "a", .limit = 9}),
        "");
    assert_int_equal(store_kind->ops->held_keys(f.stores[1], &keys, &n, NULL), HK_OK);
    assert_int_equal(n, 0);
    const struct hk_want claim = {HK_FROM_OUTBOX, 2, true};
    assert_int_equal(suite_exchange(f.stores[1], f.lanes[1], NULL, 0, &claim, 1)->n_messages, 0);
    disband(&f);
}

static void cut_all(void)
{
    store_kind->value("SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
                      "WHERE application_name = 'hikyaku' AND datname = current_database()");
}

/* As after a fail-over to a standby that had not heard of it yet. */
static void a_new_connection_claims_only_what_the_server_says_is_ours(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    suite_fill(2, "a", NULL); /* shards 1 and 2 */
    store_kind->sql("UPDATE outbox_shard SET lane = NULL WHERE shard = 1");
    cut_all();
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    const struct hk_exchanged *done = suite_exchange(f.stores[0], f.lanes[0], NULL, 0, wants, 2);
    assert_int_equal(done->n_messages, 1);
    assert_int_equal(done->messages[0].id, 2);
    look_round(&f); /* and takes it again */
    assert_int_equal(suite_exchange(f.stores[0], f.lanes[0], NULL, 0, wants, 2)->n_messages, 1);
    disband(&f);
}

/* Its last exchange never was; the lane was there before. */
static void a_lane_is_lost_when_the_server_has_forgotten_what_it_did(void **state)
{
    (void)state;
    static const char *const forgotten[] = {
        "DELETE FROM outbox_exchange",
        "UPDATE outbox_relay SET boot = 'anothers'",
        "DELETE FROM outbox_claim; UPDATE outbox_shard SET lane = NULL; DELETE FROM outbox_relay",
    };
    for (size_t i = 0; i < COUNT(forgotten); i++) {
        struct fleet f = {0};
        const struct hk_exchanged *done = NULL;
        join(&f);
        store_kind->sql("TRUNCATE outbox");
        suite_fill(2, "a", NULL);
        const struct hk_want claim = {HK_FROM_OUTBOX, suite_number("SELECT min(id) FROM outbox"), true};
        int64_t manifest = suite_exchange(f.stores[0], f.lanes[0], NULL, 0, &claim, 1)->claim;
        const struct hk_settle sent = suite_settle(manifest, HK_FROM_OUTBOX, claim.id, HK_SETTLE_SENT);
        const struct hk_exchange x = {
            .lane = f.lanes[0], .lease_ms = 30000, .settles = &sent, .n_settles = 1};
        cut_all();
        relay_poll(f.stores[0]); /* nothing is forgotten: it goes on */
        cut_all();
        store_kind->sql(forgotten[i]);
        assert_int_equal(store_kind->ops->exchange(f.stores[0], &x, &done, NULL), HK_CONFLICT);
        assert_true(done->stale[0]);
        assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 2);
        store_kind->sql(
            "DELETE FROM outbox_claim; UPDATE outbox_shard SET lane = NULL; DELETE FROM outbox_relay");
        suite_close(f.stores[0]);
    }
}

/* ---- hand-over ---- */

static void a_shard_is_handed_over_with_nothing_in_hand(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    suite_fill(128, "a", NULL); /* without key: the shard is the id's */
    int64_t claim = suite_claim(f.stores[0], f.lanes[0], HK_FROM_OUTBOX, 63);
    for (int64_t id = 1; id < 63; id++) /* all but shard 0 */
        suite_claim(f.stores[0], f.lanes[0], HK_FROM_OUTBOX, id);
    join(&f);
    settle_down(&f);
    /* It is to give up 32, holds 63 of them, and lets go of what it can at once. */
    assert_int_equal(owner_of(0), f.lanes[1]);
    assert_int_equal(shards_of(f.lanes[0]), 63);
    assert_int_equal(owner_of(63), f.lanes[0]);
    relay_poll(f.stores[0]);
    const struct hk_want next = {HK_FROM_OUTBOX, 127, true}; /* the same shard: it is not read any more */
    assert_int_equal(suite_exchange(f.stores[0], f.lanes[0], NULL, 0, &next, 1)->n_messages, 0);
    assert_null(strstr(relay_scan(f.stores[0], (struct hk_scan){.limit = 200}), "127"));
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 63, HK_SETTLE_RETRY);
    suite_settle_one(f.stores[0], f.lanes[0], &s);
    look_round(&f);
    look_round(&f);
    assert_int_equal(owner_of(63), f.lanes[1]);
    assert_int_equal(shards_of(f.lanes[0]), 62);
    assert_int_equal(suite_exchange(f.stores[1], f.lanes[1], NULL, 0, &next, 1)->n_messages, 1);
    disband(&f);
}

static void what_was_to_be_handed_over_is_kept_when_nobody_wants_it_any_more(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    suite_fill(128, "a", NULL);
    for (int64_t id = 1; id <= 64; id++) /* something of each shard is in hand */
        suite_claim(f.stores[0], f.lanes[0], HK_FROM_OUTBOX, id);
    join(&f);
    look_round(&f);
    const struct hk_want next = {HK_FROM_OUTBOX, 127, true};
    assert_int_equal(suite_exchange(f.stores[0], f.lanes[0], NULL, 0, &next, 1)->n_messages, 0);
    leave(&f, 1);
    look_round(&f);
    assert_true(f.reset[0]);
    assert_int_equal(suite_exchange(f.stores[0], f.lanes[0], NULL, 0, &next, 1)->n_messages, 1);
    assert_int_equal(shards_of(f.lanes[0]), 64);
    disband(&f);
}

/* ---- take-over ---- */

static void what_a_dead_relay_had_is_taken_over_by_a_live_one(void **state)
{
    (void)state;
    struct fleet f = {0};
    join(&f);
    join(&f);
    settle_down(&f);
    suite_fill(64, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 32, true}, {HK_FROM_OUTBOX, 63, true}};
    int dead = owner_of(63) == f.lanes[0] ? 0 : 1, live = 1 - dead;
    assert_int_equal(suite_exchange(f.stores[dead], f.lanes[dead], NULL, 0, wants, 2)->n_messages, 2);
    suite_clock_ms += LEASE_MS - 1;
    suite_exchange(f.stores[live], f.lanes[live], NULL, 0, NULL, 0);
    relay_poll(f.stores[live]);
    assert_int_equal(shards_of(f.lanes[live]), 32);
    suite_clock_ms += 1 + LEASE_MS / 16 + ROUND_MS; /* what a busy lane's lease has on top */
    const struct hk_poll *poll = relay_poll(f.stores[live]);
    assert_true(poll->reset);
    assert_int_equal(poll->n_dests, 1); /* its messages are due */
    assert_int_equal(shards_of(f.lanes[live]), 64);
    assert_count("outbox_retry WHERE crashes = 1 AND claim IS NULL", 2);
    assert_count("outbox_claim", 0);
    assert_count("outbox_relay", 1);
    struct hk_err err;
    assert_int_equal(store_kind->ops->poll(f.stores[dead], &poll, &err), HK_CONFLICT);
    disband(&f);
}

/* Somebody has a row of it locked: that must not keep a healthy relay from its work. */
static void a_take_over_that_cannot_be_made_now_is_made_later(void **state)
{
    (void)state;
    struct hk_store *dead = suite_open(NULL);
    suite_acquire(dead);
    suite_fill(1, "a", NULL);
    suite_claim(dead, suite_number("SELECT lane FROM outbox_relay"), HK_FROM_OUTBOX, 1);
    PGconn *person = pg_connect(NULL);
    pg_exec(person, "BEGIN; SELECT 1 FROM outbox FOR UPDATE");
    suite_clock_ms += LEASE_MS;
    struct hk_store *live = suite_open(&(struct hk_store_options){.busy_ms = 100});
    suite_acquire(live);
    assert_true(relay_poll(live)->changed);
    assert_count("outbox_relay", 2);
    pg_exec(person, "COMMIT");
    suite_clock_ms += 10000;
    assert_true(relay_poll(live)->reset);
    assert_count("outbox_relay", 1);
    assert_count("outbox_retry WHERE crashes = 1", 1);
    PQfinish(person);
    suite_close(dead);
    suite_close(live);
}

/* Between the look that finds it dead and the take-over a relay that was only late may have renewed its lease. */
static void a_lane_that_came_back_in_time_is_not_taken_over(void **state)
{
    (void)state;
    static const struct hk_pg_url plain;
    struct hk_store *late = suite_open(NULL);
    char lane[24], now[24];
    struct hk_buf text;
    snprintf(lane, sizeof lane, "%lld", (long long)suite_acquire(late));
    hk_buf_init(&text, (size_t)64 * 1024);
    hk_pg_url_names(&plain, hk_pg_sql(HK_PG_TAKE_OVER), &text);
    PGconn *other = pg_connect(NULL);
    for (int is_dead = 0; is_dead <= 1; is_dead++) {
        snprintf(now, sizeof now, "%lld", (long long)suite_clock_ms + LEASE_MS - 1 + is_dead);
        const char *const args[] = {lane, "99", now};
        PGresult *res = PQexecParams(other, hk_buf_cstr(&text), 3, NULL, args, NULL, NULL, 0);
        assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
        assert_string_equal(PQcmdTuples(res), is_dead ? "1" : "0");
        PQclear(res);
    }
    PQfinish(other);
    hk_buf_fini(&text);
    suite_close(late);
}

/* Whoever has a retry row by now settles it, even while the manifest stands that it was in. */
static void a_retry_that_is_in_other_hands_is_not_settled(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    int64_t claim = suite_claim(store, lane, HK_FROM_RETRY, 1);
    store_kind->sql("UPDATE outbox_retry SET claim = claim + 1");

    const enum hk_settle_kind kinds[] = {HK_SETTLE_RETRY, HK_SETTLE_SENT};

    for (size_t i = 0; i < COUNT(kinds); i++) {
        s = suite_settle(claim, HK_FROM_RETRY, 1, kinds[i]);
        suite_exchange(store, lane, &s, 1, NULL, 0);
        assert_count("outbox_retry WHERE claim IS NOT NULL AND attempts = 1", 1);
        assert_count("outbox_sent", 0);
    }
    suite_close(store);
}

/* Two that purge at the same time would wait for each other: who finds another one at it leaves it to him. */
static void one_relay_purges_at_a_time(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint32_t deleted = 9;
    keep.sent_ms = 1000;
    store_kind->sql("INSERT INTO outbox_sent (message_id, destination, event_type, attempts, status, life, "
                    "sent_ms) VALUES ('m', 'a', 'Made', 1, 200, 1, 1)");
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; SELECT 1 FROM outbox_turn WHERE name = 'purge' FOR UPDATE");
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, NULL), HK_OK);
    assert_int_equal(deleted, 0);
    pg_exec(other, "ROLLBACK");
    PQfinish(other);
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, NULL), HK_OK);
    assert_int_equal(deleted, 1);
    suite_close(store);
}

/* Rows of hundreds of megabytes: whoever has no more than the usual ten seconds never gets them moved. */
static void forbid_haste(void)
{
    store_kind->sql(
        "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN "
        "IF current_setting('statement_timeout')::interval <= '10 s' THEN RAISE query_canceled; END IF; "
        "RETURN NEW; END$$; "
        "CREATE TRIGGER slow BEFORE INSERT ON outbox_retry FOR EACH ROW EXECUTE FUNCTION slow()");
}

static enum hk_code try_again_later(struct hk_store *store, int64_t lane, int64_t claim, int64_t id)
{
    struct hk_settle settle = suite_settle(claim, HK_FROM_OUTBOX, id, HK_SETTLE_RETRY);
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .settles = &settle, .n_settles = 1};
    const struct hk_exchanged *done = NULL;
    return store_kind->ops->exchange(store, &x, &done, NULL);
}

static void what_takes_too_long_is_given_more_time_for_a_while(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", "");
    int64_t claims[] = {suite_claim(store, lane, HK_FROM_OUTBOX, 1),
                        suite_claim(store, lane, HK_FROM_OUTBOX, 2)};
    forbid_haste();
    assert_int_equal(try_again_later(store, lane, claims[0], 1), HK_BUSY);
    assert_int_equal(try_again_later(store, lane, claims[0], 1), HK_OK);
    /* nobody else thinks meanwhile that the relay is dead */
    assert_true(suite_number("SELECT until_ms FROM outbox_relay") >= suite_clock_ms + LEASE_MS + 40000);
    for (int i = 0; i < 3; i++)
        (void)suite_exchange(store, lane, NULL, 0, NULL, 0); /* quick ones */
    assert_int_equal(try_again_later(store, lane, claims[1], 2), HK_BUSY);
    assert_int_equal(try_again_later(store, lane, claims[1], 2), HK_OK);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 2);
    suite_close(store);
}

static void what_a_dead_relay_had_is_taken_over_however_large(void **state)
{
    (void)state;
    struct hk_store *dead = suite_open(NULL), *live = suite_open(NULL);
    int64_t lane = suite_acquire(dead);
    suite_fill(1, "a", "");
    (void)suite_claim(dead, lane, HK_FROM_OUTBOX, 1);
    suite_close(dead);
    forbid_haste();
    suite_clock_ms += 2 * LEASE_MS;
    (void)suite_acquire(live);
    for (int i = 0; i < 3 && suite_number("SELECT count(*) FROM outbox_retry") == 0; i++) {
        suite_clock_ms += 10000;
        (void)relay_poll(live);
    }
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry"), 1);
    suite_close(live);
}

static void a_shard_of_a_lane_that_is_not_there_is_free(void **state)
{
    (void)state;
    struct fleet f = {0};
    store_kind->sql("UPDATE outbox_shard SET lane = 999");
    join(&f);
    assert_int_equal(shards_of(f.lanes[0]), 64);
    store_kind->sql("UPDATE outbox_shard SET lane = 998 WHERE shard < 10");
    look_round(&f);
    assert_int_equal(shards_of(f.lanes[0]), 64);
    assert_true(f.reset[0]);
    disband(&f);
}

/* ---- the fence ---- */

static void a_stale_claim_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct hk_store *stalled = suite_open(NULL), *live = suite_open(NULL);
    int64_t lane = suite_acquire(stalled);
    suite_fill(2, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(stalled, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.due_ms = suite_clock_ms;
    suite_settle_one(stalled, lane, &s);
    suite_clock_ms += LEASE_MS;
    suite_acquire(live);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 2, true}, {HK_FROM_RETRY, 1, true}};
    for (size_t n = 1; n <= 2; n++) {
        const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .wants = wants, .n_wants = n};
        const struct hk_exchanged *done = NULL;
        struct hk_err err;
        assert_int_equal(store_kind->ops->exchange(stalled, &x, &done, &err), HK_CONFLICT);
        assert_int_equal(done->n_messages, 0);
    }
    assert_count("outbox_claim", 0);
    assert_count("outbox_retry WHERE claim IS NULL", 1);
    assert_count("outbox", 1);
    suite_close(stalled);
    suite_close(live);
}

struct stalled {
    struct hk_store *store;
    struct hk_exchange x;
    const struct hk_exchanged *done;
    enum hk_code rc;
};

static void *exchange_it(void *arg)
{
    struct stalled *s = arg;
    struct hk_err err;
    s->rc = store_kind->ops->exchange(s->store, &s->x, &s->done, &err);
    return NULL;
}

/* The first hole: a settle that has begun when the take-over has not yet ended. What it checks without the lane's row in hand
 * would still stand for it; what it changes would come after the take-over. */
static void a_settle_in_the_middle_of_a_take_over_waits_and_is_stale(void **state)
{
    (void)state;

    static const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT, HK_SETTLE_RETRY, HK_SETTLE_DEAD,
                                                HK_SETTLE_DEFER};

    for (size_t k = 0; k < COUNT(kinds); k++) {
        struct stalled s = {.store = suite_open(NULL)};
        int64_t lane = suite_acquire(s.store);
        suite_fill(1, "a", NULL);
        int64_t id = suite_number("SELECT max(id) FROM outbox");
        struct hk_settle settle =
            suite_settle(suite_claim(s.store, lane, HK_FROM_OUTBOX, id), HK_FROM_OUTBOX, id, kinds[k]);
        s.x = (struct hk_exchange){.lane = lane, .lease_ms = LEASE_MS, .settles = &settle, .n_settles = 1};
        /* By hand, so that it can be stopped in the middle; the same statements, in the same order. */
        PGconn *taker = pg_connect(NULL);
        pg_exec(taker, "BEGIN; SELECT 1 FROM outbox_relay FOR UPDATE");
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, exchange_it, &s), 0);
        while (suite_number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'hikyaku' "
                            "AND wait_event_type = 'Lock' AND datname = current_database()") == 0)
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        pg_exec(
            taker,
            "WITH d AS (DELETE FROM outbox RETURNING *) INSERT INTO outbox_retry (original_outbox_id, message_id, "
            "destination, event_type, payload, due_ms, crashes) SELECT id, message_id, destination, event_type, "
            "payload, 0, 1 FROM d; DELETE FROM outbox_claim; UPDATE outbox_shard SET lane = NULL; "
            "DELETE FROM outbox_relay; COMMIT");
        pthread_join(thread, NULL);
        assert_int_equal(s.rc, HK_CONFLICT);
        assert_true(s.done->stale[0]);
        assert_count("outbox_retry WHERE crashes = 1 AND attempts = 0 AND due_ms = 0", 1);
        assert_count("outbox_sent", 0);
        assert_count("dead_letters", 0);
        assert_count("outbox_attempts", 0);
        store_kind->sql("DELETE FROM outbox_retry");
        PQfinish(taker);
        suite_close(s.store);
    }
}

/* In a child: works as fast as it can, until its lane is gone. */
static void work_until_taken_over(int ready)
{
    struct relay relay;
    int64_t now_ms;
    struct hk_store_options options = {.keep_sent = true};
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* stopped as it may be */
    assert_int_equal(store_kind->ops->open(store_kind->url(), &options, &relay.store, NULL), HK_OK);
    assert_int_equal(store_kind->ops->acquire(relay.store, "child", "b", 400, &relay.lane, &now_ms, NULL),
                     HK_OK);
    assert_int_equal(write(ready, "x", 1), 1);
    for (;;) {
        const struct hk_exchange x = {.lane = relay.lane, .lease_ms = 400};
        const struct hk_exchanged *done = NULL;
        enum hk_code rc = store_kind->ops->exchange(relay.store, &x, &done, NULL);
        if (rc == HK_CONFLICT)
            _exit(0);
        if (rc != HK_OK)
            _exit(1);
    }
}

/* The second hole: a relay that is stopped anywhere, in the middle of an exchange, too, holds no lock that a take-over would
 * have to wait for. */
static void a_relay_that_is_stopped_anywhere_is_in_nobodys_way(void **state)
{
    (void)state;
    struct hk_store *live = NULL;
    struct hk_store_options options = {.busy_ms = 1000};
    assert_int_equal(store_kind->ops->open(store_kind->url(), &options, &live, NULL), HK_OK);
    int64_t lane = suite_acquire(live);
    for (int round = 0; round < 6; round++) {
        int ready[2], status = 0;
        char c;
        assert_int_equal(pipe(ready), 0);
        pid_t child = fork();
        if (child == 0)
            work_until_taken_over(ready[1]);
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        nanosleep(&(struct timespec){.tv_nsec = 20000000 + round * 3137000}, NULL);
        assert_int_equal(kill(child, SIGSTOP), 0);
        for (int i = 0; i < 200 && suite_number("SELECT count(*) FROM outbox_relay WHERE name = 'child'");
             i++) {
            suite_exchange(live, lane, NULL, 0, NULL, 0);
            relay_poll(live);
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        }
        assert_count("outbox_relay WHERE name = 'child'", 0);
        assert_int_equal(kill(child, SIGCONT), 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        close(ready[0]);
    }
    suite_close(live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lanes_share_the_shards_fairly),
        TEST(who_leaves_is_shared_out_among_the_others),
        TEST(who_gains_begins_anew_and_who_loses_goes_on),
        TEST(each_message_is_one_relays),
        TEST(anothers_messages_cannot_be_claimed),
        TEST(retries_and_held_keys_are_their_shards),
        TEST(a_lane_without_shards_sees_nothing_and_is_well),
        TEST(a_new_connection_claims_only_what_the_server_says_is_ours),
        TEST(a_lane_is_lost_when_the_server_has_forgotten_what_it_did),
        TEST(a_shard_is_handed_over_with_nothing_in_hand),
        TEST(what_was_to_be_handed_over_is_kept_when_nobody_wants_it_any_more),
        TEST(what_a_dead_relay_had_is_taken_over_by_a_live_one),
        TEST(a_take_over_that_cannot_be_made_now_is_made_later),
        TEST(a_lane_that_came_back_in_time_is_not_taken_over),
        TEST(a_retry_that_is_in_other_hands_is_not_settled),
        TEST(one_relay_purges_at_a_time),
        TEST(what_takes_too_long_is_given_more_time_for_a_while),
        TEST(what_a_dead_relay_had_is_taken_over_however_large),
        TEST(a_shard_of_a_lane_that_is_not_there_is_free),
        TEST(a_stale_claim_is_refused_and_changes_nothing),
        TEST(a_settle_in_the_middle_of_a_take_over_waits_and_is_stale),
        TEST(a_relay_that_is_stopped_anywhere_is_in_nobodys_way),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL lanes", tests, NULL, NULL);
}
