/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL's jobs under their contract: directly, and (by the argument "pooler") behind PgBouncer in transaction mode. */
#include "jobs_suite.h"
#include "pg_bouncer.h"
#include "pg_kind.h"

static const struct letters_dialect dialect = {
    .refuse =
        "CREATE FUNCTION no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; "
        "CREATE TRIGGER t BEFORE INSERT ON outbox_audit FOR EACH ROW WHEN (new.reason = 'refused') EXECUTE FUNCTION no()",
    .allow = "DROP TRIGGER t ON outbox_audit",
};

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[40];
    bool pooler;
    int code;
    if (!bouncer_choose(argc, argv, &pooler, &code))
        return code;
    admin_ops = &hk_store_admin_postgres;
    letters_ops = &hk_store_letters_postgres;
    letters_dialect = &dialect;
    jobs_ops = &hk_store_jobs_postgres;
    size_t n = jobs_suite_tests(tests, COUNT(tests));
    if (pooler)
        return _cmocka_run_group_tests("jobs (postgres, behind PgBouncer)", tests, n, bouncer_start,
                                       bouncer_end);
    return _cmocka_run_group_tests("jobs (postgres)", tests, n, NULL, NULL);
}
