/* SPDX-License-Identifier: Apache-2.0 */
/* The notice for programs: stable names (docs/channels.md), facts as they are, and the words for people beside them. */
#include <math.h>

#include "alert/body.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/str.h"

#define FACT_MAX 4096 /* bytes of one text */

static void put_text(struct hk_json *json, const char *key, struct hk_str text)
{
    hk_json_key(json, key);
    if (text.len == 0)
        hk_json_null(json);
    else
        hk_json_str(json, (struct hk_str){text.ptr, text.len < FACT_MAX ? text.len : FACT_MAX});
}

static void put_time(struct hk_json *json, const char *key, int64_t unix_ms)
{
    char text[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(unix_ms, text);
    hk_json_key(json, key);
    hk_json_cstr(json, text);
}

static void put_line(struct hk_json *json, const struct hk_notice_line *line)
{
    const bool compares = hk_words_compares(line->about);
    hk_json_object(json);
    hk_json_key(json, "kind");
    hk_json_cstr(json, hk_alert_kind_word(line->about));
    put_text(json, "destination", line->destination);
    put_text(json, "reason", line->reason);
    hk_json_key(json, "count");
    hk_json_u64(json, line->count);
    hk_json_key(json, "value");
    hk_json_double(json, compares ? line->value : (double)NAN); /* null */
    hk_json_key(json, "over");
    hk_json_bool(json, line->over);
    hk_json_end(json);
}

static void put_story(struct hk_json *json, const struct hk_notice *n)
{
    hk_json_key(json, "story");
    hk_json_array(json);
    for (size_t i = 0; i < n->n_lines && i < HK_NOTICE_LINES_MAX; i++)
        put_line(json, &n->lines[i]);
    hk_json_end(json);
}

static void put_fields(struct hk_json *json, const struct hk_notice *n)
{
    hk_json_key(json, "fields");
    hk_json_array(json);
    for (size_t i = 0; i < n->n_fields && i < HK_ALERT_FIELDS; i++) {
        const struct hk_alert_field *f = &n->fields[i];
        hk_json_object(json);
        put_text(json, "path", f->path);
        hk_json_key(json, "state");
        hk_json_cstr(json, hk_alert_field_word(f->state));
        hk_json_key(json, "value");
        if (f->state == HK_ALERT_FIELD_SHOWN)
            hk_json_str(json, f->value);
        else
            hk_json_null(json);
        hk_json_end(json);
    }
    hk_json_end(json);
}

static void put_facts(struct hk_json *json, const struct hk_notice *n)
{
    put_text(json, "rule", hk_str_of(n->rule));
    put_text(json, "fingerprint", hk_str_of(n->fingerprint));
    hk_json_key(json, "kind");
    hk_json_cstr(json, hk_alert_kind_word(n->about));
    hk_json_key(json, "severity");
    hk_json_cstr(json, hk_severity_word(n->severity));
    put_time(json, "since", n->since_ms);
    hk_json_key(json, "count");
    hk_json_u64(json, n->count);
    const bool compares = hk_words_compares(n->about);
    hk_json_key(json, "value");
    const bool others = n->value > 0 && hk_alert_is_of_others(n->about, n->destination, n->reason);
    hk_json_double(json, compares || others ? n->value : (double)NAN); /* null */
    hk_json_key(json, "threshold");
    hk_json_double(json, compares ? n->threshold : (double)NAN);
    put_text(json, "destination", n->destination);
    put_text(json, "reason", n->reason);
    put_text(json, "event_type", n->event_type);
    put_text(json, "example_id", n->example_id);
    put_fields(json, n);
    put_text(json, "detail", n->detail);
    put_story(json, n);
    put_text(json, "relay", hk_str_of(n->relay));
    put_text(json, "link", hk_str_of(hk_words_link(n)));
}

static void put_words(struct hk_json *json, const struct hk_notice *n, enum hk_alert_language language)
{
    struct hk_buf words;
    hk_buf_init(&words, HK_BODY_MAX);
    hk_notice_title(n, language, &words);
    put_text(json, "title", hk_buf_str(&words));
    hk_words_again(&words, json->out);
    hk_notice_text(n, language, &words);
    hk_json_key(json, "text");
    hk_json_str(json, hk_buf_str(&words));
    hk_words_again(&words, json->out);
    hk_words_command(n, &words);
    put_text(json, "command", hk_buf_str(&words));
    hk_words_done(&words, json->out);
}

void hk_body_json(const struct hk_notice *notice, enum hk_alert_language language, const char *id,
                  struct hk_buf *out)
{
    static const char *const types[] = {[HK_NOTICE_FIRING] = "alert.firing",
                                        [HK_NOTICE_UPDATE] = "alert.update",
                                        [HK_NOTICE_RESOLVED] = "alert.resolved",
                                        [HK_NOTICE_TEST] = "alert.test"};
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "type");
    hk_json_cstr(&json, types[notice->kind]);
    put_time(&json, "timestamp", notice->at_ms);
    hk_json_key(&json, "data");
    hk_json_object(&json);
    hk_json_key(&json, "id");
    hk_json_cstr(&json, id);
    put_facts(&json, notice);
    put_words(&json, notice, language);
    hk_json_key(&json, "language");
    hk_json_cstr(&json, language == HK_ALERT_JAPANESE ? "ja" : "en");
    hk_json_end(&json);
    hk_json_end(&json);
}
