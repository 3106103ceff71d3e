/* SPDX-License-Identifier: Apache-2.0 */
/* Queues: made, changed, looked at, emptied and removed, each as the definition of a destination (config/definition.h). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "config/definition.h"
#include "config/text.h"
#include "desk/forms.h"
#include "desk/put.h"
#include "desk/queues.h"

/* The burst that Google derives from a rate. */
#define BURST_MIN 10
#define BURST_MAX 100
/* So often a change is made anew because others were faster with theirs. */
#define PUT_TRIES 32

/* ---- names ---- */

void hk_queue_destination(const char *name, char out[HK_NAME_MAX])
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a: tells queues of the same id apart */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    const char *id = strrchr(name, '/');
    id = id ? id + 1 : name;
    while (*id == '-' || *id == '.') /* no destination's name begins so */
        id++;
    (void)snprintf(out, HK_NAME_MAX, "%.46s.%012" PRIx64, *id ? id : "queue",
                   hash & UINT64_C(0xffffffffffff));
}

enum hk_code hk_queues_on(const struct hk_desk *desk, struct hk_err *err)
{
    if (desk->config->queues.on)
        return HK_OK;
    return hk_err_set(
        err, HK_DENIED,
        "Cloud Tasks are not enabled here: add a section \"queues: {}\" to the relay's configuration");
}

static enum hk_code check_name(const struct hk_desk *desk, const char *name, struct hk_err *err)
{
    char why[HK_WHY_MAX] = "", shown[HK_SHOW_MAX];
    enum hk_code rc = hk_queues_on(desk, err);
    if (rc == HK_OK && !hk_text_check_queue(hk_str_of(name), why))
        rc = hk_err_set(err, HK_INVALID, "the queue's name %s %s", hk_show(hk_str_of(name), shown), why);
    return rc;
}

static enum hk_code no_queue(const char *name, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    return hk_err_set(err, HK_NOTFOUND, "there is no queue %s", hk_show(hk_str_of(name), shown));
}

