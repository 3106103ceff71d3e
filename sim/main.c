/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku-sim: runs worlds by seed and lets the checker judge each; or every interleaving of a very small one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/parse.h"
#include "base/str.h"
#include "checker.h"
#include "exhaust.h"
#include "shrink.h"
#include "world.h"

enum {
    FAULTS_MAX = 9,
    TWICE_EVERY = 50 /* so often a seed is run a second time: its trace must be the same */
};

struct options {
    uint64_t first, seeds, faults, messages;
    struct hk_cut cut;
    const char *list; /* a file of seeds; NULL = none */
    bool trace, shrink, exhaustive, plain, stop, tap, help;
};

struct totals {
    uint64_t seeds, messages, sends, faults, orphans, stale, repeats, swept, resets, defines, bad;
    int64_t virtual_ms;
};

static const char usage[] =
    "usage: hikyaku-sim [--seeds N] [--first S]    run N worlds, from seed S on; --stop: up to the first bad one\n"
    "       hikyaku-sim --seed S [--trace]         run one; --trace prints its event log\n"
    "       hikyaku-sim --list FILE                run those that a file names, one on each line\n"
    "       hikyaku-sim --seed S --shrink          make a failing one small; --cut PARTS replays the result\n"
    "       hikyaku-sim --exhaustive [--messages N] [--faults N] [--plain]\n"
    "                                              every interleaving of 1 or 2 messages, 2 relays, N faults (3);\n"
    "                                              --plain: every path to its end, and equal states compared\n"
    "       --tap                                  say the result so that a test runner counts it\n";

/* ---- options ---- */

static bool read_number(int argc, char **argv, int *at, uint64_t *out)
{
    return ++*at < argc && hk_parse_u64(hk_str_of(argv[*at]), out, NULL) == HK_OK;
}

static bool *flag_named(struct options *o, const char *name)
{
    const struct {
        const char *name;
        bool *flag;
    } flags[] = {{"--trace", &o->trace},   {"--exhaustive", &o->exhaustive},
                 {"--shrink", &o->shrink}, {"--plain", &o->plain},
                 {"--stop", &o->stop},     {"--tap", &o->tap},
                 {"--help", &o->help}};

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strcmp(name, flags[i].name) == 0)
            return flags[i].flag;
    return NULL;
}

static uint64_t *number_named(struct options *o, const char *name)
{
    const struct {
        const char *name;
        uint64_t *number;
    } numbers[] = {{"--seeds", &o->seeds},
                   {"--seed", &o->first},
                   {"--first", &o->first},
                   {"--faults", &o->faults},
                   {"--messages", &o->messages}};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        if (strcmp(name, numbers[i].name) == 0)
            return numbers[i].number;
    return NULL;
}

/* What makes no sense, or says "all green" of nothing. */
static bool options_fit(const struct options *o)
{
    if (o->messages != 1 && o->messages != 2)
        (void)fprintf(stderr, "hikyaku-sim: --messages is 1 or 2\n");
    else if (o->faults > FAULTS_MAX)
        (void)fprintf(stderr, "hikyaku-sim: --faults is at most %d: no machine walks through more\n",
                      FAULTS_MAX);
    else if (o->seeds == 0)
        (void)fprintf(stderr, "hikyaku-sim: --seeds 0 proves nothing\n");
    else
        return true;
    return false;
}

static bool wrong_option(const char *name)
{
    (void)fprintf(stderr, "hikyaku-sim: %s: there is no such option, or its value is not one\n", name);
    return false;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.first = 1, .seeds = 100, .faults = 3, .messages = 1};
    for (int i = 1; i < argc; i++) {
        const char *name = argv[i];
        bool *flag = flag_named(o, argv[i]);
        uint64_t *number = number_named(o, argv[i]);
        if (strcmp(argv[i], "--seed") == 0)
            o->seeds = 1;
        if (flag) {
            *flag = true;
        } else if (number) {
            if (!read_number(argc, argv, &i, number))
                return wrong_option(name);
        } else if (strcmp(argv[i], "--list") == 0 && i + 1 < argc) {
            o->list = argv[++i];
        } else if (strcmp(argv[i], "--cut") != 0 || ++i == argc || !hk_cut_parse(argv[i], &o->cut)) {
            return wrong_option(name);
        }
    }
    return options_fit(o);
}

/* ---- one seed ---- */

static void print_trace(const struct hk_room *room)
{
    (void)fputs(hk_buf_cstr(&room->log), stdout);
    (void)fputs(hk_buf_cstr(&room->dump), stdout);
}

