/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on SQLite from inside: alerts.c looks, alerts_act.c writes. Both sit on the operators' handle
 * (admin.h). */
#ifndef HK_STORE_SQLITE_ALERTS_H
#define HK_STORE_SQLITE_ALERTS_H

#include "store/alerts.h"
#include "store/sqlite/admin.h"

/* The columns of an alert, in the order of hk_sn_alert and of the UPSERT. */
#define HK_SN_COLUMNS                                                                                        \
    "fingerprint, rule, kind, severity, status, destination, reason, event_type, example_id, detail, "       \
    "episode, count, since_ms, fired_ms, resolved_ms, gone_ms, told_ms, told, owed, value, threshold, "      \
    "letter_id, series_ms, series"
#define HK_SN_ALERT "SELECT " HK_SN_COLUMNS " FROM outbox_alert "

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
