/* SPDX-License-Identifier: Apache-2.0 */
/* Looking at messages: list, by keyset within each place, and show, by message_id.
 *
 * A filter that no index serves is applied to WINDOW rows of a place in one call (MATCH_WINDOW where payloads are read): a listing of a huge
 * table goes on page by page, each in bounded time and none keeping a snapshot (and with it the WAL) for longer. */
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/show.h"
#include "base/str.h"
#include "store/sqlite/admin.h"

#define WINDOW       INT64_C(50000)
#define MATCH_WINDOW INT64_C(5000)
#define MATCH_BYTES  (UINT64_C(64) << 20) /* of payloads that one call reads */
#define SQL_MAX      ((size_t)16 * 1024)
#define BODY_MAX     ((size_t)8 * 1024)

/* Columns, the same for every place. */
enum {
    C_ID,
    C_OUTBOX_ID,
    C_MESSAGE_ID,
    C_DESTINATION,
    C_EVENT_TYPE,
    C_KEY,
    C_CORRELATION_ID,
    C_STATE,
    C_ATTEMPTS,
    C_CRASHES,
    C_LIFE,
    C_CREATED,
    C_NEXT_MS,
    C_NEXT,
    C_LAST_MS,
    C_LAST,
    C_DONE_MS,
    C_DONE,
    C_ERROR,
    C_CAUSE,
    C_LOCKED_BY,
    C_LOCKED_MS,
    C_STATUS,
    C_LETTER,
    C_ACTOR,
    C_REASON,
    C_HEADERS, /* from here on only for show */
    C_CONTENT_TYPE,
    C_ENCODING,
    C_TRACEPARENT,
    C_IDEMPOTENCY_KEY,
    C_POLICY,
    C_MAX_ATTEMPTS,
    C_NOT_BEFORE,
    C_EXPIRES,
    C_DETAIL,
    C_FIRST_MS,
    C_FIRST,
    C_PAYLOAD_TYPE
};

#define COMMON "t.message_id, t.destination, t.event_type, t.message_key, t.correlation_id, "
#define META   ", t.headers, t.content_type, t.encoding, t.traceparent, t.idempotency_key, t.policy, "
#define OF_LETTER_SENT                                                                                       \
    "NOT EXISTS (SELECT 1 FROM outbox_sent s WHERE s.message_id = t.message_id "                             \
    "AND s.destination = t.destination)"

struct place {
    const char *table;
    const char *brief;   /* C_ID to C_REASON */
    const char *details; /* C_HEADERS on */
    const char *joined;
    bool has_payload;
    const char *of_state
        [HK_NSTATES]; /* NULL: none of it is of that state; HK_STATE_NONE: what belongs to the listing */
};

