/* SPDX-License-Identifier: Apache-2.0 */
/* JSON for reading: one value a line, two blanks of indentation. Tokens are copied as they stand, so that nothing but white space differs. */
#ifndef HK_PAYLOAD_PRETTY_H
#define HK_PAYLOAD_PRETTY_H

#include "payload/scan.h"

/* Adds `json` to `out`, a line feed at its end. HK_INVALID: it is not JSON, and nothing was added; HK_NOMEM, HK_TOOBIG. */
enum hk_code hk_pretty_write(struct hk_str json, struct hk_buf *out) HK_MUSTCHECK;

#endif
