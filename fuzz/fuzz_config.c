/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a configuration file. It is accepted whole or refused with positions; what is accepted keeps the
 * promises that the relay relies on; and a secret never shows in a message. Touches no environment and no files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/config.h"
#include "config/yaml.h"
#include "fuzz.h"

#define SECRET "whsec_Zq9xSecretZq9xSecretZq9xSecretZq"

static void demand(bool holds, const char *what)
{
    if (holds)
        return;
    (void)fprintf(stderr, "violated: %s\n", what);
    abort();
}

static const char *get(void *arg, const char *name)
{
    (void)arg;
    if (strcmp(name, "S") == 0)
        return SECRET;
    return strcmp(name, "N") == 0 ? "5" : NULL;
}

static enum hk_code read_file(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    (void)arg;
    if (strcmp(path, "s") != 0)
        return hk_err_set(err, HK_NOTFOUND, "not here");
    return hk_buf_adds(out, SECRET "\n");
}

static bool contains(struct hk_str s, const char *needle)
{
    size_t len = strlen(needle);
    for (size_t i = 0; i + len <= s.len; i++) {
        if (memcmp(s.ptr + i, needle, len) == 0)
            return true;
    }
    return false;
}

static void check_diags(const struct hk_diags *diags, struct hk_str input)
{
    bool known = contains(input, "Zq9x"); /* then it is no secret */
    size_t bad = 0;
    demand(!diags->nomem, "there is memory");
    demand(diags->n <= HK_DIAGS_MAX && diags->n <= diags->errors + diags->warnings, "the list is bounded");
    for (size_t i = 0; i < diags->n; i++) {
        const struct hk_diag *diag = &diags->items[i];
        const struct hk_diag *before = i ? diag - 1 : diag;
        demand(diag->at.line > 0 && diag->at.col > 0, "every message has a place");
        demand(before->at.line < diag->at.line ||
                   (before->at.line == diag->at.line && before->at.col <= diag->at.col),
               "messages are in file order");
        demand(diag->message[0] != '\0', "no message is empty");
        demand(!strchr(diag->message, '\n') && !strchr(diag->message, '\x1b'),
               "a message is one harmless line");
        demand(hk_yaml_text_ok(hk_str_of(diag->message), &bad), "messages are UTF-8");
        demand(known || !strstr(diag->message, "Zq9x"), "a secret is never shown");
    }
}

static void check_destination(const struct hk_config *config, const struct hk_conf_destination *d)
{
    struct hk_err err;
    demand(d->name && d->name[0], "a destination has a name");
    struct hk_servers servers;
    demand(!hk_conf_servers(d) || hk_conf_servers_parse(d, &servers), "a broker's URL names servers");
    demand(d->kind != HK_KIND_KAFKA || (d->kafka.brokers && d->kafka.topic),
           "kafka without brokers or topic");
    demand(d->kind != HK_KIND_HTTP || (d->http.url && (d->http.url[4] == ':' || d->http.url[5] == ':')),
           "a destination goes somewhere");
    demand(hk_policies_get(config->policies, d->policy) != NULL, "its policy exists");
    demand(!d->has_breaker || hk_breaker_options_check(&d->breaker, &err) == HK_OK,
           "its breaker is sensible");
    demand(d->limits.rate_per_s <= 0 || d->limits.burst > 0, "a rate has a burst");
    for (size_t i = 0; hk_conf_header(&d->http, i); i++)
        demand(!strpbrk(hk_conf_header(&d->http, i)->value, "\r\n"), "a header is one line");
}

static bool has_destination(const struct hk_config *config, const char *name)
{
    const struct hk_conf_destination *d = NULL;
    for (size_t i = 0; (d = hk_config_destination(config, i)) != NULL; i++) {
        if (strcmp(d->name, name) == 0)
            return true;
    }
    return false;
}

static void check_config(const struct hk_config *config)
{
    struct hk_err err;
    const struct hk_policy *policy = NULL;
    for (size_t i = 0; (policy = hk_policies_at(config->policies, i)) != NULL; i++)
        demand(hk_policy_check(policy, &err) == HK_OK, "every policy ends");
    demand(hk_policies_get(config->policies, config->default_policy) ==
               hk_policies_get(config->policies, NULL),
           "the default is set");
    demand(config->relay.max_payload_bytes <= config->relay.batch_bytes, "a payload fits in a batch");
    for (size_t i = 0; hk_config_destination(config, i); i++)
        check_destination(config, hk_config_destination(config, i));
    for (size_t i = 0; hk_config_route(config, i); i++) {
        const struct hk_conf_route *route = hk_config_route(config, i);
        demand(route->event_type && route->destinations.n > 0, "a route goes somewhere");
        for (size_t k = 0; k < route->destinations.n; k++)
            demand(has_destination(config, hk_conf_text(&route->destinations, k)),
                   "a route's destination exists");
        for (size_t k = 1; k < route->destinations.n; k++)
            demand(strcmp(hk_conf_text(&route->destinations, k), hk_conf_text(&route->destinations, k - 1)) !=
                       0,
                   "no message goes anywhere twice");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_config_env env = {.get = get, .read_file = read_file, .foreign_custom = size % 2 == 1};
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse((const char *)data, size, "f", &env, &diags, &config);
    demand(rc == HK_OK || rc == HK_INVALID, "accepted or refused");
    demand((rc == HK_OK) == (diags.errors == 0), "refused for a reason");
    demand((rc == HK_OK) == (config != NULL), "all or nothing");
    check_diags(&diags, (struct hk_str){(const char *)data, size});
    if (config)
        check_config(config);
    hk_config_free(config);
    hk_diags_fini(&diags);
    return 0;
}
