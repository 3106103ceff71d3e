/* SPDX-License-Identifier: Apache-2.0 */
/* Builds header blocks. Each line is checked where it is added, so that nothing gets in another way. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "hk_version.h"
#include "observe/gzip.h"
#include "sink/http/body.h"
#include "sink/http/header.h"
#include "sink/http/request.h"

#define TEXT_MAX          ((size_t)80 * 1024)
#define ID_MAX            256
#define TASK_MAX          500
#define MESSAGE_LINES_MAX 64
#define STATIC_LINES_MAX  64
#define BODY_MAX          ((size_t)2 << 30)
#define BODY_KEEP         ((size_t)64 * 1024)

/* ---- one line ---- */

static bool printable(struct hk_str s, char first)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < first || s.ptr[i] > '~')
            return false;
    }
    return true;
}

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

static enum hk_code full(const struct hk_request *request, struct hk_err *err)
{
    if (hk_buf_status(&request->text) == HK_NOMEM)
        return no_memory(err);
    return hk_err_set(err, HK_INVALID, "too many or too long header fields");
}

static enum hk_code bad_name(struct hk_str name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_INVALID, "%s is not a name for a header field", hk_show(name, shown));
}

static enum hk_code bad_value(struct hk_str name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_INVALID,
                      "the value of header field %s has a control character or is over %d bytes",
                      hk_show(name, shown), HK_HEADER_VALUE_MAX);
}

/* The line whose value was written behind `open_line` is whole: checked here, wherever its bytes came from. */
static enum hk_code close_line(struct hk_request *request, struct hk_err *err)
{
    struct hk_buf *text = &request->text;
    if (hk_buf_status(text) != HK_OK)
        return full(request, err);
    size_t value_at = request->lines[request->n].at + request->lines[request->n].name_len + 2u;
    struct hk_str value = {text->data + value_at, text->len - value_at};
    struct hk_str name = hk_request_name(request, request->n);
    if (!hk_header_value_ok(value))
        return bad_value(name, err);
    if (!value.len)
        text->len--; /* "Name:" and no blank */
    request->lines[request->n].value_len = (uint16_t)value.len;
    if (hk_buf_add(text, "\r\n", 2) != HK_OK)
        return full(request, err);
    request->n++;
    return HK_OK;
}

/* `name` is a token. Its value follows, then close_line. */
static enum hk_code open_line(struct hk_request *request, struct hk_str name, bool secret, struct hk_err *err)
{
    if (request->n == HK_REQUEST_LINES_MAX)
        return full(request, err);
    request->lines[request->n].at = (uint32_t)request->text.len;
    request->lines[request->n].name_len = (uint16_t)name.len;
    request->lines[request->n].secret = secret;
    hk_buf_add(&request->text, name.ptr, name.len);
    hk_buf_add(&request->text, ": ", 2);
    return HK_OK;
}

