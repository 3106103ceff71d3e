/* SPDX-License-Identifier: Apache-2.0 */
/* The loop: order, bounds, threads, and that nothing is left behind (under ASan) or runs after it was freed. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <hikyaku/alloc.h>

#include "check.h"
#include "loop/loop.h"

struct seen {
    struct hk_loop *loop;
    struct hk_timer *timer;
    struct hk_watch *watch;
    struct hk_signal *sig;
    unsigned n, stop_at;
    uint64_t at_ms;
    char order[64];
};

static struct hk_loop *new_loop(void)
{
    struct hk_loop *loop;
    assert_int_equal(hk_loop_new(&loop, NULL), HK_OK);
    return loop;
}

static void count(void *arg)
{
    struct seen *s = arg;
    s->at_ms = hk_loop_now_ms(s->loop);
    if (++s->n == s->stop_at)
        hk_loop_stop(s->loop);
}

static void timers_never_fire_early_and_can_be_armed_again(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop(), .stop_at = 1};
    assert_int_equal(hk_timer_new(s.loop, count, &s, &s.timer), HK_OK);
    assert_false(hk_timer_running(s.timer));
    for (unsigned ms = 0; ms < 30; ms += 7) {
        s.n = 0;
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        uint64_t start = hk_loop_now_ms(s.loop);
        hk_timer_start(s.timer, UINT64_MAX); /* armed anew below */
        hk_timer_start(s.timer, ms);
        assert_true(hk_timer_running(s.timer));
        hk_loop_run(s.loop);
        clock_gettime(CLOCK_MONOTONIC, &after);
        int64_t us = (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000;
        assert_int_equal(s.n, 1);
        assert_true(s.at_ms >= start + ms && us >= (int64_t)ms * 1000);
        assert_false(hk_timer_running(s.timer));
    }
    hk_timer_start(s.timer, 1);
    hk_timer_stop(s.timer);
    assert_false(hk_timer_running(s.timer));
    hk_timer_start(s.timer, 100000); /* freed while it runs */
    hk_timer_free(s.timer);
    hk_timer_free(NULL);
    hk_loop_free(s.loop);
    hk_loop_free(NULL);
}

static void free_self(void *arg)
{
    struct seen *s = arg;
    s->n++;
    hk_timer_free(s->timer);
    hk_loop_stop(s->loop);
}

static void a_timer_may_be_freed_in_its_own_callback(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop()};
    assert_int_equal(hk_timer_new(s.loop, free_self, &s, &s.timer), HK_OK);
    hk_timer_start(s.timer, 0);
    hk_loop_run(s.loop);
    assert_int_equal(s.n, 1);
    hk_loop_free(s.loop);
}

static void add_letter(void *arg)
{
    struct {
        struct seen *s;
        char letter;
    } *x = arg;

    x->s->order[x->s->n++] = x->letter;
    if (x->letter == 'z')
        hk_loop_stop(x->s->loop);
    free(x);
}

static void post_letter(struct seen *s, char letter)
{
    struct {
        struct seen *s;
        char letter;
    } *x = malloc(sizeof *x);

    assert_non_null(x);
    x->s = s;
    x->letter = letter;
    assert_int_equal(hk_loop_post(s->loop, add_letter, x), HK_OK);
}

static void posts_run_in_order(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop()};
    for (char c = 'a'; c <= 'z'; c++)
        post_letter(&s, c);
    assert_int_equal(s.n, 0);
    hk_loop_run(s.loop);
    assert_string_equal(s.order, "abcdefghijklmnopqrstuvwxyz");
    hk_loop_free(s.loop);
}

static void posts_are_bounded(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop(), .stop_at = HK_LOOP_POSTS_MAX};
    for (int i = 0; i < HK_LOOP_POSTS_MAX; i++)
        assert_int_equal(hk_loop_post(s.loop, count, &s), HK_OK);
    assert_int_equal(hk_loop_post(s.loop, count, &s), HK_TOOBIG);
    hk_loop_run(s.loop);
    assert_int_equal(s.n, HK_LOOP_POSTS_MAX);
    assert_int_equal(hk_loop_post(s.loop, count, &s), HK_OK); /* room again; never runs */
    hk_loop_free(s.loop);
    assert_int_equal(s.n, HK_LOOP_POSTS_MAX);
}

static void post_again(void *arg)
{
    struct seen *s = arg;
    s->n++;
    assert_int_equal(hk_loop_post(s->loop, post_again, s), HK_OK);
}

