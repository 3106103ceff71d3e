/* SPDX-License-Identifier: Apache-2.0 */
/* Standard Webhooks signatures over "id.timestamp.body", with one key or, while they are being changed, several: v1 is
 * HMAC-SHA256 (whsec_), v1a is Ed25519 (whsk_), whose receivers need no secret. Keys are wiped when freed and never appear in a message. */
#ifndef HK_SINK_HTTP_SIGN_H
#define HK_SINK_HTTP_SIGN_H

#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

#define HK_SECRET_MIN  24 /* bytes of the key, as the specification has it */
#define HK_SECRET_MAX  64
#define HK_SECRETS_MAX 8 /* at the same time */

struct hk_secret {
    uint8_t key[HK_SECRET_MAX];
    size_t len;
};

/* "whsec_" and base64 (with or without its padding). HK_INVALID; `err` says what is wrong without showing it. */
enum hk_code hk_secret_parse(struct hk_str s, struct hk_secret *out, struct hk_err *err) HK_MUSTCHECK;
/* Can it sign: whsec_ as above, or whsk_ and base64 of an Ed25519 key, 32 bytes or, with the public key behind them, 64. */
enum hk_code hk_secret_check(struct hk_str s, struct hk_err *err) HK_MUSTCHECK;
/* Overwrites, and is not optimised away. NULL is fine. */
void hk_secret_wipe(void *bytes, size_t len);

struct hk_signer;

/* HK_INVALID, HK_TOOBIG (more than HK_SECRETS_MAX), HK_NOMEM. */
enum hk_code hk_signer_new(const char *const *secrets, size_t n, struct hk_signer **out_signer,
                           struct hk_err *err) HK_MUSTCHECK;
void hk_signer_free(struct hk_signer *signer);
/* Adds "v1,<base64> v1a,<base64> …" to `out`, one for each secret in their order. HK_NOMEM, HK_TOOBIG. */
enum hk_code hk_signer_sign(struct hk_signer *signer, struct hk_str id, int64_t unix_s, struct hk_str body,
                            struct hk_buf *out) HK_MUSTCHECK;

#endif
