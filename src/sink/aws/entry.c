/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "payload/scan.h"
#include "sink/aws/entry.h"
#include "sink/aws/sigv4.h"
#include "sink/http/body.h"

#define OWN_NAME  "headers"
#define TYPE_NAME "String"
#define OWN_MAX   ((size_t)512 * 1024)

static const char *const reserved[] = {OWN_NAME, "AWS.*", "Amazon.*", NULL};

const struct hk_fields_rule hk_aws_rule = {
    .names = {[HK_FIELD_OF_ID] = "message-id",
              [HK_FIELD_OF_TYPE] = "event-type",
              [HK_FIELD_OF_KEY] = "message-key",
              [HK_FIELD_OF_CORRELATION] = "correlation-id",
              [HK_FIELD_OF_TRACEPARENT] = "traceparent",
              [HK_FIELD_OF_IDEMPOTENCY] = "idempotency-key",
              [HK_FIELD_OF_CONTENT_TYPE] = "content-type",
              [HK_FIELD_OF_ATTEMPT] = "hikyaku-attempt"},
    .ce_prefix = "",
    .reserved = reserved,
};

/* ---- attributes ---- */

bool hk_aws_is_text(struct hk_str s)
{
    while (s.len) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(s, &c);
        bool good = c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0xd800) ||
                    (c >= 0xe000 && c <= 0xfffd) || (c >= 0x10000 && c <= 0x10ffff);
        if (!good)
            return false;
        s = (struct hk_str){s.ptr + n, s.len - n};
    }
    return true;
}

static bool is_name(struct hk_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i], before = i ? name.ptr[i - 1] : '.';
        if (!hk_ascii_isalpha(c) && !hk_ascii_isdigit(c) && c != '_' && c != '-' && c != '.')
            return false;
        if (c == '.' && (before == '.' || i + 1 == name.len))
            return false;
    }
    return name.len > 0 && name.len <= HK_AWS_ATTRIBUTE_NAME_MAX;
}

static bool is_column(struct hk_str name)
{
    for (unsigned i = 0; i < HK_NFIELDS_OF; i++)
        if (hk_str_eq(name, hk_str_of(hk_aws_rule.names[i])))
            return true;
    return false;
}

static size_t count_columns(const struct hk_fields *f)
{
    size_t n = 0;
    while (n < f->n && is_column(f->at[n].name))
        n++;
    return n;
}

/* Can each of the message's own headers be an attribute? */
static bool fit_alone(const struct hk_fields *f)
{
    bool fit = f->n <= HK_AWS_ATTRIBUTES;
    for (size_t i = count_columns(f); i < f->n && fit; i++)
        fit = is_name(f->at[i].name) && f->at[i].value.len > 0;
    return fit;
}

static enum hk_code check_texts(const struct hk_aws_entry *entry, const char *title, struct hk_err *err)
{
    const struct hk_fields *f = entry->fields;
    char shown[HK_SHOW_MAX];
    if (!entry->body.len)
        return hk_err_set(err, HK_INVALID, "%s takes no empty message", title);
    if (!hk_aws_is_text(entry->body))
        return hk_err_set(err, HK_INVALID,
                          "%s takes text in UTF-8 without control characters, and the payload holds other "
                          "bytes",
                          title);
    for (size_t i = 0; i < f->n; i++)
        if (!hk_aws_is_text(f->at[i].value))
            return hk_err_set(err, HK_INVALID, "%s: %s takes text in UTF-8 without control characters",
                              hk_show(f->at[i].name, shown), title);
    return HK_OK;
}

