/* SPDX-License-Identifier: Apache-2.0 */
/* Cancels and restores messages by id or by filter: page by page, each page in a separate transaction, all of them one act in the
 * audit. A list selects the messages and the next page; the store decides about each. */
#include <inttypes.h>
#include <stdio.h>

#include "base/show.h"
#include "base/str.h"
#include "desk/definitions.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/letters.h"
#include "desk/messages.h"

enum {
    COUNT_ROWS = 1000
};

#define STILL_LIVE "it waits or is on its way: cancel it first, or wait for its outcome"

struct act {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_messages_act_ask *ask;
    struct hk_pool *mem;
    const char *filter; /* for the audit; NULL = messages were named */
    const char **ordered;
    size_t n_ordered;
    struct hk_job_run *run; /* of a batch; NULL: it is no job */
    size_t room;            /* items */
    size_t texts;           /* bytes in the items of a job */
    int64_t
        last_cancelled; /* of a restore as a job: it does not restore messages that were cancelled later */
    struct hk_messages_acted o;
};

const char *hk_messages_verb(enum hk_messages_kind kind)
{
    static const char *const verbs[] = {
        [HK_MESSAGES_CANCEL] = "cancel", [HK_MESSAGES_RESTORE] = "restore", [HK_MESSAGES_ERASE] = "erase"};
    return verbs[kind];
}

/* ---- what came of each ---- */

static const char *why_not(enum hk_ref_did did, enum hk_messages_kind kind)
{
    switch (did) {
    case HK_REF_DONE:
        break;
    case HK_REF_GONE:
        return kind == HK_MESSAGES_CANCEL    ? "it went out meanwhile, or somebody else cancelled it"
               : kind == HK_MESSAGES_RESTORE ? "it is not cancelled any more"
                                             : "nothing is kept of it any more";
    case HK_REF_IN_FLIGHT:
        return kind == HK_MESSAGES_ERASE ? STILL_LIVE : "it is in flight: try again when it has come back";
    case HK_REF_OVERTAKING:
        return "a message of its key that comes before it is in flight: try again when that has come back";
    case HK_REF_FAR_BEHIND:
        return "more than 10000 messages of its key wait before it: restore it when some of them have gone";
    case HK_REF_LETTER:
        return "its dead letter was opened or requeued since: see 'hikyaku dead show' with its message id";
    case HK_REF_ERASED:
        return "it was erased: nothing is left to send";
    case HK_REF_AGAIN:
        return "another message with its id waits for the same destination, or was sent since: it would go out twice";
    }
    return NULL;
}

static struct hk_str copy(struct act *a, struct hk_str text)
{
    const char *bytes = hk_pool_copy_str(a->mem, text);
    return bytes ? (struct hk_str){bytes, text.len} : hk_str_of("");
}

static void add_item(struct act *a, struct hk_str message_id, struct hk_str destination,
                     enum hk_letter_did did, const char *why)
{
    switch (did) {
    case HK_DID_IT:
        a->o.done++;
        break;
    case HK_DID_NOTHING:
        a->o.nothing++;
        break;
    case HK_DID_NOT_FIND:
        a->o.missing++;
        break;
    case HK_DID_REFUSE:
        a->o.refused++;
        break;
    }
    a->o.n_all++;
    a->texts += message_id.len + destination.len;
    if (a->o.n == a->room || (a->run && a->texts > HK_JOB_TEXTS_MAX))
        return;
    a->o.items[a->o.n++] = (struct hk_messages_item){
        .message_id = copy(a, message_id), .destination = copy(a, destination), .did = did, .why = why};
}

static void count_row(struct act *a, const struct hk_row *row, enum hk_ref_did did)
{
    enum hk_letter_did is = did == HK_REF_DONE   ? HK_DID_IT
                            : did == HK_REF_GONE ? HK_DID_NOTHING
                                                 : HK_DID_REFUSE;
    add_item(a, row->message_id, row->destination, is, why_not(did, a->o.kind));
}

static bool is_settled(const struct hk_row *row)
{
    return row->place == HK_IN_CANCELLED || row->place == HK_IN_DEAD || row->place == HK_IN_SENT;
}

