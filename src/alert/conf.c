/* SPDX-License-Identifier: Apache-2.0 */
/* From the configuration to a channel. */
#include "alert/conf.h"
#include "base/str.h"

_Static_assert((int)HK_CONF_SLACK == HK_CHANNEL_SLACK && (int)HK_CONF_EMAIL == HK_CHANNEL_EMAIL &&
                   (int)HK_CONF_WEBHOOK == HK_CHANNEL_WEBHOOK &&
                   (int)HK_CONF_PAGERDUTY == HK_CHANNEL_PAGERDUTY && (int)HK_CONF_EXEC == HK_CHANNEL_EXEC,
               "the kinds are the same");

const char *hk_copier_text(struct hk_copier *c, const char *text)
{
    const char *out = text ? hk_pool_copy_str(c->arena, hk_str_of(text)) : NULL;
    c->failed = c->failed || (text && !out);
    return out;
}

const char *const *hk_copier_list(struct hk_copier *c, const struct hk_conf_list *list)
{
    const char **out = hk_pool_alloc(c->arena, list->n + 1, sizeof *out);
    if (!out) {
        c->failed = true;
        return NULL;
    }
    for (size_t i = 0; i < list->n; i++)
        out[i] = hk_copier_text(c, hk_conf_text(list, i));
    return out;
}

static const struct hk_cidr *copy_ranges(struct hk_copier *c, const struct hk_conf_list *list)
{
    const struct hk_cidr *ranges = list->items;
    struct hk_cidr *out = hk_pool_alloc(c->arena, list->n + 1, sizeof *out);
    c->failed = c->failed || !out;
    for (size_t i = 0; out && i < list->n; i++)
        out[i] = ranges[i];
    return out;
}

static void copy_email(struct hk_copier *c, const struct hk_conf_email *email, struct hk_channel *out)
{
    out->url = hk_copier_text(c, email->url);
    out->user = hk_copier_text(c, email->user);
    out->password = hk_copier_text(c, email->password);
    out->from = hk_copier_text(c, email->from);
    out->to = hk_copier_list(c, &email->to);
    out->n_to = email->to.n;
    out->starttls_required = email->starttls;
    out->ca_file = hk_copier_text(c, email->ca_file);
}

static void copy_channel(struct hk_copier *c, const struct hk_conf_channel *conf,
                         const struct hk_proxy *proxy, struct hk_channel *out)
{
    out->name = hk_copier_text(c, conf->name);
    out->kind = (enum hk_channel_kind)conf->kind;
    out->timeout_ms = conf->timeout_ms;
    out->allow = copy_ranges(c, &conf->allow);
    out->n_allow = conf->allow.n;
    if (proxy) {
        out->proxy = hk_proxy_copy(proxy, c->arena);
        c->failed = c->failed || !out->proxy;
    }
    switch (conf->kind) {
    case HK_CONF_SLACK:
        out->url = hk_copier_text(c, conf->slack.url);
        break;
    case HK_CONF_EMAIL:
        copy_email(c, &conf->email, out);
        break;
    case HK_CONF_WEBHOOK:
        out->url = hk_copier_text(c, conf->webhook.url);
        out->secret = hk_copier_text(c, conf->webhook.secret);
        out->ca_file = hk_copier_text(c, conf->webhook.ca_file);
        break;
    case HK_CONF_PAGERDUTY:
        out->url = hk_copier_text(c, conf->pagerduty.url);
        out->secret = hk_copier_text(c, conf->pagerduty.routing_key);
        break;
    case HK_CONF_EXEC:
        out->argv = hk_copier_list(c, &conf->exec.command);
        out->n_argv = conf->exec.command.n;
        break;
    }
}

/* Few proxies let mail pass, and most mail servers are inside: only a proxy that the channel itself names carries it. */
static const struct hk_proxy *proxy_of(const struct hk_config *config, const struct hk_conf_channel *conf)
{
    if (conf->kind == HK_CONF_EXEC || (conf->kind == HK_CONF_EMAIL && !conf->proxy))
        return NULL;
    return hk_config_proxy_of(config, conf->proxy);
}

enum hk_code hk_channel_of_conf(const struct hk_config *config, const struct hk_conf_channel *conf,
                                struct hk_pool *arena, struct hk_channel *out, struct hk_err *err)
{
    struct hk_copier c = {.arena = arena};
    struct hk_channel channel = {.language = hk_conf_language(config, conf)};
    copy_channel(&c, conf, proxy_of(config, conf), &channel);
    if (c.failed)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *out = channel;
    return HK_OK;
}

enum hk_code hk_channel_check_conf(const struct hk_config *config, const struct hk_conf_channel *conf,
                                   struct hk_err *err)
{
    struct hk_pool arena = {NULL};
    struct hk_channel channel;
    enum hk_code rc = hk_channel_of_conf(config, conf, &arena, &channel, err);
    if (rc == HK_OK)
        rc = hk_channel_check(&channel, err);
    hk_pool_wipe(&arena);
    return rc;
}
