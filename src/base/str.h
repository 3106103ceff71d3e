/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: bytes with a length, owned by somebody else. ASCII rules only, whatever the locale. */
#ifndef HK_BASE_STR_H
#define HK_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

struct hk_str hk_str_of(const char *cstr); /* NULL is the empty slice */
bool hk_str_eq(struct hk_str a, struct hk_str b);
bool hk_str_eqi(struct hk_str a, struct hk_str b); /* without regard to ASCII case */
bool hk_str_starts(struct hk_str s, struct hk_str prefix);
bool hk_str_containsi(struct hk_str s, struct hk_str needle); /* without regard to ASCII case */
bool hk_str_glob(const char *pattern, struct hk_str s);       /* '*' stands for any text */
struct hk_str hk_str_trim(struct hk_str s);                   /* spaces and tabs at both ends */
/* Cuts `*rest` at the first `sep`: returns what stands before it, and moves `*rest` behind it (to the empty
 * slice with ptr NULL when there is none left). */
struct hk_str hk_str_cut(struct hk_str *rest, char sep);
/* Copies into `out`, always terminated; false (and out empty) when it does not fit or holds a NUL byte. */
bool hk_str_copy(char *out, size_t room, struct hk_str s);

bool hk_ascii_isdigit(char c);
bool hk_ascii_isalpha(char c);
char hk_ascii_lower(char c);

/* How unlike two short strings are (Damerau-Levenshtein), for "did you mean"; 99 when either is over 63 bytes. */
unsigned hk_str_distance(const char *a, const char *b);

#endif
