/* SPDX-License-Identifier: Apache-2.0 */
/* The option tables as JSON Schema 2020-12, so that editors complete and check. It is never stricter than the walker:
 * a value may be quoted or come from ${…} wherever a scalar stands. */
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "config/tables.h"

#define INTERPOLATED "\\$\\{"
#define NUMBER       "[0-9]+(\\.[0-9]+)?"
#define NAME_PATTERN "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}$"

static void add_pair(struct hk_json *json, const char *key, const char *value)
{
    hk_json_key(json, key);
    hk_json_cstr(json, value);
}

/* A part that ran out of memory spoils the whole. */
static void finish(struct hk_buf *part, struct hk_buf *out)
{
    if (hk_buf_status(part) != HK_OK && hk_buf_status(out) == HK_OK)
        out->status = hk_buf_status(part);
    hk_buf_fini(part);
}

/* { "type": "string", "pattern": … }: `pattern` (anchored here), the option's word, or an interpolation. */
static void add_text_form(struct hk_json *json, const char *pattern, const char *word)
{
    struct hk_buf text;
    hk_buf_init(&text, 512);
    hk_buf_addf(&text, "^(%s%s%s)$|" INTERPOLATED, pattern, word ? "|" : "", word ? word : "");
    hk_json_object(json);
    add_pair(json, "type", "string");
    add_pair(json, "pattern", hk_buf_cstr(&text));
    hk_json_end(json);
    finish(&text, json->out);
}

static void add_integer_form(struct hk_json *json, const struct hk_opt *opt)
{
    hk_json_object(json);
    add_pair(json, "type", "integer");
    hk_json_key(json, "minimum");
    hk_json_u64(json, opt->min);
    if (opt->max) {
        hk_json_key(json, "maximum");
        hk_json_u64(json, opt->max);
    }
    hk_json_end(json);
}

static void add_number_form(struct hk_json *json, const struct hk_opt *opt)
{
    hk_json_object(json);
    add_pair(json, "type", "number");
    hk_json_key(json, "minimum");
    hk_json_double(json, opt->fmin);
    hk_json_key(json, "maximum");
    hk_json_double(json, opt->fmax);
    hk_json_end(json);
}

static void add_enum_form(struct hk_json *json, const struct hk_opt *opt)
{
    hk_json_object(json);
    hk_json_key(json, "enum");
    hk_json_array(json);
    for (const struct hk_word *word = opt->words; word->name; word++) {
        hk_json_cstr(json, word->name);
        if (strcmp(word->name, "off") == 0) /* YAML 1.1 readers make it false */
            hk_json_bool(json, false);
    }
    hk_json_end(json);
    hk_json_end(json);
}

static void add_bool_form(struct hk_json *json)
{
    hk_json_object(json);
    add_pair(json, "type", "boolean");
    hk_json_end(json);
}

/* What any YAML reader may have made of an unquoted text. */
static void add_any_scalar_form(struct hk_json *json)
{
    hk_json_object(json);
    hk_json_key(json, "type");
    hk_json_array(json);
    hk_json_cstr(json, "string");
    hk_json_cstr(json, "number");
    hk_json_cstr(json, "boolean");
    hk_json_end(json);
    hk_json_end(json);
}

