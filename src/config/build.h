/* SPDX-License-Identifier: Apache-2.0 */
/* Helpers for destinations and policies, which turn sections into objects. */
#ifndef HK_CONFIG_BUILD_H
#define HK_CONFIG_BUILD_H

#include "config/config.h"

/* `base` (NULL: the preset standard's), changed by what is given. */
void hk_build_breaker(const struct hk_conf_breaker *conf, const struct hk_breaker_options *base,
                      struct hk_breaker_options *out);

/* A copy of `base` in `arena`, changed by what the queue gives. HK_INVALID, HK_NOMEM. */
enum hk_code hk_build_queue_policy(const struct hk_conf_queue *conf, const struct hk_policy *base,
                                   struct hk_pool *arena, const struct hk_policy **out,
                                   struct hk_err *err) HK_MUSTCHECK;
struct hk_walk;
/* What one destination of the store needs of a configuration that is whole: HK_OK, HK_INVALID (reported) or HK_NOMEM. */
enum hk_code hk_config_settle_definition(struct hk_walk *walk, const struct hk_config *config) HK_MUSTCHECK;

#endif
