/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku init: creates or migrates the schema, or prints the SQL that would, or that gives roles their rights. */
#include <stdio.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/args.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "desk/put.h"

#define SQL_MAX ((size_t)4 << 20)

static bool ask_wal(void)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO))
        return false;
    (void)fprintf(stderr,
                  "This SQLite file belongs to an application and does not use WAL. Switch it? [y/N] ");
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static int print_json(const char *url, const struct hk_store_inited *done)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, (size_t)1 << 16);
    hk_json_init(&json, &out, true);
    hk_json_object(&json);
    hk_put_cstr(&json, "db", url);
    hk_put_bool(&json, "created", done->created);
    hk_put_u64(&json, "from", done->from);
    hk_put_u64(&json, "to", done->to);
    hk_json_end(&json);
    (void)hk_buf_addc(&out, '\n');
    return hk_out_buffer(&out);
}

static int report(const struct hk_cli *cli, const char *url, const struct hk_store_inited *done)
{
    if (hk_args_flag(cli, "json"))
        return print_json(url, done);
    if (done->from == done->to)
        (void)printf("%s: schema version %u is up to date\n", url, (unsigned)done->to);
    else if (done->from == 0)
        (void)printf("%s: schema version %u created\n", url, (unsigned)done->to);
    else
        (void)printf("%s: schema migrated from version %u to %u\n", url, (unsigned)done->from,
                     (unsigned)done->to);
    if (hk_args_flag(cli, "notify"))
        (void)printf("%s: relays are woken by new messages\n", url);
    if (hk_args_flag(cli, "partition-sent"))
        (void)printf("%s: sent rows are kept by the day\n", url);
    if (hk_args_flag(cli, "no-notify"))
        (void)printf("%s: relays only poll\n", url);
    if (done->two_phase)
        (void)printf(
            "%s: max_prepared_transactions is not 0: a transaction that wakes relays cannot be PREPAREd; who does "
            "that says SET hikyaku.notify = off\n",
            url);
    if (!done->wal)
        (void)printf(
            "%s: not in WAL mode: readers and writers will wait for each other; 'hikyaku init --wal' switches\n",
            url);
    return HK_EXIT_OK;
}

static const char *role(const struct hk_cli *cli, const char *option, const char *fallback)
{
    const char *name = hk_args_value(cli, option);
    return name != NULL ? name : fallback;
}

static int print_grants(const struct hk_cli *cli, const struct hk_store_ops *ops, const char *url)
{
    const struct hk_store_roles roles = {.notify = hk_args_flag(cli, "notify"),
                                         .partitions = hk_args_flag(cli, "partition-sent"),
                                         .app = role(cli, "app-role", "hikyaku_app"),
                                         .relay = role(cli, "relay-role", "hikyaku_relay"),
                                         .viewer = role(cli, "viewer-role", "hikyaku_viewer")};
    struct hk_buf sql;
    struct hk_err err;
    if (ops->grants == NULL)
        return hk_out_error(HK_EXIT_USAGE, "--print-grants: a %s database has no roles", ops->name);
    hk_buf_init(&sql, SQL_MAX);
    enum hk_code rc = ops->grants(url, &roles, &sql, &err);
    if (rc == HK_OK)
        return hk_out_buffer(&sql);
    hk_buf_fini(&sql);
    return hk_out_error(hk_settings_exit(rc), "%s", err.message);
}

/* False: *out_code is what the program ends with. */
static bool check_notify(const struct hk_cli *cli, const struct hk_store_ops *ops, enum hk_store_notify *out,
                         int *out_code)
{
    bool on = hk_args_flag(cli, "notify"), off = hk_args_flag(cli, "no-notify");
    if (on && off)
        *out_code = hk_out_error(HK_EXIT_USAGE, "--notify and --no-notify: one of them");
    else if ((on || off) && ops->listen == NULL)
        *out_code =
            hk_out_error(HK_EXIT_USAGE, "--%snotify: relays on %s only poll", off ? "no-" : "", ops->name);
    else
        *out_code = HK_EXIT_OK;
    *out = on ? HK_NOTIFY_ON : off ? HK_NOTIFY_OFF : HK_NOTIFY_AS_IT_IS;
    return *out_code == HK_EXIT_OK;
}

static int init(const struct hk_cli *cli, const char *url)
{
    struct hk_err err;
    const struct hk_store_ops *ops = hk_store_by_url(url, &err);
    if (ops == NULL)
        return hk_out_error(HK_EXIT_CONFIG, "%s", err.message);
    int code = HK_EXIT_OK;
    enum hk_store_notify notify = HK_NOTIFY_AS_IT_IS;
    if (!check_notify(cli, ops, &notify, &code))
        return code;
    if (hk_args_flag(cli, "partition-sent") && !ops->partitions)
        return hk_out_error(HK_EXIT_USAGE, "--partition-sent: a %s database has no partitions", ops->name);
    if (hk_args_flag(cli, "print-grants"))
        return print_grants(cli, ops, url);
    struct hk_buf sql;
    char place[HK_STORE_PLACE_MAX];
    struct hk_store_inited done = {.created = false};
    struct hk_store_init how = {.allow_wal = hk_args_flag(cli, "wal"),
                                .partition_sent = hk_args_flag(cli, "partition-sent"),
                                .notify = notify};
    hk_buf_init(&sql, SQL_MAX);
    if (hk_args_flag(cli, "print"))
        how.print = &sql;
    enum hk_code rc = ops->init(url, &how, &done, &err);
    if (rc == HK_OK && !how.print && !done.wal && !how.allow_wal && ask_wal()) {
        how.allow_wal = true;
        rc = ops->init(url, &how, &done, &err);
    }
    if (rc == HK_OK && how.print)
        return hk_out_buffer(&sql);
    hk_buf_fini(&sql);
    return rc == HK_OK ? report(cli, hk_store_place(url, place), &done)
                       : hk_out_error(hk_settings_exit(rc), "%s", err.message);
}

int hk_cmd_init(struct hk_cli *cli)
{
    struct hk_config *config = NULL;
    int code = hk_settings_config(cli, HK_FOR_ACTING, &config);
    if (code != HK_EXIT_OK)
        return code;
    code = init(cli, hk_settings_url(cli, config));
    hk_config_free(config);
    return code;
}
