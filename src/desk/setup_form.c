/* SPDX-License-Identifier: Apache-2.0 */
/* Schema, configuration and version as forms. */
#include "desk/forms.h"
#include "desk/setup.h"

void hk_form_inited(struct hk_form *form, void *result)
{
    struct hk_inited *done = result;
    bool is_sql = done->sql.ptr, has_run = !done->sql.ptr;
    hk_form_chars(form, "db", done->place, sizeof done->place);
    if (hk_form_if(form, "sql", &is_sql)) {
        hk_form_str(form, "sql", &done->sql);
        hk_form_end(form);
    }
    if (hk_form_if(form, "created", &has_run)) {
        hk_form_bool(form, "created", &done->is.created);
        hk_form_uint(form, "from", &done->is.from);
        hk_form_uint(form, "to", &done->is.to);
        hk_form_bool(form, "wal", &done->is.wal);
        hk_form_bool(form, "two_phase", &done->is.two_phase);
        hk_form_end(form);
    }
}

static void form_found(struct hk_form *form, void *result)
{
    struct hk_config_note *note = result;
    hk_form_cstr(form, "file", &note->file);
    hk_form_uint(form, "line", &note->line);
    hk_form_uint(form, "col", &note->col);
    hk_form_cstr(form, "message", &note->message);
}

void hk_form_config_checked(struct hk_form *form, void *result)
{
    struct hk_config_checked *c = result;
    bool is_ok = c->ok;
    hk_form_bool(form, "ok", &c->ok);
    hk_form_cstr(form, "file", &c->file);
    hk_form_list(form, "errors", &HK_FORM_ITEMS(c->errors, c->n_errors, form_found));
    hk_form_list(form, "warnings", &HK_FORM_ITEMS(c->warnings, c->n_warnings, form_found));
    if (hk_form_if(form, "policies", &is_ok)) {
        hk_form_uint(form, "policies", &c->policies);
        hk_form_uint(form, "destinations", &c->destinations);
        hk_form_uint(form, "routes", &c->routes);
        hk_form_uint(form, "validate", &c->rules);
        hk_form_uint(form, "channels", &c->channels);
        hk_form_end(form);
    }
}

void hk_form_config_schema(struct hk_form *form, void *result)
{
    struct hk_config_schema *schema = result;
    hk_form_whole(form, &schema->json);
}

void hk_form_version(struct hk_form *form, void *result)
{
    struct hk_version_told *told = result;
    hk_form_cstr(form, "version", &told->version);
}
