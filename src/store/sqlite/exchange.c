/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange: settles what is finished and claims what comes next, in one transaction, so that a batch costs one
 * commit. Deletes go by runs of ids and claimed rows are read through one json_each: both measured, see
 * bench/bench_store_sqlite.c. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/ms.h"
#include "base/str.h"
#include "store/crash.h"
#include "store/sqlite/sqlite.h"

/* ---- settling ---- */

/* A row that leaves outbox. */
struct gone {
    int64_t id;
    const struct hk_settle *sent; /* to be kept in outbox_sent; NULL = not */
};

struct settling {
    const struct hk_exchange *x;
    int64_t now_ms;
    bool *stale;
    struct gone *gone;
    size_t n_gone;
    const char *why; /* not NULL: nothing is settled but noted as stuck, for this reason */
    bool touched;    /* what a poll shows has changed */
};

static bool claim_stands(struct hk_store *store, int64_t claim, int64_t lane)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_CLAIM_STANDS);
    hk_sq_bind_i64(store, q, 1, claim);
    hk_sq_bind_i64(store, q, 2, lane);
    bool stands = hk_sq_row(store, q);
    hk_sq_done(q);
    return stands;
}

static size_t load_members(struct hk_store *store, enum hk_sq_id statement, enum hk_source source,
                           int64_t claim, struct hk_member *members, size_t room)
{
    size_t n = 0;
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, claim);
    while (hk_sq_row(store, q)) {
        if (n < room)
            members[n] = (struct hk_member){.id = sqlite3_column_int64(q, 0), .source = source};
        n++;
    }
    return n;
}

/* A manifest that another store object of this lane wrote, or that was written before the file was opened again. */
static struct hk_manifest *load_claim(struct hk_store *store, int64_t claim)
{
    size_t fresh = load_members(store, HK_SQ_CLAIM_IDS, HK_FROM_OUTBOX, claim, NULL, 0);
    size_t n = fresh + load_members(store, HK_SQ_CLAIM_RETRIES, HK_FROM_RETRY, claim, NULL, 0);
    struct hk_member *members = hk_sq_alloc(store, n, sizeof *members);
    if (!members)
        return NULL;
    load_members(store, HK_SQ_CLAIM_IDS, HK_FROM_OUTBOX, claim, members, fresh);
    load_members(store, HK_SQ_CLAIM_RETRIES, HK_FROM_RETRY, claim, members + fresh, n - fresh);
    if (hk_sq_ok(store) && !hk_manifests_add(&store->claims, claim, members, n))
        hk_sq_fail(store, SQLITE_NOMEM);
    return hk_sq_ok(store) ? hk_manifests_find(&store->claims, claim) : NULL;
}

/* The manifest, if it still stands. Asked of the database once per transaction. */
static struct hk_manifest *standing_claim(struct hk_store *store, int64_t claim, int64_t lane)
{
    struct hk_manifest *c = hk_manifests_find(&store->claims, claim);
    if (c && c->checked)
        return c->stands ? c : NULL;
    bool stands = claim_stands(store, claim, lane);
    if (!c && stands)
        c = load_claim(store, claim);
    if (!c)
        return NULL;
    c->checked = true;
    c->stands = stands;
    return stands ? c : NULL;
}

/* By an exchange that failed behind it? */
static bool was_done(const struct hk_sq_apart *apart, const struct hk_settle *s)
{
    for (size_t i = 0; i < apart->n; i++)
        if (apart->items[i].claim == s->claim && apart->items[i].id == s->id &&
            apart->items[i].source == s->source)
            return true;
    return false;
}

