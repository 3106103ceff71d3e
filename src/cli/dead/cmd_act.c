/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku dead requeue, resolve, discard, restore, note: acts on letters that are named, or on all that fit. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/dead/dead.h"
#include "cli/interrupt.h"
#include "cli/out.h"
#include "cli/settings.h"
#include "cli/table.h"

#define ITEMS_SHOWN 1000 /* of --json; the numbers are of all */

enum kind {
    REQUEUE,
    RESOLVE,
    DISCARD,
    RESTORE,
    NOTE
};

static const struct words {
    const char *verb, *done, *nothing;
} words[] = {
    [REQUEUE] = {"requeue", "requeued", "on its way already"},
    [RESOLVE] = {"resolve", "resolved", "resolved already"},
    [DISCARD] = {"discard", "discarded; restore brings it back", "discarded already"},
    [RESTORE] = {"restore", "open again", "open already"},
    [NOTE] = {"note", "noted", ""},
};

struct act {
    const struct hk_cli *cli;
    struct hk_dead dead;
    enum kind kind;
    enum hk_requeue_id ids;
    const char *actor, *reason;
    const char *filter; /* for the audit; NULL = letters were named */
    int64_t act_id;     /* in the audit; 0 = none yet, or one letter was named */
    bool as_json, one;  /* one letter was named: it is told of it alone */
    uint64_t done, nothing, missing, refused;
    uint64_t overtaken; /* of an act that is undone: somebody has decided about them since */
    struct hk_buf text; /* for reading: what was refused; or the items of a JSON array */
    struct hk_json items;
    uint64_t n_items;
};

/* ---- what is told ---- */

static const char *why_refused(const struct act *a, const struct hk_letter_done *d)
{
    if (d->sending)
        return "it was sent by hand and the outcome is not known: look whether it arrived, then resolve it, or restore it to "
               "try again";
    switch (d->status) {
    case HK_LETTER_FAILED:
        return a->kind == RESTORE ? "it is open" : "it is open, and that does not allow it";
    case HK_LETTER_RETRYING:
        return "it is on its way (retrying): wait for the outcome";
    case HK_LETTER_RESOLVED:
        return "it is resolved";
    case HK_LETTER_DISCARDED:
        return "it was discarded: restore it first";
    case HK_NLETTER_STATUSES:
        break;
    }
    return "its state does not allow it";
}

static const char *did_name(enum hk_letter_did did)
{
    switch (did) {
    case HK_DID_IT:
        return "done";
    case HK_DID_NOTHING:
        return "unchanged";
    case HK_DID_NOT_FIND:
        return "missing";
    case HK_DID_REFUSE:
        return "refused";
    }
    return "refused";
}

static void add_item(struct act *a, int64_t id, enum hk_letter_did did, struct hk_str message_id,
                     const char *why)
{
    if (a->n_items++ >= ITEMS_SHOWN)
        return;
    if (a->as_json) {
        hk_json_object(&a->items);
        hk_put_id(&a->items, "id", id);
        hk_put_cstr(&a->items, "did", did_name(did));
        if (a->kind == REQUEUE)
            hk_put_str(&a->items, "message_id", message_id);
        hk_put_cstr(&a->items, "error", why);
        hk_json_end(&a->items);
    } else if (why != NULL) {
        (void)hk_buf_addf(&a->text, "%" PRId64 ": %s\n", id, why);
    } else if (a->one || a->n_items <= 1) {
        (void)hk_buf_addf(&a->text, "%" PRId64 ": %s", id,
                          did == HK_DID_IT ? words[a->kind].done : words[a->kind].nothing);
        if (a->kind == REQUEUE && did == HK_DID_IT) {
            (void)hk_buf_adds(&a->text, " as ");
            (void)hk_table_safe(&a->text, message_id, 200);
        }
        (void)hk_buf_addc(&a->text, '\n');
    }
}

