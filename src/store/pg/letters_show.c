/* SPDX-License-Identifier: Apache-2.0 */
/* One letter with all that belongs to it; and the trail of who did what. */
#include "base/str.h"
#include "store/pg/letters.h"

#define ACTS_MAX     500
#define VERSIONS_MAX 100
#define AUDIT_WINDOW 50000 /* rows that one call looks at */
#define AUDIT_MAX    UINT32_C(100000)
#define PAYLOAD_MAX  ((size_t)0x3fffffff)

/* ---- the audit ---- */

/* Columns of AUDIT_ROW in sql/letters.sql. */
enum {
    A_ID,
    A_AT_MS,
    A_ACTOR,
    A_ACT,
    A_MESSAGE_ID,
    A_DESTINATION,
    A_REASON,
    A_LETTER,
    A_REDRIVE,
    A_BEFORE,
    A_AFTER,
    A_DETAIL,
    A_PREV,
    A_HASH,
    A_ACT_ID,
    A_LETTERS,
    A_MESSAGES,
    A_LIST /* only of a page */
};

/* Columns before them in a page of the audit, as HK_PL_W_… of letters. */
enum {
    P_FOUND,
    P_LOOKED,
    P_LAST,
    P_ROW
};

void hk_pl_audit_row(struct hk_pg *pg, const PGresult *res, int row, int first, struct hk_audit_row *out)
{
    *out = (struct hk_audit_row){
        .id = hk_pg_i64(res, row, first + A_ID),
        .at_ms = hk_pg_i64(res, row, first + A_AT_MS),
        .actor = hk_pg_text(pg, res, row, first + A_ACTOR),
        .act = hk_pg_text(pg, res, row, first + A_ACT),
        .message_id = hk_pg_text(pg, res, row, first + A_MESSAGE_ID),
        .destination = hk_pg_text(pg, res, row, first + A_DESTINATION),
        .reason = hk_pg_text(pg, res, row, first + A_REASON),
        .letter_id = hk_pg_i64(res, row, first + A_LETTER),
        .redrive = hk_pg_i64(res, row, first + A_REDRIVE),
        .before = hk_pg_text(pg, res, row, first + A_BEFORE),
        .after = hk_pg_text(pg, res, row, first + A_AFTER),
        .detail = hk_pg_text(pg, res, row, first + A_DETAIL),
        .prev = hk_pg_text(pg, res, row, first + A_PREV),
        .hash = hk_pg_text(pg, res, row, first + A_HASH),
        .act_id = hk_pg_i64(res, row, first + A_ACT_ID),
        .letters = hk_pa_u64(res, row, first + A_LETTERS),
        .messages = hk_pa_u64(res, row, first + A_MESSAGES),
        .list = {"", 0},
    };
}

static void arg_or_null(struct hk_pg *pg, struct hk_pg_args *a, const char *text)
{
    if (text)
        hk_pg_arg_text(pg, a, hk_str_of(text));
    else
        hk_pg_arg_null(pg, a);
}

static int64_t audit_limit(const struct hk_audit_page *page)
{
    return page->limit < AUDIT_MAX ? page->limit : AUDIT_MAX;
}

static int64_t audit_looks(const struct hk_audit_page *page)
{
    return page->actor || page->act || !page->parts ? AUDIT_WINDOW : audit_limit(page) + 1;
}

static void ask_audit(struct hk_pg *pg, const struct hk_audit_page *page)
{
    struct hk_pg_args a = {.n = 0};
    unsigned id = page->oldest_first ? HK_PL_AUDIT_OLDEST : HK_PL_AUDIT_NEWEST;
    hk_pg_arg_i64(pg, &a, page->oldest_first && page->after_id ? page->after_id : INT64_MIN);
    hk_pg_arg_i64(pg, &a, !page->oldest_first && page->after_id ? page->after_id : INT64_MAX);
    if (page->letter_id)
        hk_pg_arg_i64(pg, &a, page->letter_id);
    else
        hk_pg_arg_null(pg, &a);
    arg_or_null(pg, &a, page->actor);
    arg_or_null(pg, &a, page->act);
    hk_pg_arg_i64(pg, &a, audit_looks(page));
    hk_pg_arg_i64(pg, &a, audit_limit(page) + 1);
    hk_pg_arg_bool(pg, &a, page->parts);
    hk_pg_arg_bool(pg, &a, page->lists);
    hk_pg_add(pg, id + (page->letter_id != 0), &a);
    hk_pg_add(pg, HK_PL_CHAIN, NULL);
}

