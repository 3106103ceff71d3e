/* SPDX-License-Identifier: Apache-2.0 */
/* A discrete-event simulation: a binary heap of (time, client), one entry per client that still has something
 * to do. Counts go into slots of 100 ms; every figure is taken from the slots afterwards. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "desk/herd.h"

enum {
    SLOTS_PER_S = 1000 / HK_HERD_SLOT_MS
};

/* Streams of the seed: one for the starts, so that both runs of a comparison start alike; then one per client. */
#define STREAM_START  UINT64_C(0x10ad)
#define STREAM_CLIENT UINT64_C(0x100000000)

struct event {
    uint64_t at_ms;
    uint32_t client;
};

struct client {
    struct hk_history history;
    struct hk_rng rng;
};

struct sim {
    const struct hk_herd_options *options;
    struct client *clients;
    struct event *heap;
    uint32_t n_heap;
    size_t room; /* of load->slots */
    double tokens, burst;
    uint64_t token_slot; /* the slot that `tokens` belongs to */
    struct hk_herd load;
};

/* Clients break ties, so that a run does not depend on how the heap is built. */
static bool earlier(const struct event *a, const struct event *b)
{
    return a->at_ms != b->at_ms ? a->at_ms < b->at_ms : a->client < b->client;
}

static void sift_down(struct sim *sim, uint32_t at)
{
    struct event moving = sim->heap[at];

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= sim->n_heap)
            break;
        if (child + 1 < sim->n_heap && earlier(&sim->heap[child + 1], &sim->heap[child]))
            child++;
        if (!earlier(&sim->heap[child], &moving))
            break;
        sim->heap[at] = sim->heap[child];
        at = child;
    }
    sim->heap[at] = moving;
}

static void drop_first(struct sim *sim)
{
    sim->heap[0] = sim->heap[--sim->n_heap];
    if (sim->n_heap > 0)
        sift_down(sim, 0);
}

static enum hk_code count_attempt(struct sim *sim, uint64_t at_ms)
{
    size_t slot = (size_t)(at_ms / HK_HERD_SLOT_MS);

    if (slot >= sim->room) {
        size_t room = slot + slot / 2 + 1024;
        uint32_t *slots = hk_mem_resize(sim->load.slots, room * sizeof slots[0]);
        if (slots == NULL)
            return HK_NOMEM;
        memset(slots + sim->room, 0, (room - sim->room) * sizeof slots[0]);
        sim->load.slots = slots;
        sim->room = room;
    }
    sim->load.slots[slot]++;
    sim->load.n_slots = slot + 1; /* events come in order of time */
    sim->load.last_ms = at_ms;
    sim->load.attempts++;
    return HK_OK;
}

/* May this attempt be served? A bucket that is filled at each slot's start and holds one slot's worth. */
static bool take_token(struct sim *sim, uint64_t at_ms)
{
    uint64_t slot = (at_ms - sim->options->outage_ms) / HK_HERD_SLOT_MS;
    double gain = (double)(slot - sim->token_slot) * sim->options->capacity_per_s / SLOTS_PER_S;

    sim->tokens = fmin(sim->burst, sim->tokens + gain);
    sim->token_slot = slot;
    if (sim->tokens < 1.0 - 1e-9)
        return false;
    sim->tokens -= 1.0;
    return true;
}

static void note_served(struct sim *sim, uint64_t at_ms)
{
    struct hk_herd *load = &sim->load;
    uint64_t clients = sim->options->clients;
    uint64_t since_ms = at_ms - sim->options->outage_ms;

    load->delivered++;
    if (load->half_ms == UINT64_MAX && UINT64_C(2) * load->delivered >= clients)
        load->half_ms = since_ms;
    if (load->most_ms == UINT64_MAX && UINT64_C(100) * load->delivered >= UINT64_C(99) * clients)
        load->most_ms = since_ms;
    if (load->delivered == clients)
        load->all_ms = since_ms;
}

/* The client at the heap's top makes its attempt. */
static enum hk_code step(struct sim *sim)
{
    static const struct hk_facts refused = {.fault = HK_FAULT_CONNECT};
    static const struct hk_facts overloaded = {.status = 503};
    const struct hk_herd_options *options = sim->options;
    struct event *first = &sim->heap[0];
    struct client *client = &sim->clients[first->client];
    struct hk_decision decision;
    uint64_t now_ms = first->at_ms;
    bool up = now_ms >= options->outage_ms;

