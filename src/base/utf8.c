/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8 after table 3-7 of the Unicode standard: no surrogates, no overlong forms, nothing past U+10FFFF. */
#include "base/utf8.h"

/* What must follow a lead byte. Only the first continuation has a range of its own. */
struct lead {
    size_t followers;
    unsigned char lo, hi;
    uint32_t bits;
};

static struct lead lead_of(unsigned char b)
{
    if (b >= 0xc2 && b <= 0xdf)
        return (struct lead){1, 0x80, 0xbf, b & 0x1fu};
    if (b >= 0xe0 && b <= 0xef)
        return (struct lead){2, b == 0xe0 ? 0xa0 : 0x80, b == 0xed ? 0x9f : 0xbf, b & 0x0fu};
    if (b >= 0xf0 && b <= 0xf4)
        return (struct lead){3, b == 0xf0 ? 0x90 : 0x80, b == 0xf4 ? 0x8f : 0xbf, b & 0x07u};
    return (struct lead){0};
}

size_t hk_utf8_next(struct hk_str s, uint32_t *out_char)
{
    unsigned char first = (unsigned char)s.ptr[0];
    if (first < 0x80) {
        *out_char = first;
        return 1;
    }
    *out_char = HK_UTF8_BAD;
    struct lead lead = lead_of(first);
    if (lead.followers == 0)
        return 1;
    uint32_t c = lead.bits;
    for (size_t i = 1; i <= lead.followers; i++) {
        unsigned char b = i < s.len ? (unsigned char)s.ptr[i] : 0;
        if (b < lead.lo || b > lead.hi)
            return i;
        lead.lo = 0x80;
        lead.hi = 0xbf;
        c = c << 6 | (b & 0x3fu);
    }
    *out_char = c;
    return lead.followers + 1;
}

bool hk_utf8_is_text(struct hk_str s)
{
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        if (c == HK_UTF8_BAD || c == 0)
            return false;
        s = (struct hk_str){s.ptr + taken, s.len - taken};
    }
    return true;
}

bool hk_utf8_is_unruly(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || (c >= 0x200b && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
           (c >= 0xfff9 && c <= 0xfffb) || c == 0x180e || (c >= 0xe0000 && c <= 0xe0fff);
}