static void a_post_that_posts_itself_starves_nobody(void **state)
{
    (void)state;
    struct seen posts = {.loop = new_loop()}, ticks = {.loop = posts.loop, .stop_at = 1};
    assert_int_equal(hk_timer_new(posts.loop, count, &ticks, &ticks.timer), HK_OK);
    hk_timer_start(ticks.timer, 5);
    post_again(&posts);
    hk_loop_run(posts.loop);
    assert_int_equal(ticks.n, 1);
    hk_timer_free(ticks.timer);
    hk_loop_free(posts.loop);
}

enum {
    THREADS = 4,
    EACH = 2000
};

static void *post_many(void *arg)
{
    struct seen *s = arg;
    for (int i = 0; i < EACH; i++) {
        while (hk_loop_post(s->loop, count, s) == HK_TOOBIG)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return NULL;
}

static void any_thread_may_post(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop(), .stop_at = THREADS * EACH};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &s), 0);
    hk_loop_run(s.loop);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(s.n, THREADS * EACH);
    hk_loop_free(s.loop);
}

static void on_readable(void *arg, unsigned events)
{
    struct seen *s = arg;
    s->n += events & HK_WATCH_READ ? 1 : 100;
    if (s->n == s->stop_at) {
        hk_watch_set(s->watch, 0);
        hk_loop_stop(s->loop);
    }
}

static void watches_are_level_triggered(void **state)
{
    (void)state;
    int pair[2];
    struct seen s = {.loop = new_loop(), .stop_at = 3}, t = {.loop = s.loop, .stop_at = 1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    assert_int_equal(hk_watch_new(s.loop, pair[0], on_readable, &s, &s.watch, NULL), HK_OK);
    hk_watch_set(s.watch, HK_WATCH_READ);
    hk_watch_set(s.watch, HK_WATCH_READ);
    assert_int_equal(write(pair[1], "x", 1), 1);
    hk_loop_run(s.loop); /* the byte stays: three events */
    assert_int_equal(s.n, 3);
    assert_int_equal(hk_timer_new(s.loop, count, &t, &t.timer), HK_OK);
    hk_timer_start(t.timer, 10); /* off: no more of them */
    hk_loop_run(s.loop);
    assert_int_equal(s.n, 3);
    hk_timer_free(t.timer);
    hk_watch_free(s.watch);
    hk_watch_free(NULL);
    close(pair[0]);
    close(pair[1]);
    hk_loop_free(s.loop);
}

/* The trap of libuv: a number that is closed and comes back while it is known. */
static void a_freed_watch_lets_its_number_go_at_once(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop(), .stop_at = 1};
    for (int i = 0; i < 50; i++) {
        int pair[2];
        s.n = 0;
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        assert_int_equal(hk_watch_new(s.loop, pair[0], on_readable, &s, &s.watch, NULL), HK_OK);
        hk_watch_set(s.watch, HK_WATCH_READ);
        if (i % 2) { /* with the loop having seen it, and without */
            assert_int_equal(write(pair[1], "x", 1), 1);
            hk_loop_run(s.loop);
        }
        hk_watch_free(s.watch);
        close(pair[0]);
        close(pair[1]);
    }
    hk_loop_free(s.loop);
}

static void a_bad_descriptor_is_an_error(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop()};
    struct hk_err err = {.code = HK_OK};
    assert_int_equal(hk_watch_new(s.loop, 987654, on_readable, &s, &s.watch, &err), HK_IO);
    assert_true(err.message[0] != '\0');
    hk_loop_free(s.loop);
}

static void on_signal(void *arg, int signum)
{
    struct seen *s = arg;
    s->n += signum == SIGUSR1;
    hk_loop_stop(s->loop);
}

static void signals_reach_the_loop(void **state)
{
    (void)state;
    struct seen s = {.loop = new_loop()};
    assert_int_equal(hk_signal_new(s.loop, SIGUSR1, on_signal, &s, &s.sig, NULL), HK_OK);
    (void)raise(SIGUSR1);
    hk_loop_run(s.loop);
    assert_int_equal(s.n, 1);
    hk_signal_free(s.sig);
    assert_int_equal(hk_signal_new(s.loop, SIGKILL, on_signal, &s, &s.sig, NULL), HK_IO);
    hk_loop_free(s.loop);
}

/* ---- workers ---- */

