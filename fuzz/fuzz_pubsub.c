/* SPDX-License-Identifier: Apache-2.0 */
/* What Pub/Sub or somebody in its place may say, behind a first byte that is how many messages were in the request; and the same bytes as a
 * service account's key. Texts are bounded, ids are all there or none, and no error shows what the key holds. */
#include <string.h>

#include "fuzz.h"
#include "sink/pubsub/impl.h"

enum {
    MANY = 16
};

static void check_answer(struct hk_str body, size_t n)
{
    struct hk_pubsub_id ids[MANY];
    struct hk_pubsub_error error;
    static const int statuses[] = {200, 302, 400, 401, 404, 413, 429, 500, 503};
    if (hk_pubsub_ids_read(body, ids, n))
        for (size_t i = 0; i < n; i++)
            MUST(strnlen(ids[i].text, sizeof ids[i].text) < sizeof ids[i].text);
    for (size_t i = 0; i < sizeof statuses / sizeof statuses[0]; i++) {
        bool maybe = false, some = false;
        hk_pubsub_error_read(body, statuses[i], &error);
        MUST(error.code[0] && strnlen(error.code, sizeof error.code) < sizeof error.code);
        MUST(strnlen(error.words, sizeof error.words) < sizeof error.words);
        enum hk_fault fault = hk_pubsub_fault(&error, statuses[i], &maybe, &some);
        MUST(fault != HK_FAULT_NONE);
        MUST(!some || (!maybe && fault == HK_FAULT_BROKER_REFUSED)); /* or a batch would be sent twice */
    }
    int may = hk_pubsub_permission_read(body, "pubsub.topics.publish");
    MUST(may >= -1 && may <= 1);
}

static void check_key(struct hk_str key)
{
    struct hk_buf out;
    struct hk_err err = {.message = ""};
    hk_buf_init(&out, 8192);
    enum hk_code rc = hk_pubsub_jwt_make(key, 1763500000, &out, &err);
    MUST(rc == HK_OK || (rc == HK_DENIED && err.message[0]));
    /* The type is shown, whatever stands in it; the key never is. */
    MUST(!strstr(err.message, "PRIVATE KEY") || strncmp(err.message, "its \"type\" is ", 14) == 0);
    hk_buf_fini(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 65536)
        return 0;
    const struct hk_str body = {(const char *)data + 1, size - 1};
    check_answer(body, data[0] % (MANY + 1));
    check_key(body);
    return 0;
}
