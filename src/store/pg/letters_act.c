/* SPDX-License-Identifier: Apache-2.0 */
/* Acts on dead letters.
 *
 * DESIGN. Each act is two statements in one pipeline: LOCK takes the letters in the order of their ids, and the act itself, with
 * a later snapshot (READ COMMITTED), decides from what is true until it commits: it changes those that are in a state for it
 * and says of each what it did. Nothing waits for us in between (admin_act.c). A relay locks a letter last, behind its
 * retry row, and no act locks retry rows: there is no circle. All acts meet at the audit's head, at their very end. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "observe/crash.h"
#include "store/detail.h"
#include "store/pg/letters.h"
#include "store/pg/store.h"

#define PAYLOAD_MAX ((size_t)0x3fffffff) /* PostgreSQL's limit of one value */

/* Columns of what HK_PL_REQUEUE and its like return. */
enum {
    D_NOW,
    D_ID,
    D_DID,
    D_STATUS,
    D_SENDING,
    D_MESSAGE_ID,
    D_ACT,
    D_VERSION
};

_Static_assert(HK_DID_IT == 0 && HK_DID_NOTHING == 1 && HK_DID_REFUSE == 3,
               "the numbers stand in the statements");

const char *hk_pl_ids_name(enum hk_requeue_id ids)
{
    switch (ids) {
    case HK_REQUEUE_SAME:
        return "same";
    case HK_REQUEUE_NEW:
        return "new";
    case HK_REQUEUE_SAME_ALWAYS:
        return "same-always";
    case HK_REQUEUE_AUTO:
        break;
    }
    return "auto";
}

/* ---- what came of each ---- */

static void read_done(struct hk_pg *pg, const PGresult *res, int row, struct hk_letter_done *out)
{
    enum hk_letter_status status = HK_LETTER_DISCARDED;
    (void)hk_letter_status_by_name(hk_str_of(PQgetvalue(res, row, D_STATUS)), &status);
    *out = (struct hk_letter_done){
        .id = hk_pg_i64(res, row, D_ID),
        .did = (enum hk_letter_did)hk_pg_i64(res, row, D_DID),
        .status = status,
        .sending = hk_pg_bool(res, row, D_SENDING) && hk_pg_i64(res, row, D_DID) == HK_DID_REFUSE,
        .message_id = hk_pg_text(pg, res, row, D_MESSAGE_ID),
        .begun_ms = hk_pg_i64(res, row, D_NOW),
        .version = hk_pa_u32(res, row, D_VERSION),
    };
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct hk_letter_done *)a)->id, y = ((const struct hk_letter_done *)b)->id;
    return (x > y) - (x < y);
}

/* In the order that was asked; of one that was named twice the second time finds it done. */
static void tell_each(const struct hk_letter_act *act, struct hk_letter_done *found, size_t n_found,
                      struct hk_letters_done *out)
{
    if (n_found > 1)
        qsort(found, n_found, sizeof *found, by_id);
    for (size_t i = 0; i < act->n; i++) {
        const struct hk_letter_done key = {.id = act->ids[i], .message_id = {"", 0}};
        struct hk_letter_done *f = n_found ? bsearch(&key, found, n_found, sizeof *found, by_id) : NULL;
        out->items[i] =
            f ? *f
              : (struct hk_letter_done){.id = act->ids[i], .did = HK_DID_NOT_FIND, .message_id = {"", 0}};
        if (f && f->did == HK_DID_IT) {
            out->changed++;
            f->did = HK_DID_NOTHING;
        }
    }
    out->n = act->n;
}

static void read_all(struct hk_pg *pg, const PGresult *res, const struct hk_letter_act *act,
                     struct hk_letters_done *out)
{
    int n = hk_pg_null(res, 0, D_ID) ? 0 : PQntuples(res);
    struct hk_letter_done *found = hk_pg_alloc(pg, (size_t)n + 1, sizeof *found);
    out->items = hk_pg_alloc(pg, act->n + 1, sizeof *out->items);
    if (!found || !out->items)
        return;
    for (int i = 0; i < n; i++)
        read_done(pg, res, i, &found[i]);
    out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, D_NOW));
    out->act_id = hk_pg_i64(res, 0, D_ACT);
    tell_each(act, found, (size_t)n, out);
}

