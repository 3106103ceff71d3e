/* SPDX-License-Identifier: Apache-2.0 */
/* Creates and migrates the schema. The database may be an application's own, with tables that happen to have our names:
 * ours are known by outbox_meta and its schema_version, and nothing is touched when those do not fit. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "core/letter.h"
#include "observe/crash.h"
#include "store/migration.h"
#include "store/sqlite/sqlite.h"

static uint32_t newest_version(void)
{
    return hk_migrations_newest(hk_migrations_sqlite);
}

static enum hk_code db_error(sqlite3 *db, const char *path, int rc, const char *doing, struct hk_err *err)
{
    return hk_sq_error(path, rc, sqlite3_system_errno(db), doing, sqlite3_errmsg(db), err);
}

/* The text of the first column of the first row, or false. */
static bool ask(sqlite3 *db, const char *sql, char *out, size_t room, int *out_rc)
{
    sqlite3_stmt *q = NULL;
    bool found = false;
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);
        if (text) {
            snprintf(out, room, "%s", text);
            found = true;
        }
        rc = sqlite3_errcode(db) == SQLITE_NOMEM ? SQLITE_NOMEM : SQLITE_DONE;
    }
    sqlite3_finalize(q);
    *out_rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
    return found;
}

#define OUR_NAMES                                                                                                    \
    "'outbox', 'outbox_relay', 'outbox_claim', 'outbox_retry', 'outbox_sent', 'outbox_cancelled', 'dead_letters', "  \
    "'outbox_attempts', 'outbox_destination', 'outbox_audit', 'outbox_meta', 'outbox_messages', "                    \
    "'dead_letter_versions', 'outbox_redrive', 'outbox_audit_letters', 'outbox_audit_of_letters', 'outbox_tokens', " \
    "'outbox_api_calls', 'outbox_job', 'outbox_series', 'outbox_audit_messages', 'outbox_cancelled_past', "          \
    "'outbox_destination_def', 'outbox_definitions'"

/* 0 = no schema of ours, and nothing in its way. */
static enum hk_code read_version(sqlite3 *db, const char *path, uint32_t *out_version, struct hk_err *err)
{
    char name[80], text[24];
    int rc = SQLITE_OK;
    bool meta = ask(db, "SELECT name FROM sqlite_schema WHERE type = 'table' AND name = 'outbox_meta'", name,
                    sizeof name, &rc);
    if (rc != SQLITE_OK)
        return db_error(db, path, rc, "read its schema", err);
    bool versioned =
        meta && ask(db, "SELECT value FROM outbox_meta WHERE key = 'schema_version'", text, sizeof text, &rc);
    if (rc != SQLITE_OK &&
        (rc & 0xff) != SQLITE_ERROR) /* SQLITE_ERROR: a table of that name, but other columns */
        return db_error(db, path, rc, "read its schema version", err);

    uint64_t version = 0;
    if (versioned && hk_parse_u64(hk_str_of(text), &version, NULL) == HK_OK && version > 0 &&
        version <= UINT32_MAX) {
        *out_version = (uint32_t)version;
        return HK_OK;
    }
    bool taken = ask(db, "SELECT name FROM sqlite_schema WHERE lower(name) IN (" OUR_NAMES ") ORDER BY name",
                     name, sizeof name, &rc);
    if (rc != SQLITE_OK)
        return db_error(db, path, rc, "read its schema", err);
    if (taken)
        return hk_err_set(
            err, HK_CONFLICT,
            "%s: it has a table %s that is not hikyaku's: rename that table, or use another database", path,
            name);
    *out_version = 0;
    return HK_OK;
}

/* The schema may say that programs of an older version can work with it: relays are then restarted one by one after
 * `hikyaku init`. 0 = it does not say. */
static uint64_t compatible_from(sqlite3 *db)
{
    char text[24];
    uint64_t version = 0;
    int rc = SQLITE_OK;
    if (!ask(db, "SELECT value FROM outbox_meta WHERE key = 'compatible_from'", text, sizeof text, &rc) ||
        hk_parse_u64(hk_str_of(text), &version, NULL) != HK_OK)
        return 0;
    return version;
}

static enum hk_code refuse_newer(sqlite3 *db, const char *path, uint32_t version, struct hk_err *err)
{
    if (version <= newest_version())
        return HK_OK;
    uint64_t from = compatible_from(db);
    if (from > 0 && from <= newest_version())
        return HK_OK;
    return hk_err_set(err, HK_UNSUPPORTED,
                      "%s: its schema has version %u, this program knows %u: install a newer hikyaku", path,
                      (unsigned)version, (unsigned)newest_version());
}

