/* SPDX-License-Identifier: Apache-2.0 */
/* Access keys of AWS: those of the configuration; else those of a shared credentials file that it names; else those of the environment;
 * else those of the usual shared credentials file. */
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

/* HK_DENIED: there are none, or they cannot be used; `err` says what was looked at, and never shows a secret. */
enum hk_code hk_aws_credentials_load(const struct hk_aws_source *source, struct hk_aws_credentials *out,
                                     struct hk_err *err) HK_MUSTCHECK;
/* The same from the text of a shared credentials file. False: the section is not there, or has no whole pair of keys. */
bool hk_aws_credentials_read(struct hk_str text, struct hk_str profile, struct hk_aws_credentials *out);
/* As of the process. */
const char *hk_aws_env(const char *name);

#endif
