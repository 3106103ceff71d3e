/* SPDX-License-Identifier: Apache-2.0 */
/* Reads one line of our own logs: a JSON object of texts and whole numbers, nothing nested. Strict: anything else is
 * refused, a field that stands twice included. */
#ifndef HK_SIM_FLAT_H
#define HK_SIM_FLAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_FLAT_FIELDS 32
#define HK_FLAT_BYTES  2048

struct hk_flat_field {
    struct hk_str key;
    struct hk_str text; /* of a number: ptr is NULL */
    int64_t number;
};

struct hk_flat {
    struct hk_flat_field fields[HK_FLAT_FIELDS];
    size_t n;
    char texts[HK_FLAT_BYTES]; /* what the texts say, without escapes */
    size_t used;
};

bool hk_flat_parse(struct hk_flat *flat, struct hk_str line);
struct hk_str hk_flat_text(const struct hk_flat *flat, const char *key); /* "" when it is not there */
int64_t hk_flat_number(const struct hk_flat *flat, const char *key);     /* 0 when it is not there */

#endif
