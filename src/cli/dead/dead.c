/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on dead letters share. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "config/payload.h"
#include "exec/clock.h"

enum {
    SEEN_EVERY_MS = 200,
    SEEN_WIDTH = 40,
};

int hk_dead_open(const struct hk_cli *cli, struct hk_dead *out)
{
    struct hk_dead dead = {.revealed = hk_args_flag(cli, "reveal")};
    struct hk_err err = {.message = ""};
    const char *reason = hk_args_value(cli, "reason");
    if (dead.revealed && (reason == NULL || hk_str_trim(hk_str_of(reason)).len == 0))
        return hk_out_error(HK_EXIT_USAGE,
                            "--reveal shows what is masked: give --reason TEXT, it is recorded");
    int code = hk_operate_open(cli, &dead.op);
    if (code != HK_EXIT_OK)
        return code;
    dead.letters = hk_store_letters_by_url(dead.op.url, &err);
    enum hk_code rc = dead.letters != NULL ? HK_OK : err.code;
    if (rc == HK_OK && !dead.revealed)
        rc = hk_config_make_masks(dead.op.config, &dead.masks, &err);
    if (rc == HK_OK && dead.masks != NULL && (dead.aside = hk_mem_zalloc(1, sizeof *dead.aside)) == NULL)
        rc = hk_err_set(&err, HK_NOMEM, "out of memory");
    if (rc != HK_OK) {
        hk_masks_free(dead.masks);
        hk_operate_close(&dead.op);
        return hk_out_error(hk_settings_exit(rc), "%s", err.message);
    }
    if (dead.aside != NULL)
        hk_desk_init(dead.aside, dead.op.config, dead.op.url);
    *out = dead;
    return HK_EXIT_OK;
}

void hk_dead_close(struct hk_dead *dead)
{
    if (dead->aside != NULL)
        hk_desk_fini(dead->aside);
    hk_mem_free(dead->aside);
    hk_masks_free(dead->masks);
    hk_pool_fini(&dead->mem);
    hk_operate_close(&dead->op);
}

/* ---- which letters ---- */

bool hk_dead_ids(const struct hk_cli *cli, enum hk_requeue_id *out)
{
    bool same = hk_args_flag(cli, "same-id"), new = hk_args_flag(cli, "new-id");
    if (same && new) {
        (void)hk_out_error(HK_EXIT_USAGE, "--same-id and --new-id exclude each other");
        return false;
    }
    *out = same ? HK_REQUEUE_SAME : new ? HK_REQUEUE_NEW : HK_REQUEUE_AUTO;
    return true;
}

static struct hk_letter_words words_of(const struct hk_cli *cli)
{
    return (struct hk_letter_words){.filter = hk_args_value(cli, "filter"),
                                    .destination = hk_args_value(cli, "destination"),
                                    .event_type = hk_args_value(cli, "event-type"),
                                    .reason_code = hk_args_value(cli, "reason-code"),
                                    .failure_class = hk_args_value(cli, "class"),
                                    .status = hk_args_value(cli, "status"),
                                    .group = hk_args_value(cli, "group"),
                                    .older = hk_args_value(cli, "older"),
                                    .newer = hk_args_value(cli, "newer"),
                                    .text = hk_args_value(cli, "text")};
}

bool hk_dead_filter_given(const struct hk_cli *cli)
{
    struct hk_letter_words words = words_of(cli);
    return hk_letter_words_given(&words);
}

bool hk_dead_filter_beside_ids(const struct hk_cli *cli)
{
    struct hk_letter_words words = words_of(cli);
    return hk_letter_words_beside_ids(&words);
}

int hk_dead_filter(const struct hk_cli *cli, bool any_status, struct hk_dead_filter *out)
{
    struct hk_letter_words words = words_of(cli);
    struct hk_desk desk = {.config = NULL};
    struct hk_pool mem = {.blocks = NULL};
    struct hk_letter_filter filter;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_letter_filter(&desk, &words, any_status, &mem, &filter, &err);
    if (rc == HK_OK) {
        *out = (struct hk_dead_filter){.parsed = filter.parsed, .query = filter.query};
        hk_buf_init(&out->text, (size_t)4 * HK_FILTER_TEXT_MAX);
        (void)hk_buf_adds(&out->text, filter.text);
    }
    hk_pool_fini(&mem);
    if (rc != HK_OK)
        return hk_out_error(rc == HK_NOMEM ? HK_EXIT_FAILURE : HK_EXIT_USAGE, "--filter%s", err.message);
    return HK_EXIT_OK;
}

void hk_dead_filter_free(struct hk_dead_filter *filter)
{
    hk_buf_fini(&filter->text);
    hk_filter_free(filter->parsed);
    filter->parsed = NULL;
}

static void tell_seen(void *arg, int64_t id)
{
    struct hk_dead_seen *seen = arg;
    int64_t now_ms = hk_clock_wall_ms();
    if (now_ms - seen->told_ms < SEEN_EVERY_MS)
        return;
    char number[HK_OUT_TEXT];
    seen->told_ms = now_ms;
    (void)fprintf(stderr, "\rlooking … letter %s ", hk_out_count(id > 0 ? (uint64_t)id : 0, number));
}

void hk_dead_seen_begin(struct hk_dead_seen *seen, struct hk_letter_query *query)
{
    *seen = (struct hk_dead_seen){.told_ms = 0};
    if (isatty(STDERR_FILENO) != 1)
        return;
    query->seen = tell_seen;
    query->seen_arg = seen;
}

