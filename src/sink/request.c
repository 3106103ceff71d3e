/* SPDX-License-Identifier: Apache-2.0 */
/* Builds header blocks. Each line is checked where it is added, so that nothing gets in another way. */
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "hk_version.h"
#include "sink/header.h"
#include "sink/request.h"

#define TEXT_MAX          ((size_t)64 * 1024)
#define ID_MAX            256
#define MESSAGE_LINES_MAX 64
#define STATIC_LINES_MAX  64

/* ---- one line ---- */

static bool printable(struct hk_str s, char first)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < first || s.ptr[i] > '~')
            return false;
    }
    return true;
}

static enum hk_code full(const struct hk_request *request, struct hk_err *err)
{
    if (hk_buf_status(&request->text) == HK_NOMEM)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    return hk_err_set(err, HK_INVALID, "too many or too long header fields");
}

/* Blanks around a value mean nothing in HTTP, and libcurl would take a blank value for "leave this field out". */
static enum hk_code add_line(struct hk_request *request, struct hk_str name, struct hk_str value, bool secret,
                             struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (!hk_header_name_ok(name))
        return hk_err_set(err, HK_INVALID, "%s is not a name for a header field", hk_show(name, shown));
    if (!hk_header_value_ok(value))
        return hk_err_set(err, HK_INVALID,
                          "the value of header field %s has a control character or is over %d bytes",
                          hk_show(name, shown), HK_HEADER_VALUE_MAX);
    if (request->n == HK_REQUEST_LINES_MAX)
        return full(request, err);
    value = hk_str_trim(value);
    request->lines[request->n].at = (uint32_t)request->text.len;
    request->lines[request->n].name = (uint16_t)name.len;
    request->lines[request->n].secret = secret;
    hk_buf_add(&request->text, name.ptr, name.len);
    hk_buf_adds(&request->text, value.len ? ": " : ";");
    hk_buf_add(&request->text, value.ptr, value.len);
    if (hk_buf_addc(&request->text, '\0') != HK_OK)
        return full(request, err);
    request->n++;
    return HK_OK;
}

static enum hk_code add_text(struct hk_request *request, const char *name, struct hk_str value,
                             struct hk_err *err)
{
    return add_line(request, hk_str_of(name), value, false, err);
}

static struct hk_str name_of(const struct hk_request *request, size_t i)
{
    return (struct hk_str){request->text.data + request->lines[i].at, request->lines[i].name};
}

static bool has(const struct hk_request *request, struct hk_str name)
{
    for (size_t i = 0; i < request->n; i++) {
        if (hk_str_eqi(name_of(request, i), name))
            return true;
    }
    return false;
}

/* ---- Standard Webhooks, Idempotency-Key, traceparent ---- */

/* The dot parts the signed texts from each other, so a signed id must not hold one. */
static enum hk_code check_id(struct hk_str id, bool is_signed, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    if (id.len < 1 || id.len > ID_MAX || !printable(id, '!'))
        return hk_err_set(err, HK_INVALID, "message_id %s must be 1 to %d visible ASCII characters",
                          hk_show(id, shown), ID_MAX);
    if (!is_signed || !memchr(id.ptr, '.', id.len))
        return HK_OK;
    return hk_err_set(
        err, HK_INVALID,
        "message_id %s cannot be signed: it must be 1 to %d visible ASCII characters without a dot",
        hk_show(id, shown), ID_MAX);
}

static enum hk_code add_signature(struct hk_request *request, struct hk_signer *signer,
                                  const struct hk_message *msg, int64_t unix_s, struct hk_err *err)
{
    struct hk_buf value;
    hk_buf_init(&value, HK_HEADER_VALUE_MAX);
    enum hk_code rc = hk_signer_sign(signer, msg->message_id, unix_s, msg->payload, &value);
    if (rc != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "cannot sign: out of memory");
    else
        rc = add_line(request, hk_str_of("webhook-signature"), hk_buf_str(&value), true, err);
    hk_buf_fini(&value);
    return rc;
}

