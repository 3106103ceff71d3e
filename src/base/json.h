/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON writer onto a bounded buffer: puts the commas and escapes, keeps track of nesting. Invalid UTF-8 is
 * written as U+FFFD, control characters are escaped, so that the output is always one valid document.
 * Errors are the buffer's (hk_buf_status). Misuse (a value where a key is due) is an assertion. */
#ifndef HK_BASE_JSON_H
#define HK_BASE_JSON_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

#define HK_JSON_DEPTH 32

struct hk_json {
    struct hk_buf *out;
    unsigned depth;
    bool is_object[HK_JSON_DEPTH];
    bool has_items[HK_JSON_DEPTH];
    bool after_key;
    bool pretty; /* two-space indentation */
};

void hk_json_init(struct hk_json *json, struct hk_buf *out, bool pretty);
void hk_json_object(struct hk_json *json);
void hk_json_array(struct hk_json *json);
void hk_json_end(struct hk_json *json); /* closes the innermost object or array */
void hk_json_key(struct hk_json *json, const char *key);

void hk_json_str(struct hk_json *json, struct hk_str s);
void hk_json_cstr(struct hk_json *json, const char *s); /* NULL writes null */
void hk_json_u64(struct hk_json *json, uint64_t value);
void hk_json_i64(struct hk_json *json, int64_t value);
void hk_json_double(struct hk_json *json, double value); /* null when not finite; shortest that reads back */
void hk_json_bool(struct hk_json *json, bool value);
void hk_json_null(struct hk_json *json);
void hk_json_raw(struct hk_json *json,
                 struct hk_str value); /* a whole JSON value, passed through unchanged */

#endif
