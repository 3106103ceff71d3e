/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines: whatever goes in, one line comes out, JSON that somebody else's reader (jansson) takes; secrets do not come out; and
 * a pipe that nobody reads costs lines, never time. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/str.h"
#include "base/utf8.h"
#include "check.h"
#include "observe/log.h"
#include "observe/redact.h"

#define S(literal)                                                                                           \
    {                                                                                                        \
        (literal), sizeof(literal) - 1                                                                       \
    }

static int ends[2];
static struct hk_log out;
static char said[1 << 20];
static size_t n_said;

static int setup(void **state)
{
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    hk_log_init(&out, ends[1], HK_LOG_INFO);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    hk_log_fini(&out);
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* What has been written since the last call. */
static struct hk_str heard(void)
{
    n_said = 0;
    for (;;) {
        ssize_t n = read(ends[0], said + n_said, sizeof said - 1 - n_said);
        if (n <= 0)
            break;
        n_said += (size_t)n;
    }
    said[n_said] = '\0';
    return (struct hk_str){said, n_said};
}

static struct hk_str logged(enum hk_log_format format, const char *key, struct hk_str value)
{
    struct hk_log_line line;
    hk_log_configure(&out, HK_LOG_INFO, format);
    hk_log_begin(&line, &out, HK_LOG_WARN, "an event");
    hk_log_str(&line, key, value);
    hk_log_i64(&line, "last", 7);
    hk_log_end(&line);
    return heard();
}

/* One line, and nothing in it that a reader of lines could stumble over. */
static void check_line(struct hk_str line)
{
    assert_true(line.len > 0 && line.len <= HK_LOG_LINE_MAX);
    assert_int_equal(line.ptr[line.len - 1], '\n');
    for (size_t at = 0; at + 1 < line.len;) {
        uint32_t c;
        at += hk_utf8_next((struct hk_str){line.ptr + at, line.len - at}, &c);
        assert_true(c != HK_UTF8_BAD && c >= 0x20 && (c < 0x7f || c > 0x9f) && c != 0x2028 && c != 0x2029);
        assert_false(c >= 0x202a && c <= 0x202e);
    }
}

static json_t *check_json(struct hk_str line)
{
    json_error_t error;
    check_line(line);
    json_t *root = json_loadb(line.ptr, line.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    NOTE_IF(root == NULL, "%s: %.*s\n", error.text, (int)line.len, line.ptr);
    assert_non_null(root);
    return root;
}

static const char *text_of(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    return text ? text : "(none)";
}

/* ---- injection ---- */

static const struct hk_str hostile[] = {
    S(""),
    S("plain"),
    S("two\nlines"),
    S("\r\nlevel=error msg=\"forged\""),
    S("a\" level=error b=\""),
    S("\",\"level\":\"error\",\"x\":\""),
    S("\\"),
    S("\\\""),
    S("ends with \\"),
    S("nul\0inside"),
    S("\x1b[2J\x1b]0;title\x07"),
    S("\x7f\x80\x9b"),
    S("\xc2\x85next line"),
    S("\xe2\x80\xa8line\xe2\x80\xa9paragraph"),
    S("\xe2\x80\xae"
      "gnp.exe"),
    S("\xef\xbb\xbf"
      "bom"),
    S("\xff\xfe"),
    S("\xc0\xaf"),
    S("\xed\xa0\x80"),
    S("\xf4\x90\x80\x80"),
    S("\xe3\x81"),
    S("\xe9\xa3\x9b\xe8\x84\x9a"),
    S("\xf0\x9f\x9a\x80"),
    S("<3>kernel"),
    S("{\"a\":1}"),
    S("k=v k2=v2"),
    S("\t\b\f\v"),
};

static void one_event_is_one_line_whatever_the_value(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(hostile); i++) {
        check_line(logged(HK_LOG_LOGFMT, "value", hostile[i]));
        json_t *root = check_json(logged(HK_LOG_JSON, "value", hostile[i]));
        assert_string_equal(text_of(root, "level"), "warn");
        assert_string_equal(text_of(root, "msg"), "an event");
        assert_int_equal(json_integer_value(json_object_get(root, "last")), 7);
        assert_int_equal(json_object_size(root), 5);
        json_decref(root);
    }
}

static void good_text_comes_out_as_it_went_in(void **state)
{
    static const char *const good[] = {"plain",  "two\nlines\ttab", "q\"uote\\",
                                       "飛脚 🚀", "a=b c=d",         "\xe2\x80\xa8"};
    (void)state;
    for (size_t i = 0; i < COUNT(good); i++) {
        json_t *root = check_json(logged(HK_LOG_JSON, "value", hk_str_of(good[i])));
        assert_string_equal(text_of(root, "value"), good[i]);
        json_decref(root);
    }
    json_t *root = check_json(logged(HK_LOG_JSON, "value", (struct hk_str)S("a\xff")));
    assert_string_equal(text_of(root, "value"), "a\xef\xbf\xbd");
    json_decref(root);
}

static void logfmt_quotes_only_what_needs_it(void **state)
{
    static const struct {
        struct hk_str value;
        const char *shown;
    } rows[] = {{S("plain-1.2/x"), "value=plain-1.2/x last"},
                {S(""), "value=\"\" last"},
                {S("a b"), "value=\"a b\" last"},
                {S("a\"b"), "value=\"a\\\"b\" last"},
                {S("x>"), "value=x> last"},
                {S("\x01\xff"), "value=\"\\x01\\xff\" last"},
                {S("\xe2\x80\xa8"), "value=\"\\u2028\" last"}};

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        struct hk_str line = logged(HK_LOG_LOGFMT, "value", rows[i].value);
        NOTE_IF(!strstr(line.ptr, rows[i].shown), "%s in %s\n", rows[i].shown, line.ptr);
        assert_non_null(strstr(line.ptr, rows[i].shown));
    }
}

