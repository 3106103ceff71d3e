/* SPDX-License-Identifier: Apache-2.0 */
/* The system's time and randomness. */
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include "exec/clock.h"

static int64_t read_ms(clockid_t id)
{
    struct timespec ts = {0};
    clock_gettime(id, &ts); /* cannot fail for the two clocks that we ask */
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t system_now_ms(void *arg)
{
    (void)arg;
    return read_ms(CLOCK_MONOTONIC);
}

static int64_t system_wall_ms(void *arg)
{
    (void)arg;
    return read_ms(CLOCK_REALTIME);
}

static bool system_sleep_ms(void *arg, uint64_t ms)
{
    (void)arg;
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0)
        if (errno != EINTR)
            return false;
    return true;
}

struct hk_clock hk_clock_complete(const struct hk_clock *clock)
{
    struct hk_clock c = *clock;
    if (!c.now_ms)
        c.now_ms = system_now_ms;
    if (!c.wall_ms)
        c.wall_ms = system_wall_ms;
    if (!c.sleep_ms)
        c.sleep_ms = system_sleep_ms;
    return c;
}

uint64_t hk_clock_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) == (ssize_t)sizeof seed)
        return seed;
    struct timespec ts = {0};
    clock_gettime(CLOCK_REALTIME, &ts);
    return (uint64_t)ts.tv_sec * 1000000007u ^ (uint64_t)ts.tv_nsec;
}

int64_t hk_clock_wall_ms(void)
{
    return read_ms(CLOCK_REALTIME);
}

int64_t hk_clock_since_boot_ms(void)
{
#ifdef CLOCK_BOOTTIME
    return read_ms(CLOCK_BOOTTIME);
#else
    return read_ms(CLOCK_MONOTONIC);
#endif
}

int64_t hk_clock_us(void)
{
    struct timespec ts = {0};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}
