/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on PostgreSQL: the look. One short question tells whether it is due; the rest sees one snapshot. */
#include "base/parse.h"
#include "base/str.h"
#include "store/pg/alerts.h"

#define PAGE_ROWS  20000 /* letters that one look reads */
#define WALK_ROWS  20000 /* and looks at for each alert whose letter was settled */
#define AGAIN_ROWS 100000

enum {
    CLOCK_BACK_MS = 7200000,
    AGAIN_LAG_MS = 5000 /* who wrote when a letter died again may not have committed yet */
};

/* ---- deaths ---- */

static void add_deaths(struct hk_admin *admin, PGresult *res, bool again, struct hk_alerts_looked *out,
                       size_t *room)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_alert_deaths *items = out->deaths;
    for (int i = 0; res && i < PQntuples(res); i++) {
        struct hk_alert_deaths *more = hk_pa_grow(admin, items, out->n_deaths, room, sizeof *more);
        if (!more)
            break;
        items = more;
        struct hk_alert_deaths *d = &items[out->n_deaths++];
        *d = (struct hk_alert_deaths){.destination = hk_pg_text(pg, res, i, 0),
                                      .reason = hk_pg_text(pg, res, i, 1),
                                      .event_type = hk_pg_text(pg, res, i, 2),
                                      .n = hk_pa_u64(res, i, 3),
                                      .letter_id = hk_pg_i64(res, i, 4),
                                      .message_id = hk_pg_text(pg, res, i, 5)};
        d->again = again ? d->n : 0;
        d->second = again ? hk_pa_u64(res, i, 6) : 0;
        d->known = hk_pa_u64(res, i, 7);
    }
    out->deaths = items;
    PQclear(res);
}

static void take_seen(struct hk_pg *pg, PGresult *res, struct hk_alerts_looked *out)
{
    if (res && hk_pa_u64(res, 0, 1) > 0)
        out->letter_id = hk_pg_i64(res, 0, 0);
    if (res) {
        out->more = out->more || hk_pa_u64(res, 0, 1) == PAGE_ROWS;
        out->gaps = hk_pg_text(pg, res, 0, 2);
    }
    PQclear(res);
}

/* ---- alerts ---- */

static double f64_at(const PGresult *res, int row, int column)
{
    double value = 0;
    if (hk_parse_decimal(hk_str_of(PQgetvalue(res, row, column)), &value, NULL) != HK_OK)
        return 0;
    return value;
}

void hk_pn_alert(struct hk_pg *pg, const PGresult *res, int i, struct hk_alert *out)
{
    *out = (struct hk_alert){
        .rule = hk_pg_text(pg, res, i, 1),
        .kind = HK_NALERT_KINDS,
        .destination = hk_pg_text(pg, res, i, 5),
        .reason = hk_pg_text(pg, res, i, 6),
        .event_type = hk_pg_text(pg, res, i, 7),
        .example_id = hk_pg_text(pg, res, i, 8),
        .detail = hk_pg_text(pg, res, i, 9),
        .episode = hk_pa_u32(res, i, 10),
        .count = hk_pa_u64(res, i, 11),
        .since_ms = hk_pg_i64(res, i, 12),
        .fired_ms = hk_pg_i64(res, i, 13),
        .resolved_ms = hk_pg_i64(res, i, 14),
        .gone_ms = hk_pg_i64(res, i, 15),
        .told_ms = hk_pg_i64(res, i, 16),
        .told = hk_pg_bool(res, i, 17),
        .owed = hk_pg_bool(res, i, 18),
        .value = f64_at(res, i, 19),
        .threshold = f64_at(res, i, 20),
        .letter_id = hk_pg_i64(res, i, 21),
        .series_ms = hk_pg_i64(res, i, 22),
    };
    (void)hk_str_copy(out->fingerprint, sizeof out->fingerprint, hk_str_of(PQgetvalue(res, i, 0)));
    (void)hk_alert_kind_of(hk_str_of(PQgetvalue(res, i, 2)), &out->kind);
    (void)hk_severity_of(hk_str_of(PQgetvalue(res, i, 3)), &out->severity);
    (void)hk_alert_status_of(hk_str_of(PQgetvalue(res, i, 4)), &out->status);
    hk_alerts_series_of(hk_pg_text(pg, res, i, 23), out);
}

