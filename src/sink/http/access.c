/* SPDX-License-Identifier: Apache-2.0 */
/* Where tokens come from. A source has an inner HTTP sink for its endpoint, with the address policy, proxy, authorities and client
 * certificate of the destination.
 *
 * - However many want the token, one question is under way.
 * - Before the token expires (a tenth of its life, at most a minute), the next one who wants it makes the source ask for another, and
 *   gets the old one. Without such nobody asks.
 * - When there is none, the reason is kept, and nobody asks again for a second. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/str.h"
#include "sink/http/access.h"
#include "sink/http/impl.h"
#include "sink/http/sign.h"

enum {
    ASK_MS = 30000,
    QUIET_MS = 1000, /* after a failure */
    EARLY_MAX_MS = 60000,
    UNSAID_S = 3600, /* an endpoint that does not say how long a token lives */
    FORM_MAX = 8192,
    BASIC_MAX = 4096,
    MINTED_MAX = 8192
};

struct hk_access {
    struct hk_loop *loop;
    hk_access_news_fn *news;
    hk_access_mint_fn *mint; /* makes it; NULL: the endpoint does */
    void *arg, *mint_arg;
    const char *who; /* that gives tokens, for messages */
    bool metadata;
    struct hk_sink *endpoint;
    struct hk_buf form;
    struct hk_message msg; /* whose payload the form is */
    bool asking;
    char *text; /* NULL: none */
    uint64_t serial;
    uint64_t renew_ms, end_ms; /* of the token */
    uint64_t quiet_until_ms;
    enum hk_fault fault; /* of the last answer; NONE: it was a token */
    char error[HK_HTTP_ERROR_MAX];
};

static uint64_t now_of(const struct hk_access *k)
{
    return hk_loop_now_ms(k->loop);
}

static void forget_token(struct hk_access *k)
{
    hk_secret_wipe(k->text, k->text ? strlen(k->text) : 0);
    hk_mem_free(k->text);
    k->text = NULL;
}

/* ---- what the endpoint said ---- */

static void note_failure(struct hk_access *k, enum hk_fault fault, const char *text)
{
    k->fault = fault;
    k->quiet_until_ms = now_of(k) + QUIET_MS;
    (void)snprintf(k->error, sizeof k->error, "%s: %.280s", k->who, text);
}

/* Takes the text over. */
static void note_token(struct hk_access *k, char *text, uint64_t life_s)
{
    uint64_t life_ms = (life_s ? life_s : UNSAID_S) * 1000;
    uint64_t early_ms = life_ms / 10 < EARLY_MAX_MS ? life_ms / 10 : EARLY_MAX_MS;
    forget_token(k);
    k->text = text;
    k->serial++;
    k->fault = HK_FAULT_NONE;
    k->end_ms = now_of(k) + life_ms;
    k->renew_ms = k->end_ms - early_ms;
}

/* RFC 6749, 5.2: 400 with its code, or 401; the metadata server says 404 of a machine without a service account. What else it says is
 * about itself. */
static enum hk_fault fault_of(const struct hk_access *k, int status)
{
    bool refused = status == 400 || status == 401 || status == 403 || (k->metadata && status == 404);
    return refused ? HK_FAULT_TOKEN_REFUSED : HK_FAULT_TOKEN;
}

static bool stays(enum hk_fault fault)
{
    return fault == HK_FAULT_BLOCKED || fault == HK_FAULT_LOCAL || fault == HK_FAULT_PROXY ||
           fault == HK_FAULT_PROXY_AUTH || fault == HK_FAULT_PROXY_REFUSED;
}

static void take_answer(struct hk_access *k, const struct hk_facts *facts)
{
    char text[256];
    struct hk_err err = {.code = HK_OK};
    struct hk_oauth_answer answer = {.token = NULL};
    enum hk_code rc = hk_oauth_answer_read(facts->body, &answer, &err);
    if (facts->status == 200 && rc == HK_OK && answer.token) {
        note_token(k, answer.token, answer.lifetime_s);
        answer.token = NULL;
    } else if (facts->status == 200) {
        note_failure(k, rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_TOKEN,
                     rc == HK_OK ? "its answer holds no access_token" : err.message);
    } else {
        (void)snprintf(text, sizeof text, "HTTP %d%s%s", facts->status, answer.error[0] ? " " : "",
                       answer.error);
        note_failure(k, fault_of(k, facts->status), text);
    }
    hk_oauth_answer_fini(&answer);
}

static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct hk_access *k = arg;
    const struct hk_facts *facts = &result->facts;
    char text[HK_HTTP_ERROR_MAX];
    k->asking = false;
    if (facts->status) {
        take_answer(k, facts);
    } else {
        (void)hk_str_copy(text, sizeof text, facts->error);
        note_failure(k, stays(facts->fault) ? facts->fault : HK_FAULT_TOKEN, text);
    }
    k->news(k->arg);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void mint(struct hk_access *k)
{
    struct hk_err err = {.code = HK_OK};
    struct hk_buf text;
    uint64_t life_s = 0;
    hk_buf_init(&text, MINTED_MAX);
    enum hk_code rc = k->mint(k->mint_arg, wall_ms(), &text, &life_s, &err);
    char *copy = rc == HK_OK ? hk_mem_strndup(text.data, text.len) : NULL;
    hk_secret_wipe(text.data, text.len);
    hk_buf_fini(&text);
    if (copy)
        note_token(k, copy, life_s);
    else
        note_failure(k, rc == HK_OK || rc == HK_NOMEM ? HK_FAULT_LOCAL : HK_FAULT_TOKEN_REFUSED,
                     rc == HK_OK ? "out of memory" : err.message);
}

