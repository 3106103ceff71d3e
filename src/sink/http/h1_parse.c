/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of answers. Each step takes one line or one piece of body; hk_h1_feed goes on until the bytes are used up.
 * Most answers come in one piece, and their lines are read where they lie. */
#include <string.h>

#include "base/str.h"
#include "sink/http/h1_parse.h"
#include "sink/http/header.h"

#define CHUNK_LINE_MAX 4096

void hk_h1_answer_init(struct hk_h1_answer *a)
{
    memset(a, 0, sizeof *a);
    hk_buf_init(&a->part, HK_HTTP_HEAD_MAX + 1);
}

void hk_h1_answer_fini(struct hk_h1_answer *a)
{
    hk_buf_fini(&a->part);
}

void hk_h1_answer_reset(struct hk_h1_answer *a)
{
    a->state = HK_H1_STATUS;
    a->left = 0;
    hk_buf_reset(&a->part);
    hk_h1_framing_reset(&a->framing);
}

/* ---- lines ---- */

struct line {
    struct hk_str text; /* without its end */
    size_t bytes;       /* with it */
};

static struct line line_of(struct hk_str s)
{
    struct line line = {s, s.len};
    line.text.len--; /* the LF */
    if (line.text.len && line.text.ptr[line.text.len - 1] == '\r')
        line.text.len--;
    return line;
}

static size_t longest_line(const struct hk_h1_answer *a)
{
    return a->state == HK_H1_CHUNK_SIZE || a->state == HK_H1_CHUNK_END ? CHUNK_LINE_MAX : HK_HTTP_HEAD_MAX;
}

/* What must be the beginning of a status line need not be waited for when it is not. */
static bool may_be_status(const struct hk_h1_answer *a, struct hk_str s)
{
    static const char start[] = "HTTP/1.";
    size_t n = s.len < sizeof start - 1 ? s.len : sizeof start - 1;
    return a->state != HK_H1_STATUS || memcmp(s.ptr, start, n) == 0;
}

enum got {
    GOT_LINE,
    GOT_PART, /* all bytes are used up */
    GOT_TOO_LONG,
    GOT_NO_STATUS,
    GOT_NO_MEMORY
};

/* Cuts the next line off `*rest`, or keeps its beginning for later. */
static enum got next_line(struct hk_h1_answer *a, struct hk_str *rest, struct line *out)
{
    const char *end = rest->len ? memchr(rest->ptr, '\n', rest->len) : NULL;
    size_t n = end ? (size_t)(end - rest->ptr) + 1 : rest->len;
    if (a->part.len + n > longest_line(a))
        return GOT_TOO_LONG;
    if (end && !a->part.len) {
        *out = line_of((struct hk_str){rest->ptr, n});
    } else {
        if (hk_buf_add(&a->part, rest->ptr, n) != HK_OK)
            return GOT_NO_MEMORY;
        *out = end ? line_of(hk_buf_str(&a->part)) : (struct line){hk_buf_str(&a->part), 0};
        if (end)
            a->part.len = 0; /* its bytes stay until the next line comes */
    }
    rest->ptr += n;
    rest->len -= n;
    if (!may_be_status(a, out->text))
        return GOT_NO_STATUS;
    return end ? GOT_LINE : GOT_PART;
}

/* ---- fields ---- */

/* A NUL or a CR inside of a line would be read differently by the next one. */
static bool has_control(struct hk_str s)
{
    return memchr(s.ptr, '\0', s.len) || memchr(s.ptr, '\r', s.len);
}

/* False: this is no HTTP. */
static bool read_field(struct hk_h1_answer *a, struct hk_response *response, struct hk_str line)
{
    if (has_control(line))
        return false;
    if (line.ptr[0] == ' ' || line.ptr[0] == '\t') {
        a->framing.odd = true; /* the rest of a value, as it was written in 1999: left out */
        return true;
    }
    struct hk_str value = line;
    struct hk_str name = hk_str_cut(&value, ':');
    if (!value.ptr)
        return false;
    value = hk_str_trim(value);
    if (!hk_header_name_ok(name)) {
        a->framing.odd = true; /* no field of ours; "Content-Length : 5" is one to some */
        return true;
    }
    hk_response_field(response, name, value);
    return hk_h1_framing_field(&a->framing, name, value);
}

