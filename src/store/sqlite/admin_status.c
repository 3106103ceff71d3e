/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of a store, in bounded time: no more than HK_COUNT_EXACT rows of a kind are counted. Beyond that the number
 * of a table's rows is estimated from SAMPLES stretches of ids, and what was counted is scaled up. Destinations that such a
 * sample shows to have far more are not counted at all. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/sqlite/admin.h"

enum {
    DESTS_MAX = 1000,
    SAMPLES = 64,
    SAMPLE_IDS = 256,
    STATUS_TEXT_MAX = 4096,
    BUDGET = 500000, /* rows of a table that are counted by destination before it is done more shortly */
    LEAST = 1000,
    MANY = 4,   /* times what would be counted: no sample is wrong by so much, */
    SPREAD = 8, /* unless of rows that lie side by side: they must be in so many stretches */
};

/* How far it is counted: HK_COUNT_EXACT rows of a kind, or all. */
#define MOST(exact) ((exact) ? INT64_MAX - 1 : (int64_t)HK_COUNT_EXACT)

/* What one walk through a table found. */
struct pass {
    uint64_t rows, due, retrying, scheduled, claimed;
    uint64_t attempts[HK_ATTEMPT_BUCKETS];
    int64_t oldest_due_ms, oldest_ms; /* 0 = none */
};

struct taker {
    struct hk_store *store;
    struct hk_store_status *out;
    size_t room;
    int64_t most; /* rows of a kind that are counted */
};

/* ---- estimates ---- */

static int64_t ask(struct hk_store *store, const char *sql)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    int64_t value = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return value;
}

static int64_t edge(struct hk_store *store, const char *function, const char *table)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT %s(id) FROM %s NOT INDEXED", function, table);
    return ask(store, sql);
}

double hk_sa_sample(struct hk_store *store, const char *table, const char *condition, const char *also,
                    hk_sa_sample_fn *each, void *arg)
{
    char sql[640];
    int64_t lo = edge(store, "min", table), hi = edge(store, "max", table);
    double range = (double)hi - (double)lo + 1, looked = 0;
    double width = range / SAMPLES < SAMPLE_IDS ? range / SAMPLES : SAMPLE_IDS;
    snprintf(
        sql, sizeof sql,
        "SELECT destination, count(*), sum(%s) FROM %s NOT INDEXED WHERE id >= ?1 AND id < ?2 AND %s GROUP BY destination",
        also, table, condition);
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    for (int i = 0; i < SAMPLES && hk_sq_ok(store); i++) {
        double from = (double)lo + range * i / SAMPLES;
        if (from >= 9.2e18 || from <= -9.2e18) /* an application chose its ids so */
            continue;
        hk_sq_bind_i64(store, q, 1, (int64_t)from);
        hk_sq_bind_i64(store, q, 2, (int64_t)(from + width));
        while (hk_sq_row(store, q))
            each(arg, q);
        hk_sq_done(q);
        looked += width;
    }
    sqlite3_finalize(q);
    return looked > 0 ? range / looked : 0;
}

static void add_up(void *arg, sqlite3_stmt *q)
{
    double *found = arg;
    *found += (double)sqlite3_column_int64(q, 1);
}

static uint64_t at_least(double rows, uint64_t seen)
{
    return rows > (double)seen && rows < 1e18 ? (uint64_t)rows : seen;
}

static uint64_t estimate(struct hk_store *store, const char *table, const char *condition, uint64_t seen)
{
    double found = 0;
    double factor = hk_sa_sample(store, table, condition, "0", add_up, &found);
    return at_least(found * factor, seen);
}

static struct hk_count scaled(uint64_t n, uint64_t seen, uint64_t rows)
{
    if (seen == rows)
        return (struct hk_count){n, false};
    return (struct hk_count){(uint64_t)((double)n * ((double)rows / (double)seen)), true};
}

static struct hk_count plus(struct hk_count a, struct hk_count b)
{
    return (struct hk_count){a.n + b.n, a.about || b.about};
}

/* Rows that `condition` holds for: counted up to `most`, then estimated. */
static struct hk_count count_rows(struct taker *t, const char *table, const char *index,
                                  const char *condition)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM (SELECT 1 FROM %s %s WHERE %s LIMIT %lld)", table, index,
             condition, (long long)t->most + 1);
    int64_t counted = ask(t->store, sql);
    if (counted <= t->most)
        return (struct hk_count){(uint64_t)counted, false};
    return (struct hk_count){estimate(t->store, table, condition, (uint64_t)counted), true};
}

/* ---- walks ---- */

