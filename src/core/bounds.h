/* SPDX-License-Identifier: Apache-2.0 */
/* Options of breaker, budget and limiter within their bounds, with one wording for what is not. */
#ifndef HK_CORE_BOUNDS_H
#define HK_CORE_BOUNDS_H

#include <stdint.h>

#include <hikyaku/error.h>

/* HK_INVALID when it is not finite, HK_RANGE outside lo to hi; the message begins with `name`. */
enum hk_code hk_bounds_double(const char *name, double value, double lo, double hi,
                              struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_bounds_u64(const char *name, uint64_t value, uint64_t lo, uint64_t hi,
                           struct hk_err *err) HK_MUSTCHECK;

#endif
