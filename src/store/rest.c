/* SPDX-License-Identifier: Apache-2.0 */
/* The text as it is stored is sealed, not what it decodes to: whatever was wrong with it is still wrong when it is opened. */
#include <string.h>

#include "base/str.h"
#include "core/encoding.h"
#include "payload/codec.h"
#include "store/rest.h"

static bool is_plain_text(struct hk_str encoding)
{
    return encoding.len == 0 || hk_str_eqi(encoding, hk_str_of("utf8")) ||
           hk_str_eqi(encoding, hk_str_of("utf-8"));
}

struct hk_str hk_rest_encoding(struct hk_str encoding, struct hk_pool *mem)
{
    static const struct hk_str sealed = {"sealed", 6};
    if (is_plain_text(encoding))
        return sealed;
    char *both = hk_pool_alloc(mem, sealed.len + 1 + encoding.len, 1);
    if (!both)
        return (struct hk_str){NULL, 0};
    memcpy(both, "sealed:", sealed.len + 1);
    memcpy(both + sealed.len + 1, encoding.ptr, encoding.len);
    return (struct hk_str){both, sealed.len + 1 + encoding.len};
}

enum hk_code hk_rest_seal(struct hk_keyring *keys, struct hk_str message_id, struct hk_str stored,
                          struct hk_pool *mem, struct hk_str *out, struct hk_err *err)
{
    const struct hk_codec_of of = {.keys = keys, .encoding = hk_str_of("sealed"), .message_id = message_id};
    return hk_codec_seal(&of, stored, mem, out, err);
}
