/* SPDX-License-Identifier: Apache-2.0 */
/* SQLite as a kind of store, and what its own tests need besides. */
#ifndef HK_TESTS_SQLITE_KIND_H
#define HK_TESTS_SQLITE_KIND_H

#include <sqlite3.h>

#include "store_suite.h"

extern const struct store_kind sqlite_kind;

const char *sqlite_path(void);  /* of the database */
const char *sqlite_dir(void);   /* where it lies, and files may be put; removed by drop */
sqlite3 *sqlite_connect(void);  /* one more connection, as an application's; close it before drop */
bool sqlite_make_dir(void);     /* as make, without a database */
void sqlite_assert_sound(void); /* PRAGMA integrity_check */

#endif
