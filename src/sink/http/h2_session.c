/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of HTTP/2, by nghttp2. Its callbacks note what happened and never end a delivery.
 *
 * What a hostile server could do is bounded here or by nghttp2: header fields by response.h, frames that go on with a header
 * block, frames without progress (PING, SETTINGS, empty DATA …) by a count, acknowledgements that wait by nghttp2, bodies by
 * response.h and by flow control. Pushes are refused by our SETTINGS. */
#include <stdio.h>
#include <string.h>

#include <nghttp2/nghttp2.h>

#include "base/mem.h"
#include "base/str.h"
#include "sink/http/h2.h"

#define WINDOW         ((int32_t)1 << 20) /* of the connection, for answers; a stream has 64 KiB */
#define SEND_BLOCK_MAX ((size_t)256 * 1024)
#define OWN_FIELDS     6
#define FLOODED        "HTTP/2: a flood of frames without an answer"

/* ---- notes ---- */

static void say(struct hk_h2_conn *conn, const char *what)
{
    if (!conn->why[0])
        (void)snprintf(conn->why, sizeof conn->why, "%s", what);
}

static struct hk_h2_stream *stream_of(nghttp2_session *session, int32_t id)
{
    return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static struct hk_h2_transfer *owner_of(nghttp2_session *session, int32_t id)
{
    struct hk_h2_stream *stream = stream_of(session, id);
    return stream ? stream->owner : NULL;
}

static void answered(struct hk_h2_transfer *h)
{
    h->answered = true;
    h->conn->news = true;
}

/* No more is wanted than came, or none of it. Nobody counts what such a stream still sends: no other follows it. */
static void stop(struct hk_h2_transfer *h, enum hk_response_next next)
{
    if (next == HK_RESPONSE_MORE)
        return;
    h->t.stop = next;
    hk_h2_conn_drain(h->conn);
    answered(h);
}

static void note_first_byte(struct hk_h2_transfer *h)
{
    if (!h->t.response.any)
        h->t.window_ms = hk_loop_round_ms(h->t.self->loop);
}

/* ---- what comes in ---- */

static bool is_progress(const nghttp2_frame_hd *hd)
{
    return hd->type == NGHTTP2_HEADERS || hd->type == NGHTTP2_CONTINUATION ||
           (hd->type == NGHTTP2_DATA && hd->length > 0);
}

static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *hd, void *arg)
{
    (void)session;
    struct hk_h2_conn *conn = arg;
    conn->continues = hd->type == NGHTTP2_CONTINUATION ? conn->continues + 1 : 0;
    conn->chatter += !is_progress(hd);
    if (conn->continues > HK_H2_CONTINUES_MAX)
        say(conn, "HTTP/2: a header block in too many pieces");
    else if (conn->chatter > HK_H2_CHATTER_MAX + conn->written / 1024)
        say(conn, FLOODED);
    else
        return 0;
    return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static int number_of(struct hk_str text)
{
    int n = 0;
    for (size_t i = 0; i < text.len && i < 3; i++)
        n = n * 10 + (text.ptr[i] - '0');
    return n;
}

/* nghttp2 has checked names, values and the three digits of a status. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name_bytes,
                     size_t name_len, const uint8_t *value_bytes, size_t value_len, uint8_t flags, void *arg)
{
    (void)flags, (void)arg;
    struct hk_str name = {(const char *)name_bytes, name_len}, value = {(const char *)value_bytes, value_len};
    struct hk_h2_transfer *h = owner_of(session, frame->hd.stream_id);
    if (!h || h->answered)
        return 0;
    h->conn->unheard = 0;
    note_first_byte(h);
    stop(h, hk_response_count(&h->t.response, name.len + value.len + 4));
    if (h->answered || h->t.response.final) /* trailers are not kept */
        return 0;
    if (hk_str_eq(name, hk_str_of(":status")))
        hk_response_begin(&h->t.response, number_of(value));
    else if (name.len && name.ptr[0] != ':')
        hk_response_field(&h->t.response, name, value);
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *bytes, size_t len,
                   void *arg)
{
    (void)flags, (void)arg;
    struct hk_h2_transfer *h = owner_of(session, id);
    if (!h || h->answered)
        return 0;
    h->conn->unheard = 0;
    stop(h, hk_response_body(&h->t.response, (struct hk_str){(const char *)bytes, len}));
    return 0;
}

