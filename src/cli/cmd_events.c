/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku events: what changes, a line an event, until Ctrl-C. As JSON the line is what the HTTP API sends. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/str.h"
#include "cli/args.h"
#include "cli/ask.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/table.h"
#include "desk/events.h"
#include "payload/scan.h"

enum {
    VALUE_WIDTH = 200
};

#define LINE_BYTES ((size_t)512 << 10)

struct writing {
    bool as_json;
    bool beats; /* heartbeats were asked for by name */
    int code;
};

/* ---- for people ---- */

/* {"n":3,"estimate":true} is ~3. False: it is no count. */
static bool write_count(struct hk_buf *out, struct hk_str object)
{
    struct hk_json_scan scan;
    struct hk_scan_token token, number = {.kind = HK_SCAN_END};
    bool about = false;
    hk_scan_init(&scan, object);
    if (hk_scan_next(&scan, &token) != HK_SCAN_OBJECT || hk_scan_next(&scan, &token) != HK_SCAN_KEY ||
        !hk_str_eq(token.raw, hk_str_of("\"n\"")) || hk_scan_next(&scan, &number) != HK_SCAN_NUMBER)
        return false;
    while (hk_scan_next(&scan, &token) != HK_SCAN_END && token.kind != HK_SCAN_ERROR)
        about = about || token.kind == HK_SCAN_TRUE;
    (void)hk_buf_adds(out, about ? "~" : "");
    (void)hk_table_safe(out, number.raw, VALUE_WIDTH);
    return true;
}

/* Of a container the whole, of a text what it says. */
static void write_value(struct hk_buf *out, const struct hk_scan_token *token, struct hk_str whole)
{
    struct hk_buf text;
    if (token->kind == HK_SCAN_OBJECT && write_count(out, whole))
        return;
    hk_buf_init(&text, LINE_BYTES);
    if (token->kind == HK_SCAN_STRING && hk_scan_text(token->raw, &text) == HK_OK)
        whole = hk_buf_str(&text);
    (void)hk_table_safe(out, whole, VALUE_WIDTH);
    hk_buf_fini(&text);
}

static bool says_nothing(const struct hk_scan_token *token)
{
    return token->kind == HK_SCAN_NULL || token->kind == HK_SCAN_FALSE ||
           hk_str_eq(token->raw, hk_str_of("\"\""));
}

/* Its members as NAME=VALUE, but for those that say nothing, and the time, which stands in front. */
static void write_members(struct hk_buf *out, struct hk_str json)
{
    struct hk_json_scan scan;
    struct hk_scan_token key, value;
    hk_scan_init(&scan, json);
    if (hk_scan_next(&scan, &key) != HK_SCAN_OBJECT)
        return;
    while (hk_scan_next(&scan, &key) == HK_SCAN_KEY) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &value);
        if ((kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_scan_leave(&scan))
            return;
        if (says_nothing(&value) || hk_str_eq(key.raw, hk_str_of("\"now\"")) || key.raw.len < 2)
            continue;
        (void)hk_buf_addc(out, ' ');
        (void)hk_table_safe(out, (struct hk_str){key.raw.ptr + 1, key.raw.len - 2}, VALUE_WIDTH);
        (void)hk_buf_addc(out, '=');
        write_value(out, &value, (struct hk_str){json.ptr + value.at, scan.pos - value.at});
    }
}

static void write_text(struct hk_buf *out, const char *word, struct hk_str json)
{
    struct tm local;
    char clock[16] = "";
    time_t now = time(NULL);
    if (localtime_r(&now, &local))
        (void)strftime(clock, sizeof clock, "%H:%M:%S", &local);
    (void)hk_buf_addf(out, "%s %-9s", clock, word);
    write_members(out, json);
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
