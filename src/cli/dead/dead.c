/* SPDX-License-Identifier: Apache-2.0 */
/* What the commands on dead letters share. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "config/payload.h"
#include "core/encoding.h"
#include "exec/clock.h"

enum {
    FOUND_MAX = 20, /* letters of one message_id that are looked at */
    SEEN_EVERY_MS = 200,
    SEEN_WIDTH = 40,
    ASIDE_BYTES = 1 << 20, /* of each payload that is read to find what hides in an error */
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
    if (rc == HK_OK && dead.masks != NULL &&
        (dead.aside = hk_mem_zalloc(1, sizeof(struct hk_admin *))) == NULL)
        rc = hk_err_set(&err, HK_NOMEM, "out of memory");
    if (rc != HK_OK) {
        hk_masks_free(dead.masks);
        hk_operate_close(&dead.op);
        return hk_out_error(hk_settings_exit(rc), "%s", err.message);
    }
    *out = dead;
    return HK_EXIT_OK;
}

void hk_dead_close(struct hk_dead *dead)
{
    if (dead->aside != NULL)
        dead->op.ops->close(*dead->aside);
    hk_mem_free((void *)dead->aside);
    hk_masks_free(dead->masks);
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

static const struct {
    const char *option, *term;
} terms[] = {
    {"destination", "destination"},
    {"event-type", "type"},
    {"reason-code", "reason"},
    {"class", "class"},
    {"status", "status"},
    {"group", "group"},
    {"older", "older"},
    {"newer", "newer"},
    {"text", "text"},
};

enum {
    N_TERMS = sizeof terms / sizeof terms[0]
};

/* One of blanks only says nothing: a script's variable was empty, and all letters would be meant. */
bool hk_dead_filter_given(const struct hk_cli *cli)
{
    const char *filter = hk_args_value(cli, "filter");
    bool given = filter != NULL && hk_str_trim(hk_str_of(filter)).len > 0;
    for (size_t i = 0; i < N_TERMS; i++)
        given = given || hk_args_value(cli, terms[i].option) != NULL;
    return given;
}

bool hk_dead_filter_beside_ids(const struct hk_cli *cli)
{
    bool given = hk_args_value(cli, "filter") != NULL;
    for (size_t i = 0; i < N_TERMS; i++)
        given = given ||
                (strcmp(terms[i].option, "destination") != 0 && hk_args_value(cli, terms[i].option) != NULL);
    return given;
}

static void add_term(struct hk_buf *text, const char *term, const char *value)
{
    (void)hk_buf_addf(text, " %s:\"", term);
    for (const char *at = value; *at; at++) {
        if (*at == '"' || *at == '\\')
            (void)hk_buf_addc(text, '\\');
        (void)hk_buf_addc(text, *at);
    }
    (void)hk_buf_addc(text, '"');
}

int hk_dead_filter(const struct hk_cli *cli, bool any_status, struct hk_dead_filter *out)
{
    struct hk_dead_filter filter = {.parsed = NULL};
    struct hk_err err = {.message = ""};
    struct hk_buf text;
    const char *given = hk_args_value(cli, "filter");
    hk_buf_init(&text, (size_t)2 * HK_FILTER_TEXT_MAX);
    (void)hk_buf_adds(&text, given != NULL ? given : "");
    for (size_t i = 0; i < N_TERMS; i++) {
        const char *value = hk_args_value(cli, terms[i].option);
        if (value != NULL)
            add_term(&text, terms[i].term, value);
    }
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        rc = hk_filter_parse(hk_buf_cstr(&text), hk_clock_wall_ms(), &filter.parsed, &err);
    else
        (void)hk_err_set(&err, rc, "the filter is too long");
    hk_buf_fini(&text);
    if (rc != HK_OK)
        return hk_out_error(rc == HK_NOMEM ? HK_EXIT_FAILURE : HK_EXIT_USAGE, "--filter: %s", err.message);
    filter.query = *hk_filter_query(filter.parsed);
    if (filter.query.statuses == 0 && !any_status)
        filter.query.statuses = 1u << HK_LETTER_FAILED;
    hk_buf_init(&filter.text, (size_t)4 * HK_FILTER_TEXT_MAX);
    hk_filter_text(filter.parsed, &filter.query, &filter.text);
    *out = filter;
    if (hk_buf_status(&filter.text) == HK_OK)
        return HK_EXIT_OK;
    hk_dead_filter_free(out);
    return hk_out_error(HK_EXIT_FAILURE, "out of memory");
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

static int say_several(const char *shown, const struct hk_letters *found)
{
    struct hk_buf list;
    char at[HK_SHOW_MAX];
    hk_buf_init(&list, 4096);
    for (size_t i = 0; i < found->n; i++)
        (void)hk_buf_addf(&list, "%s%" PRId64 " (%s, %s)", i > 0 ? ", " : "", found->items[i].id,
                          hk_show(found->items[i].destination, at),
                          hk_letter_status_name(found->items[i].status));
    int code = hk_out_error(HK_EXIT_USAGE, "message %s has several letters: %s; name one by its id", shown,
                            hk_buf_cstr(&list));
    hk_buf_fini(&list);
    return code;
}

int hk_dead_find(const struct hk_cli *cli, const struct hk_dead *dead, const char *operand, int64_t *out_id)
{
    const struct hk_letters *found = NULL;
    struct hk_err err = {.message = ""};
    char shown[HK_SHOW_MAX];
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(operand), &id, NULL) == HK_OK && id > 0 && id <= INT64_MAX) {
        *out_id = (int64_t)id;
        return HK_EXIT_OK;
    }
    if (strncmp(operand, "id:", 3) == 0)
        operand += 3;
    struct hk_letter_query query = {.message_id = operand, .destination = hk_args_value(cli, "destination")};
    enum hk_code rc = dead->letters->list(dead->op.admin, &query,
                                          &(struct hk_letter_page){.limit = FOUND_MAX}, &found, &err);
    if (rc != HK_OK)
        return hk_operate_failed(&err);
    hk_show(hk_str_of(operand), shown);
    if (found->n == 0) {
        rc = dead->letters->find_requeued(dead->op.admin, operand, out_id, &err);
        return rc == HK_OK ? HK_EXIT_OK
               : rc != HK_NOTFOUND
                   ? hk_operate_failed(&err)
                   : hk_out_error(HK_EXIT_FAILURE, "there is no dead letter of message %s", shown);
    }
    if (found->n > 1)
        return say_several(shown, found);
    *out_id = found->items[0].id;
    return HK_EXIT_OK;
}

