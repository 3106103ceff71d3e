/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and migrates the schema. The database is an application's own and may be busy, and it may have tables that happen
 * to have our names: ours are known by outbox_meta and its schema_version, and nothing is touched when those do not fit.
 *
 * A version is one transaction, so that init may be killed anywhere. A lock that it needs may be held by somebody's long
 * transaction; whoever waits for such a lock makes everybody else wait behind himself, the application first. So init
 * waits only for a moment, gives way, and tries again. The row with the version lets two of them do one after the other; while
 * there is none yet, an advisory lock, which anybody could hold. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/str.h"
#include "store/migration.h"
#include "store/pg/pg.h"

#define LOCK_PAUSE_MS 700
#define LOCK_TRIES    25      /* half a minute */
#define APPLY_MS      3600000 /* an index on a large table takes its time */
#define SCRIPT_MAX    (64 * 1024)

uint32_t hk_pg_schema_wanted(void)
{
    return hk_migrations_newest(hk_migrations_postgres);
}

/* ---- what is there ---- */

#define OUR_NAMES                                                                                                                           \
    "'@outbox', '@outbox_relay', '@outbox_shard', '@outbox_claim', '@outbox_retry', '@outbox_sent', "                                       \
    "'@outbox_cancelled', '@dead_letters', '@outbox_attempts', '@outbox_destination', '@outbox_quota', '@outbox_bucket', '@outbox_audit', " \
    "'@outbox_meta', '@outbox_turn', '@outbox_messages', '@dead_letter_versions', '@outbox_redrive', '@outbox_exchange', "                  \
    "'@outbox_audit_letters', '@outbox_audit_of_letters', '@outbox_tokens', '@outbox_api_calls', '@outbox_job', '@outbox_series', "         \
    "'@outbox_audit_messages', '@outbox_destination_def', '@outbox_definitions', '@outbox_task', '@outbox_seats'"

/* Is there an outbox_meta that could be ours; and which of our names is taken first? */
#define LOOK                                                                                                 \
    "SELECT (SELECT count(*) FROM pg_catalog.pg_attribute a "                                                \
    "WHERE a.attrelid = pg_catalog.to_regclass('@outbox_meta') AND a.attname IN ('key', 'value') "           \
    "AND NOT a.attisdropped) = 2, "                                                                          \
    "(SELECT pg_catalog.to_regclass(n)::text FROM pg_catalog.unnest(ARRAY[" OUR_NAMES "]) AS n "             \
    "WHERE pg_catalog.to_regclass(n) IS NOT NULL ORDER BY 1 LIMIT 1)"

static uint32_t version_of(const PGresult *res)
{
    int64_t version = PQntuples(res) == 1 ? hk_pg_i64(res, 0, 0) : 0;
    return version > 0 && version <= UINT32_MAX ? (uint32_t)version : 0;
}

/* What is looked up by name is what was committed by then, not when the statement began: somebody else's init may end between
 * two names. Its tables all come at once, so a second look sees all of them. */
static PGresult *look_at_names(struct hk_pg *pg)
{
    PGresult *look = hk_pg_script(pg, LOOK);
    if (!hk_pg_ok(pg) || hk_pg_bool(look, 0, 0) || hk_pg_null(look, 0, 1))
        return look;
    PQclear(look);
    return hk_pg_script(pg, LOOK);
}

/* 0 = no schema of ours, and nothing in its way. Errors stick. */
static uint32_t read_version(struct hk_pg *pg)
{
    PGresult *look = look_at_names(pg), *res = NULL;
    uint32_t version = 0;
    if (hk_pg_bool(look, 0, 0)) {
        res = hk_pg_script(pg, "SELECT value::text FROM @outbox_meta WHERE key::text = 'schema_version'");
        version = hk_pg_ok(pg) ? version_of(res) : 0;
    }
    if (hk_pg_ok(pg) && version == 0 && !hk_pg_null(look, 0, 1)) {
        char words[200];
        snprintf(words, sizeof words,
                 "it has a table %s that is not hikyaku's: rename that table, or name a schema or a prefix: "
                 "?schema=NAME&prefix=NAME",
                 PQgetvalue(look, 0, 1));
        hk_pg_fail(pg, HK_CONFLICT, words);
    }
    PQclear(look);
    PQclear(res);
    return version;
}

/* A newer schema says from which version on programs can live with it: init may run first, and relays be exchanged one by
 * one. */
