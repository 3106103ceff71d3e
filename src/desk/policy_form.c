/* SPDX-License-Identifier: Apache-2.0 */
/* Policies as forms: what is written, what it plans, what it does to a crowd. */
#include "desk/forms.h"
#include "desk/policy.h"

/* ---- list ---- */

static void form_row(struct hk_form *form, void *result)
{
    struct hk_policy_row *r = result;
    bool has_texts = r->backoff_text != NULL;
    hk_form_cstr(form, "name", &r->name);
    hk_form_bool(form, "default", &r->is_default);
    hk_form_cstr(form, "origin", &r->origin);
    hk_form_cstr(form, "preset", &r->preset);
    hk_form_cstr(form, "backoff", &r->backoff);
    hk_form_cstr(form, "jitter", &r->jitter);
    hk_form_bool(form, "custom", &r->is_custom);
    hk_form_limit(form, "max_attempts", &r->max_attempts);
    hk_form_limit(form, "max_elapsed_ms", &r->max_elapsed_ms);
    if (hk_form_if(form, "backoff_text", &has_texts)) {
        hk_form_cstr(form, "backoff_text", &r->backoff_text);
        hk_form_cstr(form, "jitter_text", &r->jitter_text);
        hk_form_end(form);
    }
}

void hk_form_policies(struct hk_form *form, void *result)
{
    struct hk_policy_list *all = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(all->items, all->n, form_row));
    hk_form_null(form, "next");
}

/* ---- show ---- */

static const char *backoff_word(unsigned kind)
{
    return hk_backoff_kind_name((enum hk_backoff_kind)kind);
}

static const char *class_word(unsigned cls)
{
    return hk_class_name((enum hk_class)cls);
}

static const char *limit_mode_word(unsigned mode)
{
    return hk_policy_limit_mode_text((enum hk_limit_mode)mode);
}

static const char *hints_word(unsigned mode)
{
    return hk_policy_hints_text((enum hk_hint_mode)mode);
}

static const char *action_word(unsigned retry)
{
    return retry ? "retry" : "dead";
}

static void form_wait(struct hk_form *form, void *result)
{
    hk_form_uint(form, NULL, (uint64_t *)result);
}

/* The kind decides which members there are. */
static void form_backoff(struct hk_form *form, void *result)
{
    struct hk_backoff *b = result;
    size_t n_waits = b->n_waits;
    hk_form_choice(form, "kind", &b->kind, backoff_word, HK_NBACKOFFS);
    bool is_list = b->kind == HK_BACKOFF_LIST, has_base = !is_list;
    bool has_factor = b->kind == HK_BACKOFF_EXPONENTIAL, has_min = b->kind == HK_BACKOFF_AZURE_EXPONENTIAL;
    bool has_doublings = b->kind == HK_BACKOFF_CLOUD_TASKS;
    if (hk_form_if(form, "waits_ms", &is_list)) {
        hk_form_list(form, "waits_ms",
                     &(struct hk_form_list){.items = b->waits_ms,
                                            .n = &n_waits,
                                            .most = HK_BACKOFF_WAITS_MAX,
                                            .size = sizeof b->waits_ms[0],
                                            .fn = form_wait,
                                            .are_values = true});
        hk_form_end(form);
    }
    if (hk_form_if(form, "base_ms", &has_base)) {
        hk_form_uint(form, "base_ms", &b->base_ms);
        hk_form_end(form);
    }
    if (hk_form_if(form, "factor", &has_factor)) {
        hk_form_double(form, "factor", &b->factor);
        hk_form_end(form);
    }
    if (hk_form_if(form, "min_ms", &has_min)) {
        hk_form_uint(form, "min_ms", &b->min_ms);
        hk_form_end(form);
    }
    if (hk_form_if(form, "max_doublings", &has_doublings)) {
        hk_form_uint(form, "max_doublings", &b->max_doublings);
        hk_form_end(form);
    }
    hk_form_uint(form, "cap_ms", &b->cap_ms);
    hk_form_bool(form, "fast_first", &b->fast_first);
    if (hk_form_reads(form))
        b->n_waits = (uint32_t)n_waits;
}

static void form_jitter(struct hk_form *form, void *result)
{
    struct hk_policy_jitter *j = result;
    hk_form_cstr(form, "kind", &j->kind);
    if (hk_form_if(form, "ratio", &j->has_ratio)) {
        hk_form_double(form, "ratio", &j->ratio);
        hk_form_end(form);
    }
    if (hk_form_if(form, "add_ms", &j->has_add)) {
        hk_form_uint(form, "add_ms", &j->add_ms);
        hk_form_end(form);
    }
}

