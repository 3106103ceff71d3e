/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the PostgreSQL store drains, beside three bare loops on the same server: the classic outbox (UPDATE to claim, UPDATE
 * to sent), a cursor and a batch DELETE (`5`: as fast as it gets, but it skips what commits late), and the least that our own
 * layout allows (`w`: a cursor that looks at snapshots, a manifest, a batch DELETE, all pipelined). And the bytes of WAL that
 * each message costs.
 * Usage: bench_store_pg [rows [rounds]], with HIKYAKU_BENCH_PG=postgres://… naming a database to play in: everything
 * happens in its schema hikyaku_bench. The variants take turns within a round; medians, smallest and largest.
 * bench_store_pg --only VARIANT [rows] runs one of them once, for bench/postgres.py, and prints messages a second, bytes of
 * WAL, and microseconds of CPU here and in the server for each message. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/store.h"

enum {
    BATCH = 500,
    PAYLOAD = 500,
    ROUNDS_MAX = 99,
    LEASE_MS = 3600000,
    SKIPPED = 77
};

static char url[600];
static PGconn *db;
static int64_t rows = 300000;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_store_pg: %s failed: %s\n", what, db ? PQerrorMessage(db) : "");
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void run_sql(const char *sql)
{
    PGresult *res = PQexec(db, sql);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;
    must(good, sql);
    PQclear(res);
}

static double value(const char *sql)
{
    PGresult *res = PQexec(db, sql);
    must(PQresultStatus(res) == PGRES_TUPLES_OK && PQntuples(res) == 1, sql);
    double v = strtod(PQgetvalue(res, 0, 0), NULL);
    PQclear(res);
    return v;
}

/* ---- the server's CPU time, where it runs on this host: less shaky than the clock on a busy machine ---- */

static double cpu_of(long pid, long postmaster)
{
    char path[60], text[600];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *file = fopen(path, "r");
    size_t len = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    text[len] = '\0';
    const char *rest = strrchr(text, ')');
    long up = 0, dead_user = 0, dead_system = 0;
    unsigned long user = 0, system = 0;
    if (!rest || sscanf(rest + 1, " %*c %ld %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %ld %ld", &up, &user,
                        &system, &dead_user, &dead_system) != 5)
        return 0;
    if (pid == postmaster)
        return (double)user + (double)system + (double)dead_user + (double)dead_system;
    return up == postmaster ? (double)user + (double)system : 0;
}

static double server_cpu_s(void)
{
    static long postmaster;
    if (!postmaster)
        postmaster = (long)value("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)");
    double ticks = 0;
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        int64_t pid = 0;
        if (hk_parse_i64(hk_str_of(entry->d_name), &pid, NULL) == HK_OK)
            ticks += cpu_of((long)pid, postmaster);
    }
    if (proc)
        closedir(proc);
    return ticks / (double)sysconf(_SC_CLK_TCK);
}

/* ---- bare loops ---- */

struct batch {
    int64_t ids[BATCH], claim;
    int n;
};

/* bigint[] in binary. */
struct array {
    unsigned char bytes[20 + 12 * BATCH];
    int len;
};

static void put(unsigned char *at, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        at[i] = (unsigned char)(value & 0xff);
}

static void make_array(struct array *a, const struct batch *b)
{
    const uint32_t head[] = {1, 0, 20, (uint32_t)b->n, 1};
    for (int i = 0; i < 5; i++)
        put(a->bytes + 4 * i, head[i], 4);
    for (int i = 0; i < b->n; i++) {
        put(a->bytes + 20 + 12 * i, 8, 4);
        put(a->bytes + 24 + 12 * i, (uint64_t)b->ids[i], 8);
    }
    a->len = 20 + 12 * b->n;
}

static int64_t get_i64(const PGresult *res, int row, int column)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(res, row, column);
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | bytes[i];
    return (int64_t)value;
}

static void prepare(PGconn *conn, const char *name, const char *sql)
{
    PGresult *res = PQprepare(conn, name, sql, 0, NULL);
    if (PQresultStatus(res) != PGRES_COMMAND_OK)
        fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(conn));
    must(PQresultStatus(res) == PGRES_COMMAND_OK, "prepare");
    PQclear(res);
}

