/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store under the contract that every store must keep. */
#include "pg_kind.h"

int main(void)
{
    static struct CMUnitTest tests[140];
    const int *over = pg_server_start();
    if (over)
        return *over;
    store_kind = &pg_kind;
    size_t n = suite_tests(tests, COUNT(tests));
    return _cmocka_run_group_tests("store (postgres)", tests, n, NULL, NULL);
}
