/* SPDX-License-Identifier: Apache-2.0 */
/* The checker reads logs that a broken relay may have written: whatever is in log and dump (a zero byte between), it comes to a verdict,
 * and to the same one again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "checker.h"
#include "fuzz.h"

static void judge(struct hk_str log, struct hk_str dump, bool many, struct hk_check_result *out)
{
    const struct hk_check_options options = {.slack_ms = 5, .many_lanes = many};
    struct hk_buf report;
    hk_buf_init(&report, (size_t)1 << 20);
    hk_check(log, dump, &options, &report, out);
    MUST(hk_buf_status(&report) == HK_OK && (report.len > 0) == (out->violations > 0));
    hk_buf_fini(&report);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_check_result first, again;
    struct hk_str dump = {(const char *)data, size};
    if (size > 16384)
        return 0;
    struct hk_str log = hk_str_cut(&dump, '\0');
    judge(log, dump, false, &first);
    judge(log, dump, false, &again);
    MUST(first.violations == again.violations && first.messages == again.messages);
    judge(log, dump, true, &again);
    return 0;
}
