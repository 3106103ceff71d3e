/* SPDX-License-Identifier: Apache-2.0 */
/* Reading paths, and following them. A path is one allocation; following them takes one small state per path, since the steps
 * that lead to where a scan stands are always the first ones of the path. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "base/utf8.h"
#include "payload/path.h"

enum step_kind {
    STEP_NAME = 0,
    STEP_INDEX,
    STEP_EACH
};

struct step {
    enum step_kind kind;
    struct hk_str name;
    uint64_t index;
};

struct hk_path {
    size_t n;
    struct step steps[]; /* names stand behind them */
};

/* ---- reading ---- */

struct parse {
    struct hk_str text;
    size_t pos;
    struct step steps[HK_PATH_STEPS_MAX];
    size_t n;
    char names[HK_PATH_TEXT_MAX];
    size_t used;
};

size_t hk_path_column(struct hk_str text, size_t pos)
{
    size_t n = 1;
    for (size_t i = 0; i < pos; i++)
        n += ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
    return n;
}

static enum hk_code refuse(const struct parse *p, size_t pos, const char *why, struct hk_err *err)
{
    return hk_err_set(err, HK_INVALID, "column %zu: %s", hk_path_column(p->text, pos), why);
}

static char peek(const struct parse *p)
{
    return p->pos < p->text.len ? p->text.ptr[p->pos] : '\0';
}

static void add_char(struct parse *p, char c)
{
    if (p->used < sizeof p->names) /* always: no name is longer than the text */
        p->names[p->used++] = c;
}

/* Ends an unquoted name. */
static bool is_special(char c)
{
    return (unsigned char)c <= ' ' || c == 0x7f || strchr(".[]\":\\*", c);
}

static enum hk_code quoted_name(struct parse *p, struct hk_err *err)
{
    size_t start = p->pos++;
    while (p->pos < p->text.len && peek(p) != '"') {
        if (peek(p) == '\\') {
            p->pos++;
            if (peek(p) != '"' && peek(p) != '\\')
                return refuse(p, p->pos - 1, "in a quoted name, \\ stands before \" or \\ only", err);
        }
        add_char(p, peek(p));
        p->pos++;
    }
    if (p->pos >= p->text.len)
        return refuse(p, start, "the quoted name does not end", err);
    p->pos++;
    return HK_OK;
}

static enum hk_code bare_name(struct parse *p, struct hk_err *err)
{
    size_t start = p->pos;
    while (p->pos < p->text.len && !is_special(peek(p)))
        add_char(p, p->text.ptr[p->pos++]);
    char c = peek(p);
    if (c == '*' || c == '\\' || (c == '"' && p->pos > start))
        return refuse(p, p->pos, "a name that holds *, \\ or \" stands in quotes; [*] is every element", err);
    if (p->pos == start)
        return refuse(p, start, "the name of a field is expected here", err);
    return HK_OK;
}

static enum hk_code push(struct parse *p, struct step step, size_t at, struct hk_err *err)
{
    if (p->n == HK_PATH_STEPS_MAX)
        return refuse(p, at, "the path has more than 32 steps", err);
    p->steps[p->n++] = step;
    return HK_OK;
}

static enum hk_code name_step(struct parse *p, struct hk_err *err)
{
    size_t at = p->pos, from = p->used;
    enum hk_code rc = peek(p) == '"' ? quoted_name(p, err) : bare_name(p, err);
    if (rc != HK_OK)
        return rc;
    return push(p, (struct step){STEP_NAME, {p->names + from, p->used - from}, 0}, at, err);
}

