/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku enqueue: one message from options, or many from NDJSON, in batches that are each committed whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ndjson.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "exec/clock.h"

#define LINE_MAX_BYTES ((size_t)16 << 20)
#define BATCH_BYTES    ((size_t)4 << 20)

enum {
    BATCH = 500
};

/* ---- one ---- */

/* "2026-11-15T08:30:00Z", or from now on: "90s". NULL stays NULL; false: said what is wrong. */
static bool time_option(const struct hk_cli *cli, const char *option, char out[HK_TIME_TEXT_MAX],
                        const char **value)
{
    const char *text = hk_args_value(cli, option);
    uint64_t wait_ms = 0;
    int64_t ms = 0;
    if (text == NULL)
        return true;
    if (hk_parse_duration(hk_str_of(text), &wait_ms, NULL) == HK_OK)
        ms = hk_clock_wall_ms() + (int64_t)wait_ms;
    else if (hk_parse_rfc3339(hk_str_of(text), &ms, NULL) != HK_OK) {
        (void)hk_out_error(
            HK_EXIT_USAGE,
            "option '--%s' takes a time (2026-11-15T08:30:00Z) or a wait (90s, 1h30m), not '%s'", option,
            text);
        return false;
    }
    (void)hk_format_rfc3339(ms, out);
    *value = out;
    return true;
}

/* Every --header NAME=VALUE as a JSON object. */
static bool read_headers(const struct hk_cli *cli, struct hk_buf *out)
{
    struct hk_json json;
    size_t n = 0;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    for (size_t i = 0; i < cli->n_given; i++) {
        if (strcmp(cli->given[i].option->name, "header") != 0)
            continue;
        struct hk_str value = hk_str_of(cli->given[i].value);
        struct hk_str name = hk_str_cut(&value, '=');
        char key[256];
        if (value.ptr == NULL || name.len == 0 || !hk_str_copy(key, sizeof key, name)) {
            (void)hk_out_error(HK_EXIT_USAGE, "option '--header' takes NAME=VALUE, not '%s'",
                               cli->given[i].value);
            return false;
        }
        hk_json_key(&json, key);
        hk_json_str(&json, value);
        n++;
    }
    hk_json_end(&json);
    if (n == 0)
        hk_buf_reset(out);
    return true;
}

/* Unknown ones become dead letters: better said now. The relay may have another configuration: no more than a warning. */
static void warn_unknown(const struct hk_config *config, const char *destination)
{
    if (hk_config_destination(config, 0) == NULL)
        return; /* the relay's configuration is elsewhere */
    if (destination == NULL && hk_config_route(config, 0) == NULL)
        (void)hk_out_error(HK_EXIT_OK,
                           "warning: no destination is named, and there are no routes: a relay makes it a "
                           "dead letter");
    if (destination == NULL || hk_operate_destination(config, hk_str_of(destination)) != NULL)
        return;
    char shown[HK_SHOW_MAX];
    (void)hk_out_error(HK_EXIT_OK, "warning: no destination %s is configured: a relay makes it a dead letter",
                       hk_show(hk_str_of(destination), shown));
}

struct one {
    struct hk_buf payload, headers;
    char not_before[HK_TIME_TEXT_MAX], expires[HK_TIME_TEXT_MAX];
    struct hk_enqueue item;
};

static int read_one(const struct hk_cli *cli, struct one *one)
{
    struct hk_outbox_message *m = &one->item.message;
    const char *payload = hk_args_value(cli, "payload");
    uint64_t attempts = 0;
    *m = (struct hk_outbox_message){.destination = hk_args_value(cli, "destination"),
                                    .event_type = hk_args_value(cli, "event-type"),
                                    .message_id = hk_args_value(cli, "message-id"),
                                    .message_key = hk_args_value(cli, "key"),
                                    .content_type = hk_args_value(cli, "content-type"),
                                    .correlation_id = hk_args_value(cli, "correlation-id"),
                                    .traceparent = hk_args_value(cli, "traceparent"),
                                    .idempotency_key = hk_args_value(cli, "idempotency-key"),
                                    .policy = hk_args_value(cli, "policy")};
    one->item.encoding = hk_args_value(cli, "encoding");
    if (m->event_type == NULL || m->event_type[0] == '\0')
        return hk_out_error(HK_EXIT_USAGE, "which event? Give --event-type NAME");
    if (one->item.encoding != NULL && strcmp(one->item.encoding, "utf8") != 0 &&
        strcmp(one->item.encoding, "base64") != 0)
        return hk_out_error(HK_EXIT_USAGE, "option '--encoding' takes utf8 or base64, not '%s'",
                            one->item.encoding);
    if (!hk_args_u64(cli, "max-attempts", 1, 1000000, &attempts) ||
        !time_option(cli, "not-before", one->not_before, &m->not_before) ||
        !time_option(cli, "expires", one->expires, &m->expires_at) || !read_headers(cli, &one->headers))
        return HK_EXIT_USAGE;
    if (hk_buf_status(&one->headers) != HK_OK) /* it would go without some of them */
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    m->max_attempts = (uint32_t)attempts;
    m->headers = one->headers.len > 0 ? hk_buf_cstr(&one->headers) : NULL;
    if (payload == NULL)
        return HK_EXIT_OK;
    if (!hk_operate_payload(payload, &one->payload))
        return HK_EXIT_FAILURE;
    m->payload = hk_buf_cstr(&one->payload);
    m->payload_len = one->payload.len;
    return HK_EXIT_OK;
}