/* Would be changed, or is in a state that does not allow it. */
static void look_at(struct act *a, const struct hk_row *row)
{
    bool fits = a->o.kind == HK_MESSAGES_RESTORE ? row->place == HK_IN_CANCELLED
                : a->o.kind == HK_MESSAGES_ERASE ? is_settled(row)
                                                 : row->state != HK_PROCESSING;
    *(fits ? &a->o.fit : &a->o.others) += 1;
    if (fits && a->o.n_examples < HK_MESSAGES_EXAMPLES) {
        struct hk_row *example = &a->o.examples[a->o.n_examples++];
        *example = (struct hk_row){.place = row->place, .state = row->state, .created_ms = row->created_ms};
        example->message_id = copy(a, row->message_id);
        example->destination = copy(a, row->destination);
        example->event_type = copy(a, row->event_type);
    }
}

/* ---- doing ---- */

static enum hk_code call_store(struct act *a, const struct hk_refs_act *act, struct hk_refs_done *done,
                               struct hk_err *err)
{
    const struct hk_store_admin_ops *ops = a->desk->ops;
    switch (a->o.kind) {
    case HK_MESSAGES_CANCEL:
        return ops->cancel_refs(a->desk->admin, act, done, err);
    case HK_MESSAGES_RESTORE:
        return ops->restore_refs(a->desk->admin, act, done, err);
    case HK_MESSAGES_ERASE:
        break;
    }
    return ops->erase_refs(a->desk->admin, act, done, err);
}

/* The next rows of one act. They are of the store's last call. */
static enum hk_code do_rows(struct act *a, const struct hk_row *rows, size_t n, struct hk_err *err)
{
    struct hk_ref refs[HK_REFS_MAX];
    struct hk_refs_done done = {.n = 0};
    if (a->o.dry_run || n == 0) {
        for (size_t i = 0; i < n; i++)
            look_at(a, &rows[i]);
        return HK_OK;
    }
    for (size_t i = 0; i < n; i++)
        refs[i] = (struct hk_ref){rows[i].place, rows[i].id};
    const struct hk_refs_act act = {.refs = refs,
                                    .n = n,
                                    .actor = a->o.actor,
                                    .reason = a->o.reason,
                                    .filter = a->filter,
                                    .act_id = a->o.act_id,
                                    .ordered = a->ordered,
                                    .n_ordered = a->n_ordered};
    enum hk_code rc = a->run ? hk_job_hold(a->run, err) : HK_OK;
    if (rc == HK_OK)
        rc = call_store(a, &act, &done, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        count_row(a, &rows[i], done.did[i]);
    a->o.act_id = done.act_id;
    a->o.at_ms = done.now_ms;
    return HK_OK;
}

static size_t leave_out_later(const struct act *a, struct hk_row *rows, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (rows[i].id <= a->last_cancelled)
            rows[kept++] = rows[i];
    return kept;
}

/* One step: acts on the next page behind the list's cursor, and moves the cursor on. `only`: rows of other places end it. */
static enum hk_code do_page(struct act *a, struct hk_list *list, enum hk_place only, bool *more,
                            struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    size_t n = 0;
    list->limit = HK_REFS_MAX;
    enum hk_code rc = a->desk->ops->list(a->desk->admin, list, &rows, err);
    if (rc != HK_OK)
        return rc;
    while (n < rows->n && rows->items[n].place == only)
        n++;
    list->resume = true;
    list->after_place = rows->last_place;
    list->after_id = rows->last_id;
    list->after_origin = rows->last_origin;
    *more = rows->more && n == rows->n && rows->last_place == only;
    if (a->run && a->o.kind == HK_MESSAGES_RESTORE)
        n = leave_out_later(a, rows->items, n);
    return do_rows(a, rows->items, n, err);
}

/* Changes before an error stay, and the result has them: the error is part of the result. */
static enum hk_code do_place(struct act *a, struct hk_list list, enum hk_place only, struct hk_err *err)
{
    bool more = true;
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && more) {
        rc = do_page(a, &list, only, &more, err);
        hk_caller_progress(a->caller, a->o.dry_run ? a->o.fit : a->o.done, 0);
        if (rc == HK_OK && more && hk_caller_stops(a->caller))
            rc = hk_err_set(err, HK_CANCELLED, "interrupted: run the same command again for the rest");
    }
    return rc;
}

/* Rows move from outbox to outbox_retry, never back: in this order no message slips through. */
static enum hk_code do_waiting(struct act *a, struct hk_list list, struct hk_err *err)
{
    struct hk_list fresh = list;
    list.live = fresh.live = true;
    fresh.resume = true;
    fresh.after_place = HK_IN_OUTBOX;
    fresh.after_id = INT64_MAX;
    enum hk_code rc = do_place(a, fresh, HK_IN_OUTBOX, err);
    return rc == HK_OK ? do_place(a, list, HK_IN_RETRY, err) : rc;
}

