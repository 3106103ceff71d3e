/* SPDX-License-Identifier: Apache-2.0 */
/* Between the suite's own files. */
#ifndef HK_TESTS_LETTERS_SUITE_IMPL_H
#define HK_TESTS_LETTERS_SUITE_IMPL_H

#include "letters_suite.h"

extern const struct CMUnitTest letters_act_tests[], letters_list_tests[], letters_redrive_tests[],
    letters_redirect_tests[], letters_state_tests[];
extern const size_t letters_act_count, letters_list_count, letters_redrive_count, letters_redirect_count,
    letters_state_count;

#define TEST(f)                 cmocka_unit_test_setup_teardown(f, suite_setup, suite_teardown)
#define assert_rows(sql, n)     assert_int_equal(suite_number("SELECT count(*) FROM " sql), n)
#define assert_text(s, text)    assert_true(hk_str_eq(s, hk_str_of(text)))
#define assert_value(sql, text) assert_string_equal(store_kind->value("SELECT " sql), text)
#define assert_number(sql, n)   assert_int_equal(suite_number("SELECT " sql), n)

typedef enum hk_code letters_act_fn(struct hk_admin *, const struct hk_letter_act *,
                                    const struct hk_letters_done **, struct hk_err *);

/* One id, by "ann", "because". */
struct hk_letter_done letters_act(letters_act_fn *fn, struct hk_admin *admin, int64_t id);

#endif
