/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite's tokens and calls of the HTTP API under their contract. */
#include "api_suite.h"
#include "sqlite_kind.h"

int main(void)
{
    static struct CMUnitTest tests[40];
    store_kind = &sqlite_kind;
    admin_ops = &hk_store_admin_sqlite;
    letters_ops = &hk_store_letters_sqlite;
    api_ops = &hk_store_api_sqlite;
    size_t n = api_suite_tests(tests, COUNT(tests));
    return _cmocka_run_group_tests("api (sqlite)", tests, n, NULL, NULL);
}
