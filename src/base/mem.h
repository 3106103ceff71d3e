/* SPDX-License-Identifier: Apache-2.0 */
/* Memory through one seam, so that a test can fail any allocation. All of these may return NULL. */
#ifndef HK_BASE_MEM_H
#define HK_BASE_MEM_H

#include <stddef.h>

#include <hikyaku/alloc.h>

void *hk_mem_alloc(size_t bytes);                /* not zeroed; 0 bytes is 1 */
void *hk_mem_zalloc(size_t count, size_t bytes); /* zeroed; NULL when the product overflows */
void *hk_mem_resize(void *ptr, size_t bytes);    /* NULL leaves `ptr` as it was */
char *hk_mem_strndup(const char *s, size_t len); /* terminated copy of `len` bytes */
char *hk_mem_strdup(const char *s);
/* Overwrites secrets; never optimised away. */
void hk_mem_wipe(void *bytes, size_t len);
void hk_mem_free(void *ptr); /* accepts NULL */

#endif
