/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told: every notice in both languages as in the golden files (written anew with GOLDEN=write, to be read by
 * somebody who speaks the language), and nothing that a text can hold gets out of its place. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "alert/body.h"
#include "alert/send.h"
#include "alert/words.h"
#include "base/base64.h"
#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "check.h"
#include "failing.h"

#define AT INT64_C(1794700725000) /* 2026-11-14T23:58:45Z */

static const enum hk_alert_language languages[] = {HK_ALERT_ENGLISH, HK_ALERT_JAPANESE};

static struct hk_str str(const char *s)
{
    return hk_str_of(s);
}

/* Typical facts of each kind, as rules find them. */
static struct hk_notice notice_of(enum hk_alert_kind about, enum hk_notice_kind kind)
{
    bool letters = about == HK_ALERT_DEAD_LETTER || about == HK_ALERT_REQUEUE_FAILED;
    bool named = letters || about == HK_ALERT_BREAKER_OPEN || about == HK_ALERT_PAUSED;
    bool above = about == HK_ALERT_DEAD_LETTERS_ABOVE || about == HK_ALERT_DEAD_LETTERS_RISING;
    bool ages =
        about == HK_ALERT_OLDEST_AGE || about == HK_ALERT_NO_PROGRESS || about == HK_ALERT_LAG_GROWING;
    const char *detail = about == HK_ALERT_PAUSED              ? "alice: INC-1234, charged twice"
                         : about == HK_ALERT_STORE_UNREACHABLE ? "connection refused"
                         : about == HK_ALERT_KEY_MISSING       ? "no key 2026-11 is configured"
                         : letters                             ? "422 Unprocessable Entity"
                                                               : "";
    return (struct hk_notice){
        .kind = kind,
        .severity = above ? HK_ALERT_WARNING : HK_ALERT_CRITICAL,
        .about = about,
        .rule = "night-watch",
        .fingerprint = "3f2a91c04be7d512",
        .count = letters ? 10000 : 0,
        .since_ms = AT - 7505000,
        .at_ms = AT,
        .destination = str(named ? "billing" : ""),
        .reason = str(letters ? "HTTP_422" : ""),
        .event_type = str(letters ? "OrderCreated" : ""),
        .example_id = str(letters ? "01J9Z3-0042" : ""),
        .detail = str(detail),
        .value = above  ? 1204
                 : ages ? 7505
                        : 0,
        .threshold = above  ? 1000
                     : ages ? 300
                            : 0,
        .relay = "relay-1",
        .link = "https://ops.example.com/hikyaku",
    };
}

/* ---- golden files ---- */

static void add_one(const struct hk_notice *n, const char *more, enum hk_alert_language language,
                    struct hk_buf *out)
{
    hk_buf_addf(out, "==== %s, %s%s\n", hk_alert_kind_word(n->about), hk_notice_word(n->kind), more);
    hk_notice_title(n, language, out);
    hk_buf_adds(out, "\n\n");
    hk_notice_text(n, language, out);
    hk_buf_addc(out, '\n');
}

/* What came beyond alerts.separate. */
static void add_others(struct hk_notice n, enum hk_alert_language language, struct hk_buf *out)
{
    n.destination = n.reason = n.event_type = str("");
    if (n.about == HK_ALERT_PAUSED)
        n.detail = str("");
    n.value = n.about == HK_ALERT_PAUSED ? 1 : n.about == HK_ALERT_BREAKER_OPEN ? 990 : 0;
    if (hk_alert_is_of_others(n.about, n.destination, n.reason) && n.kind != HK_NOTICE_TEST)
        add_one(&n, ", others", language, out);
}

/* One that speaks for others, too. */
static void add_story(struct hk_notice n, enum hk_alert_language language, struct hk_buf *out)
{
    if (n.about != HK_ALERT_BREAKER_OPEN || n.kind == HK_NOTICE_TEST)
        return;
    bool over = n.kind == HK_NOTICE_RESOLVED;
    n.lines[n.n_lines++] = (struct hk_notice_line){.about = HK_ALERT_DEAD_LETTER,
                                                   .destination = n.destination,
                                                   .reason = str("RETRY_EXHAUSTED"),
                                                   .count = 312};
    n.lines[n.n_lines++] = (struct hk_notice_line){.about = HK_ALERT_OLDEST_AGE,
                                                   .destination = n.destination,
                                                   .reason = str(""),
                                                   .value = 1260,
                                                   .threshold = 900,
                                                   .over = over};
    n.more_lines = over;
    add_one(&n, ", with others", language, out);
}

