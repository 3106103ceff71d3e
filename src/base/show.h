/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text inside our messages: quoted, short, and unable to move a terminal's cursor or forge a log line. */
#ifndef HK_BASE_SHOW_H
#define HK_BASE_SHOW_H

#include <hikyaku/facts.h>

#define HK_SHOW_MAX 96

/* Writes `s` in double quotes, cut to fit (then with "…" before the closing quote), and returns `out`. Printable
 * text of any language stays; controls, direction marks and bytes that are not UTF-8 become \xNN or \u{NNNN}. */
const char *hk_show(struct hk_str s, char out[HK_SHOW_MAX]);

#endif
