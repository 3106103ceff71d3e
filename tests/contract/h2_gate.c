/* SPDX-License-Identifier: Apache-2.0 */
/* The gate. One request is in front: its text is the script's to read, and the script's text is its answer. The others wait, whole
 * or in part, until both are over. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <nghttp2/nghttp2.h>

#include "h2_gate.h"

#define FIELDS_MAX 700

struct bytes {
    char *data;
    size_t len, room;
};

struct stream {
    struct stream *next;
    int32_t id;
    struct bytes head, text; /* text: of the request, while it is not in front */
    char *path, *method;
    bool begun; /* its head was told */
    bool asked; /* the request is whole */
    /* the answer */
    struct bytes body;
    size_t body_at;
    bool answering; /* its final head is out */
    bool bounded;   /* left says what is to come */
    size_t left;
    bool over;
};

struct h2_gate {
    struct h2_gate_calls calls;
    nghttp2_session *session;
    struct stream *streams; /* the first is in front */
    struct bytes answer;    /* the beginning of a head */
    bool gone;
};

static void add(struct bytes *b, const void *data, size_t len)
{
    if (b->len + len + 1 > b->room) {
        b->room = 2 * (b->len + len + 1);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    if (len)
        memcpy(b->data + b->len, data, len);
    b->len += len;
    b->data[b->len] = '\0';
}

static void adds(struct bytes *b, const char *text)
{
    add(b, text, strlen(text));
}

/* ---- requests ---- */

static struct stream *find(const struct h2_gate *gate, int32_t id)
{
    struct stream *s = gate->streams;
    while (s && s->id != id)
        s = s->next;
    return s;
}

static void free_stream(struct stream *s)
{
    free(s->head.data);
    free(s->text.data);
    free(s->path);
    free(s->method);
    free(s->body.data);
    free(s);
}

static void tell(struct h2_gate *gate, struct stream *s, const char *bytes, size_t len)
{
    if (gate->streams == s)
        gate->calls.text(gate->calls.arg, bytes, len);
    else
        add(&s->text, bytes, len);
}

static void drop(struct h2_gate *gate, struct stream *s)
{
    struct stream **at = &gate->streams;
    while (*at != s)
        at = &(*at)->next;
    bool front = gate->streams == s;
    *at = s->next;
    free_stream(s);
    if (front && gate->streams && gate->streams->text.len)
        gate->calls.text(gate->calls.arg, gate->streams->text.data, gate->streams->text.len);
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)session;
    struct h2_gate *gate = arg;
    struct stream *s = calloc(1, sizeof *s), **at = &gate->streams;
    if (!s)
        abort();
    s->id = frame->hd.stream_id;
    while (*at)
        at = &(*at)->next;
    *at = s;
    return 0;
}

/* HTTP/2 has names in lower case alone: as HTTP/1.1 has them, where the relay writes them so. */
static void add_name(struct bytes *head, const char *name, size_t len)
{
    bool lower = strncmp(name, "webhook-", 8) == 0 || strncmp(name, "ce-", 3) == 0 || name[0] == 't';
    size_t at = head->len;
    add(head, name, len);
    for (size_t i = 0; i < len && !lower; i++) {
        char *c = head->data + at + i;
        if ((i == 0 || c[-1] == '-') && *c >= 'a' && *c <= 'z')
            *c = (char)(*c - 'a' + 'A');
    }
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags, void *arg)
{
    (void)session, (void)flags;
    struct stream *s = find(arg, frame->hd.stream_id);
    if (!s)
        return 0;
    if (strcmp((const char *)name, ":method") == 0) {
        s->method = strndup((const char *)value, value_len);
    } else if (strcmp((const char *)name, ":path") == 0) {
        s->path = strndup((const char *)value, value_len);
    } else if (name[0] != ':' || strcmp((const char *)name, ":authority") == 0) {
        if (name[0] == ':')
            adds(&s->head, "Host");
        else
            add_name(&s->head, (const char *)name, name_len);
        adds(&s->head, value_len ? ": " : ":");
        add(&s->head, value, value_len);
        adds(&s->head, "\r\n");
    }
    return 0;
}

