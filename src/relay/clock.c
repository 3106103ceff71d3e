/* SPDX-License-Identifier: Apache-2.0 */
/* The store's time never goes back; its clock may. Operators want to know when the two part, and when they meet again. */
#include "observe/log.h"
#include "relay/clock.h"

enum {
    BEHIND_MS = 2000 /* less is not worth a line */
};

bool hk_clock_log(struct hk_log *log, bool was_behind, uint64_t behind_ms)
{
    struct hk_log_line line;
    bool behind = behind_ms > (was_behind ? 0 : BEHIND_MS);
    if (behind == was_behind)
        return behind;
    hk_log_begin(&line, log, behind ? HK_LOG_WARN : HK_LOG_INFO,
                 behind ? "clock behind the store's time" : "clock in step again");
    if (behind) {
        hk_log_i64(&line, "behind_ms", (int64_t)behind_ms);
        hk_log_cstr(
            &line, "meaning",
            "the clock was ahead before, or was set back: leases and waits take longer until it has caught up; "
            "not_before and expires_at go by the clock");
    }
    hk_log_end(&line);
    return behind;
}
