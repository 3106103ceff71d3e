/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"
#include "cli/members.h"
#include "cli/table.h"
#include "payload/scan.h"

enum {
    VALUE_WIDTH = 200
};

#define VALUE_BYTES ((size_t)512 << 10)

/* {"n":3,"estimate":true} is ~3. False: it is no count. */
static bool write_count(struct hk_buf *out, struct hk_str object)
{
    struct hk_json_scan scan;
    struct hk_scan_token token, number = {.kind = HK_SCAN_END};
    bool about = false;
    hk_scan_init(&scan, object);
    if (hk_scan_next(&scan, &token) != HK_SCAN_OBJECT)
        return false;
    if (hk_scan_next(&scan, &token) != HK_SCAN_KEY || !hk_str_eq(token.raw, hk_str_of("\"n\"")))
        return false;
    if (hk_scan_next(&scan, &number) != HK_SCAN_NUMBER)
        return false;
    while (hk_scan_next(&scan, &token) != HK_SCAN_END && token.kind != HK_SCAN_ERROR)
        about = about || token.kind == HK_SCAN_TRUE;
    (void)hk_buf_adds(out, about ? "~" : "");
    (void)hk_table_safe(out, number.raw, VALUE_WIDTH);
    return true;
}

/* Of a container the whole, of a text what it says. */
static void write_value(struct hk_buf *out, const struct hk_scan_token *token, struct hk_str whole)
{
    struct hk_buf text;
    if (token->kind == HK_SCAN_OBJECT && write_count(out, whole))
        return;
    hk_buf_init(&text, VALUE_BYTES);
    if (token->kind == HK_SCAN_STRING && hk_scan_text(token->raw, &text) == HK_OK)
        whole = hk_buf_str(&text);
    (void)hk_table_safe(out, whole, VALUE_WIDTH);
    hk_buf_fini(&text);
}

static bool says_nothing(const struct hk_scan_token *token)
{
    return token->kind == HK_SCAN_NULL || token->kind == HK_SCAN_FALSE ||
           hk_str_eq(token->raw, hk_str_of("\"\""));
}

void hk_members_write(struct hk_buf *out, struct hk_str json)
{
    struct hk_json_scan scan;
    struct hk_scan_token key, value;
    hk_scan_init(&scan, json);
    if (hk_scan_next(&scan, &key) != HK_SCAN_OBJECT)
        return;
    while (hk_scan_next(&scan, &key) == HK_SCAN_KEY) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &value);
        if ((kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_scan_leave(&scan))
            return;
        if (says_nothing(&value) || hk_str_eq(key.raw, hk_str_of("\"now\"")) || key.raw.len < 2)
            continue;
        (void)hk_buf_addc(out, ' ');
        (void)hk_table_safe(out, (struct hk_str){key.raw.ptr + 1, key.raw.len - 2}, VALUE_WIDTH);
        (void)hk_buf_addc(out, '=');
        write_value(out, &value, (struct hk_str){json.ptr + value.at, scan.pos - value.at});
    }
}

bool hk_members_items(struct hk_str json, const char *key, hk_members_item_fn *take, void *arg)
{
    struct hk_json_scan scan;
    struct hk_scan_token name, value;
    hk_scan_init(&scan, json);
    if (hk_scan_next(&scan, &name) != HK_SCAN_OBJECT)
        return false;
    while (hk_scan_next(&scan, &name) == HK_SCAN_KEY) {
        enum hk_scan_kind kind = hk_scan_next(&scan, &value);
        bool is_it = kind == HK_SCAN_ARRAY && hk_scan_text_eq(name.raw, hk_str_of(key));
        while (is_it && hk_scan_next(&scan, &value) == HK_SCAN_OBJECT && hk_scan_leave(&scan))
            take(arg, (struct hk_str){json.ptr + value.at, scan.pos - value.at});
        if (is_it)
            return true;
        if ((kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) && !hk_scan_leave(&scan))
            return false;
    }
    return false;
}
