/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials of NATS: a file with a JWT and the seed of an nkey (Ed25519), or with a seed alone. The seed signs what the server asks
 * for, and never leaves the process. */
#ifndef HK_SINK_NATS_NKEY_H
#define HK_SINK_NATS_NKEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

#define HK_NKEY_SEED   32
#define HK_NKEY_PUBLIC 56 /* characters */

struct hk_nkey {
    unsigned char seed[HK_NKEY_SEED];
    char public_key[HK_NKEY_PUBLIC + 1]; /* "U…" */
};

/* From "SU…". False: it is none. */
bool hk_nkey_parse(struct hk_str text, struct hk_nkey *out);
/* Adds the signature in base64url. */
bool hk_nkey_sign(const struct hk_nkey *key, struct hk_str nonce, struct hk_buf *out);
/* From the text of a file. `out_jwt` is a part of it, "" = none. */
bool hk_nkey_read_creds(struct hk_str text, struct hk_str *out_jwt, struct hk_nkey *out_key);
/* The file itself. `jwt` receives the JWT. HK_INVALID names the file. */
enum hk_code hk_nkey_load(const char *path, struct hk_buf *jwt, struct hk_nkey *out_key,
                          struct hk_err *err) HK_MUSTCHECK;

#endif
