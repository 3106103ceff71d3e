/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead requeue, resolve, discard, restore, note */
#include <inttypes.h>
#include <stdio.h>
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
#include "desk/dead.h"

static const struct words {
    const char *done, *nothing;
} words[] = {
    [HK_DEAD_REQUEUE] = {"requeued", "on its way already"},
    [HK_DEAD_RESOLVE] = {"resolved", "resolved already"},
    [HK_DEAD_DISCARD] = {"discarded; restore brings it back", "discarded already"},
    [HK_DEAD_RESTORE] = {"open again", "open already"},
    [HK_DEAD_NOTE] = {"noted", ""},
    [HK_DEAD_ERASE] = {"erased", "erased already"},
};

enum {
    A_FEW = 20 /* letters, each of which has its line */
};

/* ---- what is told ---- */

static void write_outlook(struct hk_buf *out, const struct hk_dead_acted *o)
{
    char number[48];
    (void)hk_buf_addf(out, "%s letter%s would be %s", hk_say_count(o->fit, number), o->fit.n == 1 ? "" : "s",
                      o->kind == HK_DEAD_DISCARD ? "discarded" : words[o->kind].done);
    hk_dead_maybe(out, o->maybe);
    if (o->others.n > 0)
        (void)hk_buf_addf(out, "; %s are in a state that does not allow it and would stay as they are",
                          hk_say_count(o->others, number));
    (void)hk_buf_addc(out, '\n');
}

static void write_act(struct hk_buf *out, const struct hk_dead_acted *o)
{
    if (o->act_id == 0)
        return;
    (void)hk_buf_addf(out, "act %" PRId64 ": 'hikyaku audit show %" PRId64 "' lists the letters", o->act_id,
                      o->act_id);
    if (o->kind == HK_DEAD_DISCARD)
        (void)hk_buf_addf(out, "; to undo it: 'hikyaku dead restore --act %" PRId64 "'", o->act_id);
    (void)hk_buf_addc(out, '\n');
}

/* Which letter, as whoever asked named it. */
static void write_name(struct hk_buf *out, const struct hk_dead_item *item)
{
    if (item->id != 0)
        (void)hk_buf_addf(out, "%" PRId64, item->id);
    else
        (void)hk_table_safe(out, item->name, 200);
}

/* Of a few letters all, of many only what was not done. */
static void write_item(struct hk_buf *out, const struct hk_dead_acted *o, size_t i)
{
    const struct hk_dead_item *item = &o->items[i];
    if (item->why != NULL) {
        write_name(out, item);
        (void)hk_buf_addf(out, ": %s\n", item->why);
        return;
    }
    if (o->n_all > A_FEW)
        return;
    (void)hk_buf_addf(out, "%" PRId64 ": %s", item->id,
                      item->did == HK_DID_IT ? words[o->kind].done : words[o->kind].nothing);
    if (o->kind == HK_DEAD_REQUEUE && item->did == HK_DID_IT) {
        (void)hk_buf_adds(out, " as ");
        (void)hk_table_safe(out, item->message_id, 200);
    }
    (void)hk_buf_addc(out, '\n');
}

static void print_acted(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dead_acted *o = result;
    (void)ask;
    if (o->dry_run) {
        write_outlook(out, o);
        return;
    }
    bool each = o->one || o->n_all <= 1 || o->refused + o->missing > 0;
    for (size_t i = 0; each && i < o->n; i++)
        write_item(out, o, i);
    if (o->n_all != 1)
        (void)hk_buf_addf(
            out, "%" PRIu64 " changed, %" PRIu64 " unchanged, %" PRIu64 " refused, %" PRIu64 " missing\n",
            o->done, o->nothing, o->refused, o->missing);
    if (o->overtaken > 0)
        (void)hk_buf_addf(out, "%" PRIu64 " were left as they are: somebody has decided about them since\n",
                          o->overtaken);
    write_act(out, o);
}

static int say_stopped(const struct hk_dead_acted *o)
{
    struct hk_buf text;
    hk_buf_init(&text, 4096);
    write_act(&text, o);
    (void)hk_out_error(HK_EXIT_FAILURE, "stopped after %" PRIu64 " letters were changed; %s", o->done,
                       hk_buf_cstr(&text));
    hk_buf_fini(&text);
    return hk_ask_error(&o->stopped);
}

static void say_missing(const struct hk_dead_item *item)
{
    struct hk_buf name;
    hk_buf_init(&name, 1024);
    write_name(&name, item);
    (void)hk_out_error(HK_EXIT_FAILURE, "%s: %s", hk_buf_cstr(&name), item->why);
    hk_buf_fini(&name);
}

static int report_act(struct hk_ask *ask)
{
    const struct hk_dead_acted *o = ask->result;
    if (o->stopped.code != HK_OK)
        return say_stopped(o);
    if (o->same_edited != 0)
        (void)hk_out_error(
            HK_EXIT_OK,
            "%" PRId64
            " was edited and goes out under the same id: a receiver that has seen that id drops it",
            o->same_edited);
    for (size_t i = 0; o->dry_run && i < o->n; i++)
        say_missing(&o->items[i]);
    int code = hk_ask_print(ask, print_acted);
    return code == HK_EXIT_OK && o->refused + o->missing > 0 ? HK_EXIT_FAILURE : code;
}

/* ---- asking ---- */

/* Looks first, and asks: of letters that are named nobody needs to be asked. */
static int confirm_act(struct hk_ask *ask)
{
    struct hk_dead_ask look = *(const struct hk_dead_ask *)ask->request;
    struct hk_dead_acted seen;
    char number[48], question[160], of[48] = "";
    if (look.dry_run || look.ids.n > 0 || hk_args_flag(ask->cli, "yes"))
        return HK_EXIT_OK;
    look.dry_run = true;
    int code = hk_looking_also(ask, ask->op, &look, &seen);
    if (code != HK_EXIT_OK || seen.fit.n == 0)
        return code;
    if (seen.undone != 0)
        (void)snprintf(of, sizeof of, " of act %" PRId64, seen.undone);
    (void)snprintf(question, sizeof question, "%s: %s dead letters%s?", hk_dead_verb(seen.kind),
                   hk_say_count(seen.fit, number), of);
    return hk_dead_confirm(ask->cli, question);
}

/* A dry run only looks. */
static int do_act(struct hk_ask *ask)
{
    const struct hk_dead_ask *request = ask->request;
    bool told = false;
    if (request->dry_run)
        return hk_looking_also(ask, ask->op, ask->request, ask->result);
    hk_interrupt_catch();
    ask->caller.progress = isatty(STDERR_FILENO) == 1 ? hk_tell_changed : NULL;
    ask->caller.stop = hk_interrupted;
    ask->caller.arg = &told;
    enum hk_code rc = hk_ask_quietly(ask);
    if (told)
        (void)fprintf(stderr, "\n");
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
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

int hk_cmd_dead_requeue(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_dead_resolve(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_dead_discard(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_dead_restore(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_dead_erase(struct hk_cli *cli)
{
    return act_on(cli);
}

int hk_cmd_dead_note(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = report_act(&ask);
    hk_ask_end(&ask);
    return code;
}
