/* SPDX-License-Identifier: Apache-2.0 */
/* Rules between the options of one section: one of two, both or none, one not above the other. */
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "base/str.h"
#include "config/definition.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"
#include "sink/http/fields.h"

/* The URL is all that travels: schema and prefix become parameters of it, as they may stand there by themselves. */
void hk_check_store(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_store *store = section;
    bool named = store->schema[0] || store->prefix[0];
    const char *key = store->schema[0]            ? "schema"
                      : store->prefix[0]          ? "prefix"
                      : store->password_command.n ? "password_command"
                                                  : NULL;
    if (hk_walk_failed(walk) || !key)
        return;
    if (strncmp(store->url, "sqlite:", 7) == 0) {
        hk_walk_error(walk, hk_walk_at(walk, node, key), "\"%s\" is for database servers: %s", key,
                      named ? "a file has its tables for itself" : "a file has no password");
        return;
    }
    if (!named)
        return;
    struct hk_buf url;
    hk_buf_init(&url, 4096);
    hk_buf_addf(&url, "%s%c", store->url, strchr(store->url, '?') ? '&' : '?');
    if (store->schema[0])
        hk_buf_addf(&url, "schema=%s%s", store->schema, store->prefix[0] ? "&" : "");
    if (store->prefix[0])
        hk_buf_addf(&url, "prefix=%s", store->prefix);
    char *whole = hk_buf_status(&url) == HK_OK ? hk_pool_copy_str(walk->arena, hk_buf_str(&url)) : NULL;
    if (whole)
        store->url = whole;
    else
        walk->status = HK_NOMEM;
    hk_buf_fini(&url);
}

void hk_check_relay(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_relay *relay = section;
    if (hk_walk_failed(walk) || relay->max_payload_bytes <= relay->batch_bytes)
        return;
    const char *key = hk_yaml_get(node, "max_payload") ? "max_payload" : "batch_bytes";
    hk_walk_error(walk, hk_walk_at(walk, node, key),
                  "\"max_payload\" must not be above \"batch_bytes\": one message must fit in a batch");
}

/* A typo, or a 0 that was meant as "never", must not delete what nobody has looked at. */
void hk_check_retention(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    static const uint64_t day_ms = UINT64_C(86400000);
    const struct hk_conf_retention *r = section;
    if (hk_walk_failed(walk))
        return;
    if (r->dead_ms < day_ms && !r->purge_open)
        hk_walk_error(
            walk, hk_walk_at(walk, node, "dead"),
            "\"dead\" would delete open dead letters within a day: give it at least 1d, or \"never\"; "
            "\"purge_open: true\" beside it allows less");
    if (r->audit_ms < day_ms)
        hk_walk_error(walk, hk_walk_at(walk, node, "audit"),
                      "\"audit\" must keep rows for at least 1d, or \"never\" delete them");
}

static void check_admin_tls(struct hk_walk *walk, const struct hk_yaml_node *node,
                            const struct hk_conf_admin *admin)
{
    const struct hk_conf_admin_tls *tls = &admin->tls;
    bool terminated = tls->by == HK_CONF_ADMIN_TLS_TERMINATED;
    if (!terminated && !tls->cert != !tls->key)
        hk_walk_error(walk, hk_walk_at(walk, node, "tls"), "\"tls\" needs both \"cert\" and \"key\"");
    else if (tls->client_ca && !tls->cert)
        hk_walk_error(walk, hk_walk_at(walk, node, "tls"),
                      "\"client_ca\" needs \"cert\" and \"key\" beside it");
    if (terminated && admin->trusted_proxies.n == 0)
        hk_walk_error(
            walk, hk_walk_at(walk, node, "tls"),
            "\"tls: terminated\" needs \"trusted_proxies\": the addresses of the proxies that end TLS");
    if (!terminated && admin->trusted_proxies.n > 0)
        hk_walk_error(walk, hk_walk_at(walk, node, "trusted_proxies"),
                      "\"trusted_proxies\" needs \"tls: terminated\" beside it");
}

