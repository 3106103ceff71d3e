/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that jumps makes messages leave early, die early or wait, long before anybody looks at it: so the relay says it when
 * it happens. And the store's time never goes back, while its clock may: operators want to know when the two part, and when they
 * meet again. */
#include "core/exchange.h"
#include "exec/clock.h"
#include "observe/log.h"
#include "relay/clock.h"

enum {
    BEHIND_MS = 2000, /* less is not worth a line */
    JUMP_MS = 2000
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
            "not_before and expires_at go by the clock. If the clock is right now, stop the relay and run "
            "'hikyaku clock reset'");
    }
    hk_log_end(&line);
    return behind;
}

/* ---- jumps ---- */

#define SIGNED_BY "leases and due times go by the database server's clock; signatures carry this host's time"

static const struct {
    const char *ahead, *back;             /* the event */
    const char *ahead_means, *back_means; /* for messages */
} words[] = {
    [HK_CLOCK_OF_STORE_HOST] =
        {"the host's clock jumped ahead", "the host's clock jumped back",
         "messages go by this clock: those that are due or expired by it leave or die now. If it is wrong, set it "
         "right (NTP), stop the relay and run 'hikyaku clock reset'",
         "not_before and expires_at go by this clock; leases and waits do not go back with it"},
    [HK_CLOCK_OF_HOST] = {"the host's clock jumped ahead", "the host's clock jumped back", SIGNED_BY,
                          SIGNED_BY},
    [HK_CLOCK_OF_SERVER] =
        {"the database server's clock jumped ahead", "the database server's clock jumped back",
         "messages go by this clock: those that are due or expired by it leave or die now. If it is wrong, set it "
         "right (NTP), stop the relays and run 'hikyaku clock reset'",
         "messages go by this clock: those that were written while it was ahead wait until it is there again. "
         "If it is right now, stop the relays and run 'hikyaku clock reset'"},
};

static void log_jump(struct hk_log *log, enum hk_clock_whose whose, int64_t jump_ms, int64_t clock_ms)
{
    struct hk_log_line line;
    bool ahead = jump_ms > 0;
    hk_log_begin(&line, log, HK_LOG_WARN, ahead ? words[whose].ahead : words[whose].back);
    hk_log_ms(&line, "by", (uint64_t)(ahead ? jump_ms : -jump_ms));
    hk_log_time(&line, "now", clock_ms);
    hk_log_cstr(&line, "meaning", ahead ? words[whose].ahead_means : words[whose].back_means);
    hk_log_end(&line);
}

void hk_clock_watch(struct hk_clock_watch *watch, struct hk_log *log, enum hk_clock_whose whose,
                    int64_t clock_ms, int64_t steady_ms, uint32_t late_ms)
{
    struct hk_clock_watch now = {.known = true, .apart_ms = clock_ms - steady_ms, .late_ms = late_ms};
    int64_t jump_ms = now.apart_ms - watch->apart_ms;
    int64_t bound_ms = JUMP_MS + (int64_t)late_ms + (int64_t)watch->late_ms;
    if (watch->known && (jump_ms > bound_ms || jump_ms < -bound_ms))
        log_jump(log, whose, jump_ms, clock_ms);
    *watch = now;
}

/* ---- the relay's ---- */

void hk_clocks_beat(struct hk_clocks *clocks, struct hk_log *log)
{
    int64_t before_ms = hk_clock_since_boot_ms(), clock_ms = hk_clock_wall_ms();
    int64_t after_ms = hk_clock_since_boot_ms(); /* we may have been stopped between the two */
    hk_clock_watch(&clocks->host, log, clocks->shared ? HK_CLOCK_OF_HOST : HK_CLOCK_OF_STORE_HOST, clock_ms,
                   after_ms, (uint32_t)(after_ms - before_ms));
}

void hk_clocks_polled(struct hk_clocks *clocks, struct hk_log *log, const struct hk_poll *poll)
{
    if (clocks->shared)
        hk_clock_watch(&clocks->server, log, HK_CLOCK_OF_SERVER, poll->now_ms - (int64_t)poll->behind_ms,
                       clocks->asked_ms, poll->late_ms);
    clocks->behind = hk_clock_log(log, clocks->behind, poll->behind_ms);
}
