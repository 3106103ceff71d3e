/* SPDX-License-Identifier: Apache-2.0 */
/* Between the suite's own files. */
#ifndef HK_TESTS_STORE_SUITE_IMPL_H
#define HK_TESTS_STORE_SUITE_IMPL_H

#include "store_suite.h"

extern const struct CMUnitTest suite_read_tests[];
extern const size_t suite_read_count;

extern const struct CMUnitTest suite_stuck_tests[];
extern const size_t suite_stuck_count;

enum hk_code suite_try_exchange(struct hk_store *store, int64_t lane, const struct hk_settle *settles,
                                size_t n_settles, const struct hk_exchanged **out);

#endif
