/* SPDX-License-Identifier: Apache-2.0 */
/* Two sections side by side, driven by the table that filled them. */
#include <stdio.h>
#include <string.h>

#include "config/diff.h"
#include "config/tables.h"
#include "config/walk.h"

#define PATH_TEXT_MAX 512u

struct diff {
    hk_diff_fn *fn;
    void *arg;
    bool restart; /* below an option that needs one */
    size_t len;
    char path[PATH_TEXT_MAX];
};

/* Goes one step down the path; returns the length to go back to. */
static size_t enter(struct diff *d, const char *key)
{
    size_t before = d->len;
    int n = snprintf(d->path + d->len, sizeof d->path - d->len, "%s%s", d->len ? "." : "", key);
    d->len += (size_t)n;
    if (d->len >= sizeof d->path)
        d->len = sizeof d->path - 1;
    return before;
}

static void leave(struct diff *d, size_t len)
{
    d->len = len;
    d->path[len] = '\0';
}

static void tell(struct diff *d, enum hk_diff_kind kind, const char *key)
{
    size_t back = enter(d, key);
    d->fn(d->arg, kind, d->path, d->restart);
    leave(d, back);
}

static bool same_text(const void *a, const void *b)
{
    const char *const *x = a;
    const char *const *y = b;
    return *x && *y ? strcmp(*x, *y) == 0 : *x == *y;
}

static bool same_scalar(const struct hk_opt *opt, const void *a, const void *b)
{
    switch (opt->type) {
    case HK_OPT_STRING:
    case HK_OPT_PATH:
    case HK_OPT_NAME:
        return same_text(a, b);
    case HK_OPT_BOOL:
    case HK_OPT_U32:
    case HK_OPT_U64:
    case HK_OPT_DURATION:
    case HK_OPT_SIZE:
    case HK_OPT_RATE:
    case HK_OPT_DOUBLE:
    case HK_OPT_ENUM:
    case HK_OPT_CIDR: /* no holes in it */
    case HK_OPT_SECTION:
    case HK_OPT_MAP:
    case HK_OPT_LIST:
        break;
    }
    return memcmp(a, b, hk_scalar_size(opt->type)) == 0;
}

static void diff_table(struct diff *d, const struct hk_opt_table *table, const void *a, const void *b);

static void note(void *arg, enum hk_diff_kind kind, const char *path, bool needs_restart)
{
    (void)kind, (void)path, (void)needs_restart;
    bool *differs = arg;
    *differs = true;
}

static bool same_item(const struct hk_opt *opt, const void *a, const void *b)
{
    bool differs = false;
    struct diff inner = {.fn = note, .arg = &differs};
    if (opt->elem)
        return same_scalar(opt->elem, a, b);
    diff_table(&inner, opt->sub, a, b);
    return !differs;
}

static bool same_list(const struct hk_opt *opt, const struct hk_conf_list *a, const struct hk_conf_list *b)
{
    size_t size = opt->elem ? hk_scalar_size(opt->elem->type) : opt->sub->size;
    const unsigned char *x = a->items;
    const unsigned char *y = b->items;
    bool same = a->n == b->n;
    for (size_t i = 0; same && i < a->n; i++)
        same = same_item(opt, x + i * size, y + i * size);
    return same;
}

/* ---- maps ---- */

static const char *name_at(const struct hk_opt_table *table, const struct hk_conf_list *list, size_t i)
{
    const char *name = NULL;
    memcpy(&name, (const unsigned char *)list->items + i * table->size + table->name_offset, sizeof name);
    return name;
}

/* The item's index, or list->n. Looks first where it stands when the order is the same in both. */
static size_t find(const struct hk_opt_table *table, const struct hk_conf_list *list, const char *name,
                   size_t likely)
{
    if (likely < list->n && strcmp(name_at(table, list, likely), name) == 0)
        return likely;
    size_t i = 0;
    while (i < list->n && strcmp(name_at(table, list, i), name) != 0)
        i++;
    return i;
}

static void diff_map(struct diff *d, const struct hk_opt_table *table, const struct hk_conf_list *a,
                     const struct hk_conf_list *b)
{
    size_t likely = 0;
    for (size_t i = 0; i < a->n; i++) {
        const char *name = name_at(table, a, i);
        size_t k = find(table, b, name, likely);
        if (k == b->n) {
            tell(d, HK_DIFF_REMOVED, name);
            continue;
        }
        likely = k + 1;
        size_t back = enter(d, name);
        diff_table(d, table, (const unsigned char *)a->items + i * table->size,
                   (const unsigned char *)b->items + k * table->size);
        leave(d, back);
    }
    likely = 0;
    for (size_t k = 0; k < b->n; k++) {
        const char *name = name_at(table, b, k);
        size_t i = find(table, a, name, likely);
        if (i == a->n)
            tell(d, HK_DIFF_ADDED, name);
        else
            likely = i + 1;
    }
}

/* ---- sections ---- */

/* Without a default, whether it is given says something by itself: a policy takes only what is given. */
static bool same_value(const struct hk_opt_table *table, const struct hk_opt *opt, const void *a,
                       const void *b)
{
    const unsigned char *x = (const unsigned char *)a + opt->offset;
    const unsigned char *y = (const unsigned char *)b + opt->offset;
    uint32_t bit = UINT32_C(1) << (opt - table->opts);
    if (!opt->fallback && (*(const uint32_t *)a & bit) != (*(const uint32_t *)b & bit))
        return false;
    if (opt->type == HK_OPT_LIST)
        return same_list(opt, (const void *)x, (const void *)y);
    return same_scalar(opt, x, y);
}

static void diff_option(struct diff *d, const struct hk_opt_table *table, const struct hk_opt *opt,
                        const void *a, const void *b)
{
    const unsigned char *x = (const unsigned char *)a + opt->offset;
    const unsigned char *y = (const unsigned char *)b + opt->offset;
    bool outer = d->restart;
    size_t back = d->len;
    d->restart = outer || opt->flags & HK_OPT_RESTART;
    if (!(opt->flags & HK_OPT_HIDDEN)) /* what has no key is told by its section's */
        back = enter(d, opt->key);
    if (opt->type == HK_OPT_SECTION)
        diff_table(d, opt->sub, x, y);
    else if (opt->type == HK_OPT_MAP)
        diff_map(d, opt->sub, (const void *)x, (const void *)y);
    else if (!same_value(table, opt, a, b))
        d->fn(d->arg, HK_DIFF_CHANGED, d->path, d->restart);
    leave(d, back);
    d->restart = outer;
}

static void diff_table(struct diff *d, const struct hk_opt_table *table, const void *a, const void *b)
{
    for (size_t i = 0; i < table->n_opts; i++)
        diff_option(d, table, &table->opts[i], a, b);
}

void hk_config_diff(const struct hk_config *before, const struct hk_config *after, hk_diff_fn *fn, void *arg)
{
    struct diff d = {.fn = fn, .arg = arg};
    diff_table(&d, &hk_root_table, before, after);
}
