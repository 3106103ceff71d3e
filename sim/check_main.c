/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku-check LOG [DUMP]: judges what a relay and its receivers wrote, and the tables that they left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "checker.h"

enum {
    FILE_MAX = 1 << 30
};

static const char usage[] =
    "usage: hikyaku-check [--slack MS] [--lanes many] LOG [DUMP]\n"
    "Judges an event log (- is standard input) and a dump of the tables at its end; exit 1: something is violated.\n";

static bool read_file(const char *path, struct hk_buf *out)
{
    char chunk[65536];
    size_t n;
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        (void)hk_buf_add(out, chunk, n);
    bool ok = !ferror(file) && hk_buf_status(out) == HK_OK;
    if (file != stdin)
        (void)fclose(file);
    if (!ok)
        (void)fprintf(stderr, "%s: cannot be read\n", path);
    return ok;
}

static bool read_options(int argc, char **argv, struct hk_check_options *options, int *at)
{
    uint64_t slack;
    for (*at = 1; *at + 1 < argc && strncmp(argv[*at], "--", 2) == 0; *at += 2) {
        if (strcmp(argv[*at], "--slack") == 0 &&
            hk_parse_u64(hk_str_of(argv[*at + 1]), &slack, NULL) == HK_OK && slack < INT32_MAX)
            options->slack_ms = (int64_t)slack;
        else if (strcmp(argv[*at], "--lanes") == 0 && strcmp(argv[*at + 1], "many") == 0)
            options->many_lanes = true;
        else
            return false;
    }
    return argc - *at == 1 || argc - *at == 2;
}

static int judge(const struct hk_buf *log, const struct hk_buf *dump, const struct hk_check_options *options)
{
    struct hk_buf report;
    struct hk_check_result result;
    hk_buf_init(&report, FILE_MAX);
    hk_check(hk_buf_str(log), hk_buf_str(dump), options, &report, &result);
    (void)fputs(hk_buf_cstr(&report), stdout);
    (void)printf(
        "%zu messages, %zu sends, %zu receipts, %zu repeats, %zu orphans, %zu stale settles: %zu violations\n",
        result.messages, result.sends, result.receipts, result.repeats, result.orphans, result.stale,
        result.violations);
    hk_buf_fini(&report);
    return result.violations ? 1 : 0;
}

int main(int argc, char **argv)
{
    struct hk_check_options options = {.slack_ms = 0};
    struct hk_buf log, dump;
    int at, rc = 2;
    if (!read_options(argc, argv, &options, &at)) {
        (void)fputs(usage, stderr);
        return 2;
    }
    hk_buf_init(&log, FILE_MAX);
    hk_buf_init(&dump, FILE_MAX);
    if (read_file(argv[at], &log) && (at + 1 == argc || read_file(argv[at + 1], &dump)))
        rc = judge(&log, &dump, &options);
    hk_buf_fini(&log);
    hk_buf_fini(&dump);
    return rc;
}
