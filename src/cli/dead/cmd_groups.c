/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead groups, dead stats: what failed in the same way, and the figures of requirement 113. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/table.h"

enum {
    BAR = 40,
};

/* ---- groups ---- */

/* What the receiver said to the group's example, as far as masks let it be seen. */
static struct hk_str example_error(const struct hk_dead *dead, const struct hk_letter_group *g,
                                   struct hk_buf *out)
{
    /* of its payload nothing is known but that there may be one */
    const struct hk_letter example = {
        .id = g->example_id, .event_type = g->example_event_type, .payload_bytes = 1};
    hk_buf_reset(out);
    hk_dead_show_text(dead, &example, g->example_error, out);
    return hk_buf_status(out) == HK_OK ? hk_buf_str(out) : hk_str_of("(out of memory)");
}

static void put_groups(struct hk_buf *out, const struct hk_dead *dead, const struct hk_letter_groups *groups)
{
    struct hk_buf error;
    hk_buf_init(&error, HK_OPERATE_OUTPUT_MAX);
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_json_key(&json, "items");
    hk_json_array(&json);
    for (size_t i = 0; i < groups->n; i++) {
        const struct hk_letter_group *g = &groups->items[i];
        hk_json_object(&json);
        hk_put_str(&json, "group", g->fingerprint);
        hk_put_u64(&json, "letters", g->n);
        hk_put_u64(&json, "may_have_arrived", g->maybe);
        hk_put_str(&json, "destination", g->destination);
        hk_put_str(&json, "reason_code", g->reason);
        hk_put_str(&json, "class", g->failure_class);
        hk_put_str(&json, "fault", g->blame);
        hk_put_time(&json, "first_failed_at", g->first_ms);
        hk_put_time(&json, "last_failed_at", g->last_ms);
        hk_put_id(&json, "example_id", g->example_id);
        hk_put_str(&json, "example_message_id", g->example_message_id);
        hk_put_str(&json, "example_event_type", g->example_event_type);
        hk_put_str(&json, "example_error", example_error(dead, g, &error));
        hk_json_end(&json);
    }
    hk_json_end(&json);
    hk_buf_fini(&error);
    hk_put_u64(&json, "letters", groups->letters);
    hk_put_u64(&json, "may_have_arrived", groups->maybe);
    hk_put_bool(&json, "more", groups->more);
    hk_put_cstr(&json, "next", NULL);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

static void write_groups(struct hk_buf *out, const struct hk_dead *dead,
                         const struct hk_letter_groups *groups)
{
    struct hk_buf error;
    char first[64], last[64], n[HK_OUT_TEXT];
    hk_buf_init(&error, HK_OPERATE_OUTPUT_MAX);
    for (size_t i = 0; i < groups->n; i++) {
        const struct hk_letter_group *g = &groups->items[i];
        (void)hk_buf_addf(out, "%8s  ", hk_out_count(g->n, n));
        (void)hk_table_safe(out, hk_operate_to(g->destination), 30);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, g->reason, 30);
        (void)hk_buf_addf(out, "  %s  first %s, last %s",
                          hk_str_eq(g->blame, hk_str_of("pipeline")) ? "our pipeline" : "the destination",
                          hk_operate_ago(g->first_ms, groups->now_ms, first),
                          hk_operate_ago(g->last_ms, groups->now_ms, last));
        hk_dead_maybe(out, g->maybe);
        (void)hk_buf_adds(out, "\n          group ");
        (void)hk_table_safe(out, g->fingerprint.len > 0 ? g->fingerprint : hk_str_of("(none)"), 20);
        (void)hk_buf_addf(out, ", e.g. %" PRId64 " ", g->example_id);
        (void)hk_table_safe(out, g->example_event_type, 30);
        (void)hk_buf_adds(out, ": ");
        (void)hk_table_safe(out, example_error(dead, g, &error), 200);
        (void)hk_buf_addc(out, '\n');
    }
    hk_buf_fini(&error);
    (void)hk_buf_addf(out, "%s letters in %s%zu groups", hk_out_count(groups->letters, n),
                      groups->more ? "more than " : "", groups->n);
    hk_dead_maybe(out, groups->maybe);
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_dead_groups(struct hk_cli *cli)
{
    struct hk_dead dead;
    struct hk_dead_filter filter;
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {.message = ""};
    struct hk_dead_seen seen;
    struct hk_buf out;
    uint64_t limit = 50;
    if (!hk_args_u64(cli, "limit", 1, 10000, &limit))
        return HK_EXIT_USAGE;
    int code = hk_dead_filter(cli, false, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(cli, &dead);
    if (code == HK_EXIT_OK) {
        hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
        hk_dead_seen_begin(&seen, &filter.query);
        enum hk_code rc = dead.letters->groups(dead.op.admin, &filter.query, (uint32_t)limit, &groups, &err);
        hk_dead_seen_end(&seen);
        if (rc != HK_OK) {
            code = hk_operate_failed(&err);
        } else {
            if (hk_args_flag(cli, "json"))
                put_groups(&out, &dead, groups);
            else
                write_groups(&out, &dead, groups);
            code = hk_out_buffer(&out);
        }
        hk_buf_fini(&out);
        hk_dead_close(&dead);
    }
    hk_dead_filter_free(&filter);
    return code;
}

/* ---- stats ---- */

static uint64_t total(const struct hk_letter_stats *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        n += s->by_status[i];
    return n;
}

/* In per cent of those whose outcome is known; UINT64_MAX: none is. */
static uint64_t success_percent(const struct hk_letter_stats *s)
{
    uint64_t known = s->requeued_resolved + s->requeued_failed;
    return known > 0 ? s->requeued_resolved * 100 / known : UINT64_MAX;
}

static void write_days(struct hk_buf *out, const struct hk_letter_stats *s)
{
    uint64_t most = 1;
    size_t first = 0;
    char day[HK_TIME_TEXT_MAX];
    for (size_t i = 0; i < HK_STATS_DAYS; i++)
        most = s->days[i].n > most ? s->days[i].n : most;
    while (first + 1 < HK_STATS_DAYS && s->days[first].n == 0)
        first++;
    (void)hk_buf_adds(out, "\nby day (UTC)\n");
    for (size_t i = first; i < HK_STATS_DAYS; i++) {
        (void)hk_format_rfc3339(s->days[i].day_ms, day);
        (void)hk_buf_addf(out, "  %.10s %8" PRIu64 " ", day, s->days[i].n);
        for (uint64_t k = 0; k < (s->days[i].n * BAR + most - 1) / most; k++)
            (void)hk_buf_adds(out, hk_out_utf8() ? "█" : "#");
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_tally(struct hk_buf *out, const char *title, const struct hk_tally *items, size_t n)
{
    char text[HK_OUT_TEXT];
    if (n == 0)
        return;
    (void)hk_buf_addf(out, "\n%s\n", title);
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_addf(out, "  %10s  ", hk_out_count(items[i].n, text));
        (void)hk_table_safe(out, items[i].name, 60);
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_oldest(struct hk_buf *out, const struct hk_letter_stats *s)
{
    char ago[64];
    if (s->n_oldest == 0)
        return;
    (void)hk_buf_adds(out, "\noldest that are open, by first failure\n");
    for (size_t i = 0; i < s->n_oldest; i++) {
        const struct hk_letter *l = &s->oldest[i];
        (void)hk_buf_addf(out, "  %10" PRId64 "  %-12s  ", l->id,
                          hk_operate_ago(l->first_failed_ms, s->now_ms, ago));
        (void)hk_table_safe(out, hk_operate_to(l->destination), 20);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, l->event_type, 30);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, l->reason, 30);
        (void)hk_buf_addc(out, '\n');
    }
}

static void write_stats(struct hk_buf *out, const struct hk_letter_stats *s)
{
    char a[HK_OUT_TEXT], b[HK_OUT_TEXT], c[HK_OUT_TEXT];
    (void)hk_buf_addf(out, "%s dead letters", hk_out_count(total(s), a));
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        (void)hk_buf_addf(out, "%s %s %s", i == 0 ? ":" : ",", hk_out_count(s->by_status[i], a),
                          hk_letter_status_name((enum hk_letter_status)i));
    (void)hk_buf_addf(
        out, "\nof the open ones %s were refused by their destination, %s broke in our pipeline\n",
        hk_out_count(s->by_blame[HK_BLAME_DESTINATION], a), hk_out_count(s->by_blame[HK_BLAME_PIPELINE], b));
    (void)hk_buf_addf(out, "requeued: %s; %s arrived, %s failed again, ", hk_out_count(s->requeued, a),
                      hk_out_count(s->requeued_resolved, b), hk_out_count(s->requeued_failed, c));
    (void)hk_buf_addf(out, "%s on the way", hk_out_count(s->requeued_waiting, a));
    if (success_percent(s) != UINT64_MAX)
        (void)hk_buf_addf(out, "; success rate %" PRIu64 " %%", success_percent(s));
    (void)hk_buf_addc(out, '\n');
    if (total(s) == 0)
        return;
    write_days(out, s);
    write_tally(out, "by reason", s->reasons, s->n_reasons);
    write_tally(out, "by event type", s->event_types, s->n_event_types);
    write_tally(out, "by destination", s->destinations, s->n_destinations);
    write_oldest(out, s);
}

static void put_tally(struct hk_json *json, const char *key, const struct hk_tally *items, size_t n)
{
    hk_json_key(json, key);
    hk_json_array(json);
    for (size_t i = 0; i < n; i++) {
        hk_json_object(json);
        hk_put_str(json, "name", items[i].name);
        hk_put_u64(json, "letters", items[i].n);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_days(struct hk_json *json, const struct hk_letter_stats *s)
{
    char day[HK_TIME_TEXT_MAX];
    hk_json_key(json, "days");
    hk_json_array(json);
    for (size_t i = 0; i < HK_STATS_DAYS; i++) {
        (void)hk_format_rfc3339(s->days[i].day_ms, day);
        hk_json_object(json);
        hk_put_str(json, "day", (struct hk_str){day, 10});
        hk_put_u64(json, "letters", s->days[i].n);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_stats(struct hk_buf *out, const struct hk_letter_stats *s)
{
    struct hk_json json;
    hk_json_init(&json, out, true);
    hk_json_object(&json);
    hk_put_u64(&json, "total", total(s));
    for (size_t i = 0; i < HK_NLETTER_STATUSES; i++)
        hk_put_u64(&json, hk_letter_status_name((enum hk_letter_status)i), s->by_status[i]);
    hk_put_u64(&json, "fault_destination", s->by_blame[HK_BLAME_DESTINATION]);
    hk_put_u64(&json, "fault_pipeline", s->by_blame[HK_BLAME_PIPELINE]);
    hk_json_key(&json, "requeued");
    hk_json_object(&json);
    hk_put_u64(&json, "letters", s->requeued);
    hk_put_u64(&json, "resolved", s->requeued_resolved);
    hk_put_u64(&json, "failed", s->requeued_failed);
    hk_put_u64(&json, "waiting", s->requeued_waiting);
    hk_json_key(&json, "success_rate");
    if (s->requeued_resolved + s->requeued_failed > 0)
        hk_json_double(&json,
                       (double)s->requeued_resolved / (double)(s->requeued_resolved + s->requeued_failed));
    else
        hk_json_null(&json);
    hk_json_end(&json);
    put_days(&json, s);
    put_tally(&json, "reasons", s->reasons, s->n_reasons);
    put_tally(&json, "event_types", s->event_types, s->n_event_types);
    put_tally(&json, "destinations", s->destinations, s->n_destinations);
    hk_json_key(&json, "oldest");
    hk_json_array(&json);
    for (size_t i = 0; i < s->n_oldest; i++) {
        hk_json_object(&json);
        hk_put_id(&json, "id", s->oldest[i].id);
        hk_put_str(&json, "message_id", s->oldest[i].message_id);
        hk_put_str(&json, "destination", s->oldest[i].destination);
        hk_put_str(&json, "event_type", s->oldest[i].event_type);
        hk_put_str(&json, "reason_code", s->oldest[i].reason);
        hk_put_time(&json, "first_failed_at", s->oldest[i].first_failed_ms);
        hk_json_end(&json);
    }
    hk_json_end(&json);
    hk_json_end(&json);
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_dead_stats(struct hk_cli *cli)
{
    struct hk_dead dead;
    const struct hk_letter_stats *stats = NULL;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    int code = hk_dead_open(cli, &dead);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (dead.letters->stats(dead.op.admin, &stats, &err) != HK_OK) {
        code = hk_operate_failed(&err);
    } else {
        if (hk_args_flag(cli, "json"))
            put_stats(&out, stats);
        else
            write_stats(&out, stats);
        code = hk_out_buffer(&out);
    }
    hk_buf_fini(&out);
    hk_dead_close(&dead);
    return code;
}
