/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the relay's side of the PostgreSQL store by name; prepared at first use and kept. */
#ifndef HK_STORE_PG_STMT_H
#define HK_STORE_PG_STMT_H

#include "store/columns.h"
#include "store/pg/pg.h"

enum hk_pg_id {
    /* keep.c */
    HK_PG_NOW = 0,
    HK_PG_PAUSE,
    HK_PG_PURGE,
    HK_PG_PURGE_AUDIT,
    HK_PG_SENT_IS_DAILY,
    HK_PG_SENT_DAYS, /* only when it is */

    /* lane.c */
    HK_PG_CHECK_OUTBOX,
    HK_PG_CHECK_SHAPE,
    HK_PG_LANES,
    HK_PG_SHARDS_OF_ALL,
    HK_PG_ADD_LANE,
    HK_PG_DROP_LOST_LANES,
    HK_PG_HOLD_LANE,
    HK_PG_IS_OUR_LANE,
    HK_PG_TAKE_SHARDS,
    HK_PG_FREE_SHARDS,
    HK_PG_TAKE_OVER, /* then the five that follow, in one transaction */
    HK_PG_ORPHANS,
    HK_PG_STICK_ORPHANS, /* in its place, where some of them cannot go */
    HK_PG_ORPHAN_RETRIES,
    HK_PG_DROP_ORPHANED_CLAIMS,
    HK_PG_FREE_ORPHANED_SHARDS,
    HK_PG_DROP_ORPHANED_LANE,
    HK_PG_EVICT,
    HK_PG_FREE_RETRIES,
    HK_PG_DROP_LANE_CLAIMS,
    HK_PG_DROP_LANE,

    /* scan.c */
    HK_PG_ARM,
    HK_PG_SNAPSHOT,
    HK_PG_TAKE_NUMBER,
    HK_PG_DESTS,
    /* Heads, in binary; the same order of columns everywhere. */
    HK_PG_SCAN,
    HK_PG_SCAN_LATE,
    HK_PG_SCAN_DEST,
    HK_PG_SCAN_KEY,
    HK_PG_SCAN_RETRY,
    HK_PG_SCAN_RETRY_KEY,
    /* The same with the rest of the message behind it, where that is small. */
    HK_PG_SCAN_WHOLE,
    HK_PG_SCAN_DEST_WHOLE,
    HK_PG_HELD_RETRY,
    HK_PG_HELD_DEAD,
    HK_PG_HELD_STUCK,

    /* exchange.c */
    HK_PG_PATIENCE,
    HK_PG_RENEW,
    HK_PG_MARK,
    HK_PG_IS_MARKED,
    HK_PG_FENCE,
    HK_PG_LOAD_CLAIMS,
    HK_PG_SET_CLAIM_IDS,
    HK_PG_CLAIM, /* rows of outbox alone; then READ gives them, unless they are at hand */
    /* Messages, in binary; the same order of columns. */
    HK_PG_READ,
    HK_PG_CLAIM_BOTH,
    HK_PG_BURN_EXCHANGE,
    HK_PG_FREE_STRAY_RETRIES,
    HK_PG_DROP_STRAY_CLAIMS,

    /* quota.c */
    HK_PG_QUOTAS,
    HK_PG_CIRCUITS,

    /* settle.c */
    HK_PG_SENT,
    HK_PG_SENT_KEPT,
    HK_PG_SENT_RETRY,
    HK_PG_SENT_RETRY_KEPT,
    HK_PG_MOVE,
    HK_PG_COPY_RETRY,
    HK_PG_UPDATE_RETRY,
    HK_PG_DEFER_RETRY,
    HK_PG_RELEASE_RETRY,
    HK_PG_BURY,
    HK_PG_BURY_RETRY,
    HK_PG_ADD_ATTEMPT,
    HK_PG_ADD_ATTEMPT_RETRY,

    /* stuck.c */
    HK_PG_STICK,
    HK_PG_STICK_RETRY,
    HK_PG_STUCK,
    HK_PG_STUCK_ONE,
    HK_PG_RECLAIM,
    HK_PG_UNSTICK,
    HK_PG_GUARDS,
    HK_PG_NSTMTS
};

