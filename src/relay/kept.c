/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "config/definition.h"
#include "core/policy_impl.h"
#include "relay/kept.h"
#include "relay/wiring.h"

enum {
    STEP_MAX = 32,        /* applied in one round: each is parsed and checked */
    READ_AGAIN_MS = 1000, /* after an error of the store */
    LOOK_AGAIN_MS = 5000, /* at those that are held */
    IDLE_MS = 60000,      /* a sink that sent nothing for so long is closed */
    BEAT_MS = 1000,
    OWN_MAX = 4096,
    LOGGED_MAX = 20 /* lines for one change of the store; the rest is counted */
};

struct kept {
    char *name;
    char *text; /* as it is used; NULL: never yet */
    size_t text_len;
    char *fresh; /* as the store has it now; NULL: as `text` */
    size_t fresh_len;
    int64_t version, seq;
    size_t place; /* SIZE_MAX: the engine does not have it */
    const struct hk_policy *policy;
    struct hk_kept_sink *sink; /* NULL: closed */
    bool held;
    char *why; /* … and why; NULL: there was no memory for the words */
    uint64_t breaker_open_ms;
    bool auto_redrive;
    bool of_file; /* the configuration has one of that name */
    bool dirty;   /* to be applied */
    bool gone;    /* the store has it no more */
    bool seen;    /* by the reading under way */
};

struct hk_kept_sink {
    struct hk_sink *sink;
    struct hk_kept *all;
    bool full;          /* it had no room for a message, and has not said since that it has some */
    struct kept *owner; /* NULL: another one has taken its place, or it is gone */
    uint32_t in_flight;
    int64_t used_ms;
    struct hk_kept_sink *next; /* of all that are open */
};

struct hk_kept {
    struct hk_kept_options options;
    struct hk_engine *engine; /* NULL between two configurations */
    const struct hk_config *config;
    struct kept **items; /* by name */
    size_t n, room;
    struct kept **places; /* by the engine's place; NULL = none of these */
    size_t n_places;
    struct hk_kept_sink *sinks;
    struct hk_policy **
        own; /* policies of queues, each once; they live as long as this does, for attempts may use them yet */
    size_t n_own, own_room;
    size_t n_held;
    int64_t told, read; /* versions: the newest that polls reported, and the one that was read */
    int64_t read_at_ms; /* not before, after an error */
    size_t next;        /* the first that may be dirty; n = none is */
    int64_t look_at_ms, beat_at_ms;
    uint64_t changes;
    unsigned logged, unlogged; /* lines since the last reading */
    bool applied;              /* the engine knows what was read */
    bool many;                 /* the first reading, or a new engine: only sums are logged */
};

enum hk_code hk_kept_new(const struct hk_kept_options *options, struct hk_kept **out, struct hk_err *err)
{
    struct hk_kept *k = hk_mem_zalloc(1, sizeof *k);
    if (!k)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    k->options = *options;
    k->many = true;
    *out = k;
    return HK_OK;
}

/* ---- sinks ---- */

static void close_sink(struct hk_kept *k, struct hk_kept_sink *s)
{
    struct hk_kept_sink **at = &k->sinks;
    while (*at != s)
        at = &(*at)->next;
    *at = s->next;
    if (s->owner)
        s->owner->sink = NULL;
    s->sink->ops->close(s->sink);
    hk_mem_free(s);
}

static void has_room(const struct hk_kept *k, const struct kept *d)
{
    if (k->options.has_room && d->place != SIZE_MAX)
        k->options.has_room(k->options.arg, d->place);
}

static void on_room(void *arg)
{
    struct hk_kept_sink *s = arg;
    s->full = false;
    if (s->owner)
        has_room(s->all, s->owner);
}

/* Nothing more goes there. What is on its way ends as it will. Nobody is to wait for room in it. */
static void retire_sink(const struct hk_kept *k, struct kept *d)
{
    bool full = d->sink && d->sink->full;
    if (d->sink)
        d->sink->owner = NULL;
    d->sink = NULL;
    if (full)
        has_room(k, d);
}

static void close_idle(struct hk_kept *k, int64_t now_ms)
{
    for (struct hk_kept_sink *s = k->sinks, *next; s; s = next) {
        next = s->next;
        if (!s->in_flight && (!s->owner || (!s->full && now_ms - s->used_ms >= IDLE_MS)))
            close_sink(k, s);
    }
}

