/* SPDX-License-Identifier: Apache-2.0 */
/* Leaving out parts of a world: after the seed has drawn it, and while it runs. Nothing else is drawn for that: so what is
 * left is as like the whole as can be. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cut.h"
#include "world_impl.h"

/* ---- numbers ---- */

static size_t place_of(const struct hk_numbers *numbers, int64_t value)
{
    size_t lo = 0, hi = numbers->n;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (numbers->items[middle] < value)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

bool hk_numbers_have(const struct hk_numbers *numbers, int64_t value)
{
    size_t i = place_of(numbers, value);
    return i < numbers->n && numbers->items[i] == value;
}

void hk_numbers_add(struct hk_numbers *numbers, int64_t value)
{
    if (hk_numbers_have(numbers, value))
        return;
    if (numbers->n == numbers->room) {
        numbers->room = numbers->room ? numbers->room * 2 : 16;
        numbers->items = realloc(numbers->items, numbers->room * sizeof *numbers->items);
        if (!numbers->items)
            abort();
    }
    size_t at = place_of(numbers, value);
    memmove(numbers->items + at + 1, numbers->items + at, (numbers->n - at) * sizeof *numbers->items);
    numbers->items[at] = value;
    numbers->n++;
}

void hk_numbers_copy(struct hk_numbers *to, const struct hk_numbers *from)
{
    to->n = 0;
    for (size_t i = 0; i < from->n; i++)
        hk_numbers_add(to, from->items[i]);
}

void hk_numbers_fini(struct hk_numbers *numbers)
{
    free(numbers->items);
    *numbers = (struct hk_numbers){.n = 0};
}

/* ---- kinds of trouble ---- */

#define CHANCE(name)                                                                                         \
    {                                                                                                        \
#name, offsetof(struct config, p_##name), NULL                                                       \
    }
#define ANSWER(name, outcome)                                                                                \
    {                                                                                                        \
        name, outcome, no_answer                                                                             \
    }

static void no_answer(struct world *w, size_t outcome)
{
    for (size_t i = 0; i < w->c.n_dests; i++) {
        w->dests[i].total -= w->dests[i].weights[outcome];
        w->dests[i].weights[outcome] = 0;
    }
}

static void no_outage(struct world *w, size_t none)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->dests[i].outage_from = w->dests[i].outage_to = (int64_t)none;
}

static void no_breaker(struct world *w, size_t none)
{
    (void)none;
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->engine_dests[i].breaker = NULL;
}

static void no_rate(struct world *w, size_t none)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->engine_dests[i].limiter.rate_per_s = (double)none;
}

static void no_cap(struct world *w, size_t none)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->engine_dests[i].limiter.concurrency = (uint32_t)none;
}

static void no_operator(struct world *w, size_t none)
{
    w->c.operator_gap_ms = (int64_t)none;
}

static void no_clock(struct world *w, size_t none)
{
    w->c.clock_jumps = none;
    w->c.n_wrong = none;
    w->c.reset_at = (int64_t)none;
}

static void no_definitions(struct world *w, size_t none)
{
    if (!w->c.define_gap_ms)
        return;
    w->c.define_gap_ms = (int64_t)none;
    w->c.first_kept = w->options.n_dests = w->c.n_dests;
}

static void no_latency(struct world *w, size_t none)
{
    w->c.store_ms = (uint32_t)none;
    for (size_t i = 0; i < w->c.n_dests; i++)
        w->dests[i].latency_ms = (int64_t)none;
}

/* A chance (its place in the config), or whatever takes it out of the world. */
static const struct {
    const char *name;
    size_t arg;
    void (*leave_out)(struct world *w, size_t arg);
} kinds[] = {
    CHANCE(crash),
    CHANCE(stop),
    CHANCE(drain),
    CHANCE(shards),
    CHANCE(store_fail),
    CHANCE(store_slow),
    CHANCE(store_hang),
    CHANCE(rollback),
    CHANCE(hold),
    CHANCE(poison),
    CHANCE(stuck),
    CHANCE(unknown),
    CHANCE(scheduled),
    CHANCE(expiring),
    CHANCE(too_big),
    CHANCE(malformed),
    CHANCE(undecodable),
    CHANCE(policy),
    CHANCE(override),
    CHANCE(routed),
    CHANCE(key),
    ANSWER("answer_5xx", OUT_5XX),
    ANSWER("answer_503", OUT_503_HINT),
    ANSWER("answer_429", OUT_429),
    ANSWER("answer_4xx", OUT_4XX),
    ANSWER("answer_401", OUT_401),
    ANSWER("answer_410", OUT_410),
    ANSWER("answer_3xx", OUT_3XX),
    ANSWER("refused", OUT_REFUSED),
    ANSWER("reply_lost", OUT_LOST_REPLY),
    ANSWER("late", OUT_LATE),
    ANSWER("hang", OUT_HANG),
    {"outage", 0, no_outage},
    {"operator", 0, no_operator},
    {"clock", 0, no_clock},
    {"breaker", 0, no_breaker},
    {"rate", 0, no_rate},
    {"cap", 0, no_cap},
    {"definitions", 0, no_definitions},
    {"latency", 0, no_latency},
};

_Static_assert(sizeof kinds / sizeof kinds[0] <= 64, "one bit each");

size_t hk_cut_kinds(void)
{
    return sizeof kinds / sizeof kinds[0];
}

const char *hk_cut_kind(size_t kind)
{
    return kinds[kind].name;
}

static void leave_out(struct world *w, size_t kind)
{
    if (kinds[kind].leave_out)
        kinds[kind].leave_out(w, kinds[kind].arg);
    else
        *(uint32_t *)((char *)&w->c + kinds[kind].arg) = 0;
}

