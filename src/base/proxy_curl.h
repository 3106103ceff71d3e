/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy as libcurl's options, for the three places that use libcurl. In a header, so that who needs no libcurl links none. */
#ifndef HK_BASE_PROXY_CURL_H
#define HK_BASE_PROXY_CURL_H

#include <string.h>

#include <curl/curl.h>

#include "base/proxy.h"
#include "base/str.h"

/* The type by itself: libcurl lets the scheme of a URL win over it. */
static inline long hk_proxy_curl_type(const struct hk_proxy *proxy)
{
    struct hk_str url = hk_str_of(proxy->url);
    if (hk_str_starts(url, hk_str_of("socks5")))
        return proxy->resolves ? (long)CURLPROXY_SOCKS5_HOSTNAME : (long)CURLPROXY_SOCKS5;
    return hk_str_starts(url, hk_str_of("https:")) ? (long)CURLPROXY_HTTPS : (long)CURLPROXY_HTTP;
}

/* NULL: none, whatever the environment says. False: out of memory, or this libcurl cannot. */
static inline bool hk_proxy_curl_set(CURL *easy, const struct hk_proxy *proxy)
{
    if (!proxy)
        return curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
               curl_easy_setopt(easy, CURLOPT_NOPROXY, "*") == CURLE_OK;
    const char *at = strstr(proxy->url, "://");
    bool ok = curl_easy_setopt(easy, CURLOPT_PROXY, at ? at + 3 : proxy->url) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_PROXYTYPE, hk_proxy_curl_type(proxy)) == CURLE_OK &&
              curl_easy_setopt(easy, CURLOPT_NOPROXY, "") == CURLE_OK;
    if (proxy->user)
        ok = ok && curl_easy_setopt(easy, CURLOPT_PROXYUSERNAME, proxy->user) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_PROXYPASSWORD, proxy->password) == CURLE_OK;
    if (proxy->ca_file) /* this one alone: not the system's directory beside it */
        ok = ok && curl_easy_setopt(easy, CURLOPT_PROXY_CAINFO, proxy->ca_file) == CURLE_OK &&
             curl_easy_setopt(easy, CURLOPT_PROXY_CAPATH, NULL) == CURLE_OK;
    curl_easy_setopt(easy, CURLOPT_PROXYAUTH, (long)CURLAUTH_BASIC);
    curl_easy_setopt(easy, CURLOPT_SOCKS5_AUTH, (long)CURLAUTH_BASIC);
    curl_easy_setopt(easy, CURLOPT_HTTPPROXYTUNNEL, 1L);
    curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    curl_easy_setopt(easy, CURLOPT_HEADEROPT, (long)CURLHEADER_SEPARATE); /* ours are the receiver's alone */
    curl_easy_setopt(easy, CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    return ok;
}

#endif
