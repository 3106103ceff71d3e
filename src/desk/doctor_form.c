/* SPDX-License-Identifier: Apache-2.0 */
/* The doctor's findings, as a form. */
#include "base/str.h"
#include "desk/doctor.h"
#include "desk/forms.h"

static const char *level_word(unsigned level)
{
    return hk_note_names[level];
}

static void form_symptom(struct hk_form *form, void *result)
{
    struct hk_symptom *s = result;
    struct hk_str text = hk_str_of(s->text);
    hk_form_cstr(form, "check", &s->check);
    hk_form_choice(form, "level", &s->level, level_word, HK_NOTE_FAIL + 1);
    hk_form_str(form, "message", &text);
    hk_form_cstr(form, "code", &s->code);
    hk_form_raw(form, "values", &s->values);
    if (hk_form_reads(form))
        s->text = text.ptr;
}

void hk_form_diagnosis(struct hk_form *form, void *result)
{
    struct hk_diagnosis *all = result;
    bool is_ok = all->found[HK_NOTE_FAIL] == 0;
    hk_form_list(form, "items", &HK_FORM_ITEMS(all->items, all->n, form_symptom));
    hk_form_null(form, "next");
    hk_form_bool(form, "ok", &is_ok);
    for (size_t i = 0; hk_form_reads(form) && i < all->n; i++)
        all->found[all->items[i].level]++;
}
