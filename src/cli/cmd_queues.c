/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku queues list, show, create, update, delete, purge, pause, resume */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/job.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/queues.h"

enum {
    TEXT_MAX = 160
};

/* ---- texts ---- */

static const char *attempts_text(const struct hk_queue_settings *s, char out[TEXT_MAX])
{
    if (s->max_attempts < 0)
        return "unlimited";
    (void)snprintf(out, TEXT_MAX, "%" PRId64, s->max_attempts);
    return out;
}

static const char *retry_text(const struct hk_queue_settings *s, char out[TEXT_MAX])
{
    char time[HK_SHOW_NUMBER];
    if (s->max_retry_ms == 0)
        return "unlimited";
    (void)snprintf(out, TEXT_MAX, "%s", hk_show_duration((uint64_t)s->max_retry_ms, time));
    return out;
}

static const char *backoff_text(const struct hk_queue_settings *s, char out[TEXT_MAX])
{
    char least[HK_SHOW_NUMBER], most[HK_SHOW_NUMBER];
    (void)snprintf(out, TEXT_MAX, "%s to %s, %" PRId64 " doublings",
                   hk_show_duration((uint64_t)s->min_backoff_ms, least),
                   hk_show_duration((uint64_t)s->max_backoff_ms, most), s->max_doublings);
    return out;
}

static const char *rate_text(const struct hk_queue_settings *s, char out[TEXT_MAX])
{
    char rate[HK_SHOW_NUMBER];
    (void)snprintf(out, TEXT_MAX, "%s/s", hk_show_rate(s->rate_per_s, rate));
    return out;
}

/* ---- list ---- */

static void add_row(struct hk_table *table, const struct hk_queue *q)
{
    char text[TEXT_MAX], n[HK_SHOW_NUMBER];
    hk_table_adds(table, q->name);
    hk_table_adds(table, rate_text(&q->is, text));
    (void)snprintf(text, sizeof text, "%" PRId64, q->is.burst);
    hk_table_adds(table, text);
    (void)snprintf(text, sizeof text, "%" PRId64, q->is.concurrency);
    hk_table_adds(table, text);
    hk_table_adds(table, attempts_text(&q->is, text));
    hk_table_adds(table, retry_text(&q->is, text));
    hk_table_adds(table, backoff_text(&q->is, text));
    hk_table_adds(table, hk_say_count(q->waiting, n));
    hk_table_adds(table, hk_say_count(q->dead, n));
    hk_table_adds(table, q->paused ? "paused" : "running");
}

static void print_queues(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"QUEUE", false, 80},  {"RATE", true, 0},      {"BURST", true, 0},     {"AT ONCE", true, 0},
        {"ATTEMPTS", true, 0}, {"RETRY FOR", true, 0}, {"BACKOFF", false, 48}, {"WAITING", true, 0},
        {"DEAD", true, 0},     {"STATE", false, 0}};
    const struct hk_queues *queues = result;
    struct hk_table table;
    (void)ask;
    if (queues->n == 0) {
        (void)hk_buf_adds(out, "no queues: 'hikyaku queues create' makes one, and so do clients\n");
        return;
    }
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < queues->n; i++)
        add_row(&table, &queues->items[i]);
    hk_table_write(&table, out);
    hk_table_fini(&table);
    if (queues->next != NULL) {
        (void)hk_buf_adds(out, "more: continue with --after ");
        (void)hk_table_safe(out, hk_str_of(queues->next), 400);
        (void)hk_buf_addc(out, '\n');
    }
}

int hk_cmd_queues_list(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_queues);
}

/* ---- one ---- */

static void print_queue(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_queue *q = result;
    char text[TEXT_MAX], n[HK_SHOW_NUMBER];
    (void)ask;
    hk_say_fact(out, "queue", hk_str_of(q->name));
    hk_say_fact(out, "state", hk_str_of(q->paused ? "paused" : "running"));
    hk_say_fact(out, "rate", hk_str_of(rate_text(&q->is, text)));
    (void)snprintf(text, sizeof text, "%" PRId64, q->is.burst);
    hk_say_fact(out, "burst", hk_str_of(text));
    (void)snprintf(text, sizeof text, "%" PRId64, q->is.concurrency);
    hk_say_fact(out, "at once", hk_str_of(text));
    hk_say_fact(out, "attempts", hk_str_of(attempts_text(&q->is, text)));
    hk_say_fact(out, "retry for", hk_str_of(retry_text(&q->is, text)));
    hk_say_fact(out, "backoff", hk_str_of(backoff_text(&q->is, text)));
    hk_say_fact(out, "policy", hk_str_of(q->is.policy));
    (void)snprintf(text, sizeof text, "%s, %" PRIu64 " of them in flight", hk_say_count(q->waiting, n),
                   q->in_flight);
    hk_say_fact(out, "waiting", hk_str_of(text));
    hk_say_fact(out, "dead", hk_str_of(hk_say_count(q->dead, n)));
    hk_say_fact(out, "destination", hk_str_of(q->destination));
}

int hk_cmd_queues_show(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_queue);
}

int hk_cmd_queues_create(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_queue);
}

int hk_cmd_queues_update(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_queue);
}

/* ---- pause, resume ---- */

static void print_paused(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_queue *q = result;
    (void)ask;
    (void)hk_table_safe(out, hk_str_of(q->name), 400);
    (void)hk_buf_adds(out,
                      q->paused ? ": paused; its tasks wait, and no attempt is charged\n" : ": running\n");
}

int hk_cmd_queues_pause(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_paused);
}

int hk_cmd_queues_resume(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_paused);
}

/* ---- purge, delete ---- */

static void print_gone(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_queue_gone *gone = result;
    (void)ask;
    (void)hk_table_safe(out, hk_str_of(gone->name), 400);
    if (gone->job_id != 0) {
        (void)hk_buf_addf(out,
                          ": %s; job %" PRId64 " cancels its tasks ('hikyaku job show %" PRId64
                          " --wait' follows it)\n",
                          gone->did, gone->job_id, gone->job_id);
        return;
    }
    (void)hk_buf_addf(out, ": %s; %" PRIu64 " task%s cancelled\n", gone->did, gone->cancelled,
                      gone->cancelled == 1 ? "" : "s");
    if (gone->left > 0)
        (void)hk_buf_addf(out, "%" PRIu64 " task%s in flight, and end%s as the receiver answers\n",
                          gone->left, gone->left == 1 ? " was" : "s were", gone->left == 1 ? "s" : "");
}

int hk_cmd_queues_purge(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_gone);
}

int hk_cmd_queues_delete(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    bool background = hk_args_flag(cli, "background");
    if (code == HK_EXIT_OK && background)
        code = hk_job_start_and_say(&ask);
    if (code == HK_EXIT_OK && !background)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK && !background)
        code = hk_ask_print(&ask, print_gone);
    hk_ask_end(&ask);
    return code;
}
