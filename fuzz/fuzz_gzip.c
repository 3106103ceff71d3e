/* SPDX-License-Identifier: Apache-2.0 */
/* gzip for the collector, as zlib reads it: any bytes, repeated up to 64 KiB, come back as they were, whatever stood
 * in the buffer before. A buffer with too little room, and memory that runs out at any allocation, are errors that leave nothing behind.
 * The first two bytes say how often the rest is repeated, the third how much room is missing, the fourth which allocation fails,
 * and whether noise is laid over it. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <hikyaku/alloc.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "fuzz.h"
#include "observe/gzip.h"

enum {
    INPUT_MAX = 64 << 10,
    PREFIX = 7
};

/* One member, and nothing behind it. */
static void check_unpacked(struct hk_str packed, struct hk_str was)
{
    static unsigned char out[INPUT_MAX + 1];
    unsigned char *in = malloc(packed.len); /* exactly as large, so that a read past its end is seen */
    z_stream z = {.avail_in = (unsigned)packed.len, .next_out = out, .avail_out = sizeof out};
    MUST(in != NULL && inflateInit2(&z, 15 + 16) == Z_OK);
    memcpy(in, packed.ptr, packed.len);
    z.next_in = in;
    MUST(inflate(&z, Z_FINISH) == Z_STREAM_END);
    MUST(z.avail_in == 0 && z.total_out == was.len && (was.len == 0 || memcmp(out, was.ptr, was.len) == 0));
    MUST(inflateEnd(&z) == Z_OK);
    free(in);
}

static size_t check_whole(struct hk_str was)
{
    struct hk_buf out;
    hk_buf_init(&out, was.len + was.len / 100 + 100); /* hardly more than it was, whatever it was */
    MUST(hk_buf_add(&out, "before:", PREFIX) == HK_OK && hk_gzip(was, &out) == HK_OK);
    MUST(memcmp(out.data, "before:", PREFIX) == 0);
    check_unpacked((struct hk_str){out.data + PREFIX, out.len - PREFIX}, was);
    size_t len = out.len - PREFIX;
    hk_buf_fini(&out);
    return len;
}

static void check_room(struct hk_str was, size_t room, size_t needed)
{
    struct hk_buf out;
    hk_buf_init(&out, room);
    MUST(hk_gzip(was, &out) == (room < needed ? HK_TOOBIG : HK_OK) && out.len <= room);
    hk_buf_fini(&out);
}

static size_t allocations_left;

static void *take(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    if (allocations_left == 0)
        return NULL;
    allocations_left--;
    return realloc(ptr, bytes);
}

static void give(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void check_memory(struct hk_str was, size_t allocations, size_t needed)
{
    const struct hk_allocator sparse = {take, give, NULL};
    struct hk_buf out;
    hk_buf_init(&out, needed);
    allocations_left = allocations;
    hk_allocator_set(&sparse);
    enum hk_code rc = hk_gzip(was, &out);
    hk_buf_fini(&out);
    hk_allocator_set(NULL);
    MUST(rc == HK_OK || rc == HK_NOMEM);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[INPUT_MAX];
    if (size < 4)
        return 0;
    struct hk_str piece = {(const char *)data + 4, size - 4}, was = {text, 0};
    for (unsigned times = data[0] * 256u + data[1] + 1; times > 0; times--) {
        if (piece.len == 0 || was.len + piece.len > sizeof text)
            break;
        memcpy(text + was.len, piece.ptr, piece.len);
        was.len += piece.len;
    }
    if (data[3] & 0x80) /* what cannot be made small */
        for (uint64_t i = 0, noise = 88172645463325252u; i < was.len; i++) {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            text[i] = (char)(text[i] ^ (char)noise);
        }
    size_t needed = check_whole(was);
    check_room(was, data[2] < needed ? needed - data[2] : needed / (data[2] + 1u), needed);
    check_memory(was, data[3] % 16, needed);
    return 0;
}