static PGresult *next(PGconn *conn)
{
    PGresult *res = PQgetResult(conn);
    bool good = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;
    if (!good)
        fprintf(stderr, "%s\n", PQerrorMessage(conn));
    must(good, "a statement");
    PQclear(PQgetResult(conn));
    return res;
}

static void next_sync(PGconn *conn)
{
    PGresult *res = PQgetResult(conn);
    must(PQresultStatus(res) == PGRES_PIPELINE_SYNC, "sync");
    PQclear(res);
}

static PGconn *connect_loop(void)
{
    PGconn *conn = PQconnectdb(getenv("HIKYAKU_BENCH_PG"));
    must(PQstatus(conn) == CONNECTION_OK, "connect");
    PQclear(PQexec(conn,
                   "SET search_path = hikyaku_bench; SET enable_seqscan = off; SET enable_bitmapscan = off; "
                   "SET enable_sort = off"));
    return conn;
}

static int64_t take_rows(const PGresult *res, struct batch *b, int payload)
{
    int64_t whole = 0;
    b->n = PQntuples(res);
    for (int i = 0; i < b->n; i++) {
        b->ids[i] = get_i64(res, i, 0);
        whole += PQgetlength(res, i, payload) == PAYLOAD;
    }
    return whole;
}

/* Reads the next batch while the last one is settled: statement "claim", with the last id when there is a cursor, then "ack". */
static void drain_pairs(PGconn *conn, bool cursor)
{
    static struct batch b;
    static struct array ids;
    char after[24] = "0";
    must(PQenterPipelineMode(conn), "pipeline");
    int64_t done = 0;
    for (bool settling = false;;) {
        const char *from[] = {after};
        must(PQsendQueryPrepared(conn, "claim", cursor, from, NULL, NULL, 1) && PQpipelineSync(conn), "send");
        if (settling) {
            PQclear(next(conn));
            next_sync(conn);
        }
        PGresult *res = next(conn);
        done += take_rows(res, &b, 1);
        PQclear(res);
        next_sync(conn);
        if (!b.n)
            break;
        snprintf(after, sizeof after, "%lld", (long long)b.ids[b.n - 1]);
        make_array(&ids, &b);
        const char *values[] = {(const char *)ids.bytes};
        must(PQsendQueryPrepared(conn, "ack", 1, values, &ids.len, (int[]){1}, 1) && PQpipelineSync(conn),
             "send");
        settling = true;
    }
    must(done == rows, "draining all");
    PQfinish(conn);
}

static void drain_classic(uint32_t size)
{
    char sql[700];
    PGconn *conn = connect_loop();
    snprintf(sql, sizeof sql,
             "WITH k AS MATERIALIZED (SELECT id FROM classic WHERE status IN ('pending', 'failed') "
             "AND next_attempt_at <= now() ORDER BY next_attempt_at LIMIT %u FOR UPDATE SKIP LOCKED) "
             "UPDATE classic o SET status = 'processing', attempts = attempts + 1, locked_by = 'w', "
             "locked_until = now() + interval '30 s' FROM k WHERE o.id = k.id RETURNING o.id, o.payload",
             size);
    PQclear(PQexec(conn, "RESET enable_seqscan; RESET enable_bitmapscan; RESET enable_sort"));
    prepare(conn, "claim", sql);
    prepare(conn, "ack",
            "UPDATE classic SET status = 'sent', sent_at = now(), locked_by = NULL, locked_until = NULL "
            "WHERE id = ANY ($1::bigint[])");
    drain_pairs(conn, false);
}

static void drain_five(uint32_t size)
{
    char sql[300];
    PGconn *conn = connect_loop();
    snprintf(sql, sizeof sql,
             "SELECT id, payload FROM five WHERE shard = 0 AND id > $1::bigint ORDER BY shard, id LIMIT %u",
             size);
    prepare(conn, "claim", sql);
    prepare(conn, "ack", "DELETE FROM five WHERE shard = 0 AND id = ANY ($1::bigint[])");
    drain_pairs(conn, true);
}

static void send_read(PGconn *conn, int64_t after, const char *horizon)
{
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)after);
    const char *values[] = {text, "1:1:", horizon};
    must(PQsendQueryPrepared(conn, "read", 3, values, NULL, NULL, 1) && PQpipelineSync(conn), "send");
}