static const struct place places[HK_NPLACES] = {
    [HK_IN_RETRY] =
        {.table = "outbox_retry",
         .brief =
             "t.id, t.original_outbox_id, " COMMON
             "CASE WHEN t.claim IS NOT NULL THEN 2 WHEN t.attempts > 0 OR t.crashes > 0 THEN 3 ELSE 1 END, "
             "t.attempts, t.crashes, t.life, t.created_at, t.due_ms, NULL, t.last_attempt_ms, NULL, 0, NULL, "
             "t.last_error, t.last_cause, h.name, h.claimed_ms, 0, NULL, NULL, NULL",
         .details = META
         "t.max_attempts, t.not_before, t.expires_at, NULL, t.first_failed_ms, NULL, typeof(t.payload)",
         .joined = " LEFT JOIN held h ON h.claim = t.claim",
         .has_payload = true,
         .of_state = {[HK_STATE_NONE] = "1",
                      [HK_PENDING] = "t.claim IS NULL AND t.attempts <= 0 AND t.crashes <= 0",
                      [HK_PROCESSING] = "t.claim IS NOT NULL",
                      [HK_RETRYING] = "t.claim IS NULL AND (t.attempts > 0 OR t.crashes > 0)"}},
    [HK_IN_OUTBOX] =
        {.table = "outbox",
         .brief =
             "t.id, t.id, " COMMON "CASE WHEN n.id IS NULL THEN 1 ELSE 2 END, 0, 0, 1, t.created_at, NULL, "
             "t.not_before, 0, NULL, 0, NULL, NULL, NULL, n.name, n.claimed_ms, 0, NULL, NULL, NULL",
         .details = META "t.max_attempts, t.not_before, t.expires_at, NULL, 0, NULL, typeof(t.payload)",
         .joined = " LEFT JOIN named n ON n.id = t.id",
         .has_payload = true,
         .of_state = {[HK_STATE_NONE] = "1",
                      [HK_PENDING] = "n.id IS NULL",
                      [HK_PROCESSING] = "t.id IN (SELECT id FROM named)"}},
    [HK_IN_DEAD] =
        {.table = "dead_letters",
         .brief =
             "t.id, t.original_outbox_id, " COMMON
             "CASE t.status WHEN 'resolved' THEN 4 WHEN 'retrying' THEN CASE WHEN t.sending_at IS NULL THEN 3 "
             "ELSE 2 END ELSE 5 END, t.attempts, "
             "t.crashes, t.life, t.message_created_at, NULL, NULL, 0, t.last_attempt_at, 0, "
             "coalesce(t.resolved_at, t.last_failed_at), t.error_message, t.reason_code, NULL, 0, 0, t.status, "
             "NULL, NULL",
         .details = META
         "t.max_attempts, NULL, t.expires_at, t.error_detail, 0, t.first_failed_at, typeof(t.payload)",
         .joined = "",
         .has_payload = true,
         .of_state =
             {[HK_STATE_NONE] =
                  "(t.status = 'failed' OR (t.status = 'discarded' AND t.resolution IS NOT 'cancelled') "
                  "OR (t.status = 'retrying' AND (t.sending_at IS NOT NULL OR t.requeued_as IS NOT NULL)) "
                  "OR (t.status = 'resolved' AND " OF_LETTER_SENT "))",
              [HK_PROCESSING] = "t.status = 'retrying' AND t.sending_at IS NOT NULL", /* by hand */
              [HK_RETRYING] = "t.status = 'retrying' AND t.sending_at IS NULL AND t.requeued_as IS NOT NULL",
              [HK_SENT] = ("t.status = 'resolved' AND " OF_LETTER_SENT),
              [HK_STATE_DEAD] =
                  "(t.status = 'failed' OR (t.status = 'discarded' AND t.resolution IS NOT 'cancelled'))"}},
    [HK_IN_CANCELLED] = {.table = "outbox_cancelled",
                         .brief = "t.id, t.original_outbox_id, " COMMON
                                  "6, t.attempts, 0, 1, t.created_at, NULL, NULL, 0, NULL, "
                                  "t.cancelled_ms, NULL, NULL, NULL, NULL, 0, 0, NULL, t.actor, t.reason",
                         .details = META "NULL, NULL, NULL, NULL, 0, NULL, typeof(t.payload)",
                         .joined = "",
                         .has_payload = true,
                         .of_state = {[HK_STATE_NONE] = "1", [HK_STATE_CANCELLED] = "1"}},
    [HK_IN_SENT] = {.table = "outbox_sent",
                    .brief = "t.id, t.original_outbox_id, " COMMON
                             "4, t.attempts, 0, t.life, t.created_at, NULL, NULL, 0, NULL, "
                             "t.sent_ms, NULL, NULL, NULL, NULL, 0, t.status, NULL, NULL, NULL",
                    .details =
                        ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, NULL, 'null'",
                    .joined = "",
                    .of_state = {[HK_STATE_NONE] = "1", [HK_SENT] = "1"}},
};

_Static_assert(HK_PENDING == 1 && HK_PROCESSING == 2 && HK_RETRYING == 3 && HK_SENT == 4 &&
                   HK_STATE_DEAD == 5 && HK_STATE_CANCELLED == 6,
               "the numbers stand in the statements");

/* ---- rows ---- */

static int64_t time_of(sqlite3_stmt *q, int ms_column, int text_column)
{
    int64_t ms = sqlite3_column_int64(q, ms_column);
    return ms > 0 ? ms : hk_sa_time(q, text_column);
}

static struct hk_str text_of(struct hk_store *store, sqlite3_stmt *q, int column)
{
    return hk_sa_text(store, q, column, HK_SA_TEXT_MAX);
}

