/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in a SQLite file: operators write them, relays read them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "store/letters.h"
#include "store/sqlite/admin.h"

/* ---- operators ---- */

static void read_definition(struct hk_store *store, sqlite3_stmt *q, struct hk_definition *out)
{
    *out = (struct hk_definition){.name = hk_sa_text(store, q, 0, HK_DEFINITION_BYTES),
                                  .version = sqlite3_column_int64(q, 1),
                                  .seq = sqlite3_column_int64(q, 2),
                                  .text = hk_sa_text(store, q, 3, HK_DEFINITION_BYTES),
                                  .created_ms = sqlite3_column_int64(q, 4),
                                  .created_by = hk_sa_text(store, q, 5, HK_SA_TEXT_MAX),
                                  .changed_ms = sqlite3_column_int64(q, 6),
                                  .changed_by = hk_sa_text(store, q, 7, HK_SA_TEXT_MAX),
                                  .reason = hk_sa_text(store, q, 8, HK_SA_TEXT_MAX)};
}

static int64_t version_of_all(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DEFINITIONS_VERSION);
    int64_t version = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    hk_sq_done(q);
    return version;
}

/* `key`: a name, or a JSON array of them; without bytes: all. */
static enum hk_code read_definitions(struct hk_admin *admin, unsigned text, struct hk_str key,
                                     const struct hk_definitions **out, struct hk_err *err)
{
    struct hk_store *store = admin->store;
    size_t room = 0, n = 0;
    struct hk_definition *items = NULL;
    hk_sq_call(store);
    struct hk_definitions *found = hk_sq_alloc(store, 1, sizeof *found);
    hk_sq_begin_read(store);
    int64_t version = version_of_all(store);
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[text]);
    if (key.ptr)
        hk_sq_bind_text(store, q, 1, key);
    hk_sq_bind_i64(store, q, 2, HK_DEFINITIONS_MAX + 1);
    while (hk_sq_row(store, q)) {
        struct hk_definition *more = hk_sa_grow(store, items, n, &room, sizeof *more);
        if (!more)
            break;
        items = more;
        read_definition(store, q, &items[n++]);
    }
    sqlite3_finalize(q);
    enum hk_code rc = hk_sq_end(store, "read destinations", err);
    if (rc != HK_OK)
        return rc;
    *found = (struct hk_definitions){.version = version,
                                     .items = items,
                                     .n = n > HK_DEFINITIONS_MAX ? HK_DEFINITIONS_MAX : n,
                                     .more = n > HK_DEFINITIONS_MAX};
    *out = found;
    return HK_OK;
}

enum hk_code hk_sa_definitions(struct hk_admin *admin, const char *name, const struct hk_definitions **out,
                               struct hk_err *err)
{
    const struct hk_str key = {name, name ? strlen(name) : 0};
    return read_definitions(admin, HK_SA_DEFINITIONS, key, out, err);
}

enum hk_code hk_sa_definitions_of(struct hk_admin *admin, const struct hk_str *names, size_t n,
                                  const struct hk_definitions **out, struct hk_err *err)
{
    struct hk_buf list;
    hk_buf_init(&list, HK_DEFINITIONS_NAMES_MAX);
    hk_definition_names(names, n, &list);
    enum hk_code rc = hk_buf_status(&list);
    rc = rc == HK_OK ? read_definitions(admin, HK_SA_DEFINITIONS_OF, hk_buf_str(&list), out, err)
                     : hk_err_set(err, rc, "there are too many names");
    hk_buf_fini(&list);
    return rc;
}

static int64_t version_of(struct hk_store *store, const char *name)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_DEFINITION_VERSION]);
    hk_sq_bind_cstr(store, q, 1, name);
    int64_t version = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return version;
}

static int64_t next_seq(struct hk_store *store)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_DEFINITIONS_NEXT]);
    int64_t seq = hk_sq_row(store, q) ? sqlite3_column_int64(q, 0) : 0;
    sqlite3_finalize(q);
    return seq;
}

static bool is_full(struct hk_store *store, uint32_t max)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_DEFINITIONS_COUNT]);
    bool full = hk_sq_row(store, q) && sqlite3_column_int64(q, 0) >= (int64_t)max;
    sqlite3_finalize(q);
    return full;
}

struct act {
    const char *act, *name, *actor, *reason;
    int64_t version, now_ms;
};

static void audit(struct hk_store *store, const struct act *act)
{
    char detail[48];
    (void)snprintf(detail, sizeof detail, "{\"version\":%" PRId64 "}", act->version);
    hk_sq_audit(store, &(struct hk_audit_row){.at_ms = act->now_ms,
                                              .actor = hk_str_of(act->actor),
                                              .act = hk_str_of(act->act),
                                              .destination = hk_str_of(act->name),
                                              .reason = hk_str_of(act->reason),
                                              .detail = hk_str_of(detail)});
}

