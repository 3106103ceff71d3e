/* SPDX-License-Identifier: Apache-2.0 */
/* The whole configuration, checked, with every default filled in. Read-only once loaded. */
#ifndef HK_CONFIG_CONFIG_H
#define HK_CONFIG_CONFIG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/breaker.h>
#include <hikyaku/error.h>
#include <hikyaku/policies.h>

#include "base/buf.h"
#include "base/cidr.h"
#include "base/pool.h"
#include "base/proxy.h"
#include "base/servers.h"
#include "base/url.h"
#include "config/diag.h"
#include "config/env.h"
#include "core/alert.h"
#include "payload/keyring.h"

#define HK_CONFIG_NEVER UINT64_MAX /* a retention that does not end, a count that is not bounded */

/* Each struct begins with `given`, which only the walker and the checks read (config/schema.h). */

struct hk_conf_list {
    void *items; /* use the typed functions below */
    size_t n;
};

struct hk_conf_store {
    uint32_t given;
    const char *url, *schema, *prefix;    /* schema and prefix: "" when not given */
    struct hk_conf_list password_command; /* of const char *; empty: not given */
};

enum hk_conf_history {
    HK_HISTORY_FAILURES = 0,
    HK_HISTORY_ALL,
    HK_HISTORY_NONE
};

struct hk_conf_relay {
    uint32_t given;
    const char *name; /* "": the host's name and the process's id */
    uint32_t batch;
    uint64_t batch_bytes;
    uint64_t max_payload_bytes;
    uint32_t concurrency, max_attempts_ceiling;
    uint64_t timeout_ceiling_ms;
    uint64_t lease_ms;
    enum hk_conf_history history;
};

struct hk_conf_retention { /* each may be HK_CONFIG_NEVER */
    uint32_t given;
    bool purge_open; /* dead_ms may be less than a day */
    uint64_t sent_ms, sent_rows, discarded_ms, resolved_ms, cancelled_ms, attempts_ms, dead_ms, audit_ms,
        alerts_ms;
};

enum hk_conf_admin_auth {
    HK_CONF_ADMIN_AUTH_AUTO = 0, /* tokens, but for this machine */
    HK_CONF_ADMIN_AUTH_TOKENS
};

enum hk_conf_admin_tls_by {
    HK_CONF_ADMIN_TLS_OWN = 0,   /* by certificate and key, when they are given */
    HK_CONF_ADMIN_TLS_TERMINATED /* by a proxy */
};

struct hk_conf_admin_tls {
    uint32_t given;
    enum hk_conf_admin_tls_by by;
    const char *cert, *key, *client_ca; /* paths; NULL: not given */
};

struct hk_conf_admin {
    uint32_t given;
    const char *listen; /* an address and a port: 127.0.0.1:8189, [::1]:8189; "none" */
    bool listen_given;
    const char *health_listen; /* any address and a port; "none" */
    const char *unix_path;     /* a socket in the file system; NULL: none */
    enum hk_conf_admin_auth auth;
    struct hk_conf_admin_tls tls;
    struct hk_conf_list trusted_proxies; /* of struct hk_cidr */
    struct hk_conf_list hosts, cors;     /* of const char * */
    uint32_t workers;
};

enum hk_conf_log_format {
    HK_CONF_LOGFMT = 0,
    HK_CONF_LOG_JSON
};

enum hk_conf_log_level { /* in the order of observe/log.h */
    HK_CONF_LOG_ERROR = 0,
    HK_CONF_LOG_WARN,
    HK_CONF_LOG_INFO,
    HK_CONF_LOG_DEBUG
};

struct hk_conf_log {
    uint32_t given;
    enum hk_conf_log_format format;
    enum hk_conf_log_level level;
};

enum hk_conf_otlp {
    HK_CONF_OTLP_PROTOBUF = 0,
    HK_CONF_OTLP_JSON
};

