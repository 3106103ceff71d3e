/* SPDX-License-Identifier: Apache-2.0 */
/* The same trace of operations on the model of sim/, on SQLite and (where there is a server) on PostgreSQL: after each one
 * the answers must agree, and every now and then the tables. A trace that shows a difference is made small and printed.
 * OPS=100000 in the environment runs longer ones, SEED=n others.
 *
 * Where stores may differ, and how it is left out:
 *
 *   ids                    each store's own: rows are compared by message and destination (PostgreSQL's numbers have gaps
 *                          where an application rolled back)
 *   rows in hand           a scan may show them or not: they are left out
 *   a poll's `changed`     may be true when nothing changed: what the last one with news said is compared
 *   `late`, `last_id`      PostgreSQL alone needs them, and may be vague: rows that became visible below what scans had
 *                          passed must be among those that a late scan gives; others may be, too
 *   scans before a poll    PostgreSQL shows what the last poll saw: each scan here comes behind a poll
 *   order among orphans    of one take-over: ids are given in any order. Of the keys k1 and k2 we, as an engine, never have
 *                          two in hand, and key_first is compared; of k3 we have, and it is not. Retry rows are compared as a set
 *   rows that went         PostgreSQL reads ahead: a head may be of one that was settled meanwhile (no claim finds it)
 *   a lease's length       PostgreSQL's may be up to two seconds longer, so that not every renewal is written
 *   a second lane          joins where lanes are shared, is refused elsewhere: not asked where they are */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include <hikyaku/rng.h>

#include "base/parse.h"
#include "base/str.h"
#include "differential.h"
#include "sqlite_kind.h"
#ifdef WITH_POSTGRES
#include "pg_kind.h"
#endif

enum {
    OPS = 10000,
    OPS_POSTGRES = 5000,
    DUMP_EVERY = 250,
    SIDES_MAX = 3,
    TRIES_MAX = 800,
    LEASE_SLACK_MS = 2000,
    TEXT_MAX = 256 << 20
};

static const char *const destinations[] = {"a", "b", "", "a"};
static const char *const keys[] = {"", "k1", "k2", "k3"};
static bool with_postgres;

/* ---- sides ---- */

static sqlite3 *sqlite_reader;

static void sqlite_rows(const char *sql, struct hk_buf *out)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(sqlite_reader, sql, -1, &q, NULL);
    NOTE_IF(rc != SQLITE_OK, "%s: %s\n", sql, sqlite3_errmsg(sqlite_reader));
    assert_int_equal(rc, SQLITE_OK);
    while (sqlite3_step(q) == SQLITE_ROW)
        (void)hk_buf_addf(out, "%s\n", (const char *)sqlite3_column_text(q, 0));
    sqlite3_finalize(q);
}

#ifdef WITH_POSTGRES
static PGconn *pg_reader, *pg_open[DIFF_OPEN];

static void pg_in_open(unsigned slot, const char *sql)
{
    pg_exec(pg_open[slot], sql);
}

static void pg_rows(const char *sql, struct hk_buf *out)
{
    PGresult *res = PQexec(pg_reader, sql);
    NOTE_IF(PQresultStatus(res) != PGRES_TUPLES_OK, "%s: %s\n", sql, PQerrorMessage(pg_reader));
    assert_int_equal(PQresultStatus(res), PGRES_TUPLES_OK);
    for (int i = 0; i < PQntuples(res); i++)
        (void)hk_buf_addf(out, "%s\n", PQgetvalue(res, i, 0));
    PQclear(res);
}
#endif

static size_t open_sides(struct diff_side *sides, size_t messages)
{
    size_t n = 0;
    diff_model_open(&sides[n++], messages);
    assert_true(sqlite_kind.make());
    sqlite_reader = sqlite_connect();
    diff_sql_open(&sides[n++], &(struct diff_sql){sqlite_kind.url(), sqlite_kind.sql, sqlite_rows, NULL});
#ifdef WITH_POSTGRES
    if (with_postgres) {
        assert_true(pg_kind.make());
        pg_reader = pg_connect(NULL);
        for (size_t i = 0; i < DIFF_OPEN; i++)
            pg_open[i] = pg_connect(NULL);
        diff_sql_open(&sides[n++], &(struct diff_sql){pg_kind.url(), pg_kind.sql, pg_rows, pg_in_open});
    }
#endif
    return n;
}

