/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing on the caller's own SQLite handle, inside the caller's own transaction: the message leaves if, and only if,
 * that transaction commits. */
#ifndef HIKYAKU_OUTBOX_SQLITE_H
#define HIKYAKU_OUTBOX_SQLITE_H

#include <hikyaku/error.h>
#include <hikyaku/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3;

/* Inserts one row into `outbox` of the database that `db` has open. Begins and commits nothing. `*out_id` (may be NULL)
 * is the row's id. HK_INVALID: no event type; HK_NOTFOUND: no outbox table (`hikyaku init`); HK_BUSY: locked by another
 * writer; HK_IO: anything else that SQLite said, in its words. After an error the caller's transaction stands as SQLite
 * left it: roll it back. */
HK_API enum hk_code hk_outbox_enqueue_sqlite(struct sqlite3 *db, const struct hk_outbox_message *message,
                                             int64_t *out_id, struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
