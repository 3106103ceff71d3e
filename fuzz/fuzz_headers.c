/* SPDX-License-Identifier: Apache-2.0 */
/* A message's headers (and the texts of its other columns) never put anything onto the wire but whole, clean lines, and
 * never more than their number. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sink/header.h"
#include "sink/request.h"

#define MUST(cond)                                                                                           \
    do {                                                                                                     \
        if (!(cond))                                                                                         \
            abort();                                                                                         \
    } while (0)

#define SECRET "t0p-s3cret"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The input may happen to hold it, and is shown. */
static bool quotes_secret(struct hk_str s)
{
    return hk_str_containsi(s, hk_str_of("0p-s3cret")); /* a tab is shown as \t */
}

static void check_lines(const struct hk_request *request)
{
    MUST(request->n <= HK_REQUEST_LINES_MAX);
    for (size_t i = 0; i < request->n; i++) {
        const char *line = request->text.data + request->lines[i].at;
        size_t name = request->lines[i].name;
        MUST(hk_header_name_ok((struct hk_str){line, name}));
        MUST((line[name] == ':' && line[name + 1] == ' ' && line[name + 2] > ' ') ||
             (line[name] == ';' && !line[name + 1]) ||
             (line[name] == ':' && (unsigned char)line[name + 2] >= 0x80));
        for (const char *c = line; *c; c++)
            MUST(*c != '\r' && *c != '\n');
        for (size_t k = 0; k < i; k++) {
            struct hk_str other = {request->text.data + request->lines[k].at, request->lines[k].name};
            MUST(!hk_str_eqi(other, (struct hk_str){line, name}));
        }
    }
}

static void check(struct hk_request_base *base, const struct hk_message *msg)
{
    struct hk_request request;
    struct hk_err err = {0};
    struct hk_buf shown;
    hk_request_init(&request);
    hk_buf_init(&shown, 1 << 20);
    enum hk_code rc = hk_request_build(&request, base, msg, 1700000000000, &err);
    MUST(rc == HK_OK || rc == HK_INVALID);
    MUST((rc == HK_OK) == (err.message[0] == '\0'));
    check_lines(&request);
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
    MUST(hk_request_base_init(&base, &options, NULL) == HK_OK);
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
