/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustive mode. Every decision of the little world (which of two relays moves first, whether a fault strikes here and
 * which, when a stopped process wakes, when the second message is committed) is read from a tape. When a run is over the
 * last decision that has another value left takes it, and the world starts anew: a search depth first, without copies of
 * the world. A run is over, too, when it comes to a state that was seen before (exhaust_state.c): all that can follow was
 * looked at, or will be. So what is printed is not "none found" but "none exists", within these bounds:
 *
 *   1 or 2 messages of one key, at most 3 attempts; 2 relays, one live lane; at most N faults, each any of: crash before a
 *   move, stop before a move (any of the other's moves, and the lease's end, may come before it wakes), the store refuses,
 *   the destination refuses, the destination acts but its answer is lost.
 *
 * A state that comes again on the way from itself is a world that need never end: that is a counterexample. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "exhaust.h"
#include "exhaust_impl.h"

enum {
    LOG_MAX = 1 << 20
};

struct bench {
    const struct hk_exhaust_options *o;
    struct hk_policy *policy;
    struct hk_engine_dest dest;
    struct hk_buf log, story, dump, report;
    struct tape tape;
    struct hk_canon canon;
    struct hk_hash128 path[MOVES_MAX + 2]; /* the states that the run at hand came through */
    struct hk_hash_set seen, ends;
    struct hk_hash_set leads; /* plain: where each state and decision led to, and each end's verdict */
    uint64_t paths, transitions;
    size_t longest;
    const char *wrong;
};

/* ---- the tape ---- */

unsigned hk_mini_choose(struct mini *w, unsigned n)
{
    struct tape *tape = w->tape;
    if (n < 2)
        return 0;
    if (tape->at == TAPE_MAX)
        abort();
    if (tape->at == tape->len) {
        tape->value[tape->len] = 0;
        tape->options[tape->len++] = (uint8_t)n;
    }
    return tape->value[tape->at++];
}

/* The next path; false: that was the last one. */
static bool rewind_tape(struct tape *tape)
{
    tape->len = tape->at;
    tape->at = 0;
    while (tape->len && tape->value[tape->len - 1] + 1 == tape->options[tape->len - 1])
        tape->len--;
    if (!tape->len)
        return false;
    tape->value[tape->len - 1]++;
    return true;
}

/* ---- one path ---- */

static int64_t store_now(void *arg)
{
    return ((struct mini *)arg)->now_ms;
}

static void make_messages(struct mini *w, size_t n)
{
    static const char *const names[MESSAGES_MAX] = {"m1", "m2"};
    w->n_msgs = n;
    for (size_t i = 0; i < n; i++) {
        w->msgs[i] = (struct hk_model_msg){.destination = "d",
                                           .expected = "d",
                                           .event_type = "e",
                                           .key = "k",
                                           .max_logged = 3,
                                           .payload = "x",
                                           .payload_bytes = 1};
        (void)hk_str_copy(w->msgs[i].message_id, sizeof w->msgs[i].message_id, hk_str_of(names[i]));
    }
}

static void make_world(struct bench *b, struct mini *w, struct hk_check_result *check)
{
    *w = (struct mini){.tape = &b->tape,
                       .log = &b->log,
                       .faults = b->o->faults,
                       .now_ms = 1000,
                       .options = {.dests = &b->dest,
                                   .n_dests = 1,
                                   .concurrency = CONCURRENCY,
                                   .batch = CONCURRENCY,
                                   .batch_bytes = 1000,
                                   .max_payload_bytes = 1000,
                                   .lease_ms = LEASE_MS,
                                   .poll_min_ms = 200,
                                   .poll_max_ms = 200},
                       .relays = {{.name = "a"}, {.name = "b"}}};
    make_messages(w, b->o->messages);
    struct hk_model_options options = {.log = &b->log, .now_ms = store_now, .now_arg = w};
    struct hk_check_options check_options = {.slack_ms = 0};
    hk_buf_reset(&b->log);
    hk_buf_reset(&b->dump);
    hk_buf_reset(&b->report);
    w->model = hk_model_new(&options);
    w->checker = hk_checker_new(&check_options, &b->report, check);
    b->tape.at = 0;
}

