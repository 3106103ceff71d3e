/* SPDX-License-Identifier: Apache-2.0 */
/* A policy as written becomes a policy: the preset, changed by what is given. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "config/build.h"
#include "config/policies_impl.h"
#include "config/tables.h"
#include "config/walk.h"

static const char *preset_word(const void *arg, size_t i)
{
    (void)arg;
    return hk_preset_name(i);
}

static void report_preset(struct hk_walk *walk, const struct hk_yaml_node *node, const char *preset)
{
    char shown[HK_SHOW_MAX];
    char meant[HK_MEANT_MAX];
    const struct hk_yaml_node *entry = hk_yaml_get(node, "preset");
    struct hk_buf names;
    hk_buf_init(&names, 300);
    for (size_t i = 0; hk_preset_name(i); i++)
        hk_buf_addf(&names, "%s%s", i ? ", " : "", hk_preset_name(i));
    bool secret = entry && entry->secret;
    hk_walk_error(walk, hk_walk_at(walk, node, "preset"), "there is no preset %s; choose one of %s%s",
                  hk_diag_show(hk_str_of(preset), secret, shown), hk_buf_cstr(&names),
                  secret ? "" : hk_walk_meant(hk_str_of(preset), preset_word, NULL, meant));
    hk_walk_done(walk, &names);
}

/* ---- backoff and jitter ---- */

#define KIND(kind) (1u << (kind))
#define AZURE      (KIND(HK_BACKOFF_AZURE_EXPONENTIAL) | KIND(HK_BACKOFF_AZURE_LINEAR))
#define ALL        (KIND(HK_NBACKOFFS) - 1)

/* Which kinds know which field: one that means nothing is a mistake that somebody would otherwise debug at night. */
static const unsigned kinds_of[HK_BACKOFF_NOPTS] = {
    [HK_BACKOFF_KIND_OPT] = ALL,
    [HK_BACKOFF_BASE_OPT] = ALL & ~KIND(HK_BACKOFF_LIST),
    [HK_BACKOFF_DELTA_OPT] = AZURE,
    [HK_BACKOFF_MIN_OPT] = KIND(HK_BACKOFF_AZURE_EXPONENTIAL),
    [HK_BACKOFF_CAP_OPT] = ALL,
    [HK_BACKOFF_FACTOR_OPT] = KIND(HK_BACKOFF_EXPONENTIAL),
    [HK_BACKOFF_DOUBLINGS_OPT] = KIND(HK_BACKOFF_CLOUD_TASKS),
    [HK_BACKOFF_FAST_OPT] = ALL,
    [HK_BACKOFF_WAITS_OPT] = KIND(HK_BACKOFF_LIST),
};

static void check_fields(struct hk_walk *walk, const struct hk_yaml_node *node,
                         const struct hk_conf_backoff *conf, enum hk_backoff_kind kind)
{
    for (size_t i = 0; i < HK_BACKOFF_NOPTS; i++) {
        if (!HK_GIVEN(conf, i) || kinds_of[i] & KIND(kind))
            continue;
        const char *key = hk_backoff_table.opts[i].key;
        hk_walk_error(walk, hk_yaml_get(node, key)->key_at, "\"%s\" means nothing to backoff kind %s%s", key,
                      hk_backoff_kind_name(kind),
                      HK_GIVEN(conf, HK_BACKOFF_KIND_OPT) ? "" : ": give the kind as well");
    }
    if (HK_GIVEN(conf, HK_BACKOFF_BASE_OPT) && HK_GIVEN(conf, HK_BACKOFF_DELTA_OPT))
        hk_walk_error(walk, hk_yaml_get(node, "delta")->key_at,
                      "\"delta\" is another name of \"base\": give one of them");
}

/* The kinds that a preset is made of start from it. A wait that stands in the file is never cut by a cap that does
 * not: fixed and list have none unless it is given. */