static void read_brief(struct hk_store *store, sqlite3_stmt *q, enum hk_place place, struct hk_row *out)
{
    *out = (struct hk_row){
        .place = place,
        .id = sqlite3_column_int64(q, C_ID),
        .outbox_id = sqlite3_column_int64(q, C_OUTBOX_ID),
        .state = (enum hk_state)sqlite3_column_int(q, C_STATE),
        .message_id = text_of(store, q, C_MESSAGE_ID),
        .destination = text_of(store, q, C_DESTINATION),
        .event_type = text_of(store, q, C_EVENT_TYPE),
        .key = text_of(store, q, C_KEY),
        .correlation_id = text_of(store, q, C_CORRELATION_ID),
        .attempts = hk_sa_u32(q, C_ATTEMPTS),
        .crashes = hk_sa_u32(q, C_CRASHES),
        .life = hk_sa_u32(q, C_LIFE),
        .created_ms = hk_sa_time(q, C_CREATED),
        .next_ms = time_of(q, C_NEXT_MS, C_NEXT),
        .last_attempt_ms = time_of(q, C_LAST_MS, C_LAST),
        .done_ms = time_of(q, C_DONE_MS, C_DONE),
        .last_error = text_of(store, q, C_ERROR),
        .cause = text_of(store, q, C_CAUSE),
        .locked_by = text_of(store, q, C_LOCKED_BY),
        .locked_ms = sqlite3_column_int64(q, C_LOCKED_MS),
        .status = sqlite3_column_int(q, C_STATUS),
        .letter_status = text_of(store, q, C_LETTER),
        .actor = text_of(store, q, C_ACTOR),
        .reason = text_of(store, q, C_REASON),
    };
}

static void read_details(struct hk_store *store, sqlite3_stmt *q, struct hk_row *out)
{
    out->headers = text_of(store, q, C_HEADERS);
    out->content_type = text_of(store, q, C_CONTENT_TYPE);
    out->encoding = text_of(store, q, C_ENCODING);
    out->traceparent = text_of(store, q, C_TRACEPARENT);
    out->idempotency_key = text_of(store, q, C_IDEMPOTENCY_KEY);
    out->policy = text_of(store, q, C_POLICY);
    out->max_attempts = hk_sa_u32(q, C_MAX_ATTEMPTS);
    out->not_before = text_of(store, q, C_NOT_BEFORE);
    out->expires_at = text_of(store, q, C_EXPIRES);
    out->error_detail = text_of(store, q, C_DETAIL);
    out->first_failed_ms = time_of(q, C_FIRST_MS, C_FIRST);
}

/* A number, which sqlite3_blob_open does not take. */
static void read_number(struct hk_store *store, struct hk_row *row)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT payload FROM %s WHERE id = ?1", places[row->place].table);
    sqlite3_stmt *q = hk_sa_prepare(store, sql);
    hk_sq_bind_i64(store, q, 1, row->id);
    if (hk_sq_row(store, q))
        row->payload = hk_sa_text(store, q, 0, HK_SA_TEXT_MAX);
    row->payload_bytes = row->payload.len;
    sqlite3_finalize(q);
}

/* No more of it is read than is wanted: it may be a gigabyte. */
static void read_payload(struct hk_store *store, struct hk_pool *into, const char *type, size_t max,
                         struct hk_row *row)
{
    sqlite3_blob *blob = NULL;
    row->has_payload = strcmp(type, "null") != 0;
    if (strcmp(type, "text") != 0 && strcmp(type, "blob") != 0) {
        if (row->has_payload)
            read_number(store, row);
        return;
    }
    int rc = sqlite3_blob_open(store->db, "main", places[row->place].table, "payload", row->id, 0, &blob);
    if (rc == SQLITE_OK) {
        row->payload_bytes = (uint64_t)sqlite3_blob_bytes(blob);
        size_t len = row->payload_bytes < max ? (size_t)row->payload_bytes : max;
        char *bytes = len ? hk_pool_alloc(into, 1, len + 1) : NULL;
        if (bytes)
            rc = sqlite3_blob_read(blob, bytes, (int)len, 0);
        else if (len)
            rc = SQLITE_NOMEM;
        row->payload = (struct hk_str){bytes ? bytes : "", bytes ? len : 0};
    }
    if (rc != SQLITE_OK)
        hk_sq_fail(store, rc);
    sqlite3_blob_close(blob);
}

/* ---- list ---- */

