/* SPDX-License-Identifier: Apache-2.0 */
/* The statements about dead letters by name. They share the operators' connection, so their numbers follow
 * admin_stmt.h's. What their parameters and columns are stands with each of them in letters_stmt.c. */
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
    HK_PL_NPATHS
};

enum hk_pl_id {
    /* letters.c: one of each for each path */
    HK_PL_NEWEST = HK_PA_NSTMTS,
    HK_PL_OLDEST = HK_PL_NEWEST + HK_PL_NPATHS,
    HK_PL_COUNT = HK_PL_OLDEST + HK_PL_NPATHS,    /* what lies on the path */
    HK_PL_COUNT_FIT = HK_PL_COUNT + HK_PL_NPATHS, /* and fits the rest */
    HK_PL_ABOUT = HK_PL_COUNT_FIT + HK_PL_NPATHS,
    HK_PL_LAST_ID,
    /* letters_sum.c */
    HK_PL_GROUPS,
    HK_PL_SCANS, /* lets the planner read tables from end to end, in this transaction */
    HK_PL_TALLIES,
    HK_PL_DAYS,
    HK_PL_LONGEST,
    /* letters_show.c */
    HK_PL_SHOW,
    HK_PL_REQUEUED_AS,
    HK_PL_PAUSED,
    HK_PL_ATTEMPTS,
    HK_PL_VERSIONS,
    HK_PL_ACTS,
    HK_PL_BLOCKED,
    HK_PL_AUDIT_NEWEST, /* of a letter follows each */
    HK_PL_AUDIT_NEWEST_OF,
    HK_PL_AUDIT_OLDEST,
    HK_PL_AUDIT_OLDEST_OF,
    HK_PL_CHAIN,
    HK_PL_ACT_LETTERS,
    /* letters_act.c */
    HK_PL_LOCK,
    HK_PL_EDIT,
    HK_PL_FIX,
    HK_PL_REQUEUE,
    HK_PL_RESOLVE,
    HK_PL_DISCARD,
    HK_PL_RESTORE,
    HK_PL_REMARK,
    HK_PL_SEND_BEGIN,
    HK_PL_SEND_END,
    /* letters_regroup.c */
    HK_PL_STALE_GROUPS,
    HK_PL_REGROUP,
    /* letters_redrive.c */
    HK_PL_JOB_TURN,
    HK_PL_JOB_START,
    HK_PL_JOBS,
    HK_PL_JOB_END,
    HK_PL_JOB_CANCEL,
    HK_PL_STEP,
    HK_PL_END
};

/* Columns of a letter; where they begin differs. */
enum {
    HK_PL_C_ID,
    HK_PL_C_OUTBOX_ID,
    HK_PL_C_MESSAGE_ID,
    HK_PL_C_EVENT_TYPE,
    HK_PL_C_DESTINATION,
    HK_PL_C_KEY,
    HK_PL_C_CORRELATION_ID,
    HK_PL_C_TRACEPARENT,
    HK_PL_C_REASON,
    HK_PL_C_ERROR,
    HK_PL_C_CLASS,
    HK_PL_C_FAULT,
    HK_PL_C_FINGERPRINT,
    HK_PL_C_STATUS,
    HK_PL_C_ATTEMPTS,
    HK_PL_C_CRASHES,
    HK_PL_C_LIFE,
    HK_PL_C_REQUEUES,
    HK_PL_C_VERSION,
    HK_PL_C_POSSIBLY,
    HK_PL_C_MESSAGE_MS,
    HK_PL_C_CREATED_MS,
    HK_PL_C_FIRST_MS,
    HK_PL_C_LAST_MS,
    HK_PL_C_ATTEMPT_MS,
    HK_PL_C_REQUEUED_MS,
    HK_PL_C_RESOLVED_MS,
    HK_PL_C_EDITED_MS,
    HK_PL_C_SENDING_MS,
    HK_PL_C_REQUEUED_AS,
    HK_PL_C_RESOLUTION,
    HK_PL_C_REDRIVE,
    HK_PL_C_PAYLOAD_BYTES,
    HK_PL_C_PAYLOAD,
    HK_PL_C_HEADERS, /* from here on details */
    HK_PL_C_CONTENT_TYPE,
    HK_PL_C_ENCODING,
    HK_PL_C_IDEMPOTENCY_KEY,
    HK_PL_C_POLICY,
    HK_PL_C_EXPIRES,
    HK_PL_C_DETAIL,
    HK_PL_C_MAX_ATTEMPTS
};

/* Columns of HK_PL_NEWEST and HK_PL_OLDEST before the letter's. */
enum {
    HK_PL_W_NOW,
    HK_PL_W_FOUND,  /* letters that fit, also those that were left out for the sake of memory */
    HK_PL_W_LOOKED, /* NULL: as many fit as were asked for. Else letters that were looked at, */
    HK_PL_W_LAST,   /* and the last of them */
    HK_PL_W_LETTER
};

const char *hk_pl_sql(unsigned id);

#endif