enum hk_conf_compression {
    HK_CONF_COMPRESS_NONE = 0,
    HK_CONF_COMPRESS_GZIP
};

struct hk_conf_telemetry {
    uint32_t given;
    const char *endpoint; /* "": off */
    enum hk_conf_otlp protocol;
    enum hk_conf_compression compression;
    struct hk_conf_list headers; /* of struct hk_conf_header */
    const char *proxy;           /* its name; NULL: the default one */
    double sample;               /* 0 to 1, of the traces that begin here */
    bool traces, metrics;        /* what is sent */
    uint64_t metrics_interval_ms;
};

struct hk_conf_header {
    uint32_t given;
    const char *name, *value;
    bool secret; /* came from ${…}, or looks like a credential: masked wherever requests are shown */
};

struct hk_conf_sign {
    uint32_t given;
    const char *secret;          /* NULL when `secrets` is given */
    struct hk_conf_list secrets; /* of const char *; the first signs, all verify */
};

struct hk_conf_basic {
    uint32_t given;
    const char *user, *password;
};

enum hk_conf_oauth_style {
    HK_CONF_OAUTH_BASIC = 0, /* the Authorization header */
    HK_CONF_OAUTH_BODY
};

/* Client credentials of RFC 6749. */
struct hk_conf_oauth {
    uint32_t given;
    const char *token_url; /* NULL: not used */
    const char *client_id, *client_secret;
    const char *scope, *audience; /* NULL: not given */
    enum hk_conf_oauth_style style;
};

struct hk_conf_auth {
    uint32_t given;
    struct hk_conf_basic basic; /* user NULL: not used */
    const char *bearer;         /* NULL: not used */
    struct hk_conf_oauth oauth;
};

#define HK_CONF_NO_PROXY "none" /* in place of a proxy's name */

enum hk_conf_dns {
    HK_CONF_DNS_RELAY = 0,
    HK_CONF_DNS_PROXY
};

struct hk_conf_proxy {
    uint32_t given;
    struct hk_proxy proxy;
    enum hk_conf_dns dns;
    struct hk_conf_list direct; /* of const char * */
};

enum hk_conf_method {
    HK_METHOD_POST = 0,
    HK_METHOD_PUT,
    HK_METHOD_PATCH
};

enum hk_conf_cloudevents {
    HK_CLOUDEVENTS_NONE = 0,
    HK_CLOUDEVENTS_BINARY,
    HK_CLOUDEVENTS_STRUCTURED
};

/* What may stand for a field of the message, behind the host of a destination's URL. */
#define HK_CONF_URL_EVENT_TYPE  "{event_type}"
#define HK_CONF_URL_MESSAGE_KEY "{message_key}"
#define HK_CONF_URL_DESTINATION "{destination}"

#define HK_CONF_URL_MESSAGE "message" /* `url`: each message names its own (payload/target.h) */

enum hk_conf_batch_format {
    HK_CONF_BATCH_JSON = 0,
    HK_CONF_BATCH_NDJSON
};

#define HK_CONF_BATCH_MAX 1000

struct hk_conf_batch {
    uint32_t given;
    uint32_t messages;
    uint64_t bytes, wait_ms;
    enum hk_conf_batch_format format;
    bool on; /* it stands in the file */
};

struct hk_conf_http {
    uint32_t given;
    const char *url;
    enum hk_conf_method method;
    struct hk_conf_list headers; /* of struct hk_conf_header */
    struct hk_conf_sign sign;
    struct hk_conf_auth auth;
    const char *ca_file, *cert_file, *key_file; /* NULL: not given */
    enum hk_conf_cloudevents cloudevents;
    struct hk_conf_list pins; /* of const char *: sha256//… */
    const char *socket;       /* a socket in the file system that stands for host and port; NULL: none */
    enum hk_conf_compression compression;
    struct hk_conf_batch batch;
};

/* Confirms everything and sends nothing: for benches and dry runs. */
struct hk_conf_null {
    uint32_t given;
    uint64_t latency_ms;
};