/* Blanks around a value mean nothing in HTTP, and libcurl would take a blank value for "leave this field out". */
static enum hk_code add_line(struct hk_request *request, struct hk_str name, struct hk_str value, bool secret,
                             struct hk_err *err)
{
    if (!hk_header_name_ok(name))
        return bad_name(name, err);
    if (!hk_header_value_ok(value)) /* before blanks are taken off: the bound counts them */
        return bad_value(name, err);
    value = hk_str_trim(value);
    enum hk_code rc = open_line(request, name, secret, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_add(&request->text, value.ptr, value.len);
    return close_line(request, err);
}

/* `name` is one of ours. */
static enum hk_code add_text(struct hk_request *request, const char *name, struct hk_str value,
                             struct hk_err *err)
{
    return add_line(request, hk_str_of(name), value, false, err);
}

struct hk_str hk_request_name(const struct hk_request *request, size_t i)
{
    return (struct hk_str){request->text.data + request->lines[i].at, request->lines[i].name_len};
}

struct hk_str hk_request_value(const struct hk_request *request, size_t i)
{
    size_t at = request->lines[i].at + request->lines[i].name_len + 2u;
    return (struct hk_str){request->text.data + at, request->lines[i].value_len};
}

bool hk_request_has(const struct hk_request *request, struct hk_str name)
{
    for (size_t i = 0; i < request->n; i++) {
        if (hk_str_eqi(hk_request_name(request, i), name))
            return true;
    }
    return false;
}

static enum hk_code open_field(struct hk_request *request, const struct hk_request_base *base,
                               enum hk_request_field field, struct hk_err *err)
{
    return open_line(request, hk_str_of(base->fields[field].name), base->fields[field].secret, err);
}

/* ---- Standard Webhooks, Idempotency-Key, traceparent ---- */

/* The dot parts the signed texts from each other, so a signed id must not hold one. A task's name may be longer than an id. */
static enum hk_code check_id(struct hk_str id, const struct hk_request_base *base, struct hk_err *err)
{
    bool is_signed = base->signer != NULL;
    size_t most = base->queue ? TASK_MAX : ID_MAX;
    bool good = id.len >= 1 && id.len <= most && printable(id, '!');
    if (good && (!is_signed || !memchr(id.ptr, '.', id.len)))
        return HK_OK;
    char shown[HK_SHOW_MAX];
    if (!good)
        return hk_err_set(err, HK_INVALID, "message_id %s must be 1 to %zu visible ASCII characters",
                          hk_show(id, shown), most);
    return hk_err_set(
        err, HK_INVALID,
        "message_id %s cannot be signed: it must be 1 to %d visible ASCII characters without a dot",
        hk_show(id, shown), ID_MAX);
}

static enum hk_code add_signature(struct hk_request *request, struct hk_signer *signer,
                                  const struct hk_message *msg, int64_t unix_s, struct hk_err *err)
{
    enum hk_code rc = open_line(request, hk_str_of("webhook-signature"), true, err);
    if (rc != HK_OK)
        return rc;
    rc = hk_signer_sign(signer, msg->message_id, unix_s, request->body, &request->text);
    if (rc == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "cannot sign: out of memory");
    return close_line(request, err);
}

static enum hk_code add_webhook(struct hk_request *request, struct hk_signer *signer,
                                const struct hk_message *msg, int64_t wall_ms, struct hk_err *err)
{
    int64_t unix_s = wall_ms / 1000;
    char number[24];
    int len = snprintf(number, sizeof number, "%" PRId64, unix_s);
    enum hk_code rc = add_text(request, "webhook-id", msg->message_id, err);
    if (rc == HK_OK)
        rc = add_text(request, "webhook-timestamp", (struct hk_str){number, (size_t)len}, err);
    if (rc == HK_OK && signer)
        rc = add_signature(request, signer, msg, unix_s, err);
    return rc;
}

/* A string of RFC 8941: the quotes are part of the field's value. */
static enum hk_code add_idempotency_key(struct hk_request *request, const struct hk_request_base *base,
                                        const struct hk_message *msg, struct hk_err *err)
{
    if (!base->fields[HK_FIELD_IDEMPOTENCY_KEY].name[0])
        return HK_OK;
    struct hk_str key = msg->idempotency_key.len ? msg->idempotency_key : msg->message_id;
    if (!printable(key, ' ') || key.len > HK_HEADER_VALUE_MAX / 2 - 2) {
        char shown[HK_SHOW_MAX];
        return hk_err_set(err, HK_INVALID,
                          "idempotency_key %s must be printable ASCII of at most %d characters",
                          hk_show(key, shown), HK_HEADER_VALUE_MAX / 2 - 2);
    }
    enum hk_code rc = open_field(request, base, HK_FIELD_IDEMPOTENCY_KEY, err);
    if (rc != HK_OK)
        return rc;
    struct hk_buf *text = &request->text;
    hk_buf_addc(text, '"');
    size_t from = 0;
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] != '"' && key.ptr[i] != '\\')
            continue;
        hk_buf_add(text, key.ptr + from, i - from);
        hk_buf_addc(text, '\\');
        from = i;
    }
    hk_buf_add(text, key.ptr + from, key.len - from);
    hk_buf_addc(text, '"');
    return close_line(request, err);
}

bool hk_request_is_traceparent(struct hk_str s)
{
    static const char zeros[] = "00000000000000000000000000000000";
    if (s.len != 55 || memcmp(s.ptr, "00-", 3) != 0 || s.ptr[35] != '-' || s.ptr[52] != '-')
        return false;
    for (size_t i = 3; i < s.len; i++) {
        char c = s.ptr[i];
        if (i != 35 && i != 52 && !hk_ascii_isdigit(c) && (c < 'a' || c > 'f'))
            return false;
    }
    return memcmp(s.ptr + 3, zeros, 32) != 0 && memcmp(s.ptr + 36, zeros, 16) != 0;
}

