/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP as a kind of sink: a destination of the configuration -> the sink's options. */
#include "base/mem.h"
#include "core/engine.h"
#include "sink/batch/batch.h"
#include "sink/http/http.h"
#include "sink/kinds.h"

static const char *const methods[] = {
    [HK_METHOD_POST] = "POST", [HK_METHOD_PUT] = "PUT", [HK_METHOD_PATCH] = "PATCH"};

struct http_lists { /* arrays that hk_http_open copies */
    struct hk_http_header *headers;
    struct hk_cidr *allow;
    const char **secrets;
};

static void free_lists(struct http_lists *lists)
{
    hk_mem_free(lists->headers);
    hk_mem_free(lists->allow);
    hk_mem_free(lists->secrets);
}

static bool make_lists(const struct hk_conf_destination *conf, struct hk_http_options *o,
                       struct http_lists *lists)
{
    while (hk_conf_header(&conf->http, o->n_headers))
        o->n_headers++;
    o->n_secrets = conf->http.sign.secret ? 1 : 0;
    while (!conf->http.sign.secret && hk_conf_text(&conf->http.sign.secrets, o->n_secrets))
        o->n_secrets++;
    lists->headers = hk_mem_zalloc(o->n_headers + 1, sizeof *lists->headers);
    lists->secrets = hk_mem_zalloc(o->n_secrets + 1, sizeof *lists->secrets);
    if (!lists->headers || !lists->secrets || hk_sink_allow(conf, &lists->allow, &o->n_allow, NULL) != HK_OK)
        return false;
    for (size_t i = 0; i < o->n_headers; i++) {
        const struct hk_conf_header *h = hk_conf_header(&conf->http, i);
        lists->headers[i] = (struct hk_http_header){.name = h->name, .value = h->value, .secret = h->secret};
    }
    for (size_t i = 0; i < o->n_secrets; i++)
        lists->secrets[i] =
            conf->http.sign.secret ? conf->http.sign.secret : hk_conf_text(&conf->http.sign.secrets, i);
    o->headers = lists->headers;
    o->allow = lists->allow;
    o->secrets = lists->secrets;
    return true;
}

/* One request for each message, or for many. */
static enum hk_code open_with(const struct hk_conf_destination *conf, const struct hk_http_options *o,
                              struct hk_loop *loop, struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_batch *batch = &conf->http.batch;
    const struct hk_batch_options options = {.http = *o,
                                             .messages = batch->messages,
                                             .bytes = batch->bytes,
                                             .wait_ms = batch->wait_ms,
                                             .format = batch->format == HK_CONF_BATCH_NDJSON ? HK_BATCH_NDJSON
                                                                                             : HK_BATCH_JSON,
                                             .window = o->max_connections + o->more_connections};
    return batch->on ? hk_batch_open(loop, &options, out, err) : hk_http_open(loop, o, out, err);
}

static enum hk_code open_http(const struct hk_conf_destination *conf, struct hk_loop *loop,
                              struct hk_sink **out, struct hk_err *err)
{
    const struct hk_conf_http *http = &conf->http;
    struct http_lists lists = {NULL, NULL, NULL};
    const struct hk_http_oauth oauth = {.token_url = http->auth.oauth.token_url,
                                        .client_id = http->auth.oauth.client_id,
                                        .client_secret = http->auth.oauth.client_secret,
                                        .scope = http->auth.oauth.scope,
                                        .audience = http->auth.oauth.audience,
                                        .in_body = http->auth.oauth.style == HK_CONF_OAUTH_BODY};
    struct hk_http_options o = {.name = conf->name,
                                .url = hk_conf_is_targeted(conf) ? NULL : http->url,
                                .from_message = hk_conf_is_targeted(conf),
                                .queue = hk_conf_queue_id(conf),
                                .proxy = conf->proxy,
                                .user_agent = conf->queue.name ? "Google-Cloud-Tasks" : NULL,
                                .method = methods[http->method],
                                .basic_user = http->auth.basic.user,
                                .basic_password = http->auth.basic.password,
                                .bearer = http->auth.bearer,
                                .oauth = oauth.token_url ? &oauth : NULL,
                                .ca_file = http->ca_file,
                                .cert_file = http->cert_file,
                                .key_file = http->key_file,
                                .cloudevents = http->cloudevents != HK_CLOUDEVENTS_NONE,
                                .structured = http->cloudevents == HK_CLOUDEVENTS_STRUCTURED,
                                .version = http->version,
                                .gzip = http->compression == HK_CONF_COMPRESS_GZIP,
                                .pins = http->pins.items,
                                .n_pins = http->pins.n,
                                .socket = http->socket,
                                .max_connections = conf->limits.concurrency,
                                .more_connections = HK_ENGINE_FORCED_MAX};
    enum hk_code rc = make_lists(conf, &o, &lists)
                          ? open_with(conf, &o, loop, out, err)
                          : hk_err_set(err, HK_NOMEM, "out of memory for destination %s", conf->name);
    free_lists(&lists);
    return rc;
}

const struct hk_sink_kind hk_sink_kind_http = {.name = "http", .open = open_http};
