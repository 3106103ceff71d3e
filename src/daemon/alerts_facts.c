/* SPDX-License-Identifier: Apache-2.0 */
/* The content of a notice, as the text that the store keeps until the notice is sent. */
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"
#include "daemon/alerts.h"
#include "payload/scan.h"

#define TEXT_MAX ((size_t)16 * 1024)

static void put_str(struct hk_json *json, const char *key, struct hk_str value)
{
    if (!value.len)
        return;
    hk_json_key(json, key);
    hk_json_str(json, hk_alerts_cut(value));
}

static void put_i64(struct hk_json *json, const char *key, int64_t value)
{
    hk_json_key(json, key);
    hk_json_i64(json, value);
}

/* The store keeps what was measured as a number that may be anything by now. */
static int64_t thousandths(double value)
{
    const double most = 9e15;
    return value > -most && value < most ? (int64_t)(value * 1000) : 0;
}

static void put_fields(struct hk_json *json, const struct hk_notice *n)
{
    struct hk_buf text;
    if (!n->n_fields)
        return;
    hk_buf_init(&text, HK_ALERT_FIELDS_TEXT_MAX);
    hk_alerts_fields_text(n->fields, n->n_fields, &text);
    hk_json_key(json, "fields");
    hk_json_str(json, hk_buf_str(&text));
    if (hk_buf_status(&text) != HK_OK && hk_buf_status(json->out) == HK_OK)
        json->out->status = hk_buf_status(&text);
    hk_buf_fini(&text);
}

static void put_line(struct hk_json *json, const struct hk_notice_line *line)
{
    hk_json_object(json);
    put_str(json, "about", hk_str_of(hk_alert_kind_word(line->about)));
    put_str(json, "destination", line->destination);
    put_str(json, "reason", line->reason);
    put_i64(json, "count", (int64_t)line->count);
    put_i64(json, "value_ms", thousandths(line->value));
    put_i64(json, "threshold_ms", thousandths(line->threshold));
    put_i64(json, "over", line->over);
    hk_json_end(json);
}

void hk_alerts_facts_write(const struct hk_notice *n, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_str(&json, "about", hk_str_of(hk_alert_kind_word(n->about)));
    put_str(&json, "severity", hk_str_of(hk_severity_word(n->severity)));
    put_i64(&json, "count", n->count > INT64_MAX ? INT64_MAX : (int64_t)n->count);
    put_i64(&json, "since_ms", n->since_ms);
    put_i64(&json, "at_ms", n->at_ms);
    put_str(&json, "destination", n->destination);
    put_str(&json, "reason", n->reason);
    put_str(&json, "event_type", n->event_type);
    put_str(&json, "example_id", n->example_id);
    put_fields(&json, n);
    put_str(&json, "detail", n->detail);
    put_i64(&json, "value_ms", thousandths(n->value));
    put_i64(&json, "threshold_ms", thousandths(n->threshold));
    put_str(&json, "relay", hk_str_of(n->relay));
    hk_json_key(&json, "story");
    hk_json_array(&json);
    for (size_t i = 0; i < n->n_lines; i++)
        put_line(&json, &n->lines[i]);
    hk_json_end(&json);
    put_i64(&json, "more_lines", (int64_t)n->more_lines);
    hk_json_end(&json);
}

/* ---- and back ---- */

struct reader {
    struct hk_pool *arena;
    struct hk_notice *out;
    struct hk_notice_line *line; /* NULL: the notice itself */
    bool failed;
};

static void read_text(struct reader *r, struct hk_str key, struct hk_str raw)
{
    const struct {
        const char *key;
        struct hk_str *out;
    } texts[] = {{"destination", r->line ? &r->line->destination : &r->out->destination},
                 {"reason", r->line ? &r->line->reason : &r->out->reason},
                 {"event_type", &r->out->event_type},
                 {"example_id", &r->out->example_id},
                 {"detail", &r->out->detail}};
    struct hk_buf text;
    hk_buf_init(&text, TEXT_MAX);
    r->failed = r->failed || hk_scan_text(raw, &text) == HK_NOMEM;
    const char *copy = hk_pool_copy_str(r->arena, hk_buf_str(&text));
    struct hk_str value = {copy, copy ? text.len : 0};
    r->failed = r->failed || !copy;
    hk_buf_fini(&text);
    if (!copy)
        return;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (hk_scan_text_eq(key, hk_str_of(texts[i].key)))
            *texts[i].out = value;
    if (!r->line && hk_scan_text_eq(key, hk_str_of("fields")) &&
        hk_alerts_fields_of(value, r->arena, r->out->fields, &r->out->n_fields) != HK_OK)
        r->failed = true;
    if (hk_scan_text_eq(key, hk_str_of("relay")))
        r->out->relay = copy;
    if (hk_scan_text_eq(key, hk_str_of("about")))
        (void)hk_alert_kind_of(value, r->line ? &r->line->about : &r->out->about);
    if (hk_scan_text_eq(key, hk_str_of("severity")))
        (void)hk_severity_of(value, &r->out->severity);
}

