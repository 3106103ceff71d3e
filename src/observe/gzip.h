/* SPDX-License-Identifier: Apache-2.0 */
/* gzip, for what is posted to a collector. zlib stays in gzip.c. */
#ifndef HK_OBSERVE_GZIP_H
#define HK_OBSERVE_GZIP_H

#include <hikyaku/facts.h>

#include "base/buf.h"

/* Adds `in`, compressed, to `out`. Errors are the buffer's: HK_NOMEM, or HK_TOOBIG beyond its maximum. */
enum hk_code hk_gzip(struct hk_str in, struct hk_buf *out) HK_MUSTCHECK;

/* The other way. HK_INVALID: it is no whole gzip stream; else the buffer's errors. */
enum hk_code hk_gunzip(struct hk_str in, struct hk_buf *out) HK_MUSTCHECK;

#endif
