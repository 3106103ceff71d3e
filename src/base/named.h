/* SPDX-License-Identifier: Apache-2.0 */
/* Named values of a sentence for people. A sentence of ours has a stable code beside it, and its values by name, so that a program can
 * say the same in another language. The names say how a value is shown: `…_ms` is a duration, `…_bytes` a size; all other numbers are
 * counts, and all other texts are shown as they are. */
#ifndef HK_BASE_NAMED_H
#define HK_BASE_NAMED_H

#include "base/pool.h"

enum hk_named_kind {
    HK_NAMED_TEXT = 0,
    HK_NAMED_NUMBER,
    HK_NAMED_ID /* a number that JSON has as a text */
};

struct hk_named {
    const char *name;
    enum hk_named_kind kind;
    int64_t number;
    struct hk_str text;
};

/* HK_NAMED(hk_named_str("relay", name), hk_named_int("n", 5)): an array that ends itself, for one call. */
#define HK_NAMED(...)                                                                                        \
    (const struct hk_named[])                                                                                \
    {                                                                                                        \
        __VA_ARGS__,                                                                                         \
        {                                                                                                    \
            .name = NULL                                                                                     \
        }                                                                                                    \
    }
#define HK_NAMED_NONE NULL

struct hk_named hk_named_str(const char *name, struct hk_str text);
struct hk_named hk_named_cstr(const char *name, const char *text);
struct hk_named hk_named_id(const char *name, int64_t id);
struct hk_named hk_named_int(const char *name, int64_t number);
struct hk_named hk_named_count(const char *name, uint64_t number); /* INT64_MAX for more */

/* The values as one JSON object, "{}" for none. Values too large for it are left out, all of them: the sentence itself has what fits. */
void hk_named_text(const struct hk_named *values, char *out, size_t room); /* "{}" without memory, too */
struct hk_str hk_named_keep(const struct hk_named *values,
                            struct hk_pool *mem); /* .ptr NULL: out of memory */

#endif