static enum hk_code no_memory(struct hk_err *err)
{
    return hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- what is kept ---- */

static void read_settings(const struct hk_conf_destination *conf, struct hk_queue_settings *out)
{
    const struct hk_policy *policy = conf->own_policy;
    const struct hk_limits *limits = hk_policy_limits(policy);
    const struct hk_backoff *backoff = hk_policy_backoff(policy);
    *out = (struct hk_queue_settings){
        .given = (HK_QUEUE_POLICY << 1) - 1,
        .rate_per_s = conf->limits.rate_per_s,
        .burst = conf->limits.burst,
        .concurrency = conf->limits.concurrency,
        .max_attempts = limits->max_attempts ? (int64_t)limits->max_attempts : -1,
        .max_retry_ms = conf->queue.max_retry_ms
                            ? (int64_t)conf->queue.max_retry_ms
                            : (int64_t)(limits->max_attempts ? limits->max_elapsed_ms : 0),
        .min_backoff_ms = (int64_t)backoff->base_ms,
        .max_backoff_ms = (int64_t)backoff->cap_ms,
        .max_doublings = backoff->kind == HK_BACKOFF_CLOUD_TASKS ? (int64_t)backoff->max_doublings : 16,
        .policy = conf->policy};
}

/* A definition that is a queue. False: it is none, or nobody can read it. */
static bool read_queue(struct hk_desk *desk, const struct hk_definition *d, struct hk_pool *mem,
                       struct hk_queue *out)
{
    struct hk_err err = {.message = ""};
    struct hk_conf_destination conf = {.given = 0};
    const char *name = hk_pool_copy_str(mem, d->name);
    const struct hk_definition_ask ask = {.config = desk->config, .name = name, .text = d->text};
    if (!name || hk_config_define(&ask, mem, &conf, NULL, &err) != HK_OK || !conf.queue.name ||
        !conf.own_policy)
        return false;
    *out = (struct hk_queue){.name = conf.queue.name, .destination = name};
    read_settings(&conf, &out->is);
    return true;
}

static void add_state(struct hk_queue *q, const struct hk_dest_status *d)
{
    q->paused = d->paused;
    q->waiting = (struct hk_count){d->pending.n + d->retrying.n + d->processing,
                                   d->pending.about || d->retrying.about};
    q->in_flight = d->processing;
    q->dead = d->dead;
}

/* Pauses, and what waits. */
static enum hk_code look_at_state(struct hk_desk *desk, struct hk_queue *items, size_t n, struct hk_err *err)
{
    const struct hk_store_status *status = NULL;
    enum hk_code rc = n ? desk->ops->status(desk->admin, &status, err) : HK_OK;
    for (size_t i = 0; rc == HK_OK && i < n; i++)
        for (size_t d = 0; d < status->n_dests; d++)
            if (hk_str_eq(status->dests[d].name, hk_str_of(items[i].destination)))
                add_state(&items[i], &status->dests[d]);
    return rc;
}

enum hk_code hk_queue_find(struct hk_desk *desk, const char *name, struct hk_pool *mem, struct hk_queue *out,
                           int64_t *out_version, struct hk_err *err)
{
    char destination[HK_NAME_MAX];
    const struct hk_definitions *found = NULL;
    enum hk_code rc = check_name(desk, name, err);
    if (rc != HK_OK)
        return rc;
    hk_queue_destination(name, destination);
    rc = desk->ops->definitions(desk->admin, destination, &found, err);
    if (rc != HK_OK)
        return rc;
    if (found->n == 0 || !read_queue(desk, &found->items[0], mem, out) || strcmp(out->name, name) != 0)
        return no_queue(name, err);
    if (out_version)
        *out_version = found->items[0].version;
    return HK_OK;
}

/* Of a name without a slash: the only queue that ends so. */
static enum hk_code find_by_id(struct hk_desk *desk, const char *id, struct hk_pool *mem, const char **out,
                               struct hk_err *err)
{
    const struct hk_definitions *all = NULL;
    struct hk_queue found = {.name = NULL}, q;
    char shown[HK_SHOW_MAX], one[HK_SHOW_MAX], other[HK_SHOW_MAX];
    enum hk_code rc = desk->ops->definitions(desk->admin, NULL, &all, err);
    for (size_t i = 0; rc == HK_OK && i < all->n; i++) {
        if (!read_queue(desk, &all->items[i], mem, &q) || strcmp(strrchr(q.name, '/') + 1, id) != 0)
            continue;
        if (found.name)
            return hk_err_set(err, HK_INVALID, "several queues are named %s (%s, %s …): give the whole name",
                              hk_show(hk_str_of(id), shown), hk_show(hk_str_of(found.name), one),
                              hk_show(hk_str_of(q.name), other));
        found = q;
    }
    if (rc == HK_OK && !found.name)
        return no_queue(id, err);
    *out = found.name;
    return rc;
}

enum hk_code hk_queue_resolve(struct hk_desk *desk, const char *name, struct hk_pool *mem, const char **out,
                              struct hk_err *err)
{
    enum hk_code rc = hk_queues_on(desk, err);
    if (rc != HK_OK)
        return rc;
    if (!strchr(name, '/'))
        return find_by_id(desk, name, mem, out, err);
    *out = name;
    return HK_OK;
}

/* ---- making and changing ---- */

static int64_t burst_for(const struct hk_conf_queue_limits *usual, double rate_per_s)
{
    if (usual->burst)
        return usual->burst;
    double burst = rate_per_s / 5;
    return burst < BURST_MIN ? BURST_MIN : burst > BURST_MAX ? BURST_MAX : (int64_t)burst;
}

/* The resulting settings: the old ones, changed by the given ones. `given` of `is`: the settings that the definition itself has. */
static void merge(struct hk_queue_settings *is, const struct hk_queue_put_ask *ask)
{
    const struct hk_queue_settings *to = &ask->to;
    for (unsigned bit = 0; bit < 9; bit++)
        if (ask->absent[bit])
            is->given &= ~(1u << bit);
    is->given |= to->given;
    if (to->given & HK_QUEUE_RATE)
        is->rate_per_s = to->rate_per_s;
    if (to->given & HK_QUEUE_BURST)
        is->burst = to->burst;
    if (to->given & HK_QUEUE_CONCURRENCY)
        is->concurrency = to->concurrency;
    if (to->given & HK_QUEUE_MAX_ATTEMPTS)
        is->max_attempts = to->max_attempts;
    if (to->given & HK_QUEUE_MAX_RETRY)
        is->max_retry_ms = to->max_retry_ms;
    if (to->given & HK_QUEUE_MIN_BACKOFF)
        is->min_backoff_ms = to->min_backoff_ms;
    if (to->given & HK_QUEUE_MAX_BACKOFF)
        is->max_backoff_ms = to->max_backoff_ms;
    if (to->given & HK_QUEUE_MAX_DOUBLINGS)
        is->max_doublings = to->max_doublings;
    if (to->given & HK_QUEUE_POLICY)
        is->policy = to->policy;
}

static enum hk_code check_range(const char *field, double value, double lo, double hi, struct hk_err *err)
{
    if (value >= lo && value <= hi)
        return HK_OK;
    return hk_err_set(err, HK_INVALID, "%s must be %g to %g, not %g", field, lo, hi, value);
}

static enum hk_code check_settings(const struct hk_queue_settings *s, struct hk_err *err)
{
    const struct {
        unsigned bit;
        const char *field;
        double value, lo, hi;
    } ranges[] = {
        {HK_QUEUE_RATE, "rateLimits.maxDispatchesPerSecond", s->rate_per_s, 0.0001, 500},
        {HK_QUEUE_BURST, "rateLimits.maxBurstSize", (double)s->burst, 1, 500},
        {HK_QUEUE_CONCURRENCY, "rateLimits.maxConcurrentDispatches", (double)s->concurrency, 1, 5000},
        {HK_QUEUE_MAX_ATTEMPTS, "retryConfig.maxAttempts", (double)s->max_attempts, -1, 1000000},
        {HK_QUEUE_MAX_RETRY, "retryConfig.maxRetryDuration in ms", (double)s->max_retry_ms, 0, 31536000000.0},
        {HK_QUEUE_MIN_BACKOFF, "retryConfig.minBackoff in ms", (double)s->min_backoff_ms, 1, 86400000},
        {HK_QUEUE_MAX_BACKOFF, "retryConfig.maxBackoff in ms", (double)s->max_backoff_ms, 1, 86400000},
        {HK_QUEUE_MAX_DOUBLINGS, "retryConfig.maxDoublings", (double)s->max_doublings, 0, 16},
    };

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        enum hk_code rc = s->given & ranges[i].bit
                              ? check_range(ranges[i].field, ranges[i].value, ranges[i].lo, ranges[i].hi, err)
                              : HK_OK;
        if (rc != HK_OK)
            return rc;
    }
    if (s->given & HK_QUEUE_MAX_ATTEMPTS && s->max_attempts == 0)
        return hk_err_set(err, HK_INVALID, "retryConfig.maxAttempts must be 1 or more, or -1 for no limit");
    bool both = s->given & HK_QUEUE_MIN_BACKOFF && s->given & HK_QUEUE_MAX_BACKOFF;
    if (both && s->min_backoff_ms > s->max_backoff_ms)
        return hk_err_set(err, HK_INVALID, "retryConfig.minBackoff must not be above maxBackoff");
    return HK_OK;
}

