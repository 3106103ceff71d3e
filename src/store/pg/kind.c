/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL as a kind of store. */
#include <stdio.h>

#include "store/kinds.h"
#include "store/pg/pg.h"

static const char *const schemes[] = {"postgres", "postgresql", NULL};

static bool show_place(const char *url, char out[HK_STORE_PLACE_MAX])
{
    struct hk_pg_url parsed;
    if (hk_pg_url_parse(url, &parsed, NULL) != HK_OK)
        return false;
    snprintf(out, HK_STORE_PLACE_MAX, "%s", parsed.place);
    hk_pg_url_fini(&parsed);
    return true;
}

const struct hk_store_kind hk_store_kind_postgres = {
    .schemes = schemes,
    .form = "postgres://USER@HOST/DATABASE",
    .ops = &hk_store_postgres,
    .admin = &hk_store_admin_postgres,
    .letters = &hk_store_letters_postgres,
    .alerts = &hk_store_alerts_postgres,
    .api = &hk_store_api_postgres,
    .jobs = &hk_store_jobs_postgres,
    .place = show_place,
};
