/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that were read ahead: whose they are, how many to read, and when they may go. */
#include <string.h>

#include "base/mem.h"
#include "store/pg/pages.h"

static bool is_for(const struct hk_pg_page *page, const char *destination)
{
    if (!page->known || !page->destination || !destination)
        return page->known && !page->destination && !destination;
    return strcmp(page->destination, destination) == 0;
}

static void retire(struct hk_pg_pages *pages, struct hk_pg_page *page, unsigned pool)
{
    unsigned *n = &pages->n_old[pool];
    if (!page->res)
        return;
    if (*n == 2 * HK_PG_PAGES) /* cannot be: each page is filled once in a call, and dropped once */
        PQclear(pages->old[pool][--*n]);
    pages->old[pool][(*n)++] = page->res;
    page->res = NULL;
}

struct hk_pg_page *hk_pg_page_of(struct hk_pg_pages *pages, const char *destination, unsigned pool)
{
    for (unsigned i = 0; i < HK_PG_PAGES; i++)
        if (is_for(&pages->items[i], destination))
            return &pages->items[i];
    char *name = destination ? hk_mem_strdup(destination) : NULL;
    if (destination && !name)
        return NULL;
    struct hk_pg_page *page = &pages->items[pages->turn++ % HK_PG_PAGES];
    retire(pages, page, pool);
    hk_mem_free(page->destination);
    *page = (struct hk_pg_page){.known = true, .destination = name};
    return page;
}

static int64_t id_at(const PGresult *res, int row)
{
    const unsigned char *bytes = (const unsigned char *)PQgetvalue(res, row, 0);
    uint64_t value = 0;
    for (int i = 0; i < PQgetlength(res, row, 0); i++)
        value = value << 8 | bytes[i];
    int64_t id;
    memcpy(&id, &value, sizeof id);
    return id;
}

/* The first row behind that id. */
static int row_behind(const PGresult *res, int64_t id)
{
    int lo = 0, hi = PQntuples(res);
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (id_at(res, mid) <= id)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool hk_pg_page_goes_on(struct hk_pg_page *page, int64_t after_id, uint64_t shards)
{
    if (!page->res || after_id < page->from_id || page->shards != shards)
        return false;
    int row = row_behind(page->res, after_id);
    if (row == PQntuples(page->res))
        return false;
    page->used = row;
    return true;
}

bool hk_pg_pages_find(struct hk_pg_pages *pages, int64_t id, const PGresult **out_res, int *out_row)
{
    for (unsigned i = 0; i < HK_PG_PAGES; i++) {
        struct hk_pg_page *page = &pages->items[i];
        if (!page->res || !page->whole || id <= page->from_id || id > page->to_id)
            continue;
        int row = row_behind(page->res, id) - 1;
        if (row < 0 || id_at(page->res, row) != id)
            continue;
        page->claimed++;
        *out_res = page->res;
        *out_row = row;
        return true;
    }
    return false;
}

bool hk_pg_page_whole(const struct hk_pg_page *page)
{
    return !page->whole || !page->used || 4 * page->claimed >= (uint32_t)page->used;
}

uint32_t hk_pg_page_ask(const struct hk_pg_page *page, int64_t after_id, uint32_t limit)
{
    uint32_t used =
        page->used > 0 && after_id >= page->from_id && after_id <= page->to_id ? (uint32_t)page->used : 0;
    uint32_t more = used < HK_PG_PAGE_ROWS / 2 ? 2 * used : HK_PG_PAGE_ROWS;
    return more > limit ? more : limit;
}

void hk_pg_page_fill(struct hk_pg_pages *pages, struct hk_pg_page *page, PGresult *res, uint32_t asked,
                     bool whole, int64_t after_id, uint64_t shards, unsigned pool)
{
    retire(pages, page, pool);
    page->whole = whole;
    page->claimed = 0;
    page->res = res;
    page->asked = asked;
    page->from_id = page->to_id = after_id;
    page->shards = shards;
    page->used = 0;
}

void hk_pg_pages_drop(struct hk_pg_pages *pages, unsigned pool)
{
    for (unsigned i = 0; i < HK_PG_PAGES; i++)
        retire(pages, &pages->items[i], pool);
}

void hk_pg_pages_call(struct hk_pg_pages *pages, unsigned pool)
{
    while (pages->n_old[pool])
        PQclear(pages->old[pool][--pages->n_old[pool]]);
}

void hk_pg_pages_fini(struct hk_pg_pages *pages)
{
    hk_pg_pages_drop(pages, 0);
    hk_pg_pages_call(pages, 0);
    hk_pg_pages_call(pages, 1);
    for (unsigned i = 0; i < HK_PG_PAGES; i++)
        hk_mem_free(pages->items[i].destination);
    *pages = (struct hk_pg_pages){.turn = 0};
}
