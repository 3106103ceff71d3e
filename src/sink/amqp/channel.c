/* SPDX-License-Identifier: Apache-2.0 */
/* A destination's channel. The broker answers an offence of one message by closing the channel, and then nobody knows what became of
 * the others that were under way: some are stored, and none is confirmed. They are reported as possibly delivered, and each of them
 * goes alone when it comes again, so that the next close names its message. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "sink/amqp/impl.h"

static struct hk_amqp_sink *of(struct hk_broker *b)
{
    return (struct hk_amqp_sink *)b;
}

enum hk_fault hk_amqp_fault(unsigned code)
{
    switch (code) {
    case 320: /* the broker shuts down, or an operator closes the connection */
    case 405: /* locked by somebody else */
    case 541:
        return HK_FAULT_BROKER_TRANSIENT;
    case 506:
        return HK_FAULT_BROKER_THROTTLED;
    case 403:
    case 530:
        return HK_FAULT_BROKER_AUTH;
    case 311:
    case 312:
    case 313:
    case 402:
    case 404:
    case 406:
    case 540:
        return HK_FAULT_BROKER_REFUSED;
    case 501:
    case 502:
    case 503:
    case 504:
    case 505:
        return HK_FAULT_PROTOCOL;
    default:
        return HK_FAULT_BROKER_UNKNOWN;
    }
}

/* ---- suspects ---- */

static uint64_t print_of(const struct hk_message *msg)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < msg->message_id.len; i++)
        h = (h ^ (unsigned char)msg->message_id.ptr[i]) * UINT64_C(0x100000001b3);
    return h;
}

static size_t find_suspect(const struct hk_amqp_sink *a, const struct hk_message *msg)
{
    if (!a->n_suspects)
        return SIZE_MAX;
    uint64_t print = print_of(msg);
    for (size_t i = 0; i < a->n_suspects; i++)
        if (a->suspects[i] == print)
            return i;
    return SIZE_MAX;
}

static void clear_suspect(struct hk_amqp_sink *a, const struct hk_message *msg)
{
    size_t i = find_suspect(a, msg);
    if (i != SIZE_MAX)
        a->suspects[i] = a->suspects[--a->n_suspects];
}

static void suspect(struct hk_amqp_sink *a, const struct hk_message *msg)
{
    if (find_suspect(a, msg) != SIZE_MAX)
        return;
    if (a->n_suspects == HK_AMQP_SUSPECTS_MAX) /* the oldest may have died in another way long ago */
        memmove(a->suspects, a->suspects + 1, --a->n_suspects * sizeof a->suspects[0]);
    a->suspects[a->n_suspects++] = print_of(msg);
}

bool hk_amqp_may_write(struct hk_broker *b, const struct hk_flight *f)
{
    struct hk_amqp_sink *a = of(b);
    if (a->phase == HK_AMQP_NO_CHANNEL)
        hk_amqp_channel_open(a);
    if (a->phase != HK_AMQP_CHANNEL_READY || a->flow_stopped || (a->alone && b->written.n))
        return false;
    bool suspected = find_suspect(a, f->msg) != SIZE_MAX;
    if (suspected && b->written.n)
        return false;
    a->alone = suspected;
    return true;
}

/* ---- opening ---- */

void hk_amqp_channel_open(struct hk_amqp_sink *a)
{
    struct hk_amqp_conn *conn = a->conn;
    struct hk_buf *out = &conn->link.out;
    a->channel = hk_amqp_take_channel(conn, a);
    if (!a->channel) {
        hk_broker_fail_queued(&a->broker, HK_FAULT_BROKER_THROTTLED, NULL, NULL,
                              "the broker allows no more channels on this connection");
        return;
    }
    a->phase = HK_AMQP_OPENING;
    a->flow_stopped = a->returning = a->alone = false;
    hk_flights_reset(&a->flights, 1);
    size_t at = hk_amqp_begin_method(out, a->channel, HK_AMQP_CHANNEL_OPEN);
    hk_amqp_u8(out, 0);
    hk_amqp_end(out, at);
    at = hk_amqp_begin_method(out, a->channel, HK_AMQP_SELECT);
    hk_amqp_u8(out, 0);
    hk_amqp_end(out, at);
    if (a->passive) {
        struct hk_str exchange = hk_broker_target(&a->broker, a->exchange, NULL);
        at = hk_amqp_begin_method(out, a->channel, HK_AMQP_DECLARE);
        hk_amqp_u16(out, 0);
        hk_amqp_short(out, exchange);
        hk_amqp_short(out, hk_str_of("")); /* its type: of no interest to a look */
        hk_amqp_u8(out, 1);                /* passive: is it there? */
        hk_amqp_u32(out, 0);
        hk_amqp_end(out, at);
    }
    (void)hk_link_put(&conn->link);
}

void hk_amqp_channel_lost(struct hk_amqp_sink *a)
{
    a->phase = HK_AMQP_NO_CHANNEL;
    a->channel = 0;
    a->alone = a->returning = a->flow_stopped = false;
    hk_flights_reset(&a->flights, 1);
}

static void opened(struct hk_amqp_sink *a)
{
    if (a->phase != HK_AMQP_OPENING)
        return;
    a->phase = HK_AMQP_CHANNEL_READY;
    hk_broker_pump(&a->broker);
}

/* ---- confirms ---- */

