/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: the result of one store call, one answer of the desk or one parsed file is thousands of small
 * pieces with one lifetime. */
#ifndef HK_BASE_POOL_H
#define HK_BASE_POOL_H

#include <stddef.h>

#include <hikyaku/facts.h>

struct hk_pool_block;

/* A zeroed struct is an empty pool. */
struct hk_pool {
    struct hk_pool_block *blocks; /* newest first */
};

void *hk_pool_alloc(struct hk_pool *pool, size_t count, size_t bytes); /* zeroed; NULL when out of memory */
/* `len` bytes and a terminator; NULL when out of memory. */
char *hk_pool_copy(struct hk_pool *pool, const void *bytes, size_t len);
char *hk_pool_copy_str(struct hk_pool *pool, struct hk_str s);
/* All that `from` holds belongs to `into` from now on. */
void hk_pool_move(struct hk_pool *from, struct hk_pool *into);
void hk_pool_reset(
    struct hk_pool *pool); /* keeps one small block, so that a busy store does not call malloc */
void hk_pool_fini(struct hk_pool *pool);
void hk_pool_wipe(struct hk_pool *pool); /* the same for secrets: overwritten before they are freed */

#endif
