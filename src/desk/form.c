/* SPDX-License-Identifier: Apache-2.0 */
/* Members of a form, each in the three ways. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "desk/desk.h"
#include "desk/form_impl.h"

bool hk_form_reads(const struct hk_form *form)
{
    return form->mode == READING && form->rc == HK_OK;
}

size_t hk_form_index(const struct hk_form *form)
{
    return form->index;
}

/* ---- writing ---- */

static void put_key(struct hk_form *form, const char *key)
{
    if (!form->is_open)
        hk_json_object(form->json);
    form->is_open = true;
    if (key != NULL)
        hk_json_key(form->json, key);
}

static void put_text(struct hk_form *form, const char *key, struct hk_str text)
{
    put_key(form, key);
    if (text.len > 0)
        hk_json_str(form->json, text);
    else
        hk_json_null(form->json);
}

/* ---- describing ---- */

static void describe_key(struct hk_form *form, const char *key)
{
    struct hk_form_required *required = form->required;
    if (key == NULL)
        return;
    hk_json_key(form->json, key);
    if (required->optional > 0)
        return;
    assert(required->n < HK_FORM_MEMBERS_MAX);
    required->keys[required->n++] = key;
}

/* Opens the schema of a member. */
static void describe(struct hk_form *form, const char *key, const char *type, bool or_null)
{
    struct hk_json *json = form->json;
    describe_key(form, key);
    if (key != NULL)
        hk_json_object(json);
    hk_json_key(json, "type");
    if (or_null) {
        hk_json_array(json);
        hk_json_cstr(json, type);
        hk_json_cstr(json, "null");
        hk_json_end(json);
    } else {
        hk_json_cstr(json, type);
    }
}

static void end_description(struct hk_form *form, const char *key)
{
    if (key != NULL)
        hk_json_end(form->json);
}

static void describe_plain(struct hk_form *form, const char *key, const char *type, bool or_null)
{
    describe(form, key, type, or_null);
    end_description(form, key);
}

static void describe_word(struct hk_form *form, const char *name, const char *word)
{
    hk_json_key(form->json, name);
    hk_json_cstr(form->json, word);
}

/* In the schema of an object: what its form calls for. */
static void describe_members(struct hk_form *form, hk_form_fn *fn)
{
    struct hk_form_required required = {.n = 0}, *outer = form->required;
    struct hk_json *json = form->json;
    form->required = &required;
    hk_json_key(json, "properties");
    hk_json_object(json);
    fn(form, form->zeros);
    hk_json_end(json);
    form->required = outer;
    if (required.n == 0)
        return;
    hk_json_key(json, "required");
    hk_json_array(json);
    for (size_t i = 0; i < required.n; i++)
        hk_json_cstr(json, required.keys[i]);
    hk_json_end(json);
}

/* ---- texts ---- */

/* Reads a string or null (null is ""). False: an error, or another type. */
static bool take_text(struct hk_form *form, const char *key, bool or_null, struct hk_str *out)
{
    struct hk_form_value value;
    if (!hk_form_take(form, key, &value))
        return false;
    if (or_null && value.kind == HK_SCAN_NULL) {
        *out = (struct hk_str){"", 0};
        return true;
    }
    if (value.kind == HK_SCAN_STRING)
        return hk_form_take_text(form, key, value.raw, out);
    hk_form_wrong(form, key, or_null ? "must be a string or null" : "must be a string");
    return false;
}

void hk_form_str(struct hk_form *form, const char *key, struct hk_str *value)
{
    struct hk_str text;
    if (form->mode == WRITING)
        put_text(form, key, *value);
    else if (form->mode == DESCRIBING)
        describe_plain(form, key, "string", true);
    else if (take_text(form, key, true, &text))
        *value = text;
}

void hk_form_text(struct hk_form *form, const char *key, struct hk_str *value)
{
    struct hk_str text;
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_str(form->json, *value);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "string", false);
    } else if (take_text(form, key, false, &text)) {
        *value = text;
    }
}