/* ---- bounds ---- */

static void a_long_value_is_cut_with_a_mark(void **state)
{
    static char big[100000];
    (void)state;
    memset(big, 'x', sizeof big);
    json_t *root = check_json(logged(HK_LOG_JSON, "value", (struct hk_str){big, sizeof big}));
    assert_non_null(strstr(text_of(root, "value"), "xxx…[+98976 bytes]"));
    assert_true(json_is_true(json_object_get(root, "cut")));
    json_decref(root);
    assert_non_null(
        strstr(logged(HK_LOG_LOGFMT, "value", (struct hk_str){big, sizeof big}).ptr, " cut=true\n"));
    root = check_json(logged(HK_LOG_JSON, "value", (struct hk_str){big, 1024}));
    assert_int_equal(strlen(text_of(root, "value")), 1024);
    assert_null(json_object_get(root, "cut"));
    json_decref(root);
}

/* Every length of every kind of text, one to many fields: the line's bound falls on every kind of place. */
static void a_line_that_is_cut_is_well_formed_wherever_it_is_cut(void **state)
{
    static const struct hk_str kinds[] = {S("x"),  S("\""),           S("\xff"),
                                          S("\n"), S("\xe9\xa3\x9b"), S("\xe2\x80\xa8")};
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
    static char text[1400];
    (void)state;
    for (size_t k = 0; k < COUNT(kinds); k++) {
        for (size_t i = 0; i < sizeof text; i++)
            text[i] = kinds[k].ptr[i % kinds[k].len];
        for (size_t len = 0; len < sizeof text; len += 1 + len / 97) {
            for (int format = HK_LOG_LOGFMT; format <= HK_LOG_JSON; format++) {
                struct hk_log_line line;
                hk_log_configure(&out, HK_LOG_INFO, (enum hk_log_format)format);
                hk_log_begin(&line, &out, HK_LOG_INFO, "long");
                for (size_t f = 0; f < COUNT(keys); f++)
                    hk_log_str(&line, keys[f], (struct hk_str){text, len});
                hk_log_ms(&line, "wait", 90000);
                hk_log_end(&line);
                if (format == HK_LOG_JSON)
                    json_decref(check_json(heard()));
                else
                    check_line(heard());
            }
        }
    }
}

