/* SPDX-License-Identifier: Apache-2.0 */
/* Myers' algorithm on lines (An O(ND) Difference Algorithm, 1986): forward, all rounds kept, at most ROUNDS_MAX of them. */
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "payload/diff.h"
#include "payload/pretty.h"

enum {
    LINES_MAX = 200000, /* 5 MB a side */
    ROUNDS_MAX = 500    /* lines that differ: 1 MB, and 0.1 s where there are very many lines */
};

#define PRETTY_MAX ((size_t)256 << 20)

struct line {
    struct hk_str text; /* with its line feed */
    uint64_t hash;
};

struct side {
    struct line *lines;
    size_t n;
    char *changed; /* per line: it is only on this side */
};

struct diff {
    struct side a, b;
    size_t from;     /* lines at the start that are the same */
    size_t a_n, b_n; /* lines behind those and before what is the same at the end */
    int *rounds;     /* furthest x per diagonal, round after round */
};

/* ---- lines ---- */

static size_t count_lines(struct hk_str text)
{
    size_t n = 0;
    if (!text.len) /* it may be NULL */
        return 0;
    for (const char *p = text.ptr, *end = p + text.len; p < end; n++) {
        const char *lf = memchr(p, '\n', (size_t)(end - p));
        p = lf ? lf + 1 : end;
    }
    return n;
}

static uint64_t hash_of(struct hk_str s)
{
    uint64_t h = UINT64_C(14695981039346656037); /* FNV-1a */
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * UINT64_C(1099511628211);
    return h;
}

static bool split(struct side *side, struct hk_str text, size_t n)
{
    side->n = n;
    side->lines = hk_mem_zalloc(side->n, sizeof side->lines[0]);
    side->changed = hk_mem_zalloc(side->n, 1);
    if (!side->lines || !side->changed)
        return false;
    for (size_t i = 0; i < side->n; i++) {
        const char *lf = memchr(text.ptr, '\n', text.len);
        size_t len = lf ? (size_t)(lf - text.ptr) + 1 : text.len;
        side->lines[i].text = (struct hk_str){text.ptr, len};
        side->lines[i].hash = hash_of(side->lines[i].text);
        text = (struct hk_str){text.ptr + len, text.len - len};
    }
    return true;
}

static bool same(const struct diff *d, size_t i, size_t j)
{
    const struct line *x = &d->a.lines[i], *y = &d->b.lines[j];
    return x->hash == y->hash && hk_str_eq(x->text, y->text);
}

static void trim(struct diff *d)
{
    size_t a = d->a.n, b = d->b.n;
    while (d->from < a && d->from < b && same(d, d->from, d->from))
        d->from++;
    while (a > d->from && b > d->from && same(d, a - 1, b - 1)) {
        a--;
        b--;
    }
    d->a_n = a - d->from;
    d->b_n = b - d->from;
}

/* ---- Myers ---- */

/* Round r holds 2r + 1 diagonals, k = -r .. r; every second is used. */
static int *round_at(const struct diff *d, int r)
{
    return d->rounds + (size_t)r * (size_t)r + (size_t)r;
}

/* Does the best way to diagonal k in round r come from above (an inserted line)? */
static bool from_above(const int *before, int k, int r)
{
    return k == -r || (k != r && before[k - 1] < before[k + 1]);
}

static int furthest(const struct diff *d, int k, int r)
{
    const int *before = r ? round_at(d, r - 1) : NULL;
    int x = !before ? 0 : from_above(before, k, r) ? before[k + 1] : before[k - 1] + 1;
    while ((size_t)x < d->a_n && x - k >= 0 && (size_t)(x - k) < d->b_n &&
           same(d, d->from + (size_t)x, d->from + (size_t)(x - k)))
        x++;
    return x;
}

/* The number of rounds until the end is reached; -1: too many. */
static int search(const struct diff *d, int most)
{
    const int delta = (int)d->a_n - (int)d->b_n;
    for (int r = 0; r <= most; r++) {
        int *now = round_at(d, r);
        for (int k = -r; k <= r; k += 2) {
            now[k] = furthest(d, k, r);
            if (k == delta && (size_t)now[k] >= d->a_n)
                return r;
        }
    }
    return -1;
}

