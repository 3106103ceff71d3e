/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations that are kept in PostgreSQL: operators write them, relays read them. */
#include <string.h>

#include "base/str.h"
#include "store/pg/admin.h"
#include "store/pg/store.h"

/* ---- operators ---- */

static void take_definitions(struct hk_pg *pg, const PGresult *res, struct hk_definitions *out)
{
    int n = res ? PQntuples(res) : 0;
    struct hk_definition *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++) {
        out->version = hk_pg_i64(res, i, 0);
        if (hk_pg_null(res, i, 1))
            continue;
        out->more = out->n == HK_DEFINITIONS_MAX;
        if (out->more)
            break;
        items[out->n++] = (struct hk_definition){.name = hk_pg_text(pg, res, i, 1),
                                                 .version = hk_pg_i64(res, i, 2),
                                                 .seq = hk_pg_i64(res, i, 3),
                                                 .text = hk_pg_text(pg, res, i, 4),
                                                 .created_ms = hk_pg_i64(res, i, 5),
                                                 .created_by = hk_pg_text(pg, res, i, 6),
                                                 .changed_ms = hk_pg_i64(res, i, 7),
                                                 .changed_by = hk_pg_text(pg, res, i, 8),
                                                 .reason = hk_pg_text(pg, res, i, 9)};
    }
    out->items = items;
}

/* `key`: a name, or a JSON array of them; without bytes: all. */
static enum hk_code read_definitions(struct hk_admin *admin, unsigned stmt, struct hk_str key,
                                     const struct hk_definitions **out, struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_call(pg);
    struct hk_definitions *found = hk_pg_alloc(pg, 1, sizeof *found);
    if (key.ptr)
        hk_pg_arg_text(pg, &a, key);
    else
        hk_pg_arg_null(pg, &a);
    hk_pg_arg_i64(pg, &a, HK_DEFINITIONS_MAX + 1);
    PGresult *res = found ? hk_pg_query(pg, false, stmt, &a) : NULL;
    if (found) {
        *found = (struct hk_definitions){.version = 0};
        take_definitions(pg, res, found);
    }
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read destinations", err);
    if (rc == HK_OK)
        *out = found;
    return rc;
}

enum hk_code hk_pa_definitions(struct hk_admin *admin, const char *name, const struct hk_definitions **out,
                               struct hk_err *err)
{
    const struct hk_str key = {name, name ? strlen(name) : 0};
    return read_definitions(admin, HK_PA_DEFINITIONS, key, out, err);
}

enum hk_code hk_pa_definitions_of(struct hk_admin *admin, const struct hk_str *names, size_t n,
                                  const struct hk_definitions **out, struct hk_err *err)
{
    struct hk_buf list;
    hk_buf_init(&list, HK_DEFINITIONS_NAMES_MAX);
    hk_definition_names(names, n, &list);
    enum hk_code rc = hk_buf_status(&list);
    rc = rc == HK_OK ? read_definitions(admin, HK_PA_DEFINITIONS_OF, hk_buf_str(&list), out, err)
                     : hk_err_set(err, rc, "there are too many names");
    hk_buf_fini(&list);
    return rc;
}

static PGresult *query_in_turn(struct hk_pg *pg, unsigned stmt, const struct hk_pg_args *a)
{
    hk_pg_begin(pg, true);
    hk_pg_add(pg, HK_PA_DEFINITIONS_TURN, NULL);
    hk_pg_add(pg, stmt, a);
    hk_pg_send(pg);
    PQclear(hk_pg_result(pg));
    return hk_pg_result(pg);
}

enum hk_code hk_pa_define(struct hk_admin *admin, const struct hk_define *ask, struct hk_defined *out,
                          struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_defined done = {.version = 0};
    int64_t was = 0;
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->name));
    hk_pg_arg_text(pg, &a, ask->text);
    hk_pg_arg_i64(pg, &a, ask->version);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    hk_pg_arg_i64(pg, &a, ask->max);
    PGresult *res = query_in_turn(pg, HK_PA_DEFINE, &a);
    if (res && PQntuples(res) == 1) {
        done.version = hk_pg_null(res, 0, 0) ? 0 : hk_pg_i64(res, 0, 0);
        done.now_ms = hk_pg_i64(res, 0, 1);
        was = hk_pg_null(res, 0, 2) ? 0 : hk_pg_i64(res, 0, 2);
        done.made = done.version == 1;
    }
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "define a destination", err);
    if (rc == HK_OK && !done.version && !was && ask->version <= 0)
        return hk_definition_full(ask->max, err);
    if (rc == HK_OK && !done.version)
        return hk_definition_refused(ask->version, was, err);
    if (rc == HK_OK)
        *out = done;
    return rc;
}

