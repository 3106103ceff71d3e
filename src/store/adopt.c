/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the columns of an application's table to ours, and makes the SQL that copies a row. */
#include <string.h>

#include "base/json.h"
#include "base/show.h"
#include "base/str.h"
#include "store/adopt.h"

/* Names as they are recognized: in lower case, without '_', so that aggregate_id, aggregateId and AGGREGATEID are one. */
struct known {
    const char *ours;     /* as --column calls it */
    const char *names[2]; /* by enum hk_adopt_from: with blanks between, the best one first; "" = none */
};

static const struct known knowns[HK_NADOPT] = {
    [HK_ADOPT_MESSAGE_ID] = {"message_id", {"id", "messageid eventid id"}},
    [HK_ADOPT_DESTINATION] = {"destination", {"", "destination"}},
    [HK_ADOPT_EVENT_TYPE] = {"event_type", {"type", "eventtype messagetype eventname type"}},
    [HK_ADOPT_MESSAGE_KEY] = {"message_key", {"aggregateid", "messagekey partitionkey aggregateid"}},
    [HK_ADOPT_PAYLOAD] = {"payload", {"payload", "payload body content data"}},
    [HK_ADOPT_HEADERS] = {"headers", {"", "headers"}},
    [HK_ADOPT_CORRELATION_ID] = {"correlation_id", {"correlationid", "correlationid"}},
    [HK_ADOPT_TRACEPARENT] = {"traceparent", {"traceparent", "traceparent"}},
    [HK_ADOPT_NOT_BEFORE] = {"not_before",
                             {"", "nextretryat nextattemptat notbefore scheduledat availableat"}},
    [HK_ADOPT_EXPIRES_AT] = {"expires_at", {"", "expiresat"}},
    [HK_ADOPT_STATUS] = {"status", {"", "status"}},
    [HK_ADOPT_AGGREGATE_TYPE] = {"aggregate_type", {"aggregatetype", "aggregatetype"}},
    [HK_ADOPT_ORDER] = {"order", {"", "createdat occurredat occurredonutc occurredon"}},
};

/* ---- names and texts ---- */

enum hk_code hk_adopt_check_name(struct hk_str name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    bool is_bad = name.len == 0 || name.len > HK_ADOPT_NAME_MAX;
    for (size_t i = 0; i < name.len; i++)
        is_bad |= (unsigned char)name.ptr[i] < 0x20 || name.ptr[i] == 0x7f || name.ptr[i] == '@' ||
                  name.ptr[i] == '$' || name.ptr[i] == '\\';
    if (!is_bad)
        return HK_OK;
    return hk_err_set(err, HK_INVALID,
                      "%s cannot stand in a trigger: a name or a status has 1 to %d bytes, no control "
                      "characters, and none of @ $ and backslash",
                      hk_show(name, shown), HK_ADOPT_NAME_MAX);
}

static void add_quoted(struct hk_buf *out, struct hk_str text, char quote)
{
    (void)hk_buf_addc(out, quote);
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == quote)
            (void)hk_buf_addc(out, quote);
        (void)hk_buf_addc(out, text.ptr[i]);
    }
    (void)hk_buf_addc(out, quote);
}

void hk_adopt_add_name(struct hk_buf *out, struct hk_str name)
{
    add_quoted(out, name, '"');
}

void hk_adopt_add_text(struct hk_buf *out, struct hk_str text)
{
    add_quoted(out, text, '\'');
}

void hk_adopt_add_table(const struct hk_adopt_table *table, struct hk_buf *out)
{
    if (table->schema.len > 0) {
        hk_adopt_add_name(out, table->schema);
        (void)hk_buf_addc(out, '.');
    }
    hk_adopt_add_name(out, table->name);
}

void hk_adopt_add_column(const struct hk_adopt_column *column, struct hk_buf *out)
{
    (void)hk_buf_adds(out, "new.");
    hk_adopt_add_name(out, column->name);
}

void hk_adopt_add_id_prefix(const struct hk_adopt_table *table, struct hk_buf *out)
{
    (void)hk_buf_addc(out, '\'');
    for (size_t i = 0; i < table->name.len; i++) {
        char c = table->name.ptr[i];
        bool is_plain = hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || c == '-';
        (void)hk_buf_addc(out, is_plain ? c : '_');
    }
    (void)hk_buf_adds(out, "-'");
}

/* ---- which column is what ---- */

static bool is_same_name(struct hk_str column, struct hk_str known)
{
    size_t at = 0;
    for (size_t i = 0; i < column.len; i++) {
        if (column.ptr[i] == '_')
            continue;
        if (at == known.len || hk_ascii_lower(column.ptr[i]) != known.ptr[at])
            return false;
        at++;
    }
    return at == known.len;
}

static const struct hk_adopt_column *find_known(const struct hk_adopt_table *table, const char *names)
{
    struct hk_str rest = hk_str_of(names);
    while (rest.len > 0) {
        struct hk_str name = hk_str_cut(&rest, ' ');
        for (size_t i = 0; i < table->n; i++)
            if (is_same_name(table->columns[i].name, name))
                return &table->columns[i];
    }
    return NULL;
}

