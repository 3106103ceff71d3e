/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/api.h as a test, for any implementation. A program that runs it sets store_kind, admin_ops,
 * letters_ops and api_ops, and links letters_suite*.c and admin_suite.c. */
#ifndef HK_TESTS_API_SUITE_H
#define HK_TESTS_API_SUITE_H

#include "letters_suite.h"
#include "store/api.h"

extern const struct hk_store_api_ops *api_ops;

size_t api_suite_tests(struct CMUnitTest *out, size_t room);

#endif
