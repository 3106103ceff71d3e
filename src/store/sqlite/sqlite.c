/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store: opening, errors, transactions, waiting for locks, and time.
 *
 * Durability. WAL with synchronous NORMAL: a crash of any process loses nothing. A power cut may undo the last commits,
 * each as a whole and in order: a settle that is undone is sent again, a claim that is undone was perhaps sent and is sent
 * again, a dead letter that is undone is tried again. Nothing is lost, because rows only ever move. What an
 * application commits is as safe as its own connection's setting makes it. `sync_full` waits for the disk instead.
 *
 * Locks. Every writing call is BEGIN IMMEDIATE, so that it waits for the lock before it has read anything and can never
 * fail half-way for want of it. Calls are short; the busy handler sleeps a little, with jitter, up to busy_ms. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "store/sqlite/sqlite.h"
#include "store/turns.h"

#define BUSY_MS     UINT64_C(5000)
#define MAX_PAYLOAD (UINT64_C(1024) * 1024)

/* ---- errors ---- */

struct meaning {
    int rc; /* extended, or primary */
    enum hk_code code;
    const char *advice;
};

/* Extended codes stand before the primary code that they belong to. */
static const struct meaning meanings[] = {
    {SQLITE_BUSY, HK_BUSY, "another process holds the lock; try again"},
    {SQLITE_LOCKED, HK_BUSY, "another connection holds the lock; try again"},
    {SQLITE_FULL, HK_UNAVAILABLE, "the disk is full: free some space"},
    {SQLITE_READONLY, HK_UNAVAILABLE, "it is read-only: check the permissions of the file and of its folder"},
    {SQLITE_CANTOPEN, HK_UNAVAILABLE,
     "it cannot be opened: check that the folder exists and may be written to"},
    {SQLITE_PERM, HK_UNAVAILABLE, "check the permissions of the file and of its folder"},
    {SQLITE_AUTH, HK_UNAVAILABLE, "check the permissions of the file and of its folder"},
    {SQLITE_PROTOCOL, HK_BUSY, "too many processes compete for the lock; try again"},
    {SQLITE_ABORT, HK_BUSY, "what it belongs to was rolled back; try again"},
    {SQLITE_INTERRUPT, HK_BUSY, "it was interrupted; try again"},
    {SQLITE_SCHEMA, HK_BUSY, "the schema is being changed; try again"},
    {SQLITE_IOERR_NOMEM, HK_NOMEM, "out of memory"},
    {SQLITE_IOERR_CORRUPTFS, HK_IO,
     "the file system is damaged: check it, then the database (PRAGMA integrity_check)"},
    {SQLITE_IOERR_DATA, HK_IO, "the file is damaged: restore it from a backup"},
    {SQLITE_IOERR, HK_UNAVAILABLE, "the disk refuses to read or write: check its space and its state"},
    {SQLITE_NOMEM, HK_NOMEM, "out of memory"},
    {SQLITE_TOOBIG, HK_TOOBIG, "a row is larger than SQLite can move"},
    {SQLITE_CORRUPT, HK_IO,
     "the file is damaged: stop, keep a copy, and try the .recover command of the sqlite3 shell"},
    {SQLITE_CONSTRAINT, HK_IO,
     "a trigger or a constraint on hikyaku's tables refuses it: `hikyaku doctor` names it"},
    {SQLITE_NOTADB, HK_IO, "it is not a SQLite database (or it is encrypted)"},
};

static const struct meaning *meaning_of(int rc)
{
    static const struct meaning other = {0, HK_IO, "run `hikyaku doctor`"};
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (meanings[i].rc == rc || meanings[i].rc == (rc & 0xff))
            return &meanings[i];
    return &other;
}

enum hk_code hk_sq_error(const char *path, int rc, int os_errno, const char *doing, const char *words,
                         struct hk_err *err)
{
    const struct meaning *m = meaning_of(rc);
    if ((rc & 0xff) == SQLITE_IOERR && (os_errno == ENOSPC || os_errno == EDQUOT || os_errno == EFBIG))
        m = meaning_of(SQLITE_FULL);
    return hk_err_set(err, m->code, "%s: cannot %s: %s (SQLite %d): %s", path, doing, words, rc, m->advice);
}

