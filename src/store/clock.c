/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of both kinds of store about a clock that was wrong. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/buf.h"
#include "base/parse.h"
#include "base/show.h"
#include "store/clock.h"

#define YEAR_2024_MS INT64_C(1704067200000)

static const struct {
    const char *name, *one, *many;
} parts[HK_NCLOCK_PARTS] = {
    [HK_CLOCK_WAITS] = {"waits", "message that waits for its next attempt",
                        "messages that wait for their next attempt"},
    [HK_CLOCK_DUE] = {"due", "message that was to go at once", "messages that were to go at once"},
    [HK_CLOCK_BREAKERS] = {"breakers", "open breaker", "open breakers"},
    [HK_CLOCK_STATES] = {"destinations", "destination whose state is dated ahead",
                         "destinations whose states are dated ahead"},
    [HK_CLOCK_LEASES] = {"leases", "relay's lease", "relays' leases"},
    [HK_CLOCK_CLAIMS] = {"claims", "claim", "claims"},
    [HK_CLOCK_REDRIVES] = {"redrives", "running redrive", "running redrives"},
    [HK_CLOCK_NOTICES] = {"notices", "notice of an alert", "notices of alerts"},
    [HK_CLOCK_MUTES] = {"mutes", "muted alert rule", "muted alert rules"},
    [HK_CLOCK_LOOKS] = {"looks", "last look for alerts", "last looks for alerts"},
};

const char *hk_clock_part_name(enum hk_clock_part part)
{
    return parts[part].name;
}

const char *hk_clock_part_words(enum hk_clock_part part, uint64_t n, char out[96])
{
    (void)snprintf(out, 96, "%" PRIu64 " %s", n, n == 1 ? parts[part].one : parts[part].many);
    return out;
}

bool hk_clock_in_step(const struct hk_clock_state *state)
{
    return state->mark_ms - state->clock_ms <= HK_CLOCK_IN_STEP_MS;
}

void hk_clock_detail(struct hk_buf *out, const struct hk_clock_state *state)
{
    (void)hk_buf_addf(out, "{\"ahead_ms\":%" PRId64, state->mark_ms - state->clock_ms);
    for (int i = 0; i < HK_NCLOCK_PARTS; i++)
        if (state->rows[i])
            (void)hk_buf_addf(out, ",\"%s\":%" PRIu64, parts[i].name, state->rows[i]);
    (void)hk_buf_addc(out, '}');
}

enum hk_code hk_clock_check(const struct hk_clock_state *state, struct hk_err *err)
{
    char now[HK_TIME_TEXT_MAX];
    if (state->clock_ms >= YEAR_2024_MS)
        return HK_OK;
    (void)hk_format_rfc3339(state->clock_ms, now);
    return hk_err_set(err, HK_RANGE, "the clock says %s, which cannot be right: set it first (NTP)", now);
}

/* ---- lanes ---- */

static int64_t monotonic_ms(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

enum hk_code hk_lane_runs(struct hk_str relay, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_CONFLICT,
                      "relay %s runs, and would keep the wrong time: stop every relay of this store, reset "
                      "the clock, and start them again",
                      hk_show(relay, shown));
}

static enum hk_code cannot_tell(struct hk_str relay, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_BUSY,
                      "relay %s did not say that it ended: if it runs, stop it; else it counts as dead when "
                      "nothing was heard of it for as long as a lease lasts",
                      hk_show(relay, shown));
}

enum hk_code hk_lane_watch(struct hk_lane_watch *watch, int64_t lane, int64_t sign, uint64_t lease_ms,
                           struct hk_str relay, struct hk_err *err)
{
    size_t i = 0;
    int64_t now_ms = monotonic_ms();
    while (i < watch->n && watch->items[i].lane != lane)
        i++;
    if (i == HK_LANES_WATCHED)
        return cannot_tell(relay, err);
    if (i == watch->n) {
        watch->items[i].lane = lane;
        watch->items[i].sign = sign;
        watch->items[i].since_ms = now_ms;
        watch->items[i].alive = false;
        watch->n++;
    }
    if (watch->items[i].sign != sign)
        watch->items[i].alive = true;
    if (watch->items[i].alive)
        return hk_lane_runs(relay, err);
    return (uint64_t)(now_ms - watch->items[i].since_ms) >= lease_ms ? HK_OK : cannot_tell(relay, err);
}

uint64_t hk_lane_lease(uint64_t lease_ms, int64_t of_lane_ms)
{
    return of_lane_ms > 0 && (uint64_t)of_lane_ms > lease_ms ? (uint64_t)of_lane_ms : lease_ms;
}
