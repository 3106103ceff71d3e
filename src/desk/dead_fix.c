/* SPDX-License-Identifier: Apache-2.0 */
/* One jq program repairs the payloads of many dead letters. Each result is checked as the relay would check it; the older payload is
 * kept; nothing goes out by this (dead requeue, redrive).
 *
 * DESIGN. Letters are read a page at a time, with their payloads, and what the program makes of a page is stored in one transaction.
 * All pages are one act of the audit. A page ends early when its results are large: memory is bounded by the two limits below and
 * one letter. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "config/payload.h"
#include "core/encoding.h"
#include "desk/dead.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "jq/jq.h"
#include "payload/canon.h"
#include "payload/codec.h"
#include "payload/diff.h"
#include "payload/scan.h"

enum {
    PAGE = 200, /* letters in a transaction */
    DIFF_CONTEXT = 3,
    SAMPLES_AUTO = 2000, /* none were asked for: more than anybody can */
    SAMPLES_DRY = 3,
    SAMPLES_MOST = 1000
};

#define RESULT_MAX ((size_t)64 << 20)
#define PAGE_BYTES                                                                                           \
    ((size_t)8 << 20) /* of payloads, and of results: the one that reaches it is the page's last */
#define SAMPLE_MAX     ((size_t)1 << 20)
#define JOB_SAMPLE_MAX ((size_t)16 << 10) /* of a job the row is written with every batch */

enum {
    JOB_SAMPLES = 20
};

/* A letter that the program has changed, until it is stored. */
struct change {
    const struct hk_letter *letter; /* of the page */
    struct hk_str before;
    struct hk_buf result; /* what it was changed to */
    struct hk_str stored; /* the same, as the letter is encoded */
};

struct fix {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_dead_fix_ask *ask;
    struct hk_pool *mem;
    struct hk_pool page_mem; /* of one page */
    struct hk_letter_filter filter;
    struct hk_letter_view view;
    struct hk_validate *rules;
    struct hk_jq *jq;
    struct change changes[PAGE];
    size_t n_changes, change_bytes;
    uint64_t samples;       /* still to be shown */
    struct hk_job_run *run; /* of a batch; NULL: it is no job */
    struct hk_dead_fixed o;
};

/* ---- results ---- */

static struct hk_str keep_text(struct fix *f, const struct hk_buf *text)
{
    const char *copy = hk_buf_status(text) == HK_OK ? hk_pool_copy_str(f->mem, hk_buf_str(text)) : NULL;
    return copy ? (struct hk_str){copy, text->len} : hk_str_of("(out of memory)");
}

static struct hk_str keep_id(struct fix *f, struct hk_str id)
{
    const char *copy = hk_pool_copy_str(f->mem, id);
    return copy ? (struct hk_str){copy, id.len} : (struct hk_str){"", 0};
}

/* jq quotes what it stumbled over, in brackets, and cuts it off ("object ({"card":"41...) and number"): a mask does not know a value
 * by its first characters. */
static void hide_cut_quotes(char *text)
{
    char *open = NULL;
    for (char *p = text; *p; p++) {
        if (*p == '(')
            open = open ? open : p;
        if (!open || strncmp(p, "...)", 4) != 0)
            continue;
        memmove(open + 4, p + 3, strlen(p + 3) + 1);
        memcpy(open, "(***", 4);
        p = open + 4;
        open = NULL;
    }
}

static void add_failure(struct fix *f, const struct hk_letter *letter, const char *why)
{
    struct hk_buf masked;
    struct hk_letter now = *letter;
    if (f->o.failed++ >= HK_DEAD_FAILURES)
        return;
    now.version = 1; /* it is about the payload of now */
    hk_buf_init(&masked, SAMPLE_MAX);
    char text[HK_ERR_MESSAGE_MAX];
    (void)snprintf(text, sizeof text, "%s", why);
    if (hk_masks_fit(f->view.masks, letter->event_type))
        hide_cut_quotes(text);
    hk_letter_show_text(&f->view, &now, hk_str_of(text), &masked);
    f->o.failures[f->o.n_failures++] = (struct hk_dead_told){
        .id = letter->id, .message_id = keep_id(f, letter->message_id), .text = keep_text(f, &masked)};
    hk_buf_fini(&masked);
}

