/* SPDX-License-Identifier: Apache-2.0 */
/* Enqueueing on an application's own connection to PostgreSQL, in its own transaction. */
#include <stdlib.h>
#include <string.h>

#include <hikyaku/alloc.h>
#include <hikyaku/outbox_pg.h>
#include <hikyaku/sealer.h>

#include "pg_kind.h"
#include "store/pg/pg.h"

static PGconn *conn;

static int set_up(void **state)
{
    if (suite_setup(state) != 0)
        return -1;
    conn = pg_connect(NULL);
    return 0;
}

static int tear_down(void **state)
{
    PQfinish(conn);
    conn = NULL;
    return suite_teardown(state);
}

#define MESSAGE(...)                                                                                         \
    &(struct hk_outbox_message)                                                                              \
    {                                                                                                        \
        .event_type = "Made", __VA_ARGS__                                                                    \
    }

static enum hk_code enqueue(const struct hk_outbox_message *m)
{
    struct hk_err err = {0};
    enum hk_code rc = hk_outbox_enqueue_pg(conn, NULL, m, NULL, &err);
    assert_true(rc == HK_OK || (err.code == rc && err.message[0] != '\0'));
    NOTE_IF(rc == HK_IO, "%s\n", err.message);
    return rc;
}

#define assert_rows(n) assert_int_equal(suite_number("SELECT count(*) FROM outbox"), n)

/* ---- the caller's transaction ---- */

static void a_message_lives_and_dies_with_the_transaction(void **state)
{
    (void)state;
    int64_t id = 0;
    pg_exec(conn, "BEGIN");
    assert_int_equal(hk_outbox_enqueue_pg(conn, NULL, MESSAGE(.destination = "a"), &id, NULL), HK_OK);
    assert_int_equal(PQtransactionStatus(conn), PQTRANS_INTRANS);
    assert_rows(0); /* as others see it */
    pg_exec(conn, "COMMIT");
    assert_rows(1);
    assert_int_equal(suite_number("SELECT id FROM outbox"), id);
    pg_exec(conn, "BEGIN");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_OK);
    pg_exec(conn, "ROLLBACK");
    assert_rows(1);
    pg_exec(conn, "BEGIN; SAVEPOINT s");
    assert_int_equal(enqueue(MESSAGE(.destination = "b")), HK_OK);
    pg_exec(conn, "ROLLBACK TO s");
    assert_int_equal(enqueue(MESSAGE(.destination = "c")), HK_OK);
    pg_exec(conn, "COMMIT");
    assert_rows(2);
    assert_string_equal(store_kind->value("SELECT destination FROM outbox ORDER BY id DESC LIMIT 1"), "c");
}

static void an_error_of_the_servers_aborts_the_transaction(void **state)
{
    (void)state;
    pg_exec(conn, "ALTER TABLE outbox RENAME TO elsewhere");
    pg_exec(conn, "BEGIN; CREATE TABLE made (x int)");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_NOTFOUND);
    assert_int_equal(PQtransactionStatus(conn), PQTRANS_INERROR);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_INVALID);
    pg_exec(conn, "ROLLBACK");
    assert_string_equal(pg_ask(conn, "SELECT to_regclass('made') IS NULL"), "t");
    pg_exec(conn, "BEGIN; SAVEPOINT s");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_NOTFOUND);
    pg_exec(conn, "ROLLBACK TO s; ALTER TABLE elsewhere RENAME TO outbox");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_OK);
    pg_exec(conn, "COMMIT");
    assert_rows(1);
}

static void what_can_be_known_before_costs_no_transaction(void **state)
{
    (void)state;
    const struct hk_outbox_message bad[] = {
        {.destination = "a"},
        {.event_type = ""},
        {.event_type = "T", .not_before = "tomorrow"},
        {.event_type = "T", .expires_at = "infinity"},
        {.event_type = "T\xff"},
        {.event_type = "T", .message_key = "\xc3"},
    };
    const struct hk_outbox_place places[] = {
        {"s\"; DROP TABLE outbox; --", NULL},
        {NULL, "p-"},
        {"1s", NULL},
        {NULL, "a b"},
        {"", "ppppppppppppppppppppppppppppppppppppppppppppppppppppppppppppp"}};
    pg_exec(conn, "BEGIN");
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(enqueue(&bad[i]), HK_INVALID);
    for (size_t i = 0; i < COUNT(places); i++)
        assert_int_equal(hk_outbox_enqueue_pg(conn, &places[i], MESSAGE(.destination = "a"), NULL, NULL),
                         HK_INVALID);
    assert_int_equal(PQtransactionStatus(conn), PQTRANS_INTRANS);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_OK);
    pg_exec(conn, "COMMIT");
    assert_rows(1);
}