/* Walks back from the end and marks the lines that were removed or added. */
static void mark(struct diff *d, int r)
{
    int k = (int)d->a_n - (int)d->b_n;
    for (; r > 0; r--) {
        const int *before = round_at(d, r - 1);
        bool above = from_above(before, k, r);
        k += above ? 1 : -1;
        int x = before[k], y = x - k;
        if (above)
            d->b.changed[d->from + (size_t)y] = 1;
        else
            d->a.changed[d->from + (size_t)x] = 1;
    }
}

/* False: out of memory. */
static bool compare(struct diff *d)
{
    const size_t lines = d->a_n + d->b_n; /* more rounds are never needed */
    const int most = lines < ROUNDS_MAX ? (int)lines : ROUNDS_MAX;
    int rounds = -1;
    if (d->a_n && d->b_n) {
        d->rounds = hk_mem_alloc((size_t)(most + 1) * (size_t)(most + 1) * sizeof d->rounds[0]);
        if (!d->rounds)
            return false;
        rounds = search(d, most);
    }
    if (rounds >= 0) {
        mark(d, rounds);
    } else {
        memset(d->a.changed + d->from, 1, d->a_n);
        memset(d->b.changed + d->from, 1, d->b_n);
    }
    return true;
}

/* ---- writing ---- */

