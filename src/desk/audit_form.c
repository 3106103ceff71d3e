/* SPDX-License-Identifier: Apache-2.0 */
/* The audit as forms. */
#include "desk/audit.h"
#include "desk/forms.h"

static void form_row(struct hk_form *form, void *result)
{
    struct hk_audit_row *row = result;
    uint64_t letters = row->letters > 0 ? row->letters : row->letter_id != 0;
    hk_form_id(form, "id", &row->id);
    hk_form_time(form, "at", &row->at_ms);
    hk_form_str(form, "actor", &row->actor);
    hk_form_str(form, "act", &row->act);
    hk_form_id(form, "letter", &row->letter_id);
    hk_form_uint(form, "letters", &letters);
    hk_form_uint(form, "messages", &row->messages);
    hk_form_id(form, "act_id", &row->act_id);
    hk_form_id(form, "redrive", &row->redrive);
    hk_form_str(form, "message_id", &row->message_id);
    hk_form_str(form, "destination", &row->destination);
    hk_form_str(form, "reason", &row->reason);
    hk_form_str(form, "before", &row->before);
    hk_form_str(form, "after", &row->after);
    hk_form_str(form, "detail", &row->detail);
    hk_form_str(form, "filter", &row->filter);
    hk_form_str(form, "jq", &row->jq);
    hk_form_str(form, "hash", &row->hash);
    if (hk_form_reads(form))
        row->letters = letters;
}

void hk_form_audit(struct hk_form *form, void *result)
{
    struct hk_audit_rows *rows = result;
    int64_t next = rows->more ? rows->last_id : 0;
    hk_form_list(form, "items", &HK_FORM_ITEMS(rows->items, rows->n, form_row));
    hk_form_id(form, "next", &next);
    if (hk_form_reads(form)) {
        rows->more = next != 0;
        rows->last_id = next;
    }
}

static void form_letter(struct hk_form *form, void *result)
{
    struct hk_audit_letter *l = result;
    int64_t letter = l->is_message ? 0 : l->letter_id, cancelled = l->is_message ? l->letter_id : 0;
    hk_form_id(form, "letter", &letter);
    hk_form_id(form, "cancelled", &cancelled);
    if (hk_form_reads(form)) {
        l->is_message = cancelled != 0;
        l->letter_id = l->is_message ? cancelled : letter;
    }
    hk_form_str(form, "message_id", &l->message_id);
    hk_form_str(form, "destination", &l->destination);
    hk_form_str(form, "before", &l->before);
    hk_form_str(form, "after", &l->after);
    hk_form_str(form, "detail", &l->detail);
}

void hk_form_act(struct hk_form *form, void *result)
{
    struct hk_audit_act *act = result;
    struct hk_audit_letters *letters = &act->letters;
    int64_t next = letters->more ? letters->items[letters->n - 1].letter_id : 0;
    form_row(form, &act->row);
    hk_form_list(form, "items", &HK_FORM_ITEMS(letters->items, letters->n, form_letter));
    hk_form_id(form, "next", &next);
    if (hk_form_reads(form))
        letters->more = next != 0 && letters->n > 0;
}

void hk_form_verified(struct hk_form *form, void *result)
{
    struct hk_audit_verified *c = result;
    bool is_whole = c->bad_id == 0;
    int64_t bad_id = c->bad_id > 0 ? c->bad_id : 0;
    hk_form_bool(form, "ok", &is_whole);
    hk_form_uint(form, "rows", &c->rows);
    hk_form_uint(form, "unchained", &c->unchained);
    hk_form_id(form, "bad_id", &bad_id);
    hk_form_cstr(form, "why", &c->why);
    hk_form_chars(form, "head", c->head, sizeof c->head);
    hk_form_uint(form, "purged", &c->purged);
    hk_form_time(form, "purged_at", &c->purged_ms);
    if (hk_form_reads(form)) {
        c->bad_id = is_whole ? 0 : bad_id > 0 ? bad_id : -1;
        c->begun = c->head[0] != '\0';
    }
}
