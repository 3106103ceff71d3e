/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a store and its PostgreSQL server, and breaks off where a test wants it. One thread; one connection at a
 * time is enough. */
#ifndef HK_TESTS_PG_PROXY_H
#define HK_TESTS_PG_PROXY_H

#include <stdbool.h>

/* What happens to the next thing that a client asks, up to its sync. After that all is as before, for new connections. */
enum proxy_mode {
    PROXY_PASS = 0,
    PROXY_LOSE_REQUEST, /* the server never hears of it */
    PROXY_LOSE_REPLY,   /* the server does it, and nobody hears of that */
    PROXY_LOSE_COMMIT,  /* all answers come through but the one to COMMIT */
    PROXY_HOLD_REQUEST /* the client is told that the connection is gone; the server gets it from proxy_deliver */
};

bool proxy_start(void);
void proxy_stop(void);
const char *proxy_url(void); /* the test's database, through the proxy */
void proxy_arm(enum proxy_mode mode);
/* The same for the first thing after that in which this text occurs. A static string. */
void proxy_arm_on(enum proxy_mode mode, const char *text);
void proxy_refuse(bool refuse); /* new connections */
/* Gives the server what was held. True: it committed. */
bool proxy_deliver(void);

#endif
