/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead fix */
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
#include "exec/clock.h"
#include "jq/jq.h"

enum {
    TOLD_EVERY_MS = 200
};

static void print_fixed(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dead_fixed *o = result;
    char number[HK_OUT_TEXT];
    (void)ask;
    for (size_t i = 0; i < o->n_samples; i++) {
        (void)hk_buf_addf(out, "--- %" PRId64 "\n", o->samples[i].id);
        hk_table_safe_lines(out, o->samples[i].text);
    }
    (void)hk_buf_addf(out, "%" PRIu64 " %s, %" PRIu64 " unchanged, %" PRIu64 " failed, of %" PRIu64 "\n",
                      o->changed, o->dry_run ? "would be changed" : "changed", o->unchanged, o->failed,
                      o->matched);
    for (size_t i = 0; i < o->n_failures; i++) {
        (void)hk_buf_addf(out, "  %" PRId64 ": ", o->failures[i].id);
        (void)hk_table_safe(out, o->failures[i].text, 300);
        (void)hk_buf_addc(out, '\n');
    }
    if (o->failed > o->n_failures)
        (void)hk_buf_adds(out, "  …\n");
    if (o->maybe > 0)
        (void)hk_buf_addf(out,
                          "%s of the %s may have arrived before: a requeue sends the new payload under a new "
                          "message id, and the receiver may act on both\n",
                          hk_out_count(o->maybe, number),
                          o->dry_run ? "letters to change" : "changed letters");
    if (o->changed > 0 && !o->dry_run)
        (void)hk_buf_addf(out,
                          "the older payloads are kept; nothing was sent: see dead requeue, redrive start\n"
                          "act %" PRId64 ": 'hikyaku audit show %" PRId64 "' lists the letters\n",
                          o->act_id, o->act_id);
}

static int report_fixed(struct hk_ask *ask)
{
    const struct hk_dead_fixed *o = ask->result;
    if (o->stopped.code != HK_OK) {
        (void)hk_out_error(HK_EXIT_FAILURE,
                           "stopped after %" PRIu64 " letters were %s (act %" PRId64 " of the audit)",
                           o->changed, o->dry_run ? "tried" : "changed", o->act_id);
        return hk_ask_error(&o->stopped);
    }
    int code = hk_ask_print(ask, print_fixed);
    return code == HK_EXIT_OK && o->failed > 0 ? HK_EXIT_FAILURE : code;
}

static int confirm_fix(struct hk_ask *ask)
{
    struct hk_dead_fix_ask look = *(const struct hk_dead_fix_ask *)ask->request;
    struct hk_dead_fixed seen;
    char number[48], question[128];
    if (look.dry_run || hk_args_flag(ask->cli, "yes"))
        return HK_EXIT_OK;
    look.only_count = true;
    int code = hk_looking_also(ask, ask->op, &look, &seen);
    if (code != HK_EXIT_OK)
        return code;
    (void)snprintf(question, sizeof question, "Change the payloads of %s dead letters?",
                   hk_say_count(seen.count, number));
    return hk_dead_confirm(ask->cli, question);
}

static void say_progress(uint64_t matched, uint64_t changed, uint64_t failed, const char *end)
{
    (void)fprintf(stderr, "\r%" PRIu64 " looked at, %" PRIu64 " changed, %" PRIu64 " failed%s", matched,
                  changed, failed, end);
}

static void tell_progress(void *arg, const struct hk_progress *progress)
{
    int64_t *told_ms = arg;
    int64_t now_ms = hk_clock_wall_ms();
    if (now_ms - *told_ms < TOLD_EVERY_MS)
        return;
    *told_ms = now_ms;
    say_progress(progress->done, progress->changed, progress->failed, "");
}

static int do_fix(struct hk_ask *ask)
{
    const struct hk_dead_fixed *o = ask->result;
    bool terminal = isatty(STDERR_FILENO) == 1;
    int64_t told_ms = 0;
    hk_interrupt_catch();
    ask->caller.progress = terminal ? tell_progress : NULL;
    ask->caller.stop = hk_interrupted;
    ask->caller.arg = &told_ms;
    enum hk_code rc = hk_ask_quietly(ask);
    if (terminal && rc == HK_OK)
        say_progress(o->matched, o->changed, o->failed, "\n");
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
}

int hk_cmd_dead_fix(struct hk_cli *cli)
{
    char path[HK_JQ_PATH_MAX];
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        ask.desk.jq = hk_jq_find(path) ? path : NULL;
        code = confirm_fix(&ask);
    }
    bool background = hk_args_flag(cli, "background");
    if (code == HK_EXIT_OK && background)
        code = hk_job_start_and_say(&ask);
    if (code == HK_EXIT_OK && !background)
        code = do_fix(&ask);
    if (code == HK_EXIT_OK && !background)
        code = report_fixed(&ask);
    hk_ask_end(&ask);
    return code;
}
