/* SPDX-License-Identifier: Apache-2.0 */
/* From a body to one line: the words are found (answer_find.c), what masks hide is taken out, and what is left is made fit to be
 * shown. In this order: a masked value is looked for in the bytes that the receiver wrote, not in what a line makes of them. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"
#include "payload/answer.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS    "\xe2\x80\xa6"

enum {
    TEXT_MAX = 4 * HK_ANSWER_READ, /* words, and what masks make of them */
    BAD_SHARE = 4                  /* one part in so many may be no UTF-8 */
};

struct line {
    struct hk_buf *out;
    size_t start, whole; /* where it begins; where it ends if it must be cut now */
    size_t chars, bad;
    bool blank; /* stands before what comes next */
    bool full;
};

static void put_char(struct line *l, const char *bytes, size_t n)
{
    size_t len = l->out->len - l->start, most = HK_ANSWER_WORDS - strlen(ELLIPSIS);
    if (len <= most)
        l->whole = l->out->len;
    l->full = len + l->blank + n > HK_ANSWER_WORDS;
    if (l->full)
        return;
    if (l->blank)
        (void)hk_buf_addc(l->out, ' ');
    (void)hk_buf_add(l->out, bytes, n);
    l->blank = false;
    l->chars++;
}

static void put_next(struct line *l, struct hk_str rest, size_t *taken)
{
    uint32_t c;
    *taken = hk_utf8_next(rest, &c);
    if (c == HK_UTF8_BAD) {
        l->bad++;
        put_char(l, REPLACEMENT, strlen(REPLACEMENT));
    } else if (c <= ' ' || (c >= 0x7f && c <= 0x9f) || c == 0xa0 || c == 0x2028 || c == 0x2029 ||
               c == 0x3000) {
        l->blank = l->out->len > l->start;
    } else if (!hk_utf8_is_unruly(c)) {
        put_char(l, rest.ptr, *taken);
    }
}

enum hk_code hk_answer_line(struct hk_str words, struct hk_buf *out)
{
    struct line l = {.out = out, .start = out->len, .whole = out->len};
    size_t taken = 0;
    for (size_t at = 0; at < words.len && !l.full; at += taken)
        put_next(&l, (struct hk_str){words.ptr + at, words.len - at}, &taken);
    if (hk_buf_status(out) != HK_OK)
        return out->status;
    if (l.bad * BAD_SHARE > l.chars) {
        out->len = l.start;
    } else if (l.full) {
        out->len = l.whole;
        (void)hk_buf_adds(out, ELLIPSIS);
    }
    if (out->data)
        out->data[out->len] = '\0';
    return hk_buf_status(out);
}

/* HK_OK with nothing in `out`: the receiver said nothing. */
static enum hk_code masked_line(const struct hk_masks *masks, const struct hk_mask_about *about,
                                struct hk_str body, struct hk_buf *out)
{
    struct hk_buf shown, words, masked;
    hk_buf_init(&shown, TEXT_MAX);
    hk_buf_init(&words, TEXT_MAX);
    hk_buf_init(&masked, TEXT_MAX);
    body.len = body.len < HK_ANSWER_READ ? body.len : HK_ANSWER_READ;
    enum hk_code rc = hk_mask_answer(masks, about->event_type, body, &shown);
    if (rc == HK_OK)
        rc = hk_answer_find(hk_buf_str(&shown), &words);
    if (rc == HK_OK)
        rc = hk_mask_about(masks, about, hk_buf_str(&words), &masked);
    if (rc == HK_OK)
        rc = hk_answer_line(hk_buf_str(&masked), out);
    hk_buf_fini(&shown);
    hk_buf_fini(&words);
    hk_buf_fini(&masked);
    return rc;
}

struct hk_str hk_answer_error(const struct hk_masks *masks, const struct hk_mask_about *about, int status,
                              struct hk_str body, char out[HK_ANSWER_ERROR_MAX])
{
    struct hk_buf line;
    hk_buf_init(&line, HK_ANSWER_WORDS + 1);
    bool said = body.len && masked_line(masks, about, body, &line) == HK_OK && line.len;
    int len = said ? snprintf(out, HK_ANSWER_ERROR_MAX, "HTTP %d: %s", status, hk_buf_cstr(&line))
                   : snprintf(out, HK_ANSWER_ERROR_MAX, HK_ANSWER_SILENT "%d", status);
    hk_buf_fini(&line);
    return (struct hk_str){out, (size_t)len};
}

static int three_digits(struct hk_str s)
{
    int n = 0;
    for (size_t i = 0; i < 3; i++) {
        if (i >= s.len || s.ptr[i] < '0' || s.ptr[i] > '9')
            return 0;
        n = n * 10 + (s.ptr[i] - '0');
    }
    return s.len == 3 || s.ptr[3] < '0' || s.ptr[3] > '9' ? n : 0;
}

int hk_answer_status(struct hk_str cause, struct hk_str error)
{
    const struct {
        struct hk_str in, words;
    } places[] = {
        {cause, hk_str_of("HTTP_")}, {error, hk_str_of("HTTP ")}, {error, hk_str_of(HK_ANSWER_SILENT)}};

    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        size_t n = places[i].words.len;
        int status = places[i].in.len >= n && memcmp(places[i].in.ptr, places[i].words.ptr, n) == 0
                         ? three_digits((struct hk_str){places[i].in.ptr + n, places[i].in.len - n})
                         : 0;
        if (status)
            return status;
    }
    return 0;
}
