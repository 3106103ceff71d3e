/* SPDX-License-Identifier: Apache-2.0 */
/* Coverage leads the simulator: the input is a tape from which the world's first draws are read, in place of its generator (the linker's
 * --wrap puts this file between), so that a mutation changes one decision and not all of them. When the tape has ended the seed's own numbers
 * follow. The checker judges every run. The first eight bytes are the seed. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hikyaku/rng.h>

#include "base/str.h"
#include "checker.h"
#include "fuzz.h"
#include "world.h"

uint64_t __real_hk_rng_upto(struct hk_rng *rng, uint64_t max);
uint64_t __real_hk_rng_between(struct hk_rng *rng, uint64_t lo, uint64_t hi);
uint64_t __wrap_hk_rng_upto(struct hk_rng *rng, uint64_t max);
uint64_t __wrap_hk_rng_between(struct hk_rng *rng, uint64_t lo, uint64_t hi);

static struct hk_str tape;

/* A byte for small ranges, so that a mutation of one counts; else two. */
static bool from_tape(uint64_t max, uint64_t *out)
{
    size_t n = max < 256 ? 1 : 2;
    if (tape.len < n)
        return false;
    uint64_t value = (unsigned char)tape.ptr[0];
    if (n == 2)
        value = max / 65535 * (value << 8 | (unsigned char)tape.ptr[1]) +
                (max < 65535 ? (value << 8 | (unsigned char)tape.ptr[1]) : 0);
    tape = (struct hk_str){tape.ptr + n, tape.len - n};
    *out = max == UINT64_MAX ? value : value % (max + 1);
    return true;
}

uint64_t __wrap_hk_rng_upto(struct hk_rng *rng, uint64_t max)
{
    uint64_t value;
    return from_tape(max, &value) ? value : __real_hk_rng_upto(rng, max);
}

uint64_t __wrap_hk_rng_between(struct hk_rng *rng, uint64_t lo, uint64_t hi)
{
    uint64_t value;
    if (hi > lo && from_tape(hi - lo, &value))
        return lo + value;
    return __real_hk_rng_between(rng, lo, hi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hk_buf log, dump;
    struct hk_world_result world;
    struct hk_check_result verdict;
    struct hk_buf report;
    uint64_t seed;
    if (size < sizeof seed || size > 4096)
        return 0;
    if (log.max == 0) {
        hk_buf_init(&log, (size_t)1 << 28);
        hk_buf_init(&dump, (size_t)1 << 26);
    }
    memcpy(&seed, data, sizeof seed);
    tape = (struct hk_str){(const char *)data + sizeof seed, size - sizeof seed};
    hk_world_run(seed, &log, &dump, &world);
    tape.len = 0;
    hk_buf_init(&report, (size_t)1 << 20);
    hk_check(hk_buf_str(&log), hk_buf_str(&dump), &(struct hk_check_options){.many_lanes = world.many_lanes},
             &report, &verdict);
    if (!world.ok || verdict.violations > 0) {
        (void)fprintf(stderr, "%s\n%s", world.problem, hk_buf_cstr(&report));
        FILE *file = getenv("WORLD_LOG") != NULL ? fopen(getenv("WORLD_LOG"), "w") : NULL;
        if (file != NULL) {
            (void)fprintf(file, "%s", hk_buf_cstr(&log)); /* to be read by a person */
            (void)fclose(file);
        }
        abort();
    }
    hk_buf_fini(&report);
    return 0;
}
