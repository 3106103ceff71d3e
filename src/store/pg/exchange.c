/* SPDX-License-Identifier: Apache-2.0 */
/* The exchange: settles what is finished and claims what comes next, in one transaction that is sent whole before any of
 * it is answered.
 *
 *   BEGIN · renew the lane · its number · which manifests stand · settles · what was sent · manifests that are done with · claim · COMMIT
 *
 * Nothing can be undone once it is on its way, so the store first allocates all memory that the answers need. If the answer to COMMIT is
 * lost, the exchange's number shows its outcome: outbox_exchange has the number exactly if it was committed. Before it asks for the
 * outcome, the relay invalidates the number in the lane's row, so that an exchange with this number is refused if it arrives later. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "store/crash.h"
#include "store/pg/runs.h"
#include "store/pg/store.h"

#define LEASE_MAX_MS  (UINT64_C(1) << 60)
#define RESOLVE_TRIES 2

/* A row of outbox that was sent. */
struct sent {
    const struct hk_settle *settle;
    int64_t claim, id;
    size_t way; /* as in struct ways, from 1 */
};

/* A message that was read ahead (pages.h). */
struct at_hand {
    const PGresult *res;
    int row;
};

struct exchanging {
    struct hk_store *store;
    const struct hk_exchange *x;
    struct hk_exchanged *done;
    struct hk_manifest **of; /* each settle's manifest; NULL: stale, or done before */
    int64_t *fence;          /* the manifests that are settled from, each once */
    size_t n_fence;
    struct sent *sent; /* rows of outbox */
    size_t n_sent;
    int64_t *fresh, *fresh_bare, *retries, *retries_bare; /* what is claimed */
    size_t n_fresh, n_fresh_bare, n_retries, n_retries_bare;
    struct at_hand *at_hand; /* those rows of outbox, when all of them are; else NULL */
    struct hk_member *members;
    int64_t *over; /* those of them that are done with */
    size_t n_over;
    bool marked;        /* it leaves its number behind */
    bool began;         /* the transaction */
    bool gone;          /* the lane */
    bool renewed;       /* and when is known */
    bool claim_read;    /* and all that it gave is at hand */
    bool touched_retry; /* what a poll shows has changed */
    bool refused;       /* by a constraint or a trigger, which may concern one row alone */
    const char *why;    /* not NULL: nothing is settled but noted as stuck, for this reason */
};

/* ---- manifests that another store object of this lane wrote ---- */

static bool is_known(struct hk_store *store, int64_t claim, const int64_t *list, size_t n)
{
    if (hk_manifests_find(&store->claims, claim))
        return true;
    for (size_t i = 0; i < n; i++)
        if (list[i] == claim)
            return true;
    return false;
}

static void add_loaded(struct hk_store *store, const PGresult *res, int64_t claim, struct hk_member *members)
{
    size_t n = 0;
    for (int i = 0; i < PQntuples(res); i++)
        if (hk_pg_i64(res, i, 0) == claim)
            members[n++] = (struct hk_member){
                .id = hk_pg_i64(res, i, 2),
                .source = hk_pg_i64(res, i, 1) ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                .shard = (uint8_t)(hk_pg_i64(res, i, 3) & (HK_PG_SHARDS - 1)),
            };
    if (n && !hk_manifests_add(&store->claims, claim, members, n))
        hk_pg_fail(&store->pg, HK_NOMEM, "out of memory");
}

static void load_claims(struct hk_store *store, const struct hk_exchange *x)
{
    size_t n = 0;
    int64_t *unknown = hk_pg_alloc(&store->pg, x->n_settles, sizeof *unknown);
    for (size_t i = 0; unknown && i < x->n_settles; i++)
        if (!is_known(store, x->settles[i].claim, unknown, n))
            unknown[n++] = x->settles[i].claim;
    if (!n)
        return;
    struct hk_pg_args a = {0};
    hk_pg_arg_i64s(&store->pg, &a, unknown, n);
    hk_pg_arg_i64(&store->pg, &a, x->lane);
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_LOAD_CLAIMS, &a);
    size_t rows = hk_pg_ok(&store->pg) ? (size_t)PQntuples(res) : 0;
    struct hk_member *members = hk_pg_alloc(&store->pg, rows, sizeof *members);
    for (size_t i = 0; rows && members && i < n; i++)
        add_loaded(store, res, unknown[i], members);
    PQclear(res);
    hk_manifests_commit(&store->claims); /* they were there before this transaction */
}

/* ---- what is to be settled ---- */

/* By an exchange whose answer was lost; NULL: no. */
static struct hk_pg_settled *find_done(struct hk_pg_lost *lost, const struct hk_settle *s)
{
    for (size_t i = 0; i < lost->n_settles; i++) {
        struct hk_pg_settled *one = &lost->settles[i];
        if (one->claim == s->claim && one->id == s->id && one->source == s->source)
            return one;
    }
    return NULL;
}