bool hk_sq_ok(const struct hk_store *store)
{
    return store->rc == SQLITE_OK;
}

void hk_sq_fail(struct hk_store *store, int rc)
{
    if (store->rc != SQLITE_OK)
        return;
    store->rc = rc;
    store->os_errno = sqlite3_system_errno(store->db);
    bool ours = sqlite3_extended_errcode(store->db) != rc;
    snprintf(store->where, sizeof store->where, "%s", ours ? sqlite3_errstr(rc) : sqlite3_errmsg(store->db));
}

/* ---- statements ---- */

sqlite3_stmt *hk_sq_use(struct hk_store *store, enum hk_sq_id id)
{
    if (!hk_sq_ok(store))
        return NULL;
    if (!store->stmts[id]) {
        int rc = sqlite3_prepare_v3(store->db, hk_sq_texts[id], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->stmts[id], NULL);
        if (rc != SQLITE_OK) {
            hk_sq_fail(store, rc);
            return NULL;
        }
    }
    return store->stmts[id];
}

static void check_bind(struct hk_store *store, int rc)
{
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
}

void hk_sq_bind_i64(struct hk_store *store, sqlite3_stmt *q, int i, int64_t value)
{
    if (q)
        check_bind(store, sqlite3_bind_int64(q, i, value));
}

