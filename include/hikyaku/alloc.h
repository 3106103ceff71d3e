/* SPDX-License-Identifier: Apache-2.0 */
/* Where memory comes from. The default is the C library's. */
#ifndef HIKYAKU_ALLOC_H
#define HIKYAKU_ALLOC_H

#include <stddef.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

/* As realloc and free, with `arg` in front; `resize(arg, NULL, n)` allocates. */
struct hk_allocator {
    void *(*resize)(void *arg, void *ptr, size_t bytes);
    void (*release)(void *arg, void *ptr);
    void *arg;
};

/* For the whole process: call it before anything else of hikyaku, or when nothing of it is allocated.
 * NULL brings back the default. */
HK_API void hk_allocator_set(const struct hk_allocator *allocator);

#ifdef __cplusplus
}
#endif
#endif
