/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations: their places and names, which of them have something to do, and how they come, change and go while the engine runs.
 *
 * Thousands of destinations are normal, and most of them rest. One that rests costs its place and its definition: breaker and
 * limiter are made when the first message goes to it, and everything that looks at destinations again and again looks at
 * those in the list `awake` only. A destination wakes when a message for it turns up, when it falls behind, when a poll tells
 * of it; after a poll whoever has nothing left to do sleeps. Being awake for nothing costs a look and changes nothing.
 *
 *   made:    takes nothing before a poll has told what the store knows of its name (a pause, a breaker, retry rows), and
 *            before messages that were refused for its absence are settled: they hold their keys
 *   changed: at once; but when its order changes what is in hand goes first, and the destination reads its rows again
 *   removed: what is chosen or claimed is given back, what is on its way ends; then the name is unknown, and the rows that
 *            were passed over for its sake are read again by everybody's cursor */
#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/engine_impl.h"
#include "core/limiter.h"

enum {
    ASK_AGAIN_MS = 100 /* whether an unknown destination has become known */
};

/* The destination's next configuration, used as soon as the engine has none of its messages. */
struct hk_dest_next {
    struct hk_engine_dest conf;
};

/* ---- names ---- */

/* How many of the names come before it; *out_found: the next one is it. */
static size_t name_rank(const struct hk_engine *e, struct hk_str name, bool *out_found)
{
    size_t lo = 0, hi = e->n_known;
    *out_found = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        struct hk_str here = hk_str_of(e->dests[e->by_name[mid]].name);
        size_t n = here.len < name.len ? here.len : name.len;
        int cmp = n ? memcmp(here.ptr, name.ptr, n) : 0;
        if (cmp == 0 && here.len == name.len) {
            *out_found = true;
            return mid;
        }
        if (cmp < 0 || (cmp == 0 && here.len < name.len))
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t hk_engine_dest_by_name(const struct hk_engine *e, struct hk_str name)
{
    bool found;
    size_t rank = name_rank(e, name, &found);
    return found ? e->by_name[rank] : HK_NO_DEST;
}

size_t hk_engine_find_dest(const struct hk_engine *e, const char *name)
{
    return hk_engine_dest_by_name(e, hk_str_of(name));
}

/* ---- who is awake ---- */

static void list_insert(size_t *list, size_t n, size_t at, size_t item)
{
    memmove(&list[at + 1], &list[at], (n - at) * sizeof *list);
    list[at] = item;
}

static void list_remove(size_t *list, size_t n, size_t at)
{
    memmove(&list[at], &list[at + 1], (n - at - 1) * sizeof *list);
}

static size_t awake_rank(const struct hk_engine *e, size_t dest)
{
    size_t lo = 0, hi = e->n_awake;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (e->awake[mid] < dest)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

void hk_dest_wake(struct hk_engine *e, size_t dest)
{
    if (e->dests[dest].awake)
        return;
    list_insert(e->awake, e->n_awake, awake_rank(e, dest), dest);
    e->n_awake++;
    e->dests[dest].awake = true;
}

/* Idle: the engine has none of its messages, nothing to read for it, nothing to ask or report, and polls mention nothing about it. */
static bool is_idle(const struct hk_dest *d)
{
    bool work = d->in_hand || d->behind || d->retry_due_ms != INT64_MAX || d->answered || d->ahead || d->full;
    bool told = d->paused || d->seen_paused || d->seen_open_ms || d->circuit_seen_ms || d->untold;
    bool tells = d->pause_due || d->tell_circuit || d->rate.asks || d->probe.asks || hk_seats_owed(d);
    return !work && !told && !tells && d->state == HK_DEST_IN_USE;
}

void hk_dests_sleep(struct hk_engine *e)
{
    size_t kept = 0;
    for (size_t k = 0; k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        if (!is_idle(d)) {
            e->awake[kept++] = e->awake[k];
            continue;
        }
        d->awake = false;
        e->share.active -= d->active;
        d->active = false;
    }
    e->n_awake = kept;
}

bool hk_dest_rests(const struct hk_dest *d)
{
    return d->state != HK_DEST_IN_USE || d->untold || d->conf.held;
}

/* ---- guards ---- */

static struct hk_limiter_options limits_of(const struct hk_engine_dest *conf)
{
    struct hk_limiter_options limiter = conf->limiter;
    limiter.concurrency = 0; /* places are counted by the engine, since what is in reserve takes none */
    return limiter;
}

bool hk_dest_make_guards(struct hk_dest *d, int64_t now_ms)
{
    struct hk_err err;
    struct hk_limiter_options limits = limits_of(&d->conf);
    if (!d->limiter && hk_limiter_new(&limits, now_ms, &d->limiter, &err) != HK_OK)
        return false;
    return !d->conf.breaker || d->breaker || hk_breaker_new(d->conf.breaker, &d->breaker, &err) == HK_OK;
}

int64_t hk_dest_limit_at(const struct hk_dest *d, int64_t now_ms)
{
    return d->limiter ? hk_limiter_ready_at_ms(d->limiter, now_ms) : now_ms;
}

/* ---- definitions ---- */

static enum hk_code check_conf(const struct hk_engine_dest *conf, int64_t now_ms, struct hk_err *err)
{
    struct hk_limiter *trial = NULL;
    enum hk_code rc = hk_limiter_new(&conf->limiter, now_ms, &trial, err);
    hk_limiter_free(trial);
    return rc == HK_OK && conf->breaker ? hk_breaker_options_check(conf->breaker, err) : rc;
}

/* A copy whose breaker's options are its own. False: out of memory. */
static bool copy_conf(const struct hk_engine_dest *conf, const char *name, struct hk_engine_dest *out)
{
    struct hk_breaker_options *breaker = NULL;
    if (conf->breaker) {
        breaker = hk_mem_alloc(sizeof *breaker);
        if (!breaker)
            return false;
        *breaker = *conf->breaker;
    }
    *out = *conf;
    out->name = name;
    out->breaker = breaker;
    return true;
}

static void conf_fini(struct hk_engine_dest *conf)
{
    union {
        const void *in;
        void *out;
    } breaker = {.in = conf->breaker};

    hk_mem_free(breaker.out);
}

static uint32_t cap_of(const struct hk_engine *e, const struct hk_engine_dest *conf)
{
    uint32_t usual = e->options.concurrency < 64 ? e->options.concurrency : 64;
    return conf->limiter.concurrency ? conf->limiter.concurrency : usual;
}

void hk_dest_fini(struct hk_dest *d)
{
    conf_fini(&d->conf);
    if (d->next)
        conf_fini(&d->next->conf);
    hk_mem_free(d->next);
    hk_mem_free(d->name);
    hk_breaker_free(d->breaker);
    hk_limiter_free(d->limiter);
}

/* ---- places ---- */

bool hk_dests_room(struct hk_engine *e, size_t n)
{
    if (n <= e->dests_room)
        return true;
    size_t room = e->dests_room ? e->dests_room + e->dests_room / 2 + 8 : n;
    room = room < n ? n : room;
    struct hk_dest *dests = hk_mem_zalloc(room, sizeof *dests);
    size_t *by_name = hk_mem_zalloc(room, sizeof *by_name), *awake = hk_mem_zalloc(room, sizeof *awake);
    bool ok = dests && by_name && awake;
    if (ok && e->dests) {
        memcpy(dests, e->dests, e->n_places * sizeof *dests);
        memcpy(by_name, e->by_name, e->n_known * sizeof *by_name);
        memcpy(awake, e->awake, e->n_awake * sizeof *awake);
    }
    hk_mem_free(ok ? e->dests : dests);
    hk_mem_free(ok ? e->by_name : by_name);
    hk_mem_free(ok ? e->awake : awake);
    if (!ok)
        return false;
    e->dests = dests;
    e->by_name = by_name;
    e->awake = awake;
    e->dests_room = room;
    return true;
}

/* One that nobody has; there is room for one more. */
static size_t free_place(struct hk_engine *e)
{
    if (e->n_known == e->n_places)
        return e->n_places++;
    size_t i = 0;
    while (e->dests[i].name)
        i++;
    return i;
}

enum hk_code hk_dest_begin(struct hk_engine *e, const struct hk_engine_dest *conf, int64_t now_ms,
                           struct hk_err *err)
{
    bool found;
    enum hk_code rc = check_conf(conf, now_ms, err);
    if (rc != HK_OK)
        return rc;
    struct hk_str text = hk_str_of(conf->name);
    char *name = hk_mem_strndup(text.ptr, text.len);
    struct hk_dest made = {.retry_due_ms = INT64_MAX,
                           .retry_after_due_ms = INT64_MIN,
                           .retry_look_at_ms = INT64_MIN,
                           .cursor = HK_FIRST_ID,
                           .seats = {.limit = HK_SEATS_NO_LIMIT},
                           .cap = cap_of(e, conf)};
    if (!name || !hk_dests_room(e, e->n_known + 1) || !copy_conf(conf, name, &made.conf)) {
        hk_mem_free(name);
        return hk_err_set(err, HK_NOMEM, "out of memory for a destination");
    }
    made.name = name;
    size_t place = free_place(e), rank = name_rank(e, text, &found);
    assert(!found);
    e->dests[place] = made;
    list_insert(e->by_name, e->n_known, rank, place);
    e->n_known++;
    e->keys.any_ordered |= conf->ordered;
    return HK_OK;
}

static bool is_routed(const struct hk_engine *e, size_t dest)
{
    for (size_t r = 0; r < e->options.n_routes; r++)
        for (size_t k = 0; k < e->options.routes[r].n_dests; k++)
            if (e->options.routes[r].dests[k] == dest)
                return true;
    return false;
}

/* ---- what is in hand and not on its way goes back ---- */

static void drop_chosen(struct hk_engine *e, size_t dest, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    uint32_t i;
    for (uint32_t n = e->chosen.len; n-- > 0 && hk_ring_pop(&e->chosen, &i);) {
        struct hk_slot *slot = &e->slots[i];
        if (slot->dest != dest) {
            hk_ring_push(&e->chosen, i);
            continue;
        }
        if (slot->source == HK_FROM_RETRY) {
            d->retries_chosen--;
            hk_engine_note_due(e, dest, INT64_MIN);
        } else if (hk_dest_read_to(e, d) >= slot->id) {
            d->behind = true;
            d->cursor = hk_id_before(slot->id);
        }
        hk_slot_unchoose(e, slot, now_ms);
        hk_slot_free(e, i, HK_MOVE_LEAVE);
    }
}

static void stop_taking(struct hk_engine *e, size_t dest, int64_t now_ms)
{
    uint32_t i;
    drop_chosen(e, dest, now_ms);
    for (uint32_t n = e->ready.len; n-- > 0 && hk_ring_pop(&e->ready, &i);) {
        if (e->slots[i].dest == dest)
            hk_slot_give_back(e, i, now_ms);
        else
            hk_ring_push(&e->ready, i);
    }
    hk_reserve_give_back(e, &e->dests[dest], now_ms);
}

static void set_state(struct hk_engine *e, size_t dest, enum hk_dest_state state, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    hk_dest_wake(e, dest);
    if (d->state == HK_DEST_IN_USE && state != HK_DEST_IN_USE) {
        e->n_unsettled++;
        d->state = state;
        stop_taking(e, dest, now_ms);
    }
    e->n_unsettled -= d->state != HK_DEST_IN_USE && state == HK_DEST_IN_USE;
    d->state = state;
}

/* ---- changing ---- */

static bool same_breaker(const struct hk_breaker_options *a, const struct hk_breaker_options *b)
{
    return a->failures == b->failures && a->ratio == b->ratio && a->min_throughput == b->min_throughput &&
           a->window_ms == b->window_ms && a->open_ms == b->open_ms && a->open_factor == b->open_factor &&
           a->open_cap_ms == b->open_cap_ms && a->open_jitter == b->open_jitter && a->probes == b->probes &&
           a->successes == b->successes;
}

/* One that is open stays open for as long as it was to be. What it remembered of answers is gone. */
static void change_breaker(struct hk_engine *e, size_t dest, const struct hk_breaker_options *to,
                           struct hk_breaker *fresh, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    if (d->conf.breaker && to && same_breaker(d->conf.breaker, to)) {
        hk_breaker_free(fresh);
        return;
    }
    for (uint32_t i = 0; d->breaker && i < e->n_slots; i++)
        if (e->slots[i].phase != HK_SLOT_FREE && e->slots[i].dest == dest)
            e->slots[i].permit = 0; /* of the breaker that goes */
    if (fresh && d->breaker && hk_breaker_state(d->breaker, now_ms) == HK_BREAKER_OPEN)
        hk_breaker_trip(fresh, hk_breaker_ready_at_ms(d->breaker, now_ms), now_ms);
    hk_breaker_free(d->breaker);
    d->breaker = fresh;
    d->probe = (struct hk_meter){.tokens = 0};
    if (!to) { /* what others say of it is no business of ours any more */
        d->tell_circuit = false;
        d->circuit = HK_BREAKER_CLOSED;
        d->circuit_open_ms = d->circuit_seen_ms = 0;
    }
}

/* `conf` is a copy of our own, and `fresh` a breaker as it has one. Neither can fail here. */
static void apply_conf(struct hk_engine *e, size_t dest, struct hk_engine_dest conf, struct hk_breaker *fresh,
                       int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    struct hk_limiter_options limits = limits_of(&conf);
    change_breaker(e, dest, conf.breaker, fresh, now_ms);
    if (d->limiter)
        hk_limiter_change(d->limiter, &limits, now_ms);
    d->rate = (struct hk_meter){.tokens = 0};
    d->ahead = 0;
    d->cap = cap_of(e, &conf);
    e->keys.any_ordered |= conf.ordered;
    conf_fini(&d->conf);
    d->conf = conf;
    d->conf.name = d->name;
}

static enum hk_code change(struct hk_engine *e, size_t dest, const struct hk_engine_dest *conf,
                           int64_t now_ms, struct hk_err *err)
{
    struct hk_dest *d = &e->dests[dest];
    bool reorders = d->state != HK_DEST_IN_USE || conf->ordered != d->conf.ordered ||
                    conf->skip_dead != d->conf.skip_dead;
    struct hk_engine_dest copy;
    struct hk_breaker *fresh = NULL;
    struct hk_dest_next *next = reorders ? hk_mem_alloc(sizeof *next) : NULL;
    enum hk_code rc = check_conf(conf, now_ms, err);
    if (rc == HK_OK && ((reorders && !next) || !copy_conf(conf, d->name, &copy)))
        rc = hk_err_set(err, HK_NOMEM, "out of memory for a destination");
    if (rc == HK_OK && !reorders && conf->breaker) {
        rc = hk_breaker_new(conf->breaker, &fresh, err);
        if (rc != HK_OK)
            conf_fini(&copy);
    }
    if (rc != HK_OK) {
        hk_mem_free(next);
        return rc;
    }
    if (!reorders) {
        apply_conf(e, dest, copy, fresh, now_ms);
        if (conf->held)
            stop_taking(e, dest, now_ms);
        return HK_OK;
    }
    next->conf = copy;
    if (d->next)
        conf_fini(&d->next->conf);
    hk_mem_free(d->next);
    d->next = next;
    set_state(e, dest, HK_DEST_CHANGING, now_ms);
    return HK_OK;
}

/* ---- what is over ---- */

/* Sets the shared cursor back: rows above `to` count as unread. */
static void set_cursor_back(struct hk_engine *e, int64_t to)
{
    struct hk_engine_reading *r = &e->reading;
    if (to >= r->cursor)
        return;
    r->last_id = r->last_id > r->cursor ? r->last_id : r->cursor;
    r->counted_to = r->counted_to > r->cursor ? r->counted_to : r->cursor;
    r->cursor = to;
}

/* Up to where everything of the destination was read and none passed over. Its keys are forgotten. */
static int64_t forget_keys(struct hk_engine *e, size_t dest)
{
    int64_t passed = hk_order_forget(e->order, dest), to = hk_dest_read_to(e, &e->dests[dest]);
    return passed != HK_NONE_PASSED && hk_id_before(passed) < to ? hk_id_before(passed) : to;
}

static void dest_gone(struct hk_engine *e, size_t dest)
{
    bool found;
    struct hk_dest *d = &e->dests[dest];
    set_cursor_back(e, forget_keys(e, dest));
    if (d->retry_due_ms < e->stray.due_ms && hk_engine_name_stray(e, hk_str_of(d->name)))
        e->stray.due_ms = d->retry_due_ms;
    if (e->reading.want_alone == dest)
        e->reading.want_alone = HK_NO_DEST;
    e->share.active -= d->active;
    e->n_untold -= d->untold;
    list_remove(e->by_name, e->n_known, name_rank(e, hk_str_of(d->name), &found));
    list_remove(e->awake, e->n_awake, awake_rank(e, dest));
    e->n_known--;
    e->n_awake--;
    hk_dest_fini(d);
    *d = (struct hk_dest){.name = NULL, .retry_due_ms = INT64_MAX};
}

/* False: out of memory, the next time it is tried again. */
static bool dest_changed(struct hk_engine *e, size_t dest, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    struct hk_breaker *fresh = NULL;
    struct hk_err err;
    if (d->next->conf.breaker && hk_breaker_new(d->next->conf.breaker, &fresh, &err) != HK_OK)
        return false;
    int64_t to = forget_keys(e, dest);
    if (to < hk_dest_read_to(e, d)) {
        d->behind = true;
        d->cursor = to;
    }
    apply_conf(e, dest, d->next->conf, fresh, now_ms);
    hk_mem_free(d->next);
    d->next = NULL;
    e->keys.loaded = false;
    return true;
}

void hk_dests_settle(struct hk_engine *e, int64_t now_ms)
{
    if (!e->n_unsettled || e->call.busy) /* the store may be asked for it by name */
        return;
    for (size_t k = e->n_awake; k-- > 0;) {
        size_t dest = e->awake[k];
        struct hk_dest *d = &e->dests[dest];
        if (d->state == HK_DEST_IN_USE || d->in_hand || (d->state == HK_DEST_LEAVING && hk_seats_owed(d)))
            continue;
        if (d->state == HK_DEST_CHANGING && !dest_changed(e, dest, now_ms))
            continue;
        bool leaves = d->state == HK_DEST_LEAVING;
        set_state(e, dest, HK_DEST_IN_USE, now_ms);
        if (leaves)
            dest_gone(e, dest);
    }
}

/* ---- for the shell ---- */

/* The destination takes no messages until a poll has said whether it is paused or its breaker is open. */
static void await_poll(struct hk_engine *e, size_t dest, int64_t now_ms)
{
    struct hk_dest *d = &e->dests[dest];
    e->n_untold += !d->untold;
    d->untold = true;
    d->put = ++e->puts;
    hk_dest_wake(e, dest);
    e->polls.next_ms = now_ms;
}

static enum hk_code make(struct hk_engine *e, const struct hk_engine_dest *conf, int64_t now_ms,
                         struct hk_err *err)
{
    enum hk_code rc = hk_dest_begin(e, conf, now_ms, err);
    if (rc != HK_OK)
        return rc;
    size_t dest = hk_engine_find_dest(e, conf->name);
    await_poll(e, dest, now_ms);
    e->dests[dest].behind = e->reading.given_back > 0; /* some that wait for the sweep may be its own */
    return HK_OK;
}

enum hk_code hk_engine_put_dest(struct hk_engine *e, int64_t now_ms, const struct hk_engine_dest *conf,
                                size_t *out_dest, struct hk_err *err)
{
    size_t dest = hk_engine_find_dest(e, conf->name);
    bool leaves = dest != HK_NO_DEST && e->dests[dest].state == HK_DEST_LEAVING;
    enum hk_code rc;
    if (dest == HK_NO_DEST)
        rc = make(e, conf, now_ms, err);
    else if (is_routed(e, dest))
        rc = hk_err_set(err, HK_INVALID, "a route names destination '%s': it stays as it is", conf->name);
    else
        rc = change(e, dest, conf, now_ms, err);
    if (rc == HK_OK && leaves)
        await_poll(e, dest,
                   now_ms); /* it was removed, and made anew before the last message was out of hand */
    if (rc == HK_OK)
        *out_dest = hk_engine_find_dest(e, conf->name);
    return rc;
}

bool hk_engine_remove_dest(struct hk_engine *e, int64_t now_ms, size_t dest)
{
    if (dest >= e->n_places || !e->dests[dest].name || is_routed(e, dest))
        return false;
    set_state(e, dest, HK_DEST_LEAVING, now_ms);
    return true;
}

bool hk_engine_dest_settled(const struct hk_engine *e, size_t dest)
{
    return dest >= e->n_places || !e->dests[dest].name || e->dests[dest].state == HK_DEST_IN_USE;
}

void hk_engine_know_dests(struct hk_engine *e, int64_t version)
{
    e->known_dests = version;
}

/* Is a message in hand that was refused before the destination was made? */
static bool is_refusing(const struct hk_engine *e, const struct hk_dest *d)
{
    for (uint32_t i = 0; i < e->n_slots; i++) {
        const struct hk_slot *slot = &e->slots[i];
        if (slot->phase != HK_SLOT_FREE && slot->dest == HK_NO_DEST && slot->born < d->put)
            return true;
    }
    return false;
}

void hk_dests_told(struct hk_engine *e)
{
    for (size_t k = 0; e->n_untold && k < e->n_awake; k++) {
        struct hk_dest *d = &e->dests[e->awake[k]];
        if (!d->untold || is_refusing(e, d))
            continue;
        d->untold = false;
        e->n_untold--;
        if (d->conf.ordered)
            e->keys.loaded = false; /* letters and retry rows of its name may hold keys */
    }
}

bool hk_dest_may_exist(struct hk_engine *e, const struct hk_slot *slot, int64_t now_ms)
{
    if (slot->refusal.fault != HK_FAULT_UNKNOWN_DESTINATION || !slot->message.destination.len)
        return false;
    if (e->told_dests == e->known_dests && hk_engine_dest_by_name(e, slot->message.destination) == HK_NO_DEST)
        return false;
    e->stray.look_at_ms = hk_ms_later(e->stray.look_at_ms, now_ms + ASK_AGAIN_MS);
    return true;
}

void hk_dest_given_back(struct hk_engine *e, const struct hk_slot *slot)
{
    size_t dest = hk_engine_dest_by_name(e, slot->message.destination);
    if (dest == HK_NO_DEST) {
        e->reading.given_back += slot->source == HK_FROM_OUTBOX; /* of the others polls tell */
        return;
    }
    struct hk_dest *d = &e->dests[dest];
    hk_dest_wake(e, dest);
    if (slot->source == HK_FROM_RETRY) {
        hk_engine_note_due(e, dest, INT64_MIN);
        hk_forced_look(e, INT64_MIN); /* if a person forced it, no pause of the new destination holds it */
    } else if (hk_dest_read_to(e, d) >= slot->id) {
        d->behind = true;
        d->cursor = hk_id_before(slot->id);
    }
}