void hk_sq_bind_u64(struct hk_store *store, sqlite3_stmt *q, int i, uint64_t value)
{
    hk_sq_bind_i64(store, q, i, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void hk_sq_bind_text(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s)
{
    if (q)
        check_bind(store, sqlite3_bind_text64(q, i, s.len ? s.ptr : "", s.len, SQLITE_STATIC, SQLITE_UTF8));
}

void hk_sq_bind_cstr(struct hk_store *store, sqlite3_stmt *q, int i, const char *s)
{
    hk_sq_bind_text(store, q, i, hk_str_of(s));
}

void hk_sq_bind_text_or_null(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s)
{
    if (s.len)
        hk_sq_bind_text(store, q, i, s);
    else if (q)
        check_bind(store, sqlite3_bind_null(q, i));
}

void hk_sq_bind_bytes_or_null(struct hk_store *store, sqlite3_stmt *q, int i, struct hk_str s)
{
    if (!q || !s.len || !memchr(s.ptr, '\0', s.len))
        hk_sq_bind_text_or_null(store, q, i, s);
    else
        check_bind(store, sqlite3_bind_blob64(q, i, s.ptr, s.len, SQLITE_STATIC));
}

bool hk_sq_row(struct hk_store *store, sqlite3_stmt *q)
{
    if (!q || !hk_sq_ok(store))
        return false;
    int rc = sqlite3_step(q);
    if (rc == SQLITE_ROW)
        return true;
    if (rc != SQLITE_DONE)
        hk_sq_fail(store, rc);
    sqlite3_reset(q);
    return false;
}

void hk_sq_done(sqlite3_stmt *q)
{
    if (q)
        sqlite3_reset(q);
}

int hk_sq_run(struct hk_store *store, sqlite3_stmt *q)
{
    if (!q || !hk_sq_ok(store))
        return 0;
    while (hk_sq_row(store, q))
        continue;
    return hk_sq_ok(store) ? sqlite3_changes(store->db) : 0;
}

/* ---- transactions ---- */

void hk_sq_again(struct hk_store *store)
{
    store->rc = SQLITE_OK;
    if (store->held == HK_SQ_LOST)
        hk_sq_fail(store, SQLITE_ABORT_ROLLBACK);
}

void hk_sq_call(struct hk_store *store)
{
    hk_sq_again(store);
    store->pool ^= 1;
    hk_pool_reset(hk_sq_pool(store));
}

struct hk_pool *hk_sq_pool(struct hk_store *store)
{
    return &store->pools[store->pool];
}

void *hk_sq_alloc(struct hk_store *store, size_t count, size_t bytes)
{
    if (!hk_sq_ok(store))
        return NULL;
    void *ptr = hk_pool_alloc(hk_sq_pool(store), count, bytes);
    if (!ptr)
        hk_sq_fail(store, SQLITE_NOMEM);
    return ptr;
}

static int64_t monotonic_us(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* SQLite's write lock has no queue: whoever asks while it is held goes to sleep, for up to 100 ms with SQLite's own busy
 * handler. A relay that drains a backlog takes it again at once, and an application may find it taken for seconds. So, for
 * a second after others have committed something, we leave it free for a while between our transactions. */
static void make_way(struct hk_sq_courtesy *c)
{
    int64_t now_us = monotonic_us(), gap_us = (c->ended_us - c->began_us) / 3;
    int64_t wait_us = c->ended_us + (gap_us < 3000 ? gap_us : 3000) - now_us;
    if (now_us >= c->until_us || wait_us <= 0)
        return;
    struct timespec wait = {.tv_nsec = (long)wait_us * 1000};
    nanosleep(&wait, NULL);
}

/* Inside a transaction: has anybody else committed since our last one? */
static void look_for_others(struct hk_store *store)
{
    struct hk_sq_courtesy *c = &store->courtesy;
    c->began_us = monotonic_us();
    int version = hk_sq_data_version(store);
    if (c->data_version && version != c->data_version) {
        c->until_us = c->began_us + 1000000;
        c->others = true;
    }
    c->data_version = version;
}

/* Within this process writers line up, so that none of them is unlucky for long. */
static void take_turn(struct hk_store *store)
{
    if (!store->options.turns || store->has_turn || !hk_sq_ok(store))
        return;
    store->has_turn = hk_turns_take(store->options.turns);
    if (!store->has_turn)
        hk_sq_fail(store, SQLITE_BUSY);
}

/* With the end of the transaction, however it ended. */
static void give_turn(struct hk_store *store)
{
    if (store->has_turn)
        hk_turns_give(store->options.turns);
    store->has_turn = false;
}

bool hk_sq_begin_write(struct hk_store *store)
{
    if (store->held != HK_SQ_FREE)
        return hk_sq_ok(store);
    make_way(&store->courtesy);
    take_turn(store);
    hk_sq_run(store, hk_sq_use(store, HK_SQ_BEGIN_WRITE));
    store->aside = false;
    look_for_others(store);
    return hk_sq_ok(store);
}

int hk_sq_data_version(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DATA_VERSION);
    int version = hk_sq_row(store, q) ? sqlite3_column_int(q, 0) : 0;
    hk_sq_done(q);
    return version;
}

bool hk_sq_begin_read(struct hk_store *store)
{
    if (store->held != HK_SQ_FREE)
        return hk_sq_ok(store);
    hk_sq_run(store, hk_sq_use(store, HK_SQ_BEGIN_READ));
    return hk_sq_ok(store);
}

/* An open cursor would keep the transaction, and with it the WAL, from ending. */
static void reset_all(struct hk_store *store)
{
    for (int i = 0; i < HK_SQ_NSTMTS; i++)
        if (store->stmts[i] && sqlite3_stmt_busy(store->stmts[i]))
            sqlite3_reset(store->stmts[i]);
}

/* By a statement that is ready since the store was opened: there may be no memory to prepare one now. */
void hk_sq_rollback(struct hk_store *store)
{
    reset_all(store);
    if (store->held == HK_SQ_HELD)
        store->held = HK_SQ_LOST;
    sqlite3_stmt *q = store->stmts[HK_SQ_ROLLBACK];
    if (!sqlite3_get_autocommit(store->db)) { /* some errors have rolled back already */
        sqlite3_step(q);
        sqlite3_reset(q);
    }
    give_turn(store);
}

enum hk_code hk_sq_end(struct hk_store *store, const char *doing, struct hk_err *err)
{
    if (hk_sq_ok(store) && store->held == HK_SQ_FREE && !sqlite3_get_autocommit(store->db)) {
        reset_all(store);
        hk_sq_run(store, hk_sq_use(store, HK_SQ_COMMIT));
        store->courtesy.ended_us = monotonic_us();
    }
    if (sqlite3_get_autocommit(store->db))
        give_turn(store);
    if (hk_sq_ok(store))
        return HK_OK;
    hk_sq_rollback(store);
    return hk_sq_error(store->path, store->rc, store->os_errno, doing, store->where, err);
}

/* ---- waiting for locks ---- */

/* Short at first, since others' transactions are; jitter, so that two relays do not knock in step. */
static int on_busy(void *arg, int count)
{
    struct hk_store *store = arg;
    int64_t now_ms = monotonic_us() / 1000;
    if (count == 0)
        store->busy_since_ms = now_ms;
    if ((uint64_t)(now_ms - store->busy_since_ms) >= store->options.busy_ms)
        return 0;
    uint64_t most_us = count < 4 ? 1000 : count < 16 ? 4000 : 15000;
    struct timespec wait = {.tv_nsec = (long)hk_rng_between(&store->rng, most_us / 4, most_us) * 1000};
    nanosleep(&wait, NULL);
    return 1;
}

/* ---- time ---- */

static int64_t system_ms(void *arg)
{
    (void)arg;
    struct timespec ts = {0};
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

/* When the host's clock is set back our time goes on at half its speed until the clock has caught up: it never goes
 * back, never stands still (leases would never end), and no wait becomes shorter than it was meant to be. */
int64_t hk_sq_now(struct hk_store *store)
{
    struct hk_sq_clock *c = &store->clock;
    int64_t wall_ms = c->read_ms(c->arg);
    if (wall_ms >= c->high_ms) {
        c->high_ms = c->wall_ms = wall_ms;
        return wall_ms;
    }
    if (wall_ms < c->wall_ms || c->wall_ms == 0)
        c->wall_ms = wall_ms;
    int64_t half_ms = (wall_ms - c->wall_ms) / 2;
    c->wall_ms += 2 * half_ms;
    c->high_ms += half_ms;
    return c->high_ms;
}

int64_t hk_sq_clock(struct hk_store *store)
{
    int64_t now_ms = hk_sq_now(store), clock_ms = store->clock.read_ms(store->clock.arg);
    return clock_ms < now_ms ? clock_ms : now_ms;
}

uint64_t hk_sq_behind(const struct hk_store *store, int64_t now_ms)
{
    int64_t clock_ms = store->clock.read_ms(store->clock.arg);
    return clock_ms < now_ms ? (uint64_t)(now_ms - clock_ms) : 0;
}

#define YEAR_9999_MS INT64_C(253402300799999)

/* 0 for what is none. */
static int64_t number_of(sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    int64_t value = 0;
    return text && hk_parse_i64(hk_str_of(text), &value, NULL) == HK_OK ? value : 0;
}

static bool read_marks(struct hk_store *store, int64_t *out_saved_ms, int64_t *out_resets)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_HIGH_WATER);
    if (!hk_sq_row(store, q))
        return false;
    *out_saved_ms = number_of(q, 0);
    *out_resets = number_of(q, 1);
    hk_sq_done(q);
    return true;
}

void hk_sq_clock_lift(struct hk_store *store)
{
    struct hk_sq_clock *c = &store->clock;
    int64_t saved_ms = 0, resets = 0;
    if (!read_marks(store, &saved_ms, &resets))
        return;
    if (c->resets >= 0 && resets != c->resets) {
        c->high_ms = c->saved_ms = saved_ms;
        c->wall_ms = 0;
    }
    c->resets = resets;
    if (saved_ms > c->high_ms && saved_ms <= YEAR_9999_MS) /* else somebody wrote nonsense there */
        c->high_ms = saved_ms;
}

bool hk_sq_clock_was_reset(struct hk_store *store)
{
    int64_t saved_ms = 0, resets = 0;
    if (!store->courtesy.others || !read_marks(store, &saved_ms, &resets))
        return false;
    store->courtesy.others = resets != store->clock.resets;
    return store->courtesy.others;
}

static void write_number(struct hk_store *store, const char *key, int64_t value)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%lld", (long long)value);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_SET_META);
    hk_sq_bind_cstr(store, q, 1, key);
    hk_sq_bind_cstr(store, q, 2, text);
    hk_sq_run(store, q);
}

