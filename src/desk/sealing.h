/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing what the desk writes into the outbox, where the configuration says so (seal.mode). */
#ifndef HK_DESK_SEALING_H
#define HK_DESK_SEALING_H

#include "desk/desk.h"
#include "payload/words.h"

/* The items as they are stored: `mem` has what takes their payloads' place, and the ids of those that had none. In mode off, and for
 * payloads that are sealed already, they stay as they are. HK_CONFLICT: the newest key cannot be had; nothing may be written then. */
enum hk_code hk_desk_seal(struct hk_desk *desk, struct hk_enqueue *items, size_t n, struct hk_pool *mem,
                          struct hk_err *err) HK_MUSTCHECK;

#endif