static void note_settle(struct hk_store *store, struct exchanging *t, size_t i)
{
    const struct hk_settle *s = &t->x->settles[i];
    if (find_done(&store->lost, s))
        return;
    struct hk_manifest *claim = hk_manifests_find(&store->claims, s->claim);
    struct hk_member *member = claim ? hk_manifest_open_member(claim, s->source, s->id) : NULL;
    t->done->stale[i] = !member;
    if (!member)
        return;
    member->state = HK_MEMBER_SETTLING;
    claim->n_open--;
    t->of[i] = claim;
    if (!claim->checked)
        t->fence[t->n_fence++] = claim->claim;
    claim->checked = true;
    bool fresh = s->source == HK_FROM_OUTBOX;
    if (t->why)
        return;
    if (fresh && s->kind == HK_SETTLE_SENT)
        t->sent[t->n_sent++] = (struct sent){.settle = s, .claim = s->claim, .id = s->id};
    claim->rewrite |= fresh && s->kind == HK_SETTLE_RELEASE;
    t->touched_retry |= !fresh || (s->kind != HK_SETTLE_SENT && s->kind != HK_SETTLE_RELEASE);
}

/* How a message was sent, for outbox_sent: most of them alike. */
struct ways {
    struct hk_str *names;
    int64_t *attempts, *statuses;
    size_t n;
};

static size_t way_of(struct ways *w, const struct hk_settle *s)
{
    size_t i = w->n;
    while (i > 0 && (w->attempts[i - 1] != s->history.attempts || w->statuses[i - 1] != s->attempt.status ||
                     !hk_str_eq(w->names[i - 1], s->destination)))
        i--;
    if (i > 0)
        return i;
    w->names[w->n] = s->destination;
    w->attempts[w->n] = s->history.attempts;
    w->statuses[w->n] = s->attempt.status;
    return ++w->n;
}

static int by_claim_way_id(const void *a, const void *b)
{
    const struct sent *x = a, *y = b;
    if (x->claim != y->claim)
        return x->claim < y->claim ? -1 : 1;
    if (x->way != y->way)
        return x->way < y->way ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

/* Runs as five lists for a statement. */
struct lists {
    int64_t *lo, *hi, *bits, *claims, *ways;
    size_t n;
};

static void list_runs(struct lists *l, const struct sent *sent, size_t n, int64_t *ids,
                      struct hk_pg_run *runs)
{
    for (size_t i = 0, end = 0; i < n; i = end) {
        for (end = i; end < n && sent[end].claim == sent[i].claim && sent[end].way == sent[i].way; end++)
            ids[end - i] = sent[end].id;
        size_t n_runs = hk_pg_runs(ids, end - i, runs);
        for (size_t k = 0; k < n_runs; k++, l->n++) {
            l->lo[l->n] = runs[k].lo;
            l->hi[l->n] = runs[k].hi;
            l->bits[l->n] = (int64_t)runs[k].bits;
            l->claims[l->n] = sent[i].claim;
            l->ways[l->n] = (int64_t)sent[i].way;
        }
    }
}

/* Which manifests stand. One that does not was taken from us by hand: what is settled from it is stale. */
static void read_fence(void *arg, PGresult *res)
{
    struct exchanging *t = arg;
    for (int i = 0; res && i < PQntuples(res); i++) {
        struct hk_manifest *claim = hk_manifests_find(&t->store->claims, hk_pg_i64(res, i, 0));
        if (claim)
            claim->stands = true;
    }
    for (size_t i = 0; res && i < t->x->n_settles; i++)
        if (t->of[i] && !t->of[i]->stands) {
            t->of[i]->n_open = 0; /* nothing of it is ours */
            t->done->stale[i] = true;
        }
    PQclear(res);
}

static void add_sent(struct hk_store *store, struct exchanging *t)
{
    struct hk_pg *pg = &store->pg;
    size_t n = t->n_sent;
    int64_t *room = hk_pg_alloc(pg, 8 * n, sizeof *room);
    struct hk_pg_run *runs = hk_pg_alloc(pg, n, sizeof *runs);
    struct ways w = {.names = hk_pg_alloc(pg, n, sizeof *w.names)};
    if (!room || !runs || !w.names)
        return;
    w.attempts = room;
    w.statuses = room + n;
    for (size_t i = 0; store->options.keep_sent && i < n; i++)
        t->sent[i].way = way_of(&w, t->sent[i].settle);
    qsort(t->sent, n, sizeof *t->sent, by_claim_way_id);
    struct lists l = {room + 2 * n, room + 3 * n, room + 4 * n, room + 5 * n, room + 6 * n, 0};
    list_runs(&l, t->sent, n, room + 7 * n, runs);
    struct hk_pg_args a = {0};
    hk_pg_arg_i64s(pg, &a, l.lo, l.n);
    hk_pg_arg_i64s(pg, &a, l.hi, l.n);
    hk_pg_arg_i64s(pg, &a, l.bits, l.n);
    hk_pg_arg_i64s(pg, &a, l.claims, l.n);
    hk_pg_arg_i64s(pg, &a, t->fence, t->n_fence);
    hk_pg_arg_i64(pg, &a, t->x->lane);
    hk_pg_arg_i64s(pg, &a, t->over, t->n_over);
    if (!store->options.keep_sent) {
        hk_pg_arg_i64(pg, &a, (int64_t)n);
    } else {
        hk_pg_arg_i64s(pg, &a, l.ways, l.n);
        hk_pg_arg_texts(pg, &a, w.names, w.n);
        hk_pg_arg_i64s(pg, &a, w.attempts, w.n);
        hk_pg_arg_i64s(pg, &a, w.statuses, w.n);
        hk_pg_arg_now(store, &a);
        hk_pg_arg_i64(pg, &a, (int64_t)n);
    }
    hk_pg_add_read(pg, store->options.keep_sent ? HK_PG_SENT_KEPT : HK_PG_SENT, &a, read_fence, t);
}

static void rewrite_claim(struct hk_store *store, struct exchanging *t, const struct hk_manifest *claim)
{
    size_t n = 0;
    int64_t *ids = hk_pg_alloc(&store->pg, claim->n_members, sizeof *ids);
    for (size_t i = 0; ids && i < claim->n_members; i++)
        if (claim->members[i].source == HK_FROM_OUTBOX && claim->members[i].state == HK_MEMBER_OPEN)
            ids[n++] = claim->members[i].id;
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, claim->claim);
    hk_pg_arg_i64(&store->pg, &a, t->x->lane);
    hk_pg_arg_i64s(&store->pg, &a, ids, n);
    hk_pg_add(&store->pg, HK_PG_SET_CLAIM_IDS, &a);
}

