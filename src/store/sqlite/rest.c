/* SPDX-License-Identifier: Apache-2.0 */
/* Mode `rest`: two functions in the statements that copy a message from one table to another, so that what is written is sealed before
 * SQLite sees it. Without keys, and for what is sealed already, they give back what they were given.
 *
 *   hk_rest(message_id, encoding, payload)
 *   hk_rest_encoding(encoding, typeof(payload)) */
#include "base/str.h"
#include "core/encoding.h"
#include "store/rest.h"
#include "store/sqlite/admin.h"

static struct hk_str value_bytes(sqlite3_value *value)
{
    const char *bytes = sqlite3_value_type(value) == SQLITE_BLOB ? sqlite3_value_blob(value)
                                                                 : (const char *)sqlite3_value_text(value);
    return (struct hk_str){bytes ? bytes : "", bytes ? (size_t)sqlite3_value_bytes(value) : 0};
}

/* What the relay does about it: it waits for the key, as for any store that cannot be written. */
static int code_of(enum hk_code rc)
{
    return rc == HK_NOMEM ? SQLITE_NOMEM : rc == HK_TOOBIG ? SQLITE_TOOBIG : SQLITE_BUSY;
}

static void sql_rest(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct hk_store *store = sqlite3_user_data(context);
    struct hk_pool mem = {.blocks = NULL};
    struct hk_err err = {.message = ""};
    struct hk_str sealed;
    (void)n;
    if (!store->options.seal || sqlite3_value_type(values[2]) == SQLITE_NULL ||
        hk_encoding_is_sealed(value_bytes(values[1]))) {
        sqlite3_result_value(context, values[2]);
        return;
    }
    enum hk_code rc = hk_rest_seal(store->options.seal, value_bytes(values[0]), value_bytes(values[2]), &mem,
                                   &sealed, &err);
    if (rc == HK_OK) {
        sqlite3_result_text64(context, sealed.ptr, sealed.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    } else {
        sqlite3_result_error(context, err.message, -1);
        sqlite3_result_error_code(context, code_of(rc));
    }
    hk_pool_fini(&mem);
}

static void sql_rest_encoding(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct hk_store *store = sqlite3_user_data(context);
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str encoding = value_bytes(values[0]);
    (void)n;
    if (!store->options.seal || hk_str_eq(value_bytes(values[1]), hk_str_of("null")) ||
        hk_encoding_is_sealed(encoding)) {
        sqlite3_result_value(context, values[0]);
        return;
    }
    struct hk_str sealed = hk_rest_encoding(encoding, &mem);
    if (sealed.ptr)
        sqlite3_result_text64(context, sealed.ptr, sealed.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    else
        sqlite3_result_error_nomem(context);
    hk_pool_fini(&mem);
}

int hk_sq_rest_register(struct hk_store *store)
{
    const int flags = SQLITE_UTF8 | SQLITE_DIRECTONLY;
    int rc = sqlite3_create_function(store->db, "hk_rest", 3, flags, store, sql_rest, NULL, NULL);
    return rc == SQLITE_OK ? sqlite3_create_function(store->db, "hk_rest_encoding", 2, flags, store,
                                                     sql_rest_encoding, NULL, NULL)
                           : rc;
}
