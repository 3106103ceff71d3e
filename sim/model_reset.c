/* SPDX-License-Identifier: Apache-2.0 */
/* An operator sets the store's time back to the clock, which was ahead once: the rules of src/store/clock.h, on the modelled tables. */
#include "base/str.h"
#include "model_impl.h"

enum {
    IN_STEP_MS = 2000
};

static bool is_ahead(int64_t ms, int64_t clock_ms)
{
    return ms > clock_ms + IN_STEP_MS;
}

static int64_t at_most(int64_t ms, int64_t clock_ms)
{
    return ms > clock_ms ? clock_ms : ms;
}

/* ---- is every relay dead? ---- */

static struct hk_model_watched *find_watched(struct hk_model_watch *watch, const struct model_lane *lane,
                                             int64_t now_ms)
{
    for (size_t i = 0; i < watch->n; i++)
        if (watch->items[i].lane == lane->lane)
            return &watch->items[i];
    if (watch->n == HK_MODEL_WATCHED)
        return NULL;
    struct hk_model_watched *w = &watch->items[watch->n++];
    *w = (struct hk_model_watched){.lane = lane->lane, .sign = lane->sign, .since_ms = now_ms};
    return w;
}

/* Has nothing been heard of it for as long as its lease lasts, and the operator's? */
static bool is_silent(struct hk_model_watch *watch, const struct model_lane *lane, uint64_t lease_ms,
                      int64_t now_ms)
{
    struct hk_model_watched *w = find_watched(watch, lane, now_ms);
    uint64_t longest_ms = lane->lease_ms > lease_ms ? lane->lease_ms : lease_ms;
    if (!w || w->sign != lane->sign)
        return false;
    return (uint64_t)(now_ms - w->since_ms) >= longest_ms;
}

bool hk_model_may_reset(struct hk_model *model, struct hk_model_watch *watch, uint64_t lease_ms, bool locks,
                        int64_t now_ms)
{
    int64_t by_ms = model->options.many ? hk_model_clock(model) : hk_model_now(model);
    bool all = true;
    for (size_t i = 0; i < model->lanes.n; i++) {
        const struct model_lane *lane = &model->lanes.items[i];
        if (lane->dead || (lane->until_ms <= by_ms && !locks))
            continue;
        if (locks || !is_silent(watch, lane, lease_ms, now_ms))
            all = false;
    }
    return all;
}

bool hk_model_in_step(const struct hk_model *model)
{
    return !is_ahead(hk_model_now(model), hk_model_clock(model));
}

/* ---- mending ---- */

/* Due without any wait, though not now. */
static bool goes_at_once(const struct model_row *row)
{
    return !row->deferred && (!row->history.attempts || row->crashes || row->given_back);
}

static void mend_row(struct model_row *row, int64_t clock_ms)
{
    int64_t by_ms = row->last_attempt_ms - clock_ms;
    bool tried_wrong = is_ahead(row->last_attempt_ms, clock_ms);
    bool early = row->life == 1 && !row->deferred && row->msg->not_before_ms > clock_ms;
    row->history.first_attempt_ms = at_most(row->history.first_attempt_ms, clock_ms);
    row->first_failed_ms = at_most(row->first_failed_ms, clock_ms);
    if (tried_wrong) {
        int64_t due_ms = row->due_ms - by_ms < clock_ms ? clock_ms : row->due_ms - by_ms;
        row->due_ms = row->deferred ? row->due_ms : due_ms;
        row->last_attempt_ms = clock_ms;
    }
    if (goes_at_once(row) && row->due_ms > clock_ms && (tried_wrong || is_ahead(row->due_ms, clock_ms)))
        row->due_ms = clock_ms; /* a wrong clock may have said so after its last attempt */
    if (early) {                /* the wrong clock took it for due */
        bool waits = !goes_at_once(row) && row->due_ms > row->msg->not_before_ms;
        row->due_ms = waits ? row->due_ms : row->msg->not_before_ms;
        row->deferred = true;
    }
}

static void mend_breaker(struct model_pause *p, int64_t clock_ms, int64_t mark_ms)
{
    int64_t left_ms = p->open_until_ms > mark_ms ? p->open_until_ms - mark_ms : 0;
    if (is_ahead(p->open_until_ms, clock_ms))
        p->open_until_ms = clock_ms + left_ms;
    p->since_ms = at_most(p->since_ms, clock_ms);
}

/* Whoever has a lane is dead or asleep: it has ended. */
static void end_lanes(struct hk_model *model, int64_t clock_ms)
{
    for (size_t i = 0; i < model->lanes.n; i++) {
        model->lanes.items[i].until_ms = at_most(model->lanes.items[i].until_ms, clock_ms);
        model->lanes.items[i].ended = true;
    }
}

/* Transactions that go on began earlier, by the new time: the log tells when. */
static void set_transactions_back(struct hk_model *model, int64_t by_ms)
{
    for (size_t i = 0; i < model->outbox.n; i++)
        if (!model->outbox.items[i].visible && !model->outbox.items[i].gone)
            model->outbox.items[i].began_ms -= by_ms;
}

void hk_model_reset(struct hk_model *model, int64_t mark_ms)
{
    int64_t clock_ms = hk_model_clock(model);
    set_transactions_back(model, mark_ms - clock_ms);
    for (size_t i = 0; i < model->retry.n; i++)
        if (!model->retry.items[i].gone)
            mend_row(&model->retry.items[i], clock_ms);
    for (size_t i = 0; i < model->paused.n; i++)
        mend_breaker(&model->paused.items[i], clock_ms, mark_ms);
    for (size_t i = 0; i < model->jobs.n; i++) {
        struct model_job *job = &model->jobs.items[i];
        job->facts.started_ms = at_most(job->facts.started_ms, clock_ms);
        job->facts.tokens_ms = at_most(job->facts.tokens_ms, clock_ms);
        job->wake_ms = at_most(job->wake_ms, clock_ms);
    }
    end_lanes(model, clock_ms);
    model->version++;
    model->acts++;
    hk_model_audit(model, "clock-reset", "", "", "operator");
    hk_model_log(model, (struct hk_event_line){
                            .ev = HK_LOG_RESET, .actor = hk_str_of("operator"), .wait = mark_ms - clock_ms});
    for (size_t i = 0; i < model->paused.n; i++)
        if (model->paused.items[i].open_until_ms)
            hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_WAITS,
                                                       .m = hk_str_of(""),
                                                       .source = 'd',
                                                       .dest = hk_str_of(model->paused.items[i].name),
                                                       .due = model->paused.items[i].open_until_ms});
    for (size_t i = 0; i < model->retry.n; i++)
        if (!model->retry.items[i].gone)
            hk_model_log_row(model, HK_FROM_RETRY, &model->retry.items[i],
                             (struct hk_event_line){.ev = HK_LOG_WAITS, .due = model->retry.items[i].due_ms});
}
