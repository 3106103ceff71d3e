/* SPDX-License-Identifier: Apache-2.0 */
/* Shows letters through masks: payload/mask.h has the rule; this file finds the payloads that the rule needs. */
#include "core/encoding.h"
#include "desk/letters.h"
#include "payload/words.h"

#define SHOWN_MAX   ((size_t)256 << 20)
#define ASIDE_BYTES ((size_t)1 << 20) /* of each payload that is read to find what hides in an error */

enum hk_code hk_letters_reveal(struct hk_desk *desk, const struct hk_caller *caller, const int64_t *ids,
                               size_t n, struct hk_err *err)
{
    struct hk_letter_act act = {.actor = caller->actor, .reason = caller->reason};
    const struct hk_letters_done *done = NULL;
    enum hk_code rc = HK_OK;
    for (size_t at = 0; caller->reveal && at < n && rc == HK_OK; at += act.n) {
        act.ids = ids + at;
        act.n = n - at < HK_LETTER_ACTS_MAX ? n - at : HK_LETTER_ACTS_MAX;
        rc = desk->letters->remark(desk->admin, &act, "reveal", &done, err);
        if (rc == HK_OK)
            act.act_id = done->act_id;
    }
    return rc;
}

/* ---- which payloads ---- */

/* Are all masked values of this letter known? */
static bool knows_payloads(const struct hk_letter *letter, const struct hk_letter_shown *history)
{
    if (!history)
        return letter->payload.len == letter->payload_bytes && letter->version <= 1;
    bool knows = history->letter.payload.len >= history->letter.payload_bytes &&
                 history->n_versions + 1 >= history->letter.version;
    for (size_t i = 0; i < history->n_versions; i++)
        knows = knows && history->versions[i].payload.len >= history->versions[i].payload_bytes;
    return knows;
}

enum hk_code hk_letter_about(const struct hk_letter *letter, const struct hk_letter_shown *history,
                             struct hk_pool *mem, struct hk_mask_about *out)
{
    size_t n = history ? history->n_versions : 0, at = 0;
    struct hk_str *all = hk_pool_alloc(mem, n + 2, sizeof *all);
    if (!all)
        return HK_NOMEM;
    all[at++] = letter->payload;
    for (size_t i = 0; i < n; i++)
        all[at++] = history->versions[i].payload;
    if (history && history->letter.payload.ptr != letter->payload.ptr)
        all[at++] = history->letter.payload;
    *out = (struct hk_mask_about){.event_type = letter->event_type,
                                  .encoding = letter->encoding,
                                  .headers = letter->headers,
                                  .payloads = all,
                                  .n_payloads = at,
                                  .partial = !knows_payloads(letter, history)};
    return HK_OK;
}

/* All that is known of the letter; NULL: it cannot be read, and `err` says why if the store did. */
static const struct hk_letter_shown *read_history(const struct hk_letter_view *view, int64_t id,
                                                  struct hk_err *err)
{
    const struct hk_letter_shown *shown = NULL;
    struct hk_desk *desk = view->desk;
    if (!desk || view->history || id == 0 || hk_desk_open(desk, err) != HK_OK)
        return NULL;
    return desk->letters->show(desk->admin, id, ASIDE_BYTES, &shown, err) == HK_OK ? shown : NULL;
}

/* ---- texts ---- */

typedef void show_fn(const struct hk_masks *masks, const struct hk_mask_about *about, struct hk_str text,
                     struct hk_buf *out);

static void show(const struct hk_letter_view *view, const struct hk_letter *letter, struct hk_str text,
                 show_fn *how, struct hk_buf *out)
{
    struct hk_pool mem = {.blocks = NULL};
    struct hk_mask_about about;
    struct hk_err err = {.message = ""};
    const struct hk_letter_shown *history = view->history;
    if (!text.len || !hk_masks_fit(view->masks, letter->event_type)) {
        (void)hk_buf_add(out, text.ptr, text.len);
        return;
    }
    if (!knows_payloads(letter, history)) {
        const struct hk_letter_shown *read = read_history(view, letter->id, &err);
        if (read) {
            history = read;
            letter = &read->letter;
        }
    }
    if (err.message[0] != '\0')
        (void)hk_buf_addf(out, "(hidden: masks apply, and its payloads cannot be read: %s)", err.message);
    else if (hk_letter_about(letter, history, &mem, &about) == HK_OK)
        how(view->masks, &about, text, out);
    else
        (void)hk_buf_adds(out, "(out of memory)");
    hk_pool_fini(&mem);
}

