/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the relay's side of the PostgreSQL store by name; prepared at first use and kept. */
#ifndef HK_STORE_PG_STMT_H
#define HK_STORE_PG_STMT_H

#include "store/pg/pg.h"
#include "store/pg/relay_sql.h" /* made of sql/relay.sql */

enum {
    HK_PG_HEAD_TEXT_MAX =
        8 * 1024, /* a longer destination, key … is refused as malformed; see LINE in sql/relay.sql */
    HK_PG_TEXT_MAX =
        256 * 1024,        /* the same for headers and the like; payloads have their own limit; see FITS */
    HK_PG_SMALL_MAX = 1024 /* a payload that is read along with its head; see SMALL */
};

#define HK_PG_STAYS                                                                                          \
    "hikyaku: the row stays" /* in the server's words, when a statement of ours changed nothing */

const char *hk_pg_sql(enum hk_pg_id id);

extern const struct hk_pg_table hk_pg_relay_table; /* with the planner's guards */

#endif
