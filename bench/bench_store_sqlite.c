/* SPDX-License-Identifier: Apache-2.0 */
/* How fast the SQLite store drains, beside the least that any relay must do on the same file: a cursor SELECT and a batch
 * DELETE. Then what each choice of the layout costs: keeping sent rows, the index by destination (insert, drain, and what
 * it saves), and how long an application's INSERT waits meanwhile.
 * Usage: bench_store_sqlite [rows [rounds]]. The variants take turns within a round; medians, smallest and largest. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/store.h"

enum {
    BATCH = 500,
    PAYLOAD = 500,
    ROUNDS_MAX = 99,
    LEASE_MS = 3600000
};

static char dir[200], path[256], url[300];
static int64_t rows = 100000;

static void must(bool ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "bench_store_sqlite: %s failed\n", what);
    exit(1);
}

static double now_s(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static sqlite3 *connect_app(void)
{
    sqlite3 *db = NULL;
    must(sqlite3_open(path, &db) == SQLITE_OK, "open");
    sqlite3_busy_timeout(db, 60000);
    must(sqlite3_exec(db, "PRAGMA synchronous = NORMAL; PRAGMA cache_size = -4096", NULL, NULL, NULL) ==
             SQLITE_OK,
         "pragma");
    return db;
}

static void run_sql(const char *sql)
{
    sqlite3 *db = connect_app();
    char *message = NULL;
    int rc = sqlite3_exec(db, sql, NULL, NULL, &message);
    if (rc != SQLITE_OK)
        fprintf(stderr, "%s: %s\n", sql, message);
    must(rc == SQLITE_OK, "SQL");
    sqlite3_close(db);
}

/* Seconds that it took, 100 rows a transaction. */
static double fill(int64_t n, const char *destination)
{
    sqlite3 *db = connect_app();
    sqlite3_stmt *q = NULL;
    char payload[PAYLOAD];
    memset(payload, 'x', sizeof payload);
    must(sqlite3_prepare_v2(
             db, "INSERT INTO outbox (destination, event_type, payload) VALUES (?1, 'OrderCreated', ?2)", -1,
             &q, NULL) == SQLITE_OK,
         "prepare");
    sqlite3_bind_text(q, 1, destination, -1, SQLITE_STATIC);
    sqlite3_bind_text(q, 2, payload, PAYLOAD, SQLITE_STATIC);
    double start = now_s(CLOCK_MONOTONIC);
    for (int64_t i = 0; i < n; i++) {
        if (i % 100 == 0)
            must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "begin");
        must(sqlite3_step(q) == SQLITE_DONE, "insert");
        sqlite3_reset(q);
        if (i % 100 == 99 || i == n - 1)
            must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK, "commit");
    }
    double took = now_s(CLOCK_MONOTONIC) - start;
    sqlite3_finalize(q);
    sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL);
    sqlite3_close(db);
    return took;
}

/* ---- the limit: read a batch by cursor, delete it, in one transaction ---- */

static void drain_bare(void)
{
    sqlite3 *db = connect_app();
    sqlite3_stmt *read = NULL, *drop = NULL;
    must(sqlite3_prepare_v2(
             db,
             "SELECT id, destination, event_type, payload FROM outbox WHERE id > ?1 ORDER BY id LIMIT 500",
             -1, &read, NULL) == SQLITE_OK &&
             sqlite3_prepare_v2(db, "DELETE FROM outbox WHERE id = ?1", -1, &drop, NULL) == SQLITE_OK,
         "prepare");
    int64_t ids[BATCH], last = 0, done = 0;
    size_t n;
    do {
        n = 0;
        must(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) == SQLITE_OK, "begin");
        sqlite3_bind_int64(read, 1, last);
        while (sqlite3_step(read) == SQLITE_ROW) {
            ids[n++] = last = sqlite3_column_int64(read, 0);
            done += sqlite3_column_bytes(read, 3) == PAYLOAD;
        }
        sqlite3_reset(read);
        for (size_t i = 0; i < n; i++) {
            sqlite3_bind_int64(drop, 1, ids[i]);
            must(sqlite3_step(drop) == SQLITE_DONE, "delete");
            sqlite3_reset(drop);
        }
        must(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) == SQLITE_OK, "commit");
    } while (n);
    must(done == rows, "draining all");
    sqlite3_finalize(read);
    sqlite3_finalize(drop);
    sqlite3_close(db);
}