static void read_number(struct reader *r, struct hk_str key, struct hk_str raw)
{
    int64_t value = 0;
    if (hk_parse_i64(raw, &value, NULL) != HK_OK)
        return;
    const uint64_t count = value < 0 ? 0 : (uint64_t)value;
    if (hk_scan_text_eq(key, hk_str_of("count")))
        *(r->line ? &r->line->count : &r->out->count) = count;
    else if (hk_scan_text_eq(key, hk_str_of("since_ms")))
        r->out->since_ms = value;
    else if (hk_scan_text_eq(key, hk_str_of("at_ms")))
        r->out->at_ms = value;
    else if (hk_scan_text_eq(key, hk_str_of("value_ms")))
        *(r->line ? &r->line->value : &r->out->value) = (double)value / 1000;
    else if (hk_scan_text_eq(key, hk_str_of("threshold_ms")))
        *(r->line ? &r->line->threshold : &r->out->threshold) = (double)value / 1000;
    else if (hk_scan_text_eq(key, hk_str_of("more_lines")))
        r->out->more_lines = count;
    else if (r->line && hk_scan_text_eq(key, hk_str_of("over")))
        r->line->over = value != 0;
}

/* {"story": [{ … a line … }]} */
static void begin_line(struct reader *r, struct hk_str key)
{
    struct hk_notice *n = r->out;
    r->line = NULL;
    if (!hk_scan_text_eq(key, hk_str_of("story")) || n->n_lines == HK_NOTICE_LINES_MAX)
        return;
    r->line = &n->lines[n->n_lines++];
    *r->line = (struct hk_notice_line){.destination = {"", 0}, .reason = {"", 0}};
}

enum hk_code hk_alerts_facts_read(struct hk_str facts, struct hk_pool *arena, struct hk_notice *out)
{
    struct reader r = {.arena = arena, .out = out};
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_str key = {"", 0}, outer = key;
    enum hk_scan_kind kind = HK_SCAN_END;
    hk_scan_init(&scan, facts);
    while ((kind = hk_scan_next(&scan, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR && !r.failed) {
        if (kind == HK_SCAN_OBJECT && scan.depth == 3)
            begin_line(&r, outer);
        else if (kind == HK_SCAN_OBJECT_END)
            r.line = NULL;
        if (scan.depth != 1 && !(scan.depth == 3 && r.line))
            continue;
        if (kind == HK_SCAN_KEY && scan.depth == 1)
            outer = key = token.raw;
        else if (kind == HK_SCAN_KEY)
            key = token.raw;
        else if (kind == HK_SCAN_STRING)
            read_text(&r, key, token.raw);
        else if (kind == HK_SCAN_NUMBER)
            read_number(&r, key, token.raw);
    }
    return r.failed ? HK_NOMEM : HK_OK;
}

void hk_alerts_notice_add_line(struct hk_notice *n, const struct hk_alert *a)
{
    if (n->n_lines == HK_NOTICE_LINES_MAX) {
        n->more_lines++;
        return;
    }
    n->lines[n->n_lines++] = (struct hk_notice_line){.about = a->kind,
                                                     .destination = hk_alert_about(a),
                                                     .reason = a->reason,
                                                     .count = a->count,
                                                     .value = a->value,
                                                     .threshold = a->threshold,
                                                     .over = a->status == HK_ALERT_RESOLVED};
}

void hk_alerts_notice_of(const struct hk_alerts_plan *plan, const struct hk_alert *a,
                         enum hk_notice_kind kind, int64_t now_ms, struct hk_notice *out)
{
    *out = (struct hk_notice){.kind = kind,
                              .severity = a->severity,
                              .about = a->kind,
                              .fingerprint = a->fingerprint,
                              .count = a->count,
                              .since_ms = a->since_ms,
                              .at_ms = now_ms,
                              .destination = hk_alert_about(a),
                              .reason = a->reason,
                              .event_type = a->event_type,
                              .example_id = a->example_id,
                              .detail = hk_alert_detail(a),
                              .value = a->value,
                              .threshold = a->threshold,
                              .relay = plan->relay,
                              .link = plan->link};
}
