/* SPDX-License-Identifier: Apache-2.0 */
/* How the statements of the operators' side are planned. Their texts are in sql/admin.sql, letters.sql and alerts.sql. */
#include "store/pg/admin_stmt.h"

const char *hk_pa_sql(unsigned id)
{
    if (id < HK_PA_NSTMTS)
        return hk_pa_texts[id];
    return id < HK_PL_NSTMTS ? hk_pl_texts[id - HK_PA_NSTMTS] : hk_pn_texts[id - HK_PL_NSTMTS];
}

/* The tables may have grown since the statistics were taken: an index is never wrong here, and with few rows not slow. */
static const char *const settings[] = {
    "enable_seqscan",    "off", "enable_bitmapscan", "off", "jit", "off", "plan_cache_mode",
    "force_custom_plan", NULL};

const struct hk_pg_table hk_pg_admin_table = {hk_pa_sql, HK_PN_NSTMTS, settings, NULL};