static enum hk_code kind_defaults(enum hk_backoff_kind kind, struct hk_backoff *out, struct hk_err *err)
{
    static const struct hk_backoff plain[HK_NBACKOFFS] = {
        [HK_BACKOFF_FIXED] = {.kind = HK_BACKOFF_FIXED, .base_ms = 1000, .cap_ms = HK_DURATION_MAX_MS},
        [HK_BACKOFF_LINEAR] = {.kind = HK_BACKOFF_LINEAR, .base_ms = 1000, .cap_ms = 3600000},
        [HK_BACKOFF_LIST] = {.kind = HK_BACKOFF_LIST, .cap_ms = HK_DURATION_MAX_MS},
    };
    static const char *const presets[HK_NBACKOFFS] = {
        [HK_BACKOFF_EXPONENTIAL] = "standard",
        [HK_BACKOFF_CLOUD_TASKS] = "cloud-tasks",
        [HK_BACKOFF_AZURE_EXPONENTIAL] = "azure-exponential",
        [HK_BACKOFF_AZURE_LINEAR] = "azure-linear",
    };
    if (!presets[kind]) {
        *out = plain[kind];
        return HK_OK;
    }
    struct hk_policy *preset = NULL;
    enum hk_code rc = hk_policy_new(presets[kind], &preset, err);
    if (rc == HK_OK)
        *out = *hk_policy_backoff(preset);
    hk_policy_free(preset);
    return rc;
}

static void copy_waits(const struct hk_conf_list *waits, struct hk_backoff *out)
{
    const uint64_t *items = waits->items;
    out->n_waits = (uint32_t)waits->n; /* the table bounds it by HK_BACKOFF_WAITS_MAX */
    memset(out->waits_ms, 0, sizeof out->waits_ms);
    for (size_t i = 0; i < waits->n; i++)
        out->waits_ms[i] = items[i];
}

static void copy_fields(const struct hk_conf_backoff *conf, struct hk_backoff *out)
{
    if (HK_GIVEN(conf, HK_BACKOFF_BASE_OPT) || HK_GIVEN(conf, HK_BACKOFF_DELTA_OPT))
        out->base_ms = conf->base_ms;
    if (HK_GIVEN(conf, HK_BACKOFF_MIN_OPT))
        out->min_ms = conf->min_ms;
    if (HK_GIVEN(conf, HK_BACKOFF_CAP_OPT))
        out->cap_ms = conf->cap_ms;
    if (HK_GIVEN(conf, HK_BACKOFF_FACTOR_OPT))
        out->factor = conf->factor;
    if (HK_GIVEN(conf, HK_BACKOFF_DOUBLINGS_OPT))
        out->max_doublings = conf->max_doublings;
    if (HK_GIVEN(conf, HK_BACKOFF_FAST_OPT))
        out->fast_first = conf->fast_first;
    if (HK_GIVEN(conf, HK_BACKOFF_WAITS_OPT))
        copy_waits(&conf->waits, out);
}

static void report_err(struct hk_walk *walk, struct hk_pos at, const struct hk_err *err)
{
    if (err->code == HK_NOMEM)
        walk->status = HK_NOMEM;
    else
        hk_walk_error(walk, at, "%s", err->message);
}

static bool is_azure(enum hk_backoff_kind kind)
{
    return KIND(kind) & AZURE;
}

/* Was every option of the section that is there also good? If not, what is wrong has been said. */
static bool is_whole(const struct hk_yaml_node *node, const struct hk_opt_table *table, uint32_t given)
{
    for (size_t i = 0; i < table->n_opts; i++) {
        if (!(given >> i & 1u) && hk_yaml_get(node, table->opts[i].key))
            return false;
    }
    return true;
}

/* hk_backoff_check refuses these as well, but cannot say which of the two lines is wrong. */
static void check_jitter_fits(struct hk_walk *walk, const struct hk_yaml_node *node, bool given,
                              const struct hk_backoff *backoff, const struct hk_jitter *jitter)
{
    struct hk_pos at = hk_walk_at(walk, node, given ? "jitter" : "backoff");
    if (given && jitter->kind != HK_JITTER_NONE && is_azure(backoff->kind))
        hk_walk_error(walk, at,
                      "backoff kind %s draws each wait itself (±20 %%): jitter must be none, or left out",
                      hk_backoff_kind_name(backoff->kind));
    if (jitter->kind == HK_JITTER_DECORRELATED && backoff->kind == HK_BACKOFF_LIST)
        hk_walk_error(walk, at,
                      "decorrelated jitter grows by itself and would use only the first of \"waits\": take "
                      "another jitter for backoff kind list");
}

static uint64_t longest_listed_ms(const struct hk_backoff *backoff)
{
    uint64_t longest = 0;
    for (uint32_t i = 0; i < backoff->n_waits; i++)
        longest = backoff->waits_ms[i] > longest ? backoff->waits_ms[i] : longest;
    return longest;
}

