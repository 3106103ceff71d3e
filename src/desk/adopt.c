/* SPDX-License-Identifier: Apache-2.0 */
/* Adopting an application's own outbox table. */
#include <string.h>

#include "base/str.h"
#include "desk/adopt.h"
#include "desk/forms.h"

#define DEBEZIUM_TABLE "outboxevent" /* as Debezium's documentation and its Quarkus extension call it */

static bool is_debezium(const struct hk_adopt_ask *ask)
{
    return ask->from && strcmp(ask->from, "debezium") == 0;
}

static enum hk_code check_adopt(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_adopt_ask *ask = request;
    if (!ask->from && !ask->undo)
        return hk_desk_wrong(desk, "from", err, "is missing: debezium, or polling for a table with a status");
    if (!ask->table && !is_debezium(ask))
        return hk_desk_wrong(desk, "table", err, "is missing: TABLE or SCHEMA.TABLE of your outbox");
    if (ask->existing && is_debezium(ask))
        return hk_desk_wrong(desk, "existing", err,
                             ": nothing in such a table says which rows Debezium has sent already; stop the "
                             "writers and let the connector catch up first (docs/moving.md)");
    if (ask->existing && !ask->done)
        return hk_desk_wrong(desk, "existing", err,
                             "needs --done STATUS, which tells the rows that were copied from the others");
    return HK_OK;
}

static enum hk_code adopt(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_adopt_ask *ask, struct hk_pool *mem, struct hk_adopt_done *out,
                          struct hk_err *err)
{
    const struct hk_adopt adopt = {.from = is_debezium(ask) ? HK_ADOPT_DEBEZIUM : HK_ADOPT_POLLING,
                                   .table = ask->table ? ask->table : DEBEZIUM_TABLE,
                                   .destination = ask->destination,
                                   .columns = ask->column.items,
                                   .n_columns = ask->column.n,
                                   .pending = ask->pending.items,
                                   .n_pending = ask->pending.n,
                                   .done = ask->done,
                                   .existing = ask->existing,
                                   .undo = ask->undo,
                                   .actor = caller->actor,
                                   .reason = ask->apply ? caller->reason : NULL};
    struct hk_adopted done;
    *out = (struct hk_adopt_done){.applied = false};
    enum hk_code rc = desk->ops->adopt(desk->admin, &adopt, &done, err);
    if (rc != HK_OK)
        return rc;
    hk_desk_keep(desk, mem);
    (void)hk_store_place(desk->url, out->place);
    out->table = done.table;
    out->sql = done.sql;
    out->applied = done.applied;
    out->copied = done.copied;
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(adopt)

static const struct hk_arg adopt_args[] = {
    {HK_ARG(hk_adopt_ask, from, HK_ARG_CHOICE, "KIND",
            "what your table looks like: debezium (aggregatetype, aggregateid, type, "
            "payload) or polling (status, retry_count, next_retry_at)"),
     .choices = "debezium polling"},
    {HK_ARG(hk_adopt_ask, table, HK_ARG_TEXT, "TABLE",
            "your table, or SCHEMA.TABLE (default for debezium: outboxevent)")},
    {HK_ARG(hk_adopt_ask, destination, HK_ARG_TEXT, "NAME",
            "destination of every message (default: the column destination, else the relay's routes)")},
    {HK_ARG(
        hk_adopt_ask, column, HK_ARG_TEXTS, "OURS=THEIRS",
        "which of your columns is ours, where the name does not say so; OURS= leaves it out; may be repeated")},
    {HK_ARG(hk_adopt_ask, pending, HK_ARG_TEXTS, "STATUS",
            "only rows with this status become messages; may be repeated (default: pending)")},
    {HK_ARG(
        hk_adopt_ask, done, HK_ARG_TEXT, "STATUS",
        "give a copied row this status, so that your old publisher leaves it alone (default: change nothing)")},
    {HK_ARG(hk_adopt_ask, existing, HK_ARG_FLAG, NULL, "also copy the rows that wait already; needs --done")},
    {HK_ARG(hk_adopt_ask, undo, HK_ARG_FLAG, NULL, "remove the trigger again")},
    {HK_ARG(hk_adopt_ask, apply, HK_ARG_FLAG, NULL, "run the SQL; without, it is only printed")},
    {.name = NULL}};

/* Not over HTTP: it needs the owner's rights on the application's table, which no relay should have. */
const struct hk_op hk_op_adopt = {
    .noun = "adopt",
    .summary = "copy each row of your existing outbox table into hikyaku's, by a trigger",
    .details =
        "Prints the SQL of a trigger that copies each new row of your table into outbox, in the same\n"
        "transaction. Pipe it into psql or sqlite3, or run it with --apply and a --reason. Your application\n"
        "stays as it is. docs/moving.md has the steps for Debezium and others.",
    .role = HK_ROLE_ADMIN,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = adopt_args,
    .request_size = sizeof(struct hk_adopt_ask),
    .result_size = sizeof(struct hk_adopt_done),
    .check = check_adopt,
    .run = adopt_op,
    .form = hk_form_adopted};
