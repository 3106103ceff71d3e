/* SPDX-License-Identifier: Apache-2.0 */
/* A link's life: IDLE -> CONNECTING -> GREETING -> READY, and from each of these by link_end to IDLE, CONNECTING (the next server)
 * or WAITING. link_end runs from the loop: hk_link_fail only notes the failure and stops the traffic. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/broker/link.h"

enum {
    CONNECT_MS = 10000,
    GREET_MS = 10000,
    WAIT_LEAST_MS = 100,
    WAIT_MOST_MS = 5000,
    LASTED_MS = 1000, /* a connection that ends sooner is not tried again at once */
    PENDING_MAX = 256 << 20,
    KEY_MAX = 64 * 1024,
    IN_MAX = 512 * 1024 /* the longest unit of any kind, and one reading more */
};

static void link_connect(struct hk_link *link);

/* ---- what became of it ---- */

static void tell_lost(struct hk_link *link, bool was_ready)
{
    for (struct hk_link_user *u = link->users, *next; u; u = next) {
        next = u->next;
        u->lost(u, &link->failure, was_ready);
    }
}

/* A little at random, so that the relays of one broker that is back do not come all at once. */
static void wait_then_retry(struct hk_link *link)
{
    link->wait_ms = link->wait_ms ? 2 * link->wait_ms : WAIT_LEAST_MS;
    link->wait_ms = link->wait_ms < WAIT_MOST_MS ? link->wait_ms : WAIT_MOST_MS;
    link->phase = HK_LINK_WAITING;
    hk_timer_start(link->timer, hk_rng_between(&link->rng, link->wait_ms / 2, link->wait_ms));
}

static void link_drop(struct hk_link *link)
{
    link->sent = hk_stream_sent(link->stream);
    hk_stream_close(link->stream);
    link->stream = NULL;
    hk_timer_stop(link->timer);
    hk_buf_reset(&link->in);
    hk_buf_reset(&link->out);
    link->quiet = 0;
    link->ops->lost(link);
}

/* After `failure` was set. */
static void link_end(struct hk_link *link)
{
    bool was_ready = link->phase == HK_LINK_READY;
    link_drop(link);
    link->server = (link->server + 1) % link->servers.n;
    link->failed = was_ready ? 0 : link->failed + 1;
    if (was_ready) {
        bool lasted = hk_loop_now_ms(link->loop) >= link->ready_ms + LASTED_MS;
        link->wait_ms = lasted ? 0 : link->wait_ms;
        link->phase = HK_LINK_IDLE; /* whoever has something to send wants it again */
        if (!lasted)
            wait_then_retry(link);
        tell_lost(link, true);
    } else if (link->failed < link->servers.n) {
        link_connect(link);
    } else {
        link->failed = 0;
        link->wanted = false;
        wait_then_retry(link);
        tell_lost(link, false);
    }
}

static void set_failure(struct hk_link *link, enum hk_fault fault, const char *code, const char *text)
{
    struct hk_link_failure *f = &link->failure;
    f->fault = fault;
    (void)snprintf(f->code, sizeof f->code, "%s", code ? code : "");
    (void)snprintf(f->text, sizeof f->text, "%s", text);
}

void hk_link_fail(struct hk_link *link, enum hk_fault fault, const char *code, const char *text)
{
    if (!link->stream)
        return;
    set_failure(link, fault, code, text);
    link_end(link);
}

/* ---- the stream ---- */

static void on_opened(void *arg)
{
    struct hk_link *link = arg;
    link->phase = HK_LINK_GREETING;
    (void)snprintf(link->address, sizeof link->address, "%s", hk_stream_address(link->stream));
    hk_timer_start(link->timer, GREET_MS);
    link->ops->opened(link);
    if (link->stream)
        hk_stream_flush(link->stream);
}

/* All units that are there as a whole. With any of them the connection may be lost, or go over to TLS. */
static size_t read_units(struct hk_link *link, struct hk_str in)
{
    const struct hk_stream *stream = link->stream;
    bool secured = link->secured;
    size_t at = 0;
    link->quiet = 0;
    while (link->stream == stream && link->secured == secured && at < in.len) {
        const char *why = "";
        size_t used = 0;
        enum hk_next next = link->ops->read(link, (struct hk_str){in.ptr + at, in.len - at}, &used, &why);
        if (next == HK_NEXT_WRONG)
            hk_link_fail(link, HK_FAULT_PROTOCOL, NULL, why);
        if (next != HK_NEXT_WHOLE)
            break;
        at += used;
    }
    return at;
}