static void settle_one(struct hk_store *store, struct settling *t, size_t i)
{
    const struct hk_settle *s = &t->x->settles[i];
    struct hk_manifest *claim = standing_claim(store, s->claim, t->x->lane);
    struct hk_member *member = claim ? hk_manifest_open_member(claim, s->source, s->id) : NULL;
    t->stale[i] = !member && !was_done(&store->apart, s);
    if (!member)
        return;
    member->state = HK_MEMBER_SETTLING;
    claim->n_open--;
    if (t->why) {
        hk_sq_stick(store, s, t->now_ms, t->why);
        return;
    }
    hk_sq_settle(store, s, t->now_ms);
    if (s->source == HK_FROM_OUTBOX && s->kind == HK_SETTLE_RELEASE)
        claim->rewrite = true;
    else if (s->source == HK_FROM_OUTBOX)
        t->gone[t->n_gone++] =
            (struct gone){s->id, s->kind == HK_SETTLE_SENT && store->options.keep_sent ? s : NULL};
    t->touched |= s->source == HK_FROM_RETRY || (s->kind != HK_SETTLE_SENT && s->kind != HK_SETTLE_RELEASE);
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct gone *)a)->id, y = ((const struct gone *)b)->id;
    return (x > y) - (x < y);
}

static bool sent_alike(const struct hk_settle *a, const struct hk_settle *b)
{
    return a && b && a->history.attempts == b->history.attempts && a->attempt.status == b->attempt.status &&
           hk_str_eq(a->destination, b->destination);
}

static void keep_run(struct hk_store *store, const struct gone *run, size_t n, int64_t now_ms)
{
    for (size_t i = 0, next = 0; i < n; i = next) {
        for (next = i + 1; next < n && sent_alike(run[i].sent, run[next].sent);)
            next++;
        if (run[i].sent)
            hk_sq_keep_sent(store, run[i].sent, run[next - 1].id, now_ms);
    }
}

/* Runs of neighbours go in one statement: exact, since every id of the run is on the list. */
static void delete_gone(struct hk_store *store, struct settling *t)
{
    struct gone *gone = t->gone;
    if (t->n_gone)
        qsort(gone, t->n_gone, sizeof *gone, by_id);
    for (size_t i = 0, next = 0; i < t->n_gone; i = next) {
        for (next = i + 1; next < t->n_gone && gone[next].id == gone[next - 1].id + 1;)
            next++;
        keep_run(store, gone + i, next - i, t->now_ms);
        hk_sq_drop_range(store, gone[i].id, gone[next - 1].id);
    }
}

/* Room for `n` ids as JSON. */
static size_t ids_bytes(size_t n)
{
    return n * sizeof "-9223372036854775808," + sizeof "[]";
}

static void write_ids(struct hk_buf *out, const struct hk_member *members, size_t n)
{
    char sep = '[';
    for (size_t i = 0; i < n; i++)
        if (members[i].source == HK_FROM_OUTBOX && members[i].state == HK_MEMBER_OPEN) {
            hk_buf_addf(out, "%c%lld", sep, (long long)members[i].id);
            sep = ',';
        }
    hk_buf_adds(out, sep == '[' ? "[]" : "]");
}

static bool check_buf(struct hk_store *store, const struct hk_buf *buf)
{
    enum hk_code rc = hk_buf_status(buf);
    if (rc != HK_OK)
        hk_sq_fail(store, rc == HK_NOMEM ? SQLITE_NOMEM : SQLITE_TOOBIG);
    return rc == HK_OK;
}

/* Manifests with nothing left go; one that gave something back is written again without it. */
static void tidy_claims(struct hk_store *store)
{
    for (size_t i = 0; i < store->claims.n && hk_sq_ok(store); i++) {
        struct hk_manifest *claim = &store->claims.items[i];
        if (!claim->stands || (claim->n_open > 0 && !claim->rewrite))
            continue;
        struct hk_buf ids;
        hk_buf_init(&ids, ids_bytes(claim->n_members));
        sqlite3_stmt *q = hk_sq_use(store, claim->n_open ? HK_SQ_SET_CLAIM_IDS : HK_SQ_DROP_CLAIM);
        hk_sq_bind_i64(store, q, 1, claim->claim);
        if (claim->n_open) {
            write_ids(&ids, claim->members, claim->n_members);
            if (check_buf(store, &ids))
                hk_sq_bind_text(store, q, 2, hk_buf_str(&ids));
        }
        hk_sq_run(store, q);
        hk_buf_fini(&ids);
    }
}

/* ---- claiming ---- */

