/* SPDX-License-Identifier: Apache-2.0 */
/* A sealed payload is bound to its message's id: one that has none gets a UUID here rather than from the table. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/encoding.h"
#include "desk/sealing.h"
#include "exec/clock.h"
#include "payload/codec.h"

static const char *new_id(struct hk_pool *mem)
{
    uint64_t words[2];
    unsigned char b[16];
    char text[37];
    words[0] = hk_clock_seed();
    words[1] = hk_clock_seed();
    memcpy(b, words, sizeof b);
    b[6] = (unsigned char)((b[6] & 0x0f) | 0x40);
    b[8] = (unsigned char)((b[8] & 0x3f) | 0x80);
    (void)snprintf(text, sizeof text, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
                   b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13],
                   b[14], b[15]);
    return hk_pool_copy_str(mem, hk_str_of(text));
}

static enum hk_code seal_one(struct hk_desk *desk, struct hk_enqueue *item, struct hk_pool *mem,
                             struct hk_err *err)
{
    struct hk_outbox_message *m = &item->message;
    struct hk_str given = {m->payload, m->payload_len}, plain = {"", 0}, sealed;
    const char *id = m->message_id && m->message_id[0] ? m->message_id : new_id(mem);
    if (!id)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (given.ptr && hk_codec_plain(hk_str_of(item->encoding), given, mem, &plain) != HK_OK)
        return hk_err_set(err, HK_INVALID, "the payload is not base64, as its encoding says");
    const struct hk_codec_of of = {
        .keys = desk->config->keys, .encoding = hk_str_of("sealed"), .message_id = hk_str_of(id)};
    struct hk_err why = {.message = ""};
    enum hk_code rc = hk_codec_seal(&of, plain, mem, &sealed, &why);
    if (rc != HK_OK)
        return hk_err_set(err, rc == HK_UNAVAILABLE ? HK_CONFLICT : rc, "the payload cannot be sealed: %s",
                          why.message);
    m->message_id = id;
    m->payload = sealed.ptr;
    m->payload_len = sealed.len;
    item->encoding = "sealed";
    return HK_OK;
}

enum hk_code hk_desk_seal(struct hk_desk *desk, struct hk_enqueue *items, size_t n, struct hk_pool *mem,
                          struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    if (desk->config->seal.mode != HK_SEAL_END)
        return HK_OK;
    for (size_t i = 0; i < n && rc == HK_OK; i++)
        if (!hk_encoding_is_sealed(hk_str_of(items[i].encoding)))
            rc = seal_one(desk, &items[i], mem, err);
    return rc;
}
