/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for payloads by event type, which the relay checks before it sends a message: one pass over the text per matching rule, no
 * allocation. Errors name the place and never the value. */
#ifndef HK_PAYLOAD_VALIDATE_H
#define HK_PAYLOAD_VALIDATE_H

#include "payload/path.h"

#define HK_RULE_FIELDS_MAX 64

enum hk_field_type {
    HK_FIELD_PRESENT = 0, /* no type was given: anything but null */
    HK_FIELD_STRING,
    HK_FIELD_NUMBER,
    HK_FIELD_INTEGER, /* a number without fraction and exponent, of any size */
    HK_FIELD_BOOLEAN,
    HK_FIELD_OBJECT,
    HK_FIELD_ARRAY,
    HK_FIELD_NULL,
    HK_FIELD_ANY, /* null as well */
    HK_NFIELDS
};

const char *hk_field_type_name(enum hk_field_type type); /* "" for HK_FIELD_PRESENT */

/* One item of `required`: "orderId", "orderId:integer", "items[*].sku: string" (then every element must have it). HK_INVALID: "column
 * 9: …"; HK_NOMEM. `*out_path` is the caller's (hk_path_free). Both NULL: it is only
 * checked, and nothing is allocated. */
enum hk_code hk_field_parse(struct hk_str text, struct hk_path **out_path, enum hk_field_type *out_type,
                            struct hk_err *err) HK_MUSTCHECK;

/* A rule as it is written; texts are copied. */
struct hk_validate_rule {
    const char *event_type;      /* '*' stands for any text; NULL = "*" */
    bool json;                   /* must be JSON; implied by `required` */
    const char *const *required; /* as for hk_field_parse */
    size_t n_required;           /* <= HK_RULE_FIELDS_MAX */
    uint64_t max_size_bytes;     /* 0 = no limit */
    /* Here follow a JSON Schema and jq predicates, when they are built. */
};

struct hk_validate; /* all rules; NULL is none */

/* HK_INVALID (with the rule's number and the item), HK_NOMEM. */
enum hk_code hk_validate_new(const struct hk_validate_rule *rules, size_t n, struct hk_validate **out,
                             struct hk_err *err) HK_MUSTCHECK;
void hk_validate_free(struct hk_validate *validate);

struct hk_finding {
    const char *reason; /* static: VALIDATION_ERROR, SCHEMA_MISMATCH, PAYLOAD_TOO_LARGE */
    char text[256];     /* "$.customer.id: required field is missing" */
};

/* True when every rule that fits the event type is content; else the first finding. Rules in order; in a rule size, then JSON,
 * then the fields in the order they are listed. `payload` decoded, not as base64. Thread-safe. */
bool hk_validate_payload(const struct hk_validate *validate, struct hk_str event_type, struct hk_str payload,
                         struct hk_finding *out) HK_MUSTCHECK;

#endif
