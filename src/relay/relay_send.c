/* SPDX-License-Identifier: Apache-2.0 */
/* Deliveries: passes messages from the engine to their sink, and the sink's report to all observers and then to the engine. It does not
 * send a message that the rules for payloads refuse. */
#include <string.h>

#include "base/str.h"
#include "observe/crash.h"
#include "relay/relay_impl.h"

enum {
    PUMP_EVERY = 8
};

/* The answers to a whole batch may come in one round of the loop. If the store had no work before its end, sends and store
 * would take turns instead of going on side by side: so it is looked after in between. */
static void landed(struct hk_relay *r)
{
    hk_relay_pump_soon(r);
    if (!r->store.busy && !r->drain.on && !r->reload.to && ++r->sends.n_landed >= PUMP_EVERY)
        hk_relay_pump(r);
}

static const struct hk_policy *policy_of(const struct hk_relay *r, size_t place)
{
    const char *name = NULL;
    const struct hk_policy *policy = NULL;
    return hk_kept_at(r->kept, place, &name, &policy) ? policy : r->wiring.dests[place].policy;
}

static const char *name_of(const struct hk_relay *r, size_t place)
{
    const char *name = NULL;
    const struct hk_policy *policy = NULL;
    return hk_kept_at(r->kept, place, &name, &policy) ? name : r->wiring.dests[place].name;
}

static struct hk_try attempt_of(struct hk_relay_delivery *d, int64_t store_ms)
{
    const struct hk_action *a = &d->action;
    return (struct hk_try){.message = a->message,
                           .destination = d->destination,
                           .dest = a->dest,
                           .n = a->attempt,
                           .slot = a->slot,
                           .store_ms = store_ms,
                           .traceparent = d->traceparent};
}

/* Everybody who looks on hears of the end, then the engine decides. */
static void ended(struct hk_relay_delivery *d, const struct hk_facts *facts, int64_t store_ms)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    struct hk_try attempt = attempt_of(d, store_ms);
    hk_events_sent(r->events, store_ms, a->lane, a->claim, a->message, d->destination, facts);
    hk_attempt_log_ended(r->attempts, a->message, policy_of(r, a->dest), d->traceparent, facts, store_ms);
    HK_RELAY_TELL(r, attempt_ended, &attempt, facts);
}

/* An answer, and room for what it says. */
struct answer {
    struct hk_relay_delivery *delivery;
    const struct hk_sink_result *result;
    char error[HK_ANSWER_ERROR_MAX];
};

static struct hk_str error_of(struct answer *answer)
{
    const struct hk_relay_delivery *d = answer->delivery;
    return hk_attempt_log_error(d->relay->attempts, d->action.message, &answer->result->facts, answer->error);
}

static void show(struct hk_outcome *outcome)
{
    struct answer *answer = outcome->show_arg;
    struct hk_sink_shown shown = answer->result->show(answer->result);
    outcome->request_headers = shown.request_headers;
    outcome->response_headers = shown.response_headers;
    if (outcome->hushed)
        hk_relay_sealed_words(answer->delivery, outcome);
    if (!outcome->facts.error.len && !outcome->hushed) /* a policy may take a 200 for a failure */
        outcome->facts.error = error_of(answer);
}

static void sent(void *arg, const struct hk_sink_result *result)
{
    struct hk_relay_delivery *d = arg;
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    struct answer answer = {.delivery = d, .result = result};
    struct hk_outcome outcome = {.facts = result->facts,
                                 .address = result->address,
                                 .show = show,
                                 .show_arg = &answer,
                                 .hushed = hk_relay_hides(d)};
    int64_t now = hk_relay_now_ms(r), store_ms = hk_engine_store_now_ms(r->engine, now);
    hk_crash_point("sent");
    if (d->kept)
        hk_kept_sent(r->kept, d->kept, now);
    struct hk_facts told = hk_relay_sealed_facts(d, &outcome.facts);
    outcome.facts.error = told.error;
    if (outcome.facts.status >= 300 && !outcome.hushed)
        told.error = outcome.facts.error = error_of(&answer);
    ended(d, &told, store_ms);
    hk_engine_on_outcome(r->engine, now, a->slot, &outcome);
    hk_relay_sealed_end(d);
    landed(r);
}

static enum hk_fault fault_of(const struct hk_finding *finding)
{
    if (strcmp(finding->reason, "SCHEMA_MISMATCH") == 0)
        return HK_FAULT_SCHEMA;
    return strcmp(finding->reason, "PAYLOAD_TOO_LARGE") == 0 ? HK_FAULT_TOO_LARGE : HK_FAULT_INVALID_PAYLOAD;
}

/* A payload that is not as the rules want it is not sent: the engine makes it a dead letter, and charges no attempt. */
static bool refused(struct hk_relay_delivery *d, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_message *m = d->action.message;
    struct hk_finding finding;
    if (hk_validate_payload(r->wiring.validate, m->event_type, m->payload, &finding))
        return false;
    struct hk_outcome failed = {.facts = {.fault = fault_of(&finding), .error = hk_str_of(finding.text)}};
    hk_attempt_log_ended(r->attempts, m, policy_of(r, d->action.dest), "", &failed.facts, now);
    hk_engine_on_outcome(r->engine, now, d->action.slot, &failed);
    hk_relay_pump_soon(r);
    return true;
}