static void block_came(struct hk_h2_transfer *h)
{
    struct hk_response *r = &h->t.response;
    if (!h->answered && !r->final && r->status)
        stop(h, hk_response_end(r));
}

static void goaway_came(struct hk_h2_conn *conn, const nghttp2_goaway *goaway)
{
    conn->going = true;
    if (goaway->error_code != NGHTTP2_NO_ERROR)
        (void)snprintf(conn->why, sizeof conn->why, "the server ended the connection: %s",
                       hk_h2_code_name(goaway->error_code));
    hk_h2_conn_drain(conn);
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_h2_transfer *h = owner_of(session, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        conn->settled = true;
        break;
    case NGHTTP2_GOAWAY:
        goaway_came(conn, &frame->goaway);
        break;
    case NGHTTP2_RST_STREAM:
        if (h)
            h->reset = true;
        break;
    case NGHTTP2_HEADERS:
        if (h)
            block_came(h);
        break;
    }
    bool last = frame->hd.type <= NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (h && last) {
        h->t.ended |= !h->answered;
        answered(h);
    }
    return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_h2_stream *stream = stream_of(session, id);
    if (!stream)
        return 0;
    if (stream->owner) {
        stream->owner->closed = true;
        stream->owner->code = code;
        stream->owner->stream = NULL;
        conn->news = true;
        if (stream->owner->t.response.final) {
            conn->used = true;
            conn->chatter = conn->unheard = 0;
        }
    }
    if (stream->prev)
        stream->prev->next = stream->next;
    else
        conn->streams = stream->next;
    if (stream->next)
        stream->next->prev = stream->prev;
    conn->n_streams--;
    hk_mem_free(stream);
    return 0;
}

/* ---- what goes out ---- */

