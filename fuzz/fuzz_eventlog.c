/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the event log with hostile texts: each is one line, and the checker's own reader, which shares no code with the writer, finds in it what
 * was written. The first byte is the event, then texts with zero bytes between. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "flat.h"
#include "fuzz.h"
#include "observe/eventlog.h"

static bool is_utf8(struct hk_str s)
{
    for (size_t at = 0; at < s.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){s.ptr + at, s.len - at}, &c);
        if (c == HK_UTF8_BAD)
            return false;
    }
    return true;
}

static void check_text(const struct hk_flat *flat, struct hk_str line, const char *key, struct hk_str was)
{
    char quoted[16];
    (void)snprintf(quoted, sizeof quoted, "\"%s\":", key);
    for (size_t i = 0; i + strlen(quoted) <= line.len; i++)
        if (memcmp(line.ptr + i, quoted, strlen(quoted)) == 0 && is_utf8(was) &&
            hk_flat_text(flat, key).ptr != NULL) {
            MUST(hk_str_eq(hk_flat_text(flat, key), was) || hk_flat_text(flat, key).len == 0);
            return;
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hk_flat flat;
    struct hk_buf out;
    if (size < 10 || size > 400)
        return 0;
    int64_t number;
    memcpy(&number, data + 1, sizeof number);
    struct hk_str rest = {(const char *)data + 9, size - 9};
    struct hk_event_line line = {.ev = (enum hk_logged)(data[0] % HK_NLOGGED),
                                 .t = number,
                                 .id = number,
                                 .lane = number,
                                 .claim = number,
                                 .due = number,
                                 .source = 'o'};
    line.m = hk_str_cut(&rest, '\0');
    line.dest = hk_str_cut(&rest, '\0');
    line.key = hk_str_cut(&rest, '\0');
    line.reason = rest;
    hk_buf_init(&out, (size_t)1 << 16);
    hk_eventlog_add(&out, &line);
    struct hk_str text = hk_buf_str(&out);
    MUST(hk_buf_status(&out) == HK_OK && text.len > 1);
    MUST(memchr(text.ptr, '\n', text.len) == text.ptr + text.len - 1);
    text.len--;
    bool read = hk_flat_parse(&flat, text);
    MUST(read || text.len > HK_FLAT_BYTES / 2);
    if (read) {
        MUST(hk_flat_number(&flat, "t") == number);
        check_text(&flat, text, "m", line.m);
        check_text(&flat, text, "dest", line.dest);
        check_text(&flat, text, "key", line.key);
        check_text(&flat, text, "reason", line.reason);
    }
    hk_buf_fini(&out);
    return 0;
}
