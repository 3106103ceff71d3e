/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies the caller of the HTTP API and the caller's role. Knows no HTTP library: header value and address in, caller or refusal out.
 *
 *   hk_auth_quick   on the server's thread: never blocks, and decides the cases that need no store
 *   hk_auth_check   on a worker's thread, with its store handle: decides all cases
 *   hk_auth_audit   on a worker's thread: records refused callers
 *
 * - A token is looked up by its hash, and the result is kept for HK_AUTH_FRESH_MS: a revoked token is refused within a second.
 * - On a listener that only this machine reaches (`local`), a caller without a token acts as an admin, as long as no token was ever
 *   made, and `tokens_only` (admin.auth: tokens) is not set. Every other caller needs a token. Revoking the last token opens nothing.
 * - An address that failed too often has to wait (offenders.h): 429. A token that was valid lately still passes, so that nobody can
 *   lock out other users of the same address.
 * - All refusals of a token have the same text and the same status. Only the code differs; it tells more only to a caller that
 *   has the token.
 * - If the store does not answer, no caller gets in.
 *
 * Any number of threads may call. No lock is held while a store is asked. */
#ifndef HK_ADMIN_AUTH_H
#define HK_ADMIN_AUTH_H

#include "desk/op.h"
#include "store/api.h"

#define HK_AUTH_FRESH_MS  1000
#define HK_AUTH_KNOWN_MS  (10 * 60 * 1000) /* how long a token that was right is let through a wait */
#define HK_AUTH_CACHE_MAX 256              /* tokens that are remembered */
#define HK_AUTH_NAME_MAX  72
#define HK_AUTH_KEY_MAX   32
#define HK_AUTH_WORDS     "a valid token is needed: Authorization: Bearer TOKEN"
#define HK_AUTH_CHALLENGE "Bearer realm=\"hikyaku\"" /* of a 401: WWW-Authenticate */

struct hk_auth;

struct hk_auth_options {
    bool tokens_only;        /* admin.auth: tokens */
    int64_t (*now_ms)(void); /* never goes back */
};

struct hk_auth_ask {
    const char *authorization; /* the header's value; NULL = there is none */
    const char *token_hash;    /* of the token that a session stands for (sessions.h); NULL = there is none */
    const char *address;       /* the client's, without port; any other text stands for itself */
    bool local; /* the listener is for this machine alone, and nobody forwards requests of others to it */
    const char *actor; /* who a caller without a token is, for the audit */
};

struct hk_auth_answer {
    unsigned status; /* 200, 401, 429, 503 */
    const char *
        code; /* TOKEN_MISSING, TOKEN_INVALID, TOKEN_EXPIRED, TOKEN_REVOKED, TOO_MANY_FAILURES, STORE_UNAVAILABLE; NULL
                       * for 200. Static */
    uint64_t retry_after_ms; /* 429 */
    bool audit;              /* something waits to be written down: call hk_auth_audit soon */
    /* of 200: as struct hk_caller wants it */
    enum hk_role role; /* HK_ROLE_NONE: a token with a role that this version does not know */
    bool may_reveal;
    char name[HK_AUTH_NAME_MAX]; /* of the token, else `actor` */
    char key
        [HK_AUTH_KEY_MAX]; /* whose Idempotency-Keys they are: a token's number, since names are used again */
};

struct hk_auth *hk_auth_new(const struct hk_auth_options *options); /* NULL: no memory */
void hk_auth_free(struct hk_auth *auth);
/* After a reload of the configuration. */
void hk_auth_set_tokens_only(struct hk_auth *auth, bool tokens_only);

/* Does a request for something that needs `role` have to say who it is from? Probes are for everybody, and so are metrics on a
 * listener for this machine, or for health alone. */
bool hk_auth_is_needed(enum hk_role role, bool local_or_health);

/* The hash of the token in the header Authorization. False: there is none that has the form of one. */
bool hk_auth_hash(const char *authorization, char out[HK_API_HASH_LEN + 1]);
/* False: hk_auth_check must be asked, and `out` is left alone. */
bool hk_auth_quick(struct hk_auth *auth, const struct hk_auth_ask *ask, struct hk_auth_answer *out);
/* Always an answer. Blocks as long as the store does. `err` says why of a 503. */
void hk_auth_check(struct hk_auth *auth, const struct hk_store_api_ops *api, struct hk_admin *admin,
                   const struct hk_auth_ask *ask, struct hk_auth_answer *out, struct hk_err *err);
/* Some of what is to be told, if there is anything; hk_auth_check does this by itself. */
void hk_auth_audit(struct hk_auth *auth, const struct hk_store_api_ops *api, struct hk_admin *admin);

#endif