static void ask(struct hk_access *k)
{
    struct hk_err err = {.code = HK_OK};
    const struct hk_delivery delivery = {
        .msg = &k->msg, .attempt = 1, .timeout_ms = ASK_MS, .done = on_answer, .arg = k};
    if (k->asking || now_of(k) < k->quiet_until_ms)
        return;
    if (k->mint) {
        mint(k);
        return;
    }
    k->asking = true;
    if (k->endpoint->ops->send(k->endpoint, &delivery, &err) == HK_OK)
        return;
    k->asking = false;
    note_failure(k, HK_FAULT_LOCAL, err.message);
}

/* ---- those who want it ---- */

void hk_access_want(struct hk_access *k)
{
    if (k->text && now_of(k) >= k->end_ms)
        forget_token(k);
    if (!k->text || now_of(k) >= k->renew_ms)
        ask(k);
}

void hk_access_renew(struct hk_access *k)
{
    ask(k);
}

bool hk_access_is_asking(const struct hk_access *k)
{
    return k->asking;
}

const char *hk_access_text(struct hk_access *k, uint64_t *out_serial)
{
    *out_serial = k->serial;
    return k->text;
}

uint64_t hk_access_left_ms(const struct hk_access *k)
{
    return k->text && now_of(k) < k->end_ms ? k->end_ms - now_of(k) : 0;
}

void hk_access_refused(struct hk_access *k, uint64_t serial)
{
    if (serial == k->serial)
        forget_token(k);
}

enum hk_fault hk_access_failure(const struct hk_access *k, const char **out_text)
{
    *out_text = k->error;
    return k->fault;
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

static enum hk_code make_form(struct hk_access *k, const struct hk_http_oauth *from)
{
    add_field(&k->form, "grant_type", "client_credentials");
    add_field(&k->form, "client_id", from->in_body ? from->client_id : NULL);
    add_field(&k->form, "client_secret", from->in_body ? from->client_secret : NULL);
    add_field(&k->form, "scope", from->scope);
    add_field(&k->form, "audience", from->audience);
    k->msg.payload = hk_buf_str(&k->form);
    return hk_buf_status(&k->form);
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

static enum hk_code open_endpoint(struct hk_access *k, const struct hk_http_options *of, const char *basic,
                                  struct hk_err *err)
{
    static const struct hk_http_header google[] = {{.name = "Metadata-Flavor", .value = "Google"}};
    const struct hk_http_header headers[] = {
        {.name = "Content-Type", .value = "application/x-www-form-urlencoded"},
        {.name = "Accept", .value = "application/json"},
        {.name = "Authorization", .value = basic, .secret = true}};
    bool metadata = of->oauth->metadata;
    struct hk_http_options options = {.name = of->name,
                                      .url = of->oauth->token_url,
                                      .method = metadata ? "GET" : NULL,
                                      .bare = true,
                                      .hide = of->oauth->client_secret,
                                      .headers = metadata ? google : headers,
                                      .n_headers = metadata             ? 1
                                                   : of->oauth->in_body ? 2
                                                                        : 3,
                                      .ca_file = of->ca_file,
                                      .cert_file = of->cert_file,
                                      .key_file = of->key_file,
                                      .allow = of->oauth->allow ? of->oauth->allow : of->allow,
                                      .n_allow = of->oauth->allow ? of->oauth->n_allow : of->n_allow,
                                      .proxy = metadata ? NULL : of->proxy,
                                      .max_connections = 1};
    return hk_http_open(k->loop, &options, &k->endpoint, err);
}

static enum hk_code make_client(struct hk_access *k, const struct hk_http_options *options,
                                struct hk_err *err)
{
    struct hk_buf basic;
    hk_buf_init(&basic, 2 * BASIC_MAX);
    enum hk_code rc = make_form(k, options->oauth);
    if (rc == HK_OK)
        rc = make_basic(options->oauth, &basic);
    if (rc == HK_OK)
        rc = open_endpoint(k, options, hk_buf_cstr(&basic), err);
    else
        rc = hk_err_set(err, rc == HK_NOMEM ? rc : HK_INVALID, "client_id and client_secret are too long");
    hk_secret_wipe(basic.data, basic.len);
    hk_buf_fini(&basic);
    return rc;
}

enum hk_code hk_access_new(struct hk_loop *loop, const struct hk_http_options *options,
                           hk_access_news_fn *news, void *arg, struct hk_access **out, struct hk_err *err)
{
    const struct hk_http_oauth *from = options->oauth;
    struct hk_access *k = hk_mem_zalloc(1, sizeof *k);
    enum hk_code rc = HK_OK;
    if (!k)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    k->loop = loop;
    k->news = news;
    k->arg = arg;
    k->mint = from->mint;
    k->mint_arg = from->mint_arg;
    k->metadata = from->metadata;
    k->who = from->mint ? "credentials" : from->metadata ? "metadata server" : "token endpoint";
    hk_buf_init(&k->form, FORM_MAX);
    if (from->metadata)
        rc = open_endpoint(k, options, NULL, err);
    else if (!from->mint)
        rc = make_client(k, options, err);
    if (rc == HK_OK)
        *out = k;
    else
        hk_access_free(k);
    return rc;
}

void hk_access_free(struct hk_access *k)
{
    if (!k)
        return;
    hk_http_discard(k->endpoint);
    forget_token(k);
    hk_secret_wipe(k->form.data, k->form.len);
    hk_buf_fini(&k->form);
    hk_mem_free(k);
}
