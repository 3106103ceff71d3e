/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "payload/target.h"
#include "sink/broker/fields.h"
#include "sink/http/header.h"

enum {
    TEXT_MAX = 128 * 1024,
    NAME_MAX_BYTES = 128
};

void hk_fields_init(struct hk_fields *f)
{
    f->n = 0;
    hk_buf_init(&f->text, TEXT_MAX);
}

void hk_fields_fini(struct hk_fields *f)
{
    hk_buf_fini(&f->text);
    f->n = 0;
}

/* ---- while they are made, what lies in `text` has no address yet: ptr NULL, and the length ---- */

static void add(struct hk_fields *f, struct hk_str name, struct hk_str value)
{
    if (f->n < HK_FIELDS_MAX)
        f->at[f->n++] = (struct hk_field){.name = name, .value = value};
}

static struct hk_str keep(struct hk_fields *f, struct hk_str s)
{
    (void)hk_buf_add(&f->text, s.ptr, s.len);
    return (struct hk_str){NULL, s.len};
}

static void settle(struct hk_fields *f)
{
    size_t at = 0;
    for (size_t i = 0; i < f->n; i++) {
        struct hk_str *parts[] = {&f->at[i].name, &f->at[i].value};
        for (size_t k = 0; k < 2; k++) {
            if (parts[k]->ptr)
                continue;
            parts[k]->ptr = hk_buf_cstr(&f->text) + at;
            at += parts[k]->len;
        }
    }
}

static bool has(const struct hk_fields *f, struct hk_str name)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->at[i].name.ptr && hk_str_eqi(f->at[i].name, name))
            return true;
    return false;
}

static void add_columns(struct hk_fields *f, const struct hk_fields_rule *rule, const struct hk_message *msg,
                        uint32_t attempt)
{
    bool differs = msg->idempotency_key.len && !hk_str_eq(msg->idempotency_key, msg->message_id);
    const struct hk_str values[HK_NFIELDS_OF] = {
        [HK_FIELD_OF_ID] = msg->message_id,
        [HK_FIELD_OF_TYPE] = msg->event_type,
        [HK_FIELD_OF_KEY] = msg->key,
        [HK_FIELD_OF_CORRELATION] = msg->correlation_id,
        [HK_FIELD_OF_TRACEPARENT] = msg->traceparent,
        [HK_FIELD_OF_IDEMPOTENCY] = differs ? msg->idempotency_key : (struct hk_str){"", 0},
        [HK_FIELD_OF_CONTENT_TYPE] = msg->content_type,
    };
    for (unsigned i = 0; i < HK_FIELD_OF_ATTEMPT; i++)
        if (rule->names[i] && values[i].len)
            add(f, hk_str_of(rule->names[i]), values[i]);
    if (rule->names[HK_FIELD_OF_ATTEMPT]) {
        char number[16];
        int len = snprintf(number, sizeof number, "%" PRIu32, attempt);
        add(f, hk_str_of(rule->names[HK_FIELD_OF_ATTEMPT]), keep(f, (struct hk_str){number, (size_t)len}));
    }
}

static void add_event(struct hk_fields *f, const char *prefix, const char *name, struct hk_str value)
{
    char whole[NAME_MAX_BYTES];
    if (!value.len)
        return;
    int len = snprintf(whole, sizeof whole, "%s%s", prefix, name);
    struct hk_str kept = keep(f, (struct hk_str){whole, (size_t)len});
    add(f, kept, keep(f, value));
}

