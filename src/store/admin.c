/* SPDX-License-Identifier: Apache-2.0 */
/* The names of places. */
#include "base/str.h"
#include "store/admin.h"

static const char *const names[HK_NPLACES] = {[HK_IN_RETRY] = "retry",
                                              [HK_IN_OUTBOX] = "outbox",
                                              [HK_IN_DEAD] = "dead",
                                              [HK_IN_CANCELLED] = "cancelled",
                                              [HK_IN_SENT] = "sent"};

const char *hk_place_name(enum hk_place place)
{
    return names[place];
}

bool hk_place_by_name(struct hk_str name, enum hk_place *out)
{
    for (int i = 0; i < HK_NPLACES; i++)
        if (hk_str_eq(name, hk_str_of(names[i]))) {
            *out = (enum hk_place)i;
            return true;
        }
    return false;
}
