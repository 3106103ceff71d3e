/* SPDX-License-Identifier: Apache-2.0 */
/* Checks header fields before they go into a request. Names and values come from rows that anybody may have written, and a line break
 * in one of them would let its writer forge a request. */
#ifndef HK_SINK_HTTP_HEADER_H
#define HK_SINK_HTTP_HEADER_H

#include <stdbool.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#define HK_HEADER_NAME_MAX  128
#define HK_HEADER_VALUE_MAX 4096

bool hk_header_name_ok(struct hk_str name);   /* a token of RFC 9110 */
bool hk_header_value_ok(struct hk_str value); /* no controls but tab */
/* Whether this is for us or for the connection to set, so that neither a message nor a destination may. */
bool hk_header_reserved(struct hk_str name);
/* As above, for a message: also what its own columns say, and credentials. */
bool hk_header_not_for_messages(struct hk_str name);
/* As hk_header_reserved, for a task of a queue: only what makes up the request itself, and what the queue says of the task. */
bool hk_header_not_for_tasks(struct hk_str name);
bool hk_header_secret(struct hk_str name); /* whether its value is hidden from people, by its name */

/* One field of a message's headers. Anything but HK_OK ends the reading. */
typedef enum hk_code hk_header_fn(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err);

/* Reads `json`, an object of strings, and calls `fn` for each in order. HK_INVALID, HK_NOMEM, or what `fn` returned. */
enum hk_code hk_headers_read(struct hk_str json, hk_header_fn *fn, void *arg,
                             struct hk_err *err) HK_MUSTCHECK;

#endif