static void close_sides(struct diff_side *sides, size_t n)
{
    for (size_t i = 0; i < n; i++)
        sides[i].close(sides[i].arg);
    sqlite3_close(sqlite_reader);
    sqlite_kind.drop();
#ifdef WITH_POSTGRES
    if (with_postgres) {
        PQfinish(pg_reader);
        for (size_t i = 0; i < DIFF_OPEN; i++)
            PQfinish(pg_open[i]);
        pg_kind.drop();
    }
#endif
}

/* ---- what an operation means now ---- */

struct step {
    const struct diff_op *op;
    struct diff_message message;
    struct hk_scan scan;
    struct diff_name after;
    bool has_after;
    struct diff_exchange exchange;
    struct hk_circuit circuit;
};

static void plan_message(struct step *s, struct diff_view *view)
{
    const struct diff_op *op = s->op;
    s->message = (struct diff_message){.destination = destinations[op->a % 4], .key = keys[op->b % 4]};
    (void)snprintf(s->message.id, sizeof s->message.id, "m%u", view->messages++);
    if (op->c % 8 == 0)
        s->message.not_before_ms = view->now_ms + op->d % 5000;
    if (op->c % 16 == 1)
        s->message.expires_ms = view->now_ms + 1 + op->d % 20000;
}

static void plan_scan(struct step *s, const struct diff_view *view)
{
    const struct diff_op *op = s->op;
    bool retry = op->kind == DIFF_SCAN_RETRY;
    s->scan = (struct hk_scan){.source = retry ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                               .after_id = retry ? 0 : HK_FIRST_ID,
                               .after_due_ms = INT64_MIN,
                               .limit = 1 + op->c % 20};
    if (retry) /* one that was left to its route names none */
        s->scan.destination = destinations[op->a % 3];
    else if (op->a % 3)
        s->scan.destination = destinations[op->a % 3 - 1];
    if (!retry && s->scan.destination && op->b % 2)
        s->scan.key = keys[1 + op->b / 2 % 2];
    size_t pick = view->n_seen ? op->d % view->n_seen : 0;
    s->has_after = !retry && op->d % 4 == 0 && view->n_seen && view->seen[pick].source == HK_FROM_OUTBOX;
    if (s->has_after)
        s->after = view->seen[pick];
}

static void fail_attempt(struct hk_settle *s, const struct diff_held *held, int64_t now_ms, uint32_t wait_ms)
{
    s->history.attempts++;
    s->history.charged++;
    s->history.failures[HK_CLASS_TRANSIENT]++;
    s->history.prev_wait_ms = wait_ms;
    s->first_failed_ms = held->first_failed_ms ? held->first_failed_ms : now_ms;
    s->attempt = (struct hk_attempt_record){.made = true,
                                            .started_ms = now_ms - 20,
                                            .duration_ms = 20,
                                            .status = 500,
                                            .failure_class = HK_CLASS_TRANSIENT,
                                            .possibly_delivered = wait_ms % 4 == 0,
                                            .cause = hk_str_of("HTTP_500"),
                                            .error = hk_str_of("it said no")};
    s->reason = hk_str_of("HTTP_500");
}

static void plan_settle(struct diff_settle *out, const struct diff_held *held, uint32_t how, int64_t now_ms)
{
    static const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT,  HK_SETTLE_SENT,   HK_SETTLE_RETRY,
                                                HK_SETTLE_RETRY, HK_SETTLE_DEAD,   HK_SETTLE_RELEASE,
                                                HK_SETTLE_DEFER, HK_SETTLE_FAN_OUT};
    static const struct hk_str both[] = {{"a", 1}, {"b", 1}};
    struct hk_settle *s = &out->settle;
    uint32_t wait_ms = how / 8 % 4000;
    out->name = held->name;
    *s = (struct hk_settle){.source = held->name.source,
                            .kind = kinds[how % COUNT(kinds)],
                            .history = held->history,
                            .first_failed_ms = held->first_failed_ms,
                            .life = held->life,
                            .due_ms = now_ms + wait_ms};
    s->message_id = hk_str_of(out->name.message);
    s->destination = hk_str_of(out->name.destination[0] ? out->name.destination : "a");
    if (s->kind == HK_SETTLE_FAN_OUT && out->name.destination[0])
        s->kind = HK_SETTLE_SENT;
    if (!s->history.first_attempt_ms && s->kind <= HK_SETTLE_DEAD)
        s->history.first_attempt_ms = now_ms - 20;
    if (s->kind == HK_SETTLE_SENT) {
        s->history.attempts++;
        s->attempt = (struct hk_attempt_record){
            .made = true, .started_ms = now_ms - 20, .duration_ms = 20, .status = 200};
    } else if (s->kind == HK_SETTLE_RETRY || s->kind == HK_SETTLE_DEAD) {
        fail_attempt(s, held, now_ms, wait_ms);
    } else if (s->kind == HK_SETTLE_FAN_OUT) {
        s->fan_out = both;
        s->n_fan_out = 2;
    }
}

