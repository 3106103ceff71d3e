/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/str.h"
#include "sink/aws/keys.h"
#include "sink/aws/provider.h"
#include "sink/aws/question.h"
#include "sink/http/impl.h"

enum {
    FRESH_MS = 60000, /* then a file is read again */
    STS_MS = 30000,
    NEAR_MS = 5000,   /* a link-local address that is there answers within milliseconds */
    QUIET_MS = 1000,  /* after a failure */
    DOUBT_MS = 10000, /* keys that are younger than this are not asked for again when they are refused */
    EARLY_MAX_MS = 300000,
    UNSAID_MS = 900000, /* keys without an end */
    ENDED_MS = 60000    /* keys that have ended when they come: our clock may be wrong */
};

struct hk_aws_provider {
    struct hk_loop *loop;
    hk_loop_fn *wake;
    void *arg;
    struct hk_timer *soon; /* answers are judged outside of the callbacks of the asking sink */
    struct hk_pool pool;   /* of the options; wiped */
    struct hk_aws_provider_options options;
    struct hk_cidr *allow;

    struct hk_aws_credentials credentials;
    bool known, fetched;
    enum hk_aws_where where; /* that the last question went to */
    uint64_t known_ms, renew_ms, end_ms;

    /* the question that is under way */
    struct hk_aws_question question;
    struct hk_message msg; /* whose payload its body is */
    struct hk_sink *asked; /* NULL: none is */
    bool asking, answered;
    int status;
    enum hk_fault answer_fault;
    struct hk_buf answer; /* with secrets */

    /* the last failure */
    uint64_t quiet_until_ms;
    enum hk_fault fault;
    char error[HK_ERR_MESSAGE_MAX];
};

static uint64_t now_of(const struct hk_aws_provider *p)
{
    return hk_loop_now_ms(p->loop);
}

static int64_t wall_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void forget(struct hk_aws_provider *p)
{
    hk_mem_wipe(&p->credentials, sizeof p->credentials);
    p->known = p->fetched = false;
}

static void end_question(struct hk_aws_provider *p)
{
    hk_mem_wipe(p->answer.data, p->answer.len);
    hk_buf_fini(&p->answer);
    hk_aws_question_fini(&p->question);
    p->asking = p->answered = false;
}

/* ---- answers ---- */

static void note_failure(struct hk_aws_provider *p, enum hk_fault fault, const char *text)
{
    p->fault = fault;
    p->quiet_until_ms = now_of(p) + QUIET_MS;
    (void)snprintf(p->error, sizeof p->error, "%s", text);
    end_question(p);
}

static void note_keys(struct hk_aws_provider *p, const struct hk_aws_keys *keys)
{
    uint64_t now_ms = now_of(p);
    int64_t left_ms = keys->end_ms ? keys->end_ms - wall_ms() : UNSAID_MS;
    uint64_t life_ms = left_ms > 0 ? (uint64_t)left_ms : ENDED_MS;
    uint64_t early_ms = life_ms / 4 < EARLY_MAX_MS ? life_ms / 4 : EARLY_MAX_MS;
    p->credentials = keys->credentials;
    p->known = p->fetched = true;
    p->known_ms = now_ms;
    p->renew_ms = now_ms + life_ms - early_ms;
    p->end_ms = keys->end_ms ? now_ms + life_ms : UINT64_MAX;
    end_question(p);
}

/* What a refusal says of us, and not of the other side's state. */
static enum hk_fault fault_of(const struct hk_aws_provider *p, const char *code)
{
    bool maybe = false;
    if (strcmp(code, "IDPCommunicationError") == 0)
        return HK_FAULT_TOKEN;
    enum hk_fault fault = hk_aws_fault(p->status, code, &maybe);
    return fault == HK_FAULT_BROKER_AUTH || fault == HK_FAULT_BROKER_REFUSED ? HK_FAULT_TOKEN_REFUSED
                                                                             : HK_FAULT_TOKEN;
}

static void judge_refusal(struct hk_aws_provider *p)
{
    struct hk_aws_error error;
    char text[HK_ERR_MESSAGE_MAX];
    const char *hint =
        p->question.step == HK_AWS_STEP_ROLE && p->status == 404 ? ": the instance has no role" : "";
    hk_aws_error_read(hk_buf_str(&p->answer), &error);
    (void)snprintf(text, sizeof text, "no AWS credentials: %s says HTTP %d %s%s%.120s%s",
                   hk_aws_question_whom(&p->question), p->status, error.code, error.words[0] ? ": " : "",
                   error.words, hint);
    note_failure(p, fault_of(p, error.code), text);
}

