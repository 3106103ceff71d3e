/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/aws/client.h"
#include "sink/aws/sigv4.h"
#include "sink/http/impl.h"

enum {
    FRESH_MS = 60000,
    CONNECTIONS = 32,
    AUTHORIZATION_MAX = 2048,
    HOST_MAX = 300
};

#define CONTENT_TYPE "application/x-amz-json-1.0"

struct hk_aws_client {
    struct hk_loop *loop;
    struct hk_sink *endpoint;
    char host[HOST_MAX]; /* as the Host field says it */
    char *service, *region;
    char *key_id, *secret, *token, *file, *profile;
    struct hk_aws_credentials credentials;
    bool known;        /* there are credentials … */
    uint64_t known_ms; /* … since then */
    char time[HK_SIGV4_TIME_MAX];
    struct hk_buf authorization;
};

/* ---- the signature ---- */

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The header fields of a request: hk_http_late_fn. Without memory the request goes out unsigned, and is refused. */
static size_t sign_call(void *arg, const struct hk_message *msg, int64_t unix_ms,
                        struct hk_http_header out[HK_HTTP_LATE_MAX])
{
    struct hk_aws_client *client = arg;
    const struct hk_aws_call *call = (const struct hk_aws_call *)msg;
    const char *token = client->credentials.token;
    hk_sigv4_time(unix_ms, client->time);
    const struct hk_header headers[] = {{hk_str_of("content-type"), hk_str_of(CONTENT_TYPE)},
                                        {hk_str_of("host"), hk_str_of(client->host)},
                                        {hk_str_of("x-amz-date"), hk_str_of(client->time)},
                                        {hk_str_of("x-amz-target"), hk_str_of(call->target)},
                                        {hk_str_of("x-amz-security-token"), hk_str_of(token)}};
    struct hk_sigv4 request = {.key_id = hk_str_of(client->credentials.key_id),
                               .secret = hk_str_of(client->credentials.secret),
                               .region = hk_str_of(client->region),
                               .service = hk_str_of(client->service),
                               .method = hk_str_of("POST"),
                               .path = hk_str_of("/"),
                               .headers = headers,
                               .n_headers = token[0] ? 5 : 4,
                               .body = msg->payload};
    memcpy(request.time, client->time, sizeof request.time);
    hk_buf_reset(&client->authorization);
    bool signed_ = hk_sigv4_sign(&request, &client->authorization) == HK_OK;
    out[0] = (struct hk_http_header){.name = "X-Amz-Date", .value = client->time};
    out[1] = (struct hk_http_header){.name = "X-Amz-Target", .value = call->target};
    out[2] = (struct hk_http_header){.name = "Authorization",
                                     .value = signed_ ? hk_buf_cstr(&client->authorization) : "unsigned",
                                     .secret = true};
    out[3] = (struct hk_http_header){.name = "X-Amz-Security-Token", .value = token, .secret = true};
    return token[0] ? 4 : 3;
}

/* ---- calls ---- */

enum hk_code hk_aws_client_ready(struct hk_aws_client *client, struct hk_err *err)
{
    const struct hk_aws_source source = {.key_id = client->key_id,
                                         .secret = client->secret,
                                         .token = client->token,
                                         .file = client->file,
                                         .profile = client->profile,
                                         .env = hk_aws_env};
    uint64_t now_ms = hk_loop_now_ms(client->loop);
    if (client->known && now_ms < client->known_ms + FRESH_MS)
        return HK_OK;
    struct hk_aws_credentials found = {.key_id = ""};
    enum hk_code rc = hk_aws_credentials_load(&source, &found, err);
    client->known = rc == HK_OK;
    client->known_ms = now_ms;
    if (rc == HK_OK)
        client->credentials = found;
    hk_mem_wipe(&found, sizeof found);
    return rc;
}

void hk_aws_client_doubt(struct hk_aws_client *client)
{
    client->known = false;
}

enum hk_code hk_aws_client_call(struct hk_aws_client *client, struct hk_aws_call *call, struct hk_err *err)
{
    call->msg = (struct hk_message){.payload = call->body};
    const struct hk_delivery delivery = {.msg = &call->msg,
                                         .attempt = 1,
                                         .wall_ms = wall_ms(),
                                         .timeout_ms = call->timeout_ms,
                                         .done = call->done,
                                         .arg = call->arg};
    return client->endpoint->ops->send(client->endpoint, &delivery, err);
}

