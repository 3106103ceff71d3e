/* SPDX-License-Identifier: Apache-2.0 */
/* What `hikyaku init --print-grants` gives is enough, and no more: the whole contract of a store with the relay's rights, an
 * application's INSERTs with its own, and what each of the three is refused. */
#include <stdlib.h>

#include "base/buf.h"
#include "pg_kind.h"
#include "store/admin.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, suite_setup, suite_teardown)

static const struct hk_store_roles roles = {.app = "hk app", .relay = "hk_relay", .viewer = "hk_viewer"};

static void make_roles(const char *more)
{
    struct hk_buf sql;
    struct hk_err err = {0};
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants(pg_url(NULL, more), &roles, &sql, &err), HK_OK);
    PGconn *owner = pg_connect(NULL);
    pg_exec(
        owner,
        "DO $$BEGIN CREATE ROLE \"hk app\" LOGIN; CREATE ROLE hk_relay LOGIN; CREATE ROLE hk_viewer LOGIN; "
        "EXCEPTION WHEN duplicate_object THEN NULL; END$$");
    pg_exec(owner, hk_buf_cstr(&sql));
    PQfinish(owner);
    hk_buf_fini(&sql);
}

static bool make(void)
{
    if (!pg_kind.make())
        return false;
    make_roles("");
    /* the suite's clock is not the server's, by which the audit is kept from relays */
    pg_kind.sql("UPDATE outbox_meta SET value = '-9000000000000' WHERE key = 'audit_keep_ms'");
    return true;
}

static const char *relay_url(void)
{
    return pg_url("hk_relay", "");
}

/* ---- the application ---- */

static PGconn *connect_app(void)
{
    return pg_connect("hk%20app");
}

static void an_application_writes_messages(void **state)
{
    (void)state;
    PGconn *app = connect_app();
    pg_exec(app, "INSERT INTO outbox (destination, event_type, payload) VALUES ('a', 'b', 'c')");
    pg_exec(
        app,
        "INSERT INTO outbox (destination, event_type, payload, message_id, message_key, headers, content_type, "
        "encoding, correlation_id, traceparent, idempotency_key, not_before, expires_at, policy, max_attempts) "
        "VALUES ('a', 'b', 'c', 'id', 'k', '{}', 'text/plain', 'utf8', 'x', 'y', 'z', now(), now(), 'p', 3)");
    pg_exec(app, "BEGIN; INSERT INTO outbox (event_type) SELECT 'b' FROM generate_series(1, 10); COMMIT");
    assert_string_equal(store_kind->value("SELECT count(*) FROM outbox"), "12");
    PQfinish(app);
}

static void assert_refused(const char *user, const char *const *statements)
{
    PGconn *conn = pg_connect(user);
    for (; *statements; statements++) {
        const char *state = pg_refusal(conn, *statements);
        NOTE_IF(strcmp(state, "42501") != 0, "%s: %s\n", *statements, state);
        assert_string_equal(state, "42501");
    }
    PQfinish(conn);
}

static void an_application_can_do_nothing_else(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "INSERT INTO outbox (event_type, xid) VALUES ('b', '3')",
        "INSERT INTO outbox (event_type, created_at) VALUES ('b', now())",
        "INSERT INTO outbox (event_type, id) OVERRIDING SYSTEM VALUE VALUES ('b', 7)",
        "INSERT INTO outbox (event_type) VALUES ('b') RETURNING id",
        "SELECT payload FROM outbox",
        "UPDATE outbox SET payload = ''",
        "DELETE FROM outbox",
        "TRUNCATE outbox",
        "SELECT nextval('outbox_id_seq')",
        "SELECT * FROM outbox_messages",
        "SELECT * FROM dead_letters",
        "SELECT * FROM outbox_retry",
        "INSERT INTO outbox_retry (due_ms, message_id, destination, event_type) VALUES (0, 'a', 'b', 'c')",
        "SELECT * FROM outbox_meta",
        NULL};
    assert_refused("hk%20app", statements);
}