void hk_sq_clock_reset(struct hk_store *store, int64_t clock_ms)
{
    write_number(store, "high_water_ms", clock_ms);
    write_number(store, "clock_resets", store->clock.resets + 1);
}

void hk_sq_clock_save(struct hk_store *store)
{
    if (store->clock.high_ms - store->clock.saved_ms <= 1000)
        return;
    char text[24];
    int len = snprintf(text, sizeof text, "%lld", (long long)store->clock.high_ms);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_SET_HIGH_WATER);
    hk_sq_bind_text(store, q, 1, (struct hk_str){text, (size_t)len});
    hk_sq_run(store, q);
    if (hk_sq_ok(store))
        store->clock.saved_ms =
            store->clock.high_ms; /* a rollback only means that it is saved a second later */
}

/* ---- open and close ---- */

enum hk_code hk_sq_path(const char *url, char **out_path, struct hk_err *err)
{
    const struct hk_str scheme = hk_str_of("sqlite:");
    struct hk_str path = hk_str_of(url);
    char shown[HK_SHOW_MAX];
    if (!hk_str_starts(path, scheme) || path.len == scheme.len)
        return hk_err_set(err, HK_INVALID, "%s: expected sqlite:PATH", hk_show(path, shown));
    path = (struct hk_str){path.ptr + scheme.len, path.len - scheme.len};
    if (hk_str_eq(path, hk_str_of(":memory:")))
        return hk_err_set(err, HK_INVALID, "sqlite::memory: is seen by one connection only: name a file");
    /* "file:…" would be read as a URI with options of its own */
    const char *here = hk_str_starts(path, hk_str_of("file:")) ? "./" : "";
    char *copy = hk_mem_alloc(path.len + 3);
    if (!copy)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    snprintf(copy, path.len + 3, "%s%s", here, path.ptr);
    *out_path = copy;
    return HK_OK;
}

