/* SPDX-License-Identifier: Apache-2.0 */
/* Surroundings of a configuration that need no machine: a few variables, a few files; and an allocator that fails on
 * request. */
#ifndef HK_TESTS_CONFIG_ENV_H
#define HK_TESTS_CONFIG_ENV_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <hikyaku/alloc.h>

#include "check.h"
#include "config/config.h"

static inline const char *fake_get(void *arg, const char *name)
{
    static const char *const vars[][2] = {{"SECRET", "hunter2"},
                                          {"EMPTY", ""},
                                          {"LATIN", "\xe9"},
                                          {"BILLING_SECRET", "whsec_x"},
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

/* Fails the `fail_at`-th allocation, and all later ones too when `for_ever`. */
struct failing {
    size_t count, fail_at;
    bool for_ever;
    bool failed;
    long live; /* blocks not freed yet */
};

static inline void *failing_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;
    size_t n = f->count++;
    if (n == f->fail_at || (f->for_ever && n > f->fail_at)) {
        f->failed = true;
        return NULL;
    }
    void *result = realloc(ptr, bytes);
    if (result && !ptr)
        f->live++;
    return result;
}

static inline void failing_release(void *arg, void *ptr)
{
    struct failing *f = arg;
    if (ptr)
        f->live--;
    free(ptr);
}

/* Runs `fn` with every allocation failing in turn, once and for ever: it must say HK_NOMEM each time, leak nothing,
 * and succeed with `expected` when none fails. */
static inline void fail_each_allocation(enum hk_code (*fn)(void), enum hk_code expected)
{
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        for (size_t k = 0;; k++) {
            struct failing f = {.fail_at = k, .for_ever = for_ever};
            struct hk_allocator allocator = {failing_resize, failing_release, &f};
            hk_allocator_set(&allocator);
            enum hk_code rc = fn();
            hk_allocator_set(NULL);
            assert_int_equal(f.live, 0);
            NOTE_IF(rc != (f.failed ? HK_NOMEM : expected), "allocation %zu: %s\n", k, hk_code_name(rc));
            assert_int_equal(rc, f.failed ? HK_NOMEM : expected);
            if (!f.failed)
                break;
        }
    }
}

#endif