/* Without the comment signs. */
static void what_is_optional_is_enough_for_what_it_promises(void **state)
{
    (void)state;
    PGconn *owner = pg_connect(NULL), *app = connect_app();
    pg_exec(
        owner,
        "GRANT SELECT (id, message_id) ON outbox TO \"hk app\"; GRANT SELECT ON outbox_meta TO \"hk app\"; "
        "GRANT SELECT ON outbox_messages, dead_letters TO \"hk app\"");
    assert_string_equal(
        pg_ask(app, "INSERT INTO outbox (event_type, message_id) VALUES ('b', 'mine') RETURNING message_id"),
        "mine");
    assert_string_equal(pg_ask(app, "SELECT status FROM outbox_messages"), "pending");
    assert_string_equal(pg_ask(app, "SELECT count(*) FROM dead_letters"), "0");
    assert_string_equal(pg_refusal(app, "SELECT payload FROM outbox"), "42501");
    PQfinish(app);
    PQfinish(owner);
}

/* ---- the relay ---- */

static void a_relay_cannot_write_messages_or_change_the_schema(void **state)
{
    (void)state;
    static const char *const statements[] = {"INSERT INTO outbox (event_type) VALUES ('b')",
                                             "UPDATE outbox SET payload = 'forged'",
                                             "UPDATE outbox_sent SET status = 200",
                                             "UPDATE outbox_audit SET actor = 'somebody else'",
                                             "UPDATE outbox_attempts SET status = 200",
                                             "UPDATE dead_letter_versions SET payload = 'forged'",
                                             "DELETE FROM dead_letter_versions",
                                             "UPDATE outbox_audit_letters SET letter_id = 1",
                                             "DELETE FROM outbox_audit_letters",
                                             "UPDATE outbox_cancelled SET actor = 'somebody else'",
                                             "UPDATE outbox_meta SET value = '2'",
                                             "DELETE FROM outbox_tokens",
                                             "INSERT INTO outbox_shard (shard) VALUES (64)",
                                             "DELETE FROM outbox_shard",
                                             "TRUNCATE outbox",
                                             "DROP TABLE outbox",
                                             "ALTER TABLE outbox ADD COLUMN x integer",
                                             "CREATE TABLE public.x (id bigint)",
                                             "SELECT nextval('outbox_id_seq')",
                                             "SELECT setval('outbox_id_seq', 1)",
                                             NULL};
    assert_refused("hk_relay", statements);
}

static bool is_noted(const char *about)
{
    struct hk_store_health health;
    assert_int_equal(hk_store_admin_postgres.inspect(pg_url("hk_relay", ""), 100, &health, NULL), HK_OK);
    for (size_t i = 0; i < health.n_notes; i++)
        if (strcmp(health.notes[i].about, about) == 0)
            return true;
    return false;
}

/* As printed, without the comment signs. */
static void allow_writing(void)
{
    struct hk_buf sql;
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants(pg_url(NULL, ""), &roles, &sql, NULL), HK_OK);
    const char *line = strstr(hk_buf_cstr(&sql), "-- for writing messages: POST /messages");
    assert_non_null(line);
    line = strchr(line, '\n') + sizeof "\n--";
    char grant[1000];
    (void)snprintf(grant, sizeof grant, "%.*s", (int)strcspn(line, "\n"), line);
    PGconn *owner = pg_connect(NULL);
    pg_exec(owner, grant);
    PQfinish(owner);
    hk_buf_fini(&sql);
}

