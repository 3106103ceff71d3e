/* SPDX-License-Identifier: Apache-2.0 */
/* What an answer may do to us while it comes in: nothing beyond its bounds. Lines end at LF; after a final block the
 * rest is body. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/header.h"
#include "sink/http/response.h"

static void check_kept(const struct hk_response *response)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    size_t n = hk_response_headers(response, headers);
    size_t bytes = 0;
    MUST(n <= HK_HTTP_HEADERS_MAX && response->body.len <= HK_HTTP_KEEP_MAX);
    for (size_t i = 0; i < n; i++) {
        MUST(hk_header_name_ok(headers[i].name));
        bytes += headers[i].name.len + headers[i].value.len;
    }
    MUST(bytes <= HK_HTTP_HEADERS_KEEP_MAX);
    struct hk_buf shown;
    hk_buf_init(&shown, (size_t)64 * 1024);
    hk_response_show(response, &shown);
    MUST(hk_buf_status(&shown) == HK_OK && shown.data[shown.len - 1] == '}');
    hk_buf_fini(&shown);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_response response;
    struct hk_str rest = {(const char *)data, size};
    enum hk_response_next next = HK_RESPONSE_MORE;
    hk_response_init(&response);
    while (rest.len && next == HK_RESPONSE_MORE && !response.final) {
        const char *end = memchr(rest.ptr, '\n', rest.len);
        size_t len = end ? (size_t)(end - rest.ptr) + 1 : rest.len;
        next = hk_response_line(&response, (struct hk_str){rest.ptr, len});
        rest = (struct hk_str){rest.ptr + len, rest.len - len};
    }
    MUST(response.final == 0 || (response.final >= 200 && response.final <= 999));
    while (response.final && rest.len && next == HK_RESPONSE_MORE) {
        size_t len = rest.len < 1000 ? rest.len : 1000;
        next = hk_response_body(&response, (struct hk_str){rest.ptr, len});
        rest = (struct hk_str){rest.ptr + len, rest.len - len};
    }
    check_kept(&response);
    hk_response_reset(&response);
    MUST(response.final == 0 && response.body.len == 0 && hk_response_headers(&response, NULL) == 0);
    hk_response_fini(&response);
    return 0;
}