/* One transaction: what was claimed before is settled, what was read now is claimed. */
static void send_write(PGconn *conn, const struct batch *before, const struct batch *now)
{
    static struct array ids, settled;
    char claim[24];
    if (before->n) {
        make_array(&settled, before);
        snprintf(claim, sizeof claim, "%lld", (long long)before->claim);
        const char *values[] = {claim, (const char *)settled.bytes};
        must(PQsendQueryPrepared(conn, "settle", 2, values, (int[]){0, settled.len}, (int[]){0, 1}, 1),
             "send");
    }
    if (now->n) {
        make_array(&ids, now);
        const char *values[] = {(const char *)ids.bytes};
        must(PQsendQueryPrepared(conn, "claim", 1, values, &ids.len, (int[]){1}, 1), "send");
    }
    must(PQpipelineSync(conn), "sync");
}

static void read_write(PGconn *conn, const struct batch *before, struct batch *now)
{
    if (before->n)
        PQclear(next(conn));
    if (now->n) {
        PGresult *res = next(conn);
        now->claim = get_i64(res, 0, 0);
        PQclear(res);
    }
    next_sync(conn);
}

static void prepare_w(PGconn *conn, uint32_t size, int64_t lane)
{
    char sql[700];
    snprintf(sql, sizeof sql,
             "SELECT id, shard, payload FROM outbox WHERE id > $1::bigint AND shard = ANY (ARRAY(SELECT "
             "generate_series(0, 63))::smallint[]) AND pg_visible_in_snapshot(xid, $3::pg_snapshot) "
             "AND NOT pg_visible_in_snapshot(xid, $2::pg_snapshot) ORDER BY id LIMIT %u",
             size);
    prepare(conn, "read", sql);
    snprintf(
        sql, sizeof sql,
        "INSERT INTO outbox_claim (lane, claimed_ms, ids) VALUES (%lld, 0, $1::bigint[]) RETURNING claim",
        (long long)lane);
    prepare(conn, "claim", sql);
    snprintf(sql, sizeof sql,
             "WITH k AS (DELETE FROM outbox_claim WHERE claim = $1::bigint AND lane = %lld RETURNING 1) "
             "DELETE FROM outbox WHERE id = ANY ($2::bigint[]) AND EXISTS (SELECT 1 FROM k)",
             (long long)lane);
    prepare(conn, "settle", sql);
}

static void drain_w(uint32_t size)
{
    static struct batch batches[2];
    PGconn *conn = connect_loop();
    PGresult *res =
        PQexec(conn, "INSERT INTO outbox_relay (name, boot, started_ms, until_ms) VALUES ('w', 'w', 0, 0) "
                     "RETURNING lane, pg_current_snapshot()");
    must(PQresultStatus(res) == PGRES_TUPLES_OK, "lane");
    int64_t lane = (int64_t)strtod(PQgetvalue(res, 0, 0), NULL), done = 0;
    PQclear(res);
    res = PQexec(conn, "SELECT pg_current_snapshot()");
    char horizon[200];
    snprintf(horizon, sizeof horizon, "%s", PQgetvalue(res, 0, 0));
    PQclear(res);
    prepare_w(conn, size, lane);
    must(PQenterPipelineMode(conn), "pipeline");
    batches[0].n = batches[1].n = 0;
    send_read(conn, 0, horizon);
    for (int turn = 0;; turn ^= 1) {
        struct batch *now = &batches[turn], *before = &batches[turn ^ 1];
        res = next(conn);
        done += take_rows(res, now, 2);
        PQclear(res);
        next_sync(conn);
        if (!now->n && !before->n)
            break;
        send_write(conn, before, now);
        send_read(conn, now->n ? now->ids[now->n - 1] : INT64_MAX, horizon);
        read_write(conn, before, now);
    }
    must(done == rows, "draining all");
    PQfinish(conn);
    run_sql("DELETE FROM outbox_relay");
}

/* ---- the store ---- */

