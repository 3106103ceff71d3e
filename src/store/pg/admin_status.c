/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a store, in bounded time: of a kind of rows no more than HK_COUNT_EXACT are counted. A table that has more
 * is looked at twice: a sample of its pages gives the whole (SAMPLED of sql/admin.sql), and a walk from destination to
 * destination finds those that are small enough to be counted, or too rare to be in the sample. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/pg/admin.h"

enum {
    DESTS_MAX = 1000,
    FEW = 1000,         /* are always counted */
    MANY = 4,           /* times what would be counted: no sample is wrong by so much, */
    MANY_LEAST = 30000, /* unless of few rows that lie side by side */
};

/* Rows that are counted in all, by kind: each is looked at where it lies, wide or not. */
static const int64_t budgets[] = {200000, 100000, 50000};

enum kind {
    OUTBOX = 0,
    RETRY,
    DEAD,
    NKINDS
};

/* What is known of one destination's rows of one kind; what is in flight is left out. */
struct tally {
    struct hk_count waiting, tried;
};

struct taker {
    struct hk_admin *admin;
    struct hk_store_status *out;
    size_t room;
    int64_t most;                  /* rows of a kind that are counted */
    bool large[NKINDS];            /* has more rows than are counted */
    struct tally *tallies[NKINDS]; /* DESTS_MAX of each, as out->dests */
    uint64_t *flying;              /* likewise: rows of outbox that are in flight */
};

static struct hk_count plus(struct hk_count a, struct hk_count b)
{
    return (struct hk_count){a.n + b.n, a.about || b.about};
}

static struct hk_count minus(struct hk_count a, struct hk_count b)
{
    return (struct hk_count){a.n > b.n ? a.n - b.n : 0, a.about || b.about};
}

static void older(int64_t *oldest_ms, int64_t ms)
{
    if (ms > 0 && (*oldest_ms == 0 || ms < *oldest_ms))
        *oldest_ms = ms;
}

/* The destination's number, given if need be; DESTS_MAX: there are too many, or no memory. */
static size_t dest_of(struct taker *t, const PGresult *res, int row, int column)
{
    struct hk_store_status *out = t->out;
    struct hk_str name = hk_pg_text(&t->admin->pg, res, row, column);
    for (size_t i = 0; i < out->n_dests; i++)
        if (hk_str_eq(out->dests[i].name, name))
            return i;
    if (out->n_dests == DESTS_MAX) {
        out->more_dests = true;
        return DESTS_MAX;
    }
    struct hk_dest_status *dests = hk_pa_grow(t->admin, out->dests, out->n_dests, &t->room, sizeof *dests);
    if (!dests)
        return DESTS_MAX;
    out->dests = dests;
    dests[out->n_dests] = (struct hk_dest_status){.name = name, .actor = {"", 0}, .reason = {"", 0}};
    return out->n_dests++;
}

/* ---- one kind of rows ---- */

/* What a statement counted, times the sample's factor. */
static struct hk_count count_at(const PGresult *res, int row, int column)
{
    double factor = 1;
    uint64_t n = hk_pa_u64(res, row, column);
    if (hk_parse_decimal(hk_str_of(PQgetvalue(res, row, HK_PA_W_FACTOR)), &factor, NULL) != HK_OK)
        factor = 1;
    return factor > 1 ? (struct hk_count){(uint64_t)((double)n * factor), true} : (struct hk_count){n, false};
}

static void add_total(struct taker *t, enum kind kind, const PGresult *res)
{
    struct hk_store_status *out = t->out;
    if (kind == DEAD) {
        out->dead = count_at(res, 0, HK_PA_W_N);
        return;
    }
    out->due = plus(out->due, count_at(res, 0, HK_PA_W_DUE));
    out->scheduled = plus(out->scheduled, count_at(res, 0, HK_PA_W_SCHEDULED));
    out->attempts[0] = plus(out->attempts[0], count_at(res, 0, HK_PA_W_BUCKETS));
    if (kind == OUTBOX)
        return; /* nothing there has been tried: that is no estimate */
    out->retrying = count_at(res, 0, HK_PA_W_RETRYING);
    for (int i = 1; i < HK_ATTEMPT_BUCKETS; i++)
        out->attempts[i] = count_at(res, 0, HK_PA_W_BUCKETS + i);
}

