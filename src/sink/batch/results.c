/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of results: first the whole text is checked, then its entries are walked through. Receivers mostly keep the order of the
 * items, so the next id is looked for behind the last one; any other in an index that is made when it is needed first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "payload/scan.h"
#include "sink/batch/results.h"

#define ID_MAX 4096

struct reader {
    struct hk_json_scan scan;
    struct hk_result *items;
    size_t n, next;
    struct hk_result **index; /* by id; NULL: not made yet */
    struct hk_buf id;         /* of the present entry */
    bool no_memory;
};

/* ---- which item ---- */

static int compare(struct hk_str a, struct hk_str b)
{
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_items(const void *a, const void *b)
{
    return compare((*(struct hk_result *const *)a)->id, (*(struct hk_result *const *)b)->id);
}

static int compare_id(const void *id, const void *item)
{
    return compare(*(const struct hk_str *)id, (*(struct hk_result *const *)item)->id);
}

static struct hk_result *look_up(struct reader *r, struct hk_str id)
{
    if (!r->index) {
        r->index = hk_mem_alloc(r->n * sizeof(struct hk_result *));
        r->no_memory = !r->index;
        if (!r->index)
            return NULL;
        for (size_t i = 0; i < r->n; i++)
            r->index[i] = &r->items[i];
        qsort(r->index, r->n, sizeof r->index[0], compare_items);
    }
    struct hk_result **found = bsearch(&id, r->index, r->n, sizeof r->index[0], compare_id);
    return found ? *found : NULL;
}

static struct hk_result *item_of(struct reader *r, struct hk_str id)
{
    struct hk_result *item =
        r->next < r->n && hk_str_eq(r->items[r->next].id, id) ? &r->items[r->next] : look_up(r, id);
    if (item)
        r->next = (size_t)(item - r->items) + 1;
    return item;
}

/* ---- one entry ---- */

/* Its members, as they stand there. */
struct entry {
    struct hk_scan_token id, status, retry_after;
    bool twice;
};

/* The value that begins now, to its end. */
static struct hk_scan_token take_value(struct reader *r)
{
    struct hk_scan_token value;
    enum hk_scan_kind kind = hk_scan_next(&r->scan, &value);
    if (kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY)
        (void)hk_scan_leave(&r->scan);
    return value;
}

static void take_member(struct reader *r, struct entry *e, struct hk_str key)
{
    const struct {
        const char *name;
        struct hk_scan_token *to;
    } members[] = {{"id", &e->id}, {"status", &e->status}, {"retry_after", &e->retry_after}};

    struct hk_scan_token value = take_value(r);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (!hk_scan_text_eq(key, hk_str_of(members[i].name)))
            continue;
        e->twice = e->twice || members[i].to->kind != HK_SCAN_END;
        *members[i].to = value;
    }
}

/* "422" of three digits, from 200 on: what comes before a final status decides nothing. */
static int status_of(const struct hk_scan_token *token)
{
    uint64_t status = 0;
    bool good = token->kind == HK_SCAN_NUMBER && token->integer && token->raw.len == 3 &&
                hk_parse_u64(token->raw, &status, NULL) == HK_OK && status >= 200;
    return good ? (int)status : 0;
}

/* Seconds as a number, a fraction of one rounded up; or a text, as it stands there. */
static void take_hint(struct hk_result *item, const struct hk_scan_token *token)
{
    size_t whole = 0;
    item->hint = (struct hk_str){NULL, 0};
    if (token->kind == HK_SCAN_STRING && !token->escaped && token->raw.len > 2)
        item->hint = (struct hk_str){token->raw.ptr + 1, token->raw.len - 2};
    if (token->kind != HK_SCAN_NUMBER)
        return;
    while (whole < token->raw.len && hk_ascii_isdigit(token->raw.ptr[whole]))
        whole++;
    uint64_t seconds = 0;
    bool exponent =
        memchr(token->raw.ptr, 'e', token->raw.len) || memchr(token->raw.ptr, 'E', token->raw.len);
    if (exponent || hk_parse_u64((struct hk_str){token->raw.ptr, whole}, &seconds, NULL) != HK_OK ||
        seconds == UINT64_MAX)
        return;
    seconds += whole < token->raw.len;
    int len = snprintf(item->number, sizeof item->number, "%llu", (unsigned long long)seconds);
    item->hint = (struct hk_str){item->number, (size_t)len};
}

static bool is_success(int status)
{
    return status / 100 == 2;
}