static struct hk_alert *take_alerts(struct hk_pg *pg, PGresult *res, struct hk_alerts_looked *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alert *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        hk_pn_alert(pg, res, i, &items[out->n_alerts]);
        out->n_alerts += items[out->n_alerts].kind != HK_NALERT_KINDS;
    }
    out->alerts = items;
    PQclear(res);
    return items;
}

static bool is_open(struct hk_pg *pg, const struct hk_alert *a)
{
    struct hk_pg_args args = {.n = 0};
    hk_pg_arg_i64(pg, &args, a->letter_id);
    hk_pg_arg_text(pg, &args, a->destination);
    hk_pg_arg_text(pg, &args, a->reason);
    PGresult *res = hk_pg_query(pg, false, HK_PN_IS_OPEN, &args);
    bool open = res && PQntuples(res) == 1;
    PQclear(res);
    return open;
}

/* Goes on from `*cursor` among the letters of a status: 1 = found (letter_id), 0 = none is left, -1 = not at the end yet. */
static int walk(struct hk_pg *pg, struct hk_alert *a, const char *status, int64_t *cursor)
{
    struct hk_pg_args args = {.n = 0};
    int found = 0;
    hk_pg_arg_i64(pg, &args, *cursor);
    hk_pg_arg_i64(pg, &args, WALK_ROWS);
    hk_pg_arg_text(pg, &args, a->destination);
    hk_pg_arg_text(pg, &args, a->reason);
    hk_pg_arg_text(pg, &args, hk_str_of(status));
    PGresult *res = hk_pg_query(pg, false, a->reason.len ? HK_PN_WALK_REASON : HK_PN_WALK_ANY, &args);
    if (res && !hk_pg_null(res, 0, 0)) {
        a->letter_id = hk_pg_i64(res, 0, 0);
        *cursor = a->letter_id - 1;
        found = 1;
    } else if (res && hk_pa_u64(res, 0, 2) == WALK_ROWS) {
        *cursor = hk_pg_i64(res, 0, 1);
        found = -1;
    }
    PQclear(res);
    return found;
}

/* As in sqlite/alerts.c. */
static void look_for_open(struct hk_pg *pg, struct hk_alert *a)
{
    a->open = is_open(pg, a);
    if (a->open)
        return;
    a->changed = true;
    int found = walk(pg, a, "failed", &a->series[0]);
    if (found == 0)
        found = walk(pg, a, "retrying", &a->series[1]);
    a->open = found != 0;
    if (found == 0)
        a->letter_id = a->series[0] = a->series[1] = 0;
}

/* ---- what else rules look at ---- */

static void take_mutes(struct hk_pg *pg, PGresult *res, struct hk_alerts_looked *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alert_mute *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++)
        items[out->n_mutes++] = (struct hk_alert_mute){hk_pg_text(pg, res, i, 0), hk_pg_i64(res, i, 1)};
    out->mutes = items;
    PQclear(res);
}

static void take_dests(struct hk_pg *pg, PGresult *res, struct hk_alerts_looked *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_alert_dest *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++)
        items[out->n_dests++] = (struct hk_alert_dest){.name = hk_pg_text(pg, res, i, 0),
                                                       .paused = hk_pg_bool(res, i, 1),
                                                       .broken = hk_pg_bool(res, i, 2),
                                                       .detail = hk_pg_text(pg, res, i, 3)};
    out->dests = items;
    PQclear(res);
}

/* ---- the look ---- */

/* False: it is too early, or an error sticks. */
static bool read_state(struct hk_admin *admin, uint64_t interval_ms, struct hk_alerts_looked *out)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pa_arg_now(admin, &a);
    PGresult *res = hk_pg_query(pg, false, HK_PN_STATE, &a);
    if (res && PQntuples(res) == 1) {
        int64_t evaluated_ms = hk_pg_i64(res, 0, 2);
        out->now_ms = hk_pg_now(pg, hk_pg_i64(res, 0, 0));
        out->version = hk_pg_i64(res, 0, 1);
        out->letter_id = hk_pg_i64(res, 0, 3);
        out->again_ms = hk_pg_i64(res, 0, 4);
        out->gaps = hk_pg_text(pg, res, 0, 5);
        out->due = out->now_ms < evaluated_ms || (uint64_t)(out->now_ms - evaluated_ms) >= interval_ms;
    }
    PQclear(res);
    return out->due;
}