/* A walk or a sample: the total, then each destination. */
static void read_figures(struct taker *t, enum kind kind, const PGresult *res)
{
    add_total(t, kind, res);
    for (int i = 1; i < PQntuples(res); i++) {
        size_t d = dest_of(t, res, i, HK_PA_W_DESTINATION);
        if (d == DESTS_MAX)
            continue;
        t->tallies[kind][d] = (struct tally){
            .waiting = minus(count_at(res, i, HK_PA_W_N), count_at(res, i, HK_PA_W_CLAIMED)),
            .tried = count_at(res, i, HK_PA_W_TRIED),
        };
    }
}

/* Where the walk ends early the oldest are still right: they come first. */
static void read_walk(struct taker *t, enum kind kind)
{
    PGresult *res = hk_pg_result(&t->admin->pg);
    if (res && PQntuples(res) > 0) {
        t->large[kind] = hk_pg_i64(res, 0, HK_PA_W_N) > t->most;
        older(&t->out->oldest_ms, hk_pg_i64(res, 0, HK_PA_W_OLDEST_MS));
        older(&t->out->oldest_due_ms, hk_pg_i64(res, 0, HK_PA_W_OLDEST_DUE_MS));
        if (!t->large[kind])
            read_figures(t, kind, res);
    }
    PQclear(res);
}

static void read_sample(struct taker *t, enum kind kind)
{
    PGresult *res = hk_pg_result(&t->admin->pg);
    if (res && PQntuples(res) > 0)
        read_figures(t, kind, res);
    PQclear(res);
}

/* More than that cannot be counted to the end, with as many destinations as the sample has shown. */
static uint64_t many_of(const struct taker *t, enum kind kind)
{
    int64_t n = 0;
    for (size_t i = 0; i < t->out->n_dests; i++)
        n += t->tallies[kind][i].waiting.n > FEW;
    int64_t most = MANY * (budgets[kind] / (n ? n : 1));
    return (uint64_t)(most > MANY * HK_COUNT_EXACT ? MANY * HK_COUNT_EXACT
                      : most < MANY_LEAST          ? MANY_LEAST
                                                   : most);
}

/* Destinations that have too many are left out: counting them would show nothing more. */
static void add_by_name(struct taker *t, enum kind kind)
{
    struct hk_pg *pg = &t->admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_str *many = hk_pg_alloc(pg, t->out->n_dests + 1, sizeof *many);
    uint64_t most = many_of(t, kind);
    size_t n = 0;
    for (size_t i = 0; many && i < t->out->n_dests; i++) {
        const struct tally *tally = &t->tallies[kind][i];
        if (tally->waiting.about && tally->waiting.n > most)
            many[n++] = t->out->dests[i].name;
    }
    hk_pg_arg_texts(pg, &a, many, n);
    hk_pg_arg_i64(pg, &a, budgets[kind]);
    hk_pg_add(pg, (unsigned)HK_PA_BY_NAME_OUTBOX + (unsigned)kind, &a);
}

/* What could be counted after all: exact, or more than the sample has shown. */
static void read_by_name(struct taker *t, enum kind kind)
{
    PGresult *res = hk_pg_result(&t->admin->pg);
    for (int i = 0; res && i < PQntuples(res); i++) {
        size_t d = dest_of(t, res, i, 0);
        if (d == DESTS_MAX)
            continue;
        /* the index has NULL apart, which counts as '' */
        bool split = kind == OUTBOX && t->out->dests[d].name.len == 0;
        bool whole = !split && hk_pg_i64(res, i, 1) < hk_pg_i64(res, i, 3);
        struct hk_count all = {hk_pa_u64(res, i, 1), !whole}, tried = {hk_pa_u64(res, i, 2), !whole};
        if (kind == OUTBOX)
            all = minus(all, (struct hk_count){t->flying[d], false});
        struct tally *tally = &t->tallies[kind][d];
        if (whole || tally->waiting.n < all.n)
            *tally = (struct tally){all, tried};
    }
    PQclear(res);
}

