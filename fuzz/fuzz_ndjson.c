/* SPDX-License-Identifier: Apache-2.0 */
/* A line of `enqueue --ndjson`: what is taken is an object by jansson's reading, with an event type or a destination as texts, and a payload
 * that is either the text of a string or, byte for byte, a piece of the line that is JSON itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "desk/ndjson.h"
#include "fuzz.h"

static bool contains(struct hk_str s, struct hk_str needle)
{
    for (size_t i = 0; i + needle.len <= s.len; i++)
        if (memcmp(s.ptr + i, needle.ptr, needle.len) == 0)
            return true;
    return false;
}

static void check_payload(struct hk_str line, const json_t *root, const struct hk_ndjson *m)
{
    const json_t *value = json_object_get(root, "payload");
    struct hk_str taken = {m->item.message.payload, m->item.message.payload_len};
    if (json_is_string(value)) {
        MUST(hk_str_eq(taken, (struct hk_str){json_string_value(value), json_string_length(value)}));
        return;
    }
    if (value == NULL || json_is_null(value))
        return;
    MUST(taken.len > 0 && contains(line, taken));
    json_t *again =
        json_loadb(taken.ptr, taken.len, JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    MUST(again != NULL && json_equal(again, value));
    json_decref(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str line = {(const char *)data, size};
    struct hk_ndjson m = {.line = NULL};
    struct hk_err err = {.message = ""};
    if (size > 8192)
        return 0;
    enum hk_code rc = hk_ndjson_read(line, &m, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    if (rc != HK_OK) {
        MUST(err.message[0] != '\0');
        return 0;
    }
    json_t *root = json_loadb(line.ptr, line.len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, NULL);
    MUST(json_is_object(root));
    check_payload(line, root, &m);
    json_decref(root);
    hk_ndjson_free(&m);
    return 0;
}
