/* SPDX-License-Identifier: Apache-2.0 */
/* Names of what can be wrong, of what is told about it, and of how: as configuration, JSON and metrics have them. */
#include <string.h>

#include "alert/notice.h"

static const char *const kinds[HK_NALERT_KINDS] = {
    [HK_ALERT_DEAD_LETTER] = "dead_letter",
    [HK_ALERT_DEAD_LETTERS_ABOVE] = "dead_letters_above",
    [HK_ALERT_DEAD_LETTERS_RISING] = "dead_letters_rising",
    [HK_ALERT_OLDEST_AGE] = "oldest_age",
    [HK_ALERT_BREAKER_OPEN] = "breaker_open",
    [HK_ALERT_PAUSED] = "paused",
    [HK_ALERT_STORE_UNREACHABLE] = "store_unreachable",
    [HK_ALERT_NO_PROGRESS] = "no_progress",
    [HK_ALERT_LAG_GROWING] = "lag_growing",
    [HK_ALERT_REQUEUE_FAILED] = "requeue_failed",
};

const char *hk_alert_kind_name(enum hk_alert_kind kind)
{
    return (unsigned)kind < HK_NALERT_KINDS ? kinds[kind] : "unknown";
}

bool hk_alert_kind_by_name(const char *name, enum hk_alert_kind *out)
{
    for (unsigned i = 0; i < HK_NALERT_KINDS; i++) {
        if (strcmp(kinds[i], name) == 0) {
            *out = (enum hk_alert_kind)i;
            return true;
        }
    }
    return false;
}

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

const char *hk_severity_level_name(enum hk_severity_level level)
{
    switch (level) {
    case HK_ALERT_INFO:
        return "info";
    case HK_ALERT_WARNING:
        return "warning";
    case HK_ALERT_CRITICAL:
        return "critical";
    }
    return "unknown";
}

const char *hk_notice_kind_name(enum hk_notice_kind kind)
{
    switch (kind) {
    case HK_NOTICE_FIRING:
        return "firing";
    case HK_NOTICE_UPDATE:
        return "update";
    case HK_NOTICE_RESOLVED:
        return "resolved";
    case HK_NOTICE_TEST:
        return "test";
    }
    return "unknown";
}
