/* SPDX-License-Identifier: Apache-2.0 */
/* Transactions as pipelines, bounded in time.
 *
 * Statements are collected first and handed to libpq all at once, since libpq writes to the socket whenever it has 8 KiB:
 * a process that is stopped while it still thinks about what to send would leave a transaction open at the server, with its
 * locks. So nothing goes out before everything is ready.
 *
 * libpq does not say which statement a result answers, so what was queued stands in pg->expected, with who reads its answer,
 * and is ticked off in the same order. One sync ends each transaction; an error skips everything up to it, COMMIT included,
 * and leaves a failed transaction behind that hk_pg_end rolls back. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "store/pg/pg.h"

#define SQL_MAX (64 * 1024)

enum expected_kind {
    EXPECT_INNER = 0, /* BEGIN, settings */
    EXPECT_PREPARED,
    EXPECT_STATEMENT,
    EXPECT_COMMIT,
    EXPECT_SYNC
};

struct hk_pg_expected {
    enum expected_kind kind;
    unsigned id;
    const char *sql;
    /* parameters, in the call's pool */
    int n;
    const char *const *values;
    const int *lengths, *formats;
    hk_pg_reader *reader; /* NULL = nobody, or whoever calls hk_pg_result */
    void *arg;
};

/* ---- waiting ---- */

