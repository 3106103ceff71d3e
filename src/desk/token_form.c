/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as JSON. */
#include "desk/forms.h"
#include "desk/token.h"

static void form_token(struct hk_form *form, void *result)
{
    struct hk_token *t = result;
    hk_form_id(form, "id", &t->id);
    hk_form_str(form, "name", &t->name);
    hk_form_choice(form, "state", &t->state, hk_token_state_word, HK_NTOKEN_STATES);
    hk_form_str(form, "role", &t->role);
    hk_form_bool(form, "reveal", &t->reveal);
    hk_form_time(form, "created_at", &t->created_ms);
    hk_form_str(form, "created_by", &t->created_by);
    hk_form_str(form, "reason", &t->reason);
    hk_form_time(form, "expires_at", &t->expires_ms);
    hk_form_time(form, "last_used_at", &t->last_used_ms);
    hk_form_time(form, "revoked_at", &t->revoked_ms);
    hk_form_str(form, "revoked_by", &t->revoked_by);
}

void hk_form_token_created(struct hk_form *form, void *result)
{
    struct hk_token_created *done = result;
    hk_form_id(form, "id", &done->id);
    hk_form_cstr(form, "name", &done->name);
    hk_form_cstr(form, "role", &done->role);
    hk_form_bool(form, "reveal", &done->reveal);
    hk_form_time(form, "created_at", &done->created_ms);
    hk_form_time(form, "expires_at", &done->expires_ms);
    hk_form_chars(form, "token", done->token, sizeof done->token);
}

void hk_form_tokens(struct hk_form *form, void *result)
{
    struct hk_tokens *tokens = result;
    hk_form_now(form, "now", &tokens->now_ms);
    hk_form_list(form, "items", &HK_FORM_ITEMS(tokens->items, tokens->n, form_token));
    hk_form_null(form, "next");
    hk_form_bool(form, "more", &tokens->more);
}

void hk_form_token_revoked(struct hk_form *form, void *result)
{
    struct hk_token_revoked *done = result;
    form_token(form, &done->token);
    hk_form_bool(form, "changed", &done->changed);
}
