/* SPDX-License-Identifier: Apache-2.0 */
/* How the statements of the relay's side are planned and read. Their texts are in sql/relay.sql. */
#include "store/pg/stmt.h"

const char *hk_pg_sql(enum hk_pg_id id)
{
    return hk_pg_texts[id];
}

static const char *sql_of(unsigned id)
{
    return hk_pg_texts[id];
}

/* Statements that are prepared on an empty table and flooded later keep their plans: what is off here is never right. A join
 * is a short list on the left, and a search in an index for each of its items.
 * Plans are made once: PostgreSQL would compare costs that it estimates for each set of parameters, and plan again and
 * again. And a path that is "off" looks so dear that each of them would be compiled, or given to parallel workers, whose
 * start takes longer than the scan. */
static const char *const guards[] = {"enable_seqscan",
                                     "off",
                                     "enable_bitmapscan",
                                     "off",
                                     "enable_sort",
                                     "off",
                                     "enable_hashjoin",
                                     "off",
                                     "enable_mergejoin",
                                     "off",
                                     "enable_material",
                                     "off",
                                     "plan_cache_mode",
                                     "force_generic_plan",
                                     "jit",
                                     "off",
                                     "max_parallel_workers_per_gather",
                                     "0",
                                     NULL};

/* Rows of messages: times come as they are, infinities included, and no digits need to be read. */
static bool is_binary(unsigned id)
{
    return (id >= HK_PG_SCAN && id <= HK_PG_SCAN_DEST_WHOLE) || id == HK_PG_READ || id == HK_PG_CLAIM_BOTH;
}

const struct hk_pg_table hk_pg_relay_table = {sql_of, HK_PG_NSTMTS, guards, is_binary};
