/* SPDX-License-Identifier: Apache-2.0 */
/* Access keys of AWS. The first of these that is there counts:
 *
 * 1. the keys of the configuration
 * 2. the shared credentials file that the configuration names
 * 3. the keys of the environment (not with a profile of the configuration)
 * 4. the environment's web identity: a token in a file, for which STS gives keys
 * 5. the usual shared credentials file
 * 6. the endpoint for containers that the environment names
 * 7. the metadata service of the instance
 *
 * 4, 6 and 7 must be asked over the network (provider.h). */
#ifndef HK_SINK_AWS_CREDENTIALS_H
#define HK_SINK_AWS_CREDENTIALS_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#define HK_AWS_KEY_ID_MAX 256
#define HK_AWS_SECRET_MAX 512
#define HK_AWS_TOKEN_MAX  4096

struct hk_aws_credentials {
    char key_id[HK_AWS_KEY_ID_MAX], secret[HK_AWS_SECRET_MAX];
    char token[HK_AWS_TOKEN_MAX]; /* of temporary ones; "" = none */
};

/* A variable of the environment; NULL: it is not set. */
typedef const char *hk_aws_env_fn(const char *name);

/* Texts belong to the caller; NULL: not given. */
struct hk_aws_source {
    const char *key_id, *secret, *token;
    const char *file;    /* a shared credentials file */
    const char *profile; /* its section [AWS_PROFILE, or default] */
    hk_aws_env_fn *env;
};

enum hk_aws_where {
    HK_AWS_HERE = 0, /* they are found */
    HK_AWS_WEB_IDENTITY,
    HK_AWS_CONTAINER,
    HK_AWS_INSTANCE
};

/* `*out` is set if `*out_where` is HERE; else that one is to be asked. HK_DENIED: there are none, or they cannot be used; `err` says what was
 * looked at, and never shows a secret. HK_NOMEM. */
enum hk_code hk_aws_credentials_load(const struct hk_aws_source *source, struct hk_aws_credentials *out,
                                     enum hk_aws_where *out_where, struct hk_err *err) HK_MUSTCHECK;
/* A variable that is set and not empty; else NULL. */
const char *hk_aws_source_env(const struct hk_aws_source *source, const char *name);
/* False: one of the first two is empty, or one is too long or cannot stand in a header field. */
bool hk_aws_credentials_take(struct hk_aws_credentials *out, struct hk_str key_id, struct hk_str secret,
                             struct hk_str token);
bool hk_aws_credentials_are_visible(const struct hk_aws_credentials *credentials);
/* The same from the text of a shared credentials file. False: the section is not there, or has no whole pair of keys. */
bool hk_aws_credentials_read(struct hk_str text, struct hk_str profile, struct hk_aws_credentials *out);
/* As of the process. */
const char *hk_aws_env(const char *name);

#endif
