/* SPDX-License-Identifier: Apache-2.0 */
/* Reads JSON (RFC 8259, strictly) without changing or copying it: tokens with the bytes they stand on. Who masks, edits or
 * compares a payload must leave every other byte as the application wrote it, numbers above all, and a tree that is printed
 * again does not do that. Allocates nothing; depth is bounded; the whole text must be UTF-8.
 *
 * Accepted beyond what some parsers take: any value at the top, numbers of any size, \u0000, half a surrogate pair in \u
 * escapes (read as U+FFFD), names that stand in an object more than once. Those that read paths see all occurrences: a mask hides each,
 * a rule asks it of each, a filter is content with any. */
#ifndef HK_PAYLOAD_SCAN_H
#define HK_PAYLOAD_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

#define HK_SCAN_DEPTH_MAX 512

enum hk_scan_kind {
    HK_SCAN_END = 0, /* the text ended where it should */
    HK_SCAN_ERROR,   /* it is not JSON; `why` and `error_at` of the scan say what and where */
    HK_SCAN_OBJECT,
    HK_SCAN_OBJECT_END,
    HK_SCAN_ARRAY,
    HK_SCAN_ARRAY_END,
    HK_SCAN_KEY, /* the value's tokens follow */
    HK_SCAN_STRING,
    HK_SCAN_NUMBER,
    HK_SCAN_TRUE,
    HK_SCAN_FALSE,
    HK_SCAN_NULL,
    HK_NSCANS
};

struct hk_scan_token {
    enum hk_scan_kind kind;
    size_t at; /* byte offset */
    struct hk_str
        raw;      /* as it stands there; keys and strings with their quotes; of containers the bracket only */
    bool escaped; /* key, string: there is a backslash in it */
    bool integer; /* number: neither fraction nor exponent */
};

struct hk_json_scan {
    struct hk_str text;
    size_t pos;
    unsigned depth;                             /* containers that are open */
    uint64_t in_object[HK_SCAN_DEPTH_MAX / 64]; /* bit per depth: it is an object */
    unsigned char state;                        /* what may come next; scan.c */
    const char *why;                            /* static, plain language; NULL while it is well-formed */
    size_t error_at;                            /* byte offset */
};

/* `text` must stay as it is while it is scanned. */
void hk_scan_init(struct hk_json_scan *scan, struct hk_str text);
/* The next token. HK_SCAN_END and HK_SCAN_ERROR stay once reached. */
enum hk_scan_kind hk_scan_next(struct hk_json_scan *scan, struct hk_scan_token *out);
/* After HK_SCAN_OBJECT or HK_SCAN_ARRAY: passes over all of it, its end included. False: an error. */
bool hk_scan_leave(struct hk_json_scan *scan);

/* Is the innermost container that is open an object? */
static inline bool hk_scan_in_object(const struct hk_json_scan *scan)
{
    unsigned i = scan->depth - 1;
    return scan->depth > 0 && (scan->in_object[i / 64] >> (i % 64) & 1u);
}

static inline bool hk_scan_is_value(enum hk_scan_kind kind)
{
    return kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY || kind >= HK_SCAN_STRING;
}

/* Is the whole text one JSON value? HK_INVALID: "not JSON: byte 17: …". Never shows what stands there. */
enum hk_code hk_scan_check(struct hk_str text, struct hk_err *err) HK_MUSTCHECK;
/* The same words for a scan that has ended in HK_SCAN_ERROR. Returns HK_INVALID. */
enum hk_code hk_scan_err(const struct hk_json_scan *scan, struct hk_err *err);

/* What a key or string token says, without quotes and escapes: added to `out`; compared with UTF-8 text. */
enum hk_code hk_scan_text(struct hk_str raw, struct hk_buf *out);
bool hk_scan_text_eq(struct hk_str raw, struct hk_str text);
bool hk_scan_text_eqi(struct hk_str raw, struct hk_str text);       /* without regard to ASCII case */
bool hk_scan_text_containsi(struct hk_str raw, struct hk_str text); /* the same */

/* A string's characters one by one, escapes undone. */
struct hk_scan_chars {
    const char *p, *end;
};

void hk_scan_chars_init(struct hk_scan_chars *chars, struct hk_str raw);
/* Writes the next character as UTF-8 and returns its bytes, 1 to 4; 0 at the end. */
size_t hk_scan_chars_next(struct hk_scan_chars *chars, char out[4]);

/* Does it hold a number that a program that computes with doubles (jq, JavaScript) would change without a word: an integer beyond
 * +-2^53, more than 17 significant digits, or an exponent beyond +-290? `*out_at` (may be NULL) is the byte offset of the first. False when there is none, or when the
 * text is not JSON up to there. */
bool hk_scan_has_big_integer(struct hk_str text, size_t *out_at);
/* Does a string or a name of it hold half a surrogate pair in \u, for which such a program puts U+FFFD without a word? Of JSON. */
bool hk_scan_has_half_pair(struct hk_str text);

#endif