struct lister {
    struct hk_store *store;
    const struct hk_list *list;
    struct hk_rows *out;
    size_t room;
    uint64_t bytes;         /* of payloads that were read to match them */
    struct hk_pool scratch; /* of the row at hand */
};

/* Is something asked that only C can tell? */
static bool is_matched(const struct hk_list *list)
{
    return list->match || list->since_ms || list->before_ms;
}

static void select_from(struct hk_buf *sql, enum hk_place place, bool details)
{
    const struct place *p = &places[place];
    (void)hk_buf_addf(sql, "WITH " HK_SA_NAMED "SELECT %s%s FROM %s t", p->brief, details ? p->details : "",
                      p->table);
}

/* Rows that the call may look through yet. */
static int64_t looks_left(const struct lister *l)
{
    int64_t most = l->list->match ? MATCH_WINDOW : WINDOW;
    if (l->list->looks > 0 && l->list->looks < (uint64_t)most)
        most = (int64_t)l->list->looks;
    return l->out->looked < (uint64_t)most ? most - (int64_t)l->out->looked : 0;
}

/* Where a bounded look ends; INT64_MIN: at the table's end. */
static int64_t window_floor(struct lister *l, enum hk_place place, int64_t below)
{
    char sql[200];
    int64_t window = looks_left(l);
    snprintf(
        sql, sizeof sql,
        "SELECT min(id), count(*) FROM (SELECT id FROM %s NOT INDEXED WHERE id < ?1 ORDER BY id DESC LIMIT ?2)",
        places[place].table);
    sqlite3_stmt *q = hk_sa_prepare(l->store, sql);
    hk_sq_bind_i64(l->store, q, 1, below);
    hk_sq_bind_i64(l->store, q, 2, window);
    int64_t floor = INT64_MIN;
    if (hk_sq_row(l->store, q)) {
        int64_t n = sqlite3_column_int64(q, 1);
        floor = n == window ? sqlite3_column_int64(q, 0) : INT64_MIN;
        l->out->looked += (uint64_t)n;
    }
    sqlite3_finalize(q);
    return floor;
}

static void add_terms(const struct hk_list *list, struct hk_buf *sql)
{
    if (list->destination)
        (void)hk_buf_adds(sql, " AND t.destination = ?4");
    if (list->event_type)
        (void)hk_buf_addf(sql, " AND t.event_type %s ?5", hk_sa_is_glob(list->event_type) ? "GLOB" : "=");
    if (list->correlation_id)
        (void)hk_buf_adds(sql, " AND t.correlation_id = ?6");
    if (list->key)
        (void)hk_buf_adds(sql, " AND t.message_key = ?7");
}

static void page_sql(const struct lister *l, enum hk_place place, bool by_destination, struct hk_buf *sql)
{
    const struct place *p = &places[place];
    const struct hk_list *list = l->list;
    select_from(sql, place, list->match != NULL);
    if (by_destination)
        (void)hk_buf_adds(sql, " INDEXED BY outbox_by_destination");
    else if (list->state == HK_PROCESSING && place == HK_IN_RETRY)
        (void)hk_buf_adds(sql, " INDEXED BY outbox_retry_claim");
    else if (place == HK_IN_DEAD && (list->state == HK_PROCESSING || list->state == HK_RETRYING))
        (void)hk_buf_adds(sql, " INDEXED BY dead_letters_status");
    else if (!(list->state == HK_PROCESSING && place == HK_IN_OUTBOX))
        (void)hk_buf_adds(sql, " NOT INDEXED");
    (void)hk_buf_addf(sql, "%s WHERE t.id < ?1 AND t.id >= ?2 AND %s", p->joined, p->of_state[list->state]);
    add_terms(list, sql);
    (void)hk_buf_adds(sql, " ORDER BY t.id DESC LIMIT ?3");
}

static void bind_page(struct lister *l, sqlite3_stmt *q, int64_t below, int64_t floor)
{
    const struct hk_list *list = l->list;
    hk_sq_bind_i64(l->store, q, 1, below);
    hk_sq_bind_i64(l->store, q, 2, floor);
    hk_sq_bind_i64(l->store, q, 3, is_matched(list) ? INT64_MAX : (int64_t)list->limit - (int64_t)l->out->n);
    if (list->destination)
        hk_sq_bind_cstr(l->store, q, 4, list->destination);
    if (list->event_type && hk_sa_is_glob(list->event_type))
        hk_sa_bind_glob(l->store, q, 5, list->event_type);
    else if (list->event_type)
        hk_sq_bind_cstr(l->store, q, 5, list->event_type);
    if (list->correlation_id)
        hk_sq_bind_cstr(l->store, q, 6, list->correlation_id);
    if (list->key)
        hk_sq_bind_cstr(l->store, q, 7, list->key);
}

