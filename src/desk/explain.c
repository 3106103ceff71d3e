/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages explain: says why a message was not sent yet, or what happened to it, and what to do about it.
 *
 * The store gives facts (hk_why), the configuration gives order, limits and routes, the relays' figures say whether a limiter holds the
 * message back. This file turns them into causes, the weightiest first: causes that hold the message for ever, then causes that hold
 * all messages, then those that a person has to undo, then those that pass by themselves. It repeats no payload and no error text:
 * those are for `messages show`, which masks them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/named.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "desk/definitions.h"
#include "desk/explain.h"
#include "desk/forms.h"
#include "exec/clock.h"

enum {
    TEXT_MAX = 2048,
    WHEN_MAX = 160,
    CONCURRENCY_DEFAULT = 64
};

/* ---- where a message goes ---- */

static struct hk_where where_named(struct hk_desk *desk, struct hk_str name, struct hk_pool *mem)
{
    const struct hk_conf_destination *conf = NULL;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_desk_destination(desk, name, false, mem, &conf, &err);
    const char *why = rc == HK_INVALID ? hk_pool_copy_str(mem, hk_str_of(err.message)) : NULL;
    if (why)
        return (struct hk_where){.kind = HK_WHERE_UNUSABLE, .why = why};
    if (rc != HK_OK || (!conf && !hk_config_destination(desk->config, 0)))
        return (struct hk_where){.kind = HK_WHERE_OPEN};
    return (struct hk_where){.kind = conf ? HK_WHERE_ONE : HK_WHERE_UNKNOWN, .conf = conf};
}

struct hk_where hk_where(struct hk_desk *desk, struct hk_str destination, struct hk_str event_type,
                         struct hk_pool *mem)
{
    const struct hk_config *config = desk->config;
    const struct hk_conf_route *route = NULL;
    if (!destination.len && !hk_config_destination(config, 0))
        return (struct hk_where){.kind = HK_WHERE_OPEN};
    if (!destination.len) {
        for (size_t i = 0; (route = hk_config_route(config, i)) != NULL; i++)
            if (hk_str_glob(route->event_type, event_type))
                break;
        if (!route)
            return (struct hk_where){.kind = HK_WHERE_NO_ROUTE};
        if (route->destinations.n > 1)
            return (struct hk_where){.kind = HK_WHERE_SEVERAL};
        destination = hk_str_of(hk_conf_text(&route->destinations, 0));
    }
    return where_named(desk, destination, mem);
}

/* ---- causes ---- */

/* The facts about one row. */
struct facts {
    const struct hk_config *config;
    struct hk_pool *mem;
    const struct hk_row *row;
    struct hk_where where;
    const struct hk_why *why;     /* of a row that has not gone out */
    struct hk_figures_sum lately; /* of its destination */
    int64_t now_ms;
    struct hk_explained *out;
    struct hk_cause spare; /* never shown: there are fewer causes than room */
    bool failed;           /* out of memory */
};

static const char *keep_text(struct facts *f, const char *fmt, va_list args) HK_PRINTF(2, 0);

static const char *keep_text(struct facts *f, const char *fmt, va_list args)
{
    char text[TEXT_MAX];
    (void)vsnprintf(text, sizeof text, fmt, args);
    const char *kept = hk_pool_copy_str(f->mem, hk_str_of(text));
    f->failed = f->failed || !kept;
    return kept ? kept : "";
}

/* `cause` is what programs decide by, `code` tells its sentences apart, and `values` are those in the sentence: web/words says the same
 * in Japanese, from these two. */
static struct hk_cause *add(struct facts *f, const char *cause, const char *code,
                            const struct hk_named *values, const char *fmt, ...) HK_PRINTF(5, 6);

static struct hk_cause *add(struct facts *f, const char *cause, const char *code,
                            const struct hk_named *values, const char *fmt, ...)
{
    struct hk_cause *c = f->out->n < HK_CAUSES_MAX ? &f->out->causes[f->out->n++] : &f->spare;
    va_list args;
    va_start(args, fmt);
    *c = (struct hk_cause){.cause = cause,
                           .code = code,
                           .values = hk_named_keep(values, f->mem),
                           .text = keep_text(f, fmt, args),
                           .advice = "",
                           .by = {"", 0},
                           .reason = {"", 0},
                           .message_id = {"", 0}};
    va_end(args);
    f->failed = f->failed || !c->values.ptr;
    return c;
}