struct job {
    struct seen *s;
    atomic_int *worked;
    unsigned number, order_at_done, order_of_work;
    bool ran;
    unsigned n_done;
    uint64_t sleep_ms;
};

static void do_work(void *arg)
{
    struct job *job = arg;
    if (job->sleep_ms)
        nanosleep(&(struct timespec){.tv_nsec = (long)job->sleep_ms * 1000000}, NULL);
    job->order_of_work = (unsigned)atomic_fetch_add(job->worked, 1);
}

static void work_done(void *arg, bool ran)
{
    struct job *job = arg;
    job->ran = ran;
    job->n_done++;
    job->order_at_done = job->s->n;
    count(job->s);
}

static void jobs_run_in_order_and_are_bounded(void **state)
{
    (void)state;

    enum {
        JOBS = 200
    };

    atomic_int worked = 0;
    struct seen s = {.loop = new_loop(), .stop_at = JOBS};
    struct hk_worker *worker = NULL;
    struct job jobs[JOBS + 1];
    memset(jobs, 0, sizeof jobs);
    assert_int_equal(hk_worker_new(s.loop, 0, &worker, NULL), HK_RANGE);
    assert_int_equal(hk_worker_new(s.loop, 1 << 20, &worker, NULL), HK_RANGE);
    assert_int_equal(hk_worker_new(s.loop, JOBS, &worker, NULL), HK_OK);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.s = &s, .worked = &worked, .number = i};
        assert_int_equal(hk_worker_submit(worker, do_work, work_done, &jobs[i]), HK_OK);
    }
    assert_int_equal(hk_worker_submit(worker, do_work, work_done, &jobs[JOBS]), HK_TOOBIG);
    assert_int_equal(hk_worker_pending(worker), JOBS);
    hk_loop_run(s.loop);
    for (unsigned i = 0; i < JOBS; i++)
        assert_true(jobs[i].ran && jobs[i].n_done == 1 && jobs[i].order_of_work == i &&
                    jobs[i].order_at_done == i);
    assert_int_equal(hk_worker_pending(worker), 0);
    hk_worker_free(worker);
    hk_worker_free(NULL);
    hk_loop_free(s.loop);
}

static void freeing_a_worker_tells_every_job(void **state)
{
    (void)state;

    enum {
        JOBS = 20
    };

    atomic_int worked = 0;
    struct seen s = {.loop = new_loop()};
    struct hk_worker *worker = NULL;
    struct job jobs[JOBS];
    assert_int_equal(hk_worker_new(s.loop, JOBS, &worker, NULL), HK_OK);
    for (unsigned i = 0; i < JOBS; i++) {
        jobs[i] = (struct job){.s = &s, .worked = &worked, .sleep_ms = 300};
        assert_int_equal(hk_worker_submit(worker, do_work, work_done, &jobs[i]), HK_OK);
    }
    while (atomic_load(&worked) == 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    hk_worker_free(worker);
    int ran = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        assert_int_equal(jobs[i].n_done, 1);
        assert_true(i == 0 || jobs[i - 1].ran || !jobs[i].ran); /* the first ones */
        ran += jobs[i].ran;
    }
    assert_int_equal(ran, atomic_load(&worked));
    assert_true(ran < JOBS);
    hk_loop_free(s.loop);
}

/* ---- names ---- */

struct answer {
    struct hk_loop *loop;
    struct hk_lookup *lookup;
    unsigned n;
    size_t n_addresses;
    struct hk_address first;
    bool failed;
};

static void on_lookup(void *arg, const char *error, const struct hk_address *addresses, size_t n)
{
    struct answer *a = arg;
    a->n++;
    a->failed = error != NULL;
    a->n_addresses = n;
    if (n)
        a->first = addresses[0];
    hk_lookup_free(a->lookup); /* from inside is fine */
    hk_loop_stop(a->loop);
}

