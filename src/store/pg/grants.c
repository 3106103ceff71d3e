/* SPDX-License-Identifier: Apache-2.0 */
/* Least privilege, as SQL to read and run: an application writes messages and nothing else, a relay moves them, a viewer
 * looks. The tables belong to whoever ran `hikyaku init`, who need not be any of them. */
#include <string.h>

#include "base/str.h"
#include "store/pg/pg.h"

/* What the application may write. Not xid, id and shard: the reader relies on them. */
#define APP_COLUMNS                                                                                          \
    "destination, event_type, payload, message_id, message_key, headers, content_type, encoding, "           \
    "correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts"

/* All but the hash: nobody needs it to see which tokens there are. */
#define TOKEN_COLUMNS                                                                                        \
    "id, name, role, reveal, created_ms, created_by, reason, expires_ms, revoked_ms, revoked_by, last_used_ms"

struct privilege {
    const char *what, *on;
    const char *why; /* not NULL: optional, printed as a comment */
};

static const struct privilege for_app[] = {
    {"INSERT (" APP_COLUMNS ")", "@outbox", NULL},
    {"SELECT (id, message_id)", "@outbox", "INSERT ... RETURNING, which many libraries write"},
    {"SELECT", "@outbox_meta", "`hikyaku enqueue` as this role, together with the line above"},
    {"SELECT", "@outbox_messages, @dead_letters", "looking at what became of messages"},
    {NULL, NULL, NULL}};

/* And the operators' acts, which use the relay's URL: cancel, pause, repair … docs/postgresql.md says what whoever has it can
 * do with it. It rewrites no trail: of the audit it may delete what is old, and that leaves a row. */
static const struct privilege for_relay[] = {
    {"SELECT, DELETE", "@outbox", NULL},
    {"SELECT", "SEQUENCE @outbox_id_seq", NULL},
    {"SELECT, INSERT, UPDATE, DELETE",
     "@outbox_relay, @outbox_claim, @outbox_retry, @outbox_stuck, @dead_letters, @outbox_redrive, @outbox_job, @outbox_figures, @outbox_series",
     NULL},
    {"SELECT, INSERT, UPDATE, DELETE", "@outbox_alert, @outbox_notice, @outbox_mute", NULL},
    {"SELECT, UPDATE", "@outbox_alert_look, @outbox_turn", NULL},
    {"SELECT, INSERT", "@dead_letter_versions, @outbox_audit_letters, @outbox_audit_messages", NULL},
    {"SELECT, UPDATE", "@outbox_shard", NULL},
    {"SELECT, INSERT, DELETE",
     "@outbox_exchange, @outbox_sent, @outbox_attempts, @outbox_cancelled, @outbox_audit", NULL},
    {"SELECT, INSERT, UPDATE", "@outbox_destination, @outbox_quota", NULL},
    {"SELECT, INSERT, UPDATE, DELETE", "@outbox_bucket, @outbox_seats, @outbox_api_calls", NULL},
    {"SELECT, INSERT, UPDATE, DELETE", "@outbox_destination_def, @outbox_task", NULL},
    {"SELECT, UPDATE", "@outbox_definitions", NULL},
    {"SELECT, INSERT, UPDATE", "@outbox_tokens", NULL},
    {"SELECT", "@outbox_meta, @outbox_audit_of_letters", NULL},
    {"INSERT (" APP_COLUMNS ")", "@outbox",
     "writing messages: POST /messages of the HTTP API, and tasks (queues:)"},
    {"UPDATE", "@dead_letter_versions, @outbox_attempts, @outbox_cancelled",
     "writing the trail anew: 'keys rotate', 'messages erase' and 'dead erase'"},
    {NULL, NULL, NULL}};

/* Roles that have their rights when `hikyaku init --notify` is run have this, too. */
static const struct privilege for_woken[] = {{"SELECT, UPDATE", "SEQUENCE @outbox_wake", NULL},
                                             {NULL, NULL, NULL}};

/* The same of `hikyaku init --partition-sent`. */
static const struct privilege for_days[] = {
    {"EXECUTE", "FUNCTION @outbox_sent_days(bigint, bigint, bigint)", NULL}, {NULL, NULL, NULL}};

