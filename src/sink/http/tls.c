/* SPDX-License-Identifier: Apache-2.0 */
/* The one thing that libcurl does not tell of its TLS connections. */
#include <openssl/ssl.h>

#include "sink/http/curl.h"

bool hk_curl_tls_left(CURL *easy)
{
    struct curl_tlssessioninfo *tls = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &tls) != CURLE_OK || !tls ||
        tls->backend != CURLSSLBACKEND_OPENSSL || !tls->internals)
        return false;
    return SSL_pending(tls->internals) > 0;
}
