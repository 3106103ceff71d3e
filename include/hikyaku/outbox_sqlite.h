/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues a message on the caller's own SQLite handle, in the caller's own transaction. The relay sends the message if, and
 * only if, that transaction commits. */
#ifndef HIKYAKU_OUTBOX_SQLITE_H
#define HIKYAKU_OUTBOX_SQLITE_H

#include <hikyaku/error.h>
#include <hikyaku/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sqlite3;

/* Inserts one row into `outbox` of the database that `db` has open. It neither begins nor commits a transaction. `*out_id`
 * (may be NULL) receives the row's id.
 * HK_INVALID: no event type. HK_NOTFOUND: no outbox table (`hikyaku init`). HK_BUSY: another writer holds the lock.
 * HK_IO: any other error, with SQLite's text. After an error, roll the transaction back. */
HK_API enum hk_code hk_outbox_enqueue_sqlite(struct sqlite3 *db, const struct hk_outbox_message *message,
                                             int64_t *out_id, struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
