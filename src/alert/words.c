/* SPDX-License-Identifier: Apache-2.0 */
/* From a notice and a language's table to words. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "alert/words.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"

#define NAME_MAX_CHARS 60 /* of a name inside a sentence */
#define TITLE_BYTES    ((size_t)8 * 1024)

const struct hk_words *hk_words_of(enum hk_alert_language language)
{
    switch (language) {
    case HK_ALERT_ENGLISH:
        return &hk_words_en;
    case HK_ALERT_JAPANESE:
        return &hk_words_ja;
    }
    return &hk_words_en;
}

void hk_words_again(struct hk_buf *aside, struct hk_buf *out)
{
    if (aside->status != HK_OK && out->status == HK_OK)
        out->status = aside->status;
    hk_buf_reset(aside);
}

void hk_words_done(struct hk_buf *aside, struct hk_buf *out)
{
    hk_words_again(aside, out);
    hk_buf_fini(aside);
}

/* ---- numbers and times ---- */

static void add_count(struct hk_buf *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            hk_buf_addc(out, ',');
        hk_buf_addc(out, digits[i]);
    }
}

/* Whole numbers as such, others with one digit behind the point. */
static void add_number(struct hk_buf *out, double value)
{
    double whole;
    if (!isfinite(value) || fabs(value) >= 1e15) {
        hk_buf_adds(out, "?");
        return;
    }
    if (value < 0)
        hk_buf_addc(out, '-');
    double tenth = floor(modf(fabs(value), &whole) * 10);
    add_count(out, (uint64_t)whole);
    if (tenth > 0)
        hk_buf_addf(out, ".%u", (unsigned)tenth);
}

/* The two largest units: "2h 5m". */
static void add_duration(struct hk_buf *out, const struct hk_words *words, double seconds)
{
    static const uint64_t unit_s[] = {86400, 3600, 60, 1};
    if (!isfinite(seconds) || seconds >= 1e12) {
        hk_buf_adds(out, "?");
        return;
    }
    uint64_t left = seconds > 0 ? (uint64_t)seconds : 0;
    unsigned shown = 0;
    for (unsigned i = 0; i < 4 && shown < 2; i++) {
        uint64_t n = left / unit_s[i];
        if (n == 0 && (shown || i < 3)) {
            if (shown)
                break;
            continue;
        }
        hk_buf_adds(out, shown ? words->unit_gap : "");
        hk_buf_addf(out, "%" PRIu64 "%s", n, words->units[i]);
        left %= unit_s[i];
        shown++;
    }
}

static void add_time(struct hk_buf *out, const struct hk_words *words, int64_t unix_ms)
{
    char text[HK_TIME_TEXT_MAX];
    const int64_t offset_ms = words->utc_offset_hours * INT64_C(3600000);
    (void)hk_format_rfc3339(unix_ms > INT64_MAX - offset_ms ? unix_ms : unix_ms + offset_ms, text);
    text[10] = ' ';
    hk_buf_addf(out, "%.19s %s", text, words->zone);
}

static double age_s(const struct hk_notice *n)
{
    return n->at_ms > n->since_ms ? ((double)n->at_ms - (double)n->since_ms) / 1000 : 0;
}

enum unit {
    UNIT_NONE,
    UNIT_COUNT,
    UNIT_SECONDS
};

/* Of value and threshold. */
static enum unit unit_of(enum hk_alert_kind about)
{
    switch (about) {
    case HK_ALERT_OLDEST_AGE:
    case HK_ALERT_NO_PROGRESS:
    case HK_ALERT_LAG_GROWING:
        return UNIT_SECONDS;
    case HK_ALERT_DEAD_LETTERS_ABOVE:
    case HK_ALERT_DEAD_LETTERS_RISING:
        return UNIT_COUNT;
    case HK_ALERT_DEAD_LETTER:
    case HK_ALERT_BREAKER_OPEN:
    case HK_ALERT_PAUSED:
    case HK_ALERT_STORE_UNREACHABLE:
    case HK_ALERT_REQUEUE_FAILED:
    case HK_ALERT_KEY_MISSING:
    case HK_NALERT_KINDS:
        return UNIT_NONE;
    }
    return UNIT_NONE;
}

bool hk_words_compares(enum hk_alert_kind about)
{
    return unit_of(about) != UNIT_NONE;
}

