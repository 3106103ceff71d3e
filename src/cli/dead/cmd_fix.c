/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead fix: one jq program repairs the payloads of many letters. Each result is checked as the relay would check it; the older
 * payload is kept; nothing goes out by this (dead requeue, redrive).
 *
 * DESIGN. Letters are read a page at a time, with their payloads, and what the program makes of a page is stored in one transaction. All pages
 * are one act of the audit. A page ends early when its results are large: memory is bounded by the two limits below and one letter. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"
#include "config/payload.h"
#include "core/encoding.h"
#include "exec/clock.h"
#include "jq/jq.h"
#include "payload/canon.h"
#include "payload/diff.h"

enum {
    PAGE = 200, /* letters in a transaction */
    FAILURES_SHOWN = 10,
    DIFF_CONTEXT = 3,
};

#define RESULT_MAX ((size_t)64 << 20)
#define PAGE_BYTES                                                                                           \
    ((size_t)8 << 20) /* of payloads, and of results: the one that reaches it is the page's last */
#define SAMPLES_MAX ((size_t)1 << 20)

/* A letter that the program has changed, until it is stored. */
struct change {
    const struct hk_letter *letter; /* of the page */
    struct hk_buf result;           /* what it was changed to */
    struct hk_buf coded;            /* the same in base64, where the letter is */
};

struct fix {
    const struct hk_cli *cli;
    struct hk_dead dead;
    struct hk_dead_filter filter;
    struct hk_validate *rules;
    struct hk_jq *jq;
    const char *actor, *reason;
    struct change changes[PAGE];
    size_t n_changes, change_bytes;
    int64_t act_id; /* in the audit; 0 = nothing was changed yet */
    bool dry_run, as_json, progress;
    uint64_t samples; /* still to be shown */
    uint64_t matched, changed, unchanged, failed;
    uint64_t maybe;                /* of what was changed may have arrived before */
    struct hk_buf shown, failures; /* for reading, or the items of a JSON array */
    struct hk_json shown_json, failures_json;
    int64_t progress_ms;
};

/* ---- what is told ---- */

static void tell_progress(struct fix *f, bool last)
{
    int64_t now_ms = hk_clock_wall_ms();
    if (!f->progress || (!last && now_ms - f->progress_ms < 200))
        return;
    f->progress_ms = now_ms;
    (void)fprintf(stderr, "\r%" PRIu64 " looked at, %" PRIu64 " changed, %" PRIu64 " failed%s", f->matched,
                  f->changed, f->failed, last ? "\n" : "");
}

static void add_failure(struct fix *f, const struct hk_letter *letter, const char *why)
{
    struct hk_buf masked;
    f->failed++;
    if (f->failed > FAILURES_SHOWN)
        return;
    hk_buf_init(&masked, SAMPLES_MAX);
    struct hk_letter now = *letter;
    now.version = 1;                                            /* it is about the payload of now */
    hk_dead_show_text(&f->dead, &now, hk_str_of(why), &masked); /* jq quotes what it stumbled over */
    if (f->as_json) {
        hk_json_object(&f->failures_json);
        hk_put_id(&f->failures_json, "id", letter->id);
        hk_put_str(&f->failures_json, "message_id", letter->message_id);
        hk_put_str(&f->failures_json, "error", hk_buf_str(&masked));
        hk_json_end(&f->failures_json);
    } else {
        (void)hk_buf_addf(&f->failures, "  %" PRId64 ": ", letter->id);
        (void)hk_table_safe(&f->failures, hk_buf_str(&masked), 300);
        (void)hk_buf_addc(&f->failures, '\n');
    }
    hk_buf_fini(&masked);
}