static void older(int64_t *oldest_ms, int64_t ms)
{
    if (ms > 0 && (*oldest_ms == 0 || ms < *oldest_ms))
        *oldest_ms = ms;
}

static size_t bucket_of(int64_t attempts)
{
    if (attempts < 5)
        return attempts < 0 ? 0 : (size_t)attempts;
    return attempts < 10 ? 5 : attempts < 20 ? 6 : 7;
}

static void walk_outbox(struct hk_store *store, int64_t now_ms, int64_t limit, struct pass *pass)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_WALK_OUTBOX]);
    hk_sq_bind_i64(store, q, 1, limit);
    while (hk_sq_row(store, q)) {
        int64_t from_ms = hk_sa_time(q, 0), created_ms = hk_sa_time(q, 1);
        pass->rows++;
        pass->attempts[0]++;
        older(&pass->oldest_ms, created_ms);
        if (sqlite3_column_int(q, 2)) {
            pass->claimed++;
        } else if (from_ms > now_ms) {
            pass->scheduled++;
        } else {
            pass->due++;
            older(&pass->oldest_due_ms, from_ms > created_ms ? from_ms : created_ms);
        }
    }
    sqlite3_finalize(q);
}

static void walk_retry(struct hk_store *store, int64_t now_ms, int64_t limit, struct pass *pass)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_WALK_RETRY]);
    hk_sq_bind_i64(store, q, 1, limit);
    while (hk_sq_row(store, q)) {
        int64_t due_ms = sqlite3_column_int64(q, 1), attempts = sqlite3_column_int64(q, 2);
        pass->rows++;
        pass->attempts[bucket_of(attempts)]++;
        older(&pass->oldest_ms, hk_sa_time(q, 4));
        if (sqlite3_column_int(q, 0)) {
            pass->claimed++;
        } else if (due_ms <= now_ms) {
            pass->due++;
            older(&pass->oldest_due_ms, due_ms > 0 ? due_ms : 1);
        } else if (attempts > 0 || sqlite3_column_int64(q, 3) > 0) {
            pass->retrying++;
        } else {
            pass->scheduled++;
        }
    }
    sqlite3_finalize(q);
}

static uint64_t rows_of(struct taker *t, const struct pass *pass, const char *table)
{
    return pass->rows <= (uint64_t)t->most ? pass->rows : estimate(t->store, table, "1", pass->rows + 1);
}

static void take_waiting(struct taker *t)
{
    struct hk_store_status *out = t->out;
    struct pass fresh = {.rows = 0}, tried = {.rows = 0};
    walk_outbox(t->store, out->now_ms, t->most + 1, &fresh);
    walk_retry(t->store, out->now_ms, t->most + 1, &tried);
    uint64_t n_fresh = rows_of(t, &fresh, "outbox"), n_tried = rows_of(t, &tried, "outbox_retry");
    out->due = plus(scaled(fresh.due, fresh.rows, n_fresh), scaled(tried.due, tried.rows, n_tried));
    out->scheduled =
        plus(scaled(fresh.scheduled, fresh.rows, n_fresh), scaled(tried.scheduled, tried.rows, n_tried));
    out->retrying = scaled(tried.retrying, tried.rows, n_tried);
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++)
        out->attempts[i] = plus(scaled(fresh.attempts[i], fresh.rows, n_fresh),
                                scaled(tried.attempts[i], tried.rows, n_tried));
    out->oldest_ms = fresh.oldest_ms;
    older(&out->oldest_ms, tried.oldest_ms);
    out->oldest_due_ms = fresh.oldest_due_ms;
    older(&out->oldest_due_ms, tried.oldest_due_ms);
}

/* ---- destinations ---- */

/* The destination's entry, made if need be; NULL: there are too many, or no memory. */
static struct hk_dest_status *dest_of(struct taker *t, sqlite3_stmt *q, int column)
{
    struct hk_store_status *out = t->out;
    struct hk_str name = hk_sa_text(t->store, q, column, STATUS_TEXT_MAX);
    for (size_t i = 0; i < out->n_dests; i++)
        if (hk_str_eq(out->dests[i].name, name))
            return &out->dests[i];
    if (out->n_dests == DESTS_MAX) {
        out->more_dests = true;
        return NULL;
    }
    struct hk_dest_status *dests = hk_sa_grow(t->store, out->dests, out->n_dests, &t->room, sizeof *dests);
    if (!dests)
        return NULL;
    out->dests = dests;
    dests[out->n_dests] = (struct hk_dest_status){.name = name, .actor = {"", 0}, .reason = {"", 0}};
    return &dests[out->n_dests++];
}