static int by_place(const void *a, const void *b)
{
    const struct hk_want *x = a, *y = b;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->payload != y->payload)
        return x->payload ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Sorted (rows of outbox with payload first), without repeats and without what is claimed already. */
static struct hk_want *choose(struct hk_store *store, const struct hk_exchange *x, size_t *out_n)
{
    size_t n = 0;
    struct hk_want *wants = hk_sq_alloc(store, x->n_wants, sizeof *wants);
    for (size_t i = 0; wants && i < x->n_wants; i++)
        if ((x->wants[i].source == HK_FROM_RETRY || !hk_manifests_hold(&store->claims, x->wants[i].id)) &&
            !hk_stuck_has(&store->stuck, x->wants[i].source, x->wants[i].id))
            wants[n++] = x->wants[i];
    if (n)
        qsort(wants, n, sizeof *wants, by_place);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || wants[i].source != wants[kept - 1].source || wants[i].id != wants[kept - 1].id)
            wants[kept++] = wants[i];
    *out_n = kept;
    return wants;
}

/* So that no row, however large, is loaded. Give back what it returns. */
static int limit_rows(struct hk_store *store)
{
    uint64_t most = store->options.max_payload_bytes;
    if (most < HK_SQ_TEXT_MAX)
        most = HK_SQ_TEXT_MAX;
    return sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, most > INT_MAX ? INT_MAX : (int)most);
}

/* Reads one row with `statement`; false: it is not there, or (then SQLITE_TOOBIG sticks) too large. */
static bool read_row(struct hk_store *store, enum hk_sq_id statement, const struct hk_want *want,
                     struct hk_message *out)
{
    sqlite3_stmt *q = hk_sq_use(store, statement);
    hk_sq_bind_i64(store, q, 1, want->id);
    if (want->source == HK_FROM_RETRY)
        hk_sq_bind_i64(store, q, 2, store->exchanged.now_ms);
    int limit = limit_rows(store);
    bool found = hk_sq_row(store, q);
    if (found)
        hk_sq_message(store, q, want->source, out);
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, limit);
    hk_sq_done(q);
    return found;
}

/* A message whose own time has not come became a row of outbox_retry by a clock that was wrong. It waits, and is not claimed: to the
 * engine it is gone, and the next poll tells of it. While the clock is not behind there can be none. */
static bool put_off(struct hk_store *store, const struct hk_want *want)
{
    if (want->source != HK_FROM_RETRY || !hk_sq_behind(store, store->exchanged.now_ms))
        return false;
    hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_RETRY, want->id});
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_PUT_OFF_RETRY);
    hk_sq_bind_i64(store, q, 1, want->id);
    hk_sq_bind_i64(store, q, 2, hk_sq_clock(store));
    bool early = hk_sq_run(store, q) > 0;
    hk_sq_put_back(store);
    return early;
}

static bool read_one(struct hk_store *store, const struct hk_want *want, struct hk_message *out)
{
    bool fresh = want->source == HK_FROM_OUTBOX;
    bool oversized = false;
    if (put_off(store, want))
        return false;
    if (want->payload) {
        bool found = read_row(store, fresh ? HK_SQ_READ_ONE : HK_SQ_READ_RETRY, want, out);
        if (store->rc != SQLITE_TOOBIG)
            return found;
        store->rc = SQLITE_OK;
        oversized = true;
    }
    bool found = read_row(store, fresh ? HK_SQ_READ_BARE : HK_SQ_READ_RETRY_BARE, want, out);
    if (store->rc == SQLITE_TOOBIG) { /* headers of gigabytes: nothing of it is read, but it can be buried */
        store->rc = SQLITE_OK;
        *out = (struct hk_message){.source = want->source, .id = want->id, .life = 1, .malformed = "row"};
        found = true;
    }
    out->oversized = oversized;
    return found;
}

/* Rows of outbox that are to be sent, which is all but always all of them: neighbours by one range, which is cheapest, the
 * rest through one json_each. False: one is too large, read them singly. */
