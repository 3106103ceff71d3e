/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku policy plan */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/policy/plan.h"
#include "cli/policy/policies.h"
#include "desk/put.h"

struct request {
    const struct hk_policy *policy;
    enum hk_class cls;
    uint64_t seed;
    uint64_t rows; /* shown at most */
    bool show_drawn;
    bool json;
};

static void row_json(struct hk_json *json, const struct hk_plan_row *row, uint32_t attempt)
{
    const struct {
        const char *key;
        uint64_t ms;
    } fields[] = {{"wait_ms", row->wait_ms},
                  {"earliest_ms", row->earliest_ms},
                  {"median_ms", row->median_ms},
                  {"latest_ms", row->latest_ms},
                  {"cumulative_ms", row->cumulative_ms}};

    hk_json_object(json);
    hk_put_u64(json, "attempt", attempt);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        hk_json_key(json, fields[i].key);
        if (row->last)
            hk_json_null(json);
        else
            hk_json_u64(json, fields[i].ms);
    }
    hk_json_end(json);
}

static void end_json(struct hk_json *json, const struct hk_plan *plan)
{
    hk_json_key(json, "end");
    hk_json_object(json);
    hk_put_cstr(json, "reason", plan->usual_reason);
    hk_put_u64(json, "attempts", plan->median_attempts);
    hk_put_u64(json, "median_ms", plan->median_ms);
    hk_put_u64(json, "mean_ms", plan->mean_ms);
    hk_put_bool(json, "estimated", plan->estimated);
    hk_json_end(json);
}

static int print_json(const struct request *request, const struct hk_plan *plan)
{
    struct hk_json json;
    struct hk_buf buf;

    hk_buf_init(&buf, 1 << 20);
    hk_json_init(&json, &buf, true);
    hk_json_object(&json);
    hk_put_cstr(&json, "policy", hk_policy_name(request->policy));
    hk_put_u64(&json, "seed", request->seed);
    hk_put_cstr(&json, "class", hk_class_name(request->cls));
    hk_json_key(&json, "attempts");
    hk_json_array(&json);
    for (uint32_t i = 0; i < plan->n_rows && i < request->rows; i++)
        row_json(&json, &plan->rows[i], i + 1);
    hk_json_end(&json);
    end_json(&json, plan);
    hk_json_end(&json);
    (void)hk_buf_addc(&buf, '\n');
    return hk_out_buffer(&buf);
}

static void print_row(const struct request *request, const struct hk_plan_row *row, uint32_t attempt)
{
    char earliest[HK_OUT_TEXT], median[HK_OUT_TEXT], latest[HK_OUT_TEXT], total[HK_OUT_TEXT],
        drawn[HK_OUT_TEXT];

    if (row->last) {
        (void)printf("%7" PRIu32 "  %9s  %9s  %9s  %9s", attempt, "-", "-", "-", "-");
        (void)printf(request->show_drawn ? "  %9s\n" : "\n", "-");
        return;
    }
    (void)printf("%7" PRIu32 "  %9s  %9s  %9s  %9s", attempt, hk_out_duration(row->earliest_ms, earliest),
                 hk_out_duration(row->median_ms, median), hk_out_duration(row->latest_ms, latest),
                 hk_out_duration(row->cumulative_ms, total));
    if (request->show_drawn)
        (void)printf("  %9s", hk_out_duration(row->wait_ms, drawn));
    (void)printf("\n");
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
    char attempts[HK_OUT_TEXT], time[HK_OUT_TEXT];

    switch (way) {
    case BY_ATTEMPTS:
        (void)snprintf(out, 128, "%s attempts (RETRY_EXHAUSTED)", hk_out_count(limits->attempts, attempts));
        return limits->attempts != 0;
    case BY_TIME:
        (void)snprintf(out, 128, "%s (DEADLINE_EXCEEDED)", hk_out_duration(limits->elapsed_ms, time));
        return limits->elapsed_ms != 0;
    case BY_BOTH:
        (void)snprintf(out, 128, "%s attempts and %s (RETRY_EXHAUSTED)",
                       hk_out_count(limits->both_attempts, attempts), hk_out_duration(limits->both_ms, time));
        return limits->both_attempts != 0;
    case N_WAYS:
        break;
    }
    return false;
}

