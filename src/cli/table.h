/* SPDX-License-Identifier: Apache-2.0 */
/* Text from outside on a terminal: made safe, cut and lined up by how wide it shows, which for Japanese is not its bytes. */
#ifndef HK_CLI_TABLE_H
#define HK_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Columns that a character takes: 0 for combining ones, 2 for wide ones. Whatever the locale. */
unsigned hk_char_width(uint32_t c);
/* Adds `s` with nothing in it that moves a cursor: controls, direction marks and bytes that are not UTF-8 as \xNN or
 * \u{NNNN}. At most `max_width` columns, the last of them "…" when it was cut. Returns the columns. */
size_t hk_table_safe(struct hk_buf *out, struct hk_str s, size_t max_width);
/* Cuts off, and returns, as much of `rest` as hk_table_safe shows in `max_width` columns (at least one character), up to a blank
 * if there is one in its second half. */
struct hk_str hk_table_fold(struct hk_str *rest, size_t max_width);
/* hk_table_safe for text of several lines: line ends and tabs stay. */
void hk_table_safe_lines(struct hk_buf *out, struct hk_str s);

#define HK_TABLE_COLUMNS 10

struct hk_table_column {
    const char *title;
    bool right;       /* aligned */
    size_t max_width; /* 0 = no limit */
};

struct hk_table {
    const struct hk_table_column *columns;
    size_t n_columns;
    struct hk_buf text; /* all cells, each terminated */
    size_t n_cells;
    size_t widths[HK_TABLE_COLUMNS];
};

void hk_table_init(struct hk_table *table, const struct hk_table_column *columns, size_t n_columns);
void hk_table_fini(struct hk_table *table);
/* Cells come row by row. */
void hk_table_add(struct hk_table *table, struct hk_str cell);
void hk_table_adds(struct hk_table *table, const char *cell);
/* A cell that was put together in `cell`: an error there is the table's, so that no cell is silently empty or cut. */
void hk_table_add_buf(struct hk_table *table, const struct hk_buf *cell);
/* With a line of titles; errors are `out`'s. */
void hk_table_write(const struct hk_table *table, struct hk_buf *out);

#endif
