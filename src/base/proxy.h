/* SPDX-License-Identifier: Apache-2.0 */
/* A proxy that requests leave by, and which hosts are reached without it. */
#ifndef HK_BASE_PROXY_H
#define HK_BASE_PROXY_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

#include "base/pool.h"

/* Texts belong to whoever made it. */
struct hk_proxy {
    const char *name;            /* as configured, for messages */
    const char *url;             /* http://, https:// or socks5://, host and port */
    const char *user, *password; /* both or none */
    const char *ca_file;         /* of an https:// proxy; NULL: the system's */
    bool resolves;               /* it looks names up; else we do, check the address, and tell it that one */
    const char *const *direct;   /* patterns of hosts that are reached without it */
    size_t n_direct;
};

/* "*", a host name, ".example" (the name and all below it), an address, or a range of addresses. */
bool hk_proxy_pattern_ok(struct hk_str pattern);
/* Does a request to this host go by the proxy? An address may stand in brackets. A range holds hosts that are written as addresses;
 * no name is looked up. */
bool hk_proxy_is_for(const struct hk_proxy *proxy, struct hk_str host);
/* A copy in `pool`; NULL: out of memory. */
const struct hk_proxy *hk_proxy_copy(const struct hk_proxy *proxy, struct hk_pool *pool);

#endif
