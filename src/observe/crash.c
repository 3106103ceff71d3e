/* SPDX-License-Identifier: Apache-2.0 */
/* Crash points, for tests only. The counter is the one thing here that changes. */
#include "observe/crash.h"

#ifdef HK_CRASH_POINTS
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/str.h"

void hk_crash_point(const char *name)
{
    static atomic_uint_fast64_t passed;
    struct hk_str spec = hk_str_of(getenv("HIKYAKU_CRASH_AT"));
    struct hk_str wanted = hk_str_cut(&spec, ':');
    uint64_t nth = 1;
    if (!hk_str_eq(wanted, hk_str_of(name)))
        return;
    if (spec.ptr && hk_parse_u64(spec, &nth, NULL) != HK_OK)
        return;
    if (atomic_fetch_add(&passed, 1) + 1 == nth)
        kill(getpid(), SIGKILL);
}
#else
typedef int hk_crash_points_are_off; /* a translation unit must not be empty */
#endif
