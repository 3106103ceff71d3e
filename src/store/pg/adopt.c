/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger on an application's own outbox table in PostgreSQL.
 *
 * It runs AFTER INSERT with the rights of whoever inserts, and never with the owner's: a function that runs with its owner's rights
 * is worth attacking. So each role that may insert into that table needs INSERT on our columns, and gets it by the same SQL.
 * AFTER, because a BEFORE trigger sees rows that ON CONFLICT or another trigger then drops: it would invent messages.
 * The SQL is one transaction: either everything is in place, or nothing is. */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "store/adopt.h"
#include "store/pg/admin.h"

/* What the application's role may write of outbox; those that the trigger writes are among them. */
#define WRITTEN                                                                                              \
    "message_id, destination, event_type, message_key, payload, headers, correlation_id, traceparent, "      \
    "not_before, expires_at, encoding"
#define TRIGGER "hikyaku_adopt"

/* ---- one value ---- */

static bool is_type(const struct hk_adopt_column *column, const char *type)
{
    return hk_str_eq(column->type, hk_str_of(type));
}

static bool is_integer(const struct hk_adopt_column *column)
{
    return is_type(column, "bigint") || is_type(column, "integer") || is_type(column, "smallint");
}

static enum hk_code add_time(const struct hk_adopt_column *column, struct hk_buf *out, struct hk_err *err)
{
    char name[HK_SHOW_MAX], type[HK_SHOW_MAX];
    bool has_zone = is_type(column, "timestamp with time zone");
    if (!has_zone && !is_type(column, "timestamp without time zone"))
        return hk_err_set(
            err, HK_INVALID,
            "column %s is of type %s, which is no time: leave it out with --column not_before= or "
            "expires_at=, and write that value in your own trigger",
            hk_show(column->name, name), hk_show(column->type, type));
    hk_adopt_add_column(column, out);
    (void)hk_buf_adds(out, has_zone ? "" : " AT TIME ZONE 'UTC'");
    return HK_OK;
}

static void add_as_text(const struct hk_adopt_column *column, struct hk_buf *out)
{
    hk_adopt_add_column(column, out);
    (void)hk_buf_adds(out, "::text");
}

static enum hk_code add_value(const struct hk_adopt_table *table, enum hk_adopt_to to, struct hk_buf *out,
                              struct hk_err *err)
{
    const struct hk_adopt_column *column = table->of[to];
    if (to == HK_ADOPT_NOT_BEFORE || to == HK_ADOPT_EXPIRES_AT)
        return add_time(column, out, err);
    if (to == HK_ADOPT_HEADERS && !column) {
        (void)hk_buf_adds(out, "jsonb_build_object('aggregatetype', coalesce(");
        add_as_text(table->of[HK_ADOPT_AGGREGATE_TYPE], out);
        (void)hk_buf_adds(out, ", ''))::text");
    } else if (to == HK_ADOPT_EVENT_TYPE) { /* the only column of outbox that refuses NULL */
        (void)hk_buf_adds(out, "coalesce(");
        add_as_text(column, out);
        (void)hk_buf_adds(out, ", '')");
    } else if (to == HK_ADOPT_MESSAGE_ID && is_integer(column)) {
        hk_adopt_add_id_prefix(table, out);
        (void)hk_buf_adds(out, " || ");
        hk_adopt_add_column(column, out);
    } else if (to == HK_ADOPT_PAYLOAD && is_type(column, "bytea")) {
        (void)hk_buf_adds(out, "encode(");
        hk_adopt_add_column(column, out);
        (void)hk_buf_adds(out, ", 'base64')");
    } else
        add_as_text(column, out);
    return HK_OK;
}

static const char *encoding_of(const struct hk_adopt_table *table)
{
    return is_type(table->of[HK_ADOPT_PAYLOAD], "bytea") ? "'base64'" : NULL;
}

static const struct hk_adopt_dialect dialect = {
    .outbox = "@outbox", .value = add_value, .encoding = encoding_of};

/* ---- the SQL ---- */

static void add_function(const struct hk_adopt_table *table, struct hk_buf *out)
{
    char name[HK_ADOPT_NAME_MAX + 1];
    (void)snprintf(name, sizeof name, TRIGGER "_%.*s", (int)table->name.len, table->name.ptr);
    hk_adopt_add_name(out, table->schema);
    (void)hk_buf_addc(out, '.');
    hk_adopt_add_name(out, hk_str_of(name));
    (void)hk_buf_adds(out, "()");
}

static enum hk_code add_body(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                             struct hk_buf *out, struct hk_err *err)
{
    struct hk_buf condition;
    hk_buf_init(&condition, HK_ADOPT_SQL_MAX);
    bool is_some = hk_adopt_add_condition(ask, table, &condition);
    if (is_some)
        (void)hk_buf_addf(out, "    IF %s THEN\n", hk_buf_cstr(&condition));
    hk_buf_inherit(out, &condition);
    hk_buf_fini(&condition);
    (void)hk_buf_adds(out, "    ");
    enum hk_code rc = hk_adopt_add_copy(ask, table, &dialect, false, out, err);
    if (ask->done) {
        (void)hk_buf_adds(out, "    ");
        hk_adopt_add_done(ask, table, false, out);
    }
    (void)hk_buf_adds(out, is_some ? "    END IF;\n" : "");
    return rc;
}