/* ---- the store ---- */

static struct hk_store *open_store(bool keep_sent, int64_t *out_lane)
{
    struct hk_store *store = NULL;
    struct hk_err err;
    int64_t now_ms;
    must(hk_store_sqlite.open(url, &(struct hk_store_options){.keep_sent = keep_sent}, &store, &err) == HK_OK,
         "open");
    must(hk_store_sqlite.acquire(store, "bench", "bench", LEASE_MS, out_lane, &now_ms, &err) == HK_OK,
         "acquire");
    return store;
}

static void drain_store(bool keep_sent, uint32_t batch)
{
    static struct hk_settle settles[BATCH];
    static struct hk_want wants[BATCH];
    int64_t lane = 0, last = 0, done = 0;
    struct hk_err err;
    struct hk_store *store = open_store(keep_sent, &lane);
    size_t n_settles = 0, n_wants = 0;
    do {
        const struct hk_heads *heads = NULL;
        const struct hk_exchanged *x = NULL;
        must(hk_store_sqlite.scan(store, &(struct hk_scan){.after_id = last, .limit = batch}, &heads, &err) ==
                 HK_OK,
             "scan");
        n_wants = heads->n;
        last = heads->last_id;
        for (size_t i = 0; i < heads->n; i++)
            wants[i] = (struct hk_want){HK_FROM_OUTBOX, heads->items[i].id, true};
        const struct hk_exchange exchange = {.lane = lane,
                                             .lease_ms = LEASE_MS,
                                             .settles = settles,
                                             .n_settles = n_settles,
                                             .wants = wants,
                                             .n_wants = n_wants};
        must(hk_store_sqlite.exchange(store, &exchange, &x, &err) == HK_OK, "exchange");
        n_settles = x->n_messages;
        for (size_t i = 0; i < n_settles; i++) {
            done += x->messages[i].payload.len == PAYLOAD;
            settles[i] =
                (struct hk_settle){.claim = x->claim, .id = x->messages[i].id, .history.attempts = 1};
            settles[i].attempt.made = true;
        }
    } while (n_settles || n_wants);
    must(done == rows, "draining all");
    hk_store_sqlite.release(store, lane, &err);
    hk_store_sqlite.close(store);
}

static void drain_plain(void)
{
    drain_store(false, BATCH);
}

static void drain_small(void)
{
    drain_store(false, 64);
}

static void drain_keeping(void)
{
    drain_store(true, BATCH);
}

/* ---- tables ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct variant {
    const char *name;
    void (*drain)(void);
    bool indexed; /* with the index by destination */
    double rate[ROUNDS_MAX], cpu_us[ROUNDS_MAX], insert_us[ROUNDS_MAX];
};

static void measure(struct variant *v, int round)
{
    run_sql("DELETE FROM outbox; DELETE FROM outbox_sent; DROP INDEX IF EXISTS outbox_by_destination");
    if (v->indexed)
        run_sql("CREATE INDEX outbox_by_destination ON outbox (destination)");
    v->insert_us[round] = fill(rows, "billing") * 1e6 / (double)rows;
    double cpu = now_s(CLOCK_PROCESS_CPUTIME_ID), wall = now_s(CLOCK_MONOTONIC);
    v->drain();
    v->rate[round] = (double)rows / (now_s(CLOCK_MONOTONIC) - wall);
    v->cpu_us[round] = (now_s(CLOCK_PROCESS_CPUTIME_ID) - cpu) * 1e6 / (double)rows;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, by_value);
    return values[n / 2];
}