static void add_sample(struct fix *f, const struct change *c)
{
    struct hk_buf old, new, diff;
    struct hk_str after = hk_buf_str(&c->result), type = c->letter->event_type;
    if (f->samples == 0)
        return;
    f->samples--;
    if (hk_encoding_is_sealed(c->letter->encoding)) {
        f->o.samples[f->o.n_samples++] =
            (struct hk_dead_told){.id = c->letter->id,
                                  .message_id = keep_id(f, c->letter->message_id),
                                  .text = hk_str_of("(sealed)\n")};
        return;
    }
    hk_buf_init(&old, RESULT_MAX);
    hk_buf_init(&new, RESULT_MAX);
    hk_buf_init(&diff, f->run ? JOB_SAMPLE_MAX : SAMPLE_MAX);
    (void)hk_mask_changed(f->view.masks, type, c->before, c->before, &old);
    (void)hk_mask_changed(f->view.masks, type, c->before, after, &new);
    if (hk_buf_status(&old) == HK_OK && hk_buf_status(&new) == HK_OK)
        (void)hk_diff_write(&diff, hk_buf_str(&old), hk_buf_str(&new), DIFF_CONTEXT);
    f->o.samples[f->o.n_samples++] = (struct hk_dead_told){
        .id = c->letter->id, .message_id = keep_id(f, c->letter->message_id), .text = keep_text(f, &diff)};
    hk_buf_fini(&old);
    hk_buf_fini(&new);
    hk_buf_fini(&diff);
}

/* ---- one letter ---- */

/* Codes of hk_letter_plain, or HK_CONFLICT: it is sealed, and cannot be opened; `why` says why. */
static enum hk_code read_payload(struct fix *f, const struct hk_letter *letter, struct hk_str *out,
                                 struct hk_err *why)
{
    bool whole = letter->payload.len >= letter->payload_bytes;
    if (!hk_encoding_is_sealed(letter->encoding) || !letter->has_payload || !whole || !f->caller->may_reveal)
        return hk_letter_plain(letter, &f->page_mem, out);
    return hk_letter_open(f->desk, letter, true, &f->page_mem, out, why);
}

/* NULL: it may be given to jq. */
static const char *unfit(const struct hk_letter *letter, struct hk_str before, enum hk_code decoded,
                         const struct hk_err *why)
{
    if (!letter->has_payload)
        return "it has no payload";
    if ((decoded == HK_OK || decoded == HK_DENIED) && letter->payload.len < letter->payload_bytes)
        return "the payload is larger than 64 MiB";
    if (decoded == HK_DENIED)
        return "the payload is sealed: to fix it takes the right to reveal";
    if (decoded == HK_CONFLICT)
        return why->message;
    if (decoded != HK_OK)
        return decoded == HK_NOMEM ? "memory is short" : "the payload is not base64, as its encoding says";
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

/* The input had no such number: the program contained or calculated it. */
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
        f->o.unchanged++;
        return false;
    }
    if (!hk_validate_payload(f->rules, letter->event_type, after, &finding)) {
        char why[sizeof finding.text + 64];
        if (hk_encoding_is_sealed(letter->encoding)) /* the finding may quote it */
            (void)snprintf(finding.text, sizeof finding.text, "dead edit --reveal --dry-run says why");
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
static enum hk_code add_change(struct fix *f, const struct hk_letter *letter, struct hk_str before,
                               struct hk_buf *result, struct hk_err *err)
{
    struct change *c = &f->changes[f->n_changes++];
    *c = (struct change){.letter = letter, .before = before, .result = *result};
    hk_buf_init(result, RESULT_MAX);
    struct hk_str plain = hk_buf_str(&c->result);
    const struct hk_codec_of of = {
        .keys = f->desk->config->keys, .encoding = letter->encoding, .message_id = letter->message_id};
    struct hk_err why = {.message = "it does not fit"};
    enum hk_code rc = hk_codec_seal(&of, plain, &f->page_mem, &c->stored, &why);
    f->change_bytes += plain.len + (c->stored.ptr != plain.ptr ? c->stored.len : 0);
    return rc == HK_OK
               ? HK_OK
               : hk_err_set(err, rc == HK_UNAVAILABLE ? HK_CONFLICT : rc,
                            "the payload of letter %" PRId64 " is not changed: %s", letter->id, why.message);
}

/* HK_OK: dealt with, well or badly. Anything else ends the run. */
static enum hk_code fix_one(struct fix *f, const struct hk_letter *letter, struct hk_err *err)
{
    struct hk_buf result;
    struct hk_str before = {"", 0};
    struct hk_err closed = {.message = ""};
    hk_buf_init(&result, RESULT_MAX);
    f->o.matched++;
    enum hk_code decoded = read_payload(f, letter, &before, &closed);
    const char *why =
        hk_letter_lies_open(f->desk, letter) ? HK_LIES_OPEN : unfit(letter, before, decoded, &closed);
    enum hk_code rc = why ? HK_INVALID : hk_jq_apply(f->jq, before, &result, err);
    if (rc == HK_OK && is_change(f, letter, before, hk_buf_str(&result))) {
        rc = add_change(f, letter, before, &result, err);
    } else if (rc == HK_INVALID || rc == HK_TIMEOUT || rc == HK_TOOBIG) {
        bool hides = hk_encoding_is_sealed(letter->encoding); /* jq quotes the payload */
        add_failure(f, letter,
                    why     ? why
                    : hides ? "the program failed on it, and what jq said is hidden: the payload is sealed"
                            : err->message);
        rc = HK_OK;
    }
    hk_buf_fini(&result);
    return rc;
}

/* ---- a page of them ---- */

static void drop_changes(struct fix *f)
{
    for (size_t i = 0; i < f->n_changes; i++)
        hk_buf_fini(&f->changes[i].result);
    f->n_changes = 0;
    f->change_bytes = 0;
    hk_pool_wipe(&f->page_mem);
}

static void count_change(struct fix *f, const struct change *c)
{
    f->o.changed++;
    f->o.maybe += c->letter->possibly_delivered;
    add_sample(f, c);
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
        ids[i] = f->changes[i].letter->id;
        fixes[i] = (struct hk_letter_fix){f->changes[i].letter->version, f->changes[i].stored};
    }
    const struct hk_letter_act act = {.ids = ids,
                                      .n = f->n_changes,
                                      .actor = f->caller->actor,
                                      .reason = f->caller->reason,
                                      .filter = f->filter.text,
                                      .program = f->ask->jq,
                                      .act_id = f->o.act_id};
    enum hk_code rc = f->run ? hk_job_hold(f->run, err) : HK_OK;
    if (rc == HK_OK)
        rc = f->desk->letters->fix(f->desk->admin, &act, fixes, &done, err);
    if (rc != HK_OK)
        return rc;
    f->o.act_id = done->act_id;
    for (size_t i = 0; i < done->n; i++)
        if (done->items[i].did == HK_DID_IT)
            count_change(f, &f->changes[i]);
        else
            count_refused(f, &f->changes[i], &done->items[i]);
    return HK_OK;
}