/* ---- acts ---- */

bool hk_dead_detail(const struct hk_audit_row *row, const char *key, struct hk_str *out_raw)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    hk_scan_init(&scan, row->detail);
    bool found = false;
    enum hk_scan_kind kind = hk_scan_next(&scan, &token);
    while (kind != HK_SCAN_END && kind != HK_SCAN_ERROR && !found) {
        kind = hk_scan_next(&scan, &token);
        if (kind == HK_SCAN_KEY && scan.depth == 1 && hk_scan_text_eq(token.raw, hk_str_of(key)))
            found = hk_scan_next(&scan, &token) != HK_SCAN_ERROR;
    }
    if (found)
        *out_raw = token.raw;
    return found;
}

int hk_dead_find_act(const struct hk_dead *dead, int64_t id, const struct hk_audit_row **out)
{
    struct hk_err err = {.message = ""};
    for (int looks = 0; looks < 2; looks++) {
        const struct hk_audit_rows *rows = NULL;
        struct hk_audit_page page = {.after_id = id - 1, .oldest_first = true, .limit = 1, .parts = true};
        struct hk_str first;
        uint64_t first_id = 0;
        if (dead->letters->audit(dead->op.admin, &page, &rows, &err) != HK_OK)
            return hk_operate_failed(&err);
        if (rows->n == 0 || rows->items[0].id != id)
            break;
        *out = &rows->items[0];
        if (!hk_dead_detail(*out, "act", &first) || hk_parse_u64(first, &first_id, NULL) != HK_OK ||
            first_id == 0 || first_id >= (uint64_t)id)
            return HK_EXIT_OK;
        id = (int64_t)first_id;
    }
    return hk_out_error(HK_EXIT_FAILURE, "there is no act %" PRId64 " in the audit", id);
}

/* ---- showing ---- */

int hk_dead_reveal(const struct hk_cli *cli, const struct hk_dead *dead, const int64_t *ids, size_t n)
{
    char actor[HK_ACTOR_MAX];
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {.message = ""};
    if (!dead->revealed)
        return HK_EXIT_OK;
    struct hk_letter_act act = {.actor = hk_settings_actor(cli, actor),
                                .reason = hk_args_value(cli, "reason")};
    for (size_t at = 0; at < n; at += act.n) {
        act.ids = ids + at;
        act.n = n - at < HK_LETTER_ACTS_MAX ? n - at : HK_LETTER_ACTS_MAX;
        if (dead->letters->remark(dead->op.admin, &act, "reveal", &done, &err) != HK_OK)
            return hk_operate_failed(&err);
        act.act_id = done->act_id;
    }
    return HK_EXIT_OK;
}

