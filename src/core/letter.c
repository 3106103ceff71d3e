/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a letter's states, whose fault it was, and the fingerprint that puts letters which failed in the same way into
 * one group.
 *
 * The fingerprint is stored: a change of the folding below splits every group that exists. It hashes class, reason,
 * destination and the error's text with
 *   - each word that has a digit or an @ in it, or is a hexadecimal number of letters alone, as '#'
 *   - whatever stands in quotes as '#', those of Japanese included
 *   - several of them in a list as one
 *   - blanks and controls as one blank, none at the ends, and ASCII capitals as small letters. */
#include <string.h>

#include "base/str.h"
#include "core/letter.h"

static const char *const status_names[HK_NLETTER_STATUSES] = {
    [HK_LETTER_FAILED] = "failed",
    [HK_LETTER_RETRYING] = "retrying",
    [HK_LETTER_RESOLVED] = "resolved",
    [HK_LETTER_DISCARDED] = "discarded",
};

static const char *const blame_names[HK_NBLAMES] = {
    [HK_BLAME_DESTINATION] = "destination",
    [HK_BLAME_PIPELINE] = "pipeline",
};

/* The index of `name`, `n` when it is none of them. */
static unsigned find(const char *const *names, unsigned n, struct hk_str name)
{
    unsigned i = 0;
    while (i < n && !hk_str_eq(name, hk_str_of(names[i])))
        i++;
    return i;
}

const char *hk_letter_status_name(enum hk_letter_status status)
{
    return (unsigned)status < HK_NLETTER_STATUSES ? status_names[status] : "unknown";
}

bool hk_letter_status_by_name(struct hk_str name, enum hk_letter_status *out)
{
    unsigned i = find(status_names, HK_NLETTER_STATUSES, name);
    if (i == HK_NLETTER_STATUSES)
        return false;
    *out = (enum hk_letter_status)i;
    return true;
}

const char *hk_blame_name(enum hk_blame blame)
{
    return (unsigned)blame < HK_NBLAMES ? blame_names[blame] : "unknown";
}

bool hk_blame_by_name(struct hk_str name, enum hk_blame *out)
{
    unsigned i = find(blame_names, HK_NBLAMES, name);
    if (i == HK_NBLAMES)
        return false;
    *out = (enum hk_blame)i;
    return true;
}

/* ---- whose fault ---- */

/* A code that is not listed, a policy's own ones included, is given to what happened at the destination. */
static const struct {
    const char *reason;
    bool answered; /* ours even when some attempt was answered: that answer is not what it died of */
} ours[] = {
    {"VALIDATION_ERROR", false},
    {"SCHEMA_MISMATCH", false},
    {"PAYLOAD_TOO_LARGE", false},
    {"BLOCKED_BY_POLICY", false},
    {"UNKNOWN_DESTINATION", false},
    {"LOCAL_ERROR", false},
    {"EXPIRED", true},
    {"RELAY_CRASHED", true},
    {"LIMITED", true},
};

/* The last attempt's cause says more than these. */
static const char *const gave_up[] = {
    "RETRY_EXHAUSTED", "DEADLINE_EXCEEDED", "RETRY_BUDGET_SPENT", "BREAKER_OPEN", "LIMITED",
};

enum {
    N_OURS = sizeof ours / sizeof ours[0],
    N_GAVE_UP = sizeof gave_up / sizeof gave_up[0]
};

enum hk_blame hk_blame_of(struct hk_str reason, struct hk_str cause, int status)
{
    if (cause.len && find(gave_up, N_GAVE_UP, reason) < N_GAVE_UP)
        reason = cause;
    for (size_t i = 0; i < N_OURS; i++)
        if (hk_str_eq(reason, hk_str_of(ours[i].reason)))
            return status && !ours[i].answered ? HK_BLAME_DESTINATION : HK_BLAME_PIPELINE;
    return HK_BLAME_DESTINATION;
}

/* ---- the fingerprint ---- */

enum {
    HEX_LETTERS = 8, /* that a word of letters alone needs to be taken for a number */
    FOLDED_MAX =
        256 /* bytes of folded text that count: the ends of long texts are cut by whoever gave them */
};

/* FNV-1a over what was folded so far. */
struct fold {
    uint64_t hash;
    size_t n;
    char last;         /* '\0' = nothing yet */
    bool comma, blank; /* stand before what comes next, if anything does */
};