static bool is_compatible(struct hk_pg *pg)
{
    PGresult *res =
        hk_pg_script(pg, "SELECT value::text FROM @outbox_meta WHERE key::text = 'compatible_from'");
    uint32_t from = hk_pg_ok(pg) ? version_of(res) : 0;
    PQclear(res);
    return from > 0 && from <= hk_pg_schema_wanted();
}

static void refuse_newer(struct hk_pg *pg, uint32_t version)
{
    char words[120];
    if (version <= hk_pg_schema_wanted() || is_compatible(pg))
        return;
    snprintf(words, sizeof words, "its schema has version %u, this program knows %u: install a newer hikyaku",
             (unsigned)version, (unsigned)hk_pg_schema_wanted());
    hk_pg_fail(pg, HK_UNSUPPORTED, words);
}

enum hk_code hk_pg_check_schema(struct hk_pg *pg, uint32_t *out_version, struct hk_err *err)
{
    hk_pg_call(pg);
    uint32_t version = read_version(pg);
    refuse_newer(pg, version);
    if (out_version)
        *out_version = version;
    enum hk_code rc = hk_pg_end(pg, "use it", err);
    if (rc != HK_OK)
        return rc;
    if (version == 0)
        return hk_err_set(err, HK_NOTFOUND,
                          "%s: there is no outbox in it (no table %s%s%soutbox_meta): run `hikyaku init`",
                          pg->url.place, pg->url.schema, pg->url.schema[0] ? "." : "", pg->url.prefix);
    if (version < hk_pg_schema_wanted())
        return hk_err_set(err, HK_NOTFOUND,
                          "%s: its schema has version %u, this program needs %u: run `hikyaku init`",
                          pg->url.place, (unsigned)version, (unsigned)hk_pg_schema_wanted());
    return HK_OK;
}

/* ---- creating and migrating ---- */

/* One version as it is run and printed, without BEGIN and COMMIT. Asking first: who may not create schemas may still use one
 * that is there. */
static void add_migration(const struct hk_pg_url *url, const struct hk_migration *m, bool create_schema,
                          struct hk_buf *out)
{
    if (create_schema)
        hk_buf_addf(out, "CREATE SCHEMA IF NOT EXISTS \"%s\";\n", url->schema);
    hk_buf_adds(out, m->sql);
    hk_buf_addf(out, "UPDATE @outbox_meta SET value = '%u' WHERE key = 'schema_version';\n",
                (unsigned)m->version);
}

static bool lacks_schema(struct hk_pg *pg)
{
    char sql[HK_PG_NAME_MAX + 80];
    if (!pg->url.schema[0])
        return false;
    snprintf(sql, sizeof sql, "SELECT pg_catalog.to_regnamespace('\"%s\"') IS NULL", pg->url.schema);
    PGresult *res = hk_pg_script(pg, sql);
    bool lacks = hk_pg_bool(res, 0, 0);
    PQclear(res);
    return lacks;
}

static void run(struct hk_pg *pg, const char *sql)
{
    PQclear(hk_pg_script(pg, sql));
}

static void run_migration(struct hk_pg *pg, const struct hk_migration *m)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SCRIPT_MAX);
    add_migration(&pg->url, m, lacks_schema(pg), &sql);
    hk_buf_adds(&sql, "COMMIT");
    enum hk_code rc = hk_buf_status(&sql);
    if (rc == HK_OK)
        run(pg, hk_buf_cstr(&sql));
    else
        hk_pg_fail(pg, rc, "out of memory");
    hk_buf_fini(&sql);
}

/* The advice of others' errors is `hikyaku init`. */
enum hk_code hk_pg_end_schema(struct hk_pg *pg, struct hk_err *err)
{
    enum hk_code rc = hk_pg_end(pg, "change its schema", err);
    if (strcmp(pg->sqlstate, "42501") == 0 || strcmp(pg->sqlstate, "3F000") == 0)
        return hk_err_set(
            err, HK_UNAVAILABLE,
            "%s: cannot change its schema: %s (SQLSTATE %s): run this as a role that may create tables "
            "there, or name another schema: ?schema=NAME",
            pg->url.place, pg->err.message, pg->sqlstate);
    return rc;
}

/* One version, one transaction; somebody else may have done it while we waited for the lock. */
static enum hk_code apply_once(struct hk_pg *pg, const void *arg, struct hk_err *err)
{
    const struct hk_migration *m = arg;
    hk_pg_call(pg);
    run(pg, "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = '" HK_PG_LOCK_WAIT "'; "
            "SET LOCAL statement_timeout = 0");
    run(pg, m->version == 1 ? "SELECT pg_catalog.pg_advisory_xact_lock(7523377975159973749)"
                            : "SELECT 1 FROM @outbox_meta WHERE key = 'schema_version' FOR UPDATE");
    uint32_t version = read_version(pg);
    if (hk_pg_ok(pg) && version >= m->version)
        run(pg, "ROLLBACK");
    else if (hk_pg_ok(pg))
        run_migration(pg, m);
    return hk_pg_end_schema(pg, err);
}