void hk_form_cstr(struct hk_form *form, const char *key, const char **value)
{
    struct hk_form_value got;
    struct hk_str text;
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_cstr(form->json, *value);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "string", true);
    } else if (hk_form_take(form, key, &got)) {
        if (got.kind == HK_SCAN_NULL)
            *value = NULL;
        else if (got.kind != HK_SCAN_STRING)
            hk_form_wrong(form, key, "must be a string or null");
        else if (hk_form_take_text(form, key, got.raw, &text) && strlen(text.ptr) == text.len)
            *value = text.ptr;
        else
            hk_form_wrong(form, key, "must not hold a NUL character");
    }
}

void hk_form_chars(struct hk_form *form, const char *key, char *value, size_t room)
{
    struct hk_str text;
    if (form->mode == WRITING) {
        put_text(form, key, hk_str_of(value));
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "string", true);
    } else if (take_text(form, key, true, &text)) {
        if (text.len >= room || memchr(text.ptr, '\0', text.len) != NULL)
            hk_form_wrong(form, key, "is too long, or holds a NUL character");
        else
            memcpy(value, text.ptr, text.len + 1);
    }
}

void hk_form_id(struct hk_form *form, const char *key, int64_t *value)
{
    char digits[24];
    struct hk_str text;
    int64_t id = 0;
    if (form->mode == WRITING) {
        (void)snprintf(digits, sizeof digits, "%" PRId64, *value);
        put_text(form, key, hk_str_of(*value != 0 ? digits : ""));
    } else if (form->mode == DESCRIBING) {
        describe(form, key, "string", true);
        describe_word(form, "pattern", "^-?[0-9]+$");
        end_description(form, key);
    } else if (take_text(form, key, true, &text)) {
        if (text.len > 0 && hk_parse_i64(text, &id, NULL) != HK_OK)
            hk_form_wrong(form, key, "must be an id: digits in a string");
        else
            *value = id;
    }
}

void hk_form_time(struct hk_form *form, const char *key, int64_t *ms)
{
    char when[HK_TIME_TEXT_MAX] = "";
    struct hk_str text;
    int64_t at = 0;
    if (form->mode == WRITING) {
        if (*ms != 0)
            (void)hk_format_rfc3339(*ms, when);
        put_text(form, key, hk_str_of(when));
    } else if (form->mode == DESCRIBING) {
        describe(form, key, "string", true);
        describe_word(form, "format", "date-time");
        end_description(form, key);
    } else if (take_text(form, key, true, &text)) {
        if (text.len > 0 && hk_parse_rfc3339(text, &at, NULL) != HK_OK)
            hk_form_wrong(form, key, "must be a time such as 2026-11-15T08:30:00Z");
        else
            *ms = at;
    }
}

void hk_form_failure(struct hk_form *form, const char *key, struct hk_err *value)
{
    struct hk_str text;
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_cstr(form->json, value->code != HK_OK ? value->message : NULL);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "string", true);
    } else {
        struct hk_form_value got;
        if (!hk_form_take(form, key, &got))
            return;
        if (got.kind == HK_SCAN_STRING && hk_form_take_text(form, key, got.raw, &text))
            (void)hk_err_set(value, HK_IO, "%s", text.ptr);
        else if (got.kind != HK_SCAN_NULL)
            hk_form_wrong(form, key, "must be a string or null");
    }
}

void hk_form_words(struct hk_form *form, const char *key, void *value, const char *const *words, size_t n)
{
    struct hk_str text;
    unsigned i = 0;
    if (form->mode == WRITING) {
        memcpy(&i, value, sizeof i);
        put_key(form, key);
        hk_json_cstr(form->json, i < n ? words[i] : NULL);
    } else if (form->mode == DESCRIBING) {
        describe(form, key, "string", false);
        hk_json_key(form->json, "enum");
        hk_json_array(form->json);
        for (; i < n; i++)
            if (words[i] != NULL)
                hk_json_cstr(form->json, words[i]);
        hk_json_end(form->json);
        end_description(form, key);
    } else if (take_text(form, key, false, &text)) {
        while (i < n && (words[i] == NULL || !hk_str_eq(text, hk_str_of(words[i]))))
            i++;
        if (i == n)
            hk_form_wrong(form, key, "is a word that this version does not know");
        else
            memcpy(value, &i, sizeof i);
    }
}

