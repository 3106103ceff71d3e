/* SPDX-License-Identifier: Apache-2.0 */
/* Code that every store shares. */
#include "store/store.h"

void hk_takings_add(struct hk_takings *takings, const struct hk_taken_over *one)
{
    if (takings->n < HK_TAKEN_MAX) {
        takings->items[takings->n++] = *one;
        return;
    }
    struct hk_taken_over *last = &takings->items[HK_TAKEN_MAX - 1];
    last->messages += one->messages;
    last->destination[0] = '\0';
}
