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

static bool take(struct hk_aws_credentials *out, struct hk_str key_id, struct hk_str secret,
                 struct hk_str token)
{
    return key_id.len && secret.len && hk_str_copy(out->key_id, sizeof out->key_id, key_id) &&
           hk_str_copy(out->secret, sizeof out->secret, secret) &&
           hk_str_copy(out->token, sizeof out->token, token) && is_visible(out->key_id) &&
           is_visible(out->secret) && is_visible(out->token);
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
    return take(out, key_id, secret, token);
}

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
        return hk_err_set(err, HK_DENIED, "no AWS credentials: %s: %s", shown, why.message);
    return hk_err_set(err, HK_DENIED,
                      "no AWS credentials: %s has no section %s with aws_access_key_id and "
                      "aws_secret_access_key",
                      shown, hk_show(hk_str_of(profile), name));
}

/* ---- the order ---- */

static const char *env_of(const struct hk_aws_source *source, const char *name)
{
    const char *value = source->env ? source->env(name) : NULL;
    return value && value[0] ? value : NULL;
}

static bool usual_file(const struct hk_aws_source *source, char out[PATH_LEN_MAX])
{
    const char *given = env_of(source, "AWS_SHARED_CREDENTIALS_FILE"), *home = env_of(source, "HOME");
    int n = given  ? snprintf(out, PATH_LEN_MAX, "%s", given)
            : home ? snprintf(out, PATH_LEN_MAX, "%s/.aws/credentials", home)
                   : -1;
    return n > 0 && n < PATH_LEN_MAX;
}

enum hk_code hk_aws_credentials_load(const struct hk_aws_source *source, struct hk_aws_credentials *out,
                                     struct hk_err *err)
{
    char path[PATH_LEN_MAX];
    const char *profile = source->profile ? source->profile : env_of(source, "AWS_PROFILE");
    const char *key_id = source->key_id, *secret = source->secret, *token = source->token;
    if (!key_id && source->file)
        return load_file(source->file, profile ? profile : "default", out, err);
    if (!key_id && !source->profile) {
        key_id = env_of(source, "AWS_ACCESS_KEY_ID");
        secret = env_of(source, "AWS_SECRET_ACCESS_KEY");
        token = env_of(source, "AWS_SESSION_TOKEN");
    }
    if (key_id || secret)
        return take(out, hk_str_of(key_id), hk_str_of(secret), hk_str_of(token))
                   ? HK_OK
                   : hk_err_set(
                         err, HK_DENIED,
                         "no AWS credentials: the access key is incomplete, too long, or holds blanks");
    if (usual_file(source, path))
        return load_file(path, profile ? profile : "default", out, err);
    return hk_err_set(
        err, HK_DENIED,
        "no AWS credentials: give access_key_id and secret_access_key, credentials_file, or set "
        "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY");
}
