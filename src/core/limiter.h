/* SPDX-License-Identifier: Apache-2.0 */
/* What only the engine asks of a limiter; the rest is hikyaku/breaker.h. */
#ifndef HK_CORE_LIMITER_H
#define HK_CORE_LIMITER_H

#include <hikyaku/breaker.h>

/* Goes on with other limits, which were checked: what the bucket holds stays, as far as it fits; so do what is in flight and a
 * hold. A ramp ends. */
void hk_limiter_change(struct hk_limiter *limiter, const struct hk_limiter_options *options, int64_t now_ms);

#endif
