/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on SQLite: what was decided, notices, mutes. Each call is one transaction. */
#include <stdio.h>

#include "base/json.h"
#include "base/str.h"
#include "observe/crash.h"
#include "store/letters.h"
#include "store/sqlite/alerts.h"

static int64_t begin_act(struct hk_store *store)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    return hk_sq_now(store);
}

static void bind_double(struct hk_store *store, sqlite3_stmt *q, int i, double value)
{
    if (q && sqlite3_bind_double(q, i, value) != SQLITE_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
}

static void run(struct hk_store *store, sqlite3_stmt *q)
{
    hk_sq_run(store, q);
    sqlite3_finalize(q);
}

/* ---- decide ---- */

/* False: somebody else has. */
static bool write_look(struct hk_store *store, const struct hk_alerts_decided *d, int64_t now_ms)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_DECIDE]);
    hk_sq_bind_i64(store, q, 1, now_ms);
    hk_sq_bind_cstr(store, q, 2, d->relay);
    hk_sq_bind_i64(store, q, 3, d->looked->letter_id);
    hk_sq_bind_i64(store, q, 4, d->looked->again_ms);
    hk_sq_bind_i64(store, q, 5, d->looked->version);
    int n = hk_sq_run(store, q);
    sqlite3_finalize(q);
    return n == 1;
}

static void delete_alert(struct hk_store *store, const struct hk_alert *a)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_DROP_ALERT]);
    hk_sq_bind_cstr(store, q, 1, a->fingerprint);
    run(store, q);
}

static void write_alert(struct hk_store *store, const struct hk_alert *a)
{
    char series[HK_ALERTS_SERIES_MAX];
    struct hk_str texts[HK_ALERTS_TEXTS];
    const int64_t numbers[] = {a->episode, (int64_t)a->count, a->since_ms, a->fired_ms, a->resolved_ms,
                               a->gone_ms, a->told_ms,        a->told,     a->owed};
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_PUT_ALERT]);
    int i = 1;
    hk_alerts_texts(a, texts);
    for (size_t t = 0; t < HK_ALERTS_TEXTS; t++)
        hk_sq_bind_text(store, q, i++, texts[t]);
    for (size_t n = 0; n < sizeof numbers / sizeof numbers[0]; n++)
        hk_sq_bind_i64(store, q, i++, numbers[n]);
    bind_double(store, q, i++, a->value);
    bind_double(store, q, i++, a->threshold);
    hk_sq_bind_i64(store, q, i++, a->letter_id);
    hk_sq_bind_i64(store, q, i++, a->series_ms);
    hk_alerts_series_text(a, series);
    hk_sq_bind_cstr(store, q, i, series);
    run(store, q);
}

/* An update that nobody has been told of yet is replaced by the newer one. */
static void write_notice(struct hk_store *store, const struct hk_alerts_notice *n, int64_t now_ms)
{
    if (n->kind == HK_NOTICE_UPDATE) {
        sqlite3_stmt *old = hk_sa_prepare(store, hk_sn_texts[HK_SN_DROP_UPDATE]);
        hk_sq_bind_cstr(store, old, 1, n->fingerprint);
        hk_sq_bind_cstr(store, old, 2, n->channel);
        hk_sq_bind_i64(store, old, 3, now_ms);
        run(store, old);
    }
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_ADD_NOTICE]);
    hk_sq_bind_cstr(store, q, 1, n->fingerprint);
    hk_sq_bind_cstr(store, q, 2, n->rule);
    hk_sq_bind_cstr(store, q, 3, hk_notice_word(n->kind));
    hk_sq_bind_cstr(store, q, 4, n->channel);
    hk_sq_bind_text(store, q, 5, n->facts);
    hk_sq_bind_i64(store, q, 6, now_ms);
    run(store, q);
}

static void purge(struct hk_store *store, uint64_t keep_ms, int64_t now_ms)
{
    const char *const texts[] = {
        hk_sn_texts[HK_SN_PURGE_NOTICES],
        hk_sn_texts[HK_SN_PURGE_ALERTS],
        hk_sn_texts[HK_SN_PURGE_MUTES],
    };
    if (keep_ms > (uint64_t)now_ms)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        sqlite3_stmt *q = hk_sa_prepare(store, texts[i]);
        hk_sq_bind_i64(store, q, 1, now_ms - (int64_t)keep_ms);
        run(store, q);
    }
}

enum hk_code hk_sn_decide(struct hk_admin *admin, const struct hk_alerts_decided *d, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    hk_crash_point("alert-begun");
    if (!write_look(store, d, now_ms) && hk_sq_ok(store)) {
        hk_sq_rollback(store);
        return hk_err_set(err, HK_BUSY, "another relay has evaluated the alerts");
    }
    for (size_t i = 0; i < d->n_alerts && hk_sq_ok(store); i++) {
        if (d->alerts[i].gone)
            delete_alert(store, &d->alerts[i]);
        else if (d->alerts[i].changed)
            write_alert(store, &d->alerts[i]);
    }
    for (size_t i = 0; i < d->n_notices && hk_sq_ok(store); i++)
        write_notice(store, &d->notices[i], now_ms);
    if (d->n_notices)
        hk_crash_point("alert-inside");
    purge(store, d->keep_ms, now_ms);
    enum hk_code rc = hk_sq_end(store, "write what was decided about alerts", err);
    if (d->n_notices)
        hk_crash_point("alert-decided");
    return rc;
}

