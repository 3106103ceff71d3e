/* SPDX-License-Identifier: Apache-2.0 */
/* Destinations, as the configuration and the store know them. */
#include <inttypes.h>
#include <stdio.h>

#include "base/parse.h"
#include "base/show.h"
#include "base/str.h"
#include "config/definition.h"
#include "desk/definitions.h"
#include "desk/destinations.h"
#include "desk/forms.h"
#include "exec/clock.h"

/* ---- list ---- */

static const struct hk_dest_status *status_of(const struct hk_store_status *s, struct hk_str name)
{
    for (size_t i = 0; i < s->n_dests; i++)
        if (hk_str_eq(s->dests[i].name, name))
            return &s->dests[i];
    return NULL;
}

/* NULL: it has none, or there is no memory. */
static const char *url_of(const struct hk_conf_destination *conf, struct hk_pool *mem, bool *ok)
{
    char room[HK_URL_SHOWN_MAX];
    const char *url = hk_conf_url(conf, room), *copy = url ? hk_pool_copy_str(mem, hk_str_of(url)) : NULL;
    *ok = *ok && (copy || !url);
    return copy;
}

static struct hk_dest_row row_of(struct hk_str name, const struct hk_conf_destination *conf,
                                 const struct hk_dest_status *state, struct hk_pool *mem, bool *ok)
{
    const struct hk_dest_status nothing = {.name = name, .actor = {"", 0}, .reason = {"", 0}};
    struct hk_dest_row row = {
        .name = name, .rate_per_s = -1, .state = state ? *state : nothing, .unusable = {.why = {"", 0}}};
    if (!conf)
        return row;
    row.configured = true;
    row.kind = hk_conf_kind_name(conf->kind);
    row.url = url_of(conf, mem, ok);
    row.policy = conf->policy && conf->policy[0] ? conf->policy : NULL;
    row.order = conf->order == HK_ORDER_KEY ? "key" : "none";
    row.rate_per_s = conf->limits.rate_per_s > 0 ? conf->limits.rate_per_s : -1;
    row.concurrency = conf->limits.concurrency;
    return row;
}

/* One of the store's, used or not. */
static struct hk_dest_row kept_row(struct hk_desk *desk, const struct hk_definition *kept,
                                   const struct hk_store_status *s, struct hk_pool *mem, bool *ok)
{
    struct hk_conf_destination conf;
    struct hk_err why = {.message = ""};
    const char *name = hk_pool_copy_str(mem, kept->name);
    enum hk_code rc = HK_NOMEM;
    if (name)
        rc = hk_config_define(
            &(struct hk_definition_ask){.config = desk->config, .name = name, .text = kept->text}, mem, &conf,
            NULL, &why);
    struct hk_dest_row row =
        row_of(kept->name, rc == HK_OK ? &conf : NULL, status_of(s, kept->name), mem, ok);
    row.configured = true;
    row.kind = row.kind ? row.kind : "unknown";
    row.from = "store";
    row.version = (uint64_t)kept->version;
    if (rc != HK_OK)
        row.problem = hk_pool_copy_str(mem, hk_str_of(why.message));
    *ok = *ok && rc != HK_NOMEM;
    return row;
}

static const struct hk_definition *kept_as(const struct hk_definitions *kept, struct hk_str name)
{
    for (size_t i = 0; i < kept->n; i++)
        if (hk_str_eq(kept->items[i].name, name))
            return &kept->items[i];
    return NULL;
}

/* Those of the store that relays cannot use. Where figures cannot be read the rest is worth showing. */
static void add_unusable(struct hk_desk *desk, struct hk_pool *mem, struct hk_dests *o)
{
    const struct hk_figures *figures = NULL;
    struct hk_err err = {.message = ""};
    if (desk->ops->figures(desk->admin, &figures, &err) != HK_OK)
        return;
    hk_desk_keep(desk, mem);
    for (size_t k = 0; k < figures->n; k++)
        for (size_t i = 0; hk_figure_is_held(&figures->items[k]) && i < o->n; i++)
            if (o->items[i].version > 0 && hk_str_eq(o->items[i].name, figures->items[k].destination))
                hk_unusable_add(&o->items[i].unusable, &figures->items[k]);
}