/* Of how many how many were tried: from the rows themselves. */
#define WAS_TRIED "attempts > 0 OR crashes > 0"

/* A table whose rows are counted by destination. */
struct by_dest {
    const char *table, *condition;
    enum hk_sa_id names, counts;
    bool tried; /* some of them may have been: HK_SA_TRIED counts those */
    void (*add)(struct hk_dest_status *dest, struct hk_count all, struct hk_count tried);
};

static void add_fresh(struct hk_dest_status *d, struct hk_count all, struct hk_count tried)
{
    (void)tried;
    d->pending = plus(d->pending, all);
}

static void add_tried(struct hk_dest_status *d, struct hk_count all, struct hk_count tried)
{
    d->retrying = plus(d->retrying, tried);
    all.n -= tried.n < all.n ? tried.n : all.n;
    d->pending = plus(d->pending, all);
}

static void add_dead(struct hk_dest_status *d, struct hk_count all, struct hk_count tried)
{
    (void)tried;
    d->dead = plus(d->dead, all);
}

static const struct by_dest kinds[] = {
    {"outbox", "1", HK_SA_NAMES_OUTBOX, HK_SA_COUNT_OUTBOX, false, add_fresh},
    {"outbox_retry", "claim IS NULL", HK_SA_NAMES_RETRY, HK_SA_COUNT_RETRY, true, add_tried},
    {"dead_letters", "status = 'failed'", HK_SA_NAMES_DEAD, HK_SA_COUNT_DEAD, false, add_dead},
};

/* What was counted of one destination. */
struct counted {
    int64_t seen;
    int64_t looked, tried; /* at so many rows it was looked whether they were tried */
    bool about;            /* the limit was reached */
    double sampled, sampled_tried;
    int stretches; /* of the sample that have some */
};

struct counting {
    struct taker *t;
    struct counted *dests; /* as t->out->dests */
    double factor;         /* from the sample to the table; 0 = there is none */
};

static void add_sample(void *arg, sqlite3_stmt *q)
{
    struct counting *c = arg;
    const struct hk_dest_status *d = dest_of(c->t, q, 0);
    if (!d)
        return;
    struct counted *n = &c->dests[d - c->t->out->dests];
    n->sampled += (double)sqlite3_column_int64(q, 1);
    n->sampled_tried += (double)sqlite3_column_int64(q, 2);
    n->stretches++;
}

static void sample(struct counting *c, const struct by_dest *kind)
{
    if (!(c->factor > 0))
        c->factor = hk_sa_sample(c->t->store, kind->table, kind->condition, kind->tried ? WAS_TRIED : "0",
                                 add_sample, c);
}

/* Counting it would show nothing more. */
static bool is_large(const struct counting *c, const struct counted *n)
{
    return n->stretches >= SPREAD && n->sampled * c->factor > (double)MANY * (double)c->t->most;
}

/* The rows are read for it: fewer than an index counts. */
static void count_tried(struct counting *c, const struct by_dest *kind, sqlite3_stmt *names, int64_t *budget,
                        struct counted *n)
{
    struct hk_store *store = c->t->store;
    sqlite3_stmt *q = kind->tried ? hk_sa_prepare(store, hk_sa_texts[HK_SA_TRIED]) : NULL;
    if (!q || sqlite3_bind_value(q, 1, sqlite3_column_value(names, 0)) != SQLITE_OK)
        return;
    hk_sq_bind_i64(store, q, 2, *budget > LEAST ? *budget : LEAST);
    if (hk_sq_row(store, q)) {
        n->looked += sqlite3_column_int64(q, 0);
        n->tried += sqlite3_column_int64(q, 1);
        *budget -= n->looked;
    }
    sqlite3_finalize(q);
}

/* Counting gets shorter the more has been counted: the whole stays bounded. True: not all were counted to the end. */
static bool count_dests(struct counting *c, const struct by_dest *kind)
{
    struct hk_store *store = c->t->store;
    const int64_t most = c->t->most;
    int64_t budget = most > HK_COUNT_EXACT ? INT64_MAX : BUDGET, rows = most;
    bool about = false;
    sqlite3_stmt *names = hk_sa_prepare(store, hk_sa_texts[kind->names]),
                 *q = hk_sa_prepare(store, hk_sa_texts[kind->counts]);
    while (hk_sq_row(store, names)) {
        int64_t limit = budget > most ? most + 1 : budget > LEAST ? budget : LEAST;
        const struct hk_dest_status *d = dest_of(c->t, names, 0);
        if (!d || sqlite3_bind_value(q, 1, sqlite3_column_value(names, 0)) != SQLITE_OK)
            continue;
        struct counted *n = &c->dests[d - c->t->out->dests];
        if (is_large(c, n)) {
            n->about = about = true;
            continue;
        }
        hk_sq_bind_i64(store, q, 2, limit);
        if (hk_sq_row(store, q)) {
            n->seen += sqlite3_column_int64(q, 0);
            n->about |= n->seen >= limit;
            about |= n->about;
            budget -= n->seen;
        }
        hk_sq_done(q);
        count_tried(c, kind, names, &rows, n);
    }
    sqlite3_finalize(names);
    sqlite3_finalize(q);
    return about;
}

