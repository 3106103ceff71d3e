/* SPDX-License-Identifier: Apache-2.0 */
/* An adopted table as a form. */
#include "desk/adopt.h"
#include "desk/forms.h"

void hk_form_adopted(struct hk_form *form, void *result)
{
    struct hk_adopt_done *done = result;
    hk_form_chars(form, "db", done->place, sizeof done->place);
    hk_form_str(form, "table", &done->table);
    hk_form_bool(form, "applied", &done->applied);
    hk_form_uint(form, "copied", &done->copied);
    hk_form_str(form, "sql", &done->sql);
}