/* Settled messages, in the order of a list. */
static enum hk_code do_settled(struct act *a, struct hk_list list, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    list.resume = true;
    list.after_id = INT64_MAX;
    for (list.after_place = HK_IN_DEAD; rc == HK_OK && list.after_place < HK_NPLACES; list.after_place++)
        rc = do_place(a, list, list.after_place, err);
    return rc;
}

static enum hk_code do_list(struct act *a, struct hk_list list, struct hk_err *err)
{
    struct hk_err stopped = {.message = ""};
    enum hk_code rc = HK_OK;
    if (a->o.kind == HK_MESSAGES_CANCEL) {
        rc = do_waiting(a, list, &stopped);
    } else if (a->o.kind == HK_MESSAGES_ERASE) {
        rc = do_settled(a, list, &stopped);
    } else {
        list.state = HK_STATE_CANCELLED;
        list.by_origin = true;
        rc = do_place(a, list, HK_IN_CANCELLED, &stopped);
    }
    if (rc == HK_OK)
        return HK_OK;
    if (a->o.dry_run || a->o.done == 0)
        return hk_err_set(err, rc, "%s", stopped.message);
    a->o.stopped = stopped;
    return HK_OK;
}

/* ---- by name ---- */

static bool is_live(const struct hk_row *row)
{
    return row->place == HK_IN_RETRY || row->place == HK_IN_OUTBOX;
}

/* The selected rows of one message_id come first; then the place of another row of it: HK_NPLACES = none. */
static size_t sort_rows(struct act *a, struct hk_row *rows, size_t n, const char *destination,
                        enum hk_place *out_other)
{
    size_t kept = 0;
    *out_other = HK_NPLACES;
    for (size_t i = 0; i < n; i++) {
        if (destination && !hk_str_eq(rows[i].destination, hk_str_of(destination)))
            continue;
        bool meant = a->o.kind == HK_MESSAGES_CANCEL    ? is_live(&rows[i])
                     : a->o.kind == HK_MESSAGES_RESTORE ? rows[i].place == HK_IN_CANCELLED
                                                        : is_settled(&rows[i]);
        if (meant)
            rows[kept++] = rows[i];
        else if (*out_other == HK_NPLACES)
            *out_other = rows[i].place;
    }
    return kept;
}

static enum hk_code check_destinations(struct act *a, const struct hk_row *rows, size_t n, struct hk_err *err)
{
    char one[HK_SHOW_MAX], other[HK_SHOW_MAX];
    for (size_t i = 1; i < n && a->o.kind != HK_MESSAGES_ERASE; i++) /* which erases all of a message */
        if (!hk_str_eq(rows[i].destination, rows[0].destination))
            return hk_desk_wrong(a->desk, "destination", err,
                                 "the message goes to several destinations (%s, %s …): name one of them",
                                 hk_show(rows[0].destination, one), hk_show(rows[i].destination, other));
    return HK_OK;
}

/* Of a message that is not in a state for it: is it so already, or what has become of it? NULL: there is none. */
static const char *what_else(struct act *a, enum hk_place place, enum hk_letter_did *out_did)
{
    bool cancels = a->o.kind == HK_MESSAGES_CANCEL;
    *out_did = HK_DID_REFUSE;
    if (a->o.kind == HK_MESSAGES_ERASE && place != HK_NPLACES)
        return STILL_LIVE;
    switch (place) {
    case HK_IN_RETRY:
    case HK_IN_OUTBOX:
        *out_did = cancels ? HK_DID_REFUSE : HK_DID_NOTHING;
        return "it waits already";
    case HK_IN_CANCELLED:
        *out_did = cancels ? HK_DID_NOTHING : HK_DID_REFUSE;
        return "it was cancelled already";
    case HK_IN_DEAD:
        return "it is a dead letter";
    case HK_IN_SENT:
        return "it was sent";
    case HK_NPLACES:
        break;
    }
    *out_did = HK_DID_NOT_FIND;
    return "there is no such message";
}

struct named {
    struct hk_row *rows;
    size_t n, room;
};