enum hk_code hk_sq_check_schema(sqlite3 *db, const char *path, struct hk_err *err)
{
    uint32_t version = 0;
    enum hk_code rc = read_version(db, path, &version, err);
    if (rc != HK_OK)
        return rc;
    if (version == 0)
        return hk_err_set(err, HK_NOTFOUND, "%s: there is no outbox in it: run `hikyaku init`", path);
    if (version < newest_version())
        return hk_err_set(err, HK_NOTFOUND,
                          "%s: its schema has version %u, this program needs %u: run `hikyaku init`", path,
                          (unsigned)version, (unsigned)newest_version());
    return refuse_newer(db, path, version, err);
}

/* As sqlite3_exec, with a place between any two statements at which a test may end us. */
static int run_script(sqlite3 *db, const char *sql)
{
    int rc = SQLITE_OK;
    while (rc == SQLITE_OK && *sql) {
        sqlite3_stmt *q = NULL;
        rc = sqlite3_prepare_v2(db, sql, -1, &q, &sql);
        while (rc == SQLITE_OK && q && (rc = sqlite3_step(q)) == SQLITE_ROW)
            rc = SQLITE_OK;
        sqlite3_finalize(q); /* NULL: only blanks and comments were left */
        rc = rc == SQLITE_DONE ? SQLITE_OK : rc;
        hk_crash_point("migrate");
    }
    return rc;
}

/* One version, one transaction; somebody else may have done it while we waited for the lock. */
static enum hk_code apply(sqlite3 *db, const char *path, const struct hk_migration *m, struct hk_err *err)
{
    uint32_t version = 0;
    int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return db_error(db, path, rc, "change its schema", err);
    enum hk_code code = read_version(db, path, &version, err);
    if (code == HK_OK && version < m->version) {
        char set[96];
        snprintf(set, sizeof set, "UPDATE outbox_meta SET value = '%u' WHERE key = 'schema_version'",
                 (unsigned)m->version);
        rc = run_script(db, m->sql);
        if (rc == SQLITE_OK)
            rc = run_script(db, set);
        if (rc == SQLITE_OK)
            rc = run_script(db, "COMMIT");
        if (rc != SQLITE_OK)
            code = db_error(db, path, rc, "change its schema", err);
    }
    if (!sqlite3_get_autocommit(db))
        sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
    return code;
}

/* ---- letters from before version 2 ---- */

static struct hk_str argument(sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    return (struct hk_str){text ? text : "", text ? (size_t)sqlite3_value_bytes(value) : 0};
}

/* hk_fingerprint(class, reason, destination, error) */
static void sql_fingerprint(sqlite3_context *context, int n, sqlite3_value **values)
{
    char print[HK_FINGERPRINT_MAX];
    const char *name = (const char *)sqlite3_value_text(values[0]);
    enum hk_class cls = name ? hk_class_by_name(name) : HK_CLASS_SUCCESS;
    (void)n;
    hk_fingerprint(cls == HK_NCLASSES ? HK_CLASS_SUCCESS : cls, argument(values[1]), argument(values[2]),
                   argument(values[3]), print);
    sqlite3_result_text(context, print, -1, SQLITE_TRANSIENT);
}

/* hk_fault(reason, cause, status) */
static void sql_fault(sqlite3_context *context, int n, sqlite3_value **values)
{
    (void)n;
    enum hk_blame fault = hk_blame_of(argument(values[0]), argument(values[1]), sqlite3_value_int(values[2]));
    sqlite3_result_text(context, hk_blame_name(fault), -1, SQLITE_STATIC);
}

#define DETAIL(field) "CASE WHEN json_valid(error_detail) THEN json_extract(error_detail, '$." field "') END"

