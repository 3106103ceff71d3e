/* SPDX-License-Identifier: Apache-2.0 */
/* The lock on FILE-relay: a dead owner is known at once, a living one is never taken for dead, and where the lock says
 * nothing the lease decides. */
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sqlite_kind.h"
#include "store_suite.h"

#define LEASE_MS   30000
#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

static enum hk_code try_acquire(struct hk_store *store)
{
    int64_t lane = 0, now_ms = 0;
    struct hk_err err;
    return store_kind->ops->acquire(store, "next", "boot", LEASE_MS, &lane, &now_ms, &err);
}

static const struct hk_store_options lease_only = {.keep_sent = true, .lease_only = true};

/* A relay's process that has one message in hand. It ends when it is killed, and not before. */
static pid_t start_relay(void)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct hk_store *store = suite_open(NULL);
        suite_claim(store, suite_acquire(store), HK_FROM_OUTBOX, 1);
        bool told = write(ready[1], "r", 1) == 1;
        while (told)
            (void)pause();
        _exit(1);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    (void)close(ready[0]);
    return child;
}

static void end_relay(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void a_killed_relay_is_replaced_at_once(void **state)
{
    (void)state;
    suite_fill(2, "a", NULL);
    pid_t child = start_relay();
    struct hk_store *store = suite_open(NULL);
    assert_int_equal(try_acquire(store), HK_BUSY);
    end_relay(child);
    assert_int_equal(try_acquire(store), HK_OK); /* the clock has not moved */
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_retry WHERE crashes = 1 AND attempts = 0"), 1);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_claim"), 0);
    suite_close(store);
}

static void a_stopped_relay_keeps_its_lease_and_no_more(void **state)
{
    (void)state;
    suite_fill(1, "a", NULL);
    pid_t child = start_relay();
    assert_int_equal(kill(child, SIGSTOP), 0);
    struct hk_store *store = suite_open(NULL), *third = suite_open(NULL);
    assert_int_equal(try_acquire(store), HK_BUSY);
    suite_clock_ms += LEASE_MS - 1;
    assert_int_equal(try_acquire(store), HK_BUSY);
    suite_clock_ms += 1;
    assert_int_equal(try_acquire(store), HK_OK); /* the stopped one has the lock: this lane stands without */
    assert_int_equal(try_acquire(third), HK_BUSY);
    end_relay(child);
    assert_int_equal(try_acquire(third), HK_BUSY); /* and is not taken for dead now that the lock is free */
    suite_close(store);
    assert_int_equal(try_acquire(third), HK_BUSY);
    suite_clock_ms += LEASE_MS;
    assert_int_equal(try_acquire(third), HK_OK);
    suite_close(third);
}

static void a_lane_that_was_given_back_leaves_the_lock(void **state)
{
    (void)state;
    struct hk_store *one = suite_open(NULL), *two = suite_open(NULL);
    int64_t lane = suite_acquire(one);
    assert_int_equal(try_acquire(one), HK_BUSY); /* its own */
    assert_int_equal(try_acquire(two), HK_BUSY);
    assert_int_equal(store_kind->ops->release(one, lane, NULL), HK_OK);
    assert_int_equal(try_acquire(two), HK_OK);
    assert_int_equal(try_acquire(one), HK_BUSY);
    suite_close(two); /* dies, and the first one was not left with a lock from its vain try */
    assert_int_equal(try_acquire(one), HK_OK);
    suite_close(one);
}

static void who_waits_holds_no_lock(void **state)
{
    (void)state;
    struct hk_store *owner = suite_open(&lease_only), *waits = suite_open(NULL), *next = suite_open(NULL);
    int64_t lane = suite_acquire(owner); /* without the lock */
    assert_int_equal(try_acquire(waits), HK_BUSY);
    assert_int_equal(store_kind->ops->release(owner, lane, NULL), HK_OK);
    suite_acquire(next); /* with it */
    assert_int_equal(try_acquire(waits), HK_BUSY);
    suite_close(next);
    assert_int_equal(try_acquire(waits), HK_OK);
    suite_close(waits);
    suite_close(owner);
}

static void who_lost_his_lane_leaves_the_lock(void **state)
{
    (void)state;
    struct hk_store *stalled = suite_open(NULL), *next = suite_open(NULL);
    int64_t lane = suite_acquire(stalled);
    suite_clock_ms += LEASE_MS;
    int64_t now = suite_acquire(next); /* without the lock */
    const struct hk_exchange x = {.lane = lane, .lease_ms = LEASE_MS};
    const struct hk_exchanged *done = NULL;
    assert_int_equal(store_kind->ops->exchange(stalled, &x, &done, NULL), HK_CONFLICT);
    assert_int_equal(store_kind->ops->release(next, now, NULL), HK_OK);
    suite_acquire(next); /* and with it */
    suite_close(next);
    assert_int_equal(try_acquire(stalled), HK_OK);
    suite_close(stalled);
}

