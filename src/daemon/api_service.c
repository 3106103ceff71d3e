/* SPDX-License-Identifier: Apache-2.0 */
/* From an exchange of the admin server to the API (admin/api.h), on a thread that may wait. */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "admin/api.h"
#include "admin/auth.h"
#include "admin/pool.h"
#include "admin/sessions.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/api_service.h"
#include "daemon/desks.h"
#include "daemon/event_feed.h"
#include "exec/clock.h"

enum {
    STOP_MS = 5000,
    GOODBYE_MS = 2000,
    LONGEST_MS = 30000 /* of an operation, or between two parts of an answer; what takes longer is a job */
};

struct worker;

struct hk_api_service {
    struct hk_admin_pool *pool;
    struct hk_auth *auth;
    struct hk_sessions *sessions;
    struct hk_admin_site site;
    struct hk_desks *desks; /* of the pool's threads and the feed's: the service ends with the last of them */
    struct hk_event_feed *feed;
    struct worker *listening; /* the feed's */
    atomic_bool stopping;
    atomic_bool telling; /* a thread is on its way to write down who was refused */
    unsigned downloads_max;
    atomic_uint downloads; /* each holds a thread for as long as its client reads */
};

/* What one thread has. */
struct worker {
    struct hk_api_service *service;
    struct hk_desk_of own;
    struct hk_desk *desk; /* of `own`, as the call at hand found it */
};

static void free_service(void *arg)
{
    struct hk_api_service *s = arg;
    hk_auth_free(s->auth);
    hk_sessions_free(s->sessions);
    hk_mem_free(s);
}

/* ---- a thread's desk ---- */

static void furnish(struct worker *w)
{
    w->desk = hk_desk_of_now(&w->own);
}

static enum hk_code make_worker(void *arg, void **out_object, struct hk_err *err)
{
    struct hk_api_service *s = arg;
    struct worker *w = hk_mem_zalloc(1, sizeof *w);
    if (!w)
        return hk_err_set(err, HK_NOMEM, "out of memory for the API");
    w->service = s;
    hk_desk_of_init(&w->own, s->desks);
    *out_object = w;
    return HK_OK;
}

static void drop_worker(void *arg, void *object)
{
    struct worker *w = object;
    (void)arg;
    hk_desk_of_fini(&w->own);
    hk_mem_free(w);
}

/* ---- one call ---- */

struct running {
    struct hk_api_service *service;
    struct hk_admin_exchange *exchange;
    struct hk_admin_stream *stream; /* NULL: the answer is kept until it is whole */
    int64_t until_us;
};

static bool should_stop(void *arg)
{
    const struct running *r = arg;
    return atomic_load(&r->service->stopping) || hk_clock_us() >= r->until_us;
}

static void extend(struct running *r)
{
    r->until_us = hk_clock_us() + (int64_t)LONGEST_MS * 1000;
}

/* Some threads are left to others, however slowly downloads are read. */
static enum hk_code begin_download(void *arg, const struct hk_api_reply *head)
{
    struct running *r = arg;
    struct hk_admin_reply reply;
    if (atomic_fetch_add(&r->service->downloads, 1) >= r->service->downloads_max) {
        (void)atomic_fetch_sub(&r->service->downloads, 1);
        return HK_BUSY;
    }
    hk_admin_reply_init(&reply, head->status);
    reply.content_type = head->content_type;
    reply.download = true;
    enum hk_code rc = hk_admin_exchange_stream(r->exchange, &reply, &r->stream);
    if (rc != HK_OK)
        (void)atomic_fetch_sub(&r->service->downloads, 1);
    return rc;
}

static enum hk_code write_download(void *arg, struct hk_str bytes)
{
    struct running *r = arg;
    enum hk_code rc = hk_admin_stream_write(r->stream, bytes);
    extend(r);
    return rc;
}

static void end_download(struct running *r, const struct hk_api_reply *reply)
{
    if (reply->failed)
        hk_admin_stream_fail(r->stream);
    else
        hk_admin_stream_end(r->stream);
    (void)atomic_fetch_sub(&r->service->downloads, 1);
}