static void tell(const struct fix *f)
{
    hk_caller_tell(f->caller, &(struct hk_progress){
                                  .done = f->o.matched, .changed = f->o.changed, .failed = f->o.failed});
}

/* The page's letters live until the call behind the one that stores them. */
static enum hk_code fix_page(struct fix *f, const struct hk_letters *page, int64_t *after_id, bool *more,
                             struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    size_t i = 0;
    for (; i < page->n && rc == HK_OK && f->change_bytes < PAGE_BYTES; i++) {
        if (hk_caller_stops(f->caller))
            return hk_err_set(
                err, HK_CANCELLED,
                "interrupted: run the same command again for the rest, if the program leaves a payload that "
                "it has changed as it is");
        rc = fix_one(f, &page->items[i], err);
        tell(f);
    }
    *after_id = i < page->n ? page->items[i - 1].id : page->last_id;
    *more = i < page->n || page->more;
    if (rc == HK_OK && !f->o.dry_run && f->n_changes > 0)
        rc = store_changes(f, err);
    for (i = 0; rc == HK_OK && f->o.dry_run && i < f->n_changes; i++)
        count_change(f, &f->changes[i]);
    return rc;
}

static enum hk_code fix_next(struct fix *f, int64_t *after_id, bool *more, struct hk_err *err)
{
    const struct hk_letters *found = NULL;
    struct hk_letter_page page = {.limit = PAGE,
                                  .oldest_first = true,
                                  .after_id = *after_id,
                                  .details = true,
                                  .payload_max = HK_LETTER_BYTES,
                                  .bytes_max = PAGE_BYTES};
    enum hk_code rc = f->desk->letters->list(f->desk->admin, &f->filter.query, &page, &found, err);
    if (rc == HK_OK)
        rc = fix_page(f, found, after_id, more, err);
    drop_changes(f);
    return rc;
}

