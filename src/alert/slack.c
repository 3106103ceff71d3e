/* SPDX-License-Identifier: Apache-2.0 */
/* Slack's Block Kit. What comes from outside stands in plain text or in code, never where markup is read; & < > are escaped
 * everywhere, and no text is longer than Slack takes (it refuses the whole message otherwise). */
#include "alert/body.h"
#include "base/json.h"
#include "base/str.h"
#include "base/utf8.h"

/* Slack's limits, in characters. */
enum {
    HEADER_MAX = 150,
    SECTION_MAX = 3000,
    FIELD_MAX = 2000,
    FIELDS_MAX = 10
};

struct blocks {
    struct hk_json json;
    struct hk_buf text; /* of one text object, or of the last line */
    unsigned fields;
    struct hk_buf detail, context;
};

/* Up to `max` characters as Slack counts them. `code`: it stands between backticks, and so must not hold any. */
static void add_escaped(struct hk_buf *out, struct hk_str s, size_t max, bool code)
{
    size_t chars = 0;
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        const char *as = c == '&'           ? "&amp;"
                         : c == '<'         ? "&lt;"
                         : c == '>'         ? "&gt;"
                         : code && c == '`' ? "'"
                                            : NULL;
        struct hk_str piece = as ? hk_str_of(as) : (struct hk_str){s.ptr, taken};
        size_t n = as ? piece.len : c > 0xffff ? 2 : 1; /* it may count as UTF-16 does */
        if (chars + n + (s.len > taken) > max) {
            hk_buf_adds(out, "…");
            return;
        }
        hk_buf_add(out, piece.ptr, piece.len);
        chars += n;
        s.ptr += taken;
        s.len -= taken;
    }
}

static void put_text(struct blocks *b, const char *type, struct hk_str text)
{
    bool plain = type[0] == 'p';
    hk_json_object(&b->json);
    hk_json_key(&b->json, "type");
    hk_json_cstr(&b->json, type);
    hk_json_key(&b->json, "text");
    hk_json_str(&b->json, text);
    hk_json_key(&b->json, plain
                              ? "emoji"
                              : "verbatim"); /* names are not turned into links, :words: not into pictures */
    hk_json_bool(&b->json, !plain);
    hk_json_end(&b->json);
}

static void begin_block(struct blocks *b, const char *type)
{
    hk_json_object(&b->json);
    hk_json_key(&b->json, "type");
    hk_json_cstr(&b->json, type);
}

static void put_plain_block(struct blocks *b, const char *type, struct hk_str text, size_t max)
{
    hk_words_again(&b->text, b->json.out);
    add_escaped(&b->text, text, max, false);
    begin_block(b, type);
    hk_json_key(&b->json, "text");
    put_text(b, "plain_text", hk_buf_str(&b->text));
    hk_json_end(&b->json);
}

/* A label and a value in code; `fence`: backticks on both sides. */
static void add_labelled(struct hk_buf *out, const char *label, const char *fence, struct hk_str value,
                         size_t max)
{
    hk_buf_addf(out, "*%s*\n%s", label, fence);
    add_escaped(out, value, max - 100, true);
    hk_buf_adds(out, fence);
}

static void on_fact(void *arg, enum hk_fact_kind kind, const char *label, struct hk_str value)
{
    struct blocks *b = arg;
    if (kind == HK_FACT_DETAIL) {
        add_labelled(&b->detail, label, "```", value, SECTION_MAX);
        return;
    }
    if (kind == HK_FACT_RULE || kind == HK_FACT_RELAY) {
        hk_buf_addf(&b->context, "%s%s: `", b->context.len ? "  " : "", label);
        add_escaped(&b->context, value, FIELD_MAX / 4, true);
        hk_buf_addc(&b->context, '`');
        return;
    }
    if (b->fields++ >= FIELDS_MAX)
        return;
    if (b->fields == 1) {
        begin_block(b, "section");
        hk_json_key(&b->json, "fields");
        hk_json_array(&b->json);
    }
    hk_words_again(&b->text, b->json.out);
    bool code = kind == HK_FACT_DESTINATION || kind == HK_FACT_REASON || kind == HK_FACT_EVENT_TYPE ||
                kind == HK_FACT_EXAMPLE || kind == HK_FACT_FIELDS;
    add_labelled(&b->text, label, code ? "`" : "", value, FIELD_MAX);
    put_text(b, "mrkdwn", hk_buf_str(&b->text));
}

