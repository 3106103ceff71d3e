/* SPDX-License-Identifier: Apache-2.0 */
/* status and relays as JSON. */
#include "base/str.h"
#include "desk/encode.h"
#include "desk/put.h"
#include "desk/status.h"

static void put_age(struct hk_json *json, const char *key, int64_t ms, int64_t now_ms)
{
    hk_json_key(json, key);
    if (ms == 0)
        hk_json_null(json);
    else
        hk_json_i64(json, ms < now_ms ? now_ms - ms : 0);
}

static void put_relay(struct hk_json *json, const struct hk_store_status *s)
{
    hk_json_key(json, "relay");
    if (!s->relay.known) {
        hk_json_null(json);
        return;
    }
    hk_json_object(json);
    hk_put_bool(json, "running", s->relay.running);
    hk_put_id(json, "lane", s->relay.lane);
    hk_put_str(json, "name", s->relay.name);
    hk_put_str(json, "version", s->relay.version);
    hk_put_time(json, "started_at", s->relay.started_ms);
    hk_put_i64(json, "lease_left_ms", s->relay.until_ms - s->now_ms);
    hk_json_end(json);
}

static void put_ratio(struct hk_json *json, const char *key, double value)
{
    hk_json_key(json, key);
    if (value < 0)
        hk_json_null(json);
    else
        hk_json_double(json, value);
}

static void put_latency(struct hk_json *json, const struct hk_histogram *latency)
{
    hk_json_key(json, "latency_ms");
    if (hk_histogram_count(latency) == 0) {
        hk_json_null(json);
        return;
    }
    hk_json_object(json);
    hk_put_u64(json, "p50", hk_histogram_quantile(latency, 0.5));
    hk_put_u64(json, "p95", hk_histogram_quantile(latency, 0.95));
    hk_put_u64(json, "p99", hk_histogram_quantile(latency, 0.99));
    hk_json_end(json);
}

/* null: no relay has told of it lately. */
static void put_lately(struct hk_json *json, const struct hk_figures_sum *f)
{
    hk_json_key(json, "last_minute");
    if (!f->known) {
        hk_json_null(json);
        return;
    }
    hk_json_object(json);
    hk_put_double(json, "in_per_s", f->in_per_s);
    hk_put_double(json, "out_per_s", f->out_per_s);
    hk_put_u64(json, "attempts_ok", f->sent);
    hk_put_u64(json, "attempts_failed", f->failed);
    hk_put_u64(json, "dead", f->dead);
    put_ratio(json, "success_ratio", hk_status_ratio(f));
    put_latency(json, &f->latency);
    hk_json_end(json);
}

static void put_blocked(struct hk_json *json, bool known, struct hk_count count)
{
    if (known) {
        hk_put_count(json, "blocked", count);
        return;
    }
    hk_json_key(json, "blocked");
    hk_json_null(json);
}

static void put_dest(struct hk_json *json, const struct hk_status_dest *o, int64_t now_ms)
{
    const struct hk_dest_status *d = &o->backlog;
    hk_json_object(json);
    hk_json_key(json, "name");
    hk_json_str(json, o->name);
    hk_put_count(json, "pending", d->pending);
    hk_put_count(json, "processing", (struct hk_count){d->processing, false});
    hk_put_count(json, "retrying", d->retrying);
    hk_put_count(json, "dead", d->dead);
    put_blocked(json, o->ordered, o->blocked);
    hk_put_held(json, d);
    hk_put_cstr(json, "breaker", hk_status_breaker(o, now_ms));
    hk_put_bool(json, "limited", o->lately.limited);
    hk_put_time(json, "limited_until", o->lately.ready_at_ms);
    put_lately(json, &o->lately);
    hk_put_str(json, "last_error", o->lately.last_error);
    hk_put_time(json, "last_error_at", o->lately.last_error_ms);
    hk_json_end(json);
}

void hk_encode_status(struct hk_json *json, const void *result)
{
    const struct hk_status *o = result;
    const struct hk_store_status *s = &o->store;
    hk_json_object(json);
    hk_put_time(json, "now", s->now_ms);
    hk_put_count(json, "due", s->due);
    hk_put_count(json, "retrying", o->retrying);
    hk_put_count(json, "retrying_later", s->retrying);
    hk_put_count(json, "scheduled", s->scheduled);
    hk_put_count(json, "processing", (struct hk_count){s->processing, false});
    put_blocked(json, o->blocked_known, o->blocked);
    hk_put_count(json, "dead", s->dead);
    hk_put_count(json, "sent", s->sent);
    hk_put_count(json, "cancelled", s->cancelled);
    hk_put_u64(json, "stuck", s->stuck);
    put_age(json, "oldest_due_ms", s->oldest_due_ms, s->now_ms);
    put_age(json, "oldest_undelivered_ms", s->oldest_ms, s->now_ms);
    hk_json_key(json, "attempts");
    hk_json_array(json);
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++) {
        hk_json_object(json);
        hk_put_str(json, "attempts", hk_str_of(hk_status_buckets[i]));
        hk_put_count(json, "messages", s->attempts[i]);
        hk_json_end(json);
    }
    hk_json_end(json);
    put_relay(json, s);
    hk_put_u64(json, "relays_running", s->relays_running);
    hk_json_key(json, "destinations");
    hk_json_array(json);
    for (size_t i = 0; i < o->n_dests; i++)
        put_dest(json, &o->dests[i], s->now_ms);
    hk_json_end(json);
    hk_put_bool(json, "more_destinations", s->more_dests);
    hk_put_cstr(json, "figures_error", o->no_figures.code != HK_OK ? o->no_figures.message : NULL);
    hk_json_end(json);
}

/* ---- relays ---- */

static void put_relay_row(struct hk_json *json, const struct hk_relay_row *r, int64_t now_ms)
{
    hk_json_object(json);
    hk_put_str(json, "name", r->name);
    hk_put_id(json, "lane", r->lane);
    hk_put_str(json, "boot", r->boot);
    hk_put_str(json, "version", r->version);
    hk_put_bool(json, "running", r->running);
    hk_put_time(json, "started_at", r->started_ms);
    hk_put_u64(json, "shards", r->shards);
    hk_put_u64(json, "in_hand", r->in_hand);
    hk_json_key(json, "lag_ms");
    if (r->oldest_due_ms != 0)
        hk_json_u64(json, r->oldest_due_ms < now_ms ? (uint64_t)now_ms - (uint64_t)r->oldest_due_ms : 0);
    else
        hk_json_null(json);
    hk_put_i64(json, "lease_left_ms",
               r->until_ms < 0 ? -now_ms : r->until_ms - now_ms); /* rows may hold anything */
    hk_json_end(json);
}

void hk_encode_relays(struct hk_json *json, const void *result)
{
    const struct hk_relays *relays = result;
    hk_json_object(json);
    hk_json_key(json, "items");
    hk_json_array(json);
    for (size_t i = 0; i < relays->n; i++)
        put_relay_row(json, &relays->items[i], relays->now_ms);
    hk_json_end(json);
    hk_json_key(json, "next");
    hk_json_null(json);
    hk_put_u64(json, "shards", relays->shards);
    hk_put_u64(json, "shards_free", relays->shards_free);
    hk_json_end(json);
}
