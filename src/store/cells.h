/* SPDX-License-Identifier: Apache-2.0 */
/* A row of a result, whichever SQL store it comes from: for rows that all stores read in the same way, column by column. */
#ifndef HK_STORE_CELLS_H
#define HK_STORE_CELLS_H

#include <hikyaku/facts.h>

struct hk_cells {
    int64_t (*number)(const struct hk_cells *row, int column); /* NULL is 0 */
    bool (*flag)(const struct hk_cells *row, int column);
    /* Up to `max` bytes, in the memory of the store's call; NULL is "". */
    struct hk_str (*text)(const struct hk_cells *row, int column, size_t max);
    /* the store's */
    void *store, *statement;
    const void *result;
    int row, first; /* the first column of what is read */
};

/* A count: what is below 0 is 0. */
static inline uint64_t hk_cells_count(const struct hk_cells *row, int column)
{
    int64_t value = row->number(row, column);
    return value < 0 ? 0 : (uint64_t)value;
}

struct hk_job;
struct hk_token;

/* The columns of a job without request, cursor and result, in the order of HEAD in sql/jobs.sql; the next column. */
int hk_cells_job(const struct hk_cells *row, struct hk_job *out);
/* Those of a token, in the order of sql/api.sql. */
void hk_cells_token(const struct hk_cells *row, struct hk_token *out);

#endif
