/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions that SQL cannot express: text anywhere in a letter, and values in its payload. Called for each of up to a million letters, so it
 * allocates only for payloads in base64, and for sealed ones. */
#include <string.h>

#include "base/str.h"
#include "core/encoding.h"
#include "payload/codec.h"
#include "payload/filter_impl.h"

static bool contains(struct hk_str s, struct hk_str needle)
{
    const char low = hk_ascii_lower(needle.ptr[0]);
    for (; s.len >= needle.len; s.ptr++, s.len--) {
        char c = *s.ptr;
        if ((c | 0x20) == (low | 0x20) && hk_str_eqi((struct hk_str){s.ptr, needle.len}, needle))
            return true;
    }
    return false;
}

/* As it is written, or as its strings are meant. */
static bool payload_contains(struct hk_str payload, struct hk_str needle)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    if (contains(payload, needle))
        return true;
    if (!payload.len || !memchr(payload.ptr, '\\', payload.len))
        return false;
    hk_scan_init(&scan, payload);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return false;
        if ((kind == HK_SCAN_STRING || kind == HK_SCAN_KEY) && token.escaped &&
            hk_scan_text_containsi(token.raw, needle))
            return true;
    }
}

static bool has_text(const struct hk_letter *letter, struct hk_str payload, struct hk_str needle)
{
    return contains(letter->error, needle) || contains(letter->message_id, needle) ||
           contains(letter->correlation_id, needle) || contains(letter->event_type, needle) ||
           contains(letter->destination, needle) || payload_contains(payload, needle);
}

static bool is_value(const struct hk_scan_token *token, const char *value)
{
    if (token->kind == HK_SCAN_OBJECT || token->kind == HK_SCAN_ARRAY)
        return false;
    if (token->kind == HK_SCAN_STRING)
        return hk_scan_text_eq(token->raw, hk_str_of(value));
    return hk_str_eq(token->raw, hk_str_of(value));
}

/* One walk for all terms. A payload that was cut, or breaks off being JSON, is looked at up to there. */
static bool has_values(const struct hk_filter *f, struct hk_str payload)
{
    struct hk_path_state states[HK_FILTER_TERMS_MAX];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    uint64_t open = f->n_paths == 64 ? UINT64_MAX : (UINT64_C(1) << f->n_paths) - 1;
    hk_path_walk_init(&walk, payload, (const struct hk_path *const *)f->paths, states, f->n_paths);
    while (open) {
        enum hk_scan_kind kind = hk_path_walk_next(&walk, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return false;
        for (size_t i = 0; i < f->n_paths; i++) {
            if (states[i].flags & HK_PATH_HIT && is_value(&token, f->values[i]))
                open &= ~(UINT64_C(1) << i);
        }
    }
    return true;
}

static bool fits(const struct hk_filter *f, const struct hk_letter *letter, struct hk_str payload)
{
    for (size_t i = 0; i < f->n_texts; i++) {
        if (!has_text(letter, payload, hk_str_of(f->texts[i])))
            return false;
    }
    return has_values(f, payload);
}

/* ---- what may be asked before ---- */

static const char *longest(const char *const *of, size_t n)
{
    const char *best = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!best || strlen(of[i]) > strlen(best))
            best = of[i];
    }
    return best;
}

/* May it stand without quotes? Too much may: then it is only looked at more closely. */
static bool is_bare(const char *value)
{
    return value[strspn(value, "0123456789+-.eE")] == '\0' || strcmp(value, "true") == 0 ||
           strcmp(value, "false") == 0 || strcmp(value, "null") == 0;
}

/* What a payload has that says `text` in another way than with its own bytes. Of plain ASCII only \u00XX can stand for a
 * character; so payloads that write all else as \uXXXX are not looked at in vain. */
static const char *escapes_of(const char *text)
{
    const char *found = "\\u00";
    for (const char *at = text; *at; at++) {
        unsigned char c = (unsigned char)*at;
        if (c < 0x20 || c == '"' || c == '\\' || c == '/')
            return "\\";
        if (c >= 0x80)
            found = "\\u";
    }
    return found;
}

static void sieve_value(struct hk_filter *f, const char *value, struct hk_letter_sieve *out)
{
    size_t len = strlen(value);
    out->value_escapes = escapes_of(value);
    out->value_alone = len > 0 && is_bare(value);
    out->value = out->value_alone ? value : f->quoted;
    f->quoted[0] = f->quoted[len + 1] = '"';
    memcpy(f->quoted + 1, value, len);
    f->quoted[len + 2] = '\0';
}

