/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails on request, for tests that run out of memory at every place where they can. */
#ifndef HK_TESTS_FAILING_H
#define HK_TESTS_FAILING_H

#include <stdbool.h>
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "check.h"

/* Fails the `fail_at`-th allocation, and all later ones too when `for_ever`. */
struct failing {
    size_t count, fail_at;
    bool for_ever;
    bool failed;
    long live; /* blocks not freed yet */
};

static inline void *failing_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;
    size_t n = f->count++;
    if (n == f->fail_at || (f->for_ever && n > f->fail_at)) {
        f->failed = true;
        return NULL;
    }
    void *result = realloc(ptr, bytes);
    if (result && !ptr)
        f->live++;
    return result;
}

static inline void failing_release(void *arg, void *ptr)
{
    struct failing *f = arg;
    if (ptr)
        f->live--;
    free(ptr);
}

/* Runs `fn` with every allocation failing in turn, once and for ever: it must say HK_NOMEM each time, leak nothing,
 * and succeed with `expected` when none fails. Returns how many allocations there are. */
static inline size_t fail_each_allocation(enum hk_code (*fn)(void), enum hk_code expected)
{
    size_t n = 0;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (size_t k = 0;; k++) {
            struct failing f = {.fail_at = k, .for_ever = for_ever};
            struct hk_allocator allocator = {failing_resize, failing_release, &f};
            hk_allocator_set(&allocator);
            enum hk_code rc = fn();
            hk_allocator_set(NULL);
            assert_int_equal(f.live, 0);
            NOTE_IF(rc != (f.failed ? HK_NOMEM : expected), "allocation %zu: %s\n", k, hk_code_name(rc));
            assert_int_equal(rc, f.failed ? HK_NOMEM : expected);
            n = k;
            if (!f.failed)
                break;
        }
    }
    return n;
}

#endif