static void add_sample(struct fix *f, const struct hk_letter *letter, struct hk_str before,
                       struct hk_str after)
{
    struct hk_buf old, new, diff;
    if (f->samples == 0)
        return;
    f->samples--;
    hk_buf_init(&old, RESULT_MAX);
    hk_buf_init(&new, RESULT_MAX);
    hk_buf_init(&diff, SAMPLES_MAX);
    (void)hk_mask_changed(f->dead.masks, letter->event_type, before, before, &old);
    (void)hk_mask_changed(f->dead.masks, letter->event_type, before, after, &new);
    if (hk_buf_status(&old) == HK_OK && hk_buf_status(&new) == HK_OK)
        (void)hk_diff_write(&diff, hk_buf_str(&old), hk_buf_str(&new), DIFF_CONTEXT);
    if (f->as_json) {
        hk_json_object(&f->shown_json);
        hk_put_id(&f->shown_json, "id", letter->id);
        hk_put_str(&f->shown_json, "message_id", letter->message_id);
        hk_put_str(&f->shown_json, "diff", hk_buf_str(&diff));
        hk_json_end(&f->shown_json);
    } else {
        (void)hk_buf_addf(&f->shown, "--- %" PRId64 "\n", letter->id);
        hk_table_safe_lines(&f->shown, hk_buf_str(&diff));
    }
    hk_buf_fini(&old);
    hk_buf_fini(&new);
    hk_buf_fini(&diff);
}

/* ---- one letter ---- */

/* NULL: it may be given to jq. */
static const char *unfit(const struct hk_letter *letter, struct hk_str before, bool decoded)
{
    if (!letter->has_payload)
        return "it has no payload";
    if (!decoded || letter->payload.len < letter->payload_bytes)
        return decoded ? "the payload is larger than 64 MiB"
                       : "the payload is not base64, as its encoding says";
    if (hk_scan_check(before, NULL) != HK_OK)
        return "the payload is not JSON";
    bool known = true;
    if (hk_json_has_twins(before, &known))
        return "an object of it has the same name twice, and jq would drop one of the values: use dead edit";
    if (!known)
        return "memory is short";
    if (hk_scan_has_half_pair(before))
        return "it holds half a surrogate pair (\\uD8xx or \\uDCxx alone), which jq would replace: use dead edit";
    if (hk_scan_has_big_integer(before, NULL))
        return "it holds numbers that jq would round (integers beyond 2^53, or too many digits): use dead edit";
    return NULL;
}

/* A whole number of 2^53 or more: with digits only, or as jq writes the largest, 1.2345678901234567e+20. Its neighbours were rounded to it. */
static bool is_rounded(struct hk_str number)
{
    static const char most[] = "9007199254740992";
    size_t digits = 0, n = sizeof most - 1;
    if (number.ptr[0] == '-')
        number = (struct hk_str){number.ptr + 1, number.len - 1};
    while (digits < number.len && (hk_ascii_isdigit(number.ptr[digits]) || number.ptr[digits] == '.'))
        digits++;
    if (digits < number.len) /* e+20 */
        return digits > n && digits + 1 < number.len && number.ptr[digits + 1] != '-';
    if (memchr(number.ptr, '.', digits) != NULL)
        return false;
    return digits > n || (digits == n && memcmp(number.ptr, most, n) >= 0);
}

/* The input had none: what is there now stood in the program or was calculated. */
static bool has_rounded(struct hk_str result)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, result);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token))
        if (kind == HK_SCAN_NUMBER && is_rounded(token.raw))
            return true;
    return false;
}

/* False: the result was dealt with. */
static bool is_change(struct fix *f, const struct hk_letter *letter, struct hk_str before,
                      struct hk_str after)
{
    struct hk_finding finding;
    if (hk_json_same(before,
                     after)) { /* jq lays out anew what it read: the letter keeps its bytes and its id */
        f->unchanged++;
        return false;
    }
    if (!hk_validate_payload(f->rules, letter->event_type, after, &finding)) {
        char why[sizeof finding.text + 64];
        (void)snprintf(why, sizeof why, "the result is not valid: %s", finding.text);
        add_failure(f, letter, why);
        return false;
    }
    if (has_rounded(after)) {
        add_failure(f, letter, "the result holds integers beyond 2^53, which jq rounds: use dead edit");
        return false;
    }
    return true;
}

/* Keeps what is to be stored; the result becomes the change's. */
static enum hk_code add_change(struct fix *f, const struct hk_letter *letter, struct hk_buf *result,
                               struct hk_err *err)
{
    struct change *c = &f->changes[f->n_changes++];
    c->letter = letter;
    c->result = *result;
    hk_buf_init(result, RESULT_MAX);
    hk_buf_init(&c->coded, (size_t)2 * HK_PAYLOAD_MAX);
    if (hk_encoding_is_base64(letter->encoding))
        (void)hk_buf_add_base64(&c->coded, hk_buf_cstr(&c->result), c->result.len);
    f->change_bytes += c->result.len + c->coded.len;
    enum hk_code rc = hk_buf_status(&c->coded);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "the payload does not fit");
}

