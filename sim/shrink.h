/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the world of a failing seed small. */
#ifndef HK_SIM_SHRINK_H
#define HK_SIM_SHRINK_H

#include <stdint.h>

#include "base/buf.h"
#include "checker.h"
#include "cut.h"
#include "world.h"

struct hk_room {
    struct hk_buf log, dump, report;
};

void hk_room_init(struct hk_room *room);
void hk_room_fini(struct hk_room *room);

/* Runs the world, lets the checker judge it, and says what was violated: a rule ("I13"), or what the world itself
 * complained about; "" = nothing. */
#define HK_VERDICT_MAX 640
void hk_room_run(struct hk_room *room, uint64_t seed, const struct hk_cut *cut, struct hk_numbers *strikes,
                 struct hk_world_result *world, struct hk_check_result *check, char verdict[HK_VERDICT_MAX]);

/* Leaves out whatever can be left out of the seed's world while it fails by the same rule, and prints what is left, how
 * to replay it, and its trace. Returns the exit code: 1, as for any seed that fails; 0: this one does not. */
int hk_shrink(uint64_t seed);

#endif
