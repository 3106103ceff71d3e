/* SPDX-License-Identifier: Apache-2.0 */
/* Up to the first zero byte, a payload; behind it, a receiver's answer. The error is one printable line of bounded length, whatever
 * the answer is, it repeats no masked text, and its group is that of the same line again. */
#include <string.h>

#include "base/utf8.h"
#include "core/letter.h"
#include "fuzz.h"
#include "payload/answer.h"

static const char *const mask_paths[] = {"a", "b.c", "c[*]"};

static bool contains(struct hk_str s, struct hk_str needle)
{
    for (size_t i = 0; i + needle.len <= s.len; i++)
        if (memcmp(s.ptr + i, needle.ptr, needle.len) == 0)
            return true;
    return false;
}

static bool is_plain(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]))
            return false;
    return true;
}

/* Plain texts that the first path leads to; of the rest fuzz_mask takes care. */
static void check_hidden(struct hk_str payload, struct hk_str error)
{
    struct hk_path *path = NULL;
    struct hk_path_state state;
    struct hk_path_walk walk;
    struct hk_scan_token token;
    struct hk_err err;
    MUST(hk_path_parse(hk_str_of(mask_paths[0]), &path, &err) == HK_OK);
    const struct hk_path *one[] = {path};
    hk_path_walk_init(&walk, payload, one, &state, 1);
    for (enum hk_scan_kind kind = hk_path_walk_next(&walk, &token);
         hk_scan_check(payload, NULL) == HK_OK && kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_path_walk_next(&walk, &token)) {
        struct hk_str inside = {token.raw.ptr + 1, token.raw.len >= 2 ? token.raw.len - 2 : 0};
        /* longer than any word of ours */
        if (kind == HK_SCAN_STRING && hk_path_walk_hit(&walk) && inside.len > 8 && is_plain(inside))
            MUST(!contains(error, inside));
    }
    hk_path_free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_mask_rule rule = {.paths = mask_paths, .n_paths = 3};
    struct hk_masks *masks = NULL;
    struct hk_err err;
    char out[HK_ANSWER_ERROR_MAX], print[2][HK_FINGERPRINT_MAX];
    if (size > 3 * HK_ANSWER_READ)
        return 0;
    struct hk_str body = {(const char *)data, size};
    struct hk_str payload = hk_str_cut(&body, '\0');
    const struct hk_mask_about about = {.event_type = hk_str_of("E"), .payloads = &payload, .n_payloads = 1};
    MUST(hk_masks_new(&rule, 1, &masks, &err) == HK_OK);
    struct hk_str error = hk_answer_error(masks, &about, 422, body, out);
    MUST(error.len < sizeof out && error.len == strlen(out));
    for (size_t at = 0; at < error.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){error.ptr + at, error.len - at}, &c);
        MUST(c != HK_UTF8_BAD && !hk_utf8_is_unruly(c));
    }
    check_hidden(payload, error);
    for (int i = 0; i < 2; i++)
        hk_fingerprint(HK_CLASS_PERMANENT, hk_str_of("R"), hk_str_of("d"), error, print[i]);
    MUST(strcmp(print[0], print[1]) == 0);
    hk_masks_free(masks);
    return 0;
}