/* ---- bytes ---- */

static void put_base64(struct hk_form *form, const char *key, struct hk_str bytes)
{
    struct hk_buf text;
    hk_buf_init(&text, HK_FORM_TEXT_MAX);
    (void)hk_buf_add_base64(&text, bytes.ptr, bytes.len);
    put_key(form, key);
    hk_json_str(form->json, hk_buf_str(&text));
    hk_buf_inherit(form->json->out, &text);
    hk_buf_fini(&text);
}

static void take_base64(struct hk_form *form, const char *key, struct hk_str *value)
{
    struct hk_str text;
    size_t len = 0;
    if (!take_text(form, key, false, &text))
        return;
    size_t room = hk_base64_room(text.len);
    unsigned char *bytes = hk_pool_alloc(form->mem, room + 1, 1);
    if (bytes == NULL)
        hk_form_no_memory(form);
    else if (!hk_base64_decode(text, HK_BASE64_BARE, bytes, room, &len))
        hk_form_wrong(form, key, "must be base64");
    else
        *value = (struct hk_str){(const char *)bytes, len};
}

/* `has` NULL: there always are some. */
static void form_bytes(struct hk_form *form, const char *key, bool *has, struct hk_str *value)
{
    char base64[64];
    struct hk_form_value got;
    (void)snprintf(base64, sizeof base64, "%s_base64", key);
    if (form->mode == WRITING && has != NULL && !*has) {
        hk_form_null(form, key);
    } else if (form->mode == WRITING && hk_utf8_is_text(*value)) {
        put_key(form, key);
        hk_json_str(form->json, *value);
    } else if (form->mode == WRITING) {
        put_base64(form, base64, *value);
    } else if (form->mode == DESCRIBING) {
        form->required->optional++; /* one or the other */
        describe_plain(form, key, "string", has != NULL);
        describe(form, base64, "string", false);
        describe_word(form, "contentEncoding", "base64");
        end_description(form, base64);
        form->required->optional--;
    } else if (hk_form_find(form, base64, &got)) {
        if (has != NULL)
            *has = true;
        take_base64(form, base64, value);
    } else if (hk_form_take(form, key, &got)) {
        if (has != NULL)
            *has = got.kind != HK_SCAN_NULL;
        (void)take_text(form, key, has != NULL, value);
    }
}

void hk_form_bytes(struct hk_form *form, const char *key, struct hk_str *value)
{
    form_bytes(form, key, NULL, value);
}

void hk_form_payload(struct hk_form *form, const char *key, bool *has, struct hk_str *value)
{
    form_bytes(form, key, has, value);
}

/* ---- numbers ---- */

void hk_form_bool(struct hk_form *form, const char *key, bool *value)
{
    struct hk_form_value got;
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_bool(form->json, *value);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "boolean", false);
    } else if (hk_form_take(form, key, &got)) {
        if (got.kind == HK_SCAN_TRUE || got.kind == HK_SCAN_FALSE)
            *value = got.kind == HK_SCAN_TRUE;
        else
            hk_form_wrong(form, key, "must be true or false");
    }
}

static void double_or_null(struct hk_form *form, const char *key, double *value, double for_null)
{
    struct hk_form_value got;
    double number = for_null;
    if (!hk_form_take(form, key, &got))
        return;
    if (got.kind != HK_SCAN_NULL && got.kind != HK_SCAN_NUMBER)
        hk_form_wrong(form, key, "must be a number");
    else if (got.kind == HK_SCAN_NUMBER && !hk_form_parse_double(got.raw, &number))
        hk_form_wrong(form, key, "is a number that is too large");
    else
        *value = number;
}