static int print_one(const struct hk_cli *cli, struct hk_str id)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (hk_args_flag(cli, "json")) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_str(&json, "message_id", id);
        hk_json_end(&json);
    } else {
        (void)hk_buf_add(&out, id.ptr, id.len);
    }
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

static int enqueue_one(const struct hk_cli *cli)
{
    struct one one = {.not_before = ""};
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    const struct hk_str *ids = NULL;
    hk_buf_init(&one.payload, HK_PAYLOAD_MAX);
    hk_buf_init(&one.headers, (size_t)1 << 20);
    int code = read_one(cli, &one);
    if (code == HK_EXIT_OK)
        code = hk_operate_open(cli, &op);
    if (code == HK_EXIT_OK) {
        warn_unknown(op.config, one.item.message.destination);
        code = op.ops->enqueue(op.admin, &one.item, 1, &ids, &err) == HK_OK ? print_one(cli, ids[0])
                                                                            : hk_operate_failed(&err);
        hk_operate_close(&op);
    }
    hk_buf_fini(&one.payload);
    hk_buf_fini(&one.headers);
    return code;
}

/* ---- many ---- */

struct many {
    struct hk_operate op;
    FILE *file;
    struct hk_ndjson *batch;
    struct hk_enqueue *items;
    size_t n, bytes;
    uint64_t line;             /* the last one that was read */
    uint64_t committed, up_to; /* messages, and the line that they go up to */
    bool as_json, progress;
    int64_t shown_ms;
    struct hk_buf out;
    struct hk_json json;
};

static void show_progress(struct many *m, bool last)
{
    char count[HK_OUT_TEXT];
    int64_t now_ms = hk_clock_wall_ms();
    if (!m->progress || (!last && now_ms - m->shown_ms < 200))
        return;
    m->shown_ms = now_ms;
    (void)fprintf(stderr, "\r%s enqueued%s", hk_out_count(m->committed, count), last ? "\n" : "");
}

static bool flush_out(struct many *m)
{
    bool ok = hk_buf_status(&m->out) == HK_OK &&
              (m->out.len == 0 || fwrite(hk_buf_cstr(&m->out), 1, m->out.len, stdout) == m->out.len);
    hk_buf_reset(&m->out);
    return ok;
}

static void print_id(struct many *m, struct hk_str id)
{
    if (!m->as_json) {
        (void)hk_buf_add(&m->out, id.ptr, id.len);
        (void)hk_buf_addc(&m->out, '\n');
        return;
    }
    hk_json_object(&m->json);
    hk_put_str(&m->json, "message_id", id);
    hk_json_end(&m->json);
}

static void clear_batch(struct many *m)
{
    for (size_t i = 0; i < m->n; i++)
        hk_ndjson_free(&m->batch[i]);
    m->n = m->bytes = 0;
}

static int stopped(const struct many *m, int code, const char *why)
{
    char count[HK_OUT_TEXT];
    if (m->progress)
        (void)fprintf(stderr, "\n");
    if (m->committed == 0)
        return hk_out_error((enum hk_exit)code, "%s (nothing was committed)", why);
    return hk_out_error((enum hk_exit)code,
                        "%s (committed: %s messages, lines 1 to %" PRIu64 "; nothing from line %" PRIu64
                        " on)",
                        why, hk_out_count(m->committed, count), m->up_to, m->up_to + 1);
}

static int commit(struct many *m)
{
    const struct hk_str *ids = NULL;
    struct hk_err err = {.message = ""};
    if (m->n > 0) {
        for (size_t i = 0; i < m->n; i++)
            m->items[i] = m->batch[i].item;
        if (m->op.ops->enqueue(m->op.admin, m->items, m->n, &ids, &err) != HK_OK)
            return stopped(m, err.code == HK_BUSY ? HK_EXIT_TEMPORARY : HK_EXIT_FAILURE, err.message);
        for (size_t i = 0; i < m->n; i++)
            print_id(m, ids[i]);
        m->committed += m->n;
        clear_batch(m);
    }
    m->up_to = m->line;
    show_progress(m, false);
    return flush_out(m) ? HK_EXIT_OK : stopped(m, HK_EXIT_FAILURE, "cannot write the message ids");
}

