/* SPDX-License-Identifier: Apache-2.0 */
/* The store's settings from the configuration: how to open it, and how long it keeps rows. */
#ifndef HK_RELAY_STORE_SETTINGS_H
#define HK_RELAY_STORE_SETTINGS_H

#include "config/config.h"
#include "store/store.h"

struct hk_store_options hk_relay_store_options(const struct hk_config *config);
/* Can a store that was opened with `a` be used with `b`? */
bool hk_relay_same_store_options(const struct hk_config *a, const struct hk_config *b);
struct hk_retention hk_relay_retention(const struct hk_config *config);

#endif
