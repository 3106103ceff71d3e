/* SPDX-License-Identifier: Apache-2.0 */
/* A message's own URL, method and time-out. They are stored among its headers, under names that no header field can have. So they stay
 * with the message (in retries, dead letters, requeues) and cost nothing where they are not used:
 *
 *   {":url": "https://a.example/x", ":method": "PUT", ":timeout": "90s", "X-Tenant": "acme"}
 *
 * ":url" and ":method" are for destinations with `url: message`; ":timeout" is for all. */
#ifndef HK_PAYLOAD_TARGET_H
#define HK_PAYLOAD_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/facts.h>

#define HK_TARGET_URL     ":url"
#define HK_TARGET_METHOD  ":method"
#define HK_TARGET_TIMEOUT ":timeout"

#define HK_TARGET_URL_MAX    2083
#define HK_TARGET_METHOD_MAX 8 /* with its terminator */

/* Is it one of these names? Nothing else may begin with a colon. */
static inline bool hk_target_is_name(struct hk_str name)
{
    return name.len > 0 && name.ptr[0] == ':';
}

/* What the headers say under one of these names. False: nothing, or it does not fit. */
bool hk_target_read(struct hk_str headers, const char *name, char *out, size_t room);

/* How long one attempt may take, by the message's headers as they are stored; 0 = it does not say, or nobody can read it: then the
 * sink refuses the message. */
uint64_t hk_target_timeout_ms(struct hk_str headers);

/* GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS, in capitals. */
bool hk_target_method_ok(struct hk_str method);
/* Does a request of this method carry a body? */
bool hk_target_method_has_body(struct hk_str method);
/* What is wrong with a URL by its text alone: NULL = nothing, else one clause ("must begin with …"). */
const char *hk_target_url_wrong(struct hk_str url);

#endif
