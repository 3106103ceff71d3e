/* SPDX-License-Identifier: Apache-2.0 */
/* A message's states: the table allows what the design draws, and nothing else. */
#include "base/str.h"
#include "check.h"
#include "core/encoding.h"
#include "core/message.h"

/* Every step that is allowed. */
static const struct {
    enum hk_state from;
    enum hk_event event;
    enum hk_state to;
} steps[] = {
    {HK_PENDING, HK_EV_CLAIM, HK_PROCESSING},
    {HK_PENDING, HK_EV_CANCEL, HK_STATE_CANCELLED},
    {HK_PROCESSING, HK_EV_ACK, HK_SENT},
    {HK_PROCESSING, HK_EV_RETRY, HK_RETRYING},
    {HK_PROCESSING, HK_EV_RELEASE, HK_PENDING},
    {HK_PROCESSING, HK_EV_ORPHAN, HK_RETRYING},
    {HK_PROCESSING, HK_EV_GIVE_UP, HK_STATE_DEAD},
    {HK_RETRYING, HK_EV_CLAIM, HK_PROCESSING},
    {HK_RETRYING, HK_EV_CANCEL, HK_STATE_CANCELLED},
    {HK_STATE_DEAD, HK_EV_REQUEUE, HK_PENDING},
};

static enum hk_state expected(int from, int event)
{
    for (size_t i = 0; i < COUNT(steps); i++)
        if ((int)steps[i].from == from && (int)steps[i].event == event)
            return steps[i].to;
    return HK_STATE_NONE;
}

static void only_the_drawn_steps_are_allowed(void **state)
{
    (void)state;
    for (int from = -1; from <= HK_NSTATES; from++)
        for (int event = -1; event <= HK_NEVENTS; event++) {
            enum hk_state got = hk_state_after((enum hk_state)from, (enum hk_event)event);
            NOTE_IF(got != expected(from, event), "state %d, event %d\n", from, event);
            assert_int_equal(got, expected(from, event));
        }
}

static void nothing_in_flight_is_cancelled_and_the_end_is_the_end(void **state)
{
    (void)state;
    assert_int_equal(hk_state_after(HK_PROCESSING, HK_EV_CANCEL), HK_STATE_NONE);
    for (int event = 0; event < HK_NEVENTS; event++) {
        assert_int_equal(hk_state_after(HK_SENT, (enum hk_event)event), HK_STATE_NONE);
        assert_int_equal(hk_state_after(HK_STATE_CANCELLED, (enum hk_event)event), HK_STATE_NONE);
    }
}

static void names_are_those_of_the_view(void **state)
{
    (void)state;
    assert_string_equal(hk_state_name(HK_PENDING), "pending");
    assert_string_equal(hk_state_name(HK_PROCESSING), "processing");
    assert_string_equal(hk_state_name(HK_RETRYING), "retrying");
    assert_string_equal(hk_state_name(HK_SENT), "sent");
    assert_string_equal(hk_state_name(HK_STATE_DEAD), "dead");
    assert_string_equal(hk_state_name(HK_STATE_CANCELLED), "cancelled");
    assert_string_equal(hk_state_name(HK_STATE_NONE), "none");
    assert_string_equal(hk_state_name((enum hk_state)HK_NSTATES), "none");
    assert_string_equal(hk_state_name((enum hk_state) - 1), "none");
}

static void every_column_that_can_be_wrong_is_named_with_the_right_way(void **state)
{
    (void)state;
    static const char *const columns[] = {"not_before", "expires_at", "max_attempts", "encoding",
                                          "message_id"};
    for (size_t i = 0; i < COUNT(columns); i++)
        assert_int_equal(strncmp(hk_malformed_text(columns[i]), columns[i], strlen(columns[i])), 0);
    assert_non_null(strstr(hk_malformed_text("headers"), "too long"));
}

static void encodings_are_known_by_their_names_in_any_case(void **state)
{
    (void)state;
    static const char *const known[] = {"", "utf8", "utf-8", "UTF-8", "base64", "Base64"};
    static const char *const unknown[] = {"utf", "utf16", "base64url", " utf8", "base64 "};
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_true(hk_encoding_is_known(hk_str_of(known[i])));
        assert_int_equal(hk_encoding_is_base64(hk_str_of(known[i])), i >= 4);
    }
    for (size_t i = 0; i < COUNT(unknown); i++)
        assert_false(hk_encoding_is_known(hk_str_of(unknown[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_steps_are_allowed),
        cmocka_unit_test(nothing_in_flight_is_cancelled_and_the_end_is_the_end),
        cmocka_unit_test(names_are_those_of_the_view),
        cmocka_unit_test(every_column_that_can_be_wrong_is_named_with_the_right_way),
        cmocka_unit_test(encodings_are_known_by_their_names_in_any_case),
    };
    return cmocka_run_group_tests_name("message", tests, NULL, NULL);
}
