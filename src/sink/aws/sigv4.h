/* SPDX-License-Identifier: Apache-2.0 */
/* Signature Version 4 of AWS, in the Authorization header. libcurl 7.88 has one, too; it is wrong for paths and queries that hold anything
 * encoded, and our own HTTP/1.1 has none. */
#ifndef HK_SINK_AWS_SIGV4_H
#define HK_SINK_AWS_SIGV4_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <hikyaku/error.h>
#include <hikyaku/facts.h>

#include "base/buf.h"

#define HK_SIGV4_HEADERS_MAX 16
#define HK_SIGV4_QUERY_MAX   64 /* parts of a query */
#define HK_SIGV4_TIME_MAX    17
#define HK_SHA256_HEX_MAX    65

/* One request, as it goes over the wire. */
struct hk_sigv4 {
    struct hk_str key_id, secret;
    struct hk_str region, service;
    char time[HK_SIGV4_TIME_MAX]; /* hk_sigv4_time; also the value of x-amz-date */
    struct hk_str method, path, query;
    /* That are to be signed: host, x-amz-date and any others. Names in lower case, each once. */
    const struct hk_header *headers;
    size_t n_headers;
    struct hk_str body;
};

/* "20261119T141840Z" */
void hk_sigv4_time(int64_t unix_ms, char out[HK_SIGV4_TIME_MAX]);
/* Adds the value of Authorization to `out`. HK_TOOBIG: too many headers or parts of a query; HK_NOMEM. */
enum hk_code hk_sigv4_sign(const struct hk_sigv4 *request, struct hk_buf *out) HK_MUSTCHECK;
/* In hexadecimal. False: OpenSSL cannot. */
bool hk_sha256_hex(struct hk_str bytes, char out[HK_SHA256_HEX_MAX]);

#endif
