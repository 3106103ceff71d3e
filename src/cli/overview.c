/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the store three times and puts the answers side by side. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/overview.h"

/* The destinations that keep an order; `*out_n` of them, the caller's to free. NULL: no memory. */
static struct hk_blocking *ordered_dests(const struct hk_config *config, size_t *out_n)
{
    const struct hk_conf_destination *conf = NULL;
    size_t room = 0, n = 0;
    while (hk_config_destination(config, room) != NULL)
        room++;
    struct hk_blocking *items = hk_mem_zalloc(room + 1, sizeof *items);
    for (size_t i = 0; items != NULL && (conf = hk_config_destination(config, i)) != NULL; i++)
        if (conf->order == HK_ORDER_KEY)
            items[n++] = (struct hk_blocking){.destination = conf->name,
                                              .skip_dead = conf->on_dead == HK_ON_DEAD_SKIP};
    *out_n = n;
    return items;
}

/* ---- side by side ---- */

static struct hk_overview_dest *dest_of(struct hk_overview *o, size_t room, struct hk_str name)
{
    for (size_t i = 0; i < o->n_dests; i++)
        if (hk_str_eq(o->dests[i].name, name))
            return &o->dests[i];
    if (o->n_dests == room)
        return NULL;
    struct hk_overview_dest *d = &o->dests[o->n_dests++];
    *d = (struct hk_overview_dest){.name = name,
                                   .backlog = {.name = name, .actor = {"", 0}, .reason = {"", 0}}};
    return d;
}

static int by_name(const void *a, const void *b)
{
    struct hk_str x = ((const struct hk_overview_dest *)a)->name,
                  y = ((const struct hk_overview_dest *)b)->name;
    size_t len = x.len < y.len ? x.len : y.len;
    int order = len > 0 ? memcmp(x.ptr, y.ptr, len) : 0;
    return order != 0 ? order : (x.len > y.len) - (x.len < y.len);
}

static void add_names(struct hk_overview *o, size_t room, const struct hk_config *config,
                      const struct hk_figures *figures, bool all)
{
    const struct hk_conf_destination *conf = NULL;
    const struct hk_str *before = NULL;
    for (size_t i = 0; i < o->status->n_dests; i++) {
        struct hk_overview_dest *d = &o->dests[o->n_dests++];
        *d = (struct hk_overview_dest){.name = o->status->dests[i].name, .backlog = o->status->dests[i]};
    }
    for (size_t i = 0; i < figures->n; i++) {
        if (before == NULL || !hk_str_eq(*before, figures->items[i].destination))
            (void)dest_of(o, room, figures->items[i].destination);
        before = &figures->items[i].destination;
    }
    for (size_t i = 0; all && (conf = hk_config_destination(config, i)) != NULL; i++)
        (void)dest_of(o, room, hk_str_of(conf->name));
}

static enum hk_code put_together(struct hk_overview *o, const struct hk_operate *op,
                                 const struct hk_blocking *blocked, size_t n,
                                 const struct hk_figures *figures, bool all)
{
    size_t room = o->status->n_dests + figures->n + n + 1, configured = 0;
    while (all && hk_config_destination(op->config, configured) != NULL)
        configured++;
    room += configured;
    o->dests = hk_mem_zalloc(room, sizeof *o->dests);
    if (o->dests == NULL)
        return HK_NOMEM;
    add_names(o, room, op->config, figures, all);
    for (size_t i = 0; i < n; i++) {
        o->blocked.n += blocked[i].n.n;
        o->blocked.about |= blocked[i].n.about;
        struct hk_overview_dest *d =
            blocked[i].n.n > 0 || all ? dest_of(o, room, hk_str_of(blocked[i].destination)) : NULL;
        if (d == NULL)
            continue;
        d->ordered = true;
        d->blocked = blocked[i].n;
    }
    for (size_t i = 0; i < o->n_dests; i++)
        hk_figures_sum(figures, o->dests[i].name, &o->dests[i].lately);
    qsort(o->dests, o->n_dests, sizeof *o->dests, by_name);
    return HK_OK;
}

/* What is blocked first: that answer lies with us, the others with the handle, until its next call but one. */
enum hk_code hk_overview_take(const struct hk_operate *op, bool exact, bool all, struct hk_overview *out,
                              struct hk_err *err)
{
    struct hk_overview o = {.blocked_known = hk_config_destination(op->config, 0) != NULL};
    const struct hk_figures none = {.n = 0}, *figures = NULL;
    size_t n = 0;
    struct hk_blocking *blocked = ordered_dests(op->config, &n);
    if (blocked == NULL)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    enum hk_code rc = n > 0 ? op->ops->blocked(op->admin, blocked, n, exact, err) : HK_OK;
    if (rc == HK_OK)
        rc = (exact ? op->ops->status_exact : op->ops->status)(op->admin, &o.status, err);
    if (rc == HK_OK && op->ops->figures(op->admin, &figures, &o.no_figures) != HK_OK)
        figures = &none; /* the rest is worth showing */
    if (rc == HK_OK && put_together(&o, op, blocked, n, figures, all) != HK_OK)
        rc = hk_err_set(err, HK_NOMEM, "out of memory");
    hk_mem_free(blocked);
    if (rc == HK_OK)
        *out = o;
    return rc;
}

void hk_overview_free(struct hk_overview *o)
{
    hk_mem_free(o->dests);
    o->dests = NULL;
    o->n_dests = 0;
}

/* ---- what they say ---- */

const char *hk_overview_breaker(const struct hk_overview_dest *d, int64_t now_ms)
{
    if (d->backlog.open_until_ms > now_ms)
        return "open";
    return d->lately.half_open ? "half_open" : "closed";
}

double hk_overview_ratio(const struct hk_figures_sum *f)
{
    uint64_t all = f->sent + f->failed;
    return all > 0 ? (double)f->sent / (double)all : -1;
}
