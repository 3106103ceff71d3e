/* SPDX-License-Identifier: Apache-2.0 */
/* Operators on PostgreSQL: the handle, enqueueing, pausing, finding a message, and what the other files share. */
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "store/pg/admin.h"

#define IDS_MAX     ((size_t)64 * 1024)
#define PAYLOAD_MAX ((size_t)0x3fffffff) /* PostgreSQL's limit of one value */

enum {
    FIND_PAGES = 32768, /* of the table, looked at by one HK_PA_FIND: 256 MB */
    FIND_MAX = 1000     /* rows of one message_id */
};

/* ---- helpers ---- */

void hk_pa_arg_now(struct hk_admin *admin, struct hk_pg_args *a)
{
    if (admin->options.clock_ms)
        hk_pg_arg_i64(&admin->pg, a, admin->options.clock_ms(admin->options.clock_arg));
    else
        hk_pg_arg_null(&admin->pg, a);
}

void *hk_pa_grow(struct hk_admin *admin, void *items, size_t n, size_t *room, size_t bytes)
{
    if (n < *room)
        return items;
    size_t more = *room ? *room * 2 : 16;
    void *bigger = hk_pg_alloc(&admin->pg, more, bytes);
    if (!bigger)
        return NULL;
    if (n)
        memcpy(bigger, items, n * bytes);
    *room = more;
    return bigger;
}

uint32_t hk_pa_u32(const PGresult *res, int row, int column)
{
    int64_t value = hk_pg_i64(res, row, column);
    return value < 0 ? 0 : value > UINT32_MAX ? UINT32_MAX : (uint32_t)value;
}

uint64_t hk_pa_u64(const PGresult *res, int row, int column)
{
    int64_t value = hk_pg_i64(res, row, column);
    return value < 0 ? 0 : (uint64_t)value;
}

static int64_t cell_number(const struct hk_cells *row, int column)
{
    return hk_pg_i64(row->result, row->row, row->first + column);
}

static bool cell_flag(const struct hk_cells *row, int column)
{
    return hk_pg_bool(row->result, row->row, row->first + column);
}

/* The statements cut long texts. */
static struct hk_str cell_text(const struct hk_cells *row, int column, size_t max)
{
    (void)max;
    return hk_pg_text(row->store, row->result, row->row, row->first + column);
}

struct hk_cells hk_pa_cells(struct hk_pg *pg, const PGresult *res, int row, int first)
{
    return (struct hk_cells){.number = cell_number,
                             .flag = cell_flag,
                             .text = cell_text,
                             .store = pg,
                             .result = res,
                             .row = row,
                             .first = first};
}

enum hk_code hk_pa_end(struct hk_admin *admin, const char *doing, struct hk_err *err)
{
    enum hk_code rc = hk_pg_end(&admin->pg, doing, err);
    if (rc != HK_OK && admin->pg.commit_unknown)
        return hk_err_set(
            err, HK_UNAVAILABLE,
            "%s: the connection was lost while it was to %s: it may be done or not; look before "
            "you repeat it",
            admin->pg.url.place, doing);
    return rc;
}

/* ---- finding ---- */

/* The id in "outbox-17", which is what a row without message_id goes by. */
static bool id_in_name(const char *message_id, int64_t *out)
{
    struct hk_str name = hk_str_of(message_id), prefix = hk_str_of("outbox-");
    if (!hk_str_starts(name, prefix))
        return false;
    return hk_parse_i64((struct hk_str){name.ptr + prefix.len, name.len - prefix.len}, out, NULL) == HK_OK;
}

static void add_ids(struct hk_buf *ids, const char *more)
{
    if (!more[0])
        return;
    if (ids->len > 1)
        (void)hk_buf_addc(ids, ',');
    (void)hk_buf_adds(ids, more);
}

static void arg_page(struct hk_pg *pg, struct hk_pg_args *a, int64_t page, char text[32])
{
    (void)snprintf(text, 32, "(%lld,0)", (long long)(page < UINT32_MAX ? page : UINT32_MAX));
    hk_pg_arg_text(pg, a, hk_str_of(text));
}