static void a_relay_that_serves_the_api_may_be_let_write_messages(void **state)
{
    (void)state;
    static const struct hk_enqueue items[] = {
        {.message = {.destination = "shop", .event_type = "A", .message_id = "plain"}},
        {.message = {.destination = "queue", .event_type = "A", .message_id = "named"}, .is_task = true}};
    struct hk_admin *admin = NULL;
    struct hk_err err = {0};
    const struct hk_str *ids = NULL;
    assert_int_equal(
        hk_store_admin_postgres.open(pg_url("hk_relay", ""), &(struct hk_store_options){0}, &admin, &err),
        HK_OK);
    assert_int_equal(hk_store_admin_postgres.enqueue(admin, items, 2, &ids, &err), HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "--print-grants"));
    assert_true(is_noted(HK_NOTE_WRITING));
    assert_false(is_noted("rights")); /* a relay has all that it needs */
    allow_writing();
    for (size_t i = 0; i < COUNT(items); i++)
        assert_int_equal(hk_store_admin_postgres.enqueue(admin, &items[i], 1, &ids, &err), HK_OK);
    assert_int_equal(hk_store_admin_postgres.enqueue(admin, &items[1], 1, &ids, &err), HK_EXISTS);
    assert_false(is_noted(HK_NOTE_WRITING));
    hk_store_admin_postgres.close(admin);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox"), 2);
    PGconn *owner = pg_connect(NULL);
    pg_exec(owner, "REVOKE INSERT ON outbox FROM hk_relay");
    PQfinish(owner);
}

static void a_relay_keeps_house(void **state)
{
    (void)state;
    struct hk_store *store = suite_open(NULL);
    struct hk_err err = {0};
    uint32_t deleted = 0;
    store_kind->sql(
        "UPDATE outbox_meta SET value = '86400000' WHERE key = 'audit_keep_ms'; "
        "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'a', 'pause', 'b'); "
        "INSERT INTO outbox_cancelled (cancelled_ms, message_id, destination, event_type, actor, reason) "
        "VALUES (1, 'a', 'b', 'c', 'd', 'e')");
    assert_int_equal(store_kind->ops->pause(store, "there", true, "me", "because", &err), HK_OK);
    assert_int_equal(store_kind->ops->pause(store, "there", false, "me", "because", &err), HK_OK);
    assert_int_equal(store_kind->ops->purge(store, &(struct hk_retention){0}, 100, &deleted, NULL, &err),
                     HK_OK);
    assert_int_equal(deleted, 2); /* those two; what the pauses left is younger than a day, and stays */
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit WHERE act IN ('pause', 'resume')"), 2);
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit WHERE act = 'purge-audit' "
                                  "AND actor = 'hk_relay' AND detail LIKE '{\"rows\":1,\"total\":1,%'"),
                     1);
    suite_close(store);
}

/* With the rights that a relay has, by hand. */
static void whoever_has_a_relays_role_neither_backdates_nor_hides_what_was_done(void **state)
{
    (void)state;
    PGconn *relay = pg_connect("hk_relay");
    store_kind->sql("UPDATE outbox_meta SET value = '86400000' WHERE key = 'audit_keep_ms'; "
                    "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'a', 'pause', 'b')");
    pg_exec(relay, "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'ann', 'discard', 'x')");
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit WHERE act = 'discard' "
                                  "AND at_ms > extract(epoch FROM now() - interval '1 minute') * 1000"),
                     1);
    pg_exec(relay, "DELETE FROM outbox_audit WHERE act = 'discard'");
    assert_int_equal(suite_number("SELECT count(*) FROM outbox_audit"), 2);
    pg_exec(relay, "DELETE FROM outbox_audit");
    assert_string_equal(
        store_kind->value("SELECT string_agg(act || ' ' || actor, ', ' ORDER BY id) FROM outbox_audit"),
        "discard ann, purge-audit hk_relay");
    assert_string_equal(pg_refusal(relay, "UPDATE outbox_meta SET value = '0' WHERE key = 'audit_keep_ms'"),
                        "42501");
    assert_string_equal(pg_refusal(relay, "UPDATE outbox_audit SET at_ms = 1"), "42501");
    assert_string_equal(pg_refusal(relay, "TRUNCATE outbox_audit"), "42501");
    PQfinish(relay);
}

/* ---- who looks ---- */

