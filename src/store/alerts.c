/* SPDX-License-Identifier: Apache-2.0 */
/* What stores write alike of alerts. */
#include <stdio.h>

#include "base/parse.h"
#include "base/str.h"
#include "store/alerts.h"

void hk_alerts_texts(const struct hk_alert *a, struct hk_str out[HK_ALERTS_TEXTS])
{
    const struct hk_str texts[HK_ALERTS_TEXTS] = {hk_str_of(a->fingerprint),
                                                  a->rule,
                                                  hk_str_of(hk_alert_kind_word(a->kind)),
                                                  hk_str_of(hk_severity_word(a->severity)),
                                                  hk_str_of(hk_alert_status_word(a->status)),
                                                  a->destination,
                                                  a->reason,
                                                  a->event_type,
                                                  a->example_id,
                                                  a->detail};
    for (size_t i = 0; i < HK_ALERTS_TEXTS; i++)
        out[i] = hk_alerts_cut(texts[i]);
}

void hk_alerts_series_text(const struct hk_alert *a, char out[HK_ALERTS_SERIES_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < HK_ALERT_SERIES; i++)
        used += (size_t)snprintf(out + used, HK_ALERTS_SERIES_MAX - used, "%lld ", (long long)a->series[i]);
    (void)snprintf(out + used, HK_ALERTS_SERIES_MAX - used, "%llu", (unsigned long long)a->told_figure);
}

static int64_t read_number(struct hk_str *text)
{
    int64_t n = 0;
    return text->len && hk_parse_i64(hk_str_cut(text, ' '), &n, NULL) == HK_OK ? n : 0;
}

void hk_alerts_series_of(struct hk_str text, struct hk_alert *a)
{
    for (size_t i = 0; i < HK_ALERT_SERIES; i++)
        a->series[i] = read_number(&text);
    int64_t told = read_number(&text);
    a->told_figure = told > 0 ? (uint64_t)told : 0;
}

struct hk_str hk_alerts_cut(struct hk_str s)
{
    if (s.len <= HK_ALERT_TEXT_MAX)
        return s;
    s.len = HK_ALERT_TEXT_MAX;
    while (s.len && ((unsigned char)s.ptr[s.len] & 0xc0u) == 0x80) /* not within a character */
        s.len--;
    return s;
}
