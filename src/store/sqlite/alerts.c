/* SPDX-License-Identifier: Apache-2.0 */
/* Alerts on SQLite: the look. Writers come one after the other, so that letters appear in the order of their ids; the time at
 * which one died again is its writer's, who may still be at it: those are read a little later. */
#include "base/parse.h"
#include "base/str.h"
#include "store/sqlite/alerts.h"

#define PAGE_ROWS  20000 /* letters that one look reads */
#define AGAIN_ROWS 100000
#define WALK_ROWS  20000 /* and looks at for each alert whose letter was settled */

enum {
    AGAIN_LAG_MS = 5000
};

/* ---- deaths ---- */

static void add_deaths(struct hk_store *store, sqlite3_stmt *q, bool again, struct hk_alerts_looked *out,
                       size_t *room)
{
    struct hk_alert_deaths *items = out->deaths;
    items = hk_sa_grow(store, items, out->n_deaths, room, sizeof *items);
    if (!items)
        return;
    out->deaths = items;
    struct hk_alert_deaths *d = &items[out->n_deaths++];
    *d = (struct hk_alert_deaths){.destination = hk_sa_text(store, q, 0, HK_ALERT_TEXT_MAX),
                                  .reason = hk_sa_text(store, q, 1, HK_ALERT_TEXT_MAX),
                                  .event_type = hk_sa_text(store, q, 2, HK_ALERT_TEXT_MAX),
                                  .n = (uint64_t)sqlite3_column_int64(q, 3),
                                  .letter_id = sqlite3_column_int64(q, 4),
                                  .message_id = hk_sa_text(store, q, 5, HK_ALERT_TEXT_MAX)};
    d->again = again ? d->n : 0;
    d->second = again ? (uint64_t)sqlite3_column_int64(q, 6) : 0;
    d->known = (uint64_t)sqlite3_column_int64(q, 7);
}

static void read_fresh(struct hk_store *store, struct hk_alerts_looked *out, size_t *room)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_FRESH_END]);
    hk_sq_bind_i64(store, q, 1, out->letter_id);
    hk_sq_bind_i64(store, q, 2, PAGE_ROWS);
    int64_t last = 0, n = 0;
    if (hk_sq_row(store, q)) {
        last = sqlite3_column_int64(q, 0);
        n = sqlite3_column_int64(q, 1);
    }
    sqlite3_finalize(q);
    if (!n)
        return;
    q = hk_sa_prepare(store, hk_sn_texts[HK_SN_FRESH]);
    hk_sq_bind_i64(store, q, 1, out->letter_id);
    hk_sq_bind_i64(store, q, 2, PAGE_ROWS);
    while (hk_sq_row(store, q))
        add_deaths(store, q, false, out, room);
    sqlite3_finalize(q);
    out->letter_id = last;
    out->more = n == PAGE_ROWS;
}

static struct hk_str time_text(int64_t ms, char out[HK_TIME_TEXT_MAX])
{
    return (struct hk_str){out, hk_format_rfc3339(ms, out)};
}

/* Where a page of those that died again ends: not within a millisecond. */
static int64_t again_end(struct hk_store *store, int64_t from_ms, int64_t to_ms)
{
    char from[HK_TIME_TEXT_MAX], to[HK_TIME_TEXT_MAX];
    int64_t end_ms = to_ms;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_AGAIN_END]);
    hk_sq_bind_text(store, q, 1, time_text(from_ms, from));
    hk_sq_bind_text(store, q, 2, time_text(to_ms, to));
    hk_sq_bind_i64(store, q, 3, AGAIN_ROWS);
    if (hk_sq_row(store, q))
        end_ms = hk_sa_time(q, 0);
    sqlite3_finalize(q);
    return end_ms > from_ms ? end_ms : to_ms;
}

/* `letter_id`: letters above it are new to this look, or to the next. */
static void read_again(struct hk_store *store, int64_t letter_id, struct hk_alerts_looked *out, size_t *room)
{
    char from[HK_TIME_TEXT_MAX], to[HK_TIME_TEXT_MAX];
    int64_t to_ms = out->now_ms - AGAIN_LAG_MS;
    if (to_ms <= out->again_ms)
        return;
    int64_t end_ms = again_end(store, out->again_ms, to_ms);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_AGAIN]);
    hk_sq_bind_text(store, q, 1, time_text(out->again_ms, from));
    hk_sq_bind_text(store, q, 2, time_text(end_ms, to));
    hk_sq_bind_i64(store, q, 3, letter_id);
    while (hk_sq_row(store, q))
        add_deaths(store, q, true, out, room);
    sqlite3_finalize(q);
    out->again_ms = end_ms;
    out->more = out->more || end_ms < to_ms;
}

