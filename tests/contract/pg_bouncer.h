/* SPDX-License-Identifier: Apache-2.0 */
/* A PgBouncer of its own in front of the test program's PostgreSQL server: transaction mode, one server connection for all. */
#ifndef HK_TESTS_PG_BOUNCER_H
#define HK_TESTS_PG_BOUNCER_H

#include <stdbool.h>

bool bouncer_is_here(void);
/* As a group's setup and teardown. */
int bouncer_start(void **state);
int bouncer_end(void **state);
/* A suite's main: starts the server and sets store_kind, with `pooler` among the arguments behind a PgBouncer. False: there is
 * nothing to run, and `*out_code` is to be returned. */
bool bouncer_choose(int argc, char **argv, bool *out_pooler, int *out_code);
const char *bouncer_url(const char *more); /* of the test's database. Valid until the next call */

#endif