/* Adds the rows of one name; if it cannot be acted upon, the result says so at once. */
static enum hk_code find_named(struct act *a, const char *message_id, struct named *all, struct hk_err *err)
{
    const char *destination = a->ask->words.destination;
    const struct hk_shown *shown = NULL;
    enum hk_place other = HK_NPLACES;
    enum hk_letter_did did = HK_DID_NOT_FIND;
    const struct hk_row *rows = NULL;
    size_t n = 0;
    enum hk_code rc = a->desk->ops->show(a->desk->admin, message_id, 0, &shown, err);
    if (rc != HK_OK && rc != HK_NOTFOUND)
        return rc;
    if (rc == HK_OK) {
        rows = shown->rows;
        n = sort_rows(a, shown->rows, shown->n_rows, destination, &other);
        rc = check_destinations(a, rows, n, err);
        if (rc != HK_OK)
            return rc;
    }
    if (!rows || n == 0) {
        const char *why = what_else(a, other, &did);
        add_item(a, hk_str_of(message_id), hk_str_of(destination ? destination : ""), did, why);
        return HK_OK;
    }
    all->rows = hk_desk_grow(a->mem, all->rows, all->n, &all->room, n, sizeof *all->rows);
    if (!all->rows)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < n; i++)
        all->rows[all->n++] = rows[i];
    hk_desk_keep(a->desk, a->mem);
    return HK_OK;
}

/* One that was named: whatever keeps it from being done is an error. */
static enum hk_code tell_one(struct act *a, struct hk_err *err)
{
    const struct hk_messages_item *item = &a->o.items[0];
    char shown[HK_SHOW_MAX];
    hk_show(hk_str_of(a->ask->ids.items[0]), shown);
    if (a->o.n == 0 || a->o.done > 0 || a->o.nothing > 0)
        return HK_OK;
    if (a->o.missing > 0)
        return hk_err_set(err, HK_NOTFOUND, "there is no message %s%s%s", shown,
                          a->ask->words.destination ? " for destination " : "",
                          a->ask->words.destination ? a->ask->words.destination : "");
    bool later = item->why == why_not(HK_REF_IN_FLIGHT, a->o.kind) ||
                 item->why == why_not(HK_REF_OVERTAKING, a->o.kind);
    return hk_err_set(err, later ? HK_BUSY : HK_CONFLICT, "message %s: %s", shown, item->why);
}

/* The store's own act on one has more to say about what keeps it. */
static enum hk_code cancel_one(struct act *a, struct hk_err *err)
{
    struct hk_acted acted = {0};
    const struct hk_act act = {.message_id = a->ask->ids.items[0],
                               .destination = a->ask->words.destination,
                               .actor = a->o.actor,
                               .reason = a->o.reason};
    enum hk_code rc = a->desk->ops->cancel(a->desk->admin, &act, &acted, err);
    if (rc == HK_INVALID)
        return hk_desk_wrong(a->desk, "destination", err, "%s", err->message);
    if (rc != HK_OK)
        return rc;
    add_item(a, hk_str_of(act.message_id), hk_str_of(act.destination ? act.destination : ""), HK_DID_IT,
             NULL);
    a->o.done = acted.changed;
    a->o.at_ms = acted.now_ms;
    return HK_OK;
}

/* All names are looked up before anything is changed. */
static enum hk_code do_named(struct act *a, struct hk_err *err)
{
    const struct hk_texts *ids = &a->ask->ids;
    struct named all = {.n = 0};
    enum hk_code rc = HK_OK;
    a->o.message_id = ids->n == 1 ? ids->items[0] : NULL;
    if (a->o.message_id && a->o.kind == HK_MESSAGES_CANCEL && !a->o.dry_run)
        return cancel_one(a, err);
    for (size_t i = 0; i < ids->n && rc == HK_OK; i++)
        rc = find_named(a, ids->items[i], &all, err);
    for (size_t i = 0; i < all.n && rc == HK_OK; i += HK_REFS_MAX)
        rc = do_rows(a, all.rows + i, all.n - i < HK_REFS_MAX ? all.n - i : HK_REFS_MAX, err);
    return rc == HK_OK && a->o.message_id ? tell_one(a, err) : rc;
}

/* ---- by filter ---- */

static enum hk_code check_state(struct hk_desk *desk, enum hk_messages_kind kind, enum hk_state state,
                                struct hk_err *err)
{
    bool is_live = state == HK_PENDING || state == HK_RETRYING;
    bool fits = state == HK_STATE_NONE || (kind == HK_MESSAGES_RESTORE  ? state == HK_STATE_CANCELLED
                                           : kind == HK_MESSAGES_CANCEL ? is_live
                                                                        : !is_live && state != HK_PROCESSING);
    static const char *const done[] = {[HK_MESSAGES_CANCEL] = "cancelled",
                                       [HK_MESSAGES_RESTORE] = "restored",
                                       [HK_MESSAGES_ERASE] = "erased: cancel them first"};
    if (fits)
        return HK_OK;
    return hk_desk_wrong(desk, "filter", err, ": messages that are %s cannot be %s", hk_state_name(state),
                         done[kind]);
}