/* What SQL alone could not compute, some at a time, so that a relay gets its turn. */
static enum hk_code fill_in(sqlite3 *db, const char *path, struct hk_err *err)
{
    int rc = sqlite3_create_function(db, "hk_fingerprint", 4, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL,
                                     sql_fingerprint, NULL, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(db, "hk_fault", 3, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, sql_fault,
                                     NULL, NULL);
    do {
        if (rc == SQLITE_OK)
            rc = sqlite3_exec(
                db,
                "UPDATE dead_letters SET "
                "fingerprint = hk_fingerprint(failure_class, reason_code, destination, error_message), "
                "fault = hk_fault(reason_code, " DETAIL("cause") ", " DETAIL(
                    "status") ") "
                              "WHERE id IN (SELECT id FROM dead_letters INDEXED BY dead_letters_group "
                              "WHERE fingerprint IS NULL LIMIT 2000)",
                NULL, NULL, NULL);
        hk_crash_point("migrate");
    } while (rc == SQLITE_OK && sqlite3_changes(db) > 0);
    return rc == SQLITE_OK ? HK_OK : db_error(db, path, rc, "group its dead letters", err);
}

/* ---- init ---- */

static bool in_wal(sqlite3 *db, int *out_rc)
{
    char mode[16];
    return ask(db, "PRAGMA journal_mode", mode, sizeof mode, out_rc) && strcmp(mode, "wal") == 0;
}

static enum hk_code set_wal(sqlite3 *db, const char *path, bool may_switch, bool *out_wal, struct hk_err *err)
{
    int rc = SQLITE_OK;
    bool wal = in_wal(db, &rc);
    if (!wal && may_switch && rc == SQLITE_OK) {
        char mode[16];
        ask(db, "PRAGMA journal_mode = WAL", mode, sizeof mode, &rc);
        if (rc == SQLITE_OK)
            wal = in_wal(db, &rc);
    }
    if (rc != SQLITE_OK)
        return db_error(db, path, rc, "switch it to WAL", err);
    *out_wal = wal;
    return HK_OK;
}

static enum hk_code migrate(sqlite3 *db, const char *path, bool may_switch, struct hk_store_inited *out,
                            struct hk_err *err)
{
    enum hk_code rc = read_version(db, path, &out->from, err);
    /* what it takes to sort and to undo a table of millions does not belong into memory */
    int sq = sqlite3_exec(db, "PRAGMA temp_store = FILE; PRAGMA cache_size = -32768", NULL, NULL, NULL);
    if (rc == HK_OK && sq != SQLITE_OK)
        rc = db_error(db, path, sq, "change its schema", err);
    if (rc == HK_OK)
        rc = refuse_newer(db, path, out->from, err);
    if (rc == HK_OK)
        rc = set_wal(db, path, may_switch, &out->wal, err);
    out->to = out->from;
    for (const struct hk_migration *m = hk_migrations_sqlite; rc == HK_OK && m->version; m++) {
        if (m->version > out->from)
            rc = apply(db, path, m, err);
        if (rc == HK_OK && m->version > out->to)
            out->to = m->version;
    }
    if (rc == HK_OK)
        rc = fill_in(db, path, err);
    return rc;
}

static enum hk_code print(sqlite3 *db, const char *path, struct hk_buf *out_sql, struct hk_store_inited *out,
                          struct hk_err *err)
{
    if (db) {
        int sq = SQLITE_OK;
        enum hk_code rc = read_version(db, path, &out->from, err);
        if (rc == HK_OK)
            rc = refuse_newer(db, path, out->from, err);
        if (rc != HK_OK)
            return rc;
        out->wal = in_wal(db, &sq);
    }
    if (!out->wal)
        hk_buf_adds(out_sql, "PRAGMA journal_mode = WAL;\n");
    out->to = out->from;
    for (const struct hk_migration *m = hk_migrations_sqlite; m->version; m++)
        if (m->version > out->from) {
            hk_buf_adds(out_sql, "BEGIN IMMEDIATE;\n");
            hk_buf_adds(out_sql, m->sql);
            hk_buf_addf(out_sql,
                        "UPDATE outbox_meta SET value = '%u' WHERE key = 'schema_version';\nCOMMIT;\n",
                        (unsigned)m->version);
            out->to = m->version;
        }
    enum hk_code rc = hk_buf_status(out_sql);
    return rc == HK_OK ? rc : hk_err_set(err, rc, "%s: cannot print its schema: %s", path, hk_code_name(rc));
}

enum hk_code hk_sq_init(const char *url, const struct hk_store_init *how, struct hk_store_inited *out,
                        struct hk_err *err)
{
    char *path = NULL;
    sqlite3 *db = NULL;
    struct hk_store_inited done = {0};
    enum hk_code rc = hk_sq_path(url, &path, err);
    if (rc == HK_OK) {
        rc = hk_sq_connect(path, !how->print, &db, &done.created, err);
        if (how->print && rc == HK_NOTFOUND) { /* printing creates nothing */
            done.created = true;
            rc = HK_OK;
        }
    }
    if (rc == HK_OK && how->print)
        rc = print(db, path, how->print, &done, err);
    else if (rc == HK_OK)
        rc = migrate(db, path, how->allow_wal || done.created, &done, err);
    sqlite3_close(db);
    hk_mem_free(path);
    if (rc == HK_OK)
        *out = done;
    return rc;
}
