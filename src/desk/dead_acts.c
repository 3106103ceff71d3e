/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on dead letters by id or by filter: page by page, each page in a separate transaction, all of them one act in the audit. This
 * file selects the letters; the store decides whether a letter's state allows the act. */
#include <inttypes.h>
#include <stdio.h>

#include "base/mem.h"
#include "base/str.h"
#include "desk/dead.h"
#include "desk/forms.h"
#include "desk/job.h"

struct act {
    struct hk_desk *desk;
    const struct hk_caller *caller;
    const struct hk_dead_ask *ask;
    struct hk_pool *mem;
    enum hk_requeue_id ids;
    const char *filter;     /* for the audit; NULL = letters were named */
    size_t room;            /* for items */
    struct hk_job_run *run; /* of a batch; NULL: it is no job */
    size_t texts;           /* bytes in the items of a job */
    struct hk_dead_acted o;
};

const char *hk_dead_verb(enum hk_dead_kind kind)
{
    static const char *const verbs[] = {
        [HK_DEAD_REQUEUE] = "requeue", [HK_DEAD_RESOLVE] = "resolve", [HK_DEAD_DISCARD] = "discard",
        [HK_DEAD_RESTORE] = "restore", [HK_DEAD_NOTE] = "note",       [HK_DEAD_ERASE] = "erase"};
    return verbs[kind];
}

/* ---- what came of each ---- */

static const char *why_refused(const struct act *a, const struct hk_letter_done *d)
{
    if (d->sending)
        return "it was sent by hand and the outcome is not known: look whether it arrived, then resolve it, or restore it to "
               "try again";
    switch (d->status) {
    case HK_LETTER_FAILED:
        if (a->o.kind == HK_DEAD_REQUEUE)
            return "the message went there already under this id, or is on its way: use --new-id to send it all the same";
        return a->o.kind == HK_DEAD_RESTORE ? "it is open" : "it is open, and that does not allow it";
    case HK_LETTER_RETRYING:
        return "it is on its way (retrying): wait for the outcome";
    case HK_LETTER_RESOLVED:
        return "it is resolved";
    case HK_LETTER_DISCARDED:
        return a->o.kind == HK_DEAD_RESTORE ? "it was erased: nothing is left to send"
                                            : "it was discarded: restore it first";
    case HK_NLETTER_STATUSES:
        break;
    }
    return "its state does not allow it";
}

static void add_item(struct act *a, int64_t id, enum hk_letter_did did, struct hk_str message_id,
                     const char *why)
{
    bool named = a->o.kind == HK_DEAD_REQUEUE;
    a->o.n_all++;
    a->texts += named ? message_id.len : 0;
    if (a->o.n >= a->room || (a->run && a->texts > HK_JOB_TEXTS_MAX))
        return;
    struct hk_dead_item *item = &a->o.items[a->o.n++];
    *item = (struct hk_dead_item){.id = id, .did = did, .why = why};
    if (!named)
        return;
    const char *copy = hk_pool_copy_str(a->mem, message_id);
    item->message_id = copy ? (struct hk_str){copy, message_id.len} : hk_str_of("");
}

static void count_done(struct act *a, const struct hk_letter_done *d)
{
    const char *why = NULL;
    switch (d->did) {
    case HK_DID_IT:
        a->o.done++;
        break;
    case HK_DID_NOTHING:
        a->o.nothing++;
        break;
    case HK_DID_NOT_FIND:
        a->o.missing++;
        why = "there is no such letter";
        break;
    case HK_DID_REFUSE:
        a->o.refused++;
        why = why_refused(a, d);
        break;
    }
    add_item(a, d->id, d->did, d->message_id, why);
}

/* A message_id that no letter has. */
static void count_unknown(struct act *a, const char *name)
{
    size_t at = a->o.n;
    a->o.missing++;
    add_item(a, 0, HK_DID_NOT_FIND, hk_str_of(""), "there is no dead letter of this message");
    if (a->o.n > at)
        a->o.items[at].name = hk_str_of(name);
}

/* ---- doing ---- */

