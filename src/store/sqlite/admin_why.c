/* SPDX-License-Identifier: Apache-2.0 */
/* What keeps messages from going out, in SQLite: how many wait behind the head of their key, and what a relay would find that
 * looked at one of them. The rules of order are the engine's (engine_choose.c): a fresh message waits for retry rows of its
 * key that were not merely deferred and, where these block, for open dead letters; a retry row waits for those before it. */
#include <string.h>

#include "base/str.h"
#include "store/sqlite/admin.h"

enum {
    WHY_TEXT_MAX = 4096
};

#define KEYED "message_key IS NOT NULL AND message_key <> ''"

/* ---- how many ---- */

/* For samples: of outbox, and of retry rows. */
#define BEHIND(table)                                                                                        \
    "EXISTS (SELECT 1 FROM outbox_retry k WHERE k.destination = " table ".destination "                      \
    "AND k.message_key = " table ".message_key AND k.deferred = 0)"
#define BEHIND_DEAD                                                                                          \
    "EXISTS (SELECT 1 FROM dead_letters k WHERE k.destination = outbox.destination "                         \
    "AND k.message_key = outbox.message_key AND (k.status = 'failed' OR k.sending_at IS NOT NULL))"
#define SECOND                                                                                               \
    "EXISTS (SELECT 1 FROM outbox_retry k WHERE k.destination = outbox_retry.destination "                   \
    "AND k.message_key = outbox_retry.message_key AND k.deferred = 0 AND k.id < outbox_retry.id)"

static int64_t count_one(struct hk_store *store, const char *sql, const struct hk_blocking *b, int64_t limit)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_cstr(store, q, 1, b->destination);
    hk_sq_bind_i64(store, q, 2, limit);
    hk_sq_bind_i64(store, q, 3, !b->skip_dead);
    hk_sq_bind_i64(store, q, 4, hk_sq_now(store));
    int64_t n = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return n;
}

/* Are there so few heads, and rows behind them, that all can be counted? */
static bool count_all(struct hk_store *store, struct hk_blocking *items, size_t n, bool exact)
{
    int64_t most = exact ? INT64_MAX - 1 : HK_COUNT_EXACT, heads = 0, found = 0;
    for (size_t i = 0; i < n && heads <= most && !exact; i++)
        heads += count_one(store, hk_sa_texts[HK_SA_COUNT_HEADS], &items[i], most + 1 - heads);
    for (size_t i = 0; i < n && heads <= most && found <= most; i++) {
        int64_t here = count_one(store, hk_sa_texts[HK_SA_COUNT_BLOCKED], &items[i], most + 1 - found);
        here += count_one(store, hk_sa_texts[HK_SA_COUNT_BLOCKED_RETRIES], &items[i], most + 1);
        items[i].n = (struct hk_count){(uint64_t)here, false};
        found += here;
    }
    return heads <= most && found <= most;
}

/* ---- about how many ---- */

struct sampled {
    struct hk_blocking *items;
    size_t n;
    bool skip_dead; /* only those that do */
    double *found;
};

static void add_sample(void *arg, sqlite3_stmt *q)
{
    struct sampled *s = arg;
    const char *name = (const char *)sqlite3_column_text(q, 0);
    for (size_t i = 0; name && i < s->n; i++)
        if (s->items[i].skip_dead == s->skip_dead && strcmp(name, s->items[i].destination) == 0)
            s->found[i] += (double)sqlite3_column_int64(q, 1);
}

static void add_estimate(struct hk_store *store, const char *table, const char *condition, struct sampled *s)
{
    memset(s->found, 0, s->n * sizeof *s->found);
    double factor = hk_sa_sample(store, table, condition, "0", add_sample, s);
    for (size_t i = 0; i < s->n; i++)
        if (s->found[i] * factor < 1e18)
            s->items[i].n.n += (uint64_t)(s->found[i] * factor);
}

static void estimate(struct hk_store *store, struct hk_blocking *items, size_t n)
{
    struct sampled s = {items, n, false, hk_sq_alloc(store, n, sizeof *s.found)};
    bool skips = false;
    if (!s.found)
        return;
    for (size_t i = 0; i < n; i++) {
        items[i].n = (struct hk_count){0, true};
        skips |= items[i].skip_dead;
    }
    add_estimate(store, "outbox", KEYED " AND (" BEHIND("outbox") " OR " BEHIND_DEAD ")", &s);
    add_estimate(store, "outbox_retry", KEYED " AND claim IS NULL AND " SECOND, &s);
    s.skip_dead = true;
    if (!skips)
        return;
    add_estimate(store, "outbox", KEYED " AND " BEHIND("outbox"), &s);
    add_estimate(store, "outbox_retry", KEYED " AND claim IS NULL AND " SECOND, &s);
}

enum hk_code hk_sa_blocked(struct hk_admin *admin, struct hk_blocking *items, size_t n, bool exact,
                           struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    if (!count_all(store, items, n, exact) && hk_sq_ok(store))
        estimate(store, items, n);
    return hk_sq_end(store, "count what is blocked", err);
}

/* ---- why ---- */

static void read_destination(struct hk_store *store, const char *name, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_WHY_DESTINATION]);
    hk_sq_bind_cstr(store, q, 1, name);
    if (hk_sq_row(store, q)) {
        out->paused = sqlite3_column_int(q, 0) != 0;
        out->actor = hk_sa_text(store, q, 1, WHY_TEXT_MAX);
        out->reason = hk_sa_text(store, q, 2, WHY_TEXT_MAX);
        out->since_ms = sqlite3_column_int64(q, 3);
        out->open_until_ms = sqlite3_column_int64(q, 4);
    }
    sqlite3_finalize(q);
}