    enum hk_code rc = count_attempt(sim, now_ms);
    if (rc != HK_OK)
        return rc;
    if (up && take_token(sim, now_ms)) {
        note_served(sim, now_ms);
        drop_first(sim);
        return HK_OK;
    }
    hk_policy_decide(options->policy, NULL, NULL, &client->history, up ? &overloaded : &refused,
                     (int64_t)now_ms, (int64_t)now_ms, &client->rng, &decision);
    if (decision.verdict == HK_RETRY && now_ms + decision.wait_ms < options->outage_ms + HK_HERD_HORIZON_MS) {
        first->at_ms = now_ms + decision.wait_ms;
        sift_down(sim, 0);
        return HK_OK;
    }
    if (decision.verdict == HK_RETRY)
        sim->load.waiting++;
    else
        sim->load.dead++;
    drop_first(sim);
    return HK_OK;
}

static enum hk_code check(const struct hk_herd_options *o, struct hk_err *err)
{
    if (o->clients < 1 || o->clients > HK_HERD_CLIENTS_MAX)
        return hk_err_set(err, HK_RANGE, "clients must be from 1 to %d", HK_HERD_CLIENTS_MAX);
    if (o->outage_ms > HK_HERD_OUTAGE_MAX || o->spread_ms > HK_HERD_OUTAGE_MAX)
        return hk_err_set(err, HK_RANGE, "outage and spread must be at most a day");
    if (!(o->capacity_per_s > 0.0) || o->capacity_per_s > 1e9)
        return hk_err_set(err, HK_RANGE, "capacity must be above 0 and at most 1e9 a second");
    return HK_OK;
}

static enum hk_code sim_init(struct sim *sim, const struct hk_herd_options *options)
{
    struct hk_rng starts;

    *sim = (struct sim){.options = options};
    sim->load.half_ms = sim->load.most_ms = sim->load.all_ms = UINT64_MAX;
    sim->burst = fmax(1.0, options->capacity_per_s / SLOTS_PER_S);
    sim->tokens = sim->burst;
    sim->clients = hk_mem_zalloc(options->clients, sizeof sim->clients[0]);
    sim->heap = hk_mem_zalloc(options->clients, sizeof sim->heap[0]);
    if (sim->clients == NULL || sim->heap == NULL)
        return HK_NOMEM;
    hk_rng_seed(&starts, options->seed, STREAM_START);
    for (uint32_t i = 0; i < options->clients; i++) {
        uint64_t at_ms = options->spread_ms == 0 ? 0 : hk_rng_upto(&starts, options->spread_ms - 1);
        sim->heap[i] = (struct event){at_ms, i};
        sim->clients[i].history.first_attempt_ms = (int64_t)at_ms;
        hk_rng_seed(&sim->clients[i].rng, options->seed, STREAM_CLIENT + i);
    }
    sim->n_heap = options->clients;
    for (uint32_t i = sim->n_heap / 2; i > 0; i--)
        sift_down(sim, i - 1);
    return HK_OK;
}

uint64_t hk_herd_between(const struct hk_herd *load, uint64_t from_ms, uint64_t to_ms)
{
    size_t to = (size_t)(to_ms / HK_HERD_SLOT_MS);
    uint64_t sum = 0;

    for (size_t i = (size_t)(from_ms / HK_HERD_SLOT_MS); i < to && i < load->n_slots; i++)
        sum += load->slots[i];
    return sum;
}

/* The most within any second of [from, to): a window of ten slots, moved by one. */
static uint32_t peak(const struct hk_herd *load, size_t from, size_t to)
{
    uint32_t sum = 0, best = 0;

    if (to > load->n_slots)
        to = load->n_slots;
    for (size_t i = from; i < to; i++) {
        sum += load->slots[i];
        if (i >= from + SLOTS_PER_S)
            sum -= load->slots[i - SLOTS_PER_S];
        if (sum > best)
            best = sum;
    }
    return best;
}

static void take_figures(struct hk_herd *load, uint64_t outage_ms)
{
    /* a slot that the outage ends within counts as down */
    size_t up = (size_t)((outage_ms + HK_HERD_SLOT_MS - 1) / HK_HERD_SLOT_MS);
    uint64_t end_ms = load->most_ms == UINT64_MAX ? load->last_ms : outage_ms + load->most_ms;
    uint64_t from_ms = (uint64_t)up * HK_HERD_SLOT_MS;

    load->peak_down = peak(load, 0, up);
    load->peak_up = peak(load, up, load->n_slots);
    if (load->peak_up == 0 || end_ms < from_ms)
        return;
    uint64_t until_ms = (end_ms / HK_HERD_SLOT_MS + 1) * HK_HERD_SLOT_MS;
    double seconds = fmax(1.0, (double)(until_ms - from_ms) / 1000.0);
    double mean = (double)hk_herd_between(load, from_ms, until_ms) / seconds;
    load->herding = mean > 0 ? (double)load->peak_up / mean : 0;
}

enum hk_code hk_herd_run(const struct hk_herd_options *options, struct hk_herd *out_load, struct hk_err *err)
{
    struct sim sim = {.options = options};
    enum hk_code rc = check(options, err);

