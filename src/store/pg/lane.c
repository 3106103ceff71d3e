/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes, and how they share the shards. Any number of lanes live at once; each owns some of the 64 shards, and only a
 * shard's owner reads, claims and settles its messages. A shard changes hands in two ways: its owner lets go of it, with
 * nothing of it in hand; or the owner's lease has run out and another lane takes everything over that it had. Both leave it
 * free, and whoever has less than its fair share takes it.
 *
 * Every relay does this for itself, now and then, inside poll: there is no leader. */
#include "base/str.h"
#include "core/shards.h"
#include "hk_version.h"
#include "store/pg/store.h"

#define UPKEEP_EVERY_MS 250
#define UPKEEP_BUSY_MS  5000
#define LEASE_MAX_MS    (UINT64_C(1) << 60)
#define ALL             UINT64_MAX

uint64_t hk_pg_shards(const struct hk_store *store)
{
    return store->lane ? store->mine & ~store->leaving : ALL;
}

void hk_pg_forget_lane(struct hk_store *store)
{
    hk_manifests_clear(&store->claims);
    store->lane = store->mark = 0;
    store->mine = store->leaving = 0;
    store->lost.pending = store->strays = false;
    store->lost.n_settles = 0;
    store->own_change = true;
}

/* ---- looking round ---- */

struct view {
    bool stands;             /* our own lane */
    unsigned n_live, before; /* lanes that live, ours included; those of them with a lower id */
    int64_t *expired;
    size_t n_expired;
    uint64_t mine;
    unsigned n_free;
};

static void view_lanes(struct hk_store *store, const PGresult *res, struct view *v)
{
    int n = PQntuples(res);
    v->expired = hk_pg_alloc(&store->pg, (size_t)n + 1, sizeof *v->expired);
    for (int i = 0; v->expired && i < n; i++) {
        int64_t lane = hk_pg_i64(res, i, 0);
        bool ours = lane == store->lane;
        v->stands |= ours;
        if (!ours && hk_pg_bool(res, i, 1)) {
            v->expired[v->n_expired++] = lane;
            continue;
        }
        v->n_live++;
        v->before += lane < store->lane;
    }
}

static bool is_lane(const PGresult *lanes, int64_t lane)
{
    for (int i = 0; i < PQntuples(lanes); i++)
        if (hk_pg_i64(lanes, i, 0) == lane)
            return true;
    return false;
}

static void view_shards(struct hk_store *store, const PGresult *lanes, const PGresult *shards, struct view *v)
{
    for (int i = 0; i < PQntuples(shards); i++) {
        int64_t shard = hk_pg_i64(shards, i, 0), lane = hk_pg_i64(shards, i, 1);
        if (shard < 0 || shard >= HK_PG_SHARDS)
            continue;
        if (lane == store->lane)
            v->mine |= UINT64_C(1) << shard;
        else
            v->n_free += hk_pg_null(shards, i, 1) || !is_lane(lanes, lane);
    }
}

static struct view look(struct hk_store *store)
{
    struct view v = {0};
    struct hk_pg_args a = {0};
    hk_pg_begin(&store->pg, false);
    hk_pg_arg_now(store, &a);
    hk_pg_add(&store->pg, HK_PG_LANES, &a);
    hk_pg_add(&store->pg, HK_PG_SHARDS_OF_ALL, NULL);
    hk_pg_send(&store->pg);
    PGresult *lanes = hk_pg_result(&store->pg), *shards = hk_pg_result(&store->pg);
    if (hk_pg_ok(&store->pg)) {
        view_lanes(store, lanes, &v);
        view_shards(store, lanes, shards, &v);
        if (!v.stands)
            hk_pg_fail(&store->pg, HK_CONFLICT, "this relay's lane was taken over by another");
    }
    PQclear(lanes);
    PQclear(shards);
    return v;
}

/* ---- take-over ---- */

void hk_pg_taken_over(struct hk_store *store, struct hk_takings *out)
{
    *out = store->takings;
    store->takings.n = 0;
}

/* Of a lane that was ours to take: whose it was, and since when it had something in hand. */
static struct hk_taken_over read_taken(const PGresult *res, int64_t lane)
{
    struct hk_taken_over one = {.lane = lane, .since_ms = hk_pg_i64(res, 0, 1)};
    (void)hk_str_copy(one.relay, sizeof one.relay, hk_str_of(PQgetvalue(res, 0, 0)));
    return one;
}