/* Another boot, another host, another file of that name, or a lane that was taken without: the free lock says nothing. */
static void without_its_own_lock_a_lane_lives_by_its_lease(void **state)
{
    (void)state;
    static const char *const changes[] = {
        "UPDATE outbox_relay SET lock = ''",
        "UPDATE outbox_relay SET lock = 'another' || lock",
        "UPDATE outbox_relay SET lock = lock || '0'",
    };
    struct hk_store *store = suite_open(&lease_only), *next = suite_open(NULL);
    suite_acquire(store);
    suite_close(store);
    for (size_t i = 0; i < COUNT(changes) + 1; i++) {
        assert_int_equal(try_acquire(next), HK_BUSY);
        suite_clock_ms += LEASE_MS;
        if (i == COUNT(changes))
            break;
        store = suite_open(NULL);
        suite_acquire(store);
        store_kind->sql(changes[i]);
        suite_close(store);
    }
    assert_int_equal(try_acquire(next), HK_OK);
    suite_close(next);
}

static void who_goes_by_leases_alone_waits_for_them(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL), *next = suite_open(&lease_only);
    suite_acquire(store);
    suite_close(store);
    assert_int_equal(try_acquire(next), HK_BUSY);
    suite_clock_ms += LEASE_MS;
    assert_int_equal(try_acquire(next), HK_OK);
    suite_close(next);
}

static void lock_path(char *out, size_t room)
{
    (void)snprintf(out, room, "%s-relay", sqlite_path());
}

/* Whatever stands where the file should: no lock, no harm. A pipe would make a careless open wait for ever. */
static void where_there_is_no_file_to_lock_the_lease_decides(void **state)
{
    (void)state;
    char path[300], elsewhere[300];
    lock_path(path, sizeof path);
    (void)snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", sqlite_dir());
    for (int kind = 0; kind < 3; kind++) {
        (void)unlink(path);
        assert_int_equal(kind == 0   ? mkfifo(path, 0600)
                         : kind == 1 ? symlink(elsewhere, path)
                                     : mkdir(path, 0700),
                         0);
        struct hk_store *store = suite_open(NULL), *next = suite_open(NULL);
        suite_acquire(store);
        assert_string_equal(store_kind->value("SELECT lock FROM outbox_relay"), "");
        suite_close(store);
        assert_int_equal(try_acquire(next), HK_BUSY);
        suite_clock_ms += LEASE_MS;
        assert_int_equal(try_acquire(next), HK_OK);
        suite_close(next);
        suite_clock_ms += LEASE_MS;
    }
    assert_int_equal(access(elsewhere, F_OK), -1); /* what a link names is not made */
    assert_int_equal(rmdir(path), 0);
}

static void the_file_has_the_databases_permissions(void **state)
{
    (void)state;
    char path[300];
    struct stat database, lock;
    lock_path(path, sizeof path);
    mode_t umask_was = umask(0);
    assert_int_equal(chmod(sqlite_path(), 0640), 0);
    struct hk_store *store = suite_open(NULL);
    suite_acquire(store);
    (void)umask(umask_was);
    assert_int_equal(stat(sqlite_path(), &database), 0);
    assert_int_equal(stat(path, &lock), 0);
    assert_int_equal(lock.st_mode & 0777, database.st_mode & 0777);
    assert_int_equal(lock.st_size, 0);
    suite_close(store);
    assert_int_equal(access(path, F_OK), 0); /* it stays */
}

int main(void)
{
    store_kind = &sqlite_kind;
    const struct CMUnitTest tests[] = {
        TEST(a_killed_relay_is_replaced_at_once),
        TEST(a_stopped_relay_keeps_its_lease_and_no_more),
        TEST(a_lane_that_was_given_back_leaves_the_lock),
        TEST(who_waits_holds_no_lock),
        TEST(who_lost_his_lane_leaves_the_lock),
        TEST(without_its_own_lock_a_lane_lives_by_its_lease),
        TEST(who_goes_by_leases_alone_waits_for_them),
        TEST(where_there_is_no_file_to_lock_the_lease_decides),
        TEST(the_file_has_the_databases_permissions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