static ssize_t on_read_payload(nghttp2_session *session, int32_t id, uint8_t *room, size_t len,
                               uint32_t *flags, nghttp2_data_source *source, void *arg)
{
    (void)source, (void)arg;
    struct hk_h2_transfer *h = owner_of(session, id);
    if (!h)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it was cancelled */
    size_t left = h->t.payload.len - h->packed, n = left < len ? left : len;
    memcpy(room, h->t.payload.ptr + h->packed, n);
    h->packed += n;
    if (n == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

/* nghttp2 has found something wrong, and says so to the server. */
static void say_broken(struct hk_h2_conn *conn, const nghttp2_goaway *goaway)
{
    char text[HK_H2_WHY_MAX];
    if (goaway->error_code == NGHTTP2_NO_ERROR)
        return;
    (void)snprintf(text, sizeof text, "%s: %s%s%.*s",
                   conn->settled ? "the server broke the rules of HTTP/2"
                                 : "the server does not speak HTTP/2",
                   hk_h2_code_name(goaway->error_code), goaway->opaque_data_len ? ", " : "",
                   (int)(goaway->opaque_data_len < 120 ? goaway->opaque_data_len : 120),
                   (const char *)goaway->opaque_data);
    say(conn, text);
}

/* The frame is made; its bytes go out now. */
static int on_frame_send(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_h2_transfer *h = owner_of(session, frame->hd.stream_id);
    if (frame->hd.type == NGHTTP2_GOAWAY)
        say_broken(conn, &frame->goaway);
    if (!h || frame->hd.type > NGHTTP2_HEADERS)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS)
        conn->begun = h;
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        conn->ended = h;
    return 0;
}

/* ---- the session ---- */

/* nghttp2 1.52 frees a frame twice when there is no memory to queue it. So each connection knows its blocks: once an allocation failed,
 * nghttp2 is not called any more, and they are freed without it. */
struct hk_h2_block {
    struct hk_h2_block *next, *prev;
};

static void *hold(struct hk_h2_conn *conn, struct hk_h2_block *block)
{
    block->prev = NULL;
    block->next = conn->blocks;
    if (conn->blocks)
        conn->blocks->prev = block;
    conn->blocks = block;
    return block + 1;
}

static void let_go(struct hk_h2_conn *conn, struct hk_h2_block *block)
{
    if (block->prev)
        block->prev->next = block->next;
    else
        conn->blocks = block->next;
    if (block->next)
        block->next->prev = block->prev;
}

static void *mem_resize(void *ptr, size_t size, void *arg)
{
    struct hk_h2_conn *conn = arg;
    struct hk_h2_block *old = ptr ? (struct hk_h2_block *)ptr - 1 : NULL;
    if (old)
        let_go(conn, old);
    struct hk_h2_block *block =
        size < SIZE_MAX - sizeof *block ? hk_mem_resize(old, sizeof *block + size) : NULL;
    if (block)
        return hold(conn, block);
    conn->no_memory = true;
    if (old)
        (void)hold(conn, old);
    return NULL;
}

static void *mem_alloc(size_t size, void *arg)
{
    return mem_resize(NULL, size, arg);
}

static void *mem_zalloc(size_t n, size_t size, void *arg)
{
    void *ptr = size && n > SIZE_MAX / size ? NULL : mem_resize(NULL, n * size, arg);
    if (ptr)
        memset(ptr, 0, n * size);
    return ptr;
}

static void mem_free(void *ptr, void *arg)
{
    if (!ptr)
        return;
    let_go(arg, (struct hk_h2_block *)ptr - 1);
    hk_mem_free((struct hk_h2_block *)ptr - 1);
}

static void free_blocks(struct hk_h2_conn *conn)
{
    while (conn->blocks) {
        struct hk_h2_block *block = conn->blocks;
        conn->blocks = block->next;
        hk_mem_free(block);
    }
}

static int make(struct hk_h2_conn *conn, nghttp2_session_callbacks *calls, nghttp2_option *option)
{
    nghttp2_mem mem = {conn, mem_alloc, mem_free, mem_zalloc, mem_resize};
    nghttp2_session_callbacks_set_on_begin_frame_callback(calls, on_begin_frame);
    nghttp2_session_callbacks_set_on_header_callback(calls, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(calls, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(calls, on_frame_recv);
    nghttp2_session_callbacks_set_on_stream_close_callback(calls, on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(calls, on_frame_send);
    nghttp2_option_set_max_send_header_block_length(option, SEND_BLOCK_MAX);
    nghttp2_option_set_max_reserved_remote_streams(option, 0);
    return nghttp2_session_client_new3(&conn->session, calls, conn, option, &mem);
}

static int greet(struct hk_h2_conn *conn)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 0}, /* of the server's own making */
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HK_HTTP_HEAD_MAX},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    int rc = nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings,
                                     sizeof settings / sizeof settings[0]);
    if (rc == 0)
        rc = nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, WINDOW);
    return rc;
}

enum hk_code hk_h2_session_new(struct hk_h2_conn *conn)
{
    nghttp2_session_callbacks *calls = NULL;
    nghttp2_option *option = NULL;
    int rc = nghttp2_session_callbacks_new(&calls);
    if (rc == 0)
        rc = nghttp2_option_new(&option);
    if (rc == 0)
        rc = make(conn, calls, option);
    if (rc == 0)
        rc = greet(conn);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(calls);
    return rc == 0 && !conn->no_memory ? HK_OK : HK_NOMEM;
}

