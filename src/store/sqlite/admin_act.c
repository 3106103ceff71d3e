/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on live messages: cancel and retry.
 *
 * outbox has no index on message_id (every INSERT of every application would pay for it), so that a message there is
 * looked for by reading the table: before the write lock is taken, not under it. Under the lock the rows that were found
 * are looked at again by id; retry rows, which may be where they have gone meanwhile, through their index. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "store/sqlite/admin.h"

enum {
    TARGETS_MAX = 1000 /* rows of one message_id and destination */
};

struct target {
    enum hk_place place; /* HK_IN_RETRY or HK_IN_OUTBOX */
    int64_t id;
    struct hk_str destination;
    int64_t due_ms; /* 0 = at once */
    bool tried;
    bool in_flight;
    struct hk_str relay; /* in_flight: who has it */
    int64_t until_ms;
};

struct targets {
    struct target *items;
    size_t n, room;
};

static struct target *add(struct hk_store *store, struct targets *targets)
{
    struct target *items = hk_sa_grow(store, targets->items, targets->n, &targets->room, sizeof *items);
    if (!items)
        return NULL;
    targets->items = items;
    items[targets->n] = (struct target){.relay = {"", 0}};
    return &items[targets->n++];
}

/* ---- finding ---- */

/* Ids only; the rest is read under the lock. */
static void find_in_outbox(struct hk_store *store, const char *message_id, struct targets *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIND_IN_OUTBOX]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, TARGETS_MAX);
    while (hk_sq_row(store, q)) {
        struct target *t = add(store, out);
        if (!t)
            break;
        t->place = HK_IN_OUTBOX;
        t->id = sqlite3_column_int64(q, 0);
    }
    sqlite3_finalize(q);
}

static void read_holder(struct hk_store *store, sqlite3_stmt *q, struct target *t)
{
    if (!hk_sq_row(store, q))
        return;
    t->in_flight = true;
    t->relay = hk_sa_text(store, q, 0, HK_SHOW_MAX);
    t->until_ms = sqlite3_column_int64(q, 1);
}

/* Does a manifest name this row of outbox? */
static void find_manifest(struct hk_store *store, struct target *t)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIND_MANIFEST]);
    hk_sq_bind_i64(store, q, 1, t->id);
    read_holder(store, q, t);
    sqlite3_finalize(q);
}

static void find_claim(struct hk_store *store, int64_t claim, struct target *t)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIND_CLAIM]);
    hk_sq_bind_i64(store, q, 1, claim);
    read_holder(store, q, t);
    sqlite3_finalize(q);
    t->in_flight = true; /* whoever it is */
}

/* False: it is gone. */
static bool reread_outbox(struct hk_store *store, const char *message_id, struct target *t)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_REREAD_OUTBOX]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, t->id);
    bool there = hk_sq_row(store, q);
    if (there) {
        t->destination = hk_sa_text(store, q, 0, HK_SA_TEXT_MAX);
        t->due_ms = hk_sa_time(q, 1);
    }
    sqlite3_finalize(q);
    if (there)
        find_manifest(store, t);
    return there;
}

static void find_in_retry(struct hk_store *store, const char *message_id, struct targets *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_FIND_IN_RETRY]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, TARGETS_MAX);
    while (hk_sq_row(store, q)) {
        struct target *t = add(store, out);
        if (!t)
            break;
        t->place = HK_IN_RETRY;
        t->id = sqlite3_column_int64(q, 0);
        t->destination = hk_sa_text(store, q, 1, HK_SA_TEXT_MAX);
        t->due_ms = sqlite3_column_int64(q, 2);
        t->tried = sqlite3_column_int(q, 4) != 0;
        if (sqlite3_column_type(q, 3) != SQLITE_NULL)
            find_claim(store, sqlite3_column_int64(q, 3), t);
    }
    sqlite3_finalize(q);
}