static void advise(struct facts *f, struct hk_cause *c, const char *fmt, ...) HK_PRINTF(3, 4);

static void advise(struct facts *f, struct hk_cause *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    c->advice = keep_text(f, fmt, args);
    va_end(args);
}

static const char *at(int64_t ms, int64_t now_ms, char out[WHEN_MAX])
{
    char when[HK_TIME_TEXT_MAX], ago[HK_SHOW_NUMBER];
    (void)hk_format_rfc3339(ms, when);
    (void)snprintf(out, WHEN_MAX, "%s (%s)", when, hk_show_ago(ms, now_ms, ago));
    return out;
}

static const char *name_of(const struct facts *f, char out[HK_SHOW_MAX])
{
    if (!f->out->to.len)
        (void)snprintf(out, HK_SHOW_MAX, "\"\" (by route)");
    else
        (void)hk_show(f->out->to, out);
    return out;
}

static void explain_where(struct facts *f)
{
    char shown[HK_SHOW_MAX];
    if (f->where.kind == HK_WHERE_UNKNOWN) {
        struct hk_cause *c =
            add(f, "unknown_destination", "unknown_destination",
                HK_NAMED(hk_named_str("destination", f->row->destination)),
                "the configuration has no destination %s: a relay that looks at it makes it a dead letter",
                hk_show(f->row->destination, shown));
        advise(f, c, "add it to destinations: and reload the relay, or cancel the message");
    } else if (f->where.kind == HK_WHERE_NO_ROUTE) {
        struct hk_cause *c =
            add(f, "no_route", "no_route", HK_NAMED(hk_named_str("event_type", f->row->event_type)),
                "it names no destination, and no route takes event type %s: a relay that "
                "looks at it makes it a dead letter",
                hk_show(f->row->event_type, shown));
        advise(f, c, "add a route for it and reload the relay");
    } else if (f->where.kind == HK_WHERE_UNUSABLE && !f->lately.unusable.relays) {
        struct hk_cause *c = add(
            f, "unusable_destination", "unusable_destination",
            HK_NAMED(hk_named_str("destination", f->row->destination), hk_named_cstr("error", f->where.why)),
            "the definition of destination %s in the store cannot be used: %s",
            hk_show(f->row->destination, shown), f->where.why);
        advise(f, c, "'hikyaku destinations update' mends it; until then the message waits, uncharged");
    }
}

/* Relays say so: they know better than this machine what they lack. */
static void explain_unusable(struct facts *f)
{
    const struct hk_unusable *u = &f->lately.unusable;
    char name[HK_SHOW_MAX], when[WHEN_MAX];
    struct hk_buf why;
    if (!u->relays)
        return;
    hk_buf_init(&why, TEXT_MAX);
    hk_show_plain(u->why, HK_FIGURES_ERROR_MAX, &why);
    struct hk_cause *c = add(
        f, "unusable_destination", "unusable_by_relays",
        HK_NAMED(hk_named_count("n", u->relays), hk_named_int("relays", f->why->relays_running),
                 hk_named_str("destination", f->out->to), hk_named_str("error", u->why)),
        "%" PRIu64 " of %" PRIu32 " relays cannot use destination %s of the store since %s: %s", u->relays,
        f->why->relays_running, name_of(f, name), at(u->since_ms, f->now_ms, when), hk_buf_cstr(&why));
    hk_buf_fini(&why);
    c->since_ms = u->since_ms;
    advise(
        f, c,
        "give the relay what it lacks, or mend the definition ('hikyaku destinations update'): relays look "
        "again every 5 s; until then the message waits, uncharged");
}

static void explain_expired(struct facts *f)
{
    int64_t ms = 0;
    char when[WHEN_MAX];
    struct hk_str text = f->row->expires_at;
    if (!text.len || hk_parse_rfc3339(text, &ms, NULL) != HK_OK || ms > f->now_ms)
        return;
    struct hk_cause *c =
        add(f, "expired", "expired", HK_NAMED_NONE,
            "it has expired: its expires_at was %s; a relay that looks at it makes it a dead letter",
            at(ms, f->now_ms, when));
    c->until_ms = ms;
    advise(f, c, "enqueue it anew with a later expires_at, if it is still wanted");
}

