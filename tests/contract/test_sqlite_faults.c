/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite alone: kill -9, other processes, a full disk, damaged files, no memory. Other processes are this program started
 * anew (`argv[1]` says as what): SQLite's locks do not survive a fork. */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/alloc.h>
#include <hikyaku/rng.h>

#include "base/parse.h"
#include "base/str.h"
#include "sqlite_kind.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)
#define LEASE_MS   30000
#define BATCH      16
#define BUSY_TRIES 20 /* of 5 s each */

/* ---- other processes ---- */

static void rest(unsigned us)
{
    struct timespec ts = {.tv_nsec = (long)us * 1000};
    nanosleep(&ts, NULL);
}

static int64_t monotonic_us(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

#define READY_FD 9

/* `ready`, if not NULL, becomes readable when the other process is under way (or over). */
static pid_t start(const char *role, int64_t number, int *ready)
{
    int fds[2] = {-1, -1};
    if (ready)
        assert_int_equal(pipe(fds), 0);
    char text[24];
    snprintf(text, sizeof text, "%lld", (long long)number);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (ready)
            dup2(fds[1], READY_FD);
        execl("/proc/self/exe", "test_sqlite_faults", role, sqlite_kind.url(), text, (char *)NULL);
        _exit(127);
    }
    if (ready) {
        close(fds[1]);
        *ready = fds[0];
    }
    return pid;
}

static int finish(pid_t pid)
{
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* ---- as a relay ---- */

static int64_t relay_clock_ms;

static int64_t relay_clock(void *arg)
{
    (void)arg;
    return relay_clock_ms;
}

/* What became of one message: mostly sent, sometimes anything else. */
static struct hk_settle outcome(struct hk_rng *rng, int64_t claim, const struct hk_message *m)
{
    static const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT,  HK_SETTLE_SENT,  HK_SETTLE_SENT,
                                                HK_SETTLE_RETRY, HK_SETTLE_RETRY, HK_SETTLE_RELEASE,
                                                HK_SETTLE_DEFER, HK_SETTLE_DEAD};
    struct hk_settle s = {
        .claim = claim, .source = m->source, .id = m->id, .due_ms = relay_clock_ms, .history = m->history};
    s.kind = kinds[hk_rng_upto(rng, COUNT(kinds) - 1)];
    s.attempt.made = s.kind == HK_SETTLE_SENT || s.kind == HK_SETTLE_RETRY || s.kind == HK_SETTLE_DEAD;
    s.attempt.failure_class = s.kind == HK_SETTLE_SENT ? HK_CLASS_SUCCESS : HK_CLASS_TRANSIENT;
    s.history.attempts += s.attempt.made;
    s.reason = hk_str_of("UNKNOWN");
    return s;
}

static size_t pick(struct hk_store *store, struct hk_rng *rng, struct hk_want wants[BATCH])
{
    bool retries = hk_rng_upto(rng, 1);
    const struct hk_scan scan = {.source = retries ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                                 .destination = retries ? "a" : NULL,
                                 .limit = BATCH};
    const struct hk_heads *heads = NULL;
    if (hk_store_sqlite.scan(store, &scan, &heads, NULL) != HK_OK)
        return 0;
    for (size_t i = 0; i < heads->n; i++)
        wants[i] = (struct hk_want){heads->items[i].source, heads->items[i].id, true};
    return heads->n;
}

/* SQLite's lock has no queue: on a slow disk an application that commits without a pause may keep it for longer than the busy
 * time-out. HK_BUSY promises that nothing was changed and that the same may be asked again, as an engine does. */
static enum hk_code exchange(struct hk_store *store, const struct hk_exchange *x,
                             const struct hk_exchanged **done)
{
    enum hk_code rc = HK_BUSY;
    for (int i = 0; i < BUSY_TRIES && rc == HK_BUSY; i++)
        rc = hk_store_sqlite.exchange(store, x, done, NULL);
    return rc;
}