static bool read_many(struct hk_store *store, const struct hk_want *wants, size_t n, struct hk_exchanged *out)
{
    struct hk_buf ids;
    hk_buf_init(&ids, ids_bytes(n));
    bool range = wants[n - 1].id - wants[0].id == (int64_t)n - 1;
    for (size_t i = 0; i < n && !range; i++)
        hk_buf_addf(&ids, "%c%lld", i ? ',' : '[', (long long)wants[i].id);
    hk_buf_addc(&ids, ']');
    sqlite3_stmt *q = NULL;
    if (check_buf(store, &ids))
        q = hk_sq_use(store, range ? HK_SQ_READ_RANGE : HK_SQ_READ_MANY);
    if (range) {
        hk_sq_bind_i64(store, q, 1, wants[0].id);
        hk_sq_bind_i64(store, q, 2, wants[n - 1].id);
    } else {
        hk_sq_bind_text(store, q, 1, hk_buf_str(&ids));
    }
    int limit = limit_rows(store);
    while (out->n_messages < n && hk_sq_row(store, q))
        hk_sq_message(store, q, HK_FROM_OUTBOX, &out->messages[out->n_messages++]);
    sqlite3_limit(store->db, SQLITE_LIMIT_LENGTH, limit);
    hk_sq_done(q);
    hk_buf_fini(&ids);
    if (store->rc != SQLITE_TOOBIG)
        return true;
    store->rc = SQLITE_OK;
    out->n_messages = 0;
    return false;
}

static void read_messages(struct hk_store *store, const struct hk_want *wants, size_t n,
                          struct hk_exchanged *out)
{
    size_t many = 0;
    while (many < n && wants[many].source == HK_FROM_OUTBOX && wants[many].payload)
        many++;
    size_t from = many && read_many(store, wants, many, out) ? many : 0;
    for (size_t i = from; i < n && hk_sq_ok(store); i++)
        out->n_messages += read_one(store, &wants[i], &out->messages[out->n_messages]);
}

static int64_t add_claim(struct hk_store *store, int64_t lane, int64_t now_ms,
                         const struct hk_member *members, size_t n)
{
    struct hk_buf ids;
    hk_buf_init(&ids, ids_bytes(n));
    write_ids(&ids, members, n);
    sqlite3_stmt *q = check_buf(store, &ids) ? hk_sq_use(store, HK_SQ_ADD_CLAIM) : NULL;
    hk_sq_bind_i64(store, q, 1, lane);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_text(store, q, 3, hk_buf_str(&ids));
    hk_sq_run(store, q);
    hk_buf_fini(&ids);
    return hk_sq_ok(store) ? sqlite3_last_insert_rowid(store->db) : 0;
}

static void write_manifest(struct hk_store *store, int64_t lane, int64_t now_ms, struct hk_exchanged *out)
{
    size_t n = out->n_messages;
    struct hk_member *members = hk_sq_alloc(store, n, sizeof *members);
    if (!members)
        return;
    for (size_t i = 0; i < n; i++)
        members[i] = (struct hk_member){.id = out->messages[i].id, .source = out->messages[i].source};
    out->claim = add_claim(store, lane, now_ms, members, n);
    for (size_t i = 0; i < n && hk_sq_ok(store); i++) {
        if (members[i].source != HK_FROM_RETRY)
            continue;
        if (!out->messages[i].payload.len) /* it may not have been read */
            hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_RETRY, members[i].id});
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_CLAIM_RETRY);
        hk_sq_bind_i64(store, q, 1, members[i].id);
        hk_sq_bind_i64(store, q, 2, out->claim);
        hk_sq_run(store, q);
        hk_sq_put_back(store);
    }
    if (hk_sq_ok(store) && !hk_manifests_add(&store->claims, out->claim, members, n))
        hk_sq_fail(store, SQLITE_NOMEM);
}

static void claim_all(struct hk_store *store, const struct hk_exchange *x, struct settling *t,
                      struct hk_exchanged *out)
{
    size_t n = 0;
    struct hk_want *wants = choose(store, x, &n);
    out->messages = hk_sq_alloc(store, n, sizeof *out->messages);
    if (!wants || !out->messages)
        return;
    read_messages(store, wants, n, out);
    if (out->n_messages && hk_sq_ok(store))
        write_manifest(store, x->lane, t->now_ms, out);
    t->touched |= n && wants[n - 1].source == HK_FROM_RETRY;
}