/* Manifests with nothing left go; one that gave something back is written again without it. */
static void add_rewrites(struct hk_store *store, struct exchanging *t)
{
    for (size_t i = 0; i < t->n_fence; i++) {
        const struct hk_manifest *claim = hk_manifests_find(&store->claims, t->fence[i]);
        if (claim && claim->n_open == 0)
            t->over[t->n_over++] = claim->claim;
        else if (claim && claim->rewrite)
            rewrite_claim(store, t, claim);
    }
}

/* Which manifests stand, and away with those that are done with: where nothing was sent that would do it on the way. */
static void add_fence(struct hk_store *store, struct exchanging *t)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64s(&store->pg, &a, t->fence, t->n_fence);
    hk_pg_arg_i64(&store->pg, &a, t->x->lane);
    hk_pg_arg_i64s(&store->pg, &a, t->over, t->n_over);
    hk_pg_add_read(&store->pg, HK_PG_FENCE, &a, read_fence, t);
}

/* A manifest that was written by an exchange whose answer was lost: nobody has what it names. */
static void add_strays(struct hk_store *store, struct exchanging *t)
{
    size_t n = store->claims.n;
    int64_t *known = hk_pg_alloc(&store->pg, n, sizeof *known);
    for (size_t i = 0; known && i < n; i++)
        known[i] = store->claims.items[i].claim;
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, t->x->lane);
    hk_pg_arg_i64s(&store->pg, &a, known, n);
    hk_pg_add(&store->pg, HK_PG_FREE_STRAY_RETRIES, &a);
    hk_pg_add(&store->pg, HK_PG_DROP_STRAY_CLAIMS, &a);
    t->touched_retry = true;
}

/* ---- what is to be claimed ---- */

static int by_value(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Sorted, each once. */
static size_t tidy_ids(int64_t *ids, size_t n)
{
    if (n)
        qsort(ids, n, sizeof *ids, by_value);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || ids[i] != ids[kept - 1])
            ids[kept++] = ids[i];
    return kept;
}

/* While the relay has yet to be told to read everything anew, nothing is claimed: it may have read that row on another server,
 * and behind the same number there may be another message now. */
static void choose(struct hk_store *store, struct exchanging *t)
{
    const struct hk_exchange *x = t->x;
    t->done->reset = store->reset_due;
    if (store->reset_due)
        return;
    int64_t *ids = hk_pg_alloc(&store->pg, 4 * x->n_wants, sizeof *ids);
    if (!ids)
        return;
    t->fresh = ids;
    t->fresh_bare = ids + x->n_wants;
    t->retries = ids + 2 * x->n_wants;
    t->retries_bare = ids + 3 * x->n_wants;
    for (size_t i = 0; i < x->n_wants; i++) {
        const struct hk_want *c = &x->wants[i];
        if (hk_stuck_has(&store->stuck, c->source, c->id))
            continue;
        if (c->source == HK_FROM_RETRY) {
            t->retries[t->n_retries++] = c->id;
            if (!c->payload)
                t->retries_bare[t->n_retries_bare++] = c->id;
        } else if (!hk_manifests_hold(&store->claims, c->id)) {
            t->fresh[t->n_fresh++] = c->id;
            if (!c->payload)
                t->fresh_bare[t->n_fresh_bare++] = c->id;
        }
    }
    t->n_fresh = tidy_ids(t->fresh, t->n_fresh);
    t->n_retries = tidy_ids(t->retries, t->n_retries);
}