static void count(struct act *a, const struct hk_letter_done *d)
{
    const char *why = NULL;
    switch (d->did) {
    case HK_DID_IT:
        a->done++;
        break;
    case HK_DID_NOTHING:
        a->nothing++;
        break;
    case HK_DID_NOT_FIND:
        a->missing++;
        why = "there is no such letter";
        break;
    case HK_DID_REFUSE:
        a->refused++;
        why = why_refused(a, d);
        break;
    }
    add_item(a, d->id, d->did, d->message_id, why);
}

static void say_act(const struct act *a, struct hk_buf *out)
{
    if (a->act_id != 0)
        (void)hk_buf_addf(out, "act %" PRId64 ": 'hikyaku audit show %" PRId64 "' lists the letters%s\n",
                          a->act_id, a->act_id,
                          a->kind == DISCARD ? "; 'hikyaku dead restore --act' with it undoes it" : "");
}

static int report(struct act *a)
{
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (a->as_json) {
        hk_json_end(&a->items);
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_cstr(&json, "act", words[a->kind].verb);
        hk_put_u64(&json, "changed", a->done);
        hk_put_u64(&json, "unchanged", a->nothing);
        hk_put_u64(&json, "missing", a->missing);
        hk_put_u64(&json, "refused", a->refused);
        if (a->kind == RESTORE)
            hk_put_u64(&json, "overtaken", a->overtaken);
        hk_put_id(&json, "act_id", a->act_id);
        hk_put_cstr(&json, "actor", a->actor);
        hk_put_cstr(&json, "reason", a->reason);
        hk_json_key(&json, "items");
        hk_buf_inherit(&out, &a->text);
        hk_json_raw(&json, hk_buf_str(&a->text));
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        hk_buf_inherit(&out, &a->text);
        if (a->one || a->n_items <= 1 || a->refused + a->missing > 0)
            (void)hk_buf_add(&out, hk_buf_cstr(&a->text), a->text.len);
        if (a->n_items != 1)
            (void)hk_buf_addf(&out,
                              "%" PRIu64 " changed, %" PRIu64 " unchanged, %" PRIu64 " refused, %" PRIu64
                              " missing\n",
                              a->done, a->nothing, a->refused, a->missing);
        if (a->overtaken > 0)
            (void)hk_buf_addf(&out,
                              "%" PRIu64 " were left as they are: somebody has decided about them since\n",
                              a->overtaken);
        say_act(a, &out);
    }
    int code = hk_out_buffer(&out);
    return code == HK_EXIT_OK && a->refused + a->missing > 0 ? HK_EXIT_FAILURE : code;
}

/* ---- doing ---- */

static enum hk_code call(struct act *a, const struct hk_letter_act *act, const struct hk_letters_done **done,
                         struct hk_err *err)
{
    const struct hk_store_letters_ops *ops = a->dead.letters;
    struct hk_admin *admin = a->dead.op.admin;
    bool even_so = a->ids == HK_REQUEUE_SAME && hk_args_flag(a->cli, "yes");
    switch (a->kind) {
    case REQUEUE:
        return ops->requeue(admin, act, even_so ? HK_REQUEUE_SAME_ALWAYS : a->ids, done, err);
    case RESOLVE:
        return ops->resolve(admin, act, done, err);
    case DISCARD:
        return ops->discard(admin, act, done, err);
    case RESTORE:
        return ops->restore(admin, act, done, err);
    case NOTE:
        break;
    }
    return ops->remark(admin, act, "note", done, err);
}

static enum hk_code do_ids(struct act *a, const int64_t *ids, size_t n, struct hk_err *err)
{
    const struct hk_letters_done *done = NULL;
    struct hk_letter_act act = {
        .ids = ids, .n = n, .actor = a->actor, .reason = a->reason, .filter = a->filter, .act_id = a->act_id};
    enum hk_code rc = n > 0 ? call(a, &act, &done, err) : HK_OK;
    for (size_t i = 0; rc == HK_OK && n > 0 && i < done->n; i++)
        count(a, &done->items[i]);
    if (rc == HK_OK && n > 0)
        a->act_id = done->act_id;
    return rc;
}

