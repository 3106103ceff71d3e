/* SPDX-License-Identifier: Apache-2.0 */
/* What operators do, beside a relay that works on the same store. */
#include <stdlib.h>

#include <hikyaku/alloc.h>

#include "admin_suite.h"
#include "base/str.h"

const struct hk_store_admin_ops *admin_ops;
const struct admin_dialect *admin_dialect;

static int64_t read_clock(void *arg)
{
    (void)arg;
    return suite_clock_ms;
}

struct hk_admin *admin_open(void)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    enum hk_code rc =
        admin_ops->open(store_kind->url(), &(struct hk_store_options){.clock_ms = read_clock}, &admin, &err);
    NOTE_IF(rc != HK_OK, "open: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return admin;
}

#define assert_count(sql, n)    assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define assert_text(s, text)    assert_true(hk_str_eq(s, hk_str_of(text)))
#define assert_value(sql, text) assert_string_equal(store_kind->value("SELECT " sql), text)

static void insert(const char *message_id, const char *destination, const char *not_before)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "INSERT INTO outbox (message_id, destination, event_type, payload, not_before) "
             "VALUES ('%s', '%s', 'Made', 'p', %s%s%s)",
             message_id, destination, not_before ? "'" : "", not_before ? not_before : "NULL",
             not_before ? "'" : "");
    store_kind->sql(sql);
}

typedef enum hk_code act_fn(struct hk_admin *, const struct hk_act *, struct hk_acted *, struct hk_err *);

static enum hk_code act(act_fn *fn, struct hk_admin *admin, const char *message_id, const char *destination,
                        struct hk_acted *out)
{
    struct hk_err err = {0};
    struct hk_acted acted = {0};
    const struct hk_act a = {message_id, destination, "ann", "because"};
    enum hk_code rc = fn(admin, &a, out ? out : &acted, &err);
    assert_true(rc == HK_OK || err.message[0] != '\0');
    assert_true(rc == HK_OK || err.code == rc);
    return rc;
}

