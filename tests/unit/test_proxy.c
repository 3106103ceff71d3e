/* SPDX-License-Identifier: Apache-2.0 */
/* Which hosts go by a proxy: patterns, one against another. */
#include <string.h>

#include "base/proxy.h"
#include "base/str.h"
#include "base/url.h"
#include "check.h"

static const struct {
    const char *pattern, *host;
    bool direct;
} cases[] = {
    {"*", "billing.example", true},
    {"billing.example", "billing.example", true},
    {"billing.example", "BILLING.example.", true},
    {"billing.example.", "billing.example", true},
    {"billing.example", "x.billing.example", false},
    {"billing.example", "notbilling.example", false},
    {".example", "billing.example", true},
    {".example", "example", true},
    {".example", "badexample", false},
    {"10.0.0.0/8", "10.1.2.3", true},
    {"10.0.0.0/8", "11.1.2.3", false},
    {"10.0.0.0/8", "ten.example", false},
    {"10.0.0.0/8", "[::ffff:10.1.2.3]", true},
    {"127.0.0.1", "127.0.0.1", true},
    {"127.0.0.1", "127.0.0.2", false},
    {"127.0.0.1", "localhost", false},
    {"[fd00::1]", "[fd00::1]", true},
    {"fd00::/8", "[fd12::1]", true},
    {"fd00::/8", "[2001:db8::1]", false},
};

static void a_pattern_names_hosts_by_their_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_proxy proxy = {.direct = &cases[i].pattern, .n_direct = 1};
        assert_true(hk_proxy_pattern_ok(hk_str_of(cases[i].pattern)));
        bool is_for = hk_proxy_is_for(&proxy, hk_str_of(cases[i].host));
        NOTE_IF(is_for == cases[i].direct, "%s %s\n", cases[i].pattern, cases[i].host);
        assert_int_equal(is_for, !cases[i].direct);
    }
    assert_false(hk_proxy_is_for(NULL, hk_str_of("billing.example")));
}

static void a_pattern_that_is_none_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"",          ".",          "..a",      "a b",  "a/b",
                                      "*.example", "10.0.0.1/8", "http://x", "x:80", "[::1"};
    for (size_t i = 0; i < COUNT(bad); i++) {
        NOTE_IF(hk_proxy_pattern_ok(hk_str_of(bad[i])), "%s\n", bad[i]);
        assert_false(hk_proxy_pattern_ok(hk_str_of(bad[i])));
    }
}

static void the_host_is_cut_out_of_a_url(void **state)
{
    (void)state;
    static const char *const urls[][2] = {{"https://a.example/x:1/y", "a.example"},
                                          {"http://a.example:8080", "a.example"},
                                          {"http://[::1]:80/", "::1"},
                                          {"http://1.2.3.4?x", "1.2.3.4"},
                                          {"", ""},
                                          {"http://", ""}};
    for (size_t i = 0; i < COUNT(urls); i++) {
        struct hk_str host = hk_url_host(hk_str_of(urls[i][0]));
        NOTE_IF(!hk_str_eq(host, hk_str_of(urls[i][1])), "%s\n", urls[i][0]);
        assert_true(hk_str_eq(host, hk_str_of(urls[i][1])));
    }
}

static void a_copy_holds_all_of_it_or_is_none(void **state)
{
    (void)state;
    const char *const direct[] = {".internal", "10.0.0.0/8"};
    const struct hk_proxy from = {.name = "egress",
                                  .url = "http://p:1",
                                  .user = "u",
                                  .password = "p",
                                  .ca_file = "ca.pem",
                                  .resolves = true,
                                  .direct = direct,
                                  .n_direct = 2};
    struct hk_pool pool = {NULL};
    const struct hk_proxy *copy = hk_proxy_copy(&from, &pool);
    assert_non_null(copy);
    assert_string_equal(copy->url, "http://p:1");
    assert_ptr_not_equal(copy->url, from.url);
    assert_string_equal(copy->password, "p");
    assert_true(copy->resolves);
    assert_false(hk_proxy_is_for(copy, hk_str_of("a.internal")));
    assert_true(hk_proxy_is_for(copy, hk_str_of("a.example")));
    hk_pool_wipe(&pool);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_names_hosts_by_their_text),
        cmocka_unit_test(a_pattern_that_is_none_is_refused),
        cmocka_unit_test(the_host_is_cut_out_of_a_url),
        cmocka_unit_test(a_copy_holds_all_of_it_or_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
