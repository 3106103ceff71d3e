/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages show: everything that is known of one message, and its last attempts; messages attempts: all that were kept. */
#include "base/str.h"
#include "core/encoding.h"
#include "core/policy_impl.h"
#include "desk/forms.h"
#include "desk/letters.h"
#include "desk/messages.h"
#include "desk/sealing.h"

/* ---- masks ---- */

/* As masks see it. `edited`: errors may be about a payload that was replaced since. */
static struct hk_letter letter_of(const struct hk_row *row, bool edited)
{
    return (struct hk_letter){.message_id = row->message_id,
                              .event_type = row->event_type,
                              .encoding = row->encoding,
                              .headers = row->headers,
                              .error = row->last_error,
                              .error_detail = row->error_detail,
                              .has_payload = row->has_payload,
                              .payload = row->payload,
                              .payload_bytes = row->payload_bytes,
                              .version = edited ? 2 : 1};
}

/* The row whose payload an attempt sent; without one, all that it says is hidden. */
static struct hk_letter letter_of_attempt(const struct hk_shown *shown, const struct hk_tried *attempt,
                                          bool edited)
{
    for (size_t i = 0; i < shown->n_rows; i++)
        if (shown->rows[i].has_payload && hk_str_eq(shown->rows[i].destination, attempt->destination))
            return letter_of(&shown->rows[i], edited);
    return (struct hk_letter){.event_type = shown->n_rows > 0 ? shown->rows[0].event_type : hk_str_of(""),
                              .payload_bytes = 1};
}

static void hide_attempts(const struct hk_letter_view *view, const struct hk_shown *shown, bool edited,
                          struct hk_pool *mem, struct hk_tried *items, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct hk_letter as = letter_of_attempt(shown, &items[i], edited);
        hk_letter_veil_attempt(view, &as, mem, &items[i]);
    }
}

/* Opened for who sees it opened; `whole`: all of it was read. */
static void show_sealed(const struct hk_letter_view *view, struct hk_pool *mem, struct hk_row *row,
                        bool whole)
{
    const struct hk_letter as = letter_of(row, false);
    struct hk_str opened = hk_str_of(HK_SEALED_TEXT);
    struct hk_err why = {.message = ""};
    if (view->opens && whole && hk_letter_open(view->desk, &as, true, mem, &opened, &why) != HK_OK) {
        const char *copy = hk_pool_copy_str(mem, hk_str_of(why.message));
        opened = hk_str_of(copy ? copy : HK_SEALED_TEXT);
    }
    row->payload = opened;
    row->payload_bytes = opened.len;
}

static void hide_row(const struct hk_letter_view *view, bool edited, struct hk_pool *mem, struct hk_row *row)
{
    struct hk_letter as = letter_of(row, edited);
    bool whole = as.payload.len == as.payload_bytes;
    if (hk_encoding_is_sealed(row->encoding) && row->payload.len)
        show_sealed(view, mem, row, whole);
    row->error_detail =
        hk_words_show(view->opens ? view->desk->config->keys : NULL, row->message_id, row->error_detail, mem);
    if (!hk_masks_fit(view->masks, row->event_type))
        return;
    hk_letter_veil(view, mem, &as);
    row->last_error = as.error;
    row->error_detail = as.error_detail;
    row->headers = as.headers;
    row->payload = as.payload;
    if (whole)
        row->payload_bytes = as.payload.len;
}

static void hide(const struct hk_letter_view *view, bool edited, struct hk_pool *mem, struct hk_shown *shown)
{
    hide_attempts(view, shown, edited, mem, shown->attempts, shown->n_attempts);
    for (size_t i = 0; i < shown->n_rows; i++)
        hide_row(view, edited, mem, &shown->rows[i]);
}

/* Attempts and errors may be about a payload that was replaced since: dead show has all of them. */
static enum hk_code look_for_edits(struct hk_desk *desk, const char *message_id, bool *out_edited,
                                   struct hk_err *err)
{
    const struct hk_letters *found = NULL;
    struct hk_letter_query query = {.message_id = message_id};
    enum hk_code rc = desk->letters->list(desk->admin, &query,
                                          &(struct hk_letter_page){.limit = HK_SHOWN_MAX}, &found, err);
    for (size_t i = 0; rc == HK_OK && i < found->n; i++)
        *out_edited = *out_edited || found->items[i].version > 1;
    return rc;
}

/* ---- asking ---- */

/* How many attempts the message gets: the number that it asks for, within the limits of its policy. */
static uint32_t attempts_of(const struct hk_config *config, const struct hk_row *row)
{
    const struct hk_conf_destination *dest = hk_config_destination_named(config, row->destination);
    const struct hk_policy *policy = NULL;
    char name[HK_NAME_MAX];
    if (hk_str_copy(name, sizeof name, row->policy.len ? row->policy : hk_str_of(dest ? dest->policy : "")))
        policy = hk_policies_get(config->policies, name);
    return policy ? hk_limits_attempts_within(hk_policy_limits(policy), row->max_attempts,
                                              config->relay.max_attempts_ceiling)
                  : row->max_attempts;
}

/* Before anything is shown. */
static enum hk_code record_reveal(struct hk_desk *desk, const struct hk_caller *caller,
                                  const char *message_id, struct hk_err *err)
{
    const struct hk_note_act note = {
        .act = "reveal", .actor = caller->actor, .reason = caller->reason, .message_id = message_id};
    return caller->reveal ? desk->ops->note(desk->admin, &note, err) : HK_OK;
}

