/* SPDX-License-Identifier: Apache-2.0 */
/* One line of NDJSON as a message: an object with the names of outbox's columns. */
#ifndef HK_DESK_NDJSON_H
#define HK_DESK_NDJSON_H

#include "base/json.h"
#include "store/admin.h"

struct hk_ndjson {
    struct hk_enqueue item; /* points into what follows */
    char *line;
    char *headers;
    void *root;
};

/* A payload that is a string is its text; one that is any other JSON value is sent as it is written in the line, byte for
 * byte. HK_INVALID with what is wrong, HK_NOMEM. `*out` is to be freed only on HK_OK. */
enum hk_code hk_ndjson_read(struct hk_str line, struct hk_ndjson *out, struct hk_err *err) HK_MUSTCHECK;
/* The bytes of a member's value, in a text that is known to be a JSON object. {NULL, 0}: no member's name is written like this. */
struct hk_str hk_ndjson_raw(struct hk_str object, const char *name);
/* JSON Schema of such an object: the members of an object that is open. */
void hk_ndjson_schema(struct hk_json *json);
void hk_ndjson_free(struct hk_ndjson *message);

#endif