/* What is left over is kept where the next bytes go. The connection may be lost meanwhile: so what is read is no part of the link. */
static void read_in(struct hk_link *link, struct hk_str bytes)
{
    const struct hk_stream *stream = link->stream;
    bool was_secured = link->secured;
    struct hk_buf in = link->in;
    struct hk_str all = bytes;
    size_t used = 0;
    hk_buf_init(&link->in, in.max);
    if (in.len) {
        (void)hk_buf_add(&in, bytes.ptr, bytes.len);
        all = hk_buf_str(&in);
    }
    bool ok = hk_buf_status(&in) == HK_OK;
    if (ok)
        used = read_units(link, all);
    if (link->stream == stream && link->secured != was_secured && used < all.len)
        hk_link_fail(link, HK_FAULT_PROTOCOL, NULL, "the broker goes on in plain where TLS begins");
    else if (link->stream == stream &&
             (!ok || hk_buf_add(&link->in, all.ptr + used, all.len - used) != HK_OK))
        hk_link_fail(link, HK_FAULT_LOCAL, NULL, "out of memory");
    hk_buf_fini(&in);
}

static void on_came(void *arg, struct hk_str bytes)
{
    struct hk_link *link = arg;
    read_in(link, bytes);
    if (link->stream)
        hk_stream_flush(link->stream);
}

static void on_drained(void *arg)
{
    const struct hk_link *link = arg;
    for (struct hk_link_user *u = link->users, *next; u && link->phase == HK_LINK_READY; u = next) {
        next = u->next;
        u->drained(u);
    }
}

static void on_ended(void *arg, const struct hk_stream_end *end)
{
    struct hk_link *link = arg;
    set_failure(link, end->fault, NULL, end->text);
    link_end(link);
}

static const struct hk_stream_calls calls = {
    .opened = on_opened, .came = on_came, .drained = on_drained, .ended = on_ended};

static void link_connect(struct hk_link *link)
{
    const struct hk_server *server = &link->servers.at[link->server];
    const struct hk_stream_options options = {.host = server->host,
                                              .port = server->port,
                                              .tls = link->ops->tls_later ? NULL : link->tls,
                                              .allow = link->allow,
                                              .n_allow = link->n_allow,
                                              .connect_timeout_ms = CONNECT_MS,
                                              .max_pending_bytes = PENDING_MAX,
                                              .calls = &calls,
                                              .arg = link};
    struct hk_err err = {.message = ""};
    link->secured = false;
    if (hk_stream_open(link->loop, &options, &link->stream, &err) == HK_OK) {
        link->phase = HK_LINK_CONNECTING;
        return;
    }
    set_failure(link, HK_FAULT_LOCAL, NULL, err.message);
    wait_then_retry(link);
    tell_lost(link, false);
}

static void link_beat(struct hk_link *link)
{
    char text[96];
    hk_timer_start(link->timer, link->beat_ms);
    if (++link->quiet <= HK_LINK_SILENT_BEATS) {
        link->ops->beat(link);
        hk_link_flush(link);
        return;
    }
    (void)snprintf(text, sizeof text, "the broker has been silent for %u s",
                   (unsigned)(HK_LINK_SILENT_BEATS * link->beat_ms / 1000));
    hk_link_fail(link, HK_FAULT_RESET, NULL, text);
}

static void on_timer(void *arg)
{
    struct hk_link *link = arg;
    switch (link->phase) {
    case HK_LINK_IDLE:
    case HK_LINK_CONNECTING:
        break;
    case HK_LINK_WAITING:
        if (link->wanted)
            link_connect(link);
        else
            link->phase = HK_LINK_IDLE;
        break;
    case HK_LINK_GREETING:
        hk_link_fail(link, HK_FAULT_TIMEOUT, NULL, "timeout: the broker does not answer the greeting");
        break;
    case HK_LINK_READY:
        link_beat(link);
        break;
    }
}

void hk_link_want(struct hk_link *link)
{
    link->wanted = true;
    if (link->phase != HK_LINK_IDLE)
        return;
    link->failed = 0;
    link->phase = HK_LINK_WAITING;
    hk_timer_start(link->timer, 0);
}