/* "HTTP/1.1 204 No Content"; 0 when it is not that. */
static int read_status(struct hk_str line)
{
    if (line.len < 12 || memcmp(line.ptr, "HTTP/1.", 7) != 0 || line.ptr[8] != ' ' || has_control(line) ||
        (line.ptr[7] != '1' && line.ptr[7] != '0') || (line.len > 12 && line.ptr[12] != ' '))
        return 0;
    int status = 0;
    for (size_t i = 9; i < 12; i++) {
        if (!hk_ascii_isdigit(line.ptr[i]))
            return 0;
        status = status * 10 + (line.ptr[i] - '0');
    }
    return status >= 100 ? status : 0;
}

/* ---- steps ---- */

static enum hk_h1_next stop(enum hk_h1_stop why, enum hk_h1_stop *out)
{
    *out = why;
    return HK_H1_STOP;
}

static enum hk_h1_next stopped(enum hk_response_next next, enum hk_h1_stop *out)
{
    switch (next) {
    case HK_RESPONSE_MORE:
        break;
    case HK_RESPONSE_ENOUGH:
        return stop(HK_H1_ENOUGH, out);
    case HK_RESPONSE_TOO_BIG:
        return stop(HK_H1_TOO_BIG, out);
    case HK_RESPONSE_BAD:
        return stop(HK_H1_SWITCH, out);
    }
    return HK_H1_MORE;
}

/* Once a final status is known nothing that follows can take it back. */
static enum hk_h1_next broken(const struct hk_response *response, enum hk_h1_stop *out)
{
    return stop(response->final ? HK_H1_ENOUGH : HK_H1_NOT_HTTP, out);
}

static enum hk_h1_next begin_body(struct hk_h1_answer *a, enum hk_h1_stop *out_stop)
{
    const struct hk_h1_framing *f = &a->framing;
    if (f->doubtful)
        return stop(HK_H1_ENOUGH, out_stop);
    a->left = f->length;
    if (f->chunked)
        a->state = HK_H1_CHUNK_SIZE;
    else if (f->other_coding || !f->has_length)
        a->state = HK_H1_UNTIL_CLOSED;
    else if (a->left)
        a->state = HK_H1_LENGTH;
    else
        return HK_H1_DONE;
    return HK_H1_MORE;
}

static enum hk_h1_next end_block(struct hk_h1_answer *a, struct hk_response *response,
                                 enum hk_h1_stop *out_stop)
{
    enum hk_response_next next = hk_response_end(response);
    if (next != HK_RESPONSE_MORE)
        return stopped(next, out_stop);
    bool bodiless = hk_h1_framing_end(&a->framing, response->status);
    if (response->final)
        return bodiless ? HK_H1_DONE : begin_body(a, out_stop);
    a->state = HK_H1_STATUS; /* that was an informational one */
    return HK_H1_MORE;
}

static enum hk_h1_next take_head_line(struct hk_h1_answer *a, struct hk_response *response,
                                      const struct line *line, enum hk_h1_stop *out_stop)
{
    enum hk_response_next next = hk_response_count(response, line->bytes);
    if (next != HK_RESPONSE_MORE)
        return stopped(next, out_stop);
    if (a->state == HK_H1_TRAILERS)
        return line->text.len ? HK_H1_MORE : HK_H1_DONE;
    if (a->state == HK_H1_FIELDS) {
        if (!line->text.len)
            return end_block(a, response, out_stop);
        return read_field(a, response, line->text) ? HK_H1_MORE : broken(response, out_stop);
    }
    int status = read_status(line->text);
    if (!status)
        return broken(response, out_stop);
    hk_h1_framing_begin(&a->framing, line->text.ptr[7] == '0');
    hk_response_begin(response, status);
    a->state = HK_H1_FIELDS;
    return HK_H1_MORE;
}

