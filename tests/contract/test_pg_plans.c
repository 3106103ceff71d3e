/* SPDX-License-Identifier: Apache-2.0 */
/* How PostgreSQL goes about the relay's statements. A relay starts on an empty table and keeps the plans that it made there;
 * what is good enough for nothing must do for millions. So no statement walks through a table that grows, whether it was
 * planned on an empty one or on a full one. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "pg_relay.h"
#include "store/pg/admin_stmt.h"
#include "store/pg/stmt.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

#define NAME "(\"left\"(destination, 63))"

/* An index, and what a search in it must know: what it begins with, and perhaps more. */
static const struct {
    const char *name, *column, *more;
} indexes[] = {
    {"outbox_pkey", "(id ", NULL},
    {"outbox_by_destination", NAME, NULL},
    {"outbox_by_key", NAME, "(hashtextextended(message_key, "},
    {"outbox_claim_pkey", "(claim ", NULL},
    {"outbox_exchange_pkey", "(lane ", NULL},
    {"outbox_bucket_pkey", "(destination ", NULL},
    {"outbox_seats_pkey", "(destination ", NULL},
    {"outbox_retry_forced", "(ROW(due_ms, ", NULL},
    {"outbox_retry_pkey", "(id ", NULL},
    {"outbox_stuck_pkey", "(source ", "(row_id "},
    {"outbox_retry_due", NAME, NULL},
    {"outbox_retry_claim", "(claim ", NULL},
    {"outbox_retry_key", NAME, "(hashtextextended(message_key, "},
    {"outbox_retry_message", "(message_id ", NULL},
    {"outbox_sent_pkey", "(id ", NULL},
    {"outbox_attempts_pkey", "(id ", NULL},
    {"outbox_cancelled_pkey", "(id ", NULL},
    {"outbox_audit_pkey", "(id ", NULL},
    {"dead_letters_pkey", "(id ", NULL},
    {"dead_letters_done", "(status ", NULL},
    {"dead_letters_created", "(created_at ", NULL},
    {"outbox_api_calls_created", "(created_ms ", NULL},
    {"outbox_api_calls_pkey", "(id ", NULL},
    {"outbox_series_at", "(step_ms ", NULL},
    {"outbox_series_pkey", "(id ", NULL},
};

/* Tables of a few rows, whatever happens: they may be read whole. */
static const char *const small[] = {"outbox_shard", "outbox_relay",  "outbox_destination",
                                    "outbox_quota", "outbox_id_seq", "outbox_redrive",
                                    "outbox_turn",  "outbox_stuck",  "outbox_definitions"};

/* Walks along an index from its start, with a limit or because all of it is wanted. */
static bool walks(unsigned id)
{
    return id == HK_PG_DESTS || id == HK_PG_HELD_RETRY || id == HK_PG_HELD_DEAD || id == HK_PG_PURGE ||
           id == HK_PG_PURGE_AUDIT || id == HK_PG_DEFINITIONS;
}

/* Reads all manifests: when a lane ends, or when an answer was lost. */
static bool reads_manifests(unsigned id)
{
    return id == HK_PG_TAKE_OVER || id == HK_PG_ORPHANS || id == HK_PG_STICK_ORPHANS ||
           id == HK_PG_ORPHAN_RETRIES || id == HK_PG_DROP_ORPHANED_CLAIMS || id == HK_PG_FREE_RETRIES ||
           id == HK_PG_DROP_LANE_CLAIMS || id == HK_PG_FREE_STRAY_RETRIES || id == HK_PG_DROP_STRAY_CLAIMS ||
           id == HK_PG_UNSEALED_OF_LANE;
}

/* Looks for a key, which the destination's rows are not to be searched for. */
static bool goes_by_key(unsigned id, const char *line)
{
    if (id == HK_PG_SCAN_KEY)
        return strstr(line, "using outbox_by_key on") != NULL;
    return id != HK_PG_SCAN_RETRY_KEY || strstr(line, "using outbox_retry_key on");
}

/* Sorts what was limited before, or what it was given. */
static bool sorts(unsigned id)
{
    return id == HK_PG_SCAN_DEST || id == HK_PG_SCAN_DEST_WHOLE || id == HK_PG_SCAN_KEY ||
           id == HK_PG_SCAN_RETRY_KEY || id == HK_PG_QUOTAS || id == HK_PG_SEATS || id == HK_PG_CIRCUITS ||
           id == HK_PG_GUARDS;
}

