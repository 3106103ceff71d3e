/* SPDX-License-Identifier: Apache-2.0 */
/* The modelled store as a relay sees it: poll, scan, held keys, exchange. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model_impl.h"

static bool is_live(const struct model_row *row)
{
    return row->visible && !row->gone && !row->stuck;
}

static bool same(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* Does the message lie in a shard of this relay's? */
static bool is_mine(const struct hk_model_handle *handle, const struct hk_model_msg *msg)
{
    return !(handle->lost >> hk_model_shard_of(msg) & 1);
}

/* ---- poll ---- */

/* Has the relay yet to be told to read everything anew? Then what it wants to claim may have been another row when it read it. */
static bool reset_due(const struct hk_model_handle *handle)
{
    return (handle->lost_at_poll & ~handle->lost) != 0;
}

static bool has_horizon(const struct hk_model *model)
{
    return model->options.ids_at_insert && !model->options.late_silent;
}

/* Did rows become visible, since the last late scan, at ids that were passed? */
static bool is_late(const struct hk_model *model, const struct hk_model_handle *handle,
                    const struct model_row *row)
{
    return has_horizon(model) && is_live(row) && row->version > handle->late_from &&
           row->version <= handle->version && (model->options.late_vague || row->id <= handle->passed) &&
           is_mine(handle, row->msg);
}

static struct hk_poll_dest *poll_dest(struct hk_poll *poll, struct hk_model_reply *out, const char *name)
{
    for (size_t i = 0; i < poll->n_dests; i++)
        if (hk_str_eq(poll->dests[i].name, hk_str_of(name)))
            return &poll->dests[i];
    struct hk_poll_dest *dest = &poll->dests[poll->n_dests++];
    *dest = (struct hk_poll_dest){.name = hk_model_reply_text(out, name), .retry_due_ms = INT64_MAX};
    return dest;
}

static void poll_guard(struct hk_poll *poll, struct hk_model_reply *out, const struct model_pause *known)
{
    if (!known->paused && !known->open_until_ms)
        return;
    struct hk_poll_dest *dest = poll_dest(poll, out, known->name);
    dest->paused = known->paused;
    dest->open_until_ms = known->open_until_ms;
}

enum {
    TELL_EVERY_MS = 1000
};

/* While the clock is behind, the store's time does not tell when a deferred message is due: they are asked for every second; and
 * once more when it has caught up, for from then on that time tells. */
static bool tells_behind(struct hk_model_handle *handle, const struct hk_poll *poll)
{
    int64_t clock_ms = poll->now_ms - (int64_t)poll->behind_ms, since_ms = clock_ms - handle->told_ms;
    bool was_behind = handle->told_ms != 0;
    if (poll->behind_ms && since_ms >= 0 && since_ms < TELL_EVERY_MS)
        return false;
    handle->told_ms = poll->behind_ms ? clock_ms : 0;
    return poll->behind_ms || was_behind;
}

void hk_model_poll(struct hk_model *model, struct hk_model_handle *handle, struct hk_model_reply *out)
{
    out->rc = HK_OK;
    struct hk_poll *poll = &out->poll;
    *poll = (struct hk_poll){.now_ms = hk_model_now(model),
                             .last_id = HK_FIRST_ID,
                             .acts = model->acts,
                             .definitions = model->definitions,
                             .reset = reset_due(handle),
                             .changed = !handle->polled || handle->version != model->version};
    poll->behind_ms = (uint64_t)(poll->now_ms - hk_model_clock(model));
    poll->changed |= !model->options.many && tells_behind(handle, poll);
    poll->changed |= poll->reset;
    handle->polled = true;
    handle->version = model->version;
    handle->lost_at_poll = handle->lost;
    if (!poll->changed)
        return;
    for (size_t i = 0; i < model->outbox.n; i++)
        poll->late |= is_late(model, handle, &model->outbox.items[i]);
    poll->dests = hk_model_reply_alloc(out, (model->retry.n + model->paused.n) * sizeof *poll->dests);
    for (size_t i = 0; i < model->outbox.n; i++)
        if (is_live(&model->outbox.items[i]) && model->outbox.items[i].id > poll->last_id)
            poll->last_id = model->outbox.items[i].id;
    for (size_t i = 0; i < model->retry.n; i++) {
        const struct model_row *row = &model->retry.items[i];
        if (row->gone || row->stuck || row->claim || !is_mine(handle, row->msg))
            continue;
        struct hk_poll_dest *dest = poll_dest(poll, out, row->destination);
        int64_t due_ms = poll->behind_ms && !model->options.many ? poll->now_ms : row->due_ms;
        if (due_ms < dest->retry_due_ms)
            dest->retry_due_ms = due_ms;
    }
    for (size_t i = 0; i < model->paused.n; i++)
        poll_guard(poll, out, &model->paused.items[i]);
}

