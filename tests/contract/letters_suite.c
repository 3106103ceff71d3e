/* SPDX-License-Identifier: Apache-2.0 */
/* Dead letters: looking at them, and the trail. What people do with them is in letters_suite_acts.c, jobs in
 * letters_suite_redrive.c. */
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "letters_suite_impl.h"
#include "payload/filter.h"

const struct hk_store_letters_ops *letters_ops;
const struct letters_dialect *letters_dialect;

/* ---- what the suite is made of ---- */

void letters_fill(struct hk_store *store, int64_t lane, int n, const char *key)
{
    char sql[300];
    for (int i = 1; i <= n; i++) {
        suite_clock_ms += 1000;
        snprintf(
            sql, sizeof sql,
            "INSERT INTO outbox (message_id, destination, event_type, message_key, correlation_id, payload) "
            "VALUES ('m%d', 'a', 'Made', %s%s%s, 'c%d', 'p%d')",
            i, key ? "'" : "", key ? key : "NULL", key ? "'" : "", i, i);
        store_kind->sql(sql);
        snprintf(sql, sizeof sql, "SELECT max(id) FROM outbox WHERE message_id = 'm%d'", i);
        int64_t id = suite_number(sql);
        int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, id);
        struct hk_settle s = suite_settle(claim, HK_FROM_OUTBOX, id, HK_SETTLE_DEAD);
        suite_settle_one(store, lane, &s);
    }
}