/* Of the whole message: as messages erase does it. */
static enum hk_code erase(struct act *a, const struct hk_letter_act *act, const struct hk_letters_done **out,
                          struct hk_err *err)
{
    struct hk_ref refs[HK_REFS_MAX];
    struct hk_refs_done refs_done = {.n = 0};
    _Static_assert(HK_LETTER_ACTS_MAX <= HK_REFS_MAX, "a page of letters is one of rows");
    for (size_t i = 0; i < act->n; i++)
        refs[i] = (struct hk_ref){HK_IN_DEAD, act->ids[i]};
    const struct hk_refs_act of = {
        .refs = refs, .n = act->n, .actor = act->actor, .reason = act->reason, .act_id = act->act_id};
    struct hk_letters_done *done = hk_pool_alloc(a->mem, 1, sizeof *done);
    struct hk_letter_done *items = hk_pool_alloc(a->mem, act->n + 1, sizeof *items);
    if (!done || !items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = a->desk->ops->erase_refs(a->desk->admin, &of, &refs_done, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < act->n; i++)
        items[i] = (struct hk_letter_done){.id = act->ids[i],
                                           .did = refs_done.did[i] == HK_REF_DONE   ? HK_DID_IT
                                                  : refs_done.did[i] == HK_REF_GONE ? HK_DID_NOT_FIND
                                                                                    : HK_DID_REFUSE,
                                           .status = HK_LETTER_RETRYING};
    *done = (struct hk_letters_done){
        .items = items, .n = act->n, .changed = refs_done.changed, .now_ms = refs_done.now_ms};
    *out = done;
    return HK_OK;
}

static enum hk_code call_store(struct act *a, const struct hk_letter_act *act,
                               const struct hk_letters_done **done, struct hk_err *err)
{
    const struct hk_store_letters_ops *ops = a->desk->letters;
    struct hk_admin *admin = a->desk->admin;
    switch (a->o.kind) {
    case HK_DEAD_REQUEUE:
        return ops->requeue(admin, act,
                            a->ids == HK_REQUEUE_SAME && a->ask->yes ? HK_REQUEUE_SAME_ALWAYS : a->ids, done,
                            err);
    case HK_DEAD_RESOLVE:
        return ops->resolve(admin, act, done, err);
    case HK_DEAD_DISCARD:
        return ops->discard(admin, act, done, err);
    case HK_DEAD_RESTORE:
        return ops->restore(admin, act, done, err);
    case HK_DEAD_ERASE:
        return erase(a, act, done, err);
    case HK_DEAD_NOTE:
        break;
    }
    return ops->remark(admin, act, "note", done, err);
}

static enum hk_code do_ids(struct act *a, const int64_t *ids, size_t n, struct hk_err *err)
{
    const struct hk_letters_done *done = NULL;
    const struct hk_letter_act act = {.ids = ids,
                                      .n = n,
                                      .actor = a->o.actor,
                                      .reason = a->o.reason,
                                      .filter = a->filter,
                                      .act_id = a->o.act_id,
                                      .to = a->ask ? a->ask->to : NULL};
    enum hk_code rc = n > 0 && a->run ? hk_job_hold(a->run, err) : HK_OK;
    if (rc == HK_OK && n > 0)
        rc = call_store(a, &act, &done, err);
    if (rc != HK_OK || n == 0)
        return rc;
    for (size_t i = 0; i < done->n; i++)
        count_done(a, &done->items[i]);
    a->o.act_id = done->act_id;
    return HK_OK;
}

/* The receiver would take it for a repeat and drop what was changed. */
static bool refuse_drop(struct act *a, const struct hk_letter *letter)
{
    bool edited = a->o.kind == HK_DEAD_REQUEUE && a->ids == HK_REQUEUE_SAME && letter->version > 1;
    if (!edited || !letter->possibly_delivered || a->ask->yes) {
        if (edited && a->o.one)
            a->o.same_edited = letter->id;
        return false;
    }
    a->o.refused++;
    add_item(
        a, letter->id, HK_DID_REFUSE, letter->message_id,
        "it was edited, and an earlier attempt may have arrived: under the same id the receiver would drop it as a "
        "repeat; use --new-id, or --yes if you know better");
    return true;
}

static enum hk_code do_page(struct act *a, const struct hk_letter_query *query, int64_t *after, bool *more,
                            struct hk_err *err)
{
    const struct hk_letter_page page = {
        .limit = HK_LETTER_ACTS_MAX, .oldest_first = true, .after_id = *after};
    const struct hk_letters *found = NULL;
    int64_t ids[HK_LETTER_ACTS_MAX];
    size_t n = 0;
    enum hk_code rc = a->desk->letters->list(a->desk->admin, query, &page, &found, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < found->n; i++)
        if (!refuse_drop(a, &found->items[i]))
            ids[n++] = found->items[i].id;
    *after = found->last_id;
    *more = found->more;
    return do_ids(a, ids, n, err);
}

/* The same of an act that is undone. */
static enum hk_code do_act_page(struct act *a, int64_t *after, bool *more, struct hk_err *err)
{
    const struct hk_audit_letters *letters = NULL;
    int64_t ids[HK_LETTER_ACTS_MAX];
    size_t n = 0;
    enum hk_code rc =
        a->desk->letters->act_letters(a->desk->admin, a->o.undone, *after, HK_LETTER_ACTS_MAX, &letters, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < letters->n; i++) {
        *after = letters->items[i].letter_id;
        if (letters->items[i].overtaken)
            a->o.overtaken++;
        else
            ids[n++] = *after;
    }
    *more = letters->more;
    return do_ids(a, ids, n, err);
}

/* Changes before an error stay, and the result has them: the error is part of the result. */
static enum hk_code do_pages(struct act *a, const struct hk_letter_query *query)
{
    struct hk_err err = {.message = ""};
    bool more = true;
    int64_t after = 0;
    enum hk_code rc = HK_OK;
    while (rc == HK_OK && more) {
        rc = a->o.undone != 0 ? do_act_page(a, &after, &more, &err) : do_page(a, query, &after, &more, &err);
        if (more)
            hk_caller_progress(a->caller, a->o.done, 0);
        if (rc == HK_OK && more && hk_caller_stops(a->caller))
            rc = hk_err_set(&err, HK_CANCELLED, "interrupted: run the same command again for the rest");
    }
    if (rc != HK_OK)
        a->o.stopped = err;
    return HK_OK;
}

/* ---- what an act would meet ---- */

/* The states that an act works on. */
static unsigned statuses_of(enum hk_dead_kind kind)
{
    if (kind == HK_DEAD_ERASE)
        return 1u << HK_LETTER_FAILED | 1u << HK_LETTER_RESOLVED | 1u << HK_LETTER_DISCARDED;
    return 1u << (kind == HK_DEAD_RESTORE ? HK_LETTER_DISCARDED : HK_LETTER_FAILED);
}

/* Also a send by hand whose outcome nobody knows? Such letters are `retrying`. */
static bool takes_unknown(enum hk_dead_kind kind)
{
    return kind == HK_DEAD_RESTORE || kind == HK_DEAD_RESOLVE;
}

/* Would it be changed? The store decides when it comes to it. */
static void look_at(struct act *a, const struct hk_letter *letter)
{
    bool would = letter->sending_ms != 0 ? takes_unknown(a->o.kind)
                                         : (statuses_of(a->o.kind) & 1u << letter->status) != 0;
    if (would) {
        a->o.fit.n++;
        a->o.maybe += letter->possibly_delivered;
    } else {
        a->o.others.n++;
    }
}

/* Those that are on their way by a relay and those that were sent by hand have the same status: one has to look at each. */
static enum hk_code look_at_unknown(struct act *a, const struct hk_letter_query *query, struct hk_err *err)
{
    struct hk_letter_query retrying = *query;
    struct hk_letter_page page = {.limit = 1000, .oldest_first = true};
    const struct hk_letters *found = NULL;
    retrying.statuses = 1u << HK_LETTER_RETRYING;
    do {
        enum hk_code rc = a->desk->letters->list(a->desk->admin, &retrying, &page, &found, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < found->n; i++)
            look_at(a, &found->items[i]);
        page.after_id = found->last_id;
    } while (found->more);
    return HK_OK;
}

static enum hk_code look_at_matching(struct act *a, const struct hk_letter_query *query, struct hk_err *err)
{
    const unsigned retrying = 1u << HK_LETTER_RETRYING;
    unsigned asked = query->statuses != 0 ? query->statuses : (1u << HK_NLETTER_STATUSES) - 1;
    const struct hk_letter_groups *groups = NULL;
    struct hk_letter_query part = *query;
    enum hk_code rc = HK_OK;
    hk_letter_query_tells(&part, &a->caller);
    part.statuses = asked & statuses_of(a->o.kind);
    if (part.statuses != 0) {
        rc = a->desk->letters->groups(a->desk->admin, &part, 1, &groups, err);
        if (rc != HK_OK)
            return rc;
        a->o.fit = (struct hk_count){groups->letters, groups->partial};
        a->o.maybe = groups->maybe;
    }
    part.statuses = asked & ~statuses_of(a->o.kind) & ~(takes_unknown(a->o.kind) ? retrying : 0);
    if (part.statuses != 0)
        rc = a->desk->letters->count(a->desk->admin, &part, &a->o.others, err);
    if (rc == HK_OK && takes_unknown(a->o.kind) && (asked & retrying) != 0)
        rc = look_at_unknown(a, query, err);
    return rc;
}

/* Letters of the act that nobody has decided about since. */
static enum hk_code look_at_act(struct act *a, struct hk_err *err)
{
    const struct hk_audit_letters *letters = NULL;
    int64_t after = 0;
    do {
        enum hk_code rc =
            a->desk->letters->act_letters(a->desk->admin, a->o.undone, after, 1000, &letters, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < letters->n; i++) {
            after = letters->items[i].letter_id;
            *(letters->items[i].overtaken ? &a->o.others.n : &a->o.fit.n) += 1;
        }
    } while (letters->more);
    return HK_OK;
}

/* ---- which ---- */

/* One letter as it is in a list; NULL: it is not there. */
static enum hk_code find_row(struct act *a, int64_t id, const struct hk_letter **out, struct hk_err *err)
{
    const struct hk_letter_query query = {.first_id = id, .last_id = id};
    const struct hk_letters *found = NULL;
    enum hk_code rc =
        a->desk->letters->list(a->desk->admin, &query, &(struct hk_letter_page){.limit = 1}, &found, err);
    if (rc == HK_OK)
        *out = found->n > 0 ? &found->items[0] : NULL;
    return rc;
}

static enum hk_code look_at_named(struct act *a, const int64_t *ids, size_t n, struct hk_err *err)
{
    const struct hk_letter *letter = NULL;
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < n && rc == HK_OK; i++) {
        rc = find_row(a, ids[i], &letter, err);
        if (rc == HK_OK && letter)
            look_at(a, letter);
        else if (rc == HK_OK)
            count_done(a, &(struct hk_letter_done){.id = ids[i], .did = HK_DID_NOT_FIND});
    }
    return rc;
}

