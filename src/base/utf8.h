/* SPDX-License-Identifier: Apache-2.0 */
/* Reads UTF-8 that may be malformed: code that writes JSON or shows foreign text must know where it is malformed. */
#ifndef HK_BASE_UTF8_H
#define HK_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_UTF8_BAD UINT32_MAX

/* Decodes the character at the start of `s`, which must not be empty, and returns how many bytes it took (1 to 4).
 * Ill-formed: `*out_char` is HK_UTF8_BAD and the bytes are the longest start of a character that stands there, so
 * that one U+FFFD for each gives what browsers and Unicode (chapter 3, "maximal subparts") give. */
size_t hk_utf8_next(struct hk_str s, uint32_t *out_char);
/* Well-formed, and no NUL in it: what a database takes as text. */
bool hk_utf8_is_text(struct hk_str s);
/* What may not stand in a line as it is: it would end the line, change how the rest of it is shown, or be invisible. */
bool hk_utf8_is_unruly(uint32_t c);

#endif
