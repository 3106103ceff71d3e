/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/utf8.h"
#include "observe/protobuf.h"

enum wire {
    VARINT = 0,
    FIXED64 = 1,
    BYTES = 2,
    FIXED32 = 5
};

static size_t varint(uint64_t value, uint8_t out[10])
{
    size_t n = 0;
    while (value >= 0x80) {
        out[n++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    out[n++] = (uint8_t)value;
    return n;
}

static void pb_varint(struct hk_buf *out, uint64_t value)
{
    uint8_t bytes[10];
    (void)hk_buf_add(out, bytes, varint(value, bytes));
}

static void pb_tag(struct hk_buf *out, unsigned field, enum wire wire)
{
    pb_varint(out, (uint64_t)field << 3 | wire);
}

void hk_pb_number(struct hk_buf *out, unsigned field, uint64_t value)
{
    pb_tag(out, field, VARINT);
    pb_varint(out, value);
}

void hk_pb_fixed(struct hk_buf *out, unsigned field, uint64_t value, size_t n)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
    pb_tag(out, field, n == 8 ? FIXED64 : FIXED32);
    (void)hk_buf_add(out, bytes, n);
}

void hk_pb_bytes(struct hk_buf *out, unsigned field, const void *bytes, size_t n)
{
    pb_tag(out, field, BYTES);
    pb_varint(out, n);
    (void)hk_buf_add(out, bytes, n);
}

/* A message inside: one byte is kept for its length, and its content moves when that is too little. */
size_t hk_pb_open(struct hk_buf *out, unsigned field)
{
    pb_tag(out, field, BYTES);
    (void)hk_buf_addc(out, 0);
    return out->len;
}

void hk_pb_close(struct hk_buf *out, size_t at)
{
    static const char zeros[9] = {0};
    uint8_t bytes[10];
    if (hk_buf_status(out) != HK_OK)
        return;
    size_t len = out->len - at, n = varint(len, bytes);
    if (n > 1 && hk_buf_add(out, zeros, n - 1) != HK_OK)
        return;
    memmove(out->data + at + n - 1, out->data + at, len);
    memcpy(out->data + at - 1, bytes, n);
}

/* Readers of protobuf refuse a whole request for one string that is not UTF-8. */
void hk_pb_text(struct hk_buf *out, unsigned field, struct hk_str s)
{
    size_t at = hk_pb_open(out, field), from = 0;
    for (size_t i = 0; i < s.len;) {
        uint32_t c = (unsigned char)s.ptr[i];
        size_t n = c < 0x80 ? 1 : hk_utf8_next((struct hk_str){s.ptr + i, s.len - i}, &c);
        if (c == HK_UTF8_BAD) {
            (void)hk_buf_add(out, s.ptr + from, i - from);
            (void)hk_buf_adds(out, "\xef\xbf\xbd");
            from = i + n;
        }
        i += n;
    }
    (void)hk_buf_add(out, s.ptr + from, s.len - from);
    hk_pb_close(out, at);
}

void hk_pb_double(struct hk_buf *out, unsigned field, double value)
{
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof bits);
    hk_pb_fixed(out, field, bits, 8);
}

/* Without tags. */
void hk_pb_packed(struct hk_buf *out, unsigned field, const uint64_t *values, size_t n)
{
    pb_tag(out, field, BYTES);
    pb_varint(out, n * 8);
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[8];
        for (size_t k = 0; k < sizeof bytes; k++)
            bytes[k] = (uint8_t)(values[i] >> (8 * k));
        (void)hk_buf_add(out, bytes, sizeof bytes);
    }
}
