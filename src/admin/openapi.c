/* SPDX-License-Identifier: Apache-2.0 */
/* OpenAPI 3.1 from the desk's table: paths, parameters, bodies, results, roles. Nothing in it is written by hand for one operation,
 * but for the two whose body is a message. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <hikyaku/hikyaku.h>

#include "admin/api_impl.h"
#include "base/json.h"
#include "base/str.h"
#include "desk/dead.h"
#include "desk/dead_look.h"
#include "desk/definitions.h"
#include "desk/enqueue.h"
#include "desk/events.h"
#include "desk/forms.h"
#include "desk/ndjson.h"
#include "desk/whoami.h"

static void put_type(struct hk_json *json, const char *type)
{
    hk_put_cstr(json, "type", type);
}

static void open_object(struct hk_json *json, const char *key)
{
    hk_json_key(json, key);
    hk_json_object(json);
}

/* ---- one field ---- */

static void put_choices(struct hk_json *json, const char *choices)
{
    struct hk_str rest = hk_str_of(choices);
    put_type(json, "string");
    hk_json_key(json, "enum");
    hk_json_array(json);
    while (rest.len > 0)
        hk_json_str(json, hk_str_cut(&rest, ' '));
    hk_json_end(json);
}

static void put_number(struct hk_json *json, const struct hk_arg *a)
{
    put_type(json, "integer");
    hk_put_u64(json, "minimum", (uint64_t)a->lo);
    hk_put_u64(json, "maximum", a->hi <= 0 || a->hi >= 9e15 ? (uint64_t)9007199254740991 : (uint64_t)a->hi);
    if (a->fallback >= 1)
        hk_put_u64(json, "default", (uint64_t)a->fallback);
}

static void put_string(struct hk_json *json, bool subject)
{
    put_type(json, "string");
    if (subject)
        hk_put_u64(json, "minLength", 1);
    hk_put_cstr(json, "pattern", "^[^\\u0000]*$");
}

static void put_schema(struct hk_json *json, const struct hk_arg *a)
{
    hk_json_object(json);
    switch (a->kind) {
    case HK_ARG_FLAG:
        put_type(json, "boolean");
        break;
    case HK_ARG_NUMBER:
        put_number(json, a);
        break;
    case HK_ARG_CHOICE:
        put_choices(json, a->choices);
        break;
    case HK_ARG_DURATION:
        put_type(json, "string");
        hk_put_cstr(json, "pattern", "^[0-9]{1,6}(ms|s|m|h|d|w)$");
        break;
    case HK_ARG_RATE:
        put_type(json, "string");
        hk_put_cstr(json, "pattern", "^[0-9]{1,6}/(s|m|h)$");
        break;
    case HK_ARG_TEXTS:
        put_type(json, "array");
        hk_put_u64(json, "maxItems", HK_WIRE_ITEMS_MAX);
        open_object(json, "items");
        put_string(json, true);
        hk_json_end(json);
        break;
    case HK_ARG_BYTES:
        hk_put_cstr(json, "description",
                    "A text, sent as it is; or any other JSON value, sent byte for byte as it is written.");
        break;
    case HK_ARG_TEXT:
    case HK_ARG_POLICY:
    case HK_ARG_FILE:
        put_string(json, a->subject);
        break;
    }
    if (a->help && a->kind != HK_ARG_BYTES)
        hk_put_cstr(json, "description", a->help);
    hk_json_end(json);
}

static void put_parameter(struct hk_json *json, const struct hk_arg *a, const char *in)
{
    hk_json_object(json);
    hk_put_cstr(json, "name", a->name);
    hk_put_cstr(json, "in", in);
    hk_put_bool(json, "required", strcmp(in, "path") == 0 || (a->subject && a->required));
    if (a->help)
        hk_put_cstr(json, "description", a->help);
    hk_json_key(json, "schema");
    put_schema(json, a);
    hk_json_end(json);
}

/* ---- where fields stand ---- */

static const struct hk_arg reason_arg = {
    .name = "reason", .kind = HK_ARG_TEXT, .subject = true, .help = "why: it is kept in the audit"};
static const struct hk_arg needed_reason_arg = {.name = "reason",
                                                .kind = HK_ARG_TEXT,
                                                .subject = true,
                                                .required = true,
                                                .help = "why: it is kept in the audit"};
static const struct hk_arg reveal_arg = {
    .name = "reveal",
    .kind = HK_ARG_FLAG,
    .help = "show masked fields; needs a reason and the right to reveal, and is "
            "recorded"};
static const struct hk_arg background_arg = {
    .name = "background",
    .kind = HK_ARG_FLAG,
    .help =
        "start it as a job and do not wait for it: the answer is 202, and GET /jobs/{job_id} shows the outcome"};