/* ---- the whole ---- */

static bool renew(struct hk_store *store, const struct hk_exchange *x, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_RENEW_LANE);
    hk_sq_bind_i64(store, q, 1, x->lane);
    hk_sq_bind_i64(store, q, 2, hk_ms_after(now_ms, x->lease_ms));
    return hk_sq_run(store, q) > 0;
}

static void keep_circuits(struct hk_store *store, struct settling *t)
{
    for (size_t i = 0; i < t->x->n_circuits; i++) {
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_CIRCUIT);
        hk_sq_bind_cstr(store, q, 1, t->x->circuits[i].destination);
        hk_sq_bind_i64(store, q, 2, t->x->circuits[i].open_until_ms);
        hk_sq_bind_i64(store, q, 3, t->now_ms);
        hk_sq_run(store, q);
        t->touched = true;
    }
}

static enum hk_code lane_is_gone(struct hk_store *store, const struct hk_exchange *x,
                                 struct hk_exchanged *done, struct hk_err *err)
{
    bool reset = hk_sq_clock_was_reset(store);
    hk_sq_rollback(store);
    hk_sq_unlock(store);
    store->lane = 0;
    hk_manifests_clear(&store->claims);
    for (size_t i = 0; i < x->n_settles; i++)
        done->stale[i] = true;
    return hk_err_set(err, HK_CONFLICT, "%s: lane %lld %s", store->path, (long long)x->lane,
                      reset ? "ended: an operator reset the clock" : "was taken over by another relay");
}

static bool fans_out_to_nowhere(const struct hk_exchange *x)
{
    for (size_t i = 0; i < x->n_settles; i++)
        if (x->settles[i].kind == HK_SETTLE_FAN_OUT && x->settles[i].n_fan_out == 0)
            return true;
    return false;
}

/* One transaction. `done->stale` has room for the settles. */
static enum hk_code run_exchange(struct hk_store *store, const struct hk_exchange *x, const char *why,
                                 struct hk_exchanged *done, struct hk_err *err)
{
    struct settling t = {
        .x = x, .why = why, .stale = done->stale, .gone = hk_sq_alloc(store, x->n_settles, sizeof *t.gone)};
    hk_sq_begin_write(store);
    t.now_ms = done->now_ms = hk_sq_now(store);
    bool stands = !hk_sq_clock_was_reset(store) && renew(store, x, t.now_ms);
    if (!stands && hk_sq_ok(store))
        return lane_is_gone(store, x, done, err);
    for (size_t i = 0; i < x->n_settles && hk_sq_ok(store); i++)
        settle_one(store, &t, i);
    if (hk_sq_ok(store))
        delete_gone(store, &t);
    tidy_claims(store);
    if (x->n_wants)
        claim_all(store, x, &t, done);
    keep_circuits(store, &t);
    hk_sq_clock_save(store);
    enum hk_code rc = hk_sq_end(store, "exchange messages", err);
    hk_crash_exchange(x, "bury-committed", "arrive-committed");
    if (rc != HK_OK) {
        hk_manifests_rollback(&store->claims);
        return rc;
    }
    hk_manifests_commit(&store->claims);
    store->own_change |= t.touched;
    return HK_OK;
}

/* ---- when the database refuses some of it ---- */

static enum hk_code note_apart(struct hk_store *store, const struct hk_exchange *x, struct hk_err *err)
{
    struct hk_sq_apart *a = &store->apart;
    if (a->room < a->n + x->n_settles) {
        size_t room = 2 * a->n + x->n_settles;
        void *items = hk_mem_resize(a->items, room * sizeof *a->items);
        if (!items)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        a->items = items;
        a->room = room;
    }
    for (size_t i = 0; i < x->n_settles; i++, a->n++) {
        a->items[a->n].claim = x->settles[i].claim;
        a->items[a->n].id = x->settles[i].id;
        a->items[a->n].source = x->settles[i].source;
    }
    return HK_OK;
}

