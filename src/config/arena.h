/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is freed all at once: a parsed file is thousands of small pieces with one lifetime. Wiped when
 * freed, because configurations hold secrets. */
#ifndef HK_CONFIG_ARENA_H
#define HK_CONFIG_ARENA_H

#include <stddef.h>

#include <hikyaku/facts.h>

struct hk_arena_block;

struct hk_arena {
    struct hk_arena_block *blocks;
};

/* A zeroed struct is an empty arena. */
void *hk_arena_alloc(struct hk_arena *arena, size_t count,
                     size_t bytes);                           /* zeroed; NULL when out of memory */
char *hk_arena_copy(struct hk_arena *arena, struct hk_str s); /* terminated */
void hk_arena_fini(struct hk_arena *arena);

#endif
