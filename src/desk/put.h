/* SPDX-License-Identifier: Apache-2.0 */
/* One member of a JSON object: key and value in one call, and one way to write what is not there (null). */
#ifndef HK_DESK_PUT_H
#define HK_DESK_PUT_H

#include "base/json.h"

void hk_put_cstr(struct hk_json *json, const char *key, const char *s);  /* null for NULL */
void hk_put_str(struct hk_json *json, const char *key, struct hk_str s); /* null when empty */
void hk_put_u64(struct hk_json *json, const char *key, uint64_t value);
void hk_put_limit(struct hk_json *json, const char *key, uint64_t value); /* null for 0: there is none */
void hk_put_i64(struct hk_json *json, const char *key, int64_t value);
void hk_put_bool(struct hk_json *json, const char *key, bool value);
void hk_put_double(struct hk_json *json, const char *key, double value);
void hk_put_id(struct hk_json *json, const char *key, int64_t id);   /* a string; null for 0 */
void hk_put_time(struct hk_json *json, const char *key, int64_t ms); /* RFC 3339; null for 0 */
/* As text where it is UTF-8 without NUL, else as base64 under key + "_base64"; the other is left out. */
void hk_put_bytes(struct hk_json *json, const char *key, struct hk_str bytes);

#endif