static void put_wait(struct hk_json *json, const char *key, int64_t ms)
{
    char text[HK_DURATION_TEXT_MAX];
    (void)hk_format_duration((uint64_t)ms, text);
    hk_put_cstr(json, key, ms ? text : "unlimited");
}

static void write_queue(const char *name, const struct hk_queue_settings *s, struct hk_json *json)
{
    hk_json_key(json, "queue");
    hk_json_object(json);
    hk_put_cstr(json, "name", name);
    if (s->given & HK_QUEUE_MAX_ATTEMPTS && s->max_attempts < 0)
        hk_put_cstr(json, "max_attempts", "unlimited");
    else if (s->given & HK_QUEUE_MAX_ATTEMPTS)
        hk_put_u64(json, "max_attempts", (uint64_t)s->max_attempts);
    if (s->given & HK_QUEUE_MAX_RETRY)
        put_wait(json, "max_retry_duration", s->max_retry_ms);
    if (s->given & HK_QUEUE_MIN_BACKOFF)
        put_wait(json, "min_backoff", s->min_backoff_ms);
    if (s->given & HK_QUEUE_MAX_BACKOFF)
        put_wait(json, "max_backoff", s->max_backoff_ms);
    if (s->given & HK_QUEUE_MAX_DOUBLINGS)
        hk_put_u64(json, "max_doublings", (uint64_t)s->max_doublings);
    hk_json_end(json);
}