/* The receiver would take it for a repeat and drop what was changed. */
static bool is_drop(const struct act *a, const struct hk_letter *letter)
{
    return a->kind == REQUEUE && a->ids == HK_REQUEUE_SAME && letter->version > 1 &&
           letter->possibly_delivered && !hk_args_flag(a->cli, "yes");
}

static void refuse_drop(struct act *a, const struct hk_letter *letter)
{
    a->refused++;
    add_item(
        a, letter->id, HK_DID_REFUSE, letter->message_id,
        "it was edited, and an earlier attempt may have arrived: under the same id the receiver would drop it as a "
        "repeat; use --new-id, or --yes if you know better");
}

static void warn_same(const struct act *a, const struct hk_letter *letter)
{
    if (a->kind == REQUEUE && a->ids == HK_REQUEUE_SAME && letter->version > 1)
        (void)hk_out_error(
            HK_EXIT_OK,
            "%" PRId64
            " was edited and goes out under the same id: a receiver that has seen that id drops it",
            letter->id);
}

/* One page of what fits: which are acted on is decided here, what is done by the store. */
static enum hk_code do_page(struct act *a, const struct hk_letter_query *query, struct hk_letter_page *page,
                            bool *more, struct hk_err *err)
{
    const struct hk_letters *found = NULL;
    int64_t ids[HK_LETTER_ACTS_MAX];
    size_t n = 0;
    enum hk_code rc = a->dead.letters->list(a->dead.op.admin, query, page, &found, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < found->n; i++) {
        if (is_drop(a, &found->items[i])) {
            refuse_drop(a, &found->items[i]);
            continue;
        }
        if (a->one)
            warn_same(a, &found->items[i]);
        ids[n++] = found->items[i].id;
    }
    page->after_id = found->last_id;
    *more = found->more;
    return do_ids(a, ids, n, err);
}

/* One page of an act that is undone. `*after` is the last letter that was looked at. */
static enum hk_code do_act_page(struct act *a, int64_t act_id, int64_t *after, bool *more, struct hk_err *err)
{
    const struct hk_audit_letters *letters = NULL;
    int64_t ids[HK_LETTER_ACTS_MAX];
    size_t n = 0;
    enum hk_code rc =
        a->dead.letters->act_letters(a->dead.op.admin, act_id, *after, HK_LETTER_ACTS_MAX, &letters, err);
    if (rc != HK_OK)
        return rc;
    for (size_t i = 0; i < letters->n; i++) {
        *after = letters->items[i].letter_id;
        if (letters->items[i].overtaken)
            a->overtaken++;
        else
            ids[n++] = *after;
    }
    *more = letters->more;
    return do_ids(a, ids, n, err);
}

/* Page by page, each in a transaction of its own: what the query means, or the letters of an act that is undone. */
static enum hk_code do_pages(struct act *a, const struct hk_letter_query *query, int64_t undo,
                             struct hk_err *err)
{
    struct hk_letter_page page = {.limit = HK_LETTER_ACTS_MAX, .oldest_first = true};
    bool more = true, progress = isatty(STDERR_FILENO) == 1, told = false;
    int64_t after = 0;
    enum hk_code rc = HK_OK;
    hk_interrupt_catch();
    while (rc == HK_OK && more) {
        rc = undo != 0 ? do_act_page(a, undo, &after, &more, err) : do_page(a, query, &page, &more, err);
        if (progress && more) {
            (void)fprintf(stderr, "\r%" PRIu64 " changed", a->done);
            told = true;
        }
        if (rc == HK_OK && more && hk_interrupted())
            rc = hk_err_set(err, HK_CANCELLED, "interrupted: the same command goes on with the rest");
    }
    if (told)
        (void)fprintf(stderr, "\n");
    return rc;
}

