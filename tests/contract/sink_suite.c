/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of sinks. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/str.h"
#include "client.h"
#include "sink_suite.h"

enum {
    N = 100
};

struct suite {
    struct hk_loop *loop;
    struct hk_sink *sink;
    struct hk_message msg;
    pthread_t thread; /* the loop's */
    unsigned inside;  /* a call of ours is running: `done` must not */
    unsigned done, failed, to_send;
    uint64_t longest_ms;
    enum hk_fault last;
    bool close_at_end;
    bool broker;
    unsigned placed;
    int64_t last_sequence;
    enum hk_fault last_refusal;
};

static void hangs(void *arg)
{
    (void)arg;
    (void)fprintf(stderr, "a delivery never ended\n");
    abort();
}

static void open_suite(struct suite *s, struct hk_sink *(*open)(struct hk_loop *))
{
    memset(s, 0, sizeof *s);
    s->thread = pthread_self();
    s->msg = message_of("{\"a\":1}", 7);
    assert_int_equal(hk_loop_new(&s->loop, NULL), HK_OK);
    s->sink = open(s->loop);
    assert_non_null(s->sink);
}

static void close_suite(struct suite *s)
{
    if (s->sink)
        s->sink->ops->close(s->sink);
    hk_loop_free(s->loop);
}

static void send_one(struct suite *s, uint64_t timeout_ms);

/* Also with nothing to do. */
static void flush(struct suite *s)
{
    unsigned before = s->inside;
    if (!s->sink || !s->sink->ops->flush)
        return;
    s->inside++;
    s->sink->ops->flush(s->sink);
    s->inside = before;
}

/* Where it is, or why not, in the facts and in what people are shown. */
static void look_at_broker(struct suite *s, const struct hk_sink_result *r, const struct hk_sink_shown *shown)
{
    const struct hk_facts *f = &r->facts;
    if (f->fault == HK_FAULT_NONE) {
        s->placed += f->placed;
        assert_true(f->sequence > s->last_sequence && !f->broker_code.len);
        s->last_sequence = f->sequence;
        return;
    }
    s->last_refusal = f->fault;
    assert_true(f->broker_code.len && f->body.len && !f->placed && !f->possibly_delivered);
    assert_true(hk_str_containsi(shown->response_headers, f->broker_code));
    assert_true(hk_str_containsi(f->error, f->broker_code));
}

static void on_done(void *arg, const struct hk_sink_result *r)
{
    struct suite *s = arg;
    assert_int_equal(s->inside, 0);
    assert_true(pthread_equal(s->thread, pthread_self()));
    bool fine = r->facts.fault == HK_FAULT_NONE && (r->facts.status == 0 || r->facts.status / 100 == 2);
    s->done++;
    s->failed += !fine;
    s->last = r->facts.fault;
    s->longest_ms = r->facts.duration_ms > s->longest_ms ? r->facts.duration_ms : s->longest_ms;
    assert_true(fine == (r->facts.error.len == 0));
    struct hk_sink_shown shown = r->show(r);
    assert_true(shown.request_headers.len >= 2 && shown.request_headers.ptr[0] == '{');
    assert_true(shown.response_headers.len >= 2 && shown.response_headers.ptr[0] == '{');
    if (s->broker)
        look_at_broker(s, r, &shown);
    if (s->to_send > 0) {
        send_one(s, 5000); /* from inside done */
        flush(s);
        return;
    }
    if (s->done < N)
        return;
    if (s->close_at_end) {
        s->sink->ops->close(s->sink);
        s->sink = NULL;
    }
    hk_loop_stop(s->loop);
}

static void send_one(struct suite *s, uint64_t timeout_ms)
{
    struct hk_err err;
    unsigned before = s->inside;
    if (s->to_send > 0)
        s->to_send--;
    s->inside++;
    assert_int_equal(s->sink->ops->send(s->sink,
                                        &(struct hk_delivery){.msg = &s->msg,
                                                              .attempt = 1,
                                                              .wall_ms = 1794731400250,
                                                              .timeout_ms = timeout_ms,
                                                              .done = on_done,
                                                              .arg = s},
                                        &err),
                     HK_OK);
    s->inside = before;
}

