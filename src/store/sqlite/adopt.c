/* SPDX-License-Identifier: Apache-2.0 */
/* A trigger on an application's own outbox table in the same SQLite file.
 *
 * No column of outbox gets a NULL from it: an application's INSERT OR IGNORE overrules what the schema says about NULL, for the
 * trigger's INSERT too, and the message would be dropped without a word. */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "store/adopt.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

#define TRIGGER "hikyaku_adopt_"

/* ---- one value ---- */

/* Prisma and others keep times as numbers: Unix milliseconds, or seconds. */
#define TIME_BEFORE "CASE WHEN typeof("
#define TIME_AFTER  ") IN ('integer', 'real') THEN strftime('%%Y-%%m-%%dT%%H:%%M:%%fZ', "
#define MS_FROM     "100000000000" /* below: seconds */

static void add_time(const struct hk_adopt_column *column, struct hk_buf *out)
{
    struct hk_buf name;
    hk_buf_init(&name, HK_ADOPT_SQL_MAX);
    hk_adopt_add_column(column, &name);
    const char *c = hk_buf_cstr(&name);
    (void)hk_buf_addf(out,
                      TIME_BEFORE "%s" TIME_AFTER "CASE WHEN %s >= " MS_FROM " THEN %s / 1000.0 ELSE %s END, "
                                  "'unixepoch') ELSE %s END",
                      c, c, c, c, c);
    hk_buf_inherit(out, &name);
    hk_buf_fini(&name);
}

static enum hk_code add_value(const struct hk_adopt_table *table, enum hk_adopt_to to, struct hk_buf *out,
                              struct hk_err *err)
{
    const struct hk_adopt_column *column = table->of[to];
    (void)err; /* SQLite has no types that could be wrong */
    if (to == HK_ADOPT_NOT_BEFORE || to == HK_ADOPT_EXPIRES_AT) {
        add_time(column, out);
    } else if (to == HK_ADOPT_HEADERS && !column) {
        (void)hk_buf_adds(out, "json_object('aggregatetype', CAST(coalesce(");
        hk_adopt_add_column(table->of[HK_ADOPT_AGGREGATE_TYPE], out);
        (void)hk_buf_adds(out, ", '') AS text))");
    } else if (to == HK_ADOPT_EVENT_TYPE || to == HK_ADOPT_DESTINATION) {
        (void)hk_buf_adds(out, "coalesce(");
        hk_adopt_add_column(column, out);
        (void)hk_buf_adds(out, ", '')");
    } else if (to == HK_ADOPT_MESSAGE_ID) {
        (void)hk_buf_adds(out, "CASE typeof(");
        hk_adopt_add_column(column, out);
        (void)hk_buf_adds(out, ") WHEN 'integer' THEN ");
        hk_adopt_add_id_prefix(table, out);
        (void)hk_buf_adds(out, " || ");
        hk_adopt_add_column(column, out);
        (void)hk_buf_adds(out, " WHEN 'null' THEN lower(hex(randomblob(16))) ELSE ");
        hk_adopt_add_column(column, out);
        (void)hk_buf_adds(out, " END");
    } else
        hk_adopt_add_column(column, out);
    return HK_OK;
}

static const char *encoding_of(const struct hk_adopt_table *table)
{
    (void)table; /* a BLOB is sent as it is */
    return NULL;
}

static const struct hk_adopt_dialect dialect = {
    .outbox = "outbox", .value = add_value, .encoding = encoding_of};

/* ---- the SQL ---- */

static void add_trigger_name(const struct hk_adopt_table *table, struct hk_buf *out)
{
    char name[sizeof TRIGGER + HK_ADOPT_NAME_MAX];
    (void)snprintf(name, sizeof name, TRIGGER "%.*s", (int)table->name.len, table->name.ptr);
    hk_adopt_add_name(out, hk_str_of(name));
}

static void add_drop(const struct hk_adopt_table *table, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "DROP TRIGGER IF EXISTS ");
    add_trigger_name(table, out);
    (void)hk_buf_adds(out, ";\n");
}

static enum hk_code add_trigger(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                                struct hk_buf *out, struct hk_err *err)
{
    (void)hk_buf_adds(out, "-- Each row that is inserted becomes a message of the same transaction:\n");
    hk_adopt_add_story(ask, table, out);
    add_drop(table, out);
    (void)hk_buf_adds(out, "CREATE TRIGGER ");
    add_trigger_name(table, out);
    (void)hk_buf_adds(out, " AFTER INSERT ON ");
    hk_adopt_add_table(table, out);
    struct hk_buf condition;
    hk_buf_init(&condition, HK_ADOPT_SQL_MAX);
    if (hk_adopt_add_condition(ask, table, &condition))
        (void)hk_buf_addf(out, "\n    WHEN %s", hk_buf_cstr(&condition));
    hk_buf_inherit(out, &condition);
    hk_buf_fini(&condition);
    (void)hk_buf_adds(out, "\nBEGIN\n    ");
    enum hk_code rc = hk_adopt_add_copy(ask, table, &dialect, false, out, err);
    if (ask->done) {
        (void)hk_buf_adds(out, "    ");
        hk_adopt_add_done(ask, table, false, out);
    }
    (void)hk_buf_adds(out, "END;\n");
    if (rc == HK_OK && ask->existing) { /* the count of rows is the last statement's */
        rc = hk_adopt_add_copy(ask, table, &dialect, true, out, err);
        hk_adopt_add_done(ask, table, true, out);
    }
    if (rc == HK_OK && hk_buf_status(out) != HK_OK)
        rc = hk_err_set(err, hk_buf_status(out), "the SQL is too long");
    return rc;
}