/* A cap below what it cuts is allowed, and hardly ever meant. */
static void warn_about_cap(struct hk_walk *walk, const struct hk_yaml_node *node,
                           const struct hk_backoff *backoff, const struct hk_jitter *jitter)
{
    bool list = backoff->kind == HK_BACKOFF_LIST;
    bool adds_min = backoff->kind == HK_BACKOFF_AZURE_EXPONENTIAL;
    uint64_t ms = list ? longest_listed_ms(backoff) : adds_min ? backoff->min_ms : backoff->base_ms;
    uint64_t less = backoff->kind == HK_BACKOFF_AZURE_LINEAR ? ms / 5 : 0; /* what it may draw below */
    char value[HK_DURATION_TEXT_MAX], cap[HK_DURATION_TEXT_MAX];
    if (ms - less <= backoff->cap_ms)
        return;
    const char *name = list ? "waits" : adds_min ? "min" : "base";
    const char *key = !list && !adds_min && hk_yaml_get(node, "delta") ? "delta" : name;
    struct hk_pos at = hk_walk_at(walk, node, hk_yaml_get(node, key) ? key : "cap");
    (void)hk_format_duration(ms, value);
    (void)hk_format_duration(backoff->cap_ms, cap);
    if (list)
        hk_walk_warn(walk, at, "wait %s is above cap %s: it is cut to %s", value, cap, cap);
    else
        hk_walk_warn(walk, at, "%s %s is above cap %s: every wait is %s%s", key, value, cap, cap,
                     jitter->kind == HK_JITTER_NONE ? "" : ", before jitter");
}

/* Changes `backoff` and `jitter` as the two sections say; `node` holds them both. False: reported. */
static bool apply_waits(struct hk_walk *walk, const struct hk_yaml_node *node,
                        const struct hk_conf_backoff *conf, const struct hk_conf_jitter *jitter_conf,
                        struct hk_backoff *backoff, struct hk_jitter *jitter)
{
    struct hk_err err = {.code = HK_OK};
    size_t before = walk->diags->errors;
    if (HK_GIVEN(conf, HK_BACKOFF_KIND_OPT) && conf->kind != backoff->kind) {
        if (kind_defaults(conf->kind, backoff, &err) != HK_OK) {
            report_err(walk, hk_walk_at(walk, node, "backoff"), &err);
            return false;
        }
        if (is_azure(backoff->kind))
            jitter->kind = HK_JITTER_NONE;
    }
    if (conf->given)
        check_fields(walk, hk_yaml_get(node, "backoff"), conf, backoff->kind);
    copy_fields(conf, backoff);
    if (jitter_conf->given)
        *jitter = jitter_conf->value;
    check_jitter_fits(walk, node, jitter_conf->given, backoff, jitter);
    bool good = walk->diags->errors == before &&
                is_whole(hk_yaml_get(node, "backoff"), &hk_backoff_table, conf->given);
    if (good && conf->given)
        warn_about_cap(walk, hk_yaml_get(node, "backoff"), backoff, jitter);
    return good;
}

void hk_check_jitter(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_jitter *conf = section;
    bool ratio = HK_GIVEN(conf, HK_JITTER_RATIO_OPT);
    bool add = HK_GIVEN(conf, HK_JITTER_ADD_OPT);
    if (ratio && add)
        hk_walk_error(walk, node->at, "jitter is either { ratio: … } or { add: … }, not both");
    else if (ratio || add)
        conf->value.kind = ratio ? HK_JITTER_RATIO : HK_JITTER_ADD;
}

/* ---- the rest of a policy ---- */

static void build_waits(struct hk_walk *walk, const struct hk_yaml_node *node,
                        const struct hk_conf_policy *conf, struct hk_policy *policy)
{
    struct hk_backoff backoff = *hk_policy_backoff(policy);
    struct hk_jitter jitter = *hk_policy_jitter(policy);
    struct hk_err err = {.code = HK_OK};
    if (!apply_waits(walk, node, &conf->backoff, &conf->jitter, &backoff, &jitter))
        return;
    if (hk_policy_set_backoff(policy, &backoff, &jitter, &err) != HK_OK)
        report_err(walk, hk_walk_at(walk, node, "backoff"), &err);
}

