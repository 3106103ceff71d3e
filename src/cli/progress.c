/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a search. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/out.h"
#include "cli/progress.h"
#include "exec/clock.h"

enum {
    EVERY_MS = 200,
    WIDTH = 40,
};

static void tell_looked(void *arg, const struct hk_progress *progress)
{
    int64_t *told_ms = arg;
    int64_t now_ms = hk_clock_wall_ms();
    char number[HK_SHOW_NUMBER];
    if (now_ms - *told_ms < EVERY_MS)
        return;
    *told_ms = now_ms;
    (void)fprintf(stderr, "\rlooking … letter %s ", hk_show_count(progress->done, number));
}

int hk_looking_also(struct hk_ask *ask, const struct hk_op *op, const void *request, void *result)
{
    const struct hk_caller before = ask->caller;
    int64_t told_ms = 0; /* 0 = nothing stands there */
    if (isatty(STDERR_FILENO) == 1) {
        ask->caller.progress = tell_looked;
        ask->caller.arg = &told_ms;
    }
    enum hk_code rc = hk_desk_ask(&ask->desk, op, &ask->caller, request, &ask->mem, result, &ask->err);
    ask->caller = before;
    if (told_ms != 0)
        (void)fprintf(stderr, "\r%*s\r", WIDTH, "");
    return rc == HK_OK ? HK_EXIT_OK : hk_ask_failed(ask);
}

int hk_looking_once(const struct hk_cli *cli, hk_print_fn *print)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_looking_also(&ask, ask.op, ask.request, ask.result);
    if (code == HK_EXIT_OK)
        code = hk_ask_print(&ask, print);
    hk_ask_end(&ask);
    return code;
}

void hk_tell_changed(void *arg, const struct hk_progress *progress)
{
    bool *told = arg;
    (void)fprintf(stderr, "\r%" PRIu64 " changed", progress->done);
    *told = true;
}