static int do_all(struct act *a, const struct hk_letter_query *query, int64_t undo)
{
    struct hk_err err = {.message = ""};
    if (do_pages(a, query, undo, &err) == HK_OK)
        return report(a);
    struct hk_buf text;
    hk_buf_init(&text, 4096);
    say_act(a, &text);
    (void)hk_out_error(HK_EXIT_FAILURE, "stopped after %" PRIu64 " letters were changed; %s", a->done,
                       hk_buf_cstr(&text));
    hk_buf_fini(&text);
    return hk_operate_failed(&err);
}

/* ---- which ---- */

/* Which states an act works on. */
static unsigned statuses_of(enum kind kind)
{
    return 1u << (kind == RESTORE ? HK_LETTER_DISCARDED : HK_LETTER_FAILED);
}

/* Also a send by hand whose outcome nobody knows? Such letters are `retrying`. */
static bool takes_unknown(enum kind kind)
{
    return kind == RESTORE || kind == RESOLVE;
}

/* Would it be changed? The store decides when it comes to it. */
static bool would_change(const struct act *a, const struct hk_letter *letter)
{
    return letter->sending_ms != 0 ? takes_unknown(a->kind)
                                   : (statuses_of(a->kind) & 1u << letter->status) != 0;
}

/* What an act would meet. */
struct outlook {
    struct hk_count fit;    /* letters that it would change */
    uint64_t maybe;         /* of them may have arrived */
    struct hk_count others; /* letters that are meant, but in a state that does not allow it */
};

static void look_at(const struct act *a, const struct hk_letter *letter, struct outlook *out)
{
    if (would_change(a, letter)) {
        out->fit.n++;
        out->maybe += letter->possibly_delivered;
    } else {
        out->others.n++;
    }
}

/* Those that are on their way by a relay and those that were sent by hand have the same status: one has to look at each. */
static enum hk_code look_at_unknown(struct act *a, const struct hk_letter_query *query, struct outlook *out,
                                    struct hk_err *err)
{
    struct hk_letter_query retrying = *query;
    struct hk_letter_page page = {.limit = 1000, .oldest_first = true};
    const struct hk_letters *found = NULL;
    retrying.statuses = 1u << HK_LETTER_RETRYING;
    do {
        enum hk_code rc = a->dead.letters->list(a->dead.op.admin, &retrying, &page, &found, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < found->n; i++)
            look_at(a, &found->items[i], out);
        page.after_id = found->last_id;
    } while (found->more);
    return HK_OK;
}

static enum hk_code look_at_matching(struct act *a, const struct hk_letter_query *query, struct outlook *out,
                                     struct hk_err *err)
{
    const unsigned retrying = 1u << HK_LETTER_RETRYING;
    unsigned asked = query->statuses != 0 ? query->statuses : (1u << HK_NLETTER_STATUSES) - 1;
    const struct hk_letter_groups *groups = NULL;
    struct hk_letter_query part = *query;
    struct hk_dead_seen seen;
    enum hk_code rc = HK_OK;
    part.statuses = asked & statuses_of(a->kind);
    if (part.statuses != 0) {
        hk_dead_seen_begin(&seen, &part);
        rc = a->dead.letters->groups(a->dead.op.admin, &part, 1, &groups, err);
        hk_dead_seen_end(&seen);
        if (rc != HK_OK)
            return rc;
        out->fit = (struct hk_count){groups->letters, groups->partial};
        out->maybe = groups->maybe;
    }
    part.statuses = asked & ~statuses_of(a->kind) & ~(takes_unknown(a->kind) ? retrying : 0);
    if (part.statuses != 0)
        rc = hk_dead_count(&a->dead, &part, &out->others, err);
    if (rc == HK_OK && takes_unknown(a->kind) && (asked & retrying) != 0)
        rc = look_at_unknown(a, query, out, err);
    return rc;
}

