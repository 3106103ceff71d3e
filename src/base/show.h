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

/* ---- numbers and times for reading, whatever the locale ---- */

#define HK_SHOW_NUMBER 48
/* About three digits: "250ms", "1.5s", "34m08s", "9h04m", "2d03h". */
const char *hk_show_duration(uint64_t ms, char out[HK_SHOW_NUMBER]);
/* "3m12s ago", "in 5s", "now"; "-" for 0. */
const char *hk_show_ago(int64_t ms, int64_t now_ms, char out[HK_SHOW_NUMBER]);
/* A rate: whole from 10 on, else three digits. */
const char *hk_show_rate(double per_s, char out[HK_SHOW_NUMBER]);
/* 1234567 as "1,234,567". */
const char *hk_show_count(uint64_t n, char out[HK_SHOW_NUMBER]);
/* "~" in front of estimates. */
const char *hk_show_about(uint64_t n, bool about, char out[HK_SHOW_NUMBER]);

#endif