static void explain_no_relay(struct facts *f)
{
    if (f->why->relays_running == 0)
        advise(f,
               add(f, "no_relay", "no_relay", HK_NAMED_NONE,
                   "no relay is running on this store: nothing goes out"),
               "start one: hikyaku run");
}

static void explain_pause(struct facts *f)
{
    const struct hk_why *why = f->why;
    char name[HK_SHOW_MAX], by[HK_SHOW_MAX], reason[HK_SHOW_MAX], when[WHEN_MAX];
    if (!why->paused)
        return;
    struct hk_cause *c =
        add(f, "paused", "paused", HK_NAMED(hk_named_str("destination", f->out->to)),
            "destination %s is paused by %s since %s: %s", name_of(f, name), hk_show(why->actor, by),
            at(why->since_ms, f->now_ms, when), hk_show(why->reason, reason));
    c->by = why->actor;
    c->reason = why->reason;
    c->since_ms = why->since_ms;
    advise(f, c, "hikyaku destinations resume %s --reason ...", name);
}

/* Says what the head of the message's key does, and what to do about it. */
static void explain_key(struct facts *f)
{
    static const char cause[] = "key_blocked";
    const struct hk_why *why = f->why;
    struct hk_cause *c = NULL;
    char id[HK_SHOW_MAX], when[WHEN_MAX];
    hk_show(why->head_message_id, id);
    switch (why->head) {
    case HK_STATE_NONE:
        return;
    case HK_STATE_DEAD:
        c = add(
            f, cause, "key_blocked_dead",
            HK_NAMED(hk_named_str("message_id", why->head_message_id), hk_named_id("letter", why->head_id)),
            "its key is blocked by message %s, which is dead (letter %" PRId64
            "): later messages of its key wait until it is requeued, resolved or discarded",
            id, why->head_id);
        c->letter_id = why->head_id;
        advise(f, c, "hikyaku dead show %" PRId64 ", then dead requeue, dead resolve or dead discard",
               why->head_id);
        break;
    case HK_RETRYING:
        c = add(f, cause, "key_blocked_retrying", HK_NAMED(hk_named_str("message_id", why->head_message_id)),
                "its key is blocked by message %s, which waits for its next attempt at %s", id,
                at(why->head_due_ms, f->now_ms, when));
        c->until_ms = why->head_due_ms;
        advise(f, c, "hikyaku messages explain %s", id);
        break;
    case HK_PROCESSING:
        c = add(f, cause, "key_blocked_in_flight", HK_NAMED(hk_named_str("message_id", why->head_message_id)),
                "its key is blocked by message %s, which is in flight", id);
        advise(f, c, "wait for it; hikyaku messages explain %s", id);
        break;
    case HK_PENDING:
    case HK_SENT:
    case HK_STATE_CANCELLED:
    case HK_NSTATES:
        c = add(f, cause, "key_blocked_waiting", HK_NAMED(hk_named_str("message_id", why->head_message_id)),
                "its key is blocked by message %s, which came before it and has not gone out yet", id);
        advise(f, c, "hikyaku messages explain %s", id);
        break;
    }
    if (c)
        c->message_id = why->head_message_id;
}

/* It could not be opened when it was its turn. */
static void explain_key_missing(struct facts *f)
{
    char when[WHEN_MAX], why[HK_SHOW_MAX], id[HK_SHOW_MAX];
    struct hk_cause *c = add(
        f, "key_missing", "key_missing",
        HK_NAMED(hk_named_str("message_id", f->row->message_id), hk_named_str("error", f->row->last_error)),
        "it is sealed, and the relay could not open it (%s); it is looked at again at %s",
        hk_show(f->row->last_error, why), at(f->row->next_ms, f->now_ms, when));
    c->until_ms = f->row->next_ms;
    advise(f, c,
           "give the relay its key (seal.keys; hikyaku doctor), then: hikyaku messages retry %s --reason ...",
           hk_show(f->row->message_id, id));
}

