/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for the results of one store call: taken piece by piece, given back all at once at a later call. */
#ifndef HK_STORE_POOL_H
#define HK_STORE_POOL_H

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
void hk_pool_reset(
    struct hk_pool *pool); /* keeps one small block, so that a busy store does not call malloc */
void hk_pool_fini(struct hk_pool *pool);

#endif