static void add_grants(const struct hk_adopt *ask, const struct hk_adopt_table *table, struct hk_pg *pg,
                       const PGresult *roles, struct hk_buf *out)
{
    for (int i = 0; i < PQntuples(roles); i++) {
        const char *role = PQgetvalue(roles, i, 0); /* quoted by the server */
        if (pg->url.schema[0])
            (void)hk_buf_addf(out, "GRANT USAGE ON SCHEMA \"%s\" TO %s;\n", pg->url.schema, role);
        (void)hk_buf_addf(out, "GRANT INSERT (" WRITTEN ") ON @outbox TO %s;\n", role);
        if (!ask->done)
            continue;
        (void)hk_buf_adds(out, "GRANT SELECT (");
        hk_adopt_add_name(out, table->of[HK_ADOPT_MESSAGE_ID]->name);
        (void)hk_buf_adds(out, "), UPDATE (");
        hk_adopt_add_name(out, table->of[HK_ADOPT_STATUS]->name);
        (void)hk_buf_adds(out, ") ON ");
        hk_adopt_add_table(table, out);
        (void)hk_buf_addf(out, " TO %s;\n", role);
    }
}

/* The count of rows is the last statement's. */
static enum hk_code add_existing(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                                 struct hk_buf *out, struct hk_err *err)
{
    enum hk_code rc = hk_adopt_add_copy(ask, table, &dialect, true, out, err);
    hk_adopt_add_done(ask, table, true, out);
    return rc;
}

static enum hk_code add_trigger(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                                struct hk_pg *pg, const PGresult *roles, struct hk_buf *out,
                                struct hk_err *err)
{
    (void)hk_buf_adds(out, "-- Each row that is inserted becomes a message of the same transaction:\n");
    hk_adopt_add_story(ask, table, out);
    (void)hk_buf_adds(out, "LOCK TABLE "); /* no INSERT between the trigger and the rows that are there */
    hk_adopt_add_table(table, out);
    (void)hk_buf_adds(out, " IN SHARE ROW EXCLUSIVE MODE;\nCREATE OR REPLACE FUNCTION ");
    add_function(table, out);
    (void)hk_buf_adds(out, " RETURNS trigger LANGUAGE plpgsql\n"
                           "    SET search_path = " HK_PG_PATH " AS $hikyaku$\nBEGIN\n");
    enum hk_code rc = add_body(ask, table, out, err);
    (void)hk_buf_adds(out, "    RETURN NULL;\nEND\n$hikyaku$;\nREVOKE ALL ON FUNCTION ");
    add_function(table, out);
    (void)hk_buf_adds(out, " FROM PUBLIC;\nCREATE OR REPLACE TRIGGER " TRIGGER " AFTER INSERT ON ");
    hk_adopt_add_table(table, out);
    (void)hk_buf_adds(out, "\n    FOR EACH ROW EXECUTE FUNCTION ");
    add_function(table, out);
    (void)hk_buf_adds(out, ";\n");
    add_grants(ask, table, pg, roles, out);
    return rc == HK_OK && ask->existing ? add_existing(ask, table, out, err) : rc;
}

static void add_undo(const struct hk_adopt_table *table, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "DROP TRIGGER IF EXISTS " TRIGGER " ON ");
    hk_adopt_add_table(table, out);
    (void)hk_buf_adds(out, ";\nDROP FUNCTION IF EXISTS ");
    add_function(table, out);
    (void)hk_buf_adds(out, ";\n");
}

/* ---- the table ---- */

static void arg_table(struct hk_pg *pg, struct hk_pg_args *a, const char *table)
{
    struct hk_str name = hk_str_of(table), schema = hk_str_cut(&name, '.');
    hk_pg_arg_text_or_null(pg, a, name.ptr ? schema : hk_str_of(""));
    hk_pg_arg_text(pg, a, name.ptr ? name : schema);
}

static enum hk_code take_columns(const struct hk_adopt *ask, struct hk_pg *pg, const PGresult *res,
                                 struct hk_adopt_table *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    int n = PQntuples(res);
    (void)hk_show(hk_str_of(ask->table), shown);
    if (n == 0)
        return hk_err_set(err, HK_INVALID, "%s: there is no table %s that this role can see", pg->url.place,
                          shown);
    if (hk_pg_bool(res, 0, 4))
        return hk_err_set(err, HK_INVALID,
                          "%s is hikyaku's own table: name the one that your application writes", shown);
    out->schema = hk_pg_text(pg, res, 0, 0);
    out->name = hk_pg_text(pg, res, 0, 1);
    for (int i = 0; i < n && i < HK_ADOPT_COLUMNS_MAX; i++) {
        if (!hk_str_eq(hk_str_of(PQgetvalue(res, i, 0)), out->schema))
            return hk_err_set(err, HK_INVALID,
                              "there is a table %s in the schemas %.63s and %.63s: name one, as "
                              "SCHEMA.TABLE",
                              shown, PQgetvalue(res, 0, 0), PQgetvalue(res, i, 0));
        out->columns[out->n++] =
            (struct hk_adopt_column){hk_pg_text(pg, res, i, 2), hk_pg_text(pg, res, i, 3)};
    }
    return HK_OK;
}