static void durations_and_times_have_their_units(void **state)
{
    struct hk_log_line line;
    (void)state;
    for (int format = HK_LOG_LOGFMT; format <= HK_LOG_JSON; format++) {
        hk_log_configure(&out, HK_LOG_INFO, (enum hk_log_format)format);
        hk_log_begin(&line, &out, HK_LOG_INFO, "x");
        hk_log_ms(&line, "wait", 90000);
        hk_log_time(&line, "started", 1700000000123);
        hk_log_end(&line);
        (void)heard();
        assert_non_null(strstr(said, format == HK_LOG_JSON
                                         ? "\"wait_ms\":90000,\"started\":\"2023-11-14T22:13:20.123Z\"}"
                                         : " wait=1m30s started=2023-11-14T22:13:20.123Z\n"));
    }
}

static void what_is_below_the_level_is_not_written(void **state)
{
    struct hk_log_line line;
    (void)state;
    hk_log_begin(&line, &out, HK_LOG_DEBUG, "no");
    hk_log_str(&line, "k", hk_str_of("v"));
    hk_log_end(&line);
    assert_int_equal(heard().len, 0);
    hk_log_configure(&out, HK_LOG_DEBUG, HK_LOG_LOGFMT);
    hk_log_begin(&line, &out, HK_LOG_DEBUG, "yes");
    hk_log_end(&line);
    assert_non_null(strstr((heard(), said), "level=debug msg=yes\n"));
}

/* ---- journald ---- */

static void the_journal_gets_priorities_in_both_formats(void **state)
{
    struct stat st;
    char stream[64];
    struct hk_log_line line;
    (void)state;
    assert_int_equal(fstat(ends[1], &st), 0);
    (void)snprintf(stream, sizeof stream, "%llu:%llu", (unsigned long long)st.st_dev,
                   (unsigned long long)st.st_ino);
    setenv("JOURNAL_STREAM", stream, 1);
    hk_log_fini(&out);
    hk_log_init(&out, ends[1], HK_LOG_INFO);
    hk_log_begin(&line, &out, HK_LOG_WARN, "x");
    hk_log_end(&line);
    (void)heard();
    assert_string_equal(said, "<4>level=warn msg=x\n");
    hk_log_configure(&out, HK_LOG_INFO, HK_LOG_JSON);
    hk_log_begin(&line, &out, HK_LOG_ERROR, "x");
    hk_log_end(&line);
    struct hk_str rest = heard();
    assert_memory_equal(said, "<3>{", 4);
    json_decref(check_json((struct hk_str){rest.ptr + 3, rest.len - 3}));
    setenv("JOURNAL_STREAM", "1:2", 1); /* inherited, while standard error goes elsewhere */
    hk_log_fini(&out);
    hk_log_init(&out, ends[1], HK_LOG_INFO);
    unsetenv("JOURNAL_STREAM");
    assert_false(out.journal);
}

/* ---- nobody reads ---- */

static void fill(void)
{
    struct hk_log_line line;
    uint64_t before = hk_log_dropped(&out);
    for (int i = 0; i < 100000 && hk_log_dropped(&out) < before + 3; i++) {
        hk_log_begin(&line, &out, HK_LOG_INFO, "filler filler filler filler filler");
        hk_log_end(&line);
    }
    assert_int_equal(hk_log_dropped(&out), before + 3);
}

/* Over all that was said. */
static unsigned told(void)
{
    static const char words[] = "level=error msg=\"log lines dropped\" n=";
    unsigned sum = 0;
    for (const char *at = said; (at = strstr(at, words)) != NULL; at++)
        sum += (unsigned)(at[sizeof words - 1] - '0');
    return sum;
}