static enum hk_code add_traceparent(struct hk_request *request, const struct hk_request_base *base,
                                    struct hk_str value, struct hk_err *err)
{
    if (!base->fields[HK_FIELD_TRACEPARENT].name[0] || !hk_request_is_traceparent(value))
        return HK_OK;
    enum hk_code rc = open_field(request, base, HK_FIELD_TRACEPARENT, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_add(&request->text, value.ptr, value.len);
    return close_line(request, err);
}

/* ---- texts that may hold anything ---- */

/* Written as %XX: what is not plain ASCII, and '%'. Blanks at the ends too, since HTTP would drop them; with `strict` (as
 * CloudEvents has it) all blanks and quotes. */
static bool must_escape(struct hk_str s, size_t i, bool strict)
{
    unsigned char c = (unsigned char)s.ptr[i];
    if (c > ' ' && c < 0x7f)
        return c == '%' || (strict && c == '"');
    return c != ' ' || strict || i == 0 || i == s.len - 1;
}

static size_t escaped_len(struct hk_str s, bool strict)
{
    size_t n = s.len;
    for (size_t i = 0; i < s.len; i++)
        n += must_escape(s, i, strict) ? 2 : 0;
    return n;
}

static void add_escaped(struct hk_buf *text, struct hk_str s, bool strict)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t from = 0;
    for (size_t i = 0; i < s.len; i++) {
        if (!must_escape(s, i, strict))
            continue;
        unsigned char c = (unsigned char)s.ptr[i];
        const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
        hk_buf_add(text, s.ptr + from, i - from);
        hk_buf_add(text, escape, sizeof escape);
        from = i + 1;
    }
    hk_buf_add(text, s.ptr + from, s.len - from);
}

/* ---- CloudEvents, binary mode ---- */

static enum hk_code add_ce(struct hk_request *request, const char *name, struct hk_str value,
                           struct hk_err *err)
{
    if (escaped_len(value, true) > HK_HEADER_VALUE_MAX)
        return hk_err_set(err, HK_INVALID, "%s would be over %d bytes", name, HK_HEADER_VALUE_MAX);
    enum hk_code rc = open_line(request, hk_str_of(name), false, err);
    if (rc != HK_OK)
        return rc;
    add_escaped(&request->text, value, true);
    return close_line(request, err);
}

static enum hk_code add_cloudevents(struct hk_request *request, const char *source,
                                    const struct hk_message *msg, struct hk_err *err)
{
    if (!msg->event_type.len)
        return hk_err_set(err, HK_INVALID, "a CloudEvent needs an event_type");
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(msg->created_ms, time);
    bool traced = hk_request_is_traceparent(msg->traceparent);

    const struct {
        const char *name;
        struct hk_str value;
    } attributes[] = {{"ce-specversion", hk_str_of("1.0")}, {"ce-id", msg->message_id},
                      {"ce-source", hk_str_of(source)},     {"ce-type", msg->event_type},
                      {"ce-time", hk_str_of(time)},         {"ce-traceparent", msg->traceparent}};
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < 5u + traced && rc == HK_OK; i++)
        rc = add_ce(request, attributes[i].name, attributes[i].value, err);
    return rc;
}

/* ---- fields of the message ---- */

static bool is_named(const struct hk_request_base *base, enum hk_request_field field, struct hk_str name)
{
    return hk_str_eqi(hk_str_of(base->fields[field].name), name);
}

/* Left out where there is nothing to say, where it would be too long, and where the message's own headers have the name. */
static enum hk_code add_field(struct hk_request *request, const struct hk_request_base *base,
                              enum hk_request_field field, struct hk_str value, bool may_be_there,
                              struct hk_err *err)
{
    bool strict = base->ce_source != NULL;
    struct hk_str name = hk_str_of(base->fields[field].name);
    if (!name.len || !value.len || escaped_len(value, strict) > HK_HEADER_VALUE_MAX ||
        (may_be_there && hk_request_has(request, name)))
        return HK_OK;
    enum hk_code rc = open_field(request, base, field, err);
    if (rc != HK_OK)
        return rc;
    add_escaped(&request->text, value, strict);
    return close_line(request, err);
}

static enum hk_code add_fields(struct hk_request *request, const struct hk_request_base *base,
                               const struct hk_message *msg, uint32_t attempt, struct hk_err *err)
{
    bool own = msg->headers.len > 0;
    char number[16];
    int len = snprintf(number, sizeof number, "%" PRIu32, attempt);
    enum hk_code rc = add_field(request, base, HK_FIELD_EVENT_TYPE, msg->event_type, own, err);
    if (rc == HK_OK)
        rc = add_field(request, base, HK_FIELD_CORRELATION_ID, msg->correlation_id, own, err);
    if (rc == HK_OK)
        rc = add_field(request, base, HK_FIELD_ATTEMPT, (struct hk_str){number, (size_t)len}, own, err);
    return rc;
}

