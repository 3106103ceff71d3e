/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting messages and their ages in SQLite: destination by destination, a bounded number of the oldest rows of each. The rules of
 * order are those of admin_why.c. */
#include "base/str.h"
#include "store/sqlite/admin.h"

enum {
    WAITING_TEXT_MAX = 1000
};

struct taker {
    struct hk_store *store;
    struct hk_waiting *out;
    size_t room;
    const struct hk_blocking *ordered;
    size_t n_ordered;
};

static void older(int64_t *oldest_ms, int64_t ms)
{
    if (ms > 0 && (*oldest_ms == 0 || ms < *oldest_ms))
        *oldest_ms = ms;
}

/* The row's entry, made if need be; NULL: there are too many, or no memory. */
static struct hk_waiting_row *entry_of(struct taker *t, struct hk_str destination, struct hk_str event_type)
{
    struct hk_waiting *out = t->out;
    for (size_t i = out->n; i-- > 0;)
        if (hk_str_eq(out->items[i].destination, destination) &&
            hk_str_eq(out->items[i].event_type, event_type))
            return &out->items[i];
    if (out->n == (size_t)2 * HK_WAITING_DESTS)
        return NULL;
    struct hk_waiting_row *items = hk_sa_grow(t->store, out->items, out->n, &t->room, sizeof *items);
    if (!items)
        return NULL;
    out->items = items;
    items[out->n] = (struct hk_waiting_row){.destination = destination, .event_type = event_type};
    return &items[out->n++];
}

static void take_row(struct taker *t, sqlite3_stmt *q, struct hk_str name, bool fresh)
{
    struct hk_str none = {"", 0};
    struct hk_waiting_row *row =
        entry_of(t, name, name.len ? none : hk_sa_text(t->store, q, 4, WAITING_TEXT_MAX));
    int64_t created_ms = hk_sa_time(q, 0), from_ms = fresh ? hk_sa_time(q, 1) : sqlite3_column_int64(q, 1);
    if (!row)
        return;
    older(&row->oldest_ms, created_ms);
    if (!sqlite3_column_int(q, 2) || from_ms > t->out->now_ms)
        return;
    if (sqlite3_column_int(q, 3))
        row->behind = true;
    else
        older(&row->due_ms, fresh && created_ms > from_ms ? created_ms : from_ms > 0 ? from_ms : 1);
}

static const struct hk_blocking *order_of(const struct taker *t, struct hk_str name)
{
    for (size_t i = 0; i < t->n_ordered; i++)
        if (hk_str_eq(name, hk_str_of(t->ordered[i].destination)))
            return &t->ordered[i];
    return NULL;
}

static void take_dests(struct taker *t, const char *names_of, const char *rows_of, bool fresh)
{
    struct hk_store *store = t->store;
    sqlite3_stmt *names = hk_sa_prepare(store, names_of), *q = hk_sa_prepare(store, rows_of);
    for (size_t n = 0; n < HK_WAITING_DESTS && hk_sq_row(store, names); n++) {
        struct hk_str name = hk_sa_text(store, names, 0, WAITING_TEXT_MAX);
        const struct hk_blocking *order = order_of(t, name);
        if (sqlite3_bind_value(q, 1, sqlite3_column_value(names, 0)) != SQLITE_OK)
            break;
        hk_sq_bind_i64(store, q, 2, HK_WAITING_ROWS);
        hk_sq_bind_i64(store, q, 3, order != NULL);
        hk_sq_bind_i64(store, q, 4, order && !order->skip_dead);
        hk_sq_bind_i64(store, q, 5, t->out->now_ms);
        while (hk_sq_row(store, q))
            take_row(t, q, name, fresh);
        hk_sq_done(q);
    }
    sqlite3_finalize(names);
    sqlite3_finalize(q);
}

enum hk_code hk_sa_waiting(struct hk_admin *admin, const struct hk_blocking *ordered, size_t n,
                           const struct hk_waiting **out, struct hk_err *err)
{
    struct taker t = {.store = admin->store, .out = &admin->waiting, .ordered = ordered, .n_ordered = n};
    admin->waiting = (struct hk_waiting){.n = 0};
    hk_sq_call(t.store);
    hk_sq_begin_read(t.store);
    hk_sq_clock_lift(t.store);
    admin->waiting.now_ms = hk_sq_now(t.store);
    take_dests(&t, hk_sa_texts[HK_SA_NAMES_OUTBOX], hk_sa_texts[HK_SA_WAITING_ROWS], true);
    take_dests(&t, hk_sa_texts[HK_SA_NAMES_RETRY], hk_sa_texts[HK_SA_WAITING_RETRIES], false);
    enum hk_code rc = hk_sq_end(t.store, "read what waits", err);
    if (rc == HK_OK)
        *out = &admin->waiting;
    return rc;
}