/* Nothing need be read for the claim when all of it was, whole. */
static void look_at_hand(struct hk_store *store, struct exchanging *t)
{
    if (t->n_retries || t->n_fresh_bare || !t->n_fresh)
        return;
    struct at_hand *all = hk_pg_alloc(&store->pg, t->n_fresh, sizeof *all);
    size_t n = 0;
    while (all && n < t->n_fresh && hk_pg_pages_find(&store->pages, t->fresh[n], &all[n].res, &all[n].row) &&
           hk_pg_is_whole(all[n].res, all[n].row))
        n++;
    if (n == t->n_fresh)
        t->at_hand = all;
}

static bool claims_any(const struct exchanging *t)
{
    return t->n_fresh + t->n_retries > 0;
}

/* Three lists. */
struct runs {
    int64_t *lists[3];
    size_t n;
};

static struct runs make_runs(struct hk_pg *pg, const int64_t *ids, size_t n)
{
    struct hk_pg_run *runs = hk_pg_alloc(pg, n, sizeof *runs);
    int64_t *room = hk_pg_alloc(pg, 3 * n, sizeof *room);
    if (!runs || !room)
        return (struct runs){.n = 0};
    struct runs r = {{room, room + n, room + 2 * n}, hk_pg_runs(ids, n, runs)};
    for (size_t i = 0; i < r.n; i++) {
        r.lists[0][i] = runs[i].lo;
        r.lists[1][i] = runs[i].hi;
        r.lists[2][i] = (int64_t)runs[i].bits;
    }
    return r;
}

static void arg_runs(struct hk_pg *pg, struct hk_pg_args *a, const struct runs *r)
{
    for (size_t i = 0; i < 3; i++)
        hk_pg_arg_i64s(pg, a, r->lists[i], r->n);
}

static void add_message(struct exchanging *t, const struct hk_member *member)
{
    const struct hk_message *m = &t->done->messages[t->done->n_messages];
    t->members[t->done->n_messages++] =
        (struct hk_member){.id = m->id, .source = m->source, .shard = member->shard};
}

/* {1,2,3} */
static size_t parse_ids(const char *text, int64_t *out, size_t room)
{
    size_t n = 0;
    while (*text && n < room) {
        size_t len = strcspn(text, "{,}");
        if (len && hk_parse_i64((struct hk_str){text, len}, &out[n], NULL) == HK_OK)
            n++;
        text += len + (text[len] != '\0');
    }
    return tidy_ids(out, n);
}

/* What CLAIM found of the rows at hand: all of them, or those that it names. */
static void take_at_hand(struct hk_store *store, struct exchanging *t, const char *named)
{
    int64_t *found = named ? hk_pg_alloc(&store->pg, t->n_fresh, sizeof *found) : t->fresh;
    size_t n = !named ? t->n_fresh : found ? parse_ids(named, found, t->n_fresh) : 0;
    for (size_t i = 0, k = 0; i < t->n_fresh && k < n; i++) {
        struct hk_member member;
        if (t->fresh[i] != found[k])
            continue;
        k++;
        hk_pg_message_ahead(store, t->at_hand[i].res, t->at_hand[i].row,
                            &t->done->messages[t->done->n_messages], &member.shard);
        add_message(t, &member);
    }
}

/* No manifest: nothing was there. */
static void read_manifest(void *arg, PGresult *res)
{
    struct exchanging *t = arg;
    struct hk_store *store = t->store;
    int64_t claim = res && PQntuples(res) > 0 ? hk_pg_i64(res, 0, 0) : 0;
    if (claim && t->at_hand)
        take_at_hand(store, t, hk_pg_null(res, 0, 1) ? NULL : PQgetvalue(res, 0, 1));
    t->done->claim = claim;
    t->claim_read = t->at_hand && hk_pg_ok(&store->pg); /* else the rows come yet */
    PQclear(res);
}

/* What was claimed, and, where retry rows are among it, under which manifest: else that was told before. */
static void read_rows(void *arg, PGresult *res)
{
    struct exchanging *t = arg;
    struct hk_store *store = t->store;
    int64_t claim = t->done->claim;
    size_t n = res ? (size_t)PQntuples(res) : 0;
    hk_pg_keep(store, res);
    if (!t->n_retries && !claim)
        n = 0; /* came to light between the two statements: the next scan's */
    for (size_t i = 0; i < n && i < t->x->n_wants; i++) {
        struct hk_member member;
        int64_t named =
            hk_pg_message(store, res, (int)i, &t->done->messages[t->done->n_messages], &member.shard);
        t->done->claim = claim ? claim : named;
        add_message(t, &member);
    }
    t->claim_read = hk_pg_ok(&store->pg);
}

