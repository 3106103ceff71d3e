/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP API's rows in the store: tokens, and calls that must not be carried out twice. This is a fifth small vtable, on the same
 * handle as admin.h and under the same rules. tests/contract/api_suite.c tests this contract.
 *
 * - A token itself never comes here: only its SHA-256, in hex. A role is a word, which the desk reads; the store knows none.
 * - Creating and revoking leave a row in outbox_audit, in the same transaction.
 * - A call with an Idempotency-Key goes begin -> (it is done) -> finish, or forget when it failed in a way that may be repeated. A
 *   call whose process died is free again HK_API_LEASE_MS after it began; `run` keeps the one that was taken for dead from
 *   writing over its successor. Rows are kept for HK_API_KEEP_MS; retention (store.h, purge) deletes them. */
#ifndef HK_STORE_API_H
#define HK_STORE_API_H

#include "store/admin.h"

#define HK_API_HASH_LEN 64 /* SHA-256 in hex */

/* ---- tokens ---- */

#define HK_TOKENS_MAX     1000        /* that a list shows */
#define HK_TOKEN_TEXT_MAX 1000        /* longer texts are cut */
#define HK_TOKEN_USED_MS  (60 * 1000) /* the last use is known this exactly */

enum hk_token_state {
    HK_TOKEN_ACTIVE = 0,
    HK_TOKEN_EXPIRED,
    HK_TOKEN_REVOKED,
    HK_NTOKEN_STATES
};

struct hk_token {
    int64_t id;
    struct hk_str name, role;
    bool reveal;
    int64_t created_ms;
    struct hk_str created_by, reason;
    int64_t expires_ms; /* 0 = never */
    int64_t revoked_ms; /* 0 = it is not */
    struct hk_str revoked_by;
    int64_t last_used_ms;      /* 0 = never */
    enum hk_token_state state; /* the desk fills it in */
};

struct hk_tokens {
    int64_t now_ms;
    struct hk_token *items; /* those that are not revoked first, the newest first */
    size_t n;
    bool more; /* than HK_TOKENS_MAX */
};

struct hk_token_new {
    const char *name, *role;
    bool reveal;
    const char *hash;
    uint64_t for_ms; /* until it expires; 0 = never */
    const char *actor, *reason;
};

struct hk_token_made {
    int64_t id, created_ms, expires_ms;
};

struct hk_token_revoke {
    int64_t id;       /* 0: by its name */
    const char *name; /* its token that is not revoked, else its newest */
    const char *actor, *reason;
};

struct hk_token_revoked {
    struct hk_token token;
    bool changed; /* false: it was revoked already, and nothing is written */
};

struct hk_token_found {
    int64_t now_ms;
    bool any;   /* there is a token, or ever was one: revoked ones count */
    bool found; /* and this is the one with that hash: also if it has expired or is revoked */
    struct hk_token token;
    struct hk_str hash; /* as it is stored */
};

/* ---- calls ---- */

#define HK_API_LEASE_MS ((int64_t)60 * 1000)
#define HK_API_KEEP_MS  ((int64_t)24 * 3600 * 1000)
#define HK_API_KEPT_MAX ((size_t)1 << 20)

struct hk_api_call {
    const char *caller;       /* whose key it is */
    const char *key_hash;     /* of the Idempotency-Key */
    const char *request_hash; /* of method, path and body */
};

enum hk_api_verdict {
    HK_API_YOURS = 0, /* do it, then finish or forget */
    HK_API_DONE,      /* it was done: here is the response */
    HK_API_RUNNING,   /* the same request is being done */
    HK_API_OTHER      /* the key was used for another request */
};

struct hk_api_begun {
    enum hk_api_verdict verdict;
    int64_t run; /* HK_API_YOURS */
    /* HK_API_DONE */
    uint32_t status;
    struct hk_str content_type, body;
    bool has_body; /* false: it was not kept */
};

struct hk_api_response {
    uint32_t status;
    const char *content_type;
    struct hk_str body; /* of more than HK_API_KEPT_MAX bytes it is not kept */
    bool secret;        /* neither */
};

struct hk_store_api_ops {
    /* HK_CONFLICT: a token of that name is not revoked and has not expired. One that has expired makes room, and is revoked. */
    enum hk_code (*create_token)(struct hk_admin *admin, const struct hk_token_new *ask,
                                 struct hk_token_made *out, struct hk_err *err);
    enum hk_code (*list_tokens)(struct hk_admin *admin, const struct hk_tokens **out, struct hk_err *err);
    /* HK_NOTFOUND. What `out` points to belongs to the handle. */
    enum hk_code (*revoke_token)(struct hk_admin *admin, const struct hk_token_revoke *ask,
                                 struct hk_token_revoked *out, struct hk_err *err);
    /* `hash` NULL: no token, `found` is false. */
    enum hk_code (*find_token)(struct hk_admin *admin, const char *hash, const struct hk_token_found **out,
                               struct hk_err *err);
    /* It was used now. Writes only when the last use that is known is HK_TOKEN_USED_MS ago. */
    enum hk_code (*use_token)(struct hk_admin *admin, int64_t id, struct hk_err *err);
    /* To the audit: that many requests from `address` were refused, the last one with this code. */
    enum hk_code (*refused)(struct hk_admin *admin, const char *address, const char *code, uint64_t n,
                            struct hk_err *err);

    enum hk_code (*begin_call)(struct hk_admin *admin, const struct hk_api_call *call,
                               const struct hk_api_begun **out, struct hk_err *err);
    /* Both leave a call alone, without a word, that is not this run's any more. */
    enum hk_code (*finish_call)(struct hk_admin *admin, const struct hk_api_call *call, int64_t run,
                                const struct hk_api_response *response, struct hk_err *err);
    enum hk_code (*forget_call)(struct hk_admin *admin, const struct hk_api_call *call, int64_t run,
                                struct hk_err *err);
};

extern const struct hk_store_api_ops hk_store_api_sqlite;
extern const struct hk_store_api_ops hk_store_api_postgres; /* where it was built in */

/* As hk_store_by_url. */
const struct hk_store_api_ops *hk_store_api_by_url(const char *url, struct hk_err *err);

#endif