void hk_form_double(struct hk_form *form, const char *key, double *value)
{
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_double(form->json, *value);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "number", false);
    } else {
        double_or_null(form, key, value, (double)NAN); /* null is what such a one is written as */
    }
}

void hk_form_ratio(struct hk_form *form, const char *key, double *value)
{
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_double(form->json, *value < 0 ? (double)NAN : *value);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "number", true);
    } else {
        double_or_null(form, key, value, -1);
    }
}

static uint64_t load(const void *value, size_t size)
{
    uint32_t narrow = 0;
    uint64_t wide = 0;
    assert(size == sizeof narrow || size == sizeof wide);
    if (size == sizeof wide)
        memcpy(&wide, value, sizeof wide);
    else
        memcpy(&narrow, value, sizeof narrow);
    return size == sizeof wide ? wide : narrow;
}

static void store(void *value, size_t size, uint64_t wide)
{
    uint32_t narrow = (uint32_t)wide;
    if (size == sizeof wide)
        memcpy(value, &wide, sizeof wide);
    else
        memcpy(value, &narrow, sizeof narrow);
}

static int64_t load_signed(const void *value, size_t size)
{
    uint64_t bits = load(value, size);
    return size == sizeof bits ? (int64_t)bits : (int32_t)(uint32_t)bits;
}

static uint64_t null_of(enum hk_form_number kind, size_t size)
{
    return kind == HK_FORM_LIMIT ? 0 : size == sizeof(uint64_t) ? UINT64_MAX : UINT32_MAX;
}

static void put_number(struct hk_form *form, const void *value, size_t size, enum hk_form_number kind)
{
    bool or_null = kind == HK_FORM_LIMIT || kind == HK_FORM_MAYBE;
    if (kind == HK_FORM_SIGNED)
        hk_json_i64(form->json, load_signed(value, size));
    else if (or_null && load(value, size) == null_of(kind, size))
        hk_json_null(form->json);
    else
        hk_json_u64(form->json, load(value, size));
}

/* False: it is no whole number, or does not fit. */
static bool parse_number(struct hk_str digits, size_t size, bool is_signed, uint64_t *out)
{
    int64_t with_sign = 0;
    if (!is_signed)
        return hk_parse_u64(digits, out, NULL) == HK_OK && (size == sizeof *out || *out <= UINT32_MAX);
    if (hk_parse_i64(digits, &with_sign, NULL) != HK_OK)
        return false;
    *out = (uint64_t)with_sign;
    return size == sizeof *out || (with_sign >= INT32_MIN && with_sign <= INT32_MAX);
}

void hk_form_number(struct hk_form *form, const char *key, void *value, size_t size, enum hk_form_number kind)
{
    struct hk_form_value got;
    bool or_null = kind == HK_FORM_LIMIT || kind == HK_FORM_MAYBE;
    uint64_t number = null_of(kind, size);
    if (form->mode == WRITING) {
        put_key(form, key);
        put_number(form, value, size, kind);
    } else if (form->mode == DESCRIBING) {
        describe(form, key, "integer", or_null);
        describe_word(form, "format", "int64");
        if (kind != HK_FORM_SIGNED) {
            hk_json_key(form->json, "minimum");
            hk_json_u64(form->json, 0);
        }
        end_description(form, key);
    } else if (hk_form_take(form, key, &got)) {
        if (got.kind == HK_SCAN_NUMBER && parse_number(got.raw, size, kind == HK_FORM_SIGNED, &number))
            store(value, size, number);
        else if (got.kind == HK_SCAN_NULL && or_null)
            store(value, size, number);
        else
            hk_form_wrong(form, key,
                          kind == HK_FORM_SIGNED ? "must be a whole number that fits"
                                                 : "must be a whole number from 0 that fits");
    }
}

