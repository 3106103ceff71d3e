/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables of Kafka, and what must hold between them. */
#include <string.h>

#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"
#include "payload/names.h"

#define AT(type, member) .offset = offsetof(type, member)

static const struct hk_word mechanism_words[] = {{"PLAIN", HK_MECHANISM_PLAIN},
                                                 {"SCRAM-SHA-256", HK_MECHANISM_SCRAM_256},
                                                 {"SCRAM-SHA-512", HK_MECHANISM_SCRAM_512},
                                                 {"OAUTHBEARER", HK_MECHANISM_OAUTHBEARER},
                                                 {NULL, 0}};
static const struct hk_word partitioner_words[] = {
    {"java", HK_PARTITIONER_JAVA}, {"librdkafka", HK_PARTITIONER_LIBRDKAFKA}, {NULL, 0}};
static const struct hk_word codec_words[] = {{"none", HK_CODEC_NONE},     {"gzip", HK_CODEC_GZIP},
                                             {"snappy", HK_CODEC_SNAPPY}, {"lz4", HK_CODEC_LZ4},
                                             {"zstd", HK_CODEC_ZSTD},     {NULL, 0}};
static const struct hk_word cloudevents_words[] = {
    {"none", HK_CLOUDEVENTS_NONE}, {"binary", HK_CLOUDEVENTS_BINARY}, {NULL, 0}};

static const struct hk_opt sasl_opts[HK_SASL_NOPTS] = {
    [HK_SASL_MECHANISM_OPT] = {"mechanism", HK_OPT_ENUM, HK_OPT_REQUIRED, AT(struct hk_conf_sasl, mechanism),
                               .words = mechanism_words, .example = "SCRAM-SHA-512",
                               .help = "how the relay logs in"},
    [HK_SASL_USER_OPT] = {"user", HK_OPT_STRING, AT(struct hk_conf_sasl, user), .min = 1, .max = 255,
                          .check = hk_text_check_printable, .otherwise = "none", .example = "relay",
                          .help =
                              "user name of PLAIN and SCRAM; with OAUTHBEARER a name for the client's logs"},
    [HK_SASL_PASSWORD_OPT] = {"password", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_sasl, password),
                              .min = 1, .max = 1024, .check = hk_text_check_printable, .otherwise = "none",
                              .example = "\"${KAFKA_PASSWORD}\"", .help = "password of PLAIN and SCRAM"},
    [HK_SASL_TOKEN_OPT] = {"token", HK_OPT_STRING, HK_OPT_SECRET, AT(struct hk_conf_sasl, token), .min = 1,
                           .max = 8192, .check = hk_text_check_printable, .otherwise = "none",
                           .example = "\"${KAFKA_TOKEN}\"",
                           .help = "token of OAUTHBEARER; or give token_file or oauth2"},
    [HK_SASL_TOKEN_FILE_OPT] =
        {"token_file", HK_OPT_PATH, AT(struct hk_conf_sasl, token_file), .min = 1, .max = 4096,
         .otherwise = "none", .example = "/run/secrets/kafka-token",
         .help = "file with the token of OAUTHBEARER; the relay reads it again when the token expires"},
    [HK_SASL_OAUTH_OPT] = {"oauth2", HK_OPT_SECTION, AT(struct hk_conf_sasl, oauth),
                           .sub = &hk_sasl_oauth_table, .otherwise = "none",
                           .help = "how the relay fetches tokens of OAUTHBEARER (client credentials)"},
};

const struct hk_opt_table hk_sasl_oauth_table = {
    .name = "oauth2",
    .where = "destinations.NAME.kafka.sasl.oauth2",
    .size = sizeof(struct hk_conf_oauth),
    .opts = hk_oauth_opts,
    .n_opts = HK_OAUTH_NOPTS,
    .example =
        "{ token_url: https://login.example/token, client_id: relay, client_secret: \"${KAFKA_CLIENT_SECRET}\" }",
};

const struct hk_opt_table hk_sasl_table = {
    .name = "sasl",
    .where = "destinations.NAME.kafka.sasl",
    .size = sizeof(struct hk_conf_sasl),
    .opts = sasl_opts,
    .n_opts = HK_SASL_NOPTS,
    .example = "{ mechanism: SCRAM-SHA-512, user: relay, password: \"${KAFKA_PASSWORD}\" }",
};

/* ---- texts ---- */

