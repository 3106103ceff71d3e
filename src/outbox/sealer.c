/* SPDX-License-Identifier: Apache-2.0 */
/* A keyring of one key, for applications. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "outbox/sealer.h"
#include "payload/envelope.h"

#define TEXT_MAX ((size_t)0x3fffffff)

struct hk_sealer {
    struct hk_keyring *keys;
};

static enum hk_code copy_key(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    (void)i;
    (void)err;
    memcpy(out, arg, HK_KEY_BYTES);
    return HK_OK;
}

enum hk_code hk_sealer_new(const char *store, const char *key_id, const void *key, size_t key_len,
                           struct hk_sealer **out_sealer, struct hk_err *err)
{
    unsigned char bytes[HK_KEY_BYTES];
    if (!store || !key_id || !key || key_len != HK_KEY_BYTES)
        return hk_err_set(err, HK_INVALID, "a sealer needs a store's name, a key's id and its %d bytes",
                          (int)HK_KEY_BYTES);
    struct hk_sealer *sealer = hk_mem_zalloc(1, sizeof *sealer);
    if (!sealer)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    memcpy(bytes, key, sizeof bytes);
    const struct hk_keyring_options options = {
        .store = store, .ids = &key_id, .n = 1, .fetch = copy_key, .arg = bytes};
    enum hk_code rc = hk_keyring_new(&options, &sealer->keys, err);
    if (rc == HK_OK)
        rc = hk_keyring_fetch(sealer->keys, err); /* `bytes` is gone later */
    hk_mem_wipe(bytes, sizeof bytes);
    if (rc != HK_OK) {
        hk_sealer_free(sealer);
        return rc;
    }
    *out_sealer = sealer;
    return HK_OK;
}

void hk_sealer_free(struct hk_sealer *sealer)
{
    if (!sealer)
        return;
    hk_keyring_free(sealer->keys);
    hk_mem_free(sealer);
}

enum hk_code hk_sealer_seal(struct hk_sealer *sealer, const struct hk_outbox_message *message,
                            struct hk_buf *text, struct hk_outbox_message *out, struct hk_err *err)
{
    const struct hk_sealed_place place = {HK_SEALED_PAYLOAD, hk_str_of(message->message_id)};
    const struct hk_str plain = {message->payload_len ? message->payload : "", message->payload_len};
    if (!place.message_id.len)
        return hk_err_set(err, HK_INVALID, "a sealed message needs a message_id: its payload is bound to it");
    hk_buf_init(text, TEXT_MAX);
    enum hk_code rc = hk_envelope_seal(sealer->keys, &place, plain, text, err);
    if (rc != HK_OK)
        return rc;
    *out = *message;
    out->payload = text->data;
    out->payload_len = text->len;
    return HK_OK;
}