/* ---- notices ---- */

static bool claim_one(struct hk_store *store, const char *relay, const char *channel, uint64_t lease_ms,
                      int64_t now_ms, struct hk_alerts_claimed *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_CLAIM]);
    hk_sq_bind_cstr(store, q, 1, relay);
    hk_sq_bind_i64(store, q, 2, now_ms + (int64_t)lease_ms);
    hk_sq_bind_cstr(store, q, 3, channel);
    hk_sq_bind_i64(store, q, 4, now_ms);
    bool found = hk_sq_row(store, q);
    if (found) {
        *out = (struct hk_alerts_claimed){.id = sqlite3_column_int64(q, 0),
                                          .fingerprint = hk_sa_text(store, q, 1, 64),
                                          .rule = hk_sa_text(store, q, 2, HK_ALERT_TEXT_MAX),
                                          .channel = hk_sa_text(store, q, 4, HK_ALERT_TEXT_MAX),
                                          .facts = hk_sa_text(store, q, 5, HK_SA_TEXT_MAX),
                                          .attempts = hk_sa_u32(q, 6),
                                          .created_ms = sqlite3_column_int64(q, 7)};
        (void)hk_notice_of(hk_sa_text(store, q, 3, 64), &out->kind);
    }
    while (found && hk_sq_row(store, q))
        continue;
    sqlite3_finalize(q);
    return found;
}

/* A write lock only where there is something: relays ask often. */
static bool has_open(struct hk_store *store)
{
    hk_sq_begin_read(store);
    int64_t now_ms = hk_sq_now(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_HAS_OPEN_NOTICE]);
    hk_sq_bind_i64(store, q, 1, now_ms);
    bool some = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return some;
}

enum hk_code hk_sn_claim(struct hk_admin *admin, const char *relay, const char *const *channels,
                         size_t n_channels, uint64_t lease_ms, const struct hk_alerts_claims **out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_alerts_claims *claims = hk_sq_alloc(store, 1, sizeof *claims);
    struct hk_alerts_claimed *items = hk_sq_alloc(store, n_channels ? n_channels : 1, sizeof *items);
    bool some = has_open(store);
    enum hk_code rc = hk_sq_end(store, "look for notices", err);
    if (rc != HK_OK)
        return rc;
    if (some) {
        hk_sq_begin_write(store);
        hk_sq_clock_lift(store);
    }
    claims->now_ms = hk_sq_now(store);
    claims->items = items;
    for (size_t i = 0; some && i < n_channels && hk_sq_ok(store); i++)
        claims->n += claim_one(store, relay, channels[i], lease_ms, claims->now_ms, &items[claims->n]);
    if (some)
        rc = hk_sq_end(store, "claim notices", err);
    if (rc == HK_OK)
        *out = claims;
    return rc;
}

enum hk_code hk_sn_settle(struct hk_admin *admin, const struct hk_alerts_settle *s, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_SETTLE]);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_i64(store, q, 2, s->attempts);
    hk_sq_bind_i64(store, q, 3, s->outcome == HK_NOTICE_SENT ? now_ms : 0);
    hk_sq_bind_i64(store, q, 4, s->outcome == HK_NOTICE_GIVEN_UP ? now_ms : 0);
    if (s->outcome == HK_NOTICE_AGAIN)
        hk_sq_bind_i64(store, q, 5, now_ms + (int64_t)s->wait_ms);
    hk_sq_bind_text_or_null(store, q, 6, hk_alerts_cut(s->error));
    run(store, q);
    return hk_sq_end(store, "write what became of a notice", err);
}

/* ---- for people ---- */

static void list_alerts(struct hk_store *store, struct hk_alerts_list *out)
{
    struct hk_alert *items = NULL;
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_LIST_ALERTS]);
    hk_sq_bind_i64(store, q, 1, HK_ALERTS_LIST_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_alert *more = hk_sa_grow(store, items, out->n_alerts, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        hk_sn_alert(store, q, &items[out->n_alerts]);
        out->n_alerts += items[out->n_alerts].kind != HK_NALERT_KINDS;
    }
    sqlite3_finalize(q);
    out->alerts = items;
}

