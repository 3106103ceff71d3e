/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: one live relay at a time, and what becomes of what a dead one had in hand. */
#include <stdio.h>

#include "base/ms.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "hk_version.h"
#include "store/clock.h"
#include "store/sqlite/sqlite.h"

/* Is it surely dead? Its lock is in our hands, and it is not we who took it. */
static bool has_died(struct hk_store *store, sqlite3_stmt *q)
{
    return store->lock_tag[0] && sqlite3_column_int64(q, 0) != store->lane &&
           hk_str_eq(hk_sq_text(store, q, 3), hk_str_of(store->lock_tag));
}

/* A lane that lives; false: none. `name` and how long it lives are for the message. */
static bool find_live(struct hk_store *store, int64_t now_ms, char name[HK_SHOW_MAX], int64_t *out_left_ms)
{
    bool found = false;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANES);
    while (!found && hk_sq_row(store, q)) {
        int64_t until_ms = sqlite3_column_int64(q, 2);
        found = until_ms > now_ms && !has_died(store, q);
        if (found) {
            hk_show(hk_sq_text(store, q, 1), name);
            *out_left_ms = until_ms - now_ms;
        }
    }
    hk_sq_done(q);
    return found;
}

enum hk_code hk_sq_lanes_dead(struct hk_store *store, struct hk_lane_watch *watch, uint64_t *lease_ms,
                              struct hk_err *err)
{
    enum hk_code worst = HK_OK;
    int64_t now_ms = hk_sq_now(store);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANES);
    while (worst != HK_CONFLICT && hk_sq_row(store, q)) {
        int64_t lane = sqlite3_column_int64(q, 0), until_ms = sqlite3_column_int64(q, 2);
        struct hk_str relay = hk_sq_text(store, q, 1);
        bool locked =
            store->lock_held && hk_sq_text(store, q, 3).len > 0; /* the kernel says that somebody lives */
        if (has_died(store, q) || (until_ms <= now_ms && !locked))
            continue;
        *lease_ms = hk_lane_lease(*lease_ms, sqlite3_column_int64(q, 4));
        enum hk_code rc =
            locked ? hk_lane_runs(relay, err) : hk_lane_watch(watch, lane, until_ms, *lease_ms, relay, err);
        if (rc != HK_OK)
            worst = rc;
    }
    hk_sq_done(q);
    return worst;
}

static void run_on_lane(struct hk_store *store, enum hk_sq_id id, int64_t lane)
{
    sqlite3_stmt *q = hk_sq_use(store, id);
    hk_sq_bind_i64(store, q, 1, lane);
    hk_sq_run(store, q);
}

/* By destination: what is found in its hands. */
static void note_hand(struct hk_store *store, int64_t lane, struct hk_str relay)
{
    struct hk_taken_over one = {.lane = lane};
    (void)hk_str_copy(one.relay, sizeof one.relay, relay);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANE_HAND);
    hk_sq_bind_i64(store, q, 1, lane);
    bool any = false;
    while (hk_sq_row(store, q)) {
        (void)hk_str_copy(one.destination, sizeof one.destination, hk_sq_text(store, q, 0));
        one.messages = (uint64_t)sqlite3_column_int64(q, 1);
        one.since_ms = sqlite3_column_int64(q, 2);
        hk_takings_add(&store->takings, &one);
        any = true;
    }
    hk_sq_done(q);
    if (!any)
        hk_takings_add(&store->takings, &one);
}

static void add_orphan_attempts(struct hk_store *store, int64_t lane, int64_t now_ms)
{
    if (store->options.history == HK_STORE_HISTORY_NONE)
        return;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_ORPHAN_ATTEMPTS);
    hk_sq_bind_i64(store, q, 1, lane);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_run(store, q);
}

void hk_sq_taken_over(struct hk_store *store, struct hk_takings *out)
{
    *out = store->takings;
    store->takings.n = 0;
}

/* The large payloads of what the lane has claimed of outbox_retry. */
static void set_retries_aside(struct hk_store *store, int64_t lane)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANE_RETRIES);
    hk_sq_bind_i64(store, q, 1, lane);
    while (hk_sq_row(store, q))
        hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_RETRY, sqlite3_column_int64(q, 0)});
    hk_sq_done(q);
}

/* What the lane's manifests still name goes to retry; what they name and is gone was settled. `why` not NULL: some of it cannot
 * go. Then all of it is noted as stuck, and is tried row by row with the first exchange. */
static void take_over(struct hk_store *store, int64_t lane, int64_t now_ms, const char *why)
{
    add_orphan_attempts(store, lane, now_ms);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANE_IDS);
    hk_sq_bind_i64(store, q, 1, lane);
    while (hk_sq_row(store, q)) {
        int64_t id = sqlite3_column_int64(q, 0);
        if (hk_stuck_has(&store->stuck, HK_FROM_OUTBOX, id))
            continue;
        struct hk_settle nothing = {.id = id, .kind = HK_SETTLE_RETRY, .attempt.possibly_delivered = true};
        if (why)
            hk_sq_stick(store, &nothing, now_ms, why);
        else
            hk_sq_orphan(store, id, now_ms);
    }
    hk_sq_done(q);
    set_retries_aside(store, lane);
    q = hk_sq_use(store, HK_SQ_ORPHAN_RETRIES);
    hk_sq_bind_i64(store, q, 1, lane);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_i64(store, q, 3, hk_sq_clock(store));
    hk_sq_run(store, q);
    hk_sq_put_back(store);
    run_on_lane(store, HK_SQ_DROP_LANE_CLAIMS, lane);
    run_on_lane(store, HK_SQ_DROP_LANE, lane);
}

