/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages cancel, messages restore, messages retry */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/dead/dead.h"
#include "cli/interrupt.h"
#include "cli/job.h"
#include "cli/out.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/messages.h"

/* ---- retry ---- */

static void print_due(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_message_acted *acted = result;
    (void)ask;
    (void)hk_table_safe(out, hk_str_of(acted->act.message_id), 200);
    const char *done = strcmp(acted->verb, "force") == 0 ? ": forced, a relay sends it now" : ": due now";
    (void)hk_buf_adds(out, acted->is.changed > 0 ? done : ": due already, nothing was changed");
    if (acted->is.changed > 1)
        (void)hk_buf_addf(out, " (%zu rows)", acted->is.changed);
    (void)hk_buf_addc(out, '\n');
}

/* As hk_ask_failed, but names the option that is missing. */
static int say_failed(struct hk_ask *ask, enum hk_code rc)
{
    if (rc == HK_INVALID && ask->desk.wrong_field != NULL &&
        hk_str_eq(hk_str_of(ask->desk.wrong_field), hk_str_of("destination")))
        return hk_out_error(HK_EXIT_USAGE, "%s with --destination NAME", ask->err.message);
    return hk_ask_failed(ask);
}

int hk_cmd_messages_retry(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        enum hk_code rc = hk_ask_quietly(&ask);
        code = rc == HK_OK ? hk_ask_print(&ask, print_due) : say_failed(&ask, rc);
    }
    hk_ask_end(&ask);
    return code;
}

/* ---- cancel, restore: what is told ---- */

static const struct words {
    const char *one, *already, *many;
} words[] = {
    [HK_MESSAGES_CANCEL] = {"cancelled: it will not be sent", "cancelled already", "cancelled"},
    [HK_MESSAGES_RESTORE] = {"restored: it waits again", "it waits already, nothing was changed", "restored"},
    [HK_MESSAGES_ERASE] = {"erased: the record of it stays", "nothing is kept of it any more", "erased"},
};

static const char *count_of(uint64_t n, char out[HK_SHOW_NUMBER])
{
    return hk_say_count((struct hk_count){n, false}, out);
}

static void write_outlook(struct hk_buf *out, const struct hk_messages_acted *o)
{
    char number[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out, "%s message%s would be %s", count_of(o->fit, number), o->fit == 1 ? "" : "s",
                      words[o->kind].many);
    if (o->others > 0)
        (void)hk_buf_addf(out, "; %s %s and would stay as they are", count_of(o->others, number),
                          o->kind == HK_MESSAGES_ERASE ? "wait or are on their way" : "in flight");
    if (o->overtaken > 0)
        (void)hk_buf_addf(out, "; %s of the act are not cancelled any more", count_of(o->overtaken, number));
    (void)hk_buf_addc(out, '\n');
    for (size_t i = 0; i < o->n_examples; i++) {
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, o->examples[i].message_id, 200);
        (void)hk_buf_adds(out, "  ");
        (void)hk_table_safe(out, o->examples[i].event_type, 100);
        if (o->examples[i].destination.len > 0)
            (void)hk_buf_adds(out, " for ");
        (void)hk_table_safe(out, o->examples[i].destination, 100);
        (void)hk_buf_addf(out, ", %s\n", hk_state_name(o->examples[i].state));
    }
    if (o->fit > o->n_examples)
        (void)hk_buf_adds(out, "  …\n");
}

static void write_act(struct hk_buf *out, const struct hk_messages_acted *o)
{
    if (o->act_id == 0)
        return;
    (void)hk_buf_addf(out, "act %" PRId64 ": 'hikyaku audit show %" PRId64 "' lists the messages", o->act_id,
                      o->act_id);
    if (o->kind == HK_MESSAGES_CANCEL)
        (void)hk_buf_addf(out, "; to undo it: 'hikyaku messages restore --act %" PRId64 "'", o->act_id);
    (void)hk_buf_addc(out, '\n');
}

static void write_one(struct hk_buf *out, const struct hk_messages_acted *o)
{
    (void)hk_table_safe(out, hk_str_of(o->message_id), 200);
    (void)hk_buf_addf(out, ": %s", o->done > 0 ? words[o->kind].one : words[o->kind].already);
    if (o->done > 1)
        (void)hk_buf_addf(out, " (%" PRIu64 " rows)", o->done);
    (void)hk_buf_addc(out, '\n');
}

