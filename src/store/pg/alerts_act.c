/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on PostgreSQL: what was decided, notices, mutes. Each call is one transaction that goes out whole. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "observe/crash.h"
#include "store/pg/alerts.h"

#define OVERTAKEN "22P02" /* what HK_PN_DECIDE fails with */

/* ---- decide ---- */

static void arg_f64(struct hk_pg *pg, struct hk_pg_args *a, double value)
{
    char text[40];
    (void)snprintf(text, sizeof text, "%.3f", value >= 0 && value < 1e15 ? value : 0);
    hk_pg_arg_text(pg, a, hk_str_of(text));
}

static void add_alert(struct hk_pg *pg, const struct hk_alert *a)
{
    char series[HK_ALERTS_SERIES_MAX];
    struct hk_pg_args args = {.n = 0};
    struct hk_str texts[HK_ALERTS_TEXTS];
    const int64_t numbers[] = {a->episode,     (int64_t)a->count, a->since_ms, a->fired_ms,
                               a->resolved_ms, a->gone_ms,        a->told_ms};
    hk_alerts_texts(a, texts);
    for (size_t i = 0; i < HK_ALERTS_TEXTS; i++)
        hk_pg_arg_text(pg, &args, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        hk_pg_arg_i64(pg, &args, numbers[i]);
    hk_pg_arg_bool(pg, &args, a->told);
    hk_pg_arg_bool(pg, &args, a->owed);
    arg_f64(pg, &args, a->value);
    arg_f64(pg, &args, a->threshold);
    hk_pg_arg_i64(pg, &args, a->letter_id);
    hk_pg_arg_i64(pg, &args, a->series_ms);
    hk_alerts_series_text(a, series);
    hk_pg_arg_text(pg, &args, hk_str_of(series));
    hk_pg_add(pg, HK_PN_PUT_ALERT, &args);
}

static void add_look(struct hk_admin *admin, const struct hk_alerts_decided *d)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, d->looked->version);
    hk_pg_arg_text(pg, &a, hk_str_of(d->relay));
    hk_pg_arg_i64(pg, &a, d->looked->letter_id);
    hk_pg_arg_i64(pg, &a, d->looked->again_ms);
    hk_pg_arg_text(pg, &a, d->looked->gaps);
    hk_pg_add(pg, HK_PN_DECIDE, &a);
}

static void add_notice(struct hk_admin *admin, const struct hk_alerts_notice *n)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(n->fingerprint));
    hk_pg_arg_text(pg, &a, hk_str_of(n->rule));
    hk_pg_arg_text(pg, &a, hk_str_of(hk_notice_word(n->kind)));
    hk_pg_arg_text(pg, &a, hk_str_of(n->channel));
    hk_pg_arg_text(pg, &a, n->facts);
    hk_pg_add(pg, HK_PN_NOTICE, &a);
}

static void add_purge(struct hk_admin *admin, uint64_t keep_ms)
{
    static const unsigned ids[] = {HK_PN_PURGE_NOTICES, HK_PN_PURGE_ALERTS, HK_PN_PURGE_MUTES};
    if (keep_ms > INT64_MAX)
        return;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        struct hk_pg_args a = {.n = 0};
        hk_pa_arg_now(admin, &a);
        hk_pg_arg_u64(&admin->pg, &a, keep_ms);
        hk_pg_add(&admin->pg, ids[i], &a);
    }
}

enum hk_code hk_pn_decide(struct hk_admin *admin, const struct hk_alerts_decided *d, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    hk_pg_begin(pg, true);
    add_look(admin, d);
    for (size_t i = 0; i < d->n_alerts && hk_pg_ok(pg); i++) {
        struct hk_pg_args a = {.n = 0};
        hk_pg_arg_text(pg, &a, hk_str_of(d->alerts[i].fingerprint));
        if (d->alerts[i].gone)
            hk_pg_add(pg, HK_PN_DROP_ALERT, &a);
        else if (d->alerts[i].changed)
            add_alert(pg, &d->alerts[i]);
    }
    for (size_t i = 0; i < d->n_notices && hk_pg_ok(pg); i++)
        add_notice(admin, &d->notices[i]);
    add_purge(admin, d->keep_ms);
    hk_crash_point("alert-begun");
    hk_pg_send(pg);
    if (d->n_notices)
        hk_crash_point("alert-inside");
    PQclear(hk_pg_result(pg));
    bool overtaken = strcmp(pg->sqlstate, OVERTAKEN) == 0;
    enum hk_code rc = hk_pa_end(admin, "write what was decided about alerts", err);
    if (d->n_notices)
        hk_crash_point("alert-decided");
    return overtaken ? hk_err_set(err, HK_BUSY, "another relay has evaluated the alerts") : rc;
}

