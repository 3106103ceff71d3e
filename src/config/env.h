/* SPDX-License-Identifier: Apache-2.0 */
/* The surroundings of a configuration (variables, files), through pointers, so that tests and fuzzers bring their own. */
#ifndef HK_CONFIG_ENV_H
#define HK_CONFIG_ENV_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/error.h>
#include <hikyaku/policies.h>

#include "base/buf.h"

struct hk_config_env {
    /* The variable's value, or NULL when it is not set. A NULL pointer: none is set. */
    const char *(*get)(void *arg, const char *name);
    /* Appends the file's bytes to `out`, whose maximum is the caller's; HK_TOOBIG when it is larger. Messages say
     * what is wrong without naming the path. A NULL pointer: no file can be read. */
    enum hk_code (*read_file)(void *arg, const char *path, struct hk_buf *out, struct hk_err *err);
    /* Runs a program without a shell and appends what it prints to `out`. A NULL pointer: no program can be run. */
    enum hk_code (*run)(const char *const *argv, struct hk_buf *out, struct hk_err *err);
    void *arg;
    /* Policies and custom operations made in code, which the file may name; may be NULL. */
    const struct hk_policies *known;
    /* `custom: NAME` that is not known: true takes it for a program's and warns, false refuses it. Nothing here can run
     * such a policy, so that a destination which uses it is an error either way. */
    bool foreign_custom;
    /* A secret whose variable is not set, or whose file cannot be read, is left out: for those who look and act but send
     * nothing, and have no business with it. False: it is an error, as any other value's always is. */
    bool without_secrets;
};

/* The process's environment and the file system; takes foreign custom policies. */
const struct hk_config_env *hk_config_env_system(void);
/* The same, without secrets. */
const struct hk_config_env *hk_config_env_operator(void);

#endif
