/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL as a kind of store: a throw-away server for each test program, a database for each test, and what its own
 * tests need besides. The server ends with the program, however that ends. */
#ifndef HK_TESTS_PG_KIND_H
#define HK_TESTS_PG_KIND_H

#include <libpq-fe.h>

#include "store_suite.h"

extern const struct store_kind pg_kind;

/* First thing in main: NULL when the server runs, else what the program returns: it has said why it skips, or failed. */
const int *pg_server_start(void);
const char *pg_server_dir(void);   /* its folder, where its socket lies, too (port 5432) */
void pg_server_become_owner(void); /* in a child of a root's test program: become whom the server runs as */
void pg_server_crash(void);        /* ends it without a shutdown, */
void pg_server_stop(void);         /* or with one; */
void pg_server_resume(void);       /* and starts it again, up to its first connection */

/* A hot standby at port 5433 with what is there now. It hears nothing of what comes later, and can be promoted. Stops and
 * resumes the server. */
void pg_server_add_standby(void);
void pg_server_drop_standby(void);

/* A database for a test, as pg_kind.make makes it but without the schema. */
bool pg_make_database(void);
/* The schema as an earlier version left it. */
void pg_make_version(const char *more, unsigned version);
const char *pg_database(void);
/* Valid until the next call but three. `user` NULL: the superuser. `more`: "&schema=s", or "". */
const char *pg_url(const char *user, const char *more);

/* As an application. Each fails the test on error. */
PGconn *pg_connect(const char *user);              /* to the test's database; PQfinish it before drop */
void pg_exec(PGconn *conn, const char *sql);       /* one or more statements */
const char *pg_ask(PGconn *conn, const char *sql); /* as store_kind.value */
/* The SQLSTATE that a statement is refused with; "" = it is not. */
const char *pg_refusal(PGconn *conn, const char *sql);

#endif