static void take_result(struct hk_result *item, const struct entry *e, struct hk_str text)
{
    int status = e->twice ? 0 : status_of(&e->status);
    bool seen = item->status || item->unclear;
    if (seen && (!item->status || !is_success(item->status))) /* the worse one stands */
        return;
    if (seen && is_success(status))
        return;
    item->status = status;
    item->unclear = !status;
    item->text = text;
    take_hint(item, &e->retry_after);
}

static struct hk_str id_text(struct reader *r, const struct hk_scan_token *id)
{
    if (!id->escaped)
        return (struct hk_str){id->raw.ptr + 1, id->raw.len - 2};
    hk_buf_reset(&r->id);
    (void)hk_scan_text(id->raw, &r->id);
    r->no_memory = r->no_memory || hk_buf_status(&r->id) == HK_NOMEM;
    return hk_buf_status(&r->id) == HK_OK ? hk_buf_str(&r->id) : (struct hk_str){"", 0};
}

/* Behind its opening bracket. */
static void read_entry(struct reader *r, size_t from)
{
    struct entry e = {.twice = false};
    struct hk_scan_token token;
    while (hk_scan_next(&r->scan, &token) == HK_SCAN_KEY)
        take_member(r, &e, token.raw);
    if (e.id.kind != HK_SCAN_STRING)
        return;
    struct hk_result *item = item_of(r, id_text(r, &e.id));
    if (item)
        take_result(item, &e, (struct hk_str){r->scan.text.ptr + from, r->scan.pos - from});
}

/* ---- the list ---- */

/* Behind its opening bracket. */
static void read_entries(struct reader *r)
{
    struct hk_scan_token token;
    enum hk_scan_kind kind = hk_scan_next(&r->scan, &token);
    for (; kind != HK_SCAN_ARRAY_END && kind != HK_SCAN_ERROR && kind != HK_SCAN_END;
         kind = hk_scan_next(&r->scan, &token)) {
        if (kind == HK_SCAN_OBJECT)
            read_entry(r, token.at);
        else if (kind == HK_SCAN_ARRAY)
            (void)hk_scan_leave(&r->scan);
    }
}

/* The member "results" of the object; one that stands twice, or is no array, is none that can be read. */
static enum hk_results read_object(struct reader *r)
{
    enum hk_results found = HK_RESULTS_NONE;
    struct hk_scan_token key, value;
    while (hk_scan_next(&r->scan, &key) == HK_SCAN_KEY) {
        if (!hk_scan_text_eq(key.raw, hk_str_of("results"))) {
            (void)take_value(r);
        } else if (found == HK_RESULTS_NONE && hk_scan_next(&r->scan, &value) == HK_SCAN_ARRAY) {
            found = HK_RESULTS_LIST;
            read_entries(r);
        } else {
            return HK_RESULTS_BROKEN;
        }
    }
    return found;
}

static enum hk_results read_checked(struct reader *r)
{
    struct hk_scan_token token;
    enum hk_scan_kind kind = hk_scan_next(&r->scan, &token);
    if (kind == HK_SCAN_OBJECT)
        return read_object(r);
    read_entries(r);
    return HK_RESULTS_LIST;
}

/* Of its text: behind blank space, and behind a mark of the byte order, which makes a list unreadable but no other text of it. */
static char first_of(struct hk_str body)
{
    static const char skipped[] = " \t\r\n\xef\xbb\xbf";
    size_t i = 0;
    while (i < body.len && memchr(skipped, body.ptr[i], sizeof skipped - 1))
        i++;
    return i < body.len ? body.ptr[i] : '\0';
}

enum hk_results hk_results_read(struct hk_str body, struct hk_result *items, size_t n)
{
    char first = first_of(body);
    for (size_t i = 0; i < n; i++) {
        items[i].status = 0;
        items[i].unclear = false;
        items[i].text = items[i].hint = (struct hk_str){"", 0};
    }
    if (first != '{' && first != '[')
        return HK_RESULTS_NONE;
    if (hk_scan_check(body, NULL) != HK_OK)
        return HK_RESULTS_BROKEN;
    struct reader r = {.items = items, .n = n};
    hk_buf_init(&r.id, ID_MAX);
    hk_scan_init(&r.scan, body);
    enum hk_results results = read_checked(&r);
    hk_mem_free(r.index);
    hk_buf_fini(&r.id);
    return r.no_memory ? HK_RESULTS_NOMEM : results;
}
