/* SPDX-License-Identifier: Apache-2.0 */
/* One mail as RFC 5322 and MIME have it. Bodies are base64, so that no line of them can be taken for anything else; header
 * fields hold what was checked or encoded, so that nothing can add a line to them. */
#include <stdio.h>
#include <string.h>

#include "alert/body.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"

#define LINE_MAX_COLS  76
#define ADDRESS_MAX    254
#define NAME_MAX_BYTES 200
#define QUOTED_MAX     50 /* of a name: longer ones are encoded, which can be folded */
#define TOKEN_MAX      64
#define BOUNDARY       "=_hikyaku_notice" /* "=_" is in no base64 */

#define WORD_BEGIN "=?UTF-8?B?"
#define WORD_END   "?="

/* ---- header fields ---- */

static bool is_plain_ascii(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < ' ' || s.ptr[i] > '~' || (i + 1 < s.len && memcmp(s.ptr + i, "=?", 2) == 0))
            return false;
    }
    return true;
}

/* How much of `s` one encoded word of at most `cols` columns can take, whole characters only. */
static size_t chunk_of(struct hk_str s, size_t cols)
{
    const size_t room = (cols - (sizeof WORD_BEGIN WORD_END - 1)) / 4 * 3;
    size_t len = 0;
    while (len < s.len) {
        uint32_t c;
        size_t n = hk_utf8_next((struct hk_str){s.ptr + len, s.len - len}, &c);
        if (len + n > room)
            break;
        len += n;
    }
    return len;
}

/* RFC 2047, from column `at` on; each word stands on a line of its own. */
static void add_encoded(struct hk_buf *out, struct hk_str s, size_t at)
{
    while (s.len > 0) {
        size_t n = chunk_of(s, LINE_MAX_COLS - at - 1);
        hk_buf_adds(out, WORD_BEGIN);
        hk_buf_add_base64(out, s.ptr, n);
        hk_buf_adds(out, WORD_END);
        s.ptr += n;
        s.len -= n;
        if (s.len > 0)
            hk_buf_adds(out, "\r\n ");
        at = 1;
    }
}

static void add_subject(struct hk_buf *out, struct hk_str title)
{
    static const char name[] = "Subject: ";
    hk_buf_adds(out, name);
    bool short_enough = title.len + sizeof name <= LINE_MAX_COLS;
    bool odd_blanks = title.len > 0 && (title.ptr[0] == ' ' || title.ptr[title.len - 1] == ' ');
    if (short_enough && !odd_blanks && is_plain_ascii(title))
        hk_buf_add(out, title.ptr, title.len);
    else
        add_encoded(out, title, sizeof name - 1);
    hk_buf_adds(out, "\r\n");
}

/* ---- addresses ---- */

static bool is_address(struct hk_str s)
{
    const char *at = s.len ? memchr(s.ptr, '@', s.len) : NULL;
    if (!at || at == s.ptr || at == s.ptr + s.len - 1 || s.len > ADDRESS_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        bool in_domain = s.ptr + i > at;
        bool letter = hk_ascii_isalpha(c) || hk_ascii_isdigit(c);
        if (!letter && s.ptr + i != at &&
            (c == '\0' || !strchr(in_domain ? ".-" : "!#$%&'*+-/=?^_`{|}~.", c)))
            return false;
    }
    return true;
}

/* "Name <address>", "<address>" or an address. */
static bool split(const char *text, struct hk_str *out_name, struct hk_str *out_address)
{
    struct hk_str s = hk_str_trim(hk_str_of(text));
    const char *open = s.len ? memchr(s.ptr, '<', s.len) : NULL;
    *out_name = (struct hk_str){"", 0};
    *out_address = s;
    if (open) {
        if (s.ptr[s.len - 1] != '>')
            return false;
        *out_name = hk_str_trim((struct hk_str){s.ptr, (size_t)(open - s.ptr)});
        *out_address = (struct hk_str){open + 1, s.len - (size_t)(open - s.ptr) - 2};
    }
    if (out_name->len >= 2 && out_name->ptr[0] == '"' && out_name->ptr[out_name->len - 1] == '"')
        *out_name = (struct hk_str){out_name->ptr + 1, out_name->len - 2};
    if (out_name->len > NAME_MAX_BYTES || !hk_utf8_is_text(*out_name))
        return false;
    for (size_t i = 0; i < out_name->len; i++)
        if ((unsigned char)out_name->ptr[i] < ' ' || out_name->ptr[i] == 0x7f)
            return false;
    return is_address(*out_address);
}

enum hk_code hk_mail_address(const char *text, char *out, size_t room, struct hk_err *err)
{
    struct hk_str name, address;
    if (!text || !split(text, &name, &address) || !hk_str_copy(out, room, address))
        return hk_err_set(err, HK_INVALID,
                          "an address must be like ops@example.com or Name <ops@example.com>");
    return HK_OK;
}

