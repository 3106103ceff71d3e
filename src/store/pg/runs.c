/* SPDX-License-Identifier: Apache-2.0 */
/* A run goes on over small gaps only: what lies in a gap is walked over, and a new search costs as much as some ten rows. */
#include "store/pg/runs.h"

enum {
    SPAN = 64,
    GAP_MAX = 8
};

size_t hk_pg_runs(const int64_t *ids, size_t n, struct hk_pg_run *out)
{
    size_t n_runs = 0;
    for (size_t i = 0; i < n; i++) {
        struct hk_pg_run *run = n_runs ? &out[n_runs - 1] : NULL;
        if (run && (uint64_t)ids[i] - (uint64_t)run->hi <= GAP_MAX &&
            (uint64_t)ids[i] - (uint64_t)run->lo < SPAN) {
            run->hi = ids[i];
            run->bits |= UINT64_C(1) << ((uint64_t)ids[i] - (uint64_t)run->lo);
        } else {
            out[n_runs++] = (struct hk_pg_run){.lo = ids[i], .hi = ids[i], .bits = 1};
        }
    }
    return n_runs;
}