static void a_connection_that_is_busy_is_left_alone(void **state)
{
    (void)state;
    assert_int_equal(PQsendQuery(conn, "SELECT 7"), 1);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_INVALID);
    PGresult *res = PQgetResult(conn); /* the caller's result is still there */
    assert_string_equal(PQgetvalue(res, 0, 0), "7");
    PQclear(res);
    assert_null(PQgetResult(conn));
    assert_int_equal(PQenterPipelineMode(conn), 1);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_INVALID);
    assert_int_equal(PQexitPipelineMode(conn), 1);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_OK);
    assert_rows(1);
}

static void locks_and_lost_connections_are_told_apart(void **state)
{
    (void)state;
    PGconn *other = pg_connect(NULL);
    pg_exec(other, "BEGIN; LOCK TABLE outbox");
    pg_exec(conn, "SET lock_timeout = '20ms'");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_BUSY);
    pg_exec(other, "ROLLBACK");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_OK);
    char sql[80];
    snprintf(sql, sizeof sql, "SELECT pg_terminate_backend(%d, 10000)", PQbackendPID(conn));
    assert_string_equal(pg_ask(other, sql), "t");
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_UNAVAILABLE);
    assert_int_equal(enqueue(MESSAGE(.destination = "a")), HK_UNAVAILABLE);
    assert_rows(1);
    PQfinish(other);
}

/* ---- what is written ---- */

static void what_is_given_is_written_and_the_rest_is_default(void **state)
{
    (void)state;
    const struct hk_outbox_message all = {.destination = "a",
                                          .event_type = "M\xc3\xa4"
                                                        "de",
                                          .payload = "{\"x\": 1.0}",
                                          .payload_len = 10,
                                          .message_id = "given",
                                          .message_key = "k",
                                          .headers = "{\"h\":\"v\"}",
                                          .content_type = "text/plain",
                                          .correlation_id = "c",
                                          .traceparent = "t",
                                          .idempotency_key = "i",
                                          .not_before = "2027-02-01T09:00:00+09:00",
                                          .expires_at = "2027-03-01t00:00:00.250z",
                                          .policy = "p",
                                          .max_attempts = 7};
    assert_int_equal(enqueue(&all), HK_OK);
    assert_string_equal(
        store_kind->value(
            "SELECT concat_ws('|', destination, event_type, payload, message_key, headers, content_type, "
            "encoding, correlation_id, traceparent, idempotency_key, policy, max_attempts) FROM outbox "
            "WHERE message_id = 'given' AND not_before = '2027-02-01T00:00:00Z' "
            "AND expires_at = '2027-03-01T00:00:00.250Z'"),
        "a|M\xc3\xa4"
        "de|{\"x\": 1.0}|k|{\"h\":\"v\"}|text/plain|utf8|c|t|i|p|7");
    assert_int_equal(enqueue(MESSAGE(.payload = "x", .payload_len = 1, .max_attempts = UINT32_MAX)), HK_OK);
    assert_int_equal(
        suite_number("SELECT count(*) FROM outbox WHERE destination = '' AND length(message_id) = 36 "
                     "AND message_key IS NULL AND encoding = 'utf8' AND payload = 'x' "
                     "AND max_attempts = 2147483647 AND created_at IS NOT NULL"),
        1);
    assert_int_equal(enqueue(MESSAGE(.payload = NULL)), HK_OK);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox WHERE payload = ''"), 1);
}

static const char *kept(const char *message_id)
{
    char sql[200];
    snprintf(sql, sizeof sql, "SELECT encoding || ':' || payload FROM outbox WHERE message_id = '%s'",
             message_id);
    return store_kind->value(sql);
}

