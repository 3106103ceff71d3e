/* SPDX-License-Identifier: Apache-2.0 */
/* A list of blocks; an allocation that does not fit in the newest gets a new one. */
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"
#include "config/arena.h"

#define BLOCK_BYTES 4096u

struct hk_arena_block {
    struct hk_arena_block *next;
    size_t used, room;
    alignas(max_align_t) unsigned char bytes[];
};

static struct hk_arena_block *add_block(struct hk_arena *arena, size_t need)
{
    size_t room = need > BLOCK_BYTES ? need : BLOCK_BYTES;
    if (room > SIZE_MAX - sizeof(struct hk_arena_block))
        return NULL;
    struct hk_arena_block *block = hk_mem_alloc(sizeof *block + room);
    if (!block)
        return NULL;
    block->used = 0;
    block->room = room;
    block->next = arena->blocks;
    arena->blocks = block;
    return block;
}

void *hk_arena_alloc(struct hk_arena *arena, size_t count, size_t bytes)
{
    const size_t align = alignof(max_align_t);
    if (bytes && count > (SIZE_MAX - align) / bytes)
        return NULL;
    size_t need = (count * bytes + align - 1) / align * align;
    struct hk_arena_block *block = arena->blocks;
    if (!block || block->room - block->used < need)
        block = add_block(arena, need);
    if (!block)
        return NULL;
    void *ptr = block->bytes + block->used;
    block->used += need;
    memset(ptr, 0, need);
    return ptr;
}

char *hk_arena_copy(struct hk_arena *arena, struct hk_str s)
{
    if (s.len == SIZE_MAX)
        return NULL;
    char *copy = hk_arena_alloc(arena, 1, s.len + 1);
    if (copy && s.len)
        memcpy(copy, s.ptr, s.len);
    return copy;
}

/* A plain memset of memory about to be freed may be optimised away. */
static void wipe(unsigned char *bytes, size_t len)
{
    volatile unsigned char *p = bytes;
    while (len--)
        *p++ = 0;
}

void hk_arena_fini(struct hk_arena *arena)
{
    struct hk_arena_block *next = NULL;
    for (struct hk_arena_block *block = arena->blocks; block; block = next) {
        next = block->next;
        wipe(block->bytes, block->used);
        hk_mem_free(block);
    }
    arena->blocks = NULL;
}
