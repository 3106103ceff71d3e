/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "base/mem.h"
#include "store/turns.h"

/* One who waits, on its own stack. */
struct waiter {
    struct waiter *next;
    pthread_cond_t wake;
    bool has_turn;
};

struct hk_turns {
    pthread_mutex_t lock; /* guards all but `owners` */
    bool taken;
    struct waiter *first; /* in the order in which they asked */
    uint64_t wait_ms;
    atomic_uint owners;
};

struct hk_turns *hk_turns_new(uint64_t wait_ms)
{
    struct hk_turns *t = hk_mem_zalloc(1, sizeof *t);
    if (!t)
        return NULL;
    (void)pthread_mutex_init(&t->lock, NULL);
    t->wait_ms = wait_ms;
    t->owners = 1;
    return t;
}

struct hk_turns *hk_turns_ref(struct hk_turns *t)
{
    if (t)
        atomic_fetch_add(&t->owners, 1);
    return t;
}

void hk_turns_unref(struct hk_turns *t)
{
    if (!t || atomic_fetch_sub(&t->owners, 1) > 1)
        return;
    (void)pthread_mutex_destroy(&t->lock);
    hk_mem_free(t);
}

static struct timespec end_of_wait(uint64_t ms)
{
    struct timespec at = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += (time_t)(ms / 1000);
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void leave_line(struct hk_turns *t, const struct waiter *w)
{
    struct waiter **at = &t->first;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
}

/* The line is short: the threads of one process. */
static void join_line(struct hk_turns *t, struct waiter *w)
{
    struct waiter **at = &t->first;
    while (*at)
        at = &(*at)->next;
    *at = w;
}

/* Under the lock. */
static bool wait_in_line(struct hk_turns *t)
{
    struct waiter w = {.next = NULL};
    struct timespec until = end_of_wait(t->wait_ms);
    pthread_condattr_t how;
    (void)pthread_condattr_init(&how);
    (void)pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&w.wake, &how);
    (void)pthread_condattr_destroy(&how);
    join_line(t, &w);
    while (!w.has_turn && pthread_cond_timedwait(&w.wake, &t->lock, &until) != ETIMEDOUT)
        continue;
    if (!w.has_turn)
        leave_line(t, &w);
    (void)pthread_cond_destroy(&w.wake);
    return w.has_turn;
}

bool hk_turns_take(struct hk_turns *t)
{
    bool mine = true;
    (void)pthread_mutex_lock(&t->lock);
    if (t->taken)
        mine = wait_in_line(t);
    else
        t->taken = true;
    (void)pthread_mutex_unlock(&t->lock);
    return mine;
}

/* It goes from hand to hand: nobody who comes now can be faster than the first in the line. */
void hk_turns_give(struct hk_turns *t)
{
    (void)pthread_mutex_lock(&t->lock);
    struct waiter *next = t->first;
    if (next) {
        t->first = next->next;
        next->has_turn = true;
        (void)pthread_cond_signal(&next->wake);
    } else {
        t->taken = false;
    }
    (void)pthread_mutex_unlock(&t->lock);
}

bool hk_turns_has_line(struct hk_turns *t)
{
    (void)pthread_mutex_lock(&t->lock);
    bool line = t->first != NULL;
    (void)pthread_mutex_unlock(&t->lock);
    return line;
}