static struct hk_store *open_store(bool keep_sent, int64_t *out_lane)
{
    struct hk_store *store = NULL;
    struct hk_err err = {0};
    int64_t now_ms;
    bool ok = hk_store_postgres.open(url, &(struct hk_store_options){.keep_sent = keep_sent}, &store, &err) ==
                  HK_OK &&
              hk_store_postgres.acquire(store, "bench", "bench", LEASE_MS, out_lane, &now_ms, &err) == HK_OK;
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    must(ok, "open");
    return store;
}

/* What is in hand, and what a scan found. */
struct load {
    struct hk_settle settles[BATCH];
    struct hk_want wants[BATCH];
    size_t n_settles, n_wants;
};

/* What turned up late comes first, then what lies ahead. */
static void look(struct hk_store *store, struct load *load, int64_t *cursor, uint32_t batch)
{
    static bool late;
    struct hk_err err;
    const struct hk_heads *heads = NULL;
    const struct hk_poll *poll = NULL;
    struct hk_scan scan = {.late = late, .after_id = late ? HK_FIRST_ID : *cursor, .limit = batch};
    must(hk_store_postgres.scan(store, &scan, &heads, &err) == HK_OK, "scan");
    load->n_wants = heads->n;
    for (size_t i = 0; i < heads->n; i++)
        load->wants[i] = (struct hk_want){HK_FROM_OUTBOX, heads->items[i].id, true};
    bool more = heads->more;
    if (!late)
        *cursor = heads->last_id;
    late = late && more;
    if (more)
        return;
    must(hk_store_postgres.poll(store, &poll, &err) == HK_OK, "poll");
    late = poll->changed && poll->late;
}

/* Until `expected` messages have gone. */
static void drain_on(struct hk_store *store, int64_t lane, int64_t *cursor, int64_t expected, uint32_t batch)
{
    static struct load load;
    struct hk_err err;
    const struct hk_poll *poll = NULL;
    must(hk_store_postgres.poll(store, &poll, &err) == HK_OK, "poll");
    for (int64_t done = 0; done < expected || load.n_settles;) {
        const struct hk_exchanged *x = NULL;
        look(store, &load, cursor, batch);
        const struct hk_exchange exchange = {.lane = lane,
                                             .lease_ms = LEASE_MS,
                                             .settles = load.settles,
                                             .n_settles = load.n_settles,
                                             .wants = load.wants,
                                             .n_wants = load.n_wants};
        must(hk_store_postgres.exchange(store, &exchange, &x, &err) == HK_OK, "exchange");
        load.n_settles = x->n_messages;
        for (size_t i = 0; i < load.n_settles; i++) {
            struct hk_settle *s = &load.settles[i];
            done += x->messages[i].payload.len == PAYLOAD;
            *s = (struct hk_settle){.claim = x->claim, .id = x->messages[i].id, .history.attempts = 1};
            s->destination = hk_str_of("billing");
            s->attempt.made = true;
        }
    }
}

static void close_store(struct hk_store *store, int64_t lane)
{
    must(hk_store_postgres.release(store, lane, NULL) == HK_OK, "release");
    hk_store_postgres.close(store);
}

static void drain_store(bool keep_sent, uint32_t batch)
{
    int64_t lane = 0, cursor = HK_FIRST_ID;
    struct hk_store *store = open_store(keep_sent, &lane);
    drain_on(store, lane, &cursor, rows, batch);
    must(value("SELECT count(*) FROM outbox") == 0, "draining all");
    close_store(store, lane);
}

static void drain_plain(uint32_t size)
{
    drain_store(false, size);
}

static void drain_keeping(uint32_t size)
{
    drain_store(true, size);
}

/* ---- tables ---- */

struct variant {
    const char *key, *name;
    void (*drain)(uint32_t size);
    uint32_t size;
    int bare; /* the variant to compare with */
    const char *table;
    double rate[ROUNDS_MAX], cpu_us[ROUNDS_MAX], server_us[ROUNDS_MAX], wal[ROUNDS_MAX];
};

