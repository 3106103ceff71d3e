/* SPDX-License-Identifier: Apache-2.0 */
/* hikyaku status: asks the store three times and puts the answers side by side. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "desk/definitions.h"
#include "desk/forms.h"
#include "desk/status.h"

const char *const hk_status_buckets[HK_ATTEMPT_BUCKETS] = {"0", "1", "2", "3", "4", "5-9", "10-19", "20+"};

/* The destinations that keep an order: those of the configuration, and of those of the store the ones that this status shows. However
 * many there are, no other definition is read. `*out_n` of them. NULL: no memory. */
static struct hk_blocking *ordered_dests(struct hk_desk *desk, const struct hk_store_status *shown,
                                         struct hk_pool *mem, size_t *out_n)
{
    const struct hk_config *config = desk->config;
    const struct hk_conf_destination *conf = NULL;
    struct hk_blocking *kept = NULL;
    struct hk_err err = {.message = ""};
    size_t room = 0, n = 0, n_kept = 0, n_names = 0;
    struct hk_str *names = hk_pool_alloc(mem, shown->n_dests + 1, sizeof *names);
    for (size_t i = 0; names && i < shown->n_dests; i++)
        if (shown->dests[i].name.len > 0 && !hk_config_destination_named(config, shown->dests[i].name))
            names[n_names++] = shown->dests[i].name;
    if (n_names > 0 && hk_desk_ordered(desk, names, n_names, mem, &kept, &n_kept, &err) != HK_OK)
        n_kept = 0; /* what waits behind a key is worth no error */
    while (hk_config_destination(config, room) != NULL)
        room++;
    struct hk_blocking *items = hk_pool_alloc(mem, room + n_kept + 1, sizeof *items);
    for (size_t i = 0; items != NULL && (conf = hk_config_destination(config, i)) != NULL; i++)
        if (conf->order == HK_ORDER_KEY)
            items[n++] = (struct hk_blocking){.destination = conf->name,
                                              .skip_dead = conf->on_dead == HK_ON_DEAD_SKIP};
    for (size_t i = 0; items != NULL && i < n_kept; i++)
        items[n++] = kept[i];
    *out_n = n;
    return names ? items : NULL;
}

/* ---- side by side ---- */

static struct hk_status_dest *dest_of(struct hk_status *o, size_t room, struct hk_str name)
{
    for (size_t i = 0; i < o->n_dests; i++)
        if (hk_str_eq(o->dests[i].name, name))
            return &o->dests[i];
    if (o->n_dests == room)
        return NULL;
    struct hk_status_dest *d = &o->dests[o->n_dests++];
    *d =
        (struct hk_status_dest){.name = name, .backlog = {.name = name, .actor = {"", 0}, .reason = {"", 0}}};
    return d;
}

static int by_name(const void *a, const void *b)
{
    struct hk_str x = ((const struct hk_status_dest *)a)->name, y = ((const struct hk_status_dest *)b)->name;
    size_t len = x.len < y.len ? x.len : y.len;
    int order = len > 0 ? memcmp(x.ptr, y.ptr, len) : 0;
    return order != 0 ? order : (x.len > y.len) - (x.len < y.len);
}

static void add_names(struct hk_status *o, size_t room, const struct hk_config *config,
                      const struct hk_figures *figures, bool all)
{
    const struct hk_conf_destination *conf = NULL;
    const struct hk_str *before = NULL;
    for (size_t i = 0; i < o->store.n_dests; i++) {
        struct hk_status_dest *d = &o->dests[o->n_dests++];
        *d = (struct hk_status_dest){.name = o->store.dests[i].name, .backlog = o->store.dests[i]};
    }
    for (size_t i = 0; i < figures->n; i++) {
        if (before == NULL || !hk_str_eq(*before, figures->items[i].destination))
            (void)dest_of(o, room, figures->items[i].destination);
        before = &figures->items[i].destination;
    }
    for (size_t i = 0; all && (conf = hk_config_destination(config, i)) != NULL; i++)
        (void)dest_of(o, room, hk_str_of(conf->name));
}

/* Room for whatever anybody knows of. */
static size_t dests_room(const struct hk_status *o, const struct hk_config *config, size_t n_blocked,
                         const struct hk_figures *figures)
{
    size_t configured = 0;
    while (hk_config_destination(config, configured))
        configured++;
    return o->store.n_dests + figures->n + n_blocked + configured + 1;
}

static void add_lately(struct hk_status_dest *d, const struct hk_figures *figures, int64_t now_ms)
{
    struct hk_figures_sum sum;
    hk_figures_sum(figures, d->name, &sum);
    uint64_t all = sum.sent + sum.failed;
    d->known = sum.known;
    d->lately = (struct hk_status_lately){.in_per_s = sum.in_per_s,
                                          .out_per_s = sum.out_per_s,
                                          .sent = sum.sent,
                                          .failed = sum.failed,
                                          .dead = sum.dead,
                                          .ratio = all > 0 ? (double)sum.sent / (double)all : -1,
                                          .has_latency = hk_histogram_count(&sum.latency) > 0,
                                          .p50_ms = hk_histogram_quantile(&sum.latency, 0.5),
                                          .p95_ms = hk_histogram_quantile(&sum.latency, 0.95),
                                          .p99_ms = hk_histogram_quantile(&sum.latency, 0.99)};
    d->breaker = d->backlog.open_until_ms > now_ms ? HK_BREAKER_SEEN_OPEN
                 : sum.half_open                   ? HK_BREAKER_SEEN_HALF_OPEN
                                                   : HK_BREAKER_SEEN_CLOSED;
    d->limited = sum.limited;
    d->ready_at_ms = sum.ready_at_ms;
    d->last_error = sum.last_error;
    d->last_error_ms = sum.last_error_ms;
    d->unusable = sum.unusable;
}