/* A message that is left to its route may go anywhere. */
static bool same_turn(const struct diff_name *a, const struct diff_name *b)
{
    return strcmp(a->key, b->key) == 0 &&
           (!a->destination[0] || !b->destination[0] || strcmp(a->destination, b->destination) == 0);
}

/* Is another of its key in hand, or about to be? */
static bool is_taken(const struct diff_name *name, const struct diff_exchange *x,
                     const struct diff_view *view)
{
    bool taken = false;
    for (size_t i = 0; i < view->n_hand[x->relay]; i++)
        taken |= same_turn(name, &view->hand[x->relay][i].name);
    for (size_t i = 0; i < x->n_wants; i++)
        taken |= same_turn(name, &x->wants[i]);
    return taken && diff_ordered(name->key);
}

/* Some of what is in hand is settled, some of what was seen is claimed. A settle that comes twice is stale the second time. */
static void plan_exchange(struct step *s, struct diff_view *view)
{
    const struct diff_op *op = s->op;
    struct diff_exchange *x = &s->exchange;
    unsigned relay = op->kind == DIFF_STALE ? 1 - view->relay : view->relay;
    *x = (struct diff_exchange){.relay = relay};
    size_t kept = 0;
    for (size_t i = 0; i < view->n_hand[relay]; i++) {
        const struct diff_held held = view->hand[relay][i];
        if (op->kind == DIFF_STALE || op->a >> i & 1)
            plan_settle(&x->settles[x->n_settles++], &held, op->c >> (i % 8), view->now_ms);
        if (op->kind != DIFF_EXCHANGE || !(op->a >> i & 1) || op->d % 16 == 0)
            view->hand[relay][kept++] = held;
    }
    view->n_hand[relay] = kept;
    for (size_t i = 0; i < x->n_settles; i++) { /* names must outlive the view */
        x->settles[i].settle.message_id = hk_str_of(x->settles[i].name.message);
        if (x->settles[i].name.destination[0])
            x->settles[i].settle.destination = hk_str_of(x->settles[i].name.destination);
    }
    for (size_t i = 0; op->kind == DIFF_EXCHANGE && i < view->n_seen && kept + x->n_wants < DIFF_HAND / 2;
         i++)
        if ((op->b >> (i % 16) & 1) && !is_taken(&view->seen[i], x, view))
            x->wants[x->n_wants++] = view->seen[i];
    if (op->kind == DIFF_EXCHANGE)
        view->n_seen = 0;
    if (op->kind == DIFF_CIRCUIT) {
        s->circuit =
            (struct hk_circuit){destinations[op->b % 2], op->c % 3 ? view->now_ms + op->c % 5000 : 0};
        x->n_settles = 0;
        x->circuit = &s->circuit;
    }
}

/* False: there is nothing to do now. */
static bool plan(struct step *s, struct diff_view *view)
{
    switch (s->op->kind) {
    case DIFF_INSERT:
    case DIFF_ROLLBACK:
        plan_message(s, view);
        return true;
    case DIFF_HOLD:
        plan_message(s, view);
        return !view->open[s->op->a / 4 % DIFF_OPEN];
    case DIFF_LET:
        return view->open[s->op->a / 4 % DIFF_OPEN];
    case DIFF_TICK:
        view->now_ms += s->op->a % 3000;
        return false;
    case DIFF_SCAN:
    case DIFF_SCAN_RETRY:
        plan_scan(s, view);
        view->n_seen = 0;
        return view->lane;
    case DIFF_HELD_KEYS:
    case DIFF_RELEASE:
    case DIFF_KNOCK:
        return view->lane && (s->op->kind != DIFF_KNOCK || view->now_ms < view->lease_until_ms);
    case DIFF_EXCHANGE:
    case DIFF_CIRCUIT:
        if (view->lane)
            plan_exchange(s, view);
        return view->lane;
    case DIFF_STALE:
        plan_exchange(s, view);
        return s->exchange.n_settles > 0;
    case DIFF_ACQUIRE:
        return !view->lane;
    case DIFF_TAKE_OVER:
        if (view->lane && view->now_ms < view->lease_until_ms + LEASE_SLACK_MS)
            view->now_ms = view->lease_until_ms + LEASE_SLACK_MS;
        return view->lane;
    case DIFF_PAUSE:
    case DIFF_CANCEL:
    case DIFF_DISCARD:
    case DIFF_REQUEUE:
    case DIFF_EDIT:
        return true;
    case DIFF_NKINDS:
        break;
    }
    return false;
}

