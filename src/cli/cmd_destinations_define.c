/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations show, create, update, delete, apply */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/definitions.h"

/* ---- show ---- */

static void say_time(struct hk_buf *out, const char *what, int64_t ms, struct hk_str by)
{
    char time[HK_TIME_TEXT_MAX], line[HK_TIME_TEXT_MAX + 300];
    if (ms == 0)
        return;
    (void)hk_format_rfc3339(ms, time);
    (void)snprintf(line, sizeof line, "%s by %.*s", time, (int)(by.len < 200 ? by.len : 200), by.ptr);
    hk_say_fact(out, what, hk_str_of(line));
}

static void say_unusable(struct hk_buf *out, const struct hk_unusable *u)
{
    char since[HK_TIME_TEXT_MAX];
    struct hk_buf text;
    hk_buf_init(&text, 1 << 16);
    (void)hk_format_rfc3339(u->since_ms, since);
    (void)hk_buf_addf(&text, "by %" PRIu64 " %s, since %s: ", u->relays, u->relays == 1 ? "relay" : "relays",
                      since);
    (void)hk_buf_add(&text, u->why.ptr, u->why.len);
    hk_say_fact(out, "cannot be used", hk_buf_str(&text));
    hk_buf_fini(&text);
}

static void print_shown(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dest_shown *shown = result;
    char line[160], rate[HK_SHOW_NUMBER];
    bool stored = strcmp(shown->from, "store") == 0;
    (void)ask;
    hk_say_fact(out, "destination", hk_str_of(shown->destination));
    if (stored)
        (void)snprintf(line, sizeof line, "the store, version %" PRIu64, shown->version);
    hk_say_fact(out, "defined in", hk_str_of(stored ? line : "the configuration file"));
    if (shown->also_stored)
        hk_say_fact(
            out, "warning",
            hk_str_of(
                "the store has one of that name, too: it is not used. 'destinations delete' removes it"));
    if (shown->unusable.relays > 0)
        say_unusable(out, &shown->unusable);
    else if (shown->problem != NULL)
        hk_say_fact(out, "cannot be used", hk_str_of(shown->problem));
    hk_say_fact(out, "url", hk_str_of(shown->url != NULL ? shown->url : shown->kind));
    hk_say_fact(out, "policy", hk_str_of(shown->policy));
    hk_say_fact(out, "order", hk_str_of(shown->order));
    if (shown->rate_per_s > 0) {
        (void)snprintf(line, sizeof line, "%s/s", hk_show_rate(shown->rate_per_s, rate));
        hk_say_fact(out, "rate", hk_str_of(line));
    }
    if (shown->concurrency > 0) {
        (void)snprintf(line, sizeof line, "%" PRIu32, shown->concurrency);
        hk_say_fact(out, "concurrency", hk_str_of(line));
    }
    say_time(out, "created", shown->created_ms, shown->created_by);
    say_time(out, "changed", shown->changed_ms, shown->changed_by);
    hk_say_fact(out, "reason", shown->reason);
    if (shown->definition.len == 0)
        return;
    (void)hk_buf_adds(out, "definition:\n");
    hk_table_safe_lines(out, shown->definition);
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_destinations_show(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_shown);
}

/* ---- one ---- */

static void print_defined(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dest_defined *done = result;
    (void)ask;
    (void)hk_table_safe(out, hk_str_of(done->destination), 200);
    if (strcmp(done->did, "deleted") == 0)
        (void)hk_buf_adds(out, ": deleted; relays know it within a second\n");
    else
        (void)hk_buf_addf(out, ": %s, version %" PRIu64 "; relays use it within a second\n", done->did,
                          done->version);
}

int hk_cmd_destinations_create(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_defined);
}

int hk_cmd_destinations_update(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_defined);
}

int hk_cmd_destinations_delete(struct hk_cli *cli)
{
    return hk_ask_once(cli, print_defined);
}

/* ---- many ---- */

static void print_applied(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    static const struct hk_table_column columns[] = {
        {"DESTINATION", false, 63}, {"", false, 0}, {"VERSION", true, 0}};
    const struct hk_dest_applied *done = result;
    struct hk_table table;
    char version[32];
    (void)ask;
    hk_table_init(&table, columns, sizeof columns / sizeof columns[0]);
    for (size_t i = 0; i < done->n; i++) {
        const struct hk_dest_applied_row *row = &done->items[i];
        if (strcmp(row->did, "unchanged") == 0)
            continue;
        hk_table_add(&table, row->destination);
        hk_table_adds(&table, row->did);
        (void)snprintf(version, sizeof version, "%" PRIu64, row->version);
        hk_table_adds(&table, version);
    }
    if (done->created + done->updated + done->deleted > 0)
        hk_table_write(&table, out);
    hk_table_fini(&table);
    (void)hk_buf_addf(
        out, "%s: %" PRIu64 " created, %" PRIu64 " updated, %" PRIu64 " deleted, %" PRIu64 " unchanged\n",
        done->dry_run ? "would be" : "done", done->created, done->updated, done->deleted, done->unchanged);
}

static bool take_file(struct hk_ask *ask)
{
    struct hk_dest_apply_ask *request = ask->request;
    const char *path = hk_args_value(ask->cli, "file");
    char named[4200];
    struct hk_buf text;
    if (path == NULL)
        return true;
    if (request->definitions.ptr != NULL) {
        (void)hk_out_error(HK_EXIT_USAGE, "give '--file' or '--definitions', not both");
        return false;
    }
    (void)snprintf(named, sizeof named, "%s%s", strcmp(path, "-") == 0 ? "" : "@", path);
    hk_buf_init(&text, HK_ARGS_BYTES_MAX);
    bool ok = hk_args_bytes(named, &text);
    const char *copy = ok ? hk_pool_copy(&ask->mem, hk_buf_cstr(&text), text.len) : NULL;
    request->definitions = (struct hk_str){copy, text.len};
    hk_buf_fini(&text);
    return copy != NULL;
}

int hk_cmd_destinations_apply(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK && !take_file(&ask))
        code = HK_EXIT_USAGE;
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        const struct hk_dest_applied *done = ask.result;
        code = hk_ask_print(&ask, print_applied);
        if (done->stopped.code != HK_OK)
            code = hk_ask_error(&done->stopped);
    }
    hk_ask_end(&ask);
    return code;
}
