/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API's tokens and calls on SQLite. Writers come one after the other, so a call is looked at and begun in one
 * transaction. */
#include "base/json.h"
#include "base/str.h"
#include "store/api.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"
#include "store/sqlite/api_sql.h" /* made of sql/api.sql */

static int64_t begin_act(struct hk_store *store)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    return hk_sq_now(store);
}

static sqlite3_stmt *prepare(struct hk_store *store, enum hk_sp_id id)
{
    return hk_sa_prepare(store, hk_sp_texts[id]);
}

static int run(struct hk_store *store, sqlite3_stmt *q)
{
    int n = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return n;
}

/* ---- tokens ---- */

static void read_token(struct hk_store *store, sqlite3_stmt *q, struct hk_token *out)
{
    const struct hk_cells row = hk_sa_cells(store, q);
    hk_cells_token(&row, out);
}

/* One row of `q`, which is finalized. */
static bool take_token(struct hk_store *store, sqlite3_stmt *q, struct hk_token *out)
{
    bool found = hk_sq_row(store, q);
    if (found)
        read_token(store, q, out);
    sqlite3_finalize(q);
    return found;
}

/* What is to stand in the trail. */
struct act {
    const char *act, *actor, *reason;
    int64_t now_ms;
};

static void audit(struct hk_store *store, const struct act *act, struct hk_json *json)
{
    hk_json_end(json);
    if (hk_buf_status(json->out) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = act->now_ms,
                                              .actor = hk_str_of(act->actor),
                                              .act = hk_str_of(act->act),
                                              .reason = hk_str_of(act->reason),
                                              .detail = hk_buf_str(json->out)});
    hk_buf_fini(json->out);
}

static void begin_detail(struct hk_buf *detail, struct hk_json *json)
{
    hk_buf_init(detail, HK_SA_TEXT_MAX);
    hk_json_init(json, detail, false);
    hk_json_object(json);
}

static void audit_created(struct hk_store *store, const struct hk_token_new *ask,
                          const struct hk_token_made *made)
{
    struct hk_buf detail;
    struct hk_json json;
    begin_detail(&detail, &json);
    hk_json_key(&json, "token");
    hk_json_cstr(&json, ask->name);
    hk_json_key(&json, "id");
    hk_json_i64(&json, made->id);
    hk_json_key(&json, "role");
    hk_json_cstr(&json, ask->role);
    hk_json_key(&json, "reveal");
    hk_json_bool(&json, ask->reveal);
    hk_json_key(&json, "expires_ms");
    hk_json_i64(&json, made->expires_ms);
    audit(store, &(struct act){"token-create", ask->actor, ask->reason, made->created_ms}, &json);
}

static bool insert_token(struct hk_store *store, const struct hk_token_new *ask, struct hk_token_made *made)
{
    sqlite3_stmt *q = prepare(store, HK_SP_EXPIRE);
    hk_sq_bind_cstr(store, q, 1, ask->name);
    hk_sq_bind_i64(store, q, 2, made->created_ms);
    hk_sq_bind_cstr(store, q, 3, ask->actor);
    (void)run(store, q);
    q = prepare(store, HK_SP_CREATE);
    hk_sq_bind_cstr(store, q, 1, ask->name);
    hk_sq_bind_cstr(store, q, 2, ask->role);
    hk_sq_bind_i64(store, q, 3, ask->reveal);
    hk_sq_bind_cstr(store, q, 4, ask->hash);
    hk_sq_bind_i64(store, q, 5, made->created_ms);
    hk_sq_bind_cstr(store, q, 6, ask->actor);
    hk_sq_bind_cstr(store, q, 7, ask->reason);
    hk_sq_bind_i64(store, q, 8, made->expires_ms);
    bool there = run(store, q) == 1;
    made->id = sqlite3_last_insert_rowid(store->db);
    return there;
}

static enum hk_code create_token(struct hk_admin *admin, const struct hk_token_new *ask,
                                 struct hk_token_made *out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_token_made made = {.created_ms = begin_act(store)};
    if (ask->for_ms)
        made.expires_ms = made.created_ms + (int64_t)ask->for_ms;
    bool there = insert_token(store, ask, &made);
    if (!there && hk_sq_ok(store)) {
        hk_sq_rollback(store);
        return hk_err_set(err, HK_CONFLICT,
                          "a token of that name is in use: revoke it first, or choose another name");
    }
    audit_created(store, ask, &made);
    enum hk_code rc = hk_sq_end(store, "create a token", err);
    if (rc == HK_OK)
        *out = made;
    return rc;
}

