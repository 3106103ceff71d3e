/* SPDX-License-Identifier: Apache-2.0 */
/* Four characters to three bytes. Strict about everything but line breaks, because the relay would send or sign
 * wrongly decoded bytes. */
#include <stdint.h>

#include "base/base64.h"

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static bool is_blank(char c)
{
    return c == '\n' || c == '\r' || c == ' ' || c == '\t';
}

size_t hk_base64_room(size_t len)
{
    return len / 4 * 3 + 3;
}

/* The bytes of one group of four, of which `chars` are not padding; 0: it cannot be so, or there is no room. */
static size_t decode_group(uint32_t bits, unsigned chars, unsigned char *out, size_t room)
{
    uint32_t left = chars == 4 ? 0 : chars == 3 ? bits & 3 : bits & 15; /* bits that belong to no byte */
    if (chars < 2 || left || room < chars - 1)
        return 0;
    bits <<= 6 * (4 - chars);
    out[0] = (unsigned char)(bits >> 16);
    if (chars > 2)
        out[1] = (unsigned char)(bits >> 8);
    if (chars > 3)
        out[2] = (unsigned char)bits;
    return chars - 1;
}

bool hk_base64_decode(struct hk_str text, enum hk_base64_form form, unsigned char *out, size_t room,
                      size_t *out_len)
{
    uint32_t bits = 0;
    unsigned chars = 0, pads = 0; /* of this group */
    size_t n = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        int value = value_of(c);
        if (form == HK_BASE64_LINES && is_blank(c))
            continue;
        if (pads == 4 || (value < 0 && c != '=') || (value >= 0 && pads))
            return false; /* behind the end, foreign, or behind padding */
        if (value >= 0) {
            bits = bits << 6 | (uint32_t)value;
            chars++;
        } else {
            pads++;
        }
        if (chars + pads < 4)
            continue;
        size_t got = decode_group(bits, chars, out + n, room - n);
        if (!got)
            return false;
        n += got;
        bits = chars = 0;
        pads = pads ? 4 : 0; /* padding ends it */
    }
    if (chars) { /* a group that is not whole */
        size_t got = form == HK_BASE64_BARE && !pads ? decode_group(bits, chars, out + n, room - n) : 0;
        if (!got)
            return false;
        n += got;
    }
    if (pads % 4)
        return false;
    *out_len = n;
    return true;
}