/* ---- applying it ---- */

/* No configuration names a destination twice in one route, so neither may what is left of one: the message would be sent
 * there twice, and the shrinker would take that for the trouble that it is looking for. */
static size_t fold_route(size_t *dests, size_t n, size_t n_dests)
{
    size_t kept = 0;
    for (size_t k = 0; k < n; k++) {
        size_t dest = dests[k] % n_dests, i = 0;
        while (i < kept && dests[i] != dest)
            i++;
        dests[i] = dest;
        kept += i == kept;
    }
    return kept;
}

static void fewer_dests(struct world *w, size_t n)
{
    if (!n || n >= w->c.n_dests)
        return;
    w->c.n_dests = n;
    if (w->c.first_kept >= n) { /* none is left that could come and go */
        w->c.first_kept = n;
        w->c.define_gap_ms = 0;
    }
    w->options.n_dests = w->c.first_kept;
    for (size_t i = 0; i < w->c.n_routes; i++)
        w->routes[i].n_dests = fold_route(w->route_dests[i], w->routes[i].n_dests, n);
}

void hk_world_cut(struct world *w)
{
    const struct hk_cut *cut = w->cut;
    if (!cut)
        return;
    for (size_t i = 0; i < hk_cut_kinds(); i++)
        if (cut->without >> i & 1)
            leave_out(w, i);
    fewer_dests(w, cut->dests);
    if (cut->relays && cut->relays < w->c.n_relays)
        w->c.n_relays = cut->relays;
    if (cut->until_ms && cut->until_ms < w->c.fault_ms)
        w->c.fault_ms = cut->until_ms;
}

bool hk_world_cut_message(const struct world *w, size_t number)
{
    return w->cut && w->cut->some_messages && !hk_numbers_have(&w->cut->messages, (int64_t)number);
}

/* Operators and clocks come again by themselves: they are left out as a whole, or not at all. */
bool hk_world_cut_calm(const struct world *w, const struct event *ev)
{
    if (!w->cut || !w->cut->some_faults || w->healed || ev->kind == EV_HEAL || ev->kind == EV_OPERATOR ||
        ev->kind == EV_CLOCK)
        return false;
    return !hk_numbers_have(&w->cut->faults, w->now);
}

/* ---- as text ---- */

static void print_numbers(const char *name, const struct hk_numbers *numbers, struct hk_buf *out)
{
    (void)hk_buf_addf(out, "%s%s=", out->len ? ";" : "", name);
    for (size_t i = 0; i < numbers->n; i++)
        (void)hk_buf_addf(out, "%s%" PRId64, i ? "," : "", numbers->items[i]);
}

static void print_number(const char *name, int64_t number, struct hk_buf *out)
{
    if (number)
        (void)hk_buf_addf(out, "%s%s=%" PRId64, out->len ? ";" : "", name, number);
}

void hk_cut_print(const struct hk_cut *cut, struct hk_buf *out)
{
    const char *between = "without=";
    for (size_t i = 0; i < hk_cut_kinds(); i++)
        if (cut->without >> i & 1) {
            (void)hk_buf_addf(out, "%s%s", between, kinds[i].name);
            between = ",";
        }
    if (cut->some_faults)
        print_numbers("faults", &cut->faults, out);
    if (cut->some_messages)
        print_numbers("messages", &cut->messages, out);
    print_number("relays", (int64_t)cut->relays, out);
    print_number("dests", (int64_t)cut->dests, out);
    print_number("until", cut->until_ms, out);
}

static bool parse_numbers(struct hk_str text, bool *some, struct hk_numbers *out)
{
    *some = true;
    while (text.len) {
        int64_t number;
        if (hk_parse_i64(hk_str_cut(&text, ','), &number, NULL) != HK_OK)
            return false;
        hk_numbers_add(out, number);
    }
    return true;
}

static bool parse_kinds(struct hk_str text, uint64_t *out)
{
    while (text.len) {
        struct hk_str name = hk_str_cut(&text, ',');
        size_t i = 0;
        while (i < hk_cut_kinds() && !hk_str_eq(name, hk_str_of(kinds[i].name)))
            i++;
        if (i == hk_cut_kinds())
            return false;
        *out |= (uint64_t)1 << i;
    }
    return true;
}

static bool parse_part(struct hk_str name, struct hk_str value, struct hk_cut *out)
{
    int64_t number = 0;
    if (hk_str_eq(name, hk_str_of("without")))
        return parse_kinds(value, &out->without);
    if (hk_str_eq(name, hk_str_of("faults")))
        return parse_numbers(value, &out->some_faults, &out->faults);
    if (hk_str_eq(name, hk_str_of("messages")))
        return parse_numbers(value, &out->some_messages, &out->messages);
    if (hk_parse_i64(value, &number, NULL) != HK_OK || number < 1)
        return false;
    if (hk_str_eq(name, hk_str_of("relays")))
        out->relays = (size_t)number;
    else if (hk_str_eq(name, hk_str_of("dests")))
        out->dests = (size_t)number;
    else if (hk_str_eq(name, hk_str_of("until")))
        out->until_ms = number;
    else
        return false;
    return true;
}

bool hk_cut_parse(const char *text, struct hk_cut *out)
{
    struct hk_str rest = hk_str_of(text);
    *out = (struct hk_cut){.without = 0};
    while (rest.len) {
        struct hk_str value = hk_str_cut(&rest, ';'), name = hk_str_cut(&value, '=');
        if (!parse_part(name, value, out))
            return false;
    }
    return true;
}

void hk_cut_fini(struct hk_cut *cut)
{
    hk_numbers_fini(&cut->faults);
    hk_numbers_fini(&cut->messages);
}