/* "1a;name=value": at most 15 digits, so that nothing overflows. */
static bool read_chunk_size(struct hk_str line, uint64_t *out)
{
    uint64_t size = 0;
    size_t i = 0;
    for (; i < line.len && i < 16; i++) {
        char c = hk_ascii_lower(line.ptr[i]);
        if (hk_ascii_isdigit(c))
            size = size * 16 + (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            size = size * 16 + (uint64_t)(c - 'a' + 10);
        else
            break;
    }
    *out = size;
    return i >= 1 && i <= 15 &&
           (i == line.len || line.ptr[i] == ';' || line.ptr[i] == ' ' || line.ptr[i] == '\t');
}

/* What frames a chunk counts as its body does: extensions could go on for ever, around single bytes. */
static enum hk_h1_next take_chunk_line(struct hk_h1_answer *a, struct hk_response *response,
                                       const struct line *line, enum hk_h1_stop *out_stop)
{
    response->body_bytes += line->bytes;
    if (response->body_bytes > response->read_max)
        return stop(HK_H1_ENOUGH, out_stop);
    if (a->state == HK_H1_CHUNK_END) {
        a->state = HK_H1_CHUNK_SIZE;
        return line->text.len ? stop(HK_H1_ENOUGH, out_stop) : HK_H1_MORE;
    }
    if (has_control(line->text) || !read_chunk_size(line->text, &a->left))
        return stop(HK_H1_ENOUGH, out_stop);
    a->state = a->left ? HK_H1_CHUNK : HK_H1_TRAILERS;
    return HK_H1_MORE;
}

static enum hk_h1_next take_line(struct hk_h1_answer *a, struct hk_response *response, struct hk_str *rest,
                                 enum hk_h1_stop *out_stop)
{
    struct line line;
    response->any = true;
    switch (next_line(a, rest, &line)) {
    case GOT_LINE:
        break;
    case GOT_PART:
        return HK_H1_MORE;
    case GOT_TOO_LONG:
        return stop(response->final ? HK_H1_ENOUGH : HK_H1_TOO_BIG, out_stop);
    case GOT_NO_STATUS:
        return stop(HK_H1_NOT_HTTP, out_stop);
    case GOT_NO_MEMORY:
        return stop(response->final ? HK_H1_ENOUGH : HK_H1_NO_MEMORY, out_stop);
    }
    if (a->state == HK_H1_CHUNK_SIZE || a->state == HK_H1_CHUNK_END)
        return take_chunk_line(a, response, &line, out_stop);
    return take_head_line(a, response, &line, out_stop);
}

static enum hk_h1_next take_body(struct hk_h1_answer *a, struct hk_response *response, struct hk_str *rest,
                                 enum hk_h1_stop *out_stop)
{
    bool bounded = a->state != HK_H1_UNTIL_CLOSED;
    size_t n = bounded && a->left < rest->len ? (size_t)a->left : rest->len;
    enum hk_response_next next = hk_response_body(response, (struct hk_str){rest->ptr, n});
    rest->ptr += n;
    rest->len -= n;
    if (next != HK_RESPONSE_MORE)
        return stopped(next, out_stop);
    if (!bounded)
        return HK_H1_MORE;
    a->left -= n;
    if (a->left)
        return HK_H1_MORE;
    if (a->state == HK_H1_LENGTH)
        return HK_H1_DONE;
    a->state = HK_H1_CHUNK_END;
    return HK_H1_MORE;
}

enum hk_h1_next hk_h1_feed(struct hk_h1_answer *a, struct hk_response *response, struct hk_str bytes,
                           size_t *out_used, enum hk_h1_stop *out_stop)
{
    struct hk_str rest = bytes;
    enum hk_h1_next next = HK_H1_MORE;
    while (rest.len && next == HK_H1_MORE) {
        bool body = a->state == HK_H1_LENGTH || a->state == HK_H1_CHUNK || a->state == HK_H1_UNTIL_CLOSED;
        next = body ? take_body(a, response, &rest, out_stop) : take_line(a, response, &rest, out_stop);
    }
    *out_used = bytes.len - rest.len;
    return next;
}

bool hk_h1_cut_off(const struct hk_h1_answer *a)
{
    return a->state == HK_H1_FIELDS || (a->state == HK_H1_STATUS && a->part.len > 0);
}