static enum hk_code show(struct hk_desk *desk, const struct hk_caller *caller,
                         const struct hk_message_show_ask *ask, struct hk_pool *mem,
                         struct hk_message_shown *out, struct hk_err *err)
{
    const struct hk_shown *found = NULL;
    struct hk_masks *masks = NULL;
    bool edited = false;
    enum hk_code rc = hk_desk_masks(desk, caller, &masks, err);
    bool read = ask->payload || masks; /* what hides in errors is found by the payload */
    if (rc == HK_OK)
        rc = record_reveal(desk, caller, ask->message_id, err);
    if (rc == HK_OK && masks)
        rc = look_for_edits(desk, ask->message_id, &edited, err);
    if (rc == HK_OK)
        rc = desk->ops->show(desk->admin, ask->message_id, read ? HK_LETTER_BYTES : 0, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = (struct hk_message_shown){.is = *found};
    hk_desk_keep(desk, mem);
    hide(&(struct hk_letter_view){.desk = caller->reveal ? desk : NULL,
                                  .masks = masks,
                                  .opens = caller->reveal},
         edited, mem, &out->is);
    for (size_t i = 0; i < out->is.n_rows; i++) {
        struct hk_row *row = &out->is.rows[i];
        row->given_attempts = attempts_of(desk->config, row);
        if (!ask->payload)
            row->payload = (struct hk_str){NULL, 0};
        else if (row->has_payload && !row->payload.ptr)
            row->payload = hk_str_of("");
    }
    return HK_OK;
}

/* ---- attempts ---- */

/* Masked values in attempts are found with the payloads of the message. A message that is gone has no payload, so everything is hidden. */
static enum hk_code hide_page(struct hk_desk *desk, struct hk_masks *masks, const char *message_id,
                              struct hk_pool *mem, struct hk_attempts *page, struct hk_err *err)
{
    const struct hk_shown *shown = NULL;
    bool edited = false;
    enum hk_code rc = look_for_edits(desk, message_id, &edited, err);
    if (rc == HK_OK)
        rc = desk->ops->show(desk->admin, message_id, HK_LETTER_BYTES, &shown, err);
    if (rc == HK_OK)
        hide_attempts(&(struct hk_letter_view){.masks = masks}, shown, edited, mem, page->items, page->n);
    return rc;
}

static void hide_words(const char *message_id, struct hk_pool *mem, struct hk_attempts *page)
{
    for (size_t i = 0; i < page->n; i++) {
        struct hk_tried *t = &page->items[i];
        t->response_headers = hk_words_show(NULL, hk_str_of(message_id), t->response_headers, mem);
        t->response_body = hk_words_show(NULL, hk_str_of(message_id), t->response_body, mem);
    }
}

/* One more than wanted is asked for, so that `next` is there only when there is a next one. */
static enum hk_code attempts(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_attempts_ask *ask, struct hk_pool *mem, struct hk_attempts *out,
                             struct hk_err *err)
{
    const struct hk_tries *found = NULL;
    const struct hk_shown *shown = NULL;
    struct hk_masks *masks = NULL;
    uint32_t limit = (uint32_t)ask->limit;
    enum hk_code rc = hk_desk_masks(desk, caller, &masks, err);
    if (rc == HK_OK)
        rc = desk->ops->attempts(desk->admin, ask->message_id, (int64_t)ask->after, limit + 1, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = (struct hk_attempts){.items = found->items, .n = found->n < limit ? found->n : limit};
    if (found->n > limit)
        out->next = found->items[limit - 1].id;
    hk_desk_keep(desk, mem);
    hide_words(ask->message_id, mem, out);
    if (out->n == 0 && ask->after == 0) /* none yet, or no such message */
        return desk->ops->show(desk->admin, ask->message_id, 0, &shown, err);
    return out->n > 0 && masks ? hide_page(desk, masks, ask->message_id, mem, out, err) : HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(show)
HK_OP_RUN(attempts)

static const struct hk_arg show_args[] = {
    {HK_SUBJECT(hk_message_show_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_message_show_ask, payload, HK_ARG_FLAG, NULL, "with the payload")},
    {.name = NULL}};

const struct hk_op hk_op_messages_show = {.noun = "messages",
                                          .verb = "show",
                                          .summary = "show everything about one message, and its attempts",
                                          .route = "GET /messages/{message_id}",
                                          .role = HK_ROLE_VIEWER,
                                          .store = true,
                                          .reveals = true,
                                          .args = show_args,
                                          .request_size = sizeof(struct hk_message_show_ask),
                                          .result_size = sizeof(struct hk_message_shown),
                                          .run = show_op,
                                          .form = hk_form_message};

static const struct hk_arg attempts_args[] = {
    {HK_SUBJECT(hk_attempts_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_attempts_ask, limit, HK_ARG_NUMBER, "N", "at most this many (default: 50)"), .lo = 1,
     .hi = 1000, .fallback = 50},
    {HK_ARG(hk_attempts_ask, after, HK_ARG_NUMBER, "CURSOR", "continue where an earlier list ended"), .lo = 1,
     .hi = 9007199254740991.0},
    {.name = NULL}};

const struct hk_op hk_op_messages_attempts = {
    .noun = "messages",
    .verb = "attempts",
    .summary = "list the recorded attempts of a message, oldest first",
    .details =
        "Also of a message that was sent or is dead. 'relay.history' says which attempts relays keep,\n"
        "'retention.attempts' for how long.",
    .route = "GET /messages/{message_id}/attempts",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = attempts_args,
    .request_size = sizeof(struct hk_attempts_ask),
    .result_size = sizeof(struct hk_attempts),
    .run = attempts_op,
    .form = hk_form_attempts};
