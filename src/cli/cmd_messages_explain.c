/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages explain: why a message has not gone out yet, or what has become of it, and what to do about it.
 *
 * The store tells facts (hk_why), the configuration what a destination does with them (order, limits, routes), the relays' own
 * figures whether a limiter holds it back. Here they become causes, the weightiest first: what keeps it for ever, then what
 * keeps everything, then what a person has to undo, then what passes by itself. Nothing of the payload, and no error text, is
 * repeated: those are for `messages show`, which masks them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"
#include "exec/clock.h"

enum {
    CAUSES_MAX = 10,
    TEXT_MAX = 2048,
    CONCURRENCY_DEFAULT = 64
};

struct cause {
    const char *id;      /* stable */
    char text[TEXT_MAX]; /* safe to print */
    char advice[HK_SHOW_MAX + 160];
    int64_t since_ms, until_ms;
    struct hk_str by, reason, message_id; /* whoever did it, and why; the head of its key */
    int64_t letter_id;                    /* of a dead head, or of the message itself */
};

/* One row, and all that is said about it. */
struct answer {
    const struct hk_operate *op;
    const struct hk_row *row;
    const struct hk_conf_destination *conf; /* where it goes; NULL: not known */
    int64_t now_ms;
    struct cause causes[CAUSES_MAX];
    size_t n;
};

/* ---- causes ---- */

static struct cause *add(struct answer *a, const char *id)
{
    static struct cause spare; /* never shown: there are fewer causes than room */
    struct cause *c = a->n < CAUSES_MAX ? &a->causes[a->n++] : &spare;
    *c = (struct cause){
        .id = id, .text = "", .advice = "", .by = {"", 0}, .reason = {"", 0}, .message_id = {"", 0}};
    return c;
}

static const char *at(int64_t ms, int64_t now_ms, char out[160])
{
    char when[HK_TIME_TEXT_MAX], ago[64];
    (void)hk_format_rfc3339(ms, when);
    (void)snprintf(out, 160, "%s (%s)", when, hk_operate_ago(ms, now_ms, ago));
    return out;
}

static const char *name_of(const struct answer *a, char out[HK_SHOW_MAX])
{
    struct hk_str name = a->conf != NULL ? hk_str_of(a->conf->name) : a->row->destination;
    return name.len > 0 ? hk_show(name, out) : "\"\" (by route)";
}

static bool is_configured(const struct answer *a)
{
    return hk_config_destination(a->op->config, 0) != NULL;
}

