/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API's tokens and calls on PostgreSQL. Each call is one transaction that goes out whole: of two that begin the same call
 * at once, the unique index lets one insert, and the other waits and sees it. */
#include "base/str.h"
#include "store/api.h"
#include "store/pg/admin.h"

/* ---- tokens ---- */

static void take_token(struct hk_pg *pg, const PGresult *res, int row, int at, struct hk_token *out)
{
    const struct hk_cells cells = hk_pa_cells(pg, res, row, at);
    hk_cells_token(&cells, out);
}

static void add_create(struct hk_admin *admin, const struct hk_token_new *ask)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, old = {.n = 0};
    hk_pa_arg_now(admin, &old);
    hk_pg_arg_text(pg, &old, hk_str_of(ask->name));
    hk_pg_arg_text(pg, &old, hk_str_of(ask->actor));
    hk_pg_add(pg, HK_PP_EXPIRE, &old);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->name));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->role));
    hk_pg_arg_bool(pg, &a, ask->reveal);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->hash));
    hk_pg_arg_u64(pg, &a, ask->for_ms);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    hk_pg_add(pg, HK_PP_CREATE, &a);
}

static enum hk_code create_token(struct hk_admin *admin, const struct hk_token_new *ask,
                                 struct hk_token_made *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_token_made made = {.id = 0};
    hk_pg_call(pg);
    hk_pg_begin(pg, true);
    add_create(admin, ask);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) == 1)
        made = (struct hk_token_made){hk_pg_i64(res, 0, 0), hk_pg_i64(res, 0, 1), hk_pg_i64(res, 0, 2)};
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "create a token", err);
    if (rc == HK_OK && made.id == 0)
        return hk_err_set(err, HK_CONFLICT,
                          "a token of that name is in use: revoke it first, or choose another name");
    if (rc == HK_OK)
        *out = made;
    return rc;
}

static void take_tokens(struct hk_pg *pg, const PGresult *res, struct hk_tokens *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_token *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, i, 0));
        if (hk_pg_null(res, i, 1))
            continue;
        out->more = out->n == HK_TOKENS_MAX;
        if (!out->more)
            take_token(pg, res, i, 1, &items[out->n++]);
    }
    out->items = items;
}

static enum hk_code list_tokens(struct hk_admin *admin, const struct hk_tokens **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_tokens *tokens = hk_pg_alloc(pg, 1, sizeof *tokens);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, HK_TOKENS_MAX + 1);
    PGresult *res = tokens ? hk_pg_query(pg, false, HK_PP_LIST, &a) : NULL;
    if (tokens)
        take_tokens(pg, res, tokens);
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "list tokens", err);
    if (rc == HK_OK)
        *out = tokens;
    return rc;
}

static enum hk_code revoke_token(struct hk_admin *admin, const struct hk_token_revoke *ask,
                                 struct hk_token_revoked *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_token_revoked done = {.changed = false};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, ask->id);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->name));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    PGresult *res = hk_pg_query(pg, true, HK_PP_REVOKE, &a);
    bool found = res && PQntuples(res) == 1;
    if (found) {
        done.changed = hk_pg_bool(res, 0, 0);
        take_token(pg, res, 0, 2, &done.token);
    }
    if (done.changed) {
        done.token.revoked_ms = hk_pg_i64(res, 0, 1);
        done.token.revoked_by = hk_str_of(ask->actor);
    }
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "revoke a token", err);
    if (rc == HK_OK && !found)
        return hk_err_set(err, HK_NOTFOUND, "there is no such token");
    if (rc == HK_OK)
        *out = done;
    return rc;
}

static enum hk_code find_token(struct hk_admin *admin, const char *hash, const struct hk_token_found **out,
                               struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_token_found *found = hk_pg_alloc(pg, 1, sizeof *found);
    hk_pa_arg_now(admin, &a);
    if (hash)
        hk_pg_arg_text(pg, &a, hk_str_of(hash));
    else
        hk_pg_arg_null(pg, &a);
    PGresult *res = found ? hk_pg_query(pg, false, HK_PP_FIND, &a) : NULL;
    if (res && PQntuples(res) == 1) {
        found->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        found->any = hk_pg_bool(res, 0, 1);
        found->found = !hk_pg_null(res, 0, 2);
        if (found->found) {
            take_token(pg, res, 0, 2, &found->token);
            found->hash = hk_pg_text(pg, res, 0, 13);
        }
    }
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "look for a token", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}