static enum hk_code do_filter(struct act *a, struct hk_err *err)
{
    struct hk_message_filter filter;
    enum hk_code rc = hk_message_filter(a->desk, a->caller, &a->ask->words, a->mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    a->filter = filter.text;
    rc = check_state(a->desk, a->o.kind, filter.list.state, err);
    if (rc == HK_OK)
        rc = do_list(a, filter.list, err);
    hk_message_filter_free(&filter);
    return rc;
}

/* The act that is undone, and how many messages it took. */
static enum hk_code find_undone(struct act *a, char filter[HK_ACT_FILTER_MAX], uint64_t *out_messages,
                                struct hk_err *err)
{
    struct hk_audit_row row;
    enum hk_code rc = hk_act_find_done(a->desk, (int64_t)a->ask->act, "cancel", a->mem, &row, filter, err);
    if (rc != HK_OK)
        return rc;
    if (row.messages == 0)
        return hk_err_set(err, HK_CONFLICT,
                          "act %" PRId64 " is about one message: 'hikyaku messages restore %.*s'", row.id,
                          (int)(row.message_id.len < 200 ? row.message_id.len : 200), row.message_id.ptr);
    a->o.undone = row.id;
    *out_messages = row.messages;
    a->filter = filter;
    return HK_OK;
}

/* Undoes one cancel of many messages, and nothing else. */
static enum hk_code do_undo(struct act *a, struct hk_err *err)
{
    char filter[HK_ACT_FILTER_MAX];
    uint64_t messages = 0;
    enum hk_code rc = find_undone(a, filter, &messages, err);
    if (rc != HK_OK)
        return rc;
    rc = do_list(a, (struct hk_list){.act_id = a->o.undone}, err);
    a->filter = NULL;
    uint64_t seen = a->o.dry_run ? a->o.fit : a->o.n_all;
    a->o.overtaken = a->o.stopped.code == HK_OK && messages > seen ? messages - seen : 0;
    return rc;
}

/* ---- the operations ---- */

/* The destinations of the configuration that keep the order of keys. */
static enum hk_code read_ordered(struct act *a, struct hk_err *err)
{
    const struct hk_config *config = a->desk->config;
    size_t room = 0;
    const struct hk_conf_destination *conf = NULL;
    while (hk_config_destination(config, room))
        room++;
    struct hk_blocking *kept = NULL;
    size_t n_kept = 0;
    enum hk_code rc = hk_desk_ordered(a->desk, NULL, 0, a->mem, &kept, &n_kept, err);
    if (rc != HK_OK)
        return rc;
    a->ordered = hk_pool_alloc(a->mem, room + n_kept + 1, sizeof *a->ordered);
    if (!a->ordered)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; (conf = hk_config_destination(config, i)) != NULL; i++)
        if (conf->order == HK_ORDER_KEY)
            a->ordered[a->n_ordered++] = conf->name;
    for (size_t i = 0; i < n_kept; i++)
        a->ordered[a->n_ordered++] = kept[i].destination;
    return HK_OK;
}

static enum hk_code act_on(struct act a, enum hk_messages_kind kind, struct hk_messages_acted *out,
                           struct hk_err *err)
{
    a.room = HK_MESSAGES_ITEMS;
    a.o = (struct hk_messages_acted){.kind = kind,
                                     .dry_run = a.ask->dry_run,
                                     .actor = a.caller->actor,
                                     .reason = a.caller->reason,
                                     .items = hk_pool_alloc(a.mem, HK_MESSAGES_ITEMS, sizeof *a.o.items),
                                     .examples =
                                         hk_pool_alloc(a.mem, HK_MESSAGES_EXAMPLES, sizeof *a.o.examples)};
    enum hk_code rc =
        a.o.items && a.o.examples ? read_ordered(&a, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc != HK_OK)
        return rc;
    if (a.ask->act != 0)
        rc = do_undo(&a, err);
    else if (a.ask->ids.n > 0)
        rc = do_named(&a, err);
    else
        rc = do_filter(&a, err);
    if (rc == HK_OK)
        *out = a.o;
    return rc;
}

static enum hk_code cancel_op(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                              struct hk_pool *mem, void *result, struct hk_err *err)
{
    return act_on((struct act){.desk = desk, .caller = caller, .ask = request, .mem = mem},
                  HK_MESSAGES_CANCEL, result, err);
}

static enum hk_code erase_op(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                             struct hk_pool *mem, void *result, struct hk_err *err)
{
    return act_on((struct act){.desk = desk, .caller = caller, .ask = request, .mem = mem}, HK_MESSAGES_ERASE,
                  result, err);
}