/* All but always rows of outbox alone: two simple statements then, which are cheaper than one for everything. */
static void add_fresh_claim(struct hk_store *store, struct exchanging *t, uint64_t shards)
{
    struct hk_pg *pg = &store->pg;
    struct runs runs = make_runs(pg, t->fresh, t->n_fresh);
    struct hk_pg_args a = {0}, b = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(pg, &a, (int64_t)shards);
    arg_runs(pg, &a, &runs);
    hk_pg_arg_i64(pg, &a, t->x->lane);
    hk_pg_arg_i64(pg, &a, (int64_t)t->n_fresh);
    hk_pg_add_read(pg, HK_PG_CLAIM, &a, read_manifest, t);
    if (t->at_hand)
        return;
    hk_pg_arg_i64(pg, &b, (int64_t)shards);
    arg_runs(pg, &b, &runs);
    hk_pg_arg_i64s(pg, &b, t->fresh_bare, t->n_fresh_bare);
    hk_pg_arg_u64(pg, &b, store->options.max_payload_bytes);
    hk_pg_add_read(pg, HK_PG_READ, &b, read_rows, t);
}

static void add_claim(struct hk_store *store, struct exchanging *t, uint64_t shards)
{
    struct hk_pg *pg = &store->pg;
    if (!t->n_retries) {
        add_fresh_claim(store, t, shards);
        return;
    }
    struct runs runs = make_runs(pg, t->fresh, t->n_fresh);
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(pg, &a, (int64_t)shards);
    arg_runs(pg, &a, &runs);
    hk_pg_arg_i64s(pg, &a, t->fresh_bare, t->n_fresh_bare);
    hk_pg_arg_u64(pg, &a, store->options.max_payload_bytes);
    hk_pg_arg_i64(pg, &a, t->x->lane);
    hk_pg_arg_i64s(pg, &a, t->retries, t->n_retries);
    hk_pg_arg_i64s(pg, &a, t->retries_bare, t->n_retries_bare);
    hk_pg_add_read(pg, HK_PG_CLAIM_BOTH, &a, read_rows, t);
    t->touched_retry = true;
}

/* ---- the transaction ---- */

/* Rises, also from one store object to the next of the same lane. */
static void next_number(struct hk_store *store)
{
    int64_t us = hk_pg_monotonic_us();
    store->number = store->number + 1 > us ? store->number + 1 : us;
}

static void read_renewal(void *arg, PGresult *res)
{
    struct exchanging *t = arg;
    t->renewed = res != NULL;
    if (t->renewed)
        t->done->now_ms = hk_pg_told(t->store, hk_pg_i64(res, 0, 0));
    else /* as RENEW in sql/relay.sql lets it fail */
        t->gone = strcmp(t->store->pg.sqlstate, "22P02") == 0;
    PQclear(res);
}

static void add_renewal(struct hk_store *store, struct exchanging *t)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(&store->pg, &a, t->x->lane);
    uint64_t lease_ms = hk_pg_moving_lease(store, t->x->lease_ms);
    hk_pg_arg_u64(&store->pg, &a, lease_ms < LEASE_MAX_MS ? lease_ms : LEASE_MAX_MS);
    hk_pg_arg_i64(&store->pg, &a, store->number);
    bool ours = t->x->lane == store->lane;
    hk_pg_arg_text(&store->pg, &a, hk_str_of(ours ? store->boot : ""));
    hk_pg_arg_i64(&store->pg, &a, ours ? store->mark : 0);
    hk_pg_add_read(&store->pg, HK_PG_RENEW, &a, read_renewal, t);
}

/* Of one that only renews nobody needs to know what became of it. Seats that a standby has forgotten are nobody's. */
static void add_mark(struct hk_store *store, struct exchanging *t)
{
    struct hk_pg_args a = {0};
    t->marked = t->x->n_settles || t->x->n_seats || claims_any(t) || store->strays;
    if (!t->marked)
        return;
    hk_pg_arg_i64(&store->pg, &a, t->x->lane);
    hk_pg_arg_i64(&store->pg, &a, store->number);
    hk_pg_arg_i64(&store->pg, &a, t->x->lane == store->lane ? store->mark : 0);
    hk_pg_add(&store->pg, HK_PG_MARK, &a);
}

static void send_all(struct hk_store *store, struct exchanging *t, uint64_t shards)
{
    t->began = hk_pg_ok(&store->pg);
    hk_pg_begin_moving(store);
    add_renewal(store, t);
    hk_pg_add_quotas(store, t->x, t->done);
    add_mark(store, t);
    for (size_t i = 0; hk_pg_ok(&store->pg) && i < t->x->n_settles; i++) {
        if (t->of[i] && t->why)
            hk_pg_stick(store, &t->x->settles[i], t->x->lane, t->why);
        else if (t->of[i])
            hk_pg_settle(store, &t->x->settles[i], t->x->lane);
    }
    add_rewrites(store, t);
    if (t->n_sent)
        add_sent(store, t);
    else if (t->n_fence)
        add_fence(store, t);
    if (store->strays)
        add_strays(store, t);
    if (claims_any(t))
        add_claim(store, t, shards);
    hk_crash_exchange(t->x, "bury-begun", "arrive-begun");
    hk_pg_send(&store->pg);
    hk_crash_exchange(t->x, "bury-inside", "arrive-inside");
}

/* ---- when the answer is lost ---- */

static bool reserve_lost(struct hk_pg_lost *lost, size_t n)
{
    if (n <= lost->room)
        return true;
    struct hk_pg_settled *settles = hk_mem_resize(lost->settles, n * sizeof *settles);
    if (!settles)
        return false;
    lost->settles = settles;
    lost->room = n;
    return true;
}

