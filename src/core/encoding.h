/* SPDX-License-Identifier: Apache-2.0 */
/* What the column `encoding` may say. */
#ifndef HK_CORE_ENCODING_H
#define HK_CORE_ENCODING_H

#include <stdbool.h>

#include <hikyaku/facts.h>

bool hk_encoding_is_base64(struct hk_str encoding);
/* `sealed`: the opened payload is sent as it is. `sealed:` and another encoding: a relay sealed a text that was stored in that encoding. */
bool hk_encoding_is_sealed(struct hk_str encoding);
struct hk_str hk_encoding_inside(struct hk_str sealed); /* the other encoding; "" = none */
bool hk_encoding_is_known(struct hk_str encoding);      /* one of these, utf8, or "" */

#endif
