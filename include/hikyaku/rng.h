/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded random numbers (xoshiro256**): the same seed and stream give the same numbers on every machine. Not for secrets.
 * Each consumer has its own stream, so that one never shifts the numbers of another. */
#ifndef HIKYAKU_RNG_H
#define HIKYAKU_RNG_H

#include <stdint.h>

#include <hikyaku/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hk_rng {
    uint64_t s[4];
};

/* Streams that the project itself draws from. */
enum hk_rng_stream {
    HK_RNG_BACKOFF = 1, /* waits between attempts */
    HK_RNG_BREAKER = 2  /* how long a breaker stays open */
};

HK_API void hk_rng_seed(struct hk_rng *rng, uint64_t seed, uint64_t stream);
HK_API uint64_t hk_rng_next(struct hk_rng *rng);
/* Uniform in [0, max], both ends included, without modulo bias. */
HK_API uint64_t hk_rng_upto(struct hk_rng *rng, uint64_t max);
/* Uniform in [lo, hi]; `lo` when hi < lo. */
HK_API uint64_t hk_rng_between(struct hk_rng *rng, uint64_t lo, uint64_t hi);
/* Uniform in [0, 1). */
HK_API double hk_rng_unit(struct hk_rng *rng);

#ifdef __cplusplus
}
#endif
#endif