static void a_viewer_reads_everything_but_secrets_and_changes_nothing(void **state)
{
    (void)state;
    static const char *const statements[] = {
        "INSERT INTO outbox (event_type) VALUES ('b')",
        "DELETE FROM outbox",
        "UPDATE outbox_retry SET due_ms = 0",
        "SELECT * FROM outbox_retry FOR UPDATE",
        "SELECT * FROM outbox_relay FOR SHARE",
        "INSERT INTO outbox_destination (name, paused, since_ms) VALUES ('a', true, 0)",
        "INSERT INTO outbox_audit (at_ms, actor, act, reason) VALUES (1, 'a', 'pause', 'b')",
        "DELETE FROM dead_letters",
        "TRUNCATE outbox_sent",
        "SELECT body FROM outbox_api_calls",
        "SELECT hash FROM outbox_tokens",
        "UPDATE outbox_tokens SET role = 'admin'",
        NULL};
    PGconn *viewer = pg_connect("hk_viewer");
    PGresult *res = PQexec(
        viewer,
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') "
        "AND relname <> 'outbox_api_calls'");
    assert_in_range(PQntuples(res), 12, 60);
    for (int i = 0; i < PQntuples(res); i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", PQgetvalue(res, i, 0));
        pg_exec(viewer, sql);
    }
    PQclear(res);
    PQfinish(viewer);
    assert_refused("hk_viewer", statements);
}

/* ---- who would be the owner ---- */

/* A table of the attacker's own with a trigger that says whose rights it has, beside the one that our function hangs on. */
static void prepare_attack(PGconn *conn)
{
    pg_exec(
        conn,
        "CREATE TEMP TABLE outbox_relay (lane bigint, id bigint); CREATE TEMP TABLE outbox_figures (lane bigint);"
        "CREATE TEMP TABLE ran_as (who text); GRANT ALL ON ran_as TO PUBLIC;"
        "CREATE FUNCTION pg_temp.evil() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN INSERT INTO pg_temp.ran_as VALUES (current_user); RETURN OLD; END$$;"
        "CREATE TRIGGER evil BEFORE DELETE ON pg_temp.outbox_figures FOR EACH ROW EXECUTE FUNCTION pg_temp.evil();"
        "INSERT INTO pg_temp.outbox_figures VALUES (1); INSERT INTO pg_temp.outbox_relay VALUES (1, 1)");
}

#define HANG(function)                                                                                       \
    "CREATE TRIGGER hung AFTER DELETE ON pg_temp.outbox_relay FOR EACH ROW EXECUTE FUNCTION public." function

static void nobody_hangs_a_function_of_ours_on_a_table_of_his(void **state)
{
    (void)state;
    static const char *const users[] = {"hk%20app", "hk_viewer", "hk_relay"};
    static const char *const statements[] = {HANG("outbox_figures_gone()"), HANG("outbox_audit_chain()"),
                                             HANG("outbox_wake_up()")};
    struct hk_store_inited done;
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){.notify = HK_NOTIFY_ON},
                                            &done, NULL),
                     HK_OK);
    for (size_t i = 0; i < COUNT(users); i++) {
        PGconn *conn = pg_connect(users[i]);
        prepare_attack(conn);
        for (size_t k = 0; k < COUNT(statements); k++)
            assert_string_equal(pg_refusal(conn, statements[k]), "42501");
        PQfinish(conn);
    }
}

/* Versions 3 and 4 let it be hung. What was hung then has no rights of the owner's behind the migration. */
static void what_was_hung_before_has_lost_the_owners_rights(void **state)
{
    (void)state;
    static const char *const users[] = {"hk%20app", "hk_viewer"};
    struct hk_store_inited done;
    pg_make_version("&prefix=old_", 4);
    PGconn *conns[COUNT(users)];
    for (size_t i = 0; i < COUNT(users); i++) {
        conns[i] = pg_connect(users[i]);
        prepare_attack(conns[i]);
        pg_exec(conns[i], HANG("old_outbox_figures_gone()"));
        pg_exec(conns[i], "BEGIN; DELETE FROM pg_temp.outbox_relay");
        assert_string_equal(pg_ask(conns[i], "SELECT (who <> session_user)::text FROM pg_temp.ran_as"),
                            "true"); /* the hole is what this test thinks it is */
        pg_exec(conns[i], "ROLLBACK");
    }
    assert_int_equal(
        hk_store_postgres.init(pg_url(NULL, "&prefix=old_"), &(struct hk_store_init){0}, &done, NULL), HK_OK);
    for (size_t i = 0; i < COUNT(users); i++) {
        assert_string_equal(pg_refusal(conns[i], "DELETE FROM pg_temp.outbox_relay"), "42501");
        assert_string_equal(pg_ask(conns[i], "SELECT count(*) FROM pg_temp.ran_as"), "0");
        PQfinish(conns[i]);
    }
}

