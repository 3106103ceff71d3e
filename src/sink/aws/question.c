/* SPDX-License-Identifier: Apache-2.0 */
/* Link-local addresses are refused as destinations. Those of the metadata services are let through here, and only here: their answers
 * become keys and never reach a message. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/aws/form.h"
#include "sink/aws/question.h"
#include "sink/file.h"

enum {
    BODY_MAX = 32 * 1024,
    TOKEN_MAX = 16 * 1024,
    SESSION_MAX = 65
};

#define INSTANCE_URL    "http://169.254.169.254"
#define INSTANCE_URL_V6 "http://[fd00:ec2::254]"
#define CONTAINER_URL   "http://169.254.170.2"
#define ROLE_PATH       "/latest/meta-data/iam/security-credentials/"
#define TOKEN_LIFE      "21600"

#define LOOPBACK                                                                                             \
    {.addr = {127}, .bits = 8},                                                                              \
    {                                                                                                        \
        .addr = {[15] = 1}, .bits = 128, .v6 = true                                                          \
    }

/* Loopback: AWS_EC2_METADATA_SERVICE_ENDPOINT may name a server of the operator's. */
static const struct hk_cidr instance_allow[] = {
    LOOPBACK,
    {.addr = {169, 254, 169, 254}, .bits = 32},
    {.addr = {0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54}, .bits = 128, .v6 = true}};
static const struct hk_cidr container_allow[] = {
    LOOPBACK,
    {.addr = {169, 254, 170, 2}, .bits = 32},
    {.addr = {169, 254, 170, 23}, .bits = 32},
    {.addr = {0xfd, 0x00, 0x0e, 0xc2, [15] = 0x23}, .bits = 128, .v6 = true}};

void hk_aws_question_init(struct hk_aws_question *q)
{
    *q = (struct hk_aws_question){.method = "GET"};
    hk_buf_init(&q->body, BODY_MAX);
}

void hk_aws_question_fini(struct hk_aws_question *q)
{
    hk_mem_wipe(q->body.data, q->body.len);
    hk_buf_fini(&q->body);
    hk_mem_wipe(q, sizeof *q);
}

const char *hk_aws_domain(const char *region)
{
    return hk_str_starts(hk_str_of(region), hk_str_of("cn-")) ? "amazonaws.com.cn" : "amazonaws.com";
}

const char *hk_aws_question_whom(const struct hk_aws_question *q)
{
    static const char *const names[] = {"STS", "the credentials endpoint for containers",
                                        "the instance metadata service", "the instance metadata service",
                                        "the instance metadata service"};
    return names[q->step];
}

static bool set_url(struct hk_aws_question *q, const char *base, const char *path, const char *more)
{
    size_t len = strlen(base);
    len -= len && base[len - 1] == '/' && path[0] == '/';
    int n = snprintf(q->url, sizeof q->url, "%.*s%s%s", (int)len, base, path, more);
    return n > 0 && (size_t)n < sizeof q->url;
}

static enum hk_code wrong_url(const char *variable, struct hk_err *err)
{
    return hk_err_set(err, HK_DENIED, "no AWS credentials: %s is too long, or no URL that may be asked",
                      variable);
}

/* ---- a secret in a file ---- */

/* Its text without blanks at the ends. */
static enum hk_code read_secret(const char *path, char *out, size_t room, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_err why = {.message = ""};
    struct hk_buf text;
    hk_buf_init(&text, room);
    enum hk_code rc = hk_sink_file_read(path, &text, &why);
    struct hk_str secret = hk_buf_str(&text);
    while (secret.len && strchr("\n\r ", secret.ptr[secret.len - 1]))
        secret.len--;
    bool good = rc == HK_OK && secret.len && hk_str_copy(out, room, secret);
    hk_mem_wipe(text.data, text.len);
    hk_buf_fini(&text);
    if (good || rc == HK_NOMEM)
        return good ? HK_OK : hk_err_set(err, rc, "%s", why.message);
    return hk_err_set(err, HK_DENIED, "no AWS credentials: %s: %s", hk_show(hk_str_of(path), shown),
                      rc == HK_OK ? "it is empty or too long" : why.message);
}

