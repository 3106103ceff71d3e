/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a destination's URL that people may see. Many receivers have their secret in the path (https://hooks.example/T0/B1/x7Yz…)
 * or in the query, and a URL does not say which part is secret. So it shows scheme, host and port, and the segments of the path that
 * are plainly words (hooks, order-events, v2). It replaces everything else by "…". In doubt it hides more, never less. */
#ifndef HK_BASE_URL_H
#define HK_BASE_URL_H

#include <stdbool.h>
#include <stddef.h>

#include <hikyaku/facts.h>

#define HK_URL_SHOWN_MAX 512

/* Writes what may be shown and returns `out`. */
const char *hk_url_show(struct hk_str url, char out[HK_URL_SHOWN_MAX]);

/* The host of http://host:port/…, without port and brackets; empty when there is none. For URLs that were checked. */
struct hk_str hk_url_host(struct hk_str url);

/* "localhost" and the names below it: nobody is asked for their addresses, an answer could only be wrong (RFC 6761). */
bool hk_url_is_localhost(struct hk_str host);

/* The next part of the URL that is not shown, without what parts it from others; `*at` is 0 at first. {NULL, 0}: no more. */
struct hk_str hk_url_hidden(struct hk_str url, size_t *at);
/* %XX become the bytes that they stand for, as far as there is room. Returns how many bytes. */
size_t hk_url_decode(struct hk_str part, char *out, size_t room);

#endif
