/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the engine play with: one relay on a modelled store that answers at once, destinations that the test
 * answers for, and a clock. Private to them; not a header of the tree. */
#ifndef HK_TESTS_ENGINE_RIG_H
#define HK_TESTS_ENGINE_RIG_H

#include <stdbool.h>
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "core/engine.h"
#include "model_store.h"

enum {
    LEASE_MS = 6000,
    MAX_MESSAGES = 600,
    MAX_SENDS = 700,
    CONCURRENCY = 8
};

struct flying {
    uint32_t slot;
    char m[HK_MODEL_TEXT];
    size_t dest;
    uint32_t attempt;
    bool over;
};

/* One relay, its store and its clock. */
struct rig {
    struct hk_engine_options options;
    struct hk_engine_dest dests[4];
    struct hk_policy *policy;
    struct hk_engine *engine;
    struct hk_model *model;
    struct hk_model_handle handle;
    struct hk_model_msg messages[MAX_MESSAGES];
    size_t n_messages;
    struct flying sends[MAX_SENDS];
    size_t n_sends;
    struct hk_buf log;
    int64_t now_ms, lane;
    int64_t set_back_ms;            /* by so much the store's time was set back */
    enum hk_code refuse;            /* what the store says instead of doing it */
    size_t rows_of_a;               /* heads of destination "a" that were read */
    uint32_t least_of_a, most_of_a; /* that a scan of its own asked for */
    size_t calls, aborts, pauses, held_reads;
    int64_t held_took_ms;    /* how long the store takes to read the held keys */
    uint32_t tokens, leaves; /* what the store has to give, to send and to probe (engine_quota.c) */
    size_t asked;            /* quotas */
    struct hk_grant grants[8];
    int64_t told_until_ms; /* of the last circuit */
    size_t told;
    struct hk_action last;
};

static inline int64_t store_now(void *arg)
{
    const struct rig *rig = arg;
    return rig->now_ms + 1000000 - rig->set_back_ms;
}

static inline struct rig *rig_new(size_t n_dests)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct rig *rig = calloc(1, sizeof *rig);
    assert_non_null(rig);
    hk_buf_init(&rig->log, 1 << 24);
    assert_int_equal(hk_policy_new("standard", &rig->policy, NULL), HK_OK);
    struct hk_limits limits = *hk_policy_limits(rig->policy);
    limits.max_attempts = 3;
    limits.timeout_ms = 1000;
    assert_int_equal(hk_policy_set_limits(rig->policy, &limits, NULL), HK_OK);
    struct hk_backoff backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = 100, .cap_ms = 100};
    struct hk_jitter jitter = {.kind = HK_JITTER_NONE};
    assert_int_equal(hk_policy_set_backoff(rig->policy, &backoff, &jitter, NULL), HK_OK);
    for (size_t i = 0; i < n_dests; i++)
        rig->dests[i] = (struct hk_engine_dest){.name = names[i], .policy = rig->policy};
    rig->options = (struct hk_engine_options){.dests = rig->dests,
                                              .n_dests = n_dests,
                                              .concurrency = CONCURRENCY,
                                              .batch = 16,
                                              .batch_bytes = 1000000,
                                              .max_payload_bytes = 100,
                                              .lease_ms = LEASE_MS,
                                              .poll_min_ms = 5,
                                              .poll_max_ms = 50};
    struct hk_model_options options = {.log = &rig->log, .now_ms = store_now, .now_arg = rig};
    rig->model = hk_model_new(&options);
    rig->now_ms = 5000;
    return rig;
}

/* On a store that gives ids at the insert, or as `options` say otherwise. */
static inline struct rig *rig_new_on(size_t n_dests, struct hk_model_options options)
{
    struct rig *rig = rig_new(n_dests);
    hk_model_free(rig->model);
    options.log = &rig->log;
    options.now_ms = store_now;
    options.now_arg = rig;
    rig->model = hk_model_new(&options);
    return rig;
}

static inline void rig_start(struct rig *rig)
{
    rig->handle = (struct hk_model_handle){.polled = false};
    assert_int_equal(hk_engine_new(&rig->options, rig->now_ms, &rig->engine, NULL), HK_OK);
}

static inline void rig_free(struct rig *rig)
{
    hk_engine_free(rig->engine);
    hk_model_free(rig->model);
    hk_policy_free(rig->policy);
    hk_buf_fini(&rig->log);
    free(rig);
}

/* ---- the store's part ---- */

static inline void give_tokens(struct rig *rig, const struct hk_exchange *x, struct hk_exchanged *done)
{
    done->grants = rig->grants;
    for (size_t i = 0; i < x->n_quotas; i++) {
        uint32_t *has = x->quotas[i].probe ? &rig->leaves : &rig->tokens;
        uint32_t n = *has < x->quotas[i].want ? *has : x->quotas[i].want;
        *has -= n;
        rig->grants[i] = (struct hk_grant){.n = n, .ready_ms = store_now(rig) + 100};
        rig->asked++;
    }
    for (size_t i = 0; i < x->n_circuits; i++) {
        rig->told_until_ms = x->circuits[i].open_until_ms;
        rig->told++;
    }
}

