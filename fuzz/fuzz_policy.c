/* SPDX-License-Identifier: Apache-2.0 */
/* `policy show`: whatever policies a configuration has, what is printed of each is a configuration that is accepted, has the same policy, and
 * is printed as the same text again. Any bytes as the file. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "cli/policies.h"
#include "config/config.h"
#include "fuzz.h"

static const char *get(void *arg, const char *name)
{
    (void)arg;
    return strcmp(name, "N") == 0 ? "5" : NULL;
}

static enum hk_code read_file(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    (void)arg, (void)path, (void)out;
    return hk_err_set(err, HK_NOTFOUND, "not here");
}

static struct hk_config *parse(struct hk_str text)
{
    const struct hk_config_env env = {.get = get, .read_file = read_file, .foreign_custom = true};
    struct hk_config *config = NULL;
    struct hk_diags diags;
    hk_diags_init(&diags);
    enum hk_code rc = hk_config_parse(text.ptr, text.len, "f", &env, &diags, &config);
    MUST((rc == HK_OK) == (config != NULL));
    hk_diags_fini(&diags);
    return config;
}

static void check_policy(const struct hk_policy *policy)
{
    struct hk_buf first, second;
    char shown[HK_POLICY_TEXT];
    hk_buf_init(&first, 1 << 20);
    hk_buf_init(&second, 1 << 20);
    hk_policy_yaml(policy, &first);
    MUST(hk_buf_status(&first) == HK_OK);
    struct hk_config *again = parse(hk_buf_str(&first));
    MUST(again != NULL);
    const struct hk_policy *other = hk_policies_get(again->policies, hk_policy_name(policy));
    MUST(other != NULL);
    hk_policy_yaml(other, &second);
    if (hk_policy_ops(policy, NULL) == NULL) /* else it says, in a comment, that code decides */
        MUST(hk_str_eq(hk_buf_str(&first), hk_buf_str(&second)));
    MUST(strlen(hk_policy_backoff_text(hk_policy_backoff(policy), shown)) < sizeof shown);
    MUST(strlen(hk_policy_jitter_text(hk_policy_jitter(policy), shown)) < sizeof shown);
    hk_config_free(again);
    hk_buf_fini(&first);
    hk_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_policy *policy = NULL;
    if (size > 4096)
        return 0;
    struct hk_config *config = parse((struct hk_str){(const char *)data, size});
    for (size_t i = 0; config != NULL && (policy = hk_policies_at(config->policies, i)) != NULL; i++)
        check_policy(policy);
    hk_config_free(config);
    return 0;
}