void hk_dead_seen_end(struct hk_dead_seen *seen)
{
    if (seen->told_ms != 0)
        (void)fprintf(stderr, "\r%*s\r", SEEN_WIDTH, "");
    seen->told_ms = 0;
}

enum hk_code hk_dead_count(const struct hk_dead *dead, const struct hk_letter_query *query,
                           struct hk_count *out, struct hk_err *err)
{
    struct hk_letter_query told = *query;
    struct hk_dead_seen seen;
    hk_dead_seen_begin(&seen, &told);
    enum hk_code rc = dead->letters->count(dead->op.admin, &told, out, err);
    hk_dead_seen_end(&seen);
    return rc;
}

bool hk_dead_is_paused(const struct hk_names *paused, struct hk_str destination)
{
    for (size_t i = 0; i < paused->n; i++)
        if (hk_str_eq(paused->items[i], destination))
            return true;
    return false;
}

int hk_dead_find(const struct hk_cli *cli, const struct hk_dead *dead, const char *operand, int64_t *out_id)
{
    struct hk_desk desk = dead->op.desk;
    struct hk_err err = {.message = ""};
    enum hk_code rc = hk_letter_find(&desk, operand, hk_args_value(cli, "destination"), out_id, &err);
    return rc == HK_OK ? HK_EXIT_OK : hk_operate_failed(&err);
}

int hk_dead_find_act(struct hk_dead *dead, int64_t id, struct hk_audit_row *out)
{
    struct hk_err err = {.message = ""};
    return hk_act_find(&dead->op.desk, id, &dead->mem, out, &err) == HK_OK ? HK_EXIT_OK
                                                                           : hk_operate_failed(&err);
}

/* ---- showing ---- */

int hk_dead_reveal(const struct hk_cli *cli, const struct hk_dead *dead, const int64_t *ids, size_t n)
{
    char actor[HK_ACTOR_MAX];
    struct hk_desk desk = dead->op.desk;
    struct hk_err err = {.message = ""};
    const struct hk_caller caller = {.actor = hk_settings_actor(cli, actor),
                                     .reason = hk_args_value(cli, "reason"),
                                     .reveal = dead->revealed};
    return hk_letters_reveal(&desk, &caller, ids, n, &err) == HK_OK ? HK_EXIT_OK : hk_operate_failed(&err);
}

struct hk_str hk_dead_payload(const struct hk_letter *letter, struct hk_buf *scratch, bool *out_ok)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_str plain;
    enum hk_code rc = hk_letter_plain(letter, &mem, &plain);
    if (rc == HK_OK && mem.blocks != NULL && (rc = hk_buf_add(scratch, plain.ptr, plain.len)) == HK_OK)
        plain = hk_buf_str(scratch);
    if (rc == HK_NOMEM)
        scratch->status = HK_NOMEM; /* it may well be base64: nobody knows what is in it */
    hk_pool_fini(&mem);
    *out_ok = rc == HK_OK;
    return *out_ok ? plain : (struct hk_str){"", 0};
}

static struct hk_letter_view view_of(const struct hk_dead *dead)
{
    return (struct hk_letter_view){dead->aside, dead->masks, dead->history};
}

void hk_dead_show_payload(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_buf *out)
{
    struct hk_letter_view view = view_of(dead);
    hk_letter_show_payload(&view, letter, out);
}

void hk_dead_show_headers(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str headers,
                          struct hk_buf *out)
{
    struct hk_letter_view view = view_of(dead);
    hk_letter_show_headers(&view, letter, headers, out);
}

void hk_dead_show_text(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                       struct hk_buf *out)
{
    struct hk_letter_view view = view_of(dead);
    hk_letter_show_text(&view, letter, text, out);
}

const char *hk_dead_status(const struct hk_letter *letter)
{
    return letter->status == HK_LETTER_RETRYING && letter->sending_ms != 0
               ? "retrying (sent by hand, outcome unknown)"
               : hk_letter_status_name(letter->status);
}

int hk_dead_too_large(const struct hk_letter *letter, const char *done)
{
    char has[HK_OUT_TEXT], most[HK_OUT_TEXT];
    return hk_out_error(
        HK_EXIT_FAILURE, "letter %" PRId64 " cannot be %s: its payload has %s bytes, and at most %s can",
        letter->id, done, hk_out_count(letter->payload_bytes, has), hk_out_count(HK_PAYLOAD_MAX, most));
}

void hk_dead_maybe(struct hk_buf *out, uint64_t n)
{
    char number[HK_OUT_TEXT];
    if (n > 0)
        (void)hk_buf_addf(out, ", %s may have arrived", hk_out_count(n, number));
}

/* ---- asking ---- */

int hk_dead_confirm(const struct hk_cli *cli, const char *question)
{
    char answer[16] = "";
    if (hk_args_flag(cli, "yes"))
        return HK_EXIT_OK;
    if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
        return hk_out_error(HK_EXIT_USAGE, "%s Give --yes to go on, or --dry-run to see", question);
    (void)fprintf(stderr, "%s [y/N] ", question);
    if (fgets(answer, sizeof answer, stdin) != NULL && (answer[0] == 'y' || answer[0] == 'Y'))
        return HK_EXIT_OK;
    return hk_out_error(HK_EXIT_FAILURE, "nothing was changed");
}