/* Relays with random outcomes until `rounds` exchanges are done or nothing is left; -1 = until killed. */
static enum hk_code relay(struct hk_store *store, int64_t lane, struct hk_rng *rng, int rounds)
{
    struct hk_settle settles[BATCH];
    size_t n_settles = 0;
    for (int i = 0; i != rounds; i++) {
        struct hk_want wants[BATCH];
        size_t n_wants = pick(store, rng, wants);
        const struct hk_exchange x = {.lane = lane,
                                      .lease_ms = LEASE_MS,
                                      .settles = settles,
                                      .n_settles = n_settles,
                                      .wants = wants,
                                      .n_wants = n_wants};
        const struct hk_exchanged *done = NULL;
        enum hk_code rc = exchange(store, &x, &done);
        if (rc != HK_OK)
            return rc;
        n_settles = 0;
        for (size_t m = 0; m < done->n_messages; m++)
            settles[n_settles++] = outcome(rng, done->claim, &done->messages[m]);
    }
    const struct hk_exchange last = {
        .lane = lane, .lease_ms = LEASE_MS, .settles = settles, .n_settles = n_settles};
    const struct hk_exchanged *done = NULL;
    return exchange(store, &last, &done);
}

static struct hk_store *open_relay(const char *url, int64_t clock_ms, int64_t *out_lane)
{
    relay_clock_ms = clock_ms;
    struct hk_store *store = NULL;
    int64_t now_ms;
    const struct hk_store_options options = {.keep_sent = true, .clock_ms = relay_clock};
    if (hk_store_sqlite.open(url, &options, &store, NULL) != HK_OK ||
        hk_store_sqlite.acquire(store, "r", "b", LEASE_MS, out_lane, &now_ms, NULL) != HK_OK) {
        hk_store_sqlite.close(store);
        return NULL;
    }
    return store;
}

static int be_relay(const char *url, int64_t clock_ms)
{
    struct hk_rng rng;
    int64_t lane = 0;
    hk_rng_seed(&rng, (uint64_t)clock_ms, 1);
    struct hk_store *store = open_relay(url, clock_ms, &lane);
    if (!store || write(READY_FD, "x", 1) != 1)
        return 99;
    return (int)relay(store, lane, &rng, -1);
}

/* ---- as an application ---- */

/* Commits and rolls back transactions; those that are committed are numbered in message_id. */
static int be_writer(const char *url, int64_t count)
{
    sqlite3 *db = NULL;
    if (sqlite3_open(url + strlen("sqlite:"), &db) != SQLITE_OK)
        return 1;
    sqlite3_busy_timeout(db, 20000);
    for (int64_t i = 1; i <= count; i++) {
        char sql[300];
        bool lost = i % 4 == 0;
        snprintf(sql, sizeof sql,
                 "BEGIN IMMEDIATE; INSERT INTO outbox (message_id, destination, event_type, payload) "
                 "VALUES ('%s%lld', 'a', 'E', 'p'); %s",
                 lost ? "rolled-back-" : "w", (long long)i, lost ? "ROLLBACK" : "COMMIT");
        if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
            return 2;
    }
    sqlite3_close(db);
    return 0;
}

/* ---- conservation ---- */

/* Every message is in exactly one place. */
static void assert_conserved(int64_t n)
{
    static const char all[] =
        "(SELECT message_id FROM outbox UNION ALL SELECT message_id FROM outbox_retry UNION ALL "
        "SELECT message_id FROM outbox_sent UNION ALL SELECT message_id FROM dead_letters)";
    char sql[400];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", all);
    assert_int_equal(suite_number(sql), n);
    snprintf(sql, sizeof sql, "SELECT count(DISTINCT message_id) FROM %s", all);
    assert_int_equal(suite_number(sql), n);
}

/* A row of outbox is named by one manifest at the most, a claimed retry by one that stands. */
static void assert_manifests_agree(void)
{
    assert_int_equal(
        suite_number(
            "SELECT count(*) FROM (SELECT o.id FROM outbox_claim c, json_each(c.ids) j JOIN outbox o ON "
            "o.id = j.value GROUP BY o.id HAVING count(*) > 1)"),
        0);
    assert_int_equal(
        suite_number("SELECT count(*) FROM outbox_retry WHERE claim IS NOT NULL AND claim NOT IN "
                     "(SELECT claim FROM outbox_claim)"),
        0);
}

