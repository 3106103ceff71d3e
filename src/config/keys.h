/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the keys of the section `seal` from their sources. */
#ifndef HK_CONFIG_KEYS_H
#define HK_CONFIG_KEYS_H

#include "config/config.h"

/* Makes config->keys; nothing is read yet. `env` lives as long as the configuration. */
enum hk_code hk_config_make_keys(struct hk_config *config, const struct hk_config_env *env,
                                 struct hk_err *err) HK_MUSTCHECK;

/* For a process that stays: fetches all keys now, and runs no program for them later. What cannot be fetched is taken from `older` (NULL:
 * there is none), where it is the same key. HK_UNAVAILABLE: one of them is missing, and `err` says why. */
enum hk_code hk_config_fetch_keys(struct hk_config *config, const struct hk_config *older,
                                  struct hk_err *err) HK_MUSTCHECK;

#endif
