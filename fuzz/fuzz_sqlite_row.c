/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's columns hold whatever an application put there: each one of any type, as heads and messages are read from them. A value is a
 * byte (its type, and how long), then its bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "store/sqlite.h"

enum {
    COLUMNS = 34
};

static void bind(sqlite3_stmt *q, int at, struct hk_str *rest)
{
    unsigned how = rest->len ? (unsigned char)fuzz_take(rest, 1).ptr[0] : 0;
    struct hk_str s = fuzz_take(rest, how / 5);
    int64_t number = 0;
    double real;
    memcpy(&number, s.ptr, s.len < 8 ? s.len : 8);
    memcpy(&real, &number, sizeof real);
    int rc = SQLITE_OK;
    if (how % 5 == 0)
        rc = sqlite3_bind_null(q, at);
    else if (how % 5 == 1)
        rc = sqlite3_bind_int64(q, at, number);
    else if (how % 5 == 2)
        rc = sqlite3_bind_double(q, at, real);
    else if (how % 5 == 3)
        rc = sqlite3_bind_text(q, at, s.ptr, (int)s.len, SQLITE_TRANSIENT);
    else
        rc = sqlite3_bind_blob(q, at, s.ptr, (int)s.len, SQLITE_TRANSIENT);
    MUST(rc == SQLITE_OK);
}

static sqlite3_stmt *prepare(struct hk_store *store)
{
    char sql[16 + 4 * COLUMNS] = "SELECT ?";
    for (int i = 1; i < COLUMNS; i++)
        memcpy(sql + strlen(sql), ", ?", 4);
    MUST(sqlite3_open(":memory:", &store->db) == SQLITE_OK);
    sqlite3_stmt *q = NULL;
    MUST(sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q, NULL) == SQLITE_OK);
    return q;
}

static void check_message(struct hk_store *store, sqlite3_stmt *q, enum hk_source source)
{
    struct hk_message m;
    hk_sq_message(store, q, source, &m);
    MUST(hk_sq_ok(store));
    MUST(m.malformed != NULL || m.message_id.len > 0);
    MUST(!(m.undecodable || m.oversized) || m.payload.len == 0);
    MUST(m.payload.len <= store->options.max_payload_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hk_store store;
    static sqlite3_stmt *q;
    struct hk_str rest = {(const char *)data, size};
    struct hk_head head;
    if (size > 2048)
        return 0;
    if (q == NULL)
        q = prepare(&store);
    store.options.max_payload_bytes = 40;
    for (int i = 1; i <= COLUMNS; i++)
        bind(q, i, &rest);
    MUST(sqlite3_step(q) == SQLITE_ROW);
    hk_sq_head(&store, q, HK_FROM_OUTBOX, &head);
    hk_sq_head(&store, q, HK_FROM_RETRY, &head);
    MUST(hk_sq_ok(&store) && head.not_before_ms == 0);
    check_message(&store, q, HK_FROM_OUTBOX);
    check_message(&store, q, HK_FROM_RETRY);
    (void)sqlite3_reset(q);
    hk_pool_reset(hk_sq_pool(&store));
    return 0;
}
