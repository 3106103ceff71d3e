/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead groups, dead stats: dead letters that failed in the same way, and the figures of requirement 113. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/dead_look.h"

enum {
    BAR = 40,
};

/* ---- groups ---- */

static void add_hours(struct hk_buf *out, const struct hk_letter_group *g)
{
    (void)hk_buf_adds(out, "          each hour of a day, now last:");
    for (size_t i = 0; i < HK_LETTER_HOURS; i++)
        (void)hk_buf_addf(out, " %" PRIu64, g->hours[i]);
    (void)hk_buf_addc(out, '\n');
}

/* How far it came. */
static void add_bound(struct hk_buf *out, const struct hk_letter_groups *groups)
{
    char looked[HK_SHOW_NUMBER], about[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out, "counted: only the %s letters that were looked at, newest first",
                      hk_show_count(groups->looked, looked));
    if (groups->about > 0)
        (void)hk_buf_addf(out, "; about %s match", hk_show_count(groups->about, about));
    (void)hk_buf_addf(out, "\ncontinue with --after %" PRId64 " (--scan N counts more at once)\n",
                      groups->next);
}

static void print_groups(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_letter_groups *groups = result;
    char first[64], last[64], n[HK_SHOW_NUMBER];
    (void)ask;
    for (size_t i = 0; i < groups->n; i++) {
        const struct hk_letter_group *g = &groups->items[i];
        (void)hk_buf_addf(out, "%8s  ", hk_show_count(g->n, n));
        (void)hk_table_safe(out, hk_say_to(g->destination), 30);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, g->reason, 30);
        (void)hk_buf_addf(out, "  %s  first %s, last %s",
                          hk_str_eq(g->blame, hk_str_of("pipeline")) ? "our pipeline" : "the destination",
                          hk_show_ago(g->first_ms, groups->now_ms, first),
                          hk_show_ago(g->last_ms, groups->now_ms, last));
        hk_dead_maybe(out, g->maybe);
        (void)hk_buf_adds(out, "\n          group ");
        (void)hk_table_safe(out, g->fingerprint.len > 0 ? g->fingerprint : hk_str_of("(none)"), 20);
        (void)hk_buf_addf(out, ", e.g. %" PRId64 " ", g->example_id);
        (void)hk_table_safe(out, g->example_event_type, 30);
        (void)hk_buf_adds(out, ": ");
        (void)hk_table_safe(out, g->example_error, 200);
        (void)hk_buf_addc(out, '\n');
        if (g->hours)
            add_hours(out, g);
    }
    (void)hk_buf_addf(out, "%s letter%s in %s%zu group%s", hk_show_count(groups->letters, n),
                      groups->letters == 1 ? "" : "s", groups->more ? "more than " : "", groups->n,
                      groups->n == 1 ? "" : "s");
    hk_dead_maybe(out, groups->maybe);
    (void)hk_buf_addc(out, '\n');
    if (groups->partial)
        add_bound(out, groups);
}

int hk_cmd_dead_groups(struct hk_cli *cli)
{
    return hk_looking_once(cli, print_groups);
}

/* ---- stats ---- */

/* In per cent of those whose outcome is known; UINT64_MAX: none is. */
static uint64_t success_percent(const struct hk_letter_stats *s)
{
    uint64_t known = s->requeued_resolved + s->requeued_failed;
    return known > 0 ? s->requeued_resolved * 100 / known : UINT64_MAX;
}

static void write_days(struct hk_buf *out, const struct hk_letter_stats *s)
{
    uint64_t most = 1;
    size_t first = 0;
    char day[HK_TIME_TEXT_MAX];
    for (size_t i = 0; i < HK_STATS_DAYS; i++)
        most = s->days[i].n > most ? s->days[i].n : most;
    while (first + 1 < HK_STATS_DAYS && s->days[first].n == 0)
        first++;
    (void)hk_buf_adds(out, "\nby day (UTC)\n");
    for (size_t i = first; i < HK_STATS_DAYS; i++) {
        (void)hk_format_rfc3339(s->days[i].day_ms, day);
        (void)hk_buf_addf(out, "  %.10s %8" PRIu64 " ", day, s->days[i].n);
        for (uint64_t k = 0; k < (s->days[i].n * BAR + most - 1) / most; k++)
            (void)hk_buf_adds(out, hk_out_utf8() ? "█" : "#");
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_tally(struct hk_buf *out, const char *title, const struct hk_tally *items, size_t n)
{
    char text[HK_SHOW_NUMBER];
    if (n == 0)
        return;
    (void)hk_buf_addf(out, "\n%s\n", title);
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_addf(out, "  %10s  ", hk_show_count(items[i].n, text));
        (void)hk_table_safe(out, items[i].name, 60);
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_oldest(struct hk_buf *out, const struct hk_letter_stats *s)
{
    char ago[64];
    if (s->n_oldest == 0)
        return;
    (void)hk_buf_adds(out, "\noldest that are open, by first failure\n");
    for (size_t i = 0; i < s->n_oldest; i++) {
        const struct hk_letter *l = &s->oldest[i];
        (void)hk_buf_addf(out, "  %10" PRId64 "  %-12s  ", l->id,
                          hk_show_ago(l->first_failed_ms, s->now_ms, ago));
        (void)hk_table_safe(out, hk_say_to(l->destination), 20);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, l->event_type, 30);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, l->reason, 30);
        (void)hk_buf_addc(out, '\n');
    }
}

static void print_stats(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_letter_stats *s = result;
    (void)ask;
    char a[HK_SHOW_NUMBER], b[HK_SHOW_NUMBER], c[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out, "%s dead letters", hk_show_count(hk_letter_stats_total(s), a));
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        (void)hk_buf_addf(out, "%s %s %s", i == 0 ? ":" : ",", hk_show_count(s->by_status[i], a),
                          hk_letter_status_name((enum hk_letter_status)i));
    (void)hk_buf_addf(out,
                      "\nof the open ones %s were refused by their destination, %s broke in our pipeline\n",
                      hk_show_count(s->by_blame[HK_BLAME_DESTINATION], a),
                      hk_show_count(s->by_blame[HK_BLAME_PIPELINE], b));
    (void)hk_buf_addf(out, "requeued: %s; %s arrived, %s failed again, ", hk_show_count(s->requeued, a),
                      hk_show_count(s->requeued_resolved, b), hk_show_count(s->requeued_failed, c));
    (void)hk_buf_addf(out, "%s on the way", hk_show_count(s->requeued_waiting, a));
    if (success_percent(s) != UINT64_MAX)
        (void)hk_buf_addf(out, "; success rate %" PRIu64 " %%", success_percent(s));
    (void)hk_buf_addc(out, '\n');
    if (hk_letter_stats_total(s) == 0)
        return;
    write_days(out, s);
    write_tally(out, "by reason", s->reasons, s->n_reasons);
    write_tally(out, "by event type", s->event_types, s->n_event_types);
    write_tally(out, "by destination", s->destinations, s->n_destinations);
    write_oldest(out, s);
}

int hk_cmd_dead_stats(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_stats);
}