static bool is_small(const char *table)
{
    for (size_t i = 0; i < COUNT(small); i++) {
        size_t len = strlen(small[i]);
        if (strncmp(table, small[i], len) == 0 && (table[len] == '\0' || table[len] == ' '))
            return true;
    }
    return strncmp(table, "pg_", 3) == 0;
}

/* Its condition, if the line is one, must begin where the index begins. */
static bool searches(const char *line, const char *condition)
{
    for (size_t i = 0; i < COUNT(indexes); i++) {
        char using[80];
        snprintf(using, sizeof using, "using %s on", indexes[i].name);
        if (strstr(line, using))
            return strstr(condition, "Index Cond:") && strstr(condition, indexes[i].column) &&
                   (!indexes[i].more || strstr(condition, indexes[i].more));
    }
    print_error("unknown index: %s\n", line);
    return false;
}

static bool is_fine(unsigned id, const char *line, const char *below)
{
    const char *seq = strstr(line, "Seq Scan on "), *on = strstr(line, " on ");
    if (strstr(line, "Bitmap") || strstr(line, "Hash Join") || strstr(line, "Merge Join") ||
        strstr(line, "Materialize"))
        return false;
    if (strstr(line, "->  Sort") || strncmp(line, "Sort", 4) == 0)
        return sorts(id);
    if (seq)
        return is_small(seq + strlen("Seq Scan on ")) || (reads_manifests(id) && strstr(seq, "outbox_claim"));
    if (strstr(line, "Index ") && strstr(line, " using ") && on)
        return is_small(on + 4) || walks(id) || strstr(line, "Scan Backward") /* the last one */ ||
               (goes_by_key(id, line) && searches(line, below));
    return true;
}

static void guard(PGconn *conn)
{
    for (const char *const *s = hk_pg_relay_table.settings; *s; s += 2) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT set_config('%s', '%s', false)", s[0], s[1]);
        pg_exec(conn, sql);
    }
}

static void prepare(PGconn *conn, unsigned id)
{
    static const struct hk_pg_url plain;
    struct hk_buf text;
    char name[20];
    hk_buf_init(&text, (size_t)64 * 1024);
    hk_pg_url_names(&plain, hk_pg_sql((enum hk_pg_id)id), &text);
    snprintf(name, sizeof name, "s%u", id);
    PGresult *res = PQprepare(conn, name, hk_buf_cstr(&text), 0, NULL);
    NOTE_IF(PQresultStatus(res) != PGRES_COMMAND_OK, "%s\n%s\n", PQerrorMessage(conn), hk_buf_cstr(&text));
    assert_int_equal(PQresultStatus(res), PGRES_COMMAND_OK);
    PQclear(res);
    hk_buf_fini(&text);
}

static PGresult *explain(PGconn *conn, unsigned id)
{
    char sql[400], name[20];
    snprintf(name, sizeof name, "s%u", id);
    PGresult *res = PQdescribePrepared(conn, name);
    int n = PQnparams(res), len = snprintf(sql, sizeof sql, "EXPLAIN (COSTS OFF) EXECUTE s%u", id);
    PQclear(res);
    for (int i = 0; i < n; i++)
        len +=
            snprintf(sql + len, sizeof sql - (size_t)len, "%sNULL%s", i ? ", " : " (", i == n - 1 ? ")" : "");
    res = PQexec(conn, sql);
    NOTE_IF(PQresultStatus(res) != PGRES_TUPLES_OK, "%s: %s\n", sql, PQerrorMessage(conn));
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    return res;
}

static bool daily;

/* All that there is. */
static bool is_used(unsigned id)
{
    return daily || id != HK_PG_SENT_DAYS;
}

static int check_plans(PGconn *conn, const char *when)
{
    int bad = 0;
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++) {
        PGresult *res = is_used(id) ? explain(conn, id) : NULL;
        for (int i = 0; i < PQntuples(res); i++) {
            const char *below = i + 1 < PQntuples(res) ? PQgetvalue(res, i + 1, 0) : "";
            if (is_fine(id, PQgetvalue(res, i, 0), below))
                continue;
            print_error("%s, statement %u: %s / %s\n", when, id, PQgetvalue(res, i, 0), below);
            bad++;
        }
        PQclear(res);
    }
    return bad;
}