static void settle(struct hk_amqp_sink *a, uint64_t tag, bool acked)
{
    struct hk_flight *f = hk_flights_get(&a->flights, tag);
    hk_flights_drop(&a->flights, tag);
    if (!f)
        return;
    clear_suspect(a, f->msg);
    if (!acked)
        hk_flight_fail(f, HK_FAULT_BROKER_THROTTLED, true, "nack",
                       "the broker did not take the message: a queue is full, or lost it", NULL);
    else if (f->returned)
        hk_flight_fail(f, HK_FAULT_BROKER_REFUSED, false, f->code, f->words, NULL);
    else
        hk_flight_confirm(f, -1, (int64_t)tag);
}

static void confirmed(struct hk_amqp_sink *a, const struct hk_amqp_method *m)
{
    uint64_t tag = m->tag ? m->tag : a->flights.next - 1; /* 0: all */
    bool acked = m->id == HK_AMQP_ACK;
    if (tag >= a->flights.next) {
        hk_link_fail(&a->conn->link, HK_FAULT_PROTOCOL, NULL, "the broker confirms what was never sent");
        return;
    }
    if (!m->multiple)
        settle(a, tag, acked);
    for (uint64_t i = a->flights.first; m->multiple && i <= tag; i++)
        settle(a, i, acked);
    hk_broker_pump(&a->broker);
}

void hk_amqp_forget(struct hk_broker *b, struct hk_flight *f)
{
    struct hk_amqp_sink *a = of(b);
    hk_flights_drop(&a->flights, f->number);
}

/* ---- returns ---- */

static void returned(struct hk_amqp_sink *a, const struct hk_amqp_method *m)
{
    a->returning = true;
    (void)snprintf(a->return_code, sizeof a->return_code, "%u", m->code);
    (void)snprintf(a->return_words, sizeof a->return_words, "%.*s", (int)m->text.len, m->text.ptr);
}

/* Its confirm comes after it, perhaps together with others: so it is marked only. */
void hk_amqp_channel_header(struct hk_amqp_sink *a, struct hk_str payload)
{
    struct hk_str id;
    if (!a->returning)
        return;
    a->returning = false;
    if (!hk_amqp_read_header(payload, &id)) {
        hk_link_fail(&a->conn->link, HK_FAULT_PROTOCOL, NULL, "the broker sends a header that is cut short");
        return;
    }
    struct hk_flight *f = a->broker.written.first;
    while (f && (f->returned || !hk_str_eq(f->msg->message_id, id)))
        f = f->next;
    if (!f)
        return;
    f->returned = true;
    (void)snprintf(f->code, sizeof f->code, "%s", a->return_code);
    (void)snprintf(f->words, sizeof f->words, "%s", a->return_words);
}

/* ---- closes ---- */

/* Exactly one was under way: it is the reason. */
static void blame(struct hk_amqp_sink *a, struct hk_flight *f, enum hk_fault fault, const char *code,
                  const char *words)
{
    bool judged = fault == HK_FAULT_BROKER_REFUSED || fault == HK_FAULT_BROKER_AUTH;
    clear_suspect(a, f->msg);
    hk_flight_fail(f, fault, !judged, code, words, NULL);
}

static void blame_somebody(struct hk_amqp_sink *a, const char *code, const char *words)
{
    char text[HK_AMQP_SHORT_MAX + 200];
    (void)snprintf(
        text, sizeof text,
        "%s %s: the broker closed the channel while %zu messages were under way, perhaps because of "
        "another one; each goes alone next time",
        code, words, a->broker.written.n);
    while (a->broker.written.first) {
        struct hk_flight *f = a->broker.written.first;
        suspect(a, f->msg);
        hk_flight_fail(f, HK_FAULT_BROKER_TRANSIENT, true, code, words, text);
    }
}

static void closed(struct hk_amqp_sink *a, const struct hk_amqp_method *m)
{
    struct hk_broker *b = &a->broker;
    enum hk_fault fault = hk_amqp_fault(m->code);
    char code[8], words[HK_AMQP_SHORT_MAX + 1];
    uint16_t channel = a->channel;
    bool alone = b->written.n == 1 && a->flights.next - a->flights.first == 1;
    bool opening = a->phase == HK_AMQP_OPENING;
    (void)snprintf(code, sizeof code, "%u", m->code);
    (void)snprintf(words, sizeof words, "%.*s", (int)m->text.len, m->text.ptr);
    if (!hk_amqp_put_method(a->conn, channel, HK_AMQP_CHANNEL_CLOSE_OK))
        return;
    hk_amqp_leave_channel(a->conn, channel, true);
    if (opening)
        hk_broker_fail_queued(b, fault, code, words, NULL);
    else if (alone)
        blame(a, b->written.first, fault, code, words);
    else
        blame_somebody(a, code, words);
    hk_amqp_channel_lost(a);
    hk_broker_pump(b);
}

static void flow(struct hk_amqp_sink *a, bool active)
{
    size_t at = hk_amqp_begin_method(&a->conn->link.out, a->channel, HK_AMQP_FLOW_OK);
    hk_amqp_u8(&a->conn->link.out, active);
    hk_amqp_end(&a->conn->link.out, at);
    a->flow_stopped = !active;
    if (hk_link_put(&a->conn->link))
        hk_broker_pump(&a->broker);
}

void hk_amqp_channel_method(struct hk_amqp_sink *a, const struct hk_amqp_method *m)
{
    if (m->id == HK_AMQP_ACK || m->id == HK_AMQP_NACK)
        confirmed(a, m);
    else if (m->id == HK_AMQP_RETURN)
        returned(a, m);
    else if (m->id == HK_AMQP_CHANNEL_CLOSE)
        closed(a, m);
    else if (m->id == HK_AMQP_FLOW)
        flow(a, m->active);
    else if (m->id == (a->passive ? HK_AMQP_DECLARE_OK : HK_AMQP_SELECT_OK))
        opened(a);
}