struct hk_str hk_dead_payload(const struct hk_letter *letter, struct hk_buf *scratch, bool *out_ok)
{
    *out_ok = true;
    if (!hk_encoding_is_base64(letter->encoding))
        return letter->payload;
    size_t room = hk_base64_room(letter->payload.len), len = 0;
    unsigned char *bytes = hk_mem_alloc(room);
    *out_ok = bytes != NULL && hk_base64_decode(letter->payload, HK_BASE64_LINES, bytes, room, &len) &&
              hk_buf_add(scratch, bytes, len) == HK_OK;
    if (bytes == NULL)
        scratch->status = HK_NOMEM; /* it may well be base64: nobody knows what is in it */
    hk_mem_free(bytes);
    return *out_ok ? hk_buf_str(scratch) : (struct hk_str){"", 0};
}

enum hk_code hk_dead_replace(const struct hk_dead *dead, const struct hk_letter *letter,
                             struct hk_str payload, const struct hk_letter_edit *by, uint32_t *out_version,
                             struct hk_err *err)
{
    struct hk_buf coded;
    struct hk_letter_edit edit = {.id = letter->id,
                                  .version = letter->version,
                                  .payload = payload,
                                  .actor = by->actor,
                                  .reason = by->reason,
                                  .act = by->act};
    hk_buf_init(&coded, (size_t)2 * HK_PAYLOAD_MAX);
    if (hk_encoding_is_base64(letter->encoding)) {
        (void)hk_buf_add_base64(&coded, payload.ptr, payload.len);
        edit.payload = hk_buf_str(&coded);
    }
    enum hk_code rc = hk_buf_status(&coded);
    if (rc == HK_OK)
        rc = dead->letters->edit(dead->op.admin, &edit, out_version, err);
    else
        (void)hk_err_set(err, rc, "the payload does not fit");
    hk_buf_fini(&coded);
    return rc;
}

void hk_dead_show_payload(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_buf *out)
{
    struct hk_buf scratch;
    bool ok = true;
    hk_buf_init(&scratch, HK_PAYLOAD_MAX);
    struct hk_str payload = hk_dead_payload(letter, &scratch, &ok);
    if (ok)
        (void)hk_mask_payload(dead->masks, letter->event_type, payload, out);
    else
        (void)hk_buf_addf(out, "(%zu bytes that are not base64)", letter->payload.len);
    hk_buf_fini(&scratch);
}

/* Headers stand in details, too, at whatever depth: the value behind each name that is masked. `text` as it is when it is no JSON. */
static void hide_headers(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                         struct hk_buf *out)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_buf name;
    size_t copied = 0;
    bool hide = false;
    hk_buf_init(&name, HK_PAYLOAD_MAX);
    hk_scan_init(&scan, text);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind != HK_SCAN_END && kind != HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_STRING && hide) {
            (void)hk_buf_add(out, text.ptr + copied, token.at - copied);
            (void)hk_buf_adds(out, "\"" HK_MASKED "\"");
            copied = token.at + token.raw.len;
        }
        hide = false;
        if (kind == HK_SCAN_KEY) {
            hk_buf_reset(&name);
            (void)hk_scan_text(token.raw, &name);
            hide = hk_buf_status(&name) != HK_OK || /* without memory for the name: rather hidden */
                   hk_mask_has_header(dead->masks, letter->event_type, hk_buf_str(&name));
        }
    }
    (void)hk_buf_add(out, text.ptr + copied, text.len - copied);
    hk_buf_fini(&name);
}

void hk_dead_show_headers(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str headers,
                          struct hk_buf *out)
{
    struct hk_buf masked;
    hk_buf_init(&masked, HK_OPERATE_OUTPUT_MAX);
    if (headers.len > 0 && hk_mask_headers(dead->masks, letter->event_type, headers, &masked) != HK_OK)
        (void)hk_buf_adds(out, "(out of memory)");
    else if (headers.len > 0)
        hk_dead_show_text(dead, letter, hk_buf_str(&masked), out); /* an answer may repeat what it was sent */
    hk_buf_fini(&masked);
}