/* ---- scan ---- */

static int by_id(const void *a, const void *b)
{
    const struct model_row *x = *(const struct model_row *const *)a, *y = *(const struct model_row *const *)b;
    return (x->id > y->id) - (x->id < y->id);
}

static int by_due(const void *a, const void *b)
{
    const struct model_row *x = *(const struct model_row *const *)a, *y = *(const struct model_row *const *)b;
    if (x->due_ms != y->due_ms)
        return x->due_ms < y->due_ms ? -1 : 1;
    return by_id(a, b);
}

static bool in_outbox_scan(const struct hk_model *model, const struct hk_model_handle *handle,
                           const struct hk_scan *scan, const struct model_row *row)
{
    bool named =
        !scan->destination || same(scan->destination, row->msg->destination) || !row->msg->destination[0];
    if (!named || (row->id <= scan->after_id && scan->after_id != HK_FIRST_ID) ||
        (has_horizon(model) && row->version > handle->version))
        return false;
    if (model->options.hide_claimed && row->claim)
        return false;
    return !scan->late || (row->version <= handle->late_to && is_late(model, handle, row));
}

static bool in_scan(const struct hk_model *model, const struct hk_model_handle *handle,
                    const struct hk_scan *scan, const struct model_row *row, int64_t now_ms)
{
    if (!is_live(row) || !is_mine(handle, row->msg) || (scan->key && !same(scan->key, row->msg->key)))
        return false;
    if (scan->source == HK_FROM_OUTBOX)
        return in_outbox_scan(model, handle, scan, row);
    bool keyset =
        row->due_ms > scan->after_due_ms || (row->due_ms == scan->after_due_ms && row->id > scan->after_id);
    if (scan->forced)
        return row->forced && !row->claim && keyset;
    if ((row->deferred || model->options.many) && row->due_ms > hk_model_clock(model))
        return false;
    return !row->claim && row->due_ms <= now_ms && same(scan->destination, row->destination) && keyset;
}

/* Holds nobody with a lower id the key (for a deferred one: nobody at all)? */
static bool key_first(const struct hk_model *model, const struct model_row *row)
{
    for (size_t i = 0; row->msg->key[0] && i < model->retry.n; i++) {
        const struct model_row *k = &model->retry.items[i];
        if (!k->gone && !k->deferred && k != row && (k->id < row->id || row->deferred) &&
            same(k->msg->key, row->msg->key) && same(k->destination, row->destination))
            return false;
    }
    return true;
}

static struct hk_head head_of(const struct hk_model *model, enum hk_source source,
                              const struct model_row *row, struct hk_model_reply *out)
{
    const struct hk_model_msg *msg = row->msg;
    return (struct hk_head){.source = source,
                            .id = row->id,
                            .destination = hk_model_reply_text(out, hk_model_dest_of(source, row)),
                            .event_type = hk_model_reply_text(out, msg->event_type),
                            .key = hk_model_reply_text(out, msg->key),
                            .payload_bytes = msg->payload_bytes,
                            .not_before_ms = source == HK_FROM_OUTBOX ? msg->not_before_ms : 0,
                            .expires_ms = row->lasting ? 0 : msg->expires_ms,
                            .crashes = row->crashes,
                            .key_first = source == HK_FROM_RETRY && key_first(model, row),
                            .malformed = msg->malformed ? "headers" : NULL};
}

static void note_scan(struct hk_model_handle *handle, const struct hk_scan *scan,
                      const struct hk_heads *heads)
{
    if (scan->source == HK_FROM_OUTBOX && !scan->late && heads->n && heads->last_id > handle->passed)
        handle->passed = heads->last_id;
    if (scan->late && !heads->more)
        handle->late_from = handle->late_to;
}

