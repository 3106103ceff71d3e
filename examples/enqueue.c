/* SPDX-License-Identifier: Apache-2.0 */
/* C: the business change and its message in one transaction, on the application's own handle.
 * cc enqueue.c $(pkg-config --cflags --libs hikyaku sqlite3); ./a.out shop.db */
#include <stdio.h>
#include <string.h>

#include <hikyaku/hikyaku.h>
#include <sqlite3.h>

static int create_order(sqlite3 *db, const char *payload, const char *end)
{
    struct hk_outbox_message message = {.destination = "shop",
                                        .event_type = "OrderCreated",
                                        .payload = payload,
                                        .payload_len = strlen(payload)};
    struct hk_err err = {.message = ""};

    if (sqlite3_exec(db, "BEGIN IMMEDIATE; INSERT INTO orders (item) VALUES ('a parcel')", NULL, NULL,
                     NULL) != SQLITE_OK)
        return 1;
    if (hk_outbox_enqueue_sqlite(db, &message, NULL, &err) != HK_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        end = "ROLLBACK";
    }
    return sqlite3_exec(db, end, NULL, NULL, NULL) != SQLITE_OK || err.message[0] != '\0';
}

int main(int argc, char **argv)
{
    sqlite3 *db = NULL;
    if (argc != 2 || sqlite3_open(argv[1], &db) != SQLITE_OK || sqlite3_busy_timeout(db, 5000) != SQLITE_OK)
        return 2;
    int rc = sqlite3_exec(db, "CREATE TABLE IF NOT EXISTS orders (id INTEGER PRIMARY KEY, item TEXT)", NULL,
                          NULL, NULL);
    if (rc == SQLITE_OK)
        rc = create_order(db, "{\"from\":\"c\"}", "COMMIT");
    if (rc == 0)
        rc = create_order(db, "{\"from\":\"nowhere\"}",
                          "ROLLBACK"); /* neither the order nor the message exists */
    (void)sqlite3_close(db);
    return rc;
}
