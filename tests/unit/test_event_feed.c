/* SPDX-License-Identifier: Apache-2.0 */
/* The thread behind GET /events: every listener has its last word before the server may stop. */
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "admin/exchange.h"
#include "check.h"
#include "daemon/event_feed.h"
#include "daemon/meters.h"

enum {
    LISTENERS = 3,
    PATIENCE_MS = 60000
};

/* What the feed's thread asks. It may stay in there until the test lets it go. */
struct host {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool asked, open, ended;
    struct hk_desk desk; /* of a store that no build has: a look fails */
};

static void set(struct host *h, bool *what)
{
    (void)pthread_mutex_lock(&h->lock);
    *what = true;
    (void)pthread_cond_broadcast(&h->changed);
    (void)pthread_mutex_unlock(&h->lock);
}

static void wait_until(struct host *h, const bool *what)
{
    (void)pthread_mutex_lock(&h->lock);
    while (!*what)
        (void)pthread_cond_wait(&h->changed, &h->lock);
    (void)pthread_mutex_unlock(&h->lock);
}

static struct hk_desk *desk_of(void *arg)
{
    struct host *h = arg;
    return &h->desk;
}

static void close_desk(void *arg)
{
    (void)arg;
}

static enum hk_event_stay may_stay(void *arg, const struct hk_admin_exchange *exchange)
{
    struct host *h = arg;
    (void)exchange;
    set(h, &h->asked);
    wait_until(h, &h->open);
    return HK_EVENT_STAYS;
}

static void feed_ended(void *arg)
{
    struct host *h = arg;
    set(h, &h->ended);
}

/* While the test waits. */
static void *let_go_soon(void *arg)
{
    struct host *h = arg;
    (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    set(h, &h->open);
    return NULL;
}

static void hear(struct hk_admin_exchange *x, char *out, size_t room)
{
    size_t len = 0, n = 0;
    while (hk_stream_read(x, out + len, room - 1 - len, &n) == HK_STREAM_SOME)
        len += n;
    out[len] = '\0';
}

static void the_last_word_comes_before_the_end(void **state)
{
    static struct host h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct hk_event_host host = {
        .desk = desk_of, .close = close_desk, .may_stay = may_stay, .ended = feed_ended, .arg = &h};
    struct hk_admin_exchange *x[LISTENERS];
    struct hk_metrics *metrics = NULL;
    char heard[4096];
    pthread_t thread;
    (void)state;
    hk_desk_init(&h.desk, NULL, "nowhere:");
    assert_int_equal(hk_metrics_new(hk_meters, HK_NMETERS, &metrics, NULL), HK_OK);
    struct hk_admin_room *room = hk_admin_room_new();
    assert_non_null(room);
    struct hk_hub *hub = hk_hub_new(room);
    struct hk_event_feed *feed = hk_event_feed_new(&host, metrics);
    assert_true(hub && feed);
    for (size_t i = 0; i < LISTENERS; i++) {
        x[i] = hk_exchange_new(hub, "/api/v1/events");
        assert_non_null(x[i]);
        hk_exchange_hand_out(x[i]);
        hk_event_feed_join(feed, x[i], &(struct hk_events_ask){.types = NULL}, NULL);
    }
    wait_until(&h, &h.asked);

    /* As the relay ends while the thread asks the store. */
    hk_event_feed_drain(feed);
    assert_int_equal(pthread_create(&thread, NULL, let_go_soon, &h), 0);
    hk_event_feed_wait(feed, PATIENCE_MS);
    for (size_t i = 0; i < LISTENERS; i++)
        hk_stream_finish(x[i]); /* the server */
    for (size_t i = 0; i < LISTENERS; i++) {
        hear(x[i], heard, sizeof heard);
        assert_non_null(strstr(heard, "event: end\n"));
        assert_non_null(strstr(heard, "the relay is shutting down"));
        hk_exchange_leave(x[i]);
    }
    (void)pthread_join(thread, NULL);
    hk_event_feed_free(feed, PATIENCE_MS);
    assert_true(h.ended);
    hk_hub_unref(hub);
    hk_admin_room_unref(room);
    hk_metrics_free(metrics);
    hk_desk_fini(&h.desk);
}

/* Nobody has come: there is no thread, and nothing to wait for. */
static void without_listeners_nobody_waits(void **state)
{
    static struct host h = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    const struct hk_event_host host = {
        .desk = desk_of, .close = close_desk, .may_stay = may_stay, .ended = feed_ended, .arg = &h};
    struct hk_event_feed *feed = hk_event_feed_new(&host, NULL);
    (void)state;
    assert_non_null(feed);
    hk_event_feed_drain(feed);
    hk_event_feed_wait(feed, PATIENCE_MS);
    hk_event_feed_free(feed, PATIENCE_MS);
    assert_true(h.ended && !h.asked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_word_comes_before_the_end),
        cmocka_unit_test(without_listeners_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