enum hk_code hk_aws_attributes_check(const struct hk_aws_entry *entry, const char *title, size_t limit,
                                     size_t *out_bytes, struct hk_err *err)
{
    const struct hk_fields *f = entry->fields;
    enum hk_code rc = check_texts(entry, title, err);
    if (rc != HK_OK)
        return rc;
    size_t bytes = entry->body.len;
    for (size_t i = 0; i < f->n; i++)
        bytes += f->at[i].name.len + sizeof TYPE_NAME - 1 + f->at[i].value.len;
    if (bytes > limit)
        return hk_err_set(
            err, HK_TOOBIG,
            "the message has %zu bytes with its attributes, which is over the %zu that %s takes", bytes,
            limit, title);
    *out_bytes = bytes;
    return HK_OK;
}

static void put_own(const struct hk_fields *f, size_t first, hk_aws_attribute_fn *add, void *arg,
                    struct hk_buf *out)
{
    struct hk_buf text;
    struct hk_json own;
    hk_buf_init(&text, OWN_MAX);
    hk_json_init(&own, &text, false);
    hk_json_object(&own);
    for (size_t i = first; i < f->n; i++) {
        char name[HK_AWS_ATTRIBUTE_NAME_MAX + 1];
        if (!hk_str_copy(name, sizeof name, f->at[i].name))
            continue; /* hk_fields_make lets none in that is so long */
        hk_json_key(&own, name);
        hk_json_str(&own, f->at[i].value);
    }
    hk_json_end(&own);
    hk_buf_inherit(out, &text);
    add(arg, hk_str_of(OWN_NAME), hk_buf_str(&text));
    hk_buf_fini(&text);
}

void hk_aws_attributes_put(const struct hk_fields *f, hk_aws_attribute_fn *add, void *arg, struct hk_buf *out)
{
    size_t n = fit_alone(f) ? f->n : count_columns(f);
    for (size_t i = 0; i < n; i++)
        add(arg, f->at[i].name, f->at[i].value);
    if (n < f->n)
        put_own(f, n, add, arg, out);
}

/* ---- groups ---- */

static bool is_group(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return s.len > 0 && s.len < HK_AWS_GROUP_MAX;
}

void hk_aws_group(struct hk_str text, char out[HK_AWS_GROUP_MAX])
{
    if (!is_group(text) || !hk_str_copy(out, HK_AWS_GROUP_MAX, text))
        if (!hk_sha256_hex(text, out))
            out[0] = '\0'; /* it is refused */
}

struct hk_str hk_aws_key_of(const struct hk_message *msg)
{
    return msg->key.len ? msg->key : msg->message_id;
}

void hk_aws_show_group(const struct hk_aws_sink *sink, const struct hk_message *msg, struct hk_json *json)
{
    char group[HK_AWS_GROUP_MAX];
    if (!sink->fifo)
        return;
    hk_aws_group(hk_aws_key_of(msg), group);
    hk_json_key(json, "MessageGroupId");
    hk_json_cstr(json, group);
}

/* ---- envelopes ---- */

static void put_metadata(struct hk_json *json, const struct hk_fields *f)
{
    hk_json_key(json, "metadata");
    hk_json_object(json);
    for (size_t i = 0; i < f->n; i++) {
        char name[HK_AWS_ATTRIBUTE_NAME_MAX + 1];
        if (!hk_str_copy(name, sizeof name, f->at[i].name))
            continue;
        hk_json_key(json, name);
        hk_json_str(json, f->at[i].value);
    }
    hk_json_end(json);
}

enum hk_code hk_aws_envelope(const struct hk_message *msg, const struct hk_fields *fields, struct hk_buf *out,
                             struct hk_err *err)
{
    struct hk_json json;
    if (msg->payload.len && hk_body_has_json(msg) && hk_scan_check(msg->payload, NULL) != HK_OK)
        return hk_err_set(
            err, HK_INVALID,
            "its content type is JSON, and its payload is not: it cannot be put into an envelope");
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    put_metadata(&json, fields);
    hk_body_put_data(&json, msg);
    hk_json_end(&json);
    enum hk_code rc = hk_buf_status(out);
    if (rc == HK_OK)
        return HK_OK;
    return hk_err_set(err, rc, "%s", rc == HK_NOMEM ? "out of memory" : "the envelope would be too large");
}
