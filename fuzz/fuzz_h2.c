/* SPDX-License-Identifier: Apache-2.0 */
/* Whatever a server sends by HTTP/2, and in whatever pieces: what is kept of it stays within its bounds, and a status is one that came whole.
 * The input is the server's bytes behind one that says how they are cut. Requests are under way; nothing is connected. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "fuzz.h"
#include "sink/http/h2.h"
#include "sink/http/header.h"

enum {
    REQUESTS = 3,
    OUT_MAX = 1 << 20 /* of what a few bytes may make us write: acknowledgements, windows, the requests */
};

struct world {
    struct hk_loop *loop;
    struct hk_h2_sink *sink;
    struct hk_h2_conn conn;
    struct hk_h2_transfer *h[REQUESTS];
    size_t out;
};

static void start(struct world *w)
{
    static const struct hk_http_options options = {.url = "http://127.0.0.1:9/hook", .version = 2};
    struct hk_sink *sink = NULL;
    memset(w, 0, sizeof *w);
    MUST(hk_loop_new(&w->loop, NULL) == HK_OK && hk_http_open(w->loop, &options, &sink, NULL) == HK_OK);
    w->sink = (struct hk_h2_sink *)sink;
    w->conn = (struct hk_h2_conn){.sink = w->sink, .phase = HK_H2_READY};
    MUST(hk_h2_session_new(&w->conn) == HK_OK);
}

static bool write_out(struct world *w)
{
    struct hk_str bytes;
    do {
        if (!hk_h2_session_next(&w->conn, &bytes))
            return false;
        w->out += bytes.len;
    } while (bytes.len);
    return true;
}

static void ask(struct world *w)
{
    const struct hk_message msg = {
        .message_id = hk_str_of("msg_1"), .event_type = hk_str_of("T"), .payload = hk_str_of("{\"n\":1}")};
    for (size_t i = 0; i < REQUESTS; i++) {
        struct hk_http_transfer *t = w->sink->base.wire->make(&w->sink->base);
        struct hk_err err;
        MUST(t);
        w->h[i] = (struct hk_h2_transfer *)t;
        w->h[i]->conn = &w->conn;
        MUST(hk_request_build(&t->request, &w->sink->base.base, &msg, 1, 0, &err) == HK_OK);
        t->payload = t->request.body;
        MUST(hk_h2_session_request(&w->conn, w->h[i]) == HK_OK);
    }
    MUST(write_out(w) && w->conn.n_streams == REQUESTS);
}

static void check(const struct hk_h2_transfer *h)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    const struct hk_response *r = &h->t.response;
    size_t n = hk_response_headers(r, headers);
    MUST(r->body.len <= HK_HTTP_KEEP_MAX && n <= HK_HTTP_HEADERS_MAX);
    MUST(r->final == 0 || (r->final >= 200 && r->final <= 999));
    MUST(r->final || !r->body_bytes);
    for (size_t i = 0; i < n; i++) {
        MUST(hk_header_name_ok(headers[i].name));
        for (size_t k = 0; k < headers[i].value.len; k++)
            MUST(!strchr("\r\n", headers[i].value.ptr[k]) || !headers[i].value.ptr[k]);
    }
    MUST(!h->closed || !h->stream);
}

static void end(struct world *w)
{
    for (size_t i = 0; i < REQUESTS; i++) {
        check(w->h[i]);
        hk_h2_session_cancel(w->h[i]); /* of those whose streams are open */
    }
    (void)write_out(w);
    MUST(w->out < OUT_MAX);
    hk_h2_session_free(&w->conn);
    for (size_t i = 0; i < REQUESTS; i++)
        w->sink->base.wire->unmake(&w->h[i]->t);
    w->sink->base.sink.ops->close(&w->sink->base.sink);
    hk_loop_free(w->loop);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct world w;
    struct hk_str rest = {(const char *)data, size};
    if (!size || size > 65536)
        return 0;
    start(&w);
    ask(&w);
    size_t piece = 1 + (uint8_t)fuzz_take(&rest, 1).ptr[0];
    while (rest.len) {
        struct hk_str bytes = fuzz_take(&rest, piece);
        if (!hk_h2_session_take(&w.conn, bytes) || !write_out(&w) || hk_h2_session_over(&w.conn))
            break;
    }
    end(&w);
    return 0;
}
