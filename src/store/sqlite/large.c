/* SPDX-License-Identifier: Apache-2.0 */
/* Payloads of any size become a dead letter's, a piece at a time. A statement that copies a row holds the payload twice: as a value,
 * and as the record that is written. So the letter is written with as many zeros, which cost no memory, and they are written over. That
 * holds only while nothing but NULL stands behind the payload: such a letter has no `fingerprint_made`. */
#include <string.h>

#include "base/mem.h"
#include "store/sqlite/sqlite.h"

#define PIECE ((size_t)256 * 1024)

/* Of the row's payload as it stands in the file: those are the bytes that go out, unless it is text in UTF-16. */
static bool is_plain(struct hk_store *store, enum hk_source source, int64_t id)
{
    sqlite3_stmt *q = hk_sq_use(store, source == HK_FROM_OUTBOX ? HK_SQ_PLAIN : HK_SQ_PLAIN_RETRY);
    hk_sq_bind_i64(store, q, 1, id);
    bool plain = hk_sq_row(store, q) && sqlite3_column_int(q, 0) != 0;
    hk_sq_done(q);
    return plain;
}

static sqlite3_blob *open_blob(struct hk_store *store, const char *table, int64_t id, bool write)
{
    sqlite3_blob *blob = NULL;
    int rc = hk_sq_ok(store) ? sqlite3_blob_open(store->db, "main", table, "payload", id, write, &blob)
                             : SQLITE_OK;
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
    return blob;
}

static const char *table_of(enum hk_source source)
{
    return source == HK_FROM_OUTBOX ? "outbox" : "outbox_retry";
}

int hk_sq_large_payload(struct hk_store *store, enum hk_source source, int64_t id)
{
    if (!is_plain(store, source, id))
        return 0;
    sqlite3_blob *blob = open_blob(store, table_of(source), id, false);
    int bytes = blob ? sqlite3_blob_bytes(blob) : 0;
    sqlite3_blob_close(blob);
    return bytes > HK_SQ_LARGE ? bytes : 0;
}

static int copy(sqlite3_blob *from, sqlite3_blob *to, int bytes)
{
    char *piece = hk_mem_alloc(PIECE);
    int rc = piece ? SQLITE_OK : SQLITE_NOMEM;
    for (int at = 0; rc == SQLITE_OK && at < bytes; at += (int)PIECE) {
        int n = bytes - at < (int)PIECE ? bytes - at : (int)PIECE;
        rc = sqlite3_blob_read(from, piece, n, at);
        if (rc == SQLITE_OK)
            rc = sqlite3_blob_write(to, piece, n, at);
    }
    hk_mem_free(piece);
    return rc;
}

void hk_sq_copy_payload(struct hk_store *store, enum hk_source source, int64_t id, int64_t letter, int bytes)
{
    sqlite3_blob *from = open_blob(store, table_of(source), id, false);
    sqlite3_blob *to = open_blob(store, "dead_letters", letter, true);
    int rc = from && to ? copy(from, to, bytes) : SQLITE_OK;
    sqlite3_blob_close(from);
    sqlite3_blob_close(to);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}