static void a_killed_relay_leaves_every_message_in_one_place(void **state)
{
    (void)state;
    const int kills = 30, messages = 2000;
    struct hk_rng rng;
    hk_rng_seed(&rng, 7, 7);
    sqlite3 *db = sqlite_connect();
    char sql[300];
    snprintf(
        sql, sizeof sql,
        "WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d) "
        "INSERT INTO outbox (message_id, destination, event_type, payload) SELECT 'm' || i, 'a', 'E', i FROM n",
        messages);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    for (int i = 0; i < kills; i++) {
        suite_clock_ms += LEASE_MS + 1000;
        int ready = -1;
        char byte;
        pid_t pid = start("relay", suite_clock_ms, &ready);
        if (i % 4) /* else it may be killed while it still takes over */
            assert_int_equal(read(ready, &byte, 1), 1);
        for (int64_t until = monotonic_us() + (int64_t)hk_rng_upto(&rng, 25000); monotonic_us() < until;)
            rest(500);
        close(ready);
        assert_int_equal(kill(pid, SIGKILL), 0);
        int status = finish(pid);
        NOTE_IF(!WIFSIGNALED(status), "relay ended by itself with %d\n", WEXITSTATUS(status));
        assert_true(WIFSIGNALED(status));
        sqlite_assert_sound();
        assert_conserved(messages);
        assert_manifests_agree();
    }
    assert_true(suite_number("SELECT count(*) FROM outbox") < messages); /* they did get somewhere */
    int64_t lane = 0;
    struct hk_store *store = open_relay(sqlite_kind.url(), suite_clock_ms + 2 * LEASE_MS, &lane);
    assert_non_null(store);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0); /* all taken over */
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry WHERE claim IS NOT NULL"), 0);
    assert_conserved(messages);
    suite_close(store);
}

static void applications_insert_and_roll_back_meanwhile(void **state)
{
    (void)state;
    const int64_t per_writer = 400;
    struct hk_rng rng;
    hk_rng_seed(&rng, 3, 3);
    int64_t lane = 0;
    struct hk_store *store = open_relay(sqlite_kind.url(), suite_clock_ms, &lane);
    assert_non_null(store);
    pid_t writer = start("writer", per_writer, NULL);
    int status = 0;
    for (pid_t ended = 0; ended == 0; ended = waitpid(writer, &status, WNOHANG))
        assert_int_equal(relay(store, lane, &rng, 3), HK_OK);
    assert_int_equal(status, 0);
    assert_int_equal(relay(store, lane, &rng, 200), HK_OK);
    assert_conserved(per_writer - per_writer / 4);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_sent WHERE message_id LIKE 'rolled%'"), 0);
    sqlite_assert_sound();
    suite_close(store);
}

/* ---- locks ---- */

static void a_lock_that_is_not_given_up_is_busy_and_changes_nothing(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&(struct hk_store_options){.busy_ms = 20});
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    sqlite3 *other = sqlite_connect();
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    const struct hk_want claim = {HK_FROM_OUTBOX, 1, true};
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .wants = &claim, .n_wants = 1};
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, &err), HK_BUSY);
    assert_non_null(strstr(err.message, sqlite_path()));
    const struct hk_heads *heads = NULL;
    assert_int_equal(store_kind->ops->scan(store, &(struct hk_scan){.limit = 1}, &heads, &err),
                     HK_OK); /* readers go on */
    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, &err), HK_OK);
    assert_int_equal(done->n_messages, 1);
    sqlite3_close(other);
    suite_close(store);
}

static void what_was_settled_stays_so_when_a_later_exchange_fails(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(&(struct hk_store_options){.busy_ms = 1, .keep_sent = true});
    int64_t lane = suite_acquire(store);
    suite_fill(2, "a", NULL);
    const struct hk_want wants[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_OUTBOX, 2, true}};
    int64_t claim = suite_exchange(store, lane, NULL, 0, wants, 2)->claim;
    struct hk_settle first = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    struct hk_settle second = suite_settle(claim, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &first);
    sqlite3 *other = sqlite_connect();
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS, .settles = &second, .n_settles = 1};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(store, &x, &done, NULL), HK_BUSY);
    sqlite3_close(other);
    assert_true(suite_exchange(store, lane, &first, 1, NULL, 0)->stale[0]);
    suite_settle_one(store, lane, &second); /* and what failed can be done again */
    assert_conserved(2);
    suite_close(store);
}

