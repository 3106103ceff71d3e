/* SPDX-License-Identifier: Apache-2.0 */
/* What both ways to enqueue need of a sealer. */
#ifndef HK_OUTBOX_SEALER_H
#define HK_OUTBOX_SEALER_H

#include <hikyaku/sealer.h>

#include "base/buf.h"

/* `*out` is `message` with its payload sealed; the text lies in `text`, which the caller frees. */
enum hk_code hk_sealer_seal(struct hk_sealer *sealer, const struct hk_outbox_message *message,
                            struct hk_buf *text, struct hk_outbox_message *out,
                            struct hk_err *err) HK_MUSTCHECK;

#endif