static void payload_bytes_survive_whatever_they_are(void **state)
{
    (void)state;
    assert_int_equal(enqueue(MESSAGE(.message_id = "nul", .payload = "a\0b", .payload_len = 3)), HK_OK);
    assert_string_equal(kept("nul"), "base64:YQBi");
    assert_int_equal(enqueue(MESSAGE(.message_id = "bad", .payload = "\xff\xfe", .payload_len = 2)), HK_OK);
    assert_string_equal(kept("bad"), "base64://4=");
    assert_int_equal(
        enqueue(MESSAGE(.message_id = "utf8", .payload = "\xe9\xa3\x9b\xe8\x84\x9a", .payload_len = 6)),
        HK_OK);
    assert_string_equal(kept("utf8"), "utf8:\xe9\xa3\x9b\xe8\x84\x9a");
    pg_exec(conn, "SET client_encoding = 'LATIN1'");
    assert_int_equal(enqueue(MESSAGE(.message_id = "latin", .payload = "\xc3\xa9", .payload_len = 2)), HK_OK);
    assert_string_equal(kept("latin"), "base64:w6k=");
    assert_int_equal(enqueue(MESSAGE(.message_id = "ascii", .payload = "plain", .payload_len = 5)), HK_OK);
    assert_string_equal(kept("ascii"), "utf8:plain");
    assert_int_equal(enqueue(MESSAGE(.message_id = "text", .message_key = "\xe9")), HK_OK); /* é, in LATIN1 */
    assert_string_equal(store_kind->value("SELECT message_key FROM outbox WHERE message_id = 'text'"),
                        "\xc3\xa9");
    size_t size = 3000000;
    char *large = malloc(size);
    assert_non_null(large);
    memset(large, 'x', size);
    assert_int_equal(enqueue(MESSAGE(.message_id = "large", .payload = large, .payload_len = size)), HK_OK);
    assert_int_equal(suite_number("SELECT octet_length(payload) FROM outbox WHERE message_id = 'large'"),
                     3000000);
    free(large);
    assert_int_equal(enqueue(MESSAGE(.payload = "x", .payload_len = SIZE_MAX / 2)), HK_TOOBIG);
}

static void it_goes_where_schema_and_prefix_say(void **state)
{
    (void)state;
    struct hk_store_inited done;
    struct hk_err err = {0};
    store_kind->sql("CREATE SCHEMA \"Mixed\"");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&schema=Mixed&prefix=p_"),
                                            &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    const struct hk_outbox_place place = {"Mixed", "p_"}, empty = {"", ""}, none = {"nowhere", NULL};
    assert_int_equal(hk_outbox_enqueue_pg(conn, &place, MESSAGE(.destination = "a"), NULL, &err), HK_OK);
    assert_rows(0);
    assert_int_equal(suite_number("SELECT count(*) FROM \"Mixed\".p_outbox"), 1);
    assert_int_equal(hk_outbox_enqueue_pg(conn, &empty, MESSAGE(.destination = "a"), NULL, &err), HK_OK);
    assert_rows(1);
    assert_int_equal(hk_outbox_enqueue_pg(conn, &none, MESSAGE(.destination = "a"), NULL, &err), HK_NOTFOUND);
    assert_non_null(strstr(err.message, "hikyaku init"));
}

static void the_right_to_insert_is_enough(void **state)
{
    (void)state;
    int64_t id = 0;
    struct hk_err err = {0};
    struct hk_buf grants;
    hk_buf_init(&grants, 1 << 16);
    store_kind->sql("DROP ROLE IF EXISTS outbox_app; CREATE ROLE outbox_app LOGIN");
    assert_int_equal(
        hk_pg_grants(store_kind->url(), &(struct hk_store_roles){.app = "outbox_app"}, &grants, &err), HK_OK);
    store_kind->sql(hk_buf_cstr(&grants)); /* what is optional stands in it as comments */
    hk_buf_fini(&grants);
    PGconn *app = pg_connect("outbox_app");
    const struct hk_outbox_message all = {"a",
                                          "T",
                                          "\xff",
                                          1,
                                          "m",
                                          "k",
                                          "{}",
                                          "c",
                                          "c",
                                          "t",
                                          "i",
                                          "2030-01-01T00:00:00Z",
                                          "2031-01-01T00:00:00Z",
                                          "p",
                                          3};
    assert_int_equal(hk_outbox_enqueue_pg(app, NULL, &all, NULL, &err), HK_OK);
    assert_rows(1);
    assert_int_equal(hk_outbox_enqueue_pg(app, NULL, MESSAGE(.destination = "a"), &id, &err), HK_IO);
    assert_non_null(strstr(err.message, "print-grants"));
    assert_int_equal(id, 0);
    PQfinish(app);
    store_kind->sql("DROP OWNED BY outbox_app; DROP ROLE outbox_app");
}