/* As the statement has it: valid until its next step. */
static struct hk_str raw_text(sqlite3_stmt *q, int column)
{
    const char *text = (const char *)sqlite3_column_text(q, column);
    return (struct hk_str){text ? text : "", text ? (size_t)sqlite3_column_bytes(q, column) : 0};
}

static bool is_of_time(const struct hk_list *list, sqlite3_stmt *q)
{
    if (!list->since_ms && !list->before_ms)
        return true;
    int64_t ms = hk_sa_time(q, C_CREATED);
    return ms && ms >= list->since_ms && (!list->before_ms || ms < list->before_ms);
}

/* Nothing of a row is kept before it is known that it is meant: hardly any of a window is. */
static bool is_meant(struct lister *l, sqlite3_stmt *q, enum hk_place place)
{
    const struct hk_list *list = l->list;
    if (!is_of_time(list, q))
        return false;
    if (!list->match)
        return true;
    struct hk_row row = {.place = place, .id = sqlite3_column_int64(q, C_ID), .payload = {"", 0}};
    const char *type = (const char *)sqlite3_column_text(q, C_PAYLOAD_TYPE);
    uint64_t most = l->store->options.max_payload_bytes;
    hk_pool_reset(&l->scratch);
    if (places[place].has_payload && type)
        read_payload(l->store, &l->scratch, type, most < SIZE_MAX ? (size_t)most : SIZE_MAX, &row);
    l->bytes += row.payload.len;
    const struct hk_letter letter = {.id = row.id,
                                     .message_id = raw_text(q, C_MESSAGE_ID),
                                     .destination = raw_text(q, C_DESTINATION),
                                     .event_type = raw_text(q, C_EVENT_TYPE),
                                     .correlation_id = raw_text(q, C_CORRELATION_ID),
                                     .error = raw_text(q, C_ERROR),
                                     .encoding = raw_text(q, C_ENCODING),
                                     .payload = row.payload};
    return hk_sq_ok(l->store) && list->match(list->match_arg, &letter);
}

/* False: more was to be read than one call may, `last_id` is where it stopped. */
static bool read_page(struct lister *l, sqlite3_stmt *q, enum hk_place place)
{
    while (l->out->n < l->list->limit && hk_sq_row(l->store, q)) {
        if (is_meant(l, q, place)) {
            struct hk_row *rows = hk_sa_grow(l->store, l->out->items, l->out->n, &l->room, sizeof *rows);
            if (!rows)
                return true;
            l->out->items = rows;
            read_brief(l->store, q, place, &rows[l->out->n++]);
        }
        l->out->last_place = place;
        l->out->last_id = sqlite3_column_int64(q, C_ID);
        l->out->last_origin = sqlite3_column_int64(q, C_OUTBOX_ID);
        if (l->bytes >= MATCH_BYTES)
            return false;
    }
    return true;
}

/* Is nothing asked but a state and a destination? */
static bool is_plain(const struct hk_list *list)
{
    return !list->event_type && !list->correlation_id && !list->key && !is_matched(list);
}

/* Rows that are few whatever the tables hold, or found through an index that gives them in order. */
static bool needs_no_window(const struct hk_list *list, enum hk_place place, bool by_destination)
{
    if (list->state == HK_PROCESSING || (list->state == HK_RETRYING && place == HK_IN_DEAD))
        return true;
    if (by_destination)
        return true; /* of a destination's rows few are in flight */
    return !list->destination && is_plain(list) && strcmp(places[place].of_state[list->state], "1") == 0;
}

