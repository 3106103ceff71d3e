/* SPDX-License-Identifier: Apache-2.0 */
/* Which store a URL means. */
#include "base/show.h"
#include "base/str.h"
#include "store/store.h"

const struct hk_store_ops *hk_store_by_url(const char *url, struct hk_err *err)
{
    struct hk_str rest = hk_str_of(url);
    struct hk_str scheme = hk_str_cut(&rest, ':');
    if (rest.ptr && hk_str_eq(scheme, hk_str_of("sqlite")))
        return &hk_store_sqlite;
    char shown[HK_SHOW_MAX];
    if (!rest.ptr)
        hk_err_set(err, HK_UNSUPPORTED, "%s is no database URL: write sqlite:PATH", hk_show(scheme, shown));
    else
        hk_err_set(err, HK_UNSUPPORTED, "this build has no store for %s: it knows sqlite:PATH",
                   hk_show(scheme, shown));
    return NULL;
}
