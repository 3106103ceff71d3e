/* SPDX-License-Identifier: Apache-2.0 */
/* An engine on strings: the test gives the store's answers word by word, where the modelled store of engine_rig.h would give
 * only sensible ones. Whatever the test does not care for is answered as by an empty, obedient store. Private to tests. */
#ifndef HK_TESTS_ENGINE_PUPPET_H
#define HK_TESTS_ENGINE_PUPPET_H

#include "base/str.h"
#include "check.h"
#include "core/engine_impl.h"

enum {
    PUPPET_AHEAD_MS = 1000000, /* the store's clock */
    PUPPET_ROWS = 64,
    PUPPET_LEASE_MS = 6000
};

struct puppet {
    struct hk_engine_options options;
    struct hk_engine_dest dests[4];
    struct hk_policy *policy;
    struct hk_engine *engine;
    int64_t now_ms;
    struct hk_action a; /* the last one */
    struct hk_poll poll;
    const struct hk_held_key *held;
    size_t n_held;
    struct hk_message rows[PUPPET_ROWS]; /* what scans have shown, and claims give */
    size_t n_rows;
    uint32_t slots[PUPPET_ROWS]; /* of sends */
    size_t n_sends, n_aborts;
    bool gone; /* what is claimed is not there any more */
    bool stale[PUPPET_ROWS];
};

static inline struct puppet *puppet_new(size_t n_dests)
{
    static const char *const names[] = {"a", "b", "c", "d"};
    struct puppet *p = calloc(1, sizeof *p);
    if (!p)
        abort();
    assert_int_equal(hk_policy_new("standard", &p->policy, NULL), HK_OK);
    for (size_t i = 0; i < n_dests; i++)
        p->dests[i] = (struct hk_engine_dest){.name = names[i], .policy = p->policy, .ordered = true};
    p->options = (struct hk_engine_options){.dests = p->dests,
                                            .n_dests = n_dests,
                                            .concurrency = 8,
                                            .batch = 16,
                                            .batch_bytes = 1000000,
                                            .max_payload_bytes = 100,
                                            .lease_ms = PUPPET_LEASE_MS,
                                            .poll_min_ms = 5,
                                            .poll_max_ms = 50};
    p->poll = (struct hk_poll){.changed = true, .last_id = HK_FIRST_ID};
    p->now_ms = 5000;
    return p;
}

static inline void puppet_start(struct puppet *p)
{
    assert_int_equal(hk_engine_new(&p->options, p->now_ms, &p->engine, NULL), HK_OK);
}

static inline void puppet_free(struct puppet *p)
{
    hk_engine_free(p->engine);
    hk_policy_free(p->policy);
    free(p);
}

static inline int64_t puppet_store_now(const struct puppet *p)
{
    return p->now_ms + PUPPET_AHEAD_MS;
}

static inline struct hk_head row(int64_t id, const char *dest, const char *key)
{
    return (struct hk_head){.source = HK_FROM_OUTBOX,
                            .id = id,
                            .destination = hk_str_of(dest),
                            .event_type = hk_str_of("order"),
                            .key = hk_str_of(key)};
}

static inline struct hk_head retry_row(int64_t id, const char *dest, const char *key)
{
    struct hk_head head = row(id, dest, key);
    head.source = HK_FROM_RETRY;
    head.key_first = true;
    return head;
}

/* ---- answers ---- */

static inline void puppet_heads(struct puppet *p, struct hk_head *heads, size_t n, bool more)
{
    assert_int_equal(p->a.kind, HK_ACT_SCAN);
    for (size_t i = 0; i < n; i++) {
        assert_true(p->n_rows < PUPPET_ROWS);
        p->rows[p->n_rows++] = (struct hk_message){.source = heads[i].source,
                                                   .id = heads[i].id,
                                                   .message_id = hk_str_of("m"),
                                                   .destination = heads[i].destination,
                                                   .event_type = heads[i].event_type,
                                                   .key = heads[i].key,
                                                   .life = 1};
    }
    struct hk_heads answer = {.items = heads,
                              .n = n,
                              .more = more,
                              .last_id = n ? heads[n - 1].id : p->a.scan.after_id,
                              .last_due_ms = puppet_store_now(p),
                              .now_ms = puppet_store_now(p)};
    hk_engine_on_scan(p->engine, p->now_ms, HK_OK, &p->a.purpose, &answer);
}

