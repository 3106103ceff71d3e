/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs: nanoseconds per backoff, classification and decision, beside the cheapest thing that any of
 * them must do (one random draw), and the number of allocations on the way (must be 0).
 * Each figure is the best of several rounds, so that a noisy neighbour shows as little as possible. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <hikyaku/hikyaku.h>

enum {
    ROUNDS = 9,
    CALLS = 400000
};

static uint64_t allocations;

static void *count_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    allocations++;
    return realloc(ptr, bytes);
}

static void count_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

struct subject {
    const struct hk_policy *policy;
    struct hk_backoff backoff;
    struct hk_jitter jitter;
    struct hk_facts facts;
    struct hk_rng rng;
    uint64_t sum; /* keeps the compiler from dropping the work */
};

static double now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static void draw(struct subject *s, uint32_t i)
{
    (void)i;
    s->sum += hk_rng_next(&s->rng);
}

static void backoff(struct subject *s, uint32_t i)
{
    s->sum += hk_backoff_wait_ms(&s->backoff, &s->jitter, 1 + i % 30, 1000, &s->rng);
}

static void classify(struct subject *s, uint32_t i)
{
    char cause[HK_REASON_MAX];
    bool pause;
    (void)i;
    s->sum += (uint64_t)hk_policy_classify(s->policy, &s->facts, cause, &pause);
}

static void decide(struct subject *s, uint32_t i)
{
    struct hk_history history = {
        .attempts = i % 20, .charged = i % 20, .failures = {[HK_CLASS_TRANSIENT] = i % 20}};
    struct hk_decision d;
    hk_policy_decide(s->policy, NULL, NULL, &history, &s->facts, 1000, INT64_C(1794731400000), &s->rng, &d);
    s->sum += d.wait_ms;
}

static double best_ns(struct subject *s, void (*step)(struct subject *, uint32_t))
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (uint32_t i = 0; i < CALLS; i++)
            step(s, i);
        double each = (now_ns() - start) / CALLS;
        best = each < best ? each : best;
    }
    return best;
}

static void report(const char *name, double ns, double unit_ns)
{
    printf("%-44s %8.1f ns %8.1fx\n", name, ns, ns / unit_ns);
}

static struct hk_header header(const char *name, const char *value)
{
    return (struct hk_header){{name, strlen(name)}, {value, strlen(value)}};
}

static void bench_backoffs(struct subject *s, double unit_ns)
{
    for (int kind = 0; kind < HK_NBACKOFFS; kind++) {
        s->backoff = (struct hk_backoff){.kind = (enum hk_backoff_kind)kind,
                                         .base_ms = 1000,
                                         .min_ms = 1000,
                                         .cap_ms = 3600000,
                                         .factor = 2,
                                         .max_doublings = 16,
                                         .n_waits = 3,
                                         .waits_ms = {1000, 5000, 60000}};
        s->jitter = (struct hk_jitter){.kind = HK_JITTER_FULL};
        char name[64];
        snprintf(name, sizeof name, "backoff %s", hk_backoff_kind_name(s->backoff.kind));
        report(name, best_ns(s, backoff), unit_ns);
    }
    s->backoff.kind = HK_BACKOFF_EXPONENTIAL;
    s->backoff.factor = 1.7;
    report("backoff exponential, factor 1.7", best_ns(s, backoff), unit_ns);
}

static void bench_decisions(struct subject *s, double unit_ns)
{
    static const struct {
        const char *name;
        struct hk_facts facts;
    } rows[] = {
        {"classify 503", {.status = 503}},
        {"classify timeout", {.fault = HK_FAULT_TIMEOUT}},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        s->facts = rows[i].facts;
        report(rows[i].name, best_ns(s, classify), unit_ns);
    }
    s->facts = (struct hk_facts){.status = 204};
    report("decide 204", best_ns(s, decide), unit_ns);
    s->facts = (struct hk_facts){.status = 503};
    report("decide 503", best_ns(s, decide), unit_ns);
    struct hk_header seconds[] = {header("content-type", "text/plain"), header("retry-after", "120")};
    s->facts = (struct hk_facts){.status = 429, .headers = seconds, .n_headers = 2};
    report("decide 429, Retry-After: seconds", best_ns(s, decide), unit_ns);
    struct hk_header date = header("retry-after", "Sun, 15 Nov 2026 08:49:37 GMT");
    s->facts = (struct hk_facts){.status = 429, .headers = &date, .n_headers = 1};
    report("decide 429, Retry-After: date", best_ns(s, decide), unit_ns);
    struct hk_header limit = header("ratelimit", "\"default\";r=0;t=30");
    s->facts = (struct hk_facts){.status = 429, .headers = &limit, .n_headers = 1};
    report("decide 429, RateLimit", best_ns(s, decide), unit_ns);
}

int main(void)
{
    struct hk_policy *policy = NULL;
    struct hk_err err;
    hk_allocator_set(&(struct hk_allocator){count_resize, count_release, NULL});
    if (hk_policy_new("standard", &policy, &err) != HK_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    struct subject s = {.policy = policy};
    hk_rng_seed(&s.rng, 1, HK_RNG_BACKOFF);
    uint64_t before = allocations;

    double unit_ns = best_ns(&s, draw);
    printf("%-44s %11s %9s\n", "", "each", "to 1 draw");
    report("one random draw", unit_ns, unit_ns);
    bench_backoffs(&s, unit_ns);
    bench_decisions(&s, unit_ns);
    printf("%-44s %8" PRIu64 "\n", "allocations on the way", allocations - before);
    hk_policy_free(policy);
    return allocations == before && s.sum ? 0 : 1;
}
