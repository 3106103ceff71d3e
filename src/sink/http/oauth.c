/* SPDX-License-Identifier: Apache-2.0 */
/* Client credentials. Each sink has one token at a time, and an inner HTTP sink for its endpoint, with the same address policy, proxy,
 * authorities and client certificate.
 *
 * - A request waits for the token in the list `unauthorized`; its own deadline runs.
 * - However many wait, one question is under way.
 * - Before the token expires (a tenth of its life, at most a minute), the next request asks for another one and goes out with
 *   the old one. Without requests nobody asks.
 * - 401: the token is given up, if it still is the one that was refused, and the same delivery goes out again with a new one, once. The
 *   receiver has not acted, so the bound on repeats holds, and it is one attempt.
 * - When there is no token, all who wait end with what the endpoint said, and nobody asks again for a second. */
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "sink/http/oauth.h"
#include "sink/http/sign.h"

enum {
    ASK_MS = 30000,
    QUIET_MS = 1000, /* after a failure */
    EARLY_MAX_MS = 60000,
    UNSAID_S = 3600, /* an endpoint that does not say how long a token lives */
    FORM_MAX = 8192,
    BASIC_MAX = 4096
};

struct hk_oauth {
    struct hk_http_sink *owner;
    struct hk_sink *endpoint;
    struct hk_buf form;
    struct hk_message msg; /* whose payload the form is */
    bool asking;
    char *token; /* NULL: none */
    uint64_t serial;
    uint64_t renew_ms, end_ms; /* of the token */
    uint64_t quiet_until_ms;
    enum hk_fault fault; /* of the last answer; NONE: it was a token */
    char error[HK_HTTP_ERROR_MAX];
};

static uint64_t now_of(const struct hk_oauth *o)
{
    return hk_loop_now_ms(o->owner->loop);
}

static void forget_token(struct hk_oauth *o)
{
    hk_secret_wipe(o->token, o->token ? strlen(o->token) : 0);
    hk_mem_free(o->token);
    o->token = NULL;
}

/* ---- what the endpoint said ---- */

static void note_failure(struct hk_oauth *o, enum hk_fault fault, const char *text)
{
    o->fault = fault;
    o->quiet_until_ms = now_of(o) + QUIET_MS;
    (void)snprintf(o->error, sizeof o->error, "token endpoint: %.280s", text);
}

static void note_token(struct hk_oauth *o, struct hk_oauth_answer *answer)
{
    uint64_t life_ms = (answer->lifetime_s ? answer->lifetime_s : UNSAID_S) * 1000;
    uint64_t early_ms = life_ms / 10 < EARLY_MAX_MS ? life_ms / 10 : EARLY_MAX_MS;
    forget_token(o);
    o->token = answer->token;
    answer->token = NULL;
    o->serial++;
    o->fault = HK_FAULT_NONE;
    o->end_ms = now_of(o) + life_ms;
    o->renew_ms = o->end_ms - early_ms;
}

/* RFC 6749, 5.2: 400 with its code, or 401. What else it says is about itself. */
static enum hk_fault fault_of(int status)
{
    return status == 400 || status == 401 || status == 403 ? HK_FAULT_TOKEN_REFUSED : HK_FAULT_TOKEN;
}

static bool stays(enum hk_fault fault)
{
    return fault == HK_FAULT_BLOCKED || fault == HK_FAULT_LOCAL || fault == HK_FAULT_PROXY ||
           fault == HK_FAULT_PROXY_AUTH || fault == HK_FAULT_PROXY_REFUSED;
}

static void take_answer(struct hk_oauth *o, const struct hk_facts *facts)
{
    char text[256];
    struct hk_err err = {.code = HK_OK};
    struct hk_oauth_answer answer = {.token = NULL};
    enum hk_code rc = hk_oauth_answer_read(facts->body, &answer, &err);
    if (facts->status == 200 && rc == HK_OK && answer.token) {
        note_token(o, &answer);
    } else if (facts->status == 200) {
        note_failure(o, rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_TOKEN,
                     rc == HK_OK ? "its answer holds no access_token" : err.message);
    } else {
        (void)snprintf(text, sizeof text, "HTTP %d%s%s", facts->status, answer.error[0] ? " " : "",
                       answer.error);
        note_failure(o, fault_of(facts->status), text);
    }
    hk_oauth_answer_fini(&answer);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct hk_oauth *o = arg;
    const struct hk_facts *facts = &result->facts;
    char text[HK_HTTP_ERROR_MAX];
    o->asking = false;
    if (facts->status) {
        take_answer(o, facts);
    } else {
        (void)hk_str_copy(text, sizeof text, facts->error);
        note_failure(o, stays(facts->fault) ? facts->fault : HK_FAULT_TOKEN, text);
    }
    hk_timer_start(o->owner->soon, 0); /* out of the endpoint's own callback */
}

static void ask(struct hk_oauth *o)
{
    struct hk_err err = {.code = HK_OK};
    const struct hk_delivery delivery = {
        .msg = &o->msg, .attempt = 1, .timeout_ms = ASK_MS, .done = on_answer, .arg = o};
    if (o->asking || now_of(o) < o->quiet_until_ms)
        return;
    o->asking = true;
    if (o->endpoint->ops->send(o->endpoint, &delivery, &err) == HK_OK)
        return;
    o->asking = false;
    note_failure(o, HK_FAULT_LOCAL, err.message);
}

/* ---- those who wait ---- */

static void authorize(struct hk_oauth *o, struct hk_http_transfer *t)
{
    struct hk_err err = {.code = HK_OK};
    t->token_serial = o->serial;
    enum hk_code rc = hk_request_authorize(&t->request, &t->unsigned_at, o->token, &err);
    if (rc == HK_OK)
        o->owner->wire->begin(t);
    else
        hk_http_fail(t, rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_INVALID_PAYLOAD, err.message);
}