/* Rows that were orphaned, by destination. */
static void read_orphans(const PGresult *res, struct hk_taken_over one, struct hk_takings *out)
{
    for (int i = 0; i < PQntuples(res); i++) {
        (void)hk_str_copy(one.destination, sizeof one.destination, hk_str_of(PQgetvalue(res, i, 0)));
        one.messages = (uint64_t)hk_pg_i64(res, i, 1);
        hk_takings_add(out, &one);
    }
}

static void keep_answer(void *arg, PGresult *res)
{
    PGresult **to = arg;
    *to = res;
}

/* `why` not NULL: some of what the lane has in hand cannot go to retry. Then all of it is noted as stuck, and is tried row by row
 * with the next exchange. */
static bool take_over(struct hk_store *store, int64_t lane, const char *why)
{
    static const enum hk_pg_id rest[] = {HK_PG_DROP_ORPHANED_CLAIMS, HK_PG_FREE_ORPHANED_SHARDS,
                                         HK_PG_DROP_ORPHANED_LANE};
    struct hk_pg_args a = {0};
    PGresult *res = NULL, *fresh = NULL, *retries = NULL;
    hk_pg_arg_i64(&store->pg, &a, lane);
    struct hk_pg_rest sealed =
        hk_pg_rest_read(&store->pg, why ? NULL : store->options.seal, HK_PG_UNSEALED_OF_LANE, &a);
    hk_pg_begin_moving(store);
    hk_pg_arg_i64(&store->pg, &a, store->lane);
    struct hk_pg_args with_now = a;
    hk_pg_arg_now(store, &with_now);
    hk_pg_add_read(&store->pg, HK_PG_TAKE_OVER, &with_now, keep_answer, &res);
    hk_pg_arg_bool(&store->pg, &with_now, store->options.history != HK_STORE_HISTORY_NONE);
    struct hk_pg_args with_why = with_now;
    if (why)
        hk_pg_arg_text(&store->pg, &with_why, hk_str_of(why));
    else
        hk_pg_arg_rest(&store->pg, &with_why, &sealed);
    hk_pg_add_read(&store->pg, why ? HK_PG_STICK_ORPHANS : HK_PG_ORPHANS, &with_why, keep_answer, &fresh);
    hk_pg_add_read(&store->pg, HK_PG_ORPHAN_RETRIES, &with_now, keep_answer, &retries);
    for (size_t i = 0; i < sizeof rest / sizeof rest[0]; i++)
        hk_pg_add(&store->pg, rest[i], &a);
    hk_pg_send(&store->pg);
    hk_pg_read(&store->pg);
    bool taken = hk_pg_ok(&store->pg) && PQntuples(res) > 0;
    struct hk_takings found = {.n = 0};
    if (taken) {
        struct hk_taken_over one = read_taken(res, lane);
        read_orphans(fresh, one, &found);
        read_orphans(retries, one, &found);
        if (!found.n)
            hk_takings_add(&found, &one);
    }
    PQclear(res);
    PQclear(fresh);
    PQclear(retries);
    enum hk_code rc = hk_pg_end(&store->pg, "take a lane over", NULL);
    hk_pg_end_moving(store);
    if (rc != HK_OK)
        return false;
    if (why) {
        store->stuck_stale = true;
        store->stuck.retry_at_ms = INT64_MIN;
    }
    for (size_t i = 0; i < found.n; i++)
        hk_takings_add(&store->takings, &found.items[i]);
    if (taken)
        hk_pg_window_wrote(&store->window);
    store->own_change |= taken;
    return taken;
}

/* A relay that is stopped between two parts of a long pipeline leaves a session that holds the lane's row and waits for
 * the rest. No time-out of the server's counts there, and its connection lives as long as the process does. What it has
 * begun is undone, as if the connection had broken. */
static void evict(struct hk_store *store, int64_t lane)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, lane);
    hk_pg_arg_now(store, &a);
    PQclear(hk_pg_query(&store->pg, false, HK_PG_EVICT, &a));
    (void)hk_pg_end(&store->pg, "end a session that waits", NULL);
}

