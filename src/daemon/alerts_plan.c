/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to what alerts work with. */
#include <assert.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/payload.h"
#include "daemon/alerts.h"

#define LEASE_MORE_MS 5000 /* beyond the longest attempt: for the store's answers */

_Static_assert((int)HK_CONF_SLACK == HK_CHANNEL_SLACK && (int)HK_CONF_EMAIL == HK_CHANNEL_EMAIL &&
                   (int)HK_CONF_WEBHOOK == HK_CHANNEL_WEBHOOK &&
                   (int)HK_CONF_PAGERDUTY == HK_CHANNEL_PAGERDUTY && (int)HK_CONF_EXEC == HK_CHANNEL_EXEC,
               "the kinds are the same");

struct copier {
    struct hk_pool *arena;
    bool failed;
};

static const char *copy(struct copier *c, const char *text)
{
    const char *out = text ? hk_pool_copy_str(c->arena, hk_str_of(text)) : NULL;
    c->failed = c->failed || (text && !out);
    return out;
}

static const char *const *copy_list(struct copier *c, const struct hk_conf_list *list)
{
    const char **out = hk_pool_alloc(c->arena, list->n + 1, sizeof *out);
    if (!out) {
        c->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < list->n; i++)
        out[i] = copy(c, hk_conf_text(list, i));
    return out;
}

static const struct hk_cidr *copy_ranges(struct copier *c, const struct hk_conf_list *list)
{
    const struct hk_cidr *ranges = list->items;
    struct hk_cidr *out = hk_pool_alloc(c->arena, list->n + 1, sizeof *out);
    c->failed = c->failed || !out;
    for (size_t i = 0; out && i < list->n; i++)
        out[i] = ranges[i];
    return out;
}

static void copy_email(struct copier *c, const struct hk_conf_email *email, struct hk_channel *out)
{
    out->url = copy(c, email->url);
    out->user = copy(c, email->user);
    out->password = copy(c, email->password);
    out->from = copy(c, email->from);
    out->to = copy_list(c, &email->to);
    out->n_to = email->to.n;
    out->starttls_required = email->starttls;
    out->ca_file = copy(c, email->ca_file);
}

static void copy_channel(struct copier *c, const struct hk_conf_channel *conf, struct hk_channel *out)
{
    out->name = copy(c, conf->name);
    out->kind = (enum hk_channel_kind)conf->kind;
    out->timeout_ms = conf->timeout_ms;
    out->allow = copy_ranges(c, &conf->allow);
    out->n_allow = conf->allow.n;
    switch (conf->kind) {
    case HK_CONF_SLACK:
        out->url = copy(c, conf->slack.url);
        break;
    case HK_CONF_EMAIL:
        copy_email(c, &conf->email, out);
        break;
    case HK_CONF_WEBHOOK:
        out->url = copy(c, conf->webhook.url);
        out->secret = copy(c, conf->webhook.secret);
        out->ca_file = copy(c, conf->webhook.ca_file);
        break;
    case HK_CONF_PAGERDUTY:
        out->url = copy(c, conf->pagerduty.url);
        out->secret = copy(c, conf->pagerduty.routing_key);
        break;
    case HK_CONF_EXEC:
        out->argv = copy_list(c, &conf->exec.command);
        out->n_argv = conf->exec.command.n;
        break;
    }
}

enum hk_code hk_alerts_channel(const struct hk_config *config, const struct hk_conf_channel *conf,
                               struct hk_pool *arena, struct hk_channel *out, struct hk_err *err)
{
    struct copier c = {.arena = arena};
    struct hk_channel channel = {.language = hk_conf_language(config, conf)};
    copy_channel(&c, conf, &channel);
    if (c.failed)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *out = channel;
    return HK_OK;
}

enum hk_code hk_alerts_check_channel(const struct hk_config *config, const struct hk_conf_channel *conf,
                                     struct hk_err *err)
{
    struct hk_pool arena = {NULL};
    struct hk_channel channel;
    enum hk_code rc = hk_alerts_channel(config, conf, &arena, &channel, err);
    if (rc == HK_OK)
        rc = hk_channel_check(&channel, err);
    hk_pool_wipe(&arena);
    return rc;
}

static void copy_rule(struct copier *c, const struct hk_config *config, const struct hk_conf_alert_rule *conf,
                      struct hk_alerts_plan *plan)
{
    struct hk_alert_rule rule = hk_conf_rule(conf);
    const struct hk_conf_channel *channel = NULL;
    uint32_t told = 0;
    rule.name = copy(c, rule.name);
    rule.destination = copy(c, rule.destination);
    rule.event_type = copy(c, rule.event_type);
    rule.reason = copy(c, rule.reason);
    for (size_t i = 0; (channel = hk_config_channel(config, i)) != NULL; i++)
        if (hk_conf_rule_has(conf, channel))
            told |= UINT32_C(1) << i;
    plan->figures = plan->figures || hk_alert_kind_has_figures(rule.kind);
    rule.channels = told;
    plan->rules[plan->n_rules++] = rule;
}