static const struct hk_adopt_column *find_named(const struct hk_adopt_table *table, struct hk_str name)
{
    const struct hk_adopt_column *found = NULL;
    for (size_t i = 0; i < table->n; i++)
        if (hk_str_eq(table->columns[i].name, name))
            return &table->columns[i];
        else if (hk_str_eqi(table->columns[i].name, name))
            found = &table->columns[i];
    return found;
}

/* OURS=THEIRS */
static enum hk_code match_option(const char *option, struct hk_adopt_table *table, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str theirs = hk_str_of(option), ours = hk_str_cut(&theirs, '=');
    unsigned to = 0;
    while (to < HK_NADOPT && !hk_str_eq(ours, hk_str_of(knowns[to].ours)))
        to++;
    if (to == HK_NADOPT || !theirs.ptr)
        return hk_err_set(
            err, HK_INVALID,
            "--column %s: write OURS=THEIRS, where OURS is message_id, destination, event_type, "
            "message_key, payload, headers, correlation_id, traceparent, not_before, expires_at, "
            "status, aggregate_type or order",
            hk_show(hk_str_of(option), shown));
    table->of[to] = theirs.len ? find_named(table, theirs) : NULL;
    if (theirs.len && !table->of[to])
        return hk_err_set(err, HK_INVALID, "--column %s: the table has no such column",
                          hk_show(hk_str_of(option), shown));
    return HK_OK;
}

static enum hk_code need_column(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                                enum hk_adopt_to to, struct hk_err *err)
{
    if (table->of[to])
        return HK_OK;
    return hk_err_set(err, HK_INVALID,
                      "table %s has no column for %s (looked for: %s): name it with --column %s=COLUMN",
                      ask->table, knowns[to].ours, knowns[to].names[ask->from], knowns[to].ours);
}

static enum hk_code check_columns(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                                  struct hk_err *err)
{
    enum hk_code rc = need_column(ask, table, HK_ADOPT_EVENT_TYPE, err);
    if (rc == HK_OK)
        rc = need_column(ask, table, HK_ADOPT_PAYLOAD, err);
    if (rc == HK_OK && (ask->done || ask->n_pending > 0))
        rc = need_column(ask, table, HK_ADOPT_STATUS, err);
    if (rc == HK_OK && ask->done)
        rc = need_column(ask, table, HK_ADOPT_MESSAGE_ID, err);
    for (unsigned to = 0; rc == HK_OK && to < HK_NADOPT; to++)
        if (table->of[to])
            rc = hk_adopt_check_name(table->of[to]->name, err);
    return rc;
}

enum hk_code hk_adopt_match(const struct hk_adopt *ask, struct hk_adopt_table *table, struct hk_err *err)
{
    enum hk_code rc = hk_adopt_check_name(table->name, err);
    if (rc == HK_OK && table->schema.len > 0)
        rc = hk_adopt_check_name(table->schema, err);
    if (rc == HK_OK && table->name.len > HK_ADOPT_TABLE_MAX)
        return hk_err_set(err, HK_INVALID,
                          "the name of table %s is longer than %d bytes: adopt a view's table "
                          "or rename it",
                          ask->table, HK_ADOPT_TABLE_MAX);
    if (rc != HK_OK || ask->undo)
        return rc;
    for (unsigned to = 0; to < HK_NADOPT; to++)
        table->of[to] = find_known(table, knowns[to].names[ask->from]);
    for (size_t i = 0; rc == HK_OK && i < ask->n_columns; i++)
        rc = match_option(ask->columns[i], table, err);
    for (size_t i = 0; rc == HK_OK && i < ask->n_pending; i++)
        rc = hk_adopt_check_name(hk_str_of(ask->pending[i]), err);
    if (rc == HK_OK && ask->done)
        rc = hk_adopt_check_name(hk_str_of(ask->done), err);
    if (rc == HK_OK && ask->destination)
        rc = hk_adopt_check_name(hk_str_of(ask->destination), err);
    return rc == HK_OK ? check_columns(ask, table, err) : rc;
}

/* ---- SQL ---- */

void hk_adopt_add_story(const struct hk_adopt *ask, const struct hk_adopt_table *table, struct hk_buf *out)
{
    for (unsigned to = 0; to < HK_NADOPT; to++) {
        const struct hk_adopt_column *column = table->of[to];
        if (column && !(to == HK_ADOPT_DESTINATION && ask->destination))
            (void)hk_buf_addf(out, "--   %-14s <- %.*s (%.*s)\n", knowns[to].ours, (int)column->name.len,
                              column->name.ptr, (int)column->type.len, column->type.ptr);
    }
}