static void build_limits(struct hk_walk *walk, const struct hk_yaml_node *node,
                         const struct hk_conf_policy *conf, struct hk_policy *policy)
{
    const struct hk_limits preset = *hk_policy_limits(policy);
    struct hk_limits limits = preset;
    struct hk_err err = {.code = HK_OK};
    if (HK_GIVEN(conf, HK_POLICY_MAX_ATTEMPTS_OPT))
        limits.max_attempts = conf->limits.max_attempts;
    if (HK_GIVEN(conf, HK_POLICY_MAX_ELAPSED_OPT))
        limits.max_elapsed_ms = conf->limits.max_elapsed_ms;
    if (HK_GIVEN(conf, HK_POLICY_TIMEOUT_OPT))
        limits.timeout_ms = conf->limits.timeout_ms;
    if (HK_GIVEN(conf, HK_POLICY_LIMIT_MODE_OPT))
        limits.mode = conf->limits.mode;
    if (HK_GIVEN(conf, HK_POLICY_HINTS_OPT))
        limits.hints = conf->limits.hints;
    if (HK_GIVEN(conf, HK_POLICY_HINT_CAP_OPT))
        limits.hint_cap_ms = conf->limits.hint_cap_ms;
    if (hk_policy_set_limits(policy, &limits, &err) == HK_OK)
        return;
    report_err(walk, hk_walk_at(walk, node, "hint_cap"), &err); /* the table bounds all the others */
    limits.hints = preset.hints;
    limits.hint_cap_ms = preset.hint_cap_ms;
    if (hk_policy_set_limits(policy, &limits, &err) != HK_OK)
        report_err(walk, hk_walk_at(walk, NULL, ""), &err);
}

static void apply_class(const struct hk_conf_class *conf, struct hk_class_rule *rule)
{
    if (HK_GIVEN(conf, HK_CLASS_ACTION_OPT)) {
        if (conf->retry && !rule->retry)
            rule->max_attempts = 0; /* the preset's 1 would make it dead all the same */
        rule->retry = conf->retry;
    }
    if (HK_GIVEN(conf, HK_CLASS_MAX_OPT))
        rule->max_attempts = conf->max_attempts;
    if (HK_GIVEN(conf, HK_CLASS_CHARGE_OPT))
        rule->charge = conf->charge;
    if (HK_GIVEN(conf, HK_CLASS_PAUSE_OPT))
        rule->pause_after = conf->pause_after;
}

/* Retries set up for a class that is never retried. */
static void check_class_is_retried(struct hk_walk *walk, const struct hk_yaml_node *node,
                                   const struct hk_conf_class *conf, const struct hk_class_rule *rule)
{
    static const int needs_retry[] = {HK_CLASS_MAX_OPT, HK_CLASS_BACKOFF_OPT, HK_CLASS_JITTER_OPT};
    if (rule->retry || HK_GIVEN(conf, HK_CLASS_ACTION_OPT))
        return;
    for (size_t i = 0; i < HK_COUNT(needs_retry); i++) {
        const char *key = hk_class_table.opts[needs_retry[i]].key;
        if (HK_GIVEN(conf, needs_retry[i]))
            hk_walk_error(walk, hk_yaml_get(node, key)->key_at,
                          "class %.*s is not retried: add \"action: retry\", or drop \"%s\"",
                          (int)node->key.len, node->key.ptr, key);
    }
}

static void build_class(struct hk_walk *walk, const struct hk_yaml_node *node,
                        const struct hk_conf_class *conf, enum hk_class cls, struct hk_policy *policy)
{
    struct hk_class_rule rule = *hk_policy_class(policy, cls);
    struct hk_backoff backoff = rule.has_backoff ? rule.backoff : *hk_policy_backoff(policy);
    struct hk_jitter jitter = rule.has_jitter ? rule.jitter : *hk_policy_jitter(policy);
    struct hk_err err = {.code = HK_OK};
    bool was_azure = is_azure(backoff.kind);
    apply_class(conf, &rule);
    check_class_is_retried(walk, node, conf, &rule);
    bool good = apply_waits(walk, node, &conf->backoff, &conf->jitter, &backoff, &jitter);
    if (good && conf->backoff.given) {
        rule.has_backoff = true;
        rule.backoff = backoff;
    }
    if (good && (conf->jitter.given || (is_azure(backoff.kind) && !was_azure))) {
        rule.has_jitter = true;
        rule.jitter = jitter;
    }
    if (hk_policy_set_class(policy, cls, &rule, &err) != HK_OK)
        report_err(walk, node->key_at, &err);
}

static void build_classes(struct hk_walk *walk, const struct hk_yaml_node *node,
                          const struct hk_conf_classes *conf, struct hk_policy *policy)
{
    for (size_t i = 0; i < hk_classes_table.n_opts; i++) {
        const struct hk_yaml_node *entry = hk_yaml_get(node, hk_classes_table.opts[i].key);
        if (HK_GIVEN(conf, i) && entry)
            build_class(walk, entry, &conf->by_class[i + 1], (enum hk_class)(i + 1), policy);
    }
}

