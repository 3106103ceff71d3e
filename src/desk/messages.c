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

/* `out` is to be freed when it is HK_OK. */
static enum hk_code read_ask(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_messages_ask *ask, struct hk_pool *mem,
                             struct hk_message_filter *out, struct hk_err *err)
{
    enum hk_code rc = hk_message_filter(desk, caller, &ask->words, mem, out, err);
    if (rc != HK_OK || !ask->after || read_cursor(ask->after, &out->list))
        return rc;
    hk_message_filter_free(out);
    return hk_desk_wrong(desk, "after", err, "takes what an earlier list gave as next, not '%s'", ask->after);
}

static void hide_errors(const struct hk_masks *masks, struct hk_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (rows[i].last_error.len > 0 && hk_masks_fit(masks, rows[i].event_type))
            rows[i].last_error = hk_str_of("(masks apply: messages show)");
}

static void write_next(char out[48], enum hk_place place, int64_t id)
{
    (void)snprintf(out, 48, "%s:%" PRId64, hk_place_name(place), id);
}

struct listing {
    struct hk_desk *desk;
    struct hk_pool *mem;
    struct hk_list list;
    uint64_t left;   /* rows to be shown */
    uint64_t looked; /* rows that were looked through */
    uint64_t scan;   /* of at most this many */
    bool more;
};

/* One more than wanted is asked for, so that `next` is there only when there is a next one. */
static enum hk_code read_page(struct listing *l, struct hk_rows *page, char next[48], struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    struct hk_list *list = &l->list;
    list->limit = (uint32_t)(l->left < PAGE_ROWS ? l->left + 1 : PAGE_ROWS);
    list->looks = l->scan - l->looked;
    enum hk_code rc = l->desk->ops->list(l->desk->admin, list, &rows, err);
    if (rc != HK_OK)
        return rc;
    bool over = rows->n > l->left;
    *page = (struct hk_rows){.items = rows->items, .n = over ? (size_t)l->left : rows->n};
    if (over && page->n > 0)
        write_next(next, rows->items[page->n - 1].place, rows->items[page->n - 1].id);
    else if (over) /* the last row shown was on an earlier page: the next list begins where this one did */
        write_next(next, list->after_place, list->after_id);
    l->more = rows->more && !over;
    l->left -= page->n;
    l->looked += rows->looked;
    list->resume = true;
    list->after_place = rows->last_place;
    list->after_id = rows->last_id;
    hk_desk_keep(l->desk, l->mem);
    return HK_OK;
}

static enum hk_code read_pages(struct listing *l, const struct hk_masks *masks, struct hk_messages *out,
                               struct hk_err *err)
{
    struct hk_rows page;
    size_t room = 0;
    for (;;) {
        enum hk_code rc = read_page(l, &page, out->next, err);
        if (rc != HK_OK)
            return rc;
        hide_errors(masks, page.items, page.n);
        out->items = hk_desk_grow(l->mem, out->items, out->n, &room, page.n, sizeof *out->items);
        if (!out->items)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        if (page.n > 0)
            memcpy(out->items + out->n, page.items, page.n * sizeof *page.items);
        out->n += page.n;
        if (!l->more)
            return HK_OK;
        if (l->looked >= l->scan) {
            out->looked = l->looked;
            write_next(out->next, l->list.after_place, l->list.after_id);
            return HK_OK;
        }
    }
}

