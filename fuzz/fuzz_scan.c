/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as JSON: jansson takes and refuses the same, tokens stand in order inside of the text, what is laid out holds the same
 * tokens, and no number helper reads outside. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "payload/pretty.h"
#include "payload/scan.h"

/* 1 taken, 0 refused, -1 refused for what is beyond the grammar: size of numbers, halves of pairs. A zero byte is the end of the text
 * to it. */
static int jansson_takes(struct hk_str text)
{
    json_error_t error;
    if (memchr(text.ptr, 0, text.len))
        return -1;
    json_t *root = json_loadb(text.ptr, text.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);
    if (root) {
        json_decref(root);
        return 1;
    }
    bool beyond = json_error_code(&error) == json_error_numeric_overflow || strstr(error.text, "too big") ||
                  strstr(error.text, "invalid Unicode") || strstr(error.text, "maximum parsing depth");
    return beyond ? -1 : 0;
}

static void check_string(const struct hk_scan_token *token)
{
    struct hk_buf text;
    hk_buf_init(&text, (size_t)1 << 24);
    MUST(hk_scan_text(token->raw, &text) == HK_OK);
    MUST(hk_scan_text_eq(token->raw, hk_buf_str(&text)));
    MUST(text.len <= token->raw.len - 2);
    MUST(memchr(hk_buf_cstr(&text), 0, text.len) || hk_utf8_is_text(hk_buf_str(&text)));
    MUST(token->escaped ||
         hk_str_eq(hk_buf_str(&text), (struct hk_str){token->raw.ptr + 1, token->raw.len - 2}));
    hk_buf_fini(&text);
}

/* Reads it to its end; returns how that is. */
static enum hk_scan_kind walk(struct hk_str text)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    size_t end = 0;
    hk_scan_init(&scan, text);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR) {
            MUST(kind == HK_SCAN_END || (scan.why && scan.error_at <= text.len));
            MUST(kind == HK_SCAN_ERROR || scan.depth == 0);
            return kind;
        }
        MUST(token.at >= end && token.raw.ptr == text.ptr + token.at && token.raw.len > 0);
        end = token.at + token.raw.len;
        MUST(end <= text.len && end == scan.pos && scan.depth <= HK_SCAN_DEPTH_MAX);
        if (kind == HK_SCAN_STRING || kind == HK_SCAN_KEY)
            check_string(&token);
    }
}

static void check_laid_out(struct hk_str text)
{
    struct hk_buf once, twice;
    hk_buf_init(&once, (size_t)1 << 26);
    hk_buf_init(&twice, (size_t)1 << 26);
    MUST(hk_pretty_write(text, &once) == HK_OK && hk_pretty_write(hk_buf_str(&once), &twice) == HK_OK);
    MUST(hk_str_eq(hk_buf_str(&once), hk_buf_str(&twice)));
    hk_buf_fini(&once);
    hk_buf_fini(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str text = {(const char *)data, size};
    struct hk_err err;
    if (size == 0 || size > 65536)
        return 0;
    bool good = walk(text) == HK_SCAN_END;
    MUST((hk_scan_check(text, &err) == HK_OK) == good);
    int theirs = jansson_takes(text);
    MUST(theirs < 0 || good == theirs || (!good && strstr(err.message, "too deeply")));
    size_t at = 0;
    MUST(!hk_scan_has_big_integer(text, &at) || at < size);
    if (good)
        check_laid_out(text);
    return 0;
}
