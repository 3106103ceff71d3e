/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that cannot be removed (store/stuck.h): recognises them, records them, and tries again. */
#include <stdio.h>

#include "store/sqlite/sqlite.h"

/* An extended code that SQLite has none of. */
#define STAYS (SQLITE_CONSTRAINT | (255 << 8))

static bool has_row(struct hk_store *store, enum hk_source source, int64_t first, int64_t last)
{
    sqlite3_stmt *q = hk_sq_use(store, source == HK_FROM_OUTBOX ? HK_SQ_HAS_ROW : HK_SQ_HAS_RETRY);
    hk_sq_bind_i64(store, q, 1, first);
    hk_sq_bind_i64(store, q, 2, last);
    bool has = hk_sq_row(store, q);
    hk_sq_done(q);
    return has;
}

static void read_triggers(struct hk_store *store, char *out, size_t room)
{
    out[0] = '\0';
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_TRIGGERS);
    if (hk_sq_row(store, q) && sqlite3_column_type(q, 0) == SQLITE_TEXT)
        (void)snprintf(out, room, "%s", (const char *)sqlite3_column_text(q, 0));
    hk_sq_done(q);
}

enum hk_code hk_sq_guards(struct hk_store *store, char out[HK_STORE_GUARDS_MAX], struct hk_err *err)
{
    hk_sq_call(store);
    read_triggers(store, out, HK_STORE_GUARDS_MAX);
    return hk_sq_end(store, "read its triggers", err);
}

void hk_sq_stays(struct hk_store *store, const char *table)
{
    char names[120];
    read_triggers(store, names, sizeof names);
    hk_sq_fail(store, STAYS);
    if (store->rc == STAYS)
        (void)snprintf(store->where, sizeof store->where, "a statement on %s changed nothing; found: %s",
                       table, names[0] ? names : "nothing");
}

void hk_sq_must_change(struct hk_store *store, int changes, enum hk_source source, int64_t id,
                       const char *table)
{
    if (changes == 0 && hk_sq_ok(store) && has_row(store, source, id, id))
        hk_sq_stays(store, table);
}

void hk_sq_drop_range(struct hk_store *store, int64_t first, int64_t last)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DROP_RANGE);
    hk_sq_bind_i64(store, q, 1, first);
    hk_sq_bind_i64(store, q, 2, last);
    int changes = hk_sq_run(store, q);
    if (changes < last - first + 1 && hk_sq_ok(store) && has_row(store, HK_FROM_OUTBOX, first, last))
        hk_sq_stays(store, "outbox");
}

bool hk_sq_refused(const struct hk_store *store)
{
    return (store->rc & 0xff) == SQLITE_CONSTRAINT;
}

void hk_sq_stick(struct hk_store *store, const struct hk_settle *s, int64_t now_ms, const char *why)
{
    sqlite3_stmt *q = hk_sq_use(store, s->source == HK_FROM_OUTBOX ? HK_SQ_STICK : HK_SQ_STICK_RETRY);
    hk_sq_bind_i64(store, q, 1, s->id);
    hk_sq_bind_text(store, q, 2, s->destination);
    hk_sq_bind_i64(store, q, 3, now_ms);
    hk_sq_bind_i64(store, q, 4, s->kind == HK_SETTLE_SENT);
    hk_sq_bind_i64(store, q, 5, s->kind == HK_SETTLE_SENT || s->attempt.possibly_delivered);
    hk_sq_bind_cstr(store, q, 6, why);
    hk_sq_bind_i64(store, q, 7, s->history.attempts);
    hk_sq_bind_text_or_null(store, q, 8, s->kind == HK_SETTLE_DEAD ? s->reason : (struct hk_str){0});
    hk_sq_bind_text_or_null(store, q, 9, s->attempt.error);
    hk_sq_run(store, q);
}

void hk_sq_stuck_load(struct hk_store *store)
{
    hk_stuck_clear(&store->stuck);
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_STUCK);
    while (hk_sq_row(store, q))
        if (!hk_stuck_add(&store->stuck, sqlite3_column_int64(q, 0) ? HK_FROM_RETRY : HK_FROM_OUTBOX,
                          sqlite3_column_int64(q, 1)))
            hk_sq_fail(store, SQLITE_NOMEM);
    hk_sq_done(q);
}

/* ---- once more ---- */

/* What is to become of it: what it was to become. One of outbox that is to be sent again is due now; one of outbox_retry, as its row
 * says. False: somebody took the note away. */
static bool read_fate(struct hk_store *store, const struct hk_stuck_row *row, int64_t now_ms,
                      struct hk_settle *out)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_STUCK_ONE);
    hk_sq_bind_i64(store, q, 1, row->source == HK_FROM_RETRY);
    hk_sq_bind_i64(store, q, 2, row->id);
    bool found = hk_sq_row(store, q);
    if (found) {
        uint32_t attempts = (uint32_t)sqlite3_column_int64(q, 3);
        *out = (struct hk_settle){.source = row->source,
                                  .id = row->id,
                                  .due_ms = now_ms,
                                  .history = {.attempts = attempts, .charged = attempts},
                                  .destination = hk_sq_text(store, q, 2),
                                  .reason = hk_sq_text(store, q, 4),
                                  .attempt = {.possibly_delivered = sqlite3_column_int64(q, 1) != 0,
                                              .error = hk_sq_text(store, q, 5)}};
        out->kind = hk_stuck_kind(row->source, sqlite3_column_int64(q, 0) != 0, out->reason);
    }
    hk_sq_done(q);
    return found;
}

static void settle_at_last(struct hk_store *store, const struct hk_settle *s, int64_t now_ms)
{
    hk_sq_settle(store, s, now_ms);
    if (s->source == HK_FROM_OUTBOX) {
        if (s->kind == HK_SETTLE_SENT && store->options.keep_sent)
            hk_sq_keep_sent(store, s, s->id, now_ms);
        hk_sq_drop_range(store, s->id, s->id);
    }
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_UNSTICK);
    hk_sq_bind_i64(store, q, 1, s->source == HK_FROM_RETRY);
    hk_sq_bind_i64(store, q, 2, s->id);
    hk_sq_run(store, q);
}

/* The calls' results, which are the caller's, stay: no call begins here. */
void hk_sq_unstick(struct hk_store *store, int64_t now_ms)
{
    struct hk_stuck_row row;
    size_t tries = store->stuck.n < HK_STUCK_TRIES ? store->stuck.n : HK_STUCK_TRIES;
    if (now_ms < store->stuck.retry_at_ms)
        return;
    store->stuck.retry_at_ms = now_ms + HK_STUCK_RETRY_MS;
    while (tries-- > 0 && hk_stuck_next(&store->stuck, &row)) {
        struct hk_settle s;
        store->rc = SQLITE_OK;
        hk_sq_begin_write(store);
        bool known = read_fate(store, &row, now_ms, &s);
        if (known)
            settle_at_last(store, &s, now_ms);
        if (hk_sq_end(store, "settle a stuck row", NULL) != HK_OK)
            continue;
        hk_stuck_drop(&store->stuck, row.source, row.id);
        store->own_change = true;
    }
    store->rc = SQLITE_OK;
}