static const struct hk_letters *list_page(struct hk_admin *admin, const struct hk_letter_query *query,
                                          const struct hk_letter_page *page)
{
    const struct hk_letters *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->list(admin, query, page, &out, &err);
    NOTE_IF(rc != HK_OK, "list: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

const struct hk_letters *letters_list(struct hk_admin *admin, const struct hk_letter_query *query)
{
    return list_page(
        admin, query,
        &(struct hk_letter_page){.limit = 1000, .oldest_first = true, .details = true, .payload_max = 1000});
}

const struct hk_letter_shown *letters_show(struct hk_admin *admin, int64_t id)
{
    const struct hk_letter_shown *out = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->show(admin, id, 1000, &out, &err);
    NOTE_IF(rc != HK_OK, "show: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    return out;
}

struct hk_letter_done letters_act(letters_act_fn *fn, struct hk_admin *admin, int64_t id)
{
    const struct hk_letter_act act = {.ids = &id, .n = 1, .actor = "ann", .reason = "because"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = fn(admin, &act, &done, &err);
    NOTE_IF(rc != HK_OK, "act: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(done->n, 1);
    assert_int_equal(done->items[0].id, id);
    assert_int_equal(done->changed, done->items[0].did == HK_DID_IT);
    return done->items[0];
}

struct hk_letter_done letters_requeue(struct hk_admin *admin, int64_t id, enum hk_requeue_id ids)
{
    const struct hk_letter_act act = {.ids = &id, .n = 1, .actor = "ann", .reason = "because"};
    const struct hk_letters_done *done = NULL;
    struct hk_err err = {0};
    enum hk_code rc = letters_ops->requeue(admin, &act, ids, &done, &err);
    NOTE_IF(rc != HK_OK, "requeue: %s\n", err.message);
    assert_int_equal(rc, HK_OK);
    assert_int_equal(done->n, 1);
    return done->items[0];
}

int64_t letters_retry_of(int64_t letter_id)
{
    char sql[100];
    snprintf(sql, sizeof sql, "SELECT id FROM outbox_retry WHERE letter_id = %lld", (long long)letter_id);
    return suite_number(sql);
}

void letters_try_again(struct hk_store *store, int64_t lane, int64_t retry_id, enum hk_settle_kind kind)
{
    int64_t claim = suite_claim(store, lane, HK_FROM_RETRY, retry_id);
    struct hk_settle s = suite_settle(claim, HK_FROM_RETRY, retry_id, kind);
    suite_settle_one(store, lane, &s);
}

/* A row tells the digest of its list, and has no list when it tells none. */
static void verify_list(const struct hk_audit_row *row)
{
    static const char key[] = "\"list\":\"";
    char detail[2000];
    assert_true(hk_str_copy(detail, sizeof detail, row->detail));
    const char *at = strstr(detail, key);
    assert_int_equal(row->list.len, at ? HK_AUDIT_HASH_MAX - 1 : 0);
    if (at)
        assert_memory_equal(at + sizeof key - 1, row->list.ptr, row->list.len);
}

size_t letters_verify_audit(struct hk_admin *admin)
{
    struct hk_audit_page page = {.oldest_first = true, .limit = 7, .parts = true, .lists = true};
    const struct hk_audit_rows *rows = NULL;
    struct hk_err err = {0};
    char prev[HK_AUDIT_HASH_MAX] = "", hash[HK_AUDIT_HASH_MAX];
    size_t n = 0;
    do {
        assert_int_equal(letters_ops->audit(admin, &page, &rows, &err), HK_OK);
        if (n == 0)
            assert_true(hk_str_copy(prev, sizeof prev, rows->first_prev));
        if (n == 0 && rows->n)
            assert_int_equal(rows->first_id, rows->items[0].id);
        for (size_t i = 0; i < rows->n; i++, n++) {
            assert_text(rows->items[i].prev, prev);
            hk_audit_hash(&rows->items[i], hash);
            assert_text(rows->items[i].hash, hash);
            memcpy(prev, hash, sizeof prev);
            verify_list(&rows->items[i]);
            assert_true(rows->items[i].id > page.after_id);
            page.after_id = rows->items[i].id;
        }
        assert_true(!rows->more || rows->last_id == page.after_id);
    } while (rows->more);
    assert_text(rows->head, prev);
    return n;
}

/* ---- the letter ---- */

static void a_letter_tells_why_it_failed_and_whose_fault_it_was(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, "k");
    const struct hk_letters *all = letters_list(admin, &(struct hk_letter_query){.statuses = 0});
    assert_int_equal(all->n, 1);
    assert_false(all->more);
    assert_int_equal(all->now_ms, suite_clock_ms);
    const struct hk_letter *l = &all->items[0];
    char print[HK_FINGERPRINT_MAX];
    hk_fingerprint(HK_CLASS_TRANSIENT, hk_str_of("HTTP_500"), hk_str_of("a"), hk_str_of("it said no"), print);
    assert_text(l->fingerprint, print);
    assert_text(l->failure_class, hk_class_name(HK_CLASS_TRANSIENT));
    assert_text(l->blame, hk_blame_name(hk_blame_of(hk_str_of("HTTP_500"), hk_str_of("HTTP_500"), 500)));
    assert_text(l->message_id, "m1");
    assert_text(l->event_type, "Made");
    assert_text(l->destination, "a");
    assert_text(l->key, "k");
    assert_text(l->correlation_id, "c1");
    assert_text(l->reason, "HTTP_500");
    assert_text(l->error, "it said no");
    assert_text(l->payload, "p1");
    assert_text(l->encoding, "utf8");
    assert_text(l->requeued_as, "");
    assert_true(l->has_payload && l->payload_bytes == 2);
    assert_true(l->id == 1 && l->outbox_id == 1 && l->status == HK_LETTER_FAILED);
    assert_true(l->attempts == 1 && l->life == 1 && l->requeues == 0 && l->version == 1 && l->redrive == 0);
    assert_false(l->possibly_delivered);
    assert_int_equal(l->created_ms, suite_clock_ms);
    assert_int_equal(l->first_failed_ms, suite_clock_ms);
    assert_int_equal(l->last_failed_ms, suite_clock_ms);
    assert_int_equal(l->last_attempt_ms, suite_clock_ms - 20);
    assert_true(l->requeued_ms == 0 && l->resolved_ms == 0 && l->edited_ms == 0 && l->sending_ms == 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void what_was_never_sent_has_no_class(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    int64_t lane = suite_acquire(store);
    suite_fill(1, "a", NULL);
    struct hk_settle s =
        suite_settle(suite_claim(store, lane, HK_FROM_OUTBOX, 1), HK_FROM_OUTBOX, 1, HK_SETTLE_DEAD);
    s.attempt = (struct hk_attempt_record){.made = false, .error = hk_str_of("too late")};
    s.reason = hk_str_of("EXPIRED");
    suite_settle_one(store, lane, &s);
    const struct hk_letter *l = &letters_list(admin, &(struct hk_letter_query){.statuses = 0})->items[0];
    assert_text(l->failure_class, "");
    assert_text(l->blame, hk_blame_name(hk_blame_of(hk_str_of("EXPIRED"), (struct hk_str){"", 0}, 0)));
    assert_int_equal(l->fingerprint.len, HK_FINGERPRINT_MAX - 1);
    assert_int_equal(l->last_attempt_ms, 0);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- looking ---- */

/* Ten letters with everything that a filter can ask for, written as they lie in the table. */
static void fill_many(void)
{
    for (int i = 1; i <= 10; i++) {
        char sql[900];
        snprintf(
            sql, sizeof sql,
            "INSERT INTO dead_letters (message_id, event_type, destination, message_key, correlation_id, reason_code, "
            "error_message, attempts, first_failed_at, last_failed_at, created_at, status, failure_class, fault, "
            "fingerprint, payload) VALUES ('m%d', '%s', '%s', %s, 'c%d', '%s', 'no %d', 3, "
            "'2027-01-1%dT07:00:00.000Z', '2027-01-1%dT07:30:00.500Z', '2027-01-1%dT07:30:00.500Z', '%s', '%s', '%s', "
            "'%016d', '{\"n\":%d}')",
            i, i % 2 ? "OrderMade" : "Order.Paid", i <= 4 ? "a" : "b", i <= 2 ? "'k'" : "NULL", i,
            i <= 7 ? "HTTP_422" : "EXPIRED", i, (i - 1) / 2, (i - 1) / 2, (i - 1) / 2,
            i == 10  ? "discarded"
            : i == 9 ? "resolved"
                     : "failed",
            i <= 7 ? "permanent" : "", i <= 7 ? "destination" : "pipeline",
            i <= 4   ? 1
            : i <= 7 ? 3
                     : 2,
            i);
        store_kind->sql(sql);
    }
}

static bool matches_odd(const void *arg, const struct hk_letter *letter)
{
    (void)arg;
    assert_true(letter->payload.len >= 7 && letter->payload_bytes == letter->payload.len);
    return (letter->payload.ptr[5] - '0') % 2 == 1;
}

#define DAY INT64_C(86400000)

static void every_term_of_a_query_must_hold(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    fill_many();
    store_kind->sql("UPDATE dead_letters SET redrive_id = 3 WHERE id IN (2, 6)");
    const int64_t first = INT64_C(1799998200500); /* 2027-01-15T07:30:00.500Z */

    const struct {
        struct hk_letter_query query;
        const char *ids;
    } cases[] = {
        {{.statuses = 0}, "1 2 3 4 5 6 7 8 9 10 "},
        {{.statuses = 1u << HK_LETTER_FAILED}, "1 2 3 4 5 6 7 8 "},
        {{.statuses = 1u << HK_LETTER_RESOLVED | 1u << HK_LETTER_DISCARDED}, "9 10 "},
        {{.statuses = 1u << HK_LETTER_RETRYING}, ""},
        {{.destination = "a"}, "1 2 3 4 "},
        {{.destination = "c"}, ""},
        {{.reason = "EXPIRED"}, "8 9 10 "},
        {{.fingerprint = "0000000000000002"}, "8 9 10 "},
        {{.fingerprint = "0000000000000003", .destination = "b"}, "5 6 7 "},
        {{.fingerprint = "0000000000000003", .destination = "a"}, ""},
        {{.message_id = "m7"}, "7 "},
        {{.correlation_id = "c3"}, "3 "},
        {{.key = "k"}, "1 2 "},
        {{.event_type = "OrderMade"}, "1 3 5 7 9 "},
        {{.event_type = "Order*"}, "1 2 3 4 5 6 7 8 9 10 "},
        {{.event_type = "*.P*d"}, "2 4 6 8 10 "},
        {{.event_type = "Order%"}, ""},
        {{.event_type = "Order_Paid"}, ""},
        {{.event_type = "order*"}, ""},
        {{.event_type = "Order?Paid*"}, ""},
        {{.event_type = "[O]rder*"}, ""},
        {{.failure_class = "permanent"}, "1 2 3 4 5 6 7 "},
        {{.blame = "pipeline"}, "8 9 10 "},
        {{.redrive = 3}, "2 6 "},
        {{.first_id = 4, .last_id = 6}, "4 5 6 "},
        {{.since_ms = first - 3 * DAY}, "5 6 7 8 9 10 "},
        {{.since_ms = first - 3 * DAY + 1}, "7 8 9 10 "},
        {{.before_ms = first - 3 * DAY}, "1 2 3 4 "},
        {{.since_ms = first - 4 * DAY, .before_ms = first - 3 * DAY}, "3 4 "},
        {{.match = matches_odd}, "1 3 5 7 9 10 "},
        {{.match = matches_odd, .destination = "b", .statuses = 1u << HK_LETTER_FAILED}, "5 7 "},
        {{.destination = "a", .reason = "HTTP_422", .key = "k", .event_type = "OrderMade", .last_id = 9},
         "1 "},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char got[100] = "";
        const struct hk_letters *letters = letters_list(admin, &cases[i].query);
        for (size_t k = 0; k < letters->n; k++)
            snprintf(got + strlen(got), sizeof got - strlen(got), "%d ", (int)letters->items[k].id);
        NOTE_IF(strcmp(got, cases[i].ids) != 0, "case %zu: %s\n", i, got);
        assert_string_equal(got, cases[i].ids);
        struct hk_count count = {0};
        struct hk_err err = {0};
        assert_int_equal(letters_ops->count(admin, &cases[i].query, &count, &err), HK_OK);
        assert_int_equal(count.n, letters->n);
        assert_false(count.about);
    }
    admin_ops->close(admin);
}

/* ---- by what they hold ---- */

static void add_letter(int id, const char *encoding, const char *payload)
{
    char *sql = malloc(strlen(payload) + 500);
    assert_non_null(sql);
    snprintf(
        sql, strlen(payload) + 500,
        "INSERT INTO dead_letters (message_id, event_type, destination, correlation_id, reason_code, "
        "error_message, attempts, first_failed_at, last_failed_at, created_at, fingerprint, encoding, payload) "
        "VALUES ('Msg-%d', 'Made', 'a', 'Corr-%d', 'HTTP_500', 'Broken Pipe %d', 1, '2027-01-10T07:00:00.000Z', "
        "'2027-01-10T07:00:00.000Z', '2027-01-10T07:00:00.000Z', 'f%d', %s, %s%s%s)",
        id, id, id, id % 2, encoding, payload[0] ? "'" : "NULL", payload, payload[0] ? "'" : "");
    store_kind->sql(sql);
    free(sql);
}

/* 70,000 bytes, and what is looked for lies across the 65,536th. */
static void add_long_letter(int id)
{
    static char payload[70001];
    memset(payload, 'x', sizeof payload - 1);
    memcpy(payload, "{\"text\":\"", 9);
    memcpy(payload + 65524, "\",\"id\":987654321,\"u\":\"", 22);
    memcpy(payload + sizeof payload - 3, "\"}", 2);
    add_letter(id, "NULL", payload);
}

static void fill_payloads(void)
{
    add_letter(1, "NULL", "{\"id\":42,\"name\":\"Taro\"}");
    add_letter(2, "NULL", "{\"id\":\"42\",\"name\":\"TARO\"}");
    add_letter(3, "NULL", "{\"id\":\"\\u00342\",\"name\":\"\\u0054aro\"}"); /* the same, written otherwise */
    add_letter(4, "NULL", "{\"id\":142,\"x\":\"42 \",\"name\":\"\\u6771\\u4eac\"}");
    add_letter(5, "'Base64'", "eyJpZCI6NDIsIm5hbWUiOiJUYXJvIn0="); /* letter 1 */
    add_letter(6, "'utf-8'", "not JSON: taro");
    add_letter(7, "NULL", ""); /* none */
    add_letter(8, "NULL", "{\"id\":420,\"name\":\"東京\",\"path\":\"a\\/b\"}");
    add_long_letter(9);
    add_letter(10, "NULL", "{\"id\":null,\"name\":\"\",\"id2\":-42.5e3}");
}

static unsigned found_by(struct hk_admin *admin, const char *text, bool oldest_first)
{
    struct hk_filter *filter = NULL;
    struct hk_err err = {0};
    unsigned found = 0;
    NOTE_IF(hk_filter_parse(text, 0, &filter, &err) != HK_OK, "%s: %s\n", text, err.message);
    assert_non_null(filter);
    struct hk_letter_page page = {.limit = 2, .oldest_first = oldest_first};
    const struct hk_letters *letters = NULL;
    do {
        letters = list_page(admin, hk_filter_query(filter), &page);
        for (size_t i = 0; i < letters->n; i++)
            found |= 1u << letters->items[i].id;
        page.after_id = letters->last_id;
    } while (letters->more);
    struct hk_count count = {0};
    const struct hk_letter_groups *groups = NULL;
    uint64_t n = 0;
    for (unsigned rest = found; rest; rest &= rest - 1)
        n++;
    assert_int_equal(letters_ops->count(admin, hk_filter_query(filter), &count, &err), HK_OK);
    assert_true(count.n == n && !count.about);
    assert_int_equal(letters_ops->groups(admin, hk_filter_query(filter), 5, &groups, &err), HK_OK);
    assert_int_equal(groups->letters, n);
    hk_filter_free(filter);
    return found;
}

#define LETTER(id) (1u << (id))

/* However a value is written, and wherever it stands: what is left out before a letter is read would not have matched. */
static void letters_are_found_by_what_they_hold(void **state)
{
    (void)state;

    static const struct {
        const char *filter;
        unsigned letters;
    } cases[] = {
        {"payload.id:42", LETTER(1) | LETTER(2) | LETTER(3) | LETTER(5)},
        {"payload.id:142", LETTER(4)},
        {"payload.id:4", 0},
        {"payload.id:null", LETTER(10)},
        {"payload.id2:-42.5e3", LETTER(10)},
        {"payload.id:987654321", LETTER(9)},
        {"payload.id:98765432", 0},
        {"payload.name:Taro", LETTER(1) | LETTER(3) | LETTER(5)},
        {"payload.name:taro", 0},
        {"payload.name:\"\"", LETTER(10)},
        {"payload.name:東京", LETTER(4) | LETTER(8)},
        {"payload.path:a/b", LETTER(8)},
        {"payload.x:\"42 \"", LETTER(4)},
        {"payload.id:42 payload.name:TARO", LETTER(2)},
        {"text:tARo", LETTER(1) | LETTER(2) | LETTER(3) | LETTER(5) | LETTER(6)},
        {"text:東京", LETTER(4) | LETTER(8)},
        {"text:\"pipe 7\"", LETTER(7)},
        {"text:CORR-4", LETTER(4)},
        {"text:msg-1", LETTER(1) | LETTER(10)},
        {"text:a/b", LETTER(8)},
        {"text:taro payload.id:42", LETTER(1) | LETTER(2) | LETTER(3) | LETTER(5)},
        {"text:\"no such text\"", 0},
        {"text:'", 0},
        {"text:%", 0},
        {"text:\"\\\\\"", LETTER(3) | LETTER(4) | LETTER(8)},
        {"payload.name:\"%_\"", 0},
    };
    struct hk_admin *admin = admin_open();
    fill_payloads();
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int way = 0; way < 2; way++) {
            unsigned found = found_by(admin, cases[i].filter, way == 1);
            NOTE_IF(found != cases[i].letters, "%s: %x\n", cases[i].filter, found);
            assert_int_equal(found, cases[i].letters);
        }
    admin_ops->close(admin);
}

static void pages_show_every_letter_once_in_both_directions(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    fill_many();
    const size_t expected[] = {10, 6, 6};
    for (int way = 0; way < 2; way++)
        for (uint32_t limit = 1; limit <= 11; limit++)
            for (int filter = 0; filter < 3; filter++) {
                const struct hk_letter_query query = {.match = filter == 1 ? matches_odd : NULL,
                                                      .destination = filter == 2 ? "b" : NULL};
                struct hk_letter_page page = {
                    .limit = limit, .oldest_first = way == 1, .looks = limit < 4 ? limit : 0};
                const struct hk_letters *letters;
                int64_t last = way ? 0 : INT64_MAX;
                size_t n = 0;
                do {
                    letters = list_page(admin, &query, &page);
                    assert_true(letters->n <= limit && letters->looked >= letters->n);
                    assert_true(page.looks == 0 || letters->looked <= page.looks + letters->n);
                    for (size_t i = 0; i < letters->n; i++, n++) {
                        assert_true(way ? letters->items[i].id > last : letters->items[i].id < last);
                        last = letters->items[i].id;
                        assert_int_equal(letters->items[i].payload.len, 0); /* nobody asked for it */
                    }
                    page.after_id = letters->last_id;
                } while (letters->more);
                assert_int_equal(n, expected[filter]);
            }
    admin_ops->close(admin);
}

static void a_page_with_nothing_asked_for_is_empty(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letters *letters =
        list_page(admin, &(struct hk_letter_query){.statuses = 0}, &(struct hk_letter_page){.limit = 5});
    assert_true(letters->n == 0 && !letters->more);
    fill_many();
    letters =
        list_page(admin, &(struct hk_letter_query){.statuses = 0}, &(struct hk_letter_page){.limit = 0});
    assert_true(letters->n == 0 && !letters->more);
    letters = list_page(admin, &(struct hk_letter_query){.statuses = 0},
                        &(struct hk_letter_page){.limit = 5, .payload_max = 4});
    assert_int_equal(letters->n, 5);
    assert_true(letters->items[0].id == 10 && letters->items[0].payload_bytes == 8);
    assert_text(letters->items[0].payload, "{\"n\"");
    admin_ops->close(admin);
}

/* Hours of UTC, of which the last one has begun. */
static void groups_are_counted_by_the_hour(void **state)
{
    (void)state;
    static const char *const times[] = {"2027-01-13T09:29:00.000Z", "2027-01-13T09:00:00.000Z",
                                        "2027-01-13T08:59:59.999Z", "2027-01-12T10:00:00.000Z"};
    const int64_t before_ms = suite_clock_ms;
    uint64_t hours[HK_LETTER_HOURS] = {7};
    struct hk_letter_span any = {.looks = 1000}, newest = {.from_id = 2, .looks = 10}, one = {.looks = 1};
    struct hk_err err = {0};
    suite_clock_ms = INT64_C(1799832600000); /* 2027-01-13T09:30:00Z */
    struct hk_admin *admin = admin_open();
    fill_many();
    for (size_t i = 0; i < COUNT(times); i++) {
        char sql[120];
        (void)snprintf(sql, sizeof sql, "UPDATE dead_letters SET last_failed_at = '%s' WHERE id = %zu",
                       times[i], i + 1);
        store_kind->sql(sql);
    }
    assert_int_equal(letters_ops->hours(admin, "0000000000000001", &any, hours, &err), HK_OK);
    for (size_t i = 0; i < HK_LETTER_HOURS; i++)
        assert_int_equal(hours[i], i == 0 || i == HK_LETTER_HOURS - 2 ? 1 : i == HK_LETTER_HOURS - 1 ? 2 : 0);
    store_kind->sql("UPDATE dead_letters SET last_failed_at = '2027-01-12T09:59:59.999Z' WHERE id = 4");
    store_kind->sql("UPDATE dead_letters SET status = 'discarded' WHERE id = 3");
    assert_int_equal(letters_ops->hours(admin, "0000000000000001", &any, hours, &err), HK_OK);
    for (size_t i = 0; i < HK_LETTER_HOURS; i++)
        assert_int_equal(hours[i], i == HK_LETTER_HOURS - 1 ? 2 : 0);
    assert_int_equal(any.looks,
                     1000 - 4 - 3); /* all open letters of the group, also those that failed before */
    assert_int_equal(letters_ops->hours(admin, "0000000000000001", &newest, hours, &err), HK_OK);
    assert_true(hours[HK_LETTER_HOURS - 1] == 1 && newest.looks == 8); /* 2; 4 failed before */
    assert_int_equal(letters_ops->hours(admin, "0000000000000001", &one, hours, &err), HK_OK);
    assert_true(hours[HK_LETTER_HOURS - 1] == 0 && one.looks == 0); /* 4 */
    assert_int_equal(letters_ops->hours(admin, "of nothing", &any, hours, &err), HK_OK);
    assert_int_equal(hours[HK_LETTER_HOURS - 1], 0);
    admin_ops->close(admin);
    suite_clock_ms = before_ms;
}

static void groups_are_what_failed_alike(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {0};
    fill_many();
    const struct hk_letter_query open = {.statuses = 1u << HK_LETTER_FAILED};
    assert_int_equal(letters_ops->groups(admin, &open, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->n, 3);
    assert_int_equal(groups->letters, 8);
    assert_false(groups->more);
    const struct hk_letter_group *g = &groups->items[0];
    assert_int_equal(g->n, 4);
    assert_text(g->fingerprint, "0000000000000001");
    assert_text(g->destination, "a");
    assert_text(g->reason, "HTTP_422");
    assert_text(g->failure_class, "permanent");
    assert_text(g->blame, "destination");
    assert_int_equal(g->example_id, 4);
    assert_text(g->example_error, "no 4");
    assert_text(g->example_event_type, "Order.Paid");
    assert_text(g->example_message_id, "m4");
    assert_int_equal(g->first_ms, INT64_C(1799564400000)); /* 2027-01-10T07:00:00Z */
    assert_int_equal(g->last_ms, INT64_C(1799652600500));  /* 2027-01-11T07:30:00.500Z */
    assert_int_equal(groups->items[1].n, 3);
    assert_int_equal(groups->items[2].n, 1);
    assert_text(groups->items[2].blame, "pipeline");

    assert_int_equal(letters_ops->groups(admin, &open, 1, &groups, &err), HK_OK);
    assert_true(groups->n == 1 && groups->more && groups->letters == 8 && groups->maybe == 0);
    const struct hk_letter_query odd = {.match = matches_odd, .destination = "b"};
    assert_int_equal(letters_ops->groups(admin, &odd, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->n, 2); /* 5 and 7; 9 and 10 */
    assert_true(groups->letters == 4 && groups->items[0].n == 2);
    const struct hk_letter_query two = {.match = matches_odd, .first_id = 5, .last_id = 7};
    assert_int_equal(letters_ops->groups(admin, &two, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->items[0].last_ms, INT64_C(1799825400500)); /* 2027-01-13T07:30:00.500Z */
    store_kind->sql("UPDATE dead_letters SET first_failed_at = '2027-01-10T07:00:00.000Z' WHERE id = 7");
    store_kind->sql("UPDATE dead_letters SET last_failed_at = '2027-01-11T07:30:00.500Z' WHERE id = 7");
    store_kind->sql("UPDATE dead_letters SET last_failed_at = '2027-01-14T07:30:00.000Z' WHERE id = 5");
    assert_int_equal(letters_ops->groups(admin, &two, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->n, 1);
    assert_int_equal(groups->items[0].first_ms, INT64_C(1799564400000)); /* of any */
    assert_int_equal(groups->items[0].last_ms, INT64_C(1799911800000));  /* 2027-01-14T07:30:00Z */
    assert_int_equal(groups->items[0].example_id, 7);
    const struct hk_letter_query expired = {.reason = "EXPIRED"};
    assert_int_equal(letters_ops->groups(admin, &expired, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 1 && groups->letters == 3 && groups->items[0].example_id == 10);
    const struct hk_letter_query of_b = {.destination = "b", .statuses = 1u << HK_LETTER_FAILED};
    assert_int_equal(letters_ops->groups(admin, &of_b, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 2 && groups->letters == 4 && groups->items[0].n == 3);
    const struct hk_letter_query one = {.blame = "pipeline", .fingerprint = "0000000000000002"};
    assert_int_equal(letters_ops->groups(admin, &one, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 1 && groups->letters == 3);
    const struct hk_letter_query none = {.blame = "pipeline", .fingerprint = "0000000000000001"};
    assert_int_equal(letters_ops->groups(admin, &none, 10, &groups, &err), HK_OK);
    assert_int_equal(groups->letters, 0);
    store_kind->sql("UPDATE dead_letters SET fingerprint = NULL WHERE id = 8");
    assert_int_equal(letters_ops->groups(admin, &expired, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 2 && groups->letters == 3);
    const struct hk_letter_query nobody = {.destination = "nobody"};
    assert_int_equal(letters_ops->groups(admin, &nobody, 10, &groups, &err), HK_OK);
    assert_true(groups->n == 0 && groups->letters == 0 && !groups->more);
    admin_ops->close(admin);
}

/* Where a page holds all letters it says the same. */
static void is_alike_as_one_page(struct hk_admin *admin, const struct hk_letter_query *query,
                                 const struct hk_letter_groups *all)
{
    const struct hk_letter_groups_page page = {.limit = 10, .looks = 10};
    const struct hk_letter_groups *found = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->groups_page(admin, query, &page, &found, &err), HK_OK);
    assert_true(!found->partial && found->looked == 0 && found->about == 0 && found->next == 0);
    assert_true(found->n == all->n && found->letters == all->letters && found->maybe == all->maybe);
    assert_true(found->now_ms == all->now_ms && !found->more);
    for (size_t i = 0; i < found->n; i++) {
        const struct hk_letter_group *a = &all->items[i], *b = &found->items[i];
        assert_true(a->n == b->n && a->maybe == b->maybe && a->example_id == b->example_id);
        assert_true(a->first_ms == b->first_ms && a->last_ms == b->last_ms);
        assert_true(hk_str_eq(a->fingerprint, b->fingerprint) && hk_str_eq(a->reason, b->reason));
        assert_true(hk_str_eq(a->example_error, b->example_error));
    }
}

static void groups_of_a_page_are_of_the_newest_letters(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {0};
    fill_many();
    const struct hk_letter_query open = {.statuses = 1u << HK_LETTER_FAILED};
    struct hk_letter_groups_page page = {.limit = 10, .looks = 3}; /* 8, 7, 6 */
    assert_int_equal(letters_ops->groups_page(admin, &open, &page, &groups, &err), HK_OK);
    assert_true(groups->partial && groups->looked == 3 && groups->letters == 3 && groups->next == 6);
    assert_true(groups->n == 2 && groups->items[0].n == 2 && groups->items[0].example_id == 7);
    assert_true(groups->items[1].n == 1 && groups->items[1].example_id == 8);
    assert_int_equal(groups->about, 8); /* 3 of 3 ids: as many of the 8 up to the first */
    assert_false(groups->more);
    page.after_id = groups->next;
    page.looks = 4; /* 5, 4, 3, 2 */
    assert_int_equal(letters_ops->groups_page(admin, &open, &page, &groups, &err), HK_OK);
    assert_true(groups->partial && groups->looked == 4 && groups->next == 2 && groups->about == 5);
    assert_true(groups->n == 2 && groups->items[0].n == 3 && groups->items[1].n == 1);
    page.after_id = groups->next; /* the last one, also where the bound is the end */
    for (page.looks = 1; page.looks < 3; page.looks++) {
        assert_int_equal(letters_ops->groups_page(admin, &open, &page, &groups, &err), HK_OK);
        assert_true(!groups->partial && groups->letters == 1 && groups->looked == 0 && groups->next == 0);
    }

    /* What an index does not serve counts as looked at. */
    const struct hk_letter_query old = {.before_ms = INT64_C(1799652600500)}; /* 1 and 2 */
    page = (struct hk_letter_groups_page){.limit = 10, .looks = 9};
    assert_int_equal(letters_ops->groups_page(admin, &old, &page, &groups, &err), HK_OK);
    assert_true(groups->partial && groups->looked == 9 && groups->letters == 1 && groups->next == 2);
    page.looks = 8;
    assert_int_equal(letters_ops->groups_page(admin, &old, &page, &groups, &err), HK_OK);
    assert_true(groups->partial && groups->letters == 0 && groups->n == 0 && groups->about == 0);
    const struct hk_letter_query odd = {.match = matches_odd, .first_id = 3};
    page.looks = 4; /* 10, 9, 8, 7 */
    assert_int_equal(letters_ops->groups_page(admin, &odd, &page, &groups, &err), HK_OK);
    assert_true(groups->partial && groups->looked == 4 && groups->letters == 3 && groups->next == 7);
    assert_int_equal(groups->about, 6); /* 4 of 8 ids; of 10 the first digit counts */
    page = (struct hk_letter_groups_page){.limit = 10, .looks = 4, .after_id = 7}; /* 6, 5, 4, 3 */
    assert_int_equal(letters_ops->groups_page(admin, &odd, &page, &groups, &err), HK_OK);
    assert_true(!groups->partial && groups->letters == 2 && groups->next == 0);
    page = (struct hk_letter_groups_page){.limit = 1, .looks = 10};
    assert_int_equal(letters_ops->groups_page(admin, &open, &page, &groups, &err), HK_OK);
    assert_true(groups->n == 1 && groups->more && !groups->partial && groups->letters == 8);
    admin_ops->close(admin);
}

/* However the groups are made: from an index, from group to group, or letter by letter. */
static void groups_tell_how_many_may_have_arrived(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_groups *groups = NULL;
    struct hk_err err = {0};
    fill_many();
    store_kind->sql("UPDATE dead_letters SET possibly_delivered = true WHERE id IN (1, 3, 4, 7, 9)");
    store_kind->sql("UPDATE dead_letters SET fingerprint = NULL WHERE id = 7");

    const struct {
        struct hk_letter_query query;
        uint64_t all, of_first;
    } cases[] = {
        {{.statuses = 0}, 5, 3},
        {{.statuses = 1u << HK_LETTER_FAILED}, 4, 3},
        {{.statuses = 1u << HK_LETTER_DISCARDED}, 0, 0},
        {{.destination = "a"}, 3, 3},
        {{.destination = "b", .statuses = 1u << HK_LETTER_FAILED}, 1, 0},
        {{.reason = "EXPIRED"}, 1, 1},
        {{.fingerprint = "0000000000000001"}, 3, 3},
        {{.fingerprint = "0000000000000003"}, 0, 0},
        {{.first_id = 2, .last_id = 3}, 1, 1},
        {{.since_ms = INT64_C(1799652600500)}, 4, 1}, /* from letter 3 on: 8, 9 and 10 are the most */
        {{.before_ms = INT64_C(1799652600500)}, 1, 1},
        {{.event_type = "Order.Paid"}, 1, 0},
        {{.match = matches_odd, .last_id = 9}, 4, 2},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(letters_ops->groups(admin, &cases[i].query, 10, &groups, &err), HK_OK);
        NOTE_IF(groups->maybe != cases[i].all || groups->items[0].maybe != cases[i].of_first,
                "case %zu: %d in all, %d of the first\n", i, (int)groups->maybe, (int)groups->items[0].maybe);
        assert_int_equal(groups->maybe, cases[i].all);
        assert_int_equal(groups->items[0].maybe, cases[i].of_first);
        is_alike_as_one_page(admin, &cases[i].query, groups);
    }
    const struct hk_letter_query open = {.statuses = 1u << HK_LETTER_FAILED};
    assert_int_equal(letters_ops->groups(admin, &open, 1, &groups, &err), HK_OK);
    assert_true(groups->n == 1 && groups->more && groups->maybe == 4);
    admin_ops->close(admin);
}

static void stats_count_by_day_reason_type_and_fate(void **state)
{
    (void)state;
    struct hk_admin *admin = admin_open();
    const struct hk_letter_stats *s = NULL;
    struct hk_err err = {0};
    assert_int_equal(letters_ops->stats(admin, &s, &err), HK_OK);
    assert_true(s->n_reasons == 0 && s->n_oldest == 0 && s->by_status[HK_LETTER_FAILED] == 0);
    fill_many();
    store_kind->sql("UPDATE dead_letters SET requeues = 1 WHERE id IN (1, 2, 9)");
    store_kind->sql("UPDATE dead_letters SET requeues = 2, status = 'retrying' WHERE id = 3");
    store_kind->sql("UPDATE dead_letters SET created_at = '2020-01-01T00:00:00.000Z' WHERE id = 4");
    assert_int_equal(letters_ops->stats(admin, &s, &err), HK_OK);
    assert_int_equal(s->now_ms, suite_clock_ms);
    assert_int_equal(s->by_status[HK_LETTER_FAILED], 7);
    assert_int_equal(s->by_status[HK_LETTER_RETRYING], 1);
    assert_int_equal(s->by_status[HK_LETTER_RESOLVED], 1);
    assert_int_equal(s->by_status[HK_LETTER_DISCARDED], 1);
    assert_int_equal(s->by_blame[HK_BLAME_DESTINATION], 6);
    assert_int_equal(s->by_blame[HK_BLAME_PIPELINE], 1);
    assert_int_equal(s->days[HK_STATS_DAYS - 1].day_ms, INT64_C(1799971200000)); /* 2027-01-15 */
    const uint64_t days[] = {2, 1, 2, 2, 2, 0};
    for (int i = 0; i < 6; i++) {
        assert_int_equal(s->days[HK_STATS_DAYS - 6 + i].n, days[i]);
        assert_int_equal(s->days[HK_STATS_DAYS - 6 + i].day_ms, INT64_C(1799971200000) - (5 - i) * DAY);
    }
    assert_int_equal(s->days[0].n, 0);
    assert_int_equal(s->n_reasons, 2);
    assert_text(s->reasons[0].name, "HTTP_422");
    assert_int_equal(s->reasons[0].n, 7);
    assert_int_equal(s->reasons[1].n, 3);
    assert_int_equal(s->n_event_types, 2);
    assert_int_equal(s->event_types[0].n, 5);
    assert_int_equal(s->n_destinations, 2);
    assert_text(s->destinations[0].name, "b");
    assert_int_equal(s->destinations[0].n, 6);
    assert_int_equal(s->n_oldest, 7);
    assert_int_equal(s->oldest[0].id, 1);
    assert_int_equal(s->oldest[6].id, 8);
    assert_int_equal(s->requeued, 4);
    assert_int_equal(s->requeued_failed, 2);
    assert_int_equal(s->requeued_resolved, 1);
    assert_int_equal(s->requeued_waiting, 1);
    admin_ops->close(admin);
}

static void show_has_the_attempts_of_all_lives_and_what_waits_behind_it(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    const struct hk_letter_shown *shown = NULL;
    int64_t lane = suite_acquire(store);
    letters_fill(store, lane, 1, "k");
    suite_fill(3, "a", "k");
    suite_fill(1, "b", "k");
    suite_fill(1, "a", "other");
    assert_int_equal(letters_show(admin, 1)->blocked, 3);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_NEW).did, HK_DID_IT);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    shown = letters_show(admin, 1);
    assert_int_equal(shown->n_attempts, 2);
    assert_int_equal(shown->attempts[0].life, 1);
    assert_int_equal(shown->attempts[1].life, 2);
    assert_text(shown->attempts[1].cause, "HTTP_500");
    assert_text(shown->letter.message_id, "m1"); /* the application's, for ever */
    assert_true(shown->letter.requeued_as.len > 10);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_NEW).did, HK_DID_IT);
    letters_try_again(store, lane, letters_retry_of(1), HK_SETTLE_DEAD);
    shown = letters_show(admin, 1);
    assert_int_equal(shown->n_attempts, 3); /* of the id in between, too */
    assert_int_equal(shown->n_acts, 2);
    assert_text(shown->acts[0].act, "requeue");
    assert_text(shown->acts[0].actor, "ann");
    assert_int_equal(shown->now_ms, suite_clock_ms);
    assert_text(shown->letter.payload, "p1");
    assert_int_equal(letters_ops->show(admin, 99, 0, &shown, &err), HK_NOTFOUND);
    suite_close(store);
    admin_ops->close(admin);
}

/* ---- the trail ---- */

/* As written down in letters.h: a link that is computed in another way, or in another version, breaks the chain. */
static void the_hash_of_a_row_is_the_same_for_ever(void **state)
{
    (void)state;
    char hash[HK_AUDIT_HASH_MAX];
    struct hk_audit_row row = {.id = 99, /* no part of it */
                               .at_ms = INT64_C(1800000000000),
                               .actor = hk_str_of("\u00e4nn"),
                               .act = hk_str_of("requeue"),
                               .message_id = hk_str_of("m1"),
                               .destination = hk_str_of("a"),
                               .reason = hk_str_of("why: 1,2"),
                               .letter_id = 7,
                               .redrive = 3,
                               .detail = hk_str_of("{\"message_id\":\"m1\"}")};
    hk_audit_hash(&row, hash);
    assert_string_equal(hash, "9962514a3882bd9c6a9ec33b6dd1bbcc8a2cc841b0d62313dab256087e0a26c6");
    row = (struct hk_audit_row){
        .at_ms = -1, .before = hk_str_of("b"), .after = hk_str_of("a"), .prev = hk_str_of(hash)};
    char next[HK_AUDIT_HASH_MAX];
    hk_audit_hash(&row, next);
    assert_string_equal(next, "9e592970f2a386f4f8133f32f509b316fa52fec0a9781bcc1b3f7922ca736ddc");
    hk_digest_hex((struct hk_str){NULL, 0}, hash);
    assert_string_equal(hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void every_act_of_every_kind_is_a_link_of_the_chain(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    struct hk_acted acted;
    bool changed = false;
    int64_t lane = suite_acquire(store);
    assert_int_equal(letters_verify_audit(admin), 0);
    letters_fill(store, lane, 5, NULL);
    suite_fill(1, "b", NULL);
    store_kind->sql("UPDATE outbox SET message_id = 'x', not_before = '2028-01-01T00:00:00Z'");
    const struct hk_act x = {"x", NULL, "änn\x1f", "because: 1,2\n"};
    assert_int_equal(admin_ops->retry(admin, &x, &acted, &err), HK_OK);
    assert_int_equal(admin_ops->cancel(admin, &x, &acted, &err), HK_OK);
    assert_int_equal(admin_ops->pause(admin, "a", true, "ann", "", &changed, &err), HK_OK);
    assert_int_equal(store_kind->ops->pause(store, "b", true, "hikyaku", "401", &err), HK_OK);
    assert_int_equal(letters_requeue(admin, 1, HK_REQUEUE_AUTO).did, HK_DID_IT);
    assert_int_equal(letters_act(letters_ops->resolve, admin, 2).did, HK_DID_IT);
    assert_int_equal(letters_act(letters_ops->discard, admin, 3).did, HK_DID_IT);
    assert_int_equal(letters_act(letters_ops->restore, admin, 3).did, HK_DID_IT);
    assert_int_equal(letters_act(letters_ops->send_begin, admin, 4).did, HK_DID_IT);
    assert_int_equal(letters_verify_audit(admin), 9);
    assert_number("count(*) FROM outbox_audit WHERE letter_id IS NULL", 4);

    const struct hk_audit_rows *rows = NULL;
    const struct hk_audit_page of_3 = {.letter_id = 3, .limit = 1};
    assert_int_equal(letters_ops->audit(admin, &of_3, &rows, &err), HK_OK);
    assert_true(rows->n == 1 && rows->more); /* newest first */
    assert_text(rows->items[0].act, "restore");
    assert_text(rows->items[0].message_id, "m3");
    assert_text(rows->items[0].destination, "a");
    assert_text(rows->items[0].reason, "because");
    assert_int_equal(rows->items[0].at_ms, suite_clock_ms);
    const struct hk_audit_page rest = {.letter_id = 3, .limit = 1, .after_id = rows->last_id};
    assert_int_equal(letters_ops->audit(admin, &rest, &rows, &err), HK_OK);
    assert_true(rows->n == 1 && !rows->more);
    assert_text(rows->items[0].act, "discard");
    const struct hk_audit_page by = {.actor = "hikyaku", .act = "pause", .limit = 10};
    assert_int_equal(letters_ops->audit(admin, &by, &rows, &err), HK_OK);
    assert_int_equal(rows->n, 1);
    assert_text(rows->items[0].destination, "b");
    assert_int_equal(rows->items[0].letter_id, 0);
    suite_close(store);
    admin_ops->close(admin);
}

static void the_trail_cannot_be_changed(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    letters_fill(store, suite_acquire(store), 1, NULL);
    letters_act(letters_ops->discard, admin, 1);
    assert_false(letters_dialect->try_sql("UPDATE outbox_audit SET actor = 'bob'"));
    assert_value("actor FROM outbox_audit", "ann");
    assert_int_equal(letters_verify_audit(admin), 1);
    suite_close(store);
    admin_ops->close(admin);
}

static void the_chain_goes_on_where_retention_has_cut_it(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_admin *admin = admin_open();
    struct hk_err err = {0};
    struct hk_retention keep = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint32_t deleted = 0;
    letters_fill(store, suite_acquire(store), 4, NULL);
    for (int i = 1; i <= 4; i++) {
        letters_act(letters_ops->discard, admin, i);
        suite_clock_ms += 10000;
    }
    keep.audit_ms = 25000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 2);
    assert_int_equal(letters_verify_audit(admin), 3); /* and what it says of itself */
    letters_act(letters_ops->restore, admin, 1);
    assert_int_equal(letters_verify_audit(admin), 4);
    suite_clock_ms += 100000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 4);
    assert_int_equal(letters_verify_audit(admin), 1);
    assert_number(
        "count(*) FROM outbox_audit a JOIN outbox_meta m ON m.key = 'audit_first_prev' WHERE a.act = 'purge-audit' "
        "AND a.detail LIKE '{\"rows\":4,\"total\":6,\"last_id\":%,\"last_hash\":\"' || m.value || '\"}'",
        1);
    suite_clock_ms += 100000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 100, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 0); /* else each purge would leave something for the next */
    letters_act(letters_ops->restore, admin, 2);
    assert_int_equal(letters_verify_audit(admin), 2);
    assert_number("min(length(prev)) FROM outbox_audit", 64); /* not a new beginning */
    suite_clock_ms += 100000;
    assert_int_equal(store_kind->ops->purge(store, &keep, 1, &deleted, NULL, &err), HK_OK);
    assert_int_equal(deleted, 1); /* nothing else among so many: it does not stand in the way */
    assert_int_equal(letters_verify_audit(admin), 2);
    suite_close(store);
    admin_ops->close(admin);
}

size_t letters_suite_tests(struct CMUnitTest *out, size_t room)
{
    const struct CMUnitTest tests[] = {
        TEST(a_letter_tells_why_it_failed_and_whose_fault_it_was),
        TEST(what_was_never_sent_has_no_class),
        TEST(every_term_of_a_query_must_hold),
        TEST(letters_are_found_by_what_they_hold),
        TEST(pages_show_every_letter_once_in_both_directions),
        TEST(a_page_with_nothing_asked_for_is_empty),
        TEST(groups_are_what_failed_alike),
        TEST(groups_of_a_page_are_of_the_newest_letters),
        TEST(groups_are_counted_by_the_hour),
        TEST(groups_tell_how_many_may_have_arrived),
        TEST(stats_count_by_day_reason_type_and_fate),
        TEST(show_has_the_attempts_of_all_lives_and_what_waits_behind_it),
        TEST(the_hash_of_a_row_is_the_same_for_ever),
        TEST(every_act_of_every_kind_is_a_link_of_the_chain),
        TEST(the_trail_cannot_be_changed),
        TEST(the_chain_goes_on_where_retention_has_cut_it),
    };
    size_t n = COUNT(tests);
    assert_true(n + letters_act_count + letters_list_count + letters_redrive_count + letters_redirect_count +
                    letters_state_count <=
                room);
    memcpy(out, tests, sizeof tests);
    memcpy(out + n, letters_act_tests, letters_act_count * sizeof *out);
    n += letters_act_count;
    memcpy(out + n, letters_list_tests, letters_list_count * sizeof *out);
    n += letters_list_count;
    memcpy(out + n, letters_redrive_tests, letters_redrive_count * sizeof *out);
    n += letters_redrive_count;
    memcpy(out + n, letters_redirect_tests, letters_redirect_count * sizeof *out);
    n += letters_redirect_count;
    memcpy(out + n, letters_state_tests, letters_state_count * sizeof *out);
    return n + letters_state_count;
}