static void add_up(struct taker *t)
{
    for (size_t i = 0; i < t->out->n_dests; i++) {
        struct hk_dest_status *d = &t->out->dests[i];
        const struct tally *retry = &t->tallies[RETRY][i];
        d->pending = plus(t->tallies[OUTBOX][i].waiting, minus(retry->waiting, retry->tried));
        d->retrying = retry->tried;
        d->dead = t->tallies[DEAD][i].waiting;
    }
}

/* ---- the rest ---- */

static void read_relay(struct taker *t)
{
    struct hk_relay_status *relay = &t->out->relay;
    struct hk_pg *pg = &t->admin->pg;
    relay->name = relay->version = (struct hk_str){"", 0};
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) > 0) {
        t->out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        t->out->relays_running = hk_pa_u32(res, 0, 1);
        relay->known = !hk_pg_null(res, 0, 2);
        relay->lane = hk_pg_i64(res, 0, 2);
        relay->name = hk_pg_text(pg, res, 0, 3);
        relay->version = hk_pg_text(pg, res, 0, 4);
        relay->started_ms = hk_pg_i64(res, 0, 5);
        relay->until_ms = hk_pg_i64(res, 0, 6);
        relay->running = relay->known && relay->until_ms > t->out->now_ms;
    }
    PQclear(res);
}

static void read_pauses(struct taker *t)
{
    struct hk_pg *pg = &t->admin->pg;
    PGresult *res = hk_pg_result(pg);
    for (int i = 0; res && i < PQntuples(res); i++) {
        size_t n = dest_of(t, res, i, 0);
        if (n == DESTS_MAX)
            continue;
        struct hk_dest_status *d = &t->out->dests[n];
        int64_t open_until_ms = hk_pg_i64(res, i, 5);
        d->open_until_ms = open_until_ms > t->out->now_ms ? open_until_ms : 0;
        d->paused = hk_pg_bool(res, i, 1);
        if (!d->paused)
            continue;
        d->actor = hk_pg_text(pg, res, i, 2);
        d->reason = hk_pg_text(pg, res, i, 3);
        d->since_ms = hk_pg_i64(res, i, 4);
    }
    PQclear(res);
}

static void read_in_flight(struct taker *t)
{
    PGresult *res = hk_pg_result(&t->admin->pg);
    for (int i = 0; res && i < PQntuples(res); i++) {
        size_t d = dest_of(t, res, i, 0);
        t->out->processing += hk_pa_u64(res, i, 1);
        if (d == DESTS_MAX)
            continue;
        t->out->dests[d].processing += hk_pa_u64(res, i, 1);
        t->flying[d] = hk_pa_u64(res, i, 2);
    }
    PQclear(res);
}

static uint64_t read_number(struct taker *t)
{
    PGresult *res = hk_pg_result(&t->admin->pg);
    uint64_t n = res && PQntuples(res) == 1 ? hk_pa_u64(res, 0, 0) : 0;
    PQclear(res);
    return n;
}

/* ---- the whole ---- */