static int on_frame_recv(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    (void)session;
    struct stream *s = find(arg, frame->hd.stream_id);
    if (!s || frame->hd.type > NGHTTP2_HEADERS)
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && !s->begun) {
        struct bytes line = {NULL, 0, 0};
        adds(&line, s->method ? s->method : "?");
        adds(&line, " ");
        adds(&line, s->path ? s->path : "?");
        adds(&line, " HTTP/1.1\r\n");
        add(&line, s->head.data, s->head.len);
        adds(&line, "\r\n");
        s->begun = true;
        tell(arg, s, line.data, line.len);
        free(line.data);
    }
    if (!s->asked && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        struct h2_gate *gate = arg;
        s->asked = true;
        gate->calls.asked(gate->calls.arg);
    }
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t len,
                   void *arg)
{
    (void)session, (void)flags;
    struct stream *s = find(arg, id);
    if (s)
        tell(arg, s, (const char *)data, len);
    return 0;
}

static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
    (void)session, (void)code;
    struct stream *s = find(arg, id);
    if (s)
        drop(arg, s);
    return 0;
}

/* ---- answers ---- */

static ssize_t on_body(nghttp2_session *session, int32_t id, uint8_t *room, size_t len, uint32_t *flags,
                       nghttp2_data_source *source, void *arg)
{
    (void)session, (void)source;
    struct stream *s = find(arg, id);
    if (!s)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    size_t n = s->body.len - s->body_at < len ? s->body.len - s->body_at : len;
    bool last = s->over && s->body_at + n == s->body.len;
    if (n == 0 && !last)
        return NGHTTP2_ERR_DEFERRED;
    if (n)
        memcpy(room, s->body.data + s->body_at, n);
    s->body_at += n;
    if (last)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *data, size_t len, int flags, void *arg)
{
    (void)session, (void)flags;
    struct h2_gate *gate = arg;
    return gate->calls.write(gate->calls.arg, (const char *)data, len) ? (ssize_t)len
                                                                       : NGHTTP2_ERR_CALLBACK_FAILURE;
}

static bool send_all(struct h2_gate *gate)
{
    if (!gate->gone && nghttp2_session_send(gate->session) != 0)
        gate->gone = true;
    return !gate->gone;
}

