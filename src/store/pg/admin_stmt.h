/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the operators' side of the PostgreSQL store by name. What their parameters and columns are stands
 * with each of them in admin_stmt.c. */
#ifndef HK_STORE_PG_ADMIN_STMT_H
#define HK_STORE_PG_ADMIN_STMT_H

#include "store/pg/pg.h"

/* Those that exist for each place stand in the order of enum hk_place. */
enum hk_pa_id {
    /* admin.c */
    HK_PA_ENQUEUE = 0,
    HK_PA_PAUSE,
    HK_PA_FIND,
    /* admin_act.c */
    HK_PA_LOCK_LANES,
    HK_PA_LOCK_SHARDS,
    HK_PA_LOCK_RETRIES,
    HK_PA_CANCEL,
    HK_PA_RETRY,
    HK_PA_FATE,
    /* admin_list.c */
    HK_PA_LIST, /* and the other four places' */
    HK_PA_FLOOR = HK_PA_LIST + 5,
    HK_PA_SHOW = HK_PA_FLOOR + 5,
    HK_PA_LIST_OUTBOX_HELD = HK_PA_SHOW + 5,
    HK_PA_LIST_RETRY_HELD,
    HK_PA_LIST_DEAD_AWAY,
    HK_PA_LIST_OUTBOX_OF,
    HK_PA_ATTEMPTS,
    /* admin_status.c */
    HK_PA_RELAY,
    HK_PA_PAUSES,
    HK_PA_IN_FLIGHT,
    HK_PA_WALK_OUTBOX, /* three of each kind, in this order */
    HK_PA_WALK_RETRY,
    HK_PA_WALK_DEAD,
    HK_PA_SAMPLE_OUTBOX,
    HK_PA_SAMPLE_RETRY,
    HK_PA_SAMPLE_DEAD,
    HK_PA_BY_NAME_OUTBOX,
    HK_PA_BY_NAME_RETRY,
    HK_PA_BY_NAME_DEAD,
    HK_PA_COUNT_SENT,
    HK_PA_COUNT_CANCELLED,
    HK_PA_ABOUT_SENT,
    HK_PA_ABOUT_CANCELLED,
    HK_PA_RELAYS,
    HK_PA_AS_IT_IS,
    HK_PA_NO_HURRY,
    /* admin_figures.c */
    HK_PA_OFFHAND,
    HK_PA_FIGURES_PUT,
    HK_PA_FIGURES,
    /* admin_why.c */
    HK_PA_HEADS,
    HK_PA_BLOCKED_OUTBOX,
    HK_PA_BLOCKED_RETRY,
    HK_PA_BLOCKED_ABOUT,
    HK_PA_WAITING,
    HK_PA_WHY_PLACE,
    HK_PA_WHY_LANE,
    HK_PA_WHY_HEAD,
    HK_PA_WHY_AHEAD,
    HK_PA_WHY_STUCK,
    HK_PA_GUARDS,
    HK_PA_SHAPE,
    HK_PA_STUCK_COUNT,
    /* admin_inspect.c */
    HK_PA_SERVER,
    HK_PA_HORIZON,
    HK_PA_PLAN,
    HK_PA_RIGHTS,
    HK_PA_SENT_DAYS,
    HK_PA_WAKE,
    HK_PA_OPEN_FUNCTIONS,
    HK_PA_STRANGE_TRIGGERS,
    HK_PA_NSTMTS
};

/* Columns of HK_PA_LIST and HK_PA_SHOW. */
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
    HK_PA_C_HEADERS, /* from here on only with HK_PA_SHOW */
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
