/* SPDX-License-Identifier: Apache-2.0 */
/* From a file to a configuration: parse, interpolate, walk, then settle what needed the whole file. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/build.h"
#include "config/interp.h"
#include "config/keys.h"
#include "config/policies_impl.h"
#include "config/tables.h"
#include "config/walk.h"

/* ---- settling ---- */

/* Names in order, so that ten thousand destinations and their routes are no square. */
struct index {
    const char **names;
    size_t n;
};

static int compare_names(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return strcmp(*x, *y);
}

static bool build_index(struct hk_walk *walk, const struct hk_config *config, struct index *out)
{
    const struct hk_conf_destination *items = config->destinations.items;
    *out =
        (struct index){.names = hk_pool_alloc(walk->scratch, config->destinations.n + 1, sizeof *out->names)};
    if (!out->names) {
        walk->status = HK_NOMEM;
        return false;
    }
    for (size_t i = 0; i < config->destinations.n; i++) {
        if (items[i].name) /* none: its key was refused */
            out->names[out->n++] = items[i].name;
    }
    qsort(out->names, out->n, sizeof *out->names, compare_names);
    return true;
}

static const char *index_word(const void *arg, size_t i)
{
    const struct index *index = arg;
    return i < index->n ? index->names[i] : NULL;
}

static bool is_destination(const struct index *index, const char *name)
{
    return index->n && bsearch(&name, index->names, index->n, sizeof *index->names, compare_names);
}

struct policy_names {
    const struct hk_config *config;
    const struct hk_policies *known;
};

/* The file's, then the presets or the set that the program brought (which holds the presets). */
static const char *policy_word(const void *arg, size_t i)
{
    const struct policy_names *names = arg;
    const struct hk_conf_policy *items = names->config->policy_conf.items;
    size_t own = names->config->policy_conf.n;
    if (i < own)
        return items[i].name ? items[i].name : "";
    if (!names->known)
        return hk_preset_name(i - own);
    const struct hk_policy *policy = hk_policies_at(names->known, i - own);
    return policy ? hk_policy_name(policy) : NULL;
}

static bool is_policy(const struct policy_names *names, const char *name)
{
    const char *word = NULL;
    for (size_t i = 0; (word = policy_word(names, i)) != NULL; i++) {
        if (strcmp(word, name) == 0)
            return true;
    }
    return false;
}

static void report_unknown(struct hk_walk *walk, const struct hk_pending *pending, const char *what,
                           const char *(*word)(const void *arg, size_t i), const void *arg)
{
    char shown[HK_SHOW_MAX];
    char meant[HK_MEANT_MAX] = "";
    if (!pending->node->secret && walk->diags->n < HK_DIAGS_MAX)
        (void)hk_walk_meant(pending->node->text, word, arg, meant);
    hk_walk_error(walk, pending->node->at, "there is no %s %s%s", what,
                  hk_diag_show(pending->node->text, pending->node->secret, shown), meant);
}

static const char *channel_word(const void *arg, size_t i)
{
    const struct hk_config *config = arg;
    const struct hk_conf_channel *channel = hk_config_channel(config, i);
    return !channel ? NULL : channel->name ? channel->name : "";
}

static bool is_channel(const struct hk_config *config, const char *name)
{
    const char *word = NULL;
    for (size_t i = 0; (word = channel_word(config, i)) != NULL; i++)
        if (strcmp(word, name) == 0)
            return true;
    return false;
}

static const char *proxy_word(const void *arg, size_t i)
{
    const struct hk_config *config = arg;
    const struct hk_conf_proxy *proxy = hk_config_proxy(config, i);
    return !proxy ? NULL : proxy->proxy.name ? proxy->proxy.name : "";
}

static void check_proxy_name(struct hk_walk *walk, const struct hk_config *config,
                             const struct hk_pending *pending)
{
    bool none = strcmp(pending->name, HK_CONF_NO_PROXY) == 0;
    if (none && walk->is_definition && config->default_proxy)
        hk_walk_error(walk, pending->node->at, "a definition cannot go around the relay's default_proxy");
    else if (!none && !hk_config_proxy_of(config, pending->name))
        report_unknown(walk, pending, "proxy", proxy_word, config);
}

static void settle_names(struct hk_walk *walk, const struct hk_config *config)
{
    struct index index;
    struct policy_names names = {.config = config, .known = walk->env->known};
    if (!build_index(walk, config, &index))
        return;
    for (const struct hk_pending *p = walk->pending; p; p = p->next) {
        if (p->ref == HK_REF_POLICY && !is_policy(&names, p->name))
            report_unknown(walk, p, "policy", policy_word, &names);
        else if (p->ref == HK_REF_DESTINATION && !is_destination(&index, p->name))
            report_unknown(walk, p, "destination", index_word, &index);
        else if (p->ref == HK_REF_CHANNEL && !is_channel(config, p->name))
            report_unknown(walk, p, "channel", channel_word, config);
        else if (p->ref == HK_REF_PROXY)
            check_proxy_name(walk, config, p);
    }
}

