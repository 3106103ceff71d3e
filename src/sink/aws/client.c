/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/aws/client.h"
#include "sink/aws/provider.h"
#include "sink/aws/question.h"
#include "sink/aws/sigv4.h"
#include "sink/http/impl.h"

enum {
    CONNECTIONS = 32,
    AUTHORIZATION_MAX = 2048,
    HOST_MAX = 300
};

struct hk_aws_client {
    struct hk_loop *loop;
    struct hk_sink *endpoint;
    char host[HOST_MAX]; /* as the Host field says it */
    char *service, *region;
    const char *content_type;
    struct hk_aws_provider *provider;
    const struct hk_aws_credentials *credentials; /* since hk_aws_client_ready */
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
    const struct hk_aws_credentials *c = client->credentials;
    hk_sigv4_time(unix_ms, client->time);
    struct hk_header headers[5] = {{hk_str_of("content-type"), hk_str_of(client->content_type)},
                                   {hk_str_of("host"), hk_str_of(client->host)},
                                   {hk_str_of("x-amz-date"), hk_str_of(client->time)}};
    struct hk_sigv4 request = {.key_id = hk_str_of(c->key_id),
                               .secret = hk_str_of(c->secret),
                               .region = hk_str_of(client->region),
                               .service = hk_str_of(client->service),
                               .method = hk_str_of("POST"),
                               .path = hk_str_of("/"),
                               .headers = headers,
                               .n_headers = 3,
                               .body = msg->payload};
    size_t n = 0;
    memcpy(request.time, client->time, sizeof request.time);
    out[n++] = (struct hk_http_header){.name = "X-Amz-Date", .value = client->time};
    if (call->target) {
        headers[request.n_headers++] = (struct hk_header){hk_str_of("x-amz-target"), hk_str_of(call->target)};
        out[n++] = (struct hk_http_header){.name = "X-Amz-Target", .value = call->target};
    }
    if (c->token[0]) {
        headers[request.n_headers++] =
            (struct hk_header){hk_str_of("x-amz-security-token"), hk_str_of(c->token)};
        out[n++] = (struct hk_http_header){.name = "X-Amz-Security-Token", .value = c->token, .secret = true};
    }
    hk_buf_reset(&client->authorization);
    bool signed_ = hk_sigv4_sign(&request, &client->authorization) == HK_OK;
    out[n++] = (struct hk_http_header){.name = "Authorization",
                                       .value = signed_ ? hk_buf_cstr(&client->authorization) : "unsigned",
                                       .secret = true};
    return n;
}

/* ---- calls ---- */

enum hk_code hk_aws_client_ready(struct hk_aws_client *client, enum hk_fault *out_fault, struct hk_err *err)
{
    return hk_aws_provider_get(client->provider, &client->credentials, out_fault, err);
}

void hk_aws_client_doubt(struct hk_aws_client *client)
{
    hk_aws_provider_doubt(client->provider);
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

static enum hk_code open_endpoint(struct hk_aws_client *client, const struct hk_aws_options *o,
                                  struct hk_err *err)
{
    char url[HOST_MAX + 16], usual[HOST_MAX];
    const struct hk_http_header headers[] = {{.name = "Content-Type", .value = o->content_type}};
    (void)snprintf(usual, sizeof usual, "https://%s.%s.%s", o->service, o->region, hk_aws_domain(o->region));
    if (!split_endpoint(client, o->endpoint ? o->endpoint : usual, url, sizeof url))
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

static enum hk_code open_provider(struct hk_aws_client *client, const struct hk_aws_options *o,
                                  struct hk_err *err)
{
    const struct hk_aws_provider_options options = {.name = o->name,
                                                    .region = o->region,
                                                    .source = {.key_id = o->key_id,
                                                               .secret = o->secret,
                                                               .token = o->token,
                                                               .file = o->credentials_file,
                                                               .profile = o->profile,
                                                               .env = hk_aws_env},
                                                    .ca_file = o->ca_file,
                                                    .allow = o->allow,
                                                    .n_allow = o->n_allow,
                                                    .proxy = o->proxy,
                                                    .wake = o->wake,
                                                    .arg = o->wake_arg};
    return hk_aws_provider_new(client->loop, &options, &client->provider, err);
}

enum hk_code hk_aws_client_open(struct hk_loop *loop, const struct hk_aws_options *o,
                                struct hk_aws_client **out, struct hk_err *err)
{
    struct hk_aws_client *client = hk_mem_zalloc(1, sizeof *client);
    if (!client)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    client->loop = loop;
    client->content_type = o->content_type;
    hk_buf_init(&client->authorization, AUTHORIZATION_MAX);
    client->service = hk_mem_strdup(o->service);
    client->region = hk_mem_strdup(o->region);
    enum hk_code rc = client->service && client->region ? open_provider(client, o, err)
                                                        : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = open_endpoint(client, o, err);
    if (rc == HK_OK)
        *out = client;
    else
        hk_aws_client_free(client);
    return rc;
}

void hk_aws_client_free(struct hk_aws_client *client)
{
    if (!client)
        return;
    hk_http_discard(client->endpoint);
    hk_aws_provider_free(client->provider);
    hk_mem_free(client->service);
    hk_mem_free(client->region);
    hk_buf_fini(&client->authorization);
    hk_mem_free(client);
}