/* Settings that the queue itself does not have come from the present configuration. */
static void write_limits(const struct hk_conf_queue_limits *usual, const struct hk_queue_settings *s,
                         struct hk_json *json)
{
    char rate[40];
    double rate_per_s = s->given & HK_QUEUE_RATE ? s->rate_per_s : usual->rate_per_s;
    (void)snprintf(rate, sizeof rate, "%.6f/s", rate_per_s);
    hk_json_key(json, "limits");
    hk_json_object(json);
    hk_put_cstr(json, "rate", rate);
    hk_put_u64(json, "burst",
               (uint64_t)(s->given & HK_QUEUE_BURST ? s->burst : burst_for(usual, rate_per_s)));
    hk_put_u64(json, "concurrency",
               s->given & HK_QUEUE_CONCURRENCY ? (uint64_t)s->concurrency : usual->concurrency);
    hk_json_end(json);
}

/* `name` NULL: as a destination that is no queue. */
static void write_definition(const struct hk_config *config, const char *name,
                             const struct hk_queue_settings *s, struct hk_buf *out)
{
    struct hk_json json;
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_json_key(&json, "http");
    hk_json_raw(&json, hk_str_of("{\"url\":\"message\"}"));
    if (s->given & HK_QUEUE_POLICY)
        hk_put_cstr(&json, "policy", s->policy);
    write_limits(&config->queues.limits, s, &json);
    if (name)
        write_queue(name, s, &json);
    hk_json_end(&json);
}

static enum hk_code check_room(struct hk_desk *desk, struct hk_err *err)
{
    const struct hk_definitions *all = NULL;
    enum hk_code rc = desk->ops->definitions(desk->admin, NULL, &all, err);
    if (rc == HK_OK && all->n >= desk->config->queues.max)
        rc = hk_err_set(err, HK_RANGE, "there are %zu queues already: queues.max is %" PRIu32, all->n,
                        desk->config->queues.max);
    return rc;
}

/* Checks the definition as every relay will, then keeps it. */
static enum hk_code keep_queue(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_queue_put_ask *ask, const struct hk_queue_settings *s,
                               int64_t version, struct hk_pool *mem, struct hk_queue *out, struct hk_err *err)
{
    struct hk_buf text;
    struct hk_defined done;
    char destination[HK_NAME_MAX];
    hk_queue_destination(ask->name, destination);
    hk_buf_init(&text, HK_DEFINITION_BYTES);
    write_definition(desk->config, ask->name, s, &text);
    enum hk_code rc = hk_buf_status(&text) == HK_OK ? HK_OK : no_memory(err);
    struct hk_conf_destination conf = {.given = 0};
    const struct hk_definition_ask check = {
        .config = desk->config, .name = destination, .text = hk_buf_str(&text)};
    if (rc == HK_OK)
        rc = hk_config_define(&check, mem, &conf, NULL, err);
    const struct hk_define define = {.name = destination,
                                     .text = hk_buf_str(&text),
                                     .version = version,
                                     .actor = caller->actor,
                                     .reason = caller->reason};
    if (rc == HK_OK)
        rc = desk->ops->define(desk->admin, &define, &done, err);
    if (rc == HK_OK) {
        *out = (struct hk_queue){.name = conf.queue.name,
                                 .destination = hk_pool_copy_str(mem, hk_str_of(destination))};
        read_settings(&conf, &out->is);
        rc = out->destination ? HK_OK : no_memory(err);
    }
    hk_buf_fini(&text);
    return rc;
}

