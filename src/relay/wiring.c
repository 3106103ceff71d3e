/* SPDX-License-Identifier: Apache-2.0 */
/* Configuration -> engine options and sinks. */
#include <string.h>

#include "base/mem.h"
#include "config/payload.h"
#include "relay/wiring.h"
#include "sink/kinds.h"

enum {
    POLL_MIN_MS = 2,
    POLL_MAX_MS = 100, /* each look wakes two threads: 20 a second are 0.25 % of a core, with nothing to do */
    LINGER_MS = 2,
    AHEAD_MS = 20
};

static size_t count_dests(const struct hk_config *config)
{
    size_t n = 0;
    while (hk_config_destination(config, n))
        n++;
    return n;
}

static size_t count_routes(const struct hk_config *config)
{
    size_t n = 0;
    while (hk_config_route(config, n))
        n++;
    return n;
}

static size_t count_texts(const struct hk_conf_list *list)
{
    size_t n = 0;
    while (hk_conf_text(list, n))
        n++;
    return n;
}

enum hk_code hk_wiring_sink(const struct hk_conf_destination *conf, struct hk_loop *loop,
                            struct hk_sink **out, struct hk_err *err)
{
    return hk_sink_kind_of(conf)->open(conf, loop, out, err);
}

struct hk_engine_dest hk_wiring_dest(const struct hk_config *config, const struct hk_conf_destination *conf)
{
    struct hk_engine_dest d = {.name = conf->name,
                               .policy = hk_conf_policy(config, conf),
                               .breaker = conf->has_breaker ? &conf->breaker : NULL,
                               .ordered = conf->order == HK_ORDER_KEY,
                               .skip_dead = conf->on_dead == HK_ON_DEAD_SKIP};
    hk_limiter_options_init(&d.limiter);
    d.limiter.rate_per_s = conf->limits.rate_per_s;
    d.limiter.burst = conf->limits.burst ? conf->limits.burst : 1;
    d.limiter.concurrency = conf->limits.concurrency;
    d.shared = (conf->limits.shared || conf->queue.name) && conf->limits.concurrency;
    return d;
}

static enum hk_code open_dest(struct hk_wiring *w, size_t i, struct hk_loop *loop, struct hk_err *err)
{
    const struct hk_conf_destination *conf = hk_config_destination(w->config, i);
    w->dests[i] = hk_wiring_dest(w->config, conf);
    return hk_wiring_sink(conf, loop, &w->sinks[i], err);
}

static size_t index_of(const struct hk_wiring *w, const char *name)
{
    size_t i = 0;
    while (i < w->n_dests && strcmp(w->dests[i].name, name) != 0)
        i++;
    return i;
}

static enum hk_code wire_route(struct hk_wiring *w, size_t i, struct hk_err *err)
{
    const struct hk_conf_route *conf = hk_config_route(w->config, i);
    size_t n = count_texts(&conf->destinations);
    w->route_dests[i] = hk_mem_zalloc(n + 1, sizeof **w->route_dests);
    if (!w->route_dests[i])
        return hk_err_set(err, HK_NOMEM, "out of memory for routes");
    for (size_t k = 0; k < n; k++)
        w->route_dests[i][k] =
            index_of(w, hk_conf_text(&conf->destinations, k)); /* checked by the configuration */
    w->routes[i] =
        (struct hk_engine_route){.event_type = conf->event_type, .dests = w->route_dests[i], .n_dests = n};
    return HK_OK;
}

static enum hk_code fill(struct hk_wiring *w, struct hk_loop *loop, struct hk_err *err)
{
    if (!w->dests || !w->sinks || !w->routes || !w->route_dests)
        return hk_err_set(err, HK_NOMEM, "out of memory for destinations");
    enum hk_code rc = HK_OK;
    for (size_t i = 0; rc == HK_OK && i < w->n_dests; i++)
        rc = open_dest(w, i, loop, err);
    for (size_t i = 0; rc == HK_OK && i < w->n_routes; i++)
        rc = wire_route(w, i, err);
    return rc == HK_OK ? hk_config_make_validate(w->config, &w->validate, err) : rc;
}

enum hk_code hk_wiring_open(const struct hk_config *config, struct hk_loop *loop, struct hk_wiring *out,
                            struct hk_err *err)
{
    struct hk_wiring w = {.config = config, .n_dests = count_dests(config), .n_routes = count_routes(config)};
    w.dests = hk_mem_zalloc(w.n_dests + 1, sizeof *w.dests);
    w.sinks = hk_mem_zalloc(w.n_dests + 1, sizeof(struct hk_sink *));
    w.routes = hk_mem_zalloc(w.n_routes + 1, sizeof *w.routes);
    w.route_dests = hk_mem_zalloc(w.n_routes + 1, sizeof *w.route_dests);
    enum hk_code rc = fill(&w, loop, err);
    if (rc == HK_OK)
        *out = w;
    else
        hk_wiring_close(&w);
    return rc;
}

void hk_wiring_close(struct hk_wiring *w)
{
    for (size_t i = 0; w->sinks && i < w->n_dests; i++)
        if (w->sinks[i])
            w->sinks[i]->ops->close(w->sinks[i]);
    for (size_t i = 0; w->route_dests && i < w->n_routes; i++)
        hk_mem_free(w->route_dests[i]);
    hk_mem_free(w->dests);
    hk_mem_free(w->sinks);
    hk_mem_free(w->routes);
    hk_mem_free(w->route_dests);
    hk_validate_free(w->validate);
    *w = (struct hk_wiring){.n_dests = 0};
}

static const struct hk_policy *policy_by_name(void *arg, const char *name)
{
    const struct hk_config *config = arg;
    return hk_policies_get(config->policies, name);
}

struct hk_engine_options hk_wiring_engine(const struct hk_wiring *w, uint64_t seed)
{
    const struct hk_conf_relay *relay = &w->config->relay;

    /* the callback gives the policies out as const; only the pointer type forgets it */
    union {
        const void *in;
        void *out;
    } config = {.in = w->config};

    return (struct hk_engine_options){.dests = w->dests,
                                      .n_dests = w->n_dests,
                                      .routes = w->routes,
                                      .n_routes = w->n_routes,
                                      .policy_by_name = policy_by_name,
                                      .policy_arg = config.out,
                                      .concurrency = relay->concurrency,
                                      .batch = relay->batch,
                                      .batch_bytes = relay->batch_bytes,
                                      .max_payload_bytes = relay->max_payload_bytes,
                                      .lease_ms = relay->lease_ms,
                                      .poll_min_ms = POLL_MIN_MS,
                                      .poll_max_ms = POLL_MAX_MS,
                                      .linger_ms = LINGER_MS,
                                      .ahead_ms = AHEAD_MS,
                                      .max_attempts_ceiling = relay->max_attempts_ceiling,
                                      .timeout_ceiling_ms = relay->timeout_ceiling_ms,
                                      .seed = seed};
}