/* ---- templates ---- */

struct telling {
    const struct hk_notice *notice;
    const struct hk_words *words;
    struct hk_buf *out;
};

static bool is(struct hk_str name, const char *expected)
{
    return hk_str_eq(name, hk_str_of(expected));
}

static void add_measure(const struct telling *t, double value)
{
    if (unit_of(t->notice->about) == UNIT_SECONDS)
        add_duration(t->out, t->words, value);
    else
        add_number(t->out, value);
}

/* A foreign text: false when it is empty. */
static bool add_text(const struct telling *t, struct hk_str text)
{
    hk_show_plain(text, NAME_MAX_CHARS, t->out);
    return text.len > 0;
}

/* False: it has no value. Zero has one in a sentence, and none where it may be left out. */
static bool add_value(const struct telling *t, struct hk_str name)
{
    const struct hk_notice *n = t->notice;
    if (is(name, "dest"))
        return add_text(t, n->destination);
    if (is(name, "reason"))
        return add_text(t, n->reason);
    if (is(name, "relay"))
        return add_text(t, hk_str_of(n->relay));
    if (is(name, "age")) {
        add_duration(t->out, t->words, age_s(n));
        return true;
    }
    if (is(name, "time")) {
        add_time(t->out, t->words, n->since_ms);
        return true;
    }
    if (is(name, "n")) {
        add_count(t->out, n->count);
        return n->count > 0;
    }
    bool limit = is(name, "limit");
    add_measure(t, limit ? n->threshold : n->value);
    return !limit || n->threshold > 0;
}

/* "n:one|many" */
static void add_choice(const struct telling *t, struct hk_str name, struct hk_str forms)
{
    bool one = is(name, "n") ? t->notice->count == 1 : fabs(t->notice->value - 1) < 1e-9;
    struct hk_str first = hk_str_cut(&forms, '|');
    struct hk_str form = one ? first : forms;
    hk_buf_add(t->out, form.ptr, form.len);
}

/* Without brackets. False when some name had no value. */
static bool fill(const struct telling *t, struct hk_str text)
{
    bool whole = true;
    while (text.len > 0) {
        struct hk_str plain = hk_str_cut(&text, '{');
        hk_buf_add(t->out, plain.ptr, plain.len);
        if (!text.ptr)
            break;
        struct hk_str forms = hk_str_cut(&text, '}');
        struct hk_str name = hk_str_cut(&forms, ':');
        if (forms.ptr)
            add_choice(t, name, forms);
        else
            whole = add_value(t, name) && whole;
    }
    return whole;
}

static void fill_or_leave(const struct telling *t, struct hk_str text)
{
    size_t before = t->out->len;
    if (fill(t, text) || hk_buf_status(t->out) != HK_OK || !t->out->data)
        return;
    t->out->len = before;
    t->out->data[before] = '\0';
}

static void tell(const struct telling *t, const char *template)
{
    struct hk_str text = hk_str_of(template);
    while (text.len > 0) {
        struct hk_str needed = hk_str_cut(&text, '[');
        (void)fill(t, needed);
        if (text.ptr)
            fill_or_leave(t, hk_str_cut(&text, ']'));
    }
}

/* ---- titles and sentences ---- */

static enum hk_severity_level level_of(const struct hk_notice *n)
{
    return (unsigned)n->severity <= HK_ALERT_CRITICAL ? n->severity : HK_ALERT_CRITICAL;
}

static const struct hk_words_kind *kind_of(const struct telling *t)
{
    const struct hk_notice *n = t->notice;
    unsigned about = (unsigned)n->about < HK_NALERT_KINDS ? (unsigned)n->about : HK_ALERT_DEAD_LETTER;
    if (hk_alert_is_of_others((enum hk_alert_kind)about, n->destination, n->reason))
        return &t->words->others[about];
    return &t->words->kinds[about];
}

