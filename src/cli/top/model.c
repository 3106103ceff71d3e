/* SPDX-License-Identifier: Apache-2.0 */
/* What `top` knows: asked of the desk, kept by value, so that it can be shown, sorted and filtered while the store is away. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "cli/top/top.h"
#include "desk/dead_look.h"

void hk_top_keep(char out[HK_TOP_TEXT], struct hk_str s)
{
    size_t len = 0;
    while (len < s.len) {
        uint32_t c;
        size_t taken = hk_utf8_next((struct hk_str){s.ptr + len, s.len - len}, &c);
        if (len + taken >= HK_TOP_TEXT || s.ptr[len] == '\0')
            break;
        len += taken;
    }
    memcpy(out, s.ptr, len);
    out[len] = '\0';
}

static void push(float history[HK_TOP_SPARK], double value)
{
    memmove(history, history + 1, (HK_TOP_SPARK - 1) * sizeof history[0]);
    history[HK_TOP_SPARK - 1] = (float)value;
}

/* ---- destinations ---- */

static const struct hk_top_dest *before(const struct hk_top *top, const char *name)
{
    for (size_t i = 0; top->dests != NULL && i < top->n_dests; i++)
        if (strcmp(top->dests[i].name, name) == 0)
            return &top->dests[i];
    return NULL;
}

static void take_dest(const struct hk_top *top, const struct hk_status_dest *from, struct hk_top_dest *out)
{
    const struct hk_status_lately *f = &from->lately;
    const struct hk_dest_status *b = &from->backlog;
    *out = (struct hk_top_dest){.pending = b->pending,
                                .retrying = b->retrying,
                                .dead = b->dead,
                                .blocked = from->blocked,
                                .processing = b->processing,
                                .p50_ms = f->p50_ms,
                                .p95_ms = f->p95_ms,
                                .p99_ms = f->p99_ms,
                                .known = from->known,
                                .paused = b->paused,
                                .half_open = from->breaker == HK_BREAKER_SEEN_HALF_OPEN,
                                .limited = from->limited,
                                .in_per_s = f->in_per_s,
                                .out_per_s = f->out_per_s,
                                .ratio = f->ratio,
                                .since_ms = b->since_ms,
                                .open_until_ms = b->open_until_ms,
                                .ready_at_ms = from->ready_at_ms,
                                .error_ms = from->last_error_ms};
    hk_top_keep(out->name, from->name);
    hk_top_keep(out->actor, b->actor);
    hk_top_keep(out->reason, b->reason);
    hk_top_keep(out->error, from->last_error);
    const struct hk_top_dest *was = before(top, out->name);
    if (was != NULL)
        memcpy(out->out, was->out, sizeof out->out);
    push(out->out, f->out_per_s);
}

static enum hk_code take_dests(struct hk_top *top, const struct hk_status *o)
{
    size_t n = o->n_dests < HK_TOP_DESTS ? o->n_dests : HK_TOP_DESTS;
    double in = 0, out = 0;
    struct hk_top_dest *dests = hk_mem_zalloc(n + 1, sizeof *dests);
    if (dests == NULL)
        return HK_NOMEM;
    for (size_t i = 0; i < n; i++) {
        take_dest(top, &o->dests[i], &dests[i]);
        in += dests[i].in_per_s;
        out += dests[i].out_per_s;
    }
    hk_mem_free(top->dests);
    top->dests = dests;
    top->n_dests = n;
    push(top->in, in);
    push(top->out, out);
    return HK_OK;
}

static void take_status(struct hk_top *top, const struct hk_status *o)
{
    const struct hk_store_status *s = &o->store;
    top->now_ms = s->now_ms;
    top->due = s->due;
    top->retrying = s->retrying;
    top->scheduled = s->scheduled;
    top->dead = s->dead;
    top->blocked = o->blocked;
    top->blocked_known = o->blocked_known;
    top->processing = s->processing;
    top->oldest_due_ms = s->oldest_due_ms;
    top->oldest_ms = s->oldest_ms;
    top->relays_running = s->relays_running;
    top->relay_running = s->relay.running;
    hk_top_keep(top->relay, s->relay.name);
}

/* ---- failures ---- */

static int newest_first(const void *a, const void *b)
{
    int64_t x = ((const struct hk_top_failure *)a)->at_ms, y = ((const struct hk_top_failure *)b)->at_ms;
    return (x < y) - (x > y);
}

/* Reasons only: what errors say is in the letter, which is shown masked. */
static void take_letter(struct hk_top *top, const struct hk_letter *l)
{
    struct hk_top_failure *f = &top->failures[top->n_failures++];
    *f = (struct hk_top_failure){.at_ms = l->last_failed_ms, .letter = l->id};
    hk_top_keep(f->destination, l->destination);
    hk_top_keep(f->text, l->reason);
    hk_top_keep(f->message_id, l->message_id);
}

static void take_letters(struct hk_top *top, const struct hk_dead_list *letters)
{
    top->n_failures = 0;
    for (size_t i = 0; i < letters->n && top->n_failures < HK_TOP_FAILURES; i++)
        take_letter(top, &letters->items[i]);
}