/* One row more than was asked for was found: it stays for the next page. */
static void read_audit(struct hk_pg *pg, const PGresult *res, const struct hk_audit_page *page,
                       struct hk_audit_rows *out)
{
    if (!res || PQntuples(res) == 0)
        return;
    int n = hk_pg_null(res, 0, P_ROW) ? 0 : PQntuples(res), limit = (int)audit_limit(page);
    bool full = n > limit;
    out->last_id = page->after_id;
    out->items = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->items) : NULL;
    for (int i = 0; i < n && i < limit && out->items; i++) {
        hk_pl_audit_row(pg, res, i, P_ROW, &out->items[out->n]);
        out->items[out->n++].list = hk_pg_text(pg, res, i, P_ROW + A_LIST);
        out->last_id = hk_pg_i64(res, i, P_ROW + A_ID);
    }
    out->more = full && limit > 0;
    if (!full && hk_pg_i64(res, 0, P_LOOKED) == audit_looks(page) && limit > 0) {
        out->more = true;
        out->last_id = hk_pg_i64(res, 0, P_LAST);
    }
}

enum hk_code hk_pl_audit(struct hk_admin *admin, const struct hk_audit_page *page,
                         const struct hk_audit_rows **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_audit_rows *rows = hk_pg_alloc(pg, 1, sizeof *rows);
    hk_pg_begin(pg, false);
    ask_audit(pg, page);
    hk_pg_send(pg);
    PGresult *res = hk_pg_result(pg), *chain = hk_pg_result(pg);
    if (rows && chain) {
        read_audit(pg, res, page, rows);
        rows->first_id = hk_pg_i64(chain, 0, 0);
        rows->first_prev = hk_pg_text(pg, chain, 0, 1);
        rows->head = hk_pg_text(pg, chain, 0, 2);
        rows->unwitnessed_prev = hk_pg_text(pg, chain, 0, 3);
    }
    PQclear(res);
    PQclear(chain);
    enum hk_code rc = hk_pl_end(admin, "read the audit", err);
    if (rc == HK_OK)
        *out = rows;
    return rc;
}

enum hk_code hk_pl_act_letters(struct hk_admin *admin, int64_t act_id, int64_t after_letter_id,
                               uint32_t limit, const struct hk_audit_letters **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_audit_letters *letters = hk_pg_alloc(pg, 1, sizeof *letters);
    limit = limit < AUDIT_MAX ? limit : AUDIT_MAX;
    hk_pg_arg_i64(pg, &a, act_id);
    hk_pg_arg_i64(pg, &a, after_letter_id);
    hk_pg_arg_i64(pg, &a, (int64_t)limit + 1);
    PGresult *res = hk_pg_query(pg, false, HK_PL_ACT_LETTERS, &a);
    int n = res ? PQntuples(res) : 0;
    if (letters && n)
        letters->items = hk_pg_alloc(pg, (size_t)n, sizeof *letters->items);
    for (int i = 0; letters && letters->items && i < n && (uint32_t)i < limit; i++)
        letters->items[letters->n++] = (struct hk_audit_letter){
            .audit_id = hk_pg_i64(res, i, 0),
            .letter_id = hk_pg_i64(res, i, 1),
            .message_id = hk_pg_text(pg, res, i, 2),
            .destination = hk_pg_text(pg, res, i, 3),
            .before = hk_pg_text(pg, res, i, 4),
            .after = hk_pg_text(pg, res, i, 5),
            .detail = hk_pg_text(pg, res, i, 6),
            .overtaken = hk_pg_bool(res, i, 7),
            .is_message = hk_pg_bool(res, i, 8),
        };
    if (letters)
        letters->more = n > 0 && (uint32_t)n > limit;
    PQclear(res);
    enum hk_code rc = hk_pl_end(admin, "read the letters of an act", err);
    if (rc == HK_OK)
        *out = letters;
    return rc;
}

/* ---- show ---- */

static void read_attempts(struct hk_pg *pg, const PGresult *res, struct hk_letter_shown *out)
{
    int n = res ? PQntuples(res) : 0;
    out->attempts = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->attempts) : NULL;
    for (int i = 0; i < n && out->attempts; i++)
        hk_pa_attempt(pg, res, i, &out->attempts[out->n_attempts++]);
}

static void read_versions(struct hk_pg *pg, const PGresult *res, size_t payload_max,
                          struct hk_letter_shown *out)
{
    int n = res ? PQntuples(res) : 0;
    out->versions = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->versions) : NULL;
    for (int i = 0; i < n && out->versions; i++) {
        struct hk_letter_version *v = &out->versions[out->n_versions++];
        *v = (struct hk_letter_version){
            .version = hk_pa_u32(res, i, 0),
            .replaced_ms = hk_pg_i64(res, i, 1),
            .actor = hk_pg_text(pg, res, i, 2),
            .reason = hk_pg_text(pg, res, i, 3),
            .payload_bytes = hk_pa_u64(res, i, 4),
            .payload = hk_pg_text(pg, res, i, 5),
        };
        if (v->payload.len > payload_max)
            v->payload.len = payload_max;
    }
}

