/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku init */
#include <stdio.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/out.h"
#include "desk/setup.h"

static bool ask_wal(void)
{
    char answer[16] = "";
    if (!isatty(STDIN_FILENO))
        return false;
    (void)fprintf(stderr,
                  "This SQLite file belongs to an application and does not use WAL. Switch it? [y/N] ");
    return fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y');
}

static void print_inited(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_init_ask *asked = ask->request;
    const struct hk_inited *done = result;
    const char *place = done->place;
    unsigned from = (unsigned)done->is.from, to = (unsigned)done->is.to;
    if (from == to)
        (void)hk_buf_addf(out, "%s: schema version %u is up to date\n", place, to);
    else if (from == 0)
        (void)hk_buf_addf(out, "%s: schema version %u created\n", place, to);
    else
        (void)hk_buf_addf(out, "%s: schema migrated from version %u to %u\n", place, from, to);
    if (asked->notify)
        (void)hk_buf_addf(out, "%s: relays are woken by new messages\n", place);
    if (asked->partition_sent)
        (void)hk_buf_addf(out, "%s: sent rows are kept by the day\n", place);
    if (asked->no_notify)
        (void)hk_buf_addf(out, "%s: relays only poll\n", place);
    if (done->is.two_phase)
        (void)hk_buf_addf(
            out,
            "%s: max_prepared_transactions is not 0: a transaction that wakes relays cannot be PREPAREd; who does "
            "that says SET hikyaku.notify = off\n",
            place);
    if (!done->is.wal)
        (void)hk_buf_addf(
            out,
            "%s: not in WAL mode: readers and writers will wait for each other; 'hikyaku init --wal' switches\n",
            place);
}

/* SQL is printed as it is, also where --json is given: it is to be piped. */
static int report(struct hk_ask *ask)
{
    const struct hk_inited *done = ask->result;
    struct hk_buf out;
    if (done->sql.ptr == NULL)
        return hk_ask_print(ask, print_inited);
    hk_buf_init(&out, HK_OUTPUT_MAX);
    (void)hk_buf_add(&out, done->sql.ptr, done->sql.len);
    return hk_out_buffer(&out);
}

/* An error is one of opening a store, where no option is wrong. */
static int failed(const struct hk_ask *ask)
{
    return ask->desk.wrong_field != NULL
               ? hk_ask_failed(ask)
               : hk_out_error(hk_settings_exit(ask->err.code), "%s", ask->err.message);
}

int hk_cmd_init(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    struct hk_init_ask *asked = ask.request;
    const struct hk_inited *done = ask.result;
    if (code == HK_EXIT_OK) {
        enum hk_code rc = hk_ask_quietly(&ask);
        if (rc == HK_OK && done->sql.ptr == NULL && !done->is.wal && !asked->wal && ask_wal()) {
            asked->wal = true;
            rc = hk_ask_quietly(&ask);
        }
        code = rc == HK_OK ? report(&ask) : failed(&ask);
    }
    hk_ask_end(&ask);
    return code;
}
