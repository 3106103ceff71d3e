/* SPDX-License-Identifier: Apache-2.0 */
/* zlib, at its fastest: spans repeat each other, and what a slower level would save is a few percent. */
#define ZLIB_CONST /* it does not write to what it reads, and says so only then */
#include <zlib.h>

#include "base/mem.h"
#include "observe/gzip.h"

enum {
    GZIP_WINDOW = 15 + 16, /* 16: with gzip's header */
    MEM_LEVEL = 8,
    CHUNK = 16 * 1024,
    PIECE = 1 << 30 /* zlib counts in unsigned int */
};

static void *take(void *arg, unsigned items, unsigned size)
{
    (void)arg;
    return hk_mem_zalloc(items, size);
}

static void give(void *arg, void *ptr)
{
    (void)arg;
    hk_mem_free(ptr);
}

/* All that the stream has to say about what it was given. */
static void drain(z_stream *z, int flush, struct hk_buf *out)
{
    unsigned char chunk[CHUNK];
    do {
        z->next_out = chunk;
        z->avail_out = sizeof chunk;
        (void)deflate(z, flush); /* Z_BUF_ERROR: there was nothing left to say */
        (void)hk_buf_add(out, (const char *)chunk, sizeof chunk - z->avail_out);
    } while (z->avail_out == 0 && hk_buf_status(out) == HK_OK);
}

enum hk_code hk_gzip(struct hk_str in, struct hk_buf *out)
{
    z_stream z = {.zalloc = take, .zfree = give};
    if (deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, GZIP_WINDOW, MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        return HK_NOMEM;
    for (size_t done = 0; done < in.len && hk_buf_status(out) == HK_OK;) {
        size_t piece = in.len - done < PIECE ? in.len - done : PIECE;
        z.next_in = (const unsigned char *)in.ptr + done;
        z.avail_in = (unsigned)piece;
        drain(&z, Z_NO_FLUSH, out);
        done += piece;
    }
    drain(&z, Z_FINISH, out);
    (void)deflateEnd(&z);
    return hk_buf_status(out);
}

enum hk_code hk_gunzip(struct hk_str in, struct hk_buf *out)
{
    unsigned char chunk[CHUNK];
    z_stream z = {.zalloc = take, .zfree = give};
    if (in.len > PIECE || inflateInit2(&z, GZIP_WINDOW) != Z_OK)
        return in.len > PIECE ? HK_TOOBIG : HK_NOMEM;
    z.next_in = (const unsigned char *)in.ptr;
    z.avail_in = (unsigned)in.len;
    int rc = Z_OK;
    while (rc == Z_OK && hk_buf_status(out) == HK_OK) {
        z.next_out = chunk;
        z.avail_out = sizeof chunk;
        rc = inflate(&z, Z_NO_FLUSH);
        (void)hk_buf_add(out, (const char *)chunk, sizeof chunk - z.avail_out);
    }
    (void)inflateEnd(&z);
    if (hk_buf_status(out) != HK_OK)
        return hk_buf_status(out);
    return rc == Z_STREAM_END ? HK_OK : HK_INVALID;
}
