/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed messages on their way: opened when they are to be sent, for as long as that takes. Without the key they wait: no attempt is
 * made, none is charged, and none of them dies of it. The receiver's words, which may repeat what was sealed, go no further than to the
 * policy. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/encoding.h"
#include "payload/codec.h"
#include "payload/envelope.h"
#include "payload/words.h"
#include "relay/relay_impl.h"

enum {
    WAIT_MS = 30000,       /* until a key is looked for again */
    WAIT_MOST_MS = 600000, /* … by the last of many: they come back one by one, a thousand in a second */
    SAY_EVERY_MS = 60000,
    FORGET_MS =
        2 * WAIT_MOST_MS /* no message has asked for the key: they were cancelled, or are another relay's */
};

/* ---- without the key ---- */

static void say_waiting(struct hk_relay *r, const struct hk_message *m, const char *why, int64_t now)
{
    struct hk_relay_sealed *s = &r->sealed;
    struct hk_log_line line;
    s->unsaid++;
    if (s->said_ms && now - s->said_ms < SAY_EVERY_MS)
        return;
    hk_log_begin(&line, r->options.log, HK_LOG_ERROR, "sealed messages wait: the relay cannot open them");
    hk_log_cstr(&line, "error", why);
    hk_log_str(&line, "message_id", m->message_id);
    hk_log_i64(&line, "messages", (int64_t)s->unsaid);
    hk_log_end(&line);
    s->said_ms = now;
    s->unsaid = 0;
}

static void note_keyless(struct hk_relay_sealed *s, struct hk_str sealed, const char *why, int64_t now)
{
    struct hk_envelope e;
    size_t i = 0;
    if (!hk_envelope_read(sealed, &e))
        return;
    while (i < s->n_keyless && !(hk_str_eq(hk_str_of(s->keyless[i].id), e.key_id) &&
                                 hk_str_eq(hk_str_of(s->keyless[i].check), e.check)))
        i++;
    if (i == HK_RELAY_KEYLESS_MAX)
        return; /* it gets a place once another key is there */
    struct hk_relay_keyless *k = &s->keyless[i];
    s->n_keyless += i == s->n_keyless;
    (void)hk_str_copy(k->id, sizeof k->id, e.key_id);
    (void)hk_str_copy(k->check, sizeof k->check, e.check);
    (void)snprintf(k->why, sizeof k->why, "%s", why);
    k->seen_ms = now;
}

static bool is_there(struct hk_keyring *keys, const struct hk_relay_keyless *k)
{
    struct hk_key key = {.id = ""};
    struct hk_err err = {.message = ""};
    bool there = keys && hk_keyring_get(keys, hk_str_of(k->id), &key, &err) == HK_OK &&
                 strcmp(key.check, k->check) == 0;
    hk_key_wipe(&key);
    return there;
}

void hk_relay_sealed_acquired(struct hk_relay *r, const char *why)
{
    struct hk_relay_sealed *s = &r->sealed;
    s->no_lane = why != NULL;
    (void)snprintf(s->why_no_lane, sizeof s->why_no_lane, "%s", why ? why : "");
}

const char *hk_relay_sealed_keyless(struct hk_relay *r, int64_t now)
{
    struct hk_relay_sealed *s = &r->sealed;
    for (size_t i = 0; i < s->n_keyless;) {
        const struct hk_relay_keyless *k = &s->keyless[i];
        if (now - k->seen_ms < FORGET_MS && !is_there(r->options.config->keys, k))
            i++;
        else
            s->keyless[i] = s->keyless[--s->n_keyless];
    }
    if (s->no_lane)
        return s->why_no_lane;
    return s->n_keyless ? s->keyless[0].why : hk_redriver_keyless(r->redriver);
}

static uint64_t wait_ms(struct hk_relay_sealed *s, int64_t now)
{
    int64_t at = s->next_ms + 1 > now + WAIT_MS ? s->next_ms + 1 : now + WAIT_MS;
    if (at > now + WAIT_MOST_MS)
        at = now + WAIT_MOST_MS;
    s->next_ms = at;
    return (uint64_t)(at - now);
}

static void put_off(struct hk_relay_delivery *d, const struct hk_err *why, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_action *a = &d->action;
    struct hk_outcome outcome = {.facts = {.fault = HK_FAULT_LOCAL, .error = hk_str_of(why->message)},
                                 .put_off_ms = wait_ms(&r->sealed, now)};
    say_waiting(r, a->message, why->message, now);
    if (why->code == HK_UNAVAILABLE)
        note_keyless(&r->sealed, a->message->payload, why->message, now);
    hk_events_keyless(r->events, hk_engine_store_now_ms(r->engine, now), a->lane, a->claim, a->message,
                      d->destination);
    hk_engine_on_outcome(r->engine, now, a->slot, &outcome);
    hk_relay_pump_soon(r);
}

/* ---- with it ---- */

bool hk_relay_sealed_open(struct hk_relay_delivery *d, int64_t now)
{
    struct hk_relay *r = d->relay;
    const struct hk_message *m = d->action.message;
    const struct hk_codec_of of = {
        .keys = r->options.config->keys, .encoding = m->encoding, .message_id = m->message_id};
    struct hk_err err = {.message = ""};
    struct hk_str plain;
    if (!hk_encoding_is_sealed(m->encoding))
        return true;
    enum hk_code rc = hk_codec_open(&of, m->payload, &d->opened, &plain, &err);
    if (rc == HK_OK) {
        d->onward = *m;
        d->onward.payload = plain;
        d->action.message = &d->onward;
        d->sealed = true;
        return true;
    }
    hk_pool_wipe(&d->opened);
    if (rc != HK_INVALID) {
        put_off(d, &err, now);
        return false;
    }
    struct hk_outcome damaged = {
        .facts = {.fault = HK_FAULT_INVALID_PAYLOAD, .error = hk_str_of(err.message)}};
    hk_engine_on_outcome(r->engine, now, d->action.slot, &damaged);
    hk_relay_pump_soon(r);
    return false;
}

bool hk_relay_hides(const struct hk_relay_delivery *d)
{
    return d->sealed || d->relay->options.config->seal.mode == HK_SEAL_REST;
}

static struct hk_str cut(struct hk_str text, size_t most)
{
    return (struct hk_str){text.ptr, text.len < most ? text.len : most};
}

void hk_relay_sealed_words(struct hk_relay_delivery *d, struct hk_outcome *outcome)
{
    struct hk_keyring *keys = d->relay->options.config->keys;
    struct hk_str id = d->action.message->message_id;
    outcome->sealed_headers =
        hk_words_seal(keys, id, cut(outcome->response_headers, HK_KEPT_HEADERS), &d->words);
    outcome->sealed_body = hk_words_seal(keys, id, cut(outcome->facts.body, HK_KEPT_BODY), &d->words);
}

struct hk_facts hk_relay_sealed_facts(const struct hk_relay_delivery *d, const struct hk_facts *facts)
{
    struct hk_facts shown = *facts;
    if (!hk_relay_hides(d))
        return shown;
    shown.body = (struct hk_str){"", 0};
    shown.headers = NULL;
    shown.n_headers = 0;
    if (facts->status || facts->fault == HK_FAULT_PROTOCOL) /* else the words are our own */
        shown.error = facts->status ? (struct hk_str){"", 0} : hk_str_of("the answer was not valid");
    return shown;
}

void hk_relay_sealed_end(struct hk_relay_delivery *d)
{
    hk_pool_fini(&d->words);
    if (d->sealed)
        hk_pool_wipe(&d->opened);
}
