/* SPDX-License-Identifier: Apache-2.0 */
/* Where to listen, as configured or given: what the configuration takes, the admin server takes, as the same address that libc reads in it; a door for this machine
 * alone is one. And what a service manager put into the environment. Two texts with a zero byte between. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "admin/listen.c"
#include "config/text.h"
#include "daemon/service.h"
#include "fuzz.h"

/* "host:port" and "[host]:port" by libc, of an address that stands there as such. */
static void check_address(const char *where, const union address *at, socklen_t len)
{
    char host[512], *end = NULL;
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM},
                    *list = NULL;
    (void)hk_str_copy(host, sizeof host, hk_str_of(where[0] == '[' ? where + 1 : where));
    end = where[0] == '[' ? strchr(host, ']') : strchr(host, ':');
    MUST(end != NULL);
    *end = '\0';
    char *port = end + 1 + (where[0] == '[');
    if (strcasecmp(host, "localhost") == 0)
        memcpy(host, "127.0.0.1", sizeof "127.0.0.1");
    MUST(getaddrinfo(host, port, &hints, &list) == 0 && list != NULL);
    MUST(list->ai_addrlen == len && memcmp(list->ai_addr, at, len) == 0);
    freeaddrinfo(list);
}

static void check_listen(struct hk_str text)
{
    char where[301], why[HK_WHY_MAX];
    union address at;
    socklen_t len = 0;
    if (!hk_str_copy(where, sizeof where, text) || text.len == 0)
        return;
    bool taken = hk_text_check_listen(text, why), parsed = parse(where, &at, &len);
    if (strcmp(where, "none") == 0) {
        MUST(taken && !parsed);
        return;
    }
    if (!taken)
        return;
    MUST(parsed);
    check_address(where, &at, len);
    if (!hk_text_listen_is_local(text))
        return;
    static const unsigned char one[16] = {[15] = 1};
    if (at.any.sa_family == AF_INET)
        MUST(ntohl(at.v4.sin_addr.s_addr) >> 24 == 127);
    else
        MUST(memcmp(&at.v6.sin6_addr, one, 16) == 0 ||
             (IN6_IS_ADDR_V4MAPPED(&at.v6.sin6_addr) && at.v6.sin6_addr.s6_addr[12] == 127));
}

static void check_service(const char *first, const char *second)
{
    struct hk_service service = {.fd = -1};
    struct hk_err err = {.message = ""};
    if (first[0] != '/') { /* a socket of this machine may be there */
        enum hk_code rc = hk_service_open(&service, first[0] == '@' ? "@" : first, &err);
        MUST(first[0] == '\0' ? rc == HK_OK && service.fd == -1 : rc == HK_INVALID && err.message[0] != '\0');
    }
    int64_t pid = 42;
    uint64_t ms = hk_service_watchdog_ms(first, second, 42);
    MUST(ms <= UINT64_MAX / 1000);
    if (ms > 0)
        MUST(second[0] == '\0' || (hk_parse_i64(hk_str_of(second), &pid, NULL) == HK_OK && pid == 42));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_str rest = {(const char *)data, size};
    char first[301], second[301];
    if (size > 600)
        return 0;
    check_listen(rest);
    struct hk_str text = hk_str_cut(&rest, '\0');
    (void)hk_str_copy(first, sizeof first, text);
    (void)hk_str_copy(second, sizeof second, rest);
    check_service(first, second);
    return 0;
}
