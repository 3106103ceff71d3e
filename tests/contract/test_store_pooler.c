/* SPDX-License-Identifier: Apache-2.0 */
/* The PostgreSQL store behind PgBouncer in transaction mode, under the contract that every store must keep. */
#include "pg_bouncer.h"
#include "pg_kind.h"

static const char *url(void)
{
    return bouncer_url("");
}

int main(void)
{
    static struct CMUnitTest tests[140];
    static struct store_kind pooled;
    if (!bouncer_is_here()) {
        printf("1..0 # SKIP no PgBouncer (Debian: pgbouncer)\n");
        return 0;
    }
    const int *over = pg_server_start();
    if (over)
        return *over;
    pooled = pg_kind;
    pooled.url = url;
    store_kind = &pooled;
    size_t n = suite_tests(tests, COUNT(tests));
    return _cmocka_run_group_tests("store (postgres, behind PgBouncer)", tests, n, bouncer_start,
                                   bouncer_end);
}