static enum hk_code define(const struct hk_kept *k, const struct kept *d, struct hk_pool *mem,
                           struct hk_conf_destination *out, struct hk_err *err)
{
    const struct hk_definition_ask ask = {
        .config = k->config, .name = d->name, .text = {d->text, d->text_len}, .secrets = true};
    return hk_config_define(&ask, mem, out, NULL, err);
}

static enum hk_code open_sink(struct hk_kept *k, struct kept *d, struct hk_err *err)
{
    struct hk_pool mem = {NULL};
    struct hk_conf_destination conf;
    struct hk_kept_sink *s = hk_mem_zalloc(1, sizeof *s);
    enum hk_code rc = s ? define(k, d, &mem, &conf, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    if (rc == HK_OK)
        rc = hk_wiring_sink(&conf, k->options.loop, &s->sink, err);
    hk_pool_wipe(&mem);
    if (rc != HK_OK) {
        hk_mem_free(s);
        return rc;
    }
    s->sink->room = on_room;
    s->sink->room_arg = s;
    s->all = k;
    s->owner = d;
    s->next = k->sinks;
    k->sinks = s;
    d->sink = s;
    return HK_OK;
}

/* ---- names and places ---- */

static int compare(const void *a, const void *b)
{
    const struct kept *const *x = a;
    const struct kept *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static struct kept *find(const struct hk_kept *k, size_t n, struct hk_str name)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct hk_str here = hk_str_of(k->items[mid]->name);
        size_t len = here.len < name.len ? here.len : name.len;
        int cmp = memcmp(here.ptr, name.ptr, len);
        if (cmp == 0 && here.len == name.len)
            return k->items[mid];
        if (cmp < 0 || (cmp == 0 && here.len < name.len))
            lo = mid + 1;
        else
            hi = mid;
    }
    return NULL;
}