struct from_message {
    struct hk_request *request;
    const struct hk_request_base *base;
    size_t n;
};

/* ---- what the message says of its request ---- */

static enum hk_code take_url(struct hk_request *request, struct hk_str value, struct hk_err *err)
{
    const char *wrong = hk_target_url_wrong(value);
    if (wrong)
        return hk_err_set(err, HK_INVALID, "headers: " HK_TARGET_URL " %s", wrong);
    hk_buf_reset(&request->url);
    return hk_buf_add(&request->url, value.ptr, value.len) == HK_OK ? HK_OK : no_memory(err);
}

static enum hk_code take_target(struct from_message *from, struct hk_str name, struct hk_str value,
                                struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    uint64_t ms = 0;
    if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT))) { /* the engine has read it */
        if (hk_parse_duration(value, &ms, NULL) == HK_OK && ms > 0)
            return HK_OK;
        return hk_err_set(err, HK_INVALID, "headers: " HK_TARGET_TIMEOUT " is not a duration such as 90s");
    }
    bool url = hk_str_eq(name, hk_str_of(HK_TARGET_URL)),
         method = hk_str_eq(name, hk_str_of(HK_TARGET_METHOD));
    if (!url && !method)
        return bad_name(name, err);
    if (!from->base->targeted)
        return hk_err_set(
            err, HK_INVALID,
            "headers: %s is only for destinations with \"url: message\", and this one has a URL",
            hk_show(name, shown));
    if (url)
        return take_url(from->request, value, err);
    if (!hk_target_method_ok(value) || !hk_str_copy(from->request->method, HK_TARGET_METHOD_MAX, value))
        return hk_err_set(err, HK_INVALID,
                          "headers: " HK_TARGET_METHOD
                          " must be GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
    return HK_OK;
}

static enum hk_code check_target(const struct hk_request *request, const struct hk_request_base *base,
                                 const struct hk_message *msg, struct hk_err *err)
{
    if (!base->targeted)
        return HK_OK;
    if (!request->url.len)
        return hk_err_set(err, HK_INVALID,
                          "headers: " HK_TARGET_URL
                          " is missing, and this destination has no URL of its own");
    if (msg->payload.len && request->method[0] && !hk_target_method_has_body(hk_str_of(request->method)))
        return hk_err_set(err, HK_INVALID, "a %s request carries no body: its payload must be empty",
                          request->method);
    return HK_OK;
}

/* ---- Cloud Tasks ---- */

static enum hk_code add_number(struct hk_request *request, const char *name, int64_t value,
                               struct hk_err *err)
{
    char number[24];
    int len = snprintf(number, sizeof number, "%" PRId64, value);
    return add_text(request, name, (struct hk_str){number, (size_t)len}, err);
}

/* Responses that were no 5xx: policies class those, and attempts without a response, as transient. */
static uint32_t executions(const struct hk_history *history)
{
    uint32_t n = 0;
    for (int c = HK_CLASS_TRANSIENT + 1; c < HK_NCLASSES; c++)
        n += history->failures[c];
    return n;
}

/* When it was to go: as scheduled at first, and at its retries when they are due, which is now. */
static int64_t eta_s(const struct hk_message *msg, int64_t wall_ms)
{
    int64_t first_ms = msg->not_before_ms ? msg->not_before_ms : msg->created_ms;
    return (msg->history.attempts || !first_ms ? wall_ms : first_ms) / 1000;
}

static enum hk_code add_queue(struct hk_request *request, const char *queue, const struct hk_message *msg,
                              int64_t wall_ms, struct hk_err *err)
{
    enum hk_code rc = add_text(request, "X-CloudTasks-QueueName", hk_str_of(queue), err);
    if (rc == HK_OK)
        rc = add_text(request, "X-CloudTasks-TaskName", msg->message_id, err);
    if (rc == HK_OK)
        rc = add_number(request, "X-CloudTasks-TaskRetryCount", msg->history.attempts, err);
    if (rc == HK_OK)
        rc = add_number(request, "X-CloudTasks-TaskExecutionCount", executions(&msg->history), err);
    if (rc == HK_OK)
        rc = add_number(request, "X-CloudTasks-TaskETA", eta_s(msg, wall_ms), err);
    if (rc == HK_OK && msg->last_status)
        rc = add_number(request, "X-CloudTasks-TaskPreviousResponse", msg->last_status, err);
    if (rc == HK_OK && msg->last_cause.len)
        rc = add_text(request, "X-CloudTasks-TaskRetryReason", msg->last_cause, err);
    return rc;
}

