/* SPDX-License-Identifier: Apache-2.0 */
/* All that is known of one letter, and the trail of acts. */
#include "base/str.h"
#include "store/sqlite/letters.h"

#define ACTS_MAX     1000
#define VERSIONS_MAX 100

static struct hk_str text_at(struct hk_store *store, sqlite3_stmt *q, int column)
{
    return hk_sa_text(store, q, column, HK_SA_TEXT_MAX);
}

/* ---- attempts ---- */

/* Ids that it had in between are in the trail of its requeues. */
static void show_attempts(struct hk_store *store, struct hk_letter_shown *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_ATTEMPTS], out->letter.id);
    hk_sq_bind_text(store, q, 2, out->letter.message_id);
    hk_sq_bind_text_or_null(store, q, 3, out->letter.requeued_as);
    hk_sq_bind_i64(store, q, 4, HK_TRIED_MAX);
    hk_sq_bind_text(store, q, 5, out->letter.destination);
    while (hk_sq_row(store, q)) {
        struct hk_tried *tried = hk_sa_grow(store, out->attempts, out->n_attempts, &room, sizeof *tried);
        if (!tried)
            break;
        out->attempts = tried;
        hk_sa_attempt(store, q, &tried[out->n_attempts++]);
    }
    sqlite3_finalize(q);
}

/* ---- versions ---- */

static void read_version(struct hk_store *store, sqlite3_stmt *q, size_t payload_max,
                         struct hk_letter_version *out)
{
    *out = (struct hk_letter_version){
        .version = hk_sa_u32(q, 1),
        .replaced_ms = sqlite3_column_int64(q, 2),
        .actor = text_at(store, q, 3),
        .reason = text_at(store, q, 4),
        .payload = {"", 0},
    };
    if (sqlite3_column_int(q, 5))
        hk_sl_read_version(store, sqlite3_column_int64(q, 0), payload_max, out);
}

static void show_versions(struct hk_store *store, size_t payload_max, struct hk_letter_shown *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_VERSIONS], out->letter.id);
    hk_sq_bind_i64(store, q, 2, VERSIONS_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_letter_version *v = hk_sa_grow(store, out->versions, out->n_versions, &room, sizeof *v);
        if (!v)
            break;
        out->versions = v;
        read_version(store, q, payload_max, &v[out->n_versions++]);
    }
    sqlite3_finalize(q);
}

/* ---- acts ---- */

/* Whole: a text that is cut has another hash. */
static void read_act(struct hk_store *store, sqlite3_stmt *q, struct hk_audit_row *out)
{
    *out = (struct hk_audit_row){
        .id = sqlite3_column_int64(q, 0),
        .at_ms = sqlite3_column_int64(q, 1),
        .actor = hk_sa_text(store, q, 2, SIZE_MAX),
        .act = hk_sa_text(store, q, 3, SIZE_MAX),
        .message_id = hk_sa_text(store, q, 4, SIZE_MAX),
        .destination = hk_sa_text(store, q, 5, SIZE_MAX),
        .reason = hk_sa_text(store, q, 6, SIZE_MAX),
        .letter_id = sqlite3_column_int64(q, 7),
        .redrive = sqlite3_column_int64(q, 8),
        .before = hk_sa_text(store, q, 9, SIZE_MAX),
        .after = hk_sa_text(store, q, 10, SIZE_MAX),
        .detail = hk_sa_text(store, q, 11, SIZE_MAX),
        .prev = hk_sa_text(store, q, 12, SIZE_MAX),
        .hash = hk_sa_text(store, q, 13, SIZE_MAX),
        .act_id = sqlite3_column_int64(q, 14),
        .letters = (uint64_t)sqlite3_column_int64(q, 15),
        .messages = (uint64_t)sqlite3_column_int64(q, 16),
    };
}

static void show_acts(struct hk_store *store, struct hk_letter_shown *out)
{
    size_t room = 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_ACTS], out->letter.id);
    hk_sq_bind_i64(store, q, 2, ACTS_MAX);
    while (hk_sq_row(store, q)) {
        struct hk_audit_row *acts = hk_sa_grow(store, out->acts, out->n_acts, &room, sizeof *acts);
        if (!acts)
            break;
        out->acts = acts;
        read_act(store, q, &acts[out->n_acts++]);
    }
    sqlite3_finalize(q);
}

/* ---- show ---- */

/* Those of its key at its destination, in whatever order they came: while it is open none of them goes (`on_dead: block`). */
static uint64_t count_blocked(struct hk_store *store, const struct hk_letter *letter)
{
    bool holds = letter->status == HK_LETTER_FAILED || letter->sending_ms;
    if (!letter->key.len || !holds)
        return 0;
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_COUNT_BLOCKED], HK_COUNT_EXACT);
    hk_sq_bind_text(store, q, 2, letter->destination);
    hk_sq_bind_text(store, q, 3, letter->key);
    uint64_t n = hk_sq_row(store, q) ? (uint64_t)sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return n;
}

