/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts in the store: changes since the last look, decisions, and notices that wait to be sent. This is a fourth small vtable, on the
 * same handle as admin.h and under the same rules. tests/contract/alerts_suite.c tests this contract.
 *
 *   look -> (core/alert.h decides) -> decide        by whichever relay comes first in an interval
 *   claim -> (a channel sends) -> settle            by any relay
 *
 * - A look changes nothing. It gives each death once: `decide` remembers where it ended, together with what was decided, and
 *   only if nobody else has decided since (HK_BUSY). So N relays evaluate once, and a relay that dies in between loses nothing.
 * - A letter is news when it died and is not settled yet, once for each life; core/alert.c counts it once.
 * - A notice is written with its decision, claimed for a time, and settled. If a relay dies with a notice in hand, another one claims
 *   it again: every notice is sent at least once. A channel gets the notices of one alert in order.
 * - Texts are cut to HK_ALERT_TEXT_MAX bytes. */
#ifndef HK_STORE_ALERTS_H
#define HK_STORE_ALERTS_H

#include "core/alert.h"
#include "store/admin.h"

#define HK_ALERT_TEXT_MAX        1000
#define HK_ALERT_FIELDS_TEXT_MAX (12 * 1024) /* of hk_alert.fields: more than HK_ALERT_FIELDS of them take */

struct hk_alerts_looked {
    int64_t now_ms;
    bool due;  /* false: another relay evaluated within the interval; nothing below is filled */
    bool more; /* deaths that were not read this time: decide, and look again at once */
    struct hk_alert_deaths *deaths;
    size_t n_deaths;
    const struct hk_alert *alerts; /* `open` is set where it applies */
    size_t n_alerts;
    const struct hk_alert_mute *mutes; /* those that have not ended */
    size_t n_mutes;
    const struct hk_alert_dest *dests; /* paused or broken; without figures */
    size_t n_dests;
    int64_t progress;
    /* the store's own: where it is to go on */
    int64_t version, letter_id, again_ms;
    struct hk_str gaps;
};

struct hk_alerts_notice {
    const char *fingerprint, *rule, *channel;
    enum hk_notice_kind kind;
    struct hk_str facts; /* JSON */
};

struct hk_alerts_decided {
    const struct hk_alerts_looked *looked;
    const char *relay;
    const struct hk_alert *alerts; /* only what `changed` or is `gone` is written */
    size_t n_alerts;
    const struct hk_alerts_notice *notices;
    size_t n_notices;
    uint64_t keep_ms; /* notices that are done with and alerts that are over are deleted after this */
};

/* One that was claimed. */
struct hk_alerts_claimed {
    int64_t id;
    struct hk_str fingerprint, rule, channel, facts;
    enum hk_notice_kind kind;
    uint32_t attempts; /* this one included */
    int64_t created_ms;
};

struct hk_alerts_claims {
    const struct hk_alerts_claimed *items; /* one for each channel at the most */
    size_t n;
    int64_t now_ms;
};

enum hk_notice_outcome {
    HK_NOTICE_SENT = 0,
    HK_NOTICE_AGAIN,
    HK_NOTICE_GIVEN_UP
};

struct hk_alerts_settle {
    int64_t id;
    uint32_t attempts; /* as claimed: one that was claimed again since is not ours any more */
    enum hk_notice_outcome outcome;
    uint64_t wait_ms;    /* HK_NOTICE_AGAIN */
    struct hk_str error; /* says no secret */
};

/* ---- for people ---- */

struct hk_alerts_notice_row {
    int64_t id;
    struct hk_str fingerprint, rule, channel, last_error;
    enum hk_notice_kind kind;
    uint32_t attempts;
    int64_t created_ms, due_ms, given_up_ms; /* given_up_ms 0: it will be tried again */
};

struct hk_alerts_mute_row {
    struct hk_str rule, actor, reason;
    int64_t until_ms, since_ms;
};

#define HK_ALERTS_LIST_MAX 1000

