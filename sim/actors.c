/* SPDX-License-Identifier: Apache-2.0 */
/* The people of the world: applications that write messages in transactions, and an operator. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "world_impl.h"

/* ---- applications ---- */

static void text(char *out, size_t room, const char *fmt, uint64_t n)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)n);
    (void)snprintf(out, room, "%s%s", fmt, number);
}

static uint32_t attempts_of(const struct world *w, const struct hk_model_msg *msg, size_t dest)
{
    const struct hk_policy *named =
        msg->policy[0] ? w->options.policy_by_name(w->options.policy_arg, msg->policy) : NULL;
    uint32_t own = hk_policy_limits(named ? named : w->engine_dests[dest].policy)->max_attempts;
    uint32_t ceiling = w->options.max_attempts_ceiling;
    if (!msg->max_attempts)
        return own;
    if (!ceiling || msg->max_attempts <= own)
        return msg->max_attempts;
    return msg->max_attempts < ceiling ? msg->max_attempts : ceiling > own ? ceiling : own;
}

static void expect(struct world *w, struct hk_model_msg *msg, size_t dest)
{
    size_t len = strlen(msg->expected);
    (void)snprintf(msg->expected + len, sizeof msg->expected - len, "%s%s", len ? "," : "",
                   w->dests[dest].name);
    uint32_t max = attempts_of(w, msg, dest);
    if (max > msg->max_logged)
        msg->max_logged = max;
}

/* Where it goes, and what the checker is told about that. */
static void aim(struct world *w, struct hk_model_msg *msg)
{
    struct hk_rng *rng = &w->app_rng;
    if (hk_world_chance(rng, w->c.p_routed)) {
        static const char *const types[] = {"e0", "e1x", "ab2", "e9"};
        size_t type = (size_t)hk_rng_upto(rng, 3);
        (void)hk_str_copy(msg->event_type, sizeof msg->event_type, hk_str_of(types[type]));
        for (size_t k = 0; type < w->c.n_routes && k < w->routes[type].n_dests; k++)
            expect(w, msg, w->routes[type].dests[k]);
        return;
    }
    (void)hk_str_copy(msg->event_type, sizeof msg->event_type, hk_str_of("e"));
    if (hk_world_chance(rng, w->c.p_unknown)) {
        (void)hk_str_copy(msg->destination, sizeof msg->destination, hk_str_of("nowhere"));
        (void)hk_str_copy(msg->expected, sizeof msg->expected, hk_str_of("nowhere"));
        return;
    }
    size_t dest = (size_t)hk_rng_upto(rng, w->c.n_dests - 1);
    if (w->n_written <= w->c.n_flood)
        dest = 0;
    (void)hk_str_copy(msg->destination, sizeof msg->destination, hk_str_of(w->dests[dest].name));
    expect(w, msg, dest);
}

/* Has another transaction that is open written to the key? Where ids are given at the insert, who wants order holds a lock
 * for each key until he commits; here, who cannot have it writes without a key. */
static bool is_locked(const struct world *w, const struct app *self, const char *key)
{
    for (size_t i = 0; i < w->c.n_apps; i++)
        for (size_t k = 0; &w->apps[i] != self && k < w->apps[i].n_rows; k++)
            if (strcmp(w->apps[i].messages[k]->key, key) == 0)
                return true;
    return false;
}

static void draw_key(struct world *w, const struct app *app, bool held, struct hk_model_msg *msg)
{
    text(msg->key, sizeof msg->key, "k", hk_rng_upto(&w->app_rng, w->c.keys - 1));
    /* one that is found by the sweep: order cannot be asked of it */
    bool swept = w->c.late_silent && held;
    if (w->c.ids_at_insert && (swept || is_locked(w, app, msg->key)))
        msg->key[0] = '\0';
}

/* `held`: its transaction stays open for a while. */
static const struct hk_model_msg *write_message(struct world *w, const struct app *app, bool held)
{
    struct hk_rng *rng = &w->app_rng;
    struct hk_model_msg *msg = &w->messages[w->n_written];
    int64_t now = hk_world_right_clock(w);
    text(msg->message_id, sizeof msg->message_id, "m", w->n_written++);
    text(msg->payload, sizeof msg->payload, "CANARY-", hk_rng_next(rng)); /* no log may tell it */
    msg->payload_bytes = strlen(msg->payload);
    if (hk_world_chance(rng, w->c.p_policy))
        text(msg->policy, sizeof msg->policy, "p",
             hk_rng_upto(rng, w->c.n_policies)); /* the last does not exist */
    if (hk_world_chance(rng, w->c.p_override))
        msg->max_attempts = (uint32_t)hk_rng_between(rng, 1, 4);
    aim(w, msg);
    if (hk_world_chance(rng, w->c.p_key) && w->n_written > w->c.n_flood)
        draw_key(w, app, held, msg);
    if (hk_world_chance(rng, w->c.p_scheduled))
        msg->not_before_ms = now + hk_world_between(rng, 0, w->c.schedule_ms);
    if (hk_world_chance(rng, w->c.p_expiring))
        msg->expires_ms = now + hk_world_between(rng, 1, w->c.schedule_ms);
    if (hk_world_chance(rng, w->c.p_too_big))
        msg->payload_bytes = w->c.max_payload + 1;
    msg->malformed = hk_world_chance(rng, w->c.p_malformed);
    msg->undecodable = hk_world_chance(rng, w->c.p_undecodable);
    msg->poison = hk_world_chance(rng, w->c.p_poison);
    msg->stuck = w->c.p_stuck && hk_world_chance(&w->stuck_rng, w->c.p_stuck);
    hk_world_timeout_set(w, msg);
    msg->hash = 0xcbf29ce484222325u;
    for (const char *p = msg->payload; *p; p++)
        msg->hash = (msg->hash ^ (unsigned char)*p) * 0x100000001b3u;
    return msg;
}