/* The default port may be taken by another relay of this machine; one that was asked for may not. */
void hk_check_admin(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_admin *admin = section;
    admin->listen_given = hk_yaml_get(node, "listen") != NULL;
    if (hk_walk_failed(walk))
        return;
    check_admin_tls(walk, node, admin);
    bool safe = (admin->tls.cert || admin->tls.by == HK_CONF_ADMIN_TLS_TERMINATED) &&
                admin->auth == HK_CONF_ADMIN_AUTH_TOKENS;
    if (!safe && !hk_text_listen_is_local(hk_str_of(admin->listen)))
        hk_walk_error(
            walk, hk_walk_at(walk, node, "listen"),
            "\"listen\" must be a loopback address, or have \"auth: tokens\" and \"tls\" with cert and key (or "
            "terminated, with trusted_proxies) beside it; \"health_listen\" may be reached from elsewhere "
            "without them");
}

static bool is_secret_name(struct hk_str name)
{
    static const char *const parts[] = {"auth",      "token", "secret",     "pass",    "cookie",
                                        "signature", "key",   "credential", "session", "jwt"};
    for (size_t i = 0; i < HK_COUNT(parts); i++) {
        if (hk_str_containsi(name, hk_str_of(parts[i])))
            return true;
    }
    return false;
}

/* A credential by its name, or by its look: one long word. In doubt it is one. */
static bool looks_secret(struct hk_str name, struct hk_str value)
{
    enum {
        WORD_MAX = 20
    };

    return is_secret_name(name) || (value.len >= WORD_MAX && !memchr(value.ptr, ' ', value.len));
}

/* Does the value stand for a field of the message, or for none at all? */
static bool is_no_text(struct hk_str value)
{
    return value.len == 0 || (value.ptr[0] == '{' && value.ptr[value.len - 1] == '}');
}

void hk_check_header(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    char shown[HK_SHOW_MAX];
    struct hk_conf_header *header = section;
    header->secret = node->secret || looks_secret(node->key, node->text);
    if (walk->is_definition && node->kind == HK_YAML_SCALAR && !node->secret && is_secret_name(node->key) &&
        !is_no_text(node->text))
        hk_walk_error(walk, node->at, "header %s is a secret by its name: " HK_DEFINITION_REFER,
                      hk_show(node->key, shown));
}

/* Headers that the transport writes itself: a second one breaks the request or splits it in two. */
static bool is_reserved(struct hk_str name)
{
    static const char *const names[] = {
        "content-length", "transfer-encoding", "connection", "host", "upgrade", "te", "trailer", "expect"};
    for (size_t i = 0; i < HK_COUNT(names); i++) {
        if (hk_str_eqi(name, hk_str_of(names[i])))
            return true;
    }
    return false;
}

