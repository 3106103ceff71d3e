/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the HTTP API. The kernel gives the random bytes; the text leaves this file in a result, and nowhere else. */
#include <string.h>
#include <sys/random.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "desk/forms.h"
#include "desk/token.h"

#define DAY_MS     (UINT64_C(24) * 3600 * 1000)
#define EXPIRES_MS (90 * DAY_MS)
#define FOR_MAX_MS (36500 * DAY_MS)

enum {
    RANDOM_BYTES = 32,
    RANDOM_CHARS = 43,
    CHECK_CHARS = 6,
    NAME_MAX_BYTES = 64
};

_Static_assert(sizeof HK_TOKEN_PREFIX - 1 + RANDOM_CHARS + CHECK_CHARS == HK_TOKEN_LEN,
               "the form of a token");

/* ---- the text of a token ---- */

bool hk_token_text(const unsigned char bytes[32], char out[HK_TOKEN_LEN + 1])
{
    const size_t checked = HK_TOKEN_LEN - CHECK_CHARS;
    char hash[HK_AUDIT_HASH_MAX];
    struct hk_buf text;
    hk_buf_init(&text, 64);
    hk_buf_adds(&text, HK_TOKEN_PREFIX);
    hk_buf_add_base64(&text, bytes, RANDOM_BYTES);
    bool ok = hk_buf_status(&text) == HK_OK && text.len >= checked;
    if (ok)
        memcpy(out, text.data, checked);
    if (text.data)
        hk_mem_wipe(text.data, text.len);
    hk_buf_fini(&text);
    for (size_t i = 0; ok && i < checked; i++)
        out[i] = out[i] == '+' ? '-' : out[i] == '/' ? '_' : out[i];
    if (!ok)
        return false;
    hk_digest_hex((struct hk_str){out, checked}, hash);
    memcpy(out + checked, hash, CHECK_CHARS);
    out[HK_TOKEN_LEN] = '\0';
    return hash[0] != '\0';
}

static bool is_alnum(char c)
{
    return hk_ascii_isalpha(c) || hk_ascii_isdigit(c);
}

static bool is_token_char(char c)
{
    return is_alnum(c) || c == '-' || c == '_';
}

bool hk_token_hash(struct hk_str text, char out[HK_API_HASH_LEN + 1])
{
    const size_t checked = HK_TOKEN_LEN - CHECK_CHARS;
    char hash[HK_AUDIT_HASH_MAX];
    _Static_assert(HK_AUDIT_HASH_MAX == HK_API_HASH_LEN + 1, "both are SHA-256 in hex");
    if (text.len != HK_TOKEN_LEN || !hk_str_starts(text, hk_str_of(HK_TOKEN_PREFIX)))
        return false;
    for (size_t i = 0; i < checked; i++)
        if (!is_token_char(text.ptr[i]))
            return false;
    hk_digest_hex((struct hk_str){text.ptr, checked}, hash);
    if (!hash[0] || memcmp(hash, text.ptr + checked, CHECK_CHARS) != 0)
        return false;
    hk_digest_hex(text, out);
    return out[0] != '\0';
}

enum hk_role hk_role_of(struct hk_str word)
{
    struct hk_str rest = hk_str_of(HK_TOKEN_ROLES);
    for (int role = HK_ROLE_METRICS; role <= HK_ROLE_ADMIN; role++)
        if (hk_str_eq(hk_str_cut(&rest, ' '), word))
            return (enum hk_role)role;
    return HK_ROLE_NONE;
}

static bool fill_random(unsigned char out[RANDOM_BYTES])
{
    return getrandom(out, RANDOM_BYTES, 0) == RANDOM_BYTES;
}

/* ---- create ---- */

/* The audit shows the name as the actor, so it must not look like a person (user@host), the relay itself, or an id. */
static bool is_name(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > NAME_MAX_BYTES || !hk_ascii_isalpha(name[0]))
        return false;
    for (size_t i = 1; i < len; i++)
        if (!is_alnum(name[i]) && !strchr("._-", name[i]))
            return false;
    return strcmp(name, "hikyaku") != 0;
}