static void add_up(struct totals *totals, const struct hk_world_result *world,
                   const struct hk_check_result *check)
{
    totals->seeds++;
    totals->messages += world->messages;
    totals->sends += world->sends;
    totals->faults += world->faults;
    totals->swept += world->swept;
    totals->resets += world->resets;
    totals->defines += world->defines;
    totals->virtual_ms += world->virtual_ms;
    totals->orphans += check->orphans;
    totals->stale += check->stale;
    totals->repeats += check->repeats;
}

static void run_seed(uint64_t seed, const struct options *o, struct hk_room *room, struct totals *totals)
{
    struct hk_world_result world, again;
    struct hk_check_result check;
    char problem[HK_VERDICT_MAX];

    hk_room_run(room, seed, &o->cut, NULL, &world, &check, problem);
    if (o->trace)
        print_trace(room);
    add_up(totals, &world, &check);
    if (check.violations)
        (void)snprintf(problem, sizeof problem, world.ok ? "%zu violations" : "%zu violations; %s",
                       check.violations, world.problem);
    if (!problem[0] && seed % TWICE_EVERY == 0) {
        hk_world_run_cut(seed, &o->cut, NULL, &room->log, &room->dump, &again);
        if (again.trace_hash != world.trace_hash)
            (void)snprintf(problem, sizeof problem, "the same seed gave another trace");
    }
    if (!problem[0])
        return;
    totals->bad++;
    (void)printf(
        "seed %llu: %s\n%sreplay: hikyaku-sim --seed %llu --trace, made small: --seed %llu --shrink\n",
        (unsigned long long)seed, problem, hk_buf_cstr(&room->report), (unsigned long long)seed,
        (unsigned long long)seed);
}

static double seconds(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* A seed, and what it once found; "#" begins a comment. */
static bool run_list(const struct options *o, struct hk_room *room, struct totals *totals)
{
    char line[256];
    FILE *file = fopen(o->list, "r");
    if (!file) {
        (void)fprintf(stderr, "%s: cannot be read\n", o->list);
        return false;
    }
    bool fine = true;
    while (fine && fgets(line, sizeof line, file)) {
        uint64_t seed = 0;
        struct hk_str word = {line, strcspn(line, " \n")};
        if (word.len == 0 || line[0] == '#')
            continue;
        fine = hk_parse_u64(word, &seed, NULL) == HK_OK;
        if (fine)
            run_seed(seed, o, room, totals);
        else
            (void)fprintf(stderr, "%s: not a seed: %.*s\n", o->list, (int)word.len, word.ptr);
    }
    (void)fclose(file);
    if (fine && totals->seeds == 0) {
        (void)fprintf(stderr, "%s: it names no seed\n", o->list);
        return false;
    }
    return fine;
}

static int run_seeds(const struct options *o)
{
    struct totals t = {.seeds = 0};
    struct hk_room room;
    hk_room_init(&room);
    double start = seconds();
    if (o->list && !run_list(o, &room, &t))
        t.bad++;
    for (uint64_t i = 0; !o->list && i < o->seeds && !(o->stop && t.bad); i++)
        run_seed(o->first + i, o, &room, &t);
    double took = seconds() - start;
    hk_room_fini(&room);
    (void)printf(
        "%s%llu seeds, %llu bad: %llu messages, %llu sends, %llu faults, %llu orphans, %llu stale settles, "
        "%llu repeats, %llu resets of the clock, %llu definitions, %.1f virtual hours, %.0f seeds/s\n",
        o->tap ? "# " : "", (unsigned long long)t.seeds, (unsigned long long)t.bad,
        (unsigned long long)t.messages, (unsigned long long)t.sends, (unsigned long long)t.faults,
        (unsigned long long)t.orphans, (unsigned long long)t.stale, (unsigned long long)t.repeats,
        (unsigned long long)t.resets, (unsigned long long)t.defines, (double)t.virtual_ms / 3600e3,
        took > 0 ? (double)t.seeds / took : 0.0);
    return t.bad ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct options o;
    if (!read_options(argc, argv, &o)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    if (o.help) {
        (void)fputs(usage, stdout);
        return 0;
    }
    struct hk_exhaust_options all = {.messages = (unsigned)o.messages,
                                     .faults = (unsigned)o.faults,
                                     .plain = o.plain,
                                     .prefix = o.tap ? "# " : ""};
    int rc = o.exhaustive ? hk_exhaust(&all) : o.shrink ? hk_shrink(o.first) : run_seeds(&o);
    hk_cut_fini(&o.cut);
    if (o.tap)
        (void)printf("1..1\n%s 1 - %s\n", rc ? "not ok" : "ok",
                     o.exhaustive ? "every interleaving" : "all seeds");
    return rc;
}