/* HK_OK: dealt with, well or badly. Anything else ends the run. */
static enum hk_code fix_one(struct fix *f, const struct hk_letter *letter, struct hk_err *err)
{
    struct hk_buf scratch, result;
    bool decoded = true;
    hk_buf_init(&scratch, HK_PAYLOAD_MAX);
    hk_buf_init(&result, RESULT_MAX);
    f->matched++;
    struct hk_str before = hk_dead_payload(letter, &scratch, &decoded);
    const char *why = unfit(letter, before, decoded);
    enum hk_code rc = why != NULL ? HK_INVALID : hk_jq_apply(f->jq, before, &result, err);
    if (rc == HK_OK && is_change(f, letter, before, hk_buf_str(&result))) {
        rc = add_change(f, letter, &result, err);
    } else if (rc == HK_INVALID || rc == HK_TIMEOUT || rc == HK_TOOBIG) {
        add_failure(f, letter, why != NULL ? why : err->message);
        rc = HK_OK;
    }
    hk_buf_fini(&scratch);
    hk_buf_fini(&result);
    return rc;
}

/* ---- a page of them ---- */

static void drop_changes(struct fix *f)
{
    for (size_t i = 0; i < f->n_changes; i++) {
        hk_buf_fini(&f->changes[i].result);
        hk_buf_fini(&f->changes[i].coded);
    }
    f->n_changes = 0;
    f->change_bytes = 0;
}

static void count_change(struct fix *f, const struct change *c)
{
    struct hk_buf scratch;
    bool decoded = true;
    f->changed++;
    f->maybe += c->letter->possibly_delivered;
    if (f->samples == 0)
        return;
    hk_buf_init(&scratch, HK_PAYLOAD_MAX);
    struct hk_str before = hk_dead_payload(c->letter, &scratch, &decoded);
    if (decoded)
        add_sample(f, c->letter, before, hk_buf_str(&c->result));
    hk_buf_fini(&scratch);
}

static void count_refused(struct fix *f, const struct change *c, const struct hk_letter_done *done)
{
    char why[160];
    if (done->did == HK_DID_NOT_FIND)
        (void)snprintf(why, sizeof why, "it is gone");
    else if (done->sending)
        (void)snprintf(why, sizeof why, "it is being sent by hand: its outcome is not known yet");
    else if (done->status != HK_LETTER_FAILED)
        (void)snprintf(why, sizeof why, "it is not open any more: it is %s",
                       hk_letter_status_name(done->status));
    else
        (void)snprintf(why, sizeof why,
                       "somebody else has edited it meanwhile: it has version %" PRIu32 " now",
                       done->version);
    add_failure(f, c->letter, why);
}

/* One transaction, one row of the audit. */
static enum hk_code store_changes(struct fix *f, struct hk_err *err)
{
    int64_t ids[PAGE];
    struct hk_letter_fix fixes[PAGE];
    const struct hk_letters_done *done = NULL;
    for (size_t i = 0; i < f->n_changes; i++) {
        const struct change *c = &f->changes[i];
        ids[i] = c->letter->id;
        fixes[i] = (struct hk_letter_fix){
            c->letter->version,
            hk_buf_str(hk_encoding_is_base64(c->letter->encoding) ? &c->coded : &c->result)};
    }
    const struct hk_letter_act act = {.ids = ids,
                                      .n = f->n_changes,
                                      .actor = f->actor,
                                      .reason = f->reason,
                                      .filter = hk_buf_cstr(&f->filter.text),
                                      .program = hk_args_value(f->cli, "jq"),
                                      .act_id = f->act_id};
    enum hk_code rc = f->dead.letters->fix(f->dead.op.admin, &act, fixes, &done, err);
    if (rc != HK_OK)
        return rc;
    f->act_id = done->act_id;
    for (size_t i = 0; i < done->n; i++)
        if (done->items[i].did == HK_DID_IT)
            count_change(f, &f->changes[i]);
        else
            count_refused(f, &f->changes[i], &done->items[i]);
    return HK_OK;
}