static void print_acted(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_messages_acted *o = result;
    (void)ask;
    if (o->dry_run) {
        write_outlook(out, o);
        return;
    }
    if (o->message_id) {
        write_one(out, o);
        return;
    }
    for (size_t i = 0; i < o->n; i++)
        if (o->items[i].did == HK_DID_REFUSE || o->items[i].did == HK_DID_NOT_FIND) {
            (void)hk_table_safe(out, o->items[i].message_id, 200);
            (void)hk_buf_addf(out, ": %s\n", o->items[i].why);
        }
    (void)hk_buf_addf(out,
                      "%" PRIu64 " %s, %" PRIu64 " unchanged, %" PRIu64 " refused, %" PRIu64 " missing\n",
                      o->done, words[o->kind].many, o->nothing, o->refused, o->missing);
    if (o->overtaken > 0)
        (void)hk_buf_addf(out, "%" PRIu64 " of the act were not cancelled any more\n", o->overtaken);
    write_act(out, o);
}

static int say_stopped(const struct hk_messages_acted *o)
{
    struct hk_buf text;
    hk_buf_init(&text, 4096);
    write_act(&text, o);
    (void)hk_out_error(HK_EXIT_FAILURE, "stopped after %" PRIu64 " messages were %s; %s", o->done,
                       words[o->kind].many, hk_buf_cstr(&text));
    hk_buf_fini(&text);
    return hk_ask_error(&o->stopped);
}

static int report_act(struct hk_ask *ask)
{
    const struct hk_messages_acted *o = ask->result;
    if (o->stopped.code != HK_OK)
        return say_stopped(o);
    for (size_t i = 0; o->dry_run && i < o->n; i++)
        (void)hk_out_error(HK_EXIT_FAILURE, "%.*s: %s",
                           (int)(o->items[i].message_id.len < 200 ? o->items[i].message_id.len : 200),
                           o->items[i].message_id.ptr, o->items[i].why);
    int code = hk_ask_print(ask, print_acted);
    return code == HK_EXIT_OK && o->refused + o->missing > 0 ? HK_EXIT_FAILURE : code;
}

/* ---- asking ---- */

static int look(struct hk_ask *ask, const void *request, void *result)
{
    return hk_looking_also(ask, ask->op, request, result);
}

/* Looks first, and asks: of messages that are named nobody needs to be asked. */
static int confirm_act(struct hk_ask *ask)
{
    struct hk_messages_act_ask dry = *(const struct hk_messages_act_ask *)ask->request;
    struct hk_messages_acted seen = {.fit = 0};
    char number[HK_SHOW_NUMBER], question[160], of[48] = "";
    if (dry.dry_run || dry.ids.n > 0 || hk_args_flag(ask->cli, "yes"))
        return HK_EXIT_OK;
    dry.dry_run = true;
    int code = look(ask, &dry, &seen);
    if (code != HK_EXIT_OK || seen.fit == 0)
        return code;
    if (seen.undone != 0)
        (void)snprintf(of, sizeof of, " of act %" PRId64, seen.undone);
    (void)snprintf(question, sizeof question, "%s: %s message%s%s?", hk_messages_verb(seen.kind),
                   count_of(seen.fit, number), seen.fit == 1 ? "" : "s", of);
    return hk_dead_confirm(ask->cli, question);
}

/* A dry run only looks. */
static int do_act(struct hk_ask *ask)
{
    const struct hk_messages_act_ask *request = ask->request;
    bool told = false;
    if (request->dry_run)
        return look(ask, ask->request, ask->result);
    hk_interrupt_catch();
    ask->caller.progress = isatty(STDERR_FILENO) == 1 && request->ids.n == 0 ? hk_tell_changed : NULL;
    ask->caller.stop = hk_interrupted;
    ask->caller.arg = &told;
    enum hk_code rc = hk_ask_quietly(ask);
    if (told)
        (void)fprintf(stderr, "\n");
    return rc == HK_OK ? HK_EXIT_OK : say_failed(ask, rc);
}

static int act_on(const struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    bool background = hk_args_flag(cli, "background");
    if (code == HK_EXIT_OK)
        code = confirm_act(&ask);
    if (code == HK_EXIT_OK && background)
        code = hk_job_start_and_say(&ask);
    if (code == HK_EXIT_OK && !background)
        code = do_act(&ask);
    if (code == HK_EXIT_OK && !background)
        code = report_act(&ask);
    hk_ask_end(&ask);
    return code;
}

int hk_cmd_messages_cancel(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_messages_restore(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_messages_erase(struct hk_cli *cli)
{
    return act_on(cli);
}
