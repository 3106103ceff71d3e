/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed payloads: a text that only the holder of a key can read or make. docs/sealed-format.md describes it for applications in any
 * language.
 *
 *   hk1.KEY-ID.CHECK.BASE64        BASE64 of: 12 bytes nonce, 32 + 16 bytes data key as the key wraps it,
 *                                             12 bytes nonce, the payload as the data key encrypts it, 16 bytes tag
 *
 * Both layers are AES-256-GCM. Each message has a data key of its own, so that a key is changed by wrapping 32 bytes again. Both layers
 * authenticate where the payload belongs: store, table, column and message id. A sealed payload that was moved opens nowhere. */
#ifndef HK_PAYLOAD_ENVELOPE_H
#define HK_PAYLOAD_ENVELOPE_H

#include "base/buf.h"
#include "base/pool.h"
#include "payload/keyring.h"

/* The payload of a message. The name is that of the table where applications write it, and stays when a relay moves the row. */
#define HK_SEALED_PAYLOAD "outbox.payload"

struct hk_sealed_place {
    const char *field; /* TABLE.COLUMN */
    struct hk_str message_id;
};

/* What can be seen without a key. */
struct hk_envelope {
    struct hk_str key_id, check, body;
};

bool hk_envelope_read(struct hk_str sealed, struct hk_envelope *out);

/* Adds the text to `out`. HK_UNAVAILABLE: the newest key cannot be had; HK_INVALID: the message has no id; HK_TOOBIG, HK_NOMEM. */
enum hk_code hk_envelope_seal(struct hk_keyring *keys, const struct hk_sealed_place *place,
                              struct hk_str plain, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;
/* `*out` lies in `mem`. HK_UNAVAILABLE: the key cannot be had, or it is another one than sealed it: nothing is known of the payload.
 * HK_INVALID: it is damaged, or belongs elsewhere. HK_NOMEM. */
enum hk_code hk_envelope_open(struct hk_keyring *keys, const struct hk_sealed_place *place,
                              struct hk_str sealed, struct hk_pool *mem, struct hk_str *out,
                              struct hk_err *err) HK_MUSTCHECK;
/* The same text with its data key wrapped by the newest key. The payload is not opened. Codes of both. */
enum hk_code hk_envelope_rewrap(struct hk_keyring *keys, const struct hk_sealed_place *place,
                                struct hk_str sealed, struct hk_buf *out, struct hk_err *err) HK_MUSTCHECK;

#endif
