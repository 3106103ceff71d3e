/* SPDX-License-Identifier: Apache-2.0 */
/* A small table behind a lock, and the cookie that leads to its rows. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "admin/sessions.h"
#include "base/mem.h"
#include "base/str.h"
#include "store/letters.h"

enum {
    ID_BYTES = HK_SESSION_ID_LEN / 2,
    COOKIE_NAME_MAX = 40
};

struct row {
    char id_hash[HK_AUDIT_HASH_MAX]; /* "" = free */
    char token_hash[HK_API_HASH_LEN + 1];
    int64_t opened_ms, used_ms;
};

struct hk_sessions {
    pthread_mutex_t lock;
    int64_t (*now_ms)(void);
    char ticket_hash[HK_AUDIT_HASH_MAX]; /* "" = none, or used */
    struct row rows[HK_SESSIONS_MAX];
};

struct hk_sessions *hk_sessions_new(const char *ticket, int64_t (*now_ms)(void))
{
    struct hk_sessions *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->now_ms = now_ms;
    if (ticket && ticket[0])
        hk_digest_hex(hk_str_of(ticket), s->ticket_hash);
    if (pthread_mutex_init(&s->lock, NULL) == 0)
        return s;
    hk_mem_free(s);
    return NULL;
}

void hk_sessions_free(struct hk_sessions *s)
{
    if (!s)
        return;
    (void)pthread_mutex_destroy(&s->lock);
    hk_mem_free(s);
}

/* ---- the cookie ---- */

static bool is_secure(enum hk_gate_way way)
{
    return way == HK_GATE_TLS || way == HK_GATE_PROXIED;
}

/* Browsers send a cookie to all ports of a host: two relays on one machine must not take each other's. */
static void name_cookie(const struct hk_admin_exchange *x, char out[COOKIE_NAME_MAX])
{
    const char *host = hk_admin_exchange_header(x, "Host");
    const char *colon = host ? strrchr(host, ':') : NULL;
    size_t digits = colon ? strspn(colon + 1, "0123456789") : 0;
    bool port = digits > 0 && digits <= 5 && colon[1 + digits] == '\0';
    const char *prefix = is_secure(hk_admin_exchange_ask(x)->way) ? "__Host-" : "";
    (void)snprintf(out, COOKIE_NAME_MAX, "%shikyaku-%s", prefix, port ? colon + 1 : "0");
}

static void set_cookie(const struct hk_admin_exchange *x, const char *value, bool forget,
                       struct hk_admin_reply *reply)
{
    char name[COOKIE_NAME_MAX], text[HK_ADMIN_VALUE_MAX];
    name_cookie(x, name);
    (void)snprintf(text, sizeof text, "%s=%s; Path=/; HttpOnly; SameSite=Strict%s%s", name, value,
                   is_secure(hk_admin_exchange_ask(x)->way) ? "; Secure" : "", forget ? "; Max-Age=0" : "");
    (void)hk_admin_reply_header(reply, "Set-Cookie", hk_str_of(text));
}

void hk_sessions_forget(const struct hk_admin_exchange *x, struct hk_admin_reply *reply)
{
    set_cookie(x, "", true, reply);
}

static bool read_cookie(const struct hk_admin_exchange *x, char out_id[HK_SESSION_ID_LEN + 1])
{
    char name[COOKIE_NAME_MAX];
    struct hk_str rest = hk_str_of(hk_admin_exchange_header(x, "Cookie"));
    name_cookie(x, name);
    while (rest.len > 0) {
        struct hk_str value = hk_str_trim(hk_str_cut(&rest, ';')), key = hk_str_cut(&value, '=');
        if (hk_str_eq(key, hk_str_of(name)) && value.len == HK_SESSION_ID_LEN)
            return hk_str_copy(out_id, HK_SESSION_ID_LEN + 1, value);
    }
    return false;
}

/* A request of our own page, or one that a person typed. */
static bool is_own(const struct hk_admin_exchange *x)
{
    const char *site = hk_admin_exchange_header(x, "Sec-Fetch-Site"),
               *method = hk_admin_exchange_ask(x)->method;
    bool reads = strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0;
    if (site && strcmp(site, "same-origin") != 0 && !(reads && strcmp(site, "none") == 0))
        return false;
    return reads || hk_admin_exchange_header(x, "Origin") != NULL;
}

