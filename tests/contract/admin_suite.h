/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/admin.h as a test, for any implementation. */
#ifndef HK_TESTS_ADMIN_SUITE_H
#define HK_TESTS_ADMIN_SUITE_H

#include "store/admin.h"
#include "store_suite.h"

extern const struct hk_store_admin_ops *admin_ops; /* set by the test program, besides store_kind */

size_t admin_suite_tests(struct CMUnitTest *out, size_t room);
struct hk_admin *admin_open(void); /* goes by suite_clock_ms */

#endif
