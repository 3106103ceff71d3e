/* SPDX-License-Identifier: Apache-2.0 */
/* How PostgreSQL goes about the relay's statements. A relay starts on an empty table and keeps the plans that it made there;
 * what is good enough for nothing must do for millions. So no statement walks through a table that grows, whether it was
 * planned on an empty one or on a full one. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/str.h"
#include "pg_kind.h"
#include "store/pg_stmt.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

/* An index, and the column that a search in it begins with. */
static const struct {
    const char *name, *column;
} indexes[] = {
    {"outbox_pkey", "id"},
    {"outbox_by_destination", "destination"},
    {"outbox_by_key", "destination"},
    {"outbox_claim_pkey", "claim"},
    {"outbox_retry_pkey", "id"},
    {"outbox_retry_due", "destination"},
    {"outbox_retry_claim", "claim"},
    {"outbox_retry_key", "destination"},
    {"outbox_retry_message", "message_id"},
    {"outbox_sent_pkey", "id"},
    {"outbox_attempts_pkey", "id"},
    {"outbox_cancelled_pkey", "id"},
    {"outbox_audit_pkey", "id"},
    {"dead_letters_pkey", "id"},
    {"dead_letters_done", "status"},
    {"dead_letters_created", "created_at"},
};

/* Tables of a few rows, whatever happens: they may be read whole. */
static const char *const small[] = {"outbox_shard", "outbox_relay", "outbox_destination", "outbox_quota",
                                    "outbox_id_seq"};

/* Walks along an index from its start, with a limit or because all of it is wanted. */
static bool walks(unsigned id)
{
    return id == HK_PG_DESTS || id == HK_PG_HELD_RETRY || id == HK_PG_HELD_DEAD || id == HK_PG_PURGE;
}

/* Reads all manifests: when a lane ends, or when an answer was lost. */
static bool reads_manifests(unsigned id)
{
    return id == HK_PG_ORPHANS || id == HK_PG_ORPHAN_RETRIES || id == HK_PG_DROP_ORPHANED_CLAIMS ||
           id == HK_PG_FREE_RETRIES || id == HK_PG_DROP_LANE_CLAIMS || id == HK_PG_FREE_STRAY_RETRIES ||
           id == HK_PG_DROP_STRAY_CLAIMS;
}

/* Sorts what was limited before, or what it was given. */
static bool sorts(unsigned id)
{
    return id == HK_PG_SCAN_DEST || id == HK_PG_SCAN_KEY || id == HK_PG_SCAN_RETRY_KEY ||
           id == HK_PG_QUOTAS || id == HK_PG_CIRCUITS;
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
        char using[80], column[80];
        snprintf(using, sizeof using, "using %s on", indexes[i].name);
        snprintf(column, sizeof column, "(%s ", indexes[i].column);
        if (strstr(line, using))
            return strstr(condition, "Index Cond:") && strstr(condition, column);
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
               searches(line, below);
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

static int check_plans(PGconn *conn, const char *when)
{
    int bad = 0;
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++) {
        PGresult *res = explain(conn, id);
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

static void no_statement_walks_through_what_grows(void **state)
{
    (void)state;
    PGconn *worn_in = pg_connect(NULL), *late = pg_connect(NULL);
    guard(worn_in);
    guard(late);
    store_kind->sql("VACUUM ANALYZE");
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++)
        prepare(worn_in, id);
    int bad = check_plans(worn_in, "empty");
    store_kind->sql(flood);
    bad += check_plans(worn_in, "flooded, planned before");
    store_kind->sql("VACUUM ANALYZE");
    bad += check_plans(worn_in, "flooded and analysed");
    for (unsigned id = 0; id < HK_PG_NSTMTS; id++)
        prepare(late, id);
    bad += check_plans(late, "planned on the flood");
    assert_int_equal(bad, 0);
    PQfinish(worn_in);
    PQfinish(late);
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
    char sql[200];
    store_kind->sql("ALTER TABLE outbox ALTER payload SET STORAGE EXTERNAL; "
                    "INSERT INTO outbox (event_type, payload) SELECT 'Made', repeat(md5(g::text), 32768) "
                    "FROM generate_series(1, 20) g");
    prepare(conn, HK_PG_SCAN);
    snprintf(sql, sizeof sql,
             "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF) EXECUTE s%d (-1, '9999999:9999999:', 0, 50)",
             HK_PG_SCAN);
    long first = buffers(conn, sql), again = buffers(conn, sql);
    print_message("# %ld, then %ld buffers\n", first, again);
    assert_true(again > 0 && again < 30);
    PQfinish(conn);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(no_statement_walks_through_what_grows),
        TEST(heads_do_not_open_payloads),
    };
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    return cmocka_run_group_tests_name("PostgreSQL plans", tests, NULL, NULL);
}