static bool is_framing(const char *name)
{
    static const char *const names[] = {"connection", "keep-alive", "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcasecmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static nghttp2_nv field(char *name, char *value)
{
    return (nghttp2_nv){.name = (uint8_t *)name,
                        .namelen = strlen(name),
                        .value = (uint8_t *)value,
                        .valuelen = strlen(value)};
}

/* The next line; `*rest` is NULL behind the last. */
static char *cut_line(char **rest)
{
    char *line = *rest, *end = strchr(line, '\n');
    if (end)
        *end++ = '\0';
    *rest = end;
    return line;
}

/* `head` is cut up. */
static void answer_head(struct h2_gate *gate, struct stream *s, char *head)
{
    nghttp2_nv fields[FIELDS_MAX];
    char status_name[] = ":status", status[4] = "", *rest = head, *line = cut_line(&rest);
    (void)snprintf(status, sizeof status, "%.3s", strlen(line) > 9 ? line + 9 : "");
    size_t n = 0;
    fields[n++] = field(status_name, status);
    while (rest && n < FIELDS_MAX) {
        line = cut_line(&rest);
        line[strcspn(line, "\r")] = '\0';
        char *value = strchr(line, ':');
        if (!value || value == line)
            continue;
        *value++ = '\0';
        value += strspn(value, " \t");
        for (size_t k = strlen(value); k && strchr(" \t", value[k - 1]); k--)
            value[k - 1] = '\0';
        if (is_framing(line))
            continue;
        if (strcasecmp(line, "Content-Length") == 0) {
            s->bounded = true;
            s->left = 0;
            for (const char *c = value; *c >= '0' && *c <= '9'; c++)
                s->left = s->left * 10 + (size_t)(*c - '0');
        }
        fields[n++] = field(line, value);
    }
    nghttp2_data_provider body = {.source = {.ptr = NULL}, .read_callback = on_body};
    bool final = status[0] != '1';
    bool empty = (s->bounded && !s->left) || strcmp(status, "204") == 0 || strcmp(status, "304") == 0;
    if (!final) {
        (void)nghttp2_submit_headers(gate->session, NGHTTP2_FLAG_NONE, s->id, NULL, fields, n, NULL);
        s->bounded = false;
        return;
    }
    s->answering = true;
    s->over = empty;
    (void)nghttp2_submit_response(gate->session, s->id, fields, n, empty ? NULL : &body);
}

/* As much of the body as belongs to the answer; the rest is nobody's. */
static void answer_body(struct h2_gate *gate, struct stream *s, const char *text, size_t len)
{
    size_t n = s->bounded && s->left < len ? s->left : len;
    if (s->over)
        return;
    add(&s->body, text, n);
    s->left -= s->bounded ? n : 0;
    s->over = s->bounded && !s->left;
    (void)nghttp2_session_resume_data(gate->session, s->id);
}

static bool out(struct h2_gate *gate, int32_t id)
{
    for (;;) {
        const struct stream *s = find(gate, id);
        if (!send_all(gate))
            return false;
        s = find(gate, id);
        if (!s)
            return true; /* closed: the answer is out, or not wanted */
        if (s->body_at == s->body.len)
            return true;
        if (!gate->calls.read(gate->calls.arg)) /* its window is full */
            return false;
    }
}

static bool is_http(const struct h2_gate *gate, const char *text, size_t len)
{
    static const char start[] = "HTTP/1.";
    size_t n = len < sizeof start - 1 ? len : sizeof start - 1;
    return gate->answer.len || memcmp(text, start, n) == 0;
}

bool h2_gate_answer(struct h2_gate *gate, const char *text, size_t len)
{
    struct stream *s = gate->streams;
    bool answering = s && s->answering;
    if (!answering && !is_http(gate, text, len))
        return gate->calls.write(gate->calls.arg, text, len);
    if (!s)
        return false;
    int32_t id = s->id;
    if (answering) {
        answer_body(gate, s, text, len);
        return out(gate, id);
    }
    add(&gate->answer, text, len);
    for (char *end; !s->answering && (end = strstr(gate->answer.data, "\r\n\r\n")) != NULL;) {
        size_t head = (size_t)(end - gate->answer.data) + 4;
        end[2] = '\0';
        answer_head(gate, s, gate->answer.data);
        gate->answer.len -= head;
        memmove(gate->answer.data, gate->answer.data + head, gate->answer.len + 1);
    }
    if (s->answering) {
        answer_body(gate, s, gate->answer.data, gate->answer.len);
        gate->answer.len = 0;
    }
    return out(gate, id);
}

bool h2_gate_came(struct h2_gate *gate, const char *bytes, size_t len)
{
    if (nghttp2_session_mem_recv(gate->session, (const uint8_t *)bytes, len) < 0)
        return false;
    return send_all(gate);
}

struct h2_gate *h2_gate_new(const struct h2_gate_calls *calls)
{
    struct h2_gate *gate = calloc(1, sizeof *gate);
    nghttp2_session_callbacks *on = NULL;
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, 100}};
    if (!gate || nghttp2_session_callbacks_new(&on) != 0)
        abort();
    gate->calls = *calls;
    nghttp2_session_callbacks_set_on_begin_headers_callback(on, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(on, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame_recv);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(on, on_close);
    nghttp2_session_callbacks_set_send_callback(on, on_send);
    if (nghttp2_session_server_new(&gate->session, on, gate) != 0)
        abort();
    nghttp2_session_callbacks_del(on);
    (void)nghttp2_submit_settings(gate->session, NGHTTP2_FLAG_NONE, settings, 1);
    return gate;
}

void h2_gate_free(struct h2_gate *gate)
{
    if (!gate)
        return;
    nghttp2_session_del(gate->session);
    while (gate->streams) {
        struct stream *next = gate->streams->next;
        free_stream(gate->streams);
        gate->streams = next;
    }
    free(gate->answer.data);
    free(gate);
}
