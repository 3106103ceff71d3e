/* SPDX-License-Identifier: Apache-2.0 */
/* The letters that a query means, in the order of ids.
 *
 * One index leads (or the table itself): the one that leaves the fewest rows and gives them in order. What it does not
 * answer is asked of each row that it gives, in SQL; what SQL cannot ask, of the letter with its payload. A walk counts the
 * rows it looks at and stops at a bound, so that a call takes a bounded time whatever is asked of whatever table, and its
 * memory is that of one letter. */
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "store/sqlite/letters.h"

#define SQL_MAX    ((size_t)4 * 1024)
#define TOLD_EVERY 4096 /* rows */

static const char *const status_names[HK_NLETTER_STATUSES] = {"failed", "retrying", "resolved", "discarded"};

_Static_assert(HK_LETTER_FAILED == 0 && HK_LETTER_RETRYING == 1 && HK_LETTER_RESOLVED == 2 &&
                   HK_LETTER_DISCARDED == 3,
               "the order of the names");

#define ALL_STATUSES ((1u << HK_NLETTER_STATUSES) - 1)

int hk_sl_only_status(unsigned statuses)
{
    for (int s = 0; s < HK_NLETTER_STATUSES; s++)
        if ((statuses & ALL_STATUSES) == 1u << s)
            return s;
    return -1;
}

bool hk_sl_statuses(struct hk_buf *sql, unsigned statuses)
{
    statuses &= ALL_STATUSES;
    if (!statuses || statuses == ALL_STATUSES)
        return false;
    (void)hk_buf_adds(sql, "status IN (");
    const char *comma = "";
    for (int s = 0; s < HK_NLETTER_STATUSES; s++)
        if (statuses & 1u << s) {
            (void)hk_buf_addf(sql, "%s'%s'", comma, status_names[s]);
            comma = ", ";
        }
    (void)hk_buf_adds(sql, ")");
    return true;
}

/* ---- which index ---- */

enum lead {
    BY_TABLE,
    BY_MESSAGE,
    BY_CORRELATION,
    BY_GROUP,
    BY_OLD_GROUP, /* beside it */
    BY_REDRIVE,
    BY_REASON,
    BY_OPEN,
    BY_EVENT_TYPE,
    BY_STATUS
};

static enum lead lead_of(const struct hk_letter_query *query)
{
    int status = hk_sl_only_status(query->statuses);
    if (query->message_id)
        return BY_MESSAGE;
    if (query->correlation_id)
        return BY_CORRELATION;
    if (query->fingerprint && status >= 0)
        return BY_GROUP;
    if (query->redrive && status >= 0)
        return BY_REDRIVE;
    if (query->reason && status >= 0)
        return BY_REASON;
    if (query->destination && status == HK_LETTER_FAILED)
        return BY_OPEN;
    if (query->event_type && !hk_sa_is_glob(query->event_type))
        return BY_EVENT_TYPE;
    return status >= 0 ? BY_STATUS : BY_TABLE;
}

/* Which index, and what it is asked; '%s' is the only status. */
static const struct {
    const char *from, *where;
} leads[] = {
    [BY_TABLE] = {"NOT INDEXED", ""},
    [BY_MESSAGE] = {"INDEXED BY dead_letters_message", "message_id = ?6 AND "},
    [BY_CORRELATION] = {"INDEXED BY dead_letters_correlation",
                        "correlation_id IS NOT NULL AND correlation_id = ?7 AND "},
    [BY_GROUP] = {"INDEXED BY dead_letters_group", "fingerprint = ?5 AND status = '%s' AND "},
    [BY_OLD_GROUP] = {"INDEXED BY dead_letters_group_old", "fingerprint_old = ?5 AND status = '%s' AND "},
    [BY_REDRIVE] = {"INDEXED BY dead_letters_redrive",
                    "redrive_id IS NOT NULL AND redrive_id = ?14 AND status = '%s' AND "},
    [BY_REASON] = {"INDEXED BY dead_letters_reason", "reason_code = ?4 AND status = '%s' AND "},
    [BY_OPEN] = {"INDEXED BY dead_letters_open", "destination = ?3 AND status = '%s' AND "},
    [BY_EVENT_TYPE] = {"INDEXED BY dead_letters_event_type", "event_type = ?9 AND "},
    [BY_STATUS] = {"INDEXED BY dead_letters_status", "status = '%s' AND "},
};