/* What every kind of broker has. */
struct hk_conf_servers {
    const char *url, *password;                 /* password NULL: none */
    const char *ca_file, *cert_file, *key_file; /* NULL: not given */
    enum hk_conf_cloudevents cloudevents;
};

/* RabbitMQ. */
struct hk_conf_amqp {
    uint32_t given;
    struct hk_conf_servers servers;
    const char *exchange, *routing_key; /* payload/names.h */
    bool mandatory, persistent;
    uint64_t heartbeat_ms;
};

enum hk_conf_nats_id {
    HK_NATS_ID_MESSAGE = 0,
    HK_NATS_ID_DESTINATION
};

/* NATS JetStream. */
struct hk_conf_nats {
    uint32_t given;
    struct hk_conf_servers servers;
    const char *subject;    /* payload/names.h */
    const char *token;      /* NULL: none */
    const char *creds_file; /* NULL: none */
    const char *inbox;
    enum hk_conf_nats_id msg_id;
    uint64_t heartbeat_ms;
};

/* Redis and Valkey Streams. */
struct hk_conf_redis {
    uint32_t given;
    struct hk_conf_servers servers;
    const char *stream; /* payload/names.h */
    bool create;
    uint64_t max_len;  /* 0: not trimmed */
    uint64_t dedup_ms; /* 0: off */
    uint64_t heartbeat_ms;
};

/* MQTT 5. */
struct hk_conf_mqtt {
    uint32_t given;
    struct hk_conf_servers servers;
    const char *topic;     /* payload/names.h */
    const char *client_id; /* NULL: one of our own making */
    uint32_t qos;          /* 1 or 2 */
    bool retain, require_subscriber;
    uint64_t heartbeat_ms;
};

enum hk_conf_mechanism {
    HK_MECHANISM_PLAIN = 0,
    HK_MECHANISM_SCRAM_256,
    HK_MECHANISM_SCRAM_512,
    HK_MECHANISM_OAUTHBEARER,
    HK_NMECHANISMS
};

struct hk_conf_sasl {
    uint32_t given;
    enum hk_conf_mechanism mechanism;
    const char *user, *password;    /* NULL: not given */
    const char *token, *token_file; /* of OAUTHBEARER; NULL: not given */
    struct hk_conf_oauth oauth;     /* token_url NULL: not used */
};

enum hk_conf_partitioner {
    HK_PARTITIONER_JAVA = 0,
    HK_PARTITIONER_LIBRDKAFKA,
    HK_NPARTITIONERS
};

enum hk_conf_codec {
    HK_CODEC_NONE = 0,
    HK_CODEC_GZIP,
    HK_CODEC_SNAPPY,
    HK_CODEC_LZ4,
    HK_CODEC_ZSTD,
    HK_NCODECS
};

struct hk_conf_kafka {
    uint32_t given;
    const char *brokers, *topic;
    bool tls;
    const char *ca_file, *cert_file, *key_file; /* NULL: not given */
    struct hk_conf_sasl sasl;
    enum hk_conf_partitioner partitioner;
    enum hk_conf_codec compression;
    uint64_t linger_ms;
    enum hk_conf_cloudevents cloudevents;
    uint32_t window;
    uint64_t window_bytes;
};

enum hk_conf_aws_body { /* what goes out of a message */
    HK_AWS_TAKES_PAYLOAD = 0,
    HK_AWS_TAKES_EVENT,   /* a structured CloudEvent */
    HK_AWS_TAKES_ENVELOPE /* its columns and its payload as JSON */
};

/* Amazon SQS, SNS, EventBridge and Kinesis. NULL: not given. */
struct hk_conf_aws {
    uint32_t given;
    const char *to; /* the queue's URL, the topic's ARN, the bus or the stream */
    const char *region;
    const char *endpoint; /* NULL: that of the queue's URL, or of the region */
    const char *access_key_id, *secret_access_key, *session_token;
    const char *credentials_file, *profile;
    const char *ca_file;
    const char *source; /* of EventBridge's events */
    enum hk_conf_aws_body body;
};

