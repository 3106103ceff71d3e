/* SPDX-License-Identifier: Apache-2.0 */
/* The options of destinations at AWS, and what must hold between them. */
#include <stddef.h>

#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

#define AT(member) .offset = offsetof(struct hk_conf_aws, member)
#define KEY        .min = 1, .check = hk_text_check_printable, .otherwise = "none"

static bool check_region(struct hk_str s, char why[HK_WHY_MAX])
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isdigit(s.ptr[i]) && s.ptr[i] != '-' && (s.ptr[i] < 'a' || s.ptr[i] > 'z'))
            return hk_text_refuse(why, "must be the name of a region such as ap-northeast-1");
    return true;
}

static bool is_arn(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return hk_str_glob("arn:*:*:*:*:*", s);
}

static bool check_topic(struct hk_str s, char why[HK_WHY_MAX])
{
    return is_arn(s) ||
           hk_text_refuse(why, "must be an ARN such as arn:aws:sns:ap-northeast-1:123456789012:jobs");
}

/* A bus or a stream. */
static bool check_name(struct hk_str s, char why[HK_WHY_MAX])
{
    bool plain = true;
    for (size_t i = 0; i < s.len; i++)
        plain = plain && (hk_ascii_isalpha(s.ptr[i]) || hk_ascii_isdigit(s.ptr[i]) || s.ptr[i] == '_' ||
                          s.ptr[i] == '-' || s.ptr[i] == '.' || s.ptr[i] == '/');
    return plain || is_arn(s) ||
           hk_text_refuse(why, "must be a name of letters, digits and _ - . / or an ARN");
}

static bool check_source(struct hk_str s, char why[HK_WHY_MAX])
{
    if (hk_str_starts(s, hk_str_of("aws.")))
        return hk_text_refuse(why, "must not begin with aws.: those events are of AWS");
    return hk_text_check_printable(s, why);
}

#define REGION                                                                                               \
    {                                                                                                        \
        "region", HK_OPT_STRING, HK_OPT_REQUIRED, AT(region), .min = 1, .max = 64, .check = check_region,    \
                                                              .example = "ap-northeast-1",                   \
                                                              .help = "region to sign requests for"          \
    }

#define ENDPOINT(usual, private)                                                                             \
    {                                                                                                        \
        "endpoint", HK_OPT_STRING, AT(endpoint),                                                             \
            .min = 1, .max = 256, .check = hk_text_check_http_url, .otherwise = usual,                       \
            .example = "https://vpce-1." private ".ap-northeast-1.vpce.amazonaws.com",                       \
            .help = "scheme, host and port to send requests to instead"                                      \
    }

/* What all of them have. */
#define CREDENTIALS                                                                                          \
    {"access_key_id",                                                                                        \
     HK_OPT_STRING,                                                                                          \
     AT(access_key_id),                                                                                      \
     KEY,                                                                                                    \
     .max = 128,                                                                                             \
     .example = "\"${AWS_KEY_ID}\"",                                                                         \
     .help = "access key; without it the relay looks for others (docs/aws.md)"},                             \
        {"secret_access_key",                                                                                \
         HK_OPT_STRING,                                                                                      \
         HK_OPT_SECRET,                                                                                      \
         AT(secret_access_key),                                                                              \
         KEY,                                                                                                \
         .max = 256,                                                                                         \
         .example = "\"${AWS_KEY}\"",                                                                        \
         .help = "secret of access_key_id"},                                                                 \
        {"session_token",                                                                                    \
         HK_OPT_STRING,                                                                                      \
         HK_OPT_SECRET,                                                                                      \
         AT(session_token),                                                                                  \
         KEY,                                                                                                \
         .max = 4000,                                                                                        \
         .example = "\"${AWS_TOKEN}\"",                                                                      \
         .help = "session token of temporary credentials"},                                                  \
        {"credentials_file",                                                                                 \
         HK_OPT_PATH,                                                                                        \
         AT(credentials_file),                                                                               \
         .min = 1,                                                                                           \
         .max = 4096,                                                                                        \
         .otherwise = "none",                                                                                \
         .example = "/etc/hikyaku/aws",                                                                      \
         .help = "file in the format of ~/.aws/credentials; the relay reads it again each minute"},          \
        {"profile",                                                                                          \
         HK_OPT_STRING,                                                                                      \
         AT(profile),                                                                                        \
         .min = 1,                                                                                           \
         .max = 128,                                                                                         \
         .check = hk_text_check_printable,                                                                   \
         .otherwise = "AWS_PROFILE, or default",                                                             \
         .example = "relay",                                                                                 \
         .help = "section of the credentials file"},                                                         \
    {                                                                                                        \
        "ca_file", HK_OPT_PATH, AT(ca_file), .min = 1, .max = 4096, .otherwise = "the system's",             \
                                             .example = "ca.pem",                                            \
                                             .help = "certificate authorities to trust, PEM"                 \
    }

#define CLOUDEVENTS                                                                                          \
    {                                                                                                        \
        "cloudevents", HK_OPT_ENUM, AT(body), .words = cloudevents_words, .fallback = "none",                \
                                              .help = "wrap the payload in a CloudEvents 1.0 event"          \
    }

#define BODY                                                                                                    \
    {                                                                                                           \
        "body", HK_OPT_ENUM, AT(body),                                                                          \
            .words = body_words, .fallback = "envelope",                                                        \
            .help =                                                                                             \
                "envelope: {\"metadata\": the ids, \"data\": the payload}; payload: only that; cloudevents: a " \
                "structured CloudEvent"                                                                         \
    }