static void nothing_keeps_a_snapshot_open_between_calls(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    suite_fill(3, "a", "k");
    const struct hk_heads *heads = NULL;
    const struct hk_poll *poll = NULL;
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    assert_int_equal(store_kind->ops->scan(store, &(struct hk_scan){.limit = 2}, &heads, NULL), HK_OK);
    suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    assert_int_equal(store_kind->ops->held_keys(store, &keys, &n, NULL), HK_OK);
    assert_int_equal(store_kind->ops->poll(store, &poll, NULL), HK_OK);
    /* busy|log|checkpointed: busy is 1 as long as somebody reads from the log */
    assert_string_equal(store_kind->value("PRAGMA wal_checkpoint(TRUNCATE)"), "0");
    suite_close(store);
}

/* ---- a full disk ---- */

/* Exit code: 0 when the disk was full as it should be, else which step went wrong. */
static int be_limited(const char *url, int64_t clock_ms)
{
    struct hk_rng rng;
    int64_t lane = 0;
    hk_rng_seed(&rng, 5, 5);
    struct hk_store *store = open_relay(url, clock_ms, &lane);
    struct stat st;
    char wal[400];
    snprintf(wal, sizeof wal, "%s-wal", url + strlen("sqlite:"));
    if (!store || stat(wal, &st) != 0)
        return 1;
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit limit = {.rlim_cur = (rlim_t)st.st_size + 30000, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    enum hk_code rc = HK_OK;
    for (int i = 0; i < 1000 && rc == HK_OK; i++)
        rc = relay(store, lane, &rng, 5);
    if (rc != HK_UNAVAILABLE)
        return 2;
    struct hk_err err = {0};
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS};
    const struct hk_exchanged *done = NULL;
    const struct hk_heads *heads = NULL;
    if (hk_store_sqlite.scan(store, &(struct hk_scan){.limit = 5}, &heads, &err) != HK_OK || heads->n != 5)
        return 3; /* reading goes on */
    limit.rlim_cur = RLIM_INFINITY;
    setrlimit(RLIMIT_FSIZE, &limit); /* somebody made room: the lane still stands */
    if (hk_store_sqlite.exchange(store, &x, &done, &err) != HK_OK || relay(store, lane, &rng, 5) != HK_OK)
        return 4;
    hk_store_sqlite.close(store);
    return 0;
}

static void a_full_disk_is_unavailable_and_loses_nothing(void **state)
{
    (void)state;
    suite_fill(300, "a", NULL);
    int status = finish(start("limited", suite_clock_ms, NULL));
    NOTE_IF(status != 0, "limited: %d\n", WEXITSTATUS(status));
    assert_int_equal(status, 0);
    sqlite_assert_sound();
    assert_conserved(300);
}

/* ---- damaged files ---- */

static void overwrite(off_t at, size_t len)
{
    char junk[4096];
    memset(junk, 0xa5, sizeof junk);
    int fd = open(sqlite_path(), O_WRONLY);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, junk, len, at), len);
    close(fd);
}

static void a_damaged_file_is_reported_as_such(void **state)
{
    (void)state;
    suite_fill(200, "a", NULL);
    store_kind->value("PRAGMA wal_checkpoint(TRUNCATE)");
    int64_t root = suite_number("SELECT rootpage FROM sqlite_schema WHERE name = 'outbox'");
    overwrite((root - 1) * 4096, 4096);
    struct hk_err err = {0};
    struct hk_store *store = suite_open(NULL);
    const struct hk_heads *heads = NULL;
    assert_int_equal(store_kind->ops->scan(store, &(struct hk_scan){.limit = 500}, &heads, &err), HK_IO);
    assert_non_null(strstr(err.message, sqlite_path()));
    assert_non_null(strstr(err.message, "damaged"));
    suite_close(store);

    overwrite(0, 100);
    store = NULL;
    assert_int_equal(store_kind->ops->open(store_kind->url(), &(struct hk_store_options){0}, &store, &err),
                     HK_IO);
    assert_null(store);
    struct hk_store_inited done;
    assert_int_equal(store_kind->ops->init(store_kind->url(), &(struct hk_store_init){0}, &done, &err),
                     HK_IO);
}

/* ---- no memory ---- */

static struct {
    long countdown; /* allocations until one fails; -1 = none does */
    bool for_ever;
} oom = {.countdown = -1};

static bool fails(void)
{
    if (oom.countdown < 0)
        return false;
    if (oom.countdown > 0) {
        oom.countdown--;
        return false;
    }
    if (!oom.for_ever)
        oom.countdown = -1;
    return true;
}

static sqlite3_mem_methods real;

static void *sq_malloc(int n)
{
    return fails() ? NULL : real.xMalloc(n);
}

