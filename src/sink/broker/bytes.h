/* SPDX-License-Identifier: Apache-2.0 */
/* What the readers of protocols share. Numbers and texts of binary ones come the highest byte first: a reader that comes to the end of what is there gives zeros and empty texts
 * from then on, and remembers it: so a caller reads a whole unit, and asks once. */
#ifndef HK_SINK_BROKER_BYTES_H
#define HK_SINK_BROKER_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#include "base/buf.h"

/* What a reader made of the bytes that came. Each protocol has it under names of its own. */
enum hk_next {
    HK_NEXT_WHOLE = 0, /* a unit, and how many bytes it took */
    HK_NEXT_MORE,      /* it is not all there yet */
    HK_NEXT_WRONG      /* this is not the protocol; the reader says why */
};

struct hk_bytes {
    struct hk_str rest;
    bool cut; /* something was not there */
};

/* A number of n bytes, 8 at most. */
uint64_t hk_bytes_take(struct hk_bytes *r, size_t n);
struct hk_str hk_bytes_take_text(struct hk_bytes *r, size_t n);
/* Adds a number as n bytes, 8 at most. Errors are the buffer's. */
void hk_bytes_put(struct hk_buf *out, uint64_t v, size_t n);

#endif