static enum hk_code read_expiry(struct hk_desk *desk, const char *text, uint64_t *out_ms, struct hk_err *err)
{
    struct hk_err why = {.code = HK_OK};
    *out_ms = EXPIRES_MS;
    if (!text)
        return HK_OK;
    if (strcmp(text, "never") == 0) {
        *out_ms = 0;
        return HK_OK;
    }
    if (hk_parse_duration(hk_str_of(text), out_ms, &why) != HK_OK)
        return hk_desk_wrong(desk, "expires", err, ": a duration such as 30d, or never: %s", why.message);
    if (*out_ms < 1000 || *out_ms > FOR_MAX_MS)
        return hk_desk_wrong(desk, "expires", err, "takes 1s to 36500d, or never");
    return HK_OK;
}

static enum hk_code check_create(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_token_create_ask *ask = request;
    uint64_t for_ms;
    if (!ask->name || !is_name(ask->name))
        return hk_err_set(err, HK_INVALID,
                          "a token's name has 1 to %d letters, digits, '.', '_' and '-', begins with a "
                          "letter, and is not 'hikyaku'",
                          NAME_MAX_BYTES);
    if (!ask->role || hk_role_of(hk_str_of(ask->role)) == HK_ROLE_NONE)
        return hk_desk_wrong(desk, "role", err, "is needed: metrics, viewer, operator or admin");
    return read_expiry(desk, ask->expires, &for_ms, err);
}

