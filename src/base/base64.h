/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding base64, for payloads and for signing secrets. Encoding is hk_buf_add_base64. */
#ifndef HK_BASE_BASE64_H
#define HK_BASE_BASE64_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

enum hk_base64_form {
    HK_BASE64_LINES = 0, /* padded; blanks and line ends are passed over (PostgreSQL's encode breaks lines) */
    HK_BASE64_BARE       /* no blanks; the padding may be left off */
};

/* Room that decoding `len` characters needs at the most. */
size_t hk_base64_room(size_t len);
/* Standard alphabet, canonical: bits that belong to no byte are 0. False when it is anything else, or more than `room`
 * bytes; then `out` holds some of it and *out_len is left alone. */
bool hk_base64_decode(struct hk_str text, enum hk_base64_form form, unsigned char *out, size_t room,
                      size_t *out_len);

#endif