/* A name in braces that stands for no field of a message: it would be sent as it is. */
static bool is_unknown_field(struct hk_str value)
{
    static const char *const known[] = {HK_STANDS_FOR_EVENT_TYPE, HK_STANDS_FOR_CORRELATION_ID,
                                        HK_STANDS_FOR_ATTEMPT, HK_STANDS_FOR_IDEMPOTENCY_KEY,
                                        HK_STANDS_FOR_TRACEPARENT};
    if (value.len < 3 || value.ptr[0] != '{' || value.ptr[value.len - 1] != '}')
        return false;
    if (strspn(value.ptr + 1, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-. ") !=
        value.len - 2)
        return false; /* JSON, say */
    for (size_t i = 0; i < HK_COUNT(known); i++) {
        if (hk_str_eq(value, hk_str_of(known[i])))
            return false;
    }
    return true;
}

static void check_headers(struct hk_walk *walk, const struct hk_yaml_node *node, bool has_auth)
{
    char shown[HK_SHOW_MAX];
    if (!node || node->kind != HK_YAML_MAPPING)
        return;
    for (const struct hk_yaml_node *entry = node->first; entry; entry = entry->next) {
        if (entry->skip)
            continue;
        (void)hk_show(entry->key, shown);
        if (is_reserved(entry->key))
            hk_walk_error(walk, entry->key_at, "header %s is written by the relay itself", shown);
        if (has_auth && hk_str_eqi(entry->key, hk_str_of("authorization")))
            hk_walk_error(walk, entry->key_at, "header %s is given twice: \"auth\" writes it, too", shown);
        if (entry->kind == HK_YAML_SCALAR && !entry->secret && is_unknown_field(entry->text))
            hk_walk_error(walk, entry->at,
                          "header %s: this stands for no field of a message; " HK_STANDS_FOR_EVENT_TYPE
                          ", " HK_STANDS_FOR_CORRELATION_ID ", " HK_STANDS_FOR_ATTEMPT
                          ", " HK_STANDS_FOR_IDEMPOTENCY_KEY " and " HK_STANDS_FOR_TRACEPARENT " do",
                          shown);
        for (const struct hk_yaml_node *other = node->first; other != entry; other = other->next) {
            if (!other->skip && hk_str_eqi(other->key, entry->key) && !hk_str_eq(other->key, entry->key)) {
                hk_walk_error(walk, entry->key_at, "header %s is given twice: case makes no difference",
                              shown);
                break;
            }
        }
    }
}

void hk_check_pair(struct hk_walk *walk, const struct hk_yaml_node *node, const char *key, const char *other)
{
    const struct hk_yaml_node *entry = hk_yaml_get(node, key);
    if (entry && !hk_yaml_get(node, other))
        hk_walk_error(walk, entry->key_at, "\"%s\" needs \"%s\" as well", key, other);
}

/* Whoever reaches a socket is somebody to the process behind it: only the relay's own file may name one. */
static void check_socket(struct hk_walk *walk, const struct hk_yaml_node *node,
                         const struct hk_conf_http *http)
{
    struct hk_pos at = hk_walk_at(walk, node, "socket");
    if (!http->socket)
        return;
    if (walk->is_definition)
        hk_walk_error(walk, at, "a definition cannot name a \"socket\"");
    else if (http->url && strcmp(http->url, HK_CONF_URL_MESSAGE) == 0)
        hk_walk_error(walk, at, "\"socket\" needs a URL of its own, not \"message\"");
}

/* What is written there counts as "on". */
void hk_check_batch(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    (void)walk;
    (void)node;
    ((struct hk_conf_batch *)section)->on = true;
}

/* Whatever makes requests differ from message to message has no place in a request of many. */
static void check_batch_headers(struct hk_walk *walk, const struct hk_yaml_node *headers)
{
    char shown[HK_SHOW_MAX];
    const struct hk_yaml_node *first = headers && headers->kind == HK_YAML_MAPPING ? headers->first : NULL;
    for (const struct hk_yaml_node *entry = first; entry; entry = entry->next)
        if (!entry->skip && entry->kind == HK_YAML_SCALAR && entry->text.len && is_no_text(entry->text) &&
            !is_unknown_field(entry->text))
            hk_walk_error(walk, entry->at,
                          "header %s stands for a field of one message, and \"batch\" sends many: items hold "
                          "these fields (docs/batches.md)",
                          hk_show(entry->key, shown));
}

static void check_batch(struct hk_walk *walk, const struct hk_yaml_node *node,
                        const struct hk_conf_http *http)
{
    const struct hk_conf_batch *batch = &http->batch;
    struct hk_pos at = hk_walk_at(walk, node, "batch");
    if (!batch->on)
        return;
    if (http->url && strcmp(http->url, HK_CONF_URL_MESSAGE) == 0)
        hk_walk_error(walk, at, "\"batch\" needs a URL of its own, not \"message\"");
    else if (http->url &&
             (strstr(http->url, HK_CONF_URL_EVENT_TYPE) || strstr(http->url, HK_CONF_URL_MESSAGE_KEY)))
        hk_walk_error(walk, at,
                      "\"batch\" needs one URL for all messages, without " HK_CONF_URL_EVENT_TYPE
                      " and " HK_CONF_URL_MESSAGE_KEY);
    if (http->cloudevents == HK_CLOUDEVENTS_BINARY)
        hk_walk_error(walk, hk_walk_at(walk, node, "cloudevents"),
                      "a batch holds whole events: give \"cloudevents: structured\" with \"batch\"");
    if (http->cloudevents != HK_CLOUDEVENTS_NONE && batch->format == HK_CONF_BATCH_NDJSON)
        hk_walk_error(walk, at,
                      "a batch of CloudEvents is an array: \"format: ndjson\" goes without \"cloudevents\"");
    check_batch_headers(walk, hk_yaml_get(node, "headers"));
}

/* Our own HTTP/2 goes to one host, which it connects to itself. */
static void check_version(struct hk_walk *walk, const struct hk_yaml_node *node,
                          const struct hk_conf_http *http)
{
    if (http->version != 2)
        return;
    if (http->socket)
        hk_walk_error(walk, hk_walk_at(walk, node, "version"),
                      "\"version: 2\" cannot be used with \"socket\"");
    if (http->batch.on)
        hk_walk_error(walk, hk_walk_at(walk, node, "version"),
                      "\"version: 2\" cannot be used with \"batch\"");
    if (http->url && (strcmp(http->url, "message") == 0 || strchr(http->url, '{')))
        hk_walk_error(walk, hk_walk_at(walk, node, "version"),
                      "\"version: 2\" needs a URL that is the same for all messages");
}

void hk_check_http(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_http *http = section;
    const struct hk_yaml_node *headers = hk_yaml_get(node, "headers");
    const struct hk_yaml_node *auth = hk_yaml_get(node, "auth");
    if (HK_GIVEN(http, HK_HTTP_HEADERS_OPT)) /* not when there were too many */
        check_headers(walk, headers, auth != NULL);
    hk_check_pair(walk, node, "cert_file", "key_file");
    hk_check_pair(walk, node, "key_file", "cert_file");
    if (auth && http->url && HK_GIVEN(http, HK_HTTP_URL_OPT) &&
        hk_str_eqi((struct hk_str){http->url, 5}, hk_str_of("http:")) && !hk_text_url_is_local(http->url))
        hk_walk_warn(walk, auth->key_at, "credentials go out unencrypted: the URL is http, not https");
    check_socket(walk, node, http);
    check_batch(walk, node, http);
    check_version(walk, node, http);
    if (http->pins.n && http->url &&
        !hk_str_eqi((struct hk_str){http->url, strlen(http->url) < 6 ? 0 : 6}, hk_str_of("https:")))
        hk_walk_error(walk, hk_walk_at(walk, node, "pin"), "\"pin\" needs an https:// URL");
    const char *token_url = HK_GIVEN(&http->auth, HK_AUTH_OAUTH_OPT) ? http->auth.oauth.token_url : NULL;
    if (token_url && hk_str_eqi((struct hk_str){token_url, 5}, hk_str_of("http:")) &&
        !hk_text_url_is_local(token_url))
        hk_walk_warn(walk, auth->key_at,
                     "the client secret goes out unencrypted: token_url is http, not https");
}

void hk_check_limits(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_limits *limits = section;
    const struct hk_yaml_node *burst = hk_yaml_get(node, "burst");
    if (burst && !hk_yaml_get(node, "rate"))
        hk_walk_error(walk, burst->key_at,
                      "\"burst\" needs \"rate\": without one there is nothing to save up");
    if (HK_GIVEN(limits, HK_LIMITS_RATE_OPT) && !burst)
        limits->burst = (uint32_t)ceil(limits->rate_per_s);
    if (limits->shared && !HK_GIVEN(limits, HK_LIMITS_CONCURRENCY_OPT))
        hk_walk_error(walk, hk_yaml_get(node, "shared")->key_at,
                      "\"shared\" needs \"concurrency\": how many requests do all relays share?");
}

static bool is_allowed(const struct hk_conf_destination *destination, const struct hk_ip *ip)
{
    const struct hk_cidr *range = NULL;
    for (size_t i = 0; (range = hk_conf_allow(destination, i)) != NULL; i++) {
        if (hk_cidr_has(range, ip))
            return true;
    }
    return false;
}

static void check_ip(struct hk_walk *walk, const struct hk_yaml_node *url,
                     const struct hk_conf_destination *destination, const struct hk_ip *ip)
{
    const char *special = hk_ip_special(ip);
    bool blocked = special && !is_allowed(destination, ip);
    if (walk->env->without_secrets && !walk->is_definition) /* then nothing is sent */
        return;
    if (blocked && walk->is_definition)
        hk_walk_error(
            walk, url->at,
            "requests to this %s address are blocked: list it in \"allow\" of the destination, within "
            "what \"definitions.allow\" of the relay's configuration holds",
            special);
    else if (blocked)
        hk_walk_warn(
            walk, url->at,
            "requests to this %s address are blocked: list it in \"allow\" of the destination, for example allow: [127.0.0.0/8]",
            special);
}

/* Only what its text tells: names are resolved when something is sent. */
static void check_address(struct hk_walk *walk, const struct hk_yaml_node *node,
                          const struct hk_conf_destination *destination)
{
    struct hk_ip ip;
    const struct hk_yaml_node *url = hk_yaml_get(hk_yaml_get(node, "http"), "url");
    if (url && destination->http.url && HK_GIVEN(&destination->http, HK_HTTP_URL_OPT) &&
        hk_text_url_ip(destination->http.url, &ip))
        check_ip(walk, url, destination, &ip);
}

static void check_host(struct hk_walk *walk, const struct hk_yaml_node *url,
                       const struct hk_conf_destination *destination, const char *host)
{
    struct hk_ip ip;
    bool local = hk_str_eqi(hk_str_of(host), hk_str_of("localhost"));
    if (hk_ip_parse(local ? hk_str_of("127.0.0.1") : hk_str_of(host), &ip))
        check_ip(walk, url, destination, &ip);
}

/* The same for the servers of a broker. */
static void check_server_addresses(struct hk_walk *walk, const struct hk_yaml_node *node,
                                   const struct hk_conf_destination *destination)
{
    struct hk_servers servers;
    const struct hk_yaml_node *url =
        hk_yaml_get(hk_yaml_get(node, hk_conf_kind_name(destination->kind)), "url");
    if (!url || !hk_conf_servers_parse(destination, &servers))
        return;
    for (size_t i = 0; i < servers.n; i++)
        check_host(walk, url, destination, servers.at[i].host);
}

static void check_kafka_addresses(struct hk_walk *walk, const struct hk_yaml_node *node,
                                  const struct hk_conf_destination *destination)
{
    struct hk_ip ip;
    const struct hk_yaml_node *brokers = hk_yaml_get(hk_yaml_get(node, "kafka"), "brokers");
    struct hk_str rest = hk_str_of(destination->kafka.brokers);
    while (brokers && HK_GIVEN(&destination->kafka, HK_KAFKA_BROKERS_OPT) && rest.ptr)
        if (hk_text_authority_ip(hk_str_trim(hk_str_cut(&rest, ',')), &ip))
            check_ip(walk, brokers, destination, &ip);
}

static enum hk_conf_kind given_kind(const struct hk_conf_destination *destination)
{
    unsigned kind = HK_NKINDS - 1;
    while (kind > 0 && !HK_GIVEN(destination, HK_DEST_KINDS_OPT + kind))
        kind--;
    return (enum hk_conf_kind)kind;
}

/* Places for four batches: one that is being read, one that is under way, and two that are being filled. */
static void check_batch_limits(struct hk_walk *walk, const struct hk_yaml_node *node,
                               struct hk_conf_destination *destination)
{
    const struct hk_conf_batch *batch = &destination->http.batch;
    uint32_t *concurrency = &destination->limits.concurrency;
    if (destination->kind != HK_KIND_HTTP || !batch->on)
        return;
    if (!*concurrency)
        *concurrency = 4 * batch->messages;
    else if (*concurrency < batch->messages)
        hk_walk_warn(walk, hk_walk_at(walk, node, "limits"),
                     "no batch is ever full: \"concurrency\" %u is below the %u messages of a batch",
                     *concurrency, batch->messages);
}

void hk_check_destination(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_destination *destination = section;
    const struct hk_yaml_node *on_dead = hk_yaml_get(node, "on_dead");
    const struct hk_yaml_node *allow = hk_yaml_get(node, "allow");
    destination->kind = given_kind(destination);
    if (allow && destination->kind == HK_KIND_NULL)
        hk_walk_warn(walk, allow->key_at, "\"allow\" has no effect with \"null\": it sends nothing");
    if (HK_GIVEN(destination, HK_DEST_PROXY_OPT) && destination->kind != HK_KIND_HTTP)
        hk_walk_warn(walk, hk_walk_at(walk, node, "proxy"), "\"proxy\" has no effect without \"http\"");
    check_batch_limits(walk, node, destination);
    check_address(walk, node, destination);
    check_server_addresses(walk, node, destination);
    check_kafka_addresses(walk, node, destination);
    if (HK_GIVEN(destination, HK_DEST_QUEUE_OPT) && !hk_conf_is_targeted(destination))
        hk_walk_error(walk, hk_yaml_get(node, "queue")->key_at, "\"queue\" needs http: { url: message }");
    if (on_dead && HK_GIVEN(destination, HK_DEST_ON_DEAD_OPT) && destination->order != HK_ORDER_KEY)
        hk_walk_warn(walk, on_dead->key_at, "\"on_dead\" has no effect without order: key");
    hk_walk_later(walk, HK_REF_BREAKER, node, NULL, section);
}

/* What is written there counts as "on", be it empty. */
void hk_check_queues(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    (void)walk;
    (void)node;
    ((struct hk_conf_queues *)section)->on = true;
}

void hk_check_validate(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    struct hk_conf_validate *rule = section;
    if (!HK_GIVEN(rule, HK_VALIDATE_JSON_OPT))
        rule->json = rule->required.n > 0;
    else if (!rule->json && rule->required.n > 0)
        hk_walk_error(walk, hk_walk_at(walk, node, "json"),
                      "\"required\" looks into JSON: json cannot be false");
    if (!hk_yaml_get(node, "required") && !hk_yaml_get(node, "json") && !hk_yaml_get(node, "max_size"))
        hk_walk_error(walk, hk_walk_at(walk, NULL, ""),
                      "the rule checks nothing: give \"required\", \"json\" or \"max_size\"");
}

void hk_check_mask(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    (void)node;
    const struct hk_conf_mask *mask = section;
    if (!hk_walk_failed(walk) && !mask->paths.n && !mask->headers.n)
        hk_walk_error(walk, hk_walk_at(walk, NULL, ""),
                      "the mask hides nothing: give \"paths\" or \"headers\"");
}

/* Two keys of one id, and sealing without any. */
void hk_check_seal(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_seal *seal = section;
    const struct hk_conf_seal_key *keys = seal->keys.items;
    if (hk_walk_failed(walk))
        return;
    if (seal->mode != HK_SEAL_OFF && !seal->keys.n)
        hk_walk_error(walk, hk_walk_at(walk, node, "mode"), "there is nothing to seal with: give \"keys\"");
    for (size_t i = 0; i < seal->keys.n; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(keys[i].id, keys[k].id) == 0)
                hk_walk_error(walk, hk_walk_at(walk, node, "keys"), "two keys have the id %s", keys[i].id);
}

/* A destination that a route names twice would get each message twice: a message is known by its id and its destination. */
void hk_check_route(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_yaml_node *list = hk_yaml_get(node, "destination");
    char shown[HK_SHOW_MAX];
    (void)section;
    if (hk_walk_failed(walk) || !list || list->kind != HK_YAML_SEQUENCE)
        return;
    for (const struct hk_yaml_node *item = list->first; item; item = item->next)
        for (const struct hk_yaml_node *other = list->first; other != item; other = other->next)
            if (hk_str_eq(other->text, item->text)) {
                hk_walk_error(walk, item->at, "destination %s is named twice",
                              hk_diag_show(item->text, item->secret, shown));
                return;
            }
}

/* A route behind one that takes everything is never asked. */
void hk_check_root(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_config *config = section;
    const struct hk_yaml_node *routes = hk_yaml_get(node, "routes");
    if (config->alerts.rules.n && !hk_yaml_get(node, "channels"))
        hk_walk_warn(walk, hk_walk_at(walk, node, "alerts"),
                     "no channel sends these alerts: there are no \"channels\"");
    if (!routes || routes->kind != HK_YAML_SEQUENCE)
        return;
    bool all = false;
    for (const struct hk_yaml_node *route = routes->first; route; route = route->next) {
        if (all)
            hk_walk_warn(walk, route->at,
                         "this route is never reached: one before it takes every event type");
        const struct hk_yaml_node *pattern = hk_yaml_get(route, "event_type");
        all = all || (pattern && pattern->kind == HK_YAML_SCALAR && hk_str_eq(pattern->text, hk_str_of("*")));
    }
}