/* ---- its headers ---- */

static enum hk_code add_from_message(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err)
{
    struct from_message *from = arg;
    char shown[HK_SHOW_MAX];
    if (hk_target_is_name(name))
        return take_target(from, name, value, err);
    if (++from->n > MESSAGE_LINES_MAX)
        return hk_err_set(err, HK_INVALID, "headers: more than %d", MESSAGE_LINES_MAX);
    if (from->base->queue ? hk_header_not_for_tasks(name) : hk_header_not_for_messages(name))
        return hk_err_set(err, HK_INVALID, "headers: %s is not for a message to set", hk_show(name, shown));
    if (hk_request_has(&from->base->fixed, name) || is_named(from->base, HK_FIELD_IDEMPOTENCY_KEY, name) ||
        is_named(from->base, HK_FIELD_TRACEPARENT, name))
        return HK_OK; /* the destination's own setting wins */
    if (hk_request_has(from->request, name))
        return hk_err_set(err, HK_INVALID, "headers: %s is given twice", hk_show(name, shown));
    return add_line(from->request, name, value, hk_header_secret(name), err);
}

/* ---- the whole ---- */

void hk_request_init(struct hk_request *request)
{
    hk_buf_init(&request->text, TEXT_MAX);
    hk_buf_init(&request->url, HK_TARGET_URL_MAX + 1);
    hk_buf_init(&request->made, BODY_MAX);
    hk_buf_init(&request->packed, BODY_MAX);
    request->body = (struct hk_str){NULL, 0};
    request->method[0] = '\0';
    request->n = 0;
}

void hk_request_fini(struct hk_request *request)
{
    hk_secret_wipe(request->text.data, request->text.len);
    hk_secret_wipe(request->url.data, request->url.len);
    hk_buf_fini(&request->text);
    hk_buf_fini(&request->url);
    hk_buf_fini(&request->made);
    hk_buf_fini(&request->packed);
}

void hk_request_shrink(struct hk_request *request)
{
    struct hk_buf *bufs[] = {&request->made, &request->packed};
    for (size_t i = 0; i < 2; i++) {
        if (bufs[i]->len <= BODY_KEEP)
            continue;
        hk_buf_fini(bufs[i]);
        hk_buf_init(bufs[i], BODY_MAX);
    }
}

static enum hk_code copy_fixed(struct hk_request *request, const struct hk_request *fixed, struct hk_err *err)
{
    hk_buf_reset(&request->text);
    hk_buf_add(&request->text, fixed->text.data, fixed->text.len);
    memcpy(request->lines, fixed->lines, fixed->n * sizeof fixed->lines[0]);
    request->n = fixed->n;
    hk_buf_reset(&request->url);
    request->method[0] = '\0';
    return hk_buf_status(&request->text) == HK_OK ? HK_OK : full(request, err);
}

/* What is said of a message beside its own headers. */
static enum hk_code add_envelope(struct hk_request *request, struct hk_request_base *base,
                                 const struct hk_message *msg, int64_t wall_ms, struct hk_err *err)
{
    if (base->queue)
        return add_queue(request, base->queue, msg, wall_ms, err);
    enum hk_code rc = add_webhook(request, base->signer, msg, wall_ms, err);
    if (rc == HK_OK)
        rc = add_idempotency_key(request, base, msg, err);
    if (rc == HK_OK && base->ce_source && !base->structured)
        rc = add_cloudevents(request, base->ce_source, msg, err);
    return rc;
}

static struct hk_str type_of(const struct hk_request_base *base, const struct hk_message *msg)
{
    if (base->structured)
        return hk_str_of("application/cloudevents+json");
    if (msg->content_type.len)
        return msg->content_type;
    return hk_str_of(base->queue ? "application/octet-stream" : "application/json");
}

/* The body is compressed where that makes it smaller. */
static enum hk_code pack(struct hk_request *request, struct hk_err *err)
{
    hk_buf_reset(&request->packed);
    enum hk_code rc = hk_gzip(request->body, &request->packed);
    if (rc == HK_NOMEM)
        return no_memory(err);
    if (rc != HK_OK || request->packed.len >= request->body.len)
        return HK_OK;
    request->body = hk_buf_str(&request->packed);
    return add_text(request, "Content-Encoding", hk_str_of("gzip"), err);
}