static const struct hk_store_status *status(struct hk_admin *admin)
{
    const struct hk_store_status *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->status(admin, &out, &err);
    NOTE_IF(rc != HK_OK, "status: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static const struct hk_rows *list(struct hk_admin *admin, const struct hk_list *how)
{
    const struct hk_rows *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->list(admin, how, &out, &err);
    NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

/* One message in each state, and one that was requeued from a letter. */
static void fill_all_states(struct hk_store *store)
{
    int64_t lane = suite_acquire(store);
    const char *const ids[] = {"m-sent", "m-retrying", "m-dead", "m-processing"};

    const enum hk_settle_kind kinds[] = {HK_SETTLE_SENT, HK_SETTLE_RETRY, HK_SETTLE_DEAD};

    for (int i = 0; i < 4; i++) {
        insert(ids[i], "a", NULL);
        int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, i + 1);
        if (i < 3) {
            struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, i + 1, kinds[i]);
            suite_settle_one(store, lane, &s);
        }
    }
    insert("m-pending", "b", NULL);
    insert("m-later", "b", "2028-01-01T00:00:00Z");
}

/* ---- enqueue ---- */

static void what_is_enqueued_is_what_was_given(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_str *ids = NULL;
    struct hk_err err = {0};
    const struct hk_enqueue items[] = {
        {.message = {.destination = "a", .event_type = "Made", .payload = "a\0b", .payload_len = 3}},
        {.message = {.event_type = "Mäde",
                     .payload = "{\"x\": 1.0}",
                     .payload_len = 10,
                     .message_id = "given",
                     .message_key = "k",
                     .headers = "{\"h\":\"v\"}",
                     .content_type = "text/plain",
                     .correlation_id = "c",
                     .traceparent = "t",
                     .idempotency_key = "i",
                     .not_before = "2027-02-01T00:00:00Z",
                     .expires_at = "2027-03-01T00:00:00Z",
                     .policy = "p",
                     .max_attempts = 7},
         .encoding = "utf8"},
        {.message = {.event_type = "Empty"}},
    };
    assert_int_equal(admin_ops->enqueue(admin, items, 3, &ids, &err), HK_OK);
    assert_true(ids[0].len > 10);
    assert_text(ids[1], "given");
    assert_string_equal(store_kind->value(admin_dialect->bytes), admin_dialect->bytes_value);
    assert_value("payload FROM outbox WHERE message_id = 'given'", "{\"x\": 1.0}");
    assert_value(
        "destination || message_key || headers || content_type || encoding || correlation_id || traceparent || "
        "idempotency_key || policy || max_attempts FROM outbox WHERE message_id = 'given'",
        "k{\"h\":\"v\"}text/plainutf8ctip7");
    assert_count("outbox WHERE message_id = 'given' AND not_before = '2027-02-01T00:00:00Z' "
                 "AND expires_at = '2027-03-01T00:00:00Z'",
                 1);
    assert_value("count(*) FROM outbox WHERE payload IS NULL", "1");
    assert_true(ids[2].len > 10 && !hk_str_eq(ids[0], ids[2]));
    admin_ops->close(admin);
}

static void a_batch_is_written_whole_or_not_at_all(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_str *ids = NULL;
    struct hk_err err = {0};
    const struct hk_enqueue bad[] = {{.message = {.event_type = "A"}}, {.message = {.destination = "a"}}};
    assert_int_equal(admin_ops->enqueue(admin, bad, 2, &ids, &err), HK_INVALID);
    assert_non_null(strstr(err.message, "1"));
    assert_count("outbox", 0);
    store_kind->sql(admin_dialect->refuse);
    const struct hk_enqueue refused[] = {{.message = {.event_type = "A"}}, {.message = {.event_type = "B"}}};
    assert_int_not_equal(admin_ops->enqueue(admin, refused, 2, &ids, &err), HK_OK);
    assert_count("outbox", 0);
    store_kind->sql(admin_dialect->allow);
    assert_int_equal(admin_ops->enqueue(admin, refused, 2, &ids, &err), HK_OK);
    assert_count("outbox", 2);
    admin_ops->close(admin);
}

/* ---- looking ---- */

static void status_counts_every_state(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_store_status *s = status(admin);
    assert_false(s->relay.known);
    assert_int_equal(s->n_dests + s->due.n + s->dead.n + s->sent.n + s->processing, 0);
    assert_int_equal(s->oldest_ms, 0);
    fill_all_states(store);
    s = status(admin);
    assert_int_equal(s->due.n, 1);
    assert_int_equal(s->retrying.n, 1);
    assert_int_equal(s->scheduled.n, 1);
    assert_int_equal(s->processing, 1);
    assert_int_equal(s->dead.n, 1);
    assert_int_equal(s->sent.n, 1);
    assert_int_equal(s->cancelled.n, 0);
    assert_false(s->due.about || s->dead.about || s->sent.about);
    assert_int_equal(s->attempts[0].n, 3);
    assert_int_equal(s->attempts[1].n, 1);
    assert_true(s->relay.running);
    assert_text(s->relay.name, "relay");
    assert_int_equal(s->relay.until_ms, suite_clock_ms + 30000);
    assert_int_equal(s->n_dests, 2);
    assert_text(s->dests[0].name, "a");
    assert_int_equal(s->dests[0].pending.n, 0);
    assert_int_equal(s->dests[0].processing, 1);
    assert_int_equal(s->dests[0].retrying.n, 1);
    assert_int_equal(s->dests[0].dead.n, 1);
    assert_int_equal(s->dests[1].pending.n, 2);
    suite_clock_ms += 30000;
    s = status(admin);
    assert_true(s->relay.known && !s->relay.running);
    assert_int_equal(s->due.n, 2); /* the retry, too */
    assert_true(s->oldest_due_ms > 0 && s->oldest_due_ms < suite_clock_ms);
    store_kind->sql("DELETE FROM outbox WHERE message_id = 'm-pending'");
    s = status(admin); /* what is in flight is older, but not due */
    assert_int_equal(s->oldest_due_ms, suite_number("SELECT min(due_ms) FROM outbox_retry"));
    suite_close(store);
    admin_ops->close(admin);
}

static void the_list_agrees_with_the_view(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    fill_all_states(store);
    assert_int_equal(act(admin_ops->cancel, admin, "m-pending", NULL, NULL), HK_OK);
    const struct hk_rows *rows = list(admin, &(struct hk_list){.limit = 100});
    assert_int_equal(rows->n, suite_number("SELECT count(*) FROM outbox_messages"));
    assert_false(rows->more);
    for (size_t i = 0; i < rows->n; i++) {
        char sql[300];
        snprintf(sql, sizeof sql,
                 "SELECT status || attempts || destination FROM outbox_messages WHERE message_id = '%s'",
                 rows->items[i].message_id.ptr);
        char got[200];
        snprintf(got, sizeof got, "%s%u%s", hk_state_name(rows->items[i].state),
                 (unsigned)rows->items[i].attempts, rows->items[i].destination.ptr);
        assert_string_equal(store_kind->value(sql), got);
    }
    for (int st = HK_PENDING; st < HK_NSTATES; st++) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM outbox_messages WHERE status = '%s'",
                 hk_state_name((enum hk_state)st));
        rows = list(admin, &(struct hk_list){.state = (enum hk_state)st, .limit = 100});
        assert_int_equal(rows->n, suite_number(sql));
        for (size_t i = 0; i < rows->n; i++)
            assert_int_equal(rows->items[i].state, st);
    }
    suite_close(store);
    admin_ops->close(admin);
}

static void pages_show_every_message_once(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    suite_fill(20, "a", NULL);
    suite_fill(5, "b", NULL);
    store_kind->sql("INSERT INTO outbox_retry (message_id, destination, event_type, due_ms) "
                    "SELECT message_id, 'a', 'Made', id FROM outbox WHERE id <= 7");
    store_kind->sql(
        "INSERT INTO outbox_sent (message_id, destination, event_type, attempts, status, life, sent_ms) "
        "SELECT message_id, 'a', 'Sent', 1, 200, 1, id FROM outbox WHERE id <= 4");

    const struct {
        const char *destination, *event_type;
        size_t n;
    } filters[] = {{NULL, NULL, 36},  {"a", NULL, 31},   {"b", NULL, 5},
                   {NULL, "Sent", 4}, {"a", "Made", 27}, {"c", NULL, 0}};

    for (size_t f = 0; f < COUNT(filters); f++)
        for (uint32_t limit = 1; limit <= 40; limit += 3) {
            struct hk_list how = {
                .destination = filters[f].destination, .event_type = filters[f].event_type, .limit = limit};
            size_t n = 0;
            bool more = true;
            enum hk_place place = HK_IN_RETRY;
            int64_t id = INT64_MAX;
            while (more) {
                const struct hk_rows *rows = list(admin, &how);
                assert_true(rows->n <= limit);
                for (size_t i = 0; i < rows->n; i++) {
                    const struct hk_row *r = &rows->items[i];
                    assert_true(r->place > place || (r->place == place && r->id < id));
                    place = r->place;
                    id = r->id;
                }
                n += rows->n;
                more = rows->more;
                how.resume = true;
                how.after_place = rows->last_place;
                how.after_id = rows->last_id;
            }
            NOTE_IF(n != filters[f].n, "filter %zu, limit %u: %zu\n", f, (unsigned)limit, n);
            assert_int_equal(n, filters[f].n);
        }
    admin_ops->close(admin);
}

