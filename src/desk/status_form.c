/* SPDX-License-Identifier: Apache-2.0 */
/* status and relays as forms. */
#include "base/str.h"
#include "desk/forms.h"
#include "desk/status.h"

static void form_relay(struct hk_form *form, void *result)
{
    struct hk_relay_status *relay = result;
    hk_form_bool(form, "running", &relay->running);
    hk_form_id(form, "lane", &relay->lane);
    hk_form_str(form, "name", &relay->name);
    hk_form_str(form, "version", &relay->version);
    hk_form_time(form, "started_at", &relay->started_ms);
    hk_form_left(form, "lease_left_ms", &relay->until_ms);
}

static void form_latency(struct hk_form *form, void *result)
{
    struct hk_status_lately *f = result;
    hk_form_uint(form, "p50", &f->p50_ms);
    hk_form_uint(form, "p95", &f->p95_ms);
    hk_form_uint(form, "p99", &f->p99_ms);
}

void hk_form_lately(struct hk_form *form, void *result)
{
    struct hk_status_lately *f = result;
    hk_form_double(form, "in_per_s", &f->in_per_s);
    hk_form_double(form, "out_per_s", &f->out_per_s);
    hk_form_uint(form, "attempts_ok", &f->sent);
    hk_form_uint(form, "attempts_failed", &f->failed);
    hk_form_uint(form, "dead", &f->dead);
    hk_form_ratio(form, "success_ratio", &f->ratio);
    hk_form_object(form, "latency_ms", &f->has_latency, form_latency, f);
}

static const char *breaker_word(unsigned breaker)
{
    static const char *const words[HK_BREAKER_NSEEN] = {"closed", "open", "half_open"};
    return words[breaker];
}

static void form_dest(struct hk_form *form, void *result)
{
    struct hk_status_dest *o = result;
    struct hk_dest_status *d = &o->backlog;
    hk_form_text(form, "name", &o->name);
    hk_form_count(form, "pending", &d->pending);
    hk_form_exact(form, "processing", &d->processing);
    hk_form_count(form, "retrying", &d->retrying);
    hk_form_count(form, "dead", &d->dead);
    hk_form_object(form, "blocked", &o->ordered, hk_form_count_members, &o->blocked);
    hk_form_held(form, d);
    hk_form_choice(form, "breaker", &o->breaker, breaker_word, HK_BREAKER_NSEEN);
    hk_form_bool(form, "limited", &o->limited);
    hk_form_time(form, "limited_until", &o->ready_at_ms);
    hk_form_object(form, "last_minute", &o->known, hk_form_lately, &o->lately);
    hk_form_str(form, "last_error", &o->last_error);
    hk_form_time(form, "last_error_at", &o->last_error_ms);
    hk_form_unusable(form, &o->unusable);
    if (hk_form_reads(form)) {
        d->name = o->name;
        o->lately.ratio = o->known ? o->lately.ratio : -1;
    }
}

static void form_bucket(struct hk_form *form, void *result)
{
    struct hk_str name = hk_str_of(hk_status_buckets[hk_form_index(form)]); /* its place says it all */
    hk_form_str(form, "attempts", &name);
    hk_form_count(form, "messages", result);
}

void hk_form_status(struct hk_form *form, void *result)
{
    struct hk_status *o = result;
    struct hk_store_status *s = &o->store;
    hk_form_now(form, "now", &s->now_ms);
    hk_form_count(form, "due", &s->due);
    hk_form_count(form, "retrying", &o->retrying);
    hk_form_count(form, "retrying_later", &s->retrying);
    hk_form_count(form, "scheduled", &s->scheduled);
    hk_form_exact(form, "processing", &s->processing);
    hk_form_object(form, "blocked", &o->blocked_known, hk_form_count_members, &o->blocked);
    hk_form_count(form, "dead", &s->dead);
    hk_form_count(form, "sent", &s->sent);
    hk_form_count(form, "cancelled", &s->cancelled);
    hk_form_uint(form, "stuck", &s->stuck);
    hk_form_age(form, "oldest_due_ms", &s->oldest_due_ms);
    hk_form_age(form, "oldest_undelivered_ms", &s->oldest_ms);
    hk_form_list(form, "attempts",
                 &(struct hk_form_list){.items = s->attempts,
                                        .most = HK_ATTEMPT_BUCKETS,
                                        .size = sizeof s->attempts[0],
                                        .fn = form_bucket});
    hk_form_object(form, "relay", &s->relay.known, form_relay, &s->relay);
    hk_form_uint(form, "relays_running", &s->relays_running);
    hk_form_list(form, "destinations", &HK_FORM_ITEMS(o->dests, o->n_dests, form_dest));
    hk_form_bool(form, "more_destinations", &s->more_dests);
    hk_form_failure(form, "figures_error", &o->no_figures);
}

/* ---- relays ---- */

static void form_relay_row(struct hk_form *form, void *result)
{
    struct hk_relay_row *r = result;
    hk_form_str(form, "name", &r->name);
    hk_form_id(form, "lane", &r->lane);
    hk_form_str(form, "boot", &r->boot);
    hk_form_str(form, "version", &r->version);
    hk_form_bool(form, "running", &r->running);
    hk_form_time(form, "started_at", &r->started_ms);
    hk_form_uint(form, "shards", &r->shards);
    hk_form_uint(form, "in_hand", &r->in_hand);
    hk_form_age(form, "lag_ms", &r->oldest_due_ms);
    hk_form_left(form, "lease_left_ms", &r->until_ms);
}

void hk_form_relays(struct hk_form *form, void *result)
{
    struct hk_relays *relays = result;
    hk_form_now(form, "now", &relays->now_ms);
    hk_form_list(form, "items", &HK_FORM_ITEMS(relays->items, relays->n, form_relay_row));
    hk_form_null(form, "next");
    hk_form_uint(form, "shards", &relays->shards);
    hk_form_uint(form, "shards_free", &relays->shards_free);
}
