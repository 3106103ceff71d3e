/* SPDX-License-Identifier: Apache-2.0 */
/* OAUTHBEARER: the token of the configuration, or of a file that somebody keeps fresh (a projected service account token, say), or one that
 * an endpoint gives for client credentials (sink/http/access.h). librdkafka asks when four fifths of a token's life are over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    TOKEN_MAX = 16 * 1024,
    UNKNOWN_LIFE_MS = 10 * 60 * 1000 /* of a token that does not say when it ends */
};

/* "exp" of a JWT's claims, in seconds; 0: it is none, or has none. */
static int64_t expiry_s(struct hk_str token)
{
    char base64[TOKEN_MAX];
    unsigned char claims[TOKEN_MAX];
    size_t len = 0;
    struct hk_str rest = token;
    (void)hk_str_cut(&rest, '.');
    struct hk_str part = hk_str_cut(&rest, '.');
    if (!part.len || part.len >= sizeof base64)
        return 0;
    for (size_t i = 0; i < part.len; i++)
        base64[i] = part.ptr[i] == '-' ? '+' : part.ptr[i] == '_' ? '/' : part.ptr[i];
    if (!hk_base64_decode((struct hk_str){base64, part.len}, HK_BASE64_BARE, claims, sizeof claims - 1, &len))
        return 0;
    claims[len] = '\0';
    const char *at = strstr((const char *)claims, "\"exp\"");
    at = at ? at + strspn(at + 5, " :\t") + 5 : "";
    uint64_t s = 0;
    bool ok = hk_parse_u64((struct hk_str){at, strspn(at, "0123456789")}, &s, NULL) == HK_OK;
    return ok && s < INT64_MAX / 1000 ? (int64_t)s : 0;
}

static bool read_token(const char *file, char out[TOKEN_MAX], char why[HK_KAFKA_TEXT_MAX])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, out, TOKEN_MAX - 1);
    int error = errno;
    if (fd >= 0)
        (void)close(fd);
    if (n <= 0 || n == TOKEN_MAX - 1) {
        (void)snprintf(why, HK_KAFKA_TEXT_MAX, "token_file: %s",
                       n < 0    ? strerror(error)
                       : n == 0 ? "it is empty"
                                : "it is too large for a token");
        return false;
    }
    out[n] = '\0';
    out[strcspn(out, " \r\n\t")] = '\0';
    return true;
}

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void set_token(rd_kafka_t *rk, const char *text, int64_t until_ms, const char *principal)
{
    char refused[HK_KAFKA_TEXT_MAX] = "";
    if (rd_kafka_oauthbearer_set_token(rk, text, until_ms, principal ? principal : "hikyaku", NULL, 0,
                                       refused, sizeof refused) != RD_KAFKA_RESP_ERR_NO_ERROR)
        (void)rd_kafka_oauthbearer_set_token_failure(rk, refused);
}

/* ---- a token that is there ---- */

static void set_given(rd_kafka_t *rk, const char *token, const char *file, const char *principal)
{
    char text[TOKEN_MAX] = "", why[HK_KAFKA_TEXT_MAX] = "no token";
    bool ok = token ? hk_str_copy(text, sizeof text, hk_str_of(token)) : file && read_token(file, text, why);
    int64_t until_s = ok ? expiry_s(hk_str_of(text)) : 0;
    if (ok)
        set_token(rk, text, until_s ? until_s * 1000 : wall_ms() + UNKNOWN_LIFE_MS, principal);
    else
        (void)rd_kafka_oauthbearer_set_token_failure(rk, why);
    hk_mem_wipe(text, sizeof text);
}

/* ---- a token of an endpoint ---- */

/* An old one that is still good is better than none. NONE: it has one. */
static enum hk_fault set_fetched(rd_kafka_t *rk, struct hk_access *access, const char *principal,
                                 const char **out_why)
{
    uint64_t serial = 0, left_ms = hk_access_left_ms(access);
    const char *text = left_ms ? hk_access_text(access, &serial) : NULL;
    enum hk_fault fault = hk_access_failure(access, out_why);
    if (text)
        set_token(rk, text, wall_ms() + (int64_t)left_ms, principal);
    else
        (void)rd_kafka_oauthbearer_set_token_failure(rk, *out_why);
    return text ? HK_FAULT_NONE : fault;
}