static void begin(struct world *w, struct app *app, bool held)
{
    size_t n = (size_t)hk_rng_between(&w->app_rng, 1, TX_MAX);
    while (app->n_rows < n && w->n_written < w->c.n_messages) {
        app->messages[app->n_rows] = write_message(w, app, held);
        if (hk_world_cut_message(w, w->n_written - 1))
            continue;
        app->rows[app->n_rows] = hk_model_insert(w->model, app->messages[app->n_rows]);
        app->n_rows++;
    }
}

static void end(struct world *w, struct app *app)
{
    bool back = hk_world_chance(&w->app_rng, w->c.p_rollback) || hk_world_store_full(w);
    for (size_t i = 0; i < app->n_rows; i++) {
        if (back)
            hk_model_rollback(w->model, app->rows[i]);
        else
            hk_model_commit(w->model, app->rows[i]);
    }
    app->n_rows = 0;
}

void hk_world_app_cut_off(struct world *w)
{
    for (size_t a = 0; a < w->c.n_apps; a++) {
        for (size_t i = 0; i < w->apps[a].n_rows; i++)
            hk_model_rollback(w->model, w->apps[a].rows[i]);
        w->apps[a].n_rows = 0;
    }
}

void hk_world_app_step(struct world *w, size_t who)
{
    struct app *app = &w->apps[who];
    int64_t wait = 0;
    if (app->n_rows) {
        end(w, app);
        wait = w->n_written < w->c.n_flood
                   ? 0
                   : hk_world_between(&w->app_rng, 0, 2 * w->c.app_gap_ms * (int64_t)w->c.n_apps);
    } else {
        bool held = hk_world_chance(&w->app_rng, w->c.p_hold);
        begin(w, app, held);
        if (!app->n_rows)
            return; /* all is written */
        wait = held ? hk_world_between(&w->app_rng, 0, w->c.hold_ms) : 0;
    }
    hk_world_at(w, w->now + wait, EV_APP, who, 0);
}

/* ---- the operator ---- */

static void set_paused(struct world *w, size_t dest, bool paused)
{
    struct hk_model_reply reply = {.rc = HK_OK};
    hk_model_pause(w->model, w->dests[dest].name, paused, "operator", &reply);
    hk_model_reply_free(&reply);
}

void hk_world_operator_step(struct world *w)
{
    if (w->healed)
        return;
    struct hk_rng *rng = &w->operator_rng;
    uint64_t pick = hk_rng_next(rng);
    switch (hk_rng_upto(rng, 4)) {
    case 0:
        if (w->c.op_pauses)
            set_paused(w, pick % w->c.n_dests, true);
        break;
    case 1:
        set_paused(w, pick % w->c.n_dests, false);
        break;
    case 2:
        if (w->c.op_cancels)
            (void)hk_model_cancel(w->model, pick);
        break;
    case 3:
        if (w->c.op_discards)
            (void)hk_model_discard(w->model, pick);
        break;
    case 4:
        if (w->c.op_requeues)
            (void)hk_model_requeue(w->model, pick);
        break;
    default:
        break;
    }
    hk_world_at(w, w->now + hk_world_between(rng, 1, 2 * w->c.operator_gap_ms), EV_OPERATOR, 0, 0);
}

/* After the faults: nothing stays paused, and dead heads go, unless this seed leaves them where they are. */
void hk_world_operator_heal(struct world *w)
{
    for (size_t i = 0; i < w->c.n_dests; i++)
        if ((w->now - w->healed_at) % 1000 < 200 && !hk_world_force_holds(w, i))
            set_paused(w, i, false);
    if (w->c.heal_discards)
        (void)hk_model_discard(w->model, hk_rng_next(&w->operator_rng));
}

bool hk_world_dest_blocks(void *arg, const char *name)
{
    struct world *w = arg;
    for (size_t i = 0; i < w->c.n_dests; i++)
        if (strcmp(w->dests[i].name, name) == 0)
            return w->engine_dests[i].ordered && !w->engine_dests[i].skip_dead;
    return false;
}
