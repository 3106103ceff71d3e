/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a payload that a rule names for its notices. What masks hide, here or anywhere else in the payload, is not shown; in
 * doubt a field is hidden. */
#include <string.h>

#include "base/str.h"
#include "daemon/alerts.h"
#include "desk/letters.h"
#include "payload/codec.h"

#define VALUE_MAX  ((size_t)1 << 20) /* bytes of a value before it is cut */
#define VALUES_MAX 3                 /* of a path that leads to many */

/* One letter, as fields are looked for in it. */
struct looked {
    const struct hk_masks *masks;
    struct hk_mask_about about;
    struct hk_str plain; /* the payload, with what is masked in it as "***" */
    bool readable;
    struct hk_pool *mem;
};

static enum hk_code veil(struct looked *l)
{
    struct hk_buf text;
    hk_buf_init(&text, 2 * VALUE_MAX);
    enum hk_code rc = hk_mask_payload(l->masks, l->about.event_type, l->plain, &text);
    const char *copy = rc == HK_OK ? hk_pool_copy_str(l->mem, hk_buf_str(&text)) : NULL;
    if (rc == HK_OK && !copy)
        rc = HK_NOMEM;
    l->readable = rc == HK_OK;
    l->plain = (struct hk_str){copy, copy ? text.len : 0};
    hk_buf_fini(&text);
    return rc;
}

static enum hk_code look_at(const struct hk_masks *masks, const struct hk_letter_shown *shown,
                            struct hk_pool *mem, struct looked *out)
{
    const struct hk_letter *l = &shown->letter;
    struct hk_err err = {.message = ""};
    *out = (struct looked){.masks = masks, .mem = mem};
    if (hk_letter_about(l, shown, mem, &out->about) != HK_OK)
        return HK_NOMEM;
    if (!l->has_payload || l->payload.len < l->payload_bytes)
        return HK_OK; /* cut: too large to look into */
    enum hk_code rc = hk_codec_plain(l->encoding, l->payload, mem, &out->plain);
    out->readable = rc == HK_OK && hk_scan_check(out->plain, &err) == HK_OK;
    if (out->readable && hk_masks_fit(masks, l->event_type))
        rc = veil(out);
    return rc == HK_NOMEM ? rc : HK_OK;
}

/* A value as people read it: a string without its quotes, anything else as it is written. */
static void add_value(struct hk_path_walk *walk, const struct hk_scan_token *token, struct hk_str plain,
                      struct hk_buf *out)
{
    size_t end = 0;
    if (token->kind == HK_SCAN_STRING) {
        (void)hk_scan_text(token->raw, out);
        return;
    }
    if (token->kind != HK_SCAN_OBJECT && token->kind != HK_SCAN_ARRAY) {
        (void)hk_buf_add(out, token->raw.ptr, token->raw.len);
        return;
    }
    size_t from = (size_t)(token->raw.ptr - plain.ptr);
    if (hk_path_walk_leave(walk, &end) && end > from)
        (void)hk_buf_add(out, plain.ptr + from, end - from);
}

/* How many there are; their texts, one after the other. */
static size_t find_values(const struct looked *l, const struct hk_path *path, struct hk_buf *out)
{
    struct hk_path_state state;
    struct hk_path_walk walk;
    struct hk_scan_token token;
    enum hk_scan_kind kind = HK_SCAN_END;
    size_t n = 0;
    hk_path_walk_init(&walk, l->plain, &path, &state, 1);
    while ((kind = hk_path_walk_next(&walk, &token)) != HK_SCAN_END && kind != HK_SCAN_ERROR) {
        if (!hk_path_walk_hit(&walk))
            continue;
        if (n++ < VALUES_MAX) {
            (void)hk_buf_adds(out, n > 1 ? ", " : "");
            add_value(&walk, &token, l->plain, out);
        }
    }
    if (n > VALUES_MAX)
        (void)hk_buf_adds(out, ", …");
    return n;
}