static void remember(struct hk_store *store, const struct exchanging *t)
{
    struct hk_pg_lost *lost = &store->lost;
    lost->pending = true;
    lost->lane = t->x->lane;
    lost->number = store->number;
    lost->claims = claims_any(t);
    lost->n_sure = lost->n_settles; /* of one that was lost before, and not asked for again yet */
    for (size_t i = 0; i < t->x->n_settles; i++) {
        const struct hk_settle *s = &t->x->settles[i];
        if (t->of[i])
            lost->settles[lost->n_settles++] =
                (struct hk_pg_settled){.claim = s->claim, .id = s->id, .source = s->source};
    }
}

static void note_mark(struct hk_store *store, int64_t lane, int64_t number)
{
    if (lane == store->lane)
        store->mark = number;
}

static void found_out(struct hk_store *store, bool committed)
{
    struct hk_pg_lost *lost = &store->lost;
    lost->pending = false;
    lost->committed = committed;
    store->own_change = true;
    if (committed) {
        note_mark(store, lost->lane, lost->number);
        hk_manifests_commit(&store->claims);
        store->strays |= lost->claims;
    } else {
        hk_manifests_rollback(&store->claims);
        lost->n_settles = lost->n_sure;
    }
}

static bool has_rows(struct hk_pg *pg)
{
    PGresult *res = hk_pg_result(pg);
    bool any = hk_pg_ok(pg) && PQntuples(res) > 0;
    PQclear(res);
    return any;
}

void hk_pg_resolve(struct hk_store *store)
{
    struct hk_pg_lost *lost = &store->lost;
    struct hk_pg_args a = {0};
    if (!lost->pending || !hk_pg_ok(&store->pg))
        return;
    hk_pg_begin(&store->pg, true);
    hk_pg_arg_i64(&store->pg, &a, lost->lane);
    hk_pg_add(&store->pg, HK_PG_HOLD_LANE, &a); /* waits while it is still at work */
    hk_pg_arg_i64(&store->pg, &a, lost->number);
    hk_pg_add(&store->pg, HK_PG_BURN_EXCHANGE, &a);
    hk_pg_add(&store->pg, HK_PG_IS_MARKED, &a); /* in a snapshot that was taken behind the wait */
    hk_pg_send(&store->pg);
    bool stands = has_rows(&store->pg);
    PQclear(hk_pg_result(&store->pg));
    bool committed = has_rows(&store->pg);
    if (hk_pg_end(&store->pg, "find out about an exchange", NULL) != HK_OK)
        return;
    if (stands)
        found_out(store, committed);
    else
        hk_pg_fail(&store->pg, HK_CONFLICT, "this relay's lane was taken over by another");
}

/* At once, so that the caller need not know of it. This call's results stay where they are: a new call takes the other
 * pool, so it is given back. False: nobody knows yet, or the lane is gone. */
static bool resolve_now(struct hk_store *store)
{
    for (int i = 0; i < RESOLVE_TRIES && store->lost.pending; i++) {
        hk_pg_call(&store->pg);
        store->pg.pool ^= 1;
        hk_pg_resolve(store);
        if (store->pg.rc == HK_CONFLICT)
            break;
    }
    return !store->lost.pending;
}

/* ---- the whole ---- */

static bool fans_out_to_nowhere(const struct hk_exchange *x)
{
    for (size_t i = 0; i < x->n_settles; i++)
        if (x->settles[i].kind == HK_SETTLE_FAN_OUT && x->settles[i].n_fan_out == 0)
            return true;
    return false;
}

/* What leaves outbox, but not by being sent. */
static struct hk_pg_rest read_unsealed(struct hk_store *store, const struct exchanging *t)
{
    const struct hk_exchange *x = t->x;
    int64_t *ids = store->options.seal ? hk_pg_alloc(&store->pg, x->n_settles + 1, sizeof *ids) : NULL;
    size_t n = 0;
    for (size_t i = 0; ids && i < x->n_settles; i++) {
        const struct hk_settle *s = &x->settles[i];
        if (t->of[i] && !t->why && s->source == HK_FROM_OUTBOX && s->kind != HK_SETTLE_SENT &&
            s->kind != HK_SETTLE_RELEASE)
            ids[n++] = s->id;
    }
    struct hk_pg_args a = {.n = 0};
    if (!n)
        return (struct hk_pg_rest){.n = 0};
    hk_pg_arg_i64s(&store->pg, &a, ids, n);
    return hk_pg_rest_read(&store->pg, store->options.seal, HK_PG_UNSEALED, &a);
}