/* The letters of `ids` that may go; the others are refused. In place. */
static enum hk_code leave_out_drops(struct act *a, int64_t *ids, size_t *n, struct hk_err *err)
{
    const struct hk_letter *letter = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        enum hk_code rc = find_row(a, ids[i], &letter, err);
        if (rc != HK_OK)
            return rc;
        if (!letter || !refuse_drop(a, letter))
            ids[kept++] = ids[i];
    }
    *n = kept;
    return HK_OK;
}

/* Looks up all names before it changes anything. A name that no letter has is reported, and the others are changed. A name that several
 * letters have refuses the whole act, since it is unclear which one the caller wants. */
static enum hk_code do_named(struct act *a, const struct hk_texts *names, const char *destination,
                             struct hk_err *err)
{
    size_t n = 0;
    int64_t *ids = hk_pool_alloc(a->mem, names->n, sizeof *ids);
    enum hk_code rc = ids ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; i < names->n && rc == HK_OK; i++) {
        rc = hk_letter_find(a->desk, names->items[i], destination, &ids[n], err);
        if (rc == HK_OK)
            n++;
        if (rc != HK_NOTFOUND || a->o.kind == HK_DEAD_NOTE)
            continue;
        count_unknown(a, names->items[i]);
        rc = HK_OK;
    }
    if (rc != HK_OK || a->o.dry_run)
        return rc == HK_OK ? look_at_named(a, ids, n, err) : rc;
    a->o.one = names->n == 1;
    if (a->o.kind == HK_DEAD_REQUEUE && a->ids == HK_REQUEUE_SAME)
        rc = leave_out_drops(a, ids, &n, err);
    for (size_t i = 0; i < n && rc == HK_OK; i += HK_LETTER_ACTS_MAX)
        rc = do_ids(a, ids + i, n - i < HK_LETTER_ACTS_MAX ? n - i : HK_LETTER_ACTS_MAX, err);
    return rc;
}