static enum hk_code use_token(struct hk_admin *admin, int64_t id, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_i64(pg, &a, HK_TOKEN_USED_MS);
    PQclear(hk_pg_query(pg, true, HK_PP_USE, &a));
    return hk_pg_end(pg, "note a token's use", err);
}

static enum hk_code note_refused(struct hk_admin *admin, const char *address, const char *code, uint64_t n,
                                 struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(address));
    hk_pg_arg_text(pg, &a, hk_str_of(code));
    hk_pg_arg_u64(pg, &a, n);
    PQclear(hk_pg_query(pg, true, HK_PP_REFUSED, &a));
    return hk_pa_end(admin, "write down who was refused", err);
}

/* ---- calls ---- */

static void arg_call(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_api_call *call)
{
    hk_pg_arg_text(pg, a, hk_str_of(call->caller));
    hk_pg_arg_text(pg, a, hk_str_of(call->key_hash));
}

static void add_begin(struct hk_admin *admin, const struct hk_api_call *call)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, look = {.n = 0};
    hk_pa_arg_now(admin, &a);
    arg_call(pg, &a, call);
    hk_pg_arg_text(pg, &a, hk_str_of(call->request_hash));
    hk_pg_arg_i64(pg, &a, HK_API_LEASE_MS);
    hk_pg_arg_i64(pg, &a, HK_API_KEEP_MS);
    hk_pg_add(pg, HK_PP_BEGIN, &a);
    arg_call(pg, &look, call);
    hk_pg_arg_text(pg, &look, hk_str_of(call->request_hash));
    hk_pg_add(pg, HK_PP_CALL, &look);
}

/* No row: it was forgotten between the two statements. Whoever asks again begins it. */
static void take_call(struct hk_pg *pg, const PGresult *res, struct hk_api_begun *out)
{
    out->verdict = HK_API_RUNNING;
    if (!res || PQntuples(res) != 1)
        return;
    if (!hk_pg_bool(res, 0, 0)) {
        out->verdict = HK_API_OTHER;
    } else if (hk_pg_bool(res, 0, 1)) {
        out->verdict = HK_API_DONE;
        out->status = hk_pa_u32(res, 0, 2);
        out->content_type = hk_pg_text(pg, res, 0, 3);
        out->has_body = hk_pg_bool(res, 0, 4);
        out->body = out->has_body ? hk_pg_bytes(pg, res, 0, 5) : hk_str_of("");
    }
}

static enum hk_code begin_call(struct hk_admin *admin, const struct hk_api_call *call,
                               const struct hk_api_begun **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_api_begun *begun = hk_pg_alloc(pg, 1, sizeof *begun);
    hk_pg_begin(pg, true);
    add_begin(admin, call);
    hk_pg_send(pg);
    PGresult *run = hk_pg_result(pg), *row = hk_pg_result(pg);
    if (begun && run && PQntuples(run) == 1)
        begun->run = hk_pg_i64(run, 0, 0);
    else if (begun)
        take_call(pg, row, begun);
    PQclear(run);
    PQclear(row);
    enum hk_code rc = hk_pa_end(admin, "begin a call", err);
    if (rc == HK_OK)
        *out = begun;
    return rc;
}

static enum hk_code finish_call(struct hk_admin *admin, const struct hk_api_call *call, int64_t run,
                                const struct hk_api_response *response, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    arg_call(pg, &a, call);
    hk_pg_arg_i64(pg, &a, run);
    hk_pg_arg_i64(pg, &a, response->status);
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(response->content_type));
    if (response->secret || response->body.len > HK_API_KEPT_MAX)
        hk_pg_arg_null(pg, &a);
    else
        hk_pg_arg_bytes(pg, &a, response->body);
    PQclear(hk_pg_query(pg, true, HK_PP_FINISH, &a));
    return hk_pa_end(admin, "keep a call's response", err);
}

static enum hk_code forget_call(struct hk_admin *admin, const struct hk_api_call *call, int64_t run,
                                struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    arg_call(pg, &a, call);
    hk_pg_arg_i64(pg, &a, run);
    PQclear(hk_pg_query(pg, true, HK_PP_FORGET, &a));
    return hk_pg_end(pg, "forget a call", err);
}

const struct hk_store_api_ops hk_store_api_postgres = {
    .create_token = create_token,
    .list_tokens = list_tokens,
    .revoke_token = revoke_token,
    .find_token = find_token,
    .use_token = use_token,
    .refused = note_refused,
    .begin_call = begin_call,
    .finish_call = finish_call,
    .forget_call = forget_call,
};
