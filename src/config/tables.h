/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables, the numbers of the options that checks ask about, and policies as they are written. */
#ifndef HK_CONFIG_TABLES_H
#define HK_CONFIG_TABLES_H

#include <hikyaku/policy.h>

#include "config/config.h"
#include "config/schema.h"

#define HK_GIVEN(section, option) (((section)->given >> (option)) & 1u)
#define HK_COUNT(array)           (sizeof(array) / sizeof((array)[0]))

/* Enumerators name a table's rows: the table is written with them, and HK_GIVEN asks with them. */

enum {
    HK_BACKOFF_KIND_OPT,
    HK_BACKOFF_BASE_OPT,
    HK_BACKOFF_DELTA_OPT,
    HK_BACKOFF_MIN_OPT,
    HK_BACKOFF_CAP_OPT,
    HK_BACKOFF_FACTOR_OPT,
    HK_BACKOFF_DOUBLINGS_OPT,
    HK_BACKOFF_FAST_OPT,
    HK_BACKOFF_WAITS_OPT,
    HK_BACKOFF_NOPTS
};

struct hk_conf_backoff {
    uint32_t given;
    enum hk_backoff_kind kind;
    uint64_t base_ms; /* also `delta` */
    uint64_t min_ms, cap_ms;
    double factor;
    uint32_t max_doublings;
    bool fast_first;
    struct hk_conf_list waits; /* of uint64_t */
};

enum {
    HK_JITTER_KIND_OPT,
    HK_JITTER_RATIO_OPT,
    HK_JITTER_ADD_OPT,
    HK_JITTER_NOPTS
};

struct hk_conf_jitter {
    uint32_t given;
    struct hk_jitter value;
};

enum {
    HK_BREAKER_OFF_OPT,
    HK_BREAKER_FAILURES_OPT,
    HK_BREAKER_RATIO_OPT,
    HK_BREAKER_THROUGHPUT_OPT,
    HK_BREAKER_WINDOW_OPT,
    HK_BREAKER_OPEN_OPT,
    HK_BREAKER_OPEN_FACTOR_OPT,
    HK_BREAKER_OPEN_CAP_OPT,
    HK_BREAKER_OPEN_JITTER_OPT,
    HK_BREAKER_PROBES_OPT,
    HK_BREAKER_SUCCESSES_OPT,
    HK_BREAKER_NOPTS
};

enum {
    HK_CLASS_ACTION_OPT,
    HK_CLASS_MAX_OPT,
    HK_CLASS_CHARGE_OPT,
    HK_CLASS_BACKOFF_OPT,
    HK_CLASS_JITTER_OPT,
    HK_CLASS_PAUSE_OPT,
    HK_CLASS_NOPTS
};

struct hk_conf_class {
    uint32_t given;
    unsigned retry; /* `action` */
    uint32_t max_attempts;
    bool charge;
    struct hk_conf_backoff backoff;
    struct hk_conf_jitter jitter;
    uint32_t pause_after;
};

struct hk_conf_classes { /* option i is class i + 1 */
    uint32_t given;
    struct hk_conf_class by_class[HK_NCLASSES];
};

enum {
    HK_RULE_MATCH_OPT,
    HK_RULE_HEADER_OPT,
    HK_RULE_CONTAINS_OPT,
    HK_RULE_BODY_OPT,
    HK_RULE_CLASS_OPT,
    HK_RULE_REASON_OPT,
    HK_RULE_PAUSE_OPT,
    HK_RULE_NOPTS
};

struct hk_conf_rule {
    uint32_t given;
    const char *match, *header, *contains, *body;
    enum hk_class to_class;
    const char *reason;
    bool pause;
};

enum {
    HK_POLICY_PRESET_OPT,
    HK_POLICY_CUSTOM_OPT,
    HK_POLICY_BACKOFF_OPT,
    HK_POLICY_JITTER_OPT,
    HK_POLICY_MAX_ATTEMPTS_OPT,
    HK_POLICY_MAX_ELAPSED_OPT,
    HK_POLICY_TIMEOUT_OPT,
    HK_POLICY_LIMIT_MODE_OPT,
    HK_POLICY_HINTS_OPT,
    HK_POLICY_HINT_CAP_OPT,
    HK_POLICY_CLASSES_OPT,
    HK_POLICY_CLASSIFY_OPT,
    HK_POLICY_BREAKER_OPT,
    HK_POLICY_NOPTS
};

enum {
    HK_SEAL_MODE_OPT,
    HK_SEAL_STORE_OPT,
    HK_SEAL_KEYS_OPT,
    HK_SEAL_NOPTS
};