static void run(struct suite *s)
{
    struct hk_timer *guard;
    assert_int_equal(hk_timer_new(s->loop, hangs, NULL, &guard), HK_OK);
    hk_timer_start(guard, 20000);
    flush(s);
    flush(s);
    if (s->done < N)
        hk_loop_run(s->loop);
    hk_timer_free(guard);
    assert_int_equal(s->done, N);
}

static void every_delivery_is_done_exactly_once(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->quick);
    for (int i = 0; i < N; i++)
        send_one(&s, 10000);
    run(&s);
    assert_int_equal(s.failed, 0);
    close_suite(&s);
}

static void done_may_send_the_next(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->quick);
    s.to_send = N;
    for (int i = 0; i < 3; i++)
        send_one(&s, 10000);
    run(&s);
    assert_int_equal(s.failed, 0);
    close_suite(&s);
}

static void the_last_done_may_close(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->quick);
    s.close_at_end = true;
    for (int i = 0; i < N; i++)
        send_one(&s, 10000);
    run(&s);
    assert_null(s.sink);
    close_suite(&s);
}

static void a_delivery_ends_within_its_timeout(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->slow);
    for (int i = 0; i < N; i++)
        send_one(&s, i % 2 ? 50 : 150);
    run(&s);
    assert_int_equal(s.failed, N);
    assert_int_equal(s.last, HK_FAULT_TIMEOUT);
    assert_in_range(s.longest_ms, 150, 5000);
    close_suite(&s);
}

static void abort_is_told_later_and_once(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->slow);
    for (int i = 0; i < N; i++)
        send_one(&s, 60000);
    flush(&s);
    s.inside++;
    s.sink->ops->abort(s.sink);
    s.inside--;
    assert_int_equal(s.done, 0);
    run(&s);
    assert_int_equal(s.failed, N);
    assert_int_equal(s.last, HK_FAULT_LOCAL);
    assert_true(s.longest_ms < 5000);
    s.sink->ops->abort(s.sink); /* nothing in flight */
    close_suite(&s);
}

static void an_idle_sink_closes(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->slow);
    assert_string_equal(s.sink->ops->name, maker->name);
    close_suite(&s);
}

/* ---- sinks that may have no room ---- */

struct narrow {
    struct suite suite;
    unsigned refused, rooms, sent;
    bool waits;
};

/* Until it is refused, or all are out. */
static void fill(struct narrow *n)
{
    struct suite *s = &n->suite;
    struct hk_err err;
    enum hk_code rc = HK_OK;
    s->inside++;
    while (rc == HK_OK && n->sent < N) {
        rc = s->sink->ops->send(s->sink,
                                &(struct hk_delivery){.msg = &s->msg,
                                                      .attempt = 1,
                                                      .wall_ms = 1794731400250,
                                                      .timeout_ms = 10000,
                                                      .done = on_done,
                                                      .arg = s},
                                &err);
        n->sent += rc == HK_OK;
    }
    s->inside--;
    n->waits = rc == HK_BUSY;
    n->refused += n->waits;
    assert_true(rc == HK_OK || rc == HK_BUSY);
}

/* The suite comes first in it. */
static void on_room(void *arg)
{
    struct narrow *n = arg;
    assert_int_equal(n->suite.inside, 0);
    assert_true(pthread_equal(n->suite.thread, pthread_self()));
    n->rooms++;
    if (!n->waits)
        return;
    unsigned before = n->sent;
    fill(n);
    assert_true(n->sent > before || n->sent == N); /* there was some */
    flush(&n->suite);
}