static int say_dry_run(const struct act *a, const struct outlook *seen)
{
    char number[48];
    struct hk_buf out;
    struct hk_json json;
    hk_buf_init(&out, HK_OPERATE_OUTPUT_MAX);
    if (a->as_json) {
        hk_json_init(&json, &out, true);
        hk_json_object(&json);
        hk_put_cstr(&json, "act", words[a->kind].verb);
        hk_put_bool(&json, "dry_run", true);
        hk_put_count(&json, "letters", seen->fit);
        hk_put_u64(&json, "may_have_arrived", seen->maybe);
        hk_put_count(&json, "other_states", seen->others);
        hk_json_end(&json);
        (void)hk_buf_addc(&out, '\n');
    } else {
        (void)hk_buf_addf(&out, "%s letters would be %s", hk_operate_count(seen->fit, number),
                          a->kind == DISCARD ? "discarded" : words[a->kind].done);
        hk_dead_maybe(&out, seen->maybe);
        if (seen->others.n > 0)
            (void)hk_buf_addf(&out, "; %s are in a state that does not allow it and would stay as they are",
                              hk_operate_count(seen->others, number));
        (void)hk_buf_addc(&out, '\n');
    }
    return hk_out_buffer(&out);
}

static int look_at_named(struct act *a, const int64_t *ids, size_t n)
{
    struct hk_err err = {.message = ""};
    struct outlook seen = {.maybe = 0};
    bool missing = false;
    for (size_t i = 0; i < n; i++) {
        const struct hk_letters *found = NULL;
        struct hk_letter_query query = {.first_id = ids[i], .last_id = ids[i]};
        if (a->dead.letters->list(a->dead.op.admin, &query, &(struct hk_letter_page){.limit = 1}, &found,
                                  &err) != HK_OK)
            return hk_operate_failed(&err);
        if (found->n > 0) {
            look_at(a, &found->items[0], &seen);
        } else {
            missing = true;
            (void)hk_out_error(HK_EXIT_FAILURE, "%" PRId64 ": there is no such letter", ids[i]);
        }
    }
    int code = say_dry_run(a, &seen);
    return missing && code == HK_EXIT_OK ? HK_EXIT_FAILURE : code;
}

/* The letters of `ids` that may go; the others are refused. In place. */
static enum hk_code leave_out_drops(struct act *a, int64_t *ids, size_t *n, struct hk_err *err)
{
    size_t kept = 0;
    for (size_t i = 0; i < *n; i++) {
        const struct hk_letters *found = NULL;
        struct hk_letter_query query = {.first_id = ids[i], .last_id = ids[i]};
        enum hk_code rc = a->dead.letters->list(a->dead.op.admin, &query,
                                                &(struct hk_letter_page){.limit = 1}, &found, err);
        if (rc != HK_OK)
            return rc;
        if (found->n > 0 && is_drop(a, &found->items[0])) {
            refuse_drop(a, &found->items[0]);
            continue;
        }
        if (found->n > 0 && a->one)
            warn_same(a, &found->items[0]);
        ids[kept++] = ids[i];
    }
    *n = kept;
    return HK_OK;
}

static int do_each(struct act *a, int64_t *ids, size_t n)
{
    struct hk_err err = {.message = ""};
    a->one = n == 1;
    enum hk_code rc = HK_OK;
    if (a->kind == REQUEUE && a->ids == HK_REQUEUE_SAME)
        rc = leave_out_drops(a, ids, &n, &err);
    for (size_t i = 0; i < n && rc == HK_OK; i += HK_LETTER_ACTS_MAX)
        rc = do_ids(a, ids + i, n - i < HK_LETTER_ACTS_MAX ? n - i : HK_LETTER_ACTS_MAX, &err);
    return rc == HK_OK ? report(a) : hk_operate_failed(&err);
}