static void look(struct taker *t)
{
    struct hk_pg *pg = &t->admin->pg;
    struct hk_pg_args now = {.n = 0}, walk = {.n = 0}, most = {.n = 0};
    hk_pa_arg_now(t->admin, &now);
    hk_pa_arg_now(t->admin, &walk);
    hk_pg_arg_i64(pg, &walk, t->most + 1);
    hk_pg_arg_i64(pg, &most, t->most + 1);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, t->most > HK_COUNT_EXACT ? HK_PA_NO_HURRY : HK_PA_AS_IT_IS, NULL);
    hk_pg_add(pg, HK_PA_RELAY, &now);
    hk_pg_add(pg, HK_PA_PAUSES, &now);
    hk_pg_add(pg, HK_PA_IN_FLIGHT, NULL);
    for (unsigned kind = 0; kind < NKINDS; kind++)
        hk_pg_add(pg, (unsigned)HK_PA_WALK_OUTBOX + kind, &walk);
    hk_pg_add(pg, HK_PA_COUNT_SENT, &most);
    hk_pg_add(pg, HK_PA_COUNT_CANCELLED, &most);
    hk_pg_add(pg, HK_PA_STUCK_COUNT, NULL);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    read_relay(t);
    read_pauses(t);
    read_in_flight(t);
    for (int kind = 0; kind < NKINDS; kind++)
        read_walk(t, (enum kind)kind);
    t->out->sent.n = read_number(t);
    t->out->cancelled.n = read_number(t);
    t->out->stuck = read_number(t);
}

static void look_closer(struct taker *t)
{
    struct hk_pg *pg = &t->admin->pg;
    struct hk_pg_args now = {.n = 0};
    struct hk_count *const counts[] = {&t->out->sent, &t->out->cancelled};
    hk_pa_arg_now(t->admin, &now);
    hk_pg_begin(pg, false);
    for (unsigned kind = 0; kind < NKINDS; kind++) {
        if (!t->large[kind])
            continue;
        hk_pg_add(pg, (unsigned)HK_PA_SAMPLE_OUTBOX + kind, &now);
    }
    for (unsigned i = 0; i < 2; i++) {
        counts[i]->about = counts[i]->n > (uint64_t)t->most;
        if (counts[i]->about)
            hk_pg_add(pg, (unsigned)HK_PA_ABOUT_SENT + i, NULL);
    }
    hk_pg_send(pg);
    for (int kind = 0; kind < NKINDS; kind++)
        if (t->large[kind])
            read_sample(t, (enum kind)kind);
    for (size_t i = 0; i < 2; i++) {
        uint64_t n = counts[i]->about ? read_number(t) : 0;
        if (n > counts[i]->n)
            counts[i]->n = n;
    }
}

static void look_by_name(struct taker *t)
{
    struct hk_pg *pg = &t->admin->pg;
    hk_pg_begin(pg, false);
    for (int kind = 0; kind < NKINDS; kind++)
        if (t->large[kind])
            add_by_name(t, (enum kind)kind);
    hk_pg_send(pg);
    for (int kind = 0; kind < NKINDS; kind++)
        if (t->large[kind])
            read_by_name(t, (enum kind)kind);
}

static bool is_large(const struct taker *t)
{
    return t->large[OUTBOX] || t->large[RETRY] || t->large[DEAD] || t->out->sent.n > (uint64_t)t->most ||
           t->out->cancelled.n > (uint64_t)t->most;
}

