/* SPDX-License-Identifier: Apache-2.0 */
/* Items by type and name, each with a digest of its JSON as it was told. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/parse.h"
#include "base/str.h"
#include "desk/alerts.h"
#include "desk/events.h"
#include "desk/forms.h"
#include "desk/job.h"
#include "desk/put.h"
#include "desk/redrive.h"
#include "desk/status.h"
#include "exec/clock.h"

enum {
    ITEMS_MAX = 20000,
    JSON_MAX = 64 << 10,
    NAME_LONGEST = 4096,
    LOOK_MS = 1000,
    LOOK_LONGEST_MS = 30000, /* between two looks, however long they take */
    LOOK_SHARE = 10          /* of the time a look may take the tenth part */
};

static const char *const words[HK_NEVENT_TYPES] = {
    [HK_EVENT_STATE] = "state",     [HK_EVENT_FIGURES] = "figures", [HK_EVENT_ALERT] = "alert",
    [HK_EVENT_REDRIVE] = "redrive", [HK_EVENT_JOB] = "job",         [HK_EVENT_HEARTBEAT] = "heartbeat",
    [HK_EVENT_OPEN] = "open",       [HK_EVENT_RESET] = "reset",     [HK_EVENT_END] = "end"};

const char *hk_event_word(unsigned type)
{
    return words[type];
}

bool hk_event_by_word(struct hk_str word, enum hk_event_type *out)
{
    for (unsigned i = 0; i < HK_NEVENT_TYPES; i++)
        if (hk_str_eq(word, hk_str_of(words[i]))) {
            *out = (enum hk_event_type)i;
            return true;
        }
    return false;
}

bool hk_event_types(const char *text, unsigned *out_types)
{
    struct hk_str rest = hk_str_of(text ? text : "");
    unsigned types = HK_EVENTS_ALWAYS;
    enum hk_event_type type = HK_EVENT_STATE;
    if (!text) {
        *out_types = ~0u;
        return true;
    }
    do {
        if (!hk_event_by_word(hk_str_trim(hk_str_cut(&rest, ',')), &type) || type >= HK_EVENT_OPEN)
            return false;
        types |= 1u << type;
    } while (rest.ptr);
    *out_types = types;
    return true;
}

/* ---- what listeners have seen ---- */

struct item {
    enum hk_event_type type;
    char *name;
    uint64_t digest;
    uint64_t round; /* of looks, when it was seen last */
};

struct hk_event_watch {
    struct item *items; /* by type and name */
    size_t n, room;
    uint64_t round;
    struct hk_buf json;
    /* of the look that is under way */
    hk_event_fn *tell;
    void *arg;
    size_t told;
};

struct hk_event_watch *hk_event_watch_new(void)
{
    struct hk_event_watch *w = hk_mem_zalloc(1, sizeof *w);
    if (w)
        hk_buf_init(&w->json, JSON_MAX);
    return w;
}

void hk_event_watch_free(struct hk_event_watch *w)
{
    if (!w)
        return;
    for (size_t i = 0; i < w->n; i++)
        hk_mem_free(w->items[i].name);
    hk_mem_free(w->items);
    hk_buf_fini(&w->json);
    hk_mem_free(w);
}

static uint64_t digest_of(struct hk_str text)
{
    uint64_t hash = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < text.len; i++)
        hash = (hash ^ (unsigned char)text.ptr[i]) * UINT64_C(1099511628211);
    return hash;
}

static int compare(const struct item *item, enum hk_event_type type, const char *name)
{
    return item->type != type ? (item->type > type) - (item->type < type) : strcmp(item->name, name);
}