/* Even where an owner would let somebody run it: the chain is the audit's alone. */
static void the_chain_works_for_no_other_table(void **state)
{
    (void)state;
    PGconn *owner = pg_connect(NULL), *app = connect_app();
    pg_exec(owner, "GRANT EXECUTE ON FUNCTION outbox_audit_chain() TO \"hk app\"");
    prepare_attack(app);
    pg_exec(app, "CREATE TRIGGER hung BEFORE INSERT ON pg_temp.outbox_relay FOR EACH STATEMENT "
                 "EXECUTE FUNCTION public.outbox_audit_chain()");
    assert_string_equal(pg_refusal(app, "INSERT INTO pg_temp.outbox_relay VALUES (2)"), "42501");
    PQfinish(app);
    PQfinish(owner);
}

/* Whatever runs with its owner's rights: not for everybody; looks names up where nobody else can put any, or says of each where
 * it is; and names what it works on itself, so that neither a table that it hangs on nor an argument can. */
static void functions_with_the_owners_rights_take_nothing_from_outside(void **state)
{
    (void)state;
    static const char *const none[] = {
        "SELECT string_agg(p.proname, ' ') FROM pg_proc p WHERE p.prosecdef AND EXISTS (SELECT 1 FROM "
        "aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE a.grantee = 0)",
        "SELECT string_agg(p.proname, ' ') FROM pg_proc p WHERE p.prosecdef "
        "AND NOT coalesce('search_path=pg_catalog, pg_temp' = ANY (p.proconfig), false) "
        "AND p.prosrc ~* '(^|[^a-z_.])(?!coalesce|operator)[a-z_]+\\('",
        "SELECT string_agg(p.proname, ' ') FROM pg_proc p WHERE p.prosecdef "
        "AND p.prosrc ~* 'TG_(TABLE|REL|ARGV|NAME)' AND p.prosrc !~ 'IF TG_RELID <> ''\"'",
        "SELECT string_agg(p.proname, ' ') FROM pg_proc p CROSS JOIN unnest(p.proargtypes) AS t (type) "
        "WHERE p.prosecdef AND t.type NOT IN ('bigint'::regtype, 'integer'::regtype, 'boolean'::regtype)"};
    struct hk_store_inited done;
    const struct hk_store_init all = {.notify = HK_NOTIFY_ON, .partition_sent = true};
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &all, &done, NULL), HK_OK);
    PGconn *owner = pg_connect(NULL);
    assert_string_equal(pg_ask(owner, "SELECT (count(*) >= 3)::text FROM pg_proc WHERE prosecdef"), "true");
    for (size_t i = 0; i < COUNT(none); i++) {
        const char *found = pg_ask(owner, none[i]);
        NOTE_IF(*found, "%s: %s\n", none[i], found);
        assert_string_equal(found, "");
    }
    PQfinish(owner);
}

/* ---- printing ---- */

static void a_schema_of_its_own_is_opened_to_the_roles(void **state)
{
    (void)state;
    struct hk_store_inited done;
    struct hk_err err = {0};
    struct hk_store *store = NULL;
    const char *more = "&schema=box&prefix=P_";
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, more), &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    assert_int_equal(
        hk_store_postgres.open(pg_url("hk_relay", more), &(struct hk_store_options){0}, &store, &err),
        HK_UNAVAILABLE);
    assert_non_null(strstr(err.message, "--print-grants"));
    make_roles(more);
    assert_int_equal(
        hk_store_postgres.open(pg_url("hk_relay", more), &(struct hk_store_options){0}, &store, &err), HK_OK);
    hk_store_postgres.close(store);
    PGconn *app = connect_app();
    pg_exec(app, "INSERT INTO box.\"P_outbox\" (destination, event_type, payload) VALUES ('a', 'b', 'c')");
    PQfinish(app);
}

