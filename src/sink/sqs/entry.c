/* SPDX-License-Identifier: Apache-2.0 */
/* A message as an entry of SendMessageBatch.
 *
 * SQS takes text alone: the characters of XML 1.0. It takes up to ten attributes. What the columns of a message say comes first; the
 * message's own headers follow one by one where they fit, or together as JSON in the attribute "headers". */
#include <string.h>

#include "base/show.h"
#include "base/str.h"
#include "base/utf8.h"
#include "sink/aws/sigv4.h"
#include "sink/sqs/impl.h"

#define OWN_NAME   "headers"
#define TYPE_NAME  "String"
#define OWN_MAX    ((size_t)512 * 1024)
#define NAME_LIMIT 256

static const char *const reserved[] = {OWN_NAME, "AWS.*", "Amazon.*", NULL};

const struct hk_fields_rule hk_sqs_rule = {
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

/* ---- what SQS can carry ---- */

static bool is_text(struct hk_str s)
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
    return name.len > 0 && name.len <= NAME_LIMIT;
}

static bool is_column(struct hk_str name)
{
    for (unsigned i = 0; i < HK_NFIELDS_OF; i++)
        if (hk_str_eq(name, hk_str_of(hk_sqs_rule.names[i])))
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
    bool fit = f->n <= HK_SQS_ATTRIBUTES;
    for (size_t i = count_columns(f); i < f->n && fit; i++)
        fit = is_name(f->at[i].name) && f->at[i].value.len > 0;
    return fit;
}

static enum hk_code check_fields(const struct hk_fields *f, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    for (size_t i = 0; i < f->n; i++)
        if (!is_text(f->at[i].value))
            return hk_err_set(err, HK_INVALID, "%s: SQS takes text in UTF-8 without control characters",
                              hk_show(f->at[i].name, shown));
    return HK_OK;
}

enum hk_code hk_sqs_entry_check(const struct hk_sqs_entry *entry, size_t *out_bytes, struct hk_err *err)
{
    const struct hk_fields *f = entry->fields;
    if (!entry->body.len)
        return hk_err_set(err, HK_INVALID, "SQS takes no empty message");
    if (!is_text(entry->body))
        return hk_err_set(err, HK_INVALID,
                          "SQS takes text in UTF-8 without control characters, and the payload holds other "
                          "bytes");
    enum hk_code rc = check_fields(f, err);
    if (rc != HK_OK)
        return rc;
    size_t bytes = entry->body.len;
    for (size_t i = 0; i < f->n; i++)
        bytes += f->at[i].name.len + sizeof TYPE_NAME - 1 + f->at[i].value.len;
    if (bytes > HK_SQS_MESSAGE_BYTES)
        return hk_err_set(err, HK_TOOBIG, "the message has %zu bytes with its attributes; SQS takes %d",
                          bytes, HK_SQS_MESSAGE_BYTES);
    *out_bytes = bytes;
    return HK_OK;
}

/* ---- groups ---- */

static bool is_group(struct hk_str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
            return false;
    return s.len > 0 && s.len < HK_SQS_GROUP_MAX;
}

void hk_sqs_group(struct hk_str text, char out[HK_SQS_GROUP_MAX])
{
    if (!is_group(text) || !hk_str_copy(out, HK_SQS_GROUP_MAX, text))
        if (!hk_sha256_hex(text, out))
            out[0] = '\0'; /* SQS refuses it */
}

/* ---- writing ---- */

static void write_attribute(struct hk_json *json, struct hk_str name, struct hk_str value)
{
    char key[NAME_LIMIT + 1];
    (void)hk_str_copy(key, sizeof key, name);
    hk_json_key(json, key);
    hk_json_object(json);
    hk_json_key(json, "DataType");
    hk_json_cstr(json, TYPE_NAME);
    hk_json_key(json, "StringValue");
    hk_json_str(json, value);
    hk_json_end(json);
}

static void write_own(struct hk_json *json, const struct hk_fields *f, size_t first)
{
    struct hk_buf text;
    struct hk_json own;
    hk_buf_init(&text, OWN_MAX);
    hk_json_init(&own, &text, false);
    hk_json_object(&own);
    for (size_t i = first; i < f->n; i++) {
        char name[NAME_LIMIT + 1];
        if (!hk_str_copy(name, sizeof name, f->at[i].name))
            continue; /* hk_fields_make lets none in that is so long */
        hk_json_key(&own, name);
        hk_json_str(&own, f->at[i].value);
    }
    hk_json_end(&own);
    hk_buf_inherit(json->out, &text);
    write_attribute(json, hk_str_of(OWN_NAME), hk_buf_str(&text));
    hk_buf_fini(&text);
}

static void write_attributes(struct hk_json *json, const struct hk_fields *f)
{
    size_t n = fit_alone(f) ? f->n : count_columns(f);
    hk_json_key(json, "MessageAttributes");
    hk_json_object(json);
    for (size_t i = 0; i < n; i++)
        write_attribute(json, f->at[i].name, f->at[i].value);
    if (n < f->n)
        write_own(json, f, n);
    hk_json_end(json);
}

void hk_sqs_entry_write(struct hk_json *json, const struct hk_sqs_entry *entry, size_t id)
{
    const char number[2] = {(char)('0' + id), '\0'};
    char group[HK_SQS_GROUP_MAX];
    hk_json_object(json);
    hk_json_key(json, "Id");
    hk_json_cstr(json, number);
    hk_json_key(json, "MessageBody");
    hk_json_str(json, entry->body);
    if (entry->fifo) {
        hk_sqs_group(entry->msg->key.len ? entry->msg->key : entry->msg->message_id, group);
        hk_json_key(json, "MessageGroupId");
        hk_json_cstr(json, group);
        hk_sqs_group(entry->msg->message_id, group);
        hk_json_key(json, "MessageDeduplicationId");
        hk_json_cstr(json, group);
    }
    write_attributes(json, entry->fields);
    hk_json_end(json);
}