/* All names are looked up before anything is changed: a word that is wrong leaves nothing half done. */
static int do_named(struct act *a, size_t n)
{
    int64_t *ids = hk_mem_zalloc(n, sizeof *ids);
    if (!ids)
        return hk_out_error(HK_EXIT_FAILURE, "out of memory");
    int code = HK_EXIT_OK;
    for (size_t i = 0; i < n && code == HK_EXIT_OK; i++)
        code = hk_dead_find(a->cli, &a->dead, a->cli->operands[i], &ids[i]);
    if (code == HK_EXIT_OK)
        code = hk_args_flag(a->cli, "dry-run") ? look_at_named(a, ids, n) : do_each(a, ids, n);
    hk_mem_free(ids);
    return code;
}

static int do_filter(struct act *a, struct hk_dead_filter *filter)
{
    struct hk_err err = {.message = ""};
    struct outlook seen = {.maybe = 0};
    char number[48], question[128];
    if (filter->query.statuses == 0) /* restore alone asks for what it is about */
        filter->query.statuses = 1u << HK_LETTER_DISCARDED;
    if (look_at_matching(a, &filter->query, &seen, &err) != HK_OK)
        return hk_operate_failed(&err);
    if (hk_args_flag(a->cli, "dry-run"))
        return say_dry_run(a, &seen);
    (void)snprintf(question, sizeof question, "%s: %s dead letters?", words[a->kind].verb,
                   hk_operate_count(seen.fit, number));
    int code = seen.fit.n > 0 ? hk_dead_confirm(a->cli, question) : HK_EXIT_OK;
    a->filter = hk_buf_cstr(&filter->text);
    return code == HK_EXIT_OK ? do_all(a, &filter->query, 0) : code;
}

/* Letters of the act that nobody has decided about since. */
static enum hk_code look_at_act(struct act *a, int64_t act_id, struct outlook *out, struct hk_err *err)
{
    const struct hk_audit_letters *letters = NULL;
    int64_t after = 0;
    do {
        enum hk_code rc = a->dead.letters->act_letters(a->dead.op.admin, act_id, after, 1000, &letters, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < letters->n; i++) {
            after = letters->items[i].letter_id;
            *(letters->items[i].overtaken ? &out->others.n : &out->fit.n) += 1;
        }
    } while (letters->more);
    return HK_OK;
}

/* Undoes one discard of many letters, and nothing else. */
static int do_undo(struct act *a, int64_t id)
{
    struct hk_audit_row found;
    const struct hk_audit_row *row = &found;
    struct hk_err err = {.message = ""};
    struct outlook seen = {.maybe = 0};
    char number[48], question[160], filter[40];
    int code = hk_dead_find_act(&a->dead, id, &found);
    if (code != HK_EXIT_OK)
        return code;
    id = row->id;
    if (!hk_str_eq(row->act, hk_str_of("discard")))
        return hk_out_error(HK_EXIT_FAILURE, "act %" PRId64 " is a %.*s: only a discard can be undone", id,
                            (int)(row->act.len < 40 ? row->act.len : 40), row->act.ptr);
    if (row->letters == 0)
        return hk_out_error(HK_EXIT_FAILURE,
                            "act %" PRId64 " is about one letter: 'hikyaku dead restore %" PRId64 "'", id,
                            row->letter_id);
    if (look_at_act(a, id, &seen, &err) != HK_OK)
        return hk_operate_failed(&err);
    if (hk_args_flag(a->cli, "dry-run"))
        return say_dry_run(a, &seen);
    (void)snprintf(question, sizeof question, "restore: %s dead letters of act %" PRId64 "?",
                   hk_operate_count(seen.fit, number), id);
    (void)snprintf(filter, sizeof filter, "act:%" PRId64, id);
    a->filter = filter;
    code = seen.fit.n > 0 ? hk_dead_confirm(a->cli, question) : HK_EXIT_OK;
    return code == HK_EXIT_OK ? do_all(a, NULL, id) : code;
}