/* Google Cloud Pub/Sub. NULL: not given. */
struct hk_conf_pubsub {
    uint32_t given;
    const char *project, *topic;
    const char *endpoint; /* NULL: Google's */
    const char *emulator; /* in its place, without credentials */
    const char *credentials, *credentials_file, *metadata_server;
    const char *ca_file;
    enum hk_conf_cloudevents cloudevents; /* NONE or BINARY */
};

enum hk_conf_kind { /* in the order of a destination's options (tables.h) */
    HK_KIND_HTTP = 0,
    HK_KIND_NULL,
    HK_KIND_AMQP,
    HK_KIND_NATS,
    HK_KIND_REDIS,
    HK_KIND_MQTT,
    HK_KIND_KAFKA,
    HK_KIND_SQS,
    HK_KIND_SNS,
    HK_KIND_EVENTBRIDGE,
    HK_KIND_KINESIS,
    HK_KIND_PUBSUB,
    HK_NKINDS
};

struct hk_conf_limits {
    uint32_t given;
    double rate_per_s;    /* 0: no limit */
    uint32_t burst;       /* at least 1 with a rate */
    uint32_t concurrency; /* 0: 64, or the relay's if that is less */
    bool shared;          /* of all relays of the database together */
};

/* As written; only what is given counts. The result is struct hk_breaker_options. */
struct hk_conf_breaker {
    uint32_t given;
    unsigned off;
    struct hk_breaker_options options;
};

enum hk_conf_order {
    HK_ORDER_NONE = 0,
    HK_ORDER_KEY
};

enum hk_conf_on_dead {
    HK_ON_DEAD_BLOCK = 0,
    HK_ON_DEAD_SKIP
};

/* The destination is a queue of Cloud Tasks (docs/cloud-tasks.md). What is not given is as its policy says. */
struct hk_conf_queue {
    uint32_t given;
    const char *name;      /* projects/P/locations/L/queues/Q; NULL: it is none */
    uint64_t max_attempts; /* 0: no limit */
    uint64_t max_retry_ms; /* 0: no limit */
    uint64_t min_backoff_ms, max_backoff_ms;
    uint32_t max_doublings;
};

enum hk_conf_queue_tokens {
    HK_QUEUE_TOKENS_REFUSE = 0,
    HK_QUEUE_TOKENS_IGNORE
};

/* The defaults of a queue that does not say it itself. */
struct hk_conf_queue_limits {
    uint32_t given;
    double rate_per_s;
    uint32_t burst; /* 0: a fifth of the queue's rate, 10 to 100 */
    uint32_t concurrency;
};

/* For queues that clients of Cloud Tasks make. */
struct hk_conf_queues {
    uint32_t given;
    bool on;                   /* the section is there */
    struct hk_conf_list allow; /* of struct hk_cidr */
    const char *policy;
    struct hk_conf_queue_limits limits;
    enum hk_conf_queue_tokens tokens;
    uint32_t max;
};

struct hk_conf_destination {
    uint32_t given;
    const char *name;
    enum hk_conf_kind kind; /* which of the next ones counts */
    struct hk_conf_http http;
    struct hk_conf_null null;
    struct hk_conf_amqp amqp;
    struct hk_conf_nats nats;
    struct hk_conf_redis redis;
    struct hk_conf_mqtt mqtt;
    struct hk_conf_kafka kafka;
    struct hk_conf_aws sqs, sns, eventbridge, kinesis;
    struct hk_conf_pubsub pubsub;
    struct hk_conf_queue queue;
    const char *policy;                    /* the default one's name when none was given */
    const struct hk_policy *own_policy;    /* that policy as the queue changes it; NULL: it is no queue */
    const struct hk_conf_list *also_allow; /* of a queue: `allow` of the section queues; NULL: it is none */
    struct hk_conf_limits limits;
    struct hk_conf_breaker breaker_conf;
    bool has_breaker;                  /* false: off */
    struct hk_breaker_options breaker; /* the policy's, changed by what was given here */
    enum hk_conf_order order;
    enum hk_conf_on_dead on_dead;
    bool auto_redrive;            /* what died while it was down goes out again once its breaker has closed */
    struct hk_conf_list allow;    /* of struct hk_cidr */
    const char *proxy_name;       /* as written; NULL: the default one */
    const struct hk_proxy *proxy; /* NULL: none */
};

