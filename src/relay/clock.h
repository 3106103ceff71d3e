/* SPDX-License-Identifier: Apache-2.0 */
/* What the relay says when the store's clock falls behind the store's time. */
#ifndef HK_RELAY_CLOCK_H
#define HK_RELAY_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

struct hk_log;

/* One line when it begins, one when it is over. Returns whether the clock counts as behind now. */
bool hk_clock_log(struct hk_log *log, bool was_behind, uint64_t behind_ms);

#endif
