/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens of the HTTP API, which give callers their roles. A token is shown once, when it is made; the store has its hash.
 *
 * Its form: "hk_", 43 characters of base64url (32 random bytes), 6 hex digits of the SHA-256 of all that. By these last ones a
 * secret scanner, and this program, tell a token from other text without asking anybody. */
#ifndef HK_DESK_TOKEN_H
#define HK_DESK_TOKEN_H

#include "desk/desk.h"
#include "store/api.h"

#define HK_TOKEN_PREFIX "hk_"
#define HK_TOKEN_LEN    52
#define HK_TOKEN_ROLES  "metrics viewer operator admin"

/* ---- the text of a token ---- */

/* Of 32 bytes. False: no memory. */
bool hk_token_text(const unsigned char bytes[32], char out[HK_TOKEN_LEN + 1]);
/* Does it have the form of a token, checksum included? Then its hash, as the store has it. */
bool hk_token_hash(struct hk_str text, char out[HK_API_HASH_LEN + 1]);
/* HK_ROLE_NONE for any other word. */
enum hk_role hk_role_of(struct hk_str word);

/* ---- operations ---- */

struct hk_token_create_ask {
    const char *name, *role;
    bool reveal;
    const char *expires; /* a duration, or "never"; NULL = 90 days */
};

struct hk_token_created {
    int64_t id, created_ms, expires_ms; /* expires_ms 0 = never */
    const char *name, *role;
    bool reveal;
    char token[HK_TOKEN_LEN + 1];
};

struct hk_token_revoke_ask {
    const char *token; /* its name or its id */
};

const char *hk_token_state_word(unsigned state); /* "active", "expired" or "revoked" */

extern const struct hk_op hk_op_token_create; /* the result is a struct hk_token_created */
extern const struct hk_op hk_op_token_list;   /* struct hk_tokens */
extern const struct hk_op hk_op_token_revoke; /* struct hk_token_revoked */

#endif
