/* SPDX-License-Identifier: Apache-2.0 */
/* One thread that waits for everything: a thin layer over libuv, which nothing above needs to know.
 *
 * Lifetimes and threads, for all that stands here:
 * - A loop and what was made on it belong to one thread, the one that runs it. Only hk_loop_post and hk_wake_send may be
 *   called from others, and only while the loop (the wake) lives.
 * - A free function takes effect at once: the callback does not run again, not even in this round. The memory goes
 *   a little later, in the loop's own time. All free functions take NULL, and may be called from inside the callback.
 * - Everything made on a loop is freed before hk_loop_free; it is a programmer's error (assert) if not.
 * - A watch must be freed *before* its descriptor is closed: libuv aborts the process when it finds a descriptor gone.
 * - Callbacks never run inside the call that armed them, only from hk_loop_run. */
#ifndef HK_LOOP_LOOP_H
#define HK_LOOP_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>

#include "base/cidr.h"

struct hk_loop;
struct hk_timer;
struct hk_watch;
struct hk_signal;
struct hk_wake;
struct hk_lookup;
struct hk_worker;

typedef void hk_loop_fn(void *arg);

enum hk_code hk_loop_new(struct hk_loop **out_loop, struct hk_err *err) HK_MUSTCHECK;
/* What was posted and has not run yet never runs. */
void hk_loop_free(struct hk_loop *loop);
/* Returns after hk_loop_stop; may be called again. */
void hk_loop_run(struct hk_loop *loop);
/* From the loop's thread; from another one post a function that calls it. Before hk_loop_run: that returns after one
 * round. */
void hk_loop_stop(struct hk_loop *loop);
/* Monotonic, not cached: timers count on the same clock and never fire before it says so. */
uint64_t hk_loop_now_ms(struct hk_loop *loop);
/* The same clock as it was read last, at the latest when this round of callbacks began: costs nothing. */
uint64_t hk_loop_round_ms(const struct hk_loop *loop);

/* Posts that may wait at the same time. */
#define HK_LOOP_POSTS_MAX 8192

/* From any thread: `fn(arg)` runs soon on the loop's thread, in order. HK_TOOBIG when HK_LOOP_POSTS_MAX wait. */
enum hk_code hk_loop_post(struct hk_loop *loop, hk_loop_fn *fn, void *arg) HK_MUSTCHECK;

/* ---- what is shared by what was made on one loop ---- */

/* One thing that several objects of a loop use, such as a connection. `kind` says what it is; it belongs to its users, who take it
 * off the list before hk_loop_free. */
struct hk_loop_shared {
    struct hk_loop_shared *next;
    const void *kind;
};

struct hk_loop_shared **hk_loop_shared(struct hk_loop *loop); /* the head of the list, NULL at first */

/* ---- timers: one shot, may be armed again ---- */

enum hk_code hk_timer_new(struct hk_loop *loop, hk_loop_fn *fn, void *arg,
                          struct hk_timer **out_timer) HK_MUSTCHECK;
void hk_timer_start(struct hk_timer *timer, uint64_t after_ms); /* arms it anew when it runs already */
void hk_timer_stop(struct hk_timer *timer);
bool hk_timer_running(const struct hk_timer *timer);
void hk_timer_free(struct hk_timer *timer);

/* ---- descriptors: level-triggered ---- */

enum {
    HK_WATCH_READ = 1,
    HK_WATCH_WRITE = 2,
    HK_WATCH_ERROR = 4, /* reported only, with both others */
};

typedef void hk_watch_fn(void *arg, unsigned events);

/* Makes `fd` non-blocking, and watches for nothing yet. One watch for each descriptor. HK_NOMEM, HK_IO. */
enum hk_code hk_watch_new(struct hk_loop *loop, int fd, hk_watch_fn *fn, void *arg,
                          struct hk_watch **out_watch, struct hk_err *err) HK_MUSTCHECK;
/* 0 = nothing. Costs system calls only when it changes something. */
void hk_watch_set(struct hk_watch *watch, unsigned events);
void hk_watch_free(struct hk_watch *watch);

/* ---- signals ---- */

typedef void hk_signal_fn(void *arg, int signum);

enum hk_code hk_signal_new(struct hk_loop *loop, int signum, hk_signal_fn *fn, void *arg,
                           struct hk_signal **out_signal, struct hk_err *err) HK_MUSTCHECK;
void hk_signal_free(struct hk_signal *signal);

/* ---- wakes: from any thread, without a queue ---- */

enum hk_code hk_wake_new(struct hk_loop *loop, hk_loop_fn *fn, void *arg, struct hk_wake **out_wake,
                         struct hk_err *err) HK_MUSTCHECK;
/* From any thread, also from a signal handler: `fn` runs soon on the loop, once for several sends. Cannot fail. */
void hk_wake_send(struct hk_wake *wake);
void hk_wake_free(struct hk_wake *wake);

/* ---- names: a thread for each, since asking for one may block for half a minute ---- */

#define HK_LOOKUP_MAX 16 /* addresses that are looked at */

struct hk_address {
    struct hk_ip ip;
    uint32_t scope; /* of a link-local one; 0 = none */
};

/* The two addresses of localhost, in the order in which they are to be tried; returns how many. */
size_t hk_loopbacks(struct hk_address *out);

struct sockaddr;
/* False: it is not one of the internet. */
bool hk_address_of(const struct sockaddr *at, size_t len, struct hk_address *out);

/* `error` NULL: `addresses` (at least one) in the order in which they are to be tried; valid during the call only. */
typedef void hk_lookup_fn(void *arg, const char *error, const struct hk_address *addresses, size_t n);

/* `fn` runs once, later, from the loop. HK_NOMEM, HK_TOOBIG (the name), HK_IO (no thread). */
enum hk_code hk_lookup_new(struct hk_loop *loop, const char *host, hk_lookup_fn *fn, void *arg,
                           struct hk_lookup **out_lookup, struct hk_err *err) HK_MUSTCHECK;
/* At any time; before `fn` ran it never will. The thread ends when it ends, and finds nothing gone. */
void hk_lookup_free(struct hk_lookup *lookup);

/* ---- workers: a thread for calls that block ---- */

/* `ran`: false when the worker was freed before the job's turn came. */
typedef void hk_worker_done_fn(void *arg, bool ran);

/* One thread that takes jobs in order; at most `max_jobs` (1 to 65536) are under way, from submit to done. */
enum hk_code hk_worker_new(struct hk_loop *loop, size_t max_jobs, struct hk_worker **out_worker,
                           struct hk_err *err) HK_MUSTCHECK;
/* `work` runs on the thread, then `done` on the loop, each exactly once (but see `ran`). Never blocks or allocates.
 * HK_TOOBIG when max_jobs are under way. */
enum hk_code hk_worker_submit(struct hk_worker *worker, hk_loop_fn *work, hk_worker_done_fn *done,
                              void *arg) HK_MUSTCHECK;
size_t hk_worker_pending(struct hk_worker *worker); /* jobs whose `done` has not run */
/* Waits for the job that is running; the others do not run. Every outstanding `done` runs from here. Not from inside
 * a `done`. */
void hk_worker_free(struct hk_worker *worker);

#endif
