/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a SQLite file, told without needing a schema, or a sound one. */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/named.h"
#include "base/parse.h"
#include "base/str.h"
#include "store/migration.h"
#include "store/sqlite/admin.h"

enum {
    LOOK_EVERY = 10000 /* steps of SQLite's machine between two looks at the clock */
};

static int64_t clock_ms(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* The first column of the first row as text; "" when there is none. The result code. */
static int ask(sqlite3 *db, const char *sql, char *out, size_t room)
{
    sqlite3_stmt *q = NULL;
    out[0] = '\0';
    int rc = sqlite3_prepare_v2(db, sql, -1, &q, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_step(q);
    if (rc == SQLITE_ROW) {
        const char *text = (const char *)sqlite3_column_text(q, 0);
        snprintf(out, room, "%s", text ? text : "");
    }
    sqlite3_finalize(q);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static void look_at_disk(const char *path, struct hk_store_health *out)
{
    char wal[sizeof out->place + 8];
    struct statvfs fs;
    snprintf(out->place, sizeof out->place, "%s", path);
    out->file_bytes = size_of(path);
    snprintf(wal, sizeof wal, "%s-wal", out->place);
    out->wal_bytes = size_of(wal);
    out->free_bytes = statvfs(path, &fs) == 0 ? (uint64_t)fs.f_bavail * fs.f_frsize : UINT64_MAX;
}

static int out_of_time(void *arg)
{
    const int64_t *until_ms = arg;
    return clock_ms(CLOCK_MONOTONIC) >= *until_ms;
}

static void look_at_pages(sqlite3 *db, uint64_t integrity_ms, struct hk_store_health *out)
{
    int64_t until_ms = clock_ms(CLOCK_MONOTONIC) + (int64_t)integrity_ms;
    sqlite3_progress_handler(db, LOOK_EVERY, out_of_time, &until_ms);
    int rc = ask(db, "PRAGMA quick_check(1)", out->damage, sizeof out->damage);
    sqlite3_progress_handler(db, 0, NULL, NULL);
    if ((rc & 0xff) == SQLITE_INTERRUPT || (rc & 0xff) == SQLITE_BUSY) {
        out->integrity = HK_INTEGRITY_UNFINISHED;
    } else if (rc != SQLITE_OK) {
        out->integrity = HK_INTEGRITY_BAD;
        snprintf(out->damage, sizeof out->damage, "%s", sqlite3_errmsg(db));
    } else {
        out->integrity = strcmp(out->damage, "ok") == 0 ? HK_INTEGRITY_OK : HK_INTEGRITY_BAD;
    }
}

static void look_at_schema(sqlite3 *db, const char *path, struct hk_store_health *out)
{
    char text[32];
    uint64_t version = 0;
    for (const struct hk_migration *m = hk_migrations_sqlite; m->version; m++)
        out->schema_wanted = m->version;
    out->schema = hk_sq_check_schema(db, path, &out->schema_error);
    if (ask(db, hk_sa_texts[HK_SA_SCHEMA_VERSION], text, sizeof text) == SQLITE_OK &&
        hk_parse_u64(hk_str_of(text), &version, NULL) == HK_OK && version <= UINT32_MAX)
        out->schema_version = (uint32_t)version;
    if (ask(db, hk_sa_texts[HK_SA_HIGH_WATER], text, sizeof text) != SQLITE_OK ||
        hk_parse_i64(hk_str_of(text), &out->high_water_ms, NULL) != HK_OK)
        out->high_water_ms = 0;
}

static struct hk_health_note *add_note(struct hk_store_health *out, enum hk_note_level level,
                                       const char *about, const char *code, const struct hk_named *values)
{
    static struct hk_health_note spare; /* never shown: there are fewer than room */
    struct hk_health_note *n = out->n_notes < HK_NOTES_MAX ? &out->notes[out->n_notes++] : &spare;
    n->level = level;
    n->code = code;
    hk_named_text(values, n->values, sizeof n->values);
    (void)snprintf(n->about, sizeof n->about, "%s", about);
    return n;
}

/* What others put on our tables, and what came of it. */
static void look_at_guards(sqlite3 *db, struct hk_store_health *out)
{
    char text[300];
    if (ask(db, hk_sq_texts[HK_SQ_LACKS], text, sizeof text) == SQLITE_OK && text[0]) {
        struct hk_health_note *n =
            add_note(out, HK_NOTE_FAIL, "tables", "tables_altered", HK_NAMED(hk_named_cstr("error", text)));
        (void)snprintf(n->text, sizeof n->text, "no relay starts: %s", text);
    }
    if (ask(db, hk_sq_texts[HK_SQ_TRIGGERS], text, sizeof text) == SQLITE_OK && text[0]) {
        struct hk_health_note *n =
            add_note(out, HK_NOTE_WARN, "tables", "tables_guarded", HK_NAMED(hk_named_cstr("objects", text)));
        (void)snprintf(n->text, sizeof n->text,
                       "others have put something on hikyaku's tables: %s; a row that it does not let go is "
                       "held, and not sent again",
                       text);
    }
    if (ask(db, hk_sa_texts[HK_SA_STUCK_TEXT], text, sizeof text) == SQLITE_OK && text[0]) {
        struct hk_health_note *n = add_note(out, HK_NOTE_FAIL, "stuck rows", "stuck_rows_of_file",
                                            HK_NAMED(hk_named_cstr("error", text)));
        (void)snprintf(n->text, sizeof n->text,
                       "%s; remove the cause, and the relay settles them within 30 s", text);
    }
}

/* Has the process a file open whose name was `gone`? Linux says so behind the name of what was deleted. */
static bool holds_deleted(const char *process, const char *gone)
{
    char folder[300], entry[600], target[4200];
    bool holds = false;
    (void)snprintf(folder, sizeof folder, "/proc/%s/fd", process);
    DIR *fds = opendir(folder);
    for (struct dirent *fd; fds && !holds && (fd = readdir(fds));) {
        (void)snprintf(entry, sizeof entry, "%s/%s", folder, fd->d_name);
        ssize_t n = readlink(entry, target, sizeof target - 1);
        if (n <= 0)
            continue;
        target[n] = '\0';
        holds = strcmp(target, gone) == 0;
    }
    if (fds)
        closedir(fds);
    return holds;
}

/* A process that writes to a log which was deleted sees nothing of what others commit, and they nothing of what it commits. Only those
 * are found that we may look at. */
static void look_for_cut_off(sqlite3 *db, struct hk_store_health *out)
{
    const char *file = sqlite3_db_filename(db, "main");
    char gone[4200];
    int n = file ? snprintf(gone, sizeof gone, "%s-wal (deleted)", file) : -1;
    DIR *all = n > 0 && (size_t)n < sizeof gone ? opendir("/proc") : NULL;
    for (struct dirent *one; all && (one = readdir(all));) {
        if (one->d_name[0] < '0' || one->d_name[0] > '9' || !holds_deleted(one->d_name, gone))
            continue;
        struct hk_health_note *note =
            add_note(out, HK_NOTE_FAIL, "WAL", "wal_deleted", HK_NAMED(hk_named_cstr("pid", one->d_name)));
        (void)snprintf(
            note->text, sizeof note->text,
            "process %.20s has a -wal file open that was deleted: it sees nothing of what others commit, and must not "
            "write it back; end it with SIGKILL, so that it copies nothing, and start it again",
            one->d_name);
        break;
    }
    if (all)
        closedir(all);
}

static const char *known_trap(void)
{
    if (sqlite3_libversion_number() < 3035000)
        return "older than 3.35: RETURNING is missing; install a newer SQLite";
    if (!sqlite3_threadsafe())
        return "built without threads: the relay's store thread is not safe with it; install another build";
    return NULL;
}

enum hk_code hk_sa_inspect(const char *url, uint64_t integrity_ms, struct hk_store_health *out,
                           struct hk_err *err)
{
    char *path = NULL;
    sqlite3 *db = NULL;
    bool created = false;
    struct hk_store_health health = {
        .is_file = true, .trap = known_trap(), .clock_ms = clock_ms(CLOCK_REALTIME)};
    enum hk_code rc = hk_sq_path(url, &path, err);
    if (rc == HK_OK)
        rc = hk_sq_connect(path, false, &db, &created, err);
    if (rc == HK_OK) {
        snprintf(health.engine, sizeof health.engine, "SQLite %s", sqlite3_libversion());
        look_at_disk(path, &health);
        int sq = ask(db, "PRAGMA journal_mode", health.journal, sizeof health.journal);
        if (sq != SQLITE_OK)
            rc = hk_sq_error(path, sq, sqlite3_system_errno(db), "read it", sqlite3_errmsg(db), err);
    }
    if (rc == HK_OK) {
        look_at_schema(db, path, &health);
        if (health.schema == HK_OK)
            look_at_guards(db, &health);
        look_for_cut_off(db, &health);
        look_at_pages(db, integrity_ms, &health);
    }
    sqlite3_close(db);
    hk_mem_free(path);
    if (rc == HK_OK)
        *out = health;
    return rc;
}
