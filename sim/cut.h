/* SPDX-License-Identifier: Apache-2.0 */
/* The world of a seed with parts left out: what the shrinker looks for, and what replays its result. As text, the parts are
 * joined by semicolons:
 *
 *   without=crash,stop;faults=120,3400;messages=3,17;relays=2;dests=1;until=4000
 *
 * kinds of trouble that do not exist; the times (virtual ms) at which faults still strike; the messages that are still
 * written; at most so many relays and destinations; when the faults end at the latest. */
#ifndef HK_SIM_CUT_H
#define HK_SIM_CUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Numbers, sorted. */
struct hk_numbers {
    int64_t *items;
    size_t n, room;
};

struct hk_cut {
    uint64_t without;   /* bits: of the table in cut.c */
    bool some_faults;   /* only those at the times of `faults`; else all */
    bool some_messages; /* only those of `messages`; else all */
    struct hk_numbers faults, messages;
    size_t relays, dests; /* at most; 0 = as the seed says */
    int64_t until_ms;     /* 0 = as the seed says */
};

void hk_numbers_add(struct hk_numbers *numbers, int64_t value); /* once */
bool hk_numbers_have(const struct hk_numbers *numbers, int64_t value);
void hk_numbers_copy(struct hk_numbers *to, const struct hk_numbers *from);
void hk_numbers_fini(struct hk_numbers *numbers);

size_t hk_cut_kinds(void);
const char *hk_cut_kind(size_t kind);
bool hk_cut_parse(const char *text, struct hk_cut *out); /* false: not of this form */
void hk_cut_print(const struct hk_cut *cut, struct hk_buf *out);
void hk_cut_fini(struct hk_cut *cut);

#endif
