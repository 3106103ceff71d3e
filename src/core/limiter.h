/* SPDX-License-Identifier: Apache-2.0 */
/* What only the engine asks of a limiter; the rest is hikyaku/breaker.h. */
#ifndef HK_CORE_LIMITER_H
#define HK_CORE_LIMITER_H

#include <hikyaku/breaker.h>

/* Changes the limits (already checked). The bucket keeps its tokens, as far as they fit; requests in flight and a hold stay. A ramp
 * ends. */
void hk_limiter_change(struct hk_limiter *limiter, const struct hk_limiter_options *options, int64_t now_ms);

#endif