static int take_line(struct many *m, struct hk_str line)
{
    struct hk_err err = {.message = ""};
    char why[HK_ERR_MESSAGE_MAX + 40];
    m->line++;
    struct hk_str text = hk_str_trim(line);
    if (text.len > 0 && text.ptr[text.len - 1] == '\r')
        text.len--;
    if (text.len == 0)
        return HK_EXIT_OK;
    if (hk_ndjson_read(text, &m->batch[m->n], &err) != HK_OK) {
        (void)snprintf(why, sizeof why, "line %" PRIu64 ": %s", m->line, err.message);
        return stopped(m, HK_EXIT_FAILURE, why);
    }
    m->n++;
    m->bytes += line.len;
    return m->n == BATCH || m->bytes >= BATCH_BYTES ? commit(m) : HK_EXIT_OK;
}

static int too_long(struct many *m)
{
    char why[80];
    (void)snprintf(why, sizeof why, "line %" PRIu64 " is longer than 16 MiB", m->line + 1);
    return stopped(m, HK_EXIT_FAILURE, why);
}

static int read_lines(struct many *m)
{
    struct hk_buf line;
    int code = HK_EXIT_OK, c = 0;
    hk_buf_init(&line, LINE_MAX_BYTES);
    while (code == HK_EXIT_OK && c != EOF) {
        c = getc_unlocked(m->file);
        if (c != EOF && c != '\n') {
            code = hk_buf_addc(&line, (char)c) == HK_OK ? HK_EXIT_OK : too_long(m);
        } else if (c == '\n' || line.len > 0) {
            code = take_line(m, hk_buf_str(&line));
            hk_buf_reset(&line);
        }
    }
    if (code == HK_EXIT_OK && ferror(m->file))
        code = stopped(m, HK_EXIT_FAILURE, "cannot read the lines");
    if (code == HK_EXIT_OK)
        code = commit(m);
    hk_buf_fini(&line);
    return code;
}

static int run_many(const struct hk_cli *cli, struct many *m)
{
    m->as_json = hk_args_flag(cli, "json");
    m->progress = isatty(STDERR_FILENO) == 1;
    m->batch = hk_mem_zalloc(BATCH, sizeof *m->batch);
    m->items = hk_mem_zalloc(BATCH, sizeof *m->items);
    if (m->batch == NULL || m->items == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    hk_buf_init(&m->out, HK_OPERATE_OUTPUT_MAX);
    hk_json_init(&m->json, &m->out, false);
    if (m->as_json) {
        hk_json_object(&m->json);
        hk_json_key(&m->json, "items");
        hk_json_array(&m->json);
    }
    int code = read_lines(m);
    if (code == HK_EXIT_OK)
        show_progress(m, true);
    clear_batch(m);
    if (m->as_json) {
        hk_json_end(&m->json);
        hk_json_key(&m->json, "next");
        hk_json_null(&m->json);
        hk_json_end(&m->json);
        (void)hk_buf_addc(&m->out, '\n');
        if (!flush_out(m) && code == HK_EXIT_OK)
            code = HK_EXIT_FAILURE;
    }
    hk_buf_fini(&m->out);
    return code;
}

static int enqueue_many(const struct hk_cli *cli, const char *path)
{
    struct many m = {.file = stdin};
    if (cli->n_given > 0)
        for (size_t i = 0; i < cli->n_given; i++) {
            const char *name = cli->given[i].option->name;
            if (strcmp(name, "ndjson") != 0 && strcmp(name, "json") != 0 && strcmp(name, "db") != 0 &&
                strcmp(name, "config") != 0)
                return hk_out_error(HK_EXIT_USAGE, "with '--ndjson' each line says it all: leave out '--%s'",
                                    name);
        }
    if (strcmp(path, "-") != 0)
        m.file = fopen(path, "rb");
    if (m.file == NULL)
        return hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", path, strerror(errno));
    int code = hk_operate_open(cli, &m.op);
    if (code == HK_EXIT_OK) {
        code = run_many(cli, &m);
        hk_operate_close(&m.op);
    }
    hk_mem_free(m.batch);
    hk_mem_free(m.items);
    if (m.file != stdin)
        (void)fclose(m.file);
    return code;
}

int hk_cmd_enqueue(struct hk_cli *cli)
{
    const char *path = hk_args_value(cli, "ndjson");
    return path != NULL ? enqueue_many(cli, path) : enqueue_one(cli);
}