static void judge_keys(struct hk_aws_provider *p)
{
    struct hk_aws_keys keys;
    struct hk_aws_error error = {.code = ""};
    char text[HK_ERR_MESSAGE_MAX];
    bool is_sts = p->question.step == HK_AWS_STEP_STS;
    memset(&keys, 0, sizeof keys);
    if ((is_sts ? hk_aws_keys_xml : hk_aws_keys_json)(hk_buf_str(&p->answer), &keys, &error)) {
        note_keys(p, &keys);
    } else {
        (void)snprintf(text, sizeof text, "no AWS credentials: %s gave no keys%s%s%s%.120s",
                       hk_aws_question_whom(&p->question), error.code[0] ? ": " : "", error.code,
                       error.words[0] ? " " : "", error.words);
        note_failure(p, HK_FAULT_TOKEN, text);
    }
    hk_mem_wipe(&keys, sizeof keys);
}

static void say_unreached(struct hk_aws_provider *p)
{
    static const char hop[] = "; in a container the instance's hop limit for metadata must be 2";
    char text[HK_ERR_MESSAGE_MAX];
    bool is_hop = p->question.step == HK_AWS_STEP_TOKEN && p->answer_fault == HK_FAULT_TIMEOUT;
    bool is_instance = p->question.step >= HK_AWS_STEP_TOKEN;
    (void)snprintf(text, sizeof text, "no AWS credentials%s: %s: %.160s%s",
                   is_instance ? " in the configuration or the environment" : "",
                   hk_aws_question_whom(&p->question), hk_buf_cstr(&p->answer), is_hop ? hop : "");
    bool stays = p->answer_fault == HK_FAULT_BLOCKED || p->answer_fault == HK_FAULT_LOCAL ||
                 p->answer_fault == HK_FAULT_PROXY || p->answer_fault == HK_FAULT_PROXY_AUTH ||
                 p->answer_fault == HK_FAULT_PROXY_REFUSED;
    note_failure(p, stays ? p->answer_fault : HK_FAULT_TOKEN, text);
}

/* ---- questions ---- */

/* The answer is copied: the sink that asked is not needed any more. */
static void on_answer(void *arg, const struct hk_sink_result *result)
{
    struct hk_aws_provider *p = arg;
    const struct hk_facts *facts = &result->facts;
    struct hk_str said = facts->status ? facts->body : facts->error;
    p->status = facts->status;
    p->answer_fault = facts->fault;
    p->answered = true;
    (void)hk_buf_add(&p->answer, said.ptr, said.len);
    hk_timer_start(p->soon, 0);
}

static enum hk_code open_asking(struct hk_aws_provider *p, struct hk_err *err)
{
    const struct hk_aws_question *q = &p->question;
    bool near = q->step != HK_AWS_STEP_STS;
    const struct hk_http_header headers[] = {{.name = near ? "Accept" : "Content-Type",
                                              .value = near ? "*/*" : "application/x-www-form-urlencoded"},
                                             {.name = q->header, .value = q->value, .secret = true}};
    const struct hk_http_options options = {.name = p->options.name,
                                            .url = q->url,
                                            .method = q->method,
                                            .bare = true,
                                            .headers = headers,
                                            .n_headers = q->header ? 2 : 1,
                                            .ca_file = p->options.ca_file,
                                            .allow = near ? q->allow : p->allow,
                                            .n_allow = near ? q->n_allow : p->options.n_allow,
                                            .proxy = near ? NULL : p->options.proxy,
                                            .max_connections = 1};
    return hk_http_open(p->loop, &options, &p->asked, err);
}

static void ask(struct hk_aws_provider *p)
{
    struct hk_err err = {.message = ""};
    p->msg = (struct hk_message){.payload = hk_buf_str(&p->question.body)};
    const struct hk_delivery delivery = {.msg = &p->msg,
                                         .attempt = 1,
                                         .wall_ms = wall_ms(),
                                         .timeout_ms = p->question.step == HK_AWS_STEP_STS ? STS_MS : NEAR_MS,
                                         .done = on_answer,
                                         .arg = p};
    enum hk_code rc = open_asking(p, &err);
    if (rc == HK_OK)
        rc = p->asked->ops->send(p->asked, &delivery, &err);
    if (rc == HK_OK)
        return;
    hk_http_discard(p->asked);
    p->asked = NULL;
    note_failure(p, HK_FAULT_LOCAL, err.message);
}

static void begin(struct hk_aws_provider *p, enum hk_aws_where where)
{
    struct hk_err err = {.message = ""};
    p->asking = true;
    p->where = where;
    hk_buf_init(&p->answer, HK_HTTP_READ_MAX);
    hk_aws_question_init(&p->question);
    enum hk_code rc = hk_aws_question_first(&p->question, where, &p->options.source, p->options.region, &err);
    if (rc == HK_OK)
        ask(p);
    else
        note_failure(p, rc == HK_DENIED ? HK_FAULT_BROKER_AUTH : HK_FAULT_LOCAL, err.message);
}

static void go_on(struct hk_aws_provider *p)
{
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_aws_question_next(&p->question, &p->options.source, hk_buf_str(&p->answer), &err);
    hk_mem_wipe(p->answer.data, p->answer.len);
    hk_buf_reset(&p->answer);
    if (rc == HK_OK)
        ask(p);
    else
        note_failure(p, HK_FAULT_TOKEN, err.message);
}