struct hk_conf_policy {
    uint32_t given;
    const char *name, *preset, *custom;
    struct hk_conf_backoff backoff;
    struct hk_conf_jitter jitter;
    struct hk_limits limits; /* only what is given */
    struct hk_conf_classes classes;
    struct hk_conf_list classify; /* of struct hk_conf_rule */
    struct hk_conf_breaker breaker;
    bool foreign;            /* `custom` is only known to some program */
    struct hk_policy *built; /* NULL when something was wrong; belongs to the configuration */
};

enum {
    HK_SIGN_SECRET_OPT,
    HK_SIGN_SECRETS_OPT,
    HK_SIGN_NOPTS
};

enum {
    HK_AUTH_BASIC_OPT,
    HK_AUTH_BEARER_OPT,
    HK_AUTH_OAUTH_OPT,
    HK_AUTH_NOPTS
};

enum {
    HK_HTTP_URL_OPT,
    HK_HTTP_METHOD_OPT,
    HK_HTTP_HEADERS_OPT,
    HK_HTTP_SIGN_OPT,
    HK_HTTP_AUTH_OPT,
    HK_HTTP_CA_OPT,
    HK_HTTP_CERT_OPT,
    HK_HTTP_KEY_OPT,
    HK_HTTP_CLOUDEVENTS_OPT,
    HK_HTTP_PIN_OPT,
    HK_HTTP_SOCKET_OPT,
    HK_HTTP_COMPRESSION_OPT,
    HK_HTTP_BATCH_OPT,
    HK_HTTP_NOPTS
};

enum {
    HK_SASL_MECHANISM_OPT,
    HK_SASL_USER_OPT,
    HK_SASL_PASSWORD_OPT,
    HK_SASL_TOKEN_OPT,
    HK_SASL_TOKEN_FILE_OPT,
    HK_SASL_OAUTH_OPT,
    HK_SASL_NOPTS
};

enum {
    HK_KAFKA_BROKERS_OPT,
    HK_KAFKA_TOPIC_OPT,
    HK_KAFKA_TLS_OPT,
    HK_KAFKA_CA_OPT,
    HK_KAFKA_CERT_OPT,
    HK_KAFKA_KEY_OPT,
    HK_KAFKA_SASL_OPT,
    HK_KAFKA_PARTITIONER_OPT,
    HK_KAFKA_COMPRESSION_OPT,
    HK_KAFKA_LINGER_OPT,
    HK_KAFKA_CLOUDEVENTS_OPT,
    HK_KAFKA_WINDOW_OPT,
    HK_KAFKA_WINDOW_BYTES_OPT,
    HK_KAFKA_NOPTS
};

enum {
    HK_PROXY_URL_OPT,
    HK_PROXY_USER_OPT,
    HK_PROXY_PASSWORD_OPT,
    HK_PROXY_CA_OPT,
    HK_PROXY_DNS_OPT,
    HK_PROXY_DIRECT_OPT,
    HK_PROXY_NOPTS
};

enum {
    HK_LIMITS_RATE_OPT,
    HK_LIMITS_BURST_OPT,
    HK_LIMITS_CONCURRENCY_OPT,
    HK_LIMITS_SHARED_OPT,
    HK_LIMITS_NOPTS
};

enum {
    HK_DEST_KINDS_OPT, /* one for each kind, in the order of enum hk_conf_kind */
    HK_DEST_HTTP_OPT = HK_DEST_KINDS_OPT,
    HK_DEST_NULL_OPT,
    HK_DEST_AMQP_OPT,
    HK_DEST_NATS_OPT,
    HK_DEST_REDIS_OPT,
    HK_DEST_MQTT_OPT,
    HK_DEST_KAFKA_OPT,
    HK_DEST_SQS_OPT,
    HK_DEST_SNS_OPT,
    HK_DEST_EVENTBRIDGE_OPT,
    HK_DEST_KINESIS_OPT,
    HK_DEST_PUBSUB_OPT,
    HK_DEST_POLICY_OPT,
    HK_DEST_LIMITS_OPT,
    HK_DEST_BREAKER_OPT,
    HK_DEST_ORDER_OPT,
    HK_DEST_ON_DEAD_OPT,
    HK_DEST_AUTO_REDRIVE_OPT,
    HK_DEST_ALLOW_OPT,
    HK_DEST_PROXY_OPT,
    HK_DEST_QUEUE_OPT,
    HK_DEST_NOPTS
};