static void explain_due(struct facts *f)
{
    const struct hk_row *row = f->row;
    char when[WHEN_MAX], cause[HK_SHOW_MAX], id[HK_SHOW_MAX];
    if (row->next_ms <= f->now_ms)
        return;
    if (hk_str_eq(row->cause, hk_str_of(HK_CAUSE_KEY_MISSING))) {
        explain_key_missing(f);
        return;
    }
    struct hk_cause *c =
        row->state != HK_RETRYING
            ? add(f, "not_due", "not_due_scheduled", HK_NAMED(hk_named_str("message_id", row->message_id)),
                  "it is not due: its not_before is %s", at(row->next_ms, f->now_ms, when))
            : add(f, "not_due", row->cause.len ? "not_due_after" : "not_due_retry",
                  HK_NAMED(hk_named_str("message_id", row->message_id),
                           hk_named_int("attempt", (int64_t)row->attempts + 1),
                           hk_named_str("after", row->cause)),
                  "it is not due: attempt %" PRIu32 " is to be made at %s%s%s", row->attempts + 1,
                  at(row->next_ms, f->now_ms, when), row->cause.len ? ", after " : "",
                  row->cause.len ? hk_show(row->cause, cause) : "");
    c->until_ms = row->next_ms;
    advise(f, c, "to hurry it: hikyaku messages retry %s --reason ...", hk_show(row->message_id, id));
}

static void explain_breaker(struct facts *f)
{
    char name[HK_SHOW_MAX], when[WHEN_MAX];
    if (f->why->open_until_ms <= f->now_ms)
        return;
    struct hk_cause *c =
        add(f, "breaker_open", "breaker_open", HK_NAMED(hk_named_str("destination", f->out->to)),
            "the breaker of %s is open until %s: it failed too often, and is let alone", name_of(f, name),
            at(f->why->open_until_ms, f->now_ms, when));
    c->until_ms = f->why->open_until_ms;
    advise(f, c, "see what fails: hikyaku status; hikyaku destinations test %s; resume closes it", name);
}

static void explain_limit(struct facts *f)
{
    const struct hk_conf_destination *conf = f->where.conf;
    uint32_t most = conf && conf->limits.concurrency > 0 ? conf->limits.concurrency : CONCURRENCY_DEFAULT;
    double rate = conf ? conf->limits.rate_per_s : 0;
    char name[HK_SHOW_MAX], when[WHEN_MAX], n[HK_SHOW_NUMBER];
    name_of(f, name);
    hk_show_about(f->why->ahead.n, f->why->ahead.about, n);
    if (f->lately.limited) {
        int64_t until_ms = f->lately.ready_at_ms > f->now_ms ? f->lately.ready_at_ms : f->now_ms;
        if (rate > 0 && (double)f->why->ahead.n / rate < 1e9)
            until_ms += (int64_t)((double)f->why->ahead.n * 1000 / rate);
        struct hk_cause *c =
            add(f, "rate_limited", "rate_limited",
                HK_NAMED(hk_named_str("destination", f->out->to), hk_named_count("n", f->why->ahead.n),
                         hk_named_count("estimate", f->why->ahead.about)),
                "%s takes no more at this moment (its rate, or a wait that it asked for): until about %s, "
                "with %s before it",
                name, at(until_ms, f->now_ms, when), n);
        c->until_ms = until_ms;
        advise(f, c, "wait, or raise limits.rate of %s", name);
    } else if (f->lately.in_flight >= most) {
        struct hk_cause *c =
            add(f, "concurrency", "concurrency",
                HK_NAMED(
                    hk_named_str("destination", f->out->to), hk_named_count("in_flight", f->lately.in_flight),
                    hk_named_count("n", f->why->ahead.n), hk_named_count("estimate", f->why->ahead.about)),
                "%s has %" PRIu64 " requests in flight, which is its limit; %s come before it", name,
                f->lately.in_flight, n);
        advise(f, c, "wait, or raise limits.concurrency of %s", name);
    }
}

/* ---- in hand ---- */

/* Has that relay not renewed its lease for so long that it is most likely gone? It renews after a third. How long a lease is only the
 * configuration says. */
static bool is_silent(const struct facts *f, int64_t until_ms)
{
    if (until_ms <= f->now_ms)
        return true;
    return f->where.kind != HK_WHERE_OPEN && (uint64_t)(until_ms - f->now_ms) < f->config->relay.lease_ms / 2;
}

