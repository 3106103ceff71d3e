/* SPDX-License-Identifier: Apache-2.0 */
/* The options of destinations that are brokers. All of them have a url, a password and certificates; the rest is each kind's. */
#include <stddef.h>

#include "config/tables.h"
#include "config/text.h"

#define AT(type, member) .offset = offsetof(type, member)
#define NAME             .max = 1024, .check = hk_text_check_broker_name

static const struct hk_word cloudevents_words[] = {
    {"none", HK_CLOUDEVENTS_NONE}, {"binary", HK_CLOUDEVENTS_BINARY}, {NULL, 0}};

/* The same rows for each kind, at the end of its table. */
#define BROKER_OPTS(type, secret_help)                                                                       \
    {"password",                                                                                             \
     HK_OPT_STRING,                                                                                          \
     HK_OPT_SECRET,                                                                                          \
     AT(type, servers.password),                                                                             \
     .max = 1024,                                                                                            \
     .check = hk_text_check_printable,                                                                       \
     .example = "\"${BROKER_PASSWORD}\"",                                                                    \
     .help = (secret_help)},                                                                                 \
        {"ca_file",                                                                                          \
         HK_OPT_PATH,                                                                                        \
         AT(type, servers.ca_file),                                                                          \
         .min = 1,                                                                                           \
         .max = 4096,                                                                                        \
         .otherwise = "the system's",                                                                        \
         .example = "ca.pem",                                                                                \
         .help = "certificate authorities to trust, PEM"},                                                   \
        {"cert_file", HK_OPT_PATH,         AT(type, servers.cert_file), .min = 1,                            \
         .max = 4096, .otherwise = "none", .example = "client.pem",     .help = "client certificate, PEM"},  \
        {"key_file",                                                                                         \
         HK_OPT_PATH,                                                                                        \
         AT(type, servers.key_file),                                                                         \
         .min = 1,                                                                                           \
         .max = 4096,                                                                                        \
         .otherwise = "none",                                                                                \
         .example = "client.key",                                                                            \
         .help = "private key of cert_file, PEM"},                                                           \
    {                                                                                                        \
        "cloudevents", HK_OPT_ENUM, AT(type, servers.cloudevents),                                           \
            .words = cloudevents_words, .fallback = "none",                                                  \
            .help = "add CloudEvents 1.0 attributes to each message"                                         \
    }

static const struct hk_opt amqp_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_amqp, servers.url), .min = 1, .max = 2048,
     .check = hk_text_check_amqp_url, .example = "amqps://relay@rabbit.example/orders",
     .help = "servers separated by commas, user, and vhost (default: /)"},
    {"exchange", HK_OPT_STRING, AT(struct hk_conf_amqp, exchange), NAME, .fallback = "",
     .otherwise = "the default exchange", .example = "events",
     .help = "exchange to publish to; may contain {event_type}, {message_key} and {destination}"},
    {"routing_key", HK_OPT_STRING, AT(struct hk_conf_amqp, routing_key), NAME, .fallback = "{event_type}",
     .help = "routing key, with the same fields; the default exchange takes it as a queue's name"},
    {"mandatory", HK_OPT_BOOL, AT(struct hk_conf_amqp, mandatory), .fallback = "true",
     .help = "refuse a message that no queue takes; false: the broker drops it, and it counts as sent"},
    {"persistent", HK_OPT_BOOL, AT(struct hk_conf_amqp, persistent), .fallback = "true",
     .help = "ask the broker to write each message to disk"},
    {"heartbeat", HK_OPT_DURATION, AT(struct hk_conf_amqp, heartbeat_ms), .min = 1000, .max = 3600000,
     .fallback = "10s",
     .help = "drop the connection when the broker is silent for twice as long; the broker may shorten it"},
    BROKER_OPTS(struct hk_conf_amqp,
                "password of the user in url; without user and password the relay logs in as guest"),
};

const struct hk_opt_table hk_amqp_table = {
    .name = "amqp",
    .where = "destinations.NAME.amqp",
    .size = sizeof(struct hk_conf_amqp),
    .opts = amqp_opts,
    .n_opts = HK_COUNT(amqp_opts),
    .example = "{ url: \"amqps://relay@rabbit.example/orders\", exchange: events }",
    .check = hk_check_amqp,
};

/* ---- NATS ---- */

static const struct hk_word nats_id_words[] = {
    {"message", HK_NATS_ID_MESSAGE}, {"destination", HK_NATS_ID_DESTINATION}, {NULL, 0}};

