/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to one method of a topic, over an HTTP sink of their own: the same address policy, proxy and deadlines. Its access token
 * (sink/http/access.h) is a JWT that the service account's key signs here, or one of the metadata server. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/file.h"
#include "sink/http/impl.h"
#include "sink/pubsub/impl.h"

enum {
    CONNECTIONS = 32,
    URL_MAX = 1024,
    KEY_MAX = 64 * 1024
};

#define METADATA_PATH "/computeMetadata/v1/instance/service-accounts/default/token"

struct hk_pubsub_client {
    struct hk_sink *endpoint;
    char *key, *key_file;
};

/* ---- tokens ---- */

static enum hk_code sign_with(struct hk_str key, int64_t wall_ms, struct hk_buf *out, uint64_t *out_life_s,
                              struct hk_err *err)
{
    *out_life_s = HK_PUBSUB_TOKEN_S;
    return hk_pubsub_jwt_make(key, wall_ms / 1000, out, err);
}

/* hk_access_mint_fn. A file is read each time: somebody may have put another key there. */
static enum hk_code mint(void *arg, int64_t wall_ms, struct hk_buf *out, uint64_t *out_life_s,
                         struct hk_err *err)
{
    const struct hk_pubsub_client *client = arg;
    struct hk_err why = {.message = ""};
    struct hk_buf text;
    char shown[HK_SHOW_MAX];
    if (client->key) {
        enum hk_code rc = sign_with(hk_str_of(client->key), wall_ms, out, out_life_s, &why);
        return rc == HK_OK ? rc : hk_err_set(err, rc, "\"credentials\": %s", why.message);
    }
    hk_buf_init(&text, KEY_MAX);
    enum hk_code rc = hk_sink_file_read(client->key_file, &text, &why);
    if (rc == HK_OK)
        rc = sign_with(hk_buf_str(&text), wall_ms, out, out_life_s, &why);
    hk_mem_wipe(text.data, text.len);
    hk_buf_fini(&text);
    if (rc == HK_OK)
        return rc;
    return hk_err_set(err, rc == HK_NOTFOUND ? HK_DENIED : rc, "%s: %s",
                      hk_show(hk_str_of(client->key_file), shown), why.message);
}

/* What the destination allows, and where the metadata server is. */
static struct hk_cidr *metadata_allow(const struct hk_pubsub_options *o)
{
    struct hk_cidr *allow = hk_mem_zalloc(o->n_allow + 1, sizeof *allow);
    if (!allow)
        return NULL;
    for (size_t i = 0; i < o->n_allow; i++)
        allow[i] = o->allow[i];
    if (hk_cidr_parse(hk_str_of("169.254.169.254/32"), &allow[o->n_allow], NULL) == HK_OK)
        return allow;
    hk_mem_free(allow);
    return NULL;
}

/* ---- calls ---- */

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

enum hk_code hk_pubsub_client_call(struct hk_pubsub_client *client, const struct hk_message *msg,
                                   uint64_t timeout_ms, hk_sink_done_fn *done, void *arg, struct hk_err *err)
{
    const struct hk_delivery delivery = {
        .msg = msg, .attempt = 1, .wall_ms = wall_ms(), .timeout_ms = timeout_ms, .done = done, .arg = arg};
    return client->endpoint->ops->send(client->endpoint, &delivery, err);
}

void hk_pubsub_client_abort(struct hk_pubsub_client *client)
{
    client->endpoint->ops->abort(client->endpoint);
}

/* ---- making and ending ---- */

static enum hk_code open_endpoint(struct hk_pubsub_client *client, struct hk_loop *loop,
                                  const struct hk_pubsub_options *o, const char *url,
                                  const struct hk_http_oauth *oauth, struct hk_err *err)
{
    const struct hk_http_header headers[] = {{.name = "Content-Type", .value = "application/json"}};
    const struct hk_http_options options = {.name = o->name,
                                            .url = url,
                                            .bare = true,
                                            .headers = headers,
                                            .n_headers = 1,
                                            .oauth = o->emulator ? NULL : oauth,
                                            .ca_file = o->ca_file,
                                            .allow = o->allow,
                                            .n_allow = o->n_allow,
                                            .proxy = o->proxy,
                                            .max_connections = CONNECTIONS};
    return hk_http_open(loop, &options, &client->endpoint, err);
}

/* Without a slash at its end. */
static struct hk_str bare_url(const char *url)
{
    struct hk_str s = hk_str_of(url);
    while (s.len && s.ptr[s.len - 1] == '/')
        s.len--;
    return s;
}

static enum hk_code open_client(struct hk_pubsub_client *client, struct hk_loop *loop,
                                const struct hk_pubsub_options *o, const char *method, struct hk_err *err)
{
    char url[URL_MAX], metadata[URL_MAX];
    struct hk_str base = bare_url(o->endpoint ? o->endpoint : HK_PUBSUB_ENDPOINT),
                  server = bare_url(o->metadata ? o->metadata : HK_PUBSUB_METADATA);
    int n = snprintf(url, sizeof url, "%.*s/v1/projects/%s/topics/%s:%s", (int)base.len, base.ptr, o->project,
                     o->topic, method);
    int m = snprintf(metadata, sizeof metadata, "%.*s" METADATA_PATH, (int)server.len, server.ptr);
    if (n >= URL_MAX || m >= URL_MAX)
        return hk_err_set(err, HK_INVALID, "destination %s: the endpoint is too long", o->name);
    bool has_key = client->key || client->key_file;
    struct hk_cidr *allow = metadata_allow(o);
    const struct hk_http_oauth oauth = {.token_url = metadata,
                                        .metadata = !has_key,
                                        .allow = allow,
                                        .n_allow = o->n_allow + 1,
                                        .mint = has_key ? mint : NULL,
                                        .mint_arg = client};
    enum hk_code rc =
        allow ? open_endpoint(client, loop, o, url, &oauth, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    hk_mem_free(allow);
    return rc;
}

enum hk_code hk_pubsub_client_open(struct hk_loop *loop, const struct hk_pubsub_options *o,
                                   const char *method, struct hk_pubsub_client **out, struct hk_err *err)
{
    struct hk_pubsub_client *client = hk_mem_zalloc(1, sizeof *client);
    if (!client)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    client->key = o->key ? hk_mem_strdup(o->key) : NULL;
    client->key_file = o->key_file && !o->key ? hk_mem_strdup(o->key_file) : NULL;
    bool whole = (!o->key || client->key) && (!o->key_file || o->key || client->key_file);
    enum hk_code rc =
        whole ? open_client(client, loop, o, method, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        *out = client;
    else
        hk_pubsub_client_free(client);
    return rc;
}

void hk_pubsub_client_free(struct hk_pubsub_client *client)
{
    if (!client)
        return;
    hk_http_discard(client->endpoint);
    hk_mem_wipe(client->key, client->key ? strlen(client->key) : 0);
    hk_mem_free(client->key);
    hk_mem_free(client->key_file);
    hk_mem_free(client);
}