    if (rc != HK_OK)
        return rc;
    rc = sim_init(&sim, options);
    while (rc == HK_OK && sim.n_heap > 0 && sim.load.attempts < HK_HERD_ATTEMPTS_MAX)
        rc = step(&sim);
    if (rc == HK_OK && sim.n_heap > 0)
        rc = hk_err_set(err, HK_TOOBIG,
                        "this makes more than %" PRIu64 " attempts: take fewer clients or a shorter outage",
                        HK_HERD_ATTEMPTS_MAX);
    else if (rc != HK_OK)
        (void)hk_err_set(err, rc, "not enough memory for %" PRIu32 " clients", options->clients);
    hk_mem_free(sim.clients);
    hk_mem_free(sim.heap);
    if (rc != HK_OK) {
        hk_herd_fini(&sim.load);
        return rc;
    }
    take_figures(&sim.load, options->outage_ms);
    *out_load = sim.load;
    return HK_OK;
}

void hk_herd_fini(struct hk_herd *load)
{
    hk_mem_free(load->slots);
    load->slots = NULL;
    load->n_slots = 0;
}

/* The Azure forms bring their own randomness, and no other kind has their curve: a list of their middle waits
 * has. It reaches the cap long before it ends. */
static struct hk_backoff steady(const struct hk_backoff *b)
{
    struct hk_backoff list = {.kind = HK_BACKOFF_LIST, .cap_ms = b->cap_ms, .n_waits = HK_BACKOFF_WAITS_MAX};

    if (!hk_backoff_is_azure(b->kind))
        return *b;
    for (uint32_t i = 0; i < HK_BACKOFF_WAITS_MAX; i++)
        list.waits_ms[i] = hk_backoff_ceiling_ms(b, i + 1);
    return list;
}

static enum hk_code steady_classes(struct hk_policy *policy, struct hk_err *err)
{
    enum hk_code rc = HK_OK;

    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES && rc == HK_OK; c++) {
        struct hk_class_rule rule = *hk_policy_class(policy, (enum hk_class)c);
        rule.has_jitter = false;
        rule.backoff = rule.has_backoff ? steady(&rule.backoff) : rule.backoff;
        rc = hk_policy_set_class(policy, (enum hk_class)c, &rule, err);
    }
    return rc;
}

enum hk_code hk_herd_without_jitter(const struct hk_policy *policy, struct hk_policy **out_policy,
                                    struct hk_err *err)
{
    const struct hk_jitter none = {.kind = HK_JITTER_NONE};
    struct hk_backoff backoff = steady(hk_policy_backoff(policy));
    struct hk_policy *copy = NULL;

    enum hk_code rc = hk_policy_copy(policy, &copy, err);
    if (rc == HK_OK)
        rc = steady_classes(copy, err);
    if (rc == HK_OK)
        rc = hk_policy_set_backoff(copy, &backoff, &none, err);
    if (rc != HK_OK) {
        hk_policy_free(copy);
        return rc;
    }
    *out_policy = copy;
    return HK_OK;
}

/* Every class gets it, but those of the Azure forms, which have their own. */
static enum hk_code spread_classes(struct hk_policy *policy, struct hk_err *err)
{
    enum hk_code rc = HK_OK;

    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES && rc == HK_OK; c++) {
        struct hk_class_rule rule = *hk_policy_class(policy, (enum hk_class)c);
        const struct hk_backoff *b = rule.has_backoff ? &rule.backoff : hk_policy_backoff(policy);
        if (hk_backoff_is_azure(b->kind))
            continue;
        rule.has_jitter = true;
        rule.jitter = (struct hk_jitter){.kind = HK_JITTER_FULL};
        rc = hk_policy_set_class(policy, (enum hk_class)c, &rule, err);
    }
    return rc;
}

enum hk_code hk_herd_with_full_jitter(const struct hk_policy *policy, struct hk_policy **out_policy,
                                      struct hk_err *err)
{
    struct hk_policy *copy = NULL;
    enum hk_code rc = hk_policy_copy(policy, &copy, err);

    if (rc == HK_OK)
        rc = spread_classes(copy, err);
    if (rc != HK_OK) {
        hk_policy_free(copy);
        return rc;
    }
    *out_policy = copy;
    return HK_OK;
}

bool hk_herd_has_jitter(const struct hk_policy *policy)
{
    const struct hk_class_rule *transient = hk_policy_class(policy, HK_CLASS_TRANSIENT);
    const struct hk_backoff *b = transient->has_backoff ? &transient->backoff : hk_policy_backoff(policy);
    const struct hk_jitter *j = transient->has_jitter ? &transient->jitter : hk_policy_jitter(policy);

    return hk_backoff_is_azure(b->kind) || j->kind != HK_JITTER_NONE;
}