/* "k1:9092,[fd00::1]:9092" */
static bool check_brokers(struct hk_str value, char why[HK_WHY_MAX])
{
    struct hk_str rest = value;
    while (rest.ptr) {
        struct hk_str broker = hk_str_trim(hk_str_cut(&rest, ','));
        bool port = broker.len && broker.ptr[broker.len - 1] != ']' && memchr(broker.ptr, ':', broker.len);
        if (!port || !hk_text_is_authority(broker))
            return hk_text_refuse(
                why, "must be a list of host:port, separated by commas, such as k1:9092,k2:9092");
    }
    return true;
}

/* Fields may stand in it; what they stand for is looked at when a message is sent. */
static bool check_topic(struct hk_str value, char why[HK_WHY_MAX])
{
    const char *wrong = hk_name_wrong(value);
    bool field = false;
    for (size_t i = 0; i < value.len && !wrong; i++) {
        char c = value.ptr[i];
        field = c == '{' || (field && c != '}');
        if (!field && c != '}' && !hk_ascii_isalpha(c) && !hk_ascii_isdigit(c) && !memchr("._-", c, 3))
            wrong =
                "may hold letters, digits, '.', '_' and '-', and {event_type}, {message_key}, {destination}";
    }
    return !wrong || hk_text_refuse(why, wrong);
}

static const struct hk_opt kafka_opts[HK_KAFKA_NOPTS] = {
    [HK_KAFKA_BROKERS_OPT] = {"brokers", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_kafka, brokers),
                              .min = 1, .max = 2048, .check = check_brokers, .example = "k1:9092,k2:9092",
                              .help = "some brokers of the cluster; they name the others"},
    [HK_KAFKA_TOPIC_OPT] =
        {"topic", HK_OPT_STRING, HK_OPT_REQUIRED, AT(struct hk_conf_kafka, topic), .min = 1, .max = 249,
         .check = check_topic, .example = "orders",
         .help = "topic to produce to; may contain {event_type}, {message_key} and {destination}"},
    [HK_KAFKA_TLS_OPT] = {"tls", HK_OPT_BOOL, AT(struct hk_conf_kafka, tls), .fallback = "false",
                          .help = "encrypt, and verify the brokers' certificates and names"},
    [HK_KAFKA_CA_OPT] = {"ca_file", HK_OPT_PATH, AT(struct hk_conf_kafka, ca_file), .min = 1, .max = 4096,
                         .otherwise = "the system's", .example = "ca.pem",
                         .help = "certificate authorities to trust, PEM"},
    [HK_KAFKA_CERT_OPT] = {"cert_file", HK_OPT_PATH, AT(struct hk_conf_kafka, cert_file), .min = 1,
                           .max = 4096, .otherwise = "none", .example = "client.pem",
                           .help = "client certificate, PEM"},
    [HK_KAFKA_KEY_OPT] = {"key_file", HK_OPT_PATH, AT(struct hk_conf_kafka, key_file), .min = 1, .max = 4096,
                          .otherwise = "none", .example = "client.key",
                          .help = "private key of cert_file, PEM, without a password"},
    [HK_KAFKA_SASL_OPT] = {"sasl", HK_OPT_SECTION, AT(struct hk_conf_kafka, sasl), .sub = &hk_sasl_table,
                           .otherwise = "none", .help = "how the relay logs in"},
    [HK_KAFKA_PARTITIONER_OPT] =
        {"partitioner", HK_OPT_ENUM, AT(struct hk_conf_kafka, partitioner), .words = partitioner_words,
         .fallback = "java",
         .help =
             "choose a message_key's partition as Java's clients do (murmur2), or as librdkafka does (CRC)"},
    [HK_KAFKA_COMPRESSION_OPT] = {"compression", HK_OPT_ENUM, AT(struct hk_conf_kafka, compression),
                                  .words = codec_words, .fallback = "none", .help = "compression of batches"},
    [HK_KAFKA_LINGER_OPT] = {"linger", HK_OPT_DURATION, AT(struct hk_conf_kafka, linger_ms), .max = 900,
                             .fallback = "1ms", .help = "how long the client collects messages for a batch"},
    [HK_KAFKA_CLOUDEVENTS_OPT] = {"cloudevents", HK_OPT_ENUM, AT(struct hk_conf_kafka, cloudevents),
                                  .words = cloudevents_words, .fallback = "none",
                                  .help = "add CloudEvents 1.0 headers (ce_id …) to each message"},
    [HK_KAFKA_WINDOW_OPT] = {"window", HK_OPT_U32, AT(struct hk_conf_kafka, window), .min = 1, .max = 100000,
                             .fallback = "10000",
                             .help = "most messages that the client holds; beyond it the relay waits"},
    [HK_KAFKA_WINDOW_BYTES_OPT] =
        {"window_bytes", HK_OPT_SIZE,
         AT(struct hk_conf_kafka, window_bytes), .min = 65536, .max = UINT64_C(1) << 30, .fallback = "64MiB",
         .help = "most bytes that the client holds; it always takes one message, even a larger one"},
};