/* ---- notices ---- */

static void take_claim(struct hk_pg *pg, const PGresult *res, int i, struct hk_alerts_claimed *out)
{
    *out = (struct hk_alerts_claimed){.id = hk_pg_i64(res, i, 1),
                                      .fingerprint = hk_pg_text(pg, res, i, 2),
                                      .rule = hk_pg_text(pg, res, i, 3),
                                      .channel = hk_pg_text(pg, res, i, 5),
                                      .facts = hk_pg_text(pg, res, i, 6),
                                      .attempts = hk_pa_u32(res, i, 7),
                                      .created_ms = hk_pg_i64(res, i, 8)};
    (void)hk_notice_of(hk_str_of(PQgetvalue(res, i, 4)), &out->kind);
}

enum hk_code hk_pn_claim(struct hk_admin *admin, const char *relay, const char *const *channels,
                         size_t n_channels, uint64_t lease_ms, const struct hk_alerts_claims **out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_alerts_claims *claims = hk_pg_alloc(pg, 1, sizeof *claims);
    struct hk_alerts_claimed *items = hk_pg_alloc(pg, n_channels + 1, sizeof *items);
    struct hk_str *names = hk_pg_alloc(pg, n_channels + 1, sizeof *names);
    for (size_t i = 0; names && i < n_channels; i++)
        names[i] = hk_str_of(channels[i]);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(relay));
    hk_pg_arg_texts(pg, &a, names, n_channels);
    hk_pg_arg_u64(pg, &a, lease_ms);
    PGresult *res = hk_pg_ok(pg) ? hk_pg_query(pg, true, HK_PN_CLAIM, &a) : NULL;
    for (int i = 0; res && i < PQntuples(res); i++) {
        claims->now_ms = hk_pg_now(pg, hk_pg_i64(res, i, 0));
        if (!hk_pg_null(res, i, 1) && claims->n < n_channels)
            take_claim(pg, res, i, &items[claims->n++]);
    }
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "claim notices", err);
    if (rc != HK_OK)
        return rc;
    claims->items = items;
    *out = claims;
    return HK_OK;
}

enum hk_code hk_pn_settle(struct hk_admin *admin, const struct hk_alerts_settle *s, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_i64(pg, &a, s->id);
    hk_pg_arg_i64(pg, &a, s->attempts);
    hk_pg_arg_bool(pg, &a, s->outcome == HK_NOTICE_SENT);
    hk_pg_arg_bool(pg, &a, s->outcome == HK_NOTICE_GIVEN_UP);
    if (s->outcome == HK_NOTICE_AGAIN)
        hk_pg_arg_u64(pg, &a, s->wait_ms);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_arg_text_or_null(pg, &a, hk_alerts_cut(s->error));
    PQclear(hk_pg_query(pg, true, HK_PN_SETTLE, &a));
    return hk_pg_end(pg, "write what became of a notice", err);
}

/* ---- for people ---- */

static void take_alerts(struct hk_pg *pg, PGresult *res, struct hk_alerts_list *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alert *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        hk_pn_alert(pg, res, i, &items[out->n_alerts]);
        out->n_alerts += items[out->n_alerts].kind != HK_NALERT_KINDS;
    }
    out->alerts = items;
    PQclear(res);
}

