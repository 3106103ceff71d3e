/* SPDX-License-Identifier: Apache-2.0 */
/* C: the business change and its message in one transaction, on the application's own connection to PostgreSQL.
 * cc enqueue_pg.c $(pkg-config --cflags --libs hikyaku libpq); ./a.out postgres://app@db/shop */
#include <stdio.h>
#include <string.h>

#include <hikyaku/hikyaku.h>
#include <libpq-fe.h>

static int run(PGconn *db, const char *sql)
{
    PGresult *result = PQexec(db, sql);
    int failed = PQresultStatus(result) != PGRES_COMMAND_OK;
    if (failed)
        (void)fprintf(stderr, "%s", PQerrorMessage(db));
    PQclear(result);
    return failed;
}

static int create_order(PGconn *db, const char *payload, const char *end)
{
    struct hk_outbox_message message = {.destination = "shop",
                                        .event_type = "OrderCreated",
                                        .payload = payload,
                                        .payload_len = strlen(payload)};
    struct hk_err err = {.message = ""};

    if (run(db, "BEGIN") != 0 || run(db, "INSERT INTO orders (item) VALUES ('a parcel')") != 0)
        return 1;
    if (hk_outbox_enqueue_pg(db, NULL, &message, NULL, &err) != HK_OK) {
        (void)fprintf(stderr, "%s\n", err.message);
        end = "ROLLBACK"; /* after an error of the server's nothing else is possible */
    }
    return run(db, end) != 0 || err.message[0] != '\0';
}

int main(int argc, char **argv)
{
    PGconn *db = argc == 2 ? PQconnectdb(argv[1]) : NULL;
    if (PQstatus(db) != CONNECTION_OK) {
        (void)fprintf(stderr, "%s", argc == 2 ? PQerrorMessage(db) : "usage: enqueue_pg URL\n");
        PQfinish(db);
        return 2;
    }
    int rc = run(db, "CREATE TABLE IF NOT EXISTS orders (id bigserial PRIMARY KEY, item text)");
    if (rc == 0)
        rc = create_order(db, "{\"from\":\"c\"}", "COMMIT");
    if (rc == 0)
        rc = create_order(db, "{\"from\":\"nowhere\"}",
                          "ROLLBACK"); /* neither the order nor the message exists */
    PQfinish(db);
    return rc;
}
