/* SPDX-License-Identifier: Apache-2.0 */
/* A connection to PostgreSQL: made when it is needed, and set up so that nothing it does takes for ever.
 *
 * Poolers. PgBouncer in transaction mode gives every transaction to whichever server connection is free: statements cannot
 * be prepared and settings do not last. It hands out backend numbers of its own, which is how it is recognised; then every
 * transaction begins with its settings, local to it. Should one hide well enough, a missing prepared statement gives it away.
 *
 * Durability. synchronous_commit is left as the server has it, unless it is off. Off would be allowed for what
 * is settled, but a lost manifest would leave a crash without a trace. */
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "run/password.h"
#include "store/pg/pg.h"

#define BUSY_MS      UINT64_C(5000)
#define BUSY_MAX_MS  UINT64_C(3600000)
#define SETTINGS_MAX (16 * 1024)

static void ignore_notice(void *arg, const char *message)
{
    (void)arg;
    (void)message;
}

/* ---- connecting ---- */

/* What URL, service file and environment say together. No server is asked: there is no such sslmode, and libpq says so first. */
static PQconninfoOption *resolve(const struct hk_pg_url *url)
{
    const char *const keys[] = {"dbname", "sslmode", NULL};
    const char *const values[] = {url->conninfo, "?", NULL};
    PGconn *conn = PQconnectStartParams(keys, values, 1);
    PQconninfoOption *said = PQconninfo(conn);
    PQfinish(conn);
    return said;
}

static const char *said_of(const PQconninfoOption *said, const char *name)
{
    for (; said && said->keyword; said++)
        if (strcmp(said->keyword, name) == 0)
            return said->val && said->val[0] ? said->val : NULL;
    return NULL;
}

struct parameters {
    const char *keys[16], *values[16];
    size_t n;
};

static void add_parameter(struct parameters *p, const char *key, const char *value)
{
    p->keys[p->n] = key;
    p->values[p->n++] = value;
}

/* Our defaults for what nobody has said; `target` NULL: none for that. What must be stands behind the URL, which overrules what
 * stands before it. A dead server is noticed within about ten seconds, a third of the usual lease. */
static PGconn *dial(const struct hk_pg_url *url, const PQconninfoOption *said, const char *password,
                    uint64_t timeout_ms, const char *target, bool wait)
{
    char timeout_s[24];
    snprintf(timeout_s, sizeof timeout_s, "%llu", (unsigned long long)(timeout_ms + 999) / 1000);
    const char *const defaults[][2] = {
        {"connect_timeout", timeout_s}, {"keepalives_idle", "5"},      {"keepalives_interval", "2"},
        {"keepalives_count", "3"},      {"tcp_user_timeout", "10000"},
    };
    struct parameters p = {0};
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++)
        if (!said_of(said, defaults[i][0]))
            add_parameter(&p, defaults[i][0], defaults[i][1]);
    add_parameter(&p, "fallback_application_name", "hikyaku");
    if (target)
        add_parameter(&p, "target_session_attrs", target);
    add_parameter(&p, "dbname", url->conninfo);
    add_parameter(&p, "client_encoding", "UTF8");
    if (password)
        add_parameter(&p, "password", password);
    return wait ? PQconnectdbParams(p.keys, p.values, 1) : PQconnectStartParams(p.keys, p.values, 1);
}

/* "any" is what libpq gives when nobody has said anything. */
static bool takes_any(const PQconninfoOption *said)
{
    const char *target = said_of(said, "target_session_attrs");
    return !target || strcmp(target, "any") == 0;
}

static bool is_read_only(const PGconn *conn)
{
    const char *standby = PQparameterStatus(conn, "in_hot_standby"),
               *read_only = PQparameterStatus(conn, "default_transaction_read_only");
    return (standby && strcmp(standby, "on") == 0) || (read_only && strcmp(read_only, "on") == 0);
}

/* Of several hosts the one that can be written to. A service's own word on that must win, and libpq does not tell whether it
 * has one; so our default comes in only when its server cannot be written to, and gives way when there is no other. */
static PGconn *dial_service(const struct hk_pg_url *url, const PQconninfoOption *said, const char *password,
                            uint64_t timeout_ms)
{
    PGconn *conn = dial(url, said, password, timeout_ms, NULL, true);
    if (!conn || PQstatus(conn) != CONNECTION_OK || !is_read_only(conn) || !takes_any(said))
        return conn;
    PGconn *other = dial(url, said, password, timeout_ms, "read-write", true);
    bool better = other && PQstatus(other) == CONNECTION_OK;
    PQfinish(better ? conn : other);
    return better ? other : conn;
}

PGconn *hk_pg_dial(const struct hk_pg_url *url, const char *password, uint64_t timeout_ms, bool wait)
{
    PQconninfoOption *said = resolve(url);
    PGconn *conn = url->service && wait
                       ? dial_service(url, said, password, timeout_ms)
                       : dial(url, said, password, timeout_ms, takes_any(said) ? "read-write" : NULL, wait);
    PQconninfoFree(said);
    return conn;
}