/* What destinations that are kept in the store may do (config/definition.h). */
struct hk_conf_definitions {
    uint32_t given;
    struct hk_conf_list allow; /* of struct hk_cidr; a definition's own ranges lie within these */
    const char *secrets;       /* the folder that they may name files of; NULL: none */
    uint32_t max;              /* so many are used */
};

struct hk_conf_route {
    uint32_t given;
    const char *event_type;           /* * stands for any text */
    struct hk_conf_list destinations; /* of const char * */
};

struct hk_conf_validate {
    uint32_t given;
    const char *event_type;
    struct hk_conf_list required; /* of const char *: path or path:type (payload/validate.h) */
    bool json;                    /* the payload must be JSON */
    uint64_t max_size_bytes;      /* 0: only the relay's max_payload */
};

struct hk_conf_mask {
    uint32_t given;
    const char *event_type;
    struct hk_conf_list paths;   /* of const char * (payload/path.h) */
    struct hk_conf_list headers; /* of const char *: names */
};

/* ---- sealed payloads ---- */

struct hk_conf_seal_key {
    uint32_t given;
    const char *id;
    const char *file, *env, *credential; /* one of these; NULL: not given */
    struct hk_conf_list command;         /* of const char *; empty: not given */
};

enum hk_conf_seal_mode {
    HK_SEAL_OFF = 0,
    HK_SEAL_REST, /* the relay seals what it writes */
    HK_SEAL_END   /* whoever writes into the outbox seals */
};

struct hk_conf_seal {
    uint32_t given;
    enum hk_conf_seal_mode mode;
    const char *store;
    struct hk_conf_list keys; /* of struct hk_conf_seal_key; the newest first */
};

/* ---- channels and alerts ---- */

struct hk_conf_slack {
    uint32_t given;
    const char *url;
};

struct hk_conf_email {
    uint32_t given;
    const char *url;             /* smtp://… or smtps://… */
    const char *user, *password; /* NULL: not used */
    const char *from;
    struct hk_conf_list to; /* of const char * */
    bool starttls;
    const char *ca_file; /* NULL: the system's */
};

struct hk_conf_hook {
    uint32_t given;
    const char *url;
    const char *secret;  /* NULL: not signed */
    const char *ca_file; /* NULL: the system's */
};

struct hk_conf_pagerduty {
    uint32_t given;
    const char *routing_key;
    const char *url;
};

struct hk_conf_exec {
    uint32_t given;
    struct hk_conf_list command; /* of const char * */
};

/* In the order of alert/notice.h. */
enum hk_conf_channel_kind {
    HK_CONF_SLACK = 0,
    HK_CONF_EMAIL,
    HK_CONF_WEBHOOK,
    HK_CONF_PAGERDUTY,
    HK_CONF_EXEC
};

struct hk_conf_channel {
    uint32_t given;
    const char *name;
    enum hk_conf_channel_kind kind; /* which of the next ones counts */
    struct hk_conf_slack slack;
    struct hk_conf_email email;
    struct hk_conf_hook webhook;
    struct hk_conf_pagerduty pagerduty;
    struct hk_conf_exec exec;
    enum hk_alert_language language; /* HK_CHANNEL_LANGUAGE_OPT not given: that of `alerts` */
    enum hk_severity_level severity; /* and above */
    uint64_t timeout_ms;
    struct hk_conf_list allow; /* of struct hk_cidr */
    const char *proxy;         /* its name; NULL: the default one */
};

