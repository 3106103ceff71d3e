/* SPDX-License-Identifier: Apache-2.0 */
/* A row of SQLite whose columns hold whatever an input says, of any type: for targets that read rows. A value is a byte (its type,
 * and how long), then its bytes. */
#ifndef HK_FUZZ_SQLITE_VALUES_H
#define HK_FUZZ_SQLITE_VALUES_H

#include <string.h>

#include "fuzz.h"
#include "store/sqlite/sqlite.h"

enum {
    VALUES_COLUMNS_MAX = 64
};

static inline void values_bind(sqlite3_stmt *q, int at, struct hk_str *rest)
{
    unsigned how = rest->len > 0 ? (unsigned char)fuzz_take(rest, 1).ptr[0] : 0;
    struct hk_str s = fuzz_take(rest, how / 5);
    int64_t number = 0;
    double real;
    if (s.len > 0)
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

/* Opens a database in memory, and asks for as many values as are bound. */
static inline sqlite3_stmt *values_prepare(struct hk_store *store, int columns)
{
    char sql[16 + 4 * VALUES_COLUMNS_MAX] = "SELECT ?";
    sqlite3_stmt *q = NULL;
    MUST(columns <= VALUES_COLUMNS_MAX);
    for (int i = 1; i < columns; i++)
        memcpy(sql + strlen(sql), ", ?", 4);
    MUST(sqlite3_open(":memory:", &store->db) == SQLITE_OK);
    MUST(sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &q, NULL) == SQLITE_OK);
    return q;
}

#endif
