/* SPDX-License-Identifier: Apache-2.0 */
/* What destinations share with policies when sections become objects. */
#ifndef HK_CONFIG_BUILD_H
#define HK_CONFIG_BUILD_H

#include "config/config.h"

/* `base` (NULL: the preset standard's), changed by what is given. */
void hk_build_breaker(const struct hk_conf_breaker *conf, const struct hk_breaker_options *base,
                      struct hk_breaker_options *out);

#endif
