/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages show: everything that is known of one message, and every attempt that was kept. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/table.h"
#include "cli/view.h"
#include "config/payload.h"
#include "core/policy_impl.h"
#include "exec/clock.h"

/* ---- for reading ---- */

static void fact_time(struct hk_buf *out, const char *name, int64_t ms, int64_t now_ms)
{
    char time_text[HK_TIME_TEXT_MAX], ago[64], line[128];
    if (ms == 0)
        return;
    (void)hk_format_rfc3339(ms, time_text);
    (void)snprintf(line, sizeof line, "%s (%s)", time_text, hk_operate_ago(ms, now_ms, ago));
    hk_operate_fact(out, name, hk_str_of(line));
}

static void fact_number(struct hk_buf *out, const char *name, uint64_t n)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, n);
    if (n != 0)
        hk_operate_fact(out, name, hk_str_of(text));
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
    hk_operate_cut(out, row->payload_bytes, where[row->place], row->id);
    (void)hk_buf_adds(out, ")\n");
}

static void write_payload(struct hk_buf *out, const struct hk_row *row, bool whole)
{
    char size[HK_OUT_TEXT];
    if (!row->has_payload) {
        hk_operate_fact(out, "payload",
                        hk_str_of(row->place == HK_IN_SENT ? "(not kept once sent)" : "(none)"));
        return;
    }
    (void)hk_buf_addf(out, "%-16s %s bytes%s\n", "payload", hk_out_count(row->payload_bytes, size),
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
static void write_max_attempts(struct hk_buf *out, const struct hk_row *row, const struct hk_config *config)
{
    const struct hk_conf_destination *dest = hk_operate_destination(config, row->destination);
    char name[HK_NAME_MAX];
    const struct hk_policy *policy = NULL;
    if (row->max_attempts == 0)
        return;
    if (hk_str_copy(name, sizeof name,
                    row->policy.len > 0 ? row->policy : hk_str_of(dest ? dest->policy : "")))
        policy = hk_policies_get(config->policies, name);
    uint32_t given = policy == NULL ? row->max_attempts
                                    : hk_limits_attempts_within(hk_policy_limits(policy), row->max_attempts,
                                                                config->relay.max_attempts_ceiling);
    (void)hk_buf_addf(out, "%-16s %" PRIu32, "max attempts", row->max_attempts);
    if (given < row->max_attempts)
        (void)hk_buf_addf(out, " (relay.max_attempts_ceiling: it gets %" PRIu32 ")", given);
    (void)hk_buf_addc(out, '\n');
}

static void write_row(struct hk_buf *out, const struct hk_row *row, bool payload, int64_t now_ms,
                      const struct hk_config *config)
{
    hk_operate_fact(out, "message", row->message_id);
    hk_operate_fact(out, "destination", hk_operate_to(row->destination));
    hk_operate_fact(out, "event type", row->event_type);
    hk_operate_fact(out, "status", hk_str_of(hk_state_name(row->state)));
    hk_operate_fact(out, "letter", row->letter_status);
    hk_operate_fact(out, "reason", row->state == HK_STATE_DEAD ? row->cause : row->reason);
    hk_operate_fact(out, "by", row->actor);
    hk_operate_fact(out, "last error", row->last_error);
    if (row->state != HK_STATE_DEAD)
        hk_operate_fact(out, "last cause", row->cause);
    hk_operate_fact(out, "error detail", row->error_detail);
    (void)hk_buf_addf(out, "%-16s %" PRIu32 "\n", "attempts", row->attempts);
    fact_number(out, "crashes", row->crashes);
    fact_number(out, "life", row->life > 1 ? row->life : 0);
    fact_number(out, "answer", row->status > 0 ? (uint64_t)row->status : 0);
    fact_time(out, "written", row->created_ms, now_ms);
    fact_time(out, "next attempt", row->next_ms, now_ms);
    fact_time(out, "last attempt", row->last_attempt_ms, now_ms);
    fact_time(out, "first failed", row->first_failed_ms, now_ms);
    fact_time(out, done_name(row->state), row->done_ms, now_ms);
    hk_operate_fact(out, "in flight by", row->locked_by);
    fact_time(out, "in flight since", row->locked_ms, now_ms);
    hk_operate_fact(out, "not before", row->not_before);
    hk_operate_fact(out, "expires", row->expires_at);
    hk_operate_fact(out, "key", row->key);
    hk_operate_fact(out, "policy", row->policy);
    write_max_attempts(out, row, config);
    hk_operate_fact(out, "correlation id", row->correlation_id);
    hk_operate_fact(out, "traceparent", row->traceparent);
    hk_operate_fact(out, "idempotency key", row->idempotency_key);
    hk_operate_fact(out, "content type", row->content_type);
    hk_operate_fact(out, "encoding", row->encoding);
    hk_operate_fact(out, "headers", row->headers);
    write_payload(out, row, payload);
}

static void write_attempts(struct hk_buf *out, const struct hk_shown *shown)
{
    static const struct hk_table_column columns[] = {
        {"TRY", true, 0},     {"AT", false, 0},     {"TOOK", true, 0},      {"STATUS", true, 0},
        {"CLASS", false, 12}, {"CAUSE", false, 24}, {"ADDRESS", false, 30}, {"ERROR", false, 80}};
    struct hk_table table;
    char text[96], took[HK_OUT_TEXT], at[HK_TIME_TEXT_MAX];
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < shown->n_attempts; i++) {
        const struct hk_tried *a = &shown->attempts[i];
        char n[16] = "-"; /* no attempt that anybody counted: its relay died */
        if (a->n > 0)
            (void)snprintf(n, sizeof n, "%" PRIu32, a->n);
        (void)snprintf(text, sizeof text, a->life > 1 ? "%s (life %" PRIu32 ")" : "%s", n, a->life);
        hk_table_adds(&table, text);
        (void)hk_format_rfc3339(a->started_ms, at);
        hk_table_adds(&table, at);
        hk_table_adds(&table, hk_out_duration(a->duration_ms, took));
        (void)snprintf(text, sizeof text, a->status > 0 ? "%d" : "-", a->status);
        hk_table_adds(&table, text);
        hk_table_add(&table, a->failure_class);
        hk_table_add(&table, a->cause);
        hk_table_add(&table, a->address);
        hk_table_add(&table, a->error);
    }
    (void)hk_buf_adds(out, shown->n_rows > 0 ? "\n" : "");
    hk_table_write(&table, out);
    hk_table_fini(&table);
}

static void write_text(struct hk_buf *out, const struct hk_shown *shown, bool payload,
                       const struct hk_config *config)
{
    int64_t now_ms = hk_clock_wall_ms();
    for (size_t i = 0; i < shown->n_rows; i++) {
        (void)hk_buf_adds(out, i > 0 ? "\n" : "");
        write_row(out, &shown->rows[i], payload, now_ms, config);
    }
    if (shown->n_attempts > 0)
        write_attempts(out, shown);
    else
        (void)hk_buf_adds(out, "\nno attempts are on record\n");
}

/* ---- JSON ---- */

static void put_row(struct hk_json *json, const struct hk_row *row, bool payload)
{
    hk_json_object(json);
    hk_put_row(json, row);
    hk_put_str(json, "letter_status", row->letter_status);
    hk_put_str(json, "cancelled_by", row->actor);
    hk_put_str(json, "cancelled_reason", row->reason);
    hk_put_limit(json, "answer_status", row->status > 0 ? (uint64_t)row->status : 0);
    hk_put_str(json, "error_detail", row->error_detail);
    hk_put_time(json, "first_failed_at", row->first_failed_ms);
    hk_put_str(json, "not_before", row->not_before);
    hk_put_str(json, "expires_at", row->expires_at);
    hk_put_str(json, "policy", row->policy);
    hk_put_limit(json, "max_attempts", row->max_attempts);
    hk_put_str(json, "traceparent", row->traceparent);
    hk_put_str(json, "idempotency_key", row->idempotency_key);
    hk_put_str(json, "content_type", row->content_type);
    hk_put_str(json, "encoding", row->encoding);
    hk_put_str(json, "headers", row->headers);
    hk_json_key(json, "payload_bytes");
    if (row->has_payload)
        hk_json_u64(json, row->payload_bytes);
    else
        hk_json_null(json);
    if (payload && row->has_payload) {
        hk_put_bytes(json, "payload", row->payload);
        hk_put_bool(json, "payload_cut", row->payload.len < row->payload_bytes);
    }
    hk_json_end(json);
}

static void write_json(struct hk_buf *out, const struct hk_shown *shown, bool payload)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < shown->n_rows; i++)
        put_row(&json, &shown->rows[i], payload);
    hk_json_end(&json);
    hk_json_key(&json, "attempts");
    hk_json_array(&json);
    for (size_t i = 0; i < shown->n_attempts; i++)
        hk_put_attempt(&json, &shown->attempts[i]);
    hk_json_end(&json);
    hk_json_key(&json, "next");
    hk_json_null(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

/* ---- masks ---- */

enum {
    TEXTS_MAX = HK_SHOWN_MAX * 4 + HK_TRIED_MAX * 4
};

/* What stands in place of what is masked, until it was printed. */
struct veil {
    struct hk_dead dead; /* for its masks alone */
    bool edited;         /* the payload is not the one that the attempts were made with */
    char *texts[TEXTS_MAX];
    size_t n;
};

typedef void show_fn(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                     struct hk_buf *out);

static void hide(struct veil *v, const struct hk_letter *as, struct hk_str *text, show_fn *show)
{
    struct hk_buf masked;
    if (text->len == 0)
        return;
    hk_buf_init(&masked, HK_OPERATE_OUTPUT_MAX);
    show(&v->dead, as, *text, &masked);
    size_t len = masked.len;
    char *kept = hk_buf_detach(&masked);
    *text = kept != NULL ? (struct hk_str){kept, len} : hk_str_of("(out of memory)");
    v->texts[v->n++] = kept;
}

static void show_payload(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                         struct hk_buf *out)
{
    (void)text;
    hk_dead_show_payload(dead, letter, out);
}

/* As masks see it. */
static struct hk_letter letter_of(const struct hk_row *row)
{
    return (struct hk_letter){.event_type = row->event_type,
                              .encoding = row->encoding,
                              .headers = row->headers,
                              .has_payload = row->has_payload,
                              .payload = row->payload,
                              .payload_bytes = row->payload_bytes};
}

/* Attempts and errors may be about a payload that was replaced since: dead show has all of them. */
static enum hk_code look_for_edits(struct veil *v, const struct hk_operate *op, const char *message_id,
                                   struct hk_err *err)
{
    const struct hk_store_letters_ops *letters = hk_store_letters_by_url(op->url, err);
    const struct hk_letters *found = NULL;
    struct hk_letter_query query = {.message_id = message_id};
    if (letters == NULL)
        return err->code;
    enum hk_code rc =
        letters->list(op->admin, &query, &(struct hk_letter_page){.limit = HK_SHOWN_MAX}, &found, err);
    for (size_t i = 0; rc == HK_OK && i < found->n; i++)
        v->edited = v->edited || found->items[i].version > 1;
    return rc;
}

/* The row whose payload an attempt sent; without one, all that it says is hidden. */
static struct hk_letter letter_of_attempt(const struct hk_shown *shown, const struct hk_tried *attempt)
{
    for (size_t i = 0; i < shown->n_rows; i++)
        if (shown->rows[i].has_payload && hk_str_eq(shown->rows[i].destination, attempt->destination))
            return letter_of(&shown->rows[i]);
    return (struct hk_letter){.event_type = shown->n_rows > 0 ? shown->rows[0].event_type : hk_str_of(""),
                              .payload_bytes = 1};
}

static void hide_all(struct veil *v, const struct hk_shown *shown)
{
    for (size_t i = 0; i < shown->n_attempts; i++) {
        struct hk_tried *a = &shown->attempts[i];
        struct hk_letter as = letter_of_attempt(shown, a);
        as.version = v->edited ? 2 : 1;
        hide(v, &as, &a->error, hk_dead_show_text);
        hide(v, &as, &a->request_headers, hk_dead_show_headers);
        hide(v, &as, &a->response_headers, hk_dead_show_headers);
        hide(v, &as, &a->response_body, hk_dead_show_text);
    }
    for (size_t i = 0; i < shown->n_rows; i++) {
        struct hk_row *row = &shown->rows[i];
        struct hk_letter as = letter_of(row);
        as.version = v->edited ? 2 : 1;
        hide(v, &as, &row->last_error, hk_dead_show_text);
        hide(v, &as, &row->error_detail, hk_dead_show_text);
        as.version = 1;
        hide(v, &as, &row->headers, hk_dead_show_headers);
        if (!hk_masks_fit(v->dead.masks, row->event_type))
            continue;
        hide(v, &as, &row->payload, show_payload);
        if (as.payload.len == as.payload_bytes)
            row->payload_bytes = row->payload.len; /* it is not cut */
    }
}

static void veil_free(struct veil *v)
{
    for (size_t i = 0; i < v->n; i++)
        hk_mem_free(v->texts[i]);
    hk_masks_free(v->dead.masks);
    hk_mem_free(v);
}

enum hk_code hk_view_message(const struct hk_operate *op, const char *message_id, bool payload, bool json,
                             struct hk_buf *out, struct hk_err *err)
{
    const struct hk_shown *shown = NULL;
    struct veil *veil = hk_mem_zalloc(1, sizeof *veil);
    if (veil == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = hk_config_make_masks(op->config, &veil->dead.masks, err);
    bool read = payload || veil->dead.masks != NULL; /* what hides in errors is found by the payload */
    if (rc == HK_OK && veil->dead.masks != NULL)
        rc = look_for_edits(veil, op, message_id, err);
    if (rc == HK_OK)
        rc = op->ops->show(op->admin, message_id, read ? HK_PAYLOAD_MAX : 0, &shown, err);
    if (rc == HK_OK && veil->dead.masks != NULL)
        hide_all(veil, shown);
    if (rc == HK_OK && json)
        write_json(out, shown, payload);
    else if (rc == HK_OK)
        write_text(out, shown, payload, op->config);
    veil_free(veil);
    return rc;
}

static enum hk_code ask(const struct hk_cli *cli, const struct hk_operate *op, struct hk_buf *out,
                        struct hk_err *err)
{
    return hk_view_message(op, cli->operands[0], hk_args_flag(cli, "payload"), hk_args_flag(cli, "json"), out,
                           err);
}

int hk_cmd_messages_show(struct hk_cli *cli)
{
    return hk_operate_show(cli, ask);
}