static enum hk_code add_webhook(struct hk_request *request, struct hk_signer *signer,
                                const struct hk_message *msg, int64_t wall_ms, struct hk_err *err)
{
    int64_t unix_s = wall_ms / 1000;
    struct hk_buf number;
    hk_buf_init(&number, 32);
    (void)hk_buf_addf(&number, "%" PRId64, unix_s);
    enum hk_code rc = add_text(request, "webhook-id", msg->message_id, err);
    if (rc == HK_OK && hk_buf_status(&number) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = add_text(request, "webhook-timestamp", hk_buf_str(&number), err);
    if (rc == HK_OK && signer)
        rc = add_signature(request, signer, msg, unix_s, err);
    hk_buf_fini(&number);
    return rc;
}

/* A string of RFC 8941: the quotes are part of the field's value. */
static enum hk_code add_idempotency_key(struct hk_request *request, const struct hk_message *msg,
                                        struct hk_err *err)
{
    struct hk_str key = msg->idempotency_key.len ? msg->idempotency_key : msg->message_id;
    char shown[HK_SHOW_MAX];
    if (!printable(key, ' ') || key.len > HK_HEADER_VALUE_MAX / 2 - 2)
        return hk_err_set(err, HK_INVALID,
                          "idempotency_key %s must be printable ASCII of at most %d characters",
                          hk_show(key, shown), HK_HEADER_VALUE_MAX / 2 - 2);
    struct hk_buf value;
    hk_buf_init(&value, HK_HEADER_VALUE_MAX);
    hk_buf_addc(&value, '"');
    for (size_t i = 0; i < key.len; i++) {
        if (key.ptr[i] == '"' || key.ptr[i] == '\\')
            hk_buf_addc(&value, '\\');
        hk_buf_addc(&value, key.ptr[i]);
    }
    enum hk_code rc = hk_buf_addc(&value, '"');
    rc = rc == HK_OK ? add_text(request, "Idempotency-Key", hk_buf_str(&value), err)
                     : hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&value);
    return rc;
}

/* "00-<32 hex>-<16 hex>-<2 hex>", lower case; ids are not all zero. */
static bool is_traceparent(struct hk_str s)
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

/* ---- CloudEvents, binary mode ---- */

static enum hk_code add_ce(struct hk_request *request, const char *name, struct hk_str value,
                           struct hk_err *err)
{
    static const char digits[] = "0123456789ABCDEF";
    struct hk_buf text;
    hk_buf_init(&text, HK_HEADER_VALUE_MAX);
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];
        if (c > ' ' && c < 0x7f && c != '"' && c != '%') {
            hk_buf_addc(&text, (char)c);
        } else {
            char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            hk_buf_add(&text, escape, sizeof escape);
        }
    }
    enum hk_code rc = hk_buf_status(&text);
    if (rc == HK_OK)
        rc = add_text(request, name, hk_buf_str(&text), err);
    else if (rc == HK_TOOBIG)
        rc = hk_err_set(err, HK_INVALID, "%s would be over %d bytes", name, HK_HEADER_VALUE_MAX);
    else
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_buf_fini(&text);
    return rc;
}

