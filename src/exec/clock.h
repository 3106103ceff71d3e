/* SPDX-License-Identifier: Apache-2.0 */
/* The system's time and randomness, for hk_execute. Nothing in core may see this. */
#ifndef HK_EXEC_CLOCK_H
#define HK_EXEC_CLOCK_H

#include <stdint.h>

#include <hikyaku/execute.h>

/* `clock` with the system's functions in place of its NULL members. */
struct hk_clock hk_clock_complete(const struct hk_clock *clock);
/* A seed that nobody can guess, or at the worst one that differs from run to run. */
uint64_t hk_clock_seed(void);
int64_t hk_clock_us(void);            /* monotonic */
int64_t hk_clock_since_boot_ms(void); /* goes on while the machine sleeps, as a clock on the wall does */
int64_t hk_clock_wall_ms(void);       /* Unix */

#endif
