/* SPDX-License-Identifier: Apache-2.0 */
/* Identifies callers: a small cache of tokens and a table of addresses, behind one lock. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "admin/auth.h"
#include "admin/offenders.h"
#include "base/mem.h"
#include "base/str.h"
#include "desk/token.h"
#include "store/letters.h"

enum {
    TELL_AT_ONCE = 4 /* rows of the audit that one request writes */
};

/* What was found of a token. Unknown ones are not remembered: nobody pushes those out that are right. */
struct known {
    char hash[HK_API_HASH_LEN + 1]; /* "" = nobody */
    int64_t looked_ms;              /* on our clock, before the store was asked */
    int64_t used_ms;                /* when its last use was written */
    int64_t expires_ms;             /* on our clock; 0 = never */
    bool revoked;
    struct hk_auth_answer caller; /* what it gets if it is neither */
};

struct hk_auth {
    pthread_mutex_t lock;
    struct hk_auth_options options;
    struct hk_offenders *offenders;
    struct known known[HK_AUTH_CACHE_MAX];
    bool any;       /* was there ever a token? */
    int64_t any_ms; /* when that was looked up */
    bool any_is_known;
};

struct hk_auth *hk_auth_new(const struct hk_auth_options *options)
{
    struct hk_auth *auth = hk_mem_zalloc(1, sizeof *auth);
    if (!auth)
        return NULL;
    auth->options = *options;
    auth->offenders = hk_offenders_new();
    if (!auth->offenders || pthread_mutex_init(&auth->lock, NULL) != 0) {
        hk_offenders_free(auth->offenders);
        hk_mem_free(auth);
        return NULL;
    }
    return auth;
}

void hk_auth_free(struct hk_auth *auth)
{
    if (!auth)
        return;
    pthread_mutex_destroy(&auth->lock);
    hk_offenders_free(auth->offenders);
    hk_mem_free(auth);
}

void hk_auth_set_tokens_only(struct hk_auth *auth, bool tokens_only)
{
    pthread_mutex_lock(&auth->lock);
    auth->options.tokens_only = tokens_only;
    pthread_mutex_unlock(&auth->lock);
}

bool hk_auth_is_needed(enum hk_role role, bool local_or_health)
{
    return role != HK_ROLE_NONE && !(role == HK_ROLE_METRICS && local_or_health);
}

/* ---- the header ---- */

enum shown {
    SHOWN_NOTHING = 0,
    SHOWN_NO_TOKEN, /* something else: it cannot be right */
    SHOWN_TOKEN
};

static enum shown read_header(const char *value, char hash[HK_API_HASH_LEN + 1])
{
    const struct hk_str bearer = {"bearer ", 7};
    struct hk_str text = hk_str_trim(hk_str_of(value));
    if (text.len == 0)
        return SHOWN_NOTHING;
    if (text.len <= bearer.len || !hk_str_eqi((struct hk_str){text.ptr, bearer.len}, bearer))
        return SHOWN_NO_TOKEN;
    struct hk_str token = hk_str_trim((struct hk_str){text.ptr + bearer.len, text.len - bearer.len});
    return hk_token_hash(token, hash) ? SHOWN_TOKEN : SHOWN_NO_TOKEN;
}

/* A header goes before a session. */
static enum shown read_ask(const struct hk_auth_ask *ask, char hash[HK_API_HASH_LEN + 1])
{
    enum shown shown = read_header(ask->authorization, hash);
    if (shown != SHOWN_NOTHING || !ask->token_hash)
        return shown;
    (void)snprintf(hash, HK_API_HASH_LEN + 1, "%s", ask->token_hash);
    return SHOWN_TOKEN;
}

bool hk_auth_hash(const char *authorization, char out[HK_API_HASH_LEN + 1])
{
    return read_header(authorization, out) == SHOWN_TOKEN;
}

/* ---- answers; the lock is held ---- */

static void refuse(struct hk_auth_answer *out, unsigned status, const char *code)
{
    *out = (struct hk_auth_answer){.status = status, .code = code};
}

static void fail(struct hk_auth *auth, const struct hk_auth_ask *ask, const char *code, int64_t now_ms,
                 struct hk_auth_answer *out)
{
    hk_offenders_failed(auth->offenders, ask->address, code, false, now_ms);
    refuse(out, 401, code);
}

/* It has to wait, and is told for how long. */
static bool must_wait(struct hk_auth *auth, const struct hk_auth_ask *ask, int64_t now_ms,
                      struct hk_auth_answer *out)
{
    uint64_t wait_ms = hk_offenders_wait_ms(auth->offenders, ask->address, now_ms);
    if (wait_ms == 0)
        return false;
    hk_offenders_failed(auth->offenders, ask->address, "TOO_MANY_FAILURES", true, now_ms);
    refuse(out, 429, "TOO_MANY_FAILURES");
    out->retry_after_ms = wait_ms;
    return true;
}

