/* SPDX-License-Identifier: Apache-2.0 */
/* Two texts with a zero byte between them. Texts that differ give a diff, lines on it begin as they should, its counts are
 * right, and nothing in it can harm a terminal. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"
#include "payload/diff.h"

static void check_harmless(struct hk_str diff)
{
    while (diff.len) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(diff, &c);
        MUST(c != HK_UTF8_BAD && (c >= 0x20 || c == '\n' || c == '\t') && (c < 0x7f || c > 0x9f));
        diff = (struct hk_str){diff.ptr + n, diff.len - n};
    }
}

static void check_counts(const char *p)
{
    unsigned long a = 0, b = 0, at_a = 0, at_b = 0;
    for (; *p; p = strchr(p, '\n') + 1) {
        if (*p == '@') {
            MUST(a == 0 && b == 0);
            MUST(sscanf(p, "@@ -%lu,%lu +%lu,%lu @@", &at_a, &a, &at_b, &b) == 4);
            MUST(a + b > 0);
        } else if (*p == ' ') {
            MUST(a-- > 0 && b-- > 0);
        } else if (*p == '-') {
            MUST(a-- > 0);
        } else if (*p == '+') {
            MUST(b-- > 0);
        } else {
            MUST(*p == '\\' || strcmp(p, "(only white space differs)\n") == 0);
        }
    }
    MUST(a == 0 && b == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_buf diff;
    if (size > 8192)
        return 0;
    struct hk_str after = {(const char *)data, size};
    struct hk_str before = hk_str_cut(&after, '\0');
    hk_buf_init(&diff, (size_t)1 << 24);
    MUST(hk_diff_write(&diff, before, after, (unsigned)(size % 4)) == HK_OK);
    MUST((diff.len == 0) == hk_str_eq(before, after));
    check_harmless(hk_buf_str(&diff));
    check_counts(hk_buf_cstr(&diff));
    hk_buf_fini(&diff);
    return 0;
}