enum hk_code hk_pa_undefine(struct hk_admin *admin, const struct hk_undefine *ask, struct hk_defined *out,
                            struct hk_err *err)
{
    struct hk_pg *pg = &admin->pg;
    struct hk_pg_args a = {.n = 0};
    struct hk_defined done = {.version = 0};
    int64_t was = 0;
    bool waits = false;
    hk_pg_call(pg);
    hk_pa_arg_now(admin, &a);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->name));
    hk_pg_arg_i64(pg, &a, ask->version);
    hk_pg_arg_text(pg, &a, hk_str_of(ask->actor));
    hk_pg_arg_text(pg, &a, hk_str_of(ask->reason));
    hk_pg_arg_bool(pg, &a, ask->force);
    PGresult *res = query_in_turn(pg, HK_PA_UNDEFINE, &a);
    if (res && PQntuples(res) == 1) {
        done.version = hk_pg_null(res, 0, 0) ? 0 : hk_pg_i64(res, 0, 0);
        done.now_ms = hk_pg_i64(res, 0, 1);
        was = hk_pg_null(res, 0, 2) ? 0 : hk_pg_i64(res, 0, 2);
        waits = hk_pg_bool(res, 0, 3);
    }
    PQclear(res);
    enum hk_code rc = hk_pa_end(admin, "delete a destination", err);
    if (rc == HK_OK && !done.version)
        return was && waits ? hk_definition_busy(err) : hk_definition_refused(ask->version, was, err);
    if (rc == HK_OK)
        *out = done;
    return rc;
}

/* ---- relays ---- */

int64_t hk_pg_definitions_version(struct hk_store *store)
{
    PGresult *res = hk_pg_query(&store->pg, false, HK_PG_DEFINITIONS_VERSION, NULL);
    int64_t version = hk_pg_ok(&store->pg) && PQntuples(res) == 1 ? hk_pg_i64(res, 0, 0) : 0;
    PQclear(res);
    return version;
}

/* After an exchange that went well: what goes wrong here is no error of it. */
int64_t hk_pg_definitions_now(struct hk_store *store)
{
    int64_t version = hk_pg_definitions_version(store);
    return hk_pg_end(&store->pg, "read destinations", NULL) == HK_OK ? version : -1;
}

enum hk_code hk_pg_definitions(struct hk_store *store, int64_t known, const struct hk_definitions **out,
                               struct hk_err *err)
{
    struct hk_pg *pg = &store->pg;
    struct hk_pg_args a = {.n = 0};
    hk_pg_relay_call(store);
    struct hk_definitions *found = hk_pg_alloc(pg, 1, sizeof *found);
    int64_t version = hk_pg_definitions_version(store); /* first: what is read next is as new, or newer */
    hk_pg_arg_i64(pg, &a, known);
    hk_pg_arg_i64(pg, &a, HK_DEFINITIONS_MAX);
    PGresult *res = found && hk_pg_ok(pg) ? hk_pg_query(pg, false, HK_PG_DEFINITIONS, &a) : NULL;
    int n = res && hk_pg_ok(pg) ? PQntuples(res) : 0;
    struct hk_definition *items = hk_pg_alloc(pg, (size_t)n + 1, sizeof *items);
    for (int i = 0; items && i < n; i++)
        items[i] = (struct hk_definition){.name = hk_pg_text(pg, res, i, 0),
                                          .version = hk_pg_i64(res, i, 1),
                                          .seq = hk_pg_i64(res, i, 2),
                                          .text = hk_pg_null(res, i, 3) ? (struct hk_str){NULL, 0}
                                                                        : hk_pg_text(pg, res, i, 3)};
    PQclear(res);
    enum hk_code rc = hk_pg_end(pg, "read destinations", err);
    if (rc != HK_OK)
        return rc;
    if (!found || !items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *found = (struct hk_definitions){.version = version, .items = items, .n = (size_t)n};
    *out = found;
    return HK_OK;
}
