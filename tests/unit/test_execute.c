/* SPDX-License-Identifier: Apache-2.0 */
/* hk_execute on a virtual clock: retries, timeouts, breaker, budget, limiter and telemetry around a function that
 * fails as the test says. One test runs on the system's own clock. */
#include <hikyaku/alloc.h>
#include <hikyaku/execute.h>

#include "check.h"

enum {
    S = 1000,
    MAX_EVENTS = 64
};

struct world {
    int64_t now_ms;
    uint64_t sleeps[MAX_EVENTS];
    unsigned n_sleeps;
    unsigned stop_after; /* sleeps until the caller wants to stop; 0 = never */
    /* the function under retry */
    const int *script; /* status of each call; the last repeats */
    unsigned n_script;
    unsigned calls;
    uint64_t takes_ms;
    enum hk_code returns;
    uint64_t timeouts[MAX_EVENTS];
    struct hk_retry_event events[MAX_EVENTS];
    unsigned n_events;
};

static int64_t world_now(void *arg)
{
    return ((struct world *)arg)->now_ms;
}

static int64_t world_wall(void *arg)
{
    return ((struct world *)arg)->now_ms + INT64_C(1790000000000);
}

static bool world_sleep(void *arg, uint64_t ms)
{
    struct world *w = arg;
    w->sleeps[w->n_sleeps++ % MAX_EVENTS] = ms;
    w->now_ms += (int64_t)ms;
    return !w->stop_after || w->n_sleeps < w->stop_after;
}

static enum hk_code call(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    struct world *w = arg;
    assert_int_equal(attempt->number, w->calls + 1);
    assert_true(attempt->timeout_ms > 0);
    assert_true(attempt->timeout_ms == UINT64_MAX
                    ? attempt->deadline_ms == INT64_MAX
                    : attempt->deadline_ms == w->now_ms + (int64_t)attempt->timeout_ms);
    w->timeouts[w->calls % MAX_EVENTS] = attempt->timeout_ms;
    w->now_ms += (int64_t)w->takes_ms;
    unsigned i = w->calls < w->n_script ? w->calls : w->n_script - 1;
    w->calls++;
    facts->status = w->returns == HK_OK ? w->script[i] : 0;
    if (facts->status >= 400)
        facts->error = (struct hk_str){"the answer was no", 17};
    return w->returns;
}

static void on_retry(void *arg, const struct hk_retry_event *event)
{
    struct world *w = arg;
    w->events[w->n_events++ % MAX_EVENTS] = *event;
}

static struct hk_execute_options options_of(struct world *w, const struct hk_policy *p)
{
    return (struct hk_execute_options){.policy = p,
                                       .preset = p ? NULL : "standard",
                                       .on_retry = on_retry,
                                       .on_retry_arg = w,
                                       .has_seed = true,
                                       .seed = 42,
                                       .clock = {world_now, world_wall, world_sleep, w}};
}

static struct hk_policy *policy_of(const char *preset)
{
    struct hk_policy *p = NULL;
    assert_int_equal(hk_policy_new(preset, &p, NULL), HK_OK);
    return p;
}

#define SCRIPT(...)                                                                                          \
    .script = (const int[]){__VA_ARGS__}, .n_script = (unsigned)(sizeof((int[]){__VA_ARGS__}) / sizeof(int))

static void test_retries_until_it_works(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503, 500, 429, 200), .takes_ms = 5};
    struct hk_execute_options o = options_of(&w, p);
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    assert_int_equal(w.calls, 4);
    assert_int_equal(r.attempts, 4);
    assert_int_equal(w.n_sleeps, 3);
    assert_true(w.sleeps[0] == 1 * S && w.sleeps[1] == 2 * S && w.sleeps[2] == 10 * S);
    assert_true(r.slept_ms == 13 * S && r.elapsed_ms == 13 * S + 20);
    assert_int_equal(r.decision.verdict, HK_DELIVERED);
    hk_policy_free(p);
}

