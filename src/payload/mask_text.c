/* SPDX-License-Identifier: Apache-2.0 */
/* Texts about a message that may repeat what its payload hides: a receiver's answer quotes the field that it refuses. The values are
 * looked for in every form in which such texts write them; all that any of them covers becomes one ***. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "payload/mask_impl.h"

enum {
    STRING_MIN = 3, /* bytes; what is shorter stands everywhere */
    DIGITS_MIN = 4,
    WORD_MIN = 4,
    CUT_MIN = 1024, /* bytes of a string that may have been cut; 4 KiB of an answer are kept */
    SECRETS_MAX = 4096,
    STEPS_MAX = 50000000 /* bytes compared: about a tenth of a second */
};

struct span {
    size_t at, len;
};

/* The values of one payload. */
struct secrets {
    struct hk_buf bytes; /* all of them, one after another */
    struct hk_buf spans; /* of struct span */
    size_t n;
    bool too_many;
    bool starts[256]; /* with which bytes an occurrence may begin */
};

/* ---- collecting ---- */

/* What was added to `bytes` since `at` is a secret. */
static void add_secret(struct secrets *s, size_t at, size_t least)
{
    struct span span = {at, s->bytes.len - at};
    if (span.len < least || s->bytes.status != HK_OK)
        return;
    s->too_many = s->too_many || s->n == SECRETS_MAX;
    if (s->too_many)
        return;
    hk_buf_add(&s->spans, &span, sizeof span);
    s->starts[(unsigned char)s->bytes.data[at]] = true;
    s->n++;
}

static size_t count_digits(struct hk_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += hk_ascii_isdigit(s.ptr[i]);
    return n;
}

/* 1234.50 is written 1234.5 by many; as long as enough of it is left. */
static struct hk_str without_zeros(struct hk_str number)
{
    struct hk_str shorter = number;
    bool whole = !memchr(number.ptr, '.', number.len);
    if (whole || memchr(number.ptr, 'e', number.len) || memchr(number.ptr, 'E', number.len))
        return number;
    while (shorter.ptr[shorter.len - 1] == '0')
        shorter.len--;
    shorter.len -= shorter.ptr[shorter.len - 1] == '.';
    return count_digits(shorter) >= DIGITS_MIN ? shorter : number;
}

/* Names inside of something hidden are hidden as well, unless they are plain words: texts need those. */
static bool is_plain_name(struct hk_str raw)
{
    for (size_t i = 1; i + 1 < raw.len; i++) {
        if (!hk_ascii_isalpha(raw.ptr[i]) && raw.ptr[i] != '_' && raw.ptr[i] != '-')
            return false;
    }
    return true;
}

static void add_token(struct secrets *s, const struct hk_scan_token *token)
{
    size_t at = s->bytes.len;
    if (token->kind == HK_SCAN_STRING || (token->kind == HK_SCAN_KEY && !is_plain_name(token->raw))) {
        hk_scan_text(token->raw, &s->bytes);
        add_secret(s, at, STRING_MIN);
    } else if (token->kind == HK_SCAN_NUMBER && count_digits(token->raw) >= DIGITS_MIN) {
        struct hk_str number = without_zeros(token->raw);
        hk_buf_add(&s->bytes, number.ptr, number.len);
        add_secret(s, at, DIGITS_MIN);
    }
}

static void add_all_inside(struct secrets *s, struct hk_str json)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, json);
    for (;;) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return;
        add_token(s, &token);
    }
}

static void add_masked(struct secrets *s, const struct hk_mask_paths *paths, struct hk_str payload)
{
    struct hk_path_walk walk;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_path_walk_init(&walk, payload, paths->paths, paths->states, paths->n);
    while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        bool hit = hk_path_walk_hit(&walk);
        size_t end = token.at + token.raw.len;
        if (hit && (kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_path_walk_leave(&walk, &end))
            return;
        if (hit)
            add_all_inside(s, (struct hk_str){payload.ptr + token.at, end - token.at});
    }
}

static bool ends_word(char c)
{
    return (unsigned char)c <= ' ' || strchr("\"'{}[](),:;<>=&\\", c);
}

static void add_words(struct secrets *s, struct hk_str payload)
{
    size_t i = 0;
    while (i < payload.len) {
        size_t from = i, at = s->bytes.len;
        while (i < payload.len && !ends_word(payload.ptr[i]))
            i++;
        if (i - from >= WORD_MIN) {
            hk_buf_add(&s->bytes, payload.ptr + from, i - from);
            add_secret(s, at, WORD_MIN);
        }
        i += i == from;
    }
}

