/* SPDX-License-Identifier: Apache-2.0 */
/* The contract of src/store/letters.h as a test, for any implementation. A program that runs it sets store_kind, admin_ops
 * (for open and close), letters_ops and letters_dialect, and links admin_suite.c for admin_open. */
#ifndef HK_TESTS_LETTERS_SUITE_H
#define HK_TESTS_LETTERS_SUITE_H

#include "admin_suite.h"
#include "store/letters.h"

/* Where the suite's SQL cannot be the same for all. */
struct letters_dialect {
    const char *refuse,
        *allow; /* makes INSERTs into outbox_audit with the reason 'refused' fail; undoes it */
    bool (*try_sql)(const char *sql); /* as store_kind.sql; false: the database refused it */
};

extern const struct hk_store_letters_ops *letters_ops;
extern const struct letters_dialect *letters_dialect;

size_t letters_suite_tests(struct CMUnitTest *out, size_t room);

/* What the suite is made of, for tests of one implementation alone. Each fails the test when the store fails. */

/* Letters 1 to n, each a message that was written, claimed and refused with 500, as a relay does it: m1 … mN of event
 * type 'Made' with payloads p1 … pN at destination 'a'; `key` may be NULL. Moves the clock by a second before each. */
void letters_fill(struct hk_store *store, int64_t lane, int n, const char *key);
const struct hk_letters *letters_list(struct hk_admin *admin, const struct hk_letter_query *query);
const struct hk_letter_shown *letters_show(struct hk_admin *admin, int64_t id);
/* One id, by "ann", "because". */
struct hk_letter_done letters_requeue(struct hk_admin *admin, int64_t id, enum hk_requeue_id ids);
/* The retry row of a letter, 0 = there is none. */
int64_t letters_retry_of(int64_t letter_id);
/* Claims a retry row and settles it: HK_SETTLE_SENT, _RETRY or _DEAD. */
void letters_try_again(struct hk_store *store, int64_t lane, int64_t retry_id, enum hk_settle_kind kind);
/* Walks through the audit: every row's hash and link is right, and the head is the last one's. How many rows. */
size_t letters_verify_audit(struct hk_admin *admin);

#endif