/* True: the place has been seen to its end. */
static bool list_place(struct lister *l, enum hk_place place)
{
    const struct hk_list *list = l->list;
    struct hk_buf sql;
    int64_t below = list->resume && list->after_place == place ? list->after_id : INT64_MAX;
    bool by_destination =
        place == HK_IN_OUTBOX && list->destination && list->state != HK_PROCESSING && is_plain(list);
    bool whole = needs_no_window(list, place, by_destination);
    int64_t floor = whole ? INT64_MIN : window_floor(l, place, below);
    hk_buf_init(&sql, SQL_MAX);
    page_sql(l, place, by_destination, &sql);
    if (hk_buf_status(&sql) != HK_OK)
        hk_sq_fail(l->store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sa_prepare(l->store, hk_buf_cstr(&sql));
    bind_page(l, q, below, floor);
    bool read = read_page(l, q, place);
    sqlite3_finalize(q);
    hk_buf_fini(&sql);
    if (!read || l->out->n == list->limit || !hk_sq_ok(l->store))
        return false;
    if (floor == INT64_MIN)
        return true;
    l->out->last_place = place;
    l->out->last_id = floor;
    return false;
}

/* ---- by origin ---- */

/* Rows whose outbox_id is not known come first, by id: while those are read, the cursor's origin is NO_ORIGIN. */
#define NO_ORIGIN INT64_MIN

struct stretch {
    int64_t origin, id;         /* behind this row */
    int64_t end_origin, end_id; /* up to this one */
};

static void stretch_sql(struct hk_buf *sql, const struct stretch *s)
{
    (void)hk_buf_addf(sql, " FROM outbox_cancelled t INDEXED BY outbox_cancelled_origin WHERE %s",
                      s->origin == NO_ORIGIN ? "t.original_outbox_id IS NULL AND t.id > ?8 AND t.id <= ?9"
                                             : "(t.original_outbox_id, t.id) > (?1, ?8) AND "
                                               "(t.original_outbox_id, t.id) <= (?2, ?9)");
}

static sqlite3_stmt *prepare_stretch(struct lister *l, struct hk_buf *sql, const struct stretch *s)
{
    (void)hk_buf_adds(sql, " ORDER BY t.original_outbox_id, t.id LIMIT ?3");
    if (hk_buf_status(sql) != HK_OK)
        hk_sq_fail(l->store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sa_prepare(l->store, hk_buf_cstr(sql));
    bind_page(l, q, s->origin, s->end_origin);
    hk_sq_bind_i64(l->store, q, 8, s->id);
    hk_sq_bind_i64(l->store, q, 9, s->end_id);
    return q;
}

/* Where a bounded look ends, as window_floor. False: there is no more. */
static bool window_end(struct lister *l, struct stretch *s)
{
    struct hk_buf sql;
    struct lister bare = {.store = l->store, .list = &(struct hk_list){.limit = 0}, .out = l->out};
    int64_t window = l->list->match ? MATCH_WINDOW : WINDOW, n = 0, origin = 0, id = 0;
    hk_buf_init(&sql, SQL_MAX);
    (void)hk_buf_adds(&sql, "SELECT t.original_outbox_id, t.id");
    stretch_sql(&sql, s);
    sqlite3_stmt *q = prepare_stretch(&bare, &sql, s);
    hk_sq_bind_i64(l->store, q, 3, window);
    for (; hk_sq_row(l->store, q); n++) {
        origin = sqlite3_column_int64(q, 0);
        id = sqlite3_column_int64(q, 1);
    }
    sqlite3_finalize(q);
    hk_buf_fini(&sql);
    l->out->looked += (uint64_t)n;
    if (n < window)
        return false;
    s->end_origin = origin;
    s->end_id = id;
    return true;
}

/* True: the stretch was seen to its end, and there is nothing behind it. */
static bool list_stretch(struct lister *l, struct stretch *s)
{
    const struct hk_list *list = l->list;
    const struct place *p = &places[HK_IN_CANCELLED];
    struct hk_buf sql;
    bool whole = is_plain(list) && !list->destination && !list->act_id;
    bool more = !whole && window_end(l, s);
    hk_buf_init(&sql, SQL_MAX);
    (void)hk_buf_addf(&sql, "SELECT %s%s", p->brief, list->match ? p->details : "");
    stretch_sql(&sql, s);
    add_terms(list, &sql);
    if (list->act_id)
        (void)hk_buf_adds(&sql, " AND EXISTS (SELECT 1 FROM outbox_audit_messages y "
                                "WHERE y.act_id = ?10 AND y.cancelled_id = t.id)");
    sqlite3_stmt *q = prepare_stretch(l, &sql, s);
    if (list->act_id)
        hk_sq_bind_i64(l->store, q, 10, list->act_id);
    bool read = read_page(l, q, HK_IN_CANCELLED);
    sqlite3_finalize(q);
    hk_buf_fini(&sql);
    if (s->origin == NO_ORIGIN)
        l->out->last_origin = NO_ORIGIN;
    if (!read || l->out->n == list->limit || !hk_sq_ok(l->store))
        return false;
    l->out->last_place = HK_IN_CANCELLED;
    l->out->last_origin = s->origin == NO_ORIGIN ? NO_ORIGIN : s->end_origin;
    l->out->last_id = s->end_id;
    return !more;
}

/* True: all have been seen. */
static bool list_by_origin(struct lister *l)
{
    const struct hk_list *list = l->list;
    struct stretch s = {list->resume ? list->after_origin : NO_ORIGIN,
                        list->resume ? list->after_id : INT64_MIN, INT64_MAX, INT64_MAX};
    if (s.origin == NO_ORIGIN) {
        if (!list_stretch(l, &s))
            return false;
        s = (struct stretch){NO_ORIGIN + 1, INT64_MIN, INT64_MAX, INT64_MAX};
    }
    return list_stretch(l, &s);
}

enum hk_code hk_sa_list(struct hk_admin *admin, const struct hk_list *list, const struct hk_rows **out,
                        struct hk_err *err)
{
    struct lister l = {.store = admin->store, .list = list, .out = &admin->rows};
    admin->rows = (struct hk_rows){.more = false};
    hk_sq_call(admin->store);
    hk_sq_begin_read(admin->store);
    int place = list->resume ? (int)list->after_place : 0;
    bool ended = list->limit > 0;
    if (ended && list->by_origin) {
        ended = list_by_origin(&l);
        place = HK_NPLACES;
    }
    const int last = list->live ? HK_IN_DEAD : HK_NPLACES;
    for (; ended && place < last && looks_left(&l) > 0; place++)
        if (places[place].of_state[list->state])
            ended = list_place(&l, (enum hk_place)place);
    hk_pool_fini(&l.scratch);
    enum hk_code rc = hk_sq_end(admin->store, "list messages", err);
    if (rc != HK_OK)
        return rc;
    if (ended && place < last) { /* the next place from its beginning */
        admin->rows.last_place = (enum hk_place)place;
        admin->rows.last_id = INT64_MAX;
        ended = false;
    }
    admin->rows.more = !ended && list->limit > 0;
    *out = &admin->rows;
    return HK_OK;
}

/* ---- show ---- */

/* The row at hand, whole. False: no memory. */
static bool add_shown(struct hk_store *store, sqlite3_stmt *q, enum hk_place place, size_t payload_max,
                      struct hk_shown *out, size_t *room)
{
    struct hk_row *rows = hk_sa_grow(store, out->rows, out->n_rows, room, sizeof *rows);
    const char *type = (const char *)sqlite3_column_text(q, C_PAYLOAD_TYPE);
    if (!rows)
        return false;
    out->rows = rows;
    read_brief(store, q, place, &rows[out->n_rows]);
    read_details(store, q, &rows[out->n_rows]);
    if (places[place].has_payload && type)
        read_payload(store, hk_sq_pool(store), type, payload_max, &rows[out->n_rows]);
    out->n_rows++;
    return true;
}

static void show_place(struct hk_store *store, enum hk_place place, const char *message_id,
                       size_t payload_max, struct hk_shown *out, size_t *room)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SQL_MAX);
    select_from(&sql, place, true);
    (void)hk_buf_addf(&sql,
                      "%s WHERE t.message_id IN (?1, CAST(?1 AS BLOB)) AND %s ORDER BY t.id DESC LIMIT ?2",
                      places[place].joined, places[place].of_state[HK_STATE_NONE]);
    if (hk_buf_status(&sql) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_buf_cstr(&sql));
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, HK_SHOWN_MAX - (int64_t)out->n_rows);
    while (hk_sq_row(store, q) && add_shown(store, q, place, payload_max, out, room))
        continue;
    sqlite3_finalize(q);
    hk_buf_fini(&sql);
}

