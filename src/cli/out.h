/* SPDX-License-Identifier: Apache-2.0 */
/* How the command line speaks: results to stdout, complaints to stderr, numbers and times for reading. */
#ifndef HK_CLI_OUT_H
#define HK_CLI_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/show.h"
#include "cli/cli.h"

/* "hikyaku: message" on one line; control characters from outside are shown as '?'. Returns `code`. */
int hk_out_error(enum hk_exit code, const char *fmt, ...) HK_PRINTF(2, 3);
/* One line to stderr as it is, made safe likewise: for "file:line:col: message". */
void hk_out_complaint(const char *line);
/* A failure of the library, with its own words. */
int hk_out_failure(const struct hk_err *err);
/* Writes a finished buffer to stdout, or says that memory ran out. Frees the buffer. */
int hk_out_buffer(struct hk_buf *buf);
/* Flushes stdout. A result that did not arrive is a failure, whatever `code` was; a reader who left is
 * told nothing. */
int hk_out_close(int code);

/* What the terminal can show. */
bool hk_out_utf8(void);
bool hk_out_color(void);     /* stdout is a terminal and NO_COLOR is not set */
unsigned hk_out_width(void); /* COLUMNS, 40 .. 240; 80 when it is not set */

/* As base/show.h, where they stand. */
#define HK_OUT_TEXT  HK_SHOW_NUMBER
#define hk_out_count hk_show_count

#endif