/* Page by page of the table, as it lies: no statement takes long, however large it is. False: that was the last of them. */
static bool find_part(struct hk_admin *admin, const char *message_id, int64_t *from, struct hk_buf *ids)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    char first[32], end[32];
    hk_pg_arg_text(pg, &a, hk_str_of(message_id));
    arg_page(pg, &a, *from, first);
    *from += FIND_PAGES;
    arg_page(pg, &a, *from, end);
    PGresult *res = hk_pg_query(pg, false, HK_PA_FIND, &a);
    bool more = res && hk_pg_i64(res, 0, 1) > *from;
    if (res)
        add_ids(ids, PQgetvalue(res, 0, 0));
    PQclear(res);
    return more;
}

struct hk_str hk_pa_find(struct hk_admin *admin, const char *message_id)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_buf ids;
    int64_t id = 0, from = 0;
    hk_buf_init(&ids, IDS_MAX);
    (void)hk_buf_addc(&ids, '{');
    if (id_in_name(message_id, &id))
        (void)hk_buf_addf(&ids, "%lld", (long long)id);
    while (hk_pg_ok(pg) && ids.len < (size_t)FIND_MAX * 20 && find_part(admin, message_id, &from, &ids))
        continue;
    (void)hk_buf_addc(&ids, '}');
    const char *copy = NULL;
    if (hk_pg_ok(pg) && hk_buf_status(&ids) == HK_OK)
        copy = hk_pool_copy(hk_pg_pool(pg), hk_buf_cstr(&ids), ids.len);
    if (hk_pg_ok(pg) && !copy)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    size_t len = ids.len;
    hk_buf_fini(&ids);
    return copy ? (struct hk_str){copy, len} : (struct hk_str){"{}", 2};
}

/* ---- enqueue ---- */

/* One message as it is written. */
struct row {
    int64_t not_before_ms, expires_ms;
    const char *encoding;
    struct hk_str payload;
};

static enum hk_code check_time(const char *text, const char *name, size_t i, int64_t *out_ms,
                               struct hk_err *err)
{
    if (!text || !text[0] || hk_parse_rfc3339(hk_str_of(text), out_ms, NULL) == HK_OK)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "message %zu: its %s is not a time such as 2026-11-15T08:30:00Z", i,
                      name);
}

static enum hk_code check_texts(const struct hk_outbox_message *m, size_t i, struct hk_err *err)
{
    const struct {
        const char *name, *text;
    } texts[] = {{"message id", m->message_id},
                 {"destination", m->destination},
                 {"event type", m->event_type},
                 {"key", m->message_key},
                 {"headers", m->headers},
                 {"content type", m->content_type},
                 {"correlation id", m->correlation_id},
                 {"traceparent", m->traceparent},
                 {"idempotency key", m->idempotency_key},
                 {"policy", m->policy}};

    for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++)
        if (!hk_utf8_is_text(hk_str_of(texts[k].text)))
            return hk_err_set(err, HK_INVALID, "message %zu: its %s is not UTF-8", i, texts[k].name);
    return HK_OK;
}

/* What PostgreSQL cannot keep as text is kept as base64; the relay takes it back. */
static enum hk_code take_payload(struct hk_admin *admin, const struct hk_enqueue *item, size_t i,
                                 struct row *row, struct hk_err *err)
{
    struct hk_str payload = {item->message.payload, item->message.payload_len};
    row->encoding = item->encoding;
    row->payload = payload;
    if (payload.ptr && !hk_utf8_is_text(payload)) {
        struct hk_buf text;
        if (item->encoding && hk_str_eq(hk_str_of(item->encoding), hk_str_of("base64")))
            return hk_err_set(err, HK_INVALID, "message %zu: its payload is not base64", i);
        hk_buf_init(&text, PAYLOAD_MAX);
        enum hk_code rc = hk_buf_add_base64(&text, payload.ptr, payload.len);
        const char *copy = rc == HK_OK ? hk_pool_copy(hk_pg_pool(&admin->pg), text.data, text.len) : NULL;
        row->encoding = "base64";
        row->payload = (struct hk_str){copy, text.len};
        hk_buf_fini(&text);
        if (!copy && rc != HK_TOOBIG)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        if (!copy)
            row->payload.len = PAYLOAD_MAX;
    }
    if (row->payload.len >= PAYLOAD_MAX)
        return hk_err_set(err, HK_INVALID, "message %zu: its payload is larger than PostgreSQL takes", i);
    return HK_OK;
}