static void add_cloudevents(struct hk_fields *f, const char *prefix, const char *source,
                            const struct hk_message *msg)
{
    char time[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(msg->created_ms, time);
    add_event(f, prefix, "specversion", hk_str_of("1.0"));
    add_event(f, prefix, "id", msg->message_id);
    add_event(f, prefix, "source", hk_str_of(source));
    add_event(f, prefix, "type", msg->event_type);
    add_event(f, prefix, "time", hk_str_of(time));
    add_event(f, prefix, "partitionkey", msg->key);
    add_event(f, prefix, "traceparent", msg->traceparent);
}

/* ---- the message's own ---- */

struct own {
    struct hk_fields *f;
    const struct hk_fields_rule *rule;
    size_t n;
};

static bool begins(struct hk_str name, struct hk_str prefix)
{
    return prefix.len && name.len >= prefix.len && hk_str_eqi((struct hk_str){name.ptr, prefix.len}, prefix);
}

static bool is_reserved(const struct hk_fields_rule *rule, struct hk_str name)
{
    for (const char *const *r = rule->reserved; *r; r++) {
        struct hk_str word = hk_str_of(*r);
        bool open = word.ptr[word.len - 1] == '*';
        if (open ? begins(name, (struct hk_str){word.ptr, word.len - 1}) : hk_str_eqi(name, word))
            return true;
    }
    return begins(name, hk_str_of(rule->ce_prefix));
}

static bool is_ours(const struct own *own, struct hk_str name)
{
    for (unsigned i = 0; i < HK_NFIELDS_OF; i++)
        if (own->rule->names[i] && hk_str_eqi(name, hk_str_of(own->rule->names[i])))
            return true;
    return is_reserved(own->rule, name) || has(own->f, name);
}

static enum hk_code add_own(void *arg, struct hk_str name, struct hk_str value, struct hk_err *err)
{
    struct own *own = arg;
    char shown[HK_SHOW_MAX];
    uint64_t ms = 0;
    if (hk_str_eq(name, hk_str_of(HK_TARGET_TIMEOUT))) /* the engine has read it */
        return hk_parse_duration(value, &ms, NULL) == HK_OK && ms > 0
                   ? HK_OK
                   : hk_err_set(err, HK_INVALID,
                                "headers: " HK_TARGET_TIMEOUT " is not a duration such as 90s");
    if (!hk_header_name_ok(name) || is_ours(own, name))
        return hk_err_set(err, HK_INVALID, "headers: %s is not for a message to set", hk_show(name, shown));
    if (!hk_header_value_ok(value))
        return hk_err_set(err, HK_INVALID,
                          "headers: the value of %s has a control character or is over %d bytes",
                          hk_show(name, shown), HK_HEADER_VALUE_MAX);
    if (++own->n > HK_FIELDS_OWN_MAX)
        return hk_err_set(err, HK_INVALID, "headers: more than %d", HK_FIELDS_OWN_MAX);
    struct hk_str kept = keep(own->f, name);
    add(own->f, kept, keep(own->f, value));
    own->f->at[own->f->n - 1].secret = hk_header_secret(name);
    return HK_OK;
}

enum hk_code hk_fields_make(struct hk_fields *f, const struct hk_fields_rule *rule, const char *ce_source,
                            const struct hk_message *msg, uint32_t attempt, struct hk_err *err)
{
    struct own own = {.f = f, .rule = rule};
    enum hk_code rc = HK_OK;
    f->n = 0;
    hk_buf_reset(&f->text);
    if (ce_source && !msg->event_type.len)
        return hk_err_set(err, HK_INVALID, "a CloudEvent needs an event_type");
    add_columns(f, rule, msg, attempt);
    if (ce_source)
        add_cloudevents(f, rule->ce_prefix, ce_source, msg);
    if (msg->headers.len)
        rc = hk_headers_read(msg->headers, add_own, &own, err);
    if (rc == HK_OK && hk_buf_status(&f->text) != HK_OK)
        rc = hk_buf_status(&f->text) == HK_NOMEM
                 ? hk_err_set(err, HK_NOMEM, "out of memory")
                 : hk_err_set(err, HK_INVALID, "headers: more than %d bytes", TEXT_MAX);
    if (rc == HK_OK)
        settle(f);
    return rc;
}

void hk_fields_show(const struct hk_fields *f, struct hk_json *json)
{
    for (size_t i = 0; i < f->n; i++) {
        char name[HK_HEADER_NAME_MAX + 1];
        if (!hk_str_copy(name, sizeof name, f->at[i].name))
            continue;
        hk_json_key(json, name);
        hk_json_str(json, f->at[i].secret ? hk_str_of("***") : f->at[i].value);
    }
}