static void read_running(struct hk_store *store, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_RELAYS_RUNNING]);
    hk_sq_bind_i64(store, q, 1, out->now_ms);
    if (hk_sq_row(store, q))
        out->relays_running = hk_sa_u32(q, 0);
    sqlite3_finalize(q);
}

static void read_lane(struct hk_store *store, const struct hk_why_ask *ask, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, ask->place == HK_IN_RETRY ? hk_sa_texts[HK_SA_WHY_LANE_RETRY]
                                                                     : hk_sa_texts[HK_SA_WHY_LANE]);
    hk_sq_bind_i64(store, q, 1, ask->id);
    if (hk_sq_row(store, q)) {
        out->lane = sqlite3_column_int64(q, 0);
        out->claimed_ms = sqlite3_column_int64(q, 1);
        out->until_ms = sqlite3_column_int64(q, 2);
        out->relay = hk_sa_text(store, q, 3, WHY_TEXT_MAX);
    }
    sqlite3_finalize(q);
}

/* Is there a head by this statement? ?1 destination, ?2 key, ?3 the row's id: id, message_id, state, due */
static bool is_head(struct hk_store *store, const char *sql, enum hk_place place,
                    const struct hk_why_ask *ask, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_cstr(store, q, 1, ask->destination);
    hk_sq_bind_text(store, q, 2, ask->key);
    if (q && sqlite3_bind_parameter_count(q) >= 3)
        hk_sq_bind_i64(store, q, 3, ask->id);
    bool found = hk_sq_row(store, q);
    if (found) {
        out->head_place = place;
        out->head_id = sqlite3_column_int64(q, 0);
        out->head_message_id = hk_sa_text(store, q, 1, WHY_TEXT_MAX);
        out->head = (enum hk_state)sqlite3_column_int(q, 2);
        out->head_due_ms = sqlite3_column_int64(q, 3);
    }
    sqlite3_finalize(q);
    return found;
}

_Static_assert(HK_PENDING == 1 && HK_PROCESSING == 2 && HK_RETRYING == 3 && HK_STATE_DEAD == 5,
               "the numbers stand in the statements");

/* A dead head first: it needs a person. What is in flight last: it goes by itself. */
static void read_head(struct hk_store *store, const struct hk_why_ask *ask, struct hk_why *out)
{
    bool retry = ask->place == HK_IN_RETRY, holds = false;
    if (retry) {
        sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_HOLDS_ITS_KEY]);
        hk_sq_bind_i64(store, q, 1, ask->id);
        holds = hk_sq_row(store, q);
        sqlite3_finalize(q);
    }
    if (!holds && !ask->skip_dead && is_head(store, hk_sa_texts[HK_SA_HEAD_DEAD], HK_IN_DEAD, ask, out))
        return;
    if (is_head(store, holds ? hk_sa_texts[HK_SA_HEAD_HOLDS_BEFORE] : hk_sa_texts[HK_SA_HEAD_HOLDS],
                HK_IN_RETRY, ask, out) ||
        is_head(store, retry ? hk_sa_texts[HK_SA_HEAD_CLAIMED_OTHER] : hk_sa_texts[HK_SA_HEAD_CLAIMED],
                HK_IN_RETRY, ask, out))
        return;
    (void)is_head(store, retry ? hk_sa_texts[HK_SA_HEAD_IN_FLIGHT] : hk_sa_texts[HK_SA_HEAD_BEFORE],
                  HK_IN_OUTBOX, ask, out);
}

static void read_ahead(struct hk_store *store, const struct hk_why_ask *ask, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_COUNT_AHEAD]);
    hk_sq_bind_cstr(store, q, 1, ask->destination);
    hk_sq_bind_i64(store, q, 2, ask->id);
    hk_sq_bind_i64(store, q, 3, HK_COUNT_EXACT + 1);
    if (hk_sq_row(store, q))
        out->ahead.n = (uint64_t)sqlite3_column_int64(q, 0);
    out->ahead.about = out->ahead.n > HK_COUNT_EXACT;
    sqlite3_finalize(q);
}

static void read_stuck(struct hk_store *store, const struct hk_why_ask *ask, struct hk_why *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_WHY_STUCK]);
    hk_sq_bind_i64(store, q, 1, ask->place == HK_IN_RETRY);
    hk_sq_bind_i64(store, q, 2, ask->id);
    if (hk_sq_row(store, q)) {
        out->stuck_ms = sqlite3_column_int64(q, 0);
        out->stuck_delivered = sqlite3_column_int(q, 1) != 0;
        out->stuck_error = hk_sa_text(store, q, 2, WHY_TEXT_MAX);
    }
    sqlite3_finalize(q);
}

enum hk_code hk_sa_why(struct hk_admin *admin, const struct hk_why_ask *ask, const struct hk_why **out,
                       struct hk_err *err)
{
    struct hk_store *store = admin->store;
    const struct hk_str none = {"", 0};
    admin->why = (struct hk_why){.actor = none,
                                 .reason = none,
                                 .relay = none,
                                 .owner = none,
                                 .head_message_id = none,
                                 .stuck_error = none};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    admin->why.now_ms = hk_sq_now(store);
    read_destination(store, ask->destination, &admin->why);
    read_running(store, &admin->why);
    read_lane(store, ask, &admin->why);
    read_stuck(store, ask, &admin->why);
    if (ask->key.len > 0)
        read_head(store, ask, &admin->why);
    if (ask->place == HK_IN_OUTBOX)
        read_ahead(store, ask, &admin->why);
    enum hk_code rc = hk_sq_end(store, "look what a message waits for", err);
    if (rc == HK_OK)
        *out = &admin->why;
    return rc;
}