/* The alternatives of one scalar, inside an open "anyOf" array. */
static void add_scalar_forms(struct hk_json *json, const struct hk_opt *opt)
{
    switch (opt->type) {
    case HK_OPT_BOOL:
        add_bool_form(json);
        add_text_form(json, "true|false", NULL);
        break;
    case HK_OPT_U32:
    case HK_OPT_U64:
        add_integer_form(json, opt);
        add_text_form(json, "[0-9]+", opt->word);
        break;
    case HK_OPT_SIZE:
        add_integer_form(json, opt);
        add_text_form(json, NUMBER "([KMGT]i?)?B?", opt->word);
        break;
    case HK_OPT_DURATION:
        hk_json_raw(json, hk_str_of("{\"const\":0}"));
        add_text_form(json, "0|(" NUMBER "(w|d|h|m|s|ms|us))+", opt->word);
        break;
    case HK_OPT_RATE:
        add_text_form(json, NUMBER "/(s|m|h)", opt->word);
        break;
    case HK_OPT_DOUBLE:
        add_number_form(json, opt);
        add_text_form(json, NUMBER, opt->word);
        break;
    case HK_OPT_ENUM:
        add_enum_form(json, opt);
        hk_json_raw(json, hk_str_of("{\"$ref\":\"#/$defs/interpolated\"}"));
        break;
    case HK_OPT_STRING:
    case HK_OPT_PATH:
    case HK_OPT_NAME:
    case HK_OPT_CIDR:
        add_any_scalar_form(json);
        break;
    case HK_OPT_SECTION:
    case HK_OPT_MAP:
    case HK_OPT_LIST:
        break;
    }
}

static void add_any_of_scalar(struct hk_json *json, const struct hk_opt *opt)
{
    hk_json_key(json, "anyOf");
    hk_json_array(json);
    add_scalar_forms(json, opt);
    hk_json_end(json);
}

static void add_ref(struct hk_json *json, const struct hk_opt_table *table)
{
    struct hk_buf text;
    hk_buf_init(&text, 128);
    hk_buf_addf(&text, "#/$defs/%s", table->name);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == ' ')
            text.data[i] = '_';
    }
    add_pair(json, "$ref", hk_buf_cstr(&text));
    finish(&text, json->out);
}

static void add_types(struct hk_json *json, const char *type, bool or_null)
{
    hk_json_key(json, "type");
    if (!or_null) {
        hk_json_cstr(json, type);
        return;
    }
    hk_json_array(json);
    hk_json_cstr(json, type);
    hk_json_cstr(json, "null");
    hk_json_end(json);
}

static void add_array(struct hk_json *json, const struct hk_opt *opt)
{
    add_types(json, "array", opt->min == 0);
    hk_json_key(json, "items");
    hk_json_object(json);
    if (opt->elem)
        add_any_of_scalar(json, opt->elem);
    else
        add_ref(json, opt->sub);
    hk_json_end(json);
    hk_json_key(json, "minItems");
    hk_json_u64(json, opt->min);
    hk_json_key(json, "maxItems");
    hk_json_u64(json, opt->max);
}

static void add_list(struct hk_json *json, const struct hk_opt *opt)
{
    if (!(opt->flags & HK_OPT_ONE)) {
        add_array(json, opt);
        return;
    }
    hk_json_key(json, "anyOf");
    hk_json_array(json);
    add_scalar_forms(json, opt->elem);
    hk_json_object(json);
    add_array(json, opt);
    hk_json_end(json);
    hk_json_end(json);
}

static void add_map(struct hk_json *json, const struct hk_opt *opt)
{
    add_types(json, "object", true);
    hk_json_key(json, "propertyNames");
    hk_json_object(json);
    add_pair(json, "pattern", opt->sub->header_keys ? "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$" : NAME_PATTERN);
    hk_json_end(json);
    hk_json_key(json, "additionalProperties");
    hk_json_object(json);
    add_ref(json, opt->sub);
    hk_json_end(json);
    hk_json_key(json, "maxProperties");
    hk_json_u64(json, opt->max);
}

static void add_default(struct hk_json *json, const struct hk_opt *opt)
{
    uint64_t number = 0;
    if (!opt->fallback || !*opt->fallback)
        return;
    hk_json_key(json, "default");
    if (opt->type == HK_OPT_BOOL)
        hk_json_bool(json, strcmp(opt->fallback, "true") == 0);
    else if (hk_parse_u64(hk_str_of(opt->fallback), &number, NULL) == HK_OK)
        hk_json_u64(json, number);
    else
        hk_json_cstr(json, opt->fallback);
}

