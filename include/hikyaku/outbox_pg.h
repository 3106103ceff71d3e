/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueues a message on the caller's own libpq connection, in the caller's own transaction. The relay sends the message if, and
 * only if, that transaction commits. */
#ifndef HIKYAKU_OUTBOX_PG_H
#define HIKYAKU_OUTBOX_PG_H

#include <hikyaku/error.h>
#include <hikyaku/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pg_conn; /* libpq's PGconn */

/* Where the outbox is: the `schema` and `prefix` of the store's URL. NULL or "": found in the search path; no prefix. */
struct hk_outbox_place {
    const char *schema, *prefix;
};

/* Inserts one row into `outbox` (`place` NULL: found in the search path, without prefix). It neither begins nor commits a
 * transaction, and blocks as PQexecParams does. `*out_id` (may be NULL) receives the row's id; this needs the right to read that
 * column.
 *
 * Texts are in the connection's client_encoding. The payload is bytes. Bytes that are not text (a NUL, or not UTF-8), or that
 * the connection's or the database's encoding would change, are written as base64; the relay decodes them before it sends.
 *
 * These errors are found before anything is sent to the server, and leave the transaction as it was:
 * HK_INVALID: no event type, a malformed time, a text that is not UTF-8 on a UTF-8 connection, a schema or prefix with other
 * characters than letters, digits and '_', a connection in pipeline mode or in the middle of a command, or a transaction that
 * has failed already. HK_TOOBIG: more than PostgreSQL accepts.
 *
 * These come from the server, which has then aborted the transaction: roll it back, or back to a savepoint.
 * HK_NOTFOUND: no outbox table (`hikyaku init`). HK_BUSY: deadlock, serialization failure, timeout. HK_UNAVAILABLE: no
 * connection, or the server has no resources. HK_IO: any other error, with PostgreSQL's text.
 *
 * HK_UNSUPPORTED: this library was built without PostgreSQL. */
HK_API enum hk_code hk_outbox_enqueue_pg(struct pg_conn *conn, const struct hk_outbox_place *place,
                                         const struct hk_outbox_message *message, int64_t *out_id,
                                         struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
