/* SPDX-License-Identifier: Apache-2.0 */
/* Heads that were read ahead. A destination with few free slots asks for a handful of heads at a time, and each question
 * costs a round trip: so a scan that goes on where the last one ended reads more than was asked for, and the rest is served
 * from memory. Twice as much each time, as long as all of it is used.
 *
 * What is kept was visible in the horizon of the scans (window.h) and stays true until somebody else's transaction ends:
 * then it is dropped. A row that went meanwhile (an operator's act, a claim by another way) is not found by the claim. */
#ifndef HK_STORE_PG_PAGES_H
#define HK_STORE_PG_PAGES_H

#include <stdbool.h>
#include <stdint.h>

#include <libpq-fe.h>

enum {
    HK_PG_PAGES = 8, /* destinations that are read ahead for at the same time */
    HK_PG_PAGE_ROWS = 500
};

struct hk_pg_page {
    bool known;        /* it is somebody's */
    char *destination; /* NULL: all of them */
    uint64_t shards;
    PGresult *res; /* NULL: dropped; `used` stays */
    int used;      /* rows of it that were served */
    uint32_t asked;
    bool whole;       /* small messages are in it, not only their heads */
    uint32_t claimed; /* of it, or of the one before while it is new */
    int64_t from_id;  /* it was read behind this one */
    int64_t to_id;    /* the last that was served */
};

/* A zeroed struct holds nothing. */
struct hk_pg_pages {
    struct hk_pg_page items[HK_PG_PAGES];
    unsigned turn; /* whose place is taken next */
    /* What was served from a page that is gone is still read until the next call but one: by pool, as the calls'. */
    PGresult *old[2][2 * HK_PG_PAGES];
    unsigned n_old[2];
};

/* The destination's page; made when there is none. NULL: out of memory, do without. */
struct hk_pg_page *hk_pg_page_of(struct hk_pg_pages *pages, const char *destination, unsigned pool);
/* Are there rows behind `after_id` in it? They are the next to be served then, also if they were before: who had room for
 * fewer than he was shown comes back to the rest. */
bool hk_pg_page_goes_on(struct hk_pg_page *page, int64_t after_id, uint64_t shards);
/* How many rows to read when `limit` are wanted behind `after_id`. */
uint32_t hk_pg_page_ask(const struct hk_pg_page *page, int64_t after_id, uint32_t limit);
/* Is it worth reading messages whole? Not where nearly all are passed over. */
bool hk_pg_page_whole(const struct hk_pg_page *page);
/* The head of that id; the page counts it as claimed. */
bool hk_pg_pages_find(struct hk_pg_pages *pages, int64_t id, const PGresult **out_res, int *out_row);
/* `res` was read behind `after_id`: heads in binary, their ids first. */
void hk_pg_page_fill(struct hk_pg_pages *pages, struct hk_pg_page *page, PGresult *res, uint32_t asked,
                     bool whole, int64_t after_id, uint64_t shards, unsigned pool);
/* All of it is out of date. `pool`: of the call under way. */
void hk_pg_pages_drop(struct hk_pg_pages *pages, unsigned pool);
/* A call begins that uses the pool again. */
void hk_pg_pages_call(struct hk_pg_pages *pages, unsigned pool);
void hk_pg_pages_fini(struct hk_pg_pages *pages);

#endif