struct hk_conf_quiet {
    uint32_t given;
    const char *from, *to, *zone; /* "22:00", "+09:00" */
    unsigned let_through;         /* enum hk_severity_level and above */
    struct hk_quiet_hours hours;  /* what they mean */
};

struct hk_conf_alert_rule {
    uint32_t given;
    const char *name;
    enum hk_alert_kind when;
    const char *destination, *event_type, *reason; /* NULL: any */
    uint64_t above, age_ms, for_ms;
    enum hk_severity_level severity;
    struct hk_conf_list channels; /* of const char *; empty: all */
    struct hk_conf_list fields;   /* of const char *: paths; empty: none */
};

struct hk_conf_alerts {
    uint32_t given;
    uint64_t interval_ms, update_ms, resolve_after_ms;
    uint64_t separate;
    enum hk_alert_language language;
    const char *link; /* NULL: none */
    struct hk_conf_quiet quiet;
    struct hk_conf_list rules; /* of struct hk_conf_alert_rule; use hk_config_alert_rule */
};

struct hk_config {
    uint32_t given;
    struct hk_conf_store store;
    struct hk_conf_relay relay;
    struct hk_conf_retention retention;
    const char *default_policy;
    bool default_given; /* by the file */
    struct hk_conf_admin admin;
    struct hk_conf_log log;
    struct hk_conf_telemetry telemetry;
    struct hk_conf_list policy_conf; /* as written; `policies` is what came of it */
    struct hk_conf_list destinations;
    struct hk_conf_list proxies; /* of struct hk_conf_proxy */
    const char *default_proxy;   /* a name; NULL: none */
    struct hk_conf_queues queues;
    struct hk_conf_definitions definitions;
    struct hk_conf_list routes;
    struct hk_conf_list validate;
    struct hk_conf_list masks;
    struct hk_conf_seal seal;
    struct hk_keyring *keys;      /* of `seal`; NULL: there are none */
    void *key_sources;            /* keys.c knows */
    struct hk_conf_list channels; /* of struct hk_conf_channel */
    struct hk_conf_alerts alerts;
    struct hk_policies *policies; /* presets, then the file's, with the default set */
    struct hk_pool arena;         /* owns all strings and lists */
    atomic_uint shared;           /* how often it was shared, and not freed since */
};

/* `env` NULL: the real environment and files. What is wrong goes to `diags` (already initialised; warnings come with
 * HK_OK, too). All or nothing: `*out_config` changes only on HK_OK. Otherwise HK_INVALID, HK_NOMEM, or, when the file
 * cannot be read, HK_NOTFOUND, HK_TOOBIG or HK_IO. */
enum hk_code hk_config_load(const char *path, const struct hk_config_env *env, struct hk_diags *diags,
                            struct hk_config **out_config) HK_MUSTCHECK;
enum hk_code hk_config_parse(const char *text, size_t len, const char *file, const struct hk_config_env *env,
                             struct hk_diags *diags, struct hk_config **out_config) HK_MUSTCHECK;
/* As an empty file. */
enum hk_code hk_config_defaults(struct hk_config **out_config) HK_MUSTCHECK;
/* One more owner, who frees it, too: a reload takes no configuration away from a thread that uses it. From any thread. */
struct hk_config *hk_config_share(const struct hk_config *config);
void hk_config_free(struct hk_config *config);

/* NULL past the last. */
const struct hk_conf_destination *hk_config_destination(const struct hk_config *config, size_t i);
const struct hk_conf_destination *hk_config_destination_named(const struct hk_config *config,
                                                              struct hk_str name); /* NULL: there is none */