static void let_in_local(const struct hk_auth_ask *ask, struct hk_auth_answer *out)
{
    *out = (struct hk_auth_answer){.status = 200, .role = HK_ROLE_ADMIN, .may_reveal = true, .key = "local"};
    (void)snprintf(out->name, sizeof out->name, "%s", ask->actor ? ask->actor : "local");
}

static void answer_known(struct hk_auth *auth, const struct known *k, const struct hk_auth_ask *ask,
                         int64_t now_ms, struct hk_auth_answer *out)
{
    if (k->revoked) {
        fail(auth, ask, "TOKEN_REVOKED", now_ms, out);
    } else if (k->expires_ms && k->expires_ms <= now_ms) {
        fail(auth, ask, "TOKEN_EXPIRED", now_ms, out);
    } else {
        hk_offenders_clear(auth->offenders, ask->address);
        *out = k->caller;
    }
}

/* In constant time for each that is remembered. */
static struct known *find_known(struct hk_auth *auth, const char hash[HK_API_HASH_LEN + 1])
{
    struct known *found = NULL;
    for (size_t i = 0; i < HK_AUTH_CACHE_MAX; i++)
        if (hk_digest_eq(auth->known[i].hash, hash))
            found = &auth->known[i];
    return found;
}

static bool is_good(const struct known *k, int64_t now_ms)
{
    return k && !k->revoked && !(k->expires_ms && k->expires_ms <= now_ms) &&
           now_ms - k->looked_ms < HK_AUTH_KNOWN_MS;
}

/* Without a token. */
static bool decide_bare(const struct hk_auth *auth, const struct hk_auth_ask *ask, int64_t now_ms,
                        struct hk_auth_answer *out)
{
    bool is_known =
        auth->any_is_known && (auth->any || now_ms - auth->any_ms < HK_AUTH_FRESH_MS); /* once is for ever */
    bool must = !ask->local || auth->options.tokens_only;
    if (!must && !is_known)
        return false;
    if (must || auth->any)
        refuse(out, 401, "TOKEN_MISSING");
    else
        let_in_local(ask, out);
    return true;
}

static bool decide(struct hk_auth *auth, const struct hk_auth_ask *ask, enum shown shown, const char *hash,
                   struct hk_auth_answer *out)
{
    int64_t now_ms = auth->options.now_ms();
    bool done = true;
    pthread_mutex_lock(&auth->lock);
    const struct known *k = shown == SHOWN_TOKEN ? find_known(auth, hash) : NULL;
    if (shown == SHOWN_NOTHING)
        done = decide_bare(auth, ask, now_ms, out);
    else if (k && now_ms - k->looked_ms < HK_AUTH_FRESH_MS)
        answer_known(auth, k, ask, now_ms, out);
    else if (!is_good(k, now_ms) && must_wait(auth, ask, now_ms, out))
        done = true;
    else if (shown == SHOWN_NO_TOKEN)
        fail(auth, ask, "TOKEN_INVALID", now_ms, out);
    else
        done = false;
    if (done)
        out->audit = hk_offenders_has_news(auth->offenders, now_ms);
    pthread_mutex_unlock(&auth->lock);
    return done;
}

bool hk_auth_quick(struct hk_auth *auth, const struct hk_auth_ask *ask, struct hk_auth_answer *out)
{
    char hash[HK_API_HASH_LEN + 1] = "";
    enum shown shown = read_ask(ask, hash);
    return decide(auth, ask, shown, hash, out);
}

/* ---- asking the store ---- */

/* The one that it was, else one that is free, else the one that was looked up longest ago. */
static struct known *place_for(struct hk_auth *auth, const char *hash)
{
    struct known *oldest = &auth->known[0], *same = find_known(auth, hash);
    for (size_t i = 1; !same && i < HK_AUTH_CACHE_MAX; i++) {
        struct known *k = &auth->known[i];
        if (oldest->hash[0] && (!k->hash[0] || k->looked_ms < oldest->looked_ms))
            oldest = k;
    }
    return same ? same : oldest;
}

/* The store's times on our clock: only how long it is until then counts. */
static int64_t on_our_clock(const struct hk_token_found *f, int64_t now_ms)
{
    int64_t left = f->token.expires_ms > f->now_ms ? f->token.expires_ms - f->now_ms : 0;
    if (f->token.expires_ms == 0 || left > INT64_MAX - 1 - now_ms)
        return 0;
    return now_ms + left > 0 ? now_ms + left : 1;
}

