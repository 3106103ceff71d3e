/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: widths of characters, what is cut, what is made safe, and that columns line up. */
#include <locale.h>

#include <hikyaku/rng.h>

#include "base/str.h"
#include "base/utf8.h"
#include "check.h"
#include "cli/table.h"

static void characters_are_as_wide_as_terminals_show_them(void **state)
{
    (void)state;

    static const struct {
        uint32_t c;
        unsigned width;
    } cases[] = {{'a', 1},     {0xe9, 1},   {0x300, 0},  {0x3042, 2}, {0x30ab, 2}, {0x65e5, 2},
                 {0x9fff, 2},  {0xac00, 2}, {0xff21, 2}, {0xff71, 1}, {0x3099, 0}, {0x1f600, 2},
                 {0x20000, 2}, {0x2026, 1}, {0xfe0f, 0}, {0x2e7f, 1}, {0x3000, 2}, {0x10ffff, 1},
                 {0x1100, 2},  {0x115f, 2}, {0x1160, 0}, {0x231a, 2}, {0x2319, 1}, {0xfe2f, 0},
                 {0x3fffd, 2}, {0x3fffe, 1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        NOTE_IF(hk_char_width(cases[i].c) != cases[i].width, "U+%04X\n", (unsigned)cases[i].c);
        assert_int_equal(hk_char_width(cases[i].c), cases[i].width);
    }
}

static size_t shown_width(struct hk_str s)
{
    size_t width = 0;
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        assert_true(c != HK_UTF8_BAD && c >= 0x20 && c != 0x7f);
        width += hk_char_width(c);
        s = (struct hk_str){s.ptr + taken, s.len - taken};
    }
    return width;
}

static void text_is_cut_to_its_columns(void **state)
{
    (void)state;

    static const struct {
        const char *in;
        size_t max;
        const char *out;
    } cases[] = {{"abc", 3, "abc"},
                 {"abcd", 3, "ab~"},
                 {"日本語", 6, "日本語"},
                 {"日本語", 5, "日本~"},
                 {"日本語", 4, "日~"},
                 {"日本語", 1, "~"},
                 {"a\x1b[2J", 0, "a\\x1b[2J"},
                 {"a\x1b", 3, "a~"},
                 {"\xff\xfe", 0, "\\xff\\xfe"},
                 {"\"\\", 0, "\"\\"},
                 {"", 5, ""},
                 {"e\xcc\x81"
                  "e",
                  2,
                  "e\xcc\x81"
                  "e"},
                 {"\u202ex", 0, "\\u{202e}x"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_buf out;
        hk_buf_init(&out, 1000);
        size_t width = hk_table_safe(&out, hk_str_of(cases[i].in), cases[i].max);
        NOTE_IF(strcmp(hk_buf_cstr(&out), cases[i].out) != 0, "%zu: %s\n", i, hk_buf_cstr(&out));
        assert_true(hk_str_eq(hk_buf_str(&out), hk_str_of(cases[i].out)));
        assert_int_equal(width, shown_width(hk_buf_str(&out)));
        hk_buf_fini(&out);
    }
}

static void anything_stays_within_its_columns_and_is_harmless(void **state)
{
    (void)state;
    struct hk_rng rng;
    hk_rng_seed(&rng, 7, 1);
    for (int i = 0; i < 5000; i++) {
        char bytes[24];
        struct hk_buf out;
        size_t len = (size_t)hk_rng_upto(&rng, sizeof bytes), max = (size_t)hk_rng_upto(&rng, 12);
        for (size_t k = 0; k < len; k++)
            bytes[k] = (char)hk_rng_upto(&rng, 255);
        hk_buf_init(&out, 1000);
        size_t width = hk_table_safe(&out, (struct hk_str){bytes, len}, max);
        assert_true(max == 0 || width <= max);
        assert_int_equal(width, shown_width(hk_buf_str(&out)));
        hk_buf_fini(&out);
    }
}

static void long_lines_are_folded_at_blanks_and_lose_nothing(void **state)
{
    (void)state;

    static const struct {
        const char *in, *first, *rest;
        size_t max;
    } cases[] = {{"short", "short", "", 10},
                 {"", "", "", 10},
                 {"one two three", "one two ", "three", 8},
                 {"one two three", "one two ", "three", 10},
                 {"a verylongword", "a verylo", "ngword", 8},
                 {"請求書です", "請求", "書です", 5},
                 {"\x1b[31m", "\x1b", "[31m", 2}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_str rest = hk_str_of(cases[i].in), first = hk_table_fold(&rest, cases[i].max);
        NOTE_IF(!hk_str_eq(first, hk_str_of(cases[i].first)), "%zu: %.*s\n", i, (int)first.len, first.ptr);
        assert_true(hk_str_eq(first, hk_str_of(cases[i].first)));
        assert_true(hk_str_eq(rest, hk_str_of(cases[i].rest)));
    }
}

static void columns_line_up(void **state)
{
    (void)state;
    static const struct hk_table_column columns[] = {{"NAME", false, 8}, {"N", true, 0}, {"", false, 0}};
    struct hk_table table;
    struct hk_buf out;
    hk_buf_init(&out, 1000);
    hk_table_init(&table, columns, COUNT(columns));
    hk_table_adds(&table, "請求書");
    hk_table_adds(&table, "5");
    hk_table_adds(&table, "");
    hk_table_adds(&table, "a long name");
    hk_table_adds(&table, "1,234");
    hk_table_adds(&table, "x");
    hk_table_write(&table, &out);
    assert_string_equal(hk_buf_cstr(&out), "NAME          N\n"
                                           "請求書        5\n"
                                           "a long ~  1,234  x\n");
    hk_table_fini(&table);
    hk_buf_fini(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_as_wide_as_terminals_show_them),
        cmocka_unit_test(text_is_cut_to_its_columns),
        cmocka_unit_test(anything_stays_within_its_columns_and_is_harmless),
        cmocka_unit_test(long_lines_are_folded_at_blanks_and_lose_nothing),
        cmocka_unit_test(columns_line_up),
    };
    (void)setlocale(LC_ALL, "C");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