static void test_gives_up_as_the_policy_says(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, p);
    struct hk_execute_result r;
    struct hk_err err;
    assert_int_equal(hk_execute(&o, call, &w, &r, &err), HK_GAVE_UP);
    assert_int_equal(w.calls, 10);
    assert_string_equal(r.decision.reason, "RETRY_EXHAUSTED");
    assert_non_null(strstr(err.message, "RETRY_EXHAUSTED"));
    assert_non_null(strstr(err.message, "HTTP_503"));
    w = (struct world){SCRIPT(400)};
    assert_int_equal(hk_execute(&o, call, &w, &r, &err), HK_GAVE_UP);
    assert_int_equal(w.calls, 1);
    assert_string_equal(r.decision.reason, "HTTP_400");
    /* and without anybody asking for the details */
    w = (struct world){SCRIPT(400)};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_GAVE_UP);
    hk_policy_free(p);
}

static void test_same_seed_same_waits(void **state)
{
    (void)state;
    struct world a = {SCRIPT(503)}, b = {SCRIPT(503)}, c = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&a, NULL);
    assert_int_equal(hk_execute(&o, call, &a, NULL, NULL), HK_GAVE_UP);
    o = options_of(&b, NULL);
    assert_int_equal(hk_execute(&o, call, &b, NULL, NULL), HK_GAVE_UP);
    o = options_of(&c, NULL);
    o.seed = 43;
    assert_int_equal(hk_execute(&o, call, &c, NULL, NULL), HK_GAVE_UP);
    assert_int_equal(a.calls, 30);
    assert_memory_equal(a.sleeps, b.sleeps, sizeof a.sleeps);
    assert_memory_not_equal(a.sleeps, c.sleeps, sizeof a.sleeps);
}

static void test_timeout_of_an_attempt_ends_with_the_operation(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503), .takes_ms = 8 * S};
    struct hk_execute_options o = options_of(&w, p);
    o.overrides = (struct hk_overrides){.max_elapsed_ms = 20 * S, .timeout_ms = 10 * S};
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.reason, "DEADLINE_EXCEEDED");
    assert_int_equal(w.calls, 3); /* at 0, 9 and 19 s: one second is left for the third */
    assert_true(w.timeouts[0] == 10 * S && w.timeouts[1] == 10 * S && w.timeouts[2] == 1 * S);
    hk_policy_free(p);
}

static void test_last_attempt_gets_the_time_that_is_left(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503), .takes_ms = 1 * S};
    struct hk_execute_options o = options_of(&w, p);
    o.overrides = (struct hk_overrides){.max_elapsed_ms = 12 * S, .timeout_ms = 10 * S};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_GAVE_UP);
    /* starts at 0, 2, 5, 10 s; the next would come at 19 s */
    assert_int_equal(w.calls, 4);
    assert_true(w.timeouts[0] == 10 * S && w.timeouts[1] == 10 * S && w.timeouts[2] == 7 * S &&
                w.timeouts[3] == 2 * S);
    o.overrides = (struct hk_overrides){.max_attempts = 1};
    struct hk_limits limits = *hk_policy_limits(p);
    limits.timeout_ms = 0;
    limits.max_elapsed_ms = 0;
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_OK);
    w = (struct world){SCRIPT(200)};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    assert_true(w.timeouts[0] == UINT64_MAX);
    hk_policy_free(p);
}

static void test_codes_of_the_function(void **state)
{
    (void)state;

    static const struct {
        enum hk_code returns;
        const char *cause;
    } rows[] = {{HK_TIMEOUT, "TIMEOUT"}, {HK_IO, "LOCAL_ERROR"}, {HK_NOMEM, "LOCAL_ERROR"}};
    struct hk_policy *p = policy_of("sync-pipeline");
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct world w = {SCRIPT(0), .returns = rows[i].returns};
        struct hk_execute_options o = options_of(&w, p);
        struct hk_execute_result r;
        assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
        assert_int_equal(w.calls, 10);
        assert_string_equal(r.decision.cause, rows[i].cause);
    }
    struct world w = {SCRIPT(0), .returns = HK_CANCELLED};
    struct hk_execute_options o = options_of(&w, p);
    struct hk_err err;
    assert_int_equal(hk_execute(&o, call, &w, NULL, &err), HK_CANCELLED);
    assert_int_equal(w.calls, 1);
    assert_non_null(strstr(err.message, "cancelled"));
    w = (struct world){SCRIPT(503), .stop_after = 3};
    assert_int_equal(hk_execute(&o, call, &w, NULL, &err), HK_CANCELLED);
    assert_int_equal(w.calls, 3);
    hk_policy_free(p);
}