/* Controls and marks that turn the direction of writing. */
static bool is_harmful(uint32_t c)
{
    return (c < 0x20 && c != '\t') || (c >= 0x7f && c < 0xa0) || c == HK_UTF8_BAD || c == 0x61c ||
           (c >= 0x200e && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

static void write_line(char sign, struct hk_str text, bool tell_end, struct hk_buf *out)
{
    bool ended = text.len && text.ptr[text.len - 1] == '\n';
    text.len -= ended;
    hk_buf_addc(out, sign);
    while (text.len) {
        uint32_t c = 0;
        size_t n = hk_utf8_next(text, &c);
        if (is_harmful(c))
            hk_buf_addc(out, '?');
        else
            hk_buf_add(out, text.ptr, n);
        text = (struct hk_str){text.ptr + n, text.len - n};
    }
    hk_buf_addc(out, '\n');
    if (!ended && tell_end)
        hk_buf_adds(out, "\\ no line feed at the end\n");
}

struct hunk {
    size_t a, b, a_end, b_end;
};

static bool is_changed(const struct side *side, size_t i)
{
    return i < side->n && side->changed[i];
}

/* The next hunk from (i, j) on, with its context. False: there is none. */
static bool next_hunk(const struct diff *d, size_t i, size_t j, unsigned context, struct hunk *out)
{
    size_t begin = i, unchanged = 0;
    while (i < d->a.n && j < d->b.n && !is_changed(&d->a, i) && !is_changed(&d->b, j)) {
        i++;
        j++;
    }
    if (i == d->a.n && j == d->b.n)
        return false;
    size_t back = i - begin < context ? i - begin : context;
    *out = (struct hunk){.a = i - back, .b = j - back};
    while (i < d->a.n || j < d->b.n) {
        bool removed = is_changed(&d->a, i), added = is_changed(&d->b, j);
        if (!removed && !added && ++unchanged > (size_t)context * 2)
            break;
        if (removed || added)
            unchanged = 0;
        i += removed || !added;
        j += !removed;
    }
    size_t over = unchanged > (size_t)context * 2 ? unchanged - 1 : unchanged;
    over -= over < context ? over : context;
    out->a_end = i - over;
    out->b_end = j - over;
    return true;
}

static void write_hunk(const struct diff *d, const struct hunk *h, bool tell_end, struct hk_buf *out)
{
    size_t i = h->a, j = h->b, a_n = h->a_end - i, b_n = h->b_end - j;
    hk_buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", i + (a_n > 0), a_n, j + (b_n > 0), b_n);
    while (i < h->a_end || j < h->b_end) {
        if (is_changed(&d->a, i)) {
            write_line('-', d->a.lines[i++].text, tell_end, out);
        } else if (is_changed(&d->b, j)) {
            write_line('+', d->b.lines[j++].text, tell_end, out);
        } else {
            write_line(' ', d->a.lines[i++].text, false, out);
            j++;
        }
    }
}

static bool ends_with_lf(struct hk_str s)
{
    return s.len && s.ptr[s.len - 1] == '\n';
}

static void write_all(char sign, struct hk_str text, struct hk_buf *out)
{
    while (text.len && out->status == HK_OK) {
        const char *lf = memchr(text.ptr, '\n', text.len);
        size_t len = lf ? (size_t)(lf - text.ptr) + 1 : text.len;
        write_line(sign, (struct hk_str){text.ptr, len}, false, out);
        text = (struct hk_str){text.ptr + len, text.len - len};
    }
}

static enum hk_code write_replaced(struct hk_buf *out, struct hk_str before, struct hk_str after, size_t a_n,
                                   size_t b_n)
{
    hk_buf_addf(out, "@@ -%d,%zu +%d,%zu @@\n", a_n > 0, a_n, b_n > 0, b_n);
    write_all('-', before, out);
    write_all('+', after, out);
    return out->status;
}

static enum hk_code write_diff(struct hk_buf *out, struct hk_str before, struct hk_str after,
                               unsigned context)
{
    const size_t a_n = count_lines(before), b_n = count_lines(after);
    if (a_n > LINES_MAX || b_n > LINES_MAX)
        return write_replaced(out, before, after, a_n, b_n);
    struct diff d = {.from = 0};
    struct hunk hunk = {0, 0, 0, 0};
    bool ok = split(&d.a, before, a_n) && split(&d.b, after, b_n);
    if (ok) {
        trim(&d);
        ok = compare(&d);
    }
    bool tell_end = ends_with_lf(before) != ends_with_lf(after);
    while (ok && next_hunk(&d, hunk.a_end, hunk.b_end, context, &hunk))
        write_hunk(&d, &hunk, tell_end, out);
    hk_mem_free(d.rounds);
    hk_mem_free(d.a.lines);
    hk_mem_free(d.a.changed);
    hk_mem_free(d.b.lines);
    hk_mem_free(d.b.changed);
    if (!ok && out->status == HK_OK)
        out->status = HK_NOMEM;
    return out->status;
}

/* ---- JSON on one line ---- */

static bool is_one_line(struct hk_str s)
{
    const char *lf = s.len ? memchr(s.ptr, '\n', s.len) : NULL;
    return !lf || lf == s.ptr + s.len - 1;
}

/* Lays both out where that helps. HK_INVALID, HK_TOOBIG: they are compared as they are. */
static enum hk_code lay_out(struct hk_str before, struct hk_str after, struct hk_buf *a, struct hk_buf *b)
{
    if (!is_one_line(before) && !is_one_line(after))
        return HK_INVALID;
    enum hk_code rc = hk_pretty_write(before, a);
    return rc == HK_OK ? hk_pretty_write(after, b) : rc;
}

enum hk_code hk_diff_write(struct hk_buf *out, struct hk_str before, struct hk_str after, unsigned context)
{
    struct hk_buf a, b;
    if (hk_str_eq(before, after))
        return out->status;
    hk_buf_init(&a, PRETTY_MAX);
    hk_buf_init(&b, PRETTY_MAX);
    enum hk_code rc = lay_out(before, after, &a, &b);
    if (rc == HK_NOMEM)
        rc = out->status = out->status == HK_OK ? rc : out->status;
    else if (rc != HK_OK)
        rc = write_diff(out, before, after, context);
    else if (hk_str_eq(hk_buf_str(&a), hk_buf_str(&b)))
        rc = hk_buf_adds(out, "(only white space differs)\n");
    else
        rc = write_diff(out, hk_buf_str(&a), hk_buf_str(&b), context);
    hk_buf_fini(&a);
    hk_buf_fini(&b);
    return rc;
}