static void perform(struct diff_side *side, struct step *s, struct diff_view *view, struct hk_buf *out)
{
    const struct diff_op *op = s->op;
    switch (op->kind) {
    case DIFF_INSERT:
    case DIFF_ROLLBACK:
        side->insert(side->arg, &s->message, op->kind == DIFF_INSERT);
        break;
    case DIFF_HOLD:
        side->hold(side->arg, op->a / 4 % DIFF_OPEN, &s->message);
        break;
    case DIFF_LET:
        side->let(side->arg, op->a / 4 % DIFF_OPEN, op->b % 4);
        break;
    case DIFF_SCAN:
    case DIFF_SCAN_RETRY:
        side->scan(side->arg, &s->scan, s->has_after ? &s->after : NULL, view, out);
        break;
    case DIFF_HELD_KEYS:
        side->held_keys(side->arg, view->relay, out);
        break;
    case DIFF_EXCHANGE:
    case DIFF_STALE:
    case DIFF_CIRCUIT:
        side->exchange(side->arg, &s->exchange, view, out);
        break;
    case DIFF_ACQUIRE:
        side->acquire(side->arg, view->relay, out);
        break;
    case DIFF_KNOCK:
        if (side->one_lane)
            side->acquire(side->arg, 1 - view->relay, out);
        else
            (void)hk_buf_adds(out, "acquire busy\n");
        break;
    case DIFF_TAKE_OVER:
        side->acquire(side->arg, 1 - view->relay, out);
        break;
    case DIFF_RELEASE:
        side->release(side->arg, view->relay, out);
        break;
    case DIFF_PAUSE:
        side->pause(side->arg, destinations[op->a % 2], op->b % 2);
        break;
    case DIFF_CANCEL:
    case DIFF_DISCARD:
    case DIFF_REQUEUE:
    case DIFF_EDIT:
        side->act(side->arg, op->kind, op->a, &view->acted, out);
        break;
    case DIFF_TICK:
    case DIFF_NKINDS:
        break;
    }
}

/* What the operation has changed for the next ones. */
static void conclude(const struct step *s, struct diff_view *view)
{
    switch (s->op->kind) {
    case DIFF_HOLD:
    case DIFF_LET:
        view->open[s->op->a / 4 % DIFF_OPEN] = s->op->kind == DIFF_HOLD;
        break;
    case DIFF_TAKE_OVER:
        view->relay = 1 - view->relay;
        view->n_hand[view->relay] = view->n_seen = 0;
        view->lease_until_ms = view->now_ms + DIFF_LEASE_MS;
        break;
    case DIFF_ACQUIRE:
        view->lane = true;
        view->n_hand[view->relay] = view->n_seen = 0;
        view->lease_until_ms = view->now_ms + DIFF_LEASE_MS;
        break;
    case DIFF_RELEASE:
        view->lane = false;
        view->relay = 1 - view->relay; /* what it had in hand it may try to settle later: too late */
        break;
    case DIFF_EXCHANGE:
    case DIFF_CIRCUIT:
        view->lease_until_ms = view->now_ms + DIFF_LEASE_MS;
        break;
    default:
        break;
    }
}

/* ---- a trace ---- */

struct outcome {
    size_t at; /* where they differ; the trace's length = nowhere */
    char text[2][400];
    const char *names[2];
};

