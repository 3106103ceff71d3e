/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations as JSON. */
#include "base/str.h"
#include "desk/destinations.h"
#include "desk/forms.h"

static void put_conf(struct hk_json *json, const struct hk_conf_destination *conf)
{
    char url[HK_URL_SHOWN_MAX];
    hk_put_cstr(json, "kind", conf ? hk_conf_kind_name(conf->kind) : NULL);
    hk_put_cstr(json, "url", conf ? hk_conf_url(conf, url) : NULL);
    hk_put_str(json, "policy", hk_str_of(conf ? conf->policy : NULL));
    hk_json_key(json, "rate_per_s");
    if (conf && conf->limits.rate_per_s > 0)
        hk_json_double(json, conf->limits.rate_per_s);
    else
        hk_json_null(json);
    hk_put_limit(json, "concurrency", conf ? conf->limits.concurrency : 0);
    hk_put_cstr(json, "order", !conf ? NULL : conf->order == HK_ORDER_KEY ? "key" : "none");
}

static void put_row(struct hk_json *json, const struct hk_dest_row *row)
{
    hk_json_object(json);
    hk_json_key(json, "name");
    hk_json_str(json, row->name);
    hk_put_bool(json, "configured", row->conf != NULL);
    put_conf(json, row->conf);
    hk_put_count(json, "pending", row->state.pending);
    hk_put_count(json, "retrying", row->state.retrying);
    hk_put_count(json, "dead", row->state.dead);
    hk_put_held(json, &row->state);
    hk_json_end(json);
}

void hk_encode_destinations(struct hk_json *json, const void *result)
{
    const struct hk_dests *dests = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < dests->n; i++)
        put_row(json, &dests->items[i]);
    hk_json_end(json);
    hk_put_cstr(json, "next", NULL);
    hk_json_end(json);
}

void hk_encode_destination_paused(struct hk_json *json, const void *result)
{
    const struct hk_dest_paused *done = result;
    hk_json_object(json);
    hk_put_cstr(json, "destination", done->destination);
    hk_put_bool(json, "paused", done->paused);
    hk_put_bool(json, "changed", done->changed);
    hk_json_end(json);
}

void hk_encode_destination_tested(struct hk_json *json, const void *result)
{
    const struct hk_dest_tested *tested = result;
    const struct hk_delivered *got = &tested->got;
    char url[HK_URL_SHOWN_MAX];
    hk_json_object(json);
    hk_put_cstr(json, "destination", tested->conf->name);
    hk_put_cstr(json, "kind", hk_conf_kind_name(tested->conf->kind));
    hk_put_cstr(json, "url", hk_conf_url(tested->conf, url));
    hk_put_bool(json, "ok", got->failure_class == HK_CLASS_SUCCESS);
    hk_put_cstr(json, "class", hk_class_name(got->failure_class));
    hk_put_str(json, "cause", got->cause);
    hk_put_limit(json, "status", got->status > 0 ? (uint64_t)got->status : 0);
    hk_put_cstr(json, "fault", hk_fault_name(got->fault));
    hk_put_u64(json, "duration_ms", got->duration_ms);
    hk_put_str(json, "address", got->address);
    hk_put_str(json, "error", got->error);
    hk_put_cstr(json, "message_id", tested->message_id);
    hk_put_str(json, "request_headers", got->request_headers);
    hk_put_str(json, "response_headers", got->response_headers);
    hk_put_bytes(json, "response_body", got->body);
    hk_json_end(json);
}