static bool is_there(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_size > 0 || !S_ISREG(st.st_mode));
}

/* The file is not there. HK_OK: it can be created, and shall be. */
static enum hk_code refuse_missing(const char *path, bool create, int why, struct hk_err *err)
{
    const char *slash = strrchr(path, '/');
    int len = slash ? (int)(slash - path) : 0; /* of its folder, which is there when it has no name */
    char *folder = hk_mem_alloc((size_t)len + 1);
    struct stat st;
    if (!folder)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    (void)snprintf(folder, (size_t)len + 1, "%s", path);
    bool homeless = why == ENOENT && len > 0 && stat(folder, &st) != 0 && errno == ENOENT;
    hk_mem_free(folder);
    if (homeless)
        return hk_err_set(err, create ? HK_UNAVAILABLE : HK_NOTFOUND,
                          "%s: the folder %.*s does not exist: create it (mkdir -p), or correct the path",
                          path, len, path);
    return create
               ? HK_OK
               : hk_err_set(err, HK_NOTFOUND, "%s: %s: create it with `hikyaku init`", path, strerror(why));
}

/* Payloads are nobody else's business: SQLite by itself would let everybody read them. Its -wal and -shm are made with the
 * rights of the database. If this fails SQLite finds out why. */
static void make_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, S_IRUSR | S_IWUSR);
    if (fd >= 0)
        (void)close(fd);
}

enum hk_code hk_sq_connect(const char *path, bool create, sqlite3 **out_db, bool *out_created,
                           struct hk_err *err)
{
    bool there = is_there(path);
    if (!there && access(path, F_OK) != 0 && (!create || errno == ENOENT)) {
        enum hk_code rc = refuse_missing(path, create, errno, err);
        if (rc != HK_OK)
            return rc;
    }
    if (create && access(path, F_OK) != 0)
        make_private(path);
    sqlite3 *db = NULL;
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    int rc = sqlite3_open_v2(path, &db, flags, NULL);
    if (rc == SQLITE_OK) {
        sqlite3_extended_result_codes(db, 1);
        sqlite3_busy_timeout(db, (int)BUSY_MS);
        rc = sqlite3_exec(db,
                          "PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY; PRAGMA cell_size_check = ON;"
                          "PRAGMA journal_size_limit = 67108864; PRAGMA cache_size = -4096",
                          NULL, NULL, NULL);
    }
    if (rc != SQLITE_OK) {
        enum hk_code code = hk_sq_error(path, rc, db ? sqlite3_system_errno(db) : 0, "open it",
                                        db ? sqlite3_errmsg(db) : sqlite3_errstr(rc), err);
        sqlite3_close(db);
        return code;
    }
    *out_db = db;
    *out_created = !there;
    return HK_OK;
}