void hk_model_scan(struct hk_model *model, struct hk_model_handle *handle, const struct hk_scan *scan,
                   struct hk_model_reply *out)
{
    if (scan->late && scan->after_id == HK_FIRST_ID)
        handle->late_to = handle->version;
    struct model_rows *rows = scan->source == HK_FROM_RETRY ? &model->retry : &model->outbox;
    const struct model_row **found = calloc(rows->n + 1, sizeof *found);
    size_t n = 0;
    if (!found)
        abort();
    int64_t now_ms = hk_model_now(model);
    for (size_t i = 0; i < rows->n; i++)
        if (in_scan(model, handle, scan, &rows->items[i], now_ms))
            found[n++] = &rows->items[i];
    qsort(found, n, sizeof *found, scan->source == HK_FROM_RETRY ? by_due : by_id);
    if (n > scan->limit)
        n = scan->limit;
    struct hk_heads *heads = &out->heads;
    *heads = (struct hk_heads){.n = n,
                               .more = n == scan->limit,
                               .last_id = n ? found[n - 1]->id : scan->after_id,
                               .last_due_ms = n ? found[n - 1]->due_ms : scan->after_due_ms,
                               .now_ms = now_ms,
                               .behind_ms = (uint64_t)(now_ms - hk_model_clock(model))};
    heads->items = hk_model_reply_alloc(out, n * sizeof *heads->items);
    for (size_t i = 0; i < n; i++)
        heads->items[i] = head_of(model, scan->source, found[i], out);
    free(found);
    note_scan(handle, scan, heads);
    out->rc = HK_OK;
}

void hk_model_held_keys(struct hk_model *model, const struct hk_model_handle *handle,
                        struct hk_model_reply *out)
{
    out->rc = HK_OK;
    out->keys =
        hk_model_reply_alloc(out, (model->retry.n + model->letters.n + model->outbox.n) * sizeof *out->keys);
    for (size_t i = 0; i < model->outbox.n; i++) {
        const struct model_row *row = &model->outbox.items[i];
        if (!row->stuck || row->stuck_sent || !row->msg->key[0] || !is_mine(handle, row->msg))
            continue;
        out->keys[out->n_keys++] =
            (struct hk_held_key){.destination = hk_model_reply_text(out, row->destination),
                                 .key = hk_model_reply_text(out, row->msg->key),
                                 .dead = true};
    }
    for (size_t i = 0; i < model->retry.n; i++) {
        const struct model_row *row = &model->retry.items[i];
        if (row->gone || row->deferred || !row->msg->key[0] || !is_mine(handle, row->msg))
            continue;
        out->keys[out->n_keys++] =
            (struct hk_held_key){.destination = hk_model_reply_text(out, row->destination),
                                 .key = hk_model_reply_text(out, row->msg->key)};
    }
    for (size_t i = 0; i < model->letters.n; i++) {
        const struct model_letter *letter = &model->letters.items[i];
        if (letter->status != LETTER_FAILED || !letter->msg->key[0] || !is_mine(handle, letter->msg))
            continue;
        out->keys[out->n_keys++] =
            (struct hk_held_key){.destination = hk_model_reply_text(out, letter->destination),
                                 .key = hk_model_reply_text(out, letter->msg->key),
                                 .dead = true};
    }
}

/* ---- exchange: settling ---- */

static const char *const kinds[] = {
    [HK_SETTLE_SENT] = "sent",       [HK_SETTLE_RETRY] = "retry", [HK_SETTLE_DEAD] = "dead",
    [HK_SETTLE_RELEASE] = "release", [HK_SETTLE_DEFER] = "defer", [HK_SETTLE_FAN_OUT] = "fan_out",
};

static void log_settle(struct hk_model *model, int64_t lane, const struct hk_settle *s,
                       const struct model_row *row, bool rows)
{
    bool counted = s->kind == HK_SETTLE_SENT || s->kind == HK_SETTLE_RETRY || s->kind == HK_SETTLE_DEAD;
    hk_model_log_row(model, s->source, row,
                     (struct hk_event_line){
                         .ev = HK_LOG_SETTLE,
                         .dest = s->destination,
                         .lane = lane,
                         .claim = s->claim,
                         .kind = hk_str_of(kinds[s->kind]),
                         .rows = rows,
                         .due = s->kind == HK_SETTLE_RETRY || s->kind == HK_SETTLE_DEFER ? s->due_ms : 0,
                         .attempt = counted ? s->history.attempts : row->history.attempts,
                         .charged = counted ? s->history.charged : row->history.charged,
                         .reason = s->kind == HK_SETTLE_DEAD ? s->reason : hk_str_of("")});
}