struct hk_alerts_list {
    int64_t now_ms, evaluated_ms;  /* 0 = never */
    struct hk_str relay;           /* that evaluated last */
    const struct hk_alert *alerts; /* firing, pending, then resolved, the newest first */
    size_t n_alerts;
    const struct hk_alerts_notice_row *notices; /* that failed or wait, the newest first */
    size_t n_notices;
    const struct hk_alerts_mute_row *mutes;
    size_t n_mutes;
    size_t channels; /* that are configured: the desk says so. 0 = nobody is told */
};

struct hk_store_alerts_ops {
    enum hk_code (*look)(struct hk_admin *admin, uint64_t interval_ms, const struct hk_alerts_looked **out,
                         struct hk_err *err);
    /* HK_BUSY: another relay has decided since `looked`. `looked` must be the handle's newest or newest but one. */
    enum hk_code (*decide)(struct hk_admin *admin, const struct hk_alerts_decided *decided,
                           struct hk_err *err);
    /* The oldest that is due of each channel. */
    enum hk_code (*claim)(struct hk_admin *admin, const char *relay, const char *const *channels,
                          size_t n_channels, uint64_t lease_ms, const struct hk_alerts_claims **out,
                          struct hk_err *err);
    /* One that is not ours any more stays as it is, without a word. */
    enum hk_code (*settle)(struct hk_admin *admin, const struct hk_alerts_settle *settle, struct hk_err *err);

    enum hk_code (*list)(struct hk_admin *admin, const struct hk_alerts_list **out, struct hk_err *err);
    /* Until `until_ms`, or for `for_ms` from now when that is 0; an earlier mute of the rule is replaced. Audited. */
    enum hk_code (*mute)(struct hk_admin *admin, const char *rule, int64_t until_ms, uint64_t for_ms,
                         const char *actor, const char *reason, int64_t *out_until_ms, struct hk_err *err);
    /* Audited. `*out_changed` false: it was not muted, and nothing is written. */
    enum hk_code (*unmute)(struct hk_admin *admin, const char *rule, const char *actor, const char *reason,
                           bool *out_changed, struct hk_err *err);
};

extern const struct hk_store_alerts_ops hk_store_alerts_sqlite;
extern const struct hk_store_alerts_ops hk_store_alerts_postgres; /* where it was built in */

/* As hk_store_by_url. */
const struct hk_store_alerts_ops *hk_store_alerts_by_url(const char *url, struct hk_err *err);

/* ---- what implementations share (alerts.c) ---- */

/* An alert's series, and behind it what was told and what its notice named of a payload: a relay of a version before reads what it knows
 * and drops the rest. */
#define HK_ALERTS_SERIES_MAX ((HK_ALERT_SERIES + 1) * 22 + HK_ALERT_FIELDS_TEXT_MAX)
void hk_alerts_series_text(const struct hk_alert *alert, char out[HK_ALERTS_SERIES_MAX]);
/* 0 for what cannot be read; `fields` becomes a part of `text`. */
void hk_alerts_series_of(struct hk_str text, struct hk_alert *alert);
/* Fields of a payload as a text, and back: a JSON array. Errors are the buffer's. */
void hk_alerts_fields_text(const struct hk_alert_field *fields, size_t n, struct hk_buf *out);
/* Up to HK_ALERT_FIELDS of them; texts lie in `mem`. What is not ours is passed over. */
enum hk_code hk_alerts_fields_of(struct hk_str text, struct hk_pool *mem, struct hk_alert_field *out,
                                 size_t *out_n) HK_MUSTCHECK;
/* The longest beginning that is whole UTF-8 and fits. */
struct hk_str hk_alerts_cut(struct hk_str s);
/* Of an alert, cut, in the order of their columns: fingerprint, rule … detail. */
#define HK_ALERTS_TEXTS 10
void hk_alerts_texts(const struct hk_alert *alert, struct hk_str out[HK_ALERTS_TEXTS]);

#endif
