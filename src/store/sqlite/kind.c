/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite as a kind of store. */
#include <stdio.h>

#include "store/kinds.h"

static const char *const schemes[] = {"sqlite", NULL};

/* A path holds no secret. */
static bool show_place(const char *url, char out[HK_STORE_PLACE_MAX])
{
    snprintf(out, HK_STORE_PLACE_MAX, "%s", url);
    return true;
}

const struct hk_store_kind hk_store_kind_sqlite = {
    .schemes = schemes,
    .form = "sqlite:PATH",
    .ops = &hk_store_sqlite,
    .admin = &hk_store_admin_sqlite,
    .letters = &hk_store_letters_sqlite,
    .alerts = &hk_store_alerts_sqlite,
    .api = &hk_store_api_sqlite,
    .jobs = &hk_store_jobs_sqlite,
    .place = show_place,
};