static enum hk_code list_destinations(struct hk_desk *desk, const struct hk_caller *caller,
                                      const void *request, struct hk_pool *mem, struct hk_dests *out,
                                      struct hk_err *err)
{
    const struct hk_store_status *found = NULL;
    const struct hk_definitions *all = NULL;
    const struct hk_conf_destination *conf = NULL;
    size_t configured = 0;
    bool ok = true;
    (void)caller, (void)request;
    enum hk_code rc = desk->ops->status(desk->admin, &found, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_store_status s = *found;
    hk_desk_keep(desk, mem);
    while (hk_config_destination(desk->config, configured))
        configured++;
    rc = desk->ops->definitions(desk->admin, NULL, &all, err);
    if (rc != HK_OK)
        return rc;
    const struct hk_definitions kept = *all;
    hk_desk_keep(desk, mem);
    struct hk_dests o = {.now_ms = s.now_ms,
                         .items = hk_pool_alloc(mem, configured + kept.n + s.n_dests + 1, sizeof *o.items)};
    if (!o.items)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    for (size_t i = 0; (conf = hk_config_destination(desk->config, i)) != NULL; i++) {
        struct hk_str name = hk_str_of(conf->name);
        o.items[o.n] = row_of(name, conf, status_of(&s, name), mem, &ok);
        o.items[o.n].from = "file";
        o.items[o.n++].also_stored = kept_as(&kept, name) != NULL;
    }
    for (size_t i = 0; i < kept.n; i++)
        if (!hk_config_destination_named(desk->config, kept.items[i].name))
            o.items[o.n++] = kept_row(desk, &kept.items[i], &s, mem, &ok);
    for (size_t i = 0; i < s.n_dests; i++)
        if (!hk_config_destination_named(desk->config, s.dests[i].name) && !kept_as(&kept, s.dests[i].name))
            o.items[o.n++] = row_of(s.dests[i].name, NULL, &s.dests[i], mem, &ok);
    add_unusable(desk, mem, &o);
    *out = o;
    return ok ? HK_OK : hk_err_set(err, HK_NOMEM, "out of memory");
}

/* ---- pause, resume ---- */

/* A misspelt name would pause nothing, and say that it did. */
static bool is_known(const struct hk_desk *desk, struct hk_str name)
{
    const struct hk_store_status *status = NULL;
    struct hk_err err;
    const struct hk_definitions *kept = NULL;
    if (!hk_config_destination(desk->config, 0) || hk_config_destination_named(desk->config, name))
        return true;
    if (desk->ops->definitions(desk->admin, name.ptr, &kept, &err) != HK_OK || kept->n > 0)
        return true;
    return desk->ops->status(desk->admin, &status, &err) != HK_OK || status_of(status, name);
}

static enum hk_code set_paused(struct hk_desk *desk, const struct hk_caller *caller, const char *name,
                               bool paused, struct hk_dest_paused *out, struct hk_err *err)
{
    char shown[HK_SHOW_MAX];
    bool changed = false;
    if (name[0] == '\0')
        return hk_err_set(err, HK_INVALID, "which destination? It has no name");
    if (paused && !is_known(desk, hk_str_of(name)))
        return hk_err_set(err, HK_NOTFOUND,
                          "there is no destination %s; 'hikyaku destinations list' shows them",
                          hk_show(hk_str_of(name), shown));
    enum hk_code rc =
        desk->ops->pause(desk->admin, name, paused, caller->actor, caller->reason, &changed, err);
    if (rc == HK_OK)
        *out = (struct hk_dest_paused){.destination = name, .paused = paused, .changed = changed};
    return rc;
}

static enum hk_code pause_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                      const struct hk_dest_ask *ask, struct hk_pool *mem,
                                      struct hk_dest_paused *out, struct hk_err *err)
{
    (void)mem;
    return set_paused(desk, caller, ask->destination, true, out, err);
}

static enum hk_code resume_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                       const struct hk_dest_ask *ask, struct hk_pool *mem,
                                       struct hk_dest_paused *out, struct hk_err *err)
{
    (void)mem;
    return set_paused(desk, caller, ask->destination, false, out, err);
}

/* ---- test ---- */

enum {
    TEXT_MAX = 128
};

static struct hk_message test_message(const struct hk_dest_test_ask *ask, const char *message_id,
                                      struct hk_str payload)
{
    const struct hk_str none = {"", 0};
    return (struct hk_message){.message_id = hk_str_of(message_id),
                               .destination = hk_str_of(ask->destination),
                               .event_type = hk_str_of("hikyaku.test"),
                               .key = none,
                               .headers = none,
                               .content_type = hk_str_of("application/json"),
                               .encoding = none,
                               .correlation_id = none,
                               .traceparent = none,
                               .idempotency_key = none,
                               .policy = none,
                               .payload = payload,
                               .created_ms = hk_clock_wall_ms(),
                               .life = 1};
}

