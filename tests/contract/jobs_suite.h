/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/jobs.h as a test, for any implementation. A program that runs it sets store_kind, admin_ops,
 * letters_ops, letters_dialect (refuse, allow) and jobs_ops, and links letters_suite*.c and admin_suite.c. */
#ifndef HK_TESTS_JOBS_SUITE_H
#define HK_TESTS_JOBS_SUITE_H

#include "letters_suite.h"
#include "store/jobs.h"

extern const struct hk_store_jobs_ops *jobs_ops;

size_t jobs_suite_tests(struct CMUnitTest *out, size_t room);

#endif
