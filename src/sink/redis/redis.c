/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a destination of Redis, and moves it to where a cluster says that its stream is: one destination, one server. A
 * message that was answered with MOVED or ASK was not taken, so it is written anew there. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/redis/impl.h"

enum {
    TARGET_MAX = 4096
};

static struct hk_redis_sink *of(struct hk_broker *b)
{
    return (struct hk_redis_sink *)b;
}

/* ---- where it is ---- */

static enum hk_code join(struct hk_redis_sink *r, const char *url, struct hk_err *err)
{
    struct hk_link_options link = {HK_LINK_OPTIONS(r), .ops = &hk_redis_conn_ops,
                                   .bytes = sizeof(struct hk_redis_conn), .scheme = &hk_scheme_redis};
    link.url = url;
    enum hk_code rc =
        r->broker.link ? hk_broker_change(&r->broker, &link, err) : hk_broker_join(&r->broker, &link, err);
    if (rc == HK_OK)
        r->conn = (struct hk_redis_conn *)r->broker.link;
    return rc;
}

void hk_redis_move(struct hk_redis_sink *r, const struct hk_server *to, bool ask)
{
    r->to = *to;
    r->asking = ask;
    r->moving = true;
    if (!r->broker.written.n)
        hk_broker_later(&r->broker);
}

/* A URL with the same user and database, for another server. */
static bool url_to(const struct hk_redis_sink *r, char *out, size_t room)
{
    struct hk_str url = hk_str_of(r->url), rest = url;
    (void)hk_str_cut(&rest, '/');
    (void)hk_str_cut(&rest, '/');
    struct hk_str path = rest, authority = hk_str_cut(&path, '/');
    const char *at = memchr(authority.ptr, '@', authority.len);
    int head = (int)((at ? at + 1 : authority.ptr) - url.ptr);
    bool v6 = strchr(r->to.host, ':') != NULL;
    int n = snprintf(out, room, "%.*s%s%s%s:%u/%.*s", head, url.ptr, v6 ? "[" : "", r->to.host, v6 ? "]" : "",
                     (unsigned)r->to.port, path.ptr ? (int)path.len : 0, path.ptr ? path.ptr : "");
    return n > 0 && (size_t)n < room;
}

/* From the sink's own timer: here the link may be changed. Without a new one it stays where it is. */
static void later(struct hk_broker *b)
{
    struct hk_redis_sink *r = of(b);
    char url[2600];
    struct hk_err err = {.message = ""};
    if (!r->moving || b->written.n)
        return;
    r->moving = false;
    r->away = r->to.host[0] != '\0';
    if ((r->away && !url_to(r, url, sizeof url)) || join(r, r->away ? url : r->url, &err) != HK_OK)
        hk_broker_fail_queued(b, HK_FAULT_LOCAL, NULL, NULL,
                              err.message[0] ? err.message : "the url is too long");
    hk_broker_pump(b);
    hk_link_flush(b->link);
}

/* The link is lost. A server that a cluster has named may be gone for good: back to those of the url. */
static void end(struct hk_broker *b)
{
    struct hk_redis_sink *r = of(b);
    static const struct hk_server home = {.host = ""};
    if (r->away)
        hk_redis_move(r, &home, false);
}

static bool may_write(struct hk_broker *b, const struct hk_flight *f)
{
    struct hk_redis_sink *r = of(b);
    (void)f;
    if (r->moving && !b->written.n)
        hk_broker_later(b);
    return !r->moving;
}

static void forget(struct hk_broker *b, struct hk_flight *f)
{
    hk_flights_drop(&of(b)->conn->flights, f->number);
}

static void show(struct hk_broker *b, const struct hk_message *msg, struct hk_json *json)
{
    hk_json_key(json, "stream");
    hk_json_str(json, hk_broker_target(b, of(b)->stream, msg));
}

static void wipe(char *secret)
{
    if (secret)
        hk_mem_wipe(secret, strlen(secret));
    hk_mem_free(secret);
}

static void fini(struct hk_broker *b)
{
    struct hk_redis_sink *r = of(b);
    hk_mem_free(r->stream);
    hk_mem_free(r->url);
    wipe(r->password);
    hk_mem_free(r->ca_file);
    hk_mem_free(r->cert_file);
    hk_mem_free(r->key_file);
    hk_mem_free(r->allow);
}

static char *copy(const char *text, bool *ok)
{
    char *c = text ? hk_mem_strdup(text) : NULL;
    *ok = *ok && (c || !text);
    return c;
}

static enum hk_code copy_options(struct hk_redis_sink *r, const struct hk_redis_options *o,
                                 struct hk_err *err)
{
    bool ok = true;
    r->url = copy(o->url, &ok);
    r->password = copy(o->password, &ok);
    r->ca_file = copy(o->ca_file, &ok);
    r->cert_file = copy(o->cert_file, &ok);
    r->key_file = copy(o->key_file, &ok);
    r->allow = hk_mem_zalloc(o->n_allow + 1, sizeof *r->allow);
    if (!ok || !r->allow)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (o->n_allow)
        memcpy(r->allow, o->allow, o->n_allow * sizeof *r->allow);
    r->n_allow = o->n_allow;
    r->create = o->create;
    r->max_len = o->max_len;
    r->dedup_ms = o->dedup_ms;
    r->heartbeat_s = o->heartbeat_s;
    return HK_OK;
}

static enum hk_code open_sink(struct hk_broker *b, const void *options, struct hk_err *err)
{
    const struct hk_redis_options *o = options;
    struct hk_redis_sink *r = of(b);
    enum hk_code rc = hk_broker_pattern("stream", o->stream, &r->stream, err);
    if (rc == HK_OK)
        rc = copy_options(r, o, err);
    return rc == HK_OK ? join(r, r->url, err) : rc;
}

const struct hk_broker_ops hk_redis_broker_ops = {.name = "redis",
                                                  .bytes = sizeof(struct hk_redis_sink),
                                                  .target_max = TARGET_MAX,
                                                  .fields = &hk_redis_fields,
                                                  .open = open_sink,
                                                  .end = end,
                                                  .may_write = may_write,
                                                  .write = hk_redis_publish,
                                                  .forget = forget,
                                                  .show = show,
                                                  .later = later,
                                                  .fini = fini};

enum hk_code hk_redis_open(struct hk_loop *loop, const struct hk_redis_options *o, struct hk_sink **out,
                           struct hk_err *err)
{
    const struct hk_broker_options options = {
        .name = o->name, .cloudevents = o->cloudevents, .window = o->window};
    return hk_broker_open(&hk_redis_broker_ops, loop, &options, o, out, err);
}