/* The page's letters live until the call behind the one that stores them. */
static enum hk_code fix_page(struct fix *f, const struct hk_letters *page, int64_t *after_id, bool *more,
                             struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    size_t i = 0;
    for (; i < page->n && rc == HK_OK && f->change_bytes < PAGE_BYTES; i++) {
        if (hk_interrupted())
            return hk_err_set(
                err, HK_CANCELLED,
                "interrupted: the same command goes on with the rest, if the program leaves a payload that "
                "it has changed as it is");
        rc = fix_one(f, &page->items[i], err);
        tell_progress(f, false);
    }
    *after_id = i < page->n ? page->items[i - 1].id : page->last_id;
    *more = i < page->n || page->more;
    if (rc == HK_OK && !f->dry_run && f->n_changes > 0)
        rc = store_changes(f, err);
    for (i = 0; rc == HK_OK && f->dry_run && i < f->n_changes; i++)
        count_change(f, &f->changes[i]);
    return rc;
}

/* Ascending ids: what comes in meanwhile is fixed, too; what was fixed does not come again. */
static enum hk_code fix_all(struct fix *f, struct hk_err *err)
{
    int64_t after_id = 0;
    enum hk_code rc = HK_OK;
    bool more = true;
    hk_interrupt_catch();
    while (rc == HK_OK && more) {
        const struct hk_letters *found = NULL;
        struct hk_letter_page page = {.limit = PAGE,
                                      .oldest_first = true,
                                      .after_id = after_id,
                                      .details = true,
                                      .payload_max = HK_PAYLOAD_MAX,
                                      .bytes_max = PAGE_BYTES};
        rc = f->dead.letters->list(f->dead.op.admin, &f->filter.query, &page, &found, err);
        if (rc == HK_OK)
            rc = fix_page(f, found, &after_id, &more, err);
        drop_changes(f);
    }
    tell_progress(f, true);
    return rc;
}

/* ---- the whole ---- */

static void write_maybe(const struct fix *f, struct hk_buf *out)
{
    char number[HK_OUT_TEXT];
    if (f->maybe > 0)
        (void)hk_buf_addf(out,
                          "%s of the %s may have arrived before: a requeue sends the new payload under a new "
                          "message id, and the receiver may act on both\n",
                          hk_out_count(f->maybe, number),
                          f->dry_run ? "letters to change" : "changed letters");
}

static int report(struct fix *f)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (f->as_json) {
        hk_json_end(&f->shown_json);
        hk_json_end(&f->failures_json);
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_buf_inherit(&out, &f->shown);
        hk_buf_inherit(&out, &f->failures);
        hk_put_bool(&json, "dry_run", f->dry_run);
        hk_put_u64(&json, "matched", f->matched);
        hk_put_u64(&json, "changed", f->changed);
        hk_put_u64(&json, "unchanged", f->unchanged);
        hk_put_u64(&json, "failed", f->failed);
        hk_put_u64(&json, "may_have_arrived", f->maybe);
        hk_put_id(&json, "act_id", f->act_id);
        hk_json_key(&json, "samples");
        hk_json_raw(&json, hk_buf_str(&f->shown));
        hk_json_key(&json, "failures");
        hk_json_raw(&json, hk_buf_str(&f->failures));
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        hk_buf_inherit(&out, &f->shown);
        hk_buf_inherit(&out, &f->failures);
        (void)hk_buf_add(&out, hk_buf_cstr(&f->shown), f->shown.len);
        (void)hk_buf_addf(&out, "%" PRIu64 " %s, %" PRIu64 " unchanged, %" PRIu64 " failed, of %" PRIu64 "\n",
                          f->changed, f->dry_run ? "would be changed" : "changed", f->unchanged, f->failed,
                          f->matched);
        (void)hk_buf_add(&out, hk_buf_cstr(&f->failures), f->failures.len);
        if (f->failed > FAILURES_SHOWN)
            (void)hk_buf_adds(&out, "  …\n");
        write_maybe(f, &out);
        if (f->changed > 0 && !f->dry_run)
            (void)hk_buf_addf(
                &out,
                "the older payloads are kept; nothing was sent: see dead requeue, redrive start\n"
                "act %" PRId64 ": 'hikyaku audit show %" PRId64 "' lists the letters\n",
                f->act_id, f->act_id);
    }
    int code = hk_out_buffer(&out);
    return code == HK_EXIT_OK && f->failed > 0 ? HK_EXIT_FAILURE : code;
}