void hk_link_ready(struct hk_link *link)
{
    link->phase = HK_LINK_READY;
    link->ready_ms = hk_loop_now_ms(link->loop);
    link->failed = 0;
    link->failure.fault = HK_FAULT_NONE;
    hk_timer_stop(link->timer);
    if (link->beat_ms)
        hk_timer_start(link->timer, link->beat_ms);
    for (struct hk_link_user *u = link->users, *next; u && link->phase == HK_LINK_READY; u = next) {
        next = u->next;
        u->ready(u);
    }
}

enum hk_code hk_link_write(struct hk_link *link, const void *bytes, size_t len)
{
    if (!link->stream)
        return HK_NOMEM;
    enum hk_code rc = hk_stream_write(link->stream, bytes, len);
    if (rc != HK_OK)
        hk_link_fail(link, HK_FAULT_LOCAL, NULL,
                     rc == HK_NOMEM ? "out of memory" : "too many bytes wait to be sent");
    return rc;
}

bool hk_link_put(struct hk_link *link)
{
    struct hk_buf *out = &link->out;
    bool secret = link->phase == HK_LINK_GREETING;
    char *bytes = out->data;
    size_t len = out->len;
    enum hk_code rc = hk_buf_status(out);
    if (rc == HK_OK)
        rc = hk_link_write(link, bytes, len);
    else
        hk_link_fail(link, HK_FAULT_LOCAL, NULL, "out of memory");
    if (secret)
        hk_mem_wipe(bytes, len);
    hk_buf_reset(out);
    return rc == HK_OK;
}

void hk_link_flush(struct hk_link *link)
{
    if (link->stream)
        hk_stream_flush(link->stream);
}

void hk_link_secure(struct hk_link *link)
{
    link->secured = true;
    hk_stream_secure(link->stream, link->tls);
}

void hk_link_learn(struct hk_link *link, const struct hk_server *server)
{
    struct hk_servers *s = &link->servers;
    for (size_t i = 0; i < s->n; i++)
        if (s->at[i].port == server->port && strcmp(s->at[i].host, server->host) == 0)
            return;
    if (s->n < HK_SERVERS_MAX)
        s->at[s->n++] = *server;
}

uint64_t hk_link_sent(const struct hk_link *link)
{
    return link->stream ? hk_stream_sent(link->stream) : link->sent;
}

/* ---- joining and leaving ---- */

static void add_key(struct hk_buf *key, const char *text)
{
    (void)hk_buf_addc(key, text ? '=' : '-');
    (void)hk_buf_adds(key, text ? text : "");
    (void)hk_buf_addc(key, '\0');
}

static uint32_t heartbeat_of(const struct hk_link_options *o)
{
    return o->heartbeat_s ? o->heartbeat_s : HK_LINK_HEARTBEAT_S;
}

static void make_key(const struct hk_link_options *o, struct hk_buf *key)
{
    (void)hk_buf_addf(key, "%" PRIu32, heartbeat_of(o));
    const char *texts[] = {o->ops->kind, o->url, o->password, o->ca_file, o->cert_file, o->key_file, o->more};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        add_key(key, texts[i]);
    for (size_t i = 0; i < o->n_allow; i++)
        (void)hk_buf_add(key, &o->allow[i], sizeof o->allow[i]);
}

static struct hk_link *find(struct hk_loop *loop, const struct hk_buf *key)
{
    for (struct hk_loop_shared *s = *hk_loop_shared(loop); s; s = s->next) {
        struct hk_link *link = (struct hk_link *)s;
        if (s->kind == &calls && hk_str_eq(hk_buf_str(&link->key), hk_buf_str(key)))
            return link;
    }
    return NULL;
}

static void wipe_key(struct hk_buf *key)
{
    hk_mem_wipe(key->data, key->len);
    hk_buf_fini(key);
}

static void free_link(struct hk_link *link)
{
    if (link->stream)
        link_drop(link);
    if (link->ops->fini)
        link->ops->fini(link);
    hk_buf_fini(&link->in);
    hk_buf_fini(&link->out);
    hk_timer_free(link->timer);
    hk_stream_tls_free(link->tls);
    hk_mem_free(link->allow);
    if (link->password)
        hk_mem_wipe(link->password, strlen(link->password));
    hk_mem_free(link->password);
    wipe_key(&link->key);
    hk_mem_free(link);
}