void hk_form_null(struct hk_form *form, const char *key)
{
    struct hk_form_value got;
    if (form->mode == WRITING) {
        put_key(form, key);
        hk_json_null(form->json);
    } else if (form->mode == DESCRIBING) {
        describe_plain(form, key, "string", true);
    } else {
        (void)hk_form_take(form, key, &got);
    }
}

/* ---- times from now ---- */

/* a - b without overflow: rows, and texts, may hold anything. */
static int64_t minus(int64_t a, int64_t b)
{
    int64_t out = 0;
    if (__builtin_sub_overflow(a, b, &out))
        return a < b ? INT64_MIN : INT64_MAX;
    return out;
}

void hk_form_now(struct hk_form *form, const char *key, int64_t *ms)
{
    hk_form_time(form, key, ms);
    form->now_ms = *ms;
}

void hk_form_age(struct hk_form *form, const char *key, int64_t *ms)
{
    uint64_t age = UINT64_MAX;
    if (*ms != 0)
        age = *ms < form->now_ms ? (uint64_t)form->now_ms - (uint64_t)*ms : 0;
    hk_form_maybe(form, key, &age);
    if (hk_form_reads(form))
        *ms = age == UINT64_MAX ? 0 : minus(form->now_ms, age > INT64_MAX ? INT64_MAX : (int64_t)age);
}

void hk_form_left(struct hk_form *form, const char *key, int64_t *ms)
{
    int64_t left = minus(*ms, form->now_ms);
    hk_form_int(form, key, &left);
    if (hk_form_reads(form))
        *ms = left < 0 && form->now_ms < INT64_MIN - left   ? INT64_MIN
              : left > 0 && form->now_ms > INT64_MAX - left ? INT64_MAX
                                                            : form->now_ms + left;
}

/* ---- objects ---- */

static void read_object(struct hk_form *form, struct hk_str object, hk_form_fn *fn, void *value)
{
    struct hk_form_place place, *outer = form->place;
    hk_form_place_init(&place, object);
    form->place = &place;
    fn(form, value);
    form->place = outer;
}

static void take_object(struct hk_form *form, const char *key, bool *present, hk_form_fn *fn, void *value)
{
    struct hk_form_value got;
    if (!hk_form_take(form, key, &got))
        return;
    if (got.kind != HK_SCAN_OBJECT && (present == NULL || got.kind != HK_SCAN_NULL)) {
        hk_form_wrong(form, key, present == NULL ? "must be an object" : "must be an object or null");
        return;
    }
    if (present != NULL)
        *present = got.kind == HK_SCAN_OBJECT;
    if (got.kind != HK_SCAN_OBJECT)
        return;
    size_t before = hk_form_enter(form, key, SIZE_MAX);
    read_object(form, got.raw, fn, value);
    hk_form_leave(form, before);
}

void hk_form_object(struct hk_form *form, const char *key, bool *present, hk_form_fn *fn, void *value)
{
    if (form->mode == DESCRIBING) {
        describe(form, key, "object", present != NULL);
        describe_members(form, fn);
        end_description(form, key);
        return;
    }
    if (form->mode == READING) {
        take_object(form, key, present, fn, value);
        return;
    }
    put_key(form, key);
    if (present != NULL && !*present) {
        hk_json_null(form->json);
        return;
    }
    hk_json_object(form->json);
    fn(form, value);
    hk_json_end(form->json);
}

bool hk_form_if(struct hk_form *form, const char *key, bool *present)
{
    struct hk_form_value got;
    if (form->mode == WRITING)
        return *present;
    if (form->mode == DESCRIBING) {
        form->required->optional++;
        return true;
    }
    if (form->rc != HK_OK)
        return false;
    struct hk_json_scan here = form->place->scan;
    *present = hk_form_find(form, key, &got);
    form->place->scan = here;
    return *present;
}

void hk_form_end(struct hk_form *form)
{
    if (form->mode == DESCRIBING)
        form->required->optional--;
}

/* ---- lists ---- */

static char *items_of(const struct hk_form_list *list)
{
    char *items = list->items;
    if (list->most == 0)
        memcpy(&items, list->items, sizeof items); /* a pointer to whatever the items are */
    return items;
}