static enum hk_code bracket_step(struct parse *p, struct hk_err *err)
{
    struct step step = {.kind = STEP_EACH};
    size_t at = p->pos++, from = p->pos;
    while (p->pos < p->text.len && peek(p) != ']' && p->pos - from < 16)
        p->pos++;
    struct hk_str inside = {p->text.ptr + from, p->pos - from};
    if (p->pos - from == 16 && peek(p) != ']')
        return refuse(p, from, "a number from 0 on, or *, is expected in brackets", err);
    if (peek(p) != ']')
        return refuse(p, at, "the bracket does not end", err);
    p->pos++;
    if (!hk_str_eq(inside, hk_str_of("*"))) {
        step.kind = STEP_INDEX;
        if (hk_parse_u64(inside, &step.index, NULL) != HK_OK)
            return refuse(p, from, "a number from 0 on, or *, is expected in brackets", err);
    }
    return push(p, step, at, err);
}

static enum hk_code all_steps(struct parse *p, struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    size_t next = p->pos + 1;
    if (peek(p) == '$' && (next == p->text.len || is_special(p->text.ptr[next])))
        p->pos++;
    else if (peek(p) != '[')
        rc = name_step(p, err);
    while (rc == HK_OK && (peek(p) == '.' || peek(p) == '[')) {
        if (peek(p) == '[') {
            rc = bracket_step(p, err);
        } else {
            p->pos++;
            rc = name_step(p, err);
        }
    }
    return rc;
}

static struct hk_path *finish(const struct parse *p)
{
    struct hk_path *path = hk_mem_alloc(sizeof *path + p->n * sizeof p->steps[0] + p->used);
    if (!path)
        return NULL;
    char *names = (char *)(path->steps + p->n);
    memcpy(names, p->names, p->used);
    path->n = p->n;
    for (size_t i = 0; i < p->n; i++) {
        path->steps[i] = p->steps[i];
        if (p->steps[i].kind == STEP_NAME)
            path->steps[i].name.ptr = names + (p->steps[i].name.ptr - p->names);
    }
    return path;
}

enum hk_code hk_path_parse_at(struct hk_str text, size_t from, struct hk_path **out, size_t *out_end,
                              struct hk_err *err)
{
    const bool is_long = text.len - from > HK_PATH_TEXT_MAX;
    struct parse p = {.text = {text.ptr, is_long ? from + HK_PATH_TEXT_MAX : text.len}, .pos = from};
    enum hk_code rc = all_steps(&p, err);
    if (rc != HK_OK)
        return rc;
    if (is_long && p.pos == p.text.len)
        return hk_err_set(err, HK_INVALID, "column %zu: the path is longer than %d bytes",
                          hk_path_column(text, from), HK_PATH_TEXT_MAX);
    if (!hk_utf8_is_text((struct hk_str){text.ptr + from, p.pos - from}))
        return hk_err_set(err, HK_INVALID, "column %zu: the path is not UTF-8 text",
                          hk_path_column(text, from));
    struct hk_path *path = out ? finish(&p) : NULL;
    if (out && !path)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    if (out)
        *out = path;
    *out_end = p.pos;
    return HK_OK;
}

enum hk_code hk_path_parse(struct hk_str text, struct hk_path **out, struct hk_err *err)
{
    size_t end = 0;
    enum hk_code rc = hk_path_parse_at(text, 0, NULL, &end, err);
    if (rc != HK_OK)
        return rc;
    if (end < text.len)
        return hk_err_set(
            err, HK_INVALID,
            "column %zu: a dot or [ is expected here; a name that holds blanks or any of . [ ] : "
            "stands in quotes",
            hk_path_column(text, end));
    return out ? hk_path_parse_at(text, 0, out, &end, err) : HK_OK;
}

void hk_path_free(struct hk_path *path)
{
    hk_mem_free(path);
}

/* ---- writing ---- */

/* Text into the caller's room: what does not fit any more is left out, and `cut` says so. */
struct text {
    char *out;
    size_t room, len; /* terminator included; without */
    bool cut;
};

static void put(struct text *t, const char *bytes, size_t n)
{
    t->cut = t->cut || n >= t->room - t->len;
    if (t->cut)
        return;
    memcpy(t->out + t->len, bytes, n);
    t->len += n;
    t->out[t->len] = '\0';
}