static enum hk_code take_row(struct hk_admin *admin, const struct hk_enqueue *item, size_t i, struct row *row,
                             struct hk_err *err)
{
    const struct hk_outbox_message *m = &item->message;
    if (!m->event_type || !m->event_type[0])
        return hk_err_set(err, HK_INVALID, "message %zu has no event type", i);
    enum hk_code rc = check_texts(m, i, err);
    if (rc == HK_OK)
        rc = check_time(m->not_before, "not_before", i, &row->not_before_ms, err);
    if (rc == HK_OK)
        rc = check_time(m->expires_at, "expires_at", i, &row->expires_ms, err);
    if (rc == HK_OK)
        rc = take_payload(admin, item, i, row, err);
    return rc;
}

static void arg_time(struct hk_pg *pg, struct hk_pg_args *a, const char *text, int64_t ms)
{
    if (text && text[0])
        hk_pg_arg_i64(pg, a, ms);
    else
        hk_pg_arg_null(pg, a);
}

static void add_row(struct hk_pg *pg, const struct hk_enqueue *item, const struct row *row)
{
    const struct hk_outbox_message *m = &item->message;
    struct hk_pg_args a = {.n = 0};
    const char *const texts[] = {m->message_id,  m->destination,    m->event_type, m->message_key,
                                 m->headers,     m->content_type,   row->encoding, m->correlation_id,
                                 m->traceparent, m->idempotency_key};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        hk_pg_arg_text_or_null(pg, &a, hk_str_of(texts[i]));
    arg_time(pg, &a, m->not_before, row->not_before_ms);
    arg_time(pg, &a, m->expires_at, row->expires_ms);
    hk_pg_arg_text_or_null(pg, &a, hk_str_of(m->policy));
    if (m->max_attempts)
        hk_pg_arg_i64(pg, &a, m->max_attempts < INT32_MAX ? (int64_t)m->max_attempts : INT32_MAX);
    else
        hk_pg_arg_null(pg, &a);
    if (row->payload.ptr)
        hk_pg_arg_bytes(pg, &a, row->payload);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_add(pg, item->is_task ? HK_PA_ENQUEUE_TASK : HK_PA_ENQUEUE, &a);
}

static const char NAME_TAKEN[] = "there is a task of this name, or was within the last hour";

static enum hk_code pa_enqueue(struct hk_admin *admin, const struct hk_enqueue *items, size_t n,
                               const struct hk_str **out_ids, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    hk_pg_call(pg);
    struct hk_str *ids = hk_pg_alloc(pg, n ? n : 1, sizeof *ids);
    struct row *rows = hk_pg_alloc(pg, n ? n : 1, sizeof *rows);
    for (size_t i = 0; i < n && hk_pg_ok(pg); i++) {
        enum hk_code rc = take_row(admin, &items[i], i, &rows[i], err);
        if (rc != HK_OK)
            return rc;
    }
    hk_pg_begin(pg, true);
    for (size_t i = 0; i < n && hk_pg_ok(pg); i++)
        add_row(pg, &items[i], &rows[i]);
    hk_pg_send(pg);
    bool taken = false;
    for (size_t i = 0; i < n && hk_pg_ok(pg); i++) {
        PGresult *res = hk_pg_result(pg);
        if (res && PQntuples(res) == 1)
            ids[i] = hk_pg_text(pg, res, 0, 0);
        else if (res && items[i].is_task)
            taken = true;
        PQclear(res);
    }
    if (taken && hk_pg_ok(pg))
        hk_pg_fail(pg, HK_EXISTS, NAME_TAKEN);
    enum hk_code rc = hk_pa_end(admin, "enqueue", err);
    if (rc == HK_EXISTS && taken) /* clients read this: without the place of the database */
        return hk_err_set(err, HK_EXISTS, "%s", NAME_TAKEN);
    if (rc == HK_OK)
        *out_ids = ids;
    return rc;
}