static void drains(int rounds)
{
    static struct variant variants[] = {
        {.name = "bare: cursor SELECT + DELETE", .drain = drain_bare, .indexed = true},
        {.name = "store, sent rows not kept", .drain = drain_plain, .indexed = true},
        {.name = "store, batches of 64", .drain = drain_small, .indexed = true},
        {.name = "store, sent rows kept (default)", .drain = drain_keeping, .indexed = true},
        {.name = "bare, no index by destination", .drain = drain_bare},
        {.name = "store, no index by destination", .drain = drain_plain},
    };
    const size_t n = sizeof variants / sizeof variants[0];
    double ratio[sizeof variants / sizeof variants[0]][ROUNDS_MAX];
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < n; i++)
            measure(&variants[i], round);
        for (size_t i = 0; i < n; i++)
            ratio[i][round] = variants[i].rate[round] / variants[variants[i].indexed ? 0 : 4].rate[round];
    }
    printf("drain of %lld rows of %d bytes, batch %d, %d rounds\n", (long long)rows, PAYLOAD, BATCH, rounds);
    printf("%-34s %10s %23s %8s %9s %9s\n", "", "msgs/s", "(min - max)", "of bare", "CPU us", "insert us");
    for (size_t i = 0; i < n; i++) {
        struct variant *v = &variants[i];
        double rate = median(v->rate, rounds);
        printf("%-34s %10.0f (%9.0f - %9.0f) %8.2f %9.2f %9.2f\n", v->name, rate, v->rate[0],
               v->rate[rounds - 1], median(ratio[i], rounds), median(v->cpu_us, rounds),
               median(v->insert_us, rounds));
    }
}

/* What the index is for: 100 rows of one destination behind everybody else's. */
static void behind(void)
{
    double took[2];
    for (int indexed = 0; indexed <= 1; indexed++) {
        run_sql("DELETE FROM outbox; DROP INDEX IF EXISTS outbox_by_destination");
        fill(rows, "paused");
        fill(100, "billing");
        if (indexed)
            run_sql("CREATE INDEX outbox_by_destination ON outbox (destination)");
        sqlite3 *db = connect_app();
        sqlite3_stmt *q = NULL;
        int found = 0;
        double start = now_s(CLOCK_MONOTONIC);
        must(sqlite3_prepare_v2(
                 db, "SELECT id FROM outbox WHERE destination = 'billing' AND id > 0 ORDER BY id LIMIT 64",
                 -1, &q, NULL) == SQLITE_OK,
             "prepare");
        while (sqlite3_step(q) == SQLITE_ROW)
            found++;
        took[indexed] = (now_s(CLOCK_MONOTONIC) - start) * 1e3;
        must(found == 64, "finding them");
        sqlite3_finalize(q);
        sqlite3_close(db);
    }
    printf("\n64 rows of one destination behind %lld of another: %.2f ms by a walk, %.2f ms by the index\n",
           (long long)rows, took[0], took[1]);
}

