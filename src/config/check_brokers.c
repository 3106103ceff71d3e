/* SPDX-License-Identifier: Apache-2.0 */
/* What must hold between the options of a broker, and what its URL says. */
#include "base/parse.h"
#include "base/servers.h"
#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"
#include "payload/names.h"

static bool check_url(struct hk_str s, const struct hk_server_scheme *scheme, char why[HK_WHY_MAX])
{
    struct hk_servers servers;
    const char *wrong = hk_servers_parse(s, scheme, &servers);
    return !wrong || hk_text_refuse(why, wrong);
}

bool hk_text_check_amqp_url(struct hk_str s, char why[HK_WHY_MAX])
{
    return check_url(s, &hk_scheme_amqp, why);
}

bool hk_text_check_nats_url(struct hk_str s, char why[HK_WHY_MAX])
{
    return check_url(s, &hk_scheme_nats, why);
}

bool hk_text_check_mqtt_url(struct hk_str s, char why[HK_WHY_MAX])
{
    return check_url(s, &hk_scheme_mqtt, why);
}

bool hk_text_check_redis_url(struct hk_str s, char why[HK_WHY_MAX])
{
    struct hk_servers servers;
    uint64_t db = 0;
    if (!check_url(s, &hk_scheme_redis, why))
        return false;
    return hk_servers_parse(s, &hk_scheme_redis, &servers) || !servers.path[0] ||
           (hk_parse_u64(hk_str_of(servers.path), &db, NULL) == HK_OK && db <= UINT16_MAX) ||
           hk_text_refuse(why, "must have a number behind the slash: the database");
}

bool hk_text_check_broker_name(struct hk_str s, char why[HK_WHY_MAX])
{
    const char *wrong = hk_name_wrong(s);
    return !wrong || hk_text_refuse(why, wrong);
}

static const struct hk_server_scheme *scheme_of(enum hk_conf_kind kind)
{
    switch (kind) {
    case HK_KIND_HTTP:
    case HK_KIND_NULL:
    case HK_KIND_KAFKA:
    case HK_KIND_SQS:
    case HK_KIND_SNS:
    case HK_KIND_EVENTBRIDGE:
    case HK_KIND_KINESIS:
    case HK_KIND_PUBSUB:
    case HK_NKINDS:
        break;
    case HK_KIND_AMQP:
        return &hk_scheme_amqp;
    case HK_KIND_NATS:
        return &hk_scheme_nats;
    case HK_KIND_REDIS:
        return &hk_scheme_redis;
    case HK_KIND_MQTT:
        return &hk_scheme_mqtt;
    }
    return NULL;
}

bool hk_conf_servers_parse(const struct hk_conf_destination *destination, struct hk_servers *out)
{
    const struct hk_conf_servers *conf = hk_conf_servers(destination);
    return conf && conf->url && !hk_servers_parse(hk_str_of(conf->url), scheme_of(destination->kind), out);
}

static bool is_local(const struct hk_server *server)
{
    struct hk_ip ip;
    const char *special = hk_ip_parse(hk_str_of(server->host), &ip) ? hk_ip_special(&ip) : NULL;
    return hk_str_eqi(hk_str_of(server->host), hk_str_of("localhost")) ||
           (special && hk_str_eq(hk_str_of(special), hk_str_of("loopback")));
}

static bool goes_out(const struct hk_servers *servers)
{
    for (size_t i = 0; i < servers->n; i++)
        if (!is_local(&servers->at[i]))
            return true;
    return false;
}

static void check_servers(struct hk_walk *walk, const struct hk_yaml_node *node,
                          const struct hk_conf_servers *conf, const struct hk_server_scheme *scheme)
{
    struct hk_servers servers;
    const struct hk_yaml_node *password = hk_yaml_get(node, "password");
    bool whole = conf->url && !hk_servers_parse(hk_str_of(conf->url), scheme, &servers);
    hk_check_pair(walk, node, "cert_file", "key_file");
    hk_check_pair(walk, node, "key_file", "cert_file");
    if (whole && password && !servers.tls && goes_out(&servers))
        hk_walk_warn(walk, password->key_at, "the password goes out unencrypted: the URL is %s, not %s",
                     scheme->plain, scheme->tls);
    const struct hk_yaml_node *ca = hk_yaml_get(node, "ca_file"), *cert = hk_yaml_get(node, "cert_file");
    if (whole && !servers.tls && (ca || cert))
        hk_walk_warn(walk, (ca ? ca : cert)->key_at, "\"%s\" has no effect: the URL is %s, not %s",
                     ca ? "ca_file" : "cert_file", scheme->plain, scheme->tls);
}

void hk_check_amqp(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    check_servers(walk, node, &((const struct hk_conf_amqp *)section)->servers, &hk_scheme_amqp);
}

void hk_check_nats(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_nats *nats = section;
    check_servers(walk, node, &nats->servers, &hk_scheme_nats);
    if (hk_walk_failed(walk))
        return;
    if ((nats->token != NULL) + (nats->creds_file != NULL) + (nats->servers.password != NULL) > 1)
        hk_walk_error(walk, hk_walk_at(walk, node, "url"),
                      "give one of \"password\", \"token\" and \"creds_file\": each is a log-in of its own");
}

void hk_check_redis(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    check_servers(walk, node, &((const struct hk_conf_redis *)section)->servers, &hk_scheme_redis);
}

void hk_check_mqtt(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    check_servers(walk, node, &((const struct hk_conf_mqtt *)section)->servers, &hk_scheme_mqtt);
}
