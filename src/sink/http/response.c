/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the start of an answer. */
#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "sink/http/header.h"
#include "sink/http/response.h"

void hk_response_init(struct hk_response *response)
{
    memset(response, 0, sizeof *response);
    hk_buf_init(&response->text, HK_HTTP_HEADERS_KEEP_MAX);
    hk_response_keep(response, HK_HTTP_KEEP_MAX);
    response->body_kept = true;
    response->read_max = HK_HTTP_READ_MAX;
}

void hk_response_keep(struct hk_response *response, size_t keep_max)
{
    response->keep_max = keep_max;
    hk_buf_init(&response->body, keep_max);
}

void hk_response_fini(struct hk_response *response)
{
    hk_buf_fini(&response->text);
    hk_buf_fini(&response->body);
}

static void new_block(struct hk_response *response)
{
    response->status = 0;
    response->n_kept = 0;
    hk_buf_reset(&response->text);
}

void hk_response_reset(struct hk_response *response)
{
    new_block(response);
    if (response->body.room > HK_HTTP_READ_MAX)
        hk_buf_fini(&response->body);
    hk_buf_reset(&response->body);
    response->body_kept = true;
    response->final = 0;
    response->any = false;
    response->head_bytes = response->body_bytes = 0;
    response->lines = 0;
}

/* Three digits at least; 0 when they are not there. */
static int number_of(struct hk_str rest)
{
    int status = 0;
    for (size_t i = 0; i < 3; i++) {
        if (i >= rest.len || !hk_ascii_isdigit(rest.ptr[i]))
            return 0;
        status = status * 10 + (rest.ptr[i] - '0');
    }
    return status;
}

/* "HTTP/1.1 204 No Content", "HTTP/2 204"; 0 when there is no status. */
static int status_of(struct hk_str line)
{
    struct hk_str rest = line;
    (void)hk_str_cut(&rest, ' ');
    while (rest.len && rest.ptr[0] == ' ') {
        rest.ptr++;
        rest.len--;
    }
    return number_of(rest);
}

/* What does not fit is left out: hints stand near the top, and they are hints. */
void hk_response_field(struct hk_response *response, struct hk_str name, struct hk_str value)
{
    size_t at = response->text.len;
    if (response->n_kept == HK_HTTP_HEADERS_MAX || name.len > HK_HEADER_NAME_MAX ||
        at + name.len + value.len + 2 > HK_HTTP_HEADERS_KEEP_MAX)
        return;
    hk_buf_add(&response->text, name.ptr, name.len);
    hk_buf_addc(&response->text, '\0');
    hk_buf_add(&response->text, value.ptr, value.len);
    if (hk_buf_addc(&response->text, '\0') != HK_OK)
        return;
    response->kept[response->n_kept].name = (uint16_t)at;
    response->kept[response->n_kept].name_len = (uint16_t)name.len;
    response->kept[response->n_kept].value = (uint16_t)(at + name.len + 1);
    response->kept[response->n_kept].value_len = (uint16_t)value.len;
    response->n_kept++;
}

static void keep(struct hk_response *response, struct hk_str line)
{
    struct hk_str value = line;
    struct hk_str name = hk_str_cut(&value, ':');
    if (value.ptr && hk_header_name_ok(name))
        hk_response_field(response, name, hk_str_trim(value));
}

static struct hk_str without_line_end(struct hk_str line)
{
    while (line.len && (line.ptr[line.len - 1] == '\n' || line.ptr[line.len - 1] == '\r'))
        line.len--;
    return line;
}

void hk_response_begin(struct hk_response *response, int status)
{
    new_block(response);
    response->status = status;
}

enum hk_response_next hk_response_end(struct hk_response *response)
{
    if (response->status == 101)
        return HK_RESPONSE_BAD;
    if (response->status >= 200)
        response->final = response->status;
    return HK_RESPONSE_MORE;
}

void hk_response_final(struct hk_response *response, struct hk_str status)
{
    hk_response_begin(response, number_of(status));
    (void)hk_response_end(response);
}

enum hk_response_next hk_response_count(struct hk_response *response, size_t line_bytes)
{
    response->any = true;
    response->head_bytes += line_bytes;
    response->lines++;
    if (response->head_bytes > HK_HTTP_HEAD_MAX || response->lines > HK_HTTP_HEAD_LINES_MAX)
        return response->final ? HK_RESPONSE_ENOUGH : HK_RESPONSE_TOO_BIG;
    return HK_RESPONSE_MORE;
}

