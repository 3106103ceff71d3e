/* SPDX-License-Identifier: Apache-2.0 */
/* A list of blocks; a piece that does not fit in the newest gets a new one. */
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

struct hk_pool_block {
    struct hk_pool_block *next;
    size_t used, room;
    alignas(max_align_t) unsigned char bytes[];
};

static struct hk_pool_block *add_block(struct hk_pool *pool, size_t need)
{
    size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    if (room > SIZE_MAX - sizeof(struct hk_pool_block))
        return NULL;
    struct hk_pool_block *block = hk_mem_alloc(sizeof *block + room);
    if (!block)
        return NULL;
    block->used = 0;
    block->room = room;
    block->next = pool->blocks;
    pool->blocks = block;
    return block;
}

static void *take(struct hk_pool *pool, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    if (bytes > SIZE_MAX - align)
        return NULL;
    size_t need = (bytes + align - 1) / align * align;
    struct hk_pool_block *block = pool->blocks;
    if (!block || block->room - block->used < need)
        block = add_block(pool, need);
    if (!block)
        return NULL;
    void *ptr = block->bytes + block->used;
    block->used += need;
    return ptr;
}

void *hk_pool_alloc(struct hk_pool *pool, size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    void *ptr = take(pool, count * bytes);
    if (ptr)
        memset(ptr, 0, count * bytes);
    return ptr;
}

char *hk_pool_copy(struct hk_pool *pool, const void *bytes, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *copy = take(pool, len + 1);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, bytes, len);
    copy[len] = '\0';
    return copy;
}

char *hk_pool_copy_str(struct hk_pool *pool, struct hk_str s)
{
    return hk_pool_copy(pool, s.ptr, s.len);
}

void hk_pool_move(struct hk_pool *from, struct hk_pool *into)
{
    struct hk_pool_block **end = &from->blocks;
    while (*end)
        end = &(*end)->next;
    *end = into->blocks;
    into->blocks = from->blocks;
    from->blocks = NULL;
}

static void free_blocks(struct hk_pool_block *block)
{
    while (block) {
        struct hk_pool_block *next = block->next;
        hk_mem_free(block);
        block = next;
    }
}

void hk_pool_reset(struct hk_pool *pool)
{
    struct hk_pool_block *block = pool->blocks;
    if (!block)
        return;
    free_blocks(block->next);
    block->next = NULL;
    block->used = 0;
    if (block->room > BLOCK_BYTES)
        hk_pool_fini(pool);
}

void hk_pool_fini(struct hk_pool *pool)
{
    free_blocks(pool->blocks);
    pool->blocks = NULL;
}

void hk_pool_wipe(struct hk_pool *pool)
{
    for (struct hk_pool_block *block = pool->blocks; block; block = block->next)
        hk_mem_wipe(block->bytes, block->used);
    hk_pool_fini(pool);
}