static void add_option(struct hk_json *json, const struct hk_opt *opt)
{
    hk_json_object(json);
    add_pair(json, "description", opt->help);
    add_default(json, opt);
    if (opt->type == HK_OPT_SECTION)
        add_ref(json, opt->sub);
    else if (opt->type == HK_OPT_MAP)
        add_map(json, opt);
    else if (opt->type == HK_OPT_LIST)
        add_list(json, opt);
    else
        add_any_of_scalar(json, opt);
    hk_json_end(json);
}

static void add_required(struct hk_json *json, const struct hk_opt_table *table)
{
    hk_json_key(json, "required");
    hk_json_array(json);
    for (size_t i = 0; i < table->n_opts; i++) {
        if (table->opts[i].flags & HK_OPT_REQUIRED)
            hk_json_cstr(json, table->opts[i].key);
    }
    hk_json_end(json);
}

/* { "oneOf": [{ "required": ["http"] }, …] } */
static void add_choices(struct hk_json *json, const struct hk_opt_table *table)
{
    hk_json_key(json, "oneOf");
    hk_json_array(json);
    for (size_t i = 0; i < table->n_opts; i++) {
        if (!(table->opts[i].flags & HK_OPT_CHOICE))
            continue;
        hk_json_object(json);
        hk_json_key(json, "required");
        hk_json_array(json);
        hk_json_cstr(json, table->opts[i].key);
        hk_json_end(json);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static bool has_flag(const struct hk_opt_table *table, unsigned flag)
{
    for (size_t i = 0; i < table->n_opts; i++) {
        if (table->opts[i].flags & flag)
            return true;
    }
    return false;
}

/* The mapping form, inside an open object. */
static void add_properties(struct hk_json *json, const struct hk_opt_table *table)
{
    add_types(json, "object", !has_flag(table, HK_OPT_REQUIRED | HK_OPT_CHOICE));
    hk_json_key(json, "properties");
    hk_json_object(json);
    for (size_t i = 0; i < table->n_opts; i++) {
        if (table->opts[i].flags & HK_OPT_HIDDEN)
            continue;
        hk_json_key(json, table->opts[i].key);
        add_option(json, &table->opts[i]);
    }
    hk_json_end(json);
    if (has_flag(table, HK_OPT_REQUIRED))
        add_required(json, table);
    if (has_flag(table, HK_OPT_CHOICE))
        add_choices(json, table);
    hk_json_key(json, "additionalProperties");
    hk_json_bool(json, false);
}

static void add_table(struct hk_json *json, const struct hk_opt_table *table)
{
    hk_json_object(json);
    if (!table->shorthand) {
        add_properties(json, table);
        hk_json_end(json);
        return;
    }
    hk_json_key(json, "anyOf");
    hk_json_array(json);
    add_scalar_forms(json, &table->opts[0]);
    if (table->n_opts > 1 || !(table->opts[0].flags & HK_OPT_HIDDEN)) {
        hk_json_object(json);
        add_properties(json, table);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_json_end(json);
}

static void add_definition(struct hk_json *json, const struct hk_opt_table *table)
{
    char name[64];
    if (!hk_str_copy(name, sizeof name, hk_str_of(table->name)))
        return;
    for (char *p = name; *p; p++) {
        if (*p == ' ')
            *p = '_';
    }
    hk_json_key(json, name);
    add_table(json, table);
}

void hk_config_schema_json(struct hk_buf *out)
{
    struct hk_json json;
    const struct hk_opt_table *table = NULL;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    add_pair(&json, "$schema", "https://json-schema.org/draft/2020-12/schema");
    add_pair(&json, "title", "hikyaku configuration");
    add_properties(&json, &hk_root_table);
    hk_json_key(&json, "$defs");
    hk_json_object(&json);
    hk_json_key(&json, "interpolated");
    hk_json_object(&json);
    add_pair(&json, "type", "string");
    add_pair(&json, "pattern", INTERPOLATED);
    hk_json_end(&json);
    for (size_t i = 1; (table = hk_schema_table(i)) != NULL; i++)
        add_definition(&json, table);
    hk_json_end(&json);
    hk_json_end(&json);
    hk_buf_addc(out, '\n');
}
