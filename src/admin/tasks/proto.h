/* SPDX-License-Identifier: Apache-2.0 */
/* Proto-JSON as Google's clients write it, read along tables: names in lowerCamelCase or as in the .proto, enums as words or numbers,
 * 64-bit numbers as texts or numbers, durations "3.5s", times in RFC 3339, bytes in either alphabet of base64, null for "not given".
 * Names that a table does not have are refused, as Google does. */
#ifndef HK_ADMIN_TASKS_PROTO_H
#define HK_ADMIN_TASKS_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/pool.h"

#define HK_PROTO_MAP_MAX  128
#define HK_PROTO_DEPTH    8
#define HK_PROTO_TEXT_MAX ((size_t)1 << 20) /* of one value; a request's body is bounded before */

enum hk_proto_kind {
    HK_PROTO_SKIP = 0, /* anything: only servers set it, or it has no meaning here */
    HK_PROTO_TEXT,     /* struct hk_str, with a terminator behind it */
    HK_PROTO_BYTES,    /* struct hk_str */
    HK_PROTO_DURATION, /* int64_t, ms; not negative */
    HK_PROTO_TIME,     /* int64_t, Unix ms */
    HK_PROTO_INT32,    /* int64_t */
    HK_PROTO_DOUBLE,   /* double */
    HK_PROTO_ENUM,     /* int64_t: the number */
    HK_PROTO_MAP,      /* struct hk_proto_map: of texts */
    HK_PROTO_MESSAGE   /* a struct of its own, in place */
};

struct hk_proto_map {
    struct hk_proto_pair {
        struct hk_str key, value;
    } * items;

    size_t n;
};

struct hk_proto_word {
    const char *name; /* NULL ends a list */
    int64_t number;
};

struct hk_proto_type;

struct hk_proto_field {
    const char *name; /* as in the .proto: "max_burst_size" */
    enum hk_proto_kind kind;
    size_t offset;
    const struct hk_proto_type *type;  /* of a message */
    const struct hk_proto_word *words; /* of an enum */
};

struct hk_proto_type {
    const struct hk_proto_field *fields;
    size_t n;
    size_t given; /* offset of a uint32_t: bit i = field i was given */
};

/* Fills `out`, which is zeroed, with what the text holds; texts lie in `mem`. An empty text is an empty message. HK_INVALID: `err` is as
 * Google words it. HK_NOMEM. */
enum hk_code hk_proto_read(struct hk_str text, const struct hk_proto_type *type, struct hk_pool *mem,
                           void *out, struct hk_err *err) HK_MUSTCHECK;

/* Single values, as they stand in a query or within quotes. */
bool hk_proto_duration(struct hk_str text, int64_t *out_ms);
bool hk_proto_enum(struct hk_str text, const struct hk_proto_word *words, int64_t *out);
/* "maxBurstSize" or "max_burst_size" for the field "max_burst_size". */
bool hk_proto_is_name(struct hk_str given, const char *name);

/* "3.500s", "2026-01-01T00:00:00.005Z": with as many digits as Google writes. */
void hk_proto_put_duration(struct hk_json *json, const char *key, int64_t ms);
void hk_proto_put_time(struct hk_json *json, const char *key, int64_t ms);
/* The bytes in base64. */
void hk_proto_put_bytes(struct hk_json *json, const char *key, struct hk_str bytes);

#endif