static const char *lease_code(bool in_hand, bool over)
{
    if (in_hand)
        return over ? "lease_over_message" : "lease_held_message";
    return over ? "lease_over_shard" : "lease_held_shard";
}

static void explain_lease(struct facts *f, struct hk_str relay, int64_t until_ms, bool in_hand)
{
    char by[HK_SHOW_MAX], when[WHEN_MAX];
    struct hk_cause *c = add(
        f, "lease_held", lease_code(in_hand, until_ms <= f->now_ms), HK_NAMED(hk_named_str("relay", relay)),
        "relay %s %s and has not been heard of lately: its lease %s %s, and then another relay takes over",
        hk_show(relay, by), in_hand ? "has it in hand" : "owns its shard",
        until_ms > f->now_ms ? "holds until" : "ended at", at(until_ms, f->now_ms, when));
    c->by = relay;
    c->until_ms = until_ms;
    advise(f, c, "%s",
           until_ms > f->now_ms ? "wait for the lease to end; see hikyaku relays list"
                                : "start a relay, if none runs: hikyaku run");
}

static void explain_in_hand(struct facts *f)
{
    const struct hk_why *why = f->why;
    char by[HK_SHOW_MAX], when[WHEN_MAX];
    if (is_silent(f, why->until_ms)) {
        explain_lease(f, why->relay, why->until_ms, true);
        explain_no_relay(f);
        return;
    }
    struct hk_cause *c = add(f, "processing", "processing", HK_NAMED(hk_named_str("relay", why->relay)),
                             "relay %s is sending it right now, since %s", hk_show(why->relay, by),
                             at(why->claimed_ms, f->now_ms, when));
    c->by = why->relay;
    c->since_ms = why->claimed_ms;
    c->until_ms = why->until_ms;
    advise(f, c, "wait for the answer, or for the time-out of its policy");
}

static void explain_owner(struct facts *f)
{
    const struct hk_why *why = f->why;
    if (why->owner_until_ms != 0 && why->relays_running > 0 && is_silent(f, why->owner_until_ms))
        explain_lease(f, why->owner, why->owner_until_ms, false);
}

/* Its row is held: neither sent nor looked at before the store could take it away after all. */
static void explain_stuck(struct facts *f)
{
    const struct hk_why *why = f->why;
    char when[WHEN_MAX], error[HK_SHOW_MAX];
    struct hk_cause *c =
        add(f, "stuck", why->stuck_delivered ? "stuck_delivered" : "stuck_claimed",
            HK_NAMED(hk_named_str("error", why->stuck_error)),
            "%s, but the database does not let its row go since %s: %s; it is held, and not sent again",
            why->stuck_delivered ? "it was delivered" : "it was in a relay's hands",
            at(why->stuck_ms, f->now_ms, when), hk_show(why->stuck_error, error));
    c->since_ms = why->stuck_ms;
    advise(f, c, "remove what holds the row (hikyaku doctor names it): relays try again every 30 s");
}

static void explain_queue(struct facts *f)
{
    char n[HK_SHOW_NUMBER];
    if (f->out->n > 0)
        return;
    struct hk_cause *c =
        add(f, "queued", "queued",
            HK_NAMED(hk_named_count("n", f->why->ahead.n), hk_named_count("estimate", f->why->ahead.about)),
            "nothing stands in its way: it is due, with %s before it",
            hk_show_about(f->why->ahead.n, f->why->ahead.about, n));
    advise(f, c, "wait; if it does not go, see hikyaku relays list and the relay's log");
}

/* ---- one row ---- */

static enum hk_code ask_store(struct facts *f, struct hk_desk *desk, bool known, struct hk_err *err)
{
    const struct hk_figures *figures = NULL;
    const struct hk_conf_destination *conf = known ? f->where.conf : NULL;
    bool ordered = conf && conf->order == HK_ORDER_KEY;
    struct hk_err no_figures = {.message = ""};
    char name[512];
    if (!hk_str_copy(name, sizeof name, f->out->to))
        name[0] = '\0'; /* no destination has such a name */
    const struct hk_why_ask ask = {.place = f->row->place,
                                   .id = f->row->id,
                                   .destination = name,
                                   .key = ordered ? f->row->key : hk_str_of(""),
                                   .skip_dead = ordered && conf->on_dead == HK_ON_DEAD_SKIP};
    if (desk->ops->figures(desk->admin, &figures, &no_figures) == HK_OK) /* else all but limits is known */
        hk_figures_sum(figures, f->out->to, &f->lately);
    enum hk_code rc = desk->ops->why(desk->admin, &ask, &f->why, err);
    if (rc == HK_OK)
        hk_desk_keep(desk, f->mem);
    return rc;
}

