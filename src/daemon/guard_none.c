/* SPDX-License-Identifier: Apache-2.0 */
/* In place of guard_seccomp.c where there is no libseccomp. */
#include "daemon/guard.h"

enum hk_code hk_guard_lock(struct hk_err *err)
{
    return hk_err_set(err, HK_UNSUPPORTED, "built without libseccomp");
}

bool hk_guard_can_lock(void)
{
    return false;
}
