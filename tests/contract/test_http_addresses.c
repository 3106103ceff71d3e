/* SPDX-License-Identifier: Apache-2.0 */
/* Server-side request forgery, in every spelling that we know of an address: none of them reaches a listener unless
 * `allow` lists it. The test has a network of its own in which every address there is leads to that listener, so that
 * "it was not reached" is seen and not concluded; where such a network cannot be had, loopback has to do. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fixture.h"

/* ---- a network in which all roads lead to us ---- */

static bool everywhere; /* it could be made */

static bool write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return ok;
}

static bool leave_the_network(void)
{
    char map[32];
    if (geteuid() == 0)
        return unshare(CLONE_NEWNET) == 0;
    (void)snprintf(map, sizeof map, "0 %d 1", (int)geteuid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write_file("/proc/self/setgroups", "deny") &&
           write_file("/proc/self/uid_map", map);
}

static bool run(const char *command)
{
    return system(command) == 0; /* NOLINT: a test */
}

/* Before any thread is made: a namespace is a thread's. */
static void make_network(void)
{
    if (!leave_the_network())
        return;
    everywhere = run("PATH=$PATH:/usr/sbin:/sbin; ip link set lo up 2>/dev/null") &&
                 run("PATH=$PATH:/usr/sbin:/sbin; ip route add local 0.0.0.0/0 dev lo 2>/dev/null") &&
                 run("PATH=$PATH:/usr/sbin:/sbin; ip -6 route add local ::/0 dev lo 2>/dev/null");
}

static struct server *listen_everywhere(void)
{
    struct server *server = everywhere ? server_start_at("::", polite, NULL) : NULL;
    return server ? server : server_start(polite, NULL);
}

/* ---- the table ---- */

/* Hosts of special addresses, or what libraries elsewhere take for one. Each is tried as http and https, on port and
 * path of the listener. */
static const char *const hosts[] = {
    /* loopback: dotted, short, decimal, octal, hex, mixed, padded */
    "127.0.0.1",
    "127.0.0.2",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "127.65530",
    "127.0.65530",
    "2130706433",
    "0x7f000001",
    "0X7F000001",
    "0x7F.0x0.0x0.0x1",
    "0x7f.0.0.1",
    "0x7f.1",
    "0x7f.0x1",
    "127.0x1",
    "017700000001",
    "0017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "0177.0.0x1",
    "00177.00.00.01",
    "0000000177.0.0.1",
    "0177.1",
    "127.00.00.01",
    "127.000.000.001",
    "0x000000007f.1",
    "0x00000000000000007f000001",
    "127.0.0.1.",
    "127.1.",
    "2130706433.",
    "0x7f000001.",
    /* what wraps around 2^32 in careless parsers */
    "6425673729",
    "0x17f000001",
    "4294967296",
    "0x100000000",
    "256.256.256.256",
    "383.0.0.1",
    "127.0.0.257",
    "127.0.0.0.1",
    "127..1",
    ".127.0.0.1",
    "127.0.0.1..",
    "-1",
    "127.0.0.-1",
    "127.0.0.1e0",
    "1.27e2.0.1",
    /* this network */
    "0",
    "00",
    "0x0",
    "0x",
    "0.0",
    "0.0.0.0",
    "0.0.0.1",
    "000.000.000.000",
    "0.",
    /* names that everybody has */
    "localhost",
    "LOCALHOST",
    "LocalHost.",
    "localhost.localdomain",
    "foo.localhost",
    "a.b.localhost",
    "foo.localhost.",
    "ip6-localhost",
    "ip6-loopback",
    "local",
    "metadata",
    "metadata.google.internal",
    "instance-data",
    /* private, in the same manners */
    "10.0.0.0",
    "10.0.0.1",
    "10.1",
    "0xa000001",
    "0x0a.1",
    "012.0.0.1",
    "167772161",
    "10.255.255.255",
    "172.16.0.0",
    "172.16.0.1",
    "172.16.1",
    "0xac.0x10.0.1",
    "2886729729",
    "172.31.255.255",
    "192.168.0.0",
    "192.168.0.1",
    "192.168.1",
    "192.168.65535",
    "3232235521",
    "0xc0a80001",
    "0300.0250.0.1",
    "192.168.255.255",
    /* link-local and the clouds' metadata */
    "169.254.0.1",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0xa9.0xfe.0xa9.0xfe",
    "0251.0376.0251.0376",
    "0251.254.169.254",
    "169.254.43518",
    "169.16689662",
    "025177524776",
    "169.254.169.254.",
    "169.254.169.253",
    "169.254.170.2",
    "169.254.255.255",
    "100.64.0.0",
    "100.100.100.200",
    "100.127.255.255",
    "1684301000",
    "168.63.129.16",
    "2822734096",
    "192.0.0.1",
    "192.0.0.192",
    /* the rest of the registry */
    "192.0.2.1",
    "192.88.99.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.254",
    "255.255.255.255",
    "4294967295",
    "0xffffffff",
    "037777777777",
    "255.16777215",
    /* IPv6 */
    "[::1]",
    "[::01]",
    "[::0001]",
    "[0::1]",
    "[0:0::1]",
    "[::0:1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[0:0:0:0:0:0:0.0.0.1]",
    "[::0.0.0.1]",
    "[::]",
    "[::0]",
    "[0::0]",
    "[0:0:0:0:0:0:0:0]",
    "[::0.0.0.0]",
    "[::1.]",
    /* mapped, compatible, translated, embedded */
    "[::ffff:127.0.0.1]",
    "[::FFFF:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:7f00:0001]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[::ffff:0.0.0.0]",
    "[::ffff:a9fe:a9fe]",
    "[::ffff:169.254.169.254]",
    "[::ffff:10.0.0.1]",
    "[::ffff:172.16.0.1]",
    "[::ffff:192.168.0.1]",
    "[::ffff:c0a8:1]",
    "[::ffff:100.100.100.200]",
    "[::ffff:168.63.129.16]",
    "[::ffff:255.255.255.255]",
    "[::ffff:0x7f.1]",
    "[::ffff:0177.0.0.1]",
    "[::ffff:127.1]",
    "[::ffff:2130706433]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::169.254.169.254]",
    "[::a9fe:a9fe]",
    "[::ffff:0:127.0.0.1]",
    "[::ffff:0:7f00:1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b::8.8.8.8]",
    "[0064:FF9B:0:0:0:0:7f00:0001]",
    "[64:ff9b:1::1]",
    "[64:ff9b:1:7f00:0:100::]",
    "[2002:7f00:1::]",
    "[2002:7f00:1::1]",
    "[2002:a9fe:a9fe::]",
    "[2002:c0a8:1::1]",
    "[2002:808:808::1]",
    "[2001::1]",
    "[2001:0:7f00:1:0:0:80ff:fffe]",
    "[2001:0000:4136:e378:8000:63bf:3fff:fdd2]",
    "[2001:0::ffff:56fe:5601]",
    "[fe80::5efe:127.0.0.1]",
    "[fe80::5efe:7f00:1]",
    "[fe80::200:5efe:169.254.169.254]",
    "[fc00::5efe:10.0.0.1]",
    /* other special ranges */
    "[fc00::1]",
    "[fd00::1]",
    "[fd00:ec2::254]",
    "[FD00:EC2:0:0:0:0:0:254]",
    "[fd20:ce::254]",
    "[fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]",
    "[fe80::1]",
    "[fe80::a9fe:a9fe]",
    "[febf::1]",
    "[fec0::1]",
    "[feff::1]",
    "[ff01::1]",
    "[ff02::1]",
    "[ff0e::1]",
    "[100::1]",
    "[100:0:0:1::1]",
    "[2001:2::1]",
    "[2001:10::1]",
    "[2001:20::1]",
    "[2001:30::1]",
    "[2001:1ff::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[5f00::1]",
    "[4000::1]",
    "[1::1]",
    "[8000::1]",
    "[f000::1]",
    /* zones */
    "[::1%25lo]",
    "[::1%lo]",
    "[::1%251]",
    "[fe80::1%25lo]",
    "[fe80::1%25eth0]",
    "[fe80::1%lo]",
    "[fe80::1%251]",
    "[::ffff:127.0.0.1%25lo]",
    /* written as IPv6 is not, or is only elsewhere */
    "::1",
    "[::1",
    "::1]",
    "[[::1]]",
    "[:1]",
    "[1:]",
    "[:::1]",
    "[::1::]",
    "[0:0:0:0:0:0:0:0:1]",
    "[127.0.0.1]",
    "[localhost]",
    "[::1/128]",
    "[v1.127.0.0.1]",
    "[::%31]",
    /* percent-encoding, of digits, dots, and twice */
    "%31%32%37.0.0.1",
    "127%2e0%2e0%2e1",
    "127%2E0%2E0%2E1",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "loc%61lhost",
    "%30x7f000001",
    "169%2e254.169%2e254",
    "%2531%32%37.0.0.1",
    "127.0.0.1%00.example.com",
    "127.0.0.1%20",
    "127.0.0.1%09",
    "127.0.0.1%0d%0aHost:%20x",
    "127.0.0.1%2f.example.com",
    "127.0.0.1%23.example.com",
    "127.0.0.1%3f.example.com",
    "127.0.0.1%40example.com",
    /* digits and dots of other scripts: UTF-8 */
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1",                   /* full-width 127 */
    "\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97\xef\xbc\x8e\xef\xbc\x91", /* and dot */
    "127\xe3\x80\x82\x30\xe3\x80\x82\x30\xe3\x80\x82\x31",          /* ideographic full stops */
    "127\xef\xbc\x8e\x30\xef\xbc\x8e\x30\xef\xbc\x8e\x31",          /* full-width full stops */
    "127\xef\xbd\xa1\x30\xef\xbd\xa1\x30\xef\xbd\xa1\x31",          /* half-width ideographic ones */
    "\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.\xe2\x93\xaa.\xe2\x93\xaa.\xe2\x91\xa0", /* circled digits */
    "\xc2\xb9\xc2\xb2\x37.0.0.1",                                                  /* superscripts */
    "\xd9\xa1\xd9\xa2\xd9\xa7.0.0.1",                                              /* Arabic-Indic */
    "\xe2\x93\x9b\xe2\x93\x9e\xe2\x93\x92\xe2\x93\x90\xe2\x93\x9b\xe2\x93\x97\xe2\x93\x9e\xe2\x93\xa2\xe2\x93\xa3",
    "\xef\xbd\x8c\xef\xbd\x8f\xef\xbd\x83\xef\xbd\x81\xef\xbd\x8c\xef\xbd\x88\xef\xbd\x8f\xef\xbd\x93\xef\xbd\x94",
    "loc\xc3\xa1lhost",
    "localho\xc5\xbft",                                       /* long s */
    "\xf0\x9d\x9f\x8f\xf0\x9d\x9f\x90\xf0\x9d\x9f\x95.0.0.1", /* mathematical bold */
    "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
    "127.0.0.1\xe2\x80\x8b", /* zero width space */
    "127.0.0.1\xc2\xa0",
    "127.0.0.1\xff",
    "xn--127-.0.0.1",
};

/* Whole URLs; PORT is the listener's port. The policy must hold for whatever host is seen in them. */
static const char *const urls[] = {
    "http://user@127.0.0.1:PORT/",
    "http://user:password@127.0.0.1:PORT/",
    "http://@127.0.0.1:PORT/",
    "http://:@127.0.0.1:PORT/",
    "http://example.com@127.0.0.1:PORT/",
    "http://example.com:80@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT@example.com/",
    "http://a@b@127.0.0.1:PORT/",
    "http://example.com%40127.0.0.1:PORT/",
    "http://example.com#@127.0.0.1:PORT/",
    "http://example.com?@127.0.0.1:PORT/",
    "http://example.com/@127.0.0.1:PORT/",
    "http://example.com\\@127.0.0.1:PORT/",
    "http://127.0.0.1:PORT\\@example.com/",
    "http://127.0.0.1:PORT#@example.com/",
    "http:\\\\127.0.0.1:PORT\\",
    "http:/127.0.0.1:PORT/",
    "http:127.0.0.1:PORT/",
    "http:///127.0.0.1:PORT/",
    "http:////127.0.0.1:PORT/",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT",
    "127.0.0.1:PORT/",
    "localhost:PORT",
    "HTTP://127.0.0.1:PORT/",
    "hTTp://LOCALHOST:PORT/",
    "http://127.0.0.1:0PORT/",
    "http://127.0.0.1:+PORT/",
    "http://127.0.0.1: PORT/",
    "http://127.0.0.1:PORT:80/",
    "http://127.0.0.1:80:PORT/",
    "http://127.0.0.1\t:PORT/",
    "http://127.0.\t0.1:PORT/",
    "http://\t127.0.0.1:PORT/",
    "\thttp://127.0.0.1:PORT/",
    " http://127.0.0.1:PORT/",
    "http://127.0.0.1:PORT/ ",
    "http:// 127.0.0.1:PORT/",
    "http://127.0.0.1 :PORT/",
    "http://127.0.0.1 example.com:PORT/",
    "http://127.0.0.1\n:PORT/",
    "http://127.0.0.1\r\n:PORT/",
    "ht\ntp://127.0.0.1:PORT/",
    "http://127.0.0.1;example.com:PORT/",
    "http://127.0.0.1,example.com:PORT/",
    "http://127.0.0.1&example.com:PORT/",
    "http://127.0.0.1!:PORT/",
    "http://(127.0.0.1):PORT/",
    "http://{127.0.0.1}:PORT/",
    "http://<127.0.0.1>:PORT/",
    "http://\"127.0.0.1\":PORT/",
    "http://127.0.0.1'PORT/",
    "http://127.0.0.1|:PORT/",
    "http://[::1]x:PORT/",
    "http://x[::1]:PORT/",
    "http://[::1]@127.0.0.1:PORT/",
    "http://[::ffff:127.0.0.1]@example.com:PORT/",
    "http://[::1]:PORT@example.com/",
    "http://[::1%25lo%00]:PORT/",
    "file://127.0.0.1:PORT/etc/passwd",
    "file:///etc/passwd?PORT",
    "gopher://127.0.0.1:PORT/_x",
    "dict://127.0.0.1:PORT/x",
    "ftp://127.0.0.1:PORT/",
    "tftp://127.0.0.1:PORT/x",
    "ldap://127.0.0.1:PORT/",
    "smtp://127.0.0.1:PORT/",
    "telnet://127.0.0.1:PORT/",
    "ws://127.0.0.1:PORT/",
    "unix://127.0.0.1:PORT/",
    "http+unix://127.0.0.1:PORT/",
    "httpx://127.0.0.1:PORT/",
    "jar:http://127.0.0.1:PORT/!/",
    "url:http://127.0.0.1:PORT/",
    "javascript:http://127.0.0.1:PORT/",
};

/* ---- asking for it ---- */

#define TRIES_MAX 1000

struct
try {
    char url[256];
    struct hk_sink *sink; /* NULL: refused when it was configured */
    struct outcome got;
};

struct tries {
    struct client client; /* one loop for all */
    struct try *all;
    size_t n;
    struct server *server;
};

static void open_tries(struct tries *t)
{
    struct hk_http_options options = {.name = "x", .url = "http://192.0.2.1/"};
    *t = (struct tries){.all = calloc(TRIES_MAX, sizeof *t->all), .server = listen_everywhere()};
    assert_non_null(t->all);
    client_open_http(&t->client, &options);
}

static void close_tries(struct tries *t)
{
    for (size_t i = 0; i < t->n; i++) {
        if (t->all[i].sink)
            t->all[i].sink->ops->close(t->all[i].sink);
    }
    client_close(&t->client);
    server_stop(t->server);
    free(t->all);
}

static void add_try(struct tries *t, const char *url, const struct hk_cidr *allow, size_t n_allow)
{
    assert_true(t->n < TRIES_MAX);
    struct try *one = &t->all[t->n++];
    struct hk_http_options options = {.name = "x",
                                      .url = one->url,
                                      .allow = allow,
                                      .n_allow = n_allow,
                                      .libcurl = by_libcurl,
                                      .version = by_h2 ? 2 : 0};
    (void)snprintf(one->url, sizeof one->url, "%s", url);
    if (hk_http_open(t->client.loop, &options, &one->sink, NULL) != HK_OK)
        one->sink = NULL;
}

static void add_hosts(struct tries *t, const char *scheme, const struct hk_cidr *allow, size_t n_allow)
{
    char url[256];
    for (size_t i = 0; i < COUNT(hosts); i++) {
        (void)snprintf(url, sizeof url, "%s://%s:%d/", scheme, hosts[i], server_port(t->server));
        add_try(t, url, allow, n_allow);
    }
}

static void run_tries(struct tries *t)
{
    struct hk_sink *own = t->client.sink;
    struct hk_message msg = *short_message();
    for (size_t i = 0; i < t->n; i++) {
        t->client.sink = t->all[i].sink;
        if (t->all[i].sink)
            client_send(&t->client, &msg, 20000, &t->all[i].got);
    }
    t->client.sink = own;
    client_wait(&t->client);
}

/* Connections are accepted in the order in which they came: behind this one there is none that was not counted. */
static unsigned connections_in_all(struct tries *t)
{
    struct try *last = &t->all[t->n];
    char url[64];
    struct hk_sink *own = t->client.sink;
    url_of(url, t->server, "http", "127.0.0.1");
    add_try(t, url, loopback_allowed, 2);
    assert_non_null(last->sink);
    t->client.sink = last->sink;
    client_deliver(&t->client, short_message(), 5000, &last->got);
    t->client.sink = own;
    assert_int_equal(last->got.status, 200);
    return server_connections(t->server);
}

/* Blocked when it is connected, or a name that leads nowhere; nothing else. */
static bool is_held(const struct outcome *got)
{
    return (got->fault == HK_FAULT_BLOCKED || got->fault == HK_FAULT_DNS) && got->status == 0 &&
           !got->possibly_delivered && got->address[0] == '\0';
}

static void no_spelling_reaches_a_special_address(void **state)
{
    (void)state;
    if (!everywhere)
        skip();
    struct tries t;
    size_t refused = 0, blocked = 0, wrong = 0;
    assert_true(COUNT(hosts) + COUNT(urls) >= 200);
    open_tries(&t);
    add_hosts(&t, "http", NULL, 0);
    add_hosts(&t, "https", NULL, 0);
    for (size_t i = 0; i < COUNT(urls); i++) {
        const char *port = strstr(urls[i], "PORT");
        char url[256];
        assert_non_null(port);
        (void)snprintf(url, sizeof url, "%.*s%d%s", (int)(port - urls[i]), urls[i], server_port(t.server),
                       port + 4);
        add_try(&t, url, NULL, 0);
    }
    run_tries(&t);
    for (size_t i = 0; i < t.n; i++) {
        const struct try *one = &t.all[i];
        bool good = !one->sink || is_held(&one->got);
        refused += !one->sink;
        blocked += one->sink && one->got.fault == HK_FAULT_BLOCKED;
        wrong += !good;
        NOTE_IF(!good, "%s: fault %s, status %d, at \"%s\", error \"%s\"\n", one->url,
                hk_fault_name(one->got.fault), one->got.status, one->got.address, one->got.error);
    }
    size_t n = t.n;
    print_message("# %zu forms: %zu refused as they were configured, %zu blocked, %zu lead nowhere\n", n,
                  refused, blocked, n - refused - blocked);
    assert_int_equal(wrong, 0);
    assert_true(blocked >= 350);
    assert_int_equal(connections_in_all(&t), 1);
    close_tries(&t);
}

/* Without which the test above would prove nothing: the same spellings, with everything allowed. */
static void the_same_spellings_reach_it_when_all_is_allowed(void **state)
{
    (void)state;
    static const struct hk_cidr all[] = {{{0}, 0, false}, {{0}, 0, true}};
    if (!everywhere)
        skip();
    struct tries t;
    unsigned reached = 0,
             by_name = 0; /* a name has two addresses: the second is tried as well when the first is slow */
    open_tries(&t);
    add_hosts(&t, "http", all, COUNT(all));
    run_tries(&t);
    for (size_t i = 0; i < t.n; i++) {
        bool here = t.all[i].sink && t.all[i].got.status == 200;
        reached += here;
        by_name += here && strcasestr(t.all[i].url, "local");
    }
    print_message("# %u of %zu hosts reach the listener when they may\n", reached, COUNT(hosts));
    assert_true(reached >= 150);
    assert_in_range(connections_in_all(&t), reached + 1, reached + 1 + by_name);
    close_tries(&t);
}

static void public_addresses_need_no_leave(void **state)
{
    (void)state;
    static const char *const good[] = {"93.184.216.34",    "1.1.1.1",           "0x08080808",
                                       "134744072",        "8.8.2056",          "010.8.8.8",
                                       "02130706433",      "[2606:4700::1111]", "[2a00:1450:4001:81b::200e]",
                                       "[::ffff:8.8.8.8]", "126.255.255.255",   "128.0.0.1",
                                       "11.0.0.1",         "172.15.255.255",    "172.32.0.1",
                                       "192.167.255.255",  "192.169.0.1",       "169.253.255.255",
                                       "169.255.0.1",      "100.63.255.255",    "100.128.0.1",
                                       "223.255.255.255"};
    if (!everywhere)
        skip();
    struct tries t;
    size_t wrong = 0;
    open_tries(&t);
    for (size_t i = 0; i < COUNT(good); i++) {
        char url[256];
        (void)snprintf(url, sizeof url, "http://%s:%d/", good[i], server_port(t.server));
        add_try(&t, url, NULL, 0);
    }
    run_tries(&t);
    for (size_t i = 0; i < t.n; i++) {
        bool reached = t.all[i].sink && t.all[i].got.status == 200;
        NOTE_IF(!reached, "%s: %s\n", t.all[i].url, t.all[i].got.error);
        wrong += !reached;
    }
    assert_int_equal(wrong, 0);
    close_tries(&t);
}

int main(int argc, char **argv)
{
    make_network();
    (void)setlocale(LC_ALL, "C.UTF-8"); /* names beyond ASCII are then converted, to what may be an address */
    if (!everywhere)
        (void)fprintf(stderr, "# no network namespace can be made here, or there is no ip(8)\n");
    choose_wire(argc, argv);
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_spelling_reaches_a_special_address),
        cmocka_unit_test(the_same_spellings_reach_it_when_all_is_allowed),
        cmocka_unit_test(public_addresses_need_no_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