/* ---- the table ---- */

static struct hk_adopt_table *read_table(struct hk_store *store, const char *name)
{
    struct hk_adopt_table *table = hk_sq_alloc(store, 1, sizeof *table);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_ADOPT_COLUMNS]);
    hk_sq_bind_cstr(store, q, 1, name);
    while (table && table->n < HK_ADOPT_COLUMNS_MAX && hk_sq_row(store, q)) {
        table->name = hk_sq_text(store, q, 0);
        table->columns[table->n++] =
            (struct hk_adopt_column){hk_sq_text(store, q, 1), hk_sq_text(store, q, 2)};
    }
    sqlite3_finalize(q);
    return table;
}

static bool is_ours(struct hk_str table)
{
    return hk_str_eqi(table, hk_str_of("outbox")) || hk_str_eqi(table, hk_str_of("outbox_retry")) ||
           hk_str_eqi(table, hk_str_of("dead_letters"));
}

static enum hk_code check_table(const struct hk_store *store, const struct hk_adopt *ask,
                                struct hk_adopt_table *table, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    (void)hk_show(hk_str_of(ask->table), shown);
    if (table->n == 0)
        return hk_err_set(err, HK_INVALID, "%s: there is no table %s", store->path, shown);
    if (is_ours(table->name))
        return hk_err_set(err, HK_INVALID,
                          "%s is hikyaku's own table: name the one that your application writes", shown);
    return hk_adopt_match(ask, table, err);
}

/* ---- print or run ---- */

static void run_sql(struct hk_store *store, const char *sql)
{
    if (!hk_sq_ok(store))
        return;
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}

static void audit(struct hk_store *store, const struct hk_adopt *ask, const struct hk_adopt_table *table,
                  int64_t now_ms)
{
    struct hk_buf detail;
    hk_buf_init(&detail, HK_ADOPT_SQL_MAX);
    hk_adopt_detail(ask, table, &detail);
    if (hk_buf_status(&detail) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of(ask->actor),
                                              .act = hk_str_of(ask->undo ? "adopt-undo" : "adopt"),
                                              .reason = hk_str_of(ask->reason),
                                              .detail = hk_buf_str(&detail)});
    hk_buf_fini(&detail);
}

static enum hk_code print_sql(struct hk_store *store, const char *sql, struct hk_str *out, struct hk_err *err)
{
    struct hk_buf text;
    hk_buf_init(&text, HK_ADOPT_SQL_MAX);
    (void)hk_buf_addf(&text, "BEGIN IMMEDIATE;\n%sCOMMIT;\n", sql);
    const char *copy =
        hk_buf_status(&text) == HK_OK ? hk_pool_copy_str(hk_sq_pool(store), hk_buf_str(&text)) : NULL;
    *out = (struct hk_str){copy, text.len};
    hk_buf_fini(&text);
    return copy ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

enum hk_code hk_sa_adopt(struct hk_admin *admin, const struct hk_adopt *ask, struct hk_adopted *out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_adopted done = {.applied = ask->reason != NULL};
    struct hk_err why = {.message = ""};
    struct hk_buf sql;
    hk_buf_init(&sql, HK_ADOPT_SQL_MAX);
    hk_sq_call(store);
    if (done.applied)
        hk_sq_begin_write(store);
    else
        hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    struct hk_adopt_table *table = read_table(store, ask->table);
    enum hk_code refused = hk_sq_ok(store) ? check_table(store, ask, table, &why) : HK_OK;
    if (hk_sq_ok(store) && refused == HK_OK && ask->undo)
        add_drop(table, &sql);
    else if (hk_sq_ok(store) && refused == HK_OK)
        refused = add_trigger(ask, table, &sql, &why);
    if (hk_sq_ok(store) && refused == HK_OK)
        refused = print_sql(store, hk_buf_cstr(&sql), &done.sql, &why);
    if (hk_sq_ok(store) && refused == HK_OK && done.applied) {
        run_sql(store, hk_buf_cstr(&sql));
        done.copied = ask->existing && !ask->undo ? (uint64_t)sqlite3_changes(store->db) : 0;
        audit(store, ask, table, hk_sq_now(store));
    }
    hk_buf_fini(&sql);
    if (refused != HK_OK) {
        hk_sq_rollback(store);
        return hk_err_set(err, refused, "%s", why.message);
    }
    enum hk_code rc = hk_sq_end(store, ask->undo ? "take the trigger away" : "adopt the table", err);
    if (rc == HK_OK) {
        done.table = table->name;
        *out = done;
    }
    return rc;
}