static void copy_orders(struct hk_alerts_plan *plan, struct copier *c, const struct hk_config *config)
{
    const struct hk_conf_destination *conf = NULL;
    size_t n = 0;
    while (hk_config_destination(config, n))
        n++;
    plan->ordered = hk_pool_alloc(c->arena, n + 1, sizeof *plan->ordered);
    c->failed = c->failed || !plan->ordered;
    for (size_t i = 0; !c->failed && (conf = hk_config_destination(config, i)) != NULL; i++)
        if (conf->order == HK_ORDER_KEY)
            plan->ordered[plan->n_ordered++] = (struct hk_blocking){
                .destination = copy(c, conf->name), .skip_dead = conf->on_dead == HK_ON_DEAD_SKIP};
}

static void copy_routes(struct hk_alerts_plan *plan, struct copier *c, const struct hk_config *config)
{
    const struct hk_conf_route *conf = NULL;
    size_t n = 0;
    while (hk_config_route(config, n))
        n++;
    plan->routes = hk_pool_alloc(c->arena, n + 1, sizeof *plan->routes);
    c->failed = c->failed || !plan->routes;
    for (size_t i = 0; !c->failed && (conf = hk_config_route(config, i)) != NULL; i++)
        plan->routes[plan->n_routes++] =
            (struct hk_alerts_route){.event_type = copy(c, conf->event_type),
                                     .destinations = copy_list(c, &conf->destinations),
                                     .n = conf->destinations.n};
}

static void fill(struct hk_alerts_plan *plan, struct copier *c, const struct hk_config *config)
{
    const struct hk_conf_alert_rule *rule = NULL;
    size_t n_rules = 0;
    while (hk_config_alert_rule(config, n_rules))
        n_rules++;
    plan->channels = hk_pool_alloc(c->arena, config->channels.n, sizeof *plan->channels);
    plan->rules = hk_pool_alloc(c->arena, n_rules + 1, sizeof *plan->rules);
    c->failed = !plan->channels || !plan->rules;
    for (size_t i = 0; i < config->channels.n && !c->failed; i++) {
        const struct hk_conf_channel *conf = hk_config_channel(config, i);
        plan->channels[i].language = hk_conf_language(config, conf);
        copy_channel(c, conf, &plan->channels[plan->n_channels++]);
        if (conf->timeout_ms + LEASE_MORE_MS > plan->lease_ms)
            plan->lease_ms = conf->timeout_ms + LEASE_MORE_MS;
    }
    for (size_t i = 0; !c->failed && (rule = hk_config_alert_rule(config, i)) != NULL; i++)
        copy_rule(c, config, rule, plan);
    copy_orders(plan, c, config);
    copy_routes(plan, c, config);
}

static enum hk_code check_channels(const struct hk_alerts_plan *plan, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < plan->n_channels && rc == HK_OK; i++) {
        struct hk_err why = {.message = ""};
        rc = hk_channel_check(&plan->channels[i], &why);
        if (rc != HK_OK)
            rc = hk_err_set(err, HK_INVALID, "channel \"%s\": %s", plan->channels[i].name, why.message);
    }
    return rc;
}

enum hk_code hk_alerts_plan_new(const struct hk_config *config, const char *relay,
                                struct hk_alerts_plan **out_plan, struct hk_err *err)
{
    *out_plan = NULL;
    if (!config->channels.n)
        return HK_OK;
    assert(config->channels.n <= HK_ALERTS_CHANNELS_MAX); /* the table says so */
    struct hk_alerts_plan *plan = hk_mem_zalloc(1, sizeof *plan);
    if (!plan)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    struct copier c = {.arena = &plan->arena};
    plan->refs = 1;
    plan->settings = (struct hk_alert_settings){.update_ms = config->alerts.update_ms,
                                                .resolve_after_ms = config->alerts.resolve_after_ms,
                                                .separate = config->alerts.separate,
                                                .quiet = config->alerts.quiet.hours};
    plan->interval_ms = config->alerts.interval_ms;
    plan->keep_ms = config->retention.alerts_ms;
    fill(plan, &c, config);
    plan->relay = copy(&c, relay);
    plan->link = copy(&c, config->alerts.link);
    enum hk_code rc = c.failed ? hk_err_set(err, HK_NOMEM, "out of memory")
                               : hk_config_make_masks(config, &plan->masks, err);
    if (rc == HK_OK)
        rc = check_channels(plan, err);
    if (rc != HK_OK) {
        hk_alerts_plan_unref(plan);
        return rc;
    }
    *out_plan = plan;
    return HK_OK;
}

struct hk_alerts_plan *hk_alerts_plan_ref(struct hk_alerts_plan *plan)
{
    plan->refs++;
    return plan;
}

void hk_alerts_plan_unref(struct hk_alerts_plan *plan)
{
    if (!plan || --plan->refs)
        return;
    hk_masks_free(plan->masks);
    hk_pool_wipe(&plan->arena);
    hk_mem_free(plan);
}
