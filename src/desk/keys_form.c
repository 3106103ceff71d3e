/* SPDX-License-Identifier: Apache-2.0 */
/* Keys as forms. */
#include "desk/forms.h"
#include "desk/keys.h"

static void form_row(struct hk_form *form, void *result)
{
    struct hk_key_row *row = result;
    hk_form_str(form, "key", &row->id);
    hk_form_bool(form, "configured", &row->configured);
    hk_form_bool(form, "seals", &row->seals);
    hk_form_str(form, "error", &row->why);
    hk_form_uint(form, "outbox", &row->outbox);
    hk_form_uint(form, "kept", &row->kept);
}

void hk_form_keys(struct hk_form *form, void *result)
{
    struct hk_keys_listed *listed = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(listed->rows, listed->n, form_row));
    hk_form_null(form, "next");
}

void hk_form_keys_rotated(struct hk_form *form, void *result)
{
    struct hk_keys_rotated *done = result;
    hk_form_str(form, "key", &done->key);
    hk_form_uint(form, "looked", &done->looked);
    hk_form_uint(form, "changed", &done->changed);
    hk_form_uint(form, "failed", &done->failed);
    hk_form_str(form, "error", &done->error);
}

void hk_form_keys_retired(struct hk_form *form, void *result)
{
    struct hk_keys_retired *done = result;
    hk_form_str(form, "key", &done->key);
    hk_form_bool(form, "configured", &done->configured);
}
