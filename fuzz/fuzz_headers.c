/* SPDX-License-Identifier: Apache-2.0 */
/* A message's headers (and the texts of its other columns) never put anything onto the wire but whole, clean lines, and
 * never more than their number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/header.h"
#include "sink/http/request.h"

#define SECRET "t0p-s3cret"

/* The input may happen to hold it, and is shown. */
static bool quotes_secret(struct hk_str s)
{
    return hk_str_containsi(s, hk_str_of("0p-s3cret")); /* a tab is shown as \t */
}

#define START "POST / HTTP/1.1\r\nHost: x\r\n"

/* The text is the start and the lines, each whole, and nothing between or (when all is well) behind them. */
static void check_lines(const struct hk_request *request, bool whole)
{
    size_t at = sizeof START - 1;
    MUST(request->n <= HK_REQUEST_LINES_MAX && memcmp(request->text.data, START, at) == 0);
    for (size_t i = 0; i < request->n; i++) {
        struct hk_str name = hk_request_name(request, i), value = hk_request_value(request, i);
        const char *line = request->text.data + at;
        MUST(name.ptr == line && hk_header_name_ok(name) && line[name.len] == ':');
        MUST(!value.len || (line[name.len + 1] == ' ' && value.ptr == line + name.len + 2));
        MUST(hk_header_value_ok(value) && hk_str_trim(value).len == value.len);
        size_t len = name.len + 1 + (value.len ? 1 + value.len : 0);
        MUST(line[len] == '\r' && line[len + 1] == '\n' && !memchr(line, '\r', len) &&
             !memchr(line, '\n', len));
        at += len + 2;
        for (size_t k = 0; k < i; k++)
            MUST(!hk_str_eqi(hk_request_name(request, k), name));
    }
    MUST(at == request->text.len || (!whole && at <= request->text.len));
}

static void check(struct hk_request_base *base, const struct hk_message *msg)
{
    struct hk_request request;
    struct hk_err err = {0};
    struct hk_buf shown;
    hk_request_init(&request);
    hk_buf_init(&shown, 1 << 20);
    enum hk_code rc = hk_request_build(&request, base, msg, 1, 1700000000000, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    MUST((rc == HK_OK) == (err.message[0] == '\0'));
    check_lines(&request, rc == HK_OK);
    hk_request_show(&request, &shown);
    MUST(hk_buf_status(&shown) == HK_OK && shown.data[0] == '{' && shown.data[shown.len - 1] == '}');
    if (!quotes_secret(msg->payload))
        MUST(!strstr(shown.data, SECRET));
    hk_buf_fini(&shown);
    hk_request_fini(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct hk_http_header headers[] = {{"X-Static", SECRET, true}};
    struct hk_http_options options = {
        .url = "http://x/", .headers = headers, .n_headers = 1, .bearer = SECRET, .cloudevents = true};
    struct hk_request_base base;
    MUST(hk_request_base_init(&base, &options, hk_str_of(START), NULL) == HK_OK);
    struct hk_str s = {(const char *)data, size};
    struct hk_message plain = {.message_id = hk_str_of("m1"), .event_type = hk_str_of("E"), .payload = s};
    struct hk_message msg = plain;
    msg.headers = s;
    check(&base, &msg);
    msg = plain;
    msg.message_id = msg.event_type = s;
    check(&base, &msg);
    msg = plain;
    msg.content_type = msg.idempotency_key = s;
    check(&base, &msg);
    msg = plain;
    msg.traceparent = s;
    check(&base, &msg);
    hk_request_base_fini(&base);
    return 0;
}
