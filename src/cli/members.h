/* SPDX-License-Identifier: Apache-2.0 */
/* A JSON object in a line for people, whatever its members are. */
#ifndef HK_CLI_MEMBERS_H
#define HK_CLI_MEMBERS_H

#include "base/buf.h"

/* Its members as " NAME=VALUE", but for those that say nothing (null, false, "") and `now`. */
void hk_members_write(struct hk_buf *out, struct hk_str json);

/* Each object of the array `key` of an object. False: it has no such array. */
typedef void hk_members_item_fn(void *arg, struct hk_str item);
bool hk_members_items(struct hk_str json, const char *key, hk_members_item_fn *take, void *arg);

#endif