static void add_statuses(const struct hk_adopt *ask, struct hk_buf *out)
{
    static const char *const usual[] = {"pending"};
    const char *const *statuses = ask->n_pending ? ask->pending : usual;
    size_t n = ask->n_pending ? ask->n_pending : 1;
    for (size_t i = 0; i < n; i++) {
        (void)hk_buf_adds(out, i ? ", lower(" : "lower(");
        hk_adopt_add_text(out, hk_str_of(statuses[i]));
        (void)hk_buf_addc(out, ')');
    }
}

bool hk_adopt_add_condition(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                            struct hk_buf *out)
{
    if (!table->of[HK_ADOPT_STATUS])
        return false;
    (void)hk_buf_adds(out, "lower(CAST(");
    hk_adopt_add_column(table->of[HK_ADOPT_STATUS], out);
    (void)hk_buf_adds(out, " AS text)) IN (");
    add_statuses(ask, out);
    (void)hk_buf_addc(out, ')');
    return true;
}

static bool has_headers(const struct hk_adopt_table *table)
{
    return table->of[HK_ADOPT_HEADERS] || table->of[HK_ADOPT_AGGREGATE_TYPE];
}

/* Is this column of outbox written? */
static bool is_copied(const struct hk_adopt *ask, const struct hk_adopt_table *table, enum hk_adopt_to to)
{
    if (to == HK_ADOPT_DESTINATION && ask->destination)
        return true;
    return to == HK_ADOPT_HEADERS ? has_headers(table) : table->of[to] != NULL;
}

enum hk_code hk_adopt_add_copy(const struct hk_adopt *ask, const struct hk_adopt_table *table,
                               const struct hk_adopt_dialect *dialect, bool existing, struct hk_buf *out,
                               struct hk_err *err)
{
    const char *encoding = dialect->encoding(table);
    enum hk_code rc = HK_OK;
    (void)hk_buf_addf(out, "INSERT INTO %s (", dialect->outbox);
    for (unsigned to = 0, n = 0; to < HK_ADOPT_STATUS; to++)
        if (is_copied(ask, table, to))
            (void)hk_buf_addf(out, "%s%s", n++ ? ", " : "", knowns[to].ours);
    (void)hk_buf_addf(out, "%s)\n        %s ", encoding ? ", encoding" : "",
                      existing ? "SELECT" : "VALUES (");
    for (unsigned to = 0, n = 0; rc == HK_OK && to < HK_ADOPT_STATUS; to++) {
        if (!is_copied(ask, table, to))
            continue;
        (void)hk_buf_adds(out, n++ ? ",\n            " : "");
        if (to == HK_ADOPT_DESTINATION && ask->destination)
            hk_adopt_add_text(out, hk_str_of(ask->destination));
        else
            rc = dialect->value(table, to, out, err);
    }
    if (encoding)
        (void)hk_buf_addf(out, ",\n            %s", encoding);
    if (!existing) {
        (void)hk_buf_adds(out, ");\n");
        return rc;
    }
    (void)hk_buf_adds(out, "\n    FROM ");
    hk_adopt_add_table(table, out);
    (void)hk_buf_adds(out, " AS new WHERE ");
    (void)hk_adopt_add_condition(ask, table, out);
    (void)hk_buf_adds(out, "\n    ORDER BY ");
    if (table->of[HK_ADOPT_ORDER]) {
        hk_adopt_add_column(table->of[HK_ADOPT_ORDER], out);
        (void)hk_buf_adds(out, ", ");
    }
    hk_adopt_add_column(table->of[HK_ADOPT_MESSAGE_ID], out);
    (void)hk_buf_adds(out, ";\n");
    return rc;
}

void hk_adopt_add_done(const struct hk_adopt *ask, const struct hk_adopt_table *table, bool existing,
                       struct hk_buf *out)
{
    const struct hk_adopt_column *id = table->of[HK_ADOPT_MESSAGE_ID];
    (void)hk_buf_adds(out, "UPDATE ");
    hk_adopt_add_table(table, out);
    (void)hk_buf_adds(out, existing ? " AS new SET " : " SET ");
    hk_adopt_add_name(out, table->of[HK_ADOPT_STATUS]->name);
    (void)hk_buf_adds(out, " = ");
    hk_adopt_add_text(out, hk_str_of(ask->done));
    (void)hk_buf_adds(out, " WHERE ");
    if (existing) {
        (void)hk_adopt_add_condition(ask, table, out);
    } else {
        hk_adopt_add_name(out, id->name);
        (void)hk_buf_adds(out, " = ");
        hk_adopt_add_column(id, out);
    }
    (void)hk_buf_adds(out, ";\n");
}

void hk_adopt_detail(const struct hk_adopt *ask, const struct hk_adopt_table *table, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "table");
    hk_json_str(&json, table->name);
    if (table->schema.len > 0) {
        hk_json_key(&json, "schema");
        hk_json_str(&json, table->schema);
    }
    hk_json_key(&json, "existing");
    hk_json_bool(&json, ask->existing && !ask->undo);
    hk_json_end(&json);
}