/* By its ids: it cannot have more rows than these. */
static bool may_be_large(struct hk_store *store, const char *table)
{
    return (double)edge(store, "max", table) - (double)edge(store, "min", table) >
           (double)MANY * HK_COUNT_EXACT;
}

/* Of `all`: counted, or as it is among those that were looked at. */
static struct hk_count tried_of(const struct counted *n, uint64_t all)
{
    if (n->looked > 0 && (uint64_t)n->looked >= all)
        return (struct hk_count){(uint64_t)n->tried, false};
    double share = n->looked > 0    ? (double)n->tried / (double)n->looked
                   : n->sampled > 0 ? n->sampled_tried / n->sampled
                                    : 0;
    return (struct hk_count){(uint64_t)((double)all * share), n->looked > 0 || n->sampled_tried > 0};
}

static void take_kind(struct taker *t, const struct by_dest *kind)
{
    struct counting c = {t, hk_sq_alloc(t->store, DESTS_MAX, sizeof *c.dests), 0};
    if (!c.dests)
        return;
    if (t->most == HK_COUNT_EXACT && may_be_large(t->store, kind->table))
        sample(&c, kind);
    if (count_dests(&c, kind))
        sample(&c, kind);
    for (size_t i = 0; i < t->out->n_dests; i++) {
        const struct counted *n = &c.dests[i];
        struct hk_count all = {(uint64_t)n->seen, n->about};
        if (n->about)
            all.n = at_least(n->sampled * c.factor, all.n);
        kind->add(&t->out->dests[i], all, tried_of(n, all.n));
    }
}

static void take_dead(struct taker *t)
{
    t->out->dead = count_rows(t, "dead_letters", "INDEXED BY dead_letters_open", "status = 'failed'");
}

/* Few: no more than a relay's concurrency. */
static void take_in_flight(struct taker *t)
{
    sqlite3_stmt *q = hk_sa_prepare(t->store, hk_sa_texts[HK_SA_IN_FLIGHT]);
    while (hk_sq_row(t->store, q)) {
        struct hk_dest_status *d = dest_of(t, q, 0);
        uint64_t n = (uint64_t)sqlite3_column_int64(q, 1);
        bool fresh = sqlite3_column_int(q, 2) != 0;
        t->out->processing += n;
        if (!d)
            continue;
        d->processing += n;
        if (fresh) /* the index counted them as pending */
            d->pending.n -= n < d->pending.n ? n : d->pending.n;
    }
    sqlite3_finalize(q);
}

static void take_pauses(struct taker *t)
{
    sqlite3_stmt *q = hk_sa_prepare(t->store, hk_sa_texts[HK_SA_PAUSES]);
    hk_sq_bind_i64(t->store, q, 1, t->out->now_ms);
    while (hk_sq_row(t->store, q)) {
        struct hk_dest_status *d = dest_of(t, q, 0);
        if (!d)
            continue;
        int64_t open_until_ms = sqlite3_column_int64(q, 5);
        d->open_until_ms = open_until_ms > t->out->now_ms ? open_until_ms : 0;
        d->paused = sqlite3_column_int(q, 1) != 0;
        if (!d->paused)
            continue;
        d->actor = hk_sa_text(t->store, q, 2, STATUS_TEXT_MAX);
        d->reason = hk_sa_text(t->store, q, 3, STATUS_TEXT_MAX);
        d->since_ms = sqlite3_column_int64(q, 4);
    }
    sqlite3_finalize(q);
}

/* ---- the whole ---- */

static void take_relay(struct taker *t)
{
    struct hk_relay_status *relay = &t->out->relay;
    relay->name = relay->version = (struct hk_str){"", 0};
    sqlite3_stmt *q = hk_sa_prepare(t->store, hk_sa_texts[HK_SA_LAST_RELAY]);
    if (hk_sq_row(t->store, q)) {
        relay->known = true;
        relay->lane = sqlite3_column_int64(q, 0);
        relay->name = hk_sa_text(t->store, q, 1, STATUS_TEXT_MAX);
        relay->version = hk_sa_text(t->store, q, 2, STATUS_TEXT_MAX);
        relay->started_ms = sqlite3_column_int64(q, 3);
        relay->until_ms = sqlite3_column_int64(q, 4);
        relay->running = relay->until_ms > t->out->now_ms;
    }
    t->out->relays_running = relay->running ? 1 : 0;
    sqlite3_finalize(q);
}

