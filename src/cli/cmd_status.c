/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku status: due, waiting and dead messages, the oldest one, and the running relays. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/status.h"

/* ---- for reading ---- */

static void figure(struct hk_buf *out, const char *name, struct hk_count count, const char *note)
{
    char n[48];
    (void)hk_buf_addf(out, "%-11s %12s%s%s\n", name, hk_say_count(count, n), note[0] != '\0' ? "  " : "",
                      note);
}

static const char *age(int64_t ms, int64_t now_ms, const char *what, char out[96])
{
    char text[HK_SHOW_NUMBER];
    out[0] = '\0';
    if (ms != 0)
        (void)snprintf(out, 96, "%s %s", what,
                       hk_show_duration(ms < now_ms ? (uint64_t)(now_ms - ms) : 0, text));
    return out;
}

static void write_relay(struct hk_buf *out, const struct hk_store_status *s)
{
    char left[HK_SHOW_NUMBER];
    if (!s->relay.known) {
        (void)hk_buf_adds(out, "no relay is running: start one with 'hikyaku run'\n");
        return;
    }
    (void)hk_buf_adds(out, s->relay.running ? "relay " : "no relay is running: ");
    (void)hk_table_safe(out, s->relay.name, 60);
    if (s->relays_running > 1)
        (void)hk_buf_addf(out, " and %" PRIu32 " more: 'hikyaku relays list' shows them\n",
                          s->relays_running - 1);
    else if (s->relay.running)
        (void)hk_buf_addf(out, " (lane %" PRId64 "), lease ends in %s unless renewed\n", s->relay.lane,
                          hk_show_duration((uint64_t)(s->relay.until_ms - s->now_ms), left));
    else
        (void)hk_buf_addf(out,
                          " stopped without a word, its lease ended %s ago; start one with 'hikyaku run'\n",
                          hk_show_duration((uint64_t)(s->now_ms - s->relay.until_ms), left));
}

static void write_attempts(struct hk_buf *out, const struct hk_store_status *s)
{
    bool any = false;
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++)
        any |= s->attempts[i].n > 0;
    if (!any)
        return;
    (void)hk_buf_adds(out, "\nundelivered by attempts made:");
    for (size_t i = 0; i < HK_ATTEMPT_BUCKETS; i++) {
        char n[48];
        if (s->attempts[i].n > 0)
            (void)hk_buf_addf(out, "  %s: %s", hk_status_buckets[i], hk_say_count(s->attempts[i], n));
    }
    (void)hk_buf_addc(out, '\n');
}

static void add_held(struct hk_table *table, const struct hk_status_dest *d, int64_t now_ms)
{
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    hk_say_unusable(&text, &d->unusable, now_ms);
    if (text.len > 0 && (d->backlog.paused || d->backlog.open_until_ms != 0))
        (void)hk_buf_adds(&text, "; ");
    hk_say_held(&text, &d->backlog, now_ms);
    hk_table_add_buf(table, &text);
    hk_buf_fini(&text);
}

static void write_dests(struct hk_buf *out, const struct hk_status *o)
{
    static const struct hk_table_column columns[] = {{"DESTINATION", false, 40}, {"PENDING", true, 0},
                                                     {"PROCESSING", true, 0},    {"RETRYING", true, 0},
                                                     {"DEAD", true, 0},          {"", false, 120}};
    struct hk_table table;
    char n[48];
    bool any = false;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < o->n_dests; i++) {
        const struct hk_dest_status *d = &o->dests[i].backlog;
        if (!hk_status_has_backlog(&o->dests[i]) && !o->dests[i].unusable.relays)
            continue;
        any = true;
        hk_table_add(&table, hk_say_to(o->dests[i].name));
        hk_table_adds(&table, hk_say_count(d->pending, n));
        hk_table_adds(&table, hk_say_count((struct hk_count){d->processing, false}, n));
        hk_table_adds(&table, hk_say_count(d->retrying, n));
        hk_table_adds(&table, hk_say_count(d->dead, n));
        add_held(&table, &o->dests[i], o->store.now_ms);
    }
    if (any) {
        (void)hk_buf_addc(out, '\n');
        hk_table_write(&table, out);
    }
    if (o->store.more_dests)
        (void)hk_buf_adds(out, "… and more destinations\n");
    hk_table_fini(&table);
}

/* ---- lately ---- */

static const char *rate(double per_s, char out[HK_SHOW_NUMBER])
{
    return per_s > 0 ? hk_show_rate(per_s, out) : "0";
}

static const char *percent(double ratio, char out[HK_SHOW_NUMBER])
{
    if (ratio < 0)
        return "-";
    /* what failed once is not all of it */
    (void)snprintf(out, HK_SHOW_NUMBER, ratio < 1 && ratio > 0.999 ? ">99.9%%" : "%.3g%%", ratio * 100);
    return out;
}

