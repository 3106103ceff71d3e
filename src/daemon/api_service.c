/* SPDX-License-Identifier: Apache-2.0 */
/* From an exchange of the admin server to the API (admin/api.h), on a thread that may wait. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "admin/api.h"
#include "admin/auth.h"
#include "admin/pool.h"
#include "base/mem.h"
#include "base/str.h"
#include "daemon/api_service.h"
#include "exec/clock.h"

enum {
    STOP_MS = 5000,
    LONGEST_MS = 30000 /* of an operation; what takes longer is a job */
};

struct hk_api_service {
    struct hk_admin_pool *pool;
    struct hk_auth *auth;
    struct hk_admin_site site;
    char *url;      /* its own: a call that does not end in time outlives the daemon's */
    const char *jq; /* NULL = none */
    const struct hk_jq_starter *jq_starter;
    pthread_mutex_t lock; /* guards `config` */
    struct hk_config *config;
    atomic_bool stopping;
    atomic_uint owners; /* the part, and each thread of the pool */
};

/* What one thread has. */
struct worker {
    struct hk_api_service *service;
    struct hk_config *config;
    struct hk_desk desk;
};

static void release(struct hk_api_service *s)
{
    if (atomic_fetch_sub(&s->owners, 1) > 1)
        return;
    hk_config_free(s->config);
    hk_auth_free(s->auth);
    hk_mem_free(s->url);
    (void)pthread_mutex_destroy(&s->lock);
    hk_mem_free(s);
}

/* ---- a thread's desk ---- */

static void furnish(struct worker *w)
{
    struct hk_api_service *s = w->service;
    (void)pthread_mutex_lock(&s->lock);
    bool same = w->config == s->config;
    struct hk_config *config = same ? NULL : hk_config_share(s->config);
    (void)pthread_mutex_unlock(&s->lock);
    if (same)
        return;
    hk_desk_fini(&w->desk);
    hk_config_free(w->config);
    w->config = config;
    hk_desk_init(&w->desk, w->config, s->url);
    w->desk.jq = s->jq;
    w->desk.jq_starter = s->jq_starter;
}

static enum hk_code make_worker(void *arg, void **out_object, struct hk_err *err)
{
    struct hk_api_service *s = arg;
    struct worker *w = hk_mem_zalloc(1, sizeof *w);
    if (!w)
        return hk_err_set(err, HK_NOMEM, "out of memory for the API");
    w->service = s;
    (void)atomic_fetch_add(&s->owners, 1);
    *out_object = w;
    return HK_OK;
}

static void drop_worker(void *arg, void *object)
{
    struct worker *w = object;
    (void)arg;
    hk_desk_fini(&w->desk);
    hk_config_free(w->config);
    release(w->service);
    hk_mem_free(w);
}

/* ---- one call ---- */

struct running {
    const struct hk_api_service *service;
    int64_t until_us;
};

static bool should_stop(void *arg)
{
    const struct running *r = arg;
    return atomic_load(&r->service->stopping) || hk_clock_us() >= r->until_us;
}

static void give_back(struct hk_admin_exchange *x, struct hk_api_reply *from)
{
    struct hk_admin_reply reply;
    char seconds[16];
    hk_admin_reply_init(&reply, from->status);
    reply.content_type = from->content_type;
    if (from->allow[0])
        (void)hk_admin_reply_header(&reply, "Allow", hk_str_of(from->allow));
    if (from->etag[0])
        (void)hk_admin_reply_header(&reply, "ETag", hk_str_of(from->etag));
    if (from->replayed)
        (void)hk_admin_reply_header(&reply, "Idempotency-Replayed", hk_str_of("true"));
    if (from->retry_after_s) {
        (void)snprintf(seconds, sizeof seconds, "%u", from->retry_after_s);
        (void)hk_admin_reply_header(&reply, "Retry-After", hk_str_of(seconds));
    }
    if (from->status == 401)
        (void)hk_admin_reply_header(&reply, "WWW-Authenticate", hk_str_of(HK_AUTH_CHALLENGE));
    reply.body = from->body;
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

/* Who asks? False: refused, and said so. */
static bool authenticate(struct worker *w, struct hk_admin_exchange *x, struct hk_auth_answer *out)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    struct hk_err err = {.message = ""};
    struct hk_api_reply reply = {.status = 503};
    const struct hk_auth_ask who = {.authorization = hk_admin_exchange_header(x, "Authorization"),
                                    .address = ask->address[0] ? ask->address : "unix",
                                    .local = ask->role >= HK_ROLE_ADMIN,
                                    .actor = "local"};
    if (is_known_user(x, out))
        return true;
    *out = (struct hk_auth_answer){.status = 503, .code = "STORE_UNAVAILABLE"};
    if (hk_desk_open(&w->desk, &err) == HK_OK)
        hk_auth_check(w->service->auth, w->desk.api, w->desk.admin, &who, out, &err);
    if (out->status == 200)
        return true;
    hk_buf_init(&reply.body, HK_API_REPLY_MAX);
    hk_api_refuse_caller(&reply, out);
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

static void answer(struct worker *w, struct hk_admin_exchange *x)
{
    const struct hk_admin_ask *ask = hk_admin_exchange_ask(x);
    struct running running = {.service = w->service, .until_us = hk_clock_us() + (int64_t)LONGEST_MS * 1000};
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
                                           .stop = should_stop,
                                           .arg = &running};
    hk_api_answer(&w->desk, &request, &reply);
    give_back(x, &reply);
}

static void refuse(struct hk_admin_exchange *x, const char *why)
{
    struct hk_admin_reply reply;
    hk_admin_reply_init(&reply, 503);
    hk_admin_problem(&reply, 503, why);
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
    answer(object, arg);
}

static void handle(void *arg, struct hk_admin_exchange *x)
{
    struct hk_api_service *s = arg;
    if (hk_admin_pool_submit(s->pool, work, x) != HK_OK)
        refuse(x, "too many calls wait already");
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
    (void)pthread_mutex_init(&s->lock, NULL);
    s->auth =
        hk_auth_new(&(struct hk_auth_options){.tokens_only = needs_tokens(env->config), .now_ms = now_ms});
    s->url = hk_mem_strdup(env->url);
    s->config = hk_config_share(env->config);
    s->owners = 1;
    s->site = *site;
    s->jq = env->jq;
    s->jq_starter = env->jq_starter;
    const struct hk_admin_pool_objects objects = {.make = make_worker, .drop = drop_worker, .arg = s};
    enum hk_code rc = s->auth && s->url
                          ? hk_admin_pool_start(&objects, env->config->admin.workers, &s->pool, err)
                          : hk_err_set(err, HK_NOMEM, "out of memory for the API");
    if (rc == HK_OK)
        *out = s;
    else
        release(s);
    return rc;
}

struct hk_admin_service hk_api_service_ops(struct hk_api_service *service)
{
    return (struct hk_admin_service){.body_max = body_max, .handle = handle, .arg = service};
}

void hk_api_service_reloaded(struct hk_api_service *s, const struct hk_config *config)
{
    (void)pthread_mutex_lock(&s->lock);
    struct hk_config *before = s->config;
    s->config = hk_config_share(config);
    (void)pthread_mutex_unlock(&s->lock);
    hk_auth_set_tokens_only(s->auth, needs_tokens(config));
    hk_config_free(before);
}

void hk_api_service_stop(struct hk_api_service *s)
{
    if (s)
        atomic_store(&s->stopping, true);
}

void hk_api_service_free(struct hk_api_service *s)
{
    if (!s)
        return;
    (void)hk_admin_pool_stop(s->pool, STOP_MS);
    release(s);
}
