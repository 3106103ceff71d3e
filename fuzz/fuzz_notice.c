/* SPDX-License-Identifier: Apache-2.0 */
/* Two bytes choose the kinds, the rest are the texts of a notice, with zero bytes between them. Whatever they are: words show
 * nothing hidden and are bounded, every JSON body is one valid document within the receiver's limits, a mail has its own header
 * fields and no other, and the command cannot leave its quotes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "alert/body.h"
#include "base/str.h"
#include "base/utf8.h"
#include "fuzz.h"

static const char *const people[] = {"ops@example.com", "飛脚 <oncall@example.com>"};

/* Characters, all of them whole and visible. */
static size_t check_shown(struct hk_str s, bool lines)
{
    size_t n = 0;
    for (; s.len > 0; n++) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        MUST(c != HK_UTF8_BAD && (c >= 0x20 || (lines && c == '\n')) && c != 0x7f &&
             !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
             !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff);
        s.ptr += taken;
        s.len -= taken;
    }
    return n;
}

static json_t *parse(const struct hk_buf *body)
{
    MUST(hk_buf_status(body) == HK_OK);
    json_t *root = json_loadb(hk_buf_cstr(body), body->len, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);
    MUST(root);
    return root;
}

static void check_words(const struct hk_notice *n, enum hk_alert_language language)
{
    struct hk_buf out;
    hk_buf_init(&out, HK_BODY_MAX);
    hk_notice_title(n, language, &out);
    size_t chars = check_shown(hk_buf_str(&out), false);
    MUST(hk_buf_status(&out) == HK_OK && chars > 0 && chars <= HK_WORDS_TITLE_MAX);
    hk_buf_reset(&out);
    hk_notice_text(n, language, &out);
    MUST(hk_buf_status(&out) == HK_OK && check_shown(hk_buf_str(&out), true) < 8000);
    hk_buf_fini(&out);
}

/* As a shell reads it: what is not between single quotes is made of harmless characters. */
static void check_command(const struct hk_notice *n)
{
    struct hk_buf out;
    bool quoted = false;
    hk_buf_init(&out, HK_BODY_MAX);
    hk_words_command(n, &out);
    MUST(hk_buf_status(&out) == HK_OK);
    for (size_t i = 0; i < out.len; i++) {
        char c = out.data[i];
        quoted = c == '\'' ? !quoted : quoted;
        MUST(quoted || hk_ascii_isalpha(c) || hk_ascii_isdigit(c) || strchr(" '_.-/@", c));
    }
    MUST(!quoted);
    hk_buf_fini(&out);
}

static void check_slack_text(const json_t *object, size_t max)
{
    struct hk_str text = {json_string_value(json_object_get(object, "text")),
                          json_string_length(json_object_get(object, "text"))};
    size_t chars = check_shown(text, true);
    MUST(chars > 0 && chars <= max && !memchr(text.ptr, '<', text.len) && !memchr(text.ptr, '>', text.len));
    for (size_t i = 0; i < text.len; i++) {
        struct hk_str rest = {text.ptr + i, text.len - i};
        MUST(text.ptr[i] != '&' || hk_str_starts(rest, hk_str_of("&amp;")) ||
             hk_str_starts(rest, hk_str_of("&lt;")) || hk_str_starts(rest, hk_str_of("&gt;")));
    }
}

static void check_slack_block(const json_t *block)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    const json_t *text = json_object_get(block, "text"), *fields = json_object_get(block, "fields");
    MUST(type && (text || fields || json_object_get(block, "elements")));
    if (text)
        check_slack_text(text, strcmp(type, "header") == 0 ? 150 : 3000);
    MUST(!fields || (json_array_size(fields) >= 1 && json_array_size(fields) <= 10));
    for (size_t i = 0; i < json_array_size(fields); i++)
        check_slack_text(json_array_get(fields, i), 2000);
}

static void check_slack(const struct hk_notice *n, enum hk_alert_language language)
{
    struct hk_buf body;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_body_slack(n, language, &body);
    json_t *root = parse(&body);
    const json_t *blocks = json_object_get(root, "blocks");
    MUST(json_array_size(blocks) >= 3 && json_array_size(blocks) <= 50);
    for (size_t i = 0; i < json_array_size(blocks); i++)
        check_slack_block(json_array_get(blocks, i));
    json_decref(root);
    hk_buf_fini(&body);
}