const struct hk_conf_route *hk_config_route(const struct hk_config *config, size_t i);
const struct hk_conf_validate *hk_config_validate(const struct hk_config *config, size_t i);
const struct hk_conf_mask *hk_config_mask(const struct hk_config *config, size_t i);
const struct hk_conf_channel *hk_config_channel(const struct hk_config *config, size_t i);
/* Those of the file; without any the standard ones, if there is a channel. NULL past the last. */
const struct hk_conf_alert_rule *hk_config_alert_rule(const struct hk_config *config, size_t i);
/* Is there a rule of that name: one of the file, or of the standard ones where the file has none? With or without channels. */
bool hk_config_knows_rule(const struct hk_config *config, const char *name);
/* As core/alert.h takes it; its texts are the configuration's. */
struct hk_alert_rule hk_conf_rule(const struct hk_conf_alert_rule *rule);
/* Is this rule told there? By its list of channels, and the severity that the channel wants. */
bool hk_conf_rule_has(const struct hk_conf_alert_rule *rule, const struct hk_conf_channel *channel);
const char *hk_conf_channel_kind_name(enum hk_conf_channel_kind kind); /* its key: "slack" … */
enum hk_alert_language hk_conf_language(const struct hk_config *config,
                                        const struct hk_conf_channel *channel);
const struct hk_conf_proxy *hk_config_proxy(const struct hk_config *config, size_t i);
/* The proxy of that name; NULL: the default one. NULL: there is none, or `name` is "none". */
const struct hk_proxy *hk_config_proxy_of(const struct hk_config *config, const char *name);
const struct hk_conf_header *hk_conf_header(const struct hk_conf_http *http, size_t i);
const struct hk_conf_header *hk_conf_telemetry_header(const struct hk_conf_telemetry *telemetry, size_t i);
/* The policy that its messages have unless they name one: its own, or that of its name. */
const struct hk_policy *hk_conf_policy(const struct hk_config *config,
                                       const struct hk_conf_destination *destination);
/* The queue's last part: Q of projects/P/locations/L/queues/Q. NULL: it is no queue. */
const char *hk_conf_queue_id(const struct hk_conf_destination *destination);
bool hk_conf_is_targeted(const struct hk_conf_destination *destination); /* messages name their URL */
const char *hk_conf_kind_name(enum hk_conf_kind kind);                   /* its key: "http", "null" */
/* NULL: it is not at AWS. */
const struct hk_conf_aws *hk_conf_aws(const struct hk_conf_destination *destination);
/* NULL: it is no broker. */
const struct hk_conf_servers *hk_conf_servers(const struct hk_conf_destination *destination);
/* Its servers, one by one. False: it is no broker, or its URL was refused. */
bool hk_conf_servers_parse(const struct hk_conf_destination *destination, struct hk_servers *out);
/* Where its messages go, for people: what of the URL may be shown, or "null". */
const char *hk_conf_target(const struct hk_conf_destination *destination, char room[HK_URL_SHOWN_MAX]);
/* The same without the last: NULL when it has no URL. Of brokers: kind://brokers/name. */
const char *hk_conf_url(const struct hk_conf_destination *destination, char room[HK_URL_SHOWN_MAX]);
bool hk_conf_has_sasl(const struct hk_conf_kafka *kafka);
/* Does it need files that only a trial can tell to be readable: certificates, keys? */
bool hk_conf_has_files(const struct hk_conf_destination *destination);
const struct hk_cidr *hk_conf_allow(const struct hk_conf_destination *destination, size_t i);
const struct hk_cidr *hk_conf_definitions_allow(const struct hk_conf_definitions *definitions, size_t i);
/* For lists of texts: secrets, a route's destinations, required fields, masked paths and headers. */
const char *hk_conf_text(const struct hk_conf_list *list, size_t i);

/* Every key with type, default and meaning: as YAML that loads and changes nothing, as Markdown tables (the
 * reference in docs/configuration.md), and as JSON Schema 2020-12. Errors are the buffer's. */
void hk_config_schema_text(struct hk_buf *out);
void hk_config_schema_markdown(struct hk_buf *out);
void hk_config_schema_json(struct hk_buf *out);

#endif
