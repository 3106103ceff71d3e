/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on live messages: cancel and retry.
 *
 * DESIGN. No message may be both cancelled (or moved) and claimed, and nothing here may make a relay wait for a person.
 * A relay claims rows of outbox without locking them: one statement reads them and writes the manifest. So an act has to
 * lock the relay out, not the row:
 *
 *   1. FOR UPDATE on the outbox_relay row of the lane that owns the message's shard. The first statement of every
 *      exchange locks that row, so that an exchange is either over, and its manifest is seen by 4, or waits; and when it
 *      goes on, its claim is a statement of its own with a snapshot of its own (READ COMMITTED), which sees the row gone.
 *   2. FOR UPDATE on the shard's own row: it does not change hands, and a free one is not taken, until the act is over.
 *   3. 1 again: between 1 and 2 the shard may have got another owner. Usually the rows are ours already.
 *   4. With a snapshot later than all these locks: does a manifest name the message? If so the act is refused; if not it
 *      is done, and written down in outbox_audit.
 *
 * Lanes are locked before shards and both before retry rows, each in order, as take-over and exchanges do; what still
 * meets crosswise (a shard that changed hands between 1 and 2, and again) ends in a deadlock that PostgreSQL breaks, HK_BUSY.
 * All of it is one pipeline, COMMIT included, which waits for no answer of ours: the locks live as long as the server
 * needs for six short statements. Therefore the decision is the statement's own, and what is told here is read from what it
 * returns.
 *
 * Rows of outbox_retry are claimed with FOR UPDATE SKIP LOCKED: locking the row is enough for those.
 *
 * Where the message lies in outbox is found before, without a lock (hk_pa_find): rows only ever leave outbox, and where
 * they go to is looked at under the locks. */
#include "base/show.h"
#include "base/str.h"
#include "store/pg/admin.h"
#include "store/pg/rest.h"

/* Columns of HK_PA_CANCEL, HK_PA_RETRY and HK_PA_FORCE. */
enum {
    C_PLACE,
    C_ID,
    C_DESTINATION,
    C_DUE_MS,
    C_TRIED,
    C_IN_FLIGHT,
    C_RELAY,
    C_UNTIL_MS,
    C_CHANGED
};

enum fate {
    FATE_NONE = 0,
    FATE_DEAD,
    FATE_CANCELLED,
    FATE_SENT
};

struct verb {
    const char *doing;
    enum hk_pa_id statement;
    enum hk_event event;
};

/* ---- refusing ---- */

/* It is not live: what has become of it? */
static enum hk_code refuse_missing(const struct hk_act *act, enum fate fate, struct hk_err *err)
{
    static const char *const said[] = {[FATE_NONE] = "",
                                       [FATE_DEAD] = "is a dead letter",
                                       [FATE_CANCELLED] = "was cancelled",
                                       [FATE_SENT] = "was sent"};
    char shown[HK_SHOW_MAX], at[HK_SHOW_MAX];
    hk_show(hk_str_of(act->message_id), shown);
    if (fate != FATE_NONE)
        return hk_err_set(err, HK_CONFLICT, "message %s %s: only a pending or retrying one can be changed",
                          shown, said[fate]);
    if (act->destination)
        return hk_err_set(err, HK_NOTFOUND, "there is no message %s for destination %s", shown,
                          hk_show(hk_str_of(act->destination), at));
    return hk_err_set(err, HK_NOTFOUND, "there is no message %s", shown);
}

static enum hk_code refuse_in_flight(struct hk_pg *pg, const PGresult *res, int row, const struct hk_act *act,
                                     int64_t now_ms, struct hk_err *err)
{
    char shown[HK_SHOW_MAX], relay[HK_SHOW_MAX];
    hk_show(hk_str_of(act->message_id), shown);
    hk_show(hk_pg_text(pg, res, row, C_RELAY), relay);
    if (!hk_pg_null(res, row, C_UNTIL_MS) && hk_pg_i64(res, row, C_UNTIL_MS) <= now_ms)
        return hk_err_set(
            err, HK_BUSY,
            "message %s was in flight when relay %s stopped without a word: it may have arrived. "
            "Another relay takes it over; try again then",
            shown, relay);
    return hk_err_set(err, HK_BUSY, "message %s is in flight (relay %s): try again when it has come back",
                      shown, relay);
}

