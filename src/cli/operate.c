/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' commands share. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

int hk_operate_open(const struct hk_cli *cli, struct hk_operate *out)
{
    struct hk_operate op = {.admin = NULL};
    struct hk_err err = {.message = ""};
    int code = hk_settings_config(cli, HK_FOR_ACTING, &op.config);
    if (code != HK_EXIT_OK)
        return code;
    op.url = hk_settings_url(cli, op.config);
    op.ops = hk_store_admin_by_url(op.url, &err);
    enum hk_code rc = HK_UNSUPPORTED;
    if (op.ops != NULL)
        rc = op.ops->open(op.url, &(struct hk_store_options){.busy_ms = 0}, &op.admin, &err);
    if (rc != HK_OK) {
        hk_config_free(op.config);
        return hk_out_error(hk_settings_exit(rc), "%s", err.message);
    }
    *out = op;
    return HK_EXIT_OK;
}

void hk_operate_close(struct hk_operate *op)
{
    op->ops->close(op->admin);
    hk_config_free(op->config);
}

int hk_operate_failed(const struct hk_err *err)
{
    enum hk_exit code = hk_settings_exit(err->code);
    if (err->code == HK_NOTFOUND || err->code == HK_CONFLICT)
        code = HK_EXIT_FAILURE;
    else if (err->code == HK_INVALID)
        code = HK_EXIT_USAGE;
    return hk_out_error(code, "%s", err->message);
}

int hk_operate_show(const struct hk_cli *cli, hk_operate_ask *ask)
{
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (ask(cli, &op, &out, &err) != HK_OK) {
        hk_buf_fini(&out);
        code = hk_operate_failed(&err);
    } else {
        code = hk_out_buffer(&out);
    }
    hk_operate_close(&op);
    return code;
}

const char *hk_operate_reason(const struct hk_cli *cli, char out[HK_REASON_TEXT_MAX])
{
    const char *given = hk_args_value(cli, "reason");
    out[0] = '\0';
    if (given != NULL && strlen(given) >= HK_REASON_TEXT_MAX) {
        (void)hk_out_error(HK_EXIT_USAGE, "the reason is longer than %d bytes", HK_REASON_TEXT_MAX - 1);
        return NULL;
    }
    if (given != NULL) {
        (void)snprintf(out, HK_REASON_TEXT_MAX, "%s", given);
    } else if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "Reason (it is kept): ");
        if (fgets(out, HK_REASON_TEXT_MAX, stdin) == NULL)
            out[0] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
    if (hk_str_trim(hk_str_of(out)).len > 0)
        return out;
    (void)hk_out_error(HK_EXIT_USAGE, "why? Give --reason TEXT: it is kept with who did it");
    return NULL;
}

const struct hk_conf_destination *hk_operate_destination(const struct hk_config *config, struct hk_str name)
{
    const struct hk_conf_destination *d = NULL;
    for (size_t i = 0; (d = hk_config_destination(config, i)) != NULL; i++)
        if (hk_str_eq(hk_str_of(d->name), name))
            return d;
    return NULL;
}

static bool read_all(FILE *file, struct hk_buf *out)
{
    char chunk[16384];
    size_t n = 0;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        if (hk_buf_add(out, chunk, n) != HK_OK)
            return false;
    return ferror(file) == 0;
}

bool hk_operate_payload(const char *given, struct hk_buf *out)
{
    if (given[0] != '@' && strcmp(given, "-") != 0)
        return hk_buf_adds(out, given) == HK_OK ||
               hk_out_error(HK_EXIT_FAILURE, "out of memory") == HK_EXIT_OK;
    bool named = given[0] == '@';
    const char *name = named ? given + 1 : "standard input";
    FILE *file = named ? fopen(name, "rb") : stdin;
    if (file == NULL) {
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name, strerror(errno));
        return false;
    }
    errno = 0;
    bool ok = read_all(file, out);
    if (!ok)
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name,
                           hk_buf_status(out) != HK_OK ? "it is too large" : strerror(errno));
    if (named)
        (void)fclose(file);
    return ok;
}

/* ---- JSON ---- */

void hk_put_count(struct hk_json *json, const char *key, struct hk_count count)
{
    hk_json_key(json, key);
    hk_json_object(json);
    hk_put_u64(json, "n", count.n);
    hk_put_bool(json, "estimate", count.about);
    hk_json_end(json);
}

void hk_put_held(struct hk_json *json, const struct hk_dest_status *dest)
{
    hk_put_bool(json, "paused", dest->paused);
    hk_put_str(json, "paused_by", dest->actor);
    hk_put_str(json, "paused_reason", dest->reason);
    hk_put_time(json, "paused_at", dest->since_ms);
    hk_put_time(json, "breaker_open_until", dest->open_until_ms);
}

