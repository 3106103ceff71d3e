/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on retry policies. They ask no store. */
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "config/definition.h"
#include "desk/forms.h"
#include "desk/policy.h"

#define TEXT_MAX ((size_t)1 << 18)

/* ---- which ---- */

/* The names that look like the one that was asked for, else all. */
static void list_names(const struct hk_policies *policies, const char *wanted, struct hk_buf *out)
{
    const struct hk_policy *policy = NULL;

    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL; i++)
        if (hk_str_distance(hk_policy_name(policy), wanted) <= 3 ||
            hk_str_containsi(hk_str_of(hk_policy_name(policy)), hk_str_of(wanted)))
            (void)hk_buf_addf(out, "%s'%s'", out->len > 0 ? " or " : "", hk_policy_name(policy));
    if (out->len > 0)
        return;
    for (size_t i = 0; (policy = hk_policies_at(policies, i)) != NULL && i < 12; i++)
        (void)hk_buf_addf(out, "%s%s", i > 0 ? ", " : "", hk_policy_name(policy));
}

static enum hk_code find(const struct hk_desk *desk, const char *name, const struct hk_policy **out,
                         struct hk_err *err)
{
    struct hk_buf names;
    *out = name[0] ? hk_policies_get(desk->policies, name) : NULL;
    if (*out)
        return HK_OK;
    hk_buf_init(&names, 400);
    list_names(desk->policies, name, &names);
    bool near = hk_buf_cstr(&names)[0] == '\'';
    enum hk_code rc = hk_err_set(err, HK_NOTFOUND, "there is no policy '%.80s'; %s %s%s", name,
                                 near ? "did you mean" : "there are", hk_buf_cstr(&names), near ? "?" : "");
    hk_buf_fini(&names);
    return rc;
}

/* One that decides without code that only some program has. */
static enum hk_code find_to_run(const struct hk_desk *desk, const char *name, const struct hk_policy **out,
                                struct hk_err *err)
{
    enum hk_code rc = find(desk, name, out, err);
    if (rc == HK_OK && hk_policy_ops(*out, NULL))
        return hk_err_set(
            err, HK_CONFLICT,
            "policy '%s' decides in code that a program registers; the command line cannot plan it",
            hk_policy_name(*out));
    return rc;
}

/* The policy, or what somebody would make of it: then `*out_draft` is the caller's. */
static enum hk_code find_or_draft(struct hk_desk *desk, const char *name, struct hk_str draft,
                                  struct hk_pool *mem, const struct hk_policy **out,
                                  struct hk_policy **out_draft, struct hk_err *err)
{
    struct hk_definition_wrongs *wrongs = hk_pool_alloc(mem, 1, sizeof *wrongs);
    struct hk_err why = {.message = ""};
    *out_draft = NULL;
    if (!draft.ptr)
        return find_to_run(desk, name, out, err);
    if (!wrongs)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = find(desk, name, out, err);
    if (rc != HK_OK)
        return rc;
    rc = hk_config_define_policy(draft, mem, out_draft, wrongs, &why);
    *out = *out_draft;
    if (rc == HK_INVALID)
        return hk_desk_wrong_below(desk, "draft", wrongs, why.message, err);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "%s", why.message);
}

/* ---- list ---- */

static const char *kept(struct hk_pool *mem, const char *text)
{
    return hk_pool_copy_str(mem, hk_str_of(text));
}