static enum hk_code test_destination(struct hk_desk *desk, const struct hk_caller *caller,
                                     const struct hk_dest_test_ask *ask, struct hk_pool *mem,
                                     struct hk_dest_tested *out, struct hk_err *err)
{
    char now[HK_TIME_TEXT_MAX], shown[HK_SHOW_MAX], payload[TEXT_MAX];
    const struct hk_conf_destination *conf = NULL;
    bool ok = true;
    char *id = hk_pool_alloc(mem, 1, TEXT_MAX);
    (void)caller;
    if (!hk_config_destination_named(desk->config, hk_str_of(ask->destination)))
        (void)!hk_desk_open(desk, err); /* without the store only the file's are known */
    enum hk_code rc = hk_desk_destination(desk, hk_str_of(ask->destination), true, mem, &conf, err);
    if (rc != HK_OK)
        return rc;
    if (!conf)
        return hk_err_set(err, HK_NOTFOUND,
                          "no destination %s is configured; 'hikyaku destinations list' shows them",
                          hk_show(hk_str_of(ask->destination), shown));
    struct hk_dest_tested o = {
        .destination = conf->name, .kind = hk_conf_kind_name(conf->kind), .url = url_of(conf, mem, &ok)};
    if (!id || !ok)
        return hk_err_set(err, HK_NOMEM, "out of memory");
    (void)hk_format_rfc3339(hk_clock_wall_ms(), now);
    (void)snprintf(payload, sizeof payload, "{\"test\":true,\"from\":\"hikyaku\",\"at\":\"%s\"}", now);
    (void)snprintf(id, TEXT_MAX, "test-%016" PRIx64, hk_clock_seed());
    o.message_id = id;
    struct hk_message message = test_message(ask, id, ask->payload.ptr ? ask->payload : hk_str_of(payload));
    rc = hk_deliver(conf, hk_conf_policy(desk->config, conf), &message, mem, &o.got, err);
    if (rc == HK_OK)
        *out = o;
    return rc;
}

/* ---- the table ---- */

HK_OP_RUN(list_destinations)
HK_OP_RUN(pause_destination)
HK_OP_RUN(resume_destination)
HK_OP_RUN(test_destination)

static const struct hk_arg dest_args[] = {{.name = "destination",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_dest_ask, destination),
                                           .value = "NAME"},
                                          {.name = NULL}};

static const struct hk_arg test_args[] = {{.name = "destination",
                                           .kind = HK_ARG_TEXT,
                                           .subject = true,
                                           .required = true,
                                           .offset = offsetof(struct hk_dest_test_ask, destination),
                                           .value = "NAME"},
                                          {.name = "payload",
                                           .kind = HK_ARG_BYTES,
                                           .offset = offsetof(struct hk_dest_test_ask, payload),
                                           .value = "TEXT|-|@FILE",
                                           .help = "send this (default: a test object)"},
                                          {.name = NULL}};

const struct hk_op hk_op_destinations_list = {
    .noun = "destinations",
    .verb = "list",
    .summary = "list the destinations of the configuration and of the store",
    .route = "GET /destinations",
    .role = HK_ROLE_VIEWER,
    .store = true,
    .result_size = sizeof(struct hk_dests),
    .run = list_destinations_op,
    .form = hk_form_destinations};

const struct hk_op hk_op_destinations_pause = {
    .noun = "destinations",
    .verb = "pause",
    .summary = "pause a destination: its messages wait, and no attempt is charged",
    .route = "POST /destinations/{destination}/pause",
    .role = HK_ROLE_OPERATOR,
    .store = true,
    .changes = true,
    .needs_reason = true,
    .args = dest_args,
    .request_size = sizeof(struct hk_dest_ask),
    .result_size = sizeof(struct hk_dest_paused),
    .run = pause_destination_op,
    .form = hk_form_destination_paused};

const struct hk_op hk_op_destinations_resume = {.noun = "destinations",
                                                .verb = "resume",
                                                .summary = "resume a paused destination",
                                                .route = "POST /destinations/{destination}/resume",
                                                .role = HK_ROLE_OPERATOR,
                                                .store = true,
                                                .changes = true,
                                                .needs_reason = true,
                                                .args = dest_args,
                                                .request_size = sizeof(struct hk_dest_ask),
                                                .result_size = sizeof(struct hk_dest_paused),
                                                .run = resume_destination_op,
                                                .form = hk_form_destination_paused};

const struct hk_op hk_op_destinations_test = {
    .noun = "destinations",
    .verb = "test",
    .summary = "send one test message now, and show the response",
    .details = "Sends as the relay does, with its signature, address policy and time-outs. No message is\n"
               "written. Exit code 0 only if the destination's policy calls the answer a success.",
    .route = "POST /destinations/{destination}/test",
    .role = HK_ROLE_OPERATOR,
    .changes = true,
    .sends = true,
    .args = test_args,
    .request_size = sizeof(struct hk_dest_test_ask),
    .result_size = sizeof(struct hk_dest_tested),
    .run = test_destination_op,
    .form = hk_form_destination_tested};