/* The built policies leave the list and belong to the set. */
static enum hk_code settle_policies(struct hk_walk *walk, struct hk_config *config)
{
    struct hk_conf_policy *items = config->policy_conf.items;
    const struct hk_policies *known = walk->env->known;
    struct hk_err err = {.code = HK_OK};
    enum hk_code rc = hk_policies_new(&config->policies, &err);
    for (size_t i = 0; i < config->policy_conf.n && rc == HK_OK; i++) {
        if (!items[i].built)
            continue;
        rc = hk_policies_take(config->policies, items[i].built, &err);
        if (rc == HK_OK)
            items[i].built = NULL;
    }
    if (rc != HK_OK)
        return rc;
    /* one of the program's own cannot be the default of this set: it is not in it */
    bool here = hk_policies_get(config->policies, config->default_policy) != NULL;
    assert(here || known);
    return here ? hk_policies_set_default(config->policies, config->default_policy, &err) : HK_OK;
}

/* A queue's own policy: that of its name, changed by what the queue says. */
static void settle_queue(struct hk_walk *walk, const struct hk_config *config,
                         const struct hk_pending *pending)
{
    struct hk_conf_destination *destination = pending->target;
    struct hk_err err = {.code = HK_OK};
    if (!destination->queue.name)
        return;
    if (!destination->policy)
        destination->policy = config->queues.policy;
    destination->also_allow = &config->queues.allow;
    const struct hk_policy *base = hk_policies_get(config->policies, destination->policy);
    enum hk_code rc =
        hk_build_queue_policy(&destination->queue, base, walk->arena, &destination->own_policy, &err);
    if (rc == HK_NOMEM)
        walk->diags->nomem = true;
    else if (rc != HK_OK)
        hk_walk_error(walk, hk_walk_at(walk, pending->node, "queue"), "%s", err.message);
}

static void settle_breaker(struct hk_walk *walk, const struct hk_config *config,
                           const struct hk_pending *pending)
{
    struct hk_conf_destination *destination = pending->target;
    settle_queue(walk, config, pending);
    destination->proxy = hk_config_proxy_of(config, destination->proxy_name);
    if (!destination->policy)
        destination->policy = config->default_policy;
    const struct hk_policy *policy = hk_conf_policy(config, destination);
    if (!policy && walk->env->known)
        policy = hk_policies_get(walk->env->known, destination->policy);
    const struct hk_breaker_options *base = policy ? hk_policy_breaker(policy) : NULL;
    const struct hk_conf_breaker *conf = &destination->breaker_conf;
    struct hk_err err = {.code = HK_OK};
    destination->has_breaker = (base || conf->given) && !HK_GIVEN(conf, HK_BREAKER_OFF_OPT);
    hk_build_breaker(conf, base, &destination->breaker);
    if (destination->has_breaker && hk_breaker_options_check(&destination->breaker, &err) != HK_OK)
        hk_walk_error(walk, hk_walk_at(walk, pending->node, "breaker"), "%s", err.message);
}