static struct variant variants[] = {
    {.key = "classic",
     .name = "classic: UPDATE, UPDATE",
     .drain = drain_classic,
     .size = BATCH,
     .bare = 1,
     .table = "classic"},
    {.key = "w", .name = "bare w", .drain = drain_w, .size = BATCH, .bare = 1, .table = "outbox"},
    {.key = "5",
     .name = "bare 5: cursor, DELETE (skips)",
     .drain = drain_five,
     .size = BATCH,
     .bare = 1,
     .table = "five"},
    {.key = "store",
     .name = "store, sent rows not kept",
     .drain = drain_plain,
     .size = BATCH,
     .bare = 1,
     .table = "outbox"},
    {.key = "store-kept",
     .name = "store, sent rows kept (default)",
     .drain = drain_keeping,
     .size = BATCH,
     .bare = 1,
     .table = "outbox"},
    {.key = "w64",
     .name = "bare w, batches of 64",
     .drain = drain_w,
     .size = 64,
     .bare = 5,
     .table = "outbox"},
    {.key = "store64",
     .name = "store, batches of 64, not kept",
     .drain = drain_plain,
     .size = 64,
     .bare = 5,
     .table = "outbox"},
};

enum {
    N_VARIANTS = sizeof variants / sizeof variants[0]
};

static void empty(void)
{
    run_sql("TRUNCATE outbox, outbox_sent, outbox_claim, classic, five; CHECKPOINT");
}

static void insert(const char *table, int64_t n)
{
    char sql[300];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO %s (destination, event_type, payload) SELECT 'billing', 'OrderCreated', repeat('x', %d) "
        "FROM generate_series(1, %lld)",
        table, PAYLOAD, (long long)n);
    run_sql(sql);
}

static void fill(const char *table)
{
    char sql[60];
    empty();
    insert(table, rows);
    snprintf(sql, sizeof sql, "VACUUM ANALYZE %s", table);
    run_sql(sql);
}

