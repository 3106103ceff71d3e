/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to what alerts work with. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "alert/conf.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/payload.h"
#include "daemon/alerts.h"

#define LEASE_MORE_MS 5000 /* beyond the longest attempt: for the store's answers */

static void copy_rule(struct hk_copier *c, const struct hk_config *config,
                      const struct hk_conf_alert_rule *conf, struct hk_alerts_plan *plan)
{
    struct hk_alert_rule rule = hk_conf_rule(conf);
    const struct hk_conf_channel *channel = NULL;
    uint32_t told = 0;
    rule.name = hk_copier_text(c, rule.name);
    rule.destination = hk_copier_text(c, rule.destination);
    rule.event_type = hk_copier_text(c, rule.event_type);
    rule.reason = hk_copier_text(c, rule.reason);
    rule.fields = hk_copier_list(c, &conf->fields);
    rule.n_fields = conf->fields.n;
    for (size_t i = 0; (channel = hk_config_channel(config, i)) != NULL; i++)
        if (hk_conf_rule_has(conf, channel))
            told |= UINT32_C(1) << i;
    plan->figures = plan->figures || hk_alert_kind_has_figures(rule.kind);
    rule.channels = told;
    plan->rules[plan->n_rules++] = rule;
}

static int by_text(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

bool hk_alerts_plan_names(const struct hk_alerts_plan *plan, const char *name)
{
    return plan->n_named > 0 &&
           bsearch(&name, plan->named, plan->n_named, sizeof *plan->named, by_text) != NULL;
}

static void copy_orders(struct hk_alerts_plan *plan, struct hk_copier *c, const struct hk_config *config)
{
    const struct hk_conf_destination *conf = NULL;
    size_t n = 0;
    while (hk_config_destination(config, n))
        n++;
    plan->ordered = hk_pool_alloc(c->arena, n + 1, sizeof *plan->ordered);
    plan->named = hk_pool_alloc(c->arena, n + 1, sizeof *plan->named);
    c->failed = c->failed || !plan->ordered || !plan->named;
    for (size_t i = 0; !c->failed && (conf = hk_config_destination(config, i)) != NULL; i++)
        plan->named[plan->n_named++] = hk_copier_text(c, conf->name);
    if (!c->failed && plan->n_named > 1)
        qsort(plan->named, plan->n_named, sizeof *plan->named, by_text);
    for (size_t i = 0; !c->failed && (conf = hk_config_destination(config, i)) != NULL; i++)
        if (conf->order == HK_ORDER_KEY)
            plan->ordered[plan->n_ordered++] = (struct hk_blocking){
                .destination = hk_copier_text(c, conf->name), .skip_dead = conf->on_dead == HK_ON_DEAD_SKIP};
}

static void copy_routes(struct hk_alerts_plan *plan, struct hk_copier *c, const struct hk_config *config)
{
    const struct hk_conf_route *conf = NULL;
    size_t n = 0;
    while (hk_config_route(config, n))
        n++;
    plan->routes = hk_pool_alloc(c->arena, n + 1, sizeof *plan->routes);
    c->failed = c->failed || !plan->routes;
    for (size_t i = 0; !c->failed && (conf = hk_config_route(config, i)) != NULL; i++)
        plan->routes[plan->n_routes++] =
            (struct hk_alerts_route){.event_type = hk_copier_text(c, conf->event_type),
                                     .destinations = hk_copier_list(c, &conf->destinations),
                                     .n = conf->destinations.n};
}

static void fill(struct hk_alerts_plan *plan, struct hk_copier *c, const struct hk_config *config)
{
    const struct hk_conf_alert_rule *rule = NULL;
    size_t n_rules = 0;
    while (hk_config_alert_rule(config, n_rules))
        n_rules++;
    assert(n_rules <= HK_ALERTS_RULES_MAX); /* the table says so */
    plan->channels = hk_pool_alloc(c->arena, config->channels.n, sizeof *plan->channels);
    plan->rules = hk_pool_alloc(c->arena, n_rules + 1, sizeof *plan->rules);
    c->failed = !plan->channels || !plan->rules;
    for (size_t i = 0; i < config->channels.n && !c->failed; i++) {
        const struct hk_conf_channel *conf = hk_config_channel(config, i);
        c->failed = hk_channel_of_conf(config, conf, c->arena, &plan->channels[i], NULL) != HK_OK;
        plan->n_channels = i + 1;
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
    struct hk_copier c = {.arena = &plan->arena};
    plan->refs = 1;
    plan->settings = (struct hk_alert_settings){.update_ms = config->alerts.update_ms,
                                                .resolve_after_ms = config->alerts.resolve_after_ms,
                                                .separate = config->alerts.separate,
                                                .quiet = config->alerts.quiet.hours};
    plan->interval_ms = config->alerts.interval_ms;
    plan->keep_ms = config->retention.alerts_ms;
    fill(plan, &c, config);
    plan->relay = hk_copier_text(&c, relay);
    plan->link = hk_copier_text(&c, config->alerts.link);
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