static enum hk_code add_cloudevents(struct hk_request *request, const char *source,
                                    const struct hk_message *msg, struct hk_err *err)
{
    if (!msg->event_type.len)
        return hk_err_set(err, HK_INVALID, "a CloudEvent needs an event_type");
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(msg->created_ms, time);
    bool traced = is_traceparent(msg->traceparent);

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

/* ---- fields of the destination and of the message ---- */

static enum hk_code add_static(struct hk_request *request, const struct hk_request_base *base,
                               struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    if (base->authorization)
        rc = add_line(request, hk_str_of("Authorization"), hk_str_of(base->authorization), true, err);
    for (size_t i = 0; i < base->n_headers && rc == HK_OK; i++) {
        const struct hk_http_header *h = &base->headers[i];
        rc = add_line(request, hk_str_of(h->name), hk_str_of(h->value), h->secret, err);
    }
    return rc;
}

struct from_message {
    struct hk_request *request;
    const struct hk_request_base *base;
    size_t first, n;
};

static bool is_static(const struct hk_request_base *base, struct hk_str name)
{
    for (size_t i = 0; i < base->n_headers; i++) {
        if (hk_str_eqi(hk_str_of(base->headers[i].name), name))
            return true;
    }
    return false;
}

static enum hk_code add_from_message(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err)
{
    struct from_message *from = arg;
    char shown[HK_SHOW_MAX];
    if (++from->n > MESSAGE_LINES_MAX)
        return hk_err_set(err, HK_INVALID, "headers: more than %d", MESSAGE_LINES_MAX);
    if (hk_header_not_for_messages(name))
        return hk_err_set(err, HK_INVALID, "headers: %s is not for a message to set", hk_show(name, shown));
    if (is_static(from->base, name))
        return HK_OK; /* the destination's own setting wins */
    if (has(from->request, name))
        return hk_err_set(err, HK_INVALID, "headers: %s is given twice", hk_show(name, shown));
    return add_line(from->request, name, value, hk_header_secret(name), err);
}

/* ---- the whole ---- */

void hk_request_init(struct hk_request *request)
{
    hk_buf_init(&request->text, TEXT_MAX);
    request->n = 0;
}

void hk_request_fini(struct hk_request *request)
{
    hk_secret_wipe(request->text.data, request->text.len);
    hk_buf_fini(&request->text);
}

enum hk_code hk_request_build(struct hk_request *request, struct hk_request_base *base,
                              const struct hk_message *msg, int64_t wall_ms, struct hk_err *err)
{
    hk_buf_reset(&request->text);
    request->n = 0;
    struct hk_str type = msg->content_type.len ? msg->content_type : hk_str_of("application/json");
    enum hk_code rc = check_id(msg->message_id, base->signer != NULL, err);
    if (rc == HK_OK && !is_static(base, hk_str_of("Content-Type")))
        rc = add_text(request, "Content-Type", type, err);
    if (rc == HK_OK && !is_static(base, hk_str_of("User-Agent")))
        rc = add_text(request, "User-Agent", hk_str_of(base->user_agent), err);
    if (rc == HK_OK)
        rc = add_webhook(request, base->signer, msg, wall_ms, err);
    if (rc == HK_OK)
        rc = add_idempotency_key(request, msg, err);
    if (rc == HK_OK && is_traceparent(msg->traceparent))
        rc = add_text(request, "traceparent", msg->traceparent, err);
    if (rc == HK_OK && base->ce_source)
        rc = add_cloudevents(request, base->ce_source, msg, err);
    if (rc == HK_OK)
        rc = add_static(request, base, err);
    struct from_message from = {.request = request, .base = base};
    if (rc == HK_OK && msg->headers.len)
        rc = hk_headers_read(msg->headers, add_from_message, &from, err);
    return rc;
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
        (void)hk_str_copy(name, sizeof name, name_of(request, i));
        const char *rest = request->text.data + request->lines[i].at + request->lines[i].name;
        struct hk_str value = hk_str_of(rest[0] == ';' ? rest + 1 : rest + 2);
        hk_json_key(&json, name);
        hk_json_str(&json, request->lines[i].secret ? masked(name_of(request, i), value, room) : value);
    }
    hk_json_end(&json);
}

/* ---- what is the same for all requests ---- */

static char *copy_wrapped(const char *before, const char *text)
{
    struct hk_buf out;
    hk_buf_init(&out, HK_HEADER_VALUE_MAX);
    hk_buf_adds(&out, before);
    hk_buf_adds(&out, text);
    char *copy = hk_buf_detach(&out);
    hk_secret_wipe(out.data, out.len);
    hk_buf_fini(&out);
    return copy;
}

static char *basic_credentials(const char *user, const char *password)
{
    struct hk_buf plain, out;
    hk_buf_init(&plain, HK_HEADER_VALUE_MAX);
    hk_buf_init(&out, HK_HEADER_VALUE_MAX);
    hk_buf_adds(&plain, user);
    hk_buf_addc(&plain, ':');
    hk_buf_adds(&plain, password);
    hk_buf_adds(&out, "Basic ");
    char *text = NULL;
    if (hk_buf_status(&plain) == HK_OK &&
        hk_base64_add(&out, (const uint8_t *)hk_buf_cstr(&plain), plain.len) == HK_OK)
        text = hk_buf_detach(&out);
    hk_secret_wipe(plain.data, plain.len);
    hk_buf_fini(&plain);
    hk_buf_fini(&out);
    return text;
}

