/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/alerts.h as a test, for any implementation. A program that runs it sets store_kind, admin_ops,
 * letters_ops and alerts_ops, and links letters_suite*.c and admin_suite.c. */
#ifndef HK_TESTS_ALERTS_SUITE_H
#define HK_TESTS_ALERTS_SUITE_H

#include "letters_suite.h"
#include "store/alerts.h"

extern const struct hk_store_alerts_ops *alerts_ops;

size_t alerts_suite_tests(struct CMUnitTest *out, size_t room);

/* What the suite is made of, for tests of one implementation alone. Each fails the test when the store fails. */
const struct hk_alerts_looked *alerts_look(struct hk_admin *admin); /* it must be due */
void alerts_decide(struct hk_admin *admin, const struct hk_alerts_looked *looked);

#endif
