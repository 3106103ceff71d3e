/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target has: its entry, a check that ends the program, and pieces cut from its input. */
#ifndef HK_FUZZ_H
#define HK_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/str.h"

#define MUST(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            abort();                                                                                         \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next `n` bytes, or what is left. */
static inline struct hk_str fuzz_take(struct hk_str *rest, size_t n)
{
    struct hk_str taken = {rest->ptr, n < rest->len ? n : rest->len};
    rest->ptr += taken.len;
    rest->len -= taken.len;
    return taken;
}

#endif