/* ---- alerts ---- */

void hk_sn_alert(struct hk_store *store, sqlite3_stmt *q, struct hk_alert *out)
{
    *out = (struct hk_alert){
        .rule = hk_sa_text(store, q, 1, HK_ALERT_TEXT_MAX),
        .kind = HK_NALERT_KINDS,
        .destination = hk_sa_text(store, q, 5, HK_ALERT_TEXT_MAX),
        .reason = hk_sa_text(store, q, 6, HK_ALERT_TEXT_MAX),
        .event_type = hk_sa_text(store, q, 7, HK_ALERT_TEXT_MAX),
        .example_id = hk_sa_text(store, q, 8, HK_ALERT_TEXT_MAX),
        .detail = hk_sa_text(store, q, 9, HK_ALERT_TEXT_MAX),
        .episode = hk_sa_u32(q, 10),
        .count = (uint64_t)sqlite3_column_int64(q, 11),
        .since_ms = sqlite3_column_int64(q, 12),
        .fired_ms = sqlite3_column_int64(q, 13),
        .resolved_ms = sqlite3_column_int64(q, 14),
        .gone_ms = sqlite3_column_int64(q, 15),
        .told_ms = sqlite3_column_int64(q, 16),
        .told = sqlite3_column_int(q, 17) != 0,
        .owed = sqlite3_column_int(q, 18) != 0,
        .value = sqlite3_column_double(q, 19),
        .threshold = sqlite3_column_double(q, 20),
        .letter_id = sqlite3_column_int64(q, 21),
        .series_ms = sqlite3_column_int64(q, 22),
    };
    (void)hk_str_copy(out->fingerprint, sizeof out->fingerprint, hk_sa_text(store, q, 0, 64));
    (void)hk_alert_kind_of(hk_sa_text(store, q, 2, 64), &out->kind);
    (void)hk_severity_of(hk_sa_text(store, q, 3, 64), &out->severity);
    (void)hk_alert_status_of(hk_sa_text(store, q, 4, 64), &out->status);
    hk_alerts_series_of(hk_sa_text(store, q, 23, HK_ALERTS_SERIES_MAX), out);
}

static bool is_open(struct hk_store *store, const struct hk_alert *a)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_IS_OPEN]);
    hk_sq_bind_i64(store, q, 1, a->letter_id);
    hk_sq_bind_text(store, q, 2, a->destination);
    hk_sq_bind_text(store, q, 3, a->reason);
    bool open = hk_sq_row(store, q);
    sqlite3_finalize(q);
    return open;
}

static bool column_is(sqlite3_stmt *q, int column, struct hk_str text)
{
    struct hk_str s = {(const char *)sqlite3_column_text(q, column), 0};
    s.len = s.ptr ? (size_t)sqlite3_column_bytes(q, column) : 0;
    return !text.len || hk_str_eq(s, text);
}

/* Goes on from `*cursor` among the letters of a status: 1 = found (letter_id), 0 = none is left, -1 = not at the end yet. */
static int walk(struct hk_store *store, struct hk_alert *a, const char *status, int64_t *cursor)
{
    int64_t last = *cursor, n = 0;
    bool found = false;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_WALK_STATUS]);
    hk_sq_bind_cstr(store, q, 1, status);
    hk_sq_bind_i64(store, q, 2, *cursor);
    hk_sq_bind_i64(store, q, 3, WALK_ROWS);
    for (; !found && hk_sq_row(store, q); n++) {
        last = sqlite3_column_int64(q, 0);
        found = column_is(q, 1, a->destination) && column_is(q, 2, a->reason);
    }
    sqlite3_finalize(q);
    if (found) {
        a->letter_id = last;
        *cursor = last - 1;
        return 1;
    }
    *cursor = last;
    return n < WALK_ROWS ? 0 : -1;
}

/* Is some letter of it not settled? One that is, is remembered; when that was settled, the next is looked for, a part of all
 * open letters at a time (series[0] and [1] are how far), and until that has ended it counts as open. */
static void look_for_open(struct hk_store *store, struct hk_alert *a)
{
    a->open = is_open(store, a);
    if (a->open)
        return;
    a->changed = true;
    int found = walk(store, a, "failed", &a->series[0]);
    if (found == 0)
        found = walk(store, a, "retrying", &a->series[1]);
    a->open = found != 0;
    if (found == 0)
        a->letter_id = a->series[0] = a->series[1] = 0;
}

