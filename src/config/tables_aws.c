/* SPDX-License-Identifier: Apache-2.0 */
/* The options of destinations at AWS, and what must hold between them. */
#include <stddef.h>

#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

#define AT(member) .offset = offsetof(struct hk_conf_sqs, member)
#define KEY        .min = 1, .check = hk_text_check_printable, .otherwise = "none"

static const struct hk_word cloudevents_words[] = {
    {"none", HK_CLOUDEVENTS_NONE}, {"structured", HK_CLOUDEVENTS_STRUCTURED}, {NULL, 0}};

static bool check_region(struct hk_str s, char why[HK_WHY_MAX])
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isdigit(s.ptr[i]) && s.ptr[i] != '-' && (s.ptr[i] < 'a' || s.ptr[i] > 'z'))
            return hk_text_refuse(why, "must be the name of a region such as ap-northeast-1");
    return true;
}

static const struct hk_opt sqs_opts[] = {
    {"queue_url", HK_OPT_STRING, HK_OPT_REQUIRED, AT(queue_url), .min = 1, .max = 1024,
     .check = hk_text_check_http_url, .example = "https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs",
     .help = "URL of the queue, as SQS shows it; a name that ends with .fifo is a FIFO queue"},
    {"region", HK_OPT_STRING, HK_OPT_REQUIRED, AT(region), .min = 1, .max = 64, .check = check_region,
     .example = "ap-northeast-1", .help = "region to sign requests for"},
    {"endpoint", HK_OPT_STRING, AT(endpoint), .min = 1, .max = 256, .check = hk_text_check_http_url,
     .otherwise = "that of queue_url", .example = "https://vpce-1.sqs.ap-northeast-1.vpce.amazonaws.com",
     .help = "scheme, host and port to send requests to, instead of those of queue_url"},
    {"access_key_id", HK_OPT_STRING, AT(access_key_id), KEY, .max = 128, .example = "\"${AWS_KEY_ID}\"",
     .help = "access key; without it the relay takes credentials_file, the environment, or the usual file"},
    {"secret_access_key", HK_OPT_STRING, HK_OPT_SECRET, AT(secret_access_key), KEY, .max = 256,
     .example = "\"${AWS_KEY}\"", .help = "secret of access_key_id"},
    {"session_token", HK_OPT_STRING, HK_OPT_SECRET, AT(session_token), KEY, .max = 4000,
     .example = "\"${AWS_TOKEN}\"", .help = "session token of temporary credentials"},
    {"credentials_file", HK_OPT_PATH, AT(credentials_file), .min = 1, .max = 4096, .otherwise = "none",
     .example = "/etc/hikyaku/aws",
     .help = "file in the format of ~/.aws/credentials; the relay reads it again each minute"},
    {"profile", HK_OPT_STRING, AT(profile), .min = 1, .max = 128, .check = hk_text_check_printable,
     .otherwise = "AWS_PROFILE, or default", .example = "relay", .help = "section of the credentials file"},
    {"ca_file", HK_OPT_PATH, AT(ca_file), .min = 1, .max = 4096, .otherwise = "the system's",
     .example = "ca.pem", .help = "certificate authorities to trust, PEM"},
    {"cloudevents", HK_OPT_ENUM, AT(cloudevents), .words = cloudevents_words, .fallback = "none",
     .help = "wrap the payload in a CloudEvents 1.0 event"},
};

const struct hk_opt_table hk_sqs_table = {
    .name = "sqs",
    .where = "destinations.NAME.sqs",
    .size = sizeof(struct hk_conf_sqs),
    .opts = sqs_opts,
    .n_opts = HK_COUNT(sqs_opts),
    .example =
        "{ queue_url: \"https://sqs.ap-northeast-1.amazonaws.com/123456789012/jobs\", region: ap-northeast-1 }",
    .check = hk_check_sqs,
};

void hk_check_sqs(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    const struct hk_conf_sqs *sqs = section;
    const char *endpoint = sqs->endpoint ? sqs->endpoint : sqs->queue_url;
    const struct hk_yaml_node *key = hk_yaml_get(node, "access_key_id"),
                              *token = hk_yaml_get(node, "session_token"),
                              *file = hk_yaml_get(node, "credentials_file");
    hk_check_pair(walk, node, "access_key_id", "secret_access_key");
    hk_check_pair(walk, node, "secret_access_key", "access_key_id");
    hk_check_pair(walk, node, "session_token", "access_key_id");
    if (key && file)
        hk_walk_error(walk, file->key_at,
                      "give \"access_key_id\" or \"credentials_file\": each is a log-in of its own");
    /* Whoever writes to the store must not act with the credentials of the relay's host. */
    if (walk->is_definition && !key && !file)
        hk_walk_error(
            walk, hk_walk_at(walk, node, "queue_url"),
            "a definition needs \"access_key_id\" and \"secret_access_key\", or \"credentials_file\": "
            "those of the relay's environment are for its configuration file alone");
    if (!hk_walk_failed(walk) && token && endpoint && !hk_text_url_is_local(endpoint) &&
        hk_str_starts(hk_str_of(endpoint), hk_str_of("http:")))
        hk_walk_warn(walk, token->key_at,
                     "the session token goes out unencrypted: the endpoint is http, not https");
}
