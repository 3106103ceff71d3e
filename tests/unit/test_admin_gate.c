/* SPDX-License-Identifier: Apache-2.0 */
/* Who may come in by which listener, and how heads are read. */
#include <stdbool.h>

#include "admin/gate.h"
#include "admin/head.h"
#include "base/str.h"
#include "check.h"

static const char *const hosts[] = {"relay.example"}, *const cors[] = {"https://dash.example"};
static struct hk_cidr proxies[2];
static const char *why;

static unsigned ask(enum hk_gate_way way, const char *peer, struct hk_gate_ask ask, char out[HK_IP_TEXT_MAX])
{
    const struct hk_gate gate = {.way = way,
                                 .hosts = hosts,
                                 .n_hosts = 1,
                                 .cors = cors,
                                 .n_cors = 1,
                                 .proxies = proxies,
                                 .n_proxies = 2};
    struct hk_gate_pass pass = {.cors = false};
    struct hk_ip ip;
    assert_int_equal(hk_cidr_parse(hk_str_of("10.0.0.0/8"), &proxies[0], NULL), HK_OK);
    assert_int_equal(hk_cidr_parse(hk_str_of("fd00::/8"), &proxies[1], NULL), HK_OK);
    if (peer) {
        assert_true(hk_ip_parse(hk_str_of(peer), &ip));
        ask.peer = &ip;
    }
    if (!ask.method)
        ask.method = "GET";
    why = NULL;
    unsigned status = hk_gate_check(&gate, &ask, &pass, &why);
    assert_int_equal(status != 0, why != NULL);
    if (out && !status)
        (void)hk_ip_format(&pass.client, out);
    return status;
}

static void test_a_host_must_be_ours(void **state)
{
    (void)state;

    static const struct {
        const char *host;
        unsigned local, tls;
    } cases[] = {
        {NULL, 0, 0},
        {"localhost:1", 0, 0},
        {"relay.example", 0, 0},
        {"Relay.Example:8189", 0, 0},
        {"192.0.2.1", 421, 0},
        {"[2001:db8::1]:80", 421, 0},
        {"evil.example", 421, 421},
        {"relay.example.", 421, 421},
        {"relay.example.evil.example", 421, 421},
        {"relay.example:evil", 421, 421},
        {"", 421, 421},
        {":80", 421, 421},
        {"[relay.example]", 421, 421},
        {"relay.example@evil.example", 421, 421},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_gate_ask one = {.host = cases[i].host};
        assert_int_equal(ask(HK_GATE_LOCAL, "127.0.0.1", one, NULL), cases[i].local);
        assert_int_equal(ask(HK_GATE_TLS, "192.0.2.9", one, NULL), cases[i].tls);
        assert_int_equal(ask(HK_GATE_PROXIED, "10.0.0.1", one, NULL), cases[i].tls);
        assert_int_equal(ask(HK_GATE_UNIX, NULL, one, NULL), 0);
        assert_int_equal(ask(HK_GATE_OPEN, "192.0.2.9", one, NULL), 0);
    }
}

static void test_a_page_of_another_origin_changes_nothing(void **state)
{
    (void)state;

    static const struct {
        const char *method, *origin;
        enum hk_gate_way way;
        unsigned status;
    } cases[] = {
        {"POST", NULL, HK_GATE_TLS, 0},
        {"POST", "https://relay.example", HK_GATE_TLS, 0},
        {"POST", "https://RELAY.example:443", HK_GATE_TLS, 0},
        {"POST", "https://dash.example", HK_GATE_TLS, 0},
        {"GET", "https://evil.example", HK_GATE_TLS, 0},
        {"HEAD", "null", HK_GATE_TLS, 0},
        {"OPTIONS", "https://evil.example", HK_GATE_TLS, 0},
        {"POST", "https://evil.example", HK_GATE_TLS, 403},
        {"PUT", "http://relay.example", HK_GATE_TLS, 403},
        {"PATCH", "https://relay.example:8443", HK_GATE_TLS, 403},
        {"DELETE", "null", HK_GATE_TLS, 403},
        {"post", "https://evil.example", HK_GATE_TLS, 403},
        {"POST", "https://", HK_GATE_TLS, 403},
        {"POST", "", HK_GATE_TLS, 403},
        {"POST", "https://dash.example.evil.example", HK_GATE_TLS, 403},
        {"POST", "http://relay.example", HK_GATE_LOCAL, 0},
        {"POST", "https://relay.example", HK_GATE_LOCAL, 403},
        {"POST", "https://relay.example", HK_GATE_PROXIED, 0},
        {"POST", "https://evil.example", HK_GATE_PROXIED, 403},
        {"POST", "https://evil.example", HK_GATE_UNIX, 403},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        const struct hk_gate_ask one = {
            .method = cases[i].method, .host = "relay.example", .origin = cases[i].origin};
        unsigned status = ask(cases[i].way, cases[i].way == HK_GATE_UNIX ? NULL : "10.0.0.1", one, NULL);
        NOTE_IF(status != cases[i].status, "%s %s: %u\n", cases[i].method,
                cases[i].origin ? cases[i].origin : "none", status);
        assert_int_equal(status, cases[i].status);
    }
    const struct hk_gate_ask hostless = {.method = "POST", .origin = "https://relay.example"};
    assert_int_equal(ask(HK_GATE_TLS, "192.0.2.1", hostless, NULL), 403);
}

