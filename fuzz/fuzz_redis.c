/* SPDX-License-Identifier: Apache-2.0 */
/* What Redis replies: what is read stays within its bytes. */
#include <string.h>

#include "fuzz.h"
#include "sink/redis/wire.h"

static void look(const struct hk_resp *reply, struct hk_str in)
{
    struct hk_str to;
    bool ask = false;
    int64_t ms = 0;
    MUST(!reply->text.len ||
         (reply->text.ptr >= in.ptr && reply->text.ptr + reply->text.len <= in.ptr + in.len));
    if (hk_resp_moved(reply->text, &to, &ask))
        MUST(to.len && to.ptr + to.len <= reply->text.ptr + reply->text.len);
    if (hk_resp_entry(reply->text, &ms))
        MUST(ms >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size ? size : 1); /* so that reading past the end is seen */
    MUST(copy);
    if (size)
        memcpy(copy, data, size);
    struct hk_str rest = {copy, size};
    struct hk_resp reply, cut;
    const char *why = NULL;
    size_t used = 0, cut_used = 0;
    enum hk_resp_next next = HK_RESP_MORE;
    while (rest.len && (next = hk_resp_read(rest, &reply, &used, &why)) == HK_RESP_WHOLE) {
        MUST(used >= 3 && used <= rest.len);
        look(&reply, rest);
        MUST(hk_resp_read((struct hk_str){rest.ptr, used - 1}, &cut, &cut_used, &why) == HK_RESP_MORE);
        (void)fuzz_take(&rest, used);
    }
    if (rest.len && next == HK_RESP_WRONG)
        MUST(why && why[0]);
    free(copy);
    return 0;
}