/* Somebody may hold a row of it in an open transaction: that is tried again later, and nobody waits for it. */
static bool take_over_all(struct hk_store *store, const struct view *v)
{
    bool taken = false;
    for (size_t i = 0; i < v->n_expired && hk_pg_ok(&store->pg); i++) {
        bool got = take_over(store, v->expired[i], NULL);
        if (hk_pg_is_refusal(&store->pg)) {
            const char *why = hk_pg_why_refused(store);
            got = why && take_over(store, v->expired[i], why);
        }
        if (!got && hk_pg_ok(&store->pg))
            evict(store, v->expired[i]);
        taken |= got;
        if (store->pg.rc == HK_BUSY) {
            store->pg.rc = HK_OK;
            store->pg.sqlstate[0] = '\0';
            store->upkeep_at_ms += UPKEEP_BUSY_MS;
        }
    }
    return taken;
}

/* ---- sharing ---- */

static uint64_t shards_in_hand(const struct hk_store *store)
{
    uint64_t set = 0;
    for (size_t i = 0; i < store->claims.n; i++) {
        const struct hk_manifest *claim = &store->claims.items[i];
        for (size_t k = 0; k < claim->n_members; k++)
            if (claim->members[k].state != HK_MEMBER_SETTLED)
                set |= UINT64_C(1) << claim->members[k].shard;
    }
    return set;
}

static void let_go(struct hk_store *store, uint64_t ready)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, store->lane);
    hk_pg_arg_i64(&store->pg, &a, (int64_t)ready);
    store->shards_unsure = true; /* until we know that they are gone */
    PGresult *res = hk_pg_query(&store->pg, true, HK_PG_FREE_SHARDS, &a);
    bool wrote = hk_pg_touched(res) > 0;
    PQclear(res);
    if (hk_pg_end(&store->pg, "free shards", NULL) != HK_OK)
        return;
    store->shards_unsure = false;
    if (wrote)
        hk_pg_window_wrote(&store->window);
    store->mine &= ~ready;
    store->leaving &= ~ready;
}

/* More of the outbox is ours: what was passed over while it was another's must be read now. */
static void begin_anew(struct hk_store *store)
{
    hk_pg_window_restart(&store->window);
    hk_pg_pages_drop(&store->pages, store->pg.pool);
    store->reset_due = store->own_change = true;
    store->stuck_stale = true; /* of which another relay may have found some */
}

static void take(struct hk_store *store, unsigned n)
{
    struct hk_pg_args a = {0};
    hk_pg_begin(&store->pg, true);
    hk_pg_arg_i64(&store->pg, &a, store->lane);
    hk_pg_add(&store->pg, HK_PG_HOLD_LANE, &a); /* it must not be taken over while it takes */
    hk_pg_arg_i64(&store->pg, &a, n);
    hk_pg_add(&store->pg, HK_PG_TAKE_SHARDS, &a);
    hk_pg_send(&store->pg);
    PGresult *held = hk_pg_result(&store->pg), *res = hk_pg_result(&store->pg);
    bool wrote = hk_pg_ok(&store->pg) && PQntuples(held) > 0;
    PQclear(held);
    uint64_t taken = 0;
    for (int i = 0; hk_pg_ok(&store->pg) && i < PQntuples(res); i++)
        taken |= UINT64_C(1) << (hk_pg_i64(res, i, 0) & (HK_PG_SHARDS - 1));
    PQclear(res);
    store->shards_unsure = true;
    if (hk_pg_end(&store->pg, "take shards", NULL) != HK_OK)
        return;
    store->shards_unsure = false;
    if (wrote)
        hk_pg_window_wrote(&store->window);
    store->mine |= taken;
    if (taken)
        begin_anew(store);
}

static void share(struct hk_store *store, const struct view *v)
{
    struct hk_shards_plan plan;
    struct hk_shards_view view = {.n_shards = HK_PG_SHARDS,
                                  .n_live = v->n_live,
                                  .before = v->before,
                                  .n_free = v->n_free,
                                  .mine = store->mine,
                                  .leaving = store->leaving,
                                  .in_hand = shards_in_hand(store)};
    hk_shards_decide(&view, &plan);
    store->leaving = plan.leaving;
    if (plan.stay)
        begin_anew(store);
    if (plan.let_go)
        let_go(store, plan.let_go);
    else if (plan.take)
        take(store, plan.take);
}