/* Resolved ones count only while someone is to hear of it; but if they come again, they have been there before. */
static void read_alerts(struct hk_store *store, struct hk_alerts_looked *out)
{
    struct hk_alert *items = NULL;
    size_t n = 0, room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_ALERTS]);
    while (hk_sq_row(store, q)) {
        struct hk_alert *more = hk_sa_grow(store, items, n, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        hk_sn_alert(store, q, &items[n]);
        n += items[n].kind != HK_NALERT_KINDS;
    }
    sqlite3_finalize(q);
    for (size_t i = 0; i < n && hk_sq_ok(store); i++)
        if (hk_alert_kind_has_letters(items[i].kind) &&
            (items[i].status == HK_ALERT_PENDING || items[i].status == HK_ALERT_FIRING))
            look_for_open(store, &items[i]);
    out->alerts = items;
    out->n_alerts = n;
}

/* ---- what else rules look at ---- */

static void read_mutes(struct hk_store *store, struct hk_alerts_looked *out)
{
    struct hk_alert_mute *items = NULL;
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_MUTES]);
    hk_sq_bind_i64(store, q, 1, out->now_ms);
    while (hk_sq_row(store, q)) {
        struct hk_alert_mute *more = hk_sa_grow(store, items, out->n_mutes, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        items[out->n_mutes++] =
            (struct hk_alert_mute){hk_sa_text(store, q, 0, HK_ALERT_TEXT_MAX), sqlite3_column_int64(q, 1)};
    }
    sqlite3_finalize(q);
    out->mutes = items;
}

static void read_dests(struct hk_store *store, struct hk_alerts_looked *out)
{
    struct hk_alert_dest *items = NULL;
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_DESTS]);
    while (hk_sq_row(store, q)) {
        struct hk_alert_dest *more = hk_sa_grow(store, items, out->n_dests, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        items[out->n_dests++] = (struct hk_alert_dest){.name = hk_sa_text(store, q, 0, HK_ALERT_TEXT_MAX),
                                                       .paused = sqlite3_column_int(q, 1) != 0,
                                                       .broken = sqlite3_column_int(q, 2) != 0,
                                                       .detail = hk_sa_text(store, q, 3, HK_ALERT_TEXT_MAX)};
    }
    sqlite3_finalize(q);
    out->dests = items;
}

/* The ends of what was delivered and buried, and the beginning of what was not. */
static void read_progress(struct hk_store *store, struct hk_alerts_looked *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_PROGRESS]);
    out->progress = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
}

/* False: it is too early, or an error sticks. */
static bool read_state(struct hk_store *store, uint64_t interval_ms, struct hk_alerts_looked *out)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sn_texts[HK_SN_STATE]);
    int64_t evaluated_ms = 0;
    bool found = hk_sq_row(store, q);
    if (found) {
        out->version = sqlite3_column_int64(q, 0);
        evaluated_ms = sqlite3_column_int64(q, 1);
        out->letter_id = sqlite3_column_int64(q, 2);
        out->again_ms = sqlite3_column_int64(q, 3);
    }
    sqlite3_finalize(q);
    out->due = found && (out->now_ms < evaluated_ms || (uint64_t)(out->now_ms - evaluated_ms) >= interval_ms);
    return out->due;
}

static enum hk_code look(struct hk_admin *admin, uint64_t interval_ms, const struct hk_alerts_looked **out,
                         struct hk_err *err)
{
    struct hk_store *store = admin->store;
    size_t room = 0;
    hk_sq_call(store);
    struct hk_alerts_looked *looked = hk_sq_alloc(store, 1, sizeof *looked);
    hk_sq_begin_read(store);
    hk_sq_clock_lift(store);
    if (looked) {
        looked->now_ms = hk_sq_now(store);
        if (read_state(store, interval_ms, looked)) {
            int64_t letter_id = looked->letter_id;
            read_fresh(store, looked, &room);
            read_again(store, letter_id, looked, &room);
            read_alerts(store, looked);
            read_mutes(store, looked);
            read_dests(store, looked);
            read_progress(store, looked);
        }
    }
    enum hk_code rc = hk_sq_end(store, "look for what is wrong", err);
    if (rc == HK_OK)
        *out = looked;
    return rc;
}

const struct hk_store_alerts_ops hk_store_alerts_sqlite = {
    .look = look,
    .decide = hk_sn_decide,
    .claim = hk_sn_claim,
    .settle = hk_sn_settle,
    .list = hk_sn_list,
    .mute = hk_sn_mute,
    .unmute = hk_sn_unmute,
};
