/* SPDX-License-Identifier: Apache-2.0 */
/* A world on virtual time: relays that run the very engine, applications, an operator, destinations and one store, all
 * drawn from one seed. The same seed gives the same log. */
#ifndef HK_SIM_WORLD_H
#define HK_SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cut.h"

/* What a run came to. */
struct hk_world_result {
    bool ok;
    char problem[512]; /* when not ok */
    uint64_t messages, sends, faults, steps, swept;
    uint64_t resets;  /* of the store's time */
    uint64_t defines; /* destinations made, changed or removed */
    size_t relays, dests;
    int64_t virtual_ms;
    bool many_lanes; /* several lanes lived at once: the checker must know */
    uint64_t trace_hash;
};

/* Runs the world of `seed` to its end and fills the log and the dump (both are reset first). Judging the log is the
 * checker's; `ok` says that the world ended by itself: everything came to rest, nobody span, every relay drained. */
void hk_world_run(uint64_t seed, struct hk_buf *log, struct hk_buf *dump, struct hk_world_result *out);
/* The same with parts left out, and told when faults struck (NULL: nobody asks). */
void hk_world_run_cut(uint64_t seed, const struct hk_cut *cut, struct hk_numbers *strikes, struct hk_buf *log,
                      struct hk_buf *dump, struct hk_world_result *out);

#endif