static void add_attempt(struct hk_model *model, const struct hk_settle *s, const struct model_row *row)
{
    if (!s->attempt.made)
        return;
    struct model_attempt *attempt = MODEL_PUSH(model->attempts);
    *attempt = (struct model_attempt){.msg = row->msg, .life = row->life, .n = s->history.attempts};
    hk_model_text(attempt->destination, s->destination);
}

static void settle_sent(struct hk_model *model, const struct hk_settle *s, struct model_row *row)
{
    struct model_end *end = MODEL_PUSH(model->ends);
    *end = (struct model_end){.msg = row->msg, .attempts = s->history.attempts, .life = row->life};
    hk_model_text(end->destination, s->destination);
    if (row->letter && model->letters.items[row->letter - 1].status == LETTER_RETRYING)
        model->letters.items[row->letter - 1].status = LETTER_RESOLVED;
    row->gone = true;
}

/* Into the letter that it came from, unless another of its fan-out has died into that. */
static void settle_dead(struct hk_model *model, const struct hk_settle *s, struct model_row *row)
{
    struct model_letter *letter = row->letter ? &model->letters.items[row->letter - 1] : NULL;
    bool reopens = letter && letter->status != LETTER_FAILED && letter->life < row->life;
    letter = reopens ? letter : MODEL_PUSH(model->letters);
    int64_t job = reopens ? letter->job : 0;
    bool maybe = row->maybe || s->attempt.possibly_delivered || (reopens && letter->maybe);
    *letter = (struct model_letter){
        .job = job, .msg = row->msg, .maybe = maybe, .attempts = s->history.attempts, .life = row->life};
    if (!hk_str_copy(letter->reason, sizeof letter->reason, s->reason))
        abort();
    hk_model_text(letter->destination, s->destination);
    row->gone = true;
}

/* RETRY and DEFER: a row of outbox moves, one of outbox_retry stays. */
static void settle_later(struct hk_model *model, const struct hk_settle *s, struct model_row *row)
{
    bool retry = s->kind == HK_SETTLE_RETRY;
    if (s->source == HK_FROM_OUTBOX) {
        const struct hk_model_msg *msg = row->msg;
        row->gone = true;
        row = hk_model_add_retry(model, msg, s->destination);
        row->deferred = !retry;
    } else {
        hk_model_text(row->destination, s->destination);
        if (retry)
            row->deferred = false;
    }
    row->claim = 0;
    row->maybe |= s->attempt.possibly_delivered;
    row->given_back = retry && !s->attempt.made;
    row->forced &= !retry;
    int64_t behind_ms = hk_model_now(model) - hk_model_clock(model);
    row->due_ms = s->due_ms - (retry && model->options.many ? behind_ms : 0); /* a wait, by the clock */
    if (s->source == HK_FROM_OUTBOX && row->msg->not_before_ms > hk_model_clock(model) &&
        row->msg->not_before_ms > s->due_ms - behind_ms) { /* never before its own time */
        row->due_ms = row->msg->not_before_ms;
        row->deferred = true;
    }
    if (!retry)
        return;
    if (!row->history.first_attempt_ms)
        row->paused_mark_ms = hk_model_paused_ms(model, row->destination);
    row->history = s->history;
    row->history.paused_ms = 0;
    row->first_failed_ms = s->first_failed_ms;
    if (s->attempt.made) {
        row->last_attempt_ms = s->attempt.started_ms - (model->options.many ? behind_ms : 0);
        row->crashes = 0; /* an attempt was settled: it does not kill relays */
    }
}

