/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku events: prints one line for each change, until Ctrl-C. With --json the line is the event of the HTTP API. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/args.h"
#include "cli/ask.h"
#include "cli/interrupt.h"
#include "cli/members.h"
#include "cli/out.h"
#include "desk/events.h"

#define LINE_BYTES ((size_t)512 << 10)

struct writing {
    bool as_json;
    bool beats; /* heartbeats were asked for by name */
    int code;
};

/* ---- for people ---- */

static void write_text(struct hk_buf *out, const char *word, struct hk_str json)
{
    struct tm local;
    char clock[16] = "";
    time_t now = time(NULL);
    if (localtime_r(&now, &local))
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    (void)hk_buf_addf(out, "%s %-9s", clock, word);
    hk_members_write(out, json);
    (void)hk_buf_addc(out, '\n');
}

/* ---- an event ---- */

static bool take_event(void *arg, enum hk_event_type type, struct hk_str json)
{
    struct writing *w = arg;
    struct hk_buf out;
    if (type == HK_EVENT_HEARTBEAT && !w->as_json && !w->beats)
        return true;
    hk_buf_init(&out, LINE_BYTES);
    if (w->as_json) {
        (void)hk_buf_addf(&out, "{\"event\":\"%s\",\"data\":", hk_event_word(type));
        (void)hk_buf_add(&out, json.ptr, json.len);
        (void)hk_buf_adds(&out, "}\n");
    } else {
        write_text(&out, hk_event_word(type), json);
    }
    w->code = hk_out_buffer(&out);
    if (w->code == HK_EXIT_OK && fflush(stdout) != 0)
        w->code = HK_EXIT_FAILURE; /* hk_out_close says why */
    return w->code == HK_EXIT_OK;
}

int hk_cmd_events(struct hk_cli *cli)
{
    struct hk_ask ask;
    struct writing w = {.as_json = hk_args_flag(cli, "json")};
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK) {
        struct hk_events_ask *request = ask.request;
        w.beats = request->types && strstr(request->types, hk_event_word(HK_EVENT_HEARTBEAT));
        request->take = take_event;
        request->take_arg = &w;
        hk_interrupt_catch();
        ask.caller.stop = hk_interrupted;
        code = hk_ask_run(&ask);
    }
    hk_ask_end(&ask);
    return code == HK_EXIT_OK ? w.code : code;
}