static void a_row_that_a_trigger_took_has_no_id(void **state)
{
    (void)state;
    int64_t id = 0;
    store_kind->sql("CREATE FUNCTION eat() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
                    "CREATE TRIGGER t BEFORE INSERT ON outbox FOR EACH ROW EXECUTE FUNCTION eat()");
    assert_int_equal(hk_outbox_enqueue_pg(conn, NULL, MESSAGE(.destination = "a"), &id, NULL), HK_IO);
    assert_int_equal(id, 0);
}

/* ---- no memory ---- */

static long allowed;

static void *choosy_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return allowed-- > 0 ? realloc(ptr, bytes) : NULL;
}

static void choosy_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static void no_memory_is_said_before_anything_is_sent(void **state)
{
    (void)state;
    enum hk_code rc = HK_NOMEM;
    pg_exec(conn, "BEGIN");
    for (long k = 0; rc != HK_OK; k++) {
        struct hk_allocator allocator = {.resize = choosy_resize, .release = choosy_release};
        allowed = k;
        hk_allocator_set(&allocator);
        rc = enqueue(MESSAGE(.payload = "\0", .payload_len = 1));
        hk_allocator_set(NULL);
        assert_true(rc == HK_OK || rc == HK_NOMEM);
        assert_int_equal(PQtransactionStatus(conn), PQTRANS_INTRANS);
        assert_true(k < 100);
    }
    pg_exec(conn, "COMMIT");
    assert_rows(1);
}

static void a_sealed_payload_is_bound_to_its_message(void **state)
{
    (void)state;
    static const unsigned char key[32] = "0123456789abcdef0123456789abcde";
    struct hk_sealer *sealer = NULL;
    struct hk_err err;
    int64_t id = 0;
    assert_int_equal(hk_sealer_new("shop", "k1", key, sizeof key, &sealer, NULL), HK_OK);
    pg_exec(conn, "BEGIN");
    assert_int_equal(hk_outbox_enqueue_sealed_pg(sealer, conn, NULL,
                                                 MESSAGE(.payload = "x", .payload_len = 1), NULL, &err),
                     HK_INVALID);
    assert_int_equal(PQtransactionStatus(conn), PQTRANS_INTRANS);
    assert_int_equal(hk_outbox_enqueue_sealed_pg(
                         sealer, conn, NULL,
                         MESSAGE(.message_id = "m", .payload = "\0bytes", .payload_len = 6), &id, NULL),
                     HK_OK);
    pg_exec(conn, "COMMIT");
    assert_rows(1);
    assert_string_equal(store_kind->value("SELECT encoding || ' ' || message_id FROM outbox"), "sealed m");
    assert_int_equal(suite_number("SELECT count(*) FROM outbox WHERE payload LIKE 'hk1.k1.%'"), 1);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox WHERE payload LIKE '%bytes%'"), 0);
    hk_sealer_free(sealer);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_message_lives_and_dies_with_the_transaction),
        TEST(an_error_of_the_servers_aborts_the_transaction),
        TEST(what_can_be_known_before_costs_no_transaction),
        TEST(a_connection_that_is_busy_is_left_alone),
        TEST(locks_and_lost_connections_are_told_apart),
        TEST(what_is_given_is_written_and_the_rest_is_default),
        TEST(payload_bytes_survive_whatever_they_are),
        TEST(it_goes_where_schema_and_prefix_say),
        TEST(the_right_to_insert_is_enough),
        TEST(a_row_that_a_trigger_took_has_no_id),
        TEST(no_memory_is_said_before_anything_is_sent),
        TEST(a_sealed_payload_is_bound_to_its_message),
    };
    store_kind = &pg_kind;
    const int *ended_early = pg_server_start();
    return ended_early ? *ended_early : cmocka_run_group_tests_name("outbox (postgres)", tests, NULL, NULL);
}
