/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign text on a terminal: a byte for how much room there is, then the text. Whatever it is, nothing that is printed moves a cursor or turns
 * the direction of writing, all of it is whole characters, no wider than was asked for, and a table has its own lines and no other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/show.h"
#include "base/utf8.h"
#include "cli/table.h"
#include "fuzz.h"

/* Returns how many characters; `*out_width` how many columns. */
static size_t check_shown(struct hk_str s, const char *also, size_t *out_width)
{
    size_t n = 0;
    *out_width = 0;
    for (; s.len > 0; n++) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        MUST(c != HK_UTF8_BAD && c != 0);
        MUST((c >= 0x20 && !(c >= 0x7f && c <= 0x9f)) || strchr(also, (int)c) != NULL);
        MUST(!(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) && !(c >= 0x2060 && c <= 0x206f));
        MUST(c != 0x61c && c != 0xfeff && !(c >= 0xfff9 && c <= 0xfffb));
        *out_width += hk_char_width(c);
        s.ptr += taken;
        s.len -= taken;
    }
    return n;
}

/* Quotes inside stand behind a backslash: where the text ends can be seen. */
static void check_quoted(struct hk_str text)
{
    char out[HK_SHOW_MAX];
    size_t width;
    struct hk_str s = hk_str_of(hk_show(text, out));
    MUST(s.len >= 2 && s.len < HK_SHOW_MAX && s.ptr[0] == '"' && s.ptr[s.len - 1] == '"');
    check_shown(s, "", &width);
    for (size_t i = 1; i + 1 < s.len; i++) {
        MUST(s.ptr[i] != '"');
        i += s.ptr[i] == '\\';
        MUST(i + 1 < s.len);
    }
}

static void check_plain(struct hk_str text, size_t room)
{
    struct hk_buf out;
    size_t width;
    hk_buf_init(&out, 65536);
    hk_show_plain(text, room, &out);
    MUST(hk_buf_status(&out) == HK_OK && check_shown(hk_buf_str(&out), "", &width) <= room);
    MUST(text.len == 0 || out.len > 0);
    hk_buf_reset(&out);
    MUST(hk_table_safe(&out, text, room) <= room);
    check_shown(hk_buf_str(&out), "", &width);
    MUST(width <= room);
    hk_buf_reset(&out);
    hk_table_safe_lines(&out, text);
    MUST(hk_buf_status(&out) == HK_OK);
    check_shown(hk_buf_str(&out), "\n\t", &width);
    hk_buf_fini(&out);
}

static void check_table(struct hk_str text, size_t room)
{
    static const char title[] = "A  B  C\n";
    const struct hk_table_column columns[] = {{"A", false, room}, {"B", true, 0}, {"C", false, 7}};
    struct hk_table table;
    struct hk_buf out;
    size_t width, lines = 0;
    hk_table_init(&table, columns, 3);
    for (size_t i = 0; i < 12; i++)
        hk_table_add(&table, fuzz_take(&text, i == 11 ? text.len : text.len / 4));
    hk_buf_init(&out, (size_t)1 << 20);
    hk_table_write(&table, &out);
    MUST(hk_buf_status(&out) == HK_OK && out.len >= sizeof title - 1);
    check_shown(hk_buf_str(&out), "\n", &width);
    for (size_t i = 0; i < out.len; i++)
        lines += out.data[i] == '\n';
    MUST(lines == 5 && out.data[out.len - 1] == '\n');
    hk_buf_fini(&out);
    hk_table_fini(&table);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || size > 4096)
        return 0;
    struct hk_str text = {(const char *)data + 1, size - 1};
    size_t room = 1 + data[0] % 100;
    check_quoted(text);
    check_plain(text, room);
    check_table(text, room);
    return 0;
}
