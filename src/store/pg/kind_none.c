/* SPDX-License-Identifier: Apache-2.0 */
/* PostgreSQL in a build without it: a URL that names it gets an error that says so. */
#include "store/kinds.h"

static const char *const schemes[] = {"postgres", "postgresql", NULL};

const struct hk_store_kind hk_store_kind_postgres = {
    .schemes = schemes,
    .form = "postgres://USER@HOST/DATABASE",
    .missing = "this build has no PostgreSQL: install libpq (Debian: libpq-dev) and build hikyaku again, "
               "or use sqlite:PATH",
};