static enum hk_code list_tokens(struct hk_admin *admin, const struct hk_tokens **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    size_t room = 0, n = 0;
    struct hk_token *items = NULL;
    hk_sq_call(store);
    struct hk_tokens *tokens = hk_sq_alloc(store, 1, sizeof *tokens);
    hk_sq_begin_read(store);
    int64_t now_ms = hk_sq_now(store);
    sqlite3_stmt *q = prepare(store, HK_SP_LIST);
    hk_sq_bind_i64(store, q, 1, HK_TOKENS_MAX + 1);
    while (hk_sq_row(store, q)) {
        struct hk_token *more = hk_sa_grow(store, items, n, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        read_token(store, q, &items[n++]);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "list tokens", err);
    if (rc != HK_OK)
        return rc;
    *tokens = (struct hk_tokens){.now_ms = now_ms,
                                 .items = items,
                                 .n = n > HK_TOKENS_MAX ? HK_TOKENS_MAX : n,
                                 .more = n > HK_TOKENS_MAX};
    *out = tokens;
    return HK_OK;
}

static void revoke_found(struct hk_store *store, const struct hk_token_revoke *ask, struct hk_token *token,
                         int64_t now_ms)
{
    struct hk_buf detail;
    struct hk_json json;
    sqlite3_stmt *q = prepare(store, HK_SP_REVOKE);
    hk_sq_bind_i64(store, q, 1, token->id);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_cstr(store, q, 3, ask->actor);
    (void)run(store, q);
    token->revoked_ms = now_ms;
    token->revoked_by = hk_str_of(ask->actor);
    begin_detail(&detail, &json);
    hk_json_key(&json, "token");
    hk_json_str(&json, token->name);
    hk_json_key(&json, "id");
    hk_json_i64(&json, token->id);
    audit(store, &(struct act){"token-revoke", ask->actor, ask->reason, now_ms}, &json);
}

static enum hk_code revoke_token(struct hk_admin *admin, const struct hk_token_revoke *ask,
                                 struct hk_token_revoked *out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_token_revoked done = {.changed = false};
    int64_t now_ms = begin_act(store);
    sqlite3_stmt *q = prepare(store, ask->id > 0 ? HK_SP_BY_ID : HK_SP_BY_NAME);
    if (ask->id > 0)
        hk_sq_bind_i64(store, q, 1, ask->id);
    else
        hk_sq_bind_cstr(store, q, 1, ask->name);
    bool found = take_token(store, q, &done.token);
    if (!found && hk_sq_ok(store)) {
        hk_sq_rollback(store);
        return hk_err_set(err, HK_NOTFOUND, "there is no such token");
    }
    done.changed = found && done.token.revoked_ms == 0;
    if (done.changed)
        revoke_found(store, ask, &done.token, now_ms);
    enum hk_code rc = hk_sq_end(store, "revoke a token", err);
    if (rc == HK_OK)
        *out = done;
    return rc;
}

static enum hk_code find_token(struct hk_admin *admin, const char *hash, const struct hk_token_found **out,
                               struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_token_found *found = hk_sq_alloc(store, 1, sizeof *found);
    hk_sq_begin_read(store);
    if (found) {
        found->now_ms = hk_sq_now(store);
        sqlite3_stmt *q = prepare(store, HK_SP_ANY);
        found->any = hk_sq_row(store, q);
        sqlite3_finalize(q);
        q = hash ? prepare(store, HK_SP_BY_HASH) : NULL;
        if (q) {
            hk_sq_bind_cstr(store, q, 1, hash);
            found->found = hk_sq_row(store, q);
        }
        if (found->found) {
            read_token(store, q, &found->token);
            found->hash = hk_sa_text(store, q, 11, HK_API_HASH_LEN);
        }
        sqlite3_finalize(q);
    }
    enum hk_code rc = hk_sq_end(store, "look for a token", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}

static enum hk_code use_token(struct hk_admin *admin, int64_t id, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    sqlite3_stmt *q = prepare(store, HK_SP_USE);
    hk_sq_bind_i64(store, q, 1, id);
    hk_sq_bind_i64(store, q, 2, now_ms);
    hk_sq_bind_i64(store, q, 3, HK_TOKEN_USED_MS);
    (void)run(store, q);
    return hk_sq_end(store, "note a token's use", err);
}

static enum hk_code note_refused(struct hk_admin *admin, const char *address, const char *code, uint64_t n,
                                 struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_buf detail;
    struct hk_json json;
    int64_t now_ms = begin_act(store);
    begin_detail(&detail, &json);
    hk_json_key(&json, "address");
    hk_json_cstr(&json, address);
    hk_json_key(&json, "requests");
    hk_json_u64(&json, n);
    audit(store, &(struct act){"api-refused", "hikyaku", code, now_ms}, &json);
    return hk_sq_end(store, "write down who was refused", err);
}

/* ---- calls ---- */

/* Is `ms` within the last `for_ms`? A time that lies far ahead is one of a clock that was set back. */
static bool is_within(int64_t ms, int64_t now_ms, int64_t for_ms)
{
    return ms > now_ms - for_ms && ms <= now_ms + HK_API_LEASE_MS;
}

static void bind_call(struct hk_store *store, sqlite3_stmt *q, const struct hk_api_call *call)
{
    hk_sq_bind_cstr(store, q, 1, call->caller);
    hk_sq_bind_cstr(store, q, 2, call->key_hash);
}

static void start_run(struct hk_store *store, const struct hk_api_call *call, int64_t run_id, int64_t now_ms,
                      int64_t created_ms)
{
    sqlite3_stmt *q = prepare(store, HK_SP_BEGIN);
    bind_call(store, q, call);
    hk_sq_bind_cstr(store, q, 3, call->request_hash);
    hk_sq_bind_i64(store, q, 4, run_id);
    hk_sq_bind_i64(store, q, 5, now_ms);
    hk_sq_bind_i64(store, q, 6, created_ms);
    (void)run(store, q);
}

/* What there is in the row of `q`; HK_API_YOURS: it is to be taken over. `*created_ms` is that of the row, if that is kept. */
static void judge(struct hk_store *store, sqlite3_stmt *q, const struct hk_api_call *call, int64_t now_ms,
                  struct hk_api_begun *out, int64_t *created_ms)
{
    bool same = hk_str_eq(hk_sa_text(store, q, 0, HK_TOKEN_TEXT_MAX), hk_str_of(call->request_hash));
    bool done = hk_str_eq(hk_sa_text(store, q, 1, HK_TOKEN_TEXT_MAX), hk_str_of("done"));
    out->run = sqlite3_column_int64(q, 2) + 1;
    if (!is_within(sqlite3_column_int64(q, 4), now_ms, HK_API_KEEP_MS))
        return;
    *created_ms = sqlite3_column_int64(q, 4);
    if (!same) {
        out->verdict = HK_API_OTHER;
    } else if (done) {
        out->verdict = HK_API_DONE;
        out->status = hk_sa_u32(q, 5);
        out->content_type = hk_sa_text(store, q, 6, HK_TOKEN_TEXT_MAX);
        out->has_body = sqlite3_column_type(q, 7) != SQLITE_NULL;
        out->body = hk_sa_text(store, q, 7, HK_API_KEPT_MAX);
    } else if (is_within(sqlite3_column_int64(q, 3), now_ms, HK_API_LEASE_MS)) {
        out->verdict = HK_API_RUNNING;
    }
}

static enum hk_code begin_call(struct hk_admin *admin, const struct hk_api_call *call,
                               const struct hk_api_begun **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store), created_ms = now_ms;
    struct hk_api_begun *begun = hk_sq_alloc(store, 1, sizeof *begun);
    sqlite3_stmt *q = prepare(store, HK_SP_CALL);
    bind_call(store, q, call);
    if (begun) {
        begun->run = 1;
        if (hk_sq_row(store, q))
            judge(store, q, call, now_ms, begun, &created_ms);
    }
    sqlite3_finalize(q);
    if (begun && begun->verdict == HK_API_YOURS)
        start_run(store, call, begun->run, now_ms, created_ms);
    enum hk_code rc = hk_sq_end(store, "begin a call", err);
    if (rc == HK_OK)
        *out = begun;
    return rc;
}

static enum hk_code finish_call(struct hk_admin *admin, const struct hk_api_call *call, int64_t run_id,
                                const struct hk_api_response *response, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_str body = response->body;
    (void)begin_act(store);
    sqlite3_stmt *q = prepare(store, HK_SP_FINISH);
    bind_call(store, q, call);
    hk_sq_bind_i64(store, q, 3, run_id);
    hk_sq_bind_i64(store, q, 4, response->status);
    hk_sq_bind_text_or_null(store, q, 5, hk_str_of(response->content_type));
    if (q && !response->secret && body.len <= HK_API_KEPT_MAX &&
        sqlite3_bind_blob64(q, 6, body.len ? body.ptr : "", body.len, SQLITE_STATIC) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    (void)run(store, q);
    return hk_sq_end(store, "keep a call's response", err);
}

static enum hk_code forget_call(struct hk_admin *admin, const struct hk_api_call *call, int64_t run_id,
                                struct hk_err *err)
{
    struct hk_store *store = admin->store;
    (void)begin_act(store);
    sqlite3_stmt *q = prepare(store, HK_SP_FORGET);
    bind_call(store, q, call);
    hk_sq_bind_i64(store, q, 3, run_id);
    (void)run(store, q);
    return hk_sq_end(store, "forget a call", err);
}

const struct hk_store_api_ops hk_store_api_sqlite = {
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
