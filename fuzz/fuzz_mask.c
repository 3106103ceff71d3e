/* SPDX-License-Identifier: Apache-2.0 */
/* Up to the first zero byte, a payload; behind it, a text about it. What the masks hide is not in what is shown of the payload at
 * those places, nothing else differs, and the text repeats no hidden value in any form that it is written in: as a text, as an answer that
 * repeats a header, and as what the payload was changed to. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "payload/mask.h"

static const char *const mask_paths[] = {"a", "b.c", "c[*]", "[0]", "[*].a"};
static const char *const mask_headers[] = {"b", "x-api-key"};

static bool contains(struct hk_str s, struct hk_str needle)
{
    for (size_t i = 0; i + needle.len <= s.len; i++) {
        if (memcmp(s.ptr + i, needle.ptr, needle.len) == 0)
            return true;
    }
    return false;
}

/* Stars may make a value again that begins or ends with them. */
static void check_absent(struct hk_str shown, struct hk_str secret, size_t least)
{
    if (secret.len >= least && !memchr(secret.ptr, '*', secret.len))
        MUST(!contains(shown, secret));
}

/* Every scalar that a path leads to; what is inside containers is left to unit tests. */
static void check_text(const struct hk_path *const *paths, struct hk_path_state *states, size_t n,
                       struct hk_str payload, struct hk_str shown)
{
    struct hk_path_walk walk;
    struct hk_scan_token token;
    hk_path_walk_init(&walk, payload, paths, states, n);
    for (;;) {
        enum hk_scan_kind kind = hk_path_walk_next(&walk, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return;
        if (!hk_path_walk_hit(&walk) || kind != HK_SCAN_STRING)
            continue;
        struct hk_buf value;
        hk_buf_init(&value, (size_t)1 << 20);
        MUST(hk_scan_text(token.raw, &value) == HK_OK);
        check_absent(shown, hk_buf_str(&value), 3);
        if (value.len >= 3)
            check_absent(shown, (struct hk_str){token.raw.ptr + 1, token.raw.len - 2}, 3);
        hk_buf_fini(&value);
    }
}

static bool is_plain(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]))
            return false;
    return true;
}

/* Values of masked header fields; plain ones, which cannot lie across two tokens. */
static void check_header_values(const struct hk_masks *masks, struct hk_str headers, struct hk_str shown)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    bool secret = false;
    hk_scan_init(&scan, headers);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        struct hk_str inside = {token.raw.ptr + 1, token.raw.len >= 2 ? token.raw.len - 2 : 0};
        if (kind == HK_SCAN_KEY)
            secret = !token.escaped && hk_mask_has_header(masks, hk_str_of("E"), inside);
        else if (kind == HK_SCAN_STRING && secret && is_plain(inside))
            check_absent(shown, inside, 3);
    }
}

/* What a payload was changed to shows none of the strings that the paths lead to in the old one. */
static void check_changed(const struct hk_masks *masks, const struct hk_path *const *paths,
                          struct hk_path_state *states, size_t n, struct hk_str payload,
                          struct hk_str changed)
{
    struct hk_buf shown;
    struct hk_path_walk walk;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_buf_init(&shown, (size_t)1 << 22);
    MUST(hk_mask_changed(masks, hk_str_of("E"), payload, changed, &shown) == HK_OK);
    bool was_json = hk_scan_check(changed, NULL) == HK_OK;
    struct hk_str out = hk_buf_str(&shown);
    MUST(!was_json || hk_scan_check(out, NULL) == HK_OK || hk_str_starts(out, hk_str_of("(hidden:")));
    hk_path_walk_init(&walk, payload, paths, states, n);
    while (was_json && hk_scan_check(payload, NULL) == HK_OK &&
           (kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        struct hk_str inside = {token.raw.ptr + 1, token.raw.len >= 2 ? token.raw.len - 2 : 0};
        if (kind == HK_SCAN_STRING && hk_path_walk_hit(&walk) && is_plain(inside))
            check_absent(out, inside, 3);
    }
    hk_buf_fini(&shown);
}

/* The same bytes, but for values that became "***". */
static void check_rest(struct hk_str payload, struct hk_str shown)
{
    struct hk_json_scan a, b;
    struct hk_scan_token x, y;
    size_t ax = 0, bx = 0;
    hk_scan_init(&a, payload);
    hk_scan_init(&b, shown);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&a, &x);
        enum hk_scan_kind other = hk_scan_next(&b, &y);
        if (kind == HK_SCAN_END) {
            MUST(other == HK_SCAN_END);
            break;
        }
        MUST(x.at - ax == y.at - bx && memcmp(payload.ptr + ax, shown.ptr + bx, x.at - ax) == 0);
        bool stars = other == HK_SCAN_STRING && hk_str_eq(y.raw, hk_str_of("\"***\""));
        MUST(stars || hk_str_eq(x.raw, y.raw));
        MUST(!stars || (kind != HK_SCAN_OBJECT && kind != HK_SCAN_ARRAY) || hk_scan_leave(&a));
        ax = a.pos;
        bx = b.pos;
    }
    MUST(payload.len - ax == shown.len - bx &&
         memcmp(payload.ptr + ax, shown.ptr + bx, payload.len - ax) == 0);
}

static void check(const struct hk_masks *masks, struct hk_str payload, struct hk_str text)
{
    const size_t n = sizeof mask_paths / sizeof mask_paths[0];
    struct hk_path *own[sizeof mask_paths / sizeof mask_paths[0]];
    const struct hk_path *paths[sizeof mask_paths / sizeof mask_paths[0]];
    struct hk_path_state states[sizeof mask_paths / sizeof mask_paths[0]];
    struct hk_buf shown;
    struct hk_err err;
    struct hk_str type = hk_str_of("E");
    for (size_t i = 0; i < n; i++) {
        MUST(hk_path_parse(hk_str_of(mask_paths[i]), &own[i], &err) == HK_OK);
        paths[i] = own[i];
    }
    hk_buf_init(&shown, (size_t)1 << 22);
    MUST(hk_mask_payload(masks, type, payload, &shown) == HK_OK);
    if (hk_scan_check(payload, NULL) == HK_OK)
        check_rest(payload, hk_buf_str(&shown));
    hk_buf_reset(&shown);
    MUST(hk_mask_headers(masks, type, payload, &shown) == HK_OK);
    hk_buf_reset(&shown);
    MUST(hk_mask_text(masks, type, payload, text, &shown) == HK_OK);
    if (hk_scan_check(payload, NULL) == HK_OK)
        check_text(paths, states, n, payload, hk_buf_str(&shown));
    hk_buf_reset(&shown);
    MUST(hk_mask_header_values(masks, type, payload, text, &shown) == HK_OK);
    check_header_values(masks, payload, hk_buf_str(&shown));
    hk_buf_fini(&shown);
    check_changed(masks, paths, states, n, payload, text);
    for (size_t i = 0; i < n; i++)
        hk_path_free(own[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct hk_mask_rule rule = {.paths = mask_paths,
                                      .n_paths = sizeof mask_paths / sizeof mask_paths[0],
                                      .headers = mask_headers,
                                      .n_headers = 2};
    struct hk_masks *masks = NULL;
    struct hk_err err;
    if (size > 4096)
        return 0;
    struct hk_str text = {(const char *)data, size};
    struct hk_str payload = hk_str_cut(&text, '\0');
    MUST(hk_masks_new(&rule, 1, &masks, &err) == HK_OK);
    check(masks, payload, text);
    hk_masks_free(masks);
    return 0;
}