static void settle_fan_out(struct hk_model *model, const struct hk_settle *s, struct model_row *row)
{
    struct model_row old = *row;
    row->gone = true;
    for (size_t i = 0; i < s->n_fan_out; i++) {
        struct model_row *child = hk_model_add_retry(model, old.msg, s->fan_out[i]);
        bool early = s->source == HK_FROM_OUTBOX && old.msg->not_before_ms > hk_model_clock(model);
        int64_t now_ms = hk_model_due_now(model);
        bool named = old.deferred; /* its own time, which a wrong clock took for come */
        int64_t was_ms = named || old.due_ms < now_ms ? old.due_ms : now_ms;
        child->due_ms = s->source == HK_FROM_RETRY ? was_ms : early ? old.msg->not_before_ms : now_ms;
        child->deferred = old.deferred || early;
        child->lasting = old.lasting;
        child->maybe = old.maybe;
        child->crashes = old.crashes;
        child->life = old.life;
        child->letter = old.letter;
        child->history = old.history;
        child->paused_mark_ms = old.paused_mark_ms;
        child->first_failed_ms = old.first_failed_ms;
        child->last_attempt_ms = old.last_attempt_ms;
        child->given_back = old.given_back;
    }
}

void hk_model_stick(struct hk_model *model, int64_t lane, struct model_row *row, const char *kind,
                    const struct hk_settle *s)
{
    hk_model_log_row(model, HK_FROM_OUTBOX, row,
                     (struct hk_event_line){.ev = HK_LOG_STUCK,
                                            .dest = s->destination,
                                            .lane = lane,
                                            .claim = row->claim,
                                            .kind = hk_str_of(kind),
                                            .attempt = s->history.attempts,
                                            .charged = s->history.charged});
    hk_model_text(row->destination, s->destination);
    row->claim = 0;
    row->stuck = true;
    row->stuck_sent = s->kind == HK_SETTLE_SENT;
}

static struct model_row *find_row(struct hk_model *model, enum hk_source source, int64_t id)
{
    return hk_model_find(source == HK_FROM_RETRY ? &model->retry : &model->outbox, id);
}

static bool settle(struct hk_model *model, int64_t lane, const struct hk_settle *s, const char **out_stuck)
{
    struct model_row *row = find_row(model, s->source, s->id);
    if (!row || row->claim != s->claim)
        return false;
    if (row->msg->stuck && s->kind != HK_SETTLE_RELEASE) {
        hk_model_stick(model, lane, row, kinds[s->kind], s);
        *out_stuck = "refused";
        return true;
    }
    log_settle(model, lane, s, row, true);
    add_attempt(model, s, row);
    switch (s->kind) {
    case HK_SETTLE_SENT:
        settle_sent(model, s, row);
        break;
    case HK_SETTLE_RETRY:
    case HK_SETTLE_DEFER:
        settle_later(model, s, row);
        break;
    case HK_SETTLE_DEAD:
        settle_dead(model, s, row);
        break;
    case HK_SETTLE_RELEASE:
        row->claim = 0;
        break;
    case HK_SETTLE_FAN_OUT:
        settle_fan_out(model, s, row);
        break;
    }
    return true;
}

/* The whole lane is gone: say so of each settle that came too late. */
static void log_stale(struct hk_model *model, const struct hk_exchange *x)
{
    for (size_t i = 0; i < x->n_settles; i++) {
        const struct hk_settle *s = &x->settles[i];
        hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_SETTLE,
                                                   .m = hk_str_of(""),
                                                   .dest = s->destination,
                                                   .source = s->source == HK_FROM_RETRY ? 'r' : 'o',
                                                   .id = s->id,
                                                   .lane = x->lane,
                                                   .claim = s->claim,
                                                   .kind = hk_str_of(kinds[s->kind])});
    }
}

/* ---- exchange: claiming ---- */

static struct hk_message message_of(enum hk_source source, const struct model_row *row, bool payload,
                                    struct hk_model_reply *out)
{
    const struct hk_model_msg *msg = row->msg;
    bool whole = payload && !msg->undecodable;
    return (struct hk_message){.source = source,
                               .id = row->id,
                               .message_id = hk_model_reply_text(out, msg->message_id),
                               .destination = hk_model_reply_text(out, hk_model_dest_of(source, row)),
                               .event_type = hk_model_reply_text(out, msg->event_type),
                               .key = hk_model_reply_text(out, msg->key),
                               .policy = hk_model_reply_text(out, msg->policy),
                               .payload =
                                   whole ? hk_model_reply_text(out, msg->payload) : (struct hk_str){NULL, 0},
                               .undecodable = payload && msg->undecodable,
                               .malformed = msg->malformed ? "headers" : NULL,
                               .expires_ms = row->lasting ? 0 : msg->expires_ms,
                               .max_attempts = msg->max_attempts,
                               .timeout_ms = msg->timeout_ms,
                               .crashes = row->crashes,
                               .life = row->life,
                               .letter_id = (int64_t)row->letter,
                               .first_failed_ms = row->first_failed_ms,
                               .history = row->history};
}

