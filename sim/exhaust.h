/* SPDX-License-Identifier: Apache-2.0 */
/* Every interleaving of a very small world. */
#ifndef HK_SIM_EXHAUST_H
#define HK_SIM_EXHAUST_H

#include <stdbool.h>

struct hk_exhaust_options {
    unsigned messages; /* 1 or 2, of one key */
    unsigned faults;
    /* Walk on where a state was seen before, all paths to their ends, and check that equal states have equal futures. */
    bool plain;
    const char *prefix; /* of what is printed */
};

/* Returns the exit code: 0, there is no counterexample. */
int hk_exhaust(const struct hk_exhaust_options *options);

#endif
