/* SPDX-License-Identifier: Apache-2.0 */
/* The walk itself: keys, sections, maps and lists. Scalars are scalar.c. Recursion is bounded by the tree's depth. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "config/tables.h"
#include "config/text.h"
#include "config/walk.h"

#define MESSAGE_MAX    600
#define CANDIDATES_MAX 256u /* a hint is not worth more comparisons */

/* ---- reporting ---- */

static void report(struct hk_walk *walk, enum hk_severity severity, struct hk_pos at, const char *fmt,
                   va_list ap) HK_PRINTF(4, 0);

static void report(struct hk_walk *walk, enum hk_severity severity, struct hk_pos at, const char *fmt,
                   va_list ap)
{
    char message[MESSAGE_MAX];
    (void)vsnprintf(message, sizeof message, fmt, ap);
    hk_diags_add(walk->diags, severity, walk->file, at, "%s", message);
}

void hk_walk_error(struct hk_walk *walk, struct hk_pos at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(walk, HK_SEVERITY_ERROR, at, fmt, ap);
    va_end(ap);
}

void hk_walk_warn(struct hk_walk *walk, struct hk_pos at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    report(walk, HK_SEVERITY_WARNING, at, fmt, ap);
    va_end(ap);
}

struct hk_pos hk_walk_at(const struct hk_walk *walk, const struct hk_yaml_node *node, const char *key)
{
    const struct hk_yaml_node *entry = hk_yaml_get(node, key);
    if (entry)
        return entry->at;
    return walk->depth ? walk->frames[walk->depth - 1].at : (struct hk_pos){1, 1};
}

bool hk_walk_failed(const struct hk_walk *walk)
{
    size_t before = walk->depth ? walk->frames[walk->depth - 1].errors : walk->errors_at_start;
    return walk->diags->errors > before || walk->status != HK_OK;
}

void hk_walk_done(struct hk_walk *walk, struct hk_buf *buf)
{
    if (hk_buf_status(buf) == HK_NOMEM)
        walk->status = HK_NOMEM;
    hk_buf_fini(buf);
}

void hk_walk_later(struct hk_walk *walk, enum hk_opt_ref ref, const struct hk_yaml_node *node,
                   const char *name, void *target)
{
    struct hk_pending *pending = hk_pool_alloc(walk->scratch, 1, sizeof *pending);
    if (!pending) {
        walk->status = HK_NOMEM;
        return;
    }
    *pending = (struct hk_pending){.ref = ref, .node = node, .name = name, .target = target};
    *walk->pending_tail = pending;
    walk->pending_tail = &pending->next;
}

const char *hk_walk_meant(struct hk_str wrong, const char *(*word)(const void *arg, size_t i),
                          const void *arg, char out[HK_MEANT_MAX])
{
    char text[64];
    const char *best = NULL;
    unsigned least = 99;
    out[0] = '\0';
    if (!hk_str_copy(text, sizeof text, wrong))
        return out;
    const char *candidate = NULL;
    for (size_t i = 0; i < CANDIDATES_MAX && (candidate = word(arg, i)) != NULL; i++) {
        unsigned distance = hk_str_distance(text, candidate);
        if (distance < least) {
            least = distance;
            best = candidate;
        }
    }
    /* a third of the letters wrong is still a slip; more is another word */
    if (best && least <= 1 + strlen(text) / 4 && least < strlen(text))
        (void)snprintf(out, HK_MEANT_MAX, "; did you mean \"%s\"?", best);
    return out;
}

/* ---- where we are ---- */

static void push(struct hk_walk *walk, struct hk_frame frame)
{
    assert(walk->depth < HK_COUNT(walk->frames));
    frame.errors = walk->diags->errors;
    walk->frames[walk->depth++] = frame;
}

static void add_item(struct hk_buf *out, const struct hk_frame *frame)
{
    char shown[HK_SHOW_MAX];
    if (frame->index)
        hk_buf_addf(out, "%s %zu", frame->item, frame->index);
    else
        hk_buf_addf(out, "%s %s", frame->item, hk_show(frame->key, shown));
}

/* Sections joined by dots, then what they are part of: "classes.auth of policy "orders"". */
static void describe(const struct hk_walk *walk, struct hk_buf *out)
{
    size_t end = walk->depth;
    while (end > 0) {
        size_t begin = end;
        while (begin > 0 && !walk->frames[begin - 1].item)
            begin--;
        for (size_t i = begin; i < end; i++) {
            hk_buf_adds(out, i > begin ? "." : "");
            hk_buf_add(out, walk->frames[i].key.ptr, walk->frames[i].key.len);
        }
        if (begin > 0) {
            hk_buf_adds(out, begin < end ? " of " : "");
            add_item(out, &walk->frames[begin - 1]);
            hk_buf_adds(out, begin > 1 ? " of " : "");
            begin--;
        }
        end = begin;
    }
}