static inline void note_limit(struct rig *rig, uint32_t limit)
{
    if (!rig->least_of_a || limit < rig->least_of_a)
        rig->least_of_a = limit;
    if (limit > rig->most_of_a)
        rig->most_of_a = limit;
}

static inline void call_store(struct rig *rig, const struct hk_action *a)
{
    struct hk_model_reply reply = {.rc = rig->refuse};
    rig->calls++;
    switch (rig->refuse == HK_OK ? a->kind : HK_ACT_WAIT) {
    case HK_ACT_ACQUIRE:
        hk_model_acquire(rig->model, "relay", LEASE_MS, &reply);
        rig->lane = reply.lane;
        break;
    case HK_ACT_POLL:
        hk_model_poll(rig->model, &rig->handle, &reply);
        break;
    case HK_ACT_HELD_KEYS:
        hk_model_held_keys(rig->model, &rig->handle, &reply);
        rig->held_reads++;
        rig->now_ms += rig->held_took_ms;
        break;
    case HK_ACT_SCAN:
        hk_model_scan(rig->model, &rig->handle, &a->scan, &reply);
        for (size_t i = 0; i < reply.heads.n; i++)
            rig->rows_of_a += hk_str_eq(reply.heads.items[i].destination, hk_str_of("a"));
        if (a->scan.destination && strcmp(a->scan.destination, "a") == 0)
            note_limit(rig, a->scan.limit);
        break;
    case HK_ACT_EXCHANGE:
        hk_model_exchange(rig->model, &rig->handle, &a->exchange, &reply);
        give_tokens(rig, &a->exchange, &reply.exchanged);
        break;
    case HK_ACT_PAUSE:
        hk_model_pause(rig->model, a->dest_name, true, "relay", &reply);
        rig->pauses++;
        break;
    case HK_ACT_RELEASE:
        hk_model_release(rig->model, rig->lane, &reply);
        break;
    default:
        break;
    }
    switch (a->kind) {
    case HK_ACT_ACQUIRE:
        hk_engine_on_acquired(rig->engine, rig->now_ms, reply.rc, reply.lane, reply.now_ms);
        break;
    case HK_ACT_POLL:
        hk_engine_on_poll(rig->engine, rig->now_ms, reply.rc, &reply.poll);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(rig->engine, rig->now_ms, reply.rc, reply.keys, reply.n_keys);
        break;
    case HK_ACT_SCAN:
        hk_engine_on_scan(rig->engine, rig->now_ms, reply.rc, &a->purpose, &reply.heads);
        break;
    case HK_ACT_EXCHANGE:
        hk_engine_on_exchange(rig->engine, rig->now_ms, reply.rc, &reply.exchanged);
        break;
    default:
        hk_engine_on_done(rig->engine, rig->now_ms, reply.rc);
        break;
    }
    hk_model_reply_free(&reply);
    assert_null(hk_model_complaint(rig->model));
}

/* Does what the engine says until it waits. */
static inline void run(struct rig *rig)
{
    for (int n = 0; n < 10000; n++) {
        hk_engine_next(rig->engine, rig->now_ms, &rig->last);
        const struct hk_action *a = &rig->last;
        if (a->kind == HK_ACT_WAIT || a->kind == HK_ACT_STOPPED)
            return;
        if (a->kind == HK_ACT_ABORT) {
            rig->aborts++;
        } else if (a->kind == HK_ACT_SEND) {
            assert_true(rig->n_sends < MAX_SENDS);
            struct flying *send = &rig->sends[rig->n_sends++];
            *send = (struct flying){.slot = a->slot, .dest = a->dest, .attempt = a->attempt};
            assert_true(hk_str_copy(send->m, sizeof send->m, a->message->message_id));
        } else {
            call_store(rig, a);
        }
    }
    fail_msg("the engine has no end of things to do");
}

/* Time passes as the engine's own timers say. */
static inline void wait_ms(struct rig *rig, int64_t ms)
{
    int64_t until = rig->now_ms + ms;
    run(rig);
    while (rig->last.kind == HK_ACT_WAIT && rig->last.wake_ms < until) {
        assert_true(rig->last.wake_ms > rig->now_ms);
        rig->now_ms = rig->last.wake_ms;
        run(rig);
    }
    rig->now_ms = until;
    run(rig);
}

/* ---- the destinations' part ---- */

static inline struct flying *find(struct rig *rig, const char *m)
{
    for (size_t i = rig->n_sends; i-- > 0;)
        if (strcmp(rig->sends[i].m, m) == 0 && !rig->sends[i].over)
            return &rig->sends[i];
    return NULL;
}