static enum hk_code says_more(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    (void)arg;
    (void)attempt;
    facts->fault = HK_FAULT_DNS;
    return HK_IO;
}

static void test_facts_outrank_the_code(void **state)
{
    (void)state;
    struct world w = {SCRIPT(0)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.overrides.max_attempts = 1;
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, says_more, &w, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.reason, "TRANSIENT_NETWORK");
}

/* Requirement 207: every field of every retry. */
static void test_telemetry(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503, 429, 200), .takes_ms = 7, .now_ms = 100};
    struct hk_execute_options o = options_of(&w, p);
    o.operation = "POST /orders";
    o.request_id = "req-1";
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    assert_int_equal(w.n_events, 2);
    const struct hk_retry_event *e = &w.events[0];
    assert_string_equal(e->request_id, "req-1");
    assert_string_equal(e->operation, "POST /orders");
    assert_string_equal(e->policy, "sync-pipeline");
    assert_string_equal(e->policy_type, "exponential");
    assert_true(e->operation_start_ms == INT64_C(1790000000100));
    assert_true(e->operation_end_ms == INT64_C(1790000000107));
    assert_int_equal(e->iteration, 0);
    assert_true(e->sleep_ms == 1 * S);
    assert_int_equal(e->failure_class, HK_CLASS_TRANSIENT);
    e = &w.events[1];
    assert_int_equal(e->iteration, 1);
    assert_true(e->sleep_ms == 10 * S);
    assert_string_equal(e->policy_type, "fixed"); /* the class's own */
    assert_true(e->operation_end_ms == INT64_C(1790000001114));
    assert_int_equal(e->failure_class, HK_CLASS_RATE_LIMIT);
    hk_policy_free(p);
}

struct texts {
    char type[HK_REASON_MAX], message[300], policy_type[32], operation[8], request_id[8];
};

static void keep_texts(void *arg, const struct hk_retry_event *event)
{
    struct texts *t = arg;
    snprintf(t->type, sizeof t->type, "%s", event->error_type);
    snprintf(t->message, sizeof t->message, "%s", event->error_message);
    snprintf(t->policy_type, sizeof t->policy_type, "%s", event->policy_type);
    snprintf(t->operation, sizeof t->operation, "%s", event->operation);
    snprintf(t->request_id, sizeof t->request_id, "%s", event->request_id);
}

static enum hk_code long_winded(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    static const struct hk_header hint = {{"Retry-After", 11}, {"3", 1}};
    *facts = (struct hk_facts){.status = attempt->number == 1 ? 429 : 200,
                               .headers = &hint,
                               .n_headers = 1,
                               .error = {arg, strlen(arg)}};
    return HK_OK;
}