/* Restore and erase alone are about letters that are not open. */
static bool means_any_status(enum hk_dead_kind kind)
{
    return kind == HK_DEAD_RESTORE || kind == HK_DEAD_ERASE;
}

static enum hk_code do_filter(struct act *a, struct hk_err *err)
{
    struct hk_letter_filter filter;
    enum hk_code rc = hk_letter_filter(a->desk, a->caller, &a->ask->words, means_any_status(a->o.kind),
                                       a->mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    a->filter = filter.text;
    if (filter.query.statuses == 0)
        filter.query.statuses = statuses_of(a->o.kind);
    rc = a->o.dry_run ? look_at_matching(a, &filter.query, err) : do_pages(a, &filter.query);
    hk_letter_filter_free(&filter);
    return rc;
}

/* The discard of many letters that is to be undone. */
static enum hk_code find_undone(struct act *a, char filter[HK_ACT_FILTER_MAX], uint64_t *out_letters,
                                struct hk_err *err)
{
    struct hk_audit_row row;
    enum hk_code rc = hk_act_find_done(a->desk, (int64_t)a->ask->act, "discard", a->mem, &row, filter, err);
    if (rc != HK_OK)
        return rc;
    if (row.letters == 0)
        return hk_err_set(err, HK_CONFLICT,
                          "act %" PRId64 " is about one letter: 'hikyaku dead restore %" PRId64 "'", row.id,
                          row.letter_id);
    a->o.undone = row.id;
    *out_letters = row.letters;
    a->filter = filter;
    return HK_OK;
}

/* Undoes one discard of many letters, and nothing else. */
static enum hk_code do_undo(struct act *a, struct hk_err *err)
{
    char filter[HK_ACT_FILTER_MAX];
    uint64_t letters = 0;
    enum hk_code rc = find_undone(a, filter, &letters, err);
    if (rc != HK_OK)
        return rc;
    return a->o.dry_run ? look_at_act(a, err) : do_pages(a, NULL);
}

static enum hk_code begin(struct act *a, enum hk_dead_kind kind, struct hk_err *err)
{
    a->room = HK_DEAD_ITEMS;
    a->o = (struct hk_dead_acted){.kind = kind,
                                  .dry_run = a->ask && a->ask->dry_run,
                                  .actor = a->caller->actor,
                                  .reason = a->caller->reason,
                                  .items = hk_pool_alloc(a->mem, HK_DEAD_ITEMS, sizeof *a->o.items)};
    return a->o.items ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code act_on(struct act a, enum hk_dead_kind kind, struct hk_dead_acted *out,
                           struct hk_err *err)
{
    a.ids = hk_requeue_ids(a.ask->same_id, a.ask->new_id);
    enum hk_code rc = begin(&a, kind, err);
    if (rc != HK_OK)
        return rc;
    if (a.ask->act != 0)
        rc = do_undo(&a, err);
    else if (a.ask->ids.n > 0)
        rc = do_named(&a, &a.ask->ids, a.ask->words.destination, err);
    else
        rc = do_filter(&a, err);
    if (rc == HK_OK)
        *out = a.o;
    return rc;
}

static enum hk_code check_act(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_dead_ask *ask = request;
    bool given = hk_letter_words_given(&ask->words);
    if (ask->act != 0 && (ask->ids.n > 0 || given))
        return hk_err_set(err, HK_INVALID,
                          "--act means the letters of that act: ids and filters do not go with it");
    if (ask->act == 0 && ask->ids.n == 0 && !given)
        return hk_err_set(err, HK_INVALID, "say which: ids, or --filter, --group, --reason-code …");
    if (ask->ids.n > 0 && hk_letter_words_beside_ids(&ask->words))
        return hk_err_set(err, HK_INVALID,
                          "ids or a filter, not both (--destination says which of a message's "
                          "letters is meant)");
    enum hk_code rc = hk_requeue_to_check(desk, ask->to, err);
    return rc == HK_OK ? hk_requeue_ids_check(ask->same_id, ask->new_id, err) : rc;
}

/* ---- as a job ---- */

/* Letters of a filter become those of the same filter at any time; ids are few, and done at once. */
static enum hk_code freeze(struct hk_desk *desk, const struct hk_caller *caller, struct hk_dead_ask *ask,
                           bool any_status, struct hk_pool *mem, struct hk_err *err)
{
    if (ask->ids.n > 0)
        return hk_err_set(err, HK_INVALID,
                          "letters that are named are few: leave out background, or give a filter");
    return ask->act != 0 ? HK_OK : hk_letter_words_freeze(desk, caller, &ask->words, any_status, mem, err);
}

static enum hk_code freeze_act(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                               struct hk_pool *mem, struct hk_err *err)
{
    return freeze(desk, caller, request, false, mem, err);
}

static enum hk_code freeze_restore(struct hk_desk *desk, const struct hk_caller *caller, void *request,
                                   struct hk_pool *mem, struct hk_err *err)
{
    return freeze(desk, caller, request, true, mem, err);
}

/* A job works on the letters that existed when it began: "ID of the last one it has read/ID of the last one to read". */
struct place {
    int64_t after, last;
};

static enum hk_code read_place(struct act *a, struct place *out, struct hk_err *err)
{
    const struct hk_letters *found = NULL;
    int64_t n[2] = {0, 0};
    bool begun = hk_job_numbers(a->run, '/', n, 2);
    *out = begun ? (struct place){.after = n[0], .last = n[1]} : (struct place){.after = 0};
    if (begun)
        return HK_OK;
    enum hk_code rc = a->desk->letters->list(a->desk->admin, &(struct hk_letter_query){.statuses = 0},
                                             &(struct hk_letter_page){.limit = 1}, &found, err);
    if (rc == HK_OK)
        out->last = found->n > 0 ? found->items[0].id : 0;
    return rc;
}

static enum hk_code count_letters(struct act *a, const struct hk_letter_query *query, struct hk_err *err)
{
    struct hk_count count = {.n = 0};
    if (a->run->cursor[0])
        return HK_OK;
    enum hk_code rc = a->desk->letters->count(a->desk->admin, query, &count, err);
    a->run->progress.total = count.n;
    return rc;
}

static enum hk_code batch_of_filter(struct act *a, struct place *at, struct hk_err *err)
{
    struct hk_letter_filter filter;
    enum hk_code rc = hk_letter_filter(a->desk, a->caller, &a->ask->words, means_any_status(a->o.kind),
                                       a->mem, &filter, err);
    if (rc != HK_OK)
        return rc;
    a->filter = filter.text;
    if (filter.query.statuses == 0)
        filter.query.statuses = statuses_of(a->o.kind);
    if (filter.query.last_id == 0 || filter.query.last_id > at->last)
        filter.query.last_id = at->last;
    if (at->last > 0) {
        rc = count_letters(a, &filter.query, err);
        if (rc == HK_OK)
            rc = do_page(a, &filter.query, &at->after, &a->run->more, err);
    }
    hk_letter_filter_free(&filter);
    return rc;
}

static enum hk_code batch_of_act(struct act *a, struct place *at, struct hk_err *err)
{
    char filter[HK_ACT_FILTER_MAX];
    enum hk_code rc = find_undone(a, filter, &a->run->progress.total, err);
    return rc == HK_OK ? do_act_page(a, &at->after, &a->run->more, err) : rc;
}

/* The results of the earlier batches, with room for more. */
static enum hk_code go_on(struct act *a, enum hk_dead_kind kind, const struct hk_dead_acted *before,
                          struct hk_err *err)
{
    struct hk_dead_item *items = hk_pool_alloc(a->mem, HK_JOB_ITEMS, sizeof *items);
    if (!items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    a->o = *before;
    a->o.n = before->n < HK_JOB_ITEMS ? before->n : HK_JOB_ITEMS;
    for (size_t i = 0; i < a->o.n; i++) {
        items[i] = before->items[i];
        a->texts += items[i].message_id.len;
    }
    a->o.items = items;
    a->room = before->n_all > a->o.n ? a->o.n : HK_JOB_ITEMS;
    a->o.kind = kind;
    a->o.dry_run = false;
    a->o.actor = a->caller->actor;
    a->o.reason = a->caller->reason;
    a->ids = hk_requeue_ids(a->ask->same_id, a->ask->new_id);
    return HK_OK;
}

static enum hk_code do_batch(struct act a, enum hk_dead_kind kind, struct hk_dead_acted *out,
                             struct hk_err *err)
{
    struct place at;
    enum hk_code rc = go_on(&a, kind, out, err);
    if (rc == HK_OK)
        rc = read_place(&a, &at, err);
    if (rc == HK_OK)
        rc = a.ask->act != 0 ? batch_of_act(&a, &at, err) : batch_of_filter(&a, &at, err);
    if (rc != HK_OK)
        return rc;
    struct hk_job_run *run = a.run;
    run->progress.done = a.o.done + a.o.nothing + a.o.missing + a.o.refused + a.o.overtaken;
    run->progress.changed = a.o.done;
    run->progress.failed = a.o.missing + a.o.refused;
    run->act_id = a.o.act_id;
    (void)snprintf(run->cursor, sizeof run->cursor, "%" PRId64 "/%" PRId64, at.after, at.last);
    *out = a.o;
    return HK_OK;
}

#define ACT_JOB(name, kind, freezes)                                                                         \
    static enum hk_code name##_batch(struct hk_job_run *run, const struct hk_caller *caller,                 \
                                     const void *request, struct hk_pool *mem, void *result,                 \
                                     struct hk_err *err)                                                     \
    {                                                                                                        \
        return do_batch(                                                                                     \
            (struct act){.desk = run->desk, .caller = caller, .ask = request, .mem = mem, .run = run}, kind, \
            result, err);                                                                                    \
    }                                                                                                        \
    static const struct hk_op_job name##_job = {                                                             \
        .forgets = (kind) == HK_DEAD_ERASE, .freeze = freezes, .batch = name##_batch};

ACT_JOB(requeue, HK_DEAD_REQUEUE, freeze_act)
ACT_JOB(resolve, HK_DEAD_RESOLVE, freeze_act)
ACT_JOB(discard, HK_DEAD_DISCARD, freeze_act)
ACT_JOB(restore, HK_DEAD_RESTORE, freeze_restore)
ACT_JOB(erase, HK_DEAD_ERASE, freeze_restore)

/* ---- the operations ---- */

#define ACT_OP(name, kind)                                                                                   \
    static enum hk_code name(struct hk_desk *desk, const struct hk_caller *caller, const void *request,      \
                             struct hk_pool *mem, void *result, struct hk_err *err)                          \
    {                                                                                                        \
        return act_on((struct act){.desk = desk, .caller = caller, .ask = request, .mem = mem}, kind,        \
                      result, err);                                                                          \
    }

ACT_OP(requeue_op, HK_DEAD_REQUEUE)
ACT_OP(resolve_op, HK_DEAD_RESOLVE)
ACT_OP(discard_op, HK_DEAD_DISCARD)
ACT_OP(restore_op, HK_DEAD_RESTORE)
ACT_OP(erase_op, HK_DEAD_ERASE)

/* The note is what others give as the reason. */
static enum hk_code note(struct hk_desk *desk, const struct hk_caller *caller,
                         const struct hk_dead_note_ask *ask, struct hk_pool *mem, struct hk_dead_acted *out,
                         struct hk_err *err)
{
    struct act a = {.desk = desk, .caller = caller, .mem = mem};
    enum hk_code rc = begin(&a, HK_DEAD_NOTE, err);
    a.o.reason = ask->text;
    if (rc == HK_OK)
        rc = do_named(&a, &(struct hk_texts){.items = &ask->id, .n = 1}, ask->destination, err);
    if (rc == HK_OK)
        *out = a.o;
    return rc;
}

static enum hk_code check_note(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_dead_note_ask *ask = request;
    (void)desk;
    if (hk_str_trim(hk_str_of(ask->text)).len == 0)
        return hk_err_set(err, HK_INVALID, "the note is empty");
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(note)

static const struct hk_arg requeue_args[] = {
    HK_MANY_IDS_ARG(hk_dead_ask),
    HK_REQUEUE_ID_ARGS(hk_dead_ask, same_id, new_id),
    HK_REQUEUE_TO_ARG(hk_dead_ask, to),
    HK_LETTER_WORDS(hk_dead_ask, words),
    HK_MANY_DRY_RUN_ARG(hk_dead_ask),
    {.name = "yes", .offset = offsetof(struct hk_dead_ask, yes), .help = "do not ask"},
    {.name = NULL}};

static const struct hk_arg act_args[] = {HK_MANY_IDS_ARG(hk_dead_ask),
                                         HK_LETTER_WORDS(hk_dead_ask, words),
                                         HK_MANY_DRY_RUN_ARG(hk_dead_ask),
                                         {.name = NULL}};

static const struct hk_arg restore_args[] = {
    HK_MANY_IDS_ARG(hk_dead_ask),
    HK_MANY_ACT_ARG(
        hk_dead_ask,
        "undo this discard of many letters, except those that somebody changed since (see audit list)"),
    HK_LETTER_WORDS_BY(hk_dead_ask, words, "discarded"),
    HK_MANY_DRY_RUN_ARG(hk_dead_ask),
    {.name = NULL}};

static const struct hk_arg note_args[] = {HK_LETTER_SUBJECT(hk_dead_note_ask, id),
                                          {.name = "text",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_dead_note_ask, text),
                                           .value = "TEXT"},
                                          HK_LETTER_DESTINATION(hk_dead_note_ask, destination),
                                          {.name = NULL}};

#define ACT_ROW(word, says, more, list, does, batches, may)                                                  \
    {                                                                                                        \
        .noun = "dead", .verb = (word), .summary = (says), .details = (more),                                \
        .route = "POST /dead-letters/" word, .role = (may), .store = true, .changes = true,                  \
        .needs_reason = true, .is_long = true, .job = &(batches), .args = (list),                            \
        .request_size = sizeof(struct hk_dead_ask), .result_size = sizeof(struct hk_dead_acted),             \
        .check = check_act, .run = (does), .form = hk_form_dead_acted                                        \
    }

const struct hk_op hk_op_dead_requeue = ACT_ROW(
    "requeue", "put letters back into the outbox, due now, attempts from 0",
    "Requeues letters by id, group or filter. A repeated command sends none twice. For many letters, with a rate and a canary:\n"
    "redrive start. --to moves the letters to another destination.",
    requeue_args, requeue_op, requeue_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_dead_resolve =
    ACT_ROW("resolve", "mark letters as settled by other means; the reason is kept", NULL, act_args,
            resolve_op, resolve_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_dead_discard =
    ACT_ROW("discard", "discard letters: the record is kept, and restore brings it back until retention ends",
            NULL, act_args, discard_op, discard_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_dead_restore =
    ACT_ROW("restore", "reopen dead letters that were discarded, or sent by hand with an unknown outcome",
            "--act ID undoes one discard of many letters: those that nobody has decided about since.",
            restore_args, restore_op, restore_job, HK_ROLE_OPERATOR);

const struct hk_op hk_op_dead_erase = ACT_ROW(
    "erase", "erase the stored payloads, headers and responses of dead letters",
    "The record stays: ids, times, reason, attempts and their outcome, and who erased it. Cannot be undone. An\n"
    "open letter is discarded. All else that is kept of the message goes with it, as by 'messages erase'.",
    act_args, erase_op, erase_job, HK_ROLE_ADMIN);

const struct hk_op hk_op_dead_note = {.noun = "dead",
                                      .verb = "note",
                                      .summary = "add a note to a dead letter",
                                      .route = "POST /dead-letters/{id}/note",
                                      .role = HK_ROLE_OPERATOR,
                                      .store = true,
                                      .changes = true,
                                      .args = note_args,
                                      .request_size = sizeof(struct hk_dead_note_ask),
                                      .result_size = sizeof(struct hk_dead_acted),
                                      .check = check_note,
                                      .run = note_op,
                                      .form = hk_form_dead_acted};
