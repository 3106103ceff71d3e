/* SPDX-License-Identifier: Apache-2.0 */
/* An act's row in the audit: a row that names its one letter, or a row for many letters with their list beside it. The row, which the
 * chain covers, contains the digest of the list; so the list is gathered first, and both are written at the end of the act. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/str.h"
#include "store/sqlite/letters.h"

#define DETAIL_MAX ((size_t)512 * 1024)

void hk_sl_trail_begin(struct hk_sl_trail *t, const struct hk_letter_act *act)
{
    t->many = act->n > 1 || act->filter || act->act_id;
    t->filter = act->filter;
    t->program = act->program;
    t->act_id = act->act_id;
}

static struct hk_str copy(struct hk_store *store, struct hk_str text)
{
    char *bytes = text.len ? hk_sq_alloc(store, text.len, 1) : NULL;
    if (!bytes)
        return (struct hk_str){"", 0};
    memcpy(bytes, text.ptr, text.len);
    return (struct hk_str){bytes, text.len};
}

void hk_sl_trail_add(struct hk_sl_trail *t, const struct hk_audit_letter *letter)
{
    struct hk_store *store = t->store;
    if (!t->many) {
        struct hk_audit_row row = t->row;
        row.letter_id = t->messages ? 0 : letter->letter_id;
        row.message_id = letter->message_id;
        row.destination = letter->destination;
        row.before = letter->before;
        row.after = letter->after;
        row.detail = letter->detail;
        hk_sq_audit(store, &row);
        return;
    }
    if (t->n && t->items[t->n - 1].letter_id == letter->letter_id)
        return; /* it was named twice */
    struct hk_audit_letter *items = hk_sa_grow(store, t->items, t->n, &t->room, sizeof *items);
    if (!items)
        return;
    t->items = items;
    items[t->n] = *letter;
    items[t->n].before = copy(store, letter->before);
    items[t->n].after = copy(store, letter->after);
    items[t->n].detail = copy(store, letter->detail);
    t->n++;
}

static void put_text(struct hk_json *json, const char *key, const char *text)
{
    if (!text)
        return;
    hk_json_key(json, key);
    hk_json_str(json, hk_str_of(text));
}

/* {"act":17,"letters":500 (or "messages"),"list":"…","filter":"…","jq":"…"}: a row that goes on with an act begins with "act", and leaves the words to
 * the first. PostgreSQL writes the same in SQL. */
static void write_detail(struct hk_sl_trail *t, struct hk_buf *out)
{
    char digest[HK_AUDIT_HASH_MAX];
    struct hk_json json;
    hk_audit_list_hash(t->items, t->n, digest);
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    if (t->act_id) {
        hk_json_key(&json, "act");
        hk_json_i64(&json, t->act_id);
    }
    hk_json_key(&json, t->messages ? "messages" : "letters");
    hk_json_i64(&json, (int64_t)t->n);
    hk_json_key(&json, "list");
    hk_json_str(&json, hk_str_of(digest));
    if (!t->act_id) {
        put_text(&json, "filter", t->filter);
        put_text(&json, "jq", t->program);
    }
    hk_json_end(&json);
    if (!digest[0] || hk_buf_status(out) == HK_NOMEM)
        hk_sq_fail(t->store, SQLITE_NOMEM);
    else if (hk_buf_status(out) != HK_OK)
        hk_sq_fail(t->store, SQLITE_TOOBIG);
}

static int by_id(const void *a, const void *b)
{
    int64_t x = ((const struct hk_audit_letter *)a)->letter_id;
    int64_t y = ((const struct hk_audit_letter *)b)->letter_id;
    return (x > y) - (x < y);
}