/* Ascending ids: letters that arrive meanwhile are fixed, too, and no letter is fixed twice. */
static enum hk_code fix_all(struct fix *f, struct hk_err *err)
{
    int64_t after_id = 0;
    enum hk_code rc = HK_OK;
    bool more = true;
    while (rc == HK_OK && more)
        rc = fix_next(f, &after_id, &more, err);
    return rc;
}

/* ---- the whole ---- */

static enum hk_code start_jq(struct fix *f, struct hk_err *err)
{
    struct hk_err why = {.message = ""};
    if (!f->desk->jq)
        return hk_err_set(
            err, HK_NOTFOUND,
            "the helper hikyaku-jq is not there: this build has no jq (libjq, libseccomp), or it was not "
            "installed; HIKYAKU_JQ may name it");
    enum hk_code rc =
        hk_jq_open(f->desk->jq, f->desk->jq_starter, f->ask->jq, f->ask->timeout_ms, &f->jq, &why);
    if (rc == HK_INVALID)
        return hk_desk_wrong(f->desk, "jq", err, ": %s", why.message);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc, "%s", why.message);
}

static enum hk_code begin_fix(struct fix *f, struct hk_err *err)
{
    struct hk_masks *masks = NULL;
    f->samples = f->ask->samples <= SAMPLES_MOST ? f->ask->samples : f->ask->dry_run ? SAMPLES_DRY : 0;
    f->o.samples = hk_pool_alloc(f->mem, f->samples + 1, sizeof *f->o.samples);
    if (!f->o.samples)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = hk_desk_masks(f->desk, f->caller, &masks, err);
    f->view.masks = masks;
    if (rc == HK_OK)
        rc = hk_letter_filter(f->desk, f->caller, &f->ask->words, false, f->mem, &f->filter, err);
    if (rc == HK_OK)
        rc = hk_config_make_validate(f->desk->config, &f->rules, err);
    return rc == HK_OK ? start_jq(f, err) : rc;
}

static enum hk_code count_letters(struct fix *f, struct hk_err *err)
{
    struct hk_letter_query query = f->filter.query;
    hk_letter_query_tells(&query, &f->caller);
    return f->desk->letters->count(f->desk->admin, &query, &f->o.count, err);
}

static enum hk_code fix_letters(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_dead_fix_ask *ask, struct hk_pool *mem,
                                struct hk_dead_fixed *out, struct hk_err *err)
{
    struct fix f = {.desk = desk, .caller = caller, .ask = ask, .mem = mem, .o = {.dry_run = ask->dry_run}};
    struct hk_err stopped = {.message = ""};
    enum hk_code rc = begin_fix(&f, err);
    if (rc == HK_OK && ask->only_count)
        rc = count_letters(&f, err);
    else if (rc == HK_OK && fix_all(&f, &stopped) != HK_OK)
        f.o.stopped = stopped; /* changes stay, and the result has them */
    if (rc == HK_OK)
        *out = f.o;
    hk_jq_close(f.jq);
    hk_validate_free(f.rules);
    hk_letter_filter_free(&f.filter);
    hk_pool_wipe(&f.page_mem);
    return rc;
}

static enum hk_code check_fix(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_dead_fix_ask *ask = request;
    (void)desk;
    if (!ask->jq)
        return hk_err_set(err, HK_INVALID, "give the program: --jq '.customer.id = 42'");
    if (!hk_letter_words_given(&ask->words))
        return hk_err_set(err, HK_INVALID, "say which letters: --filter, --group, --reason-code …");
    return HK_OK;
}

/* ---- as a job ---- */

static enum hk_code freeze_fix(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                               struct hk_pool *mem, struct hk_err *err)
{
    struct hk_dead_fix_ask *ask = request;
    if (ask->samples <= SAMPLES_MOST && ask->samples > JOB_SAMPLES)
        return hk_desk_wrong(desk, "samples", err, "takes at most %d in the background", JOB_SAMPLES);
    return hk_letter_words_freeze(desk, caller, &ask->words, false, mem, err);
}

/* The results of the earlier batches. */
static enum hk_code go_on(struct fix *f, const struct hk_dead_fixed *before, struct hk_err *err)
{
    struct hk_dead_told *samples = f->o.samples;
    size_t n = before->n_samples < f->samples ? before->n_samples : f->samples;
    f->o = *before;
    f->o.samples = samples;
    f->o.n_samples = n;
    f->o.dry_run = false;
    for (size_t i = 0; i < n; i++)
        samples[i] = before->samples[i];
    f->samples -= n;
    if (f->run->cursor[0])
        return HK_OK;
    enum hk_code rc = f->desk->letters->count(f->desk->admin, &f->filter.query, &f->o.count, err);
    f->run->progress.total = f->o.count.n;
    f->o.count = (struct hk_count){.n = 0};
    return rc;
}