/* Takes the body. */
static void fill_reply(struct hk_admin_reply *reply, struct hk_api_reply *from)
{
    char seconds[16];
    hk_admin_reply_init(reply, from->status);
    reply->content_type = from->content_type;
    if (from->allow[0])
        (void)hk_admin_reply_header(reply, "Allow", hk_str_of(from->allow));
    if (from->etag[0])
        (void)hk_admin_reply_header(reply, "ETag", hk_str_of(from->etag));
    if (from->location[0])
        (void)hk_admin_reply_header(reply, "Location", hk_str_of(from->location));
    if (from->replayed)
        (void)hk_admin_reply_header(reply, "Idempotency-Replayed", hk_str_of("true"));
    if (from->retry_after_s) {
        (void)snprintf(seconds, sizeof seconds, "%u", from->retry_after_s);
        (void)hk_admin_reply_header(reply, "Retry-After", hk_str_of(seconds));
    }
    if (from->status == 401)
        (void)hk_admin_reply_header(reply, "WWW-Authenticate", hk_str_of(HK_AUTH_CHALLENGE));
    reply->body = from->body;
}

static void give_back(struct hk_admin_exchange *x, struct hk_api_reply *from)
{
    struct hk_admin_reply reply;
    fill_reply(&reply, from);
    hk_admin_exchange_reply(x, &reply);
}

/* On a Unix socket the kernel says who asks: the relay's own user and root need no token. */
static bool is_known_user(const struct hk_admin_exchange *x, struct hk_auth_answer *out)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    if (ask->uid < 0 || ask->role < HK_ROLE_ADMIN || hk_admin_exchange_header(x, "Authorization"))
        return false;
    *out = (struct hk_auth_answer){.status = 200, .role = ask->role, .may_reveal = true};
    (void)snprintf(out->name, sizeof out->name, "uid %lld", (long long)ask->uid);
    (void)snprintf(out->key, sizeof out->key, "uid %lld", (long long)ask->uid);
    return true;
}

/* `session`: the one that the request belongs to, or NULL. */
static struct hk_auth_ask question_of(const struct hk_admin_exchange *x, const struct hk_session *session)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    return (struct hk_auth_ask){.authorization = hk_admin_exchange_header(x, "Authorization"),
                                .token_hash = session ? session->token_hash : NULL,
                                .address = ask->address[0] ? ask->address : "unix",
                                .local = ask->role >= HK_ROLE_ADMIN,
                                .actor = "local"};
}

static bool has_session(struct hk_api_service *s, const struct hk_admin_exchange *x, struct hk_session *out)
{
    return !hk_admin_exchange_header(x, "Authorization") && hk_sessions_find(s->sessions, x, out);
}

/* Its session was opened by whoever started this relay. */
static void let_in_ticket(struct hk_auth_answer *out)
{
    *out = (struct hk_auth_answer){.status = 200, .role = HK_ROLE_ADMIN, .may_reveal = true};
    (void)snprintf(out->name, sizeof out->name, "local");
    (void)snprintf(out->key, sizeof out->key, "ticket");
}

/* Who asks? */
static void identify(struct worker *w, const struct hk_admin_exchange *x, struct hk_auth_answer *out)
{
    struct hk_err err = {.message = ""};
    struct hk_session session;
    bool in_session = has_session(w->service, x, &session);
    const struct hk_auth_ask who = question_of(x, in_session ? &session : NULL);
    if (is_known_user(x, out))
        return;
    if (in_session && !session.token_hash[0]) {
        let_in_ticket(out);
        return;
    }
    *out = (struct hk_auth_answer){.status = 503, .code = "STORE_UNAVAILABLE"};
    if (hk_desk_open(w->desk, &err) == HK_OK)
        hk_auth_check(w->service->auth, w->desk->api, w->desk->admin, &who, out, &err);
    if (in_session && out->status == 401)
        hk_sessions_close(w->service->sessions, session.id); /* its token is not what it was */
}