static void check_server(struct hk_pg *pg)
{
    const char *encoding = PQparameterStatus(pg->conn, "server_encoding");
    if (PQserverVersion(pg->conn) < 150000)
        hk_pg_fail(pg, HK_UNSUPPORTED, "the server is older than PostgreSQL 15");
    else if (!encoding || strcmp(encoding, "UTF8") != 0)
        hk_pg_fail(
            pg, HK_UNSUPPORTED,
            "the database's encoding is not UTF8, so that some messages could not be kept as they are");
}

static void add_setting(struct hk_buf *sql, const char *name, const char *value, bool local)
{
    hk_buf_addf(sql, ", pg_catalog.set_config('%s', '%s', %s)", name, value, local ? "true" : "false");
}

static void add_limit(struct hk_buf *sql, const char *name, uint64_t ms, bool local)
{
    char value[24];
    snprintf(value, sizeof value, "%llu", (unsigned long long)ms);
    add_setting(sql, name, value, local);
}

/* What every session of ours relies on, whatever the server's, the database's or the role's own settings are. The server
 * itself must notice a vanished client: its locks are in others' way until then. */
static char *make_settings(const struct hk_pg *pg)
{
    static const char *const common[] = {
        "bytea_output", "hex", "datestyle", "ISO", "timezone", "UTC", "standard_conforming_strings",
        "on",           NULL};
    static const char *const session[] = {"default_transaction_isolation",
                                          "read committed",
                                          "tcp_keepalives_idle",
                                          "5",
                                          "tcp_keepalives_interval",
                                          "2",
                                          "tcp_keepalives_count",
                                          "3",
                                          "tcp_user_timeout",
                                          "10000",
                                          NULL};
    const char *const *const lists[] = {common, pg->table->settings, pg->pooled ? NULL : session};
    struct hk_buf sql;
    hk_buf_init(&sql, SETTINGS_MAX);
    hk_buf_addf(&sql,
                "SELECT pg_catalog.set_config('synchronous_commit', CASE WHEN "
                "pg_catalog.current_setting('synchronous_commit') OPERATOR(pg_catalog.=) 'off' THEN 'on' "
                "ELSE pg_catalog.current_setting('synchronous_commit') END, %s)",
                pg->pooled ? "true" : "false");
    if (pg->url.schema[0])
        add_setting(&sql, "search_path", HK_PG_PATH, pg->pooled);
    add_limit(&sql, "lock_timeout", pg->busy_ms, pg->pooled);
    add_limit(&sql, "statement_timeout", pg->busy_ms + 5000, pg->pooled);
    add_limit(&sql, "idle_in_transaction_session_timeout", pg->busy_ms + 5000, pg->pooled);
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (const char *const *s = lists[i]; s && *s; s += 2)
            add_setting(&sql, s[0], s[1], pg->pooled);
    char *text = hk_buf_detach(&sql);
    hk_buf_fini(&sql);
    return text;
}

/* Who is asked, and where our tables lie, or would: as the search path says it. */
static PGresult *ask_home(struct hk_pg *pg)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "SELECT pg_catalog.pg_backend_pid(), coalesce((SELECT n.nspname FROM pg_catalog.pg_class c JOIN "
             "pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace WHERE c.oid "
             "OPERATOR(pg_catalog.=) pg_catalog.to_regclass('\"%soutbox_meta\"')), "
             "pg_catalog.current_schema())",
             pg->url.prefix);
    return hk_pg_ask(pg, sql);
}

/* From here on every name of ours has its schema, and the search path can be one on which nobody but the server itself puts
 * functions and operators: one in public that fits better than PostgreSQL's own would be taken, and run with our rights.
 * Besides, relays whose URLs name the same schema in different ways call everything alike. */
static void settle_in(struct hk_pg *pg, const char *home)
{
    if (pg->url.schema_said || strcmp(pg->url.schema, home) == 0)
        return;
    if (strpbrk(home, "'\"\\@")) {
        hk_pg_fail(pg, HK_UNSUPPORTED, "the schema of its tables has a name that needs quoting: rename it");
        return;
    }
    hk_str_copy(pg->url.schema, sizeof pg->url.schema, hk_str_of(home));
    for (unsigned i = 0; i < pg->table->count; i++) {
        hk_mem_free(pg->sql[i]);
        pg->sql[i] = NULL;
    }
}

static void set_up(struct hk_pg *pg)
{
    PGresult *res = ask_home(pg);
    if (hk_pg_ok(pg)) {
        settle_in(pg, PQgetvalue(res, 0, 1)); /* "" = nowhere */
        pg->pooled = pg->never_prepare || hk_pg_i64(res, 0, 0) != PQbackendPID(pg->conn);
        hk_mem_free(pg->settings);
        pg->settings = make_settings(pg);
        if (!pg->settings)
            hk_pg_fail(pg, HK_NOMEM, "out of memory");
    }
    PQclear(res);
    if (hk_pg_ok(pg) && !pg->pooled)
        PQclear(hk_pg_ask(pg, pg->settings));
}

