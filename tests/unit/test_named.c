/* SPDX-License-Identifier: Apache-2.0 */
/* Named values of sentences: always one JSON object, whatever the values and however little room or memory there is. */
#include <string.h>

#include <hikyaku/alloc.h>
#include <jansson.h>

#include "base/named.h"
#include "base/str.h"
#include "check.h"
#include "failing.h"

static const char *text_of(const struct hk_named *values)
{
    static char text[512];
    hk_named_text(values, text, sizeof text);
    return text;
}

static void values_are_one_object(void **state)
{
    (void)state;
    assert_string_equal(
        text_of(HK_NAMED(hk_named_cstr("relay", "vm \"1\"\n"), hk_named_int("ago_ms", -5),
                         hk_named_id("letter", INT64_MAX), hk_named_count("n", 7))),
        "{\"relay\":\"vm \\\"1\\\"\\n\",\"ago_ms\":-5,\"letter\":\"9223372036854775807\",\"n\":7}");
    assert_string_equal(text_of(HK_NAMED(hk_named_str("empty", hk_str_of("")))), "{\"empty\":\"\"}");
    assert_string_equal(text_of(HK_NAMED_NONE), "{}");
}

static void a_count_never_gets_negative(void **state)
{
    (void)state;
    assert_string_equal(text_of(HK_NAMED(hk_named_count("n", UINT64_MAX))), "{\"n\":9223372036854775807}");
}

/* Bytes of a row may be anything; JSON that is cut would be none. */
static void no_value_breaks_the_object(void **state)
{
    (void)state;
    char hostile[300];
    for (size_t room = 3; room < 700; room++) {
        char text[700];
        memset(hostile, (int)(room % 256), sizeof hostile);
        hk_named_text(HK_NAMED(hk_named_str("error", (struct hk_str){hostile, room % sizeof hostile})), text,
                      room);
        assert_true(strlen(text) < room);
        json_t *json = json_loads(text, 0, NULL);
        assert_true(json_is_object(json));
        json_decref(json);
    }
}

static void values_too_large_are_left_out(void **state)
{
    (void)state;
    struct hk_pool mem = {NULL};
    char *large = calloc(1, 100001);
    memset(large, 'x', 100000);
    struct hk_str json =
        hk_named_keep(HK_NAMED(hk_named_cstr("a", "b"), hk_named_cstr("error", large)), &mem);
    assert_int_equal(json.len, 2);
    assert_string_equal(json.ptr, "{}");
    hk_pool_fini(&mem);
    free(large);
}

static enum hk_code keep_some(void)
{
    struct hk_pool mem = {NULL};
    struct hk_str json = hk_named_keep(HK_NAMED(hk_named_cstr("relay", "vm-1"), hk_named_int("n", 3)), &mem);
    enum hk_code rc = json.ptr ? HK_OK : HK_NOMEM;
    if (rc == HK_OK)
        assert_string_equal(json.ptr, "{\"relay\":\"vm-1\",\"n\":3}");
    hk_pool_fini(&mem);
    return rc;
}

static void out_of_memory_is_reported(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(keep_some, HK_OK) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_one_object),      cmocka_unit_test(a_count_never_gets_negative),
        cmocka_unit_test(no_value_breaks_the_object), cmocka_unit_test(values_too_large_are_left_out),
        cmocka_unit_test(out_of_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
