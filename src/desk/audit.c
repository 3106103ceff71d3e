/* SPDX-License-Identifier: Apache-2.0 */
/* The audit is read as it is: its rows name letters and reasons, never what masks hide. */
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/audit.h"
#include "desk/forms.h"

enum {
    LIMIT = 50,
    LIMIT_MAX = 100000,
    VERIFY_PAGE = 100, /* rows, each with a list of up to HK_LETTER_ACTS_MAX letters */
};

/* ---- list ---- */

static enum hk_code add_words(struct hk_audit_row *row, struct hk_pool *mem, struct hk_err *err)
{
    bool ok = hk_act_words(row, "filter", mem, &row->filter) == HK_OK &&
              hk_act_words(row, "jq", mem, &row->jq) == HK_OK;
    return ok ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code audit_list(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_audit_list_ask *ask, struct hk_pool *mem,
                               struct hk_audit_rows *out, struct hk_err *err)
{
    const struct hk_audit_page page = {.after_id = (int64_t)ask->after,
                                       .oldest_first = ask->oldest,
                                       .limit = (uint32_t)ask->limit,
                                       .letter_id = (int64_t)ask->letter,
                                       .actor = ask->by,
                                       .act = ask->act};
    const struct hk_audit_rows *rows = NULL;
    (void)caller;
    enum hk_code rc = desk->letters->audit(desk->admin, &page, &rows, err);
    if (rc != HK_OK)
        return rc;
    *out = *rows;
    hk_desk_keep(desk, mem);
    for (size_t i = 0; rc == HK_OK && i < out->n; i++)
        rc = add_words(&out->items[i], mem, err);
    return rc;
}

/* ---- show ---- */

static enum hk_code read_letters(struct hk_desk *desk, const struct hk_audit_show_ask *ask,
                                 struct hk_pool *mem, struct hk_audit_act *out, struct hk_err *err)
{
    const struct hk_audit_letters *letters = NULL;
    enum hk_code rc = desk->letters->act_letters(desk->admin, out->row.id, (int64_t)ask->after,
                                                 (uint32_t)ask->limit, &letters, err);
    if (rc != HK_OK)
        return rc;
    out->letters = *letters;
    hk_desk_keep(desk, mem);
    return HK_OK;
}

static enum hk_code read_id(const char *text, int64_t *out, struct hk_err *err)
{
    uint64_t id = 0;
    if (hk_parse_u64(hk_str_of(text), &id, NULL) != HK_OK || id == 0 || id > INT64_MAX)
        return hk_err_set(err, HK_INVALID, "an act is a number, as 'hikyaku audit list' shows it");
    *out = (int64_t)id;
    return HK_OK;
}

static enum hk_code check_act(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_audit_show_ask *ask = request;
    int64_t id = 0;
    (void)desk;
    return read_id(ask->id, &id, err);
}

static enum hk_code audit_show(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_audit_show_ask *ask, struct hk_pool *mem,
                               struct hk_audit_act *out, struct hk_err *err)
{
    int64_t id = 0;
    (void)caller;
    enum hk_code rc = read_id(ask->id, &id, err);
    if (rc == HK_OK)
        rc = hk_act_find(desk, id, mem, &out->row, err);
    if (rc == HK_OK)
        rc = read_letters(desk, ask, mem, out, err);
    return rc == HK_OK ? add_words(&out->row, mem, err) : rc;
}

/* ---- verify ---- */

static bool is(struct hk_str hash, const char *wanted)
{
    return hk_str_eq(hash, hk_str_of(wanted));
}

static void fail(struct hk_audit_verified *c, int64_t id, const char *why)
{
    if (c->bad_id == 0) {
        c->bad_id = id;
        c->why = why;
    }
}

/* Is it what retention left when it deleted the rows up to where the chain begins now? The store writes its detail, always
 * alike. */
static void look_for_purge(struct hk_audit_verified *c, const struct hk_audit_row *row,
                           struct hk_str first_prev)
{
    char wanted[HK_AUDIT_HASH_MAX + 20], detail[300];
    if (!is(row->act, "purge-audit") || first_prev.len == 0 ||
        !hk_str_copy(detail, sizeof detail, row->detail))
        return;
    (void)snprintf(wanted, sizeof wanted, "\"last_hash\":\"%.*s\"", (int)first_prev.len, first_prev.ptr);
    if (!strstr(detail, wanted))
        return;
    c->purged_ms = row->at_ms;
    const char *total = strstr(detail, "\"total\":");
    size_t skip = strlen("\"total\":");
    if (!total || hk_parse_u64((struct hk_str){total + skip, strspn(total + skip, "0123456789")}, &c->purged,
                               NULL) != HK_OK)
        c->purged = 0;
}

/* The row has the digest of its list, and the row's own hash covers that digest. A row without a digest has no list. */
static bool list_fits(const struct hk_audit_row *row)
{
    struct hk_str raw = {"\"\"", 2};
    (void)hk_act_detail(row, "list", &raw);
    return raw.len >= 2 && hk_str_eq((struct hk_str){raw.ptr + 1, raw.len - 2}, row->list);
}

static void look_at(struct hk_audit_verified *c, const struct hk_audit_row *row, struct hk_str first_prev)
{
    char hash[HK_AUDIT_HASH_MAX];
    c->rows++;
    if (row->hash.len == 0) {
        c->unchained++;
        if (c->begun)
            fail(c, row->id, "it has no hash, though rows before it have one");
        return;
    }
    hk_audit_hash(row, hash);
    if (!is(row->hash, hash))
        fail(c, row->id, "its contents do not fit its hash: it was changed");
    else if (!c->begun && !hk_str_eq(row->prev, first_prev))
        fail(c, row->id, "the rows before it are gone, and retention did not take them");
    else if (c->begun && !is(row->prev, c->head))
        fail(c, row->id, "it does not follow the row before it: one was taken out or put in");
    else if (!list_fits(row))
        fail(c, row->id,
             "its list does not fit its digest: letters or messages were changed, taken out or put in");
    look_for_purge(c, row, first_prev);
    c->begun = true;
    (void)snprintf(c->head, sizeof c->head, "%.*s", (int)row->hash.len, row->hash.ptr);
}

/* Rows that are missing at its front must be accounted for by what retention left; before schema version 5 it left nothing. An empty
 * audit ends where it begins. */
static void look_at_ends(struct hk_audit_verified *c, const struct hk_audit_rows *rows)
{
    bool front = rows->first_prev.len > 0 && !hk_str_eq(rows->first_prev, rows->unwitnessed_prev);
    if (!(c->begun ? is(rows->head, c->head) : hk_str_eq(rows->head, rows->first_prev)))
        fail(c, -1, "rows are missing at its end");
    else if (front && c->purged_ms == 0)
        fail(c, rows->first_id > 0 ? rows->first_id : -1,
             "the rows before it are gone, and no purge that stands in the audit took them");
}

/* If rows at the end were removed, the rest is still a whole chain, but it does not fit the head that the store keeps. Somebody may act
 * while we read: then we read the head again after the new rows. */
static enum hk_code audit_verify(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                                 struct hk_pool *mem, struct hk_audit_verified *out, struct hk_err *err)
{
    struct hk_audit_page page = {.oldest_first = true, .limit = VERIFY_PAGE, .parts = true, .lists = true};
    const struct hk_audit_rows *rows = NULL;
    (void)request, (void)mem;
    for (;;) {
        enum hk_code rc = desk->letters->audit(desk->admin, &page, &rows, err);
        if (rc != HK_OK)
            return rc;
        for (size_t i = 0; i < rows->n; i++)
            look_at(out, &rows->items[i], rows->first_prev);
        if (!rows->more)
            break;
        page.after_id = rows->last_id;
        hk_caller_progress(caller, out->rows, 0);
    }
    look_at_ends(out, rows);
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(audit_list)
HK_OP_RUN(audit_show)
HK_OP_RUN(audit_verify)

#define PAGE_ARGS(type)                                                                                      \
    {.name = "limit",                                                                                        \
     .kind = HK_ARG_NUMBER,                                                                                  \
     .offset = offsetof(struct type, limit),                                                                 \
     .lo = 1,                                                                                                \
     .hi = LIMIT_MAX,                                                                                        \
     .fallback = LIMIT,                                                                                      \
     .value = "N",                                                                                           \
     .help = "at most this many (default: 50)"},                                                             \
    {                                                                                                        \
        .name = "after", .kind = HK_ARG_NUMBER, .offset = offsetof(struct type, after), .lo = 1,             \
        .hi = (double)INT64_MAX, .value = "CURSOR", .help = "continue where an earlier list ended"           \
    }

static const struct hk_arg list_args[] = {
    {.name = "letter",
     .kind = HK_ARG_NUMBER,
     .offset = offsetof(struct hk_audit_list_ask, letter),
     .lo = 1,
     .hi = (double)INT64_MAX,
     .value = "ID",
     .help = "only operations on this dead letter"},
    {.name = "by",
     .kind = HK_ARG_TEXT,
     .offset = offsetof(struct hk_audit_list_ask, by),
     .value = "ACTOR",
     .help = "only by this person"},
    {.name = "act",
     .kind = HK_ARG_TEXT,
     .offset = offsetof(struct hk_audit_list_ask, act),
     .value = "ACT",
     .help = "only this operation: requeue, discard, reveal …"},
    PAGE_ARGS(hk_audit_list_ask),
    {.name = "oldest", .offset = offsetof(struct hk_audit_list_ask, oldest), .help = "oldest first"},
    {.name = NULL}};

static const struct hk_arg show_args[] = {{.name = "id",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_audit_show_ask, id),
                                           .value = "ACT"},
                                          PAGE_ARGS(hk_audit_show_ask),
                                          {.name = NULL}};

const struct hk_op hk_op_audit_list = {.noun = "audit",
                                       .verb = "list",
                                       .summary = "list what people did, newest first",
                                       .route = "GET /audit",
                                       .role = HK_ROLE_VIEWER,
                                       .store = true,
                                       .args = list_args,
                                       .request_size = sizeof(struct hk_audit_list_ask),
                                       .result_size = sizeof(struct hk_audit_rows),
                                       .run = audit_list_op,
                                       .form = hk_form_audit};

const struct hk_op hk_op_audit_show = {.noun = "audit",
                                       .verb = "show",
                                       .summary = "show one operation, with its dead letters or messages",
                                       .route = "GET /audit/{id}",
                                       .role = HK_ROLE_VIEWER,
                                       .store = true,
                                       .args = show_args,
                                       .request_size = sizeof(struct hk_audit_show_ask),
                                       .result_size = sizeof(struct hk_audit_act),
                                       .check = check_act,
                                       .run = audit_show_op,
                                       .form = hk_form_act};

const struct hk_op hk_op_audit_verify = {
    .noun = "audit",
    .verb = "verify",
    .summary = "check that nobody changed the audit: exit code 1 if its chain is broken",
    .route = "GET /audit/verify",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .is_long = true,
    .result_size = sizeof(struct hk_audit_verified),
    .run = audit_verify_op,
    .form = hk_form_verified};
