/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the command line against the command table, and option values with their bounds. Everything that
 * refuses has printed why before it returns. */
#ifndef HK_CLI_ARGS_H
#define HK_CLI_ARGS_H

#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "cli/cli.h"

/* Covers passwords in argv, as far as others on this machine can see it; argv itself then leads to copies. */
void hk_args_hide(int argc, char **argv);
/* Sorts argv into options and words; options may stand anywhere before "--". HK_EXIT_OK or HK_EXIT_USAGE. */
int hk_args_read(struct hk_cli *cli, int argc, char *const *argv);
/* Finds the command that the words name. HK_EXIT_OK or HK_EXIT_USAGE. */
int hk_args_resolve(struct hk_cli *cli);
/* Does the command take these options and that many operands? HK_EXIT_OK or HK_EXIT_USAGE. */
int hk_args_check(struct hk_cli *cli);

/* The table's row, or NULL. `sub` NULL: the group's row, or the command that stands alone. */
const struct hk_cli_command *hk_args_find(const struct hk_cli *cli, const char *name, const char *sub);
/* The same; says what is wrong when there is none. */
const struct hk_cli_command *hk_args_require(const struct hk_cli *cli, const char *name, const char *sub);

/* The last value given for an option; NULL when it was not given. */
const char *hk_args_value(const struct hk_cli *cli, const char *option);
bool hk_args_flag(const struct hk_cli *cli, const char *option);
/* Is it one that every command has, such as --db? */
bool hk_args_is_global(const struct hk_cli *cli, const char *option);

/* Each leaves `*value` (the default) alone when the option was not given; false: refused, exit with 2. */
bool hk_args_u64(const struct hk_cli *cli, const char *option, uint64_t lo, uint64_t hi,
                 uint64_t *value) HK_MUSTCHECK;
bool hk_args_duration(const struct hk_cli *cli, const char *option, uint64_t lo_ms, uint64_t hi_ms,
                      uint64_t *value_ms) HK_MUSTCHECK;
bool hk_args_rate(const struct hk_cli *cli, const char *option, double lo, double hi,
                  double *value_per_s) HK_MUSTCHECK;

/* All that is in it, added to `out`. HK_IO, or the buffer's errors. */
enum hk_code hk_args_read_file(FILE *file, struct hk_buf *out) HK_MUSTCHECK;
#define HK_ARGS_BYTES_MAX ((size_t)64 << 20)
/* TEXT itself, what comes from standard input ("-"), or what is in a file ("@FILE"). False: said why not. */
bool hk_args_bytes(const char *given, struct hk_buf *out) HK_MUSTCHECK;

#endif
