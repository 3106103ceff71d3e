/* SPDX-License-Identifier: Apache-2.0 */
/* Which store's dead letters a URL means. */
#include "store/letters.h"

const struct hk_store_letters_ops *hk_store_letters_by_url(const char *url, struct hk_err *err)
{
    const struct hk_store_ops *ops = hk_store_by_url(url, err);
#if HK_POSTGRES
    if (ops == &hk_store_postgres)
        return &hk_store_letters_postgres;
#endif
    return ops == &hk_store_sqlite ? &hk_store_letters_sqlite : NULL;
}