/* Before the signature, which is over what is sent. */
static enum hk_code add_body(struct hk_request *request, const struct hk_request_base *base,
                             const struct hk_message *msg, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    request->body = msg->payload;
    if (base->url_template)
        rc = hk_url_fill(base->url_template, base->name, msg, &request->url, err);
    if (rc == HK_OK && base->structured) {
        rc = hk_body_event(base->ce_source, msg, &request->made, err);
        request->body = hk_buf_str(&request->made);
    }
    return rc == HK_OK && base->gzip && request->body.len >= HK_HTTP_GZIP_MIN ? pack(request, err) : rc;
}

static enum hk_code add_late(struct hk_request *request, const struct hk_request_base *base,
                             const struct hk_message *msg, int64_t wall_ms, struct hk_err *err)
{
    struct hk_http_header fields[HK_HTTP_LATE_MAX];
    size_t n = base->late(base->late_arg, msg, wall_ms, fields);
    enum hk_code rc = HK_OK;
    for (size_t i = 0; i < n && rc == HK_OK; i++)
        rc = add_line(request, hk_str_of(fields[i].name), hk_str_of(fields[i].value), fields[i].secret, err);
    return rc;
}

enum hk_code hk_request_build(struct hk_request *request, struct hk_request_base *base,
                              const struct hk_message *msg, uint32_t attempt, int64_t wall_ms,
                              struct hk_err *err)
{
    enum hk_code rc = copy_fixed(request, &base->fixed, err);
    request->body = msg->payload;
    if (base->bare)
        return rc == HK_OK && base->late ? add_late(request, base, msg, wall_ms, err) : rc;
    if (rc == HK_OK)
        rc = add_body(request, base, msg, err);
    if (rc == HK_OK)
        rc = check_id(msg->message_id, base, err);
    if (rc == HK_OK && !base->typed)
        rc = add_text(request, "Content-Type", type_of(base, msg), err);
    if (rc == HK_OK)
        rc = add_envelope(request, base, msg, wall_ms, err);
    if (rc == HK_OK)
        rc = add_traceparent(request, base, msg->traceparent, err);
    struct from_message from = {.request = request, .base = base};
    if (rc == HK_OK && msg->headers.len)
        rc = hk_headers_read(msg->headers, add_from_message, &from, err);
    if (rc == HK_OK)
        rc = check_target(request, base, msg, err);
    return rc == HK_OK && !base->queue ? add_fields(request, base, msg, attempt, err) : rc;
}

static enum hk_code add_bearer(struct hk_request *fixed, const char *token, struct hk_err *err)
{
    if (!hk_header_value_ok(hk_str_of(token)))
        return HK_INVALID;
    enum hk_code rc = open_line(fixed, hk_str_of("Authorization"), true, err);
    if (rc != HK_OK)
        return rc;
    hk_buf_adds(&fixed->text, "Bearer ");
    hk_buf_adds(&fixed->text, token);
    return close_line(fixed, err);
}

struct hk_request_mark hk_request_mark(const struct hk_request *request)
{
    return (struct hk_request_mark){request->text.len, request->n};
}

enum hk_code hk_request_authorize(struct hk_request *request, const struct hk_request_mark *mark,
                                  const char *token, struct hk_err *err)
{
    request->text.len = mark->len;
    request->n = mark->n;
    return add_bearer(request, token, err);
}

/* Of a signature its start is shown: enough to compare two, useless to forge one. */
static struct hk_str masked(struct hk_str name, struct hk_str value, char room[16])
{
    if (!hk_str_eqi(name, hk_str_of("webhook-signature")) || value.len < 9)
        return hk_str_of("***");
    memcpy(room, value.ptr, 9);
    memcpy(room + 9, "***", 3);
    return (struct hk_str){room, 12};
}

void hk_request_show(const struct hk_request *request, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    for (size_t i = 0; i < request->n; i++) {
        char name[HK_HEADER_NAME_MAX + 1], room[16];
        struct hk_str value = hk_request_value(request, i);
        (void)hk_str_copy(name, sizeof name, hk_request_name(request, i));
        hk_json_key(&json, name);
        hk_json_str(&json,
                    request->lines[i].secret ? masked(hk_request_name(request, i), value, room) : value);
    }
    hk_json_end(&json);
}

/* ---- what is the same for all requests ---- */