/* A state and what was decided there. */
static struct hk_hash128 branch(const struct bench *b, size_t move, size_t from)
{
    struct hk_hash128 h = b->path[move];
    for (size_t i = from; i < b->tape.at; i++) {
        uint64_t word = (uint64_t)b->tape.value[i] << 8 | b->tape.options[i];
        h.a = (h.a ^ word) * 0x9e3779b97f4a7c15u;
        h.b = (h.b + word) * 0xc2b2ae3d27d4eb4fu;
        h.a ^= h.a >> 31;
        h.b ^= h.b >> 29;
    }
    h.a ^= 0x5851f42d4c957f2du;
    return h;
}

static bool is_on_path(const struct bench *b, size_t move)
{
    for (size_t i = 0; i < move; i++)
        if (b->path[i].a == b->path[move].a && b->path[i].b == b->path[move].b)
            return true;
    return false;
}

/* At a state that is new to this run. `from`: where on the tape the decisions that led here from the last state begin.
 * False: the run need not go on. */
static bool arrive(struct bench *b, struct mini *w, size_t from)
{
    size_t move = w->moves;
    b->path[move] = hk_mini_hash(w, &b->canon);
    b->transitions += move > 0;
    bool fresh = hk_hash_set_add(&b->seen, b->path[move]);
    if (b->o->plain && move && !hk_hash_set_map(&b->leads, branch(b, move - 1, from), b->path[move].a))
        w->wrong = "equal states had unequal futures: the hash leaves something out";
    if (b->o->plain || fresh)
        return true;
    if (is_on_path(b, move))
        w->wrong = "came to no end: the same state again";
    return w->wrong != NULL;
}

/* False: it was cut short where everything was seen before. */
static bool run(struct bench *b, struct mini *w, const struct hk_check_result *check, bool looks)
{
    size_t from = 0;
    hk_mini_begin(w);
    for (;;) {
        if (looks && b->tape.at == b->tape.len && !arrive(b, w, from))
            return false;
        if (w->wrong || check->violations || hk_mini_is_over(w))
            return true;
        from = b->tape.at;
        hk_mini_step(w);
    }
}

static bool judge_end(struct bench *b, struct mini *w, const struct hk_check_result *check)
{
    struct hk_hash128 last = b->path[w->moves];
    hk_mini_end(w);
    hk_model_dump(w->model, &b->dump);
    hk_checker_finish(w->checker, hk_buf_str(&b->dump));
    (void)hk_hash_set_add(&b->ends, last);
    last.a ^= 0x2545f4914f6cdd1du;
    if (b->o->plain && !hk_hash_set_map(&b->leads, last, check->violations))
        w->wrong = "equal ends were judged unequally: the hash leaves something out";
    return !w->wrong && check->violations == 0;
}

/* `looks`: states are looked up and counted; not when a path is shown again. */
static bool run_path(struct bench *b, bool looks)
{
    struct mini w;
    struct hk_check_result check;
    make_world(b, &w, &check);
    w.story = looks ? NULL : &b->story;
    bool ok = true;
    if (run(b, &w, &check, looks))
        ok = judge_end(b, &w, &check);
    b->paths += looks;
    if (w.moves > b->longest)
        b->longest = w.moves;
    b->wrong =
        w.wrong && hk_model_complaint(w.model) ? "a row was claimed while a manifest names it" : w.wrong;
    hk_mini_fini(&w);
    return ok;
}

/* ---- all of them ---- */