/* What hides every masked value of this letter is known. */
static bool knows_payloads(const struct hk_dead *dead, const struct hk_letter *letter)
{
    const struct hk_letter_shown *history = dead->history;
    if (history == NULL)
        return letter->payload.len == letter->payload_bytes && letter->version <= 1;
    if (history->letter.payload.len < history->letter.payload_bytes ||
        history->n_versions + 1 < history->letter.version)
        return false;
    for (size_t i = 0; i < history->n_versions; i++)
        if (history->versions[i].payload.len < history->versions[i].payload_bytes)
            return false;
    return true;
}

/* Every payload that the text may be about: the letter's, and those of its history. NULL: out of memory. */
static struct hk_str *payloads_of(const struct hk_dead *dead, const struct hk_letter *letter, size_t *out_n)
{
    const struct hk_letter_shown *history = dead->history;
    size_t n = history != NULL ? history->n_versions : 0, at = 0;
    struct hk_str *all = hk_mem_zalloc(n + 2, sizeof *all);
    if (all == NULL)
        return NULL;
    all[at++] = letter->payload;
    for (size_t i = 0; i < n; i++)
        all[at++] = history->versions[i].payload;
    if (history != NULL && history->letter.payload.ptr != letter->payload.ptr)
        all[at++] = history->letter.payload;
    *out_n = at;
    return all;
}

/* All that is known of the letter; NULL: it cannot be read, and `err` says why if the store did. */
static const struct hk_letter_shown *read_aside(const struct hk_dead *dead, int64_t id, struct hk_err *err)
{
    const struct hk_store_options options = {.busy_ms = 0};
    const struct hk_letter_shown *shown = NULL;
    if (dead->aside == NULL || dead->history != NULL || id == 0)
        return NULL;
    if (*dead->aside == NULL && dead->op.ops->open(dead->op.url, &options, dead->aside, err) != HK_OK)
        return NULL;
    return dead->letters->show(*dead->aside, id, ASIDE_BYTES, &shown, err) == HK_OK ? shown : NULL;
}

/* Its payloads are known. */
static void mask_text(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                      struct hk_buf *out)
{
    struct hk_mask_about about = {
        .event_type = letter->event_type, .encoding = letter->encoding, .headers = letter->headers};
    struct hk_buf hidden, shown;
    hk_buf_init(&hidden, HK_OPERATE_OUTPUT_MAX);
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    hide_headers(dead, letter, text, &hidden);
    struct hk_str *payloads = payloads_of(dead, letter, &about.n_payloads);
    about.payloads = payloads;
    if (payloads != NULL && hk_buf_status(&hidden) == HK_OK &&
        hk_mask_about(dead->masks, &about, hk_buf_str(&hidden), &shown) == HK_OK)
        (void)hk_buf_add(out, shown.data, shown.len);
    else
        (void)hk_buf_adds(out, "(out of memory)");
    hk_mem_free(payloads);
    hk_buf_fini(&hidden);
    hk_buf_fini(&shown);
}

void hk_dead_show_text(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                       struct hk_buf *out)
{
    struct hk_dead whole = *dead;
    if (text.len == 0 || !hk_masks_fit(dead->masks, letter->event_type)) {
        (void)hk_buf_add(out, text.ptr, text.len);
        return;
    }
    if (knows_payloads(dead, letter)) {
        mask_text(dead, letter, text, out);
        return;
    }
    struct hk_err err = {.message = ""};
    whole.history = read_aside(dead, letter->id, &err);
    if (whole.history != NULL && knows_payloads(&whole, letter))
        mask_text(&whole, &whole.history->letter, text, out);
    else if (err.message[0] != '\0')
        (void)hk_buf_addf(out, "(hidden: masks apply, and its payloads cannot be read: %s)", err.message);
    else
        (void)hk_buf_adds(out, "(hidden: masks apply, and not all of its payloads can be read)");
}

const char *hk_dead_status(const struct hk_letter *letter)
{
    return letter->status == HK_LETTER_RETRYING && letter->sending_ms != 0
               ? "retrying (sent by hand, outcome unknown)"
               : hk_letter_status_name(letter->status);
}

/* ---- JSON ---- */

typedef void show_fn(const struct hk_dead *dead, const struct hk_letter *letter, struct hk_str text,
                     struct hk_buf *out);

