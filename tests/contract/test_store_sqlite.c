/* SPDX-License-Identifier: Apache-2.0 */
/* The SQLite store under the contract that every store must keep. */
#include "sqlite_kind.h"

int main(void)
{
    static struct CMUnitTest tests[140];
    store_kind = &sqlite_kind;
    size_t n = suite_tests(tests, COUNT(tests));
    return _cmocka_run_group_tests("store (sqlite)", tests, n, NULL, NULL);
}