static void learn_shards(struct hk_store *store, uint64_t mine)
{
    bool gained = mine & ~store->mine;
    store->mine = mine;
    store->leaving &= mine;
    store->shards_unsure = false;
    if (gained)
        begin_anew(store);
}

/* A lane that nobody knows would have its share of the shards until its lease ends. Again and again, since what was on its way
 * when the connection broke may come through late. */
static void drop_lost_lanes(struct hk_store *store)
{
    if (hk_pg_monotonic_us() / 1000 >= store->lost_lane_until_ms)
        return;
    struct hk_pg_args a = {0};
    hk_pg_arg_text(&store->pg, &a, hk_str_of(store->boot));
    hk_pg_arg_i64(&store->pg, &a, store->lane);
    PQclear(hk_pg_query(&store->pg, true, HK_PG_DROP_LOST_LANES, &a));
    (void)hk_pg_end(&store->pg, "drop a lane", NULL);
}

void hk_pg_upkeep(struct hk_store *store)
{
    uint32_t late_ms;
    int64_t now_ms = hk_pg_reckon(store, &late_ms);
    if (!store->lane || !hk_pg_ok(&store->pg) || store->lost.pending || now_ms < store->upkeep_at_ms)
        return;
    store->upkeep_at_ms = now_ms + UPKEEP_EVERY_MS;
    drop_lost_lanes(store);
    struct view v = look(store);
    if (hk_pg_ok(&store->pg) && take_over_all(store, &v) && hk_pg_ok(&store->pg))
        v = look(store);
    if (!hk_pg_ok(&store->pg)) {
        store->upkeep_at_ms = INT64_MIN;
        return;
    }
    learn_shards(store, v.mine);
    share(store, &v);
    if (store->stuck_stale)
        hk_pg_stuck_load(store);
    if (store->shards_unsure || store->stuck_stale)
        store->upkeep_at_ms = INT64_MIN;
}

uint64_t hk_pg_shards_of(struct hk_store *store, int64_t lane)
{
    uint64_t set = 0;
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_SHARDS_OF_ALL, NULL);
    for (int i = 0; hk_pg_ok(&store->pg) && i < PQntuples(res); i++)
        if (hk_pg_i64(res, i, 1) == lane)
            set |= UINT64_C(1) << (hk_pg_i64(res, i, 0) & (HK_PG_SHARDS - 1));
    PQclear(res);
    return set;
}

/* ---- acquire and release ---- */

/* What the reader rests on (window.h). An ALTER TABLE may have undone it. */
static void check_outbox(struct hk_store *store)
{
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_CHECK_OUTBOX, NULL);
    if (hk_pg_ok(&store->pg) && (PQntuples(res) != 1 || !hk_pg_bool(res, 0, 0)))
        hk_pg_fail(&store->pg, HK_UNSUPPORTED,
                   "the table outbox was changed: its column xid must stand before id and default to "
                   "pg_current_xact_id(), and the sequence of its ids must not be cached");
    PQclear(res);
    res = hk_pg_ok(&store->pg) ? hk_pg_query(&store->pg, false, HK_PG_CHECK_SHAPE, NULL) : NULL;
    if (hk_pg_ok(&store->pg) && PQntuples(res) > 0)
        hk_pg_fail(&store->pg, HK_UNSUPPORTED, PQgetvalue(res, 0, 0));
    PQclear(res);
}

static int64_t add_lane(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                        int64_t *out_now_ms)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_text(&store->pg, &a, hk_str_of(name));
    hk_pg_arg_text(&store->pg, &a, hk_str_of(boot));
    hk_pg_arg_text(&store->pg, &a, hk_str_of(HK_VERSION));
    hk_pg_arg_u64(&store->pg, &a, lease_ms < LEASE_MAX_MS ? lease_ms : LEASE_MAX_MS);
    PGresult *res = hk_pg_query(&store->pg, true, HK_PG_ADD_LANE, &a);
    int64_t lane = hk_pg_ok(&store->pg) ? hk_pg_i64(res, 0, 0) : 0;
    *out_now_ms = hk_pg_ok(&store->pg) ? hk_pg_told(store, hk_pg_i64(res, 0, 1)) : 0;
    PQclear(res);
    return hk_pg_end(&store->pg, "add a lane", NULL) == HK_OK ? lane : 0;
}