/* Everything that the answers need. */
static void prepare(struct hk_store *store, struct exchanging *t)
{
    const struct hk_exchange *x = t->x;
    struct hk_pg *pg = &store->pg;
    load_claims(store, x);
    t->of = hk_pg_alloc(pg, x->n_settles, sizeof(struct hk_manifest *));
    t->fence = hk_pg_alloc(pg, x->n_settles, sizeof *t->fence);
    t->over = hk_pg_alloc(pg, x->n_settles, sizeof *t->over);
    t->sent = hk_pg_alloc(pg, x->n_settles, sizeof *t->sent);
    t->members = hk_pg_alloc(pg, x->n_wants, sizeof *t->members);
    t->done->messages = hk_pg_alloc(pg, x->n_wants, sizeof *t->done->messages);
    t->done->grants = hk_pg_alloc(pg, x->n_quotas, sizeof *t->done->grants);
    t->done->seats = hk_pg_alloc(pg, x->n_seats, sizeof *t->done->seats);
    if (!reserve_lost(&store->lost, store->lost.n_settles + x->n_settles) ||
        !hk_manifests_reserve(&store->claims, x->n_wants))
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    for (size_t i = 0; hk_pg_ok(pg) && i < x->n_settles; i++)
        note_settle(store, t, i);
    choose(store, t);
    look_at_hand(store, t);
    store->rest = read_unsealed(store, t);
}

static enum hk_code lane_is_gone(struct hk_store *store, const struct exchanging *t, struct hk_err *err)
{
    if (store->lane == t->x->lane)
        hk_pg_forget_lane(store);
    hk_manifests_clear(&store->claims);
    store->lost.pending = store->strays = false;
    store->lost.n_settles = 0;
    t->done->claim = 0;
    t->done->n_messages = 0;
    for (size_t i = 0; i < t->x->n_settles; i++)
        t->done->stale[i] = true;
    return hk_err_set(err, HK_CONFLICT, "%s: lane %lld was taken over by another relay", store->pg.url.place,
                      (long long)t->x->lane);
}

/* They were asked for again, and answered. */
static void forget_done(struct hk_pg_lost *lost, const struct hk_exchange *x)
{
    for (size_t i = 0; lost->n_settles && i < x->n_settles; i++) {
        struct hk_pg_settled *one = find_done(lost, &x->settles[i]);
        if (one)
            *one = lost->settles[--lost->n_settles];
    }
}

static enum hk_code committed(struct hk_store *store, const struct exchanging *t)
{
    struct hk_exchanged *done = t->done;
    if (done->n_messages) /* cannot fail: it was reserved */
        (void)hk_manifests_add(&store->claims, done->claim, t->members, done->n_messages);
    hk_manifests_commit(&store->claims);
    forget_done(&store->lost, t->x);
    store->strays = false;
    store->own_change |= t->touched_retry || t->x->n_circuits;
    return HK_OK;
}

static enum hk_code conclude(struct hk_store *store, const struct exchanging *t, enum hk_code rc,
                             struct hk_err *err)
{
    struct hk_pg *pg = &store->pg;
    if (rc == HK_OK) {
        hk_pg_window_wrote(&store->window);
        if (t->marked)
            note_mark(store, t->x->lane, store->number);
        return committed(store, t);
    }
    if ((t->gone || (rc == HK_CONFLICT && !t->refused)) && t->done->stale)
        return lane_is_gone(store, t, err);
    if (!t->began || (!pg->commit_unknown && !pg->committed)) {
        hk_manifests_rollback(&store->claims);
        return rc;
    }
    remember(store, t);
    if (pg->committed)
        found_out(store, true);
    bool known = resolve_now(store);
    if (!known && pg->rc == HK_CONFLICT)
        return lane_is_gone(store, t, err);
    /* Else all of it is asked for again, and what was done is known again. */
    if (!known || !store->lost.committed || !t->renewed || (claims_any(t) && !t->claim_read))
        return rc;
    return committed(store, t);
}

/* On a new connection, to a standby that took over perhaps, we may own less than we think. */
static uint64_t shards_to_claim_from(struct hk_store *store, int64_t lane)
{
    if (lane != store->lane)
        return hk_pg_shards_of(store, lane);
    uint64_t shards = hk_pg_shards(store);
    return store->shards_unsure ? shards & hk_pg_shards_of(store, lane) : shards;
}

/* One transaction. `done->stale` has room for the settles; *out_refused: a constraint or a trigger undid it. */
static enum hk_code run_exchange(struct hk_store *store, const struct hk_exchange *x, const char *why,
                                 struct hk_exchanged *done, bool *out_refused, struct hk_err *err)
{
    struct exchanging t = {.store = store, .x = x, .done = done, .why = why};
    done->claim = 0; /* what was claimed by a transaction that COMMIT refused is not */
    done->n_messages = 0;
    hk_pg_resolve(store);
    bool blocked = !hk_pg_ok(&store->pg);
    uint64_t shards = blocked || !x->n_wants ? 0 : shards_to_claim_from(store, x->lane);
    if (!blocked) {
        prepare(store, &t);
        next_number(store);
        send_all(store, &t, shards);
        hk_pg_read(&store->pg);
    }
    enum hk_code rc = hk_pg_end(&store->pg, "exchange messages", err);
    if (!blocked)
        hk_pg_end_moving(store);
    hk_crash_exchange(x, "bury-committed", "arrive-committed");
    if (blocked && rc != HK_CONFLICT)
        return rc;
    *out_refused = t.refused = rc != HK_OK && t.renewed && hk_pg_is_refusal(&store->pg);
    return conclude(store, &t, rc, err);
}