/* ---- finding ---- */

static int hex_value(char c)
{
    char l = hk_ascii_lower(c);
    return hk_ascii_isdigit(c) ? c - '0' : l >= 'a' && l <= 'f' ? l - 'a' + 10 : -1;
}

/* `n` hexadecimal digits at `pos`; -1: they are not there. */
static long hex_at(struct hk_str text, size_t pos, size_t n)
{
    long value = 0;
    if (text.len - pos < n)
        return -1;
    for (size_t i = 0; i < n; i++) {
        int digit = hex_value(text.ptr[pos + i]);
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* A backslash in any form at `pos`: \, %5c, or the rest of \u005c behind another. Its bytes; 0: none. */
static size_t backslash_at(struct hk_str text, size_t pos, bool behind)
{
    if (pos >= text.len)
        return 0;
    char c = text.ptr[pos];
    if (c == '\\')
        return 1;
    if (c == '%' && hex_at(text, pos + 1, 2) == '\\')
        return 3;
    return c == 'u' && behind && hex_at(text, pos + 1, 4) == '\\' ? 5 : 0;
}

/* Backslashes count for nothing on either side, however often a text was put into quotes again. */
static size_t skip_backslashes(struct hk_str text, size_t pos)
{
    size_t start = pos;
    for (size_t n = 0; (n = backslash_at(text, pos, pos > start)) > 0;)
        pos += n;
    return pos;
}

static size_t count_backslashes(struct hk_str text, size_t pos, size_t end)
{
    size_t count = 0;
    while (pos < end) {
        size_t n = backslash_at(text, pos, false);
        count += n > 0;
        pos += n ? n : 1;
    }
    return count;
}

/* A \u escape whose u is at `pos`, as UTF-8: bytes of text it takes, the second half of a pair included; 0: none. */
static size_t unit_at(struct hk_str text, size_t pos, char out[4], size_t *out_len)
{
    char quoted[14] = "\"\\u";
    struct hk_scan_chars chars;
    size_t end = pos + 5;
    if (pos >= text.len || text.ptr[pos] != 'u' || hex_at(text, pos + 1, 4) < 0)
        return 0;
    memcpy(quoted + 3, text.ptr + pos + 1, 4);
    size_t n = 7, second = skip_backslashes(text, end);
    bool pair = hex_at(text, pos + 1, 4) >> 10 == 0x36 && second > end && second < text.len &&
                text.ptr[second] == 'u' && hex_at(text, second + 1, 4) >> 10 == 0x37;
    if (pair) {
        quoted[n++] = '\\';
        memcpy(quoted + n, text.ptr + second, 5);
        n += 5;
        end = second + 5;
    }
    quoted[n++] = '"';
    hk_scan_chars_init(&chars, (struct hk_str){quoted, n});
    *out_len = hk_scan_chars_next(&chars, out);
    return end - pos;
}

/* One character of the text at `pos` against the secret from `*i` on: bytes of text it takes, 0 when it is another one. */
static size_t step(struct hk_str text, size_t pos, struct hk_str secret, size_t *i)
{
    static const char letters[] = "bfnrt";
    static const char meant[] = "\b\f\n\r\t";
    size_t p = skip_backslashes(text, pos), n = 0;
    char c[4];
    if (p >= text.len)
        return p - pos;
    const char *letter = p > pos && text.ptr[p] ? strchr(letters, text.ptr[p]) : NULL;
    size_t unit = p > pos ? unit_at(text, p, c, &n) : 0;
    size_t taken = 0;
    if (unit && n <= secret.len - *i && memcmp(c, secret.ptr + *i, n) == 0) {
        *i += n;
        return p + unit - pos;
    }
    if (text.ptr[p] == '%' && p + 1 < text.len && hex_at(text, p + 1, 2) == (unsigned char)secret.ptr[*i])
        taken = 3;
    else if (text.ptr[p] == secret.ptr[*i] || (text.ptr[p] == '+' && secret.ptr[*i] == ' ') ||
             (letter && meant[letter - letters] == secret.ptr[*i]))
        taken = 1;
    *i += taken > 0;
    return taken ? p + taken - pos : 0;
}

/* Bytes of text that the secret takes at `pos` in any of its forms; 0: it is not there. A text that was cut may end inside of it. */
static size_t find_at(struct hk_str text, size_t pos, struct hk_str secret, size_t *steps)
{
    size_t i = 0, p = pos, matched = 0;
    if (text.len - pos >= secret.len && memcmp(text.ptr + pos, secret.ptr, secret.len) == 0) {
        *steps += secret.len;
        return secret.len;
    }
    for (;;) {
        while (i < secret.len && secret.ptr[i] == '\\')
            i++;
        if (i >= secret.len || p >= text.len)
            break;
        size_t before = i, n = step(text, p, secret, &i);
        ++*steps;
        if (!n)
            return 0;
        matched += i - before;
        p += n;
    }
    if (matched >= STRING_MIN || i < secret.len)
        return matched >= STRING_MIN ? p - pos : 0;
    if (secret.ptr[secret.len - 1] == '\\')
        p = skip_backslashes(text, p);
    bool all = count_backslashes(text, pos, p) >= count_backslashes(secret, 0, secret.len);
    return all ? p - pos : 0; /* hardly anything but backslashes: then those must be there */
}

/* Marks in `covered` what any secret covers. */
static void mark(const struct secrets *s, struct hk_str text, char *covered, size_t *steps)
{
    for (size_t pos = 0; pos < text.len && *steps < STEPS_MAX; pos++) {
        char c = text.ptr[pos];
        if (!s->starts[(unsigned char)c] && c != '\\' && c != '%' && c != '+')
            continue;
        for (size_t k = 0; k < s->n && *steps < STEPS_MAX; k++) {
            struct span span;
            memcpy(&span, s->spans.data + k * sizeof span, sizeof span);
            size_t n = find_at(text, pos, (struct hk_str){s->bytes.data + span.at, span.len}, steps);
            memset(covered + pos, 1, n);
            *steps += n + 1;
        }
    }
}

/* A detail holds as much of an answer as is kept, as a string of JSON: like a text of its own it may have been cut inside of a
 * secret. */
static void mark_cut(const struct secrets *s, struct hk_str json, char *covered, size_t *steps)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, json);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_STRING && token.raw.len >= CUT_MIN)
            mark(s, (struct hk_str){token.raw.ptr + 1, token.raw.len - 2}, covered + token.at + 1, steps);
    }
}