/* False: refused, and said so. */
static bool authenticate(struct worker *w, struct hk_admin_exchange *x, struct hk_auth_answer *out)
{
    struct hk_api_reply reply = {.status = 503};
    identify(w, x, out);
    if (out->status == 200)
        return true;
    hk_buf_init(&reply.body, HK_API_REPLY_MAX);
    hk_api_refuse_caller(&reply, hk_admin_exchange_ask(x)->path, out);
    give_back(x, &reply);
    return false;
}

/* A path of the site itself (metrics), for a door that grants nothing by itself. */
static void answer_site(const struct worker *w, const struct hk_auth_answer *who, struct hk_admin_exchange *x)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    struct hk_admin_reply reply;
    hk_admin_answer(&w->service->site,
                    &(struct hk_admin_request){.method = ask->method, .path = ask->path, .role = who->role},
                    &reply);
    hk_admin_exchange_reply(x, &reply);
}

/* ---- sessions of the dashboard ---- */

static void open_session(struct hk_api_service *s, struct hk_admin_exchange *x, const char *token_hash)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 204);
    if (hk_sessions_open(s->sessions, x, token_hash, &reply) != HK_OK)
        hk_admin_problem(&reply, 503, "the system gives no random bytes");
    hk_admin_exchange_reply(x, &reply);
}

static void end_session(struct hk_api_service *s, struct hk_admin_exchange *x)
{
    struct hk_admin_reply reply;
    struct hk_session session;
    if (hk_sessions_find(s->sessions, x, &session))
        hk_sessions_close(s->sessions, session.id);
    hk_admin_reply_init(&reply, 204);
    hk_sessions_forget(x, &reply);
    hk_admin_exchange_reply(x, &reply);
}

/* A page of another origin cannot send these headers, and the gate has compared its Origin. */
static void log_in(struct worker *w, struct hk_admin_exchange *x)
{
    char hash[HK_API_HASH_LEN + 1] = "";
    struct hk_auth_answer who;
    if (hk_sessions_take_ticket(w->service->sessions, x)) {
        open_session(w->service, x, "");
        return;
    }
    if (!authenticate(w, x, &who))
        return;
    if (hk_auth_hash(hk_admin_exchange_header(x, "Authorization"), hash)) {
        open_session(w->service, x, hash);
        return;
    }
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 204); /* the door lets everybody in: no session is needed */
    hk_admin_exchange_reply(x, &reply);
}

static bool is_session(const struct hk_admin_ask *ask)
{
    return strcmp(ask->path, HK_SESSION_PATH) == 0;
}

static void answer_session(struct worker *w, struct hk_admin_exchange *x)
{
    const char *method = hk_admin_exchange_ask(x)->method;
    struct hk_admin_reply reply;
    if (strcmp(method, "POST") == 0) {
        log_in(w, x);
    } else if (strcmp(method, "DELETE") == 0) {
        end_session(w->service, x);
    } else {
        hk_admin_reply_init(&reply, 405);
        hk_admin_problem(&reply, 405, NULL);
        reply.allow = "POST, DELETE";
        hk_admin_exchange_reply(x, &reply);
    }
}

static bool is_command(const struct hk_admin_exchange *x)
{
    return hk_str_eq(hk_str_of(hk_admin_exchange_header(x, "User-Agent")), hk_str_of("hikyaku"));
}

static void answer(struct worker *w, struct hk_admin_exchange *x)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    struct running running = {.service = w->service, .exchange = x};
    struct hk_auth_answer who;
    struct hk_api_reply reply;
    if (!authenticate(w, x, &who))
        return;
    if (hk_admin_route_has(ask->path, who.role)) {
        answer_site(w, &who, x);
        return;
    }
    const struct hk_api_request request = {.method = ask->method,
                                           .path = ask->path,
                                           .query = ask->query,
                                           .content_type = hk_admin_exchange_header(x, "Content-Type"),
                                           .if_match = hk_admin_exchange_header(x, "If-Match"),
                                           .idempotency_key = hk_admin_exchange_header(x, "Idempotency-Key"),
                                           .body = ask->body,
                                           .role = who.role,
                                           .actor = who.name,
                                           .caller_key = who.key,
                                           .may_reveal = who.may_reveal,
                                           .by_command = is_command(x),
                                           .stop = should_stop,
                                           .arg = &running,
                                           .begin = begin_download,
                                           .write = write_download};
    extend(&running);
    hk_api_answer(w->desk, &request, &reply);
    bool listens = reply.is_events && strcmp(ask->method, "GET") == 0;
    if (listens)
        hk_event_feed_join(w->service->feed, x, &reply.events, hk_admin_exchange_header(x, "Last-Event-ID"));
    else if (!reply.written)
        give_back(x, &reply);
    else
        end_download(&running, &reply);
    if (listens || reply.written)
        hk_buf_fini(&reply.body);
    hk_pool_fini(&reply.events_mem);
}

