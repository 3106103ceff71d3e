/* SPDX-License-Identifier: Apache-2.0 */
/* The options of destinations in Google's cloud, and what must hold between them. */
#include <stddef.h>
#include <string.h>

#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

#define AT(member) .offset = offsetof(struct hk_conf_pubsub, member)

static const struct hk_word cloudevents_words[] = {
    {"none", HK_CLOUDEVENTS_NONE}, {"binary", HK_CLOUDEVENTS_BINARY}, {NULL, 0}};

/* They stand in the path of requests as they are. */
static bool is_plain(struct hk_str s, const char *others)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) &&
            (!s.ptr[i] || !strchr(others, s.ptr[i])))
            return false;
    return s.len > 0 && hk_ascii_isalpha(s.ptr[0]);
}

static bool check_project(struct hk_str s, char why[HK_WHY_MAX])
{
    return is_plain(s, "-.:") || hk_text_refuse(why, "must be the id of a project such as shop-prod");
}

static bool check_topic(struct hk_str s, char why[HK_WHY_MAX])
{
    return is_plain(s, "-_.~+") ||
           hk_text_refuse(why, "must be the id of a topic such as orders, without projects/…/topics/");
}

static const struct hk_opt pubsub_opts[] = {
    {"project", HK_OPT_STRING, HK_OPT_REQUIRED, AT(project), .min = 1, .max = 128, .check = check_project,
     .example = "shop-prod", .help = "id of the project that has the topic"},
    {"topic", HK_OPT_STRING, HK_OPT_REQUIRED, AT(topic), .min = 3, .max = 255, .check = check_topic,
     .example = "orders", .help = "id of the topic"},
    {"endpoint", HK_OPT_STRING, AT(endpoint), .min = 1, .max = 256, .check = hk_text_check_http_url,
     .otherwise = "https://pubsub.googleapis.com", .example = "https://asia-northeast1-pubsub.googleapis.com",
     .help = "that of a region, for ordering keys, or another one"},
    {"emulator", HK_OPT_STRING, AT(emulator), .min = 1, .max = 256, .check = hk_text_check_http_url,
     .otherwise = "none", .example = "http://127.0.0.1:8085",
     .help = "an emulator, in place of the endpoint; requests carry no credentials"},
    {"credentials_file", HK_OPT_PATH, AT(credentials_file), .min = 1, .max = 4096,
     .otherwise = "GOOGLE_APPLICATION_CREDENTIALS, or the metadata server",
     .example = "/etc/hikyaku/google.json",
     .help = "the JSON key of a service account, read again each hour"},
    {"credentials", HK_OPT_STRING, HK_OPT_SECRET, AT(credentials), .min = 1, .max = 16384,
     .otherwise = "none", .example = "\"${GOOGLE_KEY}\"", .help = "the same as text"},
    {"metadata_server", HK_OPT_STRING, AT(metadata_server), .min = 1, .max = 256,
     .check = hk_text_check_http_url, .otherwise = "http://169.254.169.254",
     .example = "http://metadata.google.internal",
     .help = "where tokens come from on a machine of Google's; without credentials of either kind"},
    {"ca_file", HK_OPT_PATH, AT(ca_file), .min = 1, .max = 4096, .otherwise = "the system's",
     .example = "ca.pem", .help = "authorities to trust, PEM"},
    {"cloudevents", HK_OPT_ENUM, AT(cloudevents), .words = cloudevents_words, .fallback = "none",
     .help = "CloudEvents 1.0 attributes (ce-id …)"},
};

const struct hk_opt_table hk_pubsub_table = {
    .name = "pubsub",
    .where = "destinations.NAME.pubsub",
    .size = sizeof(struct hk_conf_pubsub),
    .opts = pubsub_opts,
    .n_opts = HK_COUNT(pubsub_opts),
    .example = "{ project: shop-prod, topic: orders }",
    .check = hk_check_pubsub,
};

static void refuse_pair(struct hk_walk *walk, const struct hk_yaml_node *node, const char *one,
                        const char *other)
{
    const struct hk_yaml_node *a = hk_yaml_get(node, one);
    if (a && hk_yaml_get(node, other))
        hk_walk_error(walk, a->key_at, "give \"%s\" or \"%s\", not both", one, other);
}

void hk_check_pubsub(struct hk_walk *walk, const struct hk_yaml_node *node, void *section)
{
    static const char *const logins[] = {"credentials", "credentials_file", "metadata_server"};
    const struct hk_conf_pubsub *pubsub = section;
    const struct hk_yaml_node *endpoint = hk_yaml_get(node, "endpoint");
    for (size_t i = 0; i < HK_COUNT(logins); i++) {
        refuse_pair(walk, node, "emulator", logins[i]);
        for (size_t k = i + 1; k < HK_COUNT(logins); k++)
            refuse_pair(walk, node, logins[i], logins[k]);
    }
    refuse_pair(walk, node, "emulator", "endpoint");
    /* Whoever writes to the store must not act with the credentials of the relay's host. */
    if (walk->is_definition && !hk_yaml_get(node, "credentials") && !hk_yaml_get(node, "credentials_file") &&
        !hk_yaml_get(node, "emulator"))
        hk_walk_error(walk, hk_walk_at(walk, node, "topic"),
                      "a definition needs \"credentials\" or \"credentials_file\": those of the relay's "
                      "environment are for its configuration file alone");
    if (!hk_walk_failed(walk) && pubsub->endpoint && !hk_text_url_is_local(pubsub->endpoint) &&
        hk_str_starts(hk_str_of(pubsub->endpoint), hk_str_of("http:")))
        hk_walk_warn(walk, endpoint->key_at,
                     "access tokens go out unencrypted: the endpoint is http, not https");
}
