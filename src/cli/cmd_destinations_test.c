/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku destinations test */
#include <stdio.h>

#include "base/str.h"
#include "cli/ask.h"
#include "cli/out.h"
#include "cli/say.h"
#include "cli/table.h"
#include "desk/destinations.h"

static void print_tested(const struct hk_ask *ask, const void *result, struct hk_buf *out)
{
    const struct hk_dest_tested *tested = result;
    const struct hk_delivered *got = &tested->got;
    char line[160], took[HK_SHOW_NUMBER];
    (void)ask;
    hk_say_fact(out, "destination", hk_str_of(tested->destination));
    hk_say_fact(out, "url", hk_str_of(tested->url != NULL ? tested->url : tested->kind));
    (void)snprintf(line, sizeof line, "%s%s%.*s", hk_class_name(got->failure_class),
                   got->cause.len > 0 ? ", " : "", (int)got->cause.len, got->cause.ptr);
    hk_say_fact(out, "verdict", hk_str_of(line));
    if (got->status > 0)
        (void)snprintf(line, sizeof line, "%d", got->status);
    else
        (void)snprintf(line, sizeof line, "none (%s)", hk_fault_name(got->fault));
    hk_say_fact(out, "status", hk_str_of(line));
    hk_say_fact(out, "took", hk_str_of(hk_show_duration(got->duration_ms, took)));
    hk_say_fact(out, "address", got->address);
    hk_say_fact(out, "error", got->error);
    hk_say_fact(out, "message", hk_str_of(tested->message_id));
    hk_say_fact(out, "request headers", got->request_headers);
    hk_say_fact(out, "response headers", got->response_headers);
    if (got->body.len == 0)
        return;
    (void)hk_buf_adds(out, "response body:\n");
    hk_table_safe_lines(out, got->body);
    (void)hk_buf_addc(out, '\n');
}

int hk_cmd_destinations_test(struct hk_cli *cli)
{
    struct hk_ask ask;
    int code = hk_ask_begin(cli, &ask);
    if (code == HK_EXIT_OK)
        code = hk_ask_run(&ask);
    if (code == HK_EXIT_OK) {
        const struct hk_dest_tested *tested = ask.result;
        code = hk_ask_print(&ask, print_tested);
        if (tested->got.failure_class != HK_CLASS_SUCCESS)
            code = HK_EXIT_FAILURE;
    }
    hk_ask_end(&ask);
    return code;
}