/* Everything that our statements need, in a place that stands before PostgreSQL's own: whatever is taken from there fails. */
static void what_strangers_put_on_the_search_path_is_not_run(void **state)
{
    (void)state;
    static const char *const signatures[] = {
        "unnest(bigint[]) RETURNS SETOF bigint",
        "unnest(text[]) RETURNS SETOF text",
        "now() RETURNS timestamptz",
        "clock_timestamp() RETURNS timestamptz",
        "floor(numeric) RETURNS numeric",
        "pg_current_snapshot() RETURNS pg_snapshot",
        "pg_backend_pid() RETURNS integer",
        "pg_advisory_xact_lock(bigint) RETURNS void",
        "hashtextextended(text, bigint) RETURNS bigint",
        "left(text, integer) RETURNS text",
        "to_timestamp(double precision) RETURNS timestamptz",
        "set_config(text, text, boolean) RETURNS text",
        "current_setting(text) RETURNS text",
        "to_regclass(text) RETURNS regclass",
        "op(text, text) RETURNS boolean",
        "op(bigint, bigint) RETURNS boolean",
        "op2(text, bigint) RETURNS text",
    };
    PGconn *owner = pg_connect(NULL);
    for (size_t i = 0; i < COUNT(signatures); i++) {
        char sql[200];
        snprintf(sql, sizeof sql,
                 "CREATE FUNCTION public.%s LANGUAGE plpgsql AS $$BEGIN RAISE EXCEPTION 'mine'; END$$",
                 signatures[i]);
        pg_exec(owner, sql);
    }
    pg_exec(owner, "CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.op);"
                   "CREATE OPERATOR public.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = public.op);"
                   "CREATE OPERATOR public.|| (LEFTARG = text, RIGHTARG = bigint, FUNCTION = public.op2);"
                   "ALTER ROLE hk_relay SET search_path = public, pg_catalog");
    suite_fill(2, "a", "k");
    struct hk_store *store = suite_open(NULL);
    int64_t lane = suite_acquire(store);
    const struct hk_poll *poll = NULL;
    assert_int_equal(hk_store_postgres.poll(store, &poll, NULL), HK_OK);
    int64_t claim = suite_claim(store, lane, HK_FROM_OUTBOX, 1);
    struct hk_settle sent = suite_settle(claim, HK_FROM_OUTBOX, 1, HK_SETTLE_SENT);
    suite_settle_one(store, lane, &sent);
    const struct hk_quota quota = {.destination = "a", .rate_per_s = 1, .burst = 1, .want = 1};
    const struct hk_exchange draw = {.lane = lane, .lease_ms = 30000, .quotas = &quota, .n_quotas = 1};
    const struct hk_exchanged *drawn = NULL;
    assert_int_equal(hk_store_postgres.exchange(store, &draw, &drawn, NULL), HK_OK);
    suite_close(store);
    assert_string_equal(pg_ask(owner, "SELECT pg_catalog.count(*) FROM public.outbox_sent"), "1");
    pg_exec(owner, "ALTER ROLE hk_relay RESET search_path");
    PQfinish(owner);
}

/* All versions but the first. */
static const char new_rights[] =
    "SELECT count(*) FROM (SELECT substr(c.relname, 5), a.privilege_type, a.grantee FROM pg_class c "
    "CROSS JOIN aclexplode(c.relacl) a WHERE c.relname LIKE 'new\\_%' AND c.relkind IN ('r', 'v') "
    "AND a.grantee IN ('hk_relay'::regrole, 'hk_viewer'::regrole) AND substr(c.relname, 5) NOT IN (TABLE before) "
    "EXCEPT SELECT substr(c.relname, 5), a.privilege_type, a.grantee FROM pg_class c "
    "CROSS JOIN aclexplode(c.relacl) a WHERE c.relname LIKE 'old\\_%') missing";

