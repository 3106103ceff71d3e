/* SPDX-License-Identifier: Apache-2.0 */
/* Where a test may kill a relay that moves a message into or out of the dead letters. The same names in every store:
 * WHAT-begun (nothing is written yet), WHAT-inside (SQLite: between two statements; PostgreSQL: all is sent, no answer was
 * read), WHAT-committed. People's acts have them likewise: act, edit, outcome, redrive. */
#ifndef HK_STORE_CRASH_H
#define HK_STORE_CRASH_H

#include "core/exchange.h"
#include "observe/crash.h"

/* `bury` where an exchange has a message that died, `arrive` where it has one that was sent in another life or attempt. */
static inline void hk_crash_exchange(const struct hk_exchange *x, const char *bury, const char *arrive)
{
    (void)bury;
    (void)arrive;
    for (size_t i = 0; i < x->n_settles; i++) {
        if (x->settles[i].kind == HK_SETTLE_DEAD)
            hk_crash_point(bury);
        if (x->settles[i].kind == HK_SETTLE_SENT && x->settles[i].source == HK_FROM_RETRY)
            hk_crash_point(arrive);
    }
}

#endif
