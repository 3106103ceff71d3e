/* SPDX-License-Identifier: Apache-2.0 */
/* What of a destination's URL people may see. */
#include <string.h>

#include "base/str.h"
#include "base/url.h"
#include "check.h"

#define DOTS "\xe2\x80\xa6"

static const struct {
    const char *url, *shown;
} cases[] = {
    {"https://billing.example/hooks", "https://billing.example/hooks"},
    {"https://billing.example", "https://billing.example"},
    {"https://billing.example/", "https://billing.example/"},
    {"http://127.0.0.1:8080/v1/order-events", "http://127.0.0.1:8080/v1/order-events"},
    {"http://[::1]:8080/hook", "http://[::1]:8080/hook"},
    {"https://hooks.slack.com/services/T024BE7LD/B024BE7LH/x7YzAbCdEfGhIjKlMnOpQrSt",
     "https://hooks.slack.com/services/" DOTS "/" DOTS "/" DOTS},
    {"https://h.example/hooks/9f86d081884c7d65", "https://h.example/hooks/" DOTS},
    {"https://h.example/hooks/s3cret", "https://h.example/hooks/" DOTS},
    {"https://h.example/hooks/secret-in-path", "https://h.example/hooks/" DOTS},
    {"https://h.example/SECRET", "https://h.example/" DOTS},
    {"https://h.example/abcdefghijklmnopqrstuvwxyz", "https://h.example/" DOTS},
    {"https://h.example/caf%C3%A9", "https://h.example/" DOTS},
    {"https://h.example/hook?tenant=acme&sig=abc", "https://h.example/hook?tenant=" DOTS "&" DOTS "=" DOTS},
    {"https://h.example?x7Y", "https://h.example?" DOTS},
    {"https://h.example/a;key=b/c", "https://h.example/a;" DOTS "=" DOTS "/c"},
    {"https://h.example/a=b=c", "https://h.example/a=" DOTS "=" DOTS},
    {"https://h.example/#frag", "https://h.example/#" DOTS},
    {"https://user:pw@h.example/hook", "https://" DOTS "@h.example/hook"},
    {"https://us@er:p@h.example/hook", "https://" DOTS "@h.example/hook"},
    {"", ""},
    {"nonsense", "nonsense"},
};

static void only_plain_words_of_a_path_are_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char out[HK_URL_SHOWN_MAX];
        const char *shown = hk_url_show(hk_str_of(cases[i].url), out);
        NOTE_IF(strcmp(shown, cases[i].shown) != 0, "%s: %s\n", cases[i].url, shown);
        assert_string_equal(shown, cases[i].shown);
    }
}

/* What is hidden is exactly what is not shown. */
static void hidden_parts_are_those_that_are_not_shown(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        size_t at = 0, n = 0, dots = 0;
        struct hk_str url = hk_str_of(cases[i].url);
        for (struct hk_str part = hk_url_hidden(url, &at); part.ptr; part = hk_url_hidden(url, &at)) {
            assert_true(part.len > 0 && part.ptr >= url.ptr && part.ptr + part.len <= url.ptr + url.len);
            assert_true(++n < 100);
        }
        for (const char *p = strstr(cases[i].shown, DOTS); p; p = strstr(p + 1, DOTS))
            dots += strncmp(p + strlen(DOTS), "@", 1) != 0; /* a user is refused elsewhere */
        NOTE_IF(n != dots, "%s: %zu\n", cases[i].url, n);
        assert_int_equal(n, dots);
    }
}

static void a_long_url_is_cut(void **state)
{
    (void)state;
    static const char start[] = "https://h.example";
    char url[3000] = "", out[HK_URL_SHOWN_MAX];
    memcpy(url, start, strlen(start));
    for (size_t at = strlen(start); at + 6 < sizeof url; at += 5)
        memcpy(url + at, "/hook", 5);
    const char *shown = hk_url_show(hk_str_of(url), out);
    assert_true(strlen(shown) < HK_URL_SHOWN_MAX);
    assert_string_equal(shown + strlen(shown) - strlen(DOTS), DOTS);
}

static void percent_signs_are_read(void **state)
{
    (void)state;
    char out[8];
    assert_int_equal(hk_url_decode(hk_str_of("a%2Fb%zz%4"), out, sizeof out), 8);
    assert_memory_equal(out, "a/b%zz%4", 8);
    assert_int_equal(hk_url_decode(hk_str_of("%41%42"), out, 1), 1);
    assert_memory_equal(out, "A", 1);
}

static void localhost_is_known_by_its_name(void **state)
{
    (void)state;
    static const char *const yes[] = {"localhost", "LocalHost", "a.localhost", "a.b.LOCALHOST"};
    static const char *const no[] = {
        "", "host", "localhost.", "notlocalhost", ".localhost", "localhost.example", "127.0.0.1"};
    for (size_t i = 0; i < COUNT(yes); i++)
        assert_true(hk_url_is_localhost(hk_str_of(yes[i])));
    for (size_t i = 0; i < COUNT(no); i++)
        assert_false(hk_url_is_localhost(hk_str_of(no[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_plain_words_of_a_path_are_shown),
        cmocka_unit_test(hidden_parts_are_those_that_are_not_shown),
        cmocka_unit_test(a_long_url_is_cut),
        cmocka_unit_test(percent_signs_are_read),
        cmocka_unit_test(localhost_is_known_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
