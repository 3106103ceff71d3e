/* SPDX-License-Identifier: Apache-2.0 */
/* One settle, by kind: what it adds to the exchange's transaction. Each statement asks for the manifest itself, since none
 * of them can wait for another's answer. */
#include "base/str.h"
#include "core/letter.h"
#include "store/detail.h"
#include "store/pg/store.h"

/* $1 now, $2 id, $3 manifest, $4 lane */
static struct hk_pg_args begin_args(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_now(store, &a);
    hk_pg_arg_i64(&store->pg, &a, s->id);
    hk_pg_arg_i64(&store->pg, &a, s->claim);
    hk_pg_arg_i64(&store->pg, &a, lane);
    return a;
}

/* ---- attempts ---- */

static bool wants_attempt(const struct hk_store *store, const struct hk_attempt_record *attempt)
{
    if (!attempt->made)
        return false;
    switch (store->options.history) {
    case HK_STORE_HISTORY_ALL:
        return true;
    case HK_STORE_HISTORY_FAILURES:
        return attempt->failure_class != HK_CLASS_SUCCESS;
    case HK_STORE_HISTORY_NONE:
        return false;
    }
    return false;
}

static void add_attempt(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    const struct hk_attempt_record *at = &s->attempt;
    if (!wants_attempt(store, at))
        return;
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = begin_args(store, s, lane);
    hk_pg_arg_text(pg, &a, s->destination);
    hk_pg_arg_i64(pg, &a, s->history.attempts);
    hk_pg_arg_i64(pg, &a, hk_pg_to_row(store, at->started_ms));
    hk_pg_arg_u64(pg, &a, at->duration_ms);
    hk_pg_arg_i64(pg, &a, at->status);
    hk_pg_arg_text(pg, &a, hk_str_of(hk_class_name(at->failure_class)));
    hk_pg_arg_text_or_null(pg, &a, at->cause);
    hk_pg_arg_text_or_null(pg, &a, at->error);
    hk_pg_arg_text_or_null(pg, &a, at->request_headers);
    hk_pg_arg_text_or_null(pg, &a, at->response_headers);
    if (at->response_body.len)
        hk_pg_arg_bytes(pg, &a, at->response_body);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_arg_text_or_null(pg, &a, at->address);
    hk_pg_arg_bool(pg, &a, at->possibly_delivered);
    hk_pg_add(pg, s->source == HK_FROM_OUTBOX ? HK_PG_ADD_ATTEMPT : HK_PG_ADD_ATTEMPT_RETRY, &a);
}

/* ---- into outbox_retry ---- */

static void arg_past(struct hk_store *store, struct hk_pg_args *a, const struct hk_settle *s, bool prev_wait)
{
    struct hk_pg *pg = &store->pg;
    const struct hk_history *h = &s->history;
    hk_pg_arg_i64(pg, a, h->attempts);
    hk_pg_arg_i64(pg, a, h->charged);
    for (int c = HK_CLASS_TRANSIENT; c < HK_NCLASSES; c++)
        hk_pg_arg_i64(pg, a, h->failures[c]);
    if (prev_wait)
        hk_pg_arg_u64(pg, a, h->prev_wait_ms);
    hk_pg_arg_i64(pg, a, hk_pg_to_row(store, h->first_attempt_ms));
    hk_pg_arg_i64(pg, a, hk_pg_to_row(store, s->first_failed_ms));
    hk_pg_arg_i64(pg, a, s->attempt.made ? hk_pg_to_row(store, s->attempt.started_ms) : 0);
    hk_pg_arg_text_or_null(pg, a, s->attempt.cause);
    hk_pg_arg_text_or_null(pg, a, s->attempt.error);
    hk_pg_arg_bool(pg, a, s->attempt.possibly_delivered);
}

/* When a deferred message is due its application said: by the clock. */
static int64_t due_ms(const struct hk_store *store, const struct hk_settle *s)
{
    return s->kind == HK_SETTLE_RETRY ? hk_pg_to_row(store, s->due_ms) : s->due_ms;
}

/* A fan-out is due now, all else when the settle says. */
static void move(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    bool fan_out = s->kind == HK_SETTLE_FAN_OUT;
    struct hk_pg_args a = begin_args(store, s, lane);
    hk_pg_arg_texts(&store->pg, &a, fan_out ? s->fan_out : &s->destination, fan_out ? s->n_fan_out : 1);
    if (fan_out)
        hk_pg_arg_null(&store->pg, &a);
    else
        hk_pg_arg_i64(&store->pg, &a, due_ms(store, s));
    hk_pg_arg_bool(&store->pg, &a, s->kind == HK_SETTLE_DEFER);
    arg_past(store, &a, s, true);
    hk_pg_arg_rest_of(&store->pg, &a, &store->rest, s->id);
    hk_pg_add(&store->pg, HK_PG_MOVE, &a);
}

