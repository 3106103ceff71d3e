/* SPDX-License-Identifier: Apache-2.0 */
/* Rules for payloads. A message may fail several of them: what is told does not depend on the order of fields in the payload, but
 * on the order in the rule, so that the same mistake has the same words and lands in the same group of dead letters. */
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "payload/validate.h"

static const struct {
    const char *name, *phrase;
} types[HK_NFIELDS] = {
    [HK_FIELD_PRESENT] = {"", ""},
    [HK_FIELD_STRING] = {"string", "a string"},
    [HK_FIELD_NUMBER] = {"number", "a number"},
    [HK_FIELD_INTEGER] = {"integer", "an integer"},
    [HK_FIELD_BOOLEAN] = {"boolean", "a boolean"},
    [HK_FIELD_OBJECT] = {"object", "an object"},
    [HK_FIELD_ARRAY] = {"array", "an array"},
    [HK_FIELD_NULL] = {"null", "null"},
    [HK_FIELD_ANY] = {"any", ""},
};

const char *hk_field_type_name(enum hk_field_type type)
{
    return (unsigned)type < HK_NFIELDS ? types[type].name : "";
}

/* ---- reading rules ---- */

static enum hk_code type_by_name(struct hk_str name, size_t column, enum hk_field_type *out,
                                 struct hk_err *err)
{
    for (unsigned i = HK_FIELD_PRESENT + 1; i < HK_NFIELDS; i++) {
        if (hk_str_eq(name, hk_str_of(types[i].name))) {
            *out = (enum hk_field_type)i;
            return HK_OK;
        }
    }
    return hk_err_set(
        err, HK_INVALID,
        "column %zu: a type is expected after the colon: string, number, integer, boolean, object, array, "
        "null or any",
        column);
}

enum hk_code hk_field_parse(struct hk_str text, struct hk_path **out_path, enum hk_field_type *out_type,
                            struct hk_err *err)
{
    enum hk_field_type type = HK_FIELD_PRESENT;
    size_t end = 0;
    enum hk_code rc = hk_path_parse_at(text, 0, NULL, &end, err);
    if (rc != HK_OK)
        return rc;
    struct hk_str path = text;
    if (end < text.len && text.ptr[end] == ':') {
        path.len = end;
        struct hk_str name = hk_str_trim((struct hk_str){text.ptr + end + 1, text.len - end - 1});
        rc = type_by_name(name, hk_path_column(text, end + 1), &type, err);
    }
    if (rc == HK_OK)
        rc = hk_path_parse(path, out_path, err);
    if (rc == HK_OK && out_type)
        *out_type = type;
    return rc;
}

struct rule {
    char *event_type;
    bool json;
    uint64_t max_size_bytes;
    struct hk_path *paths[HK_RULE_FIELDS_MAX];
    enum hk_field_type types[HK_RULE_FIELDS_MAX];
    size_t n;
};

struct hk_validate {
    size_t n;
    struct rule rules[];
};

static enum hk_code add_field(struct rule *rule, size_t number, const char *text, struct hk_err *err)
{
    struct hk_err why = {.code = HK_OK};
    enum hk_code rc = hk_field_parse(hk_str_of(text), &rule->paths[rule->n], &rule->types[rule->n], &why);
    if (rc == HK_OK)
        rule->n++;
    else
        hk_err_set(err, rc, "validate rule %zu: required field %zu: %s", number, rule->n + 1, why.message);
    return rc;
}

static enum hk_code add_rule(struct rule *rule, size_t number, const struct hk_validate_rule *from,
                             struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    if (from->n_required > HK_RULE_FIELDS_MAX)
        return hk_err_set(err, HK_INVALID, "validate rule %zu: more than %d required fields", number,
                          HK_RULE_FIELDS_MAX);
    rule->json = from->json || from->n_required > 0;
    rule->max_size_bytes = from->max_size_bytes;
    rule->event_type = hk_mem_strdup(from->event_type ? from->event_type : "*");
    if (!rule->event_type)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; rc == HK_OK && i < from->n_required; i++)
        rc = add_field(rule, number, from->required[i], err);
    return rc;
}

enum hk_code hk_validate_new(const struct hk_validate_rule *rules, size_t n, struct hk_validate **out,
                             struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    struct hk_validate *validate = hk_mem_zalloc(1, sizeof *validate + n * sizeof validate->rules[0]);
    if (!validate)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; rc == HK_OK && i < n; i++) {
        validate->n++; /* what is half built is freed, too */
        rc = add_rule(&validate->rules[i], i + 1, &rules[i], err);
    }
    if (rc == HK_OK)
        *out = validate;
    else
        hk_validate_free(validate);
    return rc;
}

void hk_validate_free(struct hk_validate *validate)
{
    if (!validate)
        return;
    for (size_t i = 0; i < validate->n; i++) {
        struct rule *rule = &validate->rules[i];
        for (size_t k = 0; k < rule->n; k++)
            hk_path_free(rule->paths[k]);
        hk_mem_free(rule->event_type);
    }
    hk_mem_free(validate);
}

/* ---- asking them ---- */