static void test_telemetry_texts(void **state)
{
    (void)state;
    char error[1000];
    memset(error, 'e', sizeof error - 1);
    error[sizeof error - 1] = '\0';
    struct texts t;
    struct world w = {SCRIPT(0)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.on_retry = keep_texts;
    o.on_retry_arg = &t;
    assert_int_equal(hk_execute(&o, long_winded, error, NULL, NULL), HK_OK);
    assert_string_equal(t.type, "RATE_LIMITED");
    assert_int_equal(strlen(t.message), 255);
    assert_string_equal(t.policy_type, "adaptive");
    assert_string_equal(t.operation, "");
    assert_string_equal(t.request_id, "");
}

/* ---- guards ---- */

static struct hk_breaker *breaker_of(uint32_t failures, uint64_t open_ms)
{
    struct hk_breaker_options options;
    struct hk_breaker *b = NULL;
    hk_breaker_options_init(&options);
    options.failures = failures;
    options.window_ms = 3600 * S;
    options.open_ms = open_ms;
    options.open_cap_ms = open_ms;
    options.open_jitter = 0;
    assert_int_equal(hk_breaker_new(&options, &b, NULL), HK_OK);
    return b;
}

static void test_open_breaker_is_waited_for_at_no_cost(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_breaker *b = breaker_of(2, 30 * S);
    struct world w = {SCRIPT(503, 503, 200)};
    struct hk_execute_options o = options_of(&w, p);
    o.breaker = b;
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    assert_int_equal(r.attempts, 3);
    /* 1 s of backoff, 2 s of backoff, then the rest of the 30 s that the breaker is open */
    assert_int_equal(w.n_sleeps, 3);
    assert_true(w.sleeps[2] == 28 * S);
    assert_int_equal(hk_breaker_state(b, w.now_ms), HK_BREAKER_CLOSED);
    hk_breaker_free(b);
    hk_policy_free(p);
}

static void test_breaker_that_stays_open(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_breaker *b = breaker_of(2, 3600 * S * 24);
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, p);
    o.breaker = b;
    struct hk_execute_result r;
    struct hk_err err;
    assert_int_equal(hk_execute(&o, call, &w, &r, &err), HK_UNAVAILABLE);
    assert_int_equal(w.calls, 2);
    assert_string_equal(r.decision.reason, "BREAKER_OPEN");
    assert_non_null(strstr(err.message, "BREAKER_OPEN"));
    hk_breaker_isolate(b, w.now_ms);
    w = (struct world){SCRIPT(200)};
    assert_int_equal(hk_execute(&o, call, &w, &r, &err), HK_UNAVAILABLE);
    assert_int_equal(w.calls, 0);
    assert_int_equal(r.attempts, 0);
    hk_breaker_free(b);
    hk_policy_free(p);
}

static void test_what_counts_for_the_breaker(void **state)
{
    (void)state;

    static const struct {
        int status;
        enum hk_code returns;
        bool opens;
    } rows[] = {{503, HK_OK, true}, {400, HK_OK, false},   {401, HK_OK, false}, {429, HK_OK, false},
                {0, HK_IO, false},  {0, HK_TIMEOUT, true}, {200, HK_OK, false}, {0, HK_CANCELLED, false}};

    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_breaker *b = breaker_of(1, 3600 * S);
        struct world w = {.script = &rows[i].status, .n_script = 1, .returns = rows[i].returns};
        struct hk_execute_options o = options_of(&w, NULL);
        o.breaker = b;
        o.overrides.max_attempts = 1;
        o.overrides.max_elapsed_ms = 1 * S;
        (void)!hk_execute(&o, call, &w, NULL, NULL);
        NOTE_IF((hk_breaker_state(b, w.now_ms) == HK_BREAKER_OPEN) != rows[i].opens, "row %zu\n", i);
        assert_int_equal(hk_breaker_state(b, w.now_ms) == HK_BREAKER_OPEN, rows[i].opens);
        hk_breaker_free(b);
    }
}

static void test_budget_ends_a_retry_storm(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_budget_options bo;
    struct hk_budget *budget = NULL;
    hk_budget_options_init(&bo, HK_BUDGET_AWS);
    bo.max_tokens = 12; /* two retries of 5 */
    assert_int_equal(hk_budget_new(&bo, &budget, NULL), HK_OK);
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, p);
    o.budget = budget;
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
    assert_int_equal(w.calls, 3);
    assert_string_equal(r.decision.reason, "RETRY_BUDGET_SPENT");
    assert_string_equal(r.decision.cause, "HTTP_503");
    assert_true(hk_budget_tokens(budget) == 2);
    for (int i = 0; i < 3; i++) {
        w = (struct world){SCRIPT(200)};
        assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    }
    assert_true(hk_budget_tokens(budget) == 5);
    w = (struct world){SCRIPT(503, 200)}; /* pays 5 and gets it back */
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    assert_true(hk_budget_tokens(budget) == 5);
    hk_budget_free(budget);
    hk_policy_free(p);
}

