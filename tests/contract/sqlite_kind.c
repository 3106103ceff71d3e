/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and drops SQLite databases in a temporary folder, and speaks SQL to them as an application does. */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "sqlite_kind.h"

static char dir[200], path[256], url[300];
static sqlite3 *app;
static char value[4096];

bool sqlite_make_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/hikyaku-test-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return false;
    snprintf(path, sizeof path, "%s/outbox.db", dir);
    snprintf(url, sizeof url, "sqlite:%s", path);
    return true;
}

static bool make(void)
{
    struct hk_store_inited done;
    struct hk_err err = {0};
    if (!sqlite_make_dir() || hk_store_sqlite.init(url, &(struct hk_store_init){0}, &done, &err) != HK_OK) {
        print_error("make: %s\n", err.message);
        return false;
    }
    app = sqlite_connect();
    return true;
}

static void drop(void)
{
    sqlite3_close(app);
    app = NULL;
    DIR *folder = opendir(dir);
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        char file[600];
        snprintf(file, sizeof file, "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(file);
    }
    if (folder)
        closedir(folder);
    rmdir(dir);
}

static const char *get_url(void)
{
    return url;
}

sqlite3 *sqlite_connect(void)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 10000);
    return db;
}

static void sql(const char *text)
{
    char *message = NULL;
    int rc = sqlite3_exec(app, text, NULL, NULL, &message);
    NOTE_IF(rc != SQLITE_OK, "%s: %s\n", text, message);
    sqlite3_free(message);
    assert_int_equal(rc, SQLITE_OK);
}

static const char *get_value(const char *text)
{
    sqlite3_stmt *q = NULL;
    int rc = sqlite3_prepare_v2(app, text, -1, &q, NULL);
    NOTE_IF(rc != SQLITE_OK, "%s: %s\n", text, sqlite3_errmsg(app));
    assert_int_equal(rc, SQLITE_OK);
    value[0] = '\0';
    rc = sqlite3_step(q);
    if (rc == SQLITE_ROW && sqlite3_column_text(q, 0))
        snprintf(value, sizeof value, "%s", (const char *)sqlite3_column_text(q, 0));
    NOTE_IF(rc != SQLITE_ROW && rc != SQLITE_DONE, "%s: %s\n", text, sqlite3_errmsg(app));
    assert_true(rc == SQLITE_ROW || rc == SQLITE_DONE);
    sqlite3_finalize(q);
    return value;
}

const char *sqlite_path(void)
{
    return path;
}

const char *sqlite_dir(void)
{
    return dir;
}

void sqlite_assert_sound(void)
{
    assert_string_equal(get_value("PRAGMA integrity_check"), "ok");
}

static void time_text(const char *column, char *out, size_t room)
{
    snprintf(out, room, "%s", column);
}

static void guard(const char *table, const char *act, bool loud)
{
    char text[300];
    sql("DROP TRIGGER IF EXISTS keep_p2");
    if (!table)
        return;
    snprintf(text, sizeof text,
             "CREATE TRIGGER keep_p2 BEFORE %s ON %s WHEN %s.payload = 'p2' BEGIN SELECT RAISE(%s); END", act,
             table, act[0] == 'I' ? "new" : "old", loud ? "ABORT, 'not p2'" : "IGNORE");
    sql(text);
}

const struct store_kind sqlite_kind = {
    .ops = &hk_store_sqlite,
    .make = make,
    .drop = drop,
    .url = get_url,
    .sql = sql,
    .value = get_value,
    .one_lane = true,
    .host_clock = true,
    .brackets = "[]",
    .time_text = time_text,
    .guard = guard,
};