static void sq_close(struct hk_store *store)
{
    if (!store)
        return;
    hk_sq_unlock(store);
    for (int i = 0; i < HK_SQ_NSTMTS; i++)
        sqlite3_finalize(store->stmts[i]);
    if (store->db)
        (void)hk_sq_is_cut_off(store); /* then it is closed without a checkpoint */
    sqlite3_close(store->db);
    hk_manifests_clear(&store->claims);
    hk_stuck_clear(&store->stuck);
    give_turn(store);
    hk_turns_unref(store->options.turns);
    hk_mem_free(store->apart.items);
    hk_pool_fini(&store->pools[0]);
    hk_pool_fini(&store->pools[1]);
    hk_mem_free(store->path);
    hk_mem_free(store);
}

static void set_options(struct hk_store *store, const struct hk_store_options *options)
{
    store->options = *options;
    (void)hk_turns_ref(store->options.turns);
    if (!store->options.busy_ms)
        store->options.busy_ms = BUSY_MS;
    if (!store->options.max_payload_bytes)
        store->options.max_payload_bytes = MAX_PAYLOAD;
    store->clock.read_ms = options->clock_ms ? options->clock_ms : system_ms;
    store->clock.arg = options->clock_arg;
    store->clock.resets = -1;
    hk_rng_seed(&store->rng, (uint64_t)system_ms(NULL) ^ (uint64_t)getpid() << 40, 0);
}

static enum hk_code create_if_asked(const char *url, const char *path, const struct hk_store_options *options,
                                    struct hk_err *err)
{
    if (!options->create || is_there(path))
        return HK_OK;
    struct hk_store_inited done;
    return hk_sq_init(url, &(struct hk_store_init){.allow_wal = true}, &done, err);
}

static enum hk_code open_store(struct hk_store *store, struct hk_err *err)
{
    bool created = false;
    enum hk_code rc = hk_sq_connect(store->path, false, &store->db, &created, err);
    if (rc != HK_OK)
        return rc;
    sqlite3_busy_handler(store->db, on_busy, store);
    rc = hk_sq_check_schema(store->db, store->path, err);
    if (rc != HK_OK)
        return rc;
    const char *pragma =
        store->options.sync_full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL";
    int sq = sqlite3_exec(store->db, pragma, NULL, NULL, NULL);
    if (sq == SQLITE_OK)
        sq = hk_sq_rest_register(store);
    if (sq != SQLITE_OK)
        hk_sq_fail(store, sq);
    hk_sq_use(store, HK_SQ_ROLLBACK);
    hk_sq_clock_lift(store);
    return hk_sq_end(store, "open it", err);
}

static enum hk_code sq_open(const char *url, const struct hk_store_options *options,
                            struct hk_store **out_store, struct hk_err *err)
{
    char *path = NULL;
    enum hk_code rc = hk_sq_path(url, &path, err);
    if (!path)
        return rc;
    struct hk_store *store = hk_mem_zalloc(1, sizeof *store);
    if (!store) {
        hk_mem_free(path);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    store->path = path;
    set_options(store, options);
    rc = create_if_asked(url, path, options, err);
    if (rc == HK_OK)
        rc = open_store(store, err);
    if (rc != HK_OK) {
        sq_close(store);
        return rc;
    }
    hk_sq_note_sides(store);
    *out_store = store;
    return HK_OK;
}

const struct hk_store_ops hk_store_sqlite = {
    .name = "sqlite",
    .init = hk_sq_init,
    .open = sq_open,
    .close = sq_close,
    .acquire = hk_sq_acquire,
    .taken_over = hk_sq_taken_over,
    .release = hk_sq_release,
    .poll = hk_sq_poll,
    .scan = hk_sq_scan,
    .held_keys = hk_sq_held_keys,
    .exchange = hk_sq_exchange,
    .hint = hk_sq_hint,
    .definitions = hk_sq_definitions,
    .pause = hk_sq_pause,
    .guards = hk_sq_guards,
    .purge = hk_sq_purge,
};
