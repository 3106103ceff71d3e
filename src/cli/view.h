/* SPDX-License-Identifier: Apache-2.0 */
/* One message or letter as its command shows it, masked, for callers that have the store open already. */
#ifndef HK_CLI_VIEW_H
#define HK_CLI_VIEW_H

#include "cli/ask.h"

/* As `messages show ID`. HK_NOTFOUND. */
enum hk_code hk_view_message(struct hk_desk *desk, const char *message_id, struct hk_buf *out,
                             struct hk_err *err);
/* As `dead show ID`. HK_NOTFOUND. */
enum hk_code hk_view_letter(struct hk_desk *desk, int64_t id, struct hk_buf *out, struct hk_err *err);

#endif
