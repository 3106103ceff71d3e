/* SPDX-License-Identifier: Apache-2.0 */
/* What a receiver answered to a message whose payload is sealed may repeat that payload. So its words are stored sealed, too: whole, in the
 * history of attempts; as members of a JSON object, in the detail of a dead letter. */
#ifndef HK_PAYLOAD_WORDS_H
#define HK_PAYLOAD_WORDS_H

#include "base/pool.h"
#include "payload/keyring.h"

#define HK_SEALED_TEXT "(sealed)" /* what stands for a text that the caller does not see opened */

/* The words as they are stored: in `mem`. "" stays "". What cannot be sealed is not kept: "" as well. */
struct hk_str hk_words_seal(struct hk_keyring *keys, struct hk_str message_id, struct hk_str words,
                            struct hk_pool *mem);
/* The other way: a text that was stored, as the caller sees it. With `keys` it is opened; without, HK_SEALED_TEXT stands in its
 * place, or of what is sealed in it. A text that holds nothing sealed is returned as it is. */
struct hk_str hk_words_show(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                            struct hk_pool *mem);
/* The same texts for the newest key: `*out` is `stored` where nothing changes. As hk_codec_rewrap. */
enum hk_code hk_words_rewrap(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                             struct hk_pool *mem, struct hk_str *out, struct hk_err *err) HK_MUSTCHECK;

#endif
