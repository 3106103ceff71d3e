/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/show.h"
#include "base/str.h"
#include "sink/aws/credentials.h"
#include "sink/file.h"

enum {
    FILE_MAX = 64 * 1024,
    PATH_LEN_MAX = 4096
};

const char *hk_aws_env(const char *name)
{
    return getenv(name);
}

/* Keys end up in a header line. */
static bool is_visible(const char *s)
{
    for (; *s; s++)
        if (*s <= ' ' || *s > '~')
            return false;
    return true;
}

bool hk_aws_credentials_are_visible(const struct hk_aws_credentials *c)
{
    return is_visible(c->key_id) && is_visible(c->secret) && is_visible(c->token);
}

bool hk_aws_credentials_take(struct hk_aws_credentials *out, struct hk_str key_id, struct hk_str secret,
                             struct hk_str token)
{
    return key_id.len && secret.len && hk_str_copy(out->key_id, sizeof out->key_id, key_id) &&
           hk_str_copy(out->secret, sizeof out->secret, secret) &&
           hk_str_copy(out->token, sizeof out->token, token) && hk_aws_credentials_are_visible(out);
}

/* ---- the shared credentials file ---- */

bool hk_aws_credentials_read(struct hk_str text, struct hk_str profile, struct hk_aws_credentials *out)
{
    struct hk_str key_id = {"", 0}, secret = {"", 0}, token = {"", 0};
    bool inside = false;
    while (text.ptr) {
        struct hk_str line = hk_str_cut(&text, '\n');
        while (line.len && line.ptr[line.len - 1] == '\r')
            line.len--;
        line = hk_str_trim(line);
        if (!line.len || line.ptr[0] == '#' || line.ptr[0] == ';')
            continue;
        if (line.ptr[0] == '[') {
            struct hk_str name = {line.ptr + 1, line.len - 1};
            inside = hk_str_eq(hk_str_trim(hk_str_cut(&name, ']')), profile);
            continue;
        }
        struct hk_str value = line, name = hk_str_trim(hk_str_cut(&value, '='));
        if (!inside || !value.ptr)
            continue;
        if (hk_str_eq(name, hk_str_of("aws_access_key_id")))
            key_id = hk_str_trim(value);
        else if (hk_str_eq(name, hk_str_of("aws_secret_access_key")))
            secret = hk_str_trim(value);
        else if (hk_str_eq(name, hk_str_of("aws_session_token")))
            token = hk_str_trim(value);
    }
    return hk_aws_credentials_take(out, key_id, secret, token);
}

/* HK_NOTFOUND: there is no such file, or it has no such section. */
static enum hk_code load_file(const char *path, const char *profile, struct hk_aws_credentials *out,
                              struct hk_err *err)
{
    char shown[HK_SHOW_MAX], name[HK_SHOW_MAX];
    struct hk_err why = {.message = ""};
    struct hk_buf text;
    hk_buf_init(&text, FILE_MAX);
    enum hk_code rc = hk_sink_file_read(path, &text, &why);
    bool good = rc == HK_OK && hk_aws_credentials_read(hk_buf_str(&text), hk_str_of(profile), out);
    hk_mem_wipe(text.data, text.len);
    hk_buf_fini(&text);
    if (good || rc == HK_NOMEM)
        return good ? HK_OK : hk_err_set(err, rc, "%s", why.message);
    (void)hk_show(hk_str_of(path), shown);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "no AWS credentials: %s: %s", shown, why.message);
    return hk_err_set(err, HK_NOTFOUND,
                      "no AWS credentials: %s has no section %s with aws_access_key_id and "
                      "aws_secret_access_key",
                      shown, hk_show(hk_str_of(profile), name));
}

/* ---- the order ---- */

const char *hk_aws_source_env(const struct hk_aws_source *source, const char *name)
{
    const char *value = source->env ? source->env(name) : NULL;
    return value && value[0] ? value : NULL;
}

