/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "sink/broker/bytes.h"

struct hk_str hk_bytes_take_text(struct hk_bytes *r, size_t n)
{
    struct hk_str s = {r->rest.ptr, n};
    if (r->rest.len < n) {
        r->cut = true;
        r->rest.len = 0;
        return (struct hk_str){"", 0};
    }
    r->rest.ptr += n;
    r->rest.len -= n;
    return s;
}

uint64_t hk_bytes_take(struct hk_bytes *r, size_t n)
{
    struct hk_str s = hk_bytes_take_text(r, n);
    uint64_t v = 0;
    for (size_t i = 0; i < s.len; i++)
        v = v << 8 | (unsigned char)s.ptr[i];
    return v;
}

void hk_bytes_put(struct hk_buf *out, uint64_t v, size_t n)
{
    char bytes[8];
    for (size_t i = 0; i < n; i++)
        bytes[i] = (char)(v >> 8 * (n - 1 - i) & 0xff);
    (void)hk_buf_add(out, bytes, n);
}
