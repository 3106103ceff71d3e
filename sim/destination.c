/* SPDX-License-Identifier: Apache-2.0 */
/* Scripted destinations: what becomes of a request, when, and what the relay gets to know of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "world_impl.h"

enum {
    SENDS_MAX = 20000 /* of a world; there are about sixty in most */
};

static enum outcome draw_outcome(const struct world *w, struct dest *d)
{
    if (w->healed)
        return OUT_OK;
    if (w->now >= d->outage_from && w->now < d->outage_to)
        return OUT_REFUSED;
    uint64_t n = hk_rng_upto(&d->rng, d->total - 1);
    int i = 0;
    while (n >= d->weights[i])
        n -= d->weights[i++];
    return (enum outcome)i;
}

/* As it was written, or as a person made it. */
static const struct hk_model_msg *message_by_id(const struct world *w, struct hk_str id,
                                                struct hk_str payload)
{
    const struct hk_model_msg *made = hk_model_version_of(w->model, id, payload);
    for (size_t i = 0; !made && i < w->n_written; i++)
        if (hk_str_eq(hk_str_of(w->messages[i].message_id), id))
            return &w->messages[i];
    return made;
}

/* When it arrives and when its end is known. */
static void plan(struct world *w, struct send *send, size_t number, uint64_t timeout_ms)
{
    struct dest *d = &w->dests[send->dest];
    int64_t half = w->healed ? 1 : hk_world_between(&d->rng, d->least_ms / 2, d->latency_ms / 2);
    int64_t there = half, back = 2 * half + 1;
    if (d->together_ms) /* confirms of many come at once */
        back += d->together_ms - (w->now + back) % d->together_ms;
    int64_t limit = timeout_ms > 3600000 ? 3600000 : (int64_t)timeout_ms;
    if (send->outcome == OUT_LATE)
        there = limit + hk_world_between(&d->rng, 0, 200);
    send->timed_out = send->outcome == OUT_LATE || send->outcome == OUT_HANG || back >= limit;
    if (send->timed_out)
        back = limit;
    send->took_ms = (uint64_t)back;
    if (send->outcome != OUT_HANG && send->outcome != OUT_REFUSED)
        hk_world_at(w, w->now + there, EV_RECV, number, 0);
    hk_world_at(w, w->now + back, EV_ANSWER, number, send->incarnation);
}

size_t hk_world_send_start(struct world *w, size_t relay, const struct hk_action *action, bool room)
{
    size_t dest = w->relays[relay].dest_of[action->dest];
    struct dest *d = &w->dests[dest];
    struct send *send = calloc(1, sizeof *send);
    if (!send)
        abort();
    if (w->n_sends == w->room_sends) {
        w->room_sends = w->room_sends ? w->room_sends * 2 : 64;
        w->sends = realloc(w->sends, w->room_sends * sizeof(struct send *));
        if (!w->sends)
            abort();
    }
    size_t number = w->n_sends++;
    w->sends[number] = send;
    *send = (struct send){.relay = relay,
                          .incarnation = w->relays[relay].incarnation,
                          .slot = action->slot,
                          .dest = dest,
                          .msg = message_by_id(w, action->message->message_id, action->message->payload),
                          .outcome = draw_outcome(w, d)};
    if (w->n_sends > SENDS_MAX)
        hk_world_fail(w, "no end of sends");
    if (!send->msg) {
        hk_world_fail(w, "a message is sent that nobody wrote");
        return number;
    }
    send->line = (struct hk_event_line){.ev = HK_LOG_SEND,
                                        .m = hk_str_of(send->msg->message_id),
                                        .dest = hk_str_of(d->name),
                                        .relay = hk_str_of(w->relays[relay].name),
                                        .source = action->message->source == HK_FROM_RETRY ? 'r' : 'o',
                                        .id = action->message->id,
                                        .lane = action->lane,
                                        .claim = action->claim,
                                        .life = action->message->life,
                                        .attempt = action->attempt,
                                        .timeout = action->timeout_ms};
    if (!hk_str_eq(action->message->payload, hk_str_of(send->msg->payload)))
        hk_world_fail(w, "%s: the payload was changed", send->msg->message_id);
    if (action->timeout_ms == 0)
        hk_world_fail(w, "%s: is sent with no time to do so", send->msg->message_id);
    hk_world_log(w, send->line);
    if (!room)
        return number;
    if (send->outcome == OUT_429 || send->outcome == OUT_503_HINT)
        send->hint_s = hk_world_between(&d->rng, 1, 5);
    plan(w, send, number, action->timeout_ms);
    return number;
}

static int status_of(enum outcome outcome)
{
    static const int statuses[N_OUTCOMES] = {
        [OUT_OK] = 200,  [OUT_5XX] = 500, [OUT_503_HINT] = 503, [OUT_429] = 429,        [OUT_4XX] = 422,
        [OUT_401] = 401, [OUT_410] = 410, [OUT_3XX] = 302,      [OUT_LOST_REPLY] = 200, [OUT_LATE] = 200,
    };
    return statuses[outcome];
}

static bool acts(enum outcome outcome)
{
    return status_of(outcome) == 200;
}

void hk_world_send_received(struct world *w, struct send *send)
{
    if (send->cut)
        return;
    send->received = true;
    hk_world_log(w, (struct hk_event_line){.ev = HK_LOG_RECV,
                                           .m = send->line.m,
                                           .dest = send->line.dest,
                                           .hash = send->msg->hash,
                                           .status = status_of(send->outcome),
                                           .acted = acts(send->outcome),
                                           .wait = send->hint_s * 1000});
}

void hk_world_send_facts(struct world *w, struct send *send, struct hk_header *header, char value[24],
                         struct hk_facts *out)
{
    *out = (struct hk_facts){.duration_ms = send->took_ms};
    if (send->timed_out) {
        out->fault = HK_FAULT_TIMEOUT;
        out->possibly_delivered = true;
    } else if (send->outcome == OUT_REFUSED) {
        out->fault = HK_FAULT_CONNECT;
    } else if (send->outcome == OUT_LOST_REPLY) {
        out->fault = HK_FAULT_RESET;
        out->possibly_delivered = true;
    } else {
        out->status = status_of(send->outcome);
    }
    if (send->hint_s && out->status) {
        (void)snprintf(value, 24, "%lld", (long long)send->hint_s);
        *header = (struct hk_header){hk_str_of("Retry-After"), hk_str_of(value)};
        out->headers = header;
        out->n_headers = 1;
    }
    if (out->fault || out->status != 200)
        w->result->faults += !w->healed;
}
