/* SPDX-License-Identifier: Apache-2.0 */
/* Our own reader of HTTP/1.x: where an answer ends, and whether its connection may be used again. In doubt it may not. */
#include "base/str.h"
#include "check.h"
#include "sink/http/h1_parse.h"
#include "sink/http/header.h"

struct row {
    const char *name, *text;
    enum hk_h1_next next;
    enum hk_h1_stop stop;
    int status;
    bool keeps;
    size_t left; /* when it is done: bytes behind it */
    const char *body;
};

#define OK "HTTP/1.1 200 OK\r\n"

/* clang-format off */
static const struct row rows[] = {
    {"a length", OK "Content-Length: 3\r\n\r\nabc", HK_H1_DONE, 0, 200, true, 0, "abc"},
    {"a length of 0", OK "Content-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, ""},
    {"more than the length", OK "Content-Length: 3\r\n\r\nabcHTTP/1.1 500", HK_H1_DONE, 0, 200, true, 12, "abc"},
    {"the same length twice", OK "Content-Length: 3\r\ncontent-length: 3\r\n\r\nabc", HK_H1_DONE, 0, 200, true, 0, "abc"},
    {"two lengths", OK "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"a list of lengths", OK "Content-Length: 3, 3\r\n\r\nabc", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"a length with a sign", OK "Content-Length: +3\r\n\r\nabc", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"an empty length", OK "Content-Length:\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"a length that overflows", OK "Content-Length: 99999999999999999999999\r\n\r\nabc", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"a length in hexadecimal", OK "Content-Length: 0x3\r\n\r\nabc", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"chunks", OK "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, "abc0123456789"},
    {"chunks and trailers", OK "Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\n\r\nx", HK_H1_DONE, 0, 200, true, 1, ""},
    {"chunks beat a length, and cost the connection", OK "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, "x"},
    {"chunked must be the last coding", OK "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"chunked twice", OK "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"another coding before chunked", OK "Transfer-Encoding: gzip, chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, "x"},
    {"another coding alone lasts until the end", OK "Transfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nxyz", HK_H1_MORE, 0, 200, false, 0, "xyz"},
    {"almost chunked", OK "Transfer-Encoding: xchunked\r\n\r\nxyz", HK_H1_MORE, 0, 200, false, 0, "xyz"},
    {"chunked by HTTP/1.0", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
    {"a chunk size of 16 digits", OK "Transfer-Encoding: chunked\r\n\r\n0000000000000001\r\nx", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"a chunk size with a sign", OK "Transfer-Encoding: chunked\r\n\r\n-1\r\nx", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, ""},
    {"a chunk that does not end", OK "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n", HK_H1_STOP, HK_H1_ENOUGH, 200, false, 0, "x"},
    {"no length", OK "\r\nabc", HK_H1_MORE, 0, 200, false, 0, "abc"},
    {"204 has no body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", HK_H1_DONE, 0, 204, false, 5, ""},
    {"204 that says so", "HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 204, true, 0, ""},
    {"304 has no body", "HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n", HK_H1_DONE, 0, 304, false, 0, ""},
    {"close", OK "Connection: foo, Close\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
    {"close beats keep-alive", OK "Connection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
    {"HTTP/1.0 closes", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
    {"HTTP/1.0 that says otherwise", "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, ""},
    {"what 1xx says is forgotten", "HTTP/1.1 103 Early\r\nConnection: close\r\nContent-Length: 0\r\n\r\n" OK "Content-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, ""},
    {"but not that it has a body", "HTTP/1.1 103 Early\r\nContent-Length: 7\r\n\r\n" OK "Content-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
    {"1xx, and no more", "HTTP/1.1 100 Continue\r\n\r\n", HK_H1_MORE, 0, 0, false, 0, ""},
    {"101", "HTTP/1.1 101 Switching\r\n\r\n", HK_H1_STOP, HK_H1_SWITCH, 0, false, 0, ""},
    {"lines that end with LF alone", "HTTP/1.1 200 OK\nContent-Length: 1\n\nx", HK_H1_DONE, 0, 200, true, 0, "x"},
    {"no reason", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, true, 0, ""},
    {"a status of 4 digits", "HTTP/1.1 2000 OK\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"a status below 100", "HTTP/1.1 099 OK\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"two blanks before the status", "HTTP/1.1  200 OK\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"HTTP/1.2", "HTTP/1.2 200 OK\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"HTTP/2", "HTTP/2 200\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"an empty line first", "\r\nHTTP/1.1 200 OK\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"a line without colon", OK "what\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"a bare CR", OK "X: a\rContent-Length: 5\r\n\r\n", HK_H1_STOP, HK_H1_NOT_HTTP, 0, false, 0, ""},
    {"a blank before the colon says nothing of the length", OK "Content-Length : 1\r\n\r\nxyz", HK_H1_MORE, 0, 200, false, 0, "xyz"},
    {"a value on two lines", OK "X-A: 1\r\n Content-Length: 7\r\nContent-Length: 0\r\n\r\n", HK_H1_DONE, 0, 200, false, 0, ""},
};

/* clang-format on */

struct reading {
    struct hk_h1_answer answer;
    struct hk_response response;
    enum hk_h1_next next;
    enum hk_h1_stop stop;
    size_t used;
};

static void feed(struct reading *r, const char *text, size_t len, size_t piece)
{
    *r = (struct reading){.next = HK_H1_MORE};
    hk_h1_answer_init(&r->answer);
    hk_response_init(&r->response);
    for (size_t at = 0; at < len && r->next == HK_H1_MORE; at += piece) {
        size_t n = len - at < piece ? len - at : piece, used = 0;
        r->next = hk_h1_feed(&r->answer, &r->response, (struct hk_str){text + at, n}, &used, &r->stop);
        r->used += used;
    }
}

static void end(struct reading *r)
{
    hk_h1_answer_fini(&r->answer);
    hk_response_fini(&r->response);
}

static bool row_holds(const struct row *row, size_t piece)
{
    struct reading r;
    size_t len = strlen(row->text);
    feed(&r, row->text, len, piece);
    bool keeps = r.next == HK_H1_DONE && hk_h1_framing_keeps(&r.answer.framing);
    bool good = r.next == row->next && r.response.final == row->status && keeps == row->keeps &&
                (r.next == HK_H1_STOP ? r.stop == row->stop : len - r.used == row->left) &&
                strcmp(hk_buf_cstr(&r.response.body), row->body) == 0;
    NOTE_IF(!good, "%s (pieces of %zu): next %u, stop %u, status %d, keeps %d, left %zu, body \"%s\"\n",
            row->name, piece, r.next, r.stop, r.response.final, keeps, len - r.used,
            hk_buf_cstr(&r.response.body));
    end(&r);
    return good;
}

static void every_answer_ends_where_it_ends(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t piece = 1; piece < 100; piece += 33)
            wrong += !row_holds(&rows[i], piece);
    assert_int_equal(wrong, 0);
}

/* A beginning that cannot become HTTP is not waited for. */
static void what_is_no_http_is_seen_at_once(void **state)
{
    (void)state;
    static const char *const texts[] = {"S", "\x16\x03", "HTTP/2", "HTTQ", "<html>", "HTTP/1x"};
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct reading r;
        feed(&r, texts[i], strlen(texts[i]), 1000);
        assert_int_equal(r.next, HK_H1_STOP);
        assert_int_equal(r.stop, HK_H1_NOT_HTTP);
        end(&r);
    }
}

static void an_answer_that_was_cut_off_is_told_from_none(void **state)
{
    (void)state;

    static const struct {
        const char *text;
        bool cut;
    } cases[] = {{"", false},
                 {"HTTP", true},
                 {OK, true},
                 {OK "X", true},
                 {"HTTP/1.1 100 Continue\r\n\r\n", false},
                 {"HTTP/1.1 100 Continue\r\n\r\nH", true},
                 {OK "\r\nbody", false}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        struct reading r;
        feed(&r, cases[i].text, strlen(cases[i].text), 3);
        assert_int_equal(r.next, HK_H1_MORE);
        assert_int_equal(hk_h1_cut_off(&r.answer), cases[i].cut);
        end(&r);
    }
}

static void a_line_has_a_bound_whatever_it_comes_in(void **state)
{
    (void)state;
    static char text[HK_HTTP_HEAD_MAX + 100];
    memset(text, 'a', sizeof text);
    memcpy(text, OK "X: ", strlen(OK) + 3);
    for (size_t piece = 1000; piece < sizeof text + 1000; piece += sizeof text - 1000) {
        struct reading r;
        feed(&r, text, sizeof text, piece);
        assert_int_equal(r.next, HK_H1_STOP);
        assert_int_equal(r.stop, HK_H1_TOO_BIG);
        end(&r);
    }
    static char chunk[8192];
    memset(chunk, '0', sizeof chunk);
    memcpy(chunk, OK "Transfer-Encoding: chunked\r\n\r\n1;", strlen(OK) + 32);
    struct reading r;
    feed(&r, chunk, sizeof chunk, 100);
    assert_int_equal(r.next, HK_H1_STOP);
    assert_int_equal(r.response.final, 200);
    end(&r);
}

static void the_servers_patience_is_read(void **state)
{
    (void)state;

    static const struct {
        const char *value;
        uint32_t seconds;
    } cases[] = {{"timeout=5", 5},         {"timeout=5, max=100", 5},
                 {"max=3,Timeout=75", 75}, {"timeout=", 0},
                 {"timeout=-5", 0},        {"5", 0},
                 {"timeout=0", 0},         {"", 0},
                 {"timeout = 9", 0},       {"timeout=99999999999", 999999}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        char text[128];
        struct reading r;
        (void)snprintf(text, sizeof text, OK "Keep-Alive: %s\r\nContent-Length: 0\r\n\r\n", cases[i].value);
        feed(&r, text, strlen(text), 7);
        assert_int_equal(r.next, HK_H1_DONE);
        NOTE_IF(r.answer.framing.idle_s != cases[i].seconds, "%s: %u\n", cases[i].value,
                r.answer.framing.idle_s);
        assert_int_equal(r.answer.framing.idle_s, cases[i].seconds);
        end(&r);
    }
}

/* The table of bytes against the rules in words. */
static void header_bytes_are_as_the_standard_has_them(void **state)
{
    (void)state;
    for (int i = 0; i < 256; i++) {
        char c = (char)i;
        struct hk_str s = {&c, 1};
        bool token = (i >= '0' && i <= '9') || (i >= 'A' && i <= 'Z') || (i >= 'a' && i <= 'z') ||
                     (i && strchr("!#$%&'*+-.^_`|~", i));
        bool value = i == '\t' || (i >= ' ' && i != 0x7f);
        assert_int_equal(hk_header_name_ok(s), token);
        assert_int_equal(hk_header_value_ok(s), value);
    }
    assert_false(hk_header_name_ok(hk_str_of("")));
    assert_true(hk_header_value_ok(hk_str_of("")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_ends_where_it_ends),
        cmocka_unit_test(what_is_no_http_is_seen_at_once),
        cmocka_unit_test(an_answer_that_was_cut_off_is_told_from_none),
        cmocka_unit_test(a_line_has_a_bound_whatever_it_comes_in),
        cmocka_unit_test(the_servers_patience_is_read),
        cmocka_unit_test(header_bytes_are_as_the_standard_has_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
