/* SPDX-License-Identifier: Apache-2.0 */
/* What destinations that rest cost the engine: 100 destinations that all have work, and 10,000 of which the same 100 have. No store, no
 * network, no clock: the engine's own CPU for a message, its memory, and its CPU while nothing is to be done. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "core/engine.h"

enum {
    ACTIVE = 100,
    MESSAGES = 50000,
    BATCH = 256,
    SLOTS = 3 * BATCH, /* concurrency twice, and a batch */
    IDLE_MS = 60000
};

struct bench {
    struct hk_engine *engine;
    struct hk_engine_dest *dests;
    char (*names)[16];
    size_t n, step; /* each `step`-th has work */
    int64_t now_ms, claims;
    struct hk_action a;
    uint32_t slots[SLOTS];
    size_t n_slots;
    long sent, messages; /* messages: that the outbox has */
    struct hk_head heads[BATCH];
    struct hk_message claimed[BATCH];
    bool stale[SLOTS];
};

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static long rss_kib(void)
{
    char line[256];
    uint64_t pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    struct hk_str rest = hk_str_of(f && fgets(line, sizeof line, f) ? line : "");
    (void)hk_str_cut(&rest, ' ');
    if (rest.ptr)
        (void)!hk_parse_u64(hk_str_cut(&rest, ' '), &pages, NULL);
    if (f)
        (void)fclose(f);
    return (long)pages * 4;
}

static void must(enum hk_code rc)
{
    if (rc != HK_OK)
        abort();
}

static void begin(struct bench *b, size_t n, const struct hk_policy *policy,
                  const struct hk_breaker_options *breaker)
{
    b->n = n;
    b->step = n / ACTIVE;
    b->now_ms = 1;
    b->messages = MESSAGES;
    b->dests = calloc(n, sizeof *b->dests);
    b->names = calloc(n, sizeof *b->names);
    if (!b->dests || !b->names)
        abort();
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(b->names[i], sizeof b->names[i], "d%05u", (unsigned)i % 100000);
        b->dests[i] = (struct hk_engine_dest){.name = b->names[i], .policy = policy, .breaker = breaker};
        hk_limiter_options_init(&b->dests[i].limiter);
    }
    const struct hk_engine_options options = {.dests = b->dests,
                                              .n_dests = n,
                                              .concurrency = BATCH,
                                              .batch = BATCH,
                                              .batch_bytes = 1 << 30,
                                              .max_payload_bytes = 1 << 20,
                                              .lease_ms = 30000,
                                              .poll_min_ms = 2,
                                              .poll_max_ms = 100,
                                              .linger_ms = 2,
                                              .ahead_ms = 20};
    must(hk_engine_new(&options, b->now_ms, &b->engine, NULL));
}

static void end(struct bench *b)
{
    hk_engine_free(b->engine);
    free(b->dests);
    free(b->names);
}

static void answer_scan(struct bench *b)
{
    const struct hk_scan *scan = &b->a.scan;
    struct hk_heads heads = {.items = b->heads, .now_ms = b->now_ms, .last_id = scan->after_id};
    bool fresh = scan->source == HK_FROM_OUTBOX && b->a.purpose.kind != HK_ENGINE_SCAN_SWEEP;
    int64_t id = scan->after_id < 0 ? 1 : scan->after_id + 1;
    for (; fresh && id <= b->messages && heads.n < scan->limit && heads.n < BATCH; id++) {
        const char *name = b->names[(size_t)id % ACTIVE * b->step];
        if (!scan->destination || strcmp(scan->destination, name) == 0)
            b->heads[heads.n++] = (struct hk_head){.source = HK_FROM_OUTBOX,
                                                   .id = id,
                                                   .destination = hk_str_of(name),
                                                   .event_type = hk_str_of("e"),
                                                   .payload_bytes = 10};
    }
    heads.more = fresh && id <= b->messages;
    if (heads.n)
        heads.last_id = b->heads[heads.n - 1].id;
    hk_engine_on_scan(b->engine, b->now_ms, HK_OK, &b->a.purpose, &heads);
}

static void answer_exchange(struct bench *b)
{
    static struct hk_grant none;
    struct hk_exchanged done = {.now_ms = b->now_ms,
                                .claim = ++b->claims,
                                .messages = b->claimed,
                                .grants = &none,
                                .stale = b->stale};
    for (size_t i = 0; i < b->a.exchange.n_wants; i++)
        b->claimed[done.n_messages++] = (struct hk_message){.source = b->a.exchange.wants[i].source,
                                                            .id = b->a.exchange.wants[i].id,
                                                            .message_id = hk_str_of("m"),
                                                            .event_type = hk_str_of("e"),
                                                            .life = 1};
    hk_engine_on_exchange(b->engine, b->now_ms, HK_OK, &done);
}

/* Everything that is on its way is answered; or else time passes. */
static void wait(struct bench *b)
{
    const struct hk_outcome outcome = {.facts = {.status = 200}};
    for (size_t i = 0; i < b->n_slots; i++)
        hk_engine_on_outcome(b->engine, b->now_ms, b->slots[i], &outcome);
    b->sent += (long)b->n_slots;
    b->now_ms = b->n_slots ? b->now_ms + 1 : b->a.wake_ms;
    b->n_slots = 0;
}

static void step(struct bench *b, bool changed)
{
    const struct hk_poll poll = {.changed = changed, .now_ms = b->now_ms, .last_id = b->messages};
    hk_engine_next(b->engine, b->now_ms, &b->a);
    switch (b->a.kind) {
    case HK_ACT_ACQUIRE:
        hk_engine_on_acquired(b->engine, b->now_ms, HK_OK, 1, b->now_ms);
        break;
    case HK_ACT_POLL:
        hk_engine_on_poll(b->engine, b->now_ms, HK_OK, &poll);
        break;
    case HK_ACT_HELD_KEYS:
        hk_engine_on_held_keys(b->engine, b->now_ms, HK_OK, NULL, 0);
        break;
    case HK_ACT_SCAN:
        answer_scan(b);
        break;
    case HK_ACT_EXCHANGE:
        answer_exchange(b);
        break;
    case HK_ACT_SEND:
        b->slots[b->n_slots++] = b->a.slot;
        break;
    case HK_ACT_WAIT:
        wait(b);
        break;
    case HK_ACT_PAUSE:
    case HK_ACT_RELEASE:
    case HK_ACT_ABORT:
    case HK_ACT_STOPPED:
        abort(); /* nobody asks for these */
    }
}

static void run(size_t n, const struct hk_policy *policy, const struct hk_breaker_options *breaker)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    long before_kib = rss_kib();
    begin(b, n, policy, breaker);
    double t = cpu_s();
    while (b->sent < MESSAGES)
        step(b, true);
    double busy_s = cpu_s() - t;
    long after_kib = rss_kib();
    int64_t until_ms = b->now_ms + IDLE_MS;
    t = cpu_s();
    while (b->now_ms < until_ms)
        step(b, false);
    (void)printf(
        "%5zu destinations, %d with work: %.2f us of CPU for a message, %ld KiB; idle %.2f ms of CPU a minute\n",
        n, ACTIVE, busy_s * 1e6 / MESSAGES, after_kib - before_kib, (cpu_s() - t) * 1e3);
    end(b);
    free(b);
}

int main(void)
{
    struct hk_policy *policy = NULL;
    struct hk_breaker_options breaker;
    must(hk_policy_new("standard", &policy, NULL));
    hk_breaker_options_init(&breaker);
    run(ACTIVE, policy, &breaker);
    run(100 * ACTIVE, policy, &breaker);
    hk_policy_free(policy);
    return 0;
}