static void test_the_last_address_that_is_no_proxy_asks(void **state)
{
    (void)state;

    static const struct {
        const char *peer, *forwarded, *client; /* NULL: refused */
    } cases[] = {
        {"10.0.0.1", NULL, "10.0.0.1"},
        {"10.0.0.1", "", "10.0.0.1"},
        {"10.0.0.1", "198.51.100.7", "198.51.100.7"},
        {"::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"},
        {"10.0.0.1", "203.0.113.1, 198.51.100.7", "198.51.100.7"},
        {"10.0.0.1", "203.0.113.1, 198.51.100.7 , 10.2.3.4", "198.51.100.7"},
        {"10.0.0.1", "10.9.9.9,10.2.3.4", "10.9.9.9"},
        {"fd00::1", "198.51.100.7:1234", "198.51.100.7"},
        {"10.0.0.1", "2001:db8::7", "2001:db8::7"},
        {"10.0.0.1", "[2001:db8::7]:99", "2001:db8::7"},
        {"10.0.0.1", "198.51.100.7, unknown", "10.0.0.1"},
        {"10.0.0.1", "198.51.100.7,", "10.0.0.1"},
        {"10.0.0.1", ",,,", "10.0.0.1"},
        {"192.0.2.1", "198.51.100.7", NULL},
        {"127.0.0.1", NULL, NULL},
        {"127.0.0.1", "10.0.0.1", NULL},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        char client[HK_IP_TEXT_MAX];
        const struct hk_gate_ask one = {.host = "relay.example", .forwarded = cases[i].forwarded};
        unsigned status = ask(HK_GATE_PROXIED, cases[i].peer, one, client);
        NOTE_IF(status != (cases[i].client ? 0 : 403), "%s: %u\n", cases[i].peer, status);
        assert_int_equal(status, cases[i].client ? 0 : 403);
        if (cases[i].client)
            assert_string_equal(client, cases[i].client);
    }
    char client[HK_IP_TEXT_MAX];
    const struct hk_gate_ask lie = {.host = "relay.example", .forwarded = "198.51.100.7"};
    assert_int_equal(ask(HK_GATE_TLS, "10.0.0.1", lie, client), 0);
    assert_string_equal(client, "10.0.0.1");
}

static void test_gzip_is_for_those_who_take_it(void **state)
{
    (void)state;
    static const char *const takes[] = {"gzip",           "GZIP",   "br, gzip",  "gzip;q=1",
                                        "gzip ; q=0.001", "x-gzip", "a;q=0,gzip"};
    static const char *const refuses[] = {"",          "br",       "gzip;q=0",         "gzip;q=0.000",
                                          "gzip ;Q=0", "identity", "gzipped, deflate", "*"};
    for (size_t i = 0; i < COUNT(takes); i++)
        assert_true(hk_head_takes_gzip(takes[i]));
    for (size_t i = 0; i < COUNT(refuses); i++)
        assert_false(hk_head_takes_gzip(refuses[i]));
    assert_false(hk_head_takes_gzip(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_host_must_be_ours),
        cmocka_unit_test(test_a_page_of_another_origin_changes_nothing),
        cmocka_unit_test(test_the_last_address_that_is_no_proxy_asks),
        cmocka_unit_test(test_gzip_is_for_those_who_take_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
