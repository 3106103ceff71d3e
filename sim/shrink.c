/* SPDX-License-Identifier: Apache-2.0 */
/* The shrinker: tries smaller worlds of the same seed, one change after the other, and keeps each that still fails by the
 * same rule. First faults (whole kinds, then single ones), then messages, relays, destinations and time; again and again
 * until a round brings nothing more. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "shrink.h"

enum {
    LOG_MAX = 256 << 20,
    TRIES_MAX = 4000,
    ROUNDS_MAX = 4
};

/* ---- running ---- */

void hk_room_init(struct hk_room *room)
{
    hk_buf_init(&room->log, LOG_MAX);
    hk_buf_init(&room->dump, LOG_MAX);
    hk_buf_init(&room->report, LOG_MAX);
}

void hk_room_fini(struct hk_room *room)
{
    hk_buf_fini(&room->log);
    hk_buf_fini(&room->dump);
    hk_buf_fini(&room->report);
}

void hk_room_run(struct hk_room *room, uint64_t seed, const struct hk_cut *cut, struct hk_numbers *strikes,
                 struct hk_world_result *world, struct hk_check_result *check, char verdict[HK_VERDICT_MAX])
{
    struct hk_check_options options = {.slack_ms = 0};
    hk_world_run_cut(seed, cut, strikes, &room->log, &room->dump, world);
    options.many_lanes = world->many_lanes;
    hk_buf_reset(&room->report);
    hk_check(hk_buf_str(&room->log), hk_buf_str(&room->dump), &options, &room->report, check);
    verdict[0] = '\0';
    if (check->violations) {
        struct hk_str report = hk_buf_str(&room->report);
        (void)hk_str_copy(verdict, HK_VERDICT_MAX, hk_str_cut(&report, ':'));
    } else if (!world->ok) {
        (void)snprintf(verdict, HK_VERDICT_MAX, "%s", world->problem);
    } else if (world->swept) {
        (void)snprintf(verdict, HK_VERDICT_MAX, "%" PRIu64 " rows were left to the sweep", world->swept);
    }
}

/* ---- trying ---- */

/* How large a world is. */
struct size {
    size_t messages, faults, relays, dests, lines;
    int64_t ms;
};

struct shrinker {
    uint64_t seed;
    char verdict[HK_VERDICT_MAX]; /* what it must go on to fail by */
    struct hk_room room;
    struct hk_cut cut;         /* the smallest so far */
    struct hk_numbers strikes; /* of that */
    struct hk_numbers heard;   /* of the last one tried */
    struct size first, now;
    size_t tries;
};

/* Words with numbers in them say which row or how many; the rest says what is wrong. */
static bool same_verdict(const char *a, const char *b)
{
    struct hk_str x = hk_str_of(a), y = hk_str_of(b);
    if (a[0] == 'I' || b[0] == 'I')
        return strcmp(a, b) == 0;
    while (x.len || y.len) {
        struct hk_str s = hk_str_cut(&x, ' '), t = hk_str_cut(&y, ' ');
        bool numbers = s.len && t.len && memchr("0123456789", s.ptr[s.len - 1], 10) &&
                       memchr("0123456789", t.ptr[t.len - 1], 10);
        if (!numbers && !hk_str_eq(s, t))
            return false;
    }
    return true;
}

static struct size measure(const struct shrinker *s, const struct hk_world_result *world)
{
    struct size size = {.messages = s->cut.some_messages ? s->cut.messages.n : world->messages,
                        .faults = s->heard.n,
                        .relays = world->relays,
                        .dests = world->dests,
                        .ms = world->virtual_ms};
    for (size_t i = 0; i < s->room.log.len; i++)
        size.lines += s->room.log.data[i] == '\n';
    return size;
}

/* Is s->cut, as it stands, still a world that fails so? */
static bool fails(struct shrinker *s)
{
    struct hk_world_result world;
    struct hk_check_result check;
    char verdict[HK_VERDICT_MAX];
    if (s->tries++ >= TRIES_MAX)
        return false;
    s->heard.n = 0;
    hk_room_run(&s->room, s->seed, &s->cut, &s->heard, &world, &check, verdict);
    if (!verdict[0] || !same_verdict(verdict, s->verdict))
        return false;
    s->now = measure(s, &world);
    hk_numbers_copy(&s->strikes, &s->heard);
    return true;
}

/* ---- what is left out ---- */

static bool fewer_kinds(struct shrinker *s)
{
    bool any = false;
    for (size_t i = 0; i < hk_cut_kinds(); i++) {
        uint64_t bit = (uint64_t)1 << i;
        if (s->cut.without & bit)
            continue;
        s->cut.without |= bit;
        if (fails(s))
            any = true;
        else
            s->cut.without &= ~bit;
    }
    return any;
}

