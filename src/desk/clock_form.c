/* SPDX-License-Identifier: Apache-2.0 */
/* The store's time as a form. */
#include "desk/clock.h"
#include "desk/forms.h"

static const char *whose_word(bool of_server)
{
    return of_server ? "server" : "host";
}

static void form_rows(struct hk_form *form, void *result)
{
    uint64_t *rows = result;
    for (unsigned i = 0; i < HK_NCLOCK_PARTS; i++)
        hk_form_uint(form, hk_clock_part_name(i), &rows[i]);
}

void hk_form_clock(struct hk_form *form, void *result)
{
    struct hk_clock_state *state = result;
    bool is_in_step = hk_clock_in_step(state);
    unsigned whose = state->of_server;
    uint64_t ahead_ms = hk_clock_ahead_ms(state);
    hk_form_bool(form, "in_step", &is_in_step);
    hk_form_choice(form, "clock_of", &whose, whose_word, 2);
    hk_form_time(form, "clock", &state->clock_ms);
    hk_form_time(form, "store_time", &state->mark_ms);
    hk_form_uint(form, "ahead_ms", &ahead_ms);
    hk_form_bool(form, "reset", &state->mended);
    hk_form_object(form, "rows", NULL, form_rows, state->rows);
    if (hk_form_reads(form))
        state->of_server = whose == 1;
}