static const struct hk_opt nats_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_nats, servers.url), .min = 1, .max = 2048,
     .check = hk_text_check_nats_url, .example = "tls://relay@nats.example",
     .help = "servers separated by commas, and user; nats:// or tls://"},
    {"subject", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_nats, subject), .min = 1, NAME,
     .example = "\"events.{event_type}\"",
     .help = "subject to publish to; may contain {event_type}, {message_key} and {destination}"},
    {"token", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_nats, token), .min = 1, .max = 1024,
     .check = hk_text_check_printable, .example = "\"${NATS_TOKEN}\"",
     .help = "token to log in with, instead of user and password"},
    {"creds_file", HK_OPT_PATH, AT(struct hk_conf_nats, creds_file), .min = 1, .max = 4096,
     .otherwise = "none", .example = "relay.creds",
     .help = "file to log in with, instead of them: a JWT and an nkey seed, or a seed alone"},
    {"inbox", HK_OPT_STRING, AT(struct hk_conf_nats, inbox), .min = 1, .max = 200,
     .check = hk_text_check_printable, .fallback = "_INBOX",
     .help =
         "prefix of the subjects that the server confirms to; the user must be allowed to subscribe there"},
    {"msg_id", HK_OPT_ENUM, AT(struct hk_conf_nats, msg_id), .words = nats_id_words, .fallback = "message",
     .help = "Nats-Msg-Id: the message_id, or message_id/destination if destinations share a stream"},
    {"heartbeat", HK_OPT_DURATION, AT(struct hk_conf_nats, heartbeat_ms), .min = 1000, .max = 3600000,
     .fallback = "10s", .help = "drop the connection when the server is silent for twice as long"},
    BROKER_OPTS(struct hk_conf_nats, "password of the user in url"),
};

const struct hk_opt_table hk_nats_table = {
    .name = "nats",
    .where = "destinations.NAME.nats",
    .size = sizeof(struct hk_conf_nats),
    .opts = nats_opts,
    .n_opts = HK_COUNT(nats_opts),
    .example = "{ url: \"tls://relay@nats.example\", subject: \"events.{event_type}\" }",
    .check = hk_check_nats,
};

/* ---- Redis ---- */

static const struct hk_opt redis_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_redis, servers.url), .min = 1, .max = 2048,
     .check = hk_text_check_redis_url, .example = "rediss://relay@redis.example/0",
     .help = "servers separated by commas, user, and number of the database (default: 0)"},
    {"stream", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_redis, stream), .min = 1, NAME,
     .example = "events",
     .help = "stream to add to; may contain {event_type}, {message_key} and {destination}"},
    {"create", HK_OPT_BOOL, AT(struct hk_conf_redis, create), .fallback = "true",
     .help = "create a missing stream; false: refuse messages for a missing stream"},
    {"max_len", HK_OPT_U64, AT(struct hk_conf_redis, max_len), .min = 1, .max = 1000000000000,
     .word = "unlimited", .word_value = 0, .fallback = "unlimited",
     .help = "trim the stream to about this many entries; Redis drops the oldest, even unread ones"},
    {"dedup", HK_OPT_DURATION, AT(struct hk_conf_redis, dedup_ms), .min = 1, .max = 604800000, .word = "off",
     .word_value = 0, .fallback = "off",
     .help = "how long Redis remembers a message's id, so that it adds no repeat"},
    {"heartbeat", HK_OPT_DURATION, AT(struct hk_conf_redis, heartbeat_ms), .min = 1000, .max = 3600000,
     .fallback = "10s", .help = "drop the connection when the server is silent for twice as long"},
    BROKER_OPTS(struct hk_conf_redis, "password of the user in url, or of the default user"),
};

const struct hk_opt_table hk_redis_table = {
    .name = "redis",
    .where = "destinations.NAME.redis",
    .size = sizeof(struct hk_conf_redis),
    .opts = redis_opts,
    .n_opts = HK_COUNT(redis_opts),
    .example = "{ url: \"rediss://relay@redis.example\", stream: events }",
    .check = hk_check_redis,
};

/* ---- MQTT ---- */

static const struct hk_opt mqtt_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_mqtt, servers.url), .min = 1, .max = 2048,
     .check = hk_text_check_mqtt_url, .example = "mqtts://relay@mqtt.example",
     .help = "servers separated by commas, and user"},
    {"topic", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_mqtt, topic), .min = 1, NAME,
     .example = "\"events/{event_type}\"",
     .help = "topic to publish to; may contain {event_type}, {message_key} and {destination}"},
    {"qos", HK_OPT_U32, AT(struct hk_conf_mqtt, qos), .min = 1, .max = 2, .fallback = "1",
     .help = "1: at least once; 2: the broker also drops repeats within one attempt"},
    {"retain", HK_OPT_BOOL, AT(struct hk_conf_mqtt, retain), .fallback = "false",
     .help = "ask the broker to keep the last message of each topic for later subscribers"},
    {"require_subscriber", HK_OPT_BOOL, AT(struct hk_conf_mqtt, require_subscriber), .fallback = "false",
     .help = "refuse a message that has no subscriber; false: it counts as sent"},
    {"client_id", HK_OPT_STRING, AT(struct hk_conf_mqtt, client_id), .min = 1, .max = 255,
     .check = hk_text_check_printable, .otherwise = "one for each connection", .example = "relay-1",
     .help = "for brokers that want a known one; two relays with the same identifier disconnect each other"},
    {"heartbeat", HK_OPT_DURATION, AT(struct hk_conf_mqtt, heartbeat_ms), .min = 1000, .max = 3600000,
     .fallback = "10s", .help = "drop the connection when the server is silent for twice as long"},
    BROKER_OPTS(struct hk_conf_mqtt, "password of the user in url"),
};

const struct hk_opt_table hk_mqtt_table = {
    .name = "mqtt",
    .where = "destinations.NAME.mqtt",
    .size = sizeof(struct hk_conf_mqtt),
    .opts = mqtt_opts,
    .n_opts = HK_COUNT(mqtt_opts),
    .example = "{ url: \"mqtts://relay@mqtt.example\", topic: \"events/{event_type}\" }",
    .check = hk_check_mqtt,
};