static enum hk_code list_messages(struct hk_desk *desk, const struct hk_caller *caller,
                                  const struct hk_messages_ask *ask, struct hk_pool *mem,
                                  struct hk_messages *out, struct hk_err *err)
{
    struct hk_message_filter filter;
    struct hk_masks *masks = NULL;
    *out = (struct hk_messages){.n = 0};
    enum hk_code rc = hk_desk_masks(desk, caller, &masks, err);
    if (rc == HK_OK)
        rc = read_ask(desk, caller, ask, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    struct listing l = {.desk = desk,
                        .mem = mem,
                        .list = filter.list,
                        .left = ask->limit,
                        .scan = hk_list_scan(ask->scan, filter.list.match != NULL)};
    rc = read_pages(&l, masks, out, err);
    hk_message_filter_free(&filter);
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
    return act(desk, caller, ask, ask->force ? "force" : "retry",
               ask->force ? desk->ops->force : desk->ops->retry, out, err);
}

/* ---- the table ---- */

static enum hk_code check_list(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    struct hk_message_filter filter;
    struct hk_pool mem = {.blocks = NULL};
    const struct hk_caller anybody = {
        .may_reveal = true}; /* who asks is not known yet: only how it is written counts */
    enum hk_code rc = read_ask(desk, &anybody, request, &mem, &filter, err);
    if (rc == HK_OK)
        hk_message_filter_free(&filter);
    hk_pool_fini(&mem);
    return rc;
}

HK_OP_RUN(list_messages)
HK_OP_RUN(cancel)
HK_OP_RUN(retry)

static const struct hk_arg list_args[] = {
    HK_MESSAGE_WORDS(hk_messages_ask, words, "pending processing retrying sent dead cancelled any"),
    {HK_ARG(hk_messages_ask, limit, HK_ARG_NUMBER, "N", "at most this many (default: 50)"), .lo = 1,
     .hi = 100000, .fallback = 50},
    {HK_LIST_SCAN_ARG(hk_messages_ask, "rows")},
    {HK_ARG(hk_messages_ask, after, HK_ARG_TEXT, "CURSOR", "continue where an earlier list ended")},
    {.name = NULL}};

const struct hk_op hk_op_messages_list = {
    .noun = "messages",
    .verb = "list",
    .summary = "list messages, newest first within each state",
    .details =
        "In this order: waiting to be retried, not tried yet, dead, cancelled, sent. Where no index serves the\n"
        "filter, the list stops after --scan rows, and says how to continue.",
    .route = "GET /messages",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = list_args,
    .request_size = sizeof(struct hk_messages_ask),
    .result_size = sizeof(struct hk_messages),
    .check = check_list,
    .run = list_messages_op,
    .form = hk_form_messages};

static const struct hk_arg act_args[] = {
    {HK_SUBJECT(hk_message_act_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_message_act_ask, destination, HK_ARG_TEXT, "NAME",
            "the destination, if the message goes to several")},
    {.name = NULL}};

static const struct hk_arg retry_args[] = {
    {HK_SUBJECT(hk_message_act_ask, message_id, "ID", "the message's id")},
    {HK_ARG(hk_message_act_ask, destination, HK_ARG_TEXT, "NAME",
            "the destination, if the message goes to several")},
    {HK_ARG(hk_message_act_ask, force, HK_ARG_FLAG, NULL,
            "send it now even if its destination is paused, broken or at its limits")},
    {.name = NULL}};

#define BUSY_SAYS "Exit code 75 while it is in flight."

#define ACT(called, says, tells, path, takes, with)                                                          \
    {                                                                                                        \
        .noun = "messages", .verb = (called), .summary = (says), .details = (tells),                         \
        .route = "POST /messages/{message_id}/" path, .role = HK_ROLE_OPERATOR, .store = true,               \
        .changes = true, .needs_reason = true, .args = (takes),                                              \
        .request_size = sizeof(struct hk_message_act_ask), .result_size = sizeof(struct hk_message_acted),   \
        .run = (with), .form = hk_form_message_acted                                                         \
    }

const struct hk_op hk_op_messages_cancel_one =
    ACT("cancel_one", "cancel a message that is not in flight, so that it is never sent", BUSY_SAYS, "cancel",
        act_args, cancel_op);
const struct hk_op hk_op_messages_retry =
    ACT("retry", "retry a waiting message now",
        BUSY_SAYS
        " --force sends it once past the pause, the breaker, the rate and the\n"
        "concurrency of its destination; the order of its key is kept. At most 16 forced messages are in\n"
        "flight at once, per destination and relay.",
        "retry", retry_args, retry_op);
