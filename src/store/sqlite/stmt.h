/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the SQLite store by name; prepared at first use and kept. */
#ifndef HK_STORE_SQLITE_STMT_H
#define HK_STORE_SQLITE_STMT_H

#include "store/columns.h"

enum hk_sq_id {
    HK_SQ_BEGIN_WRITE = 0,
    HK_SQ_BEGIN_READ,
    HK_SQ_COMMIT,
    HK_SQ_ROLLBACK,
    HK_SQ_HIGH_WATER,
    HK_SQ_SET_HIGH_WATER,
    HK_SQ_META,
    HK_SQ_SET_META,

    HK_SQ_DATA_VERSION,
    HK_SQ_LAST_ID,
    HK_SQ_LAST_ACT,
    HK_SQ_DESTS,
    /* Heads; each with a _BARE form that reads nothing that may be huge. Same order of columns everywhere. */
    HK_SQ_SCAN,
    HK_SQ_SCAN_BARE,
    HK_SQ_SCAN_DEST,
    HK_SQ_SCAN_DEST_BARE,
    HK_SQ_SCAN_KEY,
    HK_SQ_SCAN_KEY_BARE,
    HK_SQ_SCAN_RETRY,
    HK_SQ_SCAN_RETRY_BARE,
    HK_SQ_SCAN_RETRY_KEY,
    HK_SQ_SCAN_RETRY_KEY_BARE,
    HK_SQ_HELD_RETRY,
    HK_SQ_HELD_DEAD,
    HK_SQ_HELD_STUCK,

    HK_SQ_LANES,
    HK_SQ_ADD_LANE,
    HK_SQ_RENEW_LANE,
    HK_SQ_DROP_LANE,
    HK_SQ_LANE_IDS,
    HK_SQ_LANE_HAND,
    HK_SQ_ORPHAN_ATTEMPTS,
    HK_SQ_ORPHAN_RETRIES,
    HK_SQ_FREE_RETRIES,
    HK_SQ_DROP_LANE_CLAIMS,

    HK_SQ_CIRCUIT,

    HK_SQ_CLAIM_STANDS,
    HK_SQ_CLAIM_IDS,
    HK_SQ_CLAIM_RETRIES,
    HK_SQ_ADD_CLAIM,
    HK_SQ_SET_CLAIM_IDS,
    HK_SQ_DROP_CLAIM,
    /* Messages; _ONE by id, _BARE without payload. Same order of columns everywhere. */
    HK_SQ_READ_MANY,
    HK_SQ_READ_RANGE,
    HK_SQ_READ_ONE,
    HK_SQ_READ_BARE,
    HK_SQ_READ_RETRY,
    HK_SQ_READ_RETRY_BARE,
    HK_SQ_CLAIM_RETRY,

    HK_SQ_DROP_RANGE,
    HK_SQ_DROP_RETRY,
    HK_SQ_KEEP_SENT,
    HK_SQ_KEEP_SENT_RETRY,
    HK_SQ_NOT_BEFORE,
    HK_SQ_MOVE,
    HK_SQ_COPY_RETRY,
    HK_SQ_UPDATE_RETRY,
    HK_SQ_DEFER_RETRY,
    HK_SQ_RELEASE_RETRY,
    HK_SQ_RETRY_LETTER,
    HK_SQ_PLAIN,
    HK_SQ_PLAIN_RETRY,
    HK_SQ_ADD_LETTER,
    HK_SQ_ADD_LETTER_RETRY,
    HK_SQ_REOPEN_LETTER,
    HK_SQ_RESOLVE_LETTER,
    HK_SQ_ADD_ATTEMPT,
    HK_SQ_ADD_ATTEMPT_RETRY,
    HK_SQ_HAS_ROW,
    HK_SQ_HAS_RETRY,
    HK_SQ_TRIGGERS,
    HK_SQ_LACKS,
    HK_SQ_STICK,
    HK_SQ_STICK_RETRY,
    HK_SQ_STUCK,
    HK_SQ_STUCK_ONE,
    HK_SQ_UNSTICK,

    HK_SQ_PAUSE,
    HK_SQ_PURGE_SENT,
    HK_SQ_PURGE_SENT_ROWS,
    HK_SQ_PURGE_LETTERS,
    HK_SQ_PURGE_DEAD,
    HK_SQ_PURGE_CANCELLED,
    HK_SQ_PURGE_ATTEMPTS,
    HK_SQ_PURGE_REDRIVES,
    HK_SQ_ADD_AUDIT,
    HK_SQ_OLD_AUDIT,
    HK_SQ_PURGE_AUDIT,
    HK_SQ_NSTMTS
};

/* Columns that are missing: one line; no row = none is. */
#define HK_SQ_LACKS_ONE(table, columns)                                                                      \
    "SELECT '" table "' AS t, j.value AS c FROM json_each('[\"' || replace('" columns                        \
    "', ',', '\",\"') || '\"]') j WHERE j.value NOT IN (SELECT lower(i.name) FROM pragma_table_info('" table \
    "') i)"
#define HK_SQ_LACKS_SQL                                                                                                  \
    "SELECT 'the table ' || t || ' lacks ' || group_concat(c, ', ') || ': was it renamed?' FROM (" HK_SQ_LACKS_ONE(      \
        "outbox",                                                                                                        \
        HK_OUTBOX_COLUMNS) " UNION ALL " HK_SQ_LACKS_ONE("outbox_retry",                                                 \
                                                         HK_RETRY_COLUMNS) " UNION ALL " HK_SQ_LACKS_ONE("dead_letters", \
                                                                                                         HK_LETTER_COLUMNS) ") GROUP BY t ORDER BY t LIMIT 1"

/* Of others, on our tables: one line. One that only fires when an application writes to outbox is its own business. */
#define HK_SQ_TRIGGERS_SQL                                                                                                                    \
    "SELECT group_concat('trigger ' || name || ' on ' || tbl_name, ', ') FROM sqlite_master "                                                 \
    "WHERE type = 'trigger' AND name <> 'dead_letters_gone' AND (lower(tbl_name) <> 'outbox' OR sql LIKE '%delete%' OR sql LIKE '%update%') " \
    "AND lower(tbl_name) IN ('outbox', 'outbox_retry', 'dead_letters', 'outbox_claim', 'outbox_stuck')"

const char *hk_sq_sql(enum hk_sq_id id);

#endif