static int64_t monotonic_ms(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static void start_deadline(struct hk_pg *pg)
{
    pg->deadline_ms = monotonic_ms() + (int64_t)pg->call_ms;
}

/* Until the socket is ready, or worth a look: with encryption, what was received may lie decrypted in a library, where
 * poll does not see it. False when the deadline passes first. */
static bool wait_for(struct hk_pg *pg, short events)
{
    bool hidden = PQsslInUse(pg->conn) || PQgssEncInUse(pg->conn);
    int64_t slice_ms = hidden ? 20 : 60000;
    for (;;) {
        int64_t left_ms = pg->deadline_ms - monotonic_ms();
        struct pollfd fd = {.fd = PQsocket(pg->conn), .events = events};
        int n = poll(&fd, 1, left_ms <= 0 ? 0 : left_ms > slice_ms ? (int)slice_ms : (int)left_ms);
        if (n > 0 || (n < 0 && errno != EINTR))
            return n > 0;
        if (n == 0 ? left_ms <= slice_ms : left_ms <= 0) /* signals do not move the deadline */
            return false;
        if (n == 0 && hidden)
            return true;
    }
}

static void late(struct hk_pg *pg)
{
    hk_pg_fail(pg, HK_UNAVAILABLE, "the server does not answer");
    pg->late = true;
    hk_pg_drop(pg);
}

/* Everything onto the wire. Reads on the way: the server may be unable to take more before it is rid of its answers. */
static bool flush(struct hk_pg *pg)
{
    for (;;) {
        int rc = PQflush(pg->conn);
        if (rc == 0)
            return true;
        if (rc < 0) {
            hk_pg_lost(pg);
            return false;
        }
        if (!wait_for(pg, POLLIN | POLLOUT)) {
            late(pg);
            return false;
        }
        if (!PQconsumeInput(pg->conn)) {
            hk_pg_lost(pg);
            return false;
        }
    }
}

/* The next result, or NULL where libpq puts one between statements; false: the connection is gone. */
static bool fetch(struct hk_pg *pg, PGresult **out)
{
    while (PQisBusy(pg->conn)) {
        if (!wait_for(pg, POLLIN)) {
            late(pg);
            return false;
        }
        if (!PQconsumeInput(pg->conn)) {
            hk_pg_lost(pg);
            return false;
        }
    }
    *out = PQgetResult(pg->conn);
    return true;
}

/* ---- what is sent, and expected back ---- */

static struct hk_pg_expected *expect(struct hk_pg *pg, enum expected_kind kind, const char *sql)
{
    if (!hk_pg_ok(pg))
        return NULL;
    if (pg->n_expected == pg->room_expected) {
        size_t room = pg->room_expected ? 2 * pg->room_expected : 64;
        struct hk_pg_expected *more = hk_mem_resize(pg->expected, room * sizeof *more);
        if (!more) {
            hk_pg_fail(pg, HK_NOMEM, "out of memory");
            return NULL;
        }
        pg->expected = more;
        pg->room_expected = room;
    }
    struct hk_pg_expected *e = &pg->expected[pg->n_expected++];
    *e = (struct hk_pg_expected){.kind = kind, .sql = sql};
    return e;
}

static int send_one(struct hk_pg *pg, const struct hk_pg_expected *e)
{
    char name[16];
    snprintf(name, sizeof name, "hk%u", e->id);
    int format = e->kind == EXPECT_STATEMENT && pg->table->binary && pg->table->binary(e->id);
    switch (e->kind) {
    case EXPECT_SYNC:
        return PQpipelineSync(pg->conn);
    case EXPECT_PREPARED:
        return PQsendPrepare(pg->conn, name, e->sql, 0, NULL);
    case EXPECT_STATEMENT:
        if (!pg->pooled)
            return PQsendQueryPrepared(pg->conn, name, e->n, e->values, e->lengths, e->formats, format);
        break;
    case EXPECT_INNER:
    case EXPECT_COMMIT:
        break;
    }
    return PQsendQueryParams(pg->conn, e->sql, e->n, NULL, e->values, e->lengths, e->formats, format);
}

/* All that was collected, and a sync. */
static void send_all(struct hk_pg *pg)
{
    expect(pg, EXPECT_SYNC, NULL);
    if (!hk_pg_ok(pg))
        return;
    start_deadline(pg);
    pg->sent = true;
    for (size_t i = 0; i < pg->n_expected; i++)
        if (!send_one(pg, &pg->expected[i])) {
            hk_pg_lost(pg);
            return;
        }
    flush(pg);
}

/* What was collected and will not be sent. */
static void forget(struct hk_pg *pg)
{
    for (size_t i = 0; !pg->sent && i < pg->n_expected; i++)
        if (pg->expected[i].kind == EXPECT_PREPARED)
            pg->prepared[pg->expected[i].id] = false;
    pg->n_expected = pg->answered = 0;
    pg->sent = false;
}

/* Does this answer say that the transaction is undone? Not so when the session ends in the middle of COMMIT. */
static bool tells_abort(enum expected_kind kind, const PGresult *res)
{
    if (PQresultStatus(res) == PGRES_PIPELINE_ABORTED)
        return true;
    const char *severity = PQresultErrorField(res, PG_DIAG_SEVERITY_NONLOCALIZED);
    return severity && (kind != EXPECT_COMMIT || strcmp(severity, "ERROR") == 0);
}

/* Reads the answer to what is expected next. False: the connection is gone. `*out_res` is the caller's, and NULL
 * when the server refused the statement or skipped it. */
static bool read_next(struct hk_pg *pg, PGresult **out_res)
{
    struct hk_pg_expected next = pg->expected[pg->answered];
    PGresult *res = NULL, *end = NULL;
    *out_res = NULL;
    if (!fetch(pg, &res))
        return false;
    ExecStatusType status = PQresultStatus(res); /* NULL: PGRES_FATAL_ERROR */
    bool good = status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK || status == PGRES_PIPELINE_SYNC;
    if (next.kind == EXPECT_PREPARED && !good)
        pg->prepared[next.id] = false;
    if (next.kind == EXPECT_COMMIT && good)
        pg->committed = true;
    if (!good && tells_abort(next.kind, res))
        pg->aborted = true;
    if (!good && status != PGRES_PIPELINE_ABORTED)
        hk_pg_refused(pg, res); /* may drop the connection */
    if (!good || !pg->conn) {
        PQclear(res);
        res = NULL;
    }
    if (!pg->conn)
        return false;
    pg->answered++;
    if (next.kind != EXPECT_SYNC && !fetch(pg, &end)) {
        PQclear(res);
        return false;
    }
    PQclear(end); /* NULL, unless a statement gives more than one result: none of ours does */
    *out_res = res;
    return true;
}

/* Reads what is left, up to the sync. */
static void drain(struct hk_pg *pg)
{
    PGresult *res = NULL;
    while (pg->conn && pg->sent && pg->answered < pg->n_expected && read_next(pg, &res))
        PQclear(res);
    forget(pg);
}

/* An error leaves the transaction open, failed; its locks are gone already. The error itself goes on sticking. */
static void roll_back(struct hk_pg *pg)
{
    if (!pg->conn || PQtransactionStatus(pg->conn) == PQTRANS_IDLE)
        return;
    enum hk_code rc = pg->rc;
    pg->rc = HK_OK;
    struct hk_err err = pg->err;
    char sqlstate[sizeof pg->sqlstate];
    memcpy(sqlstate, pg->sqlstate, sizeof sqlstate);
    expect(pg, EXPECT_INNER, "ROLLBACK");
    send_all(pg);
    drain(pg);
    if (!hk_pg_ok(pg))
        hk_pg_drop(pg);
    pg->rc = rc;
    pg->err = err;
    memcpy(pg->sqlstate, sqlstate, sizeof sqlstate);
}

static void finish(struct hk_pg *pg)
{
    drain(pg);
    if (hk_pg_ok(pg))
        return;
    roll_back(pg);
    if (pg->held == HK_PG_HELD)
        pg->held = HK_PG_LOST;
}

/* ---- transactions ---- */

bool hk_pg_ok(const struct hk_pg *pg)
{
    return pg->rc == HK_OK;
}

struct hk_pool *hk_pg_pool(struct hk_pg *pg)
{
    return &pg->pools[pg->pool];
}

void *hk_pg_alloc(struct hk_pg *pg, size_t count, size_t bytes)
{
    if (!hk_pg_ok(pg))
        return NULL;
    void *ptr = hk_pool_alloc(hk_pg_pool(pg), count, bytes);
    if (!ptr)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    return ptr;
}

static void start(struct hk_pg *pg)
{
    finish(pg);
    if (hk_pg_ok(pg))
        pg->commit_sent = pg->committed = pg->aborted = pg->commit_unknown = false;
}

void hk_pg_begin(struct hk_pg *pg, bool writes)
{
    start(pg);
    if (pg->held != HK_PG_FREE)
        return;
    /* Not READ WRITE: that would overrule a default_transaction_read_only that somebody set on purpose. */
    expect(pg, EXPECT_INNER,
           writes ? "BEGIN ISOLATION LEVEL READ COMMITTED"
                  : "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
    if (pg->pooled)
        expect(pg, EXPECT_INNER, pg->settings);
}

/* The statement with names filled in; NULL: no memory. */
static const char *statement(struct hk_pg *pg, unsigned id)
{
    if (!pg->sql[id]) {
        struct hk_buf text;
        hk_buf_init(&text, SQL_MAX);
        hk_pg_url_names(&pg->url, pg->table->sql(id), &text);
        pg->sql[id] = hk_buf_detach(&text);
        hk_buf_fini(&text);
        if (!pg->sql[id])
            hk_pg_fail(pg, HK_NOMEM, "out of memory");
    }
    return pg->sql[id];
}

static void *copy(struct hk_pg *pg, const void *items, int n, size_t bytes)
{
    void *to = hk_pg_alloc(pg, (size_t)n, bytes);
    if (to && n > 0)
        memcpy(to, items, (size_t)n * bytes);
    return to;
}

void hk_pg_add_read(struct hk_pg *pg, unsigned id, const struct hk_pg_args *args, hk_pg_reader *reader,
                    void *arg)
{
    static const struct hk_pg_args none;
    const struct hk_pg_args *a = args ? args : &none;
    const char *sql = hk_pg_ok(pg) ? statement(pg, id) : NULL;
    if (!sql)
        return;
    if (!pg->pooled && !pg->prepared[id]) {
        struct hk_pg_expected *e = expect(pg, EXPECT_PREPARED, sql);
        if (e)
            e->id = id;
        pg->prepared[id] = e != NULL; /* until its answer says otherwise */
    }
    const char *const *values = copy(pg, a->values, a->n, sizeof a->values[0]);
    const int *lengths = copy(pg, a->lengths, a->n, sizeof a->lengths[0]);
    const int *formats = copy(pg, a->formats, a->n, sizeof a->formats[0]);
    struct hk_pg_expected *e = expect(pg, EXPECT_STATEMENT, sql);
    if (e)
        *e = (struct hk_pg_expected){EXPECT_STATEMENT, id, sql, a->n, values, lengths, formats, reader, arg};
}

void hk_pg_add(struct hk_pg *pg, unsigned id, const struct hk_pg_args *args)
{
    hk_pg_add_read(pg, id, args, NULL, NULL);
}

void hk_pg_hold(struct hk_pg *pg)
{
    send_all(pg);
    if (hk_pg_ok(pg))
        pg->held = HK_PG_HELD;
}

void hk_pg_unhold(struct hk_pg *pg)
{
    bool held = pg->held == HK_PG_HELD;
    pg->held = HK_PG_FREE;
    drain(pg);
    if (held)
        roll_back(pg);
}

void hk_pg_send(struct hk_pg *pg)
{
    if (pg->held != HK_PG_FREE) {
        send_all(pg);
        return;
    }
    expect(pg, EXPECT_COMMIT, "COMMIT");
    pg->commit_sent = hk_pg_ok(pg); /* or about to be: libpq sends what it likes when it likes */
    send_all(pg);
}

PGresult *hk_pg_result(struct hk_pg *pg)
{
    while (hk_pg_ok(pg) && pg->answered < pg->n_expected) {
        enum expected_kind kind = pg->expected[pg->answered].kind;
        PGresult *res = NULL;
        if (!pg->sent || kind == EXPECT_COMMIT || kind == EXPECT_SYNC)
            break;
        if (read_next(pg, &res) && kind == EXPECT_STATEMENT && hk_pg_ok(pg))
            return res;
        PQclear(res);
    }
    hk_pg_fail(pg, HK_IO, "a statement without an answer"); /* ours to blame */
    return NULL;
}

void hk_pg_read(struct hk_pg *pg)
{
    while (hk_pg_ok(pg) && pg->sent && pg->answered < pg->n_expected) {
        struct hk_pg_expected next = pg->expected[pg->answered];
        PGresult *res = NULL;
        if (next.kind == EXPECT_COMMIT || next.kind == EXPECT_SYNC)
            break;
        (void)read_next(pg, &res); /* else the error sticks */
        if (next.reader)
            next.reader(next.arg, res);
        else
            PQclear(res);
    }
}

PGresult *hk_pg_query(struct hk_pg *pg, bool writes, unsigned id, const struct hk_pg_args *args)
{
    if (!writes && !pg->pooled) { /* a transaction by itself */
        start(pg);
        hk_pg_add(pg, id, args);
        send_all(pg);
        return hk_pg_result(pg);
    }
    hk_pg_begin(pg, writes);
    hk_pg_add(pg, id, args);
    hk_pg_send(pg);
    return hk_pg_result(pg);
}

enum hk_code hk_pg_end(struct hk_pg *pg, const char *doing, struct hk_err *err)
{
    finish(pg);
    if (hk_pg_ok(pg))
        return HK_OK;
    const char *advice = NULL;
    hk_pg_meaning(pg->sqlstate, &advice);
    if (pg->sqlstate[0])
        hk_err_set(err, pg->rc, "%s: cannot %s: %s (SQLSTATE %s): %s", pg->url.place, doing, pg->err.message,
                   pg->sqlstate, advice);
    else if (pg->rc == HK_UNAVAILABLE) {
        advice = hk_pg_unconnected(pg->err.message);
        hk_err_set(err, pg->rc, "%s: cannot %s: %s: %s", pg->url.place, doing, pg->err.message, advice);
    } else
        hk_err_set(err, pg->rc, "%s: cannot %s: %s", pg->url.place, doing, pg->err.message);
    if (err && pg->rc == HK_UNAVAILABLE && !hk_pg_mends(advice))
        err->errclass = HK_ERRCLASS_PERMANENT;
    return pg->rc;
}

/* Several statements as one message are for the simple protocol, which a pipeline does not take. */
PGresult *hk_pg_script(struct hk_pg *pg, const char *sql)
{
    finish(pg);
    if (!hk_pg_ok(pg))
        return NULL;
    struct hk_buf text;
    hk_buf_init(&text, SQL_MAX);
    if (pg->pooled && pg->url.schema[0]) /* the rest of the settings can be done without */
        hk_buf_adds(&text, "SELECT pg_catalog.set_config('search_path', '" HK_PG_PATH "', true);\n");
    hk_pg_url_names(&pg->url, sql, &text);
    char *filled = hk_buf_detach(&text);
    hk_buf_fini(&text);
    if (!filled) {
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
        return NULL;
    }
    start_deadline(pg);
    PGresult *last = NULL, *res = NULL;
    if (!PQexitPipelineMode(pg->conn) || !PQsendQuery(pg->conn, filled))
        hk_pg_lost(pg);
    else
        flush(pg);
    hk_mem_free(filled);
    while (pg->conn && fetch(pg, &res) && res) {
        PQclear(last);
        last = res;
        if (PQresultStatus(res) == PGRES_FATAL_ERROR)
            hk_pg_refused(pg, res);
    }
    if (pg->conn && !PQenterPipelineMode(pg->conn))
        hk_pg_lost(pg);
    if (!hk_pg_ok(pg)) {
        PQclear(last);
        return NULL;
    }
    return last;
}

PGresult *hk_pg_ask(struct hk_pg *pg, const char *sql)
{
    PGresult *res = NULL;
    finish(pg);
    expect(pg, EXPECT_INNER, sql);
    send_all(pg);
    if (hk_pg_ok(pg))
        read_next(pg, &res);
    drain(pg);
    return res;
}