static void show_has_all_facts_and_the_attempts(void **state)
{
    (void)state;
    struct hk_store *store =
        suite_open(&(struct hk_store_options){.keep_sent = true, .clock_ms = read_clock});
    struct hk_admin *admin = admin_open();
    const struct hk_shown *shown = NULL;
    struct hk_err err = {0};
    fill_all_states(store);
    assert_int_equal(admin_ops->show(admin, "m-retrying", 100, &shown, &err), HK_OK);
    assert_int_equal(shown->n_rows, 1);
    assert_int_equal(shown->rows[0].state, HK_RETRYING);
    assert_int_equal(shown->rows[0].next_ms, suite_clock_ms + 1000);
    assert_text(shown->rows[0].last_error, "it said no");
    assert_text(shown->rows[0].payload, "p");
    assert_int_equal(shown->n_attempts, 1);
    assert_int_equal(shown->attempts[0].status, 500);
    assert_text(shown->attempts[0].cause, "HTTP_500");
    assert_int_equal(admin_ops->show(admin, "m-dead", 0, &shown, &err), HK_OK);
    assert_int_equal(shown->rows[0].state, HK_STATE_DEAD);
    assert_text(shown->rows[0].letter_status, "failed");
    assert_int_equal(shown->rows[0].payload_bytes, 1);
    assert_int_equal(shown->rows[0].payload.len, 0);
    assert_int_equal(admin_ops->show(admin, "m-processing", 0, &shown, &err), HK_OK);
    assert_text(shown->rows[0].locked_by, "relay");
    assert_int_equal(admin_ops->show(admin, "m-sent", 10, &shown, &err), HK_OK);
    assert_false(shown->rows[0].has_payload);
    assert_int_equal(admin_ops->show(admin, "nobody", 10, &shown, &err), HK_NOTFOUND);
    suite_close(store);
    admin_ops->close(admin);
}

static const struct hk_relays *relays(struct hk_admin *admin)
{
    const struct hk_relays *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->relays(admin, &out, &err);
    NOTE_IF(rc != HK_OK, "relays: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static void relays_are_told_with_what_they_have_in_hand(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_relays *r = relays(admin);
    assert_int_equal(r->n, 0);
    assert_true(r->shards > 0 && r->shards == r->shards_free);
    int64_t lane = suite_acquire(store);
    for (int i = 0; i < 4; i++)
        insert("m", "a", i == 3 ? "2028-01-01T00:00:00Z" : NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_clock_ms += 2000; /* the retry is due */
    suite_claim(store, lane, HK_FROM_RETRY, 1);
    suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    store_kind->sql("UPDATE outbox SET created_at = '2027-01-15T07:59:00Z' WHERE id = 3");
    r = relays(admin);
    assert_int_equal(r->now_ms, suite_clock_ms);
    assert_int_equal(r->n, 1);
    assert_int_equal(r->items[0].lane, lane);
    assert_true(r->items[0].running);
    assert_text(r->items[0].name, "relay");
    assert_text(r->items[0].boot, "boot");
    assert_true(r->items[0].version.len > 0);
    assert_int_equal(r->items[0].until_ms, suite_clock_ms + 30000);
    assert_int_equal(r->items[0].in_hand, 2);
    assert_int_equal(r->items[0].shards, r->shards);
    assert_int_equal(r->shards_free, 0);
    assert_int_equal(r->items[0].oldest_due_ms, INT64_C(1799999940000)); /* 2027-01-15T07:59:00Z */
    store_kind->sql("DELETE FROM outbox WHERE id = 3");
    assert_int_equal(relays(admin)->items[0].oldest_due_ms, 0);
    suite_clock_ms += 30000;
    assert_false(relays(admin)->items[0].running);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- acts ---- */

static void what_is_cancelled_is_not_claimed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_acted acted = {0};
    int64_t lane = suite_acquire(store);
    insert("x", "a", NULL);
    insert("y", "a", NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, &acted), HK_OK);
    assert_int_equal(acted.changed, 1);
    assert_int_equal(act(admin_ops->cancel, admin, "y", "a", &acted), HK_OK);
    const struct hk_want both[] = {{HK_FROM_OUTBOX, 1, true}, {HK_FROM_RETRY, 1, true}};
    suite_clock_ms += 5000;
    assert_int_equal(suite_exchange(store, lane, NULL, 0, both, 2)->n_messages, 0);
    assert_count("outbox", 0);
    assert_count("outbox_retry", 0);
    assert_count("outbox_cancelled", 2);
    assert_value("message_id || attempts || actor || reason || payload FROM outbox_cancelled WHERE id = 1",
                 "x0annbecausep");
    assert_value("message_id || attempts || actor || reason || payload FROM outbox_cancelled WHERE id = 2",
                 "y1annbecausep");
    assert_count("outbox_audit", 2);
    assert_value("act || message_id || destination || actor || reason FROM outbox_audit WHERE id = 1",
                 "cancelxaannbecause");
    assert_value("act || message_id || destination || actor || reason FROM outbox_audit WHERE id = 2",
                 "cancelyaannbecause");
    suite_close(store);
    admin_ops->close(admin);
}

static void what_is_in_flight_cannot_be_changed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert("x", "a", "2020-01-01T00:00:00Z");
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_BUSY);
    assert_int_equal(act(admin_ops->retry, admin, "x", NULL, NULL), HK_BUSY);
    suite_clock_ms += 60000; /* its relay is dead: it may have arrived all the same */
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_BUSY);
    suite_clock_ms -= 60000;
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_clock_ms += 2000;
    claim = suite_claim(store, lane, HK_FROM_RETRY, 1);
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_BUSY);
    assert_int_equal(act(admin_ops->retry, admin, "x", NULL, NULL), HK_BUSY);
    assert_count("outbox_audit", 0);
    s = suite_settle(claim, HK_FROM_RETRY, 1, HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &s);
    store_kind->sql("UPDATE outbox_retry SET claim = 99"); /* of a manifest that nobody can show */
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_BUSY);
    store_kind->sql("UPDATE outbox_retry SET claim = NULL");
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_OK);
    suite_close(store);
    admin_ops->close(admin);
}