/* One INSERT per transaction, about 500 a second, until `stop` can be read; prints how long they took. */
static void insert_slowly(int stop)
{
    static double ms[200000];
    size_t n = 0;
    char byte;
    sqlite3 *db = connect_app();
    while (read(stop, &byte, 1) < 0 && n < sizeof ms / sizeof ms[0]) {
        double start = now_s(CLOCK_MONOTONIC);
        must(sqlite3_exec(db,
                          "INSERT INTO outbox (destination, event_type, payload) VALUES ('late', 'E', 'p')",
                          NULL, NULL, NULL) == SQLITE_OK,
             "insert");
        ms[n++] = (now_s(CLOCK_MONOTONIC) - start) * 1e3;
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    sqlite3_close(db);
    qsort(ms, n, sizeof ms[0], by_value);
    if (n)
        printf("an application's INSERT meanwhile (%zu of them): p50 %.2f ms, p99 %.2f ms, max %.2f ms\n", n,
               ms[n / 2], ms[n * 99 / 100], ms[n - 1]);
    fflush(stdout);
}

/* A child of its own, started before the parent opens anything: SQLite's locks do not survive a fork. */
static void insert_meanwhile(void)
{
    int ready[2], stop[2];
    must(pipe(ready) == 0 && pipe(stop) == 0, "pipe");
    run_sql("DELETE FROM outbox; CREATE INDEX IF NOT EXISTS outbox_by_destination ON outbox (destination)");
    fill(rows * 3, "billing");
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        close(stop[1]);
        must(write(ready[1], "x", 1) == 1, "write");
        /* non-blocking, so that the end of the other side is what stops it */
        execl("/proc/self/exe", "bench_store_sqlite", "--insert", url, (char[]){(char)('0' + stop[0]), '\0'},
              (char *)NULL);
        _exit(127);
    }
    close(stop[0]);
    char byte;
    must(read(ready[0], &byte, 1) == 1, "read");
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    int64_t lane = 0, last = 0;
    struct hk_err err;
    struct hk_store *store = open_store(true, &lane);
    static struct hk_settle settles[BATCH];
    static struct hk_want wants[BATCH];
    size_t n_settles = 0;
    double start = now_s(CLOCK_MONOTONIC);
    int64_t done = 0;
    while (done < rows * 3) {
        const struct hk_heads *heads = NULL;
        const struct hk_exchanged *x = NULL;
        must(hk_store_sqlite.scan(store, &(struct hk_scan){.after_id = last, .limit = 256}, &heads, &err) ==
                 HK_OK,
             "scan");
        last = heads->last_id;
        for (size_t i = 0; i < heads->n; i++)
            wants[i] = (struct hk_want){HK_FROM_OUTBOX, heads->items[i].id, true};
        const struct hk_exchange exchange = {.lane = lane,
                                             .lease_ms = LEASE_MS,
                                             .settles = settles,
                                             .n_settles = n_settles,
                                             .wants = wants,
                                             .n_wants = heads->n};
        must(hk_store_sqlite.exchange(store, &exchange, &x, &err) == HK_OK, "exchange");
        n_settles = x->n_messages;
        done += (int64_t)n_settles;
        for (size_t i = 0; i < n_settles; i++)
            settles[i] =
                (struct hk_settle){.claim = x->claim, .id = x->messages[i].id, .history.attempts = 1};
    }
    double took = now_s(CLOCK_MONOTONIC) - start;
    close(stop[1]);
    printf("\nwith another process inserting: %.0f msgs/s in batches of 256, sent rows kept\n",
           (double)done / took);
    fflush(stdout);
    must(waitpid(pid, NULL, 0) == pid, "waitpid");
    hk_store_sqlite.close(store);
}

static int64_t number(const char *text, int64_t most)
{
    int64_t value = 0;
    must(hk_parse_i64(hk_str_of(text), &value, NULL) == HK_OK && value > 0 && value <= most,
         "reading the arguments");
    return value;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 4 && strcmp(argv[1], "--insert") == 0) {
        snprintf(path, sizeof path, "%s", argv[2] + strlen("sqlite:"));
        int fd = (int)number(argv[3], 9);
        must(fcntl(fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
        insert_slowly(fd);
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "--bare") == 0) { /* FILE ROWS: the limit alone, for bench/relay.py */
        snprintf(path, sizeof path, "%s", argv[2]);
        rows = number(argv[3], 10000000);
        double start = now_s(CLOCK_MONOTONIC);
        drain_bare();
        printf("%.0f\n", (double)rows / (now_s(CLOCK_MONOTONIC) - start));
        return 0;
    }
    rows = argc > 1 ? number(argv[1], 10000000) : rows;
    int rounds = argc > 2 ? (int)number(argv[2], ROUNDS_MAX) : 5;
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/hikyaku-bench-XXXXXX", tmp ? tmp : "/tmp");
    must(mkdtemp(dir) != NULL, "mkdtemp");
    snprintf(path, sizeof path, "%s/bench.db", dir);
    snprintf(url, sizeof url, "sqlite:%s", path);
    struct hk_store_inited inited;
    struct hk_err err;
    must(hk_store_sqlite.init(url, &(struct hk_store_init){0}, &inited, &err) == HK_OK, "init");
    drains(rounds);
    behind();
    insert_meanwhile();
    unlink(path);
    snprintf(path, sizeof path, "%s/bench.db-wal", dir);
    unlink(path);
    snprintf(path, sizeof path, "%s/bench.db-shm", dir);
    unlink(path);
    rmdir(dir);
    return 0;
}
