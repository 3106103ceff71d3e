/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that sees libyaml. Its events are turned into a tree with an explicit stack, because libyaml itself
 * bounds neither depth nor size, keeps duplicate keys, and happily returns an alias that contains itself. */
#include <string.h>

#include <yaml.h>

#include "base/str.h"
#include "base/utf8.h"
#include "config/yaml.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

struct level {
    struct hk_yaml_node *node;
    struct hk_yaml_node **tail; /* where the next entry is linked in */
    bool has_key;               /* mapping: the key is there, its value comes next */
    bool skip_key;
    struct hk_str key;
    struct hk_pos key_at;
};

struct builder {
    yaml_parser_t parser;
    struct hk_yaml *doc;
    struct hk_diags *diags;
    const char *file;
    struct hk_str text;
    size_t n_nodes;
    unsigned n_documents;
    unsigned depth;
    struct level levels[HK_YAML_DEPTH_MAX];
    bool ended;
    enum hk_code status; /* anything but HK_OK stops */
};

static struct hk_pos pos_of(yaml_mark_t mark)
{
    return (struct hk_pos){(uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

static void stop(struct builder *b, struct hk_pos at, const char *message)
{
    hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "%s", message);
    b->status = HK_INVALID;
}

/* ---- the bytes ---- */

bool hk_yaml_text_ok(struct hk_str s, size_t *out_bad)
{
    uint32_t c = 0;
    for (size_t i = 0; i < s.len;) {
        size_t len = hk_utf8_next((struct hk_str){s.ptr + i, s.len - i}, &c);
        if (c == 0 || c == HK_UTF8_BAD) {
            *out_bad = i;
            return false;
        }
        i += len;
    }
    return true;
}

static struct hk_pos pos_at_offset(struct hk_str text, size_t offset)
{
    struct hk_pos at = {1, 1};
    for (size_t i = 0; i < offset && i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool crlf = c == '\r' && i + 1 < text.len && text.ptr[i + 1] == '\n';
        if (c == '\n' || (c == '\r' && !crlf)) {
            at.line++;
            at.col = 1;
        } else if ((c & 0xc0) != 0x80 && !crlf) {
            at.col++;
        }
    }
    return at;
}

static bool starts_with(struct hk_str s, const char *prefix, size_t len)
{
    return s.len >= len && memcmp(s.ptr, prefix, len) == 0;
}

static void check_bytes(struct builder *b)
{
    size_t bad = 0;
    if (b->text.len > HK_YAML_BYTES_MAX)
        stop(b, (struct hk_pos){1, 1}, "the file is over 4 MiB");
    else if (starts_with(b->text, "\xff\xfe", 2) || starts_with(b->text, "\xfe\xff", 2))
        stop(b, (struct hk_pos){1, 1}, "the file is UTF-16: save it as UTF-8");
    else if (!hk_yaml_text_ok(b->text, &bad))
        stop(b, pos_at_offset(b->text, bad),
             b->text.ptr[bad] ? "invalid UTF-8" : "NUL byte (is the file UTF-16? Save it as UTF-8)");
}

/* What usually is behind it. Offsets count characters: close enough to look at bytes only when all before them is ASCII. */
static const char *hint_at(const struct builder *b, size_t offset)
{
    const char *context = b->parser.context;
    char at = offset < b->text.len ? b->text.ptr[offset] : '\0';
    if (at == '\t')
        return " (a tab: indent with spaces)";
    if (context && (strstr(context, "alias") || strstr(context, "anchor")))
        return " (put a text that begins with * or & in quotes)";
    if (at == '{' && offset && b->text.ptr[offset - 1] == '$')
        return " (inside { } and [ ] put ${…} in quotes)";
    return "";
}

static void report_parser_error(struct builder *b)
{
    const yaml_parser_t *p = &b->parser;
    if (p->error == YAML_MEMORY_ERROR) {
        b->status = HK_NOMEM;
        return;
    }
    const char *problem = p->problem ? p->problem : "cannot be read";
    struct hk_pos at = pos_of(p->problem_mark);
    size_t offset = p->problem_mark.index;
    if (p->error == YAML_READER_ERROR) { /* comes without a mark */
        offset = p->problem_offset;
        at = pos_at_offset(b->text, offset);
    }
    const char *hint = hint_at(b, offset);
    struct hk_pos from = pos_of(p->context_mark);
    b->status = HK_INVALID;
    if (p->context && p->error != YAML_READER_ERROR && (from.line != at.line || from.col != at.col))
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "invalid YAML: %s, %s that begins at %u:%u%s",
                     problem, p->context, (unsigned)from.line, (unsigned)from.col, hint);
    else
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "invalid YAML: %s%s", problem, hint);
}

