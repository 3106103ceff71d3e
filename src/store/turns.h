/* SPDX-License-Identifier: Apache-2.0 */
/* Turns at a store that takes one writer at a time (SQLite), for the threads of one process. The file's lock has no queue: a writer that
 * finds it taken sleeps and tries again, and among many writers one may find it taken for seconds. Here writers take turns in the
 * order of their requests, so that each waits only for those before it. Other processes compete for the file's lock as ever.
 *
 * Any thread may call any of these. Owned by all who use it: a thread that hangs in the store may outlive whoever made it. */
#ifndef HK_STORE_TURNS_H
#define HK_STORE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

struct hk_turns;

struct hk_turns *hk_turns_new(uint64_t wait_ms); /* NULL: out of memory */
struct hk_turns *hk_turns_ref(struct hk_turns *turns);
void hk_turns_unref(struct hk_turns *turns); /* NULL: nothing happens */

/* Waits for the turn. False: the time is spent. */
bool hk_turns_take(struct hk_turns *turns);
void hk_turns_give(struct hk_turns *turns);
/* Does anybody wait for it? */
bool hk_turns_has_line(struct hk_turns *turns);

#endif