static int by_name(const void *a, const void *b)
{
    struct hk_str x = ((const struct hk_dest_status *)a)->name, y = ((const struct hk_dest_status *)b)->name;
    size_t len = x.len < y.len ? x.len : y.len;
    int order = len ? memcmp(x.ptr, y.ptr, len) : 0;
    return order ? order : (x.len > y.len) - (x.len < y.len);
}

static enum hk_code take(struct hk_admin *admin, bool exact, const struct hk_store_status **out,
                         struct hk_err *err)
{
    struct taker t = {.store = admin->store, .out = &admin->status, .most = MOST(exact)};
    admin->status = (struct hk_store_status){.n_dests = 0};
    hk_sq_call(t.store);
    hk_sq_begin_read(t.store);
    hk_sq_clock_lift(t.store);
    admin->status.now_ms = hk_sq_now(t.store);
    take_pauses(&t);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        take_kind(&t, &kinds[i]);
    take_in_flight(&t); /* after the index's counts, which it corrects */
    take_dead(&t);
    take_waiting(&t);
    take_relay(&t);
    admin->status.sent = count_rows(&t, "outbox_sent", "", "1");
    admin->status.cancelled = count_rows(&t, "outbox_cancelled", "", "1");
    admin->status.stuck = (uint64_t)ask(t.store, hk_sa_texts[HK_SA_COUNT_STUCK]);
    enum hk_code rc = hk_sq_end(t.store, "read its figures", err);
    if (rc != HK_OK)
        return rc;
    if (admin->status.n_dests > 1)
        qsort(admin->status.dests, admin->status.n_dests, sizeof *admin->status.dests, by_name);
    *out = &admin->status;
    return HK_OK;
}

enum hk_code hk_sa_status(struct hk_admin *admin, const struct hk_store_status **out, struct hk_err *err)
{
    return take(admin, false, out, err);
}

enum hk_code hk_sa_status_exact(struct hk_admin *admin, const struct hk_store_status **out,
                                struct hk_err *err)
{
    return take(admin, true, out, err);
}

/* ---- relays ---- */

static void read_relay(struct hk_store *store, sqlite3_stmt *q, int64_t now_ms, struct hk_relay_row *out)
{
    *out = (struct hk_relay_row){
        .lane = sqlite3_column_int64(q, 0),
        .name = hk_sa_text(store, q, 1, STATUS_TEXT_MAX),
        .boot = hk_sa_text(store, q, 2, STATUS_TEXT_MAX),
        .version = hk_sa_text(store, q, 3, STATUS_TEXT_MAX),
        .started_ms = sqlite3_column_int64(q, 4),
        .until_ms = sqlite3_column_int64(q, 5),
        .in_hand = (uint64_t)sqlite3_column_int64(q, 6),
    };
    out->running = out->until_ms > now_ms;
}

/* What a manifest names and has not been settled is still there. */
static void read_relays(struct hk_store *store, struct hk_relays *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_RELAYS]);
    hk_sq_bind_i64(store, q, 1, HK_RELAYS_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_relay_row *items = hk_sa_grow(store, out->items, out->n, &room, sizeof *items);
        if (!items)
            break;
        out->items = items;
        read_relay(store, q, out->now_ms, &items[out->n++]);
    }
    sqlite3_finalize(q);
}

/* There is one shard, and the latest lane has it. */
enum hk_code hk_sa_relays(struct hk_admin *admin, const struct hk_relays **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct pass pass = {.rows = 0};
    admin->relays = (struct hk_relays){.shards = 1};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    admin->relays.now_ms = hk_sq_now(store);
    read_relays(store, &admin->relays);
    walk_outbox(store, admin->relays.now_ms, HK_LAG_ROWS, &pass);
    walk_retry(store, admin->relays.now_ms, HK_LAG_ROWS, &pass);
    enum hk_code rc = hk_sq_end(store, "read its relays", err);
    if (rc != HK_OK)
        return rc;
    admin->relays.shards_free = admin->relays.n == 0;
    if (admin->relays.n > 0) {
        struct hk_relay_row *owner = &admin->relays.items[admin->relays.n - 1];
        owner->shards = 1;
        owner->oldest_due_ms = pass.oldest_due_ms;
    }
    *out = &admin->relays;
    return HK_OK;
}
