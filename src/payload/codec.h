/* SPDX-License-Identifier: Apache-2.0 */
/* Between a payload as it is stored and the bytes that the application wrote: the one place that knows what the column
 * `encoding` says of them. */
#ifndef HK_PAYLOAD_CODEC_H
#define HK_PAYLOAD_CODEC_H

#include <hikyaku/error.h>

#include "base/buf.h"
#include "base/pool.h"
#include "payload/keyring.h"

/* `*out` is `stored` itself, or lies in `mem`. HK_INVALID: it is not what its encoding says; HK_NOMEM: nobody knows what is in
 * it; HK_DENIED: it is sealed, and only hk_codec_open reads it. Then `*out` is empty. */
enum hk_code hk_codec_plain(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                            struct hk_str *out) HK_MUSTCHECK;
/* The same for a payload that may have been cut: as far as it goes. */
enum hk_code hk_codec_beginning(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                                struct hk_str *out) HK_MUSTCHECK;
/* What a relay carries until it sends: plain, but what is sealed stays so. As hk_codec_plain. */
enum hk_code hk_codec_carried(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                              struct hk_str *out) HK_MUSTCHECK;
/* The way back: `*out` is `plain` itself, or lies in `mem`. HK_NOMEM; HK_DENIED: only hk_codec_seal makes what is sealed. */
enum hk_code hk_codec_stored(struct hk_str encoding, struct hk_str plain, struct hk_pool *mem,
                             struct hk_str *out) HK_MUSTCHECK;

/* Stands in the id that a sealed message is requeued under, between the one it was sealed for and what is new. Stores write it. */
#define HK_SEALED_AGAIN '~'

/* What needs a key. The caller has asked before who may see the payload. */
struct hk_codec_of {
    struct hk_keyring *keys; /* NULL: there are none */
    struct hk_str encoding, message_id;
    const char *field; /* TABLE.COLUMN that it is bound to; NULL: the payload */
};

/* hk_codec_plain, also of what is sealed. HK_UNAVAILABLE: the key cannot be had now, and `err` says why; HK_INVALID. */
enum hk_code hk_codec_open(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                           struct hk_str *out, struct hk_err *err) HK_MUSTCHECK;
/* The same sealed text, for the newest key: what is in it is not opened. Codes of hk_codec_open. `*out` is `stored` where it is that key's
 * already. */
enum hk_code hk_codec_rewrap(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                             struct hk_str *out, struct hk_err *err) HK_MUSTCHECK;
/* hk_codec_stored, also of what is to be sealed: with the newest key. */
enum hk_code hk_codec_seal(const struct hk_codec_of *of, struct hk_str plain, struct hk_pool *mem,
                           struct hk_str *out, struct hk_err *err) HK_MUSTCHECK;

#endif
