/* SPDX-License-Identifier: Apache-2.0 */
/* The address policy of a cluster. Brokers announce the addresses at which they are to be reached, so each connection is looked at
 * when it is made, on librdkafka's thread. */
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "sink/kafka/impl.h"

enum {
    KNOWN_MAX = 64,
    NAME_MAX_BYTES = 300,
    RECENT_MS = 5000, /* librdkafka tries again each second */
    ADDRESS_MAX = HK_IP_TEXT_MAX + 8
};

struct hk_kafka_guard {
    pthread_mutex_t lock;
    struct hk_cidr *allow;
    size_t n_allow;
    char blocked[HK_KAFKA_TEXT_MAX];
    int64_t blocked_ms;

    struct {
        char name[NAME_MAX_BYTES]; /* as librdkafka calls it */
        int32_t id;                /* -1: it has none yet */
        char address[ADDRESS_MAX];
    } known[KNOWN_MAX]; /* that had an address which may be used */

    size_t n_known;
};

struct hk_kafka_guard *hk_kafka_guard_new(const struct hk_cidr *allow, size_t n_allow)
{
    struct hk_kafka_guard *g = hk_mem_zalloc(1, sizeof *g);
    if (!g)
        return NULL;
    g->allow = hk_mem_zalloc(n_allow + 1, sizeof *g->allow);
    if (!g->allow) {
        hk_mem_free(g);
        return NULL;
    }
    if (n_allow)
        memcpy(g->allow, allow, n_allow * sizeof *allow);
    g->n_allow = n_allow;
    (void)pthread_mutex_init(&g->lock, NULL);
    return g;
}

void hk_kafka_guard_free(struct hk_kafka_guard *g)
{
    if (!g)
        return;
    (void)pthread_mutex_destroy(&g->lock);
    hk_mem_free(g->allow);
    hk_mem_free(g);
}

static unsigned port_of(const struct sockaddr *addr)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (addr->sa_family == AF_INET6) {
        memcpy(&v6, addr, sizeof v6);
        return ntohs(v6.sin6_port);
    }
    memcpy(&v4, addr, sizeof v4);
    return ntohs(v4.sin_port);
}

/* "sasl_ssl://k1:9092/3" is broker 3; "k1:9092/bootstrap" is none yet. */
static int32_t id_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    uint64_t id = 0;
    bool ok = slash && hk_parse_u64(hk_str_of(slash + 1), &id, NULL) == HK_OK && id <= INT32_MAX;
    return ok ? (int32_t)id : -1;
}

static size_t find_broker(const struct hk_kafka_guard *g, const char *name)
{
    size_t i = 0;
    while (i < g->n_known && strcmp(g->known[i].name, name) != 0)
        i++;
    return i;
}

static void note_allowed(struct hk_kafka_guard *g, const char *broker, const char *address)
{
    size_t i = find_broker(g, broker);
    if (i == KNOWN_MAX || !hk_str_copy(g->known[i].name, sizeof g->known[i].name, hk_str_of(broker)))
        return;
    g->n_known += i == g->n_known;
    g->known[i].id = id_of(broker);
    (void)hk_str_copy(g->known[i].address, sizeof g->known[i].address, hk_str_of(address));
}

static int64_t now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* One of a broker's several addresses may be blocked, and another one work: then its messages do not fail for this. */
static void note_blocked(struct hk_kafka_guard *g, const char *broker, const struct hk_ip *ip,
                         const char *address)
{
    const char *special = hk_ip_special(ip);
    if (find_broker(g, broker) < g->n_known)
        return;
    (void)snprintf(
        g->blocked, sizeof g->blocked,
        "broker %.200s is at %s, a %s address, which is blocked: list it in \"allow\" of the destination",
        broker, address, special ? special : "special");
    g->blocked_ms = now_ms();
}

int hk_kafka_guard_connect(int fd, const struct sockaddr *addr, int len, const char *broker, void *guard)
{
    struct hk_kafka_guard *g = guard;
    struct hk_address at;
    char ip[HK_IP_TEXT_MAX], address[ADDRESS_MAX];
    if (!hk_address_of(addr, (size_t)len, &at))
        return EAFNOSUPPORT;
    (void)hk_ip_format(&at.ip, ip);
    (void)snprintf(address, sizeof address, at.ip.v6 ? "[%s]:%u" : "%s:%u", ip, port_of(addr));
    bool allowed = hk_ip_allowed(&at.ip, g->allow, g->n_allow);
    (void)pthread_mutex_lock(&g->lock);
    if (allowed)
        note_allowed(g, broker, address);
    else
        note_blocked(g, broker, &at.ip, address);
    (void)pthread_mutex_unlock(&g->lock);
    if (!allowed)
        return EACCES;
    return connect(fd, addr, (socklen_t)len) == 0 || errno == EINPROGRESS ? 0 : errno;
}

bool hk_kafka_guard_blocked(struct hk_kafka_guard *g, char out[HK_KAFKA_TEXT_MAX])
{
    (void)pthread_mutex_lock(&g->lock);
    bool recent = g->blocked[0] && now_ms() - g->blocked_ms <= RECENT_MS;
    if (recent)
        memcpy(out, g->blocked, HK_KAFKA_TEXT_MAX);
    (void)pthread_mutex_unlock(&g->lock);
    return recent;
}

void hk_kafka_guard_address(struct hk_kafka_guard *g, int32_t broker, char *out, size_t room)
{
    out[0] = '\0';
    (void)pthread_mutex_lock(&g->lock);
    for (size_t i = 0; i < g->n_known; i++)
        if (g->known[i].id == broker ||
            g->n_known == 1) /* it keeps the connection that it was first asked by */
            (void)hk_str_copy(out, room, hk_str_of(g->known[i].address));
    (void)pthread_mutex_unlock(&g->lock);
}
