/* SPDX-License-Identifier: Apache-2.0 */
/* Names of encodings, in whatever case an application writes them. */
#include "base/str.h"
#include "core/encoding.h"

bool hk_encoding_is_base64(struct hk_str encoding)
{
    return hk_str_eqi(encoding, hk_str_of("base64"));
}

bool hk_encoding_is_sealed(struct hk_str encoding)
{
    return hk_str_eqi(encoding, hk_str_of("sealed"));
}

bool hk_encoding_is_known(struct hk_str encoding)
{
    return encoding.len == 0 || hk_encoding_is_base64(encoding) || hk_encoding_is_sealed(encoding) ||
           hk_str_eqi(encoding, hk_str_of("utf8")) || hk_str_eqi(encoding, hk_str_of("utf-8"));
}
