/* SPDX-License-Identifier: Apache-2.0 */
/* What the HTTP sink makes of servers that behave in every way: one row for each. Each ends in its documented fault,
 * within its deadline, and having read no more than it should. */
#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

struct row {
    const char *name;
    struct step steps[8];
    enum hk_fault fault;
    int status;
    bool possibly_delivered;
    uint64_t timeout_ms;  /* 0 = 5 s */
    size_t payload_bytes; /* 0 = a short JSON text */
    const char *body;     /* expected; NULL = whatever */
    const char *says;     /* part of the error */
};

#define FILLER                                                                                               \
    "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

/* clang-format off */
static const struct row rows[] = {
    /* answers that are as they should be */
    {"200", {{OP_REQUEST}, {OP_SEND, OK_EMPTY}}, .status = 200, .body = ""},
    {"204 without a length", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 204 No Content\r\n\r\n"}, {OP_HOLD}}, .status = 204},
    {"202 with a body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 202 Accepted\r\nContent-Length: 5\r\n\r\nhello"}}, .status = 202, .body = "hello"},
    {"body until the end", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\nall of it"}}, .status = 200, .body = "all of it"},
    {"HTTP/1.0", {{OP_REQUEST}, {OP_SEND, "HTTP/1.0 200 OK\r\n\r\nold"}}, .status = 200, .body = "old"},
    {"chunked", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"}}, .status = 200, .body = "abcde"},
    {"chunked with trailers", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-T: 1\r\nHTTP/1.1: 500\r\n\r\n"}}, .status = 200, .body = "abc"},
    {"100 Continue first", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 100 Continue\r\n\r\n" OK_EMPTY}}, .status = 200},
    {"103 Early Hints first", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" OK_EMPTY}}, .status = 200},
    {"no reason phrase", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 201\r\nContent-Length: 0\r\n\r\n"}}, .status = 201},
    {"lines ended by LF alone", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"}}, .status = 200, .body = "ok"},
    {"Connection: close", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nbye"}}, .status = 200, .body = "bye"},
    {"a name in odd case", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\ncOnTeNt-LeNgTh: 1\r\n\r\nx"}}, .status = 200, .body = "x"},
    {"slow but steady", {{OP_REQUEST}, {OP_DRIP, OK_EMPTY, 3}}, .status = 200},
    {"answer in many pieces", {{OP_REQUEST}, {OP_DRIP, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nxyz", 2}}, .status = 200, .body = "xyz"},
    {"response before the body is read", {{OP_READ, NULL, 20}, {OP_SEND, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}, {OP_HOLD}}, .status = 413, .payload_bytes = 3 << 20},
    {"1 MiB of payload", {{OP_REQUEST}, {OP_SEND, OK_EMPTY}}, .status = 200, .payload_bytes = 1 << 20},
    {"100 kB of payload", {{OP_REQUEST}, {OP_SEND, OK_EMPTY}}, .status = 200, .payload_bytes = 100000},

    /* statuses are reported, never judged */
    {"300", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 300 Multiple Choices\r\nContent-Length: 0\r\n\r\n"}}, .status = 300},
    {"304", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 304 Not Modified\r\n\r\n"}, {OP_HOLD}}, .status = 304},
    {"400", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 400 Bad Request\r\nContent-Length: 3\r\n\r\nwhy"}}, .status = 400, .body = "why"},
    {"401 asks for credentials", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=x\r\nContent-Length: 0\r\n\r\n"}, {OP_AGAIN}}, .status = 401},
    {"407", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 407 Proxy\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n"}}, .status = 407},
    {"408 while idle", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}}, .status = 408},
    {"410", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"}}, .status = 410},
    {"417 because of Expect", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n"}, {OP_AGAIN}}, .status = 417, .payload_bytes = 2 << 20},
    {"421", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 421 Misdirected\r\nContent-Length: 0\r\n\r\n"}}, .status = 421},
    {"422", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 422 Unprocessable\r\nContent-Length: 2\r\n\r\n{}"}}, .status = 422, .body = "{}"},
    {"425", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 425 Too Early\r\nContent-Length: 0\r\n\r\n"}}, .status = 425},
    {"429", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"}}, .status = 429},
    {"500", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 500 Oops\r\nContent-Length: 4\r\n\r\noops"}}, .status = 500, .body = "oops"},
    {"503", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"}}, .status = 503},
    {"599", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 599 Hm\r\nContent-Length: 0\r\n\r\n"}}, .status = 599},
    {"999", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 999 Denied\r\nContent-Length: 0\r\n\r\n"}}, .status = 999},

    /* no redirect is followed */
    {"301 to a metadata address", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 301 Moved\r\nLocation: http://169.254.169.254/latest/meta-data/\r\nContent-Length: 0\r\n\r\n"}, {OP_AGAIN}}, .status = 301},
    {"302 to itself, for ever", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"}, {OP_AGAIN}}, .status = 302},
    {"307 to a file", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 307 There\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n"}}, .status = 307},
    {"308 with a refresh", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 308 There\r\nLocation: //127.0.0.1:1/\r\nRefresh: 0\r\nContent-Length: 0\r\n\r\n"}}, .status = 308},

    /* the status decides, whatever becomes of the body */
    {"204, then reset", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 204 No Content\r\n\r\n"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, .status = 204},
    {"200, reset inside the body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, .status = 200, .body = "abc"},
    {"200, closed inside the body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}}, .status = 200, .body = "abc"},
    {"500, closed inside the body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 500 Oops\r\nContent-Length: 100\r\n\r\nabc"}}, .status = 500, .body = "abc"},
    {"200, bad chunk", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc"}}, .status = 200},
    {"200, chunk size that overflows", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc"}, {OP_HOLD}}, .status = 200},
    {"200, chunk shorter than it says", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc"}}, .status = 200, .body = "abc"},
    {"200, chunk longer than it says", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcdef"}, {OP_HOLD}}, .status = 200},
    {"200, no last chunk", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"}}, .status = 200, .body = "abc"},
    {"200, endless body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n\r\n"}, {OP_ENDLESS, "0123456789abcdef"}}, .status = 200},
    {"500, endless body", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 500 Oops\r\n\r\n"}, {OP_ENDLESS, "0123456789abcdef"}}, .status = 500},
    {"200, a body of 10 GiB", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10737418240\r\n\r\n"}, {OP_ENDLESS, "x"}}, .status = 200},
    {"200, endless chunks", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}, {OP_ENDLESS, "1\r\nx\r\n"}}, .status = 200},
    {"200, an endless chunk extension", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;a="}, {OP_ENDLESS, "bbbbbbbbbbbbbbbb"}}, .status = 200},
    {"200, chunk extensions around single bytes", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"}, {OP_ENDLESS, "1;" FILLER FILLER FILLER FILLER "\r\nx\r\n"}}, .status = 200},
    {"200, endless trailers", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"}, {OP_ENDLESS, "X-T: y\r\n"}}, .status = 200},
    {"200, body drips, total deadline", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n"}, {OP_DRIP, "abcdefghijklmnopqrstuvwxyz", 200}}, .status = 200, .timeout_ms = 2000},
    {"200, body never comes", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"}, {OP_HOLD}}, .status = 200, .timeout_ms = 2000},
    {"200 with two lengths", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\nabc"}, {OP_HOLD}}, .status = 200, .timeout_ms = 2000},
    {"200, more than its length", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcGARBAGE GARBAGE"}}, .status = 200, .body = "abc"},

    /* nothing is decoded */
    {"gzip is left alone", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08Z"}}, .status = 200, .body = "\x1f\x8b\x08Z"},
    {"a stack of encodings", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br, gzip, zstd, gzip, deflate, gzip, gzip\r\nContent-Length: 3\r\n\r\nabc"}}, .status = 200, .body = "abc"},

    /* an answer before the request is all out: 2xx counts when the rest is (test_http_wire), any other decides at once */
    {"early 413", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\n\r\nbig"}, {OP_HOLD}}, .status = 413, .payload_bytes = 16 << 20, .body = "big"},
    {"early 413, closed", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"}, {OP_SHUT}}, .status = 413, .payload_bytes = 16 << 20},
    {"early 413, then reset", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"}, {OP_SLEEP, NULL, 60}, {OP_RESET}}, .status = 413, .payload_bytes = 16 << 20},
    {"early 429", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 429 Slow Down\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}}, .status = 429, .payload_bytes = 16 << 20},
    {"early 500", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}}, .status = 500, .payload_bytes = 16 << 20},
    {"early 302", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"}, {OP_HOLD}}, .status = 302, .payload_bytes = 16 << 20},
    {"early 200, then reset", {{OP_HEAD}, {OP_SEND, OK_EMPTY}, {OP_SLEEP, NULL, 60}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true, .payload_bytes = 16 << 20, .says = "HTTP 200 came before the whole request was out"},
    {"early 204, closed", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 204 No Content\r\n\r\n"}, {OP_SLEEP, NULL, 60}, {OP_END}}, HK_FAULT_RESET, .possibly_delivered = true, .payload_bytes = 16 << 20, .says = "HTTP 204 came before"},
    {"early 200, reset inside its body", {{OP_HEAD}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"}, {OP_SLEEP, NULL, 60}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true, .payload_bytes = 16 << 20},
    {"early 200, the rest is not read", {{OP_HEAD}, {OP_SEND, OK_EMPTY}, {OP_SLEEP, NULL, 5000}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 2000, .payload_bytes = 16 << 20, .says = "HTTP 200 came before"},

    /* no answer: the connection (16 MiB are more than the system takes in by itself) */
    {"closed at once", {{OP_END}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"closed after the request", {{OP_REQUEST}, {OP_END}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"reset after the request", {{OP_REQUEST}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"reset after the request's first byte", {{OP_READ, NULL, 1}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = false, .payload_bytes = 16 << 20},
    {"reset after 100 bytes of the request", {{OP_READ, NULL, 100}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = false, .payload_bytes = 16 << 20},
    {"reset inside the payload", {{OP_READ, NULL, 70000}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = false, .payload_bytes = 16 << 20},
    {"reset after 1 byte of the answer", {{OP_REQUEST}, {OP_SEND, "H"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"reset inside the status line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 20"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"reset after the status line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"reset inside a header line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Le"}, {OP_SLEEP, NULL, 20}, {OP_RESET}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"closed after the status line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "ended within its header"},
    {"closed inside a header line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"closed after 100 Continue", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 100 Continue\r\n\r\n"}}, HK_FAULT_RESET, .possibly_delivered = true},
    {"half closed", {{OP_REQUEST}, {OP_SHUT}}, HK_FAULT_RESET, .possibly_delivered = true},

    /* no answer: time */
    {"no answer", {{OP_REQUEST}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 2000},
    {"the request is not read", {{OP_SLEEP, NULL, 5000}}, HK_FAULT_TIMEOUT, .possibly_delivered = false, .timeout_ms = 2000, .payload_bytes = 16 << 20},
    {"status line drips", {{OP_REQUEST}, {OP_DRIP, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 100}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 2000},
    {"header lines drip", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n"}, {OP_DRIP, "X-A: b\r\nX-A: b\r\nX-A: b\r\n", 200}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 2000},
    {"100 Continue and no more", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 100 Continue\r\n\r\n"}, {OP_HOLD}}, HK_FAULT_TIMEOUT, .possibly_delivered = true, .timeout_ms = 2000},

    /* no HTTP */
    {"HTTP/0.9", {{OP_REQUEST}, {OP_SEND, "<html>it works</html>\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"another protocol", {{OP_SEND, "SSH-2.0-OpenSSH_9.2\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .timeout_ms = 2000},
    {"binary garbage", {{OP_REQUEST}, {OP_SEND, "\x16\x03\x01\x02\x00\x01\x00\xfc\x03\x03\xff\xfe", 12}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"an endless stream of zeros", {{OP_REQUEST}, {OP_ENDLESS, "\x01"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a status of two digits", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 20 OK\r\nContent-Length: 0\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a status that is no number", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 abc OK\r\nContent-Length: 0\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"HTTP/9.9", {{OP_REQUEST}, {OP_SEND, "HTTP/9.9 200 OK\r\nContent-Length: 0\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a protocol that was not asked for", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "not asked for"},
    {"endless header lines", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n"}, {OP_ENDLESS, "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true, .says = "too many or too long"},
    {"one endless header line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nX-Filler: "}, {OP_ENDLESS, "aaaaaaaaaaaaaaaa"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"600 tiny header lines", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\n"}, {OP_REPEAT, "a:\r\n", 600}, {OP_SEND, "\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a storm of 1xx", {{OP_REQUEST}, {OP_ENDLESS, "HTTP/1.1 100 Continue\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a storm of 103 with headers", {{OP_REQUEST}, {OP_ENDLESS, "HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a negative length", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n"}, {OP_HOLD}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a line without colon", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nno colon here\r\nContent-Length: 0\r\n\r\n"}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
    {"a NUL in a header line", {{OP_REQUEST}, {OP_SEND, "HTTP/1.1 200 OK\r\nX-A: a\0b\r\nContent-Length: 0\r\n\r\n", 48}}, HK_FAULT_PROTOCOL, .possibly_delivered = true},
};

/* clang-format on */

static bool row_holds(const struct row *row, const struct outcome *got)
{
    return got->fault == row->fault && got->status == row->status &&
           got->possibly_delivered == row->possibly_delivered &&
           (!row->body || strcmp(row->body, got->body) == 0) &&
           (row->fault == HK_FAULT_NONE) == (got->error[0] == '\0') &&
           (!row->says || strstr(got->error, row->says)) && got->body_len <= HK_HTTP_KEEP_MAX;
}

static bool run_row(const struct row *row)
{
    char url[64];
    struct server *server = server_start(row->steps, NULL);
    url_of(url, server, "http", "127.0.0.1");
    struct hk_http_options options = options_for(url);
    struct client client;
    client_open_http(&client, &options);
    char *payload = row->payload_bytes ? filled(row->payload_bytes) : NULL;
    struct hk_message msg =
        message_of(payload ? payload : "{\"orderId\":42}", payload ? row->payload_bytes : 14);
    struct outcome got;
    uint64_t timeout_ms = row->timeout_ms ? row->timeout_ms : 5000;
    client_deliver(&client, &msg, timeout_ms, &got);
    client_close(&client);
    size_t len;
    bool clean = !strstr(server_last(server, &len), "Expect"); /* libcurl would, for long payloads */
    bool bounded = server_sent(server) < (size_t)64 << 20;     /* what socket buffers take in, not a GiB */
    bool holds = row_holds(row, &got) && clean && bounded && got.duration_ms < timeout_ms + 10000 &&
                 server_requests(server) <= 1;
    NOTE_IF(!holds,
            "%s: fault %s, status %d, possibly %d, body %zu \"%s\", %u requests, %zu bytes, error \"%s\"\n",
            row->name, hk_fault_name(got.fault), got.status, got.possibly_delivered, got.body_len, got.body,
            server_requests(server), server_sent(server), got.error);
    server_stop(server);
    free(payload);
    return holds;
}

static void every_behaviour_ends_in_its_documented_fault(void **state)
{
    (void)state;
    size_t wrong = 0;
    assert_true(COUNT(rows) >= 80);
    for (size_t i = 0; i < COUNT(rows); i++)
        wrong += !run_row(&rows[i]);
    assert_int_equal(wrong, 0);
}

int main(int argc, char **argv)
{
    choose_wire(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_behaviour_ends_in_its_documented_fault),
    };
    return cmocka_run_group_tests(tests, begin_with_certs, end_with_certs);
}
