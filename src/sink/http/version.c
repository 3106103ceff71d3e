/* SPDX-License-Identifier: Apache-2.0 */
/* Which libcurl is in use. */
#include <stddef.h>

#include <curl/curl.h>

#include "sink/http/version.h"

struct hk_http_version hk_http_version(void)
{
    const curl_version_info_data *info = curl_version_info(CURLVERSION_NOW);
    struct hk_http_version v = {.version = info->version,
                                .tls = info->ssl_version ? info->ssl_version : "",
                                .http2 = (info->features & CURL_VERSION_HTTP2) != 0};
    if (info->version_num < 0x075700)
        v.trap = "older than 7.87: the HTTP sink refuses to start; install a newer libcurl";
    else if (!(info->features & CURL_VERSION_SSL))
        v.trap = "built without TLS: https destinations fail; install another build";
    else if (!(info->features & CURL_VERSION_ASYNCHDNS))
        v.trap =
            "built with a blocking resolver: a slow name server stops every destination; install another build";
    return v;
}