/* A long name stands on a line of its own. The field's name before it is no longer than "From: ". */
static bool add_mailbox(struct hk_buf *out, const char *text)
{
    struct hk_str name, address;
    if (!split(text, &name, &address))
        return false;
    if (name.len > QUOTED_MAX || !is_plain_ascii(name)) {
        add_encoded(out, name, sizeof "From: " - 1);
        hk_buf_adds(out, "\r\n ");
    } else if (name.len > 0) {
        hk_buf_addc(out, '"');
        for (size_t i = 0; i < name.len; i++) {
            if (name.ptr[i] == '"' || name.ptr[i] == '\\')
                hk_buf_addc(out, '\\');
            hk_buf_addc(out, name.ptr[i]);
        }
        hk_buf_adds(out, name.len + address.len < LINE_MAX_COLS - 16 ? "\" " : "\"\r\n ");
    }
    hk_buf_addc(out, '<');
    hk_buf_add(out, address.ptr, address.len);
    hk_buf_addc(out, '>');
    return true;
}

static bool add_people(struct hk_buf *out, const struct hk_mail_head *head)
{
    hk_buf_adds(out, "From: ");
    bool ok = add_mailbox(out, head->from);
    hk_buf_adds(out, "\r\nTo: ");
    for (size_t i = 0; i < head->n_to && ok; i++) {
        hk_buf_adds(out, i ? ",\r\n " : "");
        ok = add_mailbox(out, head->to[i]);
    }
    hk_buf_adds(out, "\r\n");
    return ok && head->n_to > 0;
}

/* ---- times and identifiers ---- */

/* "Sun, 15 Nov 2026 08:30:00 +0000" */
static void add_date(struct hk_buf *out, int64_t unix_ms)
{
    static const char days[] = "ThuFriSatSunMonTueWed"; /* from 1970-01-01 on */
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    char t[HK_TIME_TEXT_MAX];
    int64_t back_ms = 0;
    (void)hk_format_rfc3339(unix_ms, t);
    if (hk_parse_rfc3339(hk_str_of(t), &back_ms, NULL) != HK_OK) /* within the years that can be written */
        back_ms = 0;
    int64_t day = back_ms / 86400000 - (back_ms % 86400000 < 0);
    int64_t weekday = (day % 7 + 7) % 7;
    int month = (t[5] - '0') * 10 + (t[6] - '0') - 1;
    hk_buf_addf(out, "Date: %.3s, %.2s %.3s %.4s %.8s +0000\r\n", days + 3 * weekday, t + 8,
                months + 3 * month, t, t + 11);
}

/* The domain is the sender's. One alert is one thread: all of its mails answer one that never was. */
static void add_ids(struct hk_buf *out, const struct hk_notice *notice, const struct hk_mail_head *head)
{
    char id[TOKEN_MAX + 1], thread[TOKEN_MAX + 1], from[ADDRESS_MAX + 1];
    hk_body_token(head->id, TOKEN_MAX, id);
    hk_body_token(notice->fingerprint, TOKEN_MAX, thread);
    if (hk_mail_address(head->from, from, sizeof from, NULL) != HK_OK)
        return;
    const char *domain = strchr(from, '@');
    hk_buf_addf(out, "Message-ID: <%s%s>\r\n", id, domain);
    hk_buf_addf(out, "In-Reply-To: <alert.%s%s>\r\n", thread, domain);
    hk_buf_addf(out, "References: <alert.%s%s>\r\n", thread, domain);
}

/* ---- bodies ---- */

static void add_base64_lines(struct hk_buf *out, struct hk_str s)
{
    const size_t per_line = LINE_MAX_COLS / 4 * 3;
    while (s.len > 0) {
        size_t n = s.len < per_line ? s.len : per_line;
        hk_buf_add_base64(out, s.ptr, n);
        hk_buf_adds(out, "\r\n");
        s.ptr += n;
        s.len -= n;
    }
}

static void add_part(struct hk_buf *out, const char *type, struct hk_str body)
{
    struct hk_buf lines;
    hk_buf_init(&lines, HK_BODY_MAX);
    for (size_t i = 0; i < body.len; i++) {
        if (body.ptr[i] == '\n')
            hk_buf_addc(&lines, '\r');
        hk_buf_addc(&lines, body.ptr[i]);
    }
    hk_buf_addf(out,
                "\r\n--%s\r\nContent-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n"
                "Content-Disposition: inline\r\n\r\n",
                BOUNDARY, type);
    add_base64_lines(out, hk_buf_str(&lines));
    hk_words_done(&lines, out);
}

static void add_html(struct hk_buf *out, struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        switch (s.ptr[i]) {
        case '&':
            hk_buf_adds(out, "&amp;");
            break;
        case '<':
            hk_buf_adds(out, "&lt;");
            break;
        case '>':
            hk_buf_adds(out, "&gt;");
            break;
        case '"':
            hk_buf_adds(out, "&quot;");
            break;
        case '\'':
            hk_buf_adds(out, "&#39;");
            break;
        default:
            hk_buf_addc(out, s.ptr[i]);
            break;
        }
    }
}