static enum hk_code explain_live(struct facts *f, struct hk_desk *desk, struct hk_err *err)
{
    f->where = hk_where(desk, f->row->destination, f->row->event_type, f->mem);
    if (f->where.conf)
        f->out->to = hk_str_of(f->where.conf->name);
    bool known = f->out->to.len > 0; /* else nothing can be said of a destination */
    enum hk_code rc = ask_store(f, desk, known, err);
    if (rc != HK_OK)
        return rc;
    f->now_ms = f->why->now_ms;
    if (f->why->stuck_ms != 0) {
        explain_stuck(f); /* nothing else matters */
        return HK_OK;
    }
    if (f->why->lane != 0) {
        explain_in_hand(f); /* likewise */
        return HK_OK;
    }
    explain_where(f);
    explain_unusable(f);
    explain_expired(f);
    explain_no_relay(f);
    explain_owner(f);
    if (known) {
        explain_pause(f);
        explain_key(f);
    }
    explain_due(f);
    if (known) {
        explain_breaker(f);
        explain_limit(f);
    }
    explain_queue(f);
    return HK_OK;
}

static void explain_sent(struct facts *f)
{
    char when[WHEN_MAX];
    struct hk_cause *c = add(f, "sent", f->row->place == HK_IN_DEAD ? "sent_or_resolved" : "sent",
                             HK_NAMED_NONE, "it was sent at %s", at(f->row->done_ms, f->now_ms, when));
    c->since_ms = f->row->done_ms;
    advise(f, c,
           f->row->place == HK_IN_DEAD ? "nothing: it has arrived, or somebody has resolved its dead letter"
                                       : "nothing: it has arrived");
}

/* A letter that somebody resolved counts as sent. */
static void explain_resolved(struct facts *f)
{
    char when[WHEN_MAX];
    struct hk_cause *c =
        add(f, "sent", "resolved", HK_NAMED_NONE, "its dead letter was resolved at %s; no attempt was made",
            at(f->row->done_ms, f->now_ms, when));
    c->since_ms = f->row->done_ms;
    advise(f, c, "nothing: 'hikyaku dead show' says who resolved it, and why");
}

static void explain_cancelled(struct facts *f)
{
    char when[WHEN_MAX], by[HK_SHOW_MAX], reason[HK_SHOW_MAX];
    const struct hk_row *row = f->row;
    struct hk_cause *c =
        add(f, "cancelled", "cancelled", HK_NAMED_NONE, "it was cancelled by %s at %s: %s",
            hk_show(row->actor, by), at(row->done_ms, f->now_ms, when), hk_show(row->reason, reason));
    c->since_ms = row->done_ms;
    c->by = row->actor;
    c->reason = row->reason;
    advise(f, c, "enqueue it anew, if it is wanted after all");
}

static void explain_letter(struct facts *f)
{
    char when[WHEN_MAX], reason[HK_SHOW_MAX];
    const struct hk_row *row = f->row;
    struct hk_cause *c = NULL;
    bool discarded = hk_str_eq(row->letter_status, hk_str_of("discarded"));
    if (row->state == HK_PROCESSING)
        c = add(f, "requeued", "requeued_by_hand", HK_NAMED(hk_named_id("letter", row->id)),
                "its dead letter %" PRId64 " is being sent by hand, or was, and nobody knows how it ended",
                row->id);
    else if (row->state != HK_STATE_DEAD)
        c = add(f, "requeued", "requeued", HK_NAMED(hk_named_id("letter", row->id)),
                "its dead letter %" PRId64 " was requeued under another id", row->id);
    else
        c = add(f, discarded ? "discarded" : "dead", discarded ? "discarded" : "dead",
                HK_NAMED(hk_named_id("letter", row->id), hk_named_str("reason", row->cause),
                         hk_named_int("attempts", row->attempts)),
                "it is a dead letter (%" PRId64 "%s): %s, at %s, after %" PRIu32 " attempt%s", row->id,
                discarded ? ", discarded" : "", hk_show(row->cause, reason),
                at(row->done_ms, f->now_ms, when), row->attempts, row->attempts == 1 ? "" : "s");
    c->letter_id = row->id;
    c->reason = row->cause;
    c->since_ms = row->done_ms;
    advise(f, c, "hikyaku dead show %" PRId64 "%s", row->id,
           discarded                     ? "; dead restore brings it back"
           : row->state != HK_STATE_DEAD ? ""
                                         : ", then dead requeue");
}