static void *sq_realloc(void *p, int n)
{
    return fails() ? NULL : real.xRealloc(p, n);
}

static void *our_resize(void *arg, void *p, size_t n)
{
    (void)arg;
    return fails() ? NULL : realloc(p, n);
}

static void our_release(void *arg, void *p)
{
    (void)arg;
    free(p);
}

struct scene {
    bool for_ever;
    int64_t messages;
    struct hk_store *store;
    int64_t lane;
    struct hk_settle settles[6];
    struct hk_want wants[4];
    const struct hk_exchanged *done;
};

static enum hk_code do_open(struct scene *s)
{
    struct hk_store *store = NULL;
    enum hk_code rc = hk_store_sqlite.open(sqlite_kind.url(), &(struct hk_store_options){0}, &store, NULL);
    hk_store_sqlite.close(store);
    (void)s;
    return rc;
}

static enum hk_code do_init(struct scene *s)
{
    struct hk_store_inited done;
    (void)s;
    char url[400];
    snprintf(url, sizeof url, "sqlite:%s/other.db", sqlite_dir());
    unlink(url + strlen("sqlite:"));
    return hk_store_sqlite.init(url, &(struct hk_store_init){0}, &done, NULL);
}

static enum hk_code do_acquire(struct scene *s)
{
    int64_t now_ms;
    return hk_store_sqlite.acquire(s->store, "r", "b", LEASE_MS, &s->lane, &now_ms, NULL);
}

static enum hk_code do_poll(struct scene *s)
{
    const struct hk_poll *poll;
    return hk_store_sqlite.poll(s->store, &poll, NULL);
}

static enum hk_code do_scan(struct scene *s)
{
    const struct hk_heads *heads;
    return hk_store_sqlite.scan(s->store, &(struct hk_scan){.limit = 100}, &heads, NULL);
}

static enum hk_code do_held_keys(struct scene *s)
{
    const struct hk_held_key *keys;
    size_t n;
    return hk_store_sqlite.held_keys(s->store, &keys, &n, NULL);
}

static enum hk_code do_exchange(struct scene *s)
{
    const struct hk_exchange x = {.lane = s->lane,
                                  .lease_ms = LEASE_MS,
                                  .settles = s->settles,
                                  .n_settles = COUNT(s->settles),
                                  .wants = s->wants,
                                  .n_wants = COUNT(s->wants)};
    return hk_store_sqlite.exchange(s->store, &x, &s->done, NULL);
}

static enum hk_code do_pause(struct scene *s)
{
    return hk_store_sqlite.pause(s->store, "a", true, "ann", "why not", NULL);
}

static enum hk_code do_purge(struct scene *s)
{
    uint32_t deleted;
    return hk_store_sqlite.purge(s->store, &(struct hk_retention){0}, 100, &deleted, NULL, NULL);
}

static enum hk_code do_release(struct scene *s)
{
    return hk_store_sqlite.release(s->store, s->lane, NULL);
}

/* Fails the k-th allocation for k = 0, `stride` … until the call needs fewer; each failure must be HK_NOMEM and leave no
 * trace. SQLite does without some allocations: a call that cannot be repeated ends it when it succeeds all the same. */
static void exhaust(enum hk_code (*call)(struct scene *), struct scene *s, long stride, bool repeatable)
{
    for (long k = 0;; k += stride) {
        assert_true(k < 100000);
        oom.countdown = k;
        oom.for_ever = s->for_ever;
        enum hk_code rc = call(s);
        bool fired = oom.countdown <= 0;
        oom.countdown = -1;
        if (rc == HK_OK && (!fired || !repeatable))
            return;
        NOTE_IF(rc != HK_NOMEM && rc != HK_OK, "allocation %ld: %s\n", k, hk_code_name(rc));
        assert_true(rc == HK_NOMEM || rc == HK_OK);
        if (k / stride % 16 == 0)
            assert_conserved(s->messages);
    }
}

