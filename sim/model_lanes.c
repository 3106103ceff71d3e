/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled store with several live lanes, as PostgreSQL: each lane owns some shards of the messages, shards change hands,
 * rates and probes are drawn from buckets that all share, and a connection may break when an exchange has had its effect
 * and nobody knows. How shards are divided is not modelled: it is src/core/shards.c. */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "core/shards.h"
#include "model_impl.h"

enum {
    UPKEEP_EVERY_MS = 250
};

/* ---- shards ---- */

unsigned hk_model_shard_of(const struct hk_model_msg *msg)
{
    uint32_t hash = 0;
    for (const char *p = msg->key[0] ? msg->key : msg->message_id; *p; p++)
        hash = hash * 31 + (unsigned char)*p;
    return hash % HK_MODEL_SHARDS;
}

void hk_model_free_shards(struct hk_model *model, int64_t lane, uint32_t set)
{
    for (unsigned i = 0; i < HK_MODEL_SHARDS; i++)
        if (model->shards[i] == lane && (set >> i & 1))
            model->shards[i] = 0;
}

static bool is_free(struct hk_model *model, unsigned shard)
{
    return !model->shards[shard] || !hk_model_find_lane(model, model->shards[shard]);
}

static uint32_t owned(const struct hk_model *model, int64_t lane)
{
    uint32_t set = 0;
    for (unsigned i = 0; i < HK_MODEL_SHARDS; i++)
        set |= (uint32_t)(model->shards[i] == lane) << i;
    return set;
}

static uint32_t in_hand(const struct hk_model *model, int64_t lane)
{
    const struct model_rows *tables[] = {&model->outbox, &model->retry};
    uint32_t set = 0;
    for (size_t t = 0; t < 2; t++)
        for (size_t i = 0; i < tables[t]->n; i++) {
            const struct model_row *row = &tables[t]->items[i];
            if (!row->gone && hk_model_claim_of_lane(row->claim, lane))
                set |= 1u << hk_model_shard_of(row->msg);
        }
    return set;
}

static void take(struct hk_model *model, int64_t lane, unsigned n)
{
    for (unsigned i = 0; n && i < HK_MODEL_SHARDS; i++)
        if (is_free(model, i)) {
            model->shards[i] = lane;
            n--;
        }
}

static void share(struct hk_model *model, struct hk_model_handle *handle)
{
    struct hk_shards_plan plan;
    struct hk_shards_view view = {.n_shards = HK_MODEL_SHARDS,
                                  .mine = owned(model, handle->lane),
                                  .leaving = handle->leaving,
                                  .in_hand = in_hand(model, handle->lane)};
    for (size_t i = 0; i < model->lanes.n; i++) {
        view.n_live++;
        view.before += model->lanes.items[i].lane < handle->lane;
    }
    for (unsigned i = 0; i < HK_MODEL_SHARDS; i++)
        view.n_free += is_free(model, i);
    hk_shards_decide(&view, &plan);
    hk_model_free_shards(model, handle->lane, (uint32_t)plan.let_go);
    take(model, handle->lane, plan.take);
    handle->mine = owned(model, handle->lane);
    handle->leaving = (uint32_t)plan.leaving & handle->mine;
    handle->lost = HK_MODEL_ALL_SHARDS & ~(handle->mine & ~handle->leaving);
}

/* ---- lanes ---- */

static void take_over_expired(struct hk_model *model, int64_t self, int64_t now_ms)
{
    for (size_t i = model->lanes.n; i-- > 0;) {
        int64_t lane = model->lanes.items[i].lane;
        if (lane == self || model->lanes.items[i].until_ms > now_ms)
            continue;
        hk_model_take_over(model, lane);
        hk_model_free_shards(model, lane, HK_MODEL_ALL_SHARDS);
        model->lanes.items[i] = model->lanes.items[--model->lanes.n];
        model->version++;
        hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_EXPIRE, .lane = lane});
    }
}

/* A standby that took over may have forgotten the lane, or given its number to another, or forgotten what it did last: then
 * numbers that the relay knows (of rows, of manifests) may mean something else by now. */