/* An answer has come. */
static void on_soon(void *arg)
{
    struct hk_aws_provider *p = arg;
    enum hk_aws_step step = p->question.step;
    hk_http_discard(p->asked);
    p->asked = NULL;
    if (!p->answered)
        return;
    p->answered = false;
    if (hk_buf_status(&p->answer) != HK_OK)
        note_failure(p, HK_FAULT_LOCAL, "out of memory");
    else if (!p->status)
        say_unreached(p);
    else if (p->status != 200)
        judge_refusal(p);
    else if (step == HK_AWS_STEP_TOKEN || step == HK_AWS_STEP_ROLE)
        go_on(p);
    else
        judge_keys(p);
    if (!p->asking)
        p->wake(p->arg);
}

/* ---- for the client ---- */

static enum hk_code say_failure(const struct hk_aws_provider *p, enum hk_fault *out_fault, struct hk_err *err)
{
    *out_fault = p->fault;
    return hk_err_set(err, HK_UNAVAILABLE, "%s", p->error);
}

/* Temporary keys that are here, and whether new ones are due. */
static enum hk_code use_fetched(struct hk_aws_provider *p, enum hk_aws_where where,
                                const struct hk_aws_credentials **out, enum hk_fault *out_fault,
                                struct hk_err *err)
{
    uint64_t now_ms = now_of(p);
    if (p->known && now_ms >= p->end_ms)
        forget(p);
    bool due = !p->known || now_ms >= p->renew_ms;
    if (due && !p->asking && now_ms >= p->quiet_until_ms)
        begin(p, where);
    *out = &p->credentials;
    if (p->known)
        return HK_OK;
    return p->asking ? HK_BUSY : say_failure(p, out_fault, err);
}

enum hk_code hk_aws_provider_get(struct hk_aws_provider *p, const struct hk_aws_credentials **out,
                                 enum hk_fault *out_fault, struct hk_err *err)
{
    enum hk_aws_where where = HK_AWS_HERE;
    struct hk_aws_credentials found;
    uint64_t now_ms = now_of(p);
    *out = &p->credentials;
    if (p->fetched || p->asking)
        return use_fetched(p, p->where, out, out_fault, err);
    if (p->known && now_ms < p->known_ms + FRESH_MS)
        return HK_OK;
    memset(&found, 0, sizeof found);
    enum hk_code rc = hk_aws_credentials_load(&p->options.source, &found, &where, err);
    if (rc == HK_OK && where != HK_AWS_HERE)
        return use_fetched(p, where, out, out_fault, err);
    forget(p);
    *out_fault = rc == HK_DENIED ? HK_FAULT_BROKER_AUTH : HK_FAULT_LOCAL;
    if (rc == HK_OK) {
        p->credentials = found;
        p->known = true;
        p->known_ms = now_ms;
    }
    hk_mem_wipe(&found, sizeof found);
    return rc;
}

void hk_aws_provider_doubt(struct hk_aws_provider *p)
{
    if (!p->fetched || now_of(p) >= p->known_ms + DOUBT_MS)
        forget(p);
}

/* ---- making and ending ---- */

static bool copy_options(struct hk_aws_provider *p, const struct hk_aws_provider_options *o)
{
    const char *const from[] = {o->name,         o->region,      o->source.key_id,  o->source.secret,
                                o->source.token, o->source.file, o->source.profile, o->ca_file};
    const char **const to[] = {&p->options.name,           &p->options.region,
                               &p->options.source.key_id,  &p->options.source.secret,
                               &p->options.source.token,   &p->options.source.file,
                               &p->options.source.profile, &p->options.ca_file};
    p->options = *o;
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++)
        if (from[i] && !(*to[i] = hk_pool_copy_str(&p->pool, hk_str_of(from[i]))))
            return false;
    p->allow = hk_mem_zalloc(o->n_allow + 1, sizeof *p->allow);
    if (!p->allow)
        return false;
    for (size_t i = 0; i < o->n_allow; i++)
        p->allow[i] = o->allow[i];
    p->options.proxy = o->proxy ? hk_proxy_copy(o->proxy, &p->pool) : NULL;
    return !o->proxy || p->options.proxy;
}

enum hk_code hk_aws_provider_new(struct hk_loop *loop, const struct hk_aws_provider_options *o,
                                 struct hk_aws_provider **out, struct hk_err *err)
{
    struct hk_aws_provider *p = hk_mem_zalloc(1, sizeof *p);
    if (!p)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    p->loop = loop;
    p->wake = o->wake;
    p->arg = o->arg;
    p->fault = HK_FAULT_TOKEN;
    if (!copy_options(p, o) || hk_timer_new(loop, on_soon, p, &p->soon) != HK_OK) {
        hk_aws_provider_free(p);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    *out = p;
    return HK_OK;
}

void hk_aws_provider_free(struct hk_aws_provider *p)
{
    if (!p)
        return;
    hk_http_discard(p->asked);
    end_question(p);
    hk_timer_free(p->soon);
    hk_mem_free(p->allow);
    hk_pool_wipe(&p->pool);
    hk_mem_wipe(p, sizeof *p);
    hk_mem_free(p);
}
