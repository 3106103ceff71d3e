/* SPDX-License-Identifier: Apache-2.0 */
/* Shows people the changes of an edit: a unified diff of two payloads. */
#ifndef HK_PAYLOAD_DIFF_H
#define HK_PAYLOAD_DIFF_H

#include "payload/scan.h"

/* Adds the hunks ("@@ -1,3 +1,4 @@", lines that begin with ' ', '-' or '+') with `context` lines around each change; nothing when
 * the texts are the same. JSON that stands on one line is laid out first (hk_pretty_write), the other text then as well; when only white
 * space differs, one line says so. Time and memory are bounded: what differs too much is shown as replaced. Control
 * characters but tab are written as '?', so that no payload can move a terminal's cursor. Mask the texts before, if they must be.
 * HK_OK, HK_NOMEM, HK_TOOBIG (the buffer's). */
enum hk_code hk_diff_write(struct hk_buf *out, struct hk_str before, struct hk_str after, unsigned context);

#endif