static bool is_proven(struct hk_model *model, struct hk_model_handle *handle)
{
    const struct model_lane *lane = hk_model_find_lane(model, handle->lane);
    if (!handle->unproven || !handle->lane)
        return true;
    if (!lane || lane->boot != handle->boot || lane->mark != handle->mark)
        return false;
    handle->unproven = false;
    return true;
}

enum hk_code hk_model_lanes_upkeep(struct hk_model *model, struct hk_model_handle *handle)
{
    int64_t now_ms = hk_model_now(model);
    if (!is_proven(model, handle))
        return HK_CONFLICT;
    if (now_ms < handle->upkeep_at_ms)
        return HK_OK;
    handle->upkeep_at_ms = now_ms + UPKEEP_EVERY_MS;
    if (!hk_model_find_lane(model, handle->lane))
        return HK_CONFLICT;
    take_over_expired(model, handle->lane, now_ms);
    share(model, handle);
    return HK_OK;
}

void hk_model_lanes_acquire(struct hk_model *model, struct hk_model_handle *handle, const char *relay,
                            uint64_t lease_ms, struct hk_model_reply *out)
{
    struct model_lane *lane = hk_model_add_lane(model, relay, lease_ms, out);
    lane->boot = ++model->boots;
    *handle = (struct hk_model_handle){.lane = lane->lane, .boot = lane->boot, .upkeep_at_ms = INT64_MIN};
    (void)hk_model_lanes_upkeep(model, handle);
    handle->lost_at_poll = handle->lost; /* who acquires begins from the first anyway */
}

void hk_model_lanes_release(struct hk_model *model, struct hk_model_handle *handle, int64_t lane,
                            struct hk_model_reply *out)
{
    if (is_proven(model, handle))
        hk_model_release(model, lane, out);
    else
        out->rc = HK_CONFLICT;
}

/* ---- when an answer was lost ---- */

static size_t find_done(const struct hk_model_lost *lost, const struct hk_settle *s)
{
    size_t i = 0;
    while (i < lost->n && (lost->settles[i].claim != s->claim || lost->settles[i].id != s->id ||
                           lost->settles[i].source != s->source))
        i++;
    return i;
}

static void free_stray(struct hk_model *model, struct model_rows *rows, enum hk_source source, int64_t claim)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct model_row *row = &rows->items[i];
        if (row->gone || row->claim != claim)
            continue;
        row->claim = 0;
        hk_model_log_row(model, source, row,
                         (struct hk_event_line){.ev = HK_LOG_SETTLE,
                                                .lane = hk_model_lane_of(claim),
                                                .claim = claim,
                                                .kind = hk_str_of("release"),
                                                .rows = true,
                                                .attempt = row->history.attempts,
                                                .charged = row->history.charged});
    }
}

static void remember(struct hk_model_lost *lost, const struct hk_exchange *x,
                     const struct hk_model_reply *out)
{
    for (size_t i = 0; i < x->n_settles; i++) {
        const struct hk_settle *s = &x->settles[i];
        if (out->exchanged.stale[i] || lost->n == HK_MODEL_LOST)
            continue;
        lost->settles[lost->n].source = s->source;
        lost->settles[lost->n].claim = s->claim;
        lost->settles[lost->n++].id = s->id;
    }
    lost->stray = out->exchanged.claim;
}

/* What was done already is taken out of the question, and its answer put back in. */
static size_t leave_out_done(const struct hk_model_lost *lost, const struct hk_exchange *x,
                             struct hk_settle *rest, size_t *places)
{
    size_t n = 0;
    for (size_t i = 0; i < x->n_settles; i++)
        if (find_done(lost, &x->settles[i]) == lost->n) {
            places[n] = i;
            rest[n++] = x->settles[i];
        }
    return n;
}

