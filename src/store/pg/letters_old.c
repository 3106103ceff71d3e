/* SPDX-License-Identifier: Apache-2.0 */
/* Letters that are older than schema version 2 know neither their class nor whose fault they were, and belong to no group.
 * Both follow from what they have; but only we can tell, not SQL. So init does it, behind the migration, in short transactions:
 * it may be killed anywhere, and the next init goes on. */
#include <inttypes.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "core/letter.h"
#include "store/pg/pg.h"

#define BATCH      "1000"
#define SCRIPT_MAX ((size_t)256 * 1024)

/* The index of groups finds them. Details are our own JSON, written in this order without blanks. */
#define LOOK                                                                                                 \
    "SELECT d.id, left(d.reason_code, 200), left(d.destination, 4096), left(d.error_message, 16000), "       \
    "substring(d.error_detail FROM '\"class\":\"([a-z_]+)\"'), "                                             \
    "substring(d.error_detail FROM '^{\"cause\":\"([A-Z0-9_]+)\"'), "                                        \
    "substring(d.error_detail FROM '\"status\":([0-9]{1,4}),'), "                                            \
    "coalesce(position('\"possibly_delivered\":true' IN d.error_detail) > 0, false) FROM @dead_letters d "   \
    "WHERE d.status IN ('failed', 'retrying', 'resolved', 'discarded') AND d.fingerprint IS NULL LIMIT " BATCH

enum {
    C_ID,
    C_REASON,
    C_DESTINATION,
    C_ERROR,
    C_CLASS,
    C_CAUSE,
    C_STATUS,
    C_POSSIBLY
};

static struct hk_str text_at(const PGresult *res, int row, int column)
{
    return (struct hk_str){PQgetvalue(res, row, column), (size_t)PQgetlength(res, row, column)};
}

/* All of it is ours, or a number: nothing needs to be escaped. */
static void add_letter(const PGresult *res, int i, struct hk_buf *sql)
{
    enum hk_class class = hk_class_by_name(PQgetvalue(res, i, C_CLASS));
    struct hk_str reason = text_at(res, i, C_REASON);
    uint64_t status = 0;
    char print[HK_FINGERPRINT_MAX];
    if (hk_parse_u64(text_at(res, i, C_STATUS), &status, NULL) != HK_OK)
        status = 0;
    bool sent = class < HK_NCLASSES;
    hk_fingerprint(sent ? class : HK_CLASS_SUCCESS, reason, text_at(res, i, C_DESTINATION),
                   text_at(res, i, C_ERROR), print);
    (void)hk_buf_addf(sql, "%s(%" PRId64 ", %s%s%s, '%s', '%s', %s)", i ? ", " : "", hk_pg_i64(res, i, C_ID),
                      sent ? "'" : "", sent ? hk_class_name(class) : "NULL", sent ? "'" : "",
                      hk_blame_name(hk_blame_of(reason, text_at(res, i, C_CAUSE), (int)status)), print,
                      hk_pg_bool(res, i, C_POSSIBLY) ? "true" : "false");
}

/* False: nothing is left, or an error sticks. */
static bool mark_some(struct hk_pg *pg)
{
    PGresult *res = hk_pg_script(pg, LOOK);
    int n = res ? PQntuples(res) : 0;
    struct hk_buf sql;
    hk_buf_init(&sql, SCRIPT_MAX);
    (void)hk_buf_adds(
        &sql,
        "UPDATE @dead_letters d SET failure_class = v.class, fault = v.fault, fingerprint = v.print, "
        "possibly_delivered = d.possibly_delivered OR v.possibly, requeues = greatest(d.requeues, d.life - 1), "
        "resolution = CASE WHEN d.status = 'resolved' AND d.resolution = 'sent' THEN 'delivered' "
        "ELSE d.resolution END FROM (VALUES ");
    for (int i = 0; i < n; i++)
        add_letter(res, i, &sql);
    (void)hk_buf_adds(&sql,
                      ") v (id, class, fault, print, possibly) WHERE d.id = v.id AND d.fingerprint IS NULL");
    PQclear(res);
    if (n && hk_buf_status(&sql) != HK_OK)
        hk_pg_fail(pg, hk_buf_status(&sql), "out of memory");
    res = n && hk_pg_ok(pg) ? hk_pg_script(pg, hk_buf_cstr(&sql)) : NULL;
    bool more = hk_pg_touched(res) > 0;
    PQclear(res);
    hk_buf_fini(&sql);
    return more && hk_pg_ok(pg);
}

/* Init may be repeated by anybody; who has no business with letters leaves them alone. */
static bool may_write(struct hk_pg *pg)
{
    PGresult *res = hk_pg_script(pg, "SELECT pg_catalog.has_table_privilege('@dead_letters', 'SELECT') AND "
                                     "pg_catalog.has_table_privilege('@dead_letters', 'UPDATE')");
    bool may = hk_pg_bool(res, 0, 0);
    PQclear(res);
    return may;
}

static enum hk_code mark_once(struct hk_pg *pg, const void *arg, struct hk_err *err)
{
    (void)arg;
    hk_pg_call(pg);
    bool more = may_write(pg);
    while (more && hk_pg_ok(pg))
        more = mark_some(pg);
    return hk_pg_end_schema(pg, err);
}

enum hk_code hk_pg_mark_letters(struct hk_pg *pg, struct hk_err *err)
{
    return hk_pg_patiently(pg, mark_once, NULL, err);
}
