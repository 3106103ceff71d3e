/* SPDX-License-Identifier: Apache-2.0 */
/* traceparent as it comes from a row: what is taken is written again as it was, as version 00, and read again to the same. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "observe/trace.h"

/* A second opinion, by the words of the recommendation. */
static bool is_valid(struct hk_str s)
{
    static const char hex[] = "0123456789abcdef";
    if (s.len < 55)
        return false;
    for (size_t i = 0; i < 55; i++) {
        bool dash = i == 2 || i == 35 || i == 52;
        if (dash ? s.ptr[i] != '-' : !memchr(hex, s.ptr[i], 16))
            return false;
    }
    bool first = memcmp(s.ptr, "00", 2) == 0;
    if (memcmp(s.ptr, "ff", 2) == 0 || (s.len > 55 && (first || s.ptr[55] != '-')))
        return false;
    return memcmp(s.ptr + 3, "00000000000000000000000000000000", 32) != 0 &&
           memcmp(s.ptr + 36, "0000000000000000", 16) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str input = {(const char *)data, size};
    struct hk_trace trace, again;
    char text[HK_TRACEPARENT_SIZE], id[HK_TRACE_ID_TEXT];
    bool taken = hk_trace_parse(input, &trace);
    MUST(taken == is_valid(input));
    if (!taken)
        return 0;
    hk_trace_format(&trace, text);
    hk_trace_id_text(&trace, id);
    MUST(strlen(text) == 55 && memcmp(text, "00-", 3) == 0 && memcmp(text + 3, input.ptr + 3, 50) == 0);
    MUST(memcmp(id, input.ptr + 3, 32) == 0 && id[32] == '\0');
    MUST(hk_trace_parse(hk_str_of(text), &again) && memcmp(&again.trace_id, &trace.trace_id, 16) == 0);
    MUST(memcmp(&again.span_id, &trace.span_id, 8) == 0 && again.sampled == trace.sampled);
    struct hk_sampler half = {.root = HK_SAMPLE_RATIO, .ratio = 0.5},
                      all = {.root = HK_SAMPLE_RATIO, .ratio = 1};
    MUST(hk_trace_sample(&all, NULL, trace.trace_id));
    MUST(!hk_trace_sample(&half, NULL, trace.trace_id) == (trace.trace_id[9] >= 0x80));
    return 0;
}