const struct hk_opt_table hk_kafka_table = {
    .name = "kafka",
    .where = "destinations.NAME.kafka",
    .size = sizeof(struct hk_conf_kafka),
    .opts = kafka_opts,
    .n_opts = HK_KAFKA_NOPTS,
    .example = "{ brokers: \"k1:9092,k2:9092\", topic: orders }",
    .check = hk_check_kafka,
};

/* ---- what must hold between them ---- */

static void check_sasl(struct hk_walk *walk, const struct hk_yaml_node *at, const struct hk_conf_sasl *sasl)
{
    bool bearer = sasl->mechanism == HK_MECHANISM_OAUTHBEARER;
    /* also those that were refused, for another reason that is told already */
    bool user = hk_yaml_get(at, "user"), password = hk_yaml_get(at, "password");
    bool token = hk_yaml_get(at, "token"), file = hk_yaml_get(at, "token_file"),
         oauth = hk_yaml_get(at, "oauth2");
    if (!HK_GIVEN(sasl, HK_SASL_MECHANISM_OPT))
        return;
    if (bearer && token + file + oauth != 1)
        hk_walk_error(walk, at->key_at, "OAUTHBEARER needs one of \"token\", \"token_file\" and \"oauth2\"");
    else if (bearer && password)
        hk_walk_error(walk, at->key_at, "OAUTHBEARER has no \"password\"");
    else if (!bearer && (token || file || oauth))
        hk_walk_error(walk, at->key_at, "\"token\", \"token_file\" and \"oauth2\" are for OAUTHBEARER");
    else if (!bearer && (!user || !password))
        hk_walk_error(walk, at->key_at, "PLAIN and SCRAM need \"user\" and \"password\"");
}

static bool are_local(const char *brokers)
{
    struct hk_str rest = hk_str_of(brokers);
    bool local = true;
    while (rest.ptr && local) {
        struct hk_ip ip;
        bool known = hk_text_authority_ip(hk_str_trim(hk_str_cut(&rest, ',')), &ip);
        const char *special = known ? hk_ip_special(&ip) : NULL;
        local = special && strcmp(special, "loopback") == 0;
    }
    return local;
}

void hk_check_kafka(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    static const char *const files[] = {"ca_file", "cert_file", "key_file"};
    const struct hk_conf_kafka *kafka = section;
    const struct hk_yaml_node *sasl = hk_yaml_get(node, "sasl");
    for (size_t i = 0; i < HK_COUNT(files) && !kafka->tls; i++)
        if (hk_yaml_get(node, files[i]))
            hk_walk_error(walk, hk_walk_at(walk, node, files[i]), "\"%s\" needs \"tls: true\" beside it",
                          files[i]);
    if (!hk_yaml_get(node, "cert_file") != !hk_yaml_get(node, "key_file"))
        hk_walk_error(walk, hk_walk_at(walk, node, hk_yaml_get(node, "cert_file") ? "cert_file" : "key_file"),
                      "\"cert_file\" and \"key_file\" need each other");
    if (!sasl || !HK_GIVEN(kafka, HK_KAFKA_SASL_OPT))
        return;
    check_sasl(walk, sasl, &kafka->sasl);
    if (!kafka->tls && kafka->brokers && !are_local(kafka->brokers))
        hk_walk_warn(walk, sasl->key_at, "credentials go out unencrypted: give \"tls: true\"");
    const char *token_url = kafka->sasl.oauth.token_url;
    if (!hk_walk_failed(walk) && token_url && hk_str_starts(hk_str_of(token_url), hk_str_of("http:")) &&
        !hk_text_url_is_local(token_url))
        hk_walk_warn(walk, sasl->key_at,
                     "the client secret goes out unencrypted: token_url is http, not https");
}