static void test_limiter(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    lo.rate_per_s = 1;
    lo.burst = 1;
    lo.concurrency = 1;
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(200)};
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    assert_int_equal(w.n_sleeps, 0);
    w = (struct world){SCRIPT(200)};
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_OK);
    assert_true(r.slept_ms == 1 * S);
    assert_int_equal(hk_limiter_in_flight(l), 0);

    /* a limiter that opens after the deadline */
    hk_limiter_hold(l, w.now_ms + INT64_C(1000) * 3600 * S);
    w = (struct world){SCRIPT(200), .now_ms = w.now_ms};
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_UNAVAILABLE);
    assert_string_equal(r.decision.reason, "LIMITED");
    assert_int_equal(r.attempts, 0);
    hk_limiter_free(l);
    hk_policy_free(p);
}

/* A rate limit that the destination announced holds every later call through the same limiter. */
static void test_hint_holds_the_limiter(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    char text[] = "slow";
    struct world w = {SCRIPT(0)};
    struct hk_policy *p = policy_of("sync-pipeline");
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    o.overrides.max_attempts = 1;
    assert_int_equal(hk_execute(&o, long_winded, text, NULL, NULL), HK_GAVE_UP);
    assert_true(hk_limiter_ready_at_ms(l, 0) == 3 * S);
    hk_limiter_free(l);
    hk_policy_free(p);
}

/* With both guards, a breaker that says no gives its place in the limiter back. */
static void test_guards_do_not_leak_slots(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    lo.concurrency = 1;
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    struct hk_breaker *b = breaker_of(1, 5 * S);
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503, 200)};
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    o.breaker = b;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    assert_int_equal(hk_limiter_in_flight(l), 0);
    w = (struct world){SCRIPT(200), .returns = HK_CANCELLED, .now_ms = w.now_ms};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_CANCELLED);
    assert_int_equal(hk_limiter_in_flight(l), 0);
    assert_int_equal(hk_breaker_state(b, w.now_ms), HK_BREAKER_CLOSED);
    hk_breaker_free(b);
    hk_limiter_free(l);
    hk_policy_free(p);
}

/* ---- one's own policy ---- */

struct own {
    unsigned made, gone;
    bool refuse;
    unsigned left;
};

static void *own_create(void *arg)
{
    struct own *own = arg;
    own->made++;
    own->left = 2;
    return own->refuse ? NULL : own;
}

static void own_destroy(void *instance)
{
    ((struct own *)instance)->gone++;
}

static bool own_should_retry(void *instance, uint32_t count, int status, const struct hk_facts *facts,
                             uint64_t *wait_ms)
{
    struct own *own = instance;
    (void)status;
    (void)facts;
    *wait_ms = 100 * (count + 1);
    return own->left-- > 0;
}

static void test_own_policy_gets_a_fresh_instance(void **state)
{
    (void)state;
    static const struct hk_policy_ops ops = {own_create, own_destroy, own_should_retry};
    struct own own = {.made = 0};
    struct hk_policy *p = policy_of("standard");
    hk_policy_set_ops(p, &ops, &own);
    struct hk_execute_result r;
    for (unsigned i = 1; i <= 2; i++) {
        struct world w = {SCRIPT(400)};
        struct hk_execute_options o = options_of(&w, p);
        assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
        assert_int_equal(w.calls, 3);
        assert_true(w.sleeps[0] == 100 && w.sleeps[1] == 200);
        assert_string_equal(w.events[0].policy_type, "custom");
        assert_int_equal(own.made, i);
        assert_int_equal(own.gone, i);
    }
    struct world w = {SCRIPT(400)};
    struct hk_execute_options o = options_of(&w, p);
    own.refuse = true;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_NOMEM);
    assert_int_equal(w.calls, 0);
    hk_policy_free(p);
}

static void test_unsound_policy_calls_nothing(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_attempts = 0;
    limits.max_elapsed_ms = 0;
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_OK);
    struct world w = {SCRIPT(200)};
    struct hk_execute_options o = options_of(&w, p);
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_RANGE);
    assert_int_equal(w.calls, 0);
    hk_policy_free(p);
}

