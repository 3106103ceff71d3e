/* SPDX-License-Identifier: Apache-2.0 */
/* Names of channel kinds, as in the configuration. Names of alerts and notices are in core/alert.h. */
#include "alert/notice.h"

const char *hk_channel_kind_name(enum hk_channel_kind kind)
{
    switch (kind) {
    case HK_CHANNEL_SLACK:
        return "slack";
    case HK_CHANNEL_EMAIL:
        return "email";
    case HK_CHANNEL_WEBHOOK:
        return "webhook";
    case HK_CHANNEL_PAGERDUTY:
        return "pagerduty";
    case HK_CHANNEL_EXEC:
        return "exec";
    }
    return "unknown";
}