static const char flood[] =
    "INSERT INTO outbox (destination, event_type, message_key, payload) SELECT 'd' || g % 5, 'Made', "
    "CASE WHEN g % 3 = 0 THEN 'k' || g % 50 END, 'p' FROM generate_series(1, 20000) g;"
    "INSERT INTO outbox_retry (original_outbox_id, due_ms, message_id, destination, event_type, message_key) SELECT g, g, "
    "'m' || g, 'd' || g % 5, 'Made', CASE WHEN g % 3 = 0 THEN 'k' || g % 50 END FROM generate_series(1, 5000) g;"
    "INSERT INTO dead_letters (message_id, event_type, destination, message_key, reason_code, attempts, first_failed_at, "
    "last_failed_at, created_at) SELECT 'm' || g, 'Made', 'd' || g % 5, CASE WHEN g % 3 = 0 THEN 'k' || g % 50 END, 'X', 1, "
    "now(), now(), now() FROM generate_series(1, 5000) g;"
    "INSERT INTO outbox_sent (sent_ms, attempts, status, life, message_id, destination, event_type) "
    "SELECT g, 1, 200, 1, 'm' || g, 'a', 'Made' FROM generate_series(1, 5000) g;"
    "INSERT INTO outbox_relay (name, boot, started_ms, until_ms) VALUES ('r', 'b', 0, 0);"
    "INSERT INTO outbox_claim (lane, claimed_ms, ids) SELECT 1, 0, ARRAY[g] FROM generate_series(1, 1000) g;";

static void check_all_plans(void)
{
    PGconn *worn_in = pg_connect(NULL), *late = pg_connect(NULL);
    guard(worn_in);
    guard(late);
    store_kind->sql("VACUUM ANALYZE");
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++)
        if (is_used(id))
            prepare(worn_in, id);
    int bad = check_plans(worn_in, "empty");
    store_kind->sql(flood);
    bad += check_plans(worn_in, "flooded, planned before");
    store_kind->sql("VACUUM ANALYZE");
    bad += check_plans(worn_in, "flooded and analysed");
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++)
        if (is_used(id))
            prepare(late, id);
    bad += check_plans(late, "planned on the flood");
    assert_int_equal(bad, 0);
    PQfinish(worn_in);
    PQfinish(late);
}

static void no_statement_walks_through_what_grows(void **state)
{
    (void)state;
    daily = false;
    check_all_plans();
}

static void nor_where_sent_rows_are_kept_by_the_day(void **state)
{
    (void)state;
    struct hk_store_inited done;
    const struct hk_store_init how = {.partition_sent = true};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &how, &done, NULL), HK_OK);
    daily = true;
    check_all_plans();
}

static long buffers(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    NOTE_IF(PQresultStatus(res) != PGRES_TUPLES_OK, "%s\n", PQerrorMessage(conn));
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    long n = -1;
    for (int i = 0; i < PQntuples(res) && n < 0; i++) {
        const char *at = strstr(PQgetvalue(res, i, 0), "shared hit=");
        if (at)
            n = (long)strtod(at + strlen("shared hit="), NULL);
    }
    PQclear(res);
    return n;
}

/* Twenty payloads of a megabyte, which lie in pages of their own: a scan opens none of them. */
static void heads_do_not_open_payloads(void **state)
{
    (void)state;
    PGconn *conn = pg_connect(NULL);
    guard(conn);
    store_kind->sql("ALTER TABLE outbox ALTER payload SET STORAGE EXTERNAL; "
                    "INSERT INTO outbox (event_type, payload) SELECT 'Made', repeat(md5(g::text), 32768) "
                    "FROM generate_series(1, 20) g");
    static const unsigned scans[] = {HK_PG_SCAN, HK_PG_SCAN_WHOLE};
    for (size_t i = 0; i < COUNT(scans); i++) {
        char sql[200];
        prepare(conn, scans[i]);
        snprintf(sql, sizeof sql,
                 "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE s%u (-1, '9999999:9999999:', 0, 50)",
                 scans[i]);
        long first = buffers(conn, sql), again = buffers(conn, sql);
        print_message("# %ld, then %ld buffers\n", first, again);
        assert_true(again > 0 && again < 30);
    }
    PQfinish(conn);
}

/* ---- an operator's list ---- */

