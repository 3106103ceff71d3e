/* SPDX-License-Identifier: Apache-2.0 */
/* A scripted sink on a client with a thread of its own, as a broker's library would be: it collects until it is flushed, has
 * a window, confirms from its thread, and can be stuck. */
#ifndef HK_TESTS_SINK_THREADS_H
#define HK_TESTS_SINK_THREADS_H

#include "loop/loop.h"
#include "sink/sink.h"

struct threads_script {
    unsigned window; /* takes so many at once, then it is busy; 0 = any number */
    bool mute;       /* confirms nothing */
    bool stuck;      /* its thread hangs in a call, until threads_release */
    unsigned refuse; /* every n-th is refused with a code and words; 0 = none */
};

struct hk_sink *threads_open(struct hk_loop *loop, const struct threads_script *script);
unsigned threads_flushes(void); /* how many flushes handed something to the thread */
void threads_release(void);     /* lets stuck threads go, and waits for their end */

#endif