/* ---- acts on many ---- */

#define COPY_MS 600000

struct verb {
    enum hk_pl_id statement;
    const char *doing;
    const char *more;                  /* $5; NULL = it has none */
    bool job;                          /* $6: it takes a job, which there is none here */
    const struct hk_letter_fix *fixes; /* one for each id; NULL = it has none */
};

static void arg_words(struct hk_pg *pg, struct hk_pg_args *a, const char *text)
{
    if (text)
        hk_pg_arg_text(pg, a, hk_str_of(text));
    else
        hk_pg_arg_null(pg, a);
}

/* The act that it belongs to, filter, program. */
static void arg_trail(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_letter_act *act)
{
    if (act->n > 1 || act->filter || act->act_id)
        hk_pg_arg_i64(pg, a, act->act_id);
    else
        hk_pg_arg_null(pg, a);
    arg_words(pg, a, act->filter);
    arg_words(pg, a, act->program);
}

static void arg_fixes(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_letter_fix *fixes, size_t n)
{
    int64_t *versions = hk_pg_alloc(pg, n + 1, sizeof *versions);
    struct hk_str *payloads = hk_pg_alloc(pg, n + 1, sizeof *payloads);
    for (size_t i = 0; versions && payloads && i < n; i++) {
        versions[i] = fixes[i].version;
        payloads[i] = fixes[i].payload;
    }
    hk_pg_arg_i64s(pg, a, versions, versions ? n : 0);
    hk_pg_arg_texts(pg, a, payloads, payloads ? n : 0);
}

static enum hk_code act_on(struct hk_admin *admin, const struct verb *verb, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args lock = {.n = 0}, a = {.n = 0};
    if (act->n > HK_LETTER_ACTS_MAX)
        return hk_err_set(err, HK_INVALID, "more than %d letters at a time", HK_LETTER_ACTS_MAX);
    hk_pg_call(pg);
    struct hk_letters_done *done = hk_pg_alloc(pg, 1, sizeof *done);
    hk_pg_arg_i64s(pg, &lock, act->ids, act->n);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64s(pg, &a, act->ids, act->n);
    hk_pg_arg_text(pg, &a, hk_str_of(act->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(act->reason));
    if (verb->more)
        hk_pg_arg_text(pg, &a, hk_str_of(verb->more));
    if (verb->job)
        hk_pg_arg_null(pg, &a);
    arg_trail(pg, &a, act);
    if (verb->fixes)
        arg_fixes(pg, &a, verb->fixes, act->n);
    if (verb->job)
        arg_words(pg, &a, act->to);
    /* Payloads may be a gigabyte, which the server copies. Locks are waited for no longer than usual. */
    bool copies = verb->statement == HK_PL_REQUEUE;
    uint64_t call_ms = pg->call_ms;
    if (copies)
        pg->call_ms = COPY_MS;
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_LOCK, &lock);
    hk_pg_add(pg, copies ? HK_PA_NO_HURRY : HK_PA_AS_IT_IS, NULL);
    hk_pg_add(pg, verb->statement, &a);
    hk_crash_point("act-begun");
    hk_pg_send(pg);
    hk_crash_point("act-inside");
    PQclear(hk_pg_result(pg));
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    if (res && done)
        read_all(pg, res, act, done);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, verb->doing, err);
    pg->call_ms = call_ms;
    hk_crash_point("act-committed");
    if (rc == HK_OK)
        *out = done;
    return rc;
}