static size_t forced_heads(struct hk_store *store, int64_t *out_ids)
{
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .forced = true, .after_due_ms = INT64_MIN, .limit = 10};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, &err), HK_OK);
    for (size_t i = 0; i < heads->n; i++)
        out_ids[i] = heads->items[i].id;
    return heads->n;
}

static void a_forced_message_is_found_until_an_attempt_is_settled(void **state)
{
    (void)state;
    int64_t ids[20];
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_acted acted = {0};
    int64_t lane = suite_acquire(store);
    insert("failed", "a", NULL);
    insert("fresh", "b", NULL);
    insert("later", "c", "2028-01-01T00:00:00Z");
    insert("other", "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    s.due_ms = suite_clock_ms + 100000;
    suite_settle_one(store, lane, &s);
    assert_int_equal(forced_heads(store, ids), 0);
    assert_int_equal(act(admin_ops->force, admin, "failed", NULL, &acted), HK_OK);
    assert_int_equal(acted.changed, 1);
    assert_int_equal(act(admin_ops->force, admin, "fresh", NULL, &acted), HK_OK);
    assert_int_equal(act(admin_ops->force, admin, "later", NULL, &acted), HK_OK);
    assert_int_equal(act(admin_ops->force, admin, "nobody", NULL, NULL), HK_NOTFOUND);
    assert_count("outbox_audit WHERE act = 'force'", 3);
    assert_count("outbox", 1);
    assert_int_equal(forced_heads(store, ids), 3); /* of all destinations */
    int64_t claim = suite_claim(store, lane, HK_FROM_RETRY, ids[0]);
    assert_int_equal(forced_heads(store, ids + 1), 2);
    assert_int_equal(act(admin_ops->force, admin, "failed", NULL, NULL), HK_BUSY);
    struct hk_settle back = suite_settle(claim, HK_FROM_RETRY, ids[0], HK_SETTLE_RELEASE);
    suite_settle_one(store, lane, &back);
    assert_int_equal(forced_heads(store, ids), 3); /* nothing was tried */
    claim = suite_claim(store, lane, HK_FROM_RETRY, ids[0]);
    s = suite_settle(claim, HK_FROM_RETRY, ids[0], HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(forced_heads(store, ids), 2);
    assert_count("outbox_retry WHERE forced", 2);
    suite_close(store);
    admin_ops->close(admin);
}

/* Others of its key may wait in outbox before it; and where one goes that a route leads only the relay knows. */
static void what_may_overtake_others_cannot_be_forced(void **state)
{
    (void)state;
    int64_t ids[20];
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, message_key) "
                    "VALUES ('tried', 'a', 'Made', 'p', 'k')");
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, payload, message_key) "
                    "VALUES ('keyed', 'a', 'Made', 'p', 'k')");
    store_kind->sql("INSERT INTO outbox (message_id, event_type, payload) VALUES ('routed', 'Made', 'p')");
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(act(admin_ops->force, admin, "keyed", NULL, NULL), HK_CONFLICT);
    assert_int_equal(act(admin_ops->force, admin, "routed", NULL, NULL), HK_CONFLICT);
    assert_count("outbox", 2);
    assert_count("outbox_audit", 0);
    assert_int_equal(act(admin_ops->force, admin, "tried", NULL, NULL), HK_OK);
    assert_int_equal(forced_heads(store, ids), 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void retry_makes_due_what_waits(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_acted acted = {0};
    int64_t lane = suite_acquire(store);
    insert("scheduled", "a", "2028-01-01T00:00:00Z");
    insert("failed", "a", NULL);
    insert("due", "a", NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 2);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 2, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    assert_int_equal(act(admin_ops->retry, admin, "due", NULL, &acted), HK_OK);
    assert_int_equal(acted.changed, 0);
    assert_int_equal(acted.unchanged, 1);
    assert_count("outbox_audit", 0);
    assert_int_equal(act(admin_ops->retry, admin, "failed", NULL, &acted), HK_OK);
    assert_int_equal(acted.changed, 1);
    assert_int_equal(act(admin_ops->retry, admin, "scheduled", NULL, &acted), HK_OK);
    const struct hk_heads *heads = NULL;
    struct hk_err err = {0};
    const struct hk_scan scan = {
        .source = HK_FROM_RETRY, .after_due_ms = INT64_MIN, .destination = "a", .limit = 10};
    assert_int_equal(store_kind->ops->scan(store, &scan, &heads, &err), HK_OK);
    assert_int_equal(heads->n, 2);
    assert_value("attempts || last_error FROM outbox_retry WHERE message_id = 'failed'", "1it said no");
    assert_value("original_outbox_id || CASE WHEN deferred THEN ' deferred ' ELSE '' END || payload "
                 "FROM outbox_retry WHERE message_id = 'scheduled'",
                 "1 deferred p");
    assert_count("outbox", 1);
    assert_count("outbox_audit WHERE act = 'retry'", 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void several_destinations_need_a_name(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    insert("x", "a", NULL);
    insert("x", "b", NULL);
    insert("x", "b", NULL);
    struct hk_acted acted = {0};
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_INVALID);
    assert_int_equal(act(admin_ops->cancel, admin, "x", "c", NULL), HK_NOTFOUND);
    assert_count("outbox", 3);
    assert_int_equal(act(admin_ops->cancel, admin, "x", "b", &acted), HK_OK);
    assert_int_equal(acted.changed, 2);
    assert_count("outbox", 1);
    admin_ops->close(admin);
}

static void a_cancelled_requeue_closes_its_letter(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert("x", "a", NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_CONFLICT);
    store_kind->sql("UPDATE dead_letters SET status = 'retrying'");
    store_kind->sql(
        "INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, letter_id, life, payload) "
        "VALUES ('x', 'a', 'Made', 0, 1, 2, 'fixed')");
    assert_int_equal(act(admin_ops->cancel, admin, "x", NULL, NULL), HK_OK);
    assert_value("status || resolution FROM dead_letters", "discardedcancelled");
    assert_value("payload FROM outbox_cancelled", "fixed");
    assert_count("outbox_messages", 1);
    assert_value("status FROM outbox_messages", "cancelled");
    suite_close(store);
    admin_ops->close(admin);
}

/* Of a requeued fan-out one part died again, which opened the letter, and another one waits: to cancel that one says nothing
 * of the first. */
static void a_cancelled_part_leaves_the_letter_of_one_that_died(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    insert("x", "a", NULL);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    store_kind->sql("INSERT INTO outbox_retry (message_id, destination, event_type, due_ms, letter_id, life) "
                    "VALUES ('x', 'b', 'Made', 0, 1, 2)");
    assert_int_equal(act(admin_ops->cancel, admin, "x", "b", NULL), HK_OK);
    assert_count("outbox_cancelled WHERE destination = 'b'", 1);
    assert_count("dead_letters WHERE status = 'failed' AND resolved_at IS NULL", 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void an_open_breaker_is_shown_while_it_is_open(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store), until_ms = suite_clock_ms + 1000;
    bool changed = false;
    suite_circuit(store, lane, until_ms);
    const struct hk_store_status *st = status(admin);
    assert_true(st->n_dests == 1 && !st->dests[0].paused);
    assert_text(st->dests[0].name, "a");
    assert_text(st->dests[0].actor, "");
    assert_int_equal(st->dests[0].open_until_ms, until_ms);
    assert_int_equal(st->dests[0].since_ms, 0);
    assert_int_equal(admin_ops->pause(admin, "a", true, "ann", "works", &changed, NULL), HK_OK);
    st = status(admin);
    assert_true(st->n_dests == 1 && st->dests[0].paused);
    assert_int_equal(st->dests[0].open_until_ms, until_ms);
    suite_clock_ms += 1000;
    st = status(admin);
    assert_int_equal(st->dests[0].open_until_ms, 0);
    suite_circuit(store, lane, suite_clock_ms + 1000);
    assert_int_equal(admin_ops->pause(admin, "a", false, "ann", "done", &changed, NULL), HK_OK);
    assert_int_equal(status(admin)->n_dests, 0); /* a person says that it is well */
    suite_close(store);
    admin_ops->close(admin);
}

static int64_t polled_open_until(struct hk_store *store)
{
    const struct hk_poll *poll = NULL;
    struct hk_err err = {0};
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed);
    return poll->n_dests ? poll->dests[0].open_until_ms : 0;
}

static void a_resume_closes_the_breaker_of_one_that_is_not_paused(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store), until_ms = suite_clock_ms + 60000;
    bool changed = false;
    suite_circuit(store, lane, until_ms);
    assert_int_equal(polled_open_until(store), until_ms);
    assert_int_equal(admin_ops->pause(admin, "a", false, "ann", "mended", &changed, NULL), HK_OK);
    assert_true(changed);
    assert_int_equal(polled_open_until(store), 0); /* so that every relay closes its own */
    assert_int_equal(status(admin)->n_dests, 0);
    assert_count("outbox_audit WHERE act = 'resume' AND actor = 'ann' AND destination = 'a'", 1);
    suite_clock_ms += 1000;
    assert_int_equal(admin_ops->pause(admin, "a", false, "ann", "mended", &changed, NULL), HK_OK);
    assert_false(changed);
    /* its open time is over, and nobody has probed it: alerts still see it */
    suite_circuit(store, lane, suite_clock_ms + 10);
    suite_clock_ms += 1000;
    assert_int_equal(admin_ops->pause(admin, "a", false, "ann", "mended", &changed, NULL), HK_OK);
    assert_true(changed);
    assert_count("outbox_destination WHERE open_until_ms <> 0 OR paused_total_ms <> 0", 0);
    assert_count("outbox_audit", 2);
    suite_close(store);
    admin_ops->close(admin);
}

static void pauses_are_seen_by_the_relay_and_kept_with_who_and_why(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    bool changed = false;
    const struct hk_poll *poll = NULL;
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_int_equal(admin_ops->pause(admin, "a", true, "ann", "works", &changed, &err), HK_OK);
    assert_true(changed);
    assert_int_equal(store_kind->ops->poll(store, &poll, &err), HK_OK);
    assert_true(poll->changed && poll->n_dests == 1 && poll->dests[0].paused);
    const struct hk_store_status *st = status(admin);
    assert_true(st->n_dests == 1 && st->dests[0].paused);
    assert_text(st->dests[0].actor, "ann");
    assert_text(st->dests[0].reason, "works");
    assert_int_equal(st->dests[0].since_ms, suite_clock_ms);
    assert_int_equal(admin_ops->pause(admin, "a", true, "bob", "more", &changed, &err), HK_OK);
    assert_false(changed);
    assert_value("actor FROM outbox_destination", "bob");
    assert_int_equal(admin_ops->pause(admin, "a", false, "bob", "done", &changed, &err), HK_OK);
    assert_true(changed);
    assert_int_equal(admin_ops->pause(admin, "a", false, "bob", "done", &changed, &err), HK_OK);
    assert_false(changed);
    assert_int_equal(status(admin)->n_dests, 0);
    assert_count("outbox_audit", 3);
    assert_count(
        "outbox_audit WHERE (id = 1 AND act = 'pause' AND actor = 'ann') "
        "OR (id = 2 AND act = 'pause' AND actor = 'bob') OR (id = 3 AND act = 'resume' AND actor = 'bob')",
        3);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- no memory ---- */

static long allowed; /* allocations before the failing one; -1 = no limit */
static bool for_ever;

static bool refuse(void)
{
    if (allowed < 0)
        return false;
    if (allowed > 0) {
        allowed--;
        return false;
    }
    if (!for_ever)
        allowed = -1;
    return true;
}

static void *choosy_resize(void *arg, void *ptr, size_t bytes)
{
    (void)arg;
    return refuse() ? NULL : realloc(ptr, bytes);
}

static void choosy_release(void *arg, void *ptr)
{
    (void)arg;
    free(ptr);
}

static enum hk_code do_all(void)
{
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    const struct hk_rows *rows = NULL;
    const struct hk_shown *shown = NULL;
    const struct hk_store_status *st = NULL;
    const struct hk_relays *all = NULL;
    const struct hk_str *ids = NULL;
    struct hk_acted acted = {0};
    bool changed = false;
    const struct hk_enqueue item = {.message = {.event_type = "A", .message_id = "oom"}};
    const struct hk_act a = {"oom", NULL, "ann", "because"};
    enum hk_code rc = admin_ops->open(store_kind->url(), &(struct hk_store_options){0}, &admin, &err);
    if (rc == HK_OK)
        rc = admin_ops->enqueue(admin, &item, 1, &ids, &err);
    if (rc == HK_OK)
        rc = admin_ops->list(admin, &(struct hk_list){.limit = 50}, &rows, &err);
    if (rc == HK_OK)
        rc = admin_ops->show(admin, "oom", 10, &shown, &err);
    if (rc == HK_OK)
        rc = admin_ops->status(admin, &st, &err);
    if (rc == HK_OK)
        rc = admin_ops->relays(admin, &all, &err);
    if (rc == HK_OK)
        rc = admin_ops->cancel(admin, &a, &acted, &err);
    if (rc == HK_OK)
        rc = admin_ops->pause(admin, "a", true, "ann", "because", &changed, &err);
    admin_ops->close(admin);
    return rc;
}

static void every_failing_allocation_is_survived(void **state)
{
    (void)state;
    suite_fill(40, "a", NULL);
    for (int mode = 0; mode < 2; mode++) {
        bool done = false;
        for (long k = 0; !done; k++) {
            struct hk_allocator allocator = {.resize = choosy_resize, .release = choosy_release};
            allowed = k;
            for_ever = mode == 1;
            hk_allocator_set(&allocator);
            enum hk_code rc = do_all();
            done = allowed > 0;
            allowed = -1;
            hk_allocator_set(NULL);
            assert_true(rc == HK_OK || rc == HK_NOMEM);
            assert_true(k < 2000);
        }
    }
}

/* ---- figures ---- */

static const struct hk_figures *figures(struct hk_admin *admin)
{
    const struct hk_figures *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = admin_ops->figures(admin, &out, &err);
    NOTE_IF(rc != HK_OK, "figures: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

static struct hk_figure figure(const char *destination, uint64_t n)
{
    struct hk_figure f = {.destination = hk_str_of(destination),
                          .window_ms = 60000,
                          .seen = n,
                          .sent = n + 1,
                          .failed = n + 2,
                          .dead = n + 3,
                          .in_flight = n + 4,
                          .ready_at_ms = suite_clock_ms + 500,
                          .breaker = hk_str_of("closed"),
                          .last_error = hk_str_of("it's \\ \"no\" — {ちがう}"),
                          .last_error_ms = suite_clock_ms - 7};
    hk_histogram_add(&f.latency, 3);
    hk_histogram_add(&f.latency, 1000);
    return f;
}

static void figures_are_read_as_they_were_put_until_their_lane_is_gone(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    assert_int_equal(figures(admin)->n, 0);
    int64_t lane = suite_acquire(store);
    struct hk_figure two[] = {figure("b", 100), figure("a", 5)};
    assert_int_equal(admin_ops->figures_put(admin, lane, two, 2, &err), HK_OK);
    two[0] = figure("b", 200);
    two[0].last_error = (struct hk_str){"", 0};
    assert_int_equal(admin_ops->figures_put(admin, lane, two, 1, &err), HK_OK); /* replaces */
    const struct hk_figures *f = figures(admin);
    assert_int_equal(f->n, 2);
    assert_text(f->items[0].destination, "a");
    assert_int_equal(f->items[0].lane, lane);
    assert_int_equal(f->items[0].at_ms, suite_clock_ms);
    assert_true(f->items[0].fresh);
    assert_int_equal(f->items[0].window_ms, 60000);
    assert_int_equal(f->items[0].seen, 5);
    assert_int_equal(f->items[0].sent, 6);
    assert_int_equal(f->items[0].failed, 7);
    assert_int_equal(f->items[0].dead, 8);
    assert_int_equal(f->items[0].in_flight, 9);
    assert_int_equal(f->items[0].ready_at_ms, suite_clock_ms + 500);
    assert_text(f->items[0].breaker, "closed");
    assert_text(f->items[0].last_error, "it's \\ \"no\" — {ちがう}");
    assert_int_equal(f->items[0].last_error_ms, suite_clock_ms - 7);
    assert_int_equal(hk_histogram_count(&f->items[0].latency), 2);
    assert_int_equal(hk_histogram_quantile(&f->items[0].latency, 0.5), 3);
    assert_int_equal(f->items[1].seen, 200);
    assert_int_equal(f->items[1].last_error.len, 0);
    assert_int_equal(admin_ops->figures_put(admin, lane + 1, two, 2, &err), HK_CONFLICT);
    suite_clock_ms += HK_FIGURES_FRESH_MS - 1; /* and the lease has not ended yet */
    assert_true(figures(admin)->items[0].fresh);
    suite_clock_ms += 1;
    assert_int_equal(figures(admin)->n, 0); /* its relay is not heard of any more */
    assert_count("outbox_figures", 2);
    int64_t next = suite_acquire(store); /* takes over */
    assert_count("outbox_figures", 0);
    assert_int_equal(admin_ops->figures_put(admin, next, two, 1, &err), HK_OK);
    suite_clock_ms += HK_FIGURES_FRESH_MS - 1;
    suite_exchange(store, next, NULL, 0, NULL, 0); /* renews the lease */
    suite_clock_ms += 1;
    assert_int_equal(figures(admin)->n, 1);
    assert_false(figures(admin)->items[0].fresh);
    assert_int_equal(store_kind->ops->release(store, next, &err), HK_OK);
    assert_count("outbox_figures", 0);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- order ---- */

static void keyed(const char *message_id, const char *key)
{
    char sql[300];
    snprintf(
        sql, sizeof sql,
        "INSERT INTO outbox (message_id, destination, event_type, message_key) VALUES ('%s', 'a', 'Made', '%s')",
        message_id, key);
    store_kind->sql(sql);
}

static uint64_t blocked(struct hk_admin *admin, const char *destination, bool skip_dead)
{
    struct hk_err err = {0};
    struct hk_blocking b[] = {{.destination = "none"}, {.destination = destination, .skip_dead = skip_dead}};
    enum hk_code rc = admin_ops->blocked(admin, b, 2, false, &err);
    NOTE_IF(rc != HK_OK, "blocked: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(b[0].n.n, 0);
    assert_false(b[1].n.about);
    uint64_t n = b[1].n.n;
    assert_int_equal(admin_ops->blocked(admin, b, 2, true, &err), HK_OK);
    assert_int_equal(b[1].n.n, n);
    return n;
}

static const struct hk_why *why(struct hk_admin *admin, enum hk_place place, int64_t id, const char *key,
                                bool skip_dead)
{
    const struct hk_why *out = NULL;
    struct hk_err err = {0};
    const struct hk_why_ask ask = {
        .place = place, .id = id, .destination = "a", .key = hk_str_of(key), .skip_dead = skip_dead};
    enum hk_code rc = admin_ops->why(admin, &ask, &out, &err);
    NOTE_IF(rc != HK_OK, "why: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

#define assert_head(w, wanted_state, id)                                                                     \
    do {                                                                                                     \
        assert_int_equal((w)->head, wanted_state);                                                           \
        assert_text((w)->head_message_id, id);                                                               \
    } while (0)

/* Of key k: 1 is retried, 2 and 3 wait. Of key d: 4 is dead, 5 waits. 6 has another key, 7 none, 8 is for later. */
static int64_t fill_keys(struct hk_store *store)
{
    const char *const keys[] = {"k", "k", "k", "d", "d", "z"};

    for (int i = 0; i < 6; i++) {
        char id[16];
        snprintf(id, sizeof id, "m%d", i + 1);
        keyed(id, keys[i]);
    }
    insert("m7", "a", NULL);
    store_kind->sql("INSERT INTO outbox (message_id, destination, event_type, message_key, not_before) "
                    "VALUES ('m8', 'a', 'Made', 'k', '2028-01-01T00:00:00Z')");
    int64_t lane = suite_acquire(store);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    s = suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 4), HK_FROM_OUTBOX, 4, HK_SETTLE_DEAD);
    suite_settle_one(store, lane, &s);
    return lane;
}

static void what_waits_behind_a_head_is_counted(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    assert_int_equal(blocked(admin, "a", false), 0);
    fill_keys(store);
    assert_int_equal(blocked(admin, "a", false), 3);
    assert_int_equal(blocked(admin, "a", true), 2);
    store_kind->sql("INSERT INTO outbox_retry (message_id, destination, event_type, message_key, due_ms) "
                    "VALUES ('later', 'a', 'Made', 'k', 4000000000000)"); /* behind m1, due or not */
    assert_int_equal(blocked(admin, "a", false), 4);
    store_kind->sql("UPDATE dead_letters SET status = 'discarded'");
    assert_int_equal(blocked(admin, "a", false), 3);
    suite_close(store);
    admin_ops->close(admin);
}

static void the_head_of_a_key_is_named(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = fill_keys(store);
    const struct hk_why *w = why(admin, HK_IN_OUTBOX, 3, "k", false);
    assert_head(w, HK_RETRYING, "m1");
    assert_int_equal(w->head_due_ms, suite_clock_ms + 1000);
    assert_int_equal(w->relays_running, 1);
    assert_int_equal(w->lane, 0);
    assert_int_equal(w->now_ms, suite_clock_ms);
    assert_int_equal(w->ahead.n, 1); /* m2 */
    assert_int_equal(why(admin, HK_IN_RETRY, 1, "k", false)->head, HK_STATE_NONE);
    w = why(admin, HK_IN_OUTBOX, 5, "d", false);
    assert_head(w, HK_STATE_DEAD, "m4");
    assert_int_equal(w->head_place, HK_IN_DEAD);
    assert_int_equal(w->head_id, 1);
    assert_int_equal(why(admin, HK_IN_OUTBOX, 5, "d", true)->head, HK_STATE_NONE);
    assert_int_equal(why(admin, HK_IN_OUTBOX, 6, "z", false)->head, HK_STATE_NONE);
    assert_int_equal(why(admin, HK_IN_OUTBOX, 3, "", false)->head, HK_STATE_NONE);
    keyed("m9", "z");
    assert_head(why(admin, HK_IN_OUTBOX, 9, "z", false), HK_PENDING, "m6");
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 6);
    w = why(admin, HK_IN_OUTBOX, 9, "z", false);
    assert_head(w, HK_PROCESSING, "m6");
    w = why(admin, HK_IN_OUTBOX, 6, "z", false);
    assert_int_equal(w->head, HK_STATE_NONE);
    assert_int_equal(w->lane, lane);
    assert_text(w->relay, "relay");
    assert_int_equal(w->claimed_ms, suite_clock_ms);
    assert_int_equal(w->until_ms, suite_clock_ms + 30000);
    struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, 6, HK_SETTLE_RETRY);
    suite_settle_one(store, lane, &s);
    suite_clock_ms += 2000;
    suite_claim(store, lane, HK_FROM_RETRY, 2);
    assert_head(why(admin, HK_IN_OUTBOX, 9, "z", false), HK_PROCESSING, "m6");
    assert_int_equal(why(admin, HK_IN_RETRY, 2, "z", false)->lane, lane);
    suite_clock_ms += 40000;
    assert_int_equal(why(admin, HK_IN_OUTBOX, 9, "z", false)->relays_running, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void why_tells_of_pauses_and_breakers(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    bool changed = false;
    struct hk_err err = {0};
    int64_t lane = suite_acquire(store), until_ms = suite_clock_ms + 1000;
    insert("m1", "a", NULL);
    suite_circuit(store, lane, until_ms);
    assert_int_equal(why(admin, HK_IN_OUTBOX, 1, "", false)->open_until_ms, until_ms);
    assert_false(why(admin, HK_IN_OUTBOX, 1, "", false)->paused);
    assert_int_equal(admin_ops->pause(admin, "a", true, "ann", "because", &changed, &err), HK_OK);
    const struct hk_why *w = why(admin, HK_IN_OUTBOX, 1, "", false);
    assert_true(w->paused);
    assert_text(w->actor, "ann");
    assert_text(w->reason, "because");
    assert_int_equal(w->since_ms, suite_clock_ms);
    suite_close(store);
    admin_ops->close(admin);
}

static void everything_is_counted_when_asked_for(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    const struct hk_store_status *s = NULL;
    struct hk_err err = {0};
    fill_all_states(store);
    assert_int_equal(admin_ops->status_exact(admin, &s, &err), HK_OK);
    assert_int_equal(s->due.n, 1);
    assert_int_equal(s->dead.n, 1);
    assert_int_equal(s->sent.n, 1);
    assert_int_equal(s->dests[0].dead.n, 1);
    assert_int_equal(s->dests[1].pending.n, 2);
    suite_close(store);
    admin_ops->close(admin);
}

size_t admin_suite_tests(struct CMUnitTest *out, size_t room)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
    const struct CMUnitTest tests[] = {
        TEST(what_is_enqueued_is_what_was_given),
        TEST(a_batch_is_written_whole_or_not_at_all),
        TEST(status_counts_every_state),
        TEST(the_list_agrees_with_the_view),
        TEST(pages_show_every_message_once),
        TEST(show_has_all_facts_and_the_attempts),
        TEST(what_is_cancelled_is_not_claimed),
        TEST(what_is_in_flight_cannot_be_changed),
        TEST(retry_makes_due_what_waits),
        TEST(a_forced_message_is_found_until_an_attempt_is_settled),
        TEST(what_may_overtake_others_cannot_be_forced),
        TEST(several_destinations_need_a_name),
        TEST(a_cancelled_requeue_closes_its_letter),
        TEST(a_cancelled_part_leaves_the_letter_of_one_that_died),
        TEST(an_open_breaker_is_shown_while_it_is_open),
        TEST(a_resume_closes_the_breaker_of_one_that_is_not_paused),
        TEST(pauses_are_seen_by_the_relay_and_kept_with_who_and_why),
        TEST(relays_are_told_with_what_they_have_in_hand),
        TEST(every_failing_allocation_is_survived),
        TEST(figures_are_read_as_they_were_put_until_their_lane_is_gone),
        TEST(what_waits_behind_a_head_is_counted),
        TEST(the_head_of_a_key_is_named),
        TEST(why_tells_of_pauses_and_breakers),
        TEST(everything_is_counted_when_asked_for),
    };
    assert_true(COUNT(tests) <= room);
    memcpy(out, tests, sizeof tests);
    return COUNT(tests);
}