/* Up to HK_ALERT_FIELD_MAX bytes, no part of a character. */
static struct hk_str cut(struct hk_str text)
{
    if (text.len <= HK_ALERT_FIELD_MAX)
        return text;
    text.len = HK_ALERT_FIELD_MAX;
    while (text.len && ((unsigned char)text.ptr[text.len] & 0xc0u) == 0x80)
        text.len--;
    return text;
}

static enum hk_code take_value(const struct looked *l, struct hk_str text, struct hk_alert_field *out)
{
    struct hk_buf shown;
    hk_buf_init(&shown, VALUE_MAX * 2);
    enum hk_code rc = HK_TOOBIG;
    if (!hk_masks_fit(l->masks, l->about.event_type))
        rc = hk_buf_add(&shown, text.ptr, text.len);
    else if (!l->about.partial)
        rc = hk_mask_about(l->masks, &l->about, text, &shown);
    if (rc == HK_OK) {
        struct hk_str kept = cut(hk_buf_str(&shown));
        const char *copy = hk_pool_copy_str(l->mem, kept);
        out->value = (struct hk_str){copy, copy ? kept.len : 0};
        rc = copy ? HK_OK : HK_NOMEM;
    } else if (rc != HK_NOMEM) {
        out->state = HK_ALERT_FIELD_MASKED;
        rc = HK_OK;
    }
    hk_buf_fini(&shown);
    return rc;
}

static enum hk_code name_one(const struct looked *l, const char *event_type, const struct hk_path *path,
                             struct hk_alert_field *out)
{
    struct hk_buf text;
    if (hk_masks_cover(l->masks, event_type, path)) {
        out->state = HK_ALERT_FIELD_MASKED;
        return HK_OK;
    }
    if (!l->readable) {
        out->state = HK_ALERT_FIELD_UNREADABLE;
        return HK_OK;
    }
    hk_buf_init(&text, VALUE_MAX);
    size_t n = find_values(l, path, &text);
    enum hk_code rc = hk_buf_status(&text);
    if (n == 0)
        out->state = HK_ALERT_FIELD_ABSENT;
    else if (hk_str_eq(hk_buf_str(&text), hk_str_of(HK_MASKED)))
        out->state = HK_ALERT_FIELD_MASKED;
    else if (rc == HK_TOOBIG)
        out->state = HK_ALERT_FIELD_UNREADABLE;
    else if (rc == HK_OK)
        rc = take_value(l, hk_buf_str(&text), out);
    hk_buf_fini(&text);
    return rc == HK_NOMEM ? rc : HK_OK;
}

enum hk_code hk_alerts_name_fields(const struct hk_masks *masks, const struct hk_alert_rule *rule,
                                   const struct hk_letter_shown *shown, struct hk_pool *mem,
                                   struct hk_buf *out)
{
    struct hk_alert_field fields[HK_ALERT_FIELDS];
    struct looked l;
    size_t n = 0;
    if (!rule->n_fields)
        return HK_OK;
    enum hk_code rc = look_at(masks, shown, mem, &l);
    const char *event_type = hk_pool_copy_str(mem, shown->letter.event_type);
    if (!event_type)
        rc = HK_NOMEM;
    for (; rc == HK_OK && n < rule->n_fields && n < HK_ALERT_FIELDS; n++) {
        struct hk_path *path = NULL;
        struct hk_err err = {.message = ""};
        fields[n] = (struct hk_alert_field){.path = hk_str_of(rule->fields[n]), .value = {"", 0}};
        rc = hk_path_parse(fields[n].path, &path, &err);
        if (rc == HK_OK)
            rc = name_one(&l, event_type, path, &fields[n]);
        hk_path_free(path);
    }
    if (rc == HK_OK)
        hk_alerts_fields_text(fields, n, out);
    return rc == HK_OK ? hk_buf_status(out) : HK_NOMEM;
}