enum hk_code hk_pl_requeue(struct hk_admin *admin, const struct hk_letter_act *act, enum hk_requeue_id ids,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    const struct verb verb = {HK_PL_REQUEUE, "requeue dead letters", hk_pl_ids_name(ids), true, NULL};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pl_resolve(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    static const struct verb verb = {HK_PL_RESOLVE, "resolve dead letters", NULL, false, NULL};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pl_discard(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    static const struct verb verb = {HK_PL_DISCARD, "discard dead letters", NULL, false, NULL};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pl_restore(struct hk_admin *admin, const struct hk_letter_act *act,
                           const struct hk_letters_done **out, struct hk_err *err)
{
    static const struct verb verb = {HK_PL_RESTORE, "restore dead letters", NULL, false, NULL};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pl_remark(struct hk_admin *admin, const struct hk_letter_act *act, const char *what,
                          const struct hk_letters_done **out, struct hk_err *err)
{
    const struct verb verb = {HK_PL_REMARK, "remark on dead letters", what, false, NULL};
    return act_on(admin, &verb, act, out, err);
}

enum hk_code hk_pl_send_begin(struct hk_admin *admin, const struct hk_letter_act *act,
                              const struct hk_letters_done **out, struct hk_err *err)
{
    static const struct verb verb = {HK_PL_SEND_BEGIN, "begin to send a dead letter", NULL, false, NULL};
    if (act->n != 1)
        return hk_err_set(err, HK_INVALID, "letters are sent one at a time");
    return act_on(admin, &verb, act, out, err);
}

/* ---- edit ---- */

/* Columns of HK_PL_EDIT. */
enum {
    E_STATUS,
    E_SENDING,
    E_VERSION,
    E_WRITTEN
};

static enum hk_code refuse_edit(const PGresult *res, const struct hk_letter_edit *edit, struct hk_err *err)
{
    long long id = (long long)edit->id;
    if (PQntuples(res) == 0)
        return hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", id);
    if (hk_pg_bool(res, 0, E_SENDING))
        return hk_err_set(err, HK_CONFLICT, "letter %lld is being sent by hand: its outcome is not known yet",
                          id);
    if (strcmp(PQgetvalue(res, 0, E_STATUS), "failed") != 0)
        return hk_err_set(err, HK_CONFLICT, "letter %lld is not open any more: it is %.20s", id,
                          PQgetvalue(res, 0, E_STATUS));
    return hk_err_set(err, HK_CONFLICT,
                      "somebody else has edited letter %lld: it has version %u now, not %u; look at it again",
                      id, (unsigned)hk_pa_u32(res, 0, E_VERSION), (unsigned)edit->version);
}

static void send_edit(struct hk_admin *admin, const struct hk_letter_edit *edit)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args lock = {.n = 0}, a = {.n = 0};
    hk_pg_arg_i64s(pg, &lock, &edit->id, 1);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, edit->id);
    hk_pg_arg_text(pg, &a, hk_str_of(edit->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(edit->reason));
    hk_pg_arg_i64(pg, &a, edit->version);
    hk_pg_arg_bytes(pg, &a, edit->payload);
    hk_pg_arg_text(pg, &a, hk_str_of(edit->act ? edit->act : "edit"));
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_LOCK, &lock);
    hk_pg_add(pg, HK_PL_EDIT, &a);
    hk_crash_point("edit-begun");
    hk_pg_send(pg);
    hk_crash_point("edit-inside");
}

enum hk_code hk_pl_edit(struct hk_admin *admin, const struct hk_letter_edit *edit, uint32_t *out_version,
                        struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    if (!hk_utf8_is_text(edit->payload) || edit->payload.len >= PAYLOAD_MAX)
        return hk_err_set(err, HK_INVALID,
                          "the payload is not UTF-8, or larger than PostgreSQL takes: write bytes as base64");
    hk_pg_call(pg);
    send_edit(admin, edit);
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    enum hk_code refused = HK_OK;
    uint32_t version = 0;
    if (res && (PQntuples(res) == 0 || hk_pg_null(res, 0, E_WRITTEN)))
        refused = refuse_edit(res, edit, err);
    else if (res)
        version = hk_pa_u32(res, 0, E_WRITTEN);
    PQclear(res);
    struct hk_err broken = {.message = ""};
    enum hk_code rc = hk_pa_end(admin, "edit a dead letter", &broken);
    hk_crash_point("edit-committed");
    if (rc != HK_OK)
        return hk_err_set(err, rc, "%s", broken.message);
    if (refused == HK_OK)
        *out_version = version;
    return refused;
}

enum hk_code hk_pl_fix(struct hk_admin *admin, const struct hk_letter_act *act,
                       const struct hk_letter_fix *fixes, const struct hk_letters_done **out,
                       struct hk_err *err)
{
    const struct verb verb = {HK_PL_FIX, "fix dead letters", NULL, false, fixes};
    size_t bytes = 0;
    for (size_t i = 0; i < act->n; i++) {
        bytes += fixes[i].payload.len;
        if (!hk_utf8_is_text(fixes[i].payload) || bytes >= PAYLOAD_MAX)
            return hk_err_set(
                err, HK_INVALID,
                "a payload is not UTF-8, or they are larger than PostgreSQL takes: write bytes as "
                "base64");
    }
    return act_on(admin, &verb, act, out, err);
}

/* ---- the end of a send ---- */

static void arg_attempt(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_attempt_record *at)
{
    hk_pg_arg_i64(pg, a, at->started_ms);
    hk_pg_arg_u64(pg, a, at->duration_ms);
    hk_pg_arg_i64(pg, a, at->status);
    hk_pg_arg_text(pg, a, hk_str_of(hk_class_name(at->failure_class)));
    hk_pg_arg_text_or_null(pg, a, at->cause);
    hk_pg_arg_text_or_null(pg, a, at->error);
    hk_pg_arg_text_or_null(pg, a, at->request_headers);
    hk_pg_arg_text_or_null(pg, a, at->response_headers);
    if (at->response_body.len)
        hk_pg_arg_bytes(pg, a, at->response_body);
    else
        hk_pg_arg_null(pg, a);
    hk_pg_arg_text_or_null(pg, a, at->address);
    hk_pg_arg_bool(pg, a, at->possibly_delivered);
}

/* What it failed of, as a relay would have written it. */
static void arg_cause(struct hk_pg *pg, struct hk_pg_args *a, const struct hk_attempt_record *at,
                      struct hk_str destination)
{
    struct hk_str reason = at->cause.len ? at->cause : hk_str_of("UNKNOWN");
    char fingerprint[HK_FINGERPRINT_MAX];
    hk_fingerprint(at->failure_class, reason, destination, at->error, fingerprint);
    hk_pg_arg_text(pg, a, reason);
    hk_pg_arg_text(pg, a, hk_str_of(hk_blame_name(hk_blame_of(reason, at->cause, at->status))));
    hk_pg_arg_text(pg, a, hk_str_of(fingerprint));
    struct hk_buf detail;
    hk_buf_init(&detail, HK_DETAIL_BYTES);
    hk_store_detail(&detail, at);
    enum hk_code status = hk_buf_status(&detail);
    if (status == HK_NOMEM)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    hk_pg_arg_text_or_null(pg, a, status == HK_OK ? hk_buf_str(&detail) : (struct hk_str){0});
    hk_buf_fini(&detail);
}

/* Where it went, for the fingerprint; it does not change while a letter is being sent. */
static struct hk_str destination_of(struct hk_admin *admin, int64_t id)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_i64(pg, &a, 0);
    PGresult *res = hk_pg_query(pg, false, HK_PL_SHOW, &a);
    struct hk_str destination = {"", 0};
    if (res && PQntuples(res) == 1)
        destination = hk_pg_text(pg, res, 0, 1 + HK_PL_C_DESTINATION);
    PQclear(res);
    return destination;
}

enum hk_code hk_pl_send_end(struct hk_admin *admin, int64_t id, int64_t begun_ms, const char *actor,
                            const struct hk_attempt_record *attempt, bool ok, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args lock = {.n = 0}, a = {.n = 0};
    hk_pg_call(pg);
    struct hk_str destination = destination_of(admin, id);
    hk_pg_arg_i64s(pg, &lock, &id, 1);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64s(pg, &a, &id, 1);
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_bool(pg, &a, ok);
    arg_attempt(pg, &a, attempt);
    arg_cause(pg, &a, attempt, destination);
    hk_pg_arg_i64(pg, &a, begun_ms);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PL_LOCK, &lock);
    hk_pg_add(pg, HK_PL_SEND_END, &a);
    hk_crash_point("outcome-begun");
    hk_pg_send(pg);
    hk_crash_point("outcome-inside");
    PQclear(hk_pg_result(pg));
    PGresult *res = hk_pg_result(pg);
    bool found = res && PQntuples(res) == 1, sending = found && hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "record how a send ended", err);
    hk_crash_point("outcome-committed");
    if (rc != HK_OK)
        return rc;
    if (!found)
        return hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", (long long)id);
    return sending ? HK_OK
                   : hk_err_set(
                         err, HK_CONFLICT,
                         "somebody has changed letter %lld meanwhile: the attempt is recorded, the letter is "
                         "as it was",
                         (long long)id);
}