enum hk_code hk_pg_patiently(struct hk_pg *pg,
                             enum hk_code (*once)(struct hk_pg *pg, const void *arg, struct hk_err *err),
                             const void *arg, struct hk_err *err)
{
    enum hk_code rc = HK_BUSY;
    for (int i = 0; i < LOCK_TRIES && rc == HK_BUSY; i++) {
        const struct timespec pause = {.tv_nsec = LOCK_PAUSE_MS * 1000000L};
        if (i > 0)
            nanosleep(&pause, NULL);
        rc = once(pg, arg, err);
    }
    return rc;
}

static enum hk_code migrate(struct hk_pg *pg, struct hk_store_inited *out, struct hk_err *err)
{
    out->to = out->from;
    for (const struct hk_migration *m = hk_migrations_postgres; m->version; m++) {
        enum hk_code rc = m->version > out->from ? hk_pg_patiently(pg, apply_once, m, err) : HK_OK;
        if (rc != HK_OK)
            return rc;
        if (m->version > out->to)
            out->to = m->version;
    }
    return HK_OK;
}

static enum hk_code print(struct hk_pg *pg, struct hk_buf *out_sql, struct hk_store_inited *out,
                          struct hk_err *err)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SCRIPT_MAX * 16);
    out->to = out->from;
    for (const struct hk_migration *m = hk_migrations_postgres; m->version; m++)
        if (m->version > out->from) {
            hk_buf_adds(&sql, "BEGIN;\nSET LOCAL lock_timeout = '" HK_PG_LOCK_WAIT "';\n");
            if (pg->url.schema[0])
                hk_buf_adds(&sql, "SET LOCAL search_path = " HK_PG_PATH ";\n");
            add_migration(&pg->url, m, m->version == 1 && pg->url.schema_said, &sql);
            hk_buf_adds(&sql, "COMMIT;\n");
            out->to = m->version;
        }
    hk_pg_url_names(&pg->url, hk_buf_cstr(&sql), out_sql);
    enum hk_code rc = hk_buf_status(&sql);
    if (rc == HK_OK)
        rc = hk_buf_status(out_sql);
    hk_buf_fini(&sql);
    return rc == HK_OK
               ? rc
               : hk_err_set(err, rc, "%s: cannot print its schema: %s", pg->url.place, hk_code_name(rc));
}

static const char *no_sql(unsigned id)
{
    (void)id;
    return "";
}

/* Its function (days.c) is no part of a migration: a new schema gets the new one. */
static bool has_old_days(struct hk_pg *pg, const struct hk_store_inited *done)
{
    if (done->from == 0 || done->from >= done->to)
        return false;
    hk_pg_call(pg);
    PGresult *res = hk_pg_script(
        pg, "SELECT pg_catalog.to_regprocedure('@outbox_sent_days(bigint, bigint, bigint)') IS NOT NULL");
    bool daily = hk_pg_ok(pg) && hk_pg_bool(res, 0, 0);
    PQclear(res);
    return daily;
}

enum hk_code hk_pg_init(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                        struct hk_err *err)
{
    static const struct hk_pg_table no_statements = {no_sql, 1, NULL, NULL};
    struct hk_store_inited done = {.wal = true}; /* a question that PostgreSQL does not have */
    struct hk_pg pg;
    enum hk_code rc = hk_pg_open(&pg, url, &no_statements, 0, err);
    if (rc != HK_OK)
        return rc;
    pg.call_ms = APPLY_MS;
    hk_pg_call(&pg);
    done.from = read_version(&pg);
    refuse_newer(&pg, done.from);
    rc = hk_pg_end(&pg, "read its schema", err);
    if (rc == HK_OK)
        rc = how->print ? print(&pg, how->print, &done, err) : migrate(&pg, &done, err);
    if (rc == HK_OK && !how->print)
        rc = hk_pg_mark_letters(&pg, err);
    if (rc == HK_OK && (how->partition_sent || has_old_days(&pg, &done)))
        rc = hk_pg_partition_sent(&pg, how->print, err);
    if (rc == HK_OK && how->notify != HK_NOTIFY_AS_IT_IS)
        rc = hk_pg_set_notify(&pg, how, &done, err);
    hk_pg_close(&pg);
    if (rc == HK_OK)
        *out = done;
    return rc;
}