static enum hk_code read_table(struct hk_admin *admin, const struct hk_adopt *ask,
                               struct hk_adopt_table **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_err why = {.message = ""};
    arg_table(pg, &a, ask->table);
    struct hk_adopt_table *table = hk_pg_alloc(pg, 1, sizeof *table);
    PGresult *res = hk_pg_query(pg, false, HK_PA_ADOPT_COLUMNS, &a);
    enum hk_code refused = res && table ? take_columns(ask, pg, res, table, &why) : HK_OK;
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "look at the table", err);
    if (rc == HK_OK && refused != HK_OK)
        return hk_err_set(err, refused, "%s", why.message);
    if (rc == HK_OK)
        rc = hk_adopt_match(ask, table, err);
    if (rc == HK_OK)
        *out = table;
    return rc;
}

static enum hk_code make_sql(struct hk_admin *admin, const struct hk_adopt *ask,
                             const struct hk_adopt_table *table, struct hk_buf *out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    if (ask->undo) {
        add_undo(table, out);
        return HK_OK;
    }
    hk_pg_arg_text(pg, &a, table->schema);
    hk_pg_arg_text(pg, &a, table->name);
    PGresult *roles = hk_pg_query(pg, false, HK_PA_ADOPT_ROLES, &a);
    struct hk_err why = {.message = ""};
    enum hk_code made = roles ? add_trigger(ask, table, pg, roles, out, &why) : HK_OK;
    PQclear(roles);
    enum hk_code rc = hk_pg_end(pg, "see who may write the table", err);
    if (rc == HK_OK && made != HK_OK)
        return hk_err_set(err, made, "%s", why.message);
    if (rc == HK_OK && hk_buf_status(out) != HK_OK)
        return hk_err_set(err, hk_buf_status(out), "the SQL is too long");
    return rc;
}

/* ---- print or run ---- */

static enum hk_code print_sql(struct hk_pg *pg, const char *sql, struct hk_str *out, struct hk_err *err)
{
    struct hk_buf text;
    hk_buf_init(&text, HK_ADOPT_SQL_MAX);
    (void)hk_buf_adds(&text, HK_PG_BEGIN_CHANGE);
    hk_pg_url_names(&pg->url, sql, &text);
    (void)hk_buf_adds(&text, "COMMIT;\n");
    const char *copy =
        hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(hk_pg_pool(pg), hk_buf_str(&text)) : NULL;
    *out = (struct hk_str){copy, text.len};
    hk_buf_fini(&text);
    return copy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

/* The trigger and the row of the audit are one transaction. */
static enum hk_code apply(struct hk_admin *admin, const struct hk_adopt *ask,
                          const struct hk_adopt_table *table, const char *sql, uint64_t *out_copied,
                          struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_buf detail;
    hk_buf_init(&detail, HK_ADOPT_SQL_MAX);
    hk_adopt_detail(ask, table, &detail);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->undo ? "adopt-undo" : "adopt"));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    hk_pg_arg_text(pg, &a, hk_buf_str(&detail));
    if (hk_buf_status(&detail) != HK_OK)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    hk_buf_fini(&detail);
    hk_pg_begin(pg, true);
    hk_pg_hold(pg);
    PGresult *res = hk_pg_script(pg, sql);
    *out_copied = ask->existing && res ? (uint64_t)hk_pg_touched(res) : 0;
    PQclear(res);
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_ADOPT_AUDIT, &a);
    if (pg->held == HK_PG_HELD)
        pg->held = HK_PG_FREE; /* so that it is committed */
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    enum hk_code rc = hk_pa_end(admin, ask->undo ? "take the trigger away" : "adopt the table", err);
    hk_pg_unhold(pg);
    return rc;
}

enum hk_code hk_pa_adopt(struct hk_admin *admin, const struct hk_adopt *ask, struct hk_adopted *out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_adopt_table *table = NULL;
    struct hk_buf sql;
    uint64_t copied = 0;
    struct hk_str text = {NULL, 0};
    hk_pg_call(pg);
    enum hk_code rc = read_table(admin, ask, &table, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_init(&sql, HK_ADOPT_SQL_MAX);
    rc = make_sql(admin, ask, table, &sql, err);
    if (rc == HK_OK)
        rc = print_sql(pg, hk_buf_cstr(&sql), &text, err);
    if (rc == HK_OK && ask->reason)
        rc = apply(admin, ask, table, hk_buf_cstr(&sql), &copied, err);
    hk_buf_fini(&sql);
    if (rc == HK_OK)
        *out = (struct hk_adopted){
            .table = table->name, .sql = text, .applied = ask->reason != NULL, .copied = copied};
    return rc;
}