/* Under the lock: what is there now, and is meant. */
static void look_again(struct hk_store *store, const struct hk_act *act, struct targets *targets)
{
    struct targets now = {.items = NULL};
    for (size_t i = 0; i < targets->n; i++)
        if (reread_outbox(store, act->message_id, &targets->items[i])) {
            struct target *t = add(store, &now);
            if (t)
                *t = targets->items[i];
        }
    find_in_retry(store, act->message_id, &now);
    size_t kept = 0;
    for (size_t i = 0; i < now.n; i++)
        if (!act->destination || hk_str_eq(now.items[i].destination, hk_str_of(act->destination)))
            now.items[kept++] = now.items[i];
    now.n = kept;
    *targets = now;
}

/* ---- refusing ---- */

static bool is_in(struct hk_store *store, const char *sql, const struct hk_act *act)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_cstr(store, q, 1, act->message_id);
    hk_sq_bind_text_or_null(store, q, 2, hk_str_of(act->destination));
    bool found = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return found;
}

/* It is not live: what has become of it? */
static enum hk_code refuse_missing(struct hk_store *store, const struct hk_act *act, struct hk_err *err)
{
    const struct {
        const char *sql, *said;
    } ends[] = {
        {hk_sa_texts[HK_SA_IS_DEAD], "is a dead letter"},
        {hk_sa_texts[HK_SA_IS_CANCELLED], "was cancelled"},
        {hk_sa_texts[HK_SA_IS_SENT], "was sent"},
    };

    char shown[HK_SHOW_MAX], at[HK_SHOW_MAX];
    hk_show(hk_str_of(act->message_id), shown);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        if (is_in(store, ends[i].sql, act))
            return hk_err_set(err, HK_CONFLICT,
                              "message %s %s: only a pending or retrying one can be changed", shown,
                              ends[i].said);
    if (act->destination)
        return hk_err_set(err, HK_NOTFOUND, "there is no message %s for destination %s", shown,
                          hk_show(hk_str_of(act->destination), at));
    return hk_err_set(err, HK_NOTFOUND, "there is no message %s", shown);
}

static enum hk_code refuse_in_flight(const struct target *t, const struct hk_act *act, int64_t now_ms,
                                     struct hk_err *err)
{
    char shown[HK_SHOW_MAX], relay[HK_SHOW_MAX];
    hk_show(hk_str_of(act->message_id), shown);
    hk_show(t->relay, relay);
    if (t->relay.len && t->until_ms <= now_ms)
        return hk_err_set(
            err, HK_BUSY,
            "message %s was in flight when relay %s stopped without a word: it may have arrived. "
            "The next relay takes it over; try again then",
            shown, relay);
    return hk_err_set(err, HK_BUSY, "message %s is in flight (relay %s): try again when it has come back",
                      shown, relay);
}

static enum hk_code check(struct hk_store *store, const struct hk_act *act, const struct targets *targets,
                          enum hk_event event, int64_t now_ms, struct hk_err *err)
{
    if (targets->n == 0)
        return refuse_missing(store, act, err);
    for (size_t i = 0; i < targets->n; i++) {
        const struct target *t = &targets->items[i];
        char one[HK_SHOW_MAX], other[HK_SHOW_MAX];
        if (!hk_str_eq(t->destination, targets->items[0].destination))
            return hk_err_set(err, HK_INVALID,
                              "the message goes to several destinations (%s, %s …): name one of them",
                              hk_show(targets->items[0].destination, one), hk_show(t->destination, other));
        enum hk_state state = t->in_flight ? HK_PROCESSING : t->tried ? HK_RETRYING : HK_PENDING;
        if (hk_state_after(state, event) == HK_STATE_NONE)
            return refuse_in_flight(t, act, now_ms, err);
    }
    return HK_OK;
}

/* ---- acting ---- */

