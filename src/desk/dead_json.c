/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on dead letters as JSON. */
#include "base/str.h"
#include "desk/dead.h"
#include "desk/forms.h"

static const char *did_name(enum hk_letter_did did)
{
    switch (did) {
    case HK_DID_IT:
        return "done";
    case HK_DID_NOTHING:
        return "unchanged";
    case HK_DID_NOT_FIND:
        return "missing";
    case HK_DID_REFUSE:
        return "refused";
    }
    return "refused";
}

static void put_outlook(struct hk_json *json, const struct hk_dead_acted *o)
{
    hk_put_bool(json, "dry_run", true);
    hk_put_count(json, "letters", o->fit);
    hk_put_u64(json, "may_have_arrived", o->maybe);
    hk_put_count(json, "other_states", o->others);
}

/* Without line breaks: there may be a thousand. */
static void put_items(struct hk_json *json, const struct hk_dead_acted *o)
{
    bool pretty = json->pretty;
    hk_json_key(json, "items");
    json->pretty = false;
    hk_json_array(json);
    for (size_t i = 0; i < o->n; i++) {
        hk_json_object(json);
        hk_put_id(json, "id", o->items[i].id);
        hk_put_cstr(json, "did", did_name(o->items[i].did));
        if (o->kind == HK_DEAD_REQUEUE)
            hk_put_str(json, "message_id", o->items[i].message_id);
        hk_put_cstr(json, "error", o->items[i].why);
        hk_json_end(json);
    }
    hk_json_end(json);
    json->pretty = pretty;
}

void hk_encode_dead_acted(struct hk_json *json, const void *result)
{
    const struct hk_dead_acted *o = result;
    hk_json_object(json);
    hk_put_cstr(json, "act", hk_dead_verb(o->kind));
    if (o->dry_run) {
        put_outlook(json, o);
        hk_json_end(json);
        return;
    }
    hk_put_u64(json, "changed", o->done);
    hk_put_u64(json, "unchanged", o->nothing);
    hk_put_u64(json, "missing", o->missing);
    hk_put_u64(json, "refused", o->refused);
    if (o->kind == HK_DEAD_RESTORE)
        hk_put_u64(json, "overtaken", o->overtaken);
    hk_put_id(json, "act_id", o->act_id);
    hk_put_cstr(json, "actor", o->actor);
    hk_put_cstr(json, "reason", o->reason);
    if (o->stopped.code != HK_OK)
        hk_put_cstr(json, "stopped", o->stopped.message);
    put_items(json, o);
    hk_json_end(json);
}

static void put_told(struct hk_json *json, const char *key, const char *text_key,
                     const struct hk_dead_told *items, size_t n)
{
    bool pretty = json->pretty;
    hk_json_key(json, key);
    json->pretty = false;
    hk_json_array(json);
    for (size_t i = 0; i < n; i++) {
        hk_json_object(json);
        hk_put_id(json, "id", items[i].id);
        hk_put_str(json, "message_id", items[i].message_id);
        hk_put_str(json, text_key, items[i].text);
        hk_json_end(json);
    }
    hk_json_end(json);
    json->pretty = pretty;
}

void hk_encode_dead_fixed(struct hk_json *json, const void *result)
{
    const struct hk_dead_fixed *o = result;
    hk_json_object(json);
    hk_put_bool(json, "dry_run", o->dry_run);
    hk_put_u64(json, "matched", o->matched);
    hk_put_u64(json, "changed", o->changed);
    hk_put_u64(json, "unchanged", o->unchanged);
    hk_put_u64(json, "failed", o->failed);
    hk_put_u64(json, "may_have_arrived", o->maybe);
    hk_put_id(json, "act_id", o->act_id);
    if (o->stopped.code != HK_OK)
        hk_put_cstr(json, "stopped", o->stopped.message);
    put_told(json, "samples", "diff", o->samples, o->n_samples);
    put_told(json, "failures", "error", o->failures, o->n_failures);
    hk_json_end(json);
}

void hk_encode_dead_sent(struct hk_json *json, const void *result)
{
    const struct hk_dead_sent *sent = result;
    const struct hk_delivered *got = &sent->got;
    char url[HK_URL_SHOWN_MAX];
    hk_json_object(json);
    hk_put_id(json, "id", sent->id);
    hk_put_str(json, "message_id", sent->message_id);
    hk_put_str(json, "destination", sent->destination);
    if (sent->dry_run) {
        hk_put_bool(json, "dry_run", true);
        hk_put_cstr(json, "url", hk_conf_target(sent->conf, url));
        hk_put_u64(json, "payload_bytes", sent->payload_bytes);
        hk_json_end(json);
        return;
    }
    hk_put_bool(json, "ok", sent->ok);
    hk_put_cstr(json, "class", hk_class_name(got->failure_class));
    hk_put_str(json, "cause", got->cause);
    hk_put_i64(json, "status", got->status);
    hk_put_u64(json, "duration_ms", got->duration_ms);
    hk_put_bool(json, "possibly_delivered", got->possibly_delivered);
    hk_put_str(json, "address", got->address);
    hk_put_bytes(json, "error", got->error);
    hk_put_bytes(json, "request_headers", got->request_headers);
    hk_put_bytes(json, "response_headers", got->response_headers);
    hk_put_bytes(json, "response_body", got->body);
    hk_json_end(json);
}

void hk_encode_dead_edited(struct hk_json *json, const void *result)
{
    const struct hk_dead_edited *edited = result;
    hk_json_object(json);
    hk_put_id(json, "id", edited->id);
    hk_put_bool(json, "changed", edited->changed);
    hk_put_bool(json, "dry_run", edited->dry_run);
    hk_put_u64(json, "payload_version", edited->version);
    hk_put_str(json, "diff", edited->diff);
    hk_json_end(json);
}