static void differ(struct outcome *out, const struct diff_side *side, const struct hk_buf *mine,
                   const struct hk_buf *its)
{
    /* from the first line that differs on */
    const char *a = hk_buf_cstr(mine), *b = hk_buf_cstr(its), *from = a;
    for (size_t i = 0; a[i] && a[i] == b[i]; i++)
        if (a[i] == '\n')
            from = a + i + 1;
    (void)snprintf(out->text[0], sizeof out->text[0], "%s", from);
    (void)snprintf(out->text[1], sizeof out->text[1], "%s", b + (from - a));
    out->names[0] = "model";
    out->names[1] = side->name;
}

static bool agree(struct diff_side *sides, size_t n, struct hk_buf bufs[], struct outcome *out)
{
    for (size_t i = 1; i < n; i++)
        if (!hk_str_eq(hk_buf_str(&bufs[0]), hk_buf_str(&bufs[i]))) {
            differ(out, &sides[i], &bufs[0], &bufs[i]);
            return false;
        }
    return true;
}

static bool dumps_agree(struct diff_side *sides, size_t n, struct hk_buf bufs[], bool whole,
                        struct outcome *out)
{
    for (size_t i = 0; i < n; i++) {
        hk_buf_reset(&bufs[i]);
        sides[i].dump(sides[i].arg, whole, &bufs[i]);
        diff_sort_lines(&bufs[i], 0);
    }
    return agree(sides, n, bufs, out);
}

static bool run_op(struct diff_side *sides, size_t n, struct hk_buf bufs[], struct step *step,
                   struct diff_view *view, struct outcome *out)
{
    bool todo = plan(step, view);
    diff_clock_ms = view->now_ms;
    for (size_t i = 0; todo && i < n; i++) {
        hk_buf_reset(&bufs[i]);
        perform(&sides[i], step, view, &bufs[i]);
    }
    if (todo && !agree(sides, n, bufs, out))
        return false;
    if (todo)
        conclude(step, view);
    return true;
}

/* So that nobody compares nothing. */
static void print_counts(size_t n_sides, size_t n_ops, const struct diff_view *view,
                         const struct hk_buf *dump)
{
    const char *counts = strstr(hk_buf_cstr(dump), "counts|");
    printf("# %zu stores, %zu operations; late rows %zu; sent, cancelled, attempts, letters: %.*s\n", n_sides,
           n_ops, view->all_late, counts ? (int)strcspn(counts + 7, "\n") : 0, counts ? counts + 7 : "");
}

/* `dump_every` 1 finds the very operation after which tables differ. */
static void run_trace(const struct diff_op *ops, size_t n_ops, size_t dump_every, struct outcome *out)
{
    struct diff_side sides[SIDES_MAX];
    struct hk_buf bufs[SIDES_MAX];
    struct diff_view view = {.now_ms = INT64_C(1800000000000)};
    diff_clock_ms = view.now_ms;
    size_t n = open_sides(sides, n_ops);
    for (size_t i = 0; i < n; i++)
        hk_buf_init(&bufs[i], TEXT_MAX);
    for (out->at = 0; out->at < n_ops; out->at++) {
        struct step step = {.op = &ops[out->at]};
        bool last = out->at + 1 == n_ops;
        if (!run_op(sides, n, bufs, &step, &view, out))
            break;
        if ((last || (out->at + 1) % dump_every == 0) && !dumps_agree(sides, n, bufs, last, out))
            break;
        if (last && dump_every > 1)
            print_counts(n, n_ops, &view, &bufs[0]);
    }
    for (size_t i = 0; i < n; i++)
        hk_buf_fini(&bufs[i]);
    close_sides(sides, n);
}

static void draw(struct diff_op *ops, size_t n, uint64_t seed)
{
    /* how often each comes; the rest are exchanges */
    static const uint32_t weights[DIFF_NKINDS] = {
        [DIFF_HOLD] = 3,      [DIFF_LET] = 3,     [DIFF_INSERT] = 9,      [DIFF_ROLLBACK] = 2,
        [DIFF_TICK] = 12,     [DIFF_SCAN] = 16,   [DIFF_SCAN_RETRY] = 14, [DIFF_HELD_KEYS] = 4,
        [DIFF_STALE] = 2,     [DIFF_ACQUIRE] = 4, [DIFF_KNOCK] = 1,       [DIFF_RELEASE] = 1,
        [DIFF_TAKE_OVER] = 2, [DIFF_PAUSE] = 2,   [DIFF_CIRCUIT] = 1,     [DIFF_CANCEL] = 2,
        [DIFF_DISCARD] = 2,   [DIFF_REQUEUE] = 3, [DIFF_EDIT] = 2,
    };
    struct hk_rng rng;
    hk_rng_seed(&rng, seed, 500);
    for (size_t i = 0; i < n; i++) {
        uint64_t left = hk_rng_upto(&rng, 123);
        enum diff_kind kind = DIFF_EXCHANGE;
        for (int k = 0; k < DIFF_NKINDS; k++) {
            if (left < weights[k]) {
                kind = (enum diff_kind)k;
                break;
            }
            left -= weights[k];
        }
        ops[i] = (struct diff_op){kind, (uint32_t)hk_rng_next(&rng), (uint32_t)hk_rng_next(&rng),
                                  (uint32_t)hk_rng_next(&rng), (uint32_t)hk_rng_next(&rng)};
    }
}