static bool needs_quotes(struct hk_str name)
{
    if (!name.len || hk_str_eq(name, hk_str_of("$")))
        return true;
    for (size_t i = 0; i < name.len; i++) {
        if (is_special(name.ptr[i]))
            return true;
    }
    return false;
}

static void put_name(struct text *t, struct hk_str name)
{
    if (!needs_quotes(name)) {
        put(t, name.ptr, name.len);
        return;
    }
    put(t, "\"", 1);
    for (size_t i = 0; i < name.len; i++) {
        if (name.ptr[i] == '"' || name.ptr[i] == '\\')
            put(t, "\\", 1);
        put(t, &name.ptr[i], 1);
    }
    put(t, "\"", 1);
}

static void put_step(struct text *t, const struct step *step, bool dot)
{
    char number[32];
    switch (step->kind) {
    case STEP_NAME:
        put(t, ".", dot);
        put_name(t, step->name);
        break;
    case STEP_INDEX:
        put(t, number, (size_t)snprintf(number, sizeof number, "[%" PRIu64 "]", step->index));
        break;
    case STEP_EACH:
        put(t, "[*]", 3);
        break;
    }
}

enum {
    WRITTEN_MAX = 2 * HK_PATH_TEXT_MAX + HK_PATH_STEPS_MAX * 24 /* every byte escaped, every number long */
};

static bool may_be_same(const struct step *a, const struct step *b)
{
    if (a->kind == STEP_NAME || b->kind == STEP_NAME)
        return a->kind == b->kind && hk_str_eq(a->name, b->name);
    return a->kind == STEP_EACH || b->kind == STEP_EACH || a->index == b->index;
}

bool hk_path_covers(const struct hk_path *outer, const struct hk_path *inner)
{
    for (size_t i = 0; i < outer->n && i < inner->n; i++)
        if (!may_be_same(&outer->steps[i], &inner->steps[i]))
            return false;
    return outer->n <= inner->n;
}

void hk_path_text(const struct hk_path *path, struct hk_buf *out)
{
    char room[WRITTEN_MAX];
    struct text t = {.out = room, .room = sizeof room};
    if (!path->n)
        put(&t, "$", 1);
    for (size_t i = 0; i < path->n; i++)
        put_step(&t, &path->steps[i], i > 0);
    hk_buf_add(out, room, t.len);
}

/* ---- following ---- */

void hk_path_walk_init(struct hk_path_walk *walk, struct hk_str text, const struct hk_path *const *paths,
                       struct hk_path_state *states, size_t n)
{
    *walk = (struct hk_path_walk){.paths = paths, .states = states, .n = n};
    hk_scan_init(&walk->scan, text);
    for (size_t i = 0; i < n; i++) {
        states[i] = (struct hk_path_state){0};
        walk->longest = paths[i]->n > walk->longest ? (unsigned)paths[i]->n : walk->longest;
    }
}

static bool step_fits(const struct hk_path_walk *walk, const struct step *step, unsigned depth, bool object)
{
    switch (step->kind) {
    case STEP_NAME:
        return object && hk_scan_text_eq(walk->key.raw, step->name);
    case STEP_INDEX:
        return !object && step->index == walk->count[depth] - 1;
    case STEP_EACH:
        return !object;
    }
    return false;
}

static void flag(struct hk_path_walk *walk, size_t i, uint8_t bit, unsigned found)
{
    walk->states[i].flags = bit;
    walk->found = found;
    walk->flagged = true;
}

