/* SPDX-License-Identifier: Apache-2.0 */
/* Crash points, for tests only. The counters are the one thing here that changes. */
#include "observe/crash.h"

#ifdef HK_CRASH_POINTS
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"

/* Is this the pass that `variable` names? */
static bool is_meant(const char *variable, const char *name, atomic_uint_fast64_t *passed)
{
    struct hk_str spec = hk_str_of(getenv(variable));
    struct hk_str wanted = hk_str_cut(&spec, ':');
    uint64_t nth = 1;
    if (!hk_str_eq(wanted, hk_str_of(name)))
        return false;
    if (spec.ptr && hk_parse_u64(spec, &nth, NULL) != HK_OK)
        return false;
    return atomic_fetch_add(passed, 1) + 1 == nth;
}

void hk_crash_point(const char *name)
{
    static atomic_uint_fast64_t killed, stopped;
    if (is_meant("HIKYAKU_CRASH_AT", name, &killed))
        kill(getpid(), SIGKILL);
    if (is_meant("HIKYAKU_STOP_AT", name, &stopped))
        (void)raise(SIGSTOP); /* to this thread, which then goes no step further */
}
#else
typedef int hk_crash_points_are_off; /* a translation unit must not be empty */
#endif