/* ---- the tree ---- */

static struct hk_yaml_node *new_node(struct builder *b, enum hk_yaml_kind kind, struct hk_pos at)
{
    if (++b->n_nodes > HK_YAML_NODES_MAX) {
        stop(b, at, "more than 100000 values and keys");
        return NULL;
    }
    struct hk_yaml_node *node = hk_pool_alloc(&b->doc->arena, 1, sizeof *node);
    if (!node) {
        b->status = HK_NOMEM;
        return NULL;
    }
    node->kind = kind;
    node->at = at;
    struct level *top = b->depth ? &b->levels[b->depth - 1] : NULL;
    if (!top) {
        b->doc->root = node;
        return node;
    }
    *top->tail = node;
    top->tail = &node->next;
    top->node->n++;
    node->key = top->key;
    node->key_at = top->key_at;
    node->skip = top->skip_key;
    top->has_key = false;
    return node;
}

static bool wants_key(const struct builder *b)
{
    return b->depth && b->levels[b->depth - 1].node->kind == HK_YAML_MAPPING &&
           !b->levels[b->depth - 1].has_key;
}

static bool is_core_tag(const char *tag, enum hk_yaml_kind kind)
{
    static const char *const scalars[] = {"str", "int", "bool", "float", "null"};
    if (strcmp(tag, "!") == 0)
        return true;
    if (strncmp(tag, TAG_PREFIX, strlen(TAG_PREFIX)) != 0)
        return false;
    const char *name = tag + strlen(TAG_PREFIX);
    if (kind != HK_YAML_SCALAR)
        return strcmp(name, kind == HK_YAML_MAPPING ? "map" : "seq") == 0;
    for (size_t i = 0; i < sizeof scalars / sizeof scalars[0]; i++) {
        if (strcmp(name, scalars[i]) == 0)
            return true;
    }
    return false;
}

/* Reports what a node may not carry; false when it carries some of it. */
/* The offending text is not shown: a secret that begins with one of these characters looks just like that. */
static const char no_aliases[] =
    "anchors and aliases are not supported: write the value out, and put a text that begins with & or * in quotes";
static const char no_tags[] = "tags are not supported: put a text that begins with ! in quotes";

static bool check_properties(struct builder *b, const yaml_char_t *anchor, const yaml_char_t *tag,
                             enum hk_yaml_kind kind, struct hk_pos at)
{
    if (anchor) {
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "%s", no_aliases);
        return false;
    }
    if (tag && !is_core_tag((const char *)tag, kind)) {
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "%s", no_tags);
        return false;
    }
    return true;
}

static void on_alias(struct builder *b, const yaml_event_t *ev)
{
    struct hk_pos at = pos_of(ev->start_mark);
    hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "%s", no_aliases);
    if (wants_key(b))
        b->status = HK_INVALID;
    else
        (void)new_node(b, HK_YAML_BAD, at);
}

static void on_key(struct builder *b, struct hk_str text, bool plain, bool ok, struct hk_pos at)
{
    struct level *top = &b->levels[b->depth - 1];
    top->has_key = true;
    top->key_at = at;
    top->skip_key = !ok;
    b->n_nodes++;
    const char *wrong = NULL;
    if (memchr(text.ptr, '\0', text.len))
        wrong = "a key must not hold a NUL character";
    else if (text.len == 0)
        wrong = "empty key";
    else if (plain && text.len == 2 && memcmp(text.ptr, "<<", 2) == 0)
        wrong = "merge keys (<<) are not supported, write the values out";
    if (wrong) {
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "%s", wrong);
        top->skip_key = true;
    }
    top->key = (struct hk_str){hk_pool_copy_str(&b->doc->arena, text), text.len};
    if (!top->key.ptr)
        b->status = HK_NOMEM;
}

