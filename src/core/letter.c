/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a letter's states, whose fault it was, and the fingerprint that puts letters which failed in the same way into
 * one group.
 *
 * The fingerprint is stored: a change of the folding below splits every group that exists, needs a new HK_FINGERPRINT_VERSION, and a
 * relay then makes those of open letters anew (store/letters.h, regroup). It hashes class, reason, destination and the error's text
 * with (docs/reasons.md says it for people)
 *   - each word that has a digit or an @ in it, is a hexadecimal number of letters alone, or base64 with its padding, as '#', with
 *     the sign before it; what masks left (***) as well
 *   - names of months and days beside a number as that number, and what is counted by one in the singular
 *   - what stands in quotes as '#', those of Japanese included; but one word (or path) without blanks that does not fold stays, for
 *     it names a field: 'currency' is missing is another failure than 'price' is missing
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
    {"VALIDATION_ERROR", false},    {"SCHEMA_MISMATCH", false},
    {"PAYLOAD_TOO_LARGE", false},   {"BLOCKED_BY_POLICY", false},
    {"UNKNOWN_DESTINATION", false}, {"LOCAL_ERROR", false},
    {"PROXY_UNAVAILABLE", false},   {"PROXY_AUTH_FAILED", false},
    {"PROXY_REFUSED", false},       {"EXPIRED", true},
    {"RELAY_CRASHED", true},        {"LIMITED", true},
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
    BASE64_MIN = 12, /* characters before the padding */
    NAME_MAX = 40,   /* bytes of a quoted name; a longer text is no name */
    PLURAL_MIN = 4,
    FOLDED_MAX =
        256 /* bytes of folded text that count: the ends of long texts are cut by whoever gave them */
};