static enum hk_code explain_row(struct facts *f, struct hk_desk *desk, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    switch (f->row->place) {
    case HK_IN_RETRY:
    case HK_IN_OUTBOX:
        rc = explain_live(f, desk, err);
        break;
    case HK_IN_DEAD:
        if (f->row->state == HK_SENT && f->row->attempts == 0)
            explain_resolved(f);
        else if (f->row->state == HK_SENT)
            explain_sent(f);
        else
            explain_letter(f);
        break;
    case HK_IN_CANCELLED:
        explain_cancelled(f);
        break;
    case HK_IN_SENT:
    case HK_NPLACES:
        explain_sent(f);
        break;
    }
    return rc == HK_OK && f->failed ? hk_err_set(err, HK_NOMEM, "out of memory") : rc;
}

/* ---- which rows ---- */

static bool is_live(const struct hk_row *row)
{
    return row->place == HK_IN_RETRY || row->place == HK_IN_OUTBOX;
}

/* Earlier rows of a message do not count if the message is still on its way to the same destination. */
static bool is_meant(const struct hk_shown *shown, size_t i, const char *destination)
{
    const struct hk_row *rows = shown->rows;
    if (destination && !hk_str_eq(rows[i].destination, hk_str_of(destination)))
        return false;
    if (is_live(&rows[i]))
        return true;
    for (size_t k = 0; k < shown->n_rows; k++)
        if ((is_live(&rows[k]) || k < i) && hk_str_eq(rows[k].destination, rows[i].destination))
            return false;
    return true;
}

static enum hk_code explain(struct hk_desk *desk, const struct hk_caller *caller,
                            const struct hk_explain_ask *ask, struct hk_pool *mem, struct hk_explanation *out,
                            struct hk_err *err)
{
    const struct hk_shown *found = NULL;
    (void)caller;
    *out = (struct hk_explanation){.message_id = ask->message_id};
    enum hk_code rc = desk->ops->show(desk->admin, ask->message_id, 0, &found, err);
    if (rc != HK_OK)
        return rc == HK_NOTFOUND ? HK_OK : rc;
    const struct hk_shown shown = *found;
    hk_desk_keep(desk, mem);
    out->found = true;
    out->items = hk_pool_alloc(mem, shown.n_rows + 1, sizeof *out->items);
    if (!out->items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; rc == HK_OK && i < shown.n_rows; i++) {
        if (!is_meant(&shown, i, ask->destination))
            continue;
        struct hk_explained *item = &out->items[out->n++];
        const struct hk_row *row = &shown.rows[i];
        *item = (struct hk_explained){.message_id = row->message_id,
                                      .state = row->state,
                                      .by_route = row->destination.len == 0,
                                      .to = row->destination};
        struct facts facts = {
            .config = desk->config, .mem = mem, .row = row, .now_ms = hk_clock_wall_ms(), .out = item};
        rc = explain_row(&facts, desk, err);
    }
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(explain)

static const struct hk_arg explain_args[] = {
    {HK_SUBJECT(hk_explain_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_explain_ask, destination, HK_ARG_TEXT, "NAME", "only about this destination")},
    {.name = NULL}};

const struct hk_op hk_op_messages_explain = {.noun = "messages",
                                             .verb = "explain",
                                             .summary = "say why a message was not sent yet, and what to do",
                                             .route = "GET /messages/{message_id}/explain",
                                             .role = HK_ROLE_VIEWER,
                                             .store = true,
                                             .args = explain_args,
                                             .request_size = sizeof(struct hk_explain_ask),
                                             .result_size = sizeof(struct hk_explanation),
                                             .run = explain_op,
                                             .form = hk_form_explanation};
