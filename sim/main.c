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
#include "world.h"

enum {
    LOG_MAX = 256 << 20,
    TWICE_EVERY = 50 /* so often a seed is run a second time: its trace must be the same */
};

struct options {
    uint64_t first, seeds, faults;
    bool trace, exhaustive, stop, tap, help;
};

struct totals {
    uint64_t seeds, messages, sends, faults, orphans, stale, repeats, swept, bad;
    int64_t virtual_ms;
};

static const char usage[] =
    "usage: hikyaku-sim [--seeds N] [--first S]    run N worlds, from seed S on; --stop: up to the first bad one\n"
    "       hikyaku-sim --seed S [--trace]         run one; --trace prints its event log\n"
    "       hikyaku-sim --exhaustive [--faults N]  every interleaving of 1 message, 2 relays, N faults (3)\n"
    "       --tap                                  say the result so that a test runner counts it\n";

/* ---- options ---- */

static bool read_number(int argc, char **argv, int *at, uint64_t *out)
{
    return ++*at < argc && hk_parse_u64(hk_str_of(argv[*at]), out, NULL) == HK_OK;
}

static bool read_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.first = 1, .seeds = 100, .faults = 3};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--trace") == 0) {
            o->trace = true;
        } else if (strcmp(argv[i], "--exhaustive") == 0) {
            o->exhaustive = true;
        } else if (strcmp(argv[i], "--stop") == 0) {
            o->stop = true;
        } else if (strcmp(argv[i], "--tap") == 0) {
            o->tap = true;
        } else if (strcmp(argv[i], "--help") == 0) {
            o->help = true;
        } else if (strcmp(argv[i], "--seed") == 0) {
            o->seeds = 1;
            if (!read_number(argc, argv, &i, &o->first))
                return false;
        } else if (strcmp(argv[i], "--seeds") == 0 || strcmp(argv[i], "--first") == 0 ||
                   strcmp(argv[i], "--faults") == 0) {
            uint64_t *number = argv[i][2] == 's' ? &o->seeds : argv[i][3] == 'i' ? &o->first : &o->faults;
            if (!read_number(argc, argv, &i, number))
                return false;
        } else {
            return false;
        }
    }
    return true;
}

/* ---- one seed ---- */

struct room {
    struct hk_buf log, dump, report;
};

static void print_trace(const struct room *room)
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
    totals->virtual_ms += world->virtual_ms;
    totals->orphans += check->orphans;
    totals->stale += check->stale;
    totals->repeats += check->repeats;
}

static void run_seed(uint64_t seed, const struct options *o, struct room *room, struct totals *totals)
{
    struct hk_world_result world, again;
    struct hk_check_result check;
    struct hk_check_options options = {.slack_ms = 0};
    char problem[640] = "";

    hk_world_run(seed, &room->log, &room->dump, &world);
    hk_buf_reset(&room->report);
    hk_check(hk_buf_str(&room->log), hk_buf_str(&room->dump), &options, &room->report, &check);
    if (o->trace)
        print_trace(room);
    add_up(totals, &world, &check);
    if (!world.ok)
        (void)snprintf(problem, sizeof problem, "%s", world.problem);
    else if (check.violations)
        (void)snprintf(problem, sizeof problem, "%zu violations", check.violations);
    else if (world.swept)
        (void)snprintf(problem, sizeof problem, "%llu rows were left to the sweep",
                       (unsigned long long)world.swept);
    if (!problem[0] && seed % TWICE_EVERY == 0) {
        hk_world_run(seed, &room->log, &room->dump, &again);
        if (again.trace_hash != world.trace_hash)
            (void)snprintf(problem, sizeof problem, "the same seed gave another trace");
    }
    if (!problem[0])
        return;
    totals->bad++;
    (void)printf("seed %llu: %s\n%sreplay: hikyaku-sim --seed %llu --trace\n", (unsigned long long)seed,
                 problem, hk_buf_cstr(&room->report), (unsigned long long)seed);
}

static double seconds(void)
{
    struct timespec ts;
    (void)clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static int run_seeds(const struct options *o)
{
    struct totals t = {.seeds = 0};
    struct room room;
    hk_buf_init(&room.log, LOG_MAX);
    hk_buf_init(&room.dump, LOG_MAX);
    hk_buf_init(&room.report, LOG_MAX);
    double start = seconds();
    for (uint64_t i = 0; i < o->seeds && !(o->stop && t.bad); i++)
        run_seed(o->first + i, o, &room, &t);
    double took = seconds() - start;
    hk_buf_fini(&room.log);
    hk_buf_fini(&room.dump);
    hk_buf_fini(&room.report);
    (void)printf(
        "%s%llu seeds, %llu bad: %llu messages, %llu sends, %llu faults, %llu orphans, %llu stale settles, "
        "%llu repeats, %.1f virtual hours, %.0f seeds/s\n",
        o->tap ? "# " : "", (unsigned long long)t.seeds, (unsigned long long)t.bad,
        (unsigned long long)t.messages, (unsigned long long)t.sends, (unsigned long long)t.faults,
        (unsigned long long)t.orphans, (unsigned long long)t.stale, (unsigned long long)t.repeats,
        (double)t.virtual_ms / 3600e3, took > 0 ? (double)t.seeds / took : 0.0);
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
    int rc = o.exhaustive ? hk_exhaust((unsigned)o.faults, o.tap ? "# " : "") : run_seeds(&o);
    if (o.tap)
        (void)printf("1..1\n%s 1 - %s\n", rc ? "not ok" : "ok",
                     o.exhaustive ? "every interleaving" : "all seeds");
    return rc;
}
