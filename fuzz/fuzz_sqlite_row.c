/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's columns hold whatever an application put there: each one of any type, as heads and messages are read from them. A value is a
 * byte (its type, and how long), then its bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sqlite_values.h"
#include "store/sqlite/sqlite.h"

enum {
    COLUMNS = 34
};

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
        q = values_prepare(&store, COLUMNS);
    store.options.max_payload_bytes = 40;
    for (int i = 1; i <= COLUMNS; i++)
        values_bind(q, i, &rest);
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
