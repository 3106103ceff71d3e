/* SPDX-License-Identifier: Apache-2.0 */
/* Surroundings of a configuration that need no machine: a few variables, a few files. */
#ifndef HK_TESTS_CONFIG_ENV_H
#define HK_TESTS_CONFIG_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "config/config.h"
#include "failing.h"

static inline const char *fake_get(void *arg, const char *name)
{
    static const char *const vars[][2] = {{"SECRET", "hunter2"},
                                          {"EMPTY", ""},
                                          {"LATIN", "\xe9"},
                                          {"BILLING_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLjSw"},
                                          {"OTHER_SECRET", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"},
                                          {"INJECT", "a: [b, {c: d}] # e"}};
    (void)arg;
    for (size_t i = 0; i < COUNT(vars); i++) {
        if (strcmp(vars[i][0], name) == 0)
            return vars[i][1];
    }
    return NULL;
}

static inline enum hk_code fake_read(void *arg, const char *path, struct hk_buf *out, struct hk_err *err)
{
    static const struct {
        const char *path, *bytes;
        size_t len, times;
    } files[] = {
        {"secret", "hunter2\n", 8, 1},
        {"binary",
         "a\xff"
         "b",
         3, 1},
        {"large", "x", 1, 65537},
        {"full", "x", 1, 65536},
        {"conf.d/secret", "below\r\n", 7, 1},
        {"/abs", "two\n\n", 5, 1},
    };

    (void)arg;
    for (size_t i = 0; i < COUNT(files); i++) {
        if (strcmp(files[i].path, path) != 0)
            continue;
        enum hk_code rc = HK_OK;
        for (size_t n = 0; n < files[i].times && rc == HK_OK; n++)
            rc = hk_buf_add(out, files[i].bytes, files[i].len);
        return rc == HK_OK ? rc : hk_err_set(err, rc, "over %zu bytes", out->max);
    }
    return hk_err_set(err, HK_NOTFOUND, "No such file or directory");
}

static const struct hk_config_env fake_env = {.get = fake_get, .read_file = fake_read};

#endif
