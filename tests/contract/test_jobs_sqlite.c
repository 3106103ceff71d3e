/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's jobs under their contract. */
#include "jobs_suite.h"
#include "sqlite_kind.h"

static const struct letters_dialect dialect = {
    .refuse = "CREATE TRIGGER t BEFORE INSERT ON outbox_audit WHEN new.reason = 'refused' "
              "BEGIN SELECT raise(ABORT, 'no'); END",
    .allow = "DROP TRIGGER t",
};

int main(void)
{
    static struct CMUnitTest tests[40];
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    letters_dialect = &dialect;
    jobs_ops = &hk_store_jobs_sqlite;
    size_t n = jobs_suite_tests(tests, COUNT(tests));
    return _cmocka_run_group_tests("jobs (sqlite)", tests, n, NULL, NULL);
}