static void form_class(struct hk_form *form, void *result)
{
    struct hk_policy_class *c = result;
    unsigned action = c->retry;
    hk_form_choice(form, "action", &action, action_word, 2);
    hk_form_bool(form, "charge", &c->charge);
    hk_form_limit(form, "max_attempts", &c->max_attempts);
    hk_form_limit(form, "pause_after", &c->pause_after);
    if (hk_form_if(form, "backoff", &c->has_backoff)) {
        hk_form_object(form, "backoff", NULL, form_backoff, &c->backoff);
        hk_form_end(form);
    }
    if (hk_form_if(form, "jitter", &c->has_jitter)) {
        hk_form_object(form, "jitter", NULL, form_jitter, &c->jitter);
        hk_form_end(form);
    }
    if (hk_form_reads(form))
        c->retry = action != 0;
}

static void form_classes(struct hk_form *form, void *result)
{
    struct hk_policy_class *classes = result;
    for (unsigned c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        hk_form_object(form, class_word(c), NULL, form_class, &classes[c]);
}

static void form_rule(struct hk_form *form, void *result)
{
    struct hk_policy_rule *r = result;
    hk_form_cstr(form, "match", &r->match);
    hk_form_str(form, "header", &r->header);
    hk_form_str(form, "contains", &r->contains);
    hk_form_str(form, "body", &r->body);
    hk_form_choice(form, "class", &r->cls, class_word, HK_NCLASSES);
    hk_form_str(form, "reason", &r->reason);
    hk_form_bool(form, "pause", &r->pause);
    hk_form_bool(form, "of_preset", &r->of_preset);
}

static void form_breaker(struct hk_form *form, void *result)
{
    struct hk_breaker_options *b = result;
    hk_form_uint(form, "failures", &b->failures);
    hk_form_double(form, "ratio", &b->ratio);
    hk_form_uint(form, "min_throughput", &b->min_throughput);
    hk_form_uint(form, "window_ms", &b->window_ms);
    hk_form_uint(form, "open_ms", &b->open_ms);
    hk_form_double(form, "open_factor", &b->open_factor);
    hk_form_uint(form, "open_cap_ms", &b->open_cap_ms);
    hk_form_double(form, "open_jitter", &b->open_jitter);
    hk_form_uint(form, "probes", &b->probes);
    hk_form_uint(form, "successes", &b->successes);
}

static void form_answer(struct hk_form *form, void *result)
{
    struct hk_policy_answer *a = result;
    hk_form_chars(form, "answer", a->name, sizeof a->name);
    hk_form_choice(form, "class", &a->cls, class_word, HK_NCLASSES);
    hk_form_chars(form, "reason", a->cause, sizeof a->cause);
    hk_form_bool(form, "retry", &a->retry);
    hk_form_bool(form, "pause", &a->pause);
}

void hk_form_policy(struct hk_form *form, void *result)
{
    struct hk_policy_shown *s = result;
    hk_form_cstr(form, "name", &s->name);
    hk_form_cstr(form, "preset", &s->preset);
    hk_form_object(form, "backoff", NULL, form_backoff, &s->backoff);
    hk_form_object(form, "jitter", NULL, form_jitter, &s->jitter);
    hk_form_bool(form, "custom", &s->is_custom);
    hk_form_limit(form, "max_attempts", &s->limits.max_attempts);
    hk_form_limit(form, "max_elapsed_ms", &s->limits.max_elapsed_ms);
    hk_form_limit(form, "timeout_ms", &s->limits.timeout_ms);
    hk_form_choice(form, "limit_mode", &s->limits.mode, limit_mode_word, HK_LIMIT_ALL + 1);
    hk_form_choice(form, "hints", &s->limits.hints, hints_word, HK_HINTS_NONE + 1);
    hk_form_uint(form, "hint_cap_ms", &s->limits.hint_cap_ms);
    hk_form_object(form, "classes", NULL, form_classes, s->classes);
    hk_form_list(form, "classify", &HK_FORM_ITEMS(s->rules, s->n_rules, form_rule));
    hk_form_object(form, "breaker", &s->has_breaker, form_breaker, &s->breaker);
    hk_form_list(form, "answers", &HK_FORM_ITEMS(s->answers, s->n_answers, form_answer));
    hk_form_str(form, "yaml", &s->yaml);
}

/* ---- plan ---- */

/* No wait is behind the last attempt. */
static void form_plan_wait(struct hk_form *form, const char *key, bool *last, uint64_t *ms)
{
    uint64_t wait = *last ? UINT64_MAX : *ms;
    hk_form_maybe(form, key, &wait);
    if (!hk_form_reads(form))
        return;
    *last = wait == UINT64_MAX;
    *ms = *last ? 0 : wait;
}

static void form_plan_row(struct hk_form *form, void *result)
{
    struct hk_plan_row *r = result;
    uint64_t attempt = hk_form_index(form) + 1;
    hk_form_uint(form, "attempt", &attempt);
    form_plan_wait(form, "wait_ms", &r->last, &r->wait_ms);
    form_plan_wait(form, "earliest_ms", &r->last, &r->earliest_ms);
    form_plan_wait(form, "median_ms", &r->last, &r->median_ms);
    form_plan_wait(form, "latest_ms", &r->last, &r->latest_ms);
    form_plan_wait(form, "cumulative_ms", &r->last, &r->cumulative_ms);
}

static void form_end(struct hk_form *form, void *result)
{
    struct hk_policy_planned *p = result;
    hk_form_chars(form, "reason", p->plan.usual_reason, sizeof p->plan.usual_reason);
    hk_form_uint(form, "attempts", &p->plan.median_attempts);
    hk_form_uint(form, "median_ms", &p->plan.median_ms);
    hk_form_uint(form, "mean_ms", &p->plan.mean_ms);
    hk_form_bool(form, "estimated", &p->plan.estimated);
}

static void form_plan_limits(struct hk_form *form, void *result)
{
    struct hk_plan_limits *l = result;
    hk_form_limit(form, "attempts", &l->attempts);
    hk_form_limit(form, "elapsed_ms", &l->elapsed_ms);
    hk_form_limit(form, "both_attempts", &l->both_attempts);
    hk_form_limit(form, "both_ms", &l->both_ms);
}

void hk_form_policy_plan(struct hk_form *form, void *result)
{
    struct hk_policy_planned *p = result;
    hk_form_cstr(form, "policy", &p->name);
    hk_form_uint(form, "seed", &p->seed);
    hk_form_choice(form, "class", &p->cls, class_word, HK_NCLASSES);
    hk_form_list(form, "attempts", &HK_FORM_ITEMS(p->plan.rows, p->shown, form_plan_row));
    hk_form_object(form, "end", NULL, form_end, p);
    if (hk_form_if(form, "limits", &p->details)) {
        hk_form_object(form, "limits", NULL, form_plan_limits, &p->limits);
        hk_form_uint(form, "seeded_attempts", &p->plan.attempts);
        hk_form_end(form);
    }
}

/* ---- simulate ---- */

static void form_slot(struct hk_form *form, void *result)
{
    hk_form_uint(form, NULL, (uint32_t *)result);
}

static void form_herd(struct hk_form *form, void *result)
{
    struct hk_herd *h = result;
    bool has_slots = h->slots != NULL;
    hk_form_uint(form, "attempts", &h->attempts);
    hk_form_uint(form, "peak_during_outage_per_s", &h->peak_down);
    hk_form_uint(form, "peak_after_outage_per_s", &h->peak_up);
    hk_form_double(form, "herding_factor", &h->herding);
    hk_form_maybe(form, "served_50_ms", &h->half_ms);
    hk_form_maybe(form, "served_99_ms", &h->most_ms);
    hk_form_maybe(form, "served_all_ms", &h->all_ms);
    hk_form_uint(form, "delivered", &h->delivered);
    hk_form_uint(form, "dead", &h->dead);
    hk_form_uint(form, "waiting", &h->waiting);
    if (hk_form_if(form, "last_ms", &has_slots)) {
        hk_form_uint(form, "last_ms", &h->last_ms);
        hk_form_list(form, "attempts_per_100_ms",
                     &(struct hk_form_list){.items = &h->slots,
                                            .n = &h->n_slots,
                                            .size = sizeof h->slots[0],
                                            .fn = form_slot,
                                            .are_values = true,
                                            .in_a_line = true});
        hk_form_end(form);
    }
}

void hk_form_policy_simulation(struct hk_form *form, void *result)
{
    struct hk_policy_simulated *s = result;
    bool has_none = !s->has_jitter;
    hk_form_cstr(form, "policy", &s->name);
    hk_form_uint(form, "clients", &s->options.clients);
    hk_form_uint(form, "outage_ms", &s->options.outage_ms);
    hk_form_uint(form, "spread_ms", &s->options.spread_ms);
    hk_form_double(form, "capacity_per_s", &s->options.capacity_per_s);
    hk_form_uint(form, "seed", &s->options.seed);
    hk_form_object(form, "as_is", NULL, form_herd, &s->as_is);
    if (hk_form_if(form, "without_jitter", &s->has_jitter)) {
        hk_form_object(form, "without_jitter", NULL, form_herd, &s->other);
        hk_form_end(form);
    }
    if (hk_form_if(form, "with_full_jitter", &has_none)) {
        hk_form_object(form, "with_full_jitter", NULL, form_herd, &s->other);
        hk_form_end(form);
    }
    hk_form_str(form, "conclusion", &s->conclusion);
}