static const struct hk_arg key_arg = {
    .name = "Idempotency-Key",
    .kind = HK_ARG_TEXT,
    .help = "a call with the same key and the same body gets the answer of the first one, for 24 hours"};
static const struct hk_arg match_arg = {.name = "If-Match",
                                        .kind = HK_ARG_TEXT,
                                        .help = "the ETag of what you saw: 412 when it has changed since"};

static bool is_get(const struct hk_op *op)
{
    return hk_str_eq(hk_route_method(op->route), hk_str_of("GET"));
}

static bool in_query(const struct hk_op *op)
{
    return hk_route_in_query(op->route);
}

static bool takes_match(const struct hk_op *op)
{
    return op == &hk_op_dead_edit || op == &hk_op_destinations_update || op == &hk_op_destinations_delete;
}

static bool is_in_path(const struct hk_op *op, const struct hk_arg *a)
{
    char hole[80];
    (void)snprintf(hole, sizeof hole, "{%s}", a->name);
    return strstr(op->route, hole) != NULL;
}

static void put_parameters(struct hk_json *json, const struct hk_op *op)
{
    hk_json_key(json, "parameters");
    hk_json_array(json);
    for (const struct hk_arg *a = op->args; a && a->name; a++) {
        if (is_in_path(op, a))
            put_parameter(json, a, "path");
        else if (in_query(op))
            put_parameter(json, a, "query");
    }
    if (is_get(op) && op->reveals) {
        put_parameter(json, &reveal_arg, "query");
        put_parameter(json, &reason_arg, "query");
    } else if (in_query(op) && op->needs_reason) {
        put_parameter(json, &needed_reason_arg, "query");
    }
    if (op->changes)
        put_parameter(json, &key_arg, "header");
    if (takes_match(op))
        put_parameter(json, &match_arg, "header");
    hk_json_end(json);
}

static void put_property(struct hk_json *json, const struct hk_arg *a)
{
    char coded[80];
    hk_json_key(json, a->name);
    put_schema(json, a);
    if (a->kind != HK_ARG_BYTES)
        return;
    (void)snprintf(coded, sizeof coded, "%s_base64", a->name);
    open_object(json, coded);
    put_type(json, "string");
    hk_put_cstr(json, "contentEncoding", "base64");
    hk_json_end(json);
}

static bool has_dry_run(const struct hk_op *op)
{
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (strcmp(a->name, "dry_run") == 0)
            return true;
    return false;
}

static void put_required(struct hk_json *json, const struct hk_op *op)
{
    hk_json_key(json, "required");
    hk_json_array(json);
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (a->subject && a->required && !is_in_path(op, a))
            hk_json_cstr(json, a->name);
    if (op->needs_reason && !has_dry_run(op)) /* a dry run needs none */
        hk_json_cstr(json, reason_arg.name);
    hk_json_end(json);
}

static void put_fields(struct hk_json *json, const struct hk_op *op)
{
    put_type(json, "object");
    hk_put_bool(json, "additionalProperties", false);
    open_object(json, "properties");
    for (const struct hk_arg *a = op->args; a && a->name; a++)
        if (!is_in_path(op, a))
            put_property(json, a);
    if (op->needs_reason || op->reveals)
        put_property(json, &reason_arg);
    if (op->reveals)
        put_property(json, &reveal_arg);
    if (op->job)
        put_property(json, &background_arg);
    hk_json_end(json);
    put_required(json, op);
}

static void put_body(struct hk_json *json, const struct hk_op *op)
{
    bool lines = op == &hk_op_enqueue_lines;
    open_object(json, "requestBody");
    hk_put_bool(json, "required", true);
    open_object(json, "content");
    open_object(json, lines ? "application/x-ndjson" : "application/json");
    open_object(json, "schema");
    if (lines)
        put_type(json, "string");
    else if (op == &hk_op_enqueue)
        hk_ndjson_schema(json);
    else
        put_fields(json, op);
    hk_json_end(json);
    hk_json_end(json);
    hk_json_end(json);
    hk_json_end(json);
}

/* ---- what comes back ---- */

enum when {
    ALWAYS = 0,
    WITH_BODY,    /* to a request that has one */
    WITH_CHANGES, /* from an operation that changes something */
    WITH_MATCH    /* where If-Match is taken */
};

