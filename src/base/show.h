/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text inside our messages: quoted, short, and unable to move a terminal's cursor or forge a log line. */
#ifndef HK_BASE_SHOW_H
#define HK_BASE_SHOW_H

#include <hikyaku/facts.h>

#include "base/buf.h"

#define HK_SHOW_MAX 96

/* Writes `s` in double quotes, cut to fit (then with "…" before the closing quote), and returns `out`. Printable
 * text of any language stays; controls, direction marks and bytes that are not UTF-8 become \xNN or \u{NNNN}. */
const char *hk_show(struct hk_str s, char out[HK_SHOW_MAX]);

/* The same without quotes, for text that stands by itself: line ends and tabs become blanks, and what is longer than
 * `max_chars` characters (not bytes; at least one) ends in "…". */
void hk_show_plain(struct hk_str s, size_t max_chars, struct hk_buf *out);

#endif