static enum hk_code make_token(char text[HK_TOKEN_LEN + 1], char hash[HK_API_HASH_LEN + 1],
                               struct hk_err *err)
{
    unsigned char bytes[RANDOM_BYTES];
    bool ok = fill_random(bytes);
    if (!ok)
        return hk_err_set(err, HK_IO, "the system gives no random bytes");
    ok = hk_token_text(bytes, text) && hk_token_hash(hk_str_of(text), hash);
    hk_mem_wipe(bytes, sizeof bytes);
    return ok ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code create_token(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_token_create_ask *ask, struct hk_pool *mem,
                                 struct hk_token_created *out, struct hk_err *err)
{
    char hash[HK_API_HASH_LEN + 1];
    uint64_t for_ms = 0;
    struct hk_token_made made = {.id = 0};
    struct hk_token_created created = {.name = ask->name, .role = ask->role, .reveal = ask->reveal};
    (void)mem;
    if (ask->reveal && !caller->may_reveal)
        return hk_err_set(err, HK_DENIED, "your rights do not allow a token that reveals what is masked");
    enum hk_code rc = read_expiry(desk, ask->expires, &for_ms, err);
    if (rc == HK_OK)
        rc = make_token(created.token, hash, err);
    const struct hk_token_new new = {.name = ask->name,
                                     .role = ask->role,
                                     .reveal = ask->reveal,
                                     .hash = hash,
                                     .for_ms = for_ms,
                                     .actor = caller->actor,
                                     .reason = caller->reason};
    if (rc == HK_OK)
        rc = desk->api->create_token(desk->admin, &new, &made, err);
    if (rc == HK_OK) {
        created.id = made.id;
        created.created_ms = made.created_ms;
        created.expires_ms = made.expires_ms;
        *out = created;
    }
    hk_mem_wipe(created.token, sizeof created.token);
    return rc;
}

/* ---- list, revoke ---- */

const char *hk_token_state_word(unsigned state)
{
    static const char *const words[HK_NTOKEN_STATES] = {"active", "expired", "revoked"};
    return words[state];
}

static enum hk_token_state state_of(const struct hk_token *token, int64_t now_ms)
{
    if (token->revoked_ms)
        return HK_TOKEN_REVOKED;
    return token->expires_ms && token->expires_ms <= now_ms ? HK_TOKEN_EXPIRED : HK_TOKEN_ACTIVE;
}

static enum hk_code list_tokens(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                                struct hk_pool *mem, struct hk_tokens *out, struct hk_err *err)
{
    const struct hk_tokens *found = NULL;
    (void)caller, (void)request;
    enum hk_code rc = desk->api->list_tokens(desk->admin, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = *found;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; i < out->n; i++)
        out->items[i].state = state_of(&out->items[i], out->now_ms);
    return HK_OK;
}

static enum hk_code revoke_token(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_token_revoke_ask *ask, struct hk_pool *mem,
                                 struct hk_token_revoked *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int64_t id = 0;
    if (hk_parse_i64(hk_str_of(ask->token), &id, NULL) != HK_OK || id <= 0)
        id = 0;
    const struct hk_token_revoke revoke = {
        .id = id, .name = ask->token, .actor = caller->actor, .reason = caller->reason};
    enum hk_code rc = desk->api->revoke_token(desk->admin, &revoke, out, err);
    if (rc == HK_NOTFOUND)
        return hk_err_set(err, HK_NOTFOUND, "there is no token %s: 'hikyaku token list' shows them",
                          hk_show(hk_str_of(ask->token), shown));
    if (rc == HK_OK) {
        hk_desk_keep(desk, mem);
        out->token.state = HK_TOKEN_REVOKED;
    }
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(create_token)
HK_OP_RUN(list_tokens)
HK_OP_RUN(revoke_token)

static const struct hk_arg create_args[] = {
    {HK_SUBJECT(hk_token_create_ask, name, "NAME", "who it is for; the audit names it as the actor")},
    {HK_ARG(hk_token_create_ask, role, HK_ARG_CHOICE, "ROLE",
            "what it may do: metrics, viewer, operator or admin"),
     .choices = HK_TOKEN_ROLES},
    {HK_ARG(hk_token_create_ask, reveal, HK_ARG_FLAG, NULL, "it may also reveal what masks hide")},
    {HK_ARG(hk_token_create_ask, expires, HK_ARG_TEXT, "TIME",
            "it expires after this time, such as 30d, or never (default: 90d)")},
    {.name = NULL}};

static const struct hk_arg revoke_args[] = {
    {HK_SUBJECT(hk_token_revoke_ask, token, "NAME|ID", "as 'hikyaku token list' shows it")}, {.name = NULL}};

const struct hk_op hk_op_token_create = {
    .noun = "token",
    .verb = "create",
    .summary = "create a token for the HTTP API, and print it once",
    .details = "Only its hash is stored: nobody can show the token again. Standard output has the token and\n"
               "nothing else, so that it can go to a file that only its user can read.",
    .route = "POST /tokens",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .secret = true,
    .args = create_args,
    .request_size = sizeof(struct hk_token_create_ask),
    .result_size = sizeof(struct hk_token_created),
    .check = check_create,
    .run = create_token_op,
    .form = hk_form_token_created};

const struct hk_op hk_op_token_list = {.noun = "token",
                                       .verb = "list",
                                       .summary = "list tokens of the HTTP API, and when each was last used",
                                       .route = "GET /tokens",
                                       .role = HK_ROLE_ADMIN,
                                       .store = true,
                                       .result_size = sizeof(struct hk_tokens),
                                       .run = list_tokens_op,
                                       .form = hk_form_tokens};

const struct hk_op hk_op_token_revoke = {
    .noun = "token",
    .verb = "revoke",
    .summary = "revoke a token of the HTTP API",
    .details =
        "Relays refuse it within a second. It stays in the list, and its name is free for another one.",
    .route = "POST /tokens/{token}/revoke",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = revoke_args,
    .request_size = sizeof(struct hk_token_revoke_ask),
    .result_size = sizeof(struct hk_token_revoked),
    .run = revoke_token_op,
    .form = hk_form_token_revoked};
