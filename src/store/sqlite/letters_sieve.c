/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a letter can match at all, before it is read: a million of them are looked through while a person waits, and
 * hardly any has what is looked for.
 *
 * A payload may be a gigabyte, so it is not asked for in SQL, which would hold all of it: it comes in pieces. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/encoding.h"
#include "store/sqlite/letters.h"

enum {
    PIECE = 64 * 1024 /* bytes, with what is kept of the piece before */
};

/* The columns after those of the walk. */
enum {
    C_ENCODING = 2,
    C_PAYLOAD_TYPE,
    C_TEXTS,
    N_TEXTS = 5
};

/* ---- in memory ---- */

static bool stands_alone(struct hk_str s, const char *at, size_t len)
{
    const char *end = s.ptr + s.len;
    return (at == s.ptr || (at[-1] && strchr(HK_SIEVE_BEFORE, at[-1]))) &&
           (at + len == end || (at[len] && strchr(HK_SIEVE_BEHIND, at[len])));
}

static bool has(struct hk_str s, const char *needle, bool alone)
{
    size_t len = strlen(needle);
    const char *end = s.ptr + s.len;
    for (const char *from = s.ptr; (size_t)(end - from) >= len;) {
        const char *at = memchr(from, needle[0], (size_t)(end - from) - len + 1);
        if (!at)
            return false;
        if (memcmp(at, needle, len) == 0 && (!alone || stands_alone(s, at, len)))
            return true;
        from = at + 1;
    }
    return false;
}

/* In any case of A to Z. */
static bool has_lower(struct hk_str s, const char *lower)
{
    size_t len = strlen(lower);
    for (; s.len >= len; s.ptr++, s.len--) {
        if ((*s.ptr | 0x20) == (lower[0] | 0x20) &&
            hk_str_eqi((struct hk_str){s.ptr, len}, (struct hk_str){lower, len}))
            return true;
    }
    return false;
}

static size_t longest_needle(const struct hk_letter_sieve *sieve)
{
    size_t value = sieve->value ? strlen(sieve->value) : 0, text = sieve->text ? strlen(sieve->text) : 0;
    size_t most = value > text ? value : text;
    return most > 4 ? most : 4; /* escapes are four bytes at the most */
}

/* ---- the payload ---- */

/* What is still to be found. */
struct search {
    const struct hk_letter_sieve *sieve;
    bool value, text;
};

/* What stands at the edge of a piece may be alone or not: it passes. */
static void look(struct search *s, struct hk_str piece)
{
    const struct hk_letter_sieve *v = s->sieve;
    if (s->value && (has(piece, v->value, v->value_alone) || has(piece, v->value_escapes, false)))
        s->value = false;
    if (s->text && (has_lower(piece, v->text) || has(piece, v->text_escapes, false)))
        s->text = false;
}

/* Piece by piece; the end of each comes once more with the next, or what lies across would be missed. */
static bool look_through(struct hk_sl_walk *walk, struct search *s)
{
    size_t kept = 0, at = 0, overlap = longest_needle(s->sieve) - 1;
    size_t left = hk_sl_seek(&walk->reader, walk->last_id);
    uint64_t most = walk->store->options.max_payload_bytes; /* what lies behind is not matched, either */
    left = left < most ? left : (size_t)most;
    while ((s->value || s->text) && left > 0) {
        size_t n = left < PIECE - kept ? left : PIECE - kept;
        if (!hk_sl_read_at(&walk->reader, walk->piece + kept, n, at))
            return false;
        look(s, (struct hk_str){walk->piece, kept + n});
        at += n;
        left -= n;
        size_t all = kept + n;
        kept = all < overlap ? all : overlap;
        memmove(walk->piece, walk->piece + all - kept, kept);
        walk->left.bytes -= n < walk->left.bytes ? n : walk->left.bytes;
    }
    return true;
}

/* ---- the letter ---- */

const char *hk_sl_sieve_columns(const struct hk_letter_query *query)
{
    if (!query->match || (!query->sieve.value && !query->sieve.text))
        return "";
    return query->sieve.text
               ? ", encoding, typeof(payload), error_message, message_id, correlation_id, event_type, destination"
               : ", encoding, typeof(payload)";
}

static struct hk_str text_at(sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    return (struct hk_str){text ? text : "", text ? (size_t)sqlite3_column_bytes(q, column) : 0};
}

static bool columns_have(sqlite3_stmt *q, const char *lower)
{
    for (int i = 0; i < N_TEXTS; i++)
        if (has_lower(text_at(q, C_TEXTS + i), lower))
            return true;
    return false;
}

bool hk_sl_sieve(struct hk_sl_walk *walk)
{
    const struct hk_letter_sieve *sieve = &walk->query->sieve;
    struct search s = {.sieve = sieve, .value = sieve->value != NULL, .text = sieve->text != NULL};
    if (!s.value && !s.text)
        return true;
    struct hk_str type = text_at(walk->q, C_PAYLOAD_TYPE);
    if (hk_encoding_is_base64(text_at(walk->q, C_ENCODING)))
        return true;
    if (s.text && columns_have(walk->q, sieve->text))
        s.text = false;
    if (hk_str_eq(type, hk_str_of("null")) || (!s.value && !s.text))
        return !s.value && !s.text;
    if (!hk_str_eq(type, hk_str_of("text")) && !hk_str_eq(type, hk_str_of("blob")))
        return true; /* a number */
    if (!walk->piece)
        walk->piece = hk_mem_alloc(PIECE);
    if (!walk->piece)
        hk_sq_fail(walk->store, SQLITE_NOMEM);
    return walk->piece && look_through(walk, &s) && !s.value && !s.text;
}