static void tell_title(const struct telling *t)
{
    const struct hk_words *w = t->words;
    enum hk_severity_level level = level_of(t->notice);
    switch (t->notice->kind) {
    case HK_NOTICE_FIRING:
        hk_buf_adds(t->out, w->level[level]);
        tell(t, kind_of(t)->title);
        break;
    case HK_NOTICE_UPDATE:
        hk_buf_adds(t->out, w->level_update[level]);
        tell(t, kind_of(t)->title);
        break;
    case HK_NOTICE_RESOLVED:
        hk_buf_adds(t->out, w->over);
        tell(t, kind_of(t)->ended);
        break;
    case HK_NOTICE_TEST:
        hk_buf_adds(t->out, w->test);
        tell(t, w->test_title);
        break;
    }
}

void hk_notice_title(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out)
{
    struct hk_buf line;
    hk_buf_init(&line, TITLE_BYTES);
    const struct telling t = {notice, hk_words_of(language), &line};
    tell_title(&t);
    hk_show_plain(hk_buf_str(&line), HK_WORDS_TITLE_MAX, out);
    hk_words_done(&line, out);
}

void hk_words_summary(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out)
{
    const struct telling t = {notice, hk_words_of(language), out};
    switch (notice->kind) {
    case HK_NOTICE_FIRING:
        tell(&t, kind_of(&t)->text);
        break;
    case HK_NOTICE_UPDATE:
        tell(&t, kind_of(&t)->text);
        if (age_s(notice) >= 1)
            tell(&t, t.words->still);
        break;
    case HK_NOTICE_RESOLVED:
        tell(&t, kind_of(&t)->ended_text);
        break;
    case HK_NOTICE_TEST:
        tell(&t, t.words->test_text);
        break;
    }
}

/* ---- facts ---- */

static struct hk_str text_of(const struct hk_notice *n, enum hk_fact_kind kind)
{
    switch (kind) {
    case HK_FACT_DESTINATION:
        return n->destination;
    case HK_FACT_REASON:
        return n->reason;
    case HK_FACT_EVENT_TYPE:
        return n->event_type;
    case HK_FACT_EXAMPLE:
        return n->example_id;
    case HK_FACT_DETAIL:
        return n->detail;
    case HK_FACT_RULE:
        return hk_str_of(n->rule);
    case HK_FACT_RELAY:
        return hk_str_of(n->relay);
    case HK_FACT_SEVERITY:
    case HK_FACT_COUNT:
    case HK_FACT_VALUE:
    case HK_FACT_SINCE:
    case HK_FACT_STORY:
    case HK_FACT_FIELDS:
    case HK_NFACTS:
        break;
    }
    return (struct hk_str){NULL, 0};
}

/* Each other alert of the story as its own title would say it. */
static void add_story(const struct telling *t)
{
    const struct hk_notice *n = t->notice;
    for (size_t i = 0; i < n->n_lines && i < HK_NOTICE_LINES_MAX; i++) {
        const struct hk_notice_line *line = &n->lines[i];
        const struct hk_notice one = {.about = line->about,
                                      .destination = line->destination,
                                      .reason = line->reason,
                                      .count = line->count,
                                      .value = line->value,
                                      .threshold = line->threshold};
        const struct telling of_one = {&one, t->words, t->out};
        hk_buf_adds(t->out, i ? t->words->story_gap : "");
        tell(&of_one, line->over ? kind_of(&of_one)->ended : kind_of(&of_one)->title);
    }
    if (!n->n_lines || !n->more_lines)
        return;
    const struct hk_notice more = {.count = n->more_lines};
    const struct telling of_more = {&more, t->words, t->out};
    hk_buf_adds(t->out, t->words->story_gap);
    tell(&of_more, t->words->story_more);
}

/* "sessionId: s-1; card: (masked)". A value that could be taken for another field stands in quotes. */
static void add_fields(const struct telling *t)
{
    const struct hk_notice *n = t->notice;
    for (size_t i = 0; i < n->n_fields && i < HK_ALERT_FIELDS; i++) {
        const struct hk_alert_field *f = &n->fields[i];
        bool shown = f->state == HK_ALERT_FIELD_SHOWN;
        bool quoted = shown && (!f->value.len || memchr(f->value.ptr, ';', f->value.len));
        hk_buf_adds(t->out, i ? "; " : "");
        hk_show_plain(f->path, NAME_MAX_CHARS, t->out);
        hk_buf_adds(t->out, quoted ? ": \"" : ": ");
        if (shown)
            hk_show_plain(f->value, HK_ALERT_FIELD_MAX, t->out);
        else
            hk_buf_adds(t->out, t->words->field[f->state]);
        hk_buf_adds(t->out, quoted ? "\"" : "");
    }
}

