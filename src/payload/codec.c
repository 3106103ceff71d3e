/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads are stored as they are, or as base64. */
#include "base/base64.h"
#include "core/encoding.h"
#include "payload/codec.h"

/* `spare`: so many characters at the end may belong to a group that was cut. */
static enum hk_code decode(struct hk_str stored, size_t spare, struct hk_pool *mem, struct hk_str *out)
{
    size_t room = hk_base64_room(stored.len), len = 0;
    unsigned char *bytes = hk_pool_alloc(mem, room, 1);
    if (!bytes)
        return HK_NOMEM;
    for (size_t cut = 0; cut <= spare && cut <= stored.len; cut++) {
        struct hk_str some = {stored.ptr, stored.len - cut};
        if (hk_base64_decode(some, HK_BASE64_LINES, bytes, room, &len)) {
            *out = (struct hk_str){(const char *)bytes, len};
            return HK_OK;
        }
    }
    return HK_INVALID;
}

static enum hk_code make_plain(struct hk_str encoding, struct hk_str stored, size_t spare,
                               struct hk_pool *mem, struct hk_str *out)
{
    *out = stored;
    if (!stored.len || !hk_encoding_is_base64(encoding))
        return HK_OK;
    *out = (struct hk_str){"", 0};
    return decode(stored, spare, mem, out);
}

enum hk_code hk_codec_plain(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                            struct hk_str *out)
{
    return make_plain(encoding, stored, 0, mem, out);
}

enum hk_code hk_codec_beginning(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                                struct hk_str *out)
{
    return make_plain(encoding, stored, 3, mem, out);
}

enum hk_code hk_codec_stored(struct hk_str encoding, struct hk_str plain, struct hk_pool *mem,
                             struct hk_str *out)
{
    struct hk_buf coded;
    *out = plain;
    if (!hk_encoding_is_base64(encoding))
        return HK_OK;
    hk_buf_init(&coded, SIZE_MAX / 2);
    enum hk_code rc = hk_buf_add_base64(&coded, plain.ptr, plain.len);
    const char *kept = rc == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&coded)) : NULL;
    *out = (struct hk_str){kept ? kept : "", kept ? coded.len : 0};
    hk_buf_fini(&coded);
    return kept ? HK_OK : HK_NOMEM;
}