static enum hk_code add_basic(struct hk_request *fixed, const char *user, const char *password,
                              struct hk_err *err)
{
    struct hk_buf plain;
    hk_buf_init(&plain, HK_HEADER_VALUE_MAX);
    hk_buf_adds(&plain, user);
    hk_buf_addc(&plain, ':');
    enum hk_code rc = hk_buf_adds(&plain, password);
    if (rc == HK_OK)
        rc = open_line(fixed, hk_str_of("Authorization"), true, err);
    if (rc == HK_OK) {
        hk_buf_adds(&fixed->text, "Basic ");
        (void)hk_buf_add_base64(&fixed->text, hk_buf_cstr(&plain), plain.len);
        rc = close_line(fixed, err);
    }
    hk_secret_wipe(plain.data, plain.len);
    hk_buf_fini(&plain);
    return rc;
}

static enum hk_code add_authorization(struct hk_request *fixed, const struct hk_http_options *o,
                                      struct hk_err *err)
{
    bool basic = o->basic_user || o->basic_password;
    if (!basic && !o->bearer)
        return HK_OK;
    if ((basic && o->bearer) || o->oauth || (basic && (!o->basic_user || !o->basic_password)))
        return hk_err_set(err, HK_INVALID, "give a user and a password, a bearer token, or oauth2");
    if (basic && strchr(o->basic_user, ':'))
        return hk_err_set(err, HK_INVALID, "a user for basic authentication must not hold a colon");
    enum hk_code rc =
        basic ? add_basic(fixed, o->basic_user, o->basic_password, err) : add_bearer(fixed, o->bearer, err);
    if (rc == HK_OK || rc == HK_NOMEM)
        return rc;
    return hk_err_set(err, HK_INVALID, "the credentials have a control character or are over %d bytes",
                      HK_HEADER_VALUE_MAX);
}

/* How the fields of a message are called, and what stands for each in a destination's headers. CloudEvents has a place of
 * its own for the event type, and none for the number of an attempt. */
static const struct {
    const char *placeholder, *name, *ce_name;
} fields[HK_NFIELDS] = {
    [HK_FIELD_EVENT_TYPE] = {HK_STANDS_FOR_EVENT_TYPE, "Hikyaku-Event", ""},
    [HK_FIELD_CORRELATION_ID] = {HK_STANDS_FOR_CORRELATION_ID, "X-Correlation-Id", "ce-correlationid"},
    [HK_FIELD_ATTEMPT] = {HK_STANDS_FOR_ATTEMPT, "Hikyaku-Attempt", ""},
    [HK_FIELD_IDEMPOTENCY_KEY] = {HK_STANDS_FOR_IDEMPOTENCY_KEY, "Idempotency-Key", "Idempotency-Key"},
    [HK_FIELD_TRACEPARENT] = {HK_STANDS_FOR_TRACEPARENT, "traceparent", "traceparent"},
};

static void name_field(struct hk_request_base *base, size_t field, struct hk_str name)
{
    (void)hk_str_copy(base->fields[field].name, sizeof base->fields[field].name, name);
    base->fields[field].secret = hk_header_secret(name);
}

static bool is_taken(const struct hk_request_base *base, struct hk_str name)
{
    for (size_t f = 0; f < HK_NFIELDS; f++) {
        if (base->fields[f].moved && is_named(base, (enum hk_request_field)f, name))
            return true;
    }
    return hk_request_has(&base->fixed, name);
}

static enum hk_code move_field(struct hk_request_base *base, size_t field, struct hk_str name,
                               struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    bool usual = hk_str_eqi(name, hk_str_of(fields[field].name));
    if (!usual && (!hk_header_name_ok(name) || hk_header_not_for_messages(name)))
        return hk_err_set(err, HK_INVALID, "header field %s cannot be set", hk_show(name, shown));
    if (base->fields[field].moved || is_taken(base, name))
        return hk_err_set(err, HK_INVALID, "header field %s, or what it is for, is given twice",
                          hk_show(name, shown));
    base->fields[field].moved = true;
    name_field(base, field, name);
    return HK_OK;
}

static enum hk_code add_header(struct hk_request_base *base, const struct hk_http_header *h,
                               struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str name = hk_str_of(h->name), value = hk_str_of(h->value);
    for (size_t f = 0; f < HK_NFIELDS; f++) {
        if (hk_str_eq(value, hk_str_of(fields[f].placeholder)))
            return move_field(base, f, name, err);
        if (!hk_str_eqi(name, hk_str_of(fields[f].name)))
            continue;
        if (!base->fields[f].moved)
            name_field(base, f, hk_str_of(""));
        if (!value.len)
            return HK_OK;
    }
    if (!hk_header_name_ok(name) || hk_header_reserved(name))
        return hk_err_set(err, HK_INVALID, "header field %s cannot be set", hk_show(name, shown));
    if (is_taken(base, name))
        return hk_err_set(err, HK_INVALID, "header field %s is given twice", hk_show(name, shown));
    return add_line(&base->fixed, name, value, h->secret || hk_header_secret(name), err);
}