/* Where a page of those that died again ends: not within a millisecond. */
static int64_t again_end(struct hk_pg *pg, const struct hk_alerts_looked *out)
{
    int64_t to_ms = out->now_ms - AGAIN_LAG_MS, end_ms = to_ms;
    if (to_ms < out->again_ms - CLOCK_BACK_MS) /* the clock was set back: from there on */
        return to_ms;
    struct hk_pg_args a = {.n = 0};
    if (to_ms <= out->again_ms)
        return out->again_ms;
    hk_pg_arg_i64(pg, &a, out->again_ms);
    hk_pg_arg_i64(pg, &a, to_ms);
    hk_pg_arg_i64(pg, &a, AGAIN_ROWS);
    PGresult *res = hk_pg_query(pg, false, HK_PN_AGAIN_END, &a);
    if (res && PQntuples(res) == 1)
        end_ms = hk_pg_i64(res, 0, 0);
    PQclear(res);
    return end_ms > out->again_ms && end_ms < to_ms ? end_ms : to_ms;
}

static void add_questions(struct hk_pg *pg, const struct hk_alerts_looked *out, int64_t again_to_ms)
{
    struct hk_pg_args page = {.n = 0}, seen = {.n = 0}, again = {.n = 0}, mutes = {.n = 0};
    hk_pg_arg_i64(pg, &page, out->letter_id);
    hk_pg_arg_i64(pg, &page, PAGE_ROWS);
    hk_pg_arg_text(pg, &page, out->gaps);
    seen = page;
    hk_pg_arg_i64(pg, &seen, out->now_ms);
    hk_pg_arg_i64(pg, &again, out->again_ms);
    hk_pg_arg_i64(pg, &again, again_to_ms);
    hk_pg_arg_text(pg, &again, out->gaps);
    hk_pg_arg_i64(pg, &again, out->letter_id);
    hk_pg_arg_i64(pg, &mutes, out->now_ms);
    hk_pg_begin(pg, false);
    hk_pg_add(pg, HK_PN_FRESH, &page);
    hk_pg_add(pg, HK_PN_SEEN, &seen);
    hk_pg_add(pg, HK_PN_AGAIN, &again);
    hk_pg_add(pg, HK_PN_ALERTS, NULL);
    hk_pg_add(pg, HK_PN_MUTES, &mutes);
    hk_pg_add(pg, HK_PN_DESTS, NULL);
    hk_pg_add(pg, HK_PN_PROGRESS, NULL);
    hk_pg_send(pg);
}

static void read_all(struct hk_admin *admin, struct hk_alerts_looked *out)
{
    struct hk_pg *pg = &admin->pg;
    size_t room = 0;
    int64_t again_to_ms = again_end(pg, out);
    add_questions(pg, out, again_to_ms);
    add_deaths(admin, hk_pg_result(pg), false, out, &room);
    take_seen(pg, hk_pg_result(pg), out);
    add_deaths(admin, hk_pg_result(pg), true, out, &room);
    struct hk_alert *alerts = take_alerts(pg, hk_pg_result(pg), out);
    take_mutes(pg, hk_pg_result(pg), out);
    take_dests(pg, hk_pg_result(pg), out);
    PGresult *res = hk_pg_result(pg);
    out->progress = res ? hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    out->more = out->more || again_to_ms < out->now_ms - AGAIN_LAG_MS;
    out->again_ms = again_to_ms;
    for (size_t i = 0; i < out->n_alerts && hk_pg_ok(pg); i++)
        if (hk_alert_kind_has_letters(alerts[i].kind) &&
            (alerts[i].status == HK_ALERT_PENDING || alerts[i].status == HK_ALERT_FIRING))
            look_for_open(pg, &alerts[i]);
}

static enum hk_code look(struct hk_admin *admin, uint64_t interval_ms, const struct hk_alerts_looked **out,
                         struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_alerts_looked *looked = hk_pg_alloc(pg, 1, sizeof *looked);
    if (looked && read_state(admin, interval_ms, looked))
        read_all(admin, looked);
    enum hk_code rc = hk_pg_end(pg, "look for what is wrong", err);
    if (rc == HK_OK)
        *out = looked;
    return rc;
}

const struct hk_store_alerts_ops hk_store_alerts_postgres = {
    .look = look,
    .decide = hk_pn_decide,
    .claim = hk_pn_claim,
    .settle = hk_pn_settle,
    .list = hk_pn_list,
    .mute = hk_pn_mute,
    .unmute = hk_pn_unmute,
};