static void roles_that_had_their_rights_have_them_on_tables_of_later_versions(void **state)
{
    (void)state;
    struct hk_store_inited done;
    const struct hk_store_init really = {.print = NULL};
    pg_make_version("&prefix=old_", 1);
    PGconn *owner = pg_connect(NULL);
    pg_exec(owner,
            "CREATE TABLE before AS SELECT substr(relname, 5) FROM pg_class WHERE relname LIKE 'old\\_%';"
            "GRANT SELECT, INSERT, UPDATE, DELETE ON old_outbox_retry TO hk_relay;"
            "GRANT SELECT ON old_outbox_retry TO hk_viewer");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&prefix=old_"), &really, &done, NULL), HK_OK);
    assert_int_equal(done.from, 1);
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, "&prefix=new_"), &really, &done, NULL), HK_OK);
    make_roles("&prefix=new_");
    assert_string_equal(pg_ask(owner, new_rights), "0");
    PQfinish(owner);
}

static void role_names_are_quoted_and_checked(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a\nb", "a\x7f",
                                      "0123456789012345678901234567890123456789012345678901234567890123"};
    struct hk_buf sql;
    struct hk_err err = {0};
    hk_buf_init(&sql, 1 << 16);
    assert_int_equal(hk_store_postgres.grants("postgres://h/d",
                                              &(struct hk_store_roles){.viewer = "a\"; DROP TABLE x; --"},
                                              &sql, &err),
                     HK_OK);
    assert_non_null(strstr(hk_buf_cstr(&sql), " TO \"a\"\"; DROP TABLE x; --\";\n"));
    assert_null(strstr(hk_buf_cstr(&sql), "INSERT"));
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(
            hk_store_postgres.grants("postgres://h/d", &(struct hk_store_roles){.app = bad[i]}, &sql, &err),
            HK_INVALID);
    hk_buf_fini(&sql);
    hk_buf_init(&sql, 100);
    assert_int_equal(hk_store_postgres.grants("postgres://h/d", &roles, &sql, &err), HK_TOOBIG);
    hk_buf_fini(&sql);
}

int main(void)
{
    const struct CMUnitTest own[] = {
        TEST(an_application_writes_messages),
        TEST(an_application_can_do_nothing_else),
        TEST(what_is_optional_is_enough_for_what_it_promises),
        TEST(a_relay_cannot_write_messages_or_change_the_schema),
        TEST(a_relay_that_serves_the_api_may_be_let_write_messages),
        TEST(a_relay_keeps_house),
        TEST(whoever_has_a_relays_role_neither_backdates_nor_hides_what_was_done),
        TEST(a_viewer_reads_everything_but_secrets_and_changes_nothing),
        TEST(nobody_hangs_a_function_of_ours_on_a_table_of_his),
        TEST(what_was_hung_before_has_lost_the_owners_rights),
        TEST(the_chain_works_for_no_other_table),
        TEST(functions_with_the_owners_rights_take_nothing_from_outside),
        TEST(a_schema_of_its_own_is_opened_to_the_roles),
        TEST(what_strangers_put_on_the_search_path_is_not_run),
        TEST(roles_that_had_their_rights_have_them_on_tables_of_later_versions),
        TEST(role_names_are_quoted_and_checked),
    };
    static struct CMUnitTest tests[120];
    static struct store_kind as_relay;
    const int *ended_early = pg_server_start();
    if (ended_early)
        return *ended_early;
    as_relay = pg_kind;
    as_relay.make = make;
    as_relay.url = relay_url;
    store_kind = &as_relay;
    memcpy(tests, own, sizeof own);
    size_t n = COUNT(own) + suite_tests(tests + COUNT(own), COUNT(tests) - COUNT(own));
    return _cmocka_run_group_tests("PostgreSQL grants", tests, n, NULL, NULL);
}
