/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text made safe to print. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/show.h"
#include "base/utf8.h"

#define ELLIPSIS "\xe2\x80\xa6"

/* Characters that show nothing, or that change how their neighbours show. */
static bool is_hidden(uint32_t c)
{
    static const struct {
        uint32_t lo, hi;
    } hidden[] = {
        {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},      {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},    {0xfeff, 0xfeff},
        {0xfff9, 0xfffb}, {0xe0000, 0xe0fff}, {0xf0000, 0x10ffff}, {0xe000, 0xf8ff},
    };

    if (c < 0x20)
        return true;
    for (size_t i = 0; i < sizeof hidden / sizeof hidden[0]; i++)
        if (c >= hidden[i].lo && c <= hidden[i].hi)
            return true;
    return false;
}

/* One character, or one run of bad bytes, as it will be shown; at most 4 * 3 bytes and a terminator. */
static size_t show_char(struct hk_str s, size_t *out_taken, char piece[16])
{
    uint32_t c;
    size_t taken = *out_taken = hk_utf8_next(s, &c);
    size_t len = 0;
    if (c == HK_UTF8_BAD) {
        for (size_t i = 0; i < taken; i++)
            len += (size_t)snprintf(piece + len, 16 - len, "\\x%02x", (unsigned)(unsigned char)s.ptr[i]);
    } else if (is_hidden(c)) {
        len = (size_t)snprintf(piece, 16, c < 0x80 ? "\\x%02x" : "\\u{%04x}", (unsigned)c);
    } else {
        if (c == '"' || c == '\\')
            piece[len++] = '\\';
        memcpy(piece + len, s.ptr, taken);
        len += taken;
    }
    return len;
}

const char *hk_show(struct hk_str s, char out[HK_SHOW_MAX])
{
    const size_t room = HK_SHOW_MAX - sizeof ELLIPSIS "\""; /* what may stand before the ending */
    size_t len = 0;
    out[len++] = '"';
    while (s.len > 0) {
        char piece[16];
        size_t taken;
        size_t n = show_char(s, &taken, piece);
        if (len + n > room)
            break;
        memcpy(out + len, piece, n);
        len += n;
        s.ptr += taken;
        s.len -= taken;
    }
    memcpy(out + len, s.len ? ELLIPSIS "\"" : "\"", s.len ? sizeof ELLIPSIS "\"" : sizeof "\"");
    return out;
}

/* As show_char, but quotes and backslashes stay as they are. Returns how many characters it is. */
static size_t add_plain(struct hk_str *s, size_t room, struct hk_buf *out)
{
    char piece[16] = "";
    size_t taken, chars = 1, len;
    if (memchr("\n\r\t\"\\", s->ptr[0], 5)) {
        taken = len = 1;
        piece[0] = s->ptr[0] == '"' || s->ptr[0] == '\\' ? s->ptr[0] : ' ';
    } else {
        len = show_char(*s, &taken, piece);
        if (piece[0] == '\\')
            chars = len;
    }
    if (chars > room)
        return 0;
    hk_buf_add(out, piece, len);
    s->ptr += taken;
    s->len -= taken;
    return chars;
}

void hk_show_plain(struct hk_str s, size_t max_chars, struct hk_buf *out)
{
    size_t chars = 0, whole = out->len; /* where the ellipsis would still fit behind */
    struct hk_str rest = s;
    while (rest.len > 0) {
        if (chars + 1 <= max_chars)
            whole = out->len;
        size_t n = add_plain(&rest, max_chars - chars, out);
        if (n == 0)
            break;
        chars += n;
    }
    if (rest.len == 0 || hk_buf_status(out) != HK_OK)
        return;
    if (chars == max_chars) { /* full to the brim: the last one makes room */
        out->len = whole;
        out->data[whole] = '\0';
    }
    hk_buf_adds(out, ELLIPSIS);
}
