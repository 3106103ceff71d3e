/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as proto-JSON: what is taken is an object by jansson's reading, every text lies whole in memory with its terminator, and a
 * duration that was read is written so that it reads back the same. */
#include <string.h>

#include <jansson.h>

#include "admin/tasks/proto.h"
#include "base/str.h"
#include "fuzz.h"
#include "payload/target.h"

struct inner {
    uint32_t given;
    int64_t wait, count;
    double rate;
};

struct outer {
    uint32_t given;
    struct hk_str text, bytes;
    int64_t when, word;
    struct hk_proto_map map;
    struct inner inner;
};

static const struct hk_proto_word words[] = {{"NONE", 0}, {"POST", 1}, {NULL, 0}};
static const struct hk_proto_field inner_fields[] = {
    {"max_backoff", HK_PROTO_DURATION, offsetof(struct inner, wait), NULL, NULL},
    {"max_attempts", HK_PROTO_INT32, offsetof(struct inner, count), NULL, NULL},
    {"rate", HK_PROTO_DOUBLE, offsetof(struct inner, rate), NULL, NULL}};
static const struct hk_proto_type inner_type = {inner_fields, 3, offsetof(struct inner, given)};
static const struct hk_proto_field fields[] = {
    {"name", HK_PROTO_TEXT, offsetof(struct outer, text), NULL, NULL},
    {"body", HK_PROTO_BYTES, offsetof(struct outer, bytes), NULL, NULL},
    {"schedule_time", HK_PROTO_TIME, offsetof(struct outer, when), NULL, NULL},
    {"http_method", HK_PROTO_ENUM, offsetof(struct outer, word), NULL, words},
    {"headers", HK_PROTO_MAP, offsetof(struct outer, map), NULL, NULL},
    {"retry_config", HK_PROTO_MESSAGE, offsetof(struct outer, inner), &inner_type, NULL},
    {"view", HK_PROTO_SKIP, 0, NULL, NULL},
};
static const struct hk_proto_type type = {fields, 7, offsetof(struct outer, given)};

static void check_duration(int64_t ms)
{
    struct hk_buf text;
    struct hk_json json;
    int64_t again = -1;
    hk_buf_init(&text, 100);
    hk_json_init(&json, &text, false);
    hk_json_object(&json);
    hk_proto_put_duration(&json, "d", ms);
    hk_json_end(&json);
    struct hk_str whole = hk_buf_str(&text); /* {"d":"…s"} */
    MUST(whole.len > 8 && hk_proto_duration((struct hk_str){whole.ptr + 6, whole.len - 8}, &again) &&
         again == ms);
    hk_buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str text = {(const char *)data, size};
    struct hk_pool mem = {NULL};
    struct outer out = {.given = 0};
    struct hk_err err = {.message = ""};
    char url[HK_TARGET_URL_MAX + 1];
    enum hk_code rc = hk_proto_read(text, &type, &mem, &out, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    MUST(rc == HK_OK || err.message[0]);
    if (rc == HK_OK && hk_str_trim(text).len) {
        json_t *root = json_loadb(text.ptr, text.len, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL);
        MUST(!root || json_is_object(root)); /* jansson refuses some numbers, and halves of pairs */
        json_decref(root);
        MUST(!out.text.len || out.text.ptr[out.text.len] == '\0');
        MUST(out.map.n <= HK_PROTO_MAP_MAX);
        if (out.inner.given & 1)
            check_duration(out.inner.wait);
    }
    (void)hk_target_timeout_ms(text);
    (void)hk_target_url_wrong(text);
    (void)hk_target_read(text, HK_TARGET_URL, url, sizeof url);
    hk_pool_fini(&mem);
    return 0;
}