static int confirm(struct fix *f)
{
    struct hk_count count = {0};
    struct hk_err err = {.message = ""};
    char number[48], question[128];
    if (f->dry_run)
        return HK_EXIT_OK;
    if (hk_dead_count(&f->dead, &f->filter.query, &count, &err) != HK_OK)
        return hk_operate_failed(&err);
    (void)snprintf(question, sizeof question, "Change the payloads of %s dead letters?",
                   hk_operate_count(count, number));
    return hk_dead_confirm(f->cli, question);
}

static int start_jq(struct fix *f)
{
    char path[HK_JQ_PATH_MAX];
    struct hk_err err = {.message = ""};
    uint64_t timeout_ms = HK_JQ_TIMEOUT_MS;
    if (!hk_args_duration(f->cli, "timeout", 1, 600000, &timeout_ms))
        return HK_EXIT_USAGE;
    if (!hk_jq_find(path))
        return hk_out_error(
            HK_EXIT_FAILURE,
            "the helper hikyaku-jq is not there: this build has no jq (libjq, libseccomp), or it was not "
            "installed; HIKYAKU_JQ may name it");
    enum hk_code rc = hk_jq_open(path, hk_args_value(f->cli, "jq"), timeout_ms, &f->jq, &err);
    if (rc == HK_OK)
        return HK_EXIT_OK;
    return rc == HK_INVALID ? hk_out_error(HK_EXIT_USAGE, "--jq: %s", err.message) : hk_out_failure(&err);
}

static int run(struct fix *f)
{
    struct hk_err err = {.message = ""};
    if (hk_config_make_validate(f->dead.op.config, &f->rules, &err) != HK_OK)
        return hk_out_failure(&err);
    int code = start_jq(f);
    if (code == HK_EXIT_OK)
        code = confirm(f);
    if (code != HK_EXIT_OK)
        return code;
    if (f->as_json) {
        hk_json_init(&f->shown_json, &f->shown, false);
        hk_json_array(&f->shown_json);
        hk_json_init(&f->failures_json, &f->failures, false);
        hk_json_array(&f->failures_json);
    }
    if (fix_all(f, &err) != HK_OK) {
        (void)hk_out_error(HK_EXIT_FAILURE,
                           "stopped after %" PRIu64 " letters were %s (act %" PRId64 " of the audit)",
                           f->changed, f->dry_run ? "tried" : "changed", f->act_id);
        return hk_operate_failed(&err);
    }
    return report(f);
}

int hk_cmd_dead_fix(struct hk_cli *cli)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct fix f = {.cli = cli,
                    .actor = hk_settings_actor(cli, actor),
                    .dry_run = hk_args_flag(cli, "dry-run"),
                    .as_json = hk_args_flag(cli, "json"),
                    .progress = isatty(STDERR_FILENO) == 1};
    if (hk_args_value(cli, "jq") == NULL)
        return hk_out_error(HK_EXIT_USAGE, "give the program: --jq '.customer.id = 42'");
    if (!hk_dead_filter_given(cli))
        return hk_out_error(HK_EXIT_USAGE, "say which letters: --filter, --group, --reason-code …");
    f.samples = f.dry_run ? 3 : 0;
    if (!hk_args_u64(cli, "samples", 0, 1000, &f.samples))
        return HK_EXIT_USAGE;
    f.reason = f.dry_run ? "" : hk_operate_reason(cli, reason);
    if (f.reason == NULL)
        return HK_EXIT_USAGE;
    int code = hk_dead_filter(cli, false, &f.filter);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(cli, &f.dead);
    if (code == HK_EXIT_OK) {
        hk_buf_init(&f.shown, HK_OPERATE_OUTPUT_MAX);
        hk_buf_init(&f.failures, SAMPLES_MAX);
        code = run(&f);
        hk_buf_fini(&f.shown);
        hk_buf_fini(&f.failures);
        hk_jq_close(f.jq);
        hk_validate_free(f.rules);
        hk_dead_close(&f.dead);
    }
    hk_dead_filter_free(&f.filter);
    return code;
}
