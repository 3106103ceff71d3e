/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku messages: by keyset, newest first within retry, outbox, dead, cancelled, sent. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/forms.h"
#include "desk/messages.h"

enum {
    PAGE_ROWS = 1000
};

/* ---- list ---- */

/* "PLACE:ID" */
static bool read_cursor(const char *text, struct hk_list *list)
{
    struct hk_str id = hk_str_of(text);
    struct hk_str place = hk_str_cut(&id, ':');
    list->resume = true;
    return id.ptr && hk_place_by_name(place, &list->after_place) &&
           hk_parse_i64(id, &list->after_id, NULL) == HK_OK;
}

static enum hk_code read_ask(struct hk_desk *desk, const struct hk_messages_ask *ask, struct hk_list *list,
                             struct hk_err *err)
{
    *list = (struct hk_list){
        .state = HK_STATE_NONE, .destination = ask->destination, .event_type = ask->event_type};
    for (int s = HK_PENDING; ask->status && s < HK_NSTATES; s++)
        if (strcmp(ask->status, hk_state_name((enum hk_state)s)) == 0)
            list->state = (enum hk_state)s;
    if (ask->status && list->state == HK_STATE_NONE)
        return hk_desk_wrong(desk, "status", err, "takes a status, not '%s'", ask->status);
    if (ask->after && !read_cursor(ask->after, list))
        return hk_desk_wrong(desk, "after", err, "takes what an earlier list gave as next, not '%s'",
                             ask->after);
    return HK_OK;
}

static void hide_errors(struct hk_masks *masks, struct hk_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].last_error.len > 0 && hk_masks_fit(masks, rows[i].event_type))
            rows[i].last_error = hk_str_of("(masks apply: messages show)");
}

/* Of the last row that is shown; it may have come with an earlier page, where the list goes on now. */
static void write_next(const struct hk_list *list, const struct hk_rows *rows, size_t shown, char out[48])
{
    enum hk_place place = shown > 0 ? rows->items[shown - 1].place : list->after_place;
    int64_t id = shown > 0 ? rows->items[shown - 1].id : list->after_id;
    (void)snprintf(out, 48, "%s:%" PRId64, hk_place_name(place), id);
}