/* The system's clock, sleep and randomness; nothing is timed. */
static void test_on_the_real_clock(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("standard");
    struct hk_backoff quick = {.kind = HK_BACKOFF_FIXED, .base_ms = 2, .cap_ms = 2};
    struct hk_jitter full = {.kind = HK_JITTER_FULL};
    assert_int_equal(hk_policy_set_backoff(p, &quick, &full, NULL), HK_OK);
    struct hk_execute_options o = {.policy = p};
    char text[] = "once";
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, says_more, text, &r, NULL), HK_GAVE_UP);
    assert_int_equal(r.attempts, 30);
    assert_true(r.elapsed_ms >= r.slept_ms);
    hk_policy_free(p);
}

/* ---- what a review found ---- */

/* Five milliseconds too long, as real sleeps are. */
static bool late_sleep(void *arg, uint64_t ms)
{
    struct world *w = arg;
    w->now_ms += 5;
    return world_sleep(arg, ms);
}

static void test_what_cannot_fit_is_not_started(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, p);
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    lo.concurrency = 1;
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    o.clock.sleep_ms = late_sleep;
    o.overrides.max_elapsed_ms = 1001; /* the wait of 1000 fits, what it takes does not */
    o.limiter = l;
    struct hk_execute_result r;
    struct hk_err err;
    assert_int_equal(hk_execute(&o, call, &w, &r, &err), HK_GAVE_UP);
    assert_int_equal(w.calls, 1);
    assert_string_equal(r.decision.reason, "DEADLINE_EXCEEDED");
    assert_true(r.decision.wait_ms == 0);
    assert_int_equal(hk_limiter_in_flight(l), 0);
    assert_string_equal(err.message, "gave up after 1 attempt: DEADLINE_EXCEEDED (last: HTTP_503)");
    hk_limiter_free(l);
    hk_policy_free(p);
}

static void test_an_override_ends_the_operation_by_itself(void **state)
{
    (void)state;
    struct hk_policy *p = policy_of("cloud-tasks"); /* limit_mode: all */
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, p);
    o.overrides.max_elapsed_ms = 20 * S;
    struct hk_execute_result r;
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.reason, "DEADLINE_EXCEEDED");
    assert_true(r.elapsed_ms < 20 * S);
    /* and an uncharged class cannot go on for ever because of one */
    struct hk_limits limits = *hk_policy_limits(p);
    limits.max_attempts = 0;
    limits.max_elapsed_ms = 3600 * S;
    assert_int_equal(hk_policy_set_limits(p, &limits, NULL), HK_OK);
    struct hk_class_rule rule = *hk_policy_class(p, HK_CLASS_RATE_LIMIT);
    rule.charge = false;
    assert_int_equal(hk_policy_set_class(p, HK_CLASS_RATE_LIMIT, &rule, NULL), HK_OK);
    w = (struct world){SCRIPT(429)};
    o.overrides = (struct hk_overrides){.max_attempts = 5};
    assert_int_equal(hk_execute(&o, call, &w, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.reason, "DEADLINE_EXCEEDED");
    hk_policy_free(p);
}

/* A probe that never left our side neither closes nor re-opens a breaker. */
static void test_own_faults_say_nothing_to_a_half_open_breaker(void **state)
{
    (void)state;

    static const enum hk_fault ours[] = {
        HK_FAULT_LOCAL,   HK_FAULT_INVALID_PAYLOAD,     HK_FAULT_SCHEMA,  HK_FAULT_TOO_LARGE,
        HK_FAULT_BLOCKED, HK_FAULT_UNKNOWN_DESTINATION, HK_FAULT_EXPIRED, HK_FAULT_RELAY_CRASHED};
    struct hk_policy *p = policy_of("standard");
    for (size_t i = 0; i < COUNT(ours); i++) {
        struct hk_history history = {.attempts = 0};
        struct hk_facts facts = {.fault = ours[i]};
        struct hk_rng rng;
        struct hk_decision d;
        hk_rng_seed(&rng, 1, 1);
        hk_policy_decide(p, NULL, NULL, &history, &facts, 0, 0, &rng, &d);
        assert_true(d.own_fault && !d.unhealthy);
    }
    hk_policy_free(p);

    struct hk_breaker *b = breaker_of(1, 10 * S);
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.breaker = b;
    o.overrides.max_attempts = 1;
    (void)!hk_execute(&o, call, &w, NULL, NULL);
    w.now_ms += 10 * S;
    assert_int_equal(hk_breaker_state(b, w.now_ms), HK_BREAKER_HALF_OPEN);
    w = (struct world){SCRIPT(0), .returns = HK_IO, .now_ms = w.now_ms};
    (void)!hk_execute(&o, call, &w, NULL, NULL);
    assert_int_equal(w.calls, 1);
    assert_int_equal(hk_breaker_state(b, w.now_ms), HK_BREAKER_HALF_OPEN);
    hk_breaker_free(b);
}

