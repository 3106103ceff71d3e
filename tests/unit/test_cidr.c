/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses: read as inet_pton reads them, written as inet_ntop writes them, and each known for what it is. */
#include <arpa/inet.h>
#include <stdlib.h>

#include "base/cidr.h"
#include "base/str.h"
#include "check.h"

static const struct {
    const char *ip;
    const char *special; /* NULL = public */
} known[] = {
    /* IPv4: both ends of each range, and their neighbours */
    {"0.0.0.0", "this network"},
    {"0.0.0.1", "this network"},
    {"0.255.255.255", "this network"},
    {"1.0.0.0", NULL},
    {"1.1.1.1", NULL},
    {"8.8.8.8", NULL},
    {"9.255.255.255", NULL},
    {"10.0.0.0", "private"},
    {"10.0.0.1", "private"},
    {"10.255.255.255", "private"},
    {"11.0.0.0", NULL},
    {"100.63.255.255", NULL},
    {"100.64.0.0", "carrier-grade NAT"},
    {"100.100.100.200", "carrier-grade NAT"},
    {"100.127.255.255", "carrier-grade NAT"},
    {"100.128.0.0", NULL},
    {"126.255.255.255", NULL},
    {"127.0.0.0", "loopback"},
    {"127.0.0.1", "loopback"},
    {"127.1.2.3", "loopback"},
    {"127.255.255.255", "loopback"},
    {"128.0.0.0", NULL},
    {"168.63.129.15", NULL},
    {"168.63.129.16", "cloud metadata"},
    {"168.63.129.17", NULL},
    {"169.253.255.255", NULL},
    {"169.254.0.0", "link-local"},
    {"169.254.169.254", "link-local"},
    {"169.254.170.2", "link-local"},
    {"169.254.255.255", "link-local"},
    {"169.255.0.0", NULL},
    {"172.15.255.255", NULL},
    {"172.16.0.0", "private"},
    {"172.17.0.1", "private"},
    {"172.31.255.255", "private"},
    {"172.32.0.0", NULL},
    {"191.255.255.255", NULL},
    {"192.0.0.0", "reserved"},
    {"192.0.0.8", "reserved"},
    {"192.0.0.192", "reserved"},
    {"192.0.0.255", "reserved"},
    {"192.0.1.0", NULL},
    {"192.0.1.255", NULL},
    {"192.0.2.0", "documentation"},
    {"192.0.2.255", "documentation"},
    {"192.0.3.0", NULL},
    {"192.88.98.255", NULL},
    {"192.88.99.0", "6to4 relay"},
    {"192.88.99.1", "6to4 relay"},
    {"192.88.100.0", NULL},
    {"192.167.255.255", NULL},
    {"192.168.0.0", "private"},
    {"192.168.1.1", "private"},
    {"192.168.255.255", "private"},
    {"192.169.0.0", NULL},
    {"198.17.255.255", NULL},
    {"198.18.0.0", "benchmark"},
    {"198.19.255.255", "benchmark"},
    {"198.20.0.0", NULL},
    {"198.51.99.255", NULL},
    {"198.51.100.0", "documentation"},
    {"198.51.100.255", "documentation"},
    {"198.51.101.0", NULL},
    {"203.0.112.255", NULL},
    {"203.0.113.0", "documentation"},
    {"203.0.113.255", "documentation"},
    {"203.0.114.0", NULL},
    {"223.255.255.255", NULL},
    {"224.0.0.0", "multicast"},
    {"224.0.0.251", "multicast"},
    {"239.255.255.255", "multicast"},
    {"240.0.0.0", "reserved"},
    {"255.255.255.254", "reserved"},
    {"255.255.255.255", "broadcast"},
    {"93.184.216.34", NULL},
    {"172.64.0.1", NULL},

    /* IPv6 */
    {"::", "unspecified"},
    {"::1", "loopback"},
    {"0:0:0:0:0:0:0:1", "loopback"},
    {"::2", "IPv4-compatible"},
    {"::127.0.0.1", "IPv4-compatible"},
    {"::8.8.8.8", "IPv4-compatible"},
    {"::ffff", "IPv4-compatible"},
    {"::ffff:ffff", "IPv4-compatible"},
    {"::1:0:0", "reserved"},
    {"::ffff:0.0.0.0", "this network"},
    {"::ffff:127.0.0.1", "loopback"},
    {"::ffff:7f00:1", "loopback"},
    {"::FFFF:10.0.0.1", "private"},
    {"::ffff:a9fe:a9fe", "link-local"},
    {"::ffff:192.168.0.1", "private"},
    {"::ffff:8.8.8.8", NULL},
    {"::ffff:808:808", NULL},
    {"0:0:0:0:0:ffff:255.255.255.255", "broadcast"},
    {"::ffff:0:127.0.0.1", "IPv4-translated"},
    {"::ffff:0:8.8.8.8", "IPv4-translated"},
    {"64:ff9b::", "NAT64"},
    {"64:ff9b::8.8.8.8", "NAT64"},
    {"64:ff9b::7f00:1", "NAT64"},
    {"64:ff9b::1:0:0", "reserved"},
    {"64:ff9b:1::", "NAT64"},
    {"64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "NAT64"},
    {"64:ff9b:2::", "reserved"},
    {"100::", "discard"},
    {"100::ffff:ffff:ffff:ffff", "discard"},
    {"100:0:0:1::", "reserved"},
    {"1fff:ffff::", "reserved"},
    {"2000::", NULL},
    {"2000:ffff::1", NULL},
    {"2001::", "Teredo"},
    {"2001:0:4136:e378:8000:63bf:3fff:fdd2", "Teredo"},
    {"2001:1::1", "reserved"},
    {"2001:2::", "benchmark"},
    {"2001:2:0:ffff::", "benchmark"},
    {"2001:2:1::", "reserved"},
    {"2001:10::", "ORCHID"},
    {"2001:1f:ffff::", "ORCHID"},
    {"2001:20::", "ORCHID"},
    {"2001:2f:ffff::", "ORCHID"},
    {"2001:30::", "reserved"},
    {"2001:1ff:ffff::", "reserved"},
    {"2001:200::", NULL},
    {"2001:db7:ffff::", NULL},
    {"2001:db8::", "documentation"},
    {"2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "documentation"},
    {"2001:db9::", NULL},
    {"2001:4860:4860::8888", NULL},
    {"2002::", "6to4"},
    {"2002:7f00:1::", "6to4"},
    {"2002:808:808::1", "6to4"},
    {"2002:ffff:ffff::", "6to4"},
    {"2003::", NULL},
    {"2606:4700:4700::1111", NULL},
    {"2a00:1450:4001::1", NULL},
    {"3ffe::1", NULL},
    {"3fff::", "documentation"},
    {"3fff:fff:ffff::", "documentation"},
    {"3fff:1000::", NULL},
    {"3fff:ffff::", NULL},
    {"4000::", "reserved"},
    {"5f00::1", "reserved"},
    {"8000::", "reserved"},
    {"fbff:ffff::", "reserved"},
    {"fc00::", "private"},
    {"fc00::1", "private"},
    {"fd00:ec2::254", "private"},
    {"fdff:ffff::", "private"},
    {"fe00::", "reserved"},
    {"fe7f:ffff::", "reserved"},
    {"fe80::", "link-local"},
    {"fe80::1", "link-local"},
    {"fea9:fea9::", "link-local"},
    {"febf:ffff::", "link-local"},
    {"fec0::", "site-local"},
    {"fec0::1", "site-local"},
    {"feff:ffff::", "site-local"},
    {"ff00::", "multicast"},
    {"ff02::1", "multicast"},
    {"ff0e::1", "multicast"},
    {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "multicast"},
};

static void every_address_is_known_for_what_it_is(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(known); i++) {
        struct hk_ip ip;
        bool read = hk_ip_parse(hk_str_of(known[i].ip), &ip);
        const char *special = read ? hk_ip_special(&ip) : "unreadable";
        bool good = special == known[i].special ||
                    (special && known[i].special && !strcmp(special, known[i].special));
        NOTE_IF(!good, "%s: %s, not %s\n", known[i].ip, special ? special : "public",
                known[i].special ? known[i].special : "public");
        wrong += !good;
    }
    assert_int_equal(wrong, 0);
}

static void check_against_libc(const char *text)
{
    struct in_addr v4;
    struct in6_addr v6;
    struct hk_ip ip;
    bool is4 = inet_pton(AF_INET, text, &v4) == 1, is6 = inet_pton(AF_INET6, text, &v6) == 1;
    bool read = hk_ip_parse(hk_str_of(text), &ip);
    NOTE_IF(read != (is4 || is6), "%s: %d, libc %d %d\n", text, read, is4, is6);
    assert_int_equal(read, is4 || is6);
    if (!read)
        return;
    assert_int_equal(ip.v6, is6);
    assert_memory_equal(ip.addr, is6 ? (void *)&v6 : (void *)&v4, is6 ? 16 : 4);
    char ours[HK_IP_TEXT_MAX], theirs[HK_IP_TEXT_MAX];
    size_t len = hk_ip_format(&ip, ours);
    assert_int_equal(len, strlen(ours));
    assert_non_null(inet_ntop(is6 ? AF_INET6 : AF_INET, ip.addr, theirs, sizeof theirs));
    struct hk_ip again;
    assert_true(hk_ip_parse(hk_str_of(ours), &again));
    assert_memory_equal(again.addr, ip.addr, 16);
    if (!(is6 && memcmp(ip.addr, "\0\0\0\0\0\0\0\0\0\0\0\0", 12) == 0)) /* libc writes ::1.2.3.4 */
        assert_string_equal(ours, theirs);
}

static void addresses_are_read_as_libc_does(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        ".",
                                        "1",
                                        "1.2.3",
                                        "1.2.3.4.5",
                                        "01.2.3.4",
                                        "1.2.3.04",
                                        "1.2.3.256",
                                        "1.2.3.-1",
                                        "1.2.3.4 ",
                                        " 1.2.3.4",
                                        "1..2.3",
                                        "1.2.3.",
                                        ".1.2.3.4",
                                        "0x1.2.3.4",
                                        "1.2.3.4/8",
                                        "256.1.1.1",
                                        "1000.1.1.1",
                                        "00.0.0.0",
                                        ":",
                                        "::",
                                        ":::",
                                        "1::",
                                        "::1",
                                        "1::2::3",
                                        "1:2:3:4:5:6:7:8",
                                        "1:2:3:4:5:6:7",
                                        "1:2:3:4:5:6:7:8:9",
                                        "1:2:3:4:5:6:7::",
                                        "::2:3:4:5:6:7:8",
                                        "1::3:4:5:6:7:8",
                                        "1:2:3:4:5:6:7:8::",
                                        "::1:2:3:4:5:6:7:8",
                                        "12345::",
                                        "g::",
                                        "1:",
                                        ":1",
                                        "1:2:3:4:5:6:1.2.3.4",
                                        "1:2:3:4:5:6:7:1.2.3.4",
                                        "1:2:3:4:5:1.2.3.4",
                                        "::1.2.3.4",
                                        "1.2.3.4::",
                                        "::1.2.3.4:5",
                                        "::1.2.3",
                                        "::01.2.3.4",
                                        "::ffff:1.2.3.4",
                                        "fe80::1%eth0",
                                        "[::1]",
                                        "::1 ",
                                        "1:2:3:4::5:6:7:8",
                                        "1:0:0:2:0:0:0:3",
                                        "0:0:1:0:0:0:0:0",
                                        "1:0:2:0:3:0:4:0",
                                        "ABCD:EF01::",
                                        "0:0:0:0:0:0:0:0",
                                        "::1.2.3.4.5",
                                        "1::1.2.3.4",
                                        "::ffff:1.2.3.4.",
                                        "1:2:3:4:5:6::1.2.3.4",
                                        "1:2:3:4:5::1.2.3.4"};
    for (size_t i = 0; i < COUNT(texts); i++)
        check_against_libc(texts[i]);
    for (size_t i = 0; i < COUNT(known); i++)
        check_against_libc(known[i].ip);
}