static void put_markup_section(struct blocks *b, struct hk_str markup)
{
    begin_block(b, "section");
    hk_json_key(&b->json, "text");
    put_text(b, "mrkdwn", markup);
    hk_json_end(&b->json);
}

static void put_command(struct blocks *b, const struct hk_notice *notice, const char *label)
{
    struct hk_buf command;
    hk_buf_init(&command, HK_BODY_MAX);
    hk_words_command(notice, &command);
    if (command.len > 0) {
        hk_words_again(&b->text, b->json.out);
        add_labelled(&b->text, label, "```", hk_buf_str(&command), SECTION_MAX);
        put_markup_section(b, hk_buf_str(&b->text));
    }
    hk_words_done(&command, b->json.out);
}

static void put_button(struct blocks *b, const struct hk_notice *notice, const char *label)
{
    const char *link = hk_words_link(notice);
    if (!link)
        return;
    begin_block(b, "actions");
    hk_json_key(&b->json, "elements");
    hk_json_array(&b->json);
    begin_block(b, "button");
    hk_json_key(&b->json, "text");
    put_text(b, "plain_text", hk_str_of(label));
    hk_json_key(&b->json, "url");
    hk_json_cstr(&b->json, link);
    hk_json_key(&b->json, "action_id");
    hk_json_cstr(&b->json, "dashboard");
    hk_json_end(&b->json);
    hk_json_end(&b->json);
    hk_json_end(&b->json);
}

static void put_context(struct blocks *b)
{
    begin_block(b, "context");
    hk_json_key(&b->json, "elements");
    hk_json_array(&b->json);
    put_text(b, "mrkdwn", b->context.len ? hk_buf_str(&b->context) : hk_str_of("hikyaku"));
    hk_json_end(&b->json);
    hk_json_end(&b->json);
}

static void put_blocks(struct blocks *b, const struct hk_notice *notice, enum hk_alert_language language,
                       struct hk_str title)
{
    const struct hk_words *words = hk_words_of(language);
    struct hk_buf summary;
    hk_buf_init(&summary, HK_BODY_MAX);
    hk_words_summary(notice, language, &summary);
    put_plain_block(b, "header", title, HEADER_MAX);
    put_plain_block(b, "section", hk_buf_str(&summary), SECTION_MAX);
    hk_words_facts(notice, language, on_fact, b, b->json.out);
    if (b->fields > 0) { /* Slack takes no empty list of them */
        hk_json_end(&b->json);
        hk_json_end(&b->json);
    }
    if (b->detail.len > 0)
        put_markup_section(b, hk_buf_str(&b->detail));
    put_command(b, notice, words->next);
    put_button(b, notice, words->dashboard);
    put_context(b);
    hk_words_done(&summary, b->json.out);
}

void hk_body_slack(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out)
{
    struct blocks b = {.fields = 0};
    struct hk_buf title;
    hk_buf_init(&b.text, HK_BODY_MAX);
    hk_buf_init(&b.detail, HK_BODY_MAX);
    hk_buf_init(&b.context, HK_BODY_MAX);
    hk_buf_init(&title, HK_BODY_MAX);
    hk_json_init(&b.json, out, false);
    hk_notice_title(notice, language, &title);
    hk_json_object(&b.json);
    hk_json_key(&b.json, "text");
    add_escaped(&b.text, hk_buf_str(&title), SECTION_MAX, false);
    hk_json_str(&b.json, hk_buf_str(&b.text));
    hk_json_key(&b.json, "blocks");
    hk_json_array(&b.json);
    put_blocks(&b, notice, language, hk_buf_str(&title));
    hk_json_end(&b.json);
    hk_json_end(&b.json);
    hk_words_done(&title, out);
    hk_words_done(&b.context, out);
    hk_words_done(&b.detail, out);
    hk_words_done(&b.text, out);
}