void hk_oauth_next(struct hk_http_sink *owner)
{
    struct hk_oauth *o = owner->oauth;
    if (!o || !owner->unauthorized.first)
        return;
    uint64_t now_ms = now_of(o);
    if (o->token && now_ms >= o->end_ms)
        forget_token(o);
    if (!o->token || now_ms >= o->renew_ms)
        ask(o);
    while (o->token && owner->unauthorized.first)
        authorize(o, owner->unauthorized.first);
    while (!o->asking && owner->unauthorized.first)
        hk_http_fail(owner->unauthorized.first, o->fault, o->error);
}

void hk_oauth_begin(struct hk_http_transfer *t)
{
    t->renewed = false;
    t->unsigned_at = hk_request_mark(&t->request);
    hk_http_move(t, &t->self->unauthorized);
    hk_oauth_next(t->self);
}

bool hk_oauth_again(struct hk_http_transfer *t)
{
    struct hk_oauth *o = t->self->oauth;
    if (!o || t->status != 401 || t->renewed)
        return false;
    t->renewed = true;
    if (t->token_serial == o->serial)
        forget_token(o);
    hk_http_rewind(t);
    hk_http_move(t, &t->self->unauthorized);
    return true;
}

/* ---- making and ending ---- */

/* application/x-www-form-urlencoded */
static void add_encoded(struct hk_buf *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        if (hk_ascii_isalpha(*text) || hk_ascii_isdigit(*text) || strchr("-._*", *text))
            (void)hk_buf_addc(out, *text);
        else if (c == ' ')
            (void)hk_buf_addc(out, '+');
        else
            (void)hk_buf_add(out, escape, sizeof escape);
    }
}

static void add_field(struct hk_buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    (void)hk_buf_addf(out, "%s%s=", out->len ? "&" : "", name);
    add_encoded(out, value);
}

static enum hk_code make_form(struct hk_oauth *o, const struct hk_http_oauth *from)
{
    add_field(&o->form, "grant_type", "client_credentials");
    add_field(&o->form, "client_id", from->in_body ? from->client_id : NULL);
    add_field(&o->form, "client_secret", from->in_body ? from->client_secret : NULL);
    add_field(&o->form, "scope", from->scope);
    add_field(&o->form, "audience", from->audience);
    o->msg.payload = hk_buf_str(&o->form);
    return hk_buf_status(&o->form);
}

/* "Basic …" of both, encoded as a form is (RFC 6749, 2.3.1). */
static enum hk_code make_basic(const struct hk_http_oauth *from, struct hk_buf *out)
{
    struct hk_buf plain;
    hk_buf_init(&plain, BASIC_MAX);
    add_encoded(&plain, from->client_id);
    (void)hk_buf_addc(&plain, ':');
    add_encoded(&plain, from->client_secret);
    enum hk_code rc = hk_buf_status(&plain);
    if (rc == HK_OK) {
        (void)hk_buf_adds(out, "Basic ");
        rc = hk_buf_add_base64(out, hk_buf_cstr(&plain), plain.len);
    }
    hk_secret_wipe(plain.data, plain.len);
    hk_buf_fini(&plain);
    return rc;
}

static enum hk_code open_endpoint(struct hk_oauth *o, const struct hk_http_options *of, const char *basic,
                                  struct hk_err *err)
{
    const struct hk_http_header headers[] = {
        {.name = "Content-Type", .value = "application/x-www-form-urlencoded"},
        {.name = "Accept", .value = "application/json"},
        {.name = "Authorization", .value = basic, .secret = true}};
    struct hk_http_options options = {.name = of->name,
                                      .url = of->oauth->token_url,
                                      .bare = true,
                                      .hide = of->oauth->client_secret,
                                      .headers = headers,
                                      .n_headers = of->oauth->in_body ? 2 : 3,
                                      .ca_file = of->ca_file,
                                      .cert_file = of->cert_file,
                                      .key_file = of->key_file,
                                      .allow = of->allow,
                                      .n_allow = of->n_allow,
                                      .proxy = of->proxy,
                                      .max_connections = 1};
    return hk_http_open(o->owner->loop, &options, &o->endpoint, err);
}

enum hk_code hk_oauth_new(struct hk_http_sink *owner, const struct hk_http_options *options,
                          struct hk_oauth **out, struct hk_err *err)
{
    struct hk_oauth *o = hk_mem_zalloc(1, sizeof *o);
    struct hk_buf basic;
    if (!o)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    o->owner = owner;
    hk_buf_init(&o->form, FORM_MAX);
    hk_buf_init(&basic, 2 * BASIC_MAX);
    enum hk_code rc = make_form(o, options->oauth);
    if (rc == HK_OK)
        rc = make_basic(options->oauth, &basic);
    if (rc == HK_OK)
        rc = open_endpoint(o, options, hk_buf_cstr(&basic), err);
    else
        rc = hk_err_set(err, rc == HK_NOMEM ? rc : HK_INVALID, "client_id and client_secret are too long");
    hk_secret_wipe(basic.data, basic.len);
    hk_buf_fini(&basic);
    if (rc == HK_OK)
        *out = o;
    else
        hk_oauth_free(o);
    return rc;
}

void hk_oauth_free(struct hk_oauth *o)
{
    if (!o)
        return;
    hk_http_discard(o->endpoint);
    forget_token(o);
    hk_secret_wipe(o->form.data, o->form.len);
    hk_buf_fini(&o->form);
    hk_mem_free(o);
}