_Static_assert(HK_SL_DESTINATION == 3 && HK_SL_REASON == 4 && HK_SL_FINGERPRINT == 5 && HK_SL_MESSAGE == 6 &&
                   HK_SL_CORRELATION == 7 && HK_SL_EVENT_TYPE == 9 && HK_SL_REDRIVE == 14,
               "the numbers stand in the statements");

/* ---- what is asked of each row ---- */

static void add_term(struct hk_buf *sql, bool wanted, const char *column, const char *operator, int parameter)
{
    if (wanted)
        (void)hk_buf_addf(sql, " AND %s %s ?%d", column, operator, parameter);
}

/* All of it, what the index was asked included: it holds, and costs next to nothing. */
static void add_terms(struct hk_buf *sql, const struct hk_letter_query *query)
{
    (void)hk_buf_adds(sql, "(");
    if (!hk_sl_statuses(sql, query->statuses))
        (void)hk_buf_adds(sql, "1");
    add_term(sql, query->destination, "destination", "=", HK_SL_DESTINATION);
    add_term(sql, query->reason, "reason_code", "=", HK_SL_REASON);
    if (query->fingerprint) /* of this version of the rule, or of one before */
        (void)hk_buf_adds(sql, " AND (fingerprint = ?5 OR fingerprint_old IS ?5)");
    add_term(sql, query->message_id, "message_id", "=", HK_SL_MESSAGE);
    add_term(sql, query->correlation_id, "correlation_id", "=", HK_SL_CORRELATION);
    add_term(sql, query->key, "message_key", "=", HK_SL_KEY);
    if (query->event_type)
        add_term(sql, true, "event_type", hk_sa_is_glob(query->event_type) ? "GLOB" : "=", HK_SL_EVENT_TYPE);
    add_term(sql, query->failure_class, "failure_class", "=", HK_SL_CLASS);
    add_term(sql, query->blame, "fault", "=", HK_SL_FAULT);
    add_term(sql, query->since_ms != 0, "last_failed_at", ">=", HK_SL_SINCE);
    add_term(sql, query->before_ms != 0, "last_failed_at", "<", HK_SL_BEFORE);
    add_term(sql, query->redrive != 0, "redrive_id", "=", HK_SL_REDRIVE);
    (void)hk_buf_adds(sql, ") IS 1");
}

static void bind_if(struct hk_store *store, sqlite3_stmt *q, int i, const char *value)
{
    if (value)
        hk_sq_bind_cstr(store, q, i, value);
}

static void bind_time(struct hk_store *store, sqlite3_stmt *q, int i, int64_t ms)
{
    char *text = ms ? hk_sq_alloc(store, 1, HK_TIME_TEXT_MAX) : NULL;
    if (text)
        hk_sq_bind_text(store, q, i, hk_sl_time_text(ms, text));
}

void hk_sl_bind(struct hk_store *store, sqlite3_stmt *q, const struct hk_letter_query *query)
{
    bind_if(store, q, HK_SL_DESTINATION, query->destination);
    bind_if(store, q, HK_SL_REASON, query->reason);
    bind_if(store, q, HK_SL_FINGERPRINT, query->fingerprint);
    bind_if(store, q, HK_SL_MESSAGE, query->message_id);
    bind_if(store, q, HK_SL_CORRELATION, query->correlation_id);
    bind_if(store, q, HK_SL_KEY, query->key);
    if (query->event_type && hk_sa_is_glob(query->event_type))
        hk_sa_bind_glob(store, q, HK_SL_EVENT_TYPE, query->event_type);
    else
        bind_if(store, q, HK_SL_EVENT_TYPE, query->event_type);
    bind_if(store, q, HK_SL_CLASS, query->failure_class);
    bind_if(store, q, HK_SL_FAULT, query->blame);
    bind_time(store, q, HK_SL_SINCE, query->since_ms);
    bind_time(store, q, HK_SL_BEFORE, query->before_ms);
    if (query->redrive)
        hk_sq_bind_i64(store, q, HK_SL_REDRIVE, query->redrive);
}

/* ---- walking ---- */