static void explain_expired(struct answer *a)
{
    int64_t ms = 0;
    char when[160];
    struct hk_str text = a->row->expires_at;
    if (text.len == 0 || hk_parse_rfc3339(text, &ms, NULL) != HK_OK || ms > a->now_ms)
        return;
    struct cause *c = add(a, "expired");
    c->until_ms = ms;
    (void)snprintf(c->text, sizeof c->text,
                   "it has expired: its expires_at was %s; a relay that looks at it makes it a dead letter",
                   at(ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice,
                   "enqueue it anew with a later expires_at, if it is still wanted");
}

/* Where a row without a destination goes, as the engine finds it: the first route that matches. NULL, and `*out_several`:
 * to several, once a relay has looked at it. */
static const struct hk_conf_destination *route_of(const struct answer *a, bool *out_none, bool *out_several)
{
    const struct hk_conf_route *route = NULL;
    for (size_t i = 0; (route = hk_config_route(a->op->config, i)) != NULL; i++)
        if (hk_str_glob(route->event_type, a->row->event_type))
            break;
    *out_none = route == NULL;
    *out_several = route != NULL && route->destinations.n > 1;
    if (route == NULL || *out_several)
        return NULL;
    return hk_operate_destination(a->op->config, hk_str_of(hk_conf_text(&route->destinations, 0)));
}

/* False: nobody knows where to, so that nothing else can be said. */
static bool explain_destination(struct answer *a)
{
    char name[HK_SHOW_MAX], type[HK_SHOW_MAX];
    bool none = false, several = false;
    if (!is_configured(a))
        return a->row->destination.len > 0;
    if (a->row->destination.len > 0) {
        a->conf = hk_operate_destination(a->op->config, a->row->destination);
        if (a->conf != NULL)
            return true;
        struct cause *c = add(a, "unknown_destination");
        (void)snprintf(
            c->text, sizeof c->text,
            "the configuration has no destination %s: a relay that looks at it makes it a dead letter",
            hk_show(a->row->destination, name));
        (void)snprintf(c->advice, sizeof c->advice,
                       "add it to destinations: and reload the relay, or cancel the message");
        return true;
    }
    a->conf = route_of(a, &none, &several);
    if (!none)
        return !several && a->conf != NULL;
    struct cause *c = add(a, "no_route");
    (void)snprintf(
        c->text, sizeof c->text,
        "it names no destination, and no route takes event type %s: a relay that looks at it makes it "
        "a dead letter",
        hk_show(a->row->event_type, type));
    (void)snprintf(c->advice, sizeof c->advice, "add a route for it and reload the relay");
    return false;
}

static void explain_no_relay(struct answer *a, const struct hk_why *why)
{
    if (why->relays_running > 0)
        return;
    struct cause *c = add(a, "no_relay");
    (void)snprintf(c->text, sizeof c->text, "no relay is running on this store: nothing goes out");
    (void)snprintf(c->advice, sizeof c->advice, "start one: hikyaku run");
}

static void explain_pause(struct answer *a, const struct hk_why *why)
{
    char name[HK_SHOW_MAX], by[HK_SHOW_MAX], reason[HK_SHOW_MAX], when[160];
    if (!why->paused)
        return;
    struct cause *c = add(a, "paused");
    c->by = why->actor;
    c->reason = why->reason;
    c->since_ms = why->since_ms;
    (void)snprintf(c->text, sizeof c->text, "destination %s is paused by %s since %s: %s", name_of(a, name),
                   hk_show(why->actor, by), at(why->since_ms, a->now_ms, when), hk_show(why->reason, reason));
    (void)snprintf(c->advice, sizeof c->advice, "hikyaku destinations resume %s --reason ...", name);
}

/* What a head does, and what there is to do about it. */
static void describe_head(const struct answer *a, const struct hk_why *why, struct cause *c)
{
    char id[HK_SHOW_MAX], when[160];
    hk_show(why->head_message_id, id);
    switch (why->head) {
    case HK_STATE_DEAD:
        c->letter_id = why->head_id;
        (void)snprintf(c->text, sizeof c->text,
                       "its key is blocked by message %s, which is dead (letter %" PRId64
                       "): what comes behind it waits until it is rescued or discarded",
                       id, why->head_id);
        (void)snprintf(c->advice, sizeof c->advice,
                       "hikyaku dead show %" PRId64 ", then dead requeue, dead resolve or dead discard",
                       why->head_id);
        break;
    case HK_RETRYING:
        c->until_ms = why->head_due_ms;
        (void)snprintf(c->text, sizeof c->text,
                       "its key is blocked by message %s, which waits for its next attempt at %s", id,
                       at(why->head_due_ms, a->now_ms, when));
        (void)snprintf(c->advice, sizeof c->advice, "hikyaku messages explain %s", id);
        break;
    case HK_PROCESSING:
        (void)snprintf(c->text, sizeof c->text, "its key is blocked by message %s, which is in flight", id);
        (void)snprintf(c->advice, sizeof c->advice, "wait for it; hikyaku messages explain %s", id);
        break;
    case HK_PENDING:
    case HK_SENT:
    case HK_STATE_CANCELLED:
    case HK_STATE_NONE:
    case HK_NSTATES:
        (void)snprintf(c->text, sizeof c->text,
                       "its key is blocked by message %s, which came before it and has not gone out yet", id);
        (void)snprintf(c->advice, sizeof c->advice, "hikyaku messages explain %s", id);
        break;
    }
}

static void explain_key(struct answer *a, const struct hk_why *why)
{
    if (why->head == HK_STATE_NONE)
        return;
    struct cause *c = add(a, "key_blocked");
    c->message_id = why->head_message_id;
    describe_head(a, why, c);
}

static void explain_due(struct answer *a)
{
    const struct hk_row *row = a->row;
    char when[160], cause[HK_SHOW_MAX], id[HK_SHOW_MAX];
    if (row->next_ms <= a->now_ms)
        return;
    bool retrying = row->state == HK_RETRYING;
    struct cause *c = add(a, "not_due");
    c->until_ms = row->next_ms;
    if (retrying)
        (void)snprintf(c->text, sizeof c->text, "it is not due: attempt %" PRIu32 " is to be made at %s%s%s",
                       row->attempts + 1, at(row->next_ms, a->now_ms, when),
                       row->cause.len > 0 ? ", after " : "",
                       row->cause.len > 0 ? hk_show(row->cause, cause) : "");
    else
        (void)snprintf(c->text, sizeof c->text, "it is not due: its not_before is %s",
                       at(row->next_ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice, "to hurry it: hikyaku messages retry %s --reason ...",
                   hk_show(row->message_id, id));
}

static void explain_breaker(struct answer *a, const struct hk_why *why)
{
    char name[HK_SHOW_MAX], when[160];
    if (why->open_until_ms <= a->now_ms)
        return;
    struct cause *c = add(a, "breaker_open");
    c->until_ms = why->open_until_ms;
    (void)snprintf(c->text, sizeof c->text,
                   "the breaker of %s is open until %s: it failed too often, and is let alone",
                   name_of(a, name), at(why->open_until_ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice,
                   "see what fails: hikyaku status; hikyaku destinations test %s; resume closes it", name);
}

static void explain_limit(struct answer *a, const struct hk_why *why, const struct hk_figures_sum *lately)
{
    char name[HK_SHOW_MAX], when[160], n[48];
    uint32_t most = a->conf != NULL && a->conf->limits.concurrency > 0 ? a->conf->limits.concurrency
                                                                       : CONCURRENCY_DEFAULT;
    if (lately->limited) {
        double rate = a->conf != NULL ? a->conf->limits.rate_per_s : 0;
        struct cause *c = add(a, "rate_limited");
        c->until_ms = lately->ready_at_ms > a->now_ms ? lately->ready_at_ms : a->now_ms;
        if (rate > 0 && (double)why->ahead.n / rate < 1e9)
            c->until_ms += (int64_t)((double)why->ahead.n * 1000 / rate);
        (void)snprintf(
            c->text, sizeof c->text,
            "%s takes no more at this moment (its rate, or a wait that it asked for): until about %s, "
            "with %s before it",
            name_of(a, name), at(c->until_ms, a->now_ms, when), hk_operate_count(why->ahead, n));
        (void)snprintf(c->advice, sizeof c->advice, "wait, or raise limits.rate of %s", name);
    } else if (lately->in_flight >= most) {
        struct cause *c = add(a, "concurrency");
        (void)snprintf(c->text, sizeof c->text,
                       "%s has %" PRIu64 " requests in flight, which is its limit; %s come before it",
                       name_of(a, name), lately->in_flight, hk_operate_count(why->ahead, n));
        (void)snprintf(c->advice, sizeof c->advice, "wait, or raise limits.concurrency of %s", name);
    }
}

/* ---- in hand ---- */

/* Has that relay not renewed its lease for so long that it is most likely gone? It renews after a third. How long a lease is only the
 * configuration says. */
static bool is_silent(const struct answer *a, int64_t until_ms)
{
    if (until_ms <= a->now_ms)
        return true;
    return is_configured(a) && (uint64_t)(until_ms - a->now_ms) < a->op->config->relay.lease_ms / 2;
}

static void explain_lease(struct answer *a, struct hk_str relay, int64_t until_ms, bool in_hand)
{
    char by[HK_SHOW_MAX], when[160];
    struct cause *c = add(a, "lease_held");
    c->by = relay;
    c->until_ms = until_ms;
    (void)snprintf(
        c->text, sizeof c->text,
        "relay %s %s and has not been heard of lately: its lease %s %s, and then another relay takes over",
        hk_show(relay, by), in_hand ? "has it in hand" : "owns its shard",
        until_ms > a->now_ms ? "holds until" : "ended at", at(until_ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice, "%s",
                   until_ms > a->now_ms ? "wait for the lease to end; see hikyaku relays list"
                                        : "start a relay, if none runs: hikyaku run");
}

static void explain_in_hand(struct answer *a, const struct hk_why *why)
{
    char by[HK_SHOW_MAX], when[160];
    if (is_silent(a, why->until_ms)) {
        explain_lease(a, why->relay, why->until_ms, true);
        explain_no_relay(a, why);
        return;
    }
    struct cause *c = add(a, "processing");
    c->by = why->relay;
    c->since_ms = why->claimed_ms;
    c->until_ms = why->until_ms;
    (void)snprintf(c->text, sizeof c->text, "relay %s is sending it right now, since %s",
                   hk_show(why->relay, by), at(why->claimed_ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice, "wait for the answer, or for the time-out of its policy");
}

static void explain_owner(struct answer *a, const struct hk_why *why)
{
    if (why->owner_until_ms != 0 && why->relays_running > 0 && is_silent(a, why->owner_until_ms))
        explain_lease(a, why->owner, why->owner_until_ms, false);
}

/* Its row is held: neither sent nor looked at before the store could take it away after all. */
static void explain_stuck(struct answer *a, const struct hk_why *why)
{
    char when[160], error[HK_SHOW_MAX];
    struct cause *c = add(a, "stuck");
    c->since_ms = why->stuck_ms;
    (void)snprintf(
        c->text, sizeof c->text,
        "%s, but the database does not let its row go since %s: %s; it is held, and not sent again",
        why->stuck_delivered ? "it was delivered" : "it was in a relay's hands",
        at(why->stuck_ms, a->now_ms, when), hk_show(why->stuck_error, error));
    (void)snprintf(c->advice, sizeof c->advice,
                   "remove what holds the row (hikyaku doctor names it): relays try again every 30 s");
}

static void explain_queue(struct answer *a, const struct hk_why *why)
{
    char n[48];
    if (a->n > 0)
        return;
    struct cause *c = add(a, "queued");
    (void)snprintf(c->text, sizeof c->text, "nothing stands in its way: it is due, with %s before it",
                   hk_operate_count(why->ahead, n));
    (void)snprintf(c->advice, sizeof c->advice,
                   "wait; if it does not go, see hikyaku relays list and the relay's log");
}

/* ---- one row ---- */

static enum hk_code explain_live(struct answer *a, struct hk_err *err)
{
    const struct hk_row *row = a->row;
    const struct hk_why *why = NULL;
    const struct hk_figures *figures = NULL;
    struct hk_figures_sum lately = {.limited = false};
    bool known = explain_destination(a);
    bool ordered = known && a->conf != NULL && a->conf->order == HK_ORDER_KEY;
    char name[512];
    struct hk_str to = a->conf != NULL ? hk_str_of(a->conf->name) : row->destination;
    if (!hk_str_copy(name, sizeof name, to))
        name[0] = '\0'; /* no destination has such a name */
    const struct hk_why_ask ask = {.place = row->place,
                                   .id = row->id,
                                   .destination = name,
                                   .key = ordered ? row->key : hk_str_of(""),
                                   .skip_dead = ordered && a->conf->on_dead == HK_ON_DEAD_SKIP};
    struct hk_err no_figures = {.message = ""};
    if (a->op->ops->figures(a->op->admin, &figures, &no_figures) ==
        HK_OK) /* without them all but limits are known */
        hk_figures_sum(figures, to, &lately);
    enum hk_code rc = a->op->ops->why(a->op->admin, &ask, &why, err);
    if (rc != HK_OK)
        return rc;
    a->now_ms = why->now_ms;
    if (why->stuck_ms != 0) {
        a->n = 0; /* nothing else matters */
        explain_stuck(a, why);
        return HK_OK;
    }
    if (why->lane != 0) {
        a->n = 0; /* on its way: nothing else matters */
        explain_in_hand(a, why);
        return HK_OK;
    }
    explain_expired(a);
    explain_no_relay(a, why);
    explain_owner(a, why);
    if (known) {
        explain_pause(a, why);
        explain_key(a, why);
    }
    explain_due(a);
    if (known) {
        explain_breaker(a, why);
        explain_limit(a, why, &lately);
    }
    explain_queue(a, why);
    return HK_OK;
}

static void explain_sent(struct answer *a)
{
    char when[160];
    struct cause *c = add(a, "sent");
    c->since_ms = a->row->done_ms;
    (void)snprintf(c->text, sizeof c->text, "it was sent at %s", at(a->row->done_ms, a->now_ms, when));
    (void)snprintf(c->advice, sizeof c->advice, "nothing: it has arrived");
}

static void explain_cancelled(struct answer *a)
{
    char when[160], by[HK_SHOW_MAX], reason[HK_SHOW_MAX];
    struct cause *c = add(a, "cancelled");
    c->since_ms = a->row->done_ms;
    c->by = a->row->actor;
    c->reason = a->row->reason;
    (void)snprintf(c->text, sizeof c->text, "it was cancelled by %s at %s: %s", hk_show(a->row->actor, by),
                   at(a->row->done_ms, a->now_ms, when), hk_show(a->row->reason, reason));
    (void)snprintf(c->advice, sizeof c->advice, "enqueue it anew, if it is wanted after all");
}

static void explain_letter(struct answer *a)
{
    char when[160], reason[HK_SHOW_MAX];
    const struct hk_row *row = a->row;
    bool away = row->state != HK_STATE_DEAD,
         discarded = hk_str_eq(row->letter_status, hk_str_of("discarded"));
    struct cause *c = add(a, away ? "requeued" : discarded ? "discarded" : "dead");
    c->letter_id = row->id;
    c->reason = row->cause;
    c->since_ms = row->done_ms;
    if (away)
        (void)snprintf(c->text, sizeof c->text,
                       row->state == HK_PROCESSING
                           ? "its dead letter %" PRId64
                             " is being sent by hand, or was, and nobody knows how it ended"
                           : "its dead letter %" PRId64 " was requeued under another id",
                       row->id);
    else
        (void)snprintf(c->text, sizeof c->text,
                       "it is a dead letter (%" PRId64 "%s): %s, at %s, after %" PRIu32 " attempts", row->id,
                       discarded ? ", discarded" : "", hk_show(row->cause, reason),
                       at(row->done_ms, a->now_ms, when), row->attempts);
    (void)snprintf(c->advice, sizeof c->advice, "hikyaku dead show %" PRId64 "%s", row->id,
                   discarded ? "; dead restore brings it back"
                   : away    ? ""
                             : ", then dead requeue");
}

static enum hk_code explain(struct answer *a, struct hk_err *err)
{
    switch (a->row->place) {
    case HK_IN_RETRY:
    case HK_IN_OUTBOX:
        return explain_live(a, err);
    case HK_IN_DEAD:
        if (a->row->state == HK_SENT)
            explain_sent(a);
        else
            explain_letter(a);
        break;
    case HK_IN_CANCELLED:
        explain_cancelled(a);
        break;
    case HK_IN_SENT:
    case HK_NPLACES:
        explain_sent(a);
        break;
    }
    return HK_OK;
}

/* ---- output ---- */

static void write_answer(struct hk_buf *out, const struct answer *a)
{
    (void)hk_table_safe(out, a->row->message_id, 200);
    (void)hk_buf_adds(out, " to ");
    (void)hk_table_safe(out, hk_operate_to(a->row->destination), 200);
    if (a->row->destination.len == 0 && a->conf != NULL)
        (void)hk_buf_addf(out, " %s", a->conf->name);
    (void)hk_buf_addf(out, ", %s\n", hk_state_name(a->row->state));
    for (size_t i = 0; i < a->n; i++) {
        (void)hk_buf_addf(out, "  %s  %s  [%s]\n", i == 0 ? "why " : "also", a->causes[i].text,
                          a->causes[i].id);
        (void)hk_buf_addf(out, "  do    %s\n", a->causes[i].advice);
    }
}

static void put_answer(struct hk_json *json, const struct answer *a)
{
    hk_json_object(json);
    hk_put_str(json, "message_id", a->row->message_id);
    hk_put_str(json, "destination",
               a->row->destination.len == 0 && a->conf != NULL ? hk_str_of(a->conf->name)
                                                               : a->row->destination);
    hk_put_str(json, "status", hk_str_of(hk_state_name(a->row->state)));
    hk_put_cstr(json, "cause", a->n > 0 ? a->causes[0].id : NULL);
    hk_json_key(json, "causes");
    hk_json_array(json);
    for (size_t i = 0; i < a->n; i++) {
        const struct cause *c = &a->causes[i];
        hk_json_object(json);
        hk_put_cstr(json, "cause", c->id);
        hk_put_cstr(json, "text", c->text);
        hk_put_cstr(json, "do", c->advice);
        hk_put_time(json, "since", c->since_ms);
        hk_put_time(json, "until", c->until_ms);
        hk_put_str(json, "by", c->by);
        hk_put_str(json, "reason", c->reason);
        hk_put_str(json, "blocked_by", c->message_id);
        hk_put_id(json, "letter", c->letter_id);
        hk_json_end(json);
    }
    hk_json_end(json);
    hk_json_end(json);
}

/* ---- which rows ---- */

static bool is_live(const struct hk_row *row)
{
    return row->place == HK_IN_RETRY || row->place == HK_IN_OUTBOX;
}

/* What went before is not asked for where the message is still on its way to the same destination. */
static bool is_meant(const struct hk_row *rows, size_t n, size_t i, const char *destination)
{
    if (destination != NULL && !hk_str_eq(rows[i].destination, hk_str_of(destination)))
        return false;
    if (is_live(&rows[i]))
        return true;
    for (size_t k = 0; k < n; k++)
        if ((is_live(&rows[k]) || k < i) && hk_str_eq(rows[k].destination, rows[i].destination))
            return false;
    return true;
}

struct kept {
    struct hk_row rows[HK_SHOWN_MAX];
    struct hk_buf texts[HK_SHOWN_MAX];
    size_t n;
};

/* The store forgets what it showed when it is asked on: what is needed is kept. */
static enum hk_code keep(struct kept *kept, const struct hk_row *row)
{
    struct hk_row *r = &kept->rows[kept->n];
    struct hk_buf *buf = &kept->texts[kept->n++];
    struct hk_str *const texts[] = {&r->message_id, &r->destination, &r->event_type,    &r->key,
                                    &r->cause,      &r->locked_by,   &r->letter_status, &r->actor,
                                    &r->reason,     &r->expires_at};
    size_t room = 1;
    *r = *row;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        room += texts[i]->len;
    hk_buf_init(buf, room);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        (void)hk_buf_add(buf, texts[i]->ptr, texts[i]->len);
    if (hk_buf_status(buf) != HK_OK)
        return HK_NOMEM;
    size_t at_byte = 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        *texts[i] = (struct hk_str){buf->data ? buf->data + at_byte : "", texts[i]->len};
        at_byte += texts[i]->len;
    }
    return HK_OK;
}

static void free_kept(struct kept *kept)
{
    for (size_t i = 0; kept != NULL && i < kept->n; i++)
        hk_buf_fini(&kept->texts[i]);
    hk_mem_free(kept);
}

/* ---- the command ---- */

struct teller {
    const struct hk_cli *cli;
    struct hk_operate op;
    struct hk_buf out;
    struct hk_json json;
    bool as_json;
    const char *first; /* cause of the first answer; NULL: there is none */
};

static void begin(struct teller *t, const char *message_id)
{
    hk_buf_init(&t->out, HK_OPERATE_OUTPUT_MAX);
    if (!t->as_json)
        return;
    hk_json_init(&t->json, &t->out, true);
    hk_json_object(&t->json);
    hk_put_cstr(&t->json, "message_id", message_id);
    hk_json_key(&t->json, "items");
    hk_json_array(&t->json);
}

static void tell(struct teller *t, const struct answer *a)
{
    if (t->as_json) {
        put_answer(&t->json, a);
    } else {
        (void)hk_buf_adds(&t->out, t->out.len > 0 ? "\n" : "");
        write_answer(&t->out, a);
    }
    if (t->first == NULL && a->n > 0)
        t->first = a->causes[0].id;
}

/* The exit code: 1 where there is no such message. */
static int end(struct teller *t, const char *none, const char *words)
{
    if (t->as_json) {
        hk_json_end(&t->json);
        hk_put_cstr(&t->json, "cause", t->first != NULL ? t->first : none);
        hk_json_end(&t->json);
        (void)hk_buf_addc(&t->out, '\n');
    }
    int code = hk_out_buffer(&t->out);
    if (code != HK_EXIT_OK || t->first != NULL)
        return code;
    return t->as_json ? HK_EXIT_FAILURE : hk_out_error(HK_EXIT_FAILURE, "%s", words);
}

static enum hk_code tell_all(struct teller *t, const struct kept *kept, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    struct answer *a = hk_mem_zalloc(1, sizeof *a);
    if (a == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < kept->n && rc == HK_OK; i++) {
        *a = (struct answer){.op = &t->op, .row = &kept->rows[i], .now_ms = hk_clock_wall_ms()};
        rc = explain(a, err);
        if (rc == HK_OK)
            tell(t, a);
    }
    hk_mem_free(a);
    return rc;
}

static enum hk_code look(struct teller *t, const char *message_id, struct kept *kept, struct hk_err *err)
{
    const struct hk_shown *shown = NULL;
    enum hk_code rc = t->op.ops->show(t->op.admin, message_id, 0, &shown, err);
    for (size_t i = 0; rc == HK_OK && i < shown->n_rows && kept->n < HK_SHOWN_MAX; i++)
        if (is_meant(shown->rows, shown->n_rows, i, hk_args_value(t->cli, "destination")))
            rc = keep(kept, &shown->rows[i]);
    return rc;
}

int hk_cmd_messages_explain(struct hk_cli *cli)
{
    struct teller t = {.cli = cli, .as_json = hk_args_flag(cli, "json")};
    struct hk_err err = {.message = ""};
    char name[HK_SHOW_MAX], words[HK_SHOW_MAX + 80];
    int code = hk_operate_open(cli, &t.op);
    if (code != HK_EXIT_OK)
        return code;
    struct kept *kept = hk_mem_zalloc(1, sizeof *kept);
    enum hk_code rc = kept != NULL ? look(&t, cli->operands[0], kept, &err) : HK_NOMEM;
    begin(&t, cli->operands[0]);
    if (rc == HK_OK)
        rc = tell_all(&t, kept, &err);
    if (rc == HK_OK || rc == HK_NOTFOUND) {
        (void)snprintf(
            words, sizeof words, "there is no message %s%s", hk_show(hk_str_of(cli->operands[0]), name),
            rc == HK_OK && hk_args_value(cli, "destination") != NULL ? " to that destination" : "");
        code = end(&t, "no_such_message", words);
    } else {
        hk_buf_fini(&t.out);
        code = rc == HK_NOMEM ? hk_out_error(HK_EXIT_FAILURE, "out of memory") : hk_operate_failed(&err);
    }
    free_kept(kept);
    hk_operate_close(&t.op);
    return code;
}