static void take_over_all(struct hk_store *store, int64_t now_ms, const char *why)
{
    for (;;) {
        sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LANES);
        if (!hk_sq_row(store, q))
            return;
        int64_t lane = sqlite3_column_int64(q, 0);
        struct hk_str relay = hk_sq_text(store, q, 1);
        note_hand(store, lane, relay);
        hk_sq_done(q);
        take_over(store, lane, now_ms, why);
    }
}

static int64_t add_lane(struct hk_store *store, const char *name, const char *boot, int64_t now_ms,
                        uint64_t lease_ms)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_ADD_LANE);
    hk_sq_bind_text(store, q, 1, hk_str_of(name));
    hk_sq_bind_text(store, q, 2, hk_str_of(boot));
    hk_sq_bind_text(store, q, 3, hk_str_of(HK_VERSION));
    hk_sq_bind_i64(store, q, 4, now_ms);
    hk_sq_bind_i64(store, q, 5, hk_ms_after(now_ms, lease_ms));
    hk_sq_bind_text(store, q, 6, hk_str_of(store->lock_tag));
    hk_sq_bind_i64(store, q, 7, hk_ms_after(0, lease_ms));
    hk_sq_run(store, q);
    return sqlite3_last_insert_rowid(store->db);
}

static enum hk_code acquire(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                            const char *why, int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err)
{
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    int64_t now_ms = hk_sq_now(store), left_ms = 0;
    char owner[HK_SHOW_MAX];
    bool taken = find_live(store, now_ms, owner, &left_ms);
    if (taken && hk_sq_ok(store)) {
        char left[HK_DURATION_TEXT_MAX];
        hk_format_duration((uint64_t)left_ms, left);
        hk_sq_rollback(store);
        return hk_err_set(err, HK_BUSY, "%s: relay %s holds it, for another %s unless it renews", store->path,
                          owner, left);
    }
    hk_sq_stuck_load(store);
    take_over_all(store, now_ms, why);
    if (why)
        hk_sq_stuck_load(store);
    int64_t lane = add_lane(store, name, boot, now_ms, lease_ms);
    hk_sq_clock_save(store);
    enum hk_code rc = hk_sq_end(store, "acquire a lane", err);
    if (rc != HK_OK) {
        store->takings.n = 0;
        return rc;
    }
    hk_manifests_clear(&store->claims);
    store->own_change = true;
    store->lane = *out_lane = lane;
    *out_now_ms = now_ms;
    return HK_OK;
}

/* An ALTER TABLE may have renamed what every statement names. */
static enum hk_code check_columns(struct hk_store *store, struct hk_err *err)
{
    char lacks[HK_SQ_WHERE_MAX] = "";
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_LACKS);
    if (hk_sq_row(store, q))
        (void)snprintf(lacks, sizeof lacks, "%s", (const char *)sqlite3_column_text(q, 0));
    hk_sq_done(q);
    enum hk_code rc = hk_sq_end(store, "look at its columns", err);
    return rc == HK_OK && lacks[0] ? hk_err_set(err, HK_UNSUPPORTED, "%s: %s", store->path, lacks) : rc;
}

enum hk_code hk_sq_acquire(struct hk_store *store, const char *name, const char *boot, uint64_t lease_ms,
                           int64_t *out_lane, int64_t *out_now_ms, struct hk_err *err)
{
    hk_sq_call(store);
    enum hk_code fit = check_columns(store, err);
    if (fit != HK_OK)
        return fit;
    hk_sq_lock(store); /* before the tables are looked at: who dies afterwards is found the next time */
    enum hk_code rc = acquire(store, name, boot, lease_ms, NULL, out_lane, out_now_ms, err);
    if (rc != HK_OK && rc != HK_BUSY && hk_sq_refused(store)) {
        char why[HK_SQ_WHERE_MAX];
        (void)snprintf(why, sizeof why, "%s", store->where);
        store->rc = SQLITE_OK;
        rc = acquire(store, name, boot, lease_ms, why, out_lane, out_now_ms, err);
    }
    if (rc != HK_OK && !store->lane)
        hk_sq_unlock(store); /* somebody else's turn */
    return rc;
}

enum hk_code hk_sq_release(struct hk_store *store, int64_t lane, struct hk_err *err)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    set_retries_aside(store, lane);
    run_on_lane(store, HK_SQ_FREE_RETRIES, lane);
    hk_sq_put_back(store);
    run_on_lane(store, HK_SQ_DROP_LANE_CLAIMS, lane);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DROP_LANE);
    hk_sq_bind_i64(store, q, 1, lane);
    bool stood = hk_sq_run(store, q) > 0;
    enum hk_code rc = hk_sq_end(store, "release the lane", err);
    if (rc != HK_OK)
        return rc;
    hk_manifests_clear(&store->claims);
    store->own_change = true;
    store->lane = 0;
    hk_sq_unlock(store);
    if (!stood)
        return hk_err_set(err, HK_CONFLICT, "%s: lane %lld was taken over", store->path, (long long)lane);
    return HK_OK;
}