void hk_h2_session_free(struct hk_h2_conn *conn)
{
    if (!conn->no_memory)
        nghttp2_session_del(conn->session);
    conn->session = NULL;
    free_blocks(conn);
    while (conn->streams) {
        struct hk_h2_stream *next = conn->streams->next;
        hk_mem_free(conn->streams);
        conn->streams = next;
    }
    conn->n_streams = 0;
}

static bool over(struct hk_h2_conn *conn, int rc)
{
    say(conn, conn->no_memory             ? "out of memory for HTTP/2"
              : rc == NGHTTP2_ERR_FLOODED ? FLOODED
                                          : nghttp2_strerror(rc));
    return false;
}

bool hk_h2_session_take(struct hk_h2_conn *conn, struct hk_str bytes)
{
    if (conn->no_memory)
        return over(conn, NGHTTP2_ERR_NOMEM);
    conn->unheard += bytes.len;
    ssize_t n = nghttp2_session_mem_recv(conn->session, (const uint8_t *)bytes.ptr, bytes.len);
    if (n < 0 || conn->no_memory)
        return over(conn, (int)n);
    if (conn->unheard <= HK_H2_UNHEARD_MAX + conn->written / 64)
        return true;
    say(conn, FLOODED); /* frames of unknown kinds, for one: nghttp2 tells nobody of them */
    return false;
}

bool hk_h2_session_next(struct hk_h2_conn *conn, struct hk_str *out)
{
    const uint8_t *bytes = NULL;
    ssize_t n = conn->no_memory ? NGHTTP2_ERR_NOMEM : nghttp2_session_mem_send(conn->session, &bytes);
    *out = (struct hk_str){(const char *)bytes, n > 0 ? (size_t)n : 0};
    return (n >= 0 && !conn->no_memory) || over(conn, (int)n);
}

bool hk_h2_session_over(const struct hk_h2_conn *conn)
{
    return !conn->no_memory && !nghttp2_session_want_read(conn->session) &&
           !nghttp2_session_want_write(conn->session);
}

size_t hk_h2_session_room(const struct hk_h2_conn *conn)
{
    uint32_t most =
        nghttp2_session_get_remote_settings(conn->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
    return most < HK_H2_STREAMS_MAX ? most : HK_H2_STREAMS_MAX;
}

/* ---- requests ---- */

static nghttp2_nv field(char *name, struct hk_str value, bool apart)
{
    union { /* nghttp2 only reads it */
        const char *in;
        uint8_t *out;
    } at = {.in = value.ptr};

    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = at.out,
                        .valuelen = value.len,
                        .flags = apart ? NGHTTP2_NV_FLAG_NO_INDEX : NGHTTP2_NV_FLAG_NONE};
}

/* A field that differs in each request would push the others out of the table that saves their bytes, and a secret must not be
 * in it. The first request of a connection puts in the names. */
static bool stands_apart(const struct hk_h2_conn *conn, const struct hk_request *request, size_t i,
                         size_t n_fixed)
{
    static const char *const alike[] = {"content-type", "hikyaku-event",  "ce-type",
                                        "ce-source",    "ce-specversion", "hikyaku-attempt"};
    if (request->lines[i].secret || i < n_fixed || !conn->took)
        return request->lines[i].secret;
    for (size_t k = 0; k < sizeof alike / sizeof alike[0]; k++) {
        if (hk_str_eqi(hk_request_name(request, i), hk_str_of(alike[k])))
            return false;
    }
    return true;
}