static enum hk_code restore_op(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                               struct hk_pool *mem, void *result, struct hk_err *err)
{
    return act_on((struct act){.desk = desk, .caller = caller, .ask = request, .mem = mem},
                  HK_MESSAGES_RESTORE, result, err);
}

/* ---- as a job ---- */

/* Messages of a filter become those of the same filter at any time; ids are few, and done at once. */
static enum hk_code freeze(struct hk_desk *desk, const struct hk_caller *caller, enum hk_messages_kind kind,
                           struct hk_messages_act_ask *ask, struct hk_pool *mem, struct hk_err *err)
{
    struct hk_message_filter filter;
    if (ask->ids.n > 0)
        return hk_err_set(err, HK_INVALID,
                          "messages that are named are few: leave out background, or give a filter");
    if (ask->act != 0)
        return HK_OK;
    enum hk_code rc = hk_message_filter(desk, caller, &ask->words, mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    rc = check_state(desk, kind, filter.list.state, err);
    ask->words = (struct hk_message_words){.filter = filter.text};
    hk_message_filter_free(&filter);
    return rc;
}

/* Where the next batch begins: "PLACE AFTER-ID AFTER-ORIGIN LAST". `last`: a restore covers messages that were cancelled before it began,
 * and ids of cancelled messages rise. A cancel goes from the newest message down. */
struct mark {
    enum hk_place place;
    bool resume;
    int64_t after_id, after_origin, last;
};

enum {
    MARK_NUMBERS = 4
};

static enum hk_place settled_place(int64_t n)
{
    return n == HK_IN_CANCELLED ? HK_IN_CANCELLED : n == HK_IN_SENT ? HK_IN_SENT : HK_IN_DEAD;
}

static enum hk_code read_mark(struct act *a, struct mark *out, struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    int64_t n[MARK_NUMBERS];
    if (hk_job_numbers(a->run, ' ', n, MARK_NUMBERS)) {
        *out = (struct mark){.resume = true, .after_id = n[1], .after_origin = n[2], .last = n[3]};
        out->place = a->o.kind == HK_MESSAGES_RESTORE ? HK_IN_CANCELLED
                     : a->o.kind == HK_MESSAGES_ERASE ? settled_place(n[0])
                     : n[0] == HK_IN_RETRY            ? HK_IN_RETRY
                                                      : HK_IN_OUTBOX;
        return HK_OK;
    }
    if (a->o.kind == HK_MESSAGES_ERASE) {
        *out = (struct mark){HK_IN_DEAD, .resume = true, .after_id = INT64_MAX};
        return HK_OK;
    }
    if (a->o.kind == HK_MESSAGES_CANCEL) {
        *out = (struct mark){HK_IN_OUTBOX, .resume = true, .after_id = INT64_MAX};
        return HK_OK;
    }
    *out = (struct mark){HK_IN_CANCELLED, .last = 0};
    enum hk_code rc = a->desk->ops->list(
        a->desk->admin, &(struct hk_list){.state = HK_STATE_CANCELLED, .limit = 1}, &rows, err);
    if (rc == HK_OK && rows->n > 0)
        out->last = rows->items[0].id;
    return rc;
}

/* The number of selected messages when the job begins, for people. It is exact if no more than HK_COUNT_EXACT rows have to be read.
 * Otherwise it is the number found so far, and grows with the progress. */
static enum hk_code count_meant(struct act *a, struct hk_list list, struct hk_err *err)
{
    const struct hk_rows *rows = NULL;
    uint64_t looked = 0;
    enum hk_code rc = HK_OK;
    list.limit = COUNT_ROWS;
    a->run->progress.total = 0;
    do {
        rc = a->desk->ops->list(a->desk->admin, &list, &rows, err);
        if (rc != HK_OK)
            return rc;
        a->run->progress.total += rows->n;
        looked += rows->looked > rows->n ? rows->looked : rows->n;
        list.resume = true;
        list.after_place = rows->last_place;
        list.after_id = rows->last_id;
        list.after_origin = rows->last_origin;
    } while (rows->more && looked < HK_COUNT_EXACT && !hk_caller_stops(a->caller));
    return HK_OK;
}

/* The next page, and where the one behind it begins. */
static enum hk_code batch_of_list(struct act *a, struct hk_list list, struct mark *at, struct hk_err *err)
{
    bool restores = a->o.kind == HK_MESSAGES_RESTORE, more = false;
    list.live = a->o.kind == HK_MESSAGES_CANCEL;
    list.by_origin = restores;
    if (restores)
        list.state = HK_STATE_CANCELLED;
    a->last_cancelled = at->last;
    enum hk_code rc = !a->run->cursor[0] && a->ask->act == 0 ? count_meant(a, list, err) : HK_OK;
    if (rc != HK_OK)
        return rc;
    list.resume = at->resume;
    list.after_place = at->place;
    list.after_id = at->after_id;
    list.after_origin = at->after_origin;
    rc = do_page(a, &list, at->place, &more, err);
    at->after_id = list.after_id;
    at->after_origin = list.after_origin;
    a->run->more = more;
    if (rc == HK_OK && !more && at->place == HK_IN_OUTBOX) { /* in the order of do_waiting */
        at->place = HK_IN_RETRY;
        at->after_id = INT64_MAX;
        a->run->more = true;
    } else if (rc == HK_OK && !more && a->o.kind == HK_MESSAGES_ERASE && at->place != HK_IN_SENT) {
        at->place++;
        at->after_id = INT64_MAX;
        a->run->more = true;
    }
    return rc;
}

static enum hk_code batch_of_filter(struct act *a, struct mark *at, struct hk_err *err)
{
    struct hk_message_filter filter;
    enum hk_code rc = hk_message_filter(a->desk, a->caller, &a->ask->words, a->mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    a->filter = filter.text;
    rc = check_state(a->desk, a->o.kind, filter.list.state, err);
    if (rc == HK_OK)
        rc = batch_of_list(a, filter.list, at, err);
    hk_message_filter_free(&filter);
    return rc;
}

static enum hk_code batch_of_act(struct act *a, struct mark *at, struct hk_err *err)
{
    char filter[HK_ACT_FILTER_MAX];
    uint64_t messages = 0;
    enum hk_code rc = find_undone(a, filter, &messages, err);
    if (rc == HK_OK)
        rc = batch_of_list(a, (struct hk_list){.act_id = a->o.undone}, at, err);
    a->filter = NULL;
    a->run->progress.total = messages;
    a->o.overtaken = !a->run->more && messages > a->o.n_all ? messages - a->o.n_all : 0;
    return rc;
}

/* The results of the earlier batches, with room for more. */
static enum hk_code go_on(struct act *a, enum hk_messages_kind kind, const struct hk_messages_acted *before,
                          struct hk_err *err)
{
    struct hk_messages_item *items = hk_pool_alloc(a->mem, HK_JOB_ITEMS, sizeof *items);
    if (!items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    a->o = *before;
    a->o.n = before->n < HK_JOB_ITEMS ? before->n : HK_JOB_ITEMS;
    for (size_t i = 0; i < a->o.n; i++) {
        items[i] = before->items[i];
        a->texts += items[i].message_id.len + items[i].destination.len;
    }
    a->o.items = items;
    a->room = before->n_all > a->o.n ? a->o.n : HK_JOB_ITEMS;
    a->o.kind = kind;
    a->o.dry_run = false;
    a->o.actor = a->caller->actor;
    a->o.reason = a->caller->reason;
    return read_ordered(a, err);
}

static enum hk_code do_batch(struct act a, enum hk_messages_kind kind, struct hk_messages_acted *out,
                             struct hk_err *err)
{
    struct mark at = {.resume = false};
    enum hk_code rc = go_on(&a, kind, out, err);
    if (rc == HK_OK)
        rc = read_mark(&a, &at, err);
    if (rc == HK_OK)
        rc = a.ask->act != 0 ? batch_of_act(&a, &at, err) : batch_of_filter(&a, &at, err);
    if (rc != HK_OK)
        return rc;
    struct hk_job_run *run = a.run;
    run->progress.done = a.o.n_all + a.o.overtaken;
    run->progress.changed = a.o.done;
    run->progress.failed = a.o.missing + a.o.refused;
    run->act_id = a.o.act_id;
    (void)snprintf(run->cursor, sizeof run->cursor, "%d %" PRId64 " %" PRId64 " %" PRId64, (int)at.place,
                   at.after_id, at.after_origin, at.last);
    *out = a.o;
    return HK_OK;
}

#define ACT_JOB(name, kind, personal)                                                                        \
    static enum hk_code name##_freeze(struct hk_desk *desk, const struct hk_caller *caller, void *request,   \
                                      struct hk_pool *mem, struct hk_err *err)                               \
    {                                                                                                        \
        return freeze(desk, caller, kind, request, mem, err);                                                \
    }                                                                                                        \
    static enum hk_code name##_batch(struct hk_job_run *run, const struct hk_caller *caller,                 \
                                     const void *request, struct hk_pool *mem, void *result,                 \
                                     struct hk_err *err)                                                     \
    {                                                                                                        \
        return do_batch(                                                                                     \
            (struct act){.desk = run->desk, .caller = caller, .ask = request, .mem = mem, .run = run}, kind, \
            result, err);                                                                                    \
    }                                                                                                        \
    static const struct hk_op_job name##_job = {                                                             \
        .forgets = (personal), .freeze = name##_freeze, .batch = name##_batch};

ACT_JOB(cancel, HK_MESSAGES_CANCEL, false)
ACT_JOB(restore, HK_MESSAGES_RESTORE, false)
ACT_JOB(erase, HK_MESSAGES_ERASE, true)

/* ---- the table ---- */

static enum hk_code check_act(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_messages_act_ask *ask = request;
    struct hk_message_filter filter;
    struct hk_pool mem = {.blocks = NULL};
    bool given = hk_message_words_given(&ask->words);
    if (ask->act != 0 && (ask->ids.n > 0 || given))
        return hk_err_set(err, HK_INVALID,
                          "--act means the messages of that act: ids and filters do not go with it");
    if (ask->act == 0 && ask->ids.n == 0 && !given)
        return hk_err_set(err, HK_INVALID, "say which: ids, or --filter, --destination, --text …");
    if (ask->ids.n > 0 && hk_message_words_beside_ids(&ask->words))
        return hk_err_set(
            err, HK_INVALID,
            "give ids or a filter, not both (--destination picks one, if a message goes to several)");
    if (ask->ids.n > 0 || ask->act != 0)
        return HK_OK;
    const struct hk_caller anybody = {.may_reveal = true}; /* who asks is not known yet */
    enum hk_code rc = hk_message_filter(desk, &anybody, &ask->words, &mem, &filter, err);
    if (rc == HK_OK)
        hk_message_filter_free(&filter);
    hk_pool_fini(&mem);
    return rc;
}

static const struct hk_arg cancel_args[] = {
    HK_MANY_IDS_ARG(hk_messages_act_ask),
    HK_MESSAGE_WORDS(hk_messages_act_ask, words, "pending retrying any"),
    HK_MANY_DRY_RUN_ARG(hk_messages_act_ask),
    {.name = NULL}};

static const struct hk_arg restore_args[] = {
    HK_MANY_IDS_ARG(hk_messages_act_ask),
    HK_MANY_ACT_ARG(
        hk_messages_act_ask,
        "undo this cancel of many messages: restore those that are still cancelled (see audit list)"),
    HK_MESSAGE_WORDS(hk_messages_act_ask, words, "cancelled any"),
    HK_MANY_DRY_RUN_ARG(hk_messages_act_ask),
    {.name = NULL}};

static const struct hk_arg erase_args[] = {
    HK_MANY_IDS_ARG(hk_messages_act_ask),
    HK_MESSAGE_WORDS(hk_messages_act_ask, words, "dead cancelled sent any"),
    HK_MANY_DRY_RUN_ARG(hk_messages_act_ask),
    {.name = NULL}};

#define ACT_ROW(word, says, more, list, does, batches, may)                                                  \
    {                                                                                                        \
        .noun = "messages", .verb = (word), .summary = (says), .details = (more),                            \
        .route = "POST /messages/" word, .role = (may), .store = true, .changes = true,                      \
        .needs_reason = true, .is_long = true, .job = &(batches), .args = (list),                            \
        .request_size = sizeof(struct hk_messages_act_ask), .result_size = sizeof(struct hk_messages_acted), \
        .check = check_act, .run = (does), .form = hk_form_messages_acted                                    \
    }

const struct hk_op hk_op_messages_cancel =
    ACT_ROW("cancel", "cancel messages that are not in flight, so that they are never sent",
            "Cancels messages by id or filter. 'messages restore' brings them back while they are kept\n"
            "(retention.cancelled). Exit code 75 when the one message that was named is in flight.",
            cancel_args, cancel_op, cancel_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_messages_restore =
    ACT_ROW("restore", "put cancelled messages back, with their attempts, times and order",
            "--act ID undoes one cancel of many messages. Messages that became due meanwhile are due now.",
            restore_args, restore_op, restore_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_messages_erase = ACT_ROW(
    "erase", "erase the stored payloads, headers and responses of messages",
    "The record stays: ids, times, attempts and their outcome, and who erased it. Cannot be undone. A message that\n"
    "waits has to be cancelled first. All dead letters of a message go with it.",
    erase_args, erase_op, erase_job, HK_ROLE_ADMIN);
