/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the dashboard: a page in a browser shows its token once, and a cookie stands for it from then on.
 *
 *   POST   /ui/session   with Authorization: Bearer TOKEN, or with a ticket: opens one, and sets the cookie
 *   DELETE /ui/session   ends it
 *
 * - The cookie holds 32 random bytes that mean nothing elsewhere. This process keeps their hash, and the hash of the token: neither can
 *   be had from memory. The token is looked up again with each call (auth.h), so that a revoked one ends its sessions within a second.
 * - A session ends after HK_SESSION_IDLE_MS without a call, and after HK_SESSION_MAX_MS in any case.
 * - A cookie counts only for requests of our own pages: browsers say where a request comes from (Sec-Fetch-Site), and one that changes
 *   something must name its Origin, which the gate has compared (gate.h).
 * - A ticket is a secret for one use that whoever starts the relay gives it (the demo does): its session acts as the listener's own user.
 *
 * Any number of threads may call. */
#ifndef HK_ADMIN_SESSIONS_H
#define HK_ADMIN_SESSIONS_H

#include "admin/server.h"
#include "store/api.h"

#define HK_SESSION_PATH    "/ui/session"
#define HK_SESSION_TICKET  "Hikyaku-Ticket" /* a header */
#define HK_SESSION_IDLE_MS ((int64_t)8 * 60 * 60 * 1000)
#define HK_SESSION_MAX_MS  ((int64_t)7 * 24 * 60 * 60 * 1000)
#define HK_SESSIONS_MAX    512 /* the one that was idle longest makes room */
#define HK_SESSION_ID_LEN  64

struct hk_sessions;

/* `ticket`: NULL = there is none. NULL: no memory. */
struct hk_sessions *hk_sessions_new(const char *ticket, int64_t (*now_ms)(void));
void hk_sessions_free(struct hk_sessions *sessions);

/* Whose session a request belongs to. */
struct hk_session {
    char id[HK_SESSION_ID_LEN + 1];
    char token_hash[HK_API_HASH_LEN + 1]; /* "" = it was opened with a ticket */
};

/* By its cookie. False: it has none that counts. */
bool hk_sessions_find(struct hk_sessions *sessions, const struct hk_admin_exchange *x,
                      struct hk_session *out);
/* Does it show the ticket? Once. */
bool hk_sessions_take_ticket(struct hk_sessions *sessions, const struct hk_admin_exchange *x);
/* Opens one, and adds the cookie to the reply. `token_hash` "": for a ticket. HK_IO: the system gives no random bytes. */
enum hk_code hk_sessions_open(struct hk_sessions *sessions, const struct hk_admin_exchange *x,
                              const char *token_hash, struct hk_admin_reply *reply) HK_MUSTCHECK;
/* Ends it, if there is one. */
void hk_sessions_close(struct hk_sessions *sessions, const char *id);
/* Takes the cookie back. */
void hk_sessions_forget(const struct hk_admin_exchange *x, struct hk_admin_reply *reply);

#endif