/* Takes chunks out of the list, large ones first, as long as it fails without them. */
static bool fewer_of(struct shrinker *s, struct hk_numbers *list)
{
    bool any = false;
    struct hk_numbers kept = {.n = 0};
    for (size_t chunk = list->n; chunk > 0; chunk /= 2) {
        for (size_t at = 0; at < list->n;) {
            size_t n = chunk < list->n - at ? chunk : list->n - at;
            hk_numbers_copy(&kept, list);
            memmove(list->items + at, list->items + at + n, (list->n - at - n) * sizeof *list->items);
            list->n -= n;
            if (fails(s)) {
                any = true;
                continue;
            }
            hk_numbers_copy(list, &kept);
            at += n;
        }
    }
    hk_numbers_fini(&kept);
    return any;
}

static bool fewer_faults(struct shrinker *s)
{
    struct hk_numbers before = {.n = 0};
    bool some = s->cut.some_faults;
    hk_numbers_copy(&before, &s->cut.faults);
    s->cut.some_faults = true;
    hk_numbers_copy(&s->cut.faults, &s->strikes);
    if (!fails(s)) { /* some trouble does not count as a fault: leave it */
        s->cut.some_faults = some;
        hk_numbers_copy(&s->cut.faults, &before);
    }
    hk_numbers_fini(&before);
    return s->cut.some_faults && fewer_of(s, &s->cut.faults);
}

static bool fewer_messages(struct shrinker *s)
{
    if (!s->cut.some_messages)
        for (size_t i = 0; i < s->first.messages; i++)
            hk_numbers_add(&s->cut.messages, (int64_t)i);
    s->cut.some_messages = true;
    return fewer_of(s, &s->cut.messages);
}

static bool fewer(struct shrinker *s, size_t *limit, size_t now)
{
    size_t before = *limit;
    for (size_t n = 1; n < now; n++) {
        *limit = n;
        if (fails(s))
            return true;
    }
    *limit = before;
    return false;
}

static bool less_time(struct shrinker *s)
{
    int64_t before = s->cut.until_ms;
    for (int64_t ms = 1; ms < s->now.ms && (!before || ms < before); ms *= 2) {
        s->cut.until_ms = ms;
        if (fails(s))
            return true;
    }
    s->cut.until_ms = before;
    return false;
}

static void shrink(struct shrinker *s)
{
    bool any = true;
    for (int round = 0; any && round < ROUNDS_MAX; round++) {
        any = fewer_kinds(s);
        any |= fewer_faults(s);
        any |= fewer_messages(s);
        any |= fewer(s, &s->cut.relays, s->now.relays);
        any |= fewer(s, &s->cut.dests, s->now.dests);
        any |= less_time(s);
    }
}

/* ---- telling ---- */

static void print_shrunk(struct shrinker *s)
{
    struct hk_buf cut;
    hk_buf_init(&cut, LOG_MAX);
    hk_cut_print(&s->cut, &cut);
    s->tries = 0;
    bool ok = fails(s);
    (void)printf("%s%s%s", hk_buf_cstr(&s->room.log), hk_buf_cstr(&s->room.dump),
                 hk_buf_cstr(&s->room.report));
    (void)printf("seed %" PRIu64 ": %s%s\n", s->seed, s->verdict,
                 ok ? "" : " (and not again: it is not the same twice)");
    (void)printf(
        "shrunk: messages %zu -> %zu, faults %zu -> %zu, relays %zu -> %zu, destinations %zu -> %zu, "
        "virtual ms %" PRId64 " -> %" PRId64 ", lines %zu -> %zu\n",
        s->first.messages, s->now.messages, s->first.faults, s->now.faults, s->first.relays, s->now.relays,
        s->first.dests, s->now.dests, s->first.ms, s->now.ms, s->first.lines, s->now.lines);
    (void)printf("replay: hikyaku-sim --seed %" PRIu64 " --cut '%s' --trace\n", s->seed, hk_buf_cstr(&cut));
    hk_buf_fini(&cut);
}

int hk_shrink(uint64_t seed)
{
    struct shrinker *s = calloc(1, sizeof *s);
    struct hk_world_result world;
    struct hk_check_result check;
    if (!s)
        abort();
    s->seed = seed;
    hk_room_init(&s->room);
    hk_room_run(&s->room, seed, NULL, &s->heard, &world, &check, s->verdict);
    bool bad = s->verdict[0] != '\0';
    if (bad) {
        s->first = s->now = measure(s, &world);
        hk_numbers_copy(&s->strikes, &s->heard);
        shrink(s);
        print_shrunk(s);
    } else {
        (void)printf("seed %" PRIu64 ": nothing is wrong with it\n", seed);
    }
    hk_numbers_fini(&s->strikes);
    hk_numbers_fini(&s->heard);
    hk_cut_fini(&s->cut);
    hk_room_fini(&s->room);
    free(s);
    return bad ? 1 : 0;
}