static bool is_visible(struct hk_str s, bool blanks)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] > '~' || s.ptr[i] < ' ' || (s.ptr[i] == ' ' && !blanks))
            return false;
    return s.len > 0;
}

/* ---- STS ---- */

static void add_field(struct hk_buf *out, const char *name, const char *value)
{
    (void)hk_buf_addf(out, "&%s=", name);
    hk_aws_form_add(out, hk_str_of(value));
}

static enum hk_code make_body(struct hk_aws_question *q, const struct hk_aws_source *source,
                              const char *token, struct hk_err *err)
{
    const char *session = hk_aws_source_env(source, "AWS_ROLE_SESSION_NAME");
    (void)hk_buf_adds(&q->body, "Action=AssumeRoleWithWebIdentity&Version=2011-06-15");
    add_field(&q->body, "RoleArn", hk_aws_source_env(source, "AWS_ROLE_ARN"));
    add_field(&q->body, "RoleSessionName", session && strlen(session) < SESSION_MAX ? session : "hikyaku");
    add_field(&q->body, "WebIdentityToken", token);
    enum hk_code rc = hk_buf_status(&q->body);
    if (rc == HK_OK)
        return HK_OK;
    return hk_err_set(err, rc == HK_NOMEM ? rc : HK_DENIED, "no AWS credentials: %s",
                      rc == HK_NOMEM ? "out of memory" : "the web identity token is too long");
}

static enum hk_code ask_sts(struct hk_aws_question *q, const struct hk_aws_source *source, const char *region,
                            struct hk_err *err)
{
    char regional[256];
    const char *endpoint = hk_aws_source_env(source, "AWS_ENDPOINT_URL_STS");
    const char *variable = endpoint ? "AWS_ENDPOINT_URL_STS" : "AWS_ENDPOINT_URL";
    q->method = "POST";
    endpoint = endpoint ? endpoint : hk_aws_source_env(source, "AWS_ENDPOINT_URL");
    (void)snprintf(regional, sizeof regional, "https://sts.%s.%s", region, hk_aws_domain(region));
    if (!set_url(q, endpoint ? endpoint : regional, "/", ""))
        return wrong_url(variable, err);
    char *token = hk_mem_alloc(TOKEN_MAX);
    if (!token)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc =
        read_secret(hk_aws_source_env(source, "AWS_WEB_IDENTITY_TOKEN_FILE"), token, TOKEN_MAX, err);
    if (rc == HK_OK)
        rc = make_body(q, source, token, err);
    hk_mem_wipe(token, TOKEN_MAX);
    hk_mem_free(token);
    return rc;
}

/* ---- containers ---- */

/* Without TLS the token must not leave the host. */
static bool may_be_asked(const char *url)
{
    struct hk_str host = hk_str_of(url);
    struct hk_ip ip;
    if (hk_str_starts(host, hk_str_of("https://")))
        return true;
    if (!hk_str_starts(host, hk_str_of("http://")))
        return false;
    host = (struct hk_str){host.ptr + 7, strcspn(host.ptr + 7, "/?#")};
    if (host.len && host.ptr[0] == '[') {
        host = (struct hk_str){host.ptr + 1, host.len - 1};
        host = hk_str_cut(&host, ']');
    } else {
        host = hk_str_cut(&host, ':');
    }
    if (hk_str_eqi(host, hk_str_of("localhost")))
        return true;
    for (size_t i = 0; i < sizeof container_allow / sizeof container_allow[0]; i++)
        if (hk_ip_parse(host, &ip) && hk_cidr_has(&container_allow[i], &ip))
            return true;
    return false;
}