static const struct hk_word cloudevents_words[] = {
    {"none", HK_AWS_TAKES_PAYLOAD}, {"structured", HK_AWS_TAKES_EVENT}, {NULL, 0}};

static const struct hk_word body_words[] = {{"envelope", HK_AWS_TAKES_ENVELOPE},
                                            {"payload", HK_AWS_TAKES_PAYLOAD},
                                            {"cloudevents", HK_AWS_TAKES_EVENT},
                                            {NULL, 0}};

/* ---- SQS ---- */

static const struct hk_opt sqs_opts[] = {
    {"queue_url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(to), .min = 1, .max = 1024,
     .check = hk_text_check_http_url, .example = "https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs",
     .help = "URL of the queue, as SQS shows it; a name that ends with .fifo is a FIFO queue"},
    REGION,
    ENDPOINT("that of queue_url", "sqs"),
    CREDENTIALS,
    CLOUDEVENTS,
};

const struct hk_opt_table hk_sqs_table = {
    .name = "sqs",
    .where = "destinations.NAME.sqs",
    .size = sizeof(struct hk_conf_aws),
    .opts = sqs_opts,
    .n_opts = HK_COUNT(sqs_opts),
    .example =
        "{ queue_url: \"https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs\", region: ap-northeast-1 }",
    .check = hk_check_aws,
};

/* ---- SNS ---- */

static const struct hk_opt sns_opts[] = {
    {"topic_arn", HK_OPT_STRING, HK_OPT_REQUIRED, AT(to), .min = 1, .max = 512, .check = check_topic,
     .example = "arn:aws:sns:ap-northeast-1:123456789012:jobs",
     .help = "ARN of the topic; a name that ends with .fifo is a FIFO topic"},
    REGION,
    ENDPOINT("that of the region", "sns"),
    CREDENTIALS,
    CLOUDEVENTS,
};

const struct hk_opt_table hk_sns_table = {
    .name = "sns",
    .where = "destinations.NAME.sns",
    .size = sizeof(struct hk_conf_aws),
    .opts = sns_opts,
    .n_opts = HK_COUNT(sns_opts),
    .example = "{ topic_arn: \"arn:aws:sns:ap-northeast-1:123456789012:jobs\", region: ap-northeast-1 }",
    .check = hk_check_aws,
};

/* ---- EventBridge ---- */

static const struct hk_opt eventbridge_opts[] = {
    {"event_bus", HK_OPT_STRING, AT(to), .min = 1, .max = 512, .check = check_name, .fallback = "default",
     .help = "name or ARN of the bus"},
    {"source", HK_OPT_STRING, AT(source), .min = 1, .max = 256, .check = check_source, .fallback = "hikyaku",
     .help = "source of all events; their detail-type is the event_type"},
    BODY,
    REGION,
    ENDPOINT("that of the region", "events"),
    CREDENTIALS,
};

const struct hk_opt_table hk_eventbridge_table = {
    .name = "eventbridge",
    .where = "destinations.NAME.eventbridge",
    .size = sizeof(struct hk_conf_aws),
    .opts = eventbridge_opts,
    .n_opts = HK_COUNT(eventbridge_opts),
    .example = "{ event_bus: jobs, source: com.example.orders, region: ap-northeast-1 }",
    .check = hk_check_aws,
};

/* ---- Kinesis ---- */

static const struct hk_opt kinesis_opts[] = {
    {"stream", HK_OPT_STRING, HK_OPT_REQUIRED, AT(to), .min = 1, .max = 512, .check = check_name,
     .example = "jobs", .help = "name or ARN of the data stream"},
    BODY,
    REGION,
    ENDPOINT("that of the region", "kinesis"),
    CREDENTIALS,
};

const struct hk_opt_table hk_kinesis_table = {
    .name = "kinesis",
    .where = "destinations.NAME.kinesis",
    .size = sizeof(struct hk_conf_aws),
    .opts = kinesis_opts,
    .n_opts = HK_COUNT(kinesis_opts),
    .example = "{ stream: jobs, region: ap-northeast-1 }",
    .check = hk_check_aws,
};

/* ---- what must hold between them ---- */

/* Whoever writes to the store must not act with the credentials of the relay's host. */
static void check_definition(struct hk_walk *walk, const struct hk_yaml_node *node)
{
    if (walk->is_definition && !hk_yaml_get(node, "access_key_id") && !hk_yaml_get(node, "credentials_file"))
        hk_walk_error(
            walk, hk_walk_at(walk, node, hk_yaml_get(node, "queue_url") ? "queue_url" : "region"),
            "a definition needs \"access_key_id\" and \"secret_access_key\", or \"credentials_file\": "
            "those of the relay's environment are for its configuration file alone");
}

void hk_check_aws(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_aws *aws = section;
    const char *endpoint = aws->endpoint ? aws->endpoint : aws->to;
    const struct hk_yaml_node *key = hk_yaml_get(node, "access_key_id"),
                              *token = hk_yaml_get(node, "session_token"),
                              *file = hk_yaml_get(node, "credentials_file");
    hk_check_pair(walk, node, "access_key_id", "secret_access_key");
    hk_check_pair(walk, node, "secret_access_key", "access_key_id");
    hk_check_pair(walk, node, "session_token", "access_key_id");
    if (key && file)
        hk_walk_error(walk, file->key_at,
                      "give \"access_key_id\" or \"credentials_file\": each is a log-in of its own");
    check_definition(walk, node);
    if (!hk_walk_failed(walk) && token && endpoint && !hk_text_url_is_local(endpoint) &&
        hk_str_starts(hk_str_of(endpoint), hk_str_of("http:")))
        hk_walk_warn(walk, token->key_at,
                     "the session token goes out unencrypted: the endpoint is http, not https");
}