/* False: no memory. */
static bool describe_row(const struct hk_policy *policy, bool details, struct hk_pool *mem,
                         struct hk_policy_row *out)
{
    const struct hk_backoff *backoff = hk_policy_backoff(policy);
    const struct hk_jitter *jitter = hk_policy_jitter(policy);
    const struct hk_limits *limits = hk_policy_limits(policy);
    char text[HK_POLICY_TEXT];
    out->name = hk_policy_name(policy);
    out->origin = hk_policy_is_preset(policy) ? "preset" : "file";
    out->preset = hk_policy_preset(policy);
    out->backoff = hk_backoff_kind_name(backoff->kind);
    out->jitter = hk_policy_jitter_kind(backoff, jitter);
    out->is_custom = hk_policy_ops(policy, NULL) != NULL;
    out->max_attempts = limits->max_attempts;
    out->max_elapsed_ms = limits->max_elapsed_ms;
    if (!details)
        return true;
    out->backoff_text = kept(mem, hk_policy_backoff_text(backoff, text));
    out->jitter_text =
        hk_backoff_is_azure(backoff->kind) ? "+-20%" : kept(mem, hk_policy_jitter_text(jitter, text));
    return out->backoff_text != NULL && out->jitter_text != NULL;
}

static enum hk_code list(struct hk_desk *desk, const struct hk_caller *caller,
                         const struct hk_policy_list_ask *ask, struct hk_pool *mem,
                         struct hk_policy_list *out, struct hk_err *err)
{
    const struct hk_policy *policy = NULL, *fallback = hk_policies_get(desk->policies, NULL);
    size_t n = 0;
    (void)caller;
    while (hk_policies_at(desk->policies, n) != NULL)
        n++;
    out->items = hk_pool_alloc(mem, n + 1, sizeof *out->items);
    if (out->items == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (; (policy = hk_policies_at(desk->policies, out->n)) != NULL && out->n < n; out->n++) {
        struct hk_policy_row *row = &out->items[out->n];
        row->is_default = policy == fallback;
        if (!describe_row(policy, ask->details, mem, row))
            return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    return HK_OK;
}

/* ---- show ---- */

/* Answers that people ask about. */
static const struct hk_facts samples[] = {
    {.status = 200},
    {.status = 302},
    {.status = 400},
    {.status = 401},
    {.status = 403},
    {.status = 404},
    {.status = 408},
    {.status = 409},
    {.status = 410},
    {.status = 413},
    {.status = 422},
    {.status = 423},
    {.status = 425},
    {.status = 429},
    {.status = 500},
    {.status = 502},
    {.status = 503},
    {.status = 504},
    {.fault = HK_FAULT_DNS},
    {.fault = HK_FAULT_CONNECT},
    {.fault = HK_FAULT_TIMEOUT},
    {.fault = HK_FAULT_RESET},
    {.fault = HK_FAULT_TLS_VERIFY},
    {.fault = HK_FAULT_BLOCKED},
    {.fault = HK_FAULT_INVALID_PAYLOAD},
};

enum {
    N_SAMPLES = sizeof samples / sizeof samples[0]
};

static void sample_name(const struct hk_facts *facts, char out[HK_REASON_MAX])
{
    if (facts->status != 0)
        (void)snprintf(out, HK_REASON_MAX, "%d", facts->status);
    else
        (void)snprintf(out, HK_REASON_MAX, "%s", hk_fault_name(facts->fault));
}

static void judge(const struct hk_policy *policy, const struct hk_facts *facts, struct hk_policy_answer *out)
{
    sample_name(facts, out->name);
    out->cls = hk_policy_classify(policy, facts, out->cause, &out->pause);
    out->retry = out->cls != HK_CLASS_SUCCESS && hk_policy_class(policy, out->cls)->retry;
}

static struct hk_policy_jitter jitter_at_work(const struct hk_backoff *b, const struct hk_jitter *j)
{
    bool is_own = hk_backoff_is_azure(b->kind);
    return (struct hk_policy_jitter){.kind = hk_policy_jitter_kind(b, j),
                                     .has_ratio = is_own || j->kind == HK_JITTER_RATIO,
                                     .ratio = is_own ? 0.2 : j->ratio,
                                     .has_add = j->kind == HK_JITTER_ADD,
                                     .add_ms = j->add_ms};
}

static void show_class(const struct hk_policy *policy, const struct hk_class_rule *rule,
                       struct hk_policy_class *out)
{
    const struct hk_backoff *b = rule->has_backoff ? &rule->backoff : hk_policy_backoff(policy);
    *out = (struct hk_policy_class){.retry = rule->retry,
                                    .charge = rule->charge,
                                    .max_attempts = rule->max_attempts,
                                    .pause_after = rule->pause_after,
                                    .has_backoff = rule->has_backoff,
                                    .backoff = rule->backoff,
                                    .has_jitter = rule->has_jitter ||
                                                  (rule->has_backoff && hk_backoff_is_azure(b->kind)),
                                    .jitter = jitter_at_work(b, &rule->jitter)};
}

/* False: no memory. */
static bool show_rule(const struct hk_rule *rule, struct hk_pool *mem, struct hk_policy_rule *out)
{
    struct hk_buf match;
    hk_buf_init(&match, HK_PATTERN_MAX);
    hk_policy_match_text(rule, &match);
    out->match = hk_buf_status(&match) == HK_OK ? kept(mem, hk_buf_cstr(&match)) : NULL;
    hk_buf_fini(&match);
    out->header = hk_str_of(rule->header);
    out->contains = hk_str_of(rule->header_contains);
    out->body = hk_str_of(rule->body_contains);
    out->cls = rule->to_class;
    out->reason = hk_str_of(rule->to_reason);
    out->pause = rule->pause;
    return out->match != NULL;
}

static bool show_rules(const struct hk_policy *policy, struct hk_pool *mem, struct hk_policy_shown *out)
{
    size_t own = hk_policy_own_rules(policy), n = 0;
    while (hk_policy_rule(policy, n) != NULL)
        n++;
    out->rules = hk_pool_alloc(mem, n + 1, sizeof *out->rules);
    for (; out->rules != NULL && out->n_rules < n; out->n_rules++) {
        struct hk_policy_rule *row = &out->rules[out->n_rules];
        row->of_preset = out->n_rules >= own;
        if (!show_rule(hk_policy_rule(policy, out->n_rules), mem, row))
            return false;
    }
    return out->rules != NULL;
}

static bool show_answers(const struct hk_policy *policy, struct hk_pool *mem, struct hk_policy_shown *out)
{
    out->answers = hk_pool_alloc(mem, N_SAMPLES, sizeof *out->answers);
    for (; out->answers != NULL && out->n_answers < N_SAMPLES; out->n_answers++)
        judge(policy, &samples[out->n_answers], &out->answers[out->n_answers]);
    return out->answers != NULL;
}

static bool show_yaml(const struct hk_policy *policy, struct hk_pool *mem, struct hk_policy_shown *out)
{
    struct hk_buf yaml;
    hk_buf_init(&yaml, TEXT_MAX);
    hk_policy_yaml(policy, &yaml);
    const char *text = hk_buf_status(&yaml) == HK_OK ? hk_pool_copy(mem, hk_buf_cstr(&yaml), yaml.len) : NULL;
    out->yaml = (struct hk_str){text, yaml.len};
    hk_buf_fini(&yaml);
    return text != NULL;
}

static enum hk_code show(struct hk_desk *desk, const struct hk_caller *caller,
                         const struct hk_policy_name_ask *ask, struct hk_pool *mem,
                         struct hk_policy_shown *out, struct hk_err *err)
{
    const struct hk_policy *policy = NULL;
    (void)caller;
    enum hk_code rc = find(desk, ask->name, &policy, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_breaker_options *breaker = hk_policy_breaker(policy);
    out->name = hk_policy_name(policy);
    out->preset = hk_policy_preset(policy);
    out->is_custom = hk_policy_ops(policy, NULL) != NULL;
    out->backoff = *hk_policy_backoff(policy);
    out->jitter = jitter_at_work(&out->backoff, hk_policy_jitter(policy));
    out->limits = *hk_policy_limits(policy);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        show_class(policy, hk_policy_class(policy, (enum hk_class)c), &out->classes[c]);
    out->has_breaker = breaker != NULL;
    if (breaker != NULL)
        out->breaker = *breaker;
    if (!show_rules(policy, mem, out) || !show_answers(policy, mem, out) || !show_yaml(policy, mem, out))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return HK_OK;
}

/* ---- plan ---- */

static enum hk_code make_plan(const struct hk_policy *policy, struct hk_policy_planned *out,
                              struct hk_pool *mem, struct hk_err *err)
{
    struct hk_facts facts;
    struct hk_plan made;
    if (!hk_plan_facts(policy, out->cls, &facts))
        return hk_err_set(err, HK_CONFLICT,
                          "policy '%s' puts no plain answer into class %s, so that there is nothing to plan",
                          hk_policy_name(policy), hk_class_name(out->cls));
    enum hk_code rc = hk_plan_make(policy, out->cls, &facts, out->seed, &made, err);
    if (rc != HK_OK)
        return rc;
    struct hk_plan_row *rows = hk_pool_alloc(mem, made.n_rows + 1u, sizeof *rows);
    if (rows && made.n_rows)
        memcpy(rows, made.rows, made.n_rows * sizeof *rows);
    out->plan = made;
    out->plan.rows = rows;
    hk_plan_fini(&made);
    return rows ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code plan(struct hk_desk *desk, const struct hk_caller *caller,
                         const struct hk_policy_plan_ask *ask, struct hk_pool *mem,
                         struct hk_policy_planned *out, struct hk_err *err)
{
    const struct hk_policy *policy = NULL;
    (void)caller;
    out->seed = ask->seed;
    out->cls = ask->cls ? hk_class_by_name(ask->cls) : HK_CLASS_TRANSIENT;
    if (out->cls == HK_NCLASSES || out->cls == HK_CLASS_SUCCESS)
        return hk_desk_wrong(desk, "class", err,
                             "is one of transient, rate_limit, auth, permanent, unknown, not '%s'", ask->cls);
    struct hk_policy *draft = NULL;
    enum hk_code rc = find_or_draft(desk, ask->name, ask->draft, mem, &policy, &draft, err);
    if (rc == HK_OK)
        rc = make_plan(policy, out, mem, err);
    if (rc == HK_OK) {
        out->name = ask->name;
        out->shown = out->plan.n_rows < ask->attempts ? out->plan.n_rows : (size_t)ask->attempts;
        out->details = ask->details;
        hk_plan_limits(policy, out->cls, &out->limits);
    }
    hk_policy_free(draft);
    return rc;
}

/* ---- simulate ---- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/* A herd of one is none: only what becomes of it. */
static void conclude_one(const struct hk_policy_simulated *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->as_is;
    char attempts[HK_SHOW_NUMBER], after[HK_SHOW_NUMBER];

    (void)hk_show_count(a->attempts, attempts);
    if (a->dead > 0)
        (void)hk_buf_addf(
            out,
            "The only client gives up after %s attempt%s and becomes a dead letter: this policy does "
            "not outlast the outage.",
            attempts, plural(a->attempts));
    else if (a->waiting > 0)
        (void)hk_buf_adds(out, "The only client is still waiting a week later.");
    else
        (void)hk_buf_addf(out, "The only client is served at attempt %s, %s after recovery.", attempts,
                          hk_show_duration(a->all_ms, after));
}

static void conclude_dead(const struct hk_policy_simulated *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->as_is, *b = &c->other;
    char dead[HK_SHOW_NUMBER], all[HK_SHOW_NUMBER];

    (void)hk_buf_addf(out, "%s of %s clients give up and become dead letters: ", hk_show_count(a->dead, dead),
                      hk_show_count(c->options.clients, all));
    if (a->dead == c->options.clients)
        (void)hk_buf_adds(out, "this policy does not outlast the outage.");
    else if (!c->has_jitter)
        (void)hk_buf_addf(
            out,
            "it has no jitter, so that its clients come back together. With 'jitter: full' it would "
            "be %s.",
            b->dead == 0 ? "none" : hk_show_count(b->dead, dead));
    else
        (void)hk_buf_adds(out, "allow more attempts or time, or more capacity.");
}

static void conclude_times(const struct hk_policy_simulated *c, struct hk_buf *out)
{
    const struct hk_herd *a = &c->as_is, *b = &c->other;
    char left[HK_SHOW_NUMBER], right[HK_SHOW_NUMBER];

    if (a->most_ms == UINT64_MAX)
        return;
    (void)hk_buf_addf(out, ", and has served 99 %% of them %s after its recovery",
                      hk_show_duration(a->most_ms, left));
    if (b->most_ms == UINT64_MAX)
        (void)hk_buf_addf(out, " (%s: never)", hk_policy_other_text(c));
    else if (a->most_ms != b->most_ms)
        (void)hk_buf_addf(out, c->has_jitter ? " instead of %s" : " (with it: %s)",
                          hk_show_duration(b->most_ms, right));
}

/* One sentence for somebody who reads nothing else. */
static void conclude(const struct hk_policy_simulated *c, struct hk_buf *out)
{
    uint64_t a = c->as_is.peak_up, b = c->other.peak_up;
    char left[HK_SHOW_NUMBER], right[HK_SHOW_NUMBER];

    (void)hk_show_count(a, left);
    (void)hk_show_count(b, right);
    if (c->options.clients == 1) {
        conclude_one(c, out);
        return;
    }
    if (c->as_is.dead > 0) {
        conclude_dead(c, out);
        return;
    }
    if (c->has_jitter && a < b)
        (void)hk_buf_addf(out,
                          "Once it is back, the destination sees at most %s request%s a second instead of %s",
                          left, plural(a), right);
    else if (c->has_jitter)
        (void)hk_buf_addf(out, "Its jitter does not lower the peak here (%s request%s a second, %s without)",
                          left, plural(a), right);
    else if (b < a)
        (void)hk_buf_addf(
            out,
            "This policy has no jitter: once it is back, the destination sees up to %s request%s a "
            "second (with 'jitter: full': %s)",
            left, plural(a), right);
    else
        (void)hk_buf_addf(out,
                          "This policy has no jitter, and 'jitter: full' would not lower the peak here: the "
                          "destination sees up to %s request%s a second (with it: %s)",
                          left, plural(a), right);
    conclude_times(c, out);
    (void)hk_buf_addc(out, '.');
}

const char *hk_policy_other_text(const struct hk_policy_simulated *simulated)
{
    return simulated->has_jitter ? "without jitter" : "with full jitter";
}

/* The herd's slots belong to whoever asked. */
static enum hk_code run_one(const struct hk_herd_options *options, struct hk_pool *mem, struct hk_herd *out,
                            struct hk_err *err)
{
    struct hk_herd made;
    enum hk_code rc = hk_herd_run(options, &made, err);
    if (rc != HK_OK)
        return rc;
    uint32_t *slots = hk_pool_alloc(mem, made.n_slots + 1, sizeof *slots);
    if (slots && made.n_slots)
        memcpy(slots, made.slots, made.n_slots * sizeof *slots);
    *out = made;
    out->slots = slots;
    hk_herd_fini(&made);
    return slots ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code run_both(struct hk_policy_simulated *out, struct hk_pool *mem, struct hk_err *err)
{
    const struct hk_policy *policy = out->options.policy;
    struct hk_policy *other = NULL;
    struct hk_herd_options options = out->options;
    out->has_jitter = hk_herd_has_jitter(policy);
    enum hk_code rc = out->has_jitter ? hk_herd_without_jitter(policy, &other, err)
                                      : hk_herd_with_full_jitter(policy, &other, err);
    if (rc == HK_OK)
        rc = run_one(&options, mem, &out->as_is, err);
    options.policy = other;
    if (rc == HK_OK)
        rc = run_one(&options, mem, &out->other, err);
    hk_policy_free(other);
    return rc;
}

static enum hk_code simulate(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_policy_simulate_ask *ask, struct hk_pool *mem,
                             struct hk_policy_simulated *out, struct hk_err *err)
{
    const struct hk_policy *policy = NULL;
    struct hk_buf text;
    double usual = ask->clients > 10 ? (double)ask->clients / 10.0 : 1.0;
    (void)caller;
    struct hk_policy *draft = NULL;
    enum hk_code rc = find_or_draft(desk, ask->name, ask->draft, mem, &policy, &draft, err);
    if (rc != HK_OK)
        return rc;
    out->name = ask->name;
    out->options =
        (struct hk_herd_options){.policy = policy,
                                 .clients = (uint32_t)ask->clients,
                                 .outage_ms = ask->outage_ms,
                                 .spread_ms = ask->spread_ms,
                                 .capacity_per_s = ask->capacity_per_s > 0 ? ask->capacity_per_s : usual,
                                 .seed = ask->seed};
    rc = run_both(out, mem, err);
    hk_policy_free(draft);
    if (rc != HK_OK)
        return rc;
    if (!ask->details)
        out->as_is.slots = out->other.slots = NULL;
    hk_buf_init(&text, 1024);
    conclude(out, &text);
    const char *copy = hk_buf_status(&text) == HK_OK ? hk_pool_copy(mem, hk_buf_cstr(&text), text.len) : NULL;
    out->conclusion = (struct hk_str){copy, text.len};
    hk_buf_fini(&text);
    return copy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- the table ---- */

HK_OP_RUN(list)
HK_OP_RUN(show)
HK_OP_RUN(plan)
HK_OP_RUN(simulate)

#define NAME_ARG(struct_)                                                                                    \
    {                                                                                                        \
        .name = "name", .kind = HK_ARG_POLICY, .subject = true, .required = true,                            \
        .offset = offsetof(struct_, name), .value = "NAME"                                                   \
    }
#define SEED_ARG(struct_, help_)                                                                             \
    {                                                                                                        \
        .name = "seed", .kind = HK_ARG_NUMBER, .fallback = 1, .offset = offsetof(struct_, seed),             \
        .value = "S", .help = (help_)                                                                        \
    }

#define DRAFT_ARG(struct_)                                                                                   \
    {                                                                                                        \
        .name = "draft", .kind = HK_ARG_BYTES, .offset = offsetof(struct_, draft), .value = "TEXT|-|@FILE",  \
        .help = "a definition, as YAML or JSON, to look at in the place of the policy's own"                 \
    }

#define DETAILS_ARG(struct_, help_)                                                                          \
    {                                                                                                        \
        .name = "details", .kind = HK_ARG_FLAG, .offset = offsetof(struct_, details), .help = (help_)        \
    }

static const struct hk_arg list_args[] = {
    DETAILS_ARG(struct hk_policy_list_ask, "with backoff and jitter in words, in JSON too"), {.name = NULL}};

static const struct hk_arg show_args[] = {NAME_ARG(struct hk_policy_name_ask), {.name = NULL}};

static const struct hk_arg plan_args[] = {
    NAME_ARG(struct hk_policy_plan_ask),
    {.name = "attempts",
     .kind = HK_ARG_NUMBER,
     .lo = 1,
     .hi = HK_PLAN_ROWS_MAX,
     .fallback = HK_PLAN_ROWS_MAX,
     .offset = offsetof(struct hk_policy_plan_ask, attempts),
     .value = "N",
     .help = "show the first N attempts (1 to 1000)"},
    {.name = "class",
     .kind = HK_ARG_TEXT,
     .offset = offsetof(struct hk_policy_plan_ask, cls),
     .value = "CLASS",
     .choices = "transient rate_limit auth permanent unknown",
     .help = "class of the failures (default: transient)"},
    DRAFT_ARG(struct hk_policy_plan_ask),
    SEED_ARG(struct hk_policy_plan_ask, "also show the waits that hk_execute draws with this seed"),
    DETAILS_ARG(struct hk_policy_plan_ask, "with the limits that can end it, in JSON too"),
    {.name = NULL}};

static const struct hk_arg simulate_args[] = {
    NAME_ARG(struct hk_policy_simulate_ask),
    {.name = "clients",
     .kind = HK_ARG_NUMBER,
     .lo = 1,
     .hi = HK_HERD_CLIENTS_MAX,
     .fallback = 10000,
     .offset = offsetof(struct hk_policy_simulate_ask, clients),
     .value = "N",
     .help = "number of clients, 1 to 1000000 (default: 10000)"},
    {.name = "outage",
     .kind = HK_ARG_DURATION,
     .hi = (double)HK_HERD_OUTAGE_MAX,
     .fallback = 60000,
     .offset = offsetof(struct hk_policy_simulate_ask, outage_ms),
     .value = "TIME",
     .help = "how long the destination is down, up to 24h (default: 60s)"},
    {.name = "spread",
     .kind = HK_ARG_DURATION,
     .hi = (double)HK_HERD_OUTAGE_MAX,
     .fallback = 1000,
     .offset = offsetof(struct hk_policy_simulate_ask, spread_ms),
     .value = "TIME",
     .help = "the first requests come within this time (default: 1s)"},
    DRAFT_ARG(struct hk_policy_simulate_ask),
    SEED_ARG(struct hk_policy_simulate_ask, "seed of the random waits (default: 1)"),
    {.name = "capacity",
     .kind = HK_ARG_RATE,
     .lo = 0.001,
     .hi = 1e9,
     .offset = offsetof(struct hk_policy_simulate_ask, capacity_per_s),
     .value = "RATE",
     .help =
         "the destination's capacity afterwards, such as 500/s (default: a tenth of the clients a second)"},
    DETAILS_ARG(struct hk_policy_simulate_ask, "with the attempts in every 100 ms, in JSON too"),
    {.name = NULL}};

const struct hk_op hk_op_policy_list = {.noun = "policy",
                                        .verb = "list",
                                        .summary = "list the retry policies; * marks the default",
                                        .route = "GET /policies",
                                        .role = HK_ROLE_VIEWER,
                                        .args = list_args,
                                        .request_size = sizeof(struct hk_policy_list_ask),
                                        .result_size = sizeof(struct hk_policy_list),
                                        .run = list_op,
                                        .form = hk_form_policies};

const struct hk_op hk_op_policy_show = {
    .noun = "policy",
    .verb = "show",
    .summary = "show one policy in full, as YAML",
    .details = "What it prints is a configuration file: 'hikyaku config check' accepts it. Comments at the\n"
               "end say how the policy classes common answers.",
    .route = "GET /policies/{name}",
    .role = HK_ROLE_VIEWER,
    .args = show_args,
    .request_size = sizeof(struct hk_policy_name_ask),
    .result_size = sizeof(struct hk_policy_shown),
    .run = show_op,
    .form = hk_form_policy};

const struct hk_op hk_op_policy_plan = {
    .noun = "policy",
    .verb = "plan",
    .summary = "show the waits between attempts, and where they end",
    .details =
        "Shows what happens to a message whose every attempt fails: how long each wait is at the least,\n"
        "usually (median of 2,001 runs) and at the most. A program that calls hk_execute with the same\n"
        "seed waits exactly as shown.",
    .route = "GET /policies/{name}/plan",
    .role = HK_ROLE_VIEWER,
    .args = plan_args,
    .request_size = sizeof(struct hk_policy_plan_ask),
    .result_size = sizeof(struct hk_policy_planned),
    .run = plan_op,
    .form = hk_form_policy_plan};

const struct hk_op hk_op_policy_simulate = {
    .noun = "policy",
    .verb = "simulate",
    .summary = "show the load that many clients make on a destination that was down",
    .details =
        "Every client sends one request and follows the policy until it is served or gives up. Runs it\n"
        "twice and shows both: as it is, and without its jitter, or with full jitter when it has none.",
    .route = "POST /policies/simulate",
    .role = HK_ROLE_VIEWER,
    .args = simulate_args,
    .request_size = sizeof(struct hk_policy_simulate_ask),
    .result_size = sizeof(struct hk_policy_simulated),
    .run = simulate_op,
    .form = hk_form_policy_simulation};