static struct known *learn(struct hk_auth *auth, const struct hk_token_found *f, const char *hash,
                           int64_t asked_ms)
{
    struct known *k = place_for(auth, hash);
    int64_t used_ms = strcmp(k->hash, hash) == 0 ? k->used_ms : 0;
    *k = (struct known){
        .looked_ms = asked_ms,
        .used_ms = used_ms,
        .expires_ms = on_our_clock(f, asked_ms),
        .revoked = f->token.revoked_ms != 0,
        .caller = {.status = 200, .role = hk_role_of(f->token.role), .may_reveal = f->token.reveal}};
    memcpy(k->hash, hash, HK_API_HASH_LEN + 1);
    (void)snprintf(k->caller.name, sizeof k->caller.name, "%.*s", (int)f->token.name.len, f->token.name.ptr);
    (void)snprintf(k->caller.key, sizeof k->caller.key, "token %" PRId64, f->token.id);
    return k;
}

/* Is the token's use to be written? Once a minute, as far as this process knows. */
static bool is_use_due(struct known *k, const struct hk_token_found *f, int64_t now_ms)
{
    int64_t last = f->token.last_used_ms;
    bool due = last <= f->now_ms - HK_TOKEN_USED_MS || last > f->now_ms;
    if (!due || (k->used_ms && now_ms - k->used_ms < HK_TOKEN_USED_MS))
        return false;
    k->used_ms = now_ms > 0 ? now_ms : 1;
    return true;
}

/* What the store found, as an answer. True: the token was used, and that is to be written. */
static bool conclude(struct hk_auth *auth, const struct hk_auth_ask *ask, const char *hash,
                     const struct hk_token_found *f, int64_t asked_ms, struct hk_auth_answer *out)
{
    bool use = false;
    char stored[HK_API_HASH_LEN + 1] = "";
    int64_t now_ms = auth->options.now_ms();
    (void)snprintf(stored, sizeof stored, "%.*s", (int)f->hash.len, f->hash.len ? f->hash.ptr : "");
    pthread_mutex_lock(&auth->lock);
    auth->any = f->any;
    auth->any_ms = asked_ms;
    auth->any_is_known = true;
    if (!hash[0]) {
        if (!ask->local || auth->options.tokens_only || f->any)
            refuse(out, 401, "TOKEN_MISSING");
        else
            let_in_local(ask, out);
    } else if (!f->found || !hk_digest_eq(stored, hash)) {
        fail(auth, ask, "TOKEN_INVALID", now_ms, out);
    } else {
        struct known *k = learn(auth, f, hash, asked_ms);
        answer_known(auth, k, ask, now_ms, out);
        use = out->status == 200 && is_use_due(k, f, now_ms);
    }
    pthread_mutex_unlock(&auth->lock);
    return use;
}

void hk_auth_check(struct hk_auth *auth, const struct hk_store_api_ops *api, struct hk_admin *admin,
                   const struct hk_auth_ask *ask, struct hk_auth_answer *out, struct hk_err *err)
{
    char hash[HK_API_HASH_LEN + 1] = "";
    const struct hk_token_found *found = NULL;
    enum shown shown = read_ask(ask, hash);
    if (!decide(auth, ask, shown, hash, out)) {
        int64_t asked_ms = auth->options.now_ms();
        if (api->find_token(admin, hash[0] ? hash : NULL, &found, err) != HK_OK) {
            refuse(out, 503, "STORE_UNAVAILABLE");
            return;
        }
        int64_t id = found->token.id;
        if (conclude(auth, ask, hash, found, asked_ms, out))
            (void)!api->use_token(admin, id, NULL); /* a use that is not written is no reason to refuse it */
    }
    hk_auth_audit(auth, api, admin);
    out->audit = false;
}

void hk_auth_audit(struct hk_auth *auth, const struct hk_store_api_ops *api, struct hk_admin *admin)
{
    struct hk_offence offence;
    for (int i = 0; i < TELL_AT_ONCE; i++) {
        pthread_mutex_lock(&auth->lock);
        bool some = hk_offenders_tell(auth->offenders, auth->options.now_ms(), &offence);
        pthread_mutex_unlock(&auth->lock);
        if (!some)
            return;
        if (api->refused(admin, offence.address, offence.code, offence.n, NULL) == HK_OK)
            continue;
        pthread_mutex_lock(&auth->lock);
        hk_offenders_untell(auth->offenders, &offence);
        pthread_mutex_unlock(&auth->lock);
        return;
    }
}