static void list_notices(struct hk_store *store, struct hk_alerts_list *out)
{
    struct hk_alerts_notice_row *items = NULL;
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_LIST_NOTICES]);
    hk_sq_bind_i64(store, q, 1, HK_ALERTS_LIST_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_alerts_notice_row *more = hk_sa_grow(store, items, out->n_notices, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        struct hk_alerts_notice_row *n = &items[out->n_notices++];
        *n = (struct hk_alerts_notice_row){.id = sqlite3_column_int64(q, 0),
                                           .fingerprint = hk_sa_text(store, q, 1, 64),
                                           .rule = hk_sa_text(store, q, 2, HK_ALERT_TEXT_MAX),
                                           .channel = hk_sa_text(store, q, 4, HK_ALERT_TEXT_MAX),
                                           .last_error = hk_sa_text(store, q, 5, HK_ALERT_TEXT_MAX),
                                           .attempts = hk_sa_u32(q, 6),
                                           .created_ms = sqlite3_column_int64(q, 7),
                                           .due_ms = sqlite3_column_int64(q, 8),
                                           .given_up_ms = sqlite3_column_int64(q, 9)};
        (void)hk_notice_of(hk_sa_text(store, q, 3, 64), &n->kind);
    }
    sqlite3_finalize(q);
    out->notices = items;
}

static void list_mutes(struct hk_store *store, struct hk_alerts_list *out)
{
    struct hk_alerts_mute_row *items = NULL;
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_LIST_MUTES]);
    hk_sq_bind_i64(store, q, 1, out->now_ms);
    hk_sq_bind_i64(store, q, 2, HK_ALERTS_LIST_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_alerts_mute_row *more = hk_sa_grow(store, items, out->n_mutes, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        items[out->n_mutes++] =
            (struct hk_alerts_mute_row){.rule = hk_sa_text(store, q, 0, HK_ALERT_TEXT_MAX),
                                        .actor = hk_sa_text(store, q, 1, HK_ALERT_TEXT_MAX),
                                        .reason = hk_sa_text(store, q, 2, HK_ALERT_TEXT_MAX),
                                        .until_ms = sqlite3_column_int64(q, 3),
                                        .since_ms = sqlite3_column_int64(q, 4)};
    }
    sqlite3_finalize(q);
    out->mutes = items;
}

static void list_look(struct hk_store *store, struct hk_alerts_list *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_LIST_LOOK]);
    if (hk_sq_row(store, q)) {
        out->evaluated_ms = sqlite3_column_int64(q, 0);
        out->relay = hk_sa_text(store, q, 1, HK_ALERT_TEXT_MAX);
    }
    sqlite3_finalize(q);
}

enum hk_code hk_sn_list(struct hk_admin *admin, const struct hk_alerts_list **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_alerts_list *list = hk_sq_alloc(store, 1, sizeof *list);
    hk_sq_begin_read(store);
    if (list) {
        list->now_ms = hk_sq_now(store);
        list_look(store, list);
        list_alerts(store, list);
        list_notices(store, list);
        list_mutes(store, list);
    }
    enum hk_code rc = hk_sq_end(store, "list alerts", err);
    if (rc == HK_OK)
        *out = list;
    return rc;
}

/* The trail's detail: {"rule":"…","until_ms":…}. */
static void audit(struct hk_store *store, const char *act, const char *rule, int64_t until_ms,
                  const char *actor, const char *reason, int64_t now_ms)
{
    struct hk_buf detail;
    struct hk_json json;
    hk_buf_init(&detail, HK_SA_TEXT_MAX);
    hk_json_init(&json, &detail, false);
    hk_json_object(&json);
    hk_json_key(&json, "rule");
    hk_json_cstr(&json, rule);
    if (until_ms) {
        hk_json_key(&json, "until_ms");
        hk_json_i64(&json, until_ms);
    }
    hk_json_end(&json);
    if (hk_buf_status(&detail) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of(actor),
                                              .act = hk_str_of(act),
                                              .reason = hk_str_of(reason),
                                              .detail = hk_buf_str(&detail)});
    hk_buf_fini(&detail);
}

enum hk_code hk_sn_mute(struct hk_admin *admin, const char *rule, int64_t until_ms, uint64_t for_ms,
                        const char *actor, const char *reason, int64_t *out_until_ms, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    if (!until_ms)
        until_ms = now_ms + (int64_t)for_ms;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_MUTE]);
    hk_sq_bind_cstr(store, q, 1, rule);
    hk_sq_bind_i64(store, q, 2, until_ms);
    hk_sq_bind_i64(store, q, 3, now_ms);
    hk_sq_bind_cstr(store, q, 4, actor);
    hk_sq_bind_cstr(store, q, 5, reason);
    run(store, q);
    audit(store, "mute", rule, until_ms, actor, reason, now_ms);
    enum hk_code rc = hk_sq_end(store, "mute a rule", err);
    if (rc == HK_OK)
        *out_until_ms = until_ms;
    return rc;
}

enum hk_code hk_sn_unmute(struct hk_admin *admin, const char *rule, const char *actor, const char *reason,
                          bool *out_changed, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_UNMUTE]);
    hk_sq_bind_cstr(store, q, 1, rule);
    hk_sq_bind_i64(store, q, 2, now_ms);
    bool changed = hk_sq_run(store, q) > 0;
    sqlite3_finalize(q);
    if (changed)
        audit(store, "unmute", rule, 0, actor, reason, now_ms);
    enum hk_code rc = hk_sq_end(store, "unmute a rule", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}
