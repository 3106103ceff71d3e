/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages show, messages attempts */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "cli/view.h"
#include "desk/messages.h"
#include "exec/clock.h"

static void fact_time(struct hk_buf *out, const char *name, int64_t ms, int64_t now_ms)
{
    char time_text[HK_TIME_TEXT_MAX], ago[64], line[128];
    if (ms == 0)
        return;
    (void)hk_format_rfc3339(ms, time_text);
    (void)snprintf(line, sizeof line, "%s (%s)", time_text, hk_show_ago(ms, now_ms, ago));
    hk_say_fact(out, name, hk_str_of(line));
}

static void fact_number(struct hk_buf *out, const char *name, uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, n);
    if (n != 0)
        hk_say_fact(out, name, hk_str_of(text));
}

static const char *done_name(enum hk_state state)
{
    return state == HK_SENT ? "sent" : state == HK_STATE_CANCELLED ? "cancelled" : "died";
}

static void write_cut(struct hk_buf *out, const struct hk_row *row)
{
    static const char *const where[HK_NPLACES] = {[HK_IN_RETRY] = "outbox_retry WHERE id",
                                                  [HK_IN_OUTBOX] = "outbox WHERE id",
                                                  [HK_IN_DEAD] = "dead_letters WHERE id",
                                                  [HK_IN_CANCELLED] = "outbox_cancelled WHERE id",
                                                  [HK_IN_SENT] = "outbox_sent WHERE id"};
    (void)hk_buf_addc(out, '(');
    hk_say_cut(out, row->payload_bytes, where[row->place], row->id);
    (void)hk_buf_adds(out, ")\n");
}

static void write_payload(struct hk_buf *out, const struct hk_row *row)
{
    bool whole = row->payload.ptr != NULL; /* it was asked for */
    char size[HK_SHOW_NUMBER];
    if (!row->has_payload) {
        hk_say_fact(out, "payload", hk_str_of(row->place == HK_IN_SENT ? "(not kept once sent)" : "(none)"));
        return;
    }
    (void)hk_buf_addf(out, "%-16s %s bytes%s\n", "payload", hk_show_count(row->payload_bytes, size),
                      whole ? ":" : " (--payload shows it)");
    if (!whole)
        return;
    hk_table_safe_lines(out, row->payload);
    if (row->payload.len > 0 && row->payload.ptr[row->payload.len - 1] != '\n')
        (void)hk_buf_addc(out, '\n');
    if (row->payload.len < row->payload_bytes)
        write_cut(out, row);
}

/* What the message asks for, and what it gets where that is less. */
static void write_max_attempts(struct hk_buf *out, uint32_t asked, uint32_t given)
{
    if (asked == 0)
        return;
    (void)hk_buf_addf(out, "%-16s %" PRIu32, "max attempts", asked);
    if (given < asked)
        (void)hk_buf_addf(out, " (relay.max_attempts_ceiling: it gets %" PRIu32 ")", given);
    (void)hk_buf_addc(out, '\n');
}

static void write_row(struct hk_buf *out, const struct hk_row *row, int64_t now_ms)
{
    hk_say_fact(out, "message", row->message_id);
    hk_say_fact(out, "destination", hk_say_to(row->destination));
    hk_say_fact(out, "event type", row->event_type);
    hk_say_fact(out, "status", hk_str_of(hk_state_name(row->state)));
    hk_say_fact(out, "letter", row->letter_status);
    hk_say_fact(out, "reason", row->state == HK_STATE_DEAD ? row->cause : row->reason);
    hk_say_fact(out, "by", row->actor);
    hk_say_fact(out, "last error", row->last_error);
    if (row->state != HK_STATE_DEAD)
        hk_say_fact(out, "last cause", row->cause);
    hk_say_fact(out, "error detail", row->error_detail);
    (void)hk_buf_addf(out, "%-16s %" PRIu32 "\n", "attempts", row->attempts);
    fact_number(out, "crashes", row->crashes);
    fact_number(out, "life", row->life > 1 ? row->life : 0);
    fact_number(out, "answer", row->status > 0 ? (uint64_t)row->status : 0);
    fact_time(out, "written", row->created_ms, now_ms);
    fact_time(out, "next attempt", row->next_ms, now_ms);
    fact_time(out, "last attempt", row->last_attempt_ms, now_ms);
    fact_time(out, "first failed", row->first_failed_ms, now_ms);
    fact_time(out, done_name(row->state), row->done_ms, now_ms);
    hk_say_fact(out, "in flight by", row->locked_by);
    fact_time(out, "in flight since", row->locked_ms, now_ms);
    hk_say_fact(out, "not before", row->not_before);
    hk_say_fact(out, "expires", row->expires_at);
    hk_say_fact(out, "key", row->key);
    hk_say_fact(out, "policy", row->policy);
    write_max_attempts(out, row->max_attempts, row->given_attempts);
    hk_say_fact(out, "correlation id", row->correlation_id);
    hk_say_fact(out, "traceparent", row->traceparent);
    hk_say_fact(out, "idempotency key", row->idempotency_key);
    hk_say_fact(out, "content type", row->content_type);
    hk_say_fact(out, "encoding", row->encoding);
    hk_say_fact(out, "headers", row->headers);
    write_payload(out, row);
}

