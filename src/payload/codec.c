/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads are stored as they are, as base64, or sealed. */
#include "base/base64.h"
#include "base/str.h"
#include "core/encoding.h"
#include "payload/codec.h"
#include "payload/envelope.h"

#define SEALED_MAX ((size_t)2 << 30)

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
    if (!stored.len || (!hk_encoding_is_base64(encoding) && !hk_encoding_is_sealed(encoding)))
        return HK_OK;
    *out = (struct hk_str){"", 0};
    return hk_encoding_is_sealed(encoding) ? HK_DENIED : decode(stored, spare, mem, out);
}

enum hk_code hk_codec_plain(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                            struct hk_str *out)
{
    return make_plain(encoding, stored, 0, mem, out);
}

enum hk_code hk_codec_carried(struct hk_str encoding, struct hk_str stored, struct hk_pool *mem,
                              struct hk_str *out)
{
    if (!hk_encoding_is_sealed(encoding))
        return hk_codec_plain(encoding, stored, mem, out);
    *out = stored;
    return HK_OK;
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
    if (hk_encoding_is_sealed(encoding)) {
        *out = (struct hk_str){"", 0};
        return HK_DENIED;
    }
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

/* ---- with a key ---- */

static enum hk_code no_keys(struct hk_err *err)
{
    return hk_err_set(err, HK_UNAVAILABLE, "the payload is sealed, and no key is configured (seal.keys)");
}

static const char *why_not(enum hk_code rc)
{
    return rc == HK_NOMEM ? "out of memory" : "the payload is not base64, as its encoding says";
}

static struct hk_sealed_place place_of(const struct hk_codec_of *of)
{
    return (struct hk_sealed_place){of->field ? of->field : HK_SEALED_PAYLOAD, of->message_id};
}

/* A letter that was requeued under a new id is still sealed for its first one, with which the new one begins (HK_SEALED_AGAIN). False:
 * there is no such one. */
static bool use_first_id(struct hk_sealed_place *place)
{
    struct hk_str *id = &place->message_id;
    while (id->len && id->ptr[--id->len] != HK_SEALED_AGAIN)
        ;
    return id->len > 0;
}

static enum hk_code open_sealed(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                                struct hk_str *out, struct hk_err *err)
{
    struct hk_sealed_place place = place_of(of);
    *out = (struct hk_str){"", 0};
    if (!of->keys)
        return no_keys(err);
    enum hk_code rc = hk_envelope_open(of->keys, &place, stored, mem, out, err);
    if (rc == HK_INVALID && use_first_id(&place))
        rc = hk_envelope_open(of->keys, &place, stored, mem, out, err);
    return rc;
}

enum hk_code hk_codec_rewrap(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                             struct hk_str *out, struct hk_err *err)
{
    struct hk_sealed_place place = place_of(of);
    struct hk_envelope e;
    struct hk_buf text;
    if (!of->keys)
        return no_keys(err);
    if (hk_envelope_read(stored, &e) && hk_str_eq(e.key_id, hk_str_of(hk_keyring_id(of->keys, 0)))) {
        *out = stored;
        return HK_OK;
    }
    hk_buf_init(&text, SEALED_MAX);
    enum hk_code rc = hk_envelope_rewrap(of->keys, &place, stored, &text, err);
    if (rc == HK_INVALID && use_first_id(&place)) {
        hk_buf_reset(&text);
        rc = hk_envelope_rewrap(of->keys, &place, stored, &text, err);
    }
    const char *kept = rc == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    if (kept)
        *out = (struct hk_str){kept, text.len};
    else if (rc == HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return rc;
}

enum hk_code hk_codec_open(const struct hk_codec_of *of, struct hk_str stored, struct hk_pool *mem,
                           struct hk_str *out, struct hk_err *err)
{
    struct hk_str encoding = of->encoding;
    if (hk_encoding_is_sealed(encoding)) {
        enum hk_code rc = open_sealed(of, stored, mem, &stored, err);
        if (rc != HK_OK) {
            *out = (struct hk_str){"", 0};
            return rc;
        }
        encoding = hk_encoding_inside(encoding);
    }
    enum hk_code rc = hk_codec_plain(encoding, stored, mem, out);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "%s", why_not(rc));
}

enum hk_code hk_codec_seal(const struct hk_codec_of *of, struct hk_str plain, struct hk_pool *mem,
                           struct hk_str *out, struct hk_err *err)
{
    const struct hk_sealed_place place = place_of(of);
    struct hk_buf text;
    if (!hk_encoding_is_sealed(of->encoding)) {
        enum hk_code rc = hk_codec_stored(of->encoding, plain, mem, out);
        return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "out of memory");
    }
    *out = (struct hk_str){"", 0};
    if (!of->keys)
        return no_keys(err);
    hk_buf_init(&text, SEALED_MAX);
    enum hk_code rc = hk_codec_stored(hk_encoding_inside(of->encoding), plain, mem, &plain);
    rc = rc == HK_OK ? hk_envelope_seal(of->keys, &place, plain, &text, err)
                     : hk_err_set(err, rc, "out of memory");
    const char *kept = rc == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    if (kept)
        *out = (struct hk_str){kept, text.len};
    else if (rc == HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return rc;
}