/* All that its parts have read, those counted several times that others are made of: the same every time. */
static long all_buffers(PGconn *conn, const char *sql)
{
    PGresult *res = PQexec(conn, sql);
    NOTE_IF(PQresultStatus(res) != PGRES_TUPLES_OK, "%s: %s\n", sql, PQerrorMessage(conn));
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    long n = 0;
    for (int i = 0; i < PQntuples(res) && !strstr(PQgetvalue(res, i, 0), "Planning:"); i++)
        for (size_t k = 0; k < 2; k++) {
            const char *at = strstr(PQgetvalue(res, i, 0), k ? " read=" : " hit=");
            n += at && strstr(PQgetvalue(res, i, 0), "Buffers: shared")
                     ? (long)strtod(strchr(at, '=') + 1, NULL)
                     : 0;
        }
    PQclear(res);
    return n;
}

/* Three rows of a destination behind thousands of others: found by its index, not by looking at all of them. */
static void rows_of_one_destination_are_listed_by_its_index(void **state)
{
    (void)state;
    PGconn *conn = pg_connect(NULL);
    struct hk_buf text;
    hk_buf_init(&text, (size_t)64 * 1024);
    static const struct hk_pg_url plain;
    hk_pg_url_names(&plain, hk_pa_sql(HK_PA_LIST_OUTBOX_OF), &text);
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type) SELECT CASE WHEN g <= 3 THEN 'rare' ELSE 'usual' END, 'Made' "
        "FROM generate_series(1, 5000) g; ANALYZE outbox");
    pg_exec(conn,
            "SET enable_seqscan = off; SET enable_bitmapscan = off; SET plan_cache_mode = force_custom_plan");
    PQclear(PQprepare(conn, "list", hk_buf_cstr(&text), 0, NULL));
    long n = all_buffers(conn, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE list "
                               "(9223372036854775807, NULL, 51, 'rare', NULL, 0, NULL, NULL, NULL, NULL, 0, "
                               "9223372036854775807, NULL, NULL, NULL, NULL, NULL)");
    print_message("# %ld buffers\n", n);
    assert_true(n > 0 && n < 100);
    hk_buf_fini(&text);
    PQfinish(conn);
}

/* ---- a snapshot that somebody holds open ---- */

/* What the statements of one poll and one exchange read, for the 64 rows behind the relay's cursor; and undone. */
struct cost {
    long poll, renew, scan, claim, sent;
};

static long cost_of(PGconn *conn, unsigned id, const char *args)
{
    char sql[600];
    snprintf(sql, sizeof sql, "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE s%u (%s)", id, args);
    return all_buffers(conn, sql);
}

static struct cost measure(PGconn *conn, const struct relay *relay)
{
    struct cost c;
    char run[200], args[400];
    long long lo = relay->cursor + 1, lane = relay->lane;
    snprintf(run, sizeof run, "'{%lld}', '{%lld}', '{-1}'", lo, lo + 63);
    pg_exec(conn, "BEGIN");
    c.poll = cost_of(conn, HK_PG_LANES, "NULL") + cost_of(conn, HK_PG_SNAPSHOT, "NULL, NULL") +
             cost_of(conn, HK_PG_DESTS, "-1");
    char boot[80], mark[24];
    snprintf(boot, sizeof boot, "%s", pg_ask(conn, "SELECT boot FROM outbox_relay LIMIT 1"));
    snprintf(mark, sizeof mark, "%s", pg_ask(conn, "SELECT coalesce(max(number), 0) FROM outbox_exchange"));
    snprintf(args, sizeof args, "NULL, %lld, 3600000, 9000000000000000000, '%s', %s", lane, boot, mark);
    c.renew = cost_of(conn, HK_PG_RENEW, args);
    snprintf(args, sizeof args, "%lld, 1, 0", lane);
    c.renew += cost_of(conn, HK_PG_MARK, args);
    snprintf(args, sizeof args, "-1, '%s', %lld, 64", "999999999:999999999:", lo - 1);
    c.scan = cost_of(conn, HK_PG_SCAN, args);
    c.scan += cost_of(conn, HK_PG_SCAN_WHOLE, args);
    snprintf(args, sizeof args, "NULL, -1, %s, %lld, 64", run, lane);
    c.claim = cost_of(conn, HK_PG_CLAIM, args);
    snprintf(args, sizeof args, "-1, %s, '{}', 1000000", run);
    c.claim += cost_of(conn, HK_PG_READ, args);
    char claim[24];
    snprintf(claim, sizeof claim, "%s", pg_ask(conn, "SELECT max(claim) FROM outbox_claim"));
    snprintf(args, sizeof args, "%s, '{%s}', '{%s}', %lld, '{}', '{1}', '{a}', '{1}', '{200}', NULL, 64", run,
             claim, claim, lane);
    c.sent = cost_of(conn, HK_PG_SENT_KEPT, args);
    pg_exec(conn, "ROLLBACK");
    print_message("# buffers: poll %ld, renew %ld, scan %ld, claim %ld, sent %ld\n", c.poll, c.renew, c.scan,
                  c.claim, c.sent);
    return c;
}