static bool is_foreign(const struct hk_config *config, const char *name)
{
    const struct hk_conf_policy *items = config->policy_conf.items;
    for (size_t i = 0; i < config->policy_conf.n; i++) {
        if (items[i].foreign && items[i].name && strcmp(items[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Retries of a destination are the relay's business, and it has no code of somebody else. */
static void settle_foreign(struct hk_walk *walk, const struct hk_config *config)
{
    char shown[HK_SHOW_MAX];
    for (const struct hk_pending *p = walk->pending; p; p = p->next) {
        const struct hk_conf_destination *destination = p->target;
        if (p->ref != HK_REF_BREAKER)
            continue;
        const char *policy = destination->policy ? destination->policy : config->default_policy;
        const struct hk_yaml_node *named = hk_yaml_get(p->node, "policy");
        if (is_foreign(config, policy))
            hk_walk_error(walk, named ? named->at : p->node->key_at,
                          "policy %s decides in code of some program, which the relay does not have",
                          hk_show(hk_str_of(policy), shown));
    }
}

static enum hk_code settle(struct hk_walk *walk, struct hk_config *config)
{
    if (walk->status == HK_OK) {
        settle_names(walk, config);
        settle_foreign(walk, config);
    }
    if (walk->status != HK_OK || walk->diags->nomem)
        return HK_NOMEM;
    if (walk->diags->errors > walk->errors_at_start)
        return HK_INVALID;
    enum hk_code rc = settle_policies(walk, config);
    if (rc != HK_OK)
        return rc;
    for (const struct hk_pending *p = walk->pending; p; p = p->next) {
        if (p->ref == HK_REF_BREAKER)
            settle_breaker(walk, config, p);
    }
    if (walk->diags->nomem)
        return HK_NOMEM;
    return walk->diags->errors > walk->errors_at_start ? HK_INVALID : HK_OK;
}

/* Routes and channels name no definition, so only its policy, its proxy and its breaker are open. */
enum hk_code hk_config_settle_definition(struct hk_walk *walk, const struct hk_config *config)
{
    struct policy_names names = {.config = config, .known = NULL};
    for (const struct hk_pending *p = walk->pending; p; p = p->next)
        if (p->ref == HK_REF_POLICY && !is_policy(&names, p->name))
            report_unknown(walk, p, "policy", policy_word, &names);
        else if (p->ref == HK_REF_PROXY)
            check_proxy_name(walk, config, p);
    settle_foreign(walk, config);
    for (const struct hk_pending *p = walk->pending; p; p = p->next)
        if (p->ref == HK_REF_BREAKER && walk->diags->errors == walk->errors_at_start)
            settle_breaker(walk, config, p);
    if (walk->status != HK_OK || walk->diags->nomem)
        return HK_NOMEM;
    return walk->diags->errors > walk->errors_at_start ? HK_INVALID : HK_OK;
}

/* ---- loading ---- */

static enum hk_code walk_file(const struct hk_yaml *yaml, const char *file, const struct hk_config_env *env,
                              struct hk_diags *diags, size_t errors_at_start, struct hk_config *config)
{
    static const struct hk_yaml_node empty = {.kind = HK_YAML_MAPPING, .at = {1, 1}};
    struct hk_pool scratch = {NULL};
    struct hk_walk walk = {
        .file = file, .env = env, .diags = diags, .arena = &config->arena, .scratch = &scratch};
    walk.pending_tail = &walk.pending;
    walk.errors_at_start = errors_at_start;
    hk_walk_section(&walk, &hk_root_table, yaml->root ? yaml->root : &empty, config);
    config->default_given = hk_yaml_get(yaml->root, "default_policy") != NULL;
    enum hk_code rc = settle(&walk, config);
    hk_pool_wipe(&scratch);
    return rc;
}

static enum hk_code parse_into(const char *text, size_t len, const char *file,
                               const struct hk_config_env *env, struct hk_diags *diags,
                               struct hk_config *config)
{
    struct hk_yaml yaml;
    size_t errors_at_start = diags->errors;
    enum hk_code rc = hk_yaml_parse(text, len, file, diags, &yaml);
    if (rc == HK_OK)
        rc = hk_interp_tree(&yaml, file, env, diags);
    if (rc == HK_OK)
        rc = walk_file(&yaml, file, env, diags, errors_at_start, config);
    hk_yaml_fini(&yaml);
    return rc;
}

enum hk_code hk_config_parse(const char *text, size_t len, const char *file, const struct hk_config_env *env,
                             struct hk_diags *diags, struct hk_config **out_config)
{
    struct hk_config *config = hk_mem_zalloc(1, sizeof *config);
    if (!config)
        return HK_NOMEM;
    hk_walk_defaults(&hk_root_table, config);
    if (!env)
        env = hk_config_env_system();
    enum hk_code rc = parse_into(text, len, file, env, diags, config);
    if (rc == HK_OK)
        rc = hk_config_make_keys(config, env, NULL); /* what may be wrong with them was said already */
    if (rc != HK_OK) {
        hk_config_free(config);
        return rc;
    }
    *out_config = config;
    return HK_OK;
}

enum hk_code hk_config_load(const char *path, const struct hk_config_env *env, struct hk_diags *diags,
                            struct hk_config **out_config)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_buf text;
    enum hk_code rc = hk_err_set(&err, HK_UNSUPPORTED, "there are no files here");
    if (!env)
        env = hk_config_env_system();
    hk_buf_init(&text, HK_YAML_BYTES_MAX);
    if (env->read_file)
        rc = env->read_file(env->arg, path, &text, &err);
    if (rc == HK_OK)
        rc = hk_config_parse(hk_buf_cstr(&text), text.len, path, env, diags, out_config);
    else if (rc != HK_NOMEM)
        hk_diags_add(diags, HK_SEVERITY_ERROR, path, (struct hk_pos){0, 0}, "cannot be read: %s",
                     err.message);
    hk_buf_fini(&text);
    return diags->nomem && rc != HK_OK ? HK_NOMEM : rc;
}

enum hk_code hk_config_defaults(struct hk_config **out_config)
{
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse("", 0, "", NULL, &diags, out_config);
    hk_diags_fini(&diags);
    return rc;
}

struct hk_config *hk_config_share(const struct hk_config *config)
{
    /* Only its count of owners changes. */
    union {
        const struct hk_config *shown;
        struct hk_config *own;
    } both = {.shown = config};

    (void)atomic_fetch_add(&both.own->shared, 1);
    return both.own;
}

void hk_config_free(struct hk_config *config)
{
    unsigned others = config ? atomic_load(&config->shared) : 0;
    while (others > 0 && !atomic_compare_exchange_weak(&config->shared, &others, others - 1))
        ;
    if (!config || others > 0)
        return;
    struct hk_conf_policy *items = config->policy_conf.items;
    for (size_t i = 0; i < config->policy_conf.n; i++)
        hk_policy_free(items[i].built);
    hk_policies_free(config->policies);
    hk_keyring_free(config->keys);
    hk_pool_wipe(&config->arena);
    hk_mem_free(config);
}

/* ---- reading ---- */

const struct hk_conf_destination *hk_config_destination(const struct hk_config *config, size_t i)
{
    const struct hk_conf_destination *items = config->destinations.items;
    return i < config->destinations.n ? &items[i] : NULL;
}

const struct hk_conf_destination *hk_config_destination_named(const struct hk_config *config,
                                                              struct hk_str name)
{
    const struct hk_conf_destination *items = config->destinations.items;
    for (size_t i = 0; i < config->destinations.n; i++)
        if (hk_str_eq(hk_str_of(items[i].name), name))
            return &items[i];
    return NULL;
}

const struct hk_conf_route *hk_config_route(const struct hk_config *config, size_t i)
{
    const struct hk_conf_route *items = config->routes.items;
    return i < config->routes.n ? &items[i] : NULL;
}

const struct hk_conf_validate *hk_config_validate(const struct hk_config *config, size_t i)
{
    const struct hk_conf_validate *items = config->validate.items;
    return i < config->validate.n ? &items[i] : NULL;
}

const struct hk_conf_mask *hk_config_mask(const struct hk_config *config, size_t i)
{
    const struct hk_conf_mask *items = config->masks.items;
    return i < config->masks.n ? &items[i] : NULL;
}

const struct hk_conf_header *hk_conf_header(const struct hk_conf_http *http, size_t i)
{
    const struct hk_conf_header *items = http->headers.items;
    return i < http->headers.n ? &items[i] : NULL;
}

const struct hk_conf_header *hk_conf_telemetry_header(const struct hk_conf_telemetry *telemetry, size_t i)
{
    const struct hk_conf_header *items = telemetry->headers.items;
    return i < telemetry->headers.n ? &items[i] : NULL;
}

const char *hk_conf_kind_name(enum hk_conf_kind kind)
{
    return hk_destination_table.opts[HK_DEST_KINDS_OPT + kind].key;
}

const struct hk_policy *hk_conf_policy(const struct hk_config *config,
                                       const struct hk_conf_destination *destination)
{
    return destination->own_policy ? destination->own_policy
                                   : hk_policies_get(config->policies, destination->policy);
}

const char *hk_conf_queue_id(const struct hk_conf_destination *destination)
{
    const char *last = destination->queue.name ? strrchr(destination->queue.name, '/') : NULL;
    return last ? last + 1 : NULL;
}

bool hk_conf_is_targeted(const struct hk_conf_destination *destination)
{
    return destination->kind == HK_KIND_HTTP && destination->http.url &&
           strcmp(destination->http.url, HK_CONF_URL_MESSAGE) == 0;
}

static const char *show_kafka(const struct hk_conf_kafka *kafka, char room[HK_URL_SHOWN_MAX])
{
    (void)snprintf(room, HK_URL_SHOWN_MAX, "kafka://%.*s/%s", HK_URL_SHOWN_MAX / 2, kafka->brokers,
                   kafka->topic);
    return room;
}

const struct hk_conf_aws *hk_conf_aws(const struct hk_conf_destination *destination)
{
    const struct hk_conf_aws *const sections[HK_NKINDS] = {[HK_KIND_SQS] = &destination->sqs,
                                                           [HK_KIND_SNS] = &destination->sns,
                                                           [HK_KIND_EVENTBRIDGE] = &destination->eventbridge,
                                                           [HK_KIND_KINESIS] = &destination->kinesis};
    return sections[destination->kind];
}

static const char *show_pubsub(const struct hk_conf_pubsub *pubsub, char room[HK_URL_SHOWN_MAX])
{
    (void)snprintf(room, HK_URL_SHOWN_MAX, "pubsub://%s/%s", pubsub->project, pubsub->topic);
    return room;
}

const struct hk_conf_servers *hk_conf_servers(const struct hk_conf_destination *destination)
{
    switch (destination->kind) {
    case HK_KIND_HTTP:
    case HK_KIND_NULL:
    case HK_KIND_KAFKA: /* its brokers are no URL */
    case HK_KIND_SQS:
    case HK_KIND_SNS:
    case HK_KIND_EVENTBRIDGE:
    case HK_KIND_KINESIS:
    case HK_KIND_PUBSUB:
    case HK_NKINDS:
        break;
    case HK_KIND_AMQP:
        return &destination->amqp.servers;
    case HK_KIND_NATS:
        return &destination->nats.servers;
    case HK_KIND_REDIS:
        return &destination->redis.servers;
    case HK_KIND_MQTT:
        return &destination->mqtt.servers;
    }
    return NULL;
}

const char *hk_conf_url(const struct hk_conf_destination *destination, char room[HK_URL_SHOWN_MAX])
{
    const struct hk_conf_servers *servers = hk_conf_servers(destination);
    if (servers)
        return servers->url ? hk_url_show(hk_str_of(servers->url), room) : NULL;
    if (destination->kind == HK_KIND_KAFKA && destination->kafka.brokers && destination->kafka.topic)
        return show_kafka(&destination->kafka, room);
    if (hk_conf_aws(destination))
        return hk_conf_aws(destination)->to; /* it holds no secret */
    if (destination->kind == HK_KIND_PUBSUB && destination->pubsub.project && destination->pubsub.topic)
        return show_pubsub(&destination->pubsub, room);
    if (destination->kind != HK_KIND_HTTP || !destination->http.url)
        return NULL;
    return hk_conf_is_targeted(destination) ? HK_CONF_URL_MESSAGE
                                            : hk_url_show(hk_str_of(destination->http.url), room);
}

bool hk_conf_has_files(const struct hk_conf_destination *destination)
{
    const struct hk_conf_http *h = &destination->http;
    const struct hk_conf_kafka *k = &destination->kafka;
    const struct hk_conf_servers *s = hk_conf_servers(destination);
    switch (destination->kind) {
    case HK_KIND_HTTP:
        return h->ca_file || h->cert_file || h->key_file;
    case HK_KIND_NATS:
        if (destination->nats.creds_file)
            return true;
        return s->ca_file || s->cert_file || s->key_file;
    case HK_KIND_AMQP:
    case HK_KIND_REDIS:
    case HK_KIND_MQTT:
        return s->ca_file || s->cert_file || s->key_file;
    case HK_KIND_KAFKA:
        return k->ca_file || k->cert_file || k->key_file;
    case HK_KIND_SQS:
    case HK_KIND_SNS:
    case HK_KIND_EVENTBRIDGE:
    case HK_KIND_KINESIS:
        return hk_conf_aws(destination)->ca_file || hk_conf_aws(destination)->credentials_file;
    case HK_KIND_PUBSUB:
        return destination->pubsub.ca_file || destination->pubsub.credentials_file;
    case HK_KIND_NULL:
    case HK_NKINDS:
        break;
    }
    return false;
}

bool hk_conf_has_sasl(const struct hk_conf_kafka *kafka)
{
    return HK_GIVEN(kafka, HK_KAFKA_SASL_OPT);
}

const char *hk_conf_target(const struct hk_conf_destination *destination, char room[HK_URL_SHOWN_MAX])
{
    const char *url = hk_conf_url(destination, room);
    return url ? url : hk_conf_kind_name(destination->kind);
}

const struct hk_cidr *hk_conf_allow(const struct hk_conf_destination *destination, size_t i)
{
    const struct hk_conf_list *list = &destination->allow;
    if (i >= list->n && destination->also_allow) {
        i -= list->n;
        list = destination->also_allow;
    }
    const struct hk_cidr *items = list->items;
    return i < list->n ? &items[i] : NULL;
}

const struct hk_cidr *hk_conf_definitions_allow(const struct hk_conf_definitions *definitions, size_t i)
{
    const struct hk_cidr *items = definitions->allow.items;
    return i < definitions->allow.n ? &items[i] : NULL;
}

const char *hk_conf_text(const struct hk_conf_list *list, size_t i)
{
    const char *const *items = list->items;
    return i < list->n ? items[i] : NULL;
}