static void run_on(struct hk_store *store, const char *sql, int64_t id, int64_t now_ms,
                   const struct hk_act *act)
{
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, id);
    if (q && sqlite3_bind_parameter_count(q) >= 2)
        hk_sq_bind_i64(store, q, 2, now_ms);
    if (q && sqlite3_bind_parameter_count(q) >= 4) {
        hk_sq_bind_cstr(store, q, 3, act->actor);
        hk_sq_bind_cstr(store, q, 4, act->reason);
    }
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

/* Copies the row to `table` with the first statement, or with the second, which leaves a large payload out. The new row's id. */
static int64_t copy_row(struct hk_store *store, struct hk_ref row, const char *const sql[2],
                        enum hk_sq_table table, int64_t now_ms, const struct hk_act *act)
{
    struct hk_sq_place from = {row.place == HK_IN_OUTBOX ? HK_SQ_OUTBOX : HK_SQ_RETRY, row.id};
    int large = hk_sq_large(store, from);
    run_on(store, sql[large > 0], row.id, now_ms, act);
    struct hk_sq_place to = {table, sqlite3_last_insert_rowid(store->db)};
    hk_sq_copy_large(store, from, to, large);
    return to.id;
}

/* The letter that it was requeued from waits for an outcome that will not come. */
static void close_letter(struct hk_store *store, int64_t id, int64_t now_ms, const struct hk_act *act)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_LETTER_OF]);
    hk_sq_bind_i64(store, q, 1, id);
    int64_t letter = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    if (!letter)
        return;
    hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_LETTERS, letter});
    run_on(store, hk_sa_texts[HK_SA_CLOSE_LETTER], letter, now_ms, act);
    hk_sq_put_back(store);
}

/* What it has been through stays, for whoever restores it. */
static void keep_past(struct hk_store *store, struct hk_ref row, int64_t cancelled_id)
{
    sqlite3_stmt *q = hk_sa_prepare(
        store, hk_sa_texts[row.place == HK_IN_OUTBOX ? HK_SA_PAST_OF_OUTBOX : HK_SA_PAST_OF_RETRY]);
    hk_sq_bind_i64(store, q, 1, row.id);
    hk_sq_bind_i64(store, q, 2, cancelled_id);
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

int64_t hk_sa_cancel_row(struct hk_store *store, struct hk_ref row, const struct hk_act *act, int64_t now_ms)
{
    const char *const fresh[] = {hk_sa_texts[HK_SA_CANCEL], hk_sa_texts[HK_SA_CANCEL_BARE]};
    const char *const retry[] = {hk_sa_texts[HK_SA_CANCEL_RETRY], hk_sa_texts[HK_SA_CANCEL_RETRY_BARE]};
    bool is_fresh = row.place == HK_IN_OUTBOX;
    int64_t id = copy_row(store, row, is_fresh ? fresh : retry, HK_SQ_CANCELS, now_ms, act);
    keep_past(store, row, id);
    if (!is_fresh)
        close_letter(store, row.id, now_ms, act);
    run_on(store, hk_sa_texts[is_fresh ? HK_SA_DROP : HK_SA_DROP_RETRY], row.id, now_ms, act);
    return id;
}

static bool cancel_one(struct hk_store *store, const struct target *t, const struct hk_act *act,
                       int64_t now_ms)
{
    (void)hk_sa_cancel_row(store, (struct hk_ref){t->place, t->id}, act, now_ms);
    return true;
}

static bool retry_one(struct hk_store *store, const struct target *t, const struct hk_act *act,
                      int64_t now_ms)
{
    const char *const move[] = {hk_sa_texts[HK_SA_MOVE], hk_sa_texts[HK_SA_MOVE_BARE]};
    now_ms = hk_sq_clock(store); /* so that it is due by the clock, too, which what was deferred goes by */
    if (t->due_ms <= now_ms)
        return false;
    if (t->place == HK_IN_OUTBOX) {
        (void)copy_row(store, (struct hk_ref){t->place, t->id}, move, HK_SQ_RETRY, now_ms, act);
        run_on(store, hk_sa_texts[HK_SA_DROP], t->id, now_ms, act);
        return true;
    }
    hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_RETRY, t->id});
    run_on(store, hk_sa_texts[HK_SA_HURRY_RETRY], t->id, now_ms, act);
    hk_sq_put_back(store);
    return true;
}