static const struct hk_message *message_of(struct hk_relay_delivery *d)
{
    if (!d->traceparent[0])
        return d->action.message;
    if (!d->sealed) /* else it is there */
        d->onward = *d->action.message;
    d->onward.traceparent = hk_str_of(d->traceparent);
    return &d->onward;
}

static enum hk_code sink_of(struct hk_relay_delivery *d, int64_t now, struct hk_sink **out,
                            struct hk_err *err)
{
    struct hk_relay *r = d->relay;
    size_t place = d->action.dest;
    if (place >= r->wiring.n_dests)
        return hk_kept_send(r->kept, place, now, &d->kept, out, err);
    *out = r->wiring.sinks[place];
    return HK_OK;
}

/* There is no sink for it. Its destination is held from now on, so that the engine gives the message back, uncharged. */
static void not_sent(struct hk_relay_delivery *d, const struct hk_err *err, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_LOCAL, .error = hk_str_of(err->message)}};
    hk_engine_on_outcome(r->engine, now, d->action.slot, &outcome);
    hk_relay_pump_soon(r);
}

/* Its sink takes no more now: it was no attempt, and the engine gives the message back. */
static void withdrawn(struct hk_relay_delivery *d, const struct hk_try *attempt, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    hk_events_busy(r->events, attempt->store_ms, a->lane, a->claim, a->message, d->destination);
    HK_RELAY_TELL(r, attempt_withdrawn, attempt);
    hk_kept_full(r->kept, d->kept);
    hk_engine_on_busy(r->engine, now, a->slot);
    hk_relay_sealed_end(d);
    hk_relay_pump_soon(r);
}

void hk_relay_has_room(struct hk_relay *r, size_t place)
{
    int64_t now = hk_relay_now_ms(r);
    struct hk_dest_view view;
    if (!r->engine || !hk_engine_view_dest(r->engine, place, now, &view) || !view.full)
        return;
    hk_events_room(r->events, hk_engine_store_now_ms(r->engine, now), view.name);
    hk_engine_on_room(r->engine, now, place);
    hk_relay_pump_soon(r);
}

/* At the end of a round, sinks that collect messages send them. */
static void flush_later(struct hk_relay *r, struct hk_sink *sink)
{
    if (!sink->ops->flush || sink->flush_due)
        return;
    sink->flush_due = true;
    sink->flush_next = r->sends.to_flush;
    r->sends.to_flush = sink;
}

static void flush_all(struct hk_relay *r)
{
    struct hk_sink *sink = r->sends.to_flush;
    r->sends.to_flush = NULL;
    while (sink) {
        struct hk_sink *next = sink->flush_next;
        sink->flush_due = false;
        sink->ops->flush(sink);
        sink = next;
    }
}

static void start_send(struct hk_relay_delivery *d, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    if (!hk_relay_sealed_open(d, now))
        return;
    if (refused(d, now)) {
        hk_relay_sealed_end(d);
        return;
    }
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = sink_of(d, now, &sink, &err);
    if (rc != HK_OK) {
        not_sent(d, &err, now);
        hk_relay_sealed_end(d);
        return;
    }
    int64_t store_now_ms = hk_engine_store_now_ms(r->engine, now);
    struct hk_try attempt = attempt_of(d, store_now_ms);
    hk_events_send(r->events, store_now_ms, a->lane, a, d->destination);
    HK_RELAY_TELL(r, attempt_begins, &attempt);
    hk_crash_point("send");
    rc = sink->ops->send(sink,
                         &(struct hk_delivery){.msg = message_of(d),
                                               .attempt = a->attempt,
                                               .wall_ms = store_now_ms,
                                               .timeout_ms = a->timeout_ms,
                                               .done = sent,
                                               .arg = d},
                         &err);
    if (rc == HK_OK) {
        flush_later(r, sink);
        return;
    }
    if (d->kept)
        hk_kept_sent(r->kept, d->kept, now);
    if (rc == HK_BUSY) {
        withdrawn(d, &attempt, now);
        hk_relay_sealed_end(d);
        return;
    }
    struct hk_outcome failed = {.facts = {.fault = HK_FAULT_LOCAL, .error = hk_str_of(err.message)}};
    ended(d, &failed.facts, store_now_ms);
    hk_engine_on_outcome(r->engine, now, a->slot, &failed);
    hk_relay_sealed_end(d);
    hk_relay_pump_soon(r);
}

void hk_relay_sends_add(struct hk_relay *r, const struct hk_action *a)
{
    struct hk_relay_delivery *d = &r->sends.deliveries[a->slot];
    *d = (struct hk_relay_delivery){.relay = r, .action = *a, .destination = name_of(r, a->dest)};
    *r->sends.last = d;
    r->sends.last = &d->next;
}

void hk_relay_sends_start(struct hk_relay *r, int64_t now)
{
    struct hk_relay_delivery *d = r->sends.first;
    r->sends.first = NULL;
    r->sends.last = &r->sends.first;
    while (d) {
        struct hk_relay_delivery *next = d->next;
        start_send(d, now);
        d = next;
    }
    flush_all(r);
}

void hk_relay_sends_abort(struct hk_relay *r)
{
    for (size_t i = 0; i < r->wiring.n_dests; i++)
        r->wiring.sinks[i]->ops->abort(r->wiring.sinks[i]);
    hk_kept_abort(r->kept);
}