static bool usual_file(const struct hk_aws_source *source, char out[PATH_LEN_MAX])
{
    const char *given = hk_aws_source_env(source, "AWS_SHARED_CREDENTIALS_FILE"),
               *home = hk_aws_source_env(source, "HOME");
    int n = given  ? snprintf(out, PATH_LEN_MAX, "%s", given)
            : home ? snprintf(out, PATH_LEN_MAX, "%s/.aws/credentials", home)
                   : -1;
    return n > 0 && n < PATH_LEN_MAX;
}

static enum hk_code take_keys(struct hk_aws_credentials *out, const char *key_id, const char *secret,
                              const char *token, struct hk_err *err)
{
    if (hk_aws_credentials_take(out, hk_str_of(key_id), hk_str_of(secret), hk_str_of(token)))
        return HK_OK;
    return hk_err_set(err, HK_DENIED,
                      "no AWS credentials: the access key is incomplete, too long, or holds blanks");
}

static bool has_web_identity(const struct hk_aws_source *source)
{
    return hk_aws_source_env(source, "AWS_WEB_IDENTITY_TOKEN_FILE") &&
           hk_aws_source_env(source, "AWS_ROLE_ARN");
}

/* What is not here. */
static enum hk_code look_elsewhere(const struct hk_aws_source *source, enum hk_aws_where *out_where,
                                   struct hk_err *err)
{
    const char *disabled = hk_aws_source_env(source, "AWS_EC2_METADATA_DISABLED");
    if (hk_aws_source_env(source, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") ||
        hk_aws_source_env(source, "AWS_CONTAINER_CREDENTIALS_FULL_URI")) {
        *out_where = HK_AWS_CONTAINER;
        return HK_OK;
    }
    if (!disabled || !hk_str_eqi(hk_str_of(disabled), hk_str_of("true"))) {
        *out_where = HK_AWS_INSTANCE;
        return HK_OK;
    }
    return hk_err_set(
        err, HK_DENIED,
        "no AWS credentials: give access_key_id and secret_access_key, credentials_file, or set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; AWS_EC2_METADATA_DISABLED forbids to ask the instance");
}

static enum hk_code denied_if_missing(enum hk_code rc, struct hk_err *err)
{
    if (rc != HK_NOTFOUND)
        return rc;
    if (err) {
        err->code = HK_DENIED;
        err->errclass = hk_code_class(HK_DENIED);
    }
    return HK_DENIED;
}

enum hk_code hk_aws_credentials_load(const struct hk_aws_source *source, struct hk_aws_credentials *out,
                                     enum hk_aws_where *out_where, struct hk_err *err)
{
    char path[PATH_LEN_MAX];
    const char *named = source->profile ? source->profile : hk_aws_source_env(source, "AWS_PROFILE");
    const char *profile = named ? named : "default", *env_id = NULL, *env_secret = NULL;
    enum hk_code rc = HK_NOTFOUND;
    *out_where = HK_AWS_HERE;
    if (source->key_id)
        return take_keys(out, source->key_id, source->secret, source->token, err);
    if (source->file)
        return denied_if_missing(load_file(source->file, profile, out, err), err);
    if (!source->profile) {
        env_id = hk_aws_source_env(source, "AWS_ACCESS_KEY_ID");
        env_secret = hk_aws_source_env(source, "AWS_SECRET_ACCESS_KEY");
    }
    if (env_id || env_secret)
        return take_keys(out, env_id, env_secret, hk_aws_source_env(source, "AWS_SESSION_TOKEN"), err);
    if (!source->profile && has_web_identity(source)) {
        *out_where = HK_AWS_WEB_IDENTITY;
        return HK_OK;
    }
    if (usual_file(source, path))
        rc = load_file(path, profile, out, err);
    else if (named)
        rc = hk_err_set(err, HK_NOTFOUND, "no AWS credentials: there is no file for the profile %s", named);
    if (rc != HK_NOTFOUND || named)
        return denied_if_missing(rc, err);
    return look_elsewhere(source, out_where, err);
}