static int run(struct act *a, size_t n_named, int64_t undo)
{
    struct hk_dead_filter filter = {.parsed = NULL};
    int code = HK_EXIT_OK;
    bool filtered = n_named == 0 && undo == 0;
    if (filtered)
        code = hk_dead_filter(a->cli, a->kind == RESTORE, &filter);
    if (code != HK_EXIT_OK)
        return code;
    code = hk_dead_open(a->cli, &a->dead);
    if (code == HK_EXIT_OK) {
        hk_buf_init(&a->text, HK_OPERATE_OUTPUT_MAX);
        if (a->as_json) {
            hk_json_init(&a->items, &a->text, false);
            hk_json_array(&a->items);
        }
        code = undo != 0 ? do_undo(a, undo) : n_named > 0 ? do_named(a, n_named) : do_filter(a, &filter);
        hk_buf_fini(&a->text);
        hk_dead_close(&a->dead);
    }
    if (filtered)
        hk_dead_filter_free(&filter);
    return code;
}

static int act_on(const struct hk_cli *cli, enum kind kind, enum hk_requeue_id ids)
{
    char actor[HK_ACTOR_MAX], reason[HK_REASON_TEXT_MAX];
    struct act a = {.cli = cli,
                    .kind = kind,
                    .ids = ids,
                    .actor = hk_settings_actor(cli, actor),
                    .as_json = hk_args_flag(cli, "json")};
    uint64_t undo = 0;
    if (kind == RESTORE && !hk_args_u64(cli, "act", 1, INT64_MAX, &undo))
        return HK_EXIT_USAGE;
    if (undo != 0 && (cli->n_operands > 0 || hk_dead_filter_given(cli)))
        return hk_out_error(HK_EXIT_USAGE,
                            "--act means the letters of that act: ids and filters do not go with it");
    if (undo == 0 && cli->n_operands == 0 && !hk_dead_filter_given(cli))
        return hk_out_error(HK_EXIT_USAGE, "say which: ids, or --filter, --group, --reason-code …");
    if (cli->n_operands > 0 && hk_dead_filter_beside_ids(cli))
        return hk_out_error(HK_EXIT_USAGE,
                            "ids or a filter, not both (--destination says which of a message's "
                            "letters is meant)");
    a.reason = hk_args_flag(cli, "dry-run") ? "" : hk_operate_reason(cli, reason);
    return a.reason == NULL ? HK_EXIT_USAGE : run(&a, cli->n_operands, (int64_t)undo);
}

int hk_cmd_dead_requeue(struct hk_cli *cli)
{
    enum hk_requeue_id ids = HK_REQUEUE_AUTO;
    return hk_dead_ids(cli, &ids) ? act_on(cli, REQUEUE, ids) : HK_EXIT_USAGE;
}

int hk_cmd_dead_resolve(struct hk_cli *cli)
{
    return act_on(cli, RESOLVE, HK_REQUEUE_AUTO);
}

int hk_cmd_dead_discard(struct hk_cli *cli)
{
    return act_on(cli, DISCARD, HK_REQUEUE_AUTO);
}

int hk_cmd_dead_restore(struct hk_cli *cli)
{
    return act_on(cli, RESTORE, HK_REQUEUE_AUTO);
}

/* The note is what others give as the reason. */
int hk_cmd_dead_note(struct hk_cli *cli)
{
    char actor[HK_ACTOR_MAX];
    struct act a = {.cli = cli,
                    .kind = NOTE,
                    .actor = hk_settings_actor(cli, actor),
                    .reason = cli->operands[1],
                    .as_json = hk_args_flag(cli, "json")};
    if (hk_str_trim(hk_str_of(a.reason)).len == 0)
        return hk_out_error(HK_EXIT_USAGE, "the note is empty");
    return run(&a, 1, 0);
}