static void on_fact(void *arg, enum hk_fact_kind kind, const char *label, struct hk_str value)
{
    struct hk_buf *out = arg;
    bool code = kind == HK_FACT_DESTINATION || kind == HK_FACT_REASON || kind == HK_FACT_EVENT_TYPE ||
                kind == HK_FACT_EXAMPLE || kind == HK_FACT_DETAIL;
    hk_buf_addf(
        out,
        "<tr><th align=\"left\" valign=\"top\" style=\"padding:2px 16px 2px 0;white-space:nowrap\">%s</th>"
        "<td style=\"padding:2px 0\">%s",
        label, code ? "<code>" : "");
    add_html(out, value);
    hk_buf_adds(out, code ? "</code></td></tr>\n" : "</td></tr>\n");
}

static const char *colour_of(const struct hk_notice *n)
{
    if (n->kind == HK_NOTICE_RESOLVED)
        return "#1a7f37";
    if (n->kind == HK_NOTICE_TEST || n->severity == HK_ALERT_INFO)
        return "#0969da";
    return n->severity == HK_ALERT_WARNING ? "#9a6700" : "#cf222e";
}

static void add_ending(struct hk_buf *out, const struct hk_notice *n, const struct hk_words *words)
{
    struct hk_buf command;
    const char *link = hk_words_link(n);
    hk_buf_init(&command, HK_BODY_MAX);
    hk_words_command(n, &command);
    if (command.len > 0) {
        hk_buf_addf(out, "<p>%s%s</p>\n<pre style=\"background:#f6f8fa;padding:8px\">", words->next,
                    words->colon);
        add_html(out, hk_buf_str(&command));
        hk_buf_adds(out, "</pre>\n");
    }
    if (link) {
        hk_buf_adds(out, "<p><a href=\"");
        add_html(out, hk_str_of(link));
        hk_buf_addf(out, "\">%s</a></p>\n", words->dashboard);
    }
    hk_words_done(&command, out);
}

static void add_page(struct hk_buf *out, const struct hk_notice *n, enum hk_alert_language language,
                     struct hk_str title)
{
    struct hk_buf summary;
    hk_buf_init(&summary, HK_BODY_MAX);
    hk_words_summary(n, language, &summary);
    hk_buf_addf(out,
                "<!DOCTYPE html>\n<html lang=\"%s\"><head><meta charset=\"utf-8\"></head>\n"
                "<body style=\"font-family:sans-serif;color:#1f2328\">\n"
                "<h2 style=\"border-left:6px solid %s;padding-left:10px\">",
                language == HK_ALERT_JAPANESE ? "ja" : "en", colour_of(n));
    add_html(out, title);
    hk_buf_adds(out, "</h2>\n<p>");
    add_html(out, hk_buf_str(&summary));
    hk_buf_adds(out, "</p>\n<table cellspacing=\"0\" cellpadding=\"0\">\n");
    hk_words_facts(n, language, on_fact, out, out);
    hk_buf_adds(out, "</table>\n");
    add_ending(out, n, hk_words_of(language));
    hk_buf_adds(out, "</body></html>\n");
    hk_words_done(&summary, out);
}

static void add_bodies(struct hk_buf *out, const struct hk_notice *n, enum hk_alert_language language,
                       struct hk_str title)
{
    struct hk_buf body;
    hk_buf_init(&body, HK_BODY_MAX);
    hk_notice_text(n, language, &body);
    add_part(out, "text/plain", hk_buf_str(&body));
    hk_words_again(&body, out);
    add_page(&body, n, language, title);
    add_part(out, "text/html", hk_buf_str(&body));
    hk_buf_addf(out, "\r\n--%s--\r\n", BOUNDARY);
    hk_words_done(&body, out);
}

enum hk_code hk_body_mail(const struct hk_notice *notice, enum hk_alert_language language,
                          const struct hk_mail_head *head, struct hk_buf *out, struct hk_err *err)
{
    struct hk_buf title;
    hk_buf_init(&title, HK_BODY_MAX);
    hk_notice_title(notice, language, &title);
    bool ok = add_people(out, head);
    add_subject(out, hk_buf_str(&title));
    add_date(out, notice->at_ms);
    add_ids(out, notice, head);
    hk_buf_addf(out,
                "Auto-Submitted: auto-generated\r\nX-Auto-Response-Suppress: All\r\n"
                "X-Hikyaku-Notice: %s; severity=%s; about=%s\r\nMIME-Version: 1.0\r\n"
                "Content-Type: multipart/alternative;\r\n boundary=\"%s\"\r\n",
                hk_notice_word(notice->kind), hk_severity_word(notice->severity),
                hk_alert_kind_word(notice->about), BOUNDARY);
    add_bodies(out, notice, language, hk_buf_str(&title));
    hk_words_done(&title, out);
    if (!ok)
        return hk_err_set(err, HK_INVALID, "from and to must be addresses like ops@example.com");
    return hk_buf_status(out) == HK_OK ? HK_OK
                                       : hk_err_set(err, hk_buf_status(out), "the mail cannot be written");
}
