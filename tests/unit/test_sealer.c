/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing in an application, on its own handle: what is in the table opens with the relay's key, and with no other. */
#include <string.h>

#include <hikyaku/sealer.h>
#include <sqlite3.h>

#include "base/str.h"
#include "check.h"
#include "payload/codec.h"

static const unsigned char key[HK_KEY_BYTES] = "0123456789abcdef0123456789abcde";

static const char table[] =
    "CREATE TABLE outbox (id INTEGER PRIMARY KEY, destination, event_type, message_id, message_key, headers, "
    "content_type, traceparent, correlation_id, policy, idempotency_key, not_before, expires_at, encoding, "
    "max_attempts, payload)";

static enum hk_code relays_key(void *arg, size_t i, unsigned char out[HK_KEY_BYTES], struct hk_err *err)
{
    (void)i;
    (void)err;
    memcpy(out, arg, HK_KEY_BYTES);
    return HK_OK;
}

/* What a relay with this key gets of the only row. */
static enum hk_code open_row(struct sqlite3 *db, const void *with, struct hk_pool *mem, struct hk_str *out)
{
    static const char *const ids[] = {"k1"};
    unsigned char bytes[HK_KEY_BYTES];
    struct hk_keyring *keys = NULL;
    sqlite3_stmt *q = NULL;
    memcpy(bytes, with, sizeof bytes);
    const struct hk_keyring_options options = {
        .store = "shop", .ids = ids, .n = 1, .fetch = relays_key, .arg = bytes};
    assert_int_equal(hk_keyring_new(&options, &keys, NULL), HK_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT encoding, message_id, payload FROM outbox", -1, &q, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_ROW);
    const char *encoding = (const char *)sqlite3_column_text(q, 0),
               *id = (const char *)sqlite3_column_text(q, 1);
    const char *payload = (const char *)sqlite3_column_text(q, 2);
    assert_string_equal(encoding, "sealed");
    assert_null(strstr(payload, "Grace"));
    const struct hk_codec_of of = {
        .keys = keys, .encoding = hk_str_of(encoding), .message_id = hk_str_of(id)};
    enum hk_code rc = hk_codec_open(&of, hk_str_of(payload), mem, out, NULL);
    (void)sqlite3_finalize(q);
    hk_keyring_free(keys);
    return rc;
}

static void what_an_application_seals_opens_with_the_same_key_alone(void **state)
{
    (void)state;
    static const char text[] = "{\"name\":\"Grace\"}";
    static const unsigned char other[HK_KEY_BYTES] = "another key, of the same length";
    struct hk_outbox_message m = {.event_type = "T",
                                  .message_id = "m-1",
                                  .payload = text,
                                  .payload_len = sizeof text - 1,
                                  .max_attempts = 3};
    struct hk_sealer *sealer = NULL;
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str out = {"", 0};
    struct sqlite3 *db = NULL;
    int64_t id = 0;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, table, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(hk_sealer_new("shop", "k1", key, sizeof key, &sealer, NULL), HK_OK);
    assert_int_equal(hk_outbox_enqueue_sealed_sqlite(sealer, db, &m, &id, NULL), HK_OK);
    assert_int_equal(id, 1);
    assert_int_equal(open_row(db, key, &mem, &out), HK_OK);
    assert_true(hk_str_eq(out, hk_str_of(text)));
    assert_int_equal(open_row(db, other, &mem, &out), HK_UNAVAILABLE);
    hk_sealer_free(sealer);
    hk_pool_fini(&mem);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void what_cannot_be_sealed_is_not_written(void **state)
{
    (void)state;
    const struct hk_outbox_message nameless = {.event_type = "T", .payload = "x", .payload_len = 1};
    struct hk_sealer *sealer = NULL;
    struct hk_err err;
    struct sqlite3 *db = NULL;
    sqlite3_stmt *q = NULL;
    assert_int_equal(hk_sealer_new("shop", "k1", key, 16, &sealer, NULL), HK_INVALID);
    assert_int_equal(hk_sealer_new("shop", "k.1", key, sizeof key, &sealer, NULL), HK_INVALID);
    assert_int_equal(hk_sealer_new(NULL, "k1", key, sizeof key, &sealer, NULL), HK_INVALID);
    assert_null(sealer);
    hk_sealer_free(NULL);
    assert_int_equal(hk_sealer_new("shop", "k1", key, sizeof key, &sealer, NULL), HK_OK);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, table, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(hk_outbox_enqueue_sealed_sqlite(sealer, db, &nameless, NULL, &err), HK_INVALID);
    assert_string_equal(err.message, "a sealed message needs a message_id: its payload is bound to it");
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT * FROM outbox", -1, &q, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(q), SQLITE_DONE);
    (void)sqlite3_finalize(q);
    hk_sealer_free(sealer);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_application_seals_opens_with_the_same_key_alone),
        cmocka_unit_test(what_cannot_be_sealed_is_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