/* Where it is, or belongs. */
static size_t place_of(const struct hk_event_watch *w, enum hk_event_type type, const char *name)
{
    size_t lo = 0, hi = w->n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (compare(&w->items[mid], type, name) < 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* NULL: there is no room or no memory for it; then there are no events about it. */
static struct item *add_item(struct hk_event_watch *w, size_t at, enum hk_event_type type, const char *name)
{
    if (w->n == ITEMS_MAX)
        return NULL;
    if (w->n == w->room) {
        size_t room = w->room ? w->room * 2 : 64;
        struct item *more = hk_mem_zalloc(room, sizeof *more);
        if (!more)
            return NULL;
        if (w->n > 0)
            memcpy(more, w->items, w->n * sizeof *more);
        hk_mem_free(w->items);
        w->items = more;
        w->room = room;
    }
    char *copy = hk_mem_strdup(name);
    if (!copy)
        return NULL;
    memmove(&w->items[at + 1], &w->items[at], (w->n - at) * sizeof *w->items);
    w->items[at] = (struct item){.type = type, .name = copy};
    w->n++;
    return &w->items[at];
}

static void remove_item(struct hk_event_watch *w, size_t at)
{
    hk_mem_free(w->items[at].name);
    memmove(&w->items[at], &w->items[at + 1], (w->n - at - 1) * sizeof *w->items);
    w->n--;
}

struct thing {
    enum hk_event_type type;
    struct hk_str name;        /* among those of its type; no NUL in it */
    struct hk_str destination; /* "" = of none */
    hk_form_fn *form;
    const void *value;
};

static void look_at(struct hk_event_watch *w, const struct thing *thing)
{
    struct hk_json json;
    char name[NAME_LONGEST];
    if (!hk_str_copy(name, sizeof name, thing->name))
        return;
    hk_buf_reset(&w->json);
    hk_json_init(&json, &w->json, false);
    hk_form_write(&json, thing->form, thing->value);
    if (hk_buf_status(&w->json) != HK_OK)
        return;
    size_t at = place_of(w, thing->type, name);
    bool is_known = at < w->n && compare(&w->items[at], thing->type, name) == 0;
    struct item *item = is_known ? &w->items[at] : add_item(w, at, thing->type, name);
    if (!item)
        return;
    uint64_t digest = digest_of(hk_buf_str(&w->json));
    item->round = w->round;
    if (is_known && item->digest == digest)
        return;
    if (w->round > 1 && w->told == HK_EVENT_LOOK_MAX) {
        if (!is_known)
            remove_item(w, at); /* the next look finds it anew */
        return;
    }
    item->digest = digest;
    if (w->round > 1) {
        w->told++;
        w->tell(w->arg, thing->type, thing->destination, hk_buf_str(&w->json));
    }
}

/* ---- destinations ---- */

/* `name` "" and no pointer: all together. */
static void form_name(struct hk_form *form, struct hk_str *name)
{
    hk_form_str(form, "destination", name);
}

static void form_state(struct hk_form *form, void *value)
{
    struct hk_status_dest *d = value;
    form_name(form, &d->name);
    hk_form_count(form, "pending", &d->backlog.pending);
    hk_form_exact(form, "processing", &d->backlog.processing);
    hk_form_count(form, "retrying", &d->backlog.retrying);
    hk_form_count(form, "dead", &d->backlog.dead);
    hk_form_held(form, &d->backlog);
}

static void form_figures(struct hk_form *form, void *value)
{
    struct hk_status_dest *d = value;
    form_name(form, &d->name);
    hk_form_lately(form, &d->lately);
}

static void form_total(struct hk_form *form, void *value)
{
    struct hk_status *s = value;
    struct hk_str all = {"", 0};
    form_name(form, &all);
    hk_form_count(form, "due", &s->store.due);
    hk_form_count(form, "scheduled", &s->store.scheduled);
    hk_form_exact(form, "processing", &s->store.processing);
    hk_form_count(form, "retrying", &s->retrying);
    hk_form_count(form, "dead", &s->store.dead);
    hk_form_uint(form, "relays_running", &s->store.relays_running);
}

static void look_at_dest(struct hk_event_watch *w, const struct hk_status_dest *d)
{
    char name[NAME_LONGEST];
    /* one byte in front: the name "" is that of messages that go by route */
    (void)snprintf(name, sizeof name, "=%.*s",
                   (int)(d->name.len < NAME_LONGEST / 2 ? d->name.len : NAME_LONGEST / 2), d->name.ptr);
    look_at(w, &(struct thing){HK_EVENT_STATE, hk_str_of(name), d->name, form_state, d});
    if (d->known)
        look_at(w, &(struct thing){HK_EVENT_FIGURES, hk_str_of(name), d->name, form_figures, d});
}

/* Destinations that the store no longer mentions have nothing to do. */
static void look_for_rest(struct hk_event_watch *w)
{
    char name[NAME_LONGEST];
    for (size_t i = 0; i < w->n; i++) {
        const struct item *item = &w->items[i];
        if (item->round == w->round || item->name[0] != '=' ||
            (item->type != HK_EVENT_STATE && item->type != HK_EVENT_FIGURES))
            continue;
        (void)snprintf(name, sizeof name, "%s", item->name + 1);
        const struct hk_status_dest rest = {.name = hk_str_of(name), .lately = {.ratio = -1}};
        look_at(w, &(struct thing){item->type, hk_str_of(item->name), rest.name,
                                   item->type == HK_EVENT_STATE ? form_state : form_figures, &rest});
    }
}

static enum hk_code look_at_status(struct hk_event_watch *w, struct hk_desk *desk, struct hk_pool *mem,
                                   struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    const struct hk_status_ask ask = {.exact = false};
    struct hk_status status;
    enum hk_code rc = hk_desk_ask(desk, &hk_op_status, &caller, &ask, mem, &status, err);
    if (rc != HK_OK)
        return rc;
    look_at(w, &(struct thing){HK_EVENT_STATE, hk_str_of("*"), hk_str_of(""), form_total, &status});
    for (size_t i = 0; i < status.n_dests; i++)
        look_at_dest(w, &status.dests[i]);
    look_for_rest(w);
    return HK_OK;
}

/* ---- alerts, redrives, jobs ---- */

static enum hk_code look_at_alerts(struct hk_event_watch *w, struct hk_desk *desk, struct hk_pool *mem,
                                   struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    struct hk_alerts_list list;
    char nothing = 0;
    enum hk_code rc = hk_desk_ask(desk, &hk_op_alerts_list, &caller, &nothing, mem, &list, err);
    for (size_t i = 0; rc == HK_OK && i < list.n_alerts; i++)
        look_at(w, &(struct thing){HK_EVENT_ALERT, hk_str_of(list.alerts[i].fingerprint),
                                   hk_alert_about(&list.alerts[i]), hk_form_alert, &list.alerts[i]});
    return rc;
}

static enum hk_code look_at_redrives(struct hk_event_watch *w, struct hk_desk *desk, struct hk_pool *mem,
                                     struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    const struct hk_redrive_list_ask ask = {.running = false};
    struct hk_redrive_jobs jobs;
    char name[24];
    enum hk_code rc = hk_desk_ask(desk, &hk_op_redrive_list, &caller, &ask, mem, &jobs, err);
    for (size_t i = 0; rc == HK_OK && i < jobs.n; i++) {
        (void)snprintf(name, sizeof name, "%" PRId64, jobs.items[i].id);
        look_at(w, &(struct thing){HK_EVENT_REDRIVE, hk_str_of(name), hk_str_of(""), hk_form_redrive_job,
                                   &jobs.items[i]});
    }
    return rc;
}

static enum hk_code look_at_jobs_of(struct hk_event_watch *w, struct hk_desk *desk, bool running,
                                    struct hk_pool *mem, struct hk_err *err)
{
    const struct hk_caller caller = {.role = HK_ROLE_VIEWER};
    const struct hk_job_list_ask ask = {.running = running, .limit = (uint64_t)2 * HK_JOBS_OPEN_MAX};
    struct hk_job_listed listed;
    char name[24];
    enum hk_code rc = hk_desk_ask(desk, &hk_op_job_list, &caller, &ask, mem, &listed, err);
    for (size_t i = 0; rc == HK_OK && i < listed.jobs.n; i++) {
        (void)snprintf(name, sizeof name, "%" PRId64, listed.jobs.items[i].id);
        look_at(w, &(struct thing){HK_EVENT_JOB, hk_str_of(name), hk_str_of(""), hk_form_job_head,
                                   &listed.jobs.items[i]});
    }
    return rc;
}

/* All that wait or run, and the newest of all: so that the end of one is seen, too. */
static enum hk_code look_at_jobs(struct hk_event_watch *w, struct hk_desk *desk, struct hk_pool *mem,
                                 struct hk_err *err)
{
    enum hk_code rc = look_at_jobs_of(w, desk, true, mem, err);
    return rc == HK_OK ? look_at_jobs_of(w, desk, false, mem, err) : rc;
}

typedef enum hk_code source_fn(struct hk_event_watch *w, struct hk_desk *desk, struct hk_pool *mem,
                               struct hk_err *err);
static source_fn *const sources[] = {look_at_status, look_at_alerts, look_at_redrives, look_at_jobs};

enum hk_code hk_event_watch_look(struct hk_event_watch *w, struct hk_desk *desk, hk_event_fn *tell, void *arg,
                                 struct hk_err *err)
{
    enum hk_code rc = HK_OK;
    w->round++;
    w->tell = tell;
    w->arg = arg;
    for (size_t i = 0; rc == HK_OK && i < sizeof sources / sizeof sources[0]; i++) {
        struct hk_pool mem = {.blocks = NULL};
        w->told = 0;
        rc = sources[i](w, desk, &mem, err);
        hk_pool_fini(&mem);
    }
    if (rc != HK_OK && w->round == 1)
        w->round = 0; /* it was none */
    return rc;
}

int64_t hk_event_look_after_ms(int64_t took_ms)
{
    int64_t wait = took_ms * LOOK_SHARE;
    return wait < LOOK_MS ? LOOK_MS : wait > LOOK_LONGEST_MS ? LOOK_LONGEST_MS : wait;
}

void hk_event_note(struct hk_buf *out, const char *reason)
{
    struct hk_json json;
    char now[HK_TIME_TEXT_MAX];
    (void)hk_format_rfc3339(hk_clock_wall_ms(), now);
    hk_json_init(&json, out, false);
    hk_json_object(&json);
    hk_put_cstr(&json, "now", now);
    if (reason)
        hk_put_cstr(&json, "reason", reason);
    hk_json_end(&json);
}

/* ---- the table ---- */

static enum hk_code check_events(struct hk_desk *desk, const void *request, struct hk_err *err)
{
    const struct hk_events_ask *ask = request;
    unsigned types = 0;
    return hk_event_types(ask->types, &types)
               ? HK_OK
               : hk_desk_wrong(
                     desk, "types", err,
                     "takes state, figures, alert, redrive, job and heartbeat, with commas between");
}

/* ---- on the database, without a relay ---- */

struct listening {
    const struct hk_events_ask *ask;
    struct hk_events_told *out;
    unsigned types;
    bool ended;
};

static void take_event(void *arg, enum hk_event_type type, struct hk_str destination, struct hk_str json)
{
    struct listening *l = arg;
    const char *only = l->ask->destination;
    if (l->ended || (l->types >> type & 1u) == 0 ||
        (only && destination.len > 0 && !hk_str_eq(destination, hk_str_of(only))))
        return;
    l->out->events++;
    l->ended = !l->ask->take(l->ask->take_arg, type, json);
}

static void take_note(struct listening *l, enum hk_event_type type, const char *reason)
{
    struct hk_buf json;
    hk_buf_init(&json, 512);
    hk_event_note(&json, reason);
    take_event(l, type, hk_str_of(""), hk_buf_str(&json));
    hk_buf_fini(&json);
}

static int64_t now_ms(void)
{
    return hk_clock_us() / 1000;
}

/* Until then, unless somebody stops it first. */
static void wait_until(int64_t at_ms, const struct hk_caller *caller)
{
    for (int64_t left = at_ms - now_ms(); left > 0 && !hk_caller_stops(caller); left = at_ms - now_ms())
        (void)nanosleep(&(struct timespec){.tv_nsec = (left < 100 ? left : 100) * 1000000L}, NULL);
}

static enum hk_code listen_here(struct listening *l, struct hk_desk *desk, struct hk_event_watch *watch,
                                const struct hk_caller *caller, struct hk_err *err)
{
    int64_t began = now_ms(), beat = began;
    int64_t end = l->ask->for_ms > 0 ? began + (int64_t)l->ask->for_ms : INT64_MAX;
    for (bool is_open = false; !l->ended && !hk_caller_stops(caller); is_open = true) {
        int64_t look = now_ms();
        enum hk_code rc = hk_event_watch_look(watch, desk, take_event, l, err);
        if (rc != HK_OK)
            return rc;
        if (!is_open)
            take_note(l, HK_EVENT_OPEN, NULL);
        if (now_ms() - beat >= HK_EVENT_BEAT_MS) {
            beat = now_ms();
            take_note(l, HK_EVENT_HEARTBEAT, NULL);
        }
        int64_t next = look + hk_event_look_after_ms(now_ms() - look);
        wait_until(next < end ? next : end, caller);
        if (now_ms() >= end) {
            take_note(l, HK_EVENT_END, "the time that was asked for is over");
            return HK_OK;
        }
    }
    return HK_OK;
}

static enum hk_code run_events(struct hk_desk *desk, const struct hk_caller *caller, const void *request,
                               struct hk_pool *mem, void *result, struct hk_err *err)
{
    struct listening l = {.ask = request, .out = result};
    (void)mem;
    *l.out = (struct hk_events_told){.events = 0};
    if (!l.ask->take || !hk_event_types(l.ask->types, &l.types))
        return hk_err_set(err, HK_UNSUPPORTED, "nobody takes the events");
    struct hk_event_watch *watch = hk_event_watch_new();
    enum hk_code rc =
        watch ? listen_here(&l, desk, watch, caller, err) : hk_err_set(err, HK_NOMEM, "out of memory");
    hk_event_watch_free(watch);
    return rc;
}

static const struct hk_arg events_args[] = {
    {HK_ARG(hk_events_ask, types, HK_ARG_TEXT, "TYPES",
            "only these: state,figures,alert,redrive,job,heartbeat (default: all)")},
    {HK_ARG(hk_events_ask, destination, HK_ARG_TEXT, "NAME",
            "only events of this destination, and those without one")},
    {.name = "for",
     .kind = HK_ARG_DURATION,
     .offset = offsetof(struct hk_events_ask, for_ms),
     .lo = 1000,
     .hi = 24.0 * 3600 * 1000,
     .value = "DURATION",
     .help = "end after this time (default: never)"},
    {.name = NULL}};

const struct hk_op hk_op_events = {
    .noun = "events",
    .summary = "listen to changes: counts, figures, alerts, redrives, jobs",
    .details =
        "Prints one line for each event. Wait for the event 'open', then load your data: the stream has all changes from there\n"
        "on. Over HTTP these are server-sent events: after a break send Last-Event-ID. The event 'reset' says that\n"
        "some were missed: load again.",
    .route = "GET /events",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .args = events_args,
    .request_size = sizeof(struct hk_events_ask),
    .result_size = sizeof(struct hk_events_told),
    .check = check_events,
    .run = run_events};