static enum hk_code add_user_agent(struct hk_request *fixed, const char *given, struct hk_err *err)
{
    struct hk_str name = hk_str_of("User-Agent"), value = hk_str_of(given ? given : "hikyaku/" HK_VERSION);
    if (!hk_header_value_ok(value))
        return hk_err_set(err, HK_INVALID, "the user agent has a control character or is over %d bytes",
                          HK_HEADER_VALUE_MAX);
    return hk_request_has(fixed, name) ? HK_OK : add_line(fixed, name, value, false, err);
}

static enum hk_code add_fixed(struct hk_request_base *base, const struct hk_http_options *o,
                              struct hk_err *err)
{
    struct hk_request *fixed = &base->fixed;
    for (size_t f = 0; f < HK_NFIELDS; f++)
        name_field(base, f, hk_str_of(o->cloudevents ? fields[f].ce_name : fields[f].name));
    if (o->cloudevents && o->structured) /* it stands in the event */
        name_field(base, HK_FIELD_CORRELATION_ID, hk_str_of(""));
    if (o->n_headers > STATIC_LINES_MAX)
        return hk_err_set(err, HK_TOOBIG, "more than %d header fields", STATIC_LINES_MAX);
    enum hk_code rc = add_authorization(fixed, o, err);
    for (size_t i = 0; i < o->n_headers && rc == HK_OK; i++)
        rc = add_header(base, &o->headers[i], err);
    return rc == HK_OK ? add_user_agent(fixed, o->user_agent, err) : rc;
}

static enum hk_code copy_source(struct hk_request_base *base, const struct hk_http_options *o,
                                struct hk_err *err)
{
    if (!o->cloudevents)
        return HK_OK;
    if (o->cloudevents_source && !o->cloudevents_source[0])
        return hk_err_set(err, HK_INVALID, "a CloudEvents source must not be empty");
    base->ce_source = hk_mem_strdup(o->cloudevents_source ? o->cloudevents_source : "/hikyaku");
    return base->ce_source ? HK_OK : no_memory(err);
}

static enum hk_code copy_template(struct hk_request_base *base, const struct hk_http_options *o,
                                  struct hk_err *err)
{
    base->name = hk_mem_strdup(o->name ? o->name : "http");
    base->url_template = hk_mem_strdup(o->url);
    return base->name && base->url_template ? HK_OK : no_memory(err);
}

enum hk_code hk_request_base_init(struct hk_request_base *base, const struct hk_http_options *options,
                                  struct hk_str start, struct hk_err *err)
{
    memset(base, 0, sizeof *base);
    hk_request_init(&base->fixed);
    enum hk_code rc = hk_buf_add(&base->fixed.text, start.ptr, start.len);
    if (rc != HK_OK)
        rc = full(&base->fixed, err);
    if (rc == HK_OK)
        rc = add_fixed(base, options, err);
    if (rc == HK_OK)
        rc = copy_source(base, options, err);
    if (rc == HK_OK && options->n_secrets)
        rc = hk_signer_new(options->secrets, options->n_secrets, &base->signer, err);
    if (rc == HK_OK && options->url && hk_url_is_template(options->url) && !options->from_message)
        rc = copy_template(base, options, err);
    if (rc == HK_OK && options->queue && !(base->queue = hk_mem_strdup(options->queue)))
        rc = no_memory(err);
    base->targeted = options->from_message;
    base->bare = options->bare;
    base->late = options->late;
    base->late_arg = options->late_arg;
    base->structured = options->cloudevents && options->structured;
    base->gzip = options->gzip;
    base->typed = hk_request_has(&base->fixed, hk_str_of("Content-Type"));
    if (rc != HK_OK)
        hk_request_base_fini(base);
    return rc;
}

void hk_request_base_fini(struct hk_request_base *base)
{
    hk_request_fini(&base->fixed);
    hk_mem_free(base->ce_source);
    hk_mem_free(base->queue);
    hk_mem_free(base->name);
    hk_secret_wipe(base->url_template, base->url_template ? strlen(base->url_template) : 0);
    hk_mem_free(base->url_template);
    hk_signer_free(base->signer);
    memset(base, 0, sizeof *base);
}