/* FNV-1a over what was folded so far. */
struct fold {
    uint64_t hash;
    size_t n;
    char last;         /* '\0' = nothing yet */
    bool comma, blank; /* written before the next part, if there is one */
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

/* Does the character at `i` join the parts of one word? As in a UUID, 10.0.0.1:80, a.b@example.com. */
static bool joins(struct hk_str s, size_t i)
{
    char c = s.ptr[i], before = s.ptr[i - 1];
    bool between = i + 1 < s.len && hk_ascii_isdigit(before) && hk_ascii_isdigit(s.ptr[i + 1]);
    if (c == ':')
        return between; /* a time, a port */
    return is_alnum(before) ? memchr("_-.@+", c, 5) != NULL : (c == '_' || c == '-') && strchr("_-", before);
}

/* A word begins and ends with a letter or digit. */
static size_t word_length(struct hk_str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        if (is_alnum(s.ptr[i]))
            n = i + 1;
        else if (i == 0 || !joins(s, i))
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

/* With its padding; 0: it is none. */
static size_t base64_length(struct hk_str s)
{
    size_t n = 0;
    while (n < s.len && (is_alnum(s.ptr[n]) || memchr("+/_-", s.ptr[n], 4)))
        n++;
    size_t end = n;
    while (end < s.len && end < n + 2 && s.ptr[end] == '=')
        end++;
    return n >= BASE64_MIN && end > n && (end == s.len || !is_alnum(s.ptr[end])) ? end : 0;
}

static bool is_calendar(struct hk_str word)
{
    static const char *const calendar[] = {
        "january",   "february",  "march",   "april",    "may",      "june",   "july",
        "august",    "september", "october", "november", "december", "monday", "tuesday",
        "wednesday", "thursday",  "friday",  "saturday", "sunday",
    };
    for (size_t i = 0; i < sizeof calendar / sizeof calendar[0]; i++)
        if (hk_str_eqi(word, hk_str_of(calendar[i])) || hk_str_eqi(word, (struct hk_str){calendar[i], 3}))
            return true;
    return hk_str_eqi(word, hk_str_of("am")) || hk_str_eqi(word, hk_str_of("pm"));
}

/* Is a number the next that comes? */
static bool number_follows(struct hk_str rest)
{
    size_t i = 0;
    while (i < rest.len && (is_blank(rest.ptr[i]) || rest.ptr[i] == ',' || rest.ptr[i] == '.'))
        i++;
    return i < rest.len && hk_ascii_isdigit(rest.ptr[i]);
}

static void put_word(struct fold *f, struct hk_str word, struct hk_str rest)
{
    if (word_folds(word) || (is_calendar(word) && (f->last == '#' || number_follows(rest)))) {
        put_folded(f);
        return;
    }
    bool counted = f->last == '#' && !f->comma && word.len >= PLURAL_MIN;
    if (counted && hk_ascii_lower(word.ptr[word.len - 1]) == 's')
        word.len--;
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

/* A quoted text. */
struct quoted {
    size_t len; /* with them; 0 = nothing does */
    struct hk_str inside;
};

/* At the beginning of `s`. An apostrophe inside a word neither opens (words are read whole) nor closes. */
static struct quoted find_quoted(struct hk_str s)
{
    for (size_t q = 0; q < sizeof quotes / sizeof quotes[0]; q++) {
        struct hk_str open = hk_str_of(quotes[q].open), mark = hk_str_of(quotes[q].close);
        if (!hk_str_starts(s, open))
            continue;
        for (size_t i = open.len; i < s.len; i++)
            if (ends_quote((struct hk_str){s.ptr + i, s.len - i}, mark))
                return (struct quoted){i + mark.len, {s.ptr + open.len, i - open.len}};
    }
    return (struct quoted){.len = 0};
}

/* 0-9 in the full width of Japanese text. */
static bool is_wide_digit(struct hk_str s)
{
    return s.len >= 3 && memcmp(s.ptr, "\xef\xbc", 2) == 0 && (unsigned char)s.ptr[2] >= 0x90 &&
           (unsigned char)s.ptr[2] <= 0x99;
}

/* One word, or a path of them: something in it does not fold, and no blank is there, those of Japanese included. */
static bool is_name(struct hk_str inside)
{
    bool name = false;
    if (inside.len > NAME_MAX)
        return false;
    for (size_t i = 0; i < inside.len;) {
        struct hk_str rest = {inside.ptr + i, inside.len - i};
        size_t n = word_length(rest);
        if (is_blank(rest.ptr[0]) || hk_str_starts(rest, hk_str_of("\u3000")))
            return false;
        if (is_wide_digit(rest))
            n = 3;
        else
            name =
                name || (n ? !word_folds((struct hk_str){rest.ptr, n}) : (unsigned char)rest.ptr[0] >= 0x80);
        i += n ? n : 1;
    }
    return name;
}

/* Signs before a word that folds, and strokes behind it, fold with it. 0: no such word. */
static size_t signed_length(struct hk_str s)
{
    size_t from = 0;
    while (from < s.len && memchr("-+_", s.ptr[from], 3))
        from++;
    struct hk_str rest = {s.ptr + from, s.len - from};
    size_t n = base64_length(rest) ? base64_length(rest) : word_length(rest);
    bool folds = n && (base64_length(rest) || word_folds((struct hk_str){rest.ptr, n}));
    while (folds && from + n < s.len && memchr("-_", s.ptr[from + n], 2))
        n++;
    return folds ? from + n : 0;
}

static size_t stars_length(struct hk_str s)
{
    size_t n = 0;
    while (n < s.len && s.ptr[n] == '*')
        n++;
    return n >= 3 ? n : 0;
}

static void fold_text(struct fold *f, struct hk_str s);

static size_t fold_quoted(struct fold *f, struct hk_str s)
{
    struct quoted q = find_quoted(s);
    if (q.len && is_name(q.inside)) {
        put(f, '"'); /* whatever quotes they are */
        fold_text(f, q.inside);
        put(f, '"');
    } else if (q.len) {
        put_folded(f);
    }
    return q.len;
}

/* Folds the first token of `s`. Returns its length. */
static size_t fold_next(struct fold *f, struct hk_str s, bool after_word)
{
    size_t n = after_word ? 0 : signed_length(s);
    if (!n)
        n = is_wide_digit(s) ? 3 : stars_length(s);
    if (n) {
        put_folded(f);
        return n;
    }
    n = word_length(s);
    if (n) {
        put_word(f, (struct hk_str){s.ptr, n}, (struct hk_str){s.ptr + n, s.len - n});
        return n;
    }
    n = after_word ? 0 : fold_quoted(f, s);
    if (n)
        return n;
    put_other(f, s.ptr[0]);
    return 1;
}

/* Of what is in quotes no quotes are left to be found: the first that could end them did. */
static void fold_text(struct fold *f, struct hk_str s)
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
    fold_text(&f, error);
    uint64_t hash = mixed(f.hash);
    for (size_t i = 0; i < HK_FINGERPRINT_MAX - 1; i++)
        out[i] = "0123456789abcdef"[hash >> (60 - 4 * i) & 15];
    out[HK_FINGERPRINT_MAX - 1] = '\0';
}