/* ---- rows; the lock is held ---- */

static bool is_over(const struct row *row, int64_t now_ms)
{
    return now_ms - row->used_ms >= HK_SESSION_IDLE_MS || now_ms - row->opened_ms >= HK_SESSION_MAX_MS;
}

/* In constant time for each. */
static struct row *find_row(struct hk_sessions *s, const char *id)
{
    struct row *found = NULL;
    char hash[HK_AUDIT_HASH_MAX];
    hk_digest_hex(hk_str_of(id), hash);
    for (size_t i = 0; hash[0] && i < HK_SESSIONS_MAX; i++)
        if (hk_digest_eq(s->rows[i].id_hash, hash))
            found = &s->rows[i];
    return found;
}

static struct row *free_row(struct hk_sessions *s, int64_t now_ms)
{
    struct row *oldest = &s->rows[0];
    for (size_t i = 0; i < HK_SESSIONS_MAX; i++) {
        struct row *row = &s->rows[i];
        if (!row->id_hash[0] || is_over(row, now_ms))
            return row;
        if (row->used_ms < oldest->used_ms)
            oldest = row;
    }
    return oldest;
}

/* ---- calls ---- */

bool hk_sessions_find(struct hk_sessions *s, const struct hk_admin_exchange *x, struct hk_session *out)
{
    if (!is_own(x) || !read_cookie(x, out->id))
        return false;
    (void)pthread_mutex_lock(&s->lock);
    int64_t now_ms = s->now_ms();
    struct row *row = find_row(s, out->id);
    bool found = row && !is_over(row, now_ms);
    if (found) {
        row->used_ms = now_ms;
        memcpy(out->token_hash, row->token_hash, sizeof out->token_hash);
    }
    (void)pthread_mutex_unlock(&s->lock);
    return found;
}

bool hk_sessions_take_ticket(struct hk_sessions *s, const struct hk_admin_exchange *x)
{
    char hash[HK_AUDIT_HASH_MAX] = "";
    const char *shown = hk_admin_exchange_header(x, HK_SESSION_TICKET);
    if (!shown || !is_own(x))
        return false;
    hk_digest_hex(hk_str_of(shown), hash);
    (void)pthread_mutex_lock(&s->lock);
    bool right = hash[0] && s->ticket_hash[0] && hk_digest_eq(s->ticket_hash, hash);
    if (right)
        s->ticket_hash[0] = '\0';
    (void)pthread_mutex_unlock(&s->lock);
    return right;
}

static bool make_id(char out[HK_SESSION_ID_LEN + 1])
{
    unsigned char bytes[ID_BYTES];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return false;
    for (size_t i = 0; i < sizeof bytes; i++)
        (void)snprintf(out + 2 * i, 3, "%02x", bytes[i]);
    hk_mem_wipe(bytes, sizeof bytes);
    return true;
}

enum hk_code hk_sessions_open(struct hk_sessions *s, const struct hk_admin_exchange *x,
                              const char *token_hash, struct hk_admin_reply *reply)
{
    char id[HK_SESSION_ID_LEN + 1];
    struct row row = {.id_hash = ""};
    if (!make_id(id))
        return HK_IO;
    hk_digest_hex(hk_str_of(id), row.id_hash);
    if (!row.id_hash[0])
        return HK_NOMEM;
    (void)snprintf(row.token_hash, sizeof row.token_hash, "%s", token_hash);
    (void)pthread_mutex_lock(&s->lock);
    row.opened_ms = row.used_ms = s->now_ms();
    *free_row(s, row.used_ms) = row;
    (void)pthread_mutex_unlock(&s->lock);
    set_cookie(x, id, false, reply);
    hk_mem_wipe(id, sizeof id);
    return HK_OK;
}

void hk_sessions_close(struct hk_sessions *s, const char *id)
{
    (void)pthread_mutex_lock(&s->lock);
    struct row *row = find_row(s, id);
    if (row)
        *row = (struct row){.id_hash = ""};
    (void)pthread_mutex_unlock(&s->lock);
}