static void measure(struct variant *v, int round)
{
    fill(v->table);
    double wal = value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn");
    double cpu = now_s(CLOCK_PROCESS_CPUTIME_ID), server = server_cpu_s(), wall = now_s(CLOCK_MONOTONIC);
    v->drain(v->size);
    v->rate[round] = (double)rows / (now_s(CLOCK_MONOTONIC) - wall);
    v->server_us[round] = (server_cpu_s() - server) * 1e6 / (double)rows;
    v->cpu_us[round] = (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / (double)rows;
    v->wal[round] = (value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn") - wal) / (double)rows;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static void drains(int rounds)
{
    static double of_bare[N_VARIANTS][ROUNDS_MAX], of_classic[N_VARIANTS][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < N_VARIANTS; i++)
            measure(&variants[i], round);
        for (size_t i = 0; i < N_VARIANTS; i++) {
            of_bare[i][round] = variants[i].rate[round] / variants[variants[i].bare].rate[round];
            of_classic[i][round] = variants[i].rate[round] / variants[0].rate[round];
        }
    }
    printf("drain of %lld rows of %d bytes, batch %d, %d rounds\n", (long long)rows, PAYLOAD, BATCH, rounds);
    printf("%-34s %8s %19s %7s %9s %8s %7s %7s\n", "", "msgs/s", "(min - max)", "of w", "x classic", "WAL B",
           "CPU us", "PG us");
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct variant *v = &variants[i];
        double rate = median(v->rate, rounds);
        printf("%-34s %8.0f (%7.0f - %7.0f) %7.2f %9.2f %8.0f %7.2f %7.2f\n", v->name, rate, v->rate[0],
               v->rate[rounds - 1], median(of_bare[i], rounds), median(of_classic[i], rounds),
               median(v->wal, rounds), median(v->cpu_us, rounds), median(v->server_us, rounds));
    }
}

/* Statements that were prepared on an empty, analysed table and used for single messages, then all rows at once; beside the
 * same rows, as little vacuumed, that were there before the store was opened. */
static void worn_in(int rounds)
{
    double rate[2][ROUNDS_MAX], server_us[2][ROUNDS_MAX];
    for (int run = 0; run < 2 * rounds; run++) {
        bool loaded = run % 2;
        int64_t lane = 0, cursor = HK_FIRST_ID;
        empty();
        run_sql("VACUUM ANALYZE outbox");
        if (loaded) {
            insert("outbox", rows);
            run_sql("ANALYZE outbox");
        }
        struct hk_store *store = open_store(false, &lane);
        for (int i = 0; i < 40 && !loaded; i++) {
            insert("outbox", 1);
            drain_on(store, lane, &cursor, 1, BATCH);
        }
        if (!loaded)
            insert("outbox", rows);
        double server = server_cpu_s(), start = now_s(CLOCK_MONOTONIC);
        drain_on(store, lane, &cursor, rows, BATCH);
        rate[loaded][run / 2] = (double)rows / (now_s(CLOCK_MONOTONIC) - start);
        server_us[loaded][run / 2] = (server_cpu_s() - server) * 1e6 / (double)rows;
        close_store(store, lane);
    }
    printf("\n%-34s %8s %19s %7s\n", "", "msgs/s", "(min - max)", "PG us");
    for (int i = 0; i < 2; i++) {
        double middle = median(rate[i], rounds);
        printf("%-34s %8.0f (%7.0f - %7.0f) %7.2f\n",
               i ? "loaded, then opened" : "worn in empty, then flooded", middle, rate[i][0],
               rate[i][rounds - 1], median(server_us[i], rounds));
    }
}

static void make_schema(void)
{
    struct hk_store_inited inited;
    struct hk_err err = {0};
    run_sql(
        "DROP SCHEMA IF EXISTS hikyaku_bench CASCADE; CREATE SCHEMA hikyaku_bench; SET search_path = hikyaku_bench");
    bool ok = hk_store_postgres.init(url, &(struct hk_store_init){0}, &inited, &err) == HK_OK;
    if (!ok)
        fprintf(stderr, "%s\n", err.message);
    must(ok, "init");
    run_sql(
        "CREATE TABLE classic (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, destination text NOT NULL, "
        "event_type text NOT NULL, message_key text, payload text NOT NULL, status text NOT NULL DEFAULT 'pending', "
        "attempts integer NOT NULL DEFAULT 0, next_attempt_at timestamptz NOT NULL DEFAULT now(), locked_by text, "
        "locked_until timestamptz, created_at timestamptz NOT NULL DEFAULT now(), sent_at timestamptz)");
    run_sql("CREATE INDEX ON classic (next_attempt_at) WHERE status IN ('pending', 'failed')");
    run_sql(
        "CREATE TABLE five (shard smallint NOT NULL DEFAULT 0, id bigint GENERATED ALWAYS AS IDENTITY, destination text "
        "NOT NULL, event_type text NOT NULL, message_key text, payload text NOT NULL, "
        "created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (shard, id))");
}

static int64_t number(const char *text, int64_t most)
{
    int64_t value = 0;
    must(hk_parse_i64(hk_str_of(text), &value, NULL) == HK_OK && value > 0 && value <= most,
         "reading the arguments");
    return value;
}

static void only(const char *key)
{
    for (size_t i = 0; i < N_VARIANTS; i++) {
        struct variant *v = &variants[i];
        if (strcmp(v->key, key) != 0)
            continue;
        measure(v, 0);
        printf("%.1f %.2f %.3f %.3f\n", v->rate[0], v->wal[0], v->cpu_us[0], v->server_us[0]);
        return;
    }
    must(false, "finding that variant");
}

int main(int argc, char **argv)
{
    const char *given = getenv("HIKYAKU_BENCH_PG");
    if (!given) {
        printf("HIKYAKU_BENCH_PG=postgres://… names the database to play in\n");
        return SKIPPED;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    const char *key = argc > 2 && !strcmp(argv[1], "--only") ? argv[2] : NULL;
    argc -= key ? 2 : 0;
    argv += key ? 2 : 0;
    rows = argc > 1 ? number(argv[1], 10000000) : rows;
    int rounds = argc > 2 ? (int)number(argv[2], ROUNDS_MAX) : 5;
    snprintf(url, sizeof url, "%s%sschema=hikyaku_bench", given, strchr(given, '?') ? "&" : "?");
    db = PQconnectdb(given);
    must(PQstatus(db) == CONNECTION_OK, "connect");
    PQclear(PQexec(db, "SET client_min_messages = warning"));
    make_schema();
    if (key) {
        only(key);
    } else {
        drains(rounds);
        worn_in(rounds);
    }
    run_sql("DROP SCHEMA hikyaku_bench CASCADE");
    PQfinish(db);
    return 0;
}
