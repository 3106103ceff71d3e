/* SPDX-License-Identifier: Apache-2.0 */
/* Names of encodings, in whatever case an application writes them. */
#include "base/str.h"
#include "core/encoding.h"

bool hk_encoding_is_base64(struct hk_str encoding)
{
    return hk_str_eqi(encoding, hk_str_of("base64"));
}

enum {
    SEALED = sizeof "sealed" - 1
};

bool hk_encoding_is_sealed(struct hk_str encoding)
{
    struct hk_str word = {encoding.ptr, encoding.len < SEALED ? encoding.len : SEALED};
    return hk_str_eqi(word, hk_str_of("sealed")) && (encoding.len == SEALED || encoding.ptr[SEALED] == ':');
}

struct hk_str hk_encoding_inside(struct hk_str sealed)
{
    size_t skip = sealed.len > SEALED ? SEALED + 1 : sealed.len;
    return (struct hk_str){sealed.ptr + skip, sealed.len - skip};
}

bool hk_encoding_is_known(struct hk_str encoding)
{
    if (hk_encoding_is_sealed(encoding))
        encoding = hk_encoding_inside(encoding);
    return encoding.len == 0 || hk_encoding_is_base64(encoding) || hk_str_eqi(encoding, hk_str_of("utf8")) ||
           hk_str_eqi(encoding, hk_str_of("utf-8"));
}
