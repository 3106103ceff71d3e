/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "sink/redis/wire.h"

enum {
    DEPTH_MAX = 8,
    ITEMS_MAX = 1024
};

static const char too_long[] = "the server sends a reply that is too long";
static const char no_resp[] = "the server says something other than RESP";

static bool find_line(struct hk_str in, struct hk_str *out)
{
    const char *end = in.len ? memchr(in.ptr, '\n', in.len) : NULL;
    size_t len = end ? (size_t)(end - in.ptr) : 0;
    if (!end || !len || in.ptr[len - 1] != '\r')
        return false;
    *out = (struct hk_str){in.ptr, len - 1};
    return true;
}

/* Behind the line of "$5": the text itself. */
static enum hk_resp_next read_text(struct hk_str in, int64_t len, struct hk_resp *out, size_t *used)
{
    size_t n = (size_t)len;
    if (in.len - *used < n + 2)
        return HK_RESP_MORE;
    *out = (struct hk_resp){.kind = HK_RESP_TEXT, .text = {in.ptr + *used, n}};
    *used += n + 2;
    return memcmp(out->text.ptr + n, "\r\n", 2) == 0 ? HK_RESP_WHOLE : HK_RESP_WRONG;
}

/* Behind a mark whose line holds a number. */
static enum hk_resp_next read_counted(struct hk_str in, char mark, struct hk_resp *out, size_t *used,
                                      int64_t *out_items)
{
    int64_t n = 0, most = mark == '*' ? ITEMS_MAX : (int64_t)HK_RESP_MAX;
    if (hk_parse_i64(out->text, &n, NULL) != HK_OK)
        return HK_RESP_WRONG;
    if (mark == ':')
        return HK_RESP_WHOLE;
    if (n < -1 || n > most)
        return HK_RESP_WRONG;
    if (mark == '$' && n >= 0)
        return read_text(in, n, out, used);
    *out = (struct hk_resp){.kind = n < 0 ? HK_RESP_NIL : HK_RESP_LIST, .text = {"", 0}};
    *out_items = n < 0 ? 0 : n;
    return HK_RESP_WHOLE;
}

/* One unit: a line, or a text with its length. `out_items`: so many units follow that belong to it. */
static enum hk_resp_next read_unit(struct hk_str in, struct hk_resp *out, size_t *out_used,
                                   int64_t *out_items, const char **why)
{
    static const char marks[] = "+-:$*";
    const char *mark = in.len && in.ptr[0] ? strchr(marks, in.ptr[0]) : NULL;
    struct hk_str line;
    *out_items = 0;
    if (!in.len)
        return HK_RESP_MORE;
    *why = no_resp;
    if (!mark)
        return HK_RESP_WRONG;
    if (!find_line(in, &line)) {
        *why = too_long;
        return in.len > HK_RESP_MAX ? HK_RESP_WRONG : HK_RESP_MORE;
    }
    *out_used = line.len + 2;
    *out = (struct hk_resp){.kind = (enum hk_resp_kind)(mark - marks), .text = {line.ptr + 1, line.len - 1}};
    return *mark == '+' || *mark == '-' ? HK_RESP_WHOLE : read_counted(in, *mark, out, out_used, out_items);
}

enum hk_resp_next hk_resp_read(struct hk_str in, struct hk_resp *out, size_t *out_used, const char **out_why)
{
    int64_t left[DEPTH_MAX] = {1};
    size_t depth = 0, at = 0, used = 0;
    struct hk_resp first, unit;
    for (bool is_first = true;; is_first = false) {
        int64_t items = 0;
        enum hk_resp_next next =
            read_unit((struct hk_str){in.ptr + at, in.len - at}, &unit, &used, &items, out_why);
        if (next != HK_RESP_WHOLE)
            return next;
        at += used;
        if (is_first)
            first = unit;
        left[depth]--;
        if (items && depth + 1 == DEPTH_MAX) {
            *out_why = no_resp;
            return HK_RESP_WRONG;
        }
        if (items)
            left[++depth] = items;
        while (depth && !left[depth])
            depth--;
        if (at > 4 * (size_t)HK_RESP_MAX) {
            *out_why = too_long;
            return HK_RESP_WRONG;
        }
        if (!left[depth])
            break;
    }
    *out = first;
    *out_used = at;
    return HK_RESP_WHOLE;
}

bool hk_resp_moved(struct hk_str error, struct hk_str *out_server, bool *out_ask)
{
    struct hk_str rest = error, word = hk_str_cut(&rest, ' ');
    *out_ask = hk_str_eq(word, hk_str_of("ASK"));
    if ((!*out_ask && !hk_str_eq(word, hk_str_of("MOVED"))) || !rest.ptr)
        return false;
    (void)hk_str_cut(&rest, ' '); /* the slot */
    *out_server = rest;
    return rest.ptr && rest.len > 0;
}

bool hk_resp_entry(struct hk_str text, int64_t *out_ms)
{
    uint64_t ms = 0, n = 0;
    struct hk_str rest = text, first = hk_str_cut(&rest, '-');
    if (!rest.ptr || hk_parse_u64(first, &ms, NULL) != HK_OK || hk_parse_u64(rest, &n, NULL) != HK_OK ||
        ms > INT64_MAX)
        return false;
    *out_ms = (int64_t)ms;
    return true;
}

void hk_resp_begin(struct hk_buf *out, size_t n_words)
{
    (void)hk_buf_addf(out, "*%zu\r\n", n_words);
}

void hk_resp_word(struct hk_buf *out, struct hk_str word)
{
    (void)hk_buf_addf(out, "$%zu\r\n", word.len);
    (void)hk_buf_add(out, word.ptr, word.len);
    (void)hk_buf_add(out, "\r\n", 2);
}

void hk_resp_text(struct hk_buf *out, const char *word)
{
    hk_resp_word(out, hk_str_of(word));
}

void hk_resp_u64(struct hk_buf *out, uint64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%" PRIu64, number);
    hk_resp_word(out, (struct hk_str){text, (size_t)len});
}
