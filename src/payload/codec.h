/* SPDX-License-Identifier: Apache-2.0 */
/* Between a payload as it is stored and the bytes that the application wrote: the one place that knows what the column
 * `encoding` says of them. */
#ifndef HK_PAYLOAD_CODEC_H
#define HK_PAYLOAD_CODEC_H

#include <hikyaku/error.h>

#include "base/buf.h"
#include "base/pool.h"

/* `*out` is `stored` itself, or lies in `mem`. HK_INVALID: it is not what its encoding says; HK_NOMEM: nobody knows what is in
 * it. Then `*out` is empty. */
enum hk_code hk_codec_plain(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                            struct hk_str *out) HK_MUSTCHECK;
/* The same for a payload that may have been cut: as far as it goes. */
enum hk_code hk_codec_beginning(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                                struct hk_str *out) HK_MUSTCHECK;
/* The way back: `*out` is `plain` itself, or lies in `mem`. HK_NOMEM. */
enum hk_code hk_codec_stored(struct hk_str encoding, struct hk_str plain, struct hk_pool *mem,
                             struct hk_str *out) HK_MUSTCHECK;

#endif
