/* SPDX-License-Identifier: Apache-2.0 */
/* Up to the first line break, the ids of a batch, parted by blanks; behind it, a receiver's answer. What is read of a list agrees with
 * jansson's reading: an item has a status only where an entry of its id has that status, and an item that some entry fails never
 * counts as taken. */
#include <string.h>

#include <jansson.h>

#include "fuzz.h"
#include "sink/batch/results.h"

enum {
    IDS_MAX = 12
};

static const json_t *list_of(const json_t *root)
{
    return json_is_array(root) ? root : json_object_get(root, "results");
}

static bool is_of(const json_t *entry, struct hk_str id)
{
    const json_t *own = json_object_get(entry, "id");
    return json_is_string(own) &&
           hk_str_eq(id, (struct hk_str){json_string_value(own), json_string_length(own)});
}

/* Twins share their results, so only one of a kind is held against the list. */
static bool is_alone(const struct hk_result *items, size_t n, size_t i)
{
    for (size_t k = 0; k < n; k++)
        if (k != i && hk_str_eq(items[k].id, items[i].id))
            return false;
    return true;
}

static void check_item(const json_t *list, const struct hk_result *item, bool alone)
{
    bool found = false, failed = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *entry = json_array_get(list, i), *status = json_object_get(entry, "status");
        if (!is_of(entry, item->id))
            continue;
        found = found || (json_is_integer(status) && json_integer_value(status) == item->status);
        failed = failed || !json_is_integer(status) || json_integer_value(status) / 100 != 2;
    }
    MUST(!item->status || (item->status >= 200 && item->status <= 999 && found));
    MUST(!alone || !failed || item->status / 100 != 2);
}

/* What is kept of an entry lies within the body, and is an object. */
static void check_text(struct hk_str body, const struct hk_result *item)
{
    if (!item->text.len)
        return;
    MUST(item->text.ptr >= body.ptr && item->text.ptr + item->text.len <= body.ptr + body.len);
    MUST(item->text.ptr[0] == '{' && item->text.ptr[item->text.len - 1] == '}');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hk_result items[IDS_MAX];
    size_t n = 0;
    if (size > 16384)
        return 0;
    struct hk_str body = {(const char *)data, size};
    struct hk_str ids = hk_str_cut(&body, '\n');
    while (ids.ptr && n < IDS_MAX) {
        struct hk_str id = hk_str_cut(&ids, ' ');
        if (id.len)
            items[n++] = (struct hk_result){.id = id};
    }
    if (!n || !body.ptr)
        return 0;
    enum hk_results results = hk_results_read(body, items, n);
    MUST(results != HK_RESULTS_NOMEM);
    if (results != HK_RESULTS_LIST)
        return 0;
    json_t *root = json_loadb(body.ptr, body.len, JSON_ALLOW_NUL, NULL);
    for (size_t i = 0; i < n; i++) {
        check_text(body, &items[i]);
        if (root) /* jansson takes no huge numbers, and no half of a surrogate pair */
            check_item(list_of(root), &items[i], is_alone(items, n, i));
    }
    json_decref(root);
    return 0;
}