/* Somebody else was faster with it, or what is left of a queue of that name still has to go. */
static enum hk_code refuse_making(struct hk_desk *desk, const struct hk_queue_put_ask *ask,
                                  struct hk_pool *mem, struct hk_err *err)
{
    struct hk_queue is;
    char shown[HK_SHOW_MAX];
    hk_show(hk_str_of(ask->name), shown);
    enum hk_code rc = hk_queue_find(desk, ask->name, mem, &is, NULL, err);
    if (rc == HK_NOTFOUND)
        return hk_err_set(err, HK_BUSY, "queue %s is being deleted, and its tasks with it: try again later",
                          shown);
    if (rc != HK_OK)
        return rc;
    return hk_err_set(err, ask->create ? HK_EXISTS : HK_CONFLICT, "there is a queue %s already", shown);
}

static enum hk_code put_once(struct hk_desk *desk, const struct hk_caller *caller,
                             const struct hk_queue_put_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                             struct hk_err *err)
{
    struct hk_queue was = {.name = NULL};
    int64_t version = HK_DEFINITION_MISSING;
    bool changed = false;
    enum hk_code rc = hk_queue_find(desk, ask->name, mem, &was, &version, err);
    char shown[HK_SHOW_MAX];
    if (rc == HK_OK && ask->create)
        return hk_err_set(err, HK_EXISTS, "there is a queue %s already",
                          hk_show(hk_str_of(ask->name), shown));
    if (rc != HK_OK && rc != HK_NOTFOUND)
        return rc;
    bool made = rc == HK_NOTFOUND;
    if (made && (rc = check_room(desk, err)) != HK_OK)
        return rc;
    struct hk_queue_settings is = was.is;
    if (made)
        version = HK_DEFINITION_MISSING;
    merge(&is, ask);
    rc = check_settings(&is, err);
    if (rc == HK_OK)
        rc = keep_queue(desk, caller, ask, &is, version, mem, out, err);
    if (rc == HK_CONFLICT && made)
        return refuse_making(desk, ask, mem, err);
    if (rc == HK_OK)
        rc = look_at_state(desk, out, 1, err);
    if (rc == HK_OK && made && out->paused) { /* one of that name was, once */
        rc = desk->ops->pause(desk->admin, out->destination, false, caller->actor, caller->reason, &changed,
                              err);
        out->paused = rc != HK_OK;
    }
    return rc;
}

/* Nobody names a version here: who changes one field means no other, so a change that came in between does no harm. */
enum hk_code hk_queue_put(struct hk_desk *desk, const struct hk_caller *caller,
                          const struct hk_queue_put_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                          struct hk_err *err)
{
    enum hk_code rc = put_once(desk, caller, ask, mem, out, err);
    for (unsigned tries = 1; rc == HK_CONFLICT && tries < PUT_TRIES && !hk_caller_stops(caller); tries++)
        rc = put_once(desk, caller, ask, mem, out, err);
    return rc;
}