/* Numbers only: nobody outside is asked. */
static void a_name_is_looked_up_beside_the_loop(void **state)
{
    (void)state;

    static const struct {
        const char *host;
        struct hk_ip ip;
    } cases[] = {{"127.0.0.1", {{127, 0, 0, 1}, false}},
                 {"::1", {{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, true}}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct answer a = {.loop = new_loop()};
        assert_int_equal(hk_lookup_new(a.loop, cases[i].host, on_lookup, &a, &a.lookup, NULL), HK_OK);
        assert_int_equal(a.n, 0);
        hk_loop_run(a.loop);
        assert_int_equal(a.n, 1);
        assert_false(a.failed);
        assert_int_equal(a.n_addresses, 1);
        assert_int_equal(a.first.ip.v6, cases[i].ip.v6);
        assert_memory_equal(a.first.ip.addr, cases[i].ip.addr, 16);
        hk_loop_free(a.loop);
    }
    struct answer a = {.loop = new_loop()};
    char longer[300];
    memset(longer, 'a', sizeof longer);
    longer[sizeof longer - 1] = '\0';
    assert_int_equal(hk_lookup_new(a.loop, longer, on_lookup, &a, &a.lookup, NULL), HK_TOOBIG);
    hk_loop_free(a.loop);
}

/* Whether its thread is done by then or not. */
static void a_lookup_that_is_freed_tells_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        struct answer a = {.loop = new_loop()};
        assert_int_equal(hk_lookup_new(a.loop, "127.0.0.1", on_lookup, &a, &a.lookup, NULL), HK_OK);
        if (i % 2)
            nanosleep(&(struct timespec){.tv_nsec = i * 20000}, NULL);
        hk_lookup_free(a.lookup);
        hk_loop_stop(a.loop);
        hk_loop_run(a.loop);
        assert_int_equal(a.n, 0);
        hk_loop_free(a.loop);
    }
    hk_lookup_free(NULL);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL); /* their threads end: nothing is left (ASan) */
}

struct failing {
    long left;
    bool for_ever;
};

static void *fail_resize(void *arg, void *ptr, size_t bytes)
{
    struct failing *f = arg;
    if (f->left-- == 0 || (f->for_ever && f->left < 0))
        return NULL;
    return realloc(ptr, bytes);
}

static void fail_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static enum hk_code make_everything(void)
{
    struct seen s = {.n = 0};
    struct hk_worker *worker = NULL;
    struct hk_wake *wake = NULL;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    enum hk_code rc = hk_loop_new(&s.loop, NULL);
    if (rc == HK_OK)
        rc = hk_timer_new(s.loop, count, &s, &s.timer);
    if (rc == HK_OK)
        rc = hk_watch_new(s.loop, pair[0], on_readable, &s, &s.watch, NULL);
    if (rc == HK_OK)
        rc = hk_signal_new(s.loop, SIGUSR1, on_signal, &s, &s.sig, NULL);
    if (rc == HK_OK)
        rc = hk_wake_new(s.loop, count, &s, &wake, NULL);
    if (rc == HK_OK)
        rc = hk_worker_new(s.loop, 4, &worker, NULL);
    hk_worker_free(worker);
    hk_wake_free(wake);
    hk_signal_free(s.sig);
    hk_watch_free(s.watch);
    hk_timer_free(s.timer);
    hk_loop_free(s.loop);
    close(pair[0]);
    close(pair[1]);
    return rc;
}

static void out_of_memory_is_told_and_leaks_nothing(void **state)
{
    (void)state;
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        enum hk_code rc = HK_NOMEM;
        for (long k = 0; rc != HK_OK && k < 100; k++) {
            struct failing f = {k, for_ever};
            struct hk_allocator allocator = {fail_resize, fail_release, &f};
            hk_allocator_set(&allocator);
            rc = make_everything();
            hk_allocator_set(NULL);
            assert_true(rc == HK_OK || rc == HK_NOMEM);
        }
        assert_int_equal(rc, HK_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_never_fire_early_and_can_be_armed_again),
        cmocka_unit_test(a_timer_may_be_freed_in_its_own_callback),
        cmocka_unit_test(posts_run_in_order),
        cmocka_unit_test(posts_are_bounded),
        cmocka_unit_test(a_post_that_posts_itself_starves_nobody),
        cmocka_unit_test(any_thread_may_post),
        cmocka_unit_test(watches_are_level_triggered),
        cmocka_unit_test(a_freed_watch_lets_its_number_go_at_once),
        cmocka_unit_test(a_bad_descriptor_is_an_error),
        cmocka_unit_test(signals_reach_the_loop),
        cmocka_unit_test(jobs_run_in_order_and_are_bounded),
        cmocka_unit_test(freeing_a_worker_tells_every_job),
        cmocka_unit_test(out_of_memory_is_told_and_leaks_nothing),
        cmocka_unit_test(a_name_is_looked_up_beside_the_loop),
        /* last: its threads free memory when they end */
        cmocka_unit_test(a_lookup_that_is_freed_tells_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