static const char *option_word(const void *arg, size_t i)
{
    const struct hk_opt_table *table = arg;
    while (i < table->n_opts && table->opts[i].flags & HK_OPT_HIDDEN) /* only ever the first */
        i++;
    return i < table->n_opts ? table->opts[i].key : NULL;
}

static void report_unknown_key(struct hk_walk *walk, const struct hk_opt_table *table,
                               const struct hk_yaml_node *entry)
{
    char shown[HK_SHOW_MAX];
    char meant[HK_MEANT_MAX];
    struct hk_buf where;
    hk_buf_init(&where, 300);
    if (walk->depth)
        hk_buf_adds(&where, " in ");
    describe(walk, &where);
    hk_walk_error(walk, entry->key_at, "unknown key %s%s%s", hk_show(entry->key, shown), hk_buf_cstr(&where),
                  hk_walk_meant(entry->key, option_word, table, meant));
    hk_walk_done(walk, &where);
}

static void report_missing(struct hk_walk *walk, const struct hk_opt *opt, struct hk_pos at)
{
    struct hk_buf where;
    hk_buf_init(&where, 300);
    describe(walk, &where);
    hk_walk_error(walk, at, "%s needs \"%s\", for example %s: %s", hk_buf_cstr(&where), opt->key, opt->key,
                  hk_schema_example(opt));
    hk_walk_done(walk, &where);
}

/* "http" or "null", … */
static void add_choices(const struct hk_opt_table *table, struct hk_buf *out)
{
    const char *between = "";
    for (size_t i = 0; i < table->n_opts; i++) {
        if (!(table->opts[i].flags & HK_OPT_CHOICE))
            continue;
        hk_buf_addf(out, "%s\"%s\"", between, table->opts[i].key);
        between = " or ";
    }
}

static void report_no_choice(struct hk_walk *walk, const struct hk_opt_table *table,
                             const struct hk_opt *first, struct hk_pos at)
{
    struct hk_buf text;
    hk_buf_init(&text, 500);
    describe(walk, &text);
    hk_buf_adds(&text, " needs ");
    add_choices(table, &text);
    hk_walk_error(walk, at, "%s, for example %s: %s", hk_buf_cstr(&text), first->key,
                  hk_schema_example(first));
    hk_walk_done(walk, &text);
}

static const char *kind_text(const struct hk_yaml_node *node)
{
    switch (node->kind) {
    case HK_YAML_SEQUENCE:
        return "a list";
    case HK_YAML_MAPPING:
        return "a mapping";
    case HK_YAML_BAD:
    case HK_YAML_SCALAR:
        break;
    }
    return "one value";
}

static bool wrong_kind(struct hk_walk *walk, const char *subject, const char *expected, const char *example,
                       const struct hk_yaml_node *node)
{
    if (node->missing)
        hk_walk_error(walk, node->at, "%s", node->missing);
    else if (node->kind != HK_YAML_BAD)
        hk_walk_error(walk, node->at, "%s must be %s%s%s, not %s", subject, expected,
                      example ? " such as " : "", example ? example : "", kind_text(node));
    return false;
}

/* ---- sections ---- */

static const struct hk_opt *find_option(const struct hk_opt_table *table, struct hk_str key)
{
    for (size_t i = 0; i < table->n_opts; i++) {
        if (!(table->opts[i].flags & HK_OPT_HIDDEN) && hk_str_eq(key, hk_str_of(table->opts[i].key)))
            return &table->opts[i];
    }
    return NULL;
}

static bool walk_option(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *node,
                        void *dest);

static void mark_given(void *section, size_t option)
{
    *(uint32_t *)section |= UINT32_C(1) << option;
}

static struct hk_pos section_at(const struct hk_walk *walk, const struct hk_yaml_node *node)
{
    return walk->depth ? walk->frames[walk->depth - 1].at : node->at;
}

/* `seen`: bit i = option i stands in the file, be it well or badly. */
static void check_choice(struct hk_walk *walk, const struct hk_opt_table *table,
                         const struct hk_yaml_node *node, uint32_t seen)
{
    const struct hk_opt *first = NULL;
    const struct hk_opt *chosen = NULL;
    for (size_t i = 0; i < table->n_opts; i++) {
        const struct hk_opt *opt = &table->opts[i];
        if (!(opt->flags & HK_OPT_CHOICE))
            continue;
        first = first ? first : opt;
        if (!(seen >> i & 1u))
            continue;
        const struct hk_yaml_node *entry = hk_yaml_get(node, opt->key);
        if (chosen && entry)
            hk_walk_error(walk, entry->key_at, "give \"%s\" or \"%s\", not both", chosen->key, opt->key);
        chosen = opt;
    }
    if (first && !chosen)
        report_no_choice(walk, table, first, section_at(walk, node));
}

