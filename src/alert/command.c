/* SPDX-License-Identifier: Apache-2.0 */
/* The command that a notice suggests. People paste it into a shell, and parts of it come from messages: a value that is not safe
 * between single quotes is left out. */
#include <string.h>

#include <hikyaku/policy.h>

#include "alert/words.h"
#include "base/str.h"
#include "base/utf8.h"

#define ARGUMENT_MAX 200 /* bytes */
#define LINK_MAX     2000

static bool is_simple(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!hk_ascii_isalpha(s.ptr[i]) && !hk_ascii_isdigit(s.ptr[i]) && !memchr("_.-/@", s.ptr[i], 5))
            return false;
    }
    return s.len > 0 && s.ptr[0] != '-';
}

/* Letters, digits and signs of any language, seen as they are: nothing that hides, and no quotes. */
static bool is_quotable(struct hk_str s)
{
    if (s.len == 0 || s.len > ARGUMENT_MAX || s.ptr[0] == '-' || hk_str_trim(s).len < s.len)
        return false;
    while (s.len > 0) {
        uint32_t c;
        size_t taken = hk_utf8_next(s, &c);
        bool odd = c < 0x20 || (c >= 0x7f && c < 0xc0) || (c >= 0x2000 && c < 0x2070) || c >= 0xe000;
        if (odd || memchr("'\"\\`$!", s.ptr[0], 6))
            return false;
        s.ptr += taken;
        s.len -= taken;
    }
    return true;
}

static bool can_stand(struct hk_str s)
{
    return s.len <= ARGUMENT_MAX && (is_simple(s) || is_quotable(s));
}

/* A term of a filter (docs/filters.md). */
static void add_term(struct hk_buf *terms, const char *name, struct hk_str value)
{
    if (!can_stand(value) || memchr(value.ptr, '*', value.len)) /* of a rule for several: no single value */
        return;
    hk_buf_addf(terms, "%s%s:", terms->len ? " " : "", name);
    const char *quote = is_simple(value) ? "" : "\"";
    hk_buf_adds(terms, quote);
    hk_buf_add(terms, value.ptr, value.len);
    hk_buf_adds(terms, quote);
}

/* Filters take no other. */
static bool is_code(struct hk_str reason)
{
    char text[HK_REASON_MAX];
    return hk_str_copy(text, sizeof text, reason) && hk_reason_is_valid(text);
}

static void add_filter(const struct hk_notice *n, struct hk_buf *out)
{
    struct hk_buf terms;
    hk_buf_init(&terms, 1024);
    add_term(&terms, "destination", n->destination);
    if (is_code(n->reason))
        add_term(&terms, "reason", n->reason);
    if (terms.len > 0)
        hk_buf_addf(out, " --filter '%s'", hk_buf_cstr(&terms));
    hk_words_done(&terms, out);
}

static void add_argument(struct hk_buf *out, struct hk_str s)
{
    const char *quote = is_simple(s) ? "" : "'";
    hk_buf_addc(out, ' ');
    hk_buf_adds(out, quote);
    hk_buf_add(out, s.ptr, s.len);
    hk_buf_adds(out, quote);
}

/* `command` of `s`, else what needs no argument. */
static void add_of(struct hk_buf *out, const char *command, struct hk_str s, const char *otherwise)
{
    if (!can_stand(s)) {
        hk_buf_adds(out, otherwise);
        return;
    }
    hk_buf_adds(out, command);
    add_argument(out, s);
}

static void add_command(const struct hk_notice *n, struct hk_buf *out)
{
    switch (n->about) {
    case HK_ALERT_DEAD_LETTER: /* of many causes the groups show what they are */
        hk_buf_adds(out, hk_alert_is_of_others(n->about, n->destination, n->reason) ? "hikyaku dead groups"
                                                                                    : "hikyaku dead list");
        add_filter(n, out);
        break;
    case HK_ALERT_DEAD_LETTERS_ABOVE:
    case HK_ALERT_DEAD_LETTERS_RISING:
    case HK_ALERT_REQUEUE_FAILED:
        hk_buf_adds(out, "hikyaku dead groups");
        add_filter(n, out);
        break;
    case HK_ALERT_OLDEST_AGE:
        add_of(out, "hikyaku messages explain", n->example_id, "hikyaku status");
        break;
    case HK_ALERT_BREAKER_OPEN:
        add_of(out, "hikyaku destinations test", n->destination, "hikyaku destinations list");
        break;
    case HK_ALERT_PAUSED:
        add_of(out, "hikyaku destinations resume", n->destination, "hikyaku destinations list");
        break;
    case HK_ALERT_LAG_GROWING:
        hk_buf_adds(out, "hikyaku status");
        break;
    case HK_ALERT_STORE_UNREACHABLE:
    case HK_ALERT_NO_PROGRESS:
    case HK_ALERT_KEY_MISSING:
        hk_buf_adds(out, "hikyaku doctor");
        break;
    case HK_NALERT_KINDS:
        break;
    }
}

/* Below a limit there may still be letters. */
static bool leaves_letters(enum hk_alert_kind about)
{
    return about == HK_ALERT_DEAD_LETTERS_ABOVE || about == HK_ALERT_DEAD_LETTERS_RISING;
}

void hk_words_command(const struct hk_notice *notice, struct hk_buf *out)
{
    bool over = notice->kind == HK_NOTICE_RESOLVED;
    if (notice->kind != HK_NOTICE_TEST && (!over || leaves_letters(notice->about)))
        add_command(notice, out);
}

const char *hk_words_link(const struct hk_notice *notice)
{
    struct hk_str link = hk_str_of(notice->link);
    if (!hk_str_starts(link, hk_str_of("https://")) && !hk_str_starts(link, hk_str_of("http://")))
        return NULL;
    for (size_t i = 0; i < link.len; i++) {
        if (link.ptr[i] <= ' ' || link.ptr[i] > '~' || memchr("\"'<>\\^`{|}", link.ptr[i], 10))
            return NULL;
    }
    return link.len <= LINK_MAX ? notice->link : NULL;
}
