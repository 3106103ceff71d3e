/* SPDX-License-Identifier: Apache-2.0 */
/* How the command line speaks: results to stdout, complaints to stderr, numbers and times for reading. */
#ifndef HK_CLI_OUT_H
#define HK_CLI_OUT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
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

#define HK_OUT_TEXT 48
/* For reading, about three digits: "250ms", "1.5s", "34m08s", "9h04m", "2d03h". */
const char *hk_out_duration(uint64_t ms, char out[HK_OUT_TEXT]);
/* A rate: whole from 10 on, else three digits. */
const char *hk_out_rate(double per_s, char out[HK_OUT_TEXT]);
/* 1234567 as "1,234,567", whatever the locale. */
const char *hk_out_count(uint64_t n, char out[HK_OUT_TEXT]);

#endif