static void update_retry(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    bool defer = s->kind == HK_SETTLE_DEFER;
    struct hk_pg_args a = begin_args(store, s, lane);
    hk_pg_arg_text(&store->pg, &a, s->destination);
    hk_pg_arg_i64(&store->pg, &a, due_ms(store, s));
    if (!defer)
        hk_pg_arg_bool(&store->pg, &a, s->attempt.made);
    arg_past(store, &a, s, !defer);
    hk_pg_add(&store->pg, defer ? HK_PG_DEFER_RETRY : HK_PG_UPDATE_RETRY, &a);
}

static void copy_retry(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    struct hk_pg_args a = begin_args(store, s, lane);
    hk_pg_arg_texts(&store->pg, &a, s->fan_out, s->n_fan_out);
    hk_pg_add(&store->pg, HK_PG_COPY_RETRY, &a);
}

static void release_retry(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    struct hk_pg_args a = {0};
    hk_pg_arg_i64(&store->pg, &a, s->id);
    hk_pg_arg_i64(&store->pg, &a, s->claim);
    hk_pg_arg_i64(&store->pg, &a, lane);
    hk_pg_add(&store->pg, HK_PG_RELEASE_RETRY, &a);
}

/* ---- into dead_letters ---- */

/* What it died of, for those who look for others like it. */
static void arg_cause(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_settle *s)
{
    const struct hk_attempt_record *at = &s->attempt;
    char fingerprint[HK_FINGERPRINT_MAX];
    hk_fingerprint(at->made ? at->failure_class : HK_CLASS_SUCCESS, s->reason, s->destination, at->error,
                   fingerprint);
    if (at->made)
        hk_pg_arg_text(pg, a, hk_str_of(hk_class_name(at->failure_class)));
    else
        hk_pg_arg_null(pg, a);
    hk_pg_arg_text(pg, a, hk_str_of(hk_blame_name(hk_blame_of(s->reason, at->cause, at->status))));
    hk_pg_arg_text(pg, a, hk_str_of(fingerprint));
    hk_pg_arg_bool(pg, a, at->possibly_delivered);
}

static void bury(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    struct hk_pg *pg = &store->pg;
    struct hk_buf detail;
    hk_buf_init(&detail, HK_DETAIL_BYTES);
    hk_store_detail(&detail, &s->attempt);
    enum hk_code status = hk_buf_status(&detail);
    if (status == HK_NOMEM)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    struct hk_pg_args a = begin_args(store, s, lane);
    hk_pg_arg_text(pg, &a, s->destination);
    hk_pg_arg_text(pg, &a, s->reason);
    hk_pg_arg_text_or_null(pg, &a, s->attempt.error);
    hk_pg_arg_text_or_null(pg, &a, status == HK_OK ? hk_buf_str(&detail) : (struct hk_str){0});
    hk_pg_arg_i64(pg, &a, s->history.attempts);
    hk_pg_arg_i64(pg, &a, hk_pg_to_row(store, s->first_failed_ms));
    if (s->attempt.made)
        hk_pg_arg_i64(pg, &a, hk_pg_to_row(store, s->attempt.started_ms));
    else
        hk_pg_arg_null(pg, &a);
    arg_cause(pg, &a, s);
    if (s->source == HK_FROM_OUTBOX)
        hk_pg_arg_rest_of(pg, &a, &store->rest, s->id);
    hk_pg_add(pg, s->source == HK_FROM_OUTBOX ? HK_PG_BURY : HK_PG_BURY_RETRY, &a);
    hk_buf_fini(&detail);
}

/* ---- sent ---- */

static void sent_retry(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    struct hk_pg_args a = begin_args(store, s, lane);
    if (store->options.keep_sent) {
        hk_pg_arg_text(&store->pg, &a, s->destination);
        hk_pg_arg_i64(&store->pg, &a, s->history.attempts);
        hk_pg_arg_i64(&store->pg, &a, s->attempt.status);
    }
    hk_pg_add(&store->pg, store->options.keep_sent ? HK_PG_SENT_RETRY_KEPT : HK_PG_SENT_RETRY, &a);
}

static void settle_fresh(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    switch (s->kind) {
    case HK_SETTLE_SENT:    /* all of them together: exchange.c */
    case HK_SETTLE_RELEASE: /* the manifest is written again without it */
        break;
    case HK_SETTLE_RETRY:
    case HK_SETTLE_DEFER:
    case HK_SETTLE_FAN_OUT:
        move(store, s, lane);
        break;
    case HK_SETTLE_DEAD:
        bury(store, s, lane);
        break;
    }
}

static void settle_retry(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    switch (s->kind) {
    case HK_SETTLE_SENT:
        sent_retry(store, s, lane);
        break;
    case HK_SETTLE_RETRY:
    case HK_SETTLE_DEFER:
        update_retry(store, s, lane);
        break;
    case HK_SETTLE_DEAD:
        bury(store, s, lane);
        break;
    case HK_SETTLE_RELEASE:
        release_retry(store, s, lane);
        break;
    case HK_SETTLE_FAN_OUT:
        copy_retry(store, s, lane);
        break;
    }
}

void hk_pg_settle(struct hk_store *store, const struct hk_settle *s, int64_t lane)
{
    add_attempt(store, s, lane);
    if (s->source == HK_FROM_OUTBOX)
        settle_fresh(store, s, lane);
    else
        settle_retry(store, s, lane);
}