/* nghttp2 copies all of it, names in lower case. */
static size_t fill(const struct hk_h2_conn *conn, const struct hk_h2_transfer *h, nghttp2_nv *out,
                   char *length)
{
    static char method[] = ":method", scheme[] = ":scheme", authority[] = ":authority", path[] = ":path",
                accept[] = "accept", content_length[] = "content-length";
    const struct hk_h2_sink *self = conn->sink;
    struct hk_request *request = &conn->sink->base.base.fixed;
    size_t n = 0, n_fixed = request->n;
    out[n++] = field(method, hk_str_of(hk_http_method(&h->t)), false);
    out[n++] = field(scheme, hk_str_of(self->tls_files ? "https" : "http"), false);
    out[n++] = field(authority, hk_str_of(self->authority), false);
    out[n++] = field(path, hk_str_of(self->path), false);
    for (size_t i = 0; i < h->t.request.n; i++) {
        bool apart = stands_apart(conn, &h->t.request, i, n_fixed);
        out[n] = field(method, hk_request_value(&h->t.request, i), apart);
        out[n].name = (uint8_t *)h->t.request.text.data + h->t.request.lines[i].at;
        out[n++].namelen = h->t.request.lines[i].name_len;
    }
    if (!hk_request_has(&h->t.request, hk_str_of("Accept")))
        out[n++] = field(accept, hk_str_of("*/*"), false);
    out[n++] = field(content_length, hk_str_of(length), false);
    return n;
}

static struct hk_h2_stream *add_stream(struct hk_h2_conn *conn, struct hk_h2_transfer *h)
{
    struct hk_h2_stream *stream = hk_mem_zalloc(1, sizeof *stream);
    if (!stream)
        return NULL;
    stream->owner = h;
    stream->next = conn->streams;
    if (conn->streams)
        conn->streams->prev = stream;
    conn->streams = stream;
    conn->n_streams++;
    return stream;
}

static void drop_newest(struct hk_h2_conn *conn)
{
    struct hk_h2_stream *stream = conn->streams;
    conn->streams = stream->next;
    if (stream->next)
        stream->next->prev = NULL;
    conn->n_streams--;
    hk_mem_free(stream);
}

enum hk_code hk_h2_session_request(struct hk_h2_conn *conn, struct hk_h2_transfer *h)
{
    nghttp2_nv fields[HK_REQUEST_LINES_MAX + OWN_FIELDS];
    char length[24];
    (void)snprintf(length, sizeof length, "%zu", h->t.payload.len);
    struct hk_h2_stream *stream = add_stream(conn, h);
    if (!stream || conn->no_memory) {
        if (stream)
            drop_newest(conn);
        return HK_NOMEM;
    }
    nghttp2_data_provider payload = {.source = {.ptr = NULL}, .read_callback = on_read_payload};
    size_t n = fill(conn, h, fields, length);
    int32_t id =
        nghttp2_submit_request(conn->session, NULL, fields, n, h->t.payload.len ? &payload : NULL, stream);
    if (id < 0) {
        drop_newest(conn);
        return id == NGHTTP2_ERR_NOMEM ? HK_NOMEM : HK_BUSY;
    }
    h->stream = stream;
    h->id = id;
    return HK_OK;
}

void hk_h2_session_cancel(struct hk_h2_transfer *h)
{
    if (!h->stream)
        return;
    h->stream->owner = NULL;
    h->stream = NULL;
    if (h->conn->no_memory ||
        nghttp2_submit_rst_stream(h->conn->session, NGHTTP2_FLAG_NONE, h->id, NGHTTP2_CANCEL) != 0)
        hk_h2_conn_drain(h->conn); /* no memory: the stream stays until the connection ends */
}

void hk_h2_session_ping(struct hk_h2_conn *conn)
{
    if (!conn->no_memory)
        (void)nghttp2_submit_ping(conn->session, NGHTTP2_FLAG_NONE, NULL);
}

void hk_h2_session_goodbye(struct hk_h2_conn *conn)
{
    if (!conn->no_memory)
        (void)nghttp2_submit_goaway(conn->session, NGHTTP2_FLAG_NONE, 0, NGHTTP2_NO_ERROR, NULL, 0);
}

const char *hk_h2_code_name(uint32_t code)
{
    return nghttp2_http2_strerror(code);
}

bool hk_h2_code_is_refusal(uint32_t code)
{
    return code == NGHTTP2_REFUSED_STREAM;
}
