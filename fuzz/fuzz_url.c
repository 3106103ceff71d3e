/* SPDX-License-Identifier: Apache-2.0 */
/* A webhook's URL: what the sink takes is what libcurl's own reading of it says is http or https with a host, without user and fragment, and
 * nothing in it can begin another header. Where the host is an address in any of the spellings that libc knows, the verdict on it is
 * that of a second table of address ranges, written with libc's macros. */
#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <curl/curl.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/http.h"

/* What must never be reached without leave, whatever else is special. */
static bool is_inner_v4(uint32_t a)
{
    return a >> 24 == 127 || a >> 24 == 10 || a >> 20 == 0xac1 || a >> 16 == 0xc0a8 || a >> 16 == 0xa9fe ||
           a >> 24 == 0 || a >> 28 >= 14 || (a >> 22) == (0x64400000u >> 22);
}

static bool is_inner_v6(const struct in6_addr *a)
{
    uint32_t last;
    memcpy(&last, a->s6_addr + 12, sizeof last);
    if (IN6_IS_ADDR_V4MAPPED(a))
        return is_inner_v4(ntohl(last));
    return IN6_IS_ADDR_LOOPBACK(a) || IN6_IS_ADDR_UNSPECIFIED(a) || IN6_IS_ADDR_LINKLOCAL(a) ||
           IN6_IS_ADDR_MULTICAST(a) || IN6_IS_ADDR_SITELOCAL(a) || (a->s6_addr[0] & 0xfe) == 0xfc;
}

static void check_address(const struct sockaddr *sa)
{
    struct hk_ip ip = {.v6 = sa->sa_family == AF_INET6};
    bool inner;
    if (ip.v6) {
        const struct sockaddr_in6 *in6 = (const void *)sa;
        memcpy(ip.addr, &in6->sin6_addr, 16);
        inner = is_inner_v6(&in6->sin6_addr);
    } else {
        const struct sockaddr_in *in = (const void *)sa;
        memcpy(ip.addr, &in->sin_addr, 4);
        inner = is_inner_v4(ntohl(in->sin_addr.s_addr));
    }
    if (inner)
        MUST(hk_ip_special(&ip) != NULL && !hk_ip_allowed(&ip, NULL, 0));
}

/* 0x7f.1 and 2130706433 are addresses, too: no name server is asked. */
static void check_host(const char *host)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM}, *found = NULL;
    char plain[256];
    size_t len = strlen(host);
    if (len > 1 && host[0] == '[' && host[len - 1] == ']') {
        if (!hk_str_copy(plain, sizeof plain, (struct hk_str){host + 1, len - 2}))
            return;
        host = plain;
    }
    if (getaddrinfo(host, NULL, &hints, &found) != 0)
        return;
    check_address(found->ai_addr);
    freeaddrinfo(found);
}

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool there = curl_url_get(url, part, &text, 0) == CURLUE_OK && text != NULL;
    curl_free(text);
    return there;
}

static void check_taken(const char *text)
{
    CURLU *url = curl_url();
    char *scheme = NULL, *host = NULL;
    MUST(url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK);
    MUST(curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK);
    MUST(curl_url_get(url, CURLUPART_HOST, &host, 0) == CURLUE_OK && host[0] != '\0');
    MUST(strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    MUST(!has_part(url, CURLUPART_USER) && !has_part(url, CURLUPART_PASSWORD) &&
         !has_part(url, CURLUPART_FRAGMENT));
    MUST(strpbrk(text, "\r\n") == NULL);
    check_host(host);
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(url);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hk_loop *loop;
    char text[2048];
    struct hk_sink *sink = NULL;
    struct hk_err err = {.message = ""};
    if (size >= sizeof text || memchr(data, '\0', size) != NULL)
        return 0;
    if (loop == NULL)
        MUST(curl_global_init(CURL_GLOBAL_DEFAULT) == 0 && hk_loop_new(&loop, NULL) == HK_OK);
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    check_host(text);
    for (int libcurl = 0; libcurl < 2; libcurl++) {
        const struct hk_http_options options = {.url = text, .libcurl = libcurl};
        enum hk_code rc = hk_http_open(loop, &options, &sink, &err);
        MUST(rc == HK_OK || rc == HK_INVALID);
        MUST(rc == HK_OK || err.message[0] != '\0');
        if (rc != HK_OK)
            continue;
        check_taken(text);
        sink->ops->close(sink);
        hk_loop_stop(loop); /* one turn, in which its timers go */
        hk_loop_run(loop);
    }
    return 0;
}
