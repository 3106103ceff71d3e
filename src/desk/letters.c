/* SPDX-License-Identifier: Apache-2.0 */
/* Selects letters: turns the words of a request into a query, and a letter's id or message id into its id. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "core/encoding.h"
#include "desk/letters.h"
#include "desk/words.h"
#include "payload/codec.h"
#include "payload/scan.h"

enum {
    FOUND_MAX = 20,    /* letters of one message_id that are looked at */
    SEVERAL_MAX = 300, /* bytes about them in an error */
};

/* ---- words ---- */

static const struct hk_word words_of_letters[] = {
    {"destination", offsetof(struct hk_letter_words, destination)},
    {"type", offsetof(struct hk_letter_words, event_type)},
    {"reason", offsetof(struct hk_letter_words, reason_code)},
    {"class", offsetof(struct hk_letter_words, failure_class)},
    {"status", offsetof(struct hk_letter_words, status)},
    {"group", offsetof(struct hk_letter_words, group)},
    {"older", offsetof(struct hk_letter_words, older)},
    {"newer", offsetof(struct hk_letter_words, newer)},
    {"text", offsetof(struct hk_letter_words, text)},
};

static const struct hk_words letter_words = {
    words_of_letters, sizeof words_of_letters / sizeof words_of_letters[0], hk_filter_parse};

static_assert(offsetof(struct hk_letter_words, filter) == 0, "words begin with the filter");

bool hk_letter_words_given(const struct hk_letter_words *words)
{
    return hk_words_given(&letter_words, words);
}

bool hk_letter_words_beside_ids(const struct hk_letter_words *words)
{
    return hk_words_beside_ids(&letter_words, words);
}

enum hk_code hk_letter_words_check(struct hk_desk *desk, const struct hk_letter_words *words,
                                   struct hk_err *err)
{
    struct hk_filter *parsed = NULL;
    enum hk_code rc = hk_words_parse(desk, &letter_words, words, &parsed, err);
    hk_filter_free(parsed);
    return rc;
}

enum hk_code hk_letter_filter(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                              struct hk_letter_filter *out, struct hk_err *err)
{
    struct hk_letter_filter filter = {.parsed = NULL};
    enum hk_code rc = hk_words_filter(desk, caller, &letter_words, words, &filter.parsed, err);
    if (rc != HK_OK)
        return rc;
    filter.query = *hk_filter_query(filter.parsed);
    if (filter.query.statuses == 0 && !any_status)
        filter.query.statuses = 1u << HK_LETTER_FAILED;
    filter.text = hk_words_text(filter.parsed, &filter.query, mem);
    *out = filter;
    if (filter.text)
        return HK_OK;
    hk_letter_filter_free(out);
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

enum hk_code hk_letter_words_freeze(struct hk_desk *desk, const struct hk_caller *caller,
                                    struct hk_letter_words *words, bool any_status, struct hk_pool *mem,
                                    struct hk_err *err)
{
    struct hk_letter_filter filter;
    enum hk_code rc = hk_letter_filter(desk, caller, words, any_status, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    *words = (struct hk_letter_words){.filter = filter.text};
    hk_letter_filter_free(&filter);
    return HK_OK;
}

void hk_letter_filter_free(struct hk_letter_filter *filter)
{
    hk_filter_free(filter->parsed);
    filter->parsed = NULL;
}

static void tell(void *arg, int64_t id)
{
    const struct hk_caller **caller = arg;
    hk_caller_progress(*caller, id > 0 ? (uint64_t)id : 0, 0);
}

void hk_letter_query_tells(struct hk_letter_query *query, const struct hk_caller **caller)
{
    query->seen = (*caller)->progress ? tell : NULL;
    query->seen_arg = caller;
}

/* ---- by name ---- */

static enum hk_code say_several(const char *shown, const struct hk_letters *found, struct hk_err *err)
{
    struct hk_buf list;
    char at[HK_SHOW_MAX];
    hk_buf_init(&list, 4096);
    for (size_t i = 0; i < found->n && list.len < SEVERAL_MAX; i++)
        (void)hk_buf_addf(&list, "%s%" PRId64 " (%s, %s)", i > 0 ? ", " : "", found->items[i].id,
                          hk_show(found->items[i].destination, at),
                          hk_letter_status_name(found->items[i].status));
    if (list.len >= SEVERAL_MAX) {
        list.len = SEVERAL_MAX;
        (void)hk_buf_adds(&list, " …");
    }
    enum hk_code rc = hk_err_set(err, HK_INVALID, "message %s has several letters: %s; name one by its id",
                                 shown, hk_buf_cstr(&list));
    hk_buf_fini(&list);
    return rc;
}

enum hk_code hk_letter_find(struct hk_desk *desk, const char *operand, const char *destination,
                            int64_t *out_id, struct hk_err *err)
{
    const struct hk_letter_page page = {.limit = FOUND_MAX};
    const struct hk_letters *found = NULL;
    char shown[HK_SHOW_MAX];
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(operand), &id, NULL) == HK_OK && id > 0 && id <= INT64_MAX) {
        *out_id = (int64_t)id;
        return HK_OK;
    }
    if (strncmp(operand, "id:", 3) == 0)
        operand += 3;
    hk_show(hk_str_of(operand), shown);
    struct hk_letter_query query = {.message_id = operand, .destination = destination};
    enum hk_code rc = desk->letters->list(desk->admin, &query, &page, &found, err);
    if (rc != HK_OK)
        return rc;
    if (found->n > 1)
        return say_several(shown, found, err);
    if (found->n == 0) {
        rc = desk->letters->find_requeued(desk->admin, operand, out_id, err);
        return rc == HK_NOTFOUND ? hk_err_set(err, rc, "there is no dead letter of message %s", shown) : rc;
    }
    *out_id = found->items[0].id;
    return HK_OK;
}

