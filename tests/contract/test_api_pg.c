/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's tokens and calls of the HTTP API under their contract: directly, and (by the argument "pooler") behind PgBouncer in
 * transaction mode. And which rights a migration gives to roles that had theirs before. */
#include "api_suite.h"
#include "pg_bouncer.h"
#include "pg_kind.h"

static void roles_of_before_serve_and_look_as_they_may(void **state)
{
    (void)state;
    struct hk_store_inited done = {0};
    struct hk_err err = {0};
    assert_true(pg_make_database());
    PGconn *conn = pg_connect(NULL);
    pg_make_version("", 5);
    pg_exec(conn, "DO $$ BEGIN CREATE ROLE api_worker; CREATE ROLE api_looker; EXCEPTION "
                  "WHEN duplicate_object THEN NULL; END $$; "
                  "GRANT SELECT, INSERT, UPDATE, DELETE ON outbox_retry TO api_worker; "
                  "GRANT SELECT ON outbox_retry TO api_looker");
    assert_int_equal(hk_store_postgres.init(pg_url(NULL, ""), &(struct hk_store_init){0}, &done, &err),
                     HK_OK);
    assert_int_equal(done.from, 5);
    assert_string_equal(pg_ask(conn,
                               "SELECT has_table_privilege('api_worker', 'outbox_tokens', 'SELECT') AND "
                               "has_table_privilege('api_worker', 'outbox_tokens', 'INSERT') AND "
                               "has_table_privilege('api_worker', 'outbox_tokens', 'UPDATE') AND "
                               "NOT has_table_privilege('api_worker', 'outbox_tokens', 'DELETE') AND "
                               "has_table_privilege('api_worker', 'outbox_api_calls', 'DELETE')"),
                        "t");
    assert_string_equal(
        pg_ask(conn,
               "SELECT has_column_privilege('api_looker', 'outbox_tokens', 'last_used_ms', 'SELECT') AND "
               "NOT has_column_privilege('api_looker', 'outbox_tokens', 'hash', 'SELECT') AND "
               "NOT has_any_column_privilege('api_looker', 'outbox_tokens', 'UPDATE') AND "
               "NOT has_any_column_privilege('api_looker', 'outbox_api_calls', 'SELECT')"),
        "t");
    PQfinish(conn);
    pg_kind.drop();
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[40];
    bool pooler;
    int code;
    if (!bouncer_choose(argc, argv, &pooler, &code))
        return code;
    admin_ops = &hk_store_admin_postgres;
    letters_ops = &hk_store_letters_postgres;
    api_ops = &hk_store_api_postgres;
    size_t n = api_suite_tests(tests, COUNT(tests));
    if (pooler)
        return _cmocka_run_group_tests("api (postgres, behind PgBouncer)", tests, n, bouncer_start,
                                       bouncer_end);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(roles_of_before_serve_and_look_as_they_may);
    return _cmocka_run_group_tests("api (postgres)", tests, n, NULL, NULL);
}
