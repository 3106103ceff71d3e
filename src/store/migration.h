/* SPDX-License-Identifier: Apache-2.0 */
/* The numbered migrations of a dialect, embedded by tools/embed-sql. */
#ifndef HK_STORE_MIGRATION_H
#define HK_STORE_MIGRATION_H

#include <stdint.h>

struct hk_migration {
    uint32_t version; /* 0 ends the table */
    const char *name;
    const char *sql;
};

extern const struct hk_migration hk_migrations_sqlite[];
extern const struct hk_migration hk_migrations_postgres[];

/* The version that the last of them leads to. */
static inline uint32_t hk_migrations_newest(const struct hk_migration *migrations)
{
    uint32_t newest = 0;
    for (; migrations->version; migrations++)
        newest = migrations->version;
    return newest;
}

#endif
