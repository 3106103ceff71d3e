/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy plan */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/policies.h"

static void add_row(struct hk_buf *out, bool drawn_too, const struct hk_plan_row *row, uint32_t attempt)
{
    char earliest[HK_SHOW_NUMBER], median[HK_SHOW_NUMBER], latest[HK_SHOW_NUMBER], total[HK_SHOW_NUMBER],
        drawn[HK_SHOW_NUMBER];

    if (row->last) {
        (void)hk_buf_addf(out, "%7" PRIu32 "  %9s  %9s  %9s  %9s", attempt, "-", "-", "-", "-");
        (void)hk_buf_addf(out, drawn_too ? "  %9s\n" : "\n", "-");
        return;
    }
    (void)hk_buf_addf(out, "%7" PRIu32 "  %9s  %9s  %9s  %9s", attempt,
                      hk_show_duration(row->earliest_ms, earliest), hk_show_duration(row->median_ms, median),
                      hk_show_duration(row->latest_ms, latest), hk_show_duration(row->cumulative_ms, total));
    if (drawn_too)
        (void)hk_buf_addf(out, "  %9s", hk_show_duration(row->wait_ms, drawn));
    (void)hk_buf_addf(out, "\n");
}

/* What ends it: the attempts, the time, or both together. */
enum way {
    BY_ATTEMPTS,
    BY_TIME,
    BY_BOTH,
    N_WAYS
};

/* The way in words; false when it cannot end failures of this class. */
static bool way_text(const struct hk_plan_limits *limits, enum way way, char out[128])
{
    char attempts[HK_SHOW_NUMBER], time[HK_SHOW_NUMBER];

    switch (way) {
    case BY_ATTEMPTS:
        (void)snprintf(out, 128, "%s attempts (RETRY_EXHAUSTED)", hk_show_count(limits->attempts, attempts));
        return limits->attempts != 0;
    case BY_TIME:
        (void)snprintf(out, 128, "%s (DEADLINE_EXCEEDED)", hk_show_duration(limits->elapsed_ms, time));
        return limits->elapsed_ms != 0;
    case BY_BOTH:
        (void)snprintf(out, 128, "%s attempts and %s (RETRY_EXHAUSTED)",
                       hk_show_count(limits->both_attempts, attempts),
                       hk_show_duration(limits->both_ms, time));
        return limits->both_attempts != 0;
    case N_WAYS:
        break;
    }
    return false;
}

/* The limit that ended most runs first, then those that could have. */
static void add_limits(struct hk_buf *out, const struct hk_policy_planned *p)
{
    const struct hk_plan *plan = &p->plan;
    const struct hk_plan_limits *limits = &p->limits;
    char text[128], attempts[HK_SHOW_NUMBER], elapsed[HK_SHOW_NUMBER];

    enum way usual = BY_TIME;
    if (strcmp(plan->usual_reason, "RETRY_EXHAUSTED") == 0)
        usual = limits->attempts != 0 && plan->median_attempts >= limits->attempts ? BY_ATTEMPTS : BY_BOTH;
    (void)way_text(limits, usual, text);
    (void)hk_buf_addf(out, "dead letter after %s", text);
    for (int way = 0; way < N_WAYS; way++)
        if (way != (int)usual && way_text(limits, (enum way)way, text))
            (void)hk_buf_addf(out, " or %s", text);
    if (usual != BY_ATTEMPTS)
        (void)hk_buf_addf(out, ", usually at attempt %s%s", plan->estimated ? "~" : "",
                          hk_show_count(plan->median_attempts, attempts));
    (void)hk_buf_addf(out, ", about %s on average\n", hk_show_duration(plan->mean_ms, elapsed));
}

static void add_end(struct hk_buf *out, const struct hk_policy_planned *p)
{
    const struct hk_plan *plan = &p->plan;
    if (strcmp(plan->usual_reason, "RETRY_EXHAUSTED") == 0 ||
        strcmp(plan->usual_reason, "DEADLINE_EXCEEDED") == 0)
        add_limits(out, p);
    else /* never retried: the failure itself is the reason */
        (void)hk_buf_addf(out, "dead letter at the first failure (%s)\n", plan->usual_reason);
}

static void print_plan(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_policy_planned *p = result;
    const struct hk_plan *plan = &p->plan;
    bool drawn_too = hk_args_flag(ask->cli, "seed");
    char more[HK_SHOW_NUMBER];

    (void)hk_buf_addf(out, "%s: waits when every attempt fails (class %s)\n\n",
                      p->name != NULL ? p->name : "-", hk_class_name(p->cls));
    (void)hk_buf_addf(out, "%7s  %9s  %9s  %9s  %9s", "attempt", "earliest", "median", "latest", "so far");
    (void)hk_buf_addf(out, drawn_too ? "  %9s\n" : "\n", "drawn");
    for (size_t i = 0; i < p->shown; i++)
        add_row(out, drawn_too, &plan->rows[i], (uint32_t)i + 1);
    if (p->shown < plan->attempts)
        (void)hk_buf_addf(out, "    ... %s%s more\n", plan->attempts > HK_PLAN_ROWS_MAX ? "about " : "",
                          hk_show_count(plan->attempts - p->shown, more));
    (void)hk_buf_addf(out, "\n");
    add_end(out, p);
    hk_policy_make_safe(out);
}

int hk_cmd_policy_plan(struct hk_cli *cli)
{
    return hk_policy_ask(cli, NULL, print_plan);
}
