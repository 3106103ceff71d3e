/* SPDX-License-Identifier: Apache-2.0 */
/* How the statements of the operators' side are planned. Their texts are in sql/admin.sql, letters.sql, alerts.sql,
 * api.sql and jobs.sql. */
#include "store/pg/admin_stmt.h"

const char *hk_pa_sql(unsigned id)
{
    if (id < HK_PA_NSTMTS)
        return hk_pa_texts[id];
    if (id < HK_PL_NSTMTS)
        return hk_pl_texts[id - HK_PA_NSTMTS];
    if (id < HK_PN_NSTMTS)
        return hk_pn_texts[id - HK_PL_NSTMTS];
    return id < HK_PP_NSTMTS ? hk_pp_texts[id - HK_PN_NSTMTS] : hk_pj_texts[id - HK_PP_NSTMTS];
}

/* The tables may have grown since the statistics were taken: an index is never wrong here, and with few rows not slow. */
static const char *const settings[] = {
    "enable_seqscan",    "off", "enable_bitmapscan", "off", "jit", "off", "plan_cache_mode",
    "force_custom_plan", NULL};

const struct hk_pg_table hk_pg_admin_table = {hk_pa_sql, HK_PJ_NSTMTS, settings, NULL};