static void write_uncovered(struct hk_str text, const char *covered, struct hk_buf *out)
{
    size_t i = 0;
    while (i < text.len) {
        const char *end = memchr(covered + i, covered[i] ? 0 : 1, text.len - i);
        size_t n = end ? (size_t)(end - (covered + i)) : text.len - i;
        if (covered[i])
            hk_buf_adds(out, HK_MASKED);
        else
            hk_buf_add(out, text.ptr + i, n);
        i += n;
    }
}

static enum hk_code hide_secrets(const struct secrets *s, struct hk_str text, struct hk_buf *out)
{
    if (s->bytes.status != HK_OK || s->spans.status != HK_OK)
        return hk_mask_fail(out, HK_NOMEM);
    if (!s->n)
        return hk_buf_add(out, text.ptr, text.len);
    char *covered = hk_mem_zalloc(text.len, 1);
    if (!covered)
        return hk_mask_fail(out, HK_NOMEM);
    size_t steps = 0;
    mark(s, text, covered, &steps);
    mark_cut(s, text, covered, &steps);
    if (!s->too_many && steps < STEPS_MAX)
        write_uncovered(text, covered, out);
    else
        hk_buf_addf(out, "(hidden: %zu bytes, too many masked values to look for)", text.len);
    hk_mem_free(covered);
    return out->status;
}

/* ---- other sources, other texts ---- */

static void init_secrets(struct secrets *s)
{
    *s = (struct secrets){.n = 0};
    hk_buf_init(&s->bytes, SIZE_MAX / 4);
    hk_buf_init(&s->spans, SIZE_MAX / 4);
}

static void free_secrets(struct secrets *s)
{
    hk_buf_fini(&s->bytes);
    hk_buf_fini(&s->spans);
}

static void add_header_values(struct secrets *s, const struct hk_masks *masks, struct hk_str event_type,
                              struct hk_str headers)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_buf name;
    bool secret = false;
    hk_buf_init(&name, SIZE_MAX / 4);
    hk_scan_init(&scan, headers);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_KEY) {
            hk_buf_reset(&name);
            if (hk_scan_text(token.raw, &name) != HK_OK)
                hk_mask_fail(&s->bytes, HK_NOMEM);
            secret = hk_mask_has_header(masks, event_type, hk_buf_str(&name));
        } else if (secret) {
            add_token(s, &token);
        }
    }
    hk_buf_fini(&name);
}

enum hk_code hk_mask_header_values(const struct hk_masks *masks, struct hk_str event_type,
                                   struct hk_str headers, struct hk_str text, struct hk_buf *out)
{
    struct secrets s;
    init_secrets(&s);
    if (masks && headers.len)
        add_header_values(&s, masks, event_type, headers);
    enum hk_code rc = hide_secrets(&s, text, out);
    free_secrets(&s);
    return rc;
}