static bool show(struct hk_store *store, int64_t id, size_t payload_max, struct hk_letter_shown *out)
{
    struct hk_sl_reader reader;
    hk_sl_reader_open(store, true, &reader);
    bool found = hk_sl_read(&reader, id, payload_max, hk_sq_pool(store), &out->letter);
    hk_sl_reader_close(&reader);
    if (!found)
        return false;
    show_attempts(store, out);
    show_versions(store, payload_max, out);
    show_acts(store, out);
    out->blocked = count_blocked(store, &out->letter);
    out->now_ms = hk_sq_now(store);
    return true;
}

enum hk_code hk_sl_show(struct hk_admin *admin, int64_t id, size_t payload_max,
                        const struct hk_letter_shown **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_letter_shown *shown = hk_sq_alloc(store, 1, sizeof *shown);
    hk_sq_begin_read(store);
    bool found = shown && show(store, id, payload_max, shown);
    enum hk_code rc = hk_sq_end(store, "read a dead letter", err);
    if (rc == HK_OK && !found)
        rc = hk_err_set(err, HK_NOTFOUND, "there is no dead letter %lld", (long long)id);
    if (rc == HK_OK)
        *out = shown;
    return rc;
}

/* ---- the trail ---- */

static struct hk_str meta(struct hk_store *store, const char *key)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_META]);
    hk_sq_bind_cstr(store, q, 1, key);
    struct hk_str value = hk_sq_row(store, q) ? hk_sa_text(store, q, 0, SIZE_MAX) : (struct hk_str){"", 0};
    sqlite3_finalize(q);
    return value;
}

static int64_t first_link(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_CHAIN_FIRST]);
    int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return id;
}

static sqlite3_stmt *prepare_page(struct hk_store *store, const struct hk_audit_page *page)
{
    int64_t from = page->after_id || page->oldest_first ? page->after_id : INT64_MAX;
    const char *const sql[2][2] = {{hk_sl_texts[HK_SL_AUDIT_NEWEST], hk_sl_texts[HK_SL_AUDIT_NEWEST_OF]},
                                   {hk_sl_texts[HK_SL_AUDIT_OLDEST], hk_sl_texts[HK_SL_AUDIT_OLDEST_OF]}};
    sqlite3_stmt *q = hk_sa_prepare(store, sql[page->oldest_first][page->letter_id != 0]);
    hk_sq_bind_i64(store, q, 1, from);
    hk_sq_bind_i64(store, q, 2, page->letter_id);
    hk_sq_bind_text_or_null(store, q, 3, hk_str_of(page->actor));
    hk_sq_bind_text_or_null(store, q, 4, hk_str_of(page->act));
    hk_sq_bind_i64(store, q, 5, (int64_t)page->limit + 1);
    hk_sq_bind_i64(store, q, 6, page->parts);
    return q;
}

static void read_page(struct hk_store *store, const struct hk_audit_page *page, struct hk_audit_rows *out)
{
    size_t room = 0;
    sqlite3_stmt *q = prepare_page(store, page);
    out->last_id = page->after_id;
    while (hk_sq_row(store, q)) {
        if (out->n == page->limit) {
            out->more = page->limit > 0;
            break;
        }
        struct hk_audit_row *rows = hk_sa_grow(store, out->items, out->n, &room, sizeof *rows);
        if (!rows)
            break;
        out->items = rows;
        read_act(store, q, &rows[out->n]);
        if (page->lists)
            rows[out->n].list = hk_sl_list_digest(store, rows[out->n].id);
        out->last_id = rows[out->n++].id;
    }
    sqlite3_finalize(q);
    out->first_id = first_link(store);
    out->first_prev = meta(store, "audit_first_prev");
    out->unwitnessed_prev = meta(store, "audit_unwitnessed_prev");
    out->head = meta(store, "audit_head");
}

enum hk_code hk_sl_audit(struct hk_admin *admin, const struct hk_audit_page *page,
                         const struct hk_audit_rows **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_audit_rows *rows = hk_sq_alloc(store, 1, sizeof *rows);
    hk_sq_begin_read(store);
    if (rows)
        read_page(store, page, rows);
    enum hk_code rc = hk_sq_end(store, "read the audit trail", err);
    if (rc == HK_OK)
        *out = rows;
    return rc;
}

enum hk_code hk_sl_find_requeued(struct hk_admin *admin, const char *message_id, int64_t *out_id,
                                 struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_FIND_REQUEUED]);
    hk_sq_bind_cstr(store, q, 1, message_id);
    int64_t id = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "look for a dead letter", err);
    if (rc == HK_OK && !id)
        return hk_err_set(err, HK_NOTFOUND, "no dead letter was requeued under that id");
    if (rc == HK_OK)
        *out_id = id;
    return rc;
}

enum hk_code hk_sl_paused(struct hk_admin *admin, const struct hk_names **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    size_t room = 0;
    hk_sq_call(store);
    struct hk_names *names = hk_sq_alloc(store, 1, sizeof *names);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sl_texts[HK_SL_PAUSED]);
    hk_sq_bind_i64(store, q, 1, HK_NAMES_MAX);
    while (names && hk_sq_row(store, q)) {
        struct hk_str *items = hk_sa_grow(store, names->items, names->n, &room, sizeof *items);
        if (!items)
            break;
        names->items = items;
        items[names->n++] = hk_sa_text(store, q, 0, HK_SA_TEXT_MAX);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read which destinations are paused", err);
    if (rc == HK_OK)
        *out = names;
    return rc;
}