static void answer_all(struct hk_model_lost *lost, const struct hk_exchange *x, const size_t *places,
                       size_t n, struct hk_model_reply *out)
{
    bool *stale = hk_model_reply_alloc(out, x->n_settles * sizeof *stale);
    const char **stuck = hk_model_reply_alloc(out, x->n_settles * sizeof *stuck);
    for (size_t i = 0; i < n; i++) {
        stale[places[i]] = out->exchanged.stale[i];
        stuck[places[i]] = out->exchanged.stuck[i];
    }
    out->exchanged.stale = stale;
    out->exchanged.stuck = stuck;
    for (size_t i = 0; i < x->n_settles; i++) {
        size_t at = find_done(lost, &x->settles[i]);
        if (at < lost->n)
            lost->settles[at] = lost->settles[--lost->n];
    }
}

void hk_model_lanes_exchange(struct hk_model *model, struct hk_model_handle *handle,
                             const struct hk_exchange *x, bool lost, struct hk_model_reply *out)
{
    struct hk_model_lost *known = &handle->lost_reply;
    struct hk_exchange rest = *x;
    struct hk_settle *settles = hk_model_reply_alloc(out, x->n_settles * sizeof *settles);
    size_t *places = hk_model_reply_alloc(out, x->n_settles * sizeof *places);
    rest.settles = settles;
    rest.n_settles = leave_out_done(known, x, settles, places);
    if (!is_proven(model, handle)) {
        *known = (struct hk_model_lost){.n = 0};
        out->rc = HK_CONFLICT;
        return;
    }
    if (known->stray && hk_model_find_lane(model, x->lane)) {
        free_stray(model, &model->outbox, HK_FROM_OUTBOX, known->stray);
        free_stray(model, &model->retry, HK_FROM_RETRY, known->stray);
        known->stray = 0;
        model->version++;
    }
    hk_model_exchange(model, handle, &rest, out);
    if (out->rc == HK_OK && (rest.n_settles || rest.n_wants || rest.n_seats))
        hk_model_find_lane(model, x->lane)->mark = ++handle->mark;
    if (out->rc == HK_CONFLICT) {
        *known = (struct hk_model_lost){.n = 0};
    } else if (lost) {
        remember(known, &rest, out);
        hk_model_reply_free(out);
        out->rc = HK_UNAVAILABLE;
    } else {
        answer_all(known, x, places, rest.n_settles, out);
    }
}

/* ---- what relays may do together ---- */

static struct model_bucket *get_bucket(struct hk_model *model, const struct hk_quota *q)
{
    for (size_t i = 0; i < model->buckets.n; i++)
        if (model->buckets.items[i].probe == q->probe &&
            strcmp(model->buckets.items[i].name, q->destination) == 0)
            return &model->buckets.items[i];
    struct model_bucket *b = MODEL_PUSH(model->buckets);
    *b = (struct model_bucket){.probe = q->probe, .tokens = HUGE_VAL, .at_ms = hk_model_now(model)};
    hk_model_text(b->name, hk_str_of(q->destination));
    return b;
}

static struct hk_grant draw(struct hk_model *model, const struct hk_quota *q)
{
    struct model_bucket *b = get_bucket(model, q);
    int64_t now_ms = hk_model_now(model);
    int64_t since_ms = now_ms > b->at_ms ? now_ms - b->at_ms : 0; /* it may have been set back */
    double had = fmin(b->tokens + (double)since_ms * q->rate_per_s / 1000, fmax(q->burst, 1));
    double given = fmin(q->want, floor(had));
    b->tokens = had - given;
    b->at_ms = now_ms;
    return (struct hk_grant){.n = (uint32_t)given,
                             .ready_ms =
                                 now_ms + (int64_t)ceil(fmax(1 - b->tokens, 0) * 1000 / q->rate_per_s)};
}

void hk_model_grant(struct hk_model *model, const struct hk_exchange *x, struct hk_model_reply *out)
{
    out->exchanged.grants = hk_model_reply_alloc(out, x->n_quotas * sizeof *out->exchanged.grants);
    for (size_t i = 0; i < x->n_quotas; i++)
        out->exchanged.grants[i] = draw(model, &x->quotas[i]);
}