static void put_list(struct hk_form *form, const struct hk_form_list *list)
{
    struct hk_json *json = form->json;
    bool pretty = json->pretty;
    size_t n = list->n != NULL ? *list->n : list->most;
    char *items = items_of(list);
    json->pretty = pretty && !list->in_a_line;
    hk_json_array(json);
    for (size_t i = 0; i < n; i++) {
        form->index = i;
        if (!list->are_values)
            hk_json_object(json);
        list->fn(form, items + i * list->size);
        if (!list->are_values)
            hk_json_end(json);
    }
    hk_json_end(json);
    json->pretty = pretty;
}

static void read_item(struct hk_form *form, const char *key, size_t index, const struct hk_form_list *list,
                      const struct hk_form_value *got, void *item)
{
    struct hk_form_place place = {.item = *got}, *outer = form->place;
    size_t before = hk_form_enter(form, key, index);
    form->place = &place;
    form->index = index;
    if (list->are_values)
        list->fn(form, item);
    else if (got->kind == HK_SCAN_OBJECT)
        read_object(form, got->raw, list->fn, item);
    else
        hk_form_wrong(form, NULL, "must be an object");
    form->place = outer;
    hk_form_leave(form, before);
}

static void read_items(struct hk_form *form, const char *key, const struct hk_form_list *list,
                       struct hk_json_scan *scan)
{
    size_t n = 0, room = list->most;
    char *items = list->most > 0 ? list->items : NULL;
    struct hk_form_value got;
    while (form->rc == HK_OK && hk_form_next(scan, &got)) {
        if (n == room && list->most > 0) {
            hk_form_wrong(form, key, "has too many items");
            return;
        }
        /* as items turn out to be good, so that a text of empty ones gets little memory */
        items = hk_desk_grow(form->mem, items, n, &room, 1, list->size);
        if (items == NULL) {
            hk_form_no_memory(form);
            return;
        }
        read_item(form, key, n, list, &got, items + n * list->size);
        n++;
    }
    if (list->n == NULL && n != list->most)
        hk_form_wrong(form, key, "has too few items");
    if (form->rc != HK_OK)
        return;
    if (list->most == 0)
        memcpy(list->items, &items, sizeof items);
    if (list->n != NULL)
        *list->n = n;
}

static void take_list(struct hk_form *form, const char *key, const struct hk_form_list *list)
{
    struct hk_form_value got;
    struct hk_json_scan scan;
    struct hk_scan_token token;
    if (!hk_form_take(form, key, &got))
        return;
    if (got.kind != HK_SCAN_ARRAY) {
        hk_form_wrong(form, key, "must be an array");
        return;
    }
    hk_scan_init(&scan, got.raw);
    (void)hk_scan_next(&scan, &token); /* the bracket */
    read_items(form, key, list, &scan);
}

void hk_form_list(struct hk_form *form, const char *key, const struct hk_form_list *list)
{
    assert(list->size <= HK_FORM_SIZE_MAX);
    if (form->mode == WRITING) {
        put_key(form, key);
        put_list(form, list);
        return;
    }
    if (form->mode == READING) {
        take_list(form, key, list);
        return;
    }
    form->index = 0;
    describe(form, key, "array", false);
    hk_json_key(form->json, "items");
    hk_json_object(form->json);
    if (list->are_values) {
        list->fn(form, form->zeros);
    } else {
        describe_word(form, "type", "object");
        describe_members(form, list->fn);
    }
    hk_json_end(form->json);
    end_description(form, key);
}

/* ---- JSON in JSON ---- */

