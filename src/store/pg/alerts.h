/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on PostgreSQL from inside: alerts.c looks, alerts_act.c writes, sql/alerts.sql has every SQL statement. All
 * on the operators' handle (admin.h), and under its rule: a transaction goes out whole. */
#ifndef HK_STORE_PG_ALERTS_H
#define HK_STORE_PG_ALERTS_H

#include "store/alerts.h"
#include "store/pg/admin.h"
#include "store/pg/letters_stmt.h"

/* From the columns of HK_PN_ALERTS, behind the time. */
void hk_pn_alert(struct hk_pg *pg, const PGresult *res, int row, struct hk_alert *out);

enum hk_code hk_pn_decide(struct hk_admin *admin, const struct hk_alerts_decided *decided,
                          struct hk_err *err);
enum hk_code hk_pn_claim(struct hk_admin *admin, const char *relay, const char *const *channels,
                         size_t n_channels, uint64_t lease_ms, const struct hk_alerts_claims **out,
                         struct hk_err *err);
enum hk_code hk_pn_settle(struct hk_admin *admin, const struct hk_alerts_settle *settle, struct hk_err *err);
enum hk_code hk_pn_list(struct hk_admin *admin, const struct hk_alerts_list **out, struct hk_err *err);
enum hk_code hk_pn_mute(struct hk_admin *admin, const char *rule, int64_t until_ms, uint64_t for_ms,
                        const char *actor, const char *reason, int64_t *out_until_ms, struct hk_err *err);
enum hk_code hk_pn_unmute(struct hk_admin *admin, const char *rule, const char *actor, const char *reason,
                          bool *out_changed, struct hk_err *err);

#endif
