/* SPDX-License-Identifier: Apache-2.0 */
/* What a token endpoint may say: tokens that can be used, its own words, and everything else. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "check.h"
#include "sink/http/oauth.h"

static const struct {
    const char *body, *token; /* token NULL: none */
    enum hk_code rc;
    uint64_t lifetime_s;
    const char *error;
} cases[] = {
    {"{\"access_token\":\"abc\",\"token_type\":\"Bearer\",\"expires_in\":3600}", "abc", HK_OK, 3600, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":\"90\"}", "abc", HK_OK, 90, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":1.5}", "abc", HK_OK, 1, ""},
    {"{\"access_token\":\"abc\"}", "abc", HK_OK, 0, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":-5}", "abc", HK_OK, 0, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":99999999999999}", "abc", HK_OK, 31536000, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":1e300}", "abc", HK_OK, 0, ""},
    {"{\"access_token\":\"abc\",\"expires_in\":{}}", "abc", HK_OK, 0, ""},
    {"{\"error\":\"invalid_client\",\"error_description\":\"no such client\"}", NULL, HK_OK, 0,
     "invalid_client: no such client"},
    {"{\"error\":\"invalid_scope\"}", NULL, HK_OK, 0, "invalid_scope"},
    {"{\"error\":7}", NULL, HK_OK, 0, ""},
    {"{}", NULL, HK_OK, 0, ""},
    {"{\"access_token\":\"\"}", NULL, HK_OK, 0, ""},
    {"{\"access_token\":7}", NULL, HK_OK, 0, ""},
    {"{\"access_token\":\"a b\"}", NULL, HK_INVALID, 0, ""},
    {"{\"access_token\":\"a\\r\\nX-Evil: 1\"}", NULL, HK_INVALID, 0, ""},
    {"{\"access_token\":\"\xc3\xa9\"}", NULL, HK_INVALID, 0, ""},
    {"{\"access_token\":\"abc\",\"token_type\":\"mac\"}", NULL, HK_INVALID, 0, ""},
    {"[]", NULL, HK_INVALID, 0, ""},
    {"\"abc\"", NULL, HK_INVALID, 0, ""},
    {"{\"access_token\":\"abc\"", NULL, HK_INVALID, 0, ""},
    {"<html>", NULL, HK_INVALID, 0, ""},
    {"", NULL, HK_INVALID, 0, ""},
};

static void an_endpoints_answer_is_a_token_or_words_or_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_oauth_answer answer = {.token = NULL};
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_oauth_answer_read(hk_str_of(cases[i].body), &answer, &err);
        NOTE_IF(rc != cases[i].rc, "%s: %s\n", cases[i].body, err.message);
        assert_int_equal(rc, cases[i].rc);
        assert_int_equal(answer.token != NULL, cases[i].token != NULL);
        if (cases[i].token)
            assert_string_equal(answer.token, cases[i].token);
        assert_int_equal(answer.lifetime_s, cases[i].lifetime_s);
        assert_string_equal(answer.error, cases[i].error);
        hk_oauth_answer_fini(&answer);
    }
}

static void a_token_that_fits_no_header_is_refused(void **state)
{
    (void)state;
    struct hk_buf body;
    struct hk_oauth_answer answer = {.token = NULL};
    hk_buf_init(&body, 16384);
    hk_buf_adds(&body, "{\"access_token\":\"");
    for (int i = 0; i < 5000; i++)
        hk_buf_addc(&body, 'x');
    hk_buf_adds(&body, "\"}");
    assert_int_equal(hk_oauth_answer_read(hk_buf_str(&body), &answer, NULL), HK_INVALID);
    assert_null(answer.token);
    hk_buf_fini(&body);
}

static void long_words_are_cut(void **state)
{
    (void)state;
    char body[1024], word[400];
    memset(word, 'w', sizeof word - 1);
    word[sizeof word - 1] = '\0';
    (void)snprintf(body, sizeof body, "{\"error\":\"%s\",\"error_description\":\"%s\"}", word, word);
    struct hk_oauth_answer answer = {.token = NULL};
    assert_int_equal(hk_oauth_answer_read(hk_str_of(body), &answer, NULL), HK_OK);
    assert_int_equal(strlen(answer.error), 60 + 2 + 90);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_endpoints_answer_is_a_token_or_words_or_nothing),
        cmocka_unit_test(a_token_that_fits_no_header_is_refused),
        cmocka_unit_test(long_words_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