/* An engine has no more places than it has, and had, destinations: those of the configuration and these. */
static bool make_places(struct hk_kept *k)
{
    size_t most = k->config->destinations.n + k->n + 1;
    if (most <= k->n_places)
        return true;
    size_t room = most + most / 2;
    struct kept **places = hk_mem_zalloc(room, sizeof(struct kept *));
    if (!places)
        return false;
    if (k->n_places) /* pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
        memcpy(places, k->places, k->n_places * sizeof *places);
    hk_mem_free(k->places);
    k->places = places;
    k->n_places = room;
    return true;
}

static void free_kept(struct kept *d)
{
    if (!d)
        return;
    hk_mem_free(d->name);
    hk_mem_free(d->text);
    hk_mem_free(d->fresh);
    hk_mem_free(d->why);
    hk_mem_free(d);
}

void hk_kept_free(struct hk_kept *k)
{
    if (!k)
        return;
    hk_kept_end(k);
    for (size_t i = 0; i < k->n; i++)
        free_kept(k->items[i]);
    for (size_t i = 0; i < k->n_own; i++)
        hk_policy_free(k->own[i]);
    hk_mem_free(k->own);
    hk_mem_free(k->items);
    hk_mem_free(k->places);
    hk_mem_free(k);
}

/* ---- what is said ---- */

static bool may_log(struct hk_kept *k)
{
    bool may = !k->many && k->logged < LOGGED_MAX;
    k->logged += may;
    k->unlogged += !may;
    return may;
}

static void log_change(struct hk_kept *k, const struct kept *d, const char *event)
{
    struct hk_log_line line;
    if (!may_log(k))
        return;
    hk_log_begin(&line, k->options.log, HK_LOG_INFO, event);
    hk_log_cstr(&line, "destination", d->name);
    hk_log_i64(&line, "version", d->version);
    hk_log_end(&line);
}

static void log_held(struct hk_kept *k, const struct kept *d, const char *why)
{
    struct hk_log_line line;
    if (k->logged >= LOGGED_MAX) {
        k->unlogged++;
        return;
    }
    k->logged++;
    hk_log_begin(&line, k->options.log, HK_LOG_WARN,
                 "destination of the store cannot be used here: its messages wait");
    hk_log_cstr(&line, "destination", d->name);
    hk_log_cstr(&line, "error", why);
    hk_log_end(&line);
}

static void log_sum(struct hk_kept *k)
{
    struct hk_log_line line;
    if (k->unlogged > 0 || (k->many && k->n > 0)) {
        hk_log_begin(&line, k->options.log, k->n_held ? HK_LOG_WARN : HK_LOG_INFO,
                     "destinations of the store");
        hk_log_i64(&line, "destinations", (int64_t)k->n);
        hk_log_i64(&line, "held", (int64_t)k->n_held);
        hk_log_i64(&line, "version", k->read);
        hk_log_end(&line);
    }
    k->many = false;
    k->logged = k->unlogged = 0;
}

/* ---- applying one ---- */

/* `why` NULL: it is used. Said once, until it is another one. */
static void set_held(struct hk_kept *k, struct kept *d, const char *why)
{
    bool same = d->why && why && strcmp(d->why, why) == 0;
    if (same || (!d->held && !why))
        return;
    if (d->held && !why && !d->gone)
        log_change(k, d, "destination of the store can be used again");
    k->n_held += !d->held;
    k->n_held -= !why;
    hk_mem_free(d->why);
    d->held = why != NULL;
    d->why = why ? hk_mem_strdup(why) : NULL;
    if (why)
        log_held(k, d, why);
}

static struct hk_engine_dest held_conf(const struct hk_kept *k, const struct kept *d)
{
    struct hk_engine_dest conf = {.name = d->name,
                                  .policy = hk_policies_get(k->config->policies, k->config->default_policy),
                                  .held = true};
    hk_limiter_options_init(&conf.limiter);
    conf.limiter.burst = 1;
    return conf;
}

/* False: the engine could not take it, and it is tried again. */
static bool put(struct hk_kept *k, struct kept *d, const struct hk_engine_dest *conf, int64_t now_ms)
{
    struct hk_err err = {.message = ""};
    size_t place = SIZE_MAX;
    if (!make_places(k) || hk_engine_put_dest(k->engine, now_ms, conf, &place, &err) != HK_OK)
        return false;
    if (d->place != SIZE_MAX && d->place != place && k->places[d->place] == d)
        k->places[d->place] = NULL;
    k->places[place] = d;
    d->place = place;
    d->policy = conf->policy;
    return true;
}

/* Can its files be read now? Only a trial tells. And of one that was held: can its sink be opened? */
static enum hk_code try_sink(const struct hk_kept *k, const struct kept *d,
                             const struct hk_conf_destination *conf, struct hk_err *err)
{
    struct hk_sink *sink = NULL;
    if (!hk_conf_has_files(conf) && !d->held)
        return HK_OK;
    enum hk_code rc = hk_wiring_sink(conf, k->options.loop, &sink, err);
    if (rc == HK_OK)
        sink->ops->close(sink);
    return rc;
}

static bool over_max(const struct hk_kept *k, const struct kept *d)
{
    return k->n > k->config->definitions.max && k->items[k->config->definitions.max] &&
           strcmp(d->name, k->items[k->config->definitions.max]->name) >= 0;
}

static void use_fresh(const struct hk_kept *k, struct kept *d)
{
    if (!d->fresh)
        return;
    retire_sink(k, d);
    hk_mem_free(d->text);
    d->text = d->fresh;
    d->text_len = d->fresh_len;
    d->fresh = NULL;
}

/* A queue has its own policy, in the memory of its definition. Most queues share a few policies. */
static enum hk_code own_policy(struct hk_kept *k, const struct hk_policy *policy, struct hk_engine_dest *dest,
                               struct hk_err *err)
{
    if (!policy)
        return HK_OK;
    for (size_t i = 0; i < k->n_own; i++)
        if (hk_policy_same(k->own[i], policy)) {
            dest->policy = k->own[i];
            return HK_OK;
        }
    if (k->n_own == OWN_MAX)
        return hk_err_set(err, HK_RANGE, "there are more than %d different retry settings of queues",
                          OWN_MAX);
    if (k->n_own == k->own_room) {
        size_t room = k->own_room ? 2 * k->own_room : 8;
        struct hk_policy **own = hk_mem_resize(k->own, room * sizeof(struct hk_policy *));
        if (!own)
            return hk_err_set(err, HK_NOMEM, "out of memory");
        k->own = own;
        k->own_room = room;
    }
    enum hk_code rc = hk_policy_copy(policy, &k->own[k->n_own], err);
    if (rc == HK_OK)
        dest->policy = k->own[k->n_own++];
    return rc;
}

static bool apply_used(struct hk_kept *k, struct kept *d, int64_t now_ms)
{
    struct hk_pool mem = {NULL};
    struct hk_conf_destination conf;
    struct hk_err err = {.message = ""};
    struct hk_engine_dest dest;
    enum hk_code rc = HK_OK;
    if (over_max(k, d))
        rc = hk_err_set(&err, HK_RANGE, "there are more than definitions.max of the configuration lets in");
    if (rc == HK_OK)
        rc = define(k, d, &mem, &conf, &err);
    if (rc == HK_OK)
        rc = try_sink(k, d, &conf, &err);
    if (rc == HK_OK)
        dest = hk_wiring_dest(k->config, &conf);
    if (rc == HK_OK)
        rc = own_policy(k, conf.own_policy, &dest, &err);
    d->auto_redrive = rc == HK_OK && conf.auto_redrive && conf.has_breaker;
    d->breaker_open_ms = rc == HK_OK && conf.has_breaker ? conf.breaker.open_ms : 0;
    if (rc == HK_OK)
        dest.name = d->name;
    else
        dest = held_conf(k, d);
    bool ok = put(k, d, &dest, now_ms);
    hk_pool_wipe(&mem);
    if (ok)
        set_held(k, d, rc == HK_OK ? NULL : err.message);
    return ok;
}

/* Asks the engine to end the destination, if it still has it. True: it is gone. */
static bool leave_engine(struct hk_kept *k, struct kept *d, int64_t now_ms)
{
    if (d->place == SIZE_MAX)
        return true;
    size_t place = hk_engine_find_dest(k->engine, d->name);
    if (place != SIZE_MAX) {
        if (hk_engine_dest_settled(k->engine, place))
            (void)hk_engine_remove_dest(k->engine, now_ms, place);
        return false;
    }
    if (k->places[d->place] == d)
        k->places[d->place] = NULL;
    d->place = SIZE_MAX;
    return true;
}

/* False: not yet. */
static bool apply(struct hk_kept *k, struct kept *d, int64_t now_ms)
{
    if (!d->gone) {
        use_fresh(k, d);
        d->of_file = hk_config_destination_named(k->config, hk_str_of(d->name)) != NULL;
        if (!d->of_file)
            return apply_used(k, d, now_ms);
        set_held(k, d, NULL);
        return true; /* an engine that begins has the configuration's */
    }
    set_held(k, d, NULL);
    retire_sink(k, d);
    return d->of_file || leave_engine(k, d, now_ms);
}

/* ---- steps ---- */

/* Those that the store and the engine have no more. Nothing points at them: their sinks are retired. */
static void forget_gone(struct hk_kept *k)
{
    size_t n = 0;
    for (size_t i = 0; i < k->n; i++) {
        if (k->items[i]->gone && !k->items[i]->dirty)
            free_kept(k->items[i]);
        else
            k->items[n++] = k->items[i];
    }
    k->changes += n != k->n;
    k->n = k->next = n;
}

/* False: there was no memory for some; they are tried again a little later. */
static bool apply_some(struct hk_kept *k, int64_t now_ms)
{
    unsigned tried = 0;
    size_t again = SIZE_MAX;
    for (; k->next < k->n && tried < STEP_MAX; k->next++) {
        struct kept *d = k->items[k->next];
        if (!d->dirty)
            continue;
        tried++;
        d->dirty = !apply(k, d, now_ms);
        if (d->dirty && !d->gone && again == SIZE_MAX)
            again = k->next;
        k->changes++;
    }
    k->next = again != SIZE_MAX ? again : k->next;
    return again == SIZE_MAX;
}

static void look_again(struct hk_kept *k, int64_t now_ms)
{
    k->look_at_ms = now_ms + LOOK_AGAIN_MS;
    for (size_t i = 0; k->n_held > 0 && i < k->n; i++)
        if (k->items[i]->held && !k->items[i]->gone)
            k->items[i]->dirty = true;
    k->next = k->n_held > 0 ? 0 : k->next;
}

/* Those that leave the engine are asked for until they have. */
static void look_after_gone(struct hk_kept *k, int64_t now_ms)
{
    bool some = false;
    for (size_t i = 0; i < k->n; i++) {
        struct kept *d = k->items[i];
        if (d->gone && d->dirty)
            d->dirty = !apply(k, d, now_ms);
        some |= d->gone && !d->dirty;
    }
    if (some)
        forget_gone(k);
}

bool hk_kept_step(struct hk_kept *k, int64_t now_ms)
{
    if (!k->engine || (!k->n && k->applied))
        return false;
    bool beat = now_ms >= k->beat_at_ms;
    if (beat) {
        k->beat_at_ms = now_ms + BEAT_MS;
        close_idle(k, now_ms);
    }
    if (k->applied && beat) {
        if (now_ms >= k->look_at_ms)
            look_again(k, now_ms);
        look_after_gone(k, now_ms);
    }
    if (k->applied && k->next == k->n)
        return false;
    if (!apply_some(k, now_ms))
        return false;
    if (k->next < k->n)
        return true;
    if (!k->applied) {
        k->applied = true;
        hk_engine_know_dests(k->engine, k->read);
        log_sum(k);
    }
    return false;
}

void hk_kept_begin(struct hk_kept *k, struct hk_engine *engine, const struct hk_config *config)
{
    k->engine = engine;
    k->config = config;
    k->next = 0;
    k->applied = k->many = false;
    if (k->read == 0 && k->n == 0) { /* there is nothing, or nobody has asked yet */
        k->applied = true;
        return;
    }
    k->many = true;
    for (size_t i = 0; i < k->n; i++)
        k->items[i]->dirty = true;
}

void hk_kept_end(struct hk_kept *k)
{
    while (k->sinks)
        close_sink(k, k->sinks);
    for (size_t i = 0; i < k->n; i++)
        k->items[i]->place = SIZE_MAX;
    for (size_t i = 0; i < k->n_places; i++)
        k->places[i] = NULL;
    k->engine = NULL;
}

/* ---- from the store ---- */

void hk_kept_told(struct hk_kept *k, int64_t version)
{
    k->told = version;
}

int64_t hk_kept_read_at_ms(const struct hk_kept *k)
{
    return k->engine && k->told != k->read ? k->read_at_ms : INT64_MAX;
}

/* A store that was set back to an earlier state is read as if nothing were known. */
int64_t hk_kept_known(const struct hk_kept *k)
{
    return k->told < k->read ? 0 : k->read;
}

void hk_kept_failed(struct hk_kept *k, int64_t now_ms)
{
    k->read_at_ms = now_ms + READ_AGAIN_MS;
}

/* False: no memory. */
static bool take_text(struct kept *d, const struct hk_definition *from)
{
    char *text = hk_mem_strndup(from->text.ptr, from->text.len);
    if (!text)
        return false;
    hk_mem_free(d->fresh);
    d->fresh = text;
    d->fresh_len = from->text.len;
    return true;
}

static bool make_room(struct hk_kept *k)
{
    if (k->n < k->room)
        return true;
    size_t room = k->room + k->room / 2 + 16;
    struct kept **items = hk_mem_zalloc(room, sizeof(struct kept *));
    if (!items)
        return false;
    if (k->n) /* pointers. NOLINTNEXTLINE(bugprone-sizeof-expression) */
        memcpy(items, k->items, k->n * sizeof *items);
    hk_mem_free(k->items);
    k->items = items;
    k->room = room;
    return true;
}

static bool add_kept(struct hk_kept *k, const struct hk_definition *from)
{
    struct kept *d = make_room(k) ? hk_mem_zalloc(1, sizeof *d) : NULL;
    if (d)
        *d = (struct kept){.name = hk_mem_strndup(from->name.ptr, from->name.len),
                           .place = SIZE_MAX,
                           .version = from->version,
                           .seq = from->seq,
                           .dirty = true,
                           .seen = true};
    if (!d || !d->name || !take_text(d, from)) {
        free_kept(d);
        return false;
    }
    k->items[k->n++] = d;
    log_change(k, d, "destination added");
    return true;
}

/* False: no memory, or its text is not there although it must be: all is to be read again. */
static bool take_one(struct hk_kept *k, size_t n_before, const struct hk_definition *from)
{
    struct kept *d = find(k, n_before, from->name);
    if (!d)
        return from->text.ptr && add_kept(k, from);
    d->seen = true;
    bool same = !d->gone && d->version == from->version && d->seq == from->seq;
    struct hk_str last = {d->fresh ? d->fresh : d->text, d->fresh ? d->fresh_len : d->text_len};
    if (same && (!from->text.ptr || hk_str_eq(from->text, last)))
        return true;
    if (!from->text.ptr || !take_text(d, from))
        return false;
    d->version = from->version;
    d->seq = from->seq;
    d->gone = false;
    d->dirty = true;
    log_change(k, d, "destination changed");
    return true;
}

static void leave_out(struct hk_kept *k)
{
    for (size_t i = 0; i < k->n; i++) {
        struct kept *d = k->items[i];
        if (d->seen || d->gone)
            continue;
        d->gone = d->dirty = true;
        log_change(k, d, "destination removed");
    }
}

void hk_kept_take(struct hk_kept *k, const struct hk_definitions *found, int64_t now_ms)
{
    bool ok = true;
    size_t before = k->n;
    for (size_t i = 0; i < k->n; i++)
        k->items[i]->seen = false;
    for (size_t i = 0; ok && i < found->n; i++)
        ok = take_one(k, before, &found->items[i]);
    if (k->n > 1)
        qsort(k->items, k->n, sizeof(struct kept *), compare);
    k->next = 0;
    if (!ok) { /* what is known of them may be anything: from the start, a little later */
        k->read = -1;
        hk_kept_failed(k, now_ms);
        return;
    }
    leave_out(k);
    k->read = found->version;
    k->read_at_ms = now_ms;
    k->applied = false;
    k->changes++;
}

/* ---- deliveries ---- */

static struct kept *at(const struct hk_kept *k, size_t place)
{
    return place < k->n_places ? k->places[place] : NULL;
}

bool hk_kept_at(const struct hk_kept *k, size_t place, const char **out_name,
                const struct hk_policy **out_policy)
{
    const struct kept *d = at(k, place);
    if (!d)
        return false;
    *out_name = d->name;
    *out_policy = d->policy;
    return true;
}

enum hk_code hk_kept_send(struct hk_kept *k, size_t place, int64_t now_ms, struct hk_kept_sink **out_use,
                          struct hk_sink **out_sink, struct hk_err *err)
{
    struct kept *d = at(k, place);
    assert(d); /* the engine sends to destinations that it was given */
    enum hk_code rc = d->sink ? HK_OK : open_sink(k, d, err);
    if (rc != HK_OK) {
        struct hk_engine_dest held = held_conf(k, d);
        d->dirty = !put(k, d, &held, now_ms);
        set_held(k, d, err->message);
        return rc;
    }
    d->sink->in_flight++;
    d->sink->used_ms = now_ms;
    *out_use = d->sink;
    *out_sink = d->sink->sink;
    return HK_OK;
}

/* A sink is not closed from inside its own call: the next step does it. */
void hk_kept_sent(struct hk_kept *k, struct hk_kept_sink *use, int64_t now_ms)
{
    (void)k;
    use->in_flight--;
    use->used_ms = now_ms;
}

void hk_kept_full(struct hk_kept *k, struct hk_kept_sink *use)
{
    (void)k;
    if (use)
        use->full = true;
}

void hk_kept_abort(struct hk_kept *k)
{
    for (const struct hk_kept_sink *s = k->sinks; s; s = s->next)
        s->sink->ops->abort(s->sink);
}

/* ---- for people ---- */

bool hk_kept_view(const struct hk_kept *k, size_t i, struct hk_kept_view *out)
{
    if (i >= k->n)
        return false;
    const struct kept *d = k->items[i];
    *out = (struct hk_kept_view){.name = d->name,
                                 .version = d->version,
                                 .place = d->place,
                                 .of_file = d->of_file,
                                 .why_held = !d->held ? NULL
                                             : d->why ? d->why
                                                      : "out of memory",
                                 .auto_redrive = d->auto_redrive && !d->gone,
                                 .breaker_open_ms = d->breaker_open_ms};
    return true;
}

uint64_t hk_kept_changes(const struct hk_kept *k)
{
    return k->changes;
}

struct hk_kept_counts hk_kept_counts(const struct hk_kept *k)
{
    struct hk_kept_counts counts = {.n = k->n, .held = k->n_held};
    for (const struct hk_kept_sink *s = k->sinks; s; s = s->next)
        counts.sinks++;
    return counts;
}