static void make_policy(struct bench *b)
{
    struct hk_err err;
    if (hk_policy_new("standard", &b->policy, &err) != HK_OK)
        abort();
    struct hk_limits limits = *hk_policy_limits(b->policy);
    limits.max_attempts = 3;
    limits.max_elapsed_ms = 0;
    limits.timeout_ms = TIMEOUT_MS;
    struct hk_backoff backoff = {.kind = HK_BACKOFF_FIXED, .base_ms = 200, .cap_ms = 200};
    struct hk_jitter jitter = {.kind = HK_JITTER_NONE};
    if (hk_policy_set_limits(b->policy, &limits, &err) != HK_OK ||
        hk_policy_set_backoff(b->policy, &backoff, &jitter, &err) != HK_OK)
        abort();
    b->dest = (struct hk_engine_dest){.name = "d", .policy = b->policy, .ordered = true};
}

static void print_counterexample(struct bench *b)
{
    const char *wrong = b->wrong;
    b->tape.len = b->tape.at;
    (void)run_path(b, false);
    (void)printf("a counterexample, path %" PRIu64 ":\n%s%s%s%s%stape:", b->paths, hk_buf_cstr(&b->story),
                 hk_buf_cstr(&b->dump), hk_buf_cstr(&b->report), wrong ? wrong : "", wrong ? "\n" : "");
    for (size_t i = 0; i < b->tape.at; i++)
        (void)printf(" %d", b->tape.value[i]);
    (void)printf("\n");
}

static double seconds(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void print_result(const struct bench *b, bool ok, double took)
{
    const struct hk_exhaust_options *o = b->o;
    (void)printf(
        "%sexhaustive%s: %u message%s of one key, 2 relays, 3 attempts, %u faults: %zu states, %" PRIu64
        " transitions, %zu ends, %" PRIu64 " runs, the longest of %zu moves, %.1f s; %s\n",
        o->prefix, o->plain ? ", every path to its end" : "", o->messages, o->messages > 1 ? "s" : "",
        o->faults, b->seen.n, b->transitions, b->ends.n, b->paths, b->longest, took,
        ok ? "no counterexample exists" : "FAILED");
}

static struct bench *bench_new(const struct hk_exhaust_options *options)
{
    struct bench *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->o = options;
    make_policy(b);
    struct hk_buf *bufs[] = {&b->log, &b->story, &b->dump, &b->report};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        hk_buf_init(bufs[i], LOG_MAX);
    return b;
}

static void bench_free(struct bench *b)
{
    struct hk_buf *bufs[] = {&b->log, &b->story, &b->dump, &b->report};
    for (size_t i = 0; i < sizeof bufs / sizeof bufs[0]; i++)
        hk_buf_fini(bufs[i]);
    struct hk_hash_set *sets[] = {&b->seen, &b->ends, &b->leads};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
        hk_hash_set_fini(sets[i]);
    hk_canon_fini(&b->canon);
    hk_policy_free(b->policy);
    free(b);
}

static bool search(struct bench *b)
{
    bool ok = true;
    double start = seconds();
    do
        ok = run_path(b, true);
    while (ok && rewind_tape(&b->tape));
    double took = seconds() - start;
    if (!ok)
        print_counterexample(b);
    print_result(b, ok, took);
    return ok;
}

static bool same(const struct hk_hash_set *a, const struct hk_hash_set *b)
{
    return a->n == b->n && a->sum == b->sum;
}

/* The search that cuts short must come to the same states and ends as the one that does not. */
static bool compare(const struct bench *plain)
{
    struct hk_exhaust_options options = *plain->o;
    options.plain = false;
    struct bench *b = bench_new(&options);
    bool ok = search(b) && same(&b->seen, &plain->seen) && same(&b->ends, &plain->ends);
    (void)printf("%sthe same states and ends with and without: %s\n", options.prefix, ok ? "yes" : "NO");
    bench_free(b);
    return ok;
}

int hk_exhaust(const struct hk_exhaust_options *options)
{
    struct bench *b = bench_new(options);
    bool ok = search(b) && (!options->plain || compare(b));
    bench_free(b);
    return ok ? 0 : 1;
}