/* The limit that ended most runs first, then those that could have. */
static void print_limits(const struct request *request, const struct hk_plan *plan)
{
    struct hk_plan_limits limits;
    char text[128], attempts[HK_OUT_TEXT], elapsed[HK_OUT_TEXT];

    hk_plan_limits(request->policy, request->cls, &limits);
    enum way usual = BY_TIME;
    if (strcmp(plan->usual_reason, "RETRY_EXHAUSTED") == 0)
        usual = limits.attempts != 0 && plan->median_attempts >= limits.attempts ? BY_ATTEMPTS : BY_BOTH;
    (void)way_text(&limits, usual, text);
    (void)printf("dead letter after %s", text);
    for (int way = 0; way < N_WAYS; way++)
        if (way != (int)usual && way_text(&limits, (enum way)way, text))
            (void)printf(" or %s", text);
    if (usual != BY_ATTEMPTS)
        (void)printf(", usually at attempt %s%s", plan->estimated ? "~" : "",
                     hk_out_count(plan->median_attempts, attempts));
    (void)printf(", about %s on average\n", hk_out_duration(plan->mean_ms, elapsed));
}

static void print_end(const struct request *request, const struct hk_plan *plan)
{
    if (strcmp(plan->usual_reason, "RETRY_EXHAUSTED") == 0 ||
        strcmp(plan->usual_reason, "DEADLINE_EXCEEDED") == 0)
        print_limits(request, plan);
    else /* never retried: the failure itself is the reason */
        (void)printf("dead letter at the first failure (%s)\n", plan->usual_reason);
}

static void print_table(const struct request *request, const struct hk_plan *plan)
{
    uint32_t shown = plan->n_rows < request->rows ? plan->n_rows : (uint32_t)request->rows;
    char more[HK_OUT_TEXT];

    (void)printf("%s: waits when every attempt fails (class %s)\n\n", hk_policy_name(request->policy),
                 hk_class_name(request->cls));
    (void)printf("%7s  %9s  %9s  %9s  %9s", "attempt", "earliest", "median", "latest", "so far");
    (void)printf(request->show_drawn ? "  %9s\n" : "\n", "drawn");
    for (uint32_t i = 0; i < shown; i++)
        print_row(request, &plan->rows[i], i + 1);
    if (shown < plan->attempts)
        (void)printf("    ... %s%s more\n", plan->attempts > HK_PLAN_ROWS_MAX ? "about " : "",
                     hk_out_count(plan->attempts - shown, more));
    (void)printf("\n");
    print_end(request, plan);
}

static int read_class(const struct hk_cli *cli, enum hk_class *cls)
{
    const char *name = hk_args_value(cli, "class");

    *cls = name == NULL ? HK_CLASS_TRANSIENT : hk_class_by_name(name);
    if (*cls == HK_NCLASSES || *cls == HK_CLASS_SUCCESS)
        return hk_out_error(
            HK_EXIT_USAGE,
            "option '--class' is one of transient, rate_limit, auth, permanent, unknown, not '%s'", name);
    return HK_EXIT_OK;
}

static int make_and_print(const struct request *request)
{
    struct hk_facts facts;
    struct hk_plan plan;
    struct hk_err err;

    if (!hk_plan_facts(request->policy, request->cls, &facts))
        return hk_out_error(
            HK_EXIT_FAILURE,
            "policy '%s' puts no plain answer into class %s, so that there is nothing to plan",
            hk_policy_name(request->policy), hk_class_name(request->cls));
    if (hk_plan_make(request->policy, request->cls, &facts, request->seed, &plan, &err) != HK_OK)
        return hk_out_failure(&err);
    int code = HK_EXIT_OK;
    if (request->json)
        code = print_json(request, &plan);
    else
        print_table(request, &plan);
    hk_plan_fini(&plan);
    return code;
}

int hk_cmd_policy_plan(struct hk_cli *cli)
{
    struct request request = {.seed = 1,
                              .rows = HK_PLAN_ROWS_MAX,
                              .show_drawn = hk_args_flag(cli, "seed"),
                              .json = hk_args_flag(cli, "json")};
    struct hk_policies *policies = NULL;

    if (!hk_args_u64(cli, "attempts", 1, HK_PLAN_ROWS_MAX, &request.rows) ||
        !hk_args_u64(cli, "seed", 0, UINT64_MAX, &request.seed))
        return HK_EXIT_USAGE;
    int code = read_class(cli, &request.cls);
    if (code == HK_EXIT_OK)
        code = hk_cli_policy_to_run(cli, &policies, &request.policy);
    if (code == HK_EXIT_OK)
        code = make_and_print(&request);
    hk_policies_free(policies);
    return code;
}