static enum hk_code put_together(struct hk_status *o, const struct hk_config *config,
                                 const struct hk_blocking *blocked, size_t n,
                                 const struct hk_figures *figures, bool all, struct hk_pool *mem)
{
    size_t room = dests_room(o, config, n, figures);
    o->dests = hk_pool_alloc(mem, room, sizeof *o->dests);
    if (!o->dests)
        return HK_NOMEM;
    add_names(o, room, config, figures, all);
    for (size_t i = 0; i < n; i++) {
        o->blocked.n += blocked[i].n.n;
        o->blocked.about |= blocked[i].n.about;
        struct hk_status_dest *d =
            blocked[i].n.n > 0 || all ? dest_of(o, room, hk_str_of(blocked[i].destination)) : NULL;
        if (!d)
            continue;
        d->ordered = true;
        d->blocked = blocked[i].n;
    }
    for (size_t i = 0; i < o->n_dests; i++)
        add_lately(&o->dests[i], figures, o->store.now_ms);
    qsort(o->dests, o->n_dests, sizeof *o->dests, by_name);
    return HK_OK;
}

/* Messages that failed, due or not, as the table by destination and `messages list` count them. */
static struct hk_count count_retrying(const struct hk_store_status *s)
{
    struct hk_count all = {0, false};
    for (size_t i = 0; i < s->n_dests; i++)
        all = (struct hk_count){all.n + s->dests[i].retrying.n, all.about || s->dests[i].retrying.about};
    if (all.n < s->retrying.n) /* some destinations were not looked at */
        all = s->retrying;
    all.about = all.about || s->more_dests;
    return all;
}

static enum hk_code read_store(struct hk_desk *desk, bool exact, struct hk_pool *mem, struct hk_status *o,
                               struct hk_err *err)
{
    const struct hk_store_status *status = NULL;
    enum hk_code rc = exact ? desk->ops->status_exact(desk->admin, &status, err)
                            : desk->ops->status(desk->admin, &status, err);
    if (rc != HK_OK)
        return rc;
    o->store = *status;
    hk_desk_keep(desk, mem);
    o->retrying = count_retrying(&o->store);
    return HK_OK;
}

static enum hk_code status(struct hk_desk *desk, const struct hk_caller *caller,
                           const struct hk_status_ask *ask, struct hk_pool *mem, struct hk_status *out,
                           struct hk_err *err)
{
    struct hk_status o = {.blocked_known = hk_config_destination(desk->config, 0) != NULL};
    const struct hk_figures none = {.n = 0}, *figures = NULL;
    size_t n = 0;
    (void)caller;
    enum hk_code rc = read_store(desk, ask->exact, mem, &o, err);
    if (rc != HK_OK)
        return rc;
    struct hk_blocking *blocked = ordered_dests(desk, &o.store, mem, &n);
    if (!blocked)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    rc = n > 0 ? desk->ops->blocked(desk->admin, blocked, n, ask->exact, err) : HK_OK;
    if (rc != HK_OK)
        return rc;
    if (desk->ops->figures(desk->admin, &figures, &o.no_figures) == HK_OK)
        hk_desk_keep(desk, mem);
    else
        figures = &none; /* the rest is worth showing */
    if (put_together(&o, desk->config, blocked, n, figures, ask->all_destinations, mem) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    *out = o;
    return HK_OK;
}

bool hk_status_has_backlog(const struct hk_status_dest *dest)
{
    const struct hk_dest_status *d = &dest->backlog;
    return d->pending.n > 0 || d->processing > 0 || d->retrying.n > 0 || d->dead.n > 0 || d->paused ||
           d->open_until_ms != 0;
}

/* ---- relays ---- */

static enum hk_code relays(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                           struct hk_pool *mem, struct hk_relays *out, struct hk_err *err)
{
    const struct hk_relays *found = NULL;
    (void)caller, (void)request;
    enum hk_code rc = desk->ops->relays(desk->admin, &found, err);
    if (rc != HK_OK)
        return rc;
    *out = *found;
    hk_desk_keep(desk, mem);
    return HK_OK;
}

/* ---- the table ---- */

HK_OP_RUN(status)
HK_OP_RUN(relays)

static const struct hk_arg status_args[] = {{.name = "exact",
                                             .offset = offsetof(struct hk_status_ask, exact),
                                             .help = "count everything, however long that takes"},
                                            {.name = NULL}};

const struct hk_op hk_op_status = {
    .noun = "status",
    .summary = "show due, waiting and dead messages, the oldest one, and the running relays",
    .details = "Exact up to 100,000 of a kind; beyond, ~ marks an estimate.",
    .route = "GET /status",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = status_args,
    .request_size = sizeof(struct hk_status_ask),
    .result_size = sizeof(struct hk_status),
    .run = status_op,
    .form = hk_form_status};

const struct hk_op hk_op_relays_list = {
    .noun = "relays",
    .verb = "list",
    .summary = "list running relays: shards, messages in hand, and lag",
    .details =
        "LAG is how long the oldest message that is due has waited in a relay's shards, looked for among the\n"
        "10,000 oldest. A relay that died stays in the list until another relay takes over.",
    .route = "GET /relays",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .result_size = sizeof(struct hk_relays),
    .run = relays_op,
    .form = hk_form_relays};