static enum hk_code read_options(struct hk_link *link, const struct hk_link_options *o, struct hk_err *err)
{
    const char *wrong = hk_servers_parse(hk_str_of(o->url), o->scheme, &link->servers);
    if (wrong)
        return hk_err_set(err, HK_INVALID, "the url %s", wrong);
    link->password = o->password ? hk_mem_strdup(o->password) : NULL;
    link->allow = hk_mem_zalloc(o->n_allow + 1, sizeof *link->allow);
    if ((o->password && !link->password) || !link->allow ||
        hk_timer_new(link->loop, on_timer, link, &link->timer) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (o->n_allow)
        memcpy(link->allow, o->allow, o->n_allow * sizeof *link->allow);
    link->n_allow = o->n_allow;
    link->has_cert = o->cert_file != NULL;
    if (!link->servers.tls)
        return HK_OK;
    return hk_stream_tls_new(&(struct hk_stream_tls_files){.ca_file = o->ca_file,
                                                           .cert_file = o->cert_file,
                                                           .key_file = o->key_file},
                             &link->tls, err);
}

static enum hk_code make(struct hk_loop *loop, const struct hk_link_options *o, struct hk_buf *key,
                         struct hk_link **out, struct hk_err *err)
{
    struct hk_link *link = hk_mem_zalloc(1, o->bytes);
    if (!link)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    link->ops = o->ops;
    link->loop = loop;
    link->heartbeat_s = heartbeat_of(o);
    link->beat_ms = (uint64_t)link->heartbeat_s * 500;
    hk_buf_init(&link->key, KEY_MAX);
    hk_buf_init(&link->in, IN_MAX);
    hk_buf_init(&link->out, o->ops->out_max);
    hk_rng_seed(&link->rng, hk_loop_now_ms(loop) ^ (uint64_t)(uintptr_t)link, 0);
    enum hk_code rc = read_options(link, o, err);
    if (rc == HK_OK && o->ops->init)
        rc = o->ops->init(link, o->arg, err);
    if (rc != HK_OK) {
        free_link(link);
        return rc;
    }
    link->key = *key;
    hk_buf_init(key, KEY_MAX);
    link->shared = (struct hk_loop_shared){.next = *hk_loop_shared(loop), .kind = &calls};
    *hk_loop_shared(loop) = &link->shared;
    *out = link;
    return HK_OK;
}

static enum hk_code find_or_make(struct hk_loop *loop, const struct hk_link_options *o, struct hk_link **out,
                                 struct hk_err *err)
{
    struct hk_buf key;
    enum hk_code rc = HK_OK;
    hk_buf_init(&key, KEY_MAX);
    make_key(o, &key);
    if (hk_buf_status(&key) != HK_OK)
        rc = hk_err_set(err, hk_buf_status(&key), "out of memory");
    struct hk_link *link = rc == HK_OK ? find(loop, &key) : NULL;
    if (rc == HK_OK && !link)
        rc = make(loop, o, &key, &link, err);
    wipe_key(&key);
    if (rc == HK_OK)
        *out = link;
    return rc;
}

static void add_user(struct hk_link *link, struct hk_link_user *user)
{
    user->next = link->users;
    link->users = user;
}

enum hk_code hk_link_join(struct hk_loop *loop, const struct hk_link_options *o, struct hk_link_user *user,
                          struct hk_link **out, struct hk_err *err)
{
    enum hk_code rc = find_or_make(loop, o, out, err);
    if (rc == HK_OK)
        add_user(*out, user);
    return rc;
}

enum hk_code hk_link_change(struct hk_link *link, const struct hk_link_options *o, struct hk_link_user *user,
                            struct hk_link **out, struct hk_err *err)
{
    struct hk_link *to = NULL;
    enum hk_code rc = find_or_make(link->loop, o, &to, err);
    if (rc != HK_OK || to == link)
        return rc;
    hk_link_leave(link, user);
    add_user(to, user);
    *out = to;
    return HK_OK;
}

void hk_link_leave(struct hk_link *link, struct hk_link_user *user)
{
    struct hk_link_user **at = &link->users;
    while (*at != user)
        at = &(*at)->next;
    *at = user->next;
    if (link->users)
        return;
    if (link->phase == HK_LINK_READY && link->ops->bye) {
        link->ops->bye(link);
        hk_link_flush(link);
    }
    struct hk_loop_shared **s = hk_loop_shared(link->loop);
    while (*s != &link->shared)
        s = &(*s)->next;
    *s = link->shared.next;
    free_link(link);
}