static void walk_keys(struct hk_walk *walk, const struct hk_opt_table *table, const struct hk_yaml_node *node,
                      void *section)
{
    uint32_t seen = 0;
    const struct hk_yaml_node *first = node->kind == HK_YAML_MAPPING ? node->first : NULL;
    for (const struct hk_yaml_node *entry = first; entry && walk->status == HK_OK; entry = entry->next) {
        const struct hk_opt *opt = find_option(table, entry->key);
        if (opt)
            seen |= UINT32_C(1) << (opt - table->opts);
        if (entry->skip)
            continue;
        if (!opt)
            report_unknown_key(walk, table, entry);
        else if (walk_option(walk, opt, entry, (unsigned char *)section + opt->offset))
            mark_given(section, (size_t)(opt - table->opts));
    }
    for (size_t i = 0; i < table->n_opts; i++) {
        if (table->opts[i].flags & HK_OPT_REQUIRED && !(seen >> i & 1u))
            report_missing(walk, &table->opts[i], section_at(walk, node));
    }
    check_choice(walk, table, node, seen);
}

/* What a section's value may be, for the message about one that is not. */
static bool wrong_section(struct hk_walk *walk, const struct hk_opt_table *table, const char *subject,
                          const struct hk_yaml_node *node)
{
    struct hk_buf expected;
    hk_buf_init(&expected, 300);
    bool only_scalar = table->n_opts == 1 && table->opts[0].flags & HK_OPT_HIDDEN;
    if (table->shorthand)
        hk_scalar_expected(&table->opts[0], &expected);
    if (!only_scalar)
        hk_buf_adds(&expected, table->shorthand ? ", or a mapping" : "a mapping");
    (void)wrong_kind(walk, subject, hk_buf_cstr(&expected), only_scalar ? NULL : table->example, node);
    hk_walk_done(walk, &expected);
    return false;
}

/* The frame is pushed already. */
static bool walk_table(struct hk_walk *walk, const struct hk_opt_table *table, const char *subject,
                       const struct hk_yaml_node *node, void *section)
{
    bool only_scalar = table->n_opts == 1 && table->opts[0].flags & HK_OPT_HIDDEN;
    bool scalar = node->kind == HK_YAML_SCALAR && !(hk_yaml_is_null(node) && !only_scalar);
    if (node->kind == HK_YAML_BAD)
        return false;
    if (node->kind == HK_YAML_SEQUENCE || (scalar && !table->shorthand) || (!scalar && only_scalar))
        return wrong_section(walk, table, subject, node);
    if (!scalar)
        walk_keys(walk, table, node, section);
    else if (hk_scalar_set(walk, &table->opts[0], subject, node,
                           (unsigned char *)section + table->opts[0].offset))
        mark_given(section, 0);
    if (table->check && walk->status == HK_OK)
        table->check(walk, node, section);
    return true;
}

void hk_walk_section(struct hk_walk *walk, const struct hk_opt_table *table, const struct hk_yaml_node *node,
                     void *section)
{
    (void)walk_table(walk, table, "the file", node, section);
}

/* ---- maps and lists ---- */

static void *new_items(struct hk_walk *walk, const struct hk_opt *opt, size_t n, size_t size, void *dest)
{
    struct hk_conf_list list = {.items = hk_pool_alloc(walk->arena, n ? n : 1, size), .n = n};
    if (!list.items) {
        walk->status = HK_NOMEM;
        return NULL;
    }
    for (size_t i = 0; opt->sub && i < n; i++)
        hk_walk_defaults(opt->sub, (unsigned char *)list.items + i * size);
    memcpy(dest, &list, sizeof list);
    return list.items;
}

static bool check_count(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *node)
{
    if (opt->max && node->n > opt->max)
        hk_walk_error(walk, node->at, "\"%s\" holds %zu entries: at most %u are possible", opt->key, node->n,
                      (unsigned)opt->max);
    else if (node->n < opt->min)
        hk_walk_error(walk, node->at, "\"%s\" is empty: give at least %u", opt->key, (unsigned)opt->min);
    else
        return true;
    return false;
}

static bool check_item_name(struct hk_walk *walk, const struct hk_opt_table *table,
                            const struct hk_yaml_node *entry)
{
    char shown[HK_SHOW_MAX];
    bool ok = table->header_keys ? hk_text_is_token(entry->key) : hk_text_is_name(entry->key);
    if (!ok)
        hk_walk_error(
            walk, entry->key_at, "%s is no name for a %s: %s", hk_show(entry->key, shown), table->name,
            table->header_keys ? "it must be a header's name such as X-Tenant"
                               : "use up to 63 letters, digits, _ . and -, and begin with no . or -");
    return ok;
}