static void sieve_text(struct hk_filter *f, const char *text, struct hk_letter_sieve *out)
{
    size_t len = strlen(text);
    out->text_escapes = escapes_of(text);
    out->text = f->lower;
    for (size_t i = 0; i <= len; i++)
        f->lower[i] = hk_ascii_lower(text[i]);
}

void hk_filter_sieve(struct hk_filter *f, struct hk_letter_sieve *out)
{
    const char *value = longest(f->values, f->n_paths), *text = longest(f->texts, f->n_texts);
    *out = (struct hk_letter_sieve){.value = NULL};
    if (value)
        sieve_value(f, value, out);
    if (text)
        sieve_text(f, text, out);
}

/* ---- for those who may not see all ---- */

enum hk_code hk_filter_veil(struct hk_filter *f, const struct hk_masks *masks, struct hk_err *err)
{
    struct hk_buf name;
    if (!masks || !f->query.match)
        return HK_OK;
    for (size_t i = 0; i < f->n_paths; i++) {
        if (!hk_masks_cover(masks, f->query.event_type, f->paths[i]))
            continue;
        hk_buf_init(&name, HK_FILTER_TEXT_MAX);
        hk_path_text(f->paths[i], &name);
        enum hk_code rc =
            hk_err_set(err, HK_DENIED, "payload.%.200s is masked: a filter on it needs the right to reveal",
                       hk_buf_cstr(&name));
        hk_buf_fini(&name);
        return rc;
    }
    f->masks = masks;
    f->query.sieve = (struct hk_letter_sieve){.value = NULL};
    return HK_OK;
}

void hk_filter_open_sealed(struct hk_filter *f, struct hk_keyring *keys)
{
    f->keys = keys;
    f->lacks = (struct hk_err){.code = HK_OK};
    if (keys)
        f->query.sieve = (struct hk_letter_sieve){.value = NULL};
}

bool hk_filter_opens(const struct hk_filter *f)
{
    return f->opens;
}

void hk_filter_set_opens(struct hk_filter *f)
{
    if (!f->query.match)
        return;
    f->opens = true;
    f->lack = &f->lacks;
    f->query.unsure = &f->lacks;
}

bool hk_filter_has_text(const struct hk_filter *f)
{
    return f->n_texts > 0;
}

/* As the caller would be shown it; of the error nothing, which may repeat what is masked. */
static bool fits_veiled(const struct hk_filter *f, const struct hk_letter *letter, struct hk_str payload)
{
    struct hk_letter seen = *letter;
    struct hk_buf shown;
    seen.error = (struct hk_str){"", 0};
    hk_buf_init(&shown, 2 * payload.len + 4096);
    bool found = hk_mask_payload(f->masks, letter->event_type, payload, &shown) == HK_OK &&
                 fits(f, &seen, hk_buf_str(&shown));
    hk_buf_fini(&shown);
    return found;
}

/* ---- the whole ---- */

/* HK_NOMEM: nobody knows what is in it. `*out` is empty where a sealed payload stays closed. */
static enum hk_code read_payload(const struct hk_filter *f, const struct hk_letter *letter,
                                 struct hk_pool *mem, struct hk_str *out)
{
    const struct hk_codec_of of = {
        .keys = f->keys, .encoding = letter->encoding, .message_id = letter->message_id};
    struct hk_err err = {.message = ""};
    bool is_sealed = hk_encoding_is_sealed(letter->encoding);
    enum hk_code rc = is_sealed && f->keys ? hk_codec_open(&of, letter->payload, mem, out, &err)
                                           : hk_codec_beginning(letter->encoding, letter->payload, mem, out);
    if (is_sealed && f->lack && !f->keys)
        (void)hk_err_set(f->lack, HK_UNAVAILABLE, "no key is configured on this relay (seal.keys)");
    else if (is_sealed && f->lack && rc != HK_OK && rc != HK_INVALID)
        (void)hk_err_set(f->lack, rc, "%s", err.message);
    if (rc != HK_OK)
        *out = is_sealed ? (struct hk_str){"", 0} : letter->payload;
    return rc;
}

bool hk_filter_match(const void *arg, const struct hk_letter *letter)
{
    const struct hk_filter *f = arg;
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str plain;
    enum hk_code rc = read_payload(f, letter, &mem, &plain);
    bool is_veiled = f->masks && hk_masks_fit(f->masks, letter->event_type);
    bool found = rc != HK_NOMEM && /* it is not found rather than acted upon */
                 (is_veiled ? fits_veiled(f, letter, plain) : fits(f, letter, plain));
    hk_pool_wipe(&mem);
    return found;
}
