/* SPDX-License-Identifier: Apache-2.0 */
/* A real store as one side of the comparison: two relays, an operator, and an application that writes SQL. */
#include <inttypes.h>
#include <stdlib.h>

#include "../unit/check.h"
#include "base/parse.h"
#include "base/str.h"
#include "differential.h"
#include "store/letters.h"

struct side {
    struct diff_sql sql;
    const struct hk_store_ops *ops;
    const struct hk_store_admin_ops *admin_ops;
    const struct hk_store_letters_ops *letters_ops;
    struct hk_store *stores[2];
    struct hk_admin *admin;
    int64_t lanes[2];
    int64_t
        last_id; /* where there is one writer at a time: the ids are given by hand, so that one can come late */
    struct diff_message open[DIFF_OPEN];
    int64_t open_ids[DIFF_OPEN];
    struct diff_book book;
    struct hk_buf text, polled[2]; /* what the last poll that had news said to each */
};

static int64_t sql_clock(void *arg)
{
    (void)arg;
    return diff_clock_ms;
}

static void time_text(int64_t ms, char out[HK_TIME_TEXT_MAX + 2])
{
    char text[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(ms, text);
    (void)snprintf(out, HK_TIME_TEXT_MAX + 2, ms ? "'%s'" : "NULL", text);
}

enum {
    SQL_MAX = 700
};

/* `id` 0: the database gives it. */
static void insert_sql(const struct diff_message *m, int64_t id, const char *end, char out[SQL_MAX])
{
    char not_before[HK_TIME_TEXT_MAX + 2], expires[HK_TIME_TEXT_MAX + 2], number[32];
    time_text(m->not_before_ms, not_before);
    time_text(m->expires_ms, expires);
    (void)snprintf(number, sizeof number, "%" PRId64 ", ", id);
    (void)snprintf(out, SQL_MAX,
                   "BEGIN; INSERT INTO outbox (%smessage_id, event_type, destination, message_key, payload, "
                   "not_before, expires_at) VALUES (%s'%s', '%s', '%s', %s%s%s, 'p-%s', %s, %s); %s",
                   id ? "id, " : "", id ? number : "", m->id, m->id, m->destination, m->key[0] ? "'" : "",
                   m->key[0] ? m->key : "NULL", m->key[0] ? "'" : "", m->id, not_before, expires, end);
}

static int64_t next_id(struct side *s)
{
    return s->sql.in_open ? 0 : ++s->last_id;
}

static void insert(void *arg, const struct diff_message *m, bool commit)
{
    struct side *s = arg;
    char sql[SQL_MAX];
    insert_sql(m, next_id(s), commit ? "COMMIT" : "ROLLBACK", sql);
    s->sql.sql(sql);
}

static void hold(void *arg, unsigned slot, const struct diff_message *m)
{
    struct side *s = arg;
    char sql[SQL_MAX];
    s->open[slot] = *m;
    s->open_ids[slot] = next_id(s);
    insert_sql(m, 0, "", sql);
    if (s->sql.in_open)
        s->sql.in_open(slot, sql);
}

static void let(void *arg, unsigned slot, bool commit)
{
    struct side *s = arg;
    char sql[SQL_MAX];
    if (s->sql.in_open) {
        s->sql.in_open(slot, commit ? "COMMIT" : "ROLLBACK");
        return;
    }
    insert_sql(&s->open[slot], s->open_ids[slot], commit ? "COMMIT" : "ROLLBACK", sql);
    s->sql.sql(sql);
}

static void acquire(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_err err;
    int64_t lane = 0, now_ms = 0;
    enum hk_code rc = s->ops->acquire(s->stores[relay], relay ? "two" : "one", relay ? "2" : "1",
                                      DIFF_LEASE_MS, &lane, &now_ms, &err);
    (void)hk_buf_addf(out, "acquire %s\n", diff_code(rc));
    if (rc == HK_OK)
        s->lanes[relay] = lane;
}

static void release(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_err err;
    enum hk_code rc = s->ops->release(s->stores[relay], s->lanes[relay], &err);
    (void)hk_buf_addf(out, "release %s\n", diff_code(rc));
}

/* The number that a query gives; 0 = no row. */
static int64_t number(struct side *s, const char *fmt, const char *a, const char *b)
{
    char sql[300];
    int64_t n = 0;
    (void)snprintf(sql, sizeof sql, "%s'%s'%s%s%s", fmt, a, b ? " AND destination = '" : "", b ? b : "",
                   b ? "'" : "");
    hk_buf_reset(&s->text);
    s->sql.rows(sql, &s->text);
    struct hk_str rest = hk_buf_str(&s->text), line = hk_str_cut(&rest, '\n');
    return line.len && hk_parse_i64(line, &n, NULL) == HK_OK ? n : 0;
}

static int64_t id_of(struct side *s, const struct diff_name *name)
{
    bool retry = name->source == HK_FROM_RETRY;
    return number(s,
                  retry ? "SELECT id FROM outbox_retry WHERE message_id = "
                        : "SELECT id FROM outbox WHERE message_id = ",
                  name->message, retry ? name->destination : NULL);
}

static size_t count_late(const struct hk_heads *heads, const struct diff_view *view)
{
    size_t n = 0;
    for (size_t i = 0; i < heads->n; i++)
        for (size_t k = 0; k < view->n_late; k++)
            n += hk_str_eq(heads->items[i].event_type, hk_str_of(view->late[k].message));
    return n;
}

/* What turned up behind earlier scans is read as the engine would. A store may call more rows late than are: how many of
 * those that must be among them are? */
static size_t read_late(struct side *s, const struct diff_view *view)
{
    size_t n = 0;
    struct hk_scan scan = {.source = HK_FROM_OUTBOX, .late = true, .after_id = HK_FIRST_ID, .limit = 50};
    const struct hk_heads *heads = NULL;
    struct hk_err err;
    do {
        assert_int_equal(s->ops->scan(s->stores[view->relay], &scan, &heads, &err), HK_OK);
        n += count_late(heads, view);
        scan.after_id = heads->last_id;
    } while (heads->more);
    return n;
}

static bool lies_there(const struct side *s, int64_t id)
{
    char line[24];
    (void)snprintf(line, sizeof line, "\n%" PRId64 "\n", id);
    return strstr(hk_buf_cstr(&s->text), line) != NULL;
}

/* Where heads are read ahead, one may be of a row that went meanwhile: a claim would not find it. */
static void put_heads(struct side *s, const struct hk_heads *heads, struct diff_view *view,
                      struct hk_buf *out)
{
    hk_buf_reset(&s->text);
    (void)hk_buf_adds(&s->text, "\n");
    if (s->ops->shared && heads->n && heads->items[0].source == HK_FROM_OUTBOX)
        s->sql.rows("SELECT id FROM outbox", &s->text);
    for (size_t i = 0; i < heads->n; i++) {
        const struct hk_heads one = {.items = &heads->items[i], .n = 1};
        if (!s->ops->shared || heads->items[i].source == HK_FROM_RETRY || lies_there(s, heads->items[i].id))
            diff_put_heads(&one, view, false, out);
    }
}

static void scan(void *arg, const struct hk_scan *scan, const struct diff_name *after, struct diff_view *view,
                 struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_store *store = s->stores[view->relay];
    const struct hk_poll *poll = NULL;
    const struct hk_heads *heads = NULL;
    struct hk_err err;
    struct hk_scan page = *scan;
    assert_int_equal(s->ops->poll(store, &poll, &err), HK_OK);
    if (poll->changed) {
        hk_buf_reset(&s->polled[view->relay]);
        diff_put_poll(poll, &s->polled[view->relay]);
    }
    size_t late = poll->changed && poll->late ? read_late(s, view) : 0;
    if (s->ops->shared && late != view->n_late)
        (void)hk_buf_addf(out, "of %zu late rows %zu are told\n", view->n_late, late);
    (void)hk_buf_adds(out, hk_buf_cstr(&s->polled[view->relay])); /* else as it was */
    page.after_id = after ? id_of(s, after) : page.after_id;
    size_t from = out->len;
    do {
        assert_int_equal(s->ops->scan(store, &page, &heads, &err), HK_OK);
        put_heads(s, heads, view, out);
        page.after_id = heads->last_id;
        page.after_due_ms = heads->last_due_ms;
    } while (heads->more);
    if (scan->source == HK_FROM_RETRY)
        diff_sort_lines(out, from);
}

static void held_keys(void *arg, unsigned relay, struct hk_buf *out)
{
    struct side *s = arg;
    const struct hk_held_key *keys = NULL;
    size_t n = 0;
    struct hk_err err;
    assert_int_equal(s->ops->held_keys(s->stores[relay], &keys, &n, &err), HK_OK);
    diff_put_keys(keys, n, out);
}

static void exchange(void *arg, const struct diff_exchange *x, struct diff_view *view, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_settle settles[DIFF_HAND];
    struct hk_want wants[DIFF_HAND];
    const struct hk_exchanged *done = NULL;
    struct hk_err err = {0};
    struct hk_exchange e = {.lane = s->lanes[x->relay],
                            .lease_ms = DIFF_LEASE_MS,
                            .settles = settles,
                            .n_settles = diff_book_settles(&s->book, x, settles),
                            .wants = wants,
                            .circuits = x->circuit,
                            .n_circuits = x->circuit != NULL};
    (void)view;
    for (size_t i = 0; i < x->n_wants; i++) {
        int64_t id = id_of(s, &x->wants[i]);
        if (id)
            wants[e.n_wants++] = (struct hk_want){x->wants[i].source, id, true};
    }
    enum hk_code rc = s->ops->exchange(s->stores[x->relay], &e, &done, &err);
    diff_put_exchanged(&e, rc, done, out);
    for (size_t i = 0; rc == HK_OK && i < done->n_messages; i++)
        diff_book_put(&s->book, x->relay, &done->messages[i], done->claim);
}

static void set_paused(void *arg, const char *destination, bool paused)
{
    struct side *s = arg;
    struct hk_err err;
    assert_int_equal(s->ops->pause(s->stores[0], destination, paused, "tester", "because", &err), HK_OK);
}

static void edit(struct side *s, int64_t id, struct hk_buf *out)
{
    char of[32];
    uint32_t version = 0;
    struct hk_err err = {0};
    (void)snprintf(of, sizeof of, "%" PRId64, id);
    const struct hk_letter_edit e = {
        .id = id,
        .version = (uint32_t)number(s, "SELECT payload_version FROM dead_letters WHERE id = ", of, NULL),
        .payload = hk_str_of(DIFF_EDITED),
        .actor = "tester",
        .reason = "because",
        .act = "edit"};
    (void)hk_buf_addf(out, "%s\n",
                      s->letters_ops->edit(s->admin, &e, &version, &err) == HK_OK ? "done" : err.message);
}

static void take_old_id(struct side *s, int64_t id, const char *message)
{
    char sql[200];
    (void)snprintf(sql, sizeof sql, "UPDATE outbox_retry SET message_id = '%s' WHERE letter_id = %" PRId64,
                   message, id);
    s->sql.sql(sql);
    (void)snprintf(sql, sizeof sql, "UPDATE dead_letters SET requeued_as = NULL WHERE id = %" PRId64, id);
    s->sql.sql(sql);
}

static void act(void *arg, enum diff_kind kind, uint32_t pick, struct diff_name *what, struct hk_buf *out)
{
    struct side *s = arg;
    struct hk_err err = {0};
    struct hk_acted acted;
    const struct hk_letters_done *done = NULL;
    (void)pick;
    if (!what->message[0])
        return;
    if (kind == DIFF_CANCEL) {
        struct hk_act a = {what->message, what->destination, "tester", "because"};
        enum hk_code rc = s->admin_ops->cancel(s->admin, &a, &acted, &err);
        (void)hk_buf_addf(out, "%s\n", rc == HK_OK && acted.changed == 1 ? "done" : err.message);
        return;
    }
    int64_t id =
        number(s, "SELECT id FROM dead_letters WHERE status = 'failed' AND message_id = ", what->message,
               what->destination);
    if (kind == DIFF_EDIT) {
        edit(s, id, out);
        return;
    }
    struct hk_letter_act a = {.ids = &id, .n = 1, .actor = "tester", .reason = "because"};
    enum hk_code rc = kind == DIFF_DISCARD
                          ? s->letters_ops->discard(s->admin, &a, &done, &err)
                          : s->letters_ops->requeue(s->admin, &a, HK_REQUEUE_SAME, &done, &err);
    bool anew = rc == HK_OK && kind == DIFF_REQUEUE && done->changed == 1 &&
                !hk_str_eq(done->items[0].message_id, hk_str_of(what->message));
    (void)hk_buf_addf(out, "%s%s\n", rc == HK_OK && done->changed == 1 ? "done" : err.message,
                      anew ? ", under a new id" : "");
    if (anew)
        take_old_id(s, id, what->message);
}

/* ---- the tables ---- */

#define BAR " || '|' || "

static void dump(void *arg, bool whole, struct hk_buf *out)
{
    struct side *s = arg;
    static const char *const now[] = {
        "SELECT 'outbox|' || message_id" BAR "destination" BAR "coalesce(message_key, '') FROM outbox",
        "SELECT 'retry|' || message_id" BAR "destination" BAR "due_ms" BAR
        "CASE WHEN claim IS NULL THEN 0 ELSE 1 END" BAR "CASE WHEN deferred THEN 1 ELSE 0 END" BAR
        "attempts" BAR "charged" BAR "failed_transient" BAR "prev_wait_ms" BAR "first_attempt_ms" BAR
        "first_failed_ms" BAR "crashes" BAR "life" BAR "CASE WHEN letter_id = 0 THEN 0 ELSE 1 END" BAR
        "CASE WHEN first_attempt_ms = 0 THEN 0 ELSE paused_mark_ms END" BAR
        "CASE WHEN possibly_delivered THEN 1 ELSE 0 END FROM outbox_retry",
        "SELECT 'paused|' || name FROM outbox_destination WHERE CASE WHEN paused THEN 1 ELSE 0 END = 1",
        "SELECT 'counts|' || (SELECT count(*) FROM outbox_sent)" BAR
        "(SELECT count(*) FROM outbox_cancelled)" BAR "(SELECT count(*) FROM outbox_attempts)" BAR
        "(SELECT count(*) FROM dead_letters)",
    };
    static const char *const past[] = {
        "SELECT 'cancelled|' || message_id" BAR "destination" BAR "attempts FROM outbox_cancelled",
        "SELECT 'sent|' || message_id" BAR "destination" BAR "attempts" BAR "life FROM outbox_sent",
        "SELECT 'attempt|' || message_id" BAR "destination" BAR "life" BAR "n FROM outbox_attempts",
    };
    static const char dead[] =
        "SELECT 'dead|' || message_id" BAR "destination" BAR "reason_code" BAR "status" BAR "attempts" BAR
        "life" BAR "CASE WHEN possibly_delivered THEN 1 ELSE 0 END FROM dead_letters";
    static const char open_ones[] = " WHERE status IN ('failed', 'retrying')";
    char sql[400];
    (void)snprintf(sql, sizeof sql, "%s%s", dead, whole ? "" : open_ones);
    s->sql.rows(sql, out);
    for (size_t i = 0; i < COUNT(now); i++)
        s->sql.rows(now[i], out);
    for (size_t i = 0; whole && i < COUNT(past); i++)
        s->sql.rows(past[i], out);
}

static void close_side(void *arg)
{
    struct side *s = arg;
    for (int i = 0; i < 2; i++) {
        s->ops->close(s->stores[i]);
        hk_buf_fini(&s->polled[i]);
    }
    s->admin_ops->close(s->admin);
    hk_buf_fini(&s->text);
    free(s);
}

void diff_sql_open(struct diff_side *side, const struct diff_sql *sql)
{
    struct side *s = calloc(1, sizeof *s);
    struct hk_err err;
    assert_non_null(s);
    s->sql = *sql;
    s->ops = hk_store_by_url(sql->url, &err);
    s->admin_ops = hk_store_admin_by_url(sql->url, &err);
    s->letters_ops = hk_store_letters_by_url(sql->url, &err);
    const struct hk_store_options options = {
        .keep_sent = true, .history = HK_STORE_HISTORY_ALL, .lease_only = true, .clock_ms = sql_clock};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s->ops->open(sql->url, &options, &s->stores[i], &err), HK_OK);
        hk_buf_init(&s->polled[i], 1 << 20);
    }
    assert_int_equal(s->admin_ops->open(sql->url, &options, &s->admin, &err), HK_OK);
    hk_buf_init(&s->text, 1 << 20);
    *side = (struct diff_side){.name = s->ops->name,
                               .one_lane = !s->ops->shared,
                               .arg = s,
                               .insert = insert,
                               .hold = hold,
                               .let = let,
                               .acquire = acquire,
                               .release = release,
                               .scan = scan,
                               .held_keys = held_keys,
                               .exchange = exchange,
                               .pause = set_paused,
                               .act = act,
                               .dump = dump,
                               .close = close_side};
}