/* Says what the statement decided. */
static enum hk_code check(struct hk_pg *pg, const PGresult *res, const struct hk_act *act,
                          const struct verb *verb, int64_t now_ms, struct hk_err *err)
{
    struct hk_str first = hk_pg_text(pg, res, 0, C_DESTINATION);
    for (int i = 0; i < PQntuples(res); i++) {
        char one[HK_SHOW_MAX], other[HK_SHOW_MAX];
        struct hk_str destination = hk_pg_text(pg, res, i, C_DESTINATION);
        if (!hk_str_eq(destination, first))
            return hk_err_set(err, HK_INVALID,
                              "the message goes to several destinations (%s, %s …): name one of them",
                              hk_show(first, one), hk_show(destination, other));
        enum hk_state state = hk_pg_bool(res, i, C_IN_FLIGHT) ? HK_PROCESSING
                              : hk_pg_bool(res, i, C_TRIED)   ? HK_RETRYING
                                                              : HK_PENDING;
        if (hk_state_after(state, verb->event) == HK_STATE_NONE)
            return refuse_in_flight(pg, res, i, act, now_ms, err);
    }
    return HK_OK;
}

/* ---- acting ---- */

static void add_locks(struct hk_pg *pg, struct hk_str ids, const struct hk_act *act)
{
    struct hk_pg_args a = {.n = 0}, m = {.n = 0};
    hk_pg_arg_text(pg, &a, ids);
    hk_pg_arg_text(pg, &a, hk_str_of(act->message_id));
    hk_pg_arg_text(pg, &m, hk_str_of(act->message_id));
    hk_pg_add(pg, HK_PA_LOCK_LANES, &a);
    hk_pg_add(pg, HK_PA_LOCK_SHARDS, &a);
    hk_pg_add(pg, HK_PA_LOCK_LANES, &a);
    hk_pg_add(pg, HK_PA_LOCK_RETRIES, &m);
}

static void add_act(struct hk_admin *admin, const struct verb *verb, const struct hk_act *act,
                    struct hk_str ids, const struct hk_pg_rest *sealed)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(act->message_id));
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(act->destination));
    struct hk_pg_args fate = a;
    hk_pg_arg_text(pg, &a, ids);
    hk_pg_arg_text(pg, &a, hk_str_of(act->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(act->reason));
    hk_pg_arg_rest(pg, &a, sealed);
    hk_pg_add(pg, verb->statement, &a);
    hk_pg_add(pg, HK_PA_FATE, &fate);
}

static void skip_locks(struct hk_pg *pg)
{
    for (int i = 0; i < 4; i++)
        PQclear(hk_pg_result(pg));
}

static enum hk_code act_on(struct hk_admin *admin, const struct verb *verb, const struct hk_act *act,
                           struct hk_acted *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_str ids = hk_pa_find(admin, act->message_id);
    struct hk_pg_args found = {.n = 0};
    hk_pg_arg_text(pg, &found, ids);
    struct hk_pg_rest sealed = hk_pg_rest_read(pg, admin->options.seal, HK_PA_UNSEALED, &found);
    hk_pg_begin(pg, true);
    add_locks(pg, ids, act);
    add_act(admin, verb, act, ids, &sealed);
    hk_pg_send(pg);
    skip_locks(pg);
    PGresult *res = hk_pg_result(pg), *fate = hk_pg_result(pg);
    enum hk_code refused = HK_OK;
    struct hk_acted done = {0};
    if (res && fate) {
        done.now_ms = hk_pg_now(pg, hk_pg_i64(fate, 0, 0));
        if (PQntuples(res) == 0)
            refused = refuse_missing(act, (enum fate)hk_pg_i64(fate, 0, 1), err);
        else
            refused = check(pg, res, act, verb, done.now_ms, err);
    }
    if (res && refused == HK_OK && PQntuples(res) > 0 && hk_pg_i64(res, 0, C_CHANGED) < 0)
        refused = hk_force_refused(act, err);
    if (res && refused == HK_OK && PQntuples(res) > 0) {
        done.changed = (size_t)hk_pg_i64(res, 0, C_CHANGED);
        done.unchanged = (size_t)PQntuples(res) - done.changed;
    }
    PQclear(res);
    PQclear(fate);
    struct hk_err broken = {.message = ""};
    enum hk_code rc = hk_pa_end(admin, verb->doing, &broken);
    if (rc != HK_OK)
        return hk_err_set(err, rc, "%s", broken.message);
    if (refused == HK_OK)
        *out = done;
    return refused;
}

enum hk_code hk_pa_cancel(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                          struct hk_err *err)
{
    static const struct verb verb = {"cancel a message", HK_PA_CANCEL, HK_EV_CANCEL};
    return act_on(admin, &verb, act, out, err);
}

/* To be due now is no change of state; what may be claimed may be hurried. */
enum hk_code hk_pa_retry(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err)
{
    static const struct verb verb = {"make a message due", HK_PA_RETRY, HK_EV_CLAIM};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pa_force(struct hk_admin *admin, const struct hk_act *act, struct hk_acted *out,
                         struct hk_err *err)
{
    static const struct verb verb = {"force a message", HK_PA_FORCE, HK_EV_CLAIM};
    return act_on(admin, &verb, act, out, err);
}
