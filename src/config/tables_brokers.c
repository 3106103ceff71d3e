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
         .help = "authorities to trust, PEM"},                                                               \
        {"cert_file", HK_OPT_PATH,         AT(type, servers.cert_file), .min = 1,                            \
         .max = 4096, .otherwise = "none", .example = "client.pem",     .help = "client certificate, PEM"},  \
        {"key_file",  HK_OPT_PATH,         AT(type, servers.key_file), .min = 1,                             \
         .max = 4096, .otherwise = "none", .example = "client.key",    .help = "its key, PEM"},              \
    {                                                                                                        \
        "cloudevents", HK_OPT_ENUM, AT(type, servers.cloudevents),                                           \
            .words = cloudevents_words, .fallback = "none", .help = "CloudEvents 1.0 attributes"             \
    }

static const struct hk_opt amqp_opts[] = {
    {"url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_amqp, servers.url), .min = 1, .max = 2048,
     .check = hk_text_check_amqp_url, .example = "amqps://relay@rabbit.example/orders",
     .help = "servers, commas between them, user and vhost (without: /)"},
    {"exchange", HK_OPT_STRING, AT(struct hk_conf_amqp, exchange), NAME, .fallback = "",
     .otherwise = "the default exchange", .example = "events",
     .help = "may hold {event_type}, {message_key} and {destination}, as routing_key"},
    {"routing_key", HK_OPT_STRING, AT(struct hk_conf_amqp, routing_key), NAME, .fallback = "{event_type}",
     .help = "of each message; with the default exchange it is the name of a queue"},
    {"mandatory", HK_OPT_BOOL, AT(struct hk_conf_amqp, mandatory), .fallback = "true",
     .help = "a message that no queue takes is refused; false: the broker drops it, and it counts as sent"},
    {"persistent", HK_OPT_BOOL, AT(struct hk_conf_amqp, persistent), .fallback = "true",
     .help = "the broker writes messages to disk"},
    {"heartbeat", HK_OPT_DURATION, AT(struct hk_conf_amqp, heartbeat_ms), .min = 1000, .max = 3600000,
     .fallback = "10s",
     .help = "a broker that is silent for twice as long is given up; the broker may want it shorter"},
    BROKER_OPTS(struct hk_conf_amqp, "of the url's user; without either: guest, guest"),
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