/* ---- pause ---- */

static enum hk_code pa_pause(struct hk_admin *admin, const char *destination, bool paused, const char *actor,
                             const char *reason, bool *out_changed, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    if (!hk_pg_is_name(destination, err))
        return HK_INVALID;
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(destination));
    hk_pg_arg_bool(pg, &a, paused);
    hk_pg_arg_text(pg, &a, hk_str_of(actor));
    hk_pg_arg_text(pg, &a, hk_str_of(reason));
    PGresult *res = hk_pg_query(pg, true, HK_PA_PAUSE, &a);
    bool changed = res && PQntuples(res) == 1 && hk_pg_bool(res, 0, 0);
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, paused ? "pause a destination" : "resume a destination", err);
    if (rc == HK_OK)
        *out_changed = changed;
    return rc;
}

/* ---- open and close ---- */

static void pa_keep(struct hk_admin *admin, struct hk_pool *into)
{
    hk_pool_move(hk_pg_pool(&admin->pg), into);
}

static void pa_close(struct hk_admin *admin)
{
    if (!admin)
        return;
    hk_pg_close(&admin->pg);
    hk_mem_free(admin);
}

static enum hk_code pa_open(const char *url, const struct hk_store_options *options,
                            struct hk_admin **out_admin, struct hk_err *err)
{
    struct hk_admin *admin = hk_mem_zalloc(1, sizeof *admin);
    if (!admin)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    admin->options = *options;
    enum hk_code rc = hk_pg_open(&admin->pg, url, &hk_pg_admin_table, options->busy_ms, err);
    if (rc != HK_OK) {
        hk_mem_free(admin);
        return rc;
    }
    rc = hk_pg_check_schema(&admin->pg, NULL, err);
    if (rc != HK_OK) {
        pa_close(admin);
        return rc;
    }
    *out_admin = admin;
    return HK_OK;
}

const struct hk_store_admin_ops hk_store_admin_postgres = {
    .name = "postgres",
    .open = pa_open,
    .close = pa_close,
    .keep = pa_keep,
    .enqueue = pa_enqueue,
    .status = hk_pa_status,
    .status_exact = hk_pa_status_exact,
    .blocked = hk_pa_blocked,
    .waiting = hk_pa_waiting,
    .why = hk_pa_why,
    .figures = hk_pa_figures,
    .figures_put = hk_pa_figures_put,
    .series = hk_pa_series,
    .series_names = hk_pa_series_names,
    .series_put = hk_pa_series_put,
    .seal_page = hk_pa_seal_page,
    .seal_put = hk_pa_seal_put,
    .seal_uses = hk_pa_seal_uses,
    .note = hk_pa_note,
    .relays = hk_pa_relays,
    .list = hk_pa_list,
    .show = hk_pa_show,
    .fetch = hk_pa_fetch,
    .attempts = hk_pa_attempts,
    .cancel = hk_pa_cancel,
    .cancel_refs = hk_pa_cancel_refs,
    .restore_refs = hk_pa_restore_refs,
    .erase_refs = hk_pa_erase_refs,
    .retry = hk_pa_retry,
    .force = hk_pa_force,
    .pause = pa_pause,
    .definitions = hk_pa_definitions,
    .definitions_of = hk_pa_definitions_of,
    .define = hk_pa_define,
    .undefine = hk_pa_undefine,
    .clock = hk_pa_clock,
    .adopt = hk_pa_adopt,
    .inspect = hk_pa_inspect,
};