static void note_lost_lane(struct hk_store *store, uint64_t lease_ms)
{
    if (store->boot[0])
        store->lost_lane_until_ms =
            hk_pg_monotonic_us() / 1000 + (int64_t)(lease_ms < LEASE_MAX_MS ? lease_ms : LEASE_MAX_MS);
}

/* Manifests go before the lane: they refer to it. True: it stood. */
static bool drop_lane(struct hk_store *store, int64_t lane)
{
    struct hk_pg_args a = {0};
    hk_pg_begin(&store->pg, true);
    hk_pg_arg_i64(&store->pg, &a, lane);
    hk_pg_add(&store->pg, HK_PG_HOLD_LANE, &a);
    hk_pg_add(&store->pg, HK_PG_FREE_RETRIES, &a);
    hk_pg_add(&store->pg, HK_PG_DROP_LANE_CLAIMS, &a);
    hk_pg_add(&store->pg, HK_PG_DROP_LANE, &a);
    hk_pg_arg_i64(&store->pg, &a, (int64_t)ALL);
    hk_pg_add(&store->pg, HK_PG_FREE_SHARDS, &a);
    hk_pg_send(&store->pg);
    PGresult *res = hk_pg_result(&store->pg);
    bool stood = hk_pg_ok(&store->pg) && PQntuples(res) > 0;
    PQclear(res);
    return stood;
}

static bool give_up_lane(struct hk_store *store, int64_t lane)
{
    hk_pg_relay_call(store);
    drop_lane(store, lane);
    return hk_pg_end(&store->pg, "drop a lane", NULL) == HK_OK;
}

enum hk_code hk_pg_acquire(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                           int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err)
{
    int64_t now_ms = 0;
    if (!hk_str_copy(store->boot, sizeof store->boot, hk_str_of(boot)))
        store->boot[0] = '\0';
    hk_pg_forget_lane(store);
    hk_pg_relay_call(store);
    store->pg.high_ms = store->pg.wall_ms =
        0; /* a lane begins with the server's time, also where ours was ahead */
    check_outbox(store);
    int64_t lane = add_lane(store, name, boot, lease_ms, &now_ms);
    if (!lane && (store->pg.commit_unknown || store->pg.committed))
        note_lost_lane(store, lease_ms);
    store->lane = lane;
    store->upkeep_at_ms = INT64_MIN;
    store->stuck_stale = true;
    hk_pg_upkeep(store);
    enum hk_code rc = hk_pg_end(&store->pg, "acquire a lane", err);
    if (rc != HK_OK) {
        hk_pg_forget_lane(store);
        if (lane && !give_up_lane(store, lane))
            note_lost_lane(store, lease_ms);
        return rc;
    }
    store->reset_due = store->polled = false; /* whoever acquires begins from the first anyway */
    *out_lane = lane;
    *out_now_ms = now_ms;
    return HK_OK;
}

/* A server that took over from behind may have given the number to another. */
static bool is_ours(struct hk_store *store, int64_t lane)
{
    struct hk_pg_args a = {0};
    if (lane != store->lane || !store->boot[0])
        return true; /* nobody knows */
    hk_pg_arg_i64(&store->pg, &a, lane);
    hk_pg_arg_text(&store->pg, &a, hk_str_of(store->boot));
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_IS_OUR_LANE, &a);
    bool yes = !hk_pg_ok(&store->pg) || PQntuples(res) > 0;
    PQclear(res);
    return yes;
}

enum hk_code hk_pg_release(struct hk_store *store, int64_t lane, struct hk_err *err)
{
    hk_pg_relay_call(store);
    bool stood = is_ours(store, lane) && drop_lane(store, lane);
    enum hk_code rc = hk_pg_end(&store->pg, "release the lane", err);
    if (rc != HK_OK)
        return rc;
    hk_pg_forget_lane(store);
    if (!stood)
        return hk_err_set(err, HK_CONFLICT, "%s: lane %lld was taken over", store->pg.url.place,
                          (long long)lane);
    return HK_OK;
}
