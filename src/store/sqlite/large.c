/* SPDX-License-Identifier: Apache-2.0 */
/* Rows with a payload over relay.max_payload, in bounded memory. A statement that copies or changes such a row holds the payload
 * twice: as a value, and as the record that it writes. So the statement leaves the payload out:
 *
 *   a copy     is written without it, and hk_sq_copy_large brings it over
 *   a change   finds NULL in its place: hk_sq_set_aside has moved it to outbox_aside, and hk_sq_put_back brings it back
 *
 * Bytes travel from one incremental blob to the other, a piece at a time. Before that, the row gets as many zeros, which cost no
 * memory while nothing but NULL, 0 or 1 stands behind the payload in its record: such a letter has no `fingerprint_made`. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "store/sqlite/admin.h"

#define PIECE ((size_t)256 * 1024)

static const char *const names[] = {
    [HK_SQ_OUTBOX] = "outbox",
    [HK_SQ_RETRY] = "outbox_retry",
    [HK_SQ_LETTERS] = "dead_letters",
    [HK_SQ_VERSIONS] = "dead_letter_versions",
    [HK_SQ_CANCELS] = "outbox_cancelled",
    [HK_SQ_ASIDE] = "outbox_aside",
};

static const enum hk_sq_id plain[] = {[HK_SQ_OUTBOX] = HK_SQ_PLAIN,
                                      [HK_SQ_RETRY] = HK_SQ_PLAIN_RETRY,
                                      [HK_SQ_LETTERS] = HK_SQ_PLAIN_LETTER,
                                      [HK_SQ_CANCELS] = HK_SQ_PLAIN_CANCELLED};

/* Of the row's payload as it stands in the file: those are the bytes that go out, unless it is text in UTF-16. */
static bool is_plain(struct hk_store *store, struct hk_sq_place row)
{
    sqlite3_stmt *q = hk_sq_use(store, plain[row.table]);
    hk_sq_bind_i64(store, q, 1, row.id);
    bool is = hk_sq_row(store, q) && sqlite3_column_int(q, 0) != 0;
    hk_sq_done(q);
    return is;
}

static sqlite3_blob *open_blob(struct hk_store *store, struct hk_sq_place row, bool write)
{
    sqlite3_blob *blob = NULL;
    int rc = hk_sq_ok(store)
                 ? sqlite3_blob_open(store->db, "main", names[row.table], "payload", row.id, write, &blob)
                 : SQLITE_OK;
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
    return blob;
}

int hk_sq_large(struct hk_store *store, struct hk_sq_place row)
{
    if (!is_plain(store, row))
        return 0;
    sqlite3_blob *blob = open_blob(store, row, false);
    uint64_t bytes = blob ? (uint64_t)sqlite3_blob_bytes(blob) : 0;
    sqlite3_blob_close(blob);
    return bytes > HK_SQ_LARGE && bytes > store->options.max_payload_bytes ? (int)bytes : 0;
}

static int copy(sqlite3_blob *from, sqlite3_blob *to)
{
    int bytes = sqlite3_blob_bytes(from);
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

static void write_over(struct hk_store *store, struct hk_sq_place row, struct hk_sq_place zeros)
{
    sqlite3_blob *from = open_blob(store, row, false);
    sqlite3_blob *to = open_blob(store, zeros, true);
    int rc = from && to ? copy(from, to) : SQLITE_OK;
    sqlite3_blob_close(from);
    sqlite3_blob_close(to);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}

/* `bytes` 0: NULL. How many rows that changed: a trigger of the application's may not want it. */
static int set_payload(struct hk_store *store, struct hk_sq_place row, int bytes)
{
    char sql[120];
    (void)snprintf(sql, sizeof sql, "UPDATE %s SET payload = ?2%s WHERE rowid = ?1", names[row.table],
                   row.table == HK_SQ_LETTERS && bytes ? ", fingerprint_made = NULL" : "");
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, row.id);
    if (q && bytes && sqlite3_bind_zeroblob(q, 2, bytes) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    int changed = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return changed;
}

/* Mode `rest`: sealed as a whole, in memory. */
static void seal_over(struct hk_store *store, struct hk_sq_place from, struct hk_sq_place to)
{
    char sql[200];
    (void)snprintf(
        sql, sizeof sql,
        "UPDATE %s SET payload = (SELECT hk_rest(message_id, encoding, payload) FROM %s WHERE rowid = ?2) "
        "WHERE rowid = ?1",
        names[to.table], names[from.table]);
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, to.id);
    hk_sq_bind_i64(store, q, 2, from.id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

void hk_sq_copy_large(struct hk_store *store, struct hk_sq_place from, struct hk_sq_place to, int bytes)
{
    bool seals = store->options.seal && (from.table == HK_SQ_OUTBOX || from.table == HK_SQ_RETRY);
    if (bytes && seals)
        seal_over(store, from, to);
    else if (bytes && set_payload(store, to, bytes) > 0)
        write_over(store, from, to);
}

void hk_sq_clear_large(struct hk_store *store, struct hk_sq_place row)
{
    (void)set_payload(store, row, 0);
}

/* ---- aside ---- */

static void run_aside(struct hk_store *store, const char *sql, int64_t a, int64_t b, int zeros)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, a);
    if (zeros) {
        hk_sq_bind_i64(store, q, 2, b);
        if (q && sqlite3_bind_zeroblob(q, 3, zeros) != SQLITE_OK)
            hk_sq_fail(store, SQLITE_NOMEM);
    }
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

static void drop_aside(struct hk_store *store, int64_t id)
{
    run_aside(store, "DELETE FROM outbox_aside WHERE id = ?1", id, 0, 0);
}

void hk_sq_set_aside(struct hk_store *store, struct hk_sq_place row)
{
    int bytes = hk_sq_large(store, row);
    if (!bytes)
        return;
    run_aside(store, "INSERT INTO outbox_aside (home, row_id, payload) VALUES (?1, ?2, ?3)", row.table,
              row.id, bytes);
    struct hk_sq_place aside = {HK_SQ_ASIDE, sqlite3_last_insert_rowid(store->db)};
    write_over(store, row, aside);
    if (set_payload(store, row, 0) > 0)
        store->aside = true;
    else
        drop_aside(store, aside.id);
}

/* The next one that waits; id 0: none. */
static struct hk_sq_place next_aside(struct hk_store *store, struct hk_sq_place *out_home)
{
    struct hk_sq_place aside = {.table = HK_SQ_ASIDE};
    sqlite3_stmt *q = hk_sa_prepare(store, "SELECT id, home, row_id FROM outbox_aside ORDER BY id LIMIT 1");
    if (hk_sq_row(store, q)) {
        aside.id = sqlite3_column_int64(q, 0);
        out_home->table = sqlite3_column_int(q, 1) == HK_SQ_RETRY ? HK_SQ_RETRY : HK_SQ_LETTERS;
        out_home->id = sqlite3_column_int64(q, 2);
    }
    sqlite3_finalize(q);
    return aside;
}

void hk_sq_put_back(struct hk_store *store)
{
    while (store->aside && hk_sq_ok(store)) {
        struct hk_sq_place home = {.table = HK_SQ_RETRY}, aside = next_aside(store, &home);
        store->aside = aside.id != 0;
        if (!store->aside)
            break;
        sqlite3_blob *blob = open_blob(store, aside, false);
        int bytes = blob ? sqlite3_blob_bytes(blob) : 0;
        sqlite3_blob_close(blob);
        hk_sq_copy_large(store, aside, home, bytes);
        drop_aside(store, aside.id);
    }
}
