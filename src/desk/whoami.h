/* SPDX-License-Identifier: Apache-2.0 */
/* The caller's name and role. */
#ifndef HK_DESK_WHOAMI_H
#define HK_DESK_WHOAMI_H

#include "desk/desk.h"

struct hk_whoami {
    struct hk_str name;
    enum hk_role role;
    bool reveal; /* may see masked fields, with a reason */
};

const char *hk_role_name(enum hk_role role); /* "viewer" */

extern const struct hk_op hk_op_whoami;

#endif