/* Everything that is not 200. docs/api.md says which codes they carry. */
static const struct {
    const char *status, *means;
    enum when when;
} problems[] = {
    {"400", "The request is wrong; detail says what to change", ALWAYS},
    {"401", "A valid token is needed", ALWAYS},
    {"403", "The token's role does not allow this", ALWAYS},
    {"404", "There is no such thing", ALWAYS},
    {"405", "The path does not take this method; Allow names those that it takes", ALWAYS},
    {"409", "It does not fit the state of things, or is in use for the moment", ALWAYS},
    {"412", "Somebody has changed it since (If-Match)", WITH_MATCH},
    {"413", "The request or the answer is too large", ALWAYS},
    {"415", "The body has another Content-Type than this operation takes", WITH_BODY},
    {"421", "The Host is not one of this listener's", ALWAYS},
    {"422", "The Idempotency-Key was used for another request", WITH_CHANGES},
    {"429", "Too many calls from this address had no valid token; Retry-After says how long to wait", ALWAYS},
    {"501", "This build or this store cannot do it", ALWAYS},
    {"503", "The store does not answer, or too many calls wait: try again", ALWAYS},
    {"5XX", "The relay failed", ALWAYS},
};

enum {
    N_PROBLEMS = sizeof problems / sizeof problems[0]
};

static bool can_answer(const struct hk_op *op, enum when when)
{
    switch (when) {
    case ALWAYS:
        break;
    case WITH_BODY:
        return !in_query(op);
    case WITH_CHANGES:
        return op->changes;
    case WITH_MATCH:
        return takes_match(op);
    }
    return true;
}

/* As `enqueue --ndjson --json` prints it. */
static void put_taken_schema(struct hk_json *json)
{
    hk_json_object(json);
    put_type(json, "object");
    open_object(json, "properties");
    open_object(json, "items");
    put_type(json, "array");
    hk_json_key(json, "items");
    hk_form_schema(json, hk_form_taken);
    hk_json_end(json);
    open_object(json, "next");
    put_type(json, "null");
    hk_json_end(json);
    hk_json_end(json);
    hk_json_key(json, "required");
    hk_json_raw(json, hk_str_of("[\"items\",\"next\"]"));
    hk_json_end(json);
}

/* Of one event: tools that know the format look at each. */
static void put_event_schema(struct hk_json *json)
{
    hk_json_object(json);
    put_type(json, "object");
    open_object(json, "properties");
    open_object(json, "id");
    put_type(json, "string");
    hk_json_end(json);
    open_object(json, "event");
    put_type(json, "string");
    hk_json_key(json, "enum");
    hk_json_array(json);
    for (unsigned i = 0; i < HK_NEVENT_TYPES; i++)
        hk_json_str(json, hk_str_of(hk_event_word(i)));
    hk_json_end(json);
    hk_json_end(json);
    open_object(json, "data");
    put_type(json, "string");
    hk_put_cstr(json, "description", "a JSON object in one line");
    hk_json_end(json);
    hk_json_end(json);
    hk_json_key(json, "required");
    hk_json_raw(json, hk_str_of("[\"event\",\"data\"]"));
    hk_json_end(json);
}

static void put_result_schema(struct hk_json *json, const struct hk_op *op)
{
    if (op == &hk_op_dead_export)
        hk_json_raw(json, hk_str_of("{\"type\":\"string\","
                                    "\"description\":\"lines, each a JSON object: DeadLetterLine\"}"));
    else if (op == &hk_op_events)
        put_event_schema(json);
    else if (op == &hk_op_enqueue_lines)
        put_taken_schema(json);
    else if (op->form)
        hk_form_schema(json, op->form);
    else
        hk_json_raw(json, hk_str_of("{\"type\":\"object\"}"));
}

static void put_started(struct hk_json *json)
{
    open_object(json, "202");
    hk_put_cstr(json, "description", "A job was started (background); Location names it");
    open_object(json, "headers");
    open_object(json, "Location");
    hk_json_key(json, "schema");
    hk_json_raw(json, hk_str_of("{\"type\":\"string\"}"));
    hk_json_end(json);
    hk_json_end(json);
    open_object(json, "content");
    open_object(json, "application/json");
    hk_json_key(json, "schema");
    hk_form_schema(json, hk_form_job);
    hk_json_end(json);
    hk_json_end(json);
    hk_json_end(json);
}

static void put_result(struct hk_json *json, const struct hk_op *op)
{
    open_object(json, "200");
    hk_put_cstr(json, "description", "Done");
    open_object(json, "content");
    open_object(json, op == &hk_op_dead_export ? "application/x-ndjson"
                      : op == &hk_op_events    ? "text/event-stream"
                                               : "application/json");
    hk_json_key(json, "schema");
    put_result_schema(json, op);
    hk_json_end(json);
    hk_json_end(json);
    hk_json_end(json);
}