/* A value in the container at `depth` (0: the whole text), which is an object or not. */
static void on_value(struct hk_path_walk *walk, enum hk_scan_kind kind, unsigned depth, bool object)
{
    if (depth > walk->longest)
        return;
    if (depth && !object)
        walk->count[depth]++;
    for (size_t i = 0; i < walk->n; i++) {
        const struct hk_path *path = walk->paths[i];
        struct hk_path_state *state = &walk->states[i];
        if (depth && (depth > path->n || state->matched != depth - 1 ||
                      !step_fits(walk, &path->steps[depth - 1], depth, object)))
            continue;
        if (depth)
            state->seen |= UINT32_C(1) << (depth - 1);
        if (path->n == depth) {
            flag(walk, i, HK_PATH_HIT, depth);
        } else if (kind == HK_SCAN_OBJECT || kind == HK_SCAN_ARRAY) {
            state->matched = (uint8_t)depth;
            state->seen &= ~(UINT32_C(1) << depth);
        } else {
            flag(walk, i, HK_PATH_MISS, depth);
        }
    }
    if (depth < walk->longest && kind == HK_SCAN_ARRAY)
        walk->count[depth + 1] = 0;
}

/* The container at `depth` has ended: paths that led into it are back where they were. */
static void on_end(struct hk_path_walk *walk, enum hk_scan_kind kind, unsigned depth, bool tell)
{
    unsigned k = depth - 1;
    if (k >= walk->longest)
        return;
    for (size_t i = 0; i < walk->n; i++) {
        const struct hk_path *path = walk->paths[i];
        struct hk_path_state *state = &walk->states[i];
        if (k >= path->n || state->matched != k)
            continue;
        bool each = path->steps[k].kind == STEP_EACH && kind == HK_SCAN_ARRAY_END;
        if (tell && !each && !(state->seen >> k & 1u))
            flag(walk, i, HK_PATH_MISS, k);
        state->matched = k ? (uint8_t)(k - 1) : 0;
    }
}

static void clear_flags(struct hk_path_walk *walk)
{
    for (size_t i = 0; walk->flagged && i < walk->n; i++)
        walk->states[i].flags = 0;
    walk->flagged = false;
}

enum hk_scan_kind hk_path_walk_next(struct hk_path_walk *walk, struct hk_scan_token *out)
{
    clear_flags(walk);
    for (;;) {
        unsigned depth = walk->scan.depth;
        bool object = hk_scan_in_object(&walk->scan);
        enum hk_scan_kind kind = hk_scan_next(&walk->scan, out);
        if (kind == HK_SCAN_END || kind == HK_SCAN_ERROR)
            return kind;
        if (kind == HK_SCAN_KEY)
            walk->key = *out;
        else if (kind == HK_SCAN_OBJECT_END || kind == HK_SCAN_ARRAY_END)
            on_end(walk, kind, depth, true);
        else
            on_value(walk, kind, depth, object);
        if (walk->flagged)
            return kind;
    }
}

bool hk_path_walk_hit(const struct hk_path_walk *walk)
{
    for (size_t i = 0; walk->flagged && i < walk->n; i++) {
        if (walk->states[i].flags & HK_PATH_HIT)
            return true;
    }
    return false;
}

bool hk_path_walk_leave(struct hk_path_walk *walk, size_t *out_end)
{
    unsigned depth = walk->scan.depth;
    if (!hk_scan_leave(&walk->scan))
        return false;
    on_end(walk, HK_SCAN_OBJECT_END, depth, false);
    *out_end = walk->scan.pos;
    return true;
}

void hk_path_walk_where(const struct hk_path_walk *walk, size_t i, char *out, size_t room)
{
    static const char more[] = "…";
    const struct hk_path *path = walk->paths[i];
    struct text t = {.out = out, .room = room - (sizeof more - 1)};
    out[0] = '\0';
    put(&t, "$", 1);
    for (size_t k = 0; k < path->n; k++) {
        struct step step = path->steps[k];
        if (step.kind == STEP_EACH && k < walk->found) {
            step.kind = STEP_INDEX;
            step.index = walk->count[k + 1] - 1;
        }
        put_step(&t, &step, true);
    }
    if (t.cut)
        memcpy(out + t.len, more, sizeof more);
}