static int by_name(const void *a, const void *b)
{
    struct hk_str x = ((const struct hk_dest_status *)a)->name, y = ((const struct hk_dest_status *)b)->name;
    size_t len = x.len < y.len ? x.len : y.len;
    int order = len ? memcmp(x.ptr, y.ptr, len) : 0;
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static enum hk_code take(struct hk_admin *admin, int64_t most, const struct hk_store_status **out,
                         struct hk_err *err)
{
    struct taker t = {.admin = admin, .out = &admin->status, .most = most};
    struct hk_pg *pg = &admin->pg;
    admin->status = (struct hk_store_status){.n_dests = 0};
    hk_pg_call(pg);
    for (int kind = 0; kind < NKINDS; kind++)
        t.tallies[kind] = hk_pg_alloc(pg, DESTS_MAX, sizeof *t.tallies[kind]);
    t.flying = hk_pg_alloc(pg, DESTS_MAX, sizeof *t.flying);
    if (hk_pg_ok(pg))
        look(&t);
    if (hk_pg_ok(pg) && is_large(&t))
        look_closer(&t);
    if (hk_pg_ok(pg) && (t.large[OUTBOX] || t.large[RETRY] || t.large[DEAD]))
        look_by_name(&t);
    if (hk_pg_ok(pg))
        add_up(&t);
    enum hk_code rc = hk_pg_end(pg, "read its figures", err);
    if (rc != HK_OK)
        return rc;
    if (admin->status.n_dests > 1)
        qsort(admin->status.dests, admin->status.n_dests, sizeof *admin->status.dests, by_name);
    *out = &admin->status;
    return HK_OK;
}

enum hk_code hk_pa_status(struct hk_admin *admin, const struct hk_store_status **out, struct hk_err *err)
{
    return take(admin, HK_COUNT_EXACT, out, err);
}

enum hk_code hk_pa_status_exact(struct hk_admin *admin, const struct hk_store_status **out,
                                struct hk_err *err)
{
    uint64_t call_ms = admin->pg.call_ms;
    admin->pg.call_ms = HK_PA_PATIENCE_MS;
    enum hk_code rc = take(admin, INT64_MAX - 1, out, err);
    admin->pg.call_ms = call_ms;
    return rc;
}

/* ---- relays ---- */

/* Columns of HK_PA_RELAYS; the first three are the same in every row. */
enum {
    C_NOW_MS,
    C_SHARDS,
    C_SHARDS_FREE,
    C_LANE,
    C_NAME,
    C_BOOT,
    C_VERSION,
    C_STARTED_MS,
    C_UNTIL_MS,
    C_OWNED,
    C_IN_HAND,
    C_OLDEST_DUE_MS
};

static void read_relay_row(struct hk_pg *pg, const PGresult *res, int i, int64_t now_ms,
                           struct hk_relay_row *out)
{
    *out = (struct hk_relay_row){
        .lane = hk_pg_i64(res, i, C_LANE),
        .name = hk_pg_text(pg, res, i, C_NAME),
        .boot = hk_pg_text(pg, res, i, C_BOOT),
        .version = hk_pg_text(pg, res, i, C_VERSION),
        .started_ms = hk_pg_i64(res, i, C_STARTED_MS),
        .until_ms = hk_pg_i64(res, i, C_UNTIL_MS),
        .shards = hk_pa_u32(res, i, C_OWNED),
        .in_hand = hk_pa_u64(res, i, C_IN_HAND),
        .oldest_due_ms = hk_pg_i64(res, i, C_OLDEST_DUE_MS),
    };
    out->running = out->until_ms > now_ms;
}

static void read_relays(struct hk_admin *admin, const PGresult *res)
{
    struct hk_relays *out = &admin->relays;
    int n = res ? PQntuples(res) : 0;
    if (n == 0)
        return;
    out->now_ms = hk_pg_now(&admin->pg, hk_pg_i64(res, 0, C_NOW_MS));
    out->shards = hk_pa_u32(res, 0, C_SHARDS);
    out->shards_free = hk_pa_u32(res, 0, C_SHARDS_FREE);
    out->items = hk_pg_null(res, 0, C_LANE) ? NULL : hk_pg_alloc(&admin->pg, (size_t)n, sizeof *out->items);
    for (int i = 0; i < n && out->items; i++)
        read_relay_row(&admin->pg, res, i, out->now_ms, &out->items[out->n++]);
}

enum hk_code hk_pa_relays(struct hk_admin *admin, const struct hk_relays **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args now = {.n = 0};
    admin->relays = (struct hk_relays){.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &now);
    PGresult *res = hk_pg_query(pg, false, HK_PA_RELAYS, &now);
    read_relays(admin, res);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read its relays", err);
    if (rc == HK_OK)
        *out = &admin->relays;
    return rc;
}