static void on_scalar(struct builder *b, const yaml_event_t *ev)
{
    struct hk_str text = {(const char *)ev->data.scalar.value, ev->data.scalar.length};
    struct hk_pos at = pos_of(ev->start_mark);
    bool plain = ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    bool ok = check_properties(b, ev->data.scalar.anchor, ev->data.scalar.tag, HK_YAML_SCALAR, at);
    if (wants_key(b)) {
        on_key(b, text, plain, ok, at);
        return;
    }
    if (ok && memchr(text.ptr, '\0', text.len)) {
        hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, at, "a value must not hold a NUL character");
        ok = false;
    }
    struct hk_yaml_node *node = new_node(b, ok ? HK_YAML_SCALAR : HK_YAML_BAD, at);
    if (!node)
        return;
    node->plain = plain;
    node->text = (struct hk_str){hk_pool_copy_str(&b->doc->arena, text), text.len};
    if (!node->text.ptr)
        b->status = HK_NOMEM;
}

static void on_start(struct builder *b, const yaml_event_t *ev, enum hk_yaml_kind kind)
{
    struct hk_pos at = pos_of(ev->start_mark);
    bool mapping = kind == HK_YAML_MAPPING;
    const yaml_char_t *anchor = mapping ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor;
    const yaml_char_t *tag = mapping ? ev->data.mapping_start.tag : ev->data.sequence_start.tag;
    if (b->depth == HK_YAML_DEPTH_MAX) {
        stop(b, at, "nested deeper than 32 levels");
        return;
    }
    if (wants_key(b)) {
        stop(b, at, "a key must be a plain text, not a list or a mapping");
        return;
    }
    bool ok = check_properties(b, anchor, tag, kind, at);
    struct hk_yaml_node *node = new_node(b, kind, at);
    if (!node)
        return;
    b->levels[b->depth++] = (struct level){.node = node, .tail = &node->first};
    if (!ok && node->key.ptr)
        node->skip = true;
}

/* ---- duplicate keys ---- */

static int compare_keys(const struct hk_yaml_node *a, const struct hk_yaml_node *b)
{
    size_t len = a->key.len < b->key.len ? a->key.len : b->key.len;
    int order = memcmp(a->key.ptr, b->key.ptr, len);
    if (order)
        return order;
    return (a->key.len > b->key.len) - (a->key.len < b->key.len);
}

/* `a` stands before `b` in the file, and stays so among equals. */
static struct hk_yaml_node *merge(struct hk_yaml_node *a, struct hk_yaml_node *b)
{
    struct hk_yaml_node *head = NULL;
    struct hk_yaml_node **tail = &head;
    while (a && b) {
        struct hk_yaml_node **from = compare_keys(a, b) <= 0 ? &a : &b;
        *tail = *from;
        tail = &(*from)->sorted;
        *from = (*from)->sorted;
    }
    *tail = a ? a : b;
    return head;
}

/* Sorting keeps a file of 50,000 keys from taking a billion comparisons. */
static struct hk_yaml_node *sort_keys(struct hk_yaml_node *first)
{
    struct hk_yaml_node *bins[32] = {NULL}; /* bin i: 2^i nodes, sorted */
    for (struct hk_yaml_node *node = first; node; node = node->next) {
        struct hk_yaml_node *run = node;
        run->sorted = NULL;
        size_t i = 0;
        for (; bins[i]; i++) {
            run = merge(bins[i], run);
            bins[i] = NULL;
        }
        bins[i] = run;
    }
    struct hk_yaml_node *all = NULL;
    for (size_t i = 0; i < 32; i++)
        all = merge(bins[i], all);
    return all;
}