static void write_list(struct hk_sl_trail *t, int64_t audit_id)
{
    struct hk_store *store = t->store;
    sqlite3_stmt *q =
        hk_sa_prepare(store, hk_sl_texts[t->messages ? HK_SL_ADD_MESSAGE_TO_LIST : HK_SL_ADD_TO_LIST]);
    for (size_t i = 0; i < t->n && hk_sq_ok(store); i++) {
        const struct hk_audit_letter *l = &t->items[i];
        hk_sq_bind_i64(store, q, 1, audit_id);
        hk_sq_bind_i64(store, q, 2, l->letter_id);
        hk_sq_bind_i64(store, q, 3, t->act_id);
        hk_sq_bind_text_or_null(store, q, 4, l->message_id);
        hk_sq_bind_text_or_null(store, q, 5, l->destination);
        if (!t->messages) {
            hk_sq_bind_text_or_null(store, q, 6, l->before);
            hk_sq_bind_text_or_null(store, q, 7, l->after);
            hk_sq_bind_text_or_null(store, q, 8, l->detail);
        }
        hk_sq_run(store, q);
    }
    sqlite3_finalize(q);
}

int64_t hk_sl_trail_end(struct hk_sl_trail *t)
{
    struct hk_buf detail;
    if (!t->n || !hk_sq_ok(t->store))
        return t->act_id;
    if (t->messages)
        qsort(t->items, t->n, sizeof *t->items, by_id);
    hk_buf_init(&detail, DETAIL_MAX);
    write_detail(t, &detail);
    t->row.detail = hk_buf_str(&detail);
    hk_sq_audit(t->store, &t->row);
    hk_buf_fini(&detail);
    int64_t audit_id = sqlite3_last_insert_rowid(t->store->db);
    if (!t->act_id)
        t->act_id = audit_id;
    write_list(t, audit_id);
    return t->act_id;
}

/* ---- reading ---- */

static void read_letter(struct hk_store *store, sqlite3_stmt *q, struct hk_audit_letter *out)
{
    *out = (struct hk_audit_letter){
        .audit_id = sqlite3_column_int64(q, 0),
        .letter_id = sqlite3_column_int64(q, 1),
        .message_id = hk_sa_text(store, q, 2, SIZE_MAX),
        .destination = hk_sa_text(store, q, 3, SIZE_MAX),
        .before = hk_sa_text(store, q, 4, SIZE_MAX),
        .after = hk_sa_text(store, q, 5, SIZE_MAX),
        .detail = hk_sa_text(store, q, 6, SIZE_MAX),
        .overtaken = sqlite3_column_int(q, 7) != 0,
        .is_message = sqlite3_column_int(q, 8) != 0,
    };
}

/* Whole: a text that is cut has another digest. */
static bool read_letters(struct hk_store *store, sqlite3_stmt *q, struct hk_audit_letters *out, size_t limit)
{
    size_t room = 0;
    while (hk_sq_row(store, q)) {
        out->more = out->n == limit;
        struct hk_audit_letter *items =
            out->more ? NULL : hk_sa_grow(store, out->items, out->n, &room, sizeof *items);
        if (!items)
            break;
        out->items = items;
        read_letter(store, q, &items[out->n++]);
    }
    sqlite3_finalize(q);
    return hk_sq_ok(store);
}

struct hk_str hk_sl_list_digest(struct hk_store *store, int64_t audit_id)
{
    struct hk_audit_letters list = {.n = 0};
    char *digest = hk_sq_alloc(store, 1, HK_AUDIT_HASH_MAX);
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_LIST_OF], audit_id);
    if (!read_letters(store, q, &list, SIZE_MAX) || !digest || !list.n)
        return (struct hk_str){"", 0};
    hk_audit_list_hash(list.items, list.n, digest);
    if (!digest[0])
        hk_sq_fail(store, SQLITE_NOMEM);
    return hk_str_of(digest);
}

enum hk_code hk_sl_act_letters(struct hk_admin *admin, int64_t act_id, int64_t after_letter_id,
                               uint32_t limit, const struct hk_audit_letters **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    hk_sq_call(store);
    struct hk_audit_letters *letters = hk_sq_alloc(store, 1, sizeof *letters);
    hk_sq_begin_read(store);
    sqlite3_stmt *q = hk_sl_prepare_for(store, hk_sl_texts[HK_SL_ACT_LETTERS], act_id);
    hk_sq_bind_i64(store, q, 2, after_letter_id);
    hk_sq_bind_i64(store, q, 3, (int64_t)limit + 1);
    if (letters)
        (void)read_letters(store, q, letters, limit);
    else
        sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read the letters of an act", err);
    if (rc == HK_OK)
        *out = letters;
    return rc;
}