enum {
    HK_QUEUE_NAME_OPT,
    HK_QUEUE_MAX_ATTEMPTS_OPT,
    HK_QUEUE_MAX_RETRY_OPT,
    HK_QUEUE_MIN_BACKOFF_OPT,
    HK_QUEUE_MAX_BACKOFF_OPT,
    HK_QUEUE_MAX_DOUBLINGS_OPT,
    HK_QUEUE_NOPTS
};

enum {
    HK_VALIDATE_EVENT_OPT,
    HK_VALIDATE_REQUIRED_OPT,
    HK_VALIDATE_JSON_OPT,
    HK_VALIDATE_SIZE_OPT,
    HK_VALIDATE_NOPTS
};

enum {
    HK_MASK_EVENT_OPT,
    HK_MASK_PATHS_OPT,
    HK_MASK_HEADERS_OPT,
    HK_MASK_NOPTS
};

enum {
    HK_CHANNEL_SLACK_OPT, /* in the order of enum hk_conf_channel_kind */
    HK_CHANNEL_EMAIL_OPT,
    HK_CHANNEL_WEBHOOK_OPT,
    HK_CHANNEL_PAGERDUTY_OPT,
    HK_CHANNEL_EXEC_OPT,
    HK_CHANNEL_LANGUAGE_OPT,
    HK_CHANNEL_SEVERITY_OPT,
    HK_CHANNEL_TIMEOUT_OPT,
    HK_CHANNEL_ALLOW_OPT,
    HK_CHANNEL_PROXY_OPT,
    HK_CHANNEL_NOPTS
};

enum {
    HK_ALERT_RULE_NAME_OPT,
    HK_ALERT_RULE_WHEN_OPT,
    HK_ALERT_RULE_DESTINATION_OPT,
    HK_ALERT_RULE_EVENT_OPT,
    HK_ALERT_RULE_REASON_OPT,
    HK_ALERT_RULE_ABOVE_OPT,
    HK_ALERT_RULE_AGE_OPT,
    HK_ALERT_RULE_FOR_OPT,
    HK_ALERT_RULE_SEVERITY_OPT,
    HK_ALERT_RULE_CHANNELS_OPT,
    HK_ALERT_RULE_FIELDS_OPT,
    HK_ALERT_RULE_NOPTS
};

extern const struct hk_opt_table hk_root_table;
extern const struct hk_opt_table hk_destination_table;
extern const struct hk_opt_table hk_amqp_table, hk_nats_table, hk_redis_table,
    hk_mqtt_table;                                 /* tables_brokers.c */
extern const struct hk_opt_table hk_proxy_table;   /* proxies.c */
extern const struct hk_opt_table hk_channel_table; /* tables_alerts.c */
#define HK_OAUTH_NOPTS 6
extern const struct hk_opt hk_oauth_opts[HK_OAUTH_NOPTS]; /* of struct hk_conf_oauth; tables.c */
extern const struct hk_opt_table hk_kafka_table, hk_sasl_table, hk_sasl_oauth_table; /* tables_kafka.c */
extern const struct hk_opt_table hk_sqs_table, hk_sns_table, hk_eventbridge_table,
    hk_kinesis_table;                             /* tables_aws.c */
extern const struct hk_opt_table hk_pubsub_table; /* tables_google.c */
extern const struct hk_opt_table hk_slack_table, hk_email_table, hk_hook_table, hk_pagerduty_table,
    hk_exec_table;
extern const struct hk_opt_table hk_alerts_table, hk_quiet_table, hk_alert_rule_table;
extern const struct hk_opt_table hk_backoff_table;
extern const struct hk_opt_table hk_jitter_table;
extern const struct hk_opt_table hk_breaker_table;
extern const struct hk_opt_table hk_class_table;
extern const struct hk_opt_table hk_classes_table;
extern const struct hk_opt_table hk_rule_table;
extern const struct hk_opt_table hk_policy_table;

/* One of two that only go together. */
void hk_check_pair(struct hk_walk *walk, const struct hk_yaml_node *node, const char *key, const char *other);

/* hk_opt_table.check of the sections that need one: build.c and check.c. */
void hk_check_policy(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_jitter(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_store(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_relay(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_retention(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_admin(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_proxy(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_header(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_batch(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_http(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_amqp(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_nats(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_mqtt(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_redis(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_kafka(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_aws(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_pubsub(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_limits(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_destination(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_queues(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_route(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_validate(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_mask(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_seal(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_channel(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_email(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_quiet(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_alert_rule(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_alerts(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);
void hk_check_root(struct hk_walk *walk, const struct hk_yaml_node *node, void *section);

#endif