static inline const struct hk_message *puppet_row(const struct puppet *p, const struct hk_want *claim)
{
    for (size_t i = p->n_rows; i-- > 0;)
        if (p->rows[i].source == claim->source && p->rows[i].id == claim->id)
            return &p->rows[i];
    return NULL;
}

static inline void puppet_exchange(struct puppet *p, enum hk_code rc)
{
    static const struct hk_grant none[8];
    struct hk_message messages[PUPPET_ROWS];
    struct hk_grant grants[8];
    memcpy(grants, none, sizeof grants);
    struct hk_exchanged done = {
        .now_ms = puppet_store_now(p), .claim = 1, .messages = messages, .grants = grants, .stale = p->stale};
    assert_int_equal(p->a.kind, HK_ACT_EXCHANGE);
    for (size_t i = 0; i < p->a.exchange.n_wants && !p->gone; i++) {
        const struct hk_message *found = puppet_row(p, &p->a.exchange.wants[i]);
        if (found)
            messages[done.n_messages++] = *found;
    }
    hk_engine_on_exchange(p->engine, p->now_ms, rc, &done);
}

static inline void puppet_poll(struct puppet *p)
{
    p->poll.now_ms = puppet_store_now(p);
    hk_engine_on_poll(p->engine, p->now_ms, HK_OK, &p->poll);
    p->poll.late = p->poll.reset = false; /* is said once */
}

/* As an empty, obedient store would. */
static inline void puppet_serve(struct puppet *p)
{
    switch (p->a.kind) {
    case HK_ACT_ACQUIRE:
        hk_engine_on_acquired(p->engine, p->now_ms, HK_OK, 1, puppet_store_now(p));
        break;
    case HK_ACT_POLL:
        puppet_poll(p);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(p->engine, p->now_ms, HK_OK, p->held, p->n_held);
        break;
    case HK_ACT_SCAN:
        puppet_heads(p, NULL, 0, false);
        break;
    case HK_ACT_EXCHANGE:
        puppet_exchange(p, HK_OK);
        break;
    case HK_ACT_SEND:
        p->slots[p->n_sends++] = p->a.slot;
        break;
    case HK_ACT_ABORT:
        p->n_aborts++;
        break;
    case HK_ACT_WAIT:
        assert_true(p->a.wake_ms > p->now_ms && p->a.wake_ms < p->now_ms + 100000);
        p->now_ms = p->a.wake_ms;
        break;
    case HK_ACT_PAUSE:
    case HK_ACT_RELEASE:
    case HK_ACT_STOPPED:
        hk_engine_on_done(p->engine, p->now_ms, HK_OK);
        break;
    }
}

/* Goes on until the engine wants this, and leaves the answer to the test. */
static inline void until(struct puppet *p, enum hk_action_kind kind)
{
    for (int n = 0; n < 10000; n++) {
        hk_engine_next(p->engine, p->now_ms, &p->a);
        if (p->a.kind == kind)
            return;
        puppet_serve(p);
    }
    fail_msg("the engine never wants it");
}

static inline void until_scan(struct puppet *p, enum hk_engine_scan kind)
{
    for (int n = 0; n < 10000; n++) {
        until(p, HK_ACT_SCAN);
        if (p->a.purpose.kind == kind)
            return;
        puppet_serve(p);
    }
    fail_msg("the engine never scans for it");
}

/* Fresh rows, and all that comes of them up to the first wait. */
static inline void give_fresh(struct puppet *p, struct hk_head *heads, size_t n)
{
    p->poll.last_id = heads[n - 1].id;
    until_scan(p, HK_ENGINE_SCAN_FRESH);
    puppet_heads(p, heads, n, false);
    until(p, HK_ACT_WAIT);
}

static inline void puppet_sent(struct puppet *p, uint32_t slot, int status)
{
    struct hk_outcome outcome = {.facts = {.status = status}};
    hk_engine_on_outcome(p->engine, p->now_ms, slot, &outcome);
}

#endif