/* Waiting for a breaker costs no token of the limiter. */
static void test_breaker_comes_before_the_limiter(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    lo.rate_per_s = 1.0 / 3600;
    lo.burst = 2;
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    struct hk_breaker *b = breaker_of(1, 5 * S);
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(503, 200)};
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    o.breaker = b;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    assert_true(w.now_ms == 5 * S);
    hk_breaker_free(b);
    hk_limiter_free(l);
    hk_policy_free(p);
}

static void test_a_policy_must_be_named(void **state)
{
    (void)state;
    struct world w = {SCRIPT(200)};
    struct hk_execute_options o = options_of(&w, NULL);
    struct hk_err err;
    o.preset = NULL;
    assert_int_equal(hk_execute(&o, call, &w, NULL, &err), HK_INVALID);
    o.preset = "standrad";
    assert_int_equal(hk_execute(&o, call, &w, NULL, &err), HK_NOTFOUND);
    assert_non_null(strstr(err.message, "standrad"));
    assert_int_equal(w.calls, 0);
}

/* gRPC's budget hears of every failure that was worth a retry, also of an operation's last one. */
static void test_budget_hears_of_the_last_failure(void **state)
{
    (void)state;
    struct hk_budget_options bo;
    struct hk_budget *budget = NULL;
    hk_budget_options_init(&bo, HK_BUDGET_GRPC);
    assert_int_equal(hk_budget_new(&bo, &budget, NULL), HK_OK);
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.budget = budget;
    o.overrides.max_attempts = 2;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_GAVE_UP);
    assert_true(hk_budget_tokens(budget) == 8);
    w = (struct world){SCRIPT(400)};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_GAVE_UP);
    assert_true(hk_budget_tokens(budget) == 8); /* not worth a retry */
    hk_budget_free(budget);
}

static enum hk_code says_both(void *arg, const struct hk_attempt *attempt, struct hk_facts *facts)
{
    (void)attempt;
    facts->status = *(int *)arg;
    return HK_IO;
}

/* An attempt that our own side calls failed is no success, whatever status it had read. */
static void test_a_failure_code_outranks_a_success(void **state)
{
    (void)state;
    struct world w = {SCRIPT(0)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.overrides.max_attempts = 1;
    struct hk_execute_result r;
    int status = 200;
    assert_int_equal(hk_execute(&o, says_both, &status, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.cause, "LOCAL_ERROR");
    status = 503;
    assert_int_equal(hk_execute(&o, says_both, &status, &r, NULL), HK_GAVE_UP);
    assert_string_equal(r.decision.cause, "HTTP_503");
}

/* The far end of time. */
static void test_clock_near_its_end(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(200), .now_ms = INT64_MAX - INT64_C(1790000000000) - 5};
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    o.clock.wall_ms = world_now;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    char text[] = "slow";
    w = (struct world){SCRIPT(0), .now_ms = INT64_MAX - 5};
    o.overrides.max_attempts = 1;
    assert_int_equal(hk_execute(&o, long_winded, text, NULL, NULL), HK_GAVE_UP);
    hk_limiter_free(l);
    hk_policy_free(p);
}

/* A breaker or limiter that is ready exactly when the time is over comes too late. */
static void test_ready_at_the_very_end_is_too_late(void **state)
{
    (void)state;
    struct hk_limiter_options lo;
    struct hk_limiter *l = NULL;
    hk_limiter_options_init(&lo);
    assert_int_equal(hk_limiter_new(&lo, 0, &l, NULL), HK_OK);
    hk_limiter_hold(l, 5 * S);
    struct hk_policy *p = policy_of("sync-pipeline");
    struct world w = {SCRIPT(200)};
    struct hk_execute_options o = options_of(&w, p);
    o.limiter = l;
    o.overrides.max_elapsed_ms = 5 * S;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_UNAVAILABLE);
    o.overrides.max_elapsed_ms = 5 * S + 1;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    hk_limiter_free(l);
    hk_policy_free(p);
}

