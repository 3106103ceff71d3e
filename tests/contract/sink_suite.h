/* SPDX-License-Identifier: Apache-2.0 */
/* src/sink/sink.h as a test, for every sink. */
#ifndef HK_TESTS_SINK_SUITE_H
#define HK_TESTS_SINK_SUITE_H

#include "loop/loop.h"
#include "sink/sink.h"

struct sink_maker {
    const char *name;
    struct hk_sink *(*quick)(struct hk_loop *loop); /* confirms everything, soon */
    struct hk_sink *(*slow)(struct hk_loop *loop);  /* answers nothing within 10 s */
    /* NULL: it is never so. */
    struct hk_sink *(*narrow)(struct hk_loop *loop); /* takes a few at once, and confirms them soon */
    struct hk_sink *(*stuck)(struct hk_loop *loop);  /* its client hangs in a call … */
    void (*unstick)(void);                           /* … up to this */
    struct hk_sink *(*refusing)(
        struct hk_loop *loop); /* a broker that refuses some, and numbers the others */
};

/* Runs all tests on all of them (at most 8); returns the number of failed ones. */
int sink_suite(const struct sink_maker *makers, size_t n);

#endif