enum hk_code hk_queue_unmake(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                             struct hk_pool *mem, struct hk_err *err)
{
    struct hk_queue is;
    struct hk_buf text;
    struct hk_defined done;
    int64_t version = 0;
    enum hk_code rc = hk_queue_find(desk, name, mem, &is, &version, err);
    if (rc != HK_OK)
        return rc == HK_NOTFOUND ? HK_OK : rc;
    hk_buf_init(&text, HK_DEFINITION_BYTES);
    write_definition(desk->config, NULL, &is.is, &text);
    const struct hk_define define = {.name = is.destination,
                                     .text = hk_buf_str(&text),
                                     .version = version,
                                     .actor = caller->actor,
                                     .reason = caller->reason};
    rc = hk_buf_status(&text) == HK_OK ? desk->ops->define(desk->admin, &define, &done, err) : no_memory(err);
    hk_buf_fini(&text);
    return rc;
}

/* ---- looking ---- */

static enum hk_code find_meant(struct hk_desk *desk, const char *name, struct hk_pool *mem,
                               struct hk_queue *out, struct hk_err *err)
{
    const char *whole = NULL;
    enum hk_code rc = hk_queue_resolve(desk, name, mem, &whole, err);
    if (rc == HK_OK)
        rc = hk_queue_find(desk, whole, mem, out, NULL, err);
    return rc == HK_OK ? look_at_state(desk, out, 1, err) : rc;
}

static enum hk_code show_queue(struct hk_desk *desk, const struct hk_caller *caller,
                               const struct hk_queue_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                               struct hk_err *err)
{
    (void)caller;
    return find_meant(desk, ask->name, mem, out, err);
}

static bool is_below(const char *name, const char *parent)
{
    size_t n = strlen(parent);
    return strncmp(name, parent, n) == 0 && strncmp(name + n, "/queues/", 8) == 0;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const struct hk_queue *)a)->name, ((const struct hk_queue *)b)->name);
}

static enum hk_code list_queues(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_queues_ask *ask, struct hk_pool *mem, struct hk_queues *out,
                                struct hk_err *err)
{
    const struct hk_definitions *all = NULL;
    (void)caller;
    enum hk_code rc = hk_queues_on(desk, err);
    if (rc == HK_OK)
        rc = desk->ops->definitions(desk->admin, NULL, &all, err);
    if (rc != HK_OK)
        return rc;
    struct hk_queues o = {.items = hk_pool_alloc(mem, all->n + 1, sizeof *o.items)};
    if (!o.items)
        return no_memory(err);
    for (size_t i = 0; i < all->n; i++) {
        struct hk_queue *q = &o.items[o.n];
        if (read_queue(desk, &all->items[i], mem, q) && (!ask->parent || is_below(q->name, ask->parent)) &&
            (!ask->after || strcmp(q->name, ask->after) > 0))
            o.n++;
    }
    qsort(o.items, o.n, sizeof *o.items, by_name);
    if (o.n > ask->limit) {
        o.n = ask->limit;
        o.next = o.items[o.n - 1].name;
    }
    rc = look_at_state(desk, o.items, o.n, err);
    *out = o;
    return rc;
}

/* ---- pausing ---- */

static enum hk_code set_paused(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                               bool paused, struct hk_pool *mem, struct hk_queue *out, struct hk_err *err)
{
    bool changed = false;
    enum hk_code rc = find_meant(desk, name, mem, out, err);
    if (rc == HK_OK)
        rc = desk->ops->pause(desk->admin, out->destination, paused, caller->actor, caller->reason, &changed,
                              err);
    out->paused = paused;
    return rc;
}

static enum hk_code pause_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                const struct hk_queue_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                                struct hk_err *err)
{
    return set_paused(desk, caller, ask->name, true, mem, out, err);
}

static enum hk_code resume_queue(struct hk_desk *desk, const struct hk_caller *caller,
                                 const struct hk_queue_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                                 struct hk_err *err)
{
    return set_paused(desk, caller, ask->name, false, mem, out, err);
}

/* ---- the table ---- */

static enum hk_code put_queue(struct hk_desk *desk, const struct hk_caller *caller,
                              const struct hk_queue_put_ask *ask, struct hk_pool *mem, struct hk_queue *out,
                              struct hk_err *err)
{
    return hk_queue_put(desk, caller, ask, mem, out, err);
}