/* ---- when the database refuses some of it ---- */

/* As if its answer had been lost: should the rest go wrong, who asks for them again is told that they are done. */
static enum hk_code note_apart(struct hk_store *store, const struct hk_exchange *x, struct hk_err *err)
{
    struct hk_pg_lost *lost = &store->lost;
    if (!reserve_lost(lost, lost->n_settles + x->n_settles))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < x->n_settles; i++)
        lost->settles[lost->n_settles++] = (struct hk_pg_settled){
            .claim = x->settles[i].claim, .id = x->settles[i].id, .source = x->settles[i].source};
    return HK_OK;
}

/* It cannot be settled: noted as stuck instead. */
static enum hk_code stick_one(struct hk_store *store, const struct hk_exchange *one, size_t at,
                              struct hk_exchanged *done, struct hk_err *err)
{
    const struct hk_settle *s = one->settles;
    bool refused = false;
    const char *why = hk_pg_why_refused(store);
    if (!why || !hk_stuck_add(&store->stuck, s->source, s->id))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct hk_exchanged some = {.stale = done->stale + at};
    enum hk_code rc = run_exchange(store, one, why, &some, &refused, err);
    if (rc != HK_OK || some.stale[0]) {
        hk_stuck_drop(&store->stuck, s->source, s->id);
        return rc;
    }
    done->stuck[at] = why;
    return note_apart(store, one, err);
}

/* Each half in a transaction by itself, down to the ones that are refused alone. */
static enum hk_code settle_apart(struct hk_store *store, const struct hk_exchange *x, size_t from, size_t n,
                                 struct hk_exchanged *done, struct hk_err *err)
{
    struct hk_exchange part = {
        .lane = x->lane, .lease_ms = x->lease_ms, .settles = x->settles + from, .n_settles = n};
    struct hk_exchanged some = {.stale = done->stale + from};
    bool refused = false;
    hk_pg_go_on(&store->pg);
    enum hk_code rc = run_exchange(store, &part, NULL, &some, &refused, err);
    if (rc == HK_OK)
        return note_apart(store, &part, err);
    if (!refused)
        return rc;
    if (n == 1)
        return stick_one(store, &part, from, done, err);
    rc = settle_apart(store, x, from, n / 2, done, err);
    return rc == HK_OK ? settle_apart(store, x, from + n / 2, n - n / 2, done, err) : rc;
}

enum hk_code hk_pg_settle_apart(struct hk_store *store, const struct hk_settle *settle, bool *out_stale,
                                const char **out_why)
{
    struct hk_exchange x = {
        .lane = store->lane, .lease_ms = store->lease_ms, .settles = settle, .n_settles = 1};
    struct hk_exchanged done = {.stale = out_stale, .stuck = out_why};
    enum hk_code rc = settle_apart(store, &x, 0, 1, &done, NULL);
    forget_done(&store->lost, &x);
    return rc;
}

/* Then all the rest of it. */
static enum hk_code exchange_apart(struct hk_store *store, const struct hk_exchange *x,
                                   struct hk_exchanged *done, struct hk_err *err)
{
    bool refused = false;
    struct hk_exchange rest = *x;
    rest.n_settles = 0;
    hk_pg_go_on(&store->pg);
    done->stuck = hk_pg_alloc(&store->pg, x->n_settles, sizeof *done->stuck);
    if (!done->stuck)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = settle_apart(store, x, 0, x->n_settles, done, err);
    hk_pg_go_on(&store->pg);
    if (rc == HK_OK)
        rc = run_exchange(store, &rest, NULL, done, &refused, err);
    if (rc == HK_OK)
        forget_done(&store->lost, x);
    for (size_t i = 0; rc == HK_CONFLICT && i < x->n_settles; i++)
        done->stale[i] = true;
    return rc;
}

enum hk_code hk_pg_exchange(struct hk_store *store, const struct hk_exchange *x,
                            const struct hk_exchanged **out, struct hk_err *err)
{
    if (fans_out_to_nowhere(x))
        return hk_err_set(err, HK_INVALID,
                          "a message cannot be fanned out to no destination: it would be lost");
    struct hk_exchanged *done = &store->exchanged;
    bool refused = false;
    store->lease_ms = x->lease_ms;
    hk_pg_relay_call(store);
    *done = (struct hk_exchanged){.stale = hk_pg_alloc(&store->pg, x->n_settles, sizeof *done->stale)};
    enum hk_code rc = run_exchange(store, x, NULL, done, &refused, err);
    if (refused && x->n_settles)
        rc = exchange_apart(store, x, done, err);
    if (rc == HK_OK || rc == HK_CONFLICT)
        *out = done;
    if (rc == HK_OK && x->unknown)
        done->definitions = hk_pg_definitions_now(store);
    if (rc == HK_OK && store->stuck.n)
        hk_pg_unstick(store, done->now_ms);
    return rc;
}
