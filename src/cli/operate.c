/* SPDX-License-Identifier: Apache-2.0 */
/* What operators' commands share. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/args.h"
#include "cli/operate.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

int hk_operate_open(const struct hk_cli *cli, struct hk_operate *out)
{
    struct hk_operate op = {.admin = NULL};
    struct hk_err err = {.message = ""};
    int code = hk_settings_config(cli, HK_FOR_ACTING, &op.config);
    if (code != HK_EXIT_OK)
        return code;
    op.url = hk_settings_url(cli, op.config);
    hk_desk_init(&op.desk, op.config, op.url);
    enum hk_code rc = hk_desk_open(&op.desk, &err);
    if (rc != HK_OK) {
        hk_config_free(op.config);
        return hk_out_error(hk_settings_exit(rc), "%s", err.message);
    }
    op.ops = op.desk.ops;
    op.admin = op.desk.admin;
    *out = op;
    return HK_EXIT_OK;
}

void hk_operate_close(struct hk_operate *op)
{
    hk_desk_fini(&op->desk);
    hk_config_free(op->config);
}

int hk_operate_failed(const struct hk_err *err)
{
    enum hk_exit code = hk_settings_exit(err->code);
    if (err->code == HK_NOTFOUND || err->code == HK_CONFLICT)
        code = HK_EXIT_FAILURE;
    else if (err->code == HK_INVALID)
        code = HK_EXIT_USAGE;
    return hk_out_error(code, "%s", err->message);
}

int hk_operate_show(const struct hk_cli *cli, hk_operate_ask *ask)
{
    struct hk_operate op;
    struct hk_err err = {.message = ""};
    struct hk_buf out;
    int code = hk_operate_open(cli, &op);
    if (code != HK_EXIT_OK)
        return code;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (ask(cli, &op, &out, &err) != HK_OK) {
        hk_buf_fini(&out);
        code = hk_operate_failed(&err);
    } else {
        code = hk_out_buffer(&out);
    }
    hk_operate_close(&op);
    return code;
}

const char *hk_operate_reason(const struct hk_cli *cli, char out[HK_REASON_TEXT_MAX])
{
    const char *given = hk_args_value(cli, "reason");
    out[0] = '\0';
    if (given != NULL && strlen(given) >= HK_REASON_TEXT_MAX) {
        (void)hk_out_error(HK_EXIT_USAGE, "the reason is longer than %d bytes", HK_REASON_TEXT_MAX - 1);
        return NULL;
    }
    if (given != NULL) {
        (void)snprintf(out, HK_REASON_TEXT_MAX, "%s", given);
    } else if (isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1) {
        (void)fprintf(stderr, "Reason (it is kept): ");
        if (fgets(out, HK_REASON_TEXT_MAX, stdin) == NULL)
            out[0] = '\0';
        out[strcspn(out, "\n")] = '\0';
    }
    if (hk_str_trim(hk_str_of(out)).len > 0)
        return out;
    (void)hk_out_error(HK_EXIT_USAGE, "why? Give --reason TEXT: it is kept with who did it");
    return NULL;
}

static bool read_all(FILE *file, struct hk_buf *out)
{
    char chunk[16384];
    size_t n = 0;
    while ((n = fread(chunk, 1, sizeof chunk, file)) > 0)
        if (hk_buf_add(out, chunk, n) != HK_OK)
            return false;
    return ferror(file) == 0;
}

bool hk_operate_payload(const char *given, struct hk_buf *out)
{
    if (given[0] != '@' && strcmp(given, "-") != 0)
        return hk_buf_adds(out, given) == HK_OK ||
               hk_out_error(HK_EXIT_FAILURE, "out of memory") == HK_EXIT_OK;
    bool named = given[0] == '@';
    const char *name = named ? given + 1 : "standard input";
    FILE *file = named ? fopen(name, "rb") : stdin;
    if (file == NULL) {
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name, strerror(errno));
        return false;
    }
    errno = 0;
    bool ok = read_all(file, out);
    if (!ok)
        (void)hk_out_error(HK_EXIT_FAILURE, "cannot read %s: %s", name,
                           hk_buf_status(out) != HK_OK ? "it is too large" : strerror(errno));
    if (named)
        (void)fclose(file);
    return ok;
}

/* ---- for reading ---- */

void hk_operate_cut(struct hk_buf *out, uint64_t bytes, const char *where, int64_t id)
{
    char all[HK_SHOW_NUMBER], some[HK_SHOW_NUMBER];
    (void)hk_buf_addf(out,
                      "cut: the payload has %s bytes, and this command reads the first %s; for all of it: "
                      "SELECT payload FROM %s = %" PRId64,
                      hk_show_count(bytes, all), hk_show_count(HK_PAYLOAD_MAX, some), where, id);
}

void hk_operate_fact(struct hk_buf *out, const char *name, struct hk_str value)
{
    if (value.len == 0)
        return;
    (void)hk_buf_addf(out, "%-16s ", name);
    (void)hk_table_safe(out, value, 4000);
    (void)hk_buf_addc(out, '\n');
}

struct hk_str hk_operate_to(struct hk_str destination)
{
    return destination.len > 0 ? destination : hk_str_of("(by route)");
}

const char *hk_operate_count(struct hk_count count, char out[HK_SHOW_NUMBER])
{
    return hk_show_about(count.n, count.about, out);
}

void hk_operate_held(struct hk_buf *out, const struct hk_dest_status *dest, int64_t now_ms)
{
    char when[HK_TIME_TEXT_MAX], ago[64];
    if (dest->paused) {
        (void)hk_buf_addf(out, "paused %s by ", hk_show_ago(dest->since_ms, now_ms, ago));
        (void)hk_buf_add(out, dest->actor.ptr, dest->actor.len);
        (void)hk_buf_adds(out, ": ");
        (void)hk_buf_add(out, dest->reason.ptr, dest->reason.len);
    }
    if (dest->open_until_ms == 0)
        return;
    (void)hk_format_rfc3339(dest->open_until_ms, when);
    (void)hk_buf_addf(out, "%sbreaker: open until %s (%s)", dest->paused ? "; " : "", when,
                      hk_show_ago(dest->open_until_ms, now_ms, ago));
}
