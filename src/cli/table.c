/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that line up in any language. wcwidth is not used: it knows nothing in the locale C, which is where scripts run. */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/out.h"
#include "cli/table.h"

#define TEXT_MAX ((size_t)64 << 20)

struct range {
    uint32_t lo, hi;
};

/* Unicode 15: East Asian Width W and F, by blocks. */
static const struct range wide[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
    {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},
    {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
    {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
    {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
    {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
    {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
    {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},   {0xfe30, 0xfe6f},
    {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x16fe0, 0x18cff}, {0x18d00, 0x18d08}, {0x1aff0, 0x1b2fb},
    {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf}, {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f320},
    {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393}, {0x1f3a0, 0x1f3ca}, {0x1f3cf, 0x1f3d3},
    {0x1f3e0, 0x1f3f0}, {0x1f3f4, 0x1f3f4}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440}, {0x1f442, 0x1f4fc},
    {0x1f4ff, 0x1f53d}, {0x1f54b, 0x1f54e}, {0x1f550, 0x1f567}, {0x1f57a, 0x1f57a}, {0x1f595, 0x1f596},
    {0x1f5a4, 0x1f5a4}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5}, {0x1f6cc, 0x1f6cc}, {0x1f6d0, 0x1f6d2},
    {0x1f6d5, 0x1f6d7}, {0x1f6dc, 0x1f6df}, {0x1f6eb, 0x1f6ec}, {0x1f6f4, 0x1f6fc}, {0x1f7e0, 0x1f7eb},
    {0x1f7f0, 0x1f7f0}, {0x1f90c, 0x1f93a}, {0x1f93c, 0x1f945}, {0x1f947, 0x1f9ff}, {0x1fa70, 0x1faff},
    {0x20000, 0x3fffd},
};

/* Combining marks of the scripts that are met most, variation selectors, and what joins others. */
static const struct range narrowest[] = {
    {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x610, 0x61a},   {0x64b, 0x65f},
    {0x6d6, 0x6dc},   {0x900, 0x902},   {0x93a, 0x93a},   {0x93c, 0x93c},   {0x941, 0x948},
    {0x94d, 0x94d},   {0xe31, 0xe31},   {0xe34, 0xe3a},   {0xe47, 0xe4e},   {0x1160, 0x11ff},
    {0x1ab0, 0x1ace}, {0x1dc0, 0x1dff}, {0x20d0, 0x20f0}, {0x302a, 0x302d}, {0x3099, 0x309a},
    {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f},
};

static bool is_in(const struct range *ranges, size_t n, uint32_t c)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (c > ranges[mid].hi)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && c >= ranges[lo].lo;
}

unsigned hk_char_width(uint32_t c)
{
    if (c < 0x300)
        return 1;
    if (is_in(narrowest, sizeof narrowest / sizeof narrowest[0], c))
        return 0;
    return is_in(wide, sizeof wide / sizeof wide[0], c) ? 2 : 1;
}

/* The character at the start of `s`, or its harmless spelling, and how wide that is. */
static size_t spell(struct hk_str s, char out[HK_SHOW_MAX], size_t *out_len, size_t *out_width)
{
    uint32_t c;
    size_t taken = hk_utf8_next(s, &c);
    if (c == '"' || c == '\\') {
        out[0] = (char)c;
        *out_len = *out_width = 1;
        return taken;
    }
    char quoted[HK_SHOW_MAX];
    hk_show((struct hk_str){s.ptr, taken}, quoted);
    *out_len = strlen(quoted) - 2; /* without the quotes */
    memcpy(out, quoted + 1, *out_len);
    bool itself = *out_len == taken && memcmp(out, s.ptr, taken) == 0;
    *out_width = itself ? hk_char_width(c) : *out_len;
    return taken;
}

struct hk_str hk_table_fold(struct hk_str *rest, size_t max_width)
{
    char text[HK_SHOW_MAX];
    struct hk_str line = {rest->ptr, 0};
    size_t width = 0, blank = 0;
    while (line.len < rest->len) {
        size_t len = 0, columns = 0;
        size_t taken =
            spell((struct hk_str){rest->ptr + line.len, rest->len - line.len}, text, &len, &columns);
        if (width + columns > max_width && line.len > 0)
            break;
        line.len += taken;
        width += columns;
        if (rest->ptr[line.len - 1] == ' ' && width >= max_width / 2)
            blank = line.len;
    }
    if (line.len < rest->len && blank > 0 && rest->ptr[line.len] != ' ')
        line.len = blank;
    rest->ptr += line.len;
    rest->len -= line.len;
    return line;
}

size_t hk_table_safe(struct hk_buf *out, struct hk_str s, size_t max_width)
{
    const char *dots = hk_out_utf8() ? "\xe2\x80\xa6" : "~";
    size_t width = 0, cut_len = 0, cut_width = 0, start = out->len;
    bool cut = false;
    while (s.len > 0 && !cut) {
        char piece[HK_SHOW_MAX];
        size_t len, columns;
        size_t taken = spell(s, piece, &len, &columns);
        if (max_width && width + 1 <= max_width) { /* here the dots would still fit */
            cut_len = out->len - start;
            cut_width = width;
        }
        cut = max_width && width + columns > max_width;
        if (cut)
            break;
        (void)hk_buf_add(out, piece, len);
        width += columns;
        s = (struct hk_str){s.ptr + taken, s.len - taken};
    }
    if (!cut || hk_buf_status(out) != HK_OK)
        return width;
    out->len = start + cut_len;
    (void)hk_buf_adds(out, dots);
    return cut_width + 1;
}

void hk_table_safe_lines(struct hk_buf *out, struct hk_str s)
{
    while (s.len > 0) {
        char piece[HK_SHOW_MAX];
        size_t len = 1, columns;
        size_t taken = 1;
        if (s.ptr[0] == '\n' || s.ptr[0] == '\t')
            piece[0] = s.ptr[0];
        else
            taken = spell(s, piece, &len, &columns);
        (void)hk_buf_add(out, piece, len);
        s = (struct hk_str){s.ptr + taken, s.len - taken};
    }
}

/* ---- tables ---- */

void hk_table_init(struct hk_table *table, const struct hk_table_column *columns, size_t n_columns)
{
    *table = (struct hk_table){.columns = columns, .n_columns = n_columns};
    hk_buf_init(&table->text, TEXT_MAX);
    for (size_t i = 0; i < n_columns; i++)
        table->widths[i] = strlen(columns[i].title);
}

void hk_table_fini(struct hk_table *table)
{
    hk_buf_fini(&table->text);
}

void hk_table_add(struct hk_table *table, struct hk_str cell)
{
    size_t column = table->n_cells++ % table->n_columns;
    size_t width = hk_table_safe(&table->text, cell, table->columns[column].max_width);
    (void)hk_buf_addc(&table->text, '\0');
    if (width > table->widths[column])
        table->widths[column] = width;
}

void hk_table_adds(struct hk_table *table, const char *cell)
{
    hk_table_add(table, hk_str_of(cell));
}

void hk_table_add_buf(struct hk_table *table, const struct hk_buf *cell)
{
    hk_buf_inherit(&table->text, cell);
    hk_table_add(table, hk_buf_str(cell));
}

static size_t width_of(const char *cell)
{
    struct hk_str s = hk_str_of(cell);
    size_t width = 0;
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        width += c == HK_UTF8_BAD ? 1 : hk_char_width(c);
        s = (struct hk_str){s.ptr + taken, s.len - taken};
    }
    return width;
}

static void pad(struct hk_buf *out, size_t n)
{
    while (n-- > 0)
        (void)hk_buf_addc(out, ' ');
}

static void write_cell(const struct hk_table *table, size_t column, const char *cell, struct hk_buf *out)
{
    size_t width = width_of(cell);
    size_t gap = table->widths[column] > width ? table->widths[column] - width : 0;
    bool last = column + 1 == table->n_columns;
    if (table->columns[column].right)
        pad(out, gap);
    (void)hk_buf_adds(out, cell);
    if (!table->columns[column].right && !last)
        pad(out, gap);
    if (!last) {
        (void)hk_buf_adds(out, "  ");
        return;
    }
    while (hk_buf_status(out) == HK_OK && out->len > 0 && out->data[out->len - 1] == ' ')
        out->len--;
    (void)hk_buf_addc(out, '\n');
}

void hk_table_write(const struct hk_table *table, struct hk_buf *out)
{
    if (hk_buf_status(&table->text) != HK_OK) {
        out->status = hk_buf_status(&table->text);
        return;
    }
    if (table->n_columns == 0)
        return;
    for (size_t i = 0; i < table->n_columns; i++)
        write_cell(table, i, table->columns[i].title, out);
    const char *cell = hk_buf_cstr(&table->text);
    for (size_t i = 0; i < table->n_cells; i++) {
        write_cell(table, i % table->n_columns, cell, out);
        cell += strlen(cell) + 1;
    }
}