/* ---- acts ---- */

bool hk_act_detail(const struct hk_audit_row *row, const char *key, struct hk_str *out_raw)
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

enum hk_code hk_act_words(const struct hk_audit_row *row, const char *key, struct hk_pool *mem,
                          struct hk_str *out)
{
    struct hk_str raw;
    struct hk_buf text;
    *out = (struct hk_str){"", 0};
    if (!hk_act_detail(row, key, &raw) || raw.len < 2 || raw.ptr[0] != '"')
        return HK_OK;
    hk_buf_init(&text, HK_LETTER_BYTES);
    const char *kept = hk_scan_text(raw, &text) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    if (kept)
        *out = (struct hk_str){kept, text.len};
    hk_buf_fini(&text);
    return kept ? HK_OK : HK_NOMEM;
}

enum hk_code hk_act_find(struct hk_desk *desk, int64_t id, struct hk_pool *mem, struct hk_audit_row *out,
                         struct hk_err *err)
{
    for (int looks = 0; looks < 2; looks++) {
        const struct hk_audit_rows *rows = NULL;
        struct hk_audit_page page = {.after_id = id - 1, .oldest_first = true, .limit = 1, .parts = true};
        struct hk_str first;
        uint64_t first_id = 0;
        enum hk_code rc = desk->letters->audit(desk->admin, &page, &rows, err);
        if (rc != HK_OK)
            return rc;
        if (rows->n == 0 || rows->items[0].id != id)
            break;
        *out = rows->items[0];
        hk_desk_keep(desk, mem);
        if (!hk_act_detail(out, "act", &first) || hk_parse_u64(first, &first_id, NULL) != HK_OK ||
            first_id == 0 || first_id >= (uint64_t)id)
            return HK_OK;
        id = (int64_t)first_id;
    }
    return hk_err_set(err, HK_NOTFOUND, "there is no act %" PRId64 " in the audit", id);
}

enum hk_code hk_act_find_done(struct hk_desk *desk, int64_t id, const char *did, struct hk_pool *mem,
                              struct hk_audit_row *out, char out_filter[HK_ACT_FILTER_MAX],
                              struct hk_err *err)
{
    enum hk_code rc = hk_act_find(desk, id, mem, out, err);
    if (rc != HK_OK)
        return rc;
    if (!hk_str_eq(out->act, hk_str_of(did)))
        return hk_err_set(err, HK_CONFLICT, "act %" PRId64 " is a %.*s: only a %s can be undone here",
                          out->id, (int)(out->act.len < 40 ? out->act.len : 40), out->act.ptr, did);
    (void)snprintf(out_filter, HK_ACT_FILTER_MAX, "act:%" PRId64, out->id);
    return HK_OK;
}

/* ---- payloads ---- */

enum hk_code hk_letter_plain(const struct hk_letter *letter, struct hk_pool *mem, struct hk_str *out)
{
    return hk_codec_plain(letter->encoding, letter->payload, mem, out);
}

enum hk_code hk_letter_open(struct hk_desk *desk, const struct hk_letter *letter, bool reveal,
                            struct hk_pool *mem, struct hk_str *out, struct hk_err *err)
{
    const struct hk_codec_of of = {
        .keys = desk->config->keys, .encoding = letter->encoding, .message_id = letter->message_id};
    struct hk_err why = {.message = ""};
    if (hk_encoding_is_sealed(letter->encoding) && !reveal)
        return hk_err_set(err, HK_CONFLICT, "it is sealed; --reveal opens it, and is recorded");
    enum hk_code rc = hk_codec_open(&of, letter->payload, mem, out, &why);
    return rc == HK_OK ? HK_OK : hk_err_set(err, rc == HK_NOMEM ? rc : HK_CONFLICT, "%s", why.message);
}

bool hk_letter_lies_open(const struct hk_desk *desk, const struct hk_letter *letter)
{
    return desk->config->seal.mode == HK_SEAL_REST && !hk_encoding_is_sealed(letter->encoding);
}

enum hk_code hk_letter_replace(struct hk_desk *desk, const struct hk_letter *letter, struct hk_str payload,
                               const struct hk_letter_edit *by, uint32_t *out_version, struct hk_err *err)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_letter_edit edit = {.id = letter->id,
                                  .version = letter->version,
                                  .actor = by->actor,
                                  .reason = by->reason,
                                  .act = by->act};
    const struct hk_codec_of of = {
        .keys = desk->config->keys, .encoding = letter->encoding, .message_id = letter->message_id};
    struct hk_err why = {.message = ""};
    if (hk_letter_lies_open(desk, letter))
        return hk_err_set(err, HK_CONFLICT, "%s", HK_LIES_OPEN);
    enum hk_code rc = hk_codec_seal(&of, payload, &mem, &edit.payload, &why);
    if (rc == HK_OK)
        rc = desk->letters->edit(desk->admin, &edit, out_version, err);
    else
        rc = hk_err_set(err, rc == HK_UNAVAILABLE ? HK_CONFLICT : rc, "the payload is not changed: %s",
                        why.message);
    hk_pool_fini(&mem);
    return rc;
}
