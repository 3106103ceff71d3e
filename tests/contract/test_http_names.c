/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP sink and names: slow ones, lying ones, and those that change their mind. The resolver is ours, put in front
 * of the system's, so that each name does what its test needs. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fixture.h"

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out);
void freeaddrinfo(struct addrinfo *list);

#define SLOW_MS 4000

static atomic_int asked, asking, most_asking;

static struct addrinfo *answer(const char *ip, const char *service, struct addrinfo *next)
{
    struct hk_ip parsed;
    assert_true(hk_ip_parse(hk_str_of(ip), &parsed) && !parsed.v6);

    struct {
        struct addrinfo info;
        struct sockaddr_in in;
    } *a = calloc(1, sizeof *a);

    assert_non_null(a);
    a->in.sin_family = AF_INET;
    uint64_t port = 0;
    for (const char *c = service; c && *c; c++)
        port = port * 10 + (uint64_t)(*c - '0');
    a->in.sin_port = htons((uint16_t)port);
    memcpy(&a->in.sin_addr, parsed.addr, 4);
    a->info = (struct addrinfo){.ai_family = AF_INET,
                                .ai_socktype = SOCK_STREAM,
                                .ai_protocol = IPPROTO_TCP,
                                .ai_addrlen = sizeof a->in,
                                .ai_addr = (struct sockaddr *)&a->in,
                                .ai_next = next};
    return &a->info;
}

void freeaddrinfo(struct addrinfo *list)
{
    while (list) {
        struct addrinfo *next = list->ai_next;
        free(list);
        list = next;
    }
}

static void be_slow(void)
{
    int now = atomic_fetch_add(&asking, 1) + 1;
    for (int most = atomic_load(&most_asking); now > most;) {
        if (atomic_compare_exchange_weak(&most_asking, &most, now))
            break;
    }
    nanosleep(&(struct timespec){.tv_sec = SLOW_MS / 1000, .tv_nsec = SLOW_MS % 1000 * 1000000}, NULL);
    atomic_fetch_sub(&asking, 1);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **out)
{
    (void)hints;
    int n = atomic_fetch_add(&asked, 1);
    struct hk_ip ip;
    if (strcmp(node, "slow.example") == 0 || strcmp(node, "slow-good.example") == 0)
        be_slow();
    if (strcmp(node, "good.example") == 0 || strcmp(node, "slow-good.example") == 0)
        *out = answer("127.0.0.1", service, NULL);
    else if (strcmp(node, "inside.example") == 0)
        *out = answer("10.1.2.3", service, NULL);
    else if (strcmp(node, "metadata.example") == 0)
        *out = answer("169.254.169.254", service, NULL);
    else if (strcmp(node, "mixed.example") == 0)
        *out = answer("10.1.2.3", service, answer("127.0.0.1", service, NULL));
    else if (strcmp(node, "all-bad.example") == 0)
        *out = answer("10.1.2.3", service, answer("192.168.1.1", service, answer("0.0.0.0", service, NULL)));
    else if (strcmp(node, "half.example") == 0)
        *out = answer("127.0.0.1", service, answer("127.0.0.2", service, answer("127.0.0.3", service, NULL)));
    else if (strcmp(node, "rebind.example") == 0)
        *out = answer(n % 2 ? "127.0.0.2" : "127.0.0.1", service, NULL);
    else if (hk_ip_parse(hk_str_of(node), &ip) && !ip.v6)
        *out = answer(node, service, NULL);
    else
        return strcmp(node, "slow.example") == 0 ? EAI_AGAIN : EAI_NONAME;
    return 0;
}

static void name_url(struct fixture *f, const char *host)
{
    (void)snprintf(f->url, sizeof f->url, "http://%s:%d/hook", host, server_port(f->server));
}

struct tick {
    struct hk_timer *timer;
    unsigned n;
};

static void count_tick(void *arg)
{
    struct tick *tick = arg;
    tick->n++;
    hk_timer_start(tick->timer, 10);
}