static bool is_of_type(enum hk_field_type type, const struct hk_scan_token *value)
{
    switch (type) {
    case HK_FIELD_STRING:
        return value->kind == HK_SCAN_STRING;
    case HK_FIELD_NUMBER:
        return value->kind == HK_SCAN_NUMBER;
    case HK_FIELD_INTEGER:
        return value->kind == HK_SCAN_NUMBER && value->integer;
    case HK_FIELD_BOOLEAN:
        return value->kind == HK_SCAN_TRUE || value->kind == HK_SCAN_FALSE;
    case HK_FIELD_OBJECT:
        return value->kind == HK_SCAN_OBJECT;
    case HK_FIELD_ARRAY:
        return value->kind == HK_SCAN_ARRAY;
    case HK_FIELD_NULL:
        return value->kind == HK_SCAN_NULL;
    case HK_FIELD_PRESENT:
    case HK_FIELD_ANY:
    case HK_NFIELDS:
        break;
    }
    return true;
}

static const char *what_it_is(enum hk_scan_kind kind)
{
    switch (kind) {
    case HK_SCAN_STRING:
    case HK_SCAN_KEY:
        return types[HK_FIELD_STRING].phrase;
    case HK_SCAN_NUMBER:
        return types[HK_FIELD_NUMBER].phrase;
    case HK_SCAN_TRUE:
    case HK_SCAN_FALSE:
        return types[HK_FIELD_BOOLEAN].phrase;
    case HK_SCAN_OBJECT:
    case HK_SCAN_OBJECT_END:
        return types[HK_FIELD_OBJECT].phrase;
    case HK_SCAN_ARRAY:
    case HK_SCAN_ARRAY_END:
        return types[HK_FIELD_ARRAY].phrase;
    case HK_SCAN_NULL:
    case HK_SCAN_END:
    case HK_SCAN_ERROR:
    case HK_NSCANS:
        break;
    }
    return types[HK_FIELD_NULL].phrase;
}

#define MISSING  "VALIDATION_ERROR"
#define MISMATCH "SCHEMA_MISMATCH"

/* The first finding of the field that stands first in the rule. */
struct best {
    size_t field;
    struct hk_finding *out;
};

static void note(struct best *best, const struct hk_path_walk *walk, size_t field, const char *reason,
                 const char *what)
{
    best->field = field; /* later ones are not looked at any more */
    best->out->reason = reason;
    hk_path_walk_where(walk, field, best->out->text, sizeof best->out->text - 60);
    size_t len = strlen(best->out->text);
    (void)snprintf(best->out->text + len, sizeof best->out->text - len, ": %s", what);
}

static void look(struct best *best, const struct rule *rule, const struct hk_path_walk *walk, size_t field,
                 const struct hk_scan_token *token)
{
    const enum hk_field_type type = rule->types[field];
    const uint8_t flags = walk->states[field].flags;
    char what[64];
    if (flags & HK_PATH_MISS) {
        note(best, walk, field, MISSING, "required field is missing");
    } else if (flags & HK_PATH_HIT && token->kind == HK_SCAN_NULL && type != HK_FIELD_NULL &&
               type != HK_FIELD_ANY) {
        note(best, walk, field, MISSING, "required field is missing (it is null)");
    } else if (flags & HK_PATH_HIT && !is_of_type(type, token)) {
        (void)snprintf(what, sizeof what, "must be %s, is %s", types[type].phrase, what_it_is(token->kind));
        note(best, walk, field, MISMATCH, what);
    }
}

static bool check_json(const struct rule *rule, struct hk_str payload, struct hk_finding *out)
{
    struct hk_path_state states[HK_RULE_FIELDS_MAX];
    struct hk_path_walk walk;
    struct hk_scan_token token;
    struct best best = {.field = rule->n, .out = out};
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_path_walk_init(&walk, payload, (const struct hk_path *const *)rule->paths, states, rule->n);
    while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        for (size_t i = 0; i < best.field; i++)
            look(&best, rule, &walk, i, &token);
    }
    if (kind == HK_SCAN_END)
        return best.field == rule->n;
    struct hk_err err = {.code = HK_OK};
    hk_scan_err(&walk.scan, &err);
    out->reason = MISSING;
    (void)snprintf(out->text, sizeof out->text, "the payload is %.200s", err.message);
    return false;
}

static bool check_rule(const struct rule *rule, struct hk_str payload, struct hk_finding *out)
{
    if (rule->max_size_bytes && payload.len > rule->max_size_bytes) {
        out->reason = "PAYLOAD_TOO_LARGE";
        (void)snprintf(out->text, sizeof out->text, "the payload has %zu bytes, more than max_size %llu",
                       payload.len, (unsigned long long)rule->max_size_bytes);
        return false;
    }
    return !rule->json || check_json(rule, payload, out);
}

bool hk_validate_payload(const struct hk_validate *validate, struct hk_str event_type, struct hk_str payload,
                         struct hk_finding *out)
{
    for (size_t i = 0; validate && i < validate->n; i++) {
        const struct rule *rule = &validate->rules[i];
        if (hk_str_glob(rule->event_type, event_type) && !check_rule(rule, payload, out))
            return false;
    }
    return true;
}