static enum hk_code authorize(struct hk_aws_question *q, const struct hk_aws_source *source,
                              struct hk_err *err)
{
    const char *file = hk_aws_source_env(source, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token = hk_aws_source_env(source, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    enum hk_code rc = HK_OK;
    if (!file && !token)
        return HK_OK;
    if (file)
        rc = read_secret(file, q->value, sizeof q->value, err);
    else if (!hk_str_copy(q->value, sizeof q->value, hk_str_of(token)))
        rc = HK_DENIED;
    q->header = "Authorization";
    if (rc == HK_OK && is_visible(hk_str_of(q->value), true))
        return HK_OK;
    return file && rc != HK_OK ? rc
                               : hk_err_set(err, HK_DENIED,
                                            "no AWS credentials: the authorization token for containers is "
                                            "too long, or holds control characters");
}

static enum hk_code ask_container(struct hk_aws_question *q, const struct hk_aws_source *source,
                                  struct hk_err *err)
{
    const char *relative = hk_aws_source_env(source, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = hk_aws_source_env(source, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    q->allow = container_allow;
    q->n_allow = sizeof container_allow / sizeof container_allow[0];
    if (relative && (relative[0] != '/' || !set_url(q, CONTAINER_URL, relative, "")))
        return wrong_url("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", err);
    if (!relative && (!may_be_asked(full) || !set_url(q, full, "", "")))
        return wrong_url("AWS_CONTAINER_CREDENTIALS_FULL_URI", err);
    return authorize(q, source, err);
}

/* ---- instances ---- */

static bool instance_url(struct hk_aws_question *q, const struct hk_aws_source *source, const char *path,
                         const char *more)
{
    const char *given = hk_aws_source_env(source, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *mode = hk_aws_source_env(source, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");
    bool v6 = mode && hk_str_eqi(hk_str_of(mode), hk_str_of("IPv6"));
    return set_url(q, given ? given : v6 ? INSTANCE_URL_V6 : INSTANCE_URL, path, more);
}

static enum hk_code ask_instance(struct hk_aws_question *q, const struct hk_aws_source *source,
                                 struct hk_err *err)
{
    q->method = "PUT";
    q->allow = instance_allow;
    q->n_allow = sizeof instance_allow / sizeof instance_allow[0];
    q->header = "X-aws-ec2-metadata-token-ttl-seconds";
    (void)hk_str_copy(q->value, sizeof q->value, hk_str_of(TOKEN_LIFE));
    return instance_url(q, source, "/latest/api/token", "")
               ? HK_OK
               : wrong_url("AWS_EC2_METADATA_SERVICE_ENDPOINT", err);
}

static enum hk_code wrong_answer(const struct hk_aws_question *q, const char *what, struct hk_err *err)
{
    return hk_err_set(err, HK_DENIED, "no AWS credentials: %s gave no %s", hk_aws_question_whom(q), what);
}

enum hk_code hk_aws_question_next(struct hk_aws_question *q, const struct hk_aws_source *source,
                                  struct hk_str answer, struct hk_err *err)
{
    char role[256];
    struct hk_str line = hk_str_cut(&answer, '\n');
    line = hk_str_trim(line);
    q->method = "GET";
    if (q->step == HK_AWS_STEP_TOKEN) {
        if (!is_visible(line, false) || !hk_str_copy(q->value, sizeof q->value, line))
            return wrong_answer(q, "token", err);
        q->step = HK_AWS_STEP_ROLE;
        q->header = "X-aws-ec2-metadata-token";
        return instance_url(q, source, ROLE_PATH, "") ? HK_OK : wrong_answer(q, "role", err);
    }
    for (size_t i = 0; i < line.len; i++) /* as IAM names roles */
        if (!hk_ascii_isalpha(line.ptr[i]) && !hk_ascii_isdigit(line.ptr[i]) &&
            !strchr("+=,.@-_", line.ptr[i]))
            return wrong_answer(q, "name of a role", err);
    if (!line.len || !hk_str_copy(role, sizeof role, line) || !instance_url(q, source, ROLE_PATH, role))
        return wrong_answer(q, "name of a role", err);
    q->step = HK_AWS_STEP_KEYS;
    return HK_OK;
}

enum hk_code hk_aws_question_first(struct hk_aws_question *q, enum hk_aws_where where,
                                   const struct hk_aws_source *source, const char *region, struct hk_err *err)
{
    switch (where) {
    case HK_AWS_WEB_IDENTITY:
        q->step = HK_AWS_STEP_STS;
        return ask_sts(q, source, region, err);
    case HK_AWS_CONTAINER:
        q->step = HK_AWS_STEP_CONTAINER;
        return ask_container(q, source, err);
    case HK_AWS_INSTANCE:
        q->step = HK_AWS_STEP_TOKEN;
        return ask_instance(q, source, err);
    case HK_AWS_HERE:
        break;
    }
    return hk_err_set(err, HK_DENIED, "no AWS credentials");
}