/* A payload that the program has changed may be changed once more if it comes again: so it goes by ids, up to the last one that there
 * was at the beginning. */
static enum hk_code fix_to_last(struct fix *f, struct hk_err *err)
{
    int64_t n[2] = {0, 0};
    const struct hk_letters *found = NULL;
    enum hk_code rc = HK_OK;
    bool begun = hk_job_numbers(f->run, '/', n, 2);
    int64_t after = n[0], last = n[1];
    if (!begun) {
        rc = f->desk->letters->list(f->desk->admin, &(struct hk_letter_query){.statuses = 0},
                                    &(struct hk_letter_page){.limit = 1}, &found, err);
        after = 0;
        last = rc == HK_OK && found->n > 0 ? found->items[0].id : 0;
    }
    if (rc != HK_OK || last == 0)
        return rc;
    if (f->filter.query.last_id == 0 || f->filter.query.last_id > last)
        f->filter.query.last_id = last;
    rc = fix_next(f, &after, &f->run->more, err);
    (void)snprintf(f->run->cursor, sizeof f->run->cursor, "%" PRId64 "/%" PRId64, after, last);
    return rc;
}

static enum hk_code fix_batch(struct hk_job_run *run, const struct hk_caller *caller, const void *request,
                              struct hk_pool *mem, void *result, struct hk_err *err)
{
    struct hk_dead_fixed *out = result;
    struct fix f = {.desk = run->desk, .caller = caller, .ask = request, .mem = mem, .run = run};
    enum hk_code rc = begin_fix(&f, err);
    if (rc == HK_OK)
        rc = go_on(&f, out, err);
    if (rc == HK_OK)
        rc = fix_to_last(&f, err);
    if (rc == HK_OK) {
        run->progress.done = f.o.matched;
        run->progress.changed = f.o.changed;
        run->progress.failed = f.o.failed;
        run->act_id = f.o.act_id;
        *out = f.o;
    }
    hk_jq_close(f.jq);
    hk_validate_free(f.rules);
    hk_letter_filter_free(&f.filter);
    hk_pool_wipe(&f.page_mem);
    return rc;
}

static const struct hk_op_job fix_job = {.freeze = freeze_fix, .batch = fix_batch};

/* ---- the table ---- */

HK_OP_RUN(fix_letters)

static const struct hk_arg fix_args[] = {
    {.name = "jq",
     .kind = HK_ARG_TEXT,
     .offset = offsetof(struct hk_dead_fix_ask, jq),
     .value = "PROGRAM",
     .help = "make the new payload from the present one: '.qty |= tonumber'"},
    {.name = "samples",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_dead_fix_ask, samples),
     .hi = SAMPLES_MOST,
     .fallback = SAMPLES_AUTO,
     .value = "N",
     .help = "show this many differences (default: 3 with --dry-run, else 0)"},
    {.name = "timeout",
     .kind = HK_ARG_DURATION,
     .offset = offsetof(struct hk_dead_fix_ask, timeout_ms),
     .lo = 1,
     .hi = 600000,
     .fallback = HK_JQ_TIMEOUT_MS,
     .value = "DURATION",
     .help = "stop the program after this time on one payload (default: 5s)"},
    HK_LETTER_WORDS(hk_dead_fix_ask, words),
    {.name = "dry_run",
     .offset = offsetof(struct hk_dead_fix_ask, dry_run),
     .help = "count them and change nothing"},
    {.name = NULL}};

const struct hk_op hk_op_dead_fix = {
    .noun = "dead",
    .verb = "fix",
    .summary = "repair the payloads of many letters with one jq program",
    .details =
        "Each result is checked as the relay would check it. Nothing is sent: requeue or redrive does that.\n"
        "  hikyaku dead fix --group 096c42d35fa84b25 --jq '.qty |= tonumber' --dry-run",
    .route = "POST /dead-letters/fix",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .is_long = true,
    .job = &fix_job,
    .args = fix_args,
    .request_size = sizeof(struct hk_dead_fix_ask),
    .result_size = sizeof(struct hk_dead_fixed),
    .check = check_fix,
    .run = fix_letters_op,
    .form = hk_form_dead_fixed};