HK_OP_RUN(put_queue)
HK_OP_RUN(show_queue)
HK_OP_RUN(list_queues)
HK_OP_RUN(pause_queue)
HK_OP_RUN(resume_queue)

static const struct hk_arg list_args[] = {
    {HK_ARG(hk_queues_ask, parent, HK_ARG_TEXT, "PARENT",
            "list only queues of this project and location: projects/P/locations/L")},
    {HK_ARG(hk_queues_ask, limit, HK_ARG_NUMBER, "N", "list at most this many (default: 100)"), .lo = 1,
     .hi = 1000, .fallback = 100},
    {HK_ARG(hk_queues_ask, after, HK_ARG_TEXT, "NAME",
            "continue after this queue (\"next\" of an earlier list)")},
    {.name = NULL}};

static const struct hk_arg queue_args[] = {{HK_SUBJECT(hk_queue_ask, name, "NAME", NULL)}, {.name = NULL}};

#define LOOK_AT_ONE "NAME is projects/P/locations/L/queues/Q, or Q where no other queue ends so."

const struct hk_op hk_op_queues_put = {.noun = "queues",
                                       .verb = "put",
                                       .summary = "make or change a queue",
                                       .role = HK_ROLE_ADMIN,
                                       .store = true,
                                       .changes = true,
                                       .needs_reason = true,
                                       .request_size = sizeof(struct hk_queue_put_ask),
                                       .result_size = sizeof(struct hk_queue),
                                       .run = put_queue_op};

const struct hk_op hk_op_queues_list = {.noun = "queues",
                                        .verb = "list",
                                        .summary = "list the queues of Cloud Tasks by name",
                                        .route = "GET /queues",
                                        .role = HK_ROLE_VIEWER,
                                        .store = true,
                                        .args = list_args,
                                        .request_size = sizeof(struct hk_queues_ask),
                                        .result_size = sizeof(struct hk_queues),
                                        .run = list_queues_op,
                                        .form = hk_form_queues};

const struct hk_op hk_op_queues_show = {.noun = "queues",
                                        .verb = "show",
                                        .summary = "show one queue: limits, retries, waiting and dead tasks",
                                        .details = LOOK_AT_ONE,
                                        .route = "GET /queues/{name}",
                                        .role = HK_ROLE_VIEWER,
                                        .store = true,
                                        .args = queue_args,
                                        .request_size = sizeof(struct hk_queue_ask),
                                        .result_size = sizeof(struct hk_queue),
                                        .run = show_queue_op,
                                        .form = hk_form_queue};

const struct hk_op hk_op_queues_pause = {.noun = "queues",
                                         .verb = "pause",
                                         .summary =
                                             "pause a queue: its tasks wait, and no attempt is charged",
                                         .details = LOOK_AT_ONE,
                                         .route = "POST /queues/{name}/pause",
                                         .role = HK_ROLE_OPERATOR,
                                         .store = true,
                                         .changes = true,
                                         .needs_reason = true,
                                         .args = queue_args,
                                         .request_size = sizeof(struct hk_queue_ask),
                                         .result_size = sizeof(struct hk_queue),
                                         .run = pause_queue_op,
                                         .form = hk_form_queue};

const struct hk_op hk_op_queues_resume = {.noun = "queues",
                                          .verb = "resume",
                                          .summary = "resume a paused queue",
                                          .details = LOOK_AT_ONE,
                                          .route = "POST /queues/{name}/resume",
                                          .role = HK_ROLE_OPERATOR,
                                          .store = true,
                                          .changes = true,
                                          .needs_reason = true,
                                          .args = queue_args,
                                          .request_size = sizeof(struct hk_queue_ask),
                                          .result_size = sizeof(struct hk_queue),
                                          .run = resume_queue_op,
                                          .form = hk_form_queue};