static void ranges_are_read_strictly(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        int bits; /* -1 = refused */
    } cases[] = {
        {"10.0.0.0/8", 8},      {"10.0.0.0/08", -1}, {"10.0.0.1/8", -1},  {"10.0.0.1", 32},
        {"0.0.0.0/0", 0},       {"1.2.3.4/32", 32},  {"1.2.3.4/33", -1},  {"1.2.3.4/", -1},
        {"1.2.3.4/-1", -1},     {"1.2.3.4/8/8", -1}, {"/8", -1},          {"", -1},
        {"10/8", -1},           {"10.0.0.0/8 ", -1}, {"::/0", 0},         {"::1", 128},
        {"fd00::/8", 8},        {"fd00::/129", -1},  {"fd00::/0128", -1}, {"::ffff:10.0.0.0/104", -1},
        {"::ffff:1.2.3.4", -1}, {"::/96", 96},       {"127.0.0.0/9", 9},  {"127.128.0.0/9", 9},
        {"127.64.0.0/9", -1},   {"fe80::/10", 10},   {"fe80::1/10", -1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_cidr cidr = {.bits = 77};
        struct hk_err err = {.code = HK_OK};
        enum hk_code rc = hk_cidr_parse(hk_str_of(cases[i].text), &cidr, &err);
        NOTE_IF(rc != (cases[i].bits < 0 ? HK_INVALID : HK_OK), "%s\n", cases[i].text);
        assert_int_equal(rc, cases[i].bits < 0 ? HK_INVALID : HK_OK);
        assert_int_equal(cidr.bits, cases[i].bits < 0 ? 77 : cases[i].bits);
        assert_int_equal(err.message[0] != '\0', cases[i].bits < 0);
    }
}

