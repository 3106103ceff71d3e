/* SPDX-License-Identifier: Apache-2.0 */
/* Sealed texts in PostgreSQL: finding and exchanging them, whatever key they are of. A text is exchanged only while it still is the one
 * that was read, so that nothing need be locked in between. */
#include "base/str.h"
#include "store/pg/admin.h"

enum {
    C_ID,
    C_SUB,
    C_MESSAGE_ID,
    C_ENCODING,
    C_A,
    C_B
};

static const enum hk_pa_id page_of[HK_NSEAL_HOMES] = {[HK_SEAL_RETRY] = HK_PA_SEAL_RETRY,
                                                      [HK_SEAL_LETTERS] = HK_PA_SEAL_LETTERS,
                                                      [HK_SEAL_VERSIONS] = HK_PA_SEAL_VERSIONS,
                                                      [HK_SEAL_CANCELLED] = HK_PA_SEAL_CANCELLED,
                                                      [HK_SEAL_ATTEMPTS] = HK_PA_SEAL_ATTEMPTS};

static struct hk_str text_of(struct hk_pg *pg, const PGresult *res, int row, int column)
{
    return hk_pg_null(res, row, column) ? (struct hk_str){NULL, 0} : hk_pg_text(pg, res, row, column);
}

enum hk_code hk_pa_seal_page(struct hk_admin *admin, const struct hk_seal_page *page,
                             const struct hk_seal_rows **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pg_arg_i64(pg, &a, page->after_id);
    hk_pg_arg_i64(pg, &a, page->after_sub);
    hk_pg_arg_i64(pg, &a, page->limit);
    hk_pg_arg_u64(pg, &a, page->bytes);
    hk_pg_arg_bool(pg, &a, page->open);
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = HK_PA_PATIENCE_MS;
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, page_of[page->home], &a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    int n = res ? PQntuples(res) : 0;
    admin->seal_rows.items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *admin->seal_rows.items);
    admin->seal_rows.n = admin->seal_rows.items ? (size_t)n : 0;
    for (int i = 0; i < (int)admin->seal_rows.n; i++)
        admin->seal_rows.items[i] = (struct hk_seal_row){.id = hk_pg_i64(res, i, C_ID),
                                                         .sub = hk_pg_i64(res, i, C_SUB),
                                                         .message_id = hk_pg_text(pg, res, i, C_MESSAGE_ID),
                                                         .encoding = hk_pg_text(pg, res, i, C_ENCODING),
                                                         .a = text_of(pg, res, i, C_A),
                                                         .b = text_of(pg, res, i, C_B)};
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "read sealed texts", err);
    pg->call_ms = call_ms;
    if (rc == HK_OK)
        *out = &admin->seal_rows;
    return rc;
}

enum hk_code hk_pa_seal_put(struct hk_admin *admin, const struct hk_seal_put *put, bool *out_changed,
                            struct hk_err *err)
{
    static const enum hk_pa_id of[HK_NSEAL_HOMES][2] = {
        [HK_SEAL_RETRY] = {HK_PA_PUT_RETRY},
        [HK_SEAL_LETTERS] = {HK_PA_PUT_LETTER, HK_PA_PUT_DETAIL},
        [HK_SEAL_VERSIONS] = {HK_PA_PUT_VERSION},
        [HK_SEAL_CANCELLED] = {HK_PA_PUT_CANCELLED},
        [HK_SEAL_ATTEMPTS] = {HK_PA_PUT_ATTEMPT_HEADERS, HK_PA_PUT_ATTEMPT_BODY}};
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pg_arg_i64(pg, &a, put->id);
    hk_pg_arg_i64(pg, &a, put->sub);
    hk_pg_arg_text(pg, &a, put->old);
    hk_pg_arg_text(pg, &a, put->text);
    hk_pg_arg_text_or_null(pg, &a, put->encoding);
    PGresult *res = hk_pg_query(pg, true, of[put->home][put->second], &a);
    bool changed = hk_pg_touched(res) > 0;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "exchange a sealed text", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}

enum hk_code hk_pa_seal_uses(struct hk_admin *admin, const struct hk_seal_uses **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    uint64_t call_ms = pg->call_ms;
    pg->call_ms = HK_PA_PATIENCE_MS;
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PA_NO_HURRY, NULL);
    hk_pg_add(pg, HK_PA_SEAL_USES, NULL);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    int n = res ? PQntuples(res) : 0;
    admin->seal_uses.items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *admin->seal_uses.items);
    admin->seal_uses.n = admin->seal_uses.items ? (size_t)n : 0;
    for (int i = 0; i < (int)admin->seal_uses.n; i++)
        admin->seal_uses.items[i] = (struct hk_seal_use){
            .home = hk_pa_u32(res, i, 0), .key_id = hk_pg_text(pg, res, i, 1), .n = hk_pa_u64(res, i, 2)};
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "count sealed texts", err);
    pg->call_ms = call_ms;
    if (rc == HK_OK)
        *out = &admin->seal_uses;
    return rc;
}

enum hk_code hk_pa_note(struct hk_admin *admin, const struct hk_note_act *note, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(note->act));
    hk_pg_arg_text(pg, &a, hk_str_of(note->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(note->reason));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(note->detail));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(note->message_id));
    PQclear(hk_pg_query(pg, true, HK_PA_NOTE, &a));
    return hk_pa_end(admin, "write to the audit", err);
}
