/* SPDX-License-Identifier: Apache-2.0 */
/* The statements about dead letters by name. They share the operators' connection, so their numbers follow
 * admin_stmt.h's. What their parameters and columns are stands with each of them in sql/letters.sql. */
#ifndef HK_STORE_PG_LETTERS_STMT_H
#define HK_STORE_PG_LETTERS_STMT_H

#include "store/pg/admin_stmt.h"

/* Which index gives the letters that a query means, in the order of their ids. */
enum hk_pl_path {
    HK_PL_BY_ID = 0,
    HK_PL_BY_STATUS,
    HK_PL_BY_DESTINATION, /* from here on with the statuses, too */
    HK_PL_BY_REASON,
    HK_PL_BY_GROUP,
    HK_PL_BY_REDRIVE,
    HK_PL_BY_MESSAGE, /* without */
    HK_PL_BY_TYPE,
    HK_PL_BY_CORRELATION,
    HK_PL_NPATHS
};

#endif
