/* SPDX-License-Identifier: Apache-2.0 */
/* The bounded buffer: grows by doubling, never past its maximum. */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"

void hk_buf_init(struct hk_buf *buf, size_t max_bytes)
{
    /* one byte is kept for the terminator */
    *buf = (struct hk_buf){.max = max_bytes < SIZE_MAX ? max_bytes : SIZE_MAX - 1};
}

void hk_buf_fini(struct hk_buf *buf)
{
    hk_mem_free(buf->data);
    hk_buf_init(buf, buf->max);
}

void hk_buf_reset(struct hk_buf *buf)
{
    buf->len = 0;
    buf->status = HK_OK;
    if (buf->data)
        buf->data[0] = '\0';
}

/* Makes room for `extra` bytes and the terminator. */
static enum hk_code reserve(struct hk_buf *buf, size_t extra)
{
    if (buf->status != HK_OK)
        return buf->status;
    if (extra > buf->max - buf->len)
        return buf->status = HK_TOOBIG;
    size_t need = buf->len + extra + 1;
    if (need <= buf->room)
        return HK_OK;
    size_t room = buf->room ? buf->room : 64;
    while (room < need)
        room = room > SIZE_MAX / 2 ? need : room * 2;
    if (room > buf->max + 1)
        room = buf->max + 1;
    char *data = hk_mem_resize(buf->data, room);
    if (!data)
        return buf->status = HK_NOMEM;
    buf->data = data;
    buf->room = room;
    return HK_OK;
}

enum hk_code hk_buf_add(struct hk_buf *buf, const void *bytes, size_t len)
{
    enum hk_code rc = reserve(buf, len);
    if (rc != HK_OK)
        return rc;
    if (len)
        memcpy(buf->data + buf->len, bytes, len);
    buf->len += len;
    buf->data[buf->len] = '\0';
    return HK_OK;
}

enum hk_code hk_buf_adds(struct hk_buf *buf, const char *s)
{
    return hk_buf_add(buf, s, strlen(s));
}

enum hk_code hk_buf_addc(struct hk_buf *buf, char c)
{
    return hk_buf_add(buf, &c, 1);
}

/* Mostly there is room already: then the text is made once, and not measured before. */
enum hk_code hk_buf_addf(struct hk_buf *buf, const char *fmt, ...)
{
    size_t spare = buf->status == HK_OK && buf->data ? buf->room - buf->len : 0;
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(spare ? buf->data + buf->len : NULL, spare, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < spare) {
        buf->len += (size_t)n;
        return HK_OK;
    }
    if (spare)
        buf->data[buf->len] = '\0'; /* what was cut off */
    if (n < 0)
        return buf->status = HK_INVALID;
    enum hk_code rc = reserve(buf, (size_t)n);
    if (rc != HK_OK)
        return rc;
    va_start(ap, fmt);
    n = vsnprintf(buf->data + buf->len, (size_t)n + 1, fmt, ap);
    va_end(ap);
    buf->len += (size_t)n;
    return HK_OK;
}

enum hk_code hk_buf_add_base64(struct hk_buf *buf, const void *bytes, size_t len)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *from = bytes;
    size_t groups = len / 3 + (len % 3 != 0);
    enum hk_code rc = groups > SIZE_MAX / 4 - 1 ? (buf->status = HK_TOOBIG) : reserve(buf, groups * 4);
    if (rc != HK_OK)
        return rc;
    char *out = buf->data + buf->len;
    for (size_t i = 0; i < len; i += 3, out += 4) {
        size_t left = len - i < 3 ? len - i : 3;
        uint32_t bits = (uint32_t)from[i] << 16 | (left > 1 ? (uint32_t)from[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)from[i + 2] : 0);
        out[0] = digits[bits >> 18];
        out[1] = digits[bits >> 12 & 63];
        out[2] = '=';
        out[3] = '=';
        if (left > 1)
            out[2] = digits[bits >> 6 & 63];
        if (left > 2)
            out[3] = digits[bits & 63];
    }
    buf->len += groups * 4;
    buf->data[buf->len] = '\0';
    return HK_OK;
}

enum hk_code hk_buf_status(const struct hk_buf *buf)
{
    return buf->status;
}

void hk_buf_inherit(struct hk_buf *whole, const struct hk_buf *part)
{
    if (whole->status == HK_OK)
        whole->status = part->status;
}

const char *hk_buf_cstr(const struct hk_buf *buf)
{
    return buf->data ? buf->data : "";
}

struct hk_str hk_buf_str(const struct hk_buf *buf)
{
    return (struct hk_str){hk_buf_cstr(buf), buf->len};
}

char *hk_buf_detach(struct hk_buf *buf)
{
    if (reserve(buf, 0) != HK_OK)
        return NULL;
    char *data = buf->data;
    data[buf->len] = '\0';
    hk_buf_init(buf, buf->max);
    return data;
}
