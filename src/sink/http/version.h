/* SPDX-License-Identifier: Apache-2.0 */
/* Which libcurl is in use, and what is known to go wrong with it: for `hikyaku doctor`. */
#ifndef HK_SINK_HTTP_VERSION_H
#define HK_SINK_HTTP_VERSION_H

#include <stdbool.h>

struct hk_http_version {
    const char *version; /* "7.88.1" */
    const char *tls;     /* "OpenSSL/3.0.15"; "" = none */
    bool http2;
    const char *trap; /* what goes wrong with this one, and what to do; NULL = nothing that is known */
};

/* Static storage. */
struct hk_http_version hk_http_version(void);

#endif
