/* SPDX-License-Identifier: Apache-2.0 */
/* Exhaustive mode: one message, two relays, a few faults, every interleaving. */
#ifndef HK_SIM_EXHAUST_H
#define HK_SIM_EXHAUST_H

/* Runs every path with at most `faults` faults and prints, after `prefix`, how many there were. 0: no counterexample
 * exists. */
int hk_exhaust(unsigned faults, const char *prefix);

#endif