static void prepare(struct scene *s)
{
    suite_fill(12, "a", "k");
    s->store = suite_open(&(struct hk_store_options){.keep_sent = true, .history = HK_STORE_HISTORY_ALL});
    int64_t lane = suite_acquire(s->store);
    suite_claim(s->store, lane, HK_FROM_OUTBOX, 12);
    struct hk_settle one =
        suite_settle(suite_claim(s->store, lane, HK_FROM_OUTBOX, 11), HK_FROM_OUTBOX, 11, HK_SETTLE_RETRY);
    suite_settle_one(s->store, lane, &one);
    suite_claim(s->store, lane, HK_FROM_RETRY, 1);
    suite_clock_ms += LEASE_MS;
    exhaust(do_acquire, s, 1, false); /* with a take-over in it */
    struct hk_want wants[7];
    for (int i = 0; i < 6; i++)
        wants[i] = (struct hk_want){HK_FROM_OUTBOX, i + 1, true};
    wants[6] = (struct hk_want){HK_FROM_RETRY, 1, true};
    int64_t claim = suite_exchange(s->store, s->lane, NULL, 0, wants, 7)->claim;

    static const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT, HK_SETTLE_RETRY, HK_SETTLE_DEAD,
                                                HK_SETTLE_DEFER, HK_SETTLE_RELEASE};

    for (int i = 0; i < 5; i++)
        s->settles[i] = suite_settle(claim, HK_FROM_OUTBOX, i + 1, kinds[i]);
    s->settles[5] = suite_settle(claim, HK_FROM_RETRY, 1, HK_SETTLE_DEAD);
    for (int i = 0; i < 3; i++)
        s->wants[i] = (struct hk_want){HK_FROM_OUTBOX, i + 7, i != 2};
    s->wants[3] = (struct hk_want){HK_FROM_RETRY, 2, true};
}

static void no_memory_is_reported_and_leaves_no_trace(void **state)
{
    struct scene s = {.for_ever = *state != NULL, .messages = 12};
    prepare(&s);
    exhaust(do_exchange, &s, 1, false);
    for (size_t i = 0; i < COUNT(s.settles); i++)
        assert_false(s.done->stale[i]);
    assert_int_equal(s.done->n_messages, 4);
    assert_conserved(12);
    assert_manifests_agree();
    exhaust(do_init, &s, 127, true);
    exhaust(do_open, &s, 5, true);
    exhaust(do_poll, &s, 1, true);
    exhaust(do_scan, &s, 1, true);
    exhaust(do_held_keys, &s, 1, true);
    exhaust(do_pause, &s, 1, true);
    exhaust(do_release, &s, 1, false);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0);
    suite_clock_ms += 1000;
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_sent"), 1);
    exhaust(do_purge, &s, 1, false);
    if (suite_number("SELECT count(*) FROM outbox_sent") == 0)
        assert_conserved(12 - 1 - 2);
    sqlite_assert_sound();
    suite_close(s.store);
}

static void install_allocators(void)
{
    static sqlite3_mem_methods ours;
    static const struct hk_allocator allocator = {our_resize, our_release, NULL};
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &real);
    ours = real;
    ours.xMalloc = sq_malloc;
    ours.xRealloc = sq_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &ours);
    hk_allocator_set(&allocator);
}

int main(int argc, char **argv)
{
    int64_t number = 0;
    store_kind = &sqlite_kind;
    if (argc == 4 && hk_parse_i64(hk_str_of(argv[3]), &number, NULL) == HK_OK)
        return strcmp(argv[1], "relay") == 0    ? be_relay(argv[2], number)
               : strcmp(argv[1], "writer") == 0 ? be_writer(argv[2], number)
                                                : be_limited(argv[2], number);
    install_allocators();
    static int for_ever = 1;
    const struct CMUnitTest tests[] = {
        TEST(a_killed_relay_leaves_every_message_in_one_place),
        TEST(applications_insert_and_roll_back_meanwhile),
        TEST(a_lock_that_is_not_given_up_is_busy_and_changes_nothing),
        TEST(what_was_settled_stays_so_when_a_later_exchange_fails),
        TEST(nothing_keeps_a_snapshot_open_between_calls),
        TEST(a_full_disk_is_unavailable_and_loses_nothing),
        TEST(a_damaged_file_is_reported_as_such),
        {"no_memory_is_reported_and_leaves_no_trace (once)", no_memory_is_reported_and_leaves_no_trace,
         suite_setup, suite_teardown, NULL},
        {"no_memory_is_reported_and_leaves_no_trace (for ever)", no_memory_is_reported_and_leaves_no_trace,
         suite_setup, suite_teardown, &for_ever},
    };
    return cmocka_run_group_tests_name("store faults (sqlite)", tests, NULL, NULL);
}
