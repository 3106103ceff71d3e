/* SPDX-License-Identifier: Apache-2.0 */
/* The statements of the SQLite store by name; prepared at first use and kept. */
#ifndef HK_STORE_SQLITE_STMT_H
#define HK_STORE_SQLITE_STMT_H

#include "store/sqlite/relay_sql.h" /* made of sql/relay.sql */

#endif