/* ---- making it small ---- */

static size_t shrink(struct diff_op *ops, size_t n)
{
    struct diff_op *fewer = calloc(n + 1, sizeof *fewer);
    struct outcome out;
    int tries = 0;
    assert_non_null(fewer);
    for (size_t chunk = n / 2; chunk > 0; chunk /= 2)
        for (size_t at = 0; at < n && tries < TRIES_MAX;) {
            size_t gone = chunk < n - at ? chunk : n - at;
            memcpy(fewer, ops, at * sizeof *ops);
            memcpy(fewer + at, ops + at + gone, (n - at - gone) * sizeof *ops);
            run_trace(fewer, n - gone, 1, &out);
            tries++;
            if (out.at < n - gone) {
                n = out.at + 1;
                memcpy(ops, fewer, n * sizeof *ops);
            } else {
                at += gone;
            }
        }
    free(fewer);
    return n;
}

static void print_difference(struct diff_op *ops, size_t n)
{
    static const char *const names[DIFF_NKINDS] = {"insert",  "rollback",   "hold",      "let",       "tick",
                                                   "scan",    "scan_retry", "held_keys", "exchange",  "stale",
                                                   "acquire", "knock",      "release",   "take_over", "pause",
                                                   "circuit", "cancel",     "discard",   "requeue",   "edit"};
    struct outcome out;
    n = shrink(ops, n);
    run_trace(ops, n, 1, &out);
    for (size_t i = 0; i < n; i++)
        print_error("%3zu %s %u %u %u %u\n", i, names[ops[i].kind], ops[i].a, ops[i].b, ops[i].c, ops[i].d);
    print_error("%s:\n%s%s:\n%s", out.names[0], out.text[0], out.names[1], out.text[1]);
}

static uint64_t from_environment(const char *name, uint64_t usual)
{
    const char *text = getenv(name);
    uint64_t n = usual;
    if (text && hk_parse_u64(hk_str_of(text), &n, NULL) != HK_OK)
        fail_msg("%s is not a number", name);
    return n;
}

static void compare(bool postgres, uint64_t usual)
{
    size_t n = (size_t)from_environment("OPS", usual);
    uint64_t seed = from_environment("SEED", 1);
    struct diff_op *ops = calloc(n, sizeof *ops);
    struct outcome out;
    assert_non_null(ops);
    with_postgres = postgres;
    draw(ops, n, seed);
    run_trace(ops, n, DUMP_EVERY, &out);
    if (out.at < n) {
        print_error("operation %zu of %zu, seed %" PRIu64 ":\n%s:\n%s%s:\n%s", out.at, n, seed, out.names[0],
                    out.text[0], out.names[1], out.text[1]);
        print_difference(ops, out.at + 1);
    }
    free(ops);
    assert_int_equal(out.at, n);
}

static void model_and_sqlite_agree(void **state)
{
    (void)state;
    compare(false, OPS);
}

#ifdef WITH_POSTGRES
static void model_sqlite_and_postgres_agree(void **state)
{
    (void)state;
    compare(true, OPS_POSTGRES);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(model_and_sqlite_agree),
#ifdef WITH_POSTGRES
        cmocka_unit_test(model_sqlite_and_postgres_agree),
#endif
    };
    size_t n = COUNT(tests);
#ifdef WITH_POSTGRES
    const int *code = pg_server_start();
    if (code && *code)
        return *code;
    n -= code != NULL; /* no server: the other two all the same */
#endif
    return _cmocka_run_group_tests("differential", tests, n, NULL, NULL);
}