static void check_duplicates(struct builder *b, const struct hk_yaml_node *mapping)
{
    const struct hk_yaml_node *original = sort_keys(mapping->first);
    for (struct hk_yaml_node *node = original ? original->sorted : NULL; node; node = node->sorted) {
        if (compare_keys(original, node) != 0) {
            original = node;
            continue;
        }
        char shown[HK_SHOW_MAX];
        if (!node->skip)
            hk_diags_add(b->diags, HK_SEVERITY_ERROR, b->file, node->key_at,
                         "duplicate key %s, first given at line %u", hk_show(node->key, shown),
                         (unsigned)original->key_at.line);
        node->skip = true;
    }
}

static void on_end(struct builder *b)
{
    const struct hk_yaml_node *node = b->levels[--b->depth].node;
    if (node->kind == HK_YAML_MAPPING)
        check_duplicates(b, node);
}

/* ---- putting it together ---- */

static void on_event(struct builder *b, const yaml_event_t *ev)
{
    switch (ev->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (b->n_documents++)
            stop(b, pos_of(ev->start_mark), "a second document: only one is read");
        break;
    case YAML_ALIAS_EVENT:
        on_alias(b, ev);
        break;
    case YAML_SCALAR_EVENT:
        on_scalar(b, ev);
        break;
    case YAML_SEQUENCE_START_EVENT:
        on_start(b, ev, HK_YAML_SEQUENCE);
        break;
    case YAML_MAPPING_START_EVENT:
        on_start(b, ev, HK_YAML_MAPPING);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        on_end(b);
        break;
    case YAML_STREAM_END_EVENT:
        b->ended = true;
        break;
    default: /* not our enum */
        break;
    }
}

static void run_parser(struct builder *b)
{
    if (!yaml_parser_initialize(&b->parser)) {
        b->status = HK_NOMEM;
        return;
    }
    yaml_parser_set_encoding(&b->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->parser, (const unsigned char *)b->text.ptr, b->text.len);
    while (b->status == HK_OK && !b->ended) {
        yaml_event_t ev;
        if (!yaml_parser_parse(&b->parser, &ev)) {
            report_parser_error(b);
            break;
        }
        on_event(b, &ev);
        yaml_event_delete(&ev);
    }
    yaml_parser_delete(&b->parser);
}

enum hk_code hk_yaml_parse(const char *text, size_t len, const char *file, struct hk_diags *diags,
                           struct hk_yaml *out_yaml)
{
    memset(out_yaml, 0, sizeof *out_yaml);
    struct builder b = {.doc = out_yaml, .diags = diags, .file = file, .text = {text, len}};
    if (starts_with(b.text, "\xef\xbb\xbf", 3)) /* else libyaml counts it as a column */
        b.text = (struct hk_str){text + 3, len - 3};
    if (!b.text.len)
        return HK_OK;
    check_bytes(&b);
    if (b.status == HK_OK)
        run_parser(&b);
    if (b.status != HK_OK)
        out_yaml->root = NULL;
    return diags->nomem ? HK_NOMEM : b.status;
}

void hk_yaml_fini(struct hk_yaml *yaml)
{
    hk_pool_wipe(&yaml->arena);
    yaml->root = NULL;
}

const struct hk_yaml_node *hk_yaml_get(const struct hk_yaml_node *node, const char *key)
{
    if (!node || node->kind != HK_YAML_MAPPING)
        return NULL;
    for (const struct hk_yaml_node *entry = node->first; entry; entry = entry->next) {
        if (!entry->skip && hk_str_eq(entry->key, hk_str_of(key)))
            return entry;
    }
    return NULL;
}

bool hk_yaml_is_null(const struct hk_yaml_node *node)
{
    if (!node)
        return true;
    if (node->kind != HK_YAML_SCALAR || !node->plain)
        return false;
    return node->text.len == 0 || hk_str_eq(node->text, hk_str_of("~")) ||
           hk_str_eq(node->text, hk_str_of("null"));
}