enum hk_response_next hk_response_line(struct hk_response *response, struct hk_str line)
{
    enum hk_response_next next = hk_response_count(response, line.len);
    if (next != HK_RESPONSE_MORE || response->final) /* trailers are not kept */
        return next;
    line = without_line_end(line);
    if (!line.len)
        return hk_response_end(response);
    if (response->status == 0 || hk_str_starts(line, hk_str_of("HTTP/")))
        hk_response_begin(response, status_of(line));
    else
        keep(response, line);
    return HK_RESPONSE_MORE;
}

enum hk_response_next hk_response_body(struct hk_response *response, struct hk_str piece)
{
    response->any = true;
    size_t room = response->keep_max - response->body.len;
    enum hk_code rc = hk_buf_add(&response->body, piece.ptr, piece.len < room ? piece.len : room);
    if (rc != HK_OK || piece.len > room)
        response->body_kept = false;
    response->body_bytes += piece.len;
    return response->body_bytes > response->read_max ? HK_RESPONSE_ENOUGH : HK_RESPONSE_MORE;
}

/* Shorter ones stand in any text by chance. */
#define SECRET_MIN 6

static void hide_in(struct hk_buf *buf, struct hk_str secret)
{
    for (size_t at = 0; at + SECRET_MIN <= buf->len; at++) {
        size_t fits = buf->len - at < secret.len ? buf->len - at : secret.len;
        if (buf->data[at] == secret.ptr[0] && memcmp(buf->data + at, secret.ptr, fits) == 0)
            memset(buf->data + at, '*', fits);
    }
}

void hk_response_hide(struct hk_response *response, struct hk_str secret)
{
    if (secret.len < SECRET_MIN)
        return;
    hide_in(&response->text, secret);
    hide_in(&response->body, secret);
}

size_t hk_response_headers(const struct hk_response *response, struct hk_header *out)
{
    if (!response->final)
        return 0;
    for (size_t i = 0; i < response->n_kept; i++) {
        const char *text = response->text.data;
        out[i].name = (struct hk_str){text + response->kept[i].name, response->kept[i].name_len};
        out[i].value = (struct hk_str){text + response->kept[i].value, response->kept[i].value_len};
    }
    return response->n_kept;
}

static bool came_before(const struct hk_header *headers, size_t i)
{
    for (size_t k = 0; k < i; k++) {
        if (hk_str_eqi(headers[k].name, headers[i].name))
            return true;
    }
    return false;
}

/* The values of header i and of all later ones of its name. */
static void show_value(struct hk_json *json, struct hk_buf *joined, const struct hk_header *headers, size_t n,
                       size_t i)
{
    if (hk_str_eqi(headers[i].name, hk_str_of("set-cookie"))) {
        hk_json_cstr(json, "***");
        return;
    }
    hk_buf_reset(joined);
    bool several = false;
    for (size_t k = i + 1; k < n; k++) {
        if (!hk_str_eqi(headers[k].name, headers[i].name))
            continue;
        if (!several)
            hk_buf_add(joined, headers[i].value.ptr, headers[i].value.len);
        hk_buf_adds(joined, ", ");
        hk_buf_add(joined, headers[k].value.ptr, headers[k].value.len);
        several = true;
    }
    hk_json_str(json, several && hk_buf_status(joined) == HK_OK ? hk_buf_str(joined) : headers[i].value);
}

void hk_response_show(const struct hk_response *response, struct hk_buf *out)
{
    struct hk_header headers[HK_HTTP_HEADERS_MAX];
    size_t n = hk_response_headers(response, headers);
    struct hk_buf joined;
    hk_buf_init(&joined, HK_HTTP_HEADERS_KEEP_MAX + 2 * HK_HTTP_HEADERS_MAX);
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    for (size_t i = 0; i < n; i++) {
        if (came_before(headers, i))
            continue;
        char name[HK_HEADER_NAME_MAX + 1];
        (void)hk_str_copy(name, sizeof name, headers[i].name);
        hk_json_key(&json, name);
        show_value(&json, &joined, headers, n, i);
    }
    hk_json_end(&json);
    hk_buf_fini(&joined);
}
