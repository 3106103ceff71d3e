/* SPDX-License-Identifier: Apache-2.0 */
/* Members in a text. The text is known to be JSON when members are looked for, so that only types and names can be wrong. Numbers
 * are read from their digits: seeds use all 64 bits, which neither doubles nor signed integers hold. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "desk/form_impl.h"

void hk_form_wrong(struct hk_form *form, const char *key, const char *must)
{
    if (form->rc != HK_OK)
        return;
    if (key == NULL && form->path_len > 0) /* an item: the path has its place, and a full stop */
        form->rc = hk_err_set(form->err, HK_INVALID, "%.*s %s", (int)form->path_len - 1, form->path, must);
    else
        form->rc = hk_err_set(form->err, HK_INVALID, "%s%s %s", form->path, key != NULL ? key : "", must);
}

void hk_form_no_memory(struct hk_form *form)
{
    if (form->rc == HK_OK)
        form->rc = hk_err_set(form->err, HK_NOMEM, "out of memory");
}

size_t hk_form_enter(struct hk_form *form, const char *key, size_t index)
{
    const char *name = key != NULL ? key : "";
    size_t before = form->path_len, room = sizeof form->path - before;
    int len = index == SIZE_MAX ? snprintf(form->path + before, room, "%s.", name)
                                : snprintf(form->path + before, room, "%s[%zu].", name, index);
    form->path_len += len < 0 ? 0 : (size_t)len < room ? (size_t)len : room - 1;
    return before;
}

void hk_form_leave(struct hk_form *form, size_t before)
{
    form->path_len = before;
    form->path[before] = '\0';
}

/* ---- finding ---- */

/* Passes over the rest of the value that begins with `token`. */
static struct hk_form_value whole_value(struct hk_json_scan *scan, const struct hk_scan_token *token)
{
    struct hk_form_value value = {token->kind, token->raw};
    if (token->kind == HK_SCAN_OBJECT || token->kind == HK_SCAN_ARRAY) {
        (void)hk_scan_leave(scan);
        value.raw.len = scan->pos - token->at;
    }
    return value;
}

bool hk_form_next(struct hk_json_scan *scan, struct hk_form_value *out)
{
    struct hk_scan_token token;
    if (!hk_scan_is_value(hk_scan_next(scan, &token)))
        return false;
    *out = whole_value(scan, &token);
    return true;
}

static void rewind_place(struct hk_form_place *place)
{
    struct hk_scan_token token;
    hk_scan_init(&place->scan, place->text);
    (void)hk_scan_next(&place->scan, &token); /* the bracket */
}

void hk_form_place_init(struct hk_form_place *place, struct hk_str object)
{
    *place = (struct hk_form_place){.text = object};
    rewind_place(place);
}

static bool find_from_here(struct hk_form_place *place, struct hk_str key, struct hk_form_value *out)
{
    struct hk_scan_token token;
    while (hk_scan_next(&place->scan, &token) == HK_SCAN_KEY)
        if (hk_form_next(&place->scan, out) && hk_scan_text_eq(token.raw, key))
            return true;
    return false;
}

bool hk_form_find(struct hk_form *form, const char *key, struct hk_form_value *out)
{
    struct hk_form_place *place = form->place;
    if (form->rc != HK_OK)
        return false;
    if (key == NULL) {
        *out = place->item;
        return true;
    }
    if (find_from_here(place, hk_str_of(key), out))
        return true;
    rewind_place(place);
    return find_from_here(place, hk_str_of(key), out);
}

bool hk_form_take(struct hk_form *form, const char *key, struct hk_form_value *out)
{
    bool found = hk_form_find(form, key, out);
    if (!found)
        hk_form_wrong(form, key, "is missing");
    return found;
}

/* ---- values ---- */

bool hk_form_take_text(struct hk_form *form, const char *key, struct hk_str raw, struct hk_str *out)
{
    struct hk_scan_chars chars;
    char *text = hk_pool_alloc(form->mem, raw.len + 4, 1), c[4];
    size_t len = 0;
    (void)key;
    if (text == NULL) {
        hk_form_no_memory(form);
        return false;
    }
    hk_scan_chars_init(&chars, raw);
    for (size_t n = 0; (n = hk_scan_chars_next(&chars, c)) > 0; len += n)
        memcpy(text + len, c, n);
    text[len] = '\0';
    *out = (struct hk_str){text, len};
    return true;
}

/* strtod gets no decimal point, so that it reads the same in every locale. */
bool hk_form_parse_double(struct hk_str number, double *out)
{
    char text[400];
    size_t len = 0, i = 0;
    int64_t exponent = 0, places = 0;
    bool fraction = false;
    if (number.len > sizeof text - 32)
        return false;
    for (; i < number.len && number.ptr[i] != 'e' && number.ptr[i] != 'E'; i++) {
        places += fraction;
        if (number.ptr[i] == '.')
            fraction = true;
        else
            text[len++] = number.ptr[i];
    }
    if (i < number.len) {
        i += number.ptr[i + 1] == '+' ? 2 : 1;
        if (hk_parse_i64((struct hk_str){number.ptr + i, number.len - i}, &exponent, NULL) != HK_OK ||
            exponent > 10000 || exponent < -10000)
            return false;
    }
    (void)snprintf(text + len, sizeof text - len, "e%d", (int)(exponent - places));
    double value = strtod(text, NULL);
    if (!isfinite(value))
        return false;
    *out = value;
    return true;
}