void hk_aws_client_abort(struct hk_aws_client *client)
{
    client->endpoint->ops->abort(client->endpoint);
}

/* ---- making and ending ---- */

/* Cuts the endpoint to its scheme and authority: "http://host:port/" in `url`, and the Host field as HTTP clients write it. */
static bool split_endpoint(struct hk_aws_client *client, const char *endpoint, char *url, size_t room)
{
    struct hk_str rest = hk_str_of(endpoint);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    bool tls = hk_str_eqi(scheme, hk_str_of("https"));
    if (rest.len < 3)
        return false;
    rest = (struct hk_str){rest.ptr + 2, rest.len - 2};
    struct hk_str host = rest;
    host.len = strcspn(rest.ptr, "/?#");
    int n = snprintf(url, room, "%.*s://%.*s/", (int)scheme.len, scheme.ptr, (int)host.len, host.ptr);
    struct hk_str usual = hk_str_of(tls ? ":443" : ":80");
    if (host.len > usual.len && hk_str_eq((struct hk_str){host.ptr + host.len - usual.len, usual.len}, usual))
        host.len -= usual.len;
    return n > 0 && (size_t)n < room && hk_str_copy(client->host, sizeof client->host, host);
}

static char *copy_or_null(const char *s, bool *ok)
{
    char *copy = s ? hk_mem_strdup(s) : NULL;
    *ok = *ok && (!s || copy);
    return copy;
}

static enum hk_code open_endpoint(struct hk_aws_client *client, const struct hk_aws_options *o,
                                  struct hk_err *err)
{
    char url[HOST_MAX + 16];
    const struct hk_http_header headers[] = {{.name = "Content-Type", .value = CONTENT_TYPE}};
    if (!split_endpoint(client, o->endpoint, url, sizeof url))
        return hk_err_set(err, HK_INVALID, "destination %s: the endpoint has no host, or a long one",
                          o->name);
    const struct hk_http_options options = {.name = o->name,
                                            .url = url,
                                            .bare = true,
                                            .late = sign_call,
                                            .late_arg = client,
                                            .headers = headers,
                                            .n_headers = 1,
                                            .ca_file = o->ca_file,
                                            .allow = o->allow,
                                            .n_allow = o->n_allow,
                                            .proxy = o->proxy,
                                            .max_connections = CONNECTIONS};
    return hk_http_open(client->loop, &options, &client->endpoint, err);
}

enum hk_code hk_aws_client_open(struct hk_loop *loop, const struct hk_aws_options *o,
                                struct hk_aws_client **out, struct hk_err *err)
{
    struct hk_aws_client *client = hk_mem_zalloc(1, sizeof *client);
    bool ok = true;
    if (!client)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    client->loop = loop;
    hk_buf_init(&client->authorization, AUTHORIZATION_MAX);
    client->service = copy_or_null(o->service, &ok);
    client->region = copy_or_null(o->region, &ok);
    client->key_id = copy_or_null(o->key_id, &ok);
    client->secret = copy_or_null(o->secret, &ok);
    client->token = copy_or_null(o->token, &ok);
    client->file = copy_or_null(o->credentials_file, &ok);
    client->profile = copy_or_null(o->profile, &ok);
    enum hk_code rc = ok ? open_endpoint(client, o, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        *out = client;
    else
        hk_aws_client_free(client);
    return rc;
}

static void free_secret(char *s)
{
    hk_mem_wipe(s, s ? strlen(s) : 0);
    hk_mem_free(s);
}

void hk_aws_client_free(struct hk_aws_client *client)
{
    if (!client)
        return;
    hk_http_discard(client->endpoint);
    free_secret(client->key_id);
    free_secret(client->secret);
    free_secret(client->token);
    hk_mem_free(client->file);
    hk_mem_free(client->profile);
    hk_mem_free(client->service);
    hk_mem_free(client->region);
    hk_buf_fini(&client->authorization);
    hk_mem_wipe(client, sizeof *client);
    hk_mem_free(client);
}
