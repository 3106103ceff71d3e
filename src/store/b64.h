/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding base64 payloads, and what the column `encoding` may say. */
#ifndef HK_STORE_B64_H
#define HK_STORE_B64_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

/* Room that decoding `len` characters needs. */
size_t hk_b64_room(size_t len);
/* Standard alphabet, padded; blanks and line ends are passed over (PostgreSQL's encode breaks lines). False when it is
 * anything else. */
bool hk_b64_decode(struct hk_str text, unsigned char *out, size_t *out_len);

bool hk_encoding_is_base64(struct hk_str encoding);
bool hk_encoding_is_known(struct hk_str encoding); /* that, utf8, or "" */

#endif