static int64_t begin_act(struct hk_store *store)
{
    hk_sq_call(store);
    hk_sq_begin_write(store);
    hk_sq_clock_lift(store);
    return hk_sq_now(store);
}

enum hk_code hk_sa_define(struct hk_admin *admin, const struct hk_define *ask, struct hk_defined *out,
                          struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store), was = version_of(store, ask->name);
    if (hk_sq_ok(store) && ask->version != HK_DEFINITION_ANY && ask->version != was) {
        hk_sq_rollback(store);
        return hk_definition_refused(ask->version, was, err);
    }
    if (hk_sq_ok(store) && !was && ask->max && is_full(store, ask->max)) {
        hk_sq_rollback(store);
        return hk_definition_full(ask->max, err);
    }
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_DEFINE]);
    hk_sq_bind_cstr(store, q, 1, ask->name);
    hk_sq_bind_i64(store, q, 2, next_seq(store));
    hk_sq_bind_text(store, q, 3, ask->text);
    hk_sq_bind_i64(store, q, 4, now_ms);
    hk_sq_bind_cstr(store, q, 5, ask->actor);
    hk_sq_bind_cstr(store, q, 6, ask->reason);
    (void)hk_sq_run(store, q);
    sqlite3_finalize(q);
    audit(store, &(struct act){was ? "destination-update" : "destination-create", ask->name, ask->actor,
                               ask->reason, was + 1, now_ms});
    enum hk_code rc = hk_sq_end(store, "define a destination", err);
    if (rc == HK_OK)
        *out = (struct hk_defined){.version = was + 1, .now_ms = now_ms, .made = !was};
    return rc;
}

static bool something_waits(struct hk_store *store, const char *name)
{
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_WAITS_FOR]);
    hk_sq_bind_cstr(store, q, 1, name);
    bool waits = hk_sq_row(store, q) && sqlite3_column_int(q, 0) != 0;
    sqlite3_finalize(q);
    return waits;
}

enum hk_code hk_sa_undefine(struct hk_admin *admin, const struct hk_undefine *ask, struct hk_defined *out,
                            struct hk_err *err)
{
    struct hk_store *store = admin->store;
    int64_t now_ms = begin_act(store), was = version_of(store, ask->name);
    bool waits = hk_sq_ok(store) && !ask->force && something_waits(store, ask->name);
    if (hk_sq_ok(store) && (!was || waits || (ask->version != HK_DEFINITION_ANY && ask->version != was))) {
        hk_sq_rollback(store);
        return was && waits ? hk_definition_busy(err) : hk_definition_refused(ask->version, was, err);
    }
    sqlite3_stmt *q = hk_sa_prepare(store, hk_sa_texts[HK_SA_UNDEFINE]);
    hk_sq_bind_cstr(store, q, 1, ask->name);
    (void)hk_sq_run(store, q);
    sqlite3_finalize(q);
    (void)next_seq(store);
    audit(store, &(struct act){"destination-delete", ask->name, ask->actor, ask->reason, was, now_ms});
    enum hk_code rc = hk_sq_end(store, "delete a destination", err);
    if (rc == HK_OK)
        *out = (struct hk_defined){.version = was, .now_ms = now_ms};
    return rc;
}

/* ---- relays ---- */

int64_t hk_sq_definitions_version(struct hk_store *store)
{
    return version_of_all(store);
}

enum hk_code hk_sq_definitions(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                               struct hk_err *err)
{
    hk_sq_call(store);
    struct hk_definitions *found = hk_sq_alloc(store, 1, sizeof *found);
    struct hk_definition *items = NULL;
    size_t room = 0;
    if (!found)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    hk_sq_begin_read(store);
    *found = (struct hk_definitions){.version = version_of_all(store)};
    sqlite3_stmt *q = hk_sq_use(store, HK_SQ_DEFINITIONS);
    hk_sq_bind_i64(store, q, 1, known);
    hk_sq_bind_i64(store, q, 2, HK_DEFINITIONS_MAX);
    while (hk_sq_row(store, q)) {
        items = hk_sa_grow(store, items, found->n, &room, sizeof *items);
        if (!items)
            break;
        items[found->n++] = (struct hk_definition){.name = hk_sq_text(store, q, 0),
                                                   .version = sqlite3_column_int64(q, 1),
                                                   .seq = sqlite3_column_int64(q, 2),
                                                   .text = sqlite3_column_type(q, 3) == SQLITE_NULL
                                                               ? (struct hk_str){NULL, 0}
                                                               : hk_sq_text(store, q, 3)};
    }
    hk_sq_done(q);
    found->items = items;
    enum hk_code rc = hk_sq_end(store, "read destinations", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}