/* The same, when the test knows that it is there: the compiler cannot know that cmocka's assertion does not return. */
static inline struct flying *found(struct rig *rig, const char *m)
{
    struct flying *send = find(rig, m);
    if (!send)
        abort();
    return send;
}

static inline bool in_flight(struct rig *rig, const char *m)
{
    return find(rig, m) != NULL;
}

static inline void hear(struct rig *rig, struct flying *send, struct hk_facts facts)
{
    struct hk_outcome outcome = {.facts = facts};
    if (!send)
        abort(); /* the tests assert it before; the compiler cannot know that cmocka's assertion does not return */
    send->over = true;
    hk_engine_on_outcome(rig->engine, rig->now_ms, send->slot, &outcome);
}

static inline void end_send(struct rig *rig, struct flying *send, struct hk_facts facts)
{
    hear(rig, send, facts);
    run(rig);
}

static inline void answer_facts(struct rig *rig, const char *m, struct hk_facts facts)
{
    struct flying *send = find(rig, m);
    assert_non_null(send);
    end_send(rig, send, facts);
}

static inline void answer(struct rig *rig, const char *m, int status)
{
    answer_facts(rig, m, (struct hk_facts){.status = status});
}

/* All that is in flight to the destination is answered so within one moment. */
static inline void answer_at_once(struct rig *rig, size_t dest, int status)
{
    for (size_t i = 0; i < rig->n_sends; i++)
        if (!rig->sends[i].over && rig->sends[i].dest == dest)
            hear(rig, &rig->sends[i], (struct hk_facts){.status = status});
    run(rig);
}

/* Everything in flight to the destination is answered so, until nothing is. */
static inline void answer_all(struct rig *rig, size_t dest, int status)
{
    for (size_t i = 0; i < rig->n_sends; i++)
        if (!rig->sends[i].over && rig->sends[i].dest == dest)
            end_send(rig, &rig->sends[i], (struct hk_facts){.status = status});
}

static inline size_t count_flying(const struct rig *rig, size_t dest)
{
    size_t n = 0;
    for (size_t i = 0; i < rig->n_sends; i++)
        n += !rig->sends[i].over && rig->sends[i].dest == dest;
    return n;
}

/* ---- the application's part ---- */

static inline struct hk_model_msg *put(struct rig *rig, const char *m, const char *dest, const char *key)
{
    assert_true(rig->n_messages < MAX_MESSAGES);
    struct hk_model_msg *msg = &rig->messages[rig->n_messages++];
    assert_true(hk_str_copy(msg->message_id, sizeof msg->message_id, hk_str_of(m)));
    assert_true(hk_str_copy(msg->destination, sizeof msg->destination, hk_str_of(dest)));
    assert_true(hk_str_copy(msg->key, sizeof msg->key, hk_str_of(key)));
    assert_true(hk_str_copy(msg->event_type, sizeof msg->event_type, hk_str_of("order")));
    assert_true(hk_str_copy(msg->payload, sizeof msg->payload, hk_str_of("{}")));
    msg->payload_bytes = 2;
    return msg;
}

static inline void commit(struct rig *rig, const struct hk_model_msg *msg)
{
    hk_model_commit(rig->model, hk_model_insert(rig->model, msg));
}

static inline void put_many(struct rig *rig, const char *prefix, size_t n, const char *dest)
{
    for (size_t i = 0; i < n; i++) {
        char name[HK_MODEL_TEXT];
        (void)snprintf(name, sizeof name, "%s%zu", prefix, i);
        commit(rig, put(rig, name, dest, ""));
    }
}

static inline bool logged(const struct rig *rig, const char *m, const char *what)
{
    char needle[96];
    (void)snprintf(needle, sizeof needle, "\"m\":\"%s\"", m);
    struct hk_str rest = hk_buf_str(&rig->log);
    while (rest.len) {
        struct hk_str line = hk_str_cut(&rest, '\n');
        if (hk_str_containsi(line, hk_str_of(needle)) && hk_str_containsi(line, hk_str_of(what)))
            return true;
    }
    return false;
}

static inline bool settled(const struct rig *rig, const char *m, const char *kind)
{
    char what[64];
    (void)snprintf(what, sizeof what, "\"kind\":\"%s\"", kind);
    return logged(rig, m, what);
}

static inline bool dead_of(const struct rig *rig, const char *m, const char *reason)
{
    char what[96];
    (void)snprintf(what, sizeof what, "\"kind\":\"dead\",\"reason\":\"%s\"", reason);
    return logged(rig, m, what);
}

/* The process dies: what it had in hand stays in the store, until its lease is over. */
static inline void crash(struct rig *rig)
{
    hk_engine_free(rig->engine);
    for (size_t i = 0; i < rig->n_sends; i++)
        rig->sends[i].over = true;
    rig->now_ms += LEASE_MS + 1;
    rig_start(rig);
    run(rig);
}

#endif