/* With a password of this moment, where a command prints it. libpq overwrites its own copy when the connection ends. */
static void dial_with_password(struct hk_pg *pg)
{
    struct hk_buf password;
    struct hk_err err = {.message = ""};
    enum hk_code rc = HK_OK;
    hk_buf_init(&password, HK_PASSWORD_MAX);
    if (pg->url.keeper)
        rc = hk_password_ask(pg->url.keeper, &password, &err);
    if (rc == HK_OK)
        pg->conn = hk_pg_dial(&pg->url, pg->url.keeper ? hk_buf_cstr(&password) : NULL, pg->busy_ms, true);
    if (rc != HK_OK)
        hk_pg_fail(pg, rc, err.message);
    else if (!pg->conn)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    if (password.data)
        hk_mem_wipe(password.data, password.room);
    hk_buf_fini(&password);
}

static void connect_now(struct hk_pg *pg)
{
    dial_with_password(pg);
    if (!pg->conn)
        return;
    if (PQstatus(pg->conn) != CONNECTION_OK) {
        hk_pg_lost(pg);
        return;
    }
    PQsetNoticeProcessor(pg->conn, ignore_notice, NULL); /* libpq's own goes to stderr */
    check_server(pg);
    if (hk_pg_ok(pg) && (PQsetnonblocking(pg->conn, 1) != 0 || !PQenterPipelineMode(pg->conn)))
        hk_pg_lost(pg);
    if (hk_pg_ok(pg))
        set_up(pg);
    if (hk_pg_ok(pg))
        pg->connects++;
    else
        hk_pg_drop(pg);
}

void hk_pg_drop(struct hk_pg *pg)
{
    if (pg->conn && pg->commit_sent && !pg->committed && !pg->aborted)
        pg->commit_unknown = true;
    PQfinish(pg->conn);
    pg->conn = NULL;
    pg->n_expected = pg->answered = 0;
    pg->sent = false;
    if (pg->prepared)
        memset(pg->prepared, 0, pg->table->count * sizeof pg->prepared[0]);
}

/* Has the server closed the connection while we were not looking (a restart, an idle time-out)? */
static bool is_stale(struct hk_pg *pg)
{
    struct pollfd fd = {.fd = PQsocket(pg->conn), .events = POLLIN};
    for (int i = 0; i < 16 && poll(&fd, 1, 0) > 0; i++) /* a notice, then the end */
        PQconsumeInput(pg->conn);
    return PQstatus(pg->conn) != CONNECTION_OK;
}

bool hk_pg_again(struct hk_pg *pg)
{
    if (pg->n_expected)
        hk_pg_drop(pg); /* the last call did not come to its end */
    pg->rc = HK_OK;
    pg->late = false;
    pg->sqlstate[0] = '\0';
    if (pg->conn && is_stale(pg))
        hk_pg_drop(pg);
    if (pg->held == HK_PG_HELD && !pg->conn)
        pg->held = HK_PG_LOST;
    if (pg->held == HK_PG_LOST)
        hk_pg_fail(pg, HK_BUSY, "what it belongs to was rolled back");
    else if (!pg->conn)
        connect_now(pg);
    return hk_pg_ok(pg);
}

bool hk_pg_call(struct hk_pg *pg)
{
    pg->pool ^= 1;
    hk_pool_reset(hk_pg_pool(pg));
    return hk_pg_again(pg);
}

enum hk_code hk_pg_open(struct hk_pg *pg, const char *url, const struct hk_pg_table *table, uint64_t busy_ms,
                        struct hk_err *err)
{
    *pg = (struct hk_pg){.table = table, .busy_ms = busy_ms ? busy_ms : BUSY_MS};
    if (pg->busy_ms > BUSY_MAX_MS)
        pg->busy_ms = BUSY_MAX_MS;
    pg->call_ms = pg->busy_ms + 10000;
    enum hk_code rc = hk_pg_url_parse(url, &pg->url, err);
    if (rc != HK_OK)
        return rc;
    pg->sql = hk_mem_zalloc(table->count, sizeof pg->sql[0]);
    pg->prepared = hk_mem_zalloc(table->count, sizeof pg->prepared[0]);
    if (!pg->sql || !pg->prepared)
        hk_pg_fail(pg, HK_NOMEM, "out of memory");
    else
        hk_pg_call(pg);
    rc = hk_pg_end(pg, "connect", err);
    if (rc != HK_OK)
        hk_pg_close(pg);
    return rc;
}

void hk_pg_close(struct hk_pg *pg)
{
    hk_pg_drop(pg);
    for (unsigned i = 0; pg->sql && i < pg->table->count; i++)
        hk_mem_free(pg->sql[i]);
    hk_mem_free(pg->sql);
    hk_mem_free(pg->prepared);
    hk_mem_free(pg->settings);
    hk_mem_free(pg->expected);
    hk_pool_fini(&pg->pools[0]);
    hk_pool_fini(&pg->pools[1]);
    hk_pg_url_fini(&pg->url);
    *pg = (struct hk_pg){0};
}
