/* SPDX-License-Identifier: Apache-2.0 */
/* Housekeeping: pausing destinations, and deleting what has outlived its retention. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/api.h"
#include "store/letters.h"
#include "store/series.h"
#include "store/sqlite/sqlite.h"

enum hk_code hk_sq_pause(struct hk_store *store, const char *destination, bool paused, const char *actor,
                         const char *reason, struct hk_err *err)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    int64_t now_ms = hk_sq_now(store);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_PAUSE);
    hk_sq_bind_cstr(store, q, 1, destination);
    hk_sq_bind_i64(store, q, 2, paused);
    hk_sq_bind_text_or_null(store, q, 3, hk_str_of(actor));
    hk_sq_bind_text_or_null(store, q, 4, hk_str_of(reason));
    hk_sq_bind_i64(store, q, 5, now_ms);
    hk_sq_run(store, q);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of(actor),
                                              .act = hk_str_of(paused ? "pause" : "resume"),
                                              .destination = hk_str_of(destination),
                                              .reason = hk_str_of(reason)});
    enum hk_code rc = hk_sq_end(store, paused ? "pause a destination" : "resume a destination", err);
    if (rc == HK_OK)
        store->own_change = true;
    return rc;
}

/* The tables with their ages; `by_text`: the time there is RFC 3339, which sorts as time does. */
struct rule {
    enum hk_sq_id statement;
    uint64_t keep_ms;
    bool by_text;
    const char *status;
};

static uint32_t purge_rule(struct hk_store *store, const struct rule *rule, int64_t now_ms, uint32_t limit)
{
    if (rule->keep_ms > (uint64_t)now_ms) /* never, or since before 1970 */
        return 0;
    char text[HK_TIME_TEXT_MAX];
    int64_t until_ms = now_ms - (int64_t)rule->keep_ms;
    sqlite3_stmt *q = hk_sq_use(store, rule->statement);
    if (rule->by_text)
        hk_sq_bind_text(store, q, 1, (struct hk_str){text, hk_format_rfc3339(until_ms, text)});
    else
        hk_sq_bind_i64(store, q, 1, until_ms);
    hk_sq_bind_i64(store, q, 2, limit);
    if (rule->status)
        hk_sq_bind_cstr(store, q, 3, rule->status);
    return (uint32_t)hk_sq_run(store, q);
}

static uint32_t purge_sent_rows(struct hk_store *store, uint64_t keep_rows, uint32_t limit)
{
    if (keep_rows > INT64_MAX)
        return 0;
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_PURGE_SENT_ROWS);
    hk_sq_bind_u64(store, q, 1, keep_rows);
    hk_sq_bind_i64(store, q, 2, limit);
    return (uint32_t)hk_sq_run(store, q);
}

/* Nobody looks for a letter that is gone: the audit says how many were open. */
static uint32_t purge_open(struct hk_store *store, uint64_t keep_ms, int64_t now_ms, uint32_t limit)
{
    const struct rule rule = {HK_SQ_PURGE_DEAD, keep_ms, true, NULL};
    char detail[40];
    uint32_t deleted = limit ? purge_rule(store, &rule, now_ms, limit) : 0;
    if (deleted == 0)
        return 0;
    (void)snprintf(detail, sizeof detail, "{\"letters\":%" PRIu32 "}", deleted);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = now_ms,
                                              .actor = hk_str_of("hikyaku"),
                                              .act = hk_str_of("purge-dead"),
                                              .reason = hk_str_of("retention.dead"),
                                              .detail = hk_str_of(detail)});
    return deleted;
}

enum hk_code hk_sq_purge(struct hk_store *store, const struct hk_retention *r, uint32_t limit,
                         uint32_t *out_deleted, uint32_t *out_open, struct hk_err *err)
{
    const struct rule rules[] = {
        {HK_SQ_PURGE_SENT, r->sent_ms, false, NULL},
        {HK_SQ_PURGE_ATTEMPTS, r->attempts_ms, false, NULL},
        {HK_SQ_PURGE_CANCELLED, r->cancelled_ms, false, NULL},
        {HK_SQ_PURGE_LETTERS, r->resolved_ms, true, "resolved"},
        {HK_SQ_PURGE_REDRIVES, r->resolved_ms, false, NULL},
        {HK_SQ_PURGE_JOBS, r->resolved_ms, false, NULL},
        {HK_SQ_PURGE_LETTERS, r->discarded_ms, true, "discarded"},
        {HK_SQ_PURGE_CALLS, HK_API_KEEP_MS, false, NULL},
        {HK_SQ_PURGE_SERIES_MINUTES, HK_SERIES_KEEP_MINUTE_MS, false, NULL},
        {HK_SQ_PURGE_SERIES_HOURS, HK_SERIES_KEEP_HOUR_MS, false, NULL},
    };
    hk_sq_call(store);
    hk_sq_begin_write(store);
    int64_t now_ms = hk_sq_now(store);
    uint32_t deleted = limit ? purge_sent_rows(store, r->sent_rows, limit) : 0;
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && deleted < limit && hk_sq_ok(store); i++)
        deleted += purge_rule(store, &rules[i], now_ms, limit - deleted);
    uint32_t open = purge_open(store, r->dead_ms, now_ms, limit - deleted);
    deleted += open;
    if (deleted < limit)
        deleted += hk_sq_purge_audit(store, now_ms, r->audit_ms, limit - deleted);
    enum hk_code rc = hk_sq_end(store, "delete what has outlived its retention", err);
    if (rc == HK_OK) {
        *out_deleted = deleted;
        if (out_open)
            *out_open = open;
    }
    return rc;
}
