/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator of the whole library. Default: malloc, realloc and free of the C library. */
#ifndef HIKYAKU_ALLOC_H
#define HIKYAKU_ALLOC_H

#include <stddef.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `resize` works like realloc and `release` like free, with `arg` as first argument. `resize(arg, NULL, n)` allocates. */
struct hk_allocator {
    void *(*resize)(void *arg, void *ptr, size_t bytes);
    void (*release)(void *arg, void *ptr);
    void *arg;
};

/* Sets the allocator for the whole process. Call it before any other function of hikyaku, or when nothing of hikyaku's is
 * allocated. NULL restores the default. */
HK_API void hk_allocator_set(const struct hk_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