static void check_json(const struct hk_notice *n, enum hk_alert_language language)
{
    struct hk_buf body;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_body_json(n, language, n->rule, &body);
    json_t *root = parse(&body);
    MUST(json_object_get(json_object_get(root, "data"), "fingerprint"));
    json_decref(root);
    hk_buf_reset(&body);
    hk_body_pagerduty(n, language, "key", false, &body);
    root = parse(&body);
    MUST(json_string_length(json_object_get(root, "dedup_key")) <= 255 &&
         json_string_length(json_object_get(root, "dedup_key")) > 0);
    json_decref(root);
    hk_buf_fini(&body);
}

/* Every line of the header begins with one of our names, or goes on with one that did. */
static void check_mail(const struct hk_notice *n, enum hk_alert_language language)
{
    static const char *const names[] = {
        "From: ",         "To: ",          "Subject: ",        "Date: ",          "Message-ID: <",
        "In-Reply-To: <", "References: <", "Auto-Submitted: ", "X-Auto-Response", "X-Hikyaku-Notice: ",
        "MIME-Version: ", "Content-Type: "};
    const size_t n_names = sizeof names / sizeof names[0];
    const struct hk_mail_head head = {"飛脚 <a@example.com>", people, 2, n->rule};
    struct hk_buf out;
    size_t seen = 0;
    hk_buf_init(&out, HK_BODY_MAX);
    MUST(hk_body_mail(n, language, &head, &out, NULL) == HK_OK && strlen(hk_buf_cstr(&out)) == out.len);
    const char *end = strstr(hk_buf_cstr(&out), "\r\n\r\n");
    for (const char *line = out.data; line < end; line = strstr(line, "\r\n") + 2) {
        if (line[0] == ' ')
            continue;
        MUST(seen < n_names && strncmp(line, names[seen], strlen(names[seen])) == 0);
        seen++;
    }
    MUST(seen == n_names);
    for (size_t i = 0, column = 0; i < out.len; i++, column++) {
        unsigned char c = (unsigned char)out.data[i];
        MUST(c < 0x7f && (c >= 0x20 || c == '\r' || c == '\n') && column < 400);
        MUST(c != '\n' || (i > 0 && out.data[i - 1] == '\r'));
        MUST(c != '\r' || out.data[i + 1] == '\n');
        MUST(column != 0 || c != '.');
        if (c == '\n')
            column = SIZE_MAX;
    }
    hk_buf_fini(&out);
}

/* `out` has room for one text; those that are C strings end at a line end, so that they may hold anything but that. */
static char *cstr(struct hk_str s, char *out, size_t room)
{
    size_t len = s.len < room - 1 ? s.len : room - 1;
    if (len)
        memcpy(out, s.ptr, len);
    out[len] = '\0';
    return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char rule[512], fingerprint[512], relay[512], link[512];
    if (size < 2 || size > 8192)
        return 0;
    struct hk_str rest = {(const char *)data + 2, size - 2};
    struct hk_notice n = {
        .kind = (enum hk_notice_kind)(data[0] & 3),
        .severity = (enum hk_severity_level)((data[0] >> 2) % 3),
        .about = (enum hk_alert_kind)(data[1] % HK_NALERT_KINDS),
        .since_ms = (int64_t)((uint64_t)data[1] << 48) - (INT64_C(1) << 53),
        .at_ms = (int64_t)((uint64_t)data[0] << 50),
    };
    enum hk_alert_language language = data[0] & 0x80 ? HK_ALERT_JAPANESE : HK_ALERT_ENGLISH;
    n.destination = hk_str_cut(&rest, '\0');
    n.reason = hk_str_cut(&rest, '\0');
    n.event_type = hk_str_cut(&rest, '\0');
    n.example_id = hk_str_cut(&rest, '\0');
    n.rule = cstr(hk_str_cut(&rest, '\0'), rule, sizeof rule);
    n.fingerprint = cstr(hk_str_cut(&rest, '\0'), fingerprint, sizeof fingerprint);
    n.relay = cstr(hk_str_cut(&rest, '\0'), relay, sizeof relay);
    n.link = cstr(hk_str_cut(&rest, '\0'), link, sizeof link);
    n.count = rest.len;
    n.detail = rest;
    if (rest.len >= sizeof n.value + sizeof n.threshold) {
        memcpy(&n.value, rest.ptr, sizeof n.value);
        memcpy(&n.threshold, rest.ptr + sizeof n.value, sizeof n.threshold);
    }
    check_words(&n, language);
    check_command(&n);
    check_slack(&n, language);
    check_json(&n, language);
    check_mail(&n, language);
    return 0;
}