/* One that was not tried and has a key must stay: what was written before it may wait in outbox yet. */
static bool may_force(struct hk_store *store, const struct target *t)
{
    if (t->place != HK_IN_OUTBOX)
        return true;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_HAS_KEY]);
    hk_sq_bind_i64(store, q, 1, t->id);
    bool keyed = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return t->destination.len && !(keyed && t->due_ms <= hk_sq_clock(store));
}

static bool force_one(struct hk_store *store, const struct target *t, const struct hk_act *act,
                      int64_t now_ms)
{
    const char *const move[] = {hk_sa_texts[HK_SA_MOVE], hk_sa_texts[HK_SA_MOVE_BARE]};
    bool fresh = t->place == HK_IN_OUTBOX;
    int64_t id = t->id;
    now_ms = hk_sq_clock(store);
    if (fresh) {
        id = copy_row(store, (struct hk_ref){t->place, t->id}, move, HK_SQ_RETRY, now_ms, act);
        run_on(store, hk_sa_texts[HK_SA_DROP], t->id, now_ms, act);
    }
    hk_sq_set_aside(store, (struct hk_sq_place){HK_SQ_RETRY, id});
    run_on(store, hk_sa_texts[fresh ? HK_SA_FORCE_MOVED : HK_SA_FORCE_RETRY], id, now_ms, act);
    hk_sq_put_back(store);
    return true;
}

struct verb {
    const char *name, *doing;
    enum hk_event event;
    /* false: there was nothing to change */
    bool (*one)(struct hk_store *store, const struct target *t, const struct hk_act *act, int64_t now_ms);
};

static enum hk_code act_on(struct hk_admin *admin, const struct verb *verb, const struct hk_act *act,
                           struct hk_acted *out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct targets targets = {.items = NULL};
    hk_sq_call(store);
    find_in_outbox(store, act->message_id, &targets);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    struct hk_acted done = {.now_ms = hk_sq_now(store)};
    look_again(store, act, &targets);
    if (hk_sq_ok(store)) {
        enum hk_code refused = check(store, act, &targets, verb->event, done.now_ms, err);
        for (size_t i = 0; verb->one == force_one && refused == HK_OK && i < targets.n; i++)
            if (!may_force(store, &targets.items[i]))
                refused = hk_force_refused(act, err);
        if (refused != HK_OK && hk_sq_ok(store)) {
            hk_sq_rollback(store);
            return refused;
        }
    }
    for (size_t i = 0; i < targets.n && hk_sq_ok(store); i++) {
        bool changed = verb->one(store, &targets.items[i], act, done.now_ms);
        done.changed += changed;
        done.unchanged += !changed;
    }
    if (done.changed)
        hk_sa_audit(store, verb->name, act->message_id, targets.items[0].destination, act->actor, act->reason,
                    done.now_ms);
    enum hk_code rc = hk_sq_end(store, verb->doing, err);
    if (rc == HK_OK)
        *out = done;
    return rc;
}

enum hk_code hk_sa_cancel(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err)
{
    static const struct verb verb = {"cancel", "cancel a message", HK_EV_CANCEL, cancel_one};
    return act_on(admin, &verb, act, out, err);
}

/* To be due now is no change of state; what may be claimed may be hurried. */
enum hk_code hk_sa_retry(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err)
{
    static const struct verb verb = {"retry", "make a message due", HK_EV_CLAIM, retry_one};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_sa_force(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err)
{
    static const struct verb verb = {"force", "force a message", HK_EV_CLAIM, force_one};
    return act_on(admin, &verb, act, out, err);
}
