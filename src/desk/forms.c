/* SPDX-License-Identifier: Apache-2.0 */
/* Members that the JSON of several operations has. */
#include "base/str.h"
#include "desk/forms.h"

void hk_form_count_members(struct hk_form *form, void *result)
{
    struct hk_count *count = result;
    hk_form_uint(form, "n", &count->n);
    hk_form_bool(form, "estimate", &count->about);
}

void hk_form_count(struct hk_form *form, const char *key, struct hk_count *count)
{
    hk_form_object(form, key, NULL, hk_form_count_members, count);
}

void hk_form_exact(struct hk_form *form, const char *key, uint64_t *n)
{
    struct hk_count count = {*n, false};
    hk_form_count(form, key, &count);
    if (hk_form_reads(form))
        *n = count.n;
}

void hk_form_held(struct hk_form *form, struct hk_dest_status *dest)
{
    hk_form_bool(form, "paused", &dest->paused);
    hk_form_str(form, "paused_by", &dest->actor);
    hk_form_str(form, "paused_reason", &dest->reason);
    hk_form_time(form, "paused_at", &dest->since_ms);
    hk_form_time(form, "breaker_open_until", &dest->open_until_ms);
}

static void form_unusable(struct hk_form *form, void *result)
{
    struct hk_unusable *u = result;
    hk_form_uint(form, "relays", &u->relays);
    hk_form_str(form, "why", &u->why);
    hk_form_time(form, "since", &u->since_ms);
}

void hk_form_unusable(struct hk_form *form, struct hk_unusable *unusable)
{
    bool some = unusable->relays > 0;
    hk_form_object(form, "unusable", &some, form_unusable, unusable);
}

void hk_form_attempt(struct hk_form *form, void *result)
{
    struct hk_tried *a = result;
    uint32_t status = a->status > 0 ? (uint32_t)a->status : 0;
    hk_form_str(form, "destination", &a->destination);
    hk_form_uint(form, "life", &a->life);
    hk_form_uint(form, "attempt", &a->n);
    hk_form_time(form, "started_at", &a->started_ms);
    hk_form_uint(form, "duration_ms", &a->duration_ms);
    hk_form_limit(form, "status", &status);
    hk_form_str(form, "class", &a->failure_class);
    hk_form_str(form, "cause", &a->cause);
    hk_form_str(form, "error", &a->error);
    hk_form_str(form, "address", &a->address);
    hk_form_str(form, "request_headers", &a->request_headers);
    hk_form_str(form, "response_headers", &a->response_headers);
    hk_form_bytes(form, "response_body", &a->response_body);
    hk_form_bool(form, "possibly_delivered", &a->possibly_delivered);
    if (hk_form_reads(form))
        a->status = (int)(status & INT32_MAX);
}
