/* SPDX-License-Identifier: Apache-2.0 */
/* The demo's application does only what a user's program does: its own table, its own transaction, libhikyaku's INSERT. */
#include <stdio.h>
#include <string.h>

#include <hikyaku/outbox_sqlite.h>
#include <sqlite3.h>

#include "cli/demo/demo.h"

static enum hk_code run(sqlite3 *db, const char *sql, struct hk_err *err)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
        return HK_OK;
    return hk_err_set(err, HK_IO, "the demo's database: %s", sqlite3_errmsg(db));
}

enum hk_code hk_demo_app_open(const char *path, void **out_app, struct hk_err *err)
{
    sqlite3 *db = NULL;
    enum hk_code rc = HK_OK;
    if (sqlite3_open(path, &db) != SQLITE_OK)
        rc = hk_err_set(err, HK_IO, "the demo's database: %s", sqlite3_errmsg(db));
    if (rc == HK_OK) {
        (void)sqlite3_busy_timeout(db, 5000);
        rc = run(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)", err);
    }
    if (rc != HK_OK) {
        (void)sqlite3_close(db);
        return rc;
    }
    *out_app = db;
    return HK_OK;
}

void hk_demo_app_close(void *app)
{
    (void)sqlite3_close(app);
}

enum hk_code hk_demo_app_order(void *app, unsigned order, bool poison, bool commit, struct hk_err *err)
{
    char sql[128], payload[128];
    (void)snprintf(sql, sizeof sql, "INSERT INTO orders (id, item) VALUES (%u, 'a parcel')", order);
    (void)snprintf(payload, sizeof payload, "{\"order\":%u%s}", order, poison ? ",\"poison\":true" : "");
    struct hk_outbox_message message = {.destination = "shop",
                                        .event_type = "OrderCreated",
                                        .payload = payload,
                                        .payload_len = strlen(payload)};

    enum hk_code rc = run(app, "BEGIN IMMEDIATE", err);
    if (rc != HK_OK)
        return rc;
    rc = run(app, sql, err); /* the business change … */
    if (rc == HK_OK)
        rc = hk_outbox_enqueue_sqlite(app, &message, NULL, err); /* … and the message … */
    if (rc == HK_OK)
        rc = run(app, commit ? "COMMIT" : "ROLLBACK", err); /* … together, or not at all */
    if (rc != HK_OK)
        (void)sqlite3_exec(app, "ROLLBACK", NULL, NULL, NULL);
    return rc;
}
