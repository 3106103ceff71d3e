/* SPDX-License-Identifier: Apache-2.0 */
/* RateLimit and RateLimit-Policy: the first line of the input is the one, the second the other. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <hikyaku/policy.h>

#include "base/parse.h"
#include "base/str.h"
#include "fuzz.h"

/* 0: no wait. */
static uint64_t hint(const struct hk_header *headers, size_t n)
{
    uint64_t ms = 4711;
    bool found = hk_hint_ms(headers, n, 0, &ms);
    MUST(found ? ms > 0 && ms <= HK_DURATION_MAX_MS && ms % 1000 == 0 : ms == 4711);
    return found ? ms : 0;
}

static struct hk_header limit(struct hk_str value)
{
    return (struct hk_header){hk_str_of("RateLimit"), value};
}

static struct hk_header policy(struct hk_str value)
{
    return (struct hk_header){hk_str_of("ratelimit-policy"), value};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str rest = {(const char *)data, size};
    struct hk_str first = hk_str_cut(&rest, '\n');
    struct hk_header headers[3] = {limit(first), policy(rest)};
    uint64_t alone = hint(headers, 1), both = hint(headers, 2);
    /* a policy can only add waits, never shorten what RateLimit itself says */
    MUST(both >= alone);

    /* one more line with its own quota: a well-formed field gives the larger, a malformed or full one nothing */
    struct hk_header two[3] = {limit(first), limit(hk_str_of("\"probe\";r=0;t=7")), policy(rest)};
    uint64_t more = hint(two, 2);
    MUST(more == 0 || more == (alone > 7000 ? alone : 7000));
    MUST(alone == 0 || more >= alone || more == 0);

    /* an empty line changes nothing, an ill-formed one ruins the field */
    struct hk_header empty[2] = {limit(first), limit(hk_str_of(" \t"))};
    MUST(hint(empty, 2) == alone);
    struct hk_header ruined[3] = {limit(first), policy(rest), limit(hk_str_of("\"open"))};
    MUST(hint(ruined, 3) == 0);

    /* Retry-After comes first, whatever else is there */
    struct hk_header overruled[3] = {limit(first), policy(rest), {hk_str_of("retry-after"), hk_str_of("3")}};
    MUST(hint(overruled, 3) == 3000);
    return 0;
}
