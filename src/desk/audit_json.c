/* SPDX-License-Identifier: Apache-2.0 */
/* The audit as JSON. */
#include "base/str.h"
#include "desk/audit.h"
#include "desk/forms.h"

static void put_words(struct hk_json *json, const struct hk_audit_row *row, const char *key)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str words;
    if (hk_act_words(row, key, &mem, &words) != HK_OK)
        json->out->status = HK_NOMEM; /* rather nothing than an act without its words */
    hk_put_str(json, key, words);
    hk_pool_fini(&mem);
}

/* The members of an open object. */
static void put_row(struct hk_json *json, const struct hk_audit_row *row)
{
    hk_put_id(json, "id", row->id);
    hk_put_time(json, "at", row->at_ms);
    hk_put_str(json, "actor", row->actor);
    hk_put_str(json, "act", row->act);
    hk_put_id(json, "letter", row->letter_id);
    hk_put_u64(json, "letters", row->letters > 0 ? row->letters : row->letter_id != 0);
    hk_put_id(json, "act_id", row->act_id);
    hk_put_id(json, "redrive", row->redrive);
    hk_put_str(json, "message_id", row->message_id);
    hk_put_str(json, "destination", row->destination);
    hk_put_str(json, "reason", row->reason);
    hk_put_str(json, "before", row->before);
    hk_put_str(json, "after", row->after);
    hk_put_str(json, "detail", row->detail);
    put_words(json, row, "filter");
    put_words(json, row, "jq");
    hk_put_str(json, "hash", row->hash);
}

void hk_encode_audit(struct hk_json *json, const void *result)
{
    const struct hk_audit_rows *rows = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < rows->n; i++) {
        hk_json_object(json);
        put_row(json, &rows->items[i]);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_put_id(json, "next", rows->more ? rows->last_id : 0);
    hk_json_end(json);
}

void hk_encode_act(struct hk_json *json, const void *result)
{
    const struct hk_audit_act *act = result;
    const struct hk_audit_letters *letters = &act->letters;
    hk_json_object(json);
    put_row(json, &act->row);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < letters->n; i++) {
        const struct hk_audit_letter *l = &letters->items[i];
        hk_json_object(json);
        hk_put_id(json, "letter", l->letter_id);
        hk_put_str(json, "message_id", l->message_id);
        hk_put_str(json, "destination", l->destination);
        hk_put_str(json, "before", l->before);
        hk_put_str(json, "after", l->after);
        hk_put_str(json, "detail", l->detail);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_put_id(json, "next", letters->more ? letters->items[letters->n - 1].letter_id : 0);
    hk_json_end(json);
}

void hk_encode_verified(struct hk_json *json, const void *result)
{
    const struct hk_audit_verified *c = result;
    hk_json_object(json);
    hk_put_bool(json, "ok", c->bad_id == 0);
    hk_put_u64(json, "rows", c->rows);
    hk_put_u64(json, "unchained", c->unchained);
    hk_put_id(json, "bad_id", c->bad_id > 0 ? c->bad_id : 0);
    hk_put_cstr(json, "why", c->why);
    hk_put_str(json, "head", hk_str_of(c->head));
    hk_put_u64(json, "purged", c->purged);
    hk_put_time(json, "purged_at", c->purged_ms);
    hk_json_end(json);
}
