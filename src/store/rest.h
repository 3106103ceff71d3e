/* SPDX-License-Identifier: Apache-2.0 */
/* Mode `rest`: payloads that leave the table where applications wrote them are sealed on the way, in every store alike. */
#ifndef HK_STORE_REST_H
#define HK_STORE_REST_H

#include "base/pool.h"
#include "payload/keyring.h"

/* What the column `encoding` says of a payload that was sealed: in `mem`; ptr NULL: no memory. */
struct hk_str hk_rest_encoding(struct hk_str encoding, struct hk_pool *mem);

/* `*out`, in `mem`, takes the place of `stored`, with the encoding of hk_rest_encoding. What is sealed already, or is no payload (ptr
 * NULL), is the caller's to leave as it is. HK_UNAVAILABLE: the newest key cannot be had, and nothing may be written. HK_NOMEM, HK_TOOBIG. */
enum hk_code hk_rest_seal(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                          struct hk_pool *mem, struct hk_str *out, struct hk_err *err) HK_MUSTCHECK;

#endif