static void copy_text(char *out, size_t room, const char *text)
{
    (void)hk_str_copy(out, room, hk_str_of(text)); /* the table bounds its length */
}

static void build_rule(struct hk_walk *walk, const struct hk_yaml_node *node, const struct hk_conf_rule *conf,
                       struct hk_policy *policy)
{
    struct hk_rule rule = {.to_class = conf->to_class, .pause = conf->pause};
    struct hk_err err = {.code = HK_OK};
    const struct hk_yaml_node *match = hk_yaml_get(node, "match");
    if (!HK_GIVEN(conf, HK_RULE_MATCH_OPT) || !HK_GIVEN(conf, HK_RULE_CLASS_OPT))
        return; /* reported */
    if (hk_rule_parse_match(conf->match, &rule, &err) != HK_OK) {
        if (match->secret)
            hk_walk_error(walk, match->at, "\"match\" came from ${…} and matches nothing");
        else
            report_err(walk, match->at, &err);
        return;
    }
    copy_text(rule.header, sizeof rule.header, conf->header);
    copy_text(rule.header_contains, sizeof rule.header_contains, conf->contains);
    copy_text(rule.body_contains, sizeof rule.body_contains, conf->body);
    copy_text(rule.to_reason, sizeof rule.to_reason, conf->reason);
    if (HK_GIVEN(conf, HK_RULE_CONTAINS_OPT) && !hk_yaml_get(node, "header"))
        hk_walk_error(walk, hk_yaml_get(node, "contains")->key_at,
                      "\"contains\" needs \"header\": which header holds it?");
    else if (hk_policy_add_rule(policy, &rule, &err) != HK_OK)
        report_err(walk, node->at, &err);
}

static void build_rules(struct hk_walk *walk, const struct hk_yaml_node *node,
                        const struct hk_conf_list *list, struct hk_policy *policy)
{
    const struct hk_conf_rule *rules = list->items;
    const struct hk_yaml_node *entry = node && node->kind == HK_YAML_SEQUENCE ? node->first : NULL;
    for (size_t i = 0; i < list->n && entry; i++, entry = entry->next)
        build_rule(walk, entry, &rules[i], policy);
}

void hk_build_breaker(const struct hk_conf_breaker *conf, const struct hk_breaker_options *base,
                      struct hk_breaker_options *out)
{
    const struct hk_breaker_options *o = &conf->options;
    if (base)
        *out = *base;
    else
        hk_breaker_options_init(out);
    if (HK_GIVEN(conf, HK_BREAKER_FAILURES_OPT))
        out->failures = o->failures;
    if (HK_GIVEN(conf, HK_BREAKER_RATIO_OPT))
        out->ratio = o->ratio;
    if (HK_GIVEN(conf, HK_BREAKER_THROUGHPUT_OPT))
        out->min_throughput = o->min_throughput;
    if (HK_GIVEN(conf, HK_BREAKER_WINDOW_OPT))
        out->window_ms = o->window_ms;
    if (HK_GIVEN(conf, HK_BREAKER_OPEN_OPT))
        out->open_ms = o->open_ms;
    if (HK_GIVEN(conf, HK_BREAKER_OPEN_FACTOR_OPT))
        out->open_factor = o->open_factor;
    if (HK_GIVEN(conf, HK_BREAKER_OPEN_CAP_OPT))
        out->open_cap_ms = o->open_cap_ms;
    if (HK_GIVEN(conf, HK_BREAKER_OPEN_JITTER_OPT))
        out->open_jitter = o->open_jitter;
    if (HK_GIVEN(conf, HK_BREAKER_PROBES_OPT))
        out->probes = o->probes;
    if (HK_GIVEN(conf, HK_BREAKER_SUCCESSES_OPT))
        out->successes = o->successes;
}

static void build_breaker(struct hk_walk *walk, const struct hk_yaml_node *node,
                          const struct hk_conf_breaker *conf, struct hk_policy *policy)
{
    struct hk_breaker_options options;
    struct hk_err err = {.code = HK_OK};
    bool off = HK_GIVEN(conf, HK_BREAKER_OFF_OPT);
    hk_build_breaker(conf, hk_policy_breaker(policy), &options);
    if (hk_policy_set_breaker(policy, off ? NULL : &options, &err) != HK_OK)
        report_err(walk, hk_walk_at(walk, node, "breaker"), &err);
}