/* A page or two more, as trees grow; not one more for so many messages. */
static void assert_alike(long early, long late)
{
    NOTE_IF(late > early * 3 / 2 + 20, "%ld, later %ld\n", early, late);
    assert_true(late <= early * 3 / 2 + 20);
}

static void relay_rows(struct relay *relay, size_t n)
{
    while (relay->n_log < n && relay_turn(relay, 10))
        continue;
    assert_true(relay->n_log >= n);
}

static void a_snapshot_held_open_makes_nothing_dearer(void **state)
{
    (void)state;
    static const unsigned used[] = {HK_PG_LANES, HK_PG_SNAPSHOT,   HK_PG_DESTS, HK_PG_RENEW, HK_PG_MARK,
                                    HK_PG_SCAN,  HK_PG_SCAN_WHOLE, HK_PG_CLAIM, HK_PG_READ,  HK_PG_SENT_KEPT};
    PGconn *conn = pg_connect(NULL), *idler = pg_connect(NULL);
    struct relay relay;
    relay_open(&relay, &(struct hk_store_options){.keep_sent = true});
    pg_exec(idler, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox");
    guard(conn);
    for (size_t i = 0; i < COUNT(used); i++)
        prepare(conn, used[i]);
    store_kind->sql(
        "INSERT INTO outbox (destination, event_type, payload) SELECT 'a', 'Made', repeat('x', 100) "
        "FROM generate_series(1, 201000)");
    relay_rows(&relay, 4000);
    (void)measure(conn, &relay); /* plans are made */
    const struct cost early = measure(conn, &relay);
    relay_rows(&relay, 200000);
    pg_exec(conn, "VACUUM outbox_relay, outbox_claim, outbox_exchange, outbox"); /* in vain */
    const struct cost late = measure(conn, &relay);
    assert_alike(early.poll, late.poll);
    assert_alike(early.renew, late.renew);
    assert_alike(early.scan, late.scan);
    assert_alike(early.claim, late.claim);
    assert_alike(early.sent, late.sent);
    relay_settle(&relay);
    relay_check(&relay, 1);
    relay_close(&relay);
    PQfinish(idler);
    PQfinish(conn);
}

/* A bucket is drawn from thousands of times, and nothing can be cleaned up behind it. */
static void nor_is_a_bucket_dearer_that_was_often_drawn_from(void **state)
{
    (void)state;
    static const char args[] = "NULL, '{a}', '{0}', '{1000000000}', '{1000000000}', '{1}'";
    char draw[200];
    PGconn *conn = pg_connect(NULL), *idler = pg_connect(NULL);
    guard(conn);
    prepare(conn, HK_PG_QUOTAS);
    pg_exec(idler, "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox_bucket");
    snprintf(draw, sizeof draw, "EXECUTE s%d (%s)", HK_PG_QUOTAS, args);
    for (int i = 0; i < 20; i++)
        PQclear(PQexec(conn, draw));
    long early = cost_of(conn, HK_PG_QUOTAS, args);
    for (int i = 0; i < 5000; i++)
        PQclear(PQexec(conn, draw));
    long late = cost_of(conn, HK_PG_QUOTAS, args);
    print_message("# %ld, then %ld buffers\n", early, late);
    assert_alike(early, late);
    assert_string_equal(pg_ask(conn, "SELECT turn FROM outbox_bucket"),
                        "10044"); /* one row, drawn from so often, by two */
    PQfinish(idler);
    PQfinish(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_statement_walks_through_what_grows),
        TEST(nor_where_sent_rows_are_kept_by_the_day),
        TEST(heads_do_not_open_payloads),
        TEST(rows_of_one_destination_are_listed_by_its_index),
        TEST(a_snapshot_held_open_makes_nothing_dearer),
        TEST(nor_is_a_bucket_dearer_that_was_often_drawn_from),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL plans", tests, NULL, NULL);
}
