/* SPDX-License-Identifier: Apache-2.0 */
/* The details of an attempt, as a letter keeps them (dead_letters.detail). */
#ifndef HK_STORE_DETAIL_H
#define HK_STORE_DETAIL_H

#include "base/buf.h"

struct hk_attempt_record;

#define HK_DETAIL_BYTES ((size_t)64 * 1024) /* room for it; a longer one is not kept */

/* A JSON object; nothing when nothing was sent. */
void hk_store_detail(struct hk_buf *out, const struct hk_attempt_record *attempt);

#endif
