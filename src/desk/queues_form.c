/* SPDX-License-Identifier: Apache-2.0 */
/* Queues as forms. */
#include "desk/forms.h"
#include "desk/queues.h"

void hk_form_queue(struct hk_form *form, void *result)
{
    struct hk_queue *q = result;
    struct hk_queue_settings *s = &q->is;
    uint64_t attempts = s->max_attempts > 0 ? (uint64_t)s->max_attempts : 0;
    hk_form_cstr(form, "name", &q->name);
    hk_form_cstr(form, "destination", &q->destination);
    hk_form_bool(form, "paused", &q->paused);
    hk_form_double(form, "rate_per_s", &s->rate_per_s);
    hk_form_int(form, "burst", &s->burst);
    hk_form_int(form, "concurrency", &s->concurrency);
    hk_form_limit(form, "max_attempts", &attempts);
    hk_form_limit(form, "max_retry_ms", &s->max_retry_ms);
    hk_form_int(form, "min_backoff_ms", &s->min_backoff_ms);
    hk_form_int(form, "max_backoff_ms", &s->max_backoff_ms);
    hk_form_int(form, "max_doublings", &s->max_doublings);
    hk_form_cstr(form, "policy", &s->policy);
    hk_form_count(form, "waiting", &q->waiting);
    hk_form_uint(form, "in_flight", &q->in_flight);
    hk_form_count(form, "dead", &q->dead);
    if (hk_form_reads(form))
        s->max_attempts = attempts ? (int64_t)attempts : -1;
}

void hk_form_queues(struct hk_form *form, void *result)
{
    struct hk_queues *queues = result;
    hk_form_list(form, "items", &HK_FORM_ITEMS(queues->items, queues->n, hk_form_queue));
    hk_form_cstr(form, "next", &queues->next);
}

void hk_form_queue_gone(struct hk_form *form, void *result)
{
    struct hk_queue_gone *gone = result;
    hk_form_cstr(form, "name", &gone->name);
    hk_form_cstr(form, "did", &gone->did);
    hk_form_uint(form, "cancelled", &gone->cancelled);
    hk_form_uint(form, "left", &gone->left);
    hk_form_time(form, "before", &gone->before_ms);
    hk_form_id(form, "job_id", &gone->job_id);
}