static void write_select(struct hk_buf *sql, const struct hk_letter_query *query, const char *also,
                         enum lead lead)
{
    const char *where = leads[lead].where, *status = strstr(where, "%s");
    (void)hk_buf_adds(sql, "SELECT id, ");
    add_terms(sql, query);
    (void)hk_buf_addf(sql, "%s%s FROM dead_letters %s WHERE ", hk_sl_sieve_columns(query), also ? also : "",
                      leads[lead].from);
    if (status) {
        (void)hk_buf_add(sql, where, (size_t)(status - where));
        (void)hk_buf_addf(sql, "%s%s", status_names[hk_sl_only_status(query->statuses)], status + 2);
    } else {
        (void)hk_buf_adds(sql, where);
    }
    (void)hk_buf_adds(sql, "id >= ?1 AND id <= ?2");
}

/* No letter is in a group twice: where nothing changed no older fingerprint is kept. */
static void write_sql(struct hk_buf *sql, const struct hk_letter_query *query, struct hk_sl_range range)
{
    enum lead lead = lead_of(query);
    write_select(sql, query, range.also, lead);
    if (lead == BY_GROUP) {
        (void)hk_buf_adds(sql, " UNION ALL ");
        write_select(sql, query, range.also, BY_OLD_GROUP);
    }
    (void)hk_buf_addf(sql, " ORDER BY id%s", range.oldest_first ? "" : " DESC");
}

static void bind_range(struct hk_sl_walk *walk, struct hk_sl_range range)
{
    const struct hk_letter_query *query = walk->query;
    int64_t lo = query->first_id ? query->first_id : INT64_MIN;
    int64_t hi = query->last_id ? query->last_id : INT64_MAX;
    if (range.after_id && range.oldest_first && range.after_id >= lo)
        lo = range.after_id < INT64_MAX ? range.after_id + 1 : range.after_id;
    if (range.after_id && !range.oldest_first && range.after_id <= hi && range.after_id > INT64_MIN)
        hi = range.after_id - 1;
    hk_sq_bind_i64(walk->store, walk->q, 1, lo);
    hk_sq_bind_i64(walk->store, walk->q, 2, hi);
}

void hk_sl_walk_begin(struct hk_store *store, const struct hk_letter_query *query, struct hk_sl_range range,
                      struct hk_sl_bound bound, struct hk_sl_walk *out)
{
    struct hk_buf sql;
    *out = (struct hk_sl_walk){.store = store, .query = query, .left = bound};
    hk_buf_init(&sql, SQL_MAX);
    write_sql(&sql, query, range);
    if (hk_buf_status(&sql) != HK_OK)
        hk_sq_fail(store, SQLITE_NOMEM);
    out->q = hk_sa_prepare(store, hk_buf_cstr(&sql));
    hk_buf_fini(&sql);
    bind_range(out, range);
    hk_sl_bind(store, out->q, query);
    if (query->match)
        hk_sl_reader_open(store, true, &out->reader);
}

static bool matches(struct hk_sl_walk *walk)
{
    struct hk_letter letter;
    uint64_t most = walk->store->options.max_payload_bytes;
    if (!walk->query->match)
        return true;
    if (!hk_sl_sieve(walk))
        return false;
    hk_pool_reset(&walk->scratch);
    if (!hk_sl_read(&walk->reader, walk->last_id, most < SIZE_MAX ? (size_t)most : SIZE_MAX, &walk->scratch,
                    &letter))
        return false;
    walk->left.bytes -= letter.payload.len < walk->left.bytes ? letter.payload.len : walk->left.bytes;
    return walk->query->match(walk->query->match_arg, &letter);
}

bool hk_sl_walk_next(struct hk_sl_walk *walk)
{
    while (!walk->ended && walk->left.rows > 0 && walk->left.bytes > 0) {
        if (!hk_sq_row(walk->store, walk->q)) {
            walk->ended = hk_sq_ok(walk->store);
            return false;
        }
        walk->left.rows--;
        walk->last_id = sqlite3_column_int64(walk->q, 0);
        if (walk->looked++ == 0)
            walk->first_id = walk->last_id;
        if (walk->query->seen && walk->looked % TOLD_EVERY == 0)
            walk->query->seen(walk->query->seen_arg, walk->last_id);
        if (sqlite3_column_int(walk->q, 1) && matches(walk))
            return hk_sq_ok(walk->store);
    }
    if (walk->query->seen && walk->looked > 0)
        walk->query->seen(walk->query->seen_arg, walk->last_id);
    return false;
}

void hk_sl_walk_end(struct hk_sl_walk *walk)
{
    sqlite3_finalize(walk->q);
    hk_sl_reader_close(&walk->reader);
    hk_pool_fini(&walk->scratch);
    hk_mem_free(walk->piece);
    walk->q = NULL;
}