/* Does any of them stand in this token? */
static bool holds(const struct secrets *s, struct hk_str text, size_t *steps)
{
    for (size_t pos = 0; pos < text.len && *steps < STEPS_MAX; pos++) {
        char c = text.ptr[pos];
        if (!s->starts[(unsigned char)c] && c != '\\' && c != '%' && c != '+')
            continue;
        for (size_t k = 0; k < s->n && *steps < STEPS_MAX; k++) {
            struct span span;
            memcpy(&span, s->spans.data + k * sizeof span, sizeof span);
            if (find_at(text, pos, (struct hk_str){s->bytes.data + span.at, span.len}, steps))
                return true;
            ++*steps;
        }
    }
    return false;
}

/* Whole tokens, so that it stays JSON. */
static void hide_tokens(const struct secrets *s, struct hk_str json, struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    size_t done = 0, steps = 0;
    hk_scan_init(&scan, json);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind != HK_SCAN_KEY && kind != HK_SCAN_STRING && kind != HK_SCAN_NUMBER)
            continue;
        /* with the byte behind it: nothing was cut here that could end inside of a secret */
        size_t end = token.at + token.raw.len, len = token.raw.len + (end < json.len);
        if (!holds(s, (struct hk_str){json.ptr + token.at, len}, &steps))
            continue;
        hk_buf_add(out, json.ptr + done, token.at - done);
        hk_buf_adds(out, "\"" HK_MASKED "\"");
        done = end;
    }
    hk_buf_add(out, json.ptr + done, json.len - done);
    if (steps >= STEPS_MAX) {
        hk_buf_reset(out);
        hk_buf_addf(out, "(hidden: %zu bytes, too many masked values to look for)", json.len);
    }
}

enum hk_code hk_mask_changed(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                             struct hk_str changed, struct hk_buf *out)
{
    struct hk_mask_paths paths;
    struct secrets s;
    struct hk_buf masked;
    init_secrets(&s);
    hk_buf_init(&masked, SIZE_MAX / 4);
    enum hk_code rc = hk_mask_paths_init(&paths, masks, event_type);
    if (rc == HK_OK)
        rc = hk_mask_payload(masks, event_type, changed, &masked);
    if (rc == HK_OK && paths.n) {
        if (hk_scan_check(payload, NULL) == HK_OK)
            add_masked(&s, &paths, payload);
        else
            add_words(&s, payload);
        rc = s.bytes.status != HK_OK ? s.bytes.status : s.spans.status;
    }
    if (rc != HK_OK)
        rc = hk_mask_fail(out, rc);
    else if (s.too_many)
        rc = hk_buf_addf(out, "(hidden: %zu bytes, too many masked values to look for)", changed.len);
    else
        hide_tokens(&s, hk_buf_str(&masked), out);
    hk_mask_paths_fini(&paths);
    hk_buf_fini(&masked);
    free_secrets(&s);
    return rc == HK_OK ? out->status : rc;
}

/* ---- the whole ---- */

static enum hk_code mask(const struct hk_mask_paths *paths, struct hk_str payload, struct hk_str text,
                         struct hk_buf *out)
{
    struct secrets s;
    struct hk_buf masked;
    hk_buf_init(&masked, SIZE_MAX / 4);
    init_secrets(&s);
    if (hk_scan_check(payload, NULL) == HK_OK)
        add_masked(&s, paths, payload);
    else
        add_words(&s, payload);
    if (hk_scan_check(text, NULL) == HK_OK) {
        hk_mask_json(paths, text, &masked);
        text = hk_buf_str(&masked);
    }
    enum hk_code rc = masked.status == HK_OK ? hide_secrets(&s, text, out) : hk_mask_fail(out, masked.status);
    hk_buf_fini(&masked);
    free_secrets(&s);
    return rc;
}

enum hk_code hk_mask_text(const struct hk_masks *masks, struct hk_str event_type, struct hk_str payload,
                          struct hk_str text, struct hk_buf *out)
{
    struct hk_mask_paths paths;
    enum hk_code rc = hk_mask_paths_init(&paths, masks, event_type);
    if (rc != HK_OK)
        rc = hk_mask_fail(out, rc);
    else if (!paths.n || !text.len)
        rc = hk_buf_add(out, text.ptr, text.len);
    else
        rc = mask(&paths, payload, text, out);
    hk_mask_paths_fini(&paths);
    return rc;
}