void hk_letter_show_text(const struct hk_letter_view *view, const struct hk_letter *letter,
                         struct hk_str text, struct hk_buf *out)
{
    show(view, letter, text, hk_mask_show, out);
}

void hk_letter_show_headers(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_str headers, struct hk_buf *out)
{
    show(view, letter, headers, hk_mask_show_headers, out);
}

void hk_letter_show_payload(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_buf *out)
{
    hk_mask_show_payload(view->masks, letter->event_type, letter->encoding, letter->payload, out);
}

/* ---- for results ---- */

/* Replaces the text by `shown`. */
static void settle(struct hk_buf *shown, struct hk_pool *mem, struct hk_str *text)
{
    const char *kept = hk_buf_status(shown) == HK_OK ? hk_pool_copy_str(mem, hk_buf_str(shown)) : NULL;
    *text = kept ? (struct hk_str){kept, shown->len} : (struct hk_str){"(out of memory)", 15};
    hk_buf_fini(shown);
}

static void veil(const struct hk_letter_view *view, const struct hk_letter *letter, show_fn *how,
                 struct hk_pool *mem, struct hk_str *text)
{
    struct hk_buf shown;
    if (!text->len || !hk_masks_fit(view->masks, letter->event_type))
        return;
    hk_buf_init(&shown, SHOWN_MAX);
    show(view, letter, *text, how, &shown);
    settle(&shown, mem, text);
}

static void veil_payload(const struct hk_letter_view *view, const struct hk_letter *letter,
                         struct hk_pool *mem, struct hk_str *out)
{
    struct hk_buf shown;
    struct hk_err why = {.message = ""};
    if (hk_encoding_is_sealed(letter->encoding) && view->opens &&
        letter->payload.len == letter->payload_bytes && letter->payload.len) {
        if (hk_letter_open(view->desk, letter, true, mem, out, &why) == HK_OK)
            return;
        hk_buf_init(&shown, SHOWN_MAX);
        (void)hk_buf_addf(&shown, "(sealed: %s)", why.message);
        settle(&shown, mem, out);
        return;
    }
    if (!hk_masks_fit(view->masks, letter->event_type) && hk_letter_plain(letter, mem, out) == HK_OK)
        return;
    hk_buf_init(&shown, SHOWN_MAX);
    hk_letter_show_payload(view, letter, &shown);
    settle(&shown, mem, out);
}

/* The receiver's words to a sealed message are opened for who sees it opened. */
static void show_words(const struct hk_letter_view *view, const struct hk_letter *letter, struct hk_pool *mem,
                       struct hk_str *text)
{
    struct hk_keyring *keys = view->opens && view->desk ? view->desk->config->keys : NULL;
    *text = hk_words_show(keys, letter->message_id, *text, mem);
}

void hk_letter_veil_text(const struct hk_letter_view *view, const struct hk_letter *letter,
                         struct hk_pool *mem, struct hk_str *text)
{
    veil(view, letter, hk_mask_show, mem, text);
}

void hk_letter_veil(const struct hk_letter_view *view, struct hk_pool *mem, struct hk_letter *letter)
{
    const struct hk_letter stored = *letter;
    struct hk_letter own = stored;
    own.version = 1; /* headers are the application's: no edit has changed them */
    veil(view, &stored, hk_mask_show, mem, &letter->error);
    show_words(view, &stored, mem, &letter->error_detail);
    veil(view, &stored, hk_mask_show, mem, &letter->error_detail);
    veil(view, &own, hk_mask_show_headers, mem, &letter->headers);
    veil_payload(view, &stored, mem, &letter->payload);
}

void hk_letter_veil_attempt(const struct hk_letter_view *view, const struct hk_letter *letter,
                            struct hk_pool *mem, struct hk_tried *attempt)
{
    show_words(view, letter, mem, &attempt->response_headers);
    show_words(view, letter, mem, &attempt->response_body);
    veil(view, letter, hk_mask_show, mem, &attempt->error);
    veil(view, letter, hk_mask_show_headers, mem, &attempt->request_headers);
    veil(view, letter, hk_mask_show_headers, mem, &attempt->response_headers);
    veil(view, letter, hk_mask_show, mem, &attempt->response_body);
}