/* One more than wanted is asked for, so that `next` is there only when there is a next one. */
static enum hk_code read_page(struct hk_desk *desk, struct hk_list *list, uint64_t left, struct hk_pool *mem,
                              struct hk_messages_page *page, bool *out_more, char next[48],
                              struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    list->limit = (uint32_t)(left < PAGE_ROWS ? left + 1 : PAGE_ROWS);
    enum hk_code rc = desk->ops->list(desk->admin, list, &rows, err);
    if (rc != HK_OK)
        return rc;
    bool over = rows->n > left;
    *page = (struct hk_messages_page){.items = rows->items, .n = over ? (size_t)left : rows->n};
    if (over)
        write_next(list, rows, page->n, next);
    *out_more = rows->more && !over;
    list->resume = true;
    list->after_place = rows->last_place;
    list->after_id = rows->last_id;
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static enum hk_code list_messages(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_messages_ask *ask, struct hk_pool *mem,
                                  struct hk_messages *out, struct hk_err *err)
{
    struct hk_list list;
    struct hk_masks *masks = NULL;
    struct hk_messages_page **at = &out->pages;
    uint64_t left = ask->limit;
    bool more = true;
    *out = (struct hk_messages){.pages = NULL};
    enum hk_code rc = read_ask(desk, ask, &list, err);
    if (rc == HK_OK)
        rc = hk_desk_masks(desk, caller, &masks, err);
    while (rc == HK_OK && more) {
        *at = hk_pool_alloc(mem, 1, sizeof **at);
        if (!*at)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        rc = read_page(desk, &list, left, mem, *at, &more, out->next, err);
        if (rc == HK_OK)
            hide_errors(masks, (*at)->items, (*at)->n);
        left -= (*at)->n;
        at = &(*at)->more;
    }
    return rc;
}

/* ---- cancel, retry ---- */

typedef enum hk_code act_fn(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                            struct hk_err *err);

static enum hk_code act(struct hk_desk *desk, const struct hk_caller *caller,
                        const struct hk_message_act_ask *ask, const char *verb, act_fn *do_it,
                        struct hk_message_acted *out, struct hk_err *err)
{
    *out = (struct hk_message_acted){.verb = verb,
                                     .act = {.message_id = ask->message_id,
                                             .destination = ask->destination,
                                             .actor = caller->actor,
                                             .reason = caller->reason}};
    enum hk_code rc = do_it(desk->admin, &out->act, &out->is, err);
    return rc == HK_INVALID ? hk_desk_wrong(desk, "destination", err, "%s", err->message) : rc;
}

static enum hk_code cancel(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_message_act_ask *ask, struct hk_pool *mem,
                           struct hk_message_acted *out, struct hk_err *err)
{
    (void)mem;
    return act(desk, caller, ask, "cancel", desk->ops->cancel, out, err);
}

static enum hk_code retry(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_message_act_ask *ask, struct hk_pool *mem,
                          struct hk_message_acted *out, struct hk_err *err)
{
    (void)mem;
    return act(desk, caller, ask, "retry", desk->ops->retry, out, err);
}

/* ---- the table ---- */

static enum hk_code check_list(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    struct hk_list list;
    return read_ask(desk, request, &list, err);
}

HK_OP_RUN(list_messages)
HK_OP_RUN(cancel)
HK_OP_RUN(retry)

static const struct hk_arg list_args[] = {
    {HK_ARG(hk_messages_ask, status, HK_ARG_CHOICE, "STATUS", "only these"),
     .choices = "pending processing retrying sent dead cancelled"},
    {HK_ARG(hk_messages_ask, destination, HK_ARG_TEXT, "NAME", "only for this one")},
    {HK_ARG(hk_messages_ask, event_type, HK_ARG_TEXT, "NAME", "only of this type")},
    {HK_ARG(hk_messages_ask, limit, HK_ARG_NUMBER, "N", "at most this many (default: 50)"), .lo = 1,
     .hi = 100000, .fallback = 50},
    {HK_ARG(hk_messages_ask, after, HK_ARG_TEXT, "CURSOR", "go on where an earlier list ended")},
    {.name = NULL}};

const struct hk_op hk_op_messages_list = {
    .noun = "messages",
    .verb = "list",
    .summary = "list messages, newest first within each place",
    .details = "In this order: waiting to be retried, not tried yet, dead, cancelled, sent.",
    .route = "GET /messages",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = list_args,
    .request_size = sizeof(struct hk_messages_ask),
    .result_size = sizeof(struct hk_messages),
    .check = check_list,
    .run = list_messages_op,
    .encode = hk_encode_messages};

static const struct hk_arg act_args[] = {
    {HK_SUBJECT(hk_message_act_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_message_act_ask, destination, HK_ARG_TEXT, "NAME", "which, when it goes to several")},
    {.name = NULL}};

#define ACT(called, says, with)                                                                              \
    {                                                                                                        \
        .noun = "messages", .verb = called, .summary = says,                                                 \
        .details = "Exit code 75 while it is in flight.", .route = "POST /messages/{message_id}/" called,    \
        .role = HK_ROLE_OPERATOR, .store = true, .changes = true, .needs_reason = true, .args = act_args,    \
        .request_size = sizeof(struct hk_message_act_ask), .result_size = sizeof(struct hk_message_acted),   \
        .run = with, .encode = hk_encode_message_acted                                                       \
    }

const struct hk_op hk_op_messages_cancel =
    ACT("cancel", "cancel a message that is not in flight, so that it is never sent", cancel_op);
const struct hk_op hk_op_messages_retry = ACT("retry", "make a message that waits due now", retry_op);