static void put_responses(struct hk_json *json, const struct hk_op *op)
{
    char where[64];
    open_object(json, "responses");
    put_result(json, op);
    if (op->job)
        put_started(json);
    for (size_t i = 0; i < N_PROBLEMS; i++) {
        if (!can_answer(op, problems[i].when))
            continue;
        open_object(json, problems[i].status);
        (void)snprintf(where, sizeof where, "#/components/responses/Problem%s", problems[i].status);
        hk_put_cstr(json, "$ref", where);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_operation(struct hk_json *json, const struct hk_op *op)
{
    char id[96], method[8] = "";
    struct hk_str name = hk_route_method(op->route);
    for (size_t i = 0; i < name.len && i + 1 < sizeof method; i++)
        method[i] = hk_ascii_lower(name.ptr[i]);
    (void)snprintf(id, sizeof id, "%s%s%s", op->noun, op->verb ? "_" : "", op->verb ? op->verb : "");
    open_object(json, method);
    hk_put_cstr(json, "operationId", id);
    hk_json_key(json, "tags");
    hk_json_array(json);
    hk_json_cstr(json, op->noun);
    hk_json_end(json);
    hk_put_cstr(json, "summary", op->summary);
    if (op->details)
        hk_put_cstr(json, "description", op->details);
    hk_put_cstr(json, "x-role", hk_role_name(op->role));
    put_parameters(json, op);
    if (!in_query(op))
        put_body(json, op);
    put_responses(json, op);
    hk_json_end(json);
}

/* ---- the whole ---- */

static bool is_first_of_path(size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (hk_ops[i]->route &&
            strcmp(hk_route_path(hk_ops[i]->route), hk_route_path(hk_ops[at]->route)) == 0)
            return false;
    return true;
}

static void put_paths(struct hk_json *json)
{
    open_object(json, "paths");
    for (size_t i = 0; i < hk_n_ops; i++) {
        if (!hk_ops[i]->route || !is_first_of_path(i))
            continue;
        const char *path = hk_route_path(hk_ops[i]->route);
        open_object(json, path);
        for (size_t k = i; k < hk_n_ops; k++)
            if (hk_ops[k]->route && strcmp(hk_route_path(hk_ops[k]->route), path) == 0)
                put_operation(json, hk_ops[k]);
        hk_json_end(json);
    }
    hk_json_end(json);
}

/* RFC 9457, with what is ours: `code` and `errors`. */
static const char problem_schema[] =
    "{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\"],\"properties\":{"
    "\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},"
    "\"detail\":{\"type\":\"string\"},\"code\":{\"type\":\"string\",\"description\":\"stable, for programs\"},"
    "\"errors\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{"
    "\"pointer\":{\"type\":\"string\"},\"parameter\":{\"type\":\"string\"},\"detail\":{\"type\":\"string\"}}}}}}";

static void put_problem(struct hk_json *json, const char *status, const char *means)
{
    char name[16];
    (void)snprintf(name, sizeof name, "Problem%s", status);
    open_object(json, name);
    hk_put_cstr(json, "description", means);
    open_object(json, "content");
    open_object(json, "application/problem+json");
    open_object(json, "schema");
    hk_put_cstr(json, "$ref", "#/components/schemas/Problem");
    for (int i = 0; i < 4; i++)
        hk_json_end(json);
}

static void put_components(struct hk_json *json)
{
    open_object(json, "components");
    open_object(json, "securitySchemes");
    open_object(json, "token");
    hk_put_cstr(json, "type", "http");
    hk_put_cstr(json, "scheme", "bearer");
    hk_put_cstr(json, "description", "made with: hikyaku token create NAME --role ROLE");
    hk_json_end(json);
    hk_json_end(json);
    open_object(json, "schemas");
    hk_json_key(json, "Problem");
    hk_json_raw(json, hk_str_of(problem_schema));
    hk_json_key(json, "DeadLetterLine");
    hk_form_schema(json, hk_form_dead_line);
    hk_json_end(json);
    open_object(json, "responses");
    for (size_t i = 0; i < N_PROBLEMS; i++)
        put_problem(json, problems[i].status, problems[i].means);
    hk_json_end(json);
    hk_json_end(json);
}

void hk_api_describe(struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_put_cstr(&json, "openapi", "3.1.0");
    open_object(&json, "info");
    hk_put_cstr(&json, "title", "hikyaku");
    hk_put_cstr(&json, "version", hk_version());
    hk_put_cstr(&json, "description",
                "Everything that the hikyaku command does with messages and dead letters, over HTTP.");
    hk_json_end(&json);
    hk_json_key(&json, "servers");
    hk_json_array(&json);
    hk_json_object(&json);
    hk_put_cstr(&json, "url", HK_API_PREFIX);
    hk_json_end(&json);
    hk_json_end(&json);
    hk_json_key(&json, "security");
    hk_json_raw(&json, hk_str_of("[{\"token\":[]}]"));
    put_paths(&json);
    put_components(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}