/* It cannot be settled: noted as stuck instead. */
static enum hk_code stick_one(struct hk_store *store, const struct hk_exchange *one, size_t at,
                              struct hk_exchanged *done, struct hk_err *err)
{
    const struct hk_settle *s = one->settles;
    char *why = hk_pool_alloc(hk_sq_pool(store), 1, HK_STUCK_WHY_MAX);
    if (!why || !hk_stuck_add(&store->stuck, s->source, s->id))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    (void)snprintf(why, HK_STUCK_WHY_MAX, "%s", store->where);
    store->rc = SQLITE_OK;
    struct hk_exchanged some = {.stale = done->stale + at};
    enum hk_code rc = run_exchange(store, one, why, &some, err);
    if (rc != HK_OK || some.stale[0])
        hk_stuck_drop(&store->stuck, s->source, s->id);
    else
        done->stuck[at] = why;
    return rc;
}

/* Each half in a transaction by itself, down to the ones that are refused alone. */
static enum hk_code settle_apart(struct hk_store *store, const struct hk_exchange *x, size_t from, size_t n,
                                 struct hk_exchanged *done, struct hk_err *err)
{
    struct hk_exchange part = {
        .lane = x->lane, .lease_ms = x->lease_ms, .settles = x->settles + from, .n_settles = n};
    struct hk_exchanged some = {.stale = done->stale + from};
    store->rc = SQLITE_OK;
    enum hk_code rc = run_exchange(store, &part, NULL, &some, err);
    if (rc == HK_OK)
        return note_apart(store, &part, err);
    if (rc == HK_CONFLICT || !hk_sq_refused(store))
        return rc;
    if (n == 1)
        return stick_one(store, &part, from, done, err);
    rc = settle_apart(store, x, from, n / 2, done, err);
    return rc == HK_OK ? settle_apart(store, x, from + n / 2, n - n / 2, done, err) : rc;
}

/* Then all the rest of it. What was settled before something else went wrong is known when it is asked for again. */
static enum hk_code exchange_apart(struct hk_store *store, const struct hk_exchange *x,
                                   struct hk_exchanged *done, struct hk_err *err)
{
    store->rc = SQLITE_OK;
    done->stuck = hk_sq_alloc(store, x->n_settles, sizeof *done->stuck);
    if (!done->stuck)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = settle_apart(store, x, 0, x->n_settles, done, err);
    struct hk_exchange rest = *x;
    rest.n_settles = 0;
    store->rc = SQLITE_OK;
    if (rc == HK_OK)
        rc = run_exchange(store, &rest, NULL, done, err);
    if (rc == HK_CONFLICT)
        for (size_t i = 0; i < x->n_settles; i++)
            done->stale[i] = true;
    return rc;
}

enum hk_code hk_sq_exchange(struct hk_store *store, const struct hk_exchange *x,
                            const struct hk_exchanged **out, struct hk_err *err)
{
    if (fans_out_to_nowhere(x))
        return hk_err_set(err, HK_INVALID,
                          "a message cannot be fanned out to no destination: it would be lost");
    if (hk_sq_is_cut_off(store))
        return hk_sq_cut_off(store, err);
    hk_sq_call(store);
    struct hk_exchanged *done = &store->exchanged;
    *done = (struct hk_exchanged){.stale = hk_sq_alloc(store, x->n_settles, sizeof *done->stale)};
    enum hk_code rc = run_exchange(store, x, NULL, done, err);
    if (rc != HK_OK && rc != HK_CONFLICT && x->n_settles && hk_sq_refused(store))
        rc = exchange_apart(store, x, done, err);
    if (rc == HK_OK || rc == HK_CONFLICT) {
        store->apart.n = 0;
        *out = done;
    }
    if (rc == HK_OK && x->unknown)
        done->definitions = hk_sq_definitions_version(store);
    if (rc == HK_OK && store->stuck.n)
        hk_sq_unstick(store, done->now_ms);
    return rc;
}