static void refuse(struct hk_admin_exchange *x, const char *why)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 503);
    hk_api_refuse_at(&reply, hk_admin_exchange_ask(x)->path, 503, why);
    (void)hk_admin_reply_header(&reply, "Retry-After", hk_str_of("1"));
    hk_admin_exchange_reply(x, &reply);
}

static void work(void *object, void *arg)
{
    if (!object) {
        refuse(arg, "the relay is stopping");
        return;
    }
    furnish(object);
    if (is_session(hk_admin_exchange_ask(arg)))
        answer_session(object, arg);
    else
        answer(object, arg);
}

static void handle(void *arg, struct hk_admin_exchange *x)
{
    struct hk_api_service *s = arg;
    if (hk_admin_pool_submit(s->pool, work, x) != HK_OK)
        refuse(x, "too many calls wait already");
}

/* Those who were refused at the door are written down, too. */
static void write_down(void *object, void *arg)
{
    struct hk_api_service *s = arg;
    struct worker *w = object;
    struct hk_err err = {.message = ""};
    atomic_store(&s->telling, false);
    if (!w)
        return;
    furnish(w);
    if (hk_desk_open(w->desk, &err) == HK_OK)
        hk_auth_audit(s->auth, w->desk->api, w->desk->admin);
}

/* Whoever leaves needs no rights, and a ticket is looked at later. */
static bool is_session_end_or_ticket(const struct hk_admin_exchange *x)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    return is_session(ask) &&
           (strcmp(ask->method, "DELETE") == 0 || hk_admin_exchange_header(x, HK_SESSION_TICKET));
}

/* On the server's thread: what needs no store to be refused holds no memory for its body, and no place among those who wait. */
static bool admit(void *arg, const struct hk_admin_exchange *x, struct hk_admin_reply *out)
{
    struct hk_api_service *s = arg;
    struct hk_auth_answer who;
    struct hk_api_reply reply = {.status = 401};
    struct hk_session session;
    bool in_session = has_session(s, x, &session);
    const struct hk_auth_ask question = question_of(x, in_session ? &session : NULL);
    if ((in_session && !session.token_hash[0]) || is_session_end_or_ticket(x) || is_known_user(x, &who) ||
        !hk_auth_quick(s->auth, &question, &who) || who.status == 200)
        return true;
    hk_buf_init(&reply.body, HK_API_REPLY_MAX);
    hk_api_refuse_caller(&reply, hk_admin_exchange_ask(x)->path, &who);
    fill_reply(out, &reply);
    if (who.audit && !atomic_exchange(&s->telling, true) &&
        hk_admin_pool_submit(s->pool, write_down, s) != HK_OK)
        atomic_store(&s->telling, false);
    return false;
}

static void refuse_request(void *arg, const char *path, unsigned status, const char *detail,
                           struct hk_admin_reply *out)
{
    (void)arg;
    hk_api_refuse_at(out, path, status, detail);
}

/* ---- events ---- */

static struct hk_desk *desk_for_events(void *arg)
{
    struct hk_api_service *s = arg;
    furnish(s->listening);
    return s->listening->desk;
}

static void close_events(void *arg)
{
    struct hk_api_service *s = arg;
    hk_desk_of_rest(&s->listening->own);
}