static void take_errors(struct hk_top *top)
{
    for (size_t i = 0; i < top->n_dests && top->n_failures < HK_TOP_FAILURES * 2; i++) {
        const struct hk_top_dest *d = &top->dests[i];
        if (d->error_ms == 0)
            continue;
        struct hk_top_failure *f = &top->failures[top->n_failures++];
        *f = (struct hk_top_failure){.at_ms = d->error_ms};
        memcpy(f->destination, d->name, sizeof f->destination);
        memcpy(f->text, d->error, sizeof f->text);
    }
    if (top->n_failures > 1)
        qsort(top->failures, top->n_failures, sizeof top->failures[0], newest_first);
}

/* ---- order ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hk_top_dest *)a)->name, ((const struct hk_top_dest *)b)->name);
}

static int by_number(double x, double y, const void *a, const void *b)
{
    return x < y ? 1 : x > y ? -1 : by_name(a, b);
}

static int by_backlog(const void *a, const void *b)
{
    const struct hk_top_dest *x = a, *y = b;
    return by_number((double)x->pending.n + (double)x->retrying.n,
                     (double)y->pending.n + (double)y->retrying.n, a, b);
}

static int by_dead(const void *a, const void *b)
{
    return by_number((double)((const struct hk_top_dest *)a)->dead.n,
                     (double)((const struct hk_top_dest *)b)->dead.n, a, b);
}

static int by_rate(const void *a, const void *b)
{
    return by_number(((const struct hk_top_dest *)a)->out_per_s, ((const struct hk_top_dest *)b)->out_per_s,
                     a, b);
}

static int by_latency(const void *a, const void *b)
{
    return by_number((double)((const struct hk_top_dest *)a)->p95_ms,
                     (double)((const struct hk_top_dest *)b)->p95_ms, a, b);
}

void hk_top_resort(struct hk_top *top)
{
    static int (*const orders[HK_TOP_NSORTS])(const void *,
                                              const void *) = {[HK_TOP_BY_NAME] = by_name,
                                                               [HK_TOP_BY_BACKLOG] = by_backlog,
                                                               [HK_TOP_BY_DEAD] = by_dead,
                                                               [HK_TOP_BY_RATE] = by_rate,
                                                               [HK_TOP_BY_LATENCY] = by_latency};
    if (top->n_dests > 1)
        qsort(top->dests, top->n_dests, sizeof *top->dests, orders[top->sort]);
}

static bool is_shown(const struct hk_top *top, const struct hk_top_dest *d)
{
    return top->filter[0] == '\0' || hk_str_containsi(hk_str_of(d->name), hk_str_of(top->filter));
}

const struct hk_top_dest *hk_top_dest(const struct hk_top *top, size_t wanted)
{
    for (size_t i = 0; i < top->n_dests; i++)
        if (is_shown(top, &top->dests[i]) && wanted-- == 0)
            return &top->dests[i];
    return NULL;
}

size_t hk_top_shown(const struct hk_top *top)
{
    size_t n = 0;
    for (size_t i = 0; i < top->n_dests; i++)
        n += is_shown(top, &top->dests[i]);
    return n;
}

/* ---- the whole ---- */

/* The mark stays with its destination, wherever that moves. */
static void find_mark(struct hk_top *top, const char *name)
{
    const struct hk_top_dest *d = NULL;
    for (size_t i = 0; (d = hk_top_dest(top, i)) != NULL; i++)
        if (strcmp(d->name, name) == 0)
            top->marked[0] = i;
}

static enum hk_code ask(struct hk_desk *desk, struct hk_pool *mem, struct hk_status *status,
                        struct hk_dead_list *letters, struct hk_err *err)
{
    static const struct hk_status_ask everywhere = {.all_destinations = true};
    static const struct hk_dead_list_ask newest = {.limit = HK_TOP_FAILURES, .briefly = true};
    static const struct hk_caller viewer = {.role = HK_ROLE_VIEWER};
    enum hk_code rc = hk_desk_ask(desk, &hk_op_status, &viewer, &everywhere, mem, status, err);
    return rc == HK_OK ? hk_desk_ask(desk, &hk_op_dead_list, &viewer, &newest, mem, letters, err) : rc;
}

static enum hk_code take(struct hk_top *top, struct hk_desk *desk, struct hk_pool *mem, struct hk_err *err)
{
    struct hk_status status = {.n_dests = 0};
    struct hk_dead_list letters = {.n = 0};
    char marked[HK_TOP_TEXT] = "";
    const struct hk_top_dest *was = hk_top_dest(top, top->marked[0]);
    if (was != NULL)
        memcpy(marked, was->name, sizeof marked);
    enum hk_code rc = ask(desk, mem, &status, &letters, err);
    if (rc != HK_OK)
        return rc;
    if (take_dests(top, &status) != HK_OK)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    take_status(top, &status);
    take_letters(top, &letters);
    take_errors(top);
    hk_top_resort(top);
    find_mark(top, marked);
    return HK_OK;
}

enum hk_code hk_top_take(struct hk_top *top, struct hk_desk *desk, struct hk_err *err)
{
    struct hk_pool mem = {NULL};
    enum hk_code rc = take(top, desk, &mem, err);
    hk_pool_fini(&mem);
    top->taken |= rc == HK_OK;
    hk_top_keep(top->trouble, hk_str_of(rc == HK_OK ? "" : err->message));
    return rc;
}

void hk_top_fini(struct hk_top *top)
{
    hk_mem_free(top->dests);
    top->dests = NULL;
    top->n_dests = 0;
}