static enum hk_code copy_header(struct hk_request_base *base, const struct hk_http_header *from,
                                struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    struct hk_str name = hk_str_of(from->name);
    if (!hk_header_name_ok(name) || hk_header_reserved(name))
        return hk_err_set(err, HK_INVALID, "header field %s cannot be set", hk_show(name, shown));
    if (!hk_header_value_ok(hk_str_of(from->value)))
        return hk_err_set(err, HK_INVALID,
                          "the value of header field %s has a control character or is over %d bytes",
                          hk_show(name, shown), HK_HEADER_VALUE_MAX);
    if (is_static(base, name) || (base->authorization && hk_str_eqi(name, hk_str_of("authorization"))))
        return hk_err_set(err, HK_INVALID, "header field %s is given twice", hk_show(name, shown));
    struct hk_http_header *to = &base->headers[base->n_headers];
    to->secret = from->secret || hk_header_secret(name);
    char *copy = hk_mem_strdup(from->name);
    to->name = copy;
    to->value = copy ? hk_mem_strdup(from->value) : NULL;
    if (!to->value) {
        hk_mem_free(copy);
        return hk_err_set(err, HK_NOMEM, "out of memory");
    }
    base->n_headers++;
    return HK_OK;
}

static enum hk_code init_authorization(struct hk_request_base *base, const struct hk_http_options *options,
                                       struct hk_err *err)
{
    bool basic = options->basic_user || options->basic_password;
    if (!basic && !options->bearer)
        return HK_OK;
    if ((basic && options->bearer) || (basic && (!options->basic_user || !options->basic_password)))
        return hk_err_set(err, HK_INVALID, "give a user and a password, or a bearer token");
    if (basic && strchr(options->basic_user, ':'))
        return hk_err_set(err, HK_INVALID, "a user for basic authentication must not hold a colon");
    base->authorization = basic ? basic_credentials(options->basic_user, options->basic_password)
                                : copy_wrapped("Bearer ", options->bearer);
    if (!base->authorization)
        return hk_err_set(err, HK_NOMEM, "no memory for the credentials, or they are over %d bytes",
                          HK_HEADER_VALUE_MAX);
    if (!hk_header_value_ok(hk_str_of(base->authorization)))
        return hk_err_set(err, HK_INVALID, "the credentials have a control character");
    return HK_OK;
}

static enum hk_code init_texts(struct hk_request_base *base, const struct hk_http_options *options,
                               struct hk_err *err)
{
    base->user_agent = hk_mem_strdup(options->user_agent ? options->user_agent : "hikyaku/" HK_VERSION);
    if (options->cloudevents)
        base->ce_source =
            hk_mem_strdup(options->cloudevents_source ? options->cloudevents_source : "/hikyaku");
    if (!base->user_agent || (options->cloudevents && !base->ce_source))
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (!hk_header_value_ok(hk_str_of(base->user_agent)))
        return hk_err_set(err, HK_INVALID, "the user agent has a control character or is over %d bytes",
                          HK_HEADER_VALUE_MAX);
    if (base->ce_source && !base->ce_source[0])
        return hk_err_set(err, HK_INVALID, "a CloudEvents source must not be empty");
    return HK_OK;
}

enum hk_code hk_request_base_init(struct hk_request_base *base, const struct hk_http_options *options,
                                  struct hk_err *err)
{
    memset(base, 0, sizeof *base);
    enum hk_code rc = init_texts(base, options, err);
    if (rc == HK_OK)
        rc = init_authorization(base, options, err);
    if (rc == HK_OK && options->n_headers > STATIC_LINES_MAX)
        rc = hk_err_set(err, HK_TOOBIG, "more than %d header fields", STATIC_LINES_MAX);
    if (rc == HK_OK && options->n_headers) {
        base->headers = hk_mem_zalloc(options->n_headers, sizeof base->headers[0]);
        rc = base->headers ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
    }
    for (size_t i = 0; i < options->n_headers && rc == HK_OK; i++)
        rc = copy_header(base, &options->headers[i], err);
    if (rc == HK_OK && options->n_secrets)
        rc = hk_signer_new(options->secrets, options->n_secrets, &base->signer, err);
    if (rc != HK_OK)
        hk_request_base_fini(base);
    return rc;
}

static void wipe_free(const char *text)
{
    if (!text)
        return;

    union {
        const char *given;
        char *own;
    } u = {.given = text}; /* our own copy, const only to its readers */

    hk_secret_wipe(u.own, strlen(text));
    hk_mem_free(u.own);
}

void hk_request_base_fini(struct hk_request_base *base)
{
    for (size_t i = 0; i < base->n_headers; i++) {
        wipe_free(base->headers[i].name);
        wipe_free(base->headers[i].value);
    }
    hk_mem_free(base->headers);
    wipe_free(base->authorization);
    hk_mem_free(base->user_agent);
    hk_mem_free(base->ce_source);
    hk_signer_free(base->signer);
    memset(base, 0, sizeof *base);
}
