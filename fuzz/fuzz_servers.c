/* SPDX-License-Identifier: Apache-2.0 */
/* URLs of brokers, and names with fields in them. */
#include <string.h>

#include "base/servers.h"
#include "fuzz.h"
#include "payload/names.h"

static void check_servers(struct hk_str url)
{
    struct hk_servers s;
    const char *wrong = hk_servers_parse(url, &hk_scheme_amqp, &s);
    if (wrong) {
        MUST(wrong[0]);
        return;
    }
    MUST(s.n >= 1 && s.n <= HK_SERVERS_MAX);
    MUST(strlen(s.user) < HK_SERVERS_TEXT_MAX && strlen(s.path) < HK_SERVERS_TEXT_MAX);
    for (size_t i = 0; i < s.n; i++)
        MUST(s.at[i].host[0] && strlen(s.at[i].host) < HK_SERVER_HOST_MAX && s.at[i].port &&
             !strpbrk(s.at[i].host, "\r\n /@"));
}

static void check_name(struct hk_str pattern)
{
    const struct hk_name_values values = {{"t", 1}, {"k", 1}, {"d", 1}};
    struct hk_buf out;
    if (hk_name_wrong(pattern))
        return;
    hk_buf_init(&out, 1 << 20);
    hk_name_expand(pattern, &values, &out);
    MUST(hk_buf_status(&out) == HK_OK && out.len <= pattern.len);
    MUST(!out.len || (!memchr(out.data, '{', out.len) && !memchr(out.data, '\n', out.len)));
    hk_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* so that reading past the end is seen */
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    check_servers((struct hk_str){copy, size});
    check_name((struct hk_str){copy, size});
    free(copy);
    return 0;
}