/* The tokens once more, so that they are laid out as what is around them. */
static void put_again(struct hk_json *json, struct hk_str value)
{
    struct hk_json_scan scan;
    struct hk_scan_token token;
    struct hk_buf key;
    hk_scan_init(&scan, value);
    hk_buf_init(&key, HK_FORM_TEXT_MAX);
    for (enum hk_scan_kind kind = hk_scan_next(&scan, &token); kind > HK_SCAN_ERROR;
         kind = hk_scan_next(&scan, &token)) {
        if (kind == HK_SCAN_OBJECT) {
            hk_json_object(json);
        } else if (kind == HK_SCAN_ARRAY) {
            hk_json_array(json);
        } else if (kind == HK_SCAN_KEY) {
            hk_buf_reset(&key);
            (void)hk_scan_text(token.raw, &key);
            hk_json_key(json, hk_buf_cstr(&key));
            hk_buf_inherit(json->out, &key);
        } else if (hk_scan_is_value(kind)) {
            hk_json_raw(json, token.raw);
        } else {
            hk_json_end(json);
        }
    }
    hk_buf_fini(&key);
}

void hk_form_raw(struct hk_form *form, const char *key, struct hk_str *value)
{
    struct hk_form_value got;
    if (form->mode == WRITING) {
        put_key(form, key);
        if (value->len > 0)
            put_again(form->json, *value);
        else
            hk_json_null(form->json);
    } else if (form->mode == DESCRIBING) {
        describe_key(form, key);
        hk_json_object(form->json); /* anything; programs that read schemas know no `true` */
        hk_json_end(form->json);
    } else if (hk_form_take(form, key, &got)) {
        const char *copy = got.kind != HK_SCAN_NULL ? hk_pool_copy_str(form->mem, got.raw) : "";
        if (copy == NULL)
            hk_form_no_memory(form);
        else
            *value = (struct hk_str){copy, got.kind != HK_SCAN_NULL ? got.raw.len : 0};
    }
}

void hk_form_whole(struct hk_form *form, struct hk_str *value)
{
    form->is_whole = true;
    if (form->mode == WRITING) {
        hk_json_raw(form->json, *value);
    } else if (form->mode == READING) {
        char *copy = hk_pool_copy_str(form->mem, form->text);
        if (copy == NULL)
            hk_form_no_memory(form);
        else
            *value = (struct hk_str){copy, form->text.len};
    }
}

/* ---- the three ways ---- */

void hk_form_write(struct hk_json *json, hk_form_fn *fn, const void *result)
{
    struct hk_form form = {.mode = WRITING, .json = json};

    union {
        const void *in;
        void *out;
    } same = {.in = result}; /* nothing of it is changed while writing */

    fn(&form, same.out);
    if (form.is_open)
        hk_json_end(json);
    else if (!form.is_whole)
        hk_json_raw(json, hk_str_of("{}"));
}

enum hk_code hk_form_read(struct hk_str text, hk_form_fn *fn, struct hk_pool *mem, void *out_result,
                          struct hk_err *err)
{
    struct hk_form form = {.mode = READING, .text = text, .mem = mem, .err = err};
    struct hk_json_scan scan;
    struct hk_form_value value;
    if (text.len > HK_FORM_TEXT_MAX)
        return hk_err_set(err, HK_TOOBIG, "the result has more than %zu bytes", HK_FORM_TEXT_MAX);
    enum hk_code rc = hk_scan_check(text, err);
    if (rc != HK_OK)
        return rc;
    hk_scan_init(&scan, text);
    if (!hk_form_next(&scan, &value) || value.kind != HK_SCAN_OBJECT)
        return hk_err_set(err, HK_INVALID, "the result must be a JSON object");
    read_object(&form, value.raw, fn, out_result);
    return form.rc;
}

void hk_form_schema(struct hk_json *json, hk_form_fn *fn)
{
    struct hk_form form = {
        .mode = DESCRIBING, .json = json, .is_open = true, .zeros = hk_mem_zalloc(1, HK_FORM_SIZE_MAX)};
    if (form.zeros == NULL) {
        json->out->status = HK_NOMEM;
        return;
    }
    hk_json_object(json);
    hk_json_key(json, "type");
    hk_json_cstr(json, "object");
    describe_members(&form, fn);
    hk_json_end(json);
    hk_mem_free(form.zeros);
}