static void add_all(enum hk_alert_language language, struct hk_buf *out)
{
    for (unsigned about = 0; about < HK_NALERT_KINDS; about++) {
        for (unsigned kind = HK_NOTICE_FIRING; kind <= HK_NOTICE_TEST; kind++) {
            const struct hk_notice n = notice_of((enum hk_alert_kind)about, (enum hk_notice_kind)kind);
            add_one(&n, "", language, out);
            add_others(n, language, out);
            add_story(n, language, out);
        }
    }
    assert_int_equal(hk_buf_status(out), HK_OK);
}

static void compare(const char *name, const struct hk_buf *with)
{
    char path[512], *text = NULL;
    const char *folder = getenv("GOLDEN_DIR"), *how = getenv("GOLDEN");
    assert_non_null(folder);
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    bool write = how && strcmp(how, "write") == 0;
    FILE *file = fopen(path, write ? "wb" : "rb");
    NOTE_IF(!file, "%s: %s\n", path, strerror(errno));
    assert_non_null(file);
    if (write) {
        assert_int_equal(fwrite(hk_buf_cstr(with), 1, with->len, file), with->len);
    } else {
        text = calloc(1, with->len + 2);
        size_t n = fread(text, 1, with->len + 1, file);
        NOTE_IF(n != with->len || memcmp(text, hk_buf_cstr(with), n) != 0, "%s differs from:\n%s\n", path,
                hk_buf_cstr(with));
        assert_int_equal(n, with->len);
        assert_memory_equal(text, hk_buf_cstr(with), n);
    }
    free(text);
    assert_int_equal(fclose(file), 0);
}

static void every_notice_reads_as_in_the_golden_files(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, (size_t)1 << 20);
    add_all(HK_ALERT_ENGLISH, &out);
    compare("notice.en.txt", &out);
    hk_buf_reset(&out);
    add_all(HK_ALERT_JAPANESE, &out);
    compare("notice.ja.txt", &out);
    hk_buf_fini(&out);
}

/* ---- single words ---- */

static void check_title(const struct hk_notice *n, enum hk_alert_language language, const char *expected)
{
    struct hk_buf out;
    hk_buf_init(&out, 4096);
    hk_notice_title(n, language, &out);
    assert_string_equal(hk_buf_cstr(&out), expected);
    hk_buf_fini(&out);
}

static void plural_forms_and_what_is_missing(void **state)
{
    (void)state;
    struct hk_notice n = notice_of(HK_ALERT_DEAD_LETTER, HK_NOTICE_FIRING);
    n.count = 1;
    check_title(&n, HK_ALERT_ENGLISH, "[CRITICAL] 1 dead letter for billing: HTTP_422");
    n.count = 2;
    n.reason = str("");
    check_title(&n, HK_ALERT_ENGLISH, "[CRITICAL] 2 dead letters for billing");
    n.destination = str("");
    n.reason = str("GONE");
    n.severity = HK_ALERT_INFO;
    check_title(&n, HK_ALERT_ENGLISH, "[INFO] 2 dead letters: GONE");
    check_title(&n, HK_ALERT_JAPANESE, "【情報】デッドレターが2件発生 (GONE)");
    n.reason = str(""); /* of all others */
    n.count = 1234567;
    check_title(&n, HK_ALERT_ENGLISH, "[INFO] 1,234,567 more dead letters, of other causes");
    n.count = 1;
    check_title(&n, HK_ALERT_ENGLISH, "[INFO] 1 more dead letter, of other causes");
    n = notice_of(HK_ALERT_DEAD_LETTERS_ABOVE, HK_NOTICE_FIRING);
    n.value = n.threshold = 1;
    check_title(&n, HK_ALERT_ENGLISH, "[WARNING] 1 open dead letter (limit 1)");
    n.value = 1234.56;
    check_title(&n, HK_ALERT_ENGLISH, "[WARNING] 1,234.5 open dead letters (limit 1)");
    n.value = (double)NAN;
    check_title(&n, HK_ALERT_ENGLISH, "[WARNING] ? open dead letters (limit 1)");
}

