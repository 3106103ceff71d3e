/* SPDX-License-Identifier: Apache-2.0 */
/* The trail of acts: a row is added in the act's own transaction, under the write lock, as the next link of the chain. */
#include "base/str.h"
#include "store/letters.h"
#include "store/sqlite.h"

static struct hk_str read_meta(struct hk_store *store, const char *key)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_META);
    hk_sq_bind_cstr(store, q, 1, key);
    struct hk_str value = hk_sq_row(store, q) ? hk_sq_text(store, q, 0) : (struct hk_str){"", 0};
    hk_sq_done(q);
    return value;
}

static void write_meta(struct hk_store *store, const char *key, const char *value)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_SET_META);
    hk_sq_bind_cstr(store, q, 1, key);
    hk_sq_bind_cstr(store, q, 2, value);
    hk_sq_run(store, q);
}

static void bind_id(struct hk_store *store, sqlite3_stmt *q, int i, int64_t id)
{
    if (id)
        hk_sq_bind_i64(store, q, i, id);
    else
        hk_sq_bind_text_or_null(store, q, i, (struct hk_str){0});
}

void hk_sq_audit(struct hk_store *store, const struct hk_audit_row *row)
{
    struct hk_audit_row link = *row;
    char hash[HK_AUDIT_HASH_MAX];
    link.prev = read_meta(store, "audit_head");
    hk_audit_hash(&link, hash);
    if (!hash[0])
        hk_sq_fail(store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_ADD_AUDIT);
    hk_sq_bind_i64(store, q, 1, link.at_ms);
    hk_sq_bind_text(store, q, 2, link.actor);
    hk_sq_bind_text(store, q, 3, link.act);
    hk_sq_bind_text_or_null(store, q, 4, link.message_id);
    hk_sq_bind_text_or_null(store, q, 5, link.destination);
    hk_sq_bind_text(store, q, 6, link.reason);
    bind_id(store, q, 7, link.letter_id);
    bind_id(store, q, 8, link.redrive);
    hk_sq_bind_text_or_null(store, q, 9, link.before);
    hk_sq_bind_text_or_null(store, q, 10, link.after);
    hk_sq_bind_text_or_null(store, q, 11, link.detail);
    hk_sq_bind_text(store, q, 12, link.prev);
    hk_sq_bind_cstr(store, q, 13, hash);
    hk_sq_run(store, q);
    write_meta(store, "audit_head", hash);
}

/* From the oldest on, so that what is left is a chain; its beginning is remembered. */
uint32_t hk_sq_purge_audit(struct hk_store *store, int64_t until_ms, uint32_t limit)
{
    int64_t last_id = 0;
    bool some = false;
    char hash[HK_AUDIT_HASH_MAX] = "";
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_OLD_AUDIT);
    hk_sq_bind_i64(store, q, 1, limit);
    while (hk_sq_row(store, q) && sqlite3_column_int64(q, 1) <= until_ms) {
        const char *text = (const char *)sqlite3_column_text(q, 2);
        last_id = sqlite3_column_int64(q, 0);
        some = true;
        (void)hk_str_copy(hash, sizeof hash, hk_str_of(text));
    }
    hk_sq_done(q);
    if (!some)
        return 0;
    q = hk_sq_use(store, HK_SQ_PURGE_AUDIT);
    hk_sq_bind_i64(store, q, 1, last_id);
    uint32_t deleted = (uint32_t)hk_sq_run(store, q);
    write_meta(store, "audit_first_prev", hash);
    return deleted;
}