/* A notice is shorter than a line, so that it may find room where that one did not: all together must be right. */
static void check_full_pipe_tells(void)
{
    struct hk_log_line line;
    fill();
    (void)heard();
    unsigned early = told();
    hk_log_begin(&line, &out, HK_LOG_INFO, "again");
    hk_log_end(&line);
    (void)heard();
    assert_int_equal(early + told(), 3);
    assert_true(told() > 0);
    assert_non_null(strstr(said, "msg=again\n"));
    hk_log_begin(&line, &out, HK_LOG_INFO, "once");
    hk_log_end(&line);
    (void)heard();
    assert_null(strstr(said, "dropped"));
    assert_int_equal(hk_log_dropped(&out), 3);
}

static void a_full_pipe_drops_lines_and_says_so_when_it_flows_again(void **state)
{
    (void)state;
    check_full_pipe_tells();
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0); /* others who share it see no change */
}

static void a_full_socket_does_not_block(void **state)
{
    int small = 4096;
    (void)state;
    (void)teardown(NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    assert_int_equal(setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small), 0);
    hk_log_init(&out, ends[1], HK_LOG_INFO);
    assert_int_equal(out.way, HK_LOG_WAY_SEND);
    check_full_pipe_tells();
}

static void a_pipe_that_cannot_be_opened_again_is_asked_first(void **state)
{
    (void)state;
    hk_log_fini(&out);
    out.fd = ends[1];
    out.way = HK_LOG_WAY_POLL;
    check_full_pipe_tells();
}

/* ---- secrets ---- */

static void secrets_in_texts_are_hidden(void **state)
{
    static const char *const rows[][2] = {
        {"connect to postgres://relay:hunter2@db/x failed", "connect to postgres://***@db/x failed"},
        {"https://u:p%40ss@h:8443/p?x=1", "https://***@h:8443/p?x=1"},
        {"https://token@host/", "https://***@host/"},
        {"postgres://u:p/w@host/db", "postgres://***@host/db"},
        {"http://[::1]:80/a@b", "http://[::1]:80/a@b"},
        {"https://h:8443/users/me@example.com", "https://h:8443/users/me@example.com"},
        {"GET https://h/?token=abc123&x=1", "GET https://h/?token=***&x=1"},
        {"https://h/?a=1&key=abc#f", "https://h/?a=1&key=***"},
        {"https://h/?access_token=abc", "https://h/?access_token=***"},
        {"?X-Amz-Signature=deadbeef&y=2", "?X-Amz-Signature=***&y=2"},
        {"key=orders-1 is held", "key=orders-1 is held"},
        {"Authorization: Bearer abc.def-ghi", "Authorization: ***"},
        {"authorization: Basic dXNlcjpwYXNz\nnext", "authorization: ***\nnext"},
        {"sent Bearer sekret, refused", "sent Bearer ***, refused"},
        {"a bearer token is needed", "a bearer token is needed"},
        {"basic authentication failed", "basic authentication failed"},
        {"basic dXNlcjpwYXNz failed", "basic *** failed"},
        {"Cookie: a=b; c=d", "Cookie: ***"},
        {"Set-Cookie: sid=1; Path=/", "Set-Cookie: ***"},
        {"host=db user=u password=hunter2 dbname=x", "host=db user=u password=*** dbname=x"},
        {"password='a b' rest", "password='***' rest"},
        {"{\"password\":\"a\\\"b\",\"x\":1}", "{\"password\":\"***\",\"x\":1}"},
        {"{\\\"api_key\\\":\\\"abc\\\",\\\"x\\\":1}", "{\\\"api_key\\\":\\\"***\\\",\\\"x\\\":1}"},
        {"X-Api-Key: abc", "X-Api-Key: ***"},
        {"clientSecret = abc, d", "clientSecret = ***, d"},
        {"with whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "with whsec_***"},
        {"jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc", "jwt ***"},
        {"the token is not there", "the token is not there"},
        {"password", "password"},
        {"", ""},
        {"://", "://"},
        {"Bearer ", "Bearer "},
        {"token=", "token="},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++) {
        char room[256];
        size_t read = 0;
        size_t len = hk_redact(hk_str_of(rows[i][0]), room, sizeof room, &read);
        NOTE_IF(len != strlen(rows[i][1]) || memcmp(room, rows[i][1], len) != 0, "%s -> %.*s\n", rows[i][0],
                (int)len, room);
        assert_int_equal(len, strlen(rows[i][1]));
        assert_memory_equal(room, rows[i][1], len);
        assert_int_equal(read, strlen(rows[i][0]));
    }
}

static void a_field_with_a_secret_name_is_hidden(void **state)
{
    static const char *const names[] = {"authorization", "set_cookie", "api_key", "webhook_signature",
                                        "db_password"};
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        json_t *root = check_json(logged(HK_LOG_JSON, names[i], hk_str_of("x1y2z3")));
        assert_string_equal(text_of(root, names[i]), "***");
        json_decref(root);
    }
    assert_false(hk_redact_name(hk_str_of("message_key")) || hk_redact_name(hk_str_of("idempotency_key")));
}

