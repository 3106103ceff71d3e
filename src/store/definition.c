/* SPDX-License-Identifier: Apache-2.0 */
/* The errors of all stores about a definition that is not in the state that the caller expects. */
#include "base/json.h"
#include "store/admin.h"

enum hk_code hk_definition_refused(int64_t wanted, int64_t was, struct hk_err *err)
{
    if (!was)
        return hk_err_set(err, HK_NOTFOUND, "there is no destination of that name in the store");
    if (wanted == HK_DEFINITION_MISSING)
        return hk_err_set(err, HK_CONFLICT,
                          "a destination of that name exists; 'destinations update' changes it");
    return hk_err_set(err, HK_CONFLICT, "the destination has version %lld now, not %lld: look at it again",
                      (long long)was, (long long)wanted);
}

enum hk_code hk_definition_full(uint32_t max, struct hk_err *err)
{
    return hk_err_set(err, HK_RANGE,
                      "the store keeps %lu destinations already, as many as \"definitions.max\" lets in",
                      (unsigned long)max);
}

enum hk_code hk_definition_busy(struct hk_err *err)
{
    return hk_err_set(err, HK_CONFLICT,
                      "messages wait for it. Without it they become dead letters: --force deletes it anyway");
}

void hk_definition_names(const struct hk_str *names, size_t n, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_array(&json);
    for (size_t i = 0; i < n; i++)
        hk_json_str(&json, names[i]);
    hk_json_end(&json);
}
