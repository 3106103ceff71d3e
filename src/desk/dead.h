/* SPDX-License-Identifier: Apache-2.0 */
/* What people do with dead letters: requeue, resolve, discard, restore, note. */
#ifndef HK_DESK_DEAD_H
#define HK_DESK_DEAD_H

#include "desk/letters.h"

/* ---- what several of them share ---- */

/* Under which id a letter goes out again. */
#define HK_REQUEUE_ID_ARGS(type, same, new)                                                                  \
    {.name = "same_id",                                                                                      \
     .offset = offsetof(struct type, same),                                                                  \
     .help = "keep the id that the receiver knows (default while the payload is unchanged)"},                \
    {                                                                                                        \
        .name = "new_id", .offset = offsetof(struct type, new),                                              \
        .help = "use a new id (default once the payload was edited)"                                         \
    }
enum hk_requeue_id hk_requeue_ids(bool same_id, bool new_id);
/* HK_INVALID: they exclude each other. */
enum hk_code hk_requeue_ids_check(bool same_id, bool new_id, struct hk_err *err);

bool hk_names_have(const struct hk_names *names, struct hk_str name);

#endif