static void add_latency(struct hk_table *table, const struct hk_status_lately *lately)
{
    const uint64_t ms[] = {lately->p50_ms, lately->p95_ms, lately->p99_ms};
    char text[HK_SHOW_NUMBER];
    for (size_t i = 0; i < sizeof ms / sizeof ms[0]; i++)
        hk_table_adds(table, lately->has_latency ? hk_show_duration(ms[i], text) : "-");
}

/* What keeps it, beside pauses and open breakers, and what went wrong last. */
static void add_state(struct hk_table *table, const struct hk_status_dest *d, int64_t now_ms)
{
    struct hk_buf text;
    char ago[64];
    hk_buf_init(&text, 1 << 16);
    if (d->breaker == HK_BREAKER_SEEN_HALF_OPEN)
        (void)hk_buf_adds(&text, "breaker: half-open; ");
    if (d->limited)
        (void)hk_buf_addf(&text, "at its limit, next %s; ",
                          hk_show_ago(d->ready_at_ms > now_ms ? d->ready_at_ms : now_ms, now_ms, ago));
    if (d->last_error.len > 0) {
        (void)hk_buf_addf(&text, "last error %s: ", hk_show_ago(d->last_error_ms, now_ms, ago));
        (void)hk_buf_add(&text, d->last_error.ptr, d->last_error.len);
    }
    if (d->last_error.len == 0 && text.len > 2)
        text.len -= 2;
    hk_table_add_buf(table, &text);
    hk_buf_fini(&text);
}

static bool has_lately(const struct hk_status_dest *d)
{
    return d->known || d->last_error.len > 0 || d->blocked.n > 0;
}

static void write_lately(struct hk_buf *out, const struct hk_status *o)
{
    static const struct hk_table_column columns[] = {{"IN THE LAST MINUTE", false, 40},
                                                     {"IN/S", true, 0},
                                                     {"OUT/S", true, 0},
                                                     {"OK", true, 0},
                                                     {"P50", true, 0},
                                                     {"P95", true, 0},
                                                     {"P99", true, 0},
                                                     {"BLOCKED", true, 0},
                                                     {"", false, 120}};
    struct hk_table table;
    char text[HK_SHOW_NUMBER], n[48];
    bool any = false;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < o->n_dests; i++) {
        const struct hk_status_dest *d = &o->dests[i];
        if (!has_lately(d))
            continue;
        any = true;
        hk_table_add(&table, hk_say_to(d->name));
        hk_table_adds(&table, rate(d->lately.in_per_s, text));
        hk_table_adds(&table, rate(d->lately.out_per_s, text));
        hk_table_adds(&table, percent(d->lately.ratio, text));
        add_latency(&table, &d->lately);
        hk_table_adds(&table, d->ordered ? hk_say_count(d->blocked, n) : "-");
        add_state(&table, d, o->store.now_ms);
    }
    if (any) {
        (void)hk_buf_addc(out, '\n');
        hk_table_write(&table, out);
    }
    hk_table_fini(&table);
}

static void write_retrying(struct hk_buf *out, const struct hk_status *o)
{
    const struct hk_store_status *s = &o->store;
    struct hk_count all = o->retrying;
    char note[96] = "failed before", n[48];
    if (all.n > 0)
        (void)snprintf(note, sizeof note, "failed before; %s of them not due yet",
                       hk_say_count(s->retrying, n));
    figure(out, "retrying", all, note);
}

static void print_status(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_status *o = result;
    const struct hk_store_status *s = &o->store;
    char note[96];
    (void)ask;
    figure(out, "due now", s->due, age(s->oldest_due_ms, s->now_ms, "the oldest for", note));
    write_retrying(out, o);
    figure(out, "scheduled", s->scheduled, "for later");
    figure(out, "processing", (struct hk_count){s->processing, false}, "in flight");
    if (o->blocked_known)
        figure(out, "blocked", o->blocked, "behind the head of their key");
    figure(out, "dead", s->dead, "letters that are open");
    if (s->stuck > 0)
        figure(out, "stuck", (struct hk_count){s->stuck, false},
               "the database does not let them go: hikyaku doctor");
    figure(out, "sent", s->sent, "still kept");
    figure(out, "cancelled", s->cancelled, "still kept");
    (void)hk_buf_addc(out, '\n');
    write_relay(out, s);
    if (s->oldest_ms != 0)
        (void)hk_buf_addf(out, "%s\n", age(s->oldest_ms, s->now_ms, "oldest undelivered message:", note));
    write_attempts(out, s);
    write_dests(out, o);
    write_lately(out, o);
    if (o->no_figures.code != HK_OK) {
        (void)hk_buf_adds(out, "\nwhat relays saw lately cannot be read: ");
        (void)hk_table_safe(out, hk_str_of(o->no_figures.message), 400);
        (void)hk_buf_addc(out, '\n');
    }
}

int hk_cmd_status(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_status);
}
