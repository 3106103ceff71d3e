/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on SQLite from inside: alerts.c looks, alerts_act.c writes. Both sit on the operators' handle
 * (admin.h). */
#ifndef HK_STORE_SQLITE_ALERTS_H
#define HK_STORE_SQLITE_ALERTS_H

#include "store/alerts.h"
#include "store/sqlite/admin.h"
#include "store/sqlite/alerts_sql.h" /* made of sql/alerts.sql */

void hk_sn_alert(struct hk_store *store, sqlite3_stmt *q, struct hk_alert *out);

enum hk_code hk_sn_decide(struct hk_admin *admin, const struct hk_alerts_decided *decided,
                          struct hk_err *err);
enum hk_code hk_sn_claim(struct hk_admin *admin, const char *relay, const char *const *channels,
                         size_t n_channels, uint64_t lease_ms, const struct hk_alerts_claims **out,
                         struct hk_err *err);
enum hk_code hk_sn_settle(struct hk_admin *admin, const struct hk_alerts_settle *settle, struct hk_err *err);
enum hk_code hk_sn_list(struct hk_admin *admin, const struct hk_alerts_list **out, struct hk_err *err);
enum hk_code hk_sn_mute(struct hk_admin *admin, const char *rule, int64_t until_ms, uint64_t for_ms,
                        const char *actor, const char *reason, int64_t *out_until_ms, struct hk_err *err);
enum hk_code hk_sn_unmute(struct hk_admin *admin, const char *rule, const char *actor, const char *reason,
                          bool *out_changed, struct hk_err *err);

#endif
