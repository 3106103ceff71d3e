/* SPDX-License-Identifier: Apache-2.0 */
/* The trail of acts: a row is added in the act's own transaction, under the write lock, as the next link of the chain. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/letters.h"
#include "store/sqlite/sqlite.h"

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

/* What goes, from the oldest on. */
struct cut {
    int64_t last_id;
    uint64_t rows;
    char hash[HK_AUDIT_HASH_MAX]; /* of the last one */
};

/* Rows about earlier purges go with others behind them, or when there is nothing else among so many: else each purge would leave
 * one for the next. */
static struct cut find_cut(struct hk_store *store, int64_t until_ms, uint32_t limit)
{
    struct cut seen = {0}, cut = {0};
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_OLD_AUDIT);
    hk_sq_bind_i64(store, q, 1, limit);
    while (hk_sq_row(store, q) && sqlite3_column_int64(q, 1) <= until_ms) {
        const char *hash = (const char *)sqlite3_column_text(q, 2);
        seen.last_id = sqlite3_column_int64(q, 0);
        seen.rows++;
        (void)hk_str_copy(seen.hash, sizeof seen.hash, hk_str_of(hash));
        if (!hk_str_eq(hk_str_of((const char *)sqlite3_column_text(q, 3)), hk_str_of("purge-audit")) ||
            seen.rows == limit)
            cut = seen;
    }
    hk_sq_done(q);
    return cut;
}

/* Counts them to all that went before, and says so in the audit, so that a missing front is accounted for. */
static void tell_cut(struct hk_store *store, const struct cut *cut, int64_t now_ms)
{
    char total_text[24], detail[200];
    uint64_t total = 0;
    if (hk_parse_u64(read_meta(store, "audit_purged"), &total, NULL) != HK_OK)
        total = 0;
    total += cut->rows;
    (void)snprintf(total_text, sizeof total_text, "%" PRIu64, total);
    (void)snprintf(detail, sizeof detail,
                   "{\"rows\":%" PRIu64 ",\"total\":%" PRIu64 ",\"last_id\":%" PRId64
                   ",\"last_hash\":\"%s\"}",
                   cut->rows, total, cut->last_id, cut->hash);
    write_meta(store, "audit_first_prev", cut->hash);
    write_meta(store, "audit_purged", total_text);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of("hikyaku"),
                                              .act = hk_str_of("purge-audit"),
                                              .reason = hk_str_of("retention.audit"),
                                              .detail = hk_str_of(detail)});
}

/* So that what is left is a chain, whose beginning is remembered. */
uint32_t hk_sq_purge_audit(struct hk_store *store, int64_t now_ms, uint64_t keep_ms, uint32_t limit)
{
    if (keep_ms > (uint64_t)now_ms) /* never, or since before 1970 */
        return 0;
    struct cut cut = find_cut(store, now_ms - (int64_t)keep_ms, limit);
    if (cut.rows == 0)
        return 0;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_PURGE_AUDIT);
    hk_sq_bind_i64(store, q, 1, cut.last_id);
    uint32_t deleted = (uint32_t)hk_sq_run(store, q);
    tell_cut(store, &cut, now_ms);
    return deleted;
}
