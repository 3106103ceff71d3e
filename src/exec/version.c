/* SPDX-License-Identifier: Apache-2.0 */
#include <hikyaku/hikyaku.h>

#include "hk_version.h"

/* The version of the library that is running, which may be newer than the headers. */
const char *hk_version(void)
{
    return HK_VERSION;
}