/* When it is over, what was measured last is of no use; and a test is about nothing. */
static bool applies(const struct hk_notice *n, enum hk_fact_kind kind)
{
    if (n->kind == HK_NOTICE_TEST)
        return kind == HK_FACT_RULE || kind == HK_FACT_RELAY;
    bool of_now = kind == HK_FACT_SEVERITY || kind == HK_FACT_VALUE || kind == HK_FACT_DETAIL;
    return n->kind != HK_NOTICE_RESOLVED || !of_now;
}

static void add_fact(const struct telling *t, enum hk_fact_kind kind)
{
    const struct hk_notice *n = t->notice;
    switch (kind) {
    case HK_FACT_SEVERITY:
        hk_buf_adds(t->out, t->words->level_name[level_of(n)]);
        break;
    case HK_FACT_COUNT:
        if (n->count > 0)
            add_count(t->out, n->count);
        break;
    case HK_FACT_VALUE:
        if (hk_words_compares(n->about))
            tell(t, n->about == HK_ALERT_LAG_GROWING ? "{value}"
                                                     : t->words->measured); /* a window is no limit */
        break;
    case HK_FACT_SINCE:
        tell(t, age_s(n) >= 1 ? t->words->since : t->words->since_now);
        break;
    case HK_FACT_STORY:
        add_story(t);
        break;
    case HK_FACT_FIELDS:
        add_fields(t);
        break;
    case HK_FACT_DESTINATION:
    case HK_FACT_REASON:
    case HK_FACT_EVENT_TYPE:
    case HK_FACT_EXAMPLE:
    case HK_FACT_DETAIL:
    case HK_FACT_RULE:
    case HK_FACT_RELAY:
    case HK_NFACTS:
        hk_show_plain(text_of(n, kind), kind == HK_FACT_DETAIL ? HK_WORDS_DETAIL_MAX : HK_WORDS_VALUE_MAX,
                      t->out);
        break;
    }
}

void hk_words_facts(const struct hk_notice *notice, enum hk_alert_language language, hk_words_fact_fn *each,
                    void *arg, struct hk_buf *out)
{
    struct hk_buf value;
    hk_buf_init(&value, TITLE_BYTES);
    const struct telling t = {notice, hk_words_of(language), &value};
    for (unsigned i = 0; i < HK_NFACTS; i++) {
        enum hk_fact_kind kind = (enum hk_fact_kind)i;
        bool paused = kind == HK_FACT_DETAIL && notice->about == HK_ALERT_PAUSED;
        if (!applies(notice, kind))
            continue;
        add_fact(&t, kind);
        if (value.len > 0)
            each(arg, kind, paused ? t.words->paused_label : t.words->label[i], hk_buf_str(&value));
        hk_words_again(&value, out);
    }
    hk_buf_fini(&value);
}

/* ---- the whole text ---- */

struct lines {
    struct hk_buf *out;
    const struct hk_words *words;
};

static void add_line(const struct lines *l, const char *label, struct hk_str value)
{
    hk_buf_adds(l->out, label);
    hk_buf_adds(l->out, l->words->colon);
    hk_buf_add(l->out, value.ptr, value.len);
    hk_buf_addc(l->out, '\n');
}

static void add_fact_line(void *arg, enum hk_fact_kind kind, const char *label, struct hk_str value)
{
    (void)kind;
    add_line(arg, label, value);
}

void hk_notice_text(const struct hk_notice *notice, enum hk_alert_language language, struct hk_buf *out)
{
    struct hk_buf command;
    const struct lines l = {out, hk_words_of(language)};
    struct lines writable = l;
    hk_buf_init(&command, TITLE_BYTES);
    hk_words_summary(notice, language, out);
    hk_buf_adds(out, "\n\n");
    hk_words_facts(notice, language, add_fact_line, &writable, out);
    hk_words_command(notice, &command);
    const char *link = hk_words_link(notice);
    if (command.len > 0 || link)
        hk_buf_addc(out, '\n');
    if (command.len > 0)
        add_line(&l, l.words->next, hk_buf_str(&command));
    if (link)
        add_line(&l, l.words->dashboard, hk_str_of(link));
    hk_words_done(&command, out);
}
