/* SPDX-License-Identifier: Apache-2.0 */
/* Code about alerts that all stores share. */
#include <stdio.h>

#include "base/json.h"
#include "base/parse.h"
#include "base/pool.h"
#include "base/str.h"
#include "payload/scan.h"
#include "store/alerts.h"

#define FIELD_TEXT_MAX ((size_t)4096)

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
    used +=
        (size_t)snprintf(out + used, HK_ALERTS_SERIES_MAX - used, "%llu", (unsigned long long)a->told_figure);
    if (a->fields.len && a->fields.len < HK_ALERTS_SERIES_MAX - used - 1)
        (void)snprintf(out + used, HK_ALERTS_SERIES_MAX - used, " %.*s", (int)a->fields.len, a->fields.ptr);
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
    a->fields = text.ptr ? text : (struct hk_str){"", 0};
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

/* ---- fields of a payload ---- */

void hk_alerts_fields_text(const struct hk_alert_field *fields, size_t n, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_array(&json);
    for (size_t i = 0; i < n; i++) {
        hk_json_object(&json);
        hk_json_key(&json, "path");
        hk_json_str(&json, fields[i].path);
        hk_json_key(&json, "state");
        hk_json_cstr(&json, hk_alert_field_word(fields[i].state));
        hk_json_key(&json, "value");
        hk_json_str(&json, fields[i].value);
        hk_json_end(&json);
    }
    hk_json_end(&json);
}

/* A string of a field; false: no memory. */
static bool read_field(struct hk_str key, struct hk_str raw, struct hk_pool *mem, struct hk_alert_field *out)
{
    struct hk_buf text;
    hk_buf_init(&text, FIELD_TEXT_MAX);
    bool ok = hk_scan_text(raw, &text) != HK_NOMEM;
    const char *copy = ok ? hk_pool_copy_str(mem, hk_buf_str(&text)) : NULL;
    struct hk_str value = {copy, copy ? text.len : 0};
    hk_buf_fini(&text);
    if (!copy)
        return false;
    if (hk_scan_text_eq(key, hk_str_of("path")))
        out->path = value;
    else if (hk_scan_text_eq(key, hk_str_of("value")))
        out->value = value;
    else if (hk_scan_text_eq(key, hk_str_of("state")))
        (void)hk_alert_field_of(value, &out->state);
    return true;
}

enum hk_code hk_alerts_fields_of(struct hk_str text, struct hk_pool *mem, struct hk_alert_field *out,
                                 size_t *out_n)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_str key = {"", 0};
    enum hk_scan_kind kind = HK_SCAN_END;
    size_t n = 0;
    hk_scan_init(&scan, text);
    while ((kind = hk_scan_next(&scan, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        if (kind == HK_SCAN_OBJECT && scan.depth == 2) {
            if (n == HK_ALERT_FIELDS)
                break;
            out[n++] = (struct hk_alert_field){.path = {"", 0}, .value = {"", 0}};
        }
        if (scan.depth != 2 || n == 0)
            continue;
        if (kind == HK_SCAN_KEY)
            key = token.raw;
        else if (kind == HK_SCAN_STRING && !read_field(key, token.raw, mem, &out[n - 1]))
            return HK_NOMEM;
    }
    *out_n = n;
    return HK_OK;
}