/* libcurl's own way out of a name that is being resolved is to wait for it, with the whole loop. */
static void a_slow_name_freezes_nothing_and_takes_few_threads(void **state)
{
    (void)state;

    enum {
        N = 30
    };
    struct fixture f;
    struct outcome got[N], other;
    struct tick tick = {NULL, 0};
    set_up(&f, polite, NULL, "127.0.0.1");
    name_url(&f, "slow.example");
    client_open_http(&f.client, &f.options);
    assert_int_equal(hk_timer_new(f.client.loop, count_tick, &tick, &tick.timer), HK_OK);
    hk_timer_start(tick.timer, 10);
    struct hk_message msg = *short_message();
    atomic_store(&most_asking, 0);
    for (int i = 0; i < N; i++)
        client_send(&f.client, &msg, 400, &got[i]);
    client_wait(&f.client);
    for (int i = 0; i < N; i++) {
        assert_int_equal(got[i].fault, HK_FAULT_TIMEOUT);
        assert_true(got[i].duration_ms >= 400 && got[i].duration_ms < SLOW_MS);
        assert_false(got[i].possibly_delivered);
        assert_string_equal(got[i].address, "");
    }
    NOTE_IF(tick.n < 10, "only %u ticks\n", tick.n);
    assert_true(tick.n >= 10); /* 40 were possible */
    assert_in_range(atomic_load(&most_asking), 1, 4);
    f.options.connect_timeout_ms = 200; /* a deadline of its own */
    struct client second;
    client_open_http(&second, &f.options);
    client_deliver(&second, &msg, 20000, &other);
    assert_int_equal(other.fault, HK_FAULT_TIMEOUT);
    assert_non_null(strstr(other.error, "resolving"));
    client_close(&second);
    hk_timer_free(tick.timer);
    tear_down(&f);
    while (atomic_load(&asking) > 0) /* their threads are still at it, and must find nothing gone */
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL);
}

static void a_slow_name_that_resolves_serves_all_who_waited(void **state)
{
    (void)state;

    enum {
        N = 30
    };
    struct fixture f;
    struct outcome got[N];
    set_up(&f, polite, NULL, "127.0.0.1");
    name_url(&f, "slow-good.example");
    client_open_http(&f.client, &f.options);
    struct hk_message msg = *short_message();
    atomic_store(&most_asking, 0);
    for (int i = 0; i < N; i++)
        client_send(&f.client, &msg, 60000, &got[i]);
    client_wait(&f.client);
    for (int i = 0; i < N; i++)
        assert_int_equal(got[i].status, 200);
    assert_in_range(atomic_load(&most_asking), 1, 4);
    tear_down(&f);
}

static void what_a_name_leads_to_is_what_counts(void **state)
{
    (void)state;

    static const struct {
        const char *host;
        enum hk_fault fault;
        int status;
    } cases[] = {
        {"good.example", HK_FAULT_NONE, 200},      {"inside.example", HK_FAULT_BLOCKED, 0},
        {"metadata.example", HK_FAULT_BLOCKED, 0}, {"all-bad.example", HK_FAULT_BLOCKED, 0},
        {"mixed.example", HK_FAULT_NONE, 200}, /* the allowed one is used, the other never */
        {"no-such-name.example", HK_FAULT_DNS, 0},
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, polite, NULL, "127.0.0.1");
        name_url(&f, cases[i].host);
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        NOTE_IF(got.fault != cases[i].fault, "%s: %s\n", cases[i].host, got.error);
        assert_int_equal(got.fault, cases[i].fault);
        assert_int_equal(got.status, cases[i].status);
        tear_down(&f);
    }
}

/* The name that was checked and the name that is connected to are the same lookup: there is nothing to rebind. */
static void a_name_that_changes_its_mind_gains_nothing(void **state)
{
    (void)state;
    static const struct hk_cidr one = {{127, 0, 0, 1}, 32, false};
    unsigned blocked = 0, sent = 0;
    for (int i = 0; i < 6; i++) {
        struct fixture f;
        struct outcome got;
        set_up(&f, polite, NULL, "127.0.0.1");
        name_url(&f, "rebind.example");
        f.options.allow = &one;
        f.options.n_allow = 1;
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 5000, &got);
        sent += got.status == 200 && strncmp(got.address, "127.0.0.1:", 10) == 0;
        blocked += got.fault == HK_FAULT_BLOCKED;
        tear_down(&f);
    }
    assert_int_equal(sent + blocked, 6);
    assert_true(blocked >= 1 && sent >= 1);
}

/* libcurl closes a socket that failed to connect by itself, and the next one gets the same number. */
static void the_next_address_is_tried_when_one_refuses(void **state)
{
    (void)state;
    for (int i = 0; i < 10; i++) {
        struct fixture f;
        struct outcome got;
        f.server = server_start_at("127.0.0.3", polite, NULL);
        if (!f.server)
            skip();
        f.options = options_for(f.url);
        name_url(&f, "half.example");
        client_open_http(&f.client, &f.options);
        client_deliver(&f.client, short_message(), 8000, &got);
        NOTE_IF(got.status != 200, "%s\n", got.error);
        assert_int_equal(got.status, 200);
        assert_true(got.duration_ms < 5000);
        tear_down(&f);
    }
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    (void)signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_name_freezes_nothing_and_takes_few_threads),
        cmocka_unit_test(a_slow_name_that_resolves_serves_all_who_waited),
        cmocka_unit_test(what_a_name_leads_to_is_what_counts),
        cmocka_unit_test(a_name_that_changes_its_mind_gains_nothing),
        cmocka_unit_test(the_next_address_is_tried_when_one_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