static void read_acts(struct hk_pg *pg, const PGresult *res, struct hk_letter_shown *out)
{
    int n = res ? PQntuples(res) : 0;
    out->acts = n ? hk_pg_alloc(pg, (size_t)n, sizeof *out->acts) : NULL;
    for (int i = 0; i < n && out->acts; i++)
        hk_pl_audit_row(pg, res, i, 0, &out->acts[out->n_acts++]);
}

static void add_of_letter(struct hk_pg *pg, unsigned statement, int64_t id, int64_t most)
{
    struct hk_pg_args a = {.n = 0};
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_i64(pg, &a, most);
    hk_pg_add(pg, statement, &a);
}

static void ask_letter(struct hk_admin *admin, int64_t id, size_t payload_max)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0}, v = {.n = 0};
    int64_t most = (int64_t)(payload_max < PAYLOAD_MAX ? payload_max : PAYLOAD_MAX);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, id);
    hk_pg_arg_i64(pg, &a, most);
    hk_pg_add(pg, HK_PL_SHOW, &a);
    add_of_letter(pg, HK_PL_ATTEMPTS, id, HK_TRIED_MAX);
    hk_pg_arg_i64(pg, &v, id);
    hk_pg_arg_i64(pg, &v, most);
    hk_pg_arg_i64(pg, &v, VERSIONS_MAX);
    hk_pg_add(pg, HK_PL_VERSIONS, &v);
    add_of_letter(pg, HK_PL_ACTS, id, ACTS_MAX);
    add_of_letter(pg, HK_PL_BLOCKED, id, HK_COUNT_EXACT);
}

/* False: there is none. */
static bool read_letter(struct hk_pg *pg, const PGresult *res, size_t payload_max,
                        struct hk_letter_shown *out)
{
    if (!res || PQntuples(res) == 0)
        return false;
    out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
    hk_pl_letter(pg, res, 0, 1, true, &out->letter);
    hk_pl_cut_payload(&out->letter, payload_max);
    return true;
}

enum hk_code hk_pl_show(struct hk_admin *admin, int64_t id, size_t payload_max,
                        const struct hk_letter_shown **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_letter_shown *shown = hk_pg_alloc(pg, 1, sizeof *shown);
    hk_pg_begin(pg, false);
    ask_letter(admin, id, payload_max);
    hk_pg_send(pg);
    PGresult *letter = hk_pg_result(pg), *attempts = hk_pg_result(pg), *versions = hk_pg_result(pg),
             *acts = hk_pg_result(pg), *blocked = hk_pg_result(pg);
    bool found = shown && read_letter(pg, letter, payload_max, shown);
    if (found) {
        read_attempts(pg, attempts, shown);
        read_versions(pg, versions, payload_max, shown);
        read_acts(pg, acts, shown);
        shown->blocked = blocked ? hk_pa_u64(blocked, 0, 0) : 0;
    }
    PGresult *const all[] = {letter, attempts, versions, acts, blocked};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        PQclear(all[i]);
    enum hk_code rc = hk_pl_end(admin, "read a dead letter", err);
    if (rc == HK_OK && !found)
        rc = hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", (long long)id);
    if (rc == HK_OK)
        *out = shown;
    return rc;
}

enum hk_code hk_pl_find_requeued(struct hk_admin *admin, const char *message_id, int64_t *out_id,
                                 struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pg_arg_text(pg, &a, hk_str_of(message_id));
    PGresult *res = hk_pg_query(pg, false, HK_PL_REQUEUED_AS, &a);
    int64_t id = res && !hk_pg_null(res, 0, 0) ? hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    enum hk_code rc = hk_pl_end(admin, "look for a dead letter", err);
    if (rc == HK_OK && !id)
        return hk_err_set(err, HK_NOTFOUND, "no dead letter was requeued under that id");
    if (rc == HK_OK)
        *out_id = id;
    return rc;
}

enum hk_code hk_pl_paused(struct hk_admin *admin, const struct hk_names **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_names *names = hk_pg_alloc(pg, 1, sizeof *names);
    hk_pg_arg_i64(pg, &a, HK_NAMES_MAX);
    PGresult *res = hk_pg_query(pg, false, HK_PL_PAUSED, &a);
    int n = res ? PQntuples(res) : 0;
    if (names && n)
        names->items = hk_pg_alloc(pg, (size_t)n, sizeof *names->items);
    for (int i = 0; names && names->items && i < n; i++)
        names->items[names->n++] = hk_pg_text(pg, res, i, 0);
    PQclear(res);
    enum hk_code rc = hk_pl_end(admin, "read which destinations are paused", err);
    if (rc == HK_OK)
        *out = names;
    return rc;
}
