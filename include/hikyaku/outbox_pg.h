/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing on the caller's own libpq connection, inside the caller's own transaction: the message leaves if, and only if,
 * that transaction commits. */
#ifndef HIKYAKU_OUTBOX_PG_H
#define HIKYAKU_OUTBOX_PG_H

#include <hikyaku/error.h>
#include <hikyaku/outbox.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pg_conn; /* libpq's PGconn */

/* Where the outbox lies, as `schema` and `prefix` of the store's URL say. NULL and "": as the search path says; none. */
struct hk_outbox_place {
    const char *schema, *prefix;
};

/* Inserts one row into `outbox` (`place` NULL: in the search path, without prefix). Begins and commits nothing; blocks as
 * PQexecParams does. `*out_id` (may be NULL) is the row's id; asking for it needs the right to read that column.
 *
 * Texts are in the connection's client_encoding. The payload is bytes: what is not text (a NUL, or not UTF-8), or would not
 * survive the connection's or the database's encoding, is written as base64, which the relay takes back before it sends.
 *
 * HK_INVALID: no event type, a time that is none, a text that is not UTF-8 on a UTF-8 connection, a name of schema or prefix
 * with other than letters, digits and '_', a connection that is in pipeline mode or in the middle of a command, or whose
 * transaction has failed already; HK_TOOBIG: more than PostgreSQL takes. With these nothing was sent and the transaction is
 * as it was.
 * HK_NOTFOUND: no outbox table (`hikyaku init`); HK_BUSY: deadlock, serialization, time-out; HK_UNAVAILABLE: no connection,
 * or the server has no room; HK_IO: anything else that PostgreSQL said, in its words. After these the caller's transaction is
 * as PostgreSQL left it, aborted: roll it back, or back to a savepoint.
 * HK_UNSUPPORTED: this library was built without PostgreSQL. */
HK_API enum hk_code hk_outbox_enqueue_pg(struct pg_conn *conn, const struct hk_outbox_place *place,
                                         const struct hk_outbox_message *message, int64_t *out_id,
                                         struct hk_err *err) HK_MUSTCHECK;

#ifdef __cplusplus
}
#endif
#endif