static void a_full_sink_refuses_and_says_when_there_is_room(void **state)
{
    const struct sink_maker *maker = *state;
    struct narrow n = {.sent = 0};
    open_suite(&n.suite, maker->narrow);
    n.suite.sink->room = on_room;
    n.suite.sink->room_arg = &n;
    fill(&n);
    assert_true(n.refused == 1 && n.sent < N);
    assert_int_equal(n.rooms, 0); /* never from inside */
    run(&n.suite);
    assert_int_equal(n.sent, N);
    assert_int_equal(n.suite.failed, 0);
    assert_true(n.rooms >= n.refused - n.waits);
    close_suite(&n.suite);
}

static void a_full_sink_ends_what_it_took_when_aborted(void **state)
{
    const struct sink_maker *maker = *state;
    struct narrow n = {.sent = 0};
    open_suite(&n.suite, maker->narrow);
    fill(&n);
    n.suite.sink->ops->abort(n.suite.sink); /* collected, not flushed */
    n.suite.done = N - n.sent;
    run(&n.suite);
    assert_int_equal(n.suite.failed, n.sent);
    assert_int_equal(n.suite.last, HK_FAULT_LOCAL);
    close_suite(&n.suite);
}

static void close_is_bounded_though_the_client_hangs(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->stuck);
    for (int i = 0; i < N; i++)
        send_one(&s, 100);
    run(&s);
    assert_int_equal(s.failed, N);
    close_suite(&s); /* hangs for ever if it waits for the client */
    maker->unstick();
}

static void what_a_broker_says_is_told(void **state)
{
    const struct sink_maker *maker = *state;
    struct suite s;
    open_suite(&s, maker->refusing);
    s.broker = true;
    for (int i = 0; i < N; i++)
        send_one(&s, 10000);
    run(&s);
    assert_int_equal(s.last_refusal, HK_FAULT_BROKER_REFUSED);
    assert_true(s.failed > 0 && s.failed < N);
    assert_int_equal(s.placed, N - s.failed);
    close_suite(&s);
}

static const struct CMUnitTest contract[] = {
    cmocka_unit_test(every_delivery_is_done_exactly_once),
    cmocka_unit_test(done_may_send_the_next),
    cmocka_unit_test(the_last_done_may_close),
    cmocka_unit_test(a_delivery_ends_within_its_timeout),
    cmocka_unit_test(abort_is_told_later_and_once),
    cmocka_unit_test(an_idle_sink_closes),
    cmocka_unit_test(a_full_sink_refuses_and_says_when_there_is_room),
    cmocka_unit_test(a_full_sink_ends_what_it_took_when_aborted),
    cmocka_unit_test(close_is_bounded_though_the_client_hangs),
    cmocka_unit_test(what_a_broker_says_is_told),
};

/* Some kinds are never so. */
static bool applies(const struct sink_maker *maker, CMUnitTestFunction test)
{
    if (test == a_full_sink_refuses_and_says_when_there_is_room ||
        test == a_full_sink_ends_what_it_took_when_aborted)
        return maker->narrow != NULL;
    if (test == close_is_bounded_though_the_client_hangs)
        return maker->stuck != NULL;
    return test != what_a_broker_says_is_told || maker->refusing;
}

int sink_suite(const struct sink_maker *makers, size_t n)
{
    static char names[8 * COUNT(contract)][80];
    static struct sink_maker copies[8];
    struct CMUnitTest tests[8 * COUNT(contract)];
    size_t n_tests = 0;
    for (size_t i = 0; i < n && i < 8; i++) {
        copies[i] = makers[i];
        for (size_t k = 0; k < COUNT(contract); k++) {
            if (!applies(&makers[i], contract[k].test_func))
                continue;
            (void)snprintf(names[n_tests], sizeof names[0], "%s: %s", makers[i].name, contract[k].name);
            tests[n_tests] = contract[k];
            tests[n_tests].name = names[n_tests];
            tests[n_tests++].initial_state = &copies[i];
        }
    }
    return _cmocka_run_group_tests("sinks", tests, n_tests, NULL, NULL);
}