static void build_custom(struct hk_walk *walk, const struct hk_yaml_node *node, struct hk_conf_policy *conf,
                         struct hk_policy *policy)
{
    char shown[HK_SHOW_MAX];
    void *arg = NULL;
    const struct hk_policies *known = walk->env->known;
    const struct hk_policy_ops *ops = known ? hk_policies_ops(known, conf->custom, &arg) : NULL;
    const struct hk_yaml_node *entry = hk_yaml_get(node, "custom");
    (void)hk_diag_show(hk_str_of(conf->custom), entry->secret, shown);
    if (!ops && !walk->env->foreign_custom)
        hk_walk_error(walk, entry->at, "no custom policy is registered as %s", shown);
    if (!ops && walk->env->foreign_custom) {
        hk_walk_warn(walk, entry->at, "custom %s is registered by a program; the command line cannot plan it",
                     shown);
        conf->foreign = true;
        ops = &hk_policies_foreign_ops;
    }
    if (ops)
        hk_policy_set_ops(policy, ops, arg);
}

static bool is_bad(const struct hk_yaml_node *node, const struct hk_opt_table *table, uint32_t given, int opt)
{
    return !(given >> opt & 1u) && hk_yaml_get(node, table->opts[opt].key);
}

/* Is everything good that decides whether the policy ends? Otherwise "for ever" could be a mere consequence of what has
 * been reported; other errors do not hide it. */
static bool limits_are_whole(const struct hk_yaml_node *node, const struct hk_conf_policy *conf)
{
    static const int of_policy[] = {HK_POLICY_MAX_ATTEMPTS_OPT, HK_POLICY_MAX_ELAPSED_OPT,
                                    HK_POLICY_LIMIT_MODE_OPT, HK_POLICY_CLASSES_OPT};
    static const int of_class[] = {HK_CLASS_ACTION_OPT, HK_CLASS_MAX_OPT, HK_CLASS_CHARGE_OPT};
    const struct hk_yaml_node *classes = hk_yaml_get(node, "classes");
    bool bad = false;
    for (size_t i = 0; i < HK_COUNT(of_policy); i++)
        bad = bad || is_bad(node, &hk_policy_table, conf->given, of_policy[i]);
    for (size_t c = 0; c < hk_classes_table.n_opts; c++) {
        const struct hk_yaml_node *entry = hk_yaml_get(classes, hk_classes_table.opts[c].key);
        const struct hk_conf_class *class_conf = &conf->classes.by_class[c + 1];
        bad = bad || is_bad(classes, &hk_classes_table, conf->classes.given, (int)c);
        for (size_t i = 0; i < HK_COUNT(of_class); i++)
            bad = bad || is_bad(entry, &hk_class_table, class_conf->given, of_class[i]);
    }
    return !bad;
}

static void build(struct hk_walk *walk, const struct hk_yaml_node *node, struct hk_conf_policy *conf,
                  struct hk_policy *policy)
{
    struct hk_err err = {.code = HK_OK};
    if (hk_policy_set_name(policy, conf->name, &err) != HK_OK)
        report_err(walk, hk_walk_at(walk, NULL, ""), &err);
    build_waits(walk, node, conf, policy);
    build_limits(walk, node, conf, policy);
    build_classes(walk, hk_yaml_get(node, "classes"), &conf->classes, policy);
    build_rules(walk, hk_yaml_get(node, "classify"), &conf->classify, policy);
    if (conf->breaker.given)
        build_breaker(walk, node, &conf->breaker, policy);
    if (HK_GIVEN(conf, HK_POLICY_CUSTOM_OPT))
        build_custom(walk, node, conf, policy);
    if (limits_are_whole(node, conf) && hk_policy_check(policy, &err) != HK_OK)
        report_err(walk, hk_walk_at(walk, NULL, ""), &err);
}

void hk_check_policy(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_policy *conf = section;
    struct hk_policy *policy = NULL;
    struct hk_err err = {.code = HK_OK};
    char shown[HK_SHOW_MAX];
    if (walk->env->known && hk_policies_is_own(walk->env->known, conf->name))
        hk_walk_error(walk, hk_walk_at(walk, NULL, ""), "there is a policy %s already",
                      hk_show(hk_str_of(conf->name), shown));
    enum hk_code rc = hk_policy_new(conf->preset, &policy, &err);
    if (rc == HK_NOTFOUND)
        report_preset(walk, node, conf->preset);
    else if (rc != HK_OK)
        report_err(walk, node->at, &err);
    if (rc != HK_OK)
        return;
    build(walk, node, conf, policy);
    conf->built = policy;
}
