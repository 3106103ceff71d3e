/* SPDX-License-Identifier: Apache-2.0 */
/* Which operators' side a URL has, and the names of places. */
#include "base/str.h"
#include "store/admin.h"

const struct hk_store_admin_ops *hk_store_admin_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_ops *ops = hk_store_by_url(url, err);
#if HK_POSTGRES
    if (ops == &hk_store_postgres)
        return &hk_store_admin_postgres;
#endif
    return ops == &hk_store_sqlite ? &hk_store_admin_sqlite : NULL;
}

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