static void ranges_hold_what_they_should(void **state)
{
    (void)state;

    static const struct {
        const char *range, *ip;
        bool in;
    } cases[] = {{"10.0.0.0/8", "10.1.2.3", true},
                 {"10.0.0.0/8", "11.0.0.0", false},
                 {"0.0.0.0/0", "1.2.3.4", true},
                 {"0.0.0.0/0", "::1", false},
                 {"::/0", "1.2.3.4", false},
                 {"::/0", "::1", true},
                 {"127.0.0.0/8", "::ffff:127.0.0.1", true},
                 {"127.0.0.1", "::ffff:127.0.0.1", true},
                 {"127.0.0.1", "127.0.0.2", false},
                 {"::/0", "::ffff:127.0.0.1", true},
                 {"127.0.0.0/9", "127.127.255.255", true},
                 {"127.0.0.0/9", "127.128.0.0", false},
                 {"fe80::/10", "febf::1", true},
                 {"fe80::/10", "fec0::1", false},
                 {"::1", "::1", true},
                 {"::1", "::2", false},
                 {"127.0.0.0/8", "::127.0.0.1", false},
                 {"2001:db8::/33", "2001:db8:8000::", false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_cidr cidr;
        struct hk_ip ip;
        assert_int_equal(hk_cidr_parse(hk_str_of(cases[i].range), &cidr, NULL), HK_OK);
        assert_true(hk_ip_parse(hk_str_of(cases[i].ip), &ip));
        NOTE_IF(hk_cidr_has(&cidr, &ip) != cases[i].in, "%s in %s\n", cases[i].ip, cases[i].range);
        assert_int_equal(hk_cidr_has(&cidr, &ip), cases[i].in);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_address_is_known_for_what_it_is),
        cmocka_unit_test(addresses_are_read_as_libc_does),
        cmocka_unit_test(ranges_are_read_strictly),
        cmocka_unit_test(ranges_hold_what_they_should),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