static void write_attempts(struct hk_buf *out, const struct hk_tried *items, size_t count)
{
    static const struct hk_table_column columns[] = {
        {"TRY", true, 0},     {"AT", false, 0},     {"TOOK", true, 0},      {"STATUS", true, 0},
        {"CLASS", false, 12}, {"CAUSE", false, 24}, {"ADDRESS", false, 30}, {"ERROR", false, 80}};
    struct hk_table table;
    char text[96], took[HK_SHOW_NUMBER], at[HK_TIME_TEXT_MAX];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < count; i++) {
        const struct hk_tried *a = &items[i];
        char n[16] = "-"; /* no attempt that anybody counted: its relay died */
        if (a->n > 0)
            (void)snprintf(n, sizeof n, "%" PRIu32, a->n);
        (void)snprintf(text, sizeof text, a->life > 1 ? "%s (life %" PRIu32 ")" : "%s", n, a->life);
        hk_table_adds(&table, text);
        (void)hk_format_rfc3339(a->started_ms, at);
        hk_table_adds(&table, at);
        hk_table_adds(&table, hk_show_duration(a->duration_ms, took));
        (void)snprintf(text, sizeof text, a->status > 0 ? "%d" : "-", a->status);
        hk_table_adds(&table, text);
        hk_table_add(&table, a->failure_class);
        hk_table_add(&table, a->cause);
        hk_table_add(&table, a->address);
        hk_table_add(&table, a->error);
    }
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void write_message(struct hk_buf *out, const struct hk_message_shown *m)
{
    int64_t now_ms = hk_clock_wall_ms();
    for (size_t i = 0; i < m->is.n_rows; i++) {
        (void)hk_buf_adds(out, i > 0 ? "\n" : "");
        write_row(out, &m->is.rows[i], now_ms);
    }
    if (m->is.n_attempts > 0) {
        (void)hk_buf_adds(out, m->is.n_rows > 0 ? "\n" : "");
        write_attempts(out, m->is.attempts, m->is.n_attempts);
    } else {
        (void)hk_buf_adds(out, "\nno attempts are on record\n");
    }
}

static void print_message(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    (void)ask;
    write_message(out, result);
}

enum hk_code hk_view_message(struct hk_desk *desk, const char *message_id, struct hk_buf *out,
                             struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    const struct hk_message_show_ask ask = {.message_id = message_id};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_message_shown found;
    enum hk_code rc = hk_desk_ask(desk, &hk_op_messages_show, &caller, &ask, &mem, &found, err);
    if (rc == HK_OK)
        write_message(out, &found);
    hk_pool_fini(&mem);
    return rc;
}

int hk_cmd_messages_show(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_message);
}

static void print_attempts(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_attempts *page = result;
    (void)ask;
    if (page->n > 0)
        write_attempts(out, page->items, page->n);
    else
        (void)hk_buf_adds(out, "no attempts are on record\n");
    if (page->next != 0)
        (void)hk_buf_addf(out, "more: --after %" PRId64 "\n", page->next);
}

int hk_cmd_messages_attempts(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_attempts);
}