enum {
    HK_PG_HEAD_TEXT_MAX =
        8 * 1024, /* a longer destination, key … is refused as malformed; see LINE in stmt.c */
    HK_PG_TEXT_MAX =
        256 * 1024,        /* the same for headers and the like; payloads have their own limit; see FITS */
    HK_PG_SMALL_MAX = 1024 /* a payload that is read along with its head; see SMALL */
};

#define HK_PG_STAYS                                                                                          \
    "hikyaku: the row stays" /* in the server's words, when a statement of ours changed nothing */

/* Triggers, rules and row-level security on our tables: what, its name, the table's; and children of outbox. Those of ours are
 * left out. */
#define HK_PG_GUARDS_SQL                                                                                                                       \
    "WITH t AS (SELECT c.oid, c.relname, c.relrowsecurity, c.relforcerowsecurity FROM pg_class c WHERE c.oid IN "                              \
    "(to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters'), to_regclass('@outbox_claim'), "                      \
    "to_regclass('@outbox_stuck'))) "                                                                                                          \
    "SELECT 'trigger', g.tgname::text, t.relname::text FROM t JOIN pg_trigger g ON g.tgrelid = t.oid WHERE NOT g.tgisinternal "                \
    "AND g.tgenabled <> 'D' AND g.tgfoid <> coalesce(to_regproc('@outbox_wake_up')::oid, 0::oid) "                                             \
    "AND (g.tgtype & 24 <> 0 OR t.oid <> to_regclass('@outbox')) "                                                                             \
    "UNION ALL SELECT 'rule', r.rulename::text, t.relname::text FROM t JOIN pg_rewrite r ON r.ev_class = t.oid "                               \
    "UNION ALL SELECT 'row-level security', CASE WHEN row_security_active(t.oid) THEN 'active for ' || current_user "                          \
    "ELSE 'not for ' || current_user END, t.relname::text FROM t WHERE t.relrowsecurity "                                                      \
    "UNION ALL SELECT 'foreign key', k.conname::text, t.relname::text FROM t JOIN pg_constraint k ON k.confrelid = t.oid AND k.contype = 'f' " \
    "WHERE k.conrelid <> ALL (ARRAY(SELECT t.oid FROM t)) AND k.conrelid IS DISTINCT FROM to_regclass('@dead_letter_versions')::oid ORDER BY 3, 1, 2"

/* What no relay can work with, in words; no row = nothing. Two rows of a child and its parent may have one id, and PostgreSQL supports no
 * rules where we write. */
#define HK_PG_SHAPE_SQL                                                                                                                                       \
    "SELECT 'the table ' || i.inhrelid::regclass || ' inherits from ' || i.inhparent::regclass || ': rows of both may have the "                              \
    "same id; end it with ALTER TABLE ... NO INHERIT' FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhparent "                                             \
    "WHERE i.inhparent IN (to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters')) AND c.relkind = 'r' "                          \
    "UNION ALL SELECT 'the column ' || n.name || ' of ' || w.name || ' is not there: was it renamed?' FROM (VALUES ('outbox', '@outbox', '" HK_OUTBOX_COLUMNS \
    ",xid,shard'), ('outbox_retry', '@outbox_retry', '" HK_RETRY_COLUMNS                                                                                      \
    ",shard'), ('dead_letters', '@dead_letters', '" HK_LETTER_COLUMNS                                                                                         \
    "')) AS w (name, place, columns), unnest(string_to_array(w.columns, ',')) AS n (name) "                                                                   \
    "WHERE NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = to_regclass(w.place) AND a.attname = n.name AND NOT a.attisdropped) "                  \
    "UNION ALL SELECT 'the rule ' || r.rulename || ' on ' || r.ev_class::regclass || ' is not supported: drop it' FROM pg_rewrite r "                         \
    "WHERE r.ev_class IN (to_regclass('@outbox'), to_regclass('@outbox_retry'), to_regclass('@dead_letters'), to_regclass('@outbox_claim')) "                 \
    "LIMIT 1"

const char *hk_pg_sql(enum hk_pg_id id);

extern const struct hk_pg_table hk_pg_relay_table; /* with the planner's guards */

#endif
