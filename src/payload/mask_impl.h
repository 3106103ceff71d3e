/* SPDX-License-Identifier: Apache-2.0 */
/* Declarations shared by the masking of payloads and of other texts. */
#ifndef HK_PAYLOAD_MASK_IMPL_H
#define HK_PAYLOAD_MASK_IMPL_H

#include "payload/mask.h"

/* The paths of all rules that fit one event type. */
struct hk_mask_paths {
    const struct hk_path **paths;
    struct hk_path_state *states;
    size_t n;
};

/* HK_NOMEM. `n` may be 0; hk_mask_paths_fini in any case. */
enum hk_code hk_mask_paths_init(struct hk_mask_paths *paths, const struct hk_masks *masks,
                                struct hk_str event_type) HK_MUSTCHECK;
void hk_mask_paths_fini(struct hk_mask_paths *paths);

/* `json` must be JSON: with every value that a path leads to replaced. */
void hk_mask_json(const struct hk_mask_paths *paths, struct hk_str json, struct hk_buf *out);

/* Notes a failure that is not the buffer's own, so that what is in it is not shown; returns its status. */
enum hk_code hk_mask_fail(struct hk_buf *out, enum hk_code code);

#endif