static enum hk_event_stay may_stay(void *arg, const struct hk_admin_exchange *x)
{
    struct hk_api_service *s = arg;
    struct hk_auth_answer who;
    furnish(s->listening);
    identify(s->listening, x, &who);
    if (who.status == 503)
        return HK_EVENT_UNKNOWN;
    return who.status == 200 && who.role >= hk_op_events.role ? HK_EVENT_STAYS : HK_EVENT_LEAVES;
}

static void events_ended(void *arg)
{
    struct hk_api_service *s = arg;
    drop_worker(NULL, s->listening);
}

static enum hk_code start_feed(struct hk_api_service *s, struct hk_metrics *metrics, struct hk_err *err)
{
    void *worker = NULL;
    const struct hk_event_host host = {.desk = desk_for_events,
                                       .close = close_events,
                                       .may_stay = may_stay,
                                       .ended = events_ended,
                                       .arg = s};
    enum hk_code rc = make_worker(s, &worker, err);
    if (rc != HK_OK)
        return rc;
    s->listening = worker;
    s->feed = hk_event_feed_new(&host, metrics);
    if (s->feed)
        return HK_OK;
    drop_worker(NULL, s->listening);
    return hk_err_set(err, HK_NOMEM, "out of memory for the API");
}

static size_t body_max(void *arg, const char *method, const char *path)
{
    (void)arg;
    return hk_api_body_max(method, path);
}

/* ---- start and stop ---- */

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

static bool needs_tokens(const struct hk_config *config)
{
    return config->admin.auth == HK_CONF_ADMIN_AUTH_TOKENS;
}

enum hk_code hk_api_service_new(const struct hk_part_env *env, const struct hk_admin_site *site,
                                struct hk_api_service **out, struct hk_err *err)
{
    struct hk_api_service *s = hk_mem_zalloc(1, sizeof *s);
    if (!s)
        return hk_err_set(err, HK_NOMEM, "out of memory for the API");
    s->auth =
        hk_auth_new(&(struct hk_auth_options){.tokens_only = needs_tokens(env->config), .now_ms = now_ms});
    s->sessions = hk_sessions_new(env->ui_ticket, now_ms);
    s->desks = hk_desks_new(env, free_service, s);
    if (!s->desks || !s->auth || !s->sessions) {
        if (s->desks)
            hk_desks_unref(s->desks);
        else
            free_service(s);
        return hk_err_set(err, HK_NOMEM, "out of memory for the API");
    }
    s->site = *site;
    s->downloads_max = env->config->admin.workers / 2 + env->config->admin.workers % 2;
    const struct hk_admin_pool_objects objects = {.make = make_worker, .drop = drop_worker, .arg = s};
    enum hk_code rc = start_feed(s, site->metrics, err);
    if (rc == HK_OK)
        rc = hk_admin_pool_start(&objects, env->config->admin.workers, &s->pool, err);
    if (rc == HK_OK) {
        *out = s;
        return HK_OK;
    }
    hk_event_feed_free(s->feed, 0);
    hk_desks_unref(s->desks);
    return rc;
}

struct hk_admin_service hk_api_service_ops(struct hk_api_service *service)
{
    return (struct hk_admin_service){
        .body_max = body_max, .admit = admit, .refuse = refuse_request, .handle = handle, .arg = service};
}

void hk_api_service_reloaded(struct hk_api_service *s, const struct hk_config *config)
{
    hk_desks_reloaded(s->desks, config);
    hk_auth_set_tokens_only(s->auth, needs_tokens(config));
}

void hk_api_service_drain(struct hk_api_service *s)
{
    if (s)
        hk_event_feed_drain(s->feed);
}

void hk_api_service_stop(struct hk_api_service *s)
{
    if (!s)
        return;
    hk_event_feed_drain(s->feed);
    atomic_store(&s->stopping, true);
    hk_event_feed_wait(s->feed, GOODBYE_MS);
}

void hk_api_service_free(struct hk_api_service *s)
{
    if (!s)
        return;
    (void)hk_admin_pool_stop(s->pool, STOP_MS);
    hk_event_feed_free(s->feed, STOP_MS);
    hk_desks_unref(s->desks);
}