/* The bound of a value falls into the secret, before it, and behind it. */
static void a_secret_is_hidden_also_where_the_value_is_cut(void **state)
{
    static const char *const secrets[] = {"postgres://user:hunter2hunter2@host/",
                                          "Bearer hunter2hunter2hunter2", "password=hunter2hunter2"};
    char text[2048];
    (void)state;
    for (size_t k = 0; k < COUNT(secrets); k++) {
        for (size_t pad = 900; pad < 1030; pad++) {
            memset(text, '.', pad);
            text[pad - 1] = ' ';
            (void)snprintf(text + pad, sizeof text - pad, "%s and more", secrets[k]);
            for (int format = HK_LOG_LOGFMT; format <= HK_LOG_JSON; format++) {
                struct hk_str line = logged((enum hk_log_format)format, "error", hk_str_of(text));
                check_line(line);
                assert_null(strstr(line.ptr, "hunt"));
            }
        }
    }
}

/* What is hidden makes room; but nothing may be shown whose end is too far away to be looked at. */
static void a_secret_behind_another_that_was_long_is_hidden(void **state)
{
    char text[4096], shown[512];
    (void)state;
    for (size_t pad = 1200; pad < 1800; pad++) {
        size_t n = (size_t)snprintf(text, sizeof text, "password=");
        memset(text + n, 'x', pad);
        n += pad;
        n += (size_t)snprintf(text + n, sizeof text - n, " https://user:hunter2hunter2hunter2@host/ ");
        memset(text + n, '.', 1500);
        n += 1500;
        size_t read = 0, len = hk_redact((struct hk_str){text, n}, shown, sizeof shown - 1, &read);
        assert_true(len < sizeof shown && read <= n);
        shown[len < sizeof shown ? len : 0] = '\0'; /* compilers do not know that the assertion ends it */
        assert_null(strstr(shown, "hunt"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_event_is_one_line_whatever_the_value, setup, teardown),
        cmocka_unit_test_setup_teardown(good_text_comes_out_as_it_went_in, setup, teardown),
        cmocka_unit_test_setup_teardown(logfmt_quotes_only_what_needs_it, setup, teardown),
        cmocka_unit_test_setup_teardown(a_long_value_is_cut_with_a_mark, setup, teardown),
        cmocka_unit_test_setup_teardown(a_line_that_is_cut_is_well_formed_wherever_it_is_cut, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(durations_and_times_have_their_units, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_below_the_level_is_not_written, setup, teardown),
        cmocka_unit_test_setup_teardown(the_journal_gets_priorities_in_both_formats, setup, teardown),
        cmocka_unit_test_setup_teardown(a_full_pipe_drops_lines_and_says_so_when_it_flows_again, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_full_socket_does_not_block, setup, teardown),
        cmocka_unit_test_setup_teardown(a_pipe_that_cannot_be_opened_again_is_asked_first, setup, teardown),
        cmocka_unit_test(secrets_in_texts_are_hidden),
        cmocka_unit_test_setup_teardown(a_field_with_a_secret_name_is_hidden, setup, teardown),
        cmocka_unit_test_setup_teardown(a_secret_is_hidden_also_where_the_value_is_cut, setup, teardown),
        cmocka_unit_test(a_secret_behind_another_that_was_long_is_hidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
