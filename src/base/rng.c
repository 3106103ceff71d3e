/* SPDX-License-Identifier: Apache-2.0 */
/* xoshiro256** 1.0 (Blackman and Vigna), seeded by splitmix64 as its authors advise. */
#include <hikyaku/rng.h>

static uint64_t rotl(uint64_t x, unsigned k)
{
    return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void hk_rng_seed(struct hk_rng *rng, uint64_t seed, uint64_t stream)
{
    /* the stream goes through the mixer first, so that neighbouring streams share nothing */
    uint64_t state = stream;
    state = seed ^ splitmix(&state);
    for (unsigned i = 0; i < 4; i++)
        rng->s[i] = splitmix(&state);
}

uint64_t hk_rng_next(struct hk_rng *rng)
{
    uint64_t *s = rng->s;
    uint64_t result = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

uint64_t hk_rng_upto(struct hk_rng *rng, uint64_t max)
{
    if (max == UINT64_MAX)
        return hk_rng_next(rng);
    uint64_t n = max + 1;
    uint64_t reject_below = (0 - n) % n; /* 2^64 mod n: what is left over of whole multiples of n */
    uint64_t x;
    do
        x = hk_rng_next(rng);
    while (x < reject_below);
    return x % n;
}

uint64_t hk_rng_between(struct hk_rng *rng, uint64_t lo, uint64_t hi)
{
    return hi <= lo ? lo : lo + hk_rng_upto(rng, hi - lo);
}

double hk_rng_unit(struct hk_rng *rng)
{
    return (double)(hk_rng_next(rng) >> 11) * 0x1.0p-53;
}