static void ages_have_two_units(void **state)
{
    (void)state;

    static const struct {
        double seconds;
        const char *en, *ja;
    } cases[] = {{0, "0s", "0秒"},
                 {59.9, "59s", "59秒"},
                 {60, "1m", "1分"},
                 {3599, "59m 59s", "59分59秒"},
                 {3600, "1h", "1時間"},
                 {3601, "1h", "1時間"},
                 {7505, "2h 5m", "2時間5分"},
                 {86400, "1d", "1日"},
                 {90000, "1d 1h", "1日1時間"},
                 {86460, "1d", "1日"},
                 {-5, "0s", "0秒"},
                 {1e18, "?", "?"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        char en[128], ja[128];
        struct hk_notice n = notice_of(HK_ALERT_OLDEST_AGE, HK_NOTICE_FIRING);
        n.value = cases[i].seconds;
        (void)snprintf(en, sizeof en, "[CRITICAL] Oldest undelivered message is %s old (limit 5m)",
                       cases[i].en);
        (void)snprintf(ja, sizeof ja, "【緊急】未配信メッセージが最長%s滞留 (しきい値 5分)", cases[i].ja);
        check_title(&n, HK_ALERT_ENGLISH, en);
        check_title(&n, HK_ALERT_JAPANESE, ja);
    }
}

static void check_command(const struct hk_notice *n, const char *expected)
{
    struct hk_buf out;
    hk_buf_init(&out, 4096);
    hk_words_command(n, &out);
    assert_string_equal(hk_buf_cstr(&out), expected);
    hk_buf_fini(&out);
}

static void commands_can_be_pasted_whatever_names_hold(void **state)
{
    (void)state;
    static const char *const bad[] = {"a'b", "a\"b", "a\\b",  "`id`", "$(id)",        "a\nb",
                                      "-x",  "\xff", "a\x7f", "a!b",  "\xe2\x80\xae", ""};
    struct hk_notice n = notice_of(HK_ALERT_DEAD_LETTER, HK_NOTICE_FIRING);
    check_command(&n, "hikyaku dead list --filter 'destination:billing reason:HTTP_422'");
    n.destination = str("big shop; 飛脚");
    check_command(&n, "hikyaku dead list --filter 'destination:\"big shop; 飛脚\" reason:HTTP_422'");
    for (size_t i = 0; i < COUNT(bad); i++) {
        n.destination = str(bad[i]);
        check_command(&n, "hikyaku dead list --filter 'reason:HTTP_422'");
    }
    n.reason = str("");
    check_command(&n, "hikyaku dead groups"); /* of all others */
    n = notice_of(HK_ALERT_PAUSED, HK_NOTICE_FIRING);
    check_command(&n, "hikyaku destinations resume billing");
    n.destination = str("big shop");
    check_command(&n, "hikyaku destinations resume 'big shop'");
    n.destination = str("--reason=x");
    check_command(&n, "hikyaku destinations list");
    n = notice_of(HK_ALERT_PAUSED, HK_NOTICE_RESOLVED);
    check_command(&n, "");
}

static void only_links_that_can_stand_anywhere_are_shown(void **state)
{
    (void)state;
    static const char *const bad[] = {"javascript:alert(1)",
                                      "ftp://x/",
                                      "https://x/\"onclick=",
                                      "https://x/ y",
                                      "https://x/<script>",
                                      "https://x/\n",
                                      "https://x/飛脚",
                                      "//x/",
                                      "https://x/`",
                                      "https://x/|text>",
                                      ""};
    struct hk_notice n = notice_of(HK_ALERT_PAUSED, HK_NOTICE_FIRING);
    assert_string_equal(hk_words_link(&n), n.link);
    for (size_t i = 0; i < COUNT(bad); i++) {
        n.link = bad[i];
        assert_null(hk_words_link(&n));
    }
    n.link = NULL;
    assert_null(hk_words_link(&n));
}

static void tokens_stay_apart(void **state)
{
    (void)state;
    char a[65], b[65], longer[301];
    hk_body_token("3f2a91c0-4.b_e", 64, a);
    assert_string_equal(a, "3f2a91c0-4.b_e");
    hk_body_token("a b", 64, a);
    hk_body_token("a\nb", 64, b);
    assert_string_not_equal(a, b);
    assert_int_equal(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(a));
    memset(longer, 'x', 300);
    longer[300] = '\0';
    hk_body_token(longer, 64, a);
    assert_int_equal(strlen(a), 64);
    longer[299] = 'y';
    hk_body_token(longer, 64, b);
    assert_string_not_equal(a, b);
    hk_body_token(NULL, 64, a);
    hk_body_token("", 64, b);
    assert_string_equal(a, b);
    assert_true(a[0] != '\0');
}

static void foreign_text_is_shown_harmlessly_and_cut(void **state)
{
    (void)state;

    static const struct {
        const char *from;
        size_t max;
        const char *shown;
    } cases[] = {{"plain \"quoted\" \\ 飛脚", 99, "plain \"quoted\" \\ 飛脚"},
                 {"a\nb\rc\td", 99, "a b c d"},
                 {"\x1b[31m", 99, "\\x1b[31m"},
                 {"\xe2\x80\xae!", 99, "\\u{202e}!"},
                 {"\xff", 99, "\\xff"},
                 {"12345", 5, "12345"},
                 {"123456", 5, "1234…"},
                 {"飛脚飛脚", 4, "飛脚飛脚"},
                 {"飛脚飛脚", 3, "飛脚…"},
                 {"123\x01", 5, "123…"},
                 {"1\x01", 5, "1\\x01"},
                 {"\x01", 3, "…"},
                 {"ab", 1, "…"},
                 {"", 1, ""}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_buf out;
        hk_buf_init(&out, 256);
        hk_buf_adds(&out, "<");
        hk_show_plain(str(cases[i].from), cases[i].max, &out);
        NOTE_IF(strcmp(hk_buf_cstr(&out) + 1, cases[i].shown) != 0, "row %zu: %s\n", i, hk_buf_cstr(&out));
        assert_string_equal(hk_buf_cstr(&out) + 1, cases[i].shown);
        hk_buf_fini(&out);
    }
}

static void secrets_are_hidden_also_when_cut(void **state)
{
    (void)state;
    char text[] = "key=s3cret! and s3cret!s3cret! and s3cre";
    hk_send_hide(text, strlen(text), str("s3cret!"));
    assert_string_equal(text, "key=******* and ************** and *****");
    char other[] = "abc abc";
    hk_send_hide(other, strlen(other), str("abc"));
    assert_string_equal(other, "abc abc"); /* too short to be one */
    hk_send_hide(other, strlen(other), str(""));
}

static void names_read_back(void **state)
{
    (void)state;
    for (unsigned i = 0; i < HK_NALERT_KINDS; i++) {
        enum hk_alert_kind kind = HK_NALERT_KINDS;
        assert_true(hk_alert_kind_of(hk_str_of(hk_alert_kind_word((enum hk_alert_kind)i)), &kind));
        assert_int_equal(kind, i);
    }
    enum hk_alert_kind kind = HK_ALERT_PAUSED;
    assert_false(hk_alert_kind_of(hk_str_of("nonsense"), &kind));
    assert_int_equal(kind, HK_ALERT_PAUSED);
}

/* Neither words nor bodies leave a name of a template behind, and every language has all of them. */
static void no_template_shows_through(void **state)
{
    (void)state;
    struct hk_buf out;
    hk_buf_init(&out, (size_t)1 << 20);
    for (size_t l = 0; l < COUNT(languages); l++) {
        add_all(languages[l], &out);
        assert_null(strpbrk(hk_buf_cstr(&out), "{}|\\"));
        assert_null(strstr(hk_buf_cstr(&out), "(null)"));
    }
    hk_buf_fini(&out);
}

/* ---- mail ---- */

static const char *const people[] = {"ops@example.com"};
static const struct hk_mail_head head = {"飛脚 <a@example.com>", people, 1, "n-1"};

static void subjects_are_folded_in_whole_characters(void **state)
{
    (void)state;
    struct hk_notice n = notice_of(HK_ALERT_DEAD_LETTER, HK_NOTICE_FIRING);
    struct hk_buf out;
    hk_buf_init(&out, HK_BODY_MAX);
    n.destination = str("飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚飛脚");
    assert_int_equal(hk_body_mail(&n, HK_ALERT_JAPANESE, &head, &out, NULL), HK_OK);
    const char *at = strstr(hk_buf_cstr(&out), "Subject: ");
    assert_non_null(at);
    const char *end = strstr(at, "\r\nDate:");
    unsigned words = 0;
    for (at += strlen("Subject: "); at < end; at = strstr(at, "\r\n") + 3, words++) {
        size_t len = strcspn(at, "\r");
        unsigned char text[128];
        size_t n_text = 0;
        assert_true(len <= 75 && memcmp(at, "=?UTF-8?B?", 10) == 0 && memcmp(at + len - 2, "?=", 2) == 0);
        struct hk_str digits = {at + 10, len - 12};
        assert_true(hk_base64_decode(digits, HK_BASE64_LINES, text, sizeof text, &n_text));
        assert_true(hk_utf8_is_text((struct hk_str){(const char *)text, n_text}));
    }
    assert_true(words >= 3);
    hk_buf_fini(&out);
}

static void dates_have_their_weekday(void **state)
{
    (void)state;

    static const struct {
        int64_t ms;
        const char *date;
    } cases[] = {{0, "Date: Thu, 01 Jan 1970 00:00:00 +0000\r\n"},
                 {-1, "Date: Wed, 31 Dec 1969 23:59:59 +0000\r\n"},
                 {AT, "Date: Sat, 14 Nov 2026 23:58:45 +0000\r\n"},
                 {INT64_C(951827696000), "Date: Tue, 29 Feb 2000 12:34:56 +0000\r\n"},
                 {INT64_MAX, "Date: Fri, 31 Dec 9999 23:59:59 +0000\r\n"},
                 {INT64_MIN, "Date: Mon, 01 Jan 0001 00:00:00 +0000\r\n"}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct hk_notice n = notice_of(HK_ALERT_PAUSED, HK_NOTICE_FIRING);
        struct hk_buf out;
        hk_buf_init(&out, HK_BODY_MAX);
        n.at_ms = n.since_ms = cases[i].ms;
        assert_int_equal(hk_body_mail(&n, HK_ALERT_JAPANESE, &head, &out, NULL), HK_OK);
        NOTE_IF(!strstr(hk_buf_cstr(&out), cases[i].date), "no %s", cases[i].date);
        assert_non_null(strstr(hk_buf_cstr(&out), cases[i].date));
        hk_buf_fini(&out);
    }
}

/* ---- out of memory ---- */

static enum hk_code write_all(void)
{
    const struct hk_notice n = notice_of(HK_ALERT_DEAD_LETTER, HK_NOTICE_UPDATE);
    struct hk_buf out[4];
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < 4; i++)
        hk_buf_init(&out[i], HK_BODY_MAX);
    hk_body_slack(&n, HK_ALERT_JAPANESE, &out[0]);
    hk_body_json(&n, HK_ALERT_JAPANESE, "n-1", &out[1]);
    hk_body_pagerduty(&n, HK_ALERT_JAPANESE, "key", false, &out[2]);
    rc = hk_body_mail(&n, HK_ALERT_JAPANESE, &head, &out[3], NULL);
    for (size_t i = 0; i < 4; i++) {
        if (rc == HK_OK)
            rc = hk_buf_status(&out[i]);
        hk_buf_fini(&out[i]);
    }
    return rc;
}

static void no_body_lacks_something_in_silence(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(write_all, HK_OK) > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_notice_reads_as_in_the_golden_files),
        cmocka_unit_test(plural_forms_and_what_is_missing),
        cmocka_unit_test(ages_have_two_units),
        cmocka_unit_test(commands_can_be_pasted_whatever_names_hold),
        cmocka_unit_test(only_links_that_can_stand_anywhere_are_shown),
        cmocka_unit_test(tokens_stay_apart),
        cmocka_unit_test(foreign_text_is_shown_harmlessly_and_cut),
        cmocka_unit_test(secrets_are_hidden_also_when_cut),
        cmocka_unit_test(names_read_back),
        cmocka_unit_test(no_template_shows_through),
        cmocka_unit_test(subjects_are_folded_in_whole_characters),
        cmocka_unit_test(dates_have_their_weekday),
        cmocka_unit_test(no_body_lacks_something_in_silence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
