/* SPDX-License-Identifier: Apache-2.0 */
/* The sections `validate` and `masks` as those take them who read payloads (payload/validate.h, payload/mask.h). */
#ifndef HK_CONFIG_PAYLOAD_H
#define HK_CONFIG_PAYLOAD_H

#include "config/config.h"
#include "payload/mask.h"
#include "payload/validate.h"

/* The results do not need the configuration any more. NULL when there are no rules. HK_NOMEM; nothing else, since loading has checked
 * them. */
enum hk_code hk_config_make_validate(const struct hk_config *config, struct hk_validate **out,
                                     struct hk_err *err) HK_MUSTCHECK;
enum hk_code hk_config_make_masks(const struct hk_config *config, struct hk_masks **out,
                                  struct hk_err *err) HK_MUSTCHECK;

#endif
