/* SPDX-License-Identifier: Apache-2.0 */
/* The allocator seam. `current` is the one mutable global below the daemon: where memory comes from is a
 * property of the process, as in curl and SQLite. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void *system_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return realloc(ptr, bytes);
}

static void system_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static const struct hk_allocator system_allocator = {system_resize, system_release, NULL};
static struct hk_allocator current = {system_resize, system_release, NULL};

void hk_allocator_set(const struct hk_allocator *allocator)
{
    current = allocator ? *allocator : system_allocator;
}

void *hk_mem_resize(void *ptr, size_t bytes)
{
    return current.resize(current.arg, ptr, bytes ? bytes : 1);
}

void *hk_mem_alloc(size_t bytes)
{
    return hk_mem_resize(NULL, bytes);
}

void *hk_mem_zalloc(size_t count, size_t bytes)
{
    if (bytes && count > SIZE_MAX / bytes)
        return NULL;
    void *ptr = hk_mem_alloc(count * bytes);
    if (ptr)
        memset(ptr, 0, count * bytes);
    return ptr;
}

char *hk_mem_strndup(const char *s, size_t len)
{
    if (len == SIZE_MAX)
        return NULL;
    char *copy = hk_mem_alloc(len + 1);
    if (!copy)
        return NULL;
    if (len)
        memcpy(copy, s, len);
    copy[len] = '\0';
    return copy;
}

char *hk_mem_strdup(const char *s)
{
    return hk_mem_strndup(s, strlen(s));
}

void hk_mem_free(void *ptr)
{
    if (ptr)
        current.release(current.arg, ptr);
}

/* A plain memset of memory about to be freed may be optimised away. */
void hk_mem_wipe(void *bytes, size_t len)
{
    volatile unsigned char *p = bytes;
    while (len--)
        *p++ = 0;
}