static const struct privilege for_viewer[] = {
    {"SELECT",
     "@outbox, @outbox_relay, @outbox_exchange, @outbox_shard, @outbox_claim, @outbox_retry, @outbox_stuck, @outbox_sent, "
     "@outbox_cancelled, @dead_letters, @dead_letter_versions, @outbox_redrive, @outbox_job, @outbox_attempts, @outbox_destination, @outbox_destination_def, @outbox_definitions, @outbox_task, @outbox_quota, "
     "@outbox_bucket, @outbox_seats, @outbox_turn, @outbox_figures, @outbox_series, @outbox_alert, @outbox_alert_look, @outbox_notice, @outbox_mute, "
     "@outbox_audit, @outbox_audit_letters, @outbox_audit_messages, @outbox_audit_of_letters, @outbox_meta, @outbox_messages",
     NULL},
    {"SELECT (" TOKEN_COLUMNS ")", "@outbox_tokens", NULL},
    {NULL, NULL, NULL}};

static bool is_role(const char *name)
{
    size_t len = strlen(name);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
            return false;
    return len > 0 && len <= HK_PG_NAME_MAX;
}

static void add_role(struct hk_buf *out, const char *name)
{
    hk_buf_adds(out, " TO \"");
    for (; *name; name++) {
        if (*name == '"')
            hk_buf_addc(out, '"');
        hk_buf_addc(out, *name);
    }
    hk_buf_adds(out, "\";\n");
}

static void add_grant(const struct hk_pg_url *url, const struct privilege *p, const char *role,
                      struct hk_buf *out)
{
    if (p->why)
        hk_buf_addf(out, "-- for %s:\n-- ", p->why);
    hk_buf_addf(out, "GRANT %s ON ", p->what);
    hk_pg_url_names(url, p->on, out);
    add_role(out, role);
}

static enum hk_code add_grants(const struct hk_pg_url *url, const char *title, const char *role,
                               const struct privilege *list, struct hk_buf *out, struct hk_err *err)
{
    if (!role)
        return HK_OK;
    if (!is_role(role))
        return hk_err_set(err, HK_INVALID, "a role's name has 1 to %d bytes and no control characters",
                          HK_PG_NAME_MAX);
    hk_buf_addf(out, "\n-- %s\n", title);
    if (url->schema[0]) {
        hk_buf_addf(out, "GRANT USAGE ON SCHEMA \"%s\"", url->schema);
        add_role(out, role);
    }
    for (; list->what; list++)
        add_grant(url, list, role, out);
    return HK_OK;
}

enum hk_code hk_pg_grants(const char *text, const struct hk_store_roles *roles, struct hk_buf *out,
                          struct hk_err *err)
{
    struct hk_pg_url url;
    enum hk_code rc = hk_pg_url_parse(text, &url, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_adds(out, "-- Run this as the owner of the tables, behind `hikyaku init`, once the roles exist: "
                     "CREATE ROLE ... LOGIN\n");
    rc = add_grants(&url, "the application: writes messages", roles->app, for_app, out, err);
    if (rc == HK_OK)
        rc = add_grants(&url, "the relay, and operators by its URL: moves messages, writes none",
                        roles->relay, for_relay, out, err);
    if (rc == HK_OK && roles->notify)
        rc = add_grants(&url, "and is woken, behind `hikyaku init --notify`", roles->relay, for_woken, out,
                        err);
    if (rc == HK_OK && roles->partitions)
        rc = add_grants(&url, "and keeps sent rows by the day, behind `hikyaku init --partition-sent`",
                        roles->relay, for_days, out, err);
    if (rc == HK_OK)
        rc = add_grants(&url, "who looks: reads everything, payloads included", roles->viewer, for_viewer,
                        out, err);
    hk_pg_url_fini(&url);
    if (rc == HK_OK && hk_buf_status(out) != HK_OK)
        rc = hk_err_set(err, hk_buf_status(out), "cannot print grants: %s", hk_code_name(hk_buf_status(out)));
    return rc;
}