static void fetch_one(struct hk_store *store, const struct hk_ref *ref, size_t payload_max,
                      struct hk_shown *out, size_t *room)
{
    struct hk_buf sql;
    hk_buf_init(&sql, SQL_MAX);
    select_from(&sql, ref->place, true);
    (void)hk_buf_addf(&sql, "%s WHERE t.id = ?1", places[ref->place].joined);
    if (hk_buf_status(&sql) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_buf_cstr(&sql));
    hk_sq_bind_i64(store, q, 1, ref->id);
    while (hk_sq_row(store, q) && add_shown(store, q, ref->place, payload_max, out, room))
        continue;
    sqlite3_finalize(q);
    hk_buf_fini(&sql);
}

enum hk_code hk_sa_fetch(struct hk_admin *admin, const struct hk_ref *refs, size_t n, size_t payload_max,
                         const struct hk_shown **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    size_t room = 0;
    admin->shown = (struct hk_shown){.n_rows = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    for (size_t i = 0; i < n && hk_sq_ok(store); i++)
        fetch_one(store, &refs[i], payload_max, &admin->shown, &room);
    enum hk_code rc = hk_sq_end(store, "read messages", err);
    if (rc == HK_OK)
        *out = &admin->shown;
    return rc;
}

void hk_sa_attempt(struct hk_store *store, sqlite3_stmt *q, struct hk_tried *out)
{
    int64_t duration_ms = sqlite3_column_int64(q, 4);
    *out = (struct hk_tried){
        .destination = text_of(store, q, 0),
        .life = hk_sa_u32(q, 1),
        .n = hk_sa_u32(q, 2),
        .started_ms = sqlite3_column_int64(q, 3),
        .duration_ms = duration_ms > 0 ? (uint64_t)duration_ms : 0,
        .status = sqlite3_column_int(q, 5),
        .failure_class = text_of(store, q, 6),
        .cause = text_of(store, q, 7),
        .error = text_of(store, q, 8),
        .request_headers = text_of(store, q, 9),
        .response_headers = text_of(store, q, 10),
        .response_body = hk_sa_text(store, q, 11, BODY_MAX),
        .address = text_of(store, q, 12),
        .possibly_delivered = sqlite3_column_int(q, 13) != 0,
    };
}

enum hk_code hk_sa_attempts(struct hk_admin *admin, const char *message_id, int64_t after_id, uint32_t limit,
                            const struct hk_tries **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    struct hk_tries *tries = &admin->tries;
    size_t room = 0;
    *tries = (struct hk_tries){.n = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_ATTEMPTS_PAGE]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, limit);
    hk_sq_bind_i64(store, q, 3, after_id);
    while (hk_sq_row(store, q)) {
        struct hk_tried *items = hk_sa_grow(store, tries->items, tries->n, &room, sizeof *items);
        if (!items)
            break;
        tries->items = items;
        hk_sa_attempt(store, q, &items[tries->n]);
        items[tries->n++].id = sqlite3_column_int64(q, 14);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read attempts", err);
    if (rc == HK_OK)
        *out = tries;
    return rc;
}

static void show_attempts(struct hk_store *store, const char *message_id, struct hk_shown *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_ATTEMPTS]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    hk_sq_bind_i64(store, q, 2, HK_TRIED_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_tried *tried = hk_sa_grow(store, out->attempts, out->n_attempts, &room, sizeof *tried);
        if (!tried)
            break;
        out->attempts = tried;
        hk_sa_attempt(store, q, &tried[out->n_attempts++]);
    }
    sqlite3_finalize(q);
}

enum hk_code hk_sa_show(struct hk_admin *admin, const char *message_id, size_t payload_max,
                        const struct hk_shown **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    char shown[HK_SHOW_MAX];
    size_t room = 0;
    admin->shown = (struct hk_shown){.n_rows = 0};
    hk_sq_call(store);
    hk_sq_begin_read(store);
    for (int place = 0; place < HK_NPLACES && hk_sq_ok(store); place++)
        show_place(store, (enum hk_place)place, message_id, payload_max, &admin->shown, &room);
    show_attempts(store, message_id, &admin->shown);
    enum hk_code rc = hk_sq_end(store, "read a message", err);
    if (rc == HK_OK && admin->shown.n_rows == 0 && admin->shown.n_attempts == 0)
        rc = hk_err_set(err, HK_NOTFOUND, "there is no message %s", hk_show(hk_str_of(message_id), shown));
    if (rc == HK_OK)
        *out = &admin->shown;
    return rc;
}
