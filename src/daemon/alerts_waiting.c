/* SPDX-License-Identifier: Apache-2.0 */
/* Finds messages that a relay could have sent. The store knows rows that are due and whose key is free. A destination may hold them
 * back: by a pause, a breaker that is not closed, a rate that is used up. Only messages without any of these show that deliveries have
 * stopped. */
#include "base/str.h"
#include "daemon/alerts.h"

struct judge {
    const struct hk_alerts_plan *plan;
    const struct hk_figures *figures;
    struct hk_alert_facts *facts;
};

static bool is_held(const struct judge *j, struct hk_str destination)
{
    for (size_t i = 0; i < j->facts->n_dests; i++)
        if (hk_str_eq(j->facts->dests[i].name, destination))
            return j->facts->dests[i].paused || j->facts->dests[i].broken;
    return false;
}

/* A relay said until when. It need not have said so lately: where nothing may go nothing happens that it could tell of. */
static bool is_limited(const struct judge *j, struct hk_str destination)
{
    for (size_t i = 0; i < j->figures->n; i++)
        if (j->figures->items[i].ready_at_ms > j->figures->now_ms &&
            hk_str_eq(j->figures->items[i].destination, destination))
            return true;
    return false;
}

/* Where rows by route go, as the engine finds it: the first route that takes them. NULL: none does. */
static const struct hk_alerts_route *route_of(const struct hk_alerts_plan *plan, struct hk_str event_type)
{
    for (size_t i = 0; i < plan->n_routes; i++)
        if (hk_str_glob(plan->routes[i].event_type, event_type))
            return &plan->routes[i];
    return NULL;
}

struct verdict {
    bool may_go, limited;
    struct hk_str destination; /* the one that may; else the first */
};

/* Of several destinations one that may go is enough. What no route takes is due, too: a relay makes it a dead letter. */
static struct verdict judge_row(const struct judge *j, const struct hk_waiting_row *row)
{
    struct verdict v = {.may_go = false, .destination = row->destination};
    const struct hk_alerts_route *route = row->destination.len ? NULL : route_of(j->plan, row->event_type);
    size_t n = route ? route->n : 1;
    for (size_t i = n; i-- > 0;) {
        struct hk_str to = route ? hk_str_of(route->destinations[i]) : row->destination;
        bool held = to.len && is_held(j, to), limited = to.len && is_limited(j, to);
        if (held && v.may_go)
            continue;
        if (held || !v.may_go || !limited)
            v = (struct verdict){.may_go = !held, .limited = !held && limited, .destination = to};
    }
    return v;
}

static bool older(int64_t *oldest_ms, int64_t ms)
{
    bool is = ms > 0 && (!*oldest_ms || ms < *oldest_ms);
    if (is)
        *oldest_ms = ms;
    return is;
}

void hk_alerts_judge_waiting(const struct hk_alerts_plan *plan, const struct hk_waiting *waiting,
                             const struct hk_figures *figures, struct hk_alert_facts *facts)
{
    const struct judge j = {plan, figures, facts};
    int64_t oldest_ms = 0;
    facts->oldest_due_ms = facts->oldest_free_ms = 0;
    facts->oldest_dest = facts->due_dest = (struct hk_str){"", 0};
    facts->held = false;
    for (size_t i = 0; i < waiting->n; i++) {
        const struct hk_waiting_row *row = &waiting->items[i];
        struct verdict v = judge_row(&j, row);
        if (older(&oldest_ms, row->oldest_ms))
            facts->oldest_dest = v.destination;
        facts->held = facts->held || row->behind || (row->due_ms && (!v.may_go || v.limited));
        if (v.may_go && older(&facts->oldest_due_ms, row->due_ms))
            facts->due_dest = v.destination;
        if (v.may_go && !v.limited)
            (void)older(&facts->oldest_free_ms, row->due_ms);
    }
}
