/* SPDX-License-Identifier: Apache-2.0 */
/* Structured Fields (RFC 9651, which includes RFC 8941): lists of items with parameters, as the RateLimit fields use
 * them. Reads in place, allocates nothing; whatever is not well-formed makes the whole field malformed. */
#ifndef HK_CORE_SFIELD_H
#define HK_CORE_SFIELD_H

#include <stdbool.h>
#include <stdint.h>

#include <hikyaku/facts.h>

enum hk_sf_type {
    HK_SF_INTEGER = 0,
    HK_SF_DECIMAL,
    HK_SF_STRING,
    HK_SF_TOKEN,
    HK_SF_BYTES,
    HK_SF_BOOLEAN,
    HK_SF_DATE,
    HK_SF_DISPLAY
};

struct hk_sf_value {
    enum hk_sf_type type;
    int64_t integer; /* HK_SF_INTEGER, HK_SF_DATE; HK_SF_BOOLEAN 0 or 1 */
    struct hk_str
        text; /* as written, a string's with its escapes; the same string is always written the same */
};

/* Each takes what it reads off `*rest` and returns false for what is malformed, and then leaves `*rest` undefined. */

/* An item's value, without its parameters. */
bool hk_sf_read_value(struct hk_str *rest, struct hk_sf_value *out_value);
/* The next parameter; `*out_found` is false, and nothing is read, when no other follows. */
bool hk_sf_read_param(struct hk_str *rest, bool *out_found, struct hk_str *out_key,
                      struct hk_sf_value *out_value);
/* Between two members of a list: takes the comma. `*out_more` is false at the field's end. */
bool hk_sf_read_comma(struct hk_str *rest, bool *out_more);

/* For strings and tokens; a string is never the same as a token. */
bool hk_sf_same(const struct hk_sf_value *a, const struct hk_sf_value *b);

#endif