static void put_shown(struct hk_json *json, const char *key, const struct hk_dead *dead,
                      const struct hk_letter *letter, struct hk_str text, show_fn *show)
{
    struct hk_buf shown;
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    if (text.len > 0)
        show(dead, letter, text, &shown);
    if (hk_buf_status(&shown) == HK_OK)
        hk_put_str(json, key, hk_buf_str(&shown));
    else
        hk_put_cstr(json, key, "(out of memory)");
    hk_buf_fini(&shown);
}

static void put_payload(struct hk_json *json, const struct hk_dead *dead, const struct hk_letter *letter)
{
    struct hk_buf shown;
    hk_buf_init(&shown, HK_OPERATE_OUTPUT_MAX);
    hk_dead_show_payload(dead, letter, &shown);
    if (!letter->has_payload || hk_buf_status(&shown) != HK_OK)
        hk_put_cstr(json, "payload", letter->has_payload ? "(out of memory)" : NULL);
    else
        hk_put_bytes(json, "payload", hk_buf_str(&shown));
    hk_buf_fini(&shown);
}

static void put_times(struct hk_json *json, const struct hk_letter *letter)
{
    hk_put_time(json, "message_created_at", letter->message_created_ms);
    hk_put_time(json, "first_failed_at", letter->first_failed_ms);
    hk_put_time(json, "last_failed_at", letter->last_failed_ms);
    hk_put_time(json, "last_attempt_at", letter->last_attempt_ms);
    hk_put_time(json, "created_at", letter->created_ms);
    hk_put_time(json, "edited_at", letter->edited_ms);
    hk_put_time(json, "requeued_at", letter->requeued_ms);
    hk_put_time(json, "sending_at", letter->sending_ms);
    hk_put_time(json, "resolved_at", letter->resolved_ms);
}

static void put_details(struct hk_json *json, const struct hk_dead *dead, const struct hk_letter *letter)
{
    struct hk_letter own = *letter;
    own.version = 1; /* headers are the application's: no edit has changed them */
    put_shown(json, "error_detail", dead, letter, letter->error_detail, hk_dead_show_text);
    put_shown(json, "headers", dead, &own, letter->headers, hk_dead_show_headers);
    hk_put_str(json, "content_type", letter->content_type);
    hk_put_str(json, "encoding", letter->encoding);
    hk_put_str(json, "idempotency_key", letter->idempotency_key);
    hk_put_str(json, "policy", letter->policy);
    hk_put_str(json, "expires_at", letter->expires_at);
    hk_put_limit(json, "max_attempts", letter->max_attempts);
}

void hk_dead_put(struct hk_json *json, const struct hk_dead *dead, const struct hk_letter *letter,
                 bool payload)
{
    hk_put_id(json, "id", letter->id);
    hk_put_str(json, "message_id", letter->message_id);
    hk_put_id(json, "original_outbox_id", letter->outbox_id);
    hk_put_str(json, "event_type", letter->event_type);
    hk_put_str(json, "destination", letter->destination);
    hk_put_str(json, "status", hk_str_of(hk_letter_status_name(letter->status)));
    hk_put_str(json, "reason_code", letter->reason);
    put_shown(json, "error_message", dead, letter, letter->error, hk_dead_show_text);
    hk_put_str(json, "class", letter->failure_class);
    hk_put_str(json, "fault", letter->blame);
    hk_put_str(json, "group", letter->fingerprint);
    hk_put_u64(json, "attempts", letter->attempts);
    hk_put_u64(json, "crashes", letter->crashes);
    hk_put_u64(json, "life", letter->life);
    hk_put_u64(json, "requeues", letter->requeues);
    hk_put_str(json, "requeued_as", letter->requeued_as);
    hk_put_u64(json, "payload_version", letter->version);
    hk_put_bool(json, "possibly_delivered", letter->possibly_delivered);
    hk_put_str(json, "message_key", letter->key);
    hk_put_str(json, "correlation_id", letter->correlation_id);
    hk_put_str(json, "traceparent", letter->traceparent);
    hk_put_str(json, "resolution", letter->resolution);
    hk_put_id(json, "redrive", letter->redrive);
    put_times(json, letter);
    hk_put_u64(json, "payload_bytes", letter->payload_bytes);
    if (payload) {
        put_details(json, dead, letter);
        put_payload(json, dead, letter);
        if (letter->has_payload)
            hk_put_bool(json, "payload_cut", letter->payload.len < letter->payload_bytes);
    }
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