/* hk_access_news_fn */
static void on_news(void *arg)
{
    const struct hk_kafka_client *c = arg;
    const char *why = NULL;
    for (struct hk_kafka_producer *p = c->producers; p; p = p->next) {
        if (!p->wants_token)
            continue;
        p->wants_token = false;
        (void)set_fetched(p->rk, c->access, c->user, &why);
    }
}

void hk_kafka_token_refresh(struct hk_kafka_producer *p)
{
    struct hk_kafka_client *c = p->client;
    if (!c->access) {
        set_given(p->rk, c->token, c->token_file, c->user);
        return;
    }
    p->wants_token = true;
    hk_access_renew(c->access);
    if (!hk_access_is_asking(c->access)) /* it has failed just now */
        on_news(c);
}

static enum hk_code open_access(struct hk_loop *loop, const struct hk_kafka_options *o,
                                hk_access_news_fn *news, void *arg, struct hk_access **out,
                                struct hk_err *err)
{
    const struct hk_http_options options = {.name = o->name,
                                            .oauth = &o->oauth,
                                            .ca_file = o->ca_file,
                                            .cert_file = o->cert_file,
                                            .key_file = o->key_file,
                                            .allow = o->allow,
                                            .n_allow = o->n_allow};
    return hk_access_new(loop, &options, news, arg, out, err);
}

enum hk_code hk_kafka_token_open(struct hk_kafka_client *c, const struct hk_kafka_options *o,
                                 struct hk_err *err)
{
    return open_access(c->loop, o, on_news, c, &c->access, err);
}

/* ---- for a probe ---- */

static void stop_loop(void *loop)
{
    hk_loop_stop(loop);
}

static enum hk_fault wait_for(rd_kafka_t *rk, struct hk_loop *loop, const struct hk_kafka_options *o,
                              uint64_t timeout_ms, char why[HK_KAFKA_TEXT_MAX])
{
    struct hk_access *access = NULL;
    struct hk_timer *timer = NULL;
    struct hk_err err = {.message = "out of memory"};
    const char *text = err.message;
    enum hk_fault fault = HK_FAULT_LOCAL;
    if (hk_timer_new(loop, stop_loop, loop, &timer) == HK_OK &&
        open_access(loop, o, stop_loop, loop, &access, &err) == HK_OK) {
        hk_timer_start(timer, timeout_ms);
        hk_access_want(access);
        if (hk_access_is_asking(access))
            hk_loop_run(loop);
        fault = set_fetched(rk, access, o->user, &text);
        if (hk_access_is_asking(access)) {
            fault = HK_FAULT_TOKEN;
            text = "token endpoint: no answer in time";
        }
    }
    (void)snprintf(why, HK_KAFKA_TEXT_MAX, "%s", text);
    hk_access_free(access);
    hk_timer_free(timer);
    return fault;
}

enum hk_fault hk_kafka_token_fetch(rd_kafka_t *rk, const struct hk_kafka_options *o, uint64_t timeout_ms,
                                   char why[HK_KAFKA_TEXT_MAX])
{
    struct hk_loop *loop = NULL;
    struct hk_err err = {.message = ""};
    why[0] = '\0';
    if (!o->oauth.token_url) {
        set_given(rk, o->token, o->token_file, o->user);
        return HK_FAULT_NONE; /* librdkafka says what is wrong with it */
    }
    if (hk_loop_new(&loop, &err) != HK_OK) {
        (void)snprintf(why, HK_KAFKA_TEXT_MAX, "%s", err.message);
        return HK_FAULT_LOCAL;
    }
    enum hk_fault fault = wait_for(rk, loop, o, timeout_ms, why);
    hk_loop_free(loop);
    return fault;
}
