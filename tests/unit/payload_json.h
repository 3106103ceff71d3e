/* SPDX-License-Identifier: Apache-2.0 */
/* Random JSON for the properties of src/payload: valid documents with odd white space, escapes, names that repeat, and the same with a
 * few bytes changed. */
#ifndef HK_TESTS_PAYLOAD_JSON_H
#define HK_TESTS_PAYLOAD_JSON_H

#include <hikyaku/rng.h>

#include "base/buf.h"
#include "base/str.h"
#include "check.h"

#define PICK(rng, array) ((array)[hk_rng_upto(rng, COUNT(array) - 1)])

static inline void random_blank(struct hk_rng *rng, struct hk_buf *out)
{
    static const char *const blanks[] = {"", "", "", " ", "\n", "\t ", "\r\n  "};
    hk_buf_adds(out, PICK(rng, blanks));
}

static inline void random_scalar(struct hk_rng *rng, struct hk_buf *out)
{
    static const char *const scalars[] = {"null",
                                          "true",
                                          "false",
                                          "0",
                                          "-0",
                                          "42",
                                          "42.0",
                                          "1e3",
                                          "-1.5E-7",
                                          "123456789012345678901234567890",
                                          "\"\"",
                                          "\"a\"",
                                          "\"card 4111-1111\"",
                                          "\"taro@example.com\"",
                                          "\"\\u6771\\u4eac\"",
                                          "\"東京\"",
                                          "\"\\\"quoted\\\\ \\/ \\n\"",
                                          "\"\\ud83d\\ude00\"",
                                          "\"***\"",
                                          "\"a.b[0]\""};
    hk_buf_adds(out, PICK(rng, scalars));
}

static inline void random_value(struct hk_rng *rng, struct hk_buf *out, unsigned depth)
{
    static const char *const names[] = {"\"a\"", "\"b\"", "\"c\"", "\"\\u0061\"", "\"a.b\"", "\"\""};
    unsigned kind = (unsigned)hk_rng_upto(rng, depth < 5 ? 3 : 7); /* the whole is mostly a container */
    kind = kind > 3 ? kind / 2 : kind;
    if (depth == 0 || kind < 2) {
        random_scalar(rng, out);
        return;
    }
    hk_buf_addc(out, kind == 2 ? '{' : '[');
    for (uint64_t i = 0, n = hk_rng_upto(rng, 4); i < n; i++) {
        hk_buf_adds(out, i ? "," : "");
        random_blank(rng, out);
        if (kind == 2) {
            hk_buf_adds(out, PICK(rng, names));
            random_blank(rng, out);
            hk_buf_addc(out, ':');
            random_blank(rng, out);
        }
        random_value(rng, out, depth - 1);
        random_blank(rng, out);
    }
    hk_buf_addc(out, kind == 2 ? '}' : ']');
}

static inline void random_json(struct hk_rng *rng, struct hk_buf *out)
{
    hk_buf_reset(out);
    random_blank(rng, out);
    random_value(rng, out, 5);
    random_blank(rng, out);
}

/* Changes, removes or doubles some bytes. */
static inline void spoil(struct hk_rng *rng, struct hk_buf *out)
{
    static const char bytes[] = "{}[]\",:\\u0019eE+-. \n\x01\x7f\x80\xc3\xe3\xf0tfn/";
    for (uint64_t i = 0, n = hk_rng_upto(rng, 2); out->len > 0 && i <= n; i++) {
        size_t at = (size_t)hk_rng_upto(rng, out->len - 1);
        if (hk_rng_upto(rng, 1)) {
            out->data[at] = bytes[hk_rng_upto(rng, sizeof bytes - 2)];
        } else {
            memmove(out->data + at, out->data + at + 1, out->len - at - 1);
            out->len--;
        }
    }
}

#endif