static bool claim_one(struct hk_model *model, const struct hk_model_handle *handle,
                      const struct hk_exchange *x, const struct hk_want *c, int64_t claim,
                      struct hk_model_reply *out)
{
    struct model_row *row = find_row(model, c->source, c->id);
    if (!row || !is_live(row) || !is_mine(handle, row->msg))
        return false;
    if (row->claim) {
        (void)snprintf(model->complaint, sizeof model->complaint,
                       "%c%lld was claimed while a manifest names it", c->source == HK_FROM_RETRY ? 'r' : 'o',
                       (long long)c->id);
        return false;
    }
    row->claim = claim;
    struct hk_message *message = &out->exchanged.messages[out->exchanged.n_messages++];
    *message = message_of(c->source, row, c->payload, out);
    if (row->history.first_attempt_ms)
        message->history.paused_ms =
            (uint64_t)(hk_model_paused_ms(model, row->destination) - row->paused_mark_ms);
    hk_model_log_row(model, c->source, row,
                     (struct hk_event_line){.ev = HK_LOG_CLAIM, .lane = x->lane, .claim = claim});
    return true;
}

static void claim_all(struct hk_model *model, const struct hk_model_handle *handle,
                      const struct hk_exchange *x, struct hk_model_reply *out)
{
    out->exchanged.reset = reset_due(handle);
    if (out->exchanged.reset)
        return;
    int64_t claim = model->next_claim++ << HK_MODEL_LANE_BITS | x->lane;
    out->exchanged.messages = hk_model_reply_alloc(out, x->n_wants * sizeof *out->exchanged.messages);
    for (size_t i = 0; i < x->n_wants; i++)
        if (claim_one(model, handle, x, &x->wants[i], claim, out))
            out->exchanged.claim = claim;
}

void hk_model_exchange(struct hk_model *model, const struct hk_model_handle *handle,
                       const struct hk_exchange *x, struct hk_model_reply *out)
{
    struct model_lane *lane = NULL;
    for (size_t i = 0; i < model->lanes.n; i++)
        if (model->lanes.items[i].lane == x->lane)
            lane = &model->lanes.items[i];
    if (!lane || lane->ended) {
        log_stale(model, x);
        out->rc = HK_CONFLICT;
        return;
    }
    out->rc = HK_OK;
    lane->sign++;
    out->exchanged.now_ms = hk_model_now(model);
    out->exchanged.definitions = model->definitions;
    lane->until_ms = out->exchanged.now_ms + (int64_t)x->lease_ms;
    hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_RENEW, .lane = x->lane, .until = lane->until_ms});
    out->exchanged.stale = hk_model_reply_alloc(out, x->n_settles * sizeof *out->exchanged.stale);
    out->exchanged.stuck = hk_model_reply_alloc(out, x->n_settles * sizeof *out->exchanged.stuck);
    for (size_t i = 0; i < x->n_settles; i++)
        out->exchanged.stale[i] = !settle(model, x->lane, &x->settles[i], &out->exchanged.stuck[i]);
    claim_all(model, handle, x, out);
    hk_model_grant(model, x, out);
    hk_model_seat(model, x, out);
    for (size_t i = 0; i < x->n_circuits; i++)
        hk_model_log(model, (struct hk_event_line){.ev = HK_LOG_BREAKER,
                                                   .dest = hk_str_of(x->circuits[i].destination),
                                                   .lane = x->lane,
                                                   .until = x->circuits[i].open_until_ms});
    for (size_t i = 0; i < x->n_circuits; i++)
        hk_model_circuit(model, x->circuits[i].destination, x->circuits[i].open_until_ms);
    if (x->n_settles || x->n_circuits || out->exchanged.n_messages)
        model->version++;
}
