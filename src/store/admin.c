/* SPDX-License-Identifier: Apache-2.0 */
/* The names of places, and what all stores say. */
#include "base/show.h"
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

enum hk_code hk_force_refused(const struct hk_act *act, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_CONFLICT,
                      "message %s cannot be forced: a route leads it, or it has a key and messages of that key may "
                      "come before it; resume its destination instead",
                      hk_show(hk_str_of(act->message_id), shown));
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
