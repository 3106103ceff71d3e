/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed texts in SQLite: finding and exchanging them, whatever key they are of. A text is exchanged only while it still is the one that
 * was read. */
#include "base/str.h"
#include "payload/keyring.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

static const enum hk_sa_id page_of[HK_NSEAL_HOMES] = {[HK_SEAL_RETRY] = HK_SA_SEAL_RETRY,
                                                      [HK_SEAL_LETTERS] = HK_SA_SEAL_LETTERS,
                                                      [HK_SEAL_VERSIONS] = HK_SA_SEAL_VERSIONS,
                                                      [HK_SEAL_CANCELLED] = HK_SA_SEAL_CANCELLED,
                                                      [HK_SEAL_ATTEMPTS] = HK_SA_SEAL_ATTEMPTS};

static struct hk_str text_of(struct hk_store *store, sqlite3_stmt *q, int column)
{
    if (sqlite3_column_type(q, column) == SQLITE_NULL)
        return (struct hk_str){NULL, 0};
    return hk_sa_text(store, q, column, SIZE_MAX);
}

enum hk_code hk_sa_seal_page(struct hk_admin *admin, const struct hk_seal_page *page,
                             const struct hk_seal_rows **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_seal_rows *rows = &admin->seal_rows;
    size_t room = 0;
    uint64_t bytes = 0;
    *rows = (struct hk_seal_rows){.items = NULL};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[page_of[page->home]]);
    hk_sq_bind_i64(store, q, 1, page->after_id);
    hk_sq_bind_i64(store, q, 2, page->after_sub);
    if (q && sqlite3_bind_parameter_count(q) >= 3)
        hk_sq_bind_i64(store, q, 3, page->open);
    while (rows->n < page->limit && bytes < page->bytes && hk_sq_row(store, q)) {
        struct hk_seal_row row = {.id = sqlite3_column_int64(q, 0),
                                  .sub = sqlite3_column_int64(q, 1),
                                  .message_id = hk_sa_text(store, q, 2, SIZE_MAX),
                                  .encoding = hk_sa_text(store, q, 3, SIZE_MAX),
                                  .a = text_of(store, q, 4),
                                  .b = text_of(store, q, 5)};
        rows->items = hk_sa_grow(store, rows->items, rows->n, &room, sizeof *rows->items);
        if (!rows->items)
            break;
        bytes += row.a.len + row.b.len;
        rows->items[rows->n++] = row;
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read sealed texts", err);
    if (rc == HK_OK)
        *out = rows;
    return rc;
}

enum hk_code hk_sa_seal_put(struct hk_admin *admin, const struct hk_seal_put *put, bool *out_changed,
                            struct hk_err *err)
{
    static const enum hk_sa_id of[HK_NSEAL_HOMES][2] = {
        [HK_SEAL_RETRY] = {HK_SA_PUT_RETRY},
        [HK_SEAL_LETTERS] = {HK_SA_PUT_LETTER, HK_SA_PUT_DETAIL},
        [HK_SEAL_VERSIONS] = {HK_SA_PUT_VERSION},
        [HK_SEAL_CANCELLED] = {HK_SA_PUT_CANCELLED},
        [HK_SEAL_ATTEMPTS] = {HK_SA_PUT_ATTEMPT_HEADERS, HK_SA_PUT_ATTEMPT_BODY}};
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_write(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[of[put->home][put->second]]);
    hk_sq_bind_i64(store, q, 1, put->id);
    hk_sq_bind_i64(store, q, 2, put->sub);
    hk_sq_bind_text(store, q, 3, put->old);
    hk_sq_bind_text(store, q, 4, put->text);
    hk_sq_bind_text_or_null(store, q, 5, put->encoding);
    bool changed = hk_sq_run(store, q) > 0;
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "exchange a sealed text", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}

enum hk_code hk_sa_seal_uses(struct hk_admin *admin, const struct hk_seal_uses **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_seal_uses *uses = &admin->seal_uses;
    size_t room = 0;
    *uses = (struct hk_seal_uses){.items = NULL};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_SEAL_USES]);
    while (hk_sq_row(store, q)) {
        uses->items = hk_sa_grow(store, uses->items, uses->n, &room, sizeof *uses->items);
        if (!uses->items)
            break;
        uses->items[uses->n++] = (struct hk_seal_use){.home = hk_sa_u32(q, 0),
                                                      .key_id = hk_sa_text(store, q, 1, HK_KEY_ID_MAX),
                                                      .n = (uint64_t)sqlite3_column_int64(q, 2)};
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "count sealed texts", err);
    if (rc == HK_OK)
        *out = uses;
    return rc;
}

enum hk_code hk_sa_note(struct hk_admin *admin, const struct hk_note_act *note, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = hk_sq_now(store),
                                              .actor = hk_str_of(note->actor),
                                              .act = hk_str_of(note->act),
                                              .message_id = hk_str_of(note->message_id),
                                              .reason = hk_str_of(note->reason),
                                              .detail = hk_str_of(note->detail)});
    return hk_sq_end(store, "write to the audit", err);
}