void hk_put_row(struct hk_json *json, const struct hk_row *row)
{
    hk_put_id(json, "outbox_id", row->outbox_id);
    hk_put_str(json, "message_id", row->message_id);
    hk_put_str(json, "destination", row->destination);
    hk_put_str(json, "event_type", row->event_type);
    hk_put_str(json, "status", hk_str_of(hk_state_name(row->state)));
    hk_put_u64(json, "attempts", row->attempts);
    hk_put_time(json, "next_attempt_at", row->next_ms);
    hk_put_time(json, "last_attempt_at", row->last_attempt_ms);
    hk_put_str(json, "last_error", row->last_error);
    hk_put_str(json, "cause", row->cause);
    hk_put_str(json, "locked_by", row->locked_by);
    hk_put_time(json, "locked_at", row->locked_ms);
    hk_put_time(json, "created_at", row->created_ms);
    hk_put_time(json, "sent_at", row->state == HK_SENT ? row->done_ms : 0);
    hk_put_time(json, "dead_at", row->state == HK_STATE_DEAD ? row->done_ms : 0);
    hk_put_time(json, "cancelled_at", row->state == HK_STATE_CANCELLED ? row->done_ms : 0);
    hk_put_str(json, "message_key", row->key);
    hk_put_str(json, "correlation_id", row->correlation_id);
    hk_put_u64(json, "crashes", row->crashes);
    hk_put_u64(json, "life", row->life);
}

void hk_put_attempt(struct hk_json *json, const struct hk_tried *a)
{
    hk_json_object(json);
    hk_put_str(json, "destination", a->destination);
    hk_put_u64(json, "life", a->life);
    hk_put_u64(json, "attempt", a->n);
    hk_put_time(json, "started_at", a->started_ms);
    hk_put_u64(json, "duration_ms", a->duration_ms);
    hk_put_limit(json, "status", a->status > 0 ? (uint64_t)a->status : 0);
    hk_put_str(json, "class", a->failure_class);
    hk_put_str(json, "cause", a->cause);
    hk_put_str(json, "error", a->error);
    hk_put_str(json, "address", a->address);
    hk_put_str(json, "request_headers", a->request_headers);
    hk_put_str(json, "response_headers", a->response_headers);
    hk_put_bytes(json, "response_body", a->response_body);
    hk_put_bool(json, "possibly_delivered", a->possibly_delivered);
    hk_json_end(json);
}

/* ---- for reading ---- */

void hk_operate_fact(struct hk_buf *out, const char *name, struct hk_str value)
{
    if (value.len == 0)
        return;
    (void)hk_buf_addf(out, "%-16s ", name);
    (void)hk_table_safe(out, value, 4000);
    (void)hk_buf_addc(out, '\n');
}

struct hk_str hk_operate_to(struct hk_str destination)
{
    return destination.len > 0 ? destination : hk_str_of("(by route)");
}

const char *hk_operate_count(struct hk_count count, char out[48])
{
    char digits[HK_OUT_TEXT];
    (void)snprintf(out, 48, "%s%.46s", count.about ? "~" : "", hk_out_count(count.n, digits));
    return out;
}

const char *hk_operate_ago(int64_t ms, int64_t now_ms, char out[64])
{
    char text[HK_OUT_TEXT];
    if (ms == 0)
        (void)snprintf(out, 64, "-");
    else if (ms == now_ms)
        (void)snprintf(out, 64, "now");
    else if (ms < now_ms)
        (void)snprintf(out, 64, "%s ago", hk_out_duration((uint64_t)now_ms - (uint64_t)ms, text));
    else
        (void)snprintf(out, 64, "in %s", hk_out_duration((uint64_t)ms - (uint64_t)now_ms, text));
    return out;
}

void hk_operate_held(struct hk_buf *out, const struct hk_dest_status *dest, int64_t now_ms)
{
    char when[HK_TIME_TEXT_MAX], ago[64];
    if (dest->paused) {
        (void)hk_buf_addf(out, "paused %s by ", hk_operate_ago(dest->since_ms, now_ms, ago));
        (void)hk_buf_add(out, dest->actor.ptr, dest->actor.len);
        (void)hk_buf_adds(out, ": ");
        (void)hk_buf_add(out, dest->reason.ptr, dest->reason.len);
    }
    if (dest->open_until_ms == 0)
        return;
    (void)hk_format_rfc3339(dest->open_until_ms, when);
    (void)hk_buf_addf(out, "%sbreaker: open until %s (%s)", dest->paused ? "; " : "", when,
                      hk_operate_ago(dest->open_until_ms, now_ms, ago));
}