static void hash_byte(struct fold *f, char c)
{
    f->hash = (f->hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
}

static void hash_field(struct fold *f, struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        hash_byte(f, s.ptr[i]);
    hash_byte(f, '\0');
}

static void put_byte(struct fold *f, char c)
{
    if (f->n++ < FOLDED_MAX)
        hash_byte(f, c);
    f->last = c;
}

static void put(struct fold *f, char c)
{
    if (f->comma)
        put_byte(f, ',');
    if (f->blank)
        put_byte(f, ' ');
    f->comma = f->blank = false;
    put_byte(f, hk_ascii_lower(c));
}

static void put_folded(struct fold *f)
{
    if (f->last != '#')
        put(f, '#');
    f->comma = f->blank = false;
}

static bool is_blank(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Commas and blanks wait: they go when one folded word follows another. */
static void put_other(struct fold *f, char c)
{
    if (is_blank(c))
        f->blank = f->last != '\0';
    else if (c == ',' && f->last == '#' && !f->comma)
        f->comma = true;
    else
        put(f, c);
}

static bool is_alnum(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c);
}

static bool is_hex_letter(char c)
{
    char l = hk_ascii_lower(c);
    return l >= 'a' && l <= 'f';
}

/* A word begins and ends with a letter or digit; inside it may join several: a UUID, 10.0.0.1, a.b@example.com. */
static size_t word_length(struct hk_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        if (is_alnum(s.ptr[i]))
            n = i + 1;
        else if (i == 0 || i != n || !memchr("_-.@+", s.ptr[i], 5))
            break;
    return n;
}

static bool word_folds(struct hk_str word)
{
    size_t hex = 0;
    for (size_t i = 0; i < word.len; i++) {
        if (hk_ascii_isdigit(word.ptr[i]) || word.ptr[i] == '@')
            return true;
        hex += is_hex_letter(word.ptr[i]);
    }
    return hex == word.len && hex >= HEX_LETTERS;
}

static void put_word(struct fold *f, struct hk_str word)
{
    if (word_folds(word)) {
        put_folded(f);
        return;
    }
    for (size_t i = 0; i < word.len; i++)
        put(f, word.ptr[i]);
}

static const struct {
    const char *open, *close;
} quotes[] = {
    {"\"", "\""},         {"'", "'"}, {"`", "`"}, {"\u201c", "\u201d"}, /* English, curled */
    {"\u300c", "\u300d"},                                               /* Japanese */
    {"\u300e", "\u300f"},
};

static bool ends_quote(struct hk_str rest, struct hk_str mark)
{
    return hk_str_starts(rest, mark) && (rest.len == mark.len || !is_alnum(rest.ptr[mark.len]));
}

/* The length of what stands in quotes at the beginning of `s`, with them; 0 = nothing does. An apostrophe inside a word
 * neither opens (words are read whole) nor closes. */
static size_t quoted_length(struct hk_str s)
{
    for (size_t q = 0; q < sizeof quotes / sizeof quotes[0]; q++) {
        struct hk_str open = hk_str_of(quotes[q].open), mark = hk_str_of(quotes[q].close);
        if (!hk_str_starts(s, open))
            continue;
        for (size_t i = open.len; i < s.len; i++)
            if (ends_quote((struct hk_str){s.ptr + i, s.len - i}, mark))
                return i + mark.len;
    }
    return 0;
}

/* 0-9 in the full width of Japanese text. */
static bool is_wide_digit(struct hk_str s)
{
    return s.len >= 3 && memcmp(s.ptr, "\xef\xbc", 2) == 0 && (unsigned char)s.ptr[2] >= 0x90 &&
           (unsigned char)s.ptr[2] <= 0x99;
}

/* Folds what stands at the beginning of `s`, and says how much that was. */
static size_t fold_next(struct fold *f, struct hk_str s, bool after_word)
{
    size_t n = word_length(s);
    if (n) {
        put_word(f, (struct hk_str){s.ptr, n});
        return n;
    }
    n = after_word ? 0 : quoted_length(s);
    if (!n && is_wide_digit(s))
        n = 3;
    if (n) {
        put_folded(f);
        return n;
    }
    put_other(f, s.ptr[0]);
    return 1;
}

static void hash_folded(struct fold *f, struct hk_str s)
{
    size_t at = 0;
    bool after_word = false;
    while (at < s.len && f->n < FOLDED_MAX) {
        size_t n = fold_next(f, (struct hk_str){s.ptr + at, s.len - at}, after_word);
        at += n;
        after_word = is_alnum(s.ptr[at - 1]);
    }
}

/* Spreads what FNV leaves in the low bits (the finish of splitmix64). */
static uint64_t mixed(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void hk_fingerprint(enum hk_class failure_class, struct hk_str reason, struct hk_str destination,
                    struct hk_str error, char out[HK_FINGERPRINT_MAX])
{
    struct fold f = {.hash = UINT64_C(0xcbf29ce484222325)};
    hash_field(&f, hk_str_of(hk_class_name(failure_class)));
    hash_field(&f, reason);
    hash_field(&f, destination);
    hash_folded(&f, error);
    uint64_t hash = mixed(f.hash);
    for (size_t i = 0; i < HK_FINGERPRINT_MAX - 1; i++)
        out[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    out[HK_FINGERPRINT_MAX - 1] = '\0';
}