static void walk_map_item(struct hk_walk *walk, const struct hk_opt_table *table,
                          const struct hk_yaml_node *entry, unsigned char *item)
{
    char *name = hk_pool_copy_str(walk->arena, entry->key);
    if (!name) {
        walk->status = HK_NOMEM;
        return;
    }
    memcpy(item + table->name_offset, &name, sizeof name);
    push(walk, (struct hk_frame){.key = entry->key, .item = table->name, .at = entry->key_at});
    char shown[HK_SHOW_MAX];
    char subject[HK_SHOW_MAX + 32];
    (void)snprintf(subject, sizeof subject, "%s %s", table->name, hk_show(entry->key, shown));
    (void)walk_table(walk, table, subject, entry, item);
    walk->depth--;
}

void hk_walk_item(struct hk_walk *walk, const struct hk_opt_table *table, const struct hk_yaml_node *node,
                  void *item)
{
    if (check_item_name(walk, table, node))
        walk_map_item(walk, table, node, item);
}

static bool walk_map(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *node,
                     void *dest)
{
    const struct hk_opt_table *table = opt->sub;
    if (hk_yaml_is_null(node))
        return true;
    if (node->kind != HK_YAML_MAPPING) {
        char subject[80];
        (void)snprintf(subject, sizeof subject, "\"%s\"", opt->key);
        return wrong_kind(walk, subject, "a mapping", opt->example, node);
    }
    unsigned char *item =
        check_count(walk, opt, node) ? new_items(walk, opt, node->n, table->size, dest) : NULL;
    if (!item)
        return false;
    for (const struct hk_yaml_node *entry = node->first; entry && walk->status == HK_OK;
         entry = entry->next) {
        if (!entry->skip && check_item_name(walk, table, entry))
            walk_map_item(walk, table, entry, item);
        item += table->size;
    }
    return true;
}

static void walk_list_item(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *entry,
                           size_t index, unsigned char *item)
{
    char subject[96];
    if (opt->elem) {
        (void)snprintf(subject, sizeof subject, "item %zu of \"%s\"", index, opt->key);
        (void)hk_scalar_set(walk, opt->elem, subject, entry, item);
        return;
    }
    (void)snprintf(subject, sizeof subject, "%s %zu", opt->sub->name, index);
    push(walk, (struct hk_frame){.item = opt->sub->name, .index = index, .at = entry->at});
    if (hk_yaml_is_null(entry))
        hk_walk_error(walk, entry->at, "%s is empty", subject);
    else
        (void)walk_table(walk, opt->sub, subject, entry, item);
    walk->depth--;
}

static bool walk_list(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *node,
                      void *dest)
{
    char subject[80];
    (void)snprintf(subject, sizeof subject, "\"%s\"", opt->key);
    size_t size = opt->elem ? hk_scalar_size(opt->elem->type) : opt->sub->size;
    if (hk_yaml_is_null(node) && !opt->min)
        return true;
    if (node->kind == HK_YAML_SCALAR && opt->flags & HK_OPT_ONE) {
        void *item = new_items(walk, opt, 1, size, dest);
        return item && hk_scalar_set(walk, opt->elem, subject, node, item);
    }
    if (node->kind != HK_YAML_SEQUENCE)
        return wrong_kind(walk, subject, "a list", hk_schema_example(opt), node);
    unsigned char *item = check_count(walk, opt, node) ? new_items(walk, opt, node->n, size, dest) : NULL;
    if (!item)
        return false;
    size_t index = 0;
    for (const struct hk_yaml_node *entry = node->first; entry && walk->status == HK_OK;
         entry = entry->next) {
        walk_list_item(walk, opt, entry, ++index, item);
        item += size;
    }
    return true;
}

static bool walk_option(struct hk_walk *walk, const struct hk_opt *opt, const struct hk_yaml_node *node,
                        void *dest)
{
    char subject[80];
    (void)snprintf(subject, sizeof subject, "\"%s\"", opt->key);
    if (opt->type == HK_OPT_MAP)
        return walk_map(walk, opt, node, dest);
    if (opt->type == HK_OPT_LIST)
        return walk_list(walk, opt, node, dest);
    if (opt->type != HK_OPT_SECTION)
        return hk_scalar_set(walk, opt, subject, node, dest);
    push(walk, (struct hk_frame){.key = node->key, .at = node->key_at});
    bool ok = walk_table(walk, opt->sub, subject, node, dest);
    walk->depth--;
    return ok;
}

void hk_walk_defaults(const struct hk_opt_table *table, void *section)
{
    for (size_t i = 0; i < table->n_opts; i++) {
        const struct hk_opt *opt = &table->opts[i];
        void *dest = (unsigned char *)section + opt->offset;
        if (opt->type == HK_OPT_SECTION)
            hk_walk_defaults(opt->sub, dest);
        else if (opt->fallback)
            hk_scalar_default(opt, dest);
    }
}
