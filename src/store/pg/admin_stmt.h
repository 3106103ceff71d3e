/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the operators' side of the PostgreSQL store by name. What their parameters and columns are stands
 * with each of them in sql/admin.sql. */
#ifndef HK_STORE_PG_ADMIN_STMT_H
#define HK_STORE_PG_ADMIN_STMT_H

#include "store/pg/pg.h"

/* Made of sql/admin.sql, letters.sql, alerts.sql, api.sql and jobs.sql, in this order: their numbers go on. */
/* clang-format off */
#include "store/pg/admin_sql.h"
#include "store/pg/letters_sql.h"
#include "store/pg/alerts_sql.h"
#include "store/pg/api_sql.h"
#include "store/pg/jobs_sql.h"

/* clang-format on */

/* Columns of HK_PA_LIST_IN_RETRY and HK_PA_SHOW_IN_RETRY. */
enum {
    HK_PA_C_ID,
    HK_PA_C_OUTBOX_ID,
    HK_PA_C_MESSAGE_ID,
    HK_PA_C_DESTINATION,
    HK_PA_C_EVENT_TYPE,
    HK_PA_C_KEY,
    HK_PA_C_CORRELATION_ID,
    HK_PA_C_STATE,
    HK_PA_C_ATTEMPTS,
    HK_PA_C_CRASHES,
    HK_PA_C_LIFE,
    HK_PA_C_CREATED_MS,
    HK_PA_C_NEXT_MS,
    HK_PA_C_LAST_MS,
    HK_PA_C_DONE_MS,
    HK_PA_C_ERROR,
    HK_PA_C_CAUSE,
    HK_PA_C_LOCKED_BY,
    HK_PA_C_LOCKED_MS,
    HK_PA_C_STATUS,
    HK_PA_C_LETTER,
    HK_PA_C_ACTOR,
    HK_PA_C_REASON,
    HK_PA_C_HEADERS, /* from here on only with HK_PA_SHOW_IN_RETRY */
    HK_PA_C_CONTENT_TYPE,
    HK_PA_C_ENCODING,
    HK_PA_C_TRACEPARENT,
    HK_PA_C_IDEMPOTENCY_KEY,
    HK_PA_C_POLICY,
    HK_PA_C_MAX_ATTEMPTS,
    HK_PA_C_NOT_BEFORE,
    HK_PA_C_EXPIRES,
    HK_PA_C_DETAIL,
    HK_PA_C_FIRST_MS,
    HK_PA_C_PAYLOAD_BYTES,
    HK_PA_C_PAYLOAD
};

/* Of HK_PA_LIST_IN_RETRY, behind HK_PA_C_REASON. */
enum {
    HK_PA_L_FOUND = HK_PA_C_REASON + 1,
    HK_PA_L_ENCODING,
    HK_PA_L_PAYLOAD
};

/* Columns of the three kinds of HK_PA_WALK and HK_PA_SAMPLE. */
enum {
    HK_PA_W_TOTAL, /* 1: of all destinations together, the first row; else 0 */
    HK_PA_W_DESTINATION,
    HK_PA_W_N,
    HK_PA_W_CLAIMED,
    HK_PA_W_SCHEDULED, /* these three leave out what is claimed */
    HK_PA_W_DUE,
    HK_PA_W_RETRYING,
    HK_PA_W_TRIED, /* due or not */
    HK_PA_W_OLDEST_MS,
    HK_PA_W_OLDEST_DUE_MS,
    HK_PA_W_BUCKETS,                     /* the first of HK_ATTEMPT_BUCKETS */
    HK_PA_W_FACTOR = HK_PA_W_BUCKETS + 8 /* how many times more rows there are; 1 for a walk */
};

const char *hk_pa_sql(unsigned id);

extern const struct hk_pg_table hk_pg_admin_table;

#endif
