/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead send */
#include <inttypes.h>
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "desk/dead.h"

static void print_sent(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dead_sent *sent = result;
    const struct hk_delivered *got = &sent->got;
    char line[160], took[HK_SHOW_NUMBER];
    (void)ask;
    if (sent->dry_run) {
        (void)hk_buf_addf(out, "letter %" PRId64 " would be sent to %s, %" PRIu64 " bytes\n", sent->id,
                          sent->url, sent->payload_bytes);
        return;
    }
    (void)snprintf(line, sizeof line, "%" PRId64, sent->id);
    hk_say_fact(out, "letter", hk_str_of(line));
    hk_say_fact(out, "message", sent->message_id);
    hk_say_fact(out, "destination", sent->destination);
    hk_say_fact(out, "url", hk_str_of(sent->url));
    (void)snprintf(line, sizeof line, "%s%s%.*s", hk_class_name(got->failure_class),
                   got->cause.len > 0 ? ", " : "", (int)got->cause.len, got->cause.ptr);
    hk_say_fact(out, "verdict", hk_str_of(line));
    (void)snprintf(line, sizeof line, "%d", got->status);
    hk_say_fact(out, "status", hk_str_of(got->status > 0 ? line : "none"));
    hk_say_fact(out, "took", hk_str_of(hk_show_duration(got->duration_ms, took)));
    hk_say_fact(out, "address", got->address);
    hk_say_fact(out, "error", got->error);
    hk_say_fact(out, "request headers", got->request_headers);
    hk_say_fact(out, "response headers", got->response_headers);
    hk_say_fact(out, "response body", got->body);
    if (!sent->ok && got->possibly_delivered)
        (void)hk_buf_adds(out,
                          "it may have arrived all the same: ask the receiver before you send it again\n");
}

static int report_sent(struct hk_ask *ask)
{
    const struct hk_dead_sent *sent = ask->result;
    int code = hk_ask_print(ask, print_sent);
    if (sent->dry_run)
        return code;
    if (sent->unrecorded.code != HK_OK)
        return hk_out_error(
            HK_EXIT_TEMPORARY,
            "it was sent (%s), but that could not be recorded: %s. The letter stays retrying; resolve or "
            "restore it by hand",
            sent->ok ? "and arrived" : "and did not arrive", sent->unrecorded.message);
    return sent->ok ? code : HK_EXIT_FAILURE;
}

int hk_cmd_dead_send(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK)
        code = report_sent(&ask);
    hk_ask_end(&ask);
    return code;
}