static void take_notices(struct hk_pg *pg, PGresult *res, struct hk_alerts_list *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alerts_notice_row *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        struct hk_alerts_notice_row *row = &items[out->n_notices++];
        *row = (struct hk_alerts_notice_row){.id = hk_pg_i64(res, i, 0),
                                             .fingerprint = hk_pg_text(pg, res, i, 1),
                                             .rule = hk_pg_text(pg, res, i, 2),
                                             .channel = hk_pg_text(pg, res, i, 4),
                                             .last_error = hk_pg_text(pg, res, i, 5),
                                             .attempts = hk_pa_u32(res, i, 6),
                                             .created_ms = hk_pg_i64(res, i, 7),
                                             .due_ms = hk_pg_i64(res, i, 8),
                                             .given_up_ms = hk_pg_i64(res, i, 9)};
        (void)hk_notice_of(hk_str_of(PQgetvalue(res, i, 3)), &row->kind);
    }
    out->notices = items;
    PQclear(res);
}

static void take_mutes(struct hk_pg *pg, PGresult *res, struct hk_alerts_list *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alerts_mute_row *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++)
        items[out->n_mutes++] = (struct hk_alerts_mute_row){.rule = hk_pg_text(pg, res, i, 0),
                                                            .actor = hk_pg_text(pg, res, i, 1),
                                                            .reason = hk_pg_text(pg, res, i, 2),
                                                            .until_ms = hk_pg_i64(res, i, 3),
                                                            .since_ms = hk_pg_i64(res, i, 4)};
    out->mutes = items;
    PQclear(res);
}

static void read_list(struct hk_admin *admin, struct hk_alerts_list *out)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args now = {.n = 0}, most = {.n = 0}, mutes = {.n = 0};
    hk_pa_arg_now(admin, &now);
    hk_pg_arg_i64(pg, &most, HK_ALERTS_LIST_MAX);
    mutes = now;
    hk_pg_arg_i64(pg, &mutes, HK_ALERTS_LIST_MAX);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PN_STATE, &now);
    hk_pg_add(pg, HK_PN_LIST_ALERTS, &most);
    hk_pg_add(pg, HK_PN_LIST_NOTICES, &most);
    hk_pg_add(pg, HK_PN_LIST_MUTES, &mutes);
    hk_pg_send(pg);
    PGresult *res = hk_pg_result(pg);
    if (res && PQntuples(res) == 1) {
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        out->evaluated_ms = hk_pg_i64(res, 0, 2);
        out->relay = hk_pg_text(pg, res, 0, 6);
    }
    PQclear(res);
    take_alerts(pg, hk_pg_result(pg), out);
    take_notices(pg, hk_pg_result(pg), out);
    take_mutes(pg, hk_pg_result(pg), out);
}

enum hk_code hk_pn_list(struct hk_admin *admin, const struct hk_alerts_list **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_alerts_list *list = hk_pg_alloc(pg, 1, sizeof *list);
    if (list)
        read_list(admin, list);
    enum hk_code rc = hk_pg_end(pg, "list alerts", err);
    if (rc == HK_OK)
        *out = list;
    return rc;
}

enum hk_code hk_pn_mute(struct hk_admin *admin, const char *rule, int64_t until_ms, uint64_t for_ms,
                        const char *actor, const char *reason, int64_t *out_until_ms, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(rule));
    if (until_ms)
        hk_pg_arg_i64(pg, &a, until_ms);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_arg_u64(pg, &a, for_ms);
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_text(pg, &a, hk_str_of(reason));
    PGresult *res = hk_pg_query(pg, true, HK_PN_MUTE, &a);
    int64_t until = res && PQntuples(res) == 1 ? hk_pg_i64(res, 0, 0) : until_ms;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "mute a rule", err);
    if (rc == HK_OK)
        *out_until_ms = until;
    return rc;
}

enum hk_code hk_pn_unmute(struct hk_admin *admin, const char *rule, const char *actor, const char *reason,
                          bool *out_changed, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(rule));
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_text(pg, &a, hk_str_of(reason));
    PGresult *res = hk_pg_query(pg, true, HK_PN_UNMUTE, &a);
    bool changed = res && PQntuples(res) == 1 && hk_pg_i64(res, 0, 0) > 0;
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "unmute a rule", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}
