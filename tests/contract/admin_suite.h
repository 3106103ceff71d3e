/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/admin.h as a test, for any implementation. */
#ifndef HK_TESTS_ADMIN_SUITE_H
#define HK_TESTS_ADMIN_SUITE_H

#include "store/admin.h"
#include "store_suite.h"

/* Where the suite's SQL cannot be the same for all. */
struct admin_dialect {
    const char *bytes, *bytes_value; /* how the payload "a\0b" of row 1 is kept: a query, and what it gives */
    const char *refuse, *allow;      /* makes INSERTs of event_type 'B' into outbox fail; undoes it */
};

extern const struct hk_store_admin_ops *admin_ops; /* set by the test program, besides store_kind */
extern const struct admin_dialect *admin_dialect;

size_t admin_suite_tests(struct CMUnitTest *out, size_t room);
size_t admin_clock_tests(struct CMUnitTest *out, size_t room);  /* admin_suite_clock.c */
size_t admin_series_tests(struct CMUnitTest *out, size_t room); /* admin_suite_series.c */
size_t admin_define_tests(struct CMUnitTest *out, size_t room); /* admin_suite_define.c */
size_t admin_list_tests(struct CMUnitTest *out, size_t room);   /* admin_suite_list.c */
size_t admin_bulk_tests(struct CMUnitTest *out, size_t room);   /* admin_suite_bulk.c */
struct hk_admin *admin_open(void);                              /* goes by suite_clock_ms */

#endif