/* A timeout costs the budget more. */
static void test_timeouts_cost_the_budget_more(void **state)
{
    (void)state;
    struct hk_budget_options bo;
    struct hk_budget *budget = NULL;
    hk_budget_options_init(&bo, HK_BUDGET_AWS);
    assert_int_equal(hk_budget_new(&bo, &budget, NULL), HK_OK);
    struct world w = {SCRIPT(0), .returns = HK_TIMEOUT, .takes_ms = 3};
    struct hk_execute_options o = options_of(&w, NULL);
    o.budget = budget;
    o.overrides.max_attempts = 3;
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_GAVE_UP);
    assert_true(hk_budget_tokens(budget) == 480);
    hk_budget_free(budget);
}

/* A cancelled probe gives its place back. */
static void test_cancelled_probe_gives_its_place_back(void **state)
{
    (void)state;
    struct hk_breaker *b = breaker_of(1, 10 * S);
    struct world w = {SCRIPT(503)};
    struct hk_execute_options o = options_of(&w, NULL);
    o.breaker = b;
    o.overrides.max_attempts = 1;
    (void)!hk_execute(&o, call, &w, NULL, NULL);
    w = (struct world){SCRIPT(0), .returns = HK_CANCELLED, .now_ms = 11 * S};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_CANCELLED);
    w = (struct world){SCRIPT(200), .now_ms = 11 * S};
    assert_int_equal(hk_execute(&o, call, &w, NULL, NULL), HK_OK);
    assert_int_equal(w.n_sleeps, 0);
    hk_breaker_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retries_until_it_works),
        cmocka_unit_test(test_gives_up_as_the_policy_says),
        cmocka_unit_test(test_same_seed_same_waits),
        cmocka_unit_test(test_timeout_of_an_attempt_ends_with_the_operation),
        cmocka_unit_test(test_last_attempt_gets_the_time_that_is_left),
        cmocka_unit_test(test_codes_of_the_function),
        cmocka_unit_test(test_facts_outrank_the_code),
        cmocka_unit_test(test_telemetry),
        cmocka_unit_test(test_telemetry_texts),
        cmocka_unit_test(test_open_breaker_is_waited_for_at_no_cost),
        cmocka_unit_test(test_breaker_that_stays_open),
        cmocka_unit_test(test_what_counts_for_the_breaker),
        cmocka_unit_test(test_budget_ends_a_retry_storm),
        cmocka_unit_test(test_limiter),
        cmocka_unit_test(test_hint_holds_the_limiter),
        cmocka_unit_test(test_guards_do_not_leak_slots),
        cmocka_unit_test(test_own_policy_gets_a_fresh_instance),
        cmocka_unit_test(test_unsound_policy_calls_nothing),
        cmocka_unit_test(test_on_the_real_clock),
        cmocka_unit_test(test_what_cannot_fit_is_not_started),
        cmocka_unit_test(test_an_override_ends_the_operation_by_itself),
        cmocka_unit_test(test_own_faults_say_nothing_to_a_half_open_breaker),
        cmocka_unit_test(test_breaker_comes_before_the_limiter),
        cmocka_unit_test(test_a_policy_must_be_named),
        cmocka_unit_test(test_budget_hears_of_the_last_failure),
        cmocka_unit_test(test_a_failure_code_outranks_a_success),
        cmocka_unit_test(test_clock_near_its_end),
        cmocka_unit_test(test_ready_at_the_very_end_is_too_late),
        cmocka_unit_test(test_timeouts_cost_the_budget_more),
        cmocka_unit_test(test_cancelled_probe_gives_its_place_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
