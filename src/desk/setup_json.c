/* SPDX-License-Identifier: Apache-2.0 */
/* Schema, configuration and version as JSON. */
#include "desk/forms.h"
#include "desk/setup.h"

void hk_encode_inited(struct hk_json *json, const void *result)
{
    const struct hk_inited *done = result;
    hk_json_object(json);
    hk_put_cstr(json, "db", done->place);
    if (done->sql.ptr) {
        hk_put_str(json, "sql", done->sql);
    } else {
        hk_put_bool(json, "created", done->is.created);
        hk_put_u64(json, "from", done->is.from);
        hk_put_u64(json, "to", done->is.to);
    }
    hk_json_end(json);
}

static void put_found(struct hk_json *json, const char *key, const struct hk_diags *diags,
                      enum hk_severity severity)
{
    hk_json_key(json, key);
    hk_json_array(json);
    for (size_t i = 0; i < diags->n; i++) {
        const struct hk_diag *diag = &diags->items[i];
        if (diag->severity != severity)
            continue;
        hk_json_object(json);
        hk_put_cstr(json, "file", diag->file);
        hk_put_u64(json, "line", diag->at.line);
        hk_put_u64(json, "col", diag->at.col);
        hk_put_cstr(json, "message", diag->message);
        hk_json_end(json);
    }
    hk_json_end(json);
}

void hk_encode_config_checked(struct hk_json *json, const void *result)
{
    const struct hk_config_checked *c = result;
    hk_json_object(json);
    hk_put_bool(json, "ok", c->ok);
    hk_put_cstr(json, "file", c->file);
    put_found(json, "errors", &c->found, HK_SEVERITY_ERROR);
    put_found(json, "warnings", &c->found, HK_SEVERITY_WARNING);
    if (c->ok) {
        hk_put_u64(json, "policies", c->policies);
        hk_put_u64(json, "destinations", c->destinations);
        hk_put_u64(json, "routes", c->routes);
        hk_put_u64(json, "validate", c->rules);
        hk_put_u64(json, "channels", c->channels);
    }
    hk_json_end(json);
}

void hk_encode_config_schema(struct hk_json *json, const void *result)
{
    const struct hk_config_schema *schema = result;
    hk_json_raw(json, schema->json);
}

void hk_encode_version(struct hk_json *json, const void *result)
{
    const struct hk_version_told *told = result;
    hk_json_object(json);
    hk_put_cstr(json, "version", told->version);
    hk_json_end(json);
}
